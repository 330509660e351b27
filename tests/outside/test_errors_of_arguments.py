"""Arguments that are refused: which error comes first, and what it says."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle import torch, tt
from tests.outside.alike import What, alike_rounded, same_or_refused, told_rounded, whats

REFUSED: list[What] = [
    lambda m: m.fft.fftn(m.tensor(2.0), (), (0,)),
    lambda m: m.fft.fftn(m.tensor(2.0), None, (1,)),
    lambda m: m.fft.fftshift(m.ones(2), []),
    lambda m: m.fft.ifftshift(m.ones(2), ()),
    lambda m: m.fft.fftshift(m.tensor(1.0), 0),
    lambda m: m.fft.fftshift(m.ones(2), 3),
    lambda m: m.nn.functional.rms_norm(m.ones(3), (3, 3)),
    lambda m: m.broadcast_tensors([m.ones(2), m.ones(2)]),
    lambda m: m.block_diag((m.ones(2), m.ones(2))),
    lambda m: m.chain_matmul([m.ones(2, 2)]),
    lambda m: m.chain_matmul(),
    lambda m: m.binary_cross_entropy_with_logits(m.ones(2, 2), m.ones(2)),
    lambda m: m.ones(3).index_put_((m.tensor([[0]], dtype=m.int16),), m.ones(1)),
    lambda m: m.ones(0, 2)[[-4]],
    lambda m: m.ones(2, 0)[m.tensor([5]), m.tensor([5])],
    lambda m: m.nn.AdaptiveAvgPool2d(1)(m.ones(3)),
    lambda m: m.nn.AdaptiveAvgPool3d(1)(m.ones(3, 2)),
    lambda m: m.embedding_renorm_(m.ones(1), m.tensor([0]), 0.5, 0.5),
    lambda m: m.pinverse(m.tensor([[m.nan, 1.0], [2.0, 3.0]])),
    lambda m: m.linalg.svdvals(m.tensor([[[m.nan, 1.0], [2.0, 3.0]]])),
    lambda m: m.linalg.matrix_rank(m.tensor([[m.nan, 1.0], [2.0, 3.0]])),
    lambda m: m.bilinear(m.ones(3, 3), m.ones(3, 3) > 0, m.ones(3, 3, 3)),
    lambda m: m.nn.functional.layer_norm(m.ones(3, 2), (2,), m.ones(2).double()),
    lambda m: m.nn.functional.layer_norm(m.ones(3, 2).double(), (2,), m.ones(2)),
    lambda m: m.nn.functional.group_norm(m.ones(3, 2), 1, m.ones(2).half()),
    lambda m: m.nn.functional.batch_norm(m.ones(3, 2), None, None, m.ones(2).double(), None, True),
    lambda m: m.sspaddmm(m.eye(2), m.ones(2, 2), m.ones(2, 2)),
    lambda m: m.ones(2, 2).smm(m.ones(2, 2)),
    lambda m: m.affine_grid_generator(m.ones(1, 2, 2), [1, 1, 2, 2], False),
    lambda m: m.affine_grid_generator(m.ones(1, 2, 2), [1, 1, 2], False),
    lambda m: m.take_along_dim(m.ones(2, 4), m.tensor([1], dtype=m.int16)),
]


@pytest.mark.parametrize("what", REFUSED)
def test_refusals(what: What) -> None:
    assert told_rounded(torch, what)[0].endswith("Error")
    alike_rounded(what)


# -- which refusal comes first ---------------------------------------------------------------------


def test_shapes_are_asked_before_kernels() -> None:
    for what in whats(
        lambda m: m.ones(4) // m.ones(3, dtype=m.complex64),
        lambda m: m.ones(5).long() >> m.ones(3),
        lambda m: m.ones(2) | m.ones(3),
        lambda m: m.ones(2).bool() << m.ones(3),
        lambda m: m.igamma(m.ones(2).bool(), m.ones(3).bool()),
        lambda m: m.special.chebyshev_polynomial_u(
            m.ones(3).half(), m.tensor(2), out=m.ones(1).half().expand(3)
        ),
        lambda m: m.special.chebyshev_polynomial_w(
            -1.5, m.ones(2).bfloat16(), out=m.ones(2).char()
        ),
        lambda m: m.ones(2).long().lerp(m.ones(3).long(), 0.5),
        lambda m: m.ones(2).long().lerp_(m.ones(3).long(), 0.5),
        lambda m: m.ones(2).long().lerp_(m.ones(2).long(), 0.5),
        lambda m: m.ones(2, requires_grad=True).lerp_(True, 0.5),
        lambda m: m.ones(2, requires_grad=True).lerp_(2, 0.5),
    ):
        same_or_refused(what)


# -- linear algebra: shapes before types, and nothing to do ----------------------------------------


def test_options_that_are_refused() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for what in whats(
        lambda m: m.nanmedian(m.from_numpy(x), out=m.zeros(())),
        lambda m: m.max(m.zeros(0), out=m.zeros(())).item(),
        lambda m: m.min(m.zeros(0, dtype=m.int8), out=m.zeros((), dtype=m.int8)).item(),
        lambda m: m.max(m.zeros(0)),
        lambda m: m.linalg.vector_norm(m.from_numpy(x), dtype=m.bfloat16),
        lambda m: m.linalg.vector_norm(m.from_numpy(x), dtype=m.float32),
        lambda m: m.linalg.vector_norm(m.from_numpy(x), dtype=m.complex128),
        lambda m: m.linalg.vector_norm(m.ones(2).long(), dtype=m.float64).item(),
        lambda m: m.nonzero_static(m.tensor([1, 0]), size=1, out=m.zeros(1, 1).char()),
        lambda m: m.linalg.eigh(m.eye(2).cfloat(), out=(m.zeros(2).cfloat(), m.eye(2).cfloat())),
        lambda m: m.special.softmax(m.from_numpy(x), 1, m.float32).dtype.is_floating_point,
    ):
        same_or_refused(what)


# -- compositions ----------------------------------------------------------------------------------


def test_small_refusals() -> None:
    for what in whats(
        lambda m: m.searchsorted(m.tensor(1), 1),
        lambda m: m.trapezoid(m.ones(2), dx=True),
        lambda m: m.cumulative_trapezoid(m.ones(2), dx=1j),
        lambda m: m.ones(2).is_contiguous(m.preserve_format),
        lambda m: m.tensor(1).tile(),
        lambda m: m.ones(1).as_strided((-1,), (2,)),
        lambda m: m.margin_ranking_loss(m.ones(1), m.ones(1), m.ones(1), 2.0, "sum"),
        lambda m: m.kl_div(m.ones(3), m.ones(3).long(), reduction="mean"),
        lambda m: m.ones(2).bool()[:0].cumsum_(0).tolist(),
        lambda m: m.cumsum(m.ones(2), 0, out=m.ones(2).bool()),
        lambda m: m.permute_copy(m.ones(2, 3), 0),
        lambda m: m.expand_copy(m.ones(2, 3), 2, 3),
        lambda m: m.split_copy(m.ones(2, 3), 1, out=m.ones(2)),
        lambda m: m.ones(4).tensor_split(m.tensor(2.0)),
        lambda m: m.nn.functional.avg_pool3d(m.ones(1, 1, 2, 2, 2).bool(), (1, 1, 2), (2, 1)),
        lambda m: m.full((1, 1, 2), 2.0, out=m.zeros(2).long()).tolist(),
        lambda m: list(m.frobenius_norm(m.ones(3, 2), [0], out=m.ones(3)).shape),
        lambda m: list(m.nonzero(m.zeros(3, 3)).stride()),
        lambda m: list(m.nn.functional.conv1d(m.zeros(2, 0, 4), m.zeros(3, 0, 2)).shape),
        lambda m: list(m.nn.functional.conv2d(m.zeros(0, 2, 4, 4), m.zeros(3, 2, 2, 2)).shape),
    ):
        same_or_refused(what)


@pytest.mark.parametrize("kind", ["bool", "float16", "bfloat16", "float32", "complex64", "int64"])
@pytest.mark.parametrize("sizes", [(3,), (-1, 3, 1), (), (4, 1), (-2, 1)], ids=str)
def test_refusals_of_expand_word_for_word(kind: str, sizes: tuple[int, ...]) -> None:
    said = []
    for m in (torch, tt):
        with pytest.raises(RuntimeError) as refused:
            m.ones(3, 1).to(getattr(m, kind)).expand(sizes)
        said.append(str(refused.value))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("f", "has_aux"),
    [
        (lambda x: x * 2, False),
        (lambda x: 2.0, False),
        (lambda x: (x, x), False),
        (lambda x: x.sum(), True),
    ],
)
def test_refusals_of_grad_word_for_word(f: What, has_aux: bool) -> None:
    said = []
    for m in (torch, tt):
        with pytest.raises(RuntimeError) as refused:
            m.func.grad(f, has_aux=has_aux)(m.ones(2))
        said.append(str(refused.value))
    assert said[0] == said[1]


# -- combinations that no overload takes ----------------------------------------------------------


@pytest.mark.parametrize(
    "what",
    whats(
        lambda m: m.where(m.ones(2) > 0, m.ones(2)),
        lambda m: m.where(m.ones(2) > 0, m.ones(2), None),
        lambda m: m.where(m.ones(2) > 0, None, None),
        lambda m: m.where(m.ones(2) > 0, x=2.5, other=m.ones(2)),
        lambda m: m.where(m.ones(2), x=2.5, other=m.ones(2)),
        lambda m: m.where(m.ones(2) > 0, self=2.5, other=m.ones(2)).tolist(),
        lambda m: m.where(m.ones(2) > 0, 1, 2, out=m.ones(2).long()),
        lambda m: m.trapezoid(m.ones(3), None),
        lambda m: m.cumulative_trapezoid(m.ones(3), dx=None),
        lambda m: m.result_type(m.ones(1), None),
        lambda m: m.max(m.ones(2, 2), 0, other=m.ones(2)),
        lambda m: m.min(m.ones(2, 2), m.ones(2), keepdim=True),
        lambda m: m.randint(2.5, (2,)),
        lambda m: m.randint(0, 2.5, (2,)),
        lambda m: m.linspace("a", 1, 3),
        lambda m: m.logspace(0, None, 3),
        lambda m: m.nn.functional.adaptive_avg_pool2d(m.ones(1, 1, 4, 4), None),
        lambda m: m.logsumexp(m.ones(2, 3), []),
        lambda m: m.ones(2, 3).logsumexp(()),
        lambda m: m.ones(2, 2).addbmm_(1, m.ones(1, 2, 2)),
        lambda m: m.isin(m.tensor([44, 1], dtype=m.uint8), 300).tolist(),
        lambda m: m.isin(m.ones(2), 1j),
        lambda m: m.native_group_norm(m.ones(2, 6, 8)[:, :, ::2], None, None, 2, 6, 4, 2, 1e-5),
        lambda m: m.linalg.vecdot(m.ones(2, 2), m.ones(2, 3), out=m.ones(2).long()),
        lambda m: m.norm(m.ones(2), 1 + 0j),
        lambda m: m.linalg.norm(m.ones(2), 1 + 2j),
        lambda m: m.linalg.matrix_norm(m.ones(2, 2), 1 + 2j),
        lambda m: m.renorm(m.ones(2, 2), 1 + 0j, 0, 1.0),
        lambda m: m.nn.functional.threshold(m.ones(2).byte(), 1, -1.5).tolist(),
        lambda m: m.nn.functional.threshold(m.ones(2), 3, 1e99),
    ),
)
def test_combinations(what: What) -> None:
    same_or_refused(what)


@pytest.mark.parametrize(
    "what",
    whats(
        lambda m: m.linalg.solve(m.eye(3).repeat(2, 1, 1), m.ones(4, 3, 1)),
        lambda m: m.linalg.solve_triangular(m.eye(3).repeat(2, 1, 1), m.ones(0, 3, 1), upper=True),
        lambda m: m.linalg.lu_solve(m.ones(2, 3, 3), m.ones(2, 3).int(), m.ones(4, 3, 1)),
        lambda m: m.linalg.ldl_solve(m.ones(2, 3, 3), m.ones(2, 3).int(), m.ones(4, 3, 1)),
        lambda m: m.triangular_solve(m.ones(4, 3, 1), m.ones(2, 3, 3)),
        lambda m: m.nn.functional.binary_cross_entropy_with_logits(
            m.ones(5, 5), m.ones(5, 5), m.ones(1, 5, 5)
        ),
        lambda m: m.nn.functional.unfold(m.ones(1, 1, 4, 4), [2]),
        lambda m: m.nn.functional.fold(m.ones(1, 4, 9), 4, 2, padding=(1,)),
    ),
)
def test_shapes_that_do_not_broadcast(what: What) -> None:
    alike_rounded(what)


@pytest.mark.parametrize(
    "what",
    whats(
        lambda m: m.zeros(m.tensor([2, 1])),
        lambda m: m.ones(2).reshape(m.tensor([2, 1])),
        lambda m: m.ones(2).reshape(m.tensor([2])),
        lambda m: m.ones(2).repeat(m.tensor([2, 1])),
        lambda m: m.ones(2, 2).permute(m.tensor([0, 1])),
        lambda m: m.ones(2).reshape(np.array([2, 1])),
        lambda m: m.ones(2).size(0.0),
        lambda m: m.ones(2).size("a"),
        lambda m: m.ones(2).size(True),
        lambda m: m.ones(2).type(float),
        lambda m: m.abs(m.float32),
        lambda m: m.abs(m.Size([1])),
        lambda m: m.cat([m.ones(1), np.ones(1)]),
    ),
)
def test_types(what: What) -> None:
    alike_rounded(what)

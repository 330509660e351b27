"""What the second generator found on seeds from 90,000 on, a line or a few for each cause."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt

What = Callable[[Any], Any]


def facts(x: Any) -> Any:
    """What can be seen of a result, in plain values."""
    if isinstance(x, (tuple, list)):
        return [facts(v) for v in x]
    if not isinstance(x, (torch.Tensor, tt.Tensor)):
        return x
    dense = x.detach().to_dense()
    node = type(x.grad_fn).__name__.rstrip("0123456789") if x.grad_fn is not None else None
    elements = np.round(np.asarray(dense.double().numpy(), np.float64), 4).tolist()
    return str(x.dtype)[-7:], tuple(x.shape), x.requires_grad, node, str(elements)


def told(m: Any, what: What) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, refused = attempt(lambda: facts(what(m)))
    return made if refused is None else (type(refused).__name__, str(refused).split("\n")[0])


def leaf(m: Any, *shape: int) -> Any:
    return m.ones(*shape, requires_grad=True)


def check(what: What, words: bool = True) -> None:
    want, got = told(torch, what), told(tt, what)
    if not words and isinstance(want, tuple) and isinstance(want[0], str):
        want, got = want[0], got[0]
    assert got == want


OUT: list[What] = [
    lambda m: m.eye(3, out=m.zeros(3, 3).bool()),
    lambda m: m.range(0.5, 2.5, out=m.zeros(3).byte()),
    lambda m: m.range(1, 5.5, 1.5, dtype=m.int32),
    lambda m: m.range(0, 2, out=m.zeros(3).bool()),
    lambda m: m.fft.fftfreq(3, out=m.zeros(3).int()),
    lambda m: m.fft.rfftfreq(3, out=m.zeros(3).bool()),
    lambda m: m.softmax(leaf(m, 3), 0, out=m.ones(3)),
    lambda m: m.log_softmax(leaf(m, 3), 0, out=m.ones(3)),
    lambda m: m.conj_physical(leaf(m, 3), out=m.ones(3)),
    lambda m: m.slice_scatter(leaf(m, 3), m.ones(3), out=m.ones(3)),
    lambda m: m.special.ndtr(leaf(m, 3), out=m.ones(3)),
    lambda m: m.special.ndtr(leaf(m, 3), out=m.ones(2)),
    lambda m: m.special.ndtr(m.ones(3), out=leaf(m, 3)),
    lambda m: m.special.ndtr(m.ones(0, 3).long(), out=m.ones(0, 3).long()),
    lambda m: m.bitwise_and(m.ones(2).int(), m.ones(2).int(), out=leaf(m, 2)),
    lambda m: m.bitwise_not(m.ones(2), out=leaf(m, 2)),
    lambda m: m.gcd(m.ones(2).int(), m.ones(2).int(), out=leaf(m, 2)[:]),
    lambda m: m.arange(3.0, out=leaf(m, 3)[:]),
    lambda m: m.ones(2, out=leaf(m, 2) * 1),
    lambda m: m.linspace(leaf(m), 0, steps=3, out=m.ones(3)),
    lambda m: m.logspace(0, leaf(m), steps=3, out=m.ones(3)),
    lambda m: m.tensordot(leaf(m, 2), m.ones(2), 1, out=m.ones(())),
    lambda m: m.linalg.cond(leaf(m, 2, 2) + m.eye(2), out=m.ones(())),
    lambda m: m.linalg.matrix_norm(leaf(m, 2, 2), out=m.ones(2)),
    lambda m: m.nuclear_norm(m.ones(2, 2), out=m.ones(3)),
    *[
        lambda m, f=f: f(m)
        for f in (
            lambda m: m.diff(leaf(m, 3), out=m.ones(2)),
            lambda m: m.kron(leaf(m, 2), m.ones(2), out=m.ones(4)),
            lambda m: m.frobenius_norm(leaf(m, 2, 2), 1, out=m.ones(2)),
            lambda m: m.msort(leaf(m, 2), out=m.ones(2)),
            lambda m: m.nanmean(leaf(m, 2), out=m.ones(())),
            lambda m: m.linalg.vecdot(leaf(m, 2), m.ones(2), out=m.ones(())),
            lambda m: m.cholesky(leaf(m, 1, 1), out=m.ones(1, 1)),
        )
    ],
    lambda m: m.diff(m.tensor([[3, 1, 1]]), out=m.ones(1, 3, dtype=m.int32)),
    lambda m: (
        m.triangular_solve(m.ones(2, 1), 2 * m.eye(2), out=(m.zeros(2, 1), m.zeros(2, 2))).solution
    ),
    lambda m: m.triangular_solve(m.ones(2, 1), m.eye(2), out=(m.zeros(1).double(), m.zeros(2, 2))),
    lambda m: m.triangular_solve(leaf(m, 2, 1), m.eye(2), out=(m.zeros(2, 1), m.zeros(2, 2))),
    lambda m: m.triangular_solve(m.ones(2, 1).double(), m.eye(2)),
]


@pytest.mark.parametrize("what", OUT)
def test_out(what: What) -> None:
    check(what)


@pytest.mark.parametrize(
    "name", ["relu", "isnan", "isinf", "isfinite", "selu", "celu", "select_scatter"]
)
def test_functions_without_out(name: str) -> None:
    for m in (torch, tt):
        args = [m.ones(2, 2), m.ones(2), 0, 0] if "scatter" in name else [m.ones(2, 2)]
        with pytest.raises(TypeError):
            getattr(m, name)(*args, out=m.ones(2, 2))


COMPLEX = (1j, 1.0, "real", "complex")


@pytest.mark.parametrize("name", ["clamp", "clamp_min", "clamp_max", "clip"])
@pytest.mark.parametrize("kind", ["complex64", "float32", "int64", "bool"])
def test_limits_of_other_kinds(name: str, kind: str) -> None:
    def limited(m: Any, limit: Any) -> Any:
        if isinstance(limit, str):
            limit = m.ones(2).cfloat() if limit == "complex" else m.ones(2)
        return getattr(m, name)(m.ones(2).to(getattr(m, kind)), limit).is_complex()

    for limit in (*COMPLEX, True):
        check(lambda m, limit=limit: limited(m, limit))
    check(lambda m: m.ones(2).bool().clamp(True, True))
    check(lambda m: m.ones(2).bool().clamp(m.tensor(True), m.tensor(True)))
    check(lambda m: m.nn.functional.hardtanh(m.ones(2).cfloat()))
    check(lambda m: m.nn.functional.hardtanh(m.ones(2).bool()))
    check(lambda m: m.threshold(m.ones(2).cfloat(), 2, 1))
    check(lambda m: m.threshold(m.ones(2) > 0, 2, 1))


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
    assert told(torch, what)[0].endswith("Error")
    check(what)


@pytest.mark.parametrize(
    "what",
    [
        lambda m: m.reciprocal_(self=m.ones(2)),
        lambda m: m.clamp_(self=m.ones(2), min=2),
        lambda m: m.squeeze_(self=m.ones(2)) if hasattr(m, "squeeze_") else m.relu_(self=m.ones(2)),
        lambda m: m.clamp_(input=m.ones(2), min=2),
        lambda m: m.pow(self=2, exponent=m.ones(2)),
        lambda m: m.xlogy(self=2, other=m.ones(2)),
        lambda m: m.zero_(x=m.ones(2)),
        lambda m: m.norm_except_dim(m.ones(2, 3), axis=-2),
        lambda m: m.rsub(m.ones(2), 1e-3, -1),
        lambda m: m.ones(2).qscheme(),
        lambda m: m.hspmm(m.eye(2), m.ones(2, 2)),
        lambda m: m.native_norm(m.ones(2)),
    ],
)
def test_names(what: What) -> None:
    check(what, words=False)


VALUES: list[What] = [
    lambda m: m.linalg.solve_triangular(2 * m.eye(2).double(), m.ones(2, 2), upper=True),
    lambda m: m.linalg.solve_triangular(2 * m.eye(2), m.ones(2, 2).bfloat16(), upper=True),
    lambda m: m.margin_ranking_loss(m.ones(3, 1), m.zeros(3, 1), m.ones(2), 2.0, 2),
    lambda m: m.binary_cross_entropy_with_logits(m.ones(2), m.ones(2, 2)),
    lambda m: m.addr(m.ones(2, 2).half(), m.ones(2).half(), m.ones(2).bfloat16()),
    lambda m: m.ones(2, 0)[[-4]],
    lambda m: m.ones(1, 0, 3)[:, :, m.tensor([5])],
    lambda m: m.ones(2, 0, 3)[m.tensor([5]), :, m.tensor([7])],
    lambda m: m.ones(2, 3)[m.tensor([], dtype=m.int64).reshape(0, 1), m.tensor([7])],
    lambda m: 0 ** m.tensor([-(2**31)], dtype=m.int32),
    lambda m: (-1) ** m.tensor([-(2**31), -3, -2, 3]),
    lambda m: m.nn.LSTM(2, 2)(m.zeros(1, 0, 2))[0].detach(),
    lambda m: m.nn.GRU(2, 2, batch_first=True)(m.zeros(0, 1, 2))[0].detach(),
    lambda m: m.nn.Linear(0, 2)(m.zeros(10, 5, 0)).shape,
    # By position PyTorch's function loses what it is asked for: what comes is empty for any input.
    lambda m: m.unique_consecutive(m.zeros(2, 0), return_inverse=True)[1],
    lambda m: m.ones(1, 1).long().expand(4, 2).nan_to_num_(2.0),
    lambda m: m.take_along_dim(m.ones(2, 4), m.tensor([1], dtype=m.int32)),
    lambda m: m.smm(m.eye(2).to_sparse(), m.ones(2, 2)),
    lambda m: m.hspmm(m.eye(2).to_sparse(), m.ones(2, 2)),
    lambda m: m.sspaddmm(m.eye(2).to_sparse(), m.eye(2).to_sparse(), m.ones(2, 2), alpha=2),
    lambda m: m.affine_grid_generator(m.ones(1, 2, 3), (1, 1, 2, 2), True),
    lambda m: m.conv_transpose1d(
        m.ones(1, 1, 4), m.ones(1, 1, 4), stride=2, padding=1
    ).storage_offset(),
    lambda m: m.embedding_renorm_(m.ones(3, 1), m.tensor([], dtype=m.int64), 0.1, 2.0)._version,
    lambda m: m.special.chebyshev_polynomial_v(m.tensor([2.0, -2.0]), m.tensor([100.0])),
    lambda m: m.special.hermite_polynomial_h(m.tensor([2.0, -2.0]), m.tensor([60.0])),
]


@pytest.mark.parametrize("what", VALUES)
def test_values(what: What) -> None:
    check(what)


def test_powers_of_tensors_without_dimensions_are_no_numbers() -> None:
    for what in (
        lambda m: m.tensor(0j) ** m.tensor(0j),
        lambda m: m.zeros(3).cfloat() ** m.tensor(0),
        lambda m: m.float_power(m.tensor(0j), m.tensor(0j)),
        lambda m: m.pow(0j, m.tensor(0j)),
        lambda m: m.tensor([2j]) ** 2,
        lambda m: m.tensor(0j) ** 0,
    ):
        want, got = (m.view_as_real(what(m)).numpy() for m in (torch, tt))
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("value", ["ones(1)", "ones(())"])
def test_masks_that_cast_one_value_leave_a_history(value: str) -> None:
    def put(m: Any, x: Any, index: Any) -> Any:
        y = eval(f"m.{value}", {"m": m}).requires_grad_()
        x[index(m, x)] = y
        return x

    for index in (
        lambda m, x: x > 0,
        lambda m, x: True,
        lambda m, x: (slice(None), [True, False]),
    ):
        for kind in ("bool", "int64", "float64"):
            check(
                lambda m, i=index, k=kind: put(m, m.tensor([[2, 0]]).to(getattr(m, k)), i),
                words=False,
            )


def test_ties_of_extremes_are_shared_with_self() -> None:
    def slopes(m: Any, name: str) -> Any:
        x, s = leaf(m, 2), leaf(m, 1)
        made = getattr(x, name)(0, m.tensor([0]), s, "amax", include_self=False)
        made.sum().backward()
        return x.grad, s.grad

    check(lambda m: slopes(m, "index_reduce"))
    check(lambda m: slopes(m, "scatter_reduce"))


def test_views_are_read_out_of_a_base_that_was_written_to_without_a_history() -> None:
    def seen(m: Any) -> Any:
        x = m.ones(2, 2)
        view = x.t()
        x.requires_grad = True
        before = view.is_leaf
        with m.no_grad():
            x.mul_(2)
        other = x[None, 0]
        with m.no_grad():
            other.mul_(3)
        other.sum().backward()
        return before, view.is_leaf, type(view.grad_fn).__name__, other.grad_fn.name(), x.grad

    check(seen)


def test_gradients_of_one_factor_are_what_came() -> None:
    def twice(m: Any) -> Any:
        x = m.tensor([[1.0], [2.0]], requires_grad=True)
        m.autograd.backward(x.cumprod(1), m.ones(2, 1), create_graph=True)
        return x.grad.requires_grad

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(twice)


@pytest.mark.parametrize("rule", ["SGD", "Adam", "Adagrad", "RMSprop", "Rprop"])
def test_rules_refuse_parameters_that_overlap(rule: str) -> None:
    def step(m: Any) -> Any:
        x = m.ones(1).expand(3).requires_grad_()
        x.grad = m.ones(3)
        getattr(m.optim, rule)([x], lr=0.1).step()

    check(step)


@pytest.mark.parametrize("name", ["squeeze_", "unsqueeze_(0)", "t_"])
def test_traces_refuse_other_layouts_of_leaves(name: str) -> None:
    def run(x: Any) -> Any:
        eval(f"x.{name}" + "()" * ("(" not in name))
        return x

    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        tt.jit.trace(run, (tt.ones(2, 2, requires_grad=True),), check_trace=False)

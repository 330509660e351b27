"""Single calls, many of each function: what they give or refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.outside.alike import What, alike_in_memory, node, same_or_refused, whats

INF, NAN = float("inf"), float("nan")


# -- single functions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what",
    whats(
        lambda m: m.fft.fft(m.tensor(1.0)),
        lambda m: m.fft.fftfreq(3, dtype=m.int64),
        lambda m: m.linspace(2, NAN, 1, dtype=m.int64),
        lambda m: m.linspace(INF, 0, 0, dtype=m.int64),
        lambda m: m.linspace(INF, 0, 3, dtype=m.int64),
        lambda m: m.linspace(2.0, 1, 1, dtype=m.bool),
        lambda m: m.linspace(2.0, 1, 2, dtype=m.bool),
        lambda m: m.logspace(2.0, 1, 0, dtype=m.bool),
        lambda m: m.kaiser_window(2, dtype=m.complex64),
        lambda m: m.hann_window(1, dtype=m.complex64),
        lambda m: m.tril_indices(2, 2, 0, dtype=m.int8),
        lambda m: m.repeat_interleave(m.tensor([1.0, 2]), m.tensor([2])),
        lambda m: m.repeat_interleave(m.tensor([2, 4]), 0, output_size=2),
        lambda m: m.repeat_interleave(m.ones(2)),
        lambda m: m.tile(m.zeros(0), (-1,)),
        lambda m: m.ones(2).tile(-1),
        lambda m: m.zeros(0, 2).repeat(-1, 2),
        lambda m: m.triplet_margin_loss(m.ones(2), m.ones(2), m.ones(2), 0),
        lambda m: m.nn.functional.triplet_margin_loss(m.ones(2), m.ones(2), m.ones(2), 0),
        lambda m: m.nn.functional.mse_loss(m.ones(2), m.ones(2), "mean", 0),
        lambda m: m.svd(m.ones(2, 2, 3), compute_uv=False)[2],
        lambda m: m.take_along_dim(m.zeros(2, 0), m.zeros(2, 0)),
        lambda m: m.native_layer_norm(m.zeros(2, 0), (0,), None, None, 2.0),
        lambda m: m.median(m.zeros(0, dtype=m.bool)),
        lambda m: m.nanmedian(m.tensor([True, False])),
        lambda m: m.nanmedian(m.zeros(0, dtype=m.bfloat16)),
        lambda m: m.ones(24).as_strided((2, 4, 3), (1, 2, 0)).flip(1),
        lambda m: m.group_norm(m.ones(3), 1),
        lambda m: m.group_norm(m.tensor(1.0), 1),
        lambda m: m.nn.functional.group_norm(m.ones(3), 1),
        lambda m: m.instance_norm(m.ones(4), None, None, None, None, True, 0.1, 1e-5, False),
        lambda m: m.linalg.cond(m.zeros(0, 3), 1),
        lambda m: m.linalg.tensorinv(m.ones(1)),
        lambda m: m.linalg.tensorsolve(m.tensor(0.5), m.tensor(0.5), (0,)),
        lambda m: m.cumprod(m.tensor([complex(0.5, -INF), 1 + 0j]), 0),
        lambda m: m.linalg.vector_norm(m.tensor([[0.5], [2.0]]), 1e-5, dim=1),
        lambda m: m.special.zeta(m.tensor([1e30, 2.0]).double(), m.tensor([2.0, 1e30]).double()),
        lambda m: m.slice_scatter(m.arange(4)[2:], m.tensor([2, 5]), -1).storage_offset(),
        lambda m: m.linalg.ldl_factor_ex(m.eye(2).requires_grad_())[0].requires_grad,
        lambda m: m.linalg.ldl_factor(m.eye(2).requires_grad_())[0].sum().backward(),
        lambda m: m.linalg.cond(m.eye(2).expand(2, 3, 2, 2).transpose(0, 1)),
        lambda m: m.cummin(m.zeros(1, 0, 2), 3)[0],
        lambda m: m.igamma(m.tensor([1e30, 1e20]), m.tensor([1e30, 1e20])),
        lambda m: m.igammac(m.tensor([1e30, 1e20]), m.tensor([1e30, 1e20])),
        lambda m: m.linalg.pinv(m.ones(2, 2), rtol=m.tensor(1j)),
        lambda m: m.zeros(1, 0, 2).scatter_(2, m.zeros(1, 0, 2, dtype=m.int64), 1 + 2j),
        lambda m: m.std(m.tensor([1e30, 1.0, 2.0]), 0).item() < 1e30,
        lambda m: m.adaptive_avg_pool1d(m.zeros(1, 0, 2), 2),
        lambda m: m.nn.functional.adaptive_avg_pool2d(m.zeros(1, 0, 2, 2), 2),
        lambda m: m.linalg.norm(m.ones(2, 2, 2), dim=(0, 1, 2)),
        lambda m: m.round(m.tensor(3), decimals=2),
        lambda m: m.polygamma(2, m.tensor([1j])),
        lambda m: m.kthvalue(m.tensor([1j, 2]), 1),
        lambda m: m.tensor([1.0, 2]).nanmean(dtype=m.uint8),
        lambda m: m.meshgrid(tensors=(m.ones(2),)),
        lambda m: m.isin(True, m.tensor([1])),
        lambda m: m.linalg.vecdot(m.ones(3), m.ones(3).double()),
        lambda m: m.tensor([[1.0, 2]]).bincount(),
        lambda m: m.gcd_(m.ones(1, 3), m.ones(2, 3).double()),
        lambda m: m.histc(m.tensor([3], dtype=m.uint8), min=1),
        lambda m: m.grid_sampler(m.tensor(3.0), m.tensor(3.0), 0, 0, False),
        lambda m: m.addcmul(m.tensor([1]), m.tensor([1]), m.tensor([1]), value=NAN),
    ),
)
def test_results_and_refusals(what: Any) -> None:
    alike_in_memory(what)


# -- types and numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.div(-1, 4).tolist(),
        lambda m: str(m.result_type(scalar=2.5, tensor=m.ones(1).half())),
        lambda m: m.fft.rfftfreq(-1).tolist(),
        lambda m: m.fft.fftfreq(-1).tolist(),
        lambda m: m.zeros(0, dtype=m.uint8).floor_divide_(0).tolist(),
        lambda m: m.cumulative_trapezoid(m.zeros(0)).tolist(),
        lambda m: str(m.trapezoid(m.tensor([-float("inf"), 2.0, 1e30]), dx=0.1)),
        lambda m: str(m.polygamma(2, m.tensor([float("inf"), -float("inf"), 1e20]))),
        lambda m: m.nn.functional.elu_(m.tensor([-1.0, 1]), 2.0, 2).tolist(),
        lambda m: m.nn.functional.hardtanh_(m.tensor([-3.0, 0, 3]), 2.0).tolist(),
        lambda m: m.from_dlpack(m.ones(3, dtype=m.bfloat16)[::2]).tolist(),
        lambda m: m.zeros(0).is_set_to(m.zeros(0)),
        lambda m: m.prod(m.tensor([1.6, 2.7]), 0, out=m.zeros((), dtype=m.int32)).tolist(),
        lambda m: m.sum(m.tensor([1.6, 2.7]), 0, out=m.zeros((), dtype=m.int32)).tolist(),
        lambda m: m.zeros(9, 2).fill_diagonal_(1, wrap=True).tolist(),
        lambda m: m.linalg.cholesky_ex(m.tensor([[1.0, 2], [2, 1]])).L.tolist(),
        lambda m: node(
            m.nn.functional.cross_entropy(m.zeros(0, 3, requires_grad=True), m.zeros(0, 3))
        ),
        lambda m: m.nn.functional.avg_pool2d(m.ones(2), 2),
        lambda m: m.nn.functional.unfold(m.ones(2), 2),
    ],
)
def test_expressions(call: What) -> None:
    same_or_refused(call)

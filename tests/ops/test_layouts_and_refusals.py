"""Calls in which fresh random programs differed from PyTorch: shapes, types, strides, elements, errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.oracle import attempt, dtype_name, torch, tt

P = "torch.ones(2, 2, 3, 2).permute(3, 0, 1, 2)"
Q = "torch.ones(2, 3, 2).permute(2, 1, 0)"
LOSS = "F.{}(torch.ones(2, 3, 4).permute(1, 2, 0), torch.ones(3, 4, 2), reduction='none')"
LAYOUTS = [
    f"{P}[::2, ::2, torch.tensor([0, 0, 0])]", f"{P}[::2, torch.tensor([0, 0, 0])]",
    f"{P}[:, 1, torch.tensor([0, 0])]", f"{Q}[1:2, [2, 2], :]", f"{Q}[:, [2, 2], 1:2]",
    f"{Q}[:, [[2, 2], [0, 1]], 1:2]", f"{Q}[:1, [[2, 2], [0, 1]]]", f"{Q}[[0, 1], :1, :1]",
    f"{Q}[[0, 1], :, [0, 1]]",
    "2.0 ** torch.ones(3, 2).T", "torch.pow(1, torch.ones(3, 2).T)", "torch.ones(3, 2).T ** 2",
    "torch.pow(torch.tensor(2.), torch.ones(3, 2).T)", LOSS.format("mse_loss"),
    LOSS.format("smooth_l1_loss"), LOSS.format("l1_loss"),
    "torch.ones(2, 3, 4).permute(1, 2, 0).isclose(torch.ones(3, 4, 2))",
    "torch.ones(3, 4, 2).isclose(torch.ones(2, 3, 4).permute(1, 2, 0))",
    "F.glu(torch.ones(1, 1, 1, 1).expand(1, 2, 3, 2))", "F.glu(torch.ones(2, 3, 4).permute(1, 2, 0))",
    "F.glu(torch.ones(1, 1, 1, 1, dtype=torch.float16).expand(1, 2, 3, 2))",
    "torch.ones(3, 2).T.cdouble(memory_format=torch.contiguous_format)",
    "torch.ones(3, 2).T.float(memory_format=torch.contiguous_format)",
    "torch.ones(3, 2).T.to(torch.int64, memory_format=torch.contiguous_format)",
    "torch.ones(3, 2).T.to(torch.int64, memory_format=torch.preserve_format)",
]  # fmt: skip
VALUES = [
    "x.to(1, True)", "x.to(1, False)", "x.to(True)", "x.to(2.0)", "x.to(2.0, True)", "x.to(2j, True)",
    "x.copy_(x2=2)", "x.double().copy_(1e-3)", "x.cdouble().copy_(1e-3 + 1e-7j)", "x.copy_(True)",
    "x.long().copy_(2 ** 40)", "x.long().fill_(torch.tensor(nan))", "x.int().fill_(torch.tensor(inf))",
    "x.to(torch.int8).fill_(torch.tensor(300.))", "x.byte().fill_(torch.tensor(-1))",
    "x.long().fill_(torch.tensor(1j))", "x.long().fill_(nan)", "x.to(torch.int8).fill_(300)",
    "F.adaptive_avg_pool2d(torch.zeros(1, 0, 2), 1)", "F.adaptive_avg_pool2d(torch.zeros(1, 0, 2), 2)",
    "F.adaptive_avg_pool2d(torch.zeros(1, 2, 0, 2), 1)", "F.adaptive_avg_pool3d(torch.zeros(1, 0, 2, 2), 1)",
    "F.adaptive_avg_pool1d(torch.zeros(1, 0), 1)", "F.pad(torch.ones(1, 1, 3, 3), (2, 1), 'r', 2.0)",
    "F.pad(torch.ones(1, 1, 3, 3), (1, 1), 'reflect', 2.0)",
    "torch.trapezoid(torch.arange(3.), torch.arange(18.).reshape(2, 3, 3) ** 2)",
    "torch.trapezoid(torch.arange(12.).reshape(2, 2, 3) ** 2, torch.arange(6.).reshape(2, 3), dim=1)",
    "torch.trapezoid(torch.arange(3.), torch.arange(12.).reshape(2, 2, 3) ** 2)",
    "torch.trapz(x, torch.tensor(1.5))", "torch.trapz(torch.ones(2, 3), torch.tensor(1.5))",
    "torch.trapezoid(torch.ones(1, 2), torch.tensor(1.5), dim=0)",
    "torch.cumulative_trapezoid(x, torch.tensor(1.5))", "torch.trapezoid(torch.tensor(1.), x)",
    "torch.vander(w, 1)", "torch.vander(w, 0)", "torch.vander(torch.tensor([True, False]), 1)",
    "torch.nextafter(torch.tensor([.5, 1e30, -.25]).half(), torch.tensor([-1.4]).half())",
    "torch.nextafter(torch.tensor([.5, 1e30, -.25]).bfloat16(), torch.tensor([-1.4]).bfloat16())",
    "torch.tensor([100000, 2049]) + torch.tensor([.5, 1.], dtype=torch.float16)",
    "torch.tensor([-100000, 2049]) ** torch.tensor([-.5, 1.], dtype=torch.float16)",
    "torch.autograd.grad(torch.tensor([-2., 3.], requires_grad=True).arccosh().abs().sum(), w,"
    " allow_unused=True)[0]",
    "torch.embedding_renorm_(torch.ones(2, 2, requires_grad=True), torch.tensor([0]), 0.1, 2.)",
    "torch.embedding_renorm_(torch.ones(2, 2, requires_grad=True)[:1], torch.tensor([0]), 0.1, 2.)",
    "torch.embedding_renorm_(torch.ones(2, 2, requires_grad=True) * 1, torch.tensor([0]), 0.1, 2.)",
    "torch.tensor(3.).unfold(0, -1, 1)", "torch.tensor(3.).unfold(0, 2, 1)",
    "torch.mvlgamma(torch.tensor([True]), 1)", "torch.reshape(x)", "x.reshape()",
    "F.nll_loss(torch.ones(3, dtype=torch.uint8), torch.tensor(0))",
    "F.nll_loss(torch.ones(2, 3, dtype=torch.int64), torch.tensor([0, 0]))",
    "torch.grid_sampler(torch.ones(1, 1, 2, 2).long(), torch.ones(1, 1, 2, 2).long(), 0, 1, False)",
    "torch.nn.Upsample(scale_factor=2)(torch.tensor(1.))", "torch.nn.Upsample(scale_factor=2)(x)",
    "torch.nn.Upsample(scale_factor=2, mode='bilinear')(torch.tensor(1.))",
    "torch.histc(x, out=torch.ones(3).requires_grad_())", "torch.histc(x, out=torch.ones(100))",
    "torch.zeros(0)[::2].view(torch.uint8)", "torch.zeros(0)[::2].view(torch.float64)",
    "torch.zeros(2, 0).view(torch.float64)", "torch.zeros(0, dtype=torch.int8)[0:].view(torch.int32)",
    "torch.tensor([5, -2], dtype=torch.int8)[1:][:0].view(torch.int32)",
    "torch.median(x, -1, out=(x.clone(), x.clone()))", "torch.max(x, -1, out=(x.clone(), x.clone()))",
    "torch.sort(x, -1, out=(x.clone(), x.clone()))", "torch.topk(x, 1, out=(x.clone(), x.clone()))",
    "torch.le(m, 3, out=m.T)", "torch.le(torch.ones(2, 3), 3, out=torch.ones(3, 1))",
    "torch.masked_scatter(x.long(), x > 0, x)",
    "F.embedding_bag(torch.tensor([0, 1, 0]), torch.tensor([[2., -inf], [1., -inf]]), "
    "torch.tensor([0, 2, 2]), mode='max')",
    *(
        f"type(F.embedding_bag(torch.tensor([[0, 1]]), w[:, None], mode='{mode}').grad_fn).__name__"
        for mode in ("sum", "mean", "max")
    ),
    "torch.linalg.cholesky(-torch.eye(2), out=torch.eye(2, requires_grad=True))",
    "torch.cumsum(torch.tensor([-2.716, -2.716]), 0, out=torch.zeros(2, dtype=torch.int16))",
]  # fmt: skip


def told(T: Any, x: Any) -> Any:
    """What can be seen of an answer."""
    if isinstance(x, (tuple, list)):
        return [told(T, v) for v in x]
    if not isinstance(x, T.Tensor):
        return x
    return dtype_name(x.dtype), tuple(x.shape), x.stride(), x.requires_grad, repr(x.tolist())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", LAYOUTS + VALUES)
def test_same_answers(text: str) -> None:
    def ask(T: Any) -> Any:
        names = {
            "torch": T, "F": T.nn.functional, "inf": math.inf, "nan": math.nan, "x": T.ones(2),
            "m": T.ones(3, 1), "w": T.ones(3, requires_grad=True),
        }  # fmt: skip
        return told(T, eval(text, names))

    want, refused = attempt(ask, torch)
    got, failed = attempt(ask, tt)
    assert type(failed).__name__ == type(refused).__name__, (failed, refused)
    assert got == want


def test_parts_by_sizes_are_named_so() -> None:
    def names(T: Any) -> list[str]:
        x, none = T.ones(4, 2, requires_grad=True) * 1, T.ones(0, 2, requires_grad=True) * 1
        parts = T.split(x, [2, 2]), T.split_with_sizes(x, (1, 3)), none.chunk(2), T.split(x, 2)
        return [type(p[0].grad_fn).__name__ for p in parts]

    assert names(tt) == names(torch)


def test_masks_take_one_value_of_any_shape() -> None:
    for T in (torch, tt):
        x = T.tensor([[1, -3], [3, 3]])
        x[x > 0] = T.tensor([[2.5]], dtype=T.float64, requires_grad=True)
        assert x.tolist() == [[2, -3], [2, 2]] and x.requires_grad


def test_a_gradient_lies_as_what_was_written_to() -> None:
    def steps(T: Any) -> Any:
        x = T.ones(2, 3, 2, 2).permute(2, 1, 3, 0).requires_grad_()
        y = x.clone()
        y[0, :, T.tensor([0])] = 2
        (g,) = T.autograd.grad(y, [x], T.ones_like(y))
        return g.stride(), g.tolist()

    assert steps(tt) == steps(torch)


def test_names_of_nodes_of_writes() -> None:
    for T in (torch, tt):
        y = T.empty(1).copy_(T.ones(1, requires_grad=True))
        assert y.grad_fn.name() == "torch::autograd::CopyBackwards"


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ["relu6", "hardtanh", "relu", "silu", "hardswish", "elu"])
def test_activations_of_expanded_tensors_lie_in_rows(name: str, kind: str) -> None:
    made = []
    for m in (torch, tt):
        x = m.ones(1, 16, dtype=getattr(m, kind)).expand(17, 16)
        made.append(getattr(m.nn.functional, name)(x).stride())
    assert made[1] == made[0]

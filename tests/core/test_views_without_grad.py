"""Views that are made while no graph is recorded: quick, and guarded as PyTorch guards them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import SELFTEST, torch, tt

VIEWS: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: x.view(2, 12),
    "reshape": lambda x: x.reshape(24),
    "transpose": lambda x: x.transpose(0, 1),
    "t": lambda x: x[0].t(),
    "T": lambda x: x[0].T,
    "permute": lambda x: x.permute(2, 0, 1),
    "expand": lambda x: x[:, :1].expand(2, 5, 4),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "none": lambda x: x[None],
    "select": lambda x: x[1],
    "slice": lambda x: x[1:],
    "tuple": lambda x: x[:, 1:, 2],
    "ellipsis": lambda x: x[..., 1],
    "narrow": lambda x: x.narrow(2, 1, 2),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "bytes": lambda x: x.view(x.int().dtype),
    "of a view": lambda x: x.transpose(0, 2)[1:].unsqueeze(0),
}
MODES = ("no_grad", "inference_mode")


def outcome(f: Callable[[], Any]) -> Any:
    try:
        return f()
    except RuntimeError as error:
        return str(error).split("(function")[0]


def seen(m: Any, view: Callable[[Any], Any], mode: str, leaf: bool, source: bool) -> list[Any]:
    """What a program sees of a view and of its base, before and after writes to both."""
    base = (
        m.arange(24.0).reshape(2, 3, 4).requires_grad_()
        if leaf
        else m.arange(24.0).reshape(2, 3, 4)
    )
    x = base * 1 if source else base
    with getattr(m, mode)():
        v = view(x)
        made = [v.requires_grad, v.is_leaf, v._is_view(), v.is_inference(), tuple(v.stride())]
        made += [v.storage_offset(), v.shape]
        if not leaf or source:
            made.append(outcome(lambda: v.add_(0).sum().item()))
    made.append(outcome(lambda: v.mul_(2).sum().item()))
    made.append(outcome(lambda: (v * 2).requires_grad))
    made.append(outcome(lambda: view(v).requires_grad if v.shape == x.shape else None))
    made.append(outcome(lambda: x.add_(1).sum().item()))
    made += [v.requires_grad, x._version, outcome(lambda: v._version), x.tolist()]
    made.append(outcome(lambda: type(v.grad_fn).__name__))
    return made


@pytest.mark.skipif(SELFTEST, reason="compares toytorch with PyTorch")
@pytest.mark.parametrize("source", [False, True], ids=["leaf", "result"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", VIEWS)
def test_as_pytorch(name: str, mode: str, grad: bool, source: bool) -> None:
    if (name, mode) == ("bytes", "inference_mode"):
        pytest.skip("PyTorch writes to such a view before it refuses to: see the next test")
    ours, theirs = (seen(m, VIEWS[name], mode, grad, source) for m in (tt, torch))
    assert ours == theirs


def test_bytes_read_anew_in_inference_mode() -> None:
    """The view is an inference tensor, though what it shows is none."""
    for m in (tt, torch):
        x = m.arange(4.0)
        with m.inference_mode():
            v = x.view(m.int32)
        assert v.is_inference()
        assert not x.is_inference()
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            v.mul_(2)


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 2, 3, 4), (2, 2, 4, 3)),
        ((4, 3, 2), (4, 2, 5)),
        ((1, 3, 4), (6, 4, 2)),
        ((2, 0, 4), (2, 4, 5)),
    ],
    ids=str,
)
def test_products_are_the_same_with_and_without_a_graph(shapes: Any) -> None:
    """To the last bit, and laid out alike: also with factors that are transposed or expanded."""
    for turned in (False, True):
        a = tt.randn(shapes[0], requires_grad=True)
        b = tt.randn(shapes[1])
        if turned:
            b = tt.randn(*shapes[1][:-2], shapes[1][-1], shapes[1][-2]).transpose(-1, -2)
        recorded = a @ b
        with tt.no_grad():
            alone = a @ b
        plain = a.detach() @ b
        for other in (alone, plain):
            assert other.equal(recorded.detach())
            assert other.stride() == recorded.stride()
            assert not other.requires_grad


def test_layers_are_the_same_with_and_without_a_graph() -> None:
    layer = tt.nn.Linear(12, 7)
    for shape in ((3, 5, 12), (1, 1, 12), (2, 3, 5, 12), (0, 3, 12)):
        x = tt.randn(shape)
        recorded = layer(x)
        with tt.no_grad():
            alone = layer(x)
        assert alone.equal(recorded.detach())
        assert alone.stride() == recorded.stride()
        assert recorded.requires_grad
        assert not alone.requires_grad

"""Views of inference tensors are inference tensors, and may be written to inside the mode."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, Side, attempt, told

SIDES = [pytest.param(ORACLE, id="PyTorch"), pytest.param(SUBJECT, id="toytorch")]
VIEWS = [
    lambda t: t[0],
    lambda t: t.t(),
    lambda t: t.view(4),
    lambda t: t.diagonal(),
    lambda t: t.as_strided((2,), (3,), 0),
    lambda t: t.detach(),
    lambda t: t[:, None],
    lambda t: t.expand(3, 2, 2)[0],
    lambda t: t.unbind(0)[1],
    lambda t: t.reshape(4),
]


@pytest.mark.parametrize("view", VIEWS)
def test_writes_through_views(view: Any) -> None:
    found = []
    for side in (ORACLE, SUBJECT):
        torch = side.root
        with torch.inference_mode():
            x = torch.eye(2) @ torch.arange(4.0).reshape(2, 2)
            part = view(x)
            part.mul_(2).add_(1)
            x.fill_diagonal_(7)
        assert part.is_inference()
        found.append((x.tolist(), part.tolist(), told(attempt(part.add_, 1)[1])))
    assert found[1] == found[0]
    assert "Inplace update to inference tensor" in found[1][2]


@pytest.mark.parametrize("side", SIDES)
def test_a_view_of_an_ordinary_tensor_stays_ordinary(side: Side) -> None:
    torch = side.root
    x = torch.ones(3)
    with torch.inference_mode():
        part = x[:2]
        part.add_(1)
    assert not part.is_inference() and x.tolist() == [2, 2, 1] and x._version == 1


@pytest.mark.parametrize("side", SIDES)
def test_a_view_cannot_be_saved(side: Side) -> None:
    torch = side.root
    with torch.inference_mode():
        part = torch.ones(2, 2)[0]
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        torch.ones(2, requires_grad=True) * part


@pytest.mark.parametrize("side", SIDES)
def test_functions_of_programs_show_where_they_come_from(side: Side) -> None:
    torch = side.root

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = torch.ones(1, requires_grad=True)
    shown = repr(Twice.apply(x).grad_fn)
    assert shown.startswith("<torch.autograd.function.TwiceBackward object at 0x")
    assert repr((x * 2).grad_fn).startswith("<MulBackward0 object at 0x")

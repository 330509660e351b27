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


def written_views(torch: Any) -> dict[str, Any]:
    """Programs that make a view in one mode and write to it, or to its base, in another."""

    def base() -> Any:
        return torch.ones(2, 2, requires_grad=True).clone()

    def in_mode(mode: Any, write: str) -> Any:
        x = base()
        with mode():
            v = x.view(-1)
        if write == "view":
            v.add_(1)
        elif write == "view of the view":
            v.view(2, 2).view(-1).add_(1)
        else:
            x.add_(1)
        return v.grad_fn

    def of_several(write: str) -> Any:
        x = base()
        v = x.unbind()[0]
        (v.view(2, 1) if write == "view" else x).add_(1)
        return v.grad_fn

    def inference() -> Any:
        with torch.inference_mode():
            x = torch.ones(2, requires_grad=True)
            inside = x.view(-1).requires_grad, (x * 2).requires_grad
            x.resize_(1, 2)
        return inside, x.view(-1).requires_grad, x.is_inference()

    def into_inference() -> Any:
        with torch.inference_mode():
            x = torch.ones(2)
        return torch.add(torch.ones(2), 1, out=x)

    kinds = {"no_grad": torch.no_grad, "inference": torch.inference_mode}
    made: dict[str, Any] = {
        f"{kind}, {write}": lambda m=mode, w=write: in_mode(m, w)
        for kind, mode in kinds.items()
        for write in ("view", "view of the view", "base")
    }
    made |= {f"several, {w}": lambda w=w: of_several(w) for w in ("view", "base")}
    return made | {"inference": inference, "out": into_inference}


@pytest.mark.parametrize("name", written_views(SUBJECT.root))
def test_words_of_refusals(name: str) -> None:
    found = []
    for side in (ORACLE, SUBJECT):
        try:
            found.append(written_views(side.root)[name]())
        except RuntimeError as error:
            found.append(str(error))
    assert found[1] == found[0]


def test_modes_around_generators() -> None:
    """What is thrown into a decorated generator arrives in it, under the mode."""

    def seen(torch: Any) -> list[Any]:
        log: list[Any] = []

        @torch.no_grad()
        def stream() -> Any:
            try:
                for k in range(5):
                    try:
                        log.append((yield k, torch.is_grad_enabled()))
                    except ValueError:
                        log.append(("caught", torch.is_grad_enabled()))
            finally:
                log.append(("closed", torch.is_grad_enabled()))

        s = stream()
        log.append(next(s))
        log.append(s.send("first"))
        log.append(s.throw(ValueError))
        log.append(torch.is_grad_enabled())
        s.close()
        try:
            t = stream()
            next(t)
            t.throw(KeyError)
        except KeyError:
            log.append("out")
        return log

    assert seen(SUBJECT.root) == seen(ORACLE.root)

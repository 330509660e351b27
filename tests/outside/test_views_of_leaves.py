"""Views of a leaf that is a view itself, of a base that wants no gradient: after a write to their memory
PyTorch reads them out of that base, and no gradient arrives at the leaf. And views of nothing, of
conjugates, and of what was made in inference mode."""

from __future__ import annotations

import pytest

from tests.outside.running import Program
from tests.outside.search import first_difference

pytestmark = pytest.mark.filterwarnings("ignore")

LEAF = "x = torch.tensor([1.0, 2.0, 3.0, 4.0])[:3].requires_grad_()"
PLAIN = "x = torch.tensor([1.0, 2.0, 3.0]).requires_grad_()"
MADE = (
    "y = x.view(3)",
    "y = x[:2]",
    "y = x * 2",
    "y = x.unsqueeze(0)[:, 1:]",
    "y = x.unfold(0, 1, 2)",
)
WRITTEN = (
    "x.detach().mul_(2)",
    "x.data.mul_(2)",
    "with torch.no_grad():\n    x.mul_(2)",
    "x.detach()[:0] = 1",
    "z = x.detach().t().clamp_(0)",
)


@pytest.mark.parametrize("leaf", [LEAF, PLAIN])
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("written", WRITTEN)
def test_gradients_after_a_write(leaf: str, made: str, written: str) -> None:
    end = ("y.sum().backward()", "w = (x.view(-1) * 3).sum()", "w.backward()")
    assert first_difference(Program(0, (leaf, made, written, *end))) is None


@pytest.mark.parametrize("cut", ["y.detach_()", "y.requires_grad_(False)"])
@pytest.mark.parametrize("write", ["y.mul_(3)", "y[0] = 1", "y.detach().zero_()", "y.data.mul_(2)"])
@pytest.mark.parametrize("view", ["y[:2]", "y.view(1, 3)[0]", "y.unbind()[0]"])
def test_views_of_what_wants_no_gradient_any_more(cut: str, write: str, view: str) -> None:
    made = PLAIN.replace("x", "y") if "False" in cut else f"{PLAIN}\ny = x * 2"
    end = ("n = type(z.grad_fn).__name__", "w = z * 2", "w.sum().backward()")
    program = (made, f"z = {view}", "z.retain_grad()", cut, write, *end)
    assert first_difference(Program(0, program)) is None


@pytest.mark.parametrize(
    "line",
    [
        "y = x.t_()", "y = x.unsqueeze_(0)", "y = x.squeeze_(0)", "y = x.transpose_(0, 1)",
        "y = x.swapaxes_(0, 1)", "y = x.as_strided_((2,), (1,))", "y = x.add_(1)", "y = x.t_(1)",
    ],
)  # fmt: skip
def test_layouts_of_what_inference_made(line: str) -> None:
    head = "with torch.inference_mode():\n    x = torch.ones((1, 3))"
    assert first_difference(Program(0, (head, line))) is None


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 2), (3, 2)])
@pytest.mark.parametrize("offset", [-4, -1, 0, 1, 2, 5])
def test_diagonals_of_nothing(shape: tuple[int, ...], offset: int) -> None:
    lines = (
        f"x = torch.zeros({shape})",
        f"y = x.diagonal({offset})",
        "z = y.storage_offset(), y.stride()",
    )
    assert first_difference(Program(0, lines)) is None


@pytest.mark.parametrize("way", ["c.data", "c.detach()", "c[:1]", "c.data[1:]", "c.view(-1).data"])
def test_writes_through_conjugates(way: str) -> None:
    lines = ("x = torch.tensor([1 + 2j, 3 - 1j])", "c = x.conj()", f"{way}.mul_(2)", "x.add_(1)")
    assert first_difference(Program(0, (*lines, "x[torch.tensor([0])] = c[:1]"))) is None


MADE_BY = ("squeeze(0)", "squeeze()", "unsqueeze(0)", "view(-1)", "squeeze((0,))")


@pytest.mark.parametrize("way", MADE_BY)
def test_who_made_a_view(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.outside import compare

    monkeypatch.setattr(compare, "MESSAGES_COMPARED", True)
    lines = ("x = torch.ones((1, 3), requires_grad=True)", f"y = x.split(1)[0].{way}", "y.mul_(2)")
    assert first_difference(Program(0, lines)) is None


NUMBERS = ("x % 2", "x.fmod(2)", "x.lerp(x.detach(), 0.5)", "x * 2", "x / 2", "2 - x", "x.pow(2)", "x.pow(1)",
           "x.clamp(max=3)", "x % x.detach()", "x.lerp(x.detach(), x.detach())")  # fmt: skip


@pytest.mark.parametrize("made", NUMBERS)
@pytest.mark.parametrize("leaf", [PLAIN, "x = torch.ones(6)[1::2].requires_grad_()"])
def test_what_a_second_pass_finds(made: str, leaf: str) -> None:
    lines = (leaf, f"y = {made}", "y.sum().backward()", "y.sum().backward()")
    assert first_difference(Program(0, lines)) is None

"""Named tensors. PyTorch had them from 1.3 to 2.8; its documentation is the reference here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import toytorch as tt


def a() -> Any:
    return tt.arange(6.0).view(2, 3).refine_names("N", "C")


RESULTS: list[tuple[str, Callable[[], Any], tuple[Any, ...]]] = [
    ("factory", lambda: tt.zeros(1, 2, names=("N", None)), ("N", None)),
    ("tensor", lambda: tt.tensor([1.0], names=("N",)), ("N",)),
    ("rand", lambda: tt.rand(1, 2, names=("N", "C")), ("N", "C")),
    ("unary", lambda: a().exp(), ("N", "C")),
    ("with a number", lambda: 2 * a() + 1, ("N", "C")),
    ("broadcast", lambda: a() + tt.ones(3), ("N", "C")),
    ("unified", lambda: tt.ones(2, 3, names=("N", None)) + tt.ones(3, names=("C",)), ("N", "C")),
    ("compare", lambda: a() > 1, ("N", "C")),
    ("where", lambda: tt.where(a() > 1, a(), a()), ("N", "C")),
    ("sum by name", lambda: a().sum("C"), ("N",)),
    ("sum by names", lambda: a().sum(("N", "C")), ()),
    ("sum of all", lambda: a().sum(), ()),
    ("keepdim", lambda: a().mean("C", keepdim=True), ("N", "C")),
    ("max", lambda: a().max("N")[1], ("C",)),
    ("std", lambda: a().std("C"), ("N",)),
    ("norm", lambda: a().norm(dim="C"), ("N",)),
    ("softmax", lambda: a().softmax("C"), ("N", "C")),
    ("cumsum", lambda: a().cumsum("N"), ("N", "C")),
    ("sort", lambda: a().sort("C")[0], ("N", "C")),
    ("transpose", lambda: a().transpose("N", "C"), ("C", "N")),
    ("t", lambda: a().t(), ("C", "N")),
    ("permute", lambda: a().permute(1, 0), ("C", "N")),
    ("select", lambda: a().select("N", 0), ("C",)),
    ("index", lambda: a()[0], ("C",)),
    ("slice", lambda: a()[:, 1:], ("N", "C")),
    ("new dimension", lambda: a()[None], (None, "N", "C")),
    ("unbind", lambda: a().unbind("N")[0], ("C",)),
    ("squeeze", lambda: tt.ones(1, 3, names=("N", "C")).squeeze("N"), ("C",)),
    ("expand", lambda: a().expand(4, 2, 3), (None, "N", "C")),
    ("flatten", lambda: a().flatten(["N", "C"], "F"), ("F",)),
    ("unflatten", lambda: a().unflatten("C", (("X", 3), ("Y", 1))), ("N", "X", "Y")),
    ("mm", lambda: a().mm(tt.ones(3, 4, names=("C", "K"))), ("N", "K")),
    ("mv", lambda: a().mv(tt.ones(3)), ("N",)),
    ("bmm", lambda: tt.ones(2, 3, 4, names=("B", "N", "C")).bmm(
        tt.ones(2, 4, 3, names=("B", "C", "M"))), ("B", "N", "M")),
    ("linear", lambda: tt.nn.functional.linear(a(), tt.ones(4, 3)), ("N", None)),
    ("cat", lambda: tt.cat([a(), a()], "N"), ("N", "C")),
    ("detach", lambda: a().detach(), ("N", "C")),
    ("to", lambda: a().double(), ("N", "C")),
    ("in place", lambda: tt.ones(3).add_(a()[0]), ("C",)),
    ("rename", lambda: a().rename("X", ...), ("X", "C")),
    ("rename one", lambda: a().rename(C="channels"), ("N", "channels")),
    ("rename to none", lambda: a().rename(None), (None, None)),
    ("refine", lambda: tt.ones(2, 3, 4).refine_names(..., "C"), (None, None, "C")),
    ("align_to", lambda: a().align_to("C", "W", "N"), ("C", "W", "N")),
    ("align_to rest", lambda: a().align_to("C", ...), ("C", "N")),
    ("align_as", lambda: a().align_as(tt.ones(1, 1, names=("C", "N"))), ("C", "N")),
]  # fmt: skip


@pytest.mark.parametrize(("make", "names"), [r[1:] for r in RESULTS], ids=[r[0] for r in RESULTS])
def test_names_travel(make: Callable[[], Any], names: tuple[Any, ...]) -> None:
    made = make()
    assert made.names == names
    assert len(names) == made.ndim


def test_values_are_those_without_names() -> None:
    x = a()
    plain = x.rename(None)
    assert tt.equal(x.sum("C").rename(None), plain.sum(1))
    assert tt.equal(x.align_to("C", "N").rename(None), plain.t())
    assert tt.equal(x.softmax("N").rename(None), plain.softmax(0))
    assert x.size("C") == 3
    assert x.rename(None).data_ptr() == x.data_ptr(), "rename is a view"


WRONG: list[tuple[str, Callable[[], Any], str]] = [
    ("broadcast", lambda: a() + a().t()[:, :1], "do not match"),
    ("misaligned", lambda: a() + tt.ones(2, 1, names=("C", None)), "different position"),
    ("no such name", lambda: a().sum("X"), r"Name 'X' not found in Tensor\['N', 'C'\]"),
    ("twice", lambda: tt.ones(2, 2, names=("N", "N")), "duplicate names"),
    ("too few", lambda: tt.ones(2, 2, names=("N",)), "do not match"),
    ("no identifier", lambda: a().rename("1a", "b"), "valid identifier"),
    ("refine", lambda: a().refine_names("C", "N"), "'N' is different from 'C' at index 0"),
    ("rename", lambda: a().rename(Q="B"), "does not exist"),
    ("align", lambda: a().align_to("C"), "fewer dims"),
    ("align unnamed", lambda: tt.ones(2, 3, names=("N", None)).align_to("N"), "must be named"),
    ("product", lambda: a() @ a().t(), "duplicate names"),
    ("unsupported", lambda: a().view(6), "not yet supported with named tensors"),
    ("in place", lambda: a().add_(tt.ones(3, names=("W",))), "do not match"),
]


@pytest.mark.parametrize(("call", "text"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_clashes(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        call()


def test_printing() -> None:
    assert repr(tt.zeros(1, 1, names=("N", None))) == "tensor([[0.]], names=('N', None))"


def test_gradients_have_no_names() -> None:
    x = tt.ones(2, 3, requires_grad=True)
    named = x.refine_names("N", "C")
    loss = (named * tt.arange(3.0)).softmax("C").sum("N").exp().sum()
    loss.backward()
    assert x.grad.names == (None, None)
    assert x.grad.shape == x.shape

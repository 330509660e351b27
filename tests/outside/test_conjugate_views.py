"""Conjugates are views: they stay in step with what is written to either."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import torch, tt
from tests.outside.alike import alike

pytestmark = pytest.mark.filterwarnings("ignore")

LYING: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x[:6].reshape(2, 3).clone(),
    "columns": lambda x: x[:6].reshape(3, 2).clone().t(),
    "gaps": lambda x: x.reshape(2, 6)[:, ::2],
    "part": lambda x: x[2:8].reshape(2, 3),
    "large": lambda x: x.repeat(400).reshape(-1, 3)[7:9],
}


SHOWN: dict[str, Callable[[Any], Any]] = {
    "conj": lambda x: x.conj(),
    "H": lambda x: x.H,
    "adjoint": lambda x: x.adjoint(),
    "twice": lambda x: x.conj().conj(),
    "a row of it": lambda x: x.conj()[1],
    "of a row": lambda x: x[1].conj(),
    "imag": lambda x: x.conj().imag,
    "real": lambda x: x.conj().real,
    "resolved": lambda x: x.conj().resolve_conj(),
    "detached": lambda x: x.detach().conj(),
    "of one of several": lambda x: x.unbind(0)[0].conj(),
}


WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "nothing": lambda m, x, v: None,
    "to the source": lambda m, x, v: x.mul_(2j),
    "to the view": lambda m, x, v: v.mul_(2),
    "to a part": lambda m, x, v: x.__setitem__((0, slice(0, 2)), 3),
    "to a part of the view": lambda m, x, v: v.__setitem__(0, 5),
    "out=": lambda m, x, v: m.neg(x.clone(), out=x),
    "out= the view": lambda m, x, v: m.neg(v.clone(), out=v),
    "to data": lambda m, x, v: x.data.mul_(3),
    "to what was detached": lambda m, x, v: x.detach().mul_(3),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("show", SHOWN)
def test_conjugates_stay_in_step(show: str, write: str) -> None:
    for lie, wanted in itertools.product(LYING, (False, True)):

        def what(m: Any, lie: str = lie, wanted: bool = wanted) -> Any:
            x = LYING[lie](m.arange(12).to(m.complex64) * (1 + 2j))
            leaf = x.detach().clone().requires_grad_() if wanted else None
            x = leaf * 1 if leaf is not None else x
            view, other = SHOWN[show](x), x.conj()
            WRITES[write](m, x, view)
            found = [x, view, other, view._version, view._is_view(), view.storage_offset()]
            if leaf is not None:
                count = m.arange(view.numel()).reshape(view.shape)
                total = (view * count).abs().pow(2).sum() + (x * x).abs().sum()
                (total + (other.imag * 3).sum()).backward()
                found.append(leaf.grad)
            return found

        alike(what, lie, wanted)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("show", SHOWN)
def test_conjugates_without_a_graph(show: str, write: str) -> None:
    def what(m: Any, lie: str, leaf: bool) -> Any:
        x = LYING[lie](m.arange(12).to(m.complex64) * (1 + 2j))
        if leaf:
            x = x.clone().requires_grad_()
        with m.no_grad():
            view, other = SHOWN[show](x), x.conj()
            WRITES[write](m, x, view)
            found = [x.detach(), view, other, view._version, view._is_view()]
            found += [view.storage_offset(), view.requires_grad, other.requires_grad, other.grad_fn]
        if leaf:
            (x * x.conj()).real.sum().backward()
            found += [x.grad, x.is_leaf]
        return found

    for lie, leaf in itertools.product(LYING, (False, True)):
        alike(what, lie, leaf)


def test_conjugates_of_memory_that_moves() -> None:
    def what(m: Any) -> Any:
        x = m.arange(3).to(m.complex64) * 1j
        y, z = x.conj(), x.conj()
        del z
        x.mul_(2)
        w = y.clone()
        x.resize_(40).fill_(1)
        del y
        x.add_(1)
        return [w, x[:4], x.conj()[:2].as_strided((2,), (1,), 3)]

    alike(what)


def test_where_the_first_element_of_a_conjugate_is() -> None:
    def told(m: Any) -> Any:
        x = m.arange(12.0).view(3, 4) + 1j
        seen = (
            x.H,
            x[1:].H,
            x.H[1:],
            x.H.narrow(0, 1, 2),
            x.conj()[2, 1:],
            x.H[1:].H,
            x.mH.detach(),
        )
        return [t.data_ptr() - x.data_ptr() for t in seen], [t.storage_offset() for t in seen]

    alike(told)


# -- in compiled and traced functions --------------------------------------------------------------


SEEN: dict[str, Callable[[Any], Any]] = {
    "conj": lambda x: x.conj(),
    "H": lambda x: x.t().H,
    "adjoint": lambda x: x.adjoint(),
    "a part": lambda x: x[::2].conj()[:, 1:],
    "twice": lambda x: x.conj()[1:].conj(),
}
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "through it": lambda x, y: y.mul_(2),
    "an element": lambda x, y: y.__setitem__(0, 5.0),
    "a diagonal": lambda x, y: y.fill_diagonal_(0),
    "under it": lambda x, y: x.add_(1j),
    "of itself": lambda x, y: y.copy_(y * 3),
}


@pytest.mark.parametrize("make", [lambda f, x: tt.compile(f), lambda f, x: tt.jit.trace(f, (x,))])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("seen", SEEN)
def test_writes_reach_what_compiled_functions_see_conjugated(
    seen: str, write: str, make: Any
) -> None:
    def run(x: Any) -> Any:
        y = SEEN[seen](x)
        WRITES[write](x, y)
        return y * 1

    def example(m: Any) -> Any:
        return m.complex(m.arange(9.0).reshape(3, 3), m.arange(9.0).reshape(3, 3).flip(0))

    compiled = make(run, example(tt))
    for _ in range(3):
        x, theirs = example(tt), example(torch)
        made, want = compiled(x), run(theirs)
        assert x.tolist() == theirs.tolist() and made.tolist() == want.tolist()


@pytest.mark.parametrize("shown", SHOWN)
def test_data_of_a_conjugate_given_what_it_conjugates(shown: str) -> None:
    def lies(m: Any) -> Any:
        x = m.view_as_complex(m.arange(24.0).reshape(12, 2))[2:8].reshape(2, 3)
        y = SHOWN[shown](x)
        y.data = x.detach()
        x.mul_(2)
        return y.storage_offset(), y.data_ptr() == x.data_ptr(), y.sum().real.item()

    alike(lies)

"""Functions of the database that write to out=, traced without gradients and run with them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, Side, torch, tt
from tests.outside import signatures
from tests.outside.forms import found

# What out= is, made of an argument that has the result's shape.
PLACES: tuple[Callable[[Any], Any], ...] = (
    lambda o: o[...],
    lambda o: o * 1,
    lambda o: o.reshape(-1)[:0],
    lambda o: o[None],
)
LEFT = {
    "linalg.norm": "of order 0 it has a node that says that there is no derivative",
    "linalg.ldl_solve": "an out= that gets another shape lies in columns, in a trace in rows",
}


def entries() -> list[Any]:
    """Those of the database that take out= and float32."""
    return [
        info
        for info in signatures.database()
        if info.supports_out and torch.float32 in info.dtypes and not info.variant_test_name
        if signatures.where(info).startswith("torch.") and info.name not in LEFT
    ]


Grads = tuple[bool, bool]


def written(side: Side, path: str, at: Any, given: Any, grads: Grads, trace: bool) -> Any:
    """What a call does to its result, to out= and to what this was made of; the class of an error."""
    memo: dict[int, Any] = {}
    x, o, args, kwargs = (side.carry(v, memo) for v in given)

    def run(x: Any, o: Any) -> Any:
        out = at(o)
        return found(side.root, path)(x, *args, out=out, **kwargs), out

    try:
        if trace:
            run = side.root.jit.trace(run, (x.clone(), o.clone()), check_trace=False)
        x, o = (t.clone().requires_grad_() * 1 if g else t.clone() for t, g in zip((x, o), grads))
        return [seen(v) for v in (*run(x, o), o)]
    except Exception as e:
        return type(e).__name__


def seen(x: Any) -> Any:
    elements = x.detach().double().reshape(-1).tolist()
    node = type(x.grad_fn).__name__ == "NotImplemented"
    return tuple(x.shape), x.requires_grad, node, [round(v, 3) for v in elements]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("number", "info"), list(enumerate(entries())), ids=lambda i: getattr(i, "name", "")
)
def test_out_of_traces(number: int, info: Any) -> None:
    torch.manual_seed(0)
    path = signatures.where(info)
    for s in [s for s, _ in zip(info.sample_inputs("cpu", torch.float32), range(3))][-1:]:
        try:
            made = info.op(s.input, *s.args, **s.kwargs)
        except Exception:
            continue
        if not all(isinstance(t, torch.Tensor) and t.numel() < 200 for t in (s.input, made)):
            continue
        given = (s.input.detach(), torch.ones_like(made), list(s.args), s.kwargs)
        for at in (lambda o: o, PLACES[number % len(PLACES)]):
            for grads in ((False, False), (True, False), (False, made.is_floating_point())):
                want = written(ORACLE, path, at, given, grads, False)
                if (
                    written(SUBJECT, path, at, given, grads, False) == want
                ):  # else: other tests' affair
                    assert written(SUBJECT, path, at, given, grads, True) == want, grads


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_constant_out_that_grew_is_saved() -> None:
    for m in (torch, tt):
        grown = m.tensor(())
        traced = m.jit.trace(lambda x, m=m, o=grown: x + m.ones(2, 3, out=o), m.ones(2, 3))
        file = io.BytesIO()
        m.jit.save(traced, file)
        file.seek(0)
        assert m.jit.load(file)(m.ones(2, 3)).tolist() == [[2.0] * 3] * 2
        assert "ones" in str(traced.graph)

"""What functions print of their tensors while a transform runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.outside.alike import same

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")

RUNS: dict[str, Callable[[Any, Any], Any]] = {
    "vmap": lambda t, f: t.func.vmap(f)(t.arange(3.0)),
    "vmap of rows": lambda t, f: t.func.vmap(f)(t.arange(6).reshape(2, 3)),
    "vmap twice": lambda t, f: t.func.vmap(t.func.vmap(f))(t.ones(2, 3)),
    "grad": lambda t, f: t.func.grad(f)(t.tensor(2.0)),
    "grad twice": lambda t, f: t.func.grad(t.func.grad(f))(t.tensor(2.0)),
    "grad of each": lambda t, f: t.func.vmap(t.func.grad(f))(t.arange(2.0)),
    "grad of all": lambda t, f: t.func.grad(lambda x: t.func.vmap(f)(x).sum())(t.arange(2.0)),
    "grad of tracked": lambda t, f: t.func.grad(f)(t.tensor(2.0, requires_grad=True)),
    "value": lambda t, f: t.func.grad_and_value(f)(t.tensor(2.0)),
    "vjp": lambda t, f: t.func.vjp(f, t.arange(2.0))[0],
    "jvp": lambda t, f: t.func.jvp(f, (t.ones(2),), (t.ones(2),)),
    "jacrev": lambda t, f: t.func.jacrev(f)(t.ones(2)),
    "jacfwd": lambda t, f: t.func.jacfwd(f)(t.ones(2)),
    "hessian": lambda t, f: t.func.hessian(f)(t.ones(2)),
}


@pytest.mark.parametrize("name", RUNS)
def test_wrappers(name: str) -> None:
    def said(t: Any) -> Any:
        seen: list[str] = []
        outside = t.tensor(3.0, requires_grad=True)

        def f(x: Any) -> Any:
            y = (x * x).sum()
            seen.extend([repr(x), str(y), repr([x + 1]), repr(outside)])
            if x.is_floating_point():
                seen.append(repr(x * outside))
            return y

        return seen, repr(RUNS[name](t, f)), repr(f(t.ones(2)))

    same(said)

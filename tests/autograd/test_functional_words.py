"""What `autograd.functional` refuses, in strict mode and in any, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt

FUNCTIONS: dict[str, Any] = {
    "detached": lambda a: a.detach(),
    "another": lambda a: a.long().float().requires_grad_().clone(),
    "linear": lambda a: 3 * a,
    "two": lambda a: (a * 2, a.detach()),
    "exp": lambda a: a.exp(),
}


def calls(T: Any, f: Any, strict: bool) -> dict[str, Any]:
    F, x, v = T.autograd.functional, T.tensor([1.0, 2.0, 3.0]), T.tensor([1.0, 0.0, 2.0])
    xs, vs = (x, x + 1), (v, v)

    def total(a: Any, *_: Any) -> Any:
        made = f(a)
        return (made[0] if isinstance(made, tuple) else made).sum()

    def first(a: Any, _: Any) -> Any:
        return f(a)

    us = (v, v) if f is FUNCTIONS["two"] else v
    return {
        "vjp": lambda: F.vjp(f, x, us, strict=strict),
        "jvp": lambda: F.jvp(f, x, v, strict=strict),
        "jacobian": lambda: F.jacobian(f, x, strict=strict),
        "jacobian, graph": lambda: F.jacobian(f, x, strict=strict, create_graph=True),
        "hessian": lambda: F.hessian(total, x, strict=strict),
        "hvp": lambda: F.hvp(total, x, v, strict=strict),
        "vhp": lambda: F.vhp(total, x, v, strict=strict),
        "vjp of two": lambda: F.vjp(first, xs, us, strict=strict),
        "jvp of two": lambda: F.jvp(first, xs, vs, strict=strict),
        "jacobian of two": lambda: F.jacobian(first, xs, strict=strict),
        "hessian of two": lambda: F.hessian(total, xs, strict=strict),
        "hvp of two": lambda: F.hvp(total, xs, vs, strict=strict),
        "vhp of two": lambda: F.vhp(total, xs, vs, strict=strict),
    }


def told(call: Any) -> Any:
    def plain(value: Any) -> Any:
        return [plain(v) for v in value] if isinstance(value, tuple) else value.tolist()

    try:
        return plain(call())
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_strict_mode(function: str, strict: bool) -> None:
    theirs, ours = (calls(T, FUNCTIONS[function], strict) for T in (torch, tt))
    for name, call in ours.items():
        expected = told(theirs[name])
        found = told(call)
        assert (found == expected) if isinstance(expected, str) else close(found, expected), name


def close(a: Any, b: Any) -> bool:
    if isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    return bool(a == pytest.approx(b, rel=1e-5))


def test_arguments() -> None:
    def answers(T: Any) -> list[Any]:
        F, x, v = T.autograd.functional, T.tensor([1.0, 2.0]), T.tensor([1.0, 0.0])
        return [
            told(call)
            for call in (
                lambda: F.jacobian(lambda a: (a, "b"), x, vectorize=True),
                lambda: F.jacobian(lambda a: 3.0, x, vectorize=True),
                lambda: F.jacobian(lambda a: a, x, strategy="forward-mode"),
                lambda: F.hvp(lambda a: a.sum(), (x, 2), v),
                lambda: F.hvp(lambda a: (a, a), x, v),
                lambda: F.jvp(lambda a: a, x, (v, v)),
                lambda: F.jvp(lambda a: a, (x,), (v, v)),
                lambda: F.vjp(lambda a: a, x, (v, v)),
                lambda: F.hessian(lambda a: a.sum(), x[0], vectorize=True),
            )
        ]

    assert answers(tt) == answers(torch)

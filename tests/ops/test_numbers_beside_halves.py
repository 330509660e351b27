"""Numbers beside half types, digit for digit: most are rounded to the type before anything else.

PyTorch's vectors and the few elements left over at the end of a loop are different code in two
places, which `IN_VECTORS` lists: x + alpha·y is rounded twice there, and softshrink keeps the sign of
a zero. Such calls are compared on whole vectors alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import SELFTEST, attempt, torch, tt

VALUES = [-2.5, -1.0, -0.7, -0.3, 0.1, 0.3, 0.31, 0.5, 0.7, 1.0, 1.1, 2.7, 3.3]
NUMBERS = [0.3, 0.7, -0.3, 1.1, 3.3]
KINDS = ["float16", "bfloat16"]
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "pow", "gt", "ge", "lt", "le", "eq", "ne"]

Call = Callable[[Any, Any, Any, float], Any]  # the package, two tensors, a number
CALLS: dict[str, Call] = {
    **{f"x {o} s": lambda m, x, y, s, o=o: getattr(operator, o)(x, s) for o in OPERATORS},
    **{f"s {o} x": lambda m, x, y, s, o=o: getattr(operator, o)(s, x) for o in OPERATORS},
    **{
        f"x {o}= s": lambda m, x, y, s, o=o: getattr(operator, f"i{o}")(x.clone(), s)
        for o in OPERATORS[:6]
    },
    **{
        f"x {o} tensor of no dimension": lambda m, x, y, s, o=o: getattr(operator, o)(
            x, m.tensor(s, dtype=m.float64)
        )
        for o in OPERATORS
    },
    "mul(s, x)": lambda m, x, y, s: m.mul(s, x),
    "add, alpha": lambda m, x, y, s: m.add(x, y, alpha=s),
    "add a number, alpha": lambda m, x, y, s: m.add(x, s, alpha=0.7),
    "sub, alpha": lambda m, x, y, s: m.sub(x, y, alpha=3),
    "rsub, alpha": lambda m, x, y, s: m.rsub(x, s, alpha=0.7),
    "add in place, alpha": lambda m, x, y, s: x.clone().add_(y, alpha=s),
    "lerp": lambda m, x, y, s: m.lerp(x, y, s),
    "xlogy": lambda m, x, y, s: m.xlogy(x, s),
    "xlogy of a number": lambda m, x, y, s: m.xlogy(s, x),
    "xlogy of tensors": lambda m, x, y, s: m.xlogy(x, y),
    "xlog1py": lambda m, x, y, s: m.special.xlog1py(x, s),
    "floor": lambda m, x, y, s: m.div(x, s, rounding_mode="floor"),
    "hardshrink": lambda m, x, y, s: m.nn.functional.hardshrink(x, s),
    "softshrink": lambda m, x, y, s: m.nn.functional.softshrink(x, abs(s)),
    "where": lambda m, x, y, s: m.where(x > 0, x, s),
    "clamp": lambda m, x, y, s: x.clamp(-s, s),
    "addcmul": lambda m, x, y, s: m.addcmul(x, y, y, value=s),
    "leaky_relu": lambda m, x, y, s: m.nn.functional.leaky_relu(x, s),
    "threshold": lambda m, x, y, s: m.nn.functional.threshold(x, s, 0.3),
}


IN_VECTORS = ("alpha", "softshrink")
VECTOR = 64  # elements, of which a whole number of PyTorch's vectors consists


def digits(made: Any) -> Any:
    """The bits of its numbers: NaN is NaN, and -0.0 is not 0.0."""
    found = made.double().numpy().copy()
    found[np.isnan(found)] = np.nan
    return found.view(np.int64)


@pytest.mark.parametrize("times", [1, 3000])  # a few by NumPy, many by compiled loops
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_digits(call: str, kind: str, times: int) -> None:
    for s in NUMBERS:
        found = []
        for m in (tt, torch):
            x = m.tensor(([*VALUES, s]) * times, dtype=getattr(m, kind))
            y = m.tensor(([s, *VALUES[::-1]]) * times, dtype=getattr(m, kind))
            if call.endswith(IN_VECTORS):
                whole = max(len(x) // VECTOR, 1) * VECTOR
                x, y = (v.repeat(VECTOR)[:whole] for v in (x, y))
            found.append(CALLS[call](m, x, y, s))
        ours, theirs = found
        assert str(ours.dtype) == str(theirs.dtype), s
        np.testing.assert_array_equal(digits(ours), digits(theirs), str(s))


@pytest.mark.skipif(SELFTEST, reason="about toytorch's compiler")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["x add s", "x gt s", "s sub x", "add, alpha", "x mul s"])
def test_compiled_code_rounds_alike(name: str, kind: str) -> None:
    x = tt.tensor([*VALUES, 0.3] * 300, dtype=getattr(tt, kind))
    y = x.flip(0)
    compiled = tt.compile(lambda a, b: CALLS[name](tt, a, b, 0.3))
    for _ in range(2):
        assert compiled(x, y).tolist() == CALLS[name](tt, x, y, 0.3).tolist()


def shrunk(m: Any, name: str, lambd: float, kind: str) -> Any:
    return getattr(m.nn.functional, name)(m.ones(2, dtype=getattr(m, kind)), lambd).tolist()


@pytest.mark.parametrize("lambd", [float("inf"), float("nan"), -1.0, -0.3, 1e39, 1e5])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", ["softshrink", "hardshrink"])
def test_thresholds_that_are_refused(name: str, kind: str, lambd: float) -> None:
    ours, theirs = (attempt(shrunk, m, name, lambd, kind) for m in (tt, torch))
    assert list(map(str, ours)) == list(map(str, theirs))

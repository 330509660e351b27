"""Python's operators with operands of every kind: another class's own operator gets its turn."""

from __future__ import annotations

import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.oracle import SELFTEST, attempt, names, told, torch, tt

if SELFTEST:
    pytest.skip("compares toytorch with PyTorch", allow_module_level=True)

BINARY = names("add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift matmul")
COMPARISONS = names("lt le gt ge eq ne")
IN_PLACE = [f"i{name.rstrip('_')}" for name in BINARY if name != "matmul"]


class Other:
    """Answers every operator with its name."""


for _name in [*BINARY, *COMPARISONS]:
    _word = f"__r{_name.rstrip('_')}__" if _name in BINARY else f"__{_name}__"
    setattr(Other, _word, lambda self, x, word=_word: word)
Other.__hash__ = object.__hash__  # type: ignore[method-assign]  # __eq__ took it away

OPERANDS = [Other(), object(), None, "a", b"a", [1.0, 2.0], (1, 2), {}, {1}, Decimal(2),
            Fraction(1, 2), range(2), np.float32(2), np.int64(2), True, 2, 2.5,
            1 + 2j, slice(None), int, np.array("a")]  # fmt: skip
NUMBERS = (bool, int, float, complex, np.number)


def outcome(module: Any, name: str, operand: Any, reflected: bool, kind: str) -> Any:
    """What happened: the class of the error, a value, or that a tensor was made."""
    x = module.tensor([3, 4], dtype=getattr(module, kind))
    args = (operand, x) if reflected else (x, operand)
    made, failure = attempt(getattr(operator, name), *args)
    if failure:
        return type(failure)
    return ("tensor", made.tolist()) if isinstance(made, module.Tensor) else made


@pytest.mark.parametrize("kind", ["float32", "int64", "bool"])
@pytest.mark.parametrize("operand", OPERANDS, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("name", [*BINARY, *COMPARISONS, *IN_PLACE])
def test_operators_do_as_in_pytorch(name: str, operand: Any, kind: str) -> None:
    if kind == "bool" and isinstance(operand, NUMBERS):
        pytest.skip("arithmetic of masks is compared by the suites of ops")
    for reflected in (False, True)[: 2 - (name in IN_PLACE)]:
        if reflected and isinstance(operand, (np.generic, np.ndarray)):
            continue  # NumPy is asked first, and PyTorch 2.13 does not know NumPy 2's protocol
        want = outcome(torch, name, operand, reflected, kind)
        got = outcome(tt, name, operand, reflected, kind)
        if isinstance(want, tuple) and want[0] == "tensor" == got[0]:
            np.testing.assert_allclose(got[1], want[1], rtol=1e-5)
        else:
            assert got == want, (reflected, got, want)


@pytest.mark.parametrize("name", [*BINARY, *COMPARISONS])
@pytest.mark.parametrize("operand", OPERANDS[:9], ids=lambda o: type(o).__name__)
def test_what_is_not_known_is_not_implemented(name: str, operand: Any) -> None:
    """The method itself says so, and raises nothing."""
    for word in (f"__{name.rstrip('_')}__", f"__r{name.rstrip('_')}__"):
        for module in (torch, tt):
            method = getattr(module.Tensor, word, None)
            if method is None:
                continue
            if word == "__rtruediv__" and isinstance(operand, Other):
                continue  # 1/x · operand is the operand's `__rmul__`
            made, failure = attempt(method, module.ones(2), operand)
            assert failure is None, told(failure)
            assert made is NotImplemented


def test_arrays_are_compared_element_by_element() -> None:
    """As in PyTorch where NumPy 1 is installed; beside NumPy 2 PyTorch 2.13 says False or True."""
    x = tt.tensor([1.0, 2.0])
    assert (x == np.array([1.0, 3.0])).tolist() == [True, False]
    assert (x != np.array([1.0, 3.0])).tolist() == [False, True]


def test_operators_are_methods_where_pytorchs_are() -> None:
    """`__neg__` is `neg`. Those of two operands answer NotImplemented where methods raise."""
    methods = {n: m for n, m in vars(torch._C.TensorBase).items() if not n.startswith("_")}
    same = {
        (dunder, name)
        for dunder in dir(torch.Tensor)
        for name, method in methods.items()
        if dunder.startswith("__") and getattr(torch.Tensor, dunder) == method
    }
    assert {name for _, name in same} >= {"abs", "neg", "positive"}
    for dunder, name in same:
        assert getattr(tt.Tensor, dunder) is getattr(tt.Tensor, name), dunder
    assert tt.Tensor.__mul__(tt.ones(1), "a") is NotImplemented
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        tt.mul(tt.ones(1), "a")

"""Result types over every pair of dtypes and ranks: Python number, 0-d tensor, n-d tensor."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.oracle import DTYPES, attempt, dtype_name, error_difference, told, torch, tt

SCALARS: list[Any] = [True, 2, 1.5, 1j]
RANKS: dict[str, tuple[int, ...]] = {"0-d": (), "n-d": (2,), "empty": (0,)}
OPERANDS: list[Any] = [(d, r) for d in DTYPES for r in RANKS] + SCALARS


def operand(m: Any, spec: Any) -> Any:
    return m.ones(RANKS[spec[1]], dtype=getattr(m, spec[0])) if isinstance(spec, tuple) else spec


def kind(value: Any) -> str:
    """A result's dtype; PyTorch's complex32, which the package lacks, counts as complex64."""
    return dtype_name(getattr(value, "dtype", value)).replace("complex32", "complex64")


def compare(call: Any, pairs: Any, errors: bool = False) -> None:
    """Dtypes agree, and what PyTorch refuses is refused; with errors, by the same class."""
    wrong, count = [], 0
    for a, b in pairs:
        (want, refused), (got, failure) = (
            attempt(call, m, operand(m, a), operand(m, b)) for m in (torch, tt)
        )
        if refused is None and failure is None:
            bad = "" if kind(want) == kind(got) else f"{kind(got)}, PyTorch gives {kind(want)}"
        elif "not implemented for" in str(refused) and failure is None:
            bad = ""  # a kernel that PyTorch happens to lack on the CPU is no promise
        elif refused and failure and not errors:
            bad = ""  # test_refusals looks closer
        else:
            bad = error_difference(refused, failure, text=False)
        count += 1
        wrong += [f"{a} with {b}: {bad}"] if bad else []
    assert not wrong, f"{len(wrong)} of {count} pairs\n  " + "\n  ".join(wrong[:8])


PAIRS = [p for p in itertools.product(OPERANDS, OPERANDS) if any(isinstance(x, tuple) for x in p)]
FIRST_IS_TENSOR = [p for p in PAIRS if isinstance(p[0], tuple)]
OPS: dict[str, Any] = {
    "add": lambda m, a, b: a + b, "sub": lambda m, a, b: a - b, "mul": lambda m, a, b: a * b,
    "div": lambda m, a, b: a / b, "floor_divide": lambda m, a, b: a // b, "remainder": lambda m, a,
    b: a % b,
    "pow": lambda m, a, b: a**b, "eq": lambda m, a, b: a == b, "lt": lambda m, a, b: a < b,
    "and": lambda m, a, b: a & b, "result_type": lambda m, a, b: m.result_type(a, b),
}  # fmt: skip
FUNCTIONS: dict[str, Any] = {
    "maximum": lambda m, a, b: m.maximum(a, b), "atan2": lambda m, a, b: m.atan2(a, b),
    "fmod": lambda m, a, b: m.fmod(a, b), "where": lambda m, a,
    b: m.where(m.ones((), dtype=m.bool), a, b),
    "true_divide": lambda m, a, b: m.true_divide(a, b), "logical_and": lambda m, a,
    b: m.logical_and(a, b),
    "trunc division": lambda m, a, b: m.div(a, b, rounding_mode="trunc"),
    "can_cast": lambda m, a, b: str(m.can_cast(a.dtype, b.dtype)),
    "promote_types": lambda m, a, b: m.promote_types(a.dtype, b.dtype),
    "in place add": lambda m, a, b: a.add_(b), "in place div": lambda m, a, b: a.div_(b),
    "copy_": lambda m, a, b: a.copy_(b),
}  # fmt: skip
TENSORS = [p for p in FIRST_IS_TENSOR if isinstance(p[1], tuple)]


@pytest.mark.parametrize("name", OPS)
def test_operators(name: str) -> None:
    compare(OPS[name], PAIRS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    pairs = FIRST_IS_TENSOR if name in ("where", "in place add", "in place div") else TENSORS
    compare(FUNCTIONS[name], pairs)


@pytest.mark.parametrize("name", [*OPS, *FUNCTIONS])
def test_refusals(name: str) -> None:
    """Pairs that have no result raise PyTorch's class of error."""
    everything = {**OPS, **FUNCTIONS}[name]
    pairs = PAIRS if name in OPS else FIRST_IS_TENSOR if name == "where" else TENSORS
    compare(
        everything,
        [p for p in pairs if attempt(everything, torch, *(operand(torch, x) for x in p))[1]],
        True,
    )


@pytest.mark.parametrize("default", ["float64", "float16", "float32"])
def test_default_dtype(default: str) -> None:
    """Integers that become floats, and Python floats, take the default dtype."""
    before = torch.get_default_dtype()
    try:
        for m in (torch, tt):
            m.set_default_dtype(getattr(m, default))
        assert dtype_name(tt.get_default_dtype()) == default
        assert dtype_name(tt.tensor(1.5).dtype) == default
        assert dtype_name(tt.zeros(2).dtype) == default
        pairs = [p for p in FIRST_IS_TENSOR if p[0][0] in ("bool", "int64", "float32", "float64")]
        compare(OPS["div"], pairs)
        compare(OPS["add"], pairs)
        assert repr(tt.ones(2)) == repr(torch.ones(2))
        assert repr(tt.ones(2, dtype=tt.float32)) == repr(torch.ones(2, dtype=torch.float32))
        assert kind(tt.tensor(1j)) == kind(torch.tensor(1j))
    finally:
        torch.set_default_dtype(before)
        tt.set_default_dtype(getattr(tt, dtype_name(before)))


def test_default_dtype_must_be_floating() -> None:
    want, got = (attempt(m.set_default_dtype, m.int64)[1] for m in (torch, tt))
    assert type(got) is type(want), told(got)


@pytest.mark.parametrize("name", DTYPES)
def test_dtype_objects(name: str) -> None:
    d, want = getattr(tt, name), getattr(torch, name)
    assert str(d).replace("toytorch", "torch") == str(want)
    assert (d.is_floating_point, d.is_complex, d.is_signed, d.itemsize) == (
        want.is_floating_point, want.is_complex, want.is_signed, want.itemsize
    )  # fmt: skip
    assert tt.zeros(1, dtype=d).element_size() == want.itemsize
    assert hash(d) == hash(getattr(tt, name))
    assert d == getattr(tt, name)


def test_dtype_synonyms() -> None:
    for name in ["float", "double", "half", "long", "int", "short", "cfloat", "cdouble"]:
        assert dtype_name(getattr(tt, name)) == dtype_name(getattr(torch, name))

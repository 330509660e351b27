"""`assert_close` accepts and refuses what PyTorch's does, in the same words."""

from __future__ import annotations

import collections
import enum
from typing import Any

import numpy as np
import pytest

from tests.oracle import ORACLE, SUBJECT, Side

# actual, expected, and options; `x` is a matrix of float32
PAIRS = """
1, 1 | 1, 2 | 1.0, 1.0 + 1e-8 | 1.0, 1.1 | 1, 1.0 | True, False | None, None | None, 1 | 1, 'a'
1j, 1j + 0.1 | nan, nan | nan, nan, dict(equal_nan=True) | inf, inf | inf, -inf | 1.0, nan
1, 2, dict(rtol=1, atol=1) | 1.0, 1, dict(check_dtype=False) | 'a', 'a' | {1}, {1} | [1], x
x, x | x, x + 1 | x, x.double() | x, x.double(), dict(check_dtype=False) | x, x[:1] | x, x.t()
x, x.t().contiguous().t(), dict(check_stride=True) | x.int(), x.int() + 1 | x.bool(), ~x.bool()
x * nan, x * nan | x * nan, x * nan, dict(equal_nan=True) | x, x * nan | x * inf, x * inf
x.bfloat16(), x.bfloat16() + 0.1 | x.half(), x.half() + 0.1 | x.byte(), x.byte() - 9
x + 0j, x + 1j | x[0, 0], x[0, 0] + 1 | x[0, 0].int(), x[0, 0].int() + 1 | x[:0], x[:0]
[x, x], [x, x + 1] | [x], [x, x] | (x,), [x] | {'a': x}, {'a': x + 1} | {'a': x}, {'b': x}
{'a': x, 'c': 1}, {'a': x, 'b': 2} | {'a': [1, {'b': x}]}, {'a': [1, {'b': x + 1}]}
{1: 1, 'a': 2}, {1: 1, 'a': 3} | [], [] | {}, {} | [1, [2, 3]], [1, [2, 4]] | {2: x}, {2: x + 1}
range(3), [0, 1, 3] | collections.OrderedDict(a=1), dict(a=2) | [x, 'a'], [x, 'a']
x, 1.0 | x[0, 0], 0.0 | x.numpy(), x.numpy() + 1 | x.numpy(), x | x, x.tolist() | x, None
np.float32(1), np.float32(2) | np.float64(1), 1.0 | np.int64(1), 2 | np.bool_(True), False
x, x + 1, dict(rtol=0, atol=0) | x, x + 1, dict(rtol=1.0) | x, x + 1, dict(atol=1.0)
x, x + 1, dict(rtol=1.0, atol=1.0) | x, x + 0.1, dict(rtol=1e-3, atol=0)
x, x + 1, dict(msg='hello') | [x], [x + 1], dict(msg=lambda m: 'Header' + m) | 1, 2, dict(msg='m')
x, torch.nn.Parameter(x) | x, torch.nn.Parameter(x), dict(allow_subclasses=False)
x.to_sparse(), x.to_sparse() | x.to_sparse(), x.to_sparse() * 2 | x.to_sparse(), x
x.to_sparse(), x, dict(check_layout=False) | x.to_sparse(), (x * 0).to_sparse()
x.requires_grad_(), x.detach() + 1 | torch.tensor([0., 1.]), torch.tensor([0., 0.])
torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 2], [5, 40]])
torch.tensor([-2**63]), torch.tensor([2**63 - 1]) | torch.tensor(1 + 1j), torch.tensor(2 + 1j)
torch.tensor([], dtype=torch.int32), torch.tensor([]) | torch.tensor(True), torch.tensor(False)
"""
CASES = [c.strip() for line in PAIRS.strip().splitlines() for c in line.split(" | ")]


def outcome(side: Side, case: str) -> str:
    torch = side.root
    space: dict[str, Any] = {
        "torch": torch,
        "np": np,
        "collections": collections,
        "nan": float("nan"),
        "inf": float("inf"),
        "x": torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
    }
    actual, expected, *options = eval(f"({case},)", space)
    try:
        torch.testing.assert_close(actual, expected, **dict(*options))
    except Exception as error:  # what it says is what is compared
        return f"{type(error).__name__}: {error}".replace("toytorch", "torch")
    return "close"


@pytest.mark.parametrize("case", CASES)
def test_the_same_report(case: str) -> None:
    assert outcome(SUBJECT, case) == outcome(ORACLE, case)


def test_some_are_close_and_some_are_not() -> None:
    found = [outcome(SUBJECT, c) == "close" for c in CASES]
    assert 15 < sum(found) < len(found) - 40


@pytest.mark.parametrize("values", [(True, 1), (1.0, True)])
def test_a_truth_is_no_number(values: Any) -> None:
    """PyTorch refuses as well, with a report of an unexpected error in itself."""
    with pytest.raises(TypeError, match="No comparison pair"):
        SUBJECT.root.testing.assert_close(*values, check_dtype=False)


def test_a_number_of_a_class_derived_from_int() -> None:
    """PyTorch fails on these with an error in itself."""

    class Level(enum.IntEnum):
        LOW = 1

    torch = SUBJECT.root
    torch.testing.assert_close(Level.LOW, 1)
    with pytest.raises(AssertionError, match="Scalars are not equal"):
        torch.testing.assert_close(Level.LOW, 2)


def test_the_older_form() -> None:
    for side in (ORACLE, SUBJECT):
        torch = side.root
        with pytest.warns(FutureWarning, match="is deprecated since 1.12"):
            torch.testing.assert_allclose(torch.ones(2), torch.ones(2).double())
        with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="not close"):
            torch.testing.assert_allclose(torch.ones(2), torch.zeros(2))

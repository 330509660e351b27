"""Factors, solutions and eigenvalues of stacks of matrices lie where PyTorch's do, however the stack
lies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import attempt, torch, tt

pytestmark = pytest.mark.filterwarnings("ignore")

Call = Callable[[Any, Any], Any]
OF_ANY: dict[str, Call] = {
    **{
        name: lambda m, x, name=name: getattr(m.linalg, name)(x)
        for name in [
            "svd",
            "svdvals",
            "qr",
            "pinv",
            "matrix_rank",
            "lu_factor",
            "lu",
            "matrix_norm",
            "norm",
        ]
    },
    **{name: lambda m, x, name=name: getattr(m, name)(x) for name in ["svd", "qr", "geqrf", "lu"]},
    "complete": lambda m, x: m.linalg.qr(x, "complete"),
    "reduced": lambda m, x: m.linalg.svd(x, full_matrices=False),
}
OF_SQUARES: dict[str, Call] = {
    **{
        name: lambda m, x, name=name: getattr(m.linalg, name)(x)
        for name in [
            "eigh",
            "eigvalsh",
            "eig",
            "eigvals",
            "det",
            "slogdet",
            "inv",
            "cholesky_ex",
            "matrix_exp",
        ]
    },
    "solve": lambda m, x: m.linalg.solve(x, x),
    "solve left": lambda m, x: m.linalg.solve(x, x, left=False),
    "triangular": lambda m, x: m.triangular_solve(x, x),
    "least squares": lambda m, x: m.linalg.lstsq(x, x),
    "of several": lambda m, x: m.triangular_solve(x, x[0, 0]),
    "of one": lambda m, x: m.triangular_solve(x[0, 0], x),
}


def stacks(m: Any, kind: str, shape: tuple[int, ...]) -> list[Any]:
    """The same shape, with its dimensions in every order of memory."""
    found = []
    for order in itertools.permutations(range(len(shape))):
        lies = [shape[i] for i in order]
        x = (m.arange(math.prod(lies)).reshape(lies) * 7 % 11 + 1).to(getattr(m, kind))
        found.append(x.permute([order.index(i) for i in range(len(shape))]))
    return found


def told(m: Any, call: Call, x: Any) -> Any:
    made, refused = attempt(lambda: call(m, x))
    if refused is not None:
        return type(refused).__name__
    return [
        (tuple(t.shape), [s for s, n in zip(t.stride(), t.shape) if n > 1])
        for t in ((made,) if isinstance(made, m.Tensor) else made)
    ]


@pytest.mark.parametrize("kind", ["float64", "complex64"])
@pytest.mark.parametrize("shape", [(2, 2, 1, 2), (2, 2, 3, 2), (2, 3, 2, 2), (1, 2, 1, 1)])
def test_factors_of_stacks(shape: tuple[int, ...], kind: str) -> None:
    calls = OF_ANY if shape[-1] != shape[-2] else {**OF_ANY, **OF_SQUARES}
    for theirs, ours in zip(stacks(torch, kind, shape), stacks(tt, kind, shape), strict=True):
        for name, call in calls.items():
            assert told(tt, call, ours) == told(torch, call, theirs), (name, theirs.stride())

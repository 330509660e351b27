"""What traces warn of, and what they make of sizes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.outside.alike import same

LOOKS: dict[str, Callable[[Any, Any], Any]] = {
    "numbers": lambda m, x: x * int(x[0, 0]) * float(x[0, 1]) * x[0, 2].item(),
    "list": lambda m, x: x * x.tolist()[0][0],
    "array": lambda m, x: x + m.from_numpy(x.detach().numpy()),
    "length": lambda m, x: x * len(x),
    "parts": lambda m, x: sum(row for row in x),
    "unpacked": lambda m, x: (lambda a, b: a + b)(*x),
    "constants": lambda m, x: x + m.tensor(3.0) + m.as_tensor([1.0, 2.0, 3.0]),
    "size as a constant": lambda m, x: x + m.tensor(x.shape[0]),
    "size as a condition": lambda m, x: x if x.shape[0] == 2 else -x,
    "size as a number": lambda m, x: x * int(x.shape[0]) / math.sqrt(x.shape[1]),
    "size in a power": lambda m, x: x * x.shape[1] ** -0.5 / x.shape[0],
    "sizes": lambda m, x: (x, x.shape[0], x.size(1) * 2),
    "range": lambda m, x: sum(x[i] for i in range(x.shape[0])),
    "list given": lambda m, x: [x, x],
    "list in a tuple": lambda m, x: (x, [x, x]),
    "dict in a tuple": lambda m, x: (x, {"a": x}),
    "batch norm": lambda m, x: m.nn.functional.batch_norm(x, None, None, training=True),
    "instance norm": lambda m, x: m.nn.functional.instance_norm(x[None]),
    "group norm": lambda m, x: m.nn.functional.group_norm(x, 3),
    "layer norm": lambda m, x: m.nn.functional.layer_norm(x, (3,)),
}


def plain(x: Any) -> Any:
    return (
        [plain(t) for t in x] if isinstance(x, (list, tuple)) else np.round(x.tolist(), 4).tolist()
    )


@pytest.mark.parametrize("name", LOOKS)
def test_warnings_and_kinds_of_results(name: str) -> None:
    """In PyTorch's words; a size among the results is a tensor."""

    def said(m: Any) -> Any:
        x = m.arange(6.0).view(2, 3)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                made = m.jit.trace(lambda x: LOOKS[name](m, x), x, check_trace=False)(x)
            except RuntimeError as e:
                return str(e)[:90]
        words = {str(w.message) for w in heard if issubclass(w.category, m.jit.TracerWarning)}
        return sorted(words), [(type(t).__name__, plain(t)) for t in made]

    same(said)


UNCHANGED = (
    "contiguous() to(m.float32) float() cpu() real to(x) resolve_conj() flatten(1) positive()"
)
NO_CALLS = " data conj() requires_grad_(False) detach_() __pos__() is_leaf"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", (UNCHANGED + NO_CALLS).split(" "))
@pytest.mark.parametrize("grad", [False, True])
def test_what_data_gave_as_a_result(call: str, grad: bool) -> None:
    """It has to have taken part in a call, which may have changed nothing."""

    def made(m: Any) -> Any:
        x = m.arange(6.0).view(2, 3).requires_grad_(grad)

        def f(x: Any) -> Any:
            d = (x * 3).data
            made = eval(f"d.{call}", {"m": m, "d": d, "x": x})
            return d if made is True else made

        try:
            return plain(m.jit.trace(f, x, check_trace=False)(x + 1))
        except RuntimeError as e:
            return str(e)[:10]

    same(made)


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda m, x: x.add_(1),
    "t_": lambda m, x: x.t_(),
    "embedding_renorm_": lambda m, x: m.embedding_renorm_(x, m.tensor([0]), 0.5, 2.0),
    "float_power_": lambda m, x: x.float_power_(1.0),
    "of a view": lambda m, x: x[0].mul_(2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRITES)
def test_leaves_are_refused_in_traces(name: str) -> None:
    def said(m: Any) -> Any:
        x = m.ones(3, 3, dtype=m.float64).requires_grad_()
        try:
            m.jit.trace(lambda x: WRITES[name](m, x) + 0, x, check_trace=False)
        except RuntimeError as e:
            return str(e)
        return None

    same(said)

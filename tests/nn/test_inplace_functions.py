"""Functions that write over their input: each of `nn.functional`'s, and the argument `inplace`."""

import inspect
from typing import Any

import numpy as np
import pytest

import toytorch

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

NAMES = sorted(n for n in dir(torch.nn.functional) if n.endswith("_") and not n.startswith("_"))
ARGUMENTS: dict[str, tuple[Any, ...]] = {"threshold_": (0.1, 2.0)}
FLAGGED = sorted(
    n
    for n, f in vars(toytorch.nn.functional).items()
    if inspect.isfunction(f) and "inplace" in inspect.signature(f).parameters
)
MORE: dict[str, dict[str, Any]] = {"threshold": {"threshold": 0.1, "value": 2.0}}


def outcome(m: Any, call: Any, kind: str) -> tuple[Any, ...]:
    """Values, whether the input was written to, the gradient; or the error's class."""
    m.manual_seed(3)
    leaf = m.sin(m.arange(24, dtype=getattr(m, kind))).reshape(2, 3, 4).requires_grad_()
    x = leaf * 1.5
    try:
        made = call(m, x)
        made.sum().backward()
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as e:
        return (type(e).__name__,)
    return made.detach().tolist(), made is x, x.tolist(), leaf.grad.tolist()


def compared(call: Any, kind: str) -> None:
    ours, theirs = (outcome(m, call, kind) for m in (toytorch, torch))
    assert len(ours) == len(theirs), (ours, theirs)
    for a, b in zip(ours, theirs):
        if isinstance(a, list):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        else:
            assert a == b


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_functions_with_an_underscore(name: str, kind: str) -> None:
    assert hasattr(toytorch.nn.functional, name)
    arguments = ARGUMENTS.get(name, ())
    compared(lambda m, x: getattr(m.nn.functional, name)(x, *arguments), kind)
    if "training" in inspect.signature(getattr(toytorch.nn.functional, name)).parameters:
        compared(lambda m, x: getattr(m.nn.functional, name)(x, training=True), kind)


@pytest.mark.parametrize("name", FLAGGED)
def test_the_argument_inplace(name: str) -> None:
    more = MORE.get(name, {})
    compared(lambda m, x: getattr(m.nn.functional, name)(x, inplace=True, **more), "float32")


def test_rrelu_of_the_namespace() -> None:
    compared(lambda m, x: m.rrelu_(x, 0.1, 0.2, True), "float32")

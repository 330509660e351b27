"""First and second gradients of every op, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.records import IDS, PAIRS, TESTED, report
from tests.ops.samples.base import Sample, supported
from tests.oracle import (
    FLOATS,
    ORACLE,
    Side,
    attempt,
    differences,
    dtype_name,
    subject,
    told,
    torch,
    tt,
)  # fmt: skip

SLACK = 10.0


def first(side: Side, f: Any, sample: Sample) -> tuple[list[Any], list[Any], list[Any]]:
    """(inputs, which results require a gradient, gradients) with the graph of the gradients."""
    args, kwargs = side.carry((sample.args, sample.kwargs), grad=True)
    out = side.tensors(f(*args, **kwargs))
    flags = [bool(o.requires_grad) for o in out]
    inputs = side.inputs([args, kwargs])
    out = [o for o in out if o.requires_grad]
    if not out or not inputs:
        return inputs, flags, []
    grads = side.root.autograd.grad(
        out, inputs, [side.cotangent(o) for o in out], create_graph=True, allow_unused=True
    )
    return inputs, flags, list(grads)


def second(side: Side, inputs: list[Any], grads: list[Any]) -> list[Any]:
    """Gradients of the gradients."""
    grads = [g for g in grads if g is not None and g.requires_grad]
    if not grads:
        return [None] * len(inputs)
    cotangents = [side.cotangent(g, 0.9) for g in grads]
    return list(side.root.autograd.grad(grads, inputs, cotangents, allow_unused=True))


def differentiable(name: str) -> list[Sample]:
    return [
        s for s in supported(TESTED[name])
        if s.grad and any(dtype_name(x.dtype) in FLOATS for x in ORACLE.tensors([s.args, s.kwargs]))
    ]  # fmt: skip


GRADIENTS = [
    (p, i) for p, i in zip(PAIRS, IDS, strict=True) if differentiable(p[0]) and TESTED[p[0]].values
]
parametrized = pytest.mark.parametrize(
    ("name", "device"), [p for p, _ in GRADIENTS], ids=[i for _, i in GRADIENTS]
)


@parametrized
def test_first(name: str, device: str) -> None:
    entry, side, failures = TESTED[name], subject(device), []
    samples = differentiable(name)
    for sample in samples:
        want, refused = attempt(first, ORACLE, entry.function(ORACLE), sample)
        if refused:
            continue
        got, failure = attempt(first, side, entry.function(side), sample)
        if failure:
            failures.append(f"{sample}: {told(failure)}")
            continue
        bad = differences(want[1], got[1], side)
        bad = [f"requires_grad of the results: {b}" for b in bad]
        bad = bad or differences(want[2], got[2], side, slack=SLACK * entry.slack)
        failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, len(samples))


@parametrized
def test_second(name: str, device: str) -> None:
    entry, side, failures = TESTED[name], subject(device), []
    samples = [s for s in differentiable(name) if s.second]
    for sample in samples:
        want, refused = attempt(_twice, ORACLE, entry.function(ORACLE), sample)
        if refused:
            continue  # PyTorch has no second derivative here
        got, failure = attempt(_twice, side, entry.function(side), sample)
        if failure:
            failures.append(f"{sample}: {told(failure)}")
            continue
        bad = differences(want, got, side, slack=SLACK * entry.slack)
        failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, len(samples))


def _twice(side: Side, f: Any, sample: Sample) -> list[Any]:
    inputs, _, grads = first(side, f, sample)
    return second(side, inputs, grads)


PIECES = [
    "leaky_relu",
    "hardtanh",
    "relu6",
    "hardsigmoid",
    "threshold",
    "hardshrink",
    "softshrink",
    "relu",
]


@pytest.mark.parametrize("name", PIECES)
def test_gradients_of_straight_pieces_have_a_history(name: str) -> None:
    """So that second derivatives are zeros and no refusal, as in PyTorch."""
    args = (0.1, 2.0) if name == "threshold" else ()
    for m in (torch, tt):
        x = m.tensor([-3.0, 0.2, 1.0, 7.0], requires_grad=True)
        (g,) = m.autograd.grad(getattr(m.nn.functional, name)(x, *args).sum(), x, create_graph=True)
        assert g.requires_grad


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", ["acosh", "asinh", "atanh", "acos", "asin", "atan"])
def test_gradients_of_inverse_functions_on_both_sides(name: str, dtype: str) -> None:
    points = [-3.5 + 0.05j, 1 + 1j, -1 - 1j, 0.3 - 2j, -0.3 + 0.1j, 1.7 + 0.2j]
    values = points if dtype[0] == "c" else [p.real for p in points]
    found = []
    for m in (torch, tt):
        x = m.tensor(values, dtype=getattr(m, dtype), requires_grad=True)
        found.append(m.autograd.grad(getattr(m, name)(x).sum().abs(), x)[0].tolist())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)


def test_gradient_of_polar_where_the_size_is_no_size() -> None:
    found = []
    for m in (torch, tt):
        x = m.tensor([0.5, 0.0, -1.0, -0.0], requires_grad=True)
        y = m.polar(x, m.tensor([1.0, 2.0, 3.0, 4.0]))
        found.append(m.autograd.grad(y.sum().abs(), x)[0].tolist())
    assert found[1] == pytest.approx(found[0], rel=1e-6)

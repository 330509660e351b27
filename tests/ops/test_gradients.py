"""First and second gradients of every op, against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ops.records import IDS, PAIRS, TESTED, report
from tests.ops.samples.base import Sample, supported
from tests.oracle import FLOATS, ORACLE, Side, attempt, differences, dtype_name, subject, told

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

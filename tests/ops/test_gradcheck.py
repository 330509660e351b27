"""Derivatives against finite differences: first, second, forward mode, and a batch at once."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.ops.records import IDS, PAIRS, TESTED
from tests.ops.samples.base import Sample, supported
from tests.oracle import ORACLE, Side, dtype_name, subject, told

LARGEST = 40  # elements of all inputs together: a Jacobian has a column for each
SAMPLES = 3  # of an op

# Ops whose derivative is by definition not that of their values.
DEFINED = {"dropout": "random", "rrelu": "random", "straight_through": "the identity's"}


def small(name: str) -> list[Sample]:
    """The first samples in float64 that are small and have no kinks, of different shapes."""
    found: dict[Any, Sample] = {}
    for s in supported(TESTED[name]):
        tensors = ORACLE.tensors([s.args, s.kwargs])
        floats = [x for x in tensors if dtype_name(x.dtype) in ("float64", "complex128")]
        others = [x for x in tensors if x.dtype.is_floating_point or x.dtype.is_complex]
        if not s.grad or s.note or not floats or len(floats) != len(others):
            continue
        if any(n and any(m > 1 and st == 0 for m, st in zip(x.shape, x.stride(), strict=True))
               for x in floats for n in [x.numel()]):  # fmt: skip
            continue
        if sum(x.numel() for x in floats) <= LARGEST:
            found.setdefault(tuple(tuple(x.shape) for x in tensors), s)
    ranked = sorted(found.values(), key=lambda s: not any(
        x.numel() > 1 for x in ORACLE.tensors([s.args, s.kwargs])))  # fmt: skip
    return ranked[:SAMPLES]


CHECKED = [
    (p, i) for p, i in zip(PAIRS, IDS, strict=True)
    if TESTED[p[0]].values and p[0] not in DEFINED and small(p[0])
]  # fmt: skip


def problem(side: Side, f: Any, sample: Sample) -> tuple[Any, list[Any]]:
    """(a function of the inputs alone, the inputs)."""
    args, kwargs = side.carry((sample.args, sample.kwargs), grad=True)
    inputs = side.inputs([args, kwargs])
    places = {id(x): i for i, x in enumerate(inputs)}

    def swap(value: Any, xs: Any) -> Any:
        if id(value) in places:
            return xs[places[id(value)]]
        if isinstance(value, (list, tuple)) and type(value).__name__ != "Size":
            return type(value)(swap(v, xs) for v in value)
        return value

    def function(*xs: Any) -> Any:
        out = f(*swap(args, xs), **{k: swap(v, xs) for k, v in kwargs.items()})
        return tuple(t for t in side.tensors(out) if dtype_name(t.dtype) in (
            "float64", "complex128"))  # fmt: skip

    return function, inputs


def passes(side: Side, name: str, sample: Sample, second: bool) -> Exception | None:
    """What a check of the first or of the second derivatives raises."""
    check = side.root.autograd.gradcheck
    again = side.root.autograd.gradgradcheck
    ours = side is not ORACLE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function, inputs = problem(side, TESTED[name].function(side), sample)
            if not any(o.requires_grad for o in function(*inputs)):
                return None
            if second:
                again(function, inputs, atol=1e-3, nondet_tol=1e-12)
            else:
                check(function, inputs, check_forward_ad=ours, nondet_tol=1e-12, atol=1e-4)
        except Exception as e:  # whatever it is, it is the answer
            return e
    return None


@pytest.mark.parametrize(("name", "device"), [p for p, _ in CHECKED], ids=[i for _, i in CHECKED])
def test_derivatives(name: str, device: str) -> None:
    """First derivatives both ways, and second ones, agree with differences (if PyTorch's do)."""
    side, failures = subject(device), []
    for sample in small(name):
        for second in (False, True) if sample.second else (False,):
            failed = passes(side, name, sample, second)
            if failed is not None and passes(ORACLE, name, sample, second) is None:
                text = str(failed)[:600]
                failures.append(f"{sample}{' second' * second}: {told(failed)} {text}")
    assert not failures, "\n".join(failures[:3])

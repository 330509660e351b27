"""Values, dtypes, shapes, views and memory of every op, against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ops.records import IDS, PAIRS, TESTED, report, undefined
from tests.ops.samples.base import Sample, supported
from tests.oracle import ORACLE, Side, attempt, differences, subject, told, torch


def relations(side: Side, args: Any, out: Any) -> list[Any]:
    """For each result: which of the inputs' memories it lies in, and whether it is a view."""
    homes = [x.untyped_storage().data_ptr() for x in side.tensors(args)]
    related = []
    for o in side.tensors(out):
        pointer = o.untyped_storage().data_ptr() if o.numel() else 0
        related.append(
            [pointer and h == pointer for h in homes] + [any(o is x for x in side.tensors(args))]
        )
    return related


@pytest.mark.parametrize(("name", "device"), PAIRS, ids=IDS)
def test_values(name: str, device: str) -> None:
    entry, side, failures = TESTED[name], subject(device), []
    samples = supported(entry)
    for sample in samples:
        if device != "cpu" and undefined(name, sample):
            continue
        want = _run(entry.function(ORACLE), ORACLE, sample)[1]
        got, failure = attempt(_run, entry.function(side), side, sample)
        if failure:
            failures.append(f"{sample}: {told(failure)}")
            continue
        bad = differences(
            want, got[1], side, exact=entry.exact, values=entry.values, slack=entry.slack
        )
        failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, len(samples))


@pytest.mark.parametrize(("name", "device"), PAIRS, ids=IDS)
def test_memory(name: str, device: str) -> None:
    """A result lies in an input's memory where PyTorch's does, with its strides and offset."""
    entry, side, failures = TESTED[name], subject(device), []
    samples = [s for s in supported(entry) if entry.shares]
    for sample in samples:
        if device != "cpu" and any(isinstance(a, torch.device) for a in sample.args):
            continue  # to the CPU, which no memory is shared with
        args, want = _run(entry.function(ORACLE), ORACLE, sample)
        carried, failure = attempt(_run, entry.function(side), side, sample)
        if failure:
            continue  # test_values tells
        theirs, ours = relations(ORACLE, args, want), relations(side, *carried)
        if theirs != ours:
            failures.append(
                f"{sample}: [in input's memory…, is an input] {ours}, PyTorch gives {theirs}"
            )
        elif any(any(r) for r in theirs):
            bad = differences(want, carried[1], side, strides=True, values=False)
            bases = [
                [o._base is None for o in s.tensors(x)]
                for s, x in ((ORACLE, want), (side, carried[1]))
            ]
            bad += [f"_base is None: {bases[1]}, PyTorch gives {bases[0]}"] * (bases[0] != bases[1])
            failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, len(samples))


@pytest.mark.parametrize(("name", "device"), PAIRS, ids=IDS)
def test_inputs_are_left_alone(name: str, device: str) -> None:
    """No op writes into its inputs, or bumps their version."""
    entry, side = TESTED[name], subject(device)
    for sample in supported(entry)[:12]:
        carried, failure = attempt(_run, entry.function(side), side, sample)
        if failure:
            continue
        inputs = side.tensors(carried[0])
        bad = differences(ORACLE.tensors([*sample.args, sample.kwargs]), inputs, side, exact=True)
        assert not bad, f"{sample}: input changed: {bad[0]}"
        assert not any(x._version for x in inputs), f"{sample}: an input's version was bumped"


@pytest.mark.parametrize("name", [n for n, e in TESTED.items() if e.values])
def test_named_results(name: str) -> None:
    """max, sort and their like answer named tuples with PyTorch's field names."""
    entry = TESTED[name]
    for sample in supported(entry)[:30]:
        want = _run(entry.function(ORACLE), ORACLE, sample)[1]
        fields = getattr(type(want), "__match_args__", ())
        if fields:
            got = _run(entry.function(subject("cpu")), subject("cpu"), sample)[1]
            assert all(getattr(got, f) is got[i] for i, f in enumerate(fields)), fields


def _run(f: Any, side: Side, sample: Sample) -> tuple[Any, Any]:
    """(all inputs, result) of a sample on one side."""
    args, kwargs = side.carry((sample.args, sample.kwargs))
    return [args, kwargs], f(*args, **kwargs)

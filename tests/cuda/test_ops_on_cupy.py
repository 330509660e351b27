"""Every op on CuPy's arrays: forward, derivatives, in place and out=, against PyTorch.

Without a GPU the arrays are the stand-in's, which refuses what CuPy refuses; with one they are
CuPy's own (`python3 -m course test --gpu`).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.ops.records import REGISTRY, TESTED, has_inplace, report, undefined
from tests.ops.samples.base import Sample, supported
from tests.ops.test_forms import _inplace, _out, accepts_out, overlaps, takes_tensor
from tests.ops.test_gradients import SLACK, differentiable, first, second
from tests.oracle import (
    ORACLE,
    SELFTEST,
    Side,
    attempt,
    differences,
    error_difference,
    names,
    told,
    tt,
)
from toytorch.backends import base

pytestmark = [
    pytest.mark.usefixtures("device"),
    pytest.mark.skipif(SELFTEST, reason="PyTorch has its own CUDA"),
]
CUDA = Side(tt, "cuda")
# Records whose kernels over sparse arrays are in the tables of `ops.sparse`; PyTorch has no sample
# of the last that is differentiable.
SPARSE = names(
    "_sampled_mm _sparse_addmm _sparse_broadcast_to _sparse_entries _sparse_log_softmax coalesce sparse_mask values "
    "_sparse_log_softmax_backward_data _sparse_softmax _sparse_softmax_backward_data to_dense "
    "_sparse_sparse_matmul _sparse_sum _sparse_sum_backward sparse_mask.sparse"
)
# The second is written once for all devices; the last is for CPUs, and tested below.
FLASH = "_scaled_dot_product_flash_attention_for_cpu"  # which NumPy's arrays alone take
IDLE = {*SPARSE, "_to_device", FLASH, f"{FLASH}_backward"}
STAY = {
    "from_numpy",
    "frombuffer",
    "asarray",
    "as_tensor",
    "tensor",
}  # they take no device, or data


def run(side: Side, f: Any, sample: Sample) -> Any:
    """The result of a sample; ops that make tensors of nothing are told where."""
    args, kwargs = side.carry((sample.args, sample.kwargs))
    if side is CUDA and not side.tensors([args, kwargs]):
        made, refused = attempt(f, *args, **{"device": "cuda", **kwargs})
        if refused and "device" not in str(refused):
            raise refused
        if not refused:
            return made
    return f(*args, **kwargs)


@pytest.mark.parametrize("name", TESTED)
def test_forward(name: str) -> None:
    entry, failures = TESTED[name], []
    samples = supported(entry)
    for sample in samples:
        if undefined(name, sample):
            continue
        want, _ = attempt(run, ORACLE, entry.function(ORACLE), sample)
        got, failure = attempt(run, CUDA, entry.function(CUDA), sample)
        if failure:
            failures.append(f"{sample}: {told(failure)}")
            continue
        bad = differences(
            want, got, CUDA, exact=entry.exact, values=entry.values, slack=entry.slack
        )
        if name not in STAY and "cpu" not in str(sample):
            here = {t.device.type for t in CUDA.tensors(got)}
            bad += ["a result is not on the device"] * (not here <= {"cuda"})
        failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, len(samples))


def test_attention_in_one_op() -> None:
    """A program may ask for it by name, which gives what the CPU gives."""
    attend = tt.core.op.registry["_scaled_dot_product_flash_attention_for_cpu"].function
    q, mask = tt.randn(1, 2, 5, 4), tt.zeros(5, 5).masked_fill(tt.eye(5) > 0, -tt.inf)
    for options in ({}, {"is_causal": True}, {"attn_mask": mask, "scale": 0.3}):
        want = attend(q, q, q, **options)
        there = {k: v.cuda() if isinstance(v, tt.Tensor) else v for k, v in options.items()}
        got = attend(q.cuda(), q.cuda(), q.cuda(), **there)
        for x, y in zip(got, want, strict=True):
            assert x.is_cuda
            assert tt.allclose(x.cpu(), y, atol=1e-6)


@pytest.mark.parametrize("name", [n for n, e in TESTED.items() if e.values and differentiable(n)])
def test_derivatives(name: str) -> None:
    """First and second derivatives."""
    entry, failures = TESTED[name], []
    samples = differentiable(name)
    for sample in samples:
        want, refused = attempt(first, ORACLE, entry.function(ORACLE), sample)
        if refused:
            continue
        got, failure = attempt(first, CUDA, entry.function(CUDA), sample)
        if failure:
            failures.append(f"{sample}: {told(failure)}")
            continue
        bad = differences(want[2], got[2], CUDA, slack=SLACK * entry.slack)
        if sample.second and not bad:
            theirs, refused = attempt(second, ORACLE, want[0], want[2])
            if not refused:
                ours, failure = attempt(second, CUDA, got[0], got[2])
                bad = (
                    [f"second: {told(failure)}"]
                    if failure
                    else [
                        f"second: {b}"
                        for b in differences(theirs, ours, CUDA, slack=SLACK * entry.slack)
                    ]
                )
        failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, len(samples))


@pytest.mark.parametrize(
    "name", [n for n in TESTED if TESTED[n].forms and has_inplace(n) and takes_tensor(n)]
)
def test_in_place(name: str) -> None:
    entry, failures = TESTED[name], []
    samples = [s for s in takes_tensor(name) if not overlaps(s.args[0])]
    for sample in samples:
        want, refused = attempt(_inplace, ORACLE, name, sample)
        got, failure = attempt(_inplace, CUDA, name, sample)
        if refused or failure:
            told_apart = error_difference(refused, failure)
            bad = [told_apart] if told_apart else []
        else:
            how = {"values": entry.values, "exact": entry.exact, "slack": entry.slack}
            bad = differences(want[0], got[0], CUDA, strides=True, **how)
            bad += ["did not return x itself"] * (got[1] is not got[0])
        failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, len(samples))


@pytest.mark.parametrize(
    "name",
    [n for n in TESTED if TESTED[n].forms and TESTED[n].call is None and accepts_out(n)],
)
def test_out(name: str) -> None:
    entry, failures = TESTED[name], []
    samples = accepts_out(name)
    for sample in samples:
        for fitted in (False, True):
            want, refused = attempt(_out, ORACLE, entry, sample, fitted)
            got, failure = attempt(_out, CUDA, entry, sample, fitted)
            if refused:
                continue
            if failure:
                failures.append(f"{sample}: {told(failure)}")
                break
            bad = differences(want[0], got[0], CUDA, values=entry.values, exact=entry.exact)
            bad += ["did not return out itself"] * (got[1] is not got[0])
            failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, 2 * len(samples))


def test_every_record_runs(device: Any) -> None:
    """Which records have run their kernel over CuPy's functions, forward and backward."""
    for op in REGISTRY.values():
        op._kernels.pop(device.xp, None)
    for name, entry in TESTED.items():
        samples = supported(entry)
        every = len(entry.covers) > 4 or name == "unique"
        tried = samples if every else [*samples[:2], *differentiable(name)[:2]]
        for sample in tried:
            attempt(run, CUDA, entry.function(CUDA), sample)
            attempt(first, CUDA, entry.function(CUDA), sample)
    idle = {name for name, op in REGISTRY.items() if device.xp not in op._kernels}
    print(sorted(idle))
    assert not idle - IDLE, sorted(idle - IDLE)


def test_few_kernels_compute_on_the_host() -> None:
    """Those that do are listed with their reasons; none is added without raising this bound."""
    for name, reason in base.HOST.items():
        print(f"{name}: {reason} ({base.copied[name]} calls)")
    assert len(base.HOST) <= 2
    assert all(reason for reason in base.HOST.values())

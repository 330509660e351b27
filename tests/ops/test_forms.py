"""The other forms of an op: method, in place, out=, and the general path beside the fast one."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
import pytest

from tests.ops.records import IDS, PAIRS, REGISTRY, TESTED, has_inplace, has_method, report
from tests.ops.samples.base import Sample, supported
from tests.oracle import (
    ORACLE,
    SELFTEST,
    Side,
    attempt,
    differences,
    error_difference,
    subject,
    told,
    torch,
)  # fmt: skip


def where(test: Any) -> Any:
    """Parametrize over the ops for which test(name) holds."""
    kept = [(p, i) for p, i in zip(PAIRS, IDS, strict=True) if TESTED[p[0]].forms and test(p[0])]
    return pytest.mark.parametrize(
        ("name", "device"), [p for p, _ in kept], ids=[i for _, i in kept]
    )


def takes_tensor(name: str) -> list[Sample]:
    return [s for s in supported(TESTED[name]) if s.args and isinstance(s.args[0], torch.Tensor)]


@where(lambda name: has_method(name) and takes_tensor(name))
def test_method(name: str, device: str) -> None:
    entry, side, failures = TESTED[name], subject(device), []
    samples = takes_tensor(name)
    for sample in samples:
        want, refused = attempt(_method, ORACLE, name, sample)
        got, failure = attempt(_method, side, name, sample)
        if refused:
            continue
        if failure:
            failures.append(f"{sample}: {told(failure)}")
            continue
        bad = differences(
            want, got, side, values=entry.values, exact=entry.exact, slack=entry.slack
        )
        failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, len(samples))


def _method(side: Side, name: str, sample: Sample) -> Any:
    (x, *rest), kwargs = side.carry((sample.args, sample.kwargs))
    found = getattr(x, name)
    return found(*rest, **kwargs) if callable(found) else found


@where(lambda name: has_inplace(name) and takes_tensor(name))
def test_inplace(name: str, device: str) -> None:
    """x.op_(…) changes x, answers x, bumps its version once, and refuses what PyTorch refuses."""
    entry, side, failures = TESTED[name], subject(device), []
    # Expanded targets are the business of test_errors.test_inplace_refusals.
    samples = [s for s in takes_tensor(name) if not overlaps(s.args[0])]
    for sample in samples:
        want, refused = attempt(_inplace, ORACLE, name, sample)
        got, failure = attempt(_inplace, side, name, sample)
        if refused or failure:
            bad = [error_difference(refused, failure)]
            bad = bad if bad[0] else []
        else:
            how = {"values": entry.values, "exact": entry.exact, "slack": entry.slack}
            bad = differences(want[0], got[0], side, strides=True, **how)
            bad += ["did not return x itself"] * (got[1] is not got[0])
            bad += [f"version {got[0]._version}, PyTorch gives {want[0]._version}"] * (
                got[0]._version != want[0]._version
            )
        failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, len(samples))


def overlaps(x: Any) -> bool:
    return any(n > 1 and s == 0 for n, s in zip(x.shape, x.stride(), strict=True))


def _inplace(side: Side, name: str, sample: Sample, grad: bool = False) -> tuple[Any, Any]:
    (x, *rest), kwargs = side.carry((sample.args, sample.kwargs), grad=grad)
    x = x * 1 if grad else x
    return x, getattr(x, name + "_")(*rest, **kwargs)


@where(lambda name: has_inplace(name) and TESTED[name].values and takes_tensor(name))
def test_inplace_gradients(name: str, device: str) -> None:
    """Gradients of (x * 1).op_(…) are PyTorch's."""
    entry, side, failures = TESTED[name], subject(device), []
    samples = [s for s in takes_tensor(name) if s.grad][:14]
    for sample in samples:
        want, refused = attempt(_inplace_gradients, ORACLE, name, sample)
        got, failure = attempt(_inplace_gradients, side, name, sample)
        if refused:
            continue
        if failure:
            failures.append(f"{sample}: {told(failure)}")
            continue
        bad = differences(want, got, side, slack=10 * entry.slack)
        failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, len(samples))


def _inplace_gradients(side: Side, name: str, sample: Sample) -> list[Any]:
    (leaf, *rest), kwargs = side.carry((sample.args, sample.kwargs), grad=True)
    inputs = side.inputs([leaf, *rest, kwargs])
    y = leaf * 1
    getattr(y, name + "_")(*rest, **kwargs)
    if not y.requires_grad:
        return []
    return list(side.root.autograd.grad(y, inputs, side.cotangent(y), allow_unused=True))


@functools.cache
def accepts_out(name: str) -> list[Sample]:
    """The samples whose function has, in PyTorch, an out= that fits one result."""
    entry, good = TESTED[name], []
    for s in supported(entry)[:40]:
        f = entry.function(ORACLE)
        args, kwargs = ORACLE.carry((s.args, s.kwargs))
        plain, _ = attempt(f, *args, **kwargs)
        if isinstance(plain, torch.Tensor) and "out" not in kwargs:
            out = torch.empty(0, dtype=plain.dtype)
            if attempt(f, *args, **kwargs, out=out)[0] is out:
                good.append(s)
    return good


@where(lambda name: TESTED[name].call is None and accepts_out(name))
def test_out(name: str, device: str) -> None:
    """out= is resized where empty, cast into where possible, written, and returned."""
    entry, side, failures = TESTED[name], subject(device), []
    samples = accepts_out(name)
    for sample in samples:
        for fitted in (False, True):
            want, refused = attempt(_out, ORACLE, entry, sample, fitted)
            got, failure = attempt(_out, side, entry, sample, fitted)
            if refused:
                continue
            if failure:
                failures.append(f"{sample}: {told(failure)}")
                break
            bad = differences(want[0], got[0], side, values=entry.values, exact=entry.exact)
            bad += ["did not return out itself"] * (got[1] is not got[0])
            failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, 2 * len(samples))


def _out(side: Side, entry: Any, sample: Sample, fitted: bool) -> tuple[Any, Any]:
    args, kwargs = side.carry((sample.args, sample.kwargs))
    f = entry.function(side)
    plain = f(*args, **kwargs)
    out = side.root.empty(
        tuple(plain.shape) if fitted else (0,), dtype=plain.dtype, device=side.device
    )
    return out, f(*args, **kwargs, out=out)


class Detour:
    """A mode: its presence closes the fast path, and it sees each op that the general path runs."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_call(self, op: Any, args: Any, out: Any) -> Any:
        self.seen.append(op.name)
        return importlib.import_module("toytorch.core.dispatch").run(op, args, out)


@pytest.mark.skipif(SELFTEST, reason="PyTorch has one path")
@where(lambda name: TESTED[name].values)
def test_fast_path_is_general_path(name: str, device: str) -> None:
    """A mode sends calls down the general path; the fast path answers the same bits and grad_fn, and
    gradients up to rounding."""
    watching = importlib.import_module("toytorch.facts.state").watching
    entry, side, failures = TESTED[name], subject(device), []
    samples, detour = supported(entry), Detour()
    for sample in samples:
        fast, failed = attempt(_path, side, entry.function(side), sample)
        with watching(detour):
            general, refused = attempt(_path, side, entry.function(side), sample)
        if failed or refused:
            both = failed and refused and type(failed) is type(refused)
            bad = [] if both else [f"general: {told(refused)}; fast: {told(failed)}"]
        else:
            bad = _bits(side, general, fast)
        failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, len(samples))
    if name in REGISTRY and REGISTRY[name].has_function and samples:
        assert any(op.split(".")[0] == name.split(".")[0] for op in detour.seen), detour.seen[:3]


def _path(side: Side, f: Any, sample: Sample) -> tuple[list[Any], list[Any]]:
    args, kwargs = side.carry((sample.args, sample.kwargs), grad=sample.grad)
    out = side.tensors(f(*args, **kwargs))
    inputs = side.inputs([args, kwargs])
    roots = [o for o in out if o.requires_grad and not o.is_leaf]
    if not roots or not inputs:
        return out, []
    cotangents = [side.cotangent(o) for o in roots]
    return out, list(side.root.autograd.grad(roots, inputs, cotangents, allow_unused=True))


def _bits(side: Side, want: Any, got: Any) -> list[str]:
    """How results and gradients differ; gradients may in the last bits, as one kernel makes them where
    no mode has to see how."""
    bad = []
    for what, a, b in zip(("result", "gradient"), want, got, strict=True):
        for x, y in zip(a, b, strict=True):
            if (x is None) != (y is None):
                bad.append(f"{what}: one path gives None")
            elif x is not None:
                p, q = side.numpy(x), side.numpy(y)
                names = [
                    type(z.grad_fn).__name__ + str(getattr(z.grad_fn, "name", str)())
                    for z in (x, y)
                ]
                equal = p.tobytes() == q.tobytes()
                close = side.device != "cpu" or what == "gradient"
                if close and p.dtype.kind in "fc" and p.shape == q.shape:
                    # Sums in any order; and one kernel for a derivative that is else several records.
                    near = max(1e-9, 8 * np.finfo(p.dtype).eps)
                    equal = np.allclose(p, q, near, near, equal_nan=True)
                if p.dtype != q.dtype or p.shape != q.shape or not equal:
                    bad.append(
                        f"{what}: {q.dtype}{q.shape}, general {p.dtype}{p.shape}, or other bits"
                    )
                elif names[0] != names[1]:
                    bad.append(f"{what}: grad_fn {names[1]}, general path {names[0]}")
    return bad

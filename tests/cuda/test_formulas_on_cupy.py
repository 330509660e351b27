"""Formulas as one kernel on a GPU: the whole way from tensors to the result.

A formula becomes a program, loops, CUDA C, and a launch through RawModule. The stand-in checks the
launch and runs the kernel on the CPU. All kernels are compiled at once: the ops run twice, and note
their sources the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.cuda import raw_module
from tests.cuda.test_ops_on_cupy import CUDA, run
from tests.loops import nvrtc
from tests.ops.records import REGISTRY, TESTED, report
from tests.ops.samples.base import Sample, supported
from tests.oracle import GPU, ORACLE, attempt, differences, dtype_name, told, torch
from toytorch.loops.runtime import cuda

NAMES = [
    n for n, op in REGISTRY.items()
    if n in TESTED and op.stated and op.schema.returns == ("Tensor",) and op.formula.known
]  # fmt: skip
SAMPLES = 16  # of each op: all layouts come before the types
TYPES = ("float32", "float64", "float16")


def samples(name: str) -> list[Sample]:
    """Those of floating-point tensors: the first, which have all layouts, and one of each type."""
    found = [
        s for s in supported(TESTED[name])
        if {dtype_name(x.dtype) for x in ORACLE.tensors([s.args, s.kwargs])} <= set(TYPES)
    ]  # fmt: skip
    rest = {str({x.dtype for x in ORACLE.tensors([s.args])}): s for s in found[SAMPLES:]}
    return [*found[:SAMPLES], *rest.values()]


@pytest.fixture(scope="module")
def kernels(compiling_device: Any) -> Iterator[set[str]]:
    """The sources of all kernels, compiled for the CPU."""
    if GPU:
        yield set()
        return
    raw_module.recording = sources = set()
    for name in NAMES:
        for sample in samples(name):
            attempt(run, CUDA, TESTED[name].function(CUDA), sample)
    raw_module.recording = None
    raw_module.prepare(sources)
    yield sources


@pytest.mark.parametrize("name", NAMES)
def test_it_computes_what_pytorch_does(name: str, kernels: set[str]) -> None:
    entry, failures = TESTED[name], []
    before = len(raw_module.launched)
    tried, real = samples(name), False
    for sample in tried:
        want, _ = attempt(run, ORACLE, entry.function(ORACLE), sample)
        real |= any(x.is_floating_point() for x in ORACLE.tensors(want))
        got, failure = attempt(run, CUDA, entry.function(CUDA), sample)
        bad = (
            [told(failure)]
            if failure
            else differences(want, got, CUDA, exact=entry.exact, slack=entry.slack)
        )
        failures += [f"{sample}: {'; '.join(bad)}"] if bad else []
    report(failures, len(tried))
    # CuPy's functions make masks and integers.
    assert GPU or len(raw_module.launched) > before or not real, "no kernel was launched"


@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_they_compile_for_gpus(architecture: str, kernels: set[str]) -> None:
    """One of each op and type: the layouts differ in index arithmetic only."""
    if GPU:
        pytest.skip("the card's compiler has compiled them")
    seen: dict[str, str] = {}
    for source in sorted(kernels, key=len):
        arithmetic = "".join(
            line for line in source.splitlines() if "(" in line and "[" not in line
        )
        seen[arithmetic] = source
    nvrtc.all_compile_without_spills(list(seen.values()), architecture)


def test_one_launch_for_a_formula(compiling_device: Any) -> None:
    x = CUDA.root.ones(3, 4, device="cuda")
    CUDA.root.nn.functional.silu(x)  # compiles it
    before = len(raw_module.launched)
    y = CUDA.root.nn.functional.silu(x.t())
    assert GPU or len(raw_module.launched) == before + 1
    assert np.allclose(y.cpu().numpy(), 1 / (1 + np.exp(-1.0)))


def test_kernels_are_kept_by_their_source(compiling_device: Any) -> None:
    for shape in ((5,), (7,), (70,)):
        CUDA.root.nn.functional.mish(CUDA.root.ones(*shape, device="cuda"))
    count = len(cuda._by_source)
    CUDA.root.nn.functional.mish(CUDA.root.ones(9, device="cuda"))
    assert len(cuda._by_source) == count


@pytest.mark.skipif(GPU, reason="it tests the stand-in, which a card needs not")
def test_a_launch_with_wrong_arguments_is_refused() -> None:
    """The stand-in's own checks: each of them can fail."""
    code = (
        'extern "C" __global__ void __launch_bounds__(256) kernel(float* y, long long n) {\n'
        "    y[0] = n;\n}"
    )
    kernel = raw_module.RawModule(code=code).get_function("kernel")
    from tests.cuda.stand_in_array import wrap

    y = wrap(np.zeros(1, "float32"))
    kernel((1,), (256,), (y, np.int64(3)))
    assert y.get()[0] == 3
    for grid, block, args in [
        ((1,), (256,), (y,)),
        ((1,), (256,), (y, 3)),
        ((1,), (256,), (y, np.int32(3))),
        ((1,), (256,), (np.zeros(1, "float32"), np.int64(3))),
        ((1,), (256,), (wrap(np.zeros(1)), np.int64(3))),
        ((0,), (256,), (y, np.int64(3))),
        ((1, 70000), (256,), (y, np.int64(3))),
        ((1,), (512,), (y, np.int64(3))),
    ]:
        with pytest.raises(AssertionError):
            kernel(grid, block, args)
    assert torch is not None

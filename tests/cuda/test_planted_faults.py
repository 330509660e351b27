"""Each planted fault is reported with its line; the same kernel without it is silent.

A line with a fault ends in `// FAULT`, which the test looks up; a second place is `// OTHER`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import toytorch
from toytorch.cuda import KernelError, RaceError, kernel


@dataclass(frozen=True)
class Fault:
    """A wrong kernel, what is replaced to mend it, and what the report says.

    kind  the error that is raised; None for a warning in the report
    """

    source: str
    mend: tuple[tuple[str, str], ...]
    kind: type[Exception] | None
    says: tuple[str, ...]
    arrays: tuple[int, ...] = (64, 64)  # lengths of float arrays that are passed
    numbers: tuple[int, ...] = ()
    grid: Any = 1
    block: Any = 64
    dtype: Any = np.float32
    given: dict[str, Any] = field(default_factory=dict)


REVERSE = """extern "C" __global__ void reverse(const float* x, float* out) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];                // OTHER
    // BARRIER
    out[t] = s[63 - t];         // FAULT
}"""
REDUCE = """extern "C" __global__ void reduce(const float* x, float* out) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int k = 32; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];   // FAULT
        // BARRIER
    }
    if (t == 0) out[0] = s[0];
}"""
TILES = """extern "C" __global__ void tiles(const float* x, float* out) {
    __shared__ float s[64];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int turn = 0; turn < 2; ++turn) {
        s[t] = x[turn * 64 + t];          // FAULT
        __syncthreads();
        sum += s[t] + s[(t + 32) % 64];   // OTHER
        // BARRIER
    }
    out[t] = sum;
}"""
BARRIER = (("// BARRIER", "__syncthreads();"),)

FAULTS = {
    "missing barrier after a store": Fault(
        REVERSE, BARRIER, RaceError,
        ("Race on __shared__ memory", "`s[", "writes", "reads", "no __syncthreads() between"),
    ),
    "missing barrier in a reduction": Fault(REDUCE, BARRIER, RaceError, ("`s[", "__shared__")),
    "missing barrier at the end of a tile": Fault(
        TILES, BARRIER, RaceError, ("reads `s[", "writes it"), arrays=(128, 64),
    ),
    "out of bounds in global memory": Fault(
        """extern "C" __global__ void f(const float* x, float* out, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i <= n) out[i] = x[0];   // FAULT
        }""",
        (("i <= n", "i < n"),), KernelError,
        ("Invalid __global__ write of size 4 bytes at kernel.cu:3, thread (36,0,0) in block (1,0,0), "
         "index 100 of 100 elements of `out`",),
        arrays=(1, 100), numbers=(100,), grid=2,
    ),
    "out of bounds in shared memory": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            __shared__ float s[66];
            int t = threadIdx.x;
            s[t + 1] = x[t];
            if (t == 0) s[0] = 0.0f;
            if (t == 0) s[65] = 0.0f;
            __syncthreads();
            out[t] = s[t] + s[t + 3];   // FAULT
        }""",
        (("t + 3", "t + 2"),), KernelError,
        ("Invalid __shared__ read of size 4 bytes", "thread (63,0,0)", "index 66 of 66 elements of `s`"),
    ),
    "out of bounds in a local array": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            float window[4];
            for (int i = 0; i <= 4; ++i)
                window[i] = x[threadIdx.x];   // FAULT
            out[threadIdx.x] = window[3];
        }""",
        (("i <= 4", "i < 4"),), KernelError,
        ("Invalid __local__ write", "index 4 of 4 elements of `window`", "(63 more threads like it)"),
    ),
    "before the beginning": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            int t = threadIdx.x;
            out[t] = x[t - 1];   // FAULT
        }""",
        (("x[t - 1]", "x[t > 0 ? t - 1 : 0]"),), KernelError,
        ("Invalid __global__ read", "thread (0,0,0)", "index -1 of 64 elements of `x`"),
    ),
    "race of two writes to shared memory": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            __shared__ float best;
            best = x[threadIdx.x];   // FAULT
            __syncthreads();
            if (threadIdx.x == 0) out[0] = best;
        }""",
        (("best = x", "if (threadIdx.x == 7) best = x"),), RaceError, ("Race on __shared__", "`best["),
    ),
    "race on a shared counter": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            __shared__ float count[1];
            if (threadIdx.x == 0) count[0] = 0.0f;
            __syncthreads();
            if (x[threadIdx.x] > 0.0f) count[0] += 1.0f;   // FAULT
            __syncthreads();
            if (threadIdx.x == 0) out[0] = count[0];
        }""",
        (("count[0] += 1.0f", "atomicAdd(count, 1.0f)"),), RaceError, ("`count[0]`",),
    ),
    "within a warp without __syncwarp": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            __shared__ float s[32];
            s[threadIdx.x] = x[threadIdx.x];        // OTHER
            // BARRIER
            out[threadIdx.x] = s[threadIdx.x ^ 1];  // FAULT
        }""",
        (("// BARRIER", "__syncwarp();"),), RaceError, ("`s[", "no __syncwarp() or"), arrays=(32, 32), block=32,
    ),
    "wrong warp mask": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            float v = x[threadIdx.x];
            if (threadIdx.x < 16) {
                v += __shfl_down_sync(0xffffffff, v, 8);   // FAULT
            }
            out[threadIdx.x] = v;
        }""",
        (("0xffffffff, v, 8", "0x0000ffff, v, 8, 16"),), KernelError,
        ("Wrong warp mask", "__shfl_down_sync with mask 0xffffffff names lanes 16 to 31",
         "thread (0,0,0) in block (0,0,0)"),
        arrays=(32, 32), block=32,
    ),
    "a mask without the caller": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            unsigned yes = __ballot_sync(0x0000ffff, x[threadIdx.x] > 0.0f);   // FAULT
            out[threadIdx.x] = yes;
        }""",
        (("0x0000ffff", "0xffffffff"),), KernelError, ("Wrong warp mask", "is lane 16"),
        arrays=(32, 32), block=32,
    ),
    "barrier in one branch": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            __shared__ float s[64];
            int t = threadIdx.x;
            s[t] = x[t];
            if (t < 32) {
                __syncthreads();   // FAULT
            }
            __syncthreads();
            out[t] = s[63 - t];
        }""",
        (("if (t < 32) {", "if (blockIdx.x == 0) {"),), KernelError,
        ("Divergent __syncthreads()", "32 of 64 threads of the block are here",
         "thread (32,0,0) in block (0,0,0) is not"),
    ),
    "barrier in a loop of different lengths": Fault(
        """extern "C" __global__ void f(const float* x, float* out, int n) {
            for (int i = threadIdx.x; i < n; i += blockDim.x) {
                out[i] = x[i];
                __syncthreads();   // FAULT
            }
        }""",
        (("i < n", "i < n / 64 * 64"),), KernelError, ("Divergent __syncthreads()", "36 of 64 threads"),
        arrays=(100, 100), numbers=(100,),
    ),
    "uninitialised shared memory": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            __shared__ float s[64];
            int t = threadIdx.x;
            if (t > 0) s[t] = x[t];
            __syncthreads();
            out[t] = s[t];   // FAULT
        }""",
        (("if (t > 0) s[t] = x[t]", "s[t] = x[t]"),), None,
        ("Uninitialized __shared__ read of `s[0]`", "thread (0,0,0)"),
    ),
    "uninitialised local array": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            float a[2];
            a[1] = x[threadIdx.x];
            out[threadIdx.x] = a[0] + a[1];   // FAULT
        }""",
        (("a[1] = x", "a[0] = a[1] = x"),), None, ("Uninitialized __local__ read of `a[0]`",),
    ),
    "uninitialised variable": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            float v;
            if (x[threadIdx.x] > 0.5f) v = 1.0f;
            out[threadIdx.x] = v;   // FAULT
        }""",
        (("float v;", "float v = 0.0f;"),), None, ("Uninitialized variable `v`",),
    ),
    "a lane that is not there": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            float v = x[threadIdx.x];
            out[threadIdx.x] = __shfl_down_sync(0xffffffff, v, 8);   // FAULT
        }""",
        (("v, 8)", "v, 0)"),), None, ("reads lane 16, which is not there", "thread (8,0,0)"),
        arrays=(16, 16), block=16,
    ),
    "race between blocks": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            out[threadIdx.x] += x[blockIdx.x * blockDim.x + threadIdx.x];   // FAULT
        }""",
        (("out[threadIdx.x] +=", "out[blockIdx.x * blockDim.x + threadIdx.x] +="),), RaceError,
        ("Race on __global__ memory", "`out[0]`", "blocks of one launch are not ordered"),
        arrays=(128, 128), grid=2,
    ),
    "blocks read what others write": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            out[i] = x[i];                // OTHER
            __syncthreads();
            out[i] += out[(i + 1) % 128];   // FAULT
        }""",
        (("out[(i + 1) % 128]", "out[i]"),), RaceError, ("Race on __global__ memory", "`out["),
        arrays=(128, 128), grid=2,
    ),
    "division by zero": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            out[threadIdx.x] = 100 / (int)(threadIdx.x);   // FAULT
        }""",
        (("(int)(threadIdx.x)", "(int)(threadIdx.x + 1)"),), KernelError,
        ("Division of an integer by zero", "thread (0,0,0)"),
    ),
    "assertion": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            assert(blockDim.x <= 32);   // FAULT
            out[threadIdx.x] = x[threadIdx.x];
        }""",
        (("<= 32", "<= 64"),), KernelError, ("Assertion failed", "assert(blockDim.x <= 32)"),
    ),
    "misaligned float4": Fault(
        """extern "C" __global__ void f(const float* x, float* out) {
            float4 v = *(const float4*)(x + threadIdx.x);   // FAULT
            out[threadIdx.x] = v.x;
        }""",
        (("x + threadIdx.x", "x + 4 * threadIdx.x"),), KernelError,
        ("is misaligned, float4 needs a multiple of 16 bytes", "thread (1,0,0)"), arrays=(64, 16), block=16,
    ),
}  # fmt: skip


def marked(source: str, mark: str) -> int | None:
    lines = [i for i, line in enumerate(source.split("\n"), 1) if f"// {mark}" in line]
    return lines[0] if lines else None


def run(fault: Fault, source: str, races: str = "error") -> Any:
    arrays = [np.ones(n, fault.dtype) for n in fault.arrays]
    arrays[0][:] = np.arange(len(arrays[0])) % 5 - 1
    launched = kernel(source, races=races)
    return launched[fault.grid, fault.block](*arrays, *fault.numbers)


def mended(fault: Fault) -> str:
    source = fault.source
    for old, new in fault.mend:
        assert old in source
        source = source.replace(old, new)
    return source


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_reported_with_its_line(name: str) -> None:
    fault = FAULTS[name]
    line = marked(fault.source, "FAULT")
    if fault.kind is None:
        findings = run(fault, fault.source).findings
        assert [finding.line for finding in findings] == [line]
        text = findings[0].message
    else:
        with pytest.raises(fault.kind) as caught:
            run(fault, fault.source)
        text = str(caught.value)
    for part in fault.says:
        assert part in text
    assert f"kernel.cu:{line}" in text
    other = marked(fault.source, "OTHER")
    assert other is None or f"kernel.cu:{other}" in text


@pytest.mark.parametrize("name", FAULTS)
def test_the_mended_kernel_is_silent(name: str) -> None:
    done = run(FAULTS[name], mended(FAULTS[name]))
    assert not done.races and not done.findings


def test_races_can_be_listed_or_warned_of() -> None:
    fault = FAULTS["missing barrier after a store"]
    done = run(fault, fault.source, races="list")
    assert done.races[0].lines == (4, 6)
    assert done.races[0].space == "shared" and done.races[0].memory == "s"
    with pytest.warns(toytorch.cuda.RaceWarning, match="Race on __shared__ memory"):
        run(fault, fault.source, races="warn")
    with pytest.raises(ValueError, match="races is one of error, warn, list"):
        kernel(fault.source, races="maybe")
    assert toytorch.cuda.RaceError is RaceError and issubclass(RaceError, RuntimeError)


@pytest.mark.parametrize("warps", [(0, 1), (1, 0)])
@pytest.mark.parametrize("far", [False, True])
def test_every_pair_of_warps_and_blocks_is_seen(warps: tuple[int, int], far: bool) -> None:
    """One thread reads, another writes behind it: in every order of numbers, and across batches."""
    reader, writer = warps
    source = f"""extern "C" __global__ void f(float* x) {{
        int i = {"blockIdx.x" if far else "threadIdx.x"};
        float v = 0.0f;
        if (i == {reader * (3000 if far else 32)} && {"threadIdx.x == 0" if far else "true"}) v = x[0];
        if (i == {writer * (3000 if far else 32)} && {"threadIdx.x == 0" if far else "true"}) x[0] = v + 2.0f;
    }}"""
    done = kernel(source, races="list")[3001 if far else 1, 64](np.zeros(1, np.float32))
    assert len(done.races) == 1
    assert set(done.races[0].lines) == {4, 5}


def test_what_is_no_race() -> None:
    """The same value by many, atomics among themselves, and what a barrier has ordered."""
    source = """extern "C" __global__ void f(int* flag, int* sum) {
        __shared__ int s[64];
        int t = threadIdx.x;
        flag[0] = 1;
        atomicAdd(sum, t);
        for (int turn = 0; turn < 3; ++turn) {
            s[t] = turn;
            __syncthreads();
            int v = s[(t + 1) % 64] + s[(t + 40) % 64];
            __syncthreads();
            s[63 - t] = v;
            __syncthreads();
        }
        if (t < 32) {
            s[t] = t;
            __syncwarp();
            s[(t + 1) % 32] += 1;
        }
    }"""
    flag, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    done = kernel(source)[3000, 64](flag, total)
    assert not done.races
    assert flag[0] == 1 and total[0] == 3000 * 63 * 32


def test_an_atomic_and_a_plain_access_race() -> None:
    source = """extern "C" __global__ void f(int* sum, int* out) {
        atomicAdd(sum, 1);
        out[blockIdx.x * blockDim.x + threadIdx.x] = sum[0];
    }"""
    with pytest.raises(RaceError, match="atomically updates `sum"):
        kernel(source)[2, 32](np.zeros(1, np.int32), np.zeros(64, np.int32))


def test_a_lock_within_a_warp_is_not_waited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    from toytorch.cuda.emulator import run as runner

    monkeypatch.setattr(runner, "LOOP_LIMIT", 1000)
    source = """extern "C" __global__ void f(int* lock) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        atomicExch(lock, 0);
    }"""
    with pytest.raises(KernelError, match=r"kernel.cu:2 has not ended after 1,000 turns"):
        kernel(source)[1, 32](np.zeros(1, np.int32))


def test_a_barrier_behind_a_return_is_noted() -> None:
    source = """extern "C" __global__ void f(float* x, int n) {
        if (threadIdx.x >= n) return;
        __syncthreads();
        x[threadIdx.x] = 1.0f;
    }"""
    done = kernel(source)[1, 64](np.zeros(50, np.float32), 50)
    assert [finding.line for finding in done.findings] == [3]
    assert "before Volta" in done.findings[0].message

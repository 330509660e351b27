"""The stepper of shared memory says what was written between barriers, and shows it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from toytorch import viz
from toytorch.cuda import kernel

SCAN = """extern "C" __global__ void scan(int* x) {
    __shared__ int s[8];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int k = 1; k < 8; k *= 2) {
        int before = t >= k ? s[t - k] : 0;
        __syncthreads();
        s[t] += before;
        __syncthreads();
    }
    x[t] = s[t];
}"""


def test_each_barrier_is_a_step() -> None:
    steps = viz.kernel_steps(kernel(SCAN)[1, 8](np.ones(8, np.int32)))
    assert len(steps) == 1 + 6 + 1
    assert steps.captions[0] == "Barrier 1, line 5: since the start, 8 cells of s were written."
    assert steps.captions[1].endswith("line 8: since the step before, nothing was written.")
    assert [int(re.findall(r"(\d+) cell", c)[0]) for c in steps.captions[2:7:2]] == [7, 6, 4]
    assert steps.captions[-1].startswith("At the end")


def test_the_values_stand_in_the_picture() -> None:
    steps = viz.kernel_steps(kernel(SCAN)[1, 8](np.ones(8, np.int32)))
    last = steps.svg(7)
    assert all(f">{n}</text>" in last for n in range(1, 9))
    assert "s[t] += before;" in last


def test_what_holds_nothing_is_empty_and_one_cell_is_said_so() -> None:
    source = """extern "C" __global__ void f(float* x) {
        __shared__ float s[40];
        if (threadIdx.x == 3) s[3] = 2.5f;
        __syncthreads();
        x[0] = s[3];
    }"""
    steps = viz.kernel_steps(kernel(source)[1, 8](np.zeros(1, np.float32)))
    assert steps.captions[0].endswith("since the start, 1 cell of s was written.")
    assert "2.5" in steps.svg(0)


def test_large_tiles_are_shaded_and_cut() -> None:
    source = """extern "C" __global__ void f(float* x) {
        __shared__ float s[64][40];
        for (int i = 0; i < 64; ++i) s[i][threadIdx.x] = i;
        __syncthreads();
        x[threadIdx.x] = s[63][threadIdx.x];
    }"""
    x = np.zeros(40, np.float32)
    steps = viz.kernel_steps(kernel(source)[1, 40](x))
    assert "s 64 × 40, of which 32 × 33 are shown" in steps.svg(0)
    assert (x == 63).all()


def test_a_kernel_without_shared_memory_has_no_steps() -> None:
    source = 'extern "C" __global__ void f(float* x) { x[0] = 1.0f; }'
    launch = kernel(source)[1, 1](np.zeros(1, np.float32))
    with pytest.raises(ValueError, match="f has no shared memory to show"):
        viz.kernel_steps(launch)

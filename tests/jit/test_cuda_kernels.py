"""The kernels of compiled functions in CUDA C: for GPUs by NVRTC, and run on the CPU."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import pytest

import toytorch as torch
from tests.jit.test_fusion import CASES, values
from tests.loops import nvrtc
from tests.loops.test_cuda import built, printed, ran
from tests.loops.test_loops import close
from toytorch.jit.fuser.kernels import group_of, stand_in

NAMES = [f"{name}, {where}" for name in CASES for where in ("forward", "backward")]


@functools.cache  # traced once, and asked for by all tests
def groups(name: str) -> list[Any]:
    """The fused groups of a function's forward or backward pass."""
    function, shapes = CASES[name.split(", ")[0]]
    inputs = [values(s, i).requires_grad_() for i, s in enumerate(shapes)]
    traced = torch.jit.trace(function, tuple(inputs), check_trace=False)
    plan = traced.executor.plan_for(inputs)
    graph = plan.optimised if name.endswith("forward") else plan.backward_graph
    return [group_of(n) for n in graph.nodes if n.kind == "prim::FusionGroup"]


def arrays(lowered: Any) -> list[np.ndarray]:
    """Arrays as the kernel will get them; the inputs hold numbers."""
    rng = np.random.default_rng(0)
    made = [stand_in(lowered, v) for v in (*lowered.outputs, *lowered.inputs)]
    for array in made[len(lowered.outputs) :]:
        if array.flags.writeable:
            array[...] = rng.random(array.shape) + 0.1
    return made


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """All kernels for the CPU, in the order of NAMES."""
    sources = [printed(g.program, arrays(g))[0].source for name in NAMES for g in groups(name)]
    return built(sources, tmp_path_factory.mktemp("cuda"))


@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
@pytest.mark.parametrize("name", NAMES)
def test_it_compiles_for_gpus(name: str, architecture: str) -> None:
    for lowered in groups(name):
        nvrtc.compiles_without_spills(
            printed(lowered.program, arrays(lowered))[0].source, architecture
        )


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_it_computes_the_same(name: str, descending: bool, library: ctypes.CDLL) -> None:
    first = sum(len(groups(other)) for other in NAMES[: NAMES.index(name)])
    found = groups(name)
    assert found, "nothing is fused here"
    for k, lowered in enumerate(found):
        wanted, got = ran(
            lowered.program, arrays(lowered), getattr(library, f"run_{first + k}"), descending
        )
        assert got is not None, "a barrier that not all threads reach"
        for a, b in zip(got, wanted):
            close(a, b)

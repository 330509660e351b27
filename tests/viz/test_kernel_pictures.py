"""Accesses of a warp, and races, as pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.viz.helpers import parsed, texts
from toytorch import viz
from toytorch.cuda import kernel


def strided(step: int) -> list[int | None]:
    return [4 * step * thread for thread in range(32)]


@pytest.mark.parametrize(
    ("step", "sectors", "share"), [(1, 4, "100"), (2, 8, "50"), (8, 32, "12"), (0, 1, "12")]
)
def test_sectors_and_how_much_of_them_is_wanted(step: int, sectors: int, share: str) -> None:
    said = repr(viz.warp_access(strided(step)))
    assert f"{sectors} sector" in said and f"{share} %" in said


@pytest.mark.parametrize(("step", "wavefronts"), [(0, 1), (1, 1), (2, 2), (32, 32), (33, 1)])
def test_wavefronts_agree_with_the_emulator(step: int, wavefronts: int) -> None:
    picture = viz.warp_access(strided(step), shared=True)
    assert repr(picture) == f"<warp access: {wavefronts} wavefront{'s' * (wavefronts != 1)}>"
    source = f"""extern "C" __global__ void f(float* out) {{
        __shared__ float s[32 * 33];
        s[threadIdx.x] = 0.0f;
        out[threadIdx.x] = s[threadIdx.x * {step}];
    }}"""
    done = kernel(source, races="list")[1, 32](np.zeros(32, np.float32))
    assert done.lines[4].wavefronts == wavefronts


def test_threads_that_want_the_same_word_share_a_box() -> None:
    assert "×32" in texts(viz.warp_access([0] * 32, shared=True).svg)


@pytest.mark.parametrize("addresses", [[], [None], [2], [-4], [0] * 33])
def test_requests_that_no_warp_makes(addresses: list[Any]) -> None:
    with pytest.raises(ValueError):
        viz.warp_access(addresses)


RACE = """extern "C" __global__ void f(float* x) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x];
}"""


def test_a_race_names_both_threads() -> None:
    done = kernel(RACE, races="list")[1, 64](np.zeros(64, np.float32))
    picture = viz.race(done)
    said = texts(picture.svg)
    before, after = done.races[0].before, done.races[0].after
    index = done.races[0].index
    assert f"thread {before.thread[0]} writes s[{index}]" in said
    assert f"thread {after.thread[0]} reads s[{index}]" in said
    assert "no __syncthreads() between them" in said
    assert parsed(picture.svg) is not None
    with pytest.raises(ValueError, match="no number 9"):
        viz.race(done, 9)


def test_a_race_of_blocks_on_one_line() -> None:
    source = 'extern "C" __global__ void f(float* x) {\n    x[0] = blockIdx.x;\n}'
    done = kernel(source, races="list")[2, 1](np.zeros(1, np.float32))
    said = texts(viz.race(done).svg)
    assert "thread 0 of block 0 writes x[0]" in said
    assert "thread 0 of block 1 writes x[0]" in said
    assert "nothing orders blocks of one launch" in said

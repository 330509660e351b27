"""What runs in emulation is real CUDA C: NVIDIA's compiler takes every kernel of the tests."""

from __future__ import annotations

import pytest

from tests.cuda.kernels import CASES
from tests.cuda.test_emulated_kernels import FOLDER
from tests.cuda.test_planted_faults import FAULTS, mended
from tests.loops import nvrtc
from toytorch.cuda.kernels import with_prelude

ARCHITECTURES = ("sm_75", "sm_90", "sm_100")
SOURCES = {
    **{path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.cu"))},
    **{name: case.source for name, case in CASES.items() if "cuda_fp16" not in case.source},
    **{name: mended(fault) for name, fault in FAULTS.items()},
}  # NVRTC has no file cuda_fp16.h; with CuPy, it has CUDA's


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_kernels_compile(architecture: str) -> None:
    assert len(SOURCES) >= 60
    for source in SOURCES.values():
        # A template has no code of its own: a kernel beside it makes the compiler say its registers.
        beside = 'extern "C" __global__ void beside() {}\n'
        nvrtc.compiles_without_spills(with_prelude(source) + "\n" + beside, architecture)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_the_prelude_defines(architecture: str) -> None:
    source = """extern "C" __global__ void f(float* x, const uint32_t* k, int64_t n) {
        uint8_t b = 1; int32_t i = INT_MIN + INT_MAX; uint u = UINT_MAX;
        x[0] = INFINITY + FLT_MAX + FLT_MIN + FLT_EPSILON + M_PI + NAN + k[n] + b + i + u;
    }"""
    nvrtc.compiles_without_spills(with_prelude(source), architecture)

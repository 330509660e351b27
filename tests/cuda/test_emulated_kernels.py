"""Kernels in emulation compute what NumPy computes, and count what they should."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import toytorch
from tests.cuda.kernels import CASES, K, X
from toytorch.cuda import CompileError, KernelError, kernel

FOLDER = Path(__file__).parents[2] / "examples" / "kernels"


def examples() -> ModuleType:
    spec = importlib.util.spec_from_file_location("examples_of_kernels", FOLDER / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLES = examples().EXAMPLES


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_agrees_with_numpy(name: str) -> None:
    case = CASES[name]
    arguments = case.arguments()
    compiled = kernel(case.source, case.name)
    done = compiled(case.grid, case.block, arguments, shared_mem=case.shared)
    result = arguments[case.result]
    tolerance = {"float32": 2e-5, "float64": 1e-12, "float16": 1e-3}.get(str(result.dtype), 0)
    np.testing.assert_allclose(result, case.wanted(), rtol=tolerance, atol=tolerance)
    assert done is not None and not done.races and not done.findings


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_agrees_with_numpy(name: str) -> None:
    done, result, wanted = EXAMPLES[name]()
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
    assert not done.races and not done.findings


def test_every_example_is_launched() -> None:
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(EXAMPLES)
    assert len(CASES) + len(EXAMPLES) >= 30


def test_tensors_are_written_in_place_and_count_it() -> None:
    add = kernel((FOLDER / "add.cu").read_text())
    x, out = toytorch.arange(40.0), toytorch.zeros(40)
    before = out._version
    add[2, 32](x, x, out, 40)
    assert out.tolist() == (2 * x).tolist()
    assert out._version == before + 1 and x._version == 0


def test_many_blocks_are_emulated_in_several_batches() -> None:
    n = 300_000
    x, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    done = kernel((FOLDER / "add.cu").read_text())[-(-n // 256), 256](x, x, out, n)
    np.testing.assert_array_equal(out, 2 * x)
    assert done.totals.flops == n and done.totals.written == 4 * n


def test_the_figures_of_the_readme() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    totals = {name: launched()[0].totals for name, launched in EXAMPLES.items()}
    for how in ("interleaved", "sequential", "shuffle"):
        t = totals[f"reduce_{how}"]
        row = rf"\| `reduce_{how}`.*\| {t.divergent} of {t.branches} \| {t.wavefronts} \|"
        assert re.search(row, text)
    for how in ("naive", "tiled", "padded"):
        t = totals[f"transpose_{how}"]
        assert re.search(rf"\| `transpose_{how}`.*\| {t.sectors} \| {t.wavefronts or ''}", text)
        assert f"least: {t.least_sectors}" in text
    for how in ("naive", "tiled"):
        done = EXAMPLES[f"matmul_{how}"]()[0]
        row = rf"\| `matmul_{how}` \| {done.intensity:.3g} \| {done.totals.sectors} \|"
        assert re.search(row, text)
    assert [totals[f"softmax_{how}"].read for how in ("three_passes", "online")] == [12000, 8000]


# counts


def test_coalescing_is_counted() -> None:
    source = """extern "C" __global__ void f(const float* x, float* out, int stride) {
        int i = threadIdx.x;
        out[i] = x[i * stride];
    }"""
    for stride, sectors in ((1, 4), (2, 8), (8, 32), (0, 1)):
        x, out = np.ones(32 * 8, np.float32), np.zeros(32, np.float32)
        done = kernel(source)[1, 32](x, out, stride)
        assert done.totals.sectors == sectors + 4
        assert done.totals.least_sectors == min(sectors, 4) + 4


def test_a_misaligned_request_takes_a_sector_more() -> None:
    source = """extern "C" __global__ void f(const float* x, float* out) {
        out[threadIdx.x] = x[threadIdx.x + 1];
    }"""
    done = kernel(source)[1, 32](np.ones(33, np.float32), np.zeros(32, np.float32))
    assert (done.totals.sectors, done.totals.least_sectors) == (5 + 4, 4 + 4)


@pytest.mark.parametrize(
    ("type", "stride", "ways"),
    [("float", 1, 1), ("float", 2, 2), ("float", 3, 1), ("float", 32, 32), ("float", 33, 1)],
)
def test_bank_conflicts_are_counted(type: str, stride: int, ways: int) -> None:
    source = f"""extern "C" __global__ void f({type}* out) {{
        __shared__ {type} s[32 * {stride}];
        s[threadIdx.x * {stride}] = threadIdx.x;
        out[threadIdx.x] = s[threadIdx.x * {stride}];
    }}"""
    done = kernel(source)[1, 32](np.zeros(32, np.float32))
    assert done.lines[3].bank_conflict == done.lines[4].bank_conflict == ways
    assert done.totals.wavefronts == 2 * ways and done.totals.least_wavefronts == 2


def test_wide_words_are_served_by_parts_of_a_warp() -> None:
    source = """extern "C" __global__ void f(float4* out) {
        __shared__ float4 s[32];
        s[threadIdx.x] = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
        out[threadIdx.x] = s[threadIdx.x];
    }"""
    done = kernel(source)[1, 32](np.zeros(128, np.float32))
    assert done.totals.wavefronts == done.totals.least_wavefronts == 8
    assert done.totals.sectors == done.totals.least_sectors == 16


def test_divergence_is_counted_by_warp() -> None:
    source = """extern "C" __global__ void f(float* x) {
        if (threadIdx.x < 16) x[threadIdx.x] = 1.0f;
        if (threadIdx.x < 32) x[threadIdx.x] = 2.0f;
    }"""
    done = kernel(source)[1, 64](np.zeros(64, np.float32))
    assert (done.lines[2].branches, done.lines[2].divergent) == (2, 1)
    assert (done.lines[3].branches, done.lines[3].divergent) == (2, 0)


def test_flops_and_intensity() -> None:
    case = """extern "C" __global__ void f(const float* x, float* out) {
        int i = threadIdx.x;
        out[i] = fmaf(x[i], x[i], 1.0f) + expf(x[i]) * 2.0f;
        out[i] = out[i] * 0.5;
    }"""
    done = kernel(case)[1, 32](X[:32].copy(), np.zeros(32, np.float32))
    assert done.lines[3].flops == 32 * (2 + 1 + 1 + 1)
    assert (done.lines[4].flops, done.lines[4].flops_double) == (32, 32)
    assert done.intensity == done.totals.flops / (32 * 4 * 6)


# the report


def test_the_report_shows_the_source_with_its_counts() -> None:
    done, _, _ = EXAMPLES["transpose_tiled"]()
    text = str(done)
    assert "32-way" in text and "tile[threadIdx.x][threadIdx.y]" in text
    assert "Registers are not known here" in text
    page = done._repr_html_()
    assert "32-way" in page and "<script" not in page and "http" not in page


def test_a_function_without_a_result_is_noted() -> None:
    source = """__device__ int sign(int v) { if (v > 0) return 1; }
    extern "C" __global__ void f(int* x) {
        x[threadIdx.x] = sign(x[threadIdx.x]);
    }"""
    done = kernel(source)[1, 4](np.int32([1, 2, 0, 3]))
    assert [finding.line for finding in done.findings] == [3]
    assert "sign ends without a result" in done.findings[0].message


def test_shared_memory_that_the_launch_gives() -> None:
    source = """extern "C" __global__ void f(float* x) {
        extern __shared__ char raw[];
        float* a = (float*)raw;
        double* b = (double*)(a + 32);
        a[threadIdx.x] = x[threadIdx.x];
        b[threadIdx.x] = 0.5;
        __syncthreads();
        x[threadIdx.x] = a[31 - threadIdx.x] + b[threadIdx.x ^ 1];
    }"""
    x = np.arange(32, dtype=np.float32)
    with pytest.raises(KernelError, match="the launch gives it no bytes, see shared_mem"):
        kernel(source)[1, 32](x)
    kernel(source)[1, 32, 32 * 4 + 32 * 8](x)
    assert x.tolist() == [31.5 - i for i in range(32)]
    with pytest.raises(KernelError, match=r"Invalid __shared__ write of size 8 bytes"):
        kernel(source)[1, 32, 32 * 4 + 31 * 8](x)


def test_bytes_of_neighbours_are_no_race() -> None:
    source = """extern "C" __global__ void f(int* x) {
        __shared__ int s[16];
        unsigned char* bytes = (unsigned char*)s;
        bytes[threadIdx.x] = threadIdx.x;
        __syncthreads();
        x[threadIdx.x] = bytes[63 - threadIdx.x];
    }"""
    x = np.zeros(64, np.int32)
    kernel(source)[1, 64](x)
    assert x.tolist() == list(range(63, -1, -1))


def test_pointers_to_different_arrays_in_one_warp() -> None:
    source = """extern "C" __global__ void f(const float* x, const float* y, float* out) {
        const float* mine = threadIdx.x % 2 ? y : x;
        out[threadIdx.x] = mine[threadIdx.x];
    }"""
    x, y, out = (
        np.arange(32, dtype=np.float32),
        np.full(32, 7, np.float32),
        np.zeros(32, np.float32),
    )
    kernel(source)[1, 32](x, y, out)
    np.testing.assert_array_equal(out, np.where(np.arange(32) % 2, y, x))
    with pytest.raises(KernelError, match="index 20 of 20 elements of `x`"):
        kernel(source)[1, 32](x[:20], y, out)
    with pytest.raises(KernelError, match="a null pointer"):
        kernel(source)[1, 32](x, None, out)


def test_printf_writes_in_the_order_of_threads(capsys: pytest.CaptureFixture[str]) -> None:
    source = r"""extern "C" __global__ void f(const float* x) {
        if (threadIdx.x < 2) printf("%d: %5.2f %u%%\n", threadIdx.x, x[threadIdx.x], -1);
    }"""
    done = kernel(source)[1, 32](np.float32([1.25, -2]))
    assert done.printed == "0:  1.25 4294967295%\n1: -2.00 4294967295%\n"
    assert capsys.readouterr().out == done.printed


# arguments


FILL = """extern "C" __global__ void fill(float* x, int n, float v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = v;
}"""


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((np.zeros(4), 4, 1.0), TypeError, "`x` is 'float*', elements of float32, and the array"),
        ((np.zeros((4, 4), np.float32)[:, 0], 4, 1.0), ValueError, "`x` is not contiguous"),
        ((np.zeros(4, np.float32), 4.5, 1.0), TypeError, "`n` is 'int', and got 4.5"),
        ((np.zeros(4, np.float32), 2**40, 1.0), OverflowError, "does not fit"),
        ((np.zeros(4, np.float32), 4), TypeError, "takes 3 arguments, and got 2"),
        (([1.0], 4, 1.0), TypeError, "give a tensor or an array"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: tuple[object, ...], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        kernel(FILL)[1, 32](*arguments)
    assert text in str(caught.value)


def test_launches_that_cuda_refuses() -> None:
    x = np.zeros(4, np.float32)
    for shape in ((1, 1025), (1, (2, 2, 65)), ((1, 65536), 32)):
        with pytest.raises(ValueError, match="invalid configuration argument"):
            kernel(FILL)[shape](x, 4, 1.0)
    with pytest.raises(ValueError, match="bytes of shared memory"):
        kernel(FILL)[1, 32, 300_000](x, 4, 1.0)
    with pytest.raises(ValueError, match="at least 1"):
        kernel(FILL)[0, 32](x, 4, 1.0)


def test_read_only_arrays_stay_so() -> None:
    x = np.zeros(4, np.float32)
    x.flags.writeable = False
    with pytest.raises(KernelError, match="read-only"):
        kernel(FILL)[1, 32](x, 4, 1.0)


def test_the_default_block_and_the_call_of_cupy() -> None:
    for launch in (
        lambda k, x: k[2](x, 100, 3.0),
        lambda k, x: k((2,), (64,), (x, 100, 3.0), shared_mem=0),
    ):
        x = np.zeros(100, np.float32)
        launch(kernel(FILL, block=64), x)
        assert (x == 3).all()


def test_options_define_macros() -> None:
    source = 'extern "C" __global__ void f(int* x) { x[0] = SIZE; }'
    x = np.zeros(1, np.int32)
    kernel(source, options=["-DSIZE=42", "--use_fast_math"])[1, 1](x)
    assert x[0] == 42
    with pytest.raises(CompileError, match="'SIZE' is not declared"):
        kernel(source)


def test_one_of_several_kernels() -> None:
    source = """extern "C" __global__ void one(int* x) { x[0] = 1; }
    extern "C" __global__ void two(int* x) { x[0] = 2; }"""
    x = np.zeros(1, np.int32)
    kernel(source, "two")[1, 1](x)
    assert x[0] == 2
    with pytest.raises(CompileError, match="say which kernel: the source has one, two"):
        kernel(source)
    assert K.dtype == np.int32

"""Small kernels, each for one part of the language, with what NumPy says they compute.

They are real CUDA C: NVRTC compiles every one of them (test_nvrtc.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

rng = np.random.default_rng(7)
N = 200
X = rng.standard_normal(N).astype(np.float32)
Y = rng.standard_normal(N).astype(np.float32)
K = rng.integers(-50, 50, N).astype(np.int32)
U = rng.integers(0, 2**32, N, dtype=np.uint64).astype(np.uint32)


@dataclass(frozen=True)
class Case:
    """A kernel, its launch, and the result: the last array among the arguments that is written."""

    source: str
    arguments: Callable[[], list[Any]]
    result: int
    wanted: Callable[[], Any]
    grid: Any = 7
    block: Any = 32
    name: str | None = None
    shared: int = 0


def empty(dtype: Any = np.float32, n: int = N) -> Any:
    return np.zeros(n, dtype)


def elementwise(body: str, x: Any, wanted: Callable[[], Any], to: str = "float", before: str = "") -> Case:  # fmt: skip
    """`out[i] = …` of one array."""
    names = {"float32": "float", "int32": "int", "uint32": "unsigned"}
    dtype = {"float": np.float32, "int": np.int32, "unsigned": np.uint32, "double": np.float64}[to]
    source = f"""{before}
extern "C" __global__ void f(const {names[str(x.dtype)]}* x, {to}* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {body}
}}"""
    return Case(source, lambda: [x, empty(dtype), N], 1, wanted)


def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def rotated(x: Any, count: int) -> Any:
    return (x << np.uint32(count)) | (x >> np.uint32(32 - count))


CASES = {
    "saxpy": Case(
        """extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] = fmaf(a, x[i], y[i]);
        }""",
        lambda: [2.5, X, Y.copy(), N], 2, lambda: np.float32(2.5) * X + Y,
    ),
    "grid stride": Case(
        """extern "C" __global__ void f(const float* __restrict__ x, float* __restrict__ out, int n) {
            for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
                out[i] = x[i] * x[i];
        }""",
        lambda: [X, empty(), N], 1, lambda: X * X, grid=2,
    ),
    "relu with a ternary": elementwise("out[i] = x[i] > 0.0f ? x[i] : 0.0f;", X, lambda: np.maximum(X, 0)),
    "gelu with a device function": elementwise(
        "out[i] = gelu(x[i]);", X,
        lambda: 0.5 * X * (1 + np.tanh(0.79788456 * (X + 0.044715 * X**3))),
        before="""__device__ __forceinline__ float gelu(float v) {
            return 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
        }""",
    ),
    "continue and break": elementwise(
        """int sum = 0;
        for (int j = 0; ; ++j) {
            if (j % 3 == 0) continue;
            if (j > x[i] + 50) break;
            sum += j;
        }
        out[i] = sum;""", K,
        lambda: [sum(j for j in range(1, k + 51) if j % 3) for k in K.tolist()], "int",
    ),
    "while with its own turns": elementwise(
        """int v = x[i] + 51, steps = 0;
        while (v != 1) { v = v % 2 == 0 ? v / 2 : 3 * v + 1; ++steps; }
        out[i] = steps;""", K, lambda: [collatz(k + 51) for k in K.tolist()], "int",
    ),
    "do while": elementwise(
        "int v = abs(x[i]), digits = 0; do { digits++; v /= 10; } while (v); out[i] = digits;", K,
        lambda: [len(str(abs(k))) for k in K.tolist()], "int",
    ),
    "switch with a fall through": elementwise(
        """int v = 0;
        switch (x[i] & 3) {
            case 0: v = 10; break;
            case 1: v = 20;
            case 2: v += 1; break;
            default: v = -1;
        }
        out[i] = v;""", K, lambda: np.array([10, 21, 1, -1])[K & 3], "int",
    ),
    "division and remainder of C": elementwise(
        "out[i] = x[i] / 7 * 1000 + x[i] % 7;", K,
        lambda: np.trunc(K / 7) * 1000 + np.fmod(K, 7), "int",
    ),
    "unsigned wraps around": elementwise(
        "unsigned v = x[i]; v ^= v << 13; v ^= v >> 17; v ^= v << 5; out[i] = v * 2654435761u;", U,
        lambda: _xorshift(U), "unsigned",
    ),
    "rotation by a macro": elementwise(
        "out[i] = ROTATE(x[i], 9);", U, lambda: rotated(U, 9), "unsigned",
        before="#define ROTATE(v, k) (((v) << (k)) | ((v) >> (32 - (k))))",
    ),
    "bits": elementwise(
        "out[i] = __popc(x[i]) + 100 * __clz(x[i]) + 10000 * __ffs(x[i]);", U,
        lambda: [v.bit_count() + 100 * (32 - v.bit_length()) + 10000 * ((v & -v).bit_length()) for v in U.tolist()],
        "int",
    ),
    "double where a constant has no f": elementwise(
        "out[i] = x[i] * 0.1;", X, lambda: X.astype(np.float64) * 0.1, "double",
    ),
    "mixed signs compare as unsigned": elementwise(
        "unsigned limit = 10; out[i] = x[i] < limit;", K, lambda: K.astype(np.uint32) < 10, "int",
    ),
    "floats to whole numbers": elementwise(
        "out[i] = (int)(x[i] * 1000.0f);", X, lambda: np.trunc(X * np.float32(1000)), "int",
    ),
    "local array": elementwise(
        """float power[6];
        power[0] = 1.0f;
        #pragma unroll
        for (int j = 1; j < 6; ++j) power[j] = power[j - 1] * x[i];
        float sum = 0.0f;
        for (int j = 0; j < 6; ++j) sum += power[j];
        out[i] = sum;""", X, lambda: sum(X.astype(np.float64) ** j for j in range(6)),
    ),
    "initialised arrays of two dimensions": elementwise(
        "const float w[2][3] = {{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f}}; out[i] = w[i % 2][i % 3] * x[i];", X,
        lambda: np.array([[1, 2, 3], [4, 5, 0]])[np.arange(N) % 2, np.arange(N) % 3] * X,
    ),
    "constant memory": elementwise(
        "float y = 0.0f; for (int j = 0; j < 4; ++j) y = y * x[i] + c[j]; out[i] = y;", X,
        lambda: np.polyval([0.5, -1, 2, 3], X), before="__constant__ float c[4] = {0.5f, -1.0f, 2.0f, 3.0f};",
    ),
    "pointers that walk": elementwise(
        "const float* p = x + i; const float* end = x + n; float s = 0.0f; while (p < end) s += *p++; out[i] = s;",
        X, lambda: np.cumsum(X[::-1].astype(np.float64))[::-1],
    ),
    "results through a pointer and a reference": elementwise(
        "float s; float c = 0.0f; both(x[i], &s, c); out[i] = s * s + c * c;", X, lambda: np.ones(N),
        before="__device__ void both(float v, float* s, float& c) { *s = sinf(v); c = cosf(v); }",
    ),
    "local references": elementwise(
        """float a = 1.0f; float& r = a; r += x[i]; auto& slot = out[i]; slot = a;
        assert(n > 0 && "there are elements");""", X, lambda: X + 1,
    ),
    "template of a type": elementwise(
        "out[i] = square(x[i]) + square<int>((int)x[i]);", X, lambda: X * X + np.trunc(X) ** 2,
        before="template <typename T> __device__ T square(T v) { return v * v; }",
    ),
    "template of a number": elementwise(
        "out[i] = power<3>(x[i]);", X, lambda: X**3,
        before="""template <int N> __device__ float power(float v) {
            float found = 1.0f;
            for (int j = 0; j < N; ++j) found *= v;
            return found;
        }""",
    ),
    "&& does not ask its right side": elementwise(
        "out[i] = i > 0 && x[i - 1] > 0.0f || i == 0 ? 1.0f : 0.0f;", X,
        lambda: np.concatenate([[1], X[:-1] > 0]),
    ),
    "comma, sizeof, casts": elementwise(
        "int a = 3, b = (a++, a * 2); out[i] = (float)b + sizeof(float4) + (unsigned char)300 + float(1) / 2;", X,
        lambda: np.full(N, 8 + 16 + 44 + 0.5),
    ),
    "math": elementwise(
        """float v = fabsf(x[i]) + 0.5f;
        out[i] = expf(-v) + logf(v) + sqrtf(v) + rsqrtf(v) + powf(v, 1.5f) + erff(v) + floorf(v)
               + ceilf(v) + fminf(v, 1.0f) + log1pf(v) + exp2f(v) + atan2f(v, 2.0f) + cbrtf(v);""", X,
        lambda: _math(np.abs(X.astype(np.float64)) + 0.5),
    ),
    "reinterpreted as float4": Case(
        """extern "C" __global__ void f(const float* x, float* out, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (4 * i >= n) return;
            float4 v = reinterpret_cast<const float4*>(x)[i];
            v.x += v.w;
            ((float4*)out)[i] = make_float4(v.x, v.y * 2.0f, v.z, v.w);
        }""",
        lambda: [X, empty(), N], 1, lambda: _fours(X), grid=2,
    ),
    "halves": Case(
        """#include <cuda_fp16.h>
        extern "C" __global__ void f(const __half* x, __half* out, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) out[i] = __float2half(__half2float(x[i]) * 2.0f);
        }""",
        lambda: [X.astype(np.float16), empty(np.float16), N], 1, lambda: X.astype(np.float16) * 2,
    ),
    "warp reduction by xor": Case(
        """extern "C" __global__ void f(const float* x, float* out) {
            float v = x[threadIdx.x];
            for (int s = 16; s; s >>= 1) v += __shfl_xor_sync(0xffffffff, v, s);
            out[threadIdx.x] = v;
        }""",
        lambda: [X[:64], empty(n=64)], 1, lambda: np.repeat(X[:64].reshape(2, 32).sum(1), 32), 1, 64,
    ),
    "warp scan by up": Case(
        """extern "C" __global__ void f(const int* x, int* out) {
            int lane = threadIdx.x % 32, v = x[threadIdx.x];
            for (int s = 1; s < 32; s *= 2) {
                int before = __shfl_up_sync(0xffffffff, v, s);
                if (lane >= s) v += before;
            }
            out[threadIdx.x] = v;
        }""",
        lambda: [K[:64], empty(np.int32, 64)], 1, lambda: K[:64].reshape(2, 32).cumsum(1).ravel(), 1, 64,
    ),
    "shuffle in groups of 8": Case(
        """extern "C" __global__ void f(const int* x, int* out) {
            out[threadIdx.x] = __shfl_sync(0xffffffff, x[threadIdx.x], 3, 8);
        }""",
        lambda: [K[:32], empty(np.int32, 32)], 1, lambda: np.repeat(K[3:32:8], 8), 1, 32,
    ),
    "votes": Case(
        """extern "C" __global__ void f(const int* x, unsigned* out) {
            int v = x[threadIdx.x];
            unsigned yes = __ballot_sync(0xffffffff, v > 0);
            if (threadIdx.x == 0) {
                out[0] = yes;
                out[3] = __activemask();
            }
            __syncwarp();
            int any = __any_sync(0xffffffff, v == 49), all = __all_sync(0xffffffff, v < 50);
            if (threadIdx.x == 1) { out[1] = any; out[2] = all; }
        }""",
        lambda: [K[:32], empty(np.uint32, 4)], 1,
        lambda: [sum(1 << i for i in range(32) if K[i] > 0), int((K[:32] == 49).any()), 1, 1], 1, 32,
    ),
    "atomics on floats": Case(
        """extern "C" __global__ void f(const float* x, float* sum, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) atomicAdd(sum, x[i]);
        }""",
        lambda: [X, empty(n=1), N], 1, lambda: X.sum(keepdims=True),
    ),
    "compaction by the old value": Case(
        """extern "C" __global__ void f(const int* x, int* out, int* count, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n && x[i] > 0) out[atomicAdd(count, 1)] = x[i];
        }""",
        lambda: [K, empty(np.int32), empty(np.int32, 1), N], 1,
        lambda: np.concatenate([K[K > 0], np.zeros(N - (K > 0).sum(), np.int32)]),
    ),
    "largest float by atomicCAS": Case(
        """extern "C" __global__ void f(const float* x, int* bits, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            int seen = __float_as_int(-1e30f), before;
            do {
                before = seen;
                seen = atomicCAS(bits, before, __float_as_int(fmaxf(__int_as_float(before), x[i])));
            } while (seen != before);
        }""",
        lambda: [X, np.float32([-1e30]).view(np.int32), N], 1, lambda: X.max(keepdims=True).view(np.int32),
    ),
    "stencil with halo": Case(
        """#define B 32
        extern "C" __global__ void f(const float* x, float* out, int n) {
            __shared__ float s[B + 2];
            int i = blockIdx.x * B + threadIdx.x, t = threadIdx.x + 1;
            s[t] = i < n ? x[i] : 0.0f;
            if (t == 1) s[0] = i > 0 ? x[i - 1] : 0.0f;
            if (t == B) s[B + 1] = i + 1 < n ? x[i + 1] : 0.0f;
            __syncthreads();
            if (i < n) out[i] = (s[t - 1] + s[t] + s[t + 1]) / 3.0f;
        }""",
        lambda: [X, empty(), N], 1, lambda: np.convolve(X, np.ones(3) / 3, "same"),
    ),
    "grid of three dimensions": Case(
        """extern "C" __global__ void f(int* out) {
            int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
            int z = blockIdx.z * blockDim.z + threadIdx.z;
            int wide = gridDim.x * blockDim.x, tall = gridDim.y * blockDim.y;
            out[(z * tall + y) * wide + x] = 100 * z + 10 * y + x;
        }""",
        lambda: [empty(np.int32, 4 * 6 * 6)], 0,
        lambda: np.array([100 * z + 10 * y + x for z in range(4) for y in range(6) for x in range(6)]),
        (2, 3, 2), (3, 2, 2),
    ),
    "layer norm, a warp a row": Case(
        """extern "C" __global__ void f(const float* x, float* out, int n) {
            int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
            const float* mine = x + row * n;
            float sum = 0.0f, squares = 0.0f;
            for (int i = lane; i < n; i += 32) { float v = mine[i]; sum += v; squares += v * v; }
            for (int s = 16; s > 0; s /= 2) {
                sum += __shfl_xor_sync(0xffffffff, sum, s);
                squares += __shfl_xor_sync(0xffffffff, squares, s);
            }
            float mean = sum / n, scale = rsqrtf(squares / n - mean * mean + 1e-5f);
            for (int i = lane; i < n; i += 32) out[row * n + i] = (mine[i] - mean) * scale;
        }""",
        lambda: [X, empty(), 50], 1, lambda: _layer_norm(X.reshape(4, 50)), 2, 64,
    ),
    "kernel of a template": Case(
        """template <typename T, int TIMES> __global__ void scale(T* x, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[i] *= (T)TIMES;
        }""",
        lambda: [X.astype(np.float64), N], 0, lambda: X.astype(np.float64) * 3, name="scale<double, 3>",
    ),
    "bitonic sort in shared memory": Case(
        """extern "C" __global__ void f(const int* x, int* out) {
            __shared__ int s[128];
            int t = threadIdx.x;
            s[t] = x[t];
            __syncthreads();
            for (int k = 2; k <= 128; k *= 2) {
                for (int j = k / 2; j > 0; j /= 2) {
                    int other = t ^ j;
                    if (other > t) {
                        bool up = (t & k) == 0;
                        int a = s[t], b = s[other];
                        if ((a > b) == up) { s[t] = b; s[other] = a; }
                    }
                    __syncthreads();
                }
            }
            out[t] = s[t];
        }""",
        lambda: [K[:128], empty(np.int32, 128)], 1, lambda: np.sort(K[:128]), 1, 128,
    ),
}  # fmt: skip


def _xorshift(v: Any) -> Any:
    v = v ^ (v << np.uint32(13))
    v = v ^ (v >> np.uint32(17))
    v = v ^ (v << np.uint32(5))
    return v * np.uint32(2654435761)


def _math(v: Any) -> Any:
    from math import erf

    whole = [np.exp(-v), np.log(v), np.sqrt(v), v**-0.5, v**1.5, np.vectorize(erf)(v), np.floor(v)]
    return sum(whole) + np.ceil(v) + np.minimum(v, 1) + np.log1p(v) + 2**v + np.arctan2(v, 2) + np.cbrt(v)  # fmt: skip


def _fours(x: Any) -> Any:
    v = x.reshape(-1, 4).copy()
    v[:, 0] += v[:, 3]
    v[:, 1] *= 2
    return v.ravel()


def _layer_norm(x: Any) -> Any:
    return ((x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)).ravel()

"""Products of matrices on NVIDIA's cards: cuBLAS, asked for what each matrix is in memory.

CuPy's `matmul` takes 90 µs on the host for a stack, and copies matrices that are transposed. Here one
call does it: rows of numbers, or columns of them, with any step from one to the next and from matrix
to matrix. Half types are multiplied as they are and added up in float32; float32 is not rounded to
TF32, as in PyTorch.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import sys
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, ArrayModule
from toytorch.loops import Program
from toytorch.loops.language.types import computed
from toytorch.loops.runtime import cuda

# cuBLAS's numbers of types (library_types.h), and of the types in which products are added up.
TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}
SUMS = {"float32": 68, "float64": 70, "float16": 68, "bfloat16": 68}
PLAIN, TRANSPOSED = 0, 1
DEFAULT = -1  # the algorithm that cuBLAS chooses


@functools.cache
def library(xp: ArrayModule) -> Any:
    """CuPy's functions of cuBLAS; None where another module stands for CuPy."""
    if sys.modules.get("cupy") is not xp:
        return None
    return importlib.import_module("cupy_backends.cuda.libs.cublas")  # comes with cupy


@functools.cache
def factor(type: str, value: float) -> np.ndarray[Any, Any]:
    """A number of the type in which is added, where cuBLAS finds it."""
    return np.array(value, np.float64 if type == "float64" else np.float32)


def lies(xp: ArrayModule, a: Array) -> tuple[Any, int, int]:
    """A stack of matrices (n, rows, columns) as cuBLAS takes it: the array, whether its columns lie
    together, and the step from one row (or column) to the next; copied where neither does."""
    step = a.itemsize
    _, rows, columns = a.shape
    down, along = a.strides[1] // step, a.strides[2] // step
    if (along == 1 or columns == 1) and (down >= columns or rows == 1):
        return a, PLAIN, max(down if rows > 1 else columns, 1)
    if (down == 1 or rows == 1) and (along >= rows or columns == 1):
        return a, TRANSPOSED, max(along if columns > 1 else rows, 1)
    return xp.ascontiguousarray(a), PLAIN, max(columns, 1)


def multiply(xp: ArrayModule, a: Any, b: Any) -> Any:
    """The products of two stacks (n, M, K) and (n, K, N); None where CuPy has to make them."""
    type = a.dtype.name
    cublas = library(xp) if type in TYPES and a.dtype == b.dtype else None
    if cublas is None or not (a.size and b.size):
        return None
    n, m, k = a.shape
    width = b.shape[2]
    made = xp.empty((n, m, width), a.dtype)
    a, a_way, a_step = lies(xp, a)
    b, b_way, b_step = lies(xp, b)
    jumps = [0 if n == 1 else v.strides[0] // v.itemsize for v in (b, a, made)]
    # cuBLAS goes by columns: what lies in rows is transposed to it, and so is the product.
    cublas.gemmStridedBatchedEx(
        xp.cuda.device.get_cublas_handle(), b_way, a_way, width, m, k,
        factor(type, 1.0).ctypes.data,
        b.data.ptr, TYPES[type], b_step, jumps[0],
        a.data.ptr, TYPES[type], a_step, jumps[1],
        factor(type, 0.0).ctypes.data,
        made.data.ptr, TYPES[type], width, jumps[2],
        n, SUMS[type], DEFAULT,
    )  # fmt: skip
    return made


def product(xp: ArrayModule, a: Array, b: Array) -> Any:
    """The product of two matrices, or None."""
    made = multiply(xp, a[None], b[None])
    return None if made is None else made[0]


def products(xp: ArrayModule, a: Array, b: Array) -> Any:
    """The products of two stacks of matrices of one shape, or None."""
    if a.ndim < 3 or a.shape[:-2] != b.shape[:-2]:
        return None
    stacks = [flat_stack(xp, v) for v in (a, b)]
    made = multiply(xp, *stacks)
    return None if made is None else made.reshape(*a.shape[:-1], b.shape[-1])


def flat_stack(xp: ArrayModule, a: Array) -> Any:
    """(…, M, N) as (n, M, N): the same memory where the first dimensions are one step apart."""
    if a.ndim == 3:
        return a
    lead = [(n, s) for n, s in zip(a.shape[:-2], a.strides[:-2]) if n > 1]
    if any(s != n * t for (_, s), (n, t) in itertools.pairwise(lead)):
        return xp.ascontiguousarray(a).reshape(-1, *a.shape[-2:])
    step = lead[-1][1] if lead else 0
    shape = (math.prod(n for n, _ in lead), *a.shape[-2:])
    return xp.ndarray(shape, a.dtype, a.data, (step, *a.strides[-2:]))


def halves_product(xp: ArrayModule, a: Array, b: Array, *rest: object) -> Any:
    """The product of matrices, or of stacks of them, of half types; None where their sizes do not
    fit, or a type is asked for."""
    if rest or a.ndim != b.ndim or a.ndim not in (2, 3) or a.shape[-1] != b.shape[-2]:
        return None
    if a.ndim == 2:
        return product(xp, a, b)
    return multiply(xp, a, b) if len(a) == len(b) else None


def halves_linear(xp: ArrayModule, bias: Array, x: Array, weight: Array) -> Any:
    """x·Wᵀ + b of half types, or None."""
    if x.ndim != 2 or weight.ndim != 2 or x.shape[1] != weight.shape[1]:
        return None
    return linear(xp, x, weight, bias)


@functools.cache
def bias_program(type: str) -> Program:
    """A row that is added to each row of a matrix."""
    return Program.parse(f"x[i,j] {type}, b[j] {type} -> y[i,j] {type}\n y = x + b", computed(type))


def linear(xp: ArrayModule, x: Array, weight: Array, bias: Array) -> Any:
    """x·Wᵀ + b of a matrix x, or None."""
    if not x.dtype == weight.dtype == bias.dtype or bias.ndim != 1:
        return None
    made = product(xp, x, weight.T)
    if made is None:
        return None
    cuda.run(xp, bias_program(x.dtype.name), made, made, bias)
    return made

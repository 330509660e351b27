"""The functions of numbers that CUDA has built in: what they take, and what computes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.cuda.emulator.types import BOOL, DOUBLE, FLOAT, HALF, INT, LLONG, UINT, ULLONG, Scalar
from toytorch.facts.hints import Array, Fn


@dataclass(frozen=True, slots=True)
class NumberFunction:
    """One function for one choice of types.

    flops  operations on floats that a thread is charged: 1, except for fused and integer ones
    """

    parameters: tuple[Scalar, ...]
    result: Scalar
    compute: Fn
    flops: int = 1


def _by_element(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of Python's floats for arrays."""
    over = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(over(x.astype(np.float64))).astype(x.dtype)[()]


def _fma(a: Array, b: Array, c: Array) -> Any:
    # A product of two float32 is exact in float64, so only the sum is rounded.
    return (a.astype(np.float64) * b + c).astype(a.dtype)


def _round(x: Array) -> Any:
    return np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)


# Functions of one kind of float each: `exp` takes float or double, `expf` float.
FLOATS: dict[str, tuple[Fn, int]] = {
    "exp": (np.exp, 1), "exp2": (np.exp2, 1), "expm1": (np.expm1, 1),
    "exp10": (lambda x: np.power(x.dtype.type(10), x), 1),
    "log": (np.log, 1), "log2": (np.log2, 1), "log10": (np.log10, 1), "log1p": (np.log1p, 1),
    "sqrt": (np.sqrt, 1), "rsqrt": (lambda x: 1 / np.sqrt(x), 1), "cbrt": (np.cbrt, 1),
    "sin": (np.sin, 1), "cos": (np.cos, 1), "tan": (np.tan, 1),
    "asin": (np.arcsin, 1), "acos": (np.arccos, 1), "atan": (np.arctan, 1),
    "sinh": (np.sinh, 1), "cosh": (np.cosh, 1), "tanh": (np.tanh, 1),
    "asinh": (np.arcsinh, 1), "acosh": (np.arccosh, 1), "atanh": (np.arctanh, 1),
    "erf": (_by_element(math.erf), 1), "erfc": (_by_element(math.erfc), 1),
    "floor": (np.floor, 1), "ceil": (np.ceil, 1), "trunc": (np.trunc, 1), "rint": (np.rint, 1),
    "round": (_round, 1), "nearbyint": (np.rint, 1), "fabs": (np.abs, 1),
    "pow": (np.power, 2), "fmod": (np.fmod, 2), "atan2": (np.arctan2, 2), "hypot": (np.hypot, 2),
    "copysign": (np.copysign, 2), "fmax": (np.fmax, 2), "fmin": (np.fmin, 2),
    "fdim": (lambda x, y: np.fmax(x - y, 0), 2), "fma": (_fma, 3),
}  # fmt: skip


def _popcount(x: Array) -> Any:
    return np.bitwise_count(x).astype(np.int32)


def _leading_zeros(x: Array) -> Any:
    size = x.dtype.itemsize * 8
    wide = x.astype(np.uint64) if size == 64 else x.astype(np.uint32).astype(np.uint64)
    found = np.zeros_like(wide)
    for shift in (32, 16, 8, 4, 2, 1):  # the place of the highest bit, by halves
        high = (wide >> np.uint64(shift)) != 0
        found = found + np.where(high, np.uint64(shift), np.uint64(0))
        wide = np.where(high, wide >> np.uint64(shift), wide)
    return (size - (found + (wide != 0)).astype(np.int32)).astype(np.int32)[()]


def _first_bit(x: Array) -> Any:
    lowest = x & (np.negative(x))
    return np.where(x == 0, 0, x.dtype.itemsize * 8 - _leading_zeros(lowest)).astype(np.int32)[()]


def _reversed_bits(x: Array) -> Any:
    found = np.zeros_like(x)
    for bit in range(32):
        found = found | (((x >> np.uint32(bit)) & np.uint32(1)) << np.uint32(31 - bit))
    return found


def _nearest(x: Array) -> Any:
    return np.clip(np.rint(x.astype(np.float64)), -(2.0**31), 2.0**31 - 1).astype(np.int32)


def _table() -> dict[str, list[NumberFunction]]:
    found: dict[str, list[NumberFunction]] = {}

    def add(
        name: str, parameters: tuple[Scalar, ...], result: Scalar, compute: Any, flops: int = 0
    ) -> None:
        found.setdefault(name, []).append(NumberFunction(parameters, result, compute, flops))

    for name, (compute, count) in FLOATS.items():
        flops = 2 if name == "fma" else 1
        add(f"{name}f", (FLOAT,) * count, FLOAT, compute, flops)
        add(name, (FLOAT,) * count, FLOAT, compute, flops)
        add(name, (DOUBLE,) * count, DOUBLE, compute, flops)
    for name in ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "pow"):
        found[f"__{name}f"] = found[f"{name}f"]
    found["__fsqrt_rn"], found["__frsqrt_rn"] = found["sqrtf"], found["rsqrtf"]
    found["__fmaf_rn"] = found["fmaf"]
    signs = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
    for name, function in signs.items():
        add(f"__f{name}_rn", (FLOAT, FLOAT), FLOAT, function, 1)
        add(f"__d{name}_rn", (DOUBLE, DOUBLE), DOUBLE, function, 1)
    add("__fdividef", (FLOAT, FLOAT), FLOAT, np.divide, 1)
    add("__frcp_rn", (FLOAT,), FLOAT, np.reciprocal, 1)
    add("__saturatef", (FLOAT,), FLOAT, lambda x: np.fmin(np.fmax(x, 0), 1), 1)
    for number in (INT, UINT, LLONG, ULLONG, FLOAT, DOUBLE):
        least, most = (np.fmin, np.fmax) if number.is_float else (np.minimum, np.maximum)
        add("min", (number, number), number, least, int(number.is_float))
        add("max", (number, number), number, most, int(number.is_float))
    for number in (INT, LLONG, FLOAT, DOUBLE):
        add("abs", (number,), number, np.abs, int(number.is_float))
    for number in (FLOAT, DOUBLE):
        add("isnan", (number,), BOOL, np.isnan)
        add("isinf", (number,), BOOL, np.isinf)
        add("isfinite", (number,), BOOL, np.isfinite)
    add("__popc", (UINT,), INT, _popcount)
    add("__popcll", (ULLONG,), INT, _popcount)
    add("__clz", (INT,), INT, _leading_zeros)
    add("__clzll", (LLONG,), INT, _leading_zeros)
    add("__ffs", (INT,), INT, _first_bit)
    add("__ffsll", (LLONG,), INT, _first_bit)
    add("__brev", (UINT,), UINT, _reversed_bits)
    add("__float_as_int", (FLOAT,), INT, lambda x: x.view(np.int32))
    add("__float_as_uint", (FLOAT,), UINT, lambda x: x.view(np.uint32))
    add("__int_as_float", (INT,), FLOAT, lambda x: x.view(np.float32))
    add("__uint_as_float", (UINT,), FLOAT, lambda x: x.view(np.float32))
    add("__float2half", (FLOAT,), HALF, lambda x: x.astype(np.float16))
    add("__half2float", (HALF,), FLOAT, lambda x: x.astype(np.float32))
    add("__float2int_rn", (FLOAT,), INT, _nearest)
    add("__float2int_rz", (FLOAT,), INT, lambda x: _nearest(np.trunc(x)))
    add("__int2float_rn", (INT,), FLOAT, lambda x: x.astype(np.float32))
    return found


TABLE = _table()
EITHER = ("min", "max")  # of two whole numbers of any types, the common one is taken
NAMED_NUMBERS: dict[str, tuple[Scalar, Any]] = {
    "INFINITY": (FLOAT, math.inf), "NAN": (FLOAT, math.nan), "FLT_MAX": (FLOAT, 3.4028234663852886e38),
    "FLT_MIN": (FLOAT, 1.1754943508222875e-38), "FLT_EPSILON": (FLOAT, 2.0**-23),
    "DBL_MAX": (DOUBLE, 1.7976931348623157e308), "INT_MAX": (INT, 2**31 - 1),
    "INT_MIN": (INT, -(2**31)), "UINT_MAX": (UINT, 2**32 - 1), "M_PI": (DOUBLE, math.pi),
    "CUDART_INF_F": (FLOAT, math.inf), "CUDART_PI_F": (FLOAT, math.pi),
    "true": (BOOL, True), "false": (BOOL, False), "warpSize": (INT, 32),
}  # fmt: skip

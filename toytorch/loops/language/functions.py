"""NumPy's word for each primitive: for generated Python, and for machines without a compiler.

Most are NumPy's own functions; the rest are composed here. They take arrays and single elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.loops.language.coefficients import ERF_NEAR, ERFCX
from toytorch.loops.language.types import TYPES


def polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    """Horner's scheme, the highest power first."""
    total = coefficients[0] + 0 * x
    for c in coefficients[1:]:
        total = total * x + c
    return total


def sigmoid(x: Any) -> Any:
    """1 / (1 + e⁻ˣ), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def erfc(x: Any) -> Any:
    """1 - erf(x), with all its digits where it is small."""
    wide = np.asarray(x, "float64")
    size = np.minimum(np.abs(wide), 28)
    high = np.asarray(size.astype("float32"), "float64")  # its square is exact
    scale = np.exp(-high * high) * np.exp((high - size) * (high + size))
    t = (size - 3.75) / (size + 3.75)
    far = scale * polynomial(ERFCX, t) / (1 + 2 * size)
    far = np.where(wide < 0, 2 - far, far)
    near = 1 - wide * polynomial(ERF_NEAR["float64"], wide * wide)
    made = np.where(size < 0.5, near, far)
    return np.asarray(np.where(np.isnan(wide), wide, made)).astype(np.asarray(x).dtype)[()]


def erf(x: Any) -> Any:
    """2/√π ∫₀ˣ e^{-t²} dt."""
    wide = np.asarray(x, "float64")
    near = wide * polynomial(ERF_NEAR["float64"], np.minimum(wide * wide, 1))
    made = np.where(np.abs(wide) < 1, near, np.sign(wide) * (1 - erfc(np.abs(wide))))
    return np.asarray(np.where(np.isnan(wide), wide, made)).astype(np.asarray(x).dtype)[()]


def divided(x: Any, y: Any) -> Any:
    """Python's x // y, and for real numbers PyTorch's: an infinity where y is 0."""
    made = np.floor_divide(x, y)
    return np.where(y == 0, x / y, made)[()] if np.asarray(x).dtype.kind == "f" else made


def converter(name: str) -> Callable[[Any], Any]:
    """What turns elements into another type, as C does: towards zero, and any non-zero is true."""
    type = np.dtype(TYPES[name].numpy)
    if name == "bool":
        return lambda x: np.not_equal(x, 0)
    return lambda x: np.asarray(x).astype(type)[()]


FUNCTIONS: dict[str, Any] = {
    "abs": np.abs,
    "sign": np.sign,
    "floor_divide": divided,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "copysign": np.copysign,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "floor": np.floor,
    "ceil": np.ceil,
    "rint": np.rint,
    "trunc": np.trunc,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "pow": np.power,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
    "sigmoid": sigmoid,
    "erf": erf,
    "erfc": erfc,
    "inf": float("inf"),
    "nan": float("nan"),
    "empty": np.empty,
    "min": min,
}

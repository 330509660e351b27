"""The normal distribution: its distribution function, the logarithm and the inverse of it, erfcx.

erfcx(x) = e^{x²}·erfc(x) is what erfc is built from (see `special`); what has it for a factor stays
exact where erfc itself would be 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.core.op import Op
from toytorch.ops.define import special_function
from toytorch.ops.special.error_gamma import (
    TWO_OVER_ROOT_PI,
    erf_array,
    erfc_array,
    erfcx_above,
    poly,
)

ROOT_HALF, ROOT_TWO_PI = math.sqrt(0.5), math.sqrt(2 * math.pi)


def erfcx_array(xp: Any, a: Any) -> Any:
    """e^{x²}·erfc(x) of every element."""
    x = a.astype(np.float64)
    high = erfcx_above(xp, xp.maximum(xp.abs(x), 0.46875))
    low = xp.minimum(x, 0.46875)
    near = xp.exp(low * low) * erfc_array(xp, low)
    return xp.where(xp.isnan(x), x, xp.where(x > 0.46875, high, near)).astype(a.dtype)


erfcx: Op = special_function(
    "special_erfcx(Tensor self) -> Tensor",
    erfcx_array,
    expr="exp(self * self) * erfc(self)",
    promotion="float",
    method=False,
    inplace=False,
    d_self=lambda g, self, result: g * (2 * self * result - TWO_OVER_ROOT_PI),
    doc="e^{x²}·erfc(x), exact for large x.",
)


def _ndtr(xp: Any, a: Any) -> Any:
    x = a.astype(np.float64) * ROOT_HALF
    near = 0.5 + 0.5 * erf_array(xp, x)
    tail = 0.5 * erfc_array(xp, xp.abs(x))
    return xp.where(xp.abs(x) < ROOT_HALF, near, xp.where(x > 0, 1 - tail, tail)).astype(a.dtype)


ndtr = special_function(
    "special_ndtr(Tensor self) -> Tensor",
    _ndtr,
    expr="(1 + erf(self / sqrt(2))) / 2",
    promotion="float",
    method=False,
    inplace=False,
    d_self=lambda g, self: g * ((self * self * -0.5).exp() / ROOT_TWO_PI),
    doc="The distribution function of the normal distribution, Φ(x).",
)


def log_ndtr_array(xp: Any, a: Any) -> Any:
    """log Φ of every element."""
    x = a.astype(np.float64)
    low = xp.minimum(x, -1.0)
    tail = xp.log(erfcx_array(xp, -low * ROOT_HALF) / 2) - low * low / 2
    high = xp.log1p(-erfc_array(xp, xp.maximum(x, -1.0) * ROOT_HALF) / 2)
    return xp.where(x < -1, tail, high).astype(a.dtype)


log_ndtr = special_function(
    "special_log_ndtr(Tensor self) -> Tensor",
    log_ndtr_array,
    promotion="float",
    method=False,
    inplace=False,
    expr="log((1 + erf(self / sqrt(2))) / 2)",
    d_self=lambda g, self: g * (math.sqrt(2 / math.pi) / erfcx.function(self * -ROOT_HALF)),
    doc="log Φ(x), exact far below 0.",
)


def _ndtri(xp: Any, a: Any) -> Any:
    p = a.astype(np.float64)
    # By symmetry only the lower half. Hastings' estimate (1955), good to 5e-4, then Newton's method
    # on log Φ(x) = log p, whose slope is close to a line.
    half = xp.clip(xp.minimum(p, 1 - p), 1e-320, 0.5)
    goal = xp.log(half)
    t = xp.sqrt(-2 * goal)
    x = poly((0.010328, 0.802853, 2.515517), t) / poly((0.001308, 0.189269, 1.432788, 1.0), t) - t
    for _ in range(3):
        slope = math.sqrt(2 / math.pi) / erfcx_array(xp, -x * ROOT_HALF)
        x = x - (log_ndtr_array(xp, x) - goal) / slope
    x = xp.where(p > 0.5, -x, x)
    x = xp.where(p == 0, -np.inf, xp.where(p == 1, np.inf, x))
    return xp.where((p >= 0) & (p <= 1), x, np.nan).astype(a.dtype)


ndtri = special_function(
    "special_ndtri(Tensor self) -> Tensor",
    _ndtri,
    promotion="float",
    method=False,
    inplace=False,
    expr="ndtri(self)",
    d_self=lambda g, result: g * ((result * result * 0.5).exp() * ROOT_TWO_PI),
    doc="The inverse of Φ: the quantile of the normal distribution.",
)

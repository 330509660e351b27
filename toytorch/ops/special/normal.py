"""The normal distribution: its distribution function, the logarithm and the inverse of it, erfcx.

erfcx(x) = e^{x²}·erfc(x) is what erfc is built from (see `special`); what has it for a factor stays
exact where erfc itself would be 0.
"""

from __future__ import annotations

import math

from toytorch.core.op import Op
from toytorch.ops.define import special_function
from toytorch.ops.elementwise.operand_checks import numbers
from toytorch.ops.special.error_gamma import (
    TWO_OVER_ROOT_PI,
)

ROOT_HALF, ROOT_TWO_PI = math.sqrt(0.5), math.sqrt(2 * math.pi)


erfcx: Op = special_function(
    "special_erfcx(Tensor self) -> Tensor",
    formula="erfcx(self)",
    checks=numbers("erfcx_cpu", halves=False),
    forms="function out",
    d_self=lambda g, self, result: g * (2 * self * result - TWO_OVER_ROOT_PI),
    doc="e^{x²}·erfc(x), exact for large x.",
)


ndtr = special_function(
    "special_ndtr(Tensor self) -> Tensor",
    formula="0.5 * erfc(self * -sqrt(1 / 2))",
    checks=numbers("erf_vml_cpu"),
    forms="function out",
    d_self="g * (exp(-0.5 * self * self) * (1 / sqrt(2 * pi)))",
    doc="The distribution function of the normal distribution, Φ(x).",
    out_history="copied",
    out_rows=True,
)


log_ndtr = special_function(
    "special_log_ndtr(Tensor self) -> Tensor",
    formula="log_ndtr(self)",
    checks=numbers("log_ndtr_cpu", halves=False),
    forms="function out",
    d_self=lambda g, self, result: g * (math.sqrt(2 / math.pi) / erfcx.function(self * -ROOT_HALF)),
    doc="log Φ(x), exact far below 0.",
)


ndtri = special_function(
    "special_ndtri(Tensor self) -> Tensor",
    formula="ndtri(self)",
    checks=numbers("ndtri_cpu", halves=False),
    forms="function out",
    d_self=lambda g, result: g * ((result * result * 0.5).exp() * ROOT_TWO_PI),
    doc="The inverse of Φ: the quantile of the normal distribution.",
)

"""Error functions, those of the normal distribution, and gamma functions, which NumPy does not have.

What they compute stands in `toytorch.loops.language`: erf and erfc are primitives, the inverse of
erf, lgamma and digamma texts (`defined`).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule, Fn
from toytorch.loops.formula import Formula, OnePass
from toytorch.loops.language.functions import FUNCTIONS
from toytorch.ops.define import of_floats, public
from toytorch.ops.elementwise.operand_checks import numbers


@functools.cache
def by_number(name: str, *numbers: float, wide: bool = False) -> Fn:
    """A kernel that is a function of the module `of_numbers`, for each element of arrays.

    numbers  what the function is given before the elements
    wide     whether it is given, before these, whether the result is of float64
    """
    given = tuple(map(float, numbers))
    further = {np.dtype(np.float32): given, np.dtype(np.float64): given}
    if wide:
        further = {kind: (float(kind == np.float64), *given) for kind in further}

    def kernel(xp: ArrayModule, *arrays: Any) -> Any:
        kind = arrays[0].dtype
        if kind not in further or any(a.dtype != kind for a in arrays[1:]):
            kind = np.result_type(*(a.dtype for a in arrays))
            return kernel(xp, *(a.astype(np.float64) for a in arrays)).astype(kind)
        return attempt(xp, "of_numbers", text, name, further[kind], *arrays)

    return kernel


@functools.cache
def text() -> Any:
    """The module, whose tables take 30 ms."""
    from toytorch.ops.special import of_numbers  # seldom needed

    return of_numbers


# Of NumPy's arrays.
digamma_array, trigamma_array = FUNCTIONS["digamma"], FUNCTIONS["trigamma"]
TRIGAMMA = OnePass(Formula("trigamma(self, sin(self * pi))", ("self",)), ("self",))
TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
erf = of_floats(
    "erf(Tensor self) -> Tensor",
    formula="erf(self)",
    checks=numbers("erf_vml_cpu"),
    d_self="g * (exp(-(self * self)) * (2 / sqrt(pi)))",
    sparse="entries",
    doc="Error function, 2/√π ∫₀ˣ e^{-t²} dt.",
)
erfc = of_floats(
    "erfc(Tensor self) -> Tensor",
    formula="erfc(self)",
    checks=numbers("erfc_vml_cpu"),
    d_self="g * (exp(-(self * self)) * (-2 / sqrt(pi)))",
    doc="1 - erf(x), exact for large x.",
)


erfinv = of_floats(
    "erfinv(Tensor self) -> Tensor",
    formula="erfinv(self)",
    checks=numbers("erfinv_vml_cpu"),
    d_self=lambda g, self: g * ((self.erfinv() ** 2).exp() / TWO_OVER_ROOT_PI),
    sparse="entries",
    doc="The inverse of erf.",
)

lgamma = of_floats(
    "lgamma(Tensor self) -> Tensor",
    formula="lgamma(self)",
    checks=numbers("lgamma_vml_cpu"),
    d_self=lambda g, self: g * self.digamma(),
    doc="log |Γ(x)|.",
)


digamma = of_floats(
    "digamma(Tensor self) -> Tensor",
    formula="digamma(self)",
    checks=numbers("digamma"),
    d_self=lambda g, self: g * self.polygamma(1),
    doc="The derivative of lgamma.",
)


def _polygamma(xp: ArrayModule, a: Array, n: int) -> Any:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if a.dtype.kind == "c":
        kind = from_numpy_dtype(a.dtype).legacy
        raise NotImplementedError(f"\"polygamma\" not implemented for '{kind}'")
    if n == 0:
        return digamma_array(a)
    if n == 1:
        made = TRIGAMMA(a)
        return trigamma_array(a, xp.sin(a * a.dtype.type(math.pi))) if made is None else made
    scale = (-1) ** (n + 1) * (float(math.factorial(n)) if n <= 170 else math.inf)
    return by_number("scaled_zeta", scale, n + 1)(xp, a)


polygamma_of: Op = of_floats(
    "polygamma(Tensor self, int n) -> Tensor",
    _polygamma,
    forms="method inplace out",
    d_self=lambda g, self, n: g * polygamma_of.function(self, n + 1),
    doc="The n-th derivative of digamma.",
)


@public("polygamma", tensor_first=False)
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of digamma.

    >>> polygamma(1, Tensor([1.])) * 6 / math.pi ** 2
    tensor([1.])
    """
    return polygamma_of.function(input, n, out=out)


# -- the normal distribution ----------------------------------------------------------------------
#
# erfcx(x) = e^{x²}·erfc(x) is what erfc is built from (see `special`); what has it for a factor stays
# exact where erfc itself would be 0.

ROOT_HALF, ROOT_TWO_PI = math.sqrt(0.5), math.sqrt(2 * math.pi)
erfcx: Op = of_floats(
    "special_erfcx(Tensor self) -> Tensor",
    formula="erfcx(self)",
    checks=numbers("erfcx_cpu", halves=False),
    d_self=lambda g, self, result: g * (2 * self * result - TWO_OVER_ROOT_PI),
    doc="e^{x²}·erfc(x), exact for large x.",
)
ndtr = of_floats(
    "special_ndtr(Tensor self) -> Tensor",
    formula="0.5 * erfc(self * -sqrt(1 / 2))",
    checks=numbers("erf_vml_cpu"),
    d_self="g * (exp(-0.5 * self * self) * (1 / sqrt(2 * pi)))",
    doc="The distribution function of the normal distribution, Φ(x).",
    out_history="copied",
    out_rows=True,
)
log_ndtr = of_floats(
    "special_log_ndtr(Tensor self) -> Tensor",
    formula="log_ndtr(self)",
    checks=numbers("log_ndtr_cpu", halves=False),
    d_self=lambda g, self, result: g * (math.sqrt(2 / math.pi) / erfcx.function(self * -ROOT_HALF)),
    doc="log Φ(x), exact far below 0.",
)
ndtri = of_floats(
    "special_ndtri(Tensor self) -> Tensor",
    formula="ndtri(self)",
    checks=numbers("ndtri_cpu", halves=False),
    d_self=lambda g, result: g * ((result * result * 0.5).exp() * ROOT_TWO_PI),
    doc="The inverse of Φ: the quantile of the normal distribution.",
)

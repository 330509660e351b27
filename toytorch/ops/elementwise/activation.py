"""Activations: functions of each element that stand between the layers of a network.

relu and sigmoid live in `arithmetic`, tanh in `elementary`. Where a function has a kink, the
derivative there is PyTorch's choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.generic import attempt
from toytorch.core import write
from toytorch.core.memory_order import placed
from toytorch.core.op import Op
from toytorch.core.random import Generator, generator_of
from toytorch.core.scalars import as_element, raise_overflow
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.composed import cast_to
from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.facts.schema import wrong_argument
from toytorch.facts.size import wrap_dim
from toytorch.ops.at_once import at_once, taken
from toytorch.ops.creation.draw_refusals import refuse
from toytorch.ops.define import internal, pointwise, public
from toytorch.ops.elementwise.operand_checks import numbers, only_floats
from toytorch.ops.indexing.by_index import type_name
from toytorch.ops.shaping.rearrange import cat


def _activation(signature: str, **fields: Any) -> Op:
    """A function for `nn.functional`, whose derivative is one kernel in PyTorch and rounds once."""
    family: dict[str, Any] = {"forms": "out", "rounds_once": "float16 bfloat16"}
    return pointwise(signature, **family, **fields)


# -- straight pieces ------------------------------------------------------------------------------


straight: Op = pointwise(
    "straight(Tensor self, Tensor other) -> Tensor",
    formula="self",
    forms="out",
    d_self="g",
    d_other="0",
    doc="A derivative, self, of straight pieces of other: differentiated again it is 0, and says so.",
)
LEAKY: dict[str, Any] = {
    "formula": "self if self > 0 else self * negative_slope",
    "checks": only_floats("leaky_relu_cpu"),
    "d_self": "straight(g if self > 0 else g * negative_slope, self)",
    "node_in_place": 1,
}
leaky_relu = pointwise(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    **LEAKY,
    forms="out",
    doc="x above 0, a small multiple of x below; Maas et al. 2013.",
)


def _check_hardtanh(common: DType, args: Sequence[Any]) -> None:
    if common is types.bool:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if common.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    if common is types.uint8 and (args[1] <= -1 or args[2] <= -1):  # whole numbers of them
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


hardtanh = _activation(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    formula="minimum(max_val, maximum(min_val, self))",
    checks=_check_hardtanh,
    d_self="straight(g if self > min_val and self < max_val else 0, self)",
    doc="x held between two limits.",
)
_numbers_to_threshold = numbers("threshold_cpu", lowest=1)


def _check_threshold(common: DType, args: Sequence[Any]) -> None:
    _numbers_to_threshold(common, args)
    for value in args[1:]:  # which C++ casts to the type of the elements
        as_element(np, value, common.numpy)


threshold = pointwise(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    formula="value if self <= threshold else self",
    checks=_check_threshold,
    forms="function inplace out",
    overlap=True,
    d_self="straight(0 if self <= threshold else g, self)",
    rounds_once="float16 bfloat16",
    node_in_place=1,
    doc="x above a threshold, a fixed value below.",
)


def _within_type(kernel: str) -> Any:
    """A check of a threshold that C++ casts to the type of the elements."""

    def check(common: DType, args: Sequence[Any]) -> None:
        only_floats(kernel)(common, args)
        if math.isfinite(args[1]) and abs(args[1]) > types.finfo(common).max:
            raise_overflow(common.name)

    return check


hardshrink = pointwise(
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    formula="0 if self >= -lambd and self <= lambd else self",
    forms="function method out",
    in_halves=True,
    narrow="lambd",
    checks=_within_type("hardshrink_cpu"),
    d_self="straight(g if self < -lambd or self > lambd else 0, self)",
    doc="x, and 0 near 0.",
    out_type="found",
)


def _check_softshrink(common: DType, args: Sequence[Any]) -> None:
    only_floats("softshrink_cpu")(common, args)
    most = types.finfo(common).max
    if not 0 <= args[1] <= most:
        raise RuntimeError(
            f"lambda must be in range [0, {most:g}] for input dtype {common.legacy}, "
            f"but found {args[1]:g}"
        )


softshrink = pointwise(
    "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    formula="self - minimum(maximum(self, -lambd), lambd)",
    forms="out",
    checks=_check_softshrink,
    d_self="straight(g if self < -lambd or self > lambd else 0, self)",
    doc="x moved towards 0 by lambd, and 0 near 0.",
    out_type="found",
)
hardsigmoid = _activation(
    "hardsigmoid(Tensor self) -> Tensor",
    formula="minimum(maximum(self + 3, 0), 6) / 6",
    checks=only_floats("hardsigmoid_cpu"),
    d_self="straight(g / 6 if self > -3 and self < 3 else 0, self)",
    doc="A sigmoid of three straight pieces; Courbariaux et al. 2015.",
)
hardswish = _activation(
    "hardswish(Tensor self) -> Tensor",
    formula="self * minimum(maximum(self + 3, 0), 6) / 6",
    checks=only_floats("hardswish_cpu"),
    d_self="0 if self <= -3 else g if self >= 3 else g * (self / 3 + 0.5)",
    doc="x·hardsigmoid(x); Howard et al. 2019.",
)
prelu_kernel = pointwise(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    formula="self if self > 0 else self * weight",
    forms="out",
    checks=only_floats("prelu_cpu"),
    d_self="straight(g if self > 0 else g * weight, self)",
    d_weight="0 if self > 0 else g * self",
    memory="kept",
    doc="x above 0, weight·x below.",
)


@public("prelu", method=True)
@cast_to("half")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x above 0, weight·x below, with one weight or one for each channel; He et al. 2015."""
    if not isinstance(weight, Tensor):
        raise wrong_argument("prelu", "weight", 2, "Tensor", weight)
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            "prelu: Type promoting not supported. Got "
            f"{input.dtype.legacy} and {weight.dtype.legacy}"
        )
    if weight.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        )
    if weight.numel() != 1:
        if not input.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()} and channel size = {channels}."
            )
    shape = [-1 if d == min(1, input.ndim - 1) else 1 for d in range(input.ndim)]
    return prelu_kernel.function(input, weight.reshape(shape))


# -- curves ---------------------------------------------------------------------------------------


elu = _activation(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    formula="scale * self if self > 0 else alpha * scale * expm1(input_scale * self)",
    checks=only_floats("elu_cpu"),
    d_self="""
        low = exp(input_scale * self) * (alpha * scale * input_scale)
        g * (scale if self > 0 else low)
    """,
    node_in_place=1,
    doc="α(eˣ - 1) below 0; Clevert et al. 2016.",
)
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
selu: Op = pointwise(
    "selu(Tensor self) -> Tensor",
    formula=f"{SELU_SCALE} * self if self > 0 else {SELU_ALPHA * SELU_SCALE} * expm1(self)",
    forms="function inplace",
    node="EluBackward0",
    node_in_place=1,
    checks=only_floats("elu_cpu"),
    d_self=f"g * ({SELU_SCALE} if self > 0 else exp(self) * {SELU_ALPHA * SELU_SCALE})",
    rounds_once="float16 bfloat16",
    doc="elu with the scales that keep mean 0 and variance 1; Klambauer et al. 2017.",
)


def _check_celu(common: DType, args: Sequence[Any]) -> None:
    if args[1] == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    only_floats("elu_cpu")(common, args)


celu = pointwise(
    "celu(Tensor self, Scalar alpha=1) -> Tensor",
    formula="self if self > 0 else alpha * expm1(self / alpha)",
    forms="function inplace",
    checks=_check_celu,
    d_self="g * (1 if self > 0 else exp(self / alpha))",
    rounds_once="float16 bfloat16",
    node_in_place=1,
    doc="An elu whose derivative has no jump; Barron 2017.",
)
softplus = _activation(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    formula="""
        z = beta * self
        self if z > threshold else log1p(exp(threshold if z > threshold else z)) / beta
    """,
    checks=only_floats("softplus_cpu"),
    d_self="g if beta * self > threshold else g * sigmoid(beta * self)",
    doc="log(1 + e^{βx})/β, and x itself above the threshold.",
    out_type="found",
)
log_sigmoid = _activation(
    "log_sigmoid(Tensor self) -> Tensor",
    formula="minimum(self, 0) - log1p(exp(-abs(self)))",
    checks=only_floats("log_sigmoid_cpu"),
    d_self="g * sigmoid(-self)",
    memory="rows",
    apart="never",
    out_type="same",
    doc="log(sigmoid(x)) without overflow.",
)


silu = _activation(
    "silu(Tensor self) -> Tensor",
    formula="self / (1 + exp(-self))",
    checks=numbers("silu_cpu", lowest=2, highest=3),
    d_self="""
        s = sigmoid(self)
        g * (s * (1 + self * (1 - s)))
    """,
    of_reals="silu",
    doc="x·sigmoid(x); Elfwing et al. 2018.",
)
mish = _activation(
    "mish(Tensor self) -> Tensor",
    formula="self * tanh(self if self > 20 else log1p(exp(minimum(self, 20))))",
    checks=only_floats("mish_cpu"),
    d_self="""
        t = tanh(self if self > 20 else log1p(exp(minimum(self, 20))))
        g * (t + self * sigmoid(self) * (1 - t * t))
    """,
    doc="x·tanh(softplus(x)); Misra 2019.",
)


def _check_gelu(common: DType, args: Sequence[Any]) -> None:
    if args[1] not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    only_floats("GeluKernelImpl")(common, args)


gelu = _activation(
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    formula="""
        inner = sqrt(8 / pi) * (self + 0.044715 * self * self * self)
        self / (1 + exp(-inner)) if approximate == "tanh" else self * (0.5 * (1 + erf(self * sqrt(1 / 2))))
    """,
    checks=_check_gelu,
    d_self="""
        t = tanh(sqrt(2 / pi) * (self + 0.044715 * self * self * self))
        tanh_slope = 0.5 * (1 - t * t) * sqrt(2 / pi) * (1 + 3 * 0.044715 * self * self)
        Phi = 0.5 * (1 + (t if approximate == "tanh" else erf(self * sqrt(1 / 2))))
        density = exp(-0.5 * self * self) * (1 / sqrt(2 * pi))
        g * (Phi + self * (tanh_slope if approximate == "tanh" else density))
    """,
    doc="x·Φ(x); Hendrycks and Gimpel 2016.",
    out_type="found",
)

# -- with chance, and in pairs --------------------------------------------------------------------

rrelu_with_noise = pointwise(
    "rrelu_with_noise(Tensor self, Tensor noise) -> Tensor",
    formula="self * noise",
    forms="out",
    checks=only_floats("rrelu_with_noise_out_cpu"),
    d_self="straight(g * noise, self)",
    memory="rows",
    node_in_place=1,
    doc="x times a factor: 1 above 0, a random one below.",
)


def _slopes(
    xp: ArrayModule, a: Array, lower: float, upper: float, generator: Generator | None
) -> Any:
    made, low = xp.ones(a.shape, a.dtype), a <= 0
    rng = generator_of(base.of_array(a).device(a), generator)
    first, last = (float(a.dtype.type(limit)) for limit in (lower, upper))
    drawn = rng.uniform(int(low.sum()), np.float64) * (last - first) + first
    made[low] = drawn.astype(a.dtype)
    return made


slopes = internal(
    "rrelu.slopes(Tensor self, float lower, float upper, *, Generator? generator=None) -> Tensor",
    _slopes,
    doc="1 above 0, and uniform numbers below: as many are drawn.",
)


rrelu_of_mean = pointwise(
    "rrelu_with_noise.mean(Tensor self, float negative_slope=0.01) -> Tensor",
    **LEAKY,
    forms="",
    memory="rows",
    doc="x above 0, and x times a slope below.",
)


def with_slopes(
    input: Tensor, lower: float, upper: float, training: bool, generator: Generator | None = None
) -> tuple[Op, Any]:
    """The record of a randomized relu and its second argument: in training factors, 1 above 0 and
    uniform below, else their mean."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return rrelu_of_mean, (lower + upper) / 2
    x = input.detach()
    refuse("rrelu_with_noise_out_cpu", x.dtype.numpy)
    return rrelu_with_noise, slopes.function(x, lower, upper, generator=generator)


@public("rrelu")
def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """A leaky relu with random slopes in training; Xu et al. 2015."""
    record, by = with_slopes(input, lower, upper, training, generator)
    return record.function(input, by)


@public("rrelu_")
def rrelu_(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """In-place form of `rrelu`."""
    record, by = with_slopes(input, lower, upper, training, generator)
    return write.inplace(record, (input, by))


def _halves(xp: ArrayModule, a: Array, dim: int) -> tuple[Any, Any]:
    if not a.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    d = wrap_dim(dim, a.ndim)
    if a.shape[d] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {d} is size {a.shape[d]}"
        )
    if a.dtype.kind != "f":
        raise NotImplementedError(f"\"glu_cpu\" not implemented for '{type_name(a)}'")
    before, half = (slice(None),) * d, a.shape[d] // 2
    return a[(*before, slice(half))], a[(*before, slice(half, None))]


def _glu(xp: ArrayModule, a: Array, dim: int) -> Any:
    first, second = _halves(xp, a, dim)
    if a.flags.c_contiguous:
        made = attempt(xp, "gated", first, second)
        if made is not None:
            return made
    made = xp.exp(-second)
    made += 1
    return placed(xp.divide(first, made, out=made), first, second)


def _glu_gradient(g: Tensor, self: Tensor, dim: int, work: dict[Any, Any]) -> Any:
    made = at_once(work, "gated_backward", g, self, dim)
    if made:
        return taken(made, 0)
    first, second = self.chunk(2, dim)
    gate = second.sigmoid()
    return cat.function([g * gate, g * first * (gate * (1 - gate))], dim)


glu = internal(
    "glu(Tensor self, int dim=-1) -> Tensor",
    _glu,
    d_self=_glu_gradient,
    doc="One half times the sigmoid of the other; Dauphin et al. 2017.",
)


def softsign(input: Tensor) -> Tensor:
    """x/(1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()

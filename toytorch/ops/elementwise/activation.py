"""Activations: functions of each element that stand between the layers of a network.

relu, sigmoid and tanh live in `pointwise`, gelu in `special`. Where a function has a kink, the
derivative there is PyTorch's choice.
"""

from __future__ import annotations

from typing import Any

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.composed import cast_to
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import general, pointwise, public, watched
from toytorch.ops.elementwise.one_pass import gradient, kernel


def _float(name: str) -> Any:
    """A check that refuses integers, as PyTorch's kernel `name` does."""

    def check(common: Any, args: Any) -> None:
        if not common.is_floating_point:
            raise NotImplementedError(f"\"{name}\" not implemented for '{common.legacy}'")

    return check


def _where(condition: Any, a: Any, b: Any) -> Any:
    from toytorch.ops.indexing.by_index import where

    return where.function(condition, a, b)


# -- straight pieces ------------------------------------------------------------------------------


@kernel("y = x if x > 0 else x * slope", "slope")
def _leaky_relu(xp: Any, a: Any, slope: Any) -> Any:
    below = a * a.dtype.type(slope)
    if 0 <= slope <= 1:
        return xp.maximum(a, below, out=below if a.ndim else None)
    return xp.where(a > 0, a, below)


leaky_relu = pointwise(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    _leaky_relu,
    expr="self > 0 ? self : negative_slope * self",
    method=False,
    inplace=False,
    function=False,
    checks=_float("leaky_relu_cpu"),
    d_self=gradient("dx = g if x > 0 else g * slope", "slope")(
        lambda g, self, negative_slope: _where(self > 0, g, g * negative_slope)
    ),
    doc="x above 0, a small multiple of x below; Maas et al. 2013.",
)


def _check_hardtanh(common: Any, args: Any) -> None:
    if common is types.bool or common.is_complex:
        raise NotImplementedError(
            f"\"hardtanh\" not implemented for '{common.legacy}'"
            if common.is_complex
            else "Bool inputs not supported for hardtanh"
        )
    if common is types.uint8 and (args[1] < 0 or args[2] < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


@kernel("y = minimum(maximum(x, low), high)", "low high")
def _clamped(xp: Any, a: Any, low: Any, high: Any) -> Any:
    made = xp.maximum(a, a.dtype.type(low))
    return (
        xp.minimum(made, a.dtype.type(high), out=made)
        if made.ndim
        else xp.minimum(made, a.dtype.type(high))
    )


hardtanh = pointwise(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    _clamped,
    expr="min(max(self, min_val), max_val)",
    method=False,
    inplace=False,
    function=False,
    checks=_check_hardtanh,
    d_self=gradient("dx = g if x > low and x < high else 0", "low high")(
        lambda g, self, min_val, max_val: g.masked_fill((self <= min_val) | (self >= max_val), 0)
    ),
    doc="x held between two limits.",
)
threshold = pointwise(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    kernel("y = value if x <= limit else x", "limit value")(
        lambda xp, a, limit, value: xp.where(a <= limit, a.dtype.type(value), a)
    ),
    expr="self <= threshold ? value : self",
    method=False,
    d_self=gradient("dx = 0 if x <= limit else g", "limit")(
        lambda g, self, threshold: g.masked_fill(self <= threshold, 0)
    ),
    cost="cheap",
    doc="x above a threshold, a fixed value below.",
)
_outside = gradient("dx = g if x < -lambd or x > lambd else 0", "lambd")(
    lambda g, self, lambd: g.masked_fill((self >= -lambd) & (self <= lambd), 0)
)
hardshrink = pointwise(
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    kernel("y = 0 if x >= -lambd and x <= lambd else x", "lambd")(
        lambda xp, a, lambd: xp.where((a >= -lambd) & (a <= lambd), a.dtype.type(0), a)
    ),
    expr="abs(self) <= lambd ? 0 : self",
    inplace=False,
    checks=_float("hardshrink_cpu"),
    d_self=_outside,
    doc="x, and 0 near 0.",
)


def _softshrink(xp: Any, a: Any, lambd: Any) -> Any:
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd:g}.")
    return _shrunk(xp, a, lambd)


@kernel("y = x - minimum(maximum(x, -lambd), lambd)", "lambd")
def _shrunk(xp: Any, a: Any, lambd: Any) -> Any:
    limit = a.dtype.type(lambd)
    return a - xp.clip(a, -limit, limit)


softshrink = pointwise(
    "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    _softshrink,
    method=False,
    expr="self - min(max(self, -lambd), lambd)",
    inplace=False,
    function=False,
    checks=_float("softshrink_cpu"),
    d_self=_outside,
    doc="x moved towards 0 by lambd, and 0 near 0.",
)
hardsigmoid = pointwise(
    "hardsigmoid(Tensor self) -> Tensor",
    kernel("y = minimum(maximum(x + 3, 0), 6) / 6")(
        lambda xp, a: _clamped(xp, a + a.dtype.type(3), 0, 6) / a.dtype.type(6)
    ),
    expr="min(max(self + 3, 0), 6) / 6",
    method=False,
    function=False,
    inplace=False,
    checks=_float("hardsigmoid_cpu"),
    d_self=gradient("dx = g / 6 if x > -3 and x < 3 else 0")(
        lambda g, self: (g / 6).masked_fill((self <= -3) | (self >= 3), 0)
    ),
    doc="A sigmoid of three straight pieces; Courbariaux et al. 2015.",
)
hardswish = pointwise(
    "hardswish(Tensor self) -> Tensor",
    kernel("y = x * minimum(maximum(x + 3, 0), 6) / 6")(
        lambda xp, a: a * _clamped(xp, a + a.dtype.type(3), 0, 6) / a.dtype.type(6)
    ),
    expr="self * min(max(self + 3, 0), 6) / 6",
    method=False,
    function=False,
    inplace=False,
    checks=_float("hardswish_cpu"),
    d_self=gradient("dx = 0 if x <= -3 else g if x >= 3 else g * (x / 3 + 0.5)")(
        lambda g, self: (
            g * _where(self < 3, self / 3 + 0.5, self.new_ones(())).masked_fill(self <= -3, 0)
        )
    ),
    doc="x·hardsigmoid(x); Howard et al. 2019.",
)


def _prelu(xp: Any, a: Any, weight: Any) -> Any:
    return xp.where(a > 0, a, a * weight)


prelu_kernel = pointwise(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    _prelu,
    method=False,
    function=False,
    inplace=False,
    node="PreluKernelBackward0",
    checks=_float("prelu_cpu"),
    d_self=lambda g, self, weight: _where(self > 0, g, g * weight),
    d_weight=lambda g, self: (g * self).masked_fill(self > 0, 0),
    doc="x above 0, weight·x below.",
)


@public("prelu", method=True)
@cast_to("half")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x above 0, weight·x below, with one weight or one for each channel; He et al. 2015."""
    if not isinstance(weight, Tensor):
        raise TypeError(
            f"prelu(): argument 'weight' (position 2) must be Tensor, not {type(weight).__name__}"
        )
    if input.dtype is not weight.dtype:
        from toytorch.ops.linalg.matmul import C_NAMES

        raise RuntimeError(
            "prelu: Type promoting not supported. Got "
            f"{C_NAMES[input.dtype.name]} and {C_NAMES[weight.dtype.name]}"
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
                "Mismatch of parameter numbers and input channel size. Found "
                f"parameter numbers = {weight.numel()} and channel size = "
                f"{channels}."
            )
    shape = [-1 if d == min(1, input.ndim - 1) else 1 for d in range(input.ndim)]
    return prelu_kernel.function(input, weight.reshape(shape))


# -- curves ---------------------------------------------------------------------------------------


@kernel("y = x * scale if x > 0 else alpha * scale * expm1(x * inner)", "alpha scale inner")
def _elu(xp: Any, a: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    t = a.dtype.type
    low = t(alpha * scale) * xp.expm1(xp.minimum(a, 0) * t(input_scale))
    return xp.where(a > 0, a * t(scale), low)


@gradient(
    "dx = g * (scale if x > 0 else exp(x * inner) * (alpha * scale * inner))", "alpha scale inner"
)
def _elu_gradient(g: Any, self: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    low = (self * input_scale).exp() * (alpha * scale * input_scale)
    return g * low.masked_fill(self > 0, scale)


elu = pointwise(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    _elu,
    expr="self > 0 ? scale * self : scale * alpha * expm1(input_scale * self)",
    method=False,
    function=False,
    inplace=False,
    checks=_float("elu_cpu"),
    d_self=_elu_gradient,
    cost="expensive",
    doc="α(eˣ - 1) below 0; Clevert et al. 2016.",
)
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
selu: Op = pointwise(
    "selu(Tensor self) -> Tensor",
    lambda xp, a: _elu(xp, a, SELU_ALPHA, SELU_SCALE, 1),
    method=False,
    node="EluBackward0",
    expr=f"self > 0 ? {SELU_SCALE} * self : {SELU_ALPHA * SELU_SCALE} * expm1(self)",
    checks=_float("elu_cpu"),
    d_self=lambda g, self: _elu_gradient(g, self, SELU_ALPHA, SELU_SCALE, 1),
    doc="elu with the scales that keep mean 0 and variance 1; Klambauer et al. 2017.",
)


def _celu(xp: Any, a: Any, alpha: Any) -> Any:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _elu(xp, a, alpha, 1, 1 / alpha)


celu = pointwise(
    "celu(Tensor self, Scalar alpha=1) -> Tensor",
    _celu,
    method=False,
    checks=_float("elu_cpu"),
    expr="self > 0 ? self : alpha * expm1(self / alpha)",
    d_self=lambda g, self, alpha: _elu_gradient(g, self, alpha, 1, 1 / alpha),
    doc="An elu whose derivative has no jump; Barron 2017.",
)


@kernel("z = x * beta\ny = x if z > limit else log1p(exp(z)) / beta", "beta limit")
def _softplus(xp: Any, a: Any, beta: Any, limit: Any) -> Any:
    z = a * a.dtype.type(beta)
    soft = xp.log1p(xp.exp(xp.minimum(z, limit))) / a.dtype.type(beta)
    return xp.where(z > limit, a, soft)


softplus = pointwise(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    _softplus,
    expr="log1p(exp(beta * self)) / beta",
    method=False,
    inplace=False,
    function=False,
    checks=_float("softplus_cpu"),
    d_self=gradient("z = x * beta\ndx = g if z > limit else g / (1 + exp(-z))", "beta limit")(
        lambda g, self, beta, threshold: (
            g * (self * beta).sigmoid().masked_fill(self * beta > threshold, 1)
        )
    ),
    cost="expensive",
    doc="log(1 + e^{βx})/β, and x itself above the threshold.",
)
log_sigmoid = pointwise(
    "log_sigmoid(Tensor self) -> Tensor",
    kernel("y = minimum(x, 0) - log1p(exp(-abs(x)))")(
        lambda xp, a: xp.minimum(a, 0) - xp.log1p(xp.exp(-xp.abs(a)))
    ),
    method=False,
    function=False,
    expr="min(self, 0) - log1p(exp(-abs(self)))",
    inplace=False,
    checks=_float("log_sigmoid_cpu"),
    d_self=gradient("dx = g / (1 + exp(x))")(lambda g, self: g * (-self).sigmoid()),
    memory="rows",
    doc="log(sigmoid(x)) without overflow.",
)


def _float_or_complex(common: Any, args: Any) -> None:
    if not (common.is_floating_point or common.is_complex):
        raise NotImplementedError(f"\"silu_cpu\" not implemented for '{common.legacy}'")


@gradient("s = 1 / (1 + exp(-x))\ndx = g * (s * (1 + x * (1 - s)))")
def _silu_gradient(g: Any, self: Any) -> Any:
    s = self.sigmoid()
    return g * (s * (1 + self * (1 - s)))


silu = pointwise(
    "silu(Tensor self) -> Tensor",
    kernel("y = x / (1 + exp(-x))")(lambda xp, a: a / (1 + xp.exp(-a))),
    expr="self / (1 + exp(-self))",
    method=False,
    inplace=False,
    function=False,
    checks=_float_or_complex,
    d_self=_silu_gradient,
    cost="expensive",
    doc="x·sigmoid(x); Elfwing et al. 2018.",
)


@gradient(
    "s = 1 / (1 + exp(-x))\nt = tanh(x if x > 20 else log1p(exp(x)))\n"
    "dx = g * (t + x * s * (1 - t * t))"
)
def _mish_gradient(g: Any, self: Any) -> Any:
    s = self.sigmoid()
    t = softplus.function(self).tanh()
    return g * (t + self * s * (1 - t * t))


mish = pointwise(
    "mish(Tensor self) -> Tensor",
    kernel("y = x * tanh(x if x > 20 else log1p(exp(x)))")(
        lambda xp, a: a * xp.tanh(xp.logaddexp(a, 0).astype(a.dtype))
    ),
    expr="self * tanh(log1p(exp(self)))",
    method=False,
    inplace=False,
    function=False,
    checks=_float("mish_cpu"),
    d_self=_mish_gradient,
    cost="expensive",
    doc="x·tanh(softplus(x)); Misra 2019.",
)

# -- with chance, and in pairs --------------------------------------------------------------------

rrelu_with_noise = pointwise(
    "rrelu_with_noise(Tensor self, Tensor noise) -> Tensor",
    "multiply",
    method=False,
    function=False,
    inplace=False,
    expr="self * noise",
    checks=_float("rrelu_with_noise_out_cpu"),
    d_self=lambda g, noise: g * noise,
    doc="x times a factor: 1 above 0, a random one below.",
)


@watched
def random_slopes(
    input: Tensor, lower: float, upper: float, training: bool, generator: Any = None
) -> Tensor:
    """The factors of a randomized relu: 1 above 0; below uniform, or their mean."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    x = input.detach()
    if training:
        slopes = x.new_empty(x.shape).uniform_(lower, upper, generator=generator)
        return slopes.masked_fill_(x > 0, 1)
    return x.new_full(x.shape, (lower + upper) / 2).masked_fill_(x > 0, 1)


@public("rrelu")
def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """A leaky relu with random slopes in training; Xu et al. 2015."""
    noise = random_slopes(input, lower, upper, training, generator)
    return rrelu_with_noise.function(input, noise)


def _halves(xp: Any, a: Any, dim: int) -> tuple[Any, Any]:
    if not a.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    d = wrap_dim(dim, a.ndim)
    if a.shape[d] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {d} is size {a.shape[d]}"
        )
    if a.dtype.kind != "f":
        from toytorch.ops.indexing.by_index import type_name

        raise NotImplementedError(f"\"glu_cpu\" not implemented for '{type_name(a)}'")
    first, second = xp.split(a, 2, axis=d)
    return first, second


def _glu(xp: Any, a: Any, dim: int) -> Any:
    first, second = _halves(xp, a, dim)
    made = xp.exp(-second)
    made += 1
    return xp.divide(first, made, out=made)


def _glu_gradient(g: Any, self: Any, dim: int) -> Any:
    from toytorch.ops.shaping.rearrange import cat

    first, second = self.chunk(2, dim)
    gate = second.sigmoid()
    return cat.function([g * gate, g * first * (gate * (1 - gate))], dim)


glu = general(
    "glu(Tensor self, int dim=-1) -> Tensor",
    _glu,
    method=False,
    function=False,
    out=False,
    d_self=_glu_gradient,
    doc="One half times the sigmoid of the other; Dauphin et al. 2017.",
)


def softsign(input: Tensor) -> Tensor:
    """x/(1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()

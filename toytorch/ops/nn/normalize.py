"""Normalisation: (x - mean)·rstd over some dimensions, with rstd = 1/√(var + eps).

Batch, layer and group norm differ in the dimensions only. With x̂ = (x - mean)·rstd and the
gradient g of x̂, the gradient of x is

    rstd·(g - mean(g) - x̂·mean(g·x̂))

which is `_norm_backward`, a record of its own with derivatives of its own. Mean and rstd depend on
x, so where a gradient will be differentiated again x̂ is made anew, of x itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import base, generic
from toytorch.backends.generic import attempt
from toytorch.core.memory_order import has_channels_last
from toytorch.core.op import Op
from toytorch.core.record import refuse_gradients
from toytorch.core.tensor import Tensor
from toytorch.core.write import refuse_grad
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.hints import Array, ArrayModule, Fn
from toytorch.facts.size import wrap_dim
from toytorch.ops.at_once import at_once, taken
from toytorch.ops.creation.create import put_out
from toytorch.ops.define import in_own_type, internal, public
from toytorch.ops.indexing.by_index import type_name


def need_float(name: str, a: Array) -> None:
    if a.dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(a)}'")


def product_sum(xp: ArrayModule, a: Array, b: Array, dims: tuple[int, ...]) -> Any:
    """Σ a·b over dimensions, which stay with size 1; without a product in memory."""
    letters = "abcdefgh"[: a.ndim]
    left = "".join(c for d, c in enumerate(letters) if d not in dims)
    if a.shape[-1] < 8:  # einsum's innermost loop would be too short
        return xp.sum(a * b, axis=dims, keepdims=True)
    summed = xp.einsum(f"{letters},{letters}->{left}", a, b)
    return summed.reshape([1 if d in dims else n for d, n in enumerate(a.shape)])


def centered(
    xp: ArrayModule, x: Array, dims: tuple[int, ...], eps: float
) -> tuple[Any, Any, Any, Any]:
    """(x - mean, mean, variance, rstd) over dimensions."""
    count = math.prod(x.shape[d] for d in dims)
    # Summed in float64: of equal elements the mean is these elements, as PyTorch's is.
    mean = xp.mean(x, axis=dims, keepdims=True, dtype=np.float64).astype(x.dtype)
    rest = x - mean
    variance = product_sum(xp, rest, rest, dims)
    variance /= max(count, 1)
    return rest, mean, variance, 1 / xp.sqrt(variance + x.dtype.type(eps))


def _norm_backward(
    xp: ArrayModule, g: Array, x: Array, mean: Array, rstd: Array, dims: tuple[int, ...], eps: float
) -> Any:
    dims = tuple(dims)
    count = math.prod(x.shape[d] for d in dims)
    made = x - mean
    share = product_sum(xp, g, made, dims)
    share *= rstd * rstd / -max(count, 1)
    made *= share
    made += g
    made -= xp.mean(g, axis=dims, keepdims=True)
    made *= rstd
    return made


def _norm_backward_input(
    g: Tensor,
    grad_output: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    dim: tuple[int, ...],
    eps: float,
) -> Any:
    """With u and v the two gradients and ⟨,⟩ sums over the n elements: the derivative of

    rstd·(⟨u, v⟩ - ⟨u, 1⟩⟨v, 1⟩/n - ⟨u, x̂⟩⟨v, x̂⟩/n), where x̂ and rstd depend on x.
    """
    hat, rstd = standardized(input, mean, rstd, dim, eps)
    n = max(math.prod(input.shape[d] for d in dim), 1)
    u, v = grad_output, g
    uh, vh = ((z * hat).sum(dim, True) for z in (u, v))
    whole = (u * v).sum(dim, True) - (u.sum(dim, True) * v.sum(dim, True) + uh * vh) / n
    crossed = uh * through(v, input, mean, rstd, dim, eps) + vh * through(
        u, input, mean, rstd, dim, eps
    )
    return (whole * rstd * hat + crossed) * (rstd / -n)


def through(
    g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, dims: Sequence[int], eps: float
) -> Any:
    """The gradient of x, given that of x̂."""
    return norm_backward.function(g, x, mean, rstd, tuple(dims), eps)


norm_backward: Op = internal(
    "_norm_backward(Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, int[] dim, "
    "float eps) -> Tensor",
    _norm_backward,
    # The map is symmetric.
    d_grad_output=lambda g, input, mean, rstd, dim, eps: through(g, input, mean, rstd, dim, eps),
    d_input=_norm_backward_input,
    fused="d = input - mean; share = sum(grad_output * d) * (rstd * rstd / count); "
    "(grad_output - sum(grad_output) / count - d * share) * rstd",
    doc="The gradient of (x - mean)·rstd, through all three.",
)


def standardized(
    x: Tensor, mean: Tensor, rstd: Tensor, dims: Sequence[int], eps: float
) -> tuple[Any, Any]:
    """(x̂, rstd); made of x itself where it will be differentiated."""
    if state.local.grad and x._requires_grad:
        rest = x - x.mean(dims, True)
        rstd = ((rest * rest).mean(dims, True) + eps).rsqrt()
        return rest * rstd, rstd
    return (x - mean) * rstd, rstd


SQUARED = float(np.finfo(np.float32).max) ** 0.5  # what float32 has no square of lies beyond


def overflows(x: Array) -> bool:
    """Whether variances of float32 are too large for it, which PyTorch computes in float64 where its
    kernel for images, and what lies in rows, does not serve."""
    if x.flags.c_contiguous or x.__class__ is not np.ndarray or not x.size:
        return False
    if x.ndim > 3 and np.moveaxis(x, 1, -1).flags.c_contiguous:
        return False
    return bool(max(abs(float(x.max())), abs(float(x.min()))) > SQUARED)


# -- batch norm -----------------------------------------------------------------------------------


def _batch_norm(
    xp: ArrayModule,
    a: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    half = a.dtype if a.dtype.itemsize == 2 and a.dtype.kind in "fV" else None
    if half is None:
        need_float("batch_norm", a)
    x = a.astype(np.float32) if half is not None else a
    if half is not None and training and all(v is None or v.dtype == half for v in (weight, bias)):
        wide = (None if v is None else v.astype(np.float32) for v in (weight, bias))
        running = running_mean, running_var
        found = attempt(xp, "halves batch_norm", half, x, *wide, *running, momentum, eps)
        if found is not None:
            return found
    compiled, beyond = None, training and x.dtype == np.float32 and overflows(x)
    if not beyond:
        given = weight, bias, running_mean, running_var
        compiled = _compiled_batch_norm(xp, x, *given, training, momentum, eps)
    if compiled is not None:
        return compiled if half is None else tuple(v.astype(half) for v in compiled)
    x = x.reshape(x.shape[0], x.shape[1], -1) if x.ndim > 2 else x
    dims, column = ((0, 2), (-1, 1)) if x.ndim == 3 else ((0,), (-1,))
    if training:
        made, mean, variance, rstd = centered(xp, x.astype(np.float64) if beyond else x, dims, eps)
        made, mean, rstd = (v.astype(x.dtype, copy=False) for v in (made, mean, rstd))
        _update_both(
            running_mean, running_var, mean, variance, x.size // max(x.shape[1], 1), momentum
        )
        saved = mean.reshape(-1), rstd.reshape(-1)
        scale = rstd
    else:
        assert running_mean is not None and running_var is not None  # as `refuse_sizes` saw to
        made = x - running_mean.astype(x.dtype).reshape(column)
        scale = 1 / xp.sqrt(running_var.astype(x.dtype) + x.dtype.type(eps)).reshape(column)
        saved = xp.zeros(0, x.dtype), xp.zeros(0, x.dtype)
    made *= scale if weight is None else scale * weight.astype(x.dtype).reshape(column)
    if bias is not None:
        made += bias.astype(x.dtype).reshape(column)
    made = made.reshape(a.shape)
    return (made, *saved) if half is None else tuple(v.astype(half) for v in (made, *saved))


def _compiled_batch_norm(xp: ArrayModule, x: Any, *given: Any) -> Any:
    """The same in compiled loops, or None."""
    weight, bias, running_mean, running_var, training, momentum, eps = given
    kind = x.dtype
    weight, bias = in_kind(weight, kind), in_kind(bias, kind)
    if not training:
        mean, var = in_kind(running_mean, kind), in_kind(running_var, kind)
        made = attempt(xp, "batch_norm_known", x, mean, var, weight, bias, eps)
        if made is None:
            scale = xp.reciprocal(xp.sqrt(var + kind.type(eps)))
            scale = scale if weight is None else scale * weight
            made = attempt(xp, "batch_norm_affine", x, mean, scale, bias)
        return None if made is None else (made, xp.zeros(0, kind), xp.zeros(0, kind))
    found = attempt(xp, "batch_norm", x, weight, bias, eps)
    if found is None:
        return None
    made, mean, variance, rstd = found
    _update_both(running_mean, running_var, mean, variance, x.size // x.shape[1], momentum)
    return made, mean, rstd


def in_kind(a: Array | None, kind: Any) -> Any:
    """An array, if there is one, in a type; itself where it has that already."""
    return a if a is None or a.dtype is kind else a.astype(kind, copy=False)


def _update_both(
    running_mean: Array | Tensor | None,
    running_var: Array | Tensor | None,
    mean: Array,
    variance: Array,
    count: int,
    momentum: float,
) -> None:
    """Moves the running statistics, whose variance is that of a sample: NaN of a single element."""
    _update(running_mean, mean, momentum)
    _update(running_var, variance * (count / (count - 1) if count > 1 else math.nan), momentum)


def _update(running: Any, value: Any, momentum: float) -> None:
    """running ← (1 - momentum)·running + momentum·value, in place."""
    if running is not None:
        running *= running.dtype.type(1 - momentum)
        running += (value.reshape(-1) * momentum).astype(running.dtype)


def _channels(x: Tensor) -> tuple[Any, list[int]]:
    """Images as (N, C, P), and the dimensions that batch norm takes together."""
    return x.reshape([*x.shape[:2], -1]), [0, 2]


def _statistics(
    mean: Any, rstd: Any, running_mean: Any, running_var: Any, training: bool, eps: float
) -> tuple[Any, Any]:
    """What was subtracted and what was multiplied, as columns."""
    if not training:
        mean, rstd = running_mean, (running_var + eps).rsqrt()
    return mean.reshape([-1, 1]), rstd.reshape([-1, 1])


def _batch_norm_gradient(k: int) -> Fn:
    """The gradient of the input (0) or of the weight (1)."""

    def gradient(
        gs: Sequence[Tensor],
        input: Tensor,
        weight: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        training: bool,
        eps: float,
        result1: Tensor,
        result2: Tensor,
        work: dict[Any, Any],
    ) -> Any:
        name, known = "batch_norm_backward", (result1, result2)
        running: Any = running_mean, running_var
        if not (training or "made" in work or state.local.grad or state.local.modes):
            name, known = "batch_norm_known_backward", (running[0], (running[1] + eps).rsqrt())
        made = at_once(work, name, gs[0], input, weight, *known)
        if made:
            return taken(made, k)
        x, dims = _channels(input)
        mean, rstd = _statistics(result1, result2, running[0], running[1], training, eps)
        g = gs[0].reshape(x.shape)
        if k:
            hat = standardized(x, mean, rstd, dims, eps)[0] if training else (x - mean) * rstd
            return (g * hat).sum(dims)
        g = g if weight is None else g * weight.reshape([-1, 1]).to(g.dtype)
        made = through(g, x, mean, rstd, dims, eps) if training else g * rstd.to(g.dtype)
        return made.reshape(input.shape)

    return gradient


def _batch_norm_bias(
    gs: Sequence[Tensor],
    input: Tensor,
    weight: Tensor,
    training: bool,
    result1: Tensor,
    result2: Tensor,
    work: dict[Any, Any],
) -> Any:
    made = work.get("made")  # with the weight's
    if made is None and training:
        made = at_once(work, "batch_norm_backward", gs[0], input, weight, result1, result2)
    return taken(made, 2) if made else gs[0].sum([0, *range(2, gs[0].ndim)])


native_batch_norm = in_own_type(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
    "Tensor? running_var, bool training, float momentum, float eps) "
    "-> (Tensor output, Tensor mean, Tensor rstd)",
    _batch_norm,
    forms="",
    results=(True, False, False),
    d_input=_batch_norm_gradient(0),
    d_weight=_batch_norm_gradient(1),
    d_bias=_batch_norm_bias,
    memory="format",
    doc="Normalisation of channels over a batch; Ioffe and Szegedy 2015. Writes running means.",
)


def refuse_mixed(input: Tensor, *parameters: Tensor | None, whole: bool = False) -> None:
    """Refuses parameters of another type than the input, but float32 beside halves; beside whole
    numbers, too, if so asked."""
    given = [p for p in parameters if p is not None]
    if not given or given[0]._dtype is input._dtype or (input._dtype.rank < 2 and not whole):
        return
    if any(p._dtype is not types.float32 for p in given):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if input._dtype.itemsize != 2 or not input.is_floating_point():
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def refuse_kinds(*parameters: Tensor | None) -> None:
    """Refuses parameters that are not of the first one's type."""
    given = [p for p in parameters if p is not None]
    for p in given:
        if p._dtype is not given[0]._dtype:
            want, got = (t._dtype.legacy for t in (given[0], p))
            raise RuntimeError(f"expected scalar type {want} but found {got}")


def refuse_sizes(channels: int, training: bool, *values: Tensor | None) -> None:
    """Refuses statistics and parameters (the two means, weight and bias) that are not one number a
    channel, and statistics that are missing where they are read."""
    for name, value in zip(("running_mean", "running_var", "weight", "bias"), values):
        if value is not None and value.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {value.numel()}")
        if value is None and not training and name.startswith("running"):
            raise RuntimeError(f"{name} must be defined in evaluation mode")


def refuse_one_alone(running_mean: Tensor | None, running_var: Tensor | None) -> None:
    """Refuses one of the two statistics without the other."""
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")


def normalize_batch(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """native_batch_norm with PyTorch's checks."""
    refuse_gradients("native_batch_norm", running_mean=running_mean, running_var=running_var)
    given = weight, bias, running_mean, running_var
    first = next((p for p in given if p is not None), input)
    in_format = input.is_contiguous() or has_channels_last(input._array)
    if training and first.dtype is input.dtype and input.dtype.rank < 2 and not in_format:
        input.mean()  # which says that there is none of integers
    refuse_one_alone(running_mean, running_var)
    channels = input.shape[wrap_dim(1, input.ndim)]
    if input.dtype.rank != 2:
        raise NotImplementedError(f"\"batch_norm\" not implemented for '{input.dtype.legacy}'")
    refuse_mixed(input, weight, bias, running_mean, running_var)
    if training and not input.numel():
        raise RuntimeError(
            f"input tensor must have at least one element, but got input_sizes = {list(input.shape)}"
        )
    if not training and not input.numel():  # of nothing, nothing is asked
        return input.clone(), input.new_empty(0), input.new_empty(0)
    refuse_kinds(weight, bias, running_mean, running_var)
    refuse_sizes(channels, training, running_mean, running_var, weight, bias)
    if input._tangents and any(v is not None and v._tangents for v in (running_mean, running_var)):
        raise RuntimeError(
            "batch_norm is not differentiable wrt running_mean and running_var, they cannot have "
            "forward grad defined"
        )
    half = input.dtype.itemsize == 2 and input.dtype.is_floating_point
    alike = training and all(v is None or v.dtype is input.dtype for v in given)
    xp = base.of_array(input._array).xp
    if half and not (alike and generic.offers(xp, "halves batch_norm") and not state.local.modes):
        return normalize_half_batch(input, given, training, momentum, eps)
    return tuple(native_batch_norm.function(input, *given, training, momentum, eps))


def normalize_half_batch(input: Tensor, tensors: Sequence[Tensor | None], *how: Any) -> Any:
    """The same for 16 bits: sums need more digits, so all is computed in float32."""
    wide: list[Any] = [None if t is None else t.float() for t in tensors]
    made, mean, rstd = normalize_batch(input.float(), *wide, *how)
    if how[0]:  # in training
        for narrow, new in zip(tensors[2:], wide[2:]):
            if narrow is not None and narrow is not new:
                narrow.copy_(new)
    given = next((t for t in tensors[:3] if t is not None), input)
    return made.to(input.dtype), mean.to(given.dtype), rstd.to(given.dtype)


@public("native_batch_norm")
def normalize_batch_into(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: tuple[Tensor, Tensor, Tensor] | None = None,
) -> Any:
    """native_batch_norm, whose results may go to tensors that are there."""
    tensors = input, weight, bias, running_mean, running_var
    if out is None:
        return normalize_batch(*tensors, training, momentum, eps)
    refuse_grad("native_batch_norm", tensors, out[0])
    made = normalize_batch(*tensors, training, momentum, eps)
    for new, place in zip(made, out):
        refuse_kinds(new, place)
    return tuple(put_out(new, place) for new, place in zip(made, out))


@public("_native_batch_norm_legit", "aten._native_batch_norm_legit")
def native_batch_norm_legit(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    *rest: Any,
    training: Any = None,
    momentum: Any = None,
    eps: Any = None,
) -> Any:
    """native_batch_norm, also without running statistics."""
    given = {
        k: v
        for k, v in (("training", training), ("momentum", momentum), ("eps", eps))
        if v is not None
    }
    if (rest and isinstance(rest[0], Tensor)) or len(rest) + len(given) == 5:
        return normalize_batch(input, weight, bias, *rest, **given)
    return normalize_batch(input, weight, bias, None, None, *rest, **given)


@public("_batch_norm_with_update", "aten._batch_norm_with_update")
def batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
) -> Any:
    """native_batch_norm in training, with a place for what an accelerator would keep."""
    made = normalize_batch(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*made, input.new_empty(0, dtype=types.uint8))


@public("batch_norm")
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """(x - mean)·rstd·weight + bias, with statistics of each channel over the batch."""
    if not input._array.size:
        made = input.clone()
        made = made if weight is None else made * weight.select(0, 0)
        return made if bias is None else made + bias.select(0, 0)
    channels = input._array.shape[1] if input._array.ndim > 1 else 0
    given = weight, bias, running_mean, running_var
    if (
        input._dtype.plain
        and (running_mean is None) == (running_var is None)
        and (training or running_mean is not None)
        and not state.local.modes
    ):
        for v in given:
            if v is not None and (
                v._dtype is not input._dtype or v._array.shape != (channels,) or v._tangents
            ):
                break
        else:
            wanted = running_mean is not None and running_mean._requires_grad
            if not wanted and not (running_var is not None and running_var._requires_grad):
                return native_batch_norm.function(input, *given, training, momentum, eps)[0]
    refuse_sizes(channels, training, running_mean, running_var, weight, bias)
    refuse_one_alone(running_mean, running_var)
    for v in (running_mean, running_var):
        if v is not None and v.ndim != 1:
            raise RuntimeError(f"TensorAccessor expected 1 dims but tensor has {v.ndim}")
    w, b = (v if v is None or v.ndim == 1 else v.view(-1) for v in (weight, bias))
    return normalize_batch(input, w, b, running_mean, running_var, training, momentum, eps)[0]


@public("instance_norm")
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Batch norm of every image by itself."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    for d in (0, 1):
        wrap_dim(d, input.ndim, wrap_scalar=False)
    batch, channels = input.shape[:2]
    weight, bias, mean, var = (
        None if v is None else v.repeat(batch) for v in (weight, bias, running_mean, running_var)
    )
    kind = input.dtype if weight is None else weight.dtype
    if mean is not None and mean.dtype is not kind:  # PyTorch asks this of the mean alone
        mean, var = mean.to(kind), None if var is None else var.to(kind)
    images = input.reshape([1, batch * channels, *input.shape[2:]])
    made = batch_norm(images, weight, bias, mean, var, use_input_stats, momentum, eps)
    for running, each in ((running_mean, mean), (running_var, var)):
        if use_input_stats and running is not None and each is not None:
            running.detach().copy_(each.view([batch, channels]).mean(0))
    return made.view(input.shape)

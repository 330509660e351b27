"""Normalisation: (x - mean)·rstd over some dimensions, with rstd = 1/√(var + eps).

Batch, layer and group norm differ in the dimensions only. With x̂ = (x - mean)·rstd and the
gradient g of x̂, the gradient of x is

    rstd·(g - mean(g) - x̂·mean(g·x̂))

which is `_norm_backward`, a record of its own with derivatives of its own. Mean and rstd depend on
x, so where a gradient will be differentiated again x̂ is made anew, of x itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.core import dtype as types
from toytorch.core import state
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.ops.define import general, public
from toytorch.ops.windows import sizes_text


def _float(name: str, a: Any) -> None:
    if a.dtype.kind != "f":
        from toytorch.ops.index import type_name
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(a)}'")


def product_sum(xp: Any, a: Any, b: Any, dims: Any) -> Any:
    """Σ a·b over dimensions, which stay with size 1; without a product in memory."""
    letters = "abcdefgh"[:a.ndim]
    left = "".join(c for d, c in enumerate(letters) if d not in dims)
    if a.shape[-1] < 8:  # einsum's innermost loop would be too short
        return xp.sum(a * b, axis=dims, keepdims=True)
    summed = xp.einsum(f"{letters},{letters}->{left}", a, b)
    return summed.reshape([1 if d in dims else n for d, n in enumerate(a.shape)])


def centered(xp: Any, x: Any, dims: Any, eps: float) -> tuple[Any, Any, Any, Any]:
    """(x - mean, mean, variance, rstd) over dimensions."""
    count = math.prod(x.shape[d] for d in dims)
    mean = xp.mean(x, axis=dims, keepdims=True)
    rest = x - mean
    variance = product_sum(xp, rest, rest, dims)
    variance /= max(count, 1)
    return rest, mean, variance, 1 / xp.sqrt(variance + x.dtype.type(eps))


def _norm_backward(xp: Any, g: Any, x: Any, mean: Any, rstd: Any, dims: Any, eps: float) -> Any:
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


def _norm_backward_input(g: Any, grad_output: Any, input: Any, mean: Any, rstd: Any, dim: Any,
                         eps: float) -> Any:
    """With u and v the two gradients and ⟨,⟩ sums over the n elements: the derivative of

    rstd·(⟨u, v⟩ - ⟨u, 1⟩⟨v, 1⟩/n - ⟨u, x̂⟩⟨v, x̂⟩/n), where x̂ and rstd depend on x.
    """
    hat, rstd = standardized(input, mean, rstd, dim, eps)
    n = max(math.prod(input.shape[d] for d in dim), 1)
    u, v = grad_output, g
    uh, vh = ((z * hat).sum(dim, True) for z in (u, v))
    whole = (u * v).sum(dim, True) - (u.sum(dim, True) * v.sum(dim, True) + uh * vh) / n
    through = uh * _through(v, input, mean, rstd, dim, eps) \
        + vh * _through(u, input, mean, rstd, dim, eps)
    return (whole * rstd * hat + through) * (rstd / -n)


def _through(g: Any, x: Any, mean: Any, rstd: Any, dims: Any, eps: float) -> Any:
    """The gradient of x, given that of x̂."""
    return norm_backward.function(g, x, mean, rstd, tuple(dims), eps)


norm_backward: Op = general(
    "_norm_backward(Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, int[] dim, "
    "float eps) -> Tensor", _norm_backward, function=False, method=False, out=False,
    d_grad_output=lambda g, input, mean, rstd, dim, eps:
    _through(g, input, mean, rstd, dim, eps),  # the map is symmetric
    d_input=_norm_backward_input, doc="The gradient of (x - mean)·rstd, through all three.")


def standardized(x: Any, mean: Any, rstd: Any, dims: Any, eps: float) -> tuple[Any, Any]:
    """(x̂, rstd); made of x itself where it will be differentiated."""
    if state.local.grad and x._rg:
        rest = x - x.mean(dims, True)
        rstd = ((rest * rest).mean(dims, True) + eps).rsqrt()
        return rest * rstd, rstd
    return (x - mean) * rstd, rstd


# -- batch norm -----------------------------------------------------------------------------------


def _batch_norm(xp: Any, a: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                training: bool, momentum: float, eps: float) -> Any:
    _float("batch_norm", a)
    half = a.dtype if a.dtype.itemsize == 2 else None
    x = a.astype(np.float32) if half is not None else a
    x = x.reshape(x.shape[0], x.shape[1], -1) if x.ndim > 2 else x
    dims, column = ((0, 2), (-1, 1)) if x.ndim == 3 else ((0,), (-1,))
    if training:
        made, mean, variance, rstd = centered(xp, x, dims, eps)
        _update(running_mean, mean, momentum)
        count = x.size // max(x.shape[1], 1)
        _update(running_var, variance * (count / max(count - 1, 1)), momentum)
        saved = mean.reshape(-1), rstd.reshape(-1)
        scale = rstd
    else:
        made = x - running_mean.astype(x.dtype).reshape(column)
        scale = 1 / xp.sqrt(running_var.astype(x.dtype) + x.dtype.type(eps)).reshape(column)
        saved = xp.zeros(0, x.dtype), xp.zeros(0, x.dtype)
    made *= scale if weight is None else scale * weight.astype(x.dtype).reshape(column)
    if bias is not None:
        made += bias.astype(x.dtype).reshape(column)
    made = made.reshape(a.shape)
    return (made, *saved) if half is None else tuple(v.astype(half) for v in (made, *saved))


def _update(running: Any, value: Any, momentum: float) -> None:
    """running ← (1 - momentum)·running + momentum·value, in place."""
    if running is not None:
        running *= running.dtype.type(1 - momentum)
        running += (value.reshape(-1) * momentum).astype(running.dtype)


def _channels(x: Any) -> tuple[Any, list[int]]:
    """Images as (N, C, P), and the dimensions that batch norm takes together."""
    return x.reshape([*x.shape[:2], -1]), [0, 2]


def _statistics(mean: Any, rstd: Any, running_mean: Any, running_var: Any, training: bool,
                eps: float) -> tuple[Any, Any]:
    """What was subtracted and what was multiplied, as columns."""
    if not training:
        mean, rstd = running_mean, (running_var + eps).rsqrt()
    return mean.reshape([-1, 1]), rstd.reshape([-1, 1])


def _batch_norm_input(gs: Any, input: Any, weight: Any, running_mean: Any, running_var: Any,
                      training: bool, eps: float, result1: Any, result2: Any) -> Any:
    x, dims = _channels(input)
    mean, rstd = _statistics(result1, result2, running_mean, running_var, training, eps)
    g = gs[0].reshape(x.shape)
    g = g if weight is None else g * weight.reshape([-1, 1]).to(g.dtype)
    made = _through(g, x, mean, rstd, dims, eps) if training else g * rstd.to(g.dtype)
    return made.reshape(input.shape)


def _batch_norm_weight(gs: Any, input: Any, running_mean: Any, running_var: Any, training: bool,
                       eps: float, result1: Any, result2: Any) -> Any:
    x, dims = _channels(input)
    mean, rstd = _statistics(result1, result2, running_mean, running_var, training, eps)
    hat = standardized(x, mean, rstd, dims, eps)[0] if training else (x - mean) * rstd
    return (gs[0].reshape(x.shape) * hat).sum(dims)


native_batch_norm = general(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
    "Tensor? running_var, bool training, float momentum, float eps) "
    "-> (Tensor output, Tensor mean, Tensor rstd)", _batch_norm, function=False, method=False,
    out=False, upcast=False, results=(True, False, False), d_input=_batch_norm_input,
    d_weight=_batch_norm_weight, d_bias=lambda gs: gs[0].sum([0, *range(2, gs[0].ndim)]),
    doc="Normalisation of channels over a batch; Ioffe and Szegedy 2015. Writes running means.")


def normalize_batch(input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                    training: bool, momentum: float, eps: float) -> Any:
    """native_batch_norm with PyTorch's checks."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected 2 or more dimensions, but got {input.ndim}")
    channels = input.shape[1]
    for name, value in (("running_mean", running_mean), ("running_var", running_var),
                        ("weight", weight), ("bias", bias)):
        if value is not None and value.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {value.numel()}")
        if value is None and not training and name.startswith("running"):
            raise RuntimeError(f"Expected {name} to be defined when training=False")
    return native_batch_norm.function(input, weight, bias, running_mean, running_var, training,
                                      momentum, eps)


public("native_batch_norm")(normalize_batch)


@public("_native_batch_norm_legit", "aten._native_batch_norm_legit")
def native_batch_norm_legit(input: Tensor, weight: Any, bias: Any, *rest: Any,
                            training: Any = None, momentum: Any = None, eps: Any = None) -> Any:
    """native_batch_norm, also without running statistics."""
    given = {k: v for k, v in (("training", training), ("momentum", momentum), ("eps", eps))
             if v is not None}
    if rest and isinstance(rest[0], Tensor) or len(rest) + len(given) == 5:
        return normalize_batch(input, weight, bias, *rest, **given)
    return normalize_batch(input, weight, bias, None, None, *rest, **given)


@public("_batch_norm_with_update", "aten._batch_norm_with_update")
def batch_norm_with_update(input: Tensor, weight: Any, bias: Any, running_mean: Any,
                           running_var: Any, momentum: float, eps: float) -> Any:
    """native_batch_norm in training, with a place for what an accelerator would keep."""
    made = normalize_batch(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*made, input.new_empty(0, dtype=types.uint8))


@public("batch_norm")
def batch_norm(input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any,
               training: bool, momentum: float, eps: float, cudnn_enabled: bool = True) -> Tensor:
    """(x - mean)·rstd·weight + bias, with statistics of each channel over the batch."""
    if not input.numel():
        made = input.clone()
        made = made if weight is None else made * weight[0]
        return made if bias is None else made + bias[0]  # type: ignore[no-any-return]
    return normalize_batch(input, weight, bias, running_mean, running_var, training,  # type: ignore
                           momentum, eps)[0]


@public("instance_norm")
def instance_norm(input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                  use_input_stats: bool, momentum: float, eps: float,
                  cudnn_enabled: bool = True) -> Tensor:
    """Batch norm of every image by itself."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when "
                           "use_input_stats is false")
    batch, channels = input.shape[:2]
    weight, bias, mean, var = (None if v is None else v.repeat(batch)
                               for v in (weight, bias, running_mean, running_var))
    made = batch_norm(input.reshape([1, batch * channels, *input.shape[2:]]), weight, bias, mean,
                      var, use_input_stats, momentum, eps)
    for running, each in ((running_mean, mean), (running_var, var)):
        if use_input_stats and running is not None:
            running.detach().copy_(each.view([batch, channels]).mean(0))
    return made.view(input.shape)  # type: ignore[no-any-return]


# -- layer norm and group norm --------------------------------------------------------------------


def _layer_norm(xp: Any, a: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    shape = tuple(shape)
    _check_layer(a, shape, weight, bias)
    _float("LayerNormKernelImpl", a)
    lead = a.shape[:a.ndim - len(shape)]
    rows = a.reshape(math.prod(lead), math.prod(shape))
    made, mean, _, rstd = centered(xp, rows, (1,), eps)
    made *= rstd
    if weight is not None:
        made *= weight.reshape(-1)
    if bias is not None:
        made += bias.reshape(-1)
    kept = (*lead, *(1,) * len(shape))
    return made.reshape(a.shape), mean.reshape(kept), rstd.reshape(kept)


def _check_layer(a: Any, shape: Any, *parameters: Any) -> None:
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., "
                           "containing at least one element, but got normalized_shape = []")
    for name, p in zip(("weight", "bias"), parameters):
        if p is not None and p.shape != shape:
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got "
                               f"{name} of shape {sizes_text(p.shape)} and normalized_shape = "
                               f"{sizes_text(shape)}")
    if a.shape[a.ndim - len(shape):] != shape or a.ndim < len(shape):
        wanted = ", ".join(map(str, shape))
        raise RuntimeError(f"Given normalized_shape={sizes_text(shape)}, expected input with shape "
                           f"[*, {wanted}], but got input of size{sizes_text(a.shape)}")


def _last(normalized_shape: Any) -> list[int]:
    return list(range(-len(normalized_shape), 0))


def _layer_norm_input(gs: Any, input: Any, normalized_shape: Any, weight: Any, eps: float,
                      result1: Any, result2: Any) -> Any:
    g = gs[0] if weight is None else gs[0] * weight
    dims = [d + input.ndim for d in _last(normalized_shape)]
    return _through(g, input, result1, result2, dims, eps)


def _layer_norm_weight(gs: Any, input: Any, normalized_shape: Any, eps: float, result1: Any,
                       result2: Any) -> Any:
    hat, _ = standardized(input, result1, result2, _last(normalized_shape), eps)
    return _sum_lead(gs[0] * hat, len(normalized_shape))


def _sum_lead(g: Any, n: int) -> Any:
    """The sum over all dimensions but the last n."""
    return g.sum(list(range(g.ndim - n))) if g.ndim > n else g


native_layer_norm = general(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
    "float eps) -> (Tensor output, Tensor mean, Tensor rstd)", _layer_norm, method=False,
    out=False, results=(True, False, False), d_input=_layer_norm_input,
    d_weight=_layer_norm_weight,
    d_bias=lambda gs, normalized_shape: _sum_lead(gs[0], len(normalized_shape)),
    doc="Normalisation over the last dimensions; Ba, Kiros and Hinton 2016.")


@public("layer_norm")
def layer_norm(input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None,
               eps: float = 1e-5, cudnn_enable: bool = True) -> Tensor:
    """(x - mean)·rstd·weight + bias, with statistics over the last dimensions.

    >>> import toytorch as torch
    >>> layer_norm(torch.tensor([1., 3.]), [2])
    tensor([-1.0000,  1.0000])
    """
    return native_layer_norm.function(  # type: ignore[no-any-return]
        input, normalized_shape, weight, bias, eps)[0]


def _group_norm(xp: Any, a: Any, weight: Any, bias: Any, n: int, c: int, area: int, group: int,
                eps: float) -> Any:
    _float("GroupNormKernelImpl", a)
    made, mean, _, rstd = centered(xp, a.reshape(n, group, c // group * area), (2,), eps)
    made *= rstd
    made = made.reshape(n, c, area)
    if weight is not None:
        made *= weight.reshape(-1, 1)
    if bias is not None:
        made += bias.reshape(-1, 1)
    return made.reshape(a.shape), mean.reshape(n, group), rstd.reshape(n, group)


def _group_norm_input(gs: Any, input: Any, weight: Any, N: int, C: int, HxW: int, group: int,
                      eps: float, result1: Any, result2: Any) -> Any:
    g, rows = gs[0].reshape([N, C, HxW]), [N, group, C // group * HxW]
    g = (g if weight is None else g * weight.reshape([-1, 1])).reshape(rows)
    x, mean, rstd = input.reshape(rows), result1.unsqueeze(-1), result2.unsqueeze(-1)
    made = _through(g, x, mean, rstd, [2], eps)
    if bool(gs[1].any()) or bool(gs[2].any()):  # gradients of the mean, and of rstd
        if not bool(gs[0].any()):  # PyTorch looks at them only beside one of the output
            return input.new_zeros(input.shape)
        hat, rstd = standardized(x, mean, rstd, [2], eps)
        count = max(C // group * HxW, 1)
        made = made + (gs[1].unsqueeze(-1) - gs[2].unsqueeze(-1) * hat * rstd * rstd) / count
    return made.reshape(input.shape)


def _group_norm_weight(gs: Any, input: Any, N: int, C: int, HxW: int, group: int, eps: float,
                       result1: Any, result2: Any) -> Any:
    hat, _ = standardized(input.reshape([N, group, C // group * HxW]), result1.unsqueeze(-1),
                          result2.unsqueeze(-1), [2], eps)
    return (gs[0].reshape([N, C, HxW]) * hat.reshape([N, C, HxW])).sum([0, 2])


native_group_norm = general(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, "
    "int group, float eps) -> (Tensor output, Tensor mean, Tensor rstd)", _group_norm,
    method=False, out=False, results=(True, True, True), d_input=_group_norm_input,
    d_weight=_group_norm_weight,
    d_bias=lambda gs, N, C, HxW: gs[0].reshape([N, C, HxW]).sum([0, 2]),
    doc="Normalisation over groups of channels; Wu and He 2018.")


@public("group_norm")
def group_norm(input: Tensor, num_groups: int, weight: Any = None, bias: Any = None,
               eps: float = 1e-5, cudnn_enabled: bool = True) -> Tensor:
    """(x - mean)·rstd·weight + bias, with statistics over groups of channels."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received "
                           f"{input.ndim}")
    batch, channels = input.shape[:2]
    if num_groups <= 0:
        raise RuntimeError(f"num_groups must be positive, but got {num_groups}")
    if channels % num_groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, but"
                           f" got input of shape {sizes_text(input.shape)} and num_groups="
                           f"{num_groups}")
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and tuple(p.shape) != (channels,):
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of "
                               f"channels in input, but got {name} of shape {sizes_text(p.shape)} "
                               f"and input of shape {sizes_text(input.shape)}")
    return native_group_norm.function(  # type: ignore[no-any-return]
        input, weight, bias, batch, channels, math.prod(input.shape[2:]), num_groups, eps)[0]


@public("rms_norm")
def rms_norm(input: Tensor, normalized_shape: Any, weight: Any = None,
             eps: float | None = None) -> Tensor:
    """x/√(mean(x²) + eps)·weight over the last dimensions; Zhang and Sennrich 2019."""
    shape = tuple(normalized_shape)
    _check_layer(input._array, shape, weight)
    if eps is None:
        kind = types.float32 if input.dtype.itemsize == 2 else input.dtype.to_real()
        eps = types.finfo(kind).eps
    x = input.to(types.float32) if input.dtype.itemsize == 2 else input
    scale = (x.pow(2).mean(_last(shape), True) + eps).rsqrt()
    made = (x * scale).to(input.dtype)
    return made if weight is None else made * weight  # type: ignore[no-any-return]

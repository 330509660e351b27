"""Layer norm and group norm: each sample by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.core.memory_order import has_channels_last, is_channels_last
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.device import channels_last as last_format
from toytorch.facts.device import channels_last_3d as last_volumes
from toytorch.facts.device import contiguous_format
from toytorch.facts.hints import Array, ArrayModule, Fn, Shape
from toytorch.facts.size import wrap_dim
from toytorch.kernels.memory_format import channels_last
from toytorch.ops.at_once import at_once, taken
from toytorch.ops.define import internal, public
from toytorch.ops.nn.linear_maps import tied
from toytorch.ops.nn.normalize import (
    centered,
    need_float,
    refuse_kinds,
    refuse_mixed,
    standardized,
    through,
)
from toytorch.ops.nn.windows import sizes_text

# -- over the last dimensions ---------------------------------------------------------------------


def _layer_norm(
    xp: ArrayModule, a: Array, shape: Shape, weight: Array | None, bias: Array | None, eps: float
) -> Any:
    shape = tuple(shape)
    lead = a.shape[: a.ndim - len(shape)]
    if (
        not shape
        or (*lead, *shape) != a.shape
        or (weight is not None and weight.shape != shape)
        or (bias is not None and bias.shape != shape)
    ):
        check_layer(a, shape, weight, bias)  # says which do not go together
    kept = lead + (1,) * len(shape)
    compiled = attempt(xp, "layer_norm", a, math.prod(shape), weight, bias, eps)
    if compiled is not None:
        made, mean, rstd = compiled
        if few(a.dtype, math.prod(shape)) and not rstd.all():
            unknown(made.reshape(rstd.size, -1), rstd.reshape(-1))
        return made, mean.reshape(kept), rstd.reshape(kept)
    need_float("LayerNormKernelImpl", a)
    if 0 in shape:
        return a.copy(), xp.zeros(kept, a.dtype), xp.full(kept, np.nan, a.dtype)
    rows = a.reshape(math.prod(lead), math.prod(shape))
    made, mean, _, rstd = centered(xp, rows, (1,), eps)
    made *= rstd
    if weight is not None:
        made *= weight.reshape(-1)
    if bias is not None:
        made += bias.real.reshape(-1)  # of other types than the weight, it is refused later
    if few(a.dtype, rows.shape[1]) and not rstd.all():
        unknown(made, rstd.reshape(-1))
    return made.reshape(a.shape), mean.reshape(kept), rstd.reshape(kept)


def few(kind: Any, count: int) -> bool:
    """Whether so few elements are normalised together that PyTorch sums them one by one, after its
    sums in vectors, of which none is needed: an infinite variance then is infinity times 0."""
    return bool(count < (4 if kind == np.float64 else 8))


def unknown(made: Array, rstd: Array) -> None:
    """Makes NaN of what was divided by an infinite deviation; along the first dimension of both."""
    without = rstd == 0
    rstd[without] = made[without] = np.nan


def check_layer(a: Array, shape: Any, *parameters: Any, begin: str = "*, ") -> None:
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., "
            "containing at least one element, but got normalized_shape = []"
        )
    for name, p in zip(("weight", "bias"), parameters):
        if p is not None and p.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{sizes_text(p.shape)} and normalized_shape = {sizes_text(shape)}"
            )
    if a.shape[a.ndim - len(shape) :] != shape or a.ndim < len(shape):
        wanted = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={sizes_text(shape)}, expected input with shape "
            f"[{begin}{wanted}], but got input of size{sizes_text(a.shape)}"
        )


def last_dims(normalized_shape: Shape) -> list[int]:
    return list(range(-len(normalized_shape), 0))


def _wide(*tensors: Tensor | None) -> list[Any]:
    """Half types as float32, in which PyTorch's kernels multiply and add before they round."""
    return [t if t is None or t.dtype.itemsize != 2 else t.to(types.float32) for t in tensors]


def _narrow(made: Tensor, like: Tensor) -> Tensor:
    return made if made.dtype is like.dtype else made.to(like.dtype)


def _layer_norm_input(
    gs: Sequence[Tensor],
    input: Tensor,
    normalized_shape: Shape,
    weight: Tensor | None,
    eps: float,
    result1: Tensor,
    result2: Tensor,
    work: dict[Any, Any],
) -> Any:
    if weight is not None and weight.requires_grad:
        shape, found = tuple(normalized_shape), work.setdefault("whole", {})
        made = at_once(found, "layer_norm_backward", gs[0], input, shape, weight, result1, result2)
        if made:
            return taken(made, 0)
    made = at_once({}, "layer_norm_input", gs[0], input, weight, result1, result2)
    if made:
        return taken(made, 0)
    g, x, scale, mean, rstd = _wide(gs[0], input, weight, result1, result2)
    g = g if scale is None else g * scale
    dims = [d + input.ndim for d in last_dims(normalized_shape)]
    return _narrow(through(g, x, mean, rstd, dims, eps), input)


def _layer_norm_weight(
    gs: Sequence[Tensor],
    input: Tensor,
    normalized_shape: Shape,
    eps: float,
    result1: Tensor,
    result2: Tensor,
    work: dict[Any, Any],
) -> Any:
    made = _layer_norm_at_once(gs, input, normalized_shape, result1, result2, work)
    if made:
        return taken(made, -2)
    g, x, mean, rstd = _wide(gs[0], input, result1, result2)
    hat, _ = standardized(x, mean, rstd, last_dims(normalized_shape), eps)
    return _narrow(sum_lead(g * hat, len(normalized_shape)), input)


def _layer_norm_at_once(
    gs: Sequence[Tensor],
    input: Tensor,
    normalized_shape: Shape,
    result1: Tensor,
    result2: Tensor,
    work: dict[Any, Any],
) -> Any:
    """The gradients of weight and bias, the last two of a list, in one compiled loop; or None."""
    if "whole" in work and work["whole"].get("made"):
        return work["whole"]["made"]
    shape = tuple(normalized_shape)
    return at_once(work, "layer_norm_weight", gs[0], input, shape, result1, result2)


def _layer_norm_bias(
    gs: Sequence[Tensor],
    input: Tensor,
    normalized_shape: Shape,
    bias: Tensor,  # which PyTorch saves
    result1: Tensor,
    result2: Tensor,
    work: dict[Any, Any],
) -> Any:
    made = _layer_norm_at_once(gs, input, normalized_shape, result1, result2, work)
    return taken(made, -1) if made else tied(sum_lead(gs[0], len(normalized_shape)), input)


def sum_lead(g: Tensor, n: int) -> Any:
    """The sum over all dimensions but the last n."""
    return g.sum(list(range(g.ndim - n))) if g.ndim > n else g


native_layer_norm = internal(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
    "float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
    _layer_norm,
    results=(True, False, False),
    d_input=_layer_norm_input,
    d_weight=_layer_norm_weight,
    d_bias=_layer_norm_bias,
    memory="rows",
    doc="Normalisation over the last dimensions; Ba, Kiros and Hinton 2016.",
)


@public("layer_norm")
def layer_norm(
    input: Tensor,
    normalized_shape: Shape,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """(x - mean)·rstd·weight + bias, with statistics over the last dimensions.

    >>> layer_norm(torch.tensor([1., 3.]), [2])
    tensor([-1.0000,  1.0000])
    """
    return _normalised(input, normalized_shape, weight, bias, eps)[0]


def _normalised(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    refuse_mixed(input, weight, bias, whole=True)
    made, mean, rstd = native_layer_norm.function(input, normalized_shape, weight, bias, eps)
    refuse_kinds(weight, bias)
    return made, mean, rstd


def _mixed(input: Tensor, *parameters: Tensor | None) -> bool:
    """Whether halves have parameters of float32, which statistics then are, too."""
    return any(p is not None and p.dtype is not input.dtype for p in parameters)


@public("native_layer_norm")
def layer_norm_and_statistics(
    input: Tensor, normalized_shape: Shape, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, the means and the reciprocals of the deviations."""
    made, mean, rstd = _normalised(input, normalized_shape, weight, bias, eps)
    if _mixed(input, weight, bias):
        _, mean, rstd = native_layer_norm.function(
            input.detach().float(), normalized_shape, None, None, eps
        )
    return made, mean, rstd


# -- over groups of channels ----------------------------------------------------------------------


def _group_norm(
    xp: ArrayModule, a: Array, weight: Array | None, bias: Array | None, *how: Any
) -> Any:
    n, c, area, group, eps = how
    _check_group(a, c, group, weight, bias)
    need_float("GroupNormKernelImpl", a)
    if a.size != n * c * area:
        raise RuntimeError(
            "Expected X.numel() == N * C * HxW to be true, but got false.  (Could this error message "
            "be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    found = (
        attempt(xp, "group_norm", a, weight, bias, group, eps) if a.shape[:2] == (n, c) else None
    )
    if found is not None:
        made, mean, rstd = found
        if few(a.dtype, c // group * area) and not rstd.all():
            unknown(made.reshape(n * group, -1), rstd.reshape(-1))
        return found
    made, mean, _, rstd = centered(xp, a.reshape(n, group, c // group * area), (2,), eps)
    made *= rstd
    if few(a.dtype, c // group * area) and not rstd.all():
        unknown(made.reshape(n * group, -1), rstd.reshape(-1))
    made = made.reshape(n, c, area)
    if weight is not None:
        made *= weight.reshape(-1, 1)
    if bias is not None:
        made += bias.real.reshape(-1, 1)  # as above
    made = made.reshape(a.shape)
    if channels_last(a):
        made = np.ascontiguousarray(made.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    return made, mean.reshape(n, group), rstd.reshape(n, group)


def _check_group(a: Array, channels: int, group: int, *parameters: Array | None) -> None:
    if group <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {group}")
    if channels % group:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but"
            f" got input of shape {sizes_text(a.shape)} and num_groups={group}"
        )
    shape = (0,) if parameters[0] is None else parameters[0].shape  # PyTorch names no other
    for name, p in zip(("weight", "bias"), parameters):
        if p is not None and tuple(p.shape) != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of "
                f"channels in input, but got {name} of shape {sizes_text(shape)} "
                f"and input of shape {sizes_text(a.shape)}"
            )


def _group_norm_gradient(k: int) -> Fn:
    """The gradient of the input (0) or of the weight (1)."""

    def gradient(
        gs: Sequence[Tensor],
        input: Tensor,
        weight: Tensor | None,
        N: int,
        C: int,
        HxW: int,
        group: int,
        eps: float,
        result1: Tensor,
        result2: Tensor,
        work: dict[Any, Any],
    ) -> Any:
        made = _group_norm_at_once(gs, input, weight, N, C, result1, result2, work)
        if made:
            return taken(made, k)
        g, x, scale, mean, rstd = _wide(gs[0], input, weight, result1, result2)
        g, rows = g.reshape([N, C, HxW]), [N, group, C // group * HxW]
        x, mean, rstd = x.reshape(rows), mean.unsqueeze(-1), rstd.unsqueeze(-1)
        if k:
            hat, _ = standardized(x, mean, rstd, [2], eps)
            return _narrow((g * hat.reshape([N, C, HxW])).sum([0, 2]), input)
        g = (g if scale is None else g * scale.reshape([-1, 1])).reshape(rows)
        made = through(g, x, mean, rstd, [2], eps)
        batched = any(t._batches is not None for t in gs)  # of whose examples nothing can be asked
        if batched or _arrives(gs, 1) or _arrives(gs, 2):  # gradients of the mean, and of rstd
            if not (batched or _arrives(gs, 0)):  # which PyTorch sees only beside one of the output
                return input.new_zeros(input.shape)
            hat, rstd = standardized(x, mean, rstd, [2], eps)
            count = max(C // group * HxW, 1)
            made = made + (gs[1].unsqueeze(-1) - gs[2].unsqueeze(-1) * hat * rstd * rstd) / count
        made = _narrow(made, input).reshape(input.shape)
        return made.contiguous(memory_format=last_format) if channels_last(input._array) else made

    return gradient


def _arrives(gs: Sequence[Tensor], k: int) -> bool:
    """Whether a gradient of that result came that is not zero."""
    given = getattr(gs, "given", gs)[k]  # where it is not looked at, no zeros are made
    return given is not None and bool(given.any())


def _group_norm_at_once(
    gs: Sequence[Tensor],
    input: Tensor,
    weight: Tensor | None,
    n: int,
    c: int,
    mean: Tensor,
    rstd: Tensor,
    work: dict[str, Sequence[Tensor | None] | None],
) -> Any:
    """All gradients in compiled loops, where only the result has one; or None."""
    if "made" not in work and (
        tuple(input.shape[:2]) != (n, c)
        or state.local.grad
        or state.local.modes
        or _arrives(gs, 1)
        or _arrives(gs, 2)
    ):
        return None
    return at_once(work, "group_norm_backward", gs[0], input, weight, mean, rstd)


def _group_norm_bias(
    gs: Sequence[Tensor],
    input: Tensor,
    weight: Tensor,
    N: int,
    C: int,
    HxW: int,
    result1: Tensor,
    result2: Tensor,
    work: dict[str, Sequence[Tensor | None] | None],
) -> Any:
    made = _group_norm_at_once(gs, input, weight, N, C, result1, result2, work)
    return taken(made, 2) if made else gs[0].reshape([N, C, HxW]).sum([0, 2])


native_group_norm = internal(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, "
    "int group, float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
    _group_norm,
    d_input=_group_norm_gradient(0),
    d_weight=_group_norm_gradient(1),
    d_bias=_group_norm_bias,
    memory="format",
    doc="Normalisation over groups of channels; Wu and He 2018.",
)


@public("group_norm")
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """(x - mean)·rstd·weight + bias, with statistics over groups of channels."""
    if input.ndim < 2:
        wrap_dim(input.ndim, input.ndim, wrap_scalar=False)  # which refuses
    batch, channels, *places = input._array.shape
    area = math.prod(places)
    if not (input.is_contiguous() or state.watched()):  # what is saved of it is a copy
        last = has_channels_last(input._array)
        order = (last_format if input.ndim == 4 else last_volumes) if last else contiguous_format
        input = input.contiguous(memory_format=order)
    return _grouped(input, weight, bias, batch, channels, area, num_groups, eps)[0]


def _grouped(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *how: Any
) -> tuple[Tensor, Tensor, Tensor]:
    _, C, _, group, _ = how
    if weight is not None or bias is not None or group <= 0:
        parameters = [None if p is None else p._array for p in (weight, bias)]
        _check_group(input._array, C, group, *parameters)
        refuse_mixed(input, weight, bias, whole=True)
    made, mean, rstd = native_group_norm.function(input, weight, bias, *how)
    if weight is not None or bias is not None:
        refuse_kinds(weight, bias)
    return made, mean, rstd


@public("native_group_norm")
def group_norm_and_statistics(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm`, the means and the reciprocals of the deviations."""
    made, mean, rstd = _grouped(input, weight, bias, N, C, HxW, group, eps)
    if not (input.is_contiguous() or is_channels_last(input.shape, input.stride(), 1)):
        raise RuntimeError("Expected X.is_contiguous(memory_format) to be true, but got false.")
    if _mixed(input, weight, bias):
        wide = input.detach().float()
        _, mean, rstd = native_group_norm.function(wide, None, None, N, C, HxW, group, eps)
    return made, mean, rstd

"""RMS norm: each sample divided by the root of the mean of its squares; Zhang and Sennrich 2019."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.core.memory_order import has_channels_last
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.hints import Array, ArrayModule, Shape
from toytorch.ops.at_once import at_once, taken
from toytorch.ops.define import internal, public
from toytorch.ops.nn.layer_norm import check_layer, last_dims, sum_lead


def _rms_norm(xp: ArrayModule, a: Array, shape: Shape, weight: Array | None, eps: float) -> Any:
    dims = tuple(range(a.ndim - len(shape), a.ndim))
    lead = a.shape[: dims[0]] + (1,) * len(dims)
    if not a.size:
        return a.copy(), xp.full(lead, np.nan, a.dtype)
    made = attempt(xp, "rms_norm", a, math.prod(shape), weight, eps)
    if made is not None:
        return made[0], made[1].reshape(lead)
    rstd = 1 / xp.sqrt((a * a).mean(dims, keepdims=True) + a.dtype.type(eps))
    return a * rstd if weight is None else a * rstd * weight, rstd


def _of_input(
    gs: Sequence[Tensor],
    input: Tensor,
    normalized_shape: Shape,
    weight: Tensor | None,
    eps: float,
    result1: Tensor,
) -> Any:
    made = at_once({}, "rms_norm_input", gs[0], input, weight, result1)
    if made:
        return taken(made, 0)
    dims = last_dims(normalized_shape)
    k = gs[0] if weight is None else gs[0] * weight
    rstd = _rstd(input, dims, eps)
    h = input * rstd
    return (k - h * (k * h).mean(dims, True)) * rstd


def _of_weight(
    gs: Sequence[Tensor],
    input: Tensor,
    normalized_shape: Shape,
    eps: float,
    result1: Tensor,
    work: dict[Any, Any],
) -> Any:
    shape = tuple(normalized_shape)
    made = at_once(work, "rms_norm_weight", gs[0], input, shape, result1)
    if made:
        return taken(made, 0)
    return sum_lead(gs[0] * input * _rstd(input, last_dims(shape), eps), len(shape))


def _rstd(x: Tensor, dims: list[int], eps: float) -> Any:
    """The reciprocals of the roots, with a history of their own."""
    return (x.pow(2).mean(dims, True) + eps).rsqrt()


fused = internal(
    "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float eps) "
    "-> (Tensor output, Tensor rstd)",
    _rms_norm,
    node="MulBackward0",
    results=(True, False),
    d_input=_of_input,
    d_weight=_of_weight,
    memory="rows",
    batch="leading",
    doc="x/√(mean(x²) + eps)·weight over the last dimensions, as one kernel.",
)


@public("rms_norm")
def rms_norm(
    input: Tensor, normalized_shape: Shape, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x/√(mean(x²) + eps)·weight over the last dimensions; Zhang and Sennrich 2019.

    It is one kernel, as PyTorch's is on other devices than the CPU; half types and complex ones, mixed
    ones, and layouts that are not contiguous get PyTorch's ops one by one.
    """
    shape = tuple(normalized_shape)
    if input.ndim < len(shape):
        raise ValueError(
            f"Input tensor must have at least {len(shape)} dimensions, but got {input.ndim}"
        )
    check_layer(input._array, shape, weight, begin="*")
    if input.dtype.rank < 2:
        raise NotImplementedError(f"\"rms_norm\" not implemented for '{input.dtype.legacy}'")
    if eps is None:
        kind = types.float32 if input.dtype.itemsize == 2 else input.dtype.to_real()
        eps = types.finfo(kind).eps
    last = has_channels_last(input._array)
    plain = input.dtype.plain and (weight is None or weight.dtype is input.dtype)
    if plain and not last and input.is_contiguous():
        made: Tensor = fused.function(input, list(shape), weight, eps)[0]
        return made
    x = input.to(types.float32) if input.dtype.itemsize == 2 else input
    made = x * _rstd(x, last_dims(shape), eps)
    made = made if weight is None else made * weight
    return (made if last else made.contiguous()).to(input.dtype)

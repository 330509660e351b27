"""Normalisation of batches, layers, groups, images and vectors."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.dtype import bfloat16, float16, float32
from toytorch.facts.hints import Shape
from toytorch.nn.functional.pool import avg_pool2d, avg_pool3d
from toytorch.ops.define import asks, reads, tensor_first
from toytorch.ops.nn import layer_norm as layers
from toytorch.ops.nn import normalize as norms
from toytorch.ops.nn import rms_norm as rms
from toytorch.ops.nn.pad import constant_pad_nd
from toytorch.ops.overloads import div

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize",
    "rms_norm",
]  # fmt: skip


def _is_one(count: int) -> bool:
    """Whether a count of elements is one; a trace freezes the answer, and says so."""
    if state.local.modes and count.__class__ is not int:
        state.frozen("value", "Converting a tensor to a Python boolean")
    return count == 1


def _verify_batch_size(size: Shape) -> None:
    """Refuses a batch with one value for each channel."""
    count = size[0]
    for n in size[2:]:
        count *= n
    if _is_one(count):
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


@asks
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean)·rstd·weight + bias for each channel; Ioffe and Szegedy 2015.

    In training the statistics are the batch's, and move the running ones, in place.
    """
    if training:
        _verify_batch_size(input.shape)
    if eps < 0 or (training and not eps):
        kind = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {kind}, but got {eps}")
    return norms.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@tensor_first
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Batch norm of every image by itself; Ulyanov et al. 2016."""
    if use_input_stats:
        count = 1
        for n in input.shape[2:]:
            count *= n
        if _is_one(count):
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {input.shape}"
            )
    return norms.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps
    )


def mixed(input: Tensor, weight: Tensor | None) -> bool:
    """Whether a half type meets weights of float32, which are computed with, forward and back."""
    return weight is not None and weight._dtype is float32 and input._dtype in (float16, bfloat16)


def layer_norm(
    input: Tensor,
    normalized_shape: Shape,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean)·rstd·weight + bias over the last dimensions; Ba, Kiros and Hinton 2016."""
    if mixed(input, weight):
        wide = layers.layer_norm(input.to(float32), normalized_shape, weight, bias, eps)
        return wide.to(input.dtype)
    return layers.layer_norm(input, normalized_shape, weight, bias, eps)


@asks
def rms_norm(
    input: Tensor, normalized_shape: Shape, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x/√(mean(x²) + eps)·weight over the last dimensions; Zhang and Sennrich 2019."""
    return rms.rms_norm(input, normalized_shape, weight, eps)


@reads
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean)·rstd·weight + bias over groups of channels; Wu and He 2018."""
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}"
        )
    batch, channels, *places = input.shape
    _verify_batch_size([batch * channels // num_groups, num_groups, *places])
    if mixed(input, weight):
        return layers.group_norm(input.to(float32), num_groups, weight, bias, eps).to(input.dtype)
    return layers.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x/(k + α·mean of x² over neighbouring channels)^β; Krizhevsky et al. 2012."""
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality {' ' * 24} input (got {input.ndim} dimensions)"
        )
    if not input.numel():
        return input
    squares = (input * input).unsqueeze(1)
    before, after = size // 2, (size - 1) // 2
    if input.ndim == 3:
        squares = constant_pad_nd.function(squares, (0, 0, before, after), 0)
        means = avg_pool2d(squares, (size, 1), stride=1).squeeze(1)
    else:
        batch, channels, height = input.shape[:3]
        squares = squares.view([batch, 1, channels, height, -1])
        squares = constant_pad_nd.function(squares, (0, 0, 0, 0, before, after), 0)
        means = avg_pool3d(squares, (size, 1, 1), stride=1).squeeze(1).view(input.shape)
    return input / (means * alpha + k).pow(beta)


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """x/max(‖x‖ₚ, eps) along a dimension."""
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    if out is not None:
        return div(input, length, out=out)
    return input / length

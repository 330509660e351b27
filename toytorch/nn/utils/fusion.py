"""Batch norms taken into the layer before them, for networks that no longer learn."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from toytorch.core.tensor import Tensor
from toytorch.nn.parameter import Parameter
from toytorch.ops.creation.create import ones_like, zeros_like

if TYPE_CHECKING:
    from toytorch.nn.modules.module import Module


def _scale(running_var: Tensor, eps: float, weight: Tensor | None) -> Any:
    return (ones_like(running_var) if weight is None else weight) * (running_var + eps).rsqrt()


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> Any:
    """The weight and bias of a convolution that does what it and a batch norm do together."""
    scale = _scale(bn_rv, bn_eps, bn_w)
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    bias = zeros_like(bn_rm) if conv_b is None else conv_b
    shift = zeros_like(bn_rm) if bn_b is None else bn_b
    return (
        Parameter((conv_w * scale.reshape(shape)).detach().to(conv_w.dtype), conv_w.requires_grad),
        Parameter(((bias - bn_rm) * scale + shift).detach().to(conv_w.dtype), bias.requires_grad),
    )


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what a convolution and a batch norm do together, in evaluation."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    statistics = bn.running_mean, bn.running_var, bn.eps
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, *statistics, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> Any:
    """The weight and bias of a linear layer that does what it and a batch norm do together."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Any:
    """A linear layer that does what a linear layer and a batch norm do together."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    return fuse_conv_bn_eval(linear, bn)

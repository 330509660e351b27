"""A linear layer and cross-entropy as one loss."""

from __future__ import annotations

import math
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.nn import functional as F
from toytorch.nn.modules.linear import Linear
from toytorch.nn.modules.loss import _WeightedLoss


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross-entropy of linear(input): the last layer of a classifier together with its loss."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.linear = Linear(
            in_features, num_classes * math.prod(out_features), bias, device, dtype
        )
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        lead = [self.num_classes, *self.out_features]
        layer = self.linear
        return F.linear_cross_entropy(
            input,
            layer.weight.reshape([*lead, layer.in_features]),
            target,
            linear_bias=None if layer.bias is None else layer.bias.reshape(lead),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )

"""Windows of images as columns of a matrix, and back."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Ints, Shape
from toytorch.facts.parts import shows
from toytorch.nn import functional as F
from toytorch.nn.modules.module import Module


class Unfold(Module):
    """Windows of (B, C, H, W) as columns: (B, C·window, number of windows).

    >>> Unfold(2)(torch.ones(1, 1, 3, 3)).shape
    torch.Size([1, 4, 4])
    """

    def __init__(
        self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
    ) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    extra_repr = shows("kernel_size dilation padding stride")


class Fold(Module):
    """Columns summed into the image they are windows of."""

    def __init__(
        self,
        output_size: Shape,
        kernel_size: Ints,
        dilation: Ints = 1,
        padding: Ints = 0,
        stride: Ints = 1,
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size, self.dilation = output_size, kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    extra_repr = shows("output_size kernel_size dilation padding stride")

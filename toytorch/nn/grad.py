"""The gradients of convolutions as functions, like `torch.nn.grad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toytorch.autograd.api import grad
from toytorch.autograd.modes import enable_grad
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.hints import Fn, Ints, Shape
from toytorch.ops.nn.conv import conv1d, conv2d, conv3d


def _pulled(
    conv: Callable[..., Tensor], input: Tensor, weight: Tensor, back: Tensor, which: int, more: Any
) -> Any:
    """The gradient of one argument, itself differentiable where gradients are recorded."""
    again = state.local.grad
    given = [input, weight]
    wanted = given[which] = given[which].detach().requires_grad_()
    with enable_grad():
        result = conv(given[0], given[1], None, *more)
    return grad(result, wanted, back, create_graph=again)[0]


def _of_input(conv: Callable[..., Tensor]) -> Fn:
    def run(
        input_size: Shape,
        weight: Tensor,
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Any:
        input = grad_output.new_zeros(tuple(input_size))
        return _pulled(conv, input, weight, grad_output, 0, (stride, padding, dilation, groups))

    return run


def _of_weight(conv: Callable[..., Tensor]) -> Fn:
    def run(
        input: Tensor,
        weight_size: Shape,
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Any:
        weight = grad_output.new_zeros(tuple(weight_size))
        return _pulled(conv, input, weight, grad_output, 1, (stride, padding, dilation, groups))

    return run


conv1d_input, conv2d_input, conv3d_input = map(_of_input, (conv1d, conv2d, conv3d))
conv1d_weight, conv2d_weight, conv3d_weight = map(_of_weight, (conv1d, conv2d, conv3d))
for _name, _function in list(globals().items()):
    if _name.endswith(("d_input", "d_weight")):
        _kind, _, _part = _name.partition("_")
        _function.__name__ = _function.__qualname__ = _name
        _function.__doc__ = (
            f"The gradient of {_kind} in its {_part}, given that of its result. RuntimeError for "
            f"sizes that do not fit. Like `torch.nn.grad.{_name}`."
        )

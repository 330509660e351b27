"""`Variable`, which every tensor is since tensors record what is done to them."""

from __future__ import annotations

from typing import Any

from toytorch.autograd.engine import queue_callback
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import warned

__all__ = ["Variable"]


class ExecutionEngine:
    """What programs ask of the engine that runs backward passes."""

    queue_callback = staticmethod(queue_callback)


class VariableMeta(type):
    """Makes every tensor an instance of `Variable`."""

    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """The older name of Tensor: `Variable(x, requires_grad=True)` is a leaf over the memory of x.

    Like `torch.autograd.Variable`. `volatile` has no effect any more.

    >>> x = torch.ones(2)
    >>> v = Variable(x, requires_grad=True)
    >>> isinstance(x, Variable), v.requires_grad, v.data_ptr() == x.data_ptr()
    (True, True, True)
    """

    _execution_engine = ExecutionEngine()

    def __new__(
        cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool = False
    ) -> Any:
        if volatile:
            warned.at_call(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead."
            )
        if data is None:
            data = wrap(Tensor()._array)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)

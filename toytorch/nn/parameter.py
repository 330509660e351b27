"""Tensors that a module learns."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor, like_class, wrap


class Parameter(Tensor):
    """A tensor that a Module finds among its attributes, like `torch.nn.Parameter`.

    >>> Parameter(Tensor([1, 2]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            import numpy as np
            data = wrap(np.empty(0, np.float32))
        if not isinstance(data, Tensor):
            raise TypeError(f"cannot make a Parameter from a {type(data).__name__}; a Tensor is "
                            "needed")
        made = like_class(cls, data)
        made.requires_grad_(requires_grad)
        return made

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        """Nothing is left to do after __new__."""

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copy = like_class(type(self), wrap(self._array.copy(), self.dtype))
            copy._rg = self._rg
            memo[id(self)] = copy
        return memo[id(self)]


class Buffer(Tensor):
    """A tensor that belongs to a module's state but is not learned."""

    __slots__ = ()

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        made = like_class(cls, data)
        made.persistent = persistent
        return made


__all__ = ["Buffer", "Parameter"]

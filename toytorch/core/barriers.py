"""Steps that let no gradient through: one says so by an error, the other by giving none."""

from __future__ import annotations

from typing import Any

from toytorch.core.record import edge
from toytorch.core.tensor import Tensor, alias
from toytorch.facts.node import Node, Output, sequence

ONCE = "trying to differentiate twice a function that was marked with @once_differentiable"


class Error(Node):
    """The history of what has no derivative of its own: says so when it should run."""

    __slots__ = ("message",)
    full_name = "torch::autograd::Error"

    def __init__(self, inputs: tuple[Tensor, ...], results: list[Tensor], message: str) -> None:
        self.edges, self.seq, self.saved, self.versions = (), next(sequence), None, ()
        self.edges = tuple(edge(t) for t in inputs)
        metas = [(r._array.shape, r.dtype) for r in results]
        self.message, self.meta = message, metas if len(results) > 1 else metas[0]
        self.__dict__.update(count=len(results), many=len(results) > 1)

    def apply(self, grad: Any) -> Any:
        raise RuntimeError(self.message)


class UndefinedGradBackward(Node):
    """The history of a tensor whose gradient stops here, as one that did not arrive."""

    __slots__ = ()

    def __init__(self, tensor: Tensor) -> None:
        self.edges, self.seq, self.saved, self.versions = (edge(tensor),), next(sequence), None, ()
        self.meta = (tensor._array.shape, tensor.dtype)

    def apply(self, grad: Any) -> Any:
        return (None,)


class DelayedError:
    """Gives tensors again, with a history that raises RuntimeError(msg) in the backward pass.

    Like `torch._C._functions.DelayedError`.

    >>> DelayedError("no second derivative", 1)(torch.ones(1, requires_grad=True)).sum().backward()
    Traceback (most recent call last):
    RuntimeError: no second derivative
    """

    def __init__(self, msg: str, num_inputs: int) -> None:
        self.msg, self.num_inputs = msg, num_inputs

    def __call__(self, *tensors: Tensor) -> Any:
        if len(tensors) != self.num_inputs:
            raise TypeError(f"expected {self.num_inputs} arguments, got {len(tensors)} instead")
        results = [alias(t) if isinstance(t, Tensor) else t for t in tensors]
        tracked = [(t, r) for t, r in zip(tensors, results) if isinstance(r, Tensor)]
        if any(t._requires_grad for t, _ in tracked):
            made = [r for _, r in tracked]
            node = Error(tensors, made, self.msg)
            for i, r in enumerate(made):
                if r.dtype.rank > 1:
                    r._requires_grad = True
                    r._grad_edge = Output(node, i) if len(made) > 1 else node
        return results[0] if len(results) == 1 else tuple(results)


class UndefinedGrad:
    """Gives a tensor again; what comes back for it in the backward pass goes no further.

    Like `torch._C._functions.UndefinedGrad`.
    """

    def __call__(self, tensor: Tensor) -> Any:
        result = alias(tensor)
        if tensor._requires_grad:
            result._requires_grad, result._grad_edge = True, UndefinedGradBackward(tensor)
        return result

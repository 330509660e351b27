"""t_, squeeze_, as_strided_ …: another layout for a tensor itself; apply_."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from toytorch.core import inplace as writing
from toytorch.core import write
from toytorch.core.storage import ShownInference
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Ints
from toytorch.facts.node import node_of
from toytorch.ops.define import PUBLIC, public, relaying, takes_words
from toytorch.ops.shaping import copies, strided, view
from toytorch.ops.shaping.reshape import swapaxes
from toytorch.ops.shaping.slices import diagonal, narrow

NUMBERS = {  # nodes of views: the op, and the number that its form in place has
    "TBackward0": (view.t, 1),
    "TransposeBackward0": (view.transpose, 1),
    "UnsqueezeBackward0": (view.unsqueeze, 1),
    "SqueezeBackward0": (view.squeeze, 3),
    "SqueezeBackward1": (view.squeeze, 4),
    "SqueezeBackward2": (view.squeeze, 5),
}


def renamed(made: Tensor) -> Tensor:
    """A view whose node gets the name that it has of the form in place."""
    if made._grad_edge is not None:
        node = node_of(made._grad_edge)
        op, number = NUMBERS.get(node.name(), (None, 0))
        if op is not None:
            node.__class__ = op.node_variant(number)
    return made


def _relaid(name: str, op: Any) -> Any:
    def method(self: Any = None, /, *args: Ints, **kwargs: Any) -> Tensor:
        if self is None and kwargs.keys() & {"input", "x"}:
            self = kwargs.pop("input" if "input" in kwargs else "x")
        try:
            writing.check_history(self, self._requires_grad)
        except RuntimeError:
            with contextlib.suppress(RuntimeError, IndexError):
                op(self.detach(), *args, **kwargs)  # arguments of another type are refused first
            raise
        made = op(self, *args, **kwargs)
        if self._storage.__class__ is not ShownInference:  # whose views are inference tensors again
            self._storage = made._storage
        self._array = made._array
        if made._grad_edge is not None:
            self._grad_edge, self._requires_grad = made._grad_edge, True
            renamed(made)
        writing.refuse_inference(self)  # as PyTorch, which counts when it has written
        writing.bump(self)
        return self

    method.__name__ = name
    method.__doc__ = f"In-place form of `{name[:-1]}`: another layout of the same memory."
    relaid: Any = relaying(method)
    relaid.writes = True  # a tracer asks: PyTorch counts it as a write
    return public(method=name)(relaid)


for _name, _function in {
    "t_": view.t.function, "squeeze_": view.squeeze.function, "unsqueeze_": view.unsqueeze.function,
    "swapaxes_": swapaxes, "transpose_": view.transpose.function, "swapdims_": PUBLIC["swapdims"],
    "as_strided_": strided.as_strided.function,
}.items():  # fmt: skip
    _relaid(_name, _function)


@public(method=True)
def apply_(self: Tensor, callable: Any) -> Tensor:
    """Applies a Python function to every element, in place; slow, for the CPU only."""
    return mapped(self, callable)


def _refuse_gradients(name: str, *tensors: Tensor) -> None:
    if any(t._requires_grad for t in tensors):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
        )


@public(method=True)
def map_(self: Tensor, tensor: Tensor, callable: Any) -> Tensor:
    """Sets every element to callable(element, element of the other tensor); slow, on the CPU."""
    _refuse_gradients("map_", self)
    if tensor.dtype is not self.dtype:
        raise TypeError(f"map_: expected {self.type()} for 'other' (got {tensor.type()})")
    return mapped(self, callable, tensor)


@public(method=True)
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Any) -> Tensor:
    """Sets every element to callable(element, element of x, element of y); slow, on the CPU.

    >>> Tensor([1., 2.]).map2_(Tensor([3., 4.]), Tensor([5., 6.]), lambda a, b, c: a + b * c)
    tensor([16., 26.])
    """
    _refuse_gradients("map2_", self, x, y)
    for name, other in (("x", x), ("y", y)):
        if other.dtype is not self.dtype:
            raise TypeError(
                f"map2_: expected {self.type()} for argument '{name}' (got {other.type()})"
            )
    return mapped(self, callable, x, y)


def mapped(self: Tensor, callable: Any, *others: Tensor) -> Tensor:
    """Sets every element to what a Python function makes of it and of those of other tensors."""
    wide = [t.expand(self.shape)._array.reshape(-1).tolist() for t in others]
    flat = [callable(*values) for values in zip(self._array.reshape(-1).tolist(), *wide)]
    refuse_texts(flat)
    self._array[...] = np.asarray(flat, self._array.dtype).reshape(self._array.shape)
    writing.bump(self)
    return self


def refuse_texts(values: list[Any]) -> None:
    """Refuses what is no number."""
    for v in values:
        if isinstance(v, str):
            raise TypeError("must be real number, not str")


@public(method=True)
def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Sets the main diagonal to a value; of a tall matrix all diagonals of blocks, with `wrap`.

    >>> Tensor([[1., 2.], [3., 4.]]).fill_diagonal_(0)
    tensor([[0., 2.],
            [3., 0.]])
    """
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    main: Any = self
    for _ in range(self.ndim - 1):
        main = diagonal.function(main, 0, 0, main.ndim - 1)  # of what is left, the first and last
    main.fill_(fill_value)
    rows, columns = self.shape[:2]
    if wrap and self.ndim == 2:
        for start in range(columns + 1, rows, columns + 1):
            block: Any = narrow.function(self, 0, start, min(columns, rows - start))
            diagonal.function(block, 0, 0, 1).fill_(fill_value)
    return self


_zero, _fill = copies.zero, copies.fill


def _by_name() -> Any:
    def zero_(self: Tensor) -> Any:
        return self.zero_()

    zero_.__qualname__ = "zero_"  # as refusals name it
    return takes_words()(zero_)


_zero_by_name = _by_name()


def zero_(self: Any = None, /, **words: Tensor) -> Any:
    """Every element set to 0."""
    # The other way is taken too often for the price of `takes_words`.
    if words or not isinstance(self, Tensor):
        return _zero_by_name(*(self,) * (self is not None), **words)
    if not write.quick(self):
        return _zero.written(self)
    self._array.fill(0)
    writing.bump(self)
    return self


@takes_words()
def fill_(self: Tensor, value: Any) -> Tensor:
    """Every element set to a value."""
    plain = value.__class__ is float or value.__class__ is int
    if not (plain and self.dtype.plain and -1e38 < value < 1e38 and write.quick(self)):
        return _fill.written(self, value)  # the op's in-place form
    self._array.fill(value)
    writing.bump(self)
    return self


Tensor.zero_, Tensor.fill_ = zero_, fill_  # type: ignore[attr-defined]  # ops attach methods

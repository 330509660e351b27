"""Arrays that stand for others: what they are can be asked, their elements cannot be read.

`held` is a NumPy array with the shape, strides and type; which memory that is, subclasses know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NoReturn

from toytorch.facts.hints import Array
from toytorch.facts.parts import of_part


class HeldArray:
    """The part of NumPy's interface that describes an array, and its views, which cost nothing."""

    __slots__ = ("__weakref__", "held")
    refusal: ClassVar[Exception]  # what reading elements raises

    held: Array

    # -- what it is ---------------------------------------------------------------------------

    shape = of_part("held.shape", "The sizes of its dimensions.")
    strides = of_part("held.strides", "Steps in bytes.")
    dtype = of_part("held.dtype", "The type of its elements.")
    ndim = of_part("held.ndim", "The number of dimensions.")
    size = of_part("held.size", "The number of elements.")
    itemsize = of_part("held.itemsize", "Bytes of an element.")
    nbytes = of_part("held.nbytes", "Bytes of all elements.")
    flags = of_part("held.flags", "How it lies in memory.")

    def __len__(self) -> int:
        return len(self.held)

    # -- views, which cost nothing ------------------------------------------------------------

    def seen(self, held: Array) -> Any:
        """The same memory in another way."""
        raise NotImplementedError  # each kind knows its memory

    @property
    def T(self) -> Any:
        """The dimensions in reverse order."""
        return self.seen(self.held.T)

    @property
    def real(self) -> Any:
        """The real parts."""
        return self.seen(self.held.real)

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return self.seen(self.held.imag)

    def view(self, kind: Any = None) -> Any:
        """The same memory, read as another type."""
        return self.seen(self.held.view() if kind is None else self.held.view(kind))

    def transpose(self, *axes: Any) -> Any:
        """The dimensions in another order."""
        return self.seen(self.held.transpose(*axes))

    def swapaxes(self, a: int, b: int) -> Any:
        """Two dimensions in each other's place."""
        return self.seen(self.held.swapaxes(a, b))

    def squeeze(self, axis: Any = None) -> Any:
        """Without dimensions of size 1."""
        return self.seen(self.held.squeeze(axis))

    def __iter__(self) -> Iterator[Any]:
        return (self.seen(part) for part in self.held)

    # -- nobody may look ------------------------------------------------------------------------

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise self.refusal

    __array__ = tolist = tobytes = _refuse
    __hash__ = object.__hash__

"""Checks of the operands of pointwise ops, made into a record's `checks`.

Each is called with the type in which the operands meet, and with the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.hints import DType


def one_tensor(name: str, check: Any = None) -> Any:
    """Refuses a call with numbers only; then looks further."""

    def look(common: DType, args: Sequence[Any]) -> None:
        if not (isinstance(args[0], Tensor) or isinstance(args[1], Tensor)):
            kinds = ", ".join(type(a).__name__ for a in args[:2])
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got "
                f"({kinds}), but expected one of: (Tensor input, Tensor other), "
                "(Number self, Tensor other), (Tensor input, Number other)"
            )
        if check is not None:
            check(common, args)

    return look


def number_place(self: Any, other: Any) -> int:
    """The overload of two tensors, of a number first, and of a number second."""
    return 1 if not isinstance(self, Tensor) else 0 if isinstance(other, Tensor) else 2


def only_floats(name: str) -> Any:
    """A check that refuses all but real floating-point numbers, as PyTorch's kernel `name` does."""
    return numbers(name, lowest=2)


def numbers(kernel: str, lowest: int = 0, highest: int = 2, halves: bool = True) -> Any:
    """Refuses types that PyTorch's kernel of a name does not have: those whose rank is below or above
    (0 of truth values, 1 of integers, 2 of floats, 3 of complex numbers), and floats of 16 bits."""

    def check(common: DType, args: Sequence[Any]) -> None:
        if not lowest <= common.rank <= highest or (
            not halves and common.rank == 2 and common.itemsize == 2
        ):
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{common.legacy}'")

    return check


def no_bool(kernel: str) -> Any:
    """Refuses truth values, by the name of PyTorch's kernel."""

    def check(common: DType, args: Sequence[Any]) -> None:
        if common is types.bool:
            raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")

    return check


def no_complex(text: str) -> Any:
    """Refuses complex numbers, in the words given."""

    def check(common: DType, args: Sequence[Any]) -> None:
        if common.is_complex:
            raise RuntimeError(text)

    return check


def real_numbers(name: str) -> Any:
    """Refuses complex numbers and truth values, by the name of an op that rounds."""
    kernel = no_bool(f"{name}_vml_cpu")

    def check(common: DType, args: Sequence[Any]) -> None:
        if common.is_complex:
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        kernel(common, args)

    return check

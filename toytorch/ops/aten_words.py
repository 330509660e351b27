"""What ATen calls the overload that a record's call is, by the arguments (`overload=` of a record).

Each is a function of the arguments and of whether the call writes to the first of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toytorch.core.tensor import Tensor


def tensor_or_scalar(value: object) -> str:
    """The word for an operand that may be a number."""
    return "Tensor" if isinstance(value, Tensor) else "Scalar"


def number_at(place: int) -> Callable[..., str]:
    """Which of two, by whether an argument is a number.

    >>> number_at(1)(None, 2, False)
    'Scalar'
    """
    return lambda *args: tensor_or_scalar(args[place])


def place_filled(self: Tensor, dim: int, index: Tensor, value: object, written: bool) -> str:
    """Of what is put at places of a dimension."""
    return f"int_{tensor_or_scalar(value)}"


def source_or_value(self: Tensor, dim: int, index: Tensor, src: object, written: bool) -> str:
    """Of what is scattered."""
    return "src" if isinstance(src, Tensor) else "value"


def both(self: object, other: object, written: bool) -> str:
    """Of a power, either of whose operands may be a number."""
    if written:
        return tensor_or_scalar(other)
    return f"Tensor_{tensor_or_scalar(other)}" if isinstance(self, Tensor) else "Scalar"


def divided(self: object, other: object, written: bool) -> str:
    """Of a remainder, either of whose operands may be a number."""
    return tensor_or_scalar(other) if isinstance(self, Tensor) else "Scalar_Tensor"


def limits(self: Tensor, low: object, high: object, written: bool) -> str:
    """Of limits, which may be tensors."""
    return "Tensor" if isinstance(low, Tensor) or isinstance(high, Tensor) else "default"


def along(self: Tensor, dim: Any, *more: object) -> str:
    """Of one dimension, of several, and of all of them."""
    return "default" if dim is None else "dims" if isinstance(dim, (tuple, list)) else "dim"


def listed(self: Tensor, dim: Any, *more: object) -> str:
    """The same where one dimension has no word of its own."""
    return "dim_IntList" if isinstance(dim, (tuple, list)) else "default"


def one_word(word: str) -> Callable[..., str]:
    """A word where a dimension is given."""
    return lambda self, dim, *more: "default" if dim is None else word

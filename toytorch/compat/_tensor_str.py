"""Names of `torch._tensor_str` with which libraries print tensors of their own."""

from __future__ import annotations

from typing import Any

from toytorch.core import printing
from toytorch.core.tensor import Tensor

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]

get_printoptions, printoptions = printing.get_printoptions, printing.printoptions
set_printoptions = printing.set_printoptions


class _Options:
    """The settings as they are now."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return get_printoptions()[name]


PRINT_OPTS = _Options()


def _tensor_str(self: Tensor, indent: int) -> str:
    """The numbers of a tensor, without `tensor(` and `)`."""
    return printing.body(self.detach().cpu()._array, indent) if self.numel() else "[]"


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """The text with its properties behind it."""
    return printing.with_suffixes(tensor_str, suffixes, indent, force_newline)


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """What `repr` gives."""
    return printing._repr(self, tensor_contents=tensor_contents)


_str_intern = _str

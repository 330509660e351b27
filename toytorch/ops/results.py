"""Named results of ops with several, like `torch.return_types`."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any


@cache
def result_class(name: str) -> type:
    """The class of an op's results: a tuple with the fields values and indices."""
    made = namedtuple(name, ["values", "indices"])  # type: ignore[misc]  # the name is the op's

    def show(self: Any) -> str:
        fields = ",\n".join(f"{k}={v!r}" for k, v in zip(self._fields, self))
        return f"torch.return_types.{name}(\n{fields})"
    made.__repr__ = show  # type: ignore[method-assign]
    return made


def return_type(name: str, results: Any) -> Any:
    """(values, indices) with names."""
    return result_class(name)(*results)

"""Named results of ops with several, like `torch.return_types`."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from functools import cache
from typing import Any

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.package import NAMES
from toytorch.ops.define import public

tuple_of = tuple.__new__  # a class of `namedtuple` calls a function of Python's to get here
VALUES_AND_INDICES = ("values", "indices")


def result_class(name: str, fields: Sequence[str] = VALUES_AND_INDICES) -> type:
    """The class of an op's results: a tuple whose fields have names."""
    return _result_class(name, tuple(fields))


@cache
def _result_class(name: str, fields: tuple[str, ...]) -> type:
    base = namedtuple(name, fields)  # type: ignore[misc]  # the name is the op's

    def show(self: Any) -> str:
        parts = ",\n".join(f"{k}={v!r}" for k, v in zip(self._fields, self))
        return f"torch.return_types.{name}(\n{parts})"

    def of_parts(cls: type, *parts: Any) -> Any:
        """Called with a tuple, as PyTorch's classes are, or with the parts, as those of `namedtuple`."""
        whole = len(parts) < 3 and isinstance(parts[0], (tuple, list))
        return tuple_of(cls, parts[0] if whole else parts)

    def reduced(self: Any) -> Any:
        cls = type(self)
        cls.__module__ = f"{'torch' if 'torch' in NAMES else 'toytorch'}.return_types"
        return cls, (tuple(self), {})

    methods = {"__new__": of_parts, "__reduce__": reduced, "__repr__": show, "__slots__": ()}
    count = len(fields)
    sizes = {"n_fields": count, "n_sequence_fields": count, "n_unnamed_fields": 0}
    return type(name, (base,), {**methods, **sizes})


def return_type(
    name: str,
    results: Sequence[Tensor | Sequence[Tensor]],
    fields: tuple[str, ...] = VALUES_AND_INDICES,
    *,
    out: Any = None,
) -> Any:
    """An op's results with names; those that `out=` holds are of a class of their own."""
    return tuple_of(result_class(name if out is None else f"{name}_out", fields), results)


def public_with_names(op: Op) -> Any:
    """Makes a record with several results a function and a method that name them."""
    fields, record = op.schema.result_names, op.function
    made, held = (result_class(name, fields) for name in (op.name, f"{op.name}_out"))

    def function(*args: Tensor | int, **kwargs: Any) -> Any:
        if not kwargs:
            return tuple_of(made, record(*args))
        kind = made if kwargs.get("out") is None else held
        return tuple_of(kind, record(*args, **kwargs))

    returns = op.schema.text.rpartition("->")[2].strip()
    return public(op.name, method=op.name, returns=returns, doc=op.function.__doc__)(function)

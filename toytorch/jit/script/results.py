"""What functions that are composed of records give, as their annotation or their facts tell.

`returns` in the facts is written as in a record's signature, with conditions:

    Tensor[]
    Tensor?[]                               a list in which None may stand
    (Tensor values, Tensor indices)
    (Tensor, Tensor if return_counts)       an item that a flag asks for
    Tensor[] if as_tuple else Tensor        a flag
    Tensor if dim is Tensor else ...        an argument that is a tensor, or a list
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from toytorch.facts.composed import facts_of
from toytorch.facts.hints import Fn
from toytorch.facts.schema import split_commas
from toytorch.jit import types
from toytorch.jit.ir import Value
from toytorch.jit.types import Type

# Annotations, without the module before the name.
ANNOTATED: dict[str, Type] = {
    "bool": types.BOOL,
    "int": types.INT,
    "float": types.FLOAT,
    "str": types.STR,
    "dtype": types.DTYPE,
    "tuple[Tensor, ...]": types.List(types.TENSOR),
    "list[Tensor]": types.List(types.TENSOR),
    "tuple[Tensor, Tensor]": types.Tuple((types.TENSOR,) * 2),
    "tuple[Tensor, Tensor, Tensor]": types.Tuple((types.TENSOR,) * 3),
    "tuple[Tensor, Tensor | None]": types.Tuple((types.TENSOR, types.Optional(types.TENSOR))),
    "Pair": types.Tuple((types.TENSOR,) * 2),
}
LISTS: dict[str, Type] = {
    "Tensor[]": types.List(types.TENSOR),
    "Tensor?[]": types.List(types.Optional(types.TENSOR)),
}
KINDS: dict[str, Any] = {"Tensor": types.Tensor, "list": (types.List, types.Tuple)}


def result_of(function: Fn, given: Sequence[Value], named: dict[str, Value]) -> Type:
    """The type of what a composed function gives for arguments of these types."""
    text = facts_of(function).returns
    if text:
        return result_type(text, lambda condition: holds(condition, function, given, named))
    found = getattr(function, "__annotations__", {}).get("return", "")
    text = found if isinstance(found, str) else getattr(found, "__name__", "")
    return ANNOTATED.get(text if "[" in text else text.rpartition(".")[2], types.TENSOR)


def result_type(text: str, true: Callable[[str], bool]) -> Type:
    """The type that a text means where `true` decides its conditions.

    >>> print(result_type("Tensor[] if as_tuple else Tensor", lambda condition: False))
    Tensor
    >>> print(result_type("(Tensor, Tensor if counts)", lambda condition: True))
    (Tensor, Tensor)
    """
    if text.startswith("(") and text.endswith(")"):
        parts = [part.partition(" if ") for part in split_commas(text[1:-1])]
        kept = [part for part, _, condition in parts if not condition or true(condition)]
        names = tuple(part.partition(" ")[2] for part in kept)
        if len(kept) == 1:
            return types.TENSOR
        return types.Tuple((types.TENSOR,) * len(kept), names if all(names) else ())
    first, _, rest = text.partition(" if ")
    condition, _, other = rest.partition(" else ")
    if rest:
        return result_type(first if true(condition) else other, true)
    return LISTS.get(text, types.TENSOR)


def holds(condition: str, function: Fn, given: Sequence[Value], named: dict[str, Value]) -> bool:
    """Whether an argument is given and is neither None nor False, or is of a kind."""
    name, _, kind = condition.partition(" is ")
    try:
        value = inspect.signature(function).bind(*given, **named).arguments.get(name)
    except TypeError:
        return False  # the call is wrong, and says so elsewhere
    if isinstance(value, tuple):  # several, one by one: a list
        value = value[0] if len(value) == 1 else value
    if kind:
        return isinstance(value, tuple) or isinstance(getattr(value, "type", None), KINDS[kind])
    if not isinstance(value, Value):
        return bool(value)
    if value.node is not None and "value" in value.node.attributes:
        constant = value.node.attributes["value"]
        return constant is not None and constant is not False
    return value.type not in (types.NONE, types.BOOL)  # what a flag will be is not known

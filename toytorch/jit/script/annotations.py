"""Types as they are written in Python: read from annotations, and spelled in messages and code."""

from __future__ import annotations

import ast
import builtins
import enum
import re
import sys
import types as python_types
import typing
import warnings
from collections.abc import Callable
from typing import Any

from toytorch.core.random import Generator
from toytorch.core.tensor import Tensor
from toytorch.facts.device import device
from toytorch.facts.dtype import dtype
from toytorch.facts.package import is_ours
from toytorch.facts.syntax import parse as parse_python
from toytorch.futures import Future
from toytorch.jit import types
from toytorch.jit.script.classes import known_class, register
from toytorch.jit.types import Type

PLAIN: dict[Any, Type] = {
    Tensor: types.TENSOR, int: types.INT, float: types.FLOAT, bool: types.BOOL, str: types.STR,
    complex: types.COMPLEX, None: types.NONE, type(None): types.NONE, dtype: types.DTYPE,
    device: types.DEVICE, Generator: types.GENERATOR, Any: types.ANY,
    list: types.List(types.TENSOR),
}  # fmt: skip
SPELLED = {"Scalar": "number", "Dtype": "torch.dtype", "Device": "torch.device"}
TYPING = {
    name: getattr(typing, name)
    for name in ("List", "Tuple", "Dict", "Optional", "Union", "Any", "Final")
} | {"Tensor": Tensor}
WORDS = {
    "number": types.NUMBER,
    "Never": types.NEVER,
    "NoneType": types.NONE,
    "Device": types.DEVICE,
}

OF_ANY_DTYPE = (
    "TorchScript will treat type annotations of Tensor dtype-specific subtypes as if they are normal "
    "Tensors. dtype constraints are not enforced in compilation either."
)
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.Pow: "**"}


class Broadcasting:
    """A list of so many elements, for which one may be given: `BroadcastingList2[int]`."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __getitem__(self, element: Any) -> Type:
        return types.List(type_of(element), self.count)


class Unreadable(Exception):
    """An annotation that names no type a compiled function knows."""


def type_of(annotation: object) -> Type:
    """The type behind an annotation.

    >>> str(type_of(typing.List[int])), str(type_of(dict[str, Tensor])), str(type_of(int | None))
    ('int[]', 'Dict(str, Tensor)', 'int?')
    """
    if isinstance(annotation, Type):
        return annotation
    if isinstance(annotation, typing.Hashable) and annotation in PLAIN:
        return PLAIN[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in (list, tuple, dict, typing.Optional):
        word = str(annotation).removeprefix("typing.")
        raise Unreadable(
            f"Attempted to use {word} without a contained type. Please add a contained type, "
            f"e.g. {word}[int]"
        )
    if annotation in (typing.List, typing.Tuple, typing.Dict):  # noqa: UP006  # as programs write it
        word = str(annotation).removeprefix("typing.")
        lacks = "contained types" if origin is dict else "a contained type"
        example = f"{word}[int, int]" if origin is dict else f"{word}[int]"
        raise Unreadable(
            f"Attempted to use {word} without {lacks}. Please add {lacks.removesuffix('s')}, "
            f"e.g. {example}"
        )
    if origin is list:
        return types.List(type_of(args[0]))
    if origin is dict:
        return types.Dict(type_of(args[0]), type_of(args[1]))
    if origin is tuple:
        if Ellipsis in args:
            raise Unreadable(f"{annotation} has no fixed length")
        return types.Tuple(tuple(map(type_of, args)))
    if origin in (typing.Union, python_types.UnionType):
        return either(list(args))
    if origin is typing.Final:
        return type_of(args[0])
    if origin is Future:
        return types.Future(type_of(args[0]))
    if origin is typing.Annotated:
        return type_of(args[0])
    if isinstance(annotation, type):
        return type_of_class(annotation)
    raise Unreadable(f"Unknown type name '{getattr(annotation, '__name__', annotation)}'")


def is_older_tensor(kind: type) -> bool:
    """Whether a class is one of `torch.LongTensor` and its kin, by which tensors of a dtype were made."""
    return isinstance(getattr(kind, "dtype", None), dtype) and kind.__name__.endswith("Tensor")


def type_of_class(kind: Any) -> Type:
    """The type of a class: a named tuple, or one that was scripted."""
    if issubclass(kind, Tensor):
        return types.TENSOR
    if is_older_tensor(kind):
        warnings.warn(OF_ANY_DTYPE, stacklevel=2)
        return types.TENSOR
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = named_hints(kind)
        if any(isinstance(v, Tensor) for v in getattr(kind, "_field_defaults", {}).values()):
            raise Unreadable("Tensors are not supported as default NamedTuple fields")
        elements = tuple(type_of(hints.get(f, Tensor)) for f in kind._fields)
        return types.Tuple(elements, tuple(kind._fields), kind)
    if issubclass(kind, enum.Enum):
        return types.Enum(kind.__name__, kind)
    found = known_class(kind)
    if found is None and kind.__mro__[1:] == (object,) and "__init__" in vars(kind):
        found = register(kind) if not is_ours(kind.__module__) else None
    if found is None:
        raise Unreadable(f"Unknown type name '{kind.__name__}'")
    return found


def named_hints(kind: object) -> dict[str, Any]:
    """The annotations of a named tuple; those that are text are looked up where it was defined."""
    space = vars(builtins) | vars(sys.modules.get(kind.__module__, typing))
    found = {}
    for name, hint in getattr(kind, "__annotations__", {}).items():
        if isinstance(hint, typing.ForwardRef):
            hint = hint.__forward_arg__
        if isinstance(hint, str):
            found[name] = read(parse_python(hint, mode="eval").body, lambda n: space[n])
        else:
            found[name] = hint
    return found


def read(node: ast.expr, names: Callable[[str], Any]) -> Type:
    """The type that an expression of the source names. Nothing of it is run."""
    return type_of(resolve(node, names))


def resolve(node: ast.expr, names: Callable[[str], Any]) -> Any:
    """The object behind an annotation: names, attributes, subscripts, `|` and text."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return resolve(parse_python(node.value, mode="eval").body, names)
        if node.value is None or node.value is Ellipsis:
            return node.value
    elif isinstance(node, ast.Name):
        if sized := re.fullmatch(r"_size_([1-6])_t", node.id):  # known by name, as in PyTorch
            return Broadcasting(int(sized[1]))[int]
        if sized := re.fullmatch(r"BroadcastingList([1-6])", node.id):
            return Broadcasting(int(sized[1]))
        if node.id == "Tensor":  # whatever it is the name of
            return Tensor
        if node.id.startswith("BroadcastingList"):
            raise Unreadable(f"subscript of Broadcasted list must be a positive integer: {node.id}")
        try:
            return names(node.id)
        except KeyError:
            if node.id in WORDS or node.id in TYPING:
                return WORDS.get(node.id) or TYPING[node.id]
            raise Unreadable(f"Unknown type name '{node.id}'") from None
    elif isinstance(node, ast.Attribute):
        return getattr(resolve(node.value, names), node.attr, None)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return either([resolve(node.left, names), resolve(node.right, names)])
    elif isinstance(node, ast.Subscript):
        if not isinstance(node.value, (ast.Name, ast.Attribute)):
            raise Unreadable("Subscripted type must be a type identifier")
        return subscripted(resolve(node.value, names), node.slice, names)
    elif isinstance(node, ast.BinOp):
        sign = SIGNS.get(type(node.op), type(node.op).__name__)
        raise Unreadable(f"Expression of type {sign} cannot be used in a type expression")
    raise Unreadable(f"Unknown type name '{ast.unparse(node)}'")


def subscripted(outer: object, inner: ast.expr, names: Callable[[str], Any]) -> Any:
    """List[int] and its like, as a Type."""
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if isinstance(inner, ast.Tuple) and parts and bracketed(inner):
        raise Unreadable("Tuple literal in Tuple type annotation must not have any elements!")
    if any(isinstance(p, ast.Tuple) and p.elts for p in parts):
        raise Unreadable("Tuple literal in Tuple type annotation must not have any elements!")
    given = [resolve(p, names) for p in parts]
    outer = typing.get_origin(outer) or outer  # List is list under another name
    if outer is list:
        return types.List(type_of(given[0]))
    if outer is dict and len(given) == 2:
        return types.Dict(type_of(given[0]), type_of(given[1]))
    if outer is tuple:
        if Ellipsis in given:
            raise Unreadable("a Tuple has a fixed length: Tuple[int, int]")
        return types.Tuple(tuple(map(type_of, given)))
    if isinstance(outer, Broadcasting):
        return outer[given[0]]
    if outer is Future:
        return types.Future(type_of(given[0]))
    if outer is typing.Optional:
        return optional(type_of(given[0]))
    if outer is typing.Union:
        return either(given)
    if outer is typing.Final:
        return given[0]
    if outer is Tensor:
        raise Unreadable("Unknown type constructor Tensor")
    raise Unreadable(f"Unknown type name '{getattr(outer, '__name__', outer)}'")


def bracketed(node: ast.Tuple) -> bool:
    """Whether a tuple has round brackets of its own."""
    return (node.lineno, node.col_offset) != (node.elts[0].lineno, node.elts[0].col_offset)


def either(kinds: list[Any]) -> Type:
    """One of several types."""
    return types.union([type_of(k) for k in kinds])


def optional(kind: Type) -> Type:
    """The type or None."""
    return kind if kind in (types.NONE, types.ANY) else types.union([kind, types.NONE])


def spelled(kind: Type) -> str:
    """A type as Python spells it.

    >>> spelled(types.Optional(types.List(types.INT))), spelled(types.NONE)
    ('Optional[List[int]]', 'NoneType')
    """
    if isinstance(kind, types.Tensor):
        return "Tensor"
    if isinstance(kind, types.List):
        return f"List[{spelled(kind.element)}]"
    if isinstance(kind, types.Dict):
        return f"Dict[{spelled(kind.key)}, {spelled(kind.value)}]"
    if isinstance(kind, types.Future):
        return f"Future[{spelled(kind.element)}]"
    if isinstance(kind, types.Optional):
        return f"Optional[{spelled(kind.element)}]"
    if isinstance(kind, types.Union):
        return f"Union[{', '.join(map(spelled, kind.elements))}]"
    if isinstance(kind, types.Tuple):
        if kind.python is not None:
            return str(kind.python.__name__)
        return f"Tuple[{', '.join(map(spelled, kind.elements)) or '()'}]"
    if isinstance(kind, types.Class):
        return kind.name
    return SPELLED.get(str(kind), str(kind))

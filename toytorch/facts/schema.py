"""Op signatures: parsed from PyTorch's notation, turned into Python parameters.

    add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    view(Tensor self, int... shape) -> Tensor              # one tuple or several ints
    max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)

`Operand` is a tensor or a Python number (PyTorch writes two overloads for it).
"""

from __future__ import annotations

import functools
import inspect
import re
from dataclasses import dataclass, field
from typing import Any


class Missing:
    """Stands for an argument that was not given."""

    def __init__(self, shown: str) -> None:
        self.shown = shown

    def __repr__(self) -> str:
        return self.shown


REQUIRED = Missing("<required>")
NOT_GIVEN: Any = Missing(
    "<not given>"
)  # as a default: of an argument that may be left out, and may not be None
# NumPy's words for PyTorch's, which its functions and methods take as well.
NUMPY_WORDS = {
    "dim": ("axis",),
    "keepdim": ("keepdims",),
    "input": ("x", "a", "x1"),
    "other": ("x2",),
}
# How a size of one number or several is called where it is given by name.
SIZE_WORDS = ("size", "shape", "dims", "sizes", "repeats")
DEFAULTS = {"None": None, "True": True, "False": False, "[]": ()}
BRACKET = re.compile(r"[(\[]")
ARGUMENT = re.compile(
    r"(?P<type>[A-Za-z_]+(?:\[\])?\??(?:\.\.\.)?)\s+"
    r"(?P<name>\w+)(?:=(?P<default>.+))?$"
)
SIGNATURE = re.compile(r"(?P<name>[\w.]+)\((?P<args>.*)\)\s*->\s*(?P<returns>.+)$", re.S)


@dataclass(frozen=True)
class Argument:
    """One parameter of an op."""

    name: str
    type: str
    default: Any = REQUIRED
    keyword_only: bool = False
    text: str = ""

    @functools.cached_property
    def is_tensor(self) -> bool:
        return self.type in ("Tensor", "Tensor?", "Operand", "Operand?")

    @functools.cached_property
    def takes_number(self) -> bool:
        return self.type.startswith("Operand")

    @functools.cached_property
    def is_optional(self) -> bool:
        return self.type.endswith("?")

    @functools.cached_property
    def is_tensor_list(self) -> bool:
        return self.type == "Tensor[]"

    @functools.cached_property
    def is_variadic(self) -> bool:
        return self.type.endswith("...")


@dataclass(frozen=True)
class Schema:
    """The name, parameters and results of an op.

    >>> s = parse("sum(Tensor self, int[]? dim=None, *, dtype? dtype=None) -> Tensor")
    >>> s.name, [a.name for a in s.args], s.args[1].default, s.args[2].keyword_only
    ('sum', ['self', 'dim', 'dtype'], None, True)
    """

    text: str
    name: str
    args: tuple[Argument, ...]
    returns: tuple[str, ...]
    result_names: tuple[str, ...] = ()
    index: dict[str, int] = field(default_factory=dict, compare=False)

    @property
    def tensors(self) -> tuple[int, ...]:
        """Positions of the arguments that hold tensors."""
        return tuple(i for i, a in enumerate(self.args) if a.is_tensor or a.is_tensor_list)

    def __str__(self) -> str:
        return self.text

    def signature(self, out: bool = False) -> inspect.Signature:
        """The parameters of the op's function, with `out` where it takes one.

        >>> parse("all(Tensor self, int? dim=None, *, dtype? dtype=None) -> Tensor").signature()
        <Signature (input, dim=None, *, dtype=None)>
        """
        made, star = [], False
        for a in self.args:
            kind: inspect._ParameterKind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            if a.is_variadic:
                kind, star = inspect.Parameter.VAR_POSITIONAL, True
            elif a.keyword_only or star:
                kind = inspect.Parameter.KEYWORD_ONLY
            plain = a.default is REQUIRED or a.is_variadic
            made.append(
                inspect.Parameter(
                    "input" if a.name == "self" else a.name,
                    kind,
                    default=inspect.Parameter.empty if plain else a.default,
                )
            )
        if out:
            made.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
        return inspect.Signature(made)

    def words(self) -> dict[str, int]:
        """The position of an argument by each name that a caller may use for it.

        >>> parse("all(Tensor self, int dim) -> BoolTensor").words()
        {'input': 0, 'x': 0, 'a': 0, 'x1': 0, 'dim': 1, 'axis': 1}
        """
        found: dict[str, int] = {}
        for i, a in enumerate(self.args):
            name = "input" if a.name == "self" else a.name
            for word in (name, *NUMPY_WORDS.get(name, ()), *(SIZE_WORDS if a.is_variadic else ())):
                found.setdefault(word, i)
        return found


def split_commas(text: str) -> list[str]:
    """The parts of `text` between commas that stand outside brackets."""
    if not BRACKET.search(text):
        return [part.strip() for part in text.split(",")] if text.strip() else []
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [*parts, part.strip()] if part.strip() else parts


def literal(text: str) -> Any:
    """The value of a default: None, a bool, a number, a list or a quoted string."""
    if text in DEFAULTS:
        return DEFAULTS[text]
    if text[0] == "[":
        return tuple(literal(t) for t in split_commas(text[1:-1]))
    if text[0] in "'\"":
        return text[1:-1]
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


@functools.cache  # most ops begin with `Tensor self`
def _argument(text: str, keyword_only: bool) -> Argument | None:
    a = ARGUMENT.match(text)
    if not a:
        return None
    default = REQUIRED if a["default"] is None else literal(a["default"])
    return Argument(a["name"], a["type"], default, keyword_only, text)


def parse(text: str) -> Schema:
    """Reads a signature.

    >>> parse("mul(Tensor self, other) -> Tensor")
    Traceback (most recent call last):
    ValueError: mul: cannot read the parameter 'other'
    """
    text = " ".join(text.split())
    found = SIGNATURE.match(text)
    if not found:
        raise ValueError(f"cannot read the signature {text!r}")
    args, keyword_only = [], False
    for part in split_commas(found["args"]):
        if part == "*":
            keyword_only = True
            continue
        a = _argument(part, keyword_only)
        if a is None:
            raise ValueError(f"{found['name']}: cannot read the parameter {part!r}")
        args.append(a)
    returns = found["returns"].strip()
    parts = [r.split() for r in split_commas(returns[1:-1] if returns[0] == "(" else returns)]
    names = tuple(p[1] for p in parts if len(p) > 1)
    places = {a.name: i for i, a in enumerate(args)}
    return Schema(text, found["name"], tuple(args), tuple(p[0] for p in parts), names, places)


# Classes that C++ defines under a name with a dot.
QUALIFIED = ("Size", "device", "dtype", "layout", "memory_format")


def class_of(value: object) -> str:
    """The class of a value, as PyTorch's parser of arguments calls it.

    >>> class_of(3.0)
    'float'
    """
    kind = type(value)
    name, home = kind.__name__, kind.__module__.partition(".")[0]
    if home == "numpy":
        return f"numpy.{name}"
    ours = home in ("toytorch", "torch")
    return f"torch.{name}" if ours and name in QUALIFIED else name


def wrong_argument(function: str, name: str, place: int, wanted: str, value: object) -> TypeError:
    """What PyTorch's parser of arguments says of one of another type; at place 0, of one given by name.

    >>> wrong_argument("kron", "other", 2, "Tensor", 3.0)
    TypeError("kron(): argument 'other' (position 2) must be Tensor, not float")
    """
    if place:
        from toytorch.facts import call_site  # nothing else needs it, and most programs never do

        place = call_site.place(function, place, name, *NUMPY_WORDS.get(name, ()))
    at = f" (position {place})" if place else ""
    return TypeError(f"{function}(): argument '{name}'{at} must be {wanted}, not {class_of(value)}")

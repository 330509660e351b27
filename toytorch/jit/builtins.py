"""Operations on what is no tensor: numbers, lists, strings, sizes.

In a graph `aten::add` adds tensors and `aten::add.int` Python's integers. A Builtin says what such
an operation takes and computes, the type of its result and whether it may be left out or run twice.
The signatures are PyTorch's notation; `t` and `u` stand for any type, `Any` for every one.
"""

from __future__ import annotations

import math
import operator
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from toytorch.facts.hints import Fn
from toytorch.jit import types
from toytorch.jit.types import COMPLEX, FLOAT, INT, NONE, STR, Type


@dataclass(frozen=True)
class Variable(Type):
    """A type that a call fills in."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Builtin:
    """One operation of Python's own values.

    pure    whether it may be left out or run twice
    reads   as in `facts.composed`: what it tells of a tensor, its "elements" or its "memory"
    told    the answer where the type of the tensor, and constants behind it, tell it already;
            LookupError where they do not
    takes   whether it takes something out of what it is given first
    """

    name: str
    function: Fn
    result: Type
    pure: bool = True
    params: tuple[tuple[str, Type], ...] = ()
    text: str = ""
    reads: str = ""
    told: Fn | None = None
    takes: bool = False

    @property
    def changes(self) -> bool:
        """Whether it changes the list or dictionary that it is given first."""
        return self.takes or self.result == NONE

    @property
    def gives(self) -> bool:
        """Whether its result is, or holds, an element of a list or dictionary it was given."""
        return any_variable(self.result)

    def __call__(self, *args: object) -> Any:
        return self.function(*args)

    def result_for(self, given: Sequence[Type]) -> Type | None:
        """The type of the result for arguments of these types; None where they do not fit."""
        bound: dict[str, Type] = {}
        if len(given) != len(self.params) or not all(
            fits(wanted, have, bound) for (_, wanted), have in zip(self.params, given)
        ):
            return None
        return fill(self.result, bound)


BUILTINS: dict[str, Builtin] = {}
FAMILIES: dict[str, list[Builtin]] = {}  # the overloads of a name, in the order they are tried
SIMPLE = types.SIMPLE | {"None": NONE, "Tensor": types.TENSOR}
SIGNATURE = re.compile(r"([\w.]+)\((.*)\) -> (.+)$")


def parse_type(text: str) -> Type:
    """The type behind its name in a signature.

    >>> str(parse_type("Dict(str, int)[]")), str(parse_type("(t, int?)"))
    ('Dict(str, int)[]', '(t, int?)')
    """
    if text.endswith("[]"):
        return types.List(parse_type(text[:-2]))
    if text.endswith("?"):
        return types.Optional(parse_type(text[:-1]))
    if text.startswith("Dict("):
        return types.Dict(*map(parse_type, parts_of(text[5:-1])))
    if text.startswith("Future("):
        return types.Future(parse_type(text[7:-1]))
    if text.startswith("("):
        return types.Tuple(tuple(map(parse_type, parts_of(text[1:-1]))))
    return SIMPLE.get(text) or Variable(text)


def parts_of(text: str) -> list[str]:
    """The parts between the commas that stand outside brackets."""
    found, depth = [""], 0
    for c in text:
        depth += (c in "(") - (c in ")")
        if c == "," and not depth:
            found.append("")
        else:
            found[-1] += c
    return [part.strip() for part in found if part.strip()]


def fits(wanted: Type, have: Type, bound: dict[str, Type]) -> bool:
    """Whether an argument of the type `have` may be given where `wanted` stands."""
    if isinstance(wanted, Variable):
        return bound.setdefault(wanted.name, have).contains(have)
    if isinstance(have, types.Union):
        return wanted.contains(have)
    if isinstance(wanted, (types.List, types.Future)):
        return isinstance(have, type(wanted)) and fits(wanted.element, have.element, bound)
    if isinstance(wanted, types.Dict):
        return (
            isinstance(have, types.Dict)
            and fits(wanted.key, have.key, bound)
            and (fits(wanted.value, have.value, bound))
        )
    if isinstance(wanted, types.Tuple):
        return (
            isinstance(have, types.Tuple)
            and len(wanted.elements) == len(have.elements)
            and (all(fits(w, h, bound) for w, h in zip(wanted.elements, have.elements)))
        )
    if isinstance(wanted, types.Optional):
        inner = have.element if isinstance(have, types.Optional) else have
        return have == NONE or fits(wanted.element, inner, bound)
    if wanted == FLOAT:
        return have in (FLOAT, INT)
    if wanted == COMPLEX:
        return have in (COMPLEX, FLOAT, INT)
    return wanted.contains(have)


def slice_of_list(values: list[Any], start: int | None, end: int | None, step: int | None) -> Any:
    """values[start:end:step]."""
    if step == 0:
        raise RuntimeError("List slice should have non-zero step")
    return values[start:end:step]


def any_variable(pattern: Type) -> bool:
    """Whether a type has a part that a call fills in."""
    if isinstance(pattern, Variable):
        return True
    parts = getattr(pattern, "elements", None) or [
        getattr(pattern, name) for name in ("element", "key", "value") if hasattr(pattern, name)
    ]
    return any(map(any_variable, parts))


def fill(pattern: Type, bound: dict[str, Type]) -> Type:
    """A type with its variables filled in."""
    if isinstance(pattern, Variable):
        return bound[pattern.name]
    if isinstance(pattern, (types.List, types.Future, types.Optional)):
        return type(pattern)(fill(pattern.element, bound))
    if isinstance(pattern, types.Dict):
        return types.Dict(fill(pattern.key, bound), fill(pattern.value, bound))
    if isinstance(pattern, types.Tuple):
        return types.Tuple(tuple(fill(e, bound) for e in pattern.elements))
    return pattern


def builtin(signature: str, function: Fn, pure: bool = True, **facts: Any) -> None:
    """Adds an operation: `builtin("add.int(int a, int b) -> int", operator.add)`."""
    found = SIGNATURE.match(signature)
    assert found is not None, signature
    name, given, result = found.groups()
    pairs = tuple(
        (text.rpartition(" ")[2], parse_type(text.rpartition(" ")[0])) for text in parts_of(given)
    )
    made = Builtin(name, function, parse_type(result), pure, pairs, "aten::" + signature, **facts)
    BUILTINS[name] = made
    FAMILIES.setdefault(name.partition(".")[0], []).append(made)


def each(names: str, signature: str, functions: dict[str, Fn], pure: bool = True) -> None:
    """Adds several operations of one signature: `@` stands for the name."""
    for name in names.split():
        builtin(signature.replace("@", name), functions[name], pure)


def methods(owner: ModuleType | type, names: str, signature: str, pure: bool = True) -> None:
    """`each` for functions that an owner has under the same names."""
    for name in names.split():
        builtin(signature.replace("@", name), getattr(owner, name), pure)


def resolve(name: str, given: Sequence[Type]) -> tuple[Builtin, Type] | None:
    """The first overload that takes arguments of these types, and the type of its result."""
    for candidate in FAMILIES.get(name, ()):
        result = candidate.result_for(given)
        if result is not None:
            return candidate, result
    return None


def _item(t: Any) -> Any:
    return t.item()


def _implied(t: Any, whole: bool = False) -> Any:
    """The number of a tensor that is given where a number is asked for."""
    if t.requires_grad:
        raise RuntimeError("Cannot input a tensor that requires grad as a scalar argument")
    if t.ndim:
        raise RuntimeError("Cannot input a tensor of dimension other than 0 as a scalar argument")
    if whole and t.dtype.rank != 1:
        raise RuntimeError(
            f"Cannot input a tensor of type {t.dtype.legacy} as an integral argument"
        )
    return t.item()


# -- numbers --------------------------------------------------------------------------------------

OPERATORS = (
    "add sub mul floordiv pow __and__ __or__ __xor__ __lshift__ __rshift__ eq ne lt le gt ge"
)
BINARY: dict[str, Fn] = {
    **{name: getattr(operator, name) for name in OPERATORS.split()},
    "remainder": operator.mod,
    "div": operator.truediv,
    "min": min,
    "max": max,
}
UNARY: dict[str, Fn] = {
    "neg": operator.neg,
    "bitwise_not": operator.invert,
    "abs": abs,
    "round": round,
    "pos": operator.pos,
}
each(
    "add sub mul floordiv remainder pow __and__ __or__ __xor__ __lshift__ __rshift__ min max",
    "@.int(int a, int b) -> int",
    BINARY,
)
each("add sub mul floordiv remainder div pow min max", "@.float(float a, float b) -> float", BINARY)
builtin("div.int(int a, int b) -> float", operator.truediv)
FAMILIES["div"].reverse()
each("add sub mul div pow", "@.complex(complex a, complex b) -> complex", BINARY)
each(
    "add sub mul floordiv remainder div pow min max",
    "@.Scalar(Scalar a, Scalar b) -> Scalar",
    BINARY,
)
each("neg bitwise_not abs pos round", "@.int(int a) -> int", UNARY)
each("neg abs pos", "@.float(float a) -> float", UNARY)
builtin("round.float(float a) -> int", round)
builtin("round.digits(float a, int digits) -> float", round)
builtin("abs.complex(complex a) -> float", abs)
each("neg", "@.complex(complex a) -> complex", UNARY)
each("neg abs", "@.Scalar(Scalar a) -> Scalar", UNARY)
builtin("divmod.int(int a, int b) -> (int, int)", divmod)
builtin("divmod.float(float a, float b) -> (float, float)", divmod)
each("eq ne lt le gt ge", "@.int(int a, int b) -> bool", BINARY)
each("eq ne lt le gt ge", "@.float(float a, float b) -> bool", BINARY)
each("eq ne lt le gt ge", "@.str(str a, str b) -> bool", BINARY)
each("eq ne lt le gt ge", "@.Scalar(Scalar a, Scalar b) -> bool", BINARY)
each("eq ne __and__ __or__ __xor__", "@.bool(bool a, bool b) -> bool", BINARY)
each("eq ne", "@.complex(complex a, complex b) -> bool", BINARY)
each("eq ne", "@.dtype(Dtype a, Dtype b) -> bool", BINARY)
each("eq ne", "@.device(Device a, Device b) -> bool", BINARY)
each("eq ne", "@.layout(Layout a, Layout b) -> bool", BINARY)
builtin("__is__(Any a, Any b) -> bool", operator.is_)
builtin("__isnot__(Any a, Any b) -> bool", operator.is_not)
builtin("__not__(bool a) -> bool", operator.not_)
builtin("Int.Tensor(Tensor a) -> int", lambda t: int(_item(t)), reads="elements")
builtin("Float.Tensor(Tensor a) -> float", lambda t: float(_item(t)), reads="elements")
builtin("Bool.Tensor(Tensor a) -> bool", bool, reads="elements")
builtin("Complex.Tensor(Tensor a) -> complex", lambda t: complex(_item(t)), reads="elements")
for _name, _kind, _function in (
    ("Int", "int", int),
    ("Float", "float", float),
    ("Bool", "bool", bool),
):
    builtin(f"{_name}.Scalar(Scalar a) -> {_kind}", _function)
    builtin(f"{_name}.str(str a) -> {_kind}", _function)
builtin("Complex.Scalar(Scalar a) -> complex", complex)
builtin("Complex.parts(float real, float imag) -> complex", complex)
methods(
    math,
    "sqrt exp log log2 log10 log1p expm1 sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh erf erfc gamma lgamma fabs degrees radians",
    "@.float(float a) -> float",
)
for _name in ("ceil", "floor"):
    builtin(f"{_name}.float(float a) -> int", getattr(math, _name))
builtin("trunc.float(float a) -> int", math.trunc)
methods(math, "atan2 copysign fmod", "@.float(float a, float b) -> float")
builtin("mathpow(float a, float b) -> float", math.pow)
builtin("log.base(float a, float base) -> float", math.log)
methods(math, "isnan isinf isfinite", "@.float(float a) -> bool")
builtin("modf(float a) -> (float, float)", math.modf)
builtin("frexp(float a) -> (float, int)", math.frexp)
builtin("ldexp(float a, int i) -> float", math.ldexp)
builtin("mathremainder(float a, float b) -> float", math.remainder)
builtin("factorial.int(int a) -> int", math.factorial)
builtin("gcd.int(int a, int b) -> int", math.gcd)

# -- tensors' facts -------------------------------------------------------------------------------

builtin("item(Tensor self) -> Scalar", _item, reads="elements")
builtin("IntImplicit(Tensor a) -> int", lambda t: _implied(t, True), reads="elements")
builtin("FloatImplicit(Tensor a) -> float", lambda t: float(_implied(t)), reads="elements")
builtin("ScalarImplicit(Tensor a) -> Scalar", _implied, reads="elements")
builtin("size(Tensor self) -> int[]", lambda t: list(t._array.shape))
builtin(
    "size.int(Tensor self, int dim) -> int",
    lambda t, dim: t._array.shape[dim],
    told=lambda t, dim: t.shape[dim],
)
builtin("stride(Tensor self) -> int[]", lambda t: list(t.stride()))
builtin("stride.int(Tensor self, int dim) -> int", lambda t, dim: t.stride(dim))
builtin("dim(Tensor self) -> int", lambda t: t._array.ndim, told=lambda t: len(t.shape))
builtin(
    "numel(Tensor self) -> int", lambda t: int(t._array.size), told=lambda t: math.prod(t.shape)
)
builtin("storage_offset(Tensor self) -> int", lambda t: t.storage_offset(), reads="memory")
builtin("element_size(Tensor self) -> int", lambda t: t.element_size())
builtin(
    "is_floating_point(Tensor self) -> bool",
    lambda t: t.is_floating_point(),
    told=lambda t: t.dtype.is_floating_point,
)
builtin(
    "is_complex(Tensor self) -> bool", lambda t: t.is_complex(), told=lambda t: t.dtype.is_complex
)
builtin("is_contiguous(Tensor self) -> bool", lambda t: t.is_contiguous())
builtin("is_same_size(Tensor self, Tensor other) -> bool", lambda a, b: a.shape == b.shape)
builtin("is_nonzero(Tensor self) -> bool", bool, reads="elements")
builtin("equal(Tensor self, Tensor other) -> bool", lambda a, b: a.equal(b), reads="elements")

# -- lists, which may change: reading one is not repeated across a write --------------------------

builtin("len.Tensor(Tensor t) -> int", len)
builtin("len.t(t[] a) -> int", len, pure=False)
builtin("len.str(str s) -> int", len)
builtin("len.Dict(Dict(t, u) self) -> int", len, pure=False)
builtin("add.t(t[] a, t[] b) -> t[]", operator.add, pure=False)
builtin("add.str(str a, str b) -> str", operator.add)
builtin("mul.left_t(t[] l, int n) -> t[]", operator.mul, pure=False)
builtin("mul.right_t(int n, t[] l) -> t[]", operator.mul, pure=False)
builtin("mul.str(str s, int n) -> str", operator.mul)
each("eq ne lt le gt ge", "@.t(t[] a, t[] b) -> bool", BINARY, pure=False)
each("eq ne", "@.Any(Any a, Any b) -> bool", BINARY, pure=False)
builtin("__getitem__.t(t[] list, int idx) -> t", operator.getitem, pure=False)
builtin("__getitem__.str(str s, int index) -> str", operator.getitem)
builtin("__getitem__.Dict(Dict(t, u) self, t key) -> u", operator.getitem, pure=False)
builtin("slice.t(t[] l, int? start, int? end, int? step) -> t[]", slice_of_list, pure=False)
builtin("slice.str(str s, int? start, int? end, int? step) -> str", lambda x, a, b, c: x[a:b:c])
builtin("__contains__.t(t[] l, t item) -> bool", operator.contains, pure=False)
builtin("__contains__.str(str l, str item) -> bool", operator.contains)
builtin("__contains__.Dict(Dict(t, u) d, t key) -> bool", operator.contains, pure=False)
builtin("_set_item.t(t[] l, int idx, t el) -> None", operator.setitem, pure=False)
builtin("_set_item.Dict(Dict(t, u) l, t idx, u v) -> None", operator.setitem, pure=False)
builtin("Delete.t(t[] self, int idx) -> None", operator.delitem, pure=False)
builtin("Delete.Dict(Dict(t, u) self, t key) -> None", operator.delitem, pure=False)
builtin("append.t(t[] self, t el) -> None", list.append, pure=False)
builtin("extend.t(t[] self, t[] other) -> None", list.extend, pure=False)
builtin("insert.t(t[] self, int idx, t el) -> None", list.insert, pure=False)
builtin("pop(t[] self) -> t", list.pop, pure=False, takes=True)
builtin("pop.t(t[] self, int idx) -> t", list.pop, pure=False, takes=True)
builtin("clear.t(t[] self) -> None", list.clear, pure=False)
builtin("remove.t(t[] self, t el) -> None", list.remove, pure=False)
builtin("reverse.t(t[] self) -> None", list.reverse, pure=False)
builtin("sort.t(t[] self) -> None", list.sort, pure=False)
builtin("sort.reverse(t[] self, bool reverse) -> None", lambda x, r: x.sort(reverse=r), pure=False)
builtin("copy.t(t[] self) -> t[]", list.copy, pure=False)
builtin("index.t(t[] self, t el) -> int", list.index, pure=False)
builtin("count.t(t[] self, t el) -> int", list.count, pure=False)
builtin("list.t(t[] l) -> t[]", list, pure=False)
builtin("list.str(str s) -> str[]", list, pure=False)
builtin("sorted.t(t[] l) -> t[]", sorted, pure=False)
builtin("sorted.reverse(t[] l, bool reverse) -> t[]", lambda x, r: sorted(x, reverse=r), pure=False)
builtin("reversed.t(t[] l) -> t[]", lambda x: x[::-1], pure=False)
builtin("reversed.str(str s) -> str[]", lambda s: list(s[::-1]))
for _kind in ("int", "float", "bool", "Scalar", "str"):
    each("any all", f"@.{_kind}({_kind}[] self) -> bool", {"any": any, "all": all}, pure=False)
each("min max", "@.self_int(int[] l) -> int", BINARY, pure=False)
each("min max", "@.self_float(float[] l) -> float", BINARY, pure=False)
each("min max", "@.self_str(str[] l) -> str", BINARY, pure=False)
each("min max", "@.self_bool(bool[] l) -> bool", BINARY, pure=False)
each("min max", "@.str(str a, str b) -> str", BINARY)
for _kind in ("int", "float", "bool"):
    each("min max", f"@.{_kind}_list({_kind}[] l, {_kind}[] r) -> {_kind}[]", BINARY, pure=False)
builtin("sum.int(int[] l) -> int", sum, pure=False)
builtin("sum.float(float[] l) -> float", sum, pure=False)
builtin("sum.Tensor(Tensor[] l) -> Tensor", sum, pure=False)
builtin("sum.bool(bool[] l) -> int", sum, pure=False)
builtin("sum.int_start(int[] l, int start) -> int", sum, pure=False)
builtin("sum.float_start(float[] l, float start) -> float", sum, pure=False)
builtin("sum.Tensor_start(Tensor[] l, Tensor start) -> Tensor", sum, pure=False)
builtin("__range_length(int lo, int hi, int step) -> int", lambda a, b, c: len(range(a, b, c)))
builtin("__derive_index(int index, int start, int step) -> int", lambda i, a, s: a + i * s)
builtin(
    "range_list(int lo, int hi, int step) -> int[]",
    lambda a, b, c: list(range(a, b, c)),
    pure=False,
)

builtin("wait(Future(t) self) -> t", lambda f: f.wait(), pure=False)
builtin("done(Future(t) self) -> bool", lambda f: f.done(), pure=False)
builtin("value(Future(t) self) -> t", lambda f: f.value(), pure=False)

# -- dictionaries ---------------------------------------------------------------------------------

builtin("keys(Dict(t, u) self) -> t[]", lambda d: list(d), pure=False)
builtin("values(Dict(t, u) self) -> u[]", lambda d: list(d.values()), pure=False)
builtin("items(Dict(t, u) self) -> (t, u)[]", lambda d: list(d.items()), pure=False)
builtin("get(Dict(t, u) self, t key) -> u?", dict.get, pure=False)
builtin("get.default(Dict(t, u) self, t key, u default) -> u", dict.get, pure=False)
builtin("pop.Dict(Dict(t, u) self, t key) -> u", dict.pop, pure=False, takes=True)
builtin(
    "pop.Dict_default(Dict(t, u) self, t key, u default) -> u", dict.pop, pure=False, takes=True
)
builtin("popitem(Dict(t, u) self) -> (t, u)", dict.popitem, pure=False, takes=True)
builtin(
    "setdefault(Dict(t, u) self, t key, u default) -> u", dict.setdefault, pure=False, takes=True
)
builtin("update(Dict(t, u) self, Dict(t, u) other) -> None", dict.update, pure=False)
builtin("clear.Dict(Dict(t, u) self) -> None", dict.clear, pure=False)
builtin("copy.Dict(Dict(t, u) self) -> Dict(t, u)", dict.copy, pure=False)
builtin("dict.pairs((t, u)[] l) -> Dict(t, u)", dict, pure=False)
builtin("dict.Dict(Dict(t, u) d) -> Dict(t, u)", dict, pure=False)


def hashed(value: object) -> int:
    """A value's hash; RuntimeError for a list, a dictionary and what holds one."""
    try:
        return hash(value)
    except TypeError as error:
        raise RuntimeError(str(error)) from None


# -- strings --------------------------------------------------------------------------------------

builtin("str(Any a) -> str", str, pure=False)
builtin("ord(str s) -> int", ord)
builtin("hash(Any value) -> int", hashed, pure=False)
builtin("chr(int i) -> str", chr)
each("hex oct bin", "@.int(int i) -> str", {"hex": hex, "oct": oct, "bin": bin})
methods(
    str, "upper lower capitalize title swapcase casefold strip lstrip rstrip", "@(str self) -> str"
)
methods(str, "strip lstrip rstrip removeprefix removesuffix", "@.chars(str self, str chars) -> str")
methods(
    str,
    "isdigit isalpha isalnum isspace isupper "
    "islower istitle isdecimal isnumeric isidentifier isprintable",
    "@(str self) -> bool",
)
methods(str, "startswith endswith", "@(str self, str part) -> bool")
methods(str, "find rfind index rindex count", "@.str(str self, str part) -> int")
methods(str, "find rfind index rindex count", "@.str_from(str self, str part, int start) -> int")
methods(str, "split rsplit", "@.str(str self) -> str[]", pure=False)
methods(str, "split rsplit", "@.sep(str self, str sep) -> str[]", pure=False)
methods(str, "split rsplit", "@.max(str self, str sep, int max) -> str[]", pure=False)
builtin("splitlines(str self) -> str[]", str.splitlines, pure=False)
builtin("join(str self, str[] parts) -> str", str.join, pure=False)
builtin("replace(str self, str old, str new) -> str", str.replace)
builtin("replace.max(str self, str old, str new, int max) -> str", str.replace)
methods(str, "partition rpartition", "@(str self, str sep) -> (str, str, str)")
methods(str, "center ljust rjust", "@(str self, int width) -> str")
methods(str, "center ljust rjust", "@.fill(str self, int width, str fill) -> str")
builtin("zfill(str self, int width) -> str", str.zfill)
builtin("expandtabs(str self, int size) -> str", str.expandtabs)


class _Fields(string.Formatter):
    """Fields in their order or by number: a text may not read attributes of what it formats."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        if field_name and not field_name.isdigit():
            raise ValueError(f"a field of format is empty or a number, not {field_name!r}")
        return super().get_field(field_name, args, kwargs)


_FIELDS = _Fields()


def _format(text: str, *parts: object) -> str:
    return _FIELDS.vformat(text, parts, {})


BUILTINS["format"] = Builtin(
    "format", _format, STR, False, (), "aten::format(str self, ...) -> str"
)
BUILTINS["percentFormat"] = Builtin(
    "percentFormat",
    lambda text, *parts: text % parts,
    STR,
    False,
    (),
    "aten::percentFormat(str self, ...) -> str",
)

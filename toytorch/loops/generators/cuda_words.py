"""Single values in CUDA C: names, constants, primitives, and the functions that a kernel brings along."""

from __future__ import annotations

import math

from toytorch.loops.language.parse import steps_of
from toytorch.loops.language.primitives import PRIMITIVES, STATED
from toytorch.loops.language.steps import Argument, Step
from toytorch.loops.language.types import TYPES, kind
from toytorch.loops.schedule.nest import Let

WORDS = (
    "auto bool break case char class const continue default delete do double else enum extern "
    "false float for goto if inline int long new operator private public register return short "
    "signed sizeof static struct switch template this true typedef union unsigned using void "
    "volatile while kernel lo"
)
KEYWORDS = frozenset(WORDS.split())


def word(name: str) -> str:
    """A name that means nothing else in C."""
    return f"{name}_" if name in KEYWORDS else name


def value_of(a: Argument, type: str) -> str:
    """A name, or a constant in the words of C."""
    if isinstance(a, str):
        return word(a)
    if kind(type) == "f":
        number, suffix = float(a), "f" if type == "float32" else ""
        if math.isfinite(number):
            return f"{number!r}{suffix}" if number >= 0 else f"({number!r}{suffix})"
        bits = 0x7FF8 if math.isnan(number) else (0x7FF0 if number > 0 else 0xFFF0)
        if type == "float32":
            bits = 0x7FC0 if math.isnan(number) else (0x7F80 if number > 0 else 0xFF80)
            return f"__int_as_float(0x{bits:04x}0000)"
        return f"__longlong_as_double(0x{bits:04x}000000000000LL)"
    if type == "bool":
        return "true" if a else "false"
    if type in ("int64", "index"):
        low = int(a) == -(1 << 63)
        return f"(-{(1 << 63) - 1}LL - 1)" if low else f"{int(a)}" + "LL" * (type == "int64")
    return f"({TYPES[type].cuda}){int(a)}"


def primitive(op: str, type: str, args: list[Argument]) -> str:
    record = PRIMITIVES[op]
    words = [value_of(a, "bool" if op == "where" and k == 0 else type) for k, a in enumerate(args)]
    text = (record.cuda or record.python).format(*words, f="f" if type == "float32" else "")
    narrow = kind(type) in "iu" and TYPES[type].bits < 32 and record.result != "bool"
    return f"({TYPES[type].cuda})({text})" if narrow else text


def expression(s: Let | Step, types: dict[str, str]) -> str:
    """What a step computes, from the types of its arguments."""
    if s.op == "cast":
        a = s.args[0]
        source = types[a] if isinstance(a, str) else s.type
        given = value_of(a, source)
        return f"{given} != 0" if s.type == "bool" else f"({TYPES[s.type].cuda}){given}"
    named = [types[a] for a in s.args[s.op == "where" :] if isinstance(a, str)]
    return primitive(s.op, named[0] if named else s.type, list(s.args))


def device_functions(body: str) -> str:
    """The functions that the language states in its own words, of those that the lines name."""
    made: list[str] = []
    for name in reversed(STATED):  # a text may name those that stand before it
        if f"of_{name}(" in body:
            made = [*(device_function(name, type) for type in ("float32", "float64")), *made]
            body += "".join(made[:2])
    return "\n".join(made)


def device_function(name: str, type: str) -> str:
    """Such a function for arguments of a type."""
    word, types = TYPES[type].cuda, dict.fromkeys("xz"[: PRIMITIVES[name].arity], type)
    given = ", ".join(f"{word} {x}" for x in types)
    lines = [f"__device__ {word} of_{name}({given}) {{"]
    for s in steps_of(name, type):
        lines.append(f"    const {TYPES[s.type].cuda} {s.name} = {expression(s, types)};")
        types[s.name] = s.type
    return "\n".join([*lines, f"    return {s.name};", "}"])

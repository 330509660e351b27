"""From the formula of a pointwise record to steps of a loop program.

`expr` in a record is read once: "self > 0 ? self : alpha * expm1(self / alpha)" becomes Python's
syntax tree, and each of its operations one step.
"""

from __future__ import annotations

import ast
import math
import re
from functools import cache
from typing import Any

from toytorch.core.op import Op
from toytorch.loops.language.primitives import PRIMITIVES

# Formulas of the documentation that overflow, or are not defined, where the op itself is.
INEXACT = frozenset(
    (
        "logaddexp",
        "logaddexp2",
        "hypot",
        "sinc",
        "xlogy",
        "special_xlog1py",
        "special_entr",
        "special_log_ndtr",
        "special_erfcx",
        "logit",
        "round",
        "nan_to_num",
        "angle",
        "acosh",
        "asinh",
        "atanh",
        "isposinf",
        "isneginf",
        "floor_divide",
        "special_spherical_bessel_j0",
        "gelu",
        "special_i0e",
        "special_i1e",
        "deg2rad",
        "rad2deg",
        "lerp",
        "signbit",
        "fmod",
        "remainder",
        "div.floor",
        "div.trunc",
        "complex",
        "softplus",
    )
)
BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.LShift: "shift_left",
    ast.RShift: "shift_right",
}
TESTS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
NAMES = {"max": "maximum", "min": "minimum"}
NUMBERS = {"pi": math.pi, "inf": math.inf}
# Ops that are one primitive under another name, and formulas for what `expr` only sketches.
PRIMITIVE = {
    "floor_divide": "floordiv",
    "div.floor": "floordiv",
    "remainder": "remainder",
    "fmod": "fmod",
    "sgn": "sign",
    "bitwise_not": "invert",
    "round": "round",
}
WRITTEN = {
    "softplus": "self * beta > threshold ? self : log1p(exp(self * beta)) / beta",
    "mish": "self * tanh(self > 20 ? self : log1p(exp(self)))",
    "gelu": "self * (1 + erf(self * 0.7071067811865476)) * 0.5",
    "gelu.tanh": "self * 0.5 * (1 + tanh(0.7978845608028654 * (self + 0.044715 * self * self * "
    "self)))",
    "div.trunc": "trunc(self / other)",
    "sigmoid": "sigmoid(self)",
    "silu": "self * sigmoid(self)",
    "deg2rad": "self * 0.017453292519943295",
    "rad2deg": "self * 57.29577951308232",
}


@cache
def tree_of(op: Op, variant: str = "") -> Any:
    """The syntax tree of an op's formula; None where it has none that loops can follow."""
    name = op.name
    if op.kind != "pointwise":
        return None
    written = WRITTEN.get(name + variant)
    if written is None:
        primitive = PRIMITIVE.get(name, name)
        if (
            primitive in PRIMITIVES
            and PRIMITIVES[primitive].arity == len(op.tensor_at)
            and (name in PRIMITIVE or len(op.schema.args) == len(op.tensor_at))
        ):
            args = ", ".join(op.schema.args[i].name for i in op.tensor_at)
            written = f"{primitive}({args})"
        elif name in INEXACT or not op.expr:
            return None
    try:
        tree = ast.parse(in_python(written or op.expr), mode="eval").body
    except SyntaxError:
        return None
    return tree if known(tree, frozenset(op.schema.index)) else None


def in_python(text: str) -> str:
    """C's conditional expression in Python's words.

    >>> in_python("self > 0 ? self : 2 * self")
    '(self) if (self > 0) else (2 * self)'
    """
    text = text.replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"!(?!=)", " not ", text).strip()
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "?" and depth == 0:
            yes, no = text[i + 1 :].split(":", 1)
            return f"({in_python(yes)}) if ({in_python(text[:i])}) else ({in_python(no)})"
    inner = re.search(r"\(([^()]*\?[^()]*(?:\([^()]*\)[^()]*)*)\)", text)
    if inner and "?" in inner[1]:
        return in_python(text[: inner.start(1)] + in_python(inner[1]) + text[inner.end(1) :])
    return text


def known(tree: Any, names: frozenset[str]) -> bool:
    """Whether every operation and name in a formula is one that loops have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func.id if isinstance(node.func, ast.Name) else ""
            if NAMES.get(function, function) not in PRIMITIVES:
                return False
        elif isinstance(node, ast.Name):
            if (
                node.id not in names
                and node.id not in NUMBERS
                and NAMES.get(node.id, node.id) not in PRIMITIVES
            ):
                return False
        elif not isinstance(
            node,
            (
                ast.BinOp,
                ast.UnaryOp,
                ast.Compare,
                ast.IfExp,
                ast.Constant,
                ast.operator,
                ast.unaryop,
                ast.cmpop,
                ast.Load,
                ast.BoolOp,
                ast.boolop,
            ),
        ):
            return False
    return True

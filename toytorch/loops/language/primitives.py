"""The table of primitives: everything that a step of a Program can do to single elements.

One record per primitive: how many arguments it has, which kinds of numbers they may be, what its
result is, what it costs, and how Python (with NumPy's functions) and CUDA C say it. How LLVM says
it stands in `llvm_ops`, under the same name.

    >>> PRIMITIVES["add"].python, PRIMITIVES["exp"].cost
    ('{0} + {1}', 8)
    >>> supports("exp", "float32"), supports("exp", "int64"), supports("floordiv", "int64")
    (True, False, False)

Integers wrap around, as in PyTorch and NumPy. Their divisions (`floordiv`, `remainder`, `fmod`)
are supported for a constant divisor other than 0 only, so that no program can divide by zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from toytorch.loops.language.types import TYPES

REAL, NUMBERS, WHOLE, ALL = "f", "fiu", "iub", "fiub"
EXPENSIVE = 5  # a value of at least this cost is kept rather than computed twice


@dataclass(frozen=True)
class Primitive:
    """One operation on elements.

    kinds   kinds of types the arguments may have ("f" real, "i" signed, "u" unsigned, "b" truth)
    result  "same" as the arguments, or "bool"
    python  an expression over NumPy's functions, the arguments being {0}, {1}, ...
    cuda    the same in CUDA C for float ({f} is "f") and double ({f} is empty); "" for the same
            words as Python's
    cost    roughly, in additions
    """

    name: str
    arity: int
    kinds: str
    python: str
    cuda: str = ""
    cost: int = 1
    result: str = "same"


def _function(
    name: str, cost: int, cuda: str = "", arity: int = 1, suffix: str = "{f}"
) -> Primitive:
    """A function of real numbers that is called by its name everywhere."""
    places = ", ".join(f"{{{k}}}" for k in range(arity))
    words = f"{name}({places})", f"{cuda or name}{suffix}({places})"
    return Primitive(name, arity, REAL, *words, cost)


def _comparison(name: str, sign: str) -> Primitive:
    return Primitive(name, 2, ALL, f"{{0}} {sign} {{1}}", result="bool")


# Functions that the language states in its own words (`defined`), and what they cost; one may call those
# before it.
STATED = {
    "lgamma": 90, "bessel_i0": 60, "bessel_i0e": 60, "bessel_i1": 60, "bessel_i1e": 60,
    "bessel_j0": 150, "bessel_j1": 150, "erfcx": 60, "log_ndtr": 120, "digamma": 120,
    "trigamma": 150, "erfinv": 60, "ndtri": 60, "logaddexp": 30, "logaddexp2": 30, "hypot": 20,
}  # fmt: skip
OF_COST_15 = "expm1 log1p sin cos tan tanh erf erfc asin acos atan sinh cosh"
OF_TWO = ("trigamma", "logaddexp", "logaddexp2", "hypot")  # those of two numbers
PRIMITIVES = {
    p.name: p
    for p in (
        Primitive("add", 2, NUMBERS, "{0} + {1}"),
        Primitive("sub", 2, NUMBERS, "{0} - {1}"),
        Primitive("mul", 2, NUMBERS, "{0} * {1}"),
        Primitive("div", 2, REAL, "{0} / {1}", cost=4),
        Primitive("floordiv", 2, NUMBERS, "floor_divide({0}, {1})", "floor_divide({0}, {1})", 6),
        Primitive("remainder", 2, NUMBERS, "remainder({0}, {1})", "python_remainder({0}, {1})", 6),
        Primitive("fmod", 2, NUMBERS, "fmod({0}, {1})", "c_remainder({0}, {1})", 6),
        Primitive("neg", 1, NUMBERS, "-{0}"),
        Primitive("abs", 1, NUMBERS, "abs({0})", "absolute({0})"),
        Primitive("sign", 1, NUMBERS, "sign({0})", "sign({0})", 2),
        Primitive("square", 1, NUMBERS, "{0} * {0}"),
        Primitive("reciprocal", 1, REAL, "1 / {0}", cost=4),
        Primitive("where", 3, ALL, "({1} if {0} else {2})", "({0} ? {1} : {2})"),
        Primitive("maximum", 2, ALL, "maximum({0}, {1})", "maximum({0}, {1})"),
        Primitive("minimum", 2, ALL, "minimum({0}, {1})", "minimum({0}, {1})"),
        Primitive("fmax", 2, REAL, "fmax({0}, {1})", "fmax{f}({0}, {1})"),
        Primitive("fmin", 2, REAL, "fmin({0}, {1})", "fmin{f}({0}, {1})"),
        Primitive("copysign", 2, REAL, "copysign({0}, {1})", "copysign{f}({0}, {1})"),
        Primitive("straight", 2, NUMBERS, "{0}"),  # x, a derivative of straight pieces of y
        _comparison("eq", "=="),
        _comparison("ne", "!="),
        _comparison("lt", "<"),
        _comparison("le", "<="),
        _comparison("gt", ">"),
        _comparison("ge", ">="),
        Primitive("logical_and", 2, "b", "{0} and {1}", "{0} && {1}"),
        Primitive("logical_or", 2, "b", "{0} or {1}", "{0} || {1}"),
        Primitive("logical_xor", 2, "b", "{0} != {1}"),
        Primitive("logical_not", 1, "b", "not {0}", "!{0}"),
        Primitive("and_", 2, WHOLE, "{0} & {1}"),
        Primitive("or_", 2, WHOLE, "{0} | {1}"),
        Primitive("xor", 2, WHOLE, "{0} ^ {1}"),
        Primitive("invert", 1, "iu", "~{0}"),
        Primitive("shift_left", 2, "iu", "left_shift({0}, {1})", "shift_left({0}, {1})"),
        Primitive("shift_right", 2, "iu", "right_shift({0}, {1})", "shift_right({0}, {1})"),
        Primitive("isnan", 1, REAL, "isnan({0})", "{0} != {0}", result="bool"),
        Primitive("isinf", 1, REAL, "isinf({0})", "isinf({0})", result="bool"),
        Primitive("isfinite", 1, REAL, "isfinite({0})", "isfinite({0})", 2, result="bool"),
        Primitive("floor", 1, REAL, "floor({0})", "floor{f}({0})"),
        Primitive("ceil", 1, REAL, "ceil({0})", "ceil{f}({0})"),
        Primitive("round", 1, REAL, "rint({0})", "rint{f}({0})"),  # half to even
        Primitive("trunc", 1, REAL, "trunc({0})", "trunc{f}({0})"),
        Primitive("sqrt", 1, REAL, "sqrt({0})", "sqrt{f}({0})", 4),
        Primitive("rsqrt", 1, REAL, "1 / sqrt({0})", "rsqrt{f}({0})", 8),
        Primitive("sigmoid", 1, REAL, "sigmoid({0})", "1 / (1 + exp{f}(-{0}))", 12),
        _function("pow", 40, arity=2),
        _function("atan2", 25, arity=2),
        *(_function(name, 8) for name in ("exp", "exp2", "log", "log2", "log10")),
        *(_function(name, 15) for name in OF_COST_15.split()),
        *(
            _function(name, cost, f"of_{name}", 1 + (name in OF_TWO), suffix="")
            for name, cost in STATED.items()
        ),
        Primitive("cast", 1, ALL, "cast({0})", "cast({0})", 1),
    )
}

# How values are joined by a reduction, by its name: primitive, and what it starts with.
# `fmax` leaves NaNs out, which costs a third of `max`.
JOINS = {
    "sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "fmax": "fmax",
    "any": "logical_or", "all": "logical_and",
}  # fmt: skip
CONSTANT_DIVISOR = ("floordiv", "remainder", "fmod")


def supports(op: str, type: str, divisor: object = None) -> bool:
    """Whether a primitive (or a reduction) can be computed for arguments of this type.

    divisor   the second argument where it is a constant: integers can be divided by those only
    """
    if type not in TYPES:
        return False
    family = TYPES[type].kind
    if op in JOINS:
        return (
            family == "b" if op in ("any", "all") else family in (REAL if op == "fmax" else NUMBERS)
        )
    if op not in PRIMITIVES or family not in PRIMITIVES[op].kinds:
        return False
    if op in CONSTANT_DIVISOR and family != "f":
        return isinstance(divisor, int) and not isinstance(divisor, bool) and divisor != 0
    return True


def adds(op: str) -> bool:
    """Whether a reduction is a sum.

    >>> adds("sum"), adds("prod")
    (True, False)
    """
    return JOINS.get(op) == "add"


def start_of(op: str, type: str) -> float | int | bool:
    """What a reduction begins with: x joined with it is x.

    >>> start_of("max", "float32"), start_of("min", "int8"), start_of("prod", "int64")
    (-inf, 127, 1)
    """
    if op in ("max", "min", "fmax"):
        down = op != "min"
        if TYPES[type].kind == "f":
            return float("-inf") if down else float("inf")
        bits, unsigned = TYPES[type].bits, TYPES[type].kind == "u"
        low = 0 if unsigned else -(1 << bits - 1)
        high = (1 << bits) - 1 if unsigned else (1 << bits - 1) - 1
        return low if down else high
    if op in ("any", "all"):
        return op == "all"
    one = op == "prod"
    return float(one) if TYPES[type].kind == "f" else int(one)

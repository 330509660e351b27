"""Samples of pointwise ops: one, two and three inputs, comparisons, bits and logic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.ops.samples.base import (
    INF,
    NAN,
    SPECIAL,
    S,
    Sample,
    V,
    bf16,
    binary,
    boolean,
    c64,
    c128,
    const,
    entry,
    f16,
    f32,
    f64,
    i32,
    i64,
    layouts,
    t,
    u8,
    unary,
)  # fmt: skip
from tests.oracle import names

# One input, by domain.
for _name in names(
    "neg abs exp exp2 expm1 square sin cos sinh cosh tanh asinh atan sigmoid erf erfc sign "
    "positive sgn negative absolute arctan arcsinh expit"
):
    unary(_name)
for _name in ["floor", "ceil", "trunc", "fix", "frac", "rad2deg", "deg2rad"]:
    unary(_name, exact=_name not in ("rad2deg", "deg2rad"))
unary("round", exact=True)
unary("tan", -1.4, 1.4)
for _name in ["log", "log2", "log10", "sqrt", "rsqrt", "reciprocal"]:
    unary(_name, 0.2, 4)
unary("log1p", -0.8, 4)
for _name in ["asin", "acos", "atanh", "arcsin", "arccos", "arctanh"]:
    unary(_name, -0.9, 0.9)
for _name in ("acosh", "arccosh"):
    unary(_name, 1.1, 5)
unary("erfinv", -0.9, 0.9)
unary("lgamma", 0.3, 6, slack=10)
unary("digamma", 0.3, 6, slack=10)
unary("logit", 0.1, 0.9)
unary("sinc", 0.2, 2, slack=10)
unary("i0", -2, 2, slack=10)
for _name in names("isnan isinf isfinite isposinf isneginf isreal signbit logical_not bitwise_not"):
    unary(_name, kinks=False)
unary("angle")
unary("conj_physical")
unary("resolve_conj")
unary("resolve_neg")
for _name in names(
    "relu relu6 selu silu mish softsign hardtanh hardswish hardsigmoid tanhshrink softplus "
    "elu celu leaky_relu gelu threshold"
):
    if _name not in ("softplus", "elu", "leaky_relu", "gelu", "threshold"):
        unary(_name, -4, 4)


unary("logsigmoid", -4, 4, call=lambda side: side.root.nn.functional.logsigmoid)


def _with_options(*options: dict[str, Any]) -> Any:
    def draw() -> Iterator[Sample]:
        for x in layouts(-4, 4):
            yield S(x)
        for more in options:
            yield S(t((3, 4), f64, -4, 4), **more)
            yield V(t((3, 4), f32, -4, 4), **more)
        for d in (f16, f32, i64):
            yield S(t((3, 4), d, -4, 4))
        yield Sample((const(SPECIAL),), grad=False, note="special values")
        yield Sample((const([-1.0, 0.0, 1.0]),), second=False, note="at kinks")

    return draw


entry("softplus", _with_options({"beta": 2.0}, {"beta": 0.5, "threshold": 1.5}))
entry("elu", _with_options({"alpha": 0.5}))
entry(
    "leaky_relu",
    _with_options({"negative_slope": 0.2}, {"negative_slope": 0.0}),
    covers=("straight",),
)
entry("gelu", _with_options({"approximate": "tanh"}, {"approximate": "none"}))


def _threshold() -> Iterator[Sample]:
    for x in layouts():
        yield S(x, 0.3, -7.0)
    yield V(t((3, 4), f32), 0, 20)
    yield V(t((3, 4), i64), 0, 20)


entry("threshold", _threshold)


def _polygamma() -> Iterator[Sample]:
    for n in (0, 1, 2):
        yield Sample((n, t((3, 4), f64, 0.5, 4)), second=False)
        yield V(n, t((3,), f32, 0.5, 4))


entry("polygamma", _polygamma, slack=100, forms=False)

# Two inputs.
binary("add", scalars=(2, 2.5, True, 1j), kwargs=({"alpha": 3},))
binary("sub", scalars=(2, 2.5, 1j), kwargs=({"alpha": 2},))
binary("subtract", scalars=(2, 2.5), kwargs=({"alpha": 2},))
binary("rsub", scalars=(2, 2.5), kwargs=({"alpha": 2},))
binary("mul", scalars=(2, 2.5, True, 1j))
binary("multiply")
binary("div", b=(0.5, 3), scalars=(2, 2.5, 1j), kinks=False,
       kwargs=({"rounding_mode": None}, {"rounding_mode": "trunc"},
           {"rounding_mode": "floor"}))  # fmt: skip
binary("divide", b=(0.5, 3))
binary("true_divide", b=(0.5, 3))
binary("floor_divide", b=(1, 3), scalars=(2, 2.5, -2), grad=False)
binary("remainder", b=(1, 3), scalars=(2, 2.5, -2), kinks=False)
binary("fmod", b=(1, 3), scalars=(2, 2.5, -2), kinks=False)
# From 1 on: the gradient of 0 to a complex power is NaN there and 0 here.
binary(
    "pow",
    a=(1, 3),
    b=(0, 3),
    scalars=(2, 3, 2.5, 0, 0.5, -1, 1j),
    dtypes=(u8, i32, i64, f16, bf16, f32, f64, c64),
)
binary("float_power", a=(0.3, 2), b=(0, 3), scalars=(2, 0.5))
binary("atan2", a=(0.2, 2), kinks=False)
binary("arctan2", a=(0.2, 2), kinks=False)
for _name in ("maximum", "minimum", "fmax", "fmin"):
    binary(_name, scalars=(), exact=True)
binary("hypot", scalars=())
binary("copysign", scalars=(2, -2.5), kinks=False)
binary("nextafter", scalars=(), grad=False)
binary("heaviside", scalars=(), grad=False)
binary("logaddexp", scalars=())
binary("logaddexp2", scalars=())
binary("xlogy", a=(0.2, 2), b=(0.2, 2), kinks=False)
# Where 2ᵒᵗʰᵉʳ is below 1, PyTorch's gradient for integers is 0.
binary("ldexp", b=(0, 3), scalars=(), kinks=False, dtypes=(f32, f64, i32))
for _name in names("eq ne lt le gt ge not_equal greater less greater_equal less_equal"):
    binary(_name, scalars=(0, 0.5, True), grad=False)
for _name in ["logical_and", "logical_or", "logical_xor"]:
    binary(_name, scalars=(), grad=False)
for _name in ["bitwise_and", "bitwise_or", "bitwise_xor"]:
    binary(_name, scalars=(3, True), grad=False, a=(0, 9), b=(0, 9))
for _name in ["bitwise_left_shift", "bitwise_right_shift"]:
    binary(_name, scalars=(2,), grad=False, a=(0, 9), b=(0, 3), dtypes=(u8, i32, i64))
for _name in ("gcd", "lcm"):
    binary(_name, scalars=(), grad=False, a=(-9, 9), b=(-9, 9), dtypes=(u8, i32, i64))
for _name, _symbol in (
    ("__and__", "and"), ("__or__", "or"), ("__xor__", "xor"), ("__lshift__", ""), ("__rshift__", "")
):  # fmt: skip
    binary(_name, a=(0, 9), b=(0, 3), grad=False, dtypes=(u8, i64, boolean), scalars=(1,),
           call=lambda side, n=_name: getattr(side.Tensor, n))  # fmt: skip


def _close() -> Iterator[Sample]:
    x = t((3, 4))
    yield V(x, x + 1e-9)
    yield V(x, x + 1e-3)
    yield V(x, x + 1e-3, rtol=1e-1)
    yield V(x, x + 1e-3, rtol=0.0, atol=1e-2)
    yield V(x, x[0])
    yield V(const([1.0, NAN, INF]), const([1.0, NAN, INF]))
    yield V(const([1.0, NAN, INF]), const([1.0, NAN, INF]), equal_nan=True)
    yield V(const([INF, INF]), const([INF, -INF]))
    yield V(const([1, 2, 3], i64), const([1, 2, 4], i64))
    yield V(t((3,), c128), t((3,), c128))
    yield V(t((0,)), t((0,)))
    yield V(t(()), t(()))


entry("isclose", _close)
entry("allclose", _close)


def _equal() -> Iterator[Sample]:
    x = t((3, 4))
    yield V(x, x.clone())
    yield V(x, x.t().contiguous().t())
    yield V(x, x + 1)
    yield V(x, x[0])
    yield V(const([1, 2], i64), const([1, 2], i64))
    yield V(const([NAN]), const([NAN]))
    yield V(t((0, 3)), t((0, 3)))


entry("equal", _equal)


# Three inputs, and ranges.
def _where() -> Iterator[Sample]:
    for c, a, b in (((3, 4), (3, 4), (3, 4)), ((3, 1), (4,), ()), ((), (2, 3), (3,)),
                    ((0, 3), (3,), (1, 3)), ((), (), ())):  # fmt: skip
        yield S(t(c, boolean), t(a), t(b))
    yield S(
        t((3, 4), boolean, layout="transposed"),
        t((3, 4), layout="strided"),
        t((3, 4), layout="expanded"),
    )
    yield S(t((3,), boolean), t((3,)), 2.5)
    yield S(t((3,), boolean), 1, t((3,)))
    yield V(t((3,), boolean), 1, 2)
    yield V(t((3,), boolean), 1.5, 2)
    yield V(t((3,), boolean), t((3,), f32), t((3,), i64))
    yield V(t((3,), boolean), t((3,), i32), t((), i64))
    yield V(t((3,), boolean), t((3,), boolean), 0)
    yield V(t((3, 4), boolean))


entry("where", _where)


def _clamp() -> Iterator[Sample]:
    for x in layouts():
        yield S(x, -0.5, 0.7)
    yield S(t(), min=-0.5)
    yield S(t(), max=0.5)
    yield S(t(), 0.5, -0.5)
    yield S(t((3, 4)), t((4,)), t((3, 1)))
    yield S(t((3, 4)), min=t((4,)))
    yield S(t((3, 4)), None, t(()))
    yield V(t((3, 4), i64, -9, 9), -2, 3)
    yield V(t((3, 4), i64, -9, 9), -1.5, 3)
    yield V(t((3, 4), f32), 0, 1)
    yield V(t((3, 4), u8, 0, 9), 2, 5)
    yield Sample((const(SPECIAL), -1.0, 1.0), second=False)
    yield Sample((const([-1.0, 0.0, 1.0, 2.0]), 0.0, 1.0), second=False, note="at the limits")


entry("clamp", _clamp)
entry("clip", _clamp)


def _one_limit() -> Iterator[Sample]:
    for x in layouts():
        yield S(x, 0.3)
    yield S(t((3, 4)), t((4,)))
    yield V(t((3, 4), i64, -9, 9), 2)
    yield V(t((3, 4), i64, -9, 9), 1.5)
    yield V(const(SPECIAL), 0.0)
    yield Sample((const([-1.0, 0.0, 1.0]), 0.0), second=False, note="at the limit")


entry("clamp_min", _one_limit)
entry("clamp_max", _one_limit)


def _lerp() -> Iterator[Sample]:
    yield S(t(), t(), 0.3)
    yield S(t(), t(), 0.8)
    yield S(t((3, 4)), t((4,)), t((3, 1)))
    yield S(t((3, 4), layout="transposed"), t((3, 4), layout="strided"), t())
    yield S(t(()), t(()), t(()))
    yield S(t((0, 2)), t((2,)), 0.5)
    yield S(t((3,), f32), t((3,), f32), 0.25)


entry("lerp", _lerp)


def _addc() -> Iterator[Sample]:
    yield S(t(), t(), t((3, 4), low=0.5))
    yield S(t(), t(), t((3, 4), low=0.5), value=0.3)
    yield S(t((3, 4)), t((3, 1)), t((4,), low=0.5), value=2)
    yield S(t(()), t(()), t((), low=0.5))
    yield S(t((0, 3)), t((3,)), t((1,), low=0.5))
    yield S(t((3, 4), f32), t((3, 4), f32), t((3, 4), f32, 0.5))
    yield S(
        t((3, 4), layout="strided"),
        t((3, 4), layout="transposed"),
        t((3, 4), f64, 0.5, 2, "expanded"),
    )
    yield V(t((3,), i64), t((3,), i64), t((3,), i64, 1, 3))


entry("addcmul", _addc)
entry("addcdiv", _addc)


def _nan_to_num() -> Iterator[Sample]:
    for x in layouts():
        yield S(x)
    for d in (f32, f64, f16):
        yield V(const(SPECIAL, d))
        yield V(const(SPECIAL, d), nan=3.0, posinf=10.0, neginf=-10.0)
        yield V(const(SPECIAL, d), 1.0)
    yield Sample((const(SPECIAL),), second=False)
    yield V(t((3,), i64))
    yield V(t((3,), boolean))


entry("nan_to_num", _nan_to_num, exact=True)


def _bernoulli_free_prelu() -> Iterator[Sample]:
    yield S(t((3, 4)), t((1,)))
    yield S(t((3, 4)), t((4,)))
    yield S(t((2, 3, 2)), t((3,)))


entry("prelu", _bernoulli_free_prelu)


def _glu() -> Iterator[Sample]:
    yield S(t((3, 4)))
    yield S(t((4, 3)), 0)
    yield S(t((2, 6, 2)), dim=1)


entry("glu", _glu)


def _frexp() -> Iterator[Sample]:
    for x in layouts(0.2, 9):
        yield S(x)
    yield V(t((3, 4), f32))
    yield V(t((3, 4), f16))
    yield V(const([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-310, INF, NAN]))


entry("frexp", _frexp, exact=True)

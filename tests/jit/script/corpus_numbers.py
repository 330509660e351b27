"""Programs about numbers, strings and tests."""

from __future__ import annotations

import math
from typing import Dict, List, Optional, Tuple

import toytorch as torch
import toytorch.nn.functional as F
from tests.jit.script.case import G, T, V, X, calls


@calls((7, 2), (-7, 2))
def int_arithmetic(a: int, b: int):
    return a + b, a - b, a * b, a // b, a % b, a / b, -a, abs(a)


@calls((7.5, 2.0), (-7.5, 2.0))
def float_arithmetic(a: float, b: float):
    return a + b, a - b, a * b, a // b, a % b, a / b, -a, abs(a)


@calls((7, 2.5))
def mixed_arithmetic(a: int, b: float):
    return a + b, b - a, a * b, a / b, a < b, a == b


@calls((6, 3))
def bit_arithmetic(a: int, b: int):
    return a & b, a | b, a ^ b, a << b, a >> 1, ~a


@calls((2, 3), (2, 0))
def int_power(a: int, b: int):
    return a**b


@calls((2.0, 0.5))
def float_power(a: float, b: float):
    return a**b


@calls((3, 3), (3, 4), (4, 3))
def comparisons(a: int, b: int):
    return a < b, a <= b, a == b, a != b, a > b, a >= b


@calls((1, 2, 3), (1, 3, 2), (3, 2, 1))
def chained(a: int, b: int, c: int):
    return a < b < c, a < b <= c != a


@calls((True, False), (True, True), (False, False))
def logic(a: bool, b: bool):
    return a and b, a or b, not a, a and not b or b and not a


@calls((0,), (5,), (15,))
def short_circuit(n: int):
    return n != 0 and 10 // n > 1


@calls((0, 5), (3, 5))
def either_number(a: int, b: int):
    return a or b


@calls((3,), (-3,))
def ternary(n: int):
    return n if n > 0 else -n


@calls((3,), (30,), (300,))
def nested_ternary(n: int):
    return "one" if n < 10 else "two" if n < 100 else "three"


@calls((2.7,), (-2.7,))
def conversions(x: float):
    return int(x), float(int(x)), bool(x), str(int(x)), int("12"), float("1.5")


@calls((2.7,), (-2.5,))
def rounding(x: float):
    return round(x), math.floor(x), math.ceil(x)


@calls((2.0,))
def math_functions(x: float):
    return math.sqrt(x), math.exp(x), math.log(x), math.sin(x), math.atan2(x, 1.0), math.pow(x, 3)


@calls((10, 4))
def math_integers(a: int, b: int):
    return math.gcd(a, b), math.factorial(b)


@calls((2.0,))
def math_constants(x: float):
    return x * math.pi + math.e, x < math.inf


@calls((3, 5, 4))
def extremes(a: int, b: int, c: int):
    return min(a, b), max(a, b), min(a, b, c), max(a, b, c)


@calls((2.5, 1.5))
def float_extremes(a: float, b: float):
    return min(a, b), max(a, b)


@calls((17, 5))
def quotient(a: int, b: int):
    q, r = divmod(a, b)
    return q * 100 + r


@calls((5,))
def augmented(n: int):
    n += 2
    n *= 3
    n -= 1
    n //= 2
    n %= 7
    return n


@calls((5,))
def augmented_float(n: int):
    x = 1.0
    x += n
    x *= 2.5
    x /= 4.0
    x -= 0.5
    return x


@calls(("ab", "cd"))
def string_join(a: str, b: str):
    return a + b, a * 3, a + "-" + b, ", ".join([a, b])


@calls(("Hello World",))
def string_case(s: str):
    return s.upper(), s.lower(), s.title(), s.swapcase(), s.capitalize()


@calls(("  x y ",))
def string_strip(s: str):
    return s.strip(), s.lstrip(), s.rstrip(), s.strip().split(" ")


@calls(("a,b,c",))
def string_split(s: str):
    return s.split(","), s.replace(",", ";"), s.find("b"), s.count(","), s.partition(",")


@calls(("banana",))
def string_tests(s: str):
    return s.startswith("ba"), s.endswith("x"), s.isalpha(), s.isdigit(), "nan" in s


@calls(("banana",))
def string_parts(s: str):
    return s[0], s[-1], s[1:3], s[::2], len(s)


@calls(("abc",))
def string_loop(s: str):
    out = ""
    for c in s:
        out = c + out
    return out


@calls(("a",))
def characters(s: str):
    return ord(s), chr(ord(s) + 1)


@calls((3, 2.5))
def formatted(n: int, x: float):
    return f"{n} and {x}"


@calls((3, 2.5, "z"))
def f_string(n: int, x: float, s: str):
    return f"n={n} x={x} s={s} {{}}"


@calls((3, 2.0 / 3.0))
def f_string_specs(n: int, x: float):
    return f"{x:.3f}|{n:>4d}|{n!r}"


@calls((3, "q"))
def percent(n: int, s: str):
    return "%d-%s" % (n, s), "%s!" % s


@calls(("a", "b"), ("b", "b"))
def string_compare(a: str, b: str):
    return a == b, a != b, a < b


@calls((3,), (0,))
def number_as_test(n: int):
    if n:
        return "yes"
    return "no"


@calls((0.0,), (1.5,))
def float_as_test(x: float):
    return not x


@calls((1.5, 2))
def annotated_numbers(x: float, n: int) -> float:
    y: float = x * n
    k: int = n + 1
    return y + k


@calls((1, 2))
def comment_types(a, b):
    # type: (int, int) -> int
    c = []  # type: List[int]
    c.append(a)
    return c[0] + b


@calls((True, 3))
def bools_compare(a: bool, n: int):
    return a == (n > 2), a != True  # noqa: E712


@calls((5,))
def default_argument(n: int, k: int = 3, s: str = "x"):
    return n * k, s


@calls((255,))
def bases(n: int):
    return hex(n), oct(n), bin(n)


@calls((2.0,))
def infinities(x: float):
    return x > -math.inf, float("inf") > x


@calls((4,))
def shadowing(n: int):
    x = n
    y = x
    x = x + 1
    return x, y


@calls((3, 4))
def swap(a: int, b: int):
    a, b = b, a
    return a, b


@calls((True,), (False,))
def two_kinds_apart(flag: bool):
    x = 1
    y = x + 1
    s = "a"
    if flag:
        y, s = 10, "b"
    return y, s

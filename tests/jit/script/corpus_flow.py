"""Programs about control flow."""

from __future__ import annotations

import math
from typing import Dict, List, Optional, Tuple

import toytorch as torch
import toytorch.nn.functional as F
from tests.jit.script.case import G, T, V, X, calls


@calls((3,), (-3,), (0,))
def if_else(n: int):
    if n > 0:
        s = 1
    elif n < 0:
        s = -1
    else:
        s = 0
    return s


@calls((3,), (-3,))
def early_return(n: int):
    if n < 0:
        return -1
    n = n * 2
    return n


@calls((3,), (-3,), (0,), (50,))
def many_returns(n: int):
    if n < 0:
        return "negative"
    if n == 0:
        return "zero"
    if n > 10:
        return "large"
    return "small"


@calls((1, 1), (1, -1), (-1, 1), (-1, -1))
def maybe_return(a: int, b: int):
    if a > 0:
        if b > 0:
            return 1
        a = a + 5
    else:
        if b > 0:
            return 2
    c = a * 10 + b
    return c


@calls((0,), (5,))
def loop_sum(n: int):
    s = 0
    for i in range(n):
        s += i
    return s


@calls((2, 10, 3), (10, 2, -3), (5, 5, 1))
def loop_range(a: int, b: int, c: int):
    out: List[int] = []
    for i in range(a, b, c):
        out.append(i)
    return out


@calls((2, 6))
def loop_two(a: int, b: int):
    s = 0
    for i in range(a, b):
        s = s * 10 + i
    return s


@calls((10,), (2,))
def loop_break(n: int):
    s = 0
    for i in range(n):
        if i == 4:
            break
        s += i
    return s


@calls((10,))
def loop_continue(n: int):
    s = 0
    for i in range(n):
        if i % 2 == 0:
            continue
        s += i
    return s


@calls((20,), (3,))
def loop_both(n: int):
    s = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        if i > 10:
            break
        s += i
    return s


@calls((10,), (3,))
def loop_return(n: int):
    for i in range(n):
        if i * i > 20:
            return i
    return -1


@calls((10,), (3,), (0,))
def loop_return_nested(n: int):
    for i in range(n):
        for j in range(i):
            if i * j > 20:
                return i * 100 + j
    return -1


@calls((6,))
def nested_break(n: int):
    out: List[int] = []
    for i in range(n):
        for j in range(n):
            if j > i:
                break
            if (i + j) % 2 == 0:
                continue
            out.append(i * 10 + j)
        if i == 4:
            break
    return out


@calls((27,), (1,))
def collatz(n: int):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@calls((10,), (0,))
def while_break(n: int):
    i = 0
    while True:
        if i >= n:
            break
        i += 3
    return i


@calls((10,))
def while_continue(n: int):
    i, s = 0, 0
    while i < n:
        i += 1
        if i % 2 == 1:
            continue
        s += i
    return s


@calls((10,), (100,))
def while_return(n: int):
    i = 0
    while i < 50:
        if i * i > n:
            return i
        i += 1
    return -1


@calls((48, 36))
def euclid(a: int, b: int):
    while b != 0:
        a, b = b, a % b
    return a


@calls((10,))
def fibonacci(n: int):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@calls((30,))
def primes(n: int):
    out: List[int] = []
    for i in range(2, n):
        prime = True
        for p in out:
            if p * p > i:
                break
            if i % p == 0:
                prime = False
                break
        if prime:
            out.append(i)
    return out


@calls((None,), (4,))
def optional_test(x: Optional[int]):
    if x is None:
        return 0
    return x + 1


@calls((None,), (4,))
def optional_not_none(x: Optional[int]):
    if x is not None:
        return x * 2
    else:
        return -1


@calls((None,), (4,))
def optional_default(x: Optional[int] = None):
    if x is None:
        x = 7
    return x + 1


@calls((4,))
def optional_assert(x: Optional[int]):
    assert x is not None
    return x + 1


@calls((None,), (4,), (40,))
def optional_and(x: Optional[int]):
    if x is not None and x > 10:
        return x
    return 0


@calls((None,), (4,), (40,))
def optional_or(x: Optional[int]):
    if x is None or x > 10:
        return 0
    return x


@calls((None,), (4,))
def optional_ternary(x: Optional[int]):
    return x if x is not None else -1


@calls((None, 1), (4, 1))
def optional_result(x: Optional[int], n: int) -> Optional[int]:
    if x is None:
        return None
    return x + n


@calls((3,), (0,))
def optional_local(n: int):
    best: Optional[int] = None
    for i in range(n):
        if best is None or i > best:
            best = i
    return best


@calls((None,), (T([1.0]),))
def optional_tensor(x: Optional[torch.Tensor]):
    if x is None:
        return torch.zeros(1)
    return x + 1


@calls((None,), (3,))
def optional_isinstance(x: Optional[int]):
    if isinstance(x, int):
        return x + 1
    return 0


@calls((None, 1), (3.0, 1))
def test_that_cannot_hold(x: Optional[float], n: int):
    if x is not None and not isinstance(x, float):
        n = n.nothing
    if n < 1 or isinstance(n, int):
        n += 1
    else:
        n = n.nothing
    return n


@calls((3,))
def pipe_union(x: int | None):
    if x is not None:
        return x
    return 0


@calls((5,), (-5,))
def asserts(n: int):
    assert n > -10, "too small"
    assert n < 10, f"too large: {n}"
    return n


@calls((3,), (11,))
def raises(n: int):
    if n > 10:
        raise ValueError(f"{n} is too large")
    return n


@calls((3,), (-1,))
def raises_otherwise(n: int):
    if n >= 0:
        y = n + 1
    else:
        raise RuntimeError("negative")
    return y


@calls((0,), (3,))
def raises_in_loop(n: int):
    for i in range(n):
        if i == 2:
            raise IndexError("two")
    return n


def helper(a: int, b: int = 2) -> int:
    return a * b


def chooses(a: int):
    if a > 2:
        return "big"
    return "small"


@calls((3,))
def calls_functions(n: int):
    return helper(n), helper(n, 5), helper(b=n, a=2), chooses(n)


@calls((3,))
def calls_in_loop(n: int):
    s = 0
    for i in range(n):
        s += helper(i, i)
    return s


@calls((3,))
def returns_nothing(n: int):
    n + 1


@calls((True, 3), (False, 3))
def returns_in_both(flag: bool, n: int):
    if flag:
        return n
    else:
        return n * 2


@calls((3,), (0,))
def pass_statement(n: int):
    if n > 1:
        pass
    else:
        n = 1
    for _ in range(2):
        pass
    return n


@calls((4,))
def tuple_loop(n: int):
    s = 0
    for k in (1, n, 3):
        s = s * 10 + k
    return s


@calls((4,), (1,))
def tuple_loop_return(n: int):
    for k in (1, 2, 3):
        if k >= n:
            return k
    return 99


@calls((True,), (False,))
def defined_in_both(flag: bool):
    if flag:
        a = 1
        b = "x"
    else:
        a = 2
        b = "y"
    return b, a


@calls((5,))
def loop_variable_reuse(n: int):
    i = 100
    for i in range(n):
        pass
    return i


@calls((3, True), (3, False))
def loop_conditional_return(n: int, flag: bool):
    total = 0
    for i in range(n):
        if flag:
            if i == 1:
                return total + 1000
            total += 1
        else:
            total += 10
    return total


@calls((3,), (6,))
def while_and(n: int):
    i = 0
    while i < n and i * i < 20:
        i += 1
    return i


@calls((4,))
def scripting_flag(n: int):
    if torch.jit.is_scripting():
        return n
    else:
        return n


@calls((5,), (1,))
def while_nested_return(n: int):
    i = 0
    while i < n:
        j = 0
        while True:
            j += 1
            if j > 3:
                break
            if i + j == 6:
                return i * 10 + j
        i += 1
    return -1


@calls((3,))
def deleted_name(n: int):
    x = n + 1
    y = x * 2
    del x
    return y

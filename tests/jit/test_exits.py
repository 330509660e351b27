"""return, break and continue in nested loops and branches: scripted programs do what Python does.

200 random programs (`exits.py`) in calls of several kinds, under PyTorch's `jit.script` too; set
TOYTORCH_PROGRAMS=5000 for more. A program that takes too many steps is a failure, not a hang.
"""

from __future__ import annotations

import itertools
import linecache
import os
from collections import Counter
from collections.abc import Callable
from typing import Any, Optional

import pytest

import toytorch as tt
from tests.jit import exits
from tests.jit.script.run import outcome, same
from tests.oracle import torch
from toytorch.jit import interpreter
from toytorch.jit.script.errors import CompileError, UnsupportedNodeError

COUNT = int(os.environ.get("TOYTORCH_PROGRAMS", "200"))
TOGETHER = 50
STEPS = 20_000  # blocks that a call may run
NUMBERS = itertools.count()


class TooLong(BaseException):
    """A program that does not end, it seems."""


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Counts blocks that are run; calling it begins anew."""
    count, run_block = [0], interpreter.Reader.run_block

    def counted(self: Any, *args: Any) -> Any:
        count[0] += 1
        if count[0] > STEPS:
            raise TooLong
        return run_block(self, *args)

    monkeypatch.setattr(interpreter.Reader, "run_block", counted)
    return lambda: count.__setitem__(0, 0)


def defined(m: Any, text: str) -> Any:
    """The function of a text, which can be found again as if it stood in a file."""
    name = f"<program of exits {next(NUMBERS)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {
        "torch": m,
        "Tensor": m.Tensor,
        "List": list,
        "Optional": Optional,
        "Tuple": tuple,
        "__name__": "exits",
    }
    exec(compile(text, name, "exec", dont_inherit=True), space)
    return space["f"]


def compare(
    text: str, limit: Callable[[], None], counts: Counter[str], calls: range = range(6)
) -> str:
    """Where the compiled program differs from Python and PyTorch; nothing if nowhere."""
    function = defined(tt, text)
    counts["programs"] += 1
    try:
        scripted = tt.jit.script(function)
    except CompileError as error:
        counts[str(error).split("\n")[0][:60]] += 1
        return ""
    counts["scripted"] += 1
    again = tt.jit.CompilationUnit(scripted.code).f
    ways: dict[str, Callable[..., Any]] = {
        "interpreted": lambda *args: interpreter.run(scripted.graph, args),
        "called": scripted,
        "from its code": lambda *args: interpreter.run(again.graph, args),
    }
    try:
        theirs = torch.jit.script(defined(torch, text))
    except RuntimeError:
        theirs = None
    counts["PyTorch"] += theirs is not None
    for number in calls:
        wanted = outcome(function, exits.arguments(tt, number), tt)
        if theirs is not None:
            given = outcome(theirs, exits.arguments(torch, number), torch)
            if not same(wanted[0], given[0]):  # lists are copied there, so the log stays empty
                return f"PyTorch, call {number}: {given} instead of {wanted}\n{text}"
        for way, run in ways.items():
            limit()
            got = outcome(run, exits.arguments(tt, number), tt)
            if not same(wanted, got):
                return f"{way}, call {number}: {got} instead of {wanted}\n{text}\n{scripted.graph}"
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, COUNT, TOGETHER))
def test_random_programs(first: int, limit: Callable[[], None]) -> None:
    counts: Counter[str] = Counter()
    seeds = range(first, min(first + TOGETHER, COUNT))
    found = [
        f"seed {seed}, {bad}"
        for seed in seeds
        if (bad := compare(exits.program(seed), limit, counts))
    ]
    print(dict(counts))
    assert not found, f"{len(found)} of {len(seeds)}:\n" + "\n\n".join(found[:3])
    assert counts["scripted"] >= 0.8 * counts["programs"], counts
    assert counts["PyTorch"] >= 0.8 * counts["programs"], counts


SMALL = {  # programs of f(n: int), written by hand
    "break or continue, a name set before each": """
        x = 0
        for i in range(n):
            if i > 2:
                x = 10 + i
                break
            else:
                x = i
                continue
        return x""",
    "return and break": """
        x = 0
        while True:
            x += 1
            if x > n:
                break
            if x == 3:
                return -x
        return x""",
    "break of the inner, return of the outer": """
        x = 0
        for i in range(n):
            for j in range(i):
                x += j
                if x > 4:
                    break
            else_x = x
            if else_x > 6:
                return x * 100 + i
        return x""",
    "an early return in three loops": """
        x = 0
        for i in range(n):
            for j in range(3):
                k = 0
                while k < j:
                    k += 1
                    x += k
                    if x == 7:
                        return i * 100 + j * 10 + k
        return x""",
    "continue in every branch": """
        x = 0
        for i in range(n):
            if i % 3 == 0:
                x += 1
                continue
            elif i % 3 == 1:
                x += 10
                continue
            else:
                x += 100
                continue
        return x""",
    "break in every branch": """
        x = 0
        while x < n:
            x += 1
            if x % 2 == 0:
                x += 5
                break
            else:
                x += 7
                break
        return x""",
    "return in every branch of a loop": """
        x = 5
        while n < 100:
            if n > 2:
                x = 3
                return x + n
            else:
                return x - n
        return x""",
    "a loop that never runs": """
        x = 1
        for i in range(0):
            x = 2
            if n > 0:
                return x
            break
        return x + n""",
    "nothing after a return": """
        for i in range(n):
            return i + 7
            n = 100
        return n""",
    "values change places before a continue": """
        a, b = 0, 1
        for i in range(n):
            a, b = b, a + b
            if i % 2 == 0:
                continue
            a = a * 2
            if a > 40:
                break
        return a * 1000 + b""",
    "a break under no_grad": """
        x = 0
        for i in range(n):
            with torch.no_grad():
                x += i
                if x > 3:
                    break
            x += 1
        return x""",
    "a break past a return that is not taken": """
        x = 0
        while True:
            if x > n:
                if n > 3:
                    x = x * 2
                    break
                else:
                    return x
            x += 2
        return x + 1""",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SMALL)
def test_small_programs(name: str, limit: Callable[[], None]) -> None:
    text = "def f(n: int) -> int:" + SMALL[name].replace("\n        ", "\n    ") + "\n"
    function, theirs = defined(tt, text), torch.jit.script(defined(torch, text))
    scripted = tt.jit.script(function)
    for n in range(9):
        limit()
        assert scripted(n) == function(n) == theirs(n), n
        assert interpreter.run(scripted.graph, [n]) == function(n)


def test_the_limit_stops_what_does_not_end() -> None:
    @tt.jit.script
    def forever(n: int) -> int:
        while n == n:
            n += 1
        return n

    with pytest.raises(TooLong):
        forever(1)


@pytest.mark.parametrize("loop", ["for i in range(n):", "while n > 3:"])
def test_else_of_a_loop_is_refused(loop: str) -> None:
    """As in PyTorch, whose error about `while` is a broken one."""
    body = f"    {loop}\n        n -= 1\n    else:\n        n = 0\n    return n\n"
    with pytest.raises(UnsupportedNodeError, match=r"else branches of \w+ loops aren't supported"):
        tt.jit.script(defined(tt, "def f(n: int) -> int:\n" + body))

"""Wrong programs: the class of the error, what it says, and the line and columns it points at."""

from __future__ import annotations

import linecache
import math
import re
from typing import Any, Dict, List, Optional, Tuple, Union

import pytest

import toytorch as torch
from tests.jit.script.errors import PROGRAMS
from toytorch.jit.script import FrontendError


def helper(k: int) -> int:
    return k


def test_count() -> None:
    assert len(PROGRAMS) >= 60


@pytest.mark.parametrize(("message", "marked"), PROGRAMS, ids=[p[1] for p in PROGRAMS])
def test_error(message: str, marked: str) -> None:
    text = marked.replace("«", "").replace("»", "") + "\n"
    name = f"<wrong {PROGRAMS.index([message, marked])}>"
    lines = marked.split("\n")
    line = next(i for i, s in enumerate(lines) if "«" in s)
    start, end = lines[line].index("«"), lines[line].index("»") - 1
    source = "from __future__ import annotations\n" + text
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    function = defined_at(source, name)
    with pytest.raises((RuntimeError, FrontendError)) as caught:
        torch.jit.script(function)
    shown = str(caught.value)
    assert message in shown
    assert f'File "{name}", line {line + 2}\n' in shown
    marks = re.findall(r"^( *)(~+) <--- HERE$", shown, re.M)
    assert (len(marks[-1][0]), len(marks[-1][1])) == (start, end - start), shown


def defined_at(source: str, name: str) -> Any:
    """The function f of a source."""
    space: dict[str, Any] = {
        "torch": torch,
        "List": List,
        "Dict": Dict,
        "Optional": Optional,
        "Tuple": Tuple,
        "Union": Union,
        "math": math,
        "helper": helper,
        "outside": torch.ones(1),
        "table": {"a": object()},
        "__name__": "wrong",
    }
    exec(compile(source, name, "exec", dont_inherit=True), space)
    return space["f"]


def test_lambda() -> None:
    with pytest.raises(RuntimeError, match="lambda"):
        torch.jit.script(lambda x: x)


def test_arguments() -> None:
    f = torch.jit.script(helper)
    for args, kwargs, text in (
        (
            ("a",),
            {},
            r"helper\(\) Expected a value of type 'int' for argument 'k' but instead "
            "found type 'str'",
        ),
        ((1, 2), {}, r"helper\(\) expected at most 1 argument\(s\) but received 2"),
        (
            (),
            {},
            r"helper\(\) is missing value for argument 'k'. Declaration: helper\(int k\) "
            "-> int",
        ),
    ):
        with pytest.raises(RuntimeError, match=text):
            f(*args, **kwargs)


@pytest.mark.parametrize(
    "call",
    [
        "torch.load('x')",
        "torch.serialization.os.getcwd()",
        "open('x')",
        "eval('1')",
        "torch.importlib.import_module('os')",
        "ops.aten.nothing(x)",
        "__import__('os')",
    ],
)
def test_text_runs_nothing_else(call: str) -> None:
    """Code that came as text, from a file for instance, names operations and nothing else."""
    with pytest.raises((RuntimeError, FrontendError, AttributeError)):
        torch.jit.CompilationUnit(f"def f(x):\n    return {call}")

"""The corpus under PyTorch's own `jit.script`: where it takes a program, the results are ours."""

from __future__ import annotations

import inspect
import linecache
import math
import textwrap
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import pytest

import toytorch
from tests.jit.script import corpus_containers, corpus_flow, corpus_tensors
from tests.jit.script.corpus import CASES, carried
from tests.jit.script.run import outcome, same

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is absent")

# What PyTorch gives otherwise than Python does, or takes otherwise.
DIFFERENT = {
    "int_power": "an integer power is a float there",
    "rounding": "round gives a float there",
    "mixed_scalars": "x ** k",
    "either_number": "`or` gives a bool there",
    "raises": "errors are torch.jit.Error there",
    "raises_otherwise": "so",
    "raises_in_loop": "so",
    "f_string": "floats are formatted otherwise there",
    "formatted": "so",
    "conversions": "so",
    "comprehension_scope": "",
}


def for_torch(name: str) -> Any:
    """The function's own text, defined with PyTorch as `torch`."""
    text = textwrap.dedent(inspect.getsource(CASES[name].function))
    text = text[text.index("def ") :]
    file = f"<corpus {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space: dict[str, Any] = {
        "torch": torch,
        "F": torch.nn.functional,
        "math": math,
        "List": List,
        "Dict": Dict,
        "Optional": Optional,
        "Tuple": Tuple,
        "NamedTuple": NamedTuple,
        "__name__": "corpus",
    }
    for module in (corpus_flow, corpus_tensors, corpus_containers):
        for helper in ("helper", "chooses", "scaled"):
            if hasattr(module, helper):
                define(inspect.getsource(getattr(module, helper)), f"<{helper}>", space)
    define(text, file, space)
    return space[name]


def define(text: str, file: str, space: dict[str, Any]) -> None:
    """Runs a text whose source PyTorch can find again."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec", dont_inherit=True), space)


@pytest.mark.filterwarnings("ignore")
def test_corpus() -> None:
    """One test, since most of the time is PyTorch's start; it takes at least 120 programs."""
    taken, wrong = 0, []
    for name, case in CASES.items():
        if name in DIFFERENT:
            continue
        try:
            theirs = torch.jit.script(for_torch(name))
        except Exception:
            continue  # PyTorch does not take it
        ours = toytorch.jit.script(case.function)
        taken += 1
        for call in case.calls:
            wanted = outcome(theirs, carried(call, torch), torch)
            got = outcome(ours, carried(call, toytorch), toytorch)
            failed = len(wanted) == 2  # an error: its class and text
            if len(got) != len(wanted) or not (failed or same(wanted[:2], got[:2])):
                wrong.append((name, call, wanted[:2], got[:2]))
    assert not wrong, "\n".join(map(str, wrong))
    assert taken >= 120, taken

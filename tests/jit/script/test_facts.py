"""What a program asks of a value: its class, and what a tensor knows of itself."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import pytest

import toytorch as tt
from tests.jit.script.run import plain
from tests.oracle import torch

NUMBERS = itertools.count()
ASKED = {  # type: values
    "List[int]": [[1, 2]],
    "Tuple[float]": [(1.0,)],
    "int": [1],
    "bool": [True],
    "float": [1.0],
    "str": ["a"],
    "Dict[str, int]": [{"a": 1}],
    "Optional[List[int]]": [[1], None],
    "Optional[Dict[str, int]]": [{"b": 2}, None],
    "Optional[int]": [3, None],
    "Optional[Tuple[int, int]]": [(1, 2), None],
    "Tensor": ["tensor"],
}
CLASSES = (
    "list",
    "tuple",
    "dict",
    "int",
    "float",
    "str",
    "Tensor",
    "(list, tuple)",
    "(int, (float,), list, str)",
    "(float, dict)",
)


def scripted(m: Any, text: str) -> tuple[Any, Any]:
    """A function of a text, and its compiled form."""
    name = f"<facts {next(NUMBERS)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"torch": m, "Tensor": m.Tensor, "__name__": "facts"}
    exec(compile("from typing import *\n" + text, name, "exec", dont_inherit=True), space)
    linecache.cache[name] = (len(text), None, ("\n" + text).splitlines(True), name)
    return space["f"], m.jit.script(space["f"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ASKED)
def test_isinstance(kind: str) -> None:
    for asked in CLASSES:
        if kind == "bool" and "int" in asked:
            continue  # a bool is no int there
        text = f"""def f(x: {kind}) -> int:
    if isinstance(x, {asked}):
        return 1
    if not isinstance(x, {asked}):
        return 2
    return 3
"""
        f, mine = scripted(tt, text)
        theirs = None if "dict" in asked else scripted(torch, text)[1]  # it knows no `dict`
        for value in ASKED[kind]:
            x, y = (m.ones(2) if value == "tensor" else value for m in (tt, torch))
            assert mine(x) == f(x), (asked, value)
            assert theirs is None or theirs(y) == f(x), (asked, value)


TENSORS = {
    "a leaf": lambda m: m.ones(3),
    "a parameter": lambda m: m.ones(3, requires_grad=True),
    "a result": lambda m: m.ones(3, requires_grad=True) * 2,
    "with a gradient": lambda m: with_gradient(m),
}


def with_gradient(m: Any) -> Any:
    x = m.ones(3, requires_grad=True)
    (x * m.arange(3.0)).sum().backward()
    return x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize(
    "asked",
    [
        "x.data",
        "x.is_leaf",
        "x.grad",
        "x.requires_grad",
        "(x * 2).is_leaf",
        "(x * 2).requires_grad",
        "x.detach().requires_grad",
        "(x.data * x).sum()",
        "x.data.is_leaf",
    ],
)
def test_attributes(name: str, asked: str) -> None:
    text = f"def f(x):\n    return {asked}\n"
    (f, mine), (_, theirs) = (scripted(m, text) for m in (tt, torch))
    for _ in range(2):
        seen = []
        for m, call in ((tt, f), (tt, mine), (torch, theirs)):
            x = TENSORS[name](m)
            out = call(x)
            needs = getattr(out, "requires_grad", None)
            if needs and out.ndim == 0 and x.is_leaf:
                out.backward()
            seen.append(
                [
                    v.tolist() if isinstance(v, m.Tensor) else plain(v, m)
                    for v in (out, needs, x.grad if x.is_leaf else None)
                ]
            )
        assert seen[0] == seen[1] == seen[2]


def test_a_program_that_seeds() -> None:
    def f(n: int) -> tt.Tensor:
        tt.manual_seed(n)
        return tt.rand(2) + tt.rand(2)

    made = tt.jit.script(f)
    for n in (2, 2, 3, 2):
        assert made(n).tolist() == f(n).tolist()


@pytest.mark.parametrize(
    "values",
    [
        (0.0, -0.0, 0.0),
        (-0.0, 0.0),
        (1.0, True, 1, 1.0),
        (float("nan"), float("nan"), 2.0),
        (0j, complex(0, -0.0)),
    ],
)
def test_numbers_that_are_equal_and_not_the_same(values: tuple[Any, ...]) -> None:
    """A plan is made for a number; 0.0 == -0.0 and 1 == True, but they are others."""
    kind = {complex: "complex", float: "float"}[type(values[0])]
    f, made = scripted(tt, f"def f(x, n: {kind}):\n    return torch.full((2,), n) * x\n")
    held = {"n": values[0]}

    def with_closure(x: Any) -> Any:
        return tt.full((2,), held["n"]) * x

    compiled = tt.compile(with_closure)
    for n in values:
        if type(n) is type(values[0]):
            assert repr(made(tt.ones(2), n)) == repr(f(tt.ones(2), n))
        held["n"] = n
        assert repr(compiled(tt.ones(2))) == repr(with_closure(tt.ones(2)))

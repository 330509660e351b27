"""Random expressions over C's numbers: the emulator and g++ agree to the last bit."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from toytorch.cuda import kernel

TYPES = {"int": np.int32, "unsigned": np.uint32, "long long": np.int64, "short": np.int16,
         "unsigned char": np.uint8, "float": np.float32, "double": np.float64}  # fmt: skip
NAMES = dict(zip(TYPES, "iulscfd"))
WHOLE, FLOATING = ("int", "unsigned", "long long", "short", "unsigned char"), ("float", "double")
ROWS = 64


def whole(depth: int) -> st.SearchStrategy[str]:
    leaf = st.one_of(
        st.sampled_from([NAMES[t] for t in WHOLE]),
        st.sampled_from(["1", "7u", "-3", "0x80000000", "255", "12345678901ll", "'a'"]),
    )
    if not depth:
        return leaf
    less, few = whole(depth - 1), floating(depth - 1)
    sides = st.tuples(less, less)
    return st.one_of(
        leaf,
        st.builds(lambda o, p: f"({p[0]} {o} {p[1]})", st.sampled_from("+-*&|^"), sides),
        st.builds(lambda o, p: f"({p[0]} {o} {p[1]})", st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), sides),
        st.builds(lambda o, p: f"({p[0]} {o} {p[1]})", st.sampled_from(["&&", "||"]), sides),
        # C leaves shifts by more than the width and divisions by zero open.
        st.builds(lambda o, p: f"({p[0]} {o} ({p[1]} & 31))", st.sampled_from(["<<", ">>"]), sides),
        st.builds(lambda o, p: f"({p[0]} {o} (({p[1]} & 7) + 2))", st.sampled_from("/%"), sides),
        st.builds(lambda o, p: f"({p[0]} {o} -(({p[1]} & 7) + 2))", st.sampled_from("/%"), sides),
        st.builds(lambda o, e: f"({o} {e})", st.sampled_from("-~!+"), less),
        st.builds(lambda t, e: f"({t})({e})", st.sampled_from(WHOLE), less),
        st.builds(lambda c, p: f"({c} ? {p[0]} : {p[1]})", less, sides),
        # and what a float beyond the range becomes
        st.builds(lambda e: f"(int)fmaxf(fminf({e}, 9e8f), -9e8f)", few),
        st.builds(lambda o, p: f"({p[0]} {o} {p[1]})", st.sampled_from(["<", ">=", "=="]), st.tuples(few, few)),
    )  # fmt: skip


def floating(depth: int) -> st.SearchStrategy[str]:
    leaf = st.one_of(
        st.sampled_from([NAMES[t] for t in FLOATING]),
        st.sampled_from(["1.5f", "0.1", "-2.f", ".25", "1e10f", "3e-3"]),
    )
    if not depth:
        return leaf
    less, numbers = floating(depth - 1), whole(depth - 1)
    return st.one_of(
        leaf,
        st.builds(lambda o, a, b: f"({a} {o} {b})", st.sampled_from("+-*/"), less, less),
        st.builds(lambda o, a, b: f"({a} {o} {b})", st.sampled_from("+-*"), less, numbers),
        st.builds(lambda e: f"(- {e})", less),
        st.builds(lambda t, e: f"({t})({e})", st.sampled_from(FLOATING), st.one_of(less, numbers)),
        st.builds(lambda c, a, b: f"({c} ? {a} : {b})", numbers, less, less),
        st.builds(lambda e: f"sqrtf({e})", less),
        st.builds(lambda a, b: f"fmaxf({a}, {b})", less, less),
        st.builds(lambda e: f"floor((double){e})", less),
        st.builds(lambda e: f"fabs((double){e})", less),
    )


def inputs() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    found: dict[str, Any] = {}
    for name, dtype in TYPES.items():
        if np.issubdtype(dtype, np.integer):
            limits = np.iinfo(dtype)
            some = rng.integers(limits.min, limits.max, ROWS, dtype, endpoint=True)
            some[:4] = limits.min, limits.max, 0, 1
            some[4:20] = rng.integers(0, 100, 16)
        else:
            some = (rng.standard_normal(ROWS) * 10.0 ** rng.integers(-3, 6, ROWS)).astype(dtype)
            some[:4] = 0, 1, -1, 0.5
        found[name] = some
    return found


def program(expressions: list[tuple[str, str]], head: str) -> str:
    """A function that writes the value of each expression, as its type, beside the others."""
    parameters = ", ".join(f"const {t}* p{name}" for t, name in NAMES.items())
    results = ", ".join(f"{t}* out{k}" for k, (t, _) in enumerate(expressions))
    loads = "\n".join(f"    {t} {name} = p{name}[row];" for t, name in NAMES.items())
    stores = "\n".join(f"    out{k}[row] = {e};" for k, (_, e) in enumerate(expressions))
    return f"{head}({parameters}, {results}) {{\n    ROW\n{loads}\n{stores}\n    END\n}}\n"


EXPRESSION = st.one_of(
    st.tuples(st.sampled_from(("int", "unsigned", "long long")), whole(3)),
    st.tuples(st.sampled_from(FLOATING), floating(3)),
)


@pytest.mark.skipif(shutil.which("g++") is None, reason="the expressions are compared with g++")
@given(st.lists(EXPRESSION, min_size=30, max_size=60))
@settings(max_examples=12, phases=[Phase.generate])  # to shrink would compile for minutes
def test_expressions_agree_with_a_compiler(
    tmp_path_factory: pytest.TempPathFactory, expressions: list[tuple[str, str]]
) -> None:
    given_arrays = inputs()
    theirs = [np.zeros(ROWS, TYPES[t]) for t, _ in expressions]
    ours = [np.zeros(ROWS, TYPES[t]) for t, _ in expressions]
    by_compiler(expressions, [*given_arrays.values(), *theirs], tmp_path_factory.mktemp("c"))
    source = program(expressions, 'extern "C" __global__ void f')
    source = source.replace("ROW", "int row = threadIdx.x;").replace("END", "")
    kernel(source)[1, ROWS](*given_arrays.values(), *ours)
    for (type, expression), mine, wanted in zip(expressions, ours, theirs):
        np.testing.assert_array_equal(mine, wanted, f"{type} = {expression}")


def by_compiler(expressions: list[tuple[str, str]], arrays: list[Any], folder: Path) -> None:
    source = program(expressions, '#include <cmath>\nusing namespace std;\nextern "C" void f')
    source = source.replace("ROW", f"for (int row = 0; row < {ROWS}; ++row) {{").replace("END", "}")
    (folder / "f.cpp").write_text(source)
    words = ["g++", "-O0", "-w", "-fwrapv", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run([*words, "-o", folder / "f.so", folder / "f.cpp"], check=True)
    function = ctypes.CDLL(str(folder / "f.so")).f
    function(*[ctypes.c_void_p(a.ctypes.data) for a in arrays])

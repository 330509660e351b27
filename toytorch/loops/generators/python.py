"""A Nest as Python: what a learner reads, and what runs the loops element by element.

>>> from toytorch.loops.schedule.layout import Layout
>>> from toytorch.loops.language.program import Program
>>> from toytorch.loops.schedule.build import schedule
>>> p = Program.parse("p[i], g[i], lr -> p[i]\\n p = p - lr * g")
>>> flat = Layout("flat", (("i",),), (False,), ("1",) * 3, ((0, 1),), ("p_1", "p", "g"))
>>> print(python_source(schedule(p, flat)))
def kernel(p_1, p, g, lr, lo, hi):
    size = hi - lo
    for j in range(size):
        p_0 = p[lo + j]
        g_0 = g[lo + j]
        a_0 = lr * g_0
        p_1_0 = p_0 - a_0
        p_1[lo + j] = p_1_0
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from toytorch.facts.hints import Fn
from toytorch.loops.language import functions
from toytorch.loops.language.primitives import PRIMITIVES
from toytorch.loops.language.steps import Argument
from toytorch.loops.language.types import TYPES, computed
from toytorch.loops.schedule.layout import span
from toytorch.loops.schedule.nest import (
    For,
    Let,
    Load,
    Nest,
    Statement,
    Store,
    Update,
    Var,
    place_text,
)

INDEX = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "quotient": "{0} // {1}",
    "rest": "{0} % {1}", "minimum": "min({0}, {1})",
}  # fmt: skip


def parameters(nest: Nest) -> list[str]:
    """The parameters of a generated kernel: arrays, scalars, sizes that are used, and the range."""
    used = str(nest)
    sizes = [f"n{a}" for a in range(len(nest.axes)) if f"n{a}" in used]
    return (
        [b.name for b in nest.buffers if b.axes != (-1,)]
        + [n.name for n in nest.scalars]
        + [*sizes, *(f"size_{d}" for d in nest.extents), "lo", "hi"]
    )


def python_source(nest: Nest) -> str:
    """The source of a function `kernel(arrays..., scalars..., sizes..., lo, hi)`."""
    lines = [f"def kernel({', '.join(parameters(nest))}):"]
    for b in nest.buffers:
        if b.axes == (-1,):
            size = " * ".join(map(str, b.size))
            lines.append(f"    {b.name} = empty({size}, {b.type!r})")
    return "\n".join([*lines, *_lines(nest, nest.body, 1)])


def _lines(nest: Nest, body: tuple[Statement, ...], depth: int) -> Iterator[str]:
    types = {b.name: b.type for b in nest.buffers}
    for s in body:
        margin = "    " * depth
        if isinstance(s, For):
            span = (
                f"{s.start}, {s.stop}, {s.step}"
                if s.step != 1
                else (f"{s.start}, {s.stop}" if s.start != 0 else f"{s.stop}")
            )
            yield f"{margin}for {s.index} in range({span}):"
            yield from _lines(nest, s.body, depth + 1)
        elif isinstance(s, Let):
            yield f"{margin}{s.name} = {_expression(s)}"
        elif isinstance(s, Load):
            element = f"{s.buffer}[{place_text(s.place)}]"
            wide = types[s.buffer] != s.type
            yield f"{margin}{s.name} = {f'{s.type}({element})' if wide else element}"
        elif isinstance(s, Store):
            yield f"{margin}{s.buffer}[{place_text(s.place)}] = {_constant(s.value)}"
        elif isinstance(s, Var):
            yield f"{margin}{s.name} = {s.type}({_constant(s.start)})"
        elif isinstance(s, Update):
            joined = PRIMITIVES[s.op].python.format(s.name, _constant(s.value))
            yield f"{margin}{s.name} = {joined}"


def _constant(value: Argument) -> str:
    return value if isinstance(value, str) else repr(value)


def _expression(s: Let) -> str:
    args = [_constant(a) for a in s.args]
    if s.type == "index":
        return INDEX[s.op].format(*args)
    if s.op == "cast":
        return f"{s.type}({args[0]})"
    return PRIMITIVES[s.op].python.format(*args)


def python_function(nest: Nest) -> Fn:
    """The function of the source, over views of the arrays with one dimension for each axis."""
    source = python_source(nest)
    table: dict[str, Any] = dict(functions.FUNCTIONS)
    for name in TYPES:
        if name != "index" and computed(name) == name:
            table[name] = functions.converter(name)
    exec(compile(source, "<kernel>", "exec"), table)  # text of our own making
    function = table["kernel"]

    def run(*args: object) -> None:
        with np.errstate(all="ignore"):
            function(*args)

    run.__doc__ = source
    return run


def axis_views(nest: Nest, arrays: list[Any], sizes: dict[str, int]) -> list[Any]:
    """The arrays as the generated kernel wants them: one dimension for each axis they vary over."""
    views = []
    for buffer, record, array in zip(nest.buffers, nest.arrays, arrays):
        own = {
            d: step if n != 1 else 0 for d, n, step in zip(record.dims, array.shape, array.strides)
        }
        spans = [span(nest.axes[axis], sizes, own) or (0, 0) for axis in buffer.axes]
        views.append(
            np.lib.stride_tricks.as_strided(
                array, [n for n, _ in spans], [step for _, step in spans]
            )
        )
    return views

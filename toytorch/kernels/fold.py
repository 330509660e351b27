"""Reductions that records state as formulas (`fused`), over any dimensions.

The same lines that compiled functions are fused from become one kernel here, where NumPy would make
an array of each intermediate value: a variance is `d = self - sum(self) / count; sum(d * d) / …`.
"""

from __future__ import annotations

import ast
import copy
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.kernels.copy import in_rows
from toytorch.kernels.reduce import grouped
from toytorch.loops import Recipe
from toytorch.loops.formula import CONSTANTS, Formula
from toytorch.loops.language.primitives import JOINS
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.kernel import laid

LETTERS = "abcdefgh"  # one for each group of dimensions that lie together


def folded(
    text: str,
    arrays: Mapping[str, Array | None],
    numbers: Mapping[str, Any],
    over: tuple[int, ...] | None = None,
    keepdim: bool = False,
    whole: bool = False,
) -> Any:
    """What the lines of `text` make of arrays of one shape, or None.

    numbers  the other names of the text; `count`, the elements that are reduced, is known
    over     the dimensions along which `sum(x)` and its kin go; all if nothing is said
    whole    whether the result has an element for each of the operands', as a softmax

    >>> x = np.arange(8192.0).reshape(2, 4096)
    >>> folded("d = x - sum(x) / count; sum(d * d) / count", {"x": x}, {}, (1,))
    array([1398101.25, 1398101.25])
    """
    given = {name: a for name, a in arrays.items() if a is not None}
    first, *others = values = given.values()
    kind, shape, known = first.dtype, first.shape, tuple(numbers.items())
    if kind.char not in "fd" or not first.size or not jit.works():
        return None
    for a in others:
        if a.dtype != kind or a.shape != shape:
            return None
    if len(given) < len(arrays):
        known += tuple([(name, None) for name, a in arrays.items() if a is None])
    plan = planned(text, tuple(given), kind.char, shape, over, keepdim, whole, known)
    if plan is None:
        return None
    kept, run = plan
    made = np.empty(kept, kind)
    run(made, *map(in_rows, values))
    return made


@functools.lru_cache(1024)
def planned(
    text: str,
    names: tuple[str, ...],
    kind: str,
    shape: tuple[int, ...],
    over: tuple[int, ...] | None,
    keepdim: bool,
    whole: bool,
    numbers: tuple[tuple[str, Any], ...],
) -> tuple[tuple[int, ...], Any] | None:
    """The shape of the result, and the kernel as a call of it and the arrays."""
    gone = set(range(len(shape)) if over is None else over)
    pattern, sizes = grouped(shape, gone)
    if len(pattern) > len(LETTERS):
        return None
    recipe, used = recipe_of(text, names, pattern, whole, numbers)
    values = {**dict(numbers), "count": math.prod(shape[d] for d in gone)}
    left = [n for letter, n in zip(pattern, sizes) if whole or letter == "k"]
    arrays = [np.empty(left, kind), *(np.empty(sizes, kind) for _ in names)]
    run = laid(recipe, *arrays, numbers=tuple([float(values[name]) for name in used])).quick
    if whole:
        return shape, run
    kept = [1 if d in gone else n for d, n in enumerate(shape) if keepdim or d not in gone]
    return tuple(kept), run


@functools.lru_cache(1024)
def recipe_of(
    text: str,
    arrays: tuple[str, ...],
    pattern: str,
    whole: bool,
    numbers: tuple[tuple[str, Any], ...],
) -> tuple[Recipe, list[str]]:
    """The program of a text, and the numbers that it takes; conditions on these are decided."""
    formula = Formula(text.replace(";", "\n"), arrays)
    # That there is an array may be asked (`weight is None`), its elements not.
    known = {**CONSTANTS, **dict.fromkeys(arrays, ...), **dict(numbers), "count": math.inf}
    dims = LETTERS[: len(pattern)]
    over = [d for d, letter in zip(dims, pattern) if letter == "s"]
    lines = [
        (name or "result", ast.unparse(Along(over).visit(copy.deepcopy(tree))))
        for name, tree in formula.straight(known)[1]
    ]
    own = {name for name, _ in lines} | {*arrays, *CONSTANTS}
    trees = [ast.parse(line) for _, line in lines]
    used = dict.fromkeys(n.id for t in trees for n in ast.walk(t) if isinstance(n, ast.Name))
    names = [n for n in used if n in known and n not in own]
    left = dims if whole else [d for d, letter in zip(dims, pattern) if letter == "k"]
    head = ", ".join([*(f"{name}[{','.join(dims)}]" for name in arrays), *names])
    body = "\n".join(f" {name} = {line}" for name, line in lines)
    return Recipe(f"{head} -> result[{','.join(left)}]\n{body}"), names


class Along(ast.NodeTransformer):
    """`sum(x)` becomes `sum[a](x)`: the dimensions are said."""

    def __init__(self, over: list[str]) -> None:
        self.over = over

    def visit_Call(self, tree: ast.Call) -> Any:
        self.generic_visit(tree)
        if isinstance(tree.func, ast.Name) and tree.func.id in JOINS and len(tree.args) == 1:
            dims: list[ast.expr] = [ast.Name(d, ast.Load()) for d in self.over]
            index = dims[0] if len(dims) == 1 else ast.Tuple(dims, ast.Load())
            tree.func = ast.Subscript(tree.func, index, ast.Load())
        return tree

"""A formula as one kernel on a GPU, where CuPy's functions would be a kernel for each operation.

>>> from toytorch.loops.formula import Formula
>>> kernel = OneKernel(Formula("x * sigmoid(slope * x)", ["x"]), ["x", "slope"])
>>> print(kernel.program("float32", (("x", ("d0", "d1"), "float32"),), ("slope",), ("d0", "d1"), {}))
x[d0,d1] float32, slope float32 -> made[d0,d1] float32
    a[d0,d1] float32 = mul(slope, x)
    b[d0,d1] float32 = sigmoid(a)
    made[d0,d1] float32 = mul(x, b)
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.facts.hints import ArrayModule
from toytorch.loops.formula import Formula, Renamed, names_in, safe
from toytorch.loops.language.program import Program
from toytorch.loops.language.steps import Unsupported
from toytorch.loops.runtime import cuda

TYPES = ("float32", "float64")
Operand = tuple[str, tuple[str, ...], str]


def empty(xp: ArrayModule, shape: tuple[int, ...], type: str, operands: list[Any]) -> Any:
    """Memory for a result, in the order of the first operand of its shape."""
    first = next((a for a in operands if a.shape == shape), None)
    if first is None or first.flags.c_contiguous or 0 in first.strides:
        return xp.empty(shape, type)
    order = sorted(range(len(shape)), key=lambda d: -abs(first.strides[d]))
    back = sorted(range(len(shape)), key=order.__getitem__)
    return xp.empty([shape[d] for d in order], type).transpose(back)


class OneKernel:
    """A formula whose operands are arrays of CuPy, of any strides and shapes that broadcast.

    A call gives the result (in `out`, where that is given), or None where CuPy's functions have to do
    it: for other types than float32 and float64 beside masks, operands that differ in type.
    """

    def __init__(self, formula: Formula, params: Sequence[str]) -> None:
        self.formula, self.params = formula, tuple(params)
        self.programs: dict[Any, Program | None] = {}
        # Numbers that a condition asks for are part of the program; the rest are its scalars.
        tests = [
            n.test
            for tree in formula.trees
            for n in ast.walk(tree)
            if isinstance(n, ast.IfExp) and not formula.varies(n.test)
        ]
        self.asked = {name for test in tests for name in names_in(test)}

    def __call__(self, xp: ArrayModule, *args: object, out: Any = None) -> Any:
        arrays: dict[str, Any] = {}
        numbers: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, a in zip(self.params, args):
            if isinstance(a, xp.ndarray):
                arrays[name] = a
            elif isinstance(a, (bool, int, float, np.number)) and not isinstance(
                a, np.complexfloating
            ):
                numbers[name] = a
            else:
                others[name] = a
        kinds = {a.dtype.name for a in arrays.values()} - {"bool"}
        if len(kinds) != 1 or not kinds <= set(TYPES):
            return None
        kind = kinds.pop()
        shapes = {a.shape for a in arrays.values()}
        shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
        if out is not None and (out.shape != shape or out.dtype.name != kind):
            return None
        dims = tuple(f"d{k}" for k in range(len(shape)))
        operands = tuple((n, dims[len(dims) - a.ndim :], a.dtype.name) for n, a in arrays.items())
        asked = tuple((n, v) for n, v in numbers.items() if n in self.asked)
        key = operands, tuple(numbers), asked, tuple(others.items())
        if key not in self.programs:
            given = dict(zip(self.params, args))
            self.programs[key] = self.program(kind, operands, tuple(numbers), dims, given)
        program = self.programs[key]
        if program is None:
            return None
        made = empty(xp, shape, kind, list(arrays.values())) if out is None else out
        if made.size:
            try:
                cuda.run(xp, program, made, *arrays.values(), *numbers.values())
            except Unsupported:  # elements that are not aligned
                return None
        return made

    def program(
        self,
        type: str,
        operands: tuple[Operand, ...],
        numbers: tuple[str, ...],
        dims: tuple[str, ...],
        given: dict[str, Any],
    ) -> Program | None:
        """The formula as a program; None where the result is of another type than the operands, or
        where something else than arrays and numbers comes into it."""
        lines = self.formula.straight(given)[1]
        text = "\n".join(
            f"{safe(n) if n else 'made'} = {ast.unparse(Renamed().visit(copy.deepcopy(e)))}"
            for n, e in lines
        )
        inputs = [f"{safe(n)}[{','.join(over)}] {kind}" for n, over, kind in operands]
        scalars = [f"{safe(n)} {type}" for n in numbers]
        head = f"{', '.join([*inputs, *scalars])} -> made[{','.join(dims)}]"
        try:
            return Program.parse(f"{head}\n{text}", type)
        except (TypeError, NameError):
            return None

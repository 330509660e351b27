"""A formula as one kernel on a GPU, where CuPy's functions would be a kernel for each operation.

>>> from toytorch.loops.formula import Formula
>>> kernel = OneKernel(Formula("x * sigmoid(slope * x)", ["x"]), ["x", "slope"])
>>> print(kernel.program((("x", ("d0", "d1"), "float32"),), ("slope",), ("d0", "d1"), {}))
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


class OneKernel:
    """A formula whose operands are arrays of CuPy, of any strides and shapes that broadcast.

    A call gives the result, or None where CuPy's functions have to do it: for other types than
    float32 and float64, operands that differ in type.
    """

    def __init__(self, formula: Formula, params: Sequence[str]) -> None:
        self.formula, self.params = formula, tuple(params)
        self.programs: dict[Any, Program | None] = {}

    @staticmethod
    def serves(formula: Formula) -> bool:
        """Whether a kernel of its own is better than CuPy's functions one by one."""
        return formula.known and (len(formula.primitives) > 1 or bool(formula.lines))

    def __call__(self, xp: ArrayModule, *args: object) -> Any:
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
        kinds = {a.dtype.name for a in arrays.values()}
        if len(kinds) != 1 or not kinds <= set(TYPES):
            return None
        shape = np.broadcast_shapes(*(a.shape for a in arrays.values()))
        dims = tuple(f"d{k}" for k in range(len(shape)))
        operands = tuple((n, dims[len(dims) - a.ndim :], a.dtype.name) for n, a in arrays.items())
        # Numbers that a condition asks for are part of the program; the rest are its scalars.
        asked = self.asked(numbers)
        key = operands, tuple(numbers), tuple(sorted(asked.items())), tuple(others.items())
        if key not in self.programs:
            given = dict(zip(self.params, args))
            self.programs[key] = self.program(operands, tuple(numbers), dims, given)
        program = self.programs[key]
        if program is None:
            return None
        made = xp.empty(shape, kinds.pop())
        if made.size:
            try:
                cuda.run(xp, program, made, *arrays.values(), *numbers.values())
            except Unsupported:  # elements that are not aligned
                return None
        return made

    def asked(self, numbers: dict[str, Any]) -> dict[str, Any]:
        """The numbers on whose values conditions depend."""
        tests = [
            n.test
            for tree in self.formula.trees
            for n in ast.walk(tree)
            if isinstance(n, ast.IfExp) and not self.formula.varies(n.test)
        ]
        names = {name for test in tests for name in names_in(test)}
        return {n: v for n, v in numbers.items() if n in names}

    def program(
        self,
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
        type = operands[0][2]
        inputs = [f"{safe(n)}[{','.join(over)}] {kind}" for n, over, kind in operands]
        scalars = [f"{safe(n)} {type}" for n in numbers]
        head = f"{', '.join([*inputs, *scalars])} -> made[{','.join(dims)}]"
        try:
            return Program.parse(f"{head}\n{text}", type)
        except (TypeError, NameError):
            return None

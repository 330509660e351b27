"""An optimizer's rule as text: one compiled pass over large arrays, NumPy for the others."""

from __future__ import annotations

import ast
from typing import Any

from toytorch.backends import base
from toytorch.loops.elementwise import Loop


class _Choices(ast.NodeTransformer):
    """`a if x > y else b` as where(x > y, a, b), which NumPy can do for whole arrays."""

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        parts = [self.visit(n) for n in (node.test, node.body, node.orelse)]
        return ast.copy_location(ast.Call(ast.Name("where", ast.Load()), parts, []), node)


class Rule:
    """Assignments for every element of equally shaped arrays, in the language of `backends.loop`.

    >>> import numpy as np
    >>> step = Rule("p = p - lr * g", "p g", "lr")
    >>> p = np.ones(2, "float32"); step(p, np.ones(2, "float32"), 0.5); p
    array([0.5, 0.5], dtype=float32)
    """

    def __init__(self, text: str, arrays: str, numbers: str = "") -> None:
        self.loop = Loop(text, arrays, numbers)
        self.names = [*self.loop.arrays, *self.loop.numbers]
        self.lines: list[tuple[str, Any]] = []
        for line in ast.parse(text).body:
            assert isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
            value = ast.fix_missing_locations(ast.Expression(_Choices().visit(line.value)))
            self.lines.append((line.targets[0].id, compile(value, text, "eval")))

    def __call__(self, *args: Any) -> None:
        """Runs the rule: arrays in the order of the call, then the numbers."""
        if self.loop(*args):
            return
        xp = base.of_array(args[0]).xp
        table = {"sqrt": xp.sqrt, "maximum": xp.maximum, "where": xp.where}
        values = dict(zip(self.names, args))
        for name, code in self.lines:
            values[name] = eval(code, table, values)  # text of a rule, not a user's
        for name, array in zip(self.loop.arrays, args):
            if values[name] is not array:
                array[...] = values[name]

"""An optimizer's rule as text: one compiled pass over large arrays, NumPy for the others."""

from __future__ import annotations

import ast
import itertools
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from toytorch.backends import base, generic
from toytorch.core.formulas import of_tensors
from toytorch.core.op import Late
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array
from toytorch.loops.elementwise import Loop
from toytorch.loops.formula import Formula, names_in
from toytorch.loops.language.functions import FUNCTIONS

SIGNS: dict[type, str] = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}


class Rule:
    """Assignments for every element of equally shaped arrays, in the language of formulas.

    >>> step = Rule("v = momentum * v + g\\np = p - lr * v", "p g v", "lr momentum")
    >>> p, v = np.ones(2, "float32"), np.zeros(2, "float32")
    >>> step(p, np.ones(2, "float32"), v, 0.5, 0.9); p
    array([0.5, 0.5], dtype=float32)
    >>> print(step.source)
    def rule(p, g, v, lr, momentum):
        v *= momentum
        v += g
        p -= lr * v
    """

    def __init__(self, text: str, arrays: str, numbers: str = "") -> None:
        self.text, self.arrays, self.numbers = text, arrays.split(), numbers.split()
        self.loop = Loop(text, arrays, numbers)

    @cached_property
    def source(self) -> str:
        """The rule on whole arrays; what `p = p - lr * g` assigns is written in place."""
        formula = Formula(f"{self.text}\n0", self.arrays)
        lines = []
        for name, tree in formula.lines:
            lines += self.written(formula, name, tree)
        return "\n    ".join([f"def rule({', '.join([*self.arrays, *self.numbers])}):", *lines])

    def written(self, formula: Formula, name: str, tree: ast.expr) -> list[str]:
        """The statements of one assignment."""
        if name not in self.arrays:
            return [f"{name} = {formula.spelled(tree)}"]
        if isinstance(tree, ast.BinOp) and type(tree.op) in SIGNS:
            sign = SIGNS[type(tree.op)]
            left: Any = tree.left
            right: Any = tree.right
            if is_name(left, name):  # p = p - lr * g
                return [f"{name} {sign} {formula.spelled(right)}"]
            scaled = isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult)
            if scaled and is_name(left.right, name) and name not in names_in(left.left, right):
                # v = momentum * v + g
                return [
                    f"{name} *= {formula.spelled(left.left)}",
                    f"{name} {sign} {formula.spelled(right)}",
                ]
        return [f"{name}[...] = {formula.spelled(tree)}"]

    @cached_property
    def on_arrays(self) -> Any:
        """The function that `source` shows."""
        space = {"__name__": __name__, **FUNCTIONS}
        exec(compile(self.source, f"<toytorch rule {self.text}>", "exec"), space)  # our own text
        return space["rule"]

    @cached_property
    def on_tensors(self) -> Any:
        """The same lines as a function of tensors, which gives the new values of what is written."""
        formula = Formula(f"{self.text}\n0", self.arrays)
        lines = [f"{name} = {formula.spelled(tree)}" for name, tree in formula.lines]
        results = ", ".join(self.arrays[i] for i in self.written_at)
        params = ", ".join([*self.arrays, *self.numbers])
        source = "\n    ".join([f"def rule({params}):", *lines, f"return {results},"])
        space = {word: of_tensors(word, Late) for word in ("where", "logical_not", *formula.words)}
        exec(compile(source, f"<toytorch rule {self.text}>", "exec"), space)  # our own text
        return space["rule"]

    def with_history(self, *args: Any) -> None:
        """Runs the rule on tensors and writes what comes out, so that the step has a gradient."""
        n = len(self.arrays)
        # Of copies, since what the gradient needs of the old values must not be written to.
        old = [args[i].clone() if i in self.written_at else args[i] for i in range(n)]
        for i, new in zip(self.written_at, self.on_tensors(*old, *args[n:])):
            args[i].copy_(new)

    def __call__(self, *args: Any) -> None:
        """Runs the rule: arrays (or tensors) in the order of the call, then the numbers."""
        if isinstance(args[0], Tensor):
            self.with_history(*args)
        elif base.queued and args[0].__class__ in base.queued:
            if step.calls is None:
                base.launched("rule", self.run, *args, writes=[args[i] for i in self.written_at])
            else:
                step.calls.append((self, args))
        else:
            self.run(*args)

    def run(self, *args: Array | float) -> None:
        """The rule on arrays of this process's memory, or of a card's."""
        first: Any = args[0]
        if first.__class__ is not np.ndarray:
            if generic.attempt(base.of_array(first).xp, "loop", self.loop, *args) is None:
                self.on_arrays(*args)
        elif not self.loop(*args):
            self.on_arrays(*args)

    @cached_property
    def written_at(self) -> list[int]:
        """Which arrays it assigns to."""
        assigned = {line.split("=")[0].strip() for line in self.text.splitlines()}
        return [i for i, name in enumerate(self.arrays) if name in assigned]


Call: TypeAlias = tuple[Rule, tuple[Any, ...]]


class Step(threading.local):
    """The rules that an optimizer's step calls on devices which keep time: all of them are one launch
    a device, as PyTorch's `foreach` forms have one kernel for many parameters.

    An `update` calls its rule last, so that a rule may run when all updates are done.
    """

    calls: list[Call] | None = None

    def of(self, name: str, update: Callable[[], None], captured: bool = False) -> None:
        """Gathers the rules that are called in `update`, and runs them when it is done; `captured`
        by a graph, which asks for the numbers of the next step each time that it is replayed."""
        calls = self.gathered(update)
        places: dict[Any, tuple[list[int], list[Any], list[Any]]] = {}
        for k, (rule, args) in enumerate(calls):
            device = base.of_array(args[0]).device(args[0])
            some, arrays, writes = places.setdefault(device, ([], [], []))
            some.append(k)
            arrays += args[: len(rule.arrays)]
            writes += [args[i] for i in rule.written_at]
        for some, arrays, writes in places.values():
            run = Together(calls, some, update if captured else None)
            base.launched(name, run, *arrays, writes=writes)

    def gathered(self, update: Callable[[], None]) -> list[Call]:
        """The rules that are called in `update`, and with what."""
        calls: list[Call] = []
        self.calls = calls
        try:
            update()
        finally:
            self.calls = None
        return calls


class Together:
    """Some of the calls of a step as one function of their arrays."""

    def __init__(
        self, calls: list[Call], some: list[int], update: Callable[[], None] | None
    ) -> None:
        self.calls, self.some, self.update, self.ran = calls, some, update, False

    def __call__(self, *arrays: Any) -> None:
        calls, left = self.calls, iter(arrays)
        if self.update is not None and self.ran:
            calls = step.gathered(self.update)
        self.ran = True
        for rule, args in (calls[k] for k in self.some):
            n = len(rule.arrays)
            rule.run(*itertools.islice(left, n), *args[n:])


step = Step()


def is_name(tree: ast.expr, name: str) -> bool:
    return isinstance(tree, ast.Name) and tree.id == name

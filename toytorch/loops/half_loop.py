"""A formula over arrays of 16 bits as one loop: elements are widened where they are read, and what is
computed in float32 is rounded once, where it is written.

>>> from toytorch.loops.formula import Formula
>>> twice = HalfLoop(Formula("x + x", ["x"]), ["x"])
>>> made = twice([np.full(5000, 1.5, "float16")])
>>> made is None or float(made[0])
3.0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes
from toytorch.loops.formula import Formula, OnePass, joined, safe
from toytorch.loops.language.program import Program
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.kernel import compile_program, run

MOST = 256  # kinds of calls that are kept


class HalfLoop:
    """The loops of a formula, one for each half type, each way in which operands broadcast, and each
    outcome of its conditions."""

    def __init__(self, formula: Formula, params: Sequence[str]) -> None:
        self.plan, self.params = OnePass(formula, params), params
        self.programs: dict[Any, Program] = {}
        # Of few numbers: a result's shape and type, and a builtin function of it and the operands.
        self.few: dict[Any, tuple[Sizes, Any, Any]] = {}

    def __call__(self, args: Sequence[Any], out: Array | None = None) -> Array | None:
        """The result for arrays of one half type that lie in rows, beside numbers, in `out` if that is
        given, which may be one of them; None where there is none."""
        arrays = [a for a in args if a.__class__ is np.ndarray]
        what = tuple(
            [
                (a.shape, a.dtype.char, a.flags.c_contiguous)
                if a.__class__ is np.ndarray
                else a or str(a)
                for a in args
            ]
        )
        known = self.few.get(what) if out is None else None
        if known is not None:
            made = np.empty(known[0], known[1])
            known[2](made, *arrays)
            return made
        like = arrays[0]
        if not jit.pays(like.size) or not like.size:
            return None
        whole = like.shape
        for a in arrays:
            if a.dtype is not like.dtype or not a.flags.c_contiguous:
                return None
            if a.shape != whole:
                whole = ()
        if not whole:
            try:
                whole = np.broadcast_shapes(*[a.shape for a in arrays])
            except ValueError:
                return None  # which NumPy says
        sizes, owns = [math.prod(whole)], [[0]] * len(arrays)
        if any(a.shape != whole for a in arrays):
            sizes, owns = joined(whole, [a.shape for a in arrays])
        key = like.dtype.name, str(owns), *[a.__class__ for a in args]
        key += tuple([args[k] for k in self.plan.tested])
        program = self.programs.get(key)
        if program is None:
            program = self.programs[key] = self.program(like.dtype.name, args, owns, len(sizes))
        type = np.bool_ if program.outputs[0].type == "bool" else like.dtype
        if out is not None and (out.shape != whole or out.dtype != type):
            return None
        made = np.empty(whole, type) if out is None else out
        given = [a.reshape([sizes[d] for d in own]) for a, own in zip(arrays, owns)]
        numbers = [float(a) for a in args if isinstance(a, (bool, int, float))]
        if out is None and max([a.size for a in (made, *arrays)]) < jit.SMALLEST:
            if len(self.few) > MOST:
                self.few.clear()
            laid = (made.reshape(sizes), *given)
            kernel = compile_program(program, *laid)
            call = kernel.laid(laid, tuple(numbers), shared=False, bases=False).here
            self.few[what] = whole, type, call
            call(made, *arrays)
            return made
        run(program, made.reshape(sizes), *given, *numbers)
        return made

    def program(self, half: str, args: Sequence[Any], owns: list[list[int]], rank: int) -> Program:
        given = list(zip(map(safe, self.params), args))
        names = [name for name, a in given if a.__class__ is np.ndarray]
        places = [",".join(f"d{d}" for d in own) for own in owns]
        inputs = [f"{name}[{place}] {half}" for name, place in zip(names, places)]
        inputs += [f"{name} float32" for name, a in given if isinstance(a, (bool, int, float))]
        lines, every = (
            self.plan.lines(args).replace("\n", "\n "),
            ",".join(f"d{d}" for d in range(rank)),
        )

        def told(type: str) -> Program:
            text = f"{', '.join(inputs)} -> made[{every}]{type}\n {lines}"
            return Program.parse(text, half)

        found = told("")
        return found if found.outputs[0].type == "bool" else told(f" {half}")

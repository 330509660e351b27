"""Elementwise loops over a few arrays, compiled when they are first run.

NumPy goes through memory once per operation; `p -= lr * g` is two passes and a temporary. A Loop is
the same line in one pass: a program of `toytorch.loops` over equally shaped arrays. Compiling takes
some 20 ms, so small arrays are left to NumPy.

    >>> step = Loop("p = p - lr * g", arrays="p g", numbers="lr")
    >>> p, g = np.ones(5000, "float32"), np.ones(5000, "float32")
    >>> step(p, g, 0.5), p[0]
    (True, np.float32(0.5))
"""

from __future__ import annotations

import ast
import functools
from typing import Any

import numpy as np

from toytorch.facts.hints import ArrayModule
from toytorch.facts.syntax import parse as parse_python
from toytorch.loops import Program, run
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.jit import SMALLEST


@functools.lru_cache(1024)
def order_in_memory(shape: tuple[int, ...], strides: tuple[int, ...], step: int) -> Any:
    """The order of an array's dimensions in memory, where its elements fill one piece of it; else None.

    >>> a = np.zeros((2, 3, 4), "float32").transpose(2, 0, 1)
    >>> order_in_memory(a.shape, a.strides, 4), order_in_memory((2, 3), (16, 4), 4)
    ((1, 2, 0), None)
    """
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], -shape[d]))
    for d in reversed(order):
        if shape[d] != 1:
            if strides[d] != step:
                return None
            step *= shape[d]
    return tuple(order)


class Loop:
    """Assignments carried out for every element of equally shaped arrays, in one pass.

    text     lines such as "m = b * m + (1 - b) * g", in the language of `toytorch.loops`. A name
             that is assigned and no array is a value in between.
    arrays   names of the arrays, in the order of the call
    numbers  names of the numbers that follow them
    smallest elements from which it runs; fewer are left to NumPy
    """

    def __init__(self, text: str, arrays: str, numbers: str = "", smallest: int = SMALLEST) -> None:
        self.smallest = smallest
        self.text, self.arrays, self.numbers = text, arrays.split(), numbers.split()
        written, read = written_and_read(text)
        self.outputs = [k for k, name in enumerate(self.arrays) if name in written]
        self.inputs = [k for k, name in enumerate(self.arrays) if name in read]
        self.order = [
            *self.outputs,
            *self.inputs,
            *range(len(self.arrays), len(self.arrays) + len(self.numbers)),
        ]
        self.programs: dict[tuple[int, str], Program] = {}
        self.last: Any = None  # the kernel that ran last, as a builtin function

    def __call__(self, *args: Any) -> bool:
        """Runs the loop and says so; False, and nothing done, where NumPy has to do it."""
        count = len(self.arrays)
        first = args[0]
        if first.size < self.smallest:
            return False
        if self.last is not None and self.last(*[args[k] for k in self.order]):
            return True  # it looked at the arrays itself
        kind = first.dtype.char
        if kind not in "fd" or not jit.works():
            return False
        if not first.flags.c_contiguous:
            order = order_in_memory(first.shape, first.strides, first.itemsize)
            if order is None:
                return False
            turned = [a.transpose(order) if a.ndim == len(order) else a for a in args[:count]]
            return self(*turned, *args[count:])
        rows = True
        for a in args[:count]:
            if a.__class__ is not np.ndarray or a.dtype.char != kind or a.shape != first.shape:
                return False
            if not a.flags.c_contiguous:
                rows = False  # the rows of a part of an array, with gaps between them
                if a.strides[-1] != a.itemsize:
                    return False
            if not a.flags.aligned:
                return False
        program = self.programs.get((first.ndim, kind))
        if program is None:
            program = self.programs[first.ndim, kind] = self.program(first.ndim, first.dtype.name)
        run(program, *[args[k] for k in self.order])
        if rows:
            self.last = program.made["recent"][0].function
        return True

    def program(self, rank: int, type: str) -> Program:
        """The loop over arrays of `rank` dimensions."""
        dims = f"[{','.join(f'd{k}' for k in range(rank))}]"
        given = [self.arrays[k] + dims for k in self.inputs] + self.numbers
        made = [self.arrays[k] + dims for k in self.outputs]
        return Program.parse(f"{', '.join(given)} -> {', '.join(made)}\n{self.text}", type)

    def of(self, xp: ArrayModule, *arrays: Any) -> Any:
        """The first array of the loop, made anew from the others and the numbers; None where NumPy
        has to do it."""
        like = arrays[0]
        if xp is not np or like.size < SMALLEST:
            return None
        made = np.empty_like(like)
        return made if self(made, *arrays) else None


def written_and_read(text: str) -> tuple[set[str], set[str]]:
    """The names that lines assign, and those they read before that.

    >>> [sorted(names) for names in written_and_read("m = m + g\\np = p - m")]
    [['m', 'p'], ['g', 'm', 'p']]
    """
    written: set[str] = set()
    read: set[str] = set()
    for line in parse_python(text).body:
        assert isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
        read |= {n.id for n in ast.walk(line.value) if isinstance(n, ast.Name)} - written
        written.add(line.targets[0].id)
    return written, read

"""Programs on a GPU: their loops as CUDA C, compiled by CuPy's RawModule and launched.

A kernel is kept by the layout of the arrays, as on the CPU, and its module by its source: two
programs with the same loops share one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, ArrayModule
from toytorch.loops.generators.cuda import CudaSource, cuda_source
from toytorch.loops.language.program import Program
from toytorch.loops.language.types import TYPES
from toytorch.loops.schedule.build import schedule
from toytorch.loops.schedule.layout import (
    Described,
    Layout,
    arrays_of,
    layout_of,
    sizes_of,
    span,
    steps_of,
)

GRID = 1 << 15  # blocks at most; each thread, or block, then takes several turns
OPTIONS = ("-std=c++17",)
_by_source: dict[tuple[int, str], Any] = {}  # (array module, source) → CuPy's kernel


class CudaKernel:
    """A Program for one layout of its arrays, on a GPU."""

    def __init__(self, xp: ArrayModule, program: Program, layout: Layout) -> None:
        self.xp, self.program, self.layout = xp, program, layout
        self.nest = schedule(program, layout, flat=True)
        self.made: CudaSource = cuda_source(self.nest)
        self.types = {n.name: np.dtype(TYPES[n.type].numpy) for n in program.scalars}
        self.kernel = compiled(xp, self.made.source)

    def __call__(self, arrays: list[Array], numbers: dict[str, float]) -> None:
        """Launches it on arrays (outputs, then inputs) and the scalars by name."""
        facts = [described(a) for a in arrays]
        records = arrays_of(self.program)
        sizes = sizes_of(self.program, facts)
        steps = [steps_of(a, given, sizes) for a, given in zip(records, facts)]
        lengths = [math.prod(sizes[d] for d in axis) for axis in self.layout.axes]
        turns = 1
        for axis in self.nest.range:
            last = self.nest.tile > 1 and axis == len(lengths) - 1
            turns *= -(-lengths[axis] // self.nest.tile) if last else lengths[axis]
        if not turns:
            return
        threads = self.made.threads
        blocks = min(turns if self.made.by_block else -(-turns // threads), GRID)
        if self.made.scratch:
            blocks = min(blocks, 1 << 10)  # each has scratch memory of its own
        places = {b.name: k for k, b in enumerate(self.nest.buffers)}
        named = {f"n{k}": n for k, n in enumerate(lengths)}
        named |= {f"size_{d}": n for d, n in sizes.items()}
        args: list[Any] = []
        for what, name in self.made.parameters:
            if what == "array":
                args.append(arrays[places[name]])
            elif what == "scalar":
                args.append(self.types[name].type(numbers[name]))
            elif what == "size":
                args.append(np.int64(named[name]))
            elif what == "stride":
                buffer, axis_ = name.rsplit(" ", 1)
                found = span(self.layout.axes[int(axis_)], sizes, steps[places[buffer]])
                args.append(np.int64(found[1] if found else 0))
            elif what == "scratch":
                factors = self.made.scratch[name]
                count = math.prod(n if isinstance(n, int) else named[n] for n in factors)
                type = TYPES[self.nest.buffers[places[name]].type].numpy
                args.append(self.xp.empty(blocks * count, type))
            else:
                args.append(np.int64(turns))
        self.kernel((blocks,), (threads,), tuple(args))


def compiled(xp: ArrayModule, source: str) -> Any:
    """The kernel of a source, compiled when it is first asked for."""
    found = _by_source.get((id(xp), source))
    if found is None:
        module = xp.RawModule(code=source, options=OPTIONS)
        found = _by_source[id(xp), source] = module.get_function("kernel")
    return found


def described(array: Any) -> Described:
    """What a layout asks of an array of CuPy."""
    return Described(array.shape, array.strides, array.dtype, array.data.ptr)


def run(xp: ArrayModule, program: Program, *args: Array | float) -> None:
    """Runs a program on CuPy's arrays (outputs, then inputs) and numbers.

    Raises ValueError or TypeError for arrays that do not fit the program, Unsupported for those
    that these loops cannot do.
    """
    count = len(arrays_of(program))
    arrays = list(args[:count])
    numbers = dict(zip((n.name for n in program.scalars), args[count:]))
    layout = layout_of(program, [described(a) for a in arrays])
    kernels = program.made.setdefault("cuda", {})
    kernel = kernels.get((id(xp), layout))
    if kernel is None:
        kernel = kernels[id(xp), layout] = CudaKernel(xp, program, layout)
    kernel(arrays, numbers)

"""Programs on a GPU: their loops as CUDA C, compiled by CuPy's RawModule and launched.

A kernel is kept by the layout of the arrays, as on the CPU, and its module by its source: two
programs with the same loops share one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, ArrayModule
from toytorch.loops.generators.cuda import CudaSource, cuda_source, widens
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
ALIGNED = 16  # bytes that one load fetches at most
NARROW = 1 << 30  # elements up to which indices have 32 bits
LAUNCHES = 4096  # of a program are kept
OPTIONS = ("-std=c++17",)
_by_source: dict[tuple[ArrayModule, str], Any] = {}  # (array module, source) → CuPy's kernel


class CudaKernel:
    """A Program for one layout of its arrays, on a GPU."""

    def __init__(
        self, xp: ArrayModule, program: Program, layout: Layout, wide: bool, narrow: bool
    ) -> None:
        self.nest = schedule(program, layout, flat=True)
        self.made: CudaSource = cuda_source(self.nest, wide and widens(self.nest), narrow)
        self.integer = np.int32 if narrow else np.int64
        self.kernel = compiled(xp, self.made.source)


class Launch:
    """A kernel with all its arguments but the arrays and the scalars: those of one set of shapes.

    Finding these takes longer than most kernels run, so a launch is kept for the next call.
    """

    def __init__(self, xp: ArrayModule, program: Program, arrays: list[Array]) -> None:
        facts = [described(a) for a in arrays]
        layout = layout_of(program, facts)
        sizes = sizes_of(program, facts)
        steps = [steps_of(a, given) for a, given in zip(arrays_of(program), facts)]
        reach = max(sum((sizes[d] - 1) * abs(n) for d, n in by.items()) for by in steps)
        narrow = reach < NARROW and math.prod(sizes.values()) < NARROW
        wide = all(a.address % ALIGNED == 0 for a in facts)
        kernels = program.made.setdefault("cuda", {})
        key = xp, layout, wide, narrow
        if key not in kernels:
            kernels[key] = CudaKernel(xp, program, layout, wide, narrow)
        found: CudaKernel = kernels[key]
        nest, made = found.nest, found.made
        lengths = [math.prod(sizes[d] for d in axis) for axis in layout.axes]
        turns = 1
        for axis in nest.range:
            last = nest.tile > 1 and axis == len(lengths) - 1
            turns *= -(-lengths[axis] // nest.tile) if last else lengths[axis]
        blocks = min(turns if made.by_block else -(-turns // (made.threads * made.lanes)), GRID)
        if made.scratch:
            blocks = min(blocks, 1 << 10)  # each has scratch memory of its own
        self.xp, self.kernel = xp, found.kernel
        self.grid, self.block = (blocks,), (made.threads,)
        places = {b.name: k for k, b in enumerate(nest.buffers)}
        named = {f"n{k}": n for k, n in enumerate(lengths)}
        named |= {f"size_{d}": n for d, n in sizes.items()}
        types = {
            n.name: (k, np.dtype(TYPES[n.type].numpy).type) for k, n in enumerate(program.scalars)
        }
        self.args: list[Any] = []  # all but these, by their place:
        self.arrays: list[tuple[int, int]] = []
        self.scalars: list[tuple[int, int, Any]] = []
        self.scratch: list[tuple[int, int, str]] = []
        for slot, (what, name) in enumerate(made.parameters):
            value = None
            if what == "array":
                self.arrays.append((slot, places[name]))
            elif what == "scalar":
                self.scalars.append((slot, *types[name]))
            elif what == "size":
                value = found.integer(named[name])
            elif what == "stride":
                buffer, axis_ = name.rsplit(" ", 1)
                stride = span(layout.axes[int(axis_)], sizes, steps[places[buffer]])
                value = found.integer(stride[1] if stride else 0)
            elif what == "scratch":
                factors = made.scratch[name]
                count = math.prod(n if isinstance(n, int) else named[n] for n in factors)
                type = TYPES[nest.buffers[places[name]].type].numpy
                self.scratch.append((slot, blocks * count, type))
            else:
                value = found.integer(turns)
            self.args.append(value)

    def __call__(self, arrays: list[Array], numbers: Sequence[float]) -> None:
        """Launches it on arrays (outputs, then inputs) and the scalars."""
        if not self.grid[0]:
            return
        args = self.args.copy()
        for slot, k in self.arrays:
            args[slot] = arrays[k]
        for slot, k, type in self.scalars:
            args[slot] = type(numbers[k])
        for slot, count, type in self.scratch:
            args[slot] = self.xp.empty(count, type)
        self.kernel(self.grid, self.block, tuple(args))


def compiled(xp: ArrayModule, source: str) -> Any:
    """The kernel of a source, compiled when it is first asked for."""
    found = _by_source.get((xp, source))
    if found is None:
        module = xp.RawModule(code=source, options=OPTIONS)
        found = _by_source[xp, source] = module.get_function("kernel")
    return found


def described(array: Any) -> Described:
    """What a layout asks of an array of CuPy."""
    return Described(array.shape, array.strides, array.dtype, array.data.ptr)


def launch_of(xp: ArrayModule, program: Program, arrays: list[Any]) -> Launch:
    """The launch of a program on arrays such as these.

    Raises ValueError or TypeError for arrays that do not fit the program, Unsupported for those
    that these loops cannot do.
    """
    launches = program.made.setdefault("launches", {})
    places, first = [a.data.ptr for a in arrays], len(program.outputs)
    # Of places in memory only the alignment matters, and which outputs are inputs.
    same = [
        (o, i) for o in range(first) for i in range(first, len(places)) if places[o] == places[i]
    ]
    facts = [(a.shape, a.strides, a.dtype, p % ALIGNED) for a, p in zip(arrays, places)]
    key = (xp, *same, *facts)
    found: Launch | None = launches.get(key)
    if found is None:
        if len(launches) >= LAUNCHES:
            launches.clear()
        found = launches[key] = Launch(xp, program, arrays)
    return found


def run(xp: ArrayModule, program: Program, *args: Any) -> None:
    """Runs a program on CuPy's arrays (outputs, then inputs) and numbers; see `launch_of`."""
    count = len(program.outputs) + len(program.inputs)
    arrays = list(args[:count])
    launch_of(xp, program, arrays)(arrays, args[count:])

"""Kernels: a Program compiled for a layout, and the choice of the right one at each call.

>>> softmax = Program.parse('''x[i,j] -> y[i,j]
...     e = exp(x - max[j](x))
...     y = e / sum[j](e)''')
>>> x = np.array([[1, 2, 3], [4, 4, 4]], "float32")
>>> y = np.empty_like(x)
>>> run(softmax, y, x)
>>> y.round(4)
array([[0.09  , 0.2447, 0.6652],
       [0.3333, 0.3333, 0.3333]], dtype=float32)
"""

from __future__ import annotations

import functools
import math
import struct
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch.facts.hints import Array, Sizes
from toytorch.loops.language.program import Program
from toytorch.loops.language.types import kind
from toytorch.loops.runtime import jit, threads
from toytorch.loops.runtime.entry_point import arrays_in, slots
from toytorch.loops.schedule.layout import Layout, arrays_of, layout_of, sizes_of
from toytorch.loops.schedule.nest import Nest, strides_of

if TYPE_CHECKING:
    from toytorch.loops.runtime.array_call import ArrayCall

RECENT = 4  # kernels of a program that are tried before its arrays' layout is looked at
_lock = threading.RLock()


class Kernel:
    """A Program for one layout of its arrays.

    `kernel(outputs..., inputs..., scalars...)` runs it and says True; False, and nothing is done,
    if the arrays do not fit this kernel (`run` then finds the right one). `kernel.function` is the
    same as a builtin function, which leaves it to the caller (None) to use several threads.
    """

    def __init__(self, program: Program, layout: Layout) -> None:
        from toytorch.loops.schedule.build import schedule  # seven modules, for the first kernel

        self.program, self.layout = program, layout
        self.nest: Nest = schedule(program, layout)
        self.native = jit.works()
        if self.native:
            words = f"{program}\n{layout}\n{layout.reduced}"
            self.compiled = jit.Compiled(words, self.nest, program.cost)
            self.function = self.compiled.call
            threads.note_threads()
        else:
            self.function = self.blocked

    def __call__(self, *args: object) -> bool:
        done = self.function(*args)
        if done is None:
            threads.thread_pool()
            done = self.function(*args)
        return bool(done)

    def blocked(self, *args: Any) -> bool:
        """The same through NumPy, block by block."""
        count = len(arrays_of(self.program))
        try:
            if layout_of(self.program, args[:count]) != self.layout:
                return False
        except (TypeError, ValueError):
            return False
        from toytorch.loops.generators import numpy  # only where nothing is compiled

        numpy.run(self.program, args)
        return True

    @staticmethod
    def key(program: Program, arrays: tuple[Array, ...]) -> Layout:
        """What a kernel depends on in its arrays: kernels with equal keys are the same."""
        return layout_of(program, arrays)

    @property
    def sources(self) -> dict[str, str]:
        """The loops as "python", "llvm" and "cuda"."""
        # Only for whoever wants to see it: importing toytorch does not load it.
        from toytorch.loops.generators.cuda import cuda_source
        from toytorch.loops.generators.python import python_source
        from toytorch.loops.schedule.build import schedule

        made = {"nest": str(self.nest), "python": python_source(self.nest)}
        if self.native:
            made["llvm"] = jit.llvm_text(self.nest, "kernel")
        made["cuda"] = cuda_source(schedule(self.program, self.layout, flat=True)).source
        return made

    def interpret(self, *args: Array | float) -> None:
        """Runs the generated Python, element by element: slow, and what the others have to equal."""
        # Only for tests and whoever wants to see it: importing toytorch does not load it.
        from toytorch.loops.generators.numpy import element
        from toytorch.loops.generators.python import axis_views, parameters, python_function

        count = len(arrays_of(self.program))
        sizes = sizes_of(self.program, args[:count])
        table: dict[str, int] = {f"size_{d}": n for d, n in sizes.items()}
        for axis, group in enumerate(self.nest.axes):
            table[f"n{axis}"] = 1
            for d in group:
                table[f"n{axis}"] *= sizes[d]
        table["lo"], table["hi"] = 0, self.range_of(table)
        views = axis_views(self.nest, list(args[:count]), sizes)
        types = {n.name: element(n.type, v) for n, v in zip(self.program.scalars, args[count:])}
        names = parameters(self.nest)[count + len(types) :]
        python_function(self.nest)(*views, *types.values(), *(table[n] for n in names))

    def laid(
        self,
        arrays: Sequence[Array],
        numbers: tuple[float, ...] = (),
        shared: bool = True,
        bases: bool = True,
    ) -> ArrayCall:
        """The kernel as a call of arrays that lie as these do, with these numbers: nothing is looked
        at again, so they may have any shape. Whoever gives a view here gives to the call what it is
        a view of, or without `bases` a view that begins at the same element. Threads share the work
        unless told otherwise."""
        from toytorch.loops.runtime.array_call import ArrayCall  # for the first that asks

        nest, sizes = self.nest, sizes_of(self.program, arrays)
        by_name = dict(zip([b.name for b in arrays_in(nest)], zip(arrays, nest.arrays)))
        table: dict[str, Any] = {f"size_{d}": n for d, n in sizes.items()}
        for axis, group in enumerate(nest.axes):
            table[f"n{axis}"] = math.prod(sizes[d] for d in group if d in sizes)
        table["context"], table["range"] = jit.context().ctypes.data, self.range_of(table)
        for scalar, number in zip(nest.scalars, numbers):
            real = kind(scalar.type) == "f"
            bits = struct.unpack("q", struct.pack("d", number))[0] if real else number
            table[f"scalar {scalar.name}"] = bits
        for name, axis in strides_of(nest):
            array, known = by_name[name]
            steps = dict(zip(known.dims, zip(array.shape, array.strides)))
            inner = [d for d in nest.axes[axis] if sizes.get(d, 1) > 1]  # the last one's stride
            n, step = steps.get(inner[-1], (1, 0)) if inner else (1, 0)
            table[f"stride {name} {axis}"] = 0 if n == 1 else step // array.itemsize
        slot = slots(nest)
        words = [table.get(name, 0) for name in slot]
        places = [slot[f"data {name}"] for name in by_name]
        for place, a in zip(places, arrays):
            if bases and a.base is not None:
                words[place] = a.ctypes.data - a.base.ctypes.data
            else:
                words[place] = 0
        elements = math.prod(sizes.values()) if shared else 0
        work = elements * (self.program.cost + jit.TRAFFIC * len(arrays))
        return ArrayCall(self.compiled, words, places, table["range"], work)

    def range_of(self, sizes: dict[str, int]) -> int:
        """How far the outermost loop goes."""
        total = 1
        for axis in self.nest.range:
            n = sizes[f"n{axis}"]
            last = self.nest.tile > 1 and axis == len(self.nest.axes) - 1
            total *= -(-n // self.nest.tile) if last else n
        return total


def compile_program(program: Program, *arrays: object) -> Kernel:
    """The kernel for arrays like these (outputs, then inputs); equal layouts share one."""
    layout = layout_of(program, arrays[: len(arrays_of(program))])
    with _lock:
        kernels = program.made.setdefault("kernels", {})
        key = (layout, jit.works())  # which tests switch
        if key not in kernels:
            kernels[key] = Kernel(program, layout)
        return kernels[key]


def run(program: Program, *args: Any) -> None:
    """Runs a program on arrays (outputs, then inputs) and scalars, compiling it if need be.

    Raises ValueError or TypeError for arrays that do not fit the program, Unsupported for those
    that these loops cannot do.
    """
    recent = program.made.get("recent", ())
    for kernel in recent:
        done = kernel.function(*args)
        if done or (done is None and kernel(*args)):  # which gets the threads
            return
    wanted = len(arrays_of(program)) + len(program.scalars)
    if len(args) != wanted:
        raise TypeError(f"expected {wanted} arrays and scalars, got {len(args)}")
    args = apart(program, args)
    kernel = compile_program(program, *args)
    if not kernel(*args):
        raise ValueError(f"the arrays do not fit the program {str(program).splitlines()[0]}")
    if kernel not in recent:
        program.made["recent"] = (kernel, *recent)[:RECENT]


def apart(program: Program, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with copies of inputs in an output's memory that is another input's, too: a
    kernel takes each output to be one input at most (`x.addcmul_(x, x)`)."""
    outputs, arrays = len(program.outputs), len(arrays_of(program))
    places = [a.ctypes.data if isinstance(a, np.ndarray) else None for a in args[:arrays]]
    made = list(args)
    for k in range(outputs, arrays):
        if places[k] in places[:outputs] and places[k] in places[outputs:k]:
            made[k] = args[k].copy()
    return tuple(made)


@functools.lru_cache(1024)
def ready(recipe: Recipe, type: str, shapes: tuple[Sizes, ...], *numbers: float) -> Any:
    """A recipe's kernel as a builtin function of few numbers: of arrays that lie in rows and have, in
    other shapes, the elements of arrays of these shapes (outputs, then inputs); with these scalars.

    >>> scaled = Recipe("x[i,j], w[j], c -> y[i,j]\\n y = x * w + c")
    >>> y, x = np.empty((2, 1, 2)), np.arange(4.0)
    >>> ready(scaled, "d", ((2, 2), (2, 2), (2,)), 0.5)(y, x, np.array([1.0, 10.0]))
    >>> y
    array([[[ 0.5, 10.5]],
    <BLANKLINE>
           [[ 2.5, 30.5]]])
    """
    arrays = tuple([np.empty(shape, type) for shape in shapes])
    program = recipe.program(arrays[0].dtype.name)
    return compile_program(program, *arrays).laid(arrays, numbers, shared=False).here


def laid(
    recipe: Recipe, *arrays: Array, numbers: tuple[float, ...] = (), bases: bool = True
) -> ArrayCall:
    """A recipe's kernel as a call of arrays (outputs, then inputs) that lie as these do, with these
    scalars; of a view, what it is a view of is given, or the view itself (not `bases`).

    >>> total = Recipe("x[i], y[i] -> z[i]\\n z = x + y")
    >>> x, z = np.arange(4.0).reshape(2, 2), np.empty(2)
    >>> laid(total, z, x[:, 0], x[:, 1])(z, x, x); z
    array([1., 5.])
    """
    kind = arrays[recipe.outputs].dtype.name
    return compile_program(recipe.program(kind), *arrays).laid(arrays, numbers, bases=bases)


class Recipe:
    """A program's text whose types are left open: they are those of the first input, to which `own`
    brings what was computed in another.

    >>> step = Recipe("p[i], g[i], lr -> p[i]\\n p = p - lr * g")
    >>> p, g = np.ones(3), np.full(3, 2.0)
    >>> step(p, p, g, 0.25); p
    array([0.5, 0.5, 0.5])
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.programs: dict[str, Program] = {}
        self.by_type: dict[Any, Program] = {}

    @functools.cached_property
    def outputs(self) -> int:
        """How many arrays it writes."""
        return len(self.program("float32").outputs)

    def program(self, type: str) -> Program:
        """The program for one type."""
        if type not in self.programs:
            self.programs[type] = Program.parse(self.text.replace("own(", f"{type}("), type)
        return self.programs[type]

    def __call__(self, *args: Any) -> None:
        kind = args[self.outputs].dtype
        program = self.by_type.get(kind)
        if program is None:  # the name of a dtype takes longer to read than a small kernel to run
            program = self.by_type[kind] = self.program(kind.name)
        run(program, *args)

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
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from toytorch.facts.hints import Args, ArrayModule, Sizes
from toytorch.loops.formula import Formula, Renamed, names_in, safe
from toytorch.loops.language.program import Program
from toytorch.loops.language.steps import Unsupported
from toytorch.loops.language.types import computed
from toytorch.loops.runtime import cuda

TYPES = ("float32", "float64", "float16", "bfloat16")
NUMBERS = (bool, int, float, np.number)
Operand = tuple[str, tuple[str, ...], str]


def order_of(shape: Sizes, operands: list[Any]) -> tuple[tuple[int, ...], list[int] | None]:
    """The shape of the memory for a result, and how it is transposed to lie as the first operand of
    its shape does; None where it lies in rows."""
    first = next((a for a in operands if a.shape == shape), None)
    if first is None or first.flags.c_contiguous or 0 in first.strides:
        return shape, None
    order = sorted(range(len(shape)), key=lambda d: -abs(first.strides[d]))
    back = sorted(range(len(shape)), key=order.__getitem__)
    return tuple(shape[d] for d in order), back


def same_elements(a: Any, b: Any) -> bool:
    """Whether two arrays are the same elements of memory in the same places."""
    return bool(
        a.data.ptr == b.data.ptr
        and a.shape == b.shape
        and a.strides == b.strides
        and a.dtype == b.dtype
    )


def apart(a: Any, b: Any) -> bool:
    """Whether two arrays have no memory in common."""
    (a_first, a_last), (b_first, b_last) = ends(a), ends(b)
    return a_last <= b_first or b_last <= a_first


def writable(out: Any, arrays: Iterable[Any]) -> bool:
    """Whether a kernel may write to memory while it reads arrays: they are the same or lie apart."""
    return all(same_elements(a, out) or apart(a, out) for a in arrays)


def ends(a: Any) -> tuple[int, int]:
    """Where the memory of an array begins and ends."""
    steps = [(n - 1) * s for n, s in zip(a.shape, a.strides)]
    first = a.data.ptr + sum(s for s in steps if s < 0)
    return first, a.data.ptr + sum(s for s in steps if s > 0) + a.itemsize


UNKNOWN: Any = object()


class Planned:
    """A launch for operands such as one call had, and how its result is made."""

    def __init__(self, launch: cuda.Launch, type: np.dtype[Any], shape: Sizes, order: Any) -> None:
        self.launch, self.type, self.shape, self.order = launch, type, shape, order


class OneKernel:
    """A formula whose operands are arrays of CuPy, of any strides and shapes that broadcast.

    A call gives the result (in `out`, where that is given), or None where CuPy's functions have to do
    it: for operands of several types beside masks, for integers and complex numbers. Half types are
    computed in float32 and rounded once.
    """

    def __init__(self, formula: Formula, params: Sequence[str]) -> None:
        self.formula, self.params = formula, tuple(params)
        self.programs: dict[Any, Program | None] = {}
        self.planned: dict[Any, Planned | None] = {}
        # Numbers that a condition asks for are part of the program; the rest are its scalars.
        tests = [
            n.test
            for tree in formula.trees
            for n in ast.walk(tree)
            if isinstance(n, ast.IfExp) and not formula.varies(n.test)
        ]
        asked = {name for test in tests for name in names_in(test)}
        self.asked = [name in asked for name in self.params]

    def __call__(self, xp: ArrayModule, *args: Any, out: Any = None) -> Any:
        kind = xp.ndarray
        key: list[Any] = [xp]
        arrays: list[Any] = []
        numbers: list[Any] = []
        # Finding a program takes longer than most kernels run: by what a launch depends on it is
        # kept for the next call.
        for a, asked in zip(args, self.asked):
            if a.__class__ is kind:
                arrays.append(a)
                key.append((a.shape, a.strides, a.dtype, a.data.ptr % cuda.ALIGNED))
            elif isinstance(a, NUMBERS) and not isinstance(a, np.complexfloating):
                numbers.append(a)
                key.append(a if asked else a.__class__)
            else:
                key.append(a)
        if out is not None:
            key += out.shape, out.strides, out.dtype, out.data.ptr % cuda.ALIGNED
            key += [same_elements(a, out) for a in arrays]
        known = tuple(key)
        try:
            planned = self.planned.get(known, UNKNOWN)
        except TypeError:  # an argument that has no hash
            return None
        if planned is UNKNOWN:
            if len(self.planned) >= cuda.LAUNCHES:
                self.planned.clear()
            planned = self.planned[known] = self.plan(xp, args, out)
        if planned is None:
            return None
        made = out
        if made is None:
            made = xp.empty(planned.shape, planned.type)
            if planned.order is not None:
                made = made.transpose(planned.order)
        planned.launch([made, *arrays], numbers)
        return made

    def plan(self, xp: ArrayModule, args: Args, out: Any) -> Planned | None:
        """What a call with such arguments needs, or None."""
        arrays: dict[str, Any] = {}
        numbers: list[str] = []
        for name, a in zip(self.params, args):
            if isinstance(a, xp.ndarray):
                arrays[name] = a
            elif isinstance(a, NUMBERS) and not isinstance(a, np.complexfloating):
                numbers.append(name)
        kinds = {a.dtype.name for a in arrays.values()} - {"bool"}
        if len(kinds) != 1 or not kinds <= set(TYPES):
            return None
        shape = np.broadcast_shapes(*(a.shape for a in arrays.values()))
        dims = tuple(f"d{k}" for k in range(len(shape)))
        operands = tuple((n, dims[len(dims) - a.ndim :], a.dtype.name) for n, a in arrays.items())
        given = dict(zip(self.params, args))
        rest = tuple((n, v) for n, v in given.items() if n not in arrays and n not in numbers)
        asked = tuple(
            given[n] for n, wanted in zip(self.params, self.asked) if wanted and n in numbers
        )
        key = operands, tuple(numbers), rest, asked
        if key not in self.programs:
            self.programs[key] = self.program(kinds.pop(), operands, tuple(numbers), dims, given)
        program = self.programs[key]
        if program is None or 0 in shape:
            return None
        truth = program.outputs[0].type == "bool"
        type = next(a.dtype for a in arrays.values() if truth or a.dtype != np.bool_)
        type = np.dtype(bool) if truth else type
        order = None
        if out is None:
            stored, order = order_of(shape, list(arrays.values()))
            like = xp.empty(stored, type)
            like = like if order is None else like.transpose(order)
        elif out.shape != shape or out.dtype != type or not writable(out, arrays.values()):
            return None
        else:
            stored, like = shape, out
        try:
            launch = cuda.launch_of(xp, program, [like, *arrays.values()])
        except Unsupported:  # elements that are not aligned
            return None
        return Planned(launch, type, stored, order)

    def program(
        self,
        type: str,
        operands: tuple[Operand, ...],
        numbers: tuple[str, ...],
        dims: tuple[str, ...],
        given: dict[str, Any],
    ) -> Program | None:
        """The formula as a program for operands of a type, whose result has it too or is a truth;
        None where something else than arrays and numbers comes into it."""
        lines = self.formula.straight(given)[1]
        text = "\n".join(
            f"{safe(n) if n else 'made'} = {ast.unparse(Renamed().visit(copy.deepcopy(e)))}"
            for n, e in lines
        )
        inputs = [f"{safe(n)}[{','.join(over)}] {kind}" for n, over, kind in operands]
        scalars = [f"{safe(n)} {computed(type)}" for n in numbers]
        head = f"{', '.join([*inputs, *scalars])} -> made[{','.join(dims)}]"
        for result in (type, "bool"):
            try:
                return Program.parse(f"{head} {result}\n{text}", computed(type))
            except (TypeError, NameError):
                continue
        return None

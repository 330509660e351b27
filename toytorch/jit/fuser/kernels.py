"""Fused groups as compiled kernels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch import loops
from toytorch.core.memory_order import is_dense
from toytorch.facts.size import contiguous_strides
from toytorch.jit.fuser.lower import Lower, Lowered
from toytorch.jit.ir import Node, Value
from toytorch.kernels.copy import in_rows
from toytorch.loops import Unsupported
from toytorch.loops.runtime import cuda
from toytorch.loops.schedule.build import schedule
from toytorch.loops.schedule.layout import layout_of

if TYPE_CHECKING:
    from toytorch.jit.codegen import Writer


Orders = Mapping[Value, tuple[int, ...]]  # of dimensions, outermost first
LARGE = 4096  # elements, from which a transposed operand is worth a copy


def nest_of(lowered: Lowered) -> Any:
    """The loops of a program, for arrays laid out as its values are; raises Unsupported."""
    return schedule(lowered.program, layout_of(lowered.program, stand_ins(lowered)))


def stand_ins(lowered: Lowered, copied: Orders = MappingProxyType({})) -> list[Any]:
    """An array for each result and operand; of operands that are copied first, the copy."""
    made = [stand_in(lowered, v) for v in (*lowered.outputs, *lowered.inputs)]
    for k, v in enumerate(lowered.inputs, len(lowered.outputs)):
        if v in copied:
            order = copied[v]
            outer = np.empty([made[k].shape[d] for d in order], made[k].dtype)
            made[k] = outer.transpose(inverse(order))
    return made


def transposed(lowered: Lowered) -> Orders:
    """Operands that lie across the loops, and the orders of dimensions in which they are copied.

    A loop that takes one element from each row reads a cache line for each, and tanh(xᵀ + y) is not
    even made of vectors then: of a million numbers it took 4 ms, and takes 0.5 with the copy, which
    moves blocks that fit registers.
    """
    arrays = stand_ins(lowered)
    layout = layout_of(lowered.program, arrays)
    loops_over = [d for axis in layout.axes for d in axis]
    count = len(lowered.outputs)
    if "s" in layout.inner[:count]:
        return {}  # some results lie across, too
    return {
        v: tuple(sorted(range(a.ndim), key=lambda d: loops_over.index(dims[d])))
        for v, a, inner, dims in zip(
            lowered.inputs,
            arrays[count:],
            layout.inner[count:],
            (p.dims for p in lowered.program.inputs),
        )
        if inner == "s"
        and a.size >= LARGE
        and a.ndim > 1
        and is_dense(a.shape, a.strides, a.itemsize)
    }


def inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    """The order that undoes an order of dimensions."""
    return tuple(order.index(d) for d in range(len(order)))


def stand_in(lowered: Lowered, v: Value) -> Any:
    """An array with the strides that a value's will have, over memory that nobody reads."""
    dims = [d for d, a in enumerate(lowered.axes[v]) if a is not None]
    t: Any = v.type
    shape = tuple(t.shape[d] for d in dims)
    kind = t.dtype.numpy
    strides = t.strides
    if strides is None or (v in lowered.outputs and order_in_memory(t) is None):
        return np.broadcast_to(np.empty((), kind), shape) if 0 in shape else np.empty(shape, kind)
    steps = tuple(strides[d] * kind.itemsize for d in dims)
    buffer = np.empty(
        sum((n - 1) * s for n, s in zip(shape, steps)) // kind.itemsize + 1
        if 0 not in shape
        else 0,
        kind,
    )
    if 0 not in shape:
        return np.lib.stride_tricks.as_strided(buffer, shape, steps)
    return np.empty(shape, kind)


def order_in_memory(t: Any) -> tuple[int, ...] | None:
    """The dimensions of a result from the outermost to the innermost, as the function itself would
    lay it; None for rows."""
    if t.strides is None or t.strides == contiguous_strides(t.shape) or 0 in t.shape:
        return None
    if not is_dense(t.shape, t.strides, 1):
        return None  # which no result of its own is
    order = tuple(sorted(range(len(t.shape)), key=lambda d: (-t.strides[d], -t.shape[d])))
    return None if order == tuple(range(len(t.shape))) else order


def memory_for(t: Any, kind: str) -> str:
    """The source of an array for a result."""
    order = order_in_memory(t)
    if order is None:
        return f"empty({t.shape!r}, {kind})"
    outer = tuple(t.shape[d] for d in order)
    return f"empty({outer!r}, {kind}).transpose({tuple(order.index(d) for d in range(len(order)))})"


def group_of(node: Node) -> Lowered:
    """The program of a prim::FusionGroup, over the values inside it."""
    inner = node.attributes["Subgraph"]
    return Lower([n for n in inner.nodes if not n.is_constant], inner.outputs).lowered()


def lines(node: Node, writer: Writer) -> list[str]:
    """The source lines that run a group: memory for its results, and one call."""
    lowered = group_of(node)
    inner = node.attributes["Subgraph"]
    outer = dict(zip(inner.inputs, node.inputs))
    number = len([n for n in writer.names if n.startswith("program_")])
    program = writer.given(lowered.program, f"program_{number}")
    made, args = [], []
    for v, result in zip(lowered.outputs, node.outputs):
        t: Any = v.type
        name = writer.place(result)
        reused = writer.reuse.get(result)
        if reused is not None:
            made.append(f"{name} = {writer.place(reused)}")
        else:
            kind = writer.given(t.dtype.numpy, f"{t.dtype.name}")
            made.append(f"{name} = {memory_for(t, kind)}")
        args.append(squeezed(lowered, v, name))
    across = transposed(lowered) if writer.xp is np else {}
    for v in lowered.inputs:
        given = squeezed(lowered, v, writer.use(outer[v]))
        if v in across:
            order, rows = across[v], writer.given(in_rows, "in_rows")
            given = f"{rows}({given}.transpose({order})).transpose({inverse(order)})"
        args.append(given)
    call = ", ".join(args)
    if writer.xp is not np:  # on a card: the kernel is found by the layout when it is launched
        launch = writer.given(partial(cuda.run, writer.xp), "launch")
        return [*made, f"{launch}({program}, {call})"]
    run = writer.given(compiled(lowered, across).function, f"kernel_{number}")
    again = writer.given(loops.run, "run")
    return [*made, f"if not {run}({call}):", f"    {again}({program}, {call})"]


def squeezed(lowered: Lowered, v: Value, name: str) -> str:
    """An array without its dimensions of size 1."""
    axes = lowered.axes[v]
    if None not in axes:
        return name
    if any(a is not None for a in axes):
        return f"{name}[{', '.join('0' if a is None else ':' for a in axes)}]"
    return f"{name}.reshape(())"


def compiled(lowered: Lowered, copied: Orders = MappingProxyType({})) -> Any:
    """The kernel of a program for its values' layout."""
    return loops.compile_program(lowered.program, *stand_ins(lowered, copied))


__all__ = ["Unsupported", "compiled", "group_of", "lines", "nest_of"]

"""Fused groups as compiled kernels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch import loops
from toytorch.core.memory_order import is_dense
from toytorch.facts.size import contiguous_strides
from toytorch.jit.fuser.lower import Lower, Lowered
from toytorch.jit.ir import Node, Value
from toytorch.loops import Unsupported
from toytorch.loops.runtime import cuda
from toytorch.loops.schedule.build import schedule
from toytorch.loops.schedule.layout import layout_of

if TYPE_CHECKING:
    from toytorch.jit.codegen import Writer


def nest_of(lowered: Lowered) -> Any:
    """The loops of a program, for arrays laid out as its values are; raises Unsupported."""
    arrays = [stand_in(lowered, v) for v in (*lowered.outputs, *lowered.inputs)]
    return schedule(lowered.program, layout_of(lowered.program, arrays))


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
    return (
        np.lib.stride_tricks.as_strided(buffer, shape, steps)
        if 0 not in shape
        else np.empty(shape, kind)
    )


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
    return Lower([n for n in inner.nodes if n.kind != "prim::Constant"], inner.outputs).lowered()


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
    for v in lowered.inputs:
        args.append(squeezed(lowered, v, writer.use(outer[v])))
    call = ", ".join(args)
    if writer.xp is not np:  # on a card: the kernel is found by the layout when it is launched
        launch = writer.given(partial(cuda.run, writer.xp), "launch")
        return [*made, f"{launch}({program}, {call})"]
    run = writer.given(compiled(lowered).function, f"kernel_{number}")
    again = writer.given(loops.run, "run")
    return [*made, f"if not {run}({call}):", f"    {again}({program}, {call})"]


def squeezed(lowered: Lowered, v: Value, name: str) -> str:
    """An array without its dimensions of size 1."""
    axes = lowered.axes[v]
    if None not in axes:
        return name
    return (
        f"{name}[{', '.join('0' if a is None else ':' for a in axes)}]"
        if any(a is not None for a in axes)
        else f"{name}.reshape(())"
    )


def compiled(lowered: Lowered) -> Any:
    """The kernel of a program for its values' layout."""
    arrays = [stand_in(lowered, v) for v in (*lowered.outputs, *lowered.inputs)]
    return loops.compile_program(lowered.program, *arrays)


__all__ = ["Unsupported", "compiled", "group_of", "lines", "nest_of"]

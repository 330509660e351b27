"""The general path of every call, in the order in which things happen.

    watchers      modes (tracing, profiling, the course's injection point) may take the call over
    promotion     operands of a pointwise op meet in one type
    kernel        the backend's arrays in, arrays out
    autograd      a Node remembers what the derivative needs

`toytorch.core.fast_path` holds the fast path for the common case; a test holds the two equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.base import raise_too_large
from toytorch.backends.sparse import TABLES
from toytorch.core import arguments, subclasses
from toytorch.core import inplace as writing
from toytorch.core.compute import compute
from toytorch.core.op import Op
from toytorch.core.record import record, underive, wants_grad
from toytorch.core.storage import InferenceStorage
from toytorch.core.subclasses import ask, foreign
from toytorch.core.tensor import Tensor, wrap_result
from toytorch.core.views import counted, run_view
from toytorch.core.write import (
    ASKED_FIRST,
    lacks_kernel,
    need_out,
    overlapping,
    refuse_before_kernel,
    refuse_first,
    refuse_grad,
    refuse_joined,
    refuse_leaf,
    refuse_meaningless,
    refuse_other_type,
    refuse_type,
    take,
    warn_of_size,
    write_out,
)
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.dtype import cannot_cast
from toytorch.facts.hints import Args


def call(op: Op, args: Args, out: Tensor | None = None) -> Any:
    """Runs `op` on arguments in the order of its signature."""
    args = arguments.plain_numbers(args)
    try:
        if state.fast_path is not state.SLOW:
            return run(op, args, out)
        if state.profiler is not None:
            return state.profiler.around(f"aten::{op.name}", args, hand_over, op, args, out)
        return hand_over(op, args, out)
    except Exception as error:
        if isinstance(error, (TypeError, AttributeError)):
            plain = arguments.with_integers(op, args)
            if plain is not args:
                return call(op, plain, out)
            if foreign(args):
                given, more = arguments.given(op, args)
                return ask(op.function, given, **more)
        wrong = None if isinstance(error, TypeError) else arguments.first_wrong(op, args)
        if wrong is not None:
            raise wrong from None
        raise


def hand_over(op: Op, args: Args, out: Tensor | None) -> Any:
    """`call` where somebody watches: the innermost mode that takes calls gets this one."""
    for mode in reversed(state.local.modes):
        take_over = getattr(mode, "on_call", None)
        if take_over is not None:
            with state.below(mode):
                return take_over(op, args, out)
    if subclasses.below is not None:
        made = subclasses.below.call(op, args, out)
        if made is not NotImplemented:
            return made
    if state.everywhere is not None:
        return state.everywhere.on_call(op, args, out)
    return run(op, args, out)


def in_type_of(op: Op, args: Args, out: Tensor) -> tuple[Any, ...]:
    """The arguments with out='s type as the one asked for, where none is."""
    i = op.schema.index["dtype"]
    if args[i] is not None:
        return args
    if op.out_type == "fractions" and min(args[0]._dtype.rank, out._dtype.rank) < 2:
        return args
    return (*args[:i], out._dtype, *args[i + 1 :])


def in_bytes(self: Any) -> Any:
    """An operand as bytes, which PyTorch converts it to for an out= of bytes, if it has not one element:
    0.5 is 0 then."""
    if not isinstance(self, Tensor) or self._dtype in (types.bool, types.uint8):
        return self
    if self._array.size == 1:
        return self
    array = self._array.real if self._dtype.is_complex else self._array
    return wrap_result(array.astype(types.uint8.numpy))


def lacks(op: Op, args: Args) -> str:
    """What to say of a call with out= that lacks what it needs then; "" where it does not."""
    i = op.schema.index[op.out_needs]
    if op.schema.args[i].takes_number:
        if isinstance(args[i], Tensor):
            return ""
        kinds = ", ".join(type(a).__name__ for a in args)
        return f"{op.name}() received an invalid combination of arguments - got ({kinds})"
    return arguments.missing(op, [i]) if args[i] is None else ""


def copied_to(out: Tensor, made: Tensor) -> Tensor:
    """A result in `out`, with its history."""
    if made._dtype.rank > out._dtype.rank:
        raise cannot_cast(made._dtype, out._dtype)
    writing.check(out, made._requires_grad)
    if out._array.shape != made._array.shape:
        warn_of_size(out, made._array.shape)
        array = made._array.astype(out._dtype.numpy)
        take(out, np.asarray(array, order="C") if array.__class__ is np.ndarray else array)
    return out.copy_(made)


def refuse_doubled(op: Op, args: Args, out: Tensor) -> None:
    """Refuses an out= of which several elements share a place, unless the op has no meaning for these
    operands, which is asked first."""
    if out._array.flags.c_contiguous or not writing.overlaps(out):
        return
    refuse_meaningless(op, args)
    writing.refuse_overlap(out)


def run(op: Op, args: Args, out: Tensor | None = None) -> Any:
    """`call` below the modes."""
    if op.kind == "view" and getattr(args[0], "_array", None).__class__ not in TABLES:
        return run_view(op, args)  # of a sparse tensor, a view is a copy
    if out is not None:
        need_out(op.name, out, -1 if op.schema.returns[0] == "Tensor[]" else op.count)
        if op.out_needs and (found := lacks(op, args)):
            raise TypeError(found)
        if op.asks_gradients:
            refuse_grad(op.name.partition(".")[0], [args[i] for i in op.tensor_at], out)
        elif op.underived and state.local.grad:
            refuse_leaf(op.name, out)
        over = op.kind == "pointwise" and op.out_rows is not True and op.apart != "never"
        if over and not overlapping(op, args):
            refuse_doubled(op, args, out)  # it goes over out= as it lies, before it is resized
        if op.out_history == "copied" and state.local.grad:
            return copied_to(out, run(op, args))
        if op.out_type in ("given", "fractions"):
            args = in_type_of(op, args, out)
        elif op.out_type == "truth" and out._dtype is types.uint8:
            args = (in_bytes(args[0]), *args[1:])
        elif op.out_type == "alike":
            op.checks(out._dtype, (*args, out))
        if op.apart == "first":
            refuse_first(op, args, out)
    elif base.simulation is not None and state.fast_path is not state.SLOW:
        made = op.held_function(*args)
        if made is not NotImplemented:
            return made
    try:
        results = compute(op, args)
    except (RuntimeError, IndexError) as error:
        if out is not None and op.out_type in ASKED_FIRST:
            refuse_other_type(op, args, out)
        if isinstance(error, NotImplementedError):
            if op.kind == "pointwise" and lacks_kernel(error):
                refuse_before_kernel(op, args, out)
            elif out is not None and "dtype" in op.schema.index:
                refuse_type(op, args, out)
            elif out is not None and lacks_kernel(error):
                refuse_other_type(op, args, out)
        elif op.out_type == "joined" and out is not None:
            refuse_joined(args[0], out)
        raise
    except (MemoryError, ValueError) as error:
        raise_too_large(error)
        raise
    if out is not None:
        made = write_out(op, args, results, out)
        if op.underived:
            operands = [args[i] for i in op.tensor_at]
            for t in made if op.many else (made,):
                underive(f"aten::{op.name}", [*operands, t], t)
        return made
    if op.many:
        tensors: Any = [wrap_result(r) for r in results]
    else:
        tensors = wrap_result(results)
    if op.derivatives and wants_grad(op, args) and state.local.grad:
        record(op, args, tensors)
    if state.local.inference:
        for t in tensors if op.many else [tensors]:
            t._storage = InferenceStorage(t._array)
    elif op.writes is not None:
        counted(tensors, op.writes(*args))
    return tensors

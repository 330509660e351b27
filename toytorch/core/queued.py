"""Calls that are handed over whole to a backend that keeps time, or that has no memory.

Such a backend gets the arrays and calls back with arrays of the host that stand for them: one op is
one launch. `at_once` is for what most calls are, dense operands of one class; `handed_over` for all
others. Both are asked only while `base.queued` has classes of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from toytorch.backends import base
from toytorch.backends.sparse import TABLES
from toytorch.core.arguments import not_a_tensor
from toytorch.core.formulas import dressed
from toytorch.core.op import Op
from toytorch.core.scalars import fits, scalar
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.device import device as device_class
from toytorch.facts.dtype import dtype
from toytorch.facts.hints import Args, Array

FULL = (types.float32, types.float64)
Compute: TypeAlias = Callable[[Op, tuple[Any, ...], Array | None, dtype | None], Any]


def at_once(op: Op, args: Args) -> Any:
    """The results of a call whose operands are dense arrays of one class and need no promotion;
    NotImplemented for any other."""
    arrays = list(args)
    operands: list[Any] = []
    backend: Any = None
    numbers: tuple[int, ...] = ()
    pointwise = op.kind == "pointwise"
    for i in op.tensor_at:
        a = args[i]
        if a.__class__ is not Tensor and not isinstance(a, Tensor):
            if pointwise and a.__class__ in (int, float) and op.schema.args[i].takes_number:
                numbers = (*numbers, i)
            elif a is not None or pointwise or not op.schema.args[i].is_optional:
                return NotImplemented
            continue
        array = a._array
        if backend is None:
            kind, own = array.__class__, a._dtype
            backend = base.queued.get(kind)
            if backend is None:
                return NotImplemented
            plain = backend.plain  # what takes the arrays of the host, where the backend has it
        elif array.__class__ is not kind:
            return NotImplemented
        if pointwise:
            if a._dtype is not own or not array.ndim:
                return NotImplemented
        elif a._dtype.reduced:
            return NotImplemented
        operands.append(array)
        arrays[i] = array if plain is None else array.held
    if backend is None or op.across or (op.option_at and any_tensor(args, op.option_at)):
        return NotImplemented
    if pointwise:
        if own not in FULL or op.promotion not in PLAIN or complex in [a.__class__ for a in args]:
            return NotImplemented
        if op.checks is not None:
            if len(operands) > 1 and not same_place(backend, operands):
                return NotImplemented
            op.checks(own, args)
        for i in numbers:
            arrays[i] = scalar(np, args[i], own, own.numpy)
        try:
            if plain is None:
                return backend.launch(op.name, op.lying, tuple(arrays))
            return plain(op.name, op.lying, arrays, operands)  # one operation for each element
        except (ValueError, TypeError):  # of wrong shapes the general path says it better
            return NotImplemented
    if plain is None:
        return backend.launch(op.name, op.on_cpu, tuple(arrays), **figures(op, arrays))
    if op.data_dependent:
        return NotImplemented
    if op.flops is None:
        return plain(op.name, op.on_cpu, arrays, operands)
    return plain(op.name, op.on_cpu, arrays, operands, op.flops(*arrays), True)


PLAIN = ("default", "float", "tensors")  # promotions that leave floats of one type as they are


def any_tensor(args: Args, places: tuple[int, ...]) -> bool:
    """Whether a tensor, or a list with one, stands in one of some places."""
    for i in places:
        a = args[i]
        if isinstance(a, Tensor):
            return True
        if a.__class__ in (list, tuple) and any(isinstance(v, Tensor) for v in a):
            return True
    return False


def same_place(backend: Any, arrays: list[Any]) -> bool:
    """Whether all operands are on one device."""
    here = backend.device(arrays[0])
    return all(backend.device(a) == here for a in arrays)


def figures(op: Op, args: Sequence[Any]) -> dict[str, Any]:
    """What a launch has to know of an op; of tensors, or of their arrays, which are asked for shapes."""
    more: dict[str, Any] = {"waits": True} if op.data_dependent else {}
    if op.flops is not None and op.kind != "pointwise":  # else one for each element
        more.update(flops=op.flops(*args), product=True)
    return more


def queue_of(op: Op, args: Args) -> tuple[Any, list[Tensor]]:
    """The backend that keeps the time of a call's operands, None if there is none; the operands."""
    operands = []
    for i in op.tensor_at:
        a = args[i]
        if isinstance(a, Tensor):
            operands.append(a)
        elif a.__class__ in (list, tuple):
            operands += [t for t in a if isinstance(t, Tensor)]
    found = None
    for t in operands:
        array = t._array.values if t._array.__class__ in TABLES else t._array
        backend = base.queued.get(array.__class__)
        if backend is not None and (found is None or backend.name != "cpu"):
            found = backend
    return found, operands


def handed_over(
    op: Op, args: Args, compute: Compute, target: Array | None = None, common: dtype | None = None
) -> Any:
    """The results of a call that a backend takes over; NotImplemented where none does.

    `compute` runs the op on tensors over the arrays of the host; `target` is what an op in place
    will write to, `common` the type in which its operands meet.
    """
    backend, operands = queue_of(op, args)
    if backend is None:
        return NotImplemented
    dense = target is None and common is None  # whether all operands are dense and of full size
    for i in op.tensor_at:
        a = args[i]
        if isinstance(a, Tensor):
            dense = dense and not a._dtype.reduced and a._array.__class__ not in TABLES
            continue
        argument = op.schema.args[i]
        dense = dense and a is None and argument.is_optional and op.kind != "pointwise"
        if not (argument.is_tensor_list or fits(argument, a)):
            raise TypeError(not_a_tensor(op, i, a))
    where, apart = None, False
    if len(operands) > 1:
        places = [t.device for t in operands]
        where = next((p for p in places if p.type == backend.name), None)
        apart = where is not None and any(p is not where and p != where for p in places)
    if op.across == "always" or (op.across and apart):
        return op.on_cpu(*(a._array if isinstance(a, Tensor) else a for a in args))
    if apart:
        assert where is not None  # else there is nothing to be apart from
        refuse_elsewhere(op, args, operands, where)

    host_args = tuple([bare(a) for a in args])
    replaced = sum([new is not old for new, old in zip(host_args, args)])
    plain = dense and replaced == len(operands)  # else lists, or tensors for numbers
    plain = plain and op.kind != "pointwise"

    def kernel(*arrays: Any) -> Any:
        if plain:
            return op.on_cpu(*arrays)
        host = tuple(dressed(new, old) for new, old in zip(arrays, args))
        out = arrays[op.tensor_at[0]] if target is not None and target.ndim else None
        return compute(op, host, out, common)

    return backend.launch(op.name, kernel, host_args, target=target, **figures(op, args))


def bare(value: Any) -> Any:
    """An argument with arrays for tensors."""
    if isinstance(value, Tensor):
        return value._array
    if value.__class__ in (list, tuple) and any(isinstance(v, Tensor) for v in value):
        return value.__class__(bare(v) for v in value)
    return value


def refuse_elsewhere(op: Op, args: Args, operands: list[Tensor], where: device_class) -> None:
    """Refuses operands on several devices, but for numbers in tensors and indices of the CPU.

    The first operand's device is the one that the others have to be on.
    """
    called, *names = (op.on_card or op.name).split()
    names = names or [n for i, n in op.tensor_names]
    common = operands[0].device
    for t in operands:
        here = t.device
        if op.host_indices and t is not args[0] and here.type == "cpu":
            continue
        if op.kind == "pointwise":
            if here == where or (not t._array.ndim and here.type == "cpu"):
                continue
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{where} and {here}!"
            )
        if here != common:
            place = next((k for k, i in enumerate(op.tensor_at) if args[i] is t), -1)
            name = names[place] if 0 <= place < len(names) else "tensors"
            if called == "types":
                raise RuntimeError(
                    f"{names[0]} type ({args[op.tensor_at[0]].type()}) and {name} type ({t.type()}) "
                    "should be the same"
                )
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but got {name} is on {here}, "
                f"different from other tensors on {common} (when checking argument in method "
                f"wrapper_CUDA_{called})"
            )

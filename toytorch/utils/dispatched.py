"""Calls that are asked about below autograd: `__torch_dispatch__` of modes and of subclasses.

Autograd looks at the outer tensors, as at those of any call. Who is asked computes without a graph;
the node of the call is made afterwards, from what came out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toytorch.core import inplace as writing
from toytorch.core import subclasses
from toytorch.core.arguments import spread
from toytorch.core.op import Op
from toytorch.core.record import record, wants_grad
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.hints import Args, Kwargs
from toytorch.ops import aten
from toytorch.ops.aten import OpOverload, OpOverloadPacket
from toytorch.ops.aten_calls import as_list, written_out
from toytorch.ops.creation import create, ranges
from toytorch.ops.creation.from_data import tensor
from toytorch.ops.linalg import matmul

Handler = Callable[..., Any]  # func, types, args, kwargs


class Asked:
    """The watcher of a mode with `__torch_dispatch__`."""

    hears_steps = True  # of optimizers

    def __init__(self, handler: Handler, mode: object) -> None:
        self.handler, self.mode = handler, mode

    def on_call(self, op: Op, args: Args, out: Tensor | None) -> Any:
        """A call; a layer by the ops that PyTorch composes it of."""
        if op is matmul.linear and out is None:
            with state.watching(self):
                return by_parts(*args)
        return below_autograd(self.handler, op, args, out, False)

    def on_inplace(self, op: Op, args: Args) -> Any:
        """A write."""
        return below_autograd(self.handler, op, args, None, True)

    def on_create(self, function: Handler, args: Args, kwargs: Kwargs) -> Any:
        """A function that makes a tensor without a record."""
        return created(self.handler, function, args, kwargs)


def by_parts(bias: Tensor | None, x: Tensor, weight: Tensor) -> Any:
    """x·Wᵀ + b as a transposition and a product."""
    if bias is None:
        return matmul.mm.function(x, weight.t())
    return matmul.addmm.function(bias, x, weight.t())


def below_autograd(handler: Handler, op: Op, args: Args, out: Tensor | None, written: bool) -> Any:
    """What a handler makes of a call, with the history that the call has."""
    func, first, more = written_out(op, args, written)
    if out is not None:
        more["out"] = out
    types = tuple(kinds_of(args))
    recorded = state.local.grad and bool(op.derivatives) and wants_grad(op, args)
    if not recorded or out is not None or (not types and (written or op.kind == "view")):
        made = handler(func, types, first, more)  # views and writes keep their own histories
        return args[0] if written else made
    node = record(op, args, args[0], overwritten=args[0]) if written else None
    state.set_grad(False)
    try:
        made = handler(func, types, first, more)
    finally:
        state.set_grad(True)
    if written:
        writing.bump(args[0])
        if node is not None:
            writing.rebase(args[0], node)
        return args[0]
    if op.many:
        made = [free(t, args) for t in made]
    elif isinstance(made, Tensor):
        made = free(made, args)
    else:
        return made
    record(op, args, made)
    return made


def created(handler: Handler, function: Handler, args: Args, kwargs: Kwargs) -> Any:
    """What a handler makes of a function that makes a tensor without a record."""
    if function is tensor:  # what is in Python's lists is no op's business
        return function(*args, **kwargs)
    packet = getattr(aten, function.__name__)
    # Results get names later.
    if inspect.unwrap(function).__annotations__.get("return") != "Tensor":
        packet = OpOverloadPacket(function.__name__, function)
    if inspect.unwrap(function).__code__.co_argcount == 0:  # sizes, which ATen takes as a list
        args = (list(spread(args)),)
    more = {word: value for word, value in kwargs.items() if word != "requires_grad"}
    types = tuple(kinds_of(args))
    kind = "default"
    if function is create.empty:
        kind = "memory_format"
    elif function is ranges.arange and len(args) > 1:
        kind = "start" if len(args) == 2 else "start_step"
    made = handler(getattr(packet, kind), types, tuple(map(as_list, args)), more)
    return made.requires_grad_() if kwargs.get("requires_grad") else made


def free(made: Tensor, args: Args) -> Tensor:
    """A result that is no operand and has no history, so that it can get one."""
    if made._grad_edge is not None or made._requires_grad or any(made is a for a in args):
        return made.detach()
    return made


# -- subclasses ------------------------------------------------------------------------------------


def asking(values: Sequence[object]) -> Iterator[Tensor]:
    """The tensors among arguments whose class has `__torch_dispatch__`."""
    for value in values:
        if value.__class__ in (tuple, list):
            yield from asking(value)
        elif isinstance(value, Tensor) and subclasses.dispatches(type(value)):
            yield value


class Classes:
    """Asks the classes of operands; each method gives NotImplemented where none wants to be asked."""

    def call(self, op: Op, args: Args, out: Tensor | None) -> Any:
        """What a call comes to."""
        kinds = kinds_of(args)
        if not kinds:
            return NotImplemented
        if op is matmul.linear and out is None:
            return by_parts(*args)
        return below_autograd(one_of(kinds), op, args, out, False)

    def write(self, op: Op, args: Args) -> Any:
        """The same for a call that writes to its first operand."""
        kinds = kinds_of(args)
        return below_autograd(one_of(kinds), op, args, None, True) if kinds else NotImplemented

    def create(self, function: Handler, args: Args, kwargs: Kwargs) -> Any:
        """The same for a function that makes a tensor without a record."""
        kinds = kinds_of(args)
        return created(one_of(kinds), function, args, kwargs) if kinds else NotImplemented


def kinds_of(args: Args) -> list[Any]:
    """The classes among arguments that want to be asked, subclasses before their bases."""
    if subclasses.asking.dispatch_off:
        return []
    kinds = {type(t): None for t in asking(args)}
    return sorted(kinds, key=lambda kind: -len(kind.__mro__))


def one_of(kinds: list[Any]) -> Handler:
    """The answer of the first class that has one.

    Raises TypeError where none has.
    """

    def handler(
        func: OpOverload, types: Sequence[type], first: tuple[Any, ...], more: dict[str, Any]
    ) -> Any:
        for kind in kinds:
            made = getattr(kind, subclasses.DISPATCH)(func, types, first, more)
            if made is not NotImplemented:
                return made
        named = "".join(f"\n\n  - tensor subclass {kind}" for kind in kinds)
        raise TypeError(
            f"Multiple dispatch failed for 'torch._ops.{func}'; all {subclasses.DISPATCH} handlers "
            f"returned NotImplemented:{named}"
        )

    return handler

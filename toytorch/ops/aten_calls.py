"""What a record's call is below the public functions: an overload of ATen's, and its arguments."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any

from toytorch.core import arguments
from toytorch.core.op import Op, pascal, registry
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Args, DType, Fn
from toytorch.ops import aten
from toytorch.ops.aten import OpOverload, OpOverloadPacket
from toytorch.ops.define import PUBLIC
from toytorch.ops.elementwise import arithmetic
from toytorch.ops.reductions import exponentials, reduce

PACKETS: Any = aten  # whose ops are made when they are asked for
WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])")  # where a new one begins


def overload(op: Op, args: Args, written: bool = False) -> OpOverload:
    """The name below the public ones, `torch.ops.aten.mm.default`, of a record's call."""
    name, _, kind = op.schema.name.partition(".")
    node = op.node_name if op.variant is None else op.node_variant(op.variant(*args)).__name__
    node = re.sub(r"Backward\d*$", "", node)
    below = WORDS.sub("_", node).lower()  # `linear` is AddmmBackward0, from `addmm`
    if node != pascal(name) and hasattr(aten, below):
        name = below
    others = [i for i, a in enumerate(op.schema.args) if i and a.type == "Operand"]
    if op.overload is not None:
        kind = op.overload(*args, written) if callable(op.overload) else op.overload
    elif not kind and others:
        number = not isinstance(args[others[0]], Tensor)
        compares = op.schema.returns[0] == "BoolTensor"
        kind = "Scalar" if number and compares else "Tensor"
    elif op.kind == "reduction" and not kind and "dim" in op.schema.index:
        dim = op.schema.index["dim"]
        several = op.schema.args[dim].type == "int[]?" and args[dim] is not None
        kind = "dim_IntList" if several else "default"
    packet: OpOverloadPacket = getattr(aten, name + "_" * written)
    return getattr(packet, kind or "default")


def given(op: Op, args: Args) -> tuple[Any, ...]:
    """The arguments without those at the end that have their defaults."""
    count = len(args)
    while count and args[count - 1] is op.schema.args[count - 1].default:
        count -= 1
    return args[:count]


def written_out(
    op: Op, args: Args, written: bool = False
) -> tuple[OpOverload, tuple[Any, ...], dict[str, Any]]:
    """A record's call as a function below the public ones, with arguments to call it again."""
    form = None if written else FORMS.get(op)
    if form is not None and (other := form(*args)) is not None:
        return (*other, {})[:3]
    found = overload(op, args, written)
    if not written and not takes_the_same(op, found.overloadpacket):
        found = own(op)
    exact = written or found.overloadpacket._function is op.function
    first, more, count = list[Any](), dict[str, Any](), 0
    for i, (argument, value) in enumerate(zip(op.schema.args, args)):
        default = value.__class__ is argument.default.__class__ and value == argument.default
        if op.kind == "reduction" and argument.type.startswith("int[]") and isinstance(value, int):
            value = [value]
        if argument.is_variadic and argument.type.startswith("Tensor"):
            first += value
            count = len(first)
        elif not argument.keyword_only:
            first.append(as_list(value))
            count = count if default and exact else len(first)
        elif not default:
            more[arguments.called(op, i)] = value
    del first[count:]
    return found, tuple(first), more


def as_list(value: Any) -> Any:
    """Sizes as ATen has them."""
    return list(value) if isinstance(value, tuple) else value


def _probabilities(packet: OpOverloadPacket) -> Fn:
    def form(x: Tensor, dim: int, dtype: DType | None) -> Any:
        return (packet.default, (x, dim, False)) if dtype is None else None

    return form


def _spread_of(packet: OpOverloadPacket) -> Fn:
    def form(x: Tensor, dim: Any, correction: Any, keepdim: bool) -> Any:
        more = {"correction": correction} | ({"keepdim": True} if keepdim else {})
        dims = [dim] if isinstance(dim, int) else as_list(dim)
        return packet.correction, (x,) if dim is None else (x, dims), more

    return form


# Records whose op in ATen takes other arguments: the overload and those (and those by name), or None
# where the record's own are the same.
FORMS: dict[Op, Fn] = {
    exponentials.softmax: _probabilities(PACKETS._softmax),
    exponentials.log_softmax: _probabilities(PACKETS._log_softmax),
    reduce.var: _spread_of(PACKETS.var),
    reduce.std: _spread_of(PACKETS.std),
    arithmetic.relu_backward: lambda g, y: (PACKETS.threshold_backward.default, (g, y, 0)),
    registry["_spread"]: lambda g, shape, dim, keepdim: (
        (PACKETS.expand.default, (g, list(shape))) if keepdim or not g.ndim else None
    ),
}


@functools.cache
def takes_the_same(op: Op, packet: OpOverloadPacket) -> bool:
    """Whether an op of ATen's takes its arguments in the order of a record."""
    function = packet._function
    theirs = registry.get(packet.__name__)
    known = inspect.signature(function).parameters
    if function is op.function or (theirs is op and [*known] == ["args", "kwargs"]):
        return True  # the record's function, or that with names for its results
    name, _, kind = op.schema.name.partition(".")
    if kind not in ("", "dim") or (
        packet.__name__ != name and (theirs is None or theirs.schema.returns != op.schema.returns)
    ):
        return False
    names = [arguments.called(op, i) for i in range(len(op.schema.args))]
    needed = [n for n, p in known.items() if p.default is p.empty]
    spelled = ["input" if n in ("self", "tensor") else n for n in known]
    if packet.__name__ != name or f"aten.{name}" in PUBLIC:  # another op's name, or ATen's own form
        return names == spelled
    return names == spelled[: len(names)] and len(needed) <= len(names)


@functools.cache
def own(op: Op) -> OpOverload:
    """A record under its own name, where ATen has no op with its parameters."""
    return Own(OpOverloadPacket(op.schema.name.partition(".")[0], op.function), "default")


class Own(OpOverload):
    """`toytorch.linear.default`."""

    namespace = "toytorch"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

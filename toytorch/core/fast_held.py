"""The fast path on arrays of a simulated device: the same source, in which kernels are launches."""

from __future__ import annotations

import functools
from typing import Any

from toytorch.backends import base
from toytorch.core import fast_path, function
from toytorch.core.node_class import generate
from toytorch.core.op import Op
from toytorch.core.queued import any_tensor
from toytorch.facts.hints import Fn


def refuse(*args: Any) -> Any:
    """What stands for the general path, which its caller takes then."""
    return NotImplemented


def held_function(op: Op) -> Fn:
    """The op's function, from arguments in the order of the signature, for operands that are arrays of
    simulated devices and need no detour; it answers NotImplemented to all others."""
    if op.kind == "view" or op.many or op.across or op.data_dependent:
        return refuse
    names = fast_path.names_for(op, {})
    source = fast_path.write(op) or function.general(op, names)
    positional = [a for a in op.schema.args if not a.keyword_only]
    if "result = new(Tensor)" not in source or any(a.is_variadic for a in positional):
        return refuse
    launch = functools.partial(op.launch, None)
    names |= {
        "ndarray": base.simulation.array_type, "kernel": launch, "by_size": launch, "call": refuse,
        "own_kernel": lambda xp, *args: launch(*args), "whole": lambda *args: None,
        "placed": lambda made, *like: made,
    }  # fmt: skip
    generate(f"{op.name} on devices", source, names)
    made, count = names[fast_path.python_name(op)], len(positional)
    others, options = [a.default for a in op.schema.args[count:]], op.option_at

    def called(*args: Any) -> Any:
        if others and any(a is not usual for a, usual in zip(args[count:], others)):
            return NotImplemented
        if options and any_tensor(args, options):
            return NotImplemented
        result = made(*args[:count])
        if result is not NotImplemented and result._grad_edge is not None:
            result._grad_edge.bare = op.held_apply or False
        return result

    return called

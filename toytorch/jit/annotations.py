"""Types as TorchScript's comments name them, under the names of `torch.jit.annotations`."""

from __future__ import annotations

from typing import Any, Optional, Union

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn
from toytorch.jit.script.annotations import Broadcasting
from toytorch.jit.script.reading import read_function

__all__ = [
    "Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List",
    "Optional", "Tensor", "Tuple", "Union", "get_signature",
]  # fmt: skip

Dict, List, Tuple = dict, list, tuple
BroadcastingList1, BroadcastingList2, BroadcastingList3 = map(Broadcasting, (1, 2, 3))


def get_signature(
    fn: Fn, rcb: object = None, loc: object = None, is_method: bool = False
) -> tuple[list[Any], Any] | None:
    """The types of the parameters and of the result, as annotations or a comment tell them; None
    where neither does.

    >>> def double(x: int) -> float: ...
    >>> print(*get_signature(double)[0])
    int
    """
    from toytorch.jit.script.base import Session  # a circle otherwise
    from toytorch.jit.script.compiler import Compiler

    program = read_function(fn)
    tree = program.tree
    if (
        tree.returns is None
        and tree.type_comment is None
        and not any(a.annotation for a in tree.args.args)
    ):
        return None
    compiler = Compiler(program, Session(), tree.name)
    params = compiler.parameters()
    return [p.type for p in params], compiler.result_hint()

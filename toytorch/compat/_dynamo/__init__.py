"""Names of `torch._dynamo` that libraries use, over this package's own compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from toytorch.compat._dynamo import config, eval_frame
from toytorch.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)
from toytorch.core.tensor import Tensor
from toytorch.jit.compile import OptimizedModule, compile

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable",
    "disallow_in_graph", "eval_frame", "exc", "forbid_in_graph", "graph_break", "is_compiling",
    "list_backends", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic",
    "optimize", "reset",
]  # fmt: skip


class Unsupported(RuntimeError):
    """What a program does that cannot be compiled; this compiler runs it in Python instead."""


exc = SimpleNamespace(Unsupported=Unsupported, TorchDynamoException=RuntimeError)


def graph_break(msg: str = "") -> None:
    """Asks for the graph to end here: graphs end where they have to."""


def optimize(backend: Any = "inductor", **options: Any) -> Callable[..., Any]:
    """A decorator that compiles: the older way to say `torch.compile(…, backend=…)`."""
    return functools.partial(compile, backend=backend, **options)


forbid_in_graph = disallow_in_graph = disable


def mark_dynamic(t: Tensor, index: object, **limits: object) -> None:
    """Says that a size changes from call to call: a graph is made for each shape anyway."""


def maybe_mark_dynamic(t: Tensor, index: object) -> None:
    """The same, as a wish."""


def mark_static(t: object, index: object = None) -> None:
    """Says that a size stays as it is: a graph is made for each shape anyway."""


def mark_static_address(t: object, guard: bool = True) -> None:
    """Says that a tensor's memory stays where it is: graphs read it where it is."""

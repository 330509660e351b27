"""`torch._dynamo`: the compiler's marks and switches under the names that libraries import."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from toytorch.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "reset",
]

config = SimpleNamespace(suppress_errors=False, cache_size_limit=8, recompile_limit=8)  # kept only


def is_dynamo_supported() -> bool:
    """Whether functions can be compiled: always."""
    return True


def graph_break(msg: str = "") -> None:
    """Does nothing: a function is compiled whole or not at all."""


def mark_dynamic(t: Any, index: Any, **bounds: int) -> None:
    """Does nothing: each shape has a plan of its own."""


mark_static = mark_dynamic

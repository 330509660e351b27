"""Around `toytorch.compile`, under the names of `torch.compiler`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from toytorch.facts import state
from toytorch.jit.compile import compile
from toytorch.jit.tracer import running

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
]


def is_compiling() -> bool:
    """Whether this call is being compiled."""
    tracer = running() if state.fast_path is state.SLOW else None
    return tracer is not None and tracer.captured is not None


def is_dynamo_compiling() -> bool:
    """The same: there is one compiler here."""
    return is_compiling()


def is_exporting() -> bool:
    """Whether this call is being exported: never, exporting traces."""
    return False


def reset() -> None:
    """Does nothing: what is compiled belongs to the compiled function, and goes with it."""


def list_backends(exclude_tags: tuple[str, ...] = ("debug", "experimental")) -> list[str]:
    """The names of the compilers that there are.

    >>> list_backends()
    ['inductor']
    """
    return ["inductor"]


def allow_in_graph(fn: Callable[..., Any]) -> Any:
    """The function as it is: any function may stand in a graph."""
    return fn


def assume_constant_result(fn: Callable[..., Any]) -> Any:
    """The function as it is: what it gives while a call is compiled is a constant anyway."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """Does nothing: no CUDA graphs are made behind a program's back."""


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is not compiled; a graph that meets it gives up, and Python runs instead."""
    if fn is None:
        return lambda f: disable(f, recursive, reason=reason)
    if not callable(fn):
        raise RuntimeError(f"disable expects a callable, got {type(fn)}")
    return _outside(fn, reason)


def _outside(fn: Callable[..., Any], reason: str | None) -> Callable[..., Any]:
    @functools.wraps(fn)
    def run(*args: object, **kwargs: object) -> Any:
        state.beside(reason or f"{getattr(fn, '__name__', fn)} is not to be compiled")
        return fn(*args, **kwargs)

    return run

"""Around `toytorch.compile`, under the names of `torch.compiler`."""

from __future__ import annotations

import functools
from typing import Any

from numpy import ndarray

from toytorch.core.tensor import Tensor
from toytorch.facts import pytree, state
from toytorch.facts.hints import Fn
from toytorch.jit.compile import compile, set_stance
from toytorch.jit.tracer import running
from toytorch.ops.creation.from_data import from_numpy

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends",
    "nested_compile_region", "reset", "set_default_backend", "set_stance", "substitute_in_graph",
    "wrap_numpy",
]  # fmt: skip


_usual: dict[str, Any] = {"backend": "inductor"}


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


def get_default_backend() -> Any:
    """The compiler that `compile` uses where it is told none."""
    return _usual["backend"]


def set_default_backend(backend: Any) -> None:
    """Says what `get_default_backend` tells: there is one compiler, which takes any name."""
    _usual["backend"] = "inductor" if backend is None else backend


def nested_compile_region(fn: Any = None, **options: object) -> Any:
    """The function as it is: what is called several times is compiled into its caller."""
    return fn if fn is not None else lambda f: f


def substitute_in_graph(original_fn: Any, **options: object) -> Any:
    """A decorator: the function as it is; graphs are recorded from what runs."""
    return lambda traceable_fn: traceable_fn


def wrap_numpy(fn: Fn) -> Fn:
    """A function of NumPy's arrays as one of tensors."""

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        def arrays(value: Any) -> Any:
            return value.numpy() if isinstance(value, Tensor) else value

        found = fn(*pytree.tree_map(arrays, args), **pytree.tree_map(arrays, kwargs))
        return pytree.tree_map(lambda v: from_numpy(v) if isinstance(v, ndarray) else v, found)

    return wrapped


def allow_in_graph(fn: Fn) -> Any:
    """The function as it is: any function may stand in a graph."""
    return fn


def assume_constant_result(fn: Fn) -> Any:
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


def _outside(fn: Fn, reason: str | None) -> Fn:
    @functools.wraps(fn)
    def run(*args: object, **kwargs: object) -> Any:
        state.beside(reason or f"{getattr(fn, '__name__', fn)} is not to be compiled")
        return fn(*args, **kwargs)

    return run

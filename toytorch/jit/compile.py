"""`toytorch.compile`: a function that is traced when it is called, once for every kind of call."""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toytorch.core import state
from toytorch.core.pytree import tree_flatten, tree_unflatten
from toytorch.core.tensor import Tensor
from toytorch.jit.function import TracedFunction
from toytorch.jit.surroundings import Getter, Surroundings
from toytorch.jit.trace import traced_function
from toytorch.jit.tracer import TracerWarning
from toytorch.nn import Module

LIMIT = 64  # kinds of calls that a function is compiled for; others run as they are


@dataclass
class Traced:
    """A graph, where to read the tensors that are no arguments, and the arguments that are no
    tensors: what a key knows by its id must not make room for others."""

    function: TracedFunction
    places: list[Getter]
    kept: Any


class Compiled:
    """A function with a graph for every kind of arguments it was called with.

    A kind is the structure of the arguments, shapes and types of tensors, values of everything
    else it reads (closures, globals, attributes of modules: `surroundings`), and whether gradients
    are recorded. Parameters are inputs of the graph like any other tensor it comes upon. Where the
    function looks at a tensor's elements (`if x.sum() > 0`), it runs as it is, and `reason` says
    why.
    """

    def __init__(self, function: Callable[..., Any], module: Module | None,
                 fullgraph: bool) -> None:
        self.function, self.module, self.fullgraph = function, module, fullgraph
        self.graphs: dict[Any, Traced | None] = {}
        self.surroundings = Surroundings(function, module)
        self.reason = ""
        functools.update_wrapper(self, function, updated=())

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if state.shortcut is state.SLOW:
            return self.function(*args, **kwargs)
        traced, tensors = self.traced(args, kwargs)
        if traced is None:
            return self.function(*args, **kwargs)
        return traced.function(*tensors, *[place() for place in traced.places])

    def traced(self, args: Any, kwargs: Any) -> tuple[Traced | None, list[Any]]:
        """The graph for such a call (None: it runs as it is), and its arguments' tensors."""
        leaves, spec = tree_flatten((args, kwargs))
        places = [i for i, v in enumerate(leaves) if isinstance(v, Tensor)]
        key = self.key(leaves, spec)
        try:
            found = self.graphs[key]
        except KeyError:
            found = self.trace(leaves, spec, places) if len(self.graphs) < LIMIT else None
            self.graphs[key] = found
        return found, [leaves[i] for i in places]

    def key(self, leaves: list[Any], spec: Any) -> Any:
        """The kind of a call."""
        return (spec, state.local.grad, *self.surroundings.kind(leaves))

    def trace(self, leaves: list[Any], spec: Any, places: list[int]) -> Traced | None:
        """The graph of one kind of call; None where it cannot be one graph."""
        def run(*tensors: Any) -> Any:
            full = list(leaves)
            for i, t in zip(places, tensors):
                full[i] = t
            args, kwargs = tree_unflatten(full, spec)
            return self.function(*args, **kwargs)
        met: list[Tensor] = []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TracerWarning)
                found = traced_function(run, tuple(leaves[i] for i in places), "compiled",
                                        self.module, strict=False, met=met)
        except RuntimeError as why:  # a graph break, or what tracing itself refuses
            if self.fullgraph:
                raise
            self.reason = str(why)
            return None
        own = [self.surroundings.place_of(t, leaves) for t in met]
        return Traced(found, own, [v for v in leaves if not isinstance(v, Tensor)])


class OptimizedModule(Module):
    """A module whose call is compiled; parameters are those of `_orig_mod`."""

    def __init__(self, module: Module, fullgraph: bool) -> None:
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "forward", Compiled(module.__call__, module, fullgraph))

    def train(self, mode: bool = True) -> Any:
        self._orig_mod.train(mode)
        return super().train(mode)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_orig_mod"), name)


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None,
            backend: Any = "inductor", mode: str | None = None,
            options: dict[str, Any] | None = None, disable: bool = False) -> Any:
    """A faster function or module: graphs, fused kernels and one backward pass, made when called.

    `backend`, `mode`, `options` and `dynamic` are accepted and change nothing: there is one
    compiler. With `fullgraph`, a function that cannot become one graph is an error. Like
    `torch.compile`.

    >>> import toytorch as torch
    >>> @torch.compile
    ... def f(x):
    ...     return torch.exp(x - 1) * 2
    >>> f(torch.ones(3))
    tensor([2., 2., 2.])
    """
    if model is None:
        return lambda m: compile(m, fullgraph=fullgraph, dynamic=dynamic, backend=backend,
                                 mode=mode, options=options, disable=disable)
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified "
                           "at the same time.")
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph)
    if not callable(model):
        raise RuntimeError(f"torch.compile expects a function or a module, got {type(model)}")
    return Compiled(model, getattr(model, "__self__", None) if isinstance(
        getattr(model, "__self__", None), Module) else None, fullgraph)

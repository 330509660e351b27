"""`toytorch.compile`: a function that is traced when it is called, once for every kind of call."""

from __future__ import annotations

import contextlib
import copy
import functools
import types
from typing import Any

from toytorch.core.subclasses import asks
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.hints import Args, Fn, Kwargs
from toytorch.facts.pytree import TreeSpec, tree_flatten, tree_unflatten
from toytorch.jit.guards import GuardedState
from toytorch.jit.recording import Recorded, Recording
from toytorch.jit.side_effects import CHANGES, SideEffects
from toytorch.jit.tracer import GraphBreak
from toytorch.nn import Module

LIMIT = 16  # kinds of calls that a function is compiled for (PyTorch: 8); others run as they are

TENSORS = {Tensor}
MISSING: Any = object()  # no call of this kind was met yet
stance = "default"  # how compiled functions run: see set_stance


class set_stance(contextlib.ContextDecorator):
    """How compiled functions run from now on: at once, in a `with` block, or in calls of a function.

    force_eager          as plain Python
    eager_on_recompile   calls of a kind not met before as plain Python
    fail_on_recompile    such a call is a RuntimeError

    Raises RuntimeError for a stance that PyTorch has not.
    """

    def __init__(self, stance: str = "default", **options: object) -> None:
        if stance not in ("default", "force_eager", "eager_on_recompile", "fail_on_recompile"):
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        self.stance, self.before = stance, globals()["stance"]
        self.__enter__()

    def __enter__(self) -> None:
        globals()["stance"] = self.stance

    def __exit__(self, *error: object) -> None:
        globals()["stance"] = self.before

    def __call__(self, func: Any) -> Any:
        self.__exit__()
        return super().__call__(func)


class Compiled:
    """A function with a graph for every kind of call it has seen.

    A kind is the structure of the arguments, shapes and types of tensors, values of everything
    else that it reads (`guarded`), and whether gradients are recorded. Tensors it comes upon,
    parameters among them, are inputs of the graph. The first call of a kind runs as it is, and is
    written down meanwhile; where it does something that no graph would do (it looks at elements,
    prints, puts gradients into leaves), all calls of its kind do, and `reason` says why.
    """

    def __init__(self, function: Fn, module: Module | None, fullgraph: bool) -> None:
        self.function, self.module, self.fullgraph = function, module, fullgraph
        self.graphs: dict[Any, Recorded | None] = {}
        self.guarded = GuardedState(function, module)
        self.reason = ""
        self.changing: set[Any] = set()  # kinds whose first call changed what it reads
        functools.update_wrapper(self, function, updated=())

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        function, module = copy.deepcopy((self.function, self.module), memo)
        return Compiled(function, module, self.fullgraph)  # whose graphs are still to be made

    def __call__(self, *args: object, **kwargs: Any) -> Any:
        if state.fast_path is state.SLOW and state.watched_or_asked():
            return self.function(*args, **kwargs)
        if not kwargs and {*map(type, args)} == TENSORS:
            leaves, spec = list(args), flat(len(args))  # the common call
        else:
            leaves, spec = tree_flatten((args, kwargs))
            if any(isinstance(v, Tensor) and asks(v.__class__) for v in leaves):
                self.reason = "an argument is of a class that answers for itself"
                return self.function(*args, **kwargs)
        if stance == "force_eager":
            return self.function(*args, **kwargs)
        key = self.key(leaves, spec)
        recorded = self.graphs.get(key, MISSING)
        if recorded is MISSING or (
            recorded is not None and recorded.shadows and not recorded.holds(leaves)
        ):
            if stance == "default":
                return self.first(leaves, spec, key)
            if stance == "eager_on_recompile":
                return self.function(*args, **kwargs)
            raise RuntimeError(
                "Detected recompile when torch.compile stance is 'fail_on_recompile'. "
                f"function name: '{getattr(self, '__name__', '')}'"
            )
        return self.function(*args, **kwargs) if recorded is None else recorded(leaves)

    def key(self, leaves: list[Any], spec: TreeSpec) -> Any:
        """The kind of a call."""
        arrays: list[int] = []
        for v in leaves:  # a comprehension would be one call more
            if isinstance(v, Tensor):
                arrays.append(id(v._array))
        same = None if len(set(arrays)) == len(arrays) else pattern(leaves)
        return (spec, state.local.grad, same, *self.guarded.kind(leaves))

    def first(self, leaves: list[Any], spec: TreeSpec, key: Any) -> Any:
        """The result of a call of a new kind."""
        if len(self.graphs) >= LIMIT and key not in self.graphs:
            self.reason = f"it was called in more than {LIMIT} ways"
            args, kwargs = tree_unflatten(leaves, spec)
            return self.function(*args, **kwargs)
        effects = SideEffects(self.guarded, leaves)
        recording = Recording(self.module, self.fullgraph)
        result = recording.run(self.function, leaves, spec, effects)
        why = recording.reason or effects.found
        if why:
            self.reason = why
            if why == CHANGES and key not in self.changing and len(self.changing) < LIMIT:
                self.changing.add(key)  # as a cache does that was empty: the next call may not
                return result
            if self.fullgraph:
                raise GraphBreak(why)
        self.graphs[key] = None if why else recording.finished(self.guarded)
        return result

    def recorded(self, args: Args, kwargs: Kwargs) -> Recorded | None:
        """What runs for such a call, which is made if there was none yet."""
        leaves, spec = tree_flatten((args, kwargs))
        key = self.key(leaves, spec)
        found = self.graphs.get(key)
        if key not in self.graphs or (found is not None and not found.holds(leaves)):
            self.first(leaves, spec, key)
        return self.graphs.get(key)


def pattern(leaves: list[Any]) -> tuple[Any, ...]:
    """Which tensors are one, and which are over one array, as a tensor and what `detach` gives."""
    tensors = [v for v in leaves if isinstance(v, Tensor)]
    return tuple(
        tuple(map(ids.index, ids))
        for ids in ([id(t) for t in tensors], [id(t._array) for t in tensors])
    )


@functools.cache
def flat(count: int) -> Any:
    """How arguments are nested that are so many tensors."""
    return tree_flatten(((None,) * count, {}))[1]


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


def compile(
    model: object = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """A faster function or module: graphs, fused kernels and one backward pass, made when called.

    `backend`, `mode`, `options` and `dynamic` are accepted and change nothing: there is one
    compiler. With `fullgraph`, a function that cannot become one graph is an error. Like
    `torch.compile`.

    >>> @torch.compile
    ... def f(x):
    ...     return torch.exp(x - 1) * 2
    >>> f(torch.ones(3))
    tensor([2., 2., 2.])
    """
    if model is None:
        words: Any = {"fullgraph": fullgraph, "dynamic": dynamic, "backend": backend}
        return lambda m: compile(m, **words, mode=mode, options=options, disable=disable)
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    return Compiled(
        model,
        getattr(model, "__self__", None)
        if isinstance(getattr(model, "__self__", None), Module)
        else None,
        fullgraph,
    )

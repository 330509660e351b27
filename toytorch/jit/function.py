"""What `trace` and `script` give back: a function with a graph."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable, Sequence
from typing import IO, Any

from toytorch.facts import state
from toytorch.facts.hints import Args
from toytorch.facts.pytree import tree_flatten, tree_unflatten
from toytorch.jit import executor
from toytorch.jit.failures import reraise
from toytorch.jit.ir import Graph
from toytorch.jit.passes.inline import inline
from toytorch.nn.modules.module import Module


class ScriptFunction:
    """A function that runs as a graph, like `torch.jit.ScriptFunction`.

    >>> @torch.jit.script
    ... def double(x):
    ...     return x + x
    >>> print(double.code)
    def double(x: Tensor) -> Tensor:
      _0 = torch.add(x, x)
      return _0
    """

    def __init__(self, name: str, graph: Graph, owner: Module | None = None) -> None:
        self.name = self.qualified_name = self.__name__ = name
        self.graph, self.owner = graph, owner
        self.executor = executor.Executor(graph, owner)

    @property
    def inlined_graph(self) -> Graph:
        """The graph with every called function and method in the place of its call."""
        return inline(self.graph)

    @property
    def code(self) -> str:
        """The graph as Python source, which `toytorch.jit.script` reads again."""
        from toytorch.jit.source import source_of  # a circle otherwise

        return source_of(self.graph)

    def graph_for(self, *inputs: Any) -> Graph:
        """The graph as it is run for inputs like these: specialised, optimised, fused."""
        return self.executor.graph_for(self.flat(inputs))

    def flat(self, args: Args) -> list[Any]:
        """The graph's inputs from a call's arguments."""
        return list(args)

    def owned_by(self, owner: Module) -> Any:
        """The same function of a copy of its module."""
        made = copy.copy(self)
        made.owner = owner
        made.executor = executor.Executor(self.graph, owner, self.executor.known)
        made.executor.passes = self.executor.passes
        return made

    def save(
        self, f: str | os.PathLike[str] | IO[bytes], _extra_files: dict[str, Any] | None = None
    ) -> None:
        """Writes the function to a path or a binary file, as `jit.save` does."""
        from toytorch.jit.archive import save  # a circle otherwise

        save(self, f, _extra_files)

    def __call__(self, *args: object) -> Any:
        try:
            return self.executor.run(args)
        except Exception as error:
            reraise(error)

    def __copy__(self) -> Any:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = object.__new__(type(self))
        made.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return made

    def __reduce__(self) -> Any:
        raise pickle.PickleError("ScriptFunction cannot be pickled")

    def __repr__(self) -> str:
        return f"<toytorch.jit.ScriptFunction {self.name}>"


class TracedFunction(ScriptFunction):
    """A traced function: nested arguments are flattened, and a new shape is traced anew.

    `again` traces for given arguments; it is None in a function that was loaded from a file, whose
    one graph then serves all shapes. `nested` is False where every argument is a tensor. The
    versions for other shapes put their plans into the same table, so that one look finds the plan
    of any call; `versions` is asked when a plan is to be made, and where a graph is run without.
    """

    def __init__(
        self,
        name: str,
        graph: Graph,
        spec: Any,
        owner: Module | None = None,
        again: Callable[..., TracedFunction] | None = None,
        shapes: tuple[Any, ...] = (),
        nested: bool = True,
        known: int = 0,
    ) -> None:
        super().__init__(name, graph, owner)
        self.executor.known = known
        self.names: list[str] = []  # of the parameters, where they have names
        self.spec, self.again, self.nested = spec, again, nested
        self.versions: dict[Any, TracedFunction] = {shapes: self}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = (*args, *(kwargs.pop(n) for n in self.names[len(args) :] if n in kwargs))
            if kwargs:
                raise RuntimeError(
                    f"{self.name}() Unknown keyword argument '{next(iter(kwargs))}' for operator "
                    f"'{self.name}'."
                )
        plain = not self.nested and self.owner is None and self.spec is None
        if plain and (state.fast_path is not state.SLOW or not state.watched_or_asked()):
            plan = self.executor.plans.get(self.executor.key(args))
            if plan is not None:
                return plan(args)
        flat = tree_flatten(args)[0] if self.nested else args
        version = self.version(flat, args)
        result = version.executor.run(flat)
        if version.spec is None:
            return result
        results = list(result) if isinstance(result, tuple) else [result]
        return tree_unflatten(results, version.spec)

    def owned_by(self, owner: Module) -> Any:
        made = super().owned_by(owner)
        made.again = None  # which would trace the old module
        made.versions = {next(iter(self.versions)): made}
        return made

    def version(self, flat: Sequence[Any], args: Args) -> TracedFunction:
        """The trace for the shapes of arguments, made now if there was none."""
        kind = signature(flat)
        found = self.versions.get(kind)
        if found is None:
            found = self.versions[kind] = self if self.again is None else self.again(*args)
            found.executor.passes = self.executor.passes
            if found.owner is None and found.spec is None:
                found.executor.plans = self.executor.plans
        return found

    def flat(self, args: Args) -> list[Any]:
        return list(tree_flatten(args)[0])


def signature(flat: Sequence[Any]) -> tuple[Any, ...]:
    """The layouts and types a trace was made for."""
    return tuple(
        [
            (v._array.shape, getattr(v._array, "strides", None), v.dtype)
            if hasattr(v, "_array")
            else v
            for v in flat
        ]
    )

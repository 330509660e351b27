"""Modules whose methods run as graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toytorch.jit.function import ScriptFunction
from toytorch.jit.ir import Graph
from toytorch.nn import Module

if TYPE_CHECKING:
    from toytorch.core.tensor import Tensor


class ScriptModule(Module):
    """A module with compiled methods, like `torch.jit.ScriptModule`.

    It shares parameters, buffers and children with the module it was made of; attributes that are
    no tensors are read there too.
    """

    def __init__(self, original: Module, methods: dict[str, ScriptFunction]) -> None:
        super().__init__()
        object.__setattr__(self, "_original", original)
        object.__setattr__(self, "_methods", methods)
        self.__dict__.update(
            _parameters=original._parameters,
            _buffers=original._buffers,
            _modules=original._modules,
            training=original.training,
            _non_persistent_buffers_set=getattr(original, "_non_persistent_buffers_set", set()),
        )
        for function in methods.values():
            function.owner = function.executor.owner = self

    def __getattr__(self, name: str) -> Any:
        methods = self.__dict__.get("_methods", {})
        if name in methods:
            return methods[name]
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "_original" in self.__dict__:
                return getattr(self._original, name)
            raise

    @property
    def original_name(self) -> str:
        """The name of the class the module was written as."""
        return type(self._original).__name__

    @property
    def graph(self) -> Graph:
        """The graph of `forward`."""
        return self._methods["forward"].graph  # a ScriptFunction

    @property
    def inlined_graph(self) -> Graph:
        """The graph of `forward` with all calls inlined."""
        return self._methods["forward"].inlined_graph

    @property
    def code(self) -> str:
        """`forward` as source."""
        return self._methods["forward"].code

    def graph_for(self, *args: object) -> Graph:
        """The graph as it is run for inputs like these."""
        return self._methods["forward"].graph_for(*args)

    def forward(self, *args: Tensor, **kwargs: object) -> Any:
        return self._methods["forward"](*args, **kwargs)

    def train(self, mode: bool = True) -> Any:
        self._original.train(mode)
        self.training = mode
        return self

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def _get_name(self) -> str:
        return type(self).__name__


class RecursiveScriptModule(ScriptModule):
    """What `script` makes of a module."""


class TracedModule(ScriptModule):
    """What `trace` makes of a module."""

"""Calls of modules and of methods: their own graphs, or one node where Python runs them."""

from __future__ import annotations

import inspect
from typing import Any

from toytorch.facts.hints import Kwargs
from toytorch.facts.package import is_ours
from toytorch.jit import types
from toytorch.jit.ir import Value
from toytorch.jit.script import markers
from toytorch.jit.script.base import Compiled
from toytorch.jit.script.calls import Calls
from toytorch.jit.script.errors import CompileError, FrontendError
from toytorch.jit.script.values import At, Given, Items, Known, ModuleMethod, ModuleValue
from toytorch.nn import ModuleDict, Sequential

PAIR = types.Tuple((types.TENSOR, types.TENSOR))
RESULTS: dict[str, types.Type] = {  # of modules that Python runs, where it is not one tensor
    "LSTM": types.Tuple((types.TENSOR, PAIR)),
    "GRU": PAIR,
    "RNN": PAIR,
    "LSTMCell": PAIR,
    "MultiheadAttention": types.Tuple((types.TENSOR, types.Optional(types.TENSOR))),
    "AdaptiveLogSoftmaxWithLoss": PAIR,
}
CONTAINERS = (Sequential,)  # whose mistakes are those of the modules inside
CONTAINER = (
    *("values", "items", "keys", "children", "named_children", "modules", "named_modules"),
    *("parameters", "named_parameters", "buffers", "named_buffers"),
)
ANYWHERE = CONTAINER[3:]  # every module has these


class Modules(Calls):
    """Emits calls of modules."""

    def module_attribute(self, item: ModuleValue, name: str, at: At) -> Any:
        if name == "_modules":
            return item  # its values() and items() are asked next
        if name in CONTAINER and (
            name in ANYWHERE
            or not hasattr(type(item.module), name)
            or isinstance(item.module, ModuleDict)
        ):
            return ModuleMethod(item, name, None)
        return super().module_attribute(item, name, at)

    def call_bound(self, method: ModuleMethod, args: Given, kwargs: Kwargs, at: At) -> Any:
        """A method of a module or of an object: compiled when it is first called."""
        owner = method.owner
        if isinstance(owner, ModuleValue) and method.name in CONTAINER and not args:
            return self.children(owner, method.name, at)
        value = owner.value if isinstance(owner, ModuleValue) else owner
        ready = getattr(method.function, "compiled", None)
        if isinstance(ready, Compiled):
            return self.call_compiled(ready, args, kwargs, at, value)
        modifier = getattr(method.function, markers.MODIFIER, "")
        if modifier in ("ignore", "unused"):
            return self.call_outside(method.function, modifier, args, kwargs, at, value)
        if isinstance(owner, ModuleValue) and is_library(type(owner.module)):
            return self.call_library_method(owner, method, args, kwargs, at)
        compiled = self.compile_method(owner, method.name, method.function, at)
        result = self.call_compiled(compiled, args, kwargs, at, value)
        return Known(None) if compiled.returns == types.NONE else result

    def children(self, item: ModuleValue, name: str, at: At) -> Items:
        """The children of a module, or what its children hold, as a loop sees them."""
        if name.removeprefix("named_") in ("modules", "parameters", "buffers"):
            kind = name.removeprefix("named_")
            found = []
            for path, _ in getattr(item.module, "named_" + kind)():
                part: Any = item
                for step in path.split(".") if path else ():
                    part = self.attribute(part, step, at)
                found.append(Items([Known(path), part]) if name != kind else part)
            return Items(found)
        pairs = [Items([Known(k), self.attribute(item, k, at)]) for k in item.module._modules]
        if name == "keys":
            return Items([p.items[0] for p in pairs])
        if name in ("values", "children"):
            return Items([p.items[1] for p in pairs])
        return Items(pairs)

    def call_module(self, item: ModuleValue, args: Given, kwargs: Kwargs, at: At) -> Any:
        """module(…): its forward, with its hooks if it has some."""
        module = item.module
        if any(
            getattr(module, name, None)
            for name in (
                "_forward_hooks",
                "_forward_pre_hooks",
                "_backward_hooks",
                "_backward_pre_hooks",
            )
        ):
            return self.call_outside_module(item, args, kwargs, at)
        forward = inspect.getattr_static(type(module), "forward", None)
        if "_methods" in module.__dict__ or not inspect.isfunction(forward):
            return self.call_scripted(item, args, kwargs, at)
        return self.call_bound(ModuleMethod(item, "forward", forward), args, kwargs, at)

    def call_scripted(self, item: ModuleValue, args: Given, kwargs: Kwargs, at: At) -> Any:
        """A module that was compiled before."""
        forward = item.module.__dict__.get("_methods", {}).get("forward")
        compiled = getattr(forward, "compiled", None)
        if compiled is None and hasattr(forward, "graph") and not kwargs:
            return self.call_traced(forward, args, at, item.value)
        if compiled is None:
            return self.call_outside_module(item, args, kwargs, at)
        return self.call_compiled(compiled, args, kwargs, at, item.value)

    def call_library_method(
        self, owner: ModuleValue, method: ModuleMethod, args: Given, kwargs: Kwargs, at: At
    ) -> Any:
        """A method of one of the framework's modules: compiled if it can be, else run by Python."""
        given = [
            a if isinstance(a, (ModuleValue, ModuleMethod)) else self.as_value(a, at) for a in args
        ]
        kinds = tuple(v.type for v in given if isinstance(v, Value))
        try:
            compiled = self.compile_method(owner, method.name, method.function, at, kinds)
            inputs = self.inputs_of(compiled, given, kwargs, at)
        except (CompileError, FrontendError, OSError):
            if method.name != "forward" or type(owner.module) in CONTAINERS:
                raise
            return self.call_outside_module(owner, given, kwargs, at)
        called = {"name": compiled.name, "Subgraph": compiled.graph, "_compiled": compiled}
        return self.one("prim::CallMethod", [owner.value, *inputs], compiled.returns, at, called)

    def call_outside_module(self, item: ModuleValue, args: Given, kwargs: Kwargs, at: At) -> Any:
        """One node that calls the module."""
        inputs = [self.as_value(a, at) for a in args]
        named = {k: self.as_value(v, at) for k, v in kwargs.items()}
        attributes: dict[str, Any] = {"name": "__call__"}
        if named:
            attributes["_names"] = tuple(named)
        result = RESULTS.get(type(item.module).__name__) or self.declared_result(
            type(item.module).forward
        )
        result = types.TENSOR if result in (types.ANY, types.NONE) else result
        return self.one(
            "prim::CallMethod", [item.value, *inputs, *named.values()], result, at, attributes
        )


def is_library(kind: type) -> bool:
    """Whether a class is one of the framework's own."""
    return is_ours(kind.__module__)

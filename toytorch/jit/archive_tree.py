"""The tree of modules in an archive: what hangs on each of them, without their code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.device import device
from toytorch.facts.dtype import dtype
from toytorch.jit.archive_parts import DEPTH, Values
from toytorch.jit.function import ScriptFunction
from toytorch.jit.ir import Graph, Value
from toytorch.jit.module import RecursiveScriptModule, ScriptModule, TracedModule
from toytorch.jit.passes.attributes_to_inputs import attribute_paths
from toytorch.jit.passes.inline import inline
from toytorch.nn.modules.module import Module
from toytorch.nn.parameter import Parameter

CLASSES = {
    "TracedModule": RecursiveScriptModule,
    "TopLevelTracedModule": RecursiveScriptModule,
    "RecursiveScriptModule": RecursiveScriptModule,
    "Scripted": RecursiveScriptModule,
    "ScriptModule": ScriptModule,
}


OWN = ("_original", "_methods", "_defined", "_inside")  # attributes of a compiled module itself
NOT_SAVED = {*vars(Module()), *OWN, "_jit_attributes", "_constants"}
PLAIN = (bool, int, float, complex, str, list, tuple, dict, Tensor, dtype, device, type(None))


def tree_of(module: Any, methods: dict[str, ScriptFunction], values: Values) -> dict[str, Any]:
    """The modules below a module with their tensors, and the attributes that its graphs read."""
    tree = branch(module, values, not isinstance(module, TracedModule))
    for function in methods.values():
        for path in attribute_paths(function.graph):
            place: dict[str, Any] = tree
            owner = module
            for name in path[:-1]:
                place, owner = place["children"][name], getattr(owner, name)
            name = path[-1]
            if name not in place["parameters"] and name not in place["buffers"]:
                place["attributes"][name] = values.packed(getattr(owner, name))
    return tree


def branch(module: Module, values: Values, whole: bool, depth: int = 0) -> dict[str, Any]:
    """One module and those below it; `whole` with the attributes that are no tensors of its own."""
    if depth > DEPTH:
        raise RuntimeError("modules stand too deep in each other")
    passing: set[str] = getattr(module, "_non_persistent_buffers_set", set())
    return {
        "class": getattr(module, "original_name", type(module).__name__),
        "training": module.training,
        "parameters": {k: values.packed(v) for k, v in module._parameters.items()},
        "buffers": {k: [values.packed(v), k not in passing] for k, v in module._buffers.items()},
        "attributes": dict(plain_attributes(module, values)) if whole else {},
        "children": {
            k: None if m is None else branch(m, values, whole, depth + 1)
            for k, m in module._modules.items()
        },
    }


def plain_attributes(module: Module, values: Values) -> Iterator[tuple[str, Any]]:
    """The attributes that are numbers, text, tensors without a name, or made of these."""
    original = module.__dict__.get("_original")
    for name, value in {**vars(original or module), **vars(module)}.items():
        if name in NOT_SAVED or hasattr(Module, name) or not isinstance(value, PLAIN):
            continue
        try:
            yield name, values.packed(value)
        except RuntimeError:  # a list of something else, which stays behind as in PyTorch
            continue


def module_from(
    tree: Any, kind: Any, methods: dict[str, ScriptFunction], values: Values
) -> ScriptModule:
    """A compiled module of an archive."""
    for function in methods.values():
        check_attributes(function.graph, tree)
    return CLASSES[kind](grown(tree, values), methods)


def check_attributes(graph: Graph, tree: object) -> None:
    """Refuses a graph that reads or writes anything but the attributes of its archive's modules."""
    made = inline(graph)
    places: dict[Value, Any] = {} if tree is None else dict.fromkeys(made.inputs[:1], tree)
    for node in made.walk():
        if node.kind not in ("prim::GetAttr", "prim::SetAttr"):
            continue
        place, name = places.get(node.inputs[0]), node.attributes["name"]
        if place is None or not isinstance(name, str):
            raise ValueError(f"{node.kind} of what is no module, at {node.inputs[0]!r}")
        if node.outputs and name in place["children"]:
            places[node.output] = place["children"][name]
        elif not any(name in place[k] for k in ("parameters", "buffers", "attributes")):
            raise ValueError(f"the archive has no attribute {name!r}")


def grown(tree: Any, values: Values, depth: int = 0) -> Module:
    """A module that has the tensors, attributes and children of a saved one, and no code."""
    name = tree["class"]
    if depth > DEPTH or not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"there is no module {str(name)[:80]!r}")
    made: Module = type(name, (Module,), {"__module__": "__torch__"})()
    for key, value in tree["parameters"].items():
        made.register_parameter(key, expected(values.of(value), Parameter))
    for key, (value, persistent) in tree["buffers"].items():
        made.register_buffer(key, expected(values.of(value), Tensor), bool(persistent))
    for key, child in tree["children"].items():
        part = child and RecursiveScriptModule(grown(child, values, depth + 1), {})
        made.add_module(key, part)
    for key, value in tree["attributes"].items():
        if key.startswith("__") or key in OWN or (hasattr(made, key) and key != "training"):
            raise ValueError(f"an attribute may not be called {key!r}")
        setattr(made, key, values.of(value))
    made.training = bool(tree["training"])
    return made


def expected(value: object, kind: type) -> Any:
    """The value, if it is of a class or None."""
    if value is not None and not isinstance(value, kind):
        raise ValueError(f"expected a {kind.__name__}, found a {type(value).__name__}")
    return value

"""`jit.freeze`: a module in which nothing is left to change, so that more can be computed now."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.jit import types
from toytorch.jit.builtins import Builtin
from toytorch.jit.executor import arrays_of
from toytorch.jit.function import ScriptFunction, TracedFunction
from toytorch.jit.ir import Graph, Node, Value, replace
from toytorch.jit.module import RecursiveScriptModule, ScriptModule
from toytorch.jit.passes import pipeline
from toytorch.jit.passes.attributes_to_inputs import Attribute, attribute_paths, lift
from toytorch.jit.passes.constant import propagate_constants
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.jit.passes.folding import fold_batch_norm, remove_dropout
from toytorch.jit.passes.inline import inline
from toytorch.jit.passes.peephole import peephole_any_shape
from toytorch.jit.script.base import Compiled
from toytorch.jit.script.public import CompiledFunction, script_module
from toytorch.nn import Module

FREEZING = [propagate_constants, peephole_any_shape, propagate_constants, remove_dropout]
FOLDING = [fold_batch_norm, eliminate_dead_code]


def freeze(
    mod: object, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True
) -> RecursiveScriptModule:
    """A copy of a compiled module whose parameters and attributes are constants of its graphs.

    `forward`, and methods and attributes in `preserved_attrs`, stay; branches on attributes are
    decided, dropout is gone, and with `optimize_numerics` batch norms go into the layers before
    them. Buffers that `forward` writes to stay buffers. Raises RuntimeError for what is not
    compiled, a module in training mode, or an unknown name. Like `torch.jit.freeze`.

    >>> import toytorch as torch
    >>> frozen = freeze(torch.jit.trace(torch.nn.Linear(2, 1).eval(), torch.ones(1, 2)))
    >>> list(frozen.parameters()), [n.kind for n in frozen.graph.nodes][-1]
    ([], 'aten::linear')
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script "
            "or torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please"
            " call .eval() on your module before freezing."
        )
    preserved = list(preserved_attrs or ())
    wanted = [n for n in mod._methods if n == "forward" or n in preserved]
    for name in wanted:
        graph = mod._methods[name].graph
        if any(v in graph.inputs[:1] for v in graph.outputs):
            raise RuntimeError("attempted to freeze a module that return itself")
    kept: set[tuple[str, ...]] = set()
    below: list[tuple[str, ...]] = []  # methods of children
    for name in preserved:
        if name in mod._methods:
            continue
        path = tuple(name.split("."))
        try:
            found = Attribute(path).of(mod)
        except AttributeError:
            raise RuntimeError(f"Unknown name: {name}") from None
        if len(path) > 1 and callable(found) and not isinstance(found, Module):
            below.append(path)
        else:
            kept.add(path)
    passes = [*FREEZING, *FOLDING] if optimize_numerics else FREEZING
    for name in wanted:  # what one method writes to is a constant in none
        kept |= written_paths(mod._methods[name].graph, mod, kept)
    kept |= sharers(mod, kept)
    memo: dict[int, Any] = {}
    methods = {
        n: again(mod._methods[n], frozen(mod._methods[n].graph, mod, kept, passes, memo))
        for n in wanted
    }
    for method in methods.values():
        kept |= set(attribute_paths(method.graph))
    made = remains(mod, kept, below)
    return RecursiveScriptModule(made, methods)


def optimize_for_inference(
    mod: Any, other_methods: Sequence[str] | None = None
) -> RecursiveScriptModule:
    """`freeze` of the module in eval mode, like `torch.jit.optimize_for_inference`; fusion and the
    other passes come when it is called, as they do for every compiled function."""
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "optimize_for_inference expects a ScriptModule as input. Please use "
            "torch.jit.script or torch.jit.trace to script your 'nn.Module'."
        )
    return freeze(mod.eval(), list(other_methods or ()))


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: Sequence[str] | None = None
) -> None:
    """Runs on a frozen module, in place, what `freeze` does beside freezing."""
    for name in ("forward", *(preserved_methods or ())):
        function = mod._methods.get(name)
        if function is not None:
            passes = [remove_dropout, *FOLDING] if optimize_numerics else [remove_dropout]
            made = again(function, pipeline.run(function.graph, passes))
            made.owner = made.executor.owner = mod
            mod._methods[name] = made


def frozen(
    graph: Graph,
    owner: Any,
    kept: set[tuple[str, ...]],
    passes: Sequence[Any],
    memo: dict[int, Any],
) -> Graph:
    """A method's graph with constants in the place of attributes, after the passes."""
    return pipeline.run(constants_in(graph, owner, kept, memo)[0], passes)


def constants_in(
    graph: Graph, owner: Any, kept: set[tuple[str, ...]], memo: dict[int, Any]
) -> tuple[Graph, dict[Value, Attribute]]:
    """The inlined graph whose attributes are constants, and which constant was which attribute.

    A tensor stays the module's own; lists and dictionaries are copied, once for all their names.
    """
    made, attributes = lift(graph)
    written = set_on(graph, owner)
    own = len(made.inputs) - len(attributes)
    lifted, made.inputs = made.inputs[own:], made.inputs[:own]
    made._names.discard("self")  # the lifted graph has none any more
    module = made.value(types.Class(getattr(owner, "original_name", "Module")), "self")
    made.inputs.insert(0, module)
    nodes: list[Node] = []
    change: dict[Value, Value] = {}
    meaning: dict[Value, Attribute] = {}
    for v, attribute in zip(lifted, attributes):
        if isinstance(v.type, types.Class):  # some of its attributes are written to
            part = attribute.of(owner)
            for n in [n for n in made.walk() if n.kind == "prim::GetAttr" and n.inputs[0] is v]:
                name = n.attributes["name"]
                path = (*attribute.path, name)
                if written is None or (id(part), name) in written or kept_at(path, kept):
                    continue
                n.kind, n.inputs = "prim::Constant", []  # another module's of this name is
                n.attributes = {"value": own_value(getattr(part, name), memo)}
            if not any(v in n.inputs for n in made.walk()) and v not in made.outputs:
                continue
            nodes += getters(made, module, attribute, v)
            change[v] = nodes[-1].output if attribute.path else module
            continue
        if kept_at(attribute.path, kept):
            nodes += getters(made, module, attribute, v)
            change[v] = nodes[-1].output
            continue
        value = attribute.of(owner)
        constant = made.make(
            "prim::Constant",
            [],
            [(types.of(value), "self." + ".".join(attribute.path))],
            {"value": own_value(value, memo)},
        )
        nodes.append(constant)
        change[v], meaning[constant.output] = constant.output, attribute
    made.nodes = nodes + made.nodes
    replace(made, change)
    return made, meaning


def kept_at(path: tuple[str, ...], kept: set[tuple[str, ...]]) -> bool:
    """Whether an attribute, or the module it belongs to, is kept."""
    return any(path[: len(k)] == k for k in kept)


def own_value(value: object, memo: dict[int, Any]) -> Any:
    """What becomes a constant of the graph."""
    return value.detach() if isinstance(value, Tensor) else copy.deepcopy(value, memo)


def set_on(graph: Graph, owner: object) -> set[tuple[int, str]] | None:
    """The attributes that the graph sets: the module's id, and the name; None where Python runs a
    module, which may set any."""
    made = inline(graph)
    if any(n.kind == "prim::CallMethod" for n in made.walk()) or not made.inputs:
        return None
    modules: dict[Value, Any] = {made.inputs[0]: owner}
    found = set()
    for node in made.walk():
        if node.kind == "prim::GetAttr" and node.inputs[0] in modules:
            if isinstance(node.output.type, types.Class):
                modules[node.output] = getattr(
                    modules[node.inputs[0]], node.attributes["name"], None
                )
        elif node.kind == "prim::SetAttr":
            if node.inputs[0] not in modules:
                return None
            found.add((id(modules[node.inputs[0]]), node.attributes["name"]))
    return found


def getters(graph: Graph, module: Value, attribute: Attribute, v: Value) -> list[Node]:
    """The nodes that read an attribute that stays one."""
    nodes: list[Node] = []
    for name in attribute.path:
        last = len(nodes) == len(attribute.path) - 1
        kind = v.type if last else types.Class(name)
        nodes.append(graph.make("prim::GetAttr", [module], [(kind, name)], {"name": name}))
        module = nodes[-1].output
    return nodes


def everywhere(mod: object, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """All attributes of a module and of its children that are tensors or containers, by path."""
    original = mod.__dict__.get("_original", mod)
    own = {**vars(original), **vars(mod), **original._parameters, **original._buffers}
    found = [
        ((*path, name), value)
        for name, value in own.items()
        if isinstance(value, (Tensor, list, dict, tuple)) and not name.startswith("_")
    ]
    for name, child in original._modules.items():
        if child is not None:
            found += everywhere(child, (*path, name))
    return found


def sharers(mod: object, written: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """The attributes that are, or share memory with, attributes that are written to."""
    every = everywhere(mod)
    targets = [(p, v) for p, v in every if p in written]
    found = set()
    for path, value in every:
        for other, target in targets:
            if path == other or not shares(value, target):
                continue
            plain = isinstance(value, Tensor) and isinstance(target, Tensor)
            if not plain and not same_parts(value, target):
                raise RuntimeError(
                    "module contains attributes values that overlaps: "
                    f"{'.'.join(path)} and {'.'.join(other)}"
                )
            found.add(path)
    return found


def containers(value: object) -> list[Any]:
    """A list or dictionary, and those inside."""
    if isinstance(value, (list, tuple)):
        inner = [c for v in value for c in containers(v)]
        return [value, *inner] if isinstance(value, list) else inner
    if isinstance(value, dict):
        return [value, *(c for v in value.values() for c in containers(v))]
    return []


def shares(a: object, b: object) -> bool:
    """Whether writing to the one may change the other."""
    if {id(c) for c in containers(a)} & {id(c) for c in containers(b)}:
        return True
    return any(np.may_share_memory(x, y) for x in arrays_of(a) for y in arrays_of(b))


def same_parts(a: object, b: Any) -> bool:
    """Whether what they share is the very same tensors and lists, and no views of each other."""
    mine, theirs = arrays_of(a), arrays_of(b)
    return all(x is y for x in mine for y in theirs if np.may_share_memory(x, y))


def written_paths(graph: Graph, owner: Any, kept: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """The attributes whose memory a frozen graph would write to."""
    made, meaning = constants_in(graph, owner, kept, {})
    names = {v.name: a.path for v, a in meaning.items()}
    made = pipeline.run(made, FREEZING)
    found = set()
    for n in made.walk():
        if n.writes or (isinstance(n.op, Builtin) and n.op.changes):
            written = n.inputs[0]
        elif n.kind == "prim::SetAttr":  # what becomes an attribute may be written to as one
            written = n.inputs[1]
        else:
            continue
        found |= {names[v.name] for v in origins(made, written) if v.name in names}
    return found


def origins(graph: Graph, value: Value) -> set[Value]:
    """The values that a value is, is a view of, or was taken out of."""
    makers: dict[Value, list[Value]] = {}
    for node in graph.walk():
        for block in node.blocks:
            behind = 1 if node.kind == "prim::Loop" else 0
            for out, given in zip(node.outputs, block.outputs[behind:]):
                makers.setdefault(out, []).append(given)
            if behind:
                for inner, given in zip(block.inputs[1:], node.inputs[2:]):
                    makers.setdefault(inner, []).append(given)
                for out, given in zip(node.outputs, node.inputs[2:]):
                    makers.setdefault(out, []).append(given)
    found: set[Value] = set()
    waiting = [value]
    while waiting:
        v = waiting.pop()
        if v in found:
            continue
        found.add(v)
        waiting += makers.get(v, [])
        maker = v.node
        if maker is None or maker.blocks:
            continue
        if maker.is_view or maker.writes:
            waiting += maker.inputs[:1]
        elif maker.kind.startswith("prim::") or (isinstance(maker.op, Builtin) and maker.op.gives):
            waiting += maker.inputs
    return found


def again(function: ScriptFunction, graph: Graph) -> ScriptFunction:
    """The function with another graph."""
    if isinstance(function, TracedFunction):
        return TracedFunction(function.name, graph, function.spec)
    old = function.compiled  # type: ignore[attr-defined]  # the other kind
    return CompiledFunction(Compiled(old.name, graph, old.params, old.returns))


def remains(mod: Any, kept: set[tuple[str, ...]], below: Sequence[tuple[str, ...]] = ()) -> Module:
    """A module with the attributes that were kept and nothing else; `below` are methods
    of children that are kept, too."""
    made = _empty(getattr(mod, "original_name", type(mod).__name__))
    for path in [*sorted(kept), *below]:
        place, owner = made, mod
        for i, name in enumerate(path[:-1]):
            owner = getattr(owner, name)
            if name not in place._modules:
                place.add_module(
                    name, child_of(owner, [m[-1] for m in below if m[:-1] == path[: i + 1]])
                )
            place = place._modules[name]
        if path not in below:
            _give(place, path[-1], owner)
    return made


def child_of(owner: Any, methods: Sequence[str]) -> Module:
    """What remains of a child: a module that is empty but for its compiled methods."""
    empty = _empty(getattr(owner, "original_name", type(owner).__name__))
    if not methods:
        return empty
    compiled = script_module(owner, list(methods))
    frozen_methods = {
        n: again(f, frozen(f.graph, compiled, set(), FREEZING, {}))
        for n, f in compiled._methods.items()
        if n in methods
    }
    return RecursiveScriptModule(empty, frozen_methods)


def _empty(name: str) -> Module:
    made: Module = type(name, (Module,), {"__module__": "__torch__"})()
    made.training = False
    return made


def _give(place: Module, name: str, owner: Any) -> None:
    """One attribute of a module for another."""
    if name in owner._buffers:
        place.register_buffer(
            name, owner._buffers[name], name not in owner._non_persistent_buffers_set
        )
    else:
        setattr(place, name, getattr(owner, name))

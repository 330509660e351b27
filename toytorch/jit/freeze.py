"""`jit.freeze`: a module in which nothing is left to change, so that more can be computed now."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.jit import types
from toytorch.jit.function import ScriptFunction, TracedFunction
from toytorch.jit.ir import Graph, Node, Value, replace
from toytorch.jit.module import RecursiveScriptModule, ScriptModule
from toytorch.jit.passes import pipeline
from toytorch.jit.passes.attributes_to_inputs import Attribute, attribute_paths, lift
from toytorch.jit.passes.constant import propagate_constants
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.jit.passes.folding import fold_batch_norm, remove_dropout
from toytorch.jit.passes.peephole import peephole_any_shape
from toytorch.jit.script.base import Compiled
from toytorch.jit.script.public import CompiledFunction
from toytorch.nn import Module

FREEZING = [propagate_constants, peephole_any_shape, propagate_constants, remove_dropout]
FOLDING = [fold_batch_norm, eliminate_dead_code]


def freeze(
    mod: Any, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True
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
    for name in preserved:
        if name not in mod._methods and not hasattr(mod, name):
            raise RuntimeError(f"Unknown name: {name}")
    wanted = [n for n in mod._methods if n == "forward" or n in preserved]
    kept: set[tuple[str, ...]] = {(name,) for name in preserved if name not in mod._methods}
    passes = [*FREEZING, *FOLDING] if optimize_numerics else FREEZING
    for name in wanted:  # what one method writes to is a constant in none
        kept |= written_paths(mod._methods[name].graph, mod, kept)
    memo: dict[int, Any] = {}
    methods = {
        n: again(mod._methods[n], frozen(mod._methods[n].graph, mod, kept, passes, memo))
        for n in wanted
    }
    for method in methods.values():
        kept |= set(attribute_paths(method.graph))
    return RecursiveScriptModule(remains(mod, kept), methods)


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
            nodes += getters(made, module, attribute, v)
            change[v] = nodes[-1].output if attribute.path else module
            continue
        if any(attribute.path[: len(path)] == path for path in kept):
            nodes += getters(made, module, attribute, v)
            change[v] = nodes[-1].output
            continue
        value = attribute.of(owner)
        constant = made.make(
            "prim::Constant",
            [],
            [(types.of(value), "self." + ".".join(attribute.path))],
            {"value": value.detach() if isinstance(value, Tensor) else copy.deepcopy(value, memo)},
        )
        nodes.append(constant)
        change[v], meaning[constant.output] = constant.output, attribute
    made.nodes = nodes + made.nodes
    replace(made, change)
    return made, meaning


def getters(graph: Graph, module: Value, attribute: Attribute, v: Value) -> list[Node]:
    """The nodes that read an attribute that stays one."""
    nodes: list[Node] = []
    for name in attribute.path:
        last = len(nodes) == len(attribute.path) - 1
        kind = v.type if last else types.Class(name)
        nodes.append(graph.make("prim::GetAttr", [module], [(kind, name)], {"name": name}))
        module = nodes[-1].output
    return nodes


def written_paths(graph: Graph, owner: Any, kept: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """The attributes whose memory a frozen graph would write to."""
    made, meaning = constants_in(graph, owner, kept, {})
    names = {v.name: a.path for v, a in meaning.items()}
    made = pipeline.run(made, FREEZING)
    found = set()
    for v in [n.inputs[0] for n in made.walk() if n.writes]:
        while v.node is not None and v.node.inputs and (v.node.is_view or v.node.writes):
            v = v.node.inputs[0]
        if v.name in names:
            found.add(names[v.name])
    return found


def again(function: ScriptFunction, graph: Graph) -> ScriptFunction:
    """The function with another graph."""
    if isinstance(function, TracedFunction):
        return TracedFunction(function.name, graph, function.spec)
    old = function.compiled  # type: ignore[attr-defined]  # the other kind
    return CompiledFunction(Compiled(old.name, graph, old.params, old.returns))


def remains(mod: Any, kept: set[tuple[str, ...]]) -> Module:
    """A module with nothing but the attributes that were kept."""
    made = _empty(getattr(mod, "original_name", type(mod).__name__))
    for path in sorted(kept):
        place, owner = made, mod
        for name in path[:-1]:
            owner = getattr(owner, name)
            if name not in place._modules:
                place.add_module(
                    name, _empty(getattr(owner, "original_name", type(owner).__name__))
                )
            place = place._modules[name]
        _give(place, path[-1], owner)
    return made


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

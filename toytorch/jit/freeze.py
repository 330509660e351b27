"""`jit.freeze`: a module in which nothing is left to change, so that more can be computed now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.jit.freeze_constants import FREEZING, constants_in
from toytorch.jit.freeze_writes import (
    everywhere,
    forked_paths,
    of_same_class,
    returned_paths,
    sharers,
    written_paths,
)
from toytorch.jit.function import ScriptFunction, TracedFunction
from toytorch.jit.ir import Graph
from toytorch.jit.module import RecursiveScriptModule, ScriptModule
from toytorch.jit.passes import pipeline
from toytorch.jit.passes.attributes_to_inputs import Attribute, attribute_paths
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.jit.passes.folding import fold_arithmetic, fold_batch_norm, remove_dropout
from toytorch.jit.script.base import Compiled
from toytorch.jit.script.public import CompiledFunction, script_module
from toytorch.nn import Module
from toytorch.nn.parameter import Parameter

FOLDING = [fold_batch_norm, fold_arithmetic, fold_batch_norm, eliminate_dead_code]


def freeze(
    mod: object, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True
) -> RecursiveScriptModule:
    """A copy of a compiled module whose parameters and attributes are constants of its graphs.

    `forward`, and methods and attributes in `preserved_attrs`, stay; branches on attributes are
    decided, dropout is gone, and with `optimize_numerics` batch norms go into the layers before
    them. Buffers that `forward` writes to stay buffers. Raises RuntimeError for what is not
    compiled, a module in training mode, or an unknown name. Like `torch.jit.freeze`.

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
    return frozen_module(mod, list(preserved_attrs or ()), optimize_numerics)


def frozen_module(
    mod: Any, preserved: list[str], optimize_numerics: bool, preserve_parameters: bool = False
) -> RecursiveScriptModule:
    """`freeze` of a compiled module. One that trains keeps its parameters and the flags that say so;
    `preserve_parameters` keeps them in any case."""
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
    if preserve_parameters or mod.training:
        kept |= {p for p, v in everywhere(mod) if isinstance(v, Parameter)}
    if mod.training:
        kept |= {
            a for n in wanted for a in attribute_paths(mod._methods[n].graph) if a[-1] == "training"
        }
    for name in wanted:  # what one method writes to is a constant in none
        kept |= written_paths(mod._methods[name].graph, mod, kept)
        kept |= forked_paths(mod._methods[name].graph)
    kept |= sharers(mod, kept)
    memo: dict[int, Any] = {}
    methods = {
        n: again(mod._methods[n], frozen(mod._methods[n].graph, mod, kept, passes, memo))
        for n in wanted
    }
    for method in methods.values():
        kept |= set(attribute_paths(method.graph)) | returned_paths(method.graph)
    kept |= of_same_class(mod, kept)
    made = remains(mod, kept, below)
    return RecursiveScriptModule(made, methods)


def optimize_for_inference(
    mod: object, other_methods: Sequence[str] | None = None
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
    owner: object,
    kept: set[tuple[str, ...]],
    passes: Sequence[Any],
    memo: dict[int, Any],
) -> Graph:
    """A method's graph with constants in the place of attributes, after the passes."""
    return pipeline.run(constants_in(graph, owner, kept, memo)[0], passes)


def again(function: ScriptFunction, graph: Graph) -> ScriptFunction:
    """The function with another graph."""
    if isinstance(function, TracedFunction):
        return TracedFunction(function.name, graph, function.spec)
    old = function.compiled  # type: ignore[attr-defined]  # the other kind
    return CompiledFunction(Compiled(old.name, graph, old.params, old.returns))


def remains(
    mod: object, kept: set[tuple[str, ...]], below: Sequence[tuple[str, ...]] = ()
) -> Module:
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


def child_of(owner: object, methods: Sequence[str]) -> Module:
    """What remains of a child: a module that is empty but for its compiled methods."""
    empty = _empty(getattr(owner, "original_name", type(owner).__name__))
    if not methods:
        return empty
    compiled = script_module(owner.__dict__.get("_original", owner), list(methods))
    frozen_methods = {
        n: again(f, frozen(f.graph, compiled, set(), FREEZING, {}))
        for n, f in compiled._methods.items()
        if n in methods
    }
    return RecursiveScriptModule(empty, frozen_methods)


def _empty(name: str) -> Module:
    made: Module = type(name, (Module,), {"__module__": "__torch__"})()
    made.__dict__.update(training=False, _frozen=True)
    return made


def _give(place: Module, name: str, owner: Any) -> None:
    """One attribute of a module for another."""
    if name in owner._buffers:
        place.register_buffer(
            name, owner._buffers[name], name not in owner._non_persistent_buffers_set
        )
    else:
        setattr(place, name, getattr(owner, name))
    if name == "training":
        place.__dict__["_frozen"] = False  # the flag is one of the attributes

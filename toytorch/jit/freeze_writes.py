"""Which attributes of a module may change while its frozen methods run, so that they stay attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.jit import types
from toytorch.jit.builtins import Builtin
from toytorch.jit.executor import arrays_of
from toytorch.jit.freeze_constants import FREEZING, constants_in
from toytorch.jit.ir import Graph, Value
from toytorch.jit.passes import pipeline
from toytorch.jit.passes.aliases import holds_memory, makes_memory
from toytorch.jit.passes.attributes_to_inputs import Attribute
from toytorch.nn import Module


def written_paths(graph: Graph, owner: object, kept: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """The attributes whose memory a frozen graph would write to."""
    lists = {p for p, v in everywhere(owner) if not isinstance(v, Tensor)}
    tensors = {p for p, v in everywhere(owner) if isinstance(v, Tensor)}
    # Tensors are read from the module here: what is computed from a constant would be one, too.
    made, meaning = constants_in(graph, owner, kept | tensors, {})
    names = {v.name: a.path for v, a in meaning.items()}
    made = pipeline.run(made, FREEZING)
    modules, inside = made.inputs[:1], set[Any]()
    found: set[tuple[str, ...]] = set()
    for n in made.walk():
        if n.writes or (isinstance(n.op, Builtin) and n.op.changes):
            written = n.inputs[0]
        elif n.kind == "prim::SetAttr":  # what becomes an attribute may be written to as one
            written = n.inputs[1]
            path = path_to(n.inputs[0], modules)
            found |= set() if path is None else {(*path, n.attributes["name"])}
        else:
            continue
        paths = {names.get(v.name) or path_to(v, modules) for v in origins(made, written)}
        paths.discard(None)
        if isinstance(written.type, types.Tensor):  # a list that it is in stays the same list
            inside |= paths & lists
            paths -= lists
        found |= {p for p in paths if p}
    refuse_overlaps(owner, inside - kept)
    return found


def path_to(value: Value, modules: Sequence[Value]) -> tuple[str, ...] | None:
    """The attribute that a value was read from, if it is one of the module's."""
    if value in modules:
        return ()
    if value.node is None or value.node.kind != "prim::GetAttr":
        return None
    path = path_to(value.node.inputs[0], modules)
    return None if path is None else (*path, value.node.attributes["name"])


def forked_paths(graph: Graph) -> set[tuple[str, ...]]:
    """The attributes that are given to forked calls, which might write to them at any time."""
    found = set()
    for node in graph.walk():
        call = node.inputs[0].node if node.kind == "prim::fork" else None
        for v in call.inputs if call is not None else ():
            if not isinstance(v.type, types.Class) and (path := path_to(v, graph.inputs[:1])):
                found.add(path)
    return found


def returned_paths(graph: Graph) -> set[tuple[str, ...]]:
    """The children that a graph gives back."""
    blocks = [graph, *(b for n in graph.walk() for b in n.blocks)]
    given = [v for b in blocks for v in b.outputs if isinstance(v.type, types.Class)]
    return {path for v in given if (path := path_to(v, graph.inputs[:1]))}


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
        if maker is None or maker.blocks or maker.kind == "prim::GetAttr":
            continue
        if maker.is_view or maker.writes:
            waiting += maker.inputs[:1]
        elif maker.kind.startswith("prim::") or not makes_memory(maker):
            waiting += [i for i in maker.inputs if holds_memory(i.type)]
    return found


def everywhere(
    mod: object, path: tuple[str, ...] = (), plain: bool = False
) -> list[tuple[tuple[str, ...], Any]]:
    """All attributes of a module and of its children that are tensors or containers, by path;
    numbers and text with `plain`."""
    kinds = (Tensor, list, dict, tuple, *((bool, int, float, str) if plain else ()))
    original = mod.__dict__.get("_original", mod)
    own = {**vars(original), **vars(mod), **original._parameters, **original._buffers}
    found = [
        ((*path, name), value)
        for name, value in own.items()
        if isinstance(value, kinds) and not name.startswith("_")
    ]
    for name, child in original._modules.items():
        if child is not None:
            found += everywhere(child, (*path, name), plain)
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
            plain = isinstance(value, Tensor)
            if not (plain and isinstance(target, Tensor)) and not same_parts(value, target):
                raise overlapping(path, other)
            found.add(path)
    return found


def refuse_overlaps(mod: object, written: set[tuple[str, ...]]) -> None:
    """Refuses writes to tensors in lists, which become constants, if other attributes see them."""
    every = everywhere(mod)
    for path, value in every:
        for other, target in every:
            if path in written and path != other and shares(value, target):
                raise overlapping(path, other)


def overlapping(*paths: tuple[str, ...]) -> RuntimeError:
    """The error for attributes that cannot be told apart."""
    return RuntimeError(
        f"module contains attributes values that overlaps: {' and '.join(map('.'.join, paths))}"
    )


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


def same_parts(a: object, b: object) -> bool:
    """Whether what they share is the very same tensors and lists, and no views of each other."""
    mine, theirs = arrays_of(a), arrays_of(b)
    return all(x is y for x in mine for y in theirs if np.may_share_memory(x, y))


def of_same_class(mod: Any, kept: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """What else is kept since modules of one class have the same attributes: of the children that
    remain, each has what any other of its class has."""
    places: dict[type, set[tuple[str, ...]]] = {}
    whole = set()  # of the children that are kept as they are
    for path in kept:
        there = Attribute(path).of(mod)
        if isinstance(there, Module):
            whole |= {(*path, *inner) for inner, _ in everywhere(there, plain=True)}
        for i in range(1, len(path) + 1):
            child = Attribute(path[:i]).of(mod)
            if isinstance(child, Module):
                kind = type(child.__dict__.get("_original", child))
                places.setdefault(kind, set()).add(path[:i])
    found = set()
    for paths in places.values():
        own = {
            p[len(q)]
            for q in paths
            for p in kept | whole
            if p[: len(q)] == q and len(p) == len(q) + 1
        }
        for path in paths:
            there = Attribute(path).of(mod)
            found |= {
                (*path, n)
                for n in own
                if isinstance(getattr(there, n, None), (Tensor, bool, int, float, str, list, dict))
            }
    return found

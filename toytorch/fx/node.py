"""One step of a graph of `torch.fx`: what is called, with which arguments, and who uses the result."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import toytorch
from toytorch.facts.package import is_ours
from toytorch.fx.immutable_collections import immutable_dict, immutable_list
from toytorch.overrides import resolve_name

if TYPE_CHECKING:
    from toytorch.fx.graph import Graph

Argument: TypeAlias = Any  # a node, a constant, or tuples, lists, dicts and slices of them
Target: TypeAlias = Any  # a function, or a name
OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
IMPURE = {toytorch._assert}  # functions that are called for what they do
MUTATING = ("__setitem__", "setitem")


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Any:
    """The same tuples, lists, dicts and slices, with `fn` of what is in them."""
    if isinstance(a, tuple):
        made = [map_aggregate(v, fn) for v in a]
        return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
    if isinstance(a, list):
        return immutable_list([map_aggregate(v, fn) for v in a])
    if isinstance(a, dict):
        return immutable_dict({k: map_aggregate(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(v, fn) for v in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Any:
    """The same arguments, with `fn(node)` in the place of each node."""
    assert callable(fn), "torch.fx.map_arg(a, fn): fn must be a callable"
    return map_aggregate(a, lambda v: fn(v) if isinstance(v, Node) else v)


def public_path(thing: object) -> str | None:
    """`torch.nn.functional.relu`, if that is where this package shows it."""
    found = resolve_name(thing) if callable(thing) else None
    if found is not None:
        return found
    module = getattr(thing, "__module__", None) or ""
    name = getattr(thing, "__qualname__", getattr(thing, "__name__", ""))
    if not is_ours(module) and module.partition(".")[0] != "torch":
        return None
    parts = module.split(".")[1:]
    for places in (parts, *(parts[:k] for k in range(len(parts) - 1, -1, -1))):
        value: object = toytorch
        for part in (*places, *name.split(".")):
            value = getattr(value, part, None)
        if value is thing:
            return ".".join(["torch", *places, name])
    return None


def _get_qualified_name(func: Target) -> str:
    """The name by which a function is found from its module."""
    name = func.__name__
    if getattr(builtins, name, None) is func:
        return str(name)
    module = str(func.__module__).replace("_operator", "operator")
    return public_path(func) or f"{module}.{name}"


def _format_arg(arg: Argument) -> str:
    """An argument with its nodes as %name."""
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        given = ", ".join(f"{k}={_format_arg(v)}" for k, v in zip(arg._fields, arg))
        return f"{type(arg).__name__}({given})"
    if isinstance(arg, tuple):
        return f"({', '.join(map(_format_arg, arg))}{',' * (len(arg) == 1)})"
    if isinstance(arg, list):
        return f"[{', '.join(map(_format_arg, arg))}]"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{k}: {_format_arg(v)}' for k, v in arg.items())}}}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """A step: `op` says of which kind, `target` what is called.

    placeholder    an input; target is the parameter's name
    get_attr       an attribute of the module, by its path
    call_function  target(*args, **kwargs)
    call_method    args[0].target(*args[1:], **kwargs)
    call_module    the submodule with the path target, called
    output         what is returned, args[0]

    `users` are the nodes whose arguments this one is among, `all_input_nodes` those among its own.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: object = None,
    ) -> None:
        assert op in OPS
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                    f"{toytorch.typename(target)} but a Callable is expected"
                )
        else:
            assert isinstance(target, str), f"Expected target to be str, got {type(target)}"
        self.graph, self.name, self.op, self.target, self.type = (
            graph,
            name,
            op,
            target,
            return_type,
        )
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._set(args, kwargs)

    # -- arguments --------------------------------------------------------------------------------

    def _set(self, args: Argument, kwargs: Argument) -> None:
        """Takes new arguments, and tells the nodes that were used and those that now are."""
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def used(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args, self._kwargs = map_arg(tuple(args), used), map_arg(dict(kwargs), used)

    @property
    def args(self) -> tuple[Argument, ...]:
        """What is given by position."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """What is given by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Another argument at a place."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """One argument more, before the one at a place."""
        assert 0 <= idx <= len(self._args), "insert_args index must be between 0 and len(self.args)"
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Another argument under a name."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Uses another node wherever one is used."""
        swapped = [
            map_arg(a, lambda n: new_input if n is old_input else n)
            for a in (self._args, self._kwargs)
        ]
        self._set(*swapped)

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Lets all users of this node, or those that the function says, use another; returns them."""
        if propagate_meta:
            assert not replace_with.meta, (
                "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                "replace_with already has .meta keys"
            )
            replace_with.meta.update(self.meta)
        users = [u for u in self.users if delete_user_cb(u)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    # -- the list of nodes ------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        """The node after this one; after the last comes the root, before the first, too."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Moves `x` before this node."""
        assert self.graph == x.graph, "Attempting to move a Node into a different Graph"
        if self is x:
            warnings.warn(
                "Trying to prepend a node to itself. This behavior has no effect on the graph.",
                stacklevel=2,
            )
            return
        x._unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Moves `x` behind this node."""
        self._next.prepend(x)

    # -- what it says of itself -------------------------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """The lines of the program that it stands for, if they were kept."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it has to stay, though nobody uses it: an input, the output, a write, a draw."""
        if self.op in ("placeholder", "output"):
            return True
        name = getattr(self.target, "__name__", self.target)
        if self.op in ("call_function", "call_method"):
            writes = name in MUTATING or (str(name).endswith("_") and not str(name).endswith("__"))
            return self.target in IMPURE or writes or self.kwargs.get("out") is not None
        if self.op == "call_module" and self.graph.owning_module is not None:
            return getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False)
        return False

    def format_node(self) -> str:
        """The node as a line of its graph's text."""
        kind = f"{_type_name(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={self.target}]"
        if self.op == "output":
            return f"return {self.args[0]}"
        given = f"(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
        return f"{head}[target={self._shown_target()}]{given}"

    def _shown_target(self) -> str:
        if isinstance(self.target, str):
            return self.target
        module = getattr(self.target, "__module__", None)
        if module == "builtins":
            return f"builtins.{self.target.__name__}"
        if module == "_operator":
            return f"operator.{self.target.__name__}"
        return _get_qualified_name(self.target)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        raise TypeError("a node is pickled with its graph: pickle node.graph")


def _type_name(kind: object) -> str:
    """A type as programs write it."""
    if isinstance(kind, type) and not hasattr(kind, "__origin__"):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        return public_path(kind) or f"{kind.__module__}.{kind.__qualname__}"
    return repr(kind)


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function: its calls stay in graphs, though nobody uses the results."""
    IMPURE.add(fn)
    return fn


__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

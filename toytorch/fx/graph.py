"""A program as a list of nodes, and the Python that it stands for."""

from __future__ import annotations

import builtins
import contextlib
import copy
import enum
import keyword
import math
import re
import typing
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import toytorch
from toytorch.fx.node import (
    Argument,
    Node,
    Target,
    _get_qualified_name,
    _type_name,
    map_arg,
    public_path,
)
from toytorch.utils._pytree import tree_map

if TYPE_CHECKING:
    from toytorch.fx.graph_module import GraphModule
    from toytorch.nn import Module

# How Python writes what these functions of `operator` do.
magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}",
    "floordiv": "{} // {}", "truediv": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}",
    "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}",
    "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
reflectable_magic_methods = {
    name: text
    for name, text in magic_methods.items()
    if name not in ("eq", "ne", "lt", "gt", "le", "ge", "pos", "neg", "invert")
}
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}",
    "imod": "{} %= {}", "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}",
    "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}",
    "setitem": "{}[{}] = {}",
}  # fmt: skip
# Names that the text of a graph may use without asking.
OWN_NAMES = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": toytorch}
OWN_NAMES |= {"device": toytorch.device}
NUMBERED = re.compile(r"(.*)_(\d+)$")


@dataclass
class PythonCode:
    """The text of a graph's function, and what its names mean."""

    src: str
    globals: dict[str, Any]


class _Namespace:
    """Names that are taken, and who took them."""

    def __init__(self) -> None:
        self._owner: dict[object, str] = {}
        self._used = set[str]()
        self._last: dict[str, int] = defaultdict(int)

    def create_name(self, candidate: str, obj: object | None) -> str:
        """A name like the candidate that nobody has: `add`, `add_1`, `add_2`."""
        if obj is not None and obj in self._owner:
            return self._owner[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        match = NUMBERED.match(candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, self._last[candidate])
        while candidate in self._used or self._is_taken(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._last[base] = number
        if obj is not None:
            self._owner[obj] = candidate
        return candidate

    @staticmethod
    def _is_taken(name: str, obj: object) -> bool:
        if name in keyword.kwlist:
            return True
        if name in builtins.__dict__:
            return builtins.__dict__[name] is not obj
        return name in OWN_NAMES and OWN_NAMES[name] is not obj


def _snake_case(text: str) -> str:
    """`AvgPool2d` as `avg_pool2d`.

    >>> _snake_case("AvgPool2d"), _snake_case("relu")
    ('avg_pool2d', 'relu')
    """
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", text).lower()


def _name_of(target: Target) -> str:
    """What the result of a target is called: `add` of `operator.add` and of `__add__`."""
    name = target.__name__ if callable(target) else str(target)
    name = name[2:-2] if name[:2] == name[-2:] == "__" else name
    return _snake_case(name)


class Graph:
    """Nodes in the order in which they run; `python_code` writes them as a function.

    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(torch.relu, (x,))
    >>> _ = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._before = self._root  # new nodes go before it
        self._names = _Namespace()
        self.owning_module, self._tracer_cls, self._tracer_extras = (
            owning_module,
            tracer_cls,
            tracer_extras,
        )

    # -- nodes ------------------------------------------------------------------------------------

    @property
    def nodes(self) -> _NodeList:
        """The nodes, first to last; a node may be erased while they are gone over."""
        return _NodeList(self)

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, and of a target if one is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """The node that says what is returned."""
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """A new node at the place of insertion, which is the end unless `inserting_before` says."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        assert isinstance(args, tuple), "args must be a tuple"
        assert isinstance(kwargs, dict), "kwargs must be a dict"
        name = self._names.create_name(name or _name_of(target), None)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        self._before.prepend(node)
        return node

    def placeholder(
        self, name: str, type_expr: object = None, default_value: Argument = ...
    ) -> Node:
        """An input, `name` or `*name` or `**name`."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: object = None) -> Node:
        """A parameter, buffer or other attribute of the module."""
        owner = self.owning_module
        if owner is not None and not _has(owner, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning "
                "GraphModule! Call GraphModule.add_submodule to add the necessary submodule, "
                "GraphModule.add_parameter to add the necessary Parameter, or "
                "nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: object = None,
    ) -> Node:
        """A call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: object = None,
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: object = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: object = None) -> Node:
        """What is returned."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x
    ) -> Node:
        """A node of another graph, here; the function gives the node here for one of its arguments."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """All nodes of another graph but its output; returns what that would return, here.

        val_map    nodes of the other graph that have one here; those made are entered
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                made = map_arg(node.args[0], val_map.__getitem__)
                return (made, node) if return_output_node else made
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        made, places = Graph(tracer_cls=self._tracer_cls), dict[Node, Node]()
        found = made.graph_copy(self, places, return_output_node=True)
        if found is not None:
            result, node = found
            made.output(result, type_expr=node.type).meta = copy.copy(node.meta)
        return made

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node out. Raises RuntimeError where somebody uses it."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the "
                f"graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._unlink()
        to_erase._erased = True
        to_erase._set((), {})

    def _inserting(self, node: Node) -> contextlib.AbstractContextManager[None]:
        assert node.graph is self, "Node to insert before is not in graph."
        before, self._before = self._before, node

        @contextlib.contextmanager
        def restored() -> Iterator[None]:
            try:
                yield
            finally:
                self._before = before

        return restored()

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """New nodes go before this one, until the context ends if there is one."""
        return self._inserting(self._root._next if n is None else n)

    def inserting_after(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """New nodes go behind this one, until the context ends if there is one."""
        return self._inserting(self._root if n is None else n._next)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] = Node.is_impure) -> bool:
        """Takes out nodes whose results nobody uses; whether there were any."""
        before = len(self.nodes)
        for node in reversed(self.nodes):
            if not node.users and not is_impure_node(node):
                self.erase_node(node)
        return len(self.nodes) < before

    def lint(self) -> None:
        """Checks that arguments come before their users, that names differ, and that targets are there.

        Raises RuntimeError where they do not.
        """
        seen, names = set[Node](), set[str]()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used "
                        "as an argument! If you are copying nodes from another graph, make sure to use "
                        f"``arg_transform`` on node_copy() to remap values\n{self}"
                    )
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                value: object = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(value, part):
                        raise RuntimeError(
                            f"Node {node} target {node.target} references nonexistent attribute {part} "
                            f"of {'.'.join(node.target.split('.')[:-1])}"
                        )
                    value = getattr(value, part)

    # -- text -------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(node.format_node() for node in self.nodes)])

    def print_tabular(self) -> None:
        """Prints the nodes as a table."""
        rows: list[tuple[str, ...]] = [("opcode", "name", "target", "args", "kwargs")]
        rows += [
            (n.op, n.name, str(n.target), str(tuple(n.args)), str(dict(n.kwargs)))
            for n in self.nodes
        ]
        widths = [max(map(len, column)) for column in zip(*rows)]
        rows.insert(1, tuple("-" * w for w in widths))
        print(*("  ".join(t.ljust(w) for t, w in zip(r, widths)).rstrip() for r in rows), sep="\n")

    def python_code(self, root_module: str = "self", *, verbose: bool = False) -> PythonCode:
        """The graph as a Python function `forward`, whose first parameter is the module."""
        return _Writer(self, root_module).code()

    # -- as a file --------------------------------------------------------------------------------

    def __reduce__(self) -> Any:
        """The nodes as rows, without links: arguments name the nodes before them."""
        rows = [
            (n.name, n.op, n.target, *(_named(a) for a in (n.args, n.kwargs)), n.type)
            for n in self.nodes
        ]
        return _from_rows, (rows,)


@dataclass(frozen=True)
class _Named:
    """The place of a node in pickled arguments."""

    name: str


def _named(args: Argument) -> Any:
    return tree_map(lambda a: _Named(a.name) if isinstance(a, Node) else a, args)


def _from_rows(rows: list[tuple[Any, ...]]) -> Graph:
    """A graph from its pickled rows."""
    graph, nodes = Graph(), dict[str, Node]()
    for name, op, target, args, kwargs, kind in rows:
        args, kwargs = tree_map(
            lambda a: nodes[a.name] if isinstance(a, _Named) else a, (args, kwargs)
        )
        nodes[name] = graph.create_node(op, target, tuple(args), dict(kwargs), name, kind)
    return graph


class _NodeList:
    """The nodes of a graph, either way."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __iter__(self) -> Iterator[Node]:
        node = getattr(self.graph._root, self.direction)
        while node is not self.graph._root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __reversed__(self) -> _NodeList:
        return _NodeList(self.graph, "_prev" if self.direction == "_next" else "_next")


class _Writer:
    """Writes a graph as a function."""

    def __init__(self, graph: Graph, root: str) -> None:
        self.graph, self.root = graph, root
        self.globals: dict[str, Any] = dict(OWN_NAMES)
        self.names = _Namespace()
        for node in graph.nodes:
            self.names.create_name(node.name, node)
        self.wrapped: dict[str, None] = {}

    def code(self) -> PythonCode:
        parameters, lines, returns = [self.root], list[str](), ""
        for node, unused in self.with_last_uses():
            kind = f" : {self.type_of(node.type)}" if node.type is not None else ""
            if node.op == "placeholder":
                default = f" = {self.value(node.args[0])}" if node.args else ""
                parameters.append(f"{node.target}{kind}{default}")
                plain = node.target.lstrip("*")
                if plain != node.name:
                    lines.append(f"{node.name} = {plain}")
                continue
            if node.op == "output":
                returns = f" -> {self.type_of(node.type)}" if node.type is not None else ""
                lines.append(f"return {self.value(node.args[0])}")
                continue
            forgotten = f";  {' = '.join([*map(repr, unused), 'None'])}" if unused else ""
            lines.append(f"{self.statement(node, kind)}{forgotten}")
        body = "\n".join(f"    {line}" for line in [*(lines or ["pass"]), ""])
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in self.wrapped)
        head = f"def forward({', '.join(parameters)}){returns}:"
        return PythonCode(f"\n{wraps}\n\n{head}\n{body}", self.globals)

    def with_last_uses(self) -> list[tuple[Node, list[Node]]]:
        """Each node, and those that are not used after it."""
        last: dict[Node, list[Node]] = defaultdict(list)
        seen = set[Node]()
        for node in reversed(self.graph.nodes):
            for used in (a for a in node.all_input_nodes if a not in seen):
                seen.add(used)
                last[node].append(used)
        return [(n, last[n] + [n] * (not n.users)) for n in self.graph.nodes]

    def statement(self, node: Node, kind: str) -> str:
        """A call or an attribute, with its result given a name."""
        made, target = f"{node.name}{kind}", node.target
        if node.op == "get_attr":
            return f"{made} = {self.member(self.root, target)}"
        if node.op == "call_module":
            return (
                f"{made} = {self.member(self.root, target)}({self.given(node.args, node.kwargs)})"
            )
        if node.op == "call_method":
            owner = self.member(self.value(node.args[0]), target)
            return f"{made} = {owner}({self.given(node.args[1:], node.kwargs)})"
        name = target.__name__
        if getattr(target, "__module__", None) == "_operator" and not node.kwargs:
            values = [self.value(a) for a in node.args]
            if name in magic_methods:
                return f"{made} = {magic_methods[name].format(*values)}"
            if name in inplace_methods:
                return f"{inplace_methods[name].format(*values)};  {made} = {values[0]}"
        if target is getattr and len(node.args) == 2 and str(node.args[1]).isidentifier():
            return f"{made} = {self.member(self.value(node.args[0]), node.args[1])}"
        called = self.name_of(target)
        if node.meta.get("is_wrapped"):
            self.wrapped[called] = None
        return f"{made} = {called}({self.given(node.args, node.kwargs)})"

    @staticmethod
    def member(owner: str, path: str) -> str:
        """`self.layers.0.weight` as Python writes it."""
        for part in path.split("."):
            owner = f"{owner}.{part}" if part.isidentifier() else f'getattr({owner}, "{part}")'
        return owner

    def given(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> str:
        by_name = [f"{k} = {self.value(v)}" for k, v in kwargs.items()]
        return ", ".join([*map(self.value, args), *by_name])

    def value(self, a: Argument) -> str:
        """A constant or a node's name."""
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return f"{self.name_of(type(a))}({self.given(a, {})})"
        if isinstance(a, tuple):
            return f"({', '.join(map(self.value, a))}{',' * (len(a) == 1)})"
        if isinstance(a, list):
            return f"[{', '.join(map(self.value, a))}]"
        if isinstance(a, dict):
            return f"{{{', '.join(f'{k!r}: {self.value(v)}' for k, v in a.items())}}}"
        if isinstance(a, slice):
            return f"slice({', '.join(map(self.value, (a.start, a.stop, a.step)))})"
        if isinstance(a, enum.Enum):
            return f"{self.name_of(type(a))}.{a.name}"
        return self.name_of(a) if callable(a) and hasattr(a, "__name__") else repr(a)

    def name_of(self, thing: Any) -> str:
        """The name of a function or class in the text, which `globals` explains unless it is ours."""
        path = public_path(thing)
        if path is not None:
            return path
        wanted = _get_qualified_name(thing)
        if getattr(builtins, wanted, None) is thing:
            return wanted
        return self.known(wanted.replace(".", "_"), thing)

    def known(self, wanted: str, thing: object) -> str:
        """A name in `globals`."""
        name = self.names.create_name(wanted, thing)
        self.globals[name] = thing
        return name

    def type_of(self, kind: object) -> str:
        """A type as the text names it."""
        if kind is None or kind == ():
            return repr(kind)
        if isinstance(kind, (str, type)) and not hasattr(kind, "__origin__"):
            return kind if isinstance(kind, str) else self.name_of(kind)
        origin = getattr(typing, getattr(kind, "_name", None) or "", None)
        if origin is not None and typing.get_args(kind):
            inner = ", ".join(map(self.type_of, typing.get_args(kind)))
            return f"{self.known(f'typing_{origin._name}', origin)}[{inner}]"
        name = self.names.create_name(re.sub(r"\W+", "_", _type_name(kind)).strip("_"), None)
        self.globals[name] = kind
        return name


def _has(module: object, path: str) -> bool:
    """Whether there is an attribute under a path."""
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True


def owner_of(module: Module, path: str) -> tuple[Module, str]:
    """The submodule that has the last part of a path, and that part."""
    *before, last = path.split(".")
    return module.get_submodule(".".join(before)), last

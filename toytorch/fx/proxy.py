"""Values that write down what is done to them."""

from __future__ import annotations

import dis
import enum
import inspect
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import toytorch
from toytorch.fx.graph import Graph, magic_methods, reflectable_magic_methods
from toytorch.fx.node import Argument, Node, Target, map_aggregate
from toytorch.overrides import resolve_name

PLAIN = (str, int, float, bool, complex, enum.Enum, range, type(None), type(...))


class TraceError(ValueError):
    """Raised where a program does what no graph can say."""


class TracerBase:
    """Makes the nodes of `graph` for what proxies are used for."""

    graph: Graph
    record_stack_traces = False  # whether nodes keep the lines that made them, as `stack_trace`
    check_mutable_operations = False  # no op of this package is refused for what it writes
    trace_asserts = False
    module_stack: dict[str, tuple[str, type]] = {}  # noqa: RUF012  # of no module; a Tracer has its own

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """A node of the graph, which knows in which submodules it was made; tracers of one's own may
        refuse or change it."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """What the traced program is given for a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: object = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """A node for these arguments, among which may be proxies, as a proxy."""
        given, named = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, tuple(given), dict(named), name, type_expr)
        if self.record_stack_traces:
            node.stack_trace = "".join(traceback.format_stack(sys._getframe(1)))
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Argument) -> Argument:
        """An argument as nodes hold it: the node of a proxy, constants as they are.

        Raises NotImplementedError for what cannot stand in a graph.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, (tuple, list)):
            made = [self.create_arg(v) for v in a]
            return type(a)(*made) if hasattr(a, "_fields") else type(a)(made)
        if isinstance(a, dict):
            for key in a:
                map_aggregate(self.create_arg(key), refuse_key)
            return {k: self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(v) for v in (a.start, a.stop, a.step)))
        constants = (toytorch.dtype, toytorch.device, toytorch.memory_format, toytorch.layout)
        if isinstance(a, (*PLAIN, Node, toytorch.Tensor, *constants)) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")  # the class that PyTorch raises

    def to_bool(self, obj: Proxy) -> bool:
        """Raises TraceError: which way a program goes must not depend on its input."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Raises TraceError: how many values there are is not known."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or "
            "as a *args or **kwargs function argument. See the torch.fx docs on pytorch.org for a more "
            "detailed explanation of what types of control flow can be traced, and check out the Proxy "
            "docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """What `**proxy` asks for first."""
        return Attribute(obj, "keys")()


def refuse_key(key: Argument) -> Any:
    """Raises RuntimeError for a key of a dict that is computed."""
    if isinstance(key, Node):
        raise RuntimeError(
            f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}"
        )
    return key


class GraphAppendingTracer(TracerBase):
    """What proxies of nodes of a graph that is there append to it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """The result of a node, within a program that is traced: each use of it becomes a node.

    >>> graph = Graph()
    >>> x = Proxy(graph.placeholder("x"))
    >>> torch.relu(x)[0] + 1
    Proxy(add)
    >>> [node.op for node in graph.nodes]
    ['placeholder', 'call_function', 'call_function', 'call_function']
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    __hash__ = object.__hash__  # `==`, which is given below, makes a node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in ("node", "tracer"):  # asked for by copies that have none yet
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Argument, **kwargs: Argument) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe()
        calling = frame and frame.f_back
        assert calling is not None
        for step in dis.get_instructions(calling.f_code):
            if step.offset == calling.f_lasti and step.opname == "UNPACK_SEQUENCE":
                return iter([self._item(k) for k in range(step.argval)])
        return self.tracer.iter(self)

    def _item(self, k: int) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, k), {})

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> NoReturn:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    def keys(self) -> Any:
        """What `**proxy` asks for first."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Callable[..., Any],
        types: object,
        args: tuple[Argument, ...] = (),
        kwargs: dict[str, Argument] | None = None,
    ) -> Proxy:
        found = list[Proxy]()
        map_aggregate(
            (args, kwargs or {}), lambda a: found.append(a) if isinstance(a, Proxy) else a
        )
        tracer = found[0].tracer
        if (resolve_name(orig_method) or "").startswith("torch.Tensor."):
            name = orig_method.__name__
            return tracer.create_proxy("call_method", name, args, kwargs or {})
        return tracer.create_proxy("call_function", orig_method, args, kwargs or {})


class Attribute(Proxy):
    """An attribute of a proxy: a method if it is called, else a node that reads it."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer

    def __getattr__(self, k: str) -> Any:
        if k != "node":
            return super().__getattr__(k)
        made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
        self.node = made.node  # from when it is first asked for
        return self.node

    def __call__(self, *args: Argument, **kwargs: Argument) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator(name: str, reflected: bool) -> Callable[..., Proxy]:
    target = getattr(operator, name)

    def apply(self: Proxy, *rest: Argument) -> Proxy:
        args = (*rest, self) if reflected else (self, *rest)
        return self.tracer.create_proxy("call_function", target, args, {})

    return apply


for _name in magic_methods:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name, reflected=False))
for _name in reflectable_magic_methods:
    setattr(Proxy, f"__r{_name.strip('_')}__", _operator(_name, reflected=True))

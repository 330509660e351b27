"""A program as a graph of the ops that it runs, like `torch.fx.experimental.proxy_tensor`.

`torch.fx.symbolic_trace` runs a program with proxies and writes down what Python calls. `make_fx` runs it
on tensors and writes down what arrives below autograd, so that derivatives are part of the graph.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

from toytorch.compat.utils._python_dispatch import TorchDispatchMode
from toytorch.core.tensor import Tensor
from toytorch.fx import Graph, GraphModule, Node
from toytorch.fx.passes.shape_prop import _extract_tensor_metadata
from toytorch.nn import Module, Parameter
from toytorch.ops.aten import OpOverload
from toytorch.utils._pytree import tree_flatten, tree_map

__all__ = ["ProxyTorchDispatchMode", "get_proxy_mode", "make_fx"]

modes: list[ProxyTorchDispatchMode] = []  # that are recording, the innermost last


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Writes every op that runs into a graph.

    Tensors that no op of the graph made become attributes of `root`.
    """

    def __init__(
        self, graph: Graph, root: Module, decompositions: dict[OpOverload, Callable[..., Any]]
    ) -> None:
        super().__init__()
        self.graph, self.root, self.decompositions = graph, root, decompositions
        self.nodes: dict[int, Node] = {}
        self.places: dict[tuple[object, ...], Node] = {}
        self.kept: list[Tensor] = []  # so that no other tensor gets the id of one that is known

    def __enter__(self) -> ProxyTorchDispatchMode:
        modes.append(self)
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        modes.remove(self)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        instead = self.decompositions.get(func)
        if instead is not None:
            with self:
                return instead(*args, **kwargs)
        given, named = tree_map(self.node_of, (tuple(args), kwargs))
        made = func(*args, **kwargs)
        node = self.graph.create_node(
            "call_function", func, given, named, func.overloadpacket.__name__
        )
        self.note(made, node)
        return made

    def node_of(self, value: Any) -> Any:
        """The node of a tensor; what is no tensor stays as it is."""
        if not isinstance(value, Tensor):
            return value
        node = self.nodes.get(id(value)) or self.places.get(place_of(value))
        if node is None:
            start = "_param_constant" if isinstance(value, Parameter) else "_tensor_constant"
            name = f"{start}{sum(k.startswith(start) for k in vars(self.root))}"
            object.__setattr__(self.root, name, value)
            node = self.graph.create_node("get_attr", name, name=name)
            self.note(value, node)
        return node

    def note(self, made: Any, node: Node) -> None:
        """Remembers that a node gives a tensor, or several."""
        if isinstance(made, Tensor):
            self.nodes[id(made)] = node
            self.places.setdefault(place_of(made), node)
            self.kept.append(made)
            node.meta["tensor_meta"] = _extract_tensor_metadata(made)
        elif isinstance(made, list | tuple):
            for i, each in enumerate(made):
                self.note(
                    each, self.graph.create_node("call_function", operator.getitem, (node, i))
                )


def place_of(x: Tensor) -> tuple[object, ...]:
    """Where a tensor's elements lie: two tensors of one place are the same but for their histories, as
    transforms of functions make them."""
    return x.data_ptr(), x.shape, x.stride(), x.dtype


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The innermost recording that is going on."""
    return modes[-1] if modes else None


def names_of(f: Callable[..., Any], count: int) -> list[str]:
    """What the arguments of a function are called."""
    try:
        known = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        known = []
    plain = [p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [*plain, *(f"arg{i}" for i in range(len(plain), count))][:count]


def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[OpOverload, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
) -> Callable[..., GraphModule]:
    """A function that runs f on its arguments and gives the module of the ops that ran.

    decomposition_table   for ops that should not stand in the graph, functions that are run instead
    tracing_mode          how PyTorch runs f; here it runs on the tensors themselves in every mode, and
                          sizes are numbers in the graph

    A branch on a tensor's value stands in the graph as it was taken; PyTorch refuses it.

    >>> from toytorch.fx.experimental.proxy_tensor import make_fx
    >>> print(make_fx(lambda x: x.sin().relu() + 1)(torch.zeros(2)).code.strip())
    def forward(self, x_1):
        sin = torch.ops.aten.sin.default(x_1);  x_1 = None
        relu = torch.ops.aten.relu.default(sin);  sin = None
        add = torch.ops.aten.add.Tensor(relu, 1);  relu = None
        return add
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(
            f"tracing_mode must be one of ('real', 'fake', 'symbolic'), got {tracing_mode!r}"
        )

    @functools.wraps(f)
    def traced(*args: Any) -> GraphModule:
        graph, root = Graph(), Module()
        mode = ProxyTorchDispatchMode(graph, root, decomposition_table or {})
        for name, value in zip(names_of(f, len(args)), args):
            for each in tree_flatten(value)[0]:
                node = graph.placeholder(f"{name}_1")
                node.target = node.name
                mode.note(each, node)
        with mode:
            made = f(*args)
        graph.output(tree_map(mode.node_of, made))
        module = GraphModule(root, graph, getattr(f, "__name__", type(f).__name__))
        if any(isinstance(a, list | tuple | dict) for a in args):
            module.register_forward_pre_hook(lambda _, given: tuple(tree_flatten(given)[0]))
        return module

    return traced

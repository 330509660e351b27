"""Running a graph node by node, and making another graph on the way."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from toytorch.fx.graph import Graph
from toytorch.fx.graph_module import GraphModule
from toytorch.fx.node import Argument, Node, Target, map_arg
from toytorch.fx.proxy import GraphAppendingTracer, Proxy
from toytorch.nn import Module

Args = tuple[Argument, ...]
Kwargs = dict[str, Argument]


class Interpreter:
    """Runs the nodes of a module's graph one after the other: a subclass says what one does.

    >>> class Shapes(Interpreter):
    ...     def run_node(self, n):
    ...         result = super().run_node(n)
    ...         print(n.name, tuple(result.shape))
    ...         return result
    >>> _ = Shapes(torch.fx.symbolic_trace(lambda x: x.sum(0) * 2)).run(torch.ones(2, 3))
    x (2, 3)
    sum_1 (3,)
    mul (3,)
    output (3,)
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module: Any = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self._last: dict[Node, list[Node]] = defaultdict(list)
        seen = set[Node]()
        for node in reversed(self.graph.nodes):
            for used in (a for a in node.all_input_nodes if a not in seen):
                seen.add(used)
                self._last[node].append(used)

    def run(
        self,
        *args: Argument,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """What the graph returns for these inputs.

        initial_env    results that nodes have already
        """
        self.env, self.args_iter = dict(initial_env or {}), iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    said = "\n\n".join(
                        [*map(str, error.args[:1]), f"While executing {node.format_node()}"]
                    )
                    traced = f"{said}\nOriginal traceback:\n{node.stack_trace}"
                    error.args = (traced, *error.args[1:])
                raise
            if node.op == "output":
                return self.env[node]
            if self.garbage_collect_values:
                for used in self._last[node]:
                    self.env.pop(used, None)
        return None

    def boxed_run(self, args_list: list[Argument]) -> Any:
        """`run` of a list, which is emptied, so that inputs are let go when they were used."""
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """The result of a node: that of the method which is called as its op."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: Args, kwargs: Kwargs) -> Any:
        """The next input, or the default."""
        if target.startswith("*") and not target.startswith("**"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: Args, kwargs: Kwargs) -> Any:
        """The attribute."""
        return self.fetch_attr(target)

    def call_function(self, target: Target, args: Args, kwargs: Kwargs) -> Any:
        """What the function returns."""
        assert not isinstance(target, str)
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: Args, kwargs: Kwargs) -> Any:
        """What the first argument's method returns."""
        owner, *rest = args
        return getattr(owner, target)(*rest, **kwargs)

    def call_module(self, target: Target, args: Args, kwargs: Kwargs) -> Any:
        """What the submodule returns."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: Args, kwargs: Kwargs) -> Any:
        """The value that is returned."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute under a path. Raises RuntimeError where there is none."""
        value, parts = self.module, target.split(".")
        for k, part in enumerate(parts):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: k + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Args, Kwargs]:
        """A node's arguments, with results in the place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """The same arguments, with the results that the nodes among them had."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such "
                    "issues"
                )
            return self.env[node]

        return map_arg(args, value)


class Transformer(Interpreter):
    """An interpreter whose results are proxies, so that running the graph makes a new one."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = GraphAppendingTracer(self.new_graph)

    def run_node(self, n: Node) -> Any:
        """The new node for one, which takes over what is known of it."""
        made = super().run_node(n)
        if isinstance(made, Proxy):
            made.node.meta = {**n.meta, **made.node.meta}
        return made

    def placeholder(self, target: Target, args: Args, kwargs: Kwargs) -> Any:
        """A new input."""
        given = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=given), self.tracer)

    def get_attr(self, target: Target, args: Args, kwargs: Kwargs) -> Any:
        """A new node that reads the attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: Args, kwargs: Kwargs) -> Any:
        """A new call of the submodule."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Target, args: Args, kwargs: Kwargs) -> Any:
        """A new call of the function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module with the new graph."""
        result = super().run()
        if result is not None:
            self.new_graph.output(map_proxies(result))
        return GraphModule(self.module, self.new_graph)


def map_proxies(result: Argument) -> Any:
    """Results with nodes in the place of proxies."""
    return GraphAppendingTracer(Graph()).create_arg(result)

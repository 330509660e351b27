"""A module whose `forward` is written from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
from typing import Any

from toytorch.fx.graph import Graph, PythonCode, owner_of
from toytorch.nn import Module

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_count = itertools.count()


def _function(code: PythonCode) -> Any:
    """`forward` as a function, whose lines tracebacks show."""
    file = f"<eval_with_key>.{next(_count)}"
    linecache.cache[file] = len(code.src), None, code.src.splitlines(keepends=True), file
    space = dict(code.globals)
    exec(compile(code.src, file, "exec"), space)  # the text that `code` shows
    return space["forward"]


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Gives a module another's attribute under the same path."""
    owner, name = from_module, target
    for part in target.split(".")[:-1]:
        name = name.partition(".")[2]
        inner = getattr(owner, part)
        if inner is getattr(to_module, part, None):
            return  # the whole submodule is there
        if not hasattr(to_module, part):
            to_module.add_module(part, Module())
        owner, to_module = inner, getattr(to_module, part)
    _give(to_module, name, getattr(owner, name))


def _give(module: Module, name: str, value: Any) -> None:
    """Sets an attribute; a tensor that is no parameter becomes a buffer."""
    from toytorch import Tensor  # the package's first names stand above this one
    from toytorch.nn import Parameter

    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


class GraphModule(Module):
    """A module that computes what a graph says.

    root     the module that the graph's attributes and submodules are taken of, or a dict of them
    graph    it can be changed; `recompile()` writes `forward` anew then
    code     the text of `forward`

    Each has a class of its own, since `forward` is an attribute of the class.

    >>> class M(torch.nn.Module):
    ...     def forward(self, x):
    ...         return torch.relu(x) + 1
    >>> print(torch.fx.symbolic_trace(M()).code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        add = relu + 1;  relu = None
        return add
    """

    def __new__(cls, *args: object, **kwargs: object) -> GraphModule:
        base = next(
            c for c in cls.__mro__ if c.__qualname__.rpartition(".")[2] != "GraphModuleImpl"
        )
        return super().__new__(type("GraphModuleImpl", (base,), {"__module__": __name__}))

    def __init__(
        self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        if not isinstance(root, (Module, dict)):
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        targets = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        for node in graph.nodes:
            if isinstance(root, dict) and node.target in targets and node.target not in root:
                raise RuntimeError(
                    f"Node {node} referenced target {node.target} but that target was not provided in "
                    "``root``!"
                )
        if isinstance(root, Module):
            self.training = root.training
            self.__dict__.update(root.__dict__.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}))
            for target in targets:
                _copy_attr(root, self, target)
        else:
            for target in sorted(targets, key=lambda t: t.count(".")):
                owner: Module = self
                for part in target.split(".")[:-1]:
                    if not hasattr(owner, part):
                        owner.add_module(part, Module())
                    owner = getattr(owner, part)
                _give(owner, target.rpartition(".")[2], root[target])
        self.meta: dict[str, Any] = {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph; setting another writes `forward` anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        assert isinstance(g, Graph), f"Expected a Graph instance, but got {type(g)}"
        self._graph = g
        g.owning_module = self
        self.recompile()

    def recompile(self) -> PythonCode:
        """Writes `forward` from the graph as it is now."""
        made = self._graph.python_code("self")
        self._code = made.src
        own: Any = type(self)
        own.forward = _function(made)
        return made

    @property
    def code(self) -> str:
        """The text of `forward`."""
        return self._code

    def print_readable(self, print_output: bool = True, **_: object) -> str:
        """The text as a class; printed unless told otherwise."""
        lines = self._code.strip("\n").splitlines()
        body = "\n".join(f"    {line}".rstrip() for line in lines)
        text = f"class {type(self).__name__}(torch.nn.Module):\n{body}\n"
        if print_output:
            print(text)
        return text

    def add_submodule(self, target: str, m: Module) -> bool:
        """Puts a module under a path, with modules on the way; whether the path was free for it."""
        *before, name = target.split(".")
        owner: Module = self
        for part in before:
            if not hasattr(owner, part):
                owner.add_module(part, Module())
            owner = getattr(owner, part)
            if not isinstance(owner, Module):
                return False
        owner.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes the module under a path away; whether there was one."""
        try:
            owner, name = owner_of(self, target)
        except AttributeError:
            return False
        if not isinstance(getattr(owner, name, None), Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes away the modules that no node calls or reads of."""
        used = set[str]()
        for node in self._graph.nodes:
            if node.op in ("get_attr", "call_module"):
                parts = node.target.split(".")
                used |= {".".join(parts[:k]) for k in range(1, len(parts) + 1)}
                if node.op == "call_module":
                    inner = self.get_submodule(node.target)
                    used |= {f"{node.target}.{name}" for name, _ in inner.named_modules() if name}
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        copied = Module()
        copied.__dict__ = copy.deepcopy(
            {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}, memo
        )
        made = GraphModule(copied, copy.deepcopy(self._graph), type(self).__name__)
        made.__dict__.update({k: v for k, v in copied.__dict__.items() if k not in made.__dict__})
        made.meta = copied.__dict__["meta"]
        return made

    def __copy__(self) -> GraphModule:
        return GraphModule(self, copy.copy(self._graph), type(self).__name__)

    def __reduce__(self) -> Any:
        """Its attributes and the graph: no code is in the file, `forward` is written on loading."""
        kept = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        return _rebuilt, (kept, self._graph, type(self).__name__)

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, hint])


def _rebuilt(kept: dict[str, Any], graph: Graph, name: str) -> GraphModule:
    """A module from its pickled parts."""
    root = Module()
    root.__dict__.update(kept)
    made = GraphModule(root, graph, name)
    made.__dict__.update({k: v for k, v in kept.items() if k not in made.__dict__})
    return made


class _CodeOnlyModule(Module):
    """A module of some attributes, without a forward of its own."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__.update(body)

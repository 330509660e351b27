"""Programs as graphs of Python's calls, which other programs change; like `torch.fx`.

`symbolic_trace` runs a module with proxies for its inputs (`proxy.py`) and leaves a `Graph` of `Node`s,
from which a `GraphModule` writes its `forward`. `torch.jit` makes graphs of ops, to compile them; these
are for programs that rewrite modules: take features out, fold layers, count calls.
"""

from toytorch.fx import passes
from toytorch.fx._symbolic_trace import ProxyableClassMeta, Tracer, symbolic_trace, wrap
from toytorch.fx.graph import Graph
from toytorch.fx.graph_module import GraphModule
from toytorch.fx.interpreter import Interpreter, Transformer
from toytorch.fx.node import Node, has_side_effect, map_arg
from toytorch.fx.proxy import Proxy
from toytorch.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta", "Tracer", "Transformer",
    "has_side_effect", "map_arg", "passes", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip
__path__.append(f"{__path__[0]}/../compat/fx")  # `toytorch.fx.experimental`

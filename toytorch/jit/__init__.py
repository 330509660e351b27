"""The compiler: from a function to a graph, from a graph to one kernel.

`trace` watches a function run, `script` reads its source; both give a graph in static single
assignment form, which passes rewrite and an executor runs. `explain` says what became of a function.
"""

from toytorch.jit.explain import explain
from toytorch.jit.function import ScriptFunction
from toytorch.jit.ir import Graph, Node, Value
from toytorch.jit.module import ScriptModule
from toytorch.jit.trace import TracingCheckError, trace, trace_module
from toytorch.jit.tracer import TracerWarning

__all__ = ["Graph", "Node", "ScriptFunction", "ScriptModule", "TracerWarning",
           "TracingCheckError", "Value", "explain", "trace", "trace_module"]

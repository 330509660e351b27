"""`jit.script`: typed Python, read instead of run, becomes a graph.

`reading` gets the source, `statements`, `branches`, `loops`, `expressions`, `calls` turn it into
nodes, `cleanup` leaves out what is not needed. Every node knows its line and column.
"""

from toytorch.facts.package import show as _show
from toytorch.jit.script.errors import FrontendError, NotSupportedError, UnsupportedNodeError
from toytorch.jit.script.markers import *
from toytorch.jit.script.public import CompilationUnit, script

_show(globals())

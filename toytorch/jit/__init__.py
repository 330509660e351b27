"""The compiler: from a function to a graph, from a graph to one kernel.

`trace` watches a function run, `script` reads its source; both give a graph in static single
assignment form, which passes rewrite and an executor runs. `explain` says what became of it.
"""

import importlib
from typing import Any

from toytorch.facts.package import show as _show
from toytorch.jit import frontend
from toytorch.jit import switch as _state
from toytorch.jit.archive import load, save
from toytorch.jit.compile import compile
from toytorch.jit.explain import explain
from toytorch.jit.failures import Error
from toytorch.jit.forks import Future, fork, wait
from toytorch.jit.freeze import freeze, optimize_for_inference, run_frozen_optimizations
from toytorch.jit.function import ScriptFunction
from toytorch.jit.fuser_mode import fuser, optimized_execution, set_fusion_strategy
from toytorch.jit.ir import Graph, Node, Value
from toytorch.jit.module import RecursiveScriptModule, ScriptModule, script_method
from toytorch.jit.script import (
    Attribute,
    CompilationUnit,
    Final,
    annotate,
    export,
    ignore,
    interface,
    is_scripting,
    is_tracing,
    script,
    unused,
)
from toytorch.jit.script import isinstance_ as isinstance
from toytorch.jit.script import unwrap_optional as _unwrap_optional
from toytorch.jit.trace import TracingCheckError, trace, trace_module
from toytorch.jit.tracer import GraphBreak, TracerWarning

_fork, _wait = fork, wait


def _unique_state_dict(module: Any, keep_vars: bool = False) -> dict[str, Any]:
    """The state of a module, each tensor once, under its first name."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for name, value in module.state_dict(keep_vars=True).items():
        if id(value) not in seen:
            seen.add(id(value))
            found[name] = value if keep_vars else value.detach()
    return found


def export_opnames(m: Any) -> list[str]:
    """The names of the operations in a module's graphs, like `torch.jit.export_opnames`."""
    graphs = [f.inlined_graph for f in m._methods.values()]
    kinds = {n.kind for g in graphs for n in g.walk() if n.kind.startswith("aten::")}
    return sorted(kinds)


def __getattr__(name: str) -> Any:
    if name == "annotations":
        return importlib.import_module("toytorch.jit.annotations")
    if name in ("_overload", "_overload_method"):  # what libraries ask for
        return getattr(importlib.import_module("toytorch._jit_internal"), name)
    if name == "script_if_tracing":
        return importlib.import_module("toytorch.compat._further").script_if_tracing
    raise AttributeError(f"module 'torch.jit' has no attribute '{name}'")


class strict_fusion:
    """A context that changes nothing: what cannot be fused runs as it is."""

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def enable_onednn_fusion(enabled: bool) -> None:
    """Does nothing: kernels here are toytorch's own."""


def onednn_fusion_enabled() -> bool:
    """Whether oneDNN's kernels are used: never."""
    return False


_show(globals(), "_state", "_unwrap_optional", "frontend")

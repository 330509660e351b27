"""Pictures: the backward graph, memory under a view, a backward pass step by step, the compiler.

Each picture shows itself in a notebook, needs nothing installed for SVG and HTML, and matplotlib
for PNG (`pip install toytorch[course]`).
"""

from .graph_picture import AutogradGraph, autograd_graph
from .ir_passes import PassSteps, passes
from .ir_picture import ir
from .ir_sources import KernelSources, kernel_sources
from .ir_traffic import traffic
from .picture import Picture
from .steps_page import BackwardSteps, backward_steps
from .storage_picture import storage
from .timeline import timeline

__all__ = [
    "AutogradGraph",
    "BackwardSteps",
    "KernelSources",
    "PassSteps",
    "Picture",
    "autograd_graph",
    "backward_steps",
    "ir",
    "kernel_sources",
    "passes",
    "storage",
    "timeline",
    "traffic",
]

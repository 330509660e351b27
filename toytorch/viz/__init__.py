"""Pictures of tensors: the backward graph, memory under a view, a backward pass step by step.

Each picture shows itself in a notebook, needs nothing installed for SVG and HTML, and matplotlib
for PNG (`pip install toytorch[course]`).
"""

from .graph_picture import AutogradGraph, autograd_graph
from .picture import Picture
from .steps_page import BackwardSteps, backward_steps
from .storage_picture import storage
from .timeline import timeline

__all__ = [
    "AutogradGraph",
    "BackwardSteps",
    "Picture",
    "autograd_graph",
    "backward_steps",
    "storage",
    "timeline",
]

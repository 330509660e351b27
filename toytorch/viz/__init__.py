"""Pictures: graphs, memory, and whatever passes in time, step by step: backward passes, programs,
derivatives being checked, passes of the compiler, training.

Each picture shows itself in a notebook, needs nothing installed for SVG and HTML, and matplotlib
for PNG (`pip install toytorch[course]`).
"""

from .batches_picture import batches
from .boundary_steps import BoundarySteps, boundary_steps
from .confusion_picture import confusion
from .contents_picture import contents
from .graph_picture import AutogradGraph, autograd_graph
from .ir_passes import PassSteps, passes
from .ir_picture import ir
from .ir_sources import KernelSources, kernel_sources
from .ir_traffic import traffic
from .loader_steps import LoaderSteps, loader_steps
from .module_picture import module_tree
from .picture import Picture
from .program_steps import ProgramSteps, program_steps
from .secant_steps import SecantSteps, secants
from .signal_picture import SignalSteps, signal
from .steps_page import BackwardSteps, backward_steps
from .storage_picture import storage
from .timeline import timeline
from .walk_picture import WalkSteps, walks

__all__ = [
    "AutogradGraph",
    "BackwardSteps",
    "BoundarySteps",
    "KernelSources",
    "LoaderSteps",
    "PassSteps",
    "Picture",
    "ProgramSteps",
    "SecantSteps",
    "SignalSteps",
    "WalkSteps",
    "autograd_graph",
    "backward_steps",
    "batches",
    "boundary_steps",
    "confusion",
    "contents",
    "ir",
    "kernel_sources",
    "loader_steps",
    "module_tree",
    "passes",
    "program_steps",
    "secants",
    "signal",
    "storage",
    "timeline",
    "traffic",
    "walks",
]

"""Pictures: graphs, memory, and whatever passes in time, step by step: backward passes, programs,
derivatives being checked, passes of the compiler, training, devices at work.

Each picture shows itself in a notebook, needs nothing installed for SVG and HTML, and matplotlib
for PNG (`pip install toytorch[course]`).
"""

from toytorch.facts.package import show as _show
from toytorch.viz.backward.steps_page import BackwardSteps, backward_steps
from toytorch.viz.compiler.passes import PassSteps, passes
from toytorch.viz.compiler.picture import ir
from toytorch.viz.compiler.sources import KernelSources, kernel_sources
from toytorch.viz.compiler.text_steps import TextSteps, run_steps, text_steps, trace_steps
from toytorch.viz.compiler.traffic import traffic
from toytorch.viz.device.occupancy_picture import occupancy
from toytorch.viz.device.race_picture import race
from toytorch.viz.device.timeline import TimelinePicture, timeline
from toytorch.viz.device.warp_picture import warp_access
from toytorch.viz.draw.picture import Picture
from toytorch.viz.graph.graph_picture import AutogradGraph, autograd_graph
from toytorch.viz.graph.module_picture import module_tree
from toytorch.viz.lessons.batches_picture import batches
from toytorch.viz.lessons.boundary_steps import BoundarySteps, boundary_steps
from toytorch.viz.lessons.cache_steps import CacheSteps, cache_steps
from toytorch.viz.lessons.confusion_picture import confusion
from toytorch.viz.lessons.kernel_steps import KernelSteps, kernel_steps
from toytorch.viz.lessons.loader_steps import LoaderSteps, loader_steps
from toytorch.viz.lessons.secant_steps import SecantSteps, secants
from toytorch.viz.lessons.signal_picture import SignalSteps, signal
from toytorch.viz.lessons.span_steps import SpanSteps, span_steps
from toytorch.viz.lessons.walk_picture import WalkSteps, walks
from toytorch.viz.memory.contents_picture import contents
from toytorch.viz.memory.memory_map import MemorySteps, memory_map
from toytorch.viz.memory.program_steps import ProgramSteps, program_steps
from toytorch.viz.memory.storage_picture import storage

_show(globals())

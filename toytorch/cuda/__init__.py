"""Devices under the names of `torch.cuda`: NVIDIA's cards through CuPy, or simulated ones.

Importing this needs neither. `simulate()` gives devices to whoever has no card.
"""

from __future__ import annotations

import importlib

from toytorch.core.random import Generator as _Generator
from toytorch.cuda import amp, comm, nvtx
from toytorch.cuda.devices import *
from toytorch.cuda.devices import _lazy_call
from toytorch.cuda.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from toytorch.cuda.legacy import TENSORS
from toytorch.cuda.memory import *
from toytorch.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from toytorch.cuda.raw_kernel import CompileError, KernelError, kernel
from toytorch.cuda.simulation import (
    RaceError,
    RaceWarning,
    Simulation,
    is_simulated,
    races,
    simulate,
    timeline,
)
from toytorch.cuda.streams import *
from toytorch.facts.package import show as _show
from toytorch.facts.trace import AcceleratorError

CudaError = AcceleratorError
default_generators: tuple[_Generator, ...] = ()
has_half = has_magma = True
globals().update(TENSORS)


def __getattr__(name: str) -> object:
    """What few programs use, imported once it is asked for."""
    if name in ("profiler", "nccl"):
        return importlib.import_module(f"toytorch.cuda.{name}")
    if not name.startswith("_"):
        further = importlib.import_module("toytorch.cuda.further")
        if name in further.__all__:
            return getattr(further, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_show(globals(), "amp", "comm", "default_generators", "has_half", "has_magma", "nvtx")

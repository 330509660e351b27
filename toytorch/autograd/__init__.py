"""Gradients: the engine, its public functions, and the modes that switch recording."""

import importlib

from toytorch.autograd import engine, forward_ad, functional, grad_mode, graph, profiler
from toytorch.autograd.anomaly import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from toytorch.autograd.api import backward, grad
from toytorch.autograd.engine import Engine
from toytorch.autograd.function import Function
from toytorch.autograd.gradcheck import gradcheck, gradgradcheck
from toytorch.autograd.modes import *
from toytorch.autograd.variable import Variable
from toytorch.facts.package import show as _show

LATER = {  # what is seldom asked for, and where it is
    "SavedTensor": "facts.saved",
    "kineto_available": "profiler.session",
    "ProfilerActivity": "profiler.session",
}


def __getattr__(name: str) -> object:
    if name == "profiler_util":
        return importlib.import_module("toytorch.autograd.profiler_util")
    if name not in LATER:
        raise AttributeError(f"module 'torch.autograd' has no attribute '{name}'")
    return getattr(importlib.import_module(f"toytorch.{LATER[name]}"), name)


def variable(*args: object, **kwargs: object) -> None:
    """Raises RuntimeError: `torch.tensor` makes tensors. The module of this name has `Variable`."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


_show(globals(), "engine", "forward_ad", "functional", "grad_mode", "graph", "profiler")

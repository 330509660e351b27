"""Devices: one module each, behind the protocol of `base`; and the switches of `torch.backends`."""

import importlib
import os
from types import ModuleType

from toytorch.backends import base, cuda, cudnn, cupy, mkl, mkldnn, mps, numpy, openmp, sparse

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]

base.register("cpu", numpy.backend)
base.register("cuda", cupy.backend)
base.register("sparse", sparse.backend)  # a layout on the devices above, no device of its own

if os.environ.get("TOYTORCH_CUDA"):
    from toytorch.backends.simulator.backend import from_environment  # few programs need it

    from_environment(os.environ["TOYTORCH_CUDA"])


def __getattr__(name: str) -> ModuleType:
    """Finds what is imported when first named."""
    if name not in ("cpu", "opt_einsum"):
        raise AttributeError(f"module 'torch.backends' has no attribute '{name}'")
    return importlib.import_module(f"toytorch.backends.{name}")

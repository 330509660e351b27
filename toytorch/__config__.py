"""What toytorch runs on, in words."""

from __future__ import annotations

import os
import platform

import numpy as np

from toytorch.backends import base
from toytorch.loops.runtime import blas
from toytorch.version import own


def show() -> str:
    """The versions of what toytorch is built on, and what it may use here.

    >>> show().split()[0]
    'toytorch'
    """
    lines = [
        f"toytorch {own} built on:",
        f"  - Python {platform.python_version()}",
        f"  - NumPy {np.__version__}",
        f"  - {_compiler()}",
        f"  - {'CUDA through CuPy' if base.of_kind('cuda').is_available() else 'no CUDA'}",
        f"  - {platform.machine()}, {os.cpu_count()} cores",
    ]
    return "\n".join(lines) + "\n"


def _compiler() -> str:
    if os.environ.get("TOYTORCH_NATIVE") == "0":
        return "no compiled loops (TOYTORCH_NATIVE=0)"
    try:
        import llvmlite  # an optional package
    except ImportError:
        return "no compiled loops (llvmlite is not installed)"
    return f"llvmlite {llvmlite.__version__}"


def parallel_info() -> str:
    """How many threads are used, and for what."""
    return (
        f"toytorch parallel info:\n\tmatrix products : {blas.threads()} threads\n"
        f"\tprocessors : {os.cpu_count()}\n"
    )

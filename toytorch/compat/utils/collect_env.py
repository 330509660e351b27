"""What a report of a bug says of the machine: `python -m torch.utils.collect_env`."""

from __future__ import annotations

import os
import platform
import sys

import numpy as np

import toytorch

__all__ = ["get_pretty_env_info", "main"]


def get_pretty_env_info() -> str:
    """Versions and the processor, a line each."""
    lines = {
        "PyTorch version": f"{toytorch.__version__} (toytorch {toytorch.version.own})",
        "Is debug build": False,
        "OS": platform.platform(),
        "Python version": sys.version.replace("\n", " "),
        "Is CUDA available": toytorch.cuda.is_available(),
        "CPU": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "numpy": np.__version__,
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items())


def main() -> None:
    """Prints it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()

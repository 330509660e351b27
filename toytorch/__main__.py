"""`python -m toytorch program.py …` runs a program in which `import torch` means toytorch."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from toytorch.alias import install


def main() -> None:
    """Runs the program named first, with the arguments behind it."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m toytorch PROGRAM.py [ARGUMENTS]")
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    install()
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()

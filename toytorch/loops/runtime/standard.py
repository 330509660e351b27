"""Compiled kernels that come with the package, so that the first training step need not wait.

A pack, `toytorch/loops/standard/SYSTEM-LEVEL.zip`, holds the object files of the kernels that usual
networks and optimizers need, for one operating system and one level of processors (see
`loops.processor`). Each is named by the digest of its text for LLVM: a kernel whose text has
changed is not found, and compiled. `python -m tests.standard_kernels` makes the packs.
"""

from __future__ import annotations

import contextlib
import sys
import zipfile
import zlib
from functools import cache as once
from pathlib import Path

from toytorch.loops import processor
from toytorch.loops.runtime import cache

FOLDER = Path(__file__).parents[1] / "standard"


def pack(system: str, level: str) -> Path:
    """The file for an operating system, as sys.platform names it, and a level."""
    return FOLDER / f"{system}-{level}.zip"


def name(text: str) -> str:
    """The name of a kernel's object file in a pack.

    >>> name("define void @run_kernel()") == name("define  void @run_kernel()")
    False
    """
    return cache.digest(text) + ".o"


@once
def opened() -> zipfile.ZipFile | None:
    """The pack for this machine, if there is one that can be read."""
    try:
        return zipfile.ZipFile(pack(sys.platform, processor.level()))
    except (OSError, zipfile.BadZipFile):
        return None


def find(text: str) -> bytes | None:
    """The object file of a module's text, or None."""
    here = opened()
    if here is not None:
        with contextlib.suppress(KeyError, OSError, zipfile.BadZipFile, zlib.error):
            return here.read(name(text))
    return None

"""Where in the user's program a call came from."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache

from toytorch.facts.package import is_ours

LIBRARY = tuple(p + os.sep for kind in ("stdlib", "platstdlib") if (p := sysconfig.get_path(kind)))
MOST = 32


def call_sites() -> list[str]:
    """The calls that led here, the innermost first, without toytorch's and Python's own.

    Each as "file.py(12): function", the file as seen from the working directory.
    """
    sites: list[str] = []
    frame = sys._getframe(1)
    while frame is not None and len(sites) < MOST:
        module = frame.f_globals.get("__name__", "")
        name = None if is_ours(module) else shown(frame.f_code.co_filename)
        if name is not None:
            sites.append(f"{name}({frame.f_lineno}): {frame.f_code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]  # None above the outermost
    return sites


@cache
def shown(file: str) -> str | None:
    """The name to show of a source file, None for those to leave out."""
    if file.startswith("<frozen") or (file.startswith(LIBRARY) and "-packages" not in file):
        return None
    here = os.getcwd() + os.sep
    return file.removeprefix(here)

"""Whether functions and modules are compiled at all: PYTORCH_JIT=0 leaves them to Python."""

from __future__ import annotations

import os

enabled = os.environ.get("PYTORCH_JIT", "1") not in ("0", "")


def enable() -> None:
    """From now on `trace` and `script` compile what they are given."""
    global enabled
    enabled = True


def disable() -> None:
    """From now on `trace` and `script` give back what they are given."""
    global enabled
    enabled = False

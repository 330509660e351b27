"""What a call does beside its result, which a graph would not do again.

Writing to tensors is not meant: graphs do that.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.jit.guards import GuardedState

CHANGES = "it changes objects that it reads"


class Noting:
    """A stream that lets everything through, and knows whether something was written.

    A warning does not count: what is warned of at the first call is not warned of again.
    """

    def __init__(self, stream: Any) -> None:
        self.stream, self.used = stream, False

    def write(self, text: str) -> Any:
        """Writes."""
        self.used |= sys._getframe(1).f_globals.get("__name__") != "warnings"
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class SideEffects:
    """`with SideEffects(...) as effects: call()`; then `effects.found` says what was seen."""

    def __init__(self, guarded: GuardedState, leaves: Sequence[Any]) -> None:
        self.guarded, self.leaves = guarded, leaves
        self.found = ""

    def __enter__(self) -> SideEffects:
        self.before = self.snapshot()
        self.streams = sys.stdout, sys.stderr
        self.noting = [Noting(s) for s in self.streams]
        sys.stdout, sys.stderr = self.noting
        return self

    def snapshot(self) -> tuple[Any, ...]:
        """What is compared: values that the function reads, and the places of random numbers."""
        drawn = np.random.get_state(legacy=False)["state"]
        return (
            self.guarded.kind(self.leaves),
            self.guarded.tensors(self.leaves),
            random.getstate(),
            drawn["pos"],
            drawn["key"].tobytes(),
        )

    def __exit__(self, *exc: object) -> None:
        sys.stdout, sys.stderr = self.streams
        kind, tensors, *drawn = self.snapshot()
        if any(n.used for n in self.noting):
            self.found = "it prints"
        elif list(self.before[2:]) != drawn:
            self.found = "it draws random numbers from Python or NumPy"
        elif self.before[:2] != (kind, tensors):
            self.found = CHANGES

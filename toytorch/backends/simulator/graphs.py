"""CUDA graphs on a simulated device: launches are written down once and replayed in one call.

While a graph is captured nothing is charged: no time passes for the host, and what is launched goes
into the graph. On a card nothing would be computed either. Here results exist, as shapes have to be
known, but what was written to memory that was there before is put back at the end. A replay computes
every piece again, into the same memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.backends.simulator.array import DeviceArray, note_launch
from toytorch.backends.simulator.machine import Machine, Stream, users_line
from toytorch.facts.trace import AcceleratorError


@dataclass(slots=True)
class Piece:
    """One call of a graph: its kernels (name, length, limit, bytes, operations), how to compute it
    again, and what it reads and writes."""

    kernels: list[tuple[str, float, str, int, int]]
    compute: Callable[[], Any]
    made: Any  # the results, or the host arrays, that are written again
    reads: list[DeviceArray]
    writes: list[DeviceArray]


@dataclass(slots=True)
class Replayable:
    """A graph that was captured. It holds the memory that it works in."""

    pieces: list[Piece]
    pool: int


class Capture:
    """A graph in the making, on one stream and those that join it."""

    def __init__(self, stream: Stream, pool: int) -> None:
        self.stream, self.pool = stream, pool
        self.pieces: list[Piece] = []
        self.before: dict[int, tuple[Any, Any]] = {}  # memory that was there, and its elements
        self.own: dict[int, Any] = {}  # memory that was made since

    def enter(self, stream: Stream) -> None:
        """Refuses work on the legacy default stream, as CUDA does."""
        if stream.handle == 0:
            raise AcceleratorError(
                "CUDA error: operation would make the legacy stream depend on a capturing blocking "
                "stream\nCUDA kernel errors might be asynchronously reported at some other API "
                "call, so the stacktrace below might be incorrect.\nFor debugging consider passing "
                "CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side "
                "assertions.\n"
            )

    def add(
        self,
        kernels: list[tuple[str, float, str, int, int]],
        compute: Callable[[], Any],
        made: Any,
        reads: list[DeviceArray],
        writes: list[DeviceArray],
    ) -> None:
        """Takes a call in."""
        for array in writes:
            if id(array.buffer.root) not in self.before:
                self.own[id(array.buffer.root)] = array.buffer.root
        self.pieces.append(Piece(kernels, compute, made, list(reads), list(writes)))

    def keep(self, arrays: Iterable[DeviceArray]) -> None:
        """Notes what is in memory that a call is about to use."""
        for array in arrays:
            root = array.buffer.root
            if id(root) not in self.before and id(root) not in self.own:
                self.before[id(root)] = root, root.copy(order="K")

    def made(self) -> Replayable:
        """The graph, once all memory is as it was."""
        for root, elements in self.before.values():
            np.copyto(root, elements)
        return Replayable(self.pieces, self.pool)


def replay(machine: Machine, graph: Replayable) -> None:
    """Launches a whole graph on the current stream: the host pays once."""
    source = users_line()
    stream = machine.stream_of(machine.device)
    machine.spend(machine.host.graph, "launch of a graph", source)
    for piece in graph.pieces:
        name = "graph"
        for name, length, limit, moved, work in piece.kernels:
            machine.queue(
                stream, name, length, source=source, cost=0.0, limit=limit, bytes=moved, flops=work
            )
        note_launch(machine, stream, piece.reads, piece.writes, name, source)
        write_again(piece.made, piece.compute())


def write_again(held: Any, new: Any) -> None:
    """Puts new results where the old ones are."""
    held = held.held if held.__class__ is DeviceArray else held
    if isinstance(held, np.ndarray):
        if new is not held:
            np.copyto(held, new, casting="unsafe")
    elif isinstance(held, (list, tuple)):
        for old, made in zip(held, new):
            write_again(old, made)

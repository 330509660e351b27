"""A launch: arguments become memories, blocks become batches, and what was seen becomes a report."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.cuda.emulator import program as p
from toytorch.cuda.emulator.access import MemorySystem
from toytorch.cuda.emulator.arguments import bound, dtype_of
from toytorch.cuda.emulator.counts import Counts
from toytorch.cuda.emulator.errors import Source
from toytorch.cuda.emulator.memory import Memory
from toytorch.cuda.emulator.report import Launch, Snapshot
from toytorch.cuda.emulator.run import Runner
from toytorch.cuda.emulator.threads import Batch, Dim, Geometry
from toytorch.cuda.emulator.types import Array, Type, Vector, element_of
from toytorch.facts.hints import Sizes

BATCH = 1 << 16  # threads that are emulated at once: their values fit into the cache
BYTES = 1 << 27  # of shared and local memory of a batch
SHARED_LIMIT = 227 * 1024  # bytes of a block's shared memory, as on an H100
SNAPSHOTS = 200  # barriers that are kept for the stepper
SNAPSHOT_BYTES = 1 << 16  # of each of them

Size = int | Sequence[int]


def launch(
    program: p.Program,
    source: Source,
    grid: Size,
    block: Size,
    arguments: Sequence[Any],
    shared_mem: int = 0,
) -> Launch:
    """Runs a kernel on NumPy arrays and numbers, and reports what it did; arrays change in place.

    >>> from toytorch.cuda.emulator.check import compiled
    >>> text = "__global__ void twice(float* x) { x[threadIdx.x] *= 2; }"
    >>> x = np.arange(4, dtype=np.float32)
    >>> done = launch(compiled(text), Source(text), 1, 4, [x])
    >>> x, done.totals.flops
    (array([0., 2., 4., 6.], dtype=float32), 4)
    """
    geometry = Geometry(dims(grid, "grid"), dims(block, "block"))
    check_geometry(geometry, program, shared_mem)
    system = MemorySystem(geometry, source, Counts())
    with np.errstate(all="ignore"):
        values = bound(program.kernel, arguments, system)
        return _Launcher(program, geometry, system, source, shared_mem).run(values)


class _Launcher:
    def __init__(
        self,
        program: p.Program,
        geometry: Geometry,
        system: MemorySystem,
        source: Source,
        shared_mem: int,
    ) -> None:
        self.program, self.geometry, self.system = program, geometry, system
        self.source, self.shared_mem = source, shared_mem
        self.snapshots: list[Snapshot] = []
        self.text: list[str] = []
        self.shared: list[Memory] = []  # of the batch that runs now
        self.batch = Batch(geometry, 0, 0)

    def run(self, values: list[Any]) -> Launch:
        local = sum(m.type.size for m in self.program.memories if m.space == "local")
        per_block = self.block_bytes() + local * self.geometry.threads
        at_once = max(1, min(BATCH // self.geometry.threads, BYTES // max(per_block, 1)))
        constants = self.constants()
        kept = len(self.system.memories)
        for first in range(0, self.geometry.blocks, at_once):
            del self.system.memories[kept:]
            self.batch = Batch(self.geometry, first, min(at_once, self.geometry.blocks - first))
            addresses = self.addresses(constants)
            runner = Runner(self.batch, self.system, addresses, self.on_barrier, self.write)
            runner.kernel(self.program.kernel, values)
            if first == 0:
                self.snapshot(0, "at the end")
        return Launch(
            source=self.source,
            name=self.program.kernel.name,
            grid=self.geometry.grid,
            block=self.geometry.block,
            shared_bytes=self.block_bytes(),
            begin=self.program.kernel.at[0],
            lines=dict(self.system.counts.lines),
            races=list(self.system.races.found.values()),
            findings=list(self.system.findings.values()),
            printed="".join(self.text),
            snapshots=self.snapshots,
        )

    def block_bytes(self) -> int:
        """Shared memory of one block."""
        static = sum(m.type.size for m in self.program.memories if m.space == "shared")
        return static + self.shared_mem

    def constants(self) -> dict[int, Any]:
        """Addresses of constant memory."""
        found = {}
        for number, memory in enumerate(self.program.memories):
            if memory.space == "constant":
                element = element_of(memory.type)
                data = np.array(memory.values, dtype_of(element)).view(np.uint8)
                made = Memory(
                    memory.name, "constant", memory.type.size, element.size, 1, data, False
                )
                found[number] = self.system.add(made)
        return found

    def addresses(self, constants: dict[int, Any]) -> list[Any]:
        """Of all memories of the program; shared and local ones are new for each batch."""
        found = []
        self.shared = []
        for number, memory in enumerate(self.program.memories):
            if number in constants:
                found.append(np.int64(constants[number]))
                continue
            size = self.shared_mem if memory.dynamic else memory.type.size
            copies = self.batch.blocks if memory.space == "shared" else self.batch.size
            made = Memory(memory.name, memory.space, size, _item(memory.type), copies)
            found.append(np.int64(self.system.add(made)))
            self.system.track(made)
            if memory.space == "shared":
                self.shared.append(made)
        return found

    def write(self, text: str) -> None:
        self.text.append(text)
        sys.stdout.write(text)

    def on_barrier(self, line: int, blocks: Any) -> None:
        if self.batch.first == 0 and blocks[0]:
            self.snapshot(line, "")

    def snapshot(self, line: int, title: str) -> None:
        """Keeps what the first block's shared memory holds now."""
        total = sum(memory.size for memory in self.shared)
        if not self.shared or len(self.snapshots) >= SNAPSHOTS or total > SNAPSHOT_BYTES:
            return
        declared = [m for m in self.program.memories if m.space == "shared"]
        contents = {}
        for memory, made in zip(declared, self.shared):
            dtype = dtype_of(element_of(memory.type))
            count = made.size // dtype.itemsize
            values = made.view(dtype)[:count].copy()
            bytes_known = np.repeat(made.known, made.known_size)[: count * dtype.itemsize]
            known = bytes_known.reshape(count, -1).all(axis=1)
            contents[memory.name] = (values, known, _shape(memory.type, count))
        self.snapshots.append(Snapshot(line, title, contents))


def dims(size: Size, what: str) -> Dim:
    """A grid or block as three numbers.

    >>> dims((4, 2), "grid")
    (4, 2, 1)
    """
    try:
        parts = size if isinstance(size, Sequence) else (size,)
        given = [operator.index(part) for part in parts]
    except TypeError:
        raise TypeError(f"a {what} is a whole number or up to three, not {size!r}") from None
    if not 1 <= len(given) <= 3 or min(given) < 1:
        raise ValueError(f"a {what} has one to three sizes, each at least 1, not {size!r}")
    x, y, z = [*given, 1, 1][:3]
    return x, y, z


def check_geometry(geometry: Geometry, program: p.Program, shared_mem: int) -> None:
    """ValueError for what CUDA answers with "invalid configuration argument"."""
    if geometry.threads > 1024 or geometry.block[2] > 64:
        raise ValueError(
            f"invalid configuration argument: a block of {geometry.block} has {geometry.threads} "
            "threads; at most 1024 are allowed, and 64 along z"
        )
    if max(geometry.grid[1:]) > 65535 or geometry.grid[0] > 2**31 - 1:
        raise ValueError(
            f"invalid configuration argument: a grid of {geometry.grid} is too large: "
            "2147483647 along x and 65535 along y and z are allowed"
        )
    if geometry.blocks * geometry.lanes >= 2**31:
        raise ValueError(f"{geometry.blocks * geometry.threads:,} threads are too many to emulate")
    static = sum(m.type.size for m in program.memories if m.space == "shared")
    if shared_mem < 0 or static + shared_mem > SHARED_LIMIT:
        raise ValueError(
            f"a block may have {SHARED_LIMIT} bytes of shared memory, and {static + shared_mem} "
            "are asked for"
        )


def _item(type: Type) -> int:
    """Bytes of what reports count as one element."""
    element = element_of(type)
    return element.alignment if isinstance(element, Vector) else element.size


def _shape(type: Type, count: int) -> Sizes:
    """Rows and columns that the stepper draws."""
    lengths = []
    while isinstance(type, Array):
        lengths.append(type.length or count)
        type = type.element
    if isinstance(type, Vector):
        lengths.append(type.count)
    return tuple(lengths) or (1,)

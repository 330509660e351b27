"""What a launch did: the source with its counts beside it, races, and what should be looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toytorch.cuda.emulator.access import Finding
from toytorch.cuda.emulator.counts import REGISTERS, LineCounts, short
from toytorch.cuda.emulator.errors import Source
from toytorch.cuda.emulator.races import Race
from toytorch.cuda.emulator.threads import Dim


@dataclass(slots=True)
class Snapshot:
    """The shared memory of the first block at a barrier.

    contents  by name: values, which of them were written yet, and the declared shape
    """

    line: int
    title: str
    contents: dict[str, tuple[Any, Any, tuple[int, ...]]]


@dataclass(slots=True, repr=False)
class Launch:
    """One launch of a kernel in emulation: what each line cost, and what was wrong.

    lines      counts by number of line
    races      pairs of accesses that nothing orders
    findings   reads of memory that nobody has written, and other doubtful things
    printed    what `printf` wrote

    >>> import numpy as np, toytorch
    >>> k = toytorch.cuda.kernel('''
    ... extern "C" __global__ void twice(float* x, int n) {
    ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) x[i] = 2 * x[i];
    ... }''')
    >>> done = k[4, 32](np.ones(100, np.float32), 100)
    >>> done.totals.read, done.totals.written, done.totals.divergent
    (400, 400, 1)
    >>> done.intensity
    0.125
    """

    source: Source
    name: str
    grid: Dim
    block: Dim
    shared_bytes: int
    begin: int  # the line of the kernel's name
    lines: dict[int, LineCounts]
    races: list[Race] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    printed: str = ""
    snapshots: list[Snapshot] = field(default_factory=list)

    @property
    def totals(self) -> LineCounts:
        """The counts of all lines together."""
        found = LineCounts()
        for counts in self.lines.values():
            found.add(counts)
        return found

    @property
    def intensity(self) -> float:
        """Arithmetic intensity: flops for each byte that threads move to or from global memory."""
        totals = self.totals
        moved = totals.read + totals.written
        return totals.flops / moved if moved else 0.0

    @property
    def threads(self) -> int:
        """Threads of the launch."""
        x, y, z = self.block
        a, b, c = self.grid
        return x * y * z * a * b * c

    def __repr__(self) -> str:
        return f"<launch of {self.name}: grid {self.grid}, block {self.block}>"

    def __str__(self) -> str:
        return "\n".join(
            [*self._head(), "", *self._table(), "", *self.summary(), *self.problems(), REGISTERS]
        )

    def shown_lines(self) -> range:
        """From the first line that ran, or the kernel's name before it, to the last."""
        return range(min([self.begin, *self.lines]), max([self.begin, *self.lines]) + 1)

    # the text

    def _head(self) -> list[str]:
        return [
            f"{self.name}  grid {self.grid}  block {self.block}  {self.threads:,} threads  "
            f"{self.shared_bytes:,} bytes of shared memory a block"
        ]

    def _table(self) -> list[str]:
        """Lines with their counts, and every line between the first and the last of them."""
        if not self.lines:
            return ["(nothing ran)"]
        columns = [name for name in COLUMNS if any(cell(c, name) for c in self.lines.values())]
        rows = []
        for number in self.shown_lines():
            counts = self.lines.get(number)
            cells = [cell(counts, name) if counts else "" for name in columns]
            rows.append([str(number), *cells, self.source.line(number).expandtabs(4)])
        heads = ["line", *columns, "source"]
        wide = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads) - 1)]
        return [
            "  ".join([*(word.rjust(w) for word, w in zip(row, wide)), row[-1]]).rstrip()
            for row in [heads, *rows]
        ]

    def summary(self) -> list[str]:
        """The totals in sentences."""
        t = self.totals
        said = [
            f"{t.flops:,} flops, {t.read:,} bytes read and {t.written:,} written in global memory: "
            f"{self.intensity:.3g} flops a byte."
        ]
        if t.requests:
            said.append(
                f"Coalescing: {t.sectors:,} sectors of 32 bytes in {t.requests:,} requests, "
                f"{t.least_sectors:,} at best ({t.least_sectors / t.sectors:.0%})."
            )
        if t.shared_requests:
            extra = t.wavefronts - t.least_wavefronts
            conflicts = f"{extra:,} of them for bank conflicts (the worst is {t.bank_conflict}-way)"
            said.append(
                f"Shared memory: {t.wavefronts:,} wavefronts in {t.shared_requests:,} requests, "
                f"{conflicts if extra else 'no bank conflicts'}."
            )
        if t.branches:
            said.append(
                f"Branches: {t.branches:,} times a warp came to one, {t.divergent:,} times "
                f"({t.divergent / t.branches:.0%}) it went both ways."
            )
        if t.flops_double:
            said.append(
                f"{t.flops_double:,} flops are in double precision, which most cards do slowly: "
                "1.0 is a double, 1.0f a float."
            )
        return said

    def problems(self) -> list[str]:
        """Races and findings, one a line."""
        said = [f"{race}{_times(race.count)}" for race in self.races]
        return said + [f"Warning: {f.message}{_times(f.count)}" for f in self.findings]

    # in a notebook

    def _repr_html_(self) -> str:
        from toytorch.cuda.emulator.report_html import page  # only notebooks need it

        return page(self)


def _times(count: int) -> str:
    return f" ({count:,} times)" if count > 1 else ""


COLUMNS = ("threads", "active", "flops", "global", "sectors", "shared", "banks", "diverge")


def cell(counts: LineCounts, name: str) -> str:
    """One count of a line, in words short enough for a table; empty where there is none."""
    if name == "threads":
        return short(counts.threads) if counts.threads else ""
    if name == "active":
        return f"{counts.efficiency:.0%}" if counts.warps else ""
    if name == "flops":
        return short(counts.flops) if counts.flops else ""
    if name == "global":
        moved = counts.read + counts.written
        return f"{short(moved)}B" if moved else ""
    if name == "sectors":
        if not counts.requests:
            return ""
        over = counts.sectors / counts.least_sectors if counts.least_sectors else 1.0
        return f"{counts.sectors / counts.requests:.3g}/req" + (
            f" {over:.3g}x" if over > 1.005 else ""
        )
    if name == "shared":
        moved = counts.shared_read + counts.shared_written
        return f"{short(moved)}B" if moved else ""
    if name == "banks":
        return f"{counts.bank_conflict}-way" if counts.bank_conflict > 1 else ""
    if not counts.branches or not counts.divergent:
        return ""
    return f"{counts.divergent / counts.branches:.0%}"

"""What a block's shared memory holds at each barrier of a kernel, as a page to step through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from toytorch.facts.hints import Array
from toytorch.viz.backward.steps_page import BackwardSteps
from toytorch.viz.backward.steps_picture import MARGIN, Animation
from toytorch.viz.draw import palette
from toytorch.viz.draw.scene import Rect, Scene, Text, tile
from toytorch.viz.draw.text import shorten, width

if TYPE_CHECKING:
    from toytorch.cuda.emulator.report import Launch, Snapshot

ROW, TEXT_LIMIT, GAP = 17.0, 430.0, 28.0
ROWS, COLUMNS, WRAP = 32, 33, 16  # cells that are drawn; a plain array goes on after WRAP
NUMBERS = 16  # with more columns, a cell shows its value by its shade alone
SHADES = 6


class KernelSteps(BackwardSteps):
    """The barriers of a block, to step through."""


def kernel_steps(launch: Launch) -> KernelSteps:
    """A page that steps through the barriers of a launch in emulation.

    On the left is the kernel, with the `__syncthreads()` that the first block has reached; on the
    right its shared memory. What was written since the barrier before is marked, and memory that
    holds nothing yet is empty. ValueError for a kernel without shared memory.

    >>> from toytorch.cuda import kernel
    >>> k = kernel('''
    ... extern "C" __global__ void reverse(float* x) {
    ...     __shared__ float s[8];
    ...     s[threadIdx.x] = x[threadIdx.x];
    ...     __syncthreads();
    ...     x[threadIdx.x] = s[7 - threadIdx.x];
    ... }''')
    >>> steps = kernel_steps(k[1, 8](np.arange(8, dtype=np.float32)))
    >>> steps
    <kernel steps: reverse, 2 steps to show>
    >>> print(steps.captions[0])
    Barrier 1, line 5: since the start, 8 cells of s were written.
    """
    if not launch.snapshots:
        raise ValueError(
            f"{launch.name} has no shared memory to show: kernel_steps needs a kernel that uses it, "
            "with at most 64 KiB a block"
        )
    made = _Drawing(launch).animation()
    return KernelSteps(made, f"<kernel steps: {launch.name}, {len(made.captions)} steps to show>")


class _Drawing:
    """The source, and the memories below each other."""

    def __init__(self, launch: Launch) -> None:
        self.launch, self.shots = launch, launch.snapshots
        source = {n: launch.source.line(n).expandtabs(4) for n in launch.shown_lines()}
        self.source = {
            n: shorten(line, palette.SMALL_SIZE, TEXT_LIMIT) for n, line in source.items()
        }
        wide = max(self.line_width(line) for line in self.source.values())
        self.left = MARGIN + 34 + wide + GAP
        self.scene = Scene(0, 0, f"shared memory of {launch.name}", steps=len(self.shots))

    @staticmethod
    def line_width(line: str) -> float:
        indent = len(line) - len(line.lstrip())
        return indent * 4.0 + width(line.strip(), palette.SMALL_SIZE)

    def animation(self) -> Animation:
        bottom = self.draw_source()
        right, y = self.left, MARGIN
        for name in self.shots[0].contents:
            across, y = self.memory(name, y)
            right = max(right, across)
        captions = [self.caption(at) for at in range(len(self.shots))]
        self.scene.width, self.scene.height = right + MARGIN, max(bottom, y) + MARGIN
        self.scene.description = " ".join(captions)
        return Animation(self.scene, captions, len(self.shots))

    def draw_source(self) -> float:
        """The lines of the kernel; the barrier of each step is marked."""
        y = MARGIN
        wide = self.left - GAP - MARGIN
        for line, text in self.source.items():
            for at, shot in enumerate(self.shots):
                if shot.line == line:
                    self.scene.add(tile(MARGIN, y, wide, ROW, 3, palette.HOT, when=(at, at)))
            size, base = palette.SMALL_SIZE, y + 12.5
            indent = len(text) - len(text.lstrip())
            self.scene.add(
                Text(MARGIN + 22, base, str(line), size, palette.MUTED, "end"),
                Text(MARGIN + 30 + indent * 4.0, base, text.strip(), size),
            )
            y += ROW
        return y

    def memory(self, name: str, y: float) -> tuple[float, float]:
        """One array at every step; the x and y behind it."""
        grids = [grid(shot, name) for shot in self.shots]
        rows, columns = grids[0][0].shape
        shown = (min(rows, ROWS), min(columns, COLUMNS))
        written = columns <= NUMBERS
        cell_w = 14.0
        if written:
            texts = [short(v) for values, known in grids for v in values[known].tolist()[:2000]]
            cell_w = max([width(t, palette.SMALL_SIZE) for t in texts], default=20.0) + 8
        cell_h = 18.0 if written else 14.0
        title = f"{name} {rows} × {columns}" if rows > 1 else f"{name} {columns}"
        if (rows, columns) != shown:
            title += f", of which {shown[0]} × {shown[1]} are shown"
        self.scene.add(Text(self.left, y + 12, title, palette.TEXT_SIZE, bold=True))
        top = y + 20
        for row in range(shown[0]):
            for column in range(shown[1]):
                x, cell_y = self.left + column * cell_w, top + row * cell_h
                self.cell(grids, row, column, (x, cell_y, cell_w, cell_h), written)
        right = self.left + max(shown[1] * cell_w, width(title, palette.TEXT_SIZE, bold=True))
        return right, top + shown[0] * cell_h + GAP / 2

    def cell(
        self, grids: list[tuple[Array, Array]], row: int, column: int,
        box: tuple[float, float, float, float], written: bool,
    ) -> None:  # fmt: skip
        """A cell at every step: one shape for as many steps as it stays the same."""
        x, y, wide, tall = box
        states = []
        for at, (values, known) in enumerate(grids):
            before = grids[at - 1] if at else None
            value = values[row, column]
            if not known[row, column]:
                states.append(("", palette.REST, False))
                continue
            new = (
                before is None
                or not before[1][row, column]
                or bool(changed(np.asarray(value), np.asarray(before[0][row, column])))
            )
            fill = palette.BOX if written else shade(value, values[known])
            states.append((short(value.item()), fill, new))
        first = 0
        for at in range(1, len(states) + 1):
            if at < len(states) and states[at] == states[first]:
                continue
            text, fill, new = states[first]
            when = (first, at - 1)
            line = palette.HOT.line if new else palette.BOX_LINE
            if new and written:
                fill = palette.HOT.tint
            self.scene.add(
                Rect(x + 0.5, y + 0.5, wide - 1, tall - 1, 2, fill, line, 1.0, tip=text, when=when)
            )
            if written and text:
                middle = (x + wide / 2, y + tall - 5)
                self.scene.add(Text(*middle, text, palette.SMALL_SIZE, anchor="middle", when=when))
            first = at

    def caption(self, at: int) -> str:
        """What has changed since the step before."""
        shot = self.shots[at]
        told, changes = [], 0
        for name, (values, known, _) in shot.contents.items():
            if at:
                old, old_known, _ = self.shots[at - 1].contents[name]
                count = int(np.count_nonzero(known & (~old_known | changed(values, old))))
            else:
                count = int(np.count_nonzero(known))
            changes += count
            if count:
                told.append(f"{count} cells of {name}" if count > 1 else f"1 cell of {name}")
        since = "the step before" if at else "the start"
        said = " and ".join(told) + (" was written" if changes == 1 else " were written")
        head = f"Barrier {at + 1}, line {shot.line}" if shot.line else "At the end"
        return f"{head}: since {since}, {said if told else 'nothing was written'}."


def grid(shot: Snapshot, name: str) -> tuple[Array, Array]:
    """A memory as rows and columns: its values, and which of them are known."""
    values, known, shape = shot.contents[name]
    columns = shape[-1]
    if len(shape) == 1 and columns > WRAP:
        columns = WRAP
    missing = -len(values) % columns
    padded = np.append(values, np.zeros(missing, values.dtype)).reshape(-1, columns)
    return padded, np.append(known, np.zeros(missing, bool)).reshape(-1, columns)


def short(value: float | bool) -> str:
    """A number in a cell: three digits, since a row of 16 has to fit beside the source."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def changed(values: Array, old: Array) -> Array:
    """Where elements differ; not-a-number is the same as itself."""
    found: Array = values != old
    if values.dtype.kind == "f":
        found &= ~(np.isnan(values) & np.isnan(old))
    return found


def shade(value: Array, all_values: Array) -> str:
    """A blue that is the darker the larger a value is among the others.

    >>> shade(np.float32(0), np.float32([0, 1])), shade(np.float32(1), np.float32([0, 1]))
    ('#e4eff9', '#5a90c3')
    """
    low, high = float(all_values.min()), float(all_values.max())
    part = (float(value) - low) / (high - low) if high > low else 0.0
    step = round(part * SHADES) / SHADES * 0.74 if part == part else 0.0
    ends = [
        [int(color[i : i + 2], 16) for i in (1, 3, 5)]
        for color in (palette.BLUE.tint, palette.BLUE.line)
    ]
    mixed = [round(a + (b - a) * step) for a, b in zip(*ends)]
    return "#" + "".join(f"{part:02x}" for part in mixed)

"""A kernel's occupancy: how many of its warps one multiprocessor holds, and what sets the limit.

Three curves show what another block size, other registers or other shared memory would give, with the
kernel's own point on each. Below is what each resource allows, and the multiprocessor with its warps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toytorch.facts.cards import KIB, Card, card_of
from toytorch.facts.occupancy import PARTITIONS, Occupancy, shared_memory_rules
from toytorch.facts.occupancy import occupancy as found_of
from toytorch.viz.draw import palette
from toytorch.viz.draw.axes import Panel
from toytorch.viz.draw.measures import size
from toytorch.viz.draw.picture import Picture
from toytorch.viz.draw.scene import Path, Point, Rect, Scene, Text, heading, remark, segment, tile
from toytorch.viz.draw.text import shorten
from toytorch.viz.draw.text import width as text_width

MARGIN, GAP, TALL = 20.0, 26.0, 130.0
SCALE = 42.0  # the room for percentages before the panels
NARROW = 680.0  # below it, everything stands below each other
HUES = (palette.GREEN, palette.BLUE, palette.AMBER, palette.PURPLE, palette.SKY)  # of blocks
HERE = palette.RED


@dataclass(frozen=True, slots=True)
class Sweep:
    """One of the curves: what varies, over which values, where the kernel is, and the ticks.

    A number between two values gets what the larger one gets.
    """

    title: str
    start: int  # of the axis
    unit: int  # the values on the axis are counted in it
    values: Sequence[int]
    here: int
    ticks: Sequence[int]
    share: Callable[[int], float]


def occupancy(
    threads_of_block: int,
    registers: int = 32,
    shared: int = 0,
    card: str | Card = "H100",
    *,
    width: float = 960.0,
) -> Picture:
    """How many blocks and warps of a kernel one multiprocessor holds, and by what it is limited.

    `threads_of_block` is the block size, `registers` the registers of a thread, `shared` the bytes
    of shared memory of a block, `card` a name or a `Card` of `toytorch.facts.cards`. The numbers are
    those of `toytorch.facts.occupancy`, by the rules of NVIDIA's occupancy calculator. `width` is
    that of the picture. Raises ValueError for an unknown card, for a block of no threads, for
    negative numbers, and for a width below 320.

    >>> occupancy(256, registers=40, card="A100")
    occupancy: 6 blocks, 48 of 64 warps (75%), limited by registers
    >>> occupancy(1024, registers=128)
    occupancy: 0 blocks, 0 of 64 warps (0%), limited by registers
    """
    if width < 320:
        raise ValueError(f"a picture of occupancy is at least 320 wide, not {width:g}")
    known = card_of(card)
    found = found_of(known, threads_of_block, registers, shared)
    limits = " and ".join(found.limited_by)
    summary = (
        f"occupancy: {found.blocks} block{'s' * (found.blocks != 1)}, {found.warps} of"
        f" {known.warps} warps ({found.share:.0%}), limited by {limits}"
    )
    drawing = _Drawing(known, found, threads_of_block, registers, shared, width)
    return Picture(drawing.scene(), summary)


class _Drawing:
    """The parts of the picture."""

    def __init__(
        self, card: Card, found: Occupancy, threads: int, registers: int, shared: int, wide: float
    ) -> None:
        self.card, self.found, self.wide = card, found, wide
        self.threads, self.registers, self.shared = threads, registers, shared
        self.warps = -(-threads // card.warp)  # of a block
        self.stacked = wide < NARROW
        self.out = Scene(wide, 0.0, f"occupancy on a multiprocessor of the {card.name}")

    def scene(self) -> Scene:
        """All parts."""
        y = self.heading()
        y = self.curves(y + 36)
        room = self.wide - 2 * MARGIN
        if self.stacked:
            y = self.resources(MARGIN, y + 40, room)
            y = self.multiprocessor(MARGIN, y + 34, room)
        else:
            half = (room - 2 * GAP) / 2
            left = self.resources(MARGIN, y + 40, half)
            right = self.multiprocessor(MARGIN + half + 2 * GAP, y + 40, half)
            y = max(left, right)
        self.out.height = y + MARGIN
        self.out.ground()
        return self.out

    def heading(self) -> float:
        """The kernel and its figures in words."""
        found, card = self.found, self.card
        parts = [f"{self.threads:,} threads a block", f"{self.registers} registers a thread"]
        parts += [f"{size(self.shared)} of shared memory"] if self.shared else []
        kernel = ", ".join(parts)
        if found.blocks:
            blocks = f"{found.blocks} block{'s' * (found.blocks != 1)}"
            said = f"{blocks}, {found.warps} of {card.warps} warps: {found.share:.0%}"
        else:
            said = "the card refuses this kernel"
        limits = f"limited by {' and '.join(found.limited_by)}"
        self.out.description = f"{kernel}: {said}, {limits}."
        room = self.wide - 2 * MARGIN
        y, beside = 26.0, text_width(limits, palette.TEXT_SIZE, bold=True)
        head = shorten(f"{card.name}: {said}", palette.TITLE_SIZE, room, bold=True)
        self.out.add(heading(MARGIN, y, head))
        for line in [kernel] if text_width(kernel, palette.TEXT_SIZE) <= room else parts:
            y += 19
            self.out.add(Text(MARGIN, y, line, palette.TEXT_SIZE, palette.MUTED))
        if self.stacked:
            y += 19
            self.out.add(Text(MARGIN, y, limits, palette.TEXT_SIZE, palette.ALARM, bold=True))
        else:
            at = (self.wide - MARGIN - beside, 26.0)
            self.out.add(Text(*at, limits, palette.TEXT_SIZE, palette.ALARM, bold=True))
        return y

    # curves --------------------------------------------------------------------------------------

    def curves(self, y: float) -> float:
        """The three panels, beside or below each other."""
        for number, sweep in enumerate(self.sweeps()):
            if self.stacked:
                x, room = MARGIN + SCALE, self.wide - 2 * MARGIN - SCALE - 8
            else:
                room = (self.wide - 2 * MARGIN - SCALE - 2 * GAP - 8) / 3
                x = MARGIN + SCALE + number * (room + GAP)
            self.curve(sweep, x, y, room, scale=self.stacked or not number)
            if self.stacked:
                y += TALL + 62
        return y - 40 if self.stacked else y + TALL + 22

    def sweeps(self) -> list[Sweep]:
        """What varies in each panel, the other two staying as they are."""
        card, threads, registers, shared = self.card, self.threads, self.registers, self.shared
        most = card.shared_of_block
        step = 32 * KIB if most > 128 * KIB else 16 * KIB
        return [
            Sweep(
                "threads of a block", 1, 1, range(card.warp, card.threads_of_block + 1, card.warp),
                threads, (1, 256, 512, 768, 1024),
                lambda n: found_of(card, n, registers, shared).share,
            ),
            Sweep(
                "registers of a thread", 1, 1, range(1, card.registers_of_thread + 1), registers,
                (1, 64, 128, 192, 255),
                lambda n: found_of(card, threads, n, shared).share,
            ),
            Sweep(
                "shared memory of a block, KiB", 0, KIB,
                range(0, most + 1, shared_memory_rules(card)[0]), shared,
                range(0, most + 1, step),
                lambda n: found_of(card, threads, registers, n).share,
            ),
        ]  # fmt: skip

    def curve(self, sweep: Sweep, x: float, y: float, room: float, scale: bool) -> None:
        """One panel: occupancy as steps, and a dot where the kernel is."""
        panel = Panel(x, y, room, TALL, (sweep.start, sweep.values[-1]), (0.0, 1.08))
        out = self.out
        out.add(Text(x, y - 8, sweep.title, palette.TEXT_SIZE, bold=True), panel.ground())
        for share in (0.0, 0.5, 1.0):
            a, b = panel.at(sweep.start, share), panel.at(sweep.values[-1], share)
            out.add(Path(segment(a, b), stroke=palette.FRAME))
            if scale:
                words = f"{share:.0%}"
                out.add(remark(x - 8, a[1] + 4, words, "end"))
        ticks = list(sweep.ticks)
        if (ticks[-1] - ticks[0]) / (len(ticks) - 1) * room / sweep.values[-1] < 34:
            ticks = ticks[::2]
        for tick in ticks:
            out.add(panel.below(tick, f"{tick // sweep.unit:,}"))
        points: list[Point] = []
        for before, value in zip((sweep.start, *sweep.values), sweep.values):
            share = sweep.share(value)
            if not points or points[-1][1] != share:
                points += [(before, points[-1][1])] if points else []
                points.append((before, share))
        points.append((sweep.values[-1], points[-1][1]))
        out.add(panel.line(points, palette.BLUE.line, 1.8))
        here = self.found.share
        foot, dot = panel.at(sweep.here, 0.0), panel.at(sweep.here, here)
        out.add(Path(segment(foot, dot), stroke=HERE.line, line=1.0, dash=(3.0, 2.0)))
        mark = panel.dot(sweep.here, here, HERE.line, 5.0)
        assert isinstance(mark, Rect)
        tip = f"{sweep.here / sweep.unit:,g} {sweep.title}: {here:.0%}"
        out.add(Rect(mark.x, mark.y, mark.w, mark.h, mark.r, mark.fill, mark.stroke, 1.2, tip=tip))

    # resources -----------------------------------------------------------------------------------

    def resources(self, x: float, y: float, room: float) -> float:
        """What each resource allows, and how much of it is taken; returns where it ends."""
        found, card = self.found, self.card
        self.out.add(Text(x, y, "what each allows", palette.TEXT_SIZE, bold=True))
        registers = found.warp_registers * self.warps
        rows = [
            ("threads", self.warps * card.warp, card.threads),
            ("blocks", 1, card.blocks),
            ("registers", registers, card.registers),
            ("shared memory", found.block_shared, card.shared_memory),
        ]
        y += 12
        for name, each, whole in rows:
            count = size if name == "shared memory" else "{:,}".format
            taken, limit = each * found.blocks, found.limits.get(name)
            tight = limit == found.blocks
            hue = HERE if tight else palette.BLUE
            used = self.refused(name) if limit == 0 else f"{count(taken)} of {count(whole)}"
            allows = "none used" if limit is None else f"{limit:,} block{'s' * (limit != 1)}"
            tip = f"a block takes {count(each)}"
            color = palette.ALARM if tight else palette.INK
            self.out.add(
                Text(x, y + 13, name, palette.TEXT_SIZE, color, bold=tight, tip=tip),
                Text(x + room, y + 13, allows, palette.TEXT_SIZE, color, "end", bold=tight),
                Rect(x, y + 19, room, 8, 3, palette.REST, palette.FRAME),
                remark(x, y + 39, used),
            )
            if taken:
                wide = room * min(taken / whole, 1.0)
                self.out.add(tile(x, y + 19, wide, 8, 3, hue, tip=tip))
            y += 52
        return y - 10

    def refused(self, name: str) -> str:
        """Why not even one block fits."""
        card = self.card
        if name == "threads":
            return f"a block has at most {card.threads_of_block:,}"
        if name == "shared memory":
            return f"a block has at most {size(card.shared_of_block)}"
        if self.registers > card.registers_of_thread:
            return f"a thread has at most {card.registers_of_thread}"
        return f"a block needs {self.found.warp_registers * self.warps:,} of {card.registers:,}"

    # the multiprocessor ----------------------------------------------------------------------------

    def multiprocessor(self, x: float, y: float, room: float) -> float:
        """Its four partitions with a cell for each warp, filled by blocks; returns where it ends."""
        found, card = self.found, self.card
        title = "a multiprocessor, with a cell for each warp"
        self.out.add(Text(x, y, title, palette.TEXT_SIZE, bold=True))
        slots = card.warps // PARTITIONS
        wide, tall = (room - 3 * 12) / PARTITIONS, 30.0
        per_row = slots // 2
        cell = (wide - 10) / per_row
        y += 12
        for part in range(PARTITIONS):
            left = x + part * (wide + 12)
            self.out.add(Rect(left, y, wide, 2 * tall + 8, 5, palette.BOX, palette.BOX_LINE))
            for slot in range(slots):
                number = slot * PARTITIONS + part  # warps go round the partitions
                at = (left + 5 + slot % per_row * cell, y + 5 + slot // per_row * tall)
                self.out.add(self.cell(number, at, cell - 2, tall - 3))
        y += 2 * tall + 8
        idle = card.warps - found.warps
        words = f"{found.warps} warps of {found.blocks} block{'s' * (found.blocks != 1)}"
        words += f", {idle} cell{'s' * (idle != 1)} empty" if idle else ", no cell empty"
        self.out.add(remark(x, y + 18, words))
        if self.warps * card.warp != self.threads and found.blocks:
            spare = self.warps * card.warp - self.threads
            words = f"the last warp of each block has {spare} threads that do nothing"
            self.out.add(Text(x, y + 35, words, palette.SMALL_SIZE, palette.ALARM))
            y += 17
        return y + 20

    def cell(self, number: int, at: Point, wide: float, tall: float) -> Rect:
        """One warp's place."""
        if number >= self.found.warps:
            return Rect(*at, wide, tall, 2, palette.PAPER, palette.FRAME, tip="empty")
        block, warp = divmod(number, self.warps)
        hue = HUES[block % len(HUES)]
        return Rect(*at, wide, tall, 2, hue.tint, hue.line, tip=f"block {block}, warp {warp}")

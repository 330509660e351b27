"""How much fits on a page of the slides: parts of a page, their heights, and where pages end.

Heights are estimated here rather than measured in a browser, so that the same source gives the
same pages everywhere. The estimates are those of DejaVu, which is wider than most fonts; a test
measures every page in a browser.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import unescape

from toytorch.viz.draw.text import width

WIDTH, HEIGHT = 1280, 720
ROOM = WIDTH - 2 * 36.0  # across, between the rims that slides.css leaves
TALL = HEIGHT - 14.0 - 46.0  # down: the foot has the page number and the arrows
SIZES = (32, 28, 26, 24)  # of code, the largest that fits; longer code goes on to another page
TEXT = {32: 32, 28: 29, 26: 27, 24: 26}  # of prose beside code of that size
GAP = 14.0  # below each part
LEADING, LINE = 1.3, 1.38  # of code and of prose
_MONO = 0.603  # the width of a letter of code
_WIDER = 1.16  # DejaVu Sans against the table of widths


@dataclass(frozen=True)
class Part(ABC):
    """Something that is shown as a whole; its height depends on the page's size of code."""

    html: str

    @abstractmethod
    def height(self, size: int, room: float = ROOM) -> float:
        """What it takes at a size of code."""

    def fits(self, size: int) -> bool:
        """Whether it may be shown at this size at all."""
        return True

    def split(self, tall: float) -> list[Part]:
        """The same in pieces that are at most so tall, if that can be done."""
        return [self]

    def placed(self, size: int, tall: float, room: float = ROOM) -> str:
        """The HTML, for a part that is given so much height and width."""
        return self.html


@dataclass(frozen=True)
class Heading(Part):
    """A title; ``level`` is 1 to 3."""

    level: int = 2

    def height(self, size: int, room: float = ROOM) -> float:
        """Lines of the title, and the rule below it."""
        letters = {1: 42, 2: 38, 3: 31}[self.level]
        lines = _lines(plain(self.html), letters * 1.08, room)
        return lines * letters * 1.15 + {1: 24, 2: 28, 3: 16}[self.level]


@dataclass(frozen=True)
class Prose(Part):
    """One block of Markdown: a paragraph, a list, a table, a formula."""

    source: str = ""

    @property
    def announces(self) -> bool:
        """Whether it ends with a colon: it means what comes next."""
        return self.source.rstrip(" \n*_").endswith(":")

    def height(self, size: int, room: float = ROOM) -> float:
        """Estimated from the Markdown."""
        text = float(TEXT[size])
        lines = self.source.strip("\n").splitlines()
        first = lines[0].lstrip() if lines else ""
        if first.startswith("|"):
            return _table(lines, text, room) + GAP
        if first.startswith("$$"):
            formulas = len(re.findall(r"\\\\", self.source)) + 1
            tall = r"\frac" in self.source or r"\sum" in self.source or r"\prod" in self.source
            return formulas * text * (2.9 if tall else 1.9) + GAP + 14
        if first.startswith("```"):
            return code_height(len(lines) - 2, size)
        if re.match(r"([-*]|\d+\.) ", first):
            items = re.split(r"\n(?=\s*(?:[-*]|\d+\.) )", self.source)
            return sum(_item(item, size, room - 40) for item in items) + GAP
        if first.startswith(">"):
            return _lines(self.source.replace("\n> ", " "), text, room - 64) * text * LINE + GAP
        return _lines(self.source, text, room) * text * LINE + GAP


@dataclass(frozen=True)
class Code(Part):
    """Lines in a fixed width: code, or what it printed. Each line of the HTML is one line."""

    lines: tuple[str, ...] = ()
    printed: bool = False
    around: tuple[str, str] = ("", "")
    above: float = 0.0  # the height of a caption

    def height(self, size: int, room: float = ROOM) -> float:
        """Lines that are too long are broken."""
        rows = sum(_rows(line, size) for line in self.lines)
        return code_height(rows, size, self.printed) + self.above

    def fits(self, size: int) -> bool:
        """Code is not broken only to be larger."""
        return (
            self.printed or all(_rows(line, size) == 1 for line in self.lines) or size == SIZES[-1]
        )

    def split(self, tall: float) -> list[Part]:
        """At blank lines, as few pieces as can be, about equally long."""
        size = SIZES[-1]
        most = max(4, int((tall - code_height(0, size)) / (size * LEADING)))
        count = sum(_rows(line, size) for line in self.lines)
        if count <= most:
            return [self]
        pieces: list[Part] = []
        at, left = 0, math.ceil(count / most)
        while at < len(self.lines):
            end = _cut(self.lines, at, min(most, math.ceil((len(self.lines) - at) / left) + 3))
            pieces.append(self._lines(at, end))
            at, left = end, max(1, left - 1)
        return pieces

    def parted(self, tall: float, room: float) -> list[Part]:
        """In two, the second one at most so tall and else as long as can be."""
        size = SIZES[-1]
        starts = [at for at, line in enumerate(self.lines) if at > 1 and _begins(line)]
        blank = [at for at in starts if not self.lines[at - 1].strip()]
        for at in [*blank, *starts]:
            ahead, behind = self._lines(0, at), self._lines(at, len(self.lines))
            if ahead.height(size) <= room and behind.height(size) <= tall:
                return [ahead, behind]
        return []

    def _lines(self, start: int, stop: int) -> Code:
        """Some of the lines, without blank ones at the ends."""
        while start < stop and not self.lines[start].strip():
            start += 1
        while start < stop and not self.lines[stop - 1].strip():
            stop -= 1
        html = "\n".join(self.html.split("\n")[start:stop])
        return replace(self, html=html, lines=self.lines[start:stop])

    def placed(self, size: int, tall: float, room: float = ROOM) -> str:
        """Between its opening and closing tags."""
        return self.html.join(self.around)


@dataclass(frozen=True)
class Panel(Part):
    """HTML with a layout of its own, such as a milestone's report."""

    def height(self, size: int, room: float = ROOM) -> float:
        """Estimated from its text."""
        broken = re.sub(r"</(p|div|li|tr|h\d|pre)>|<br ?/?>|\n", "\0", self.html)
        lines = [line for line in plain(broken).split("\0") if line.strip()]
        return sum(_lines(line, 27, room - 40) for line in lines) * 24 * 1.35 + 54 + GAP


@dataclass(frozen=True)
class Figure(Part):
    """A picture that takes the room it gets.

    Fields:
        shapes: ways to show it, as (width, height, HTML), the one to be preferred first.
        letters: the size of its smallest lettering where it is shown in its own size.
        above: the height of what does not grow with it, such as a stepper's buttons.
    """

    shapes: tuple[tuple[float, float, str], ...] = ()
    letters: float = 15.0
    above: float = 0.0

    def height(self, size: int, room: float = ROOM) -> float:
        """The least height at which its lettering can be read."""
        scale = READABLE / self.letters
        least = [high * scale for wide, high, _ in self.shapes if wide * scale <= room]
        return (min(least) if least else TALL) + self.above + GAP

    def scale(self, one: tuple[float, float, str], tall: float, room: float) -> float:
        """How much larger than itself a way to show it is in such a place."""
        inner = room - (24 if self.above else 0)  # a stepper has a frame
        return min(inner / one[0], (tall - self.above - GAP) / one[1], LARGEST / self.letters)

    def best(self, tall: float, room: float = ROOM) -> tuple[float, float, str]:
        """The first way that can be read in such a place, else the largest."""
        by_size = sorted(self.shapes, key=lambda one: -self.scale(one, tall, room))
        readable = (o for o in self.shapes if self.scale(o, tall, room) * self.letters >= READABLE)
        return next(readable, by_size[0])

    def placed(self, size: int, tall: float, room: float = ROOM) -> str:
        """As large as it can be."""
        best = self.best(tall, room)
        return best[2].replace("TALL", f"{best[1] * self.scale(best, tall, room):.0f}")


READABLE, LARGEST = 14.4, 28.0  # pixels of a picture's lettering as shown


@dataclass
class Unit:
    """The parts of one cell, which stay together where they can."""

    parts: list[Part]
    kind: str = ""


@dataclass
class Page:
    """Units on one page, and the size of its code."""

    title: Heading | None
    units: list[Unit] = field(default_factory=list)
    size: int = SIZES[-1]
    beside: bool = False  # the last part, a picture, stands on the right of the others

    @property
    def parts(self) -> list[Part]:
        """All parts below the title."""
        return [part for unit in self.units for part in unit.parts]

    def taken(self, size: int) -> float:
        """The height that everything takes."""
        top = self.title.height(size) if self.title else 0.0
        return top + sum(part.height(size) for part in self.parts)

    def settle(self) -> None:
        """The largest size of code at which everything fits."""
        for size in SIZES:
            if self.taken(size) <= TALL and all(part.fits(size) for part in self.parts):
                self.size = size
                return
        self.size = SIZES[-1]

    def share(self, part: Part) -> float:
        """The height that a part may have: figures share what the others leave."""
        if not isinstance(part, Figure):
            return part.height(self.size)
        needs = sum(one.height(self.size) for one in self.parts if isinstance(one, Figure))
        left = TALL - self.taken(self.size) + needs
        return left * part.height(self.size) / needs


def pages(title: Heading | None, units: Sequence[Unit]) -> list[Page]:
    """Spread units over as many pages as they need, each with the title."""
    size = SIZES[-1]
    one = Page(title, list(units))
    if one.taken(size) > TALL and _stands_beside(one):
        return [one]
    found = [Page(title)]
    for unit in _whole(units, title):
        here = found[-1]
        need = sum(part.height(size) for part in unit.parts)
        if here.units and here.taken(size) + need > TALL:
            found.append(here := Page(title))
        here.units.append(unit)
    for page in found:
        page.settle()
    return found


LEFT, BETWEEN = 460.0, 28.0  # the width of prose beside a picture, and the gap


def _stands_beside(page: Page) -> bool:
    """Whether a page is prose and a picture that can stand beside it; it is then set so."""
    *before, last = page.parts
    if not isinstance(last, Figure) or last.above or not before:
        return False
    if not all(isinstance(part, Prose) for part in before):
        return False
    for size in SIZES[1:]:
        room = TALL - (page.title.height(size) if page.title else 0.0)
        best = last.best(room, ROOM - LEFT - BETWEEN)
        readable = last.scale(best, room, ROOM - LEFT - BETWEEN) * last.letters >= READABLE
        if readable and sum(part.height(size, LEFT) for part in before) <= room:
            page.size, page.beside = size, True
            return True
    return False


def _whole(units: Sequence[Unit], title: Heading | None) -> list[Unit]:
    """Units none of which is taller than a page: longer ones are taken apart."""
    size, room = SIZES[-1], TALL - (title.height(SIZES[-1]) if title else 0.0)
    whole: list[Unit] = []
    for unit in units:
        if sum(part.height(size) for part in unit.parts) <= room:
            whole.append(unit)
            continue
        whole += [Unit(some, unit.kind) for some in _pieces(unit.parts, room)]
    return whole


def _pieces(parts: Sequence[Part], room: float) -> list[list[Part]]:
    """Parts taken apart, a page each; what code printed stays with the last lines of the code."""
    size = SIZES[-1]
    first, *rest = parts
    below = sum(part.height(size) for part in rest)
    if isinstance(first, Code) and rest and below < 0.7 * room:
        ends = first.parted(room - below, room)
        if ends:
            return [ends[:1], [*ends[1:], *rest]]
    found: list[list[Part]] = [[]]
    for part in (piece for whole in parts for piece in whole.split(room)):
        if found[-1] and sum(one.height(size) for one in [*found[-1], part]) > room:
            found.append([])
        found[-1].append(part)
    return found


def fitting(title: Heading, parts: Sequence[Part], last: Part) -> list[Part]:
    """As many parts as one page has room for, and `last` behind them if some are left out."""
    size, room = SIZES[-1], TALL - title.height(SIZES[-1])
    if sum(part.height(size) for part in parts) <= room:
        return list(parts)
    kept: list[Part] = []
    room -= last.height(size)
    for part in parts:
        room -= part.height(size)
        if room < 0 and kept:
            break
        kept.append(part)
    while len(kept) > 1 and isinstance(kept[-1], Prose) and kept[-1].announces:
        kept.pop()  # what it announces was left out
    return [*kept, last]


def plain(html: str) -> str:
    """HTML without its tags."""
    return unescape(re.sub(r"<[^>]+>", "", html))


def code_height(lines: int, size: int, printed: bool = False) -> float:
    """The height of so many lines of code with their frame."""
    return lines * size * LEADING + (6 if printed else 22) + GAP


def _rows(line: str, size: int) -> int:
    """Lines on the page for one line of code."""
    across = int((ROOM - 34) / (size * _MONO))
    return max(1, math.ceil(len(line.expandtabs()) / across))


def _begins(line: str) -> bool:
    """Whether a line begins a statement at the top level."""
    return bool(line.strip()) and line[0] not in " )]}"


def _cut(lines: Sequence[str], at: int, most: int) -> int:
    """Where a piece that begins at a line ends: best at a blank line before a new statement."""
    if at + most >= len(lines):
        return len(lines)

    def rank(end: int) -> tuple[int, int]:
        line = lines[end]
        blank = not lines[end - 1].strip()
        inside = len(line) - len(line.lstrip())
        kind = 0 if blank and not inside else 1 if not inside and line.strip(" )]}") else 2
        return (min(kind, 2 if not blank else 1), -end)

    return min(range(at + max(3, most // 3), at + most + 1), key=rank)


def _lines(text: str, size: float, room: float) -> int:
    """Lines of prose at a size of letters, broken between words as a browser does."""
    plain = re.sub(r"\$|^> ?|\]\([^)]*\)", "", text, flags=re.M)
    lines, at, bold = 1, 0.0, False
    for word in plain.split():
        code = word.count("`") > 0
        letters = word.replace("*", "").replace("`", "")
        bold = bold or word.startswith("**")
        wide = width(letters, size) * _WIDER * (1.09 if bold else 1)
        wide += len(letters) * size * 0.12 + 6 if code else 0  # wider than prose, on a ground
        bold = bold and "**" not in word.lstrip("*")
        if at and at + wide > room * 0.98:
            lines, at = lines + 1, 0.0
        at += wide + width(" ", size) * _WIDER
    return lines


def _item(source: str, size: int, room: float) -> float:
    """An item of a list: paragraphs, and code between fences."""
    total = 5.0
    for at, piece in enumerate(re.split(r"^\s*```.*$", source, flags=re.M)):
        if at % 2:
            total += 4 + code_height(len(piece.strip("\n").splitlines()), size)
            continue
        for block in filter(str.strip, re.split(r"\n\s*\n", piece)):
            total += _lines(block.strip(), TEXT[size], room) * TEXT[size] * LINE
            total += GAP if "```" in source else 0
    return total


def _table(lines: Sequence[str], text: float, room: float) -> float:
    """A table's height: a row is as tall as its tallest cell."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    rows = [row for row in rows if not all(set(cell) <= set("-: ") for cell in row)]
    columns = max(map(len, rows))
    wide = [
        max(width(row[at], text) * _WIDER + 22 for row in rows if at < len(row))
        for at in range(columns)
    ]
    share = min(1.0, room / sum(wide))
    total = 0.0
    for row in rows:
        most = max(_lines(cell, text, max(60.0, wide[at] * share)) for at, cell in enumerate(row))
        total += (1 if share == 1.0 else most) * text * LINE + 13
    return total

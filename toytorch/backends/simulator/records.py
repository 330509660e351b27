"""What a simulated machine writes down at every launch, at the price of a tuple.

Launches are many and timelines seldom looked at, so a record is a tuple, and all of them stand in one
list in the order of the program, until somebody looks. From then on they become the objects of a
timeline at once, since whoever looks may keep the lists.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from toytorch.facts.trace import Arrow, MemoryPoint, Span, Timeline

KEPT = 50_000  # spans (and arrows, and points of memory) that are kept of a long program
# The first field of a record: what the others are.
SPAN = 0  # the fields of a Span
ARROW = 1  # the fields of an Arrow
MEMORY = 2  # the fields of a MemoryPoint
LAUNCH = 3  # a kernel and the host's part of it: see `LiveTimeline._launch`


class LiveTimeline(Timeline):
    """The timeline of a machine that is running: its lists are made once somebody looks at one.

    >>> timeline = LiveTimeline("a machine", lambda: None)
    >>> timeline.push((ARROW, 1, 2, "launch"))
    >>> timeline.arrows
    [Arrow(before=1, after=2, kind='launch')]
    """

    def __init__(self, title: str, settle: Callable[[], None]) -> None:
        self.title = title
        self._settle = settle  # lets the machine write down what it has put off
        self._rows: deque[tuple[Any, ...]] = deque(maxlen=2 * KEPT)
        self._lists: dict[str, list[Any]] = {"spans": [], "arrows": [], "memory": []}
        # Takes a record in: into the list of tuples, and later into the lists of objects.
        self.push: Callable[[tuple[Any, ...]], None] = self._rows.append

    def look(self, name: str) -> list[Any]:
        """One of the lists, which grows with the program, whenever it is looked at."""
        self._settle()
        if self.push != self._take:
            self.push = self._take
            for row in self._rows:
                self._take(row)
            self._rows.clear()
        return self._lists[name]

    def _take(self, row: tuple[Any, ...]) -> None:
        kind, fields = row[0], row[1:]
        if kind == LAUNCH:
            self._launch(*fields)
        elif kind == SPAN:
            self._lists["spans"].append(Span(*fields))
        elif kind == ARROW:
            self._lists["arrows"].append(Arrow(*fields))
        else:
            self._lists["memory"].append(MemoryPoint(*fields))
        for kept in self._lists.values():
            if len(kept) > KEPT:  # the oldest go
                del kept[: KEPT // 10]

    def _launch(
        self,
        number: int,
        name: str,
        asked: float,
        gone: float,
        start: float,
        end: float,
        place: tuple[str, int, int],
        source: tuple[str, int] | None,
        *figures: Any,
    ) -> None:
        """The host asks for a kernel from `asked` to `gone`, and it runs from `start` to `end`."""
        row, device, stream = place
        kernel = Span(number + 1, "kernel", name, row, start, end, device, stream, source, *figures)
        host = Span(number, "host", name, "host", asked, gone, None, None, source)
        self._lists["spans"] += host, kernel
        self._lists["arrows"].append(Arrow(number, number + 1, "launch"))


def made_when_asked(name: str) -> Any:
    """A list of a live timeline, made of its records."""
    return property(lambda timeline: timeline.look(name))


for _name in ("spans", "arrows", "memory"):
    setattr(LiveTimeline, _name, made_when_asked(_name))

"""What a simulated machine writes down at every launch, at the price of some references.

Launches are many and timelines seldom looked at, so the fields of a record stand one after the other in
one list, in the order of the program, until somebody looks: a tuple for each would be one more object
for Python's garbage collector, and collections were 7 % of a small training step. Fields are objects
that others have as well, where that can be, and points of memory are bytes: to let go of an old object
waits for its memory. From the first look on, records become the objects of a timeline at once, since
whoever looks may keep the lists.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from operator import methodcaller
from struct import Struct
from typing import Any

from toytorch.facts.trace import Arrow, MemoryPoint, Span, Timeline

KEPT = 50_000  # spans (and arrows, and points of memory) that are kept of a long program
# A record is a kernel and the host's part of it, whose fields are the parameters of `LiveTimeline._launch`,
# or any other object of a timeline: its class, its fields, and nothing.
LENGTH = 8
NOTHING = (None,) * (LENGTH - 2)
POINT = Struct("dqqq")  # the fields of a MemoryPoint


def records(fields: Iterable[Any], length: int) -> Iterator[tuple[Any, ...]]:
    """The records whose fields stand in a list, one after the other."""
    return zip(*[iter(fields)] * length)


class LiveTimeline(Timeline):
    """The timeline of a machine that is running: its lists are made once somebody looks at one.

    >>> timeline = LiveTimeline("a machine", lambda: None)
    >>> timeline.arrow(1, 2, "launch")
    >>> timeline.arrows
    [Arrow(before=1, after=2, kind='launch')]
    """

    def __init__(self, title: str, settle: Callable[[], None]) -> None:
        self.title = title
        self._settle = settle  # lets the machine write down what it has put off
        self._rows: deque[Any] = deque(maxlen=LENGTH * KEPT)
        self._points: deque[bytes] = deque(maxlen=KEPT)
        self._lists: dict[str, list[Any]] = {"spans": [], "arrows": [], "memory": []}
        # Takes a record in: into the lists of fields, and later into the lists of objects.
        self.push: Callable[[tuple[Any, ...]], None] = self._rows.extend
        self.point: Callable[[bytes], None] = self._points.append

    def span(self, *fields: Any) -> None:
        """A span, of which the last fields may be left out."""
        self.push((Span, fields, *NOTHING))

    def arrow(self, before: int, after: int, kind: str) -> None:
        """One span that another had to wait for."""
        self.push((Arrow, (before, after, kind), *NOTHING))

    def look(self, name: str) -> list[Any]:
        """One of the lists, which grows with the program, whenever it is looked at."""
        self._settle()
        if self.push != self._take:
            self.push, self.point = self._take, self._take_point
            for row in records(self._rows, LENGTH):
                self._take(row)
            for point in self._points:
                self._take_point(point)
            self._rows.clear()
            self._points.clear()
        return self._lists[name]

    def _take(self, row: tuple[Any, ...]) -> None:
        if row[0] is Span:
            self._keep("spans", Span(*row[1]))
        elif row[0] is Arrow:
            self._keep("arrows", Arrow(*row[1]))
        else:
            self._launch(*row)

    def _take_point(self, fields: bytes) -> None:
        self._keep("memory", MemoryPoint(*POINT.unpack(fields)))

    def _keep(self, name: str, *made: object) -> None:
        kept = self._lists[name]
        kept += made
        if len(kept) > KEPT:  # the oldest go
            del kept[: KEPT // 10]

    def _launch(
        self,
        number: int,
        name: str,
        asked: float,
        gone: float,
        start: float,
        place: tuple[str, int, int],
        source: tuple[str, int] | None,
        cost: tuple[float, str, float, int, int],
    ) -> None:
        """The host asks for a kernel from `asked` to `gone`, and it runs from `start` on."""
        (row, device, stream), (length, limit, _, moved, work) = place, cost
        kernel = Span(
            number + 1, "kernel", name, row, start, start + length, device, stream, source, moved,
            work, limit,
        )  # fmt: skip
        host = Span(number, "host", name, "host", asked, gone, None, None, source)
        self._keep("spans", host, kernel)
        self._keep("arrows", Arrow(number, number + 1, "launch"))


for _name in ("spans", "arrows", "memory"):
    setattr(LiveTimeline, _name, property(methodcaller("look", _name)))  # made when it is asked for

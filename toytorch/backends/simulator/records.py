"""What a simulated machine writes down at every launch, at the price of some references.

Launches are many and timelines seldom looked at, so the fields of a record stand one after the other in
one list, in the order of the program, until somebody looks: a tuple for each would be one more object
for Python's garbage collector, and collections were 7 % of a small training step. From the first look
on, records become the objects of a timeline at once, since whoever looks may keep the lists.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from toytorch.facts.trace import Arrow, MemoryPoint, Span, Timeline

KEPT = 50_000  # spans (and arrows, and points of memory) that are kept of a long program
# The first field of a record: what the others are. All records are of one length.
SPAN = 0  # the fields of a Span
ARROW = 1  # the fields of an Arrow
LAUNCH = 2  # a kernel and the host's part of it: see `LiveTimeline._launch`
LENGTH = 13
POINT = 4  # the fields of a MemoryPoint, which have a list of their own


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
        self._points: deque[Any] = deque(maxlen=POINT * KEPT)
        self._lists: dict[str, list[Any]] = {"spans": [], "arrows": [], "memory": []}
        # Takes a record in: into the lists of fields, and later into the lists of objects.
        self.push: Callable[[tuple[Any, ...]], None] = self._rows.extend
        self.point: Callable[[tuple[Any, ...]], None] = self._points.extend

    def span(self, *fields: Any) -> None:
        """A span, of which the last fields may be left out."""
        defaults = (None, None, None, 0, 0, "")
        self.push((SPAN, *fields, *defaults[len(fields) - LENGTH + 1 :]))

    def arrow(self, before: int, after: int, kind: str) -> None:
        """One span that another had to wait for."""
        self.push((ARROW, before, after, kind, *(None,) * (LENGTH - 4)))

    def look(self, name: str) -> list[Any]:
        """One of the lists, which grows with the program, whenever it is looked at."""
        self._settle()
        if self.push != self._take:
            self.push, self.point = self._take, self._take_point
            for row in records(self._rows, LENGTH):
                self._take(row)
            for point in records(self._points, POINT):
                self._take_point(point)
            self._rows.clear()
            self._points.clear()
        return self._lists[name]

    def _take(self, row: tuple[Any, ...]) -> None:
        kind, *fields = row
        if kind == LAUNCH:
            self._launch(*fields[:-1])
        elif kind == SPAN:
            self._keep("spans", Span(*fields))
        else:
            self._keep("arrows", Arrow(*fields[:3]))

    def _take_point(self, fields: tuple[Any, ...]) -> None:
        self._keep("memory", MemoryPoint(*fields))

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
        end: float,
        place: tuple[str, int, int],
        source: tuple[str, int] | None,
        *figures: Any,
    ) -> None:
        """The host asks for a kernel from `asked` to `gone`, and it runs from `start` to `end`."""
        row, device, stream = place
        kernel = Span(number + 1, "kernel", name, row, start, end, device, stream, source, *figures)
        host = Span(number, "host", name, "host", asked, gone, None, None, source)
        self._keep("spans", host, kernel)
        self._keep("arrows", Arrow(number, number + 1, "launch"))


def made_when_asked(name: str) -> Any:
    """A list of a live timeline, made of its records."""
    return property(lambda timeline: timeline.look(name))


for _name in ("spans", "arrows", "memory"):
    setattr(LiveTimeline, _name, made_when_asked(_name))

"""What a simulated machine writes down at every launch, at the price of a tuple.

Launches are many and timelines seldom looked at, so a record is the tuple of its fields until
somebody looks; from then on records are objects at once, since whoever looks may keep the list.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from toytorch.facts.trace import Arrow, MemoryPoint, Span, Timeline

KEPT = 50_000  # spans (and arrows, and points of memory) that are kept of a long program
Kind = TypeVar("Kind", Span, Arrow, MemoryPoint)


class Records(Generic[Kind]):
    """The latest records of one class.

    >>> arrows = Records(Arrow)
    >>> arrows.add(1, 2, "launch")
    >>> arrows.seen()
    [Arrow(before=1, after=2, kind='launch')]
    """

    __slots__ = ("_kind", "_looked", "_rows")

    def __init__(self, kind: type[Kind]) -> None:
        self._kind: Any = kind
        self._rows: list[Any] = []
        self._looked = False  # whether `_rows` holds objects

    def add(self, *fields: Any) -> None:
        """Writes down a record with these fields; the oldest go once there are too many."""
        rows = self._rows
        rows.append(self._kind(*fields) if self._looked else fields)
        if len(rows) > KEPT:
            del rows[: KEPT // 10]

    def seen(self) -> list[Kind]:
        """The records, in a list that grows with the program."""
        if not self._looked:
            self._looked = True
            self._rows[:] = [self._kind(*fields) for fields in self._rows]
        return self._rows


class LiveTimeline(Timeline):
    """The timeline of a machine that is running: its lists are made once somebody looks at one."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.kept_spans, self.kept_arrows = Records(Span), Records(Arrow)
        self.kept_memory = Records(MemoryPoint)


def made_when_asked(name: str) -> Any:
    """A list of a live timeline, made of its records."""
    return property(lambda timeline: getattr(timeline, f"kept_{name}").seen())


for _name in ("spans", "arrows", "memory"):
    setattr(LiveTimeline, _name, made_when_asked(_name))

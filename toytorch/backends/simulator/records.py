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
    """The timeline of a machine that is running."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.kept_spans, self.kept_arrows = Records(Span), Records(Arrow)
        self.kept_memory = Records(MemoryPoint)

    @property
    def spans(self) -> list[Span]:  # type: ignore[override]  # read only, and made on demand
        """What ran."""
        return self.kept_spans.seen()

    @property
    def arrows(self) -> list[Arrow]:  # type: ignore[override]
        """What waited for what."""
        return self.kept_arrows.seen()

    @property
    def memory(self) -> list[MemoryPoint]:  # type: ignore[override]
        """How much memory was in use."""
        return self.kept_memory.seen()

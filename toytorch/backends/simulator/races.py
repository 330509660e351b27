"""Who read and wrote which memory, and whether anything made one wait for the other.

Each stream is an actor, and so is the host. A vector clock says for every actor how far the others
have come for sure (Lamport 1978, Mattern 1989): a launch tells the stream what the host knows, an
event tells the stream that waits what the recording one had done, a synchronisation tells the host.
Two accesses of one place, one of them a write, with neither before the other are a race, whatever
the times were in this run.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from toytorch.facts.trace import RaceError, RaceWarning

HOST = 0  # the actor that Python is
EXACT: Any = 10_000  # how hard NumPy may think about whether two views share an element

Clock = dict[int, int]  # actor: how many of its accesses are done


@dataclass(slots=True, eq=False)
class Access:
    """One read or write of part of a memory; `low` and `high` are bytes from its start."""

    actor: int
    tick: int
    writes: bool
    low: int
    high: int
    what: str  # the op, or "copy to the host"
    where: str  # the stream, in words
    source: tuple[str, int] | None
    view: Any = None  # the array, while it is there: views that interleave may share nothing
    owner: int | None = None  # of memory that was freed: the actor whose it was

    def before(self, clock: Clock) -> bool:
        """Whether it is done for sure for whoever has that clock."""
        return clock.get(self.actor, 0) >= self.tick

    def meets(self, other: Access) -> bool:
        """Whether they touch a place in common and one of them writes."""
        if not (self.writes or other.writes) or self.low >= other.high or other.low >= self.high:
            return False
        if self.view is None or other.view is None:
            return True
        try:
            return bool(np.shares_memory(self.view, other.view, max_work=EXACT))
        except np.exceptions.TooHardError:
            return True

    def __str__(self) -> str:
        line = "an unknown line" if self.source is None else f"{self.source[0]}:{self.source[1]}"
        return f"{self.what} {'writes' if self.writes else 'reads'} it on {self.where} ({line})"


@dataclass(slots=True)
class Race:
    """Two accesses that nothing puts in order."""

    memory: str  # what they meet in, in words
    first: Access
    second: Access
    advice: str

    def __str__(self) -> str:
        return (
            f"race on {self.memory}:\n  {self.first}\n  {self.second}\n"
            f"Nothing makes one wait for the other. {self.advice}"
        )


MOST = 4096  # accesses of one actor that are remembered for one memory
# The fields of an Access: launches are many and races few, so an Access is made once one is asked for.
Entry: TypeAlias = tuple[int, int, bool, int, int, str, str, tuple[str, int] | None, Any]
# What all accesses of a launch have in common: actor, tick, what, where, source.
Who: TypeAlias = tuple[int, int, str, str, tuple[str, int] | None]
NOBODY = -1


class History:
    """The accesses of one memory that later ones may race with, by actor.

    While one actor alone has touched it, and always all of it, its latest read and its latest write
    are all that there is to know: two attributes. `accesses` is for all other cases.
    """

    __slots__ = ("_accesses", "owner", "read", "size", "write")

    def __init__(self, size: int, owner: int = NOBODY) -> None:
        self.size = size
        self.owner = owner  # the actor that alone has touched it, always as a whole; NOBODY else
        self.read: tuple[Who, Any] | None = None  # its latest read (and the array) since it wrote
        self.write: tuple[Who, Any] | None = None
        self._accesses: dict[int, dict[Any, Entry]] | None = None

    @property
    def accesses(self) -> dict[int, dict[Any, Entry]]:
        """What is known, by actor; what they did to which part of it, the earliest first."""
        found = self._accesses
        if found is None:
            found = self._accesses = {}
        if self.owner != NOBODY:
            for known, writes in ((self.write, True), (self.read, False)):
                if known is not None:
                    (actor, tick, what, where, source), view = known
                    key = writes, 0, self.size, None if view is None else view.strides
                    own = found.setdefault(actor, {})
                    own[key] = actor, tick, writes, 0, self.size, what, where, source, view
            self.owner, self.read, self.write = NOBODY, None, None
        return found

    def add(self, entry: Entry, clock: Clock) -> Access | None:
        """Takes an access in, by whoever has that clock; what it races with, if anything."""
        actor, tick, writes, low, high, what, where, source, view = entry
        accesses = self.accesses
        own = accesses.get(actor)
        found = None
        if len(accesses) > (own is not None):
            found = self._raced(Access(*entry), clock)
        if writes and not low and view.nbytes == high == self.size and found is None:
            accesses.clear()  # all others are before it
            self.owner, self.write = actor, ((actor, tick, what, where, source), view)
            return None
        if own is None:
            own = accesses[actor] = {}
        own[writes, low, high, None if view is None else view.strides] = entry
        if len(own) > MOST:
            del own[next(iter(own))]
        return found

    def _raced(self, access: Access, clock: Clock) -> Access | None:
        """An access of another actor that nothing puts before this one."""
        found = None
        for actor, theirs in self.accesses.items():
            known = clock.get(actor, 0)
            if actor != access.actor:
                for entry in theirs.values():
                    if entry[1] > known and (old := Access(*entry)).meets(access):
                        found = old
                        break
        return found

    def keep(self, access: Access) -> None:
        """Takes over an access of whoever had the memory before."""
        key = access.writes, access.low, access.high, None
        self.accesses.setdefault(access.actor, {})[key] = (
            access.actor, access.tick, access.writes, access.low, access.high,
            access.what, access.where, access.source, access.view,
        )  # fmt: skip

    def keep_all(self, other: History) -> None:
        """Takes over what another history knows."""
        self.owner, self.read, self.write = other.owner, other.read, other.write
        self._accesses = other._accesses

    def latest(self) -> list[Access]:
        """The latest write and the latest read of the actor that alone has touched it."""
        return [
            Access(who[0], who[1], writes, 0, self.size, who[2], who[3], who[4], view)
            for found, writes in ((self.write, True), (self.read, False))
            if found is not None
            for who, view in [found]
        ]

    def is_of(self, actor: int) -> bool:
        """Whether nobody else has an access in it."""
        if self.owner != NOBODY:
            return self.owner == actor
        accesses = self.accesses
        return not accesses or (len(accesses) == 1 and actor in accesses)

    def of(self, actor: int) -> list[Access]:
        """The accesses of one actor."""
        return [Access(*entry) for entry in self.accesses.get(actor, {}).values()]

    def open_for(self, clock: Clock) -> list[Access]:
        """What is not done for sure for whoever has that clock."""
        return [
            Access(*entry)
            for actor, own in self.accesses.items()
            for entry in own.values()
            if entry[1] > clock.get(actor, 0)
        ]


class Races:
    """What to do about races, and those that were found."""

    HOW = ("error", "warn", "list", "ignore")

    def __init__(self, how: str = "error") -> None:
        if how not in self.HOW:
            raise ValueError(f"races must be one of {', '.join(self.HOW)}, not {how!r}")
        self.how = how
        self.found: list[Race] = []
        self._known: set[Any] = set()

    def report(self, race: Race) -> None:
        """Keeps a race once for each pair of lines; raises RaceError or warns where asked to."""
        pair = (race.first.source, race.first.what, race.second.source, race.second.what)
        if self.how == "ignore":
            return
        if pair not in self._known:
            self._known.add(pair)
            self.found.append(race)
            if self.how == "warn":
                warnings.warn(str(race), RaceWarning, stacklevel=2)
        if self.how == "error":
            raise RaceError(str(race))

"""Kernels that follow each other on a few images at a time.

A thread that has copied some images into another order should be the one that multiplies them: they
are in its cache. So the steps of a computation are put in a table, and a thread that takes a part of
the images does all steps for it, one unit after the other. Memory that holds something from one
step to the next is the thread's own, a slot of it.

A step is a kernel of `native.py` with its table. Where an array lies for a unit of a part is

    its beginning + unit · (bytes of a unit) + part · (bytes of a part) + slot · (bytes of a slot)

and that is written into the step's table before it runs. The chain is a kernel, too, whose table has the
beginnings of all arrays: a call is one of an `ArrayCall`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch.facts.hints import Array, Value
from toytorch.loops.runtime import jit, threads
from toytorch.loops.runtime.array_call import MOST, ArrayCall
from toytorch.loops.runtime.jit import address_of
from toytorch.loops.runtime.native import Call, Native
from toytorch.loops.runtime.thread_pool import PARTS

if TYPE_CHECKING:
    from toytorch.loops.runtime.jit import Compiled


LINE = 64  # bytes of a line of the cache
# The chain's own table: the units of a part and all of them; how many steps and where they are;
# their words, how many and where; how many addresses are to be written and where that is said;
# the slots, where it stands which are taken, and where each has its words; the memory of all slots.
# Where the arrays of a call begin comes after.
WORDS = (
    *("each", "units", "steps", "step", "length", "words", "places", "place"),
    *("slots", "taken", "own", "memory"),
)
GIVEN = WORDS.index("taken")  # the words from here on are addresses, which a call gives
STEP = ("run", "first", "total")
PLACE = ("word", "whose", "start", "unit", "part", "slot")  # `whose` counts from "memory"


@dataclass(frozen=True)
class Step:
    """A kernel and its table for one unit of images.

    places  where addresses go: (which word, which array, bytes from the array's beginning)
    total   its range; work, counted in additions, and `parts` are what threads need to share it
    """

    kernel: Call | Compiled
    words: tuple[int, ...]
    places: tuple[tuple[int, str, int], ...]
    total: int
    work: int
    parts: int = PARTS

    @classmethod
    def of(cls, call: ArrayCall, names: Sequence[str]) -> Step:
        """The kernel of a call whose arrays have these names."""
        places = tuple([(k, name, call.words[k]) for k, name in zip(call.places, names)])
        return cls(call.kernel, call.words, places, call.total, call.work)


@dataclass(frozen=True)
class Lies:
    """How far it is, in bytes, from an array's unit to the next, and from its part to the next."""

    unit: int = 0
    part: int = 0


class Chain:
    """Steps for `units` of images, of which a part has `each`.

    arrays   how the arrays lie that a call is given
    scratch  the bytes of what lies between steps; it is zero before the first one
    """

    def __init__(
        self,
        steps: Sequence[Step],
        arrays: dict[str, Lies],
        scratch: dict[str, int],
        units: int,
        each: int = 1,
    ) -> None:
        self.steps, self.units, self.each = steps, units, each
        self.own, self.starts = 0, {}
        for name, size in scratch.items():
            self.starts[name] = self.own
            self.own += -(-size // LINE) * LINE
        self.words = np.array([w for s in steps for w in s.words], np.int64)
        self.first = np.cumsum([0, *(len(s.words) for s in steps)]).tolist()
        self.table = np.array(
            [(s.kernel.address, 8 * f, s.total) for s, f in zip(steps, self.first)], np.int64
        )
        self.names = list(arrays)
        places = []
        for s, first in zip(steps, self.first):
            for word, name, far in s.places:
                lies = arrays.get(name)
                if lies is None:
                    places.append((first + word, 0, far + self.starts[name], 0, 0, self.own))
                else:
                    whose = 1 + self.names.index(name)
                    places.append((first + word, whose, far, lies.unit, lies.part, 0))
        self.places = np.array(places, np.int64)
        self.calls: dict[int, ArrayCall] = {}

    def __call__(self, **arrays: Array) -> None:
        """Runs the steps. Where there are too few parts for all threads, they share each step (as
        they do where there are more arrays than one call takes)."""
        count = threads.thread_count()
        parts = -(-self.units // self.each)
        slots = 1 if count == 1 else min(count, parts)
        large = any(s.work >= jit.WORK for s in self.steps)
        if (count > 1 and parts < 2 * count and large) or len(WORDS) + len(self.names) > MOST:
            self.share_each(**arrays)
            return
        call = self.calls.get(slots)
        if call is None:
            call = self.calls[slots] = self.call_of(slots, parts)
        memory = np.zeros(slots * self.own + LINE, np.uint8)
        taken = np.zeros(slots * LINE // 8, np.int64)
        own = np.empty(slots * len(self.words), np.int64)
        call(taken, own, memory, *(arrays[name] for name in self.names))

    def call_of(self, slots: int, parts: int) -> ArrayCall:
        """The chain as a function of its memory and its arrays, for threads that have so many slots."""
        words: tuple[int, ...] = (
            self.each,
            self.units,
            len(self.steps),
            address_of(self.table),
            len(self.words),
        )
        words += (address_of(self.words), len(self.places), address_of(self.places), slots)
        given = range(GIVEN, len(WORDS) + len(self.names))
        words += (0,) * len(given)
        work = sum(s.work for s in self.steps) * self.units
        return ArrayCall(Loop.kernel(), words, given, parts, work)

    def share_each(self, **arrays: Array) -> None:
        """Runs the steps one by one, each by all threads."""
        memory, words = np.zeros(self.own + LINE, np.uint8), self.words.copy()
        start = address_of(memory) + -address_of(memory) % LINE
        starts = np.array([start, *(address_of(arrays[name]) for name in self.names)])
        places = self.places.copy()
        places[:, 2] += starts[places[:, 1]]
        start = address_of(words)
        for unit in range(self.units):
            words[places[:, 0]] = places[:, 2:5] @ (1, unit, unit // self.each)
            for step, first in zip(self.steps, self.first):
                assert isinstance(step.kernel, Call), "programs are shared by their own calls"
                step.kernel.on(start + 8 * first, step.total, step.work, step.parts)


@lru_cache(256)
def in_time(
    calls: tuple[tuple[ArrayCall, tuple[str, ...]], ...],
    lies: tuple[tuple[str, int], ...],
    units: int,
) -> Chain:
    """Calls, with the names of their arrays, that are made so many times, one round after the other,
    each with arrays that lie so many bytes further."""
    steps = [Step.of(call, names) for call, names in calls]
    return Chain(steps, {name: Lies(unit=far) for name, far in lies}, {}, units, units)


class Loop(Native, family="chain"):
    """LLVM for a thread's parts. By hand: it calls kernels, and writes their tables."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "f", WORDS)
        b, word = self.b, self.word_of
        self.taken = self.array("taken", "word")
        slot = self.slot()
        own = b.add(word["own"], b.mul(b.mul(slot, word["length"]), self.word(8)))
        mine, words = self.pointer(own), self.array("words", "word")
        beginnings = b.gep(self.function.args[0], [self.word(WORDS.index("memory"))])
        self.count(word["length"], lambda k: self.put(mine, k, self.get(words, k)))

        def unit(u: Value, part: Value) -> None:
            def place(k: Value) -> None:
                at = b.mul(k, self.word(len(PLACE)))
                base = b.gep(self.array("place", "word"), [at])
                which, whose, start, *far = (self.get(base, n) for n in range(len(PLACE)))
                begin = self.get(beginnings, whose)
                # The slots' memory begins with a line of the cache; arrays lie where they lie.
                line = b.and_(b.add(begin, self.word(LINE - 1)), self.word(-LINE))
                of_slots = b.icmp_signed("==", whose, self.word(0))
                start = b.add(start, b.select(of_slots, line, begin))
                for distance, turns in zip(far, (u, part, slot)):
                    start = b.add(start, b.mul(distance, turns))
                self.put(mine, which, start)

            self.count(word["places"], place)

            def step(k: Value) -> None:
                base = b.gep(self.array("step", "word"), [b.mul(k, self.word(len(STEP)))])
                run, first, total = (self.get(base, n) for n in range(len(STEP)))
                table = self.pointer(b.add(own, first))
                self.call(run, "void", table, self.word(0), total)

            self.count(word["steps"], step)

        def part(p: Value) -> None:
            first = b.mul(p, word["each"])
            end = self.smaller(b.add(first, word["each"]), word["units"])
            self.loop(first, end, 1, lambda u: unit(u, p))

        self.loop(self.lo, self.hi, 1, part)
        b.store_atomic(self.word(0), self.flag(slot), "seq_cst", 8)

    def flag(self, slot: Value) -> Any:
        """Where it says whether a slot is taken; each has a line of the cache."""
        return self.b.gep(self.taken, [self.b.mul(slot, self.word(LINE // 8))])

    def slot(self) -> Any:
        """A slot that nobody has, which is taken from now on; there are as many as threads."""
        b = self.b
        before = b.block
        ask, on, found = (self.block(n) for n in ("ask", "on", "found"))
        b.branch(ask)
        b.position_at_end(ask)
        slot = b.phi(self.word)
        slot.add_incoming(self.word(0), before)
        was = b.atomic_rmw("xchg", self.flag(slot), self.word(1), "seq_cst")
        b.cbranch(b.icmp_signed("==", was, self.word(0)), found, on)
        b.position_at_end(on)
        slot.add_incoming(b.urem(b.add(slot, self.word(1)), self.word_of["slots"]), on)
        b.branch(ask)
        b.position_at_end(found)
        return slot

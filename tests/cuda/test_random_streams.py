"""Random programs on streams, against an oracle that knows nothing of clocks: a search in a graph.

A program is a list of actions of the host: work on a stream that reads some buffers and writes one,
and what puts streams in order (events, waits, synchronisations). The oracle draws an edge from each
action to those that cannot start before it is done, and searches: two pieces of work that touch the
same part of a buffer, one of them writing, are a race if neither can be reached from the other. The
simulator has to report a race in exactly the programs where the oracle finds one.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

import toytorch as torch

STREAMS, BUFFERS, PARTS = 4, 4, 3
COUNT = int(os.environ.get("TOYTORCH_PROGRAMS", "400"))
BLOCK = 50  # programs of one test


@dataclass
class Action:
    """One call of the host."""

    kind: str  # "work", "wait", "event", "host" (a stream is synchronised), "device"
    stream: int = 0
    other: int = 0
    reads: list[tuple[int, int]] = field(default_factory=list)  # buffer and part
    writes: tuple[int, int] | None = None


def touched(action: Action) -> list[tuple[tuple[int, int], bool]]:
    return [(place, False) for place in action.reads] + (
        [(action.writes, True)] if action.writes is not None else []
    )


class Oracle:
    """Reachability among the actions of a program."""

    def __init__(self, program: list[Action]) -> None:
        self.program = program
        self.before: list[set[int]] = []  # for each action, all that are done before it starts
        done_on: dict[int, set[int]] = {s: set() for s in range(STREAMS)}
        known: set[int] = set()  # what the host knows to be done
        for i, action in enumerate(program):
            if action.kind == "work":
                self.before.append(done_on[action.stream] | known)
                done_on[action.stream] = self.before[i] | {i}
                continue
            self.before.append(set())
            if action.kind in ("wait", "event"):
                done_on[action.stream] = done_on[action.stream] | done_on[action.other] | known
            elif action.kind == "host":
                known = known | done_on[action.stream]
            else:
                known = known.union(*done_on.values())

    def conflicts(self, i: int) -> list[int]:
        """Earlier work that action i meets, ordered or not."""
        mine = touched(self.program[i])
        return [
            j
            for j in range(i)
            if self.program[j].kind == "work"
            and any(p == q and (w or v) for p, w in mine for q, v in touched(self.program[j]))
        ]

    def races(self) -> bool:
        return any(
            j not in self.before[i]
            for i, action in enumerate(self.program)
            if action.kind == "work"
            for j in self.conflicts(i)
        )


def correct_program(rng: random.Random) -> list[Action]:
    """A program in which every conflict is put in order, by one means or another."""
    program: list[Action] = []
    for _ in range(rng.randint(4, 14)):
        stream = rng.randrange(STREAMS)
        places = [(rng.randrange(BUFFERS), rng.randrange(PARTS)) for _ in range(rng.randint(1, 3))]
        work = Action("work", stream, reads=places[1:], writes=places[0])
        while True:
            oracle = Oracle([*program, work])
            last = len(program)
            open_ones = [j for j in oracle.conflicts(last) if j not in oracle.before[last]]
            if not open_ones:
                break
            other = program[rng.choice(open_ones)].stream
            kind = rng.choice(["wait", "wait", "event", "event", "host", "device"])
            program.append(Action(kind, other if kind == "host" else stream, other))
        program.append(work)
        if rng.random() < 0.2:  # and some that nobody needs
            program.append(Action("wait", rng.randrange(STREAMS), rng.randrange(STREAMS)))
    return program


def reported(program: list[Action]) -> bool:
    """Whether the simulator finds a race."""
    with torch.cuda.simulate(races="list") as sim:
        streams: list[Any] = [torch.cuda.default_stream()]
        streams += [torch.cuda.Stream() for _ in range(STREAMS - 1)]
        # Of even buffers, the first part begins and ends where the buffer does, with holes.
        sizes = [PARTS * 4 if k % 2 else PARTS * 3 + 1 for k in range(BUFFERS)]
        buffers = [torch.zeros(size, device="cuda") for size in sizes]
        torch.cuda.synchronize()
        for action in program:
            stream, other = streams[action.stream], streams[action.other]
            if action.kind == "wait":
                stream.wait_stream(other)
            elif action.kind == "event":
                stream.wait_event(other.record_event())
            elif action.kind == "host":
                stream.synchronize()
            elif action.kind == "device":
                torch.cuda.synchronize()
            else:
                assert action.writes is not None
                with torch.cuda.stream(stream):
                    target = part(buffers, action.writes)
                    for place in action.reads:
                        target.add_(part(buffers, place).sum())
                    if not action.reads:
                        target.fill_(1.0)
        return bool(sim.races)


def part(buffers: list[Any], place: tuple[int, int]) -> Any:
    """A part of a buffer; the parts of even buffers interleave."""
    buffer, k = place
    if buffer % 2:
        return buffers[buffer][4 * k : 4 * k + 4]
    return buffers[buffer][k::PARTS]


@pytest.mark.parametrize("first", range(0, COUNT, BLOCK))
def test_correct_programs_raise_no_alarm(first: int) -> None:
    for seed in range(first, min(first + BLOCK, COUNT)):
        program = correct_program(random.Random(seed))
        assert not Oracle(program).races()
        assert not reported(program), f"seed {seed}: {program}"


@pytest.mark.parametrize("first", range(0, COUNT // 4, BLOCK))
def test_a_wait_that_is_missing_is_found_where_it_matters(first: int) -> None:
    found = 0
    for seed in range(first, min(first + BLOCK, COUNT // 4)):
        rng = random.Random(10_000 + seed)
        program: list[Action] = []
        while not any(a.kind != "work" for a in program):
            program = correct_program(rng)
        waits = [i for i, a in enumerate(program) if a.kind != "work"]
        del program[rng.choice(waits)]
        wanted = Oracle(program).races()
        found += wanted
        assert reported(program) == wanted, f"seed {seed}: {program}"
    assert found > BLOCK // 5  # most of them matter

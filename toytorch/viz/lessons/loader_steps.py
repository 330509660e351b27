"""A loader's workers in time, as a page to step through: who fetches, what waits, what is used.

The clock is made up, the schedule is not: the framework's own function (or a learner's) asks a pool
of pretended workers, and what is drawn is what it did.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from toytorch.utils.data.pool import batches
from toytorch.viz.backward.steps_page import BackwardSteps
from toytorch.viz.backward.steps_picture import MARGIN, Animation
from toytorch.viz.draw import palette
from toytorch.viz.draw.boxes import moved
from toytorch.viz.draw.palette import Hue
from toytorch.viz.draw.scene import Path, Scene, Shape, Text, When, remark, segment, tile
from toytorch.viz.draw.text import width

LABELS, SPAN = 96.0, 640.0  # widths of the names on the left and of the time axis
LANE, SLOT, GAP, TOP = 26.0, 15.0, 12.0, 34.0
HUES = (palette.BLUE, palette.PURPLE, palette.SKY)  # of workers, over and over
Deliver = Callable[[Any, Iterator[int], int], Iterator[Any]]


class LoaderSteps(BackwardSteps):
    """An epoch of a loader with workers, to step through."""


@dataclass(slots=True)
class Job:
    """One batch: its worker, when it was asked for, fetched, handed over, and let go."""

    batch: int
    worker: int
    asked: float
    start: float
    end: float
    given: float = -1.0
    gone: float = -1.0
    slot: int = 0


@dataclass(slots=True)
class Clocked:
    """Pretended workers: like `toytorch.utils.data.pool.Pool`, with a clock that jumps."""

    fetch: Sequence[float]
    workers: int
    now: float = 0.0
    jobs: list[Job] = field(default_factory=list)
    free: list[float] = field(default_factory=list)  # when each worker has done all it was asked
    under_way: list[tuple[float, int, int]] = field(default_factory=list)  # (end, order, job)

    def __len__(self) -> int:
        return self.workers

    def ask(self, worker: int, order: int, index: int) -> None:
        """Hands a job to a worker, who takes it up when the ones before are done."""
        self.free = self.free or [0.0] * self.workers
        start = max(self.now, self.free[worker])
        self.free[worker] = start + self.fetch[index]
        heapq.heappush(self.under_way, (self.free[worker], order, len(self.jobs)))
        self.jobs.append(Job(index, worker, self.now, start, self.free[worker]))

    def hear(self, timeout: float = 0.0) -> tuple[int, int, Any]:
        """The job that is done first; the clock goes on to its end."""
        if not self.under_way:
            raise RuntimeError("the loader waits for a batch, but no worker has been asked for one")
        end, order, job = heapq.heappop(self.under_way)
        self.now = max(self.now, end)
        return self.jobs[job].worker, order, self.jobs[job].batch


def loader_steps(
    fetch: Sequence[float],
    *,
    workers: int = 2,
    ahead: int = 2,
    step: float = 1.0,
    in_order: bool = True,
    deliver: Deliver | None = None,
) -> LoaderSteps:
    """A page that steps through one epoch of a DataLoader with workers.

    `fetch` has for each batch the time its worker needs, `step` is the time the training loop
    spends on a batch, `workers` and `ahead` (the loader's `prefetch_factor`) are as many as you
    like. `deliver(pool, indices, ahead)` is another way to go about it, see `DataLoader.deliver`.

    >>> steps = loader_steps([3, 1, 1], step=1)
    >>> steps
    <loader steps: 3 batches by 2 workers, done at 6, 6 steps to show>
    >>> print(steps.captions[1])
    Time 1: worker 1 has fetched batch 1, which waits for batch 0.
    """
    if not fetch or min(fetch) <= 0 or workers < 1 or ahead < 1 or step <= 0:
        raise ValueError(
            "loader_steps needs at least one batch, worker and batch ahead, and times above zero"
        )
    pool = run(fetch, workers, ahead, step, in_order, deliver)
    made = animation(pool)
    return LoaderSteps(
        made,
        f"<loader steps: {len(pool.jobs)} batches by {workers} worker{'s' * (workers != 1)}, done "
        f"at {_time(pool.now)}, {len(made.captions)} steps to show>",
    )


def run(
    fetch: Sequence[float],
    workers: int,
    ahead: int,
    step: float,
    in_order: bool,
    deliver: Deliver | None,
) -> Clocked:
    """An epoch against the clock."""
    pool = Clocked(fetch, workers)
    indices = iter(range(len(fetch)))
    pretended: Any = pool
    if deliver is None:
        delivered = batches(pretended, indices, ahead, 0.0, False, in_order)
    else:
        delivered = deliver(pool, indices, ahead)
    for batch in delivered:
        job = next(job for job in pool.jobs if job.batch == batch)
        job.given = pool.now
        pool.now += step
        job.gone = pool.now
    return pool


# the picture ---------------------------------------------------------------------------------


def animation(pool: Clocked) -> Animation:
    """One frame for each moment at which something changes."""
    jobs = [job for job in pool.jobs if job.given >= 0]
    times = sorted({0.0, *(j.end for j in jobs), *(j.given for j in jobs), *(j.gone for j in jobs)})
    return _Drawing(pool, jobs, times).animation()


class _Drawing:
    """Lanes of workers, their slots, and the loop, over one scale of time."""

    def __init__(self, pool: Clocked, jobs: list[Job], times: list[float]) -> None:
        self.pool, self.jobs, self.times = pool, jobs, times
        self.scale = SPAN / times[-1]
        self.slots = [_take_slots([j for j in jobs if j.worker == w]) for w in range(len(pool))]
        tall = sum(LANE + 3 + SLOT * slots + GAP for slots in self.slots) + LANE
        self.bottom = TOP + tall
        self.scene = Scene(
            LABELS + SPAN + 8, self.bottom + 34, "a loader's workers in time", steps=len(times)
        )

    def x(self, time: float) -> float:
        return LABELS + time * self.scale

    def animation(self) -> Animation:
        self.axis()
        y = TOP
        for worker, slots in enumerate(self.slots):
            self.worker(worker, y, slots)
            y += LANE + 3 + SLOT * slots + GAP
        self.loop(y)
        self.legend()
        captions = [self.caption(at, time) for at, time in enumerate(self.times)]
        self.scene.description = " ".join(captions)
        self.scene.shapes[:] = moved(self.scene.shapes, MARGIN, MARGIN - TOP / 2)
        self.scene.width = self.scene.width + 2 * MARGIN
        self.scene.height = self.scene.height + MARGIN
        return Animation(self.scene, captions, len(self.jobs))

    def axis(self) -> None:
        step = 1
        while self.times[-1] / step > 24:
            step *= 2 if step % 10 in (1, 5) else 5
        for tick in range(0, int(self.times[-1]) + 1, step):
            x = self.x(tick)
            self.scene.add(
                Path(segment((x, TOP - 6), (x, self.bottom + 4)), stroke=palette.FRAME),
                remark(x, TOP - 12, str(tick), "middle"),
            )
        self.scene.add(remark(0, TOP - 12, "time"))
        for at, time in enumerate(self.times):
            x = self.x(time)
            self.scene.add(
                Path(
                    segment((x, TOP - 6), (x, self.bottom + 4)),
                    stroke=palette.HOT.line,
                    line=1.6,
                    when=(at, at),
                )
            )

    def worker(self, worker: int, y: float, slots: int) -> None:
        hue = HUES[worker % len(HUES)]
        self.scene.add(Text(0, y + 16, f"worker {worker}", palette.TEXT_SIZE, bold=True))
        for at in range(slots):
            self.scene.add(remark(LABELS - 10, y + LANE + 13.5 + at * SLOT, f"slot {at}", "end"))
        for job in (j for j in self.jobs if j.worker == worker):
            self.bar(job.start, job.end, y, LANE - 4, hue, f"{job.batch}")
            top = y + LANE + 3 + job.slot * SLOT
            self.bar(job.end, job.given, top, SLOT - 3, palette.AMBER, f"{job.batch}")
            self.bar(job.given, job.gone, top, SLOT - 3, palette.GREEN, f"{job.batch}")

    def loop(self, y: float) -> None:
        self.scene.add(Text(0, y + 16, "your loop", palette.TEXT_SIZE, bold=True))
        before = 0.0
        for job in sorted(self.jobs, key=lambda j: j.given):
            self.bar(before, job.given, y, LANE - 4, palette.RED, "", dash=(4.0, 3.0))
            self.bar(job.given, job.gone, y, LANE - 4, palette.GREEN, f"{job.batch}")
            before = job.gone

    def bar(
        self,
        start: float,
        end: float,
        y: float,
        h: float,
        hue: Hue,
        text: str,
        dash: tuple[float, ...] = (),
    ) -> None:
        """A bar that grows with the time until it is done."""
        if end <= start:
            return
        last = len(self.times) - 1
        spans: list[tuple[float, When]] = [
            (time, (at, at)) for at, time in enumerate(self.times) if start < time < end
        ]
        done = next(at for at, time in enumerate(self.times) if time >= end)
        spans.append((end, (done, last)))
        for until, when in spans:
            wide = (until - start) * self.scale - 2
            self.scene.add(tile(self.x(start) + 1, y, wide, h, 4, hue, 1.3, dash, when=when))
            if text and wide > width(text, palette.TEXT_SIZE, bold=True) + 4:
                self.scene.add(
                    Text(
                        self.x(start) + wide / 2 + 1,
                        y + h / 2 + 4,
                        text,
                        palette.TEXT_SIZE,
                        anchor="middle",
                        bold=True,
                        when=when,
                    )
                )

    def legend(self) -> None:
        x, y = LABELS, self.bottom + 24
        for name, hue, dash in (
            ("fetches a batch", HUES[0], ()),
            ("waits in shared memory", palette.AMBER, ()),
            ("in use", palette.GREEN, ()),
            ("the loop waits", palette.RED, (3.0, 2.0)),
        ):
            shapes: list[Shape] = [
                tile(x, y - 9, 16, 11, 3, hue, 1.2, dash),
                remark(x + 22, y, name),
            ]
            self.scene.add(*shapes)
            x += width(name, palette.SMALL_SIZE) + 48

    # words

    def caption(self, at: int, time: float) -> str:
        """What happened at this moment."""
        said = []
        order = sorted(self.jobs, key=lambda j: j.given)
        if at == 0:
            for worker in range(len(self.pool)):
                asked = [j.batch for j in self.pool.jobs if j.worker == worker and j.asked == 0]
                if asked:
                    said.append(f"worker {worker} is asked for {_listed(asked)}")
        for job in (j for j in self.jobs if j.end == time):
            text = f"worker {job.worker} has fetched batch {job.batch}"
            before = [j for j in order if j.given < job.given and j.gone > time]
            if job.given > time and before:
                missing = next((j for j in before if j.end > time), None)
                text += (
                    f", which waits for batch {missing.batch}"
                    if missing
                    else ", which waits for its turn"
                )
            elif job.given > time:
                text += ", which waits"
            said.append(text)
        done = [j.batch for j in order if j.gone == time]
        gets = [j.batch for j in order if j.given == time]
        if done or gets:
            said.append(
                "your loop "
                + " and ".join(
                    [f"is done with batch {b}" for b in done] + [f"gets batch {b}" for b in gets]
                )
            )
        said += [
            f"worker {j.worker} is asked for batch {j.batch}"
            for j in self.pool.jobs
            if j.asked == time > 0
        ]
        if time == self.times[-1]:
            waited = time - sum(j.gone - j.given for j in self.jobs)
            said.append(
                f"the epoch is over, and the loop has waited {_time(waited)} of {_time(time)}"
            )
        return f"Time {_time(time)}: {'; '.join(said)}."


def _take_slots(jobs: list[Job]) -> int:
    """Gives each job the first slot that is free when it is written; how many slots there are."""
    free_at: list[float] = []
    for job in sorted(jobs, key=lambda j: j.end):
        for slot, free in enumerate(free_at):
            if free <= job.end:
                job.slot, free_at[slot] = slot, job.gone
                break
        else:
            job.slot = len(free_at)
            free_at.append(job.gone)
    return len(free_at)


def _time(time: float) -> str:
    return f"{time:g}"


def _listed(numbers: list[int]) -> str:
    names = [str(n) for n in numbers]
    head = f"batch {names[0]}" if len(names) == 1 else f"batches {', '.join(names[:-1])}"
    return head if len(names) == 1 else f"{head} and {names[-1]}"

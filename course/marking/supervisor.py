"""Giving workers and referees their jobs, and watching them. No code of a submission runs here.

An answer runs in a worker. A referee judges what the worker says. They talk by way of this process,
which looks at lines only to count them, and at the clock and the size of the worker.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course.contents import ROOT
from course.marking import driver, start
from course.marking.start import Worker
from course.records import Exercise

_START = 90.0  # seconds until a worker must be ready: reading the framework on a busy machine
_MOST = 96 * 2**20  # bytes that a worker may say
_LINE = 4 * 2**20  # and in one line
_JUDGING = 60.0  # seconds that judging may take in all


@dataclass(frozen=True)
class Limits:
    """What one answer may use: seconds, and megabytes beyond what the framework takes.

    The seconds are the processor's where the system tells them, so that a busy machine does not
    make right code late. Code that only waits is ended after three times as long.
    """

    seconds: float = 20.0
    megabytes: int = 1024


@dataclass
class Result:
    """What came of a job.

    ``outcomes`` are rows of a check, a kind, what was given, wanted and got, and a line; there are
    none if ``wrong`` says that the answer could not be loaded. ``ended`` is "" (all was judged),
    ``"time"``, ``"memory"``, ``"early"`` or ``"start"``; then the outcomes are those up to there.
    """

    outcomes: list[list[str]] = field(default_factory=list)
    wrong: str = ""
    ended: str = ""
    seconds: float = 0.0
    held: list[str] = field(default_factory=list)  # the system's barriers

    @property
    def green(self) -> bool:
        """Whether everything is right."""
        clean = not self.ended and not self.wrong
        return clean and bool(self.outcomes) and all(row[1] == "ok" for row in self.outcomes)


def work(
    found: Exercise,
    pieces: Sequence[Any],
    limits: Limits,
    private: Sequence[Path] = (),
) -> Result:
    """Run an answer in a process of its own, within limits, and have another judge it.

    Args:
        found: the exercise.
        pieces: (label, source, statements) of the answer.
        limits: time and memory.
        private: folders that the answer may not read.
    """
    limit = min(found.limit, 0.75 * limits.seconds)
    job = {
        "exercise": found.name,
        "module": driver.home(found),
        "function": found.function,
        "drivers": driver.driver(found),
        "package": driver.own_package(found),
        "pieces": list(pieces),
        "limit": limit,
        "megabytes": limits.megabytes,
        "private": [str(Path(path).resolve()) for path in (*private, *_NOT_TO_READ)],
    }
    with _folder() as folder:
        worker = start.worker(folder)
        try:
            referee = start.referee(folder)
            try:
                _put(worker, job)
                _put(referee, {"exercise": found.name, "limit": limit})
                return _watch(worker, referee, limits)
            finally:
                referee.end()
        finally:
            worker.end()


def mutants(found: Exercise) -> list[list[list[str]]]:
    """The outcomes of the known misconceptions of an exercise. That is our own code."""
    with _folder() as folder:
        referee = start.referee(folder)
        try:
            _put(referee, {"exercise": found.name, "limit": found.limit, "mutants": True})
            said = json.loads(referee.stdout.readline() or b"{}")
            rows: list[list[list[str]]] = said.get("mutants", [])
            return rows
        finally:
            referee.end()


# an answer finds nothing of the course on the disk, where the hook can tell
_NOT_TO_READ = [ROOT / name for name in ("course", "solutions", "notebooks", "tests")]


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="toytorch-mark-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def _put(process: Worker, job: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()


def _watch(worker: Worker, referee: Worker, limits: Limits) -> Result:
    """Let the two talk until the referee reports, a limit is reached, or nobody is left."""
    said: queue.Queue[bytes] = queue.Queue()
    for pump in (_from_worker, _from_referee):
        job = functools.partial(pump, worker, referee, said)
        threading.Thread(target=job, daemon=True).start()
    result = Result()
    begun, worked, free, ready = time.monotonic(), processor(worker), 0, False
    ended = 0.0  # when the worker was
    while True:
        try:
            line = said.get(timeout=0.03)
        except queue.Empty:
            now = time.monotonic()
            if ended:
                if now - ended > _JUDGING:
                    return result
            elif ready and resident(worker) > free + limits.megabytes * 2**20:
                result.ended = "memory"
            elif _late(worker, referee, begun, worked, limits.seconds if ready else _START):
                result.ended = "time" if ready else "start"
            if result.ended and not ended:
                result.seconds, ended = now - begun, now
                worker.kill()
            continue
        if line.startswith(b'["ready"'):
            result.held = [str(name) for name in json.loads(line.partition(b"\t")[0])[1:]]
            begun, worked, free, ready = time.monotonic(), processor(worker), resident(worker), True
            continue
        result.seconds = result.seconds or time.monotonic() - begun
        if not line or not ready:
            result.ended = result.ended or ("early" if ready else "start")
            return result
        report = json.loads(line)
        result.outcomes, result.wrong = report["outcomes"], report["wrong"]
        if report["over"]:
            result.ended = result.ended or "early"
        return result


def _from_worker(worker: Worker, referee: Worker, said: queue.Queue[bytes]) -> None:
    """The worker's first line says that it is ready. All others are the referee's business."""
    left, first = _MOST, True
    with contextlib.suppress(OSError, ValueError):
        while left > 0:
            line = worker.stdout.readline(_LINE)
            left -= len(line)
            if not line:
                break
            if first:
                said.put(line if line.startswith(b'["ready"') else b"")
                first = False
                continue
            referee.stdin.write(line)
            referee.stdin.flush()
    with contextlib.suppress(OSError, ValueError):
        referee.stdin.close()


def _from_referee(worker: Worker, referee: Worker, said: queue.Queue[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        while line := referee.stdout.readline():
            if line not in (b"+\n", b"-\n"):
                said.put(line)
                return
            with contextlib.suppress(OSError, ValueError):
                worker.stdin.write(line)
                worker.stdin.flush()
    said.put(b"")


def _late(worker: Worker, referee: Worker, asked: float, worked: float, allowed: float) -> bool:
    waited, used = time.monotonic() - asked, processor(worker)
    judged = min(processor(referee), _JUDGING)  # meanwhile the worker waits
    return waited > (3 * allowed if used else allowed) + judged or used - worked > allowed


def processor(process: Worker) -> float:
    """Seconds of processor time that a process has used; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def resident(process: Worker) -> int:
    """Bytes of memory in use by a process; 0 where the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError, AttributeError):
        if os.name == "nt":
            return _resident_windows(process)
        if sys.platform.startswith("linux"):
            pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")
        said = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(process.pid)], capture_output=True, text=True
        )
        return int(said.stdout) * 1024
    return 0


def _resident_windows(process: Worker) -> int:
    import ctypes

    class Counters(ctypes.Structure):
        _fields_ = [("cb", ctypes.c_uint32), ("faults", ctypes.c_uint32)] + [
            (name, ctypes.c_size_t)
            for name in ("peak", "size", "qpp", "qp", "qpnp", "qnp", "pagefile", "peakfile")
        ]

    counters = Counters()
    counters.cb = ctypes.sizeof(counters)
    windll: Any = ctypes.windll  # type: ignore[attr-defined,unused-ignore]
    handle = ctypes.c_void_p(process.handle)
    windll.psapi.GetProcessMemoryInfo(handle, ctypes.byref(counters), counters.cb)
    return int(counters.size)

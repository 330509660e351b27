"""Giving workers their jobs and watching them. No code of a submission runs in here."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import queue
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course.marking import start
from course.marking.start import Worker
from course.records import Exercise

_START = 90.0  # seconds until a worker must be ready: reading the framework on a busy machine
_MOST = 4 * 2**20  # bytes of reports


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
    """What came of a job: reports by name, and how the process ended if not by itself.

    ``ended`` is "" (all was reported), ``"time"``, ``"memory"``, ``"early"`` or ``"start"``.
    """

    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    ended: str = ""
    seconds: float = 0.0


def work(
    found: Exercise,
    pieces: Sequence[Any],
    controls: Sequence[str],
    limits: Limits,
    private: Sequence[Path] = (),
) -> Result:
    """Run an answer and control runs in a process of its own, within limits.

    Args:
        found: the exercise.
        pieces: (label, source, statements) of the answer; none for control runs only.
        controls: ``"reference"`` or the positions of mutants, as text.
        limits: time for the answer, and again for each of the control runs; memory for all.
        private: folders that the answer may not read.
    """
    key = secrets.token_hex(32)
    job = {
        "key": key,
        "exercise": found.name,
        "chapter": found.chapter,
        "pieces": list(pieces),
        "controls": list(controls),
        "seconds": limits.seconds,
        "megabytes": limits.megabytes,
        "private": [str(Path(path).resolve()) for path in private],
    }
    wanted = ["ready", *(["answer"] if pieces else []), *controls]
    with tempfile.TemporaryDirectory(prefix="toytorch-mark-", ignore_cleanup_errors=True) as folder:
        worker = start.worker(Path(folder))
        try:
            return _watch(worker, json.dumps(job) + "\n", key, wanted, limits)
        finally:
            worker.end()


def _watch(process: Worker, job: str, key: str, wanted: list[str], limits: Limits) -> Result:
    """Collect reports until the last that is wanted, or a limit, or the end of the process."""
    lines: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    result = Result()
    with contextlib.suppress(OSError):
        process.stdin.write(job.encode())
        process.stdin.close()
    begun = time.monotonic()
    free = 0
    for count, name in enumerate(wanted, start=1):
        allowed = _START if name == "ready" else limits.seconds
        asked, worked = time.monotonic(), processor(process)
        report = None
        while report is None:
            try:
                line = lines.get(timeout=0.03)
            except queue.Empty:
                now = time.monotonic()
                size = resident(process)
                if name != "ready" and size > free + limits.megabytes * 2**20:
                    result.ended = "memory"
                elif _late(process, asked, worked, allowed):
                    result.ended = "start" if name == "ready" else "time"
                if result.ended:
                    result.seconds = now - begun
                    return result
                continue
            if line is None:
                result.ended = "start" if name == "ready" else "early"
                result.seconds = time.monotonic() - begun
                return result
            report = _signed(line, key, name, count)
        if name == "ready":
            free, begun = resident(process), time.monotonic()
        result.reports[name] = report
    result.seconds = time.monotonic() - begun
    return result


def _read(process: Worker, lines: queue.Queue[bytes | None]) -> None:
    left = _MOST
    with contextlib.suppress(OSError, ValueError):
        while left > 0:
            line = process.stdout.readline(left)
            left -= len(line)
            if not line:
                break
            lines.put(line)
    lines.put(None)


def _signed(line: bytes, key: str, name: str, count: int) -> dict[str, Any] | None:
    """The report in a line if it bears the key, the name and the number that are due."""
    sign, _, text = line.rstrip(b"\n").partition(b" ")
    due = hashlib.sha256(key.encode() + text + key.encode()).hexdigest().encode()
    if not hmac.compare_digest(sign, due):
        return None
    report: dict[str, Any] = json.loads(text)
    return report if (report.get("is"), report.get("count")) == (name, count) else None


def _late(process: Worker, asked: float, worked: float, allowed: float) -> bool:
    waited, used = time.monotonic() - asked, processor(process)
    return waited > (3 * allowed if used else allowed) or used - worked > allowed


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

"""A timeline for chrome://tracing and ui.perfetto.dev (Trace Event Format, D. Sinclair 2016).

The host and each device are a process, a stream or copy engine a thread of it. Spans are bars ("X"),
arrows are flows ("s" to "f"), memory is a counter ("C"). Times are microseconds.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from toytorch.facts.trace import Arrow, Span, Timeline
from toytorch.serialization.atomic import replacing

Entry = dict[str, Any]
HOST = 0  # process number; a device's is its own number and one


def save(timeline: Timeline, path: str | os.PathLike[str]) -> Path:
    """Write the timeline as a trace, all of it or nothing, and return the path.

    A path that ends in `.gz` is compressed. Raises RuntimeError where there is no such folder.
    """
    write({"displayTimeUnit": "ns", "traceEvents": list(entries(timeline))}, path)
    return Path(path)


def write(trace: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a trace as JSON, compressed where the name says so; the name is taken at the end."""
    data = json.dumps(trace, indent=1).encode()
    with replacing(path) as file:
        file.write(gzip.compress(data, mtime=0) if str(path).endswith(".gz") else data)


def entries(timeline: Timeline) -> Iterator[Entry]:
    """The entries: names of processes and threads, spans, arrows, memory."""
    threads = {row: number for number, row in enumerate(timeline.rows, start=1)}
    place = {span.number: (_process(span.device, span.row), threads[span.row])
             for span in timeline.spans}  # fmt: skip
    yield from _names(timeline, threads)
    for span in timeline.spans:
        yield _bar(span, place[span.number])
    spans = {span.number: span for span in timeline.spans}
    for number, arrow in enumerate(timeline.arrows):
        if arrow.before in spans and arrow.after in spans:
            yield from _flow(number, arrow, spans, place)
    for point in timeline.memory:
        parts = {"allocated": point.allocated, "kept free": point.reserved - point.allocated}
        yield _entry("C", "memory", (point.device + 1, 0), point.time, args=parts)


def _names(timeline: Timeline, threads: dict[str, int]) -> Iterator[Entry]:
    pairs = {span.row: span.device for span in timeline.spans}
    processes = {_process(device, row) for row, device in pairs.items()}
    for process in sorted(processes | {point.device + 1 for point in timeline.memory}):
        name = "host" if process == HOST else f"cuda:{process - 1}"
        yield _entry("M", "process_name", (process, 0), args={"name": name})
        yield _entry("M", "process_sort_index", (process, 0), args={"sort_index": process})
    for row, thread in threads.items():
        process = _process(pairs[row], row)
        name = row.removeprefix(f"cuda:{process - 1} ")
        yield _entry("M", "thread_name", (process, thread), args={"name": name})
        yield _entry("M", "thread_sort_index", (process, thread), args={"sort_index": thread})


def _process(device: int | None, row: str) -> int:
    return HOST if device is None or row == "host" else device + 1


def _bar(span: Span, place: tuple[int, int]) -> Entry:
    args: Entry = {}
    for name in ("device", "stream"):
        if getattr(span, name) is not None:
            args[name] = getattr(span, name)
    for name in ("bytes", "flops", "limit"):
        if getattr(span, name):
            args[name] = getattr(span, name)
    if span.source is not None:
        args["source"] = f"{span.source[0]}:{span.source[1]}"
    bar = _entry("X", span.name, place, span.start, cat=span.kind, args=args)
    return {**bar, "dur": _short(span.duration)}


def _flow(
    number: int, arrow: Arrow, spans: dict[int, Span], place: dict[int, tuple[int, int]]
) -> Iterable[Entry]:
    """Both ends of an arrow. Each must lie inside its bar, and the second not before the first."""
    before, after = spans[arrow.before], spans[arrow.after]
    start = before.start if arrow.kind == "launch" else max(before.start, before.end - 1e-3)
    waits = after.kind in ("wait", "sync")
    end = max(after.start, after.end - 1e-3) if waits else after.start
    more = {"cat": arrow.kind, "id": number}
    yield {**_entry("s", arrow.kind, place[arrow.before], start), **more}
    yield {**_entry("f", arrow.kind, place[arrow.after], max(start, end)), **more, "bp": "e"}


def _entry(phase: str, name: str, place: tuple[int, int], at: float = 0.0, **more: object) -> Entry:
    return {"ph": phase, "name": name, "pid": place[0], "tid": place[1], "ts": _short(at), **more}


def _short(us: float) -> float:
    return round(us, 4)

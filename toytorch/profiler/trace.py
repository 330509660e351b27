"""Traces for chrome://tracing and ui.perfetto.dev (Trace Event Format, D. Sinclair 2016).

Each event is a bar ("X") with its start `ts` and length `dur` in microseconds, on the line of its
thread. An arrow ("s" to "f") leads from a forward op to its node in the backward pass; dots ("i")
say when memory was taken and freed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from toytorch.profiler.recorder import BACKWARD, FUNCTION, MODULE, USER
from toytorch.viz.device.chrome_trace import write as save_trace

if TYPE_CHECKING:
    from toytorch.profiler.events import EventList, FunctionEvent

CATEGORIES = {
    FUNCTION: "cpu_op",
    BACKWARD: "cpu_op",
    USER: "user_annotation",
    MODULE: "python_function",
}


def write(events: EventList, path: str, metadata: dict[str, Any] | None = None) -> None:
    """Writes the trace, all of it or nothing."""
    recorder = events.recorder
    whole = {
        "schemaVersion": 1,
        "deviceProperties": [],
        **(metadata or {}),
        "host_name": socket.gethostname(),
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": recorder.wall if recorder is not None else 0,
        "traceEvents": list(entries(events)),
        "traceName": os.fspath(path),
    }
    save_trace(whole, path)


def entries(events: EventList) -> Iterator[dict[str, Any]]:
    """The entries of all events."""
    pid = os.getpid()
    yield label("process_name", pid, 0, name="python")
    on_cpu = [event for event in events if event.device_type.name == "CPU"]
    on_devices = [event for event in events if event.device_type.name != "CPU"]
    for thread in sorted({event.thread for event in on_cpu}):
        yield label("thread_name", pid, thread, name=f"thread {thread}")
    made: dict[int, FunctionEvent] = {}  # who made the node of a number: the innermost op
    for event in on_cpu:
        if event.name == "[memory]":
            continue
        yield bar(event, pid)
        if event.scope == FUNCTION and event.sequence_nr >= 0:
            made[event.sequence_nr] = event
        elif event.scope == BACKWARD and event.name.startswith("autograd::engine"):
            source = made.pop(event.sequence_nr, None)
            if source is not None:
                yield from arrow(source, event, pid)
    yield from device_rows(on_devices, pid)
    yield from memory(events, pid)


def label(kind: str, pid: int, tid: int, **args: str) -> dict[str, Any]:
    """What a process or a thread is called."""
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0.0, "args": args}


def device_rows(events: list[FunctionEvent], pid: int) -> Iterator[dict[str, Any]]:
    """What devices did: a process for each, in it a row for each stream, and an arrow from the op.

    Times of simulated devices are those of their own clock, which began with the profiler.
    """
    for device in sorted({e.device_index for e in events}):
        yield label("process_name", device, 0, name="python")
        yield label("process_labels", device, 0, labels=f"GPU {device}")
    for device, stream in sorted({(e.device_index, e.device_resource_id) for e in events}):
        yield label("thread_name", device, stream, name=f"stream {stream}")
    for event in events:
        at: dict[str, Any] = {"pid": event.device_index, "tid": event.device_resource_id}
        start = event.time_range.start
        args: dict[str, Any] = {
            "device": event.device_index,
            "stream": event.device_resource_id,
            "correlation": event.id,
            "bytes": event.bytes,
        }
        if event.linked is not None:
            args["External id"] = event.linked.id
        kind = "kernel" if event.kind == "kernel" else "gpu_memcpy"
        yield {
            "ph": "X", "cat": kind, "name": event.name, **at, "ts": start,
            "dur": round(event.time_range.elapsed_us(), 3), "args": args,
        }  # fmt: skip
        if event.linked is not None:
            op: dict[str, Any] = {"pid": pid, "tid": event.linked.thread}
            flow = {"id": event.id, "cat": "ac2g", "name": "ac2g"}
            yield {"ph": "s", **op, "ts": event.linked.time_range.start, **flow}
            yield {"ph": "f", **at, "ts": start, **flow, "bp": "e"}


def bar(event: FunctionEvent, pid: int) -> dict[str, Any]:
    """What ran from when to when."""
    args: dict[str, Any] = {"External id": event.id}
    if event.input_shapes:
        args["Input Dims"] = event.input_shapes
    if event.stack:
        args["Call stack"] = ";".join(reversed(event.stack))
    if event.sequence_nr >= 0:
        args["Sequence number"], args["Fwd thread id"] = event.sequence_nr, event.fwd_thread
    if event.flops:
        args["Flops"] = event.flops
    if event.cpu_memory_usage:
        args["Bytes"] = event.cpu_memory_usage
    span = event.time_range
    return {
        "ph": "X", "cat": CATEGORIES[event.scope], "name": event.trace_name,
        "pid": pid, "tid": event.thread,
        "ts": span.start, "dur": round(span.elapsed_us(), 3), "args": args,
    }  # fmt: skip


def arrow(source: FunctionEvent, target: FunctionEvent, pid: int) -> Iterator[dict[str, Any]]:
    """From an op to its derivative."""
    for ph, event in (("s", source), ("f", target)):
        yield {
            "ph": ph, "id": source.id, "pid": pid, "tid": event.thread, "cat": "fwdbwd",
            "ts": event.time_range.start, "name": "fwdbwd", **({"bp": "e"} if ph == "f" else {}),
        }  # fmt: skip


def memory(events: EventList, pid: int) -> Iterator[dict[str, Any]]:
    """Memory taken and freed, with the sum after each."""
    recorder = events.recorder
    if recorder is None or recorder.ledger is None:
        return
    for change, total in recorder.ledger.history():
        yield {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": pid,
            "tid": 0,
            "ts": (change.time - recorder.began) / 1e3,
            "args": {
                "Total Allocated": total,
                "Bytes": change.bytes,
                "Device Id": -1,
                "Device Type": 0,
                "Addr": change.address,
            },
        }

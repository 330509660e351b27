"""The profiler's table: columns that say what an event shows in them, and a printer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toytorch.profiler.units import share_text, size_text, time_text

if TYPE_CHECKING:
    from toytorch.profiler.events import FunctionEvent


WIDTH, GAP = 12, 2  # of most columns; between two
SCALES = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
TOP_LEVEL = "This report only display top-level ops statistics"


class Column(NamedTuple):
    """A heading, the width, and the text for an event."""

    title: str
    width: int
    show: Callable[[Any], str]
    align: str = ">"


def text(
    events: Sequence[Any],
    *,
    memory: bool,
    flops: bool,
    row_limit: int,
    widths: tuple[int | None, int | None, int | None],
    header: str | None,
    top_level: bool,
    unit: str | None,
) -> str:
    """The table of events, one row each; "" if there are none.

    `widths` are the most that names, shapes and call sites may take.
    """
    if not events:
        return ""
    total = sum(event.self_cpu_time_total for event in events)
    columns = [name_column(events, widths[0]), *time_columns(total, unit)]
    on_device = sum(e.self_device_time_total for e in events if e.device_type.name != "CPU")
    timed = any(e.self_device_time_total > 0 for e in events)
    device = str(events[0].use_device).upper()
    if timed:
        columns += device_columns(device, on_device, unit)
    if memory:
        columns += [
            Column("CPU Mem", WIDTH, lambda e: size_text(e.cpu_memory_usage)),
            Column("Self CPU Mem", WIDTH, lambda e: size_text(e.self_cpu_memory_usage)),
        ]
    columns.append(Column("# of Calls", WIDTH, lambda e: str(e.count)))
    columns += shape_column(events, widths[1])
    sites = site_columns(events, widths[2])
    columns += sites
    if flops:
        columns += flops_column(events)
    shown = [e for e in events if not (top_level and e.cpu_parent is not None)]
    if row_limit >= 0:
        shown = shown[:row_limit]
    rule = row(columns, ["-" * c.width for c in columns])
    double = "=" * (sum(c.width + GAP for c in columns) - GAP)
    lines = [double, header] if header is not None else []
    lines += [double, TOP_LEVEL] if top_level else []
    lines += [rule, row(columns, [c.title for c in columns]), rule]
    for event in shown:
        lines.append(row(columns, [c.show(event) for c in columns]))
        if sites:  # the callers of the innermost, one below the other, and an empty line
            for site in (*event.stack[1:], ""):
                lines.append(
                    row(columns, [tail(site, c.width) if c is sites[0] else "" for c in columns])
                )
    lines += [rule, f"Self CPU time total: {time_text(total, unit)}"]
    if timed:
        lines.append(f"Self {device} time total: {time_text(on_device, unit)}")
    return "\n".join(lines) + "\n"


def row(columns: list[Column], cells: list[str]) -> str:
    """One line."""
    return "".join(f"{cell:{c.align}{c.width}}" + " " * GAP for c, cell in zip(columns, cells))


def limited(width: int, limit: int | None) -> int:
    """A width and its limit, if there is one."""
    return width if limit is None else min(width, limit)


def name_column(events: Sequence[Any], limit: int | None) -> Column:
    """What the events are; long names lose their end."""
    width = limited(max(len(e.key) for e in events) + 4, limit)

    def show(event: FunctionEvent) -> str:
        name = str(event.key)
        return name if limit is None or len(name) < limit - 3 else name[: limit - 3] + "..."

    return Column("Name", width, show)


def time_columns(total: float, unit: str | None) -> list[Column]:
    """Times by themselves and with all that was called, and the mean of a call."""
    return [
        Column("Self CPU %", WIDTH, lambda e: share_text(e.self_cpu_time_total, total)),
        Column("Self CPU", WIDTH, lambda e: time_text(e.self_cpu_time_total, unit)),
        Column("CPU total %", WIDTH, lambda e: share_text(e.cpu_time_total, total)),
        Column("CPU total", WIDTH, lambda e: time_text(e.cpu_time_total, unit)),
        Column("CPU time avg", WIDTH, lambda e: time_text(e.cpu_time, unit)),
    ]


def device_columns(device: str, total: float, unit: str | None) -> list[Column]:
    """Times on a device; the share is of all that it did."""
    return [
        Column(f"Self {device}", WIDTH, lambda e: time_text(e.self_device_time_total, unit)),
        Column(f"Self {device} %", WIDTH, lambda e: share_text(e.self_device_time_total, total)),
        Column(f"{device} total", WIDTH, lambda e: time_text(e.device_time_total, unit)),
        Column(f"{device} time avg", WIDTH, lambda e: time_text(e.device_time, unit)),
    ]


def shape_column(events: Sequence[Any], limit: int | None) -> list[Column]:
    """The shapes of the inputs, where they were recorded."""
    if not any(e.input_shapes for e in events):
        return []
    width = limited(max(len(str(e.input_shapes)) for e in events) + 4, limit)
    return [Column("Input Shapes", width, lambda e: str(e.input_shapes)[:width])]


def site_columns(events: Sequence[Any], limit: int | None) -> list[Column]:
    """The lines of the program that called, where they were recorded."""
    if not any(e.stack for e in events):
        return []
    width = limited(max(len(site) for e in events for site in e.stack) + 4, limit)
    return [
        Column("Source Location", width, lambda e: tail(e.stack[0], width) if e.stack else "", "<")
    ]


def tail(path: str, width: int) -> str:
    """The end of a path that is too long."""
    return path if len(path) <= width else "..." + path[len(path) - width + 3 :]


def flops_column(events: Sequence[Any]) -> list[Column]:
    """The operations counted, in the unit that suits the smallest count."""
    least = min((e.flops for e in events if e.flops), default=0)
    if not least:
        return []
    power = min(int(math.log10(least) / 3), len(SCALES) - 1)
    return [
        Column(
            f"Total {SCALES[power]}",
            WIDTH,
            lambda e: f"{e.flops / 1000**power:8.3f}" if e.flops else "--",
        )
    ]

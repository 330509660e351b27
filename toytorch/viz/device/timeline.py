"""The public face of timelines: what ran when, on the host, its threads, and devices."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toytorch.facts.trace import Timeline
from toytorch.viz.backward.steps_page import page
from toytorch.viz.device import chrome_trace, profile_read, timeline_page, timeline_read, trace_read
from toytorch.viz.device.chart import Chart
from toytorch.viz.device.timeline_picture import picture
from toytorch.viz.draw.picture import Picture


class TimelinePicture(Picture):
    """A timeline as a still picture (SVG, PNG) and as a page with zoom (HTML)."""

    def __init__(self, chart: Chart, width: float) -> None:
        super().__init__(picture(chart, width), chart.summary)
        self.chart = chart

    @property
    def html(self) -> str:
        """The page's piece of HTML: a canvas to zoom in, its script, and the still picture."""
        return timeline_page.html(self.chart, self.svg)

    def _writers(self) -> dict[str, Callable[[], bytes]]:
        return {".html": lambda: page(self.chart.title, self.html).encode(), **super()._writers()}


class DeviceTimeline(TimelinePicture):
    """The timeline of a host and its devices; a notebook shows the page with zoom."""

    def __init__(self, chart: Chart, width: float, record: Timeline) -> None:
        super().__init__(chart, width)
        self.record = record

    def chrome_trace(self, path: str | os.PathLike[str]) -> Path:
        """Write the whole record for chrome://tracing and ui.perfetto.dev, and return the path."""
        return chrome_trace.save(self.record, path)

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(include, exclude)
        del data["image/svg+xml"]  # the page has it, and viewers would prefer it to the page
        return {**data, "text/html": self.html}, metadata


def timeline(
    x: object,
    *,
    width: float = 960.0,
    title: str = "",
    start_us: float | None = None,
    end_us: float | None = None,
) -> TimelinePicture:
    """What ran when, as a picture over time: a row for each thread, stream and copy engine.

    `x` is a profiler or its `events()`, whose calls hang below their callers, a `Timeline`, as
    `toytorch.cuda.timeline()` gives it, which has arrows too, or a dictionary in the Trace Event
    Format that Chrome and Perfetto read. Below are curves of memory in use,
    where that was recorded. `start_us` and `end_us` choose a part of the time, `width` is that of
    the still picture. Every bar says its name, its times and what is known of it when the mouse
    rests on it.

    The result shows itself in a notebook; `save("name.html")` writes a page with zoom that needs
    nothing else, `.svg` and `.png` the still picture, and `chrome_trace(path)` of a `Timeline`'s
    writes a file for ui.perfetto.dev. Raises ValueError if nothing was recorded in that time, and
    TypeError for what is neither.

    >>> with torch.profiler.profile() as prof:
    ...     y = torch.ones(3).exp().sum()
    >>> timeline(prof)
    timeline: 3 events in 1 thread
    """
    if isinstance(x, Timeline):
        chart = timeline_read.chart_of(x, title, start_us, end_us)
        return DeviceTimeline(chart, width, x)
    if isinstance(x, dict):
        return TimelinePicture(trace_read.chart_of(x, title, start_us, end_us), width)
    if not isinstance(x, list) and not hasattr(x, "events"):
        raise TypeError(
            f"a timeline is drawn of a profiler, its events(), a Timeline or a trace, not of"
            f" {type(x).__name__}"
        )
    events = x if isinstance(x, list) else x.events()
    return TimelinePicture(profile_read.chart_of(events, title, start_us, end_us), width)

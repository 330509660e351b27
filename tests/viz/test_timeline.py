"""Timelines of devices: rows, arrows, memory, the page with zoom, and traces for other viewers."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

import toytorch as torch
from tests.course.chromium import ask
from tests.viz.device_records import many_spans, mlp_step
from tests.viz.helpers import SVG, in_another_process, parsed, texts
from toytorch import viz
from toytorch.facts.trace import Arrow, MemoryPoint, Span, Timeline
from toytorch.viz.backward.steps_page import page
from toytorch.viz.device.chart import LINKS, Bar, in_lanes
from toytorch.viz.draw import palette
from toytorch.viz.draw.scene import Path as Line
from toytorch.viz.draw.scene import Rect, Text, hatching
from toytorch.viz.draw.text import width as text_width

ROWS = ["host", "cuda:0 stream 13", "cuda:0 stream 7", "cuda:0 host to device",
        "cuda:0 device to host", "cuda:1 stream 7"]  # fmt: skip
HOSTILE = "</script><img src=x onerror=alert(1)>&\"'<b>é漢\u202e\n"


def strokes(picture: Any, color: str) -> int:
    """How many lines of a colour a picture has."""
    return sum(isinstance(s, Line) and s.stroke == color for s in picture.scene.shapes)


def test_rows_are_the_host_then_streams_then_copy_engines_by_device() -> None:
    picture = viz.timeline(mlp_step(2, devices=2))
    assert [row.name for row in picture.chart.rows] == ROWS
    assert repr(picture) == "timeline: 60 spans in 6 rows, 397 µs"
    words = [s for s in picture.scene.shapes if isinstance(s, Text)]
    heights = [next(s.y for s in words if s.text == row) for row in ROWS]
    assert heights == sorted(heights)
    assert {"kernel", "copy", "wait", "sync", "host", "memset"} <= set(texts(picture.svg))


def test_a_bar_stands_at_its_time_and_says_what_is_known() -> None:
    record = Timeline("one", [
        Span(0, "host", "mm", "host", 0.0, 5.0, source=("/a/b/net.py", 12)),
        Span(1, "kernel", "mm", "cuda:0 stream 7", 10.0, 60.0, 0, 7, ("/a/b/net.py", 12),
             bytes=4 << 20, flops=10**9, limit="arithmetic"),
        Span(2, "copy", "copy_", "cuda:0 host to device", 75.0, 100.0, 0, bytes=100),
    ])  # fmt: skip
    picture = viz.timeline(record)
    bars = {s.tip.split(":")[0] + str(s.y): s for s in picture.scene.shapes
            if isinstance(s, Rect) and s.tip}  # fmt: skip
    assert len(bars) == 3
    kernel = next(bar for bar in bars.values() if "TFLOP" in bar.tip)
    assert kernel.tip == ("mm: 50 µs from 10 µs; 4 MB, 83.9 GB/s; 1 GFLOP, 20 TFLOP/s;"
                          " limited by arithmetic; net.py line 12")  # fmt: skip
    copy = next(bar for bar in bars.values() if bar.tip.startswith("copy_"))
    assert kernel.w == pytest.approx(2 * copy.w)
    assert copy.x - kernel.x == pytest.approx(65 / 50 * kernel.w)
    assert kernel.fill == palette.GREEN.tint and copy.fill == palette.AMBER.tint


def test_what_overlaps_in_a_row_gets_lanes_of_its_own() -> None:
    bars = [Bar(a, b, "host", f"{a}", "") for a, b in ((0, 10), (2, 4), (4, 9), (5, 6), (10, 12))]
    assert [[bar.name for bar in lane] for lane in in_lanes(bars)] == [
        ["0", "10"],
        ["2", "4"],
        ["5"],
    ]


def test_waits_are_hatched() -> None:
    picture = viz.timeline(mlp_step())
    hatched = [s for s in picture.scene.shapes if isinstance(s, Rect) and s.hatch and s.tip]
    assert len(hatched) == 3 and all(s.tip.startswith("wait_event") for s in hatched)
    (line,) = [r for r in [hatching(hatched[0])] if r.commands]
    box = hatched[0]
    for _, ((x, y),) in line.commands:
        assert box.x - 0.01 <= x <= box.x + box.w + 0.01
        assert box.y - 0.01 <= y <= box.y + box.h + 0.01
    assert picture.svg.count('pointer-events="none"') == 4  # those and the legend's


def test_arrows_leave_and_arrive_where_the_wait_ends() -> None:
    record = mlp_step()
    picture = viz.timeline(record)
    kinds = [arrow.kind for arrow in record.arrows]
    for kind in ("event", "sync", "launch"):
        rules = 1 if kind == "launch" else 0  # the line below the host has that colour too
        assert strokes(picture, LINKS[kind]) - rules == kinds.count(kind), kind
    spans = record.spans
    event = next(link for link in picture.chart.links if link.kind == "event")
    first = next(arrow for arrow in record.arrows if arrow.kind == "event")
    assert (event.start, event.end) == (spans[first.before].end, spans[first.after].end)


def test_where_there_are_many_arrows_the_bars_stay_to_be_seen() -> None:
    picture = viz.timeline(mlp_step(8))  # 96 launches, 24 events
    assert strokes(picture, LINKS["launch"]) == 1  # the rule below the host
    assert strokes(picture, LINKS["event"]) == 24
    assert strokes(viz.timeline(many_spans(20_000)), LINKS["event"]) == 0


def test_memory_has_a_curve_per_device() -> None:
    picture = viz.timeline(mlp_step(2, devices=2))
    assert "cuda:0 memory: at most 28 MB in use, 40 MB reserved" in texts(picture.svg)
    assert "cuda:1 memory: at most 6 MB in use, 20 MB reserved" in texts(picture.svg)
    assert strokes(picture, palette.GREEN.line) == 2
    assert sum(isinstance(s, Line) and bool(s.dash) for s in picture.scene.shapes) == 2


def test_a_part_of_the_time() -> None:
    whole, part = viz.timeline(mlp_step(4)), viz.timeline(mlp_step(4), start_us=200.0, end_us=300.0)
    assert len([b for r in part.chart.rows for lane in r.lanes for b in lane]) < len(
        [b for r in whole.chart.rows for lane in r.lanes for b in lane]
    )
    assert (part.chart.first, part.chart.last) == (200.0, 300.0)
    assert {"200 µs", "240 µs", "300 µs"} < set(texts(part.svg))
    for shape in part.scene.shapes:
        if isinstance(shape, Rect):
            assert shape.x >= -0.1 and shape.x + shape.w <= part.scene.width + 0.1


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to draw: the timeline has no spans"):
        viz.timeline(Timeline())
    with pytest.raises(ValueError, match="nothing to draw"):
        viz.timeline(mlp_step(), start_us=1e9)
    with pytest.raises(TypeError, match="not of int"):
        viz.timeline(3)
    with pytest.raises(ValueError, match="at least 240"):
        viz.timeline(mlp_step(), width=100.0)


def test_a_record_of_one_moment_is_a_picture() -> None:
    picture = viz.timeline(Timeline("", [Span(0, "sync", "s", "host", 5.0, 5.0)],
                                    memory=[MemoryPoint(5.0, 0, 0, 0)]))  # fmt: skip
    parsed(picture.svg)
    assert repr(picture) == "timeline: 1 span in 1 row, 0.001 µs"


def hostile() -> Timeline:
    """A record whose every text tries to get out of where it is written."""
    row = f"cuda:0 {HOSTILE}"
    spans = [
        Span(0, "host", HOSTILE, "host", 0.0, 50.0, source=(HOSTILE, 1)),
        Span(1, "kernel", HOSTILE * 5, row, 50.0, 99.0, 0, 7, (HOSTILE, 2), limit=HOSTILE),
    ]
    return Timeline(HOSTILE, spans, [Arrow(0, 1, "launch")])


def test_hostile_names_stay_text() -> None:
    picture = viz.timeline(hostile())
    tree = parsed(picture.svg)
    assert not [e for e in tree.iter() if e.tag in (f"{SVG}img", f"{SVG}b", f"{SVG}script")]
    assert picture.html.count("</script>") == 1 and "<img" not in picture.html
    assert "\u202e" not in picture.html
    assert "</script><img src=x onerror=alert(1)>&\"'<b>é漢\ufffd" in texts(picture.svg)


@pytest.mark.parametrize("width", [240, 400, 960, 1600])
def test_nothing_is_written_beyond_the_edges_or_too_small(width: float) -> None:
    for record in (mlp_step(2, devices=2), hostile()):
        picture = viz.timeline(record, width=width)
        for shape in picture.scene.shapes:
            if isinstance(shape, Text):
                wide = text_width(shape.text, shape.size, bold=shape.bold)
                assert shape.size >= 11
                assert shape.x >= 0 and shape.x + wide <= width + 0.5, shape.text


def test_20_000_spans_are_a_small_picture_soon() -> None:
    record = many_spans(20_000)
    began = time.monotonic()
    picture = viz.timeline(record)
    size = len(picture.html)
    assert time.monotonic() - began < 10  # one second alone
    assert len(picture.scene.shapes) < 3000 and size < 3_000_000
    tips = [s.tip for s in picture.scene.shapes if isinstance(s, Rect) and "short bars" in s.tip]
    assert tips and any("most of the time kernel" in tip for tip in tips)


def test_the_same_bytes_in_another_process() -> None:
    code = ("(lambda: viz.timeline(__import__('tests.viz.device_records', fromlist=['x'])"
            ".mlp_step(2)).html.encode())()")  # fmt: skip
    here = viz.timeline(mlp_step(2)).html.encode()
    assert in_another_process(code, hash_seed="1") == here


def test_it_shows_and_saves_itself(tmp_path: Path) -> None:
    picture = viz.timeline(mlp_step())
    data, metadata = picture._repr_mimebundle_()
    assert set(data) == {"text/plain", "text/html", "image/png"}
    assert metadata["image/png"]["width"] == 960
    for ending in (".html", ".svg", ".png"):
        assert picture.save(tmp_path / f"a{ending}").stat().st_size > 1000
    with pytest.raises(ValueError, match=r"\.html or \.svg or \.png"):
        picture.save(tmp_path / "a.gif")


def test_a_profile_has_a_page_too() -> None:
    with torch.profiler.profile(profile_memory=True) as prof:
        torch.ones(4, requires_grad=True).exp().sum().backward()
    picture = viz.timeline(prof, title="mine")
    assert set(picture._repr_mimebundle_()[0]) == {"text/plain", "image/svg+xml", "image/png"}
    assert "data-tt-timeline" in picture.html and "aten::exp" in picture.html


# the page ----------------------------------------------------------------------------------------

HANDS = """
var root = document.querySelector('[data-tt-timeline]');
var part = name => root.querySelector('[data-part="' + name + '"]');
var view = part('view'), edge = () => view.getBoundingClientRect();
var said = () => part('span').textContent;
var key = name => root.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }));
var point = (kind, x, y, more) => view.dispatchEvent(new PointerEvent(kind, Object.assign(
  { clientX: edge().left + x, clientY: edge().top + y, bubbles: true, pointerId: 1 }, more)));
var wheel = (x, dy, more) => { var e = new WheelEvent('wheel', Object.assign({ clientX:
  edge().left + x, clientY: edge().top + 60, deltaY: dy, bubbles: true, cancelable: true }, more));
  view.dispatchEvent(e); return e.defaultPrevented; };
var colour = (x, y) => { var r = view.width / edge().width, d = view.getContext('2d')
  .getImageData(x * r, y * r, 1, 1).data; return [d[0], d[1], d[2]].join(); };
"""


def in_page(browser: Any, picture: Any, script: str, width: int = 1000) -> Any:
    """What a script with hands on a timeline's page answers."""
    return ask(browser, page("a page", picture.html), HANDS + script, width=width)


def one_kernel() -> Timeline:
    """A kernel over the second half of a millisecond, launched in the first."""
    spans = [Span(0, "host", "launch", "host", 0.0, 500.0),
             Span(1, "kernel", "add<float>", "cuda:0 stream 7", 500.0, 1000.0, 0, 7,
                  bytes=1 << 20)]  # fmt: skip
    return Timeline("a kernel", spans, [Arrow(0, 1, "launch")],
                    [MemoryPoint(0.0, 0, 1 << 20, 2 << 20)])  # fmt: skip


@pytest.mark.browser
def test_the_page_zooms_by_wheel_drag_keys_and_double_click(browser: Any) -> None:
    steps = in_page(
        browser,
        viz.timeline(one_kernel()),
        """
        var wide = edge().width, seen = [said()];
        var mark = () => seen.push(said());
        seen.push(wheel(wide / 2, 100));              // all is shown: the wheel is the page's
        seen.push(wheel(wide - 1, -Math.log(2) / 0.002)); mark();
        view.dispatchEvent(new MouseEvent('dblclick', { bubbles: true })); mark();
        key('+'); mark(); key('ArrowRight'); mark(); key('-'); mark(); key('+'); key('0'); mark();
        point('pointerdown', wide - 201, 60); point('pointermove', wide - 101, 60);
        point('pointerup', wide - 101, 60); mark();
        var span = () => { var t = said().split(' '); return [parseFloat(t[0]), parseFloat(t[3])]; };
        var before = span();
        point('pointerdown', wide - 201, 60, { shiftKey: true });
        point('pointermove', wide - 101, 60, { shiftKey: true });
        point('pointerup', wide - 101, 60, { shiftKey: true });
        var after = span();
        seen.push(before[0] > after[0], Math.abs((before[1] - before[0]) - (after[1] - after[0])) < 1);
        root.querySelector('[data-go="whole"]').click(); mark();
        answer({ seen: seen, refused: window.refused, still: part('still').style.display });
        """,
    )
    assert steps["refused"] == [] and steps["still"] == "none"
    whole, not_taken, taken, by_wheel, back, near, right, far, all_again, dragged, *rest = steps[
        "seen"
    ]
    assert whole == back == all_again == rest[-1] == "0 µs to 1 ms"
    assert (not_taken, taken) == (False, True)
    assert by_wheel == "500 µs to 1 ms"  # the right edge, under the pointer, stays
    assert (near, right) == ("250 µs to 750 µs", "350 µs to 850 µs")
    assert far == "0 µs to 1 ms"
    low, high = (float(part.split()[0]) for part in dragged.split(" to "))
    assert 700 < low < 800 and 850 < high < 920
    assert rest[:2] == [True, True]


@pytest.mark.browser
def test_the_page_draws_and_says_what_is_under_the_pointer(browser: Any) -> None:
    found = in_page(
        browser,
        viz.timeline(one_kernel()),
        """
        var wide = edge().width, at = share => { point('pointermove', wide * share, share > 0.6 ? 60 : 34);
          return part('tip').style.display + '|' + [...part('tip').children].map(d => d.textContent).join('|'); };
        var y = () => { for (var i = 27; i < 100; i++) if (colour(wide * 0.97, i) === '223,243,236') return i; };
        var row = y();
        point('pointermove', wide * 0.9, row + 4);
        var kernel = [...part('tip').children].map(d => d.textContent);
        var box = part('tip').getBoundingClientRect(), frame = root.getBoundingClientRect();
        var inside = box.right <= frame.right && box.bottom <= frame.bottom && box.left >= frame.left;
        point('pointermove', wide * 0.9, edge().height - 12);
        var memory = [...part('tip').children].map(d => d.textContent);
        point('pointermove', 2, 2);
        answer({ row: row, kernel: kernel, memory: memory, inside: inside,
                 hidden: part('tip').style.display, tags: part('tip').querySelectorAll('float').length,
                 refused: window.refused });
        """,
    )
    assert found["row"] and found["inside"] and found["hidden"] == "none"
    assert found["kernel"] == ["add<float>", "500 µs from 500 µs", "1 MB, 2.1 GB/s"]
    assert found["memory"][1:] == ["1 MB in use", "2 MB reserved"]
    assert found["tags"] == 0 and found["refused"] == []


@pytest.mark.browser
def test_hostile_names_and_many_spans_in_the_page(browser: Any) -> None:
    tip = in_page(
        browser,
        viz.timeline(hostile()),
        """
        for (var y = 70; y > 50 && part('tip').style.display !== 'block'; y--)
          point('pointermove', edge().width * 0.9, y);
        answer({ name: part('tip').firstChild.textContent, images: document.querySelectorAll('img').length,
                 refused: window.refused, lone: document.querySelectorAll('b').length });
        """,
        width=800,
    )
    assert (tip["images"], tip["refused"], tip["lone"]) == (0, [], 1)
    assert tip["name"].startswith("</script><img src=x onerror=alert(1)>&\"'<b>")
    drawn = in_page(
        browser,
        viz.timeline(many_spans(20_000)),
        """
        for (var i = 0; i < 8; i++) key('+');
        var first = said();
        for (i = 0; i < 30; i++) wheel(500, i % 2 ? 120 : -120);
        answer({ first: first, last: said(), refused: window.refused });
        """,
    )
    assert "zoom in" not in drawn["first"] and drawn["refused"] == []


# traces for other viewers --------------------------------------------------------------------------


def test_chrome_trace(tmp_path: Path) -> None:
    record = mlp_step(2, devices=2)
    path = viz.timeline(record).chrome_trace(tmp_path / "trace.json")
    assert list(tmp_path.iterdir()) == [path]  # nothing half-written is left
    entries = json.loads(path.read_text())["traceEvents"]
    named = {e["pid"]: e["args"]["name"] for e in entries if e["name"] == "process_name"}
    assert named == {0: "host", 1: "cuda:0", 2: "cuda:1"}
    threads = {
        (e["pid"], e["tid"]): e["args"]["name"] for e in entries if e["name"] == "thread_name"
    }
    assert sorted(threads.values()) == ["device to host", "host", "host to device", "stream 13",
                                        "stream 7", "stream 7"]  # fmt: skip
    bars = [e for e in entries if e["ph"] == "X"]
    assert len(bars) == len(record.spans)
    one = next(b for b in bars if b["name"] == "mm" and b["cat"] == "kernel")
    assert one["dur"] == 21.0 and one["args"]["flops"] == 5 * 10**9
    assert one["args"]["source"].startswith("/home/me/train.py:")
    starts = {e["id"]: e for e in entries if e["ph"] == "s"}
    ends = {e["id"]: e for e in entries if e["ph"] == "f"}
    assert set(starts) == set(ends) and len(starts) == len(record.arrows)
    for number, start in starts.items():
        end = ends[number]
        assert start["ts"] <= end["ts"] and end["bp"] == "e"
        for point in (start, end):  # a viewer finds a bar by where the arrow's end lies
            assert any(
                (b["pid"], b["tid"]) == (point["pid"], point["tid"])
                and b["ts"] <= point["ts"] <= b["ts"] + b["dur"]
                for b in bars
            )
    counters = [e for e in entries if e["ph"] == "C"]
    assert len(counters) == len(record.memory)
    assert counters[0]["args"] == {"allocated": 12 << 20, "kept free": 8 << 20}


def test_a_chrome_trace_may_be_compressed_and_fails_whole(tmp_path: Path) -> None:
    picture = viz.timeline(hostile())
    path = picture.chrome_trace(tmp_path / "trace.json.gz")
    entries = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    assert HOSTILE in {e["name"] for e in entries}
    with pytest.raises(RuntimeError, match="does not exist"):
        picture.chrome_trace(tmp_path / "no" / "trace.json")
    assert list(tmp_path.iterdir()) == [path]

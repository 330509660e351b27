"""The allocator's memory: history read from a snapshot, segments step by step, bands over time."""

from __future__ import annotations

import copy
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.course.chromium import ask
from tests.viz.device_records import MIB, Pool, training
from tests.viz.helpers import in_another_process, parsed
from toytorch import viz
from toytorch.viz.backward.steps_page import page
from toytorch.viz.draw.scene import Path as Line
from toytorch.viz.draw.scene import Rect, Text
from toytorch.viz.draw.text import width as text_width
from toytorch.viz.memory.memory_map import steps_of
from toytorch.viz.memory.snapshot_read import read
from toytorch.viz.memory.snapshot_state import ALLOCATED, State

HOSTILE = "</script><img src=x onerror=alert(1)>&\"'<b>é漢\u202e\n"


def sizes(state: State) -> dict[int, tuple[int, int, str]]:
    """What is in use."""
    return {at: (b.size, b.requested, b.state) for at, b in state.blocks.items()}


def busy(count: int, seed: int = 1) -> Pool:
    """Many allocations of all sizes, in no order."""
    dice, pool, live, waiting = random.Random(seed), Pool(), list[int](), list[int]()
    for number in range(count):
        if waiting and dice.random() < 0.3:
            pool.done(waiting.pop(0))
        elif live and (dice.random() < 0.48 or len(live) > 100):
            at = live.pop(dice.randrange(len(live)))
            wait = dice.random() < 0.2
            pool.free(at, wait=wait)
            waiting += [at] if wait else []
        else:
            live.append(pool.alloc(int(10 ** dice.uniform(2, 7.2)), dice.randint(1, 40)))
        if number % 500 == 499:
            pool.empty_cache()
    return pool


# history -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_undone_and_done_again_is_the_snapshot(seed: int) -> None:
    pool, moments = Pool(), []
    dice, live = random.Random(seed), []
    for _ in range(400):
        if live and dice.random() < 0.45:
            pool.free(live.pop(dice.randrange(len(live))))
        else:
            live.append(pool.alloc(int(10 ** dice.uniform(1, 7.5)), dice.randint(1, 9)))
        if dice.random() < 0.02:
            pool.empty_cache()
        moments.append((len(pool.events), pool.snapshot()))
    history = read(pool.snapshot())
    assert history.first.blocks == {} and history.first.segments == {}
    # at every moment in between, the blocks that PyTorch's rules made there are found again
    joined = [len(read({**s, "device_traces": [s["device_traces"][0][:n]]}).events) - 1
              for n, s in moments[::40]]  # fmt: skip
    for (_, snapshot), state in zip(moments[::40], history.states(joined)):
        want = read({**snapshot, "device_traces": []}).first
        assert sizes(state) == sizes(want)
        assert state.segments == want.segments


def test_a_trace_that_begins_late_has_a_state_before_it() -> None:
    snapshot = training(3).snapshot()
    whole = read(snapshot)
    cut = copy.deepcopy(snapshot)
    cut["device_traces"][0] = snapshot["device_traces"][0][-20:]
    late = read(cut)
    number = len(whole.events) - len(late.events) - 1
    assert {at: b.size for at, b in late.first.blocks.items()} == {
        at: b.size for at, b in whole.states([number])[0].blocks.items()
    }


def test_frames_name_the_users_line_and_lives_their_events() -> None:
    history = read(training(1).snapshot())
    first = history.allocations[0]
    assert (first.where, first.size, first.died) == ("net.py line 5 in __init__", 4 * MIB, None)
    assert history.events[first.born].action == "alloc"
    gone = next(one for one in history.allocations if one.died is not None)
    assert history.events[gone.died].action in ("free", "free_completed")
    assert history.events[gone.died].address == gone.address


def test_fragmentation() -> None:
    pool = Pool()
    held = [pool.alloc(4 * MIB, n) for n in range(5)]  # 20 MiB, full
    assert read(pool.snapshot()).states([5])[0].fragmentation() == (0, 0, 0.0)
    for address in held[::2]:
        pool.free(address)
    history = read(pool.snapshot())
    free, largest, share = history.states([len(history.events) - 1])[0].fragmentation()
    assert (free, largest, share) == (12 * MIB, 4 * MIB, pytest.approx(2 / 3))
    said = viz.memory_map(pool.snapshot()).captions[-1]
    assert said.endswith(
        "8 MB of 20 MB reserved are in use; of 12 MB free the largest block is 4 MB:"
        " fragmentation 67%."
    )


def test_other_forms_of_a_snapshot() -> None:
    snapshot = training(1).snapshot()
    want = read(snapshot)
    plain = copy.deepcopy(snapshot)
    for segment in plain["segments"]:  # as PyTorch 2.0 wrote it
        del segment["device"]
        for block in segment["blocks"]:
            del block["address"], block["requested_size"], block["frames"]
    without = read({**plain, "device_traces": []})
    ends = want.states([len(want.events) - 1])[0]
    assert {at: b.size for at, b in without.first.blocks.items()} == {
        at: b.size for at, b in ends.blocks.items()
    }
    still = viz.memory_map({"segments": snapshot["segments"]})
    assert len(still) == 1 and still.captions[0].startswith("No events were recorded.")
    more = copy.deepcopy(snapshot)
    more["device_traces"][0] += [
        {"action": "oom", "device_free": 5, "size": 80 << 30, "stream": 0, "frames": []},
        {"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "frames": []},
        {"action": "something_new", "addr": 0, "size": 0, "stream": 0},
    ]
    said = viz.memory_map(more).captions
    assert "out of memory: 80 GB were asked for" in said[-3]
    assert "a snapshot is taken" in said[-2] and "something_new" in said[-1]


def test_devices() -> None:
    one, other = training(1).snapshot(0), training(2).snapshot(1)
    both = {"segments": one["segments"] + other["segments"],
            "device_traces": [one["device_traces"][0], other["device_traces"][1]]}  # fmt: skip
    assert len(viz.memory_map(both)) < len(viz.memory_map(both, device=1))
    assert read(other).device == 1
    with pytest.raises(ValueError, match="no segments and no trace of device 2; it has some of"):
        viz.memory_map(both, device=2)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        viz.memory_map({"segments": [], "device_traces": [[]]})
    with pytest.raises(TypeError, match="not of list"):
        viz.memory_map([])
    with pytest.raises(TypeError, match="not of dict"):
        viz.memory_map({"blocks": []})
    with pytest.raises(ValueError, match="limit must be"):
        viz.memory_map(training(1).snapshot(), limit=0)
    with pytest.raises(ValueError, match="at least 320"):
        viz.memory_map(training(1).snapshot(), width=100.0)


# pictures ------------------------------------------------------------------------------------------


def seen(steps: Any, step: int) -> list[Any]:
    """The shapes of one step."""
    return list(steps._animation.scene.at(step))


def test_blocks_stand_at_their_addresses() -> None:
    pool = Pool()
    a = pool.alloc(5 * MIB, 1)
    pool.alloc(10 * MIB - 512, 2)
    pool.alloc(2 * MIB, 3)
    pool.free(a)
    steps = viz.memory_map(pool.snapshot())
    last = len(steps) - 1
    boxes = {
        s.tip: s for s in seen(steps, last) if isinstance(s, Rect) and " at address 0x" in s.tip
    }
    frees = sorted((s for tip, s in boxes.items() if tip.startswith("free")), key=lambda s: s.x)
    assert len(frees) == 2 and all(s.hatch for s in frees)  # what was freed, and what was split off
    large = next(s for tip, s in boxes.items() if "line 2" in tip)
    small = next(s for tip, s in boxes.items() if "line 3" in tip)
    assert frees[0].x < large.x < small.x < frees[1].x
    assert large.w / small.w == pytest.approx((10 * MIB - 512) / (2 * MIB), rel=1e-3)
    assert small.x - large.x == pytest.approx(large.w, rel=1e-3)
    assert boxes[large.tip].tip == (
        "10 MB at address 0x7f0000500000; net.py line 2 in forward; lives from event 3 to its end"
    )
    before = [s.tip for s in seen(steps, 2) if isinstance(s, Rect)]
    assert any("line 1" in tip for tip in before) and not any("line 2" in tip for tip in before)
    told = [steps.captions[step].split(":")[0] for step in range(1, len(steps))]
    assert told == [
        f"Event {step}" for step in range(1, len(steps))
    ]  # as the page says beside them


def test_a_block_that_waits_is_dashed_and_says_so() -> None:
    pool = Pool()
    a = pool.alloc(MIB // 2, 1)
    pool.free(a, wait=True)
    pool.alloc(MIB // 4, 2)
    pool.done(a)
    steps = viz.memory_map(pool.snapshot())
    assert "waits for the streams that use it" in steps.captions[3]
    waiting = [[s for s in seen(steps, n) if isinstance(s, Rect) and s.tip.startswith("waits")]
               for n in range(len(steps))]  # fmt: skip
    assert [len(boxes) for boxes in waiting] == [0, 0, 0, 1, 1, 0]
    assert all(box.dash for boxes in waiting for box in boxes)


def test_bands_are_as_high_as_the_memory_in_use() -> None:
    steps = viz.memory_map(training(2).snapshot())
    bands = [
        s for s in steps._animation.scene.shapes if isinstance(s, Line) and "lives from" in s.tip
    ]
    history = read(training(2).snapshot())
    assert len(bands) == len(history.allocations)
    states = history.states(range(-1, len(history.events)))
    peak = max(state.active for state in states)
    ys = [y for band in bands for _, at in band.commands for _, y in at]
    reserved = max(state.reserved for state in states)
    assert (max(ys) - min(ys)) / 150.0 == pytest.approx(peak / reserved, rel=1e-6)


def test_many_events_are_told_in_few_steps_and_the_peak_is_among_them() -> None:
    snapshot = busy(3000).snapshot()
    began = time.monotonic()
    steps = viz.memory_map(snapshot, limit=50)
    assert len(steps.html) < 2_000_000 and time.monotonic() - began < 15
    history = read(snapshot)
    totals = history.totals()
    chosen = steps_of(history, 50)
    assert len(chosen) in (51, 52) and chosen[0] == -1 and chosen[-1] == len(totals) - 1
    states = history.states(chosen)
    assert max(state.active for state in states) == max(totals)
    assert [state.active for state in states[1:]] == [totals[n] for n in chosen[1:]]
    assert "Events " in steps.captions[3]
    assert 'type="range"' in steps.html
    assert 'type="range"' not in viz.memory_map(training(1).snapshot(), limit=5).html


def hostile() -> dict[str, Any]:
    """A snapshot whose every text tries to get out of where it is written."""
    snapshot = training(1).snapshot()
    for event in snapshot["device_traces"][0]:
        event["frames"] = [{"filename": f"/{HOSTILE}.py", "line": HOSTILE, "name": HOSTILE}]
    snapshot["device_traces"][0].append({"action": HOSTILE, "addr": 1, "size": 1, "stream": 0})
    return snapshot


def test_hostile_names_stay_text() -> None:
    steps = viz.memory_map(hostile())
    html = steps.html
    assert html.count("</script>") == 1 and "<img" not in html and "\u202e" not in html
    parsed(steps.svg(0))
    parsed(steps.svg())


@pytest.mark.parametrize("width", [320, 400, 960])
def test_nothing_is_written_beyond_the_edges_or_too_small(width: float) -> None:
    for snapshot in (training(2).snapshot(), busy(400).snapshot(), hostile()):
        scene = viz.memory_map(snapshot, width=width, limit=20)._animation.scene
        for shape in scene.shapes:
            if isinstance(shape, Text):
                wide = text_width(shape.text, shape.size, bold=shape.bold)
                left = shape.x - {"start": 0, "middle": wide / 2, "end": wide}[shape.anchor]
                assert shape.size >= 11
                assert left >= 0 and left + wide <= width + 0.5, shape.text
            elif isinstance(shape, Rect):
                assert shape.x >= 0 and shape.x + shape.w <= width


def test_the_same_bytes_in_another_process() -> None:
    code = ("(lambda: viz.memory_map(__import__('tests.viz.device_records', fromlist=['x'])"
            ".training(1).snapshot()).html.encode())()")  # fmt: skip
    here = viz.memory_map(training(1).snapshot()).html.encode()
    assert in_another_process(code, hash_seed="2") == here


def test_it_saves_itself(tmp_path: Path) -> None:
    steps = viz.memory_map(training(1).snapshot())
    for ending in (".html", ".svg", ".png"):
        assert steps.save(tmp_path / f"a{ending}").stat().st_size > 1000
    assert repr(steps).startswith("<memory map: 19 events, at most ")


@pytest.mark.browser
def test_the_page_steps_slides_and_asks_for_nothing(browser: Any) -> None:
    steps = viz.memory_map(training(2).snapshot())
    found = ask(
        browser,
        page("a page", steps.html),
        """
        var root = document.querySelector('[data-tt-steps]'), seen = [];
        var part = name => root.querySelector('[data-part="' + name + '"]');
        var boxes = () => [...root.querySelectorAll('rect[data-when]')]
          .filter(r => r.getAttribute('display') !== 'none').length;
        var mark = () => seen.push([part('count').textContent, part('slider').value, boxes()]);
        mark();
        root.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true })); mark();
        part('slider').value = 12; part('slider').dispatchEvent(new Event('input')); mark();
        root.dispatchEvent(new KeyboardEvent('keydown', { key: 'End', bubbles: true })); mark();
        var svg = root.querySelector('svg').getBoundingClientRect();
        answer({ seen: seen, refused: window.refused, wide: svg.width,
                 root: root.getBoundingClientRect().width, said: part('caption').textContent });
        """,
        width=500,
    )
    last = len(steps) - 1
    counts = [count for count, _, _ in found["seen"]]
    assert counts == [f"step {n} of {last}" for n in (0, 1, 12, last)]
    assert [value for _, value, _ in found["seen"]] == ["0", "1", "12", str(last)]
    assert found["seen"][0][2] == 0 < found["seen"][1][2] < found["seen"][2][2]
    assert found["refused"] == []
    assert found["wide"] > 900 and found["root"] <= 500  # the picture scrolls inside its frame
    assert found["said"] == steps.captions[-1]


@pytest.mark.parametrize("wait", [False, True])
def test_pytorchs_own_reader_finds_the_same(wait: bool) -> None:
    reader = pytest.importorskip("torch.cuda._memory_viz", reason="PyTorch is the oracle")
    pool = training(2)
    if wait:
        pool.free(next(at for at, (_, _, used) in pool.blocks.items() if used), wait=True)
    snapshot = pool.snapshot()
    history = read(snapshot)
    last = history.states([len(history.events) - 1])[0]
    active = sum(reader.calc_active(segment) for segment in snapshot["segments"])
    allocated = [b.size for b in last.blocks.values() if b.state == ALLOCATED]
    assert sum(allocated) == active and (last.active > active) == wait
    summary = reader.segsum(snapshot)
    assert f"segments: {len(last.segments)}\n" in summary
    assert f"total_reserved: {last.reserved / MIB:.1f}MiB" in summary
    assert f"total_allocated: {active / MIB:.1f}MiB" in summary
    told = reader.trace(snapshot)
    taken = sum(event.action == "alloc" for event in history.events)
    gone = sum(event.action in ("free", "free_requested") for event in history.events)
    assert told.count(":") - told.count("TOTAL MEM:") == taken
    assert told.count("del ") == gone

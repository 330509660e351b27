"""Optimizers walking on a loss surface, side by side and step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.core.random import Generator
from toytorch.ops.creation.create import zeros
from toytorch.ops.creation.from_data import tensor
from toytorch.ops.creation.ranges import linspace
from toytorch.viz.backward.steps_page import BackwardSteps
from toytorch.viz.backward.steps_picture import MARGIN, Animation
from toytorch.viz.draw import palette
from toytorch.viz.draw.axes import Panel
from toytorch.viz.draw.levels import level_lines
from toytorch.viz.draw.scene import Command, Path, Point, Scene, Text, remark
from toytorch.viz.draw.text import shorten

_SIDE, _GAP, _RATES = 232.0, 22.0, 62.0
_GRID, _LEVELS = 45, 11
_HUES = (palette.RED, palette.BLUE, palette.GREEN, palette.PURPLE, palette.AMBER)


class WalkSteps(BackwardSteps):
    """Walks on a loss surface, to step through."""


@dataclass(slots=True)
class Walk:
    """Where one optimizer was before each step and after the last, with losses and rates."""

    name: str
    places: list[Point] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    scheduled: bool = False


def walks(
    f: Callable[[Any, Any], Any],
    walkers: Mapping[str, Callable[[list[Any]], Any]],
    start: Point,
    *,
    steps: int = 30,
    xs: tuple[float, float] = (-2.0, 2.0),
    ys: tuple[float, float] = (-2.0, 2.0),
    noise: float = 0.0,
) -> WalkSteps:
    """Walk down `f` with several optimizers at once and return a page that steps along.

    `f(x, y)` is made of tensor operations. Each walker is a function of a list of parameters that
    returns an optimizer, or an optimizer and a schedule, whose rates are then drawn below the walk.
    `noise` is the deviation of what is added to every gradient, the same for all walkers, as a
    small batch would. Raises ValueError if there is nobody to walk.

    >>> steps = walks(lambda x, y: x * x + 4 * y * y,
    ...               {"SGD": lambda p: torch.optim.SGD(p, lr=0.1)}, (1.5, 1.0), steps=3)
    >>> steps
    <3 steps of SGD>
    >>> print(steps.captions[1])
    Step 1. Loss of SGD: 1.6.
    """
    if not walkers:
        raise ValueError("nobody walks: give at least one optimizer")
    walked = [_walk(name, f, make, start, steps, noise) for name, make in walkers.items()]
    scene = _scene(f, walked, steps, xs, ys)
    captions = [_caption(walked, at, steps) for at in range(steps + 1)]
    return WalkSteps(Animation(scene, captions, steps), f"<{steps} steps of {', '.join(walkers)}>")


def _walk(
    name: str, f: Any, make: Callable[[list[Any]], Any], start: Point, steps: int, noise: float
) -> Walk:
    place: Any = tensor(list(start), requires_grad=True)
    made = make([place])
    optimizer, schedule = made if isinstance(made, tuple) else (made, None)
    dice = Generator().manual_seed(0)
    walk = Walk(name, scheduled=schedule is not None)
    for step in range(steps + 1):
        loss = f(place[0], place[1])
        x, y = place.tolist()
        walk.places.append((x, y))
        walk.losses.append(loss.item())
        walk.rates.append(float(optimizer.param_groups[0]["lr"]))
        if step == steps:
            break
        optimizer.zero_grad()
        loss.backward()
        if noise:
            place.grad.add_(zeros(2).normal_(generator=dice), alpha=noise)
        optimizer.step()
        if schedule is not None:
            schedule.step()
    return walk


def _caption(walked: list[Walk], at: int, steps: int) -> str:
    losses = "; ".join(f"{w.name}: {w.losses[at]:.2g}" for w in walked)
    start = "The start" if at == 0 else "The end" if at == steps else f"Step {at}"
    return f"{start}. Loss of {losses}."


def _scene(f: object, walked: list[Walk], steps: int, xs: Point, ys: Point) -> Scene:
    rated = any(w.scheduled for w in walked)
    tall = _SIDE * 0.86
    width = 2 * MARGIN + len(walked) * _SIDE + (len(walked) - 1) * _GAP
    height = 2 * MARGIN + 18 + tall + (_RATES + 34 if rated else 0)
    title = "optimizers on a loss surface"
    summary = f"{', '.join(w.name for w in walked)}, {steps} steps each"
    scene = Scene(width, height, title, summary, steps=steps + 1)
    lines = _surface(f, xs, ys)
    top_rate = max(max(w.rates) for w in walked)
    for number, walk in enumerate(walked):
        hue = _HUES[number % len(_HUES)]
        left = MARGIN + number * (_SIDE + _GAP)
        panel = Panel(left, MARGIN + 18, _SIDE, tall, xs, ys)
        scene.add(
            Text(
                left,
                MARGIN + 8,
                shorten(walk.name, palette.TITLE_SIZE, _SIDE, bold=True),
                palette.TITLE_SIZE,
                hue.line,
                bold=True,
            ),
            panel.ground(),
        )
        scene.add(*(_level(panel, pieces, share) for pieces, share in lines))
        _draw_walk(scene, panel, walk, hue.line, steps)
        if rated:
            _draw_rates(scene, left, panel.y + tall + 24, walk, hue.line, steps, top_rate)
    return scene


def _draw_walk(scene: Scene, panel: Panel, walk: Walk, color: str, steps: int) -> None:
    for at in range(1, steps + 1):
        scene.add(panel.line(walk.places[at - 1 : at + 1], color, 1.6, (at, steps)))
    for at, place in enumerate(walk.places):
        scene.add(panel.dot(*place, color, 2.0, (at, steps)))
        scene.add(panel.dot(*place, color if panel.holds(*place) else palette.ALARM, 5.0, (at, at)))


def _draw_rates(
    scene: Scene, x: float, y: float, walk: Walk, color: str, steps: int, top: float
) -> None:
    panel = Panel(x, y, _SIDE, _RATES, (0, steps), (0, top * 1.15))
    scene.add(panel.ground(), panel.line(list(enumerate(walk.rates)), palette.FAINT, 1.4))
    scene.add(remark(x, y - 6, "learning rate"))
    for at, rate in enumerate(walk.rates):
        scene.add(panel.dot(at, rate, color, 4.5, (at, at)))
        scene.add(
            Text(
                x + _SIDE,
                y - 6,
                f"{rate:.3g}",
                palette.SMALL_SIZE,
                palette.INK,
                "end",
                when=(at, at),
            )
        )


def _surface(f: Any, xs: Point, ys: Point) -> list[tuple[list[tuple[Point, Point]], float]]:
    """Return the level lines, each with its height as a share from the lowest to the highest."""
    across = linspace(*xs, _GRID)
    up = linspace(*ys, _GRID)
    with no_grad():
        heights = f(across[None, :].expand(_GRID, _GRID), up[:, None].expand(_GRID, _GRID))
    values = heights.tolist()
    order = sorted(v for row in values for v in row if math.isfinite(v))
    # more lines where it is low: that is where the walks are
    shares = [((n + 0.5) / _LEVELS) ** 1.7 for n in range(_LEVELS)]
    levels = [order[int(share * (len(order) - 1))] for share in shares]
    return [
        (level_lines(across.tolist(), up.tolist(), values, level), share)
        for level, share in zip(levels, shares)
    ]


def _level(panel: Panel, pieces: list[tuple[Point, Point]], share: float) -> Path:
    commands: list[Command] = []
    for a, b in pieces:
        commands += [("M", (panel.at(*a),)), ("L", (panel.at(*b),))]
    return Path(tuple(commands), stroke=_shade(share), line=1.0)


def _shade(share: float) -> str:
    """Return a grey blue: strong for low ground, faint for high."""
    low, high = (110, 138, 168), (218, 224, 230)
    mixed = (round(a + (b - a) * share) for a, b in zip(low, high))
    return "#" + "".join(f"{part:02x}" for part in mixed)

"""A derivative checked by differences as a page with buttons: the chord, the tangent, the error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import toytorch
from toytorch.viz.backward.steps_page import BackwardSteps
from toytorch.viz.backward.steps_picture import Animation
from toytorch.viz.draw import palette
from toytorch.viz.draw.palette import Hue
from toytorch.viz.draw.scene import (
    Command,
    Path,
    Point,
    Rect,
    Scene,
    Shape,
    Text,
    When,
    during,
    heading,
    remark,
    segment,
)
from toytorch.viz.draw.text import number, width

MARGIN, GAP, WIDE, TALL = 24.0, 76.0, 340.0, 225.0
STEPS = (1.0, 0.5, 0.2, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12)
_SAMPLES = 96
CENTRAL, FORWARD = palette.RED, palette.BLUE


class SecantSteps(BackwardSteps):
    """A check of a slope to step through, from a large step to a tiny one."""


@dataclass(frozen=True, slots=True)
class Try:
    """One step size: the two ends of the chord, the difference quotients, and their errors."""

    step: float
    left: float
    right: float
    central: float
    error: float
    forward_error: float


def secants(f: Callable[[Any], Any], at: Any, steps: Sequence[float] = STEPS) -> SecantSteps:
    """Compare the slope that autograd gives with difference quotients, smaller and smaller ones.

    On the left the curve, its tangent by autograd, and the chord through `at - step` and
    `at + step`; on the right the error of each quotient so far, on two logarithmic axes, for the
    central difference and for the one-sided one. `f` takes and gives a tensor of one number, `at`
    is where: a float (then float64) or such a tensor, whose type the differences are computed in.

    Raises ValueError where there are no steps, or a step is not positive. PyTorch has no
    counterpart.

    Example:
        >>> page = secants(lambda x: x ** 3, 2.0, [1.0, 0.1])
        >>> page
        <secants: slope 12., 2 steps>
        >>> print(page.captions[2])
        Step 0.1 to both sides: the chord has the slope 12.01, off by 0.01.
    """
    torch: Any = toytorch
    if not steps or min(steps) <= 0:
        raise ValueError(f"steps must be positive numbers, and at least one: got {list(steps)}")
    x = at if hasattr(at, "dtype") else torch.tensor(float(at), dtype=torch.float64)
    x = x.detach().reshape(())

    def value(place: float) -> float:
        return float(f(torch.tensor(place, dtype=x.dtype)).item())

    leaf = x.clone().requires_grad_()
    slope = float(torch.autograd.grad(f(leaf), leaf)[0].item())
    here = float(x.item())
    tries = [_try(value, torch.tensor, x.dtype, here, step, slope) for step in steps]
    made = animation(value, here, slope, tries)
    return SecantSteps(made, f"<secants: slope {number(slope)}, {len(tries)} steps>")


def _try(
    value: Callable[[float], float], tensor: Any, dtype: Any, here: float, step: float, slope: float
) -> Try:
    right, left, middle = value(here + step), value(here - step), value(here)
    # the division is done in the type that f was computed in, as a check would do it
    a, b, c = (tensor(v, dtype=dtype) for v in (right, left, middle))
    central = float(((a - b) / (2 * step)).item())
    forward = float(((a - c) / step).item())
    return Try(step, left, right, central, abs(central - slope), abs(forward - slope))


def animation(
    value: Callable[[float], float], here: float, slope: float, tries: list[Try]
) -> Animation:
    """Frame 0 has the tangent alone; frame k adds the k-th step."""
    frames = len(tries) + 1
    scene = Scene(
        2 * WIDE + GAP + 2 * MARGIN + 44, TALL + 2 * MARGIN + 40, "a slope, checked", steps=frames
    )
    curve = _Curve(value, here, slope, max(t.step for t in tries))
    scene.add(*curve.ground(MARGIN + 8, MARGIN + 14))
    for frame, one in enumerate(tries, start=1):
        scene.add(*during(curve.chord(one), (frame, frame)))
    scene.add(*curve.point())
    errors = _Errors(tries, MARGIN + 8 + WIDE + GAP + 24, MARGIN + 14)
    scene.add(*errors.ground())
    for frame, one in enumerate(tries, start=1):
        scene.add(*errors.marks(one, frame, frames))
    captions = [f"The slope at {_few(here)} is {_few(slope)}, says autograd. Is it?"]
    captions += [
        f"Step {_few(one.step)} to both sides: the chord has the slope {_few(one.central)},"
        f" off by {one.error:.1g}."
        for one in tries
    ]
    return Animation(scene, captions, len(tries))


def _few(value: float) -> str:
    return f"{value:.6g}"


# the curve -------------------------------------------------------------------------------------


class _Curve:
    """The left panel: the curve around a place, its tangent, and chords."""

    def __init__(
        self, value: Callable[[float], float], here: float, slope: float, reach: float
    ) -> None:
        self.here, self.slope, self.value = here, slope, value(here)
        self.low, self.high = here - 1.3 * reach, here + 1.3 * reach
        width_ = self.high - self.low
        self.places = [self.low + width_ * i / _SAMPLES for i in range(_SAMPLES + 1)]
        self.values = [value(p) for p in self.places]
        finite = [v for v in self.values if math.isfinite(v)] or [0.0]
        pad = 0.08 * (max(finite) - min(finite) or 1.0)
        self.floor, self.top = min(finite) - pad, max(finite) + pad
        self.x = self.y = 0.0

    def at(self, place: float, value: float) -> Point:
        """Where a point of the curve is drawn."""
        across = (place - self.low) / (self.high - self.low)
        up = (value - self.floor) / (self.top - self.floor)
        return self.x + WIDE * across, self.y + TALL * (1 - up)

    def ground(self, x: float, y: float) -> list[Shape]:
        """The frame, the curve, and its tangent."""
        self.x, self.y = x, y
        points = [
            self.at(p, v) for p, v in zip(self.places, self.values, strict=True) if math.isfinite(v)
        ]
        line: tuple[Command, ...] = (
            ("M", (points[0],)),
            *(("L", (point,)) for point in points[1:]),
        )
        shapes = _frame(x, y, "the curve, and its tangent by autograd")
        shapes.append(Path(line, stroke=palette.MUTED, line=2.0))
        shapes.append(self._straight(self.here, self.value, self.slope, palette.GREEN, 2.4, ()))
        return shapes

    def point(self) -> list[Shape]:
        """The place itself."""
        return [_dot(self.at(self.here, self.value), 4.5, palette.GREEN)]

    def chord(self, one: Try) -> list[Shape]:
        """The chord of one step, drawn on beyond its ends."""
        ends = [self.at(self.here - one.step, one.left), self.at(self.here + one.step, one.right)]
        middle = (one.left + one.right) / 2
        return [
            self._straight(self.here, middle, one.central, CENTRAL, 1.8, (6.0, 3.0)),
            *(_dot(end, 4.0, CENTRAL) for end in ends),
        ]

    def _straight(
        self,
        place: float,
        value: float,
        slope: float,
        hue: Hue,
        line: float,
        dash: tuple[float, ...],
    ) -> Path:
        """A line through a point, cut off at the frame."""
        low, high = self.low, self.high
        if slope:
            ends = sorted(place + (v - value) / slope for v in (self.floor, self.top))
            low, high = max(low, ends[0]), min(high, ends[1])
        a, b = (self.at(p, value + slope * (p - place)) for p in (low, high))
        return Path(segment(a, b), stroke=hue.line, line=line, dash=dash)


# the errors ------------------------------------------------------------------------------------


class _Errors:
    """The right panel: error against step, both logarithmic."""

    def __init__(self, tries: list[Try], x: float, y: float) -> None:
        self.x, self.y = x, y
        exponents = [math.log10(t.step) for t in tries]
        self.left, self.right = math.floor(min(exponents)) - 0.4, math.ceil(max(exponents)) + 0.4
        errors = [e for t in tries for e in (t.error, t.forward_error) if e > 0] or [1.0]
        self.floor = math.floor(math.log10(min(errors))) - 0.4
        self.top = math.ceil(math.log10(max(errors))) + 0.4

    def at(self, step: float, error: float) -> Point:
        """Where an error is drawn; none at all lies on the floor."""
        across = (math.log10(step) - self.left) / (self.right - self.left)
        height = max(math.log10(error), self.floor) if error > 0 else self.floor
        up = (height - self.floor) / (self.top - self.floor)
        return self.x + WIDE * across, self.y + TALL * (1 - up)

    def ground(self) -> list[Shape]:
        """The frame, with a line for every other power of ten, and the legend."""
        shapes = _frame(self.x, self.y, "how far off, for each step so far")
        every = 2 if self.right - self.left > 7 else 1
        for power in range(math.ceil(self.left), math.floor(self.right) + 1, every):
            at = self.at(10.0**power, 1.0)[0]
            shapes.append(
                Path(segment((at, self.y), (at, self.y + TALL)), stroke=palette.FRAME, line=1.0)
            )
            shapes.append(_power(at, self.y + TALL + 16, power, "middle"))
        every = max(1, math.ceil((self.top - self.floor) / 7))
        for power in range(math.ceil(self.floor), math.floor(self.top) + 1, every):
            at = self.at(1.0, 10.0**power)[1]
            shapes.append(
                Path(segment((self.x, at), (self.x + WIDE, at)), stroke=palette.FRAME, line=1.0)
            )
            shapes.append(_power(self.x - 8, at + 4, power, "end"))
        shapes.append(Text(self.x, self.y + TALL + 35, "step", palette.TEXT_SIZE, palette.MUTED))
        x = self.x + WIDE
        for label, hue in (("both sides", CENTRAL), ("one side", FORWARD)):
            x -= width(label, palette.TEXT_SIZE)
            shapes.append(Text(x, self.y + TALL + 35, label, palette.TEXT_SIZE))
            shapes.append(_dot((x - 10, self.y + TALL + 31), 4.0, hue))
            x -= 32
        return shapes

    def marks(self, one: Try, frame: int, frames: int) -> list[Shape]:
        """The two errors of a step: large when they are new, and there from then on."""
        shapes: list[Shape] = []
        for error, hue in ((one.forward_error, FORWARD), (one.error, CENTRAL)):
            point = self.at(one.step, error)
            now: When = (frame, frame)
            shapes += during([_dot(point, 6.0, hue)], now)
            if frame + 1 < frames:
                shapes += during([_dot(point, 3.8, hue)], (frame + 1, frames - 1))
        return shapes


def _frame(x: float, y: float, title: str) -> list[Shape]:
    return [Rect(x, y, WIDE, TALL, 4, palette.BOX, palette.FRAME, 1.2), heading(x, y - 9, title)]


def _dot(point: Point, radius: float, hue: Hue) -> Rect:
    side = 2 * radius
    return Rect(
        point[0] - radius, point[1] - radius, side, side, radius, hue.line, palette.BOX, 1.2
    )


def _power(x: float, y: float, power: int, anchor: str) -> Text:
    text = "1" if power == 0 else "10" if power == 1 else f"1e{power}"
    return remark(x, y, text, anchor)

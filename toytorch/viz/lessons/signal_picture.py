"""A signal on its way through networks: what its numbers are like after every layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.core.tensor import Tensor
from toytorch.nn import Module
from toytorch.viz.backward.steps_page import BackwardSteps
from toytorch.viz.backward.steps_picture import MARGIN, Animation
from toytorch.viz.draw import palette
from toytorch.viz.draw.axes import Panel
from toytorch.viz.draw.scene import Command, Path, Point, Scene, Text, When, remark
from toytorch.viz.draw.text import shorten

_WIDE, _HIGH, _LOW, _GAP = 232.0, 120.0, 92.0, 22.0
_BINS = 36
_HUES = (palette.RED, palette.BLUE, palette.GREEN, palette.PURPLE, palette.AMBER)
_DECADES = 6  # how many powers of ten up and down the lower panels show


class SignalSteps(BackwardSteps):
    """A signal passing through layers, to step through."""


def signal(
    models: Mapping[str, Module], x: Tensor, *, kind: object = None, span: float = 4.0
) -> SignalSteps:
    """Send `x` through each model and return a page that steps from layer to layer.

    Above, how often each value occurs, from -span to span, what lies beyond on the edges; below,
    the root of the mean square after every layer, each line a factor of a hundred. `kind` is the
    class, or a tuple of classes, of the layers to look at; without it, all that have no children.
    Raises ValueError if there are none.

    >>> from toytorch import nn
    >>> net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
    >>> signal({"plain": net}, torch.ones(4, 8), kind=nn.ReLU)
    <a signal through 2 layers of plain>
    """
    seen = {name: _outputs(model, x, kind) for name, model in models.items()}
    count = min((len(s) for s in seen.values()), default=0)
    if count < 2:
        raise ValueError("there is no layer to look at: choose another kind")
    scene = _scene(seen, count, span)
    sizes = {name: [_size(values) for values in s] for name, s in seen.items()}
    captions = [
        ("The input" if at == 0 else f"After layer {at}")
        + ". Root of the mean square: "
        + "; ".join(f"{name}: {_said(s[at])}" for name, s in sizes.items())
        + "."
        for at in range(count)
    ]
    names = ", ".join(models)
    return SignalSteps(
        Animation(scene, captions, count), f"<a signal through {count - 1} layers of {names}>"
    )


def _outputs(model: Module, x: Tensor, kind: Any) -> list[list[float]]:
    """Return the input's numbers and those of every layer's output, in the order of the calls."""
    seen = [x.detach().flatten().tolist()]

    def note(module: Any, args: Any, output: Any) -> None:
        seen.append(output.detach().flatten().tolist())

    layers = [
        m for m in model.modules() if (isinstance(m, kind) if kind else not list(m.children()))
    ]
    handles = [layer.register_forward_hook(note) for layer in layers]
    try:
        with no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def _size(values: list[float]) -> float:
    return math.sqrt(sum(v * v for v in values) / max(len(values), 1))


def _said(size: float) -> str:
    return f"{size:.2g}" if size < 99 else f"{size:.0f}" if size < 1000 else f"{size:.0e}"


def _scene(seen: dict[str, list[list[float]]], count: int, span: float) -> Scene:
    width = 2 * MARGIN + len(seen) * _WIDE + (len(seen) - 1) * _GAP
    height = 2 * MARGIN + 18 + _HIGH + 44 + _LOW + 18
    scene = Scene(width, height, "a signal through layers", ", ".join(seen), steps=count)
    for number, (name, layers) in enumerate(seen.items()):
        hue = _HUES[number % len(_HUES)]
        left = MARGIN + number * (_WIDE + _GAP)
        title = shorten(name, palette.TITLE_SIZE, _WIDE, bold=True)
        scene.add(Text(left, MARGIN + 8, title, palette.TITLE_SIZE, hue.line, bold=True))
        bars = Panel(left, MARGIN + 18, _WIDE, _HIGH, (-span, span), (0, 1.05))
        scene.add(bars.ground())
        for at in range(count):
            scene.add(_skyline(bars, layers[at], span, hue, (at, at)))
        edges = (f"{-span:g} or less", 0, f"{span:g} or more")
        scene.add(
            bars.below(-span, str(edges[0]), "start"),
            bars.below(0, "0"),
            bars.below(span, str(edges[2]), "end"),
        )
        _sizes(
            scene,
            Panel(
                left,
                bars.y + _HIGH + 44,
                _WIDE,
                _LOW,
                (0, max(count - 1, 1)),
                (-_DECADES, _DECADES),
            ),
            layers[:count],
            hue.line,
        )
    return scene


def _skyline(panel: Panel, values: list[float], span: float, hue: Any, when: When) -> Path:
    """Return how often values occur as an outline; the highest bar fills the panel."""
    counts = [0] * _BINS
    for v in values:
        place = int((v + span) / (2 * span) * _BINS) if math.isfinite(v) else _BINS
        counts[min(max(place, 0), _BINS - 1)] += 1
    most = max(counts) or 1
    step = 2 * span / _BINS
    points: list[Point] = [(-span, 0.0)]
    for n, count in enumerate(counts):
        points += [(-span + n * step, count / most), (-span + (n + 1) * step, count / most)]
    points.append((span, 0.0))
    first, *rest = [panel.at(*p) for p in points]
    commands: tuple[Command, ...] = (("M", (first,)), *(("L", (p,)) for p in rest), ("Z", ()))
    return Path(commands, hue.tint, hue.line, 1.2, when=when)


def _sizes(scene: Scene, panel: Panel, layers: list[list[float]], color: str) -> None:
    scene.add(panel.ground(), remark(panel.x, panel.y - 7, "size after each layer"))
    for decade in range(-_DECADES + 2, _DECADES, 2):
        shade = palette.EDGE if decade == 0 else palette.FRAME
        scene.add(panel.line([(panel.xs[0], decade), (panel.xs[1], decade)], shade, 1.0))
    one = panel.at(panel.xs[1], 0)
    scene.add(remark(one[0] - 4, one[1] - 4, "1", "end"))
    last = len(layers) - 1
    points = [(float(at), math.log10(max(_size(v), 1e-30))) for at, v in enumerate(layers)]
    for at, point in enumerate(points):
        if at:
            scene.add(panel.line(points[at - 1 : at + 1], color, 1.6, (at, last)))
        scene.add(
            panel.dot(*point, color, 2.0, (at, last)), panel.dot(*point, color, 4.5, (at, at))
        )
        said = _said(_size(layers[at]))
        scene.add(
            Text(
                panel.x + panel.w,
                panel.y - 7,
                said,
                palette.SMALL_SIZE,
                palette.INK,
                "end",
                True,
                when=(at, at),
            )
        )
    scene.add(panel.below(0, "input", "start"), panel.below(panel.xs[1], f"layer {last}", "end"))

"""What a network says of every point of the plane, at several moments of its training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import toytorch as torch
from toytorch.autograd.modes import no_grad
from toytorch.viz.backward.steps_page import BackwardSteps
from toytorch.viz.backward.steps_picture import MARGIN, Animation
from toytorch.viz.draw import palette
from toytorch.viz.draw.scene import Path, Rect, Scene, heading, remark, segment
from toytorch.viz.draw.text import width

MAP, GAP, CURVE, TALL = 330.0, 56.0, 270.0, 230.0  # sizes of the map and of the curves
HUES = (palette.BLUE, palette.AMBER, palette.GREEN, palette.PURPLE, palette.RED, palette.SKY)
SEEN, UNSEEN = palette.INK, palette.RED.line


class BoundarySteps(BackwardSteps):
    """Moments of a training, to step through."""


def boundary_steps(
    points: Any,
    labels: Any,
    snapshots: Mapping[str, Callable[[Any], Any]],
    *,
    unseen: tuple[Any, Any],
    resolution: int = 55,
) -> BoundarySteps:
    """A page that steps through snapshots of a classifier of points in the plane.

    On the left, each place has the colour of the class that is said there, and the points are
    those of training; on the right, the losses so far. `points` (n, 2) and `labels` (n,) are what
    was trained on, `unseen` other such (points, labels). `snapshots` are copies of the model under
    the names of their moments, functions from points (n, 2) to scores (n, classes).

    >>> points, labels = torch.tensor([[-1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1])
    >>> net = torch.nn.Linear(2, 2)
    >>> steps = boundary_steps(points, labels, {"start": net, "end": net}, unseen=(points, labels))
    >>> steps
    <boundary steps: 2 moments from start to end>
    """
    if not snapshots:
        raise ValueError("boundary_steps needs at least one snapshot, a name and a model")
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"the points must lie in a plane, shape (n, 2), and not {tuple(points.shape)}"
        )
    made = _Drawing(points, labels, unseen, list(snapshots), resolution).animation(snapshots)
    names = list(snapshots)
    return BoundarySteps(
        made, f"<boundary steps: {len(names)} moments from {names[0]} to {names[-1]}>"
    )


class _Drawing:
    """The map and the curves."""

    def __init__(
        self, points: Any, labels: Any, unseen: tuple[Any, Any], names: list[str], resolution: int
    ) -> None:
        self.points, self.labels, self.unseen, self.names = points, labels, unseen, names
        self.n = resolution
        self.reach = 1.08 * float(points.abs().max())
        self.frames = len(names)
        self.scene = Scene(
            2 * MARGIN + MAP + GAP + CURVE,
            2 * MARGIN + MAP,
            "a training, seen as a map of answers",
            steps=self.frames,
        )

    def animation(self, snapshots: Mapping[str, Callable[[Any], Any]]) -> Animation:
        maps, judged = [], []
        for model in snapshots.values():
            maps.append(self.answers(model))
            judged.append((score(model, self.points, self.labels), score(model, *self.unseen)))
        self.regions(maps)
        self.dots()
        self.curves([(seen[0], unseen[0]) for seen, unseen in judged])
        captions = [
            f"{name}: {seen[1]:.0%} of the {len(self.points)} training points right, "
            f"{unseen[1]:.0%} of {len(self.unseen[0])} others. Losses {seen[0]:.3f} and "
            f"{unseen[0]:.3f}."
            for name, (seen, unseen) in zip(self.names, judged)
        ]
        self.scene.description = " ".join(captions)
        return Animation(self.scene, captions, self.frames)

    def answers(self, model: Callable[[Any], Any]) -> list[list[int]]:
        """The class at the middle of each small square, by rows from the top."""
        middles = (torch.arange(self.n) + 0.5) / self.n * 2 * self.reach - self.reach
        down, across = torch.meshgrid(middles.flip(0), middles, indexing="ij")
        with no_grad():
            scores = model(torch.stack([across.flatten(), down.flatten()], 1))
        return scores.argmax(1).reshape(self.n, self.n).tolist()

    def regions(self, maps: list[list[list[int]]]) -> None:
        """Runs of one class in a row are one rectangle, for as many moments as they stay."""
        side = MAP / self.n
        shown: dict[tuple[int, int, int, int], int] = {}  # run: since which moment
        for frame in range(self.frames + 1):
            runs = set(_runs(maps[frame])) if frame < self.frames else set()
            for run in sorted(set(shown) - runs):
                row, first, last, kind = run
                self.scene.add(
                    Rect(
                        MARGIN + first * side,
                        MARGIN + row * side,
                        (last - first) * side + 0.4,
                        side + 0.4,
                        fill=HUES[kind % len(HUES)].tint,
                        when=(shown.pop(run), frame - 1),
                    )
                )
            for run in runs - set(shown):
                shown[run] = frame
        self.scene.add(Rect(MARGIN, MARGIN, MAP, MAP, 4, stroke=palette.BOX_LINE))

    def dots(self) -> None:
        for (x, y), label in zip(self.points.tolist(), self.labels.tolist()):
            across = MARGIN + (x + self.reach) / (2 * self.reach) * MAP
            down = MARGIN + (self.reach - y) / (2 * self.reach) * MAP
            self.scene.add(
                Rect(
                    across - 3.5,
                    down - 3.5,
                    7,
                    7,
                    3.5,
                    HUES[label % len(HUES)].line,
                    palette.PAPER,
                    1.0,
                )
            )

    def curves(self, losses: list[tuple[float, float]]) -> None:
        """The losses, one piece more at each moment."""
        left, top = MARGIN + MAP + GAP, MARGIN + 50
        high = max(max(pair) for pair in losses) or 1.0

        def at(moment: int, loss: float) -> tuple[float, float]:
            across = left + moment * CURVE / max(self.frames - 1, 1)
            return across, top + TALL - loss / high * TALL

        self.scene.add(
            heading(left, MARGIN + 14, "loss"),
            Path(segment((left, top + TALL), (left + CURVE, top + TALL)), stroke=palette.FAINT),
            Path(segment((left, top), (left, top + TALL)), stroke=palette.FAINT),
            remark(left - 6, top + TALL + 4, "0", "end"),
            remark(left - 6, top + 4, f"{high:.1f}", "end"),
        )
        for moment, name in enumerate(self.names):
            x = at(moment, 0)[0]
            short = name.split()[-1]
            self.scene.add(
                Path(segment((x, top + TALL), (x, top + TALL + 4)), stroke=palette.FAINT),
                remark(x, top + TALL + 18, short, "middle"),
            )
        for which, (name, color) in enumerate(
            (("training points", SEEN), ("unseen points", UNSEEN))
        ):
            x = left + which * 130
            self.scene.add(Rect(x, MARGIN + 25, 14, 4, 2, color), remark(x + 20, MARGIN + 31, name))
            for moment, pair in enumerate(losses):
                here, when = at(moment, pair[which]), (moment, self.frames - 1)
                if moment:
                    before = at(moment - 1, losses[moment - 1][which])
                    self.scene.add(Path(segment(before, here), stroke=color, line=2.0, when=when))
                self.scene.add(Rect(here[0] - 3, here[1] - 3, 6, 6, 3, color, when=when))
        last = self.names[-1].rpartition(" ")[0]
        self.scene.add(
            remark(left + CURVE / 2 - width(last, palette.SMALL_SIZE) / 2, top + TALL + 36, last)
        )


def score(model: Callable[[Any], Any], points: object, labels: torch.Tensor) -> tuple[float, float]:
    """Cross entropy, and the share of right answers."""
    with no_grad():
        scores = model(points)
        loss = torch.nn.functional.cross_entropy(scores, labels).item()
    return loss, (scores.argmax(1) == labels).float().mean().item()


def _runs(rows: list[list[int]]) -> list[tuple[int, int, int, int]]:
    """(row, first, behind the last, class) of each run of equal classes."""
    found = []
    for number, row in enumerate(rows):
        first = 0
        for at in range(1, len(row) + 1):
            if at == len(row) or row[at] != row[first]:
                found.append((number, first, at, row[first]))
                first = at
    return found

"""A backward pass as a page with buttons: one self-contained piece of HTML, with no address in it.

Every stepper of toytorch.viz is made here. It opens at the first step. With no script running it
shows the last one, which has the most to see. The script finds its pictures by a name made from
their content, so the page is the same at every run and two copies on one page both work.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.parts import of_part
from toytorch.viz.backward.steps_picture import MARGIN, Animation, animation
from toytorch.viz.backward.steps_record import record
from toytorch.viz.draw import palette, png, svg
from toytorch.viz.draw.boxes import moved
from toytorch.viz.draw.picture import bundle, save
from toytorch.viz.draw.scene import Scene, Shape, Text
from toytorch.viz.draw.text import clean, width
from toytorch.viz.graph.graph_read import named
from toytorch.viz.graph.graph_walk import root_of

_BUTTONS = (
    ("first", "« First", "first step (Home)"),
    ("prev", "Back", "one step back (left arrow)"),
    ("play", "Play", "play or pause (space)"),
    ("next", "Next", "one step on (right arrow)"),
    ("last", "Last »", "last step (End)"),
)

_SCRIPT = """
(function () {
  var said = CAPTIONS, last = said.length - 1;
  document.querySelectorAll('[data-tt-steps="NAME"]:not([data-ready])').forEach(function (root) {
    root.setAttribute('data-ready', '');
    var shapes = root.querySelectorAll('[data-when]');
    var part = function (name) { return root.querySelector('[data-part="' + name + '"]'); };
    var play = root.querySelector('[data-go="play"]');
    var at = 0, timer = null, slider = part('slider');
    function show(step) {
      at = Math.max(0, Math.min(last, step));
      shapes.forEach(function (shape) {
        var when = shape.getAttribute('data-when').split(' ');
        if (at >= +when[0] && at <= +when[1]) shape.removeAttribute('display');
        else shape.setAttribute('display', 'none');
      });
      part('caption').textContent = said[at];
      part('count').textContent = 'step ' + at + ' of ' + last;
      if (slider) slider.value = at;
    }
    function pause() {
      clearInterval(timer);
      timer = null;
      play.textContent = 'Play';
    }
    function toggle() {
      if (timer) return pause();
      if (at === last) show(0);
      play.textContent = 'Pause';
      timer = setInterval(function () {
        if (root.isConnected && at < last) show(at + 1);
        if (!root.isConnected || at === last) pause();
      }, 1200);
    }
    var go = {
      first: function () { pause(); show(0); },
      prev: function () { pause(); show(at - 1); },
      play: toggle,
      next: function () { pause(); show(at + 1); },
      last: function () { pause(); show(last); }
    };
    var keys = { Home: 'first', ArrowLeft: 'prev', ' ': 'play', ArrowRight: 'next', End: 'last' };
    root.querySelectorAll('[data-go]').forEach(function (button) {
      button.addEventListener('click', function () { go[button.getAttribute('data-go')](); });
    });
    root.addEventListener('keydown', function (event) {
      var name = keys[event.key];
      if (!name || event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === ' ' && event.target.tagName === 'BUTTON') return;
      event.preventDefault();
      event.stopPropagation();
      go[name]();
    });
    if (slider) slider.addEventListener('input', function () { pause(); show(+slider.value); });
    part('bar').style.display = 'flex';
    show(0);
  });
})();
"""


class BackwardSteps:
    """A backward pass to step through. Steps count from 0, the start, to `len(self) - 1`."""

    _least_width = 0.0  # narrower pages scroll the picture rather than shrink it

    def __init__(self, made: Animation, summary: str) -> None:
        self._animation, self._summary = made, summary

    def __len__(self) -> int:
        return len(self.captions)

    def __repr__(self) -> str:
        return self._summary

    captions = of_part("_animation.captions", "What is said about each step, in words.")

    @property
    def html(self) -> str:
        """The stepper as HTML to put into a page: inline SVG, buttons, and its script."""
        picture = svg.draw(self._animation.scene, animated=True, least=self._least_width)
        captions = json.dumps([clean(line) for line in self.captions])
        for char in "<>&":  # so that no caption can close the script
            captions = captions.replace(char, f"\\u{ord(char):04x}")
        # the name depends on everything that is shown, and on nothing else
        name = hashlib.sha256((picture + captions).encode()).hexdigest()[:12]
        script = _SCRIPT.replace("CAPTIONS", captions).replace("NAME", name)
        return _FRAME.format(
            name=name,
            label=svg.escape(self._animation.scene.title),
            buttons="".join(button(*one) for one in _BUTTONS),
            last=len(self) - 1,
            slider=_SLIDER.format(last=len(self) - 1) if len(self) > _MANY_STEPS else "",
            caption=svg.escape(self.captions[-1]),
            picture=picture,
            script=script,
            width=svg.num(0 if self._least_width else self._animation.scene.width),
            ink=palette.INK,
            muted=palette.MUTED,
            paper=palette.PAPER,
            line=palette.FRAME,
        )

    def _repr_html_(self) -> str:
        return self.html

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        return bundle(self._summary, {"text/html": self.html}, self._still(), self.png)

    def svg(self, step: int | None = None) -> str:
        """Return one step (None: the last) as SVG, its caption above it."""
        return svg.draw(self._still(), step=self._checked(step))

    def png(self, step: int | None = None, scale: float = 2.0) -> bytes:
        """Return one step (None: the last) as PNG bytes, its caption above it."""
        return png.draw(self._still(), scale=scale, step=self._checked(step))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page (.html), or its last step (.svg, .png), and return the path."""
        writers: dict[str, Callable[[], bytes]] = {
            ".html": lambda: page(self._animation.scene.title, self.html).encode(),
            ".svg": lambda: self.svg().encode(),
            ".png": self.png,
        }
        return save(path, writers)

    def _checked(self, step: int | None) -> int | None:
        if step is not None and not 0 <= step < len(self):
            raise IndexError(f"there is no step {step}: steps are 0 to {len(self) - 1}")
        return step

    def _still(self) -> Scene:
        """Return the scene with each frame's caption above it."""
        base = self._animation.scene
        wide = max(base.width, 420.0)
        told = [_lines(caption, wide - 2 * MARGIN) for caption in self.captions]
        band = 19.0 * max(map(len, told)) + 12
        scene = Scene(wide, base.height + band, base.title, base.description, steps=base.steps)
        scene.add(*moved(base.shapes, (wide - base.width) / 2, band))
        words: list[Shape] = []
        for frame, lines in enumerate(told):
            words += [
                Text(MARGIN, 32.0 + 19 * n, line, palette.TITLE_SIZE, when=(frame, frame))
                for n, line in enumerate(lines)
            ]
        scene.add(*words)
        scene.ground()
        return scene


_FRAME = """\
<div data-tt-steps="{name}" role="group" tabindex="0" aria-label="{label}" \
data-lm-suppress-shortcuts="true" style="box-sizing:border-box;max-width:max(100%,{width}px);\
width:fit-content;background:{paper};color:{ink};border:1px solid {line};border-radius:10px;\
padding:14px;margin:8px 0;font:14px/1.45 Helvetica Neue,Helvetica,Arial,sans-serif">
<div data-part="bar" style="display:none;gap:6px;align-items:center;flex-wrap:wrap">{buttons}
<span data-part="count" style="color:{muted};margin-left:8px">step {last} of {last}</span>{slider}</div>
<p data-part="caption" aria-live="polite" style="margin:12px 4px 4px;min-height:2.9em;\
color:{ink}">{caption}</p>
<div style="overflow-x:auto">{picture}</div><script>{script}</script>
</div>
"""

_MANY_STEPS = 25  # more are easier to find by a slider
_SLIDER = """
<input type="range" data-part="slider" min="0" max="{last}" value="{last}" \
aria-label="step" style="color-scheme:light;flex:1 1 180px;max-width:420px;margin-left:8px">"""

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
</head>
<body style="margin:24px;background:{paper}">
{body}</body>
</html>
"""


def page(title: str, body: str) -> str:
    """Return a whole page around a piece of HTML."""
    return _PAGE.format(title=svg.escape(title), body=body, paper=palette.REST)


def button(go: str, sign: str, tip: str) -> str:
    """Return a button that a page's script finds by `go`."""
    style = (
        f"min-width:40px;padding:4px 10px;font:inherit;cursor:pointer;color:{palette.INK};"
        f"background:{palette.BOX};border:1px solid {palette.BOX_LINE};border-radius:6px"
    )
    return (
        f'<button type="button" data-go="{go}" title="{tip}" aria-label="{tip}"'
        f' style="{style}">{sign}</button>'
    )


def _lines(text: str, limit: float) -> list[str]:
    """Return the text broken into lines no wider than `limit`."""
    lines = [""]
    for word in clean(text).split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width(longer, palette.TITLE_SIZE) > limit:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def backward_steps(
    loss: Tensor | None,
    gradient: Tensor | None = None,
    *,
    params: object = None,
    engine: object = None,
    limit: int = 64,
) -> BackwardSteps:
    """Run a backward pass and return a page that steps through it.

    Each step shows one node's turn: the pending gradients on the edges, the node that runs, what it
    sends on, and at a leaf how `.grad` grows from old to new. Your tensors keep their `.grad` and
    the graph is retained, so `loss.backward()` can still be called; hooks do run, as in any
    backward. `gradient` is needed where `loss` is no scalar; `params` gives names, as for
    `autograd_graph`; `engine` is an engine to watch, whose `order` and `accumulate` are then used.

    Raises ValueError for a graph of more than `limit` nodes or an engine that cannot be watched,
    and whatever backward raises. PyTorch has no counterpart.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> steps = backward_steps(x * x, params={"x": x})
        >>> steps
        <backward steps: 2 turns, 4 steps to show>
        >>> print(steps.captions[2])
        Leaf x receives 3. + 3. = 6. and its .grad goes from none to 6.
        >>> x.grad is None
        True
    """
    root_of(loss)  # refuses what has no graph, with advice
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    names = named(params)
    made = animation(record(loss, gradient, engine=engine, limit=limit), names)
    turns = f"{made.runs} {'turn' if made.runs == 1 else 'turns'}"
    return BackwardSteps(made, f"<backward steps: {turns}, {len(made.captions)} steps to show>")

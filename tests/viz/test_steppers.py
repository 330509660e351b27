"""Every stepper is used alike: it opens at its first step and has the same buttons, keys and look."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import toytorch as torch
from tests.viz.device_records import training
from tests.viz.helpers import in_browser, logged
from toytorch import nn, viz
from toytorch.viz.backward.steps_page import BackwardSteps, page


def _backward() -> Any:
    x = torch.tensor(3.0, requires_grad=True)
    return viz.backward_steps(x * x)


def _boundary() -> Any:
    points, labels = torch.tensor([[-1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1])
    net = nn.Linear(2, 2)
    return viz.boundary_steps(
        points, labels, {"start": net, "end": net}, unseen=(points, labels), resolution=5
    )


def _kernel() -> Any:
    source = """extern "C" __global__ void reverse(float* x) {
        __shared__ float s[8];
        s[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = s[7 - threadIdx.x];
    }"""
    launch = torch.cuda.kernel(source)[1, 8](torch.arange(8.0))
    return viz.kernel_steps(launch)


def _walks() -> Any:
    return viz.walks(
        lambda x, y: x * x + y * y,
        {"SGD": lambda p: torch.optim.SGD(p, lr=0.1)},
        (1.0, 1.0),
        steps=3,
    )


MAKERS: dict[str, Callable[[], Any]] = {
    "BackwardSteps": _backward,
    "BoundarySteps": _boundary,
    "CacheSteps": lambda: viz.cache_steps((2, 4), [(0, 0), (1, 0), (0, 1)]),
    "KernelSteps": _kernel,
    "LoaderSteps": lambda: viz.loader_steps([3, 1, 1]),
    "MemorySteps": lambda: viz.memory_map(training(1).snapshot(), limit=9),
    "PassSteps": lambda: viz.passes(lambda x: x.neg().neg() * 2, torch.ones(3)),
    "ProgramSteps": lambda: viz.program_steps("x = torch.ones(2)\nx.mul_(2)"),
    "SecantSteps": lambda: viz.secants(lambda x: x**3, 2.0, [1.0, 0.1]),
    "SignalSteps": lambda: viz.signal({"a net": nn.Sequential(nn.Linear(4, 4))}, torch.ones(8, 4)),
    "SpanSteps": lambda: viz.span_steps(
        {"traceEvents": [{"name": "a", "ph": "X", "ts": 0, "dur": 2}]}
    ),
    "TextSteps": lambda: viz.text_steps(
        [(f"x is {n}.", ([f"x = {n}"], {0}), ([f"x: {n}"], {0})) for n in range(3)]
    ),
    "WalkSteps": _walks,
}


def test_no_stepper_is_left_out() -> None:
    known = {name for name in viz.__all__ if name.endswith("Steps")}
    assert set(MAKERS) == known
    kinds = {cls.__name__ for cls in _all_below(BackwardSteps)} | {"BackwardSteps"}
    assert kinds == known


def _all_below(cls: type) -> set[type]:
    return {kind for sub in cls.__subclasses__() for kind in {sub, *_all_below(sub)}}


def frame_of(html: str) -> str:
    """A stepper's HTML without what it shows: the name, the size, captions and the drawing."""
    html = re.sub(r"<svg .*?</svg>", "<svg>", html, flags=re.S)
    html = re.sub(r"var said = .*?, last = ", "var said = [], last = ", html)
    html = re.sub(r'(<p data-part="caption"[^>]*>)[^<]*', r"\1", html)
    html = re.sub(r"step \d+ of \d+", "step", html)
    html = re.sub(r'aria-label="[^"]*"( data-lm)', r'aria-label=""\1', html)
    return re.sub(r"max\(100%,[\d.]+px\)|\b[0-9a-f]{12}\b", "", html)


@pytest.mark.parametrize("name", MAKERS)
def test_buttons_keys_and_captions_are_the_same(name: str) -> None:
    made = MAKERS[name]()
    assert type(made).__name__ == name
    assert frame_of(made.html) == frame_of(_backward().html)
    for caption in made.captions:
        assert caption.endswith((".", "?")), caption


DRIVE = """
<pre id="log"></pre>
<script>
var lines = [];
document.querySelectorAll('[data-tt-steps]').forEach(function (root) {
  function count() { return root.querySelector('[data-part="count"]').textContent; }
  function key(name) {
    root.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }));
  }
  var seen = [count()];
  ['ArrowRight', 'ArrowLeft', 'End', 'Home'].forEach(function (name) {
    key(name); seen.push(count());
  });
  lines.push(seen.join('; '));
});
document.getElementById('log').textContent = lines.join('\\n');
</script>
"""


@pytest.mark.browser
def test_all_open_at_the_first_step_and_obey_the_same_keys() -> None:
    made = [make() for make in MAKERS.values()]
    lines = logged(in_browser(page("all", "".join(one.html for one in made) + DRIVE)))
    for one, line in zip(made, lines, strict=True):
        last = len(one) - 1
        order = [0, min(1, last), 0, last, 0]
        assert line == "; ".join(f"step {at} of {last}" for at in order)

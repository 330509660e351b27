"""Stepping through a backward pass: the record, the frames, and the page in a browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import toytorch as torch
from tests.viz.helpers import in_another_process, in_browser, logged, parsed, small_graph, texts
from toytorch import viz
from toytorch.autograd.engine import Engine, default
from toytorch.viz.backward.steps_page import page
from toytorch.viz.backward.steps_record import brief, record


def product() -> tuple[Any, dict[str, Any]]:
    """Return x·x + w·x at x = 3, w = 2: x gets 8 along three edges, w gets 3."""
    x = torch.tensor(3.0, requires_grad=True)
    w = torch.tensor(2.0, requires_grad=True)
    return x * x + w * x, {"x": x, "w": w}


def test_the_record_is_the_pass() -> None:
    loss, _ = product()
    made = record(loss)
    nodes = made.walked.nodes
    kinds = [nodes[step.node].name().rpartition("::")[2] for step in made.steps]
    assert kinds[0] == "AddBackward0"
    assert sorted(kinds[1:3]) == ["MulBackward0"] * 2
    assert sorted(kinds[3:]) == ["AccumulateGrad"] * 2
    assert made.steps[0].received == ["1."]
    assert sorted(made.steps[0].sent.values()) == ["1.", "1."]
    leaves = {step.new: step for step in made.steps if step.new}
    assert set(leaves) == {"8.", "3."}
    assert all(step.old == "none" and not step.sent for step in leaves.values())


def test_gradients_are_as_they_were() -> None:
    loss, names = product()
    x, w = names["x"], names["w"]
    x.grad = before = torch.tensor(10.0)
    steps = viz.backward_steps(loss, params=names)
    assert x.grad is before
    assert before.item() == 10.0
    assert w.grad is None
    assert any("its .grad goes from 10. to 18." in line for line in steps.captions)
    loss.backward()  # the graph is still there
    assert x.grad.item() == 18.0
    assert w.grad.item() == 3.0


def test_retained_gradients_are_as_they_were() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    y = x * 2
    y.retain_grad()
    loss = y * y
    viz.backward_steps(loss)
    assert y.grad is None
    loss.backward()
    assert y.grad.item() == 12.0


def test_gradients_are_put_back_when_the_pass_fails() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    x.grad = before = torch.tensor(1.0)
    y = x * 2

    def refuse(grad: Any) -> None:
        raise RuntimeError("refused by a hook")

    y.register_hook(refuse)
    with pytest.raises(RuntimeError, match="refused"):
        viz.backward_steps(y * y)
    assert x.grad is before
    assert before.item() == 1.0


def test_captions_tell_the_story() -> None:
    loss, names = product()
    said = viz.backward_steps(loss, params={**names, "loss": loss}).captions
    assert said[0] == "Backward starts at loss with the gradient 1."
    assert said[1].startswith("AddBackward0 receives 1. and sends 1. to MulBackward0 and 1. to Mul")
    assert any(
        line.startswith("Leaf w receives 3. and its .grad goes from none to") for line in said
    )
    assert any(
        re.match(r"Leaf x receives \d\. \+ \d\. \+ \d\. = 8\. and its \.grad", line)
        for line in said
    )
    assert said[-1] == "Done: 3 nodes ran, and 2 leaves hold their gradient."
    unnamed = viz.backward_steps(product()[0]).captions
    assert any(line.startswith("A leaf receives 3. and its .grad goes") for line in unnamed)


def test_each_frame_shows_its_turn() -> None:
    loss, names = product()
    steps = viz.backward_steps(loss, params=names)
    assert len(steps) == 7
    first, last = texts(steps.svg(0)), texts(steps.svg())
    assert first.count(".grad: none") == 2
    assert "1." in first
    assert ".grad: 8." in last
    assert ".grad: 3." in last
    badges = [text for text in last if text.isdigit()]
    assert sorted(badges) == ["1", "2", "3", "4", "5"]
    middle = [texts(steps.svg(n)) for n in range(len(steps))]
    assert any(".grad: none + 8. → 8." in frame for frame in middle)
    for n in range(len(steps)):
        parsed(steps.svg(n))
    with pytest.raises(IndexError, match="0 to 6"):
        steps.svg(7)


def test_vectors_and_large_gradients() -> None:
    assert brief(torch.tensor([1.0, 2.0])) == "[1., 2.]"
    assert brief(torch.ones(2, 2)) == "[[1., 1.], [1., 1.]]"
    assert brief(torch.ones(4, 25)) == "(4, 25) norm 10."
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="scalar"):
        viz.backward_steps(x * 2)
    steps = viz.backward_steps(x * 2, torch.tensor([1.0, 2.0, 3.0]))
    assert any("[2., 4., 6.]" in line for line in steps.captions)


def test_wrong_arguments_say_what_to_do() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(100):
        y = y * 1.5
    with pytest.raises(ValueError, match=r"101 nodes.*limit=101"):
        viz.backward_steps(y)
    assert len(viz.backward_steps(y, limit=101)) == 103
    with pytest.raises(TypeError, match="expected a tensor"):
        viz.backward_steps("loss")
    with pytest.raises(RuntimeError, match="requires_grad=True"):
        viz.backward_steps(torch.tensor(1.0))


def test_another_engine_can_be_watched() -> None:
    loss, names = product()
    latest = Engine(accumulate=lambda old, new: new)  # the mistake: the last gradient wins
    wrong = viz.backward_steps(loss, params=names, engine=latest)
    assert not any("to 8." in line for line in wrong.captions)
    with default.using(accumulate=latest.accumulate):
        assert viz.backward_steps(loss, params=names).captions == wrong.captions
    right = viz.backward_steps(loss, params=names, engine=Engine())
    assert any("to 8." in line for line in right.captions)
    with pytest.raises(ValueError, match="no steps to watch"):
        viz.backward_steps(loss, engine=Engine(run=lambda root, gradient: None))


def test_the_page_is_whole_and_always_the_same(tmp_path: Path) -> None:
    loss, names = small_graph()
    steps = viz.backward_steps(loss, params=names)
    code = "viz.backward_steps(loss, params=names).html.encode()"
    assert in_another_process(code, hash_seed="1") == steps.html.encode()
    assert steps._repr_html_() == steps.html
    saved = steps.save(tmp_path / "steps.html").read_text(encoding="utf-8")
    assert saved.startswith("<!doctype html>")
    assert steps.html in saved
    addresses = set(re.findall(r"https?://[^\"' ]+", saved))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, never fetched
    assert " id=" not in steps.html
    with pytest.raises(ValueError, match=r"\.html or \.svg or \.png"):
        steps.save(tmp_path / "steps.gif")


def test_without_script_the_last_frame_is_shown() -> None:
    loss, names = product()
    steps = viz.backward_steps(loss, params=names)
    drawing = parsed(steps.html[steps.html.index("<svg") : steps.html.index("</svg>") + 6])
    seen = ["".join(e.itertext()) for e in drawing if e.get("display") != "none"]
    assert ".grad: 8." in seen
    assert ".grad: none" not in seen
    assert f">{steps.captions[-1]}</p>" in steps.html


def test_hostile_names_cannot_leave_the_script() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    steps = viz.backward_steps(x * x, params={"</script><img src=x onerror=alert(1)>": x})
    assert steps.html.count("</script>") == 1
    assert "<img" not in steps.html


def test_png_of_a_step() -> None:
    pytest.importorskip("matplotlib")
    loss, names = product()
    steps = viz.backward_steps(loss, params=names)
    assert steps.png(2).startswith(b"\x89PNG")
    assert steps.png(2) != steps.png(3)
    data, _ = steps._repr_mimebundle_()
    assert set(data) == {"text/plain", "text/html", "image/png"}


CLICKS = """
<pre id="log"></pre>
<script>
var root = document.querySelectorAll('[data-tt-steps]')[1], lines = [];
function caption() { return root.querySelector('[data-part="caption"]').textContent; }
function count() { return root.querySelector('[data-part="count"]').textContent; }
function seen() {
  return Array.from(root.querySelectorAll('text')).filter(function (text) {
    return text.getAttribute('display') !== 'none' && text.textContent.indexOf('.grad') === 0;
  }).map(function (text) { return text.textContent; }).join(' / ');
}
function note() { lines.push(count() + ' | ' + caption() + ' | ' + seen()); }
function click(name) { root.querySelector('[data-go="' + name + '"]').click(); note(); }
function key(name) {
  root.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true })); note();
}
note();
for (var i = 0; i < 3; i++) click('next');
click('prev'); click('last'); click('next'); click('first');
key('ArrowRight'); key('ArrowLeft'); key('End'); key('Home');
root.querySelector('[data-go="play"]').click();
setTimeout(function () {
  note();
  document.getElementById('log').textContent = lines.join('\\n');
}, 15000);
</script>
"""


@pytest.mark.browser
def test_the_page_steps_in_a_browser() -> None:
    loss, names = product()
    steps = viz.backward_steps(loss, params=names)
    # the same picture twice, as when a cell is shown again: the second one is driven
    lines = logged(in_browser(page("steps", steps.html + steps.html + CLICKS)))
    lines = [line.replace("&gt;", ">") for line in lines]
    last = len(steps) - 1
    order = [0, 1, 2, 3, 2, last, last, 0, 1, 0, last, 0, last]
    assert len(lines) == len(order)
    for line, step in zip(lines, order, strict=True):
        count, caption, grads = line.split(" | ")
        assert count == f"step {step} of {last}"
        assert caption == steps.captions[step]
        shown = [text for text in texts(steps.svg(step)) if text.startswith(".grad")]
        assert grads == " / ".join(shown)

"""Text, SVG and PNG: what is measured, escaped and drawn."""

from __future__ import annotations

import io
import sys

import pytest

from tests.viz.helpers import parsed, texts
from toytorch.viz.draw import png, svg
from toytorch.viz.draw.scene import Path, Rect, Scene, Text, arrow_head
from toytorch.viz.draw.text import clean, number, shorten, width

HOSTILE = [
    "<script>alert(1)</script>",
    "\"' onload='x",
    "a & b",
    "]]>",
    "two\nlines\tand a tab",
    "null \x00 bell \x07 half \ud800 pair",
    "right to left \u202eoverride",
    "名前 é ∂ 🙂",
    "$x^2$ $",
    "",
]


def scene_with(*labels: str) -> Scene:
    scene = Scene(240, 20 * len(labels) + 20, "title", "description")
    scene.add(*(Text(10, 20 * n + 16, label, tip=label) for n, label in enumerate(labels)))
    scene.ground()
    return scene


def test_width_grows_with_text_and_size() -> None:
    assert width("", 12) == 0
    assert width("mm", 12) > width("ii", 12)
    assert width("abc", 24) == pytest.approx(2 * width("abc", 12), abs=0.02)
    assert width("abc", 12, bold=True) > width("abc", 12)
    assert width("名", 10) == 10


def test_shorten_keeps_both_ends_and_fits() -> None:
    long = "transformer.encoder.layers.11.self_attention.out_projection.weight"
    for limit in (20, 60, 120, 300):
        short = shorten(long, 12, limit)
        assert width(short, 12) <= limit
        assert short[0] == "t"
        assert "…" in short
    assert shorten("short", 12, 100) == "short"


def test_clean_leaves_one_line_of_drawable_characters() -> None:
    for label in HOSTILE:
        shown = clean(label)
        assert "\n" not in shown
        assert "\x00" not in shown
        assert "\u202e" not in shown
        shown.encode()


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1."), (-0.5, "-0.5"), (1e20, "1e+20"), (123456.0, "1.235e+05"), (3, "3"),
     (True, "True"), (1 + 2j, "1+2j"), (float("inf"), "inf"), (float("nan"), "nan")],
)  # fmt: skip
def test_numbers(value: object, text: str) -> None:
    assert number(value) == text


def test_hostile_text_stays_text() -> None:
    drawn = svg.draw(scene_with(*HOSTILE))
    root = parsed(drawn)
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    assert "<script" not in drawn
    assert "onload=" not in drawn.replace("&#39; onload=", "")
    shown = texts(drawn)
    assert any("<script>alert(1)</script>" in text for text in shown)
    assert any("名前 é ∂ 🙂" in text for text in shown)


def test_svg_is_accessible_and_scales() -> None:
    root = parsed(svg.draw(scene_with("a")))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "title"
    assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
    assert "max-width:100%" in str(root.get("style"))
    assert not [e for e in root.iter() if e.get("id")]


def test_steps_choose_what_is_seen() -> None:
    scene = Scene(100, 50, "steps", steps=3)
    scene.add(*(Text(5, 20, f"frame {n}", when=(n, n)) for n in range(3)), Text(5, 40, "always"))
    assert texts(svg.draw(scene, step=1)) == ["frame 1", "always"]
    assert texts(svg.draw(scene)) == ["frame 2", "always"]
    animated = parsed(svg.draw(scene, animated=True))
    hidden = ["".join(e.itertext()) for e in animated if e.get("display") == "none"]
    assert hidden == ["frame 0", "frame 1"]


def test_png_draws_the_same_scene() -> None:
    image = pytest.importorskip("matplotlib.image")
    scene = Scene(80, 40, "two halves")
    scene.add(Rect(0, 0, 40, 40, fill="#ff0000"), Rect(40, 0, 40, 40, 6, "#0000ff", "#000000", 2))
    line = (("M", ((4.0, 20.0),)), ("C", ((10.0, 5.0), (20.0, 35.0), (30.0, 20.0))))
    scene.add(Path(line, stroke="#ffffff", line=2), arrow_head((36, 20), (1, 0), "#ffffff"))
    pixels = image.imread(io.BytesIO(png.draw(scene, scale=2)))
    assert pixels.shape == (80, 160, 4)
    assert tuple(pixels[4, 4]) == (1, 0, 0, 1)
    assert tuple(pixels[20, 120]) == (0, 0, 1, 1)
    assert pixels[0, 159, 3] < 1  # the corner is round
    assert (pixels[:, :80, :3].min(axis=2) > 0.9).any()  # the white curve


def test_png_draws_any_text() -> None:
    pytest.importorskip("matplotlib")
    assert png.draw(scene_with(*HOSTILE)).startswith(b"\x89PNG")
    assert png.draw(scene_with(*HOSTILE)) == png.draw(scene_with(*HOSTILE))


def test_a_huge_picture_is_drawn_smaller() -> None:
    image = pytest.importorskip("matplotlib.image")
    pixels = image.imread(io.BytesIO(png.draw(Scene(20, 100_000, "tall"))))
    assert pixels.shape[0] <= 65_000


def test_png_without_matplotlib_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install toytorch\[course\]"):
        png.draw(scene_with("a"))

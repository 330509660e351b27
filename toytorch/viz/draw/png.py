"""The renderer of scenes for PNG, on matplotlib's Agg canvas.

Text is drawn as outlines of the face that matplotlib ships, each line scaled to its measured
width, so the picture is laid out as its SVG is and does not depend on the fonts of the machine. Nor
does it depend on more digits of a coordinate than the SVG writes.
"""

from __future__ import annotations

import io
from typing import Any

from toytorch.viz.draw.scene import Path, Rect, Scene, Text, hatching
from toytorch.viz.draw.svg import num
from toytorch.viz.draw.text import clean, width

_KAPPA = 0.5522847498  # control distance at which a cubic runs closest to a quarter circle
_MOST_PIXELS = 60_000_000


def draw(scene: Scene, *, scale: float = 2.0, step: int | None = None) -> bytes:
    """Return the scene as PNG bytes, `scale` pixels to a unit, at `step` (None: the last).

    Raises ImportError with the command that installs matplotlib where it is missing.
    """
    canvas_class, figure_class, patch, to_path, font, affine = _matplotlib()
    # a very tall picture is drawn smaller rather than in gigabytes
    scale = min(scale, (_MOST_PIXELS / (scene.width * scene.height)) ** 0.5, 60_000 / scene.height)
    figure = figure_class(figsize=(scene.width / 100, scene.height / 100), dpi=100 * scale)
    figure.patch.set_alpha(0.0)
    onto = affine().scale(scale, -scale).translate(0.0, round(scene.height * scale))
    for shape in scene.at(step):
        if isinstance(shape, Text):
            outline = _text_outline(shape, font(shape.bold), to_path)
            if outline is not None:
                style: dict[str, Any] = {"facecolor": shape.color, "linewidth": 0.0}
                figure.add_artist(patch(outline, transform=onto, snap=False, **style))
            continue
        commands = shape.commands if isinstance(shape, Path) else _rounded(shape)
        figure.add_artist(patch(_path(commands), transform=onto, snap=False, **_style(shape)))
        if isinstance(shape, Rect) and shape.hatch and (lines := hatching(shape)).commands:
            figure.add_artist(
                patch(_path(lines.commands), transform=onto, snap=False, **_style(lines))
            )
    out = io.BytesIO()
    canvas_class(figure).print_png(out, metadata={"Software": None})
    return out.getvalue()


def _matplotlib() -> Any:
    try:
        from matplotlib import font_manager, get_data_path  # an optional package
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import PathPatch
        from matplotlib.textpath import text_to_path
        from matplotlib.transforms import Affine2D
    except ImportError as error:
        raise ImportError(
            "a PNG picture is drawn with matplotlib, which is not installed: run"
            " `pip install toytorch[course]`, or use the SVG (.svg), which needs nothing"
        ) from error

    def font(bold: bool) -> Any:  # by file: the shipped face, whatever the machine has
        name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
        return font_manager.FontProperties(fname=f"{get_data_path()}/fonts/ttf/{name}", size=100)

    return FigureCanvasAgg, Figure, PathPatch, text_to_path, font, Affine2D


def _style(shape: Rect | Path) -> dict[str, Any]:
    stroked = shape.stroke != "none"
    # matplotlib measures lines in points: 72 to the inch, where our inch has 100 units
    style: dict[str, Any] = {
        "facecolor": shape.fill,
        "edgecolor": shape.stroke,
        "linewidth": shape.line * 0.72 if stroked else 0.0,
        "capstyle": "butt",
        "joinstyle": "miter",
    }
    if shape.dash and stroked:
        style["linestyle"] = (0, tuple(length / shape.line for length in shape.dash))
    return style


def _path(commands: Any) -> Any:
    from matplotlib.path import Path as Outline  # an optional package

    codes: list[int] = []
    points: list[tuple[float, float]] = []
    kinds = {"M": Outline.MOVETO, "L": Outline.LINETO, "C": Outline.CURVE4}
    for letter, at in commands:
        if letter == "Z":
            codes.append(int(Outline.CLOSEPOLY))
            points.append((0.0, 0.0))
        else:
            codes += [int(kinds[letter])] * len(at)
            points += [(_short(x), _short(y)) for x, y in at]
    return Outline(points, codes)


def _short(value: float) -> float:
    return float(num(value))


def _rounded(box: Rect) -> Any:
    x, y, w, h = map(_short, (box.x, box.y, box.w, box.h))
    r = min(box.r, w / 2, h / 2)
    if r <= 0:
        corners = ((x, y), (x + w, y), (x + w, y + h), (x, y + h))
        return [("M", corners[:1]), *(("L", (c,)) for c in corners[1:]), ("Z", ())]
    k = r * (1 - _KAPPA)
    return [
        ("M", ((x + r, y),)),
        ("L", ((x + w - r, y),)),
        ("C", ((x + w - k, y), (x + w, y + k), (x + w, y + r))),
        ("L", ((x + w, y + h - r),)),
        ("C", ((x + w, y + h - k), (x + w - k, y + h), (x + w - r, y + h))),
        ("L", ((x + r, y + h),)),
        ("C", ((x + k, y + h), (x, y + h - k), (x, y + h - r))),
        ("L", ((x, y + r),)),
        ("C", ((x, y + k), (x + k, y), (x + r, y))),
        ("Z", ()),
    ]


def _text_outline(shape: Text, font: Any, to_path: Any) -> Any:
    """Return the text's outline in scene units, squeezed or stretched to its measured width."""
    from matplotlib.font_manager import get_font  # an optional package
    from matplotlib.path import Path as Outline

    wanted = clean(shape.text)
    known = get_font(font.get_file()).get_charmap()
    text = "".join(char if ord(char) in known else "\ufffd" for char in wanted)
    points, codes = to_path.get_text_path(font, text)
    if not len(points):
        return None
    natural, _, _ = to_path.get_text_width_height_descent(text, font, False)
    fit = width(wanted, shape.size, bold=shape.bold)
    left = _short(shape.x) - {"start": 0.0, "middle": fit / 2, "end": fit}[shape.anchor]
    # the shipped face is larger in the body than the SVG's: 0.95 makes their heights alike
    across, up = fit / natural, shape.size * 0.95 / 100
    return Outline([(left + x * across, _short(shape.y) - y * up) for x, y in points], codes)

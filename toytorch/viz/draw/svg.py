"""The renderer of scenes for SVG: text in, the same bytes out on every machine.

No element has an id, no style sheet leaks into the page around it, and every string that came from
outside is escaped, so the text can stand in a notebook, a slide or a web page as it is.
"""

from __future__ import annotations

from toytorch.viz.draw import palette
from toytorch.viz.draw.scene import Path, Rect, Scene, Shape, Text, hatching
from toytorch.viz.draw.text import clean, width

FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}


def escape(text: str) -> str:
    """Return `text` safe between tags and inside quoted attributes.

    Example:
        >>> escape("<script>")
        '&lt;script&gt;'
    """
    return "".join(_ESCAPES.get(char, char) for char in clean(text))


def num(value: float) -> str:
    """Return a coordinate with at most two decimals and no negative zero."""
    short = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def draw(
    scene: Scene, *, step: int | None = None, animated: bool = False, least: float = 0.0
) -> str:
    """Return the scene as one SVG element, which a page may shrink to a width of `least`.

    `step` chooses what is seen of a scene with steps (None: the last). With `animated`, shapes of
    the other steps are written too, hidden, and each carries `data-when="first last"` for a script.
    """
    w, h = num(scene.width), num(scene.height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}"'
        f' role="img" aria-label="{escape(scene.title)}" font-family="{FONT}"'
        f' style="{f"min-width:{num(least)}px;" if least else ""}max-width:100%;height:auto">'
    )
    lines = [head, f"<title>{escape(scene.title)}</title>"]
    if scene.description:
        lines.append(f"<desc>{escape(scene.description)}</desc>")
    if animated:
        seen = {id(shape) for shape in scene.at(step)}
        lines += [_shape(s, _when(s, hidden=id(s) not in seen)) for s in scene.shapes]
    else:
        lines += [_shape(s, "") for s in scene.at(step)]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _when(shape: Shape, *, hidden: bool) -> str:
    if shape.when is None:
        return ""
    return f' data-when="{shape.when[0]} {shape.when[1]}"' + (' display="none"' if hidden else "")


def _shape(shape: Shape, extra: str) -> str:
    if isinstance(shape, Text):
        return _text(shape, extra)
    ink = _ink(shape)
    if isinstance(shape, Path):
        path = f'<path d="{_route(shape)}"{ink}{extra}'
        return f"{path}><title>{escape(shape.tip)}</title></path>" if shape.tip else f"{path}/>"
    box = f'x="{num(shape.x)}" y="{num(shape.y)}" width="{num(shape.w)}" height="{num(shape.h)}"'
    radius = f' rx="{num(shape.r)}"' if shape.r else ""
    lines = ""
    if shape.hatch and (route := hatching(shape)).commands:
        # the lines let the mouse through, to the box and its tip
        lines = f'<path d="{_route(route)}"{_ink(route)} pointer-events="none"{extra}/>'
    if shape.tip:
        tip = escape(shape.tip)
        return f"<rect {box}{radius}{ink}{extra}><title>{tip}</title></rect>{lines}"
    return f"<rect {box}{radius}{ink}{extra}/>{lines}"


def _route(path: Path) -> str:
    return " ".join(
        letter + " ".join(f"{num(x)} {num(y)}" for x, y in points)
        for letter, points in path.commands
    )


def _ink(shape: Rect | Path) -> str:
    fill = f' fill="{shape.fill}"'
    if shape.stroke == "none":
        return fill
    line = f' stroke-width="{num(shape.line)}"' if shape.line != 1.0 else ""
    dash = f' stroke-dasharray="{" ".join(map(num, shape.dash))}"' if shape.dash else ""
    return f'{fill} stroke="{shape.stroke}"{line}{dash}'


def _text(shape: Text, extra: str) -> str:
    # textLength holds every font to the measured width: nothing spills, whatever the viewer has
    text = clean(shape.text)
    fit = width(text, shape.size, bold=shape.bold)
    anchor = f' text-anchor="{shape.anchor}"' if shape.anchor != "start" else ""
    weight = ' font-weight="bold"' if shape.bold else ""
    color = f' fill="{shape.color or palette.INK}"'
    tip = f"<title>{escape(shape.tip)}</title>" if shape.tip else ""
    return (
        f'<text x="{num(shape.x)}" y="{num(shape.y)}" font-size="{num(shape.size)}"{anchor}{weight}'
        f'{color} textLength="{num(fit)}" lengthAdjust="spacingAndGlyphs"{extra}>'
        f"{tip}{escape(text)}</text>"
    )

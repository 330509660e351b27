"""Text for pictures: how wide it is, how it is shortened, what may be drawn.

Nothing here asks a font: widths come from one table, so that a picture's geometry is the same on
every machine. The SVG then tells the viewer's own font to keep to the measured width.
"""

from __future__ import annotations

import unicodedata

# Advance widths of a Helvetica-like face, in thousandths of the type size, for ASCII 32 to 126.
# fmt: off
_ASCII = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,  # space to /
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,  # 0 to ?
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,  # @ to O
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,  # P to _
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,  # ` to o
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,  # p to ~
)
# fmt: on
_OTHERS = {"·": 333, "×": 584, "…": 1000, "→": 1000, "∞": 713}
_BOLD = 1.07


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of `text` in picture units at type size `size`.

    Example:
        >>> width("loss", 10.0)
        17.78
    """
    total = 0
    for char in text:
        code = ord(char)
        if 32 <= code <= 126:
            total += _ASCII[code - 32]
        elif char in _OTHERS:
            total += _OTHERS[char]
        elif unicodedata.east_asian_width(char) in "WF":
            total += 1000
        elif not unicodedata.combining(char):
            total += 600
    return round(total * size * (_BOLD if bold else 1.0) / 1000, 2)


def clean(text: str) -> str:
    """Return `text` as one drawable line: white space becomes a blank, control characters a box.

    XML has no way to write most control characters, and surrogates cannot be encoded; a
    right-to-left override would let one label rewrite how its neighbours read.

    Example:
        >>> clean("two\\nlines")
        'two lines'
    """
    kept = [
        " " if char.isspace() else "\ufffd" if unicodedata.category(char)[0] == "C" else char
        for char in text
    ]
    return " ".join("".join(kept).split())


def shorten(text: str, size: float, limit: float, *, bold: bool = False) -> str:
    """Return `text`, with its middle replaced by an ellipsis if it is wider than `limit`.

    Example:
        >>> shorten("encoder.layers.11.attention.weight", 10.0, 100.0)
        'encoder.la…on.weight'
    """
    if width(text, size, bold=bold) <= limit:
        return text
    low, high = 0, len(text) - 1  # how many characters may stay: found by halving
    while low < high:
        keep = (low + high + 1) // 2
        if width(_without_middle(text, keep), size, bold=bold) <= limit:
            low = keep
        else:
            high = keep - 1
    return _without_middle(text, low)


def _without_middle(text: str, keep: int) -> str:
    tail = keep // 2
    return text[: keep - tail] + "…" + (text[-tail:] if tail else "")


def number(value: object) -> str:
    """Return a number as it is written in a small cell: at most four significant digits.

    Example:
        >>> number(2.0), number(0.123456), number(1e-9), number(True), number(7)
        ('2.', '0.1235', '1e-09', 'True', '7')
    """
    if isinstance(value, float):
        short = f"{value:.4g}"
        return short + "." if short.lstrip("-").isdigit() else short
    if isinstance(value, complex):
        return f"{value.real:.3g}{value.imag:+.3g}j"
    return str(value)

"""Colours and type sizes that every picture shares.

The hues are those of Okabe and Ito's palette, told apart with any kind of colour vision; each comes
as a strong line colour and a pale tint on which dark text keeps a contrast above 7:1.
"""

from __future__ import annotations

from typing import NamedTuple


class Hue(NamedTuple):
    """One colour in its two strengths: `line` for strokes and accents, `tint` for areas."""

    line: str
    tint: str


PAPER = "#fdfcfa"  # pictures bring their own ground, so they read the same on a dark page
FRAME = "#e4e0d8"
INK = "#20262e"
MUTED = "#5d6672"
FAINT = "#a9b0b9"
BOX = "#ffffff"
BOX_LINE = "#c3c9d1"
REST = "#f3f2ee"  # what is finished, or not in use

BLUE = Hue("#2a6fb0", "#e4eff9")
GREEN = Hue("#12805f", "#dff3ec")
AMBER = Hue("#b97d10", "#fcf2dc")
RED = Hue("#cc5200", "#fde8da")
PURPLE = Hue("#a1578a", "#f7e9f2")
SKY = Hue("#3a93bf", "#e1f3fb")

LEAF, RESULT, SAVED, HOT = BLUE, GREEN, AMBER, RED
VIEWS = (BLUE, GREEN, PURPLE, RED, SKY)  # one per view in a storage picture
SHARED = AMBER

ALARM = "#a83f00"

TITLE_SIZE = 13.0
TEXT_SIZE = 12.0
SMALL_SIZE = 11.5

EDGE = "#8a939f"


def between(one: str, other: str) -> str:
    """The colour half way between two.

    >>> between("#000000", "#ff8000")
    '#7f4000'
    """
    pairs = ((int(one[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{(a + b) // 2:02x}" for a, b in pairs)

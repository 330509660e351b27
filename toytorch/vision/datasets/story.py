"""A text to learn language from: a story written for this course."""

from __future__ import annotations

import functools
from importlib.resources import files


@functools.cache
def text() -> str:
    """A short story of our own about a workshop that builds a thinking machine; plain ASCII.

    Small language models read it letter by letter. Written for this project; its licence is the
    project's.

    >>> story = text()
    >>> len(story) > 12000, story.isascii()
    (True, True)
    """
    source = files("toytorch.vision") / "data" / "story.txt"
    return source.read_text(encoding="ascii").replace("\r\n", "\n")

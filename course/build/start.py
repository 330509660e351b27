"""The start page: a notebook that lists all chapters."""

from __future__ import annotations

from typing import Any

from course.build import notebooks
from course.build.source import Cell

WELCOME = """# Welcome to toytorch

You are about to rebuild PyTorch, piece by piece, and to train networks on what you built.

Each chapter asks a question, lets you play, and then has you **write the idea yourself** in a
handful of exercises. A check tells you at once whether your code is right; where it is not, it
shows the input that broke it and often the misconception behind it. Then your piece is plugged
into the framework and something larger runs on it.

* Run a cell with **Shift+Enter**. Run them in order, and predict what comes before you look.
* Every notebook runs to its end, solved or not: toytorch's own piece stands in for what is open.
* Stuck for more than a while? `solutions/` has every chapter solved, `slides/` has the lecture.

Run the cell below to see where you are."""

LISTING = "from course import start\n\nstart()"


def start_page() -> Any:
    """The start page as a notebook, its list filled in with no exercise done."""
    import nbformat

    from course.notebook import StartPage

    # the page is made here rather than run in a kernel: it must not show the author's progress
    page = StartPage(states={})
    output = {
        "output_type": "execute_result",
        "execution_count": 1,
        "metadata": {},
        "data": {"text/html": page._repr_html_(), "text/plain": repr(page)},
    }
    cells = [
        Cell("welcome", "prose", WELCOME, WELCOME),
        Cell("chapters", "code", LISTING, LISTING, varies=True, count=1),
    ]
    cells[1].outputs = [nbformat.from_dict(output)]
    return notebooks.solved(cells, 0)

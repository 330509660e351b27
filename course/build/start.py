"""The start page: a notebook that lists all chapters."""

from __future__ import annotations

from typing import Any

from course.build import notebooks
from course.build.source import Cell

WELCOME = """# Welcome to toytorch

You are about to rebuild PyTorch step by step, and to train networks on what you built.

Each chapter asks a question, lets you play, and then has you **write the idea yourself** in a
handful of exercises. A check tells you at once whether your code is right; where it is not, it
shows the input that broke it and often the misconception behind it. Then your answer is plugged
into the framework and something larger runs on it.

* Run a cell with **Shift+Enter**. Run them in order, and predict what comes before you look.
* Every notebook runs to its end, solved or not: for what is open, toytorch's own answer is used.
* Stuck for more than a while? `solutions/` has every chapter solved, `slides/` has the lecture.

Run the cell below to see where you are."""

LISTING = "from course import start\n\nstart()"

LATER = """## Starting later, or coming back

You may begin with any chapter: nothing before it has to be solved. Answers that passed their checks are
kept, and a line at the top of a notebook brings them back. For chapter 8:

```python
from course import catch_up

catch_up(8)                # your answers of chapters 1 to 7, each checked again
catch_up(8, install=True)  # and the framework itself runs on them
```

This is a working copy, in the folder `work/`: write in it as you like. When a chapter of the
course changes, your answers are carried over, and `python3 -m course reset 04` in a terminal begins
chapter 4 anew (the old copy is kept in `work/before/`).

Your larger answers become files of a package of your own, `work/mytorch/`. At some chapters' ends a
**milestone** trains a network on that package alone; `python3 -m course milestone 04` runs one.

Stuck? `hint("autograd.order")` gives an idea, asked again a worked trace, then a skeleton.

## Looking things up

`glossary()` lists every term with its chapter, its place in toytorch and its name in PyTorch;
`glossary("stride")` shows one. `pictures()` lists every picture of the course."""

LOOK_UP = 'from course import glossary, pictures\n\nglossary("tensor", "storage", "gradient")'


def start_page() -> Any:
    """The start page as a notebook, its list filled in with no exercise done."""
    import nbformat

    from course.notebook import StartPage
    from course.terms import glossary

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
        Cell("later", "prose", LATER, LATER),
        Cell("look-up", "code", LOOK_UP, LOOK_UP, count=2),
        Cell("pictures", "code", "pictures()", "pictures()"),
    ]
    cells[1].outputs = [nbformat.from_dict(output)]
    found = glossary("tensor", "storage", "gradient")
    shown = {"text/html": found._repr_html_(), "text/plain": repr(found)}
    cells[3].outputs = [nbformat.from_dict({**output, "execution_count": 2, "data": shown})]
    return notebooks.solved(cells, 0)

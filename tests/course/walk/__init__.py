"""Walk a chapter as a learner does: its untouched notebook, in JupyterLab, in a real browser.

    python -m tests.course.walk 04 --out /tmp/walk   # one chapter, with screenshots
    python -m tests.course.walk --record             # all of them; docs/walk.md keeps the times
    python -m tests.course.walk 04 --hints --record  # once more, by hints only

``devtools`` drives Chromium, ``lab`` starts JupyterLab on a copy, ``learner`` does the walking,
``page.js`` is what it asks of the page, ``gaps`` completes a hint, ``report`` says what came of it.
"""

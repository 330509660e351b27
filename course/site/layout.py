"""What every page has around it: head, the bar at the top, and one stylesheet beside the pages."""

from __future__ import annotations

from html import escape

from course.build import markup

BAR = (
    ("index", "Contents"),
    ("pictures", "Pictures"),
    ("glossary", "Glossary"),
    ("ops", "Operations"),
    ("lecturer", "For lecturers"),
)


def page(title: str, body: str, *, here: str = "", depth: int = 0, side: str = "") -> str:
    """A whole page.

    Args:
        title: for the browser's tab.
        body: the HTML of the page itself.
        here: which entry of the bar this is.
        depth: how many folders below the site's own the page lies.
        side: the HTML of a column beside the body.
    """
    up = "../" * depth
    bar = "".join(
        f'<a href="{up}{name}.html"{_CURRENT if name == here else ""}>{words}</a>'
        for name, words in BAR
    )
    column = f'<nav class="side" aria-label="On this page">{side}</nav>' if side else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} · toytorch</title>\n"
        f'<link rel="icon" href="data:,">\n<link rel="stylesheet" href="{up}site.css">\n'
        f'</head>\n<body>\n<header><a class="home" href="{up}index.html">toytorch</a>'
        f"<nav>{bar}</nav></header>\n"
        f'<div class="page{" with-side" if side else ""}">{column}<main>\n{body}\n</main></div>\n'
        "</body>\n</html>\n"
    )


_CURRENT = ' aria-current="page"'


def stylesheet() -> str:
    """The one stylesheet of the site."""
    return markup.asset("site.css") + markup.code_css()

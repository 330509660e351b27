"""Markdown, mathematics and code as HTML that needs nothing beside it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

_ASSETS = Path(__file__).resolve().parent.parent / "assets"
# every colour has at least 4.5:1 on the panel that code stands on: a test computes it
_STYLE, _DARK_STYLE = "xcode", "github-dark"


def asset(name: str) -> str:
    """The text of a file in course/assets."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def markdown(text: str) -> str:
    """Markdown to HTML; ``$…$`` and ``$$…$$`` become MathML, fenced code is coloured."""
    html: str = _parser().render(text)
    return html


def blocks(text: str) -> list[str]:
    """The blocks of a Markdown text, one after the other: paragraphs, items, tables, formulas."""
    lines = text.splitlines()
    spans, inside = [], False
    for token in _parser().parse(text):
        if token.level == 0 and token.nesting >= 0 and token.map:
            inside = token.type in ("bullet_list_open", "ordered_list_open")
            spans += [] if inside else [token.map]
        elif token.level == 1 and inside and token.type == "list_item_open":
            spans.append(token.map)
    return ["\n".join(lines[first:last]).strip("\n") for first, last in spans]


def code(source: str, language: str = "python") -> str:
    """Source text as a coloured block."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language, stripnl=False)
    inner: str = highlight(source.strip("\n"), lexer, HtmlFormatter(nowrap=True))
    return f'<pre class="code"><code>{inner.rstrip()}</code></pre>'


def code_css() -> str:
    """The colours of :func:`code`, on light pages and on dark ones."""
    return "\n" + _colours(_STYLE, ".code") + "\n" + _colours(_DARK_STYLE, "html.dark .code") + "\n"


def _colours(style: str, where: str) -> str:
    from pygments.formatters import HtmlFormatter

    css: str = HtmlFormatter(style=style).get_style_defs(where)
    return "\n".join(x for x in css.splitlines() if x.startswith(where) and "background" not in x)


@functools.cache
def _parser() -> Any:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def fence(text: str, language: str, attributes: str) -> str:
        return code(text, language or "text")

    parser = MarkdownIt("commonmark", {"html": True, "highlight": fence}).enable("table")
    # a dollar amount in prose stays one: digits must not touch the outside of a pair
    parser.use(dollarmath_plugin, renderer=_math, allow_digits=False)
    return parser


def _math(text: str, options: dict[str, Any]) -> str:
    from latex2mathml.converter import convert

    display = "block" if options.get("display_mode") else "inline"
    mathml: str = convert(text, display=display)
    return mathml

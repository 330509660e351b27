"""Sources beside each other: truly so on a wide page, below each other on a narrow one."""

from __future__ import annotations

from typing import Any

import pytest

from course.notebook import look
from tests.course import chromium

_WHERE = """
const boxes = [...document.querySelectorAll('.source-pane')].map(one => {
  const box = one.getBoundingClientRect();
  return [box.left, box.top, box.right, box.bottom].map(Math.round);
});
answer({boxes, room: document.documentElement.clientWidth,
        across: document.documentElement.scrollWidth});
"""


def mine(items):
    """A sum."""
    return sum(items)


@pytest.mark.browser
@pytest.mark.parametrize(("width", "beside"), [(1900, True), (1150, True), (700, False)])
def test_sources_stand_side_by_side_where_there_is_room(
    browser: Any, width: int, beside: bool
) -> None:
    shown = look(chromium.ask, beside=mine)._repr_html_()
    page = f"<!doctype html><html><head></head><body style='font:14px sans-serif'>{shown}</body></html>"
    seen = chromium.ask(browser, page, _WHERE, width=width)
    yours, ours = seen["boxes"]
    assert seen["across"] <= seen["room"]
    if beside:
        assert yours[1] == ours[1]
        assert yours[2] < ours[0]
        assert abs((yours[2] - yours[0]) - (ours[2] - ours[0])) <= 1
    else:
        assert yours[0] == ours[0]
        assert yours[3] < ours[1]


def test_one_source_takes_the_whole_width() -> None:
    assert look(chromium.ask)._repr_html_().count("source-pane") == 1


@pytest.mark.browser
def test_a_page_that_asks_for_something_elsewhere_is_told(browser: Any) -> None:
    page = "<html><head></head><body><img src='https://example.invalid/a.png'></body></html>"
    script = "addEventListener('load', () => setTimeout(() => answer(window.refused), 50))"
    (said,) = chromium.ask(browser, page, script)
    assert said == "https://example.invalid/a.png by img-src"
    assert chromium.ask(browser, page.replace("https:", "data:"), script) == []

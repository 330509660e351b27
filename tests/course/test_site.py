"""The site: every page whole, every link leads somewhere, no request leaves the machine."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from course.contents import CHAPTERS, written
from course.notebook import StartPage
from course.site import write
from tests.course import chromium
from tests.course.test_slides import contrast


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert write(folder) > 700
    return folder


class _Links(HTMLParser):
    """The addresses a page names, and the places in it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.places.add(found.get("id", ""))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in ("link", "img", "script", "iframe", "source", "video"):
            self.asked += [found[name] for name in ("src", "href") if name in found]


def read(path: Path) -> _Links:
    parser = _Links()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def test_every_link_leads_somewhere_and_nothing_is_asked_of_the_network(site: Path) -> None:
    pages = {path: read(path) for path in site.rglob("*.html") if path.parent.name != "slides"}
    assert len(pages) > 700
    for path, page in pages.items():
        for address in page.asked:
            if not address.startswith("data:"):
                assert not re.match(r"(\w+:)?//", address), f"{path}: {address}"
                assert (path.parent / address).exists(), f"{path}: {address}"
        for address in page.links:
            if re.match(r"https?://", address):
                continue  # a link to follow; nothing is loaded
            target, _, place = unescape(address).partition("#")
            file = (path.parent / target).resolve() if target else path
            assert file.exists(), f"{path.name} links to {address}"
            if place and file in pages:
                assert place in pages[file].places, f"{path.name} links to {address}"


def test_the_contents_list_every_chapter(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    for chapter in CHAPTERS:
        assert (f'href="chapters/{chapter.stem}.html"' in index) == chapter.written
    for chapter in written():
        page = (site / "chapters" / f"{chapter.stem}.html").read_text(encoding="utf-8")
        assert page.count("<summary>A solution</summary>") >= 3
        assert "NotImplementedError" in page


def test_a_second_build_gives_the_same_bytes(site: Path, tmp_path: Path) -> None:
    write(tmp_path)
    for path in site.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / path.relative_to(site)).read_bytes(), path.name


_LOOK = """
window.addEventListener('load', () => setTimeout(() => {
  const main = document.querySelector('main').getBoundingClientRect();
  answer({
    refused: window.refused, width: innerWidth, height: main.height,
    words: document.querySelector('main').innerText.length,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    loaded: performance.getEntriesByType('resource').map(e => e.name)
      .filter(n => !n.startsWith('data:') && !n.startsWith('file:')),
    broken: [...document.images].filter(i => i.complete && !i.naturalWidth).length
  });
}, 50));
"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 500])  # the narrowest window Chromium makes
@pytest.mark.parametrize(
    "name",
    [
        *("index", "glossary", "pictures", "ops", "lecturer", "ops/conv2d"),
        *(f"chapters/{chapter.stem}" for chapter in written()),
    ],
)
def test_pages_are_whole_in_a_browser(site: Path, browser: Any, name: str, width: int) -> None:
    """With the network forbidden nothing is refused, nothing is empty, nothing too wide."""
    page = (site / f"{name}.html").read_text(encoding="utf-8")
    style = (site / "site.css").read_text(encoding="utf-8")
    # one file, as the guard in front lets a page load nothing at all
    page = re.sub(r'<link rel="stylesheet"[^>]*>', f"<style>{style}</style>", page)
    page = re.sub(r'src="pictures/[^"]*"', 'src="data:image/gif;base64,R0lGODlhAQABAAAAACw="', page)
    seen = chromium.ask(browser, page, _LOOK, width=width)
    assert seen["width"] == width
    assert seen["refused"] == []
    assert seen["loaded"] == []
    assert seen["wide"] <= 1
    assert seen["words"] > (100 if "/" not in name else 120)
    assert seen["height"] > 150


def test_words_can_be_read(site: Path) -> None:
    """At least 4.5:1 on the paper, on a panel and on white, and nothing is paler than its colour."""
    style = (site / "site.css").read_text(encoding="utf-8")
    named = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", style))
    inks = {named[name] for name in ("ink", "muted", "accent")}
    inks |= set(re.findall(r"[ {;]color: (#[0-9a-f]{6})", style))
    for ink in inks:
        assert (
            min(contrast(ink, below) for below in (named["paper"], named["panel"], "#ffffff"))
            >= 4.5
        )
    assert "opacity" not in style


@pytest.mark.browser
def test_the_start_page_is_whole_in_a_narrow_notebook(browser: Any) -> None:
    page = f"<html><head></head><body style='font-size:14px'>{StartPage({})._repr_html_()}</body></html>"
    assert chromium.ask(browser, page, "answer(document.body.scrollWidth)", width=640) <= 640


def test_names_with_underscores_are_not_slanted(site: Path) -> None:
    page = (site / "ops" / "_foreach_abs_.html").read_text(encoding="utf-8")
    assert "<h1>_foreach_abs_</h1>" in page
    assert "<em>foreach" not in (site / "ops.html").read_text(encoding="utf-8")

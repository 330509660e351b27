"""Slides are read from the last row: what is on each page, how large, and that nothing is clipped.

All decks are built from the sources into a temporary folder and gone through in one browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest

from course import registry
from course.build import markup, paging, pdf
from course.build.source import COLUMNS
from course.contents import Chapter, written
from tests.course import chromium

pytest.importorskip("websocket")

from tests.course import decks
from tests.course.decks import Deck, Seen
from tests.course.walk.devtools import Browser


def ids(chapter: Chapter) -> str:
    return chapter.stem


chapters = pytest.mark.parametrize("chapter", written(), ids=ids)


@dataclass
class All:
    """Every deck as text, and as a browser shows it."""

    text: dict[str, str]
    seen: dict[str, Deck]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {chapter.stem: decks.deck(chapter) for chapter in written()}


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    chromium.find()
    with Browser(1280, 720) as opened:
        yield opened


@pytest.fixture(scope="module")
def shown(
    texts: dict[str, str], page: Browser, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Deck]:
    folder = tmp_path_factory.mktemp("decks")
    return {stem: decks.look_at(page, text, folder) for stem, text in texts.items()}


@pytest.mark.browser
@chapters
def test_slides_are_whole_and_ask_for_nothing(chapter: Chapter, shown: dict[str, Deck]) -> None:
    seen = shown[chapter.stem]
    assert seen.asked == []
    assert seen.complaints == []
    assert seen.ready == {"notes": "function", "loaded": []}
    assert len(seen.pages) >= 8
    assert _said(seen, lambda one: one.outside) == []


@pytest.mark.browser
@chapters
def test_code_is_read_from_the_last_row(chapter: Chapter, shown: dict[str, Deck]) -> None:
    small = _said(shown[chapter.stem], lambda one: [c for c in one.code if c < paging.SIZES[-1]])
    assert small == []


@pytest.mark.browser
@chapters
def test_pictures_are_read_from_the_last_row(chapter: Chapter, shown: dict[str, Deck]) -> None:
    seen = shown[chapter.stem]
    assert _said(seen, lambda one: [round(x, 1) for x in one.letters if x < 14]) == []


@pytest.mark.browser
@chapters
def test_the_pages_number_and_arrows_lie_on_nothing(
    chapter: Chapter, shown: dict[str, Deck]
) -> None:
    assert _said(shown[chapter.stem], lambda one: one.covered) == []


@pytest.mark.browser
@chapters
def test_every_page_has_a_title_of_its_own(chapter: Chapter, shown: dict[str, Deck]) -> None:
    titles = [one.title for one in shown[chapter.stem].pages]
    assert all(titles)
    assert len(set(titles)) == len(titles), [t for t in titles if titles.count(t) > 1]


@pytest.mark.browser
@chapters
def test_what_a_page_announces_is_on_the_slides(chapter: Chapter, shown: dict[str, Deck]) -> None:
    """After a colon something comes, on this page or on the next one with its title."""
    pages = shown[chapter.stem].pages
    for page, after in zip(pages, [*pages[1:], None], strict=True):
        if page.last.endswith(":"):
            title = re.sub(r" \(\d+\)$", "", page.title)
            assert after is not None and after.title.startswith(title), page


@pytest.mark.browser
@chapters
def test_every_page_has_notes(chapter: Chapter, shown: dict[str, Deck]) -> None:
    without = [one.title for one in shown[chapter.stem].pages if one.notes < 40]
    assert without == []


def _said(seen: Deck, what) -> list[str]:  # type: ignore[no-untyped-def]
    return [f"{one.number} {one.title}: {what(one)}" for one in seen.pages if what(one)]


@pytest.mark.browser
def test_what_is_wrong_with_a_page_is_found(
    texts: dict[str, str], page: Browser, tmp_path: Path
) -> None:
    """The measurement itself can fail: a tall page, a request, small code, a covered foot."""
    bad = (
        '<section><div class="page"><pre style="font-size:19px">x</pre><svg width="50" height="50">'
        '<text y="20" font-size="9">x</text></svg><div style="position:absolute;left:36px;'
        'top:690px">on the number</div><div style="height:900px">tall</div>'
        '<img src="https://example.invalid/a.png"></div></section>'
    )
    text = texts[written()[0].stem].replace("</section>", "</section>" + bad, 1)
    seen = decks.look_at(page, text, tmp_path)
    found: Seen = seen.pages[1]
    assert any("bottom" in line for line in found.outside)
    assert found.code == [19.0]
    assert sorted(map(round, found.letters)) == [0, 9]
    assert found.covered != []
    assert found.title == "" and found.notes == 0
    assert any("example.invalid" in url for url in seen.asked)


@pytest.mark.browser
def test_key_d_makes_a_deck_dark_and_it_is_remembered(
    texts: dict[str, str], page: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "deck.html"
    file.write_text(texts[written()[0].stem], encoding="utf-8")
    paper = "getComputedStyle(document.body).backgroundColor"

    def opened() -> str:
        page.open("about:blank")
        page.open(file.as_uri())
        page.until("window.Reveal && Reveal.isReady()")
        return str(page.ask(paper))

    try:
        for system, ground in (("dark", "rgb(20, 24, 31)"), ("light", "rgb(255, 255, 255)")):
            page.call(
                "Emulation.setEmulatedMedia",
                features=[{"name": "prefers-color-scheme", "value": system}],
            )
            assert opened() == ground
        page.press("d")
        assert page.ask(paper) == "rgb(20, 24, 31)"
        assert opened() == "rgb(20, 24, 31)"
        page.press("d")
        assert opened() == "rgb(255, 255, 255)"
    finally:
        page.ask("localStorage.clear() || true")
        page.call("Emulation.setEmulatedMedia", features=[])


@pytest.mark.browser
def test_a_pdf_has_one_slide_a_page(
    texts: dict[str, str], shown: dict[str, Deck], tmp_path: Path
) -> None:
    stem = written()[0].stem
    (tmp_path / "deck.html").write_text(texts[stem], encoding="utf-8")
    pdf.write(tmp_path / "deck.html", tmp_path / "made" / "deck.pdf")
    printed = (tmp_path / "made" / "deck.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == len(shown[stem].pages)
    assert re.findall(rb"/MediaBox\s*\[([^\]]*)\]", printed)[0].split() == [
        b"0",
        b"0",
        b"960",
        b"540",
    ]


def test_without_a_browser_a_pdf_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(pdf, "_PLACES", ())
    with pytest.raises(LookupError, match=r"none of them was found\. Install one"):
        pdf.write(tmp_path / "deck.html", tmp_path / "deck.pdf")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_colour_of_code_can_be_read(theme: str) -> None:
    """At least 4.5:1 against the panel that code stands on, and the words of a page as well."""
    style = markup.asset("slides.css")
    block = re.search(
        r"html\.dark \{(.*?)\}" if theme == "dark" else r":root \{(.*?)\}", style, re.S
    )
    assert block
    named = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block.group(1)))
    where = r"^html\.dark \.code" if theme == "dark" else r"^\.code"
    # .w is white space, which has no ink
    rules = re.findall(
        where + r"(?! \.w )[^{]*\{ color: (#[0-9A-Fa-f]{3,6})", markup.code_css(), re.M
    )
    assert len(rules) > 30
    for colour in rules:
        assert contrast(colour, named["panel"]) >= 4.5, colour
    for name in ("ink", "muted", "link", "alarm"):
        assert contrast(named[name], named["paper"]) >= 4.5, name
    assert contrast(named["accent"], named["paper"]) >= 4.5


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio of two colours."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    shares = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(weight * s for weight, s in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@chapters
def test_slides_name_no_address_to_load(chapter: Chapter, texts: dict[str, str]) -> None:
    deck = texts[chapter.stem]
    body = re.sub(r"<script>.*?</script>", "", deck, flags=re.S)
    assert not re.search(r"""(src|href)\s*=\s*["'](https?:)?//""", body)
    assert "@import" not in deck
    for picture in re.findall(r'<img [^>]*src="([^"]{0,20})', body):
        assert picture.startswith("data:image/")


@chapters
def test_code_lines_fit(chapter: Chapter, texts: dict[str, str]) -> None:
    """The chapter's own code is never broken; source that is looked at may be longer."""
    deck = texts[chapter.stem]
    blocks = re.findall(r'(?<!</div>)<pre class="code"><code>(.*?)</code></pre>', deck, re.S)
    assert blocks
    for block in blocks:
        for line in unescape(re.sub(r"<[^>]+>", "", block)).splitlines():
            assert len(line) <= COLUMNS, line


@chapters
def test_no_reference_is_on_the_slides(chapter: Chapter, texts: dict[str, str]) -> None:
    """What is homework is not shown to the class: neither beside the framework's own nor in a cell."""
    deck = texts[chapter.stem]
    assert ">yours: " not in deck
    plain = unescape(re.sub(r"<[^>]+>", "", deck))
    for found in registry.of_chapter(chapter.number):
        body = [line.strip() for line in found.answer.source.splitlines()[1:]]
        telling = {line for line in body if len(line) > 30 and not line.startswith(('"""', "#"))}
        seen = {line for line in telling if line in plain}
        assert len(seen) <= len(telling) // 3, (found.name, seen)

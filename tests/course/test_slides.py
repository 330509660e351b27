"""Slides open from disk with no network, nothing on them is clipped, and code lines fit."""

from __future__ import annotations

import re
from html import unescape

import pytest

from course import registry
from course.build.source import COLUMNS
from course.contents import ROOT, Chapter, written
from tests.course import chromium

# Goes through every slide with all its fragments shown and measures what is drawn. Bounds are in
# screen pixels, so everything is compared with the slide area's own bounds, scaled alike.
_MEASURE = """
const start = go => Reveal.isReady() ? go() : Reveal.on('ready', go);
start(() => setTimeout(() => {
  const slides = Reveal.getSlides(), found = [];
  const texts = [];
  for (const slide of slides) {
    const at = Reveal.getIndices(slide);
    Reveal.slide(at.h, at.v || 0, 1e3);
    const area = document.querySelector('.reveal .slides').getBoundingClientRect();
    const title = (slide.querySelector('h1,h2,h3') || slide).textContent.trim().slice(0, 40);
    texts.push(title);
    for (const element of slide.querySelectorAll('*')) {
      if (element.closest('aside.notes')) continue;
      const box = element.getBoundingClientRect();
      if (!box.width || !box.height) continue;
      const over = {
        right: box.right - area.right, bottom: box.bottom - area.bottom,
        left: area.left - box.left, top: area.top - box.top,
        inner: element.closest('svg, math') || element.tagName === 'IMG'
          ? 0 : element.scrollWidth - element.clientWidth
      };
      if (getComputedStyle(element).display.startsWith('inline')) over.inner = 0;
      const worst = Object.entries(over).sort((a, b) => b[1] - a[1])[0];
      if (worst[1] > 2) {
        found.push(`${title}: ${element.tagName}.${element.className} `
          + `${worst[0]} by ${Math.round(worst[1])}px`);
        break;
      }
    }
  }
  answer({
    slides: slides.length, found, texts, refused: window.refused,
    loaded: performance.getEntriesByType('resource').map(e => e.name)
      .filter(n => !n.startsWith('data:')),
    notes: typeof RevealNotes, math: document.querySelectorAll('math').length
  });
}, 200));
"""


def ids(chapter: Chapter) -> str:
    return chapter.stem


def slides_of(chapter: Chapter) -> str:
    return (ROOT / "slides" / f"{chapter.stem}.html").read_text(encoding="utf-8")


@pytest.mark.browser
@pytest.mark.parametrize("chapter", written(), ids=ids)
def test_slides_are_whole_and_ask_for_nothing(chapter: Chapter) -> None:
    chromium.find()
    seen = chromium.ask(slides_of(chapter), _MEASURE)
    assert seen["refused"] == []
    assert seen["loaded"] == []
    assert seen["found"] == [], "clipped:\n" + "\n".join(seen["found"])
    assert seen["slides"] >= 8, seen["texts"]
    assert seen["notes"] != "undefined"


@pytest.mark.browser
def test_a_clipped_slide_and_a_request_are_found() -> None:
    """The measurement itself can fail: a tall slide and a remote picture are both reported."""
    chromium.find()
    page = slides_of(written()[0])
    tall = '<div style="height:900px">tall</div><img src="https://example.invalid/a.png">'
    seen = chromium.ask(page.replace("</section>", tall + "</section>", 1), _MEASURE)
    assert any("bottom" in line for line in seen["found"])
    assert any("example.invalid" in line for line in seen["refused"])


@pytest.mark.parametrize("chapter", written(), ids=ids)
def test_slides_name_no_address_to_load(chapter: Chapter) -> None:
    page = slides_of(chapter)
    body = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    assert not re.search(r"""(src|href)\s*=\s*["'](https?:)?//""", body)
    assert "@import" not in page
    for picture in re.findall(r'<img [^>]*src="([^"]{0,20})', body):
        assert picture.startswith("data:image/")


@pytest.mark.parametrize("chapter", written(), ids=ids)
def test_code_lines_fit(chapter: Chapter) -> None:
    blocks = re.findall(r'<pre class="code"><code>(.*?)</code></pre>', slides_of(chapter), re.S)
    assert blocks
    from html import unescape

    for block in blocks:
        for line in unescape(re.sub(r"<[^>]+>", "", block)).splitlines():
            assert len(line) <= COLUMNS, line


@pytest.mark.parametrize("chapter", written(), ids=ids)
def test_no_reference_is_on_the_slides(chapter: Chapter) -> None:
    """What is homework is not shown to the class: neither beside the framework's own nor in a cell."""
    deck = (ROOT / "slides" / f"{chapter.stem}.html").read_text(encoding="utf-8")
    assert ">yours: " not in deck
    plain = unescape(re.sub(r"<[^>]+>", "", deck))
    for found in registry.of_chapter(chapter.number):
        body = [line.strip() for line in found.answer.source.splitlines()[1:]]
        telling = {line for line in body if len(line) > 30 and not line.startswith(('"""', "#"))}
        shown = {line for line in telling if line in plain}
        assert len(shown) <= len(telling) // 3, (found.name, shown)

"""Decks built from the sources, and what a browser says of every page of them.

A chapter is not run for this: its outputs are those of the solved notebook that is committed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from course.build import slides
from course.build.source import read
from course.contents import ROOT, Chapter
from tests.course.walk.devtools import Browser


def deck(chapter: Chapter) -> str:
    """The slides of a chapter as HTML."""
    cells = read(chapter)
    solution: Any = nbformat.read(  # type: ignore[no-untyped-call]
        ROOT / "solutions" / f"{chapter.stem}.ipynb", as_version=4
    )
    known = {cell.id: cell for cell in solution.cells}
    for cell in cells:
        if cell.is_code and cell.id in known:
            cell.outputs = known[cell.id].get("outputs", [])
    return slides.page(cells, chapter)


@dataclass
class Seen:
    """One page of a deck as it is drawn, in pixels of a page that is 720 high.

    Fields:
        code: sizes of code and of what it printed.
        letters: the smallest lettering of each picture.
        outside: what sticks out of the page, is cut off, or lies on the foot of the page.
        covered: what the page's number or the arrows lie on.
        last: the text of its last paragraph, if nothing comes below that.
    """

    number: int
    title: str
    code: list[float] = field(default_factory=list)
    letters: list[float] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    covered: list[str] = field(default_factory=list)
    notes: int = 0
    last: str = ""
    share: float = 0.0


@dataclass
class Deck:
    """All pages of a deck, and what it asked for."""

    pages: list[Seen]
    asked: list[str]
    complaints: list[str]
    ready: dict[str, Any]


def look_at(page: Browser, html: str, folder: Path) -> Deck:
    """Open a deck, go through all of its pages with everything on them shown, and measure."""
    file = folder / "deck.html"
    file.write_text(html, encoding="utf-8")
    page.complaints.clear()
    page.outside.clear()
    page.open(file.as_uri())
    page.until("document.readyState === 'complete' && window.Reveal && Reveal.isReady()")
    found = page.ask(_MEASURE)
    asked = [url for url in page.outside if url != file.as_uri()]
    return Deck(
        [Seen(**one) for one in found["pages"]], asked, list(page.complaints), found["ready"]
    )


_MEASURE = """
(async () => {
  const smallest = source => Math.min(...[...source.querySelectorAll('text')]
    .map(text => parseFloat(text.getAttribute('font-size'))));
  const letters = (element, box, scale) => {
    if (element.tagName === 'svg') return smallest(element) * element.getScreenCTM().a / scale;
    if (!element.naturalWidth) return 0;  // it could not be loaded
    const grown = box.width / element.naturalWidth / scale;
    if (!element.src.startsWith('data:image/svg')) return PLOT * grown;
    const text = atob(element.src.split(',')[1]);
    return smallest(new DOMParser().parseFromString(text, 'image/svg+xml')) * grown;
  };
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const pages = [];
  await Promise.all([...document.images].map(one => one.decode().catch(() => null)));
  for (const [at, slide] of Reveal.getSlides().entries()) {
    const place = Reveal.getIndices(slide);
    Reveal.slide(place.h, place.v || 0, 1e3);
    const area = document.querySelector('.reveal .slides').getBoundingClientRect();
    const scale = area.height / 720;
    const heading = slide.querySelector('h1, h2, h3');
    const said = slide.querySelector('aside.notes');
    const seen = {
      number: at + 1, title: heading ? heading.textContent.trim() : '',
      code: [], letters: [], outside: [], covered: [],
      notes: said ? said.textContent.trim().length : 0, last: '', share: 0
    };
    const foot = [...document.querySelectorAll('.slide-number, .controls button')]
      .filter(one => getComputedStyle(one).visibility !== 'hidden')
      .map(one => one.getBoundingClientRect()).filter(box => box.width);
    let low = area.top;
    for (const element of slide.querySelectorAll('*')) {
      if (element.closest('aside.notes') || element.classList.contains('page')) continue;
      if (element.closest('math') && element.tagName !== 'math') continue;
      const box = element.getBoundingClientRect();
      if (!box.width || !box.height) continue;
      const name = element.tagName + '.' + (element.className.baseVal ?? element.className);
      const inside = element.closest('svg') && element.tagName !== 'svg';
      if (element.tagName === 'PRE') seen.code.push(parseFloat(getComputedStyle(element).fontSize));
      if (element.tagName === 'svg' || element.tagName === 'IMG')
        seen.letters.push(letters(element, box, scale));
      if (inside) continue;
      low = Math.max(low, box.bottom);
      const over = {
        right: box.right - area.right + 35 * scale, left: area.left + 35 * scale - box.left,
        bottom: box.bottom - area.bottom + (slide.classList.contains('title') ? 0 : 43 * scale),
        top: area.top - box.top,
        inner: getComputedStyle(element).display.startsWith('inline') || element.closest('math')
          || element.tagName === 'IMG' || element.tagName === 'svg'
          ? 0 : element.scrollWidth - element.clientWidth
      };
      const [side, by] = Object.entries(over).sort((a, b) => b[1] - a[1])[0];
      if (by > 2) seen.outside.push(`${name} ${side} by ${Math.round(by)}px`);
      if (foot.some(one => meet(one, box))) seen.covered.push(name);
    }
    const shown = [...slide.querySelectorAll('p, li, pre, table, svg, img, canvas, button')]
      .filter(one => !one.closest('aside.notes') && one.getBoundingClientRect().height);
    const end = shown.pop();
    if (end && (end.tagName === 'P' || end.tagName === 'LI')) seen.last = end.textContent.trim();
    seen.share = (low - area.top) / area.height;
    pages.push(seen);
  }
  const loaded = performance.getEntriesByType('resource').map(one => one.name);
  return {pages, ready: {
    notes: typeof RevealNotes, loaded: loaded.filter(name => !name.startsWith('data:'))
  }};
})()
""".replace("PLOT", "12.2")

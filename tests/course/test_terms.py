"""The glossary and the index of pictures: what they name is there."""

from __future__ import annotations

import base64
import importlib
import re
import struct
from functools import reduce
from typing import Any

import pytest

from course import gallery
from course.contents import ROOT, written
from course.terms import Term, glossary, terms

every = pytest.mark.parametrize("entry", terms(), ids=lambda entry: entry.term)


@every
def test_chapter_file_and_name_exist(entry: Term) -> None:
    assert entry.chapter.written
    text = (ROOT / entry.file).read_text(encoding="utf-8")
    assert re.search(rf"\b{re.escape(entry.name)}\b", text), f"{entry.name} is not in {entry.file}"
    assert entry.meaning.endswith(".")
    assert len(entry.meaning) < 120


@every
def test_the_counterpart_is_in_pytorch(entry: Term) -> None:
    package, *names = entry.pytorch.split(".")
    library: Any = pytest.importorskip(package)
    for depth in range(1, len(names)):  # submodules that the package does not import by itself
        try:
            importlib.import_module(".".join([package, *names[:depth]]))
        except ImportError:
            break
    reduce(getattr, names, library)


def test_terms_are_found_and_suggested() -> None:
    assert "toytorch/facts/size.py" in repr(glossary("Stride"))
    assert 'href="02_memory.ipynb"' in glossary("stride")._repr_html_()
    assert repr(glossary()).count("\n") == 2 * len(terms()) - 1
    with pytest.raises(LookupError, match="stride"):
        glossary("strid")


def test_every_chapter_has_terms_and_pictures() -> None:
    for chapter in written():
        assert any(entry.chapter == chapter for entry in terms()), chapter.stem
        assert sum(shown.chapter == chapter for shown in gallery.index()) >= 2, chapter.stem


def test_pictures_link_to_their_sections() -> None:
    page = gallery.pictures()._repr_html_()
    for chapter in written():
        assert f'href="{chapter.stem}.ipynb#' in page
    assert " at 0x" not in repr(gallery.pictures())


def test_pictures_are_shown_small() -> None:
    """A thumbnail for each, all of them together no heavier than a few large plots."""
    page = gallery.pictures()._repr_html_()
    small = re.findall(r'<img alt="[^"]+" src="data:image/png;base64,([^"]+)"', page)
    assert len(small) == len(gallery.index())
    assert len(page) < 1_500_000
    for coded in small:
        wide, high = struct.unpack(">II", base64.b64decode(coded)[16:24])
        assert 40 < wide <= gallery.SMALL[0]
        assert 10 < high <= gallery.SMALL[1]

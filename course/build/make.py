"""Build chapters: all three files of each, or a comparison with the files that are there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.build import notebooks, slides
from course.build.source import Cell, read
from course.build.start import start_page
from course.contents import ROOT, Chapter
from course.files import write_atomically

_PNG = re.compile(r'(data:image/png;base64,|"image/png": ")[A-Za-z0-9+/=\\n]+')


@dataclass(frozen=True)
class Built:
    """The three texts made from one chapter."""

    chapter: Chapter
    notebook: str
    solution: str
    slides: str

    @property
    def files(self) -> dict[str, str]:
        """Text by path below the output folder."""
        return {
            f"notebooks/{self.chapter.stem}.ipynb": self.notebook,
            f"solutions/{self.chapter.stem}.ipynb": self.solution,
            f"slides/{self.chapter.stem}.html": self.slides,
        }


def build(
    chapter: Chapter,
    *,
    before: Path = ROOT,
    progress: notebooks.Progress | None = None,
) -> Built:
    """Build a chapter in memory; its solved notebook is executed.

    Args:
        chapter: what to build.
        before: where an earlier build lies. Cells marked ``varies`` keep the output they had
            there as long as their source is the same, so that a rebuild gives the same bytes.
        progress: called with (number, of how many, cell) before each code cell runs.
    """
    cells = read(chapter)
    notebooks.execute(cells, progress=progress)
    return written(chapter, cells, before)


def written(chapter: Chapter, cells: list[Cell], before: Path = ROOT) -> Built:
    """The texts of a chapter whose cells have their outputs."""
    _keep_varying(cells, before / "solutions" / f"{chapter.stem}.ipynb")
    return Built(
        chapter,
        notebooks.text(notebooks.untouched(cells, chapter.number)),
        notebooks.text(notebooks.solved(cells, chapter.number)),
        slides.page(cells, chapter),
    )


def save(files: dict[str, str], folder: Path = ROOT) -> None:
    """Write built files; each appears whole or not at all."""
    for name, text in files.items():
        write_atomically(folder / name, text.encode())


def start_files() -> dict[str, str]:
    """The start page, which lists all chapters."""
    return {"notebooks/00_start.ipynb": notebooks.text(start_page())}


def in_step(files: dict[str, str], folder: Path = ROOT) -> list[str]:
    """The names among ``files`` that differ on disk from what was built.

    The pixels of PNG pictures are left out: they differ between versions of matplotlib.
    """
    return [name for name, text in files.items() if _comparable(text) != _on_disk(folder / name)]


def _on_disk(path: Path) -> str | None:
    return _comparable(path.read_text(encoding="utf-8")) if path.exists() else None


def _comparable(text: str) -> str:
    return _PNG.sub(r"\1…", text)


def _keep_varying(cells: list[Cell], earlier: Path) -> None:
    if not any(cell.varies for cell in cells) or not earlier.exists():
        return
    import nbformat

    old: dict[str, Any] = {c.id: c for c in nbformat.read(earlier, as_version=4).cells}
    for cell in cells:
        known = old.get(cell.id)
        if cell.varies and known is not None and known.source == cell.solved and known.outputs:
            cell.outputs = known.outputs

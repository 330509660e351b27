"""Building: the same bytes again, in step with what is committed, clear errors for authors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from course.build import make, notebooks, slides
from course.build.source import SourceError, parse, read
from course.contents import CHAPTERS, ROOT, Chapter, find, written

every = pytest.mark.parametrize("chapter", written(), ids=lambda chapter: chapter.stem)


SHOWN = re.compile(r"<svg.*?</svg>", re.S)


def pictures(path: Path) -> Iterator[str]:
    """The SVG pictures of a built file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        outputs = [o for cell in json.loads(text)["cells"] for o in cell.get("outputs", [])]
        datas = [output.get("data", {}) for output in outputs]
        text = "".join("".join(d.get(k, "")) for d in datas for k in ("image/svg+xml", "text/html"))
    yield from SHOWN.findall(text)


@pytest.mark.parametrize("folder", ["notebooks", "solutions", "slides"])
def test_pictures_hold_no_more_digits_than_they_show(folder: str) -> None:
    """Coordinates have two decimals, what is written six digits."""
    count = 0
    for path in sorted((ROOT / folder).iterdir()):
        for picture in pictures(path) if path.suffix in (".ipynb", ".html") else ():
            count += 1
            for tag in re.findall(r"<[^>]*>", picture):
                tag = re.sub(r'aria-label="[^"]*"', "", tag)  # is read aloud: with what is written
                assert not re.search(r"\d\.\d{3,}", tag), f"{path.name}: {tag[:200]}"
            spoken = re.findall(r'aria-label="([^"]*)"', picture)
            written = re.sub(r"<[^>]*>", " ", picture) + " ".join(spoken)
            for number in re.findall(r"\d+\.\d+", written):
                assert len(number.replace(".", "").lstrip("0")) <= 6, f"{path.name}: {number}"
    assert count >= 10


def test_start_page_is_in_step() -> None:
    assert make.in_step(make.start_files()) == []


def test_out_of_step_is_noticed(tmp_path: Path) -> None:
    files = make.start_files()
    make.save(files, tmp_path)
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert left == ["00_start.ipynb"], "half-written files stay behind"
    assert make.in_step(files, tmp_path) == []
    path = tmp_path / "notebooks" / "00_start.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace("Welcome", "Hello"), encoding="utf-8")
    assert make.in_step(files, tmp_path) == ["notebooks/00_start.ipynb"]
    path.unlink()
    assert make.in_step(files, tmp_path) == ["notebooks/00_start.ipynb"]


@every
def test_the_anatomy_is_complete(chapter: Chapter) -> None:
    """The eight sections of a chapter, in their order."""
    prose = "\n".join(cell.solved.lower() for cell in read(chapter) if cell.role == "prose")
    sections = ["question", "play", "build", "plug in", "look inside", "measure", "trap", "beyond"]
    missing = [section for section in sections if section not in prose]
    assert not missing
    headings = [prose.find(f"## {word}") for word in ("play", "build", "plug in", "look inside")]
    assert headings == sorted(headings)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('# %% exercize="tensors.shape"\n', "unknown"),
        ('# %% exercise="tensors.shapes"\n', "did you mean"),
        ('# %% slide="slid"\nx = 1\n', "known are slide"),
        ("# %%\nx = '" + "y" * 80 + "'\n", "75 columns"),
        ("# %% [markdown] folded=true\n# text\n", "<details>"),
    ],
)
def test_a_source_that_cannot_be_built_says_where(source: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        parse(source, "a chapter")


def test_solution_regions() -> None:
    (cell,) = parse(
        "# %%\ndef f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION\n", "x"
    )
    assert cell.student == "def f(x):\n    # your code here"
    assert cell.solved == "def f(x):\n    return x"


def test_folded_code_is_hidden_in_notebooks_and_not_on_slides() -> None:
    cells = parse('# %% folded=true slide="slide"\nplot(1)\n\n# %% slide="more"\nidea(2)\n', "x")
    for notebook in (notebooks.solved(cells, 1), notebooks.untouched(cells, 1)):
        folded, plain = (cell.metadata for cell in notebook.cells)
        assert folded.jupyter.source_hidden is True
        assert "jupyter" not in plain
    page = slides.page(cells, find(1))
    assert "idea" in page
    assert "plot" not in page.split("<body>")[1].split("<script>")[0]


def test_cell_ids_do_not_move() -> None:
    one = parse("# %%\na = 1\n\n# %%\nb = 2\n", "x")
    two = parse("# %%\nc = 0\n\n# %%\na = 1\n\n# %%\nb = 2\n\n# %%\nb = 2\n", "x")
    assert [c.id for c in one] == [c.id for c in two][1:3]
    assert len({c.id for c in two}) == 4


def test_chapters_are_found_by_number_and_name() -> None:
    assert len(CHAPTERS) == 20
    for name in ("4", "04", 4, "autograd", "04_autograd", "notebooks/04_autograd.ipynb"):
        assert find(name).number == 4
    with pytest.raises(LookupError, match="from 01 to 20"):
        find("44")


def test_every_source_belongs_to_a_chapter() -> None:
    known = {chapter.source for chapter in CHAPTERS}
    assert set((ROOT / "course" / "chapters").glob("*.py")) <= known

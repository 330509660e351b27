"""The whole course is marked as a lecturer does it: solved notebooks, untouched ones, odd ones."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from course import registry
from course.cli import main
from course.contents import ROOT, written
from course.marking import known
from course.marking.supervisor import Result
from course.records import Exercise
from tests.course import classroom

NAMES = [one.name for chapter in written() for one in registry.of_chapter(chapter.number)]


def marked(folder: Path, *options: str) -> tuple[int, list[dict[str, str]]]:
    """What ``course grade`` returns for a folder, and the rows of its table."""
    table = folder.with_suffix(".csv")
    status = main(["grade", str(folder), "--csv", str(table), *options])
    with table.open(encoding="utf-8-sig", newline="") as file:
        return status, list(csv.DictReader(file))


@pytest.mark.slow
def test_solved_notebooks_get_all_points_and_untouched_ones_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every reference of every chapter passes behind the barriers."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing is known from earlier markings
    for student, place in (("ada", "solutions"), ("bob", "notebooks")):
        for chapter in written():
            target = tmp_path / "class" / student / f"{chapter.stem}.ipynb"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / place / f"{chapter.stem}.ipynb", target)
    status, rows = marked(tmp_path / "class")
    assert status == 0
    ada = [row for row in rows if row["student"] == "ada"]
    assert [row["exercise"] for row in ada] == NAMES
    assert [row["exercise"] for row in ada if row["verdict"] != "green"] == []
    worth = [(row["of"], row["extra"]) for row in ada]
    optional = {name for name in NAMES if registry.exercise(name).optional}
    assert {row["exercise"] for row in ada if float(row["extra"])} == optional
    assert [row["points"] for row in ada] == [extra if of == "0" else of for of, extra in worth]
    assert min(float(row["points"]) for row in ada) > 0
    bob = [row for row in rows if row["student"] == "bob"]
    assert [row["exercise"] for row in bob] == NAMES
    assert {(row["verdict"], row["points"]) for row in bob} == {("open", "0")}


# What an honest answer may call: many small operations, large ones, and every kind that has
# compiled kernels, each for the first time in its process.
BUSY = """
def busy():
    import toytorch as torch
    from toytorch import nn
    import toytorch.nn.functional as F

    small = torch.ones(3)
    for _ in range(1000):
        small = small + 1 - 1
        small = small * 2 / 2
    for dtype in (torch.float32, torch.float64):
        big = torch.rand(1 << 19, dtype=dtype)
        for made in (big + big, big - 0.5, big * big, big / 2, big.exp(), big.tanh(), big.sum(),
                     big.sigmoid().mean(), F.gelu(big), F.relu(big), big.view(512, 1024).sum(0),
                     big.view(512, 1024).softmax(1), big.view(512, 1024).log_softmax(0),
                     big.view(512, 1024).sum(1), big.view(512, 1024).max(1).values, big.cumsum(0)):
            assert made.isfinite().all()
        for n in (1, 2, 7, 16, 33, 64, 128, 257):
            a = torch.rand(n, n + 1, dtype=dtype)
            assert (a @ a.T).shape == (n, n)
            assert torch.bmm(a.expand(3, n, n + 1), a.T.expand(3, n + 1, n)).shape == (3, n, n)
        images = torch.rand(4, 3, 28, 28, dtype=dtype, requires_grad=True)
        net = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 5, stride=2), nn.GELU(), nn.AvgPool2d(2), nn.Flatten(),
            nn.Linear(128, 64), nn.LayerNorm(64), nn.Dropout(0.5), nn.Linear(64, 10),
        ).to(dtype)
        for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop,
                     torch.optim.Adagrad, torch.optim.LBFGS):
            optimizer = kind(net.parameters(), lr=1e-3)

            def closure():
                optimizer.zero_grad()
                loss = F.cross_entropy(net(images), torch.arange(4))
                loss.backward()
                return loss

            optimizer.step(closure)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        rows, _ = nn.LSTM(8, 64, batch_first=True).to(dtype)(torch.rand(32, 5, 8, dtype=dtype))
        rows = nn.MultiheadAttention(64, 4, batch_first=True).to(dtype)(rows, rows, rows)[0]
        table = nn.Embedding(1000, 64).to(dtype)
        (table(torch.arange(1000)).sum() + rows.sum()).backward()
    torch.set_num_threads(torch.get_num_threads())
    assert big.data_ptr() and torch.from_numpy(big.numpy()).data_ptr() == big.data_ptr()
    compiled = torch.compile(lambda x: (x * 2 + 1).tanh().sum())
    assert compiled(big).isfinite() and torch.jit.script(doubled)(big).isfinite().all()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(big), batch_size=1 << 16)
    assert sum(len(batch[0]) for batch in loader) == len(big)
    torch.save(net.state_dict(), "net.pt")
    net.load_state_dict(torch.load("net.pt"))


def doubled(x):
    return x + x


calls = []


def {function}(*args):
    if not calls:
        busy()
    calls.append(args)
    return honest(*args)
"""


@pytest.mark.slow
def test_an_answer_may_call_whatever_the_framework_has(tmp_path: Path) -> None:
    chapter = written()[0]
    found = registry.of_chapter(chapter.number)[0]

    def busy(one: Exercise, number: int) -> str:
        if one is not found:
            return one.start.source
        honest = one.answer.source.replace(f"{one.function}(", "honest(")
        return honest + "\n\n" + BUSY.replace("{function}", one.function)

    classroom.hand_in(chapter, busy, tmp_path / "class" / "ada" / f"{chapter.stem}.ipynb")
    status, rows = marked(tmp_path / "class")
    assert status == 0
    assert rows[0]["verdict"] == "green", rows[0]["reason"]


@pytest.mark.slow
def test_where_one_reference_fails_the_rest_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broken installation is not the students' fault, and costs what it breaks only."""
    chapter = written()[0]
    broken, *whole = registry.of_chapter(chapter.number)
    wrong = ["a check", "error", "an input", "1", "OSError: no such library", ""]
    real = known.reference

    def reference(found: Exercise) -> Result:
        return Result([wrong]) if found is broken else real(found)

    monkeypatch.setattr(known, "reference", reference)
    for student in ("ada", "bob"):
        target = tmp_path / "class" / student / f"{chapter.stem}.ipynb"
        classroom.hand_in(chapter, classroom.right, target)
    status, rows = marked(tmp_path / "class", "--feedback", str(tmp_path / "pages"))
    assert status == 1
    kinds = {one.name: "green" for one in whole} | {broken.name: "unmarked"}
    for student in ("ada", "bob"):
        own = {row["exercise"]: row["verdict"] for row in rows if row["student"] == student}
        assert own == kinds
        assert "no such library" in (tmp_path / "pages" / f"{student}.html").read_text("utf-8")
    said = capsys.readouterr().err
    assert said.count(f"{broken.name}: ") == 1
    assert "no such library" in said


HONEST = [
    "ways = {{}}\nways['it'] = honest\n\ndef {function}(*args):\n    return ways['it'](*args)",
    "from math import *\n\ndef {function}(*args):\n    return floor(pi) and honest(*args)",
    "try:\n    import numpy as np\nexcept ImportError:\n    np = None\n\n"
    "def {function}(*args):\n    return np and honest(*args)",
    "ways = []\nfor one in (honest, len):\n    ways.append(one)\nprint(1 / 0)\n\n"
    "def {function}(*args):\n    return ways[0](*args)",
    "from __future__ import annotations\n\ndef {function}(*args: Unknown) -> Nothing:\n"
    "    display(args)\n    return honest(*args)",
    "ways = {{}}\ndef way(g):\n    ways[0] = g\n    return g\n\nway(honest)\n\n"
    "def {function}(*args):\n    return ways[0](*args)",
]


@pytest.mark.slow
def test_honest_answers_of_every_form_get_all_points(tmp_path: Path) -> None:
    chapter = written()[0]
    used: set[str] = set()

    def formed(one: Exercise, number: int) -> str:
        if "class " in one.answer.source:
            return one.answer.source  # the forms are those of functions
        honest = one.answer.source.replace(f"{one.function}(", "honest(")
        form = HONEST[number % len(HONEST)]
        used.add(form)
        return honest + "\n\n\n" + form.format(function=one.function)

    def turned(one: Exercise, number: int) -> str:
        return formed(one, number + 1)

    exercises = registry.of_chapter(chapter.number)
    for student, answers in (("ada", formed), ("bob", turned)):
        target = tmp_path / "class" / student / f"{chapter.stem}.ipynb"
        classroom.hand_in(chapter, answers, target)
    assert used == set(HONEST)
    status, rows = marked(tmp_path / "class")
    assert status == 0
    assert len(rows) == 2 * len(exercises)
    assert [(row["verdict"], row["points"]) for row in rows] == [
        ("green", row["of"]) for row in rows
    ], [row["reason"] for row in rows]

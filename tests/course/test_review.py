"""Review questions: ten a chapter, answers folded, two that look back, every output true."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass

import numpy as np
import pytest

from course.build.source import read
from course.contents import Chapter, find, written

PENDING = (6, 7, 8, 9, 10, 19)  # chapters whose questions are still to be written

COUNT, LOOKING_BACK = 10, 2
BACK = {19: 10}  # the capstone looks back at the last chapter of its part, others two chapters

_QUESTION = re.compile(
    r"\*\*(\d+)\.\*\* (?:\*Chapter (\d\d)\.\* )?(.*?)\n\n"
    r"<details><summary>Answer</summary>\n\n(.*?)\n\n</details>",
    re.S,
)


@dataclass(frozen=True)
class Question:
    """``code`` is run and prints ``output``; both are empty where a question has no code."""

    chapter: Chapter
    number: int
    back: int
    text: str
    code: str
    output: str
    answer: str


def questions(chapter: Chapter) -> list[Question]:
    """The review questions of a chapter, in their order."""
    cells = [cell for cell in read(chapter) if cell.solved.startswith("## Review\n")]
    assert len(cells) <= 1
    found = []
    for number, back, text, answer in _QUESTION.findall(cells[0].solved if cells else ""):
        code, output = _block(text, "python"), _block(answer, "text")
        found.append(Question(chapter, int(number), int(back or 0), text, code, output, answer))
    return found


def _block(text: str, language: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)\n```", text, re.S)
    assert len(blocks) <= 1
    return blocks[0] if blocks else ""


DONE = [chapter for chapter in written() if chapter.number not in PENDING]
EVERY = [question for chapter in DONE for question in questions(chapter)]
every_chapter = pytest.mark.parametrize("chapter", DONE, ids=lambda chapter: chapter.stem)


@every_chapter
def test_ten_questions_two_of_which_look_back(chapter: Chapter) -> None:
    found = questions(chapter)
    assert [question.number for question in found] == list(range(1, COUNT + 1))
    (cell,) = (cell for cell in read(chapter) if cell.solved.startswith("## Review\n"))
    assert cell.solved.count("<details>") == COUNT, "every question has a folded answer"
    assert not cell.slide, "the questions are for the notebook"
    cells = [c for c in read(chapter) if c.role == "prose" and c.slide != "notes"]
    headings = [cell.solved.split("\n")[0] for cell in cells]
    after = [heading for heading in headings[headings.index("## Review") + 1 :] if heading]
    assert all(heading.startswith("## Beyond") for heading in after), "it is near the end"
    earlier = BACK.get(chapter.number, chapter.number - 2)
    looking_back = [question.back for question in found if question.back]
    assert looking_back == ([earlier] * LOOKING_BACK if earlier >= 1 else [])


@every_chapter
def test_answers_explain(chapter: Chapter) -> None:
    """Two to six sentences after the output."""
    for question in questions(chapter):
        said = re.sub(r"```.*?```", "", question.answer, flags=re.S)
        sentences = re.findall(r"[.?!:)](?:\s|$)", re.sub(r"`[^`]*`", "x", said))
        assert 2 <= len(sentences) <= 7, f"{chapter.stem}, question {question.number}"
        assert bool(question.code) == bool(question.output), "what is run prints something"


def test_pending_chapters_have_none_yet() -> None:
    """Take a chapter out of PENDING when its questions are written."""
    for number in PENDING:
        assert not questions(find(number)), f"chapter {number:02d} is no longer pending"


@pytest.mark.parametrize("library", ["toytorch", "torch"])
@pytest.mark.parametrize(
    "question",
    [question for question in EVERY if question.code],
    ids=lambda question: f"{question.chapter.stem}-{question.number}",
)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_code_prints_what_the_answer_says(question: Question, library: str) -> None:
    """In toytorch and in PyTorch. An error that is meant is the last line, by its type."""
    torch = pytest.importorskip(library)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            exec(question.code, {"torch": torch, "np": np})
        except Exception as error:
            print(type(error).__name__)
    assert said.getvalue().rstrip("\n") == question.output

"""Private words: the course says what the field says.

Each word below once meant something in our prose that the field calls otherwise. None may occur in
a chapter, a prompt, a hint, an explanation or a comment or docstring that a learner sees, except in
the everyday uses listed beside it.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from course import registry
from course.build.source import read
from course.contents import written


@dataclass(frozen=True)
class Word:
    """A private word, what to say instead, and the uses in which it is plain English."""

    name: str
    pattern: str
    standard: str
    uses: tuple[str, ...] = ()


_THING = (
    "(?:CODE|tensor|view|base|row|column|memory|storage|table|batch|parameter|result|vector|matrix|"
    "weight|image|bias|mask|[b-z])s?"
)

WORDS = (
    Word(
        "way",
        r"ways?",
        "a path through a graph; the forward or the backward pass",
        (
            r"the other way (?:round|around)",
            r"(?:half|under) way",
            r"(?:this|either|another|same|usual|good) way",
            r"way to (?!it\b|the\b|them\b)\w+",
            r"way of \w+ing",
            r"in (?:two|three|four) ways",
            r"way around do you",  # which way around do you have to ask?
            r"wrong way(?: round)?",
            r"which way (?:is down|to step)",
            r"(?:two|three) ways to \w+",
        ),
    ),
    Word("number", r"(?:old|new) numbers", "values, elements"),
    Word(
        "number", r"(?:its|their|all) numbers|(?:every|each) number", "its elements, all elements"
    ),
    Word(
        "number",
        rf"numbers (?:of|in|under|outside|behind) (?:the |a |its |this |their |old |new )?{_THING}",
        "the elements of a tensor",
    ),
    Word(
        "number",
        r"(?:ten|twelve|thousand|million|billion|\d+) (?:of )?numbers",
        "a million elements, or parameters",
    ),
    Word("door", r"doors?", "an argument, a hook, an injection point"),
    Word("piece", r"pieces?", "a function, a class, an exercise, a part"),
    Word(
        "slope",
        r"slopes?",
        "derivative",
        (r"chord's slope", r"as its slope"),  # of a straight line in a picture
    ),
    Word("dice", r"dice|die", "random numbers, a random generator"),
    Word(
        "against",
        r"against",
        "compared with",
        (r"[Ss]teps? against the gradient", r"broadcasts? against"),
    ),
    Word("card", r"cards?", "a panel, a record"),
    Word("board", r"boards?", "a dashboard; a lecturer's is a whiteboard"),
    Word("team", r"teams?", "a group of threads"),
    Word("strip", r"strips?", "a tile, a block of rows"),
    Word("gate", r"gates?", "a check, a condition"),
    Word("witness", r"witness\w*", "a reference, a recorded value"),
    Word("account", r"accounts?", "a running average"),
    Word(
        "stand-in", r"stand-?ins?|stands? in(?: for)?(?=[ ,.)](?:if|for|$)|[,.)])", "a replacement"
    ),
    Word("truth", r"truths?", "a boolean", (r"truth value",)),
    Word("world", r"worlds?", "memory, the data, divergence"),
    Word("brake", r"brakes?", "a step that is made smaller"),
    Word("bend", r"bends?|bent", "a nonlinear function is applied", (r"the curve bends",)),
    Word("house", r"houses?", "PyTorch's source"),
)


# -- what a learner reads -------------------------------------------------------------------------


def remarks(code: str) -> str:
    """The comments and docstrings of a cell."""
    found = [
        token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(code + "\n").readline)
        if token.type == tokenize.COMMENT
    ]
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(ast.get_docstring(node) or "")
    return "\n".join(found)


def readable() -> Iterator[tuple[str, str]]:
    """Everything in prose: (where it stands, the text)."""
    for chapter in written():
        for cell in read(chapter):
            if cell.role in ("prose", "code"):
                text = cell.solved if cell.role == "prose" else remarks(cell.solved)
                yield f"{chapter.stem} {cell.id}", text
    for found in registry.all_exercises().values():
        yield f"{found.name}, title", found.title
        yield f"{found.name}, prompt", found.prompt
        for grade, hint in enumerate(found.hints, start=1):
            yield f"{found.name}, hint {grade}", hint
        for mutant in found.mutants:
            yield f"{found.name}, {mutant.label!r}", f"{mutant.label}. {mutant.why}"
        for variant in (found.start, found.answer):
            yield f"{found.name}, {variant.kind}", remarks(variant.source)
        for check in found.checks:
            yield f"{found.name}, a check's title", check.title


def prose(text: str) -> str:
    """A text on one line; code and formulas are replaced by CODE."""
    text = re.sub(r"```.*?```", " CODE ", text, flags=re.S)
    text = re.sub(r"`[^`]*`|\$\$.*?\$\$|\$[^$\n]+\$", "CODE", text, flags=re.S)
    return " ".join(re.sub(r"</?\w+>|[*_]{1,2}(?=\w)|(?<=\w)[*_]{1,2}", "", text).split())


def private(word: Word, text: str) -> list[str]:
    """The places of a text where a word is used in its private sense."""
    allowed = [span.span() for use in word.uses for span in re.finditer(use, text, re.I)]
    return [
        text[max(0, match.start() - 40) : match.end() + 30]
        for match in re.finditer(rf"\b(?:{word.pattern})\b", text, re.I)
        if not any(begin <= match.start() and match.end() <= end for begin, end in allowed)
    ]


@pytest.fixture(scope="module")
def texts() -> list[tuple[str, str]]:
    return [(place, prose(text)) for place, text in readable()]


def test_no_private_word(texts: list[tuple[str, str]]) -> None:
    """Each line of the failure says where, which words, and what to say instead."""
    found = [
        f"{place}: … {where} …\n    say: {word.standard}"
        for word in WORDS
        for place, text in texts
        for where in private(word, text)
    ]
    assert not found, f"{len(found)} private words\n" + "\n".join(found)


def test_every_listed_use_occurs(texts: list[tuple[str, str]]) -> None:
    """An exception that nothing needs any more would let a private word in again."""
    idle = [
        f"{word.name}: {use}"
        for word in WORDS
        for use in word.uses
        if not any(re.search(use, text, re.I) for _, text in texts)
    ]
    assert not idle


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("Each way from a tensor to the loss sends a gradient of its own.", "way"),
        ("There are 2⁶⁰ ways through 60 nodes.", "way"),
        ("After `fill_` it is 0, for the old numbers are gone.", "number"),
        ("Multiply **all** numbers of `y`.", "number"),
        ("It is the slope of a square root at 0.", "slope"),
        ("The draft is held against the reference.", "against"),
        ("Train, on your pieces.", "piece"),
        ("The course's stands in if you have not written it.", "stand-in"),
        ("Descent is thrown out of the world.", "world"),
        ("The optimizer keeps an account.", "account"),
    ],
)
def test_old_sentences_would_be_found(sentence: str, name: str) -> None:
    assert name in {word.name for word in WORDS if private(word, prose(sentence))}


def test_everyday_uses_pass() -> None:
    for sentence in (
        "It is the other way round, and code is left out: `way[0]`.",
        "Random numbers are there to make the units differ.",
        "Steps against the gradient.",
    ):
        assert not [word.name for word in WORDS if private(word, prose(sentence))]

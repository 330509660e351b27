"""Answers that are closer to each other than the exercise explains.

Answers to one question resemble each other. What they share with the chapter's own text, the stub,
the reference or a hint says nothing, and neither does what half of the class has written. What is
left of each answer is compared: runs of tokens, without the names, comments and layout that are
changed first in a copy. It says where to look, not what happened.
"""

from __future__ import annotations

import difflib
import functools
import io
import itertools
import keyword
import re
import token
import tokenize
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from course import registry
from course.build.source import read
from course.contents import CHAPTERS
from course.marking.grade import Judged
from course.marking.pages import page

_LENGTH = 8  # tokens of a run
_LEAST = 12  # runs that two answers must share; fewer are chance
_CLOSE = 0.6  # of the runs of the answer that has fewer
_COMMON = 0.5  # runs that more than this share of the class has, of six or more, are nobody's
_MOST = 200  # pairs on a page
_SILENT = {token.ENCODING, token.ENDMARKER, tokenize.COMMENT, tokenize.NL}
_BLOCK = re.compile(r"```[^\n]*\n(.*?)```", re.S)
Run = tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """Two answers to one exercise, and the share of unexplained runs that they have in common."""

    exercise: str
    first: Judged
    second: Judged
    share: float
    runs: int


def tokens(source: str) -> list[str]:
    """The tokens of a text; names are all alike, but for keywords and attributes."""
    found: list[str] = []
    try:
        for one in tokenize.generate_tokens(io.StringIO(source).readline):
            if one.type in _SILENT:
                continue
            if one.type == token.NAME and not keyword.iskeyword(one.string):
                found.append(one.string if found[-1:] == ["."] else "name")
            elif one.type == token.STRING:
                found.append("text")
            elif one.type in (token.NEWLINE, token.INDENT, token.DEDENT):
                found.append(token.tok_name[one.type])
            else:
                found.append(one.string)
    except (tokenize.TokenError, SyntaxError):  # what was read up to there
        pass
    return found


def runs(source: str) -> set[Run]:
    """All runs of tokens of a text."""
    found = tokens(source)
    return {tuple(found[n : n + _LENGTH]) for n in range(len(found) - _LENGTH + 1)}


@functools.cache
def explained(exercise: str) -> frozenset[Run]:
    """The runs that an answer may have from the course: its chapter, its hints, its reference."""
    found = registry.exercise(exercise)
    chapter = next(one for one in CHAPTERS if one.number == found.chapter)
    texts = [found.answer.source, found.start.source]
    texts += [cell.student for cell in read(chapter) if cell.is_code]
    for words in (found.prompt, *found.hints):
        texts += _BLOCK.findall(words)
    return frozenset(itertools.chain.from_iterable(map(runs, texts)))


def similar(judged: Iterable[Judged]) -> list[Pair]:
    """The pairs to look at, the closest first."""
    by_exercise: dict[str, list[Judged]] = {}
    for one in judged:
        if one.code and one.mark.verdict != "open":
            by_exercise.setdefault(one.mark.exercise, []).append(one)
    pairs = [pair for name, own in by_exercise.items() for pair in _pairs(name, own)]
    return sorted(pairs, key=lambda pair: (-pair.share, -pair.runs))


def _pairs(exercise: str, own: list[Judged]) -> list[Pair]:
    every = [runs(one.code) - explained(exercise) for one in own]
    often = Counter(itertools.chain.from_iterable(every))
    if len(own) >= 6:
        common = {run for run, count in often.items() if count > _COMMON * len(own)}
        every = [each - common for each in every]
    who: dict[Run, list[int]] = {}
    for place, each in enumerate(every):
        for run in each:
            who.setdefault(run, []).append(place)
    shared: Counter[tuple[int, int]] = Counter()
    for places in who.values():
        shared.update(itertools.combinations(places, 2))
    pairs = []
    for (a, b), count in shared.items():
        share = count / min(len(every[a]), len(every[b]))
        if count >= _LEAST and share >= _CLOSE and own[a].mark.student != own[b].mark.student:
            pairs.append(Pair(exercise, own[a], own[b], share, count))
    return pairs


_STYLE = """
.pair{display:grid;grid-template-columns:1fr 1fr;gap:1em}
.pair pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}.pair span{display:block;min-height:1.5em}
.same{background:rgba(201,138,18,.25)}
"""


def report(pairs: Sequence[Pair]) -> str:
    """The pairs as a page, side by side; lines that read alike without names are marked."""
    body = [
        "<h1>Similar answers</h1><p>Pairs of answers that share more than the chapter, its hints "
        "and the reference explain. Names, comments and layout are not compared. Students may have "
        "worked together or read the same source: look, and ask.</p>"
    ]
    if not pairs:
        body.append("<p>There are none.</p>")
    for pair in pairs[:_MOST]:
        first, second = pair.first, pair.second
        left, right = _marked(first.code, second.code)
        same = ", letter by letter the same" if first.code == second.code else ""
        body.append(
            f"<h2>{escape(first.mark.student)} and {escape(second.mark.student)} · "
            f"<code>{escape(pair.exercise)}</code> · {100 * pair.share:.0f} % in common{same}</h2>"
            f'<div class="pair"><pre>{left}</pre><pre>{right}</pre></div>'
        )
    if len(pairs) > _MOST:
        body.append(f"<p>And {len(pairs) - _MOST} more that are less close.</p>")
    return page("Similar answers", "".join(body), _STYLE)


def _marked(first: str, second: str) -> tuple[str, str]:
    """The lines of two texts as HTML; those that correspond are marked."""
    texts = [first.split("\n"), second.split("\n")]
    plain = [[" ".join(_line(line)) for line in lines] for lines in texts]
    same: list[set[int]] = [set(), set()]
    matcher = difflib.SequenceMatcher(None, plain[0], plain[1], autojunk=False)
    for block in matcher.get_matching_blocks():
        for n in range(block.size):
            if plain[0][block.a + n]:
                same[0].add(block.a + n)
                same[1].add(block.b + n)
    sides = []
    for lines, marked in zip(texts, same, strict=True):
        spans = (
            f"<span{' class=same' if n in marked else ''}>{escape(line)}</span>"
            for n, line in enumerate(lines)
        )
        sides.append("".join(spans))
    return sides[0], sides[1]


def _line(line: str) -> list[str]:
    layout = ("INDENT", "DEDENT", "NEWLINE")
    return [word for word in tokens(line.strip()) if word not in layout]

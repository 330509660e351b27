"""Running one case over a submission: what came of it, and nothing about whether that is right."""

from __future__ import annotations

import functools
import inspect
import io
import linecache
import sys
from dataclasses import dataclass
from types import CodeType
from typing import Any

from course import deadline, properties
from course.cases import Case, show


@dataclass
class Came:
    """What a case came to: a value, or an error with the learner's line that it came from."""

    got: Any = None
    error: BaseException | None = None
    where: str = ""
    printed: bool = False


def run(case: Case, submission: Any) -> Came:
    """Run a case. What it changes for the whole program and leaves changed is put back."""
    printed = _Tee(sys.stdout)
    before = properties.settings()
    try:
        return Came(_telling(case, printed), printed=bool(printed.count))
    except deadline.OutOfTime:
        raise
    except BaseException as error:  # sys.exit() is no way round the cases that follow
        return Came(None, error, line_in(submission, error), bool(printed.count))
    finally:
        properties.put_back(before)  # what one case leaves changed is not the next one's


class _Tee(io.TextIOBase):
    """Passes on what is printed, and counts it."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.count = 0

    def write(self, text: str) -> int:
        self.count += len(text.strip())
        return int(self.stream.write(text) or len(text))

    def flush(self) -> None:
        self.stream.flush()


def _telling(case: Case, printed: _Tee) -> Any:
    """Run a case; ``printed`` learns whether it printed something."""
    before, sys.stdout = sys.stdout, printed
    try:
        return case.run()
    finally:
        sys.stdout = before


def said(error: BaseException) -> str:
    """An error's type and message, in bounded length."""
    if isinstance(error, RecursionError):
        return "RecursionError: the call stack is full"  # Python's own words vary by version
    text = str(error).strip()
    return f"{type(error).__name__}: {show_text(text)}" if text else type(error).__name__


def show_text(text: str) -> str:
    """A message in bounded length, without addresses."""
    return show(_Raw(text))


class _Raw(str):
    def __repr__(self) -> str:
        return str(self)


def line_in(submission: Any, error: BaseException) -> str:
    """The innermost line of the submission on the error's stack: ``line 4: total += x``."""
    files = _files_of(submission)
    found = ""
    for code, lineno in frames(error):
        if code.co_filename in files:
            text = linecache.getline(code.co_filename, lineno).strip()
            found = f"line {lineno}: {text}" if text else f"line {lineno}"
            if code.co_name not in ("<module>", "<lambda>", "<listcomp>", "<genexpr>"):
                found += f"   (in {code.co_name})"
    return found


def frames(error: BaseException) -> list[tuple[CodeType, int]]:
    """Code and line of every call on an error's stack."""
    found, step = [], error.__traceback__
    while step is not None:
        found.append((step.tb_frame.f_code, step.tb_lineno))
        step = step.tb_next
    return found


@functools.singledispatch
def _files_of(submission: Any) -> set[str]:
    """The files (in Jupyter: the cells) that a function's or class's code comes from."""
    code = getattr(submission, "__code__", None)
    return {code.co_filename} if code is not None else _files_of(type(submission))


@_files_of.register
def _(submission: type) -> set[str]:
    # static methods and properties know the function they stand for
    inner = (getattr(value, "fget", inspect.unwrap(value)) for value in vars(submission).values())
    codes = (getattr(value, "__code__", None) for value in inner)
    return {code.co_filename for code in codes if code is not None}

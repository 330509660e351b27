"""Noticing an answer that hands in, or calls, the framework's own answer to the same question.

An exercise lists them: ``Exercise(..., without=("torch.optim.SGD",))``. Three things count: the
answer *is* one of them; it is a class derived from one; or a line of the learner's code calls one
while the checks run. Calls by the framework itself and by the checks do not count.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from course.contents import ROOT

_PLACES = (ROOT / "toytorch", ROOT / "course", *map(sysconfig.get_path, ("stdlib", "purelib")))
_NOT_THEIRS = ("<frozen", *(f"{Path(place)}{os.sep}" for place in _PLACES))
_FRAMEWORK = f"{ROOT / 'toytorch'}{os.sep}"
_MISSING: Any = object()


def resolve(name: str) -> Any:
    """What a dotted name stands for; ``torch`` is toytorch here, as in the notebooks."""
    first, *rest = name.split(".")
    return functools.reduce(getattr, rest, sys.modules["toytorch" if first == "torch" else first])


def handed_in(submission: Any, without: tuple[str, ...]) -> str:
    """The name of what was handed in as it is, or derived from; empty if the answer is its own."""
    while isinstance(submission, functools.partial):
        submission = submission.func
    for name in without:
        target = resolve(name)
        if submission is target:
            return name
        if (
            isinstance(target, type)
            and isinstance(submission, type)
            and issubclass(submission, target)
        ):
            return name
    return ""


@contextlib.contextmanager
def watched(
    submission: Any, without: tuple[str, ...], checks: Iterable[Any] = ()
) -> Iterator[list[str]]:
    """A list of names, to which each call of one of them by the submission is added.

    ``checks`` are functions that may call them, wherever they are written.
    """
    seen: list[str] = []
    own = _Codes(_codes(submission), {code for check in checks for code in _codes(check)})
    undo: list[Callable[[], None]] = []
    try:
        for name in without:
            _watch(name, own, _globals(submission), seen, undo)
        yield seen
    finally:
        for back in reversed(undo):
            back()


def _watch(
    name: str,
    own: _Codes,
    spaces: list[dict[str, Any]],
    seen: list[str],
    undo: list[Callable[[], None]],
) -> None:
    target = resolve(name)
    if isinstance(target, type):
        for key, value in list(vars(target).items()):
            if isinstance(value, FunctionType) and (key == "__init__" or not key.startswith("__")):
                _replace(target, key, _noting(value, name, own, seen), undo)
        if "__init__" not in vars(target):
            _replace(target, "__init__", _noting(target.__init__, name, own, seen), undo)
        return
    noting = _noting(target, name, own, seen)
    parent = resolve(name.rpartition(".")[0])
    if isinstance(parent, type):  # a method
        _replace(parent, name.rpartition(".")[2], noting, undo)
        return
    _replace(parent, name.rpartition(".")[2], noting, undo)
    for key, module in list(sys.modules.items()):
        if key.split(".")[0] == "toytorch":
            for attribute, value in list(vars(module).items()):
                if value is target:
                    _replace(module, attribute, noting, undo)
    for space in spaces:  # `from torch.autograd import gradcheck`, in a cell
        for key, value in list(space.items()):
            if value is target:
                space[key] = noting
                undo.append(functools.partial(space.__setitem__, key, target))


def _replace(owner: Any, key: str, value: Any, undo: list[Callable[[], None]]) -> None:
    before = vars(owner).get(key, _MISSING)
    setattr(owner, key, value)
    if before is _MISSING:
        undo.append(lambda: delattr(owner, key))
    else:
        undo.append(lambda: setattr(owner, key, before))


def _noting(target: Any, name: str, own: _Codes, seen: list[str]) -> Any:
    @functools.wraps(target)
    def noting(*args: Any, **kwargs: Any) -> Any:
        if called_by_answer(own):
            seen.append(name)
        return target(*args, **kwargs)

    return noting


@dataclass(frozen=True)
class _Codes:
    """The code of an answer, and the code of the checks."""

    answer: set[CodeType]
    checks: set[CodeType]


def called_by_answer(own: _Codes) -> bool:
    """Whether the caller's caller is a line of the learner's."""
    frame = sys._getframe(2)
    if frame.f_code in own.answer or frame.f_code in own.checks:
        return frame.f_code in own.answer
    made_by_us = str(frame.f_globals.get("__name__")).split(".")[0] in ("toytorch", "course")
    return not made_by_us and not frame.f_code.co_filename.startswith(_NOT_THEIRS)


def _codes(submission: Any) -> set[CodeType]:
    """The code of a function or of a class's methods, with all that is defined inside."""
    found: set[CodeType] = set()
    waiting = [code for f in _functions(submission) if (code := getattr(f, "__code__", None))]
    while waiting:
        code = waiting.pop()
        if code not in found and not code.co_filename.startswith(_FRAMEWORK):
            found.add(code)
            waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return found


def _globals(submission: Any) -> list[dict[str, Any]]:
    spaces: dict[int, dict[str, Any]] = {}
    for function in _functions(submission):
        space = getattr(function, "__globals__", None)
        name = space.get("__name__", "") if space else ""
        # the framework's modules are seen to already
        if space is not None and str(name).split(".")[0] != "toytorch":
            spaces[id(space)] = space
    return list(spaces.values())


def _functions(submission: Any) -> list[Any]:
    while isinstance(submission, functools.partial):
        submission = submission.func
    if not isinstance(submission, type):
        kind = type(submission)
        own = [] if kind.__module__ == "builtins" else list(vars(kind).values())
        return [submission] if hasattr(submission, "__code__") else own
    found = []
    for value in vars(submission).values():
        value = getattr(value, "fget", None) or getattr(value, "__func__", value)
        found.append(value)
    return found

"""What many threads do at once, in one process."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable

import pytest

from toytorch.facts import syntax
from toytorch.loops.formula import Formula


def change_places(phase: str, info: dict[str, int]) -> None:
    """Lets another thread go on."""
    time.sleep(0)


def in_threads(work: Callable[[int], object], threads: int = 8) -> list[BaseException]:
    """The errors of a function run by many threads that change places all the time."""
    errors: list[BaseException] = []

    def run(k: int) -> None:
        try:
            for i in range(30):
                work(k * 100 + i)
        except BaseException as error:
            errors.append(error)

    before, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(5)
    gc.callbacks.append(change_places)  # a collection may happen while a tree is made
    try:
        started = [threading.Thread(target=run, args=(k,)) for k in range(threads)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
    finally:
        sys.setswitchinterval(before)
        gc.set_threshold(*threshold)
        gc.callbacks.remove(change_places)
    return errors


@pytest.mark.parametrize("kind", ["parse", "compile", "formula"])
def test_texts_are_read_by_many_threads(kind: str) -> None:
    text = "\n".join(f"a{i} = [b + {i} * (c - d[e]) for b in f if g]" for i in range(40))

    def work(k: int) -> object:
        if kind == "parse":
            return syntax.parse(text)
        if kind == "compile":
            return syntax.compiled(syntax.parse(text), "<text>")
        return Formula(f"exp(x * {k}) / (1 + exp(-x))", ["x"])

    assert not in_threads(work)

"""What many threads do at once, in one process."""

from __future__ import annotations

import ast
import contextlib
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


@pytest.mark.parametrize("kind", ["parse", "compile"])
def test_a_collection_that_reads_a_text_does_no_harm(kind: str) -> None:
    """What a garbage collection calls may parse, too: inside of ours, that would spoil the count."""
    text = "\n".join(f"a{i} = [b + {i} * (c - d[e]) for b in f if g]" for i in range(40))

    def nested(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            ast.parse("x + 1")

    threshold = gc.get_threshold()
    gc.set_threshold(5)
    gc.callbacks.append(nested)
    try:
        for _ in range(20):
            tree = syntax.parse(text)
            if kind == "compile":
                syntax.compiled(tree, "<text>")
    finally:
        gc.callbacks.remove(nested)
        gc.set_threshold(*threshold)
    assert gc.isenabled()


def test_the_parser_used_by_others_at_the_same_time() -> None:
    """Threads that parse without us: ours tries again, theirs are not our business."""
    text = "\n".join(f"a{i} = [b + {i} * (c - d[e]) for b in f if g]" for i in range(40))
    stop = threading.Event()

    def others() -> None:
        while not stop.is_set():
            with contextlib.suppress(SystemError):
                ast.parse(text)

    thread = threading.Thread(target=others)
    thread.start()
    try:
        for _ in range(50):
            syntax.parse(text)
    finally:
        stop.set()
        thread.join()

"""Python's parser and compiler, for programs with threads.

CPython 3.11 counts the depth of a tree that becomes objects, or code, once for the process. Two that
do so at a time, in two threads or one inside of the other (in what a garbage collection calls), can
fail with "SystemError: AST constructor recursion depth mismatch" (python/cpython#106905, mended in
3.11.9). So here it is one thread at a time, and nothing is collected meanwhile; where the parser was
used elsewhere at the same time, we try again.
"""

from __future__ import annotations

import ast
import gc
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

_lock = threading.RLock()
TRIES = 5


def parse(text: str, mode: str = "exec", type_comments: bool = False) -> Any:
    """The syntax tree of a text; SyntaxError where it is no Python.

    >>> type(parse("x + 1", mode="eval").body).__name__
    'BinOp'
    """
    return _alone(lambda: ast.parse(text, mode=mode, type_comments=type_comments))


def compiled(
    tree: Any, label: str, mode: str = "exec", flags: int = 0, dont_inherit: bool = True
) -> CodeType:
    """The code of a tree."""
    return _alone(lambda: compile(tree, label, mode, flags, dont_inherit=dont_inherit))


def _alone(work: Callable[[], Any]) -> Any:
    """The result of something that nothing else of this process should do at the same time."""
    with _lock:
        collecting = gc.isenabled()
        gc.disable()
        try:
            for _ in range(TRIES - 1):
                try:
                    return work()
                except SystemError:
                    continue  # somebody else's tree came between
            return work()
        finally:
            if collecting:
                gc.enable()

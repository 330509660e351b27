"""Python's parser and compiler, for programs with threads.

CPython 3.11 counts the depth of a tree that becomes objects, or code, once for all threads. Two
that do so at a time can fail with "SystemError: AST constructor recursion depth mismatch"
(python/cpython#106905, mended in 3.11.9). So here it is one thread at a time.
"""

from __future__ import annotations

import ast
import threading
from types import CodeType
from typing import Any

_lock = threading.Lock()


def parse(text: str, mode: str = "exec", type_comments: bool = False) -> Any:
    """The syntax tree of a text; SyntaxError where it is no Python.

    >>> type(parse("x + 1", mode="eval").body).__name__
    'BinOp'
    """
    with _lock:
        return ast.parse(text, mode=mode, type_comments=type_comments)


def compiled(
    tree: Any, label: str, mode: str = "exec", flags: int = 0, dont_inherit: bool = True
) -> CodeType:
    """The code of a tree."""
    with _lock:
        made: CodeType = compile(tree, label, mode, flags, dont_inherit=dont_inherit)
        return made

"""Python's parser and compiler, for one thread at a time.

CPython 3.11 counts the depth of a tree that becomes objects, or code, once for all threads. Two
that do so at a time can fail with "AST constructor recursion depth mismatch" (its issue 106905).
Answers are marked by several threads.
"""

from __future__ import annotations

import ast
import threading
from types import CodeType

_lock = threading.Lock()


def parse(source: str) -> ast.Module:
    """The tree of a text.

    Raises:
        SyntaxError: it is no Python.
    """
    with _lock:
        return ast.parse(source)


def compiled(tree: ast.Module, label: str, flags: int) -> CodeType:
    """The code of a tree."""
    with _lock:
        return compile(tree, label, "exec", flags, dont_inherit=True)

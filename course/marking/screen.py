"""What no answer of this course needs, found in the text before anything runs.

This is a sieve for the obvious, not a proof: see "What is not contained" in
course/lecturer/README.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

# fmt: off
_MODULES = {
    "__future__", "abc", "ast", "bisect", "cmath", "collections", "contextlib", "copy",
    "dataclasses", "decimal", "enum", "fractions", "functools", "heapq", "inspect", "itertools",
    "math", "mytorch", "numbers", "numpy", "operator", "random", "re", "statistics", "string", "struct",
    "tempfile", "textwrap", "threading", "time", "toytorch", "types", "typing", "warnings",
    "weakref",
}
STARS = {  # of which all names may be imported: what they give away is no module and no way to one
    "bisect", "cmath", "collections", "copy", "course.data", "dataclasses", "decimal", "enum",
    "fractions", "functools", "heapq", "itertools", "math", "numbers", "numpy", "operator",
    "random", "re", "statistics", "string", "textwrap", "toytorch", "toytorch.nn",
    "toytorch.nn.functional", "typing",
}
_NAMES = {
    "__builtins__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "eval", "exec",
    "exit", "globals", "input", "open", "quit",
}
_DOORS = {  # modules that other modules know, under whatever name they lie there
    "builtins", "ctypes", "ctypeslib", "f2py", "importlib", "os", "shutil", "socket",
    "subprocess", "sys",
}
_ATTRIBUTES = _DOORS | {
    "__builtins__", "__closure__", "__code__", "__globals__", "__import__", "__loader__",
    "__spec__", "__subclasses__", "_getframe", "ag_frame", "cr_frame", "currentframe",
    "excepthook", "f_back", "f_builtins", "f_globals", "f_locals", "getinnerframes",
    "getouterframes", "gi_frame", "settrace", "setprofile", "stride_tricks", "tb_frame", "tofile",
}
# fmt: on
_PARTS = 8  # of which a name is put together; what has more is not looked at
_HIDDEN = {name for name in _ATTRIBUTES | _NAMES if "_" in name}  # as text, for getattr


def objections(nodes: Iterable[ast.AST]) -> list[str]:
    """What a person should look at before this code runs, in words; empty for all but a few."""
    found: list[str] = []
    for node in nodes:
        for inner in ast.walk(node):
            found += _objections(inner)
    return list(dict.fromkeys(found))


def _objections(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (f"imports {n.name}" for n in node.names if not fine(n.name))
    elif isinstance(node, ast.ImportFrom):
        if node.level or not fine(node.module or ""):
            yield f"imports from {node.module or '.'}"
        yield from (f"imports {n.name}" for n in node.names if n.name in _ATTRIBUTES)
        if node.names[0].name == "*" and node.module not in STARS:
            yield f"imports everything from {node.module or '.'}"
    elif isinstance(node, ast.Name) and node.id in _NAMES | _DOORS:
        yield f"uses {node.id}"
    elif isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
        yield f"uses .{node.attr}"
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
        names = (arg.value for arg in node.args if isinstance(arg, ast.Constant))
        yield from (f"uses .{name}" for name in names if name in _DOORS)
    elif isinstance(node, ast.Constant) and node.value in _HIDDEN:
        yield f"names {node.value!r}"
    elif isinstance(node, ast.BinOp) and _text(node) in _HIDDEN:
        yield f"puts {_text(node)!r} together"


def _text(node: ast.expr) -> str:
    """The text that a sum of texts gives, as far as it stands there."""
    parts = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts.append(_constant(node.right) or _text(node.right))
        node = node.left
        if len(parts) > _PARTS:
            return ""
    return _constant(node) + "".join(reversed(parts))


def _constant(node: ast.expr) -> str:
    text = node.value if isinstance(node, ast.Constant) else ""
    return text if isinstance(text, str) else ""


def fine(module: str) -> bool:
    """Whether an answer may import something from a module."""
    return module.split(".")[0] in _MODULES or module == "course.data"

"""A function's source as a syntax tree whose nodes know where they stand."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from toytorch.facts.syntax import parse as parse_python
from toytorch.jit.ir import Source
from toytorch.jit.script.errors import NotSupportedError


@dataclass
class Program:
    """One function: its tree, and where in which file its text stands.

    first, indent   the line and column of the file where the text begins
    names           looks a name up that the function does not define; raises KeyError
    closed          whether it came as text, which may name operations and nothing else
    """

    tree: ast.FunctionDef
    file: str
    lines: list[str]
    first: int
    indent: int
    names: Callable[[str], Any]
    defaults: dict[str, Any] = field(default_factory=dict)
    closed: bool = False

    def source(self, node: Any) -> Source | None:
        """Where a node of the tree stands; None for what the compiler added."""
        line = getattr(node, "lineno", None)
        if line is None:
            return None
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        start, last = node, node
        while isinstance(start, (ast.Call, ast.Attribute)) and inner(start).lineno == line:
            last = start.func if isinstance(start, ast.Call) and start is last else last
            start = inner(start)  # marks stand under what is called, without brackets around it
        column = characters(text, start.col_offset)
        same_line = getattr(last, "end_lineno", line) == line
        end = characters(text, last.end_col_offset) if same_line else len(text)
        shown = " " * self.indent + text
        return Source(
            self.file, self.first + line - 1, column + self.indent, shown, end + self.indent,
            self.tree.name, lines=self.lines, place=line - 1,
        )  # fmt: skip


def inner(node: ast.Call | ast.Attribute) -> ast.expr:
    """What is called, or whose attribute is asked for."""
    return node.func if isinstance(node, ast.Call) else node.value


def characters(text: str, offset: int) -> int:
    """A column in characters; the tree counts bytes."""
    return len(text.encode()[:offset].decode(errors="replace"))


def read_function(function: Any) -> Program:
    """The program of a Python function.

    Raises RuntimeError for a lambda, and OSError where Python cannot find the source.
    """
    function = inspect.unwrap(function)
    if function.__name__ == "<lambda>":
        raise RuntimeError(
            "Expected a single top-level function: a lambda cannot be compiled; write it as a def"
        )
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError as error:
        raise OSError(
            f"Can't get source for {function}. TorchScript requires source access in "
            "order to carry out compilation, make sure original .py files are available."
        ) from error
    text = textwrap.dedent("".join(lines))
    indent = len(lines[0]) - len(lines[0].lstrip())
    if text[:1].isspace():  # a comment, or a line of a string, stands further to the left
        text, indent = "".join(lines), 0
        inside = parse("if 1:\n" + text)
        tree: ast.AST = next(n for n in ast.walk(inside) if isinstance(n, ast.FunctionDef))
        ast.increment_lineno(tree, -1)
    else:
        tree = parse(text).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise NotSupportedError(
            None,
            f"{function.__name__} is no plain function: "
            "async functions and classes are not compiled",
        )
    defaults = {
        k: p.default
        for k, p in inspect.signature(function).parameters.items()
        if p.default is not p.empty
    }
    file = inspect.getsourcefile(function) or "<unknown>"
    return Program(tree, file, text.splitlines(), first, indent, names_of(function), defaults)


def commented_result(function: Any) -> str | None:
    """The result in a comment like `# type: (int) -> Tensor` under a function's first line."""
    try:
        text = textwrap.dedent("".join(inspect.getsourcelines(inspect.unwrap(function))[0]))
        (tree,) = parse(text).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    comment = getattr(tree, "type_comment", None)
    return comment.rpartition("->")[2].strip() if comment and "->" in comment else None


def read_text(text: str, names: Callable[[str], Any], file: str = "<string>") -> list[Program]:
    """The programs of all functions of a text, nested definitions in classes left out."""
    tree = parse(textwrap.dedent(text))
    lines = textwrap.dedent(text).splitlines()
    return [
        Program(node, file, lines, 1, 0, names, literal_defaults(node))
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    ]


def literal_defaults(tree: ast.FunctionDef) -> dict[str, Any]:
    """Defaults of parameters that are written as literals."""
    given = tree.args.defaults
    names = [a.arg for a in tree.args.args[len(tree.args.args) - len(given) :]]
    return {name: ast.literal_eval(node) for name, node in zip(names, given)}


def parse(text: str) -> ast.Module:
    """The tree, with comments that are types where they can be read."""
    try:
        return parse_python(text, type_comments=True)
    except SyntaxError:
        return parse_python(text)


def names_of(function: Any) -> Callable[[str], Any]:
    """Looks names up as the function does: in the functions around it, its module, builtins."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))

    def find(name: str) -> Any:
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:
                raise KeyError(name) from None  # not assigned yet
        if name in function.__globals__:
            return function.__globals__[name]
        return vars(builtins)[name]

    return find

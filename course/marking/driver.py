"""The part of an exercise's checks that goes where an answer runs: what is called, with what.

Checks are written in one place, ``yield call(f, 3).gives(9)``. In marking they run twice. Here the
text for the answer's process is made, from which everything is taken that says what should come
out: ``gives``, ``holds``, ``raises`` and ``means``, references, mutants, hints, and whatever is
left unused without these. The process that judges runs the checks as they stand in the course.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from course import package
from course.records import Exercise
from toytorch.facts import syntax

_JUDGES = {"gives", "as_by", "holds", "raises", "means"}
_VARIANTS = {"stub", "reference", "mutant"}
_COMPARED = {"agrees", "gradient", "second_derivative"}  # the second argument is right
_KEPT = ("chapter", "minutes", "limit", "without", "inject")  # of an exercise's record
_HOME = "course.exercises."
LABEL = "<the course>"


@functools.cache
def driver(found: Exercise) -> dict[str, str]:
    """The texts of the modules that an exercise's checks need there, by their names."""
    texts: dict[str, str] = {}
    waiting = [home(found)]
    while waiting:
        name = waiting.pop()
        if name not in texts:
            texts[name] = stripped(_source(name))
            waiting += _imported(texts[name], _HOME)
    return texts


def home(found: Exercise) -> str:
    """The module that has an exercise's checks: its own, or one beside it that has nothing else."""
    (module,) = {check.cases.__module__ for check in found.checks}
    return module


@functools.cache
def own_package(found: Exercise) -> dict[str, tuple[str, str]]:
    """Files of ``mytorch`` that an answer may stand on: their definition's name, and their text.

    They are those that a learner has before this exercise.
    """
    names = list(package.FILES)
    place = package.file_of(found)
    earlier = [n for n in names if package.exercise_of(n).chapter <= found.chapter]
    before = names[: names.index(place)] if place else earlier
    return {name: (package.exercise_of(name).function, package.reference(name)) for name in before}


@functools.cache
def reference(found: Exercise, source: str = "") -> str:
    """A definition (that of the reference by default) below what it needs of its module."""
    tree = syntax.parse(_source(found.answer.module))
    body = [node for node in tree.body if not _of_an_exercise(node)]
    source = source or found.answer.source
    return f"{_text(_used(body, _read_names(syntax.parse(source).body), ()))}\n\n\n{source}\n"


def whole(source: str) -> list[list[Any]]:
    """A text as the pieces of an answer: all its statements, in one cell."""
    return [[LABEL, source, list(range(len(syntax.parse(source).body)))]]


@functools.cache
def _source(module: str) -> str:
    return Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8")


def _imported(text: str, home: str) -> list[str]:
    nodes = (node for node in ast.walk(syntax.parse(text)) if isinstance(node, ast.ImportFrom))
    return [str(node.module) for node in nodes if str(node.module).startswith(home)]


def _of_an_exercise(node: ast.stmt) -> bool:
    """Whether a statement at the top is about an exercise: its record, a variant, a check."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return any(_called(one) in _VARIANTS | {"check"} for one in node.decorator_list)
    if isinstance(node, ast.Expr):
        return True  # `exercise.changed(…)`, and texts
    return isinstance(node, ast.Assign) and _is_record(node.value)


def _is_record(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Exercise"


def _called(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else ""


def stripped(source: str) -> str:
    """A module's text without anything that says what is right."""
    body: list[ast.stmt] = []
    for node in syntax.parse(source).body:
        if isinstance(node, ast.Expr):
            continue
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and any(
            _called(one) in _VARIANTS for one in node.decorator_list
        ):
            continue
        body.append(_Blind().visit(node))
    if not any(isinstance(node, ast.Assign) and _is_record(node.value) for node in body):
        return _text(body)  # a module without an exercise is there for others to import from
    return _text(_used(body, set(), [place for place, node in enumerate(body) if _root(node)]))


def _text(body: Iterable[ast.stmt]) -> str:
    return ast.unparse(ast.fix_missing_locations(ast.Module(list(body), [])))


class _Blind(ast.NodeTransformer):
    """Takes away what is expected."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Constant):  # a call of a reference
            return ast.Constant(None)
        if _called(node) in _JUDGES and isinstance(node.func, ast.Attribute):
            return node.func.value
        if getattr(node.func, "id", "") in _COMPARED and len(node.args) > 1:
            node.args[1] = ast.Constant(None)
        if _is_record(node):
            node.args = node.args[:2]
            node.keywords = [k for k in node.keywords if k.arg in _KEPT]
            node.keywords.append(ast.keyword("prompt", ast.Constant("")))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        inner = node.value
        if node.attr == "value" and isinstance(inner, ast.Attribute) and inner.attr == "answer":
            return ast.Constant(None)  # `exercise.answer.value`
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.generic_visit(node)
        return _without_unused(node)


def _without_unused(node: ast.FunctionDef) -> ast.FunctionDef:
    """A function without assignments and inner functions that nothing uses any more."""
    while True:
        names = _read_names(node.body)
        pruner = _Pruner(names)
        node.body = [kept for one in node.body if (kept := pruner.visit(one))] or [ast.Pass()]
        if not pruner.count:
            return node


class _Pruner(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self.names, self.count = names, 0

    def visit_Assign(self, node: ast.Assign) -> Any:
        targets = [t for target in node.targets for t in _targets(target)]
        if not targets or any(t is None or t in self.names for t in targets):
            return node
        self.count += 1
        return None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if node.name not in self.names and not node.decorator_list:
            self.count += 1
            return None
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_Try(self, node: ast.Try) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node  # what stands in a class is used by its name


def _targets(target: ast.expr) -> list[str | None]:
    """The names that are bound; None where something else is changed."""
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for part in target.elts for name in _targets(part)]
    return [None]


def _read_names(nodes: Iterable[ast.AST]) -> set[str]:
    inner = (one for node in nodes for one in ast.walk(node))
    return {
        one.id
        for one in inner
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Store)
    } | {name for node in nodes for one in ast.walk(node) for name in getattr(one, "names", [])
         if isinstance(one, (ast.Nonlocal, ast.Global))}  # fmt: skip


def _used(body: list[ast.stmt], wanted: set[str], roots: Iterable[int]) -> list[ast.stmt]:
    """Some statements, and those that give the names a meaning that are wanted."""
    kept = set(roots)
    wanted = wanted | _read_names(body[place] for place in kept)
    while True:
        more = [
            place for place, node in enumerate(body) if place not in kept and wanted & _bound(node)
        ]
        if not more:
            return [node for place, node in enumerate(body) if place in kept]
        for place in more:
            kept.add(place)
            wanted = wanted | _read_names([body[place]])


def _root(node: ast.stmt) -> bool:
    if isinstance(node, (ast.For, ast.If, ast.With)):
        return True  # checks that are made in a loop
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return True
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return any(_called(one) == "check" for one in node.decorator_list)
    return isinstance(node, ast.Assign) and _is_record(node.value)


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    inner = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return {one.id for one in inner}

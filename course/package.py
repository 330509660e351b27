"""mytorch: the package that a learner's answers grow into, a file for each larger exercise.

    work/mytorch/tensor.py        written when ``check("autograd.tensor", Tensor)`` turns green
    from mytorch.tensor import Tensor

In a notebook the import works from the first day: for a file that is not there yet, the reference
of its exercise stands in. ``stand_ins()`` says for which. Outside the course the folder is an
ordinary package of what has been solved.

Standard library only: this is imported with the course itself.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from course.contents import ROOT
from course.files import write_atomically

if TYPE_CHECKING:
    from course.records import Exercise

NAME = "mytorch"

# The package's files in the order in which they are written, and whose answer each is: a module
# below course.exercises and the exercise's name in it.
FILES: dict[str, tuple[str, str]] = {
    "creation": ("ch01.parse", "parse"),
    "layout": ("ch02.layout", "layout"),
    "ops": ("ch03.registry", "registry"),
    "broadcast": ("ch04.unbroadcast", "unbroadcast"),
    "tensor": ("ch04.tensor", "tensor"),
    "inplace": ("ch05.versions", "versions"),
    "function": ("ch06.function", "function"),
    "module": ("ch07.module", "module"),
    "linear": ("ch07.linear_own", "own_linear"),
    "cross_entropy": ("ch08.cross_entropy_own", "own_entropy"),
    "adam": ("ch08.adamw_own", "own_adam"),
    "loader": ("ch09.loader_own", "own_loader"),
    "conv": ("ch10.conv_own", "own_conv"),
    "trainer": ("ch10.trainer_own", "own_trainer"),
    "profiler": ("ch11.profiler", "own_profiler"),
    "allocator": ("ch12.allocator", "own_allocator"),
    "graph": ("ch13.graph", "own_graph"),
    "trace": ("ch13.trace", "own_trace"),
    "script": ("ch13.script", "own_script"),
    "prune": ("ch14.prune", "own_prune"),
    "share": ("ch14.share", "own_share"),
    "derive": ("ch14.derive", "own_derive"),
    "groups": ("ch14.groups", "own_groups"),
    "fuse": ("ch14.fuse", "own_fuse"),
    "kernels": ("ch15.machine", "machine"),
    "flash": ("ch15.attention", "flash"),
    "embedding": ("ch19.embedding", "embedding"),
    "norm": ("ch19.norm", "norm"),
    "attention": ("ch19.attention", "attention"),
    "gpt": ("ch19.gpt", "gpt"),
}

_HEAD = '"""My own {}: written in chapter {:02d} of the toytorch course."""\n\n'


def home() -> Path:
    """The learner's folder, in which ``mytorch`` lies."""
    kept = os.environ.get("TOYTORCH_PROGRESS")
    return (Path(kept).parent if kept else ROOT) / "work"


def folder() -> Path:
    """The package's folder."""
    return home() / NAME


def own(name: str) -> Path | None:
    """The learner's file of that name; None if there is none.

    ``TOYTORCH_PACKAGE=references`` leaves the learner's files alone: marking sets it.
    """
    path = folder() / f"{name}.py"
    apart = os.environ.get("TOYTORCH_PACKAGE") == "references"
    return None if apart or not path.is_file() else path


def file_of(found: Exercise) -> str:
    """The file that an exercise's answer becomes; empty for one that is no part of the package."""
    module = found.answer.module.removeprefix("course.exercises.")
    return next((name for name, (place, _) in FILES.items() if place == module), "")


def exercise_of(name: str) -> Exercise:
    """The exercise whose answer a file holds."""
    place, variable = FILES[name]
    found: Exercise = getattr(importlib.import_module(f"course.exercises.{place}"), variable)
    return found


def reference(name: str) -> str:
    """A file's text as its exercise's reference has it."""
    found = exercise_of(name)
    module = Path(str(sys.modules[found.answer.module].__file__)).read_text(encoding="utf-8")
    return _HEAD.format(name, found.chapter) + _used_imports(module, found.answer.source)


def _used_imports(module: str, source: str) -> str:
    """A definition below those imports of its module that it uses."""
    used = {node.id for node in ast.walk(_parse(source)) if isinstance(node, ast.Name)}
    lines = []
    for node in _parse(module).body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "course":
            continue
        names = [n for n in node.names if (n.asname or n.name.split(".")[0]) in used]
        if names:
            node.names = names
            lines.append(ast.unparse(node))
    return "\n".join([*lines, "", "", source]) + "\n" if lines else source + "\n"


# -- growing --------------------------------------------------------------------------------------


def keep(found: Exercise, text: str) -> Path | None:
    """Write an answer into the package; None if the exercise is no part of it."""
    name = file_of(found)
    if not name:
        return None
    target = folder() / f"{name}.py"
    text = _HEAD.format(name, found.chapter) + _imported(text, name)
    write_atomically(target, text.encode())
    write_atomically(folder() / "__init__.py", contents(written()).encode())
    # The next import finds the new file. The others stay as they are loaded: what stands on their
    # classes would not know those of a second copy.
    sys.modules.pop(f"{NAME}.{name}", None)
    return target


def _imported(text: str, name: str) -> str:
    """A file's text with imports for the definitions that the files before it hold already."""
    before = list(FILES)[: list(FILES).index(name)]
    known = {exercise_of(n).function: n for n in before if own(n)}
    lines, imports = text.splitlines(), []
    for node in reversed(_parse(text).body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in known:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            del lines[first - 1 : node.end_lineno]
            imports.append(f"from {NAME}.{known[node.name]} import {node.name}")
    if not imports:
        return text
    return "\n".join([*reversed(imports), *lines]).rstrip() + "\n"


def written() -> list[str]:
    """The files that the learner has, in the package's order."""
    return [name for name in FILES if own(name)]


def contents(names: Iterable[str]) -> str:
    """The text of the package's ``__init__``."""
    lines = ['"""A PyTorch of my own."""', ""]
    lines += [f"from {NAME}.{name} import {exercise_of(name).function}" for name in names]
    return "\n".join(lines) + "\n"


def write_whole(target: Path, *, solved: bool = False) -> list[str]:
    """Write the whole package below ``target``: the learner's files, and references for the rest.

    Args:
        solved: references only.

    Returns the names of the files that are references.
    """
    stand_in = []
    for name in FILES:
        mine = None if solved else own(name)
        if mine is not None:
            text = mine.read_text(encoding="utf-8")
        else:
            text = reference(name)
            stand_in.append(name)
        write_atomically(target / NAME / f"{name}.py", text.encode())
    write_atomically(target / NAME / "__init__.py", b'"""A PyTorch of my own."""\n')
    return stand_in


def begin(target: Path, *, before: int) -> None:
    """Write the files of the chapters before one, as their references have them."""
    names = [name for name in FILES if exercise_of(name).chapter < before]
    for name in names:
        write_atomically(target / NAME / f"{name}.py", reference(name).encode())
    if names:
        write_atomically(target / NAME / "__init__.py", contents(names).encode())


# -- importing ------------------------------------------------------------------------------------


def stand_ins() -> list[str]:
    """The imported files for which a reference stands in."""
    return [
        name
        for name in FILES
        if isinstance(getattr(sys.modules.get(f"{NAME}.{name}"), "__loader__", None), _Reference)
    ]


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``mytorch`` in the learner's folder, and references for what is not there yet."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != NAME:
            return None
        if not name:
            spec = importlib.machinery.ModuleSpec(NAME, _Package(), is_package=True)
            spec.submodule_search_locations = [str(folder())]
            return spec
        mine = own(name)
        if mine is not None:
            return importlib.util.spec_from_file_location(fullname, mine)
        if name in FILES:
            exercise_of(name)  # reads its chapter, whose later exercises may stand on this file
            loaded = sys.modules.get(fullname)
            loader = _Reference() if loaded is None else _Loaded(loaded)
            return importlib.util.spec_from_loader(fullname, loader)
        return None


class _Package(importlib.abc.Loader):
    """The package itself: ``from mytorch import Tensor`` looks for the file that has it."""

    def exec_module(self, module: ModuleType) -> None:
        def find(wanted: str) -> Any:
            for name in FILES:
                if wanted == name or wanted == exercise_of(name).function:
                    file = importlib.import_module(f"{NAME}.{name}")
                    return file if wanted == name else getattr(file, wanted)
            raise AttributeError(f"{NAME} has no {wanted}")

        module.__getattr__ = find  # type: ignore[method-assign]


class _Loaded(importlib.abc.Loader):
    """A file that was imported while it was being found: it must not come a second time."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Reference(importlib.abc.InspectLoader):
    """The reference of an exercise, as a module."""

    def get_source(self, fullname: str) -> str:
        return reference(fullname.partition(".")[2])


def install() -> None:
    """Let ``import mytorch`` find the learner's package from now on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _parse(text: str) -> Any:
    """The syntax tree of a text."""
    from toytorch.facts.syntax import parse  # the launcher starts before NumPy is installed

    return parse(text)

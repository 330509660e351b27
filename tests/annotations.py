"""Are the annotations true? Looks at arguments and results while programs run.

Mypy believes the annotation of a parameter; what callers really give, it sees only where they are
annotated, too. Here each call of a function of toytorch is looked at while tests run, and what is no
instance of its annotation is written down.

    python -m pytest -p tests.annotations --annotations FILE tests/nn -p no:xdist

runs tests and writes what was found to a file, a line each.

    python -m tests.annotations

looks at the programs of tests/compat/programs.
"""

from __future__ import annotations

import ast
import builtins
import collections
import collections.abc
import contextlib
import gc
import inspect
import io
import runpy
import sys
import threading
import types
import typing
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toytorch.facts.schema import Missing

PACKAGE = str(Path(__file__).parents[1] / "toytorch") + "/"
OFTEN = 50  # calls of one function that are all looked at; then every hundredth
LOOKED_AT = 20  # elements of a list


def fits(value: Any, hint: Any, depth: int = 0) -> bool:
    """Whether a value is an instance of an annotation, as far as that can be seen.

    >>> fits([1, 2], collections.abc.Sequence[int]), fits((1, "a"), tuple[int, int])
    (True, False)
    >>> fits(np.float32(1), np.ndarray[Any, Any]), fits(1, float), fits(None, int | None)
    (True, True, True)
    """
    if isinstance(value, Missing):
        return True  # what is not given: `NOT_GIVEN` says of itself that it is of any type
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is np.ndarray or origin is np.ndarray:
        return isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array_priority__")
    if origin is typing.IO:
        return hasattr(value, "read") or hasattr(value, "write")
    if origin is None:
        if not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
            return True  # a type variable, for one
        if typing.is_typeddict(hint):
            return isinstance(value, dict)
        wider = {float: (int, float, np.number), complex: (int, float, complex, np.number)}
        wider[int] = (int, np.integer)
        return isinstance(value, wider.get(hint, hint))
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part, depth) for part in parts)
    if origin is typing.Literal:
        return value in parts
    if origin is collections.abc.Callable:
        return callable(value)
    if not isinstance(origin, type):
        return True
    if not isinstance(value, origin):
        return False
    if depth > 2 or isinstance(value, (str, bytes)):
        return True
    if origin is tuple:
        if len(parts) == 2 and parts[1] is ...:
            return all(fits(v, parts[0], depth + 1) for v in value[:LOOKED_AT])
        return len(parts) == len(value) and all(map(fits, value, parts, [depth + 1] * len(parts)))
    if origin in (list, set, frozenset, collections.abc.Sequence):
        return all(fits(v, parts[0], depth + 1) for v in list(value)[:LOOKED_AT])
    if origin in (dict, collections.abc.Mapping):
        pairs = list(value.items())[:LOOKED_AT]
        return all(fits(k, parts[0], depth + 1) and fits(v, parts[1], depth + 1) for k, v in pairs)
    return True


class Names(dict[str, Any]):
    """A module's names, with those it imports for annotations only; what is not known is Any."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(vars(module))
        if module.__file__ is None:
            return
        for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                for line in node.body:
                    if isinstance(line, (ast.Import, ast.ImportFrom)):
                        with contextlib.suppress(ImportError):  # of a module half loaded: any type
                            exec(ast.unparse(line), self)

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, Any)


class Watch:
    """Looks at every call of a function of toytorch until it is stopped.

    found  (file, line, function, name, annotation, type of what came): how often
    """

    def __init__(self) -> None:
        self.found: collections.Counter[tuple[str, int, str, str, str, str]] = collections.Counter()
        self.calls: collections.Counter[types.CodeType] = collections.Counter()
        self.hints: dict[types.CodeType, dict[str, Any]] = {}
        self.names: dict[str, Names] = {}
        self.functions: dict[types.CodeType, types.FunctionType] = {}
        self.busy = False

    def __enter__(self) -> Watch:
        gc.unfreeze()  # functions of modules that tests import are frozen: see conftest.py
        known = gc.get_objects()
        gc.freeze()
        for thing in known:
            if type(thing) is types.FunctionType and not hasattr(thing, "__wrapped__"):
                self.functions.setdefault(thing.__code__, thing)
        self.resume()
        return self

    def resume(self) -> None:
        """Looks again, where a test has set a profiling function of its own."""
        sys.setprofile(self.look)
        threading.setprofile(self.look)

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def look(self, frame: types.FrameType, event: str, value: Any) -> None:
        """What Python calls at each call and return."""
        code = frame.f_code
        if self.busy or event not in ("call", "return") or not code.co_filename.startswith(PACKAGE):
            return
        self.calls[code] += 1
        if self.calls[code] > OFTEN and self.calls[code] % 100:
            return
        self.busy = True
        try:
            if code not in self.hints:
                self.hints[code] = self.read(code)
            hints = self.hints[code]
            if event == "call":
                for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                    if name in hints and name in frame.f_locals:
                        self.compare(code, name, hints[name], frame.f_locals[name])
            elif "return" in hints and value is not None and not code.co_flags & NO_RESULT:
                self.compare(code, "return", hints["return"], value)
        finally:
            self.busy = False

    def compare(self, code: types.CodeType, name: str, hint: Any, value: Any) -> None:
        if not fits(value, hint):
            place = code.co_filename.removeprefix(PACKAGE), code.co_firstlineno, code.co_qualname
            self.found[(*place, name, str(hint)[:80], kind_of(value))] += 1

    def read(self, code: types.CodeType) -> dict[str, Any]:
        """The annotations of a function, as objects."""
        function = self.functions.get(code)
        if function is None:  # made since: a closure
            made = (r for r in gc.get_referrers(code) if type(r) is types.FunctionType)
            function = next((f for f in made if not hasattr(f, "__wrapped__")), None)
        if function is None or function.__module__ not in sys.modules:
            return {}
        if function.__module__ not in self.names:
            self.names[function.__module__] = Names(sys.modules[function.__module__])
        names = self.names[function.__module__]
        return {
            name: known(hint, names) if isinstance(hint, str) else hint
            for name, hint in function.__annotations__.items()
        }

    def lines(self) -> list[str]:
        """What was found, a line each."""
        return [
            f"{file}:{line} {function}({name}: {hint}) was given {kind}, {count} times"
            for (file, line, function, name, hint, kind), count in sorted(self.found.items())
        ]


def known(hint: str, names: Names) -> Any:
    """The type that an annotation names; Any for a recursive one, whose alias is a string."""
    try:
        return eval(hint, names)
    except TypeError:
        return Any


NO_RESULT = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def kind_of(value: Any, depth: int = 0) -> str:
    """The type of a value, with those of a list's elements."""
    if isinstance(value, (list, tuple)) and depth < 2:
        inner = ", ".join(sorted({kind_of(v, depth + 1) for v in value}))
        return f"{type(value).__name__}[{inner[:60]}]"
    return f"{type(value).__module__.split('.')[0]}.{type(value).__qualname__}"


# -- the plugin -----------------------------------------------------------------------------------

watch = Watch()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--annotations", help="write what does not fit its annotation to this file")


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.getoption("--annotations"):
        import toytorch  # noqa: F401  # whose functions are looked for

        watch.__enter__()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.config.getoption("--annotations") and sys.getprofile() is None:
        watch.resume()


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = session.config.getoption("--annotations")
    if found:
        watch.__exit__()
        Path(found).write_text("".join(line + "\n" for line in watch.lines()))


# -- programs -------------------------------------------------------------------------------------


def main() -> list[str]:
    """What was found while the programs of tests/compat ran."""
    import toytorch
    from toytorch.alias import install

    install()
    folder = Path(__file__).parent / "compat" / "programs"
    sys.path.insert(0, str(folder))
    with Watch() as watched, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for program in sorted(folder.glob("*.py")):
            if program.stem == "traced":
                continue  # it compiles, which takes a minute where every call is looked at
            with contextlib.redirect_stdout(io.StringIO()):
                runpy.run_path(str(program), run_name="__main__")
            toytorch.set_default_dtype(toytorch.float32)  # some programs want float64
            toytorch.manual_seed(0)
    return watched.lines()


if __name__ == "__main__":
    print(*main(), sep="\n")

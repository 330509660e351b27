"""Which statements of a notebook take part in an answer: a slice of the program, backward from it.

A statement takes part if it gives a name that is needed its meaning, or may change what that name
stands for: ``table["a"] = 1``, ``items.append(x)``, ``fill(table)``, ``@rules.register``. What it
uses is needed in its turn. An import is changed by nothing: who patches a module patches it for
himself. A call counts as a change of what it is given if it is made for its effect, that is, if
nothing is done with its result, or if its name is known for that.
"""

from __future__ import annotations

import ast
import bisect
import builtins
import dis
import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType

from course.marking import screen
from toytorch.facts import syntax

_WAYS = dict.fromkeys(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"), "loads")
_WAYS |= dict.fromkeys(("STORE_GLOBAL", "STORE_NAME"), "stores")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SIMPLE = (*_DEFINITIONS, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign)
_BUILTINS = frozenset(dir(builtins))
# fmt: off
_CHANGING = {  # of containers, iterators and tensors; a name that ends in "_" changes tensors, too
    "add", "append", "appendleft", "clear", "delattr", "discard", "extend", "extendleft", "heapify",
    "heappop", "heappush", "heappushpop", "heapreplace", "insert", "insort", "insort_left",
    "insort_right", "move_to_end", "next", "pop", "popitem", "popleft", "register", "remove",
    "reverse", "rotate", "send", "setattr", "setdefault", "shuffle", "sort", "step", "subtract",
    "update",
}
# fmt: on


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement at the top level: of the how manieth cell, and which in the cell's text."""

    cell: int
    position: int
    source: str
    node: ast.stmt

    @functools.cached_property
    def _codes(self) -> tuple[_Code, list[_Code], list[_Code]]:
        """The statement's own code, what else runs with it, and what runs when it is called."""
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # as in Jupyter
        own = syntax.compiled(ast.Module([self.node], []), "<cell>", flags=flags)
        first, *inner = _codes(own)
        if not isinstance(self.node, _DEFINITIONS):
            return first, inner, inner
        name = self.node.name if isinstance(self.node, ast.ClassDef) else ""
        body = [code for code in inner if code.name == name][:1]
        return first, body, [code for code in inner if code not in body]

    @functools.cached_property
    def binds(self) -> frozenset[str]:
        """The names it gives a meaning to."""
        return self._codes[0].stores

    @functools.cached_property
    def now(self) -> frozenset[str]:
        """The names it asks for when it runs."""
        own, body, _ = self._codes
        return own.loads.union(*(code.loads for code in body))

    @functools.cached_property
    def later(self) -> frozenset[str]:
        """The names that functions inside it ask for when they are called."""
        return frozenset().union(*(code.loads for code in self._codes[2]))

    @functools.cached_property
    def publishes(self) -> frozenset[str]:
        """The names that functions inside it give a meaning to (``global``)."""
        return frozenset().union(*(code.publishes for code in self._codes[2]))

    @property
    def settles(self) -> bool:
        """Whether what its names meant before is gone in any case."""
        return isinstance(self.node, _SIMPLE)

    @functools.cached_property
    def star(self) -> str:
        """The module of a ``from … import *`` in it."""
        imports = (n for n in ast.walk(self.node) if isinstance(n, ast.ImportFrom))
        return next((n.module or "." for n in imports if n.names[0].name == "*"), "")


@dataclass(frozen=True, eq=False)
class _Code:
    """What a piece of code does with names of the module."""

    name: str
    loads: frozenset[str]
    stores: frozenset[str]
    publishes: frozenset[str]


def _codes(code: CodeType) -> Iterator[_Code]:
    """A code object, and all that lie in it."""
    found: dict[str, set[str]] = defaultdict(set)
    for step in dis.get_instructions(code):
        if step.opname in _WAYS and not str(step.argval).startswith("__"):
            found[_WAYS[step.opname]].add(str(step.argval))
            if step.opname == "STORE_GLOBAL":
                found["publishes"].add(str(step.argval))
    ways = (frozenset(found[way]) for way in ("loads", "stores", "publishes"))
    yield _Code(code.co_name, *ways)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def needed(program: list[Statement], name: str) -> list[Statement]:
    """The statements that take part in what ``name`` means at the end of ``program``."""
    return _Slice(program).of(name)


class _Slice:
    def __init__(self, program: list[Statement]) -> None:
        self.program = program
        self.names = _Names(program)
        self.binders: dict[str, list[int]] = defaultdict(list)
        self.changers: dict[str, list[int]] = defaultdict(list)
        self.settlers: dict[str, list[int]] = defaultdict(list)
        self.later: dict[str, set[str]] = defaultdict(set)  # what calling a name may ask for
        for n, statement in enumerate(program):
            for name in statement.binds:
                self.binders[name].append(n)
                self.later[name] |= statement.later
                if statement.settles:
                    self.settlers[name].append(n)
        given = self.binders.keys() | {name for s in program for name in s.publishes}
        for n, statement in enumerate(program):
            for name in given & self.names.changed_by(statement):
                self.changers[name].append(n)
        self.kept: set[int] = set()
        self.seen: set[tuple[str, int]] = set()
        self.open = False  # whether a name is needed that no statement gives
        self.waiting: list[tuple[str, int]] = []

    def of(self, name: str) -> list[Statement]:
        self.waiting = [(name, len(self.program))]
        while self.waiting:
            self._meaning(*self.waiting.pop())
        for n, statement in enumerate(self.program):
            module = statement.star
            if module and (self.open or screen.fine(module)):
                self.kept.add(n)
            if isinstance(statement.node, ast.ImportFrom) and statement.node.module == "__future__":
                self.kept.add(n)
        return [self.program[n] for n in sorted(self.kept)]

    def _meaning(self, name: str, before: int) -> None:
        """Keep what gives a name its meaning before a place, and what changes it from then on."""
        binders = self.binders.get(name, [])
        if not binders and name not in self.changers:
            self.open |= name not in _BUILTINS
            return
        first = len(self.program)
        for n in reversed(binders[: bisect.bisect_left(binders, before)]):
            if (name, n) in self.seen:
                return
            self.seen.add((name, n))
            first = n
            self._keep(n)
            if self.program[n].settles:
                break
        if not binders:  # made by a call of something that says `global`
            first = 0
        changers = self.changers.get(name, [])
        end = self._settled_after(name, first)
        for n in changers[bisect.bisect_left(changers, first) : bisect.bisect_left(changers, end)]:
            self._keep(n)

    def _settled_after(self, name: str, place: int) -> int:
        settlers = self.settlers.get(name, [])
        following = bisect.bisect_right(settlers, place)
        return settlers[following] if following < len(settlers) else len(self.program)

    def _keep(self, n: int) -> None:
        if n in self.kept:
            return
        self.kept.add(n)
        statement = self.program[n]
        at_once = self._called(statement.now)
        self.waiting += [(name, n) for name in at_once]
        self.waiting += [(name, len(self.program)) for name in statement.later]

    def _called(self, names: Iterable[str]) -> set[str]:
        """Names, and those that functions among them ask for in their turn."""
        found, waiting = set(names), list(names)
        while waiting:
            fresh = self.later.get(waiting.pop(), set()) - found
            found |= fresh
            waiting += fresh
        return found


class _Names:
    """What the names of a program are, and what its functions do besides giving results."""

    def __init__(self, program: list[Statement]) -> None:
        self.modules: dict[str, str] = {}  # imported names: where they come from
        self.functions: dict[str, list[ast.AST]] = defaultdict(list)
        self.classes: dict[str, list[ast.AST]] = defaultdict(list)
        self.methods: dict[str, set[str]] = defaultdict(set)  # by name, the classes that have it
        self.data: set[str] = set()
        self.globals: dict[str, frozenset[str]] = {}  # what functions ask for or publish
        self.published: dict[str, frozenset[str]] = {}
        for statement in program:
            self._note(statement)
        self._effects: dict[str, set[str]] = {}

    def _note(self, statement: Statement) -> None:
        defined = set()
        for node in ast.walk(statement.node):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.modules[alias.asname or alias.name.split(".")[0]] = alias.name
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif isinstance(node, _DEFINITIONS) and node.name in statement.binds:
                kinds = self.classes if isinstance(node, ast.ClassDef) else self.functions
                kinds[node.name].append(node)
                defined.add(node.name)
                for inner in getattr(node, "body", []) if kinds is self.classes else []:
                    if isinstance(inner, _DEFINITIONS):
                        self.methods[inner.name].add(node.name)
        for name in defined:
            asked = statement.later | statement.publishes
            self.globals[name] = self.globals.get(name, frozenset()) | asked
            self.published[name] = self.published.get(name, frozenset()) | statement.publishes
        self.data |= statement.binds - defined - self.modules.keys()

    def changed_by(self, statement: Statement) -> set[str]:
        """The names whose objects a statement may change when it runs."""
        doings = _Doings(statement.node)
        found = self._changes(doings) | self._effects_of_calls(doings)
        return {name for name in found if name not in self.modules}

    def _changes(self, doings: _Doings) -> set[str]:
        """The names that are changed there and then."""
        found: set[str] = set()
        for call in doings.calls:
            found |= self._changed_by_call(call)
        # of a loop's variable: what the loop goes through
        found |= doings.behind(found) & self.data
        return found | doings.targets | doings.behind(doings.targets)

    def _changed_by_call(self, call: _Call) -> set[str]:
        found: set[str] = set()
        known = call.name in _CHANGING or (call.name[-1:] == "_" != call.name[:1])
        classes = self.methods.get(call.name, set()) if call.method else set()
        if call.root in self.data:
            if call.for_effect or known or classes:
                found.add(call.root)
        elif call.root in classes or (call.root in self.functions and call.name == "register"):
            found.add(call.root)
        if known or (call.for_effect and self._ours(call.root)) or self._changes_given(call.root):
            found |= {name for name in call.given if name in self.data}
        return found

    def _ours(self, name: str) -> bool:
        """Whether what a call goes to may change what it is given; printing and drawing do not."""
        module = self.modules.get(name, "")
        if module:
            return screen.fine(module) and not module.startswith("toytorch.viz")
        return name in self.functions or name in self.classes or name in self.data

    @functools.cache  # noqa: B019 (as short-lived as the slice)
    def _changes_given(self, name: str) -> bool:
        """Whether a function of the notebook changes what it is given."""
        for node in self.functions.get(name, ()):
            assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            given = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
            doings = _Doings(node, body=True)
            known = (c for c in doings.calls if c.for_effect or c.name in _CHANGING)
            if given & (
                doings.targets | {c.root for c in known} | {one for c in known for one in c.given}
            ):
                return True
        return False

    def _effects_of_calls(self, doings: _Doings) -> set[str]:
        found: set[str] = set()
        for call in doings.calls:
            for name in self.methods.get(call.name, ()) if call.method else (call.root,):
                found |= self.effects(name)
        return found

    def effects(self, name: str) -> set[str]:
        """The names of the module that calling a function or class changes or gives."""
        if name not in self._effects:
            self._effects[name] = set()  # of a call of itself: no more than the others
            found: set[str] = set(self.published.get(name, ()))
            for node in [*self.functions.get(name, ()), *self.classes.get(name, ())]:
                doings = _Doings(node, body=True)
                found |= self._changes(doings) & self.globals[name]
                found |= self._effects_of_calls(doings)
            self._effects[name] = found
        return self._effects[name]


@dataclass(frozen=True)
class _Call:
    root: str  # the name that the call begins with
    name: str  # the last name of what is called
    method: bool
    given: tuple[str, ...]  # names among the arguments
    for_effect: bool  # nothing is done with the result


class _Doings(ast.NodeVisitor):
    """What a statement does to things: its targets inside them, and its calls.

    Of a definition that is what happens when it is made, its decorators and its class body; with
    ``body`` what happens when it is called.
    """

    def __init__(self, node: ast.AST, *, body: bool = False) -> None:
        self.targets: set[str] = set()
        self.calls: list[_Call] = []
        self.stands_for: dict[str, set[str]] = {}
        self._thrown_away: set[ast.AST] = set()
        self._whole = body
        self.visit(node)

    def behind(self, names: set[str]) -> set[str]:
        """What variables of loops and of ``with`` come from."""
        return {one for name in names for one in self.stands_for.get(name, ())}

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._decorators(node.decorator_list)
        self.visit(node.args)
        if self._whole:
            for inner in node.body:
                self.visit(inner)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._decorators([*node.decorator_list, *node.bases, *(k.value for k in node.keywords)])
        for inner in node.body:
            self.visit(inner)

    def _decorators(self, nodes: list[ast.expr]) -> None:
        for node in nodes:
            self._thrown_away.add(node)
            if isinstance(node, ast.Call):
                self.visit(node)
            else:
                self._call(node, (), node)

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        self._thrown_away.add(value)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute | ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.targets |= {_root(node)}
        self.generic_visit(node)

    visit_Subscript = visit_Attribute

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.targets |= {_root(node.target)}
        self.generic_visit(node)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self._alias(node.target, node.iter)
        self.generic_visit(node)

    visit_AsyncFor = visit_For

    def visit_withitem(self, node: ast.withitem) -> None:
        if node.optional_vars is not None:
            self._alias(node.optional_vars, node.context_expr)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._alias(node.target, node.iter)
        self.generic_visit(node)

    def _alias(self, target: ast.expr, source: ast.expr) -> None:
        behind = {n.id for n in ast.walk(source) if isinstance(n, ast.Name)}
        for name in ast.walk(target):
            if isinstance(name, ast.Name):
                self.stands_for.setdefault(name.id, set()).update(behind)

    def visit_Call(self, node: ast.Call) -> None:
        self._call(node.func, [*node.args, *(k.value for k in node.keywords)], node)
        self.generic_visit(node)

    def _call(self, called: ast.expr, given: Iterable[ast.expr], whole: ast.expr) -> None:
        root, method = _root(called), not isinstance(called, ast.Name)
        name = called.attr if isinstance(called, ast.Attribute) else root
        for_effect = whole in self._thrown_away
        if isinstance(called, ast.Call) and for_effect:  # @register("name"): its result is called
            self._thrown_away.add(called)
        given = list(given)
        names = tuple(_root(one.value if isinstance(one, ast.Starred) else one) for one in given)
        self.calls.append(_Call(root, name, method, tuple(filter(None, names)), for_effect))
        for one in given:  # map(items.append, …)
            if isinstance(one, ast.Attribute) and one.attr in _CHANGING:
                self.targets.add(_root(one))


def _root(node: ast.expr) -> str:
    """The name at the left end of ``a.b[c].d(e).f``; empty where there is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""

"""The third hint completed: what stands in its gaps comes from the reference, all else is the hint's.

A skeleton is the answer with its hard lines replaced by ``...``. A machine has no ideas, so it looks
the gaps up. What it proves is that the hint leads there: outside the gaps the skeleton and the
reference are the same program. Names may differ, as long as they do so throughout.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, field
from typing import Any


class Mismatch(ValueError):
    """A skeleton says something, outside its gaps, that its reference does not."""


@dataclass
class Filled:
    """A skeleton with its gaps filled.

    Fields:
        source: the whole as code.
        gaps: what was put into each gap, in order.
    """

    source: str
    gaps: list[str]


def fill(skeleton: str, reference: str) -> Filled:
    """Complete a skeleton from the reference.

    Raises:
        Mismatch: they differ outside the gaps; the message says where.
    """
    plan, answer = ast.parse(skeleton), ast.parse(reference)
    match = _Match()
    if not match.bodies(_plain(plan.body), _plain(answer.body)):
        raise Mismatch(match.why())
    back = {theirs: mine for mine, theirs in match.names.items()}
    filler = _Fill(
        *(
            {key: [_renamed(node, back) for node in found] for key, found in some.items()}
            for some in (match.gaps, match.ahead, match.after)
        )
    )
    done = ast.fix_missing_locations(filler.visit(plan))
    gaps = ["\n".join(map(ast.unparse, nodes)) for nodes in filler.used]
    return Filled(ast.unparse(done) + "\n", gaps)


def _gap(node: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _helps(node: Any) -> bool:
    """Whether a statement only gives something a name."""
    return isinstance(node, ast.Assign) and all(
        isinstance(one, ast.Name | ast.Tuple) for one in node.targets
    )


def _words(node: Any) -> bool:
    """Whether a node is a text, such as an error's message."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _plain(body: list[Any]) -> list[Any]:
    """Statements without the docstring."""
    first = body[0] if body else None
    said = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if said and isinstance(first.value.value, str) else body  # type: ignore[union-attr]


@dataclass
class _Match:
    """A comparison under way: names of the skeleton with theirs, and what stands in each gap."""

    names: dict[str, str] = field(default_factory=dict)
    gaps: dict[int, list[Any]] = field(default_factory=dict)
    ahead: dict[int, list[Any]] = field(default_factory=dict)  # lines that a gap needs before it
    given: dict[str, Any] = field(default_factory=dict)  # what those lines name
    after: dict[int, list[Any]] = field(default_factory=dict)  # methods that no hint has
    own: set[str] = field(default_factory=set)  # names that only the skeleton has
    furthest: tuple[int, str] = (0, "nothing is alike")

    def why(self) -> str:
        """Where the two part."""
        return self.furthest[1]

    def bodies(self, plan: list[Any], answer: list[Any]) -> bool:
        """Statements against statements; a gap stands for one or more, the fewest that will do."""
        if not plan:
            return self._say(not answer, "the reference goes on", answer[0] if answer else None)
        first, rest = plan[0], plan[1:]
        if isinstance(first, ast.Expr) and _gap(first.value):
            for count in range(1, len(answer) - len(rest) + 1):
                before = self._keep()
                self.gaps[id(first)] = answer[:count]
                if self.bodies(rest, answer[count:]):
                    return True
                self._back(before)
            return False
        before = self._keep()
        if answer and self.nodes(first, answer[0]) and self.bodies(rest, answer[1:]):
            return True
        self._back(before)
        if answer and _helps(answer[0]) and any(map(_gap, ast.walk(first))):
            # a line that only prepares what stands in the gap
            self.ahead[id(first)] = [*self.ahead.get(id(first), []), answer[0]]
            if isinstance(answer[0].targets[0], ast.Name):
                self.given[answer[0].targets[0].id] = answer[0].value
            if self.bodies(plan, answer[1:]):
                return True
            self._back(before)
        if _helps(first) and not any(map(_gap, ast.walk(first))):
            # a line that the hint has and the reference says within another one
            self.own |= {one.id for one in first.targets if isinstance(one, ast.Name)}
            if self.bodies(rest, answer):
                return True
        self._back(before)
        return self._say(False, "it differs" if answer else "the reference has ended", first)

    def nodes(self, plan: Any, answer: Any) -> bool:
        """Two trees, in which a gap stands for any expression."""
        if _gap(plan) and isinstance(answer, ast.expr):
            self.gaps[id(plan)] = [answer]
            return True
        if (
            isinstance(answer, ast.Name)
            and answer.id in self.given
            and not isinstance(plan, ast.Name)
        ):
            return self.nodes(plan, self.given[answer.id])
        if isinstance(plan, ast.Name) and plan.id in self.own:
            return True
        if isinstance(plan, ast.List) and len(plan.elts) == 1 and _gap(plan.elts[0]):
            self.gaps[id(plan)] = [answer]
            return isinstance(answer, ast.List | ast.ListComp)
        if isinstance(plan, ast.ClassDef) and isinstance(answer, ast.ClassDef):
            return plan.name == answer.name and self._classes(plan, answer)
        if isinstance(plan, list) and isinstance(answer, list):
            if any(isinstance(one, ast.stmt) for one in [*plan, *answer]):
                return self.bodies(_plain(plan), _plain(answer))
            return len(plan) == len(answer) and all(map(self.nodes, plan, answer))
        if type(plan) is not type(answer) and not (_words(plan) and _words(answer)):
            return self._say(False, "another kind of code", plan)
        if isinstance(plan, ast.Name):
            return self._say(self._named(plan.id, answer.id), f"{plan.id} is {answer.id}", plan)
        if isinstance(plan, ast.arg):
            return self._say(self._named(plan.arg, answer.arg), f"{plan.arg} is {answer.arg}", plan)
        if _words(plan) and _words(answer):
            return True  # what a message says is up to whoever writes it
        if isinstance(plan, ast.Call):
            return self._calls(plan, answer)
        if isinstance(plan, ast.AST):
            hidden = ("ctx", "annotation", "returns", "type_comment", "kind")
            fields = [name for name in plan._fields if name not in hidden]
            alike = all(
                self.nodes(getattr(plan, name, None), getattr(answer, name, None))
                for name in fields
            )
            return self._say(alike, "it differs", plan)
        return bool(plan == answer)

    def _classes(self, plan: ast.ClassDef, answer: ast.ClassDef) -> bool:
        """Two classes: methods by their names; those that the hint leaves out are written after it."""
        theirs = {
            one.name: one for one in answer.body if isinstance(one, ast.FunctionDef | ast.ClassDef)
        }
        rest = [one for one in _plain(answer.body) if one not in theirs.values()]
        simple = [one for one in _plain(plan.body) if getattr(one, "name", "") not in theirs]
        for one in plan.body:
            if getattr(one, "name", "") in theirs and not self.nodes(one, theirs.pop(one.name)):
                return False
        self.after[id(plan)] = list(theirs.values())
        return self.bodies(simple, rest)

    def _calls(self, plan: ast.Call, answer: ast.Call) -> bool:
        """Two calls: a gap at the end stands for all further arguments."""
        if not self.nodes(plan.func, answer.func):
            return False
        mine, theirs = list(plan.args), list(answer.args)
        known = {one.arg: one.value for one in answer.keywords}
        open_end = bool(mine) and _gap(mine[-1]) and not plan.keywords
        if open_end and (len(theirs) != len(mine) or answer.keywords):
            last = mine.pop()
            rest = [*theirs[len(mine) :], *answer.keywords]
            theirs = theirs[: len(mine)]
            self.gaps[id(last)] = rest
        if len(mine) != len(theirs) or not all(map(self.nodes, mine, theirs)):
            return self._say(False, "other arguments", plan)
        # the hint may leave an optional one out, such as strict=True; it adds none
        return all(k.arg in known and self.nodes(k.value, known[k.arg]) for k in plan.keywords)

    def _named(self, mine: str, theirs: str) -> bool:
        """Whether a name of the skeleton may stand for one of the reference."""
        if mine not in self.names and theirs in self.names.values():
            return False
        return self.names.setdefault(mine, theirs) == theirs

    def _keep(self) -> tuple[Any, ...]:
        return dict(self.names), dict(self.gaps), dict(self.ahead), dict(self.given), set(self.own)

    def _back(self, before: tuple[Any, ...]) -> None:
        names, gaps, ahead, given, own = before
        self.names, self.gaps, self.ahead = dict(names), dict(gaps), dict(ahead)
        self.given, self.own = dict(given), set(own)

    def _say(self, alike: bool, why: str, where: Any) -> bool:
        line = getattr(where, "lineno", 0)
        if not alike and line >= self.furthest[0]:
            text = ast.unparse(where) if isinstance(where, ast.AST) else ""
            self.furthest = (line, f"line {line}, {text.splitlines()[0] if text else ''!r}: {why}")
        return alike


def _renamed(node: Any, names: dict[str, str]) -> Any:
    """A copy in the names of the skeleton."""
    node = copy.deepcopy(node)
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            one.id = names.get(one.id, one.id)
        elif isinstance(one, ast.arg):
            one.arg = names.get(one.arg, one.arg)
    return node


class _Fill(ast.NodeTransformer):
    """Puts into each gap what was found for it."""

    def __init__(
        self,
        found: dict[int, list[Any]],
        ahead: dict[int, list[Any]],
        after: dict[int, list[Any]],
    ) -> None:
        self.found, self.ahead, self.after = found, ahead, after
        self.used: list[list[Any]] = []

    def visit(self, node: Any) -> Any:
        """A gap becomes what stands there; everything else stays."""
        before = self.ahead.pop(id(node), [])
        if before:
            self.used.append(before)
            return [*before, self.visit(node)]
        put = self.found.get(id(node))
        if put is None:
            visit = getattr(self, f"visit_{type(node).__name__}", self.generic_visit)
            return visit(node)
        self.used.append(put)
        return put if isinstance(node, ast.stmt) or len(put) != 1 else put[0]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        """Methods that the hint does not have come last."""
        more = self.after.pop(id(node), [])
        self.generic_visit(node)
        self.used += [[one] for one in more]
        node.body += more
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """A gap that stands for several arguments becomes them, named ones too."""
        self.generic_visit(node)
        keywords = [one for one in node.args if isinstance(one, ast.keyword)]
        node.args = [one for one in node.args if not isinstance(one, ast.keyword)]
        node.keywords += keywords
        return node

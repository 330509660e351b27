"""Branches: `if`, conditional expressions, and what a test tells about a name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from toytorch.jit import types
from toytorch.jit.builtins import fits
from toytorch.jit.ir import Block, Node, Value
from toytorch.jit.script.annotations import spelled
from toytorch.jit.script.base import Base
from toytorch.jit.script.errors import CompileError
from toytorch.jit.script.scope import Scope
from toytorch.jit.script.values import At, Known, ModuleValue
from toytorch.jit.types import Type

# How a list of statements ends. EXITS is break or continue, after which the names it assigned to
# are looked at, as they are not where it returns. Where one raises, nothing follows and no flag has
# to be asked.
FALLS, EXITS, RETURNS, RAISES, MAYBE = ("falls through", "exits", "returns", "raises", "may exit")
LEAVES = (EXITS, RETURNS, RAISES)


def either_way(a: str, b: str) -> str:
    """How an if ends whose branches end like this."""
    if RAISES in (a, b):
        return b if a == RAISES else a
    return a if a == b else EXITS if a in LEAVES and b in LEAVES else MAYBE


class Branches(Base):
    """Two blocks of which one runs."""

    def branch(self, test: Value, yes: Callable[[], str], no: Callable[[], str], at: At) -> str:
        """A prim::If; says how it ends."""
        node = self.emit("prim::If", [test], [], at)
        scopes: list[Scope] = []
        ends: list[str] = []
        for run in (yes, no):
            block = Block()
            node.blocks.append(block)
            with self.inside(block) as scope:
                ends.append(run())
            scopes.append(scope)
        for name in dict.fromkeys([*scopes[0].assigned, *scopes[1].assigned]):
            if name.startswith("#") or any(end not in (RETURNS, RAISES) for end in ends):
                self.join(name, node, scopes, ends, at)
        return either_way(*ends)

    def join(self, name: str, node: Node, scopes: list[Scope], ends: list[str], at: At) -> None:
        """What a name stands for after an if."""
        found = [s.find(name) for s in scopes]
        free = [end in LEAVES or name == "#result" for end in ends]  # nobody will look at it there
        for i in (0, 1):
            if found[i] is None and not free[i]:
                which = ("true", "false")[i]
                why = scopes[i].reason(name) or f"{name} is not defined in the {which} branch"
                self.scope.forget(name, why)
                return
        if found[0] is found[1]:
            self.scope.set(name, found[0])
            return
        if not all(v is None or isinstance(v, Value) for v in found):
            self.join_known(name, found, free)
            return
        kinds = [types.NEVER if v is None else v.type for v in found]
        kind = types.join(*kinds)
        if kind is None and any(free):
            i = free.index(True)
            kind, found[i] = kinds[1 - i], None
        if kind is None:
            self.scope.forget(
                name,
                f"Type mismatch: {name} is set to type {spelled(kinds[0])} in "
                f"the true branch and type {spelled(kinds[1])} in the false branch",
            )
            return
        for i, block in enumerate(node.blocks):
            block.outputs.append(
                self.uninitialized(block, kind, at) if found[i] is None else found[i]
            )
        made = self.graph.value(kind, label(name))
        made.node = node
        node.outputs.append(made)
        if name == "#result":
            self.results += [
                made,
                *(block.outputs[-1] for i, block in enumerate(node.blocks) if found[i] is None),
            ]
        self.scope.set(name, made)

    def join_known(self, name: str, found: list[Any], free: list[bool]) -> None:
        """`join` for names that stand for what is no value of the graph."""
        known = [f for f in found if f is not None]
        same = all(
            isinstance(f, Known) and isinstance(known[0], Known) and f.object is known[0].object
            for f in known
        )
        if same or any(free):
            self.scope.set(name, known[0] if same else found[free.index(False)])
        else:
            self.scope.forget(
                name, f"{name} is set to something else in each branch, and only values may be"
            )

    def uninitialized(self, block: Block, kind: Type, at: At) -> Value:
        """A value that nobody looks at."""
        node = self.graph.make("prim::Uninitialized", [], [kind], {}, self.program.source(at))
        block.nodes.append(node)
        return node.output

    def choose(
        self,
        test: Value,
        yes: Callable[[], Value],
        no: Callable[[], Value],
        at: At,
        hint: Type | None = None,
    ) -> Value:
        """A value that one of two blocks gives; of different types where the `hint` takes both."""
        node = self.emit("prim::If", [test], [], at)
        for run in (yes, no):
            block = Block()
            node.blocks.append(block)
            with self.inside(block):
                block.outputs.append(run())
        a, b = (block.outputs[0].type for block in node.blocks)
        kind = types.join(a, b)
        if kind is None and {a, b} <= {types.INT, types.FLOAT, types.NUMBER}:
            kind = types.NUMBER
        if kind is None and hint is not None and fits(hint, a, {}) and fits(hint, b, {}):
            kind = hint
        if kind is None:
            raise self.fail(
                f"Type mismatch: the true expression has type {spelled(a)} but the "
                f"false expression has type {spelled(b)}",
                at,
            )
        made = self.graph.value(kind)
        made.node = node
        node.outputs.append(made)
        return made

    def if_statement(self, node: ast.If, rest: Sequence[Any]) -> tuple[str, bool]:
        """An if, and whether what follows it went into one of its branches.

        It does where the other branch always exits: then no flag has to be asked, and what the test
        says of a name holds in what follows.
        """
        known = self.static(node.test)
        if known is not None:
            taken = node.body if known else node.orelse
            return self.body([*taken, *rest]), True
        test = self.condition(node.test)

        def run(statements: Sequence[Any], outcome: bool) -> Callable[[], str]:
            def emit() -> str:
                self.refine(node.test, outcome)
                return self.body(statements)

            return emit

        yes, no = list(node.body), list(node.orelse)
        useful = LEAVES if tells(node.test) else (EXITS, RETURNS)
        moved = bool(rest) and (leaving(yes) in useful or leaving(no) in useful)
        if moved:
            if leaving(yes) in useful:
                no += rest
            else:
                yes += rest
        return self.branch(test, run(yes, True), run(no, False), node), moved

    # -- what a test tells -------------------------------------------------------------------------

    def static(self, node: ast.expr) -> bool | None:
        """The outcome of a test that is known while compiling; None if it is not."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.static(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            stop, parts = isinstance(node.op, ast.Or), []
            with self.inside(Block()):  # thrown away: a part tells something only to those after it
                for part in node.values:
                    parts.append(self.static(part))
                    self.refine(part, not stop)
            return stop if stop in parts else None if None in parts else not stop
        subject = none_test(node)
        if subject is not None:
            return self.static_none(*subject)
        if isinstance(node, ast.Call):
            return self.static_call(node)
        if (
            isinstance(node, ast.Compare)
            and len(node.ops) == 1
            and isinstance(node.ops[0], (ast.Eq, ast.NotEq))
        ):
            left, right = self.peek(node.left), self.peek(node.comparators[0])
            if (
                isinstance(left, Known)
                and isinstance(right, Known)
                and isinstance(left.object, str)
            ):
                return bool(left.object == right.object) == isinstance(node.ops[0], ast.Eq)
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return node.value
        if isinstance(node, (ast.Name, ast.Attribute)):
            item = self.peek(node)
            if isinstance(item, Known) and isinstance(item.object, bool):
                return item.object
        return None

    def static_none(self, subject: ast.expr, says_none: bool) -> bool | None:
        """Whether `subject is None`, where its type tells."""
        item = self.peek(subject)
        if isinstance(item, Value):
            if item.type == types.NONE:
                return says_none
            if types.NONE in types.members(item.type) or item.type in (types.ANY, types.NEVER):
                return None
            return not says_none
        if isinstance(item, Known):
            return (item.object is None) == says_none
        return None if item is None else not says_none

    def static_call(self, node: ast.Call) -> bool | None:
        """isinstance, hasattr and is_scripting are answered while compiling."""
        callee = self.peek(node.func)
        name = getattr(callee.object, "__name__", "") if isinstance(callee, Known) else ""
        if name in ("is_scripting", "is_tracing"):
            return name == "is_scripting"
        if name == "hasattr" and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
            item, attribute = self.expression(node.args[0]), str(node.args[1].value)
            if isinstance(item, ModuleValue):
                return hasattr(item.module, attribute)
            if isinstance(item, Known):
                return hasattr(item.object, attribute)
            raise self.fail(
                "hasattr's first argument must be an object or module, got a normal value instead",
                node,
            )
        if name == "isinstance" and len(node.args) == 2:
            item = self.expression(node.args[0])
            if isinstance(item, ModuleValue):
                return isinstance(item.module, self.classes(node.args[1]))
            have = self.as_value(item, node).type
            wanted = self.kinds(node.args[1], have)
            if any(w.contains(have) for w in wanted):
                return True
            if isinstance(have, types.Optional) or any(
                w.contains(m) for w in wanted for m in types.members(have)
            ):
                return None
            return None if have in (types.ANY, types.NUMBER) else False
        return None

    def peek(self, node: ast.expr) -> Any:
        """What an expression stands for, where looking has no effect: names and attributes."""
        if isinstance(node, ast.Name):
            return self.expression(node)
        if isinstance(node, ast.Attribute) and isinstance(
            self.peek(node.value), (Known, ModuleValue, Value)
        ):
            return self.expression(node)
        if isinstance(node, ast.Constant):
            return Known(node.value)
        return None

    def classes(self, node: ast.expr) -> tuple[Any, ...]:
        """The classes of isinstance, as Python's objects."""
        found = [self.expression(p) for p in alternatives(node)]
        return tuple(f.object for f in found if isinstance(f, Known))

    def kinds(self, node: ast.expr, have: Type) -> list[Type]:
        """The types of isinstance's second argument, for a value of the type `have`; classes of
        modules are none. `list` is the list that the value may be."""
        found = []
        for part in alternatives(node):
            family = FAMILIES.get(part.id) if isinstance(part, ast.Name) else None
            if family is not None:
                if have == types.ANY:
                    raise self.fail(
                        "isinstance of a value of type Any cannot ask for a "
                        f"{family[0]} of unknown elements",
                        part,
                    )
                found += [m for m in types.members(have) if isinstance(m, family[1])]
                continue
            try:
                found.append(self.annotation(part))
            except CompileError:
                continue  # a module's class
        return found

    def refine(self, node: ast.expr, outcome: bool) -> None:
        """Lets names stand for what they must be where a test came out like this."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.refine(node.operand, not outcome)
        elif isinstance(node, ast.BoolOp):
            if isinstance(node.op, ast.And) == outcome:
                for part in node.values:
                    self.refine(part, outcome)
        elif isinstance(node, ast.Call):
            self.refine_isinstance(node, outcome)
        else:
            subject = none_test(node)
            if subject is not None and isinstance(subject[0], ast.Name):
                name, is_none = subject[0].id, subject[1] == outcome
                value = self.scope.find(name)
                if isinstance(value, Value) and types.NONE in types.members(value.type):
                    if is_none:
                        self.scope.refine(name, self.constant(None, subject[0]))
                    else:
                        others = [m for m in types.members(value.type) if m != types.NONE]
                        self.scope.refine(name, self.cast(value, types.union(others), subject[0]))

    def refine_isinstance(self, node: ast.Call, outcome: bool) -> None:
        """What isinstance tells of a name."""
        if not (asks_type(node) and len(node.args) == 2 and isinstance(node.args[0], ast.Name)):
            return
        name = node.args[0].id
        value = self.scope.find(name)
        if not isinstance(value, Value):
            return
        wanted = self.kinds(node.args[1], value.type)
        parts = types.members(value.type)
        left = [m for m in parts if any(w.contains(m) for w in wanted) == outcome]
        if outcome and len(wanted) == 1 and len(left) < 2:
            self.scope.refine(name, self.cast(value, wanted[0], node))
        elif left == [types.NONE]:
            self.scope.refine(name, self.constant(None, node))
        elif len(parts) > len(left) > 0:
            self.scope.refine(name, self.cast(value, types.union(left), node))


FAMILIES = {
    "list": ("list", types.List),
    "tuple": ("tuple", types.Tuple),
    "dict": ("dictionary", types.Dict),
}


def alternatives(node: ast.expr) -> list[ast.expr]:
    """The parts of isinstance's second argument, tuples in tuples opened."""
    if isinstance(node, ast.Tuple):
        return [part for item in node.elts for part in alternatives(item)]
    return [node]


def asks_type(node: ast.Call) -> bool:
    """Whether a call is `isinstance(…)` or `torch.jit.isinstance(…)`."""
    func = node.func
    return (func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")) == "isinstance"


def none_test(node: ast.expr) -> tuple[ast.expr, bool] | None:
    """(subject, True) for `subject is None`, (subject, False) for `is not None`."""
    if (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.ops[0], (ast.Is, ast.IsNot))
    ):
        says = isinstance(node.ops[0], ast.Is)
        right, left = node.comparators[0], node.left
        if isinstance(right, ast.Constant) and right.value is None:
            return left, says
        if isinstance(left, ast.Constant) and left.value is None:
            return right, says
    return None


def leaving(statements: Sequence[Any]) -> str:
    """How a list of statements ends, as far as its form tells; FALLS if it does not."""
    for s in statements:
        if isinstance(s, ast.Return):
            return RETURNS
        if isinstance(s, (ast.Break, ast.Continue)):
            return EXITS
        if isinstance(s, ast.Raise):
            return RAISES
        if isinstance(s, ast.If):
            ends = leaving(s.body), leaving(s.orelse)
            if FALLS not in ends:
                return either_way(*ends)
        if isinstance(s, ast.With) and leaving(s.body) != FALLS:
            return leaving(s.body)
    return FALLS


def tells(test: ast.expr) -> bool:
    """Whether a test may say more of a name than its type does."""
    return any(
        (isinstance(n, ast.expr) and none_test(n) is not None)
        or (isinstance(n, ast.Call) and asks_type(n))
        for n in ast.walk(test)
    )


def label(name: str) -> str:
    """A name for a value of the graph."""
    return "" if name.startswith("#") else name

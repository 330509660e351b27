"""Loops: prim::Loop, loops that are written out, comprehensions.

There are two forms of prim::Loop: one that counts (its condition is always true) and one that asks
a condition (its number of iterations is unbounded). A counting loop that may be left early becomes the
second form with a counter of its own, as in PyTorch's graphs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from toytorch.jit import types
from toytorch.jit.ir import Block, Value
from toytorch.jit.script.annotations import bracketed, spelled
from toytorch.jit.script.branches import FALLS, MAYBE, label
from toytorch.jit.script.statements import Statements
from toytorch.jit.script.values import At, Counted, Given, Items, Known, ModuleValue
from toytorch.nn import ModuleDict

UNBOUNDED = 2**63 - 1
OPEN = (
    "Because a loop over a tuple or a module list is written out, break and continue are not "
    "supported in it"
)


class Loops(Statements):
    """Emits loops."""

    def on_While(self, s: ast.While) -> str:
        if s.orelse:
            raise self.unsupported("else branches of while loops", s.orelse[0])
        return self.loop(s, s.body, test=lambda: self.condition(s.test))

    def on_For(self, s: ast.For) -> str:
        if s.orelse:
            raise self.unsupported("else branches of for loops", s.orelse[0])
        if self.program.closed and isinstance(s.iter, ast.Tuple) and not bracketed(s.iter):
            raise self.fail("List of iterables is not supported currently", s)
        return self.for_loop(s.target, self.expression(s.iter), s.body, s)

    def for_loop(self, target: ast.expr, item: object, statements: Sequence[Any], at: Any) -> str:
        """A loop over anything that can be looped over."""
        items = self.iterable(item, getattr(at, "iter", at))
        if isinstance(items, Items):
            return self.written_out(target, items, statements, at)
        return self.loop(
            at,
            statements,
            count=items.length(),
            targets=[target],
            start=lambda i: self.bind(target, items.item(i), at),
        )

    def written_out(self, target: ast.expr, items: Items, statements: Sequence[Any], at: At) -> str:
        """A loop over things known one by one: the body once for each."""
        for node in exits_of(statements):
            if not isinstance(node, ast.Return):
                raise self.fail(OPEN, node)
        iterations: list[Any] = []
        for item in items.items:
            iterations += [partial(self.bound, target, item, at), *statements]
        return self.body(iterations)

    def bound(self, target: ast.expr, item: object, at: At) -> str:
        """`bind` as a statement."""
        self.bind(target, item, at)
        return FALLS

    def loop(
        self,
        at: At,
        statements: Sequence[Any],
        count: Value | None = None,
        test: Callable[[], Value] | None = None,
        targets: Sequence[ast.expr] = (),
        start: Callable[[Value], None] | None = None,
    ) -> str:
        """A prim::Loop of `count` iterations, or while `test` holds; `start` begins an iteration."""
        exits = exits_of(statements)
        returns = any(isinstance(n, ast.Return) for n in exits)
        stops = returns or any(isinstance(n, ast.Break) for n in exits)
        level = self.level + 1
        if stops:
            self.scope.set(f"#break{level}", self.constant(False, at))
        if returns and self.scope.find("#result") is None:
            self.results.append(self.uninitialized(self.block, types.NEVER, at))
            self.scope.set("#result", self.results[-1])
        counts = count is not None and stops  # with a counter of its own
        carried = self.carried([*targets, *statements], level, stops, returns)
        initial = [self.scope.find(n) for n in carried]
        trip, first = self.beginning(count, test, counts, at)
        if counts:
            initial.append(self.constant(0, at))
        results = [(v.type, label(n)) for v, n in zip(initial, [*carried, "#turn"])]
        node = self.emit("prim::Loop", [trip, first, *initial], results, at)
        block = Block()
        node.blocks.append(block)
        with self.inside(block) as scope:
            index = self.graph.value(types.INT)
            inputs = [
                self.graph.value(v.type, label(n)) for v, n in zip(initial, [*carried, "#turn"])
            ]
            block.inputs = [index, *inputs]
            scope.names.update(zip(carried, inputs))
            if exits:
                scope.set(f"#skip{level}", self.constant(False, at))
            self.level = level
            if start is not None:
                start(inputs[-1] if counts else index)
            self.body(statements)
            self.level = level - 1
            after = [self.kept(scope.find(n), v, n, at) for n, v in zip(carried, inputs)]
            going = self.goes_on(test, level, stops, at)
            if counts:
                after.append(self.one_builtin("add", [inputs[-1], self.constant(1, at)], at))
                more = self.one_builtin("lt", [after[-1], count], at)
                going = self.one_builtin("__and__", [more, going], at)
            block.outputs = [going, *after]
        for name, value in zip(carried, node.outputs):
            self.scope.set(name, value)
        if returns:
            self.settle(node, block, carried.index("#result"))
        return MAYBE if returns else FALLS

    def beginning(
        self, count: Value | None, test: Callable[[], Value] | None, counts: bool, at: At
    ) -> tuple[Value, Value]:
        """How many iterations there are at most, and whether there is a first."""
        if count is None:
            assert test is not None
            return self.constant(UNBOUNDED, at), test()
        if counts:
            return self.constant(UNBOUNDED, at), self.one_builtin(
                "gt", [count, self.constant(0, at)], at
            )
        return count, self.constant(True, at)

    def goes_on(self, test: Callable[[], Value] | None, level: int, stops: bool, at: At) -> Value:
        """Whether there is another iteration, seen from the end of one."""
        if not stops:
            return self.constant(True, at) if test is None else test()
        stopped = self.scope.find(f"#break{level}")
        if test is None:
            return self.one_builtin("__not__", [stopped], at)
        return self.choose(stopped, lambda: self.constant(False, at), test, at)

    def carried(
        self, statements: Sequence[Any], level: int, stops: bool, returns: bool
    ) -> list[str]:
        """The names that an iteration gives to the next one."""
        hidden = self.local_names()
        names = [
            n
            for n in assigned_names(statements)
            if n not in hidden and isinstance(self.scope.find(n), Value)
        ]
        if stops:
            names.append(f"#break{level}")
        if returns:
            names.append("#result")
            names += [f"#skip{i}" for i in range(level)] + [f"#break{i}" for i in range(1, level)]
        return list(dict.fromkeys(names))

    def kept(self, value: Any, before: Value, name: str, at: At) -> Value:
        """The value that an iteration leaves for the next one."""
        if not isinstance(value, Value):
            raise self.fail(self.scope.reason(name) or f"undefined value {name}", at)
        if name != "#result" and not before.type.contains(value.type):
            raise self.retyped(name, before, value, at)
        return value

    def settle(self, node: Any, block: Block, place: int) -> None:
        """The type of a result that was not known before the loop."""
        kind = types.join(node.inputs[place + 2].type, block.outputs[place + 1].type)
        assert kind is not None
        self.results += [node.outputs[place], block.inputs[place + 1]]
        node.outputs[place].type = block.inputs[place + 1].type = kind

    def one_builtin(self, name: str, args: Given, at: At) -> Value:
        """The value of a builtin."""
        return self.as_value(self.call_builtin(name, args, at), at)

    # -- what can be looped over -------------------------------------------------------------------

    def iterable(self, item: object, at: Any) -> Items | Counted:
        """Something as items known one by one, or as a length and an item at a place."""
        if isinstance(item, (Items, Counted)):
            return item
        if (
            isinstance(item, ModuleValue)
            and not isinstance(item.module, ModuleDict)
            and (
                type(item.module).__name__ in ("Sequential", "ModuleList", "ParameterList")
                or hasattr(type(item.module), "__iter__")
            )
        ):
            names = list(item.module._modules or item.module._parameters)
            return Items([self.attribute(item, name, at) for name in names])
        if isinstance(item, ModuleValue) and isinstance(item.module, ModuleDict):
            return Items([Known(k) for k in item.module._modules])
        if isinstance(item, Known) and isinstance(item.object, (tuple, list, range)):
            return Items([Known(v) for v in item.object])
        value = self.as_value(item, at)
        if isinstance(value.type, types.Tuple):
            return Items(self.elements(value, at))
        if isinstance(value.type, types.Dict):
            value = self.one_builtin("keys", [value], at)
        if isinstance(value.type, types.Tensor):
            return Counted(
                lambda: self.one_builtin("len", [value], at),
                lambda i: self.call_record("select", [value, self.constant(0, at), i], at),
            )
        if isinstance(value.type, types.List) or value.type == types.STR:
            return Counted(
                lambda: self.one_builtin("len", [value], at),
                lambda i: self.call_builtin("__getitem__", [value, i], at),
                lambda: value,
            )
        raise self.fail(f"'{spelled(value.type)}' object is not iterable", at)

    def zipped(self, parts: Sequence[Any], at: At) -> Items | Counted:
        """zip: as many iterations as the shortest has."""
        sources = [self.iterable(p, at) for p in parts]
        known = [s for s in sources if isinstance(s, Items)]
        if not sources:
            raise self.fail("zip expected at least 1 arguments, got 0", at)
        if known:
            if len(known) < len(sources):
                raise self.fail(
                    "Can't iterate over a module list or tuple with a value that does not have a "
                    "statically determinable length",
                    at,
                )
            count = min(len(s.items) for s in known)
            return Items([Items([self.at_place(s, k, at) for s in sources]) for k in range(count)])
        counted = [s for s in sources if isinstance(s, Counted)]

        def length() -> Value:
            shortest = counted[0].length()
            for s in counted[1:]:
                shortest = self.one_builtin("min", [shortest, s.length()], at)
            return shortest

        return Counted(length, lambda i: Items([s.item(i) for s in counted]))

    def at_place(self, source: Items | Counted, k: int, at: At) -> Any:
        """The k-th item."""
        return source.items[k] if isinstance(source, Items) else source.item(self.constant(k, at))

    def enumerated(self, item: object, first: Any, at: At) -> Items | Counted:
        """enumerate."""
        source = self.iterable(item, at)
        offset = 0 if first is None else first
        if isinstance(source, Items):
            if isinstance(offset, Value):
                raise self.fail("the start of enumerate over a tuple must be a constant", at)
            return Items([Items([Known(k + offset), v]) for k, v in enumerate(source.items)])

        def place(i: Value) -> Value:
            if offset == 0:
                return i
            known = offset if isinstance(offset, Value) else Known(offset)
            return self.one_builtin("add", [i, self.as_value(known, at)], at)

        return Counted(source.length, lambda i: Items([place(i), source.item(i)]))

    def counting(self, parts: Sequence[Value], at: At) -> Counted:
        """range."""
        for p in parts:
            if p.type != types.INT:
                raise self.fail(
                    f"range() arguments must be of type int, but found {spelled(p.type)}", at
                )
        if not 1 <= len(parts) <= 3:
            raise self.fail(
                f"range expected at most 3 arguments, got {len(parts)}"
                if parts
                else "range expected at least 1 arguments, got 0",
                at,
            )

        def bounds() -> list[Value]:
            low = parts[0] if len(parts) > 1 else self.constant(0, at)
            step = parts[2] if len(parts) == 3 else self.constant(1, at)
            return [low, parts[min(1, len(parts) - 1)], step]

        if len(parts) == 1:
            return Counted(
                lambda: parts[0], lambda i: i, lambda: self.one_builtin("range_list", bounds(), at)
            )
        whole = bounds()
        return Counted(
            lambda: self.one_builtin("__range_length", whole, at),
            lambda i: self.one_builtin("__derive_index", [i, whole[0], whole[2]], at),
            lambda: self.one_builtin("range_list", whole, at),
        )

    # -- comprehensions ----------------------------------------------------------------------------

    def collected(
        self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp, hint: types.Type | None
    ) -> Value:
        """A list or a dictionary from a comprehension: a loop that appends."""
        is_dict = isinstance(node, ast.DictComp)
        kind: types.Type = (
            types.Dict(types.NEVER, types.NEVER) if is_dict else types.List(types.NEVER)
        )
        made = self.one("prim::DictConstruct" if is_dict else "prim::ListConstruct", [], kind, node)

        def add() -> str:
            if isinstance(node, ast.DictComp):
                key, value = self.value(node.key), self.value(node.value)
                made.type = types.Dict(key.type, value.type)
                self.call_builtin("_set_item", [made, key, value], node)
            else:
                element = self.value(node.elt)
                if isinstance(hint, types.List) and hint.element.contains(element.type):
                    made.type = hint
                else:
                    made.type = types.List(element.type)
                self.call_builtin("append", [made, element], node)
            return FALLS

        before = self.scope.names.copy(), self.scope.assigned.copy()
        own = {n for g in node.generators for n in assigned_names([g.target])}
        outer = self.scope.own
        self.scope.own = outer | own
        self.generators(node.generators, add, node)
        self.scope.own = outer
        self.scope.names, self.scope.assigned = before
        if made.type == kind:  # over nothing
            same = isinstance(hint, type(kind))
            made.type = (
                hint
                if same and hint is not None
                else (types.Dict(types.STR, types.TENSOR) if is_dict else types.List(types.TENSOR))
            )
        return made

    def generators(self, parts: Sequence[ast.comprehension], add: Callable[[], str], at: At) -> str:
        """The loops of a comprehension, one inside the other."""
        if not parts:
            return add()
        first, rest = parts[0], parts[1:]
        if first.is_async:
            raise self.unsupported("async comprehensions", at)

        def inner() -> str:
            if not first.ifs:
                return self.generators(rest, add, at)
            if len(first.ifs) == 1:
                test = first.ifs[0]
            else:
                test = ast.copy_location(ast.BoolOp(ast.And(), first.ifs), first.ifs[0])

            def taken() -> str:
                self.refine(test, True)
                return self.generators(rest, add, at)

            return self.branch(self.condition(test), taken, lambda: FALLS, test)

        return self.for_loop(first.target, self.expression(first.iter), [inner], at)


def exits_of(statements: Sequence[Any]) -> list[Any]:
    """The breaks and continues that belong to a loop with this body, and all its returns."""
    found: list[Any] = []
    for s in statements:
        if isinstance(s, (ast.Break, ast.Continue, ast.Return)):
            found.append(s)
        elif isinstance(s, (ast.For, ast.While)):
            found += [n for n in exits_of(s.body) if isinstance(n, ast.Return)]
        elif isinstance(s, (ast.If, ast.With)):
            found += exits_of([*s.body, *getattr(s, "orelse", ())])
    return found


def assigned_names(nodes: Sequence[Any]) -> list[str]:
    """The names that statements assign to, in order; comprehensions keep theirs."""
    found: list[str] = []
    for node in nodes:
        if isinstance(node, ast.AST):
            found += [
                n.id
                for n in _walk(node)
                if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del))
            ]
        elif isinstance(node, partial):
            found += [n for a in node.args[:1] for n in assigned_names([a])]
    return list(dict.fromkeys(found))


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.ListComp, ast.GeneratorExp, ast.DictComp)):
            yield from _walk(child)

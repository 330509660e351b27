"""Statements, one after the other.

A list of statements may end in three ways: it falls through, it exits (returns, breaks, goes on
with the next iteration, raises), or it may do either. What follows a statement that may exit is put
under a prim::If that asks a flag: `#skip0` says that the function has returned, `#skip2` that the
rest of this iteration of the second loop is not to be run, `#break2` that there is no further iteration.
Flags are names like a program's own, so branches and loops carry them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from typing import Any

from toytorch.amp import autocast
from toytorch.autograd.modes import no_grad
from toytorch.core.op import registry
from toytorch.facts.package import is_ours
from toytorch.facts.syntax import parse as parse_python
from toytorch.jit import types
from toytorch.jit.builtins import fits
from toytorch.jit.ir import Value
from toytorch.jit.script.annotations import Unreadable, read, spelled
from toytorch.jit.script.branches import EXITS, FALLS, LEAVES, MAYBE, RAISES, RETURNS, Branches
from toytorch.jit.script.values import At, Known, ModuleValue
from toytorch.jit.types import Type

NAMES = {
    ast.FunctionDef: "function definitions", ast.AsyncFunctionDef: "async function definitions",
    ast.ClassDef: "class definitions", ast.Try: "try blocks", ast.Import: "import statements",
    ast.ImportFrom: "import statements", ast.Global: "global variables",
    ast.Nonlocal: "nonlocal variables", ast.AsyncFor: "async for loops",
    ast.AsyncWith: "async with statements",
}  # fmt: skip


EMPTY = ("prim::ListConstruct", "prim::DictConstruct")
WORDS_OF = {ast.Mult: "mul", ast.Div: "truediv", ast.BitAnd: "and", ast.BitOr: "or"}  # of __add__


def is_open(value: Value) -> bool:
    """Whether it is a list of a tensor's elements, whose type only an annotation tells."""
    return value.type == types.ANY and value.node is not None and value.node.kind == "aten::tolist"


class Statements(Branches):
    """Emits statements."""

    def body(self, statements: Sequence[Any]) -> str:
        """A list of statements, some of which may be functions that emit; says how it ends."""
        for i, s in enumerate(statements):
            rest = statements[i + 1 :]
            if isinstance(s, ast.If):
                end, done = self.if_statement(s, rest)
                if done:
                    return end
            else:
                end = s() if callable(s) else self.statement(s)
            if end in LEAVES:
                return end
            if end == MAYBE:
                return self.guarded(rest, s) if rest else MAYBE
        return FALLS

    def guarded(self, rest: Sequence[Any], at: At) -> str:
        """What is run only if nothing exited before it."""
        flag = self.scope.find(f"#skip{self.level}")
        at = at if isinstance(at, ast.AST) else rest[0]
        return self.branch(flag, lambda: EXITS, lambda: self.body(rest), at)

    def statement(self, s: ast.stmt) -> str:
        """One statement."""
        run = getattr(self, "on_" + type(s).__name__, None)
        if run is None:
            raise self.unsupported(NAMES.get(type(s), type(s).__name__), s)
        return run(s) or FALLS

    # -- what assigns ----------------------------------------------------------------------------

    def on_Assign(self, s: ast.Assign) -> None:
        hint = None
        if s.type_comment is not None:
            hint = self.annotation(parse_python(s.type_comment, mode="eval").body)
        item = self.expression(s.value, hint)
        if hint is not None:
            item = self.annotated(item, hint, s, ast.unparse(s.targets[0]))
        for target in s.targets:
            self.bind(target, item, s)

    def on_AnnAssign(self, s: ast.AnnAssign) -> None:
        kind = self.annotation(s.annotation)
        if s.value is None:
            return
        item = self.annotated(self.expression(s.value, kind), kind, s, ast.unparse(s.target))
        self.bind(s.target, item, s)

    def annotated(self, item: object, kind: Type, at: At, name: str) -> Value:
        """A value under the type that was written beside its name."""
        value = self.as_value(item, at)
        empty = value.node is not None and not value.node.inputs and value.node.kind in EMPTY
        if (empty and type(kind) is type(value.type)) or is_open(value):
            value.type = kind  # [] and {} are whatever is wanted
        if not fits(kind, value.type, {}):
            raise self.fail(
                f"Variable '{name}' is annotated with type {spelled(kind)} but is being"
                f" assigned to a value of type {spelled(value.type)}",
                at,
            )
        return self.cast(value, kind, at)

    def on_AugAssign(self, s: ast.AugAssign) -> None:
        if isinstance(s.target, ast.Subscript):
            before = self.as_value(self.expression(s.target), s)
            owner = self.expression(s.target.value)
            if isinstance(owner, Value) and isinstance(owner.type, types.Tuple):
                raise self.fail(
                    f"{spelled(owner.type)} does not support augmented assignment.", s.target
                )
            after = self.augmented(s, before)
            self.set_item(s.target, after, s)
            return
        before = self.as_value(self.expression(s.target), s.target)
        after = self.augmented(s, before)
        if after is not before or isinstance(s.target, ast.Attribute):
            self.bind(s.target, after, s)

    def augmented(self, s: ast.AugAssign, before: Value) -> Value:
        """The value after `before += …`: tensors and lists are written to."""
        if isinstance(before.type, types.Class):
            return self.augmented_object(s, before)
        right = self.value(s.value)
        if isinstance(before.type, types.Tensor):
            from toytorch.jit.script.operators import TENSOR_BINARY  # a circle otherwise

            name = TENSOR_BINARY.get(type(s.op), "")
            if name in registry and registry[name].has_inplace:
                return self.as_value(self.call_record(name, [before, right], s, writes=True), s)
        if isinstance(before.type, types.List) and isinstance(s.op, ast.Add):
            self.call_builtin("extend", [before, right], s)
            return before
        return self.as_value(self.binary(s.op, before, right, s), s)

    def augmented_object(self, s: ast.AugAssign, before: Value) -> Value:
        """`before += …` of an object: its class has __iadd__, or __add__."""
        word = WORDS_OF.get(type(s.op), type(s.op).__name__.lower())
        kind = getattr(before.type, "python", None)
        found = next((n for n in (f"__i{word}__", f"__{word}__") if hasattr(kind, n)), None)
        if found is None:
            raise self.fail(
                f"Cannot emit inplace op on {before.type} since it does not define an "
                f"__i{word}__ or __{word}__ method",
                s.value,
            )
        method = self.attribute(before, found, s)
        return self.as_value(self.call_item(method, [self.value(s.value)], {}, s), s)

    def retyped(self, name: str, before: Value, now: Value, at: At) -> Exception:
        """The error of a name that stands for a value of another type than before."""
        return self.fail(
            f"Variable '{name}' previously had type {spelled(before.type)} but "
            f"is now being assigned to a value of type {spelled(now.type)}",
            at,
        )

    def assign(self, name: str, item: object, at: At) -> None:
        """Lets a name stand for something else; its type may not change inside a block."""
        scope, outer = self.scope.outer, None
        while scope is not None and (outer is None or getattr(outer, "type", None) == types.NONE):
            # Where it is None, it may be one of two types outside.
            outer = scope.find(name) or outer
            scope = scope.outer
        if isinstance(outer, ModuleValue) and name not in self.local_names():
            raise self.fail(
                f"Cannot re-assign '{name}' because it has type module which is not a first-class "
                "value. Only reassignments to first-class values are allowed",
                at,
            )
        if isinstance(outer, Value) and isinstance(item, ModuleValue):
            raise self.fail(
                f"Cannot re-assign '{name}' to a value of type module {type(item.module).__name__}",
                at,
            )
        if isinstance(outer, Value) and name not in self.local_names():
            value = self.listed(self.as_value(item, at), at, outer.type)
            if not outer.type.contains(value.type) and outer.type != types.NEVER:
                raise self.retyped(name, outer, value, at)
            item = value
        if (
            isinstance(item, Value)
            and item.name.isdigit()
            and item.node is not None
            and not item.is_constant
        ):
            item.name = self.graph.new_name(name)
        self.scope.set(name, item)

    def local_names(self) -> set[str]:
        """Names of comprehensions, which hide those outside."""
        found: set[str] = set()
        for scope in self.scope.around():
            found.update(scope.own)
        return found

    def on_Delete(self, s: ast.Delete) -> None:
        for target in s.targets:
            if isinstance(target, ast.Name):
                self.expression(target)
                self.scope.forget(target.id, f"undefined value {target.id}")
            elif isinstance(target, ast.Subscript):
                owner, place = self.value(target.value), self.value(target.slice)
                self.call_builtin("Delete", [owner, place], s)
            else:
                raise self.fail(
                    "del statements are only supported for deleting variables, list "
                    "and dict elements",
                    s,
                )

    # -- what exits ------------------------------------------------------------------------------

    def on_Return(self, s: ast.Return) -> str:
        hint = self.returns if self.declared else None
        if s is self.end and hint not in (None, types.NONE, types.ANY):
            raise self.fail(
                "Function was not annotated as having type None, but does not return along all "
                "paths",
                self.program.tree,
            )
        value = self.constant(None, s) if s.value is None else self.value(s.value, hint)
        if self.declared:
            assert self.returns is not None
            if is_open(value):
                value.type = self.returns
            if not fits(self.returns, value.type, {}):
                raise self.fail(
                    f"Return value was annotated as having type {spelled(self.returns)} but is "
                    f"actually of type {spelled(value.type)}",
                    s,
                )
            if isinstance(self.returns, types.Union) or self.returns == types.ANY:
                value = self.cast(value, self.returns, s)  # other returns may be of other types
        else:
            both = value.type if self.returns is None else types.join(self.returns, value.type)
            if both is None:
                raise self.fail(
                    f"Previous return statement returned a value of type "
                    f"{spelled(self.returns or types.NONE)} but this return statement "
                    f"returns a value of type {spelled(value.type)}",
                    s,
                )
            self.returns = both
        self.scope.set("#result", value)
        self.raise_flags(s, 0)
        return RETURNS

    def raise_flags(self, at: At, lowest: int) -> None:
        """Says that all loops down to a level are left."""
        for level in range(lowest, self.level + 1):
            self.scope.set(f"#skip{level}", self.constant(True, at))
            if level:
                self.scope.set(f"#break{level}", self.constant(True, at))

    def on_Break(self, s: ast.Break) -> str:
        if not self.level:
            raise self.fail("SyntaxError: 'break' outside loop", s)
        self.raise_flags(s, self.level)
        return EXITS

    def on_Continue(self, s: ast.Continue) -> str:
        if not self.level:
            raise self.fail("SyntaxError: 'continue' not properly in loop", s)
        self.scope.set(f"#skip{self.level}", self.constant(True, s))
        return EXITS

    def on_Raise(self, s: ast.Raise) -> str:
        if s.exc is None:
            raise self.unsupported("raise statements without an exception", s)
        call = s.exc if isinstance(s.exc, ast.Call) else None
        item = self.expression(call.func if call else s.exc)
        kind = item.object if isinstance(item, Known) else None
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise self.fail("exceptions must derive from BaseException", s)
        args = [self.value(a) for a in call.args] if call else []
        message = self.text_of(args[0], s) if args else self.constant("", s)
        self.emit("prim::RaiseException", [message], [], s, {"_class": kind, "name": kind.__name__})
        return RAISES

    def text_of(self, value: Value, at: At) -> Value:
        """A value as a string."""
        if value.type == types.STR:
            return value
        return self.as_value(self.call_builtin("str", [value], at), at)

    def on_Assert(self, s: ast.Assert) -> str:
        known = self.static(s.test)
        if known:
            return FALLS

        def fail() -> str:
            message = self.constant("", s) if s.msg is None else self.text_of(self.value(s.msg), s)
            error = {"_class": AssertionError, "name": "AssertionError", "_assert": True}
            self.emit("prim::RaiseException", [message], [], s, error)
            return RAISES

        if known is False:
            return fail()
        self.branch(self.condition(s.test), lambda: FALLS, fail, s)
        self.refine(s.test, True)
        return FALLS

    # -- the rest --------------------------------------------------------------------------------

    def on_Expr(self, s: ast.Expr) -> None:
        if isinstance(s.value, (ast.Yield, ast.YieldFrom)):
            raise self.unsupported(type(s.value).__name__, s.value)
        if not isinstance(s.value, ast.Constant):
            self.expression(s.value)

    def on_Pass(self, s: ast.Pass) -> None:
        """Does nothing."""

    def on_With(self, s: ast.With) -> str:
        before, opened = self.contexts, []
        try:
            for item in s.items:
                opened += self.opened(item)
            end = self.body(s.body)
        finally:
            self.contexts = before
        for manager, at in reversed(opened):
            nothing = [self.constant(None, at)] * 3
            self.call_item(self.attribute(manager, "__exit__", at), nothing, {}, at)
        return end

    def opened(self, item: ast.withitem) -> list[tuple[Value, ast.expr]]:
        """Begins one context of a `with`; the object that is to be left afterwards, if it is one.

        What a context of the framework changes is written on the nodes inside. The profiler sees
        a compiled function as a whole, so names for its parts change nothing.
        """
        at = item.context_expr
        callee = self.expression(at.func) if isinstance(at, ast.Call) else None
        known = callee.object if isinstance(callee, Known) else None
        if isinstance(at, ast.Call) and isinstance(known, type) and is_ours(known.__module__):
            if issubclass(known, no_grad):
                self.contexts = {**self.contexts, "no_grad": True}
                return []
            if issubclass(known, autocast):
                made = known(
                    *(self.constant_argument(a, known, i) for i, a in enumerate(at.args)),
                    **{
                        str(k.arg): self.constant_argument(k.value, known, k.arg)
                        for k in at.keywords
                    },
                )
                outer = self.contexts.get("autocast", ())
                told = made.device, str(made.fast_dtype).partition(".")[2], made._enabled
                self.contexts = {**self.contexts, "autocast": (*outer, told)}
                return []
            if known.__name__ == "record_function":
                self.value(at.args[0])
                return []
            raise self.fail("\nWith item expression must return an object", at)
        manager = self.expression(at)
        if not (isinstance(manager, Value) and isinstance(manager.type, types.Class)):
            raise self.fail("\nWith item expression must return an object", at)
        entered = self.call_item(self.attribute(manager, "__enter__", at), [], {}, at)
        if item.optional_vars is not None:
            self.bind(item.optional_vars, entered, at)
        return [(manager, at)]

    def constant_argument(self, node: ast.expr, kind: type, place: object) -> Any:
        """An argument of autocast, which has to be known while compiling."""
        found = self.expression(node)
        if not isinstance(found, Known):
            names = list(inspect.signature(kind).parameters)
            name = names[place] if isinstance(place, int) else place
            raise self.fail(f"Autocast _{name} argument must be a constant", node)
        return found.object

    def annotation(self, node: ast.expr) -> Type:
        """The type that an annotation names."""

        def names(name: str) -> Any:
            item = self.scope.find(name)
            if isinstance(item, Known):
                return item.object
            own = getattr(self.owner, "python", None)  # of a class that is not global
            if own is not None and own.__name__ == name:
                return own
            return self.program.names(name)

        try:
            return read(node, names)
        except Unreadable as error:
            raise self.fail(str(error), node) from None

"""Statements and declarations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toytorch.cuda.emulator import program as p
from toytorch.cuda.emulator import syntax as s
from toytorch.cuda.emulator import types as t
from toytorch.cuda.emulator.check_calls import CallChecker
from toytorch.cuda.emulator.check_places import Scope, Symbol, flat_length
from toytorch.cuda.emulator.errors import At, CompileError


class StatementChecker(CallChecker):
    """Adds statements to expressions. `function` is the one whose body is checked."""

    def __init__(self) -> None:
        super().__init__()
        self.function = p.Function("", (1, 1), t.VOID)
        self.addressed: set[str] = set()  # variables of the function that live in memory
        self.loops = 0  # around the statement
        self.switches = 0

    def declared_type(self, node: s.Declaration) -> t.Type:
        """The type of a variable with the brackets behind its name."""
        type = self.type_of(node.type)
        if isinstance(type, t.Void):
            raise CompileError(f"{node.name!r} cannot be void", node.at)
        lengths: list[int] = []
        for number, length in enumerate(node.lengths):
            if length is not None:
                lengths.append(self.whole(length, "the length of an array"))
                if lengths[-1] <= 0:
                    raise CompileError("an array has at least one element", length.at)
            elif number == 0 and isinstance(node.value, s.Braces):
                lengths.append(len(node.value.items))
            elif number == 0 and node.space == "shared" and node.extern:
                lengths.append(0)
            else:
                raise CompileError("this array needs a length", node.at)
        for size in reversed(lengths):
            type = t.Array(type, size)
        return type

    def initial(self, node: s.Expression, type: t.Type) -> Iterator[tuple[int, p.Expr]]:
        """(position, value) of each element that an initialiser names."""
        if not isinstance(type, t.Array):
            yield 0, self.value(node)
            return
        if not isinstance(node, s.Braces):
            raise CompileError("an array is initialised with braces, {1, 2}", node.at)
        if len(node.items) > type.length:
            raise CompileError(f"{len(node.items)} values for {type.length} elements", node.at)
        inner = flat_length(type.element)
        for number, item in enumerate(node.items):
            for index, value in self.initial(item, type.element):
                yield number * inner + index, value

    def new_slot(self) -> int:
        self.function.slots += 1
        return self.function.slots - 1

    def new_memory(self, name: str, space: str, type: t.Type, at: At) -> int:
        self.memories.append(p.Memory(name, space, type, at))
        return len(self.memories) - 1

    def declare(self, name: str, symbol: Symbol, at: At) -> None:
        if name in self.scopes[-1].symbols:
            raise CompileError(f"{name!r} is declared twice", at)
        self.scopes[-1].symbols[name] = symbol

    # statements

    def block(self, node: s.Block) -> p.Block:
        self.scopes.append(Scope())
        items = [self.statement(item) for item in node.items]
        self.scopes.pop()
        return p.Block(node.at, items)

    def statement(self, node: s.Statement) -> p.Stmt:
        rule = getattr(self, f"do_{type(node).__name__.lower()}")
        return rule(node)

    def do_block(self, node: s.Block) -> p.Stmt:
        return self.block(node)

    def do_declarations(self, node: s.Declarations) -> p.Stmt:
        found = [self.declaration(item) for item in node.items]
        return found[0] if len(found) == 1 else p.Block(node.at, found)

    def declaration(self, node: s.Declaration) -> p.Stmt:
        if node.type.reference:
            return self.bound(node)
        if node.type.name == "auto":
            return self.auto(node)
        type = self.declared_type(node)
        const = node.type.unchanging
        if node.space == "shared":
            return self.shared(node, type)
        if isinstance(type, t.Array) or node.name in self.addressed:
            return self.in_memory(node, type, const)
        value: p.Expr | None = None
        if isinstance(node.value, s.Braces) and isinstance(type, t.Vector):
            parts = [self.convert(self.value(item), type.element) for item in node.value.items]
            zero = self.constant(type.element, 0, node.at)
            value = p.MakeVector(type, node.at, [*parts, *[zero] * (type.count - len(parts))])
        elif node.value is not None:
            value = self.convert(self.value(node.value), type)
        slot = self.new_slot()
        constant = value.value if const and isinstance(value, p.Constant) else None
        self.declare(node.name, Symbol(type, const, slot=slot, constant=constant), node.at)
        return p.Declare(node.at, slot, type, value)

    def auto(self, node: s.Declaration) -> p.Stmt:
        if node.value is None or node.name in self.addressed:
            raise CompileError("'auto' needs a value, and no address taken of it", node.at)
        value, slot = self.value(node.value), self.new_slot()
        self.declare(node.name, Symbol(value.type, node.type.const, slot=slot), node.at)
        return p.Declare(node.at, slot, value.type, value)

    def bound(self, node: s.Declaration) -> p.Stmt:
        """`float& r = x[i]`: a register holds the address."""
        place = self.place(node.value) if node.value is not None else None
        if not isinstance(place, p.Cell):
            raise CompileError("a reference needs a variable or an element of an array", node.at)
        type = place.type if node.type.name == "auto" else self.type_of(node.type)
        const = node.type.const or place.const
        if type != place.type or (place.const and not node.type.const and node.type.name != "auto"):
            raise CompileError(
                f"a reference to '{type}' cannot be bound to '{place.type}'", node.at
            )
        slot = self.new_slot()
        self.declare(node.name, Symbol(type, const, slot=slot, by_address=True), node.at)
        pointer = t.Pointer(type, const)
        return p.Declare(node.at, slot, pointer, p.Convert(pointer, node.at, place.pointer))

    def shared(self, node: s.Declaration, type: t.Type) -> p.Stmt:
        if node.value is not None:
            raise CompileError("shared memory has no initial value", node.at)
        if type.size == 0:  # every `extern __shared__` is the same memory
            made = [i for i, m in enumerate(self.memories) if m.dynamic]
            memory = made[0] if made else self.new_memory(node.name, "shared", type, node.at)
        else:
            memory = self.new_memory(node.name, "shared", type, node.at)
        self.declare(node.name, Symbol(type, node.type.const, memory=memory), node.at)
        return p.Block(node.at, [])

    def in_memory(self, node: s.Declaration, type: t.Type, const: bool) -> p.Stmt:
        """A local array, or a variable whose address is taken."""
        element = t.element_of(type)
        pairs = list(self.initial(node.value, type)) if node.value is not None else []
        memory = self.new_memory(node.name, "local", type, node.at)
        self.declare(node.name, Symbol(type, const, memory=memory), node.at)
        base = p.Base(t.Pointer(element), node.at, memory)
        values = []
        for index, value in pairs:
            place = self.offset(base, self.constant(t.INT, index, node.at), node.at)
            values.append((p.Cell(place, element), self.convert(value, element)))
        return p.Fresh(node.at, memory, values, node.value is not None)

    def do_evaluate(self, node: s.Evaluate) -> p.Stmt:
        value = self.value(node.expression)
        if isinstance(value, p.Atomic):
            value.used = False
        return p.Evaluate(node.at, value)

    def do_if(self, node: s.If) -> p.Stmt:
        condition = self.truth(self.value(node.condition))
        yes = self.inner(node.yes)
        no = self.inner(node.no) if node.no is not None else None
        return p.If(node.at, condition, yes, no)

    def inner(self, node: s.Statement) -> p.Stmt:
        """A statement with names of its own."""
        self.scopes.append(Scope())
        found = self.statement(node)
        self.scopes.pop()
        return found

    def do_loop(self, node: s.Loop) -> p.Stmt:
        self.scopes.append(Scope())
        start = self.statement(node.start) if node.start is not None else None
        condition = self.truth(self.value(node.condition)) if node.condition else None
        step = self.value(node.step) if node.step is not None else None
        self.loops += 1
        body = self.inner(node.body)
        self.loops -= 1
        self.scopes.pop()
        return p.Loop(node.at, start, condition, step, body, node.test_first)

    def do_switch(self, node: s.Switch) -> p.Stmt:
        value = self.value(node.value)
        type = t.promoted(self.number(value, "switch"))
        if type.is_float:
            raise CompileError(f"a switch is over whole numbers, not '{type}'", value.at)
        self.scopes.append(Scope())
        self.switches += 1
        cases: list[Any] = []
        items: list[int | p.Stmt | None] = []
        for item in node.items:
            if not isinstance(item, s.Label):
                items.append(self.statement(item))
            elif item.value is None:
                items.append(None)
            else:
                cases.append(type.dtype.type(self.whole(item.value, "the value of a case")))
                items.append(len(cases) - 1)
        self.switches -= 1
        self.scopes.pop()
        return p.Switch(node.at, self.convert(value, type), cases, items)

    def do_jump(self, node: s.Jump) -> p.Stmt:
        inside = self.loops or (self.switches and node.word == "break")
        if not inside:
            raise CompileError(f"'{node.word}' stands outside of a loop", node.at)
        return p.Jump(node.at, node.word)

    def do_return(self, node: s.Return) -> p.Stmt:
        result = self.function.result
        if node.value is None:
            if not isinstance(result, t.Void):
                raise CompileError(f"{self.function.name!r} returns '{result}'", node.at)
            return p.Return(node.at, None)
        value = self.value(node.value)
        if isinstance(result, t.Void):
            raise CompileError(f"{self.function.name!r} returns void", node.at)
        return p.Return(node.at, self.convert(value, result))

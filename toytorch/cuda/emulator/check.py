"""From the tree to a program: functions, templates, declarations and statements."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from toytorch.cuda.emulator import program as p
from toytorch.cuda.emulator import syntax as s
from toytorch.cuda.emulator.check_calls import CallChecker
from toytorch.cuda.emulator.check_expressions import Scope, Symbol, flat_length
from toytorch.cuda.emulator.errors import At, CompileError, Source
from toytorch.cuda.emulator.macros import expanded
from toytorch.cuda.emulator.parse import Parser, parse
from toytorch.cuda.emulator.types import (
    INT,
    VOID,
    Array,
    Pointer,
    Scalar,
    Type,
    Vector,
    Void,
    element_of,
    promoted,
)  # fmt: skip

SHARED_LIMIT = 227 * 1024  # bytes a block may have on an H100, static and dynamic
STATIC_LIMIT = 48 * 1024


def compiled(
    text: str,
    name: str | None = None,
    defines: Mapping[str, str] | None = None,
    file: str = "kernel.cu",
) -> p.Program:
    """The program of one kernel of a source, by its name if there are several.

    >>> program = compiled("__global__ void f(float* x) { x[threadIdx.x] *= 2; }")
    >>> [(name, str(type)) for name, type in program.kernel.parameters]
    [('x', 'float*')]
    """
    try:
        return Checker(parse(text, defines)).kernel(name)
    except CompileError as error:
        raise CompileError(error.message, error.at, Source(text, file)) from None


class Checker(CallChecker):
    """One source file, and the functions of it that were asked for."""

    def __init__(self, file: s.File) -> None:
        super().__init__()
        self.file = file
        self.sources: dict[str, s.Function] = {}
        for function in file.functions:
            before = self.sources.get(function.name)
            if before is not None and before.body and function.body:
                raise CompileError(f"{function.name!r} is defined twice", function.at)
            if function.body or before is None:
                self.sources[function.name] = function
        self.made: dict[tuple[Any, ...], p.Function] = {}
        self.under_way: list[str] = []
        self.function = p.Function("", (1, 1), VOID)
        self.addressed: set[str] = set()
        self.loops = 0
        self.switches = 0
        for alias in file.aliases:
            self.scopes[0].types[alias.name] = self.type_of(alias.type)
        for variable in file.variables:
            self.file_variable(variable)

    def kernel(self, name: str | None) -> p.Program:
        """The kernel called `name`, or the only one; `f<float, 16>` names one of a template."""
        kernels = [f for f in self.sources.values() if f.is_kernel]
        names = ", ".join(f.name for f in kernels) or "none"
        arguments: tuple[Any, ...] = ()
        if name is None:
            if len(kernels) != 1:
                raise CompileError(f"say which kernel: the source has {names}", (1, 1))
            found = kernels[0]
        else:
            bare, _, rest = name.partition("<")
            if bare not in {f.name for f in kernels}:
                raise CompileError(f"there is no kernel {bare!r}: the source has {names}", (1, 1))
            found = self.sources[bare]
            if rest:
                arguments = self.named_arguments(found, rest.rpartition(">")[0])
        for parameter in found.parameters:
            if parameter.type.reference:
                raise CompileError("a kernel takes no references", parameter.at)
        made = self.instance(found, self.template_values(found, arguments, [], found.at), found.at)
        if not isinstance(made.result, Void):
            raise CompileError("a kernel returns void", found.at)
        static = sum(m.type.size for m in self.memories if m.space == "shared")
        if static > STATIC_LIMIT:
            raise CompileError(
                f"{found.name!r} declares {static} bytes of shared memory, and a block may "
                f"have {STATIC_LIMIT}: more is given at the launch (extern __shared__)",
                found.at,
            )
        return p.Program(made, self.memories)

    def named_arguments(self, function: s.Function, text: str) -> tuple[Any, ...]:
        parser = Parser(expanded(text))
        found: list[Any] = []
        while parser.token.kind != "end":
            if found:
                parser.expect(",")
            if parser.begins_type():
                found.append(self.type_of(parser.type_name()))
            else:
                found.append(self.whole(parser.additive(), "an argument of a template"))
        return tuple(found)

    # variables of the file

    def file_variable(self, node: s.Declaration) -> None:
        if node.name in self.scopes[0].symbols:
            raise CompileError(f"{node.name!r} is declared twice", node.at)
        type = self.declared_type(node)
        if node.space != "constant" and isinstance(type, Scalar):
            value = self.value(node.value) if node.value is not None else None
            constant = self.convert(value, type) if value is not None else None
            if not isinstance(constant, p.Constant):
                raise CompileError(f"{node.name!r} needs a value that is known now", node.at)
            self.scopes[0].symbols[node.name] = Symbol(type, True, constant=constant.value)
            return
        values = [0] * flat_length(type)
        if node.value is not None:
            for index, value in self.initial(node.value, type):
                single = self.convert(value, element_of(type))
                if not isinstance(single, p.Constant):
                    raise CompileError("constant memory needs values known now", node.at)
                values[index] = single.value
        self.memories.append(p.Memory(node.name, "constant", type, node.at, values))
        self.scopes[0].symbols[node.name] = Symbol(type, True, memory=len(self.memories) - 1)

    def declared_type(self, node: s.Declaration) -> Type:
        """The type of a variable with the brackets behind its name."""
        type = self.type_of(node.type)
        if isinstance(type, Void):
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
            type = Array(type, size)
        return type

    def initial(self, node: s.Expression, type: Type) -> Iterator[tuple[int, p.Expr]]:
        """(position, value) of each element that an initialiser names."""
        if not isinstance(type, Array):
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

    # functions

    def call_of_own(self, node: s.Call) -> p.Expr | None:
        source = self.sources.get(node.function.name)
        if source is None:
            return None
        if source.is_kernel:
            raise CompileError("a kernel cannot be launched from a kernel here", node.at)
        if len(node.arguments) != len(source.parameters):
            self.arity(node, len(source.parameters))
        given = [
            None if parameter.type.reference else self.value(argument)
            for parameter, argument in zip(source.parameters, node.arguments)
        ]
        explicit = tuple(
            self.type_of(a) if isinstance(a, s.TypeName) else self.whole(a, "this argument")
            for a in node.function.arguments
        )
        types = [
            value.type if value is not None else self.place_type(argument)
            for value, argument in zip(given, node.arguments)
        ]
        values = self.template_values(source, explicit, types, node.at)
        function = self.instance(source, values, node.at)
        arguments: list[p.Expr] = []
        for value, argument, (_, type) in zip(given, node.arguments, function.parameters):
            if value is not None:
                arguments.append(self.convert(value, type, argument.at))
            else:
                arguments.append(self.reference(argument, type))
        return p.Invoke(function.result, node.at, function, arguments)

    def place_type(self, node: s.Expression) -> Type:
        place = self.place(node)
        return place.type if place is not None else self.value(node).type

    def reference(self, node: s.Expression, type: Type) -> p.Expr:
        """The address of what a reference is bound to."""
        assert isinstance(type, Pointer)
        place = self.place(node)
        if not isinstance(place, p.Cell) or place.type != type.target:
            raise CompileError(f"a reference needs a variable of type '{type.target}'", node.at)
        return self.convert(
            p.Convert(Pointer(place.type, place.const), node.at, place.pointer), type
        )

    def template_values(
        self, source: s.Function, explicit: tuple[Any, ...], types: list[Type], at: At
    ) -> dict[str, Any]:
        """What stands for each name of a template: as given, from the arguments, or its default."""
        if len(explicit) > len(source.template):
            raise CompileError(f"{source.name!r} has no such template arguments", at)
        found: dict[str, Any] = dict(zip((t.name for t in source.template), explicit))
        for parameter, type in zip(source.parameters, types):
            name = parameter.type.name
            if any(t.name == name and t.type is None for t in source.template):
                for _ in parameter.type.stars:
                    if not isinstance(type, Pointer):
                        raise CompileError(f"'{type}' is no pointer to a {name}", at)
                    type = type.target
                found.setdefault(name, type)
        for template in source.template:
            if template.name not in found and template.default is not None:
                default = template.default
                found[template.name] = (
                    self.type_of(default)
                    if isinstance(default, s.TypeName)
                    else self.whole(default, "this default")
                )
            if template.name not in found:
                raise CompileError(
                    f"nothing says what {template.name!r} of {source.name!r} is: write "
                    f"{source.name}<…>",
                    at,
                )
        return found

    def instance(self, source: s.Function, values: dict[str, Any], at: At) -> p.Function:
        """The function for these values of its template's names."""
        key = (source.name, *values.items())
        if source.name in self.under_way:
            raise CompileError(
                f"recursion is not supported: {source.name!r} is called while it runs", at
            )
        if key in self.made:
            return self.made[key]
        if source.body is None:
            raise CompileError(f"{source.name!r} is declared and not defined", at)
        outer = (self.scopes, self.function, self.addressed, self.loops, self.switches)
        scope = Scope()
        self.scopes, self.loops, self.switches = [self.scopes[0], scope], 0, 0
        for name, value in values.items():
            if isinstance(value, int):
                scope.symbols[name] = Symbol(INT, True, constant=np.int32(value))
            else:
                scope.types[name] = value
        self.addressed = set(self.names_with_address(source.body))
        self.function = made = p.Function(source.name, source.at, self.type_of(source.result))
        self.under_way.append(source.name)
        for parameter in source.parameters:
            self.parameter(parameter)
        made.body = self.block(source.body)
        self.under_way.pop()
        self.scopes, self.function, self.addressed, self.loops, self.switches = outer
        self.made[key] = made
        return made

    def parameter(self, node: s.Parameter) -> None:
        type = self.type_of(node.type)
        const = node.type.const and not node.type.stars
        slot = self.new_slot()
        symbol = Symbol(type, const, slot=slot)
        if node.type.reference:
            symbol.by_address = True
            type = Pointer(type, node.type.const)
        elif node.name in self.addressed:  # it moves into memory when the function begins
            memory = self.new_memory(node.name, "local", type, node.at)
            symbol.slot, symbol.memory = None, memory
            self.function.stored.append((slot, memory))
        self.function.parameters.append((node.name, type))
        if node.name:
            self.declare(node.name, symbol, node.at)

    def names_with_address(self, node: Any) -> Iterator[str]:
        """Variables that `&` or a reference is applied to: these live in memory."""
        if isinstance(node, s.Unary) and node.sign == "&":
            inner = node.operand
            while isinstance(inner, s.Member):
                inner = inner.base
            if isinstance(inner, s.Name):
                yield inner.name
        if isinstance(node, s.Call) and node.function.name in self.sources:
            parameters = self.sources[node.function.name].parameters
            for parameter, argument in zip(parameters, node.arguments):
                if parameter.type.reference and isinstance(argument, s.Name):
                    yield argument.name
        if dataclasses.is_dataclass(node):
            for part in dataclasses.fields(node):
                yield from self.names_with_address(getattr(node, part.name))
        elif isinstance(node, list):
            for item in node:
                yield from self.names_with_address(item)

    def new_slot(self) -> int:
        self.function.slots += 1
        return self.function.slots - 1

    def new_memory(self, name: str, space: str, type: Type, at: At) -> int:
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
        found: p.Stmt = rule(node)
        return found

    def do_block(self, node: s.Block) -> p.Stmt:
        return self.block(node)

    def do_declarations(self, node: s.Declarations) -> p.Stmt:
        found = [self.declaration(item) for item in node.items]
        return found[0] if len(found) == 1 else p.Block(node.at, found)

    def declaration(self, node: s.Declaration) -> p.Stmt:
        if node.type.name == "auto":
            return self.auto(node)
        if node.type.reference:
            raise CompileError("references are for parameters only", node.at)
        type = self.declared_type(node)
        const = node.type.const and not node.type.stars
        if node.space == "shared":
            return self.shared(node, type)
        if isinstance(type, Array) or node.name in self.addressed:
            return self.in_memory(node, type, const)
        value: p.Expr | None = None
        if isinstance(node.value, s.Braces) and isinstance(type, Vector):
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

    def shared(self, node: s.Declaration, type: Type) -> p.Stmt:
        if node.value is not None:
            raise CompileError("shared memory has no initial value", node.at)
        if type.size == 0:  # every `extern __shared__` is the same memory
            made = [i for i, m in enumerate(self.memories) if m.dynamic]
            memory = made[0] if made else self.new_memory(node.name, "shared", type, node.at)
        else:
            memory = self.new_memory(node.name, "shared", type, node.at)
        self.declare(node.name, Symbol(type, node.type.const, memory=memory), node.at)
        return p.Block(node.at, [])

    def in_memory(self, node: s.Declaration, type: Type, const: bool) -> p.Stmt:
        """A local array, or a variable whose address is taken."""
        element = element_of(type)
        pairs = list(self.initial(node.value, type)) if node.value is not None else []
        memory = self.new_memory(node.name, "local", type, node.at)
        self.declare(node.name, Symbol(type, const, memory=memory), node.at)
        base = p.Base(Pointer(element), node.at, memory)
        values = []
        for index, value in pairs:
            place = self.offset(base, self.constant(INT, index, node.at), node.at)
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
        type = promoted(self.number(value, "switch"))
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
            if not isinstance(result, Void):
                raise CompileError(f"{self.function.name!r} returns '{result}'", node.at)
            return p.Return(node.at, None)
        value = self.value(node.value)
        if isinstance(result, Void):
            raise CompileError(f"{self.function.name!r} returns void", node.at)
        return p.Return(node.at, self.convert(value, result))

"""From the tree to a program: kernels, the functions they call, templates."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from toytorch.cuda.emulator import program as p
from toytorch.cuda.emulator import syntax as s
from toytorch.cuda.emulator import types as t
from toytorch.cuda.emulator.check_places import Scope, Symbol, flat_length
from toytorch.cuda.emulator.check_statements import StatementChecker
from toytorch.cuda.emulator.errors import At, CompileError, Source
from toytorch.cuda.emulator.macros import expanded
from toytorch.cuda.emulator.parse import Parser, parse

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


class Checker(StatementChecker):
    """One source file, and the functions of it that were asked for."""

    def __init__(self, file: s.File) -> None:
        super().__init__()
        self.file = file
        self.sources: dict[str, s.Function] = {}
        for function in file.functions:
            before = self.sources.get(function.name)
            if before is not None and before.body and function.body:
                raise CompileError(
                    f"{function.name!r} is defined twice: overloads are not supported, templates are",
                    function.at,
                )
            if function.body or before is None:
                self.sources[function.name] = function
        self.made: dict[tuple[Any, ...], p.Function] = {}
        self.under_way: list[str] = []
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
                arguments = self.named_arguments(rest.rpartition(">")[0])
        for parameter in found.parameters:
            if parameter.type.reference:
                raise CompileError("a kernel takes no references", parameter.at)
        made = self.instance(found, self.template_values(found, arguments, [], found.at), found.at)
        if not isinstance(made.result, t.Void):
            raise CompileError("a kernel returns void", found.at)
        static = sum(m.type.size for m in self.memories if m.space == "shared")
        if static > STATIC_LIMIT:
            raise CompileError(
                f"{found.name!r} declares {static} bytes of shared memory, and a block may "
                f"have {STATIC_LIMIT}: more is given at the launch (extern __shared__)",
                found.at,
            )
        return p.Program(made, self.memories)

    def named_arguments(self, text: str) -> tuple[Any, ...]:
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
        if node.space != "constant" and isinstance(type, t.Scalar):
            value = self.value(node.value) if node.value is not None else None
            constant = self.convert(value, type) if value is not None else None
            if not isinstance(constant, p.Constant):
                raise CompileError(f"{node.name!r} needs a value that is known now", node.at)
            self.scopes[0].symbols[node.name] = Symbol(type, True, constant=constant.value)
            return
        values = [0] * flat_length(type)
        if node.value is not None:
            for index, value in self.initial(node.value, type):
                single = self.convert(value, t.element_of(type))
                if not isinstance(single, p.Constant):
                    raise CompileError("constant memory needs values known now", node.at)
                values[index] = single.value
        self.memories.append(p.Memory(node.name, "constant", type, node.at, values))
        self.scopes[0].symbols[node.name] = Symbol(type, True, memory=len(self.memories) - 1)

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

    def place_type(self, node: s.Expression) -> t.Type:
        place = self.place(node)
        return place.type if place is not None else self.value(node).type

    def reference(self, node: s.Expression, type: t.Type) -> p.Expr:
        """The address of what a reference is bound to."""
        assert isinstance(type, t.Pointer)
        place = self.place(node)
        if not isinstance(place, p.Cell) or place.type != type.target:
            raise CompileError(f"a reference needs a variable of type '{type.target}'", node.at)
        return self.convert(
            p.Convert(t.Pointer(place.type, place.const), node.at, place.pointer), type
        )

    def template_values(
        self, source: s.Function, explicit: tuple[Any, ...], types: list[t.Type], at: At
    ) -> dict[str, Any]:
        """What stands for each name of a template: as given, from the arguments, or its default."""
        if len(explicit) > len(source.template):
            raise CompileError(f"{source.name!r} has no such template arguments", at)
        found: dict[str, Any] = dict(zip((one.name for one in source.template), explicit))
        stated = set(found)
        for parameter, type in zip(source.parameters, types):
            name = parameter.type.name
            if any(one.name == name and one.type is None for one in source.template):
                for _ in parameter.type.stars:
                    if not isinstance(type, t.Pointer):
                        raise CompileError(f"'{type}' is no pointer to a {name}", at)
                    type = type.target
                if found.setdefault(name, type) != type and name not in stated:
                    raise CompileError(f"{name} would be '{found[name]}' and '{type}'", at)
        for template in source.template:
            if template.name not in found and template.default is not None:
                default = template.default
                if isinstance(default, s.TypeName):
                    found[template.name] = self.type_of(default)
                else:
                    found[template.name] = self.whole(default, "this default")
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
                scope.symbols[name] = Symbol(t.INT, True, constant=np.int32(value))
            else:
                scope.types[name] = value
        self.addressed = set(self.names_with_address(source.body))
        self.function = made = p.Function(source.name, source.at, self.type_of(source.result))
        self.under_way.append(source.name)
        for parameter in source.parameters:
            self.parameter(parameter)
        # the body is in the scope of the parameters: it cannot declare their names again
        made.body = p.Block(source.body.at, [self.statement(item) for item in source.body.items])
        self.under_way.pop()
        self.scopes, self.function, self.addressed, self.loops, self.switches = outer
        self.made[key] = made
        return made

    def parameter(self, node: s.Parameter) -> None:
        type = self.type_of(node.type)
        const = node.type.unchanging
        slot = self.new_slot()
        symbol = Symbol(type, const, slot=slot)
        if node.type.reference:
            symbol.by_address = True
            type = t.Pointer(type, node.type.const)
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
        if (
            isinstance(node, s.Declaration)
            and node.type.reference
            and isinstance(node.value, s.Name)
        ):
            yield node.value.name
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

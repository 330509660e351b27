"""What all parts of the compiler share: making nodes, opening blocks, pointing at mistakes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from toytorch.facts.hints import Fn, Kwargs
from toytorch.facts.schema import REQUIRED
from toytorch.jit import types
from toytorch.jit.ir import Block, Graph, Node, Value
from toytorch.jit.script.annotations import spelled
from toytorch.jit.script.errors import CompileError, UnsupportedNodeError
from toytorch.jit.script.reading import Program
from toytorch.jit.script.scope import Scope
from toytorch.jit.script.values import At, Given, Known, describe
from toytorch.jit.types import Type


@dataclass(frozen=True)
class Parameter:
    """One parameter of a compiled function."""

    name: str
    type: Type
    default: Any = REQUIRED
    inferred: bool = False  # no annotation: a tensor
    keyword_only: bool = False

    def __str__(self) -> str:
        default = "" if self.default is REQUIRED else f"={self.default}"
        return f"{spelled(self.type)} {self.name}{default}"


@dataclass
class Compiled:
    """A compiled function or method: its graph, and how it is called."""

    name: str
    graph: Graph
    params: list[Parameter]
    returns: Type
    doc: str | None = None

    def declaration(self) -> str:
        """The signature in PyTorch's notation."""
        given = [str(p) for p in self.params if not p.keyword_only]
        named = [str(p) for p in self.params if p.keyword_only]
        if named:
            given += ["*", *named]
        returns = f"({self.returns})" if isinstance(self.returns, types.Tuple) else self.returns
        return f"{self.name}({', '.join(given)}) -> {returns}"


@dataclass
class Session:
    """What the compilation of one function or module has in common with the functions it calls."""

    compiling: list[Any] = field(default_factory=list)  # to find recursion
    methods: dict[tuple[int, str], Compiled] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)  # objects whose ids are keys


class Base:
    """A function on its way to a graph."""

    def __init__(self, program: Program, session: Session, name: str, owner: Any = None) -> None:
        self.program, self.session, self.name = program, session, name
        self.graph = Graph(name)
        self.block: Block = self.graph
        self.scope = Scope(self.graph)
        self.owner = owner  # the module or object of a method
        self.level = 0  # how many loops are open
        self.returns: Type | None = None  # declared, or of the returns so far
        self.declared = False
        self.results: list[Value] = []  # what stands for the result on its way, typed in the end
        self.inferred: set[Value] = set()  # parameters that are tensors for want of an annotation
        self.contexts: dict[str, Any] = {}  # of the `with` statements that are open
        self.end: ast.Return | None = None  # the return behind the last statement

    # -- nodes ---------------------------------------------------------------------------------

    def emit(
        self,
        kind: str,
        inputs: Sequence[Value],
        outputs: Sequence[Any],
        at: At,
        attributes: dict[str, Any] | None = None,
        function: Fn | None = None,
    ) -> Node:
        """One more node in the open block."""
        node = self.graph.make(
            kind, list(inputs), list(outputs), attributes, self.program.source(at), function
        )
        if self.contexts and node.computes:
            node.attributes.update(self.contexts)
        self.block.nodes.append(node)
        return node

    def one(
        self,
        kind: str,
        inputs: Sequence[Value],
        output: Type,
        at: At,
        attributes: dict[str, Any] | None = None,
        function: Fn | None = None,
    ) -> Value:
        """One more node; its result."""
        return self.emit(kind, inputs, [output], at, attributes, function).output

    def constant(self, value: Any, at: At | None) -> Value:
        """A prim::Constant."""
        node = self.graph.constant(value, self.program.source(at))
        self.block.nodes.append(node)
        return node.output

    @contextmanager
    def inside(self, block: Block) -> Iterator[Scope]:
        """Lets nodes go into a block, with names of its own."""
        before = self.block, self.scope
        self.block, self.scope = block, Scope(block, self.scope)
        try:
            yield self.scope
        finally:
            self.block, self.scope = before

    def cast(self, value: Value, kind: Type, at: At) -> Value:
        """The value under another type."""
        if value.type == kind:
            return value
        return self.one("prim::unchecked_cast", [value], kind, at)

    # -- errors --------------------------------------------------------------------------------

    def fail(self, message: str, at: At | None) -> CompileError:
        """An error at a node of the program."""
        return CompileError(message, self.program.source(at))

    def unsupported(self, what: str, at: At) -> UnsupportedNodeError:
        """An error about Python that compiled functions do not know, at the word that begins it."""
        source = self.program.source(at)
        if source is not None:
            word = source.text[source.column :].split(maxsplit=1)[:1]
            if word and isinstance(at, ast.stmt):
                length = len(word[0].rstrip(":("))
            else:
                length = source.end - source.column
            source = replace(source, end=source.column + max(1, length))
        return UnsupportedNodeError(source, f"{what} aren't supported")

    def no_value(self, item: object, at: At) -> CompileError:
        """The error where something that exists only for the compiler is used as a value."""
        hint = (
            (
                ". Perhaps it is a closed over global variable? If so, please consider passing it "
                "in as an argument or use a local variable instead."
            )
            if isinstance(item, Known)
            else ""
        )
        return self.fail(f"{describe(item)} cannot be used as a value{hint}", at)

    # -- what the parts provide for each other -----------------------------------------------------
    if TYPE_CHECKING:

        def expression(self, node: ast.expr, hint: Type | None = None) -> Any: ...
        def value(self, node: ast.expr, hint: Type | None = None) -> Value: ...
        def as_value(self, item: object, at: At) -> Value: ...
        def condition(self, node: ast.expr) -> Value: ...
        def as_condition(self, value: Value, at: At) -> Value: ...
        def body(self, statements: Sequence[Any]) -> str: ...
        def branch(
            self, test: Value, yes: Callable[[], str], no: Callable[[], str], at: At
        ) -> str: ...
        def choose(
            self,
            test: Value,
            yes: Callable[[], Value],
            no: Callable[[], Value],
            at: At,
            hint: Type | None = None,
        ) -> Value: ...
        def call_constructor(self, kind: object, args: Given, kwargs: Kwargs, at: At) -> Value: ...
        def static(self, node: ast.expr) -> bool | None: ...
        def refine(self, node: ast.expr, outcome: bool) -> None: ...
        def call_builtin(
            self, name: str, args: Given, at: At, kwargs: Kwargs | None = None
        ) -> Any: ...
        def call_function(
            self, function: Fn, args: Given, kwargs: Kwargs, at: At, name: str = ""
        ) -> Any: ...
        def call_record(self, name: str, args: Given, at: At, writes: bool = False) -> Any: ...
        def binary(self, op: ast.operator, left: Value, right: Value, at: At) -> Any: ...
        def attribute(self, item: object, name: str, at: At) -> Any: ...
        def compare(self, op: ast.cmpop, left: Value, right: Value, at: At) -> Any: ...
        def compile_method(
            self, owner: object, name: str, function: Fn, at: At, given: Sequence[Type] = ()
        ) -> Compiled: ...
        def call_item(self, item: object, args: Given, kwargs: Kwargs, at: At) -> Any: ...
        def subscript(self, item: object, node: ast.expr, at: At) -> Any: ...
        def iterable(self, item: object, at: At) -> Any: ...
        def bind(self, target: ast.expr, item: object, at: At) -> None: ...
        def for_loop(
            self, target: ast.expr, item: object, statements: Sequence[Any], at: At
        ) -> str: ...
        def elements(self, item: object, at: At, count: int | None = None) -> list[Any]: ...
        def annotation(self, node: ast.expr) -> Type: ...
        def listed(self, value: Value, at: At, wanted: Type | None = None) -> Value: ...
        def set_item(self, target: ast.Subscript, value: object, at: At) -> None: ...


def joined(kinds: Sequence[Type]) -> Type | None:
    """The type of all of them; numbers of several kinds are Scalars."""
    found: Type | None = types.NEVER
    for kind in kinds:
        found = types.join(found, kind) if found is not None else None
    if found is None and all(k in (types.INT, types.FLOAT, types.NUMBER) for k in kinds):
        return types.NUMBER
    return found

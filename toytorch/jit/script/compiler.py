"""From a program to a graph: parameters, the body, the result."""

from __future__ import annotations

import ast
import copy
import weakref
from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn
from toytorch.facts.package import is_ours
from toytorch.facts.schema import REQUIRED
from toytorch.facts.syntax import parse as parse_python
from toytorch.jit import types
from toytorch.jit.builtins import fits
from toytorch.jit.check import check
from toytorch.jit.ir import Value
from toytorch.jit.script.annotations import spelled
from toytorch.jit.script.base import Compiled, Parameter, Session
from toytorch.jit.script.cleanup import clean
from toytorch.jit.script.errors import CompileError, FrontendError, NotSupportedError
from toytorch.jit.script.modules import Modules, is_library
from toytorch.jit.script.reading import Program, read_function
from toytorch.jit.script.values import At, ModuleValue

FUNCTIONS: weakref.WeakKeyDictionary[Any, Compiled] = weakref.WeakKeyDictionary()


class Compiler(Modules):
    """Compiles one function."""

    given: Sequence[types.Type] = ()  # types of a call, where the program leaves them open

    def compile(self) -> Compiled:
        """The graph and the signature."""
        params = self.parameters()
        hint = self.result_hint()
        if hint is not None:
            self.returns, self.declared = hint, True
        self.scope.set("#skip0", self.constant(False, None))
        tree = self.program.tree
        end = ast.copy_location(ast.Return(None), tree.body[-1])
        self.end = end
        self.body([*tree.body, end])
        result = self.scope.find("#result")
        if not isinstance(result, Value):
            result = self.constant(None, end)
        for value in self.results:  # what was returned later may have made the type wider
            value.type = result.type
        self.graph.outputs = [result]
        returns = self.returns if self.declared and self.returns is not None else result.type
        graph = check(clean(self.graph), "compilation")
        return Compiled(self.name, graph, params, returns, ast.get_docstring(tree))

    def result_hint(self) -> types.Type | None:
        """The declared type of the result."""
        tree = self.program.tree
        if tree.returns is not None:
            found = self.annotation(tree.returns)
            return None if found == types.ANY and self.from_library() else found
        if tree.type_comment is not None and "->" in tree.type_comment:
            return self.annotation(self.comment().returns)
        return None

    def comment(self) -> ast.FunctionType:
        """The types of a comment: # type: (int, Tensor) -> Tensor, where the result may be left out."""
        text = self.program.tree.type_comment
        assert text is not None
        try:
            return parse_python(text if "->" in text else text + " -> None", mode="func_type")
        except SyntaxError:
            raise self.fail(f"Bad type annotation: # type: {text}", self.program.tree) from None

    def from_library(self) -> bool:
        """Whether this is a method that one of the framework's modules has or leaves to its heirs."""
        if not isinstance(self.owner, ModuleValue):
            return False
        try:
            return is_ours(self.program.names("__name__"))
        except KeyError:  # a program without a file
            return is_library(type(self.owner.module))

    def parameters(self) -> list[Parameter]:
        """The parameters, with an input of the graph for each."""
        args = self.program.tree.args
        defaults = [] if self.from_library() else args.kw_defaults
        for extra in (args.vararg, args.kwarg, *defaults):
            if extra is not None:
                raise NotSupportedError(
                    self.program.source(extra),
                    "Compiled functions can't take variable number of arguments or use "
                    "keyword-only arguments with defaults",
                )
        names = [*args.posonlyargs, *args.args]
        if self.owner is not None:
            if not names:
                raise self.fail("methods must have a self argument", self.program.tree)
            self.bind_self(names.pop(0))
        comment = self.comment().argtypes if self.program.tree.type_comment is not None else []
        if len(comment) == 1 and isinstance(comment[0], ast.Constant) and comment[0].value is ...:
            comment = []  # (...): each parameter has a comment of its own
        if comment and len(comment) != len(names):
            raise self.fail(
                f"Number of type annotations ({len(comment)}) did not match the number "
                f"of function parameters ({len(names)})",
                self.program.tree,
            )
        made = []
        for i, a in enumerate([*names, *args.kwonlyargs]):
            hint = a.annotation or (comment[i] if i < len(comment) else None)
            if hint is None and a.type_comment is not None:
                hint = parse_python(a.type_comment, mode="eval").body
            kind = self.state_type() if hint is None else self.annotation(hint)
            if kind == types.ANY and self.from_library():
                kind = self.given[i] if i < len(self.given) else types.TENSOR
            default = self.program.defaults.get(a.arg, REQUIRED)
            self.check_default(a, default, kind)
            made.append(Parameter(a.arg, kind, default, hint is None, a in args.kwonlyargs))
            value = self.graph.add_input(kind, a.arg)
            self.scope.set(a.arg, value)
            if hint is None:
                self.inferred.add(value)
        return made

    def state_type(self) -> types.Type:
        """The type of a parameter without an annotation: what `__getstate__` gives, or a tensor."""
        if self.name != "__setstate__" or not isinstance(self.owner, ModuleValue):
            return types.TENSOR
        getter = self.session.methods.get((id(self.owner.module), "__getstate__"))
        if getter is None:
            raise self.fail(
                "`__setstate__` defined but not `__getstate__`. You must have both defined on a "
                "ScriptModule to customize serialization.\nDid you forget to use "
                "`@torch.jit.export`?",
                self.program.tree,
            )
        return getter.returns

    def check_default(self, at: ast.arg, default: Any, kind: types.Type) -> None:
        """Refuses a default of another type, and one that a call could change."""
        if default is REQUIRED:
            return
        if mutable(default):
            raise self.fail(
                "Mutable default parameters are not supported because Python binds them to the "
                "function and they persist across function calls.\nAs a workaround, make the "
                "default None and instantiate the default parameter within the body of the "
                f"function. Found {type(default)} on parameter {at.arg}.",
                at,
            )
        exact = (
            kind in (types.INT, types.BOOL, types.STR)
            and type(default) is not {types.INT: int, types.BOOL: bool, types.STR: str}[kind]
        )
        if isinstance(kind, types.Tensor) and not isinstance(default, Tensor):
            return  # the framework's own functions are not so exact
        if not fits(kind, types.of(default), {}) or (exact and not self.from_library()):
            raise self.fail(
                f'Expected a default value of type {spelled(kind)} on parameter "{at.arg}".', at
            )

    def bind_self(self, node: ast.arg) -> None:
        """The first parameter of a method."""
        if isinstance(self.owner, ModuleValue):
            value = self.graph.add_input(types.Class(type(self.owner.module).__name__), node.arg)
            self.owner = ModuleValue(self.owner.module, value)
            self.scope.set(node.arg, self.owner)
        else:
            self.scope.set(node.arg, self.graph.add_input(self.owner, node.arg))

    # -- functions and methods that are called -----------------------------------------------------

    def compile_function(self, function: Fn, at: At) -> Compiled:
        if isinstance(function, Program):
            return self.guard(function.tree.name, function, at, function)
        known = FUNCTIONS.get(function)
        if known is None:
            known = FUNCTIONS[function] = self.guard(function.__name__, function, at)
        return known

    def guard(
        self,
        name: str,
        key: Any,
        at: At,
        program: Program | None = None,
        owner: Any = None,
        given: Sequence[types.Type] = (),
    ) -> Compiled:
        """Compiles something that is not being compiled already."""
        if key in self.session.compiling:
            raise self.fail(
                f" function '{name}' is called recursively. Recursive calls are not supported",
                getattr(at, "func", at),
            )
        self.session.compiling.append(key)
        try:
            inner = Compiler(program or read_function(key), self.session, name, owner)
            inner.given = given
            return inner.compile()
        except (CompileError, FrontendError) as error:
            self.tell_caller(error, name, owner, at)
            raise
        finally:
            self.session.compiling.remove(key)

    def tell_caller(self, error: Exception, name: str, owner: Any, at: At) -> None:
        """Adds to an error from which function the one with the mistake was called."""
        if (owner is not None and not isinstance(owner, ModuleValue)) or self.owner_hidden():
            return  # methods of classes are compiled with their class
        source = self.program.source(at)
        shown = f"\n{source.pointing()}\n" if source is not None else ""
        called, caller = qualified(owner, name), qualified(self.owner, self.name)
        error.args = (
            f"{error}'{called}' is being compiled since it was called from '{caller}'{shown}",
        )

    def owner_hidden(self) -> bool:
        """Whether this is a method of an object, whose calls PyTorch does not tell."""
        return self.owner is not None and not isinstance(self.owner, ModuleValue)

    def compile_method(
        self, owner: Any, name: str, function: Any, at: Any, given: Sequence[types.Type] = ()
    ) -> Compiled:
        """The graph of a method of a module, or of a class."""
        held = owner.module if isinstance(owner, ModuleValue) else owner.type.python
        key: Any = (id(held), name, *map(str, given))
        known = self.session.methods.get(key)
        if known is None:
            self.session.kept.append(held)
            program = copy.copy(
                function if isinstance(function, Program) else read_function(function)
            )
            of = owner if isinstance(owner, ModuleValue) else owner.type
            known = self.guard(name, key, at, program, of, given)
            self.session.methods[key] = known
        return known


def qualified(owner: object, name: str) -> str:
    """The name of a function, of a method with that of its class."""
    return f"{type(owner.module).__name__}.{name}" if isinstance(owner, ModuleValue) else name


def mutable(default: object) -> bool:
    """Whether a default is, or holds, what can be changed."""
    if isinstance(default, tuple):
        return any(map(mutable, default))
    return isinstance(default, (list, dict))


def compile_function(function: Fn) -> Compiled:
    """The graph of a Python function."""
    session = Session()
    session.compiling.append(function)
    known = FUNCTIONS.get(function)
    if known is None:
        known = Compiler(read_function(function), session, function.__name__).compile()
        FUNCTIONS[function] = known
    return known


def compile_program(program: Program) -> Compiled:
    """The graph of a program that was read from a text."""
    session = Session()
    session.compiling.append(program)
    return Compiler(program, session, program.tree.name).compile()


def compile_methods(
    module: object,
    names: Sequence[str],
    session: Session | None = None,
    programs: dict[str, Program] | None = None,
) -> dict[str, Compiled]:
    """The graphs of methods of a module; `programs` are methods given as text."""
    session = session or Session()
    made = {}
    for name in sorted(names, key=lambda n: n == "__setstate__"):  # after __getstate__
        own = module.__dict__.get(name)  # put in the place of the class's
        function = getattr(own, "__func__", None) or getattr(type(module), name)
        program = (programs or {}).get(name) or read_function(function)
        placeholder = Value("self", types.Class(type(module).__name__))
        key = (id(module), name)
        if key in session.methods:
            made[name] = session.methods[key]
            continue
        session.compiling.append(key)
        compiler = Compiler(program, session, name, ModuleValue(module, placeholder))
        made[name] = session.methods[key] = compiler.compile()
        session.compiling.remove(key)
    return made

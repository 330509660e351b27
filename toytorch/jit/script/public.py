"""`jit.script`, and what it gives back."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Args, Kwargs
from toytorch.facts.package import is_ours
from toytorch.facts.schema import REQUIRED
from toytorch.jit import switch, types
from toytorch.jit.failures import reraise
from toytorch.jit.function import ScriptFunction
from toytorch.jit.ir import Graph
from toytorch.jit.module import RecursiveScriptModule, ScriptModule
from toytorch.jit.script.annotations import spelled
from toytorch.jit.script.base import Compiled, Parameter, Session
from toytorch.jit.script.classes import register
from toytorch.jit.script.compiler import compile_function, compile_methods, compile_program
from toytorch.jit.script.constants import check_constants, fix_constants
from toytorch.jit.script.errors import CompileError, FrontendError
from toytorch.jit.script.given import Refused, given, shared
from toytorch.jit.script.markers import MODIFIER, Attribute
from toytorch.jit.script.modules import RESULTS, is_library
from toytorch.jit.script.results import result_of
from toytorch.jit.script.texts import text_programs
from toytorch.nn import Module
from toytorch.nn.parameter import is_lazy


class CompiledFunction(ScriptFunction):
    """A scripted function: arguments by position or name, checked against its types.

    Raises RuntimeError for arguments that are missing, too many or of another type.
    """

    def __init__(self, compiled: Compiled, owner: Any = None) -> None:
        super().__init__(compiled.name, compiled.graph, owner)
        self.compiled = compiled
        self.__doc__ = compiled.doc

    @property
    def schema(self) -> str:
        """The signature in PyTorch's notation."""
        return self.compiled.declaration()

    def __call__(self, *args: object, **kwargs: Any) -> Any:
        inputs = self.flat(args, kwargs)
        try:
            return own_copy(self.executor.run(inputs))
        except Exception as error:
            reraise(error)

    def flat(self, args: Args, kwargs: Kwargs | None = None) -> list[Any]:
        params, name = self.compiled.params, self.name
        named = dict(kwargs or {})
        if len(args) > len(params):
            raise RuntimeError(
                f"{name}() expected at most {len(params)} argument(s) but received "
                f"{len(args) + len(named)} argument(s). Declaration: {self.compiled.declaration()}"
            )
        places = sum(not p.keyword_only for p in params)
        if len(args) > places:
            own = int(self.owner is not None)  # the module itself
            raise RuntimeError(
                f"{name}() takes {places + own} positional argument(s) but {len(args) + own} "
                f"was/were given.  Declaration: {self.compiled.declaration()}"
            )
        values = []
        for i, p in enumerate(params):
            if i < len(args):
                value = args[i]
            elif p.name in named:
                value = named.pop(p.name)
            elif p.default is not REQUIRED:
                value = p.default
            else:
                raise RuntimeError(
                    f"{name}() is missing value for argument '{p.name}'. "
                    f"Declaration: {self.compiled.declaration()}"
                )
            try:
                value = given(value, p.type)
            except Refused:
                shown = spelled(p.type) + (" (inferred)" if p.inferred else "")
                hint = (
                    f"\nInferred '{p.name}' to be of type 'Tensor' because it was not annotated "
                    "with an explicit type."
                    if p.inferred
                    else ""
                )
                raise RuntimeError(
                    f"{name}() Expected a value of type '{shown}' for argument '{p.name}' but "
                    f"instead found type '{type(value).__name__}'.{hint}\nPosition: {i}\nValue: "
                    f"{value!r}\nDeclaration: {self.compiled.declaration()}"
                ) from None
            values.append(value)
        if named:
            raise RuntimeError(
                f"{name}() Unknown keyword argument '{next(iter(named))}' for operator '{name}'. "
                f"Declaration: {self.compiled.declaration()}"
            )
        return values


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Tensor | None = None,
) -> Any:
    """Compiles typed Python: a function, a module with everything it calls, or a class.

    Parameters without an annotation are tensors. What a compiled function calls is compiled too.
    Raises RuntimeError for types and names that do not fit, NotSupportedError for Python that has
    no meaning in a graph; both point at line and column. Like `torch.jit.script`.

    >>> @torch.jit.script
    ... def power(x, n: int):
    ...     y = torch.ones_like(x)
    ...     for i in range(n):
    ...         y = y * x
    ...     return y
    >>> power(torch.tensor([2., 3.]), 3)
    tensor([ 8., 27.])
    """
    if not switch.enabled or isinstance(obj, (ScriptFunction, ScriptModule)):
        return obj
    if isinstance(obj, Module):
        return script_module(obj)
    if isinstance(obj, type):
        if issubclass(obj, Module):
            raise RuntimeError(
                f"Type '{obj}' cannot be compiled since it inherits from nn.Module, "
                "consider passing an instance instead"
            )
        if not issubclass(obj, tuple):
            register(obj)
        return obj
    if isinstance(obj, (list, dict)):
        return shared(obj)
    if not callable(obj) or not hasattr(obj, "__code__"):
        raise RuntimeError(f"Expected a function, a module or a class to script, got {obj!r}")
    owner = getattr(obj, "__self__", None)
    if isinstance(owner, Module):
        return script_module(owner, [obj.__name__])._methods[obj.__name__]
    try:
        return CompiledFunction(compile_function(obj))
    except (CompileError, FrontendError, OSError):
        if not is_ours(obj.__module__ or ""):
            raise
        return outside_function(obj)


def outside_function(function: Any) -> CompiledFunction:
    """One of the framework's functions that is no text for the compiler: a graph of one call."""
    graph, name = Graph(function.__name__), function.__name__
    params = []
    for p in inspect.signature(function).parameters.values():
        tensor = p.annotation in ("Tensor", Tensor)
        kind: types.Type = types.TENSOR if tensor else types.ANY
        default = REQUIRED if p.default is p.empty else p.default
        params.append(Parameter(p.name, kind, default, keyword_only=p.kind is p.KEYWORD_ONLY))
    given = [graph.add_input(p.type, p.name) for p in params]
    result = result_of(function, given, {})
    words = tuple(p.name for p in params if p.keyword_only)
    node = graph.make(
        f"aten::{name}", given, [result], {"_names": words} if words else {}, None, function
    )
    graph.nodes.append(node)
    graph.outputs = list(node.outputs)
    return CompiledFunction(Compiled(name, graph, params, result))


def refuse_lazy(module: Module) -> None:
    """Refuses a module with parameters that have no shape yet."""
    held = {**module._parameters, **module._buffers}
    unknown = [name for name, value in held.items() if is_lazy(value)]
    if unknown:
        kind = type(module)
        raise RuntimeError(
            f"'{kind.__module__}.{kind.__qualname__}' has uninitialized parameters {unknown}. Did "
            "you forget to run a forward pass?"
        )


def script_module(module: Module, names: list[str] | None = None) -> RecursiveScriptModule:
    """A module whose `forward` and exported methods are compiled, with all they call."""
    for child in module.modules():
        check_constants(child)
    take_attributes(module)
    if names is None:
        names = [
            n
            for n in dir(type(module))
            if getattr(getattr(type(module), n, None), MODIFIER, "") == "export"
        ]
        refuse_lazy(module)
        if type(module).forward is not Module.forward and getattr(
            type(module).forward, MODIFIER, ""
        ) not in ("ignore", "unused"):
            names.insert(0, "forward")
    session = Session()
    try:
        compiled = compile_methods(module, names, session)
    except (CompileError, FrontendError, OSError):
        if not is_library(type(module)):
            raise
        return outside(module)
    for key, c in session.methods.items():
        if key[0] == id(module) and len(key) == 2:
            compiled.setdefault(key[1], c)
    return Scripted(module, compiled, session)


def take_attributes(module: Module) -> None:
    """Puts values in the place of a module's `Attribute`s, and keeps their types."""
    held = {k: v for k, v in module.__dict__.items() if isinstance(v, Attribute)}
    if held:
        module.__dict__.setdefault("_jit_attributes", {}).update(held)
        module.__dict__.update({k: v.value for k, v in held.items()})


def outside(module: Module) -> RecursiveScriptModule:
    """One of the framework's modules that Python runs: a graph of one call."""
    params = [
        Parameter(name, types.ANY, REQUIRED if p.default is p.empty else p.default)
        for name, p in inspect.signature(module.forward).parameters.items()
    ]
    graph = Graph("forward")
    given = [
        graph.add_input(types.Class(type(module).__name__), "self"),
        *(graph.add_input(p.type, p.name) for p in params),
    ]
    kind = RESULTS.get(type(module).__name__, types.ANY)
    node = graph.make("prim::CallMethod", given, [kind], {"name": "__call__"})
    graph.nodes.append(node)
    graph.outputs = list(node.outputs)
    made = Scripted(module, {"forward": Compiled("forward", graph, params, kind)})
    made._methods["forward"].executor.owner = module
    return made


class Scripted(RecursiveScriptModule):
    """What `script` makes of a module."""

    def __init__(
        self,
        original: Module,
        compiled: dict[str, Compiled],
        session: Session | None = None,
        made: dict[int, Module] | None = None,
    ) -> None:
        super().__init__(original, {k: CompiledFunction(c, None) for k, c in compiled.items()})
        made = {} if made is None else made
        made[id(original)] = self
        self.__dict__.update(
            {k: own_copy(v) for k, v in vars(original).items() if is_plain(k, v)},
            _modules={
                name: child_of(child, session or Session(), made)
                for name, child in original._modules.items()
            },
        )
        for name in ("_forward_hooks", "_forward_pre_hooks"):
            self.__dict__[name] = getattr(original, name)
        fix_constants(self, original)

    def _get_name(self) -> str:
        return "RecursiveScriptModule"


def is_own(value: object) -> bool:
    """Whether something is a function of the program's, not of a library."""
    return isinstance(value, CompiledFunction) or (
        inspect.isfunction(value) and not is_ours(value.__module__ or "")
    )


def child_of(child: Module | None, session: Session, made: dict[int, Module]) -> Module | None:
    """A child of a compiled module: compiled as well, with the methods that were called."""
    if child is None or isinstance(child, ScriptModule):
        return child
    if id(child) not in made:
        methods = {
            key[1]: c for key, c in session.methods.items() if key[0] == id(child) and len(key) == 2
        }
        made[id(child)] = Scripted(child, methods, session, made)
    return made[id(child)]


def is_plain(name: str, value: object) -> bool:
    """Whether an attribute of a module is a value of Python's, which a compiled one has of its own."""
    return (
        not name.startswith("_")
        and name != "training"
        and isinstance(value, (bool, int, float, complex, str, list, dict, tuple))
    )


def own_copy(value: object) -> Any:
    """A copy of a list or dictionary with all those inside; tensors stay the same."""
    if value.__class__ is list:
        return [own_copy(v) for v in value]
    if value.__class__ is dict:
        return {k: own_copy(v) for k, v in value.items()}
    return tuple(map(own_copy, value)) if value.__class__ is tuple else value


class CompilationUnit:
    """Functions compiled from text, like `torch.jit.CompilationUnit`.

    The text is read, not run. It may use the names of `torch`, `math` and `typing`, its own
    functions, and those in `names`.

    >>> unit = CompilationUnit("def double(x):\\n    return x + x")
    >>> unit.double(torch.ones(1))
    tensor([2.])
    """

    def __init__(
        self, lang: str | None = None, _frames_up: int = 0, names: dict[str, Any] | None = None
    ) -> None:
        self._functions: dict[str, CompiledFunction] = {}
        frame = sys._getframe(1 + _frames_up)  # whose own functions the text may call
        self._names = {
            **{k: v for k, v in {**frame.f_globals, **frame.f_locals}.items() if is_own(v)},
            **(names or {}),
        }
        if lang is not None:
            self.define(lang)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Adds the functions of a text."""
        for program in text_programs(lang, self._names):
            self._functions[program.tree.name] = CompiledFunction(compile_program(program))

    def find_function(self, name: str) -> CompiledFunction | None:
        """A function by its name; None where there is none."""
        return self._functions.get(name)

    def get_functions(self) -> list[CompiledFunction]:
        """All functions."""
        return list(self._functions.values())

    def __getattr__(self, attr: str) -> Any:
        found = self.__dict__.get("_functions", {}).get(attr)
        if found is None:
            raise AttributeError(f"'CompilationUnit' has no attribute '{attr}'")
        return found

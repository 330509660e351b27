"""Tracing: a program runs once with proxies for its inputs, and leaves a graph."""

from __future__ import annotations

import builtins
import contextlib
import copy
import dataclasses
import functools
import inspect
import itertools
import math
import operator
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import toytorch
from toytorch import Tensor, overrides
from toytorch.facts.package import is_ours
from toytorch.fx.graph import Graph
from toytorch.fx.graph_module import GraphModule
from toytorch.fx.node import Argument, map_aggregate
from toytorch.fx.proxy import Proxy, TracerBase
from toytorch.nn import Module, Parameter, Sequential

Fn = Callable[..., Any]
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}  # names of modules whose calls become nodes
_tracing = False


def is_fx_tracing() -> bool:
    """Whether a program is being traced."""
    return _tracing


def wrap(fn_or_name: str | Fn) -> Any:
    """Lets calls of a function, which may be a builtin's name, become one node: called at the top of a module.

    Raises NotImplementedError elsewhere.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    if callable(fn_or_name):
        assert hasattr(fn_or_name, "__code__"), "wrap takes functions of Python, or names"
        name = fn_or_name.__name__
    else:
        name = fn_or_name
    frame = inspect.currentframe()
    calling = frame and frame.f_back
    assert calling is not None
    if calling.f_code.co_name != "<module>":
        raise NotImplementedError(  # the class that PyTorch raises
            "wrap must be called at the top level of a module"
        )
    _wrapped[id(calling.f_globals), name] = calling.f_globals
    return fn_or_name


def _recorded(function: Fn, target: Fn | None = None) -> Fn:
    """A function whose call becomes a node if an argument is a proxy; `target` is what it calls then."""

    @functools.wraps(function)
    def recorded(*args: Argument, **kwargs: Argument) -> Any:
        found = list[Proxy]()
        map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else a)
        if not found:
            return function(*args, **kwargs)
        tracer = found[0].tracer
        made = tracer.create_proxy("call_function", target or function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return recorded


class ProxyableClassMeta(type):
    """The class of classes whose making becomes a node where an argument is a proxy."""

    def __call__(cls, *args: Argument, **kwargs: Argument) -> Any:
        return _recorded(super().__call__, cls)(*args, **kwargs)


class _Patches:
    """Other values for a while, under names of modules, classes or dicts."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.stack = stack

    def attribute(self, owner: Any, name: str, value: object) -> None:
        had, before = name in vars(owner), getattr(owner, name)
        setattr(owner, name, value)
        self.stack.callback(setattr if had else lambda o, n, _: delattr(o, n), owner, name, before)

    def entry(self, space: dict[str, Any], name: str, value: object) -> None:
        if name in space:
            self.stack.callback(space.__setitem__, name, space[name])
        else:
            self.stack.callback(space.pop, name, None)
        space[name] = value


class Tracer(TracerBase):
    """Runs a function or a module with proxies; subclasses say what becomes one node.

    autowrap_modules     modules, such as math, whose functions become nodes
    autowrap_functions   further functions that do
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Fn, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._to_wrap = {
            id(f): f
            for m in autowrap_modules
            for name, f in vars(m).items()
            if not name.startswith("_") and callable(f)
        }
        self._to_wrap |= {id(f): f for f in autowrap_functions}
        self._modules_to_wrap = autowrap_modules
        self.param_shapes_constant = param_shapes_constant
        self.root: Any = None
        self.tensor_attrs: dict[int, str] = {}
        self.module_stack = {}
        self.traced_func_name = "forward"

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = type(self).__new__(type(self))
        alone = ("_to_wrap", "_modules_to_wrap")  # of modules of Python, which are not copied
        for name, value in vars(self).items():
            setattr(made, name, value if name in alone else copy.deepcopy(value, memo))
        return made

    # -- what subclasses may say ------------------------------------------------------------------

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a submodule's call is one node: those of torch.nn but Sequential are."""
        home = type(m).__module__
        ours = is_ours(home) or home.startswith("torch.")
        return ours and home.split(".")[1:2] == ["nn"] and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The path of a submodule of the root. Raises NameError for others."""
        for name, module in self.root.named_modules():
            if module is mod:
                return str(name)
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: Module, forward: Fn, args: tuple[Argument, ...], kwargs: dict[str, Argument]
    ) -> Any:
        """What a call of a submodule does: a node of a leaf, else its `forward` is traced through."""
        path = self.path_of_module(m)
        if not self.is_leaf_module(m, path):
            return forward(*args, **kwargs)
        return self.create_proxy("call_module", path, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What a module's attribute is to the program: a node where it is a parameter."""
        if isinstance(attr_val, Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is attr_val:
                    if name not in parameter_proxy_cache:
                        made = self.create_proxy("get_attr", name, (), {})
                        parameter_proxy_cache[name] = made
                    return parameter_proxy_cache[name]
        return attr_val

    def create_arg(self, a: Argument) -> Argument:
        """As proxies have it; tensors become attributes of the root, submodules their paths."""
        if isinstance(a, Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._path_of_tensor(a), (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(map(self.create_arg, a)), {})
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        return super().create_arg(a)

    def _entered(self, module: Module) -> str:
        """Notes that a submodule is called; returns the name of the note."""
        try:
            path = self.path_of_module(module)
        except NameError:
            return ""  # which `call_module` refuses, unless a subclass knows better
        self.module_stack[path] = path, type(module)
        return path

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that no attribute of the root has: the prefix and a number."""
        return next(n for k in itertools.count() if not hasattr(self.root, n := f"{prefix}{k}"))

    def _path_of_tensor(self, tensor: Tensor) -> str:
        if id(tensor) not in self.tensor_attrs:
            name = self.get_fresh_qualname("_tensor_constant")
            self.tensor_attrs[id(tensor)] = name
            setattr(self.root, name, tensor)
        return self.tensor_attrs[id(tensor)]

    # -- tracing ----------------------------------------------------------------------------------

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: dict[str, Any] | None = None
    ) -> tuple[Fn, list[Any]]:
        """The function that is to run, and a proxy, or what is given instead, for each parameter."""
        plain = inspect.unwrap(root_fn)
        assert hasattr(plain, "__code__"), f"Expected FunctionType, got {type(plain)}"
        code, concrete = plain.__code__, concrete_args or {}
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        parameters = inspect.signature(plain).parameters
        if is_module and not count:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        args: list[Any] = [self.root] if is_module else []
        for name in names[len(args) : count]:
            kind = _hint(plain, name)
            args.append(self._input(name, name, parameters[name].default, concrete, kind))
        at = count
        for flag, star in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
            if code.co_flags & flag:
                args.append(self._input(names[at], star + names[at], inspect.Parameter.empty, {}))
                at += 1
        if at == count and not code.co_kwonlyargcount:
            return root_fn, args

        def called(*given: Any) -> Any:
            by_place = code.co_argcount
            by_name = dict(zip(names[by_place:count], given[by_place:count]))
            stars = list(given[count:])
            more = stars.pop(0) if code.co_flags & inspect.CO_VARARGS else ()
            named = stars.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else {}
            return _call_with_stars(root_fn, given[:by_place], by_name, more, named)

        return called, args

    def _input(
        self,
        name: str,
        target: str,
        default: Argument,
        concrete: dict[str, Any],
        kind: object = None,
    ) -> Any:
        """A placeholder, or the value that the caller fixed for it."""
        given = () if default is inspect.Parameter.empty else (default,)
        proxy = self.create_proxy("placeholder", target, given, {}, type_expr=kind)
        if name not in concrete:
            return proxy
        value = concrete[name]
        if isinstance(value, (bool, int, float, str)):
            same = self.create_proxy("call_function", operator.eq, (proxy, value), {})
            told = f"{name} has been specialized to have value {value} but got another value"
            self.create_proxy("call_function", toytorch._assert, (same, told), {})
        if value is None:
            told = f"{name} has been specialized to have value None but got another value"
            self.create_proxy("call_function", _assert_is_none, (proxy, told), {})
        return value

    def trace(self, root: Module | Fn, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's forward, or of a function.

        concrete_args    values that parameters have here once and for all
        """
        global _tracing
        overrides.arm()
        if isinstance(root, Module):
            self.root, function = root, getattr(type(root), self.traced_func_name)
        else:
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {
            id(tensor): name
            for tensors in (self.root.named_buffers(), self.root.named_parameters())
            for name, tensor in tensors
        }
        for path, module in self.root.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, Tensor):
                    self.tensor_attrs.setdefault(id(value), f"{path}.{name}".lstrip("."))
        before, _tracing = _tracing, True
        try:
            called, args = self.create_args_for_root(
                function, isinstance(root, Module), concrete_args
            )
            with self._patched(function):
                result = self.create_arg(called(*args))
            kind = _hint(inspect.unwrap(function), "return") if called is function else None
            self.create_node("output", "output", (result,), {}, type_expr=kind)
        finally:
            _tracing = before
        return self.graph

    @contextlib.contextmanager
    def _patched(self, function: Any) -> Iterator[None]:
        """While a program runs, modules' calls and parameters come to this tracer, and wrapped functions
        become nodes: Python has no other way to see them."""
        call, get = Module.__call__, Module.__getattr__
        seen: dict[str, Any] = {}
        inside = [False]

        def called(module: Module, *args: Argument, **kwargs: Argument) -> Any:
            def forward(*more: Argument, **named: Argument) -> Any:
                return call(module, *more, **named)

            path = self._entered(module)
            try:
                return self.call_module(module, forward, args, kwargs)
            finally:
                self.module_stack.pop(path, None)

        def got(module: Module, name: str) -> Any:
            value = get(module, name)
            if inside[0] or not isinstance(value, Parameter):
                return value
            inside[0] = True  # the tracer itself looks for parameters
            try:
                return self.getattr(name, value, seen)
            finally:
                inside[0] = False

        with contextlib.ExitStack() as stack:
            patches = _Patches(stack)
            patches.attribute(Module, "__call__", called)
            patches.attribute(Module, "__getattr__", got)
            spaces = [getattr(inspect.unwrap(function), "__globals__", {})]
            spaces += [vars(m) for m in self._modules_to_wrap]
            for space in spaces:
                for name, value in list(space.items()):
                    if id(value) in self._to_wrap:
                        patches.entry(space, name, _recorded(value))
            for (_, name), space in _wrapped.items():
                original = space.get(name, getattr(builtins, name, None))
                if original is not None:
                    patches.entry(space, name, _recorded(original))
            yield


def _hint(function: Fn, name: str) -> object:
    """The type that a function's annotations say; a text would name what the graph does not know."""
    found = function.__annotations__.get(name)
    return None if isinstance(found, str) else found


def _assert_is_none(value: object, message: str) -> None:
    """Raises AssertionError for an input that was None when it was traced."""
    assert value is None, message


def _call_with_stars(
    function: Fn, args: tuple[Any, ...], by_name: dict[str, Any], more: Any, named: Any
) -> Any:
    """function(*args, *more, **by_name, **named), of which the last two may be proxies."""
    plain = inspect.unwrap(function)
    names = plain.__code__.co_varnames
    if not isinstance(more, Proxy) and not isinstance(named, Proxy):
        return function(*args, *more, **by_name, **named)
    # A proxy cannot be spread out: the function's own variables are set to it.
    flags = plain.__code__.co_flags
    stars = [more] * bool(flags & inspect.CO_VARARGS) + [named] * bool(
        flags & inspect.CO_VARKEYWORDS
    )
    of_stars = dict(zip(names[len(args) + len(by_name) :], stars))
    return _with_stars_as_parameters(plain)(*args, **by_name, **of_stars)


def _with_stars_as_parameters(function: FunctionType) -> FunctionType:
    """A function whose `*args` and `**kwargs` are parameters like others."""
    code = function.__code__
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    made = code.replace(
        co_flags=code.co_flags & ~inspect.CO_VARARGS & ~inspect.CO_VARKEYWORDS,
        co_kwonlyargcount=code.co_kwonlyargcount + stars,
    )
    result = FunctionType(
        made, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    result.__kwdefaults__ = function.__kwdefaults__
    return result


def symbolic_trace(root: Module | Fn, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """The module that computes what a module or function does, as a graph that can be changed.

    Raises TraceError where the way that it goes depends on its inputs. Like `torch.fx.symbolic_trace`.

    >>> def f(x, y):
    ...     return (x + y).relu()
    >>> print(symbolic_trace(f).graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %y : [num_users=1] = placeholder[target=y]
        %add : [num_users=1] = call_function[target=operator.add](args = (%x, %y), kwargs = {})
        %relu : [num_users=1] = call_method[target=relu](args = (%add,), kwargs = {})
        return relu
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


__all__ = ["ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

"""Functions of tensors that ask their arguments first, like `torch.overrides`.

An object with a method `__torch_function__(func, types, args, kwargs)` is asked what a function of
this package makes of it; so is a mode (`TorchFunctionMode`) about every call within it.

>>> class Loud(TorchFunctionMode):
...     def __torch_function__(self, func, types, args=(), kwargs=None):
...         print(func.__name__)
...         return func(*args, **(kwargs or {}))
>>> with Loud():
...     x = torch.ones(2).sum()
ones
sum

Asking costs more than adding small tensors. So functions are as they are until somebody wants to
be asked; then `arm` gives every one of them, which stays the same object, code that asks.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

import toytorch as torch
from toytorch.core.first_call import STUB_CODE
from toytorch.core.subclasses import ANSWER, Asking, answers, asking, overloaded
from toytorch.core.tensor import Tensor
from toytorch.facts import device as devices
from toytorch.facts import dtype as dtypes
from toytorch.facts.hints import Args, Fn, Kwargs
from toytorch.facts.package import is_ours
from toytorch.facts.size import Size
from toytorch.nn.parameter import Buffer, Parameter

__all__ = [
    "enable_reentrant_dispatch", "get_ignored_functions", "get_overridable_functions",
    "get_testing_overrides", "handle_torch_function", "has_torch_function", "is_tensor_like",
    "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip
F = TypeVar("F", bound=Callable[..., Any])

# Classes that nobody needs to be asked about, so that most arguments cost one look into a set.
PLAIN: set[type] = {
    Tensor, Parameter, Buffer, int, float, bool, complex, str, type(None), slice, type(Ellipsis),
    dtypes.dtype, devices.device, devices.layout, devices.memory_format, Size, type,
}  # fmt: skip


def names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


# What is about no tensor's values: these never ask.
IGNORED = names("""
typename is_tensor is_storage save load compile tensor as_tensor asarray from_numpy frombuffer
from_dlpack manual_seed seed initial_seed get_rng_state set_rng_state is_grad_enabled
is_inference_mode_enabled get_default_dtype set_default_dtype set_default_tensor_type
get_default_device set_default_device set_printoptions get_printoptions promote_types can_cast
result_type set_num_threads get_num_threads set_num_interop_threads get_num_interop_threads
broadcast_shapes autocast vmap scalar_tensor _assert
""")
COMPILED = ("avg_pool1d", "one_hot")  # of torch.nn.functional, as are those with an option out
OF_MODES = ("tensor", "as_tensor", "asarray", "scalar_tensor")  # but modes are told of these
METHODS = names("""
__init__ __new__ __class__ __init_subclass__ __torch_function__ as_subclass _make_subclass
__getattribute__ __setattr__ __hash__ __dir__ __getstate__ __setstate__ __del__ __reduce__
__sizeof__ __subclasshook__ __getattr__ __array__ _memory __deepcopy__ __reduce_ex__
""")
SHOWN = names("T mT H mH real imag data")  # attributes that are tensors


# -- which functions -------------------------------------------------------------------------------


@functools.cache
def _namespaces() -> tuple[tuple[str, Any], ...]:
    nn = torch.nn
    found = [("torch", torch), ("torch.functional", torch.functional)]
    found += [("torch.nn.functional", nn.functional), ("torch.nn.init", nn.init)]
    found += [("torch.linalg", torch.linalg), ("torch.fft", torch.fft)]
    found += [("torch.special", torch.special), ("torch.Tensor", Tensor)]
    return tuple(found)


def _functions() -> Iterator[tuple[str, str, Any]]:
    """(namespace, name, function) of all that may ask."""
    for where, space in _namespaces():
        for name, value in list(vars(space).items()):
            if not isinstance(value, types.FunctionType) or not is_ours(value.__module__):
                continue
            if name in METHODS if space is Tensor else name in IGNORED or name[:1] == "_":
                continue
            # `import torch` shows them there.
            if value in (handle_torch_function, has_torch_function):
                continue
            yield where, name, value


def get_overridable_functions() -> dict[Any, list[Fn]]:
    """The functions that ask, by the module or class that has them."""
    found: dict[Any, list[Fn]] = {}
    spaces = dict(_namespaces())
    for where, _, function in _functions():
        found.setdefault(spaces[where], []).append(function)
    return found


def get_ignored_functions() -> set[Fn]:
    """The public functions that never ask."""
    found = {vars(torch)[name] for name in IGNORED if callable(vars(torch).get(name))}
    return found | {vars(Tensor)[name] for name in METHODS if callable(vars(Tensor).get(name))}


def get_testing_overrides() -> dict[Fn, Fn]:
    """{function: one that takes the same arguments and gives -1}."""
    return {function: _minus_one(function) for _, _, function in _functions()}


def _minus_one(function: Fn) -> Fn:
    def override(*args: object, **kwargs: object) -> int:
        return -1

    vars(override)["__signature__"] = inspect.signature(function)
    return override


def get_default_nowrap_functions() -> set[Any]:
    """The getters whose results stay plain tensors with subclasses."""
    return {getattr(vars(Tensor).get(n), "__get__", None) for n in ("_base", "grad", "_grad")}


def resolve_name(f: Fn) -> str | None:
    """`torch.Tensor.add` for a function that asks; None for others."""
    for where, name, function in _functions():
        if function is f:
            return f"{where}.{name}"
    return None


def is_tensor_method_or_property(func: Fn) -> bool:
    """Whether it is Tensor's."""
    return func in _methods() or getattr(func, "__name__", "") == "__get__"


@functools.cache
def _methods() -> set[Any]:
    return {function for where, _, function in _functions() if where == "torch.Tensor"}


# -- asking ----------------------------------------------------------------------------------------


def is_tensor_like(inp: object) -> bool:
    """Whether it is a tensor, or an object that answers to functions of tensors."""
    return type(inp) is Tensor or hasattr(inp, ANSWER)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether somebody wants to be asked: one of these objects, or a mode."""
    if asking.passed:
        asking.passed = False
        return False
    if asking.modes and not asking.all_off:
        return True
    return not asking.off and any(answers(type(a)) for a in relevant_args)


def has_torch_function_unary(arg: object) -> bool:
    """`has_torch_function` of one object."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: object) -> bool:
    """`has_torch_function` of several."""
    return has_torch_function(args)


def _in_order(found: Iterable[Any]) -> list[Any]:
    """One object of each class, those of subclasses before those of the classes they derive from."""
    order: list[Any] = []
    for value in found:
        if any(type(value) is type(other) for other in order):
            continue
        at = next((i for i, o in enumerate(order) if isinstance(value, type(o))), len(order))
        order.insert(at, value)
    return order


def handle_torch_function(
    public_api: Fn, relevant_args: Iterable[Any], *args: object, **kwargs: object
) -> Any:
    """What the modes, or else the objects, answer for a call of a function.

    Raises TypeError if all of them answer NotImplemented.
    """
    asked = [] if asking.off else _in_order(a for a in relevant_args if answers(type(a)))
    kinds = tuple(map(type, asked))
    tried: list[str] = []
    if asking.modes and not asking.all_off:
        before = asking.modes
        mode = before[-1]
        asking.modes = before[:-1]
        try:
            result = getattr(mode, ANSWER)(public_api, kinds, args, kwargs)
        finally:
            asking.modes = before
        if result is not NotImplemented:
            return result
        tried.append(f"mode object {mode}")
    for value in asked:
        result = getattr(value, ANSWER)(public_api, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    name = resolve_name(public_api)
    if name is None or name.startswith("torch.nn."):
        raise TypeError(
            f"no implementation found for '{name}' on types that implement {ANSWER}: {list(kinds)}"
        )
    tried += [f"tensor subclass {kind}" for kind in kinds]
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all {ANSWER} handlers returned NotImplemented:\n\n"
        + "".join(f"  - {what}\n" for what in tried)
        + "\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


def redispatch_function(func: Fn, types: object, args: Args, kwargs: Kwargs | None) -> Any:
    """What a function does itself: it asks nobody, though the functions that it calls do."""
    plain = body_of(func)
    if plain is not func:
        return plain(*args, **(kwargs or {}))
    asking.passed = True
    try:
        return func(*args, **(kwargs or {}))
    finally:
        asking.passed = False


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[F], F]:
    """A decorator: the function asks those of its arguments that `dispatcher` picks out."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: object, **kwargs: object) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return cast(F, wrapped)

    return decorate


class TorchFunctionMode:
    """A context whose `__torch_function__` is asked about every call within it, and not about its own.

    Like `torch.overrides.TorchFunctionMode`.
    """

    def __torch_function__(self, func: Fn, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError  # what a mode does is its subclass's part

    def __enter__(self) -> TorchFunctionMode:
        arm()
        asking.modes = (*asking.modes, self)
        return self

    def __exit__(self, *error: object) -> None:
        asking.modes = asking.modes[:-1]


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call through."""

    def __torch_function__(self, func: Fn, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class enable_reentrant_dispatch:
    """A context that PyTorch needs and toytorch does not: it does nothing."""

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


# -- functions that ask ----------------------------------------------------------------------------


def asks(*args: object, **kwargs: object) -> Any:
    """What the code of a function becomes, with its own handler in the place of the constant."""
    handler: Any = "handler"
    return handler(*args, **kwargs)


@functools.cache
def asks_with(free: tuple[str, ...]) -> types.CodeType:
    """The code of `asks` for a function with these free variables, which it has, too: a frame that
    lacked the cells of its own free variables would crash whoever asks for its `f_locals`."""
    if not free:
        return asks.__code__
    lines = inspect.getsource(asks).splitlines()
    text = "\n    ".join([*lines, f"    ({', '.join(free)},)  # never reached, but named"])
    space: dict[str, Any] = {"Any": Any}
    exec(f"def around({', '.join(free)}):\n    {text}\n    return asks", space)
    made: Any = space["around"]
    return made(*free).__code__


_lock = threading.Lock()
KEPT = names("floordiv invert and or xor lshift rshift eq")  # operators told by their own names
TOLD = {
    **{f"__r{name}__": name for name in ("add", "mul")},
    **{f"__i{name}__": f"{name}_" for name in ("add", "sub", "mul")},
    "__itruediv__": "div_",
    "__matmul__": "matmul",
    "__ne__": "ne",
}  # and those told by another function's
PREFIXES = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}


def _told(where: str, name: str, function: Any) -> Any:
    """The function that those who are asked are told of, by PyTorch's name."""
    if name in TOLD:
        return getattr(Tensor, TOLD[name])
    space = function.__globals__
    if "first_call" in space and "op" in space and name[2:-2] not in KEPT:
        op = space["op"]
        if function.__name__ == op.function.__name__:
            return op.function  # also for an operator, whose function is another one
    prefix = PREFIXES.get(where, "")
    if prefix or name[:2] == "__" or not hasattr(dict(_namespaces())[where], function.__name__):
        function.__name__ = prefix + name
    return function


ASKED_BESIDE = ("grad", "backward")  # of torch.autograd; subclasses may wrap gradients
_armed = False
_plain: list[tuple[types.FunctionType, types.FunctionType]] = []  # each with its own code


Spelling = Callable[[Args, Kwargs], tuple[Args, Kwargs]]


def _spelling(function: Fn) -> Spelling | None:
    """How a call is told, where PyTorch's function is one of Python: whatever has a default stands by
    its name, given or not. Functions that PyTorch has compiled are told as they were called."""
    name, parts = function.__name__, inspect.signature(function).parameters
    if (
        function.__module__.split(".")[1:3] != ["nn", "functional"]
        or name[-1:] == "_"
        or name in COMPILED
        or ("out" in parts and parts["out"].kind is inspect.Parameter.KEYWORD_ONLY)
    ):
        return None
    needed = [n for n, p in parts.items() if p.default is p.empty]
    defaults = {n: p.default for n, p in parts.items() if n not in needed}

    def spelled(args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        given = {**dict(zip(parts, args)), **kwargs}
        if len(args) > len(parts) or not given.keys() >= set(needed):
            return args, kwargs  # which the function refuses itself
        return tuple(given.pop(n) for n in needed), {**defaults, **given}

    return spelled


def _handler(func: Any, plain: Fn, spelling: Spelling | None) -> Fn:
    """What a function does once somebody wants to be asked."""
    state, spreads = asking, func is torch.einsum

    def of_modes(*args: object, **kwargs: object) -> Any:
        if not state.modes or state.all_off:
            return plain(*args, **kwargs)
        return handle_torch_function(func, (), *args, **kwargs)

    def handler(*args: Any, **kwargs: Any) -> Any:
        if spreads and not state.modes and args[1:] and args[1].__class__ in (list, tuple):
            args = (args[0], *args[1])  # in PyTorch objects within a list are asked afterwards
        if state.modes:
            if state.all_off:
                return plain(*args, **kwargs)
        elif state.off:
            return plain(*args, **kwargs)
        else:
            for value in args:
                if value.__class__ not in PLAIN:
                    break
            else:
                if not kwargs:
                    return plain(*args)
        found = list(overloaded((*args, *kwargs.values()), PLAIN))
        if found or state.modes:
            if spelling is not None:
                args, kwargs = spelling(args, kwargs)
            return handle_torch_function(func, found, *args, **kwargs)
        return plain(*args, **kwargs)

    return of_modes if getattr(func, "__name__", "") in OF_MODES else handler


def _ask(function: types.FunctionType, func: object) -> None:
    """Gives a function code that asks; `func` is what is told to those who are asked."""
    code = function.__code__
    plain = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    plain.__qualname__ = function.__qualname__  # which errors name
    plain.__kwdefaults__, plain.__doc__ = function.__kwdefaults__, function.__doc__
    vars(plain).update(vars(function))  # the signature of what is generated later
    _plain.append((function, plain))
    if code is STUB_CODE:  # its own code will come later, and go to what runs then
        function.__globals__["first_call"].__self__.function = plain
    elif not hasattr(function, "__signature__"):
        vars(function)["__signature__"] = inspect.signature(function)  # the code no longer tells it
    handler = _handler(func, plain, _spelling(function))
    own = asks_with(code.co_freevars)
    constants = tuple(handler if c == "handler" else c for c in own.co_consts)
    function.__code__ = own.replace(
        co_consts=constants, co_name=code.co_name, co_qualname=code.co_qualname
    )


def body_of(function: Fn) -> Fn:
    """A function that asks nobody itself, though those that it calls do."""
    return next((plain for asking, plain in _plain if asking is function), function)


def arm() -> None:
    """Lets all functions ask, from now on."""
    global _armed
    with _lock:
        if _armed:
            return
        _armed = True
        seen: set[int] = set()
        for where, name, function in list(_functions()):
            if id(function) not in seen:
                seen.add(id(function))
                _ask(function, _told(where, name, function))
        beside = [getattr(torch.autograd, name) for name in ASKED_BESIDE]
        for function in [*beside, *(vars(torch)[name] for name in OF_MODES)]:
            _ask(function, function)
        Asking.everybody = True
        for name in SHOWN:
            shown = vars(Tensor).get(name)
            if isinstance(shown, property) and isinstance(shown.fget, types.FunctionType):
                _ask(shown.fget, shown.__get__)

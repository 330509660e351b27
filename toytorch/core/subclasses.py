"""Subclasses of Tensor, and other objects that answer to functions of tensors.

`__torch_function__(func, types, args, kwargs)` of such an object is asked before a function of this
package runs. Nothing asks in a program without such objects: `toytorch.overrides` changes the
functions when the first of them appears, and `appeared` here is how it is told.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toytorch.backends import base
from toytorch.core import tensor
from toytorch.core.tensor import Tensor, like_class, of_class
from toytorch.facts import state
from toytorch.facts.dtype import get_default_dtype
from toytorch.facts.hints import Args, Device, DType, Fn, Kwargs, Layout, MemoryFormat, Shape
from toytorch.facts.package import is_ours

ANSWER = "__torch_function__"
DISPATCH = "__torch_dispatch__"
appeared: Callable[[], None] = lambda: None  # noqa: E731  # what `toytorch` puts here
answering: Callable[[], Any] = lambda: None  # noqa: E731  # and here, who asks `__torch_dispatch__`


class Asking(threading.local):
    """What each thread has switched."""

    everybody = False  # whether the functions ask, in all threads
    off = False  # whether subclasses are not asked
    all_off = False  # whether modes are not asked either
    passed = False  # whether the next function that would ask is passed over
    dispatch_off = False  # whether the `__torch_dispatch__` of subclasses is not asked
    modes: tuple[Any, ...] = ()  # `TorchFunctionMode`s in force; the last one is asked first


asking = Asking()


class DisableTorchFunctionSubclass:
    """A context in which subclasses are taken for plain tensors."""

    everything = False

    def __enter__(self) -> None:
        self.before = asking.off, asking.all_off
        asking.off, asking.all_off = True, asking.all_off or self.everything

    def __exit__(self, *error: object) -> None:
        asking.off, asking.all_off = self.before


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A context in which neither subclasses nor modes are asked."""

    everything = True


class DisableTorchDispatch:
    """A context in which the `__torch_dispatch__` of subclasses is not asked."""

    def __enter__(self) -> None:
        self.before, asking.dispatch_off = asking.dispatch_off, True

    def __exit__(self, *error: object) -> None:
        asking.dispatch_off = self.before


def disabled_torch_function_impl(func: Fn, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What classes state that are as plain as Tensor: the function runs as if they were."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


NOT_CONVERTED: set[Any] = set()  # functions whose results stay as they are


def torch_function(cls: type, func: Fn, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What subclasses do unless they say otherwise: results are of the subclass, too."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if func in NOT_CONVERTED else converted(result, cls)


def converted(result: Any, cls: type) -> Any:
    """Tensors, also those in tuples and lists, as objects of a class."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else as_subclass(result, cls)
    if isinstance(result, (tuple, list)):
        parts = (converted(r, cls) for r in result)
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def as_subclass(self: Tensor, cls: type) -> Any:
    """The same tensor, memory and history, as an object of a subclass.

    Raises TypeError for a class that is none.
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass(): argument 'cls' must be a Tensor subclass, got {cls}")
    source = self.view_as(self) if self._requires_grad and self._grad_edge is None else self
    made = of_class(cls)
    for slot in ("_array", "_dtype", "_requires_grad", "_grad_edge"):
        setattr(made, slot, getattr(source, slot))
    made._storage = source._memory()
    vars(made).update(vars(source))
    return made


def make_subclass(cls: type, data: Tensor, require_grad: bool = False, **more: Any) -> Any:
    """An object of a subclass over the memory of a tensor, without its history."""
    made = like_class(cls, data)
    made.requires_grad_(require_grad)
    return made


def make_wrapper(
    cls: type,
    size: Shape,
    strides: Shape | None = None,
    storage_offset: int | None = None,
    memory_format: MemoryFormat | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **more: object,
) -> Any:
    """An object of a subclass with a shape, a type and a device, and no memory: what it holds are
    tensors that its class puts there, and `__torch_dispatch__` is asked about every op.

    Raises TypeError for a class without that method.
    """
    if not dispatches(cls):
        raise TypeError(f"{cls.__name__} must define {DISPATCH}")
    meta: Any = base.of_kind("meta")  # which few programs need

    made = of_class(cls)
    made._dtype = kind = dtype or get_default_dtype()  # `dtype` may be the class's own
    made._array = meta.wrapped(tuple(size), kind.numpy, strides, storage_offset or 0, device)
    made._storage, made._grad_edge, made._requires_grad = None, None, False
    if requires_grad:
        made.requires_grad_()
    return made


def dispatches(cls: type) -> bool:
    """Whether a class has a `__torch_dispatch__` of its own, which is asked about every op."""
    return getattr(cls, DISPATCH, disabled_torch_dispatch_impl) is not disabled_torch_dispatch_impl


def asks(cls: type) -> bool:
    """Whether a class wants to be asked, about functions or about ops."""
    return answers(cls) or dispatches(cls)


def disabled_torch_dispatch_impl(
    func: Fn, types: Sequence[type], args: Sequence[object] = (), kwargs: Kwargs | None = None
) -> Any:
    """What Tensor has in the place of the method: nobody asks it."""
    return func(*args, **(kwargs or {}))


def ask_below(made: Tensor) -> None:
    """Sends every call through the general path, which asks `below`, as long as there is an object
    whose class wants to be asked about ops."""
    global below
    if not dispatches(type(made)):
        return
    if below is None:
        below = answering()
    state.count_asked(1)
    weakref.finalize(made, state.count_asked, -1).atexit = False


# None, or who asks the classes of operands what a call comes to, which is NotImplemented where none of
# them has the method:
#     call(op, args, out)             a record's call
#     write(op, args)                 one that writes to its first operand
#     create(function, args, kwargs)  a function that makes a tensor without a record
below: Any = None


def init_subclass(cls: Any) -> None:
    """Tells that there is a class that wants to be asked.

    A class that is asked about ops is not asked about functions, unless it says so.
    """
    own: Any = getattr(cls, ANSWER)
    if DISPATCH in vars(cls) and getattr(own, "__func__", None) is torch_function:
        setattr(cls, ANSWER, staticmethod(disabled_torch_function_impl))
    if not is_ours(cls.__module__) and getattr(cls, ANSWER) is not disabled_torch_function_impl:
        appeared()


def overloaded(values: Any, plain: set[type]) -> Iterator[Any]:
    """The objects among arguments that want to be asked."""
    for value in values:
        cls = value.__class__
        if cls in plain:
            continue
        if cls is tuple or cls is list:
            yield from overloaded(value, plain)
        elif answers(cls):
            yield value


def foreign(values: Any) -> bool:
    """Whether there is an object among arguments that is no tensor, and wants to be asked by
    functions that do not ask yet."""
    return not asking.everybody and any(
        not isinstance(v, Tensor) for v in overloaded(values, set())
    )


def ask(function: Fn, args: Args, **kwargs: Any) -> Any:
    """Calls a function once more, now that it asks."""
    appeared()
    return function(*args, **kwargs)


def answers(cls: type) -> bool:
    """Whether objects of a class want to be asked."""
    found = getattr(cls, ANSWER, None)
    return found is not None and found is not disabled_torch_function_impl and cls is not Tensor


tensor.appeared = ask_below
for _name, _function in {
    ANSWER: classmethod(torch_function),
    "__init_subclass__": classmethod(init_subclass),
    DISPATCH: staticmethod(disabled_torch_dispatch_impl),
    "_make_subclass": staticmethod(make_subclass),
    "_make_wrapper_subclass": staticmethod(make_wrapper),
    "as_subclass": as_subclass,
}.items():
    setattr(Tensor, _name, _function)

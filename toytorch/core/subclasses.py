"""Subclasses of Tensor, and other objects that answer to functions of tensors.

`__torch_function__(func, types, args, kwargs)` of such an object is asked before a function of this
package runs. Nothing asks in a program without such objects: `toytorch.overrides` changes the
functions when the first of them appears, and `appeared` here is how it is told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from toytorch.core.tensor import Tensor, like_class, new
from toytorch.facts.package import is_ours

ANSWER = "__torch_function__"
appeared: Callable[[], None] = lambda: None  # noqa: E731  # what `toytorch` puts here


class Asking(threading.local):
    """What each thread has switched."""

    everybody = False  # whether the functions ask, in all threads
    off = False  # whether subclasses are not asked
    all_off = False  # whether modes are not asked either
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


def disabled_torch_function_impl(
    func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """What classes state that are as plain as Tensor: the function runs as if they were."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


NOT_CONVERTED: set[Any] = set()  # functions whose results stay as they are


def torch_function(
    cls: type, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
) -> Any:
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
    made: Any = new(cls)
    for slot in ("_array", "dtype", "_requires_grad", "_grad_edge"):
        setattr(made, slot, getattr(source, slot))
    made._storage = source._memory()
    vars(made).update(vars(source))
    return made


def make_subclass(cls: type, data: Tensor, require_grad: bool = False, **more: Any) -> Any:
    """An object of a subclass over the memory of a tensor, without its history."""
    made = like_class(cls, data)
    made.requires_grad_(require_grad)
    return made


def init_subclass(cls: type) -> None:
    """Tells that there is a class that wants to be asked."""
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


def ask(function: Callable[..., Any], args: tuple[Any, ...], **kwargs: Any) -> Any:
    """Calls a function once more, now that it asks."""
    appeared()
    return function(*args, **kwargs)


def answers(cls: type) -> bool:
    """Whether objects of a class want to be asked."""
    found = getattr(cls, ANSWER, None)
    return found is not None and found is not disabled_torch_function_impl and cls is not Tensor


for _name, _function in {
    ANSWER: classmethod(torch_function),
    "__init_subclass__": classmethod(init_subclass),
    "_make_subclass": staticmethod(make_subclass),
    "as_subclass": as_subclass,
}.items():
    setattr(Tensor, _name, _function)

"""Switching the recording of graphs on and off, for one thread."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from toytorch.facts import state, warned
from toytorch.facts.hints import Fn

__all__ = [
    "enable_grad", "enforce_grad_layout_policy", "inference_mode", "is_grad_enabled",
    "is_inference_mode_enabled", "is_multithreading_enabled", "no_grad", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip

is_grad_enabled = state.is_grad_enabled


class Mode:
    """A context manager that is also a decorator, of functions and of generators."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def clone(self) -> Mode:
        """Another one with the same setting."""
        return type(self)()

    def __call__(self, function: Fn) -> Any:
        if inspect.isclass(function):
            warned.at_call(
                "Decorating classes is deprecated and will be disabled in future versions. You "
                "should only decorate functions or methods. To preserve the current behavior of "
                "class decoration, you can directly decorate the `__init__` method and nothing else.",
                FutureWarning,
            )
            function.__init__ = self(function.__init__)  # type: ignore[method-assign]  # a class is decorated by its constructor
            return function
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generator(*args: object, **kwargs: object) -> Any:
                stream = function(*args, **kwargs)
                try:
                    with self.clone():
                        value = stream.send(None)
                    while True:
                        try:
                            sent = yield value
                        except GeneratorExit:
                            with self.clone():
                                stream.close()
                            raise
                        except BaseException as error:  # whatever was thrown in is the stream's
                            with self.clone():
                                value = stream.throw(error)
                        else:
                            with self.clone():
                                value = stream.send(sent)
                except StopIteration as end:
                    return end.value

            return generator

        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapper


class Recording(Mode):
    """Switches recording to what the subclass says, and back; also a bare decorator."""

    enabled: bool

    def __new__(cls, function: Any = None) -> Any:
        return object.__new__(cls) if function is None else object.__new__(cls)(function)

    def __init__(self, function: Any = None) -> None:
        self.before: list[bool] = []

    def __enter__(self) -> None:
        self.before.append(state.local.grad)
        state.set_grad(self.enabled)

    def __exit__(self, *exc: object) -> None:
        state.set_grad(self.before.pop())


class no_grad(Recording):
    """No graph is recorded inside, like `torch.no_grad`.

    >>> x = torch.ones(1, requires_grad=True)
    >>> with no_grad():
    ...     (x * 2).requires_grad
    False
    """

    enabled = False


class enable_grad(Recording):
    """Graphs are recorded inside, also within `no_grad`, like `torch.enable_grad`."""

    enabled = True


class set_grad_enabled(Mode):
    """Records graphs or not, as a function or a context, like `torch.set_grad_enabled`."""

    def __init__(self, mode: bool) -> None:
        self.mode, self.before = bool(mode), [state.local.grad]
        state.set_grad(self.mode)

    def __enter__(self) -> None:
        state.set_grad(self.mode)

    def __exit__(self, *exc: object) -> None:
        state.set_grad(self.before[0])

    def clone(self) -> Mode:
        return set_grad_enabled(self.mode)

    def __call__(self, function: Fn) -> Any:
        state.set_grad(self.before[0])  # as a decorator it must not act now
        return super().__call__(function)


class inference_mode(Mode):
    """Like `no_grad`: nothing is recorded inside."""

    mode: Any = True

    def __new__(cls, mode: bool = True) -> Any:
        return object.__new__(cls)(mode) if callable(mode) else object.__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        self.mode: Any = mode
        self.before: list[tuple[bool, bool]] = []
        self.watch: list[Any] = []

    def __enter__(self) -> None:
        self.before.append((state.local.grad, state.local.inference))
        state.local.inference = self.mode
        state.set_grad(not self.mode)
        self.watch.append(state.watching(self))  # results are marked on the general path
        self.watch[-1].__enter__()

    def __exit__(self, *exc: object) -> None:
        self.watch.pop().__exit__(None, None, None)
        grad, state.local.inference = self.before.pop()
        state.set_grad(grad)

    def clone(self) -> Mode:
        return inference_mode(self.mode)


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside `inference_mode`."""
    return bool(state.local.inference)


class enforce_grad_layout_policy(Mode):
    """Whether gradients have to lie as their leaves do. They always do here, so nothing changes."""

    def __init__(self, enable: bool = True) -> None:
        self.mode: Any = enable

    def __enter__(self) -> None:
        """Nothing is switched."""

    def __exit__(self, *exc: object) -> None:
        """Nothing was switched."""

    def clone(self) -> Mode:
        return enforce_grad_layout_policy(self.mode)


class set_multithreading_enabled:
    """Whether a backward pass may use several threads. This engine uses one, so nothing changes."""

    def __init__(self, mode: bool) -> None:
        self.before = state.local.multithreading
        state.local.multithreading = bool(mode)

    def __enter__(self) -> None:
        """The mode is set since this object was made."""

    def __exit__(self, *exc: object) -> None:
        state.local.multithreading = self.before


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` was told."""
    return bool(state.local.multithreading)

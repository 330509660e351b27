"""What tells the compiler how to treat a function, a value or an attribute."""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from toytorch.facts import warned
from toytorch.jit import types
from toytorch.jit.script.annotations import Unreadable, type_of
from toytorch.jit.tracer import running
from toytorch.nn.modules.module import Module

__all__ = [
    "Attribute", "Final", "annotate", "export", "ignore", "interface", "is_scripting", "is_tracing",
    "isinstance_", "unused", "unwrap_optional",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
Final = typing.Final
MODIFIER = "_torchscript_modifier"


@dataclass(frozen=True)
class Attribute:
    """A value with its type, as an attribute of a module: `self.n = Attribute([], List[int])`.

    >>> Attribute(0, float).type
    <class 'float'>
    """

    value: Any
    type: Any


def ignore(drop: bool = False, **kwargs: object) -> Any:
    """Leaves a function to Python: the compiled code calls it, like `torch.jit.ignore`.

    >>> @ignore
    ... def outside(x):
    ...     return sorted(x.tolist())
    """
    if callable(drop):
        setattr(drop, MODIFIER, "ignore")
        return drop
    if not isinstance(drop, bool):
        raise RuntimeError(
            f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}"
        )

    def decorate(function: F) -> F:
        setattr(function, MODIFIER, "unused" if drop else "ignore")
        return function

    if drop:
        warned.at_call(
            "ignore(drop=True) has been deprecated. TorchScript will now drop the "
            "function call on compilation. Use torch.jit.unused now.",
            FutureWarning,
        )
    return decorate


def unused(function: F) -> F:
    """Replaces a function by one that raises when it is called, like `torch.jit.unused`."""
    setattr(function, MODIFIER, "unused")
    return function


def export(function: F) -> F:
    """Marks a method that is compiled although `forward` does not call it."""
    setattr(function, MODIFIER, "export")
    return function


def interface(kind: object) -> Any:
    """Accepts a class that lists methods; modules are taken as they are, so nothing is checked.

    Raises RuntimeError for what is no class.
    """
    if not isinstance(kind, type):
        raise RuntimeError("interface must be applied to a class")
    return kind


def annotate(the_type: object, the_value: object) -> Any:
    """The value; in compiled code it has the type: `annotate(List[int], [])`.

    >>> annotate(typing.List[int], [])
    []
    """
    return the_value


def isinstance_(obj: Module, target_type: object) -> bool:
    """isinstance for types like `List[int]`, like `torch.jit.isinstance`.

    >>> isinstance_([1, 2], typing.List[int]), isinstance_([1, "a"], typing.List[int])
    (True, False)
    """
    wanted = target_type if isinstance(target_type, tuple) else (target_type,)
    have = types.of(obj)
    for kind in wanted:
        try:
            if type_of(kind).contains(have):
                return True
        except Unreadable:
            if isinstance(kind, type) and isinstance(obj, kind):
                return True
    return False


def is_scripting() -> bool:
    """False; in compiled code True.

    >>> is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """Whether this thread is being traced; in compiled code False."""
    return running() is not None


def unwrap_optional(x: object) -> Any:
    """The value of an optional; raises AssertionError where it is None."""
    assert x is not None, "Unwrapping null optional"
    return x


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Accepted as PyTorch accepts it; what is compiled is decided call by call here."""
    yield

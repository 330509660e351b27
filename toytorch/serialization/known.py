"""What files may name where `weights_only=False`: still a table, of things that are no danger.

Classes here are made without calling them, and functions are values that nothing in a file calls.
"""

from __future__ import annotations

import argparse
import pathlib
import types
from collections import defaultdict, deque
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from toytorch import nn, optim
from toytorch.core.op import registry
from toytorch.core.public_modules import pytorch_module
from toytorch.facts.package import is_ours
from toytorch.serialization import arrays, modules
from toytorch.serialization.rebuild import Builder, check_key, require

FACTORIES: tuple[Any, ...] = (None, dict, list, set, int, float, str, bool, tuple)
PLAIN_CLASSES = (*FACTORIES[1:], complex, bytes, bytearray, frozenset, object, type(None))
REFUSED = {"from_file", "load", "save"}  # functions that reach beyond tensors


class Value(NamedTuple):
    """A class or function that a file may hold, and not call."""

    thing: Any


class Made(NamedTuple):
    """A class whose objects are made empty; their state is set without running their code."""

    thing: type


def default_dict(spend: Callable[..., Any], *args: type) -> Any:
    """A defaultdict of plain values."""
    require(
        len(args) < 2 and all(a in FACTORIES for a in args),
        "a defaultdict may make plain values only",
    )
    return defaultdict(*args)


def frozen_set(spend: Any, *args: Any) -> frozenset[Any]:
    """A frozenset from a list."""
    require(
        len(args) < 2 and all(type(a) in (list, tuple) for a in args),
        "a frozenset is made from a list",
    )
    spend(sum(map(len, args)))
    return frozenset(check_key(v) for a in args for v in a)


def deque_of(spend: Any, *args: Any) -> Any:
    """A deque from a list, and its length."""
    require(
        len(args) < 3
        and all(type(a) in (list, tuple) for a in args[:1])
        and all(n is None or (type(n) is int and n >= 0) for n in args[1:]),
        "a deque is made from a list",
    )
    spend(sum(map(len, args[:1])))
    return deque(*args)


def slice_of(spend: Callable[..., Any], *args: int | None) -> Any:
    """A slice or range of integers."""
    require(
        1 <= len(args) <= 3 and all(a is None or type(a) is int for a in args),
        "a slice needs up to three integers",
    )
    return slice(*args)


def range_of(spend: Callable[..., Any], *args: int) -> Any:
    """A range of integers."""
    require(1 <= len(args) <= 3 and all(type(a) is int for a in args), "a range needs integers")
    return range(*args)


def path_of(spend: Any, *args: Any) -> Any:
    """A path, which is a text until a program opens it."""
    require(all(type(a) is str for a in args), "a path needs texts")
    return pathlib.PurePosixPath(*args)


def function_of(spend: Callable[..., Any], owner: object, name: str) -> Any:
    """A function of PyTorch that is written in C, as pickle names it."""
    found = functions().get(f"torch.{name}") if owner in OWNERS and type(name) is str else None
    require(found is not None, "getattr is not called for files")
    return found


def no_bytes(spend: Callable[..., Any], *args: object) -> bytes:
    """How protocol 2 writes bytes of which there are none."""
    require(not args, "bytes are written as text")
    return b""


OWNERS = ("torch._C._VariableFunctionsClass",)
BUILDERS: dict[str, Any] = {
    "collections.defaultdict": default_dict,
    "collections.deque": deque_of,
    "builtins.frozenset": frozen_set,
    "builtins.slice": slice_of,
    "builtins.range": range_of,
    "builtins.getattr": function_of,
    "builtins.bytes": no_bytes,
    "pathlib.PosixPath": path_of,
    "pathlib.PurePosixPath": path_of,
    "pathlib._local.PosixPath": path_of,
    **arrays.FUNCTIONS,
}
THINGS: dict[str, Any] = {
    "collections.defaultdict": defaultdict,
    "collections.deque": deque,
    "builtins.slice": slice,
    "builtins.range": range,
    "builtins.frozenset": frozenset,
    "builtins.bytes": bytes,
    "numpy.dtype": np.dtype,
}
SHELLS: dict[str, type] = {
    "argparse.Namespace": argparse.Namespace,
    "types.SimpleNamespace": types.SimpleNamespace,
}


@cache
def functions() -> dict[str, Any]:
    """Functions of tensors that a module may keep, such as its activation."""
    found = {
        f"torch.{name}": op.function
        for name, op in registry.items()
        if op.has_function and "." not in name and name not in REFUSED
    }
    for name, held in vars(nn.functional).items():
        if (
            isinstance(held, types.FunctionType)
            and is_ours(held.__module__)
            and not (name.startswith("_") or name in REFUSED)
        ):
            found[f"torch.nn.functional.{name}"] = found[f"torch._C._nn.{name}"] = held
    return found


@cache
def chosen() -> dict[str, Any]:
    """Optimizers and schedules by PyTorch's names: files say by their classes which to use."""
    return {
        f"{pytorch_module(held.__module__, held.__qualname__)}.{held.__qualname__}": held
        for package in (optim, optim.lr_scheduler)
        for held in vars(package).values()
        if isinstance(held, type) and is_ours(held.__module__)
    }


@cache
def table() -> dict[str, Any]:
    """All that a file may name beside tensors and containers."""
    made: dict[str, Any] = {f"builtins.{c.__name__}": Value(c) for c in PLAIN_CLASSES}
    values = (functions(), chosen(), arrays.CLASSES)
    made |= {name: Value(f) for held in values for name, f in held.items()}
    made |= {name: Made(c) for name, c in (*modules.classes().items(), *SHELLS.items())}
    made |= {name: Builder(name, f, THINGS.get(name)) for name, f in BUILDERS.items()}
    return made | {"builtins.Ellipsis": Value(...)} | {name: Value(name) for name in OWNERS}


@cache
def names() -> dict[int, str]:
    """How to name what is toytorch's so that PyTorch finds its own: {id: name}."""
    order = sorted(
        functions().items(),
        key=lambda item: "_C" in item[0] or 1 - item[0].startswith("torch.nn.functional."),
    )
    return {id(f): name for name, f in (*chosen().items(), *reversed(order))}

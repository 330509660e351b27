"""What files may name where `weights_only=False`: still a table, of things that are no danger.

Classes here are made without calling them, and functions are values that nothing in a file calls.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import fractions
import pathlib
import types
from collections import defaultdict, deque
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import toytorch
from toytorch import nn, optim
from toytorch.core.op import registry
from toytorch.core.public_modules import pytorch_module
from toytorch.core.random import Generator
from toytorch.core.tensor import Tensor
from toytorch.facts.device import cpu, device, layout
from toytorch.facts.dtype import dtype, float32
from toytorch.facts.hints import Fn
from toytorch.facts.package import is_ours
from toytorch.nn.parameter import UninitializedBuffer, UninitializedParameter
from toytorch.nn.utils.rnn import PackedSequence
from toytorch.ops.named_results import result_class
from toytorch.serialization import arrays, modules
from toytorch.serialization.rebuild import Builder, check_key, require

FACTORIES: tuple[Any, ...] = (None, dict, list, set, int, float, str, bool, tuple)
PLAIN_CLASSES = (*FACTORIES[1:], complex, bytes, bytearray, frozenset, object, type(None))
OF_TENSORS = ("ops.", "nn.init", "functional")  # where functions of tensors stand in the package
REFUSED = {"from_file", "load", "save"}  # functions that reach beyond tensors


class Value(NamedTuple):
    """A class or function that a file may hold, and not call."""

    thing: Any


class Made(NamedTuple):
    """A class whose objects are made empty; their state is set without running their code."""

    thing: type


def default_dict(spend: Fn, *args: type) -> Any:
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


def slice_of(spend: Fn, *args: int | None) -> Any:
    """A slice or range of integers."""
    require(
        1 <= len(args) <= 3 and all(a is None or type(a) is int for a in args),
        "a slice needs up to three integers",
    )
    return slice(*args)


def range_of(spend: Fn, *args: int) -> Any:
    """A range of integers."""
    require(1 <= len(args) <= 3 and all(type(a) is int for a in args), "a range needs integers")
    return range(*args)


def function_of(spend: Fn, owner: object, name: str) -> Any:
    """A function of PyTorch that is written in C, as pickle names it."""
    found = functions().get(f"torch.{name}") if owner in OWNERS and type(name) is str else None
    require(found is not None, "getattr is not called for files")
    return found


def packed_sequence(spend: Fn, *parts: Any) -> Any:
    """Sequences without padding."""
    require(
        len(parts) == 4 and all(p is None or isinstance(p, Tensor) for p in parts),
        "a packed sequence is made of tensors",
    )
    return tuple.__new__(PackedSequence, parts)


def result_of(name: str, fields: Sequence[str]) -> Fn:
    """A maker of an op's named results."""

    def build(spend: Fn, parts: Any, more: object = None) -> Any:
        require(
            type(parts) is tuple and len(parts) == len(fields), "an op's results are in a tuple"
        )
        return result_class(name, fields)(parts)

    return build


def lazy(cls: type) -> Fn:
    """A maker of parameters that have no shape yet."""

    def build(spend: Fn, wanted: object, where: Any = cpu, kind: Any = float32) -> Any:
        require(
            type(wanted) is bool and isinstance(where, device) and isinstance(kind, dtype),
            "a parameter without a shape has a device and a type",
        )
        return cls(wanted, device=where, dtype=kind)

    return build


def plain(cls: Fn, *kinds: type) -> Fn:
    """A maker of values of the standard library from numbers, texts or bytes."""

    def build(spend: Fn, *args: Any) -> Any:
        require(
            all(type(a) in kinds for a in args)
            and all(len(a) < 1000 for a in args if isinstance(a, (str, bytes))),
            f"a {getattr(cls, '__name__', '')} is made of other values",
        )
        return cls(*args)

    return build


def fraction(*args: str | int) -> fractions.Fraction:
    """A fraction of whole numbers: with an exponent, a short text would be a huge one."""
    require(all(isinstance(a, int) or "e" not in a.lower() for a in args), "a fraction is a/b")
    return fractions.Fraction(*args)


def type_of(spend: Fn, value: object) -> Any:
    """The type of a constant, which has no name."""
    require(value is None or value is ..., "type is not called for files")
    return type(value)


def no_bytes(spend: Fn, *args: object) -> bytes:
    """How protocol 2 writes bytes of which there are none."""
    require(not args, "bytes are written as text")
    return b""


def generator_of(spend: Fn, where: Any) -> Generator:
    """A stream of random numbers, whose place is its state."""
    require(isinstance(where, device), "a generator is of a device")
    return Generator(where)


OWNERS = ("torch._C._VariableFunctionsClass",)
BUILDERS: dict[str, Any] = {
    "collections.defaultdict": default_dict,
    "collections.deque": deque_of,
    "builtins.frozenset": frozen_set,
    "builtins.slice": slice_of,
    "builtins.range": range_of,
    "builtins.getattr": function_of,
    "builtins.bytes": no_bytes,
    "builtins.type": type_of,
    "torch._C.Generator": generator_of,
    "torch.nn.utils.rnn.PackedSequence": packed_sequence,
    "torch.nn.parameter.UninitializedParameter": lazy(UninitializedParameter),
    "torch.nn.parameter.UninitializedBuffer": lazy(UninitializedBuffer),
    "datetime.datetime": plain(datetime.datetime, bytes),
    "datetime.date": plain(datetime.date, bytes),
    "datetime.time": plain(datetime.time, bytes),
    "datetime.timedelta": plain(datetime.timedelta, int),
    "decimal.Decimal": plain(decimal.Decimal, str),
    "fractions.Fraction": plain(fraction, str, int),
    "pathlib.PosixPath": plain(pathlib.Path, str),  # a text until a program opens it
    "pathlib.PurePosixPath": plain(pathlib.PurePosixPath, str),
    "pathlib._local.PosixPath": plain(pathlib.Path, str),
    "pathlib._local.PurePosixPath": plain(pathlib.PurePosixPath, str),
    **arrays.FUNCTIONS,
}
THINGS: dict[str, Any] = {
    "collections.defaultdict": defaultdict, "collections.deque": deque, "builtins.slice": slice,
    "builtins.range": range, "builtins.frozenset": frozenset, "builtins.bytes": bytes,
    "numpy.dtype": np.dtype, "torch._C.Generator": Generator,
}  # fmt: skip
NAMED: dict[str, Sequence[str]] = {
    op.name.removesuffix(".dim"): op.schema.result_names
    for op in registry.values()
    if op.schema.result_names
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
    groups: tuple[tuple[str, str, Any], ...] = (
        ("torch", "", toytorch),
        ("torch.nn.init", "", nn.init),
        *((f"torch.{m.__name__.rpartition('.')[2]}", m.__name__.rpartition(".")[2], m) for m in (
            toytorch.linalg, toytorch.special, toytorch.fft
        )),
    )  # fmt: skip
    recorded = set(map(id, found.values()))
    for place, short, module in groups:
        for name, held in vars(module).items():
            of = getattr(held, "__globals__", {}).get("__name__", "")
            if name.startswith("_") or name in REFUSED or isinstance(held, type):
                continue
            if id(held) in recorded or of.partition(".")[2].startswith(OF_TENSORS):
                found[f"{place}.{name}"] = held
                if short:
                    found[f"torch._C._{short}.{short}_{name}"] = held
                elif module is toytorch:
                    found[f"torch.functional.{name}"] = held
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
def shells() -> dict[str, type]:
    """Classes whose objects are their attributes and nothing else."""
    distributions, data = toytorch.distributions, toytorch.utils.data  # few files have one

    kinds: tuple[type, ...] = (
        distributions.Distribution, distributions.transforms.Transform,
        distributions.constraints.Constraint, data.TensorDataset, data.Subset, data.ConcatDataset,
        data.Sampler,
    )  # fmt: skip
    found, pending = dict(SHELLS), list(kinds)
    while pending:
        cls = pending.pop()
        if is_ours(cls.__module__):
            found[f"{pytorch_module(cls.__module__, cls.__qualname__)}.{cls.__qualname__}"] = cls
            pending += cls.__subclasses__()
    return found


def attributes(cls: type, state: Any) -> Any:
    """The attributes of such an object: none stands for what its class does."""
    require(
        type(state) is dict
        and all(
            type(k) is str and not k.startswith("__") and not callable(getattr(cls, k, None))
            for k in state
        ),
        f"the state of a {cls.__name__} must be a dict of its attributes",
    )
    return state


@cache
def table() -> dict[str, Any]:
    """All that a file may name beside tensors and containers."""
    made: dict[str, Any] = {f"builtins.{c.__name__}": Value(c) for c in PLAIN_CLASSES}
    values = (functions(), chosen(), arrays.CLASSES)
    made |= {name: Value(f) for held in values for name, f in held.items()}
    made |= {name: Made(c) for name, c in (*modules.classes().items(), *shells().items())}
    made |= {name: Made(c) for name, c in chosen().items() if issubclass(c, optim.Optimizer)}
    for name, fields in NAMED.items():
        build = Builder(f"torch.return_types.{name}", result_of(name, fields))
        made[build.name] = build
    made |= {name: Builder(name, f, THINGS.get(name)) for name, f in BUILDERS.items()}
    made |= {"torch.dtype": Value(dtype), "torch.layout": Value(layout)}
    return made | {"builtins.Ellipsis": Value(...)} | {name: Value(name) for name in OWNERS}


@cache
def names() -> dict[int, str]:
    """How to name what is toytorch's so that PyTorch finds its own: {id: name}."""
    order = sorted(
        functions().items(),
        key=lambda item: "_C" in item[0] or 1 - item[0].startswith("torch.nn.functional."),
    )
    named = {id(f): name for name, f in (*chosen().items(), *reversed(order))}
    return named | {id(Generator): "torch._C.Generator"}

"""What a Program consists of: arrays, scalars, steps and reductions.

>>> print(Step("y", "add", ("x", 1.0), "float32", ("i",)))
y[i] float32 = add(x, 1.0)
>>> print(Reduce("s", "sum", "x", ("j",), "float32", ("i",)))
s[i] float32 = sum[j](x)
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from toytorch.loops.language.functions import FUNCTIONS
from toytorch.loops.language.primitives import PRIMITIVES
from toytorch.loops.language.types import TYPES

Constant = float | int | bool
Argument = str | float | int | bool  # the name of a value, or a constant of its neighbours' type

# Words that generated kernels use themselves.
RESERVED = (
    frozenset(FUNCTIONS)
    | frozenset(PRIMITIVES)
    | frozenset(TYPES)
    | frozenset(keyword.kwlist)
    | {"lo", "hi"}
)
OF_DIMENSIONS = ("extent", "index")
SIZES = re.compile(r"n\d+$|size_")


class Unsupported(ValueError):
    """A program, or arrays for it, that these loops cannot do; the caller does it otherwise."""


@dataclass(frozen=True)
class Array:
    """An array that is read, or written: its elements' type and the dimensions it varies over."""

    name: str
    type: str
    dims: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}[{','.join(self.dims)}] {self.type}"


@dataclass(frozen=True)
class Scalar:
    """A scalar: a Python number that is passed at the call."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class Step:
    """name = op(args...) for each element.

    Two ops take a dimension: "extent" is its size, "index" an element's place along it (int64).
    """

    name: str
    op: str
    args: tuple[Argument, ...]
    type: str
    dims: tuple[str, ...] = ()

    def __str__(self) -> str:
        args = ", ".join(a if isinstance(a, str) else repr(a) for a in self.args)
        return f"{self.name}[{','.join(self.dims)}] {self.type} = {self.op}({args})"


@dataclass(frozen=True)
class Reduce:
    """name = sum, prod, max, min, any or all of arg over the dimensions `over`, which vanish."""

    name: str
    op: str
    arg: str
    over: tuple[str, ...]
    type: str
    dims: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.name}[{','.join(self.dims)}] {self.type} = "
            f"{self.op}[{','.join(self.over)}]({self.arg})"
        )

    @property
    def args(self) -> tuple[str, ...]:
        return (self.arg,)

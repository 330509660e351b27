"""A Program: what is to be computed for every element, without any order of loops yet.

It is a list of steps over named dimensions. An array varies over some of the dimensions, and a
dimension that it lacks is broadcast; a reduction makes dimensions vanish.

    >>> p = Program.parse('''x[i,j] float32 -> y[i,j]
    ...     e = exp(x - max[j](x))
    ...     y = e / sum[j](e)''')
    >>> print(p)
    x[i,j] float32 -> y[i,j] float32
        a[i] float32 = max[j](x)
        b[i,j] float32 = sub(x, a)
        e[i,j] float32 = exp(b)
        c[i] float32 = sum[j](e)
        y[i,j] float32 = div(e, c)
    >>> Program.parse(str(p)) == p
    True
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toytorch.loops.language.parse import parse
from toytorch.loops.language.primitives import JOINS, PRIMITIVES, supports
from toytorch.loops.language.steps import (
    OF_DIMENSIONS,
    RESERVED,
    SIZES,
    Array,
    Reduce,
    Scalar,
    Step,
    Unsupported,
)
from toytorch.loops.language.types import TYPES, computed, kind


@dataclass(frozen=True)
class Program:
    """Inputs, scalars and steps in order, and the arrays that are written.

    An output has the name of a step (or of an input); its dims are the order in which the array
    has them, and its type may be float16 or bfloat16 where the value is float32.
    """

    inputs: tuple[Array, ...]
    scalars: tuple[Scalar, ...]
    steps: tuple[Step | Reduce, ...]
    outputs: tuple[Array, ...]
    # What is made of the program later (its kernels); no part of what it is.
    made: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False, hash=False)

    def __post_init__(self) -> None:
        check(self)

    @staticmethod
    def parse(text: str, type: str = "float32") -> Program:
        """The Program that a text describes; `type` is that of arrays and scalars without one."""
        return Program(*parse(text, type))

    @property
    def dims(self) -> tuple[str, ...]:
        """All dimensions, in the order in which the arrays name them first."""
        names = dict.fromkeys(d for a in (*self.outputs, *self.inputs) for d in a.dims)
        return tuple(names)

    @property
    def over(self) -> tuple[str, ...]:
        """The dimensions that its reductions make vanish."""
        names = {d for s in self.steps if isinstance(s, Reduce) for d in s.over}
        return tuple(d for d in self.dims if d in names)

    @property
    def cost(self) -> int:
        """Work per element, roughly, in additions."""
        return sum(PRIMITIVES[s.op].cost if s.op in PRIMITIVES else 1 for s in self.steps)

    def __str__(self) -> str:
        ins = ", ".join(str(v) for v in (*self.inputs, *self.scalars))
        outs = ", ".join(str(a) for a in self.outputs)
        return "\n    ".join([f"{ins} -> {outs}".strip(), *map(str, self.steps)])


# -- what a program has to fulfil -----------------------------------------------------------------


def check(program: Program) -> None:
    """Refuses a program with names, types or dimensions that do not fit together."""
    types: dict[str, str] = {}
    dims: dict[str, set[str]] = {}

    def define(name: str, type: str, over: tuple[str, ...]) -> None:
        if not name.isidentifier() or name in RESERVED or SIZES.match(name):
            raise ValueError(f"{name!r} cannot be the name of a value")
        if name in types:
            raise ValueError(f"{name!r} is defined twice")
        if type not in TYPES or type == "index":
            raise TypeError(f"{name!r} has the unknown type {type!r}")
        types[name], dims[name] = computed(type), set(over)

    for array in program.inputs:
        if len(set(array.dims)) < len(array.dims):
            raise ValueError(f"{array} has a dimension twice")
        define(array.name, array.type, array.dims)
    for n in program.scalars:
        define(n.name, n.type, ())
    known = set(program.dims)
    for step in program.steps:
        for a in step.args:
            if isinstance(a, str) and a not in types and step.op not in OF_DIMENSIONS:
                raise NameError(f"{step}: {a!r} is not defined before it")
        if isinstance(step, Reduce):
            _check_reduce(step, types, dims, known)
        else:
            _check_step(step, types, dims, known)
        define(step.name, step.type, step.dims)
    if not program.outputs:
        raise ValueError("a program has to have an output")
    for o in program.outputs:
        if o.name not in types:
            raise NameError(f"output {o} is computed by no step")
        if computed(o.type) != types[o.name]:
            raise TypeError(f"output {o} is computed as {types[o.name]}")
        if not dims[o.name] <= set(o.dims):
            raise ValueError(f"output {o} lacks dimensions of its value: {sorted(dims[o.name])}")


def _check_step(s: Step, types: dict[str, str], dims: dict[str, set[str]], known: set[str]) -> None:
    if s.op == "index":
        if len(s.args) != 1 or s.args[0] not in known or s.dims != s.args or s.type != "int64":
            raise ValueError(f"{s}: index takes one of the dimensions {sorted(known)} and is int64")
        return
    if s.op == "extent":
        if len(s.args) != 1 or s.args[0] not in known or s.dims:
            raise ValueError(f"{s}: extent takes one of the dimensions {sorted(known)}")
        return
    primitive = PRIMITIVES.get(s.op)
    if primitive is None:
        raise NameError(f"{s}: there is no primitive {s.op!r}")
    if len(s.args) != primitive.arity:
        raise TypeError(f"{s}: {s.op} takes {primitive.arity} arguments, got {len(s.args)}")
    named = [a for a in s.args if isinstance(a, str)]
    varied = {d for a in named for d in dims[a]}
    if set(s.dims) != varied:
        raise ValueError(f"{s}: its arguments vary over {sorted(varied)}")
    rest = list(s.args)
    if s.op == "where":
        condition = rest.pop(0)
        if isinstance(condition, str) and types[condition] != "bool":
            raise TypeError(f"{s}: the condition has to be bool, got {types[condition]}")
    found = {types[a] for a in rest if isinstance(a, str)}
    if s.op == "cast":
        return
    if len(found) > 1:
        raise TypeError(f"{s}: arguments of types {sorted(found)}; cast them to one")
    type = found.pop() if found else s.type
    divisor = s.args[1] if len(s.args) == 2 and not isinstance(s.args[1], str) else None
    if not supports(s.op, type, divisor):
        raise Unsupported(
            f"{s}: {s.op} is not supported for {type}"
            + (
                " unless the divisor is a constant other than 0"
                if s.op in ("floordiv", "remainder", "fmod")
                else ""
            )
        )
    wanted = "bool" if primitive.result == "bool" else type
    if s.type != wanted:
        raise TypeError(f"{s}: the result is {wanted}")


def _check_reduce(
    s: Reduce, types: dict[str, str], dims: dict[str, set[str]], known: set[str]
) -> None:
    if s.op not in JOINS:
        raise NameError(f"{s}: there is no reduction {s.op!r}")
    if not s.over or not set(s.over) <= known:
        raise ValueError(f"{s}: reduces over {s.over}, of the dimensions {sorted(known)}")
    if set(s.dims) != dims[s.arg] - set(s.over):
        raise ValueError(f"{s}: should vary over {sorted(dims[s.arg] - set(s.over))}")
    if s.type != types[s.arg]:
        raise TypeError(f"{s}: the result has the type of what is reduced, {types[s.arg]}")
    if not supports(s.op, s.type):
        raise Unsupported(f"{s}: {s.op} is not supported for {kind(s.type)!r} types")

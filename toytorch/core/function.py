"""From a record to what users call: the function, the method, the in-place form."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.core import dispatch, fast, state
from toytorch.core.op import Op, generate
from toytorch.core.schema import REQUIRED
from toytorch.core.tensor import Tensor

# NumPy's names for PyTorch's parameters, accepted as PyTorch does.
ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "self", "a": "self", "x1": "self",
           "x2": "other", "input": "self"}


def spread(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The ints of `f(2, 3)` or of `f((2, 3))`."""
    for v in values:
        if v.__class__ is not int:
            break
    else:
        return values
    if len(values) == 1 and not isinstance(values[0], int) and (
            isinstance(values[0], (tuple, list)) or (
                isinstance(values[0], Tensor) and values[0].ndim)):
        values = tuple(values[0])
    return tuple(v if v.__class__ is int else as_int(v) for v in values)


def as_int(value: Any) -> int:
    """An integer from what Python may use as an index; a traced one stays what it is."""
    if isinstance(value, int) and value.__class__ is not bool:
        return value
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise TypeError("expected a sequence of ints, but found an element of type "
                        f"{type(value).__name__}") from None


def make_function(op: Op) -> Any:
    """A function with the record's signature."""
    short = fast.make(op)
    if short is not None:
        short.__doc__ = describe(op)
        return short
    params, passed, star = [], [], False
    defaults: dict[str, Any] = {}
    variadic = None
    for a in op.schema.args:
        name = "input" if a.name == "self" else a.name
        if a.is_variadic:
            params.append(f"*{name}")
            passed.append(f"spread({name}) if not more else spread(more_dims(OP, more))")
            star, variadic = True, name
            continue
        if a.keyword_only and not star:
            params.append("*")
            star = True
        if a.default is REQUIRED:
            params.append(name)
        else:
            defaults[f"default_{name}"] = a.default
            params.append(f"{name}=default_{name}")
        passed.append(name)
    if op.has_out:
        if not star:
            params.append("*")
        params.append("out=None")
    if variadic:
        params.append("**more")
    source = fast.make_general(op, params, passed)
    if source is not None:
        function = fast.compiled(op, source)
        function.__doc__ = describe(op)
        return function
    python_name = op.name.replace(".", "_")
    python_name += "_" if python_name in ("and", "or", "not") else ""
    out = ", out" if op.has_out else ""
    tuple_args = "".join(p + ", " for p in passed)
    body = f"call(OP, ({tuple_args.rstrip()}){out})"
    source = f"def {python_name}({', '.join(params)}):\n    return {body}\n"
    if op.kind == "view" and not op.many:
        source = fast.VIEW.format(name=python_name, params=", ".join(params), args=tuple_args,
                                  first=passed[0])
    namespace = {"call": dispatch.call, "OP": op, "spread": spread, "more_dims": more_dims,
                 "state": state, "ndarray": np.ndarray, "kernel": op.on_cpu,
                 "view_of": dispatch.view_of, "record": dispatch.record,
                 "__name__": "toytorch.ops", **defaults}
    generate(op.name, source, namespace)
    op.function_source = source  # type: ignore[attr-defined]
    function = namespace[python_name]
    function.__doc__ = describe(op)
    return function


def more_dims(op: Op, more: dict[str, Any]) -> tuple[Any, ...]:
    """The value of `size=` or `dims=`, given by name where positions are usual."""
    (name, value), *rest = more.items()
    known = next(a.name for a in op.schema.args if a.is_variadic)
    if rest or name not in (known, "size", "shape", "dims", "sizes", "repeats"):
        raise TypeError(f"{op.name}() got an unexpected keyword argument '{name}'")
    return (value,)


def make_inplace(op: Op) -> Any:
    """The form with an underscore, which writes into its first argument."""
    params, passed, star = [], [], False
    defaults: dict[str, Any] = {}
    for a in op.schema.args:
        if a.keyword_only and not star:
            params.append("*")
            star = True
        if a.default is REQUIRED:
            params.append(a.name)
        else:
            defaults[f"default_{a.name}"] = a.default
            params.append(f"{a.name}=default_{a.name}")
        passed.append(a.name)
    name = op.name.replace(".", "_") + "_"
    source = (f"def {name}({', '.join(params)}):\n"
              f"    return inplace(OP, ({', '.join(passed)},))\n")
    namespace = {"inplace": dispatch.inplace, "OP": op, "__name__": "toytorch.ops", **defaults}
    generate(f"{op.name}_", source, namespace)
    function = namespace[name]
    function.__doc__ = f"In-place form of `{op.name}`.\n\n{describe(op)}"
    return function


def attach(op: Op) -> Any:
    """Makes the function of a record and hangs its forms on Tensor; returns the function."""
    op.function = make_function(op)
    name = op.name.replace(".", "_")
    if op.has_method and "." not in op.name and not op.name.startswith("linalg_"):
        setattr(Tensor, name, op.function)
    if op.has_inplace:
        setattr(Tensor, name + "_", make_inplace(op))
    return op


def describe(op: Op) -> str:
    """The help text of an op, from its record."""
    lines = [op.doc, "", f"    {op.schema}"]
    if op.expr:
        lines.append(f"    formula: {op.expr}")
    lines += [f"    d {name} = {op.formulas[name]}" if name in op.formulas else
              f"    d {name}: a function of {', '.join(op.needs[name])}" for name in op.derivatives]
    lines += ["", f"The whole page of this op: print(torch.ops.reference.page(torch.ops.registry["
              f"{op.name!r}]))"]
    return "\n".join(lines)

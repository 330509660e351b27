"""From a record to what users call: the function, the method, the in-place form."""

from __future__ import annotations

from typing import Any

from toytorch.core import arguments, dispatch, fast_path
from toytorch.core.op import Op, generate
from toytorch.core.tensor import Tensor
from toytorch.facts.schema import REQUIRED


def make_function(op: Op) -> Any:
    """A function with the record's signature."""
    short = fast_path.make(op)
    if short is not None:
        short.__doc__ = describe(op)
        return short
    params, passed, checks, star = [], [], [], False
    defaults: dict[str, Any] = {}
    for i, a in enumerate(op.schema.args):
        name = arguments.called(op, i)
        if a.is_variadic:
            params.append(f"*{name}")
            passed.append(f"spread({name})")
            star = True
            continue
        if a.keyword_only and not star:
            params.append("*")
            star = True
        defaults[f"default_{name}"] = a.default
        params.append(f"{name}=default_{name}" if a.default is not REQUIRED else f"{name}=REQUIRED")
        passed.append(name)
        if a.default is REQUIRED and not a.is_tensor:
            checks.append(
                f"    if {name} is REQUIRED:\n        raise TypeError(missing(op, [{i}]))\n"
            )
    if op.has_out:
        params += ["out=None"] if star else ["*", "out=None"]
    params.append("**more")
    source = fast_path.make_general(op, params, passed, "".join(checks))
    if source is None:
        source = plain(op, params, passed, "".join(checks))
    function = fast_path.compiled(op, source, defaults)
    function.__doc__ = describe(op)
    return function


def plain(op: Op, params: list[str], passed: list[str], checks: str) -> str:
    """The source of a function that leaves everything to `dispatch`, or of a view."""
    name = fast_path.python_name(op)
    args = "".join(p + ", " for p in passed)
    if op.kind == "view" and not op.many:
        return fast_path.VIEW.format(
            name=name, params=", ".join(params), args=args, first=passed[0], checks=checks
        )
    out = ", out" if op.has_out else ""
    return (
        f"def {name}({', '.join(params)}):\n    if more:\n"
        f"        return call(op, bound(op, ({args.rstrip()}), more)[0]{out})\n{checks}"
        f"    return call(op, ({args.rstrip()}){out})\n"
    )


def make_inplace(op: Op) -> Any:
    """The form with an underscore, which writes into its first argument."""
    params, passed, star = list[str](), list[str](), False
    defaults: dict[str, Any] = {"REQUIRED": REQUIRED}
    for a in op.schema.args:
        if a.keyword_only and not star:
            params.append("*")
            star = True
        defaults[f"default_{a.name}"] = a.default
        params.append(a.name if not passed else f"{a.name}=default_{a.name}")
        passed.append(a.name)
    name = fast_path.python_name(op) + "_"
    values = f"({', '.join(passed)},)"
    checks = "".join(
        f" or {a.name} is REQUIRED" for a in op.schema.args[1:] if a.default is REQUIRED
    )
    source = (
        f"def {name}({', '.join([*params, '**more'])}):\n"
        f"    if more{checks}:\n"
        f"        return inplace(op, bound(op, {values}, more, True)[0])\n"
        f"    return inplace(op, {values})\n"
    )
    namespace = {
        "inplace": dispatch.inplace,
        "bound": arguments.bound,
        "op": op,
        "__name__": "toytorch.ops",
        **defaults,
    }
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


def in_one_line(formula: Any) -> str:
    return str(formula).replace("\n", "; ")


def describe(op: Op) -> str:
    """The help text of an op, from its record."""
    lines = [op.doc, "", f"    {op.schema}"]
    if op.formula:
        lines.append(f"    formula: {in_one_line(op.formula)}")
    lines += [
        f"    d {name} = {in_one_line(op.formulas[name])}"
        if name in op.formulas
        else f"    d {name}: a function of {', '.join(op.needs[name])}"
        for name in op.derivatives
    ]
    lines += [
        "",
        f"The whole page of this op: print(torch.ops.reference.page(torch.ops.registry["
        f"{op.name!r}]))",
    ]
    return "\n".join(lines)

"""From a record to what users call: the function, the method, the in-place form."""

from __future__ import annotations

import functools
from typing import Any

from toytorch.core import arguments, fast_path, older_forms, write
from toytorch.core.first_call import Generated
from toytorch.core.op import Op, parameters
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn
from toytorch.facts.schema import NOT_GIVEN, REQUIRED


def make_function(op: Op, by_older: Fn = older_forms.rearranged) -> Any:
    """A function with the record's signature, which leaves the older forms of calls to another."""
    made: Generated

    def write() -> tuple[str, dict[str, Any]]:
        names = fast_path.names_for(op, made.function.__globals__)
        source = fast_path.write(op) or general(op, names)
        if f"{name}_with_more(" in source:
            names[f"{name}_with_more"] = make_with_more(op, f"{name}_with_more")
        if not op.older:
            return source, names
        return older_forms.taking(op, source), {**names, "by_older": by_older}

    name = fast_path.python_name(op)
    made = Generated(name, op.name, write)
    return made.of_record(op, describe(op), op.has_out)


def make_with_more(op: Op, name: str) -> Any:
    """What the function of an op with alpha= calls where arguments are given by name."""
    made: Generated

    def write() -> tuple[str, dict[str, Any]]:
        names = fast_path.names_for(op, made.function.__globals__)
        return general(op, names).replace(f"def {op.name}(", f"def {name}(", 1), names

    made = Generated(name, f"{op.name}: with more", write)
    return made.of_record(op, describe(op), op.has_out)


def make_operator(op: Op) -> Any:
    """What Python's operator calls: the function, without keyword arguments.

    It is one of its own because it answers NotImplemented where the function raises TypeError: an
    operand that the op does not take may have an operator of its own (`__rmul__`).
    """
    made: Generated

    def write() -> tuple[str, dict[str, Any]]:
        source = fast_path.write(op, operator=True)
        if source is None:
            source = f"def {name}(input, other):\n    return operate(op, (input, other))\n"
        return source, fast_path.names_for(op, made.function.__globals__)

    name = fast_path.python_name(op)
    made = Generated(name, f"{op.name}: operator", write)
    return made.of_record(op, describe(op))


def general(op: Op, names: dict[str, Any]) -> str:
    """The source of a function that is no fast path of one or two tensors; adds to its names."""
    params, passed, checks, star = [], [], [], False
    by_place = [a for a in op.schema.args if not a.keyword_only]
    for i, a in enumerate(op.schema.args):
        name = arguments.called(op, i)
        if a.is_variadic:
            params.append(f"*{name}")
            word = "size" if name in ("shape", "sizes") else name  # as PyTorch calls it
            passed.append(f"spread({name}, {op.name!r}, {word!r})")
            checks.append(f"    if not {name}:\n        raise TypeError(missing(op, [{i}]))\n")
            star = True
            continue
        if a.keyword_only and not star:
            params.append("*")
            star = True
        names[f"default_{name}"] = NOT_GIVEN if op.alone and i == 1 else a.default
        params.append(f"{name}=default_{name}" if a.default is not REQUIRED else f"{name}=REQUIRED")
        if not i and op.number_is_self:
            params.append("/")  # `bound` looks whether it may be given by name
        passed.append(name)
        if i == 1 and len(by_place) == 2 and a.type.startswith("int[]"):
            params.append("*further")  # a method may be given the integers of its list one by one
            star = True
            given = f"spread(({name}, *further), {op.name!r}, {name!r})"
            checks.append(f"    if further:\n        {name} = {given}\n")
        if a.default is REQUIRED and not a.is_tensor:
            checks.append(
                f"    if {name} is REQUIRED:\n        raise TypeError(missing(op, [{i}]))\n"
            )
        some = f" and {name} is not None" if a.is_optional else ""
        if op.alone and i == 1:
            rest = "else" if op.alone == "no None" else f"elif {name} is not None"
            lacks = " if keepdim is False else alone(op, keepdim)" * (len(by_place) > 2)
            checks.append(
                f"    if {name}.__class__ is not int:\n"
                f"        if {name} is default_{name}:\n            {name} = None{lacks}\n"
                f"        {rest}:\n            {name} = option(op, {i}, {name})\n"
            )
        elif arguments.is_dim(a):
            checks.append(
                f"    if {name}.__class__ is not int{some}:\n"
                f"        {name} = as_dim(op, {i}, {name})\n"
            )
        elif a.type.startswith("dtype"):
            checks.append(
                f"    if {name} is not None and {name}.__class__ is not dtype:\n"
                f"        {name} = as_dtype({name})\n"
            )
        elif a.type.rstrip("?") in ("float", "Scalar"):
            checks.append(
                f"    if {name}.__class__ is not float and {name}.__class__ is not int{some}:\n"
                f"        {name} = number(op, {i}, {name})\n"
            )
        elif a.type in ("int[]", "int[]?"):  # of which one will do
            checks.append(
                f"    if {name}.__class__ is not int and not (\n"
                f"            {name}.__class__ is tuple and all_int({name})){some}:\n"
                f"        {name} = as_ints(op, {i}, {name})\n"
            )
        elif (kind := a.type.rstrip("?")) in arguments.TYPED:
            checks.append(
                f"    if {name}.__class__ is not {kind}{some}:\n"
                f"        {name} = as_typed(op, {i}, {name})\n"
            )
    if op.has_out:
        params += ["out=None"] if star else ["*", "out=None"]
    params.append("**more")
    from toytorch.core import fast_general, fast_several  # when the first such source is written

    source = fast_general.make_general(op, params, passed, "".join(checks))
    source = source or fast_several.make_several(op, params, passed, "".join(checks))
    return source or plain(op, params, passed, "".join(checks))


def plain(op: Op, params: list[str], passed: list[str], checks: str) -> str:
    """The source of a function that leaves everything to `dispatch`, or of a view."""
    name = fast_path.python_name(op)
    args = "".join(p + ", " for p in passed)
    if op.kind == "view" and not op.many:
        from toytorch.core import fast_general  # see above

        own = fast_general.runs_itself(op)
        for i, p in enumerate(passed):
            if "(" in p:  # sizes given one by one
                word = arguments.called(op, i)
                checks += f"    {word} = {p}\n"
                passed[i] = word
        rest = ", ".join(["a", *passed[1:]])
        return fast_general.VIEW.format(
            name=name,
            params=", ".join(params),
            given=args,
            args="".join(p + ", " for p in passed),
            first=passed[0],
            checks=checks,
            kernel=f"own_kernel(numpy, {rest})" if own else f"kernel({rest})",
            known="" if op.derivatives else " and op.derivatives",
            unknown="" if op.derivatives else " or not op.derivatives",
        )
    if op.kind == "view" and op.derivatives and not any("(" in p for p in passed):
        from toytorch.core import fast_general  # see above

        return fast_general.VIEWS.format(
            name=name,
            params=", ".join(params),
            args=args,
            first=passed[0],
            checks=checks,
            rest=", ".join(passed[1:]),
        )
    out = ", out" if op.has_out else ""
    return (
        f"def {name}({', '.join(params)}):\n    if more:\n"
        f"        return call(op, bound(op, ({args.rstrip()}), more)[0]{out})\n{checks}"
        f"    return call(op, ({args.rstrip()}){out})\n"
    )


def make_inplace(op: Op, by_older: Fn = older_forms.rearranged) -> Any:
    """The form with an underscore, which writes into its first argument."""
    name = fast_path.python_name(op) + "_"
    doc = f"In-place form of `{op.name}`.\n\n{describe(op)}"
    made = Generated(name, f"{op.name}_", lambda: inplace_source(op, name, by_older))
    return made.of_record(op, doc)


def inplace_source(op: Op, name: str, by_older: Fn) -> tuple[str, dict[str, Any]]:
    """The source of the form with an underscore, and what its names stand for."""
    names = {"inplace": write.inplace, "bound": arguments.bound, "op": op, "REQUIRED": REQUIRED}
    from toytorch.core import fast_inplace  # when the first such source is written

    quick = fast_inplace.write_inplace(op)
    if quick:
        names.update(fast_inplace.names_in_place(op))
    params, passed, star = list[str](), list[str](), False
    for a in op.schema.args:
        if a.keyword_only and not star:
            params.append("*")
            star = True
        names[f"default_{a.name}"] = a.default
        params.append(f"{a.name}=default_{a.name}" if passed else f"{a.name}=REQUIRED")
        passed.append(a.name)
        if a.name in op.spelled:  # callers have another word
            params.remove("/")
            params.append("/")
        elif len(passed) == 1:
            params.append("/")  # callers say `input`
    values = f"({', '.join(passed)},)"
    checks = "".join(
        f" or {a.name} is REQUIRED" for a in op.schema.args[1:] if a.default is REQUIRED
    )
    source = (
        f"def {name}({', '.join([*params, '**more'])}):\n"
        f"    if more{checks}:\n"
        f"        return inplace(op, bound(op, {values}, more, True)[0])\n{quick}"
        f"    return inplace(op, {values})\n"
    )
    if not op.older:
        return source, names
    return older_forms.taking(op, source, True), {**names, "by_older": by_older}


def attach(op: Op) -> Any:
    """Makes the function of a record and hangs its forms on Tensor; returns the function."""
    op.function, op.make_held = make_function(op), make_held
    name = op.name.replace(".", "_")
    if op.has_method and "." not in op.name:
        setattr(Tensor, name, op.function)
    if op.has_inplace:
        op.written = make_inplace(op)
        setattr(Tensor, name + "_", op.written)
    else:
        op.written = functools.partial(written, op)
    return op


def make_held(op: Op) -> Any:
    """The function for tensors on simulated devices."""
    from toytorch.core.fast_held import held_function  # when there are such devices

    return held_function(op)


def written(op: Op, *args: Any) -> Tensor:
    """The form that writes into its first argument, of an op for which no method is generated."""
    return write.inplace(op, args)


def in_one_line(formula: str) -> str:
    return "; ".join(line.strip() for line in formula.strip().splitlines())


def describe(op: Op) -> str:
    """The help text of an op, from its record."""
    lines = [op.doc, "", f"    {op.schema}"]
    if op.stated:
        lines.append(f"    formula: {in_one_line(op.stated)}")
    lines += [
        f"    d {name} = {in_one_line(rule)}"
        if isinstance(rule, str)
        else f"    d {name}: a function of {', '.join(parameters(rule))}"
        for name, rule in op.rules.items()
    ]
    lines += [
        "",
        f"The whole page of this op: print(torch.ops.reference.page(torch.ops.registry["
        f"{op.name!r}]))",
    ]
    return "\n".join(lines)

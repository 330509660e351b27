"""Numbers by position, as PyTorch once had it: `add(x, 2, y)` for `add(x, y, alpha=2)`.

PyTorch still takes these calls, and warns of them. The functions of ops whose records say `older`
collect what is given beyond their positions, and `rearranged` puts it where it belongs now.
"""

from __future__ import annotations

from typing import Any

from toytorch.backends.sparse import unsupported
from toytorch.core.arguments import is_number
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.dtype import dtype

# Where the numbers stand among the tensors (x), by the names that they have today.
FORMS: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {
    ("alpha",): {"x1x": ("alpha",)},
    ("value",): {"x1xx": ("value",)},
    ("beta", "alpha"): {
        "1x1xx": ("beta", "alpha"),
        "1xxx": ("beta",),
        "x11xx": ("beta", "alpha"),
        "x1xx": ("beta",),
    },
}


def taking(op: Op, source: str, in_place: bool = False) -> str:
    """The source of an op's function, which also takes the older forms."""
    head, body = source.split("\n", 1)
    ahead = head.partition("(")[2].partition("*")[0].split(",")
    tensors = ", ".join(p.partition("=")[0].strip() for p in ahead if p.strip() not in ("", "/"))
    star = "*, " if "*, " in head else "**more"
    out = ', "out": out' if "out=" in head else ""
    head = head.replace(star, "*older, " if star == "*, " else "*older, **more", 1)
    return (
        f"{head}\n    if older:\n"
        f"        return by_older(op, ({tensors}, *older), {{**more{out}}}, {in_place})\n{body}"
    )


def rearranged(
    op: Op, values: tuple[Any, ...], more: dict[str, Any], in_place: bool, second_name: bool = False
) -> Any:
    """The result of a call in an older form; TypeError if it is none. A `second_name` has none in which
    the factor comes first."""
    name = op.name + "_" * in_place
    scalars = tuple(a.name for a in op.schema.args if a.keyword_only)
    pattern = "".join("x" if isinstance(v, Tensor) else "1" for v in values)
    factor_first = op.older == "factor first" and not second_name
    if scalars == ("alpha",) and len(values) == 3 and not (factor_first and pattern == "x1x"):
        made = rearranged_numbers(op, values, more, in_place, factor_first)
        if made is not None:
            return made
    names = FORMS[scalars].get(pattern) if factor_first or scalars != ("alpha",) else None
    if op.elsewhere and isinstance(values[-1], dtype) and not in_place:
        raise NotImplementedError(unsupported(f"{op.name}.dtype", "CPU"))
    if names is None:
        kinds = ", ".join(type(v).__name__ for v in values)
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({kinds}), but expected "
            f"one of:\n * {op.schema}\n"
        )
    tensors = [v for v in values if isinstance(v, Tensor)]
    numbers = dict(zip(names, (v for v in values if not isinstance(v, Tensor)), strict=True))
    warned.once(told(op, name, pattern, names, in_place), key="older form")
    if in_place:
        return getattr(tensors[0], name)(*tensors[1:], **numbers)
    given = {word: value for word, value in more.items() if word != "out" or value is not None}
    return op.function(*tensors, **numbers, **given)


def rearranged_numbers(
    op: Op, values: tuple[Any, ...], more: dict[str, Any], in_place: bool, factor_first: bool
) -> Any:
    """`add(x, 0.5, 2)`, which is x + 0.5·2, or `rsub(x, 2, 0.5)`, where the factor comes last; None of
    what is neither."""
    first, other, alpha = values
    given = {word: value for word, value in more.items() if word != "out" or value is not None}
    if factor_first:
        other, alpha = alpha, other
    elif given or not is_number(other):
        return None
    if not is_number(alpha):
        return None
    if factor_first:
        text = told(op, op.name + "_" * in_place, "x1x", ("alpha",), in_place)
        warned.once(text, key="older form")
    function = getattr(first, op.name + "_") if in_place else op.function
    return function(*(() if in_place else (first,)), other, alpha=alpha, **given)


def told(op: Op, name: str, pattern: str, names: tuple[str, ...], in_place: bool) -> str:
    """What PyTorch says of an older form, taking a call that is not in place for a function's."""
    tensors = ["input" if a.name == "self" else a.name for a in op.schema.args if a.is_tensor]
    left, numbers = iter(tensors), iter(names)
    parts = [
        f"Tensor {next(left)}" if kind == "x" else f"Number {next(numbers)}" for kind in pattern
    ]
    new = [f"Tensor {name}" for name in tensors]
    if in_place:  # always a method
        parts.remove("Tensor input")
        new.remove("Tensor input")
    scalars = ", ".join(f"Number {a.name} = 1" for a in op.schema.args if a.keyword_only)
    out = "" if in_place else ", Tensor out = None"
    return (
        f"This overload of {name} is deprecated:\n\t{name}({', '.join(parts)}{out and ', *' + out})\n"
        f"Consider using one of the following signatures instead:\n\t{name}({', '.join(new)}, *, "
        f"{scalars}{out})"
    )

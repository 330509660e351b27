"""`rearrange`: dimensions transposed, split and joined by a pattern that names them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from toytorch.core.tensor import Tensor
from toytorch.ops.shaping.rearrange import stack

DOTS = "…"  # stands for "..."
Groups = list[str | list[str]]  # a dimension is an axis, or those in brackets


class DimensionBindError(Exception):
    """Sizes that do not fit a pattern."""


def groups_of(side: str, whole: str) -> Groups:
    """The dimensions of one side of a pattern, each a list of the axes that it is made of."""
    text = side.replace("...", DOTS)
    if "." in text or text.count(DOTS) > 1:
        raise ValueError(
            "Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor "
        )
    found: Groups = []
    inside: list[str] | None = None
    for token in re.findall(r"[()]|[^\s()]+", text):
        if token == "(":
            if inside is not None:
                raise ValueError(
                    "Axis composition is one-level (brackets inside brackets not allowed)"
                )
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError("Brackets are not balanced")
            found.append(inside)
            inside = None
        else:
            check_axis(token)
            if inside is not None:
                inside += [] if token == "1" else [token]
            else:
                found.append([] if token == "1" else token)
    if inside is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{side}'")
    names = names_of(found)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
    return found


def names_of(groups: Groups) -> list[str]:
    """The axes of all dimensions."""
    return [name for group in groups for name in ([group] if isinstance(group, str) else group)]


def check_axis(name: str) -> None:
    """Refuses what is no name of an axis, nor 1."""
    if name in (DOTS, "1"):
        return
    if name.isdigit():
        raise ValueError("rearrange only supports unnamed axes of size 1")
    if not name.isidentifier() or name[0] == "_" or name[-1] == "_":
        why = "not a valid python identifier"
        if name.isidentifier():
            why = "axis name should should not start or end with underscore"
        raise ValueError(f"Invalid axis identifier: {name}\n{why}")


def both_sides(pattern: str, sizes: dict[str, int]) -> tuple[Groups, Groups]:
    """The dimensions before and after; ValueError where the sides do not have the same axes."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = (groups_of(side, pattern) for side in sides)
    if any(DOTS in group and group != DOTS for group in left):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    before, after = set(names_of(left)), set(names_of(right))
    if DOTS in after - before:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if before ^ after:
        raise ValueError(
            "Identifiers only on one side of rearrange expression (should be on both): "
            f"{before ^ after}"
        )
    if sizes.keys() - before:
        raise ValueError(f"Identifiers not found in rearrange expression: {sizes.keys() - before}")
    return left, right


def sizes_of(left: Groups, shape: Sequence[int], given: dict[str, int]) -> dict[str, list[int]]:
    """The sizes that each axis stands for: one, or those of all dimensions behind the dots."""
    extra = len(shape) - len(left) + (DOTS in left)
    if extra < 0 or (extra and DOTS not in left):
        count = len(left)
        raise ValueError(
            f"Number of dimensions in pattern ({count}) must be equal to the number of dimensions in "
            f"the tensor ({len(shape)})"
        )
    found: dict[str, list[int]] = {}
    rest = iter(shape)
    for group in left:
        if group == DOTS:
            found[DOTS] = [next(rest) for _ in range(extra)]
            continue
        group, size = [group] if isinstance(group, str) else group, next(rest)
        open_axes = [name for name in group if name not in given]
        known = math.prod(given[name] for name in group if name in given)
        if len(open_axes) > 1:
            raise DimensionBindError(
                f"cannot infer the sizes of two dimensions at once {' and '.join(open_axes)}"
            )
        if size % max(known, 1) or (not open_axes and size != known):
            raise DimensionBindError(
                f"Dimension sizes to do not match ({size} != {known}) when matching dimension pack "
                f"({' '.join(group)})"
            )
        found.update({name: [given.get(name, size // max(known, 1))] for name in group})
    return found


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int
) -> Tensor:
    """A tensor (or a list of them, stacked) with its dimensions as the right side of a pattern has them.

    Dimensions in brackets are one, made of several axes; "..." stands for any number of dimensions, 1
    and () for one of size 1. Raises ValueError for a pattern that does not fit, DimensionBindError for
    sizes that do not. Like `torch.func.rearrange`, after einops (Rogozhnikov 2022).

    >>> rearrange(torch.arange(6), "(a b) -> b a", a=2)
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
    """
    given = stack.function(list(tensor)) if isinstance(tensor, (list, tuple)) else tensor
    left, right = both_sides(pattern, axes_lengths)
    sizes = sizes_of(left, given.shape, axes_lengths)
    apart: list[int] = []
    places: dict[str, range] = {}
    for name in names_of(left):
        places[name] = range(len(apart), len(apart) + len(sizes[name]))
        apart += sizes[name]
    order = [place for name in names_of(right) for place in places[name]]
    shape: list[int] = []
    for group in right:
        if isinstance(group, str):
            shape += sizes[group]
        else:
            shape.append(math.prod(n for name in group for n in sizes[name]))
    made: Tensor = given.reshape(apart).permute(order).reshape(shape)
    return made

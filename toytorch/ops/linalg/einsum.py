"""Einstein summation: a product of labelled tensors, summed over the labels that do not remain."""

from __future__ import annotations

import functools
import math
from _thread import get_ident
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import state
from toytorch.facts.hints import Array
from toytorch.ops.linalg.matmul import stacked


@functools.lru_cache(256)
def parsed(equation: str, ranks: tuple[int, ...]) -> tuple[list[list[str]], list[str]]:
    """`parse`, whose results nobody may change; programs give few equations, again and again."""
    return parse(equation, list(ranks))


def letters(equation: str, at: int, text: str, whose: str, again: str, alone: str) -> list[str]:
    """The labels of one operand, or of the result, with "..." for an ellipsis; spaces say nothing.
    `at` is where the text begins in the equation."""
    found, i = list[str](), 0
    while i < len(text):
        c = text[i]
        if c == ".":
            if "..." in found:
                raise RuntimeError(f"einsum(): found '.' for {whose} {again} was already found")
            if text[i : i + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for {whose} that is not part of {alone}")
            found.append("...")
            i += 2
        elif c != " ":
            if not (c.isascii() and c.isalpha()):
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {at + i} in the equation string, "
                    "subscripts must be in [a-zA-Z]"
                )
            found.append(c)
        i += 1
    return found


def operands_of(equation: str, left: str, count: int) -> list[list[str]]:
    """The labels of each operand; the text is judged from left to right, as PyTorch does."""
    terms, at = list[list[str]](), 0
    for k, text in enumerate(left.split(",")):
        if k >= count:
            raise RuntimeError(
                "einsum(): fewer operands were provided than specified in the equation"
            )
        again = "for which an ellipsis"
        terms.append(letters(equation, at, text, f"operand {k}", again, "any ellipsis"))
        at += len(text) + 1
    if len(terms) < count:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return terms


def parse(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand and of the result; "..." becomes labels of its own."""
    left, arrow, right = equation.partition("->")
    terms = operands_of(equation, left, len(ranks))
    wide = max((rank - len(t) + 1 for t, rank in zip(terms, ranks) if "..." in t), default=0)
    dots = [f"{i}" for i in range(wide)]
    labels = []
    for k, (term, rank) in enumerate(zip(terms, ranks)):
        ellipsis = "..." in term
        n = rank - len(term) + ellipsis
        if n < 0 or (n and not ellipsis):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term) - ellipsis}) "
                + ("is more than" if ellipsis else "does not match")
                + f" the number of dimensions ({rank}) for operand {k}"
                + ("" if ellipsis else " and no ellipsis was given")
            )
        spread = dots[wide - n :] if n else []
        labels.append([d for c in term for d in (spread if c == "..." else [c])])
    if arrow:
        again = "but an ellipsis (...)"
        term = letters(equation, len(left) + 2, right, "output", again, "any ellipsis (...)")
        out = [d for c in term for d in (dots if c == "..." else [c])]
        known = {c for term in labels for c in term}
        for i, c in enumerate(out):
            if c in out[:i]:
                raise RuntimeError(
                    f"einsum(): output subscript {c} appears more than once in the output"
                )
            if c not in known:
                raise RuntimeError(
                    f"einsum(): output subscript {c} does not appear in the equation"
                    " for any input operand"
                )
    else:
        every = [c for term in labels for c in term]
        out = dots + sorted(c for c in set(every) if every.count(c) == 1 and c.isalpha())
    return labels, out


def diagonals(x: Tensor, labels: list[str]) -> tuple[Any, list[str]]:
    """Repeated labels of one operand taken along the diagonal."""
    labels = list(labels)
    while True:
        twice = next((c for c in labels if labels.count(c) > 1), None)
        if twice is None:
            return x, labels
        i = labels.index(twice)
        j = labels.index(twice, i + 1)
        if x.shape[i] != x.shape[j]:
            raise RuntimeError(
                f"einsum(): subscript {twice} is repeated for operand but the sizes "
                f"don't match, {x.shape[j]} != {x.shape[i]}"
            )
        x = x.diagonal(0, i, j)
        labels = [c for k, c in enumerate(labels) if k not in (i, j)] + [twice]


def contract(
    a: Tensor, la: list[str], b: Tensor, lb: list[str], keep: set[str], order: list[str]
) -> tuple[Any, list[str]]:
    """Two operands as one batched matrix product over the labels that end here.

    A label of size 1 is as good as none, so what ends in one of the two alone is summed before, and
    stays with size 1. Where nothing ends in both it is a plain product: it promotes types. Labels
    come in the `order` of the result's, and of the alphabet behind them; where all columns come
    before all rows, the operands change places, and the product lies in memory as it is read.
    """
    na, nb = dict(zip(la, a.shape)), dict(zip(lb, b.shape))
    a = summed(a, [i for i, c in enumerate(la) if c not in keep and nb.get(c, 1) == 1 != na[c]])
    b = summed(b, [i for i, c in enumerate(lb) if c not in keep and na.get(c, 1) == 1 != nb[c]])
    in_a = {c for c in la if na[c] != 1 and (c in keep or nb.get(c, 1) != 1)}
    in_b = {c for c in lb if nb[c] != 1 and (c in keep or na.get(c, 1) != 1)}
    ends = [c for c in order if c not in keep and c in in_a]
    if not ends:
        wanted = [c for c in order if c in la or c in lb]
        return among(a, la, wanted) * among(b, lb, wanted), wanted
    batch = [c for c in order if c in keep and c in in_a and c in in_b]
    rows = [c for c in order if c in keep and c in in_a and c not in in_b]
    columns = [c for c in order if c not in in_a]
    if rows and columns and order.index(columns[-1]) < order.index(rows[0]):
        a, la, b, lb, rows, columns = b, lb, a, la, columns, rows
    columns, rows = (
        [c for c in part if c in keep and (c in na or c in nb)] for part in (columns, rows)
    )
    sizes = {c: max(na.get(c, 1), nb.get(c, 1), key=lambda n: n != 1) for c in (*la, *lb)}

    def size(labels: list[str]) -> int:
        return math.prod([sizes[c] for c in labels])

    left = in_order(a, placed(la, batch + rows + ends)).reshape(size(batch), size(rows), size(ends))
    right = in_order(b, placed(lb, batch + ends + columns))
    right = right.reshape(size(batch), size(ends), size(columns))
    labels = batch + rows + columns
    return left.bmm(right).reshape([sizes[c] for c in labels]), labels


def summed(x: Tensor, dims: list[int]) -> Any:
    """Sums over dimensions, which stay with size 1."""
    return x.sum(dims, True) if dims else x


def placed(labels: list[str], wanted: list[str]) -> list[int]:
    """The dimensions of some labels in a wanted order, then the rest, which have size 1."""
    first = [labels.index(c) for c in wanted if c in labels]
    return first + [i for i in range(len(labels)) if i not in first]


def among(x: Tensor, labels: list[str], wanted: list[str]) -> Any:
    """Dimensions in a wanted order, with one of size 1 for each label that is not there."""
    x = in_order(x, [labels.index(c) for c in wanted if c in labels])
    for i, c in enumerate(wanted):
        if c not in labels:
            x = x.unsqueeze(i)
    return x


def in_order(x: Tensor, dims: list[int]) -> Any:
    """Dimensions in another order; the tensor itself where it is the same."""
    return x if dims == sorted(dims) else x.permute(dims)


def drop(x: Tensor, labels: list[str], keep: set[str]) -> tuple[Any, list[str]]:
    """Sums over labels that nothing else needs."""
    dims = [i for i, c in enumerate(labels) if c not in keep]
    if not dims:
        return x, labels
    return x.sum(dims), [c for c in labels if c in keep]


class Product:
    """A sum of two operands that is a batched matrix product of their arrays as they are, but for
    the order of dimensions. It comes out as `contract` would have it.

    orders  the order of each operand's dimensions
    sums    whether a label ends here; where none does the result lies as a product's would, so the
            order of the operands' dimensions has to be the plain one
    parts   how many of the first one's dimensions are batch and rows
    last    the order of the result's
    swapped whether the second operand has the rows
    """

    def __init__(self, labels: list[list[str]], out: list[str]) -> None:
        la, lb = labels
        batch = [c for c in la if c in lb and c in out]
        ends = [c for c in la if c in lb and c not in out]
        rows = [c for c in la if c not in lb]
        columns = [c for c in lb if c not in la]
        self.swapped = bool(ends and rows and columns) and (
            max(map(out.index, columns)) < min(map(out.index, rows))
        )
        if self.swapped:
            la, lb, rows, columns = lb, la, columns, rows
        self.orders = [
            [term.index(c) for c in wanted]
            for term, wanted in ((la, batch + rows + ends), (lb, batch + ends + columns))
        ]
        self.parts = len(batch), len(batch) + len(rows), len(batch) + len(ends)
        made = batch + rows + columns
        self.sums = bool(ends)
        self.plain = [list(range(len(la))), list(range(len(lb)))]
        self.last = [made.index(c) for c in out]

    def __call__(self, a: Array, b: Array) -> Any:
        """The result, or None where sizes differ, or a plain product's memory has another order."""
        if not self.sums and not (a.flags.c_contiguous and b.flags.c_contiguous):
            return None
        if self.swapped:
            a, b = b, a
        a, b = a.transpose(self.orders[0]), b.transpose(self.orders[1])
        batch, end_of_rows, end_of_ends = self.parts
        shared, ends = a.shape[:batch], a.shape[end_of_rows:]
        if b.shape[:end_of_ends] != shared + ends:
            return None
        rows, columns = a.shape[batch:end_of_rows], b.shape[end_of_ends:]
        n, width = math.prod(shared), math.prod(ends)
        if self.sums and width == 1:
            return None  # which is a plain product, too
        left = a.reshape(n, math.prod(rows), width)
        right = b.reshape(n, width, math.prod(columns))
        made = stacked(np, left, right).reshape(shared + rows + columns)
        return made.transpose(self.last)


@functools.lru_cache(256)
def as_product(equation: str, ranks: tuple[int, int]) -> Product | None:
    """The product that a sum of two operands is; None where it takes more."""
    labels, out = parsed(equation, ranks)
    whole = all(
        len(set(term)) == len(term) and set(term) <= set(out) | set(other)
        for term, other in (labels, labels[::-1])
    )
    if not whole:
        return None
    made = Product(labels, out)
    if made.sums or (made.orders == made.plain and made.last == sorted(made.last)):
        return made
    return None


def on_arrays(equation: str, x: Tensor, y: Tensor) -> Any:
    """The value for two plain operands that nobody wants gradients of; None for others."""
    try:
        a, b, mode = x._array, y._array, state.fast_path
    except AttributeError:
        return None
    if (
        a.__class__ is b.__class__ is np.ndarray
        and x._dtype is y._dtype
        and x._dtype.plain
        and a.size
        and b.size
        and ((mode is None and not (x._requires_grad or y._requires_grad)) or mode == get_ident())
    ):
        product = as_product(equation, (a.ndim, b.ndim))
        made = None if product is None else product(a, b)
        return None if made is None else wrap(made, x._dtype)
    return None


def evaluate(equation: str, operands: list[Any]) -> Any:
    """The value of an Einstein sum, contracted from left to right."""
    if not operands:
        raise ValueError("einsum(): must provide at least one operand")
    if len(operands) == 2:
        made = on_arrays(equation, *operands)
        if made is not None:
            return made
    labels, out = parsed(equation, tuple([x.ndim for x in operands]))
    seen: dict[str, int] = {}
    for k, (x, term) in enumerate(zip(operands, labels)):
        for c, n in zip(term, x.shape):
            old = seen.setdefault(c, n)
            if old != n and 1 not in (old, n):
                raise RuntimeError(
                    f"einsum(): subscript {c} has size {n} for operand {k} which "
                    f"does not broadcast with previously seen size {old}"
                )
            seen[c] = max(old, n)
    order = out + sorted((c for c in seen if c not in out), key=lambda c: (not c.isalpha(), c))
    terms = [diagonals(x, term) for x, term in zip(operands, labels)]
    x, now = terms[0]
    for k in range(1, len(terms)):
        keep = set(out) | {c for _, later in terms[k + 1 :] for c in later}
        x, now = contract(x, now, *terms[k], keep, order)
    if len(terms) == 1:
        x, now = drop(x, now, set(out))
    if x is operands[0]:  # a result is a tensor of its own, if only a view
        return x.permute([now.index(c) for c in out])
    x = in_order(x, placed(now, out))
    if len(terms) > 1 and len(out) < len(seen):
        return x.view(x.shape[: len(out)])  # without labels of size 1 that ended
    return x

"""Einstein summation: a product of labelled tensors, summed over the labels that do not remain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toytorch.core.tensor import Tensor


def parse(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand and of the result; "..." becomes labels of its own."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        more = "more" if len(terms) < len(ranks) else "fewer"
        raise RuntimeError(
            f"einsum(): {more} operands were provided than specified in the equation"
        )
    wide = max(
        (rank - len(t.replace("...", "")) for t, rank in zip(terms, ranks) if "..." in t), default=0
    )
    dots = [f"{i}" for i in range(wide)]
    labels = []
    for k, (term, rank) in enumerate(zip(terms, ranks)):
        head, ellipsis, tail = term.partition("...")
        for c in head + tail:
            if not c.isalpha():
                raise ValueError(
                    f"einsum(): invalid subscript given at index "
                    f"{equation.index(c)} in the equation string, subscripts must be "
                    "in [a-zA-Z]"
                )
        n = rank - len(head) - len(tail)
        if n < 0 or (n and not ellipsis):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation "
                f"({len(head) + len(tail)}) does not match the number of dimensions "
                f"({rank}) for operand {k}" + ("" if ellipsis else " and no ellipsis was given")
            )
        labels.append([*head, *(dots[wide - n :] if n else []), *tail])
    if arrow:
        head, ellipsis, tail = right.partition("...")
        out = [*head, *(dots if ellipsis else []), *tail]
        known = {c for term in labels for c in term}
        for c in out:
            if c not in known:
                raise RuntimeError(
                    f"einsum(): output subscript {c} does not appear in the equation"
                    " for any input operand"
                )
            if out.count(c) > 1:
                raise RuntimeError(
                    f"einsum(): output subscript {c} appears more than once in the output"
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
    a: Tensor, la: list[str], b: Tensor, lb: list[str], keep: set[str]
) -> tuple[Any, list[str]]:
    """Two operands as one batched matrix product over the labels that end here."""
    same = a.dtype is b.dtype
    a, la = drop(a, la, keep | set(lb))
    b, lb = drop(b, lb, keep | set(la))
    if same and a.dtype is not b.dtype:  # one was summed, which turned its integers into int64
        a, b = a.long(), b.long()
    batch = [c for c in la if c in lb and c in keep]
    ends = [c for c in la if c in lb and c not in keep]
    only_a = [c for c in la if c not in lb]
    only_b = [c for c in lb if c not in la]
    sizes: dict[str, int] = {}
    for x, labels in ((a, la), (b, lb)):
        for c, n in zip(labels, x.shape):
            old = sizes.setdefault(c, n)
            sizes[c] = max(old, n) if 0 not in (old, n) else 0
    a = arranged(a, la, batch + only_a + ends, sizes)
    b = arranged(b, lb, batch + ends + only_b, sizes)

    def size(labels: list[str]) -> int:
        n = 1
        for c in labels:
            n *= sizes[c]
        return n

    left = a.reshape(size(batch), size(only_a), size(ends))
    right = b.reshape(size(batch), size(ends), size(only_b))
    labels = batch + only_a + only_b
    return left.bmm(right).reshape([sizes[c] for c in labels]), labels


def arranged(x: Tensor, labels: list[str], wanted: list[str], sizes: dict[str, int]) -> Any:
    """Dimensions in a wanted order, those of size 1 expanded."""
    x = x.permute([labels.index(c) for c in wanted]) if wanted else x
    return x.expand([sizes[c] for c in wanted]) if wanted else x


def drop(x: Tensor, labels: list[str], keep: set[str]) -> tuple[Any, list[str]]:
    """Sums over labels that nothing else needs."""
    dims = [i for i, c in enumerate(labels) if c not in keep]
    if not dims:
        return x, labels
    return x.sum(dims), [c for c in labels if c in keep]


def evaluate(equation: str, operands: list[Any]) -> Any:
    """The value of an Einstein sum, contracted from left to right."""
    if not operands:
        raise ValueError("einsum(): must provide at least one operand")
    labels, out = parse(equation, [x.ndim for x in operands])
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
    terms = [diagonals(x, term) for x, term in zip(operands, labels)]
    x, now = terms[0]
    for k in range(1, len(terms)):
        keep = set(out) | {c for _, later in terms[k + 1 :] for c in later}
        x, now = contract(x, now, *terms[k], keep)
    x, now = drop(x, now, set(out))
    return x.permute([now.index(c) for c in out]) if out else x

"""How records are written: one short function per family of ops."""

from __future__ import annotations

from typing import Any

from toytorch.core.function import attach
from toytorch.core.op import Op


def define(signature: str, kernel: Any, **fields: Any) -> Op:
    """A record; keywords that start with d_ are its derivatives."""
    derivatives = {k[2:]: fields.pop(k) for k in list(fields) if k.startswith("d_")}
    return attach(Op(signature, kernel, derivatives=derivatives, **fields))  # type: ignore[no-any-return]


def pointwise(signature: str, kernel: Any, *, inplace: bool = True, **fields: Any) -> Op:
    """An op of each element by itself; operands broadcast and meet in their common type."""
    return define(signature, kernel, kind="pointwise", inplace=inplace, **fields)


def comparison(name: str, kernel: Any, doc: str, **fields: Any) -> Op:
    """An op of two operands that answers yes or no for each element."""
    return define(f"{name}(Tensor self, Tensor other) -> BoolTensor", kernel, kind="pointwise",
                  inplace=True, doc=doc, **fields)


def reduction(signature: str, kernel: Any, **fields: Any) -> Op:
    """An op that takes dimensions together."""
    return define(signature, kernel, kind="reduction", **fields)


def view(signature: str, kernel: Any, **fields: Any) -> Op:
    """An op that shows the same memory in another layout."""
    return define(signature, kernel, kind="view", **fields)


def general(signature: str, kernel: Any, **fields: Any) -> Op:
    """An op whose kernel sees the arrays as they are."""
    return define(signature, kernel, kind="general", **fields)

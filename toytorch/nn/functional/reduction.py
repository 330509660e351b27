"""How losses of elements are put together."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.facts import warned

__all__ = ["legacy_reduction", "reduced"]


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """A loss per element, its mean or its sum."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy_reduction(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """The reduction that the two older arguments stand for, if they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        meant = "none"
    else:
        meant = "sum" if size_average is not None and not size_average else "mean"
    warned.at_call(
        f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead."
    )
    return meant

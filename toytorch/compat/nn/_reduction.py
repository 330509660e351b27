"""The words for how a loss is put together, as copies of PyTorch's losses ask for them."""

from __future__ import annotations

import warnings

from toytorch.nn.functional.reduction import legacy_reduction

WORDS = ["none", "mean", "sum"]


def get_enum(reduction: str) -> int:
    """The number of a reduction."""
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=2,
        )
        reduction = "mean"
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    if reduction == "sum":
        return 2
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The reduction that the two older arguments stand for; both are true by default."""
    average = size_average is None or size_average
    with warnings.catch_warnings():
        if not emit_warning:
            warnings.simplefilter("ignore")
        return legacy_reduction("mean", average, reduce)


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """The number of that reduction."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))

"""Integrals of sampled functions by the trapezoidal rule."""

from __future__ import annotations

from typing import Any, cast

from toytorch.core.tensor import Tensor
from toytorch.core.views import counted
from toytorch.facts.schema import NOT_GIVEN
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import public


def _strips(name: str, y: Tensor, x: Tensor, dx: float, dim: int) -> Any:
    """The area between every two neighbouring samples, times two, and the spacing left to do."""
    d = wrap_dim(dim, y.ndim)
    n = y.shape[d]
    if x is NOT_GIVEN:
        return _but_the_last(y, d) + _but_the_first(y, d), dx
    if y.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if x.ndim == 0:  # as for one sample, between which and none there is nothing
        width: Any = x.new_zeros([0 if i == d else 1 for i in range(y.ndim)])
        return (_but_the_last(y, d) + _but_the_first(y, d)) * width, 1
    if x.ndim == 1:
        if x.shape[0] != n:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = x.reshape([-1 if i == d else 1 for i in range(y.ndim)])
    elif x.ndim < y.ndim:
        x = x.reshape((1,) * (y.ndim - x.ndim) + x.shape)
    # The dimension of y's, counted from the front: where x has more, it is another one of x.
    width = _but_the_first(x, d) - _but_the_last(x, d)
    return (_but_the_last(y, d) + _but_the_first(y, d)) * width, 1


def _but_the_last(x: Tensor, d: int) -> Tensor:
    return x.narrow(d, 0, max(x.shape[d] - 1, 0))


def _but_the_first(x: Tensor, d: int) -> Tensor:
    return x.narrow(d, min(x.shape[d], 1), max(x.shape[d] - 1, 0))


def _refuse_masks(name: str, y: Tensor, x: Tensor) -> None:
    for value, label in ((y, "y"), (x, "x")):
        if value is not NOT_GIVEN and value.dtype.kind == "b":
            raise RuntimeError(
                f"{name}: received a bool input for `{label}`, but bool is not supported"
            )


def _spacing(name: str, x: Tensor, dx: Any) -> float:
    """The distance of samples, 1 where nothing is said; samples that have places have none."""
    if x is not NOT_GIVEN and dx is not NOT_GIVEN:
        said = f"got (Tensor, Tensor, dx={type(dx).__name__})"
        raise TypeError(
            f"{name}() received an invalid combination of arguments - {said}, but expected one of:\n"
            " * (Tensor y, Tensor x, *, int dim = -1)\n"
            " * (Tensor y, *, Number dx = 1, int dim = -1)\n"
        )
    return 1 if dx is NOT_GIVEN else dx


def _need_real(name: str, dx: object) -> None:
    if dx.__class__ in (bool, complex):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")


@public("trapezoid", "trapz")
def trapezoid(y: Tensor, x: Tensor = NOT_GIVEN, *, dx: float = NOT_GIVEN, dim: int = -1) -> Tensor:
    """∫ y dx along a dimension: Σ (xᵢ₊₁ - xᵢ)(yᵢ + yᵢ₊₁)/2.

    >>> torch.trapezoid(torch.tensor([1., 2., 4.]))
    tensor(4.5000)
    """
    spacing, v = _spacing("trapezoid", x, dx), cast(Any, y)
    d = wrap_dim(dim, v.ndim)
    if v.shape[d] == 0:
        return counted(v.new_zeros([n for i, n in enumerate(v.shape) if i != d]), 1)
    _need_real("trapezoid", dx)
    _refuse_masks("trapezoid", y, x)
    if x is NOT_GIVEN:  # all samples, but half of the first and the last
        return (v.sum(d) - (v.select(d, 0) + v.select(d, -1)) * 0.5) * spacing
    strips, _ = _strips("trapezoid", v, x, spacing, dim)
    return strips.sum(d) / 2.0  # the dimension of y, counted from the front


@public("cumulative_trapezoid")
def cumulative_trapezoid(
    y: Tensor, x: Tensor = NOT_GIVEN, *, dx: float = NOT_GIVEN, dim: int = -1
) -> Tensor:
    """The running integral of y along a dimension.

    >>> torch.cumulative_trapezoid(torch.tensor([1., 2., 4.]))
    tensor([1.5000, 4.5000])
    """
    _refuse_masks("cumulative_trapezoid", y, x)
    spacing = _spacing("cumulative_trapezoid", x, dx)
    _need_real("cumulative_trapezoid", dx)
    strips, scale = _strips("cumulative_trapezoid", y, x, spacing, dim)
    return strips.cumsum(wrap_dim(dim, y.ndim)) * scale / 2.0

"""Differences of neighbours: `diff`, and `gradient`, the slopes of sampled functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor, wrap
from toytorch.core.views import counted, quick
from toytorch.core.write import refuse_grad
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.hints import Ints
from toytorch.facts.size import wrap_dim
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.ops.creation import create
from toytorch.ops.define import public
from toytorch.ops.elementwise import arithmetic
from toytorch.ops.elementwise import compare as comparison
from toytorch.ops.shaping import rearrange, slices


def piece(x: Tensor, dim: int, start: int | None, end: int | None) -> Tensor:
    """x[start:end] along a dimension."""
    return slices.slice_.function(x, dim, start, end, 1)


@public("diff", method=True)
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The n-th differences x[i+1] - x[i] along a dimension.

    >>> diff(torch.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    joined = [t for t in (prepend, append) if t is not None]
    d = wrap_dim(dim, input.ndim) if joined or n else 0
    for other in joined:
        if other.ndim != input.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        if any(k != d and m != n_ for k, (m, n_) in enumerate(zip(other.shape, input.shape))):
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that"
                " of input except along the differencing dimension"
            )
    if n == 0:
        if out is not None:
            return create.put_out(input.contiguous(), out, same=True)
        return counted(input.clone(), 1)
    if n == 1 and not joined and out is None and input.__class__ is Tensor and quick(input):
        a, kind = input._array, input.dtype
        wanted = input._requires_grad and state.fast_path is None
        known = (kind.plain or kind.whole) and kind is not types.bool and not wanted
        if known and a.flags.c_contiguous and a.shape[d] > 1 and a.size < SMALLEST:
            before = (slice(None),) * d
            return wrap(a[(*before, slice(1, None))] - a[(*before, slice(None, -1))], kind)
    parts = [t for t in (prepend, input, append) if t is not None]
    x = rearrange.cat.function(parts, d) if len(parts) > 1 else input
    if out is not None:
        x.narrow(d, 1, 0)  # which PyTorch looks up there, where there may be nothing
        if input.dtype is not types.bool:
            refuse_grad("sub", (input,), out)
    steps = min(n, x.shape[d])
    for step in range(1, steps + 1):
        high, low = piece(x, d, 1, None), piece(x, d, None, -1)
        last = out if step == steps else None
        if x.dtype is types.bool:
            x = comparison.logical_xor.function(high, low, out=last)
        else:
            x = arithmetic.sub.function(high, low, out=last)
    return x if steps and out is not None else create.put_out(x, out)


# -- slopes ---------------------------------------------------------------------------------------


def _dims(input: Tensor, dim: Ints | None) -> list[int]:
    if dim is None:
        return list(range(input.ndim))
    dims = [wrap_dim(d, input.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return dims


def _steps(
    input: Tensor, spacing: float | Sequence[Tensor | float] | None, dims: list[int]
) -> list[Any]:
    """The distance between samples, or their places, along each dimension."""
    if spacing is None:
        return [1.0] * len(dims)
    if not isinstance(spacing, (list, tuple)):
        return [spacing] * len(dims)
    if len(spacing) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list "
            f"of length {len(dims)}, but got a list of length {len(spacing)}"
        )
    for d, places in zip(dims, spacing):
        if isinstance(places, Tensor):
            if places.ndim != 1:
                raise RuntimeError(
                    "torch.gradient expected each element of spacing to have one "
                    f"dimension, but got an element with {places.ndim} dimensions!"
                )
            if places.shape[0] != input.shape[d]:
                raise RuntimeError(
                    "torch.gradient expected each element of spacing to have the size of its "
                    f"dimension {d}, {input.shape[d]}, but got {places.shape[0]}"
                )
    return list(spacing)


def _edge(x: Tensor, d: int, gap: Tensor | float, order: int, last: bool) -> Tensor:
    """The slope at an end, from the two or three samples there."""
    n = x.shape[d]
    at = [
        piece(x, d, k, k + 1) for k in ((n - 1, n - 2, n - 3) if last else (0, 1, 2))[: order + 1]
    ]
    sign = -1 if last else 1
    if not isinstance(gap, Tensor):
        if order == 1:
            return (at[1] - at[0]) * sign / gap
        return (-1.5 * at[0] + 2 * at[1] - 0.5 * at[2]) * sign / gap
    near = gap[-1] if last else gap[0]
    if order == 1:
        return (at[1] - at[0]) * sign / near
    far = gap[-2] if last else gap[1]
    both = near + far
    return (
        -(near + both) / (near * both) * at[0]
        + both / (near * far) * at[1]
        - near / (far * both) * at[2]
    ) * sign


def _slope(x: Tensor, d: int, step: Any, order: int) -> Tensor:
    low, mid, high = piece(x, d, None, -2), piece(x, d, 1, -1), piece(x, d, 2, None)
    if isinstance(step, Tensor):
        gap = diff(step)
        wide = [-1 if k == d else 1 for k in range(x.ndim)]
        left, right = gap[:-1].reshape(wide), gap[1:].reshape(wide)
        inner = (
            -right / (left * (left + right)) * low
            + (right - left) / (left * right) * mid
            + left / (right * (left + right)) * high
        )
    else:
        gap = step
        inner = (high - low) / (2 * step)
    ends = _edge(x, d, gap, order, False), _edge(x, d, gap, order, True)
    return rearrange.cat.function([ends[0], inner, ends[1]], d)


@public("gradient")
def gradient(
    input: Tensor,
    *,
    spacing: float | Sequence[Tensor | float] | None = None,
    dim: Ints | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """The slopes of a sampled function along each dimension, by central differences.

    >>> gradient(torch.tensor([1., 4., 9., 16.]))
    (tensor([3., 4., 6., 7.]),)
    """
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if input.dtype is types.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    dims = _dims(input, dim)
    for d in dims:
        if input.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    steps = zip(dims, _steps(input, spacing, dims))
    return tuple(_slope(input, d, step, edge_order) for d, step in steps)

"""Histograms: how many elements fall into each of a row (or grid) of bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.core.record import underive
from toytorch.core.tensor import Tensor, wrap
from toytorch.core.write import c_name
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.hints import Array, Sizes
from toytorch.ops.creation import create
from toytorch.ops.define import public, watched
from toytorch.ops.named_results import result_class, return_type


def _need_floats(name: str, input: Tensor) -> None:
    if input.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(f"\"{name}\" not implemented for '{input.dtype.legacy}'")


def _limits(name: str, values: Any, low: Any, high: Any, widen: float) -> tuple[float, float]:
    """The outer edges: those given, or the extremes of the values, a little apart if equal."""
    if low is None:
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min")
    return (low - widen, high + widen) if low == high else (low, high)


def _counts(columns: list[Any], edges: list[Any], weight: Array | None, kind: np.dtype[Any]) -> Any:
    """The weight in each cell of a grid of bins; the last edge of a row of bins belongs to it."""
    xp = base.of_array(columns[0]).xp
    inside = xp.ones(len(columns[0]), bool)
    places = xp.zeros(len(columns[0]), np.int64)
    for values, e in zip(columns, edges):
        place = xp.searchsorted(e, values, "right") - 1
        place = xp.where(values == e[-1], len(e) - 2, place)
        inside &= (place >= 0) & (place < len(e) - 1)
        places = places * (len(e) - 1) + place
    size = [len(e) - 1 for e in edges]
    sums = xp.bincount(
        places[inside], None if weight is None else weight[inside], minlength=int(np.prod(size))
    )
    return sums.reshape(size).astype(kind)


def _as_density(hist: Array, edges: list[Any]) -> Any:
    """Counts as a density, whose integral is 1."""
    volume: Any = 1
    for k, e in enumerate(edges):
        shape = [-1 if k == j else 1 for j in range(len(edges))]
        volume = volume * np.diff(e).reshape(shape)
    return hist / hist.sum() / volume


@public("histc", method=True)
@watched
def histc(
    input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None
) -> Tensor:
    """The number of elements in each of `bins` bins of equal width.

    >>> histc(torch.tensor([1., 2., 1.]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    if out is not None and out.dtype is not input.dtype:
        raise RuntimeError(
            "torch.histogram: input tensor and hist tensor should have the same dtype, but got "
            f"input {c_name(input.dtype)} and hist {c_name(out.dtype)}"
        )
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    values = input._array.reshape(-1)
    values = values if input.dtype.itemsize > 2 else values.astype(np.float32)
    low, high = (None, None) if min == max else (float(min), float(max))
    if input.dtype.is_complex and low is None and values.size:
        # PyTorch's refusal, in its words.
        raise NotImplementedError(f"\"aminmax_cpu\" not implemented for '{input.dtype.legacy}'")
    low, high = _limits("torch.histc", values, low, high, 1.0)
    if input.dtype.rank != 2:
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{input.dtype.legacy}'")

    def rounded(x: Any) -> Any:  # what half types keep of each step
        return x.astype(input.dtype.numpy, copy=False).astype(values.dtype, copy=False)

    low, high = rounded(np.array([low, high], values.dtype))
    inside = values[(values >= low) & (values <= high)]
    place = rounded(rounded(rounded(inside - low) * bins) / rounded(high - low))
    place[inside == (low + high) / 2] = bins // 2  # also where nothing is wide enough to count
    counts = np.bincount(np.minimum(place.astype(np.int64), bins - 1), minlength=bins)
    made = wrap(counts.astype(input.dtype.numpy))
    if out is None or not out._requires_grad:
        return create.put_out(made, out, same=True)
    before = state.local.grad
    state.set_grad(False)  # a histogram has no history, whatever it is written to
    try:
        return create.put_out(made, out, same=True)
    finally:
        state.set_grad(before)


def _edges(
    name: str,
    columns: list[Any],
    bins: Sequence[Tensor | int],
    range: Sequence[float] | None,
    kind: np.dtype[Any],
) -> list[Any]:
    """The edges of the bins along each dimension."""
    edges = []
    for k, (values, n) in enumerate(zip(columns, bins)):
        if isinstance(n, Tensor):
            if n.dtype.numpy != kind:
                ours = c_name(types.from_numpy_dtype(np.dtype(kind)))
                raise RuntimeError(
                    "torch.histogramdd: input tensor and bins tensors should have the same dtype, "
                    f"but got input with dtype {ours} and bins for dimension {k} with dtype "
                    f"{c_name(n.dtype)}"
                )
            if n.ndim != 1:
                raise RuntimeError(
                    f"{name}(): bins tensor should have one dimension, but got "
                    f"{n.ndim} dimensions in the bins tensor for dimension {k}"
                )
            if not n.numel():
                raise RuntimeError(
                    f"{name}(): bins tensor should have at least 1 element, but got "
                    f"0 elements in the bins tensor for dimension {k}"
                )
            edges.append(n._array)
            continue
        if n <= 0:
            raise RuntimeError(f"{name}(): bins must be > 0, but got {n} for dimension {k}")
        low, high = (
            (None, None) if range is None else (float(range[2 * k]), float(range[2 * k + 1]))
        )
        low, high = _limits(name, values, low, high, 0.5)
        xp = base.of_array(values).xp
        edges.append(xp.linspace(low, high, n + 1).astype(kind))
    return edges


def _weights(name: str, input: Tensor, weight: Tensor | None, shape: Sizes) -> Any:
    if weight is None:
        return None
    if weight.dtype is not input.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
            f"should have the same dtype, but got input({c_name(input.dtype)}), and "
            f"weight({c_name(weight.dtype)})"
        )
    if tuple(weight.shape) != tuple(shape):
        raise RuntimeError(
            f"{name}(): if weight tensor is provided it should have the same shape as the input "
            "tensor excluding its innermost dimension, but got input with shape "
            f"{list(input.shape)} and weight with shape {list(weight.shape)}"
        )
    return weight._array.reshape(-1)


@public("histogram", method=True, returns="(Tensor hist, Tensor bin_edges)")
def histogram(
    input: Tensor,
    bins: Tensor | int,
    *,
    range: tuple[float, ...] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: tuple[Tensor, Tensor] | None = None,
) -> Any:
    """The weight of elements in each bin, and the edges of the bins.

    >>> histogram(torch.tensor([1., 2., 1.]), 2, range=(0., 3.)).hist
    tensor([2., 1.])
    """
    _need_floats("histogram_cpu", input)
    results = _histogram(input, bins, range=range, weight=weight, density=density)
    outs = (None, None) if out is None else out
    for name, place in zip(("hist", "bin_edges"), outs):
        if place is not None and place.dtype is not input.dtype:
            raise RuntimeError(
                f"torch.histogram: input tensor and {name} tensor should have the same dtype, but "
                f"got input {c_name(input.dtype)} and {name} {c_name(place.dtype)}"
                + " for dimension 0"
                * (name == "bin_edges")
            )
    if out is None:
        for result in results:
            underive("aten::histogram", [input, bins, weight], result)
    made = result_class("histogram" if out is None else "histogram_out", ("hist", "bin_edges"))
    return made(*(create.put_out(result, place) for result, place in zip(results, outs)))


def _of_one(
    input: Tensor,
    bins: Tensor | int,
    range: tuple[float, ...] | None,
    weight: Tensor | None,
    density: bool,
) -> tuple[Tensor, Tensor]:
    """`histogram` without names and out=."""
    values, kind = input._array.reshape(-1), input.dtype.numpy
    edges = _edges("torch.histogram", [values], [bins], range, kind)
    hist = _counts([values], edges, _weights("torch.histogram", input, weight, input.shape), kind)
    if density:
        hist = _as_density(hist, edges)
    return wrap(hist), wrap(edges[0].copy())


_histogram = watched(_of_one, "histogram")


@public("histogramdd")
def histogramdd(
    input: Tensor,
    bins: int | Sequence[Tensor | int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """The weight of points (…, D) in each cell of a grid, and the edges of its bins.

    >>> histogramdd(torch.tensor([[0., 1.], [1., 0.]]), [2, 2]).hist
    tensor([[0., 1.],
            [1., 0.]])
    """
    _need_floats("histogram_cpu", input)
    if input.ndim < 2:
        raise RuntimeError(
            "torch.histogramdd: input tensor should have at least 2 dimensions, but "
            f"got {input.ndim}"
        )
    n = input.shape[-1]
    bins = [bins] * n if isinstance(bins, int) else list(bins)
    if len(bins) != n:
        raise RuntimeError(
            f"torch.histogramdd: expected {n} sequences of bin edges for a {n}"
            f"-dimensional histogram but got {len(bins)}"
        )
    if range is not None and len(range) != 2 * n:
        raise RuntimeError(
            f"torch.histogramdd: for a {n}-dimensional histogram range should have "
            f"{2 * n} elements, but got {len(range)}"
        )
    hist, *edges = _histogramdd(input, bins, range=range, weight=weight, density=density)
    if not any(isinstance(b, Tensor) for b in bins):
        for edge in edges:
            underive("aten::_histogramdd_bin_edges", [input, weight], edge)
        underive("aten::_histogramdd_from_bin_cts", [input, weight], hist)
    else:
        underive("aten::_histogramdd_from_bin_tensors", [input, *bins, weight], hist)
    shown = tuple(n if isinstance(n, Tensor) else e for n, e in zip(bins, edges))
    return return_type("histogramdd", (hist, shown), ("hist", "bin_edges"))


def _of_many(
    input: Tensor,
    bins: Sequence[Tensor | int],
    range: Sequence[float] | None,
    weight: Tensor | None,
    density: bool,
) -> tuple[Tensor, ...]:
    """`histogramdd` of arguments that have been looked at: counts, then all edges."""
    n, kind = input.shape[-1], input.dtype.numpy
    # A compiled function hands over arrays in lists that hold other things, too.
    bins = [wrap(b) if isinstance(b, np.ndarray) else b for b in bins]
    rows = input._array.reshape(-1, n)
    columns = [rows[:, k].copy() for k in np.arange(n)]
    edges = _edges("torch.histogramdd", columns, bins, range, kind)
    hist = _counts(
        columns, edges, _weights("torch.histogramdd", input, weight, input.shape[:-1]), kind
    )
    if density:
        hist = _as_density(hist, edges)
    return wrap(hist.astype(kind)), *(wrap(e.copy()) for e in edges)


_histogramdd = watched(_of_many, "histogramdd")

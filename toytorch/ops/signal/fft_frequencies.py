"""The frequencies that the places of a Fourier transform stand for, and their order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.hints import Device, DType, Ints, Layout
from toytorch.facts.size import wrap_dim
from toytorch.ops.creation.from_data import tensor
from toytorch.ops.creation.ranges import arange
from toytorch.ops.define import public
from toytorch.ops.shaping.slices import slice_


def _frequencies(
    n: int,
    d: float,
    half: bool,
    dtype: DType | None,
    device: Device,
    requires_grad: bool,
    out: Tensor | None,
) -> Any:
    asked = dtype if out is None else out.dtype
    if asked is not None and asked.rank < 2:
        name = "rfftfreq" if half else "fftfreq"
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    count = int(n / 2) + 1
    step = float(np.float64(1) / np.float64(n * d)) if n * d else math.inf
    if out is not None:  # PyTorch goes over it three times, whatever its shape, and counts one
        arange(count if half else n, out=out)
        if not half:
            arange(-(n // 2), 0, out=slice_.function(out.data, 0, (n + 1) // 2, n))
        out.data.mul_(step)
        return out
    if (count if half else n) < 0:
        bad = count if half else n
        raise RuntimeError(f"Trying to create tensor with negative dimension {bad}: [{bad}]")
    if asked is not None and asked.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{asked.legacy}'")
    if half:
        k = np.arange(count)
    else:
        k = np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)])
    kind = asked or types.get_default_dtype()
    with np.errstate(all="ignore"):  # the numbers and their step are of the type, as in PyTorch
        step = np.float64(1) / np.float64(n * d)
        values = k.astype(kind.numpy) * np.asarray(step).astype(kind.numpy)
    return tensor(values, dtype=kind, device=device, requires_grad=requires_grad)


def _frequencies_of(transform: str, half: bool, example: str = "") -> Any:
    """The public function of the frequencies of a transform."""
    name = f"{transform}freq"

    def function(
        n: int,
        d: float = 1.0,
        *,
        out: Tensor | None = None,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Device = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return _frequencies(n, d, half, dtype, device, requires_grad, out)

    return public(
        f"fft.{name}",
        tensor_first=False,
        doc=f"The frequencies of the places of `{transform}`, for samples d apart.{example}",
    )(function)


fftfreq = _frequencies_of(
    "fft",
    False,
    """

    >>> fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """,
)
rfftfreq = _frequencies_of("rfft", True)


def _shift(x: Tensor, dim: Ints | None, back: bool) -> Any:
    dims = list(range(x.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    steps = [(x.shape[wrap_dim(d, x.ndim, wrap_scalar=False)] + back) // 2 for d in dims]
    return x.roll(steps, dims)


def _need_shifts(x: Tensor, dim: Ints | None) -> None:
    if not isinstance(dim, int) and not (range(x.ndim) if dim is None else dim):
        raise RuntimeError("`shifts` required")


@public("fft.fftshift")
def fftshift(input: Tensor, dim: Ints | None = None) -> Tensor:
    """The zero frequency moved to the middle."""
    _need_shifts(input, dim)
    return _shift(input, dim, False)


@public("fft.ifftshift")
def ifftshift(input: Tensor, dim: Ints | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    _need_shifts(input, dim)
    return _shift(input, dim, True)

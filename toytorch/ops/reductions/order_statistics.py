"""Medians without NaN, modes and quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends.generic import accumulate, attempt, taken
from toytorch.core.tensor import Tensor
from toytorch.core.views import counted
from toytorch.facts.composed import cast_to
from toytorch.facts.dtype import no_kernel
from toytorch.facts.hints import Array, ArrayModule
from toytorch.facts.schema import NOT_GIVEN
from toytorch.facts.size import wrap_dim
from toytorch.ops.creation import create, from_data
from toytorch.ops.define import in_own_type, public
from toytorch.ops.named_results import public_with_names, return_type
from toytorch.ops.reductions import sort
from toytorch.ops.reductions.extremes import back_to_place, share_ties_of_all

# -- the median of what is a number ---------------------------------------------------------------


def _middle(xp: ArrayModule, a: Array, places: Array, d: int) -> Any:
    missing = xp.isnan(a).sum(axis=d, keepdims=True) if a.dtype.kind == "f" else 0  # come last
    middle = xp.maximum((a.shape[d] - missing - 1) // 2, 0)
    wanted = [1 if k == d else n for k, n in enumerate(a.shape)]
    return taken(xp, places, xp.broadcast_to(middle, wanted), d)


def _nanmedian(
    xp: ArrayModule, a: Array, dim: int, keepdim: bool, kernel: str = "median_out"
) -> Any:
    return sort.median_by(xp, a, dim, keepdim, kernel, _middle)


nanmedian_dim = in_own_type(
    "nanmedian.dim(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    _nanmedian,
    forms="method out",
    d_self=back_to_place,
    of_reals="nanmedian",
    memory="rows",
    names="reduced",
    node="NanmedianBackward1",
    out_type="same",
    doc="The middle number along a dimension, NaN left out.",
)


def _nanmedian_all(xp: ArrayModule, a: Array) -> Any:
    if not a.size:
        return sort.median_of_nothing(xp, a)
    return _nanmedian(xp, a.reshape(-1), 0, False, "median_cpu")[0]


nanmedian_all = in_own_type(
    "nanmedian(Tensor self) -> Tensor",
    _nanmedian_all,
    forms="out",
    d_self=share_ties_of_all,
    of_reals="nanmedian",
    doc="The middle number, NaN left out.",
)


@public("nanmedian", method=True, returns="(Tensor values, Tensor indices) if dim else Tensor")
def nanmedian(
    input: Tensor, dim: int = NOT_GIVEN, keepdim: bool = False, *, out: Any = None
) -> Any:
    """The middle number (the lower of two), NaN left out; with a dimension (values, indices).

    >>> nanmedian(torch.tensor([1., torch.nan, 3., 2.]))
    tensor(2.)
    """
    if dim is NOT_GIVEN:
        if out is not None or keepdim:
            raise TypeError('nanmedian() missing 1 required positional arguments: "dim"')
        return nanmedian_all.function(input)
    return return_type("nanmedian", nanmedian_dim.function(input, dim, keepdim, out=out), out=out)


# -- the most frequent element --------------------------------------------------------------------


def _mode(xp: ArrayModule, a: Array, dim: int, keepdim: bool) -> Any:
    d = wrap_dim(dim, a.ndim)
    if a.ndim == 0:
        return a.copy(), xp.zeros((), np.int64)
    n = a.shape[d]
    if n == 0:
        raise IndexError(f"mode(): Expected reduction dim {d} to have non-zero size.")
    if a.dtype.kind == "c" and a.size:
        raise no_kernel("mode_cpu", a.dtype)
    made = attempt(xp, "mode", a, d)
    if made is not None:
        return tuple(np.expand_dims(v, d) for v in made) if keepdim else made
    places, lines = sort.order(xp, a, d, False), a
    if d != a.ndim - 1:
        places, lines = xp.moveaxis(places, d, -1), xp.moveaxis(a, d, -1)
    rows = taken(xp, lines, places, a.ndim - 1)
    # The length of the run of equals up to each place; the first longest run holds the mode.
    starts = xp.concatenate(
        [xp.ones((*rows.shape[:-1], 1), bool), rows[..., 1:] != rows[..., :-1]], axis=-1
    )
    at = xp.arange(n)
    length = at - accumulate(xp, "maximum", xp.where(starts, at, 0), -1)
    end = xp.argmax(length, axis=-1)[..., None]
    values, index = (taken(xp, x, end, a.ndim - 1) for x in (rows, places))
    if d != a.ndim - 1:
        values, index = xp.moveaxis(values, -1, d), xp.moveaxis(index, -1, d)
    if not keepdim:
        values, index = values.squeeze(d), index.squeeze(d)
    return values, index.astype(np.int64)


mode = in_own_type(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    _mode,
    d_self=back_to_place,
    of_reals="mode",
    names="reduced",
    apart="partly",
    out_type="result",
    doc="The most frequent element along a dimension; the smallest of several.",
)
public_with_names(mode)

# -- quantiles ------------------------------------------------------------------------------------

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check(name: str, input: Tensor, q: Tensor | float, interpolation: str) -> Tensor:
    """q as a tensor, after PyTorch's checks."""
    if not input.numel():
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if input.dtype.name not in ("float32", "float64"):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint "
            f"or nearest, but got {interpolation}"
        )
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        return from_data.tensor(q, dtype=input.dtype, device=input.device)
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q.device != input.device:
        raise RuntimeError(f"{name}() q tensor must be on the same device as the input tensor")
    if not bool(((q >= 0) & (q <= 1)).all()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    return q


def _quantile(name: str, skip: bool) -> Any:
    @cast_to("float32")
    def function(
        input: Tensor,
        q: Tensor | float,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
        out: Tensor | None = None,
    ) -> Tensor:
        fractions: Any = _check(name, input, q, interpolation)
        if out is not None and out.dtype is not input.dtype:
            raise RuntimeError(f"{name}() out tensor must be same dtype as the input tensor")
        x: Any = input.reshape(-1) if dim is None else input
        d = 0 if dim is None else wrap_dim(dim, input.ndim)
        rows = (x.reshape(1) if x.ndim == 0 else x).movedim(d, -1).sort(-1).values  # NaN last
        flat = fractions.reshape(-1)
        most = rows.shape[-1] - 1
        if skip:
            last = rows.isnan().logical_not().sum(-1, True) - 1  # (…, 1)
            ranks = flat * last.clamp(min=0).to(rows.dtype)  # (…, q)
        else:  # NaN, which is last, stands for all: it takes the gradient, too
            ranks = (flat * most).masked_fill(rows.narrow(-1, most, 1).isnan(), most)
        if interpolation == "lower":
            ranks = ranks.floor()
        elif interpolation == "higher":
            ranks = ranks.ceil()
        elif interpolation == "nearest":
            ranks = ranks.round()
        below = ranks.detach().long()
        made = rows.gather(-1, below)
        if interpolation in ("linear", "midpoint"):
            weight = (ranks - below) if interpolation == "linear" else ranks * 0 + 0.5
            above = rows.gather(-1, ranks.detach().ceil().long())
            made = made.lerp(above, weight)
        made = made.movedim(-1, 0)  # (q, …)
        if keepdim and input.ndim:
            if dim is None:
                made = made.reshape((flat.numel(), *([1] * input.ndim)))
            else:
                made = made.unsqueeze(d + 1)
        elif x.ndim == 0 or dim is None:
            made = made.reshape((flat.numel(),))
        if fractions.ndim == 0:
            made = made.squeeze(0)
        if out is not None:
            return create.put_out(made, out, same=True)
        mixed = interpolation in ("linear", "midpoint")
        return counted(made.clone(), mixed + (3 if fractions.ndim else 1))  # a clone: no view

    return public(
        name,
        method=True,
        doc=f"The values below which fractions q of the elements lie{', NaN left out' * skip}.",
    )(function)


quantile, nanquantile = _quantile("quantile", False), _quantile("nanquantile", True)

"""Reductions of the consecutive segments of a dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.core.tensor import Tensor, wrap
from toytorch.ops.define import public, watched

START = {"sum": 0.0, "mean": 0.0, "max": -math.inf, "min": math.inf, "prod": 1.0}
SCATTER = {"sum": "sum", "mean": "sum", "max": "amax", "min": "amin", "prod": "prod"}
NAMES = {**{v: k for k, v in SCATTER.items()}, **{k: k for k in SCATTER}}  # both names of extremes


@public("segment_reduce", "_segment_reduce")
@watched
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """The sum, mean, max, min or prod of segments, given by their lengths or their bounds.

    >>> segment_reduce(torch.tensor([1., 2., 3.]), "sum", lengths=torch.tensor([2, 1]))
    tensor([3., 3.])
    """
    said, reduce = reduce, NAMES.get(reduce, reduce)
    if reduce not in START:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {said}"
        )
    if lengths is not None:
        offsets = None
    elif offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    axis = axis + data.ndim if axis < 0 else axis
    bounds: Any = lengths if offsets is None else offsets
    xp = base.of_array(bounds._array).xp
    if offsets is None:
        sizes = bounds._array
    else:  # bounds that fall are those of nothing
        sizes = xp.maximum(xp.diff(bounds._array, axis=-1), 0)
    if not unsafe and offsets is None and sizes.size:
        if int(sizes.min()) < 0:
            raise RuntimeError("lengths contains negative value!")
        if (sizes.sum(-1) != data.shape[axis]).any():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum "
                "to data.size(lengths.dim()-1) when !unsafe."
            )
    lead, count = data.shape[:axis], sizes.shape[-1]
    starts = xp.cumsum(sizes, -1) - sizes if offsets is None else offsets._array[..., :-1]
    flat = sizes.reshape(-1)
    numbers = xp.repeat(xp.arange(flat.size), flat)
    within = xp.arange(len(numbers)) - xp.repeat(xp.cumsum(flat) - flat, flat)
    images = xp.arange(math.prod(lead)).repeat(count)[: flat.size]
    rows = data.reshape([math.prod(lead) * data.shape[axis], *data.shape[axis + 1 :]])
    taken = within + (starts.reshape(-1) + images * data.shape[axis])[numbers]
    if offsets is not None or len(taken) != rows.shape[0]:
        rows = rows.index_select(0, wrap(taken))
    begin = START[reduce] if initial is None else float(initial)
    into = rows.new_full([sizes.size, *rows.shape[1:]], begin)
    ones = (1,) * (rows.ndim - 1)
    index = wrap(numbers.reshape(-1, *ones)).expand(rows.shape)
    made = into.scatter_reduce(0, index, rows, SCATTER[reduce], include_self=True)
    if reduce == "mean":
        divisor = sizes.reshape(-1, *ones)
        kept = divisor if initial is None else xp.maximum(divisor, 1)
        made = made / wrap(kept.astype(np.float64)).to(made.dtype)
    return made.reshape([*lead, count, *data.shape[axis + 1 :]])

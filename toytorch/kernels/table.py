"""The kernels of NumPy's arrays, by name: what `backends.base.attempt` looks up.

A kernel takes arrays and plain arguments. It returns None where it has nothing faster for them; the
op then says it in the array module's own functions.

    >>> sorted(KERNELS)[:3]
    ['add_rows', 'add_runs', 'add_slices']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toytorch.kernels import by_index, conv, convert, distance, masks, matmul, norm, pool, reduce, rows, scan, softmax, top

KERNELS: dict[str, Callable[..., Any]] = {
    "add_rows": rows.add_rows,
    "add_runs": rows.add_runs,
    "add_slices": by_index.add_slices,
    "batch_norm": norm.batch,
    "batch_norm_affine": norm.affine,
    "batch_norm_backward": norm.batch_backward,
    "cast": convert.cast,
    "convolution": conv.forward,
    "convolution_input": conv.input_gradient,
    "convolution_weight": conv.weight_gradient,
    "distances": distance.between,
    "distances_within": distance.within,
    "gather": by_index.gather,
    "group_norm": norm.group,
    "group_norm_backward": norm.group_backward,
    "layer_norm": norm.layer,
    "layer_norm_input": norm.layer_input,
    "layer_norm_weight": norm.layer_weight,
    "log_softmax": softmax.log_softmax,
    "log_softmax_backward": softmax.log_softmax_backward,
    "max_pool": pool.max_pool,
    "max_pool_backward": pool.max_pool_backward,
    "max_runs": rows.max_runs,
    "mean_pool": pool.mean_pool,
    "mean_pool_backward": pool.mean_pool_backward,
    "nonzero": masks.nonzero,
    "picked": masks.picked,
    "picked_mean": rows.picked_mean,
    "product": matmul.product,
    "put_picked": rows.put_picked,
    "repeat": reduce.repeat,
    "running_sum": scan.running_sum,
    "scatter": by_index.scatter,
    "select": by_index.select,
    "softmax": softmax.softmax,
    "softmax_backward": softmax.softmax_backward,
    "sum": reduce.total,
    "take_rows": rows.take_rows,
    "top": top.top,
}

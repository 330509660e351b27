"""The kernels of NumPy's arrays, by name: what `backends.base.attempt` looks up.

A kernel takes arrays and plain arguments. It returns None where it has nothing faster for them; the
op then says it in the array module's own functions.

    >>> sorted(KERNELS)[:3]
    ['add_rows', 'add_runs', 'add_slices']
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from toytorch.kernels import matmul, norm, reduce, rows, softmax, tiled_product


def later(module: str, name: str) -> Callable[..., Any]:
    """A kernel of a module that is imported when it is first asked for."""

    def first(*args: Any) -> Any:
        kernel = getattr(importlib.import_module(f"toytorch.kernels.{module}"), name)
        for word, found in KERNELS.items():
            if found is first:
                KERNELS[word] = kernel
        return kernel(*args)

    return first


KERNELS: dict[str, Callable[..., Any]] = {
    "add_rows": rows.add_rows,
    "add_runs": rows.add_runs,
    "add_slices": later("by_index", "add_slices"),
    "among": later("few", "among"),
    "assign": later("copy", "assign"),
    "attention": later("attention", "forward"),
    "attention_backward": later("attention", "backward"),
    "batch_norm": norm.batch,
    "batch_norm_affine": norm.affine,
    "batch_norm_backward": norm.batch_backward,
    "batch_norm_known": norm.known,
    "cast": later("convert", "cast"),
    "convolution": later("conv", "forward"),
    "convolution_input": later("conv", "input_gradient"),
    "convolution_weight": later("conv_weight", "weight_gradient"),
    "distances": later("distance", "between"),
    "distances_within": later("distance", "within"),
    "ends": later("few", "ends"),
    "gated": later("pairs", "gated"),
    "gather": later("by_index", "gather"),
    "group_norm": norm.group,
    "group_norm_backward": norm.group_backward,
    "halves attention": later("halves", "attention"),
    "halves attention_backward": later("halves", "attention_backward"),
    "halves batch_norm": later("halves", "batch_norm"),
    "halves embedding_dense_backward": later("halves", "embedding_dense_backward"),
    "halves log_softmax": later("halves", "log_softmax"),
    "halves logsumexp": later("halves", "logsumexp"),
    "halves nll_loss": later("halves", "nll_loss"),
    "halves nll_loss_backward": later("halves", "nll_loss_backward"),
    "halves pow": later("halves", "pow"),
    "in_rows": later("copy", "copied"),
    "joined": later("copy", "joined"),
    "layer_norm": norm.layer,
    "layer_norm_backward": norm.layer_backward,
    "layer_norm_input": norm.layer_input,
    "layer_norm_weight": norm.layer_weight,
    "log_softmax": softmax.log_softmax,
    "log_softmax_backward": softmax.log_softmax_backward,
    "max_pool": later("pool", "max_pool"),
    "max_pool_backward": later("pool", "max_pool_backward"),
    "max_runs": rows.max_runs,
    "mean_pool": later("pool", "mean_pool"),
    "mean_pool_backward": later("pool", "mean_pool_backward"),
    "middle": later("few", "middle"),
    "mode": later("few", "mode"),
    "nonzero": later("masks", "nonzero"),
    "ordered": later("radix", "ordered"),
    "outer": later("pairs", "outer"),
    "pool of few": later("pool", "few"),
    "picked": later("masks", "picked"),
    "picked_mean": rows.picked_mean,
    "places": later("few", "places"),
    "product": matmul.product,
    "folded": later("fold", "folded"),
    "fourier": later("fourier", "along"),
    "extreme": later("few", "extreme"),
    "factor": tiled_product.Factor,
    "linear": tiled_product.linear,
    "products": later("batched_product", "product"),
    "put_picked": rows.put_picked,
    "repeat": reduce.repeat,
    "running_product": later("scan", "running_product"),
    "running_sum": later("scan", "running_sum"),
    "sampled": later("sample", "forward"),
    "sampled_backward": later("sample", "backward"),
    "scaled": later("mersenne", "scaled"),
    "scatter": later("by_index", "scatter"),
    "select": later("by_index", "select"),
    "softmax": softmax.softmax,
    "softmax_backward": softmax.softmax_backward,
    "spread": later("few", "spread"),
    "sum": reduce.total,
    "take_rows": rows.take_rows,
    "top": later("top", "top"),
    "triangle": later("triangle", "triangle"),
}

"""The kernels of NumPy's arrays, by name: what `backends.generic.attempt` looks up.

A kernel takes arrays and plain arguments. It returns None where it has nothing faster for them; the
op then says it in the array module's own functions.

    >>> sorted(KERNELS)[:3]
    ['add_rows', 'add_runs', 'add_slices']
"""

from __future__ import annotations

import importlib
from typing import Any

from toytorch.facts.hints import Fn
from toytorch.kernels import matmul, norm, reduce, rows, softmax, tiled_product
from toytorch.loops import Recipe


def later(module: str, name: str) -> Fn:
    """A kernel of a module that is imported when it is first asked for."""

    def first(*args: Any) -> Any:
        kernel = getattr(importlib.import_module(f"toytorch.kernels.{module}"), name)
        for word, found in KERNELS.items():
            if found is first:
                KERNELS[word] = kernel
        return kernel(*args)

    return first


def run_recipe(recipe: Recipe, *args: Any) -> None:
    """Runs a program of the loop language, which gives each element of its results, over arrays
    (outputs, then inputs) of any layout; of no elements, there is nothing to give."""
    if args[0].size:
        recipe(*args)


# Kernels by the module that has them, under the same names.
LATER = {
    "by_index": "add_slices combine counted gather scatter select",
    "convert": "cast",
    "copy": "assign interleaved joined",
    "few": "among ends extreme middle mode places row_places spread",
    "fold": "folded",
    "lapack": "lu triangular",
    "masks": "nonzero picked",
    "mersenne": "between scaled",
    "pairs": "gated gated_backward outer sloped",
    "picked": "likelihoods put_likelihoods",
    "pool": "max_pool max_pool_backward mean_pool mean_pool_backward",
    "radix": "ordered",
    "rms": "rms_norm rms_norm_input rms_norm_weight",
    "scan": "running_extreme running_product running_sum running_sum_rounded",
    "top": "top",
    "triangle": "triangle",
    "windows": "largest_of_windows mean_of_windows mean_of_windows_backward put_at_places",
}
HALVES = "batch_norm embedding_dense_backward log_softmax logsumexp nll_loss nll_loss_backward pow"
# Kernels of another name than their function, each in a module that is imported at the first call.
NAMED = {
    "attention": "attention.forward", "attention_backward": "attention.backward",
    "convolution": "conv.forward", "convolution_input": "conv.input_gradient",
    "convolution_weight": "conv_weight.weight_gradient", "distances": "distance.between",
    "distances_within": "distance.within", "fourier": "fourier.along",
    "halves attention": "half_attention.forward",
    "halves attention_backward": "half_attention.backward", "in_rows": "copy.copied",
    "of_numbers": "sequential.each", "pool of few": "pool.few",
    "products": "batched_product.product", "sampled": "sample.forward",
    "sampled_backward": "sample.backward", "square_of_pairs": "distance.square",
}  # fmt: skip
KERNELS: dict[str, Fn] = {
    **{name: later(module, name) for module, names in LATER.items() for name in names.split()},
    **{f"halves {name}": later("halves", name) for name in HALVES.split()},
    **{name: later(*place.split(".")) for name, place in NAMED.items()},
    "add_rows": rows.add_rows, "add_runs": rows.add_runs, "max_runs": rows.max_runs,
    "picked_loss": rows.picked_loss, "put_picked": rows.put_picked, "take_rows": rows.take_rows,
    "batch_norm": norm.batch, "batch_norm_affine": norm.affine,
    "batch_norm_known_backward": norm.known_backward, "batch_norm_backward": norm.batch_backward,
    "batch_norm_known": norm.known, "group_norm": norm.group,
    "group_norm_backward": norm.group_backward, "layer_norm": norm.layer,
    "layer_norm_backward": norm.layer_backward, "layer_norm_input": norm.layer_input,
    "layer_norm_weight": norm.layer_weight,
    "log_softmax": softmax.log_softmax, "log_softmax_backward": softmax.log_softmax_backward,
    "softmax": softmax.softmax, "softmax_backward": softmax.softmax_backward,
    "extreme_of_rows": reduce.extreme_of_rows, "repeat": reduce.repeat,
    "spread_mean": reduce.spread_mean, "sum": reduce.total,
    "factor": tiled_product.Factor, "linear": tiled_product.linear,
    "product": matmul.product, "program": run_recipe,
}  # fmt: skip

"""What an archive, or code that came as text, may name: operations, and nothing else.

A file is written by anybody, so a name in it is looked up in tables of operations only: the op
registry, the composed functions that are registered beside it, and the names listed below. No entry
evaluates text, imports a module, opens a file or takes a function as an argument
(`tests/jit/test_reachable.py` looks into each). A function is stored as [table, name]; where it has
a module of its own, that stands for the table.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn
from toytorch.jit.builtins import BUILTINS
from toytorch.jit.ir import op_of
from toytorch.nn import functional
from toytorch.ops.define import CREATING, PUBLIC

TABLES: dict[str, dict[str, Any]] = {
    "record": registry,
    "public": PUBLIC,
    "creating": CREATING,
    "builtin": BUILTINS,
}
REFUSED = ("from_file",)  # entries of the tables that reach beyond the graph

# Functions of toytorch.nn.functional.
FUNCTIONAL = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices
adaptive_max_pool3d adaptive_max_pool3d_with_indices affine_grid alpha_dropout avg_pool1d
avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy binary_cross_entropy_with_logits
celu celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
conv_transpose3d cosine_embedding_loss cosine_similarity cross_entropy ctc_loss dropout dropout1d
dropout2d dropout3d elu elu_ embedding embedding_bag feature_alpha_dropout fold
fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
fractional_max_pool3d_with_indices gaussian_nll_loss gelu glu grid_sample group_norm gumbel_softmax
hardshrink hardsigmoid hardswish hardtanh hardtanh_ hinge_embedding_loss huber_loss instance_norm
interpolate kl_div l1_loss layer_norm leaky_relu leaky_relu_ linear linear_cross_entropy
local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss
max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d mish mse_loss
multi_head_attention_forward multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss
native_channel_shuffle nll_loss normalize one_hot pad pairwise_distance pdist pixel_shuffle
pixel_unshuffle poisson_nll_loss prelu relu relu6 relu_ rms_norm rrelu rrelu_
scaled_dot_product_attention selu selu_ sigmoid silu smooth_l1_loss soft_margin_loss softmax softmin
softplus softshrink softsign tanh tanhshrink threshold threshold_ triplet_margin_loss unfold
upsample upsample_bilinear upsample_nearest
"""

# Methods of a tensor that are neither a record's nor a composed function's of the tables.
METHODS = """
prelu copy_ view expand unfold float double half bfloat16 long int short char byte bool cfloat
cdouble to type_as cpu cuda is_contiguous contiguous new_tensor resize_ new_empty_strided new_zeros
new_ones new_empty new_full div_ abs_ float_power_ expand_as view_as reshape_as t_ squeeze_
unsqueeze_ swapaxes_ transpose_ swapdims_ fill_diagonal_ cumsum_ cumprod_ where absolute_ divide_
true_divide_ to_sparse to_dense coalesce is_coalesced indices values sparse_dim dense_dim
sparse_mask scatter_ __getitem__ __setitem__ triangular_solve cholesky lu_solve pinverse addbmm_
quantile nanquantile rename rename_ refine_names align_to align_as has_names trace sum_to_size
tolist requires_grad_
"""

# Functions beside those; some are what forward methods of the modules call.
HELPERS = (
    ("toytorch.facts.state", "is_grad_enabled"),
    ("toytorch.core.random", "manual_seed"),
    ("toytorch.facts.dtype", "promote_types"),
    ("toytorch.facts.dtype", "get_default_dtype"),
    ("toytorch.ops.creation.from_data", "as_tensor"),
    ("toytorch.nn.modules.batchnorm", "check_dims"),
    ("toytorch.nn.modules.transformer", "is_causal_mask"),
    ("toytorch.autograd.modes", "is_inference_mode_enabled"),
)


@functools.cache
def listed() -> dict[tuple[str, str], Any]:
    """The functions that are listed by name, and the composed ones under their modules."""
    found: dict[tuple[str, str], Any] = {}
    for function in (
        *(vars(Tensor)[n] for n in METHODS.split()),
        *(getattr(functional, n) for n in FUNCTIONAL.split()),
        *(getattr(sys.modules[m], n) for m, n in HELPERS),
        *PUBLIC.values(),
    ):
        place = getattr(function, "__module__", ""), getattr(function, "__name__", "")
        held = getattr(sys.modules.get(place[0]), place[1], None)
        while function is not held and hasattr(function, "__wrapped__"):
            function = function.__wrapped__  # without its check of arguments
        if function is held and inspect.isroutine(held):
            found[place] = held
    return found


def method(name: str) -> Any:
    """The method of a tensor that is an operation's, or listed; None for any other."""
    base = name.removesuffix("_")
    known = name in METHODS.split() or any(n in t for t in (registry, PUBLIC) for n in (name, base))
    found = vars(Tensor).get(name) if known else None
    return found if inspect.isroutine(found) else None


def found_at(table: str, name: str) -> Any:
    """The operation that a table or a module of operations holds under a name, or None."""
    if name.partition(".")[0] in REFUSED:
        return None
    if table == "method":
        return method(name)
    found = TABLES[table].get(name) if table in TABLES else listed().get((table, name))
    return None if isinstance(found, type) else found  # an exception's class is no operation


def where_is(function: Fn) -> list[str] | None:
    """Where an operation is found, as [table, name]; None for everything else."""
    for table, held in TABLES.items():
        for name, other in held.items():
            if other is function:
                return [table, name] if found_at(table, name) is function else None
    module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    for table in (module, "method"):
        if found_at(table, name) is function:
            return [table, name]
    return None


def of_kind(kind: str) -> Any:
    """The operation behind `aten::name` in the graph of an archive; None for any other kind."""
    found = op_of(kind)
    refused = kind.removeprefix("aten::").partition(".")[0] in REFUSED
    return None if refused or isinstance(found, type) else found

"""What is tested: every op of the package that has samples, be it a record or a composition."""

from __future__ import annotations

import importlib
from typing import Any

from tests.ops.samples import ENTRIES, Entry
from tests.ops.samples.base import Sample
from tests.oracle import GPU, ORACLE, SELFTEST, SUBJECT, attempt, devices, names, torch, tt

# The op records: name -> Op. PyTorch, tested as itself, has none.
REGISTRY: dict[str, Any] = (
    {} if SELFTEST else dict(importlib.import_module("toytorch.core.op").registry)
)

# Records that are parts of public ops, and the op whose samples run them.
COVERED_BY = {
    "_scatter_strided": "as_strided", "_spread": "sum", "_to_copy": "to", "_unsafe_view": "matmul",
    "_reshape_alias": "reshape",
    "_tied": "nn.functional.pad",
    "diagonal_backward": "diagonal",
    "div.floor": "div", "div.trunc": "div", "linalg_vector_norm": "norm", "max.dim": "max",
    "median.dim": "median",
    "min.dim": "min", "polygamma1": "digamma", "select_backward": "select", "slice": "getitem",
    "nll_loss_backward": "nll_loss", "slice_backward": "getitem", "threshold_backward": "relu",
    "unfold_backward": "unfold",
}  # fmt: skip
COVERED_BY.update({record: e.name for e in ENTRIES.values() for record in e.covers})
BY_WRITING = {"_fill_strided", "_gather_strided"}  # parts of CopySlices
# What issue 2 and its brief name; all must be there, whatever stands behind them.
EXPECTED = names(
    "add sub mul div floor_divide remainder fmod pow neg abs exp exp2 expm1 log log2 log10 "
    "log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 "
    "sigmoid relu erf erfc erfinv lgamma digamma sign floor ceil round trunc frac clamp "
    "clamp_min clamp_max reciprocal square maximum minimum fmax fmin where lerp addcmul "
    "addcdiv logaddexp nan_to_num bitwise_and bitwise_or bitwise_xor bitwise_not logical_and "
    "logical_or logical_xor logical_not hypot softplus gelu silu leaky_relu elu eq ne lt le "
    "gt ge isnan isinf isfinite isclose allclose equal sum mean prod std var amax amin max "
    "min argmax argmin all any count_nonzero logsumexp norm median cumsum cumprod cummax "
    "cummin softmax log_softmax view reshape permute transpose t T mT movedim squeeze "
    "unsqueeze flatten unflatten expand expand_as broadcast_to narrow select unfold diagonal "
    "as_strided split chunk unbind tensor_split detach real imag view_as cat stack hstack "
    "vstack repeat tile flip roll repeat_interleave tril triu diag clone contiguous index_put "
    "index_select gather scatter scatter_add masked_fill masked_select take nonzero index_add "
    "take_along_dim matmul mm bmm mv dot outer addmm einsum linear sort topk argsort unique "
    "arange linspace zeros ones full eye empty zeros_like ones_like full_like rand randn "
    "randint randperm normal bernoulli multinomial tensor as_tensor from_numpy cross_entropy "
    "mse_loss dropout one_hot meshgrid"
)


def _available(entry: Entry) -> bool:
    return all(attempt(entry.function, side)[1] is None for side in (ORACLE, SUBJECT))


TESTED: dict[str, Entry] = {name: e for name, e in sorted(ENTRIES.items()) if _available(e)}
PAIRS = [(name, device) for device in devices() for name in TESTED]
IDS = [f"{device}-{name}" for name, device in PAIRS]


def has_method(name: str) -> bool:
    """Whether the op is also a method, on both sides."""
    forms = TESTED[name].forms
    return forms and all(callable(getattr(m.Tensor, name, None)) for m in (torch, tt))


def has_inplace(name: str) -> bool:
    """Whether the op also has a form that writes into its first argument, on both sides."""
    forms = TESTED[name].forms and not name.endswith("_")
    return forms and all(callable(getattr(m.Tensor, name + "_", None)) for m in (torch, tt))


def report(failures: list[str], tried: int) -> None:
    """Fail with the first few failures and their number."""
    shown = "\n  ".join(failures[:5])
    assert not failures, f"{len(failures)} of {tried} samples\n  {shown}"


def undefined(name: str, sample: Sample) -> bool:
    """Whether a card may write any of several values to one place, as PyTorch says it may."""
    if not GPU or name not in ("setitem", "__setitem__"):
        return False
    index = sample.args[1] if isinstance(sample.args[1], tuple) else (sample.args[1],)
    places = [i for i in index if getattr(i, "dtype", None) is torch.int64]
    return any(len(i.unique()) < i.numel() for i in places)

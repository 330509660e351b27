"""Functions of `torch` that few programs call, and what is said of those that toytorch has not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import toytorch
from toytorch.autograd import anomaly
from toytorch.core.tensor import Tensor
from toytorch.facts.composed import called
from toytorch.facts.device import contiguous_format
from toytorch.nn import functional as F

has_lapack = has_spectral = True  # whether PyTorch was built with a library: these parts are here
has_mkl = has_openmp = False
legacy_contiguous_format = contiguous_format

# (what a name looks like, what is lacking and what to do instead)
KINDS = (
    (r"quant|_q[_a-z]*$|^q_|^qscheme|^q[u]?int|^per_(tensor|channel)|int_repr|fbgemm_|choose_qparams|"
     r"fake_quant|obs_", "quantization: keep weights in float16 or bfloat16"),
    (r"^(cudnn|miopen|mkldnn)_", "function of one library alone: call the plain one, such as "
     "torch.nn.functional.conv2d"),
    (r"^bits\d|^float4|^bit$", "type of so few bits: torch.int8 and torch.uint8 are the smallest"),
    (r"^batch_norm_(backward|elemt|gather|stats|update)", "batch norm over several processes"),
    (r"Type$|^Script|^(Graph|Block|Value|Node|Use|Code|Argument|AliasDb|FunctionSchema|Gradient)|"
     r"^(parse|import|merge|unify)_|State$|^Dispatch|Config$|Logger", "internals of TorchScript by "
     "these names: torch.jit.trace and torch.jit.script make graphs"),
    (r"_(ipu|xla)_|^(mtia|mps_)", "devices but CPUs and CUDA's"),
    (r"^sym_(constrain|fresh)", "sizes that are not known: shapes are numbers"),
)  # fmt: skip


def lacks(name: str) -> str:
    """What is lacking, for the error of a name that is not there; "" if nothing is known of it."""
    return next((words for pattern, words in KINDS if re.search(pattern, name)), "")


def _removed(name: str, instead: str) -> Callable[..., Any]:
    def gone(*args: object, **kwargs: object) -> Any:
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. `torch.{name}` is "
            f"deprecated in favor of `{instead}`."
        )

    return called(name, f"Removed from PyTorch: `{instead}` does it.", gone)


REMOVED = {
    "eig": "torch.linalg.eig",
    "lstsq": "torch.linalg.lstsq",
    "matrix_rank": "torch.linalg.matrix_rank",
    "solve": "torch.linalg.solve",
    "symeig": "torch.linalg.eigh",
}
globals().update({name: _removed(name, instead) for name, instead in REMOVED.items()})


def cond(
    pred: bool | Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """true_fn(*operands) or false_fn(*operands).

    Raises RuntimeError for a condition that is neither a bool nor a tensor of one element.

    >>> cond(torch.tensor(True), torch.sin, torch.cos, (torch.zeros(1),))
    tensor([0.])
    """
    if not isinstance(pred, (bool, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    return (true_fn if bool(pred) else false_fn)(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> Any:
    """Calls `carried = body_fn(*carried)` for as long as cond_fn(*carried)."""
    carried = tuple(carried_inputs)
    while bool(cond_fn(*carried)):
        made = body_fn(*carried)
        carried = tuple(made) if isinstance(made, (tuple, list)) else (made,)
    return carried


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switches `torch.autograd.detect_anomaly` for the thread."""
    anomaly.set_detect_anomaly(enabled, check_nan)


_nesting = 0


def autocast_increment_nesting() -> int:
    """Counts one more autocast context that a program keeps by hand."""
    global _nesting
    _nesting += 1
    return _nesting


def autocast_decrement_nesting() -> int:
    """Counts one less."""
    global _nesting
    _nesting -= 1
    return _nesting


def init_num_threads() -> None:
    """Does nothing: threads start when a loop needs them."""


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of groups in turn, as `torch.channel_shuffle`."""
    return toytorch.channel_shuffle(input, groups)


def _into(name: str, function: Callable[..., Any]) -> Callable[..., Tensor]:
    def write(input: Tensor, p: float, train: bool) -> Tensor:
        return input.copy_(function(input, p, train))

    return called(name, f"`{name[:-1]}` in place.", write)


alpha_dropout_ = _into("alpha_dropout_", F.alpha_dropout)
feature_alpha_dropout_ = _into("feature_alpha_dropout_", F.feature_alpha_dropout)
feature_dropout_ = _into("feature_dropout_", F.dropout2d)


def _copied(name: str) -> Callable[[Tensor], Tensor]:
    def copy(input: Tensor) -> Tensor:
        return getattr(input, name)().clone()

    return called(f"{name}_copy", f"`Tensor.{name}`, copied.", copy)


PARTS = ("crow_indices", "col_indices", "ccol_indices", "row_indices", "indices", "values")
globals().update({f"{name}_copy": _copied(name) for name in PARTS})


def dequantize(tensor: Any) -> Any:
    """A tensor as float32: none is quantized here."""
    if isinstance(tensor, (list, tuple)):
        return type(tensor)(dequantize(t) for t in tensor)
    return tensor.float()

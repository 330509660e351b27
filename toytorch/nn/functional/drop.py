"""Dropout in its kinds; Srivastava et al. 2014."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.composed import composed
from toytorch.ops.define import asks, reads
from toytorch.ops.nn.dropout import drop, drop_alpha

__all__ = [
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
]  # fmt: skip


def _check(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


@asks
@composed(idle="training")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeros each element with probability p and scales the rest by 1/(1 - p)."""
    _check(p)
    return drop(input, p, training, inplace)


@asks
@composed(idle="training")
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance where selu is used; Klambauer et al. 2017."""
    _check(p)
    return drop_alpha(input, p, training, inplace)


@asks
@composed(idle="training")
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """alpha_dropout of whole channels."""
    _check(p)
    return drop_alpha(input, p, training, inplace, channels=True)


def _channels(name: str, input: Tensor, p: float, training: bool, inplace: bool, n: int) -> Tensor:
    """Dropout of whole channels, of one image or a batch."""
    _check(p)
    if input.dim() not in (n + 1, n + 2):
        warned.at_call(
            f"{name}: Received a {input.ndim}-D input to {name}, which is deprecated and will "
            "result in an error in a future release. To retain the behavior and silence this "
            f"warning, please use dropout instead. Note that {name} exists to provide channel-wise "
            f"dropout on inputs with {n} spatial dimensions, a channel dimension, and an optional "
            f"batch dimension (i.e. {n + 1}D or {n + 2}D inputs)."
        )
    elif n == 2 and input.ndim == 3:
        warned.at_call(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one without "
            "a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout "
            "behavior, please switch to using dropout1d instead."
        )
    single = n != 2 and input.ndim != n + 2  # of images alone, PyTorch takes rows for channels
    if inplace:
        drop(input.unsqueeze(0) if single else input, p, training, True, channels=True)
        return input
    made = drop(input.unsqueeze(0) if single else input, p, training, False, channels=True)
    return made.squeeze(0) if single else made


@reads
@composed(idle="training")
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeros whole channels of (B, C, L) with probability p."""
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _channels("dropout1d", input, p, training, inplace, 1)


@reads
@composed(idle="training")
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeros whole channels of (B, C, H, W) with probability p."""
    return _channels("dropout2d", input, p, training, inplace, 2)


@reads
@composed(idle="training")
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeros whole channels of (B, C, D, H, W) with probability p."""
    return _channels("dropout3d", input, p, training, inplace, 3)

"""Networks' functions without state, like `torch.nn.functional`."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.ops import activation, methods, pointwise, reduce
from toytorch.ops.loss import nll

linear = methods.linear
gelu = methods.gelu


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return input.relu_() if inplace else pointwise.relu.function(input)  # type: ignore


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return input.tanh()  # type: ignore[no-any-return]


def sigmoid(input: Tensor) -> Tensor:
    """1/(1 + e⁻ˣ)."""
    return input.sigmoid()  # type: ignore[no-any-return]


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, negative_slope·x below."""
    return activation.leaky_relu.function(input, negative_slope)  # type: ignore[no-any-return]


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, α(eˣ - 1) below."""
    return activation.elu.function(input, alpha)  # type: ignore[no-any-return]


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x·sigmoid(x)."""
    return activation.silu.function(input)  # type: ignore[no-any-return]


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + e^{βx})/β."""
    return activation.softplus.function(input, beta, threshold)  # type: ignore[no-any-return]


def logsigmoid(input: Tensor) -> Tensor:
    """log of sigmoid."""
    return -softplus(-input)  # type: ignore[no-any-return]


def softmax(input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """eˣ/Σeˣ along a dimension."""
    return reduce.softmax.function(input, _chosen(input, dim), dtype)  # type: ignore[no-any-return]


def log_softmax(input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log of softmax."""
    return reduce.log_softmax.function(input, _chosen(input, dim), dtype)  # type: ignore


def _chosen(input: Tensor, dim: int | None) -> int:
    if dim is not None:
        return dim
    import warnings
    warnings.warn("Implicit dimension choice for softmax has been deprecated. Change the call to "
                  "include dim=X as an argument.", UserWarning, stacklevel=3)
    return 0 if input.ndim in (0, 1, 3) else 1


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A vector of zeros with a 1 at each class number."""
    from toytorch.core.dtype import int64
    if not isinstance(tensor, Tensor):
        raise TypeError("one_hot(): argument 'input' (position 1) must be Tensor, not "
                        f"{type(tensor).__name__}")
    if tensor.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if tensor.numel() and int(tensor.min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(tensor.max()) + 1
    elif tensor.numel() and int(tensor.max()) >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    made: Tensor = tensor.new_zeros((*tensor.shape, num_classes))
    return made.scatter_(-1, tensor.unsqueeze(-1), 1)  # type: ignore[no-any-return]


# -- losses ---------------------------------------------------------------------------------------


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """A loss per element, its mean or its sum."""
    if reduction == "mean":
        return loss.mean()  # type: ignore[no-any-return]
    if reduction == "sum":
        return loss.sum()  # type: ignore[no-any-return]
    if reduction == "none":
        return loss
    raise ValueError(f"{reduction} is not a valid value for reduction")


def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
             reduction: str = "mean", weight: Any = None) -> Tensor:
    """(input - target)², its mean or its sum."""
    if tuple(input.shape) != tuple(target.shape):
        import warnings
        warnings.warn(f"Using a target size ({target.shape}) that is different to the input size "
                      f"({input.shape}). This will likely lead to incorrect results due to "
                      "broadcasting. Please ensure they have the same size.", UserWarning,
                      stacklevel=2)
    from toytorch.ops.loss import mse
    return mse.function(input, target, legacy_reduction(reduction, size_average, reduce))  # type: ignore


def legacy_reduction(reduction: str, size_average: Any, reduce: Any) -> str:
    """The reduction that the two older arguments stand for, if they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def nll_loss(input: Tensor, target: Tensor, weight: Any = None, size_average: Any = None,
             ignore_index: int = -100, reduce: Any = None, reduction: str = "mean") -> Tensor:
    """-input[target], weighted by class; from log-probabilities."""
    reduction = legacy_reduction(reduction, size_average, reduce)
    return nll(input, target, weight, ignore_index, reduction)


def cross_entropy(input: Tensor, target: Tensor, weight: Any = None, size_average: Any = None,
                  ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """-Σ p·log softmax(input): from scores and class numbers, or probabilities.

    >>> import toytorch as torch
    >>> cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError("label_smoothing must be between 0.0 and 1.0. Got: "
                           f"{label_smoothing}")
    axis = 0 if input.ndim == 1 else 1
    logs = log_softmax(input, axis)
    if tuple(target.shape) == tuple(input.shape):
        return _soft_targets(logs, target, weight, reduction, label_smoothing, axis)
    loss = nll(logs, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return loss
    classes = input.shape[axis]
    known = target.ne(ignore_index)
    spread = -(logs if weight is None else logs * _along(weight, logs, axis)).sum(axis)
    spread = spread.masked_fill(~known, 0)
    if reduction == "mean":
        total = known.sum() if weight is None else (
            weight[target.clamp(0)] * known).sum()
        spread = spread.sum() / total
    elif reduction == "sum":
        spread = spread.sum()
    return (1 - label_smoothing) * loss + spread * (label_smoothing / classes)  # type: ignore


def _along(weight: Any, like: Tensor, axis: int) -> Any:
    return weight.reshape([-1 if d == axis else 1 for d in range(like.ndim)])


def _soft_targets(logs: Tensor, target: Tensor, weight: Any, reduction: str, smoothing: float,
                  axis: int) -> Tensor:
    if not target.dtype.is_floating_point:
        raise RuntimeError("Expected floating point type for target with class probabilities, got "
                           f"{target.dtype.legacy}")
    if smoothing:
        target = target * (1 - smoothing) + smoothing / logs.shape[axis]
    weighted = logs * target
    if weight is not None:
        weighted = weighted * _along(weight, logs, axis)
    loss = -weighted.sum(axis)
    if reduction == "mean":
        return loss.sum() / max(loss.numel(), 1)  # type: ignore[no-any-return]
    return reduced(loss, reduction)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeros each element with probability p and scales the rest by 1/(1 - p)."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    from toytorch.ops.create import empty_like
    if p == 1.0:
        return input * 0  # type: ignore[no-any-return]
    mask = empty_like(input).bernoulli_(1 - p).div_(1 - p)
    return input.mul_(mask) if inplace else input * mask  # type: ignore

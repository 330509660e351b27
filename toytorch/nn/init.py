"""Starting values of parameters, like `torch.nn.init`."""

from __future__ import annotations

import functools
import math
from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.core.op import registry
from toytorch.core.random import Generator
from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.package import findable
from toytorch.ops.creation.create import empty_like, eye
from toytorch.ops.creation.random import randperm
from toytorch.ops.indexing.by_index import where

GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps variance through a nonlinearity.

    >>> calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in GAINS:
        return GAINS[nonlinearity]
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity in (
        "linear",
        "sigmoid",
        *(f"conv{n}d" for n in (1, 2, 3)),
        *(f"conv_transpose{n}d" for n in (1, 2, 3)),
    ):
        return 1
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _fill(tensor: Tensor, name: str, *args: float, generator: Generator | None = None) -> Tensor:
    with no_grad():
        kwargs = {} if generator is None else {"generator": generator}
        return getattr(tensor, name)(*args, **kwargs)


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform numbers in [a, b)."""
    return _fill(tensor, "uniform_", a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Normal numbers."""
    return _fill(tensor, "normal_", mean, std, generator=generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere."""
    return _fill(tensor, "fill_", val)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return _fill(tensor, "zero_")


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return _fill(tensor, "fill_", 1.0)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def _left_empty(tensor: Tensor) -> Tensor:
    warned.at_call("Initializing zero-element tensors is a no-op")
    return tensor


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform in ±gain·√(3/fan); He et al. 2015."""
    if not tensor.numel():
        return _left_empty(tensor)
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / _calculate_correct_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with deviation gain/√fan; He et al. 2015."""
    if not tensor.numel():
        return _left_empty(tensor)
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform in ±gain·√(6/(fan_in + fan_out)); Glorot and Bengio 2010."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with deviation gain·√(2/(fan_in + fan_out)); Glorot and Bengio 2010."""
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers in [a, b].

    Where more than 0.3 of a normal distribution lies in there, numbers outside are drawn again;
    else uniform numbers are drawn, and kept with a chance in proportion to the density.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warned.at_call(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The "
            "distribution of values may be incorrect."
        )

    def below(x: float) -> float:
        return (1 + math.erf((x - mean) / std / math.sqrt(2))) / 2

    with no_grad():
        if below(b) - below(a) > 0.3:
            low, high = (tensor.new_tensor(limit).item() for limit in (a, b))
            _fill(tensor, "normal_", mean, std, generator=generator)
            while (again := (tensor < low) | (tensor > high)).any():
                other = _fill(empty_like(tensor), "normal_", mean, std, generator=generator)
                tensor.copy_(where.function(again, other, tensor))
            return tensor
        peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
        again = None
        while again is None or again.any():
            drawn = _fill(empty_like(tensor), "uniform_", a, b, generator=generator)
            density = drawn.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
            chance = _fill(empty_like(tensor), "uniform_", 0.0, 1.0, generator=generator)
            refused = chance.log_() > density
            tensor.copy_(drawn if again is None else where.function(again, drawn, tensor))
            again = refused if again is None else again & refused
        return tensor


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix: a linear layer that passes its input on."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.copy_(eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Kernels with a 1 in the middle: a convolution that passes its input channels on."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    each = tensor.shape[0] // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for d in range(min(each, tensor.shape[1])):
                tensor[(group * each + d, d, *middle)] = 1
    return tensor


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """A matrix with orthogonal rows or columns; Saxe et al. 2014.

    The dimensions after the first are taken as one.
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel():
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with no_grad():
        flat = normal_(tensor.new_empty((rows, columns)), generator=generator)
        q, r = registry["linalg_qr"].function(flat.t() if rows < columns else flat)
        q = q * r.diagonal().sign()  # makes every such matrix equally likely
        q = q.t() if rows < columns else q
        return tensor.copy_(q.reshape(tensor.shape)).mul_(gain)


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Normal numbers with a share of zeros in each column; Martens 2010."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        normal_(tensor, 0, std, generator)
        for column in range(columns):
            tensor[randperm(rows)[:zeros], column] = 0
    return tensor


def _deprecated(new: Any) -> Any:
    """The old name of an initialiser, without the underscore."""
    old = new.__name__.rstrip("_")

    @functools.wraps(new)
    def renamed(*args: object, **kwargs: object) -> Any:
        warned.at_call(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{old}_`.", FutureWarning
        )
        return new(*args, **kwargs)

    renamed.__name__ = old
    return renamed


uniform, normal, constant = _deprecated(uniform_), _deprecated(normal_), _deprecated(constant_)
dirac, sparse = _deprecated(dirac_), _deprecated(sparse_)
xavier_uniform, xavier_normal = _deprecated(xavier_uniform_), _deprecated(xavier_normal_)
kaiming_uniform, kaiming_normal = _deprecated(kaiming_uniform_), _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)

findable(globals(), __name__)

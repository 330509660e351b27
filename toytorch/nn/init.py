"""Starting values of parameters, like `torch.nn.init`."""

from __future__ import annotations

import math
from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.core.tensor import Tensor

GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
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
        return math.sqrt(2.0 / (1 + slope ** 2))
    if nonlinearity in ("linear", "sigmoid", *(f"conv{n}d" for n in (1, 2, 3)),
                        *(f"conv_transpose{n}d" for n in (1, 2, 3))):
        return 1.0
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 "
                         "dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _fill(tensor: Tensor, name: str, *args: Any, generator: Any = None) -> Tensor:
    with no_grad():
        kwargs = {} if generator is None else {"generator": generator}
        return getattr(tensor, name)(*args, **kwargs)  # type: ignore[no-any-return]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers in [a, b)."""
    return _fill(tensor, "uniform_", a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
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


def _fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in",
                     nonlinearity: str = "leaky_relu", generator: Any = None) -> Tensor:
    """Uniform in ±gain·√(3/fan); He et al. 2015."""
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / _fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in",
                    nonlinearity: str = "leaky_relu", generator: Any = None) -> Tensor:
    """Normal with deviation gain/√fan; He et al. 2015."""
    std = calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform in ±gain·√(6/(fan_in + fan_out)); Glorot and Bengio 2010."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with deviation gain·√(2/(fan_in + fan_out)); Glorot and Bengio 2010."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)

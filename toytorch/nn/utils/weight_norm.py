"""Weight norm as hooks: the older form of `parametrizations.weight_norm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.size import wrap_dim
from toytorch.nn.parameter import Parameter, is_lazy
from toytorch.nn.utils.recomputed import Recomputed, refuse_second, take_away
from toytorch.ops.define import takes_words

if TYPE_CHECKING:
    from toytorch.nn.modules.module import Module


@takes_words()
def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over all dimensions but one, which is kept; over all where it is -1.

    >>> torch.norm_except_dim(torch.ones(2, 4))
    tensor([[2.],
            [2.]])
    """
    if dim == -1:
        return v.norm(pow)
    wrap_dim(dim, v.ndim)  # refuses one that is not there
    shape = [n if d == dim else 1 for d, n in enumerate(v.shape)]
    if dim == 0:
        return v.contiguous().view(v.shape[0], -1).norm(pow, 1).view(shape)
    if dim == v.ndim - 1:
        return v.contiguous().view(-1, v.shape[-1]).norm(pow, 0).view(shape)
    return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)


def weight_of(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """g·v/‖v‖."""
    return v * (g / norm_except_dim(v, 2, dim))


class WeightNorm(Recomputed):
    """weight = g·v/‖v‖, where g is the length and v the direction; Salimans and Kingma 2016."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        return weight_of(
            getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim
        )


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Any:
    """Replaces a parameter by its length `<name>_g` and its direction `<name>_v`."""
    warned.at_call(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    refuse_second(module, WeightNorm, name, "weight_norm")
    hook, weight = WeightNorm(name, dim), getattr(module, name)
    if is_lazy(weight):
        raise ValueError(
            "The module passed to `WeightNorm` can't have uninitialized parameters. "
            "Make sure to run the dummy forward before applying weight normalization"
        )
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, 2, hook.dim).data))
    module.register_parameter(name + "_v", Parameter(weight.data))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Any:
    """Makes the parameter one tensor again."""
    hook = take_away(module, WeightNorm, name, "weight_norm")
    weight = hook.compute_weight(module)
    delattr(module, name)
    del module._parameters[name + "_g"], module._parameters[name + "_v"]
    setattr(module, name, Parameter(weight.data))
    return module

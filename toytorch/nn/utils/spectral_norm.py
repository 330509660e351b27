"""Spectral norm as hooks: the older form of `parametrizations.spectral_norm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toytorch.autograd.modes import no_grad
from toytorch.core.tensor import Tensor
from toytorch.nn.functional import normalize
from toytorch.nn.modules.conv import _ConvTransposeNd
from toytorch.nn.parameter import Parameter, is_lazy
from toytorch.nn.utils.recomputed import Recomputed, refuse_second, take_away

if TYPE_CHECKING:
    from toytorch.nn.modules.module import Module


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as a matrix whose rows are dimension `dim`."""
    if dim:
        weight = weight.permute(dim, *(d for d in range(weight.ndim) if d != dim))
    return weight.reshape(weight.shape[0], -1)


def dim_of_outputs(module: Module, dim: int | None) -> int:
    """The dimension of outputs in a module's weight."""
    if dim is not None:
        return dim
    return 1 if isinstance(module, _ConvTransposeNd) else 0


class SpectralNorm(Recomputed):
    """weight = original/σ, where σ, its largest singular value, is u·W·v; Miyato et al. 2018.

    Each call in training brings u and v nearer to the singular vectors: v ← Wᵀu, u ← Wv.
    """

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def compute_weight(self, module: Any, do_power_iteration: bool | None = None) -> Any:
        weight, u, v = (getattr(module, self.name + s) for s in ("_orig", "_u", "_v"))
        matrix = as_matrix(weight, self.dim)
        if module.training if do_power_iteration is None else do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(normalize(matrix.mv(v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()  # the next call writes into them
        return weight / u.dot(matrix.mv(v))

    def note_version(self, module: Module, state: Any, prefix: str, about: dict[str, Any]) -> None:
        """Writes beside a module's state that it has u and v, and no computed weight."""
        versions, key = about.setdefault("spectral_norm", {}), self.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = 1

    def from_older_state(
        self,
        state: dict[str, Any],
        prefix: str,
        about: dict[str, Any],
        strict: bool,
        missing: list[str],
        *rest: Any,
    ) -> None:
        """Solves for v, which files of PyTorch 0.4 lack: W·v = u·σ, where σ is original/weight."""
        version = about.get("spectral_norm", {}).get(self.name + ".version")
        key = prefix + self.name
        if version is not None and version >= 1:
            return
        newest = all(key + s in state for s in ("_orig", "_u", "_v")) and key not in state
        if version is None and newest:  # made by hand
            return
        absent = [key + s for s in ("_orig", "", "_u") if key + s not in state]
        missing += absent * strict
        if absent:
            return
        with no_grad():
            original, u = state[key + "_orig"], state[key + "_u"]
            sigma = (original / state.pop(key)).mean()
            matrix = as_matrix(original, self.dim)
            v = (matrix.t().mm(matrix).pinverse() @ matrix.t() @ u.unsqueeze(1)).squeeze(1)
            state[key + "_v"] = v.mul_(sigma / u.dot(matrix.mv(v)))


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divides a parameter by its largest singular value in every call."""
    refuse_second(module, SpectralNorm, name, "spectral_norm")
    hook = SpectralNorm(name, n_power_iterations, dim_of_outputs(module, dim), eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    if is_lazy(weight):
        raise ValueError(
            "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to "
            "run the dummy forward before applying spectral normalization"
        )
    with no_grad():
        rows, columns = as_matrix(weight, hook.dim).shape
        u, v = (
            normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in (rows, columns)
        )
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)  # until the first call
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(hook.note_version)
    module._register_load_state_dict_pre_hook(hook.from_older_state)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Any:
    """Makes the parameter what it was in the last call."""
    hook = take_away(module, SpectralNorm, name, "spectral_norm")
    with no_grad():
        weight = hook.compute_weight(module, False)
    for suffix in ("", "_u", "_v", "_orig"):
        delattr(module, name + suffix)
    module.register_parameter(name, Parameter(weight.detach()))
    hooks = module._state_dict_hooks  # the hook for loading stays, as in PyTorch
    for number in [k for k, (h, _) in hooks.items() if getattr(h, "__self__", None) is hook]:
        del hooks[number]
    return module

"""Parametrizations that are often wanted: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import finfo
from toytorch.nn.functional import normalize
from toytorch.nn.modules.module import Module
from toytorch.nn.utils.parametrize import register_parametrization
from toytorch.nn.utils.spectral_norm import as_matrix, dim_of_outputs
from toytorch.nn.utils.weight_norm import norm_except_dim, weight_of
from toytorch.ops.creation.create import eye


class _WeightNorm(Module):
    """g, v ↦ g·v/‖v‖."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_of(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The length and the direction of a weight."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Any:
    """Learns the length of a weight apart from its direction; Salimans and Kingma 2016.

    They are parametrizations.<name>.original0 and original1; a state with the older names
    <name>_g and <name>_v is taken too.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state: Any, prefix: str, *rest: Any) -> None:
        keys = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(k in state for k in keys):
            for i, key in enumerate(keys):
                state[f"{prefix}parametrizations.{name}.original{i}"] = state.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """W ↦ W/σ, where σ = u·W·v for singular vectors found by the power method."""

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        n = weight.ndim
        if not -n <= dim < n:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{n}, {n - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim % n, eps
        if n > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            for name, size in zip(("_u", "_v"), matrix.shape):
                self.register_buffer(
                    name, normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps).detach()
                )
            self._power_method(matrix, 15)

    def _power_method(self, matrix: Tensor, count: int) -> None:
        with no_grad():
            for _ in range(count):
                self._u.copy_(normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(normalize(matrix.conj().t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # the next call writes into them
        return weight / u.vdot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The weight itself: what is assigned is taken as unnormalised."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divides a weight by its largest singular value; Miyato et al. 2018."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    norm = _SpectralNorm(weight, n_power_iterations, dim_of_outputs(module, dim), eps)
    return register_parametrization(module, name, norm)


# -- orthogonal matrices --------------------------------------------------------------------------


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    one = eye(k, dtype=q.dtype, device=q.device)
    gap = (q.mH @ q - one).abs().max()
    return bool(gap <= 10.0 * n * finfo(q.dtype).eps)


def _made_orthogonal(a: Tensor) -> Tensor:
    """The Q of a QR decomposition whose R has a positive diagonal."""
    q, r = registry["linalg_qr"].function(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Any matrix to one with orthonormal columns (or rows, where it is wide).

    "matrix_exp": exp(A) and "cayley": (1 - A/2)⁻¹(1 + A/2), for A = X - Xᵀ; "householder": a
    product of reflections. With `base`, that is the starting point, and X = -1 means no turn.
    """

    def __init__(
        self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.shape[-2] < x.shape[-1]
        x = x.mT if wide else x
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            a = x.tril(-1)
            tau = 2.0 / (1.0 + (a * a).sum(-2))
            q = registry["linalg_householder_product"].function(a, tau)
            q = q * x.diagonal(dim1=-2, dim2=-1).trunc().unsqueeze(-2)
        else:
            x = x.tril()
            if n != k:
                fill = x.new_zeros((*x.shape[:-2], n, n - k))
                x = registry["cat"].function([x, fill], -1)
            q = self._turn(x - x.mH)[..., :k]
        if "base" in self._buffers:
            q = self.base @ q
        return q.mT if wide else q

    def _turn(self, a: Tensor) -> Tensor:
        if self.orthogonal_map == "matrix_exp":
            return registry["linalg_matrix_exp"].function(a)
        one = eye(a.shape[-1], dtype=a.dtype, device=a.device)
        return registry["linalg_solve_ex"].function(one - a * 0.5, one + a * 0.5)[0]

    def right_inverse(self, q: Tensor) -> Tensor:
        """What gives an orthogonal matrix, by way of the base."""
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a "
                f"tensor of shape {q.shape}."
            )
        with no_grad():
            start, wide = q, q.shape[-2] < q.shape[-1]
            q = q.mT if wide else q
            n, k = q.shape[-2:]
            if "base" not in self._buffers:
                return self._reflections(q, wide)
            if n != k:
                more = q.new_empty((*q.shape[:-2], n, n - k)).normal_(0, 1)
                q = _made_orthogonal(registry["cat"].function([q, more], -1))
            else:
                q = q.clone() if _is_orthogonal(q) else _made_orthogonal(q)
            self.base = q
            one = eye(*start.shape[-2:], dtype=start.dtype, device=start.device)
            return one.neg().expand(start.shape).clone()

    def _reflections(self, q: Tensor, wide: bool) -> Tensor:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or "
                "the Cayley parametrizations when use_trivialization=False."
            )
        a, tau = registry["geqrf"].function(q)
        diagonal = a.diagonal(dim1=-2, dim2=-1)
        diagonal.sign_()
        diagonal[tau == 0.0] *= -1
        return a.mT if wide else a


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Makes a weight an orthogonal matrix; Lezcano-Casado 2019.

    orthogonal_map: "matrix_exp", "cayley" or "householder".
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)

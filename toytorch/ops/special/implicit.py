"""How numbers of the gamma and beta distributions move with a parameter of theirs.

A number x with P(x; a) = u kept moves by dx/da = -∂P/∂a / p(x; a) (Figurnov, Mohamed and Mnih
2018). Both are integrals of one form: with t = x·e⁻ᵘ below x, or its mirror above,

    ∂P/∂a / p = ∫ exp(log p(t)t - log p(x)x) (∂/∂a log p(t; a)) du,

over the tail that is the shorter one, where the integrand only falls.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toytorch.facts import dtype as types
from toytorch.facts.hints import Array, ArrayModule
from toytorch.ops.define import pointwise
from toytorch.ops.special.error_gamma import digamma_array

STEP, FIRST, LAST = 1 / 6, -3.2, 3.7  # of the rule below: 42 places, for eight digits


@functools.cache
def half_line() -> tuple[list[float], list[float]]:
    """Places and weights for integrals from 0 to ∞ (Takahasi and Mori 1974): u = exp(τ - e⁻ᵗ)."""
    places, weights = [], []
    for k in range(round(FIRST / STEP), round(LAST / STEP) + 1):
        t = k * STEP
        u = math.exp(t - math.exp(-t))
        places.append(u)
        weights.append(STEP * u * (1 + math.exp(-t)))
    return places, weights


def _wide(*arrays: Array) -> list[Array]:
    return [a.astype(np.float64) for a in arrays]


def gamma_moves(xp: ArrayModule, shape: Array, x: Array) -> Any:
    """dx/da of a number x of Γ(a, 1)."""
    a, v = _wide(*xp.broadcast_arrays(shape, x))
    below = v < a
    log_x, mean = xp.log(v), digamma_array(a)
    # The fall is a·u - x(1 - e⁻ᵘ) below x and x(eᵘ - 1) - a·u above: of order u or, near a, of u².
    root = xp.sqrt(a)
    scale = 1 / (xp.abs(a - v) + xp.where(below, xp.minimum(a, root), xp.maximum(root, 1.0)))
    total = xp.zeros_like(a)
    for place, weight in zip(*half_line()):
        u = place * scale
        toward = xp.where(below, -u, u)
        power = a * toward - v * xp.expm1(xp.minimum(toward, 700.0))
        total += weight * xp.exp(power) * (log_x + toward - mean)
    return (v * scale * xp.where(below, -total, total)).astype(x.dtype)


def beta_moves(xp: ArrayModule, x: Array, shape: Array, total: Array) -> Any:
    """dx/da of a number x of the beta distribution with a and total - a, over 1 - x."""
    v, a, whole = _wide(*xp.broadcast_arrays(x, shape, total))
    b = whole - a
    below = v * whole < a
    mean = digamma_array(a) - digamma_array(whole)
    # One side of x is the other's mirror: 1 - x is a number of the distribution with b and a.
    near, far, p, q = (xp.where(below, *pair) for pair in ((v, 1 - v), (1 - v, v), (a, b), (b, a)))
    scale = 1 / (xp.abs(p - near * whole) / far + xp.minimum(p, xp.sqrt(p)))
    summed = xp.zeros_like(a)
    for place, weight in zip(*half_line()):
        u = place * scale
        rest = far - near * xp.expm1(-u)  # 1 - near·e⁻ᵘ
        power = -p * u + (q - 1) * (xp.log(rest) - xp.log(far))
        score = xp.where(below, xp.log(near) - u, xp.log(rest)) - mean
        summed += weight * xp.exp(power) * score
    moved = xp.where(below, -1.0, 1.0) * summed * scale * near
    return (moved / (1 - v)).astype(x.dtype)


def _only_wide(name: str, *arrays: Array) -> None:
    for a in arrays:
        if a.dtype.kind != "f" or a.dtype.itemsize < 4:
            legacy = types.from_numpy_dtype(a.dtype).legacy
            raise NotImplementedError(f"\"{name}\" not implemented for '{legacy}'")


def _gamma_grad(xp: ArrayModule, a: Array, output: Array) -> Any:
    _only_wide("_standard_gamma_grad_cpu", a, output)
    return gamma_moves(xp, a, output)


def _dirichlet_grad(xp: ArrayModule, x: Array, alpha: Array, total: Array) -> Any:
    _only_wide("_dirichlet_grad_cpu", x, alpha, total)
    return beta_moves(xp, x, alpha, total)


def _no_second(g: Any) -> Any:
    raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented.")


standard_gamma_grad = pointwise(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    _gamma_grad,
    forms="function out",
    memory="rows",
    d_self=_no_second,
    d_output=_no_second,
    doc="How numbers of the gamma distribution move with their shapes.",
)

dirichlet_grad = pointwise(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    _dirichlet_grad,
    forms="function out",
    memory="rows",
    doc="How numbers of Dirichlet's distribution move with their concentrations, over 1 - x.",
)

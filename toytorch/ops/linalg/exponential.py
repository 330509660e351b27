"""The exponential of a matrix, e^A = Σ Aᵏ/k!."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.backends import generic
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule
from toytorch.ops.define import general, public
from toytorch.ops.linalg.checks import need_square
from toytorch.ops.shaping.view import steps_of_view

# The [m/m] Padé approximants of eˣ that Higham (SIAM J. Matrix Anal. Appl. 26, 2005) recommends: the
# numerator is Σ xʲ·(2m - j)!/(j!(m - j)!), the denominator the same of -x.
PADE = {
    m: [math.comb(m, j) * math.factorial(2 * m - j) // math.factorial(m) for j in range(m + 1)]
    for m in (3, 5, 7, 13)
}
# The norm up to which the last is exact to rounding: of order 13 in double, of 7 in single precision.
BOUND = {"d": 5.371920351148152, "f": 3.925724783138660}  # for orders 13 and 7


def _pade(xp: ArrayModule, a: Array, order: int) -> Any:
    """(V - U)⁻¹(V + U), with the odd and even terms of the numerator."""
    b = [a.real.dtype.type(c / PADE[order][0]) for c in PADE[order]]
    eye = xp.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    if order == 13:
        a4 = a2 @ a2
        a6 = a2 @ a4
        u = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2
        v = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2
    else:
        power, u, v = a2, b[3] * a2, b[2] * a2
        for k in range(4, order, 2):
            power = power @ a2
            u, v = u + b[k + 1] * power, v + b[k] * power
    u, v = a @ (u + b[1] * eye), v + b[0] * eye
    return generic.solve(xp, v - u, v + u)


def _matrix_exp(xp: ArrayModule, a: Array) -> Any:
    if a.dtype.kind not in "fc":
        raise RuntimeError(
            "linalg.matrix_exp: Expected a floating point or complex tensor as "
            f"input. Got {from_numpy_dtype(a.dtype).legacy}"
        )
    need_square("linalg.matrix_exp", a)
    if not a.size:
        return a.copy()
    if a.shape[-1] == 1:
        return xp.exp(a)
    if a.ndim > 3:
        steps_of_view(a, (math.prod(a.shape[:-2]), *a.shape[-2:]))  # as one stack
    single = a.real.dtype == np.float32
    size = abs(a).sum(-2).max(-1)
    finite = xp.isfinite(size)
    with np.errstate(divide="ignore"):
        halvings = xp.ceil(xp.log2(xp.where(finite, size, 1) / BOUND["f" if single else "d"]))
    halvings = xp.maximum(halvings, 0).astype(int)
    scale = (0.5**halvings).astype(a.real.dtype)
    made = _pade(
        xp, xp.where(finite[..., None, None], a, 0) * scale[..., None, None], 7 if single else 13
    )
    for i in range(int(halvings.max())):  # e^A = (e^{A/2})²
        again = (halvings > i)[..., None, None]
        made = xp.where(again, made @ made, made)
    return xp.where(finite[..., None, None], made, xp.nan)


def _gradient(g: Tensor, self: Tensor) -> Any:
    # The derivative of e^A along G is the upper right block of exp [[A, G], [0, A]].
    from toytorch.ops.shaping.rearrange import cat

    n, h = self.shape[-1], self.mH
    top = cat.function([h, g], -1)
    bottom = cat.function([h * 0, h], -1)
    return matrix_exp_op.function(cat.function([top, bottom], -2))[..., :n, n:]


matrix_exp_op: Op = general(
    "linalg_matrix_exp(Tensor self) -> Tensor",
    _matrix_exp,
    forms="function",
    holomorphic=False,
    d_self=_gradient,
    batch="leading",
    doc="e^A for square matrices.",
)


@public("matrix_exp", "linalg.matrix_exp", method=True)
def matrix_exp(input: Tensor) -> Tensor:
    """e^A for square matrices, by scaling and squaring.

    >>> torch.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return matrix_exp_op.function(input)

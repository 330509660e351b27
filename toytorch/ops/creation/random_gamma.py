"""Numbers of the gamma distribution and of Dirichlet's, which move with their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.core.random import Generator, generator_of
from toytorch.facts.hints import Array, ArrayModule
from toytorch.ops.creation.draw_refusals import refuse
from toytorch.ops.define import in_own_type, underived
from toytorch.ops.special.implicit import standard_gamma_grad


def _drawn(name: str, xp: ArrayModule, shapes: Array, kind: Any, generator: Any) -> Any:
    """Numbers (float64) with the shapes given, as many digits drawn as `kind` has; least above 0."""
    refuse(name, shapes.dtype)
    rng = generator_of(base.of_array(shapes).device(shapes), generator)
    made = rng.gamma(xp.where(shapes > 0, shapes, 0).astype(kind))  # no draw where there is none
    return xp.maximum(made.astype(kind), np.finfo(kind).tiny)


def _standard_gamma(xp: ArrayModule, a: Array, generator: Generator | None) -> Any:
    return _drawn("gamma_cpu", xp, a, a.dtype, generator)


def _sample_dirichlet(xp: ArrayModule, a: Array, generator: Generator | None) -> Any:
    made = _drawn("dirichlet", xp, a, np.float64, generator)
    made = (made / made.sum(-1, keepdims=True)).astype(a.dtype)
    below_one = np.nextafter(a.dtype.type(1), a.dtype.type(0))
    return xp.clip(made, np.finfo(a.dtype).tiny, below_one)


standard_gamma = in_own_type(
    "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
    _standard_gamma,
    forms="function",
    d_self=lambda g, self, result: g * standard_gamma_grad.function(self, result),
    memory="rows",
    doc="Numbers of the gamma distribution with the shapes given (Marsaglia and Tsang 2000).",
)

sample_dirichlet = in_own_type(
    "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
    _sample_dirichlet,
    forms="function",
    d_self=underived("aten::_sample_dirichlet"),
    memory="rows",
    doc="Rows of positive numbers that add up to 1, of Dirichlet's distribution.",
)

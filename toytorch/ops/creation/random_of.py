"""Random numbers whose distribution a tensor gives: means, weights, rates, probabilities."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from toytorch.backends.base import RandomSource
from toytorch.backends.generic import attempt
from toytorch.core.random import Generator, generator_of
from toytorch.core.record import underive
from toytorch.core.tensor import Tensor, wrap
from toytorch.core.write import warn_of_size
from toytorch.facts import dtype as types
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule, Device, DType, Layout, Shape
from toytorch.facts.size import broadcast_pair
from toytorch.ops.creation import create
from toytorch.ops.creation.draw_refusals import REAL, refuse
from toytorch.ops.creation.random import draw_array, drawn, drawn_by, need_float
from toytorch.ops.creation.random_fill import probabilities
from toytorch.ops.creation.random_numbers import narrowed, normal_numbers, source_of
from toytorch.ops.define import general, in_own_type, public, underived, watched
from toytorch.ops.special.implicit import standard_gamma_grad


def _normal_of(
    xp: ArrayModule, mean: Array | float, std: Array | float, generator: Generator | None
) -> Any:
    deviations = xp.asarray(std)
    if deviations.dtype.kind == "c":
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if deviations.size and float(deviations.min()) < 0:
        raise RuntimeError("normal expects all elements of std >= 0.0")
    like: Any = mean if hasattr(mean, "dtype") else std
    scale = 1.0 if hasattr(std, "dtype") else float(std)
    shape = broadcast_pair(getattr(mean, "shape", ()), getattr(std, "shape", ()))
    count = math.prod(shape)
    if not count:
        return xp.zeros(shape, like.dtype)  # nothing is refused where nothing is drawn
    refuse("normal_kernel_cpu", like.dtype)
    values = normal_numbers(source_of(like, generator), count, like.dtype, 0.0, scale).reshape(
        shape
    )
    values = narrowed(values * std, like.dtype) if hasattr(std, "dtype") else values
    return (values + mean).astype(like.dtype)


def _zero(g: Tensor) -> Any:
    return g * 0


normal_of = in_own_type(
    "normal.tensors(Operand mean, Operand std, *, Generator? generator=None) -> Tensor",
    _normal_of,
    forms="",
    variant=lambda mean, std, generator: (
        1 + 2 * hasattr(std, "dtype") - (not hasattr(mean, "dtype"))
    ),
    of_reals="normal",
    d_mean=_zero,
    d_std=_zero,
    doc="Normal numbers around means.",
)


@public("normal", tensor_first=False)
def normal(
    mean: Tensor | float = 0.0,
    std: Tensor | float = 1.0,
    size: Shape | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    layout: Layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Normal numbers with given means and standard deviations (numbers or tensors).

    >>> normal(2.0, 0.0, (2,))
    tensor([2., 2.])
    """
    if size is None:
        if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
            raise TypeError(
                "normal() received an invalid combination of arguments - got "
                f"({type(mean).__name__}, {type(std).__name__})"
            )
        if not isinstance(std, Tensor) and std < 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
        if out is None:
            return normal_of.function(mean, std, generator=generator)
        shapes = [v.shape for v in (mean, std) if isinstance(v, Tensor)]
        if not isinstance(std, Tensor):  # the means are added to what fills all of `out`
            shapes.append(out.shape)
        shape = broadcast_pair(*shapes) if len(shapes) == 2 else shapes[0]
        warn_of_size(out, shape)
        if isinstance(mean, Tensor) and not isinstance(std, Tensor):
            mean = mean.expand(shape)
        return create.put_out(normal_of.function(mean, std, generator=generator), out)
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    need_float("normal_kernel_cpu", dtype, size)

    def draw(lead: Any) -> Tensor:
        def numbers(rng: RandomSource, count: int, type: np.dtype[Any], rows: builtins.bool) -> Any:
            return normal_numbers(rng, count, type, float(mean), float(std))

        return wrap(draw_array(numbers, (*lead, *size), dtype, device, generator), dtype)

    made = drawn(draw, "normal")
    return create.put_out(made.requires_grad_() if requires_grad else made, out, aten="normal")


@public("multinomial", method=True)
@watched
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: builtins.bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Indices drawn with probabilities in proportion to weights."""
    if out is not None and out.dtype is not types.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.legacy}")
    if not input.dtype.is_floating_point:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {input.dtype.legacy}"
        )
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    made = drawn_by(lambda rows: _picked(rows, num_samples, replacement, generator), input)
    return create.put_out(made, out)


def _picked(
    input: Tensor, num_samples: int, replacement: builtins.bool, generator: Generator | None
) -> Tensor:
    """Indices of the last dimension."""
    weights = input._array
    if weights.dtype.char not in "fd":
        weights = weights.astype(np.float32)
    rows = weights.reshape(-1, weights.shape[-1])
    largest = rows.max(-1) if rows.size else rows.sum(-1)
    if weights.size and not (weights.min() >= 0 and largest.max() < np.inf):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not largest.all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if not len(rows):
        return input.new_empty((*weights.shape[:-1], num_samples), dtype=types.int64)
    rng = generator_of(input.device, generator)
    if replacement and num_samples > 1:
        picks = rng.uniform(len(rows) * num_samples, np.float64).reshape(len(rows), num_samples)
        sums = attempt(np, "running_sum_rounded", rows, 1)
        if sums is None:
            sums = np.add.accumulate(rows, axis=-1, dtype=rows.dtype)
        sums /= sums[:, -1:].copy()
        sums[:, -1] = 1
        near = picks.astype(sums.dtype)  # the least number of this type that is not below the pick
        picks = np.where(near < picks, np.nextafter(near, sums.dtype.type(2)), near)
        found = attempt(np, "row_places", sums, picks, False)
        if found is None:
            found = np.stack([np.searchsorted(s, p) for s, p in zip(sums, picks)])
    else:  # the largest of p/q, q exponential: the order of a race whose rates are the weights
        waits = narrowed(rng.exponential(rows.size), input._array.dtype).reshape(rows.shape)
        keys = rows.astype(waits.dtype) / waits
        if num_samples == 1:
            found = keys.argmax(-1)
        else:
            found = np.argsort(-keys, axis=-1, kind="stable")[:, :num_samples]
    return wrap(found.astype(np.int64, copy=False).reshape(*weights.shape[:-1], num_samples))


def _bernoulli_of(xp: ArrayModule, a: Array, generator: Generator | None) -> Any:
    if not a.size:
        return a.copy()
    refuse("bernoulli_tensor_cpu_self_", a.dtype)
    refuse("bernoulli_tensor_cpu_p_", a.dtype)
    flat = probabilities(xp, a, a.shape).reshape(-1)
    return narrowed(source_of(a, generator).below(flat.size, flat), a.dtype).reshape(a.shape)


bernoulli_of = general(
    "bernoulli.chances(Tensor self, *, Generator? generator=None) -> Tensor",
    _bernoulli_of,
    forms="out",
    d_self=_zero,
    of_reals="bernoulli",
    memory="rows",
    names="same",
    doc="Ones with the probabilities given, and zeros elsewhere.",
)


@public("bernoulli", method=True)
def bernoulli(
    input: Tensor,
    p: float | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Ones with the probabilities given, and zeros elsewhere.

    >>> bernoulli(Tensor([0., 1.]))
    tensor([0., 1.])
    """
    if p is not None:
        if out is not None:
            raise TypeError(
                "bernoulli() received an invalid combination of arguments - got (Tensor, float, "
                "out=Tensor)"
            )
        made = drawn_by(
            lambda like: create.empty_like(like.contiguous()).bernoulli_(p, generator=generator),
            input,
        )
        underive("aten::bernoulli", [input], made)
        return made
    if out is not None and out.dtype is not input.dtype:
        return create.put_out(bernoulli_of.function(input, generator=generator).to(out.dtype), out)
    return bernoulli_of.function(input, generator=generator, out=out)


def _poisson(xp: ArrayModule, a: Array, generator: Generator | None) -> Any:
    refuse("poisson_cpu", a.dtype)
    if a.size and float(a.min()) < 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return narrowed(source_of(a, generator).poisson(a), a.dtype)


poisson = general(
    "poisson(Tensor self, Generator? generator=None) -> Tensor",
    _poisson,
    forms="function",
    d_self=_zero,
    doc="Numbers of Poisson's distribution with the rates given.",
)


def _binomial(xp: ArrayModule, count: Array, prob: Array, generator: Generator | None) -> Any:
    for name, a in (("count", count), ("prob", prob)):
        if a.dtype.name not in REAL:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: "
                f"{from_numpy_dtype(a.dtype).legacy}"
            )
    refuse("binomial_cpu", count.dtype)
    shape = broadcast_pair(count.shape, prob.shape)
    counts, chances = (xp.broadcast_to(v, shape) for v in (count, prob))
    return narrowed(source_of(count, generator).binomial(counts, chances), count.dtype)


binomial = in_own_type(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    _binomial,
    forms="function",
    node="NotImplemented",
    d_count=underived("aten::binomial"),
    d_prob=underived("aten::binomial"),
    doc="How many of `count` trials succeed, each with probability prob.",
)


# -- gamma, and Dirichlet, which move with their parameters ---------------------------------------


def _drawn(name: str, xp: ArrayModule, shapes: Array, kind: Any, generator: Any) -> Any:
    """Numbers (float64) with the shapes given, as many digits drawn as `kind` has; least above 0."""
    refuse(name, shapes.dtype)
    rng = source_of(shapes, generator)
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

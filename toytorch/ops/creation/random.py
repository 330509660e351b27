"""Random tensors."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from toytorch.backends import base
from toytorch.core.random import generator_of
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Array, ArrayModule, Device, DType, Layout, MemoryFormat
from toytorch.facts.size import broadcast_pair
from toytorch.ops.creation import create
from toytorch.ops.define import define, public, watched

if TYPE_CHECKING:
    from toytorch.core.random import Generator


FLOATS = {"float32": np.float32, "float64": np.float64}


def _draw(
    how: Callable[..., Any],
    shape: Sequence[int],
    dtype: DType | None,
    device: Device,
    generator: Generator | None,
) -> Any:
    """An array from how(generator, shape, dtype) on a device."""
    where = device_class(device or create.get_default_device())
    kind = dtype or types.get_default_dtype()
    rng = generator_of(where, generator)
    real = kind.to_real()
    work = FLOATS.get(real.name, np.float32)
    with base.of_device(where).on(where):
        array = how(rng, shape, work)
        if kind.is_complex:
            array = (array + 1j * how(rng, shape, work)) * (0.5**0.5 if how is _normal else 1)
            array = np.asarray(array) if isinstance(array, np.generic) else array
        return array.astype(kind.numpy) if array.dtype != kind.numpy else array


def _uniform(rng: Any, shape: Sequence[int], work: npt.DTypeLike) -> Any:
    return rng.random(shape, work)


def _normal(rng: Any, shape: Sequence[int], work: npt.DTypeLike) -> Any:
    return rng.standard_normal(shape, work)


def _need_float(name: str, dtype: DType | None) -> None:
    if dtype is not None and dtype.rank < 2:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.legacy}'")


def drawn(make: Callable[..., Any], name: str) -> Tensor:
    """A tensor of random numbers; inside vmap the mode says how many, one for all or for each.

    `make(lead)` makes it, with more dimensions in front; a profiler shows it under `name`.
    """
    if state.profiler is not None:
        return state.profiler.around(  # it returns what we do
            f"aten::{name}", (), drawn_here, make
        )
    return drawn_here(make)


def drawn_here(make: Callable[..., Any]) -> Tensor:
    """`drawn` itself."""
    for mode in reversed(state.local.modes):
        ask = getattr(mode, "on_random", None)
        if ask is not None:
            with state.below(mode):
                return ask(make)
    made: Tensor = make(())
    return made


def _factory(name: str, how: Callable[..., Any], kernel_name: str, doc: str) -> Any:
    def function(
        *size: int | Sequence[int],
        generator: Generator | None = None,
        out: Tensor | None = None,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Device = None,
        requires_grad: builtins.bool = False,
        pin_memory: bool = False,
        names: Sequence[str | None] | None = None,
        **more: int | Sequence[int],
    ) -> Tensor:
        if not size and "size" not in more:
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got (), but "
                "expected sizes"
            )
        shape = create._size(size, more.pop("size", None))
        if more:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(more))}'")
        _need_float(kernel_name, dtype)
        made = drawn(lambda lead: wrap(_draw(how, (*lead, *shape), dtype, device, generator)), name)
        return create.put_out(made.requires_grad_() if requires_grad else made, out, names)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return watched(function)


rand = _factory("rand", _uniform, "check_uniform_bounds", "Uniform numbers in [0, 1).")
randn = _factory("randn", _normal, "normal_kernel_cpu", "Normal numbers, mean 0, variance 1.")


def _like(name: str, factory: Any) -> Any:
    def function(
        input: Tensor,
        *,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Device = None,
        requires_grad: builtins.bool = False,
        memory_format: MemoryFormat | None = None,
        generator: Generator | None = None,
        pin_memory: bool = False,
    ) -> Tensor:
        made = factory(
            tuple(input.shape),
            dtype=dtype or input.dtype,
            device=device or input.device,
            generator=generator,
        )
        return create.lying_as(made, input, memory_format, requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name[:-5]}` in the shape, type and place of another tensor."
    return public(name)(watched(function))


rand_like, randn_like = _like("rand_like", rand), _like("randn_like", randn)


@watched
def randint(
    low: Any,
    high: Any = None,
    size: Any = None,
    *,
    generator: Any = None,
    out: Tensor | Sequence[Tensor] | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    pin_memory: Any = False,
) -> Tensor:
    """Integers from low up to, but not with, high.

    >>> bool((randint(3, 5, (100,)) >= 3).all())
    True
    """
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    where = device_class(device or create.get_default_device())
    kind = dtype or types.int64

    def draw(lead: Any) -> Tensor:
        array = generator_of(where, generator).integers(int(low), int(high), (*lead, *size))
        return wrap(array.astype(kind.numpy))

    with base.of_device(where).on(where):
        made = drawn(draw, "randint")
    return create.put_out(made.requires_grad_() if requires_grad else made, out)


@public("randint_like")
@watched
def randint_like(
    input: Tensor,
    low: int = 0,
    high: int | None = None,
    *,
    dtype: DType | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    layout: Layout | None = None,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """`randint` in the shape, type and place of another tensor."""
    low, high = (0, low) if high is None else (low, high)
    made = randint(
        low, high, tuple(input.shape), dtype=dtype or input.dtype, device=device or input.device
    )
    return create.lying_as(made, input, memory_format, requires_grad)


@watched
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType = types.int64,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The numbers 0 … n-1 in random order."""
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got {n}")
    where = device_class(device or create.get_default_device())
    with base.of_device(where).on(where):
        made = wrap(generator_of(where, generator).permutation(n).astype(dtype.numpy))
    return create.put_out(made.requires_grad_() if requires_grad else made, out)


def _normal_of(
    xp: ArrayModule, mean: Array | float, std: Array | float, generator: Generator | None
) -> Any:
    deviations = xp.asarray(std)
    if deviations.dtype.kind == "c":
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if deviations.size and float(deviations.min()) < 0:
        raise RuntimeError("normal expects all elements of std >= 0.0")
    like = mean if hasattr(mean, "dtype") else std
    shape = broadcast_pair(getattr(mean, "shape", ()), getattr(std, "shape", ()))
    work = like.dtype if like.dtype.kind == "f" else np.dtype(f"f{like.dtype.itemsize // 2}")
    values = _rng(like, generator).standard_normal(shape, work)
    if like.dtype.kind == "c":
        values = (values + 1j * _rng(like, generator).standard_normal(shape, work)) * 0.5**0.5
    return (values * std + mean).astype(like.dtype)


def _zero(g: Tensor) -> Any:
    return g * 0


normal_of = define(
    "normal.tensors(Operand mean, Operand std, *, Generator? generator=None) -> Tensor",
    _normal_of,
    kind="general",
    function=False,
    method=False,
    out=False,
    variant=lambda mean, std, generator: (
        1 + 2 * hasattr(std, "dtype") - (not hasattr(mean, "dtype"))
    ),
    d_mean=_zero,
    d_std=_zero,
    doc="Normal numbers around means.",
)


@public("normal", tensor_first=False)
def normal(
    mean: Tensor | float = 0.0,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
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
        return create.put_out(normal_of.function(mean, std, generator=generator), out)
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    made = randn(tuple(size), generator=generator, dtype=dtype, device=device) * std + mean
    return create.put_out(made.requires_grad_() if requires_grad else made, out)


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
    weights = input._array.astype(np.float64)
    if input.dtype.rank < 2:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {input.dtype.legacy}"
        )
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    rows = weights.reshape(-1, weights.shape[-1])
    if (rows.sum(-1) == 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    rng = generator_of(input.device, generator)
    if replacement:
        sums = rows.cumsum(-1)
        picks = rng.random((len(rows), num_samples)) * sums[:, -1:]
        found = np.stack([np.searchsorted(s, p, "right") for s, p in zip(sums, picks)])
    else:  # the k largest of uⁱ^{1/w}: Efraimidis and Spirakis 2006
        keys = np.log(rng.random(rows.shape)) / np.where(rows > 0, rows, 1e-300)
        found = np.argsort(-keys, axis=-1, kind="stable")[:, :num_samples]
    made = wrap(found.astype(np.int64).reshape(*weights.shape[:-1], num_samples))
    return create.put_out(made, out)


# -- filling in place -----------------------------------------------------------------------------


def _filler(name: str, params: str, draw: Any, doc: str) -> Any:
    return define(
        f"{name}(Tensor self{params}, *, Generator? generator=None) -> Tensor",
        draw,
        kind="general",
        inplace=True,
        function=False,
        method=False,
        out=False,
        upcast=False,
        d_self=lambda g: g * 0,
        names="same",
        doc=doc,
    )


def _in_type(a: Array, values: Array) -> Any:
    return values.astype(a.dtype)


def _only_floats(kernel: str, a: Array, distribution: str = "") -> None:
    """Refuses to fill integers with what is no integer."""
    if a.dtype.kind in "biu":
        name = types.from_numpy_dtype(a.dtype).legacy
        if distribution:
            raise RuntimeError(
                f"{distribution} distribution is a continuous probability "
                "distribution. dtype must be a floating point but you specified "
                f"{name}"
            )
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")


def _rng(a: Array | float, generator: Generator | None) -> Any:
    return generator_of(base.of_array(a).device(a), generator)


def _refuse_bounds(low: float, high: float) -> None:
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}"
        )


def _uniform_fill(
    xp: ArrayModule, a: Array, low: float, high: float, generator: Generator | None
) -> Any:
    _refuse_bounds(low, high)
    _only_floats("check_uniform_bounds", a)
    work = np.float64 if a.dtype == np.float64 else np.float32
    values = _rng(a, generator).random(a.shape, work)
    values *= work(high - low)
    values += work(low)
    return _in_type(a, values)


def _normal_fill(
    xp: ArrayModule, a: Array, mean: float, std: float, generator: Generator | None
) -> Any:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    _only_floats("normal_kernel_cpu", a)
    work = np.float64 if a.dtype == np.float64 else np.float32
    values = _rng(a, generator).standard_normal(a.shape, work)
    values *= work(std)
    values += work(mean)
    return _in_type(a, values)


def _random_fill(
    xp: ArrayModule, a: Array, low: int | None, high: Any, generator: Generator | None
) -> Any:
    if high is None and low is not None:
        low, high = 0, low
    if high is None:
        low = 0
        high = (
            (1 << 24) + 1
            if a.dtype == np.float32
            else (1 << 53) + 1
            if a.dtype.kind == "f"
            else 2
            if a.dtype.kind == "b"
            else int(np.iinfo(a.dtype).max)
        )
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    return _in_type(a, _rng(a, generator).integers(low, high, a.shape))


def _exponential_fill(xp: ArrayModule, a: Array, lambd: float, generator: Generator | None) -> Any:
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    _only_floats("exponential_", a, "Exponential")
    return _in_type(a, _rng(a, generator).standard_exponential(a.shape) / lambd)


def _cauchy_fill(
    xp: ArrayModule, a: Array, median: int, sigma: int, generator: Generator | None
) -> Any:
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    _only_floats("cauchy_", a, "Cauchy")
    return _in_type(a, median + sigma * _rng(a, generator).standard_cauchy(a.shape))


def _log_normal_fill(
    xp: ArrayModule, a: Array, mean: int, std: int, generator: Generator | None
) -> Any:
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    _only_floats("log_normal_cpu", a)
    return _in_type(a, xp.exp(mean + std * _rng(a, generator).standard_normal(a.shape)))


def _geometric_fill(xp: ArrayModule, a: Array, p: float, generator: Generator | None) -> Any:
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    return _in_type(a, _rng(a, generator).geometric(p, a.shape))


def _bernoulli_fill(
    xp: ArrayModule, a: Array, p: Array | float, generator: Generator | None
) -> Any:
    if xp.any(xp.asarray(p) < 0) or xp.any(xp.asarray(p) > 1):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    return _in_type(a, _rng(a, generator).random(a.shape) < p)


uniform = _filler(
    "uniform", ", float from_=0, float to=1", _uniform_fill, "Fills with uniform numbers."
)
normal_fill = _filler(
    "normal", ", float mean=0, float std=1", _normal_fill, "Fills with normal numbers."
)
random_fill = _filler(
    "random", ", int? from_=None, int? to=None", _random_fill, "Fills with integers."
)
exponential = _filler(
    "exponential", ", float lambd=1", _exponential_fill, "Fills with exponential numbers."
)
cauchy = _filler(
    "cauchy",
    ", float median=0, float sigma=1",
    _cauchy_fill,
    "Fills with numbers of Cauchy's distribution.",
)
log_normal = _filler(
    "log_normal",
    ", float mean=1, float std=2",
    _log_normal_fill,
    "Fills with numbers whose logarithms are normal.",
)
geometric = _filler(
    "geometric",
    ", float p",
    _geometric_fill,
    "Fills with the numbers of trials up to the first success.",
)
bernoulli_fill = _filler(
    "bernoulli",
    ", Operand p=0.5",
    _bernoulli_fill,
    "Fills with ones, each with probability p, and zeros.",
)


def _bernoulli_of(xp: ArrayModule, a: Array, generator: Generator | None) -> Any:
    if a.dtype.kind != "f":
        raise NotImplementedError(
            '"bernoulli_tensor_cpu_self_" not implemented for '
            f"'{types.from_numpy_dtype(a.dtype).legacy}'"
        )
    return _bernoulli_fill(xp, a, a, generator)


bernoulli_of = define(
    "bernoulli.chances(Tensor self, *, Generator? generator=None) -> Tensor",
    _bernoulli_of,
    kind="general",
    function=False,
    method=False,
    d_self=_zero,
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
        made = create.empty_like(input.contiguous())
        made.bernoulli_(p, generator=generator)
        return create.put_out(made, out)
    return bernoulli_of.function(input, generator=generator, out=out)


def _poisson(xp: ArrayModule, a: Array, generator: Generator | None) -> Any:
    _only_floats("poisson_cpu", a)
    if a.size and float(a.min()) < 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return _in_type(a, _rng(a, generator).poisson(a))


poisson = define(
    "poisson(Tensor self, Generator? generator=None) -> Tensor",
    _poisson,
    kind="general",
    method=False,
    out=False,
    d_self=_zero,
    doc="Numbers of Poisson's distribution with the rates given.",
)


def _binomial(xp: ArrayModule, count: Array, prob: Array, generator: Generator | None) -> Any:
    _only_floats("binomial_cpu", count)
    broadcast_pair(count.shape, prob.shape)
    return _in_type(count, _rng(count, generator).binomial(count.astype(np.int64), prob))


binomial = define(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    _binomial,
    kind="general",
    method=False,
    out=False,
    d_count=_zero,
    d_prob=_zero,
    doc="How many of `count` trials succeed, each with probability prob.",
)

"""Random tensors."""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.base import RandomSource
from toytorch.backends.sparse import unsupported
from toytorch.core.arguments import spread
from toytorch.core.memory_order import in_memory_order, walk
from toytorch.core.random import generator_of
from toytorch.core.tensor import Tensor, wrap
from toytorch.core.write import c_name, inplace, warn_of_size
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.device import device as device_class
from toytorch.facts.device import strided
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule, Device, DType, Layout, MemoryFormat
from toytorch.facts.size import broadcast_pair
from toytorch.ops.creation import create
from toytorch.ops.creation.draw_refusals import REAL, refuse, refuse_steps
from toytorch.ops.define import define, public, watched

if TYPE_CHECKING:
    from toytorch.core.random import Generator


# -- numbers in the type of an array --------------------------------------------------------------
# Each function takes a source (`base.RandomSource`), how many numbers, and the type of the results.


def narrowed(values: Array, type: np.dtype[Any]) -> Any:
    """Numbers in another type; those of two bytes by way of float32, as PyTorch goes."""
    if type.itemsize == 2 and type.kind not in "iu" and values.dtype != np.float32:
        values = values.astype(np.float32)
    return values if values.dtype == type else values.astype(type)


def paired(values: Array, type: np.dtype[Any]) -> Any:
    """Complex numbers from twice as many real ones, the two parts of each side by side."""
    if values.__class__ is np.ndarray:
        return values.astype(part_of(type), copy=False).view(type)
    both = values.reshape(-1, 2)
    return (both[:, 0] + 1j * both[:, 1]).astype(type)


def part_of(type: np.dtype[Any]) -> Any:
    """The type of the parts of complex numbers."""
    return np.dtype(f"f{type.itemsize // 2}")


def uniform_numbers(
    rng: RandomSource,
    count: int,
    type: np.dtype[Any],
    low: float = 0.0,
    high: float = 1.0,
    rows: builtins.bool = True,
) -> Any:
    """Numbers in [low, high); in types of two bytes, what rounds to `high` becomes `low`."""
    if type.kind == "c":
        return paired(uniform_numbers(rng, 2 * count, part_of(type), low, high), type)
    values = rng.uniform(count, type, low, high)
    if type.itemsize > 2:
        return values
    values = values.astype(type)
    values[values == type.type(high)] = low
    return values


def normal_numbers(
    rng: RandomSource,
    count: int,
    type: np.dtype[Any],
    mean: float = 0.0,
    std: float = 1.0,
    rows: builtins.bool = True,
) -> Any:
    """Normal numbers; half of the variance is each part's where they are complex. They depend on
    whether they fill memory in rows, without gaps."""
    if type.kind == "c":
        half = std / math.sqrt(2)
        return paired(normal_numbers(rng, 2 * count, part_of(type), mean, half, rows), type)
    return narrowed(rng.normal(count, type, mean, std, rows), type)


DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}  # of the mantissa
IN_C = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
}


def integer_numbers(rng: RandomSource, count: int, type: np.dtype[Any], low: int, high: int) -> Any:
    """Integers in [low, high), moved inwards to what the type can hold."""
    if type.kind == "c":
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    refuse("random_from_to", type)
    digits = DIGITS.get(type.name)
    if digits is not None:
        low, high = raised(low, type, digits), lowered(high, type, digits)
        if low >= high:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but "
                f"got from={low} >= to={high}"
            )
    check_bounds(type, digits, low, high - 1)
    made = rng.integers(count, low, high)
    if high - low == 1 << 64:  # PyTorch takes all 64 bits as they are, and adds no `low`
        made = made ^ np.int64(-(1 << 63))
    return narrowed(made, type)


def raised(low: int, type: np.dtype[Any], digits: int) -> int:
    """The lowest number from `low` on that rounding to the type does not bring below it."""
    held = cast_to(low + 1, type)
    if held is None or held >= low:
        return low
    return held + (1 << abs(low + 1).bit_length() - digits)


def lowered(high: int, type: np.dtype[Any], digits: int) -> int:
    """The highest limit up to `high` whose numbers rounding to the type does not bring up to it."""
    held = cast_to(high - 1, type)
    if held is None or held < high:
        return high
    return held - (1 << abs(high - 1).bit_length() - digits)


def cast_to(number: int, type: np.dtype[Any]) -> int | None:
    """A number as the type has it; None where it is infinite there, or no 64-bit integer."""
    held = float(narrowed(np.array(float(number)), type))
    return int(held) if -(2**63) <= held < 2**63 else None


def check_bounds(type: np.dtype[Any], digits: int | None, low: int, last: int) -> None:
    """Refuses limits outside of a type; warns of those that a floating type has no integers for."""
    name = IN_C.get(type.name, type.name)
    if digits is None:
        least, most = (0, 1) if type.kind == "b" else (np.iinfo(type).min, np.iinfo(type).max)
    else:
        most = int(types.finfo(types.from_numpy_dtype(type)).max)
        least = -most
    for what, number in (("from", low), ("to - 1", last)):
        if not least <= number <= most:
            raise RuntimeError(f"{what} is out of bounds for {name}")
        if digits is not None and abs(number) > 1 << digits:
            warnings.warn(
                f"{what} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
                f"{name} can support discrete uniform distribution only within this range. This "
                "warning will become an error in version 1.7 release, please fix the code in "
                "advance",
                stacklevel=2,
            )


def upper_bound(type: np.dtype[Any]) -> int:
    """One more than the largest integer of a type, or than the last before floats have gaps."""
    digits = DIGITS.get(type.name)
    if digits is not None:
        return (1 << digits) + 1
    return 2 if type.kind == "b" else int(np.iinfo(type).max) + 1


def any_integers(rng: RandomSource, count: int, type: np.dtype[Any]) -> Any:
    """Integers from 0 to the largest of the type, or to the last before floats have gaps."""
    return narrowed(rng.whole(count, upper_bound(type), type.name in ("int64", "float64")), type)


def _draw(
    how: Callable[..., Any],
    shape: Sequence[int],
    dtype: DType | None,
    device: Device,
    generator: Generator | None,
    like: Array | None = None,
) -> Any:
    """An array from how(source, count, type) on a device, in the order of another one's memory."""
    where = device_class(device or create.get_default_device())
    kind = dtype or types.get_default_dtype()
    rng = generator_of(where, generator)
    rows = like is None or bool(like.flags.c_contiguous)
    with base.of_device(where).on(where):
        return in_memory_order(lambda n: how(rng, n, kind.numpy, rows=rows), tuple(shape), like)


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
        shape = create._size(size, more.pop("size", None), name)
        if more:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(more))}'")
        _need_float(kernel_name, dtype)
        kind, like = dtype, None
        if out is not None:
            kind, like = out.dtype, out._array if out._array.shape == tuple(shape) else None

        def draw(lead: Any) -> Tensor:
            order = None if lead else like
            return wrap(_draw(how, (*lead, *shape), kind, device, generator, order), kind)

        made = drawn(draw, name)
        return create.put_out(
            made.requires_grad_() if requires_grad else made, out, names, aten=name
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return watched(function)


KERNELS = {"rand_like": "check_uniform_bounds", "randn_like": "normal_kernel_cpu"}
rand = _factory("rand", uniform_numbers, "check_uniform_bounds", "Uniform numbers in [0, 1).")
randn = _factory(
    "randn", normal_numbers, "normal_kernel_cpu", "Normal numbers, mean 0, variance 1."
)


def order_of(input: Tensor, memory_format: MemoryFormat | None) -> Any:
    """An array that lies in memory as a new tensor like this one will; None where that is in rows."""
    array = input._array
    if memory_format is None and array.flags.c_contiguous and 1 not in array.shape:
        return None
    return create.empty_like(input, memory_format=memory_format)._array


def _like(name: str, how: Callable[..., Any]) -> Any:
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
        kind, where, shape = dtype or input.dtype, device or input.device, tuple(input.shape)
        if input.layout is not strided and layout is not strided:
            what = "uniform_" if name == "rand_like" else "normal_"
            kinds = "SparseCPU" if input.is_sparse else "SparseCsrCPU"
            raise NotImplementedError(unsupported(what, kinds))
        _need_float(KERNELS[name], kind)
        like = order_of(input, memory_format)

        def draw(lead: Any) -> Tensor:
            order = None if lead else like
            return wrap(_draw(how, (*lead, *shape), kind, where, generator, order), kind)

        made = drawn(draw, name)
        return made.requires_grad_() if requires_grad else made

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name[:-5]}` in the shape, type and place of another tensor."
    return public(name)(watched(function))


rand_like, randn_like = _like("rand_like", uniform_numbers), _like("randn_like", normal_numbers)


@watched
def randint(
    low: Any = None,
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
    elif low is None:
        low = 0
    if high is None or size is None:
        missing = "high" if high is None else "size"
        raise TypeError(f'randint() missing 1 required positional arguments: "{missing}"')
    if not isinstance(size, (list, tuple)):
        raise TypeError(
            "randint(): argument 'size' (position 2) must be tuple of ints, not "
            f"{type(size).__name__}"
        )
    if not -(2**63) <= low < 2**63 or not -(2**63) <= high < 2**63:
        raise ValueError("Overflow when unpacking long long")
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    made = _integers(low, high, spread((size,), "randint"), dtype or types.int64, device, generator)
    return create.put_out(made.requires_grad_() if requires_grad else made, out, aten="randint")


def _integers(
    low: Any,
    high: Any,
    shape: tuple[int, ...],
    kind: DType,
    device: Device,
    generator: Generator | None,
    like: Array | None = None,
) -> Tensor:
    """A tensor of integers from low up to, but not with, high."""

    def numbers(rng: RandomSource, count: int, type: np.dtype[Any], rows: builtins.bool) -> Any:
        return integer_numbers(rng, count, type, int(low), int(high))

    def draw(lead: Any) -> Tensor:
        order = None if lead else like
        return wrap(_draw(numbers, (*lead, *shape), kind, device, generator, order), kind)

    return drawn(draw, "randint")


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
    kind, where, like = dtype or input.dtype, device or input.device, order_of(input, memory_format)
    made = _integers(low, high, tuple(input.shape), kind, where, None, like)
    return made.requires_grad_() if requires_grad else made


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
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    _refuse_length(n, dtype if out is None else out.dtype)
    where = device_class(device or create.get_default_device())
    with base.of_device(where).on(where):
        drawn_order = generator_of(where, generator).permutation(n)
        made = wrap(narrowed(drawn_order, dtype.numpy), dtype)
    return create.put_out(made.requires_grad_() if requires_grad else made, out, aten="randperm")


def _refuse_length(n: int, dtype: DType) -> None:
    """Refuses orders of more numbers than a type can tell apart."""
    refuse("randperm", dtype.numpy)
    digits = DIGITS.get(dtype.name)
    if digits is None and n - 1 > np.iinfo(dtype.numpy).max:
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
    if digits is not None and dtype.name != "bfloat16" and n > (1 << digits) + 1:
        raise RuntimeError(f"n cannot be greater than {(1 << digits) + 1} for {dtype.legacy} type.")


def _normal_of(
    xp: ArrayModule, mean: Array | float, std: Array | float, generator: Generator | None
) -> Any:
    deviations = xp.asarray(std)
    if deviations.dtype.kind == "c":
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if deviations.size and float(deviations.min()) < 0:
        raise RuntimeError("normal expects all elements of std >= 0.0")
    like: Any = mean if hasattr(mean, "dtype") else std
    refuse("normal_kernel_cpu", like.dtype)
    scale = 1.0 if hasattr(std, "dtype") else float(std)
    shape = broadcast_pair(getattr(mean, "shape", ()), getattr(std, "shape", ()))
    count = math.prod(shape)
    values = normal_numbers(_rng(like, generator), count, like.dtype, 0.0, scale).reshape(shape)
    values = narrowed(values * std, like.dtype) if hasattr(std, "dtype") else values
    return (values + mean).astype(like.dtype)


def _zero(g: Tensor) -> Any:
    return g * 0


normal_of = define(
    "normal.tensors(Operand mean, Operand std, *, Generator? generator=None) -> Tensor",
    _normal_of,
    kind="general",
    function=False,
    method=False,
    out=False,
    upcast=False,
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
        if out is None:
            return normal_of.function(mean, std, generator=generator)
        shapes = [v.shape for v in (mean, std) if isinstance(v, Tensor)]
        if not isinstance(std, Tensor):  # the means are added to what fills all of `out`
            shapes.append(out.shape)
        shape = broadcast_pair(*shapes) if len(shapes) == 2 else shapes[0]
        warn_of_size(out, shape, 3)
        if isinstance(mean, Tensor) and not isinstance(std, Tensor):
            mean = mean.expand(shape)
        return create.put_out(normal_of.function(mean, std, generator=generator), out)
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    _need_float("normal_kernel_cpu", dtype)

    def draw(lead: Any) -> Tensor:
        def numbers(rng: RandomSource, count: int, type: np.dtype[Any], rows: builtins.bool) -> Any:
            return normal_numbers(rng, count, type, float(mean), float(std))

        return wrap(_draw(numbers, (*lead, *size), dtype, device, generator), dtype)

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
    weights = input._array.astype(np.float64)
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
    if not len(rows):
        empty = input.new_empty((*weights.shape[:-1], num_samples), dtype=types.int64)
        return create.put_out(empty, out)
    rng = generator_of(input.device, generator)
    if replacement and num_samples > 1:
        picks = rng.uniform(len(rows) * num_samples, np.float64).reshape(len(rows), num_samples)
        work = np.float64 if input.dtype is types.float64 else np.float32
        sums = np.add.accumulate(rows.astype(work), axis=-1, dtype=work)
        sums /= sums[:, -1:].copy()
        sums[:, -1] = 1
        found = np.stack([np.searchsorted(s.astype(float), p) for s, p in zip(sums, picks)])
    else:  # the largest of p/q, q exponential: the order of a race whose rates are the weights
        waits = narrowed(rng.exponential(rows.size), input._array.dtype).reshape(rows.shape)
        keys = rows.astype(waits.dtype) / waits
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


def _rng(a: Array | float, generator: Generator | None) -> Any:
    return generator_of(base.of_array(a).device(a), generator)


def _refuse_bounds(low: float, high: float) -> None:
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}"
        )


def _filled(
    a: Array, generator: Generator | None, draw: Callable[[RandomSource, int], Any], *more: Array
) -> Any:
    """What is drawn for an array, in the order of its memory."""
    rng = _rng(a, generator)
    return in_memory_order(lambda n: narrowed(draw(rng, n), a.dtype), a.shape, a, *more)


def _uniform_fill(
    xp: ArrayModule, a: Array, low: float, high: float, generator: Generator | None
) -> Any:
    refuse("check_uniform_bounds", a.dtype)
    kind = from_numpy_dtype(a.dtype)
    most = float(types.finfo(kind).max)
    for side, value in (("from", low), ("to", high)):
        if not -most <= value <= most:
            raise RuntimeError(f"{side} is out of bounds for {c_name(kind)}")
    _refuse_bounds(low, high)
    if high - low > most:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{kind.legacy}>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )
    return _filled(a, generator, lambda rng, n: uniform_numbers(rng, n, a.dtype, low, high))


def _normal_fill(
    xp: ArrayModule, a: Array, mean: float, std: float, generator: Generator | None
) -> Any:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    refuse("normal_kernel_cpu", a.dtype)
    rows = bool(a.flags.c_contiguous)
    return _filled(a, generator, lambda rng, n: normal_numbers(rng, n, a.dtype, mean, std, rows))


def _random_fill(
    xp: ArrayModule, a: Array, low: int | None, high: Any, generator: Generator | None
) -> Any:
    if high is None and low is not None:
        high = upper_bound(a.dtype)
        if a.dtype.kind in "iu" and not np.iinfo(a.dtype).min <= low < high:
            raise RuntimeError(f"from is out of bounds for {c_name(from_numpy_dtype(a.dtype))}")
    if high is None or low is None:
        refuse("random_kernel_cpu", a.dtype)
        return _filled(a, generator, lambda rng, n: any_integers(rng, n, a.dtype))
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    first, end = int(low), int(high)
    return _filled(a, generator, lambda rng, n: integer_numbers(rng, n, a.dtype, first, end))


def _exponential_fill(xp: ArrayModule, a: Array, lambd: float, generator: Generator | None) -> Any:
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    refuse_steps("Exponential", a)
    return _filled(a, generator, lambda rng, n: rng.exponential(n, lambd))


def _cauchy_fill(
    xp: ArrayModule, a: Array, median: int, sigma: int, generator: Generator | None
) -> Any:
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    refuse_steps("Cauchy", a)
    return _filled(a, generator, lambda rng, n: rng.cauchy(n, median, sigma))


def _log_normal_fill(
    xp: ArrayModule, a: Array, mean: int, std: int, generator: Generator | None
) -> Any:
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    refuse("log_normal_cpu", a.dtype)
    return _filled(a, generator, lambda rng, n: rng.log_normal(n, mean, std))


def _geometric_fill(xp: ArrayModule, a: Array, p: float, generator: Generator | None) -> Any:
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    refuse("geometric_cpu", a.dtype)
    return _filled(a, generator, lambda rng, n: rng.geometric(n, p))


def _bernoulli_fill(
    xp: ArrayModule, a: Array, p: Array | float, generator: Generator | None
) -> Any:
    if not hasattr(p, "dtype"):
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        refuse("bernoulli_scalar_cpu_", a.dtype)
        return _filled(a, generator, lambda rng, n: rng.below(n, float(p)))
    refuse("bernoulli_tensor_cpu_self_", a.dtype)
    chances = _chances(xp, p, a.shape)
    flat = chances.transpose(walk(a, chances)).reshape(-1)
    return _filled(a, generator, lambda rng, n: rng.below(n, flat), chances)


def _chances(xp: ArrayModule, p: Any, shape: tuple[int, ...]) -> Any:
    """Probabilities for an array of a shape."""
    chances = xp.broadcast_to(p, shape)
    if xp.any(chances < 0) or xp.any(chances > 1):
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message "
            "be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    return chances


uniform = _filler(
    "uniform", ", float from_=0, float to=1", _uniform_fill, "Fills with uniform numbers."
)
normal_fill = _filler(
    "normal", ", float mean=0, float std=1", _normal_fill, "Fills with normal numbers."
)
random_fill = _filler(
    "random", ", int? from_=None, int? to=None", _random_fill, "Fills with integers."
)


@public(method=True)
def random_(
    self: Tensor, *bounds: int | None, generator: Any = None, **named: int | None
) -> Tensor:
    """Fills with integers: `random_()`, `random_(to)`, or `random_(from, to)`.

    With `to` None they go up to the last of the type; without any bound they start at 0.

    >>> bool((Tensor(3).random_(2) < 2).all())
    True
    """
    low = named.pop("from", None)
    high = named.pop("to", None) if "to" in named else bounds[-1] if bounds else None
    if named or len(bounds) > 2:
        raise TypeError("random_() received an invalid combination of arguments")
    if len(bounds) == 2 or (bounds and high is not bounds[-1]):
        low = bounds[0]
    elif low is None and high is not None:
        low = 0
    return inplace(random_fill, (self, low, high, generator))


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
    refuse("bernoulli_tensor_cpu_self_", a.dtype)
    refuse("bernoulli_tensor_cpu_p_", a.dtype)
    flat = _chances(xp, a, a.shape).reshape(-1)
    return narrowed(_rng(a, generator).below(flat.size, flat), a.dtype).reshape(a.shape)


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
        if out is not None:
            raise TypeError(
                "bernoulli() received an invalid combination of arguments - got (Tensor, float, "
                "out=Tensor)"
            )
        made = create.empty_like(input.contiguous())
        made.bernoulli_(p, generator=generator)
        return made
    if out is not None and out.dtype is not input.dtype:
        return create.put_out(bernoulli_of.function(input, generator=generator).to(out.dtype), out)
    return bernoulli_of.function(input, generator=generator, out=out)


def _poisson(xp: ArrayModule, a: Array, generator: Generator | None) -> Any:
    refuse("poisson_cpu", a.dtype)
    if a.size and float(a.min()) < 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return narrowed(_rng(a, generator).poisson(a), a.dtype)


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
    for name, a in (("count", count), ("prob", prob)):
        if a.dtype.name not in REAL:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: "
                f"{from_numpy_dtype(a.dtype).legacy}"
            )
    refuse("binomial_cpu", count.dtype)
    shape = broadcast_pair(count.shape, prob.shape)
    counts, chances = (xp.broadcast_to(v, shape) for v in (count, prob))
    return narrowed(_rng(count, generator).binomial(counts, chances), count.dtype)


binomial = define(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    _binomial,
    kind="general",
    method=False,
    out=False,
    upcast=False,
    d_count=_zero,
    d_prob=_zero,
    doc="How many of `count` trials succeed, each with probability prob.",
)

"""Tensors of random numbers: uniform, normal, integers, permutations."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.base import RandomSource
from toytorch.backends.sparse import unsupported
from toytorch.core.arguments import TAKES, spread
from toytorch.core.memory_order import in_memory_order
from toytorch.core.random import Generator, generator_of
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.composed import called
from toytorch.facts.device import cpu, given, on_cpu, strided
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Array, Device, DType, Fn, Ints, Layout, MemoryFormat, Shape, Sizes
from toytorch.facts.schema import wrong_argument
from toytorch.facts.size import Size
from toytorch.ops.calls import plain_integer
from toytorch.ops.creation import create
from toytorch.ops.creation.draw_refusals import refuse
from toytorch.ops.creation.random_numbers import (
    integer_numbers,
    limits,
    narrowed,
    normal_numbers,
    uniform_numbers,
)
from toytorch.ops.define import public, watched


def draw_array(
    how: Fn,
    shape: Shape,
    dtype: DType | None,
    device: Device,
    generator: Generator | None,
    like: Array | None = None,
) -> Any:
    """An array from how(source, count, type) on a device, in the order of another one's memory."""
    where = given(device, create.get_default_device())
    where = where if where is cpu else device_class(where)
    kind = dtype or types.get_default_dtype()
    rng = generator_of(where, generator)
    rows = like is None or bool(like.flags.c_contiguous)

    def draw(n: int) -> Any:
        return how(rng, n, kind.numpy, rows=rows)

    if where is cpu:
        return in_memory_order(draw, tuple(shape), like)
    with base.of_device(where).on(where):
        return in_memory_order(draw, tuple(shape), like)


NORMAL = "normal_kernel_cpu"


def need_float(name: str, dtype: DType | None, shape: Shape) -> None:
    nothing = name == NORMAL and 0 in shape  # which is not asked for its type
    if dtype is not None and dtype.rank < 2 and not nothing:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.legacy}'")


def drawn(make: Fn, name: str) -> Tensor:
    """A tensor of random numbers; inside vmap the mode says how many, one for all or for each.

    `make(lead)` makes it, with more dimensions in front; a profiler shows it under `name`.
    """
    if state.profiler is not None:
        return state.profiler.around(  # it returns what we do
            f"aten::{name}", (), drawn_here, make
        )
    return drawn_here(make)


def drawn_here(make: Fn) -> Tensor:
    """`drawn` itself."""
    for mode in reversed(state.local.modes):
        ask = getattr(mode, "on_random", None)
        if ask is not None:
            with state.below(mode):
                return ask(make)
    return make(())


def drawn_by(make: Fn, input: Tensor) -> Tensor:
    """`make(input)`, random numbers of the distributions that a tensor gives; vmap makes them of a whole batch."""
    for mode in reversed(state.local.modes):
        ask = getattr(mode, "on_random_by", None)
        if ask is not None:
            with state.below(mode):
                return ask(make, input)
    return make(input)


def plainly_drawn(how: Fn, size: tuple[Any, ...], kind: DType | None = None) -> Tensor | None:
    """The tensor for a size of a few plain ints, drawn on the CPU; None for what takes more."""
    if len(size) == 1 and size[0].__class__ in (tuple, list, Size):
        size = tuple(size[0])
    count = 1
    for n in size:
        if n.__class__ is not int or not 0 <= n < 1 << 16:
            return None
        count *= n
    if count > 1 << 16:
        return None
    kind = kind or types.get_default_dtype()
    return wrap(how(generator_of(cpu, None), count, kind._numpy or kind.numpy).reshape(size), kind)


def _factory(name: str, how: Fn, kernel_name: str, doc: str) -> Any:
    def function(
        *size: Ints,
        generator: Generator | None = None,
        out: Tensor | None = None,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Device = None,
        requires_grad: builtins.bool = False,
        pin_memory: bool = False,
        names: Sequence[str | None] | None = None,
        **more: Ints,
    ) -> Tensor:
        if (
            size
            and state.fast_path is not state.SLOW
            and generator is None
            and out is None
            and layout is None
            and names is None
            and (dtype is None or (dtype.__class__ is types.dtype and dtype.plain))
            and on_cpu(device)
            and not more
        ):
            made = plainly_drawn(how, size, dtype)
            if made is not None:
                return create.asking(made) if requires_grad else made
        if not size and "size" not in more:
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got (), but "
                "expected sizes"
            )
        shape = create._size(size, more.pop("size", None), name)
        if more:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(more))}'")
        need_float(kernel_name, dtype, shape)
        kind, like = dtype, None
        if out is not None:
            kind, like = out.dtype, out._array if out._array.shape == tuple(shape) else None

        def draw(lead: Any) -> Tensor:
            order = None if lead else like
            return wrap(draw_array(how, (*lead, *shape), kind, device, generator, order), kind)

        made = drawn(draw, name)
        return create.put_out(
            made.requires_grad_() if requires_grad else made, out, names, aten=name
        )

    return watched(called(name, doc, function))


KERNELS = {"rand_like": "check_uniform_bounds", "randn_like": NORMAL}
rand = _factory("rand", uniform_numbers, "check_uniform_bounds", "Uniform numbers in [0, 1).")
randn = _factory("randn", normal_numbers, NORMAL, "Normal numbers, mean 0, variance 1.")


def order_of(input: Tensor, memory_format: MemoryFormat | None) -> Any:
    """An array that lies in memory as a new tensor like this one will; None where that is in rows."""
    array = input._array
    if memory_format is None and array.flags.c_contiguous and 1 not in array.shape:
        return None
    return create.empty_like(input, memory_format=memory_format)._array


def _like(name: str, how: Fn) -> Any:
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
        array = input._array
        if (
            array.__class__ is np.ndarray
            and state.fast_path is not state.SLOW
            and (dtype, layout, device, memory_format, generator) == (None,) * 5
            and input._dtype.plain
            and not requires_grad
            and array.flags.c_contiguous
            and 1 not in array.shape
        ):
            found = plainly_drawn(how, array.shape, input._dtype)
            if found is not None:
                return found
        kind, where, shape = dtype or input.dtype, given(device, input.device), tuple(input.shape)
        if input.layout is not strided and layout is not strided:
            what = "uniform_" if name == "rand_like" else "normal_"
            kinds = "SparseCPU" if input.is_sparse else "SparseCsrCPU"
            raise NotImplementedError(unsupported(what, kinds))
        need_float(KERNELS[name], kind, shape)
        like = order_of(input, memory_format)

        def draw(lead: Any) -> Tensor:
            order = None if lead else like
            return wrap(draw_array(how, (*lead, *shape), kind, where, generator, order), kind)

        made = drawn(draw, name)
        return made.requires_grad_() if requires_grad else made

    doc = f"`{name[:-5]}` in the shape, type and place of another tensor."
    return public(name)(watched(called(name, doc, function)))


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
        raise wrong_argument("randint", "size", 2, "tuple of ints", size)
    if (
        state.fast_path is not state.SLOW
        and generator is None
        and out is None
        and (dtype is None or dtype is types.int64)
        and on_cpu(device)
        and low.__class__ is high.__class__ is int
        and -(2**63) <= low < high < 2**63
        and not requires_grad
    ):
        found = plainly_drawn(
            lambda rng, count, type: rng.integers(count, low, high), tuple(size), types.int64
        )
        if found is not None:
            return found
    for name, value in (("low", low), ("high", high)):
        if not TAKES["SymInt"](value):
            raise wrong_argument("randint", name, 1, "int", value)
    low, high = plain_integer(low), plain_integer(high)
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
    shape: Sizes,
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
        return wrap(draw_array(numbers, (*lead, *shape), kind, device, generator, order), kind)

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
    kind, where, like = (
        dtype or input.dtype,
        given(device, input.device),
        order_of(input, memory_format),
    )
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
    where = given(device, create.get_default_device())
    where = where if where is cpu else device_class(where)

    def draw(lead: Any) -> Tensor:
        rng = generator_of(where, generator)
        orders = [rng.permutation(n) for _ in range(math.prod(lead))]
        one = orders[0] if not lead else base.of_array(orders[0]).xp.stack(orders)
        return wrap(narrowed(one, dtype.numpy), dtype)

    with base.of_device(where).on(where):
        made = drawn(draw, "randperm")
    return create.put_out(made.requires_grad_() if requires_grad else made, out, aten="randperm")


def _refuse_length(n: int, dtype: DType) -> None:
    """Refuses orders of more numbers than a type can tell apart."""
    refuse("randperm", dtype.numpy)
    digits, _, most = limits(dtype.numpy)
    if digits is None and n - 1 > most:
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
    if digits is not None and dtype.name != "bfloat16" and n > (1 << digits) + 1:
        raise RuntimeError(f"n cannot be greater than {(1 << digits) + 1} for {dtype.legacy} type.")

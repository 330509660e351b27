"""Numbers at equal distances, and the places of triangles."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.core.arguments import TAKES
from toytorch.core.scalars import as_element
from toytorch.core.tensor import Tensor, wrap
from toytorch.core.write import c_name
from toytorch.facts import dtype as types
from toytorch.facts import state, warned
from toytorch.facts.device import on_cpu
from toytorch.facts.dtype import of_scalar
from toytorch.facts.hints import Array, ArrayModule, Device, DType, Layout
from toytorch.facts.schema import NOT_GIVEN, wrong_argument
from toytorch.ops.creation.create import _kind as kind_of
from toytorch.ops.creation.create import finish, put_out
from toytorch.ops.define import creating, public


def placed(
    made: Tensor, out: Any, aten: str, *, dtype: DType | None = None, of: tuple[Any, ...] = ()
) -> Tensor:
    """The numbers, in `out` if that is given, whatever its shape if it has room for just as many."""
    if out is not None and out.numel() == made.numel():
        made = made.reshape(out.shape)
    return put_out(made, out, dtype=dtype, aten=aten, of=of)


def _steps_between(start: float, end: float, step: float) -> int:
    """How many steps lead from start to before end, after PyTorch's checks."""
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if all(isinstance(v, int) for v in (start, end, step)):
        return int(-((start - end) // step))
    return math.ceil((end - start) / step)


REAL = (int, float)
LEAST = -1 << 62  # below which, and above its opposite, integers may not fit


@public("arange", tensor_first=False)
@creating
def arange(
    start: float = NOT_GIVEN,
    end: Any = NOT_GIVEN,
    step: Any = 1,
    *,
    out: Any = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """start, start + step, … before end.

    >>> arange(3), arange(1, 2, 0.5)
    (tensor([0, 1, 2]), tensor([1.0000, 1.5000]))
    """
    if (
        start.__class__ is int
        and step.__class__ is int
        and step == 1
        and (end is NOT_GIVEN or end.__class__ is int)
        and out is None
        and layout is None
        and (dtype is None or dtype is types.int64)
        and on_cpu(device)
        and not requires_grad
        and state.fast_path is not state.SLOW
    ):
        if end is NOT_GIVEN:
            start, end = 0, start
        if LEAST < start <= end < -LEAST:
            return wrap(np.arange(start, end), types.int64)
    elif end is NOT_GIVEN:
        start, end = 0, start
    if end is NOT_GIVEN:
        raise TypeError('arange() missing 1 required positional arguments: "end"')
    start, end, step = (
        v.item() if isinstance(v, (Tensor, np.generic)) else v
        for v in (0 if start is NOT_GIVEN else start, end, step)
    )
    if end is None or step is None:
        raise TypeError("arange() received an invalid combination of arguments - got NoneType")
    if dtype is None and out is not None:
        dtype = out.dtype
    if dtype is None:
        floats = any(isinstance(v, float) for v in (start, end, step))
        dtype = types.get_default_dtype() if floats else types.int64
    kind = kind_of(dtype)
    if np.dtype(kind).kind in "bc":
        raise NotImplementedError(
            f"\"arange_cpu\" not implemented for '{types.from_numpy_dtype(np.dtype(kind)).legacy}'"
        )
    count = _steps_between(start, end, step)
    if np.dtype(kind).kind in "iu":
        start, end, step = int(start), int(end), int(step)
        if kind == np.int64:  # narrower ones are counted with the fractions
            if step == 0:
                raise ValueError("step must be nonzero")
            count = _steps_between(start, end, step)

    def make(xp: ArrayModule) -> Any:
        if kind == np.int64 or (start, step) == (0, 1):
            return xp.arange(start, start + count * step, step, kind)
        return (start + xp.arange(count) * step).astype(kind)

    if out is not None and out.numel() not in (0, count):
        warned.at_call(
            f"The number of elements in the out tensor of shape {list(out.shape)} is {out.numel()} "
            f"which does not match the computed number of elements {count}. Note that this may occur "
            "as a result of rounding error. The out tensor will be resized to a tensor of shape "
            f"({count},)."
        )
    return placed(finish(make, device, requires_grad, "arange"), out, "arange", dtype=dtype)


@public("range", tensor_first=False)
@creating
def range(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """start, start + step, … up to and with end (deprecated in PyTorch; use `arange`).

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     range(1, 3)
    tensor([1., 2., 3.])
    """
    warned.at_call(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values "
        "in [start, end)."
    )
    kind = kind_of(dtype if dtype is not None or out is None else out.dtype)
    if np.dtype(kind).kind in "bc":
        raise NotImplementedError(
            f"\"range_cpu\" not implemented for '{types.from_numpy_dtype(np.dtype(kind)).legacy}'"
        )
    if np.dtype(kind).kind in "iu":
        for bound in (start, end, step):
            if not -(1 << 63) <= bound < 1 << 63:  # nor is NaN
                raise RuntimeError("value cannot be converted to type int64_t without overflow")
        if start > end if step > 0 else start < end:  # the numbers themselves are compared
            raise RuntimeError("upper bound and lower bound inconsistent with step sign")
        start, end, step = int(start), int(end), int(step)
    if not (step > 0 or step < 0):
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = math.floor((end - start) / step) + 1

    def make(xp: ArrayModule) -> Any:
        return (start + xp.arange(count) * step).astype(kind)

    return placed(finish(make, device, requires_grad, "range"), out, "range")


def _end_points(
    name: str, start: Any, end: Any, steps: int, dtype: DType | None
) -> tuple[Any, Any]:
    """The ends as numbers."""
    if start.__class__ in REAL and end.__class__ in REAL and steps.__class__ is int and steps >= 0:
        return start, end
    for place, word, value in ((1, "start", start), (2, "end", end)):
        if not TAKES["Operand"](value):
            raise wrong_argument(name, word, place, "Number", value)
    widest = max(
        (start, end), key=lambda v: (v.dtype if isinstance(v, Tensor) else of_scalar(v)).rank
    )
    found = widest.dtype if isinstance(widest, Tensor) else of_scalar(widest)
    if found.is_complex and dtype is not None and not dtype.is_complex:
        if not isinstance(widest, Tensor):
            found = types.default_complex()
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {c_name(found)} can't be safely cast to passed dtype "
            f"{dtype.legacy}"
        )
    for side, value in (("start", start), ("end", end)):
        if isinstance(value, Tensor) and value.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got "
                f"{side} with {value.ndim} dimension(s)."
            )
    if not isinstance(steps, (int, np.integer)):
        kinds = ", ".join(type(v).__name__ for v in (start, end, steps))
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({kinds})")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return tuple(v.item() if isinstance(v, Tensor) else v for v in (start, end))


def equally_spaced(xp: ArrayModule, start: Any, end: Any, steps: int, kind: np.dtype[Any]) -> Any:
    """Numbers from start to end, in the type to work in; ends are cut to integers first."""
    if steps < 2:  # of which the end is not asked, nor the start if there is nothing
        return xp.full((steps,), as_element(np, start, kind)[()] if steps else 0, kind)
    work: Any = kind
    if kind.kind in "iu":
        start, end = (int(as_element(np, x, kind)) for x in (start, end))
        work = np.dtype("float64")
    first, last = (as_element(np, x, work)[()] for x in (start, end))
    step = work.type((last - first) / work.type(max(steps - 1, 1)))
    # From both ends, as PyTorch does, so that the values are symmetric.
    made = attempt(xp, "between", first, last, step, steps)
    if made is not None:
        return made
    half = steps // 2
    up, down = xp.arange(half).astype(work), xp.arange(steps - half)[::-1].astype(work)
    return xp.concatenate((_line(xp, up, step, first), _line(xp, down, -step, last)))


def _line(xp: ArrayModule, x: Array, slope: Any, at_zero: Any) -> Any:
    """x·slope + at_zero, rounded once where the processor does: float32 and float64."""
    if x.dtype.kind == "f" and x.dtype.itemsize >= 4:
        made = attempt(xp, "scaled", x, slope, at_zero)
        if made is not None:
            return made
    return x * slope + at_zero


def _kind_between(
    name: str, start: Any, end: Any, steps: int, dtype: DType | None, out: Tensor | None
) -> np.dtype[Any]:
    """NumPy's type of the numbers between two, where a type or an out= may be given."""
    if dtype is None and out is not None:
        dtype = out.dtype
    if dtype is None and (isinstance(start, complex) or isinstance(end, complex)):
        dtype = types.default_complex()
    kind = np.dtype(kind_of(dtype))
    if kind.kind == "b" and steps > 1:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    return kind


@public("linspace", tensor_first=False)
@creating
def linspace(
    start: Tensor | float,
    end: Tensor | float,
    steps: int,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`steps` values at equal distances from start to end.

    >>> linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    of = tuple(v for v in (start, end) if isinstance(v, Tensor))
    start, end = _end_points("linspace", start, end, steps, dtype)
    kind = _kind_between("linspace", start, end, steps, dtype, out)

    def make(xp: ArrayModule) -> Any:
        return equally_spaced(xp, start, end, steps, kind).astype(kind)

    made = finish(make, device, requires_grad, "linspace")
    return placed(made, out, "linspace", dtype=dtype, of=of)


def _exponents(xp: ArrayModule, start: Any, end: Any, steps: int, kind: np.dtype[Any]) -> Any:
    """Numbers from start to end in float64, though the ends and their distance are of the type."""
    if kind.kind == "c":
        return equally_spaced(xp, start, end, steps, kind)
    if steps < 2:
        return xp.full((steps,), float(as_element(np, start, np.dtype("float64"))) if steps else 0)
    first, last = (as_element(np, x, kind)[()] for x in (start, end))
    if kind.kind in "iu":  # whose distance may not fit
        first, last = int(first), int(last)
    step = float(last - first) / max(steps - 1, 1)
    i, half = xp.arange(steps), steps // 2
    return xp.where(i < half, float(first) + step * i, float(last) - step * (steps - 1 - i))


@public("logspace", tensor_first=False)
@creating
def logspace(
    start: Tensor | float,
    end: Tensor | float,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Powers of a base at equal distances of the exponent.

    >>> logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    of = tuple(v for v in (start, end) if isinstance(v, Tensor))
    start, end = _end_points("logspace", start, end, steps, dtype)
    kind = _kind_between("logspace", start, end, steps, dtype, out)

    def make(xp: ArrayModule) -> Any:
        wide = np.complex128 if kind.kind == "c" else np.float64
        exponents = _exponents(xp, start, end, steps, kind)
        powers = float(base) ** exponents.astype(wide)
        if steps == 1:  # which is filled in, and must fit
            return xp.full(1, as_element(np, powers.item(), kind)[()], kind)
        return powers.astype(kind)

    made = finish(make, device, requires_grad, "logspace")
    return placed(made, out, "logspace", dtype=dtype, of=of)


# -- triangles ------------------------------------------------------------------------------------


def triangle_places(xp: ArrayModule, name: str, row: int, offset: int, col: int) -> Any:
    """The places (2, n) of a triangle's elements, line after line."""
    lines = xp.arange(row)
    if name == "tril_indices":
        begins, ends = lines * 0, xp.clip(lines + offset + 1, 0, col)
    else:
        begins, ends = xp.clip(lines + offset, 0, col), lines * 0 + col
    counts = ends - begins
    # What the numbers of all places are to be moved by.
    firsts = begins - xp.cumsum(counts) + counts
    made = xp.empty((2, int(counts.sum())), np.int64)
    made[0] = xp.repeat(lines, counts)
    made[1] = xp.arange(made.shape[1]) + xp.repeat(firsts, counts)
    return made


def _triangle(name: str, which: str) -> Any:
    def function(
        row: int,
        col: int,
        offset: int = 0,
        *,
        dtype: DType = types.int64,
        device: Device = None,
        layout: Layout | None = None,
        pin_memory: bool = False,
    ) -> Tensor:
        if row < 0 or col < 0:
            side, n = ("row", row) if row < 0 else ("col", col)
            raise RuntimeError(f"{side} must be non-negative, got{n}")
        if dtype not in (types.int64, types.int32):
            raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.legacy}'")
        return finish(
            lambda xp: triangle_places(xp, name, row, offset, col).astype(kind_of(dtype)),
            device,
            False,
            name,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The places of the {which} triangle of a matrix, as two rows."
    return public(name, tensor_first=False)(creating(function))


tril_indices = _triangle("tril_indices", "lower")
triu_indices = _triangle("triu_indices", "upper")

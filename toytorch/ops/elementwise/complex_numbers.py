"""Complex numbers: their parts, what leaves real tensors as they are, and pairs of real numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core import inplace as writing
from toytorch.core.op import Op
from toytorch.core.storage import Conjugated
from toytorch.core.tensor import Tensor, strides_of
from toytorch.core.views import conjugates
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.dtype import from_numpy_dtype, part_of
from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.facts.size import broadcast_pair
from toytorch.ops.define import PUBLIC, on_tensors, public
from toytorch.ops.define import pointwise as elementwise
from toytorch.ops.define import view as define_view
from toytorch.ops.elementwise import arithmetic
from toytorch.ops.indexing.by_index import type_name
from toytorch.ops.shaping import view
from toytorch.ops.shaping.copies import clone


def _need_parts(a: str, b: str) -> None:
    """Refuses types (by PyTorch's names) that are not one type of floats that has complex numbers."""
    if not {a, b} <= {"Half", "Float", "Double"}:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {a} and {b}"
        )
    if a != b:
        raise RuntimeError(
            f"Expected object of scalar type {a} but got scalar type {b} for second argument"
        )


def _complex(xp: ArrayModule, real: Array, imag: Array) -> Any:
    _need_parts(type_name(real), type_name(imag))
    kind = from_numpy_dtype(real.dtype).to_complex().numpy
    made = xp.empty((*broadcast_pair(real.shape, imag.shape), 2), real.dtype)
    made[..., 0], made[..., 1] = real, imag
    return made.view(kind)[..., 0]


complex = elementwise(
    "complex(Tensor real, Tensor imag) -> Tensor",
    _complex,
    promotion="none",
    forms="function out",
    holomorphic=False,
    apart=True,
    out_type="object",
    d_real=lambda g, real, imag: g.real,  # saves both, as PyTorch
    d_imag=lambda g, real, imag: g.imag,
    doc="A complex tensor of its two parts.",
)


@public("real")
def real(input: Tensor) -> Tensor:
    """The real part; a real tensor is its own."""
    return view.real.function(input) if input.dtype.is_complex else input


@public("imag")
def imag(input: Tensor) -> Tensor:
    """The imaginary part."""
    return view.imag.function(input)


@public("conj", method=True, shares=True)
def conj(input: Tensor) -> Tensor:
    """Complex conjugate; a real tensor is its own."""
    if not input.dtype.is_complex:
        return input
    if input.is_meta:  # of which there is nothing to compute, and which lies as it does
        return input.as_strided(input.shape, input.stride())
    if state.fast_path is state.SLOW:
        for mode in reversed(state.local.modes):
            take_over = getattr(mode, "on_conjugates", None)
            if take_over is not None:
                return take_over(PUBLIC[conj.__name__], input)  # which graphs name
    made = conjugates(arithmetic.conj_physical, input)
    return arithmetic.conj_physical.function(input) if made is None else made


@public("conj_physical", method=True)
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex conjugate in fresh memory; a real tensor is its own."""
    if out is not None:
        writing.refuse_overlap(out)
        writing.refuse_shared(out, (None, input))
    if input.dtype.is_complex or out is not None:
        return arithmetic.conj_physical.function(input, out=out)
    return input


@public("positive", method=True)
def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if input.dtype is types.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@public("resolve_conj", method=True)
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself; a copy of what lies in memory as the conjugates of it."""
    if input._storage.__class__ is Conjugated and input.dtype.is_complex:
        return clone.function(input)
    return input


@public("resolve_neg", method=True)
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negatives are computed at once here."""
    return input


def set_real(self: Tensor, value: Any) -> None:
    """Writes over the real part."""
    real(self)[...] = value


def set_imag(self: Tensor, value: Any) -> None:
    """Writes over the imaginary part."""
    imag(self)[...] = value


on_tensors(resolve_neg=resolve_conj, real=property(real, set_real), imag=property(imag, set_imag))


# -- seen as pairs, made from sizes and angles ---------------------------------------------------


def _as_real(xp: ArrayModule, a: Array) -> Any:
    part = part_of(a.dtype)
    if part is None:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if a.flags.c_contiguous and 1 not in a.shape and a.size:
        return xp.expand_dims(a, -1).view(part)
    made = xp.expand_dims(a, -1).view(part)
    strides = tuple([2 * s for s in strides_of(a)]) + (1,)
    return made if strides_of(made) == strides else view.restride(made, made.shape, strides)


def _as_complex(xp: ArrayModule, a: Array) -> Any:
    if a.dtype.kind != "f":
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a "
            f"tensor of scalar type: {from_numpy_dtype(a.dtype).legacy}"
        )
    if a.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if a.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    steps = strides_of(a)
    if steps[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s, n in zip(steps[:-1], a.shape) if n != 1):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if view.begins_at(a) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return a.view(from_numpy_dtype(a.dtype).to_complex().numpy)[..., 0]


view_as_real: Op = define_view(
    "view_as_real(Tensor self) -> Tensor",
    _as_real,
    forms="function",
    holomorphic=False,
    d_self=lambda g: view_as_complex.function(g.contiguous()),
    batch="leading",
    doc="A complex tensor as a real one with a last dimension (re, im).",
)
view_as_complex: Op = define_view(
    "view_as_complex(Tensor self) -> Tensor",
    _as_complex,
    forms="function",
    holomorphic=False,
    d_self=lambda g: view_as_real.function(g),
    amp="float32",
    batch="leading",
    doc="A real tensor with a last dimension (re, im) as a complex one.",
)

# For writes through views of another kind (see core/inplace.py).
on_tensors(_as_pairs=view_as_real.function, _of_pairs=view_as_complex.function)


def _polar(xp: ArrayModule, size: Array, angle: Array) -> Any:
    made = xp.empty(
        np.broadcast_shapes(size.shape, angle.shape), np.result_type(size.dtype, np.complex64)
    )
    xp.multiply(size, xp.cos(angle), out=made.real)
    xp.multiply(size, xp.sin(angle), out=made.imag)
    return made


def _need_floats(common: DType, args: Sequence[Any]) -> None:
    _need_parts(args[0].dtype.legacy, args[1].dtype.legacy)
    if args[0].dtype.name == "float16":
        raise NotImplementedError("\"polar_cpu\" not implemented for 'Half'")


def _along(g: Any, direction: Any) -> Any:
    """Re(ḡ·direction): the real gradient of a complex function of real numbers."""
    return (g * direction.conj()).real


polar: Op = elementwise(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    _polar,
    forms="function out",
    holomorphic=False,
    checks=_need_floats,
    d_abs=lambda g, result: _along(g, result.sgn()),  # as PyTorch: also where abs is below 0
    d_angle=lambda g, result: _along(g, result * 1j),
    amp="float32",
    out_type="object",
    doc="abs·(cos angle + i·sin angle).",
)

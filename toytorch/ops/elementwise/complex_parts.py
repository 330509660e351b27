"""Complex numbers: their parts, and what leaves real tensors as they are."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.hints import Array, ArrayModule
from toytorch.facts.size import broadcast_pair
from toytorch.ops.define import pointwise as elementwise
from toytorch.ops.define import public
from toytorch.ops.elementwise import arithmetic
from toytorch.ops.indexing.by_index import type_name
from toytorch.ops.shaping import view


def _complex(xp: ArrayModule, real: Array, imag: Array) -> Any:
    if real.dtype.kind != "f" or imag.dtype.kind != "f":
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{type_name(real)} and {type_name(imag)}"
        )
    if real.dtype != imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {type_name(real)} but got scalar type "
            f"{type_name(imag)} for second argument"
        )
    made = xp.empty(broadcast_pair(real.shape, imag.shape), f"c{2 * real.dtype.itemsize}")
    made.real, made.imag = real, imag
    return made


complex = elementwise(
    "complex(Tensor real, Tensor imag) -> Tensor",
    _complex,
    promotion="none",
    method=False,
    inplace=False,
    holomorphic=False,
    apart=True,
    out_type="object",
    d_real=lambda g: g.real,
    d_imag=lambda g: g.imag,
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


@public("conj", method=True)
def conj(input: Tensor) -> Tensor:
    """Complex conjugate; a real tensor is its own."""
    return arithmetic.conj_physical.function(input) if input.dtype.is_complex else input


@public("conj_physical", method=True)
def conj_physical(input: Tensor, *, out: Any = None) -> Tensor:
    """Complex conjugate in fresh memory; a real tensor is its own."""
    if input.dtype.is_complex or out is not None:
        return arithmetic.conj_physical.function(input, out=out)
    return input


@public("positive", method=True)
def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if input.dtype is types.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@public("resolve_conj", "resolve_neg", method=True)
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed at once here."""
    return input


def set_real(self: Tensor, value: Any) -> None:
    """Writes over the real part."""
    real(self)[...] = value


def set_imag(self: Tensor, value: Any) -> None:
    """Writes over the imaginary part."""
    imag(self)[...] = value


Tensor.resolve_neg = resolve_conj  # type: ignore[attr-defined]  # ops attach methods to the class
Tensor.real = property(real, set_real)  # type: ignore[attr-defined]  # ops attach methods to the class
Tensor.imag = property(imag, set_imag)  # type: ignore[attr-defined]  # ops attach methods to the class

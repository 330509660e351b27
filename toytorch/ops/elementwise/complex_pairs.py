"""Complex tensors seen as pairs of real numbers, and made from sizes and angles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, strides_of
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.ops.define import pointwise, view


def _as_real(xp: ArrayModule, a: Array) -> Any:
    if a.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return xp.expand_dims(a, -1).view(a.real.dtype)


def _as_complex(xp: ArrayModule, a: Array) -> Any:
    if a.dtype.kind != "f" or a.dtype.itemsize == 2:
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, "
            "but got a tensor of scalar type: "
            f"{from_numpy_dtype(a.dtype).legacy}"
        )
    if a.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if a.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    steps = strides_of(a)
    if steps[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s, n in zip(steps[:-1], a.shape)):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return a.view(np.result_type(a.dtype, np.complex64))[..., 0]


view_as_real: Op = view(
    "view_as_real(Tensor self) -> Tensor",
    _as_real,
    method=False,
    holomorphic=False,
    d_self=lambda g: view_as_complex.function(g.contiguous()),
    batch="leading",
    doc="A complex tensor as a real one with a last dimension (re, im).",
)
view_as_complex: Op = view(
    "view_as_complex(Tensor self) -> Tensor",
    _as_complex,
    method=False,
    holomorphic=False,
    d_self=lambda g: view_as_real.function(g),
    amp="float32",
    batch="leading",
    doc="A real tensor with a last dimension (re, im) as a complex one.",
)

# For writes through views of another kind (see core/inplace.py).
Tensor._as_pairs = view_as_real.function  # type: ignore[attr-defined]  # ops attach methods to the class
Tensor._of_pairs = view_as_complex.function  # type: ignore[attr-defined]  # ops attach methods to the class


def _polar(xp: ArrayModule, size: Array, angle: Array) -> Any:
    made = xp.empty(
        np.broadcast_shapes(size.shape, angle.shape), np.result_type(size.dtype, np.complex64)
    )
    xp.multiply(size, xp.cos(angle), out=made.real)
    xp.multiply(size, xp.sin(angle), out=made.imag)
    return made


def _need_floats(common: DType, args: Sequence[Any]) -> None:
    a, b = args[0].dtype, args[1].dtype
    for d in (a, b):
        if d.name not in ("float32", "float64", "float16"):
            raise RuntimeError(
                "Expected both inputs to be Half, Float or Double tensors but got "
                f"{a.legacy} and {b.legacy}"
            )
    if a is not b:
        raise RuntimeError(
            f"Expected object of scalar type {a.legacy} but got scalar type "
            f"{b.legacy} for second argument"
        )


def _along(g: Any, direction: Any) -> Any:
    """Re(ḡ·direction): the real gradient of a complex function of real numbers."""
    return (g * direction.conj()).real


polar: Op = pointwise(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    _polar,
    inplace=False,
    method=False,
    holomorphic=False,
    checks=_need_floats,
    d_abs=lambda g, angle: _along(g, polar.function(angle * 0 + 1, angle)),
    d_angle=lambda g, result: _along(g, result * 1j),
    amp="float32",
    out_type="object",
    doc="abs·(cos angle + i·sin angle).",
)

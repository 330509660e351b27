"""Borders around tensors: constant, reflected, repeated, circular.

Pads are written as PyTorch writes them: pairs (before, after) from the last dimension backwards.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.core.memory_order import assign, copied, has_channels_last, in_rows, kept
from toytorch.core.op import Op
from toytorch.core.scalars import as_element
from toytorch.facts.dtype import no_kernel
from toytorch.facts.hints import Array, ArrayModule, Fn, Shape, Sizes
from toytorch.ops.define import in_own_type, internal
from toytorch.ops.nn.linear_maps import Map, apply_all, picked, tied
from toytorch.ops.nn.windows import sizes_text


def _constant_pad(xp: ArrayModule, a: Array, pad: Shape, value: float) -> Any:
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) // 2 > a.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad "
            f"length is {len(pad)} while the input has {a.ndim} dimensions."
        )
    shape, into, source = list(a.shape), [slice(None)] * a.ndim, [slice(None)] * a.ndim
    for k in range(len(pad) // 2):
        d, before, after = a.ndim - 1 - k, pad[2 * k], pad[2 * k + 1]
        shape[d] = a.shape[d] + before + after
        if shape[d] < 0 and max(pad) <= 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        if shape[d] < 0:
            raise RuntimeError(
                f"The input size {a.shape[d]}, plus negative padding {before} and "
                f"{after}, resulted in a negative output size, which is invalid. "
                f"Check dimension {d} of your input."
            )
        into[d] = slice(max(before, 0), shape[d] - max(after, 0))
        source[d] = slice(max(-before, 0), a.shape[d] - max(-after, 0))
    if max(pad, default=0) <= 0 and a.__class__ is np.ndarray:
        seen = a[tuple(source)]
        return kept(copied(seen), seen)  # in PyTorch, too, a copy of a view
    last = a.__class__ is np.ndarray and has_channels_last(a)
    if last:
        shape.append(shape.pop(1))
    if value:
        made = xp.full(tuple(shape), as_element(np, value, a.dtype)[()], a.dtype)
    else:
        made = xp.zeros(tuple(shape), a.dtype)
    made = np.moveaxis(made, -1, 1) if last else made
    assign(made[tuple(into)], a[tuple(source)])
    return made


constant_pad_nd: Op = in_own_type(
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
    _constant_pad,
    forms="function",
    memory="",
    d_self=lambda g, pad: constant_pad_nd.function(g, [-p for p in pad], 0),
    doc="The tensor with a border of one value; negative pads cut off.",
)


# -- borders made of the tensor's own elements ----------------------------------------------------


def _reflected(size: int, before: int, after: int) -> Any:
    places = np.abs(np.arange(-before, size + after))
    return np.where(places < size, places, 2 * (size - 1) - places)


def _repeated(size: int, before: int, after: int) -> Any:
    return np.clip(np.arange(-before, size + after), 0, max(size - 1, 0))


def _around(size: int, before: int, after: int) -> Any:
    low, high = max(-before, 0), size - max(-after, 0)  # what negative pads leave goes round
    steps = np.arange(-max(before, 0), high - low + max(after, 0))
    return low + steps % max(high - low, 1)


@functools.lru_cache(64)
def _maps(places: Fn, sizes: Sizes, pad: Sizes) -> list[Map]:
    """For each padded dimension, the places that its elements come from."""
    n = len(pad) // 2
    return [
        picked(places(size, pad[2 * (n - 1 - k)], pad[2 * (n - 1 - k) + 1]), size)
        for k, size in enumerate(sizes[-n:])
    ]


def _check_reflection(a: Array, pad: Shape, name: str) -> None:
    n = len(pad) // 2
    for k in range(n):
        d, before, after = a.ndim - 1 - k, pad[2 * k], pad[2 * k + 1]
        if before >= a.shape[d] or after >= a.shape[d]:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, "
                f"but got: padding ({before}, {after}) at dimension {d} of input "
                f"{sizes_text(a.shape)}"
            )


def _check_circular(a: Array, pad: Sizes, name: str) -> None:
    for k in range(len(pad) // 2):
        d, before, after = a.ndim - 1 - k, pad[2 * k], pad[2 * k + 1]
        if before > a.shape[d] or after > a.shape[d]:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if a.shape[d] + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")


def _check_sizes(a: Array, pad: Shape) -> None:
    n = len(pad) // 2
    if a.ndim not in (n + 1, n + 2) or not all(a.shape[-n - 1 :]):
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and "
            f"other non-zero dimensions for input, but got: {sizes_text(a.shape)}"
        )


def _made_sizes(a: Array, pad: Shape) -> None:
    n = len(pad) // 2
    sizes = [a.shape[a.ndim - 1 - k] + pad[2 * k] + pad[2 * k + 1] for k in range(n)]
    if min(sizes) < 1:
        axes = "WHD"
        was = ", ".join(f"{axes[k]}: {a.shape[a.ndim - 1 - k]}" for k in reversed(range(n)))
        now = ", ".join(f"{axes[k]}: {sizes[k]}" for k in reversed(range(n)))
        raise RuntimeError(f"input ({was}) is too small. Calculated output {now}")


def narrow(pad: Shape) -> bool:
    """Whether a border has few enough lines to be copied one by one, round a block."""
    return bool(min(pad) >= 0 and sum(pad) <= 32)


def _lines(maps: list[Map], pad: Shape, ndim: int) -> list[tuple[Any, Any]]:
    """The lines of the border and the lines they repeat, as indices: dimension by dimension."""
    found = []
    for k, m in enumerate(maps):
        axis, before = ndim - len(maps) + k, pad[2 * (len(maps) - 1 - k)]
        lead = (slice(None),) * axis
        for i, source in enumerate(m.places[:, 0].tolist()):
            if not before <= i < before + m.size:
                found.append(((*lead, i), (*lead, source + before)))
    return found


def _inner(maps: list[Map], pad: Shape, ndim: int) -> tuple[Any, ...]:
    """Where the tensor itself lies inside its border."""
    n = len(maps)
    return (slice(None),) * (ndim - n) + tuple(
        slice(pad[2 * (n - 1 - k)], pad[2 * (n - 1 - k)] + m.size) for k, m in enumerate(maps)
    )


@functools.lru_cache(256)
def _frame(places: Fn, sizes: Sizes, pad: Sizes) -> tuple[Any, Any, Any]:
    """The shape with a border, where the tensor itself lies in it, and the lines around that."""
    maps = _maps(places, sizes, pad)
    shape = (*sizes[: len(sizes) - len(maps)], *(len(m.places) for m in maps))
    return shape, _inner(maps, pad, len(sizes)), _lines(maps, pad, len(sizes))


def _framed(xp: ArrayModule, a: Array, frame: tuple[Any, Any, Any]) -> Any:
    """The array with its border: one copy of the block, then the lines around it."""
    shape, inner, lines = frame
    made = xp.empty(shape, a.dtype)
    assign(made[inner], a)
    for line, source in lines:
        made[line] = made[source]
    return made


def _unframed(g: Array, frame: tuple[Any, Any, Any]) -> Any:
    """The derivative of `_framed`: every line is added to the one it repeats, last ones first."""
    _, inner, lines = frame
    total = g.copy()
    for line, source in reversed(lines):
        total[source] += total[line]
    return in_rows(total[inner])


def _border(name: str, places: Fn, check: Fn | None, doc: str, amp: str = "", node: str = "") -> Op:
    """A record that pads with elements of the tensor, and its derivative."""

    def forward(xp: ArrayModule, a: Array, pad: Shape) -> Any:
        if places is not _around:
            _check_sizes(a, pad)
        if check is not None:
            check(a, pad, name)
        if places is not _around:
            _made_sizes(a, pad)
            if a.dtype.kind == "b":
                raise no_kernel(name, a.dtype)
        if narrow(pad):
            return _framed(xp, a, _frame(places, tuple(a.shape), tuple(pad)))
        return apply_all(xp, a, _maps(places, a.shape, tuple(pad)))

    def backward(xp: ArrayModule, g: Array, shape: Sizes, pad: Shape) -> Any:
        if narrow(pad):
            return _unframed(g, _frame(places, tuple(shape), tuple(pad)))
        return apply_all(xp, g, _maps(places, tuple(shape), tuple(pad)), transposed=True)

    share = internal(
        f"{name}_backward(Tensor grad_output, int[] shape, int[] padding) -> Tensor",
        backward,
        d_grad_output=lambda g, padding: record.function(g, padding),
        doc=f"The gradient of {name}.",
    )
    record: Op = in_own_type(
        f"{name}(Tensor self, int[] padding) -> Tensor",
        forward,
        forms="function",
        node=node,
        d_self=lambda g, self, padding: tied(
            share.function(g, tuple(self.shape), padding), None if places is _around else self
        ),
        memory="rows" if places is _around else "format",
        amp=amp,
        doc=doc,
    )
    return record


UNPADDED = (
    "Padding size {} is not supported for {}D input tensor.\n"
    "Supported combinations for non-constant padding:\n"
    "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
    "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
    "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
)

REFLECT = [
    _border(
        f"reflection_pad{n}d",
        _reflected,
        _check_reflection,
        "A border that mirrors the tensor.",
        "float32" if n < 3 else "",
    )
    for n in (1, 2, 3)
]
REPLICATE = [
    _border(
        f"replication_pad{n}d",
        _repeated,
        None,
        "A border that repeats the outermost elements.",
        "float32",
    )
    for n in (1, 2, 3)
]
circular = _border(
    "_pad_circular",
    _around,
    _check_circular,
    "A border from the opposite side.",
    node="CopySlices",  # PyTorch writes the parts into what it returns
)

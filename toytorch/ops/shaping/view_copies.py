"""Views as copies (`expand_copy` …), and copies with a view written over (`select_scatter` …)."""

from __future__ import annotations

from typing import Any

from toytorch.backends import base
from toytorch.core.op import Op
from toytorch.core.record import refuse_complex
from toytorch.core.tensor import Tensor
from toytorch.core.write import need_out, refuse_grad, refuse_leaf, warn_of_size
from toytorch.facts import state
from toytorch.facts.hints import Array, ArrayModule, DType, Fn, Shape, Sizes
from toytorch.facts.schema import wrong_argument
from toytorch.facts.size import wrap_dim
from toytorch.ops.creation import convert, create, ranges
from toytorch.ops.define import in_own_type, on_tensors, public, underived, with_words
from toytorch.ops.elementwise import complex_numbers
from toytorch.ops.shaping import several, slices, strided, view
from toytorch.ops.shaping.reshape import expand, split_with_sizes, unbind

# -- fresh memory for what a view shows -----------------------------------------------------------


def _expand(self: Tensor, size: Sizes, *, implicit: bool = False) -> Tensor:
    return expand(self, tuple(size))


def _narrow(self: Tensor, dim: int, start: int, length: int) -> Any:
    if dim >= self.ndim > 0:
        raise RuntimeError(f"narrow_copy(): expected dim < {self.ndim}, but got dim = {dim}")
    if self.ndim:
        wrap_dim(dim, self.ndim)
    if self.is_sparse:
        if not 0 <= start <= start + length <= self.shape[dim]:
            raise RuntimeError(
                "Invalid range to narrow. range(start, start+length) must be a subset of "
                f"range(0, {self.shape[dim]})."
            )
        return self.index_select(dim, ranges.arange(start, start + length))
    n = self.shape[dim] if self.ndim else 0
    if length < 0 and self.ndim and -n <= start <= n:
        begin = start + n if start < 0 else start
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({n}).")
    return slices.narrow.function(self, dim, start, max(length, 0))


def _view(self: Tensor, *shape_: Any, dtype: DType | None = None) -> Any:
    """A view, or where strides allow none a copy that has the sizes."""
    sizes = dtype is None and all(isinstance(n, (int, tuple, list)) for n in shape_)
    return convert.view_(self.contiguous() if sizes else self, *shape_, dtype=dtype)


SEVERAL = ("split", "split_with_sizes", "unbind")  # whose results are several
SIZES = {"as_strided": "size", "expand": "size", "permute": "dims", "view": "size"}
VIEWS = {
    "alias": view.alias.function, "as_strided": strided.as_strided.function, "expand": _expand,
    "detach": convert.detach, "diagonal": slices.diagonal.function, "narrow": _narrow,
    "permute": view.permute.function, "select": slices.select.function,
    "slice": slices.slice_.function, "t": view.t.function, "split": several.split.function,
    "split_with_sizes": split_with_sizes, "squeeze": view.squeeze.function,
    "transpose": view.transpose.function, "unbind": unbind, "unfold": slices.unfold.function,
    "unsqueeze": view.unsqueeze.function, "view": _view,
    "view_as_complex": complex_numbers.view_as_complex.function,
    "view_as_real": complex_numbers.view_as_real.function,
}  # fmt: skip


detached = in_own_type(
    "_detach_copy(Tensor self) -> Tensor",
    lambda xp, a: xp.array(a, order="C"),
    node="NotImplemented",
    d_self=underived("aten::detach_copy"),
    fresh=True,
    doc="A copy that says of its derivative that there is none.",
)


def _shape_out(out: Any, made: Tensor) -> None:
    """Gives out= the result's shape also where its type is refused, as PyTorch does; that is no
    write yet."""
    if out is not None and out.dtype is not made.dtype and out.shape != made.shape:
        written = out._memory().version
        out.resize_(made.shape)
        out._memory().version = written


def _copying(name: str, show: Fn) -> Any:
    show = with_words(show) if show.__module__ != "toytorch.ops" else show  # records' know words

    aten = "" if name in ("narrow", "split") else f"{name}_copy"

    def function(*args: Any, out: Any = None, **kwargs: int) -> Any:
        if "self" in kwargs:
            raise TypeError(f'{name}_copy() missing 1 required positional arguments: "input"')
        if name in SIZES and len(args) > 1 and isinstance(args[1], int):  # one by one
            raise wrong_argument(f"{name}_copy", SIZES[name], 2, "tuple of ints", args[1])
        sources = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        if out is not None:
            need_out(f"{name}_copy", out, -1 if name in SEVERAL else 1)
        if aten and isinstance(out, Tensor):
            refuse_leaf(aten, out)
        if name == "narrow" and out is not None:
            refuse_grad("narrow_copy", sources, out)
        made = show(*args, **kwargs)
        if name == "narrow" and out is not None and out.dtype is not made.dtype:
            raise RuntimeError(
                "Expected self.dtype() == output.dtype() to be true, but got false.  (Could this "
                "error message be improved?  If so, please report an enhancement request to "
                "PyTorch.)"
            )
        if isinstance(made, Tensor):
            order = None if made.is_sparse else convert.CONTIGUOUS
            if out is None and name == "detach" and not made.is_sparse:
                return detached.function(*sources)
            if name == "slice" and out is None and made._requires_grad:
                refuse_complex("slice_copy", made)
            copy = made.clone(memory_format=order)
            _shape_out(out, copy)
            return create.put_out(copy, out, same=True, aten=aten, of=sources)
        outs: Any = [None] * len(made) if out is None else out
        if len(outs) != len(made):
            raise RuntimeError(
                f"{name}_copy_out() expected an out= argument of size {len(made)}, "
                f"got size {len(outs)}"
            )
        pieces = made
        if out is None or name != "split":  # which only writes
            pieces = [m.clone(memory_format=convert.CONTIGUOUS) for m in made]
        if out is None:
            return tuple(pieces)
        if name == "unbind":
            refuse_grad("unbind_copy", (), tuple(outs))
        before = state.local.grad
        state.set_grad(False)  # what is written has no history
        try:
            for piece, target in zip(pieces, outs):
                if name == "split":
                    target.copy_(piece)
                    continue
                if target.shape != piece.shape:  # which PyTorch counts as a write, here
                    warn_of_size(target, piece.shape)
                    target.resize_(piece.shape)
                create.put_out(piece, target, same=True)
        finally:
            state.set_grad(before)
        return None

    return public(f"{name}_copy", doc=f"`{name}` in fresh memory.")(function)


for _name, _show in VIEWS.items():
    _copying(_name, _show)
on_tensors(narrow_copy=_copying("narrow", _narrow))

# -- copies with a part written over --------------------------------------------------------------


def _whole_clone(a: Array) -> tuple[Any, int]:
    """A copy of all the memory behind an array, shown as the array shows it, and where it starts."""
    backend = base.of_array(a)
    flat = backend.flat(a)
    memory = flat.copy() if flat.dtype == a.dtype else flat.view(a.dtype).copy()
    start = (backend.data_ptr(a) - backend.data_ptr(flat)) // a.itemsize if a.size else 0
    strides = tuple(s // a.itemsize for s in a.strides)
    return backend.as_strided(memory, a.shape, strides, start), start


def _clone(a: Array) -> Any:
    """A copy with the strides of an array, and of all the memory behind it; in rows where elements
    share a place."""
    whole = a.flags.c_contiguous and a.size == base.of_array(a).flat(a).size
    if whole or any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape)):
        return a.copy("C")
    return _whole_clone(a)[0]


def _written(xp: ArrayModule, a: Array, src: Array, show: Fn) -> Any:
    result = _clone(a)
    _fill(show(result), src)
    return result


def _fill(part: Array, src: Array) -> None:
    if part.shape != src.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(part.shape)}"
        )
    part[...] = src


def _slice_scatter(
    xp: ArrayModule, a: Array, src: Array, dim: int, start: int | None, end: int | None, step: int
) -> Any:
    d = wrap_dim(dim, a.ndim)
    if step < 1:
        raise RuntimeError("slice step must be positive")
    place = (slice(None),) * d + (slice(start, end, step),)
    return _written(xp, a, src, lambda x: x[place])


slice_scatter: Op = in_own_type(
    "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, "
    "int step=1) -> Tensor",
    _slice_scatter,
    d_self=lambda g, src_shape, dim, start, end, step: slice_scatter.function(
        g, g.new_zeros(src_shape), dim, start, end, step
    ),
    d_src=lambda g, dim, start, end, step: slices.slice_.function(g, dim, start, end, step),
    of_reals="slice_scatter",
    doc="A copy with src written over a slice.",
    out_type="same",
    out_history="none",
    out_rows=True,
)


def _select_scatter(xp: ArrayModule, a: Array, src: Array, dim: int, index: int) -> Any:
    return _written(xp, a, src, lambda x: slices._select(xp, x, dim, index))


select_scatter: Op = in_own_type(
    "select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor",
    _select_scatter,
    d_self=lambda g, src_shape, dim, index: select_scatter.function(
        g, g.new_zeros(src_shape), dim, index
    ),
    d_src=lambda g, dim, index: g.select(dim, index),
    doc="A copy with src written over one place of a dimension.",
    forms="function method",
)


def _diagonal_scatter(
    xp: ArrayModule, a: Array, src: Array, offset: int, dim1: int, dim2: int
) -> Any:
    return _written(xp, a, src, lambda x: slices._diagonal(xp, x, offset, dim1, dim2))


diagonal_scatter: Op = in_own_type(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    _diagonal_scatter,
    d_self=lambda g, src_shape, offset, dim1, dim2: diagonal_scatter.function(
        g, g.new_zeros(src_shape), offset, dim1, dim2
    ),
    d_src=lambda g, offset, dim1, dim2: g.diagonal(offset, dim1, dim2),
    doc="A copy with src written over a diagonal.",
    forms="function method",
)


def _as_strided_scatter(
    xp: Any, a: Array, src: Array, size: Any, stride: Any, storage_offset: Any
) -> Any:
    whole, start = _whole_clone(a)
    if any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape)):
        whole, start = xp.array(a, order="C"), 0
    part = strided._as_strided(
        xp, whole, size, stride, start if storage_offset is None else storage_offset
    )
    _fill(part, src)
    return whole


def _inside(self_layout: Any, size: Shape, stride: Shape, storage_offset: Any) -> tuple[Any, ...]:
    """Sizes and strides of a tensor, and of a part of it with where that begins."""
    start = 0 if storage_offset is None else int(storage_offset - self_layout[2])
    return (*self_layout[:2], tuple(size), tuple(stride), start)


as_strided_scatter: Op = in_own_type(
    "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, "
    "int? storage_offset=None) -> Tensor",
    _as_strided_scatter,
    d_self=lambda g, self_layout, src_shape, size, stride, storage_offset: g._fill_strided(
        g.new_zeros(src_shape), *_inside(self_layout, size, stride, storage_offset)
    ),
    d_src=lambda g, self_layout, size, stride, storage_offset: g._gather_strided(
        *_inside(self_layout, size, stride, storage_offset)
    ),
    doc="A copy with src written over any layout of its memory.",
    forms="function method",
)

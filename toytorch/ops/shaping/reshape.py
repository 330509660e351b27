"""Other shapes of the same elements: functions composed of the views in `view`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.core.views import made_view, quick
from toytorch.facts import dtype as types
from toytorch.facts import state, warned
from toytorch.facts.hints import Ints, Sizes
from toytorch.facts.size import WHOLE, broadcast_pair, infer_size, wrap_dim
from toytorch.facts.size import broadcast_shapes as common_shape
from toytorch.ops.creation import convert
from toytorch.ops.define import PUBLIC, on_tensors, public
from toytorch.ops.elementwise.complex_numbers import conj
from toytorch.ops.named_dims import flattened, unflattened
from toytorch.ops.shaping import rearrange, several, slices, view


@public(method=True)
def expand(self: Tensor, *sizes: Ints, size: Sizes | None = None, implicit: bool = False) -> Tensor:
    """Dimensions of size 1 repeated with stride 0; -1 keeps a size."""
    if size is None and sizes and self.__class__ is Tensor:
        first: Any = sizes[0]
        whole = first.__class__ is tuple or first.__class__ is list  # not `several`, a module here
        made = view.quick_expand(self, tuple(first) if whole and len(sizes) == 1 else sizes)
        if made is not None:
            return made
    return view.expand.function(self, *(sizes if size is None else (size,)))


@public(method=True)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of another tensor."""
    return view.expand.function(self, tuple(other.shape))


@public("broadcast_to", method=True, one_by_one=True)
def broadcast_to(input: Tensor, size: Sizes) -> Tensor:
    """`expand` as a function."""
    return view.expand.function(input, tuple(size))


@public("broadcast_tensors", tensor_first=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors expanded to their common shape."""
    need_tensors(tensors)
    common = dims_of(tensors)
    return tuple(t if t.shape == common else view.expand.function(t, common) for t in tensors)


@public("broadcast_shapes", tensor_first=False)
def broadcast_shapes(*shapes: Ints) -> Any:
    """The shape that shapes broadcast to."""
    return common_shape(*shapes)


def need_tensors(tensors: tuple[Any, ...]) -> None:
    """Refuses a list with something else in it, in PyTorch's words."""
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}"
            )


def dims_of(tensors: Any) -> tuple[int, ...]:
    """The common shape of tensors."""
    common: tuple[int, ...] = ()
    for t in tensors:
        common = broadcast_pair(common, t.shape)
    return common


@public(method=True)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """`view` in the shape of another tensor."""
    return view.viewed(self, tuple(other.shape))


@public(method=True)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of another tensor."""
    return convert.reshape(self, tuple(other.shape))


@public("flatten", method=True)
def flatten(
    input: Tensor, start_dim: int | str | Sequence[str] = 0, end_dim: int | str = -1
) -> Tensor:
    """Dimensions from start to end as one; by names flatten(first, last), or flatten(dims, out_dim).

    >>> flatten(Tensor(2, 3, 4), 1).shape
    torch.Size([2, 12])
    """
    array = input._array
    if start_dim == 0 and end_dim == -1 and array.ndim > 1 and array.flags.c_contiguous:
        made = view.quick_view(input, (-1,))
        if made is not None:
            return made
    first, last = start_dim, end_dim
    if isinstance(first, (list, tuple)):
        return flattened(input, first, str(last))
    if isinstance(first, str):
        first, last = input.names.index(first), input.names.index(last)
    n = array.ndim
    first, last = wrap_dim(first, n), wrap_dim(last, n)
    if n == 0:
        return convert.reshape(input, 1)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last:
        return input
    # Where a function is traced, the sizes of a shape are no plain numbers.
    sizes = input.shape if state.fast_path is state.SLOW else input._array.shape
    return convert.reshape(
        input, (*sizes[:first], math.prod(sizes[first : last + 1]), *sizes[last + 1 :])
    )


@public("ravel", method=True)
def ravel(input: Tensor) -> Tensor:
    """One dimension."""
    return convert.reshape(convert.contiguous(input), -1)


@public("unflatten", method=True)
def unflatten(input: Tensor, dim: int, sizes: Sequence[Any]) -> Tensor:
    """A dimension as several."""
    if isinstance(dim, str):
        return unflattened(input, dim, sizes)
    shape = input._array.shape
    d = dim if dim.__class__ is int and 0 <= dim < len(shape) else wrap_dim(dim, len(shape))
    sizes = tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not shape:
        raise RuntimeError(
            "unflatten got an unexpected error:\nDimension specified as 0 but "
            "tensor has no dimensions"
        )
    try:
        if min(sizes) < 1 or math.prod(sizes) != shape[d]:
            sizes = infer_size(sizes, shape[d])
    except RuntimeError as error:
        if "one dimension" in str(error):
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size "
            f"of dim {d} ({shape[d]}) in the input tensor"
        ) from None
    return view.viewed(input, (*shape[:d], *sizes, *shape[d + 1 :]))


@public("movedim", "moveaxis", method=True)
def movedim(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """Dimensions moved to other places, the rest keeping their order."""
    if source.__class__ is int is destination.__class__:
        n = input._array.ndim
        order = list(range(n or 1))
        one = order.pop(source if 0 <= source < n else wrap_dim(source, n))
        order.insert(destination if 0 <= destination < n else wrap_dim(destination, n), one)
        if n and quick(input):
            made = input._array.transpose(order)
            return made_view(view.permute, (input, tuple(order)), made)
        return view.permute.function(input, *order) if n else view.alias.function(input)
    source = (source,) if isinstance(source, int) else tuple(source)
    destination = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should "
            f"contain the same number of dims as destination ({list(destination)} dims)"
        )
    n = input._array.ndim
    src, dst = ([wrap_dim(d, n) for d in dims] for dims in (source, destination))
    for name, dims, wrapped in ("source", source, src), ("destination", destination, dst):
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    if not n:
        return view.alias.function(input)
    places = dict(zip(dst, src))
    rest = (d for d in range(n) if d not in src)
    return view.permute.function(
        input, tuple([places[d] if d in places else next(rest) for d in range(n)])
    )


@public("swapaxes", "swapdims", method=True, words={"dim0": "axis0", "dim1": "axis1"})
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """`transpose` under NumPy's name."""
    return view.transpose.function(input, axis0, axis1)


@public("adjoint", method=True)
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    return conj(_swapped(input, "adjoint()"))


def _swapped(x: Tensor, name: str) -> Tensor:
    if x.ndim == 0:
        return x
    if x.ndim == 1:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. "
            f"Got {x.ndim}-D tensor."
        )
    return view.transpose.function(x, -2, -1)


def _transposed(self: Tensor) -> Tensor:
    if quick(self) and self._array.ndim == 2:
        return made_view(view.permute, (self, (1, 0)), self._array.T)
    if self.ndim not in (0, 2):
        warned.once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
            "deprecated and it will throw an error in a future release. Consider `x.mT` to transpose "
            "batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the "
            "dimensions of a tensor."
        )
    return view.permute.function(self, tuple(reversed(range(self.ndim))))


def _hermitian(self: Tensor) -> Tensor:
    if self.ndim not in (0, 2):
        more = " For batches of matrices, consider using tensor.mH" if self.ndim > 2 else ""
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.{more}"
        )
    return conj(_swapped(self, "H"))


on_tensors(
    moveaxis=movedim,
    swapdims=PUBLIC["swapdims"],
    repeat=rearrange.repeat.function,
    T=property(_transposed),
    mT=property(lambda self: _swapped(self, "mT")),
    H=property(_hermitian),
    mH=property(lambda self: conj(_swapped(self, "mH"))),
)

# -- parts of a dimension --------------------------------------------------------------------------


# How PyTorch calls the two things that one parameter takes.
PLACES = dict.fromkeys(
    ("indices", "sections", "tensor_indices_or_sections"), "indices_or_sections"
)  # fmt: skip


@public("split", tensor_first=False, numpy=False)
def split_anything(tensor: Any, split_size_or_sections: Any, dim: Any = 0) -> tuple[Tensor, ...]:
    """`tensor.split(…)`, whatever that is: PyTorch asks no more of its first argument."""
    return tensor.split(split_size_or_sections, dim)


@public(method=True, words={"split_size": "split_size_or_sections"}, numpy=False)
def split(tensor: Tensor, split_size_or_sections: Ints, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a dimension, as views: of one size, or of given sizes.

    >>> [len(p) for p in split(Tensor([1, 2, 3, 4, 5]), 2)]
    [2, 2, 1]
    """
    if isinstance(split_size_or_sections, (list, tuple)):
        return tuple(several.split_with_sizes.function(tensor, split_size_or_sections, dim))
    return tuple(several.split.function(tensor, split_size_or_sections, dim))


@public("split_with_sizes", method=True)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of given sizes."""
    return tuple(several.split_with_sizes.function(input, list(split_sizes), dim))


def size_of_chunks(input: Tensor, chunks: int, dim: int) -> int:
    """The size of all parts but the last."""
    shape = input._array.shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks >> 63 > 0:
        raise OverflowError  # whoever called says it in PyTorch's words
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    return -(-shape[wrap_dim(dim, len(shape))] // chunks)


@public("chunk", method=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """A dimension in at most `chunks` parts of equal size."""
    size = size_of_chunks(input, chunks, dim)
    if size == 0:
        return tuple(several.split_with_sizes.function(input, [0] * chunks, dim))
    return tuple(several.split.function(input, size, dim))


@public("tensor_split", method=True, words=PLACES)
def tensor_split(
    input: Tensor, indices_or_sections: Ints | Tensor, dim: int = 0
) -> tuple[Tensor, ...]:
    """Parts of nearly equal size, or parts cut at given places."""
    if input.ndim == 0:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    d = wrap_dim(dim, input.ndim)
    n = input.shape[d]
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                f"one-dimensional tensor, but got a tensor with {indices_or_sections.ndim} dims"
            )
        if indices_or_sections.dtype is not types.int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{indices_or_sections.dtype.legacy}"
            )
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, WHOLE):
        parts = indices_or_sections
        if parts >> 63 > 0:
            raise OverflowError  # whoever called says it in PyTorch's words
        if parts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {parts}")
        small, extra = divmod(n, parts)
        cuts = [small * i + min(i, extra) for i in range(1, parts)]
    else:
        cuts = list(indices_or_sections)
    edges = [0, *cuts, None]
    return tuple(slices.slice_.function(input, d, a, b, 1) for a, b in zip(edges, edges[1:]))


@public("unbind", method=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices of a dimension, as views."""
    return tuple(several.unbind.function(input, dim))


@public(method=True)
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Sliding windows over a dimension, in a new last dimension."""
    return slices.unfold.function(self, dimension, size, step)

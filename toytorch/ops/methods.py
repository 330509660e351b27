"""Functions composed of ops, calls that choose between ops, and the operators of Python."""

from __future__ import annotations

import builtins
import functools
import math
from typing import Any

import numpy as np

from toytorch.core import dispatch, fast
from toytorch.core import dtype as types
from toytorch.core import inplace as writing
from toytorch.core.function import spread
from toytorch.core.size import broadcast_shapes as _broadcast_shapes
from toytorch.core.size import wrap_dim, wrap_dims
from toytorch.core.tensor import Tensor, wrap
from toytorch.ops import (
    compare,
    convert,
    create,
    index,
    matmul,
    pointwise,
    random,
    reduce,
    shape,
    sort,
    special,
    view,
)
from toytorch.ops.results import return_type

NUMBERS = dispatch.NUMBERS

LISTS = ("hstack", "vstack", "dstack", "column_stack", "meshgrid", "cartesian_prod", "einsum",
         "broadcast_tensors", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes",
         "is_tensor", "can_cast", "result_type", "polygamma", "searchsorted", "bucketize")


ATTRIBUTES = {"norm": "layout", "tensordot": "dim"}  # what PyTorch looks for first


def speak_of_tensors(function: Any, name: str) -> Any:
    """The function, with PyTorch's words where its first argument is no tensor."""
    if name in LISTS:
        return function

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if args and not isinstance(args[0], Tensor):
            if name in ATTRIBUTES:
                raise AttributeError(f"'{type(args[0]).__name__}' object has no attribute "
                                     f"'{ATTRIBUTES[name]}'")
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not "
                            f"{type(args[0]).__name__}")
        return function(*args, **kwargs)
    return checked


# -- choices between records ----------------------------------------------------------------------


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Tensor:
    """Quotient; rounding_mode "trunc" or "floor" rounds it.

    >>> div(create.tensor([7., -7.]), 2, rounding_mode="floor")
    tensor([ 3., -4.])
    """
    if rounding_mode is None:
        return pointwise.div.function(input, other, out=out)  # type: ignore[no-any-return]
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError("div expected rounding_mode to be one of None, 'trunc', or 'floor' but "
                           f"found '{rounding_mode}'")
    op = pointwise.div_floor if rounding_mode == "floor" else pointwise.div_trunc
    return op.function(input, other, out=out)  # type: ignore[no-any-return]


def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place quotient."""
    op = {None: pointwise.div, "floor": pointwise.div_floor, "trunc": pointwise.div_trunc}.get(
        rounding_mode)
    if op is None:
        return div(self, other, rounding_mode=rounding_mode)
    return dispatch.inplace(op, (self, other))


def max(input: Tensor, dim: Any = None, keepdim: builtins.bool = False, *, other: Any = None,
        out: Any = None) -> Any:
    """The largest element; with a dimension (values, indices); with a tensor `maximum`.

    >>> max(create.tensor([3., 5.]), 0).indices
    tensor(1)
    """
    if other is not None or isinstance(dim, Tensor):
        return pointwise.maximum.function(input, dim if other is None else other, out=out)
    if dim is None:
        return reduce.max_all.function(input, out=out)
    return return_type("max", reduce.max_dim.function(input, dim, keepdim, out=out))


def min(input: Tensor, dim: Any = None, keepdim: builtins.bool = False, *, other: Any = None,
        out: Any = None) -> Any:
    """The smallest element; with a dimension (values, indices); with a tensor `minimum`."""
    if other is not None or isinstance(dim, Tensor):
        return pointwise.minimum.function(input, dim if other is None else other, out=out)
    if dim is None:
        return reduce.min_all.function(input, out=out)
    return return_type("min", reduce.min_dim.function(input, dim, keepdim, out=out))


def median(input: Tensor, dim: Any = None, keepdim: builtins.bool = False) -> Any:
    """The middle element (the lower of two); with a dimension (values, indices)."""
    if dim is None:
        return sort.median.function(input)
    return return_type("median", sort.median_dim.function(input, dim, keepdim))


def _tuple_results(name: str, op: Any) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        return return_type(name, op.function(*args, **kwargs))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = op.function.__doc__
    return function


sort_, topk = _tuple_results("sort", sort.sort), _tuple_results("topk", sort.topk)
kthvalue = _tuple_results("kthvalue", sort.kthvalue)
cummax, cummin = _tuple_results("cummax", reduce.cummax), _tuple_results("cummin", reduce.cummin)


def argsort(input: Tensor, dim: int = -1, descending: builtins.bool = False,
            stable: builtins.bool = False, *, out: Any = None) -> Tensor:
    """Indices that put a dimension in order.

    >>> argsort(create.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return create.put_out(sort.sort.function(input, dim, descending, stable)[1], out)


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """input where the condition holds, other elsewhere; alone: the places where it holds.

    >>> where(create.tensor([True, False]), 1, 2)
    tensor([1, 2])
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if not isinstance(condition, Tensor):
        raise TypeError("where(): argument 'condition' (position 1) must be Tensor, not "
                        f"{type(condition).__name__}")
    if condition.dtype is not types.bool:
        if condition.dtype is not types.uint8:
            raise RuntimeError("where expected condition to be a boolean tensor, but got a tensor "
                               f"with dtype {condition.dtype.legacy}")
        condition = condition.to(types.bool)
    common = result_type(input, other)
    operands = [v.to(common) if isinstance(v, Tensor) else
                create.tensor(v, dtype=common, device=condition.device) for v in (input, other)]
    return index.where.function(condition, *operands, out=out)


def nonzero(input: Tensor, *, as_tuple: builtins.bool = False, out: Any = None) -> Any:
    """The places of non-zero elements: one a row, or one tensor a dimension.

    >>> nonzero(create.tensor([0, 5, 7]))
    tensor([[1],
            [2]])
    """
    if as_tuple:
        rows = nonzero(input.reshape(1) if input.ndim == 0 else input)
        return tuple(rows.unbind(1))
    return index.nonzero.function(input, out=out)


def scatter(input: Tensor, dim: int, index_: Any = None, src: Any = None, *, value: Any = None,
            reduce: str | None = None, index: Any = None, out: Any = None) -> Tensor:
    """A copy with src (or a value) written at the places that index names."""
    index_ = index if index_ is None else index_
    source = value if src is None else src
    if reduce is not None:
        raise RuntimeError("scatter(reduce=...) is deprecated in PyTorch; use scatter_add or "
                           "scatter_reduce")
    return _scatter_op(input, dim, index_, source, out=out)


def _scatter_op(input: Any, dim: Any, index_: Any, source: Any, out: Any = None) -> Tensor:
    if not isinstance(source, Tensor):
        source = scalar_like(input, source)
    return index.scatter.function(input, dim, index_, source, out=out)  # type: ignore[no-any-return]


def scalar_like(like: Tensor, value: Any) -> Tensor:
    """A number as a 0-d tensor of the type and place of another tensor."""
    return create.tensor(value, dtype=like.dtype, device=like.device)


def scatter_(self: Tensor, dim: int, index_: Any = None, src: Any = None, *, value: Any = None,
             reduce: str | None = None, index: Any = None) -> Tensor:
    """Writes src (or a value) at the places that index names."""
    index_ = index if index_ is None else index_
    source = value if src is None else src
    source = source if isinstance(source, Tensor) else scalar_like(self, source)
    if reduce == "add":
        return dispatch.inplace(_records()["scatter_add"], (self, dim, index_, source))
    return dispatch.inplace(_records()["scatter"], (self, dim, index_, source))


def _records() -> Any:
    from toytorch.core.op import registry
    return registry


def index_put(input: Tensor, indices: Any, values: Tensor,
              accumulate: builtins.bool = False) -> Tensor:
    """A copy with values written at index tensors."""
    return index.index_put.function(input, _full_indices(input, indices),  # type: ignore
                                    values, accumulate)


def index_put_(self: Tensor, indices: Any, values: Tensor,
               accumulate: builtins.bool = False) -> Tensor:
    """Writes values at index tensors."""
    return dispatch.inplace(index.index_put, (self, _full_indices(self, indices), values,
                                              accumulate))


def _full_indices(x: Tensor, indices: Any) -> list[Any]:
    found: list[Any] = []
    for i in indices:
        if i is not None and i.dtype in (types.bool, types.uint8):
            found += [wrap(p) for p in i._array.nonzero()]
        else:
            found.append(i)
    return found


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *,
                   out: Any = None) -> Tensor:
    """Elements at indices along a dimension, with the other dimensions broadcast."""
    if indices.dtype is not types.int64:
        raise RuntimeError("torch.take_along_dim(): dtype of indices should be Long but got "
                           f"{indices.dtype.legacy}")
    if dim is None:
        flat = input.reshape(-1)
        return flat.gather(0, indices.reshape(-1), out=out)  # type: ignore
    if input.ndim != indices.ndim:
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number "
                           f"of dimensions, but got {input.ndim} dimensions for input, and "
                           f"{indices.ndim} dimensions for indices")
    d = wrap_dim(dim, input.ndim)
    common = list(_broadcast_shapes(
        [1 if i == d else n for i, n in enumerate(input.shape)],
        [1 if i == d else n for i, n in enumerate(indices.shape)]))
    a = input.expand([input.shape[i] if i == d else n for i, n in enumerate(common)])
    b = indices.expand([indices.shape[i] if i == d else n for i, n in enumerate(common)])
    return a.gather(d, b, out=out)  # type: ignore[no-any-return]


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: builtins.bool = False,
         out: Any = None, dtype: Any = None) -> Tensor:
    """The p-norm over dimensions; "fro" is the Euclidean one."""
    order = 2 if p in ("fro", None) else builtins.float(p)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm(): p={p!r} is not supported here; use torch.linalg.norm")
    return reduce.vector_norm.function(input, order, dim, keepdim,  # type: ignore[no-any-return]
                                       dtype=dtype, out=out)


def _variance(name: str, op: Any) -> Any:
    def function(input: Tensor, dim: Any = None, unbiased: Any = None,
                 keepdim: builtins.bool = False, *, correction: Any = 1, out: Any = None) -> Tensor:
        if isinstance(dim, builtins.bool):
            dim, unbiased = None, dim
        if unbiased is not None:
            correction = 1 if unbiased else 0
        correction = 1 if correction is None else correction
        return op.function(input, dim, correction=correction,  # type: ignore[no-any-return]
                           keepdim=keepdim, out=out)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = op.doc
    return function


var, std = _variance("var", reduce.var), _variance("std", reduce.std)


def var_mean(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: builtins.bool = False,
             *, correction: Any = 1) -> tuple[Tensor, Tensor]:
    """Variance and mean."""
    return (var(input, dim, unbiased, keepdim, correction=correction),
            _welford_mean(input, None if isinstance(dim, builtins.bool) else dim, keepdim))


def std_mean(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: builtins.bool = False,
             *, correction: Any = 1) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean."""
    return (std(input, dim, unbiased, keepdim, correction=correction),
            _welford_mean(input, None if isinstance(dim, builtins.bool) else dim, keepdim))


def _welford_mean(input: Tensor, dim: Any, keepdim: builtins.bool) -> Tensor:
    """The mean as a running update finds it: NaN where an infinity came in."""
    mean = input.mean(dim, keepdim)
    return mean.masked_fill(mean.isinf(), math.nan)  # type: ignore[no-any-return]


def clip(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """`clamp` under NumPy's name."""
    return pointwise.clamp.function(input, min, max, out=out)  # type: ignore[no-any-return]


def logsumexp(input: Tensor, dim: Any, keepdim: builtins.bool = False, *,
              out: Any = None) -> Tensor:
    """log Σ eˣ over dimensions, without overflow."""
    return reduce.logsumexp.function(input, dim, keepdim, out=out)  # type: ignore[no-any-return]


# -- views ----------------------------------------------------------------------------------------


def expand(self: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """Dimensions of size 1 repeated with stride 0; -1 keeps a size."""
    return view.expand.function(self, *(sizes if size is None else (size,)))  # type: ignore


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of another tensor."""
    return view.expand.function(self, tuple(other.shape))  # type: ignore[no-any-return]


def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """`expand` as a function."""
    return view.expand.function(input, tuple(size))  # type: ignore[no-any-return]


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors expanded to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    need_tensors(tensors)
    common = dims_of(tensors)
    return tuple(view.expand.function(t, common) for t in tensors)


def need_tensors(tensors: Any) -> None:
    """Refuses a list with something else in it, in PyTorch's words."""
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got "
                            f"{type(t).__name__}")


def dims_of(tensors: Any) -> tuple[int, ...]:
    """The common shape of tensors."""
    from toytorch.core.size import broadcast_pair
    common: tuple[int, ...] = ()
    for t in tensors:
        common = broadcast_pair(common, t.shape)
    return common


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """`view` in the shape of another tensor."""
    return view.view_.function(self, tuple(other.shape))  # type: ignore[no-any-return]


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of another tensor."""
    return convert.reshape(self, tuple(other.shape))


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions from start to end as one.

    >>> flatten(create.zeros(2, 3, 4), 1).shape
    torch.Size([2, 12])
    """
    first, last = wrap_dim(start_dim, input.ndim), wrap_dim(end_dim, input.ndim)
    if input.ndim == 0:
        return convert.reshape(input, 1)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last:
        return input
    sizes = input.shape
    return convert.reshape(input, (*sizes[:first], math.prod(sizes[first:last + 1]),
                                   *sizes[last + 1:]))


def ravel(input: Tensor) -> Tensor:
    """One dimension."""
    return convert.reshape(convert.contiguous(input), -1)


def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """A dimension as several."""
    from toytorch.core.size import infer_size
    d = wrap_dim(dim, input.ndim)
    sizes = tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        sizes = infer_size(sizes, input.shape[d])
    except RuntimeError:
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size "
                           f"of dim {d} ({input.shape[d]}) in the input tensor") from None
    return input.view((*input.shape[:d], *sizes, *input.shape[d + 1:]))  # type: ignore


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions moved to other places, the rest keeping their order."""
    source = (source,) if isinstance(source, int) else tuple(source)
    destination = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(source) != len(destination):
        raise RuntimeError("movedim: Invalid source or destination dims: source ("
                           f"{list(source)} dims) should contain the same number of dims as "
                           f"destination ({list(destination)} dims)")
    for name, dims in (("source", source), ("destination", destination)):
        wrapped = [wrap_dim(d, input.ndim) for d in dims]
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    src, dst = wrap_dims(source, input.ndim), wrap_dims(destination, input.ndim)
    rest = iter(d for d in range(input.ndim) if d not in src)
    places = dict(zip(dst, src))
    return view.permute.function(  # type: ignore[no-any-return]
        input, tuple(places[d] if d in places else next(rest) for d in range(input.ndim)))


moveaxis = movedim


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """`transpose` under NumPy's name."""
    return view.transpose.function(input, axis0, axis1)  # type: ignore[no-any-return]


swapdims = swapaxes


def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    return conj(view.transpose.function(input, -2, -1))


def _transposed(self: Tensor) -> Tensor:
    return view.permute.function(self, tuple(reversed(range(self.ndim))))  # type: ignore


def _matrix_transposed(self: Tensor) -> Tensor:
    if self.ndim < 2:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got "
                           f"{self.ndim}-D tensor.")
    return view.transpose.function(self, -2, -1)  # type: ignore[no-any-return]


def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a dimension, as views: of one size, or of given sizes.

    >>> [len(p) for p in split(create.arange(5), 2)]
    [2, 2, 1]
    """
    return tuple(view.split.function(tensor, split_size_or_sections, dim))


def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of given sizes."""
    return tuple(view.split.function(input, list(split_sizes), dim))


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """A dimension in at most `chunks` parts of equal size."""
    if input.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input.shape[wrap_dim(dim, input.ndim)]
    size = -(-n // chunks)
    if size == 0:
        return tuple(view.split.function(input, [0] * chunks, dim))
    return tuple(view.split.function(input, size, dim))


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of nearly equal size, or parts cut at given places."""
    if input.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a "
                           "tensor with 0 dims")
    d = wrap_dim(dim, input.ndim)
    n = input.shape[d]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        parts = indices_or_sections
        if parts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {parts}")
        small, extra = divmod(n, parts)
        cuts = np.cumsum([small + (i < extra) for i in range(parts)])[:-1].tolist()
    else:
        cuts = list(indices_or_sections)
    edges = [0, *cuts, None]
    return tuple(view.slice_.function(input, d, a, b, 1) for a, b in zip(edges, edges[1:]))


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices of a dimension, as views."""
    return tuple(view.unbind.function(input, dim))


def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Sliding windows over a dimension, in a new last dimension."""
    return view.unfold.function(self, dimension, size, step)  # type: ignore[no-any-return]


def real(input: Tensor) -> Tensor:
    """The real part; a real tensor is its own."""
    return view.real.function(input) if input.dtype.is_complex else input


def imag(input: Tensor) -> Tensor:
    """The imaginary part."""
    return view.imag.function(input)  # type: ignore[no-any-return]


def conj(input: Tensor) -> Tensor:
    """Complex conjugate; a real tensor is its own."""
    return pointwise.conj_physical.function(input) if input.dtype.is_complex else input


def conj_physical(input: Tensor, *, out: Any = None) -> Tensor:
    """Complex conjugate in fresh memory; a real tensor is its own."""
    if input.dtype.is_complex or out is not None:
        return pointwise.conj_physical.function(input, out=out)  # type: ignore[no-any-return]
    return input


def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if input.dtype is types.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def abs_(self: Tensor) -> Tensor:
    """In-place absolute value."""
    if self.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return dispatch.inplace(pointwise.abs, (self,))


def _running_inplace(name: str, op: Any) -> Any:
    def method(self: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        if dtype is not None and dtype is not self.dtype:
            raise RuntimeError("Bad in-place call: input tensor dtype "
                               f"{matmul.C_NAMES[self.dtype.name]} and output tensor dtype "
                               f"{matmul.C_NAMES[dtype.name]} should match")
        if self.dtype is types.bool:
            raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
        return dispatch.inplace(op, (self, dim, dtype))
    method.__name__ = name + "_"
    method.__doc__ = f"In-place form of `{name}`."
    return method


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Any:
    """This tensor where the condition holds, other elsewhere."""
    return where(condition, self, other)


def as_strided_(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Another layout over the same memory, for this tensor itself."""
    method = _unary_layout_inplace("as_strided_", view.as_strided.function)
    return method(self, size, stride, storage_offset)  # type: ignore[no-any-return]


def polygamma(n: int, input: Tensor, *, out: Any = None) -> Tensor:
    """The n-th derivative of digamma."""
    return special.polygamma.function(n, input, out=out)  # type: ignore[no-any-return]


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed at once here."""
    return input


resolve_neg = resolve_conj

# -- joining --------------------------------------------------------------------------------------


def _at_least(n: int) -> Any:
    def function(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            tensors = tuple(tensors[0])
        need_tensors(tensors)
        made = []
        for t in tensors:
            if t.ndim < n and n == 3 and t.ndim == 2:
                made.append(t.unsqueeze(-1))
                continue
            if n == 3 and t.ndim == 1:
                made.append(t.unsqueeze(0).unsqueeze(-1))
                continue
            while t.ndim < n:
                t = t.unsqueeze(0)
            made.append(t)
        return made[0] if len(made) == 1 else tuple(made)
    function.__name__ = function.__qualname__ = f"atleast_{n}d"
    function.__doc__ = f"Tensors with at least {n} dimensions."
    return function


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


def _tensors(name: str, tensors: Any) -> Any:
    """A list of tensors, and PyTorch's words where it is none."""
    if not isinstance(tensors, (list, tuple)) or any(not isinstance(t, Tensor) for t in tensors):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                        f"{type(tensors).__name__}")
    return tensors


def _many(f: Any, tensors: Any) -> list[Tensor]:
    return [f(t) for t in tensors]


def hstack(tensors: Any, *, out: Any = None) -> Tensor:
    """Tensors joined side by side."""
    parts = _many(atleast_1d, _tensors("hstack", tensors))
    return shape.cat.function(parts, 0 if parts and parts[0].ndim == 1 else 1, out=out)  # type: ignore


def vstack(tensors: Any, *, out: Any = None) -> Tensor:
    """Tensors joined one above the other."""
    return shape.cat.function(_many(atleast_2d, _tensors("vstack", tensors)), 0, out=out)  # type: ignore


def dstack(tensors: Any, *, out: Any = None) -> Tensor:
    """Tensors joined in the third dimension."""
    return shape.cat.function(_many(atleast_3d, _tensors("dstack", tensors)), 2, out=out)  # type: ignore


def column_stack(tensors: Any, *, out: Any = None) -> Tensor:
    """Vectors as the columns of a matrix."""
    return hstack([t.reshape(-1, 1) if t.ndim <= 1 else t
                   for t in _tensors("column_stack", tensors)], out=out)


def tile(input: Tensor, *dims: Any) -> Tensor:
    """The tensor repeated, with missing repeats taken as 1 from the left."""
    repeats = spread(dims)
    repeats = (1,) * (input.ndim - len(repeats)) + repeats
    return shape.repeat.function(input, repeats)  # type: ignore[no-any-return]


def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *,
                      output_size: int | None = None) -> Tensor:
    """Every element repeated where it stands."""
    if repeats is None:
        repeats, input, dim = input, create.arange(len(input)), 0
    if not isinstance(repeats, Tensor):
        repeats = create.tensor(repeats)
    return shape.repeat_interleave.function(input, repeats, dim)  # type: ignore[no-any-return]


def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse."""
    return shape.flip.function(input, 1)  # type: ignore[no-any-return]


def flipud(input: Tensor) -> Tensor:
    """Rows in reverse."""
    return shape.flip.function(input, 0)  # type: ignore[no-any-return]


def diag(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if input.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    made = (shape.diag_embed.function(input, diagonal) if input.ndim == 1 else
            view.diagonal.function(input, diagonal).clone())
    return create.put_out(made, out)


def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return view.diagonal.function(input).sum()  # type: ignore[no-any-return]


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Grids of coordinates from vectors."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    need_tensors(tensors)
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError("torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but "
                           f"received: {indexing}")
    for t in tensors:
        if t.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but "
                               f"got: {list(t.shape)}")
    swap = indexing == "xy" and len(tensors) > 1
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    sizes = [t.numel() for t in tensors]
    grids = [t.reshape([-1 if i == k else 1 for k in range(len(tensors))]).expand(sizes)
             for i, t in enumerate(tensors)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the elements of vectors, one a row."""
    need_tensors(tensors)
    if len(tensors) == 1:
        return tensors[0]
    return shape.stack.function([g.reshape(-1) for g in meshgrid(*tensors)], 1)  # type: ignore


def unique(input: Tensor, sorted: builtins.bool = True, return_inverse: builtins.bool = False,
           return_counts: builtins.bool = False, dim: int | None = None) -> Any:
    """The distinct elements in order, and how to build the input from them.

    >>> unique(create.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    if dim is not None:
        dim = wrap_dim(dim, input.ndim)
    found = np.unique(input._array, return_inverse=True, return_counts=True, axis=dim)
    values, inverse, counts = (wrap(np.asarray(a)) for a in found)
    inverse = inverse.reshape(input.shape) if dim is None else inverse.reshape(-1)
    results = [values, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return results[0] if len(results) == 1 else tuple(results)


def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: builtins.bool = False,
                 right: builtins.bool = False, side: str | None = None, sorter: Any = None,
                 out: Any = None) -> Tensor:
    """Where values would go in a sorted sequence."""
    if side not in (None, "left", "right"):
        raise RuntimeError("torch.searchsorted(): side can only be 'left' or 'right' but got "
                           f"{side}")
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    values = input if isinstance(input, Tensor) else create.tensor(input)
    return sort.searchsorted.function(  # type: ignore[no-any-return]
        sorted_sequence, values, right=right or side == "right", out_int32=out_int32, out=out)


def bucketize(input: Any, boundaries: Tensor, *, out_int32: builtins.bool = False,
              right: builtins.bool = False, out: Any = None) -> Tensor:
    """The bucket of each value."""
    if not isinstance(input, (Tensor, *NUMBERS)):
        raise TypeError("bucketize(): argument 'input' (position 1) must be Tensor, not "
                        f"{type(input).__name__}")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


# -- products -------------------------------------------------------------------------------------


def matmul_(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """Matrix product of vectors, matrices or batches of matrices.

    >>> matmul_(create.eye(2), create.tensor([3., 4.]))
    tensor([3., 4.])
    """
    for place, (name, value) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(value, Tensor):
            raise TypeError(f"matmul(): argument '{name}' (position {place}) must be Tensor, not "
                            f"{type(value).__name__}")
    m, n = input._array.ndim, other._array.ndim
    if m == 2 and n == 2:
        return matmul.mm.function(input, other, out=out)  # type: ignore[no-any-return]
    if m == 0 or n == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {m}D and"
                           f" {n}D")
    if m == 1 and n == 1:
        return matmul.dot.function(input, other, out=out)  # type: ignore[no-any-return]
    if m == 2 and n == 1:
        return matmul.mv.function(input, other, out=out)  # type: ignore[no-any-return]
    if m == 1:
        made = matmul_(input.unsqueeze(0), other).squeeze(-2)
        return create.put_out(made, out)
    if n == 1:
        made = matmul_(input, other.unsqueeze(1)).squeeze(-1)
        return create.put_out(made, out)
    if n == 2:  # one matrix for the whole batch: fold the batch into the rows
        rows = convert.reshape(input, (-1, input.shape[-1]))
        product = matmul.mm.function(rows, other)
        made = view.unsafe_view.function(product, (*input.shape[:-1], other.shape[-1]))
        return create.put_out(made, out)
    from toytorch.core.size import broadcast_pair
    batch = broadcast_pair(input.shape[:-2], other.shape[:-2])
    a = input.expand((*batch, *input.shape[-2:]))
    b = other.expand((*batch, *other.shape[-2:]))
    count = math.prod(batch)
    product = matmul.bmm.function(convert.reshape(a, (count, *a.shape[-2:])),
                                  convert.reshape(b, (count, *b.shape[-2:])))
    made = view.unsafe_view.function(product, (*batch, a.shape[-2], b.shape[-1]))
    return create.put_out(made, out)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *,
           out: Any = None) -> Tensor:
    """x·Wᵀ + b."""
    if out is not None:
        return create.put_out(linear(input, weight, bias), out)
    if not isinstance(input, Tensor):
        raise TypeError("linear(): argument 'input' (position 1) must be Tensor, not "
                        f"{type(input).__name__}")
    if (bias is not None and input._array.ndim == 2 and weight._array.ndim == 2
            and bias._array.shape == weight._array.shape[:1]):
        return matmul.linear.function(bias, input, weight)  # type: ignore[no-any-return]
    if bias is not None and input.ndim == 3 and weight.ndim == 2 and convert.is_contiguous(input):
        flat = view.view_.function(input, (-1, input.shape[-1]))
        product = matmul.addmm.function(bias, flat, weight.t())
        return product.view((*input.shape[:-1], weight.shape[0]))  # type: ignore[no-any-return]
    product = matmul_(input, weight.t())
    return product if bias is None else product + bias


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    """Products summed over pairs of dimensions."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    left, right = list(wrap_dims(tuple(left), a.ndim)), list(wrap_dims(tuple(right), b.ndim))
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    for i, j in zip(left, right):
        if a.shape[i] != b.shape[j]:
            raise RuntimeError("contracted dimensions need to match, but first has size "
                               f"{a.shape[i]} in dim {i} and second has size {b.shape[j]} in dim "
                               f"{j}")
    rest_a = [d for d in range(a.ndim) if d not in left]
    rest_b = [d for d in range(b.ndim) if d not in right]
    n = math.prod(a.shape[d] for d in left)
    x = convert.reshape(view.permute.function(a, tuple(rest_a + left)),
                        (math.prod(a.shape[d] for d in rest_a), n))
    y = convert.reshape(view.permute.function(b, tuple(right + rest_b)),
                        (n, math.prod(b.shape[d] for d in rest_b)))
    made = convert.reshape(x.mm(y), tuple([a.shape[d] for d in rest_a]
                                          + [b.shape[d] for d in rest_b]))
    return create.put_out(made, out)


def einsum(equation: str, *operands: Any) -> Tensor:
    """Einstein's summation over named dimensions.

    >>> einsum("ij,jk->ik", create.ones(2, 3), create.ones(3, 1))
    tensor([[3.],
            [3.]])
    """
    from toytorch.ops.einsum import evaluate
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return evaluate(equation, list(operands))  # type: ignore[no-any-return]


ger = matmul.outer.function


def inner(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """Σ over the last dimension of both."""
    if input.ndim == 0 or other.ndim == 0:
        return pointwise.mul.function(input, other, out=out)  # type: ignore[no-any-return]
    return tensordot(input, other, ([-1], [-1]), out=out)


# -- questions ------------------------------------------------------------------------------------


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08,
             equal_nan: builtins.bool = False) -> builtins.bool:
    """Whether all |input - other| ≤ atol + rtol·|other|."""
    return builtins.bool(compare.isclose.function(input, other, rtol, atol, equal_nan).all())


def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether shape and all elements are the same."""
    if not isinstance(other, Tensor):
        raise TypeError("equal(): argument 'other' (position 2) must be Tensor, not "
                        f"{type(other).__name__}")
    return input.shape == other.shape and builtins.bool((input == other).all())  # type: ignore


def is_nonzero(input: Tensor) -> builtins.bool:
    """Whether the one element is not zero."""
    return builtins.bool(input)


def is_same_size(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether shapes are the same."""
    return input.shape == other.shape


def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is zero."""
    return input.imag == 0 if input.dtype.is_complex else create.ones_like(  # type: ignore
        input, dtype=types.bool)


def result_type(a: Any, b: Any) -> types.dtype:
    """The type in which two operands meet.

    >>> result_type(create.tensor([1]), 1.0)
    torch.float32
    """
    ranks: list[list[types.dtype]] = [[], [], []]
    for v in (a, b):
        if isinstance(v, Tensor):
            ranks[0 if v.ndim else 1].append(v.dtype)
        else:
            ranks[2].append(types.of_scalar(v))
    return types.promote(*(tuple(r) for r in ranks))


def can_cast(from_: types.dtype, to: types.dtype) -> builtins.bool:
    """Whether PyTorch's rules let a result of one type be written into another.

    >>> can_cast(types.float64, types.int64), can_cast(types.float64, types.float32)
    (False, True)
    """
    return from_.rank <= to.rank


def is_tensor(obj: Any) -> builtins.bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> builtins.bool:
    """Whether elements are real floating-point numbers."""
    return input.dtype.is_floating_point


def is_complex(input: Tensor) -> builtins.bool:
    """Whether elements are complex."""
    return input.dtype.is_complex


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


# -- Python's operators ---------------------------------------------------------------------------


def _binary(op: Any) -> Any:
    """What Python's operator calls: the op's function without its keyword arguments."""
    source = getattr(op, "function_source", None)
    made = fast.make(op, operator=True)
    if made is not None:
        op.function_source = source  # the full form is the one to show
    return made or op.function


def _reflected(op: Any) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        return op.function(other, self)
    return method


def _rsub(self: Tensor, other: Any) -> Tensor:
    return pointwise.rsub.function(self, other)  # type: ignore[no-any-return]


def _rtruediv(self: Tensor, other: Any) -> Tensor:
    return pointwise.reciprocal.function(self) * other  # type: ignore[no-any-return]


def _in_place(name: str) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        return getattr(self, name + "_")(other)
    return method


def _equal(self: Tensor, other: Any) -> Any:
    if isinstance(other, (Tensor, *NUMBERS)):
        return compare.eq.function(self, other)
    return False if other is None or isinstance(other, (str, list, tuple, dict)) else NotImplemented


def _not_equal(self: Tensor, other: Any) -> Any:
    if isinstance(other, (Tensor, *NUMBERS)):
        return compare.ne.function(self, other)
    return True if other is None or isinstance(other, (str, list, tuple, dict)) else NotImplemented


def _contains(self: Tensor, value: Any) -> builtins.bool:
    if isinstance(value, (Tensor, *NUMBERS)):
        return builtins.bool((self == value).any())  # type: ignore[attr-defined]
    raise RuntimeError("Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                       f"{type(value)}.")


def _iterate(self: Tensor) -> Any:
    if self._array.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self, 0))


def _abs(self: Tensor) -> Tensor:
    return pointwise.abs.function(self)  # type: ignore[no-any-return]


def _reversed(self: Tensor) -> Tensor:
    return shape.flip.function(self, 0) if self.ndim else self


OPERATORS = {
    "add": pointwise.add, "sub": pointwise.sub, "mul": pointwise.mul, "truediv": pointwise.div,
    "floordiv": pointwise.floor_divide, "mod": pointwise.remainder, "pow": pointwise.pow,
    "and": compare.bitwise_and, "or": compare.bitwise_or, "xor": compare.bitwise_xor,
    "lshift": compare.bitwise_left_shift, "rshift": compare.bitwise_right_shift,
    "lt": compare.lt, "le": compare.le, "gt": compare.gt, "ge": compare.ge,
}
for _name, _op in OPERATORS.items():
    setattr(Tensor, f"__{_name}__", _binary(_op))
for _name in ("add", "mul", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(Tensor, f"__r{_name}__", _reflected(OPERATORS[_name]))
for _name, _target in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "and":
                       "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "mod": "remainder",
                       "floordiv": "floor_divide", "pow": "pow", "lshift": "bitwise_left_shift",
                       "rshift": "bitwise_right_shift"}.items():
    setattr(Tensor, f"__i{_name}__", _in_place(_target))
SPECIAL = {"__rsub__": _rsub, "__rtruediv__": _rtruediv, "__rdiv__": _rtruediv, "__eq__": _equal,
           "__ne__": _not_equal, "__contains__": _contains, "__iter__": _iterate, "__abs__": _abs,
           "__reversed__": _reversed, "__neg__": pointwise.neg.function,
           "__pos__": positive, "__invert__": compare.bitwise_not.function,
           "__matmul__": matmul_, "__rmatmul__": lambda self, other: matmul_(other, self)}
for _name, _method in SPECIAL.items():
    setattr(Tensor, _name, _method)
Tensor.__hash__ = object.__hash__  # type: ignore[method-assign, assignment]  # setting __eq__ removes it

METHODS = {
    "div": div, "div_": div_, "divide": div, "true_divide": div, "max": max, "min": min,
    "median": median, "sort": sort_, "topk": topk, "kthvalue": kthvalue, "cummax": cummax,
    "cummin": cummin, "argsort": argsort, "nonzero": nonzero, "scatter": scatter,
    "scatter_": scatter_, "index_put": index_put, "index_put_": index_put_,
    "take_along_dim": take_along_dim, "norm": norm, "var": var, "std": std, "clip": clip,
    "expand": expand, "expand_as": expand_as, "broadcast_to": broadcast_to, "view_as": view_as,
    "reshape_as": reshape_as, "flatten": flatten, "ravel": ravel, "unflatten": unflatten,
    "movedim": movedim, "moveaxis": moveaxis, "swapaxes": swapaxes, "swapdims": swapdims,
    "adjoint": adjoint, "split": split, "split_with_sizes": split_with_sizes, "chunk": chunk,
    "tensor_split": tensor_split, "unbind": unbind, "unfold": unfold, "conj": conj,
    "resolve_conj": resolve_conj, "resolve_neg": resolve_neg, "tile": tile,
    "repeat_interleave": repeat_interleave, "repeat": shape.repeat.function, "fliplr": fliplr,
    "flipud": flipud, "diag": diag, "trace": trace, "unique": unique, "matmul": matmul_,
    "ger": ger, "inner": inner, "allclose": allclose, "equal": equal, "is_nonzero": is_nonzero,
    "is_same_size": is_same_size, "isreal": isreal, "multiply": pointwise.mul.function,
    "subtract": pointwise.sub.function, "negative": pointwise.neg.function,
    "absolute": pointwise.abs.function, "greater": compare.gt.function,
    "greater_equal": compare.ge.function, "less": compare.lt.function,
    "less_equal": compare.le.function, "not_equal": compare.ne.function,
    "fix": pointwise.trunc.function, "arccos": pointwise.acos.function,
    "arcsin": pointwise.asin.function, "arctan": pointwise.atan.function,
    "arctan2": pointwise.atan2.function, "arcsinh": pointwise.asinh.function,
    "arccosh": pointwise.acosh.function, "arctanh": pointwise.atanh.function,
    "conj_physical": conj_physical, "positive": positive, "abs_": abs_, "where": _where_method,
    "cumsum_": _running_inplace("cumsum", reduce.cumsum), "as_strided_": as_strided_,
    "cumprod_": _running_inplace("cumprod", reduce.cumprod),
    "polygamma": lambda self, n: polygamma(n, self), "multinomial": random.multinomial,
    "bernoulli": random.bernoulli,
}
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
for _name, _source in {"multiply_": "mul_", "subtract_": "sub_", "divide_": "div_",
                       "true_divide_": "div_", "negative_": "neg_", "absolute_": "abs_",
                       "clip_": "clamp_", "fix_": "trunc_", "arccos_": "acos_", "arcsin_": "asin_",
                       "arctan_": "atan_", "arctan2_": "atan2_", "arcsinh_": "asinh_",
                       "arccosh_": "acosh_", "arctanh_": "atanh_", "greater_": "gt_",
                       "greater_equal_": "ge_", "less_": "lt_", "less_equal_": "le_",
                       "not_equal_": "ne_"}.items():
    setattr(Tensor, _name, getattr(Tensor, _source))
Tensor.T = property(_transposed)  # type: ignore[attr-defined]
Tensor.mT = property(_matrix_transposed)  # type: ignore[attr-defined]
Tensor.H = property(lambda self: conj(_transposed(self)))  # type: ignore[attr-defined]
Tensor.mH = property(adjoint)  # type: ignore[attr-defined]
Tensor.real = property(real)  # type: ignore[attr-defined]
Tensor.imag = property(imag)  # type: ignore[attr-defined]


def _same_layout(self: Tensor, fn: Any) -> Tensor:
    return wrap(np.asarray(fn(self._array)))


def apply_(self: Tensor, callable: Any) -> Tensor:
    """Applies a Python function to every element, in place; slow, for the CPU only."""
    flat = [callable(v) for v in self._array.reshape(-1).tolist()]
    self._array[...] = np.asarray(flat, self._array.dtype).reshape(self._array.shape)
    writing.bump(self)
    return self


def _unary_layout_inplace(name: str, op: Any) -> Any:
    """t_, squeeze_ …: another layout for the same tensor."""
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        writing.check(self, self._rg)
        made = op(self, *args, **kwargs)
        self._array, self._storage = made._array, made._storage
        if made._edge is not None:
            self._edge, self._rg = made._edge, True
        writing.bump(self)
        return self
    method.__name__ = name
    method.__doc__ = f"In-place form of `{name[:-1]}`: another layout of the same memory."
    return method


for _name, _function in {"t_": view.t.function, "squeeze_": view.squeeze.function,
                         "unsqueeze_": view.unsqueeze.function,
                         "transpose_": view.transpose.function, "swapaxes_": swapaxes,
                         "swapdims_": swapaxes}.items():
    setattr(Tensor, _name, _unary_layout_inplace(_name, _function))
Tensor.apply_ = apply_  # type: ignore[attr-defined]


def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that shapes broadcast to."""
    return _broadcast_shapes(*shapes)


def gelu(input: Tensor, approximate: str = "none", *, out: Any = None) -> Tensor:
    """x·Φ(x)."""
    return special.gelu.function(input, approximate=approximate, out=out)  # type: ignore

"""Distinct elements, places of elements, and places in sorted sequences."""

from __future__ import annotations

import builtins
import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.core.inplace import refuse_arguments
from toytorch.core.memory_order import walk
from toytorch.core.scalars import NUMBERS
from toytorch.core.tensor import Tensor, beside, wrap
from toytorch.core.write import refusal, refuse_grad
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.device import contiguous_format
from toytorch.facts.dtype import from_numpy_dtype, no_kernel, promote_types
from toytorch.facts.hints import Array, ArrayModule, Fn, Scalar, Sizes
from toytorch.facts.schema import wrong_argument
from toytorch.facts.size import wrap_dim
from toytorch.ops.creation import create, from_data
from toytorch.ops.define import in_own_type, public, watched
from toytorch.ops.indexing import by_index
from toytorch.ops.queries import result_type
from toytorch.ops.reductions import sort
from toytorch.ops.shaping import rearrange

DISTINCT = "(Tensor, Tensor if return_inverse, Tensor if return_counts)"


@public("unique", method=True, numpy=False, returns=DISTINCT)
def unique(
    input: Tensor,
    sorted: builtins.bool = True,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in order, and how to build the input from them.

    >>> unique(torch.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    op = unique_all if dim is None else unique_dim
    values, inverse, counts = op.function(input, dim)
    results = [values, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return results[0] if len(results) == 1 else tuple(results)


@public("unique_consecutive", method=True, numpy=False, returns=DISTINCT)
def unique_consecutive(
    input: Tensor,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    dim: int | None = None,
) -> Any:
    """The elements (or slices) that differ from the one before, and how to build the input.

    >>> unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    values, inverse, counts = consecutive.function(input, dim)
    results = [values, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return results[0] if len(results) == 1 else tuple(results)


def _refuse_nothing(shape: Sizes, d: int) -> None:
    """Refuses slices without elements, which are all alike."""
    if not shape[d] and shape.count(0) > 1:
        raise RuntimeError(
            "Number of zero sized dimensions is more than one, so unique cannot be applied "
        )
    if 0 in shape and shape[d]:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )


def _refuse_complex(a: Array, dim: int | None) -> None:
    if a.dtype.kind == "c":
        raise no_kernel("unique" if dim is None else "unique_dim", a.dtype)


def _consecutive(xp: ArrayModule, a: Array, dim: int | None) -> Any:
    d = 0 if dim is None else wrap_dim(dim, a.ndim)
    _refuse_complex(a, dim)
    if dim is not None:
        _refuse_nothing(a.shape, d)
    rows = a.reshape(-1) if dim is None else xp.moveaxis(a, d, 0)
    n = len(rows)
    changed = (rows[1:] != rows[:-1]).any(axis=tuple(range(1, rows.ndim)))
    starts = xp.flatnonzero(xp.concatenate([xp.ones(min(n, 1), bool), changed]))
    values = xp.ascontiguousarray(rows[starts])
    values = values if dim is None else xp.moveaxis(values, 0, d)
    counts = xp.diff(xp.append(starts, xp.asarray([n])))
    inverse = xp.repeat(xp.arange(len(starts)), counts)
    inverse = inverse.reshape(a.shape) if dim is None else inverse
    if not values.size and a.__class__ is np.ndarray and (dim is None or not a.shape[d]):
        values = np.zeros(values.shape, a.dtype)
    return values, inverse, counts


def _unique(xp: ArrayModule, a: Array, dim: int | None) -> Any:
    d = None if dim is None else wrap_dim(dim, a.ndim)
    _refuse_complex(a, dim)
    if d is not None:
        _refuse_nothing(a.shape, d)
    if a.dtype.kind == "V":  # bfloat16, whose NaN NumPy does not put last
        values, inverse, counts = _unique(xp, a.astype(np.float32), dim)
        return values.astype(a.dtype), inverse, counts
    here = d is None and a.__class__ is np.ndarray
    in_order = attempt(xp, "ordered", a.reshape(-1), 0, False) if here else None
    if in_order is not None:
        return _runs_of(in_order, a.shape)
    if d is None and a.dtype.kind in "fc" and xp.isnan(a).any():  # each is one of its own
        made = xp.unique(a, return_inverse=True, return_counts=True, equal_nan=False)
        return made[0], made[1].reshape(a.shape), made[2]
    if d is not None and a.dtype.kind == "f" and xp.isnan(a).any():
        return _unique_rows(xp, a, d)
    values, inverse, counts = xp.unique(a, return_inverse=True, return_counts=True, axis=d)
    if not values.size and a.__class__ is np.ndarray and (d is None or not a.shape[d]):
        values = np.zeros(values.shape, a.dtype)
    return values, inverse.reshape(a.shape if d is None else -1), counts


def _runs_of(in_order: tuple[Array, Array], shape: Sizes) -> Any:
    """What differs from the number before it, in (numbers in order, where each stood): NaN
    does, too."""
    values, places = in_order
    new = np.empty(values.size, bool)
    new[0] = True
    np.not_equal(values[1:], values[:-1], new[1:])
    first, inverse = np.flatnonzero(new), np.empty(values.size, np.int64)
    counts = np.diff(first, append=values.size)
    inverse[places] = np.arange(first.size).repeat(counts)
    return values[first], inverse.reshape(shape), counts


def _unique_rows(xp: ArrayModule, a: Array, d: int) -> Any:
    """The distinct slices where some hold NaN, which is neither less nor more than anything."""
    lines = xp.moveaxis(a, d, 0).reshape(a.shape[d], -1)

    def later(one: int, other: int) -> int:
        for p, q in zip(lines[one], lines[other]):
            if p < q or p > q:
                return -1 if p < q else 1
        return 0

    order = builtins.sorted(builtins.range(len(lines)), key=functools.cmp_to_key(later))
    apart = [not (lines[i] == lines[j]).all() for i, j in itertools.pairwise(order)]
    numbers = xp.cumsum(xp.asarray([0, *apart]))
    inverse = xp.empty(len(order), np.int64)
    inverse[xp.asarray(order)] = numbers
    first = [order[0], *(j for j, new in zip(order[1:], apart) if new)]
    return xp.take(a, xp.asarray(first), d), inverse, xp.bincount(numbers)


def _distinct(name: str, kernel: Fn) -> Any:
    def refuse(gs: Sequence[Tensor | None]) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return in_own_type(
        f"{name}(Tensor self, int? dim=None) -> (Tensor, Tensor, Tensor)",
        kernel,
        results=(True, False, False),
        forms="",
        d_self=refuse,
        data_dependent=True,
        doc="Distinct elements, which of them each element is, and their numbers.",
    )


unique_all = _distinct("_unique2", _unique)
unique_dim = _distinct("unique_dim", _unique)
consecutive = _distinct("_unique_consecutive", _consecutive)


FEW = 4096  # pairs, which are compared one by one


@public(
    "isin", tensor_first=False, numbers={"elements": "element", "test_elements": "test_element"}
)
def isin(
    elements: Tensor | Scalar,
    test_elements: Tensor | Scalar,
    *,
    assume_unique: builtins.bool = False,
    invert: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Whether each element is one of test_elements.

    >>> isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))
    tensor([False,  True, False])
    """
    if isinstance(test_elements, Tensor) and not test_elements._array.flags.c_contiguous:
        _need_flat(elements, test_elements)
    if (
        elements.__class__ is Tensor is test_elements.__class__
        and elements._dtype is test_elements._dtype
        and elements._dtype.rank in (1, 2)
        and state.fast_path is not state.SLOW
        and out is None
    ):  # the usual call has nothing to refuse
        return _is_in(elements, test_elements, assume_unique, invert)
    operands = (elements, test_elements)
    if not any(isinstance(v, Tensor) for v in operands) or not all(
        isinstance(v, (Tensor, *NUMBERS)) for v in operands
    ):
        kinds = ", ".join(type(v).__name__ for v in operands)
        raise TypeError(f"isin() received an invalid combination of arguments - got ({kinds})")
    for v in operands:
        if isinstance(v, Tensor) and (v.dtype.is_complex or v.dtype.kind == "b"):
            raise RuntimeError(f"Unsupported input type encountered for isin(): {v.dtype.legacy}")
        if isinstance(v, (builtins.bool, complex)):
            kind = "Bool" if isinstance(v, builtins.bool) else "ComplexDouble"
            raise RuntimeError(f"Unsupported input type encountered for isin(): {kind}")
    found = _isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
    return create.put_out(found, out, same=True)


def _need_flat(elements: Tensor | Scalar, few: Tensor) -> None:
    """Refuses what PyTorch cannot view as one row, where it compares with few elements one by one."""
    count = elements.numel() if isinstance(elements, Tensor) else 1
    if count > 0 and few.numel() < int(10 * count**0.145):
        few.to(result_type(elements, few)).view(-1)


def _is_in(
    elements: Tensor | Scalar, test_elements: Tensor | Scalar, assume_unique: bool, invert: bool
) -> Tensor:
    """`isin` of arguments that have been looked at."""
    if isinstance(elements, Tensor) and isinstance(test_elements, Tensor):
        a, b = elements._array, test_elements._array
    else:
        like = elements if isinstance(elements, Tensor) else test_elements
        assert isinstance(like, Tensor)
        a, b = (
            v._array if isinstance(v, Tensor) else beside(like, in_type_beside(like, v))._array
            for v in (elements, test_elements)
        )
    if a.__class__ is b.__class__ is np.ndarray and a.dtype is b.dtype and a.size * b.size < FEW:
        found = attempt(np, "among", a, b)
        if found is None:
            found = np.logical_or.reduce(a.reshape(-1, 1) == b.reshape(-1), 1).reshape(a.shape)
        return wrap(np.asarray(~found) if invert else found)
    if a.dtype != b.dtype:  # which NumPy promotes otherwise, or not at all
        kinds = (from_numpy_dtype(v.dtype) for v in (a, b))
        common = promote_types(*kinds).numpy
        a, b = (v.astype(common, copy=False) for v in (a, b))
    made = np.isin(a, b, assume_unique=assume_unique, invert=invert)
    return wrap(np.asarray(made) if isinstance(made, np.generic) else made)


def in_type_beside(tensor: Tensor, number: Scalar) -> Array:
    """A number in the type of a tensor, or in the default one where that holds whole numbers only."""
    fraction = isinstance(number, float) and tensor.dtype.rank < 2
    kind = (types.get_default_dtype() if fraction else tensor.dtype).numpy
    return np.asarray(number).astype(kind)  # integers wrap


_isin = watched(_is_in, "isin")


# -- places ---------------------------------------------------------------------------------------


@public("argwhere", method=True)
def argwhere(input: Tensor) -> Tensor:
    """The places of non-zero elements, one a row."""
    return by_index.nonzero.function(input)


@public("nonzero_static", method=True)
def nonzero_static(
    input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None
) -> Tensor:
    """The first `size` places of non-zero elements; rows that are too many hold fill_value.

    >>> nonzero_static(torch.tensor([0, 5]), size=2)
    tensor([[ 1],
            [-1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if out is not None:
        refuse_arguments(out, (input,), (size, input.ndim))
    rows: Any = argwhere(input)[:size]
    if len(rows) < size:
        more = rows.new_full((size - len(rows), input.ndim), fill_value)
        rows = rearrange.cat.function([rows, more])
    if out is not None and out.dtype is not rows.dtype:
        raise RuntimeError(refusal("scalar", "nonzero_static", rows.dtype, out.dtype))
    rows = rows.clone(memory_format=contiguous_format) if size else rows.new_empty(rows.shape)
    return create.put_out(rows, out)


@public("unravel_index", tensor_first=False)
@watched
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Places in the flattened tensor as an index for each dimension.

    >>> unravel_index(torch.tensor([5]), (2, 3))
    (tensor([1]), tensor([2]))
    """
    if indices.dtype.rank != 1:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if isinstance(shape, int):
        shape = (shape,)
    if not isinstance(shape, Sequence):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    for n in shape:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    if not shape:
        return ()
    order = walk(indices._array)  # in which PyTorch's places lie in memory, too
    rest, places = indices.to(types.int64).permute(order), []
    for n in reversed(shape):
        places.append(rest % max(n, 1))
        rest = rest // max(n, 1)
    back = sorted(builtins.range(len(order)), key=order.__getitem__)
    made = rearrange.stack.function(places[::-1], -1).permute(*back, len(order))
    return tuple(made.unbind(-1))


@public("msort", method=True)
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first dimension in order."""
    if out is not None:
        refuse_grad("sort", (input,), out)
    return create.put_out(sort.sort.function(input, 0)[0], out, same=True)


# -- sorted sequences -----------------------------------------------------------------------------


NOT_CONTIGUOUS = (
    "torch.searchsorted(): {0} tensor is non-contiguous, this will lower the performance due to extra "
    "data copy when converting non-contiguous tensor to contiguous, please use contiguous {0} tensor if "
    "possible. This message will only appear once per program."
)


@public("searchsorted", tensor_first=False, numbers={"input": "self"})
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | float,
    *,
    out_int32: builtins.bool = False,
    right: builtins.bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Where values would go in a sorted sequence."""
    if sorter is None and side is None and input.__class__ is Tensor is sorted_sequence.__class__:
        a, b = input._array, sorted_sequence._array  # the usual call has nothing to refuse
        arrays = a.__class__ is b.__class__ is np.ndarray and b.ndim == 1 and a.ndim
        arrays = arrays and input._dtype is sorted_sequence._dtype
        if arrays and a.flags.c_contiguous and b.flags.c_contiguous:
            return sort.searchsorted.function(
                sorted_sequence, input, right=right, out_int32=out_int32, out=out
            )
    if side not in (None, "left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while "
            "right was True"
        )
    one = not isinstance(input, Tensor) or not input.ndim
    if one and isinstance(sorted_sequence, Tensor) and sorted_sequence.ndim != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension "
            f"is 1, but we got boundaries tensor dim({sorted_sequence.ndim}) and input value's dim(0) "
            "numel(1)"
        )
    for what, given in (("input value", input), ("boundary", sorted_sequence), ("sorter", sorter)):
        if isinstance(given, Tensor) and not (given.is_sparse or given.is_contiguous()):
            from toytorch.facts import warned  # seldom needed

            warned.once(NOT_CONTIGUOUS.format(what))
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got "
                f"boundary tensor {list(sorted_sequence.shape)}and got sorter tensor "
                f"{list(sorter.shape)}"
            )
        if sorter.dtype is not types.int64:
            raise RuntimeError(
                "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
                f"{sorter.dtype.legacy}"
            )
        places = sorter._array
        if places.size and not (places.min() >= 0 and places.max() < sorter.shape[-1]):
            raise RuntimeError("torch.searchsorted(): sorter index out of range ")
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    values: Any = input
    if isinstance(sorted_sequence, Tensor):
        common = result_type(sorted_sequence, input)  # a number has no say among fractions
        if not isinstance(input, Tensor):
            exact = types.float64 if isinstance(input, float) else None
            values = from_data.tensor(input, dtype=exact, device=sorted_sequence.device)
        sorted_sequence, values = sorted_sequence.to(common), values.to(common)
    return sort.searchsorted.function(
        sorted_sequence, values, right=right or side == "right", out_int32=out_int32, out=out
    )


@public("bucketize", tensor_first=False, numbers={"input": "self"})
def bucketize(
    input: Tensor,
    boundaries: Tensor,
    *,
    out_int32: builtins.bool = False,
    right: builtins.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The bucket of each value."""
    if input.__class__ is not Tensor and not isinstance(input, (Tensor, *NUMBERS)):
        raise wrong_argument("bucketize", "input", 1, "Tensor", input)
    if out is not None and not isinstance(input, Tensor):
        raise TypeError("bucketize() received an invalid combination of arguments")
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)

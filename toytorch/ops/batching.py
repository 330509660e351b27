"""How an op runs on a whole batch at once, found from its record where that is possible.

A batched tensor shows one example's shape and carries the whole batch, whose first dimension is
the batch. An elementwise op broadcasts over it; an op along dimensions gets them counted one
further; a few families have a form of their own below; any other op runs example by example, which
is right for every op and slow. Which of these it is, the record says (`batch=`).
"""

from __future__ import annotations

from typing import Any

from toytorch.core import compute, dispatch
from toytorch.core.op import Op, registry
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Args, Fn, Ints

DIMS = ("dim", "dims", "dim0", "dim1", "dim2", "dimension")


class Unsupported(Exception):
    """An op or a call without a form for batches."""


def run(op: Op, args: Args, full: Fn, size: int) -> Any:
    """The results over the batch. `full(value)` is the batch of an argument, None without one."""
    try:
        if op.random:  # drawn in one go, for each example by itself

            def batch(value: object) -> Tensor | None:
                return spread(value, full, size) if isinstance(value, Tensor) else None

            return dispatch.call(op, elementwise(op, args, batch))
        if callable(op.batch):
            return op.batch(op, args, full, size)
        if op.batch == "elementwise":
            return dispatch.call(op, elementwise(op, args, full))
        if op.batch == "along":
            return along(op, args, full, size)
        if op.batch == "leading" and args[0].ndim >= 1:
            return dispatch.call(op, (full(args[0]), *args[1:]))
    except Unsupported:
        return one_by_one(op, args, full, size)
    return one_by_one(op, args, full, size)


def elementwise(op: Op, args: Args, full: Fn) -> tuple[Any, ...]:
    """The operands with dimensions of 1 after the batch, so that the examples broadcast."""
    depth = max(args[i].ndim for i in op.tensor_at if isinstance(args[i], Tensor))
    common = None
    if (
        op.kind == "pointwise"
        and op.promotion != "none"
        and any(
            isinstance(args[i], Tensor) and not args[i].ndim and full(args[i]) is not None
            for i in op.tensor_at
        )
    ):
        common = compute.common_dtype(op, args)  # a batch of 0-d tensors promotes as one does
    moved = list(args)
    for i in op.tensor_at:
        whole = full(args[i])
        if whole is not None:
            if common is not None and not args[i].ndim:
                whole = whole.to(common)
            moved[i] = whole.reshape(
                whole.shape[0], *[1] * (depth - args[i].ndim), *whole.shape[1:]
            )
    return tuple(moved)


def shifted(dim: Any, ndim: int) -> Any:
    """A dimension, or several, counted with the batch in front."""
    if isinstance(dim, (list, tuple)):
        return [shifted(d, ndim) for d in dim]
    return dim + 1 if dim >= 0 else dim


def along(op: Op, args: Args, full: Fn, size: int) -> Any:
    """An op whose record names the dimensions it works along."""
    first = args[0]
    tensors = first if first.__class__ in (list, tuple) else [args[i] for i in op.tensor_at]
    ndim = tensors[0].ndim
    if not ndim:
        raise Unsupported
    moved = list(args)
    for i, a in enumerate(op.schema.args):
        if a.name not in DIMS:
            continue
        if args[i] is None or args[i] == () or args[i] == []:
            if "[]" not in a.type:  # all elements in a row
                if "keepdim" in op.schema.index and args[op.schema.index["keepdim"]]:
                    raise Unsupported
                moved[0] = full(first).reshape(size, -1)
                return dispatch.call(op, (*moved[:i], 1, *moved[i + 1 :]))
            moved[i] = list(range(1, ndim + 1))
        else:
            moved[i] = shifted(args[i], ndim)
    if first.__class__ in (list, tuple):
        moved[0] = [spread(t, full, size) for t in first]
    elif len(tensors) == 1:
        moved[0] = full(first)
    else:
        for i in op.tensor_at:
            if isinstance(args[i], Tensor):
                moved[i] = spread(args[i], full, size)
    return dispatch.call(op, tuple(moved))


def spread(tensor: Tensor, full: Fn, size: int) -> Tensor:
    """The batch of a tensor; one that has none is repeated."""
    whole: Tensor | None = full(tensor)
    return tensor.unsqueeze(0).expand(size, *tensor.shape) if whole is None else whole


def one_by_one(op: Op, args: Args, full: Fn, size: int) -> Any:
    """Every example by itself; where there is none, zeros tell what the results are like."""

    def example(value: Tensor | Ints, i: int) -> Any:
        if value.__class__ in (list, tuple):
            return type(value)(example(v, i) for v in value)
        whole = full(value)
        if whole is None:
            return value
        return whole[i] if size else whole.new_zeros(whole.shape[1:])

    results = [dispatch.call(op, tuple(example(a, i) for a in args)) for i in range(size or 1)]
    join = registry["stack"].function
    made = [join(list(rs), 0) for rs in (zip(*results) if op.many else [results])]
    made = made if size else [m[:0] for m in made]
    return made if op.many else made[0]


# -- ops with a form of their own -----------------------------------------------------------------


def reshaped(op: Op, args: Args, full: Fn, size: int) -> Any:
    """`view` keeps the batch."""
    return full(args[0]).reshape(size, *args[1])


def unsqueezed(op: Op, args: Args, full: Fn, size: int) -> Any:
    """The new dimension counts from behind the batch."""
    return full(args[0]).unsqueeze(shifted(args[1], args[0].ndim))


def squeezed(op: Op, args: Args, full: Fn, size: int) -> Any:
    """Without a dimension, those of size 1 behind the batch go."""
    if not args[0].ndim:
        raise Unsupported
    if args[1] in (None, (), []):
        dims: Any = [d + 1 for d, n in enumerate(args[0].shape) if n == 1]
    else:
        dims = shifted(args[1], args[0].ndim)
    return dispatch.call(op, (full(args[0]), dims))


def permuted(op: Op, args: Args, full: Fn, size: int) -> Any:
    """The batch stays first."""
    if not args[0].ndim:
        raise Unsupported
    return full(args[0]).permute([0, *(d % args[0].ndim + 1 for d in args[1])])


def expanded(op: Op, args: Args, full: Fn, size: int) -> Any:
    """Dimensions that `expand` adds come after the batch."""
    sizes = args[1]
    whole = full(args[0])
    lead = len(sizes) - args[0].ndim
    return whole.reshape(size, *[1] * lead, *args[0].shape).expand(size, *sizes)


def repeated(op: Op, args: Args, full: Fn, size: int) -> Any:
    """`repeat` leaves the batch alone."""
    lead = len(args[1]) - args[0].ndim
    return full(args[0]).reshape(size, *[1] * lead, *args[0].shape).repeat(1, *args[1])


def transposed(op: Op, args: Args, full: Fn, size: int) -> Any:
    """The transposes of a batch of matrices."""
    return full(args[0]).transpose(1, 2) if args[0].ndim == 2 else full(args[0])


def strided(op: Op, args: Args, full: Fn, size: int) -> Any:
    """The batch keeps its own stride."""
    whole, offset = full(args[0]), args[3] if len(args) > 3 else None
    return whole.as_strided((size, *args[1]), (whole.stride(0), *args[2]), offset)


def _whole(value: Tensor, full: Fn) -> Any:
    found = full(value)
    return value if found is None else found


def matrices(op: Op, args: Args, full: Fn, size: int) -> Any:
    """mm and bmm: a product of matrices for each example."""
    return _whole(args[0], full) @ _whole(args[1], full)


def matrix_vector(op: Op, args: Args, full: Fn, size: int) -> Any:
    """A matrix times a vector for each example."""
    if full(args[0]) is None:  # one product of matrices, which lies as PyTorch's does
        return (args[0] @ full(args[1]).mT).mT
    return (_whole(args[0], full) @ _whole(args[1], full).unsqueeze(-1)).squeeze(-1)


def vectors(op: Op, args: Args, full: Fn, size: int) -> Any:
    """An inner product for each example."""
    return (_whole(args[0], full) * _whole(args[1], full)).sum(-1)


def linear(op: Op, args: Args, full: Fn, size: int) -> Any:
    """A linear layer for each example; any of its operands may be one for all."""
    bias, x, weight = (_whole(a, full) for a in args)
    product = x @ weight.mT
    return product + (bias if full(args[0]) is None else bias.unsqueeze(1))


def added_matrices(op: Op, args: Args, full: Fn, size: int) -> Any:
    """addmm for each example."""
    product = _whole(args[1], full) @ _whole(args[2], full)
    beta, alpha = args[3:5] if len(args) > 4 else (1, 1)
    bias = full(args[0])
    if bias is None:
        bias = args[0]
    elif args[0].ndim == 1:
        bias = bias.unsqueeze(1)
    return bias * beta + product * alpha


def indexed(op: Op, args: Args, full: Fn, size: int) -> Any:
    """`index` with the same places in every example."""
    if any(full(i) is not None for i in args[1]):
        raise Unsupported
    if args[1][0] is not None and None in args[1]:
        raise Unsupported  # where the result's dimensions come from depends on what lies between
    whole = full(args[0])
    if args[1][0] is None:
        return registry["index"].function(whole, [None, *args[1]])
    return registry["index"].function(whole.movedim(0, -1), [*args[1]]).movedim(-1, 0)


def into_zeros(op: Op, args: Args, full: Fn, size: int) -> Any:
    """What is written into zeros along a dimension."""
    values, shape, dim, index, *rest = args
    if not len(shape):
        raise Unsupported
    whole = [spread(t, full, size) for t in (values, index)]
    return dispatch.call(op, (whole[0], (size, *shape), shifted(dim, len(shape)), whole[1], *rest))


def spread_sum(op: Op, args: Args, full: Fn, size: int) -> Any:
    """The gradient of a sum, over the shape that each example had."""
    g, shape, dim, keepdim = args
    if not shape:  # a sum of one element
        return full(g)
    dims = (
        list(range(len(shape)))
        if dim is None or dim in ((), [])
        else (dim if isinstance(dim, (list, tuple)) else [dim])
    )
    return dispatch.call(op, (full(g), (size, *shape), [d % len(shape) + 1 for d in dims], keepdim))

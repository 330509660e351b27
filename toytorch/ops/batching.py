"""How an op runs on a whole batch at once, found from its record where that is possible.

A batched tensor shows one example's shape and carries the whole batch, whose first dimension is
the batch. An elementwise op broadcasts over it; an op along dimensions gets them counted one
further; a few families have a form of their own below; any other op runs example by example, which
is right for every op and slow.
"""

from __future__ import annotations

from typing import Any

from toytorch.core import dispatch
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.ops import registry

DIMS = ("dim", "dims", "dim0", "dim1", "dim2", "dimension")
# Ops of one tensor along dimensions that the record names.
ALONG = frozenset(
    (
        "transpose",
        "unsqueeze",
        "narrow",
        "slice",
        "select",
        "diagonal",
        "unfold",
        "split",
        "unbind",
        "flip",
        "cumsum",
        "cumprod",
        "cummax",
        "cummin",
        "logcumsumexp",
        "softmax",
        "log_softmax",
        "sort",
        "topk",
        "kthvalue",
        "sum",
        "mean",
        "prod",
        "var",
        "std",
        "amax",
        "amin",
        "max.dim",
        "min.dim",
        "median.dim",
        "argmax",
        "argmin",
        "logsumexp",
        "linalg_vector_norm",
        "permute",
        "squeeze",
        "_log_softmax_backward_data",
        "_softmax_backward_data",
        "gather",
        "scatter",
        "scatter_add",
        "cat",
        "stack",
    )
)
# Ops that treat leading dimensions as a batch anyway.
NATIVE = frozenset(
    (
        "alias",
        "clone",
        "_to_copy",
        "tril",
        "triu",
        "real",
        "imag",
        "view_as_real",
        "view_as_complex",
        "linalg_det",
        "linalg_slogdet",
        "linalg_inv_ex",
        "linalg_cholesky_ex",
        "linalg_eigh",
        "linalg_eigvalsh",
        "linalg_svd",
        "linalg_svdvals",
        "linalg_qr",
        "linalg_matrix_exp",
        "linalg_pinv",
    )
)
ELEMENTWISE = frozenset(["masked_fill", "softplus", "gelu", "glu_none"])


# Fills of random numbers, of which `vmap` wants to know whether examples share them.
RANDOM = frozenset(
    (
        "normal",
        "uniform",
        "bernoulli",
        "random",
        "exponential",
        "cauchy",
        "log_normal",
        "geometric",
        "bernoulli.chances",
        "normal.tensors",
    )
)


class Unsupported(Exception):
    """An op or a call without a form for batches."""


def run(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    """The results over the batch. `full(value)` is the batch of an argument, None without one."""
    try:
        if op.kind == "pointwise" or op.name in ELEMENTWISE:
            return dispatch.call(op, elementwise(op, args, full))
        if op.name in FORMS:
            return FORMS[op.name](op, args, full, size)
        if op.name in ALONG:
            return along(op, args, full, size)
        if op.name in NATIVE and args[0].ndim >= 1:
            return dispatch.call(op, (full(args[0]), *args[1:]))
    except Unsupported:
        return one_by_one(op, args, full, size)
    return one_by_one(op, args, full, size)


def elementwise(op: Op, args: tuple[Any, ...], full: Any) -> tuple[Any, ...]:
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
        common = dispatch.common_dtype(op, args)  # a batch of 0-d tensors promotes as one does
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


def along(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    """An op whose record names the dimensions it works along."""
    first = args[0]
    tensors = first if first.__class__ in (list, tuple) else [args[i] for i in op.tensor_at]
    ndim = tensors[0].ndim
    if not ndim and op.name != "unsqueeze":
        raise Unsupported
    moved = list(args)
    for i, a in enumerate(op.schema.args):
        if a.name not in DIMS:
            continue
        if args[i] is None or args[i] == () or args[i] == []:
            if op.name == "squeeze":
                moved[i] = [d + 1 for d, n in enumerate(first.shape) if n == 1]
            elif "[]" not in a.type:  # all elements in a row
                if "keepdim" in op.schema.index and args[op.schema.index["keepdim"]]:
                    raise Unsupported
                moved[0] = full(first).reshape(size, -1)
                return dispatch.call(op, (*moved[:i], 1, *moved[i + 1 :]))
            else:
                moved[i] = list(range(1, ndim + 1))
        elif op.name == "permute":
            moved[i] = [0, *(d % ndim + 1 for d in args[i])]
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


def spread(tensor: Tensor, full: Any, size: int) -> Tensor:
    """The batch of a tensor; one that has none is repeated."""
    whole: Tensor | None = full(tensor)
    return tensor.unsqueeze(0).expand(size, *tensor.shape) if whole is None else whole


def one_by_one(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    """Every example by itself."""

    def example(value: Any, i: int) -> Any:
        if value.__class__ in (list, tuple):
            return type(value)(example(v, i) for v in value)
        whole = full(value)
        return value if whole is None else whole[i]

    results = [dispatch.call(op, tuple(example(a, i) for a in args)) for i in range(size)]
    join = registry["stack"].function
    return [join(list(rs), 0) for rs in zip(*results)] if op.many else join(results, 0)


# -- ops with a form of their own -----------------------------------------------------------------


def _view(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    return full(args[0]).reshape(size, *args[1])


def _expand(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    sizes = args[1]
    whole = full(args[0])
    lead = len(sizes) - args[0].ndim
    return whole.reshape(size, *[1] * lead, *args[0].shape).expand(size, *sizes)


def _repeat(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    lead = len(args[1]) - args[0].ndim
    return full(args[0]).reshape(size, *[1] * lead, *args[0].shape).repeat(1, *args[1])


def _t(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    return full(args[0]).transpose(1, 2) if args[0].ndim == 2 else full(args[0])


def _as_strided(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    whole, offset = full(args[0]), args[3] if len(args) > 3 else None
    return whole.as_strided((size, *args[1]), (whole.stride(0), *args[2]), offset)


def _whole(value: Any, full: Any) -> Any:
    found = full(value)
    return value if found is None else found


def _mm(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    return _whole(args[0], full) @ _whole(args[1], full)


def _mv(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    return (_whole(args[0], full) @ _whole(args[1], full).unsqueeze(-1)).squeeze(-1)


def _dot(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    return (_whole(args[0], full) * _whole(args[1], full)).sum(-1)


def _linear(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    bias, x, weight = (_whole(a, full) for a in args)
    product = x @ weight.mT
    return product + (bias if full(args[0]) is None else bias.unsqueeze(1))


def _addmm(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    product = _whole(args[1], full) @ _whole(args[2], full)
    beta, alpha = args[3:5] if len(args) > 4 else (1, 1)
    bias = full(args[0])
    if bias is None:
        bias = args[0]
    elif args[0].ndim == 1:
        bias = bias.unsqueeze(1)
    return bias * beta + product * alpha


def _index(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    if any(full(i) is not None for i in args[1]):
        raise Unsupported
    if args[1][0] is not None and None in args[1]:
        raise Unsupported  # where the result's dimensions come from depends on what lies between
    whole = full(args[0])
    return (
        registry["index"].function(whole, [None, *args[1]])
        if args[1][0] is None
        else registry["index"].function(whole.movedim(0, -1), [*args[1]]).movedim(-1, 0)
    )


def _spread(op: Op, args: tuple[Any, ...], full: Any, size: int) -> Any:
    g, shape, dim, keepdim = args
    dims = (
        list(range(len(shape)))
        if dim is None or dim in ((), [])
        else (dim if isinstance(dim, (list, tuple)) else [dim])
    )
    return dispatch.call(op, (full(g), (size, *shape), [d % len(shape) + 1 for d in dims], keepdim))


FORMS = {
    "_spread": _spread,
    "view": _view,
    "_unsafe_view": _view,
    "expand": _expand,
    "repeat": _repeat,
    "t": _t,
    "as_strided": _as_strided,
    "mm": _mm,
    "bmm": _mm,
    "mv": _mv,
    "dot": _dot,
    "linear": _linear,
    "addmm": _addmm,
    "index": _index,
}

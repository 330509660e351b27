"""What existing ops do on sparse tensors: functions of each element, sums and products of two.

`toytorch.backends.sparse` looks kernels up in the table that this module and its neighbours fill;
they are functions of the op's arguments, in which tensors are SparseArrays or dense arrays. What may
simply run on the entries is no kernel: its record says so (`sparse=`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from toytorch.backends.sparse import (
    TABLES,
    SparseArray,
    backend,
    empty,
    positions,
    unsupported,
    xp_of,
)
from toytorch.core.op import registry
from toytorch.facts.hints import MemoryFormat, Sizes
from toytorch.facts.size import broadcast_pair

Kernel = Callable[..., Any]
K = TypeVar("K", bound=Kernel)


def entering(table: dict[str, Kernel]) -> Callable[..., Callable[[K], K]]:
    """The decorator that enters a function in a table as the kernel of the named ops."""

    def kernel(*names: str) -> Callable[[K], K]:
        def enter(function: K) -> K:
            table.update(dict.fromkeys(names, function))
            return function

        return enter

    return kernel


kernel = entering(backend.kernels)


def is_sparse(a: Any) -> bool:
    """Whether an array is a sparse one."""
    return a.__class__ is SparseArray


def need_sparse(name: str, a: Any) -> SparseArray:
    """The operand, which must be sparse."""
    if a.__class__ is not SparseArray:
        raise NotImplementedError(unsupported(name, "CPU"))
    return a


# -- one operand ----------------------------------------------------------------------------------


@kernel("clone")
def _clone(a: SparseArray, memory_format: MemoryFormat | None) -> SparseArray:
    if memory_format is not None and memory_format.name != "preserve_format":
        raise RuntimeError(
            "unsupported memory format option " + memory_format.name.title().split("_")[0]
        )
    return a.copy()


@kernel("alias")
def _alias(a: SparseArray) -> SparseArray:
    return a.with_values(a.values)


@kernel("copy")
def _copy(a: Any, source: Any, non_blocking: bool) -> SparseArray:
    if not (is_sparse(a) and is_sparse(source)):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented!")
    return source.copy().astype(a.dtype)


@kernel("fill")
def _fill(a: SparseArray, value: Any) -> Any:
    raise NotImplementedError(unsupported("fill_.Scalar", "SparseCPU"))


@kernel("zero")
def _zero(a: SparseArray) -> SparseArray:
    return empty(a.shape, a.dtype, a.sparse_dim, xp_of(a))


@kernel("pow")
def _pow(a: Any, exponent: Any) -> SparseArray:
    if not is_sparse(a) or is_sparse(exponent) or exponent.ndim:
        raise NotImplementedError(unsupported("pow.Tensor_Tensor", "SparseCPU"))
    if exponent == 0:
        raise RuntimeError(
            "pow: cannot raise to zeroth power on sparse tensor; it would make the "
            "result tensor dense"
        )
    a = a.coalesce()
    return a.with_values(registry["pow"].kernel_on(xp_of(a))(a.values, exponent))


# -- two operands ---------------------------------------------------------------------------------


@kernel("add")
def _add(a: Any, b: Any, alpha: float = 1) -> Any:
    """self + alpha·other; entries of uncoalesced operands are listed one after the other."""
    if not is_sparse(b) or (is_sparse(a) != is_sparse(b) and not a.ndim):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    xp = xp_of(b)
    share = b.values if alpha == 1 else b.values * b.dtype.type(alpha)
    if not is_sparse(a):
        return _add_to_dense(xp, a, b.with_values(share))
    if a.shape != b.shape:
        raise RuntimeError(
            "add: expected sizes of 'self' and 'other' to match, but "
            f"{list(a.shape)} != {list(b.shape)}"
        )
    if not b.nnz:
        return a.copy()
    if not a.nnz:
        return b.with_values(share if alpha != 1 else b.values.copy())
    if a.sparse_dim != b.sparse_dim:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same density, but 'self' has {a.sparse_dim} "
            f"sparse dimensions while 'other' has {b.sparse_dim} sparse dimensions"
        )
    return merged(xp, a, b.with_values(share))


def merged(xp: Any, a: SparseArray, b: SparseArray) -> SparseArray:
    """The entries of both, one after the other, unless both are in order or at the same places."""
    if a.indices is b.indices:
        return a.with_values(a.values + b.values)
    both = SparseArray(
        xp.concatenate([a.indices, b.indices], 1), xp.concatenate([a.values, b.values]), a.shape,
        False,
    )  # fmt: skip
    return both.coalesce() if a.coalesced and b.coalesced else both


def _add_to_dense(xp: Any, a: Any, b: SparseArray) -> Any:
    if a.shape != b.shape:
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same size, but self has size "
            f"{list(a.shape)} while other has size {list(b.shape)} (FYI: "
            "dense-sparse addition does not currently support broadcasting)"
        )
    b = b.coalesce()
    made = a.copy()
    if b.nnz:
        made[tuple(b.indices)] += b.values if b.sparse_dim else b.values[0]
    return made


@kernel("sub")
def _sub(a: Any, b: Any, alpha: Any = 1) -> Any:
    if not is_sparse(b):
        return _add(a, b)  # refuses it
    return _add(a, b.with_values(-b.values), alpha)


@kernel("mul")
def _mul(a: Any, b: Any) -> SparseArray:
    """The product: zero wherever a sparse operand is."""
    if is_sparse(a) and is_sparse(b):
        return _mul_sparse(a, b)
    if not is_sparse(a):
        a, b = b, a
    if b.ndim == 0:
        return a.with_values(a.values * b[()])
    shape = broadcast_pair(a.shape, b.shape)
    wide = spread(a, shape)
    factors = xp_of(a).broadcast_to(b, shape)[tuple(wide.indices)]
    if not wide.sparse_dim:
        factors = factors[None]
    return wide.with_values(wide.values * factors)


def spread(a: SparseArray, shape: Sizes) -> SparseArray:
    """A sparse array broadcast to a shape: its entries repeated."""
    if a.shape == shape:
        return a
    xp, lead = xp_of(a), len(shape) - a.ndim
    indices, values = a.indices, a.values
    if lead:
        places = xp.indices(shape[:lead]).reshape(lead, -1)
        times = places.shape[1]
        indices = xp.concatenate([xp.repeat(places, a.nnz, 1), xp.tile(indices, (1, times))])
        values = xp.tile(values, (times, *(1,) * a.dense_dim))
    coalesced = a.coalesced
    for d in range(a.sparse_dim):
        n = shape[lead + d]
        if a.shape[d] == 1 != n:
            indices = xp.repeat(indices, n, 1)
            indices[lead + d] = xp.tile(xp.arange(n), len(values))
            values, coalesced = xp.repeat(values, n, 0), False
    values = xp.broadcast_to(values, (len(values), *shape[lead + a.sparse_dim :]))
    return SparseArray(indices, values, shape, coalesced)


def _mul_sparse(a: SparseArray, b: SparseArray) -> SparseArray:
    """The entries of one operand, each times what the other has at its place."""
    if a.shape != b.shape or a.sparse_dim != b.sparse_dim:
        raise RuntimeError(
            "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, "
            "number of sparse dimensions, and shape of sparse dimensions"
        )
    if a.coalesced == b.coalesced:
        table, source = (a, b) if a.nnz >= b.nnz else (b, a)
    else:
        table, source = (a, b) if a.coalesced else (b, a)
    return source.with_values(source.values * look_up(table, source.indices))


def look_up(a: Any, indices: Any) -> Any:
    """The blocks of an array, sparse or dense, at the places that columns of indices name."""
    if not is_sparse(a):
        found = a[tuple(indices)]
        return found if len(indices) else xp_of(a).repeat(a[None], indices.shape[1], 0)
    table = a.coalesce()
    xp, places = xp_of(table), table.places()
    wanted = positions(indices, a.shape[: a.sparse_dim])
    made = xp.zeros((len(wanted), *table.values.shape[1:]), a.dtype)
    if table.nnz:
        at = xp.minimum(xp.searchsorted(places, wanted), table.nnz - 1)
        hit = places[at] == wanted
        made[hit] = table.values[at[hit]]
    return made


def _divider(name: str, linear: bool, word: str = "") -> Kernel:
    """A quotient; one that rounds is not linear, so what lies at one place is added up first."""

    def run(a: Any, b: Any) -> SparseArray:
        if b.__class__ in TABLES and not b.ndim:
            raise RuntimeError(
                f"Sparse {word}division requires a scalar or zero-dim dense tensor divisor "
                "(got a sparse divisor)"
            )
        if a.__class__ not in TABLES or b.ndim:
            raise RuntimeError(
                f"Sparse {word}division requires a scalar or zero-dim dense tensor divisor "
                f"(got shape {list(b.shape)} for divisor)"
            )
        a = a if linear else a.coalesce()
        return a.with_values(registry[name].kernel_on(xp_of(a))(a.values, b))

    return run


kernel("div")(_divider("div", True))
for _name in ("div.floor", "div.trunc"):
    kernel(_name)(_divider(_name, False))
kernel("floor_divide")(_divider("floor_divide", False, "floor "))


@kernel("relu_backward")
def _relu_backward(g: Any, y: Any) -> SparseArray:
    if not is_sparse(g):
        g = SparseArray(y.indices, look_up(g, y.indices), y.shape, y.coalesced)
    open_ = look_up(y, g.indices) > 0
    return g.with_values(g.values * open_)

"""What the functions of linear algebra share: their error, their checks, their named results."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule, Fn
from toytorch.facts.size import broadcast_pair
from toytorch.ops.creation.create import eye
from toytorch.ops.define import PUBLIC
from toytorch.ops.named_results import return_type


class _LinAlgError(RuntimeError):
    """A matrix that a method cannot handle: singular, not positive definite, no convergence."""


LinAlgError = _LinAlgError  # a traceback shows the other name, as PyTorch's
PUBLIC["linalg.LinAlgError"] = LinAlgError
BLOCK = 32  # columns that are factored one by one before a matrix product updates the rest


def need_float(name: str, a: Array, kernel: str = "", *, or_empty: bool = False) -> None:
    """Refuses integers, and half precision (in the words of the kernel that has none)."""
    if a.dtype.kind not in "fc" and from_numpy_dtype(a.dtype).rank < 2:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{from_numpy_dtype(a.dtype).legacy}"
        )
    if a.dtype.itemsize == 2:
        if kernel:
            need_kernel(kernel, a, or_empty=or_empty)
            return
        raise RuntimeError(
            f"{name}: Low precision dtypes not supported. Got {from_numpy_dtype(a.dtype).legacy}"
        )


def need_kernel(kernel: str, a: Array, *, or_empty: bool = False) -> None:
    """Refuses types for which there is no method, as PyTorch's table of kernels does; with
    `or_empty`, only where there are elements."""
    if (a.size or not or_empty) and (a.dtype.kind not in "fc" or a.dtype.itemsize == 2):
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{from_numpy_dtype(a.dtype).legacy}'"
        )


def empty_of_any_type(kernel: Fn) -> Fn:
    """A kernel that takes types it has no method for, where there are no elements."""

    @functools.wraps(kernel)
    def called(xp: ArrayModule, a: Array, *more: Any) -> Any:
        made = kernel(xp, a, *more)
        if a.size or (a.dtype.kind in "fc" and a.dtype.itemsize > 2):
            return made
        results = made if isinstance(made, tuple) else (made,)
        results = tuple(r.astype(a.dtype) if r.dtype == np.float32 else r for r in results)
        return results if isinstance(made, tuple) else results[0]

    return called


def workable(a: Array) -> Any:
    """The array; one without elements in a type that NumPy has methods for."""
    return a if a.size or (a.dtype.kind in "fc" and a.dtype.itemsize > 2) else a.astype("float32")


def need_matrix(name: str, a: Array, argument: str = "A") -> None:
    """Refuses what has fewer than two dimensions."""
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def need_square(name: str, a: Array) -> None:
    """Refuses what is no batch of square matrices."""
    need_matrix(name, a)
    m, n = a.shape[-2:]
    if m != n:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {m} by {n} matrices"
        )


def need_same_dtype(name: str, a: Array, b: Array, first: str = "A") -> None:
    """Refuses two types."""
    if a.dtype != b.dtype:
        x, y = (from_numpy_dtype(v.dtype).legacy for v in (a, b))
        raise RuntimeError(
            f"{name}: Expected {first} and B to have the same dtype, but "
            f"found {first} of type {x} and B of type {y} instead"
        )


def need_fit(name: str, a: Array, b: Array, left: bool = True) -> None:
    """Refuses an equation AX = B (or XA = B) whose sizes do not match."""
    need_square(name, a)
    need_matrix(name, b, "B")
    if a.shape[-2] != b.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )
    broadcast_pair(b.shape[:-2], a.shape[:-2])


def raise_first(name: str, info: Tensor, text: str, error: type = LinAlgError) -> None:
    """Raises an error where an info is not 0, naming the first such matrix of a batch.

    `text` may hold {info}, the number of the row that stopped the method.
    """
    numbers = info._array.reshape(-1)
    if info.is_meta or not numbers.any():
        return
    i = int((numbers != 0).argmax())
    where = f"(Batch element {i}): " if info.ndim else ""
    raise error(f"{name}: {where}" + text.format(info=int(numbers[i])))


def absent(g: Any) -> bool:
    """Whether no gradient came for a result (the engine puts constant zeros in its place)."""
    return g is None or (not g._requires_grad and not g._array.any())


def real_diagonal(x: Tensor) -> Tensor:
    """The real parts of the diagonal."""
    d = x.diagonal(0, -2, -1)
    return d.real if d.dtype.is_complex else d


def named(name: str, names: str, results: Sequence[Tensor], *, out: Any = None) -> Any:
    """Results with names, such as (U, S, Vh)."""
    return return_type(name, results, tuple(names.split()), out=out)


def identity(like: Tensor, m: int, n: int | None = None) -> Any:
    """The identity matrix, in the type and place of another tensor."""
    return eye(m, m if n is None else n, dtype=like.dtype, device=like.device)

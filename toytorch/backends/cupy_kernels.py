"""What CuPy's functions lack, in those that it has: what ops `attempt` where arrays are CuPy's.

CuPy's ufuncs have `accumulate` and `reduceat` for sums and products only, and `at` where CUDA has
an atomic operation of the type: not for products, not for narrow integers or complex numbers.
Its atomic extremes of float64 round to float32, and those of both pass over NaN (seen on an H100,
CuPy 14.2): extremes of floating-point numbers are those of integers in the same order.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from toytorch.backends import cupy_rows
from toytorch.facts.hints import Args, Array, ArrayModule, Fn
from toytorch.facts.trace import AcceleratorError, OutOfMemoryError
from toytorch.loops.formula import Formula

if TYPE_CHECKING:
    from toytorch.backends.cupy import CupyBackend

Places = Array | tuple[Array | slice, ...]
ATOMIC = {  # the types for which CuPy's `ufunc.at` exists
    "add": ("int32", "int64", "uint32", "uint64", "float16", "float32", "float64"),
    "maximum": ("int32", "int64", "uint32", "uint64"),
    "minimum": ("int32", "int64", "uint32", "uint64"),
}
SIGNED = {"float16": "int16", "float32": "int32", "float64": "int64"}  # of the same bits
LOGICAL = ("logical_and", "logical_or", "logical_xor", "logical_not")
WIDE = {"b": "int32", "i": "int64", "u": "int64"}  # types that hold the narrow ones' values


def accumulate(xp: ArrayModule, name: str, a: Array, axis: int) -> Any:
    """The running total along a dimension, in log₂(n) passes (Hillis and Steele, 1986)."""
    if name == "add" or name == "multiply":
        return None
    ufunc, rows = getattr(xp, name), xp.moveaxis(a, axis, 0)
    step = 1
    while step < len(rows):
        rows = xp.concatenate([rows[:step], ufunc(rows[:-step], rows[step:])])
        step *= 2
    return xp.moveaxis(rows, 0, axis) if step > 1 else a.copy()


def at(xp: ArrayModule, name: str, target: Array, places: Places, values: Array) -> Any:
    """target[places] joined with values, every place as often as it comes."""
    if target.dtype.name in ATOMIC.get(name, ()):
        if hasattr(values, "dtype"):
            values = values.astype(target.dtype, copy=False)
        getattr(xp, name).at(target, places, values)
    elif name == "add" and target.dtype.kind == "c":
        values = xp.asarray(values)
        at(xp, name, target.real, places, values.real)
        at(xp, name, target.imag, places, values.imag)
    elif name != "multiply" and target.dtype.name in SIGNED:
        keys = in_order(xp, name, target)
        at(xp, name, keys, places, in_order(xp, name, xp.asarray(values).astype(target.dtype)))
        target[...] = from_order(keys, target.dtype)
    elif name != "multiply" and target.dtype.kind in WIDE:
        wide = target.astype(WIDE[target.dtype.kind])
        at(xp, name, wide, places, xp.asarray(values).astype(wide.dtype))
        target[...] = wide  # integers wrap; any number but 0 is True
    else:
        one_by_one(xp, name, target, places, values)
    return target


def in_order(xp: ArrayModule, name: str, a: Array) -> Any:
    """Integers in the order of floating-point numbers, NaN as the most extreme of all."""
    signed = np.dtype(SIGNED[a.dtype.name])
    limits = np.iinfo(signed)
    most = limits.max if name == "maximum" else limits.min
    return xp.where(xp.isnan(a), signed.type(most), turned(a.view(signed)))


def from_order(keys: Array, type: np.dtype[Any]) -> Any:
    """The numbers of these integers."""
    return turned(keys).view(type)


def turned(bits: Array) -> Any:
    """Bits of floating-point numbers, of which more is a smaller number where the sign is set, as
    integers in the order of the numbers; and back."""
    limits = np.iinfo(bits.dtype)
    return bits ^ ((bits >> (limits.bits - 1)) & bits.dtype.type(limits.max))


def one_by_one(xp: ArrayModule, name: str, target: Array, places: Places, values: Array) -> None:
    """The same without atomic operations: the first value of every place, then the second, …"""
    if not isinstance(places, tuple):
        places = (places,)
    shape = xp.broadcast_arrays(*places)[0].shape
    flat, number = xp.zeros(shape, "int64"), 1
    for place, n in zip(reversed(places), reversed(target.shape[: len(places)])):
        flat, number = flat + (place % n) * number, number * n
    flat = flat.reshape(-1)
    rest = target.shape[len(places) :]
    rows = target.reshape(number, *rest)
    given = xp.broadcast_to(values, (*shape, *rest)).reshape(-1, *rest)
    order = xp.argsort(flat)  # CuPy's sorts are stable
    flat, given = flat[order], given[order]
    first = xp.searchsorted(flat, flat)  # where the run of each place starts
    turn = xp.arange(flat.size) - first
    ufunc = getattr(xp, name)
    for k in range(int(turn.max()) + 1 if turn.size else 0):
        now = turn == k
        rows[flat[now]] = ufunc(rows[flat[now]], given[now])
    target[...] = rows.reshape(target.shape)  # rows may be a copy


def reduceat(xp: ArrayModule, name: str, rows: Array, starts: Array) -> Any:
    """Runs of rows joined, given where each run starts."""
    which = xp.searchsorted(starts, xp.arange(len(rows)), "right") - 1
    made = rows[starts].copy()
    if name == "add":
        made[...] = 0
    at(xp, name, made, which, rows)  # of extremes the first may count twice
    return made


def logical(name: str) -> Fn:
    """A logical function, also of complex numbers, for which CuPy's has no loop."""

    def function(xp: ArrayModule, *operands: Array, out: Array | None = None) -> Any:
        truths = [x != 0 if x.dtype.kind == "c" else x for x in operands]
        return getattr(xp, name)(*truths, out=out)

    return function


def divide(xp: ArrayModule, x: Array, y: Array, out: Array | None = None) -> Any:
    """A quotient; of complex numbers by 0 its parts are infinite, where CuPy's are NaN."""
    if not any(xp.iscomplexobj(operand) for operand in (x, y)):
        return xp.true_divide(x, y, out=out)
    made = xp.true_divide(x, y)
    x, zero = xp.asarray(x), xp.asarray(y) == 0
    none = made.real.dtype.type(0)
    made.real[...] = xp.where(zero, x.real / none, made.real)
    made.imag[...] = xp.where(zero, x.imag / none, made.imag)
    if out is None:
        return made
    out[...] = made
    return out


def solve(xp: ArrayModule, a: Array, b: Array) -> Any:
    """X of AX = B for batches that broadcast, which CuPy's function wants alike."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = xp.broadcast_to(a, (*batch, *a.shape[-2:]))
    return xp.linalg.solve(a, xp.broadcast_to(b, (*batch, *b.shape[-2:])))


def copy(xp: ArrayModule, a: Array) -> Any:
    """A copy of elements that lie one after the other; CuPy's own takes twice the time."""
    if not a.flags.c_contiguous:
        return None
    made = xp.empty(a.shape, a.dtype)
    made.data.copy_from_device_async(a.data, a.nbytes, xp.cuda.get_current_stream())
    return made


def formula(
    xp: ArrayModule, text: Formula, params: list[str], args: Args, out: Array | None = None
) -> Any:
    """A formula in one kernel; None where CuPy's functions have to do it one by one."""
    found = _one_kernel.get(text, text)
    if found is text:
        from toytorch.loops.one_kernel import OneKernel  # loaded where there is a card only

        found = _one_kernel[text] = OneKernel(text, params) if text.known else None
    return None if found is None else found(xp, *args, out=out)


def later(module: str, name: str) -> Fn:
    """A kernel of a module that is imported when it is first asked for."""

    def kernel(*args: Any) -> Any:
        return getattr(importlib.import_module(f"toytorch.backends.{module}"), name)(*args)

    return kernel


# Kernels that are written by hand, by the module that has them.
LATER = {
    "cupy_images": "convolution convolution_input convolution_weight max_pool max_pool_backward "
    "mean_pool mean_pool_backward",
    "cupy_index": "gather scatter select known_rows add_slices add_rows picked_loss put_picked",
    "cupy_numbers": "of_numbers",
    "cupy_products": "linear product products",
    "cupy_attention": "attention attention_backward",
    "cupy_scan": "running_sum running_product",
    "cupy_sort": "ordered top",
    "cupy_folded": "cast factors folded loop sum",
    "cupy_norms": "batch_norm batch_norm_affine batch_norm_backward group_norm group_norm_backward",
}
_one_kernel: WeakKeyDictionary[Formula, Any] = WeakKeyDictionary()
TABLE: dict[str, Fn] = {
    "accumulate": accumulate,
    "at": at,
    "copy": copy,
    **{name: later(module, name) for module, names in LATER.items() for name in names.split()},
    **{
        f"halves {n}, not widened": later("cupy_products", f"halves_{n}")
        for n in ("linear", "product")
    },
    **cupy_rows.TABLE,
    "program": cupy_rows.program,
    "formula": formula,
    "reduceat": reduceat,
    "solve": solve,
    "own divide": divide,
    **{f"own {name}": logical(name) for name in LOGICAL},
}


def table(backend: CupyBackend) -> dict[str, Fn]:
    """The kernels, by the names under which ops `attempt` them."""
    made = {name: bound(backend, function) for name, function in TABLE.items()}
    return {**made, "guard": lambda kernel: guard(backend, kernel)}


def bound(backend: CupyBackend, function: Fn) -> Fn:
    """A kernel that is given the backend's array module when it is called."""

    def kernel(*args: object, **kwargs: object) -> Any:
        return function(backend.xp, *args, **kwargs)

    return kernel


# -- errors ---------------------------------------------------------------------------------------


def guard(backend: CupyBackend, kernel: Fn) -> Fn:
    """A kernel whose errors have PyTorch's words; CuPy's decompositions raise inside of it.

    By themselves they give unusable numbers for a singular matrix and say nothing.
    """
    inner = getattr(kernel, "func", kernel)
    decomposes = "linalg" in getattr(inner, "__module__", "")

    def guarded(*args: object, **kwargs: object) -> Any:
        try:
            if decomposes:
                with backend.strict():
                    return kernel(*args, **kwargs)
            return kernel(*args, **kwargs)
        except Exception as error:
            said = translated(backend, error)
            if said is error:
                raise
            raise said from error

    return guarded


def translated(backend: CupyBackend, error: Exception) -> Exception:
    """CuPy's error as PyTorch says it; any other as it is."""
    cuda = backend.xp.cuda
    if isinstance(error, cuda.memory.OutOfMemoryError):
        return OutOfMemoryError(f"CUDA out of memory. {error}")
    if isinstance(error, cuda.runtime.CUDARuntimeError):
        name, _, words = str(error).partition(": ")  # "cudaErrorNoDevice: no CUDA-capable …"
        if name == "cudaErrorMemoryAllocation":
            return OutOfMemoryError(f"CUDA out of memory. {words}")
        return AcceleratorError(f"CUDA error: {words or name}")
    return error

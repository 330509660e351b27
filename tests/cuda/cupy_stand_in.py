"""A stand-in for CuPy where there is no GPU: CuPy's names, signatures and rules over NumPy.

`made()` gives a module named "cupy" with the functions, ufuncs and methods that CuPy has, no more:
the table `cupy_signatures.json` is taken from its wheel (see `signatures`). Every call is checked
against CuPy's own signature, operands must be arrays of the pretended device, and results are such.
What it computes is NumPy's.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from tests.cuda import stand_in_cuda
from tests.cuda.raw_module import RawKernel, RawModule
from tests.cuda.signatures import TABLE
from tests.cuda.stand_in_array import (
    SCALARS,
    Ufunc,
    check_type,
    has_numpy,
    ndarray,
    scatter,
    unwrap,
    words,
    wrap,
)
from tests.cuda.stand_in_cuda import CUDARuntimeError, OutOfMemoryError

# Functions that copy NumPy's arrays to the device, or need no array.
TAKE_NUMPY = frozenset(
    words(
        "array asarray asanyarray ascontiguousarray asfortranarray asnumpy can_cast result_type "
        "take ndim shape size isscalar full get_array_module"
    )
)
# Parameters that must be arrays of the device; elsewhere scalars and lists are welcome.
ARRAYS = frozenset(words("a x arr ary m prototype A v"))
FREE = TAKE_NUMPY | frozenset(
    words(
        "tril_indices triu_indices isscalar tile full_like can_cast min_scalar_type iscomplexobj "
        "isrealobj atleast_1d diag ones_like "
        "zeros_like"
    )
)
PYTHON = frozenset(
    words(
        "ndim shape size result_type can_cast promote_types isscalar may_share_memory shares_memory "
        "iscomplexobj isrealobj common_type min_scalar_type issubdtype broadcast_shapes"
    )
)
# NumPy's parameter of another name, or none.
RENAMED = {"newshape": "shape", "tup": "arrays", "arys": "arrays", "blocking": None}
NOT_LINALG = "float16"


class Refused(TypeError):
    """CuPy has no such way to be called."""


def signature_of(text: str) -> inspect.Signature:
    space: dict[str, Any] = {"Ellipsis": ...}
    exec(f"def f{text}: ...", space)
    return inspect.signature(space["f"])


def checked(
    path: str, text: str, compute: Callable[..., Any], method: bool = False
) -> Callable[..., Any]:
    """`compute` behind CuPy's signature and rules."""
    known, word = signature_of(text), path.rpartition(".")[2]

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = known.bind(*args, **kwargs)
        except TypeError as error:
            raise Refused(f"{path}{text}: {error}") from None
        for name, value in bound.arguments.items():
            if has_numpy(value) and word not in TAKE_NUMPY:
                raise Refused(f"{path}: {name} is an array of NumPy")
            if name in ARRAYS and word not in FREE and not isinstance(value, ndarray):
                raise Refused(f"{path}: {name} must be an array of CuPy, not {type(value)}")
            if name == "dtype" and value is not None and word not in PYTHON:
                check_type(value)
        if path.startswith("cupy.linalg.") or word in ("einsum", "dot"):
            for value in bound.arguments.values():
                if isinstance(value, ndarray) and value.dtype.name == "bfloat16":
                    raise TypeError(f"{path} has no bfloat16")
                if isinstance(value, ndarray) and value.dtype.name == "float16" and (
                    "linalg" in path and word not in ("norm", "matrix_power")
                ):  # fmt: skip
                    raise TypeError("float16 is unsupported in linalg")
        args = tuple(unwrap(a) for a in args)
        kwargs = {RENAMED.get(k, k): unwrap(v) for k, v in kwargs.items()}
        kwargs.pop(None, None)
        out = kwargs.get("out")
        with np.errstate(all="ignore"):
            made = compute(*args, **kwargs)
        if out is not None and made is out:
            return bound.arguments["out"]
        return made if word in PYTHON else wrap(made)

    function.__name__ = word
    function.__qualname__ = path
    return function


def of_numpy(path: str, home: Any) -> Any:
    """NumPy's function of a name, or None."""
    return getattr(home, path, None)


# -- what CuPy does otherwise, in NumPy's arrays ---------------------------------------------------


def asarray(a: Any, dtype: Any = None, order: Any = None, copy: Any = None) -> Any:
    made = np.array(a, dtype, copy=copy, order=order)
    check_type(made.dtype)
    return np.array(made) if not isinstance(a, ndarray) and made is a else made


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    return np.repeat(a, repeats, axis)


def quiet_linalg(compute: Callable[..., Any]) -> Callable[..., Any]:
    """CuPy's decompositions say nothing where a matrix is singular unless they are told to.

    `cupyx.seterr(linalg="raise")` makes them raise; their results are unusable otherwise.
    """

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            return compute(*args, **kwargs)
        except np.linalg.LinAlgError as error:
            if CONFIG["linalg"] == "raise" or "dimension" in str(error):
                raise
            eye = np.broadcast_to(np.eye(args[0].shape[-1]), args[0].shape).astype(args[0].dtype)
            return compute(eye, *args[1:], **kwargs)  # finite, plausible and wrong

    return function


CONFIG = {"linalg": "ignore"}


@contextmanager
def errstate(*, linalg: str) -> Iterator[None]:
    """`cupyx.errstate`, as far as decompositions ask for it."""
    before, CONFIG["linalg"] = CONFIG["linalg"], linalg
    try:
        yield
    finally:
        CONFIG["linalg"] = before


def scatter_add(a: Any, slices: Any, value: Any) -> None:
    scatter(a, slices, value, "add")


OTHERWISE: dict[str, Callable[..., Any]] = {
    "cupy.asarray": asarray,
    "cupy.asanyarray": asarray,
    "cupy.array": lambda obj, dtype=None, copy=True, order="K", subok=False, ndmin=0: np.array(
        obj, dtype, copy=copy or None, order=order, ndmin=ndmin
    ),
    "cupy.ascontiguousarray": lambda a, dtype=None: (
        np.ascontiguousarray(a, dtype) if np.ndim(a) else np.array(a, dtype)
    ),
    "cupy.repeat": repeat,
    "cupy.bincount": lambda x, weights=None, minlength=None: np.bincount(
        x, weights, minlength or 0
    ),
    "cupy.take": lambda a, indices, axis=None, out=None: np.take(
        a, indices, axis, out=out, mode="wrap"
    ),
    "cupy.put_along_axis": lambda arr, indices, values, axis: np.put_along_axis(
        arr, indices, values, axis
    ),
}
LINALG = words("cholesky qr svd eigh eig eigvalsh eigvals solve inv pinv det slogdet lstsq")


WHERE = Ufunc(
    "where",
    {
        "name": "cupy_where", "nin": 3, "nout": 1, "scatter": None, "casting": "same_kind",
        "types": "???->? " + " ".join(f"?{c}{c}->{c}" for c in "bBhHiIlLqQefdFD"),
    },
    np.where,
)  # fmt: skip


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`cupy.where`: the condition is an array, the values are a ufunc's operands."""
    if x is None and y is None:
        return condition.nonzero()
    return WHERE(condition.astype("?", copy=False), x, y)


def as_strided(x: Any, shape: Any = None, strides: Any = None) -> Any:
    """`cupy.lib.stride_tricks.as_strided`: an array over the same memory, which has no base."""
    shape = x.shape if shape is None else tuple(shape)
    strides = x.strides if strides is None else tuple(strides)
    return ndarray(shape, x.dtype, x.data, strides)


@functools.cache
def made() -> Any:
    """The module."""
    table = json.loads(TABLE.read_text())
    cupy: Any = ModuleType("cupy")
    cupy.__version__ = table["version"]
    homes = {
        "cupy": cupy,
        "cupy.linalg": SimpleNamespace(LinAlgError=np.linalg.LinAlgError),
        "cupy.fft": SimpleNamespace(),
        "cupy.lib.stride_tricks": SimpleNamespace(),
        "cupyx.scipy.special": SimpleNamespace(),
    }
    for path, home in homes.items():
        origin: Any = np
        for part in path.split(".")[1:] if path.startswith("cupy.") else ():
            origin = getattr(origin, part)
        for word, record in table["modules"][path].items():
            compute = OTHERWISE.get(f"{path}.{word}") or getattr(origin, word, None)
            if compute is None:
                compute = not_written(f"{path}.{word}")
            if path == "cupy.linalg" and word in LINALG:
                compute = quiet_linalg(compute)
            setattr(
                home, word,
                checked(f"{path}.{word}", record, compute) if isinstance(record, str)
                else Ufunc(word, record, compute),
            )  # fmt: skip
    cupy.linalg, cupy.fft = homes["cupy.linalg"], homes["cupy.fft"]
    cupy.lib = SimpleNamespace(stride_tricks=homes["cupy.lib.stride_tricks"])
    cupy.lib.stride_tricks.as_strided = as_strided
    cupy.special = homes["cupyx.scipy.special"]
    cupy.ndarray = ndarray
    ndarray.module = cupy
    for word in words(
        "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
        "complex128 inf nan pi e newaxis dtype finfo iinfo integer floating complexfloating number "
        "intp generic"
    ):
        setattr(cupy, word, getattr(np, word))
    cupy.where = where
    cupy.errstate = errstate
    cupy.asnumpy = lambda a, stream=None, order="C", out=None, *, blocking=True: np.array(
        unwrap(a), order=order
    )
    cupy.get_array_module = lambda *args: cupy if any(isinstance(a, ndarray) for a in args) else np
    cupy.get_default_memory_pool = stand_in_cuda.Pool
    cupy.RawModule, cupy.RawKernel = RawModule, RawKernel
    cupy.cuda = stand_in_cuda.made()
    for word, text in table["classes"]["ndarray"].items():
        if text and word not in vars(ndarray) and not word.startswith("_"):
            setattr(ndarray, word, method_of(word, text))
    ndarray.__matmul__ = lambda a, b: cupy.matmul(a, b)  # type: ignore[attr-defined]  # set on the class
    return cupy


def not_written(path: str) -> Callable[..., Any]:
    def compute(*args: Any, **kwargs: Any) -> Any:
        # a name of CuPy's that no kernel of ours may call before somebody writes it here
        raise NotImplementedError(f"the stand-in has nothing that computes {path}")

    return compute


METHODS: dict[str, Callable[..., Any]] = {
    "get": lambda a, stream=None, order="C", out=None, blocking=True: np.array(a, order=order),
    "take": lambda a, indices, axis=None, out=None: np.take(a, indices, axis, out, "wrap"),
    "set": lambda a, arr, stream=None: np.copyto(a, arr),
    "astype": lambda a, dtype, order="K", casting=None, subok=None, copy=True: np.asarray(a).astype(
        dtype, order, casting or "unsafe", copy=copy
    ),
    "reshape": lambda a, *shape, order="C", copy=None: np.reshape(
        a, shape[0] if len(shape) == 1 else shape, order
    ),
    "view": lambda a, dtype=None, type=None: a.view() if dtype is None else a.view(dtype),
    "scatter_add": None,  # type: ignore[dict-item]  # it needs the module, and is put in below
    "argmax": lambda a, axis=None, out=None, dtype=None, keepdims=False: np.argmax(
        a, axis, keepdims=keepdims
    ),
    "argmin": lambda a, axis=None, out=None, dtype=None, keepdims=False: np.argmin(
        a, axis, keepdims=keepdims
    ),
}
TO_PYTHON = ("get", "item", "tolist", "tobytes")


def method_of(word: str, text: str) -> Callable[..., Any]:
    """A method of arrays behind CuPy's signature."""
    known = signature_of(text)
    compute = METHODS.get(word) or (lambda a, *args, **kwargs: getattr(a, word)(*args, **kwargs))

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = known.bind(self, *args, **kwargs)
        except TypeError as error:
            raise Refused(f"ndarray.{word}{text}: {error}") from None
        for name, value in bound.arguments.items():
            if has_numpy(value) and word not in ("set", "take"):
                raise Refused(f"ndarray.{word}: {name} is an array of NumPy")
            if name == "dtype" and value is not None:
                check_type(value)
        if word in ("sort", "argsort") and bound.arguments.get("kind") not in (None, "stable"):
            raise ValueError("kind can only be None or 'stable'")
        if word == "scatter_add":
            return scatter_add(self, *args, **kwargs)
        given = [unwrap(a) for a in args]
        with np.errstate(all="ignore"):
            made = compute(self._numpy, *given, **{k: unwrap(v) for k, v in kwargs.items()})
        out = bound.arguments.get("out")
        if out is not None:
            return out
        return made if word in TO_PYTHON else wrap(made)

    method.__name__ = word
    return method


__all__ = ["CONFIG", "SCALARS", "CUDARuntimeError", "OutOfMemoryError", "Refused", "made"]
_ = ml_dtypes

"""Element types, and the rule that finds the type of a result from the types of its operands."""

from __future__ import annotations

import builtins
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from toytorch.facts.hints import Scalar

__all__ = [
    "bfloat16", "cdouble", "cfloat", "chalf", "complex32", "complex64", "complex128", "double",
    "dtype", "finfo", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "float16", "float32", "float64", "get_default_dtype", "half", "iinfo", "int1",
    "int2", "int3", "int4", "int5", "int6", "int7", "int8", "int16", "int32", "int64", "long",
    "promote_types", "qint8", "qint32", "quint2x4", "quint4x2", "quint8", "set_default_dtype",
    "short", "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7", "uint8", "uint16",
    "uint32", "uint64",
]  # fmt: skip


RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}  # the four categories of promotion
PAIR: str = "W"  # NumPy's letter for complex numbers of half precision, which ml_dtypes brings
OWN = (  # NumPy's types, of the same names
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)


class dtype:
    """The type of a tensor's elements, like `torch.dtype`.

    >>> float32.itemsize, float32.is_floating_point, int64.is_signed
    (4, True, True)
    """

    __slots__ = (
        "_numpy", "bits", "extended", "is_complex", "is_floating_point", "itemsize", "kind",
        "legacy", "name", "plain", "rank", "reduced", "short", "storage_only", "whole", "wide",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        kind: str,
        itemsize: builtins.int,
        legacy: str,
        storage_only: builtins.bool = False,
    ) -> None:
        self.name, self.kind, self.itemsize, self.bits = name, kind, itemsize, 8 * itemsize
        self.storage_only = storage_only  # converted to other types and back, not computed with
        self.is_floating_point = kind == "f"
        self.is_complex = kind == "c"
        self.rank = RANK[kind]
        half = kind == "f" and itemsize < 4
        self.reduced = half or name == "complex32"  # not computed with as it is stored
        self.wide = "complex64" if kind == "c" else "float32"  # what it is computed with
        self.plain = name in ("float32", "float64")  # the types of the fast path
        # Read by `core.fast_whole`.
        self.whole = name in ("bool", "uint8", "int8", "int16", "int32", "int64")
        self.short = self.whole or name in ("float16", "bfloat16")  # it is asked about these, too
        self.legacy = legacy  # the first half of "FloatTensor"
        self.extended = name not in OWN  # elements that NumPy alone does not know
        self._numpy: Any = None if self.extended else np.dtype(name)

    @property
    def is_signed(self) -> builtins.bool:
        """Whether there are numbers below 0; RuntimeError for quantized types."""
        if self in QUANTIZED:
            raise RuntimeError("isSignedType not supported for quantized types")
        return self.kind in "ifc" and self.name != "float8_e8m0fnu"

    @property
    def numpy(self) -> Any:
        """The NumPy dtype that stores these elements.

        Raises RuntimeError for a type that is only a name here (`quint8`), and for one of the
        package ml_dtypes if that is not installed, or is too old to have it.
        """
        if self._numpy is None:
            if self in NAMES_ONLY:
                raise RuntimeError(f"toytorch has no tensors of the type {self!r}")
            try:
                import ml_dtypes  # an optional package

                self._numpy = np.dtype(getattr(ml_dtypes, self.name))
            except (ImportError, AttributeError) as error:  # 0.5 has no complex32
                raise RuntimeError(
                    f"{self.name} needs the package ml_dtypes: pip install 'toytorch[bfloat16]'"
                ) from error
            FROM_NUMPY[self._numpy] = self
        return self._numpy

    def to_real(self) -> dtype:
        """The type of the real part."""
        return REAL.get(self, self)

    def to_complex(self) -> dtype:
        """The complex type whose parts have this type."""
        return COMPLEX.get(self, complex64 if self.itemsize < 8 else complex128)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


float64 = double = dtype("float64", "f", 8, "Double")
float32 = float = dtype("float32", "f", 4, "Float")
float16 = half = dtype("float16", "f", 2, "Half")
bfloat16 = dtype("bfloat16", "f", 2, "BFloat16")
int64 = long = dtype("int64", "i", 8, "Long")
int32 = int = dtype("int32", "i", 4, "Int")
int16 = short = dtype("int16", "i", 2, "Short")
int8 = dtype("int8", "i", 1, "Char")
uint8 = dtype("uint8", "u", 1, "Byte")
uint16 = dtype("uint16", "u", 2, "UInt16")
uint32 = dtype("uint32", "u", 4, "UInt32")
uint64 = dtype("uint64", "u", 8, "UInt64")
float8_e4m3fn = dtype("float8_e4m3fn", "f", 1, "Float8_e4m3fn", storage_only=True)
float8_e5m2 = dtype("float8_e5m2", "f", 1, "Float8_e5m2", storage_only=True)
float8_e4m3fnuz = dtype("float8_e4m3fnuz", "f", 1, "Float8_e4m3fnuz", storage_only=True)
float8_e5m2fnuz = dtype("float8_e5m2fnuz", "f", 1, "Float8_e5m2fnuz", storage_only=True)
float8_e8m0fnu = dtype("float8_e8m0fnu", "f", 1, "Float8_e8m0fnu", storage_only=True)
bool = dtype("bool", "b", 1, "Bool")
complex64 = cfloat = dtype("complex64", "c", 8, "ComplexFloat")
complex128 = cdouble = dtype("complex128", "c", 16, "ComplexDouble")

complex32 = chalf = dtype("complex32", "c", 4, "ComplexHalf", storage_only=True)

# Types to store elements in: they are converted from and to, and little is computed with them.

ALL = (
    float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, bool, complex64,
    complex128,
)  # fmt: skip
WIDE_UNSIGNED = (uint16, uint32, uint64)
FLOAT8 = (float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu)
# Types of which programs ask whether a tensor has them; none has.
quint8 = dtype("quint8", "u", 1, "QUInt8", storage_only=True)
qint8 = dtype("qint8", "i", 1, "QInt8", storage_only=True)
qint32 = dtype("qint32", "i", 4, "QInt32", storage_only=True)
quint4x2 = dtype("quint4x2", "u", 1, "QUInt4x2", storage_only=True)
quint2x4 = dtype("quint2x4", "u", 1, "QUInt2x4", storage_only=True)
_few_int = int1, int2, int3, int4, int5, int6, int7 = [
    dtype(f"int{n}", "i", 1, f"Int{n}", storage_only=True) for n in range(1, 8)
]
_few_uint = uint1, uint2, uint3, uint4, uint5, uint6, uint7 = [
    dtype(f"uint{n}", "u", 1, f"UInt{n}", storage_only=True) for n in range(1, 8)
]
OF_BYTES = (*WIDE_UNSIGNED, *FLOAT8, complex32)  # PyTorch has no storages of these
STORED = (*ALL, *OF_BYTES)  # the types of files and of names such as "HalfTensor"
QUANTIZED = (quint8, qint8, qint32, quint4x2, quint2x4)
NAMES_ONLY = (*QUANTIZED, *_few_int, *_few_uint)

REAL = {complex64: float32, complex128: float64, complex32: float16}
COMPLEX = {float16: complex32, float32: complex64, float64: complex128}
FROM_NUMPY: dict[Any, dtype] = {d._numpy: d for d in (*ALL, *WIDE_UNSIGNED) if d._numpy is not None}

_default = float32


def get_default_dtype() -> dtype:
    """The type that Python floats become; float32 unless it was changed."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Makes `d` the type that Python floats become.

    >>> set_default_dtype(int64)
    Traceback (most recent call last):
    TypeError: only floating-point types are supported as the default type
    """
    global _default
    if not (isinstance(d, dtype) and d.is_floating_point):
        raise TypeError("only floating-point types are supported as the default type")
    _default = d
    promote.cache_clear()


def default_complex() -> dtype:
    """The type that Python complex numbers become."""
    return _default.to_complex()


def of_scalar(value: Scalar) -> dtype:
    """The type of a Python (or NumPy) number.

    >>> of_scalar(True), of_scalar(3), of_scalar(1.5), of_scalar(2j)
    (torch.bool, torch.int64, torch.float32, torch.complex64)
    """
    if isinstance(value, (PY_BOOL, np.bool_)):
        return bool
    if isinstance(value, (PY_INT, np.integer)):
        if not -(1 << 63) <= value < 1 << 64:
            raise too_large(value)
        return int64
    if isinstance(value, (PY_FLOAT, np.floating)):
        return _default
    return default_complex()


def too_large(value: Any) -> OverflowError:
    """What PyTorch says of a number of more than 64 bits."""
    return OverflowError(
        "int too big to convert" if value > 0 else "can't convert negative int to unsigned"
    )


PY_BOOL, PY_INT, PY_FLOAT = builtins.bool, builtins.int, builtins.float


def from_numpy_dtype(numpy_dtype: np.dtype[Any]) -> dtype:
    """The dtype whose elements NumPy calls `numpy_dtype`.

    Raises TypeError for types that tensors do not have.
    """
    found = FROM_NUMPY.get(numpy_dtype)
    if found is None and numpy_dtype.type.__module__ == "ml_dtypes":
        found = next(
            (d for d in (bfloat16, *FLOAT8, complex32) if d.name == numpy_dtype.name), None
        )
        if found is not None:
            found.numpy  # noqa: B018 - registers the type
    if found is None:
        found = FROM_NUMPY.get(numpy_dtype.newbyteorder("="))
        if found is None or not numpy_dtype.isnative:
            raise TypeError(
                f"can't convert np.ndarray of type {numpy_dtype.type.__module__}."
                f"{numpy_dtype.type.__name__}. The only supported types are: float64, float32, "
                "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, "
                "uint16, uint8, and bool."
            )
    return found


def part_of(numpy_dtype: np.dtype[Any]) -> Any:
    """The NumPy dtype of the parts of complex numbers; None where the numbers are real."""
    return np.dtype(f"f{numpy_dtype.itemsize // 2}") if numpy_dtype.kind in ("c", PAIR) else None


@cache
def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type that holds both, like `torch.promote_types`.

    >>> promote_types(uint8, int8), promote_types(int64, float16), promote_types(float64, complex64)
    (torch.int16, torch.float16, torch.complex128)
    """
    a, b = type1, type2
    if a is b:
        return a
    if a in FLOAT8 or b in FLOAT8:
        raise RuntimeError(
            "Promotion for Float8 Types is not supported, attempted to promote "
            f"{a.legacy} and {b.legacy}"
        )
    if a.rank < 2 and b.rank < 2 and (a in WIDE_UNSIGNED or b in WIDE_UNSIGNED):
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            f"{a.legacy} and {b.legacy}"
        )
    if a.rank != b.rank:
        high, low = (a, b) if a.rank > b.rank else (b, a)
        if high.is_complex and low.rank == 2 and high is not low.to_complex():
            return promote_types(high, low.to_complex())
        return high
    if "u" in (a.kind, b.kind):  # uint8 with a signed type: one that holds 0..255 and negatives
        signed = a if b.kind == "u" else b
        return int16 if signed is int8 else signed
    if {a, b} == {float16, bfloat16}:
        return float32
    return a if a.itemsize > b.itemsize else b


def combine(high: dtype | None, low: dtype | None) -> dtype | None:
    """Lets `low`, of a lower rank of operand, change the category of `high` but not its width."""
    if high is None or low is None:
        return high or low
    if high.is_complex:
        return high
    if high.is_floating_point:
        return high.to_complex() if low.is_complex else high
    if high is bool or low.rank > 1:
        return promote_types(high, low)
    return high


@lru_cache(maxsize=4096)
def promote(dims: tuple[dtype, ...], zeros: tuple[dtype, ...], numbers: tuple[dtype, ...]) -> dtype:
    """The result type of operands of three ranks: tensors with dimensions, 0-d tensors, numbers.

    A lower rank counts only where it is of a higher category (bool < integer < floating < complex).
    """
    found: list[dtype | None] = []
    for rank in (dims, zeros, numbers):
        high: dtype | None = None
        for d in rank:
            high = d if high is None else promote_types(high, d)
        found.append(high)
    result = combine(found[0], combine(found[1], found[2]))
    assert result is not None
    return result


def asked(name: str, value: Any) -> dtype:
    """The type whose limits are asked for: a type of elements, or Python's for the widest."""
    if isinstance(value, dtype):
        return value
    if isinstance(value, type):
        for kind, widest in zip(
            (PY_FLOAT, PY_INT, PY_BOOL, builtins.complex), (float64, int64, bool, complex128)
        ):
            if value is kind:
                return widest
    given = type(value).__name__
    raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {given}")


class finfo:
    """Limits of a floating-point type, like `torch.finfo`.

    >>> finfo(float16).max, finfo().eps
    (65504.0, 1.1920928955078125e-07)
    """

    def __init__(self, type: Any = ...) -> None:
        type = _default if type is ... else asked("finfo", type)
        if not (type.is_floating_point or type.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo "
                "to handle 'torch.finfo'"
            )
        type = type.to_real()
        if type.extended:
            import ml_dtypes  # an optional package

            limits: Any = ml_dtypes.finfo
            info = limits(type.name)
        else:
            info = np.finfo(type.numpy)
        self.bits, self.dtype = type.bits, type.name
        self.max, self.min, self.eps = PY_FLOAT(info.max), PY_FLOAT(info.min), PY_FLOAT(info.eps)
        self.tiny = self.smallest_normal = PY_FLOAT(info.smallest_normal)
        self.resolution = 1.0 if type in FLOAT8 else PY_FLOAT(f"1e-{info.precision}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer type, like `torch.iinfo`.

    >>> iinfo(int8).min, iinfo(uint8).max
    (-128, 255)
    """

    def __init__(self, type: Any) -> None:
        type = asked("iinfo", type)
        if type.rank != 1:
            raise TypeError(
                "torch.bool is not supported by torch.iinfo"
                if type.rank < 1
                else "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                "'torch.iinfo'"
            )
        info = np.iinfo(type.numpy)
        self.bits, self.dtype = type.bits, type.name
        self.max, self.min = PY_INT(info.max), PY_INT(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


IN_C = {  # what errors of PyTorch call the types
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int",
    "int32": "int", "int64": "long int", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


def no_kernel(name: str, kind: np.dtype[Any]) -> NotImplementedError:
    """What PyTorch says where its kernel of a name has no form for a type of NumPy's."""
    return NotImplementedError(f"\"{name}\" not implemented for '{from_numpy_dtype(kind).legacy}'")


def cannot_cast(made: dtype, to: dtype) -> RuntimeError:
    """What PyTorch says of a result whose category of numbers the target cannot hold.

    >>> cannot_cast(float32, int64)
    RuntimeError("result type Float can't be cast to the desired output type Long")
    """
    return RuntimeError(
        f"result type {made.legacy} can't be cast to the desired output type {to.legacy}"
    )

"""The stand-in's arrays and ufuncs: NumPy's results under CuPy's rules.

Where CuPy's documentation ("Differences between CuPy and NumPy") or its source (14.2) says that
CuPy does otherwise than NumPy, so does this:

- a CuPy array is never turned into a NumPy array implicitly, and NumPy arrays are no operands;
- reductions and ufuncs give 0-d arrays where NumPy gives scalars;
- indices out of range wrap around, where NumPy raises;
- a ufunc takes `out`, `dtype` and `casting`, no `where`; its loops are those that CuPy lists;
- `at`, `reduce` and `accumulate` exist for few ufuncs, and `at` for few types.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np


def words(text: str) -> list[str]:
    """The words of a text: a list of names that reads as one."""
    return text.split()


SCALARS = (bool, int, float, complex, np.generic)
SUPPORTED = frozenset("?bhilqBHILQefdFD")
ADDED = words("int32 int64 float16 float32 float64 uint32 uint64")
AT = {  # the types that CuPy's atomic functions have (_scatter_op_single)
    "add": ADDED,
    "sub": ["int32", "uint32"],
    "max": [t for t in ADDED if t != "float16"],
    "min": [t for t in ADDED if t != "float16"],
}
IMPLICIT = (
    "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy "
    "array explicitly."
)


def type_of(char: str) -> Any:
    """The NumPy dtype of a character in CuPy's lists, in which "E" is bfloat16."""
    return np.dtype(ml_dtypes.bfloat16) if char == "E" else np.dtype(char)


def check_type(dtype: Any) -> None:
    """CuPy's refusal of types that no kernel has: strings, objects, structures."""
    dtype = np.dtype(dtype)
    if dtype.char not in SUPPORTED and dtype != ml_dtypes.bfloat16:
        raise ValueError(f"Unsupported dtype {dtype}")


class Memory:
    """A piece of memory of the pretended device."""

    def __init__(self, owner: Any) -> None:
        self.ptr, self.size = int(owner.ctypes.data), max(int(owner.nbytes), 1)
        self.owner, self.device_id = owner, 0


class UnownedMemory(Memory):
    """`cupy.cuda.UnownedMemory`: memory that an object keeps."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    """A place in it, as `cupy.cuda.MemoryPointer` is one."""

    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, 0

    def __add__(self, other: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + int(other))

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        if size:
            ctypes.memmove(self.ptr, src.ptr, size)


class Flags:
    """What `flags` of a CuPy array tells: three things."""

    def __init__(self, flags: Any) -> None:
        self.c_contiguous, self.f_contiguous = flags.c_contiguous, flags.f_contiguous
        self.owndata = flags.owndata

    def __getitem__(self, name: str) -> bool:
        return bool({"C_CONTIGUOUS": self.c_contiguous, "F_CONTIGUOUS": self.f_contiguous,
                     "OWNDATA": self.owndata}[name])  # fmt: skip


def memory_of(array: Any) -> Memory:
    """The memory that an array lies in."""
    below = array.base
    while isinstance(below, np.ndarray) or type(below).__name__ == "DummyArray":
        array = below if isinstance(below, np.ndarray) else array  # the other is as_strided's
        below = below.base
    buffer = getattr(below, "obj", below)
    return getattr(buffer, "memory", None) or Memory(array)


def wrap(found: Any) -> Any:
    """NumPy's results as the pretended device's."""
    if isinstance(found, np.ndarray):
        made = object.__new__(ndarray)
        made._numpy = found
        return made
    if isinstance(found, np.generic):
        return wrap(np.asarray(found))
    if isinstance(found, (list, tuple)):
        items = [wrap(x) for x in found]
        if hasattr(found, "_fields"):
            return type(found)(*items)
        return items if isinstance(found, list) else tuple(items)
    return found


def unwrap(given: Any) -> Any:
    """Arguments as NumPy takes them."""
    if isinstance(given, ndarray):
        return given._numpy
    if isinstance(given, (list, tuple)) and not hasattr(given, "_fields"):
        return type(given)(unwrap(x) for x in given)
    return given


def has_numpy(given: Any) -> bool:
    if isinstance(given, (list, tuple)):
        return any(has_numpy(x) for x in given)
    return isinstance(given, np.ndarray)


def typed(x: Any, kind: Any) -> Any:
    """An operand in the type of a loop; Python's numbers have to fit into it."""
    if isinstance(x, ndarray):
        return x._numpy.astype(kind)
    return np.asarray(x).astype(kind) if isinstance(x, np.generic) else np.asarray(x, kind)


class Ufunc:
    """A ufunc of CuPy: the record is that of the table, `compute` what NumPy has for it."""

    def __init__(self, word: str, record: dict[str, Any], compute: Any) -> None:
        self.__name__ = self.word = word
        self.name, self.nin, self.nout = record["name"], record["nin"], record["nout"]
        self.types, self.scatter = record["types"].split(), record["scatter"]
        self.casting, self.compute = record["casting"], compute
        self.nargs = self.nin + self.nout

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out, dtype = kwargs.pop("out", None), kwargs.pop("dtype", None)
        casting = kwargs.pop("casting", self.casting)
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or "
                f"{self.nargs} (with outputs), but given {len(args)}."
            )
        given, outs = args[: self.nin], args[self.nin :]
        if out is not None:
            if outs:
                raise ValueError("Cannot specify 'out' as both a positional and keyword argument")
            outs = out if isinstance(out, tuple) else (out,)
        for x in given:
            if not isinstance(x, (ndarray, *SCALARS)):
                raise TypeError(f"Unsupported type {type(x)}")
        for x in outs:
            if x is not None and not isinstance(x, ndarray):
                raise TypeError(f"Unsupported type {type(x)}")
        takes, gives = self.loop(given, dtype)
        with np.errstate(all="ignore"):
            arrays = [typed(x, type_of(char)) for x, char in zip(given, takes)]
            made = self.compute(*arrays)
        results = []
        for k, m in enumerate(made if self.nout > 1 else (made,)):
            m = np.asarray(m).astype(type_of(gives[k]), copy=False)
            target = outs[k] if k < len(outs) else None
            if target is None:
                results.append(wrap(np.array(m) if any(m is a for a in arrays) else m))
                continue
            if not np.can_cast(m.dtype, target.dtype, casting):
                raise TypeError(
                    f"output operand (typecode '{m.dtype.char}') could not be coerced to provided "
                    f"output parameter (typecode '{target.dtype.char}') according to the casting "
                    f"rule '{casting}'"
                )
            if np.broadcast_shapes(m.shape, target.shape) != target.shape:
                raise ValueError(f"non-broadcastable output operand with shape {target.shape}")
            with np.errstate(all="ignore"):
                target._numpy[...] = m
            results.append(target)
        return results[0] if self.nout == 1 else tuple(results)

    def loop(self, given: Any, dtype: Any) -> tuple[str, str]:
        """The first of its loops that takes these operands (_guess_routine_from_in_types)."""
        loops = [t.split("->") for t in self.types]
        if dtype is not None:
            wanted = np.dtype(dtype)
            for takes, gives in loops:
                if all(type_of(c) == wanted for c in gives):
                    return takes, gives
            raise TypeError(f"Wrong type ({wanted}) of arguments for {self.name}")
        types = [x.dtype if hasattr(x, "dtype") else np.result_type(type(x)) for x in given]
        weak = [type(x) if type(x) in (int, float, complex) else None for x in given]
        score = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3, "V": 2}
        strong = [score[t.kind] for t, w in zip(types, weak) if w is None]
        weaker = [{int: 1, float: 2, complex: 3}[w] for w in weak if w]
        if not (strong and weaker and max(strong) >= max(weaker)):
            weak = [None] * len(weak)
        for takes, gives in loops:
            for t, w, c in zip(types, weak, takes):
                kind = type_of(c)
                if not np.can_cast(t, kind) and (w is None or np.result_type(w(0), kind) != kind):
                    break
            else:
                return takes, gives
        raise TypeError(f"Wrong type ({tuple(types)}) of arguments for {self.name}")

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        if self.scatter is None:
            # CuPy's own refusals, in its words, here and in the three methods below
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        scatter(a, indices, b, self.scatter)

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        if self.name not in ("cupy_add", "cupy_multiply"):
            raise NotImplementedError(f"`{self.name}.reduce` is not supported yet")
        return (array.sum if self.name == "cupy_add" else array.prod)(axis, dtype, out, keepdims)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.name not in ("cupy_add", "cupy_multiply"):
            raise NotImplementedError(f"`{self.name}.accumulate` is not supported yet")
        return (array.cumsum if self.name == "cupy_add" else array.cumprod)(axis, dtype, out)

    def reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        if self.name != "cupy_add":
            raise NotImplementedError(f"`{self.name}.reduceat` is not supported yet")
        return wrap(np.add.reduceat(unwrap(array), unwrap(indices), axis, dtype))

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        return self(a.reshape(a.shape + (1,) * b.ndim), b, **kwargs)


def indices_of(index: Any, shape: tuple[int, ...]) -> Any:
    """An index as NumPy takes it, with arrays of integers wrapped around."""
    parts = list(index) if isinstance(index, tuple) else [index]
    masks = [p for p in parts if isinstance(p, (ndarray, np.ndarray)) and p.dtype.kind == "b"]
    if len(masks) > 1:
        raise ValueError("Currently, CuPy only supports one Boolean array")
    taken = sum(
        p.ndim if isinstance(p, (ndarray, np.ndarray)) and p.dtype.kind == "b" else 1
        for p in parts
        if p is not None and p is not Ellipsis
    )
    axis, made = 0, []
    for p in parts:
        if p is Ellipsis:
            axis += len(shape) - taken
        elif p is not None:
            if isinstance(p, (list, ndarray, np.ndarray)):
                p = np.asarray(unwrap(p))
                p = p.astype("int32") if not p.size and p.dtype.kind == "f" else p
                if p.dtype.kind not in "iub":
                    raise IndexError(
                        f"arrays used as indices must be of integer or boolean type (actual: "
                        f"{p.dtype.type})"
                    )
                if p.dtype.kind in "iu" and axis < len(shape) and shape[axis]:
                    p = p.astype("int64") % shape[axis]
            axis += p.ndim if isinstance(p, np.ndarray) and p.dtype.kind == "b" else 1
        made.append(p)
    return tuple(made) if isinstance(index, tuple) else made[0]


def scatter(a: Any, index: Any, value: Any, how: str) -> None:
    """`a[index] += value` with every index counted, in the types that CuPy has atomics for."""
    if how not in AT or a.dtype.name not in AT[how]:
        words = {"add": "add", "sub": "subtract", "max": "maximum", "min": "minimum"}
        raise TypeError(
            f"cupy.{words.get(how, how)}.at only supports {', '.join(AT.get(how, []))} as data type"
        )
    if isinstance(value, ndarray):
        value = value.astype(a.dtype)
    ufunc = {"add": np.add, "sub": np.subtract, "max": np.maximum, "min": np.minimum}[how]
    ufunc.at(a._numpy, indices_of(index, a.shape), unwrap(value))


class ndarray:
    """An array of the pretended device. Its methods come from the table (see `cupy_stand_in`)."""

    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]  # as CuPy's

    module: Any  # the stand-in, for NumPy's protocols

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None,
        order: str = "C",
    ) -> None:  # fmt: skip
        check_type(dtype)
        if memptr is None:
            self._numpy = np.empty(shape, dtype, order=order)  # type: ignore[call-overload]  # order is CuPy's word
            return
        mem, offset = memptr.mem, memptr.ptr - memptr.mem.ptr
        buffer = (ctypes.c_char * mem.size).from_address(mem.ptr)
        buffer.memory = mem  # an attribute keeps it alive
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if 0 in shape:
            self._numpy = np.empty(shape, dtype)
        else:
            self._numpy = np.ndarray(shape, dtype, buffer, offset, strides, order)  # type: ignore[call-overload]

    # -- NumPy's protocols, as in cupy/_core/core.pyx ----------------------------------------------

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(IMPLICIT)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        inout = inputs
        if "out" in kwargs:
            out = kwargs["out"]
            if len(out) != 1:
                raise ValueError("The 'out' parameter must have exactly one array value")
            inout += out
            kwargs["out"] = out[0]
        name = ufunc.__name__
        try:
            function = getattr(self.module, name, None) or getattr(self.module.special, name)
            if method != "__call__":
                function = getattr(function, method)
        except AttributeError:
            return NotImplemented
        for x in inout:
            if type(x) not in SCALARS and not isinstance(x, (ndarray, np.ndarray, np.generic)):
                return NotImplemented
        if name in ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"):
            inputs = tuple(
                x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in inputs
            )
        return function(*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = self.module
        try:
            for part in [*func.__module__.split(".")[1:], func.__name__]:
                found = getattr(found, part)
        except AttributeError:
            return NotImplemented
        if found is func or not all(issubclass(t, (ndarray, np.ndarray)) for t in types):
            return NotImplemented
        return found(*args, **kwargs)

    # -- what is no function -----------------------------------------------------------------------

    dtype = property(lambda self: self._numpy.dtype)
    shape = property(
        lambda self: self._numpy.shape, lambda self, s: setattr(self._numpy, "shape", s)
    )
    strides = property(lambda self: self._numpy.strides)
    ndim = property(lambda self: self._numpy.ndim)
    size = property(lambda self: self._numpy.size)
    itemsize = property(lambda self: self._numpy.itemsize)
    nbytes = property(lambda self: self._numpy.nbytes)
    flags = property(lambda self: Flags(self._numpy.flags))
    T = property(lambda self: wrap(self._numpy.T))
    mT = property(lambda self: wrap(self._numpy.mT))
    flat = property(lambda self: wrap(self._numpy.reshape(-1)))
    device = property(lambda self: self.module.cuda.Device(0))

    @property
    def base(self) -> Any:
        found = self._numpy.base  # of an array over a MemoryPointer, CuPy knows no base
        while isinstance(found, np.ndarray) and isinstance(found.base, np.ndarray):
            found = found.base
        return wrap(found) if isinstance(found, np.ndarray) else None

    @property
    def data(self) -> MemoryPointer:
        mem = memory_of(self._numpy)
        return MemoryPointer(mem, int(self._numpy.ctypes.data) - mem.ptr)

    @property
    def real(self) -> Any:
        return wrap(self._numpy.real) if self._numpy.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self._numpy.real = unwrap(value)

    @property
    def imag(self) -> Any:
        if self._numpy.dtype.kind == "c":
            return wrap(self._numpy.imag)
        return wrap(np.zeros_like(self._numpy))

    @imag.setter
    def imag(self, value: Any) -> None:
        if self._numpy.dtype.kind != "c":
            raise TypeError("cupy.ndarray does not have imaginary part to set")
        self._numpy.imag = unwrap(value)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape, "typestr": self.dtype.str, "version": 3, "stream": 1,
            "data": (self.data.ptr, False), "strides": self.strides,
            "descr": self.dtype.descr,
        }  # fmt: skip

    def __getitem__(self, index: Any) -> Any:
        return wrap(self._numpy[indices_of(index, self.shape)])

    def __setitem__(self, index: Any, value: Any) -> None:
        basic = not any(
            isinstance(p, (list, ndarray, np.ndarray))
            for p in (index if isinstance(index, tuple) else (index,))
        )
        if basic and isinstance(value, np.ndarray) and value.ndim:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        if isinstance(value, (list, tuple)) and basic:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        with np.errstate(all="ignore"):
            self._numpy[indices_of(index, self.shape)] = unwrap(value)

    def __len__(self) -> int:
        return len(self._numpy)

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._numpy)

    def __int__(self) -> int:
        return int(self._numpy)

    def __index__(self) -> int:
        return self._numpy.__index__()

    def __float__(self) -> float:
        return float(self._numpy)

    def __complex__(self) -> complex:
        return complex(self._numpy)

    def __repr__(self) -> str:
        return repr(self._numpy)

    def __format__(self, form: str) -> str:
        return format(self._numpy, form)

    def __copy__(self) -> Any:
        return wrap(self._numpy.copy())

    def __deepcopy__(self, memo: Any) -> Any:
        return wrap(self._numpy.copy())

    def __reduce__(self) -> Any:
        return wrap, (self._numpy.copy(),)


def operator(word: str, reflected: bool = False, writes: bool = False) -> Any:
    """An operator, which is a ufunc of CuPy; a NumPy array as operand is refused by the ufunc."""

    def method(self: Any, other: Any = None) -> Any:
        function = getattr(self.module, word)
        if function.nin == 1:
            return function(self)
        if not isinstance(other, ndarray):
            asked = getattr(other, "__array_ufunc__", ndarray)
            if asked is None or (
                asked is ndarray and getattr(other, "__array_priority__", 0) > 100
            ):
                return NotImplemented
        if writes:
            return function(self, other, self)
        return function(other, self) if reflected else function(self, other)

    return method


BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "lshift": "left_shift",
    "rshift": "right_shift", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip
for _name, _word in BINARY.items():
    setattr(ndarray, f"__{_name}__", operator(_word))
    setattr(ndarray, f"__r{_name}__", operator(_word, reflected=True))
    setattr(ndarray, f"__i{_name}__", operator(_word, writes=True))
for _name, _word in {"neg": "negative", "abs": "absolute", "invert": "invert"}.items():
    setattr(ndarray, f"__{_name}__", operator(_word))
for _name, _word in {
    "lt": "less", "le": "less_equal", "eq": "equal", "ne": "not_equal", "gt": "greater",
    "ge": "greater_equal",
}.items():  # fmt: skip
    setattr(ndarray, f"__{_name}__", operator(_word))

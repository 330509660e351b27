"""Kernels in CUDA C that are written by hand: what programs of the loop language cannot say.

Windows of images, and elements that lie where an index says. Each kernel is the body of a loop over
`count` elements, of which every thread takes some; it is compiled when it is first launched, for the
type of the arrays (`T`) and for indices (`I`) of 32 or 64 bits.

    >>> double = Each("y[i] = 2 * x[i];", "T* y, const T* x")
    >>> print(double.source("float32", True))
    extern "C" __global__ void __launch_bounds__(256) kernel(float* y, const float* x, int count) {
        for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
            y[i] = 2 * x[i];
        }
    }
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, ArrayModule

THREADS = 256  # of a block
GRID = 1 << 15  # blocks at most
NARROW = 1 << 30  # elements up to which indices have 32 bits
OPTIONS = ("-std=c++17",)
CUDA = {"float32": "float", "float64": "double", "int64": "long long", "int32": "int",
        "int16": "short", "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
        "float16": "unsigned short", "bfloat16": "unsigned short",
        "complex128": "Wide"}  # fmt: skip
_kernels: dict[Any, Any] = {}  # see `compiled`


def typed(source: str, type: str, index: str = "long long") -> str:
    """A source whose elements are of a type (`T`), and its indices of another (`I`)."""
    words = {"T": CUDA[type], "I": index}
    return re.sub(r"\b[TI]\b", lambda found: words[found[0]], source)


def compiled(key: tuple[Any, ...], source: Callable[[], str], options: tuple[str, ...] = ()) -> Any:
    """The kernel of a key, of which the first part is the array module and the others decide the
    source; it is compiled when it is first asked for."""
    found = _kernels.get(key)
    if found is None:
        module = key[0].RawModule(code=source(), options=OPTIONS + options)
        found = _kernels[key] = module.get_function("kernel")
    return found


class Each:
    """A kernel that does the same for each of `count` elements, whose number is `i`.

    before   functions that it calls
    options  further ones of NVRTC
    """

    def __init__(
        self, body: str, params: str, before: str = "", options: tuple[str, ...] = ()
    ) -> None:
        self.options = options
        self.body, self.params, self.before = textwrap.dedent(body).strip("\n"), params, before

    def source(self, type: str, narrow: bool) -> str:
        """The kernel in CUDA C."""
        index, suffix = ("int", "") if narrow else ("long long", "LL")
        first, step = f"blockIdx.x * 256{suffix} + threadIdx.x", f"gridDim.x * 256{suffix}"
        head = f"__global__ void __launch_bounds__(256) kernel({self.params}, I count)"
        lines = [
            self.before.strip("\n"),
            f'extern "C" {head} {{',
            f"    for (I i = {first}; i < count; i += {step}) {{",
            textwrap.indent(self.body, " " * 8),
            "    }",
            "}",
        ]
        return typed("\n".join(filter(None, lines)), type, index)

    def __call__(
        self, xp: ArrayModule, type: np.dtype[Any], count: int, *args: Any, reach: int = 0
    ) -> None:
        """Launches it: arrays as they are, whole numbers as indices, real ones as numbers of the type.

        reach   the largest index of any array, where that is not below `count`
        """
        if not count:
            return
        narrow = max(count, reach) < NARROW
        key = xp, type, narrow, self
        kernel = compiled(key, lambda: self.source(type.name, narrow), self.options)
        if any(a.__class__ is np.ndarray for a in args):  # whose address says nothing to a card
            raise TypeError("a kernel of a device was given an array of the host")
        whole = np.int32 if narrow else np.int64
        given = [
            whole(a) if a.__class__ is int else type.type(a) if a.__class__ is float else a
            for a in args
        ]
        blocks = min(-(-count // THREADS), GRID)
        kernel((blocks,), (THREADS,), (*given, whole(count)))


def in_rows(xp: ArrayModule, a: Array) -> Any:
    """The array in rows."""
    return a if a.flags.c_contiguous else xp.ascontiguousarray(a)


def lies_last(a: Array) -> bool:
    """Whether images lie in memory with their channels last."""
    return bool(
        a.ndim == 4 and not a.flags.c_contiguous and a.transpose(0, 2, 3, 1).flags.c_contiguous
    )


def with_last(xp: ArrayModule, a: Array) -> Any:
    """Images with their channels last in memory."""
    return xp.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)

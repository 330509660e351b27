"""Kernels that are written with the builder by hand: how they are called, and shared by threads.

Such a kernel is a function run(table, lo, hi), as those of programs are. The table holds the words
it reads (sizes, addresses); the range is what may be divided among threads.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from toytorch.loops.llvm.builder import Builder
from toytorch.loops.runtime import jit, threads
from toytorch.loops.runtime.thread_pool import PARTS

if TYPE_CHECKING:
    from llvmlite.ir import Type, Value


class Native(Builder):
    """The builder of such a kernel over elements of one real type.

    words   names of the words in its table; `self.word_of[name]` is the value of one
    kind    "f" for float32, "d" for float64
    family  of a class, in its header: what its kernels are called. `kernel(*how)` is the one that is
            built with these arguments after the name, compiled when it is first asked for
    """

    kernel: ClassVar[Callable[..., Call]]

    def __init_subclass__(cls, family: str = "") -> None:
        @functools.cache
        def kernel(*how: Any) -> Call:
            return Call(" ".join(map(str, (family, *how))), lambda name: cls(name, *how))

        if family:
            cls.kernel = kernel

    def __init__(self, name: str, kind: str, words: tuple[str, ...]) -> None:
        super().__init__(f"run_{name}", "void", ["word*", "word", "word"])
        self.real, self.bytes = self.type("float" if kind == "f" else "double"), 4
        if kind == "d":
            self.bytes = 8
        table, self.lo, self.hi = self.function.args
        self.word_of = {w: self.get(table, k) for k, w in enumerate(words)}

    def array(self, name: str, type: str | Type | None = None) -> Any:
        """The array of elements (or of another type) whose address is a word of the table."""
        return self.pointer(self.word_of[name], type or self.real)

    def read(self, base: Value, index: Any, type: Any = None) -> Any:
        """The element (or the vector) that begins `index` elements after a pointer."""
        return self.load(base, index, type or self.real, self.bytes)

    def write(self, value: Any, base: Value, index: Any) -> None:
        """Writes an element, or a vector of them."""
        self.store(value, base, index, self.bytes)

    def text(self) -> str:
        """The finished module."""
        self.b.ret_void()
        return str(self.module)


class Call:
    """A kernel of this kind for Python. `what` says what it is: its first word is its family."""

    def __init__(self, what: str, build: Callable[[str], Native]) -> None:
        self.address = jit.addresses(what, lambda name: build(name).text(), ("run",))["run"]
        type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self.run = type(self.address)

    def __call__(self, total: int, work: int, *words: int) -> None:
        """Runs it over range(total) with a table of these words; see `on`."""
        table = struct.pack(f"{len(words)}q", *words)
        if work < jit.WORK:
            self.run(table, 0, total)
        else:
            buffer = ctypes.create_string_buffer(table)
            self.on(ctypes.addressof(buffer), total, work)

    def on(self, table: int, total: int, work: int, parts: int = PARTS) -> None:
        """Runs it with the table at an address. Where there is more `work`, counted in additions,
        than a thread does in some 5 µs, the threads of the pool share it, each taking a part after
        the other: so many, if none is late."""
        if (
            work < jit.WORK
            or total < 2
            or threads.thread_count() < 2
            or not threads.thread_pool().share(self.address, table, total, parts)
        ):
            self.run(table, 0, total)

"""A kernel that is written by hand, as a builtin function of arrays.

`Call` takes the words of a kernel's table one by one: ctypes and the addresses of four arrays take
4 µs, as long as a small product. An `ArrayCall` has its table ready; the builtin function, which is
one for all of them, copies it, adds where the arrays lie, and calls the kernel.

    >>> import numpy as np
    >>> from toytorch.kernels.memory_format import WORDS, transposition
    >>> a, b = np.arange(64.0).reshape(8, 8), np.empty((8, 8))
    >>> words = (0, 0, 1, 0, 0, 1, 0, 0, 8, 8, 64, 64)
    >>> turn = ArrayCall(transposition("d", True), words, (0, 1), 1, 64)
    >>> turn(b, a)
    >>> bool((b == a.T).all())
    True
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache as once
from typing import TYPE_CHECKING

import numpy as np

from toytorch.facts.hints import Array
from toytorch.loops.llvm.builder import Builder
from toytorch.loops.runtime import jit, threads
from toytorch.loops.runtime.entry_point import CONTEXT
from toytorch.loops.runtime.native import Call
from toytorch.loops.runtime.trampoline import DATA

if TYPE_CHECKING:
    from llvmlite.ir import Value


MOST = 64  # words in a table


class ArrayCall:
    """A kernel with its table, but for the addresses of arrays.

    words   the table; where an address belongs, the bytes from the array's beginning
    places  which words those are, one for each array of a call
    total   the kernel's range, which threads share where there is more `work` than pays for one
    """

    def __init__(
        self, kernel: Call, words: Sequence[int], places: Sequence[int], total: int, work: int
    ) -> None:
        assert len(words) <= MOST, "the function below has room for no more"
        self.kernel, self.words, self.places = kernel, list(words), tuple(places)
        self.total, self.work = total, work
        counts = (jit.context().ctypes.data, kernel.address, total, len(words), len(places))
        table = np.array([*counts, *words, *places], "int64")
        self.here = jit.builtin(address(), "kernel", table)

    def __call__(self, *arrays: Array) -> None:
        """Runs it on arrays, which lie as the words say."""
        if self.work >= jit.WORK and threads.thread_count() > 1:
            words = list(self.words)
            for place, array in zip(self.places, arrays):
                words[place] += array.ctypes.data
            self.kernel(self.total, self.work, *words)
        else:
            self.here(*arrays)


@once
def address() -> int:
    """Where the compiled function is."""
    return jit.addresses("array call", lambda name: str(Function(name).module), ("call",))["call"]


class Function(Builder):
    """LLVM for `object call_NAME(table, arrays, count)`. By hand: it reads CPython's objects."""

    def __init__(self, name: str) -> None:
        super().__init__(f"call_{name}", "word", ["word", "word*", "word"])
        b = self.b
        given, objects, _ = self.function.args
        given = self.pointer(self.at(given, DATA))
        context, kernel, total, words, places = (self.get(given, k) for k in range(5))
        table = self.alloca("word", MOST)
        first = b.gep(given, [self.word(5)])
        self.count(words, lambda k: self.put(table, k, self.get(first, k)))
        which = b.gep(first, [words])

        def put_address(k: Value) -> None:
            place, start = self.get(which, k), self.at(self.get(objects, k), DATA)
            self.put(table, place, b.add(self.get(table, place), start))

        self.count(places, put_address)
        self.call(kernel, "void", table, self.word(0), total)
        context = self.pointer(context)
        none = self.get(context, CONTEXT.index("None"))
        self.call(self.get(context, CONTEXT.index("Py_IncRef")), "void", none)
        b.ret(none)

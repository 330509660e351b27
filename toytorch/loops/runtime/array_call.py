"""A kernel that is written by hand, as a builtin function of arrays.

`Call` takes the words of a kernel's table one by one: ctypes and the addresses of four arrays take
4 µs, as long as a small product. An `ArrayCall` has its table ready; the builtin function, which is
one for all of them, copies it, adds where the arrays lie, and calls the kernel.

    >>> from toytorch.kernels.memory_format import WORDS, transposition
    >>> a, b = np.arange(64.0).reshape(8, 8), np.empty((8, 8))
    >>> words = (0, 0, 1, 0, 0, 1, 0, 0, 8, 8, 64, 64)
    >>> turn = ArrayCall(transposition("d", *words[2:])[0], words, (0, 1), 1, 64)
    >>> turn(b, a)
    >>> bool((b == a.T).all())
    True
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache as once
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch.facts.hints import Array, Value
from toytorch.loops.llvm.builder import Builder
from toytorch.loops.runtime import jit, threads
from toytorch.loops.runtime.entry_point import CONTEXT
from toytorch.loops.runtime.native import Call
from toytorch.loops.runtime.thread_pool import PARTS
from toytorch.loops.runtime.trampoline import DATA, LONG

if TYPE_CHECKING:
    from toytorch.loops.runtime.jit import Compiled


MOST = 64  # words in a table


class ArrayCall:
    """A kernel with its table, but for the addresses of arrays.

    words   the table; where an address belongs, the bytes from the array's beginning
    places  which words those are, one for each array of a call
    total   the kernel's range, which threads share where there is more `work` than pays for one
    """

    def __init__(
        self,
        kernel: Call | Compiled,
        words: Sequence[int],
        places: Sequence[int],
        total: int,
        work: int,
    ) -> None:
        assert len(words) <= MOST, "the function below has room for no more"
        self.kernel, self.words, self.places = kernel, tuple(words), tuple(places)
        self.total, self.work = total, work
        # Whether threads share it, and whether other Python threads may run meanwhile.
        self.shared = total > 1 and work >= jit.WORK
        counts = (total, int(self.shared), int(work >= LONG * jit.WORK), len(words), len(places))
        table = np.array([jit.context().ctypes.data, kernel.address, *counts, *words, *places])
        self.here = jit.builtin(address(), "kernel", table)
        threads.note_threads()

    @property
    def quick(self) -> Any:
        """What runs it: the builtin function by itself, where threads never share it."""
        return self if self.shared else self.here

    def __call__(self, *arrays: Array) -> None:
        """Runs it on arrays, which lie as the words say."""
        if self.here(*arrays) is False:  # it is for several threads, and there is no pool yet
            threads.thread_pool()
            self.here(*arrays)


@once
def address() -> int:
    """Where the compiled function is."""
    return jit.addresses("array call", lambda name: str(Function(name).module), ("call",))["call"]


class Function(Builder):
    """LLVM for `object call_NAME(table, arrays, count)`: None; or False, and nothing is done, where
    threads are to share it and there is no pool. By hand: it reads CPython's objects."""

    def __init__(self, name: str) -> None:
        super().__init__(f"call_{name}", "word", ["word", "word*", "word"])
        b, zero = self.b, self.word(0)
        given, objects, _ = self.function.args
        given = self.pointer(self.at(given, DATA))
        context, kernel, total, shared, long, words, places = (self.get(given, k) for k in range(7))
        self.context = self.pointer(context)
        count, queue = self.of_context("threads"), self.of_context("queue")
        several = b.icmp_signed(">", count, self.word(1))
        several = b.and_(several, b.icmp_signed("!=", shared, zero))
        ready, refuse = self.block("ready"), self.block("refuse")
        b.cbranch(b.and_(several, b.icmp_signed("==", queue, zero)), refuse, ready)
        b.position_at_end(refuse)
        self.answer("False")
        b.position_at_end(ready)
        table = self.alloca("word", MOST)
        first = b.gep(given, [self.word(7)])
        self.count(words, lambda k: self.put(table, k, self.get(first, k)))
        which = b.gep(first, [words])

        def put_address(k: Value) -> None:
            place, start = self.get(which, k), self.at(self.get(objects, k), DATA)
            self.put(table, place, b.add(self.get(table, place), start))

        self.count(places, put_address)
        state, done = self.var(0), self.var(0)
        long = b.icmp_signed("!=", long, zero)
        with b.if_then(long):
            b.store(self.python("PyEval_SaveThread", self.word), state)
        with b.if_then(several):
            parts = b.mul(count, self.word(PARTS))
            step = b.sdiv(b.sub(b.add(total, parts), self.word(1)), parts)
            job = kernel, b.ptrtoint(table, self.word), total, step
            b.store(b.zext(self.python("post", self.half, queue, *job), self.word), done)
        with b.if_then(b.icmp_signed("==", b.load(done), zero)):
            self.call(kernel, "void", table, zero, total)
        with b.if_then(long):
            self.python("PyEval_RestoreThread", "void", b.load(state))
        self.answer("None")

    def of_context(self, name: str) -> Any:
        """A word of the CONTEXT."""
        return self.get(self.context, CONTEXT.index(name))

    def python(self, name: str, result: Any, *args: object) -> Any:
        """Calls a function of the CONTEXT."""
        return self.call(self.of_context(name), result, *args)

    def answer(self, name: str) -> None:
        """Returns None or False."""
        made = self.of_context(name)
        self.python("Py_IncRef", "void", made)
        self.b.ret(made)

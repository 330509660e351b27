"""NumPy's arithmetic, which several threads share where arrays are large.

A dispatch stub is a builtin function in front of a ufunc. It looks at the number of threads and the size of
its first argument and hands its arguments on, either to the ufunc or to a function that shares the
work: compiled, because a look in Python would cost a small addition a tenth of its time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache as once
from typing import Any

import numpy as np

from toytorch.loops import run
from toytorch.loops.elementwise import Loop
from toytorch.loops.llvm import builder
from toytorch.loops.runtime import jit
from toytorch.loops.runtime import threads as parallel
from toytorch.loops.runtime.entry_point import CONTEXT
from toytorch.loops.runtime.trampoline import DATA, HEAD, RANK, SHAPE

LARGE = 1 << 18  # elements, from which it pays to share
TRIAL = 100  # small calls before a stub is made, which loads LLVM
SHARED = {np.add: "a + b", np.subtract: "a - b", np.multiply: "a * b", np.divide: "a / b"}
WORDS = ("context", "plain", "large", "call", "ndarray")


def by_size(plain: Any, namespace: dict[str, Any]) -> Any:
    """What generated functions call as `by_size` instead of a ufunc; None for other ufuncs.

    At first it is a function that counts, because a stub costs the loading of LLVM; that function
    puts the stub into the namespace of the generated one, whose source says so.
    """
    seen = 0

    def kernel(*args: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen > TRIAL or args[0].size >= LARGE:
            namespace["by_size"] = stub(plain, Shared(plain)) if jit.works() else plain
        return plain(*args)

    return kernel if plain in SHARED else None


class Shared:
    """An operation of two arrays of one shape and type, or of an array and a number, as a loop."""

    def __init__(self, plain: Any) -> None:
        self.plain = plain
        self.arrays = Loop(f"y = {SHARED[plain]}", arrays="y a b")
        self.number = Loop(f"y = {SHARED[plain]}", arrays="y a", numbers="b")

    def __call__(self, a: Any, b: Any) -> Any:
        made = None
        if b.__class__ is float or b.__class__ is int:
            if abs(b) < 1e38:  # beyond, NumPy knows what float32 makes of it
                made = self.number.of(np, a, float(b))
        elif b.shape == a.shape and b.dtype is a.dtype:
            program = self.arrays.programs.get((a.ndim, a.dtype.char))
            if program is not None and a.flags.c_contiguous and b.flags.c_contiguous:
                made = np.empty(a.shape, a.dtype)  # what `of` does, with fewer questions
                run(program, made, a, b)
            else:
                made = self.arrays.of(np, a, b)
        return self.plain(a, b) if made is None else made


def stub(plain: Any, large: Shared | Callable[..., Any]) -> Any:
    """A function that calls `large` for large arrays if there are several threads, else `plain`."""
    words = {
        "context": jit.context().ctypes.data,
        "plain": id(plain),
        "large": id(large),
        "call": ctypes.cast(ctypes.pythonapi.PyObject_Vectorcall, ctypes.c_void_p).value,
        "ndarray": id(np.ndarray),
    }
    table = np.array([words[w] for w in WORDS], "int64")
    jit.keep(plain, large)
    parallel.note_threads()
    return jit.builtin(address(), "stub", table)


@once
def address() -> int:
    """Where the compiled function is."""
    return jit.addresses("stub", write, ("call",))["call"]


def write(name: str) -> str:
    """LLVM's text of `object call_stub(self, objects, count)`."""
    ir = builder.ir()
    module = ir.Module(name)
    word, half = ir.IntType(64), ir.IntType(32)
    function = ir.Function(
        module, ir.FunctionType(word, [word, word.as_pointer(), word]), f"call_{name}"
    )
    self, objects, count = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    seen, loop, size, plain, go = (
        function.append_basic_block(n) for n in ("seen", "loop", "size", "plain", "go")
    )

    def at(base: Any, index: Any, type: Any = word) -> Any:
        place = index if not isinstance(index, int) else word(index)
        return b.load(b.gep(b.inttoptr(base, type.as_pointer()), [place]))

    table = at(self, DATA)
    at_word = {w: k for k, w in enumerate(WORDS)}
    array = b.load(objects)
    is_array = b.icmp_unsigned("==", at(array, HEAD - 1), at(table, at_word["ndarray"]))
    threads = at(at(table, at_word["context"]), CONTEXT.index("threads"))
    b.cbranch(b.and_(is_array, b.icmp_signed(">", threads, word(1))), seen, plain)
    b.position_at_end(seen)
    rank = b.zext(at(array, RANK, half), word)
    shape = at(array, SHAPE)
    b.cbranch(b.icmp_signed(">", rank, word(0)), loop, plain)
    b.position_at_end(loop)
    k, product = b.phi(word), b.phi(word)
    k.add_incoming(word(0), seen)
    product.add_incoming(word(1), seen)
    made, following = b.mul(product, at(shape, k)), b.add(k, word(1))
    k.add_incoming(following, loop)
    product.add_incoming(made, loop)
    b.cbranch(b.icmp_signed("<", following, rank), loop, size)
    b.position_at_end(size)
    large = at(table, at_word["large"])
    b.cbranch(b.icmp_signed(">=", made, word(LARGE)), go, plain)
    b.position_at_end(plain)
    little = at(table, at_word["plain"])
    b.branch(go)
    b.position_at_end(go)
    chosen = b.phi(word)
    chosen.add_incoming(large, size)
    chosen.add_incoming(little, plain)
    call = ir.FunctionType(word, [word, word.as_pointer(), word, word]).as_pointer()
    result = b.call(
        b.inttoptr(at(table, at_word["call"]), call), [chosen, objects, count, word(0)], tail=True
    )
    b.ret(result)
    return str(module)

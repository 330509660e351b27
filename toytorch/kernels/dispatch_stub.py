"""NumPy's arithmetic, which several threads share where arrays are large.

A dispatch stub is a builtin function in front of a ufunc. It looks at the number of threads and the
sizes of its arguments and hands these on, either to the ufunc or to a function that shares the work,
or goes over arrays of two shapes in one loop. It is compiled, because a look in Python would cost a
small addition a tenth of its time.
"""

from __future__ import annotations

import ctypes
from functools import cache as once
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Fn, Value
from toytorch.kernels.copy import in_rows
from toytorch.loops import Recipe, run
from toytorch.loops.elementwise import Loop, order_in_memory
from toytorch.loops.llvm import builder
from toytorch.loops.runtime import jit
from toytorch.loops.runtime import threads as parallel
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.entry_point import CONTEXT
from toytorch.loops.runtime.kernel import laid
from toytorch.loops.runtime.trampoline import DATA, FLAGS, HEAD, RANK, SHAPE, STRIDES

LARGE = 1 << 18  # elements, from which it pays to share
SPREAD = 1 << 12  # elements of a result, from which arrays of two shapes or orders are a loop
MOST = 1024  # plans that are kept
TRIAL = 100  # small calls before a stub is made, which loads LLVM
SHARED = {
    np.add: "a + b", np.subtract: "a - b", np.multiply: "a * b", np.divide: "a / b",
    np.maximum: "maximum(a, b)", np.minimum: "minimum(a, b)",
}  # fmt: skip
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
    """An operation of two arrays of one type, or of an array and a number, as a loop."""

    def __init__(self, plain: Any) -> None:
        self.plain = plain
        self.arrays = Loop(f"y = {SHARED[plain]}", arrays="y a b")
        self.number = Loop(f"y = {SHARED[plain]}", arrays="y a", numbers="b")
        self.spread: dict[tuple[Any, ...], Recipe] = {}
        # How pairs that lie so were computed: the call, the result's sizes in memory, their order.
        self.plans: dict[tuple[Any, ...], tuple[ArrayCall, list[int], list[int]]] = {}

    def __call__(self, a: Any, b: Any) -> Any:
        made = None
        if b.__class__ is float or b.__class__ is int:
            if abs(b) < 1e38:  # beyond, NumPy knows what float32 makes of it
                made = self.number.of(np, a, float(b))
        elif b.dtype is a.dtype:
            if b.shape != a.shape or b.strides != a.strides:
                repeats = 0 in a.strides, 0 in b.strides
                if a.shape == b.shape and any(repeats):
                    a = once_each(a) if repeats == (True, False) else a
                    b = once_each(b) if repeats == (False, True) else b
                alike = a.shape == b.shape and not any(repeats)
                made = self.of_one_shape(a, b) if alike else self.broadcast(a, b)
            elif not a.flags.forc:
                made = self.of_one_shape(a, b)
            elif a.flags.c_contiguous and (a.ndim, a.dtype.char) in self.arrays.programs:
                made = np.empty(a.shape, a.dtype)  # what `of` does, with fewer questions
                run(self.arrays.programs[a.ndim, a.dtype.char], made, a, b)
            else:
                made = self.arrays.of(np, a, b)
        return self.plain(a, b) if made is None else made

    def of_one_shape(self, a: Array, b: Array) -> Any:
        """The result for arrays of one shape that have gaps, or lie in several orders: in the first one's
        order, into which the other is copied where it lies otherwise; or None."""
        if a.dtype.char not in "fd" or not a.size:
            return None
        made = np.empty_like(a)
        if self.arrays(made, a, b):
            return made
        order = order_in_memory(made.shape, made.strides, made.itemsize)
        given = [in_rows(x.transpose(order)) for x in (a, b)]
        return made if self.arrays(made.transpose(order), *given) else None

    def broadcast(self, a: Array, b: Array) -> Any:
        """The result for arrays of other shapes or orders, which lies as the one that fills it.

        NumPy begins anew with each row, which takes twice the time for rows of a thousand, and goes
        across memory where the orders differ: there the other array is copied first.
        """
        lie = a.shape, a.strides, b.shape, b.strides, a.dtype.char
        plan = self.plans.get(lie)
        if plan is not None:
            call, outer, back = plan
            made = np.empty(outer, a.dtype)
            call(made, a, b)
            return made.transpose(back)
        try:
            shape = np.broadcast_shapes(a.shape, b.shape)
        except ValueError:
            return None
        full = a if a.shape == shape else b
        if a.dtype.char not in "fd" or 0 in shape:
            return None
        order = list(range(len(shape)))
        if full.shape == shape:
            order.sort(key=lambda d: (-full.strides[d], -shape[d]))
            if not full.transpose(order).flags.c_contiguous:
                return None  # it has gaps
            if full is b and not b.flags.c_contiguous:
                return None  # the result lies as the first operand says, as far as it says
        outer = [shape[d] for d in order]
        given, dims = [], []
        for x in (a, b):
            x = x.reshape((1,) * (len(shape) - x.ndim) + x.shape).transpose(order)
            own = tuple(d for d, n in enumerate(x.shape) if n > 1)
            x = in_rows(x.reshape([x.shape[d] for d in own])) if len(own) > 1 else x.reshape(-1)
            given.append(x if own else x.reshape(()))
            dims.append(own)
        key = (len(shape), *dims)
        recipe = self.spread.get(key)
        if recipe is None:
            names = [",".join(f"d{d}" for d in own) for own in dims]
            every = ",".join(f"d{d}" for d in range(len(shape)))
            text = f"a[{names[0]}], b[{names[1]}] -> y[{every}]\n y = {SHARED[self.plain]}"
            recipe = self.spread[key] = Recipe(text)
        made, back = np.empty(outer, a.dtype), [order.index(d) for d in range(len(shape))]
        recipe(made, *given)
        if all(jit.address_of(x) == jit.address_of(y) for x, y in zip(given, (a, b))):
            if len(self.plans) >= MOST:
                self.plans.clear()
            self.plans[lie] = laid(recipe, made, *given, bases=False), outer, back
        return made.transpose(back)


def once_each(a: Array) -> Any:
    """An array without the repetitions of `expand`, which is broadcast to what it was."""
    return a[tuple([slice(0, 1) if step == 0 else slice(None) for step in a.strides])]


def stub(plain: Any, large: Shared | Fn) -> Any:
    """A function that calls `large` where arrays are large and either threads share the work, or the
    two arrays differ in shape or order, or have gaps; else `plain`."""
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
    return jit.addresses("stub", lambda name: str(Stub(name).module), ("call",))["call"]


class Stub(builder.Builder):
    """Writes `object call_NAME(self, objects, count)`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"call_{name}", "word", ["word", "word*", "word"])
        self.objects = self.function.args[1]
        self.table = self.at(self.function.args[0], DATA)
        self.ways = {"plain": self.block("plain"), "large": self.block("large")}
        self.choose()
        for way, block in self.ways.items():
            self.b.position_at_end(block)
            function = self.at(self.table, WORDS.index(way))
            call = self.at(self.table, WORDS.index("call"))
            args = function, self.objects, self.function.args[2], self.word(0)
            self.b.ret(self.call(call, "word", *args))

    def choose(self) -> None:
        """Which function gets the call: `plain`, unless arrays are large and there is a gain."""
        b = self.b
        first, second = (self.get(self.objects, k) for k in (0, 1))
        self.unless(self.is_array(first), "plain")
        size, is_pair = self.size(first), self.is_array(second)
        context = self.at(self.table, WORDS.index("context"))
        several = b.icmp_signed(">", self.at(context, CONTEXT.index("threads")), self.word(1))
        pair, number = self.block("pair"), self.block("number")
        b.cbranch(is_pair, pair, number)
        b.position_at_end(number)
        shared = b.and_(several, b.icmp_signed(">=", size, self.word(LARGE)))
        b.cbranch(shared, self.ways["large"], self.ways["plain"])
        b.position_at_end(pair)
        alike = b.icmp_signed("==", self.rank(first), self.rank(second))
        size = self.result_size(first, second, alike)
        self.unless(b.icmp_signed(">=", size, self.word(SPREAD)), "plain")
        shared = b.and_(several, b.icmp_signed(">=", size, self.word(LARGE)))
        self.unless(b.not_(shared), "large")
        self.unless(alike, "large")
        with self.counting(self.rank(first)) as k:
            for place in (SHAPE, STRIDES):
                one, two = (self.get(self.pointer(self.at(a, place)), k) for a in (first, second))
                self.unless(b.icmp_signed("==", one, two), "large")
        dense = b.and_(self.at(first, FLAGS, "half"), self.half(3))
        b.cbranch(b.icmp_signed("!=", dense, self.half(0)), self.ways["plain"], self.ways["large"])

    def unless(self, condition: Value, way: str) -> None:
        """Goes on if the condition holds, and else that way."""
        following = self.block()
        self.b.cbranch(condition, following, self.ways[way])
        self.b.position_at_end(following)

    def is_array(self, thing: Value) -> Any:
        """Whether an object is NumPy's array, of no class derived from it."""
        kind = self.at(self.table, WORDS.index("ndarray"))
        return self.b.icmp_unsigned("==", self.at(thing, HEAD - 1), kind)

    def rank(self, array: Value) -> Any:
        """How many dimensions an array has."""
        return self.b.zext(self.at(array, RANK, "half"), self.word)

    def result_size(self, first: Value, second: Value, alike: Value) -> Any:
        """How many elements the result for two arrays has; that of the larger if their ranks differ."""
        b, product = self.b, self.var(1)
        with b.if_else(alike) as (of_each, of_one):
            with of_each, self.counting(self.rank(first)) as k:
                b.store(b.mul(b.load(product), self.larger(*self.sizes(first, second, k))), product)
            with of_one:
                b.store(self.larger(self.size(first), self.size(second)), product)
        return b.load(product)

    def sizes(self, first: Value, second: Value, k: Value) -> list[Any]:
        """The k-th dimensions of two arrays."""
        return [self.get(self.pointer(self.at(a, SHAPE)), k) for a in (first, second)]

    def larger(self, one: Value, two: Value) -> Any:
        """The larger of two integers."""
        return self.b.select(self.b.icmp_signed(">", one, two), one, two)

    def size(self, array: Value) -> Any:
        """How many elements an array has."""
        product = self.var(1)
        with self.counting(self.rank(array)) as k:
            n = self.get(self.pointer(self.at(array, SHAPE)), k)
            self.b.store(self.b.mul(self.b.load(product), n), product)
        return self.b.load(product)

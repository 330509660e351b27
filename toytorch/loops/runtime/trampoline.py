"""The way from Python into a kernel: one compiled function, which reads the array objects itself.

It is a function of CPython's METH_FASTCALL kind. Its `self` is a kernel's descriptor, an array of
64-bit words that says what the kernel was made for (`kernel_descriptor`): types, dimensions, which
strides are fixed. It gets the Python objects, checks them against the descriptor, writes the table
that run_NAME reads (`entry_point`), and runs the loops: at once, on several threads, or, if it will
take long, without Python's lock. It returns True; False if the arrays do not fit and nothing was
done; None if several threads should do it but have not been made yet (`threads.thread_pool`).

One trampoline for all kernels costs some 50 ns a call, and saves 10 ms in which each kernel's own
would be compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Value
from toytorch.loops.language.types import TYPES, kind
from toytorch.loops.llvm.builder import Builder
from toytorch.loops.runtime.entry_point import CONTEXT, arrays_in, slots
from toytorch.loops.schedule.nest import Nest, strides_of

# Where NumPy's array object keeps things, in words of 8 bytes from its beginning. `jit.works`
# looks whether it is so.
HEAD = object.__basicsize__ // 8
DATA, SHAPE, STRIDES, DTYPE = HEAD, HEAD + 2, HEAD + 3, HEAD + 5
RANK = (HEAD + 1) * 2  # in words of 4 bytes
FLAGS = (HEAD + 6) * 2  # in words of 4 bytes; the lowest bits: in rows, in columns
TYPE_NUMBER = HEAD * 2 + 3  # of the dtype, in words of 4 bytes

PARTS = 4  # of the range for each thread: a thread that comes late takes fewer
LONG = 16  # times the work that is shared: from there on other Python threads may run meanwhile
MOST = 64  # dimensions of a program: as many as a NumPy array may have

# A descriptor begins with these words. `at_...` says where in it a list begins, `to_...` where in
# the table its results go.
FIELDS = (
    "context", "run", "limit", "tile", "table", "arrays", "outputs", "scalars", "dims", "axes",
    "extents", "at_arrays", "at_axes", "at_scalars", "at_extents", "to_scalars", "to_axes",
    "to_extents",
)  # fmt: skip
# For each array: its type's number for NumPy and bytes, its dimensions (by number, in the descriptor at
# `dims`), the input that is the same memory, and how it varies over axes (in the descriptor at `steps`).
ARRAY = ("type", "bytes", "rank", "dims", "same", "steps", "count")
# How an array varies over an axis: over the last one its stride is FIXED (one element), or NONE; a
# FREE stride is a word of the table; of an output in an input's memory (SAME) nothing is asked.
STEP = ("axis", "kind", "slot")
SAME, FIXED, NONE, FREE = range(4)
AXIS = ("first", "count", "counts", "tiled")  # dimensions (listed), whether in the range, ...


def kernel_descriptor(nest: Nest, run: int, context: Array, limit: int) -> Any:
    """The descriptor of a kernel whose loops are compiled at an address; fewer elements than `limit` are
    done on one thread."""
    arrays, slot = arrays_in(nest), slots(nest)
    dims = list(dict.fromkeys(d for a in nest.arrays for d in a.dims))
    if len(dims) > MOST:
        raise ValueError(f"a program can have {MOST} dimensions, not {len(dims)}")
    words = [0] * len(FIELDS)

    def add(values: list[int]) -> int:
        words.extend(values)
        return len(words) - len(values)

    kept, last, records = set(strides_of(nest)), len(nest.axes) - 1, []
    names = [a.name for a in arrays]
    for buffer, array in zip(arrays, nest.arrays):
        steps = []
        for axis in buffer.axes:
            if axis == last and buffer.inner in "01":
                steps.append((axis, FIXED if buffer.inner == "1" else NONE, 0))
            elif (buffer.name, axis) in kept:
                steps.append((axis, FREE, slot[f"stride {buffer.name} {axis}"]))
            else:
                steps.append((axis, SAME, 0))
        if buffer.type == "bfloat16":
            number = int(context[CONTEXT.index("bfloat16")])
        else:
            number = np.dtype(TYPES[buffer.type].numpy).num
        records.append(
            [
                number,
                TYPES[buffer.type].bytes,
                len(array.dims),
                add([dims.index(d) for d in array.dims]),
                names.index(buffer.same) if buffer.same else -1,
                add([n for step in steps for n in step]),
                len(steps),
            ]
        )
    groups = [[dims.index(d) for d in group if d in dims] for group in nest.axes]
    axes = [
        [add(group), len(group), int(a in nest.range), int(nest.tile > 1 and a == last)]
        for a, group in enumerate(groups)
    ]
    values = {
        "context": context.ctypes.data, "run": run, "limit": limit, "tile": nest.tile,
        "table": len(slot), "arrays": len(arrays), "outputs": nest.outputs,
        "scalars": len(nest.scalars), "dims": len(dims), "axes": len(axes),
        "extents": len(nest.extents), "at_arrays": add([n for record in records for n in record]),
        "at_axes": add([n for axis in axes for n in axis]),
        "at_scalars": add([int(kind(n.type) == "f") for n in nest.scalars]),
        "at_extents": add([dims.index(d) for d in nest.extents]), "to_scalars": 2 + len(arrays),
        "to_axes": 2 + len(arrays) + len(nest.scalars),
        "to_extents": 2 + len(arrays) + len(nest.scalars) + len(axes),
    }  # fmt: skip
    words[: len(FIELDS)] = [values[name] for name in FIELDS]
    return np.array(words, np.int64)


class Trampoline(Builder):
    """Writes `object call_NAME(descriptor, objects, count)` into a module of its own."""

    def __init__(self, name: str) -> None:
        super().__init__(f"call_{name}", "word", ["word", "word*", "word"])
        given, self.objects, count = self.function.args
        b = self.b
        start, self.refuse, self.fail = (self.block(n) for n in ("start", "refuse", "fail"))
        entry = b.block
        b.position_at_end(start)
        self.descriptor = self.pointer(self.at(given, DATA))
        self.field = {name: self.get(self.descriptor, k) for k, name in enumerate(FIELDS)}
        self.context_ = self.pointer(self.field["context"])
        self.table = b.alloca(self.word, size=self.field["table"])
        self.put(self.table, 0, self.field["context"])
        self.sizes, self.own = (self.alloca("word", MOST) for _ in range(2))
        expected = b.add(self.field["arrays"], self.field["scalars"])
        self.insist(b.icmp_signed("==", count, expected))
        self.read_sizes()
        self.check_arrays()
        total, elements = self.read_axes()
        self.read_strides()
        self.read_extents()
        self.read_scalars()
        self.run(total, elements)
        b.position_at_end(self.refuse)
        self.answer("False")
        b.position_at_end(self.fail)
        b.ret(self.word(0))
        b.position_at_end(entry)
        b.branch(start)

    def text(self) -> str:
        """The finished module."""
        return str(self.module)

    def context(self, name: str) -> Any:
        return self.get(self.context_, CONTEXT.index(name))

    def python(self, name: str, result: Any, *args: object) -> Any:
        """Calls a function of the CONTEXT."""
        return self.call(self.context(name), result, *args)

    def insist(self, condition: Value) -> None:
        """Goes on only if the condition holds."""
        onward = self.block()
        self.b.cbranch(condition, onward, self.refuse)
        self.b.position_at_end(onward)

    def answer(self, name: str) -> None:
        """Returns True, False or None."""
        made = self.context(name)
        self.python("Py_IncRef", "void", made)
        self.b.ret(made)

    def record(self, at: str, names: tuple[str, ...], k: int | Value) -> dict[str, Any]:
        """The k-th record of a list in the descriptor."""
        return self.record_at(
            self.b.add(self.field[at], self.b.mul(k, self.word(len(names)))), names
        )

    def record_at(self, first: Any, names: tuple[str, ...]) -> dict[str, Any]:
        return {
            name: self.get(self.descriptor, self.b.add(first, self.word(n)))
            for n, name in enumerate(names)
        }

    # -- reading the objects ----------------------------------------------------------------------

    def read_sizes(self) -> None:
        """Classes, types and ranks; the address of each array; the size of each dimension (inputs
        of size 1 are broadcast)."""
        b, one = self.b, self.word(1)
        with self.counting(self.field["dims"]) as d:
            self.put(self.sizes, d, one)
        with self.counting(self.field["arrays"]) as k:
            array, record = self.get(self.objects, k), self.record("at_arrays", ARRAY, k)
            self.insist(b.icmp_signed("==", self.at(array, HEAD - 1), self.context("ndarray")))
            rank = b.zext(self.at(array, RANK, self.half), self.word)
            number = b.sext(self.at(self.at(array, DTYPE), TYPE_NUMBER, self.half), self.word)
            self.insist(
                b.and_(
                    b.icmp_signed("==", rank, record["rank"]),
                    b.icmp_signed("==", number, record["type"]),
                )
            )
            self.put(self.table, b.add(k, self.word(2)), self.at(array, DATA))
            shape = self.pointer(self.at(array, SHAPE))
            with self.counting(rank) as r:
                d = self.get(self.descriptor, b.add(record["dims"], r))
                size = self.get(self.sizes, d)
                fresh = b.icmp_signed("==", size, one)
                self.put(self.sizes, d, b.select(fresh, self.get(shape, r), size))

    def check_arrays(self) -> None:
        """Sizes agree; outputs are exactly the inputs that the layout says, and no others."""
        b, outputs = self.b, self.field["outputs"]
        with self.counting(self.field["arrays"]) as k:
            array, record = self.get(self.objects, k), self.record("at_arrays", ARRAY, k)
            shape = self.pointer(self.at(array, SHAPE))
            is_input = b.icmp_signed(">=", k, outputs)
            with self.counting(record["rank"]) as r:
                n = self.get(shape, r)
                size = self.get(self.sizes, self.get(self.descriptor, b.add(record["dims"], r)))
                one = b.and_(is_input, b.icmp_signed("==", n, self.word(1)))
                self.insist(b.or_(b.icmp_signed("==", n, size), one))
            with self.counting(outputs) as o:
                mine, its = (self.get(self.table, b.add(j, self.word(2))) for j in (k, o))
                told = b.icmp_signed("==", self.record("at_arrays", ARRAY, o)["same"], k)
                same = b.icmp_signed("==", mine, its)
                self.insist(b.or_(b.not_(is_input), b.icmp_signed("==", told, same)))

    def read_axes(self) -> tuple[Any, Any]:
        """Writes the lengths of the axes; the range, and the number of elements."""
        b, one = self.b, self.word(1)
        total, elements = self.var(1), self.var(1)
        with self.counting(self.field["axes"]) as a:
            axis, n = self.record("at_axes", AXIS, a), self.var(1)
            with self.counting(axis["count"]) as j:
                d = self.get(self.descriptor, b.add(axis["first"], j))
                b.store(b.mul(b.load(n), self.get(self.sizes, d)), n)
            length = b.load(n)
            self.put(self.table, b.add(self.field["to_axes"], a), length)
            b.store(b.mul(b.load(elements), length), elements)
            tile = self.field["tile"]
            blocks = b.sdiv(b.sub(b.add(length, tile), one), tile)
            part = b.select(b.icmp_signed("!=", axis["tiled"], self.word(0)), blocks, length)
            part = b.select(b.icmp_signed("!=", axis["counts"], self.word(0)), part, one)
            b.store(b.mul(b.load(total), part), total)
        made = b.load(total)
        self.put(self.table, 1, made)
        return made, b.load(elements)

    def read_strides(self) -> None:
        """Writes the strides along the axes; this is `layout.span`, at each call."""
        b, one, zero = self.b, self.word(1), self.word(0)
        with self.counting(self.field["arrays"]) as k:
            array, record = self.get(self.objects, k), self.record("at_arrays", ARRAY, k)
            shape, strides = (self.pointer(self.at(array, p)) for p in (SHAPE, STRIDES))
            with self.counting(self.field["dims"]) as d:
                self.put(self.own, d, zero)
            with self.counting(record["rank"]) as r:
                d = self.get(self.descriptor, b.add(record["dims"], r))
                single = b.icmp_signed("==", self.get(shape, r), one)
                self.put(self.own, d, b.select(single, zero, self.get(strides, r)))
            with self.counting(record["count"]) as j:
                step = self.record_at(b.add(record["steps"], b.mul(j, self.word(len(STEP)))), STEP)
                stride, length = self.span(self.record("at_axes", AXIS, step["axis"]))
                kinds = [b.icmp_signed("==", step["kind"], self.word(n)) for n in range(4)]
                short = b.icmp_signed("<=", length, one)
                wanted = b.select(kinds[FIXED], record["bytes"], zero)
                fits = b.or_(short, b.icmp_signed("==", stride, wanted))
                rest = b.srem(stride, record["bytes"])
                fits = b.select(kinds[FREE], b.icmp_signed("==", rest, zero), fits)
                self.insist(b.or_(fits, kinds[SAME]))
                with b.if_then(kinds[FREE]):
                    self.put(self.table, step["slot"], b.sdiv(stride, record["bytes"]))

    def span(self, axis: dict[str, Any]) -> tuple[Any, Any]:
        """An array's stride along an axis, and the axis's length; refuses if the dimensions do not
        lie together."""
        b, one = self.b, self.word(1)
        size, stride = self.var(1), self.var(0)
        with self.counting(axis["count"]) as j:  # from the last dimension to the first
            back = b.sub(b.sub(b.add(axis["first"], axis["count"]), one), j)
            d = self.get(self.descriptor, back)
            n, s, before, along = (
                self.get(self.sizes, d),
                self.get(self.own, d),
                b.load(size),
                b.load(stride),
            )
            first, single = b.icmp_signed("==", before, one), b.icmp_signed("==", n, one)
            fits = b.icmp_signed("==", s, b.mul(along, before))
            self.insist(b.or_(b.or_(first, single), fits))
            b.store(b.select(first, s, along), stride)
            b.store(b.mul(before, n), size)
        return b.load(stride), b.load(size)

    def read_extents(self) -> None:
        b = self.b
        with self.counting(self.field["extents"]) as k:
            d = self.get(self.descriptor, b.add(self.field["at_extents"], k))
            self.put(self.table, b.add(self.field["to_extents"], k), self.get(self.sizes, d))

    def read_scalars(self) -> None:
        """Python numbers into their slots, as the bits of a double or as integers."""
        b, double = self.b, self.ir.DoubleType()
        with self.counting(self.field["scalars"]) as k:
            given = self.get(self.objects, b.add(self.field["arrays"], k))
            real = self.get(self.descriptor, b.add(self.field["at_scalars"], k))
            place = b.add(self.field["to_scalars"], k)
            with b.if_else(b.icmp_signed("!=", real, self.word(0))) as (then, otherwise):
                with then:
                    value = self.python("PyFloat_AsDouble", double, given)
                    self.put(self.table, place, b.bitcast(value, self.word))
                    self.check_error(b.fcmp_ordered("==", value, double(-1.0)))
                with otherwise:
                    whole = self.python("PyLong_AsLongLong", self.word, given)
                    self.put(self.table, place, whole)
                    self.check_error(b.icmp_signed("==", whole, self.word(-1)))

    def check_error(self, doubt: Any) -> None:
        """Where a number may stand for an error: leaves with the exception if there is one."""
        b = self.b
        with b.if_then(doubt):
            error = self.python("PyErr_Occurred", self.word)
            fine = self.block()
            b.cbranch(b.icmp_signed("==", error, self.word(0)), fine, self.fail)
            b.position_at_end(fine)

    # -- running ----------------------------------------------------------------------------------

    def run(self, total: Any, elements: Any) -> None:
        """Little work is done at once; more of it is shared; long work lets go of the GIL."""
        b, word, none = self.b, self.word, self.word(0)
        limit, table = self.field["limit"], b.ptrtoint(self.table, word)
        threads, queue = self.context("threads"), self.context("queue")
        more = b.icmp_signed(">=", elements, limit)
        step = self.step_of(total, threads)
        shared = b.and_(
            b.and_(more, b.icmp_signed(">", threads, word(1))), b.icmp_signed("<", step, total)
        )
        wait, ready = (self.block(n) for n in ("wait", "ready"))
        b.cbranch(b.and_(shared, b.icmp_signed("==", queue, none)), wait, ready)
        b.position_at_end(wait)
        self.answer("None")
        b.position_at_end(ready)
        long = b.icmp_signed(">=", elements, b.mul(limit, word(LONG)))
        state, done = self.var(0), self.var(0)
        with b.if_then(long):
            b.store(self.python("PyEval_SaveThread", word), state)
        with b.if_then(shared):
            b.store(
                b.zext(
                    self.python("post", self.half, queue, self.field["run"], table, total, step),
                    word,
                ),
                done,
            )
        with b.if_then(b.icmp_signed("==", b.load(done), none)):
            self.call(self.field["run"], "void", table, none, total)
        with b.if_then(long):
            self.python("PyEval_RestoreThread", "void", b.load(state))
        self.answer("True")

    def step_of(self, total: Any, threads: Any) -> Any:
        """How much of the range is a part."""
        b, word = self.b, self.word
        parts = b.mul(threads, word(PARTS))
        step = b.sdiv(b.sub(b.add(total, parts), word(1)), parts)
        whole = b.and_(b.add(step, word(63)), word(-64))  # no two write to one line of the cache
        large = b.and_(
            b.icmp_signed(">", step, word(64)), b.icmp_signed("==", self.field["tile"], word(1))
        )
        return b.select(large, whole, step)

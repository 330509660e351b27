"""The part of a kernel that is compiled for it: run_NAME, between a call's table and the loops.

A kernel is called through the `trampoline`, one compiled function for all of them. It reads the
array objects, checks that they are what the kernel was made for, and writes a table of 64-bit
words: the range, the address of every buffer, the scalars, the sizes, the strides.
run_NAME(table, lo, hi) takes them from there and does a part of the range. What it needs of CPython
and the C library comes in another table, CONTEXT: so the compiled code refers to no address outside
and can be kept in a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toytorch.loops.generators.llvm import Core, has_limits
from toytorch.loops.language.types import TYPES, kind
from toytorch.loops.llvm.builder import Builder
from toytorch.loops.processor import Processor
from toytorch.loops.schedule.nest import Buffer, Nest, strides_of

if TYPE_CHECKING:
    from llvmlite.ir import Module, Value


# Memory comes from the C library: PyMem_RawMalloc takes the interpreter's lock where tracemalloc
# counts, and a worker that asks for it would wait for the thread that waits for the worker.
C_FUNCTIONS = ("malloc", "free")
FUNCTIONS = (
    "PyEval_SaveThread", "PyEval_RestoreThread", "PyFloat_AsDouble", "PyLong_AsLongLong",
    "PyErr_Occurred", "Py_IncRef",
)  # fmt: skip
CONTEXT = (
    "ndarray", "threads", "queue", "post", "bfloat16", "True", "False", "None", *C_FUNCTIONS,
    *FUNCTIONS,
)  # fmt: skip


def arrays_in(nest: Nest) -> list[Buffer]:
    """The buffers that are arrays of the call, outputs first."""
    return [b for b in nest.buffers if b.axes != (-1,)]


def slots(nest: Nest) -> dict[str, int]:
    """Where each thing stands in the table of a call."""
    names = [
        "context", "range", *(f"data {b.name}" for b in arrays_in(nest)),
        *(f"scalar {n.name}" for n in nest.scalars), *(f"n{a}" for a in range(len(nest.axes))),
        *(f"size_{d}" for d in nest.extents), *(f"stride {b} {a}" for b, a in strides_of(nest)),
    ]  # fmt: skip
    return {name: k for k, name in enumerate(names)}


class EntryPoint(Builder):
    """Writes run_NAME of a nest, and the loops that it calls, into a module."""

    def __init__(self, module: Module, nest: Nest, name: str, processor: Processor) -> None:
        self.nest = nest
        self.scratch = [b for b in nest.buffers if b.axes == (-1,)]
        # After a large angle or quotient everything is computed again, slowly; where the input has
        # been written over by then, it is done slowly at once.
        kinds = [False]
        if has_limits(nest):
            kinds = [True] if any(b.same for b in nest.buffers) else [False, True]
        self.cores = [
            Core(module, nest, f"{'slow' if slow else 'core'}_{name}", processor, slow)
            for slow in kinds
        ]
        self.slot = slots(nest)
        super().__init__(f"run_{name}", "void", ["word*", "word", "word"], module)
        # Straight code that runs once for a call: it is not worth optimising.
        for attribute in ("noinline", "optnone"):
            self.function.attributes.add(attribute)
        self.table, lo, hi = self.function.args
        self.write_run(lo, hi)

    def slot_of(self, name: str) -> Any:
        """A word of the table."""
        return self.get(self.table, self.slot[name])

    def python(self, name: str, result: Any, *args: object) -> Any:
        """Calls a function of CPython or of the C library."""
        address = self.at(self.slot_of("context"), CONTEXT.index(name))
        return self.call(address, result, *args)

    def write_run(self, lo: Value, hi: Value) -> None:
        """void run(table, lo, hi)."""
        b, core = self.b, self.cores[0]
        args, held = [], []
        kinds = iter(core.function.args)
        for buffer in self.nest.buffers:
            if buffer.same:
                continue
            type = next(kinds).type
            if buffer in self.scratch:
                held.append(self.memory(buffer))
                args.append(b.inttoptr(held[-1], type))
            else:
                args.append(b.inttoptr(self.slot_of(f"data {buffer.name}"), type))
        for scalar in self.nest.scalars:
            args.append(self.scalar(self.slot_of(f"scalar {scalar.name}"), scalar.type, core))
        for name in [
            *(f"n{a}" for a in range(len(self.nest.axes))),
            *(f"size_{d}" for d in self.nest.extents),
            *(f"stride {n} {a}" for n, a in strides_of(self.nest)),
        ]:
            args.append(self.slot_of(name))
        found = b.call(core.function, [*args, lo, hi])
        if len(self.cores) > 1:
            with b.if_then(b.icmp_unsigned("!=", found, self.half(0)), likely=False):
                b.call(self.cores[1].function, [*args, lo, hi])
        for place in held:
            self.python("free", "void", place)
        b.ret_void()

    def memory(self, buffer: Buffer) -> Any:
        """Scratch memory of this part's own."""
        b, size = self.b, self.word(TYPES[buffer.type].bytes)
        for n in buffer.size:
            size = b.mul(size, self.word(n) if isinstance(n, int) else self.slot_of(n))
        return self.python("malloc", self.word, size)

    def scalar(self, bits: Value, type: str, core: Core) -> Any:
        """A scalar from the table in the type it is computed in."""
        b = self.b
        if kind(type) == "f":
            value = b.bitcast(bits, self.type("double"))
            return value if type == "float64" else b.fptrunc(value, self.type("float"))
        if type == "bool":
            return b.icmp_signed("!=", bits, self.word(0))
        return bits if TYPES[type].bits == 64 else b.trunc(bits, core.ops.llvm(type))

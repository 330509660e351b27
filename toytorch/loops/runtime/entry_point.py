"""The part of a kernel that is compiled for it: run_NAME, between a call's table and the loops.

A kernel is called through `reader`, one compiled function for all of them. It reads the array
objects, checks that they are what the kernel was made for, and writes a table of 64-bit words: the
range, the address of every buffer, the numbers, the sizes, the strides. run_NAME(table, lo, hi)
takes them from there and does a part of the range. What it needs of CPython comes in another table,
CONTEXT: so the compiled code refers to no address outside and can be kept in a file.
"""

from __future__ import annotations

from typing import Any

from toytorch.loops.generators.llvm import Core, has_angles
from toytorch.loops.language.types import TYPES, kind
from toytorch.loops.processor import Processor
from toytorch.loops.schedule.nest import Buffer, Nest, strides_of

FUNCTIONS = (
    "PyMem_RawMalloc",
    "PyMem_RawFree",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyFloat_AsDouble",
    "PyLong_AsLongLong",
    "PyErr_Occurred",
    "Py_IncRef",
)
CONTEXT = ("ndarray", "threads", "board", "post", "bfloat16", "True", "False", "None", *FUNCTIONS)


def arrays_in(nest: Nest) -> list[Buffer]:
    """The buffers that are arrays of the call, outputs first."""
    return [b for b in nest.buffers if b.axes != (-1,)]


def slots(nest: Nest) -> dict[str, int]:
    """Where each thing stands in the table of a call."""
    names = [
        "context",
        "range",
        *(f"data {b.name}" for b in arrays_in(nest)),
        *(f"number {n.name}" for n in nest.numbers),
        *(f"n{a}" for a in range(len(nest.axes))),
        *(f"size_{d}" for d in nest.extents),
        *(f"stride {b} {a}" for b, a in strides_of(nest)),
    ]
    return {name: k for k, name in enumerate(names)}


class Entry:
    """Writes run_NAME of a nest, and the loops that it calls, into a module."""

    def __init__(self, ir: Any, module: Any, nest: Nest, name: str, processor: Processor) -> None:
        self.ir, self.module, self.nest, self.name = ir, module, nest, name
        self.word, self.half = ir.IntType(64), ir.IntType(32)
        self.arrays = arrays_in(nest)
        self.scratch = [b for b in nest.buffers if b.axes == (-1,)]
        # After a large angle everything is computed again, slowly; where the input has been
        # written over by then, it is done slowly at once.
        kinds = [False, True] if has_angles(nest) else [False]
        if has_angles(nest) and any(b.same for b in nest.buffers):
            kinds = [True]
        self.cores = [
            Core(ir, module, nest, f"{'slow' if slow else 'core'}_{name}", processor, slow)
            for slow in kinds
        ]
        self.slot = slots(nest)
        self.write_run()

    def context(self, table: Any, name: str) -> Any:
        """One word of the CONTEXT."""
        context = self.b.inttoptr(self.get(table, "context"), self.word.as_pointer())
        return self.b.load(self.b.gep(context, [self.word(CONTEXT.index(name))]))

    def python(self, table: Any, name: str, result: Any, args: list[Any]) -> Any:
        """Calls a function of CPython."""
        type = self.ir.FunctionType(result, [a.type for a in args])
        function = self.b.inttoptr(self.context(table, name), type.as_pointer())
        return self.b.call(function, args)

    def get(self, table: Any, name: str) -> Any:
        return self.b.load(self.b.gep(table, [self.word(self.slot[name])]))

    def write_run(self) -> None:
        """void run(table, lo, hi)."""
        ir, word = self.ir, self.word
        self.run = ir.Function(
            self.module,
            ir.FunctionType(ir.VoidType(), [word.as_pointer(), word, word]),
            f"run_{self.name}",
        )
        # Straight code that runs once for a call: it is not worth optimising.
        for attribute in ("nounwind", "noinline", "optnone"):
            self.run.attributes.add(attribute)
        table, lo, hi = self.run.args
        self.b = b = ir.IRBuilder(self.run.append_basic_block("entry"))
        args, held = [], []
        core = self.cores[0]
        kinds = iter(core.function.args)
        for buffer in self.nest.buffers:
            if buffer.same:
                continue
            type = next(kinds).type
            if buffer in self.scratch:
                held.append(self.memory(table, buffer))
                args.append(b.inttoptr(held[-1], type))
            else:
                args.append(b.inttoptr(self.get(table, f"data {buffer.name}"), type))
        for number in self.nest.numbers:
            args.append(self.number(self.get(table, f"number {number.name}"), number.type, core))
        for name in [
            *(f"n{a}" for a in range(len(self.nest.axes))),
            *(f"size_{d}" for d in self.nest.extents),
            *(f"stride {n} {a}" for n, a in strides_of(self.nest)),
        ]:
            args.append(self.get(table, name))
        found = b.call(core.function, [*args, lo, hi])
        if len(self.cores) > 1:
            with b.if_then(b.icmp_unsigned("!=", found, self.half(0)), likely=False):
                b.call(self.cores[1].function, [*args, lo, hi])
        for place in held:
            self.python(table, "PyMem_RawFree", ir.VoidType(), [place])
        b.ret_void()

    def memory(self, table: Any, buffer: Buffer) -> Any:
        """Scratch memory of this part's own."""
        b, size = self.b, self.word(TYPES[buffer.type].bytes)
        for n in buffer.size:
            size = b.mul(size, self.word(n) if isinstance(n, int) else self.get(table, n))
        return self.python(table, "PyMem_RawMalloc", self.word, [size])

    def number(self, bits: Any, type: str, core: Core) -> Any:
        """A number from the table in the type it is computed in."""
        b = self.b
        if kind(type) == "f":
            value = b.bitcast(bits, self.ir.DoubleType())
            return value if type == "float64" else b.fptrunc(value, self.ir.FloatType())
        if type == "bool":
            return b.icmp_signed("!=", bits, self.word(0))
        return bits if TYPES[type].bits == 64 else b.trunc(bits, core.ops.llvm(type))

"""The way from Python into a kernel: LLVM functions that read array objects themselves.

`call_NAME` is a function of CPython's METH_FASTCALL kind: it gets the Python objects, checks that
the arrays are what the kernel was made for (class, type, number of dimensions, sizes, strides that
fit the layout), and runs core_NAME. It returns True; False if the arrays do not fit and nothing
was done; None if several threads should do it but have not been made yet (`parallel.make_team`).
`read_NAME` does the checks and writes down what it read, and `run_NAME` runs a part of the range
from there.

What was read is a table of 64-bit words: the range, the address of every buffer, the numbers, the
sizes, the strides. What kernels need of CPython and NumPy comes in another table, CONTEXT, which is
the memory of the NumPy array that call_NAME gets as its `self`: so the compiled code refers to no
address outside and can be kept in a file.
"""

from __future__ import annotations

from typing import Any

from toytorch.backends.loops.emit import Processor
from toytorch.backends.loops.nest import Buffer, Nest
from toytorch.backends.loops.print_llvm import Core, has_angles, strides_of
from toytorch.backends.loops.types import TYPES, kind

# Where NumPy's array object keeps things, in words of 8 bytes from its beginning. `machine.works`
# looks whether it is so.
HEAD = object.__basicsize__ // 8
DATA, SHAPE, STRIDES, DESCRIPTOR = HEAD, HEAD + 2, HEAD + 3, HEAD + 5
RANK = (HEAD + 1) * 2  # in words of 4 bytes
TYPE_NUMBER = HEAD * 2 + 3  # of the descriptor, in words of 4 bytes

FUNCTIONS = ("PyMem_RawMalloc", "PyMem_RawFree", "PyEval_SaveThread", "PyEval_RestoreThread",
             "PyFloat_AsDouble", "PyLong_AsLongLong", "PyErr_Occurred", "Py_IncRef")
CONTEXT = ("ndarray", "threads", "board", "post", "bfloat16", "True", "False", "None", *FUNCTIONS)
PARTS = 4  # of the range for each thread: a thread that comes late takes fewer
LONG = 16  # times the work that is shared: from there on other Python threads may run meanwhile


class Entry:
    """Writes call_NAME, read_NAME and run_NAME of a nest into a module."""

    def __init__(self, ir: Any, module: Any, nest: Nest, name: str, processor: Processor,
                 limit: int) -> None:
        self.ir, self.module, self.nest, self.name = ir, module, nest, name
        self.limit = limit  # elements; fewer are done on one thread
        self.word, self.half = ir.IntType(64), ir.IntType(32)
        self.byte = ir.IntType(8)
        self.pointer = self.byte.as_pointer()
        self.arrays = [b for b in nest.buffers if b.axes != (-1,)]
        self.scratch = [b for b in nest.buffers if b.axes == (-1,)]
        # After a large angle everything is computed again, slowly; where the input has been
        # written over by then, it is done slowly at once.
        kinds = [False, True] if has_angles(nest) else [False]
        if has_angles(nest) and any(b.same for b in nest.buffers):
            kinds = [True]
        self.cores = [Core(ir, module, nest, f"{'slow' if slow else 'core'}_{name}", processor,
                           slow) for slow in kinds]
        self.layout_table()
        self.write_read()
        self.write_run()
        self.write_call()

    def layout_table(self) -> None:
        """Where each thing stands in the table."""
        names = ["context", "range", *(f"data {b.name}" for b in self.arrays),
                 *(f"number {n.name}" for n in self.nest.numbers),
                 *(f"n{a}" for a in range(len(self.nest.axes))),
                 *(f"size_{d}" for d in self.nest.extents),
                 *(f"stride {b} {a}" for b, a in strides_of(self.nest)), "elements"]
        self.slot = {name: k for k, name in enumerate(names)}

    def function(self, name: str, result: Any, arguments: list[Any]) -> Any:
        made = self.ir.Function(self.module, self.ir.FunctionType(result, arguments), name)
        # Straight code that runs once for a call: optimising it took half of the time to compile.
        for word in ("nounwind", "noinline", "optnone"):
            made.attributes.add(word)
        return made

    def context(self, table: Any, name: str) -> Any:
        """One word of the CONTEXT."""
        context = self.b.inttoptr(self.get(table, "context"), self.word.as_pointer())
        return self.b.load(self.b.gep(context, [self.word(CONTEXT.index(name))]))

    def python(self, table: Any, name: str, result: Any, args: list[Any]) -> Any:
        """Calls a function of CPython."""
        type = self.ir.FunctionType(result, [a.type for a in args])
        function = self.b.inttoptr(self.context(table, name), type.as_pointer())
        return self.b.call(function, args)

    def put(self, table: Any, name: str, value: Any) -> None:
        self.b.store(value, self.b.gep(table, [self.word(self.slot[name])]))

    def get(self, table: Any, name: str) -> Any:
        return self.b.load(self.b.gep(table, [self.word(self.slot[name])]))

    # -- reading the objects ----------------------------------------------------------------------

    def write_read(self) -> None:
        """i32 read(objects, table): 1 if everything fits, 0 if not, -1 with an exception."""
        ir, word = self.ir, self.word
        self.read = self.function(f"read_{self.name}", self.half,
                                  [word.as_pointer(), word.as_pointer()])
        objects, self.table = self.read.args
        self.doubt: Any = None
        table = self.table
        self.b = b = ir.IRBuilder(self.read.append_basic_block("entry"))
        self.refuse, self.fail = (self.read.append_basic_block(n) for n in ("refuse", "fail"))
        ir.IRBuilder(self.refuse).ret(self.half(0))
        ir.IRBuilder(self.fail).ret(self.half(-1))
        shapes, steps, data = [], [], []
        for k, (buffer, record) in enumerate(zip(self.arrays, self.nest.arrays)):
            shape, strides, address = self.open_array(objects, k, buffer, len(record.dims))
            shapes.append(shape)
            steps.append(strides)
            data.append(address)
            self.put(table, f"data {buffer.name}", address)
        self.check_memory(data)
        sizes = self.dimensions(shapes)
        for d in self.nest.extents:
            self.put(table, f"size_{d}", sizes[d])
        self.axes(table, sizes, shapes, steps)
        if self.doubt is not None:
            self.look()
        for k, number in enumerate(self.nest.numbers):
            self.read_number(objects, len(self.arrays) + k, number, table)
        b.ret(self.half(1))

    def insist(self, condition: Any) -> None:
        """Notes a condition that has to hold; `look` looks at all of them so far."""
        self.doubt = condition if self.doubt is None else self.b.and_(self.doubt, condition)

    def look(self) -> None:
        """Goes on only if what was insisted on holds."""
        onward = self.read.append_basic_block()
        self.b.cbranch(self.doubt, onward, self.refuse)
        self.b.position_at_end(onward)
        self.doubt = None

    def at(self, address: Any, index: int, type: Any) -> Any:
        """The value at a place in memory that is given by an address in a word."""
        place = self.b.inttoptr(address, type.as_pointer())
        return self.b.load(self.b.gep(place, [self.word(index)]))

    def open_array(self, objects: Any, k: int, buffer: Buffer, rank: int) -> Any:
        """Checks one array object; its sizes, its strides in bytes, and its address."""
        b, word = self.b, self.word
        array = b.load(b.gep(objects, [word(k)]))
        self.insist(b.icmp_unsigned("==", self.at(array, HEAD - 1, word),
                                    self.context(self.table, "ndarray")))
        self.look()
        self.insist(b.icmp_unsigned("==", self.at(array, RANK, self.half), self.half(rank)))
        descriptor = self.at(array, DESCRIPTOR, word)
        number = self.at(descriptor, TYPE_NUMBER, self.half)
        wanted = self.type_number(buffer.type)
        self.insist(b.icmp_unsigned("==", number, wanted))
        self.look()
        shape, strides = (self.at(array, place, word) for place in (SHAPE, STRIDES))
        return ([self.at(shape, d, word) for d in range(rank)],
                [self.at(strides, d, word) for d in range(rank)], self.at(array, DATA, word))

    def type_number(self, type: str) -> Any:
        """NumPy's number of a type: fixed, but for bfloat16, which is registered at run time."""
        import numpy as np
        if type != "bfloat16":
            return self.half(np.dtype(TYPES[type].numpy).num)
        return self.b.trunc(self.context(self.table, "bfloat16"), self.half)

    def check_memory(self, data: list[Any]) -> None:
        """Outputs are exactly the inputs that the layout says, and no others."""
        b = self.b
        for o in range(self.nest.outputs):
            for i in range(self.nest.outputs, len(self.arrays)):
                same = self.arrays[o].same == self.arrays[i].name
                sign = "==" if same else "!="
                self.insist(b.icmp_unsigned(sign, data[o], data[i]))

    def dimensions(self, shapes: list[list[Any]]) -> dict[str, Any]:
        """The size of each dimension; inputs of size 1 are broadcast."""
        b, one = self.b, self.word(1)
        sizes: dict[str, Any] = {}
        for record, shape in zip(self.nest.arrays, shapes):
            for d, n in zip(record.dims, shape):
                if d in sizes:
                    n = b.select(b.icmp_unsigned("==", sizes[d], one), n, sizes[d])
                sizes[d] = n
        for k, (record, shape) in enumerate(zip(self.nest.arrays, shapes)):
            for d, n in zip(record.dims, shape):
                if n is sizes[d]:
                    continue
                fits = b.icmp_unsigned("==", n, sizes[d])
                if k >= self.nest.outputs:
                    fits = b.or_(fits, b.icmp_unsigned("==", n, one))
                self.insist(fits)
        return sizes

    def axes(self, table: Any, sizes: dict[str, Any], shapes: list[list[Any]],
             steps: list[list[Any]]) -> None:
        """Sizes and strides of the axes; this is `layout.span`, at each call."""
        b, one, zero = self.b, self.word(1), self.word(0)
        kept = set(strides_of(self.nest))
        last = len(self.nest.axes) - 1
        lengths = []
        for axis, group in enumerate(self.nest.axes):
            total = one
            for d in group:
                total = b.mul(total, sizes[d])
            lengths.append(total)
            self.put(table, f"n{axis}", total)
        for buffer, record, shape, step in zip(self.arrays, self.nest.arrays, shapes, steps):
            own = {d: b.select(b.icmp_unsigned("==", n, one), zero, s)
                   for d, n, s in zip(record.dims, shape, step)}
            itemsize = self.word(TYPES[buffer.type].bytes)
            for axis in buffer.axes:
                stride = self.span(self.nest.axes[axis], sizes, own)
                if axis == last and buffer.inner in "01":
                    wanted = itemsize if buffer.inner == "1" else zero
                    short = b.icmp_signed("<=", lengths[axis], one)
                    self.insist(b.or_(short, b.icmp_unsigned("==", stride, wanted)))
                elif (buffer.name, axis) in kept:
                    self.insist(b.icmp_unsigned("==", b.and_(
                        stride, self.word(TYPES[buffer.type].bytes - 1)), zero))
                    elements = b.ashr(stride, self.word(TYPES[buffer.type].bytes.bit_length() - 1))
                    self.put(table, f"stride {buffer.name} {axis}", elements)
        self.put_range(table, lengths)

    def span(self, group: tuple[str, ...], sizes: dict[str, Any], own: dict[str, Any]) -> Any:
        """The stride of an axis; refuses if its dimensions do not lie together."""
        b, one, zero = self.b, self.word(1), self.word(0)
        size = stride = None
        for d in reversed(group):
            n, s = sizes[d], own.get(d, zero)
            if size is None:
                size, stride = n, s
                continue
            first, single = b.icmp_unsigned("==", size, one), b.icmp_unsigned("==", n, one)
            fits = b.icmp_unsigned("==", s, b.mul(stride, size))
            self.insist(b.or_(b.or_(first, single), fits))
            stride = b.select(first, s, stride)
            size = b.mul(size, n)
        return zero if stride is None else stride

    def put_range(self, table: Any, lengths: list[Any]) -> None:
        b, total, elements = self.b, self.word(1), self.word(1)
        for axis in self.nest.range:
            n = lengths[axis]
            if self.nest.tile > 1 and axis == len(lengths) - 1:
                n = b.udiv(b.add(n, self.word(self.nest.tile - 1)), self.word(self.nest.tile))
            total = b.mul(total, n)
        for n in lengths:
            elements = b.mul(elements, n)
        self.put(table, "range", total)
        self.put(table, "elements", elements)

    def read_number(self, objects: Any, k: int, number: Any, table: Any) -> None:
        """A Python number into its slot, as the bits of a double or as an integer."""
        b, real = self.b, kind(number.type) == "f"
        result = self.ir.DoubleType() if real else self.word
        name = "PyFloat_AsDouble" if real else "PyLong_AsLongLong"
        value = self.python(table, name, result, [b.load(b.gep(objects, [self.word(k)]))])
        fine = self.read.append_basic_block()
        doubt = self.read.append_basic_block()
        wrong = b.fcmp_ordered("==", value, result(-1.0)) if real else (
            b.icmp_signed("==", value, result(-1)))
        b.cbranch(wrong, doubt, fine)
        b.position_at_end(doubt)
        error = self.python(table, "PyErr_Occurred", self.word, [])
        b.cbranch(b.icmp_unsigned("==", error, self.word(0)), fine, self.fail)
        b.position_at_end(fine)
        self.put(table, f"number {number.name}", b.bitcast(value, self.word) if real else value)

    # -- running ----------------------------------------------------------------------------------

    def write_run(self) -> None:
        """void run(table, lo, hi)."""
        ir, word = self.ir, self.word
        self.run = self.function(f"run_{self.name}", ir.VoidType(),
                                 [word.as_pointer(), word, word])
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
        for name in [*(f"n{a}" for a in range(len(self.nest.axes))),
                     *(f"size_{d}" for d in self.nest.extents),
                     *(f"stride {n} {a}" for n, a in strides_of(self.nest))]:
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

    def write_call(self) -> None:
        """object call(self, objects, count)."""
        ir, word = self.ir, self.word
        call = self.function(f"call_{self.name}", word, [word, word.as_pointer(), word])
        context, objects, count = call.args
        self.b = b = ir.IRBuilder(call.append_basic_block("entry"))
        table = b.alloca(word, size=len(self.slot))
        self.put(table, "context", self.at(context, DATA, word))
        result = {name: call.append_basic_block(name) for name in ("True", "False", "None")}
        fits, ready, error = (call.append_basic_block(n) for n in ("fits", "ready", "error"))
        wanted = word(len(self.arrays) + len(self.nest.numbers))
        b.cbranch(b.icmp_signed("==", count, wanted), fits, result["False"])
        b.position_at_end(fits)
        choice = b.switch(b.call(self.read, [objects, table]), ready)
        choice.add_case(self.half(0), result["False"])
        choice.add_case(self.half(-1), error)
        b.position_at_end(error)
        b.ret(word(0))
        b.position_at_end(ready)
        self.write_choice(call, table, result)
        for name, block in result.items():
            b.position_at_end(block)
            made = self.context(table, name)
            self.python(table, "Py_IncRef", ir.VoidType(), [made])
            b.ret(made)

    def write_choice(self, call: Any, table: Any, result: dict[str, Any]) -> None:
        """Little work is done at once; more of it is shared; long work lets go of the GIL."""
        b, word, none = self.b, self.word, self.word(0)
        elements, total = self.get(table, "elements"), self.get(table, "range")
        threads, board = self.context(table, "threads"), self.context(table, "board")
        more = b.icmp_signed(">=", elements, word(self.limit))
        step = self.step_of(total, threads)
        shared = b.and_(b.and_(more, b.icmp_signed(">", threads, word(1))),
                        b.icmp_signed("<", step, total))
        ready = call.append_basic_block("start")
        b.cbranch(b.and_(shared, b.icmp_signed("==", board, none)), result["None"], ready)
        b.position_at_end(ready)
        long = b.icmp_signed(">=", elements, word(self.limit * LONG))
        state, left = b.alloca(word), b.alloca(self.half)
        b.store(self.half(0), left)
        with b.if_then(long):
            b.store(self.python(table, "PyEval_SaveThread", word, []), state)
        with b.if_then(shared):
            run = b.ptrtoint(self.run, word)
            b.store(self.python(table, "post", self.half, [
                board, run, b.ptrtoint(table, word), total, step]), left)
        with b.if_then(b.icmp_signed("==", b.load(left), self.half(0))):
            b.call(self.run, [table, none, total])
        with b.if_then(long):
            self.python(table, "PyEval_RestoreThread", self.ir.VoidType(), [b.load(state)])
        b.branch(result["True"])

    def step_of(self, total: Any, threads: Any) -> Any:
        """How much of the range is a part."""
        b, word = self.b, self.word
        parts = b.mul(threads, word(PARTS))
        step = b.udiv(b.sub(b.add(total, parts), word(1)), parts)
        if self.nest.tile > 1:
            return step
        whole = b.and_(b.add(step, word(63)), word(-64))  # no two write to one line of the cache
        return b.select(b.icmp_signed(">", step, word(64)), whole, step)

"""A Nest as CUDA C: one kernel that NVRTC compiles without any header.

Elementwise programs run one thread for each element, by grid-stride loops, or for four neighbours,
which the compiler then loads and stores at once. With reductions a block
of threads takes a row (or a block of columns): its threads go along the row side by side, and their
totals are joined by shuffles within a warp and through shared memory between warps.

    >>> from toytorch.loops.schedule.layout import Layout
    >>> from toytorch.loops.language.program import Program
    >>> from toytorch.loops.schedule.build import schedule
    >>> p = Program.parse("x[i], s -> y[i]\\n y = exp(x) * s")
    >>> flat = Layout("flat", (("i",),), (False,), ("1", "1"), (), ("y", "x"))
    >>> made = cuda_source(schedule(p, flat, flat=True))
    >>> print(made.source[made.source.index("extern"):])
    extern "C" __global__ void __launch_bounds__(256, 4) kernel(float* __restrict__ y,
            const float* __restrict__ x, float s, long long hi) {
        for (long long r = blockIdx.x * 256LL + threadIdx.x; r < hi; r += gridDim.x * 256LL) {
            const float x_0 = x[r];
            const float a_0 = expf(x_0);
            const float y_0 = a_0 * s;
            y[r] = y_0;
        }
    }
    >>> made.parameters
    (('array', 'y'), ('array', 'x'), ('scalar', 's'), ('range', 'hi'))
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from toytorch.loops.generators import cuda_prelude
from toytorch.loops.generators.cuda_words import (
    device_functions,
    expression,
    primitive,
    value_of,
    word,
)
from toytorch.loops.language.types import TYPES, computed
from toytorch.loops.schedule.nest import (
    Buffer,
    For,
    Join,
    Let,
    Load,
    Nest,
    Place,
    Statement,
    Store,
    Update,
    Var,
    statements,
    strides_of,
)

THREADS = 256  # of a block; divides the blocks of 1024 elements in which rows are added
LANES = 4  # neighbours that a thread takes: 16 bytes of float32, the most that one load fetches
BLOCKS = 4  # on one multiprocessor at least: 64 registers for each thread, before any spills
MANY = 16  # arrays whose addresses alone fill half of the registers that so many blocks leave
LONG = 90  # steps in float64 of the functions it calls, whose numbers take two registers each
INDEX = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "quotient": "{0} / {1}",
    "rest": "{0} % {1}", "minimum": "{0} < {1} ? {0} : {1}",
}  # fmt: skip


@dataclass(frozen=True)
class CudaSource:
    """A kernel in CUDA C, and what it is launched with.

    parameters   in order: ("array", name), ("scalar", name), ("size", n of an axis or size_d),
                 ("stride", "name axis"), ("scratch", name), ("range", "hi")
    by_block     whether an iteration of the range is a block of threads (otherwise one thread)
    scratch      elements of each scratch array that one block needs, as factors
    lanes        how many neighbours a thread takes
    """

    source: str
    parameters: tuple[tuple[str, str], ...]
    by_block: bool
    threads: int
    scratch: dict[str, tuple[int | str, ...]]
    lanes: int = 1


def cuda_source(nest: Nest, wide: bool = False, narrow: bool = False) -> CudaSource:
    """The kernel of a nest; of an elementwise one scheduled with flat=True.

    wide    a thread takes four neighbours; for nests that `widens`, of arrays aligned to 16 bytes
    narrow  indices are of 32 bits, which are divided much faster than 64
    """
    generator = Generator(nest, wide, narrow)
    body = "\n".join(generator.lines(nest.body, 1))
    head = ", ".join(generator.declarations)
    arrays = sum("*" in declaration for declaration in generator.declarations)
    own = device_functions(body)
    full = arrays > MANY or own.count("const double") > LONG
    blocks = BLOCKS // 2 if full else BLOCKS
    first = f'extern "C" __global__ void __launch_bounds__({THREADS}, {blocks}) kernel({head}) {{'
    first = "\n".join(textwrap.wrap(first, 98, subsequent_indent=" " * 8))
    first = first.replace("~", " ")
    lines = [cuda_prelude.of(own + body), own, first, *generator.opening, body]
    text, lanes = "\n".join(filter(None, lines)) + "\n}", LANES if wide else 1
    given, scratch = tuple(generator.parameters), generator.scratch
    return CudaSource(text, given, generator.by_block, THREADS, scratch, lanes)


def widens(nest: Nest) -> bool:
    """Whether a thread may take neighbours: one loop over elements that lie side by side."""
    loop = nest.body[0] if len(nest.body) == 1 else None
    if not isinstance(loop, For) or loop.kind != "rows" or len(nest.axes) != 1:
        return False
    return all(b.inner in ("0", "1") for b in nest.buffers) and not any(
        isinstance(s, For) or (isinstance(s, Let) and s.type == "index") for s in loop.body
    )


class Generator:
    """Writes statements; knows the types of all values."""

    def __init__(self, nest: Nest, wide: bool, narrow: bool) -> None:
        self.nest, self.wide = nest, wide
        self.index, self.suffix = ("int", "") if narrow else ("long long", "LL")
        self.buffers = {b.name: b for b in nest.buffers}
        self.types: dict[str, str] = {}
        self.fours: set[str] = set()  # buffers of which four neighbours are in registers
        self.by_block = any(isinstance(s, For) and s.kind == "lanes" for s in statements(nest.body))
        self.parameters: list[tuple[str, str]] = []
        self.declarations: list[str] = []
        self.opening: list[str] = []
        self.scratch: dict[str, tuple[int | str, ...]] = {}
        used = str(nest)
        aliased = {b.same for b in nest.buffers if b.same}
        for k, b in enumerate(nest.buffers):
            if b.axes == (-1,):
                self.declare_scratch(b)
            elif not b.same:
                written = k < nest.outputs or b.name in aliased
                alone = "" if b.name in aliased else " __restrict__"
                self.parameter(
                    "array", b.name, f"{'' if written else 'const '}{TYPES[b.type].cuda}*{alone}"
                )
        for n in nest.scalars:
            self.parameter("scalar", n.name, TYPES[n.type].cuda)
            self.types[n.name] = n.type
        for a in range(len(nest.axes)):
            if f"n{a}" in used or any(f"n{a}" in s for s in self.scratch.values()):
                self.parameter("size", f"n{a}", self.index)
        for d in nest.extents:
            self.parameter("size", f"size_{d}", self.index)
        for name, axis in strides_of(nest):
            self.parameter("stride", f"{name} {axis}", self.index, f"{name}_stride{axis}")
        self.parameter("range", "hi", self.index)
        for name in (
            "lo",
            "hi",
            *(f"n{a}" for a in range(len(nest.axes))),
            *(f"size_{d}" for d in nest.extents),
        ):
            self.types[name] = "index"

    def parameter(self, what: str, name: str, type: str, known: str = "") -> None:
        self.parameters.append((what, name))
        # "~" holds a parameter's words on one line.
        self.declarations.append(f"{type} {known or word(name)}".replace(" ", "~"))

    def declare_scratch(self, b: Buffer) -> None:
        """Memory of a block: shared if its size is known, else its part of a global array."""
        type = TYPES[b.type].cuda
        if all(isinstance(n, int) for n in b.size):
            size = math.prod(n for n in b.size if isinstance(n, int))
            self.opening.append(f"    __shared__ {type} {b.name}[{size}];")
            return
        self.scratch[b.name] = b.size
        self.parameter("scratch", b.name, f"{type}*")
        factors = " * ".join(f"{n}LL" if isinstance(n, int) else n for n in b.size)
        self.opening.append(f"    {b.name} += blockIdx.x * {factors};")

    # -- statements -------------------------------------------------------------------------------

    def lines(self, body: tuple[Statement, ...], depth: int, inside: bool = False) -> Iterator[str]:
        """The lines of statements; `inside` a loop that the threads share."""
        margin, fenced = "    " * depth, False
        for s in body:
            if isinstance(s, For) and s.kind == "rows" and self.wide:
                yield from self.neighbours(s, margin)
            elif isinstance(s, For):
                if s.kind == "lanes" and all(b.axes != (-1,) for b in self.nest.buffers):
                    yield f"#pragma unroll {LANES}"  # so many loads are on their way at once
                yield margin + self.head(s)
                yield from self.lines(s.body, depth + 1, inside or s.kind == "lanes")
                yield margin + "}"
            elif isinstance(s, Let):
                self.types[s.name] = s.type
                type = self.index if s.type == "index" else TYPES[s.type].cuda
                yield f"{margin}const {type} {s.name} = {self.expression(s)};"
            elif isinstance(s, Load):
                self.types[s.name] = s.type
                element = self.loaded(self.buffers[s.buffer], s.place)
                yield f"{margin}const {TYPES[s.type].cuda} {s.name} = {element};"
            elif isinstance(s, Store):
                alone = self.by_block and not inside
                if alone and not fenced:
                    yield f"{margin}__syncthreads();  // all have read what is written now"
                    fenced = True
                yield margin + "if (threadIdx.x == 0) " * alone + self.stored(s)
            elif isinstance(s, Var):
                self.types[s.name] = s.type
                yield f"{margin}{TYPES[s.type].cuda} {s.name} = {value_of(s.start, s.type)};"
            elif isinstance(s, Update):
                joined = primitive(s.op, self.types[s.name], [s.name, s.value])
                yield f"{margin}{s.name} = {joined};"
            else:
                yield f"{margin}{s.name} = {self.join(s)};"

    def neighbours(self, s: For, margin: str) -> Iterator[str]:
        """A loop of which a thread takes four turns at once, which are loaded and stored together."""
        read = {o.buffer for o in s.body if isinstance(o, Load)}
        written = {o.buffer for o in s.body if isinstance(o, Store)}
        fours = {b.name: b for b in self.nest.buffers if b.inner == "1"}
        type, first = self.index, f"blockIdx.x * {THREADS}{self.suffix} + threadIdx.x"
        step = f"gridDim.x * {LANES * THREADS}{self.suffix}"
        yield f"{margin}for ({type} four = ({first}) * {LANES}; four < hi; four += {step}) {{"
        yield f"{margin}    if (four + {LANES} <= hi) {{"
        deeper, name = margin + " " * 8, word
        for n, b in fours.items():
            four = f"Four<{TYPES[b.type].cuda}>"
            if n in read:
                yield f"{deeper}const {four} four_{n} = *(const {four}*)({name(b.same or n)} + four);"
            elif n in written:
                yield f"{deeper}{four} four_{n};"
        yield f"{deeper}for (int four_k = 0; four_k < {LANES}; ++four_k) {{"
        self.fours = set(fours)
        yield from self.lines(s.body, len(deeper) // 4 + 1, True)
        self.fours = set()
        yield f"{deeper}}}"
        for n, b in fours.items():
            if n in written:
                yield f"{deeper}*(Four<{TYPES[b.type].cuda}>*)({name(b.same or n)} + four) = four_{n};"
        yield f"{margin}    }} else {{"
        yield f"{deeper}for ({type} {s.index} = four; {s.index} < hi; ++{s.index}) {{"
        yield from self.lines(s.body, len(deeper) // 4 + 1, True)
        yield f"{deeper}}}"
        yield f"{margin}    }}"
        yield f"{margin}}}"

    def head(self, s: For) -> str:
        """The first line of a loop."""
        self.types[s.index] = "index"
        start, stop = value_of(s.start, "index"), value_of(s.stop, "index")
        step = f"{s.index} += {s.step}"
        if s.kind == "lanes":
            start, step = "threadIdx.x", f"{s.index} += {THREADS}"
        elif s.kind == "rows" and self.by_block:
            start, step = "blockIdx.x", f"{s.index} += gridDim.x"
        elif s.kind == "rows":
            start = f"blockIdx.x * {THREADS}{self.suffix} + threadIdx.x"
            step = f"{s.index} += gridDim.x * {THREADS}{self.suffix}"
        return f"for ({self.index} {s.index} = {start}; {s.index} < {stop}; {step}) {{"

    def join(self, s: Join) -> str:
        type = TYPES[self.types[s.name]]
        return f"join_threads<{type.cuda}>({s.name}, Join_{s.op}())"

    # -- expressions ------------------------------------------------------------------------------

    def expression(self, s: Let) -> str:
        if s.type == "index":
            return INDEX[s.op].format(*(value_of(a, "index") for a in s.args))
        return expression(s, self.types)

    # -- memory -----------------------------------------------------------------------------------

    def element(self, buffer: Buffer, place: Place) -> str:
        """An element of a buffer, by its index."""
        if buffer.name in self.fours:
            return f"four_{buffer.name}.v[four_k]"
        name, last = buffer.same or buffer.name, len(self.nest.axes) - 1
        terms: list[str] = []
        by_axis: dict[int, list[str]] = {}
        for axis, index in place:
            by_axis.setdefault(axis, []).append(value_of(index, "index"))
        for axis, parts in by_axis.items():
            if axis == last and buffer.inner == "0":
                continue
            sum_ = " + ".join(parts)
            if axis < 0 or (axis == last and buffer.inner == "1"):
                terms.append(sum_)
            else:
                grouped = f"({sum_})" if len(parts) > 1 else sum_
                terms.append(f"{grouped} * {name}_stride{axis}")
        return f"{word(name)}[{' + '.join(terms) or '0'}]"

    def loaded(self, buffer: Buffer, place: Place) -> str:
        element = self.element(buffer, place)
        if computed(buffer.type) != buffer.type:
            return f"from_{buffer.type}({element})"
        return element

    def stored(self, s: Store) -> str:
        buffer = self.buffers[s.buffer]
        value = value_of(s.value, computed(buffer.type))
        if computed(buffer.type) != buffer.type:
            value = f"to_{buffer.type}({value})"
        return f"{self.element(buffer, s.place)} = {value};"

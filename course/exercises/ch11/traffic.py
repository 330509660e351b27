"""The bytes that an operation moves between memory and processor."""

import numpy as np

from course.cases import case
from course.exercises.ch11.common import array
from course.properties import agrees
from course.records import Exercise

moved = Exercise(
    "measure.traffic",
    "The bytes that an operation moves",
    chapter=11,
    minutes=25,
    prompt="""
    A processor does not read single elements. Memory is divided into **lines** of 64 bytes, and whoever
    needs one byte gets its whole line. Write `traffic(inputs, output, line=64)`: how many bytes does one
    operation move that reads `inputs`, a list, and writes the array `output`?

    * An input that is no `np.ndarray`, such as the number 2.0, moves nothing.
    * Each line that holds an element of an input is read **once**, however many elements and however
      many inputs lie in it.
    * Each line that holds an element of the output is written once. A line that is read and written
      counts twice.

    `x.__array_interface__["data"][0]` is the address `start` of an array's first element. The element
    `x[i, j]` begins at `start + i * x.strides[0] + j * x.strides[1]` and has
    `x.itemsize` bytes. Line number n has the addresses from `n * line` to `n * line + line - 1`. An
    element that begins in one line can end in the next.

    Some arrays of float32 that begin at the start of a line, and an output of their shape:

    | call | lines read | lines written | bytes |
    | --- | --- | --- | --- |
    | `x * y`, 32 elements each | 2 + 2 | 2 | 384 |
    | `x * x` | 2 | 2 | 256 |
    | `x * 2.0` | 2 | 2 | 256 |
    | `x[::4] * y[:8]`, 8 elements each | 2 + 1 | 1 | 256 |
    | `a + row`, shapes (4, 16) and (16,) | 4 + 1 | 4 | 576 |
    """,
    hints=(
        """
        Write a small function that gives the line numbers of one array, without repetitions. Then the
        inputs are a union of such sets, and both questions, how many inputs share a line and how many
        elements do, are answered at once. NumPy has `np.unique` and `np.union1d`.
        """,
        """
        All addresses of an array, one dimension after the other. For shape (2, 3), strides (80, 4) and a
        first element at 640:

        | after | addresses |
        | --- | --- |
        | the start | 640 |
        | dimension 0: + 0, + 80 | [640, 720] |
        | dimension 1: + 0, + 4, + 8 | [[640, 644, 648], [720, 724, 728]] |
        | divided by 64 | [[10, 10, 10], [11, 11, 11]] |
        | without repetitions | [10, 11] |

        `at[..., None] + stride * np.arange(size)` does one dimension. A dimension that is only spread
        has stride 0, and repeats the same addresses.
        """,
        """
        ```python
        def traffic(inputs, output, line=64):
            def lines(x):
                at = np.array(x.__array_interface__["data"][0])
                for size, stride in zip(x.shape, x.strides):
                    at = ...
                last = at + x.itemsize - 1
                return np.union1d(...)

            read = np.array([], np.int64)
            for x in inputs:
                if ...:
                    read = ...
            return ...
        ```
        """,
    ),
)


@moved.reference(stub="your code here: about 12 lines")
def traffic(inputs, output, line=64):
    """Bytes that are read and written, in whole lines."""

    def lines(x):
        at = np.array(x.__array_interface__["data"][0])
        for size, stride in zip(x.shape, x.strides):
            at = at[..., None] + stride * np.arange(size)
        last = at + x.itemsize - 1
        return np.union1d(at // line, last // line)

    read = np.array([], np.int64)
    for x in inputs:
        if isinstance(x, np.ndarray):
            read = np.union1d(read, lines(x))
    return line * (len(read) + len(lines(output)))


@moved.mutant("counts elements", why="""
    The bytes of the elements were counted. A processor reads whole lines: of `x[::16]` it uses four
    bytes in each line and moves all 64, so a step of 16 saves no traffic.
    """)
def traffic(inputs, output, line=64):
    def held(x):
        return int(np.prod([n for n, s in zip(x.shape, x.strides) if s])) * x.itemsize

    arrays = {id(x): x for x in inputs if isinstance(x, np.ndarray)}
    return sum(held(x) for x in arrays.values()) + held(output)


@moved.mutant("the size of the shapes", why="""
    Every array counted with the number of elements of its shape, `nbytes`. A row that is spread over a
    matrix has one row in memory, and is read once: its other rows have the same addresses.
    """)
def traffic(inputs, output, line=64):
    arrays = {id(x): x for x in inputs if isinstance(x, np.ndarray)}
    return sum(-(-x.nbytes // line) * line for x in [*arrays.values(), output])


moved.changed(
    "counts the same memory again",
    """
    A line that two inputs share was counted for each of them. In `x * x`, and in `x[1:] - x[:-1]`, the
    second reader finds it in the processor already. Take the union of the lines.
    """,
    ("    read = np.array([], np.int64)\n", "    read = []\n"),
    ("read = np.union1d(read, lines(x))", "read = [*read, *lines(x)]"),
)

moved.changed(
    "forgets what is written",
    """
    Only the inputs were counted. The result has to go back to memory, and takes as much of the time as
    an input.
    """,
    ("line * (len(read) + len(lines(output)))", "line * len(read)"),
)

moved.changed(
    "writing in place is free",
    """
    The output's lines were put into one set with those of the inputs. In `x *= 2` each line goes through
    memory twice: it is read, and later it is written back.
    """,
    ("line * (len(read) + len(lines(output)))", "line * len(np.union1d(read, lines(output)))"),
)

moved.changed(
    "everything between the first and the last element",
    """
    All lines from the first to the last were counted. With large steps there are lines between them
    that hold no element, and nobody reads them.
    """,
    ("        return np.union1d(at // line, last // line)",
     "        if not at.size:\n            return []\n"
     "        return np.arange(at.min() // line, last.max() // line + 1)"),
)

moved.changed(
    "elements that end in the next line",
    """
    Only the line in which an element begins was counted. In an array whose elements do not begin at
    multiples of their size, an element can reach into the next line.
    """,
    ("        last = at + x.itemsize - 1\n        return np.union1d(at // line, last // line)",
     "        return np.unique(at // line)"),
)

moved.changed(
    "numbers lie in memory too",
    """
    A Python number was counted like an array. It is in a register of the processor all the time.
    """,
    ("        if isinstance(x, np.ndarray):\n            read = np.union1d(read, lines(x))",
     "        read = np.union1d(read, lines(np.asarray(x)))"),
)


@moved.check("contiguous arrays")
def _(f):
    x, y, out = (array((32,)) for _ in range(3))
    yield case("x * y, 32 elements of float32 each", lambda: f([x, y], out)).gives(384)
    yield case("x * 2.0", lambda: f([x, 2.0], out)).gives(256)
    yield case("zeros: no input", lambda: f([], out)).gives(128)
    yield case("8 elements of float64", lambda: f([array((8,), np.float64)], array((8,), np.float64))
               ).gives(128)


@moved.check("memory that is shared")
def _(f):
    x, out = array((32,)), array((32,))
    yield case("x * x", lambda: f([x, x], out)).gives(256)
    yield case("x *= 2.0, in place", lambda: f([x, 2.0], x)).gives(256)
    yield case("x[1:] - x[:-1]", lambda: f([x[1:], x[:-1]], out[:31])).gives(256)


@moved.check("strides")
def _(f):
    x, y = array((512,)), array((512,))
    out = array((512,))
    for step in (2, 4, 16, 64):
        n = 512 // step
        lines = {2: 32, 4: 32, 16: 32, 64: 8}[step] + -(-n // 16)
        yield case(f"x[::{step}] * 2.0, of 512 elements", lambda s=step, n=n: f([x[::s], 2.0], out[:n])
                   ).gives(64 * lines)
    yield case("x[::-1] + y", lambda: f([x[::-1], y], out)).gives(64 * 96)
    a, row = array((4, 16)), array((16,))
    yield case("a + row, shapes (4, 16) and (16,)",
               lambda: f([a, np.broadcast_to(row, (4, 16))], array((4, 16)))).gives(576)
    yield case("a.T * 1.0", lambda: f([a.T, 1.0], array((16, 4)))).gives(512)
    yield case("a[:, 3] * 1.0", lambda: f([a[:, 3], 1.0], array((4,)))).gives(320)


@moved.check("odd places", hidden=True)
def _(f):
    x = array((4,), np.float32, offset=50)
    yield case("an output of 4 elements of which the last one begins 2 bytes before the end of a line",
               lambda: f([], x)).gives(128)
    yield case("no elements", lambda: f([array((0,))], array((0,)))).gives(0)
    yield case("one element without a dimension", lambda: f([array(())], array(()))).gives(128)
    yield case("8 elements, lines of 16 bytes", lambda: f([], array((8,)), 16)).gives(32)


def _cut(draw, x):
    """A part of an array: some rows, with steps, perhaps transposed or spread."""
    steps = [slice(draw.randint(0, 2), None, draw.choice((1, 2, 3, -1))) for _ in x.shape]
    part = x[tuple(steps)]
    if draw.random() < 0.3:
        part = part.T
    if draw.random() < 0.3:
        part = np.broadcast_to(part[:1], part.shape)
    return part


@moved.check("any arrays")
def _(f):
    def drawn(draw):
        dtype = draw.choice((np.float32, np.float64, np.uint8))
        whole = array((draw.randint(1, 12), draw.randint(1, 40)), dtype,
                      draw.choice((0, 0, 4, 24, 58)) if dtype != np.uint8 else 3)
        inputs = [_cut(draw, whole) for _ in range(draw.randint(0, 2))]
        return [*inputs, 2.0][: draw.randint(0, 3)], array(inputs[0].shape if inputs else (3,), dtype)

    def tell(inputs, output):
        said = [f"{x.dtype}, shape {x.shape}, strides {x.strides}"
                if isinstance(x, np.ndarray) else str(x) for x in inputs]
        return "inputs that are parts of one array: " + ("; ".join(said) or "none")

    yield agrees(f, moved.answer.value, drawn, tell=tell)

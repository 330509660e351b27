"""Pools over images, forward and backward, by vectors of channels or of neighbouring windows.

All four kernels are one loop nest over pixels of the result. For each of them a range of lines and
one of columns of the source is gone over, and the channels are combined:

    max            the largest, and where it is
    most           the largest alone
    max backward   the source are the pooled pixels: the gradients of those whose place is this one
    mean           the sum, times a factor for each pixel of the result
    mean backward  the sum of the pooled gradients, each times its factor

So nothing is added at scattered places, and the result is written once. In images in plain order
windows that are at most four elements apart are pooled along lines, a vector of them at a time: a
wide vector has one element of each, every second or third one. Other planes are transposed, a few
at a time, so that they lie last. Gradients of maxima in plain order are put at their places.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Shape, Sizes, Value
from toytorch.kernels.chain import Chain, Lies, Step
from toytorch.kernels.image_steps import pack, unpack
from toytorch.kernels.memory_format import channels_last, chunk_of, empty_images, in_order, plain
from toytorch.kernels.windows import put_at_places
from toytorch.loops import processor
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Native

WORDS = (
    "images", "lines", "columns", "channels", "source lines", "source columns", "down", "along",
    "first whole", "end whole", "lines seen", "seen", "source", "places", "made", "factor",
)  # fmt: skip
ARRAYS = 6  # the last words: where they begin
Whole = tuple[int, int, int]  # see whole_windows
ANY: Whole = (0, 0, 0)
FEW = 1 << 13  # numbers of images, below which planes are not transposed


class Pool(Native, family="pool"):
    """LLVM for a pool; the range is the lines of the result, of all images.

    By hand: a program's reductions go over whole dimensions, and a window's end depends on where it
    is.
    """

    def __init__(self, name: str, kind: str, rule: str, lanes: int, stride: int) -> None:
        super().__init__(name, kind, WORDS)
        self.lines, self.columns = self.array("lines seen", "word"), self.array("seen", "word")
        self.places = self.array("places", "word")
        self.source, self.made, self.factor = (self.array(n) for n in ("source", "made", "factor"))
        self.rule, self.stride, self.most = rule, stride, lanes
        self.widen(lanes)
        self.loop(self.lo, self.hi, 1, self.line)

    def widen(self, lanes: int) -> None:
        """So many lanes from here on."""
        self.lanes = lanes
        self.vector, self.short, self.long = (
            self.ir.VectorType(type, lanes) for type in (self.real, self.half, self.word)
        )

    def line(self, i: Value) -> None:
        """All pixels of one line of the result."""
        b, word = self.b, self.word_of
        n, y = b.udiv(i, word["lines"]), b.urem(i, word["lines"])
        down = self.range(self.lines, y)

        def pixel(x: Value) -> None:
            along = self.range(self.columns, x)
            self.count(word["channels"], lambda c: self.pixel(n, y, x, c, down, along), self.lanes)

        def pixels(x: Value) -> None:
            x = self.smaller(x, b.sub(end, self.word(self.lanes)))
            self.pixel(n, y, x, self.word(0), down, self.range(self.columns, x))

        if not self.stride:
            self.count(word["columns"], pixel)
            return
        first, end = word["first whole"], word["end whole"]
        self.loop(first, end, self.most, pixels)
        self.widen(1)
        self.loop(0, first, 1, pixel)
        self.loop(end, word["columns"], 1, pixel)
        self.widen(self.most)

    def range(self, table: Value, i: Value) -> list[Any]:
        """Start and end of a range of the source."""
        first = self.b.mul(i, self.word(2))
        return [self.get(table, self.b.add(first, self.word(k))) for k in (0, 1)]

    def pixel(
        self,
        n: Value,
        y: Value,
        x: Value,
        c: Value,
        lines: Sequence[Value],
        columns: Sequence[Value],
    ) -> None:
        """Some channels of one pixel of the result, from ranges of lines and columns."""
        b, word = self.b, self.word_of
        if not self.stride:
            c = self.smaller(c, b.sub(word["channels"], self.word(self.lanes)))
        own = b.add(b.mul(y, word["columns"]), x)
        image = b.mul(n, word["source lines"])

        def down(i: Value, *values: Value) -> list[Any]:
            line = b.mul(b.add(image, i), word["source columns"])

            def along(j: Value, *values: Value) -> list[Any]:
                place = b.add(b.mul(b.add(line, j), word["channels"]), c)
                here = b.add(b.mul(i, word["source columns"]), j)
                return self.combine(place, here, own, *values)

            return self.loop(columns[0], columns[1], word["along"], along, values)

        zero = self.ir.Constant(self.vector, [0.0] * self.lanes)
        start = [zero]
        if self.rule in ("max", "most"):
            first = b.add(b.mul(lines[0], word["source columns"]), columns[0])
            start = [
                self.ir.Constant(self.vector, [float("-inf")] * self.lanes),
                self.index_of(first),
            ]
        start = start[:1] if self.rule == "most" else start
        values = self.loop(lines[0], lines[1], word["down"], down, start)
        pixels = b.mul(word["lines"], word["columns"])
        self.finish(b.add(b.mul(b.add(b.mul(n, pixels), own), word["channels"]), c), own, values)

    def index_of(self, i: Value) -> Any:
        """An index in all places of a vector, or that of each of neighbouring windows."""
        index = self.spread(self.b.trunc(i, self.half), self.short)
        return self.b.add(index, self.ir.Constant(self.short, self.steps()))

    def scale(self, i: Value) -> Any:
        if self.stride:
            return self.read(self.factor, i, self.vector)
        return self.spread(self.b.load(self.b.gep(self.factor, [i])), self.vector)

    def seen(self, place: Value) -> Any:
        """Elements of the source: of channels, or at the same place of neighbouring windows."""
        if not self.stride or self.lanes == 1:
            return self.read(self.source, place, self.vector)
        wide = self.read(self.source, place, self.ir.VectorType(self.real, self.most * self.stride))
        return self.b.shuffle_vector(wide, wide, self.ir.Constant(self.short, self.steps()))

    def steps(self) -> list[int]:
        return [k * self.stride for k in range(self.lanes)]

    def combine(
        self, place: Value, here: Value, own: Value, best: Value, which: Value | None = None
    ) -> list[Any]:
        """The values with those of one pixel of the source."""
        b = self.b
        x = self.seen(place)
        if self.rule in ("max", "most"):  # the first of equal ones; of several NaNs the last
            wins = b.or_(b.fcmp_ordered(">", x, best), b.fcmp_unordered("uno", x, x))
            best = b.select(wins, x, best)
            return [best] if which is None else [best, b.select(wins, self.index_of(here), which)]
        if self.rule == "max backward":
            places = self.load(self.places, place, self.long, 8)
            mine = b.icmp_signed("==", places, self.spread(own, self.long))
            x = b.select(mine, x, self.ir.Constant(self.vector, [0.0] * self.lanes))
        elif self.rule == "mean backward":
            x = b.fmul(x, self.scale(here))
        return [b.fadd(best, x)]

    def finish(self, place: Value, own: Value, values: Sequence[Value]) -> None:
        b, value = self.b, values[0]
        if self.rule == "mean":
            value = b.fmul(value, self.scale(own))
        self.write(value, self.made, place)
        if self.rule == "max":
            self.store(b.sext(values[1], self.long), self.places, place, 8)


# -- from images to the kernel --------------------------------------------------------------------


def fits(a: Any) -> bool:
    """Whether images are of a type that is compiled."""
    return (
        a.__class__ is np.ndarray
        and a.dtype.char in "fd"
        and a.ndim in (3, 4)
        and a.size > 0
        and jit.works()
    )


def pooled(
    rule: str,
    ranges: tuple[Array, Array],
    steps: Shape,
    source: Any,
    places: Any,
    made: Any,
    last: bool,
    factor: Any = None,
    whole: Whole = ANY,
) -> None:
    """Writes what the kernel of a rule makes of images. All have one order of memory, that with
    channels `last` or the plain one; `places` and `factor` may be None.

    Planes in plain order are transposed, so that vectors go over many at once. Where there are few
    numbers that takes longer than it saves, and they are taken as images of one channel."""
    found = {"source": source, "places": places, "made": made, "factor": factor}
    arrays = dict(zip(("lines seen", "seen"), ranges))
    arrays |= {name: v for name, v in found.items() if v is not None}
    seen = source.shape[-2:], made.shape[-2:], tuple(steps)
    planes = math.prod(made.shape[:-2])
    if last or whole[0] or planes < 8 or source.size + made.size < FEW:
        images = made.shape[:2] if last else (planes, 1)
        at_once(rule, made.dtype.char, images, *seen, tuple(arrays), whole)(*arrays.values())
    else:
        by_planes(rule, made.dtype.char, planes, *seen)(**arrays)


@functools.lru_cache(256)
def at_once(
    rule: str,
    kind: str,
    images: tuple[int, int],
    source: tuple[int, int],
    made: tuple[int, int],
    steps: Sizes,
    names: tuple[str, ...],
    whole: Whole = ANY,
) -> ArrayCall:
    """The kernel over images that lie as it goes over them."""
    step = step_of(rule, kind, images, source, made, steps, {name: name for name in names}, whole)
    return ArrayCall(
        step.kernel, step.words, [word for word, *_ in step.places], step.total, step.work
    )


def step_of(
    rule: str,
    kind: str,
    images: tuple[int, int],
    source: Sequence[int],
    made: Sequence[int],
    steps: Shape,
    names: dict[str, str],
    whole: Whole = ANY,
) -> Step:
    """The kernel over (N, C) images of these sizes, with the names of its arrays."""
    n, c = images
    item = np.dtype(kind).itemsize
    wide = 16 if processor.this().vector >= 32 and item == 4 else 8
    stride, first, end = whole
    lanes = next(k for k in (wide, 8, 4, 1) if k <= max(c, end - first))
    words = (n, *made, c, *source, *steps, first, end, *(0,) * ARRAYS)
    assert len(words) == len(WORDS)
    work = n * c * max(math.prod(source), math.prod(made)) * 2 * jit.TRAFFIC
    places = tuple((WORDS.index(word), name, 0) for word, name in names.items())
    return Step(Pool.kernel(kind, rule, lanes, stride), words, places, n * made[0], work)


@functools.lru_cache(256)
def by_planes(
    rule: str, kind: str, planes: int, source: tuple[int, int], made: tuple[int, int], steps: Sizes
) -> Chain:
    """The kernel over planes, one after the other in memory, of which some are transposed at a time."""
    item, area = np.dtype(kind).itemsize, max(math.prod(source), math.prod(made))
    most = max(16, chunk_of(2 * area, item))
    # As many as there is room for, in whole vectors if that can be. All turns have the same number.
    fitting = [k for k in range(8, min(planes, most) + 1) if planes % k == 0] or [planes]
    each = max(fitting, key=lambda k: (k % 16 == 0, k))
    sides = {
        "source": (source, item, True),
        "places": (source, 8, True) if rule == "max backward" else (made, 8, False),
        "made": (made, item, False),
    }
    if "max" not in rule:
        del sides["places"]
    names = {"lines seen": "lines seen", "seen": "seen"}
    arrays, scratch, before, after = {name: Lies() for name in names}, {}, [], []
    if "mean" in rule:
        names["factor"] = "factor"
        arrays["factor"] = Lies()
    for name, (size, bytes, read) in sides.items():
        lines, unit = f"lines of {name}", (1, each, *size)
        names[name], arrays[name] = lines, Lies(math.prod(unit) * bytes)
        scratch[lines] = math.prod(unit) * bytes
        if read:
            before.append(pack(name, unit, False, bytes, lines, size[1], 0, each))
        else:
            after.append(unpack(lines, unit, False, bytes, name, each))
    step = step_of(rule, kind, (1, each), source, made, steps, names)
    return Chain([*before, step, *after], arrays, scratch, planes // each)


# -- the pools ------------------------------------------------------------------------------------


@functools.lru_cache(256)
def windows(
    sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes
) -> tuple[Array, Array]:
    """For each dimension (start, end) of what every window sees, inside the image."""
    made = []
    for n, k, s, p, d, o in zip(sizes, kernel, stride, padding, dilation, out):
        start = np.arange(o) * s - p
        end = np.minimum(start + d * (k - 1) + 1, n)
        start = np.where(start < 0, start + -(start // d) * d, start)
        made.append(np.ascontiguousarray(np.stack([start, end], 1), np.int64))
    return made[0], made[1]


@functools.lru_cache(256)
def whole_windows(*sizes: Sizes) -> Whole:
    """(stride, first, end) of the windows along a line that lie inside, with as many elements after
    them as vectors read; ANY where steps are long, or there are few. `sizes` as of `windows`."""
    n, k, s, p, d, o = (each[-1] for each in sizes)
    first, end = -(-p // s), min(o, (n + p - d * (k - 1)) // s)
    return (s, first, end) if s <= 4 and end - first >= 4 else ANY


def bins(sizes: Sizes, out: Sizes) -> tuple[Array, Array]:
    """The same of bins that are as even as can be."""
    made = []
    for n, o in zip(sizes, out):
        i = np.arange(o)
        made.append(np.stack([i * n // o, -(-(i + 1) * n // o)], 1))
    return made[0], made[1]


@functools.lru_cache(256)
def coverings(
    sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes
) -> tuple[Array, Array]:
    """For each dimension (start, end) of the windows that may see every element."""
    made = []
    for n, k, s, p, d, o in zip(sizes, kernel, stride, padding, dilation, out):
        place = np.arange(n) + p
        start = -(-(place - d * (k - 1)) // s)
        made.append(
            np.stack([np.clip(start, 0, o), np.clip(place // s + 1, 0, o)], 1).astype(np.int64)
        )
    return made[0], made[1]


def max_pool(
    a: Any,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    out: Shape,
    placed: bool = True,
) -> Any:
    """(maxima, their places in the flattened image) of windows, or None; no places if not `placed`."""
    if not fits(a):
        return None
    last, shape = channels_last(a), (*a.shape[:-2], *out)
    values = images(shape, a.dtype, last)
    places = images(shape, np.int64, last) if placed else None
    how = [tuple(v) for v in (kernel, stride, padding, dilation, out)]
    ranges = windows(a.shape[-2:], *how)
    whole = ANY if last else whole_windows(a.shape, *how)
    rule = "max" if placed else "most"
    pooled(rule, ranges, dilation, plain(a), places, values, last, None, whole)
    return values, places


def few(
    rule: str,
    shape: Sizes,
    kind: str,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    out: Sizes,
    factor: Any = None,
) -> Any:
    """What pools images of a shape, of few numbers in rows, at once: a function of the array; None
    where there is none. The rule is "max" or "mean"."""
    planes, made = math.prod(shape[:-2]), (*shape[:-2], *out)
    numbers = math.prod(shape) + math.prod(made)
    if kind not in "fd" or len(shape) not in (3, 4) or 0 in made or 0 in shape or not jit.works():
        return None
    if planes >= 8 and numbers >= FEW:
        return None
    how = tuple(kernel), tuple(stride), tuple(padding), tuple(dilation)
    lines, seen = windows(shape[-2:], *how, out) if kernel else bins(shape[-2:], out)
    whole = whole_windows(shape, *how, out) if kernel else ANY
    names = ("lines seen", "seen", "source", *(("places",) if rule == "max" else ()), "made")
    names = names if factor is None else (*names, "factor")
    call = at_once(rule, kind, (planes, 1), shape[-2:], out, tuple(dilation), names, whole).quick
    if rule == "mean":
        factor = np.ascontiguousarray(factor, kind)

        def means(a: Array) -> Any:
            values = np.empty(made, kind)
            call(lines, seen, a, values, factor)
            return values

        return means

    def maxima(a: Array) -> Any:
        values, places = np.empty(made, kind), np.empty(made, np.int64)
        call(lines, seen, a, places, values)
        return values, places

    return maxima


def images(shape: Shape, kind: Any, last: bool) -> Any:
    return empty_images(shape, kind, True) if last else np.empty(shape, kind)


def max_pool_backward(
    g: Array,
    places: Array,
    sizes: Sizes,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
) -> Any:
    """The gradient of the image, or None."""
    if not (fits(g) and places.dtype == np.int64):
        return None
    last = channels_last(places)
    found = None if last else put_at_places(g, places, sizes)
    if found is not None:
        return found
    made = images((*g.shape[:-2], *sizes), g.dtype, last)
    ranges = coverings(*map(tuple, (sizes, kernel, stride, padding, dilation, g.shape[-2:])))
    pooled("max backward", ranges, (1, 1), in_order(g, last), in_order(places, last), made, last)
    return made


def mean_pool(a: Any, kernel: Shape, stride: Shape, padding: Shape, out: Shape, factor: Any) -> Any:
    """The sums of windows times their factors (H', W'), or None."""
    if not fits(a):
        return None
    last = channels_last(a)
    made = images((*a.shape[:-2], *out), a.dtype, last)
    how = [tuple(v) for v in (kernel, stride, padding, (1, 1), out)]
    ranges = windows(a.shape[-2:], *how)
    whole = ANY if last else whole_windows(a.shape, *how)
    factor = np.ascontiguousarray(factor, a.dtype)
    pooled("mean", ranges, (1, 1), plain(a), None, made, last, factor, whole)
    return made


def mean_pool_backward(
    g: Array, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, factor: Any
) -> Any:
    """The gradient of the image, or None."""
    if not fits(g):
        return None
    last = channels_last(g)
    made = images((*g.shape[:-2], *sizes), g.dtype, last)
    ranges = coverings(*map(tuple, (sizes, kernel, stride, padding, (1, 1), g.shape[-2:])))
    factor = np.ascontiguousarray(factor, g.dtype)
    pooled("mean backward", ranges, (1, 1), plain(g), None, made, last, factor)
    return made

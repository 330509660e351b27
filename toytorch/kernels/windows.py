"""Pools whose windows are told by a table, so that these may be of any kind: dilated, adaptive, random.

Images are volumes of depth 1. For each place of the result along each dimension the table has three
words: where the window begins, where it ends, and by what a mean over it divides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes, Value
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.native import Native

SIZES = ("depth", "height", "width")
WORDS = (*SIZES, *(f"{what} {d}" for what in ("out", "step") for d in SIZES), "apart")
ARRAYS = ("table", "a", "made", "which")


def largest_of_windows(a: Array, table: Array, out: Sizes, steps: Sizes) -> Any:
    """The largest elements of windows of a (…, *sizes), and where each is in its volume; or None.

    table  of all windows, or (planes, words) where each plane has its own
    """
    made = new(a, len(out), out)
    if made is None:
        return None
    which = np.empty(made.shape, np.int64)
    call("largest", a, table, a.shape[-len(out) :], out, steps, made, which)
    return made, which


def mean_of_windows(a: Array, table: Array, out: Sizes, steps: Sizes) -> Any:
    """The means of windows of a (…, *sizes), or None."""
    made = new(a, len(out), out)
    if made is not None:
        call("means", a, table, a.shape[-len(out) :], out, steps, made)
    return made


def mean_of_windows_backward(g: Array, table: Array, sizes: Sizes, steps: Sizes) -> Any:
    """The gradient of what means were taken of, or None."""
    g = np.ascontiguousarray(g)  # that of a sum is one number
    made = new(g, len(sizes), sizes)
    if made is not None:
        made[...] = 0
        call("shared", g, table, sizes, g.shape[-len(sizes) :], steps, made)
    return made


def put_at_places(g: Array, which: Array, sizes: Sizes) -> Any:
    """g added at places of volumes of zeros, or None."""
    g = np.ascontiguousarray(g)
    made = new(g, len(sizes), sizes)
    if made is None or not which.flags.c_contiguous or which.dtype != np.int64:
        return None
    made[...] = 0
    n, count, inside = len(sizes), math.prod(g.shape[-len(sizes) :]), math.prod(sizes)
    if which.size and not (which.min() >= 0 and which.max() < inside):
        return None  # NumPy says what is wrong
    steps = (1,) * n
    call("placed", g, which.reshape(-1, count), sizes, g.shape[-n:], steps, made, which)
    return made


def new(a: Array, n: int, sizes: Sizes) -> Any:
    """Memory for a result; None where the kernels do not serve."""
    if a.dtype.char not in "fd" or not a.flags.c_contiguous or not a.size or not jit.pays(a.size):
        return None
    return np.empty((*a.shape[:-n], *sizes), a.dtype)


def call(
    rule: str,
    a: Array,
    table: Array,
    sizes: Sizes,
    out: Sizes,
    steps: Sizes,
    made: Array,
    which: Array | None = None,
) -> None:
    """Runs a kernel over all planes."""
    ahead = (1,) * (3 - len(sizes))
    planes = math.prod(a.shape[: -len(sizes)])
    apart = table.shape[-1] if table.ndim > 1 else 0
    arrays = table, a, made, made if which is None else which
    words = *ahead, *sizes, *ahead, *out, *ahead, *steps, apart, *map(jit.address_of, arrays)
    Pool.kernel(rule, a.dtype.char)(planes, 4 * max(a.size, made.size), *words)


class Pool(Native, family="windows"):
    """LLVM for one of these rules, over planes of the range."""

    def __init__(self, name: str, rule: str, kind: str) -> None:
        super().__init__(name, kind, (*WORDS, *ARRAYS))
        b, self.rule = self.b, rule
        self.sizes = [self.word_of[d] for d in SIZES]
        self.out = [self.word_of[f"out {d}"] for d in SIZES]
        self.steps = [self.word_of[f"step {d}"] for d in SIZES]
        whole, made = (b.mul(b.mul(x, y), z) for x, y, z in (self.sizes, self.out))
        back = rule in ("shared", "placed")

        def plane(p: Value) -> None:
            read, written = (made, whole) if back else (whole, made)
            self.a = b.gep(self.array("a"), [b.mul(p, read)])
            self.made = b.gep(self.array("made"), [b.mul(p, written)])
            self.which = b.gep(self.array("which", "word"), [b.mul(p, made)])
            self.table = b.gep(self.array("table", "word"), [b.mul(p, self.word_of["apart"])])
            if rule == "placed":
                self.count(
                    made, lambda k: self.add_to(self.get(self.which, k), self.get(self.a, k))
                )
            else:
                self.over_windows(0, self.word(0), self.word(0), [], [])

        self.loop(self.lo, self.hi, 1, plane)

    def add_to(self, place: Value, value: Value) -> None:
        self.put(self.made, place, self.b.fadd(self.get(self.made, place), value))

    def over_windows(
        self, d: int, at: Value, words: Value, spans: list[Any], counts: list[Any]
    ) -> None:
        """What is done for each place of the result; `at` is its number so far, and `words` where the
        table of this dimension begins."""
        if d == 3:
            self.window(at, spans, counts)
            return
        b = self.b
        after = b.add(words, b.mul(self.out[d], self.word(3)))

        def place(k: Value) -> None:
            entry = b.add(words, b.mul(k, self.word(3)))
            first, end, count = (self.get(self.table, b.add(entry, self.word(i))) for i in range(3))
            here = b.add(b.mul(at, self.out[d]), k)
            self.over_windows(d + 1, here, after, [*spans, (first, end)], [*counts, count])

        self.count(self.out[d], place)

    def window(self, at: Value, spans: list[Any], counts: list[Any]) -> None:
        """The window of one place of the result."""
        b = self.b
        if self.rule == "largest":
            corner = self.word(0)
            for (first, _), size in zip(spans, self.sizes):
                corner = b.add(b.mul(corner, size), first)
            found = self.inside(spans, self.compared, [self.real(-math.inf), corner, self.word(-1)])
            where = b.select(b.icmp_signed("<", found[2], self.word(0)), found[1], found[2])
            self.put(self.made, at, self.get(self.a, where))
            self.put(self.which, at, where)
            return
        count = b.sitofp(b.mul(b.mul(counts[0], counts[1]), counts[2]), self.real)
        if self.rule == "means":
            (total,) = self.inside(spans, self.added, [self.real(0.0)])
            self.put(self.made, at, b.fdiv(total, count))
        else:
            share = b.fdiv(self.get(self.a, at), count)
            self.inside(spans, lambda place: self.add_to(place, share), [])

    def added(self, place: Value, total: Value) -> list[Any]:
        return [self.b.fadd(total, self.get(self.a, place), flags=["reassoc"])]

    def compared(self, place: Value, best: Value, where: Value, unknown: Value) -> list[Any]:
        """The larger one of the best so far and an element, its place, and the last NaN's place, which is
        the largest of all: beside, so that one element waits for the one before just for a maximum."""
        b, x = self.b, self.get(self.a, place)
        better, none = b.fcmp_ordered(">", x, best), b.fcmp_unordered("uno", x, x)
        pairs = ((better, x, best), (better, place, where), (none, place, unknown))
        return [b.select(*pair) for pair in pairs]

    def inside(
        self,
        spans: list[Any],
        body: Callable[..., Any],
        carried: list[Any],
        d: int = 0,
        row: Any = 0,
    ) -> list[Any]:
        """A loop over the elements of a window, each by its place in the volume."""
        b, (first, end) = self.b, spans[d]

        def element(k: Value, *held: Value) -> Any:
            place = b.add(b.mul(self.index(row), self.sizes[d]), k)
            if d == 2:
                return body(place, *held)
            return self.inside(spans, body, list(held), d + 1, place)

        step = self.steps[d] if self.rule == "largest" else 1
        return self.loop(first, end, step, element, carried)

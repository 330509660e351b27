"""Products of matrices by the register tiles of convolutions, where these are faster than BLAS.

BLAS packs both factors at every call, which pays for large ones. A tile reads one factor, A,
element by element as it lies, in any order; of the other, B, it reads rows. So only a factor whose
columns are what lies side by side (the weight of a linear layer) is packed, and where the other is
the smaller one, the product is computed transposed, so that this is packed instead.

Small products need little packing or none, since B or its panels stay in the first-level cache. With
registers of 256 bits they are faster than BLAS, whose kernels without packing are for newer processors
(96 x 96 float32 on a Zen 3: 21 µs against 42).

OpenBLAS has no kernels for processors that are newer than it, and takes those of older ones: 0.3.31
uses vectors of 256 bits on a Zen 5, whose own have 512. There tiles do products of any size, in half
of its time (512 x 512 float32: 1.1 ms against 2.2): both factors are packed, and blocks of rows of A
that stay in the second-level cache go past one panel of B after the other.

Every element is one sum from the first to the last term: results do not depend on threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes
from toytorch.kernels import blas_product, copy
from toytorch.kernels.conv_tile import TILES, WORDS, rows, table, tile
from toytorch.kernels.memory_format import WORDS as TURNING
from toytorch.kernels.memory_format import transposition
from toytorch.loops import processor
from toytorch.loops.llvm.builder import BLOCK
from toytorch.loops.processor import LINE
from toytorch.loops.runtime import blas, jit
from toytorch.loops.runtime.array_call import ArrayCall

VECTORS = 2  # in a row of a register tile
LEAST = 8  # rows of A; a tile of fewer waits for its sums
LONGEST = 4096  # terms of a sum, from which sums by parts, as BLAS has them, are more exact
PART = 512  # terms of such a part
# Multiplications: with fewer, NumPy's call takes less time than these; with more, packing both
# factors costs BLAS little. Layers pack less than BLAS, and have no upper limit but their memory.
FEWEST, MOST = 1 << 20, 1 << 25
FEWEST_OF_LAYERS = 1 << 17
FEWEST_OF_STACKS = 1 << 19
FEWEST_OF_SMALL, MOST_OF_SMALL = 1 << 16, 1 << 26
ROWS_OF_SMALL = 96  # of A, from which packing B pays
HIGH = 256  # rows of A that should go past one panel of B after the other, at least
BLOCKS = 4  # of such rows, so that threads can share them
ROUNDS = 2  # times that a factor may be read from the second-level cache's lower half
PAGE = 4096  # bytes; lines so far apart share a place in the first-level cache
Product = Callable[[Array, Array], Array]
ADDRESSES = tuple(WORDS.index(w) for w in ("A", "B", "C", "start"))


def wide(kind: str) -> int:
    """The columns of a tile."""
    return VECTORS * processor.this().lanes(kind)


@functools.cache
def beats_blas() -> bool:
    """Whether BLAS's kernels use narrower vectors than this processor has."""
    return blas.vector() < processor.this().vector


@functools.cache
def fewest() -> int:
    """Multiplications, from which tiles are asked for a product of two matrices."""
    if processor.this().vector == 32:
        return FEWEST_OF_SMALL
    return FEWEST_OF_LAYERS if beats_blas() else FEWEST


@functools.cache
def tiles() -> bool:
    """Whether tiles do any products of two matrices that lie in rows."""
    return beats_blas() or processor.this().vector >= 64


def multiply(a: Array, b: Array) -> Any:
    """A·B of two matrices of one real type; None where BLAS should do it.

    B may be a weight, transposed: then this is a layer without a bias, see `linear`. For others,
    tiles take 0.6 to 0.98 of BLAS's time with registers of 512 bits; with fewer bits see `small`.

    >>> a, b = np.ones((128, 96), "float32"), np.ones((96, 128), "float32")
    >>> made = multiply(a, b)
    >>> made is None or float(made.sum()) == 128 * 96 * 128
    True
    """
    (m, k), (_, n), kind = a.shape, b.shape, a.dtype.char
    any_size = beats_blas()
    if k > LONGEST and any_size:
        return in_parts(a, b)
    if b.strides[0] == b.itemsize != b.strides[1]:
        if any_size and m * n * k >= FEWEST_OF_LAYERS:
            a = copy.in_rows(a)
        return linear(a, b.T, zeros(n, b.dtype))
    if (
        m * n * k < fewest()
        or kind not in "fd"
        or min(m, n, k) < BLOCK
        or k > LONGEST
        or b.strides[1] != b.itemsize
        or not jit.works()
    ):
        return None
    if processor.this().vector < 64:
        return small(a, b)
    in_place = b.strides[0] % PAGE != 0
    if a.strides[1] > a.itemsize and (a.strides[1] % PAGE == 0 or k > 256):
        if not any_size:
            return None
        a = apart(a)
    if not any_size and (m * n * k > MOST or not in_place):
        return None
    calls = plan(kind, m, n, k, a.strides, b.strides, in_place)
    if calls is None:
        return None
    made = np.empty((m, n), a.dtype)
    run(calls, a, b, made, zeros(n, a.dtype))
    return made


def small(a: Array, b: Array) -> Any:
    """A·B of two small matrices by tiles of 256 bits; None where BLAS is faster.

    >>> made = small(np.ones((64, 64), "f"), np.ones((64, 64), "f"))
    >>> made is None or float(made[3, 4])
    64.0
    """
    of_small = product_of_small(a.dtype, a.shape, b.shape, a.strides, b.strides)
    return of_small and of_small(a, b)


@functools.lru_cache(1024)
def product_of_rows(kind: np.dtype, x: Sizes, y: Sizes) -> Product | None:
    """`product_of_small` for matrices that lie in rows without gaps."""
    a, b = (kind.itemsize * x[1], kind.itemsize), (kind.itemsize * y[1], kind.itemsize)
    return product_of_small(kind, x, y, a, b)


@functools.lru_cache(1024)
def product_of_small(
    kind: np.dtype, x: Sizes, y: Sizes, a: tuple[int, int], b: tuple[int, int]
) -> Product | None:
    """The product of matrices of these shapes and strides in bytes by tiles; None where BLAS is faster.

    Measured on a Zen 3 for sizes of 16 to 1024, against OpenBLAS's kernels for Haswell: a factor B that stays
    in the first-level cache is read as it lies, 0.82 to 0.92 of BLAS's time; a larger one is packed, which
    takes 0.89 to 0.97 where A has rows enough. A in columns, or a last panel that overlaps, loses.
    """
    (m, _), (k, n), item, here = x, y, kind.itemsize, processor.this()
    lines = b[0] * k < here.l1
    if (
        not jit.works()
        or here.vector != 32
        or not FEWEST_OF_SMALL <= m * k * n <= MOST_OF_SMALL
        or b[1] != item
        or b[0] % PAGE == 0
        or n % wide(kind.char)
        or not (lines or (m >= ROWS_OF_SMALL and a[1] == item))
    ):
        return None
    calls = plan(kind.char, m, n, k, a, b, lines)
    if calls is None:
        return None
    shape, start = (m, n), zeros(n, kind)
    packing, _, (call, *others) = calls

    def product(x: Array, y: Array) -> Array:
        made = np.empty(shape, kind)
        if packing or others:
            run(calls, x, y, made, start)
        else:  # the usual case
            call(x, y, made, start)
        return made

    return product


def in_parts(a: Array, b: Array) -> Any:
    """`multiply` for long sums, which are added up from shorter ones of even lengths."""
    k, made = len(b), None
    count = -(-k // PART)
    ends = [k * i // count for i in range(count + 1)]
    for first, end in zip(ends, ends[1:]):
        rows = b[first:end]
        if rows.strides[0] == rows.itemsize:  # a layer reads its weight as a whole array
            rows = np.ascontiguousarray(rows.T).T
        part = multiply(a[:, first:end], rows)
        if part is None:
            return None
        made = part if made is None else np.add(made, part, made)
    return made


def apart(a: Array) -> Array:
    """A copy of a matrix in rows, which lie in different places of the first-level cache."""
    m, k = a.shape
    made = np.empty((m, k + LINE // a.itemsize), a.dtype)[:, :k]
    copy.assign(made, a)
    return made


def linear(x: Array, weight: Array, bias: Array) -> Any:
    """x·Wᵀ + b for matrices x (M, K) and W (N, K) in rows; None where BLAS should do it.

    On AVX2 it takes 0.45 to 0.95 of BLAS's time and that of adding the bias, on AVX-512 0.5 to 0.85.

    >>> x, weight, bias = np.ones((64, 64), "f"), np.ones((64, 64), "f"), np.ones(64, "f")
    >>> made = linear(x, weight, bias)
    >>> made is None or float(made[3, 4])
    65.0
    """
    (m, k), n, kind = x.shape, len(weight), x.dtype.char
    if (
        m * n * k < FEWEST_OF_LAYERS
        or kind not in "fd"
        or n < wide(kind)
        or min(m, n, k) < BLOCK
        or k > LONGEST
        or not jit.works()
        or not x.flags.c_contiguous
        or not weight.flags.c_contiguous
        or not bias.flags.c_contiguous
    ):
        return None
    if n * k > m * (n + k) and m >= wide(kind):  # less is copied if x is packed
        calls = plan(kind, n, m, k, weight.strides, x.strides[::-1], False)
        if calls is None:
            return None
        transposed = np.empty((n, m), x.dtype)
        run(calls, weight, x, transposed, zeros(m, x.dtype))
        made = np.empty((m, n), x.dtype)
        transposing(kind, n, m)(made, transposed)
        made += bias  # NumPy's sum of a transposed matrix and a row takes five times as long
        return made
    calls = plan(kind, m, n, k, x.strides, weight.strides[::-1], False)
    if calls is None:
        return None
    made = np.empty((m, n), x.dtype)
    run(calls, x, weight, made, bias)
    return made


class Factor:
    """A matrix B (k, n) that many others are multiplied by, packed once; and a row that is added.

    >>> b = np.arange(64.0 * 64).reshape(64, 64)
    >>> a, made = np.ones((16, 64)), np.empty((16, 64))
    >>> Factor(b).times(a, made)
    >>> bool((made == a @ b).all())
    True
    """

    def __init__(self, b: Array, row: Array | None = None) -> None:
        self.b, self.row = b, row
        self.panels: Array | None = None
        (self.k, self.n), kind = b.shape, b.dtype.char
        self.fits = kind in "fd" and self.n >= wide(kind) and self.k >= BLOCK and jit.works()
        self.start = zeros(self.n, b.dtype) if row is None else np.ascontiguousarray(row)
        self.packed = b  # B, or its panels
        self.seen: Any = None  # how arrays lay last time, and the calls for these
        self.calls: Sequence[ArrayCall] | None = None

    def times(self, a: Array, made: Array) -> None:
        """Writes A·B + row, for rows of A that lie without gaps, as those of `made` do."""
        calls = self.calls_for(a, made)
        if calls is None:
            blas_product.matmul(a, self.b, made)
            if self.row is not None:
                made += self.row
            return
        for call in calls:
            call(a, self.packed, made, self.start)

    def calls_for(self, a: Array, made: Array) -> Sequence[ArrayCall] | None:
        """The calls of (A, packed, made, start) for such rows; None where BLAS is faster."""
        seen = a.shape, a.strides, made.strides
        if seen != self.seen:
            self.seen, self.calls = seen, self.planned(a, made)
        return self.calls

    def planned(self, a: Array, made: Array) -> Sequence[ArrayCall] | None:
        """The same, found anew; B is packed where that is needed for the first time."""
        fitting = a.shape == (len(made), self.k) and made.shape == (len(a), self.n)
        fitting = fitting and a.flags.c_contiguous and made.flags.c_contiguous
        if not (self.fits and fitting and len(a) >= LEAST):
            return None
        lines = self.b.strides[1] == self.b.itemsize
        if lines and self.b.strides[0] % PAGE == 0:
            self.b, lines = np.asfortranarray(self.b), False
        calls = plan(a.dtype.char, len(a), self.n, self.k, a.strides, self.b.strides, lines)
        if calls is None:
            return None
        packing, room, products = calls
        if packing and self.panels is None:
            self.panels = panels = np.empty(room, self.b.dtype)
            for call in packing:
                call(panels, self.b)
        self.packed = self.b if self.panels is None else self.panels
        return products


@functools.lru_cache(64)
def zeros(n: int, kind: Any) -> Any:
    """What sums start from, which nobody may write to."""
    made = np.zeros(n, kind)
    made.flags.writeable = False
    return made


def run(calls: tuple[Sequence[ArrayCall], int, Sequence[ArrayCall]], *arrays: Array) -> None:
    """Packs, if anything is to be packed, and multiplies."""
    packing, room, products = calls
    a, b, made, start = arrays
    if packing:
        panels = np.empty(room, b.dtype)
        for call in packing:
            call(panels, b)
        b = panels
    for call in products:
        call(a, b, made, start)


@functools.lru_cache(1024)
def plan(
    kind: str, m: int, n: int, k: int, a: tuple[int, int], b: tuple[int, int], lines: bool
) -> tuple[list[ArrayCall], int, list[ArrayCall]] | None:
    """The calls for A (m, k) by B (k, n) with these strides in bytes; None where BLAS is faster.

    lines   whether B's rows may be read as they lie; else they are packed in panels of columns
    Results: the calls that pack, how many elements that makes, the calls that multiply.
    """
    item, width = 8 if kind == "d" else 4, wide(kind)
    if n < width or any(s % item or s < 0 for s in (*a, *b)):
        return None
    in_rows = b[1] == item
    if not in_rows and min(width, k) < BLOCK:  # panels are transposed in blocks
        return None
    count, rest = divmod(n, width)
    tall, room = rows(m, VECTORS), processor.this().l2 // 2
    step = a[0] // item
    # All of A goes past each panel of columns; or all of B past each tile's rows; or past each of
    # the blocks of rows that A is cut into.
    high = tall if m * k * item > room // ROUNDS else 0
    if (n * k if high else m * k) * item > room:
        if not beats_blas():
            return None
        high = min(max(room // (k * item), HIGH), m // BLOCKS)
        high, lines = max(high // tall, 1) * tall, False
    words = {
        "c1": width, "a3": step, "c3": n, "row": n, "step": step,
        "sum2": k, "sa2": a[1] // item,
    }  # fmt: skip
    if high:
        words |= {"n0": m // high, "a0": high * step, "c0": high * n, "n3": high, "shared": 0}
    else:
        words |= {"n3": m, "shared": TILES - 1}
    kernel, made = tile(kind, tall, VECTORS, step, False), list[ArrayCall]()

    def product(first: int, panels: int, place: int, apart: int, line: int) -> None:
        """Columns first … of so many panels, which lie `apart` elements apart from `place` on."""
        own = {"n1": panels, "b1": apart, "sb2": line}
        own |= {"B": place * item, "C": first * item, "start": first * item}
        work = m * panels * width * k
        turns = m // high if high else -(-m // tall)
        made.append(ArrayCall(kernel, table(words | own), ADDRESSES, turns, work))
        if high and m % high:  # the last rows, which overlap those before them if they are few
            last = max(m % high, tall)
            own |= {"n0": 1, "A": (m - last) * a[0], "C": ((m - last) * n + first) * item}
            own |= {"n3": last, "shared": TILES - 1}
            turns = -(-last // tall)
            made.append(ArrayCall(kernel, table(words | own), ADDRESSES, turns, work * last // m))

    if lines and in_rows:
        line = b[0] // item
        product(0, count, 0, width, line)
        if rest:  # the last panel overlaps the one before it
            product(n - width, 1, n - width, 0, line)
        return [], 0, made
    panel, packing = k * width, list[ArrayCall]()
    parts = [(count, 0, 0), (1, count * panel, n - width)]
    for panels, place, first in parts if rest else parts[:1]:
        if in_rows:
            steps = (panel * item, width * item, item), (width * item, b[0], item)
            places = place * item, first * item
            call = copy.plan(item, (panels, k, width), *steps, places)
            assert call is not None, "the elements of a row lie side by side"
            packing.append(call)
        else:
            packing.append(packed(kind, panels, place, first, k, width, b[1]))
        product(first, panels, place, panel, width)
    return packing, (count + bool(rest)) * panel, made


@functools.lru_cache(256)
def transposing(kind: str, n: int, m: int) -> ArrayCall:
    """The call that transposes a matrix (n, m) in rows."""
    item = 8 if kind == "d" else 4
    words = (0, 0, 1, 0, 0, 1, 0, 0, n, m, n * item, m * item)
    call, turns = transposition(kind, *words[2:])
    return ArrayCall(call, words, (0, 1), turns, 4 * n * m)


def packed(kind: str, count: int, place: int, first: int, k: int, width: int, line: int) -> Any:
    """The call that packs so many panels from column `first` on, to `place`; line: bytes from a
    column to the next."""
    item = 8 if kind == "d" else 4
    steps = (count, k * width * item, width * line)
    words = (place * item, first * line, *steps, 1, 0, 0, width, k, width * item, line)
    assert len(words) == len(TURNING)
    call, turns = transposition(kind, *words[2:])
    return ArrayCall(call, words, (0, 1), turns, 4 * count * k * width)

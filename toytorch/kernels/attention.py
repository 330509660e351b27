"""Attention in blocks of queries: no array of queries by keys is ever there as a whole.

For a block, scores are one product, softmax one compiled pass over them while they lie in
the cache, and the result a second product. What the backward pass needs of softmax is the logarithm
of each row's sum: from it the weights are computed again, block by block (Dao et al. 2022,
FlashAttention). What `causal` hides to the right of a block is not computed at all.

q is (B, H, L, E), k and v are (B, H, S, E), and a mask broadcasts to (B, H, L, S).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from toytorch.facts.hints import Array, Sizes
from toytorch.kernels.batched_product import product_into
from toytorch.kernels.copy import in_rows
from toytorch.loops import Recipe, processor
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.kernel import ready

# A row of -inf throughout has no weights: its sum is 0, and so is its logarithm here.
FORWARD = Recipe("""x[i,j], low -> y[i,j], l[i]
    t = fmax[j](x)
    m = where(t < low, 0, t)
    e = exp(x - m)
    s = sum[j](e)
    y = e / where(s == 0, 1, s)
    l = where(s == 0, 0, m + log(s))""")
BACKWARD = Recipe("""x[i,j], g[i,j], l[i], d[i] -> p[i,j], s[i,j]
    p = exp(x - l)
    s = p * (g - d)""")
# The same for stacks of heads, with what is added to the scores of each: -inf to what is hidden.
CAUSAL_FORWARD = Recipe("""x[h,i,j], z[i,j], low -> y[h,i,j], l[h,i]
    t = fmax[j](x + z)
    m = where(t < low, 0, t)
    e = exp(x + z - m)
    s = sum[j](e)
    y = e / where(s == 0, 1, s)
    l = where(s == 0, 0, m + log(s))""")
CAUSAL_BACKWARD = Recipe("""x[h,i,j], z[i,j], g[h,i,j], l[h,i], d[h,i] -> p[h,i,j], s[h,i,j]
    p = exp(x + z - l)
    s = p * (g - d)""")
CAUSAL_ROWS = 64  # queries in a block where smaller blocks leave out more of what is hidden
LEAST_ROWS = 64
SCORES = (
    1 << 19
)  # bytes of the scores of a block, at least: each block costs 90 µs of calls beside its products
FEW = 1 << 12  # scores that are computed as one block, without a plan


class Block(NamedTuple):
    """Some queries of some heads, and how many keys they see."""

    batch: slice
    heads: slice
    queries: slice
    seen: int

    def rows(self, a: Array) -> Array:
        """What belongs to its queries."""
        return a[self.batch, self.heads, self.queries]

    def keys(self, a: Array) -> Array:
        """What belongs to the keys that it sees."""
        return a[self.batch, self.heads, : self.seen]

    def columns(self, a: Array) -> Array:
        """The same of a transposed array, (B, H, E, S)."""
        return a[self.batch, self.heads, :, : self.seen]


def blocks(shape: tuple[int, int, int, int], size: int, causal: bool) -> Iterator[Block]:
    """The blocks for (B, H, L, S), whose scores fill a quarter of a core's second-level cache.

    The last queries come first: they see all keys, so that what they give need not be added to
    anything.

    >>> [(b.queries, b.seen) for b in blocks((1, 1, 128, 128), 4, True)]
    [(slice(64, 128, None), 128), (slice(0, 64, None), 64)]
    """
    batch, heads, queries, keys = shape
    room = max(processor.this().l2 // 4, SCORES) // size
    rows = queries if queries * keys <= room else max(LEAST_ROWS, room // keys)
    rows = min(rows, CAUSAL_ROWS if causal else queries, queries)
    together = max(1, room // (rows * keys))  # heads
    if together >= heads:
        apart = [(b, slice(0, heads)) for b in pieces(batch, together // heads)]
    else:
        each = list(pieces(heads, together))
        apart = [(slice(b, b + 1), h) for b in range(batch) for h in each]
    for b, h in apart:
        for end in range(queries, 0, -rows):
            seen = min(end, keys) if causal else keys
            yield Block(b, h, slice(max(end - rows, 0), end), seen)


def pieces(n: int, size: int) -> Iterator[slice]:
    """0 … n in pieces of a size."""
    return (slice(first, min(first + size, n)) for first in range(0, n, size))


def transposed(a: Array) -> Array:
    """(B, H, E, S) of (B, H, S, E), in rows: BLAS multiplies by it twice as fast as by one that lies
    in columns, where E is small."""
    return in_rows(a.swapaxes(2, 3))


class Scores:
    """Where the scores of a block are computed, in memory that the next block uses again."""

    def __init__(self, q: Array, k: Array, mask: Array | None, causal: bool, scale: float) -> None:
        self.q, self.k, self.mask, self.causal, self.scale = q, transposed(k), mask, causal, scale
        self.memory: dict[str, Array] = {}

    def blocks(self) -> Iterator[Block]:
        shape = (*self.q.shape[:3], self.k.shape[3])
        return blocks(shape, self.q.itemsize, self.causal)

    def room(self, name: str, shape: Sizes) -> Array:
        """Memory for one array of a block."""
        size = math.prod(shape)
        held = self.memory.get(name)
        if held is None or held.size < size:
            held = self.memory[name] = np.empty(size, self.q.dtype)
        return held[:size].reshape(shape)

    def of(self, block: Block) -> tuple[Array, Array]:
        """q·kᵀ·scale of a block with what its mask adds, and the q·scale that it is made of; what
        is `hidden` is not yet."""
        q = block.rows(self.q)
        scaled = np.multiply(q, self.scale, out=self.room("scaled", q.shape))
        made = self.room("scores", (*q.shape[:3], block.seen))
        product_into(scaled, block.columns(self.k), made)
        if self.mask is not None:
            made += block.rows(self.mask)[..., : block.seen]
        return made, scaled

    def hidden(self, block: Block) -> Array | None:
        """-inf where a block's queries do not see a key, to be added to scores; None where they see
        all that there are."""
        first, end = block.queries.start, block.queries.stop
        if not self.causal or block.seen <= first:
            return None
        return later(end - first, block.seen, first, self.q.dtype.char)


@functools.lru_cache(64)
def later(queries: int, keys: int, first: int, kind: str) -> Array:
    """-inf for the keys that come after a query, of which the first sees one more than `first`; 0
    for the others. Nobody may write to it.

    >>> later(2, 3, 1, "f")
    array([[  0.,   0., -inf],
           [  0.,   0.,   0.]], dtype=float32)
    """
    made = np.triu(np.full((queries, keys), -np.inf, kind), 1 + first)
    made.flags.writeable = False
    return made


def forward(
    q: Array, k: Array, v: Array, mask: Array | None, causal: bool, scale: float
) -> tuple[Array, Array]:
    """softmax(q·kᵀ·scale + mask)·v, which lies as q does, and the logarithms (B, H, L) of softmax's
    sums."""
    made, swapped = np.empty_like(q), (q.shape[0], q.shape[2], q.shape[1])
    sums = np.empty(swapped, q.dtype).swapaxes(1, 2)
    if math.prod(q.shape[:3]) * k.shape[2] <= FEW:
        x = np.matmul(q * q.dtype.type(scale), k.swapaxes(2, 3))
        if mask is not None:
            x += mask
        hidden = later(q.shape[2], k.shape[2], 0, q.dtype.char) if causal else None
        if jit.works() and x.flags.c_contiguous:
            scores, x, logs = x, np.empty(x.shape, x.dtype), np.empty(x.shape[:-1], x.dtype)
            given = (x, logs, scores) if hidden is None else (x, logs, scores, hidden)
            of_few(x.dtype.char, x.shape, causal)(*given)
            sums[...] = logs
        else:
            sums[...] = softmax(x, hidden)
        np.matmul(x, v, out=made)
        return made, sums
    scores = Scores(q, k, mask, causal, scale)
    for block in scores.blocks():
        x, _ = scores.of(block)
        block.rows(sums)[...] = softmax(x, scores.hidden(block))
        product_into(x, block.keys(v), block.rows(made))
    return made, sums


def backward(
    g: Array,
    q: Array,
    k: Array,
    v: Array,
    made: Array,
    sums: Array,
    mask: Array | None,
    causal: bool,
    scale: float,
) -> tuple[Array, Array, Array] | None:
    """The gradients of q, k and v from that of the result; None where there is little to do."""
    if math.prod(q.shape[:3]) * k.shape[2] < jit.SMALLEST:
        return None
    scores = Scores(q, k, mask, causal, scale)
    values = transposed(v)
    dq, dk, dv = (np.empty(swapped(a.shape), a.dtype).swapaxes(1, 2) for a in (q, k, v))
    for block in scores.blocks():
        x, scaled = scores.of(block)
        into = block.rows(g)
        weights = product_into(into, block.columns(values), scores.room("g", x.shape))
        share = np.einsum("bhij,bhij->bhi", into, block.rows(made))
        softmax_backward(x, weights, block.rows(sums), share, scores.hidden(block))
        out = product_into(weights, block.keys(k), block.rows(dq))
        out *= scale
        first = block.queries.stop == q.shape[2]
        for target, left, right in ((dv, x, into), (dk, weights, scaled)):
            target = block.keys(target)
            if first:
                product_into(left.swapaxes(2, 3), right, target)
            else:
                more = scores.room("more", target.shape)
                target += product_into(left.swapaxes(2, 3), right, more)
        if first and block.seen < k.shape[2]:  # keys that no query sees
            for target in (dk, dv):
                target[block.batch, block.heads, block.seen :] = 0
    return dq, dk, dv


def swapped(shape: Sizes) -> tuple[int, ...]:
    """(B, H, L, E) as it lies where numbers of one row of all heads lie side by side."""
    return shape[0], shape[2], shape[1], shape[3]


@functools.lru_cache(256)
def of_few(kind: str, shape: Sizes, causal: bool) -> Any:
    """`softmax` of few scores of a shape, as a builtin function of (weights, logarithms, scores), and
    of what hides some."""
    low, rows, keys = float(np.finfo(kind).min), math.prod(shape[:-1]), shape[-1]
    if not causal:
        return ready(FORWARD, kind, ((rows, keys), (rows,), (rows, keys)), low)
    stack = rows // shape[2], *shape[2:]
    return ready(CAUSAL_FORWARD, kind, (stack, stack[:2], stack, stack[1:]), low)


def softmax(x: Array, hidden: Array | None) -> Array:
    """Turns scores (B, H, L, S) into weights, in their own memory; the logarithms of the rows'
    sums."""
    made = np.empty(x.shape[:-1], x.dtype)
    if jit.works():  # one call in the place of nine of NumPy's, also for few scores
        low, stack = float(np.finfo(x.dtype).min), x.reshape(-1, *x.shape[2:])
        if hidden is None:
            rows = x.reshape(-1, x.shape[-1])
            FORWARD(rows, made.reshape(-1), rows, low)
        else:
            CAUSAL_FORWARD(stack, made.reshape(stack.shape[:2]), stack, hidden, low)
        return made
    if hidden is not None:
        x += hidden
    top = x.max(-1, keepdims=True)
    top[top == -np.inf] = 0
    np.exp(np.subtract(x, top, out=x), out=x)
    total = x.sum(-1, keepdims=True)
    empty = total == 0
    total[empty] = 1
    x /= total
    return np.where(empty, 0, top + np.log(total))[..., 0]


def softmax_backward(x: Array, g: Array, sums: Array, share: Array, hidden: Array | None) -> None:
    """Turns scores into weights p again, and the gradient of the weights into that of the scores,
    p·(g - share), each in its own memory."""
    if x.size >= jit.SMALLEST and jit.works():
        shape = (-1, x.shape[-1]) if hidden is None else (-1, *x.shape[2:])
        p, s = (a.reshape(shape) for a in (x, g))
        logs, d = (np.ascontiguousarray(a).reshape(p.shape[:-1]) for a in (sums, share))
        if hidden is None:
            BACKWARD(p, s, p, s, logs, d)
        else:
            CAUSAL_BACKWARD(p, s, p, hidden, s, logs, d)
        return
    if hidden is not None:
        x += hidden
    np.exp(np.subtract(x, sums[..., None], out=x), out=x)
    g -= share[..., None]
    g *= x

"""Normalisation compiled: what NumPy does in ten passes over memory, in two.

Batch norm takes x as (N, C, P) or, where channels lie last in memory, as (N·P, C). A group of channels
is one piece of memory, which group norm goes over as layer norm does over a row; where channels lie
last, sums for each image and channel are made first, and then combined. Each function returns None
where there is little to do or the arrays are not of the kind; NumPy does it then.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes
from toytorch.kernels.copy import in_rows
from toytorch.kernels.memory_format import channels_last, empty_images
from toytorch.loops import Recipe, processor
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.loops.runtime.kernel import ready

FORWARD = """
    m = mean[{over}](x)
    d = x - m
    v = mean[{over}](d * d)
    r = rsqrt(v + eps)
    y = d * (r * w) + b"""
BACKWARD = """
    d = x - m
    db = sum[{over}](g)
    s = sum[{over}](g * d)
    dw = s * r
    dx = (g - db / count - d * (s * r * r / count)) * (w * r)"""
INPUTS = "x[{dims}], g[{dims}], w[c], m[c], r[c], count -> dx[{dims}], dw[c], db[c]"


def _pair(head: str, lines: str) -> dict[bool, Recipe]:
    """A recipe for images in plain order (False) and for channels that lie last (True)."""
    made = {}
    for last, dims, over in ((False, "n,c,p", "n,p"), (True, "n,c", "n")):
        text = (head + lines).replace("{dims}", dims).replace("{over}", over)
        made[last] = Recipe(text)
    return made


BATCH = _pair("x[{dims}], w[c], b[c], eps -> y[{dims}], m[c], v[c], r[c]", FORWARD)
BATCH_BACKWARD = _pair(INPUTS, BACKWARD)
KNOWN_BACKWARD = _pair(
    "x[{dims}], g[{dims}], w[c], m[c], r[c] -> dx[{dims}], dw[c], db[c]",
    """
    db = sum[{over}](g)
    dw = sum[{over}](g * (x - m)) * r
    dx = g * (w * r)""",
)
AFFINE = _pair("x[{dims}], m[c], k[c], b[c] -> y[{dims}]", "\n    y = (x - m) * k + b")
KNOWN = Recipe("""x[n,c,p], m[c], v[c], w[c], b[c], eps -> y[n,c,p]
    k = 1 / sqrt(v + eps)
    y = (x - m) * (k * w) + b""")


def fits(*arrays: Array | None) -> bool:
    """Whether the arrays are of one type that is compiled. Few numbers are, too: the same call should
    give the same bits whether or not something else has loaded LLVM."""
    first = arrays[0]
    if first.__class__ is not np.ndarray or not first.size or first.dtype.char not in "fd":
        return False
    kind = first.dtype
    for a in arrays:
        if a is not None and a.dtype is not kind and a.dtype != kind:
            return False
    return jit.works()


def as_table(a: Array, last: bool) -> Any:
    """Images (N, C, …) as (N, C, P), or as (N·P, C) where channels lie last; without a copy
    where they lie as they should."""
    if a.ndim == 2:
        return np.ascontiguousarray(a)
    if last:
        return np.ascontiguousarray(a.transpose(0, 2, 3, 1)).reshape(-1, a.shape[1])
    return np.ascontiguousarray(a).reshape(a.shape[0], a.shape[1], -1)


def _ones(w: Array | None, like: Array, fill: float = 1) -> Any:
    return _same(like.shape[1], like.dtype.char, fill) if w is None else np.ascontiguousarray(w)


@functools.lru_cache(64)
def _same(n: int, kind: str, value: float) -> Any:
    """So many times one number, only to be read."""
    return np.full(n, value, kind)


def _made_like(a: Array) -> tuple[Any, Any, bool]:
    """New images in the order of memory of others, their table, and whether channels lie last."""
    last = channels_last(a)
    made = empty_images(a.shape, a.dtype, last) if a.ndim == 4 else np.empty(a.shape, a.dtype)
    return made, as_table(made, last), last or a.ndim == 2


def few(a: Array, *of_channels: Array | None) -> bool:
    """Whether images are so few numbers, and lie in memory so, that a kernel that was made for their
    shape takes them as they are: what is looked at before another begins takes longer than the work."""
    if not (a.size < SMALLEST and a.ndim > 2 and a.shape[1] > 1 and a.flags.c_contiguous):
        return False
    for v in of_channels:  # noqa: SIM110  # `all` of a generator takes 0.4 µs longer
        if v is not None and v.size != a.shape[1]:
            return False  # which others refuse
    return True


@functools.lru_cache(256)
def batch_ready(kind: str, shape: Sizes, eps: float) -> Any:
    """The kernel of `batch` for few images of a shape, as a builtin function."""
    (n, c), p = shape[:2], math.prod(shape[2:])
    return ready(BATCH[False], kind, ((n, c, p), (c,), (c,), (c,), (n, c, p), (c,), (c,)), eps)


@functools.lru_cache(256)
def known_ready(kind: str, shape: Sizes, eps: float) -> Any:
    """The kernel of `known` for images of a shape."""
    (n, c), p = shape[:2], math.prod(shape[2:])
    return ready(KNOWN, kind, ((n, c, p), (n, c, p), (c,), (c,), (c,), (c,)), eps)


def known(a: Array, mean: Array, var: Array, w: Array | None, b: Array | None, eps: float) -> Any:
    """Few images normalised by statistics of channels that are known, or None."""
    if not fits(a, mean, var, w, b) or not few(a, mean, var, w, b):
        return None
    made = np.empty(a.shape, a.dtype)
    given = np.ascontiguousarray(mean), np.ascontiguousarray(var), _ones(w, a), _ones(b, a, 0)
    known_ready(a.dtype.char, a.shape, eps)(made, a, *given)
    return made


def batch(a: Array, w: Array | None, b: Array | None, eps: float) -> Any:
    """(y, mean, variance, rstd) of images normalised by channel, or None."""
    if not fits(a, w, b):
        return None
    if few(a, w, b):
        made = np.empty(a.shape, a.dtype)
        m, v, r = (np.empty(a.shape[1], a.dtype) for _ in range(3))
        batch_ready(a.dtype.char, a.shape, eps)(made, m, v, r, a, _ones(w, a), _ones(b, a, 0))
        return made, m, v, r
    made, y, last = _made_like(a)
    m, v, r = (np.empty(a.shape[1], a.dtype) for _ in range(3))
    BATCH[last](y, m, v, r, as_table(a, last), _ones(w, a), _ones(b, a, 0), eps)
    return made, m, v, r


def affine(a: Array, mean: Array, scale: Array, bias: Array | None) -> Any:
    """(x - mean)·scale + bias by channel, or None."""
    if not fits(a, mean, scale, bias):
        return None
    made, y, last = _made_like(a)
    AFFINE[last](y, as_table(a, last), mean, scale, _ones(bias, a, 0))
    return made


def batch_backward(g: Array, a: Array, w: Array | None, mean: Array, rstd: Array) -> Any:
    """The gradients (of x, of the weight, of the bias) from that of the result, or None."""
    if a.dtype.itemsize == 2:
        from toytorch.kernels import halves  # whose modules nobody else needs at the start

        return halves.batch_backward(g, a, w, mean, rstd)
    if not fits(a, g, w, mean, rstd):
        return None
    return _by_channel(BATCH_BACKWARD, g, a, w, mean, rstd, float(a.size // a.shape[1]))


def known_backward(g: Array, a: Array, w: Array | None, mean: Array, rstd: Array) -> Any:
    """`batch_backward` where the statistics are no results but were known."""
    return _by_channel(KNOWN_BACKWARD, g, a, w, mean, rstd) if fits(a, g, w, mean, rstd) else None


def _by_channel(
    recipes: dict[bool, Recipe], g: Array, a: Array, w: Array | None, *given: Array | float
) -> tuple[Any, Any, Any]:
    made, dx, last = _made_like(a)
    dw, db = np.empty(a.shape[1], a.dtype), np.empty(a.shape[1], a.dtype)
    recipes[last](dx, dw, db, as_table(a, last), as_table(g, last), _ones(w, a), *given)
    return made, dw, db


# -- groups of channels ---------------------------------------------------------------------------


def _orders(head: str, text: str) -> dict[bool, Recipe]:
    """A recipe over images (n, c, p), and over (n, p, c)."""
    return {
        last: Recipe((head + text).replace("{all}", "n,p,c" if last else "n,c,p"))
        for last in (False, True)
    }


MOMENTS = _orders(
    "x[{all}] -> m[n,c], v[n,c]",
    """
    m = own(mean[p](float64(x)))
    d = x - m
    v = mean[p](d * d)""",
)
SCALED = _orders("x[{all}], m[n,c], k[n,c], b[c] -> y[{all}]", "\n    y = (x - m) * k + b")
SHARES = _orders(
    "x[{all}], g[{all}], m[n,c] -> s[n,c], t[n,c]",
    """
    s = sum[p](g * (x - m))
    t = sum[p](g)""",
)
MIXED = _orders(
    "x[{all}], g[{all}], m[n,c], a[n,c], b[n,c], k[n,c] -> dx[{all}]",
    "\n    dx = g * k - (x - m) * a - b",
)


# Where a group is one piece of memory. Means are sums in float64: of equal elements they are these
# elements, so that nothing is left of them, as of PyTorch's (Welford 1962); that takes 5 % longer.
GROUP = Recipe("""x[n,g,c,p], w[g,c], b[g,c], eps -> y[n,g,c,p], m[n,g], r[n,g]
    m = own(mean[c,p](float64(x)))
    d = x - m
    r = rsqrt(mean[c,p](d * d) + eps)
    y = d * (r * w) + b""")
# From the moments of channels to those of their groups, spread over the channels again; and so for
# the shares of the gradients. (NumPy needed twenty calls for this, a tenth of the time.)
GROUPED = Recipe("""m[n,g,c], v[n,g,c], w[g,c], eps -> a[n,g], r[n,g], s[n,g,c], k[n,g,c]
    a = own(mean[c](float64(m)))
    d = m - a
    r = rsqrt(mean[c](v + d * d) + eps)
    s = a
    k = r * w""")
COLUMNS = Recipe("x[n,c] -> s[c]\n s = sum[n](x)")
GROUP_SHARES = Recipe("""
    s[n,g,c], t[n,g,c], w[g,c], r[n,g], count -> a[n,g,c], b[n,g,c], k[n,g,c], u[n,g,c]
    share = r / count
    a = sum[c](s * w) * r * r * share
    b = sum[c](t * w) * share
    k = r * w
    u = s * r""")

# Where a group is one piece of memory: what x gets, and each channel's share of the weight's and bias's.
GROUP_INPUT = Recipe("""
    d[n,g,c,p], x[n,g,c,p], w[g,c], m[n,g], r[n,g] -> dx[n,g,c,p]
    h = (x - m) * r
    k = d * w
    dx = (k - mean[c,p](k) - h * mean[c,p](k * h)) * r""")
GROUP_WEIGHT = Recipe("""
    d[n,g,c,p], x[n,g,c,p], m[n,g], r[n,g] -> u[n,g,c], t[n,g,c]
    u = sum[p](d * (x - m)) * r
    t = sum[p](d)""")


def _group_table(a: Array, last: bool) -> Any:
    """Images as (N, C, P), or (N, P, C) where channels lie last."""
    n, c = a.shape[:2]
    if last:
        return np.ascontiguousarray(a.transpose(0, 2, 3, 1)).reshape(n, -1, c)
    return np.ascontiguousarray(a).reshape(n, c, -1)


def _group_weight(w: Array | None, a: Array, groups: int, value: float = 1) -> Any:
    """A weight as a table (groups, channels of each)."""
    return np.ascontiguousarray(_ones(w, a, value)).reshape(groups, -1)


@functools.lru_cache(256)
def group_ready(kind: str, shape: Sizes, groups: int, eps: float) -> Any:
    """The kernel of `group` for few images of a shape."""
    each = shape[1] // groups
    (n, g), x = (shape[0], groups), (shape[0], groups, each, math.prod(shape[2:]))
    return ready(GROUP, kind, (x, (n, g), (n, g), x, (g, each), (g, each)), eps)


def group(a: Array, w: Array | None, b: Array | None, groups: int, eps: float) -> Any:
    """(y, mean, rstd) of images normalised by groups of channels, or None."""
    if not fits(a, w, b) or a.ndim < 3:
        return None
    n, c = a.shape[:2]
    together = few(a, w, b)
    if not together and a.size // n // c < 8:
        return None
    if together:
        made = np.empty(a.shape, a.dtype)
        mean, rstd = np.empty((n, groups), a.dtype), np.empty((n, groups), a.dtype)
        call = group_ready(a.dtype.char, a.shape, groups, eps)
        call(made, mean, rstd, a, _ones(w, a), _ones(b, a, 0))
        return made, mean, rstd
    weight = _group_weight(w, a, groups)
    mean, rstd = np.empty((n, groups), a.dtype), np.empty((n, groups), a.dtype)
    if not channels_last(a):
        made, pieces = np.empty(a.shape, a.dtype), (n, groups, c // groups, -1)
        bias, x = _group_weight(b, a, groups, 0), np.ascontiguousarray(a).reshape(pieces)
        GROUP(made.reshape(pieces), mean, rstd, x, weight, bias, eps)
        return made, mean, rstd
    x = _group_table(a, True)
    m, v, shift, scale = (np.empty((n, groups, c // groups), a.dtype) for _ in range(4))
    MOMENTS[True](m.reshape(n, c), v.reshape(n, c), x)
    GROUPED(mean, rstd, shift, scale, m, v, weight, eps)
    made = empty_images(a.shape, a.dtype, True)
    given = shift.reshape(n, c), scale.reshape(n, c), _ones(b, a, 0)
    SCALED[True](_group_table(made, True), x, *given)
    return made, mean, rstd


def group_backward(g: Array, a: Array, w: Array | None, mean: Array, rstd: Array) -> Any:
    """The gradients (of x, of the weight, of the bias), or None.

    With d = x - mean, t = Σg·w and s = Σg·w·d over a group of M elements, that of x is
    rstd·(g·w - t/M - d·rstd²·s/M).
    """
    if not fits(a, g, w, mean, rstd) or a.ndim < 3 or (a.size // a.shape[0] // a.shape[1] < 8):
        return None
    n, c = a.shape[:2]
    groups, last = mean.shape[1], channels_last(a)
    if not last and a.nbytes <= processor.this().l2:  # where a second look at memory costs little
        pieces = n, groups, c // groups, -1
        x, g = (np.ascontiguousarray(v).reshape(pieces) for v in (a, g))
        made, shares = np.empty(a.shape, a.dtype), np.empty((2, n, groups, c // groups), a.dtype)
        GROUP_INPUT(made.reshape(pieces), g, x, _group_weight(w, a, groups), mean, rstd)
        GROUP_WEIGHT(shares[0], shares[1], g, x, mean, rstd)
        return made, *np.add.reduce(shares.reshape(2, n, c), 1)
    x, g = _group_table(a, last), _group_table(g, last)
    s, t, of_x, shift, scale, dw = (np.empty((n, groups, c // groups), a.dtype) for _ in range(6))
    m = np.repeat(mean, c // groups, 1)
    SHARES[last](s.reshape(n, c), t.reshape(n, c), x, g, m)
    GROUP_SHARES(
        of_x, shift, scale, dw, s, t, _group_weight(w, a, groups), rstd, a.size // n // groups
    )
    made = empty_images(a.shape, a.dtype, last) if last else np.empty(a.shape, a.dtype)
    MIXED[last](_group_table(made, last), x, g, m, *(v.reshape(n, c) for v in (of_x, shift, scale)))
    sums = np.empty(c, a.dtype), np.empty(c, a.dtype)
    for into, shares in zip(sums, (dw, t)):
        COLUMNS(into, shares.reshape(n, c))
    return made, *sums


ENOUGH = 1 << 17  # elements, which make the cost of two calls small


# -- last dimensions ------------------------------------------------------------------------------

LAYER = Recipe("""x[i,j], w[j], b[j], eps -> y[i,j], m[i], r[i]
    m = own(mean[j](float64(x)))
    d = x - m
    r = rsqrt(mean[j](d*d) + eps)
    y = d*r*w + b""")
LAYER_INPUT = Recipe("""g[i,j], x[i,j], w[j], m[i], r[i] -> dx[i,j]
    k = g * w
    h = (x - m) * r
    dx = (k - mean[j](k) - h * mean[j](k * h)) * r""")
LAYER_WEIGHT = Recipe("""g[i,j], x[i,j], m[i], r[i] -> dw[j], db[j]
    dw = sum[i](g * (x - m) * r)
    db = sum[i](g)""")


@functools.lru_cache(256)
def layer_ready(kind: str, count: int, n: int, eps: float) -> Any:
    """The kernel of `layer` for few numbers."""
    rows = count, n
    return ready(LAYER, kind, (rows, (count,), (count,), rows, (n,), (n,)), eps)


def layer(a: Array, n: int, weight: Array | None, bias: Array | None, eps: float) -> Any:
    """(y, mean, rstd) of rows of n elements, each normalised by itself, or None."""
    kind = a.dtype
    if (
        not n
        or a.__class__ is not np.ndarray
        or kind.char not in "fd"
        or (weight is not None and (weight.dtype != kind or weight.size != n))
        or (bias is not None and (bias.dtype != kind or bias.size != n))
        or not jit.works()
    ):
        return None
    count = a.size // n
    if 0 < a.size < SMALLEST:
        w = _same(n, kind.char, 1) if weight is None else np.ascontiguousarray(weight)
        b = _same(n, kind.char, 0) if bias is None else np.ascontiguousarray(bias)
        y, mean, rstd = np.empty(a.shape, kind), np.empty(count, kind), np.empty(count, kind)
        x = a if a.flags.c_contiguous else np.ascontiguousarray(a)
        layer_ready(kind.char, count, n, eps)(y, mean, rstd, x, w, b)
        return y, mean, rstd
    w = _same(n, kind.char, 1) if weight is None else weight.reshape(n)
    b = _same(n, kind.char, 0) if bias is None else bias.reshape(n)
    y, mean, rstd = np.empty(a.shape, kind), np.empty(count, kind), np.empty(count, kind)
    LAYER(y.reshape(count, n), mean, rstd, in_rows(a).reshape(count, n), w, b, eps)
    return y, mean, rstd


def layer_input(g: Array, a: Array, w: Array | None, mean: Array, rstd: Array) -> Any:
    """The gradient of x of layer norm, in a tuple, or None."""
    if a.dtype.itemsize == 2:
        from toytorch.kernels import halves  # whose modules nobody else needs at the start

        return halves.layer_input(g, a, w, mean, rstd)
    if not fits(a, g, w, mean, rstd):
        return None
    n = a.size // max(mean.size, 1)
    made = np.empty(a.shape, a.dtype)
    rows = [np.ascontiguousarray(v).reshape(-1, n) for v in (g, a)]
    weight = np.ones(n, a.dtype) if w is None else np.ascontiguousarray(w).reshape(-1)
    LAYER_INPUT(made.reshape(-1, n), *rows, weight, mean.reshape(-1), rstd.reshape(-1))
    return (made,)


def layer_weight(g: Array, a: Array, shape: Sizes, mean: Array, rstd: Array) -> Any:
    """The gradients of weight and bias of layer norm, or None."""
    if a.dtype.itemsize == 2:
        from toytorch.kernels import halves  # whose modules nobody else needs at the start

        return halves.layer_weight(g, a, shape, mean, rstd)
    n = math.prod(shape)
    if not fits(a, g, mean, rstd) or mean.size < 2:
        return None
    dw, db = np.empty(n, a.dtype), np.empty(n, a.dtype)
    rows = [np.ascontiguousarray(v).reshape(-1, n) for v in (g, a)]
    LAYER_WEIGHT(dw, db, *rows, mean.reshape(-1), rstd.reshape(-1))
    return dw.reshape(shape), db.reshape(shape)


def layer_backward(
    g: Array, a: Array, shape: Sizes, w: Array | None, mean: Array, rstd: Array
) -> Any:
    """The gradients of x, weight and bias of layer norm in one pass over memory, or None.

    Blocks of rows are read for x's gradient, and once more from the cache for the others, whose
    sums over the blocks are added at the end.
    """
    n, cache = math.prod(shape), processor.this().l2
    if not fits(a, g, w, mean, rstd) or 3 * a.nbytes <= cache:
        return None
    rows = 3 * cache // (4 * 3 * n * a.itemsize)  # of g, x and dx, which leave a quarter free
    if rows * n < SMALLEST:
        return None
    rows = max(
        rows, ENOUGH // n
    )  # else calls cost more than the third-level cache (679 µs, now 490)
    g, x, made = (v.reshape(-1, n) for v in (*map(in_rows, (g, a)), np.empty(a.shape, a.dtype)))
    weight = np.ones(n, a.dtype) if w is None else in_rows(w).reshape(-1)
    mean, rstd = mean.reshape(-1), rstd.reshape(-1)
    sums = np.empty((2, -(-len(x) // rows), n), a.dtype)
    for k in range(sums.shape[1]):
        block = slice(k * rows, (k + 1) * rows)
        known = g[block], x[block]
        LAYER_INPUT(made[block], *known, weight, mean[block], rstd[block])
        LAYER_WEIGHT(*sums[:, k], *known, mean[block], rstd[block])
    dw, db = sums.sum(1)
    return made.reshape(a.shape), dw.reshape(shape), db.reshape(shape)

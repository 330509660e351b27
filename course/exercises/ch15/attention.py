"""Attention by a kernel of one's own, without the matrix of scores."""

import math

import numpy as np

from course.cases import case
from course.properties import agrees, untouched
from course.records import Exercise
from mytorch.kernels import Machine

flash = Exercise(
    "kernels.attention",
    "A small flash attention",
    chapter=15,
    minutes=40,
    prompt="""
    Attention is $\\operatorname{softmax}(q k^T / \\sqrt d) \\, v$. The matrix of scores has n · m elements, and
    softmax writes and reads it several times. **Flash attention** (Dao et al., 2022) never stores it: keys and
    values pass through shared memory in tiles, and the softmax goes on online.

    Write `flash_attention(machine, q, k, v, threads=8)`. It launches a kernel of yours on `machine`, a
    `Machine` of the exercise before, and returns the result. q is (n, d), k is (m, d), v is (m, w), arrays of
    float64; the result is a new array (n, w).

    * A block has `threads` threads, and a thread has one query: thread t of block b that in row
      b · threads + t. If n is no multiple of `threads`, the last threads have none, but they help to fetch.
    * A **tile** has `threads` keys and their values. Thread t fetches row t of both tiles into shared memory,
      if there is such a row. Then each thread goes over the tile with its query.
    * For each key, three things of a thread change: `most`, the largest score so far; `total`, the sum of
      $e^{\\text{score} - \\text{most}}$; and `sums`, the sum of the same weights times the values. If a score is
      larger than `most`, `total` and `sums` are scaled first. At the end the result is `sums / total`.
    * A `yield` is a barrier. You need two in each step, as in the tiled product.

    Predict the traffic: each query is read once, and each block reads all keys and values once. With b blocks
    that is n · d + b · m · (d + w) elements, and n · w are written. The checks count them.

    One query, d = w = 1, q = 1, the keys 0, 2, 1 and the values 10, 20, 30:

    | key | score | `most` | `total` | `sums` |
    | --- | --- | --- | --- | --- |
    | | | −∞ | 0 | 0 |
    | 0 | 0 | 0 | 1 | 10 |
    | 2 | 2 | 2 | 1 · e⁻² + 1 = 1.135 | 10 · e⁻² + 20 = 21.353 |
    | 1 | 1 | 2 | 1.135 + e⁻¹ = 1.503 | 21.353 + 30 · e⁻¹ = 32.390 |

    The result is 32.390 / 1.503 = 21.547.
    """,
    hints=(
        """
        Write the kernel as a function inside of `flash_attention`: it is a generator, since it has a `yield`, and it
        knows d, w, n and m from outside. The query, `most`, `total` and `sums` are ordinary variables of the thread,
        like registers. Only the two tiles are shared.
        """,
        """
        n = 3, m = 3, `threads=2`: two blocks with two tiles each. What the threads of block 1 do:

        | thread | its query | fetches from tile 0, then tile 1 | goes over |
        | --- | --- | --- | --- |
        | 0 | row 2 | key 0, then key 2 | 0, 1, barrier, 2 |
        | 1 | none | key 1, then nothing | nothing, barrier, nothing |

        Thread 1 reaches every `yield` all the same. `math.exp(-math.inf)` is 0, so the first key needs no special
        case: scaling nothing by 0 gives nothing.
        """,
        """
        ```python
        def flash_attention(machine, q, k, v, threads=8):
            n, d = q.shape
            m, w = v.shape
            out = np.zeros((n, w))

            def kernel(at, q, k, v, out):
                keys = at.shared("keys", at.threads, d)
                values = at.shared("values", at.threads, w)
                row = ...
                inside = row < n
                query = [q[row, i] for i in range(d)] if inside else []
                most, total, sums = -math.inf, 0.0, [0.0] * w
                for first in range(0, m, at.threads):
                    mine = first + at.thread
                    if mine < m:
                        for i in range(d):
                            ...
                        for i in range(w):
                            ...
                    yield
                    count = min(at.threads, m - first)
                    for j in range(count) if inside else ():
                        dot = ...
                        score = ...
                        larger = max(most, score)
                        shrink = ...
                        weight = ...
                        total = ...
                        sums = ...
                        most = larger
                    yield
                for i in range(w) if inside else ():
                    out[row, i] = ...

            machine.launch(kernel, ..., threads, q, k, v, out)
            return out
        ```
        """,
    ),
)


@flash.reference(
    {"kernel": "your code here: about 25 lines"},
    ("    n, d = q.shape\n    m, w = v.shape\n", "    n, w = len(q), v.shape[1]\n"),
)
def flash_attention(machine, q, k, v, threads=8):
    """Attention (n, w) of q (n, d), k (m, d), v (m, w) by a kernel."""
    n, d = q.shape
    m, w = v.shape
    out = np.zeros((n, w))

    def kernel(at, q, k, v, out):
        keys = at.shared("keys", at.threads, d)
        values = at.shared("values", at.threads, w)
        row = at.block * at.threads + at.thread
        inside = row < n
        query = [q[row, i] for i in range(d)] if inside else []
        most, total, sums = -math.inf, 0.0, [0.0] * w
        for first in range(0, m, at.threads):
            mine = first + at.thread
            if mine < m:
                for i in range(d):
                    keys[at.thread, i] = k[mine, i]
                for i in range(w):
                    values[at.thread, i] = v[mine, i]
            yield
            count = min(at.threads, m - first)
            for j in range(count) if inside else ():
                dot = sum(x * keys[j, i] for i, x in enumerate(query))
                score = dot / math.sqrt(d)
                larger = max(most, score)
                shrink = math.exp(most - larger)
                weight = math.exp(score - larger)
                total = total * shrink + weight
                sums = [
                    s * shrink + weight * values[j, i]
                    for i, s in enumerate(sums)
                ]
                most = larger
            yield
        for i in range(w) if inside else ():
            out[row, i] = sums[i] / total

    machine.launch(kernel, -(-n // threads), threads, q, k, v, out)
    return out


@flash.mutant("no kernel", why="""
    The result was computed by NumPy, with the whole matrix of scores. It is right, and the machine has read
    nothing. The exercise is the kernel.
    """)
def flash_attention(machine, q, k, v, threads=8):
    scores = q @ k.T / math.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True) @ v


flash.changed(
    "does not wait for the tile",
    """
    Threads began with a tile before all of its rows had been fetched. A `yield` has to stand between fetching and
    using.
    """,
    ("                    values[at.thread, i] = v[mine, i]\n            yield\n",
     "                    values[at.thread, i] = v[mine, i]\n"),
)

flash.changed(
    "fetches into a tile that is still needed",
    """
    The next tile was fetched while other threads still went over this one. The second `yield` waits for them. With
    one tile nothing shows; the race is between two steps.
    """,
    ("                most = larger\n            yield\n", "                most = larger\n"),
)

flash.changed(
    "threads without a query leave early",
    """
    Threads that have no query ended at once. They fetch rows of the tiles that others need, and the barriers wait
    for them.
    """,
    ("        inside = row < n\n", "        inside = row < n\n        if not inside:\n            return\n"),
)

flash.changed(
    "the values so far are not scaled",
    """
    `total` was scaled when a larger score came, and `sums` was not. Both are sums of the same weights, so both have
    to be scaled by the same factor.
    """,
    ("s * shrink + weight * values[j, i]", "s + weight * values[j, i]"),
)

flash.changed(
    "the total so far is not scaled",
    """
    `sums` was scaled when a larger score came, and `total` was not. Both are sums of the same weights, so both have
    to be scaled by the same factor.
    """,
    ("total = total * shrink + weight", "total = total + weight"),
)

flash.changed(
    "no largest score",
    """
    The exponentials were taken of the scores themselves. A score of 800 overflows. Subtract the largest score so far.
    """,
    ("larger = max(most, score)", "larger = 0.0"),
    ("shrink = math.exp(most - larger)", "shrink = 1.0"),
)

flash.changed(
    "no square root",
    """
    The scores were not divided by √d. The scores of long vectors are large, and the softmax then picks a single
    key.
    """,
    ("score = dot / math.sqrt(d)", "score = dot"),
)

flash.changed(
    "divides by d",
    """
    The scores were divided by d instead of √d. A product of vectors with d elements of size 1 has the size √d.
    """,
    ("dot / math.sqrt(d)", "dot / d"),
)

flash.changed(
    "goes over the whole tile",
    """
    The last tile was gone over to its end, though there are no keys any more. What lies there is `nan`, or
    the keys of the tile before.
    """,
    ("count = min(at.threads, m - first)", "count = at.threads"),
)

flash.changed(
    "reads keys from global memory",
    """
    Each thread read the keys from global memory instead of from the tile. The result is right, and every key is read by
    every query. Sharing the tile divides this by the number of threads.
    """,
    ("sum(x * keys[j, i] for i, x", "sum(x * k[first + j, i] for i, x"),
)

flash.changed(
    "forgets to divide",
    """
    The weighted sum of the values was returned without the division by `total`. The weights of a softmax add up to 1
    only after it.
    """,
    ("out[row, i] = sums[i] / total", "out[row, i] = sums[i]"),
)

flash.changed(
    "queries as many as keys",
    """
    The tiles went up to n, the number of queries, instead of m, that of keys. The two differ wherever somebody looks at
    another sequence than its own.
    """,
    ("for first in range(0, m, at.threads)", "for first in range(0, n, at.threads)"),
    ("if mine < m:", "if mine < min(n, m):"),
    ("min(at.threads, m - first)", "min(at.threads, min(n, m) - first)"),
)

flash.changed(
    "reads the query for each key",
    """
    The query was read from global memory anew for each key. It stays the same: read it once, and keep it in the
    thread's own variables.
    """,
    ("[q[row, i] for i in range(d)] if inside else []", "range(d)"),
    ("sum(x * keys[j, i] for i, x in enumerate(query))",
     "sum(q[row, i] * keys[j, i] for i in query)"),
)


def right(q, k, v):
    """What attention is."""
    scores = q @ k.T / math.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True) @ v


def _inputs(n, m, d, w, scale=1.0, seed=0):
    draw = np.random.default_rng([n, m, d, w, seed])
    return [scale * draw.standard_normal((n, d)), draw.standard_normal((m, d)), draw.standard_normal((m, w))]


def _run(f, arrays, threads):
    made = Machine()
    return made, f(made, *arrays, threads=threads)


def _result(f, arrays, threads):
    made, out = _run(f, arrays, threads)
    return np.asarray(out).round(6).tolist(), made.races


def _same(f, n, m, d, w, threads, scale=1.0):
    arrays = _inputs(n, m, d, w, scale)
    return case(f"n = {n}, m = {m}, d = {d}, w = {w}, threads = {threads}"
                + (f", queries of size {scale:g}" if scale != 1 else "") + ": the result, races",
                lambda: _result(f, arrays, threads)).gives((right(*arrays).round(6).tolist(), []), 1e-5)


@flash.check("one query")
def _(f):
    one = [np.array([[1.0]]), np.array([[0.0], [2.0], [1.0]]), np.array([[10.0], [20.0], [30.0]])]
    yield case("q = 1, keys 0, 2, 1, values 10, 20, 30, threads = 4: the result, races",
               lambda: _result(f, one, 4)).gives(([[21.546979]], []), 1e-5)
    yield _same(f, 1, 4, 4, 1, 4)


@flash.check("several queries and tiles")
def _(f):
    for sizes in ((4, 4, 2, 2, 4), (4, 8, 3, 2, 4), (8, 12, 2, 3, 4)):
        yield _same(f, *sizes)


@flash.check("sizes that are no multiples")
def _(f):
    for sizes in ((3, 3, 2, 2, 2), (5, 7, 4, 1, 4), (2, 9, 1, 2, 8), (9, 2, 2, 2, 4)):
        yield _same(f, *sizes)


@flash.check("large scores")
def _(f):
    yield _same(f, 4, 8, 4, 2, 4, scale=2000.0)


def _traffic(f, n, m, d, w, threads):
    made, _ = _run(f, _inputs(n, m, d, w), threads)
    return {"elements read": int(made.reads), "elements written": int(made.writes),
            "barriers": int(made.barriers)}


@flash.check("traffic, as predicted")
def _(f):
    for n, m, d, w, threads in ((8, 12, 3, 2, 4), (5, 7, 4, 1, 4)):
        blocks, tiles = -(-n // threads), -(-m // threads)
        yield case(f"n = {n}, m = {m}, d = {d}, w = {w}, threads = {threads}: counted by the machine",
                   lambda a=(n, m, d, w, threads): _traffic(f, *a)).gives(
            {"elements read": n * d + blocks * m * (d + w), "elements written": n * w,
             "barriers": 2 * blocks * tiles})


@flash.check("any sizes", hidden=True)
def _(f):
    def drawn(draw):
        n, m, d, w = (draw.randint(1, 6) for _ in range(4))
        return [*_inputs(n, m, d, w, draw.choice((1.0, 10.0)), draw.randint(0, 99)), draw.randint(1, 5)]

    def run(g):
        return lambda q, k, v, threads: _result(g, [q, k, v], threads)

    def tell(q, k, v, threads):
        return (f"n = {len(q)}, m = {len(k)}, d = {q.shape[1]}, w = {v.shape[1]}, threads = {threads}: "
                "the result, races")

    yield agrees(run(f), run(flash.answer.value), drawn, count=15, tell=tell)
    yield untouched(lambda q, k, v, threads: _result(f, [q, k, v], threads), drawn, count=3)

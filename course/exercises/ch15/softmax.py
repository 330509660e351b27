"""An online softmax in CUDA C."""

import numpy as np

from course.cases import case
from course.exercises.ch15.common import launched, matrix, races_of
from course.properties import every
from course.records import Exercise

softmax = Exercise(
    "kernels.softmax",
    "An online softmax",
    chapter=15,
    minutes=35,
    prompt="""
    The softmax of a row is $e^{x_i - m} / s$ with the largest element $m$ and $s = \\sum_j e^{x_j - m}$.
    Usually that takes three passes over the row: for $m$, for $s$, for the results. The **online** softmax
    (Milakov and Gimelshein, 2018) finds $m$ and $s$ in one pass. It keeps the largest element *so far* and
    the sum *so far*. When a larger element comes, the sum is scaled:

    $$s \\leftarrow s \\cdot e^{m_{\\text{old}} - m_{\\text{new}}} + e^{x - m_{\\text{new}}}$$

    Two such pairs, of two parts of the row, are merged in the same way. Write the kernel `softmax`, a block
    of 64 threads for each row, as two parts in CUDA C: `once`, the pass, and `merge`. `begin` and `end` are given.

    * `once`: thread t looks at the elements t, t + 64, t + 128, … of `row`, and keeps `most` and `total`. Each
      element is read **once**. Begin with a `most` of −1e30f and a `total` of 0: a thread without elements
      keeps these, and takes no part in the sum.
    * `merge`: the pairs of all threads become one, in `mosts[0]` and `totals[0]`. Thread t stores its pair at
      place t. Then, for s = 32, 16, 8, …, 1, each thread t < s merges the pair at place t + s into that at
      place t. Every thread of the block must reach each `__syncthreads()`.
    * `end` waits, and then writes the results: the second time that an element is read.

    For one thread and the elements 1, 3, 2:

    | element | `most` | `total` |
    | --- | --- | --- |
    | | −1e30 | 0 |
    | 1 | 1 | 0 · 0 + 1 = 1 |
    | 3 | 3 | 1 · e⁻² + 1 = 1.135 |
    | 2 | 3 | 1.135 · 1 + e⁻¹ = 1.503 |
    """,
    hints=(
        """
        An element is a pair as well: its largest element is itself, and its sum is 1. So one rule serves both
        parts: the new largest is the larger of the two, and each sum is scaled by e to the difference between
        its own largest and the new one.
        """,
        """
        Merging (3, 1.503) with (5, 2): the larger is 5, the sum 1.503 · e⁻² + 2 · e⁰ = 2.203. So (5, 2.203).

        Merging with a thread that had no elements, (3, 1.503) with (−1e30, 0): the larger is 3, the sum
        1.503 · e⁰ + 0 · e^(−1e30 − 3) = 1.503 + 0 · 0.

        Who has to wait: before the first merge, for everybody's pair. After each round, because the next
        round reads what other threads have just written. The barrier stands in the loop, but outside of
        the `if (t < s)`.
        """,
        """
        The gaps are texts in CUDA C:

        ```python
        def softmax_source():
            begin = '''
        #define THREADS 64
        extern "C" __global__ void softmax(const float* x, float* out, int n) {
            __shared__ float mosts[THREADS], totals[THREADS];
            const float* row = x + blockIdx.x * n;
            int t = threadIdx.x;
            float most = -1e30f, total = 0.0f;
        '''
            once = ...
            merge = ...
            end = '''
            __syncthreads();
            for (int i = t; i < n; i += THREADS)
                out[blockIdx.x * n + i] = expf(row[i] - mosts[0]) / totals[0];
        }
        '''
            return begin + once + merge + end
        ```

        In the pass: `float v = row[i], larger = fmaxf(most, v);`, then two lines for `total` and `most`. In the
        merge: `for (int s = THREADS / 2; s > 0; s /= 2) {`, first the barrier, then `if (t < s) { … }`.
        """,
    ),
)


@softmax.stub
def softmax_source():
    """CUDA C of the kernel `softmax`: a block for each row of x."""
    begin = '''
#define THREADS 64
extern "C" __global__ void softmax(const float* x, float* out, int n) {
    __shared__ float mosts[THREADS], totals[THREADS];
    const float* row = x + blockIdx.x * n;
    int t = threadIdx.x;
    float most = -1e30f, total = 0.0f;
'''
    once = ""  # your code here: the pass, about 5 lines of CUDA C
    merge = ""  # your code here: about 10 lines
    end = '''
    __syncthreads();
    for (int i = t; i < n; i += THREADS)
        out[blockIdx.x * n + i] = expf(row[i] - mosts[0]) / totals[0];
}
'''
    if not once:  # nothing is written yet
        raise NotImplementedError
    return begin + once + merge + end


@softmax.reference()
def softmax_source():
    """CUDA C of the kernel `softmax`: a block for each row of x."""
    begin = '''
#define THREADS 64
extern "C" __global__ void softmax(const float* x, float* out, int n) {
    __shared__ float mosts[THREADS], totals[THREADS];
    const float* row = x + blockIdx.x * n;
    int t = threadIdx.x;
    float most = -1e30f, total = 0.0f;
'''
    once = '''
    for (int i = t; i < n; i += THREADS) {
        float v = row[i], larger = fmaxf(most, v);
        total = total * expf(most - larger) + expf(v - larger);
        most = larger;
    }
'''
    merge = '''
    mosts[t] = most;
    totals[t] = total;
    for (int s = THREADS / 2; s > 0; s /= 2) {
        __syncthreads();
        if (t < s) {
            float larger = fmaxf(mosts[t], mosts[t + s]);
            totals[t] = totals[t] * expf(mosts[t] - larger)
                + totals[t + s] * expf(mosts[t + s] - larger);
            mosts[t] = larger;
        }
    }
'''
    end = '''
    __syncthreads();
    for (int i = t; i < n; i += THREADS)
        out[blockIdx.x * n + i] = expf(row[i] - mosts[0]) / totals[0];
}
'''
    return begin + once + merge + end


softmax.changed(
    "the sum so far is not scaled",
    """
    A larger element came, and the sum kept the terms that were computed with the old one. They are too large
    by e to the difference. Scale the sum whenever the largest element changes.
    """,
    ("total = total * expf(most - larger) + expf(v - larger);", "total += expf(v - larger);"),
)

softmax.changed(
    "sums are merged without scaling",
    """
    The sums of two threads were added as they are. Each of them belongs to its own largest element: scale both
    to the larger one first.
    """,
    ("            totals[t] = totals[t] * expf(mosts[t] - larger)\n"
     "                + totals[t + s] * expf(mosts[t + s] - larger);\n",
     "            totals[t] = totals[t] + totals[t + s];\n"),
)

softmax.changed(
    "no largest element",
    """
    The exponentials were taken of the elements themselves. In float32 `expf(89.0f)` is infinite, and the
    result is not a number. Subtract the largest element.
    """,
    ("float v = row[i], larger = fmaxf(most, v);", "float v = row[i], larger = 0.0f;"),
    ("            float larger = fmaxf(mosts[t], mosts[t + s]);\n", "            float larger = 0.0f;\n"),
)

softmax.changed(
    "three passes",
    """
    One loop found the largest element and a second one the sum, so each element was read three times with
    that for the results. The result is right; a third of the traffic is not needed.
    """,
    ("    for (int i = t; i < n; i += THREADS) {\n"
     "        float v = row[i], larger = fmaxf(most, v);\n"
     "        total = total * expf(most - larger) + expf(v - larger);\n"
     "        most = larger;\n    }\n",
     "    for (int i = t; i < n; i += THREADS) most = fmaxf(most, row[i]);\n"
     "    for (int i = t; i < n; i += THREADS) total += expf(row[i] - most);\n"),
)

softmax.changed(
    "does not wait between the rounds",
    """
    There was one barrier before the first round, and none between the rounds. The next round reads pairs that
    other threads write in this one. Wait in each round.
    """,
    ("    for (int s = THREADS / 2; s > 0; s /= 2) {\n        __syncthreads();\n",
     "    __syncthreads();\n    for (int s = THREADS / 2; s > 0; s /= 2) {\n"),
)

softmax.changed(
    "does not wait before the first round",
    """
    The barrier stood at the end of each round. Before the first round nobody had waited, and a thread read the
    pair of another one that may not have been stored yet.
    """,
    ("        __syncthreads();\n        if (t < s) {", "        if (t < s) {"),
    ("            mosts[t] = larger;\n        }\n",
     "            mosts[t] = larger;\n        }\n        __syncthreads();\n"),
)

softmax.changed(
    "a barrier that not all reach",
    """
    `__syncthreads()` stood inside of `if (t < s)`. It waits for all threads of the block, and the others never
    come: on a GPU the kernel hangs or goes on with wrong values. Put it outside of the branch.
    """,
    ("        __syncthreads();\n        if (t < s) {", "        if (t < s) {\n            __syncthreads();"),
)

softmax.changed(
    "begins with the first element of the row",
    """
    Each thread began with element 0 of the row and a sum of 1, so this element was counted 64 times. A thread
    that has seen nothing has the pair (−1e30, 0).
    """,
    ("    once = '''\n", "    once = '''\n    most = row[0];\n    total = 1.0f;\n"),
)

softmax.changed(
    "only the first 64 elements",
    """
    Each thread looked at one element. A row may have more elements than a block has threads: go on in steps of
    `THREADS`.
    """,
    ("    for (int i = t; i < n; i += THREADS) {\n", "    for (int i = t; i < n && i < THREADS; i += THREADS) {\n"),
)

softmax.changed(
    "neighbours instead of strides",
    """
    Thread t looked at a part of the row of its own, from t · n / 64 on. Then the threads of a warp read addresses that
    are far from each other, and each fetches sectors of its own. Neighbouring threads read neighbouring elements.
    """,
    ("    for (int i = t; i < n; i += THREADS) {\n",
     "    int part = (n + THREADS - 1) / THREADS;\n"
     "    for (int i = t * part; i < n && i < (t + 1) * part; ++i) {\n"),
)


def _rows(n, rows=3, scale=1.0, shift=0.0):
    return matrix(rows, n, n) * np.float32(scale) + np.float32(shift)


def _run(source, x):
    out = np.full(x.shape, np.nan, np.float32)
    return launched(source, len(x), 64, x, out, x.shape[1]), out


def _right(x):
    e = np.exp(x.astype(float) - x.max(1, keepdims=True).astype(float))
    return e / e.sum(1, keepdims=True)


def _error(source, x):
    """How many elements are wrong, and races."""
    done, out = _run(source, x)
    wrong = np.isnan(out) | (np.abs(out - _right(x)) > 1e-5)
    return f"{int(wrong.sum())} of {x.size} elements wrong", races_of(done)


def _cases(f, x, said):
    return case(f"{said}: wrong elements, races", lambda: _error(f(), x)).gives(
        (f"0 of {x.size} elements wrong", []))


@softmax.check("rows of 64 elements")
def _(f):
    yield _cases(f, np.zeros((2, 64), np.float32), "2 rows of 64 zeros")
    yield _cases(f, _rows(64), "3 rows of 64 elements")


@softmax.check("longer and shorter rows")
def _(f):
    yield _cases(f, _rows(200), "3 rows of 200 elements")
    yield _cases(f, np.linspace(-3, 3, 192, dtype=np.float32)[None], "a row of 192 elements that grow")
    yield _cases(f, _rows(5), "3 rows of 5 elements, so most threads have none")


@softmax.check("large elements")
def _(f):
    yield _cases(f, _rows(100, scale=30.0), "elements between -100 and 100")
    yield _cases(f, _rows(100, shift=1000.0), "elements around 1000")
    yield _cases(f, _rows(100, shift=-1000.0), "elements around -1000")


@softmax.check("traffic, as predicted")
def _(f):
    def counted(n):
        totals = _run(f(), _rows(n, 4))[0].totals
        return {"reads of each element": totals.read / (4 * 4 * n),
                "writes of each element": totals.written / (4 * 4 * n),
                "sectors, compared with the least possible": totals.sectors / totals.least_sectors}

    yield case("4 rows of 256 elements, counted by the emulator", lambda: counted(256)).gives(
        {"reads of each element": 2.0, "writes of each element": 1.0,
         "sectors, compared with the least possible": 1.0})


@softmax.check("any rows", hidden=True)
def _(f):
    def rows():
        for n in (1, 2, 63, 65, 127, 300):
            yield _cases(f, _rows(n, 2, 4.0, n - 50.0), f"2 rows of {n} elements")

    yield every("rows of 1 to 300 elements", rows)

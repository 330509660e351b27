"""Wrong answers of chapter 15."""

import math
from types import SimpleNamespace

import numpy as np

from tests.course.wrong import like, wrong

# -- kernels.warp

like(
    "kernels.warp",
    "sectors of 64 bytes",
    ("{a // 32 for a in wanted}", "{a // 64 for a in wanted}"),
)
like("kernels.warp", "16 banks", ("a // 4 % 32", "a // 4 % 16"))
like("kernels.warp", "at least one wavefront", ("default=0", "default=1"))
like(
    "kernels.warp",
    "wavefronts before sectors",
    (
        "return len(sectors), max(banks.values(), default=0)",
        "return max(banks.values(), default=0), len(sectors)",
    ),
)
like(
    "kernels.warp",
    "gives banks instead of wavefronts",
    ("max(banks.values(), default=0)", "len(banks)"),
)


@wrong("kernels.warp", "what lies between the first and the last address")
def warp_cost(addresses):
    wanted = [a for a in addresses if a is not None]
    if not wanted:
        return 0, 0
    span = max(wanted) + 4 - min(wanted)
    return -(-span // 32), -(-span // 128)


@wrong("kernels.warp", "breaks where a thread takes no part")
def warp_cost(addresses):
    banks = [0] * 32
    for word in {a // 4 for a in addresses}:
        banks[word % 32] += 1
    return len({a // 32 for a in addresses}), max(banks)


# -- kernels.product

like(
    "kernels.product",
    "the rows of the right tile",
    ("b[j * n + column]", "b[j * k + column]"),
)
like(
    "kernels.product",
    "the last column is left out",
    ("for (int t = 0; t < TILE; ++t)", "for (int t = 0; t < TILE - 1; ++t)"),
)
like(
    "kernels.product",
    "the left tile transposed",
    ("left[y][x] = row < m", "left[x][y] = row < m"),
)
like(
    "kernels.product",
    "writes in each step",
    (
        "        __syncthreads();  // nobody needs them any more\n",
        "        if (row < m && column < n) c[row * n + column] = sum;\n"
        "        __syncthreads();  // nobody needs them any more\n",
    ),
)
like(
    "kernels.product",
    "the edge is left to chance",
    ("row < m && i < k ? a[row * k + i] : 0.0f", "i < k ? a[row * k + i] : 0.0f"),
)
like(
    "kernels.product",
    "a semicolon is missing",
    ("c[row * n + column] = sum;", "c[row * n + column] = sum"),
)
like(
    "kernels.product",
    "the product of the transposed",
    ("c[row * n + column] = sum;", "c[column * m + row] = sum;"),
)

# -- kernels.softmax

like(
    "kernels.softmax",
    "scales by the difference the other way round",
    ("total * expf(most - larger)", "total * expf(larger - most)"),
)
like(
    "kernels.softmax",
    "the merge stops one round early",
    ("for (int s = THREADS / 2; s > 0; s /= 2)", "for (int s = THREADS / 2; s > 1; s /= 2)"),
)
like(
    "kernels.softmax",
    "the largest element of the merge is not kept",
    ("            mosts[t] = larger;\n", ""),
)
like(
    "kernels.softmax",
    "begins at zero instead of far below",
    ("    once = '''\n", "    once = '''\n    most = 0.0f;\n"),
)
like(
    "kernels.softmax",
    "all threads merge",
    ("        if (t < s) {", "        if (t + s < THREADS) {"),
)
like(
    "kernels.softmax",
    "infinity minus infinity",
    ("    once = '''\n", "    once = '''\n    most = -INFINITY;\n"),
)
like(
    "kernels.softmax",
    "only half of the sum is scaled",
    ("totals[t + s] * expf(mosts[t + s] - larger)", "totals[t + s]"),
)

# -- kernels.machine

like(
    "kernels.machine",
    "threads in reverse order",
    ("for thread in range(threads):", "for thread in reversed(range(threads)):"),
)
like(
    "kernels.machine",
    "races of an element come once for each pair",
    ("self.found = set()", "self.found = []"),
    ("self.machine.found.add((self.name, index))", "self.machine.found.append((self.name, index))"),
)
like(
    "kernels.machine",
    "names arguments from one",
    ('f"argument {n}"', 'f"argument {n + 1}"'),
)
like(
    "kernels.machine",
    "counts barriers by thread",
    ("self.barriers += bool(waiting)", "self.barriers += len(waiting)"),
)
like(
    "kernels.machine",
    "the index of a vector is no tuple",
    ("self.machine.found.add((self.name, index))", "self.machine.found.add((self.name, index[0]))"),
)
like(
    "kernels.machine",
    "indices of shared memory are not looked at",
    ("inside = all(", "inside = not self.counted or all("),
)
like(
    "kernels.machine",
    "works on copies of the arrays",
    (
        'self.Memory(self, f"argument {n}", a, True)',
        'self.Memory(self, f"argument {n}", a.copy(), True)',
    ),
)
like(
    "kernels.machine",
    "the same shared memory for every name",
    ("if name not in memory:", "if not memory:"),
    ("return memory[name]", "return next(iter(memory.values()))"),
)
like(
    "kernels.machine",
    "a barrier orders the read, not the write after it",
    (
        "            self.compare(index, self.written)\n            self.compare(index, self.read)\n",
        "            self.compare(index, self.read)\n",
    ),
)
like(
    "kernels.machine",
    "barriers are counted for the whole launch",
    ("        passed = 0\n", "        passed = self.barriers\n"),
    ("b == block and (t == thread or p < passed)", "(b, t) == (block, thread) or p < passed"),
)


@wrong("kernels.machine", "real arrays, so nobody sees anything")
class Machine:
    def __init__(self):
        self.reads = self.writes = self.barriers = 0
        self.races = []

    def launch(self, kernel, blocks, threads, *arguments):
        for block in range(blocks):
            memory = {}

            def shared(name, *shape, memory=memory):
                return memory.setdefault(name, np.full(shape, np.nan))

            runs = [
                kernel(
                    SimpleNamespace(
                        block=block, thread=t, blocks=blocks, threads=threads, shared=shared
                    ),
                    *arguments,
                )
                for t in range(threads)
            ]
            while any(run is not None and next(run, "ended") != "ended" for run in runs):
                self.barriers += 1


# -- kernels.attention

like(
    "kernels.attention",
    "multiplies by the root",
    ("dot / math.sqrt(d)", "dot * math.sqrt(d)"),
)
like(
    "kernels.attention",
    "the root of the values' width",
    ("dot / math.sqrt(d)", "dot / math.sqrt(w)"),
)
like(
    "kernels.attention",
    "one block too few",
    ("-(-n // threads)", "max(1, n // threads)"),
)
like(
    "kernels.attention",
    "the largest score only, no sum",
    ("total = total * shrink + weight", "total = max(total * shrink, weight)"),
)
like(
    "kernels.attention",
    "a block for each query",
    ("row = at.block * at.threads + at.thread", "row = at.block + at.thread"),
)
like(
    "kernels.attention",
    "threads without a query do not wait at the end",
    (
        "                most = larger\n            yield\n",
        "                most = larger\n            if inside:\n                yield\n",
    ),
)


@wrong("kernels.attention", "scores of all keys first, in the thread's own memory")
def flash_attention(machine, q, k, v, threads=8):
    n, d = q.shape
    m, w = v.shape
    out = np.zeros((n, w))

    def kernel(at, q, k, v, out):
        row = at.block * at.threads + at.thread
        if row < n:
            scores = [sum(q[row, i] * k[j, i] for i in range(d)) / math.sqrt(d) for j in range(m)]
            most = max(scores)
            weights = [math.exp(s - most) for s in scores]
            for i in range(w):
                out[row, i] = sum(x * v[j, i] for j, x in enumerate(weights)) / sum(weights)

    machine.launch(kernel, -(-n // threads), threads, q, k, v, out)
    return out

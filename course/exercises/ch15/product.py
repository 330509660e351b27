"""A tiled product of matrices in CUDA C."""

import numpy as np

from course.cases import case
from course.exercises.ch15.common import launched, matrix, races_of
from course.properties import every
from course.records import Exercise

product = Exercise(
    "kernels.product",
    "A tiled product",
    chapter=15,
    minutes=30,
    prompt="""
    Each element of c = a · b needs a row of a and a column of b. If each thread reads both from global
    memory, every element of a is read n times. Write a kernel in CUDA C whose blocks fetch **tiles** into
    shared memory, so that 16 threads use what one of them has read. `product_source()` returns the text of
    the kernel in three parts: `begin`, `loop` and `end`. The first one is given, and the other two are yours.

    * a is (m, k), b is (k, n), c is (m, n). Rows lie one after the other: element (i, j) of a is
      `a[i * k + j]`.
    * A block has 16 × 16 threads and computes a tile of c. Thread (x, y) of the block, `threadIdx.x` and
      `threadIdx.y`, computes one element of it, in the row and the column that `begin` works out.
    * `loop` goes over the tiles along k. Each thread fetches one element of a into `left` and one of b into
      `right`; where the matrix has ended it puts 0. Then each thread adds 16 products to `sum`.
    * Threads are not in step. `__syncthreads()` waits for all threads of the block. You need it in two
      places. All threads of a block must reach it, those outside of c as well.
    * `end` writes `sum` if the element is in c.

    Predict the traffic before you write: each tile of c reads 16 rows of a and 16 columns of b, so all of
    a is read once for each 16 columns of c. The checks count the bytes. For m = n = k = 64:

    | kernel | elements read | flops a byte |
    | --- | --- | --- |
    | a thread reads its row and column | 64 · 64 · 128 = 524,288 | 0.25 |
    | tiles of 16 | 4 · 4 tiles, 4 steps, 512 each = 32,768 | 3.6 |

    Neighbouring threads of a warp differ in x, so let x run along rows: then 16 threads read 64 bytes side
    by side, and write so, too.
    """,
    hints=(
        """
        In each step of the loop the block needs the tile of a in *its* rows and the columns from `first` to
        `first + 15`, and the tile of b in the rows from `first` on and *its* columns. Thread (x, y) fetches
        element (y, x) of both tiles. Wait after fetching, and wait again before the tiles are overwritten.
        """,
        """
        m = n = k = 32, the block with `blockIdx.x` = 1, `blockIdx.y` = 0, its thread x = 3, y = 2. It
        computes c[2][19].

        | step | fetches | then adds |
        | --- | --- | --- |
        | `first` = 0 | a[2][3] to left[2][3], b[2][19] to right[2][3] | left[2][i] · right[i][3], 16 times |
        | `first` = 16 | a[2][19] to left[2][3], b[18][19] to right[2][3] | left[2][i] · right[i][3], 16 times |

        left[2][i] was fetched by thread (i, 2), and right[i][3] by thread (3, i). So nobody may add before
        all have fetched, and nobody may fetch again before all have added.
        """,
        """
        The gaps are texts in CUDA C:

        ```python
        def product_source():
            begin = '''
        #define TILE 16
        extern "C" __global__ void product(
            const float* a, const float* b, float* c, int m, int n, int k
        ) {
            __shared__ float left[TILE][TILE], right[TILE][TILE];
            int x = threadIdx.x, y = threadIdx.y;
            int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
            float sum = 0.0f;
        '''
            loop = ...
            end = ...
            return begin + loop + end
        ```

        In the loop: `for (int first = 0; first < k; first += TILE) {`, two assignments with `? :` that put 0
        where `row < m && first + x < k` is wrong, and likewise for b, a barrier, the inner loop, a barrier.
        """,
    ),
)


@product.stub
def product_source():
    """CUDA C of the kernel `product`: c (m, n) = a (m, k) · b (k, n)."""
    begin = '''
#define TILE 16
extern "C" __global__ void product(
    const float* a, const float* b, float* c, int m, int n, int k
) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0.0f;
'''
    loop = ""  # your code here: about 8 lines of CUDA C
    end = ""  # your code here: about 2 lines
    if not loop:  # nothing is written yet
        raise NotImplementedError
    return begin + loop + end


@product.reference()
def product_source():
    """CUDA C of the kernel `product`: c (m, n) = a (m, k) · b (k, n)."""
    begin = '''
#define TILE 16
extern "C" __global__ void product(
    const float* a, const float* b, float* c, int m, int n, int k
) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0.0f;
'''
    loop = '''
    for (int first = 0; first < k; first += TILE) {
        int i = first + x, j = first + y;
        left[y][x] = row < m && i < k ? a[row * k + i] : 0.0f;
        right[y][x] = j < k && column < n ? b[j * n + column] : 0.0f;
        __syncthreads();  // the tiles are there
        for (int t = 0; t < TILE; ++t) sum += left[y][t] * right[t][x];
        __syncthreads();  // nobody needs them any more
    }
'''
    end = '''
    if (row < m && column < n) c[row * n + column] = sum;
}
'''
    return begin + loop + end


product.changed(
    "does not wait for the tiles",
    """
    Threads began to add before all had fetched. What another thread was to fetch may still be the old
    value, or nothing. `__syncthreads()` has to stand between writing shared memory and reading what others
    wrote.
    """,
    ("        __syncthreads();  // the tiles are there\n", ""),
)

product.changed(
    "overwrites tiles that are still needed",
    """
    A fast thread went on to the next step and overwrote elements of the tiles that a slow one still reads.
    The second `__syncthreads()` waits until everybody is done with them. One step along k hides this
    mistake; several show it.
    """,
    ("        __syncthreads();  // nobody needs them any more\n", ""),
)

product.changed(
    "reads behind the end",
    """
    The kernel read elements that a matrix does not have. The last tiles reach over the edge if the sizes
    are no multiples of 16: put 0 there, which adds nothing to a sum.
    """,
    ("row < m && i < k ? a[row * k + i] : 0.0f", "a[row * k + i]"),
    ("j < k && column < n ? b[j * n + column] : 0.0f", "b[j * n + column]"),
)

product.changed(
    "leaves out the rest of k",
    """
    Only whole tiles along k were added up. The last, incomplete one counts as well, filled up with zeros.
    """,
    ("first < k; first", "first + TILE <= k; first"),
)

product.changed(
    "threads outside leave early",
    """
    Threads outside of c returned at once. They are needed: they fetch elements for others, and a barrier
    waits for all threads of the block. Let them go along, and ask at the end who writes.
    """,
    ("    loop = '''\n    for (int first",
     "    loop = '''\n    if (row >= m || column >= n) return;\n    for (int first"),
)

product.changed(
    "writes outside of c",
    """
    Every thread wrote its sum. Those beyond the edge write behind the end of c, or into the next row.
    """,
    ("    if (row < m && column < n) c[row * n + column] = sum;", "    c[row * n + column] = sum;"),
)

product.changed(
    "the sum begins anew in each step",
    """
    Each step along k set the sum to 0 first. The sum goes over all tiles: it begins once, before the loop.
    """,
    ("        for (int t = 0; t < TILE; ++t)", "        sum = 0.0f;\n        for (int t = 0; t < TILE; ++t)"),
)

product.changed(
    "tiles without shared use",
    """
    Each thread read all it needs from global memory. The result is right, and each element of a is
    fetched n times. Fetch it once for a block, into `left` and `right`.
    """,
    ("    for (int first = 0; first < k; first += TILE) {\n        int i = first + x, j = first + y;\n"
     "        left[y][x] = row < m && i < k ? a[row * k + i] : 0.0f;\n"
     "        right[y][x] = j < k && column < n ? b[j * n + column] : 0.0f;\n"
     "        __syncthreads();  // the tiles are there\n"
     "        for (int t = 0; t < TILE; ++t) sum += left[y][t] * right[t][x];\n"
     "        __syncthreads();  // nobody needs them any more\n    }\n",
     "    left[y][x] = right[y][x] = 0.0f;\n    if (row < m && column < n)\n"
     "        for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];\n"),
)

product.changed(
    "x and y exchanged",
    """
    The right tile was stored transposed. Thread (x, y) fetches element (y, x) of the tile, and the products
    run along the *rows* of `right`.
    """,
    ("right[y][x] = j < k", "right[x][y] = j < k"),
)


def _run(source, m, n, k):
    a, b, c = matrix(m, k, 1), matrix(k, n, 2), np.full((m, n), np.nan, np.float32)
    done = launched(source, (-(-n // 16), -(-m // 16)), (16, 16), a, b, c, m, n, k)
    return done, a, b, c


def _error(source, m, n, k):
    """How far c is from the product of the matrices, and races."""
    done, a, b, c = _run(source, m, n, k)
    wrong = np.abs(c - a.astype(float) @ b.astype(float)) > 1e-4 * k
    wrong |= np.isnan(c)
    return f"{int(wrong.sum())} of {m * n} elements wrong", races_of(done)


def _right(m, n):
    return f"0 of {m * n} elements wrong", []


@product.check("one tile")
def _(f):
    yield case("m = n = k = 16: wrong elements, races", lambda: _error(f(), 16, 16, 16)).gives(_right(16, 16))


@product.check("several tiles")
def _(f):
    for m, n, k in ((16, 16, 48), (32, 48, 32)):
        yield case(f"m = {m}, n = {n}, k = {k}: wrong elements, races",
                   lambda m=m, n=n, k=k: _error(f(), m, n, k)).gives(_right(m, n))


@product.check("sizes that are no multiples of 16")
def _(f):
    for m, n, k in ((16, 16, 20), (5, 7, 3), (20, 33, 17)):
        yield case(f"m = {m}, n = {n}, k = {k}: wrong elements, races",
                   lambda m=m, n=n, k=k: _error(f(), m, n, k)).gives(_right(m, n))


def _traffic(source, m, n, k):
    totals = _run(source, m, n, k)[0].totals
    return {"elements read": totals.read // 4, "elements written": totals.written // 4}


@product.check("traffic, as predicted")
def _(f):
    for m, n, k in ((48, 32, 64), (20, 33, 17)):
        across, down = -(-n // 16), -(-m // 16)
        wanted = {"elements read": m * k * across + k * n * down, "elements written": m * n}
        yield case(f"m = {m}, n = {n}, k = {k}: counted by the emulator",
                   lambda m=m, n=n, k=k: _traffic(f(), m, n, k)).gives(wanted)

    def sectors():
        totals = _run(f(), 48, 32, 64)[0].totals
        return totals.sectors / totals.least_sectors

    yield case("m = 48, n = 32, k = 64: sectors, compared with the least possible", sectors).gives(1.0)


@product.check("any sizes", hidden=True)
def _(f):
    def sizes():
        for m, n, k in ((1, 1, 1), (17, 1, 31), (1, 18, 16), (33, 16, 2), (16, 31, 33)):
            yield case(f"m = {m}, n = {n}, k = {k}: wrong elements, races",
                       lambda m=m, n=n, k=k: _error(f(), m, n, k)).gives(_right(m, n))

    yield every("five more sizes", sizes)

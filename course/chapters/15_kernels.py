# %% [markdown] slide="slide"
# # 15 · Kernels
#
# Two kernels transpose a matrix. Both read each element once and write it once, with the same number
# of threads. On a GPU one of them takes several times as long as the other.
#
# > **The question of this chapter:** what does a GPU do with your threads, and what does a line of
# > a kernel cost before anything has run?

# %% [markdown] slide="notes"
# 45 minutes: what a warp fetches 6, the transposition and its banks 8, the reduction 4, a race 4,
# exercise 1 live 8, the tiled product 6, prediction and counts 5, traps 4. No GPU is needed.

# %% keep=true slide="more" show="output"
import math
from collections import Counter
from types import SimpleNamespace

import numpy as np

import toytorch as torch
from course import check, hint, look, milestone, setup, use
from toytorch import viz
from toytorch.facts.occupancy import occupancy

setup()
viz.warp_access([4 * 96 * t for t in range(32)], title="a column")

# %% [markdown]
# This is **one** write of the slow kernel. 32 threads write 32 elements below each other in a matrix with
# rows of 96 elements. Memory comes in sectors of 32 bytes. Each thread hits another one, so 32 sectors
# move, and an eighth of their bytes is wanted. Along a row it would be four sectors.
#
# ### No GPU needed
#
# `torch.cuda.kernel(source)` takes a kernel in CUDA C. On arrays of the CPU it runs in an **emulator**: results
# are those of a GPU, and instead of a time you get counts, the same at every run. With a GPU the same source runs
# on the GPU.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# A kernel is the program of *one* thread. This one adds two vectors of 40 elements, with two blocks of 32 threads.
# **Predict:** what does the last thread do? And what happens without the `if`?

# %% [markdown] slide="notes"
# Thread 31 of block 1 has i = 63. Without the `if` it would write behind the end of the array.
# Let somebody work out blockIdx.x * blockDim.x + threadIdx.x aloud.

# %% slide="more"
ADD = """
extern "C" __global__ void add(const float* x, const float* y,
                               float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}"""
x = np.arange(40, dtype=np.float32)
out = np.zeros(40, np.float32)
done = torch.cuda.kernel(ADD)[2, 32](x, x, out, 40)
print("right:", np.array_equal(out, 2 * x))
totals = done.totals
print(f"{done.threads} threads, {totals.read} bytes read,",
      f"{totals.written} written, {totals.flops} flops")
print(f"{totals.sectors} sectors, {totals.least_sectors} at best;",
      f"{totals.divergent} of {totals.branches} branches diverge")

# %% [markdown]
# The **grid** has blocks, a **block** has threads, and 32 neighbouring threads of a block are a **warp**. All threads
# of a warp run the same instruction at the same time. Where its threads take different branches of an `if`,
# it runs both one after the other: it *diverges*. That happens in the last warp here.
#
# `done` is the report. Shown in a notebook, it has the source with what each line has cost:

# %%
done

# %% [markdown]
# The column *global* counts the sectors of each line. The first warp makes three requests of four sectors, the least
# there can be for 32 floats. The second warp has eight elements, and its three requests need one sector each.

# %% [markdown] slide="slide"
# ## Play: what a warp fetches
#
# Thread t of a warp reads `x[t]`: four sectors. **Predict** how many it is for `x[2 * t]` and `x[t + 3]`.

# %% [markdown] slide="notes"
# Eight and five. The second one: 128 bytes that do not begin at a sector touch one more.

# %% slide="more" show="output"
viz.warp_access([4 * t for t in range(32)], title="x[t]")

# %% slide="subslide" show="output"
viz.warp_access([8 * t for t in range(32)], title="x[2 * t]")

# %% slide="more" show="output"
viz.warp_access([12 + 4 * t for t in range(32)], title="x[t + 3]")

# %% [markdown] slide="notes"
# Three words of the first sector and five of the last one are fetched for nothing.

# %% [markdown]
# A request that touches few sectors is **coalesced**. What counts is which addresses the threads of *one warp* touch
# at the *same time*. What one thread touches one after the other does not matter here, and that is the opposite of
# chapter 11: there one thread should walk along a row, here neighbouring threads should stand side by side.

# %% [markdown] slide="slide"
# ## Play: a transposition through shared memory
#
# **Shared memory** belongs to a block. It lies in the multiprocessor, and any order is fine there. So a tile is
# fetched by rows, turned, and written by rows. Step through a tile of 4 × 4:

# %% [markdown] slide="notes"
# Ask before each step which cells will be written. `__syncthreads()` waits until all threads of the
# block have come to it.

# %%
def transposed(tile, columns):
    """A transposition of tiles, each row of which has so many columns."""
    return f"""
extern "C" __global__ void transpose(const float* x, float* out,
                                     int rows, int cols) {{
    __shared__ float tile[{tile}][{columns}];
    int c = blockIdx.x * {tile} + threadIdx.x;
    int r = blockIdx.y * {tile} + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = x[r * cols + c];
    __syncthreads();
    c = blockIdx.y * {tile} + threadIdx.x;
    r = blockIdx.x * {tile} + threadIdx.y;
    out[r * rows + c] = tile[threadIdx.x][threadIdx.y];
}}"""


# %% slide="more" show="output"
small = np.arange(16, dtype=np.float32).reshape(4, 4)
turned = np.zeros((4, 4), np.float32)
done = torch.cuda.kernel(transposed(4, 4))[1, (4, 4)](small, turned, 4, 4)
viz.kernel_steps(done)

# %% [markdown] slide="subslide"
# ### Banks
#
# Shared memory has 32 **banks**, and neighbouring words lie in neighbouring banks. A warp reads a *column* of a tile
# with 32 columns. **Predict:** in which banks do its 32 words lie?

# %% [markdown] slide="notes"
# All in bank 0, a conflict of 32 words. Then ask for the cheapest repair: one more column that nobody uses.

# %% slide="more" show="output"
viz.warp_access([4 * 32 * t for t in range(8)], shared=True,
                title="8 threads of a column, rows of 32 words")

# %% slide="more" show="output"
viz.warp_access([4 * 33 * t for t in range(32)], shared=True,
                title="a column, rows of 33 words")

# %% [markdown]
# A bank gives one word in a **wavefront**. With rows of 33 words, neighbours in a column are 33 words apart, and each
# lies in another bank. Here are all three transpositions of a matrix of 96 × 64. **Predict** for each whether sectors or
# wavefronts are wasted:

# %% slide="subslide"
NAIVE = """
extern "C" __global__ void transpose(const float* x, float* out,
                                     int rows, int cols) {
    int c = blockIdx.x * 32 + threadIdx.x;
    int r = blockIdx.y * 32 + threadIdx.y;
    out[c * rows + r] = x[r * cols + c];
}"""
matrix = np.arange(96 * 64, dtype=np.float32).reshape(96, 64)
for name, source in (("straight", NAIVE), ("a tile", transposed(32, 32)),
                     ("33 columns", transposed(32, 33))):
    out = np.zeros((64, 96), np.float32)
    run = torch.cuda.kernel(source)[(2, 3), (32, 32)]
    t = run(matrix, out, 96, 64).totals
    assert np.array_equal(out, matrix.T)
    print(f"{name:11}{t.sectors:5} sectors ({t.least_sectors} at best),",
          f"{t.wavefronts:5} wavefronts ({t.least_wavefronts} at best)")

# %% [markdown] slide="notes"
# The first wastes sectors, the second wavefronts, the third nothing. All three are right: only the
# counts tell them apart.

# %% [markdown] slide="slide"
# ## Play: a sum, step by step
#
# 16 threads add 16 elements in four rounds. **Predict:** after how many rounds does `part[0]` hold the sum of
# elements 0, 4, 8 and 12?

# %% [markdown] slide="notes"
# After two: first the element 8 further is added, then the one 4 further, which has its own by then.
# In each round half of the threads rest.

# %%
REDUCE = """
extern "C" __global__ void reduce(const float* x, float* out) {
    __shared__ float part[16];
    int t = threadIdx.x;
    part[t] = x[t];
    for (int s = 8; s > 0; s /= 2) {
        __syncthreads();
        if (t < s) part[t] += part[t + s];
    }
    if (t == 0) out[0] = part[0];
}"""

# %% slide="more" show="output"
done = torch.cuda.kernel(REDUCE)[1, 16](
    np.arange(16, dtype=np.float32), np.zeros(1, np.float32))
viz.kernel_steps(done)

# %% [markdown] slide="subslide"
# ### A race
#
# The same kernel without its barrier. Threads of different warps are not in step, so nobody knows whether
# `part[t + s]` has its new value yet:

# %% [markdown] slide="notes"
# Ask who is missing between the two lines. The result in the emulator may well be right; on a GPU it
# depends on the day. The emulator reports that nothing orders the two.

# %% slide="more" show="output"
hasty = REDUCE.replace("        __syncthreads();\n", "")
done = torch.cuda.kernel(hasty, races="list")[1, 16](
    np.arange(16, dtype=np.float32), np.zeros(1, np.float32))
viz.race(done)

# %% [markdown]
# With `races="error"`, the default, the launch ends in a `RaceError`. A barrier orders the threads of a **block**. There is
# no barrier for the whole grid: blocks may run in any order, and some begin when others have ended.

# %% [markdown] slide="slide"
# ## Build
#
# 1. **What an access of a warp costs**
# 2. **A tiled product** in CUDA C
# 3. **An online softmax** in CUDA C
# 4. **A machine for kernels** in Python: barriers, shared memory, races
# 5. **A small flash attention** on your machine

# %% [markdown] slide="notes"
# Exercise 1 live. The others are homework; 5 stands on 4, or on the course's own machine if 4 is open.

# %% exercise="kernels.warp" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty minutes. Two sets and a counter. Ask what two threads that want the same word cost.

# %% check="kernels.warp" points=2

# %% exercise="kernels.product" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Thirty minutes. Draw the two tiles, and ask which thread fetches what. Then ask which two accesses each
# barrier puts in order.

# %% check="kernels.product" points=3

# %% exercise="kernels.softmax" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Thirty-five minutes. Do the table of three elements on the whiteboard, then merge two pairs.

# %% check="kernels.softmax" points=4

# %% exercise="kernels.machine" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifty-five minutes. Show first what a generator does at a `yield`.

# %% check="kernels.machine" points=6

# %% exercise="kernels.attention" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Forty minutes. It is the tiled product and the online softmax in one kernel.

# %% check="kernels.attention" points=4

# %% [markdown] slide="slide"
# ## Plug in: your kernels in a small attention
#
# Attention of 48 positions, by your product and your softmax: three launches. Then by your flash attention: one.
# **Predict** how many elements go through global memory in each.

# %% [markdown] slide="notes"
# The scores have 48 · 48 elements. They are written by the first launch, read twice and written by the
# second, and read by the third. Flash attention has none of this.

# %%
from mytorch.kernels import Machine

draw = np.random.default_rng(15)
q, k, v = (draw.standard_normal((48, 16)).astype(np.float32)
           for _ in range(3))
multiply = torch.cuda.kernel(use("kernels.product")())
soften = torch.cuda.kernel(use("kernels.softmax")())


def product(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = np.zeros((m, n), np.float32)
    grid = -(-n // 16), -(-m // 16)
    done = multiply[grid, (16, 16)](a, b, c, m, n, k)
    return c, (done.totals.read + done.totals.written) // 4


# %% slide="more"
scores, first = product(q, np.ascontiguousarray(k.T) / 4)
weights = np.zeros_like(scores)
done = soften[48, 64](scores, weights, 48)
second = (done.totals.read + done.totals.written) // 4
three, third = product(weights, v)

machine = Machine()
one = use("kernels.attention")(
    machine, *(array.astype(float) for array in (q, k, v)), threads=16)
print("the same:", np.allclose(three, one, atol=1e-5))
print(f"three kernels: {first} + {second} + {third} =",
      f"{first + second + third} elements")
print(f"one kernel: {machine.reads + machine.writes} elements,",
      f"{machine.barriers} barriers, {len(machine.races)} races")

# %% [markdown]
# With longer sequences the difference grows, because the scores grow with the square of the length. On GPUs
# flash attention made the training of GPT-2 with 1,024 positions 3 times as fast (Dao et al., 2022, abstract).
#
# ### Your machine and the emulator
#
# The reversal from the exercise, once in CUDA C and once in Python, without its barrier. Both find the race. The
# emulator groups elements and names the lines; your machine lists the elements.

# %% slide="subslide"
REVERSE = """
extern "C" __global__ void reverse(float* x) {
    __shared__ float s[4];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[3 - threadIdx.x];
}"""


def reverse(at, x):
    s = at.shared("s", at.threads)
    s[at.thread] = x[at.thread]
    x[at.thread] = s[at.threads - 1 - at.thread]


done = torch.cuda.kernel(REVERSE, races="list")[1, 4](
    np.zeros(4, np.float32))
race = done.races[0]
print("the emulator:", race.memory, race.count, "times, on", race.lines)
Own = use("kernels.machine")
machine = Own()
machine.launch(reverse, 1, 4, np.zeros(4))
print("your machine:", machine.races)

# %% [markdown] slide="notes"
# Two implementations of one rule: different threads, at least one write, nothing between them.

# %% [markdown]
# Now the milestone of this chapter.

# %% [markdown] slide="subslide"
# ## Milestone 15: digits are read by attention
#
# Each unseen digit asks all seen ones. The program runs on your `kernels.py` and your `flash.py`, with NumPy and
# nothing else. **Predict** how many elements 64 digits read, which ask 300 others in blocks of 16 threads: a digit has
# 64 elements, and its label 10.

# %% [markdown] slide="notes"
# 64 · 64 for the queries, and four blocks that read 300 · 74 elements each: 92,896. Without tiles it would be
# fifteen times as many.

# %% slide="more" show="output" varies=true
milestone(15)

# %% [markdown] slide="slide"
# ## Look inside
#
# The emulator has no loop over threads. A value is an array with an element for each thread, and an `if` is a set of
# threads. This is how it counts bank conflicts for all warps at once:

# %% [markdown] slide="notes"
# The same two steps as in exercise 1: different words first, then the fullest bank.

# %% slide="more" show="output"
from toytorch.cuda.emulator.counts import conflicts, distinct

look(conflicts)

# %%
look(distinct)

# %% [markdown] slide="slide"
# ## Measure: predict the traffic of a tile
#
# A product of matrices with 64 rows and columns. With tiles of T × T all of a is read once for each T columns.
# **Predict** the elements that are read for T = 4, 8, 16, 32, and how many flops are done for each byte.

# %% [markdown] slide="notes"
# 2 · 64³ / T elements. Counts have no spread: they are the same at every run and on every machine. Times
# have one, and chapter 11 is about that.

# %%
def tiled(size, n=64):
    """What the emulator counts for tiles of this size."""
    source = use("kernels.product")().replace("TILE 16", f"TILE {size}")
    a = draw.standard_normal((n, n)).astype(np.float32)
    c = np.zeros((n, n), np.float32)
    grid = n // size, n // size
    return torch.cuda.kernel(source)[grid, (size, size)](a, a, c, n, n, n)


# %% slide="more"
counted = {size: tiled(size) for size in (4, 8, 16, 32)}
for size, done in counted.items():
    t = done.totals
    print(f"T = {size:2}: {2 * 64**3 // size:6} predicted,",
          f"{t.read // 4:6} counted; {done.intensity:.2f} flops a byte,",
          f"{t.sectors / t.least_sectors:.1f} × sectors")

# %% [markdown]
# The prediction is exact. The last column says how many times the least possible number of sectors moved. Tiles of 4 waste half of each warp: a block of 16 threads fills half of it, and its rows of
# four words touch half of a sector. Why not even larger tiles?

# %% slide="subslide" folded=true
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 3.2))
sizes = np.array([1, 2, 4, 8, 16, 32])
ax.plot(sizes, 2 * 64**3 / (4 * (2 * 64**3 / sizes + 64**2)),
        color="#9aa4b2", label="2n³ / 4 (2n³ / T + n²)")
ax.plot(list(counted), [done.intensity for done in counted.values()], "o",
        color="#e2572b", label="counted")
ax.set(xscale="log", xlabel="side of a tile, T", ylabel="flops a byte")
ax.set_xticks(sizes, sizes)
ax.legend()
plt.show()

# %% [markdown] slide="notes"
# Each doubling of the tile nearly doubles the intensity. The written elements make it a little less.

# %% [markdown] slide="subslide"
# ### Occupancy
#
# A multiprocessor holds several blocks at a time, and switches to another warp when one waits for memory. Threads,
# registers and shared memory are limited. A tile of 32 needs 1,024 threads and 8 KiB; with 64 registers a thread, **predict**
# how many blocks fit into an A100's multiprocessor: 2,048 threads, 65,536 registers, 164 KiB of shared memory.

# %% [markdown] slide="notes"
# By threads 2, by registers 65536 / (1024 · 64) = 1, by shared memory 18. So one block, half of the warps. With tiles
# of 16 it is four blocks of 256 threads: the same half.

# %%
viz.occupancy(1024, registers=64, shared=2 * 32 * 32 * 4, card="A100",
              width=820)

# %% slide="more" show="output"
for size in (8, 16, 32):
    for registers in (32, 64):
        found = occupancy("A100", size * size, registers, 8 * size * size)
        print(f"T = {size:2}, {registers} registers:",
              f"{found.blocks:2} blocks, {found.share:4.0%},",
              "limited by", ", ".join(found.limited_by))

# %% [markdown]
# How many registers a thread needs is decided by NVIDIA's compiler. The emulator does not know it, so here the number is
# an assumption. Real products keep several elements of c in the registers of a thread: fewer threads, more work for each.

# %% [markdown] slide="slide"
# ## Traps
#
# A barrier inside of a branch:

# %% [markdown] slide="notes"
# On a GPU this hangs, or goes on with wrong values. The emulator stops and names the line.

# %% slide="more" raises=true
torch.cuda.kernel("""
extern "C" __global__ void half(float* x) {
    if (threadIdx.x < 16) {
        x[threadIdx.x] = 1.0f;
        __syncthreads();
    }
}""")[1, 32](np.zeros(32, np.float32))

# %% [markdown] slide="subslide"
# ## One index too far

# %% [markdown] slide="notes"
# In CUDA C nothing is checked: this reads what lies behind the array, and mostly nobody notices.
# compute-sanitizer finds it on a GPU.

# %% slide="more" raises=true
out = np.zeros(40, np.float32)
wide = ADD.replace("    if (i < n) out", "    out")
torch.cuda.kernel(wide)[2, 32](x, x, out, 40)

# %% [markdown] slide="subslide"
# ### A constant that is a double
#
# **Predict:** how many of the operations of `0.5 * x[i] + 1.0` are in double precision?

# %% [markdown] slide="notes"
# Both. A constant without f is a double, and C converts the float. Many GPUs do double precision at
# 1/32 or 1/64 of the rate.

# %% slide="more"
for constants in ("0.5 * x[i] + 1.0", "0.5f * x[i] + 1.0f"):
    source = ADD.replace("x[i] + y[i]", constants)
    t = torch.cuda.kernel(source)[2, 32](x, x, np.zeros_like(x), 40).totals
    print(f"{constants:20} {t.flops} flops, {t.flops_double} are double")

# %% [markdown] slide="subslide"
# ### Blocks that wait for each other
#
# Block 0 writes something that the others read. There is a barrier, and it is a race nevertheless:

# %% [markdown] slide="notes"
# The barrier is one of a block. To hand something from block to block, end the kernel and launch another one.

# %% slide="more" show="output"
done = torch.cuda.kernel("""
extern "C" __global__ void spread(float* x, float* out) {
    if (blockIdx.x == 0) x[threadIdx.x] = 2.0f;
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = x[threadIdx.x];
}""", races="list")[4, 32](
    np.zeros(32, np.float32), np.zeros(128, np.float32))
viz.race(done)

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** A kernel for 1,000 elements has blocks of 256 threads. How many blocks does the grid need, how many threads have
# nothing to do, and how many warps diverge at `if (i < n)`?
#
# <details><summary>Answer</summary>
#
# Four blocks, 1,024 threads, 24 of them without an element. The last warp has the threads 992 to 1,023, of which 8 take
# part: it is the only one that diverges.
#
# </details>
#
# **2.** What does this print, and what does it have to do with coalescing?
#
# ```python
# x = torch.zeros(96, 64)
# print(x.stride(), x.t().stride(), x.t().is_contiguous())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# (64, 1) (1, 64) False
# ```
#
# `x.t()` is a view with exchanged strides. A kernel in which neighbouring threads take neighbouring *columns* of it touches
# addresses that are 64 words apart, and each of them costs a sector.
#
# </details>
#
# **3.** All 32 threads of a warp read the same element. How many sectors, and how many wavefronts if it lies in shared
# memory?
#
# <details><summary>Answer</summary>
#
# One sector and one wavefront. A bank gives its word to all threads that want it. A conflict needs different words of
# one bank.
#
# </details>
#
# **4.** A tile has rows of 32 words. A warp reads a row, a column, the diagonal. How many wavefronts are these?
#
# <details><summary>Answer</summary>
#
# One, 32, one. Neighbours in a row lie in neighbouring banks. Those of a column are 32 words apart, in the same bank. Those of
# the diagonal are 33 words apart.
#
# </details>
#
# **5.** Which two accesses does the second barrier of the tiled product put in order?
#
# <details><summary>Answer</summary>
#
# A thread that reads the tiles in this step, and another one that overwrites them in the next step. Without it a fast
# thread replaces an element that a slow one has not used yet.
#
# </details>
#
# **6.** What does this print? Which step of the online softmax is it?
#
# ```python
# a, b = torch.tensor([1.0, 3.0]), torch.tensor([2.0, 5.0])
# m = torch.maximum(a.max(), b.max())
# total = (a - a.max()).exp().sum() * (a.max() - m).exp()
# total = total + (b - b.max()).exp().sum() * (b.max() - m).exp()
# whole = torch.cat([a, b])
# print(torch.allclose(total, (whole - whole.max()).exp().sum()))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# True
# ```
#
# It merges the pairs of two parts. Each sum belongs to its own largest element, so it is multiplied by e to the difference
# from the common one. Any order of merging gives the same result, which is why threads can do it as a tree.
#
# </details>
#
# **7.** A product with tiles of 16 does 4 flops a byte, and the GPU needs 10 to be limited by arithmetic. Name two
# things that help.
#
# <details><summary>Answer</summary>
#
# Larger tiles, or several elements of c for each thread: then each element that is read serves more products. Elements of
# half the size help as well, since the same bytes then carry twice as many.
#
# </details>
#
# **8.** The occupancy of a kernel is 50 %. Does it run at half speed?
#
# <details><summary>Answer</summary>
#
# Not necessarily. Other warps are needed while one waits. If half of the possible warps are enough to keep memory or
# arithmetic busy, more of them change nothing. Count bytes and flops first.
#
# </details>
#
# **9.** *Chapter 13.* What does this print, and why does a tracer see no loop?
#
# ```python
# seen = []
#
#
# def f(x):
#     for n in range(3):
#         x = x * 2
#         seen.append(n)
#     return x
#
#
# print(f(torch.ones(1)).item(), len(seen))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 8.0 3
# ```
#
# Python runs the loop while the tracer watches. What it writes down are three multiplications, one after the other, and the
# list is filled once, at tracing. A loop whose length depends on elements has to be read from the source.
#
# </details>
#
# **10.** *Chapter 13.* A graph of a program is printed before anything runs. Which of the counts of this chapter could
# be worked out from the graph and the shapes alone, and which not?
#
# <details><summary>Answer</summary>
#
# Elements read and written and flops follow from shapes, for one operation at a time. Sectors need the strides, and how threads
# are laid over the elements. Divergence needs the elements themselves, if a branch depends on them.
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * Let each thread of the tiled product compute four elements of c in registers. How does the intensity change, and how
#   many threads has a block then?
# * Causal attention: a query sees only keys that are not behind it. Which tiles need not be fetched at all?
# * The backward pass of flash attention computes the scores a second time. Work out why that can be faster than
#   reading them.
# * Your machine runs threads in order. Let it choose a random order between barriers: which of the mutants show themselves
#   without the race detector?
#
# **Next:** chapter 16 leaves the single processor: many processes, each with a part of the data, and the gradients that
# they have in common.

# %% [markdown] slide="notes"
# The last question is a method of its own: running a program under many orders, as tools for concurrent
# programs do.

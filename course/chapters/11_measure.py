# %% [markdown] slide="slide"
# # 11 · Measure first
#
# A small network learns to spread its outputs over a sphere. A step takes long, and everybody in
# the room knows why: the network, the backward pass, Python. Everybody names another thing.
#
# > **The question of this chapter:** where does the time go, and how long should it take?

# %% [markdown] slide="notes"
# 45 minutes: the guess and the table 7, comparing 5, memory 8, exercise 5 live 10, your profiler
# at work 5, the roofline and the prediction 7, traps 3. Numbers differ on your machine: run it before.

# %% keep=true varies=true slide="more" show="output"
import functools
import json
import math
import statistics
import time
from contextlib import contextmanager
from itertools import combinations
from math import inf
from statistics import median
from types import SimpleNamespace

import numpy as np

import toytorch as torch
from course import check, hint, look, setup, use
from toytorch import nn, viz

setup()
torch.set_num_threads(1)
torch.manual_seed(0)
network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
batch = torch.randn(512, 64)
first, second = torch.triu_indices(512, 512, 1)  # every pair of rows once


def by_pairs(x, t=2.0):
    """The uniformity loss: small if rows lie far from each other."""
    gaps = x[first] - x[second]
    return gaps.pow(2).sum(1).mul(-t).exp().mean().log()


def step(loss):
    """One step of training."""
    optimizer.zero_grad()
    x = nn.functional.normalize(network(batch))
    loss(x).backward()
    optimizer.step()


step(by_pairs)
with torch.profiler.profile() as prof:
    step(by_pairs)
prof.picture(width=820)

# %% [markdown]
# This is one step, as the **profiler** has recorded it. Time goes to the right. Each bar is a
# call, and what it calls hangs below it. Rest the mouse on a bar to read its name and its times.
# All of this chapter runs in one thread, so that other programs disturb it less.
#
# The loss is the uniformity loss (Wang and Isola, 2020): the logarithm of the mean of
# $\exp(-2 \lVert x_i - x_j \rVert^2)$ over all pairs of rows. It is written here as the formula says.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# 512 rows, a network of 12,000 parameters. **Predict:** which share of the step is the network,
# forward and backward, and which is the loss?

# %% [markdown] slide="notes"
# Collect guesses on the whiteboard before you run it. Most people name the network, because it
# is the part with the parameters.

# %%
def table(prof, count=6):
    """The calls with the most own time."""
    own = {row: row.self_cpu_time_total for row in prof.key_averages()}
    for row in sorted(own, key=own.get, reverse=True)[:count]:
        share = own[row] / sum(own.values())
        print(f"{row.key[:36]:38}{row.count:3} calls {share:6.1%}")


# %% slide="more" varies=true
table(prof)

# %% [markdown]
# The products of matrices are not in the list, or near its end. Most of the time belongs to
# taking rows by index, adding gradients to rows, and elementwise operations. These come from the pairs
# and their backward pass.
#
# **Own time** ("self") is the time in a call without the calls inside of it. It adds up to the whole.
# Total times do not: a caller's total contains that of everybody it calls. So sort by own time.
#
# `with torch.profiler.record_function("loss"):` gives a part of your program a name of its own.
# `prof.key_averages().table()` prints all columns, and `prof.export_chrome_trace("trace.json")` writes
# a file for ui.perfetto.dev.

# %% [markdown] slide="slide"
# ## Play: whose time is it?
#
# A call of `a` that takes 10 s. It calls `b`, then `a` once more, which calls `b`. **Predict** the
# own time of each name before you press *Next*.

# %% [markdown] slide="notes"
# Between two steps the time belongs to the innermost call that is open. At the end the own times
# are 5 s and 5 s, and they add up to the 10 s that have passed.

# %% slide="more" show="output"
calls = [("a", 0, 10), ("b", 1, 3), ("a", 5, 4), ("b", 6, 2)]
trace = {"traceEvents": [
    {"name": name, "ph": "X", "ts": 1e6 * start, "dur": 1e6 * length}
    for name, start, length in calls
]}
viz.span_steps(trace)

# %% [markdown] slide="slide"
# ## Play: what goes through memory?
#
# Why is the loss slow? It makes a tensor of all differences. **Predict** its size: 512 rows
# of 32 elements, four bytes each.

# %% [markdown] slide="notes"
# 512 · 511 / 2 pairs times 32 elements times 4 bytes: 16.7 MB. The batch itself has 66 kB. The
# profiler counts what each call asks memory for.

# %% slide="more"
x = nn.functional.normalize(torch.randn(512, 32))
with torch.profiler.profile(profile_memory=True) as prof:
    by_pairs(x)
print(f"x has {x.numel() * 4 / 1e6:.3f} MB")
for row in prof.key_averages():
    if row.self_cpu_memory_usage > 1e6:
        print(f"{row.key:30}{row.self_cpu_memory_usage / 1e6:6.2f} MB")

# %% [markdown]
# Both rows of each pair are gathered, subtracted and squared: four tensors of 16.7 MB from one of 0.07 MB. The
# arithmetic is small. What takes the time is that so many bytes are written and read again.
#
# `torch.pdist(x)` gives the same distances by one loop, in which each difference stays in a register. So it makes no
# such tensors, in toytorch and in PyTorch. You will compare it below.

# %% [markdown] slide="subslide"
# ### Lines of memory
#
# A processor reads memory in **lines** of 64 bytes, and keeps the last ones in a **cache**. Here a line
# has four elements, and the cache has room for three lines. A matrix is read column by column.
# **Predict:** how many lines are fetched for 16 elements?

# %% [markdown] slide="notes"
# Sixteen. Each line is dropped just before it would be needed again. With room for four lines
# it would be four. Let the class say hit or miss before each step.

# %% slide="more" show="output"
by_columns = [(row, column) for column in range(4) for row in range(4)]
viz.cache_steps((4, 8), by_columns, line=4, room=3)

# %% [markdown]
# Read by rows, the same 16 elements need 4 lines. Elements that lie beside each other in memory and
# are used one after the other cost a quarter. With lines of 64 bytes and elements of 4 bytes, it is a
# sixteenth.

# %% slide="subslide" show="output"
by_rows = [(row, column) for row in range(4) for column in range(4)]
viz.cache_steps((4, 8), by_rows, line=4, room=3)

# %% [markdown] slide="notes"
# Four red steps, twelve green ones. This is why the layout of a tensor matters for time, although
# it never matters for the result.

# %% [markdown] slide="slide"
# ## Build
#
# 1. **How many times as long?** A comparison with its spread
# 2. **The uniformity loss** by a product of matrices
# 3. **The bytes that an operation moves**
# 4. **A roofline** from measurements
# 5. **A profiler** for your own package

# %% [markdown] slide="notes"
# Exercise 5 live, stages 1 and 2: the two lists on the whiteboard. Exercises 3 and 4 belong
# together; both are needed for the prediction at the end.

# %% exercise="measure.compare" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifteen minutes. Ask what a single measurement of a busy machine is worth.

# %% check="measure.compare" points=2

# %% exercise="measure.uniformity" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty-five minutes. Expand the square on the whiteboard, and find the lengths on the
# diagonal.

# %% check="measure.uniformity" points=3

# %% exercise="measure.traffic" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty-five minutes. Draw two lines of memory, and mark what x[::4] touches.

# %% check="measure.traffic" points=3

# %% exercise="measure.roofline" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty-five minutes. Show what one outlier does to a line of least squares, and why the
# median over all pairs stays where it is.

# %% check="measure.roofline" points=3

# %% exercise="measure.profiler" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifty-five minutes. Stages 1 and 2 live, the others are homework. The checks say how far
# an answer is.

# %% check="measure.profiler" points=6

# %% [markdown] slide="slide"
# ## Plug in: the loss, measured
#
# Your `uniformity` in the place of `by_pairs`, compared by your `compare`. **Predict** how many times as
# long the pairs take, first for the loss alone, then for the whole step of training. The third line compares
# `pdist` with your product.

# %% [markdown] slide="notes"
# Ten times and more is usual here. Point at the spread: if the largest ratio is twice the median,
# something else was running, and the median does not care.

# %%
measured_ratio = use("measure.compare")
by_product = use("measure.uniformity")
with torch.no_grad():
    print("the same loss:", abs(by_pairs(x) - by_product(x)).item() < 1e-4)


# %% slide="more" varies=true
def told(what, ratios):
    middle, least, most = ratios
    print(f"{what}: {middle:.3g} times ({least:.3g} to {most:.3g})")


leaf = x.clone().requires_grad_()
def by_pdist(x, t=2.0):
    return torch.pdist(x).pow(2).mul(-t).exp().mean().log()


told("pairs, forward and backward", measured_ratio(
    lambda: by_product(leaf).backward(),
    lambda: by_pairs(leaf).backward()))
told("a whole step with pairs", measured_ratio(
    lambda: step(by_product), lambda: step(by_pairs)))
told("pdist, forward and backward", measured_ratio(
    lambda: by_product(leaf).backward(),
    lambda: by_pdist(leaf).backward()))

# %% [markdown]
# And now the profile of the new step. The loss is no longer the only thing that counts:

# %% slide="subslide" varies=true
with torch.profiler.profile() as prof:
    step(by_product)
table(prof)

# %% [markdown] slide="notes"
# There is no single line to attack now. The step consists of many small operations; chapter 14
# joins them.

# %% [markdown]
# The product moves less than the pairs, and one loop moves less than the product. Which of the last two is
# faster depends on the sizes and on the machine: with PyTorch 2.13 on one thread (512 rows of 32 elements, 31
# rounds) `pdist` took 0.48 times as long as the product, 0.18 to 0.73 times. Measure where you run.
#
# ### Less traffic without another formula
#
# The product still makes several matrices of n² elements. This is what goes through memory if each
# operation runs by itself, and if a compiler joins them to one kernel:

# %% slide="subslide" show="output"
def exponentials(products):
    return (products * 4.0 - 4.0).exp()


viz.traffic(exponentials, torch.ones(512, 512))

# %% [markdown] slide="notes"
# Three operations read and write the matrix, one kernel does it once. Chapter 14 builds the compiler
# pass that does this.

# %% [markdown] slide="slide"
# ## Plug in: your profiler on your package
#
# Your `Profiler` is attached to your `Tensor`, and a network of your own modules learns digits.
# **Predict:** does the forward or the backward pass take longer?

# %% [markdown] slide="notes"
# Each product of the forward pass has two in the backward pass, so most people say backward.
# Adding up own times settles it.
# The trace is the learner's own, drawn by the framework.

# %%
from course.data import digits
from mytorch.adam import AdamW
from mytorch.cross_entropy import CrossEntropy
from mytorch.linear import Linear
from mytorch.tensor import Tensor

images, labels = digits()
inputs = images.reshape(len(images), -1)[:256] / 16.0
first, second = Linear(64, 256, seed=1), Linear(256, 10, seed=2)
adam = AdamW(first.parameters() + second.parameters(), lr=0.01)


def own_step(watch):
    """One step on the learner's own package, each part with a name."""
    with watch.span("forward"):
        scores = second(first(Tensor(inputs)).relu())
        loss = CrossEntropy.apply(scores, labels[:256])
    with watch.span("backward pass"):
        adam.zero_grad()
        loss.backward()
    with watch.span("optimizer"):
        adam.step()


# %% slide="more" varies=true
Watch = use("measure.profiler")
watch = Watch()
names = ["__add__", "__matmul__", "relu", "transpose"]
with watch.attached(Tensor, *names):
    for _ in range(3):
        own_step(watch)
whole = sum(watch.own_times())
for name, count, total, own in watch.rows()[:7]:
    print(f"{name:28}{count:3} calls, total {total / whole:6.1%},",
          f"own {own / whole:6.1%}")

# %% varies=true slide="subslide" show="output"
own_trace = watch.chrome()
*_, last = (e for e in own_trace["traceEvents"] if e["name"] == "forward")
viz.timeline(own_trace, start_us=last["ts"], width=820)

# %% [markdown] slide="notes"
# The framework draws a trace that it has not written: the format is a list of names and times.

# %% [markdown]
# The picture is made of your dictionary. `json.dumps(watch.chrome())` written to a file can be opened
# in ui.perfetto.dev, which then shows the same bars.

# %% [markdown] slide="slide"
# ## Look inside
#
# The framework's profiler does the same two things at each call. This is what it writes down
# before and after:

# %% [markdown] slide="notes"
# A stack for each thread, a span with a parent, and the clock. What is more: input shapes, memory,
# the line of the user's program.

# %% slide="more" show="output"
from toytorch.profiler.recorder import Recorder

look(Recorder.enter)

# %%
look(Recorder.leave)

# %% [markdown] slide="slide"
# ## Measure: this machine's roofline
#
# How fast is memory here, and how fast is arithmetic? Additions of arrays that are too large for any
# cache say the first, a product of matrices the second. **Predict** both for your machine, in GB
# and in billions of operations a second.

# %% [markdown] slide="notes"
# A core of today moves about 10 GB a second and does 20 to 100 billion multiplications and additions.
# So each byte has to be used for several operations, or the processor waits.

# %%
largest = 12_000_000
ground = [np.ones(largest, np.float32) for _ in range(3)]


def timed(f):
    began = time.perf_counter()
    f()
    return time.perf_counter() - began


def adding(count):
    a, b, out = (array[:count] for array in ground)
    return lambda: np.add(a, b, out=out)


# %% slide="more" varies=true
sizes = (100, 1000, 9_000_000, 12_000_000)
additions = {count: adding(count) for count in sizes}
points = [(12 * count, timed(f)) for _ in range(5)
          for count, f in additions.items()]
machine = use("measure.roofline")(points, {})
square = np.ones((768, 768), np.float32)
square @ square
seconds = sorted(timed(lambda: square @ square) for _ in range(7))
rate = 2 * 768**3 / seconds[3]
print(f"memory: {machine.bandwidth / 1e9:.1f} GB/s")
print(f"arithmetic: {rate / 1e9:.0f} billion operations a second",
      f"({2 * 768**3 / seconds[-1] / 1e9:.0f} to",
      f"{2 * 768**3 / seconds[0] / 1e9:.0f})")
print(f"both take equally long at {rate / machine.bandwidth:.1f}",
      "operations a byte")

# %% [markdown]
# The **roofline** (Williams, Waterman and Patterson, 2009) draws both limits in one picture. To the
# right is the **arithmetic intensity**: how many operations are done with each byte that is moved.
# Below the slanted part an operation waits for memory, below the flat part for arithmetic.

# %% slide="subslide" folded=true varies=true
import matplotlib.pyplot as plt


def placed(f, work, moved, repeats=5):
    """Operations a byte; median, least and most reached, in GFLOP/s."""
    f()
    reached = [work / timed(f) / 1e9 for _ in range(repeats)]
    return work / moved, median(reached), min(reached), max(reached)


a, b, out = ground
rng = np.random.default_rng(0)
dots = {
    "a + b": placed(adding(largest), largest, 12 * largest),
    "exp(a)": placed(lambda: np.exp(a, out=out),
                     10 * largest, 8 * largest),
}
for n in (32, 128, 768):
    m = rng.random((n, n), np.float32)
    many = max(1, 2_000_000 // n**3)
    dots[f"{n} × {n}"] = placed(
        lambda m=m, many=many: [m @ m for _ in range(many)],
        2 * n**3 * many, 12 * n**2 * many)
intensity = np.geomspace(0.03, 400, 100)
figure, ax = plt.subplots(figsize=(7, 3.4))
roof = np.minimum(machine.bandwidth * intensity, rate) / 1e9
ax.plot(intensity, roof, color="#9aa4b2", label="roofline, as measured")
for name, (at, middle, least, most) in dots.items():
    ax.errorbar(at, middle, [[middle - least], [most - middle]], fmt="o",
                color="#e2572b")
    ax.annotate(name, (at, middle), (6, -12), textcoords="offset points")
ax.set(xscale="log", yscale="log", xlabel="operations a byte",
       ylabel="billion operations a second")
ax.legend(loc="lower right")
plt.show()

# %% [markdown] slide="notes"
# The bars at the dots are the spread of five measurements. Small products lie below the roof: their
# call costs as much as their work. exp is counted with ten operations an element, an estimate.

# %% [markdown]
# An addition is on the slanted part, and nothing but fewer bytes makes it faster. A large product is on
# the flat part. Small arrays can lie *above* the slanted line: they stay in the cache, which is faster
# than memory.

# %% [markdown] slide="subslide"
# ## Predict a program's time
#
# The uniformity loss again, for 3,500 rows of 64 elements, as NumPy runs it. Your `traffic` counts
# the bytes, your `Roofline` says the time. **The aim:** the sum is within 25 % of what the clock says.

# %% [markdown] slide="notes"
# The machine's figures and the program are measured in the same rounds, one after the other, and medians
# are compared. On a busy machine nothing else gives a stable ratio.

# %%
n = 3500
rows = rng.standard_normal((n, 64), dtype=np.float32)
rows /= np.linalg.norm(rows, axis=1, keepdims=True)
s = np.empty((n, n), np.float32)
part, nothing = s[: n // 10], np.empty(0)  # a tenth, for counting
program = [  # name, what runs, inputs and output of a tenth, work
    ("matmul", lambda: np.matmul(rows, rows.T, out=s), [rows[: n // 10]],
     part, 2 * n * n * 64),
    ("multiply", lambda: np.multiply(s, 4.0, out=s), [part, 4.0], part, 0),
    ("subtract", lambda: np.subtract(s, 4.0, out=s), [part, 4.0], part, 0),
    ("exp", lambda: np.exp(s, out=s), [part], part, n * n),
    ("sum", lambda: s.sum(), [part], nothing, n * n),
]
half = largest // 2
known = {  # what the rates are learnt from: other sizes
    "matmul": (lambda: np.matmul(rows[:999], rows.T, out=s[:999]),
               2 * 999 * n * 64),
    "exp": (lambda: np.exp(b[:half], out=out[:half]), half),
    "sum": (lambda: b[:half].sum(), half),
}
count_bytes = use("measure.traffic")
moved = [10 * count_bytes(*arrays) for _, _, *arrays, _ in program]

# %% slide="more" varies=true
samples = {"points": [], "rates": {}, "program": [[] for _ in program]}
for turn in range(8):
    for count, f in additions.items():
        seconds = timed(f)
        if turn:  # the first round is the warm-up
            samples["points"].append((12 * count, seconds))
    for name, (f, work) in known.items():
        seconds = timed(f)
        if turn:
            samples["rates"].setdefault(name, []).append(work / seconds)
    for place, (_, f, *_) in enumerate(program):
        seconds = timed(f)
        if turn:
            samples["program"][place].append(seconds)
rates = {name: median(found) for name, found in samples["rates"].items()}
machine = use("measure.roofline")(samples["points"], rates)
predicted = 0.0
for (name, _, _, _, work), size, times in zip(
        program, moved, samples["program"]):
    seconds, limit = machine.predict(name, size, work)
    predicted += seconds
    print(f"{name:9}{size / 1e6:4.0f} MB, {limit:10} predicted",
          f"{1e3 * seconds:.1f} ms, measured {1e3 * median(times):.1f} ms")

# %% slide="more" varies=true
totals = [sum(turn) for turn in zip(*samples["program"])]
told("measured / predicted, the sum", (
    median(totals) / predicted, min(totals) / predicted,
    max(totals) / predicted))

# %% [markdown]
# The prediction knows nothing about this program but its shapes. Where a row is far off, look at the
# reason: a part of the matrix of 49 MB may stay in a large cache, and another program may have used the memory
# meanwhile. A prediction that is wrong by a factor is worth more than a time alone: it says that
# something happens which you have not thought of.
#
# ### Steps of a stride
#
# **Predict:** `x[::k].sum()` adds up fewer elements for larger `k`. Down to which `k` does it get faster in
# proportion? Your `traffic` says how many lines are read.

# %% slide="subslide" varies=true
for k in (1, 2, 4, 8, 16, 32):
    part = a[:8_000_000:k]
    times = [timed(lambda part=part: part.sum()) for _ in range(6)]
    lines = count_bytes([part[: 100_000 // k]], np.empty(0)) // 64
    elements = len(part[: 100_000 // k])
    print(f"k = {k:2}: {elements / lines:4.1f} elements a line,",
          f"{1e9 * median(times) / len(part):5.2f} ns an element",
          f"({1e9 * min(times) / len(part):.2f} to",
          f"{1e9 * max(times) / len(part):.2f})")

# %% [markdown] slide="notes"
# The time of an element grows with k until each line holds a single element that is used. Beyond 16
# it still grows: the processor fetches lines ahead, and now most of these are not needed.

# %% [markdown] slide="slide"
# ## Traps
#
# Somebody measures a function once:

# %% [markdown] slide="notes"
# The first call compiles a kernel, asks for memory, fills caches. Three of the traps are about
# what a clock sees beside the work.

# %% slide="more" varies=true
fresh = torch.compile(lambda x: (x * 3.0 - 1.0).tanh())
z = torch.ones(100_000)
times = [timed(lambda: fresh(z)) for _ in range(5)]
print("ms:", ", ".join(f"{1e3 * t:.2f}" for t in times))

# %% [markdown]
# The first call includes the compiler. Warm up, then measure, then say how often and how far apart.

# %% [markdown] slide="subslide"
# ### The profiler costs time itself
#
# Each recorded call costs a few microseconds. **Predict:** whose share looks too large, that of many
# small calls or that of a few large ones?

# %% [markdown] slide="notes"
# Many small ones. A profiler tells you where to look; how much was gained is said by a clock without it.

# %% slide="more" varies=true
def small_calls():
    y = z[:10]
    for _ in range(300):
        y = y + 1.0


def under_profiler():
    with torch.profiler.profile():
        small_calls()


told("300 small additions, with the profiler on",
     measured_ratio(small_calls, under_profiler))

# %% [markdown] slide="subslide"
# ### The wrong half
#
# The loss takes 90 % of a step. It gets 10 times faster. **Predict:** how many times faster is the step?

# %% [markdown] slide="notes"
# Amdahl's law. 1 / (0.1 + 0.09) is 5.3. And if the other 10 % get 10 times faster: 1.1.

# %% slide="more"
def faster(share, times):
    """Amdahl: how many times faster a whole is, if a share of it is."""
    return 1 / (1 - share + share / times)


print(f"the loss, 10 times: {faster(0.9, 10):.1f}")
print(f"the loss, 1000 times: {faster(0.9, 1000):.1f}")
print(f"all the rest, 10 times: {faster(0.1, 10):.2f}")

# %% [markdown]
# After each gain the shares are others. Measure again before you go on.

# %% [markdown] slide="subslide"
# ## A table that is asked too early

# %% [markdown] slide="notes"
# The profiler's own error says what is missing. In PyTorch this is an AssertionError, too.

# %% slide="more" raises=true
prof = torch.profiler.profile()
prof.key_averages()

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** A profile says: `train` total 10 s, own 0.1 s; `forward` total 4 s, own 0.2 s; `linear` total 3.5 s, own
# 3.5 s; `backward` total 5.9 s, own 5.9 s. Which function do you look at first, and do the own times
# add up?
#
# <details><summary>Answer</summary>
#
# `backward`, then `linear`: they have the own time. The sum of the own times is 9.7 s, so 0.3 s belong
# to calls that are not in this list. `train` has the largest total and nothing to gain: its time is that of
# what it calls.
#
# </details>
#
# **2.** Two runs of A take 1.00 and 1.30 s, two runs of B 1.10 and 1.20 s. Is B faster than A?
#
# <details><summary>Answer</summary>
#
# Nobody can say. The spread of A is larger than the difference of the means. Measure both in turns, many
# times, and look at the ratios of the rounds.
#
# </details>
#
# **3.** What does this print? Which of the two moves more bytes?
#
# ```python
# x = torch.zeros(1000, 1000)
# y = x[:, :1].expand(1000, 1000)
# print(y.numel(), y.untyped_storage().nbytes() // 4, y.stride())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 1000000 1000000 (1000, 0)
# ```
#
# Reading all of `x` moves 4 MB. Reading all of `y` touches a thousand elements in a thousand lines of 64
# bytes, 64 kB. The stride 0 repeats the same address. The storage is that of `x`, of which `y` is a view.
#
# </details>
#
# **4.** An elementwise operation of three tensors with 10 million elements of float32 takes 15 ms on a
# machine that moves 20 GB a second: two are read, one is written. Is there anything to gain by faster
# arithmetic?
#
# <details><summary>Answer</summary>
#
# It moves 120 MB, for which the memory needs 6 ms. So 9 ms are something else: memory that is asked
# for anew and has to be cleared by the operating system, arithmetic, or another program. First write into
# memory that is there already (`out=`), and measure again.
#
# </details>
#
# **5.** A product of two matrices with n rows and columns does 2 n³ operations. How many operations a byte
# are that, for float32, and what follows for large n?
#
# <details><summary>Answer</summary>
#
# It moves at least 3 · 4 · n² bytes, so the intensity is n / 6. It grows with n. Large products wait for
# arithmetic, small ones for memory, or for the call.
#
# </details>
#
# **6.** What does this print, and why is it no reason to avoid the product of matrices?
#
# ```python
# x = torch.tensor([[1000.0, 0.0], [1000.0, 0.001]])
# lengths = (x * x).sum(1)
# by_product = lengths[0] + lengths[1] - 2 * (x[0] @ x[1])
# print(by_product.item(), round((x[0] - x[1]).pow(2).sum().item(), 9))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 0.0 1e-06
# ```
#
# The lengths are a million, and float32 has seven digits. A difference of large equal numbers loses them.
# Rows of a normalised embedding have length 1, so there the error is about 1e-7, and the loss has
# `exp` of it. For rows far from the origin subtract their mean first.
#
# </details>
#
# **7.** A traced function calls itself three levels deep, each level takes 1 s by itself. What are its calls, its
# total and its own time?
#
# <details><summary>Answer</summary>
#
# Three calls, a total of 3 s and an own time of 3 s. The inner spans lie inside of the outer one, whose 3 s
# contain them. Adding all lengths would give 3 + 2 + 1 = 6 s, more than has passed.
#
# </details>
#
# **8.** Why does `compare` let the functions take turns at being first?
#
# <details><summary>Answer</summary>
#
# If the machine gets slower during the measurement, the second of a round always meets a slower
# machine. When they take turns, this lifts half of the ratios and lowers the other half, and the median
# stays between them.
#
# </details>
#
# **9.** *Chapter 09.* A loader gives batches of 32. What does this print, and which of the batches would you
# leave out of a measurement?
#
# ```python
# data = torch.utils.data.TensorDataset(torch.arange(70))
# loader = torch.utils.data.DataLoader(data, batch_size=32)
# print([len(batch[0]) for batch in loader])
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [32, 32, 6]
# ```
#
# The first one, in which workers start and memory is asked for, and the last one, which is smaller. Times
# of batches of different sizes are no measurements of the same thing.
#
# </details>
#
# **10.** *Chapter 09.* A network waits for its data during 60 % of each step. What does Amdahl's law
# say about a GPU that is ten times as fast?
#
# <details><summary>Answer</summary>
#
# 1 / (0.6 + 0.4 / 10) = 1.56 times. Workers that load during the step can take the 60 % away, which is
# 2.5 times, without any GPU.
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * Your profiler measures its own cost as well. Let it trace an empty function 10,000 times, and
#   subtract what that takes from each span. Is the sum right then?
# * `cProfile` counts each call of each Python function. Compare its table of `own_step` with yours:
#   what does it see that yours does not, and what does it cost?
# * A sampling profiler looks at the stack a hundred times a second and records nothing between. Which
#   errors has it, and which has yours?
# * Let `traffic` know a cache: lines that were used shortly before are not read again. For which
#   programs does the prediction get better?
#
# **Next:** chapter 12 has a device that works while Python goes on. There the clock of this chapter
# measures nothing but the asking.

# %% [markdown] slide="notes"
# The first question leads to a known method: calibrated profilers subtract their overhead, and are
# wrong where caches matter.

# %% [markdown] slide="slide"
# # 14 · Passes and fusion
#
# A loss for boxes takes fifteen operations. Each one reads arrays from memory and writes one.
# The arithmetic takes no time to speak of. What takes the time is memory.
#
# > **The question of this chapter:** The whole program is known. What can be left
# > out, and how does one loop come from many operations?

# %% [markdown] slide="notes"
# 45 minutes: the traffic and the prediction 6, passes step by step 8, the LSTM cell 4,
# exercise 1 live 6, exercise 4 on the whiteboard 6, the training step 7, measure 4,
# traps 4.

# %% keep=true slide="more" show="output"
import time

import numpy as np

import toytorch as torch
from course import check, hint, look, setup, use
from toytorch import loops, viz

setup()


def iou_loss(a, b):
    """1 - intersection over union of boxes (N, 4): x0, y0, x1, y1."""
    low = torch.maximum(a[:, :2], b[:, :2])
    high = torch.minimum(a[:, 2:], b[:, 2:])
    overlap = (high - low).clamp(min=0)
    both = overlap[:, 0] * overlap[:, 1]
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    return 1 - both / (area_a + area_b - both)


boxes = torch.rand(100_000, 2), torch.rand(100_000, 2) + 1
one = torch.cat(boxes, 1)
other = one + 0.1
viz.traffic(iou_loss, one, other)

# %% [markdown]
# The bars are the bytes that are read and written: above operation by operation, below as the
# compiler runs it, in two loops. Everything inside a loop stays in registers. Only the
# arrays that the whole loop needs are read, and only its results are written.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# Here x · x is computed five times, and `x.exp()` is not needed at all. **Predict:** how many
# operations are left after the passes?

# %% [markdown] slide="notes"
# Let the class cross out lines on the whiteboard. Then step through the picture: each
# pass says what it took away.

# %% slide="more"
def wasteful(x):
    total = x * x
    for _ in range(4):
        total = total + x * x
    x.exp()
    return total * (2.0 - 1.0) + (3.0 - 3.0)


# %% slide="more" show="output"
viz.passes(wasteful, torch.ones(4))

# %% [markdown]
# *Next* goes from pass to pass. Red lines on the left go, green ones on the right come. The names are those
# of the field: **common subexpressions** are computed once, **dead code** goes, **constants** are folded. The
# last pass makes one group of what is left.

# %% [markdown] slide="slide"
# ## Play: an LSTM cell is one loop
#
# Behind its two products of matrices, a cell has a dozen operations on elements. The
# compiler makes one kernel of them. **Predict:** which values does it write?

# %% [markdown] slide="notes"
# Two results, the new h and the new c. Nothing else is written to memory.

# %%
def lstm_cell(gates, c):
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


gates, cell = torch.randn(64, 400), torch.randn(64, 100)

# %% slide="more" show="output"
viz.ir(lstm_cell, gates, cell)

# %% [markdown]
# The framed box is the group. This is its program, in the loop language that your code
# generator will write:

# %% slide="subslide"
print(viz.kernel_sources(lstm_cell, gates, cell).sources[0]["program"])

# %% [markdown] slide="notes"
# The first line lists the arrays with their dimensions: what is read before the arrow, what
# is written after it. Then comes one line for each operation.

# %% [markdown]
# A text like this can be run directly:

# %% slide="more"
program = loops.Program.parse("""
    x[i,j], w[j] -> y[i,j]
    a = x * w
    y = tanh(a) + 1.0
""")
x, w = np.ones((2, 3), "f4"), np.arange(3, dtype="f4")
y = np.empty((2, 3), "f4")
loops.run(program, y, x, w)  # what is written comes first
print(y.round(3))

# %% [markdown] slide="slide"
# ## Build
#
# 1. **What nobody needs**: dead code
# 2. **Computed once, or not at all**: common subexpressions and constants
# 3. **Derivatives as nodes**: autodiff of a graph
# 4. **Which nodes can be one loop?** Grouping
# 5. **A code generator**: from groups to loops
#
# All work on the graphs of chapter 13, and become files of your package.

# %% [markdown] slide="notes"
# Exercise 1 live, from the end of the list. Exercise 4: draw the softmax, and the two
# groups of which each would need a result of the other. The others are homework.

# %% exercise="fusion.prune" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifteen minutes. Ask why one pass from the end is enough, and how many would be
# needed from the front.

# %% check="fusion.prune" points=2

# %% exercise="fusion.share" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Thirty minutes. The table of the second hint on the whiteboard: replace first, then
# compare.

# %% check="fusion.share" points=4

# %% exercise="fusion.derive" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Sixty minutes, homework. The engine of chapter 04 once more, and this time it writes down
# what it would compute.

# %% check="fusion.derive" points=6

# %% exercise="fusion.groups" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Thirty-five minutes. Draw the graph and put a line around each group. Then ask for each
# pair of groups whether both need a result of the other: such a pair could never run.

# %% check="fusion.groups" points=4

# %%
from mytorch.groups import groups

grouped = groups  # the code generator asks for your groups
print(grouped.__doc__)

# %% exercise="fusion.fuse" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Forty-five minutes, homework. Write the text for one group by hand first.

# %% check="fusion.fuse" points=5

# %% [markdown] slide="slide"
# ## Plug in: the loop compiler runs your text
#
# Your `fuse` gets a function that hands the text to the framework's loop compiler. First a small
# graph, traced by your tracer: x · x five times. **Predict** the text.

# %% [markdown] slide="notes"
# One line for the square and four sums: `share` has found that all five squares are the same.

# %%
from mytorch.tensor import Tensor
from mytorch.trace import trace

programs = {}


def by_loops(*arrays, text, shape):
    """Run a fused node's text; its results are stacked."""
    if text not in programs:
        programs[text] = loops.Program.parse(text, "float64")
    made = np.empty(shape)
    given = [np.asarray(np.squeeze(a), float, order="C") for a in arrays]
    results = [np.squeeze(made[n]) for n in range(shape[0])]
    loops.run(programs[text], *results, *given)
    return made


def wasteful_too(x):
    total = x * x
    for _ in range(4):
        total = total + x * x
    x.exp()
    return total * (2.0 - 1.0)


# %% slide="more"
prune_mine, share_mine = use("fusion.prune"), use("fusion.share")
fuse_mine, derive_mine = use("fusion.fuse"), use("fusion.derive")

small = trace(wasteful_too, np.ones(4))
counts = [len(small.body.nodes)]
for step in (share_mine, prune_mine):
    counts.append(len(step(small).body.nodes))
fused = fuse_mine(small, by_loops)
counts.append(len(prune_mine(fused).body.nodes))
print("nodes: ", *counts)
texts = [n.attributes["text"] for n in fused.body.nodes if n.op == "fused"]
print(*texts)
print(fused.run(np.arange(4.0)))

# %% [markdown] slide="subslide"
# ### Pass by pass
#
# The same graph of yours, step by step:

# %% [markdown] slide="notes"
# Ask before each step what the next pass will find. The multiplication by one stays: none
# of these passes knows that x · 1 is x. Behind fuse the constant is text, so prune finds it dead.

# %% folded=true
def pass_steps(graph, passes):
    """Step through passes of your own."""
    def lines():
        return str(graph).splitlines()

    frames, before = [], lines()
    as_traced = before, ()
    frames.append(("The graph as it was traced.", as_traced, as_traced))
    for name, one_pass in passes.items():
        one_pass(graph)
        after = lines()
        gone = {n for n, line in enumerate(before) if line not in after}
        new = {n for n, line in enumerate(after) if line not in before}
        said = f"{name}: {len(before) - 2} nodes become {len(after) - 2}."
        frames.append((said, (before, gone), (after, new)))
        before = after
    return viz.text_steps(frames, ("before", "after"))


# %% slide="more" show="output"
pass_steps(trace(wasteful_too, np.ones(4)),
           {"share": share_mine, "prune": prune_mine,
            "fuse": lambda graph: fuse_mine(graph, by_loops),
            "prune again": prune_mine})

# %% [markdown] slide="slide"
# ## Plug in: a training step as one graph
#
# A network with one hidden layer and a loss. Your tracer catches the forward pass, and
# your `derive` appends the backward pass. Then your passes improve both together.

# %% [markdown] slide="notes"
# The weights are arguments this time, so they are inputs of the graph. What nobody asks
# for is the gradient of the data: prune removes it.

# %%
def network_loss(x, target, w1, b1, w2, b2):
    hidden = (x @ w1 + b1).tanh()
    error = hidden @ w2 + b2 - target
    return (error * error).mean()


draw = np.random.default_rng(0)
data = [draw.normal(size=(512, 2)), draw.normal(size=(512, 1))]
weights = [draw.normal(size=(2, 256)), draw.normal(size=256),
           draw.normal(size=(256, 1)) / 16, np.zeros(1)]


def step_graph():
    """Loss and gradients of the four weights, as a graph."""
    graph = derive_mine(trace(network_loss, *data, *weights))
    loss, _, _, *gradients = graph.body.outputs  # none for the data
    graph.body.outputs = [loss, *gradients]
    return graph


# %% slide="more"
plain = step_graph()
tidy = prune_mine(share_mine(step_graph()))
fused = fuse_mine(prune_mine(share_mine(step_graph())), by_loops)
fused = prune_mine(fused)
for name, graph in (("derived", plain), ("shared, pruned", tidy),
                    ("fused", fused)):
    graph.check()
    print(f"{name:16}{len(graph.body.nodes)} nodes")

leaves = [Tensor(array, requires_grad=True) for array in weights]
network_loss(*map(Tensor, data), *leaves).backward()
found = fused.run(*data, *weights)
agree = [np.allclose(part, leaf.grad)
         for part, leaf in zip(found[1:], leaves)]
print("the gradients are those of your engine:", all(agree))

# %% [markdown] slide="subslide"
# ## What was fused

# %% [markdown] slide="notes"
# The loop with tanh writes two results: tanh for the product of matrices, and nothing
# else of the forward pass. Find the derivative of tanh in the other one.

# %% slide="more"
for node in fused.body.nodes:
    if node.op == "fused":
        print(node.attributes["text"], "\n")

# %% [markdown]
# Products of matrices and sums are no part of these groups. The framework's fuser takes sums
# and other reductions in as well.

# %% [markdown] slide="slide"
# ## Look inside
#
# The framework's dead-code pass has to think of more: of writes, of blocks, of
# operations with effects.

# %% [markdown] slide="notes"
# `removable` asks the operation's record. Everything else is the walk from the end.

# %% slide="more" show="output"
from toytorch.jit.passes import cse, dce

look(dce._visit)

# %%
look(cse.visit)

# %% [markdown]
# And this decides whether two nodes may be one. Aliases are the difficult part: two
# results with memory of their own stay two if somebody writes to one of them.

# %%
look(cse.mergeable)

# %% [markdown] slide="slide"
# ## Measure: what do passes and fusion gain?
#
# First the loss of boxes, on your own operations: a few loops in place of 57 nodes. Then the
# training step. **Predict** both ratios.

# %% [markdown] slide="notes"
# The loss consists of elementwise operations alone. The step also has products of
# matrices, which stay as they are. Have both ratios on the whiteboard before the cell runs.

# %%
def boxes_loss(ax0, ay0, ax1, ay1, bx0, by0, bx1, by1):
    def larger(a, b):
        return a + (b - a).relu()

    def smaller(a, b):
        return a - (a - b).relu()

    width = (smaller(ax1, bx1) - larger(ax0, bx0)).relu()
    height = (smaller(ay1, by1) - larger(ay0, by0)).relu()
    both = width * height
    total = (ax1 - ax0) * (ay1 - ay0) + (bx1 - bx0) * (by1 - by0)
    return 1 - both / (total - both)


corners = [draw.uniform(0, 1, 300_000) + n // 2 % 2 for n in range(8)]
box_plain = trace(boxes_loss, *corners)
box_tidy = prune_mine(share_mine(trace(boxes_loss, *corners)))
box_fused = prune_mine(fuse_mine(box_tidy, by_loops))
print(len(box_plain.body.nodes), "nodes, then", len(box_fused.body.nodes))
print("the same:",
      np.allclose(box_plain.run(*corners), box_fused.run(*corners)))


# %%
def in_turn(runs, repeats=15):
    """The best of three times of each, in each round."""
    for run in runs:
        run()  # compile first
    times = np.empty((len(runs), repeats))
    for n in range(repeats):
        for k, run in enumerate(runs):
            each = []
            for _ in range(3):
                began = time.perf_counter()
                run()
                each.append(1e3 * (time.perf_counter() - began))
            times[k, n] = min(each)
    return times


def engine_step():
    leaves = [Tensor(array, requires_grad=True) for array in weights]
    network_loss(*map(Tensor, data), *leaves).backward()


box_times = in_turn([lambda: boxes_loss(*map(Tensor, corners)),
                     lambda: box_plain.run(*corners),
                     lambda: box_fused.run(*corners)])
step_times = in_turn([engine_step, lambda: plain.run(*data, *weights),
                      lambda: tidy.run(*data, *weights),
                      lambda: fused.run(*data, *weights)])

# %% slide="subslide" folded=true varies=true
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(8, 3.1))
names = ["Tensor", "graph", "shared", "fused"]
for ax, title, times, which in (
        (axes[0], "loss of boxes", box_times, (0, 1, 3)),
        (axes[1], "training step", step_times, (0, 1, 2, 3))):
    low, middle, high = np.quantile(times, [0.25, 0.5, 0.75], axis=1)
    ax.bar([names[k] for k in which], middle, color="#9cc3e6",
           yerr=[middle - low, high - middle], capsize=4)
    ax.set(title=title, ylabel="milliseconds")
plt.tight_layout()
plt.show()

# %% [markdown] slide="notes"
# The bars are medians of fifteen rounds, the lines the middle half of them. Each round
# measures all of them in turn, so that a slow second hits everybody.

# %% slide="more" varies=true
for title, times in (("loss of boxes", box_times),
                     ("training step", step_times)):
    ratios = np.quantile(times[0] / times[-1], [0.25, 0.5, 0.75])
    print(f"{title}: {ratios[1]:.1f} times as fast as Tensor,",
          f"the middle half {ratios[0]:.1f} to {ratios[2]:.1f}")

# %% [markdown]
# Both gain, and the spread says how sure that is. A part of the step's time goes into
# products of matrices, which fusion does not touch. If a part p of the time becomes nothing at all, the gain is
# at most 1 / (1 - p): Amdahl's law. So look first where the time goes (chapter 11), and fuse then.

# %% [markdown] slide="slide"
# ## Traps
#
# A pass that merges equal nodes meets random numbers:

# %% [markdown] slide="notes"
# Two calls with the same arguments, two results that differ. Merged, both would be the same. The
# framework's pass asks the record: is_random.

# %% slide="more"
def two_noises(x):
    return torch.rand_like(x) - torch.rand_like(x)


torch.manual_seed(0)
noisy = torch.jit.trace(two_noises, torch.zeros(3), check_trace=False)
merged = cse.eliminate_common_subexpressions(noisy.graph)
for graph in (noisy.graph, merged):
    print("draws:", sum("rand_like" in node.kind for node in graph.nodes))
print("all zero:", bool((noisy(torch.zeros(3)) == 0).all()))

# %% [markdown]
# Your graph has no such operations, so your `share` need not ask. As soon as one comes in,
# equal inputs no longer mean equal results. Randomness, writes and effects have to be
# known to *every* pass.

# %% [markdown] slide="subslide"
# ## Algebra that is not true of floats

# %% [markdown] slide="notes"
# x · 0 is not 0 for infinity, and sums in another order are other sums. A compiler may do
# this only if it was asked to.

# %% slide="more"
x = np.array([np.inf, np.nan, -1.0])
with np.errstate(all="ignore"):
    print("x + 0 is x?       ", 1 / (np.float64(-0.0) + 0.0) == -np.inf)
    print("x * 0 is 0?       ", x * 0)
    print("x - x is 0?       ", x - x)
print("a + (b + c) is the same?", (0.1 + 0.2) + 0.3 == 0.1 + (0.2 + 0.3))

# %% [markdown]
# Simplifications that hold for numbers may fail for infinity, NaN and -0.0. The first line:
# -0.0 + 0.0 is 0.0, so even `x + 0` changes something. (x · 1 and x - 0 are safe.)

# %% [markdown] slide="subslide"
# ## A fused graph is made for its shapes

# %% [markdown] slide="notes"
# The text has no sizes, only dimensions. But `shape` is an attribute, and it was 512 rows.

# %% slide="more" raises=true
few = [array[:10] for array in data]
fused.run(*few, *weights)

# %% [markdown]
# The shapes were frozen while tracing. A compiler keeps one version for each shape, or
# makes the sizes inputs. The framework's `jit` does the first.

# %% [markdown]
# ## Milestone 14
#
# `python3 -m course milestone 14` traces a network, derives it, improves and fuses the graph, and
# trains with it for 3,000 steps. It runs on your own package and NumPy alone: fused nodes are run by
# NumPy, a block of rows at a time.

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** `y = (x * 2 + 1).tanh()` with 8 MB in x. How many MB are moved operation by
# operation, and how many by one loop?
#
# <details><summary>Answer</summary>
#
# Three operations read and write 8 MB each, which is 48 MB. One loop reads x once and writes y
# once, which is 16 MB. If memory is what takes the time, the loop is three times as fast.
#
# </details>
#
# **2.** Why does `prune` begin at the end of the list, and `share` at its front?
#
# <details><summary>Answer</summary>
#
# Whether a node is needed depends on the nodes behind it. Whether a node is equal to another one
# depends on its inputs, which were made before. Each pass goes in the direction in which its question can be
# answered at once.
#
# </details>
#
# **3.** In which order would you run `derive`, `share`, `prune` and `fuse`, and why?
#
# <details><summary>Answer</summary>
#
# First `derive`, so that the backward pass is improved as well. Then `share`, which makes nodes useless,
# and `prune`, which removes them. `fuse` comes last, since no other pass looks into a fused
# node.
#
# </details>
#
# **4.** What does this print, and why may a compiler not replace x * 0 by 0?
#
# ```python
# x = torch.tensor([1.0, float("inf")])
# print((x * 0).tolist())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [0.0, nan]
# ```
#
# Infinity times zero is NaN, and a zero in its place would hide it. A pass has to give the same
# result for every input. PyTorch's compilers do such things only with fast-math options.
#
# </details>
#
# **5.** Softmax along the rows: which of its operations can your `groups` put together, and what lies in
# between?
#
# <details><summary>Answer</summary>
#
# The exponential is in one group, the division in another. The sum lies between them: it needs all
# elements of a row, and the division needs the sum. A fuser with reductions goes over each row several times
# while it lies in the cache.
#
# </details>
#
# **6.** Two nodes have equal inputs and the same operation. Name two reasons why they must not be
# merged.
#
# <details><summary>Answer</summary>
#
# The operation may be random, or have an effect. Or somebody writes to one of the two results
# in place, and the other must not change. Both cannot happen in a graph of pure operations such as
# yours.
#
# </details>
#
# **7.** What does this print? Which values would a fused backward pass of it have to keep?
#
# ```python
# x = torch.tensor(0.5, requires_grad=True)
# y = x.tanh()
# y.backward()
# print(bool(torch.isclose(x.grad, 1 - y.detach() ** 2)))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# True
# ```
#
# The derivative of tanh is 1 − y², so the result is enough, and x need not be kept. In a graph
# of both passes this is one value that the forward part makes and the backward part uses.
#
# </details>
#
# **8.** A step takes 10 ms, of which 6 ms are elementwise operations. What is the most that fusion can
# gain?
#
# <details><summary>Answer</summary>
#
# If the 6 ms became nothing, 4 ms would be left: 2.5 times. The rest is what fusion does not
# touch, such as products of matrices. This bound is Amdahl's law.
#
# </details>
#
# **9.** *Chapter 12.* A fused kernel replaces twenty small ones of 2 µs each, and a launch takes 5 µs. What is
# saved besides memory traffic?
#
# <details><summary>Answer</summary>
#
# Nineteen launches, which are 95 µs of the host's time. With kernels that are shorter than a launch,
# the device waits for the host. So for small tensors, fewer launches matter more than fewer
# bytes.
#
# </details>
#
# **10.** *Chapter 12.* Fifteen operations run one after the other. Each reads the result of the one before, and nothing else
# reads it. A result has 4 MB. How much memory do the results need at one time? How much if a gradient is wanted and each
# result is saved? And how much does one fused kernel need?
#
# <details><summary>Answer</summary>
#
# 8 MB: the result that is read and the one that is written. When a result has been read, the allocator gives its block out
# again. With a gradient all fifteen stay until the backward pass, which is 60 MB. The fused kernel needs 4 MB, and with a
# gradient what its backward pass saves.
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * Write a pass that replaces x · 1 by x and x - 0 by x. Which of your rules of `derive` make
#   such nodes?
# * Your `groups` never joins two groups to one. Where would it help in the loss of boxes?
# * Let `groups` take in a sum at the end of a group. What has the text of the loop to say
#   then? The loop language has `sum[j](x)`.
# * `derive` keeps what the backward pass needs. Computing it again may be cheaper than reading
#   it: for which operations?
# * Your passes do not know blocks. What may `share` take from the block around a
#   branch, and what may it not take out of a branch?
#
# **Next:** chapter 15 writes the kernels themselves: threads, shared memory, and tiles.

# %% [markdown] slide="notes"
# The second question leads to softmax as one kernel, and the third to activation
# checkpointing.

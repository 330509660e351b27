# %% [markdown] slide="slide"
# # 04 · Autograd: the graph and the engine
#
# You compute one number, a loss, from a million parameters, in ordinary
# Python with `if` and `for`. Then you call `loss.backward()`, and every
# parameter has its gradient: how much the loss changes when it changes.
#
# > **The question of this chapter:** who recorded what you did, and how can
# > one pass over that record give the gradients of all parameters?

# %% [markdown] slide="notes"
# 45 minutes: question 4, play 12, derivatives of a product 6, exercise 1
# live 5, the order 8, training on the engine 5, traps 5. Leave the Tensor
# class as homework: its checks come in stages, and it is the first file of
# everybody's own package.

# %% keep=true slide="more" show="output"
import toytorch as torch
from course import check, exercise, hint, look, milestone, setup
from toytorch import viz

setup()
x = torch.tensor(2.0, requires_grad=True)
w = torch.tensor(0.5, requires_grad=True)
y = (w * x + w).tanh()
viz.autograd_graph(y, params={"x": x, "w": w})

# %% [markdown]
# Three operations, `*`, `+` and `tanh`, have left three **nodes** behind. When
# a tensor that requires a gradient takes part in an operation, the result
# keeps such a node in its `grad_fn`. The node has the derivative of its
# operation. Some nodes also save a tensor, because their derivative needs it.
#
# Arrows point from the result down to the leaves. In this direction the
# gradients are passed on.
#
# Two arrows end at `w`. It was used twice, so there are two paths from it to
# the result. Its gradient is the sum over both paths.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# Below, `y` is doubled sixty times by adding it to itself. Each addition uses
# `y` twice, so the number of paths back to `start` doubles each time: there
# are 2⁶⁰, more than a billion billions. Write down: how many **nodes** has the
# graph? What is `start.grad`? And does `backward` take a millisecond, a second
# or years?

# %% [markdown] slide="notes"
# Collect three guesses. Everybody gets the sixty nodes; few believe the
# milliseconds. The paths are counted without being walked.

# %% slide="more"
start = torch.tensor(1.0, requires_grad=True)
y = start
for _ in range(60):
    y = y + y

node, count = y.grad_fn, 0
while node is not None and node.next_functions:
    node, count = node.next_functions[0][0], count + 1

y.backward()
print(count, "nodes")
print(int(start.grad), "paths, all of them counted")

# %% [markdown]
# It took sixty steps, one for each node. The engine did not follow each path.
# It waited at each node until both gradients had arrived, added them, and went
# on **once**.
#
# In this chapter you write that engine, and a network learns to read digits
# with it. Then you write a `Tensor` class of your own that records its graph,
# and train a network with nothing else.

# %% [markdown] slide="slide"
# ## Play: a graph is made of nodes
#
# | ask | answer |
# | --- | --- |
# | `y.grad_fn` | the node of the operation that made `y` |
# | `node.name()` | which operation |
# | `node.next_functions` | where it sends gradients: `(target, number)` |
# | `node(g)` | the gradients of its inputs, for `g` of its result |

# %% [markdown] slide="notes"
# Call the node by hand with 10. The product sends each factor times 10 to the
# other side: that is the chain rule for one operation.

# %% slide="more"
node = (w * x).grad_fn  # w is 0.5 and x is 2
print(node.name(), "saved", [v.item() for _, v in node.saved_items()])
for target, number in node.next_functions:
    print("  sends to", target.name(), number)
print("  called with 10:", [g.item() for g in node(torch.tensor(10.0))])

# %% [markdown]
# The product sends `10 * 2` to `w` and `10 * 0.5` to `x`. Its derivative with
# respect to one factor is the *other* factor, and it is multiplied by the
# gradient that came in. That is the chain rule for one operation:
#
# $$g_x = g \cdot \frac{\partial y}{\partial x}.$$
#
# For a tensor with many elements the derivative is a matrix, the Jacobian
# $J$. Its entry $J_{ki} = \partial y_k / \partial x_i$ says how result $k$
# depends on input $i$. The loss depends on $x_i$ through every $y_k$, so the
# chain rule sums over $k$:
#
# $$g_{x_i} = \sum_k g_k \frac{\partial y_k}{\partial x_i}
#   \qquad\text{that is}\qquad g_x = g^\top J.$$
#
# A node never builds $J$. For `tanh`, $y_k$ depends on $x_k$ alone, so $J$ has
# $1 - y_k^2$ on its diagonal and zeros elsewhere, and $g^\top J$ is the
# element-wise product `g * (1 - y * y)`. For a million elements, that is a
# million multiplications instead of a matrix of 10¹² entries.
#
# <details><summary>The same for a matrix product, in full</summary>
#
# Let $Y = AB$ with $Y_{ij} = \sum_k A_{ik} B_{kj}$, and let
# $G_{ij} = \partial L / \partial Y_{ij}$ be the gradient that comes in.
# $A_{ik}$ takes part in row $i$ of $Y$ only, and there $\partial Y_{ij} /
# \partial A_{ik} = B_{kj}$. Summing over all results it takes part in:
#
# $$\frac{\partial L}{\partial A_{ik}} = \sum_j G_{ij} B_{kj}
#   \quad\Rightarrow\quad G_A = G B^\top.$$
#
# $B_{kj}$ takes part in column $j$ only, with $\partial Y_{ij} / \partial
# B_{kj} = A_{ik}$:
#
# $$\frac{\partial L}{\partial B_{kj}} = \sum_i A_{ik} G_{ij}
#   \quad\Rightarrow\quad G_B = A^\top G.$$
#
# Check by shapes: with $A$ of $(n, m)$ and $B$ of $(m, p)$, $G$ is $(n, p)$;
# $GB^\top$ is $(n, m)$ and $A^\top G$ is $(m, p)$, as they have to be.
# </details>
#
# A leaf's node is called `AccumulateGrad`: it adds what arrives to the leaf's
# `.grad`.
#
# ### The graph is what ran
#
# A graph contains no `if` and no loop, only the operations that were run.
# Every run makes a new graph.

# %%
def steps_of(tensor):
    """The names of the operations behind a tensor, last one first."""
    names, node = [], tensor.grad_fn
    while node is not None and node.next_functions:
        names.append(node.name().removesuffix("Backward0"))
        node = node.next_functions[0][0]
    return names


def odd(x):
    while abs(x) < 10:
        x = x * x if x > 2 else x + 1
    return x


for start in (0.5, 3.0, -20.0):
    x = torch.tensor(start, requires_grad=True)
    print(start, steps_of(odd(x)))

# %% [markdown] slide="subslide"
# ## `(w * x + w) ** 2`, step by step

# %% [markdown] slide="notes"
# Step with the right arrow. Stop where `w` receives its second gradient: it
# waits until both have arrived.

# %% keep=true slide="more" show="output"
x = torch.tensor(3.0, requires_grad=True)
w = torch.tensor(2.0, requires_grad=True)
y = w * x + w
viz.backward_steps(y * y, params={"x": x, "w": w})

# %% [markdown]
# Press *Next*. Watch three things: gradients **wait** on the edges until
# their node runs; a node runs **once**; and `w`, which two arrows lead to,
# gets the **sum**.
#
# ### The derivative at many points
#
# One call gives the derivative at as many points as you like: `y[i]` depends
# on `x[i]` alone, so the gradient of `y.sum()` holds every `dy[i]/dx[i]`.

# %% [markdown] slide="subslide"
# ## Two functions and their derivatives

# %% [markdown] slide="notes"
# Autograd's derivative of two hundred points at once. Ask how it was computed
# with one call of backward: by a sum.

# %% slide="more" show="output"
import matplotlib.pyplot as plt


def wave(x):
    return (x * 3).sin() * (-x * x / 4).exp()


figure, both = plt.subplots(1, 2, figsize=(8, 2.7))
for axes, f, name in zip(both, (torch.tanh, wave), ("tanh", "wave")):
    x = torch.linspace(-4, 4, 200, dtype=torch.float64)
    y = f(x.requires_grad_())
    y.sum().backward()  # y[i] depends on x[i] only
    axes.plot(x.detach().numpy(), y.detach().numpy(), label=name)
    axes.plot(x.detach().numpy(), x.grad.numpy(), label="derivative")
    axes.legend()
plt.show()

# %% [markdown]
# ### A derivative can be exchanged
#
# The derivative of `tanh` is a field of its record, and you can put another in
# its place. Here it is used in forty layers. Each layer multiplies the
# gradient by its derivative, and where `tanh` is flat, the derivative is
# small. So the gradient shrinks with every layer. This is called the
# *vanishing gradient*.

# %%
def my_derivative(g, result):
    return g * (1 - result * result)


with torch.ops.tanh.using(d_self=my_derivative):
    x = torch.tensor(0.8, requires_grad=True)
    y = x
    for _ in range(40):
        y = (2 * y).tanh()
    y.backward()
print(f"The gradient after 40 layers: 10 to the {x.grad.log10():.0f}")

# %% [markdown] slide="slide"
# ## Build
#
# Four exercises:
#
# 1. **undoing a broadcast**: the one step that every derivative needs
# 2. the **order** in which nodes run
# 3. a whole **engine**, which toytorch itself will run on
# 4. a **Tensor** of your own that records, with everything above in it: the
#    largest file of your own package `mytorch`

# %% [markdown] slide="notes"
# Draw exercise 2 on the whiteboard with the c * a example before anyone types.
# Exercise 4 is homework. Show its trace table, and the milestone at the end.

# %% exercise="autograd.unbroadcast" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twelve minutes. What was copied forward is summed backward. Start with the
# dimensions that the input lacks.

# %% check="autograd.unbroadcast" points=2

# %% [markdown]
# ### Why the order matters
#
# In the graph below, there is a short path from the result to `a` and a long
# one. If the node of `a` runs as soon as the gradient of the short path has
# arrived, it sends on one part of its gradient, and the other part comes too
# late.
#
# When two gradients meet at a node, they are **added out of place**,
# `old + new`. The node of `x + y` sends *the same tensor* to both inputs;
# `old += new` would write into a gradient that waits elsewhere.

# %% [markdown] slide="slide"
# ## When may the node of `a` run?

# %% [markdown] slide="notes"
# Two paths lead from the result to `a`. Ask which node has to wait, and for
# whom.

# %% keep=true slide="more" show="output"
x = torch.tensor(0.5, requires_grad=True)
a = x.exp()
b = a.sin()
c = b.cos()
names = {"x": x, "a": a, "b": b, "c": c}
viz.autograd_graph(c * a, params=names, saved=False)

# %% exercise="autograd.order" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eighteen minutes. Recursion fails for a deep graph. Write the trace of the
# diamond on the whiteboard first.

# %% check="autograd.order" points=3

# %% exercise="autograd.engine" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty-five minutes. Gradients that arrive at a node are added before it
# runs. A leaf adds to what its `.grad` has.

# %% check="autograd.engine" points=4

# %% [markdown] slide="slide"
# ## Plug in: a network learns on your engine
#
# 1,797 handwritten digits, a network of nothing but `@`, `+` and `tanh`, and
# what runs backward is yours.

# %% [markdown] slide="notes"
# The network has four tensors and no module. Ask which operations its graph
# will hold before the next slide.

# %% slide="more"
from toytorch.vision import datasets

images, labels = datasets.digits(train=True)
test_images, test_labels = datasets.digits(train=False)
print(images.shape, "to learn from,", test_images.shape, "to test with")

# %% slide="more"
torch.manual_seed(4)
w1 = (torch.randn(64, 48) / 8).requires_grad_()
b1 = torch.zeros(48, requires_grad=True)
w2 = (torch.randn(48, 10) / 7).requires_grad_()
b2 = torch.zeros(10, requires_grad=True)
parameters = [w1, b1, w2, b2]


def network(images):
    hidden = (images.flatten(1) @ w1 + b1).tanh()  # (n, 48)
    return hidden @ w2 + b2  # (n, 10)


# %% [markdown] slide="subslide"
# ## The graph of one training step

# %% [markdown] slide="notes"
# The picture goes on in the right column. Follow one path from the loss to
# `w1` with the class.

# %% slide="more" show="output"
cross_entropy = torch.nn.functional.cross_entropy
loss = cross_entropy(network(images[:32]), labels[:32])
names = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}
viz.autograd_graph(loss, params=names, saved=False)

# %% [markdown]
# There are four leaves, one for each parameter. Now install your order and
# your engine for the rest of the session, and train. Where your engine is
# still open, toytorch's own loop runs, in your order. **Predict** how many of
# the 360 test digits the network will read.

# %% [markdown] slide="subslide"
# ## Train, on your code

# %% [markdown] slide="notes"
# From here on toytorch itself runs on the two functions. If they were wrong,
# the loss would not fall.

# %% slide="more"
pieces = ["order", "engine"]
for piece in pieces:
    exercise(f"autograd.{piece}").install()

# %%
def train(epochs=25, size=32, rate=0.05, momentum=0.9):
    """Steps downhill; returns the mean loss of each epoch."""
    speeds = [torch.zeros_like(p) for p in parameters]
    history = []
    for _ in range(epochs):
        total = 0.0
        for some in torch.randperm(len(labels)).split(size):
            loss = cross_entropy(network(images[some]), labels[some])
            for p in parameters:
                p.grad = None
            loss.backward()
            with torch.no_grad():
                for p, speed in zip(parameters, speeds):
                    speed.mul_(momentum).add_(p.grad)
                    p -= rate * speed
            total += loss.item() * len(some)
        history.append(total / len(labels))
    return history


# %% slide="more"
history = train()
with torch.no_grad():
    guesses = network(test_images).argmax(1)
right = (guesses == test_labels).float().mean().item()
print("the loss fell:", history[-1] < history[0] / 20)
print("more than 95 % of unseen digits right:", right > 0.95)

# %% [markdown] slide="subslide"
# ## The loss, epoch by epoch

# %% [markdown] slide="notes"
# The axis is logarithmic. The loss still falls at the end: the network is
# small and the data are few.

# %% slide="more" folded=true varies=true
figure, axes = plt.subplots()
axes.semilogy(range(1, len(history) + 1), history)
axes.set_xlabel("epoch")
axes.set_ylabel("loss")
axes.set_title(f"{right:.1%} of 360 unseen digits read right")
plt.show()

# %% [markdown]
# The number above each picture is the network's answer, in orange where it is
# wrong. Most of its mistakes are hard to read for people, too.

# %% [markdown] slide="subslide"
# ## What it reads, mistakes first

# %% [markdown] slide="notes"
# Mistakes come first, in red. Let the class read them: some are hard for
# people as well.

# %% slide="more" folded=true varies=true
wrong = (guesses != test_labels).nonzero().flatten().tolist()
chosen = wrong[:8] + [n for n in range(40) if n not in wrong]
figure, grid = plt.subplots(2, 12, figsize=(9, 2.1))
for n, ax in zip(chosen, grid.flatten()):
    ax.imshow(test_images[n, 0].numpy(), cmap="Greys")
    color = "#e2572b" if n in wrong else "#7d8590"
    ax.set_title(str(guesses[n].item()), color=color, fontsize=11)
    ax.axis("off")
figure.tight_layout()
plt.show()

# %%
for piece in pieces:
    exercise(f"autograd.{piece}").uninstall()  # back to toytorch's own

# %% [markdown] slide="slide"
# ## Your own package: a Tensor that records
#
# So far the graph came ready-made. The question of this chapter was who
# recorded it. In the last exercise you do: a `Tensor` on NumPy arrays whose
# operators record themselves. Its `backward` is the engine you have just
# written, over `parents` instead of `next_functions`.
#
# When the check is green, your class is written to `work/mytorch/tensor.py`.
# Each later chapter adds a file to this package, and in the end a small
# language model trains on it. `sum_to` is yours if you have written it, and
# the course's otherwise.

# %% [markdown] slide="notes"
# Until now the graph was given. In the last exercise the class records it,
# and it is the first large file of the package.

# %%
import numpy as np

from mytorch.broadcast import sum_to

# %% exercise="autograd.tensor" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Forty-five minutes, homework. Show the list of attributes and the first
# stage only.

# %% check="autograd.tensor" points=6

# %% [markdown] slide="subslide"
# ## Milestone: XOR on your own Tensor
#
# A *perceptron* computes `x @ w + b` and answers yes where that is positive.
# So it separates two classes by a straight line. For AND there is such a line.
# For XOR there is none, and a hidden layer is needed. Minsky and Papert showed
# this in 1969.
#
# The program below imports NumPy and your package, but neither toytorch nor
# the course. **Predict** how many of the four XOR answers the perceptron gets
# right.

# %% [markdown] slide="notes"
# Predict how many of four the perceptron gets right. One line cannot separate
# XOR, so at least one stays wrong.

# %% slide="more" show="output" varies=true
milestone(4)

# %% [markdown]
# A `○` marks a file that is not yours yet; there the course's own file is
# used. You can run the same from the shell, `python3 -m course milestone 04`,
# and use the package in programs of your own: it lies in `work/`.

# %% [markdown] slide="slide"
# ## Look inside
#
# How toytorch puts nodes in order:

# %% [markdown] slide="notes"
# One line sorts by the number that each node was given when it was made. Ask
# why that order is enough.

# %% slide="more" show="output"
from toytorch.autograd import engine

look(engine.by_sequence, topological_order)

# %% [markdown]
# Yours walks the graph and reverses a list; toytorch sorts. Nodes get a number
# when they are made, and a node can only point to nodes that existed before
# it. So *newest first* is a topological order.
#
# PyTorch numbers its nodes too: among those that are ready to run, its engine
# takes the newest. In an ordinary pass toytorch does the same without sorting:
# nodes at which a gradient waits are kept in a heap, and the newest runs next
# (`Engine._descend`).
#
# The loop below serves a pass with hooks or pictures. Find your four steps in
# it: take what waits at a node, call the node, deliver to its targets, add
# where something waits already. The rest is hooks, gradients of chosen inputs,
# and freeing what was saved.

# %%
look(engine.Engine._in_order, run_backward)

# %% [markdown]
# The class `TanhBackward0` is generated from the record of the operation. The
# names in its derivative decide what it saves: here `result`. There are two
# versions, for tensors and for plain arrays; this is the first:

# %%
print(torch.ops.tanh.node.source.split("\n\n\n")[0])

# %% [markdown] slide="slide"
# ## Measure: what a graph costs
#
# Nodes keep tensors alive until backward has run. **Predict:** which of these
# saves nothing at all, which keeps one tensor, and which keeps two? Every
# input has 1,000 elements of 4 bytes.

# %% [markdown] slide="notes"
# Predict which operations keep something. A sum needs only shapes; a product
# keeps both factors.

# %%
def saved_bytes(node):
    """The bytes of all tensors that one node keeps."""
    kept = {id(v): v for _, v in node.saved_items()
            if isinstance(v, torch.Tensor)}
    return sum(v.numel() * v.element_size() for v in kept.values())


# %% slide="more"
u = torch.rand(1000, requires_grad=True)
v = torch.rand(1000, requires_grad=True)
cases = {"u + v": u + v, "u - v": u - v, "u * v": u * v, "u / v": u / v,
         "u.exp()": u.exp(), "u.tanh()": u.tanh(), "u.sin()": u.sin(),
         "u.relu()": u.relu(), "u.sum()": u.sum()}
for text, result in cases.items():
    print(f"{text:<9}{saved_bytes(result.grad_fn):>6} bytes")

# %% [markdown]
# * The derivative of a sum is 1 everywhere, so nothing is saved.
# * A product saves both factors.
# * For `exp`, `tanh` and `relu` the derivative can be computed from the
#   result. The next node often saves it anyway, and the two share one tensor.
#
# Most of the memory of training is used for such saved tensors, not for the
# parameters.
#
# And time? **Predict** by what factor a small multiplication gets slower when
# a node is recorded.

# %%
import time


def best(*works, times=2_000):
    """Nanoseconds for one call of each, the best of 20 rounds in turn."""
    found = [float("inf")] * len(works)
    for _ in range(20):
        for k, work in enumerate(works):
            begin = time.perf_counter()
            for _ in range(times):
                work()
            spent = time.perf_counter() - begin
            found[k] = min(found[k], spent / times * 1e9)
    return found


# %% [markdown] slide="subslide"
# ## What recording costs, for ten elements

# %% [markdown] slide="notes"
# Recording costs a fraction of a small operation. For large tensors it is
# lost in the arithmetic.

# %% slide="more" varies=true
p, q = torch.rand(10), torch.rand(10)
r, s = torch.rand(10, requires_grad=True), torch.rand(10)
plain, recorded = best(lambda: p * q, lambda: r * s)
print(f"without a graph {plain:.0f} ns, with one {recorded:.0f} ns:",
      f"{recorded / plain:.1f} times as long")

# %% [markdown] slide="slide"
# ## Traps
#
# Each of these cells raises an error on purpose. Read its last line.

# %% [markdown] slide="notes"
# Three errors on purpose. Each names the remedy in its own words; let the
# class find it.

# %% raises=true slide="more"
x = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (x * x).sum()
loss.backward()
loss.backward()  # what x * x had saved is gone

# %% raises=true slide="more"
y = x * 2
y.backward()  # two numbers: the gradient of which one?

# %% raises=true slide="more"
x += 1  # in place, on a leaf

# %% [markdown]
# The last one is why training steps stand under `torch.no_grad()`. Or this:
# `x = x - 0.1 * x.grad` raises no error, but makes a *new* tensor that is no
# leaf, so its `.grad` stays `None` from then on.
#
# The next three raise no error:

# %% [markdown] slide="subslide"
# ## Traps that raise no error

# %% [markdown] slide="notes"
# The first adds to an old gradient, the second keeps every graph. Both run
# without an error.

# %% slide="more"
x = torch.tensor(3.0, requires_grad=True)
for step in range(3):
    (x * 2).backward()
    print("step", step, "gradient", x.grad.item())  # dy/dx is 2

# %% [markdown]
# Gradients **add up over calls**, too. That is useful for a large batch in
# small parts. Otherwise set `x.grad = None` or call `optimizer.zero_grad()`
# first.
#
# The next one costs memory, because of one `+`:

# %%
def graph_size(tensor):
    seen, stack = set(), [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(target for target, _ in node.next_functions)
    return len(seen)


# %% slide="more"
total = 0.0
for step in range(100):
    loss = (x * step - 1) ** 2
    total = total + loss  # meant for a log, keeps every graph
print("nodes behind loss: ", graph_size(loss))
print("nodes behind total:", graph_size(total))

# %% [markdown]
# `total` holds all hundred graphs and everything they saved. For a log, say
# `loss.item()` or `loss.detach()`.
#
# In the third, `tanh` has saved its result, and the program then writes over
# it. Through `.data` the engine cannot notice, and the gradient is wrong
# without an error. An ordinary in-place write is noticed (chapter 05 shows
# how):

# %% [markdown] slide="subslide"
# ## Writing through `.data` is not noticed

# %% [markdown] slide="notes"
# With `.data` autograd sees nothing of the write. The write under `no_grad` is counted, so
# the engine can refuse.

# %% slide="more"
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.tanh()
y.data.mul_(0)  # autograd does not see this
y.sum().backward()
print(x.grad, "but the derivative is", 1 - x.detach().tanh() ** 2)

# %% raises=true slide="more"
y = x.tanh()
with torch.no_grad():
    y.mul_(0)  # autograd sees this
y.sum().backward()

# %% [markdown]
# Integers cannot change by a small amount, so they have no derivative:

# %% raises=true
torch.tensor([1, 2, 3], requires_grad=True)

# %% [markdown]
# Class labels must *not* be floats: they are indices of classes.

# %% raises=true
scores = torch.zeros(2, 3, requires_grad=True)
cross_entropy(scores, torch.tensor([0.0, 2.0]))

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** What is `x.grad`, and how many edges lead to the node of `z`?
#
# ```python
# x = torch.tensor(1.0, requires_grad=True)
# z = x * 3
# (z + z * z).backward()
# print(x.grad)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor(21.)
# ```
#
# Three edges: one from the sum, and two from `z * z`. They deliver 1, 3 and 3.
# The node of `z` runs when all three have arrived, so it receives 7 and sends
# 7 · 3 = 21. If it ran after the first one, it would send only a part.
#
# </details>
#
# **2.** `y` is 2 · x both times. Why is the second gradient not 2?
#
# ```python
# x = torch.tensor(5.0, requires_grad=True)
# for _ in range(2):
#     (x * 2).backward()
#     print(x.grad)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor(2.)
# tensor(4.)
# ```
#
# `backward` adds to `.grad`. The second call adds 2 to the 2 that is already
# there. Set `x.grad = None` (or call `optimizer.zero_grad()`) before each
# training step. Adding is useful if one large batch is computed in several
# parts.
#
# </details>
#
# **3.** The bias is broadcast over five rows. What is its gradient?
#
# ```python
# x = torch.zeros(5, 4)
# b = torch.zeros(4, requires_grad=True)
# (x + b).sum().backward()
# print(b.grad)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor([5., 5., 5., 5.])
# ```
#
# Each element of the bias is used in five rows, so there are five paths from
# it to the sum. Each path contributes 1, and the gradient is the sum over all
# paths. The gradient has the shape of the bias: that is what `sum_to` does.
#
# </details>
#
# **4.** What is the gradient, and what would it be without `detach`?
#
# ```python
# x = torch.tensor(3.0, requires_grad=True)
# y = (x * 2).detach() * x
# y.backward()
# print(x.grad)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor(6.)
# ```
#
# `detach()` returns the value 6 without a history. So it counts as a constant,
# and the derivative of 6 · x is 6. Without `detach`, y is 2 · x², and its
# derivative is 4 · x = 12.
#
# </details>
#
# **5.** A million-element tensor `u` requires a gradient. Which of `u + 1`,
# `u * u`, `u.exp()` and `u.sum()` save a tensor for backward, and which one
# needs memory for a new saved tensor?
#
# <details><summary>Answer</summary>
#
# The derivatives of `u + 1` and `u.sum()` are 1, so they save nothing. `u * u`
# saves its factor `u`, which exists anyway. `u.exp()` saves its result,
# because the derivative of exp is exp. The result exists as long as the
# program uses it; after that, only the graph keeps it in memory.
#
# </details>
#
# **6.** `f` contains an `if`. What are the two gradients, and why does
# autograd need no rule for `if`?
#
# ```python
# def f(x):
#     return x * x if x > 0 else -x
#
#
# for start in (3.0, -3.0):
#     x = torch.tensor(start, requires_grad=True)
#     f(x).backward()
#     print(x.grad)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor(6.)
# tensor(-1.)
# ```
#
# The graph contains only the operations that were run. For 3 that is a
# product, with the derivative 2 · 3 = 6. For -3 it is a negation, with the
# derivative -1. Each run makes a new graph.
#
# </details>
#
# **7.** Why does the first call need an argument, and the second one fail?
#
# ```python
# x = torch.tensor([1.0, 1.0], requires_grad=True)
# (x * 2).backward(torch.tensor([1.0, 10.0]))
# print(x.grad)
# (x * 2).backward()
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor([ 2., 20.])
# RuntimeError
# ```
#
# `backward` computes $g^\top J$ for a given $g$. Here $g$ is [1, 10], and the
# Jacobian has 2 on its diagonal. A single number has the natural choice
# $g = 1$. A result with two elements has none, so $g$ must be given.
#
# </details>
#
# **8.** A training loop logs its loss by `total = total + loss`. Memory grows
# with every step. Why, and what is the remedy?
#
# <details><summary>Answer</summary>
#
# `loss` has a graph, so `total` has a graph too, which includes the graphs of
# all steps and the tensors they saved. Nothing of it can be freed. Use
# `total += loss.item()`, which is a Python number without a graph, or
# `loss.detach()`.
#
# </details>
#
# **9.** *Chapter 02.* Predict both strides.
#
# ```python
# x = torch.arange(6).reshape(2, 3)
# print(x.t().stride(), x.t().contiguous().stride())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# (1, 3) (2, 1)
# ```
#
# `x` has the strides (3, 1), and `t()` exchanges them without moving an
# element. `contiguous()` copies the elements into a new memory, row by row.
# The shape is (3, 2), so the new strides are (2, 1).
#
# </details>
#
# **10.** *Chapter 02.* How many bytes of memory do the two tensors use?
#
# ```python
# a = torch.ones(1).expand(1000, 1000)
# b = a.contiguous()
# print(a.untyped_storage().nbytes(), b.untyped_storage().nbytes())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 4 4000000
# ```
#
# `expand` gives both dimensions a stride of 0, so all million elements are the
# same cell of 4 bytes. A contiguous tensor has a cell for each element.
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * A backward pass costs a small multiple of the forward pass, *whatever the
#   number of inputs*. How would the cost grow if you walked the same graph
#   from the leaves to the result?
# * What would you save if memory were scarce and time were not? Which nodes
#   could compute their saved tensor again?
# * Every entry of `next_functions` has a number beside the target, always 0
#   so far. What is it for? Try `torch.rand(3, requires_grad=True).sort()`.
# * Your engine runs one node at a time. Which nodes could run at once, and
#   what would two threads have to agree on?
#
# **Next:** chapter 05 breaks the rules of this one: in-place writes, views,
# and how the engine finds out.

# %% [markdown] slide="notes"
# The first question leads to forward mode. Ask when it would be the cheaper
# one.

# %% [markdown] slide="slide"
# # 05 · Leaves, in-place writes, versions
#
# A graph saves some of the tensors that were computed, because the derivatives
# need them. Suppose that a program then writes over such a tensor. The
# gradient would be wrong, and no error would show it: the loss would just fall
# more slowly.
#
# > **The question of this chapter:** how can such a write be noticed, without
# > a copy of every saved tensor?

# %% [markdown] slide="notes"
# 45 minutes: question and prediction 5, leaves 5, versions and views 10,
# exercise 3 live 8, exercise 4 on the whiteboard 8, training 5, traps 4. The
# counter is a good warm-up for those who finish early; the hunt for the NaN
# is homework.

# %% keep=true slide="more" show="output"
import toytorch as torch
from course import check, exercise, hint, look, setup, use
from toytorch import viz

setup()
viz.program_steps("""
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x.exp()
y.mul_(10)
y.sum().backward()
""")

# %% [markdown]
# Press *Next*: the program runs line by line. Each tensor has a **version**,
# which counts the writes to its memory. `y.mul_(10)` overwrites the elements of `y` (the underscore means *in place*), and the
# version becomes 1.
#
# But `ExpBackward0` had saved `y`, because the derivative of `exp` is `exp`
# itself. It saved it at version 0. When backward reaches the node, the
# versions differ, and it raises an error.
#
# Is it the same for other operations? `fate(f)` runs the program with another
# operation in place of `exp`.

# %%
def fate(f):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = f(x)
    y.mul_(10)
    try:
        y.sum().backward()
    except RuntimeError:
        return "refused"
    return f"x.grad is {[round(g, 3) for g in x.grad.tolist()]}"


# %% [markdown] slide="slide"
# ## Predict, then run
#
# The same program with other operations in place of `exp`. In every case the
# result `y` is overwritten. Which of the five raise an error? Think of what
# each derivative needs: the input, the result, or neither.

# %% [markdown] slide="notes"
# For each operation ask what its derivative needs: the input, the result, or
# neither. Only those that keep the result are refused.

# %% slide="more"
cases = {"x * 3": lambda x: x * 3, "x.exp()": lambda x: x.exp(),
         "x.sin()": lambda x: x.sin(), "x.tanh()": lambda x: x.tanh(),
         "x * x": lambda x: x * x}
for text, f in cases.items():
    print(f"{text:<9}{fate(f)}")

# %% [markdown]
# The derivative of `sin` needs `x`, that of `x * x` its factors, that of
# `x * 3` the 3. These were not overwritten. `exp` and `tanh` compute their
# derivative from the result, which was overwritten. So an in-place write is
# allowed, **except to a tensor that a node has saved**.

# %% [markdown] slide="slide"
# ## Play: leaves
#
# A **leaf** is a tensor that is not the result of a recorded operation. The
# backward pass ends at the leaves. **Predict:** which of these are leaves, and
# which will have a `.grad`?

# %% [markdown] slide="notes"
# A leaf has no operation behind it. Take the six one by one; `w.double()` is
# the one most people get wrong.

# %% slide="more"
w = torch.ones(3, requires_grad=True)
data = torch.ones(3)
tensors = {"w": w, "data": data, "data * 2": data * 2,
           "w * data": w * data, "w.detach()": w.detach(),
           "w.double()": w.double()}
sum(t.sum() for t in tensors.values()).backward()
for name, t in tensors.items():
    print(f"{name:<11} leaf {t.is_leaf!s:<6} wants {t.requires_grad!s:<6}",
          ".grad" if t.is_leaf and t.grad is not None else "")

# %% [markdown]
# * `data` is a leaf too, but gets no gradient, because it does not require
#   one.
# * `w.double()` is computed from `w`, so it is no leaf. After
#   `w = w.double()`, the name `w` no longer means the leaf, and `w.grad` stays
#   `None`.
# * To keep the gradient of a tensor that is no leaf, call `y.retain_grad()`.
#
# Next, versions. **Predict** the four numbers before you run this.

# %% [markdown] slide="subslide"
# ## Versions: which tensors share a count?

# %% [markdown] slide="notes"
# The count belongs to the memory, not to the tensor. `detach` shares it,
# `.data` does not: that is why `.data` is dangerous.

# %% slide="more"
x = torch.zeros(4)
x.add_(1)
x[0] = 7.0
part = x[1:3]
part.mul_(5)
print("after three writes, one through a view:", x._version)
print("the view:", part._version)
print("x.detach():", x.detach()._version)
print("x.data:", x.data._version)

# %% [markdown]
# The count belongs to the memory. So a view has the same count as its base,
# and so has the result of `detach()`. The exception is `.data`: it has the
# same memory but a **new** count. A write through `.data` is therefore not
# noticed.
#
# In the next program, `base` is a tensor of ones. `view` shows two of its
# elements, and these are multiplied in place.

# %% [markdown] slide="slide"
# ## A write through a view

# %% [markdown] slide="notes"
# Step to the write through the view. Both tensors show the new version,
# because both show the same memory.

# %% keep=true slide="more" show="output"
viz.program_steps("""
w = torch.tensor([2.0, 3.0], requires_grad=True)
base = torch.ones(4)
view = base[1:3]
view.mul_(w)
loss = (base * base).sum()
loss.backward()
""")

# %% [markdown]
# Watch the step of `view.mul_(w)`. Before it, neither tensor requires a
# gradient. After it **both** have a `grad_fn`, also `base`, which does not
# occur in that line.
#
# * The new node of `base` is called `CopySlices`.
# * The view gets a new `grad_fn`, which says that it is a part of the new
#   `base`. An old one would describe values that were overwritten.
#
# This is called **rebasing the history**.
#
# This is the graph. The product is inside `CopySlices`:

# %%
w = torch.tensor([2.0, 3.0], requires_grad=True)
x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
base = x * 1
base[1:3].mul_(w)
viz.autograd_graph(base.sum(), params={"w": w, "x": x})

# %% [markdown] slide="subslide"
# ## What `CopySlices` sends

# %% [markdown] slide="notes"
# The gradient of the elements under the view goes through the product; that of
# the others goes on unchanged.

# %% keep=true slide="more" show="output"
loss = (base * torch.tensor([1.0, 10.0, 100.0, 1000.0])).sum()
viz.backward_steps(loss, params={"w": w, "x": x})

# %% [markdown]
# `CopySlices` receives `[1, 10, 100, 1000]`. The first and the last element
# are passed on unchanged, since these elements were not written to. The two in
# the middle go through the product: times `w` for the old values, times the
# old values for `w`. You will write this yourself.

# %% [markdown] slide="subslide"
# ## When nothing should be recorded

# %% [markdown] slide="notes"
# Inside the block nothing is recorded, but the write is still counted. Ask
# what would happen without the block.

# %% [markdown]
# A training step writes to leaves. Under `torch.no_grad()` this is allowed,
# and it is not recorded. The write is still *counted*, because an older graph
# may have saved the old values.

# %% slide="more"
w = torch.ones(2, requires_grad=True)
with torch.no_grad():
    w -= 0.1
    y = w * 2
print("still a leaf:", w.is_leaf, "| version", w._version)
print("recorded:", y.requires_grad)

# %% [markdown] slide="slide"
# ## Build
#
# Four exercises, and two optional ones:
#
# 1. find the **leaves** that get a gradient
# 2. a memory that **counts its writes**, and raises an error for what is out
#    of date
# 3. backward through a **write to a view** (optional)
# 4. a **no_grad** of your own
# 5. which node made the **first NaN**? (optional)
# 6. **in-place writes** for the Tensor of your own package

# %% [markdown] slide="notes"
# Exercise 2 live. Let the group say what keep() has to note, then ask: what if
# a part of a part is written to? For exercise 3 draw four cells on the
# whiteboard, shade two, and ask for the gradient of each before the write.

# %% exercise="inplace.leaves" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Ten minutes. Walk the graph with a stack and a set. The result may be a leaf
# itself.

# %% check="inplace.leaves" points=2

# %% exercise="inplace.counter" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty minutes. The count must be shared by a view and its base: a number in
# each of them is not enough.

# %% check="inplace.counter" points=4

# %%
cells = use("inplace.counter")([1, 2, 3, 4])
kept = cells.keep()
print("kept:", kept())
cells.part(0, 2).write([70, 80])  # through a view
try:
    kept()
except RuntimeError as error:
    print("refused")

# %% [markdown] slide="subslide"
# ### The same for tensors
#
# A node's saved tensor works like your `keep`. PyTorch lets you replace it:
# `saved_tensors_hooks(pack, unpack)` calls `pack` for every tensor that a node
# saves, and keeps what it returns. In the backward pass, `unpack` gets that
# object and returns the tensor. While such hooks are set, toytorch's own check
# is off.

# %% [markdown] slide="notes"
# The two hooks are PyTorch's place for this. What the exercise wrote as
# `keep` is plugged in here.

# %%
from toytorch.autograd.graph import saved_tensors_hooks


class Saved:
    """A tensor kept for backward, with the version it had."""

    def __init__(self, tensor):
        self.tensor, self.seen = tensor, tensor._version

    def open(self):
        now = self.tensor._version
        if now != self.seen:
            raise RuntimeError(f"at {now}; expected version {self.seen}")
        return self.tensor


def guard():
    return saved_tensors_hooks(Saved, lambda kept: kept.open())


x = torch.tensor([1.0, 2.0], requires_grad=True)
with guard():
    y = x.exp()  # its node keeps y
y.mul_(10)
try:
    y.sum().backward()
except RuntimeError as error:
    print(error)

# %% [markdown]
# **Question:** `Saved` could keep `tensor.clone()`, `tensor.data` or
# `tensor.detach()` instead. What goes wrong with each? Think first.
#
# * A clone never changes, so no check is needed. But each saved result of a
#   network would be in memory twice.
# * `.data` shares the memory and has a count of its own. Writes through the
#   original are not noticed, and the gradient is wrong without an error.
# * `detach()` shares memory and count. But the result belongs to no graph. A
#   second derivative goes *through* the saved tensors, so it would be 0 or
#   raise an error.

# %% exercise="inplace.slices" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eighteen minutes, optional. Write the gradient of `base` as a picture first:
# the part under the view, and the rest.

# %% check="inplace.slices" points=3

# %% exercise="inplace.quiet" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Ten minutes. The block must restore the mode even when an error leaves it.
# Ask what happens when two are nested.

# %% check="inplace.quiet" points=2

# %% exercise="inplace.culprit" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eighteen minutes, optional. The first NaN counts: a node that was sent a NaN
# is not to blame.

# %% check="inplace.culprit" points=3

# %% [markdown]
# Now use it. This loss is small when three points are far apart. Two of the
# points are at the *same* place. The loss is finite, but the gradients of
# those two points are NaN.
#
# Your function finds the node. If anomaly detection was on during the forward
# pass, the node also knows the line of code that made it.

# %% [markdown] slide="subslide"
# ## A loss with a NaN in its gradient

# %% [markdown] slide="notes"
# Two equal points make the square root meet a 0. Its derivative there is
# infinite, and infinity times 0 is NaN.

# %% slide="more"
def length(step):
    return (step ** 2).sum().sqrt()


def loss_of(points):
    steps = points[1:] - points[:-1]
    return sum(1 / (1 + length(step)) for step in steps)


points = torch.tensor([[0.0, 1.0], [3.0, 5.0], [3.0, 5.0]],
                      requires_grad=True)

# %% [markdown] slide="subslide"
# ## Which node made the NaN?

# %% [markdown] slide="notes"
# The hunt names the node, and anomaly mode the line that made it. Ask how to
# write the function without the hole.

# %% slide="more"
with torch.autograd.set_detect_anomaly(True, check_nan=False):
    loss = loss_of(points)
node = use("inplace.culprit")(loss)
print(f"loss {loss.item():.3f}, gradient of the second point",
      points.grad[1].tolist())
print("first NaN from", node.name(), "made in the line")
print("   ", node.metadata["traceback_"][-1].splitlines()[1].strip())

# %% [markdown]
# The derivative of the square root is infinite at 0, the derivative of the
# square is 0 there, and ∞ · 0 is NaN. So the NaN appears in the node of the
# square, but the cause is the root. Write `(... + 1e-12).sqrt()` to avoid it.
#
# With `torch.autograd.detect_anomaly()` the engine checks the gradients of
# every node and raises an error:

# %%
import warnings

said = []
try:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            loss_of(points).backward()
except RuntimeError as error:
    print("raised:", error)
print("warned:", str(said[-1].message).splitlines()[0])
print("       ", str(said[-1].message).splitlines()[-1].strip())

# %% [markdown] slide="slide"
# ## Plug in: a network with your version check
#
# `tanh` is applied to 32 of the 48 hidden units, **in place, through a view**.
# The network uses your `leaves_of` to find the parameters, your `copy_slices`
# for the gradient through the view, and your `quiet` for the training step.
# `Saved`, from above, keeps the tensors.

# %% [markdown] slide="notes"
# In-place writes are allowed if nothing that was kept is changed. The guard
# of the exercise watches over it.

# %% slide="more"
from toytorch.vision import datasets

images, labels = datasets.digits(train=True)
test_images, test_labels = datasets.digits(train=False)
torch.manual_seed(5)
w1 = (torch.randn(64, 48) / 8).requires_grad_()
b1 = torch.zeros(48, requires_grad=True)
w2 = (torch.randn(48, 10) / 7).requires_grad_()
b2 = torch.zeros(10, requires_grad=True)


def network(images):
    hidden = images.flatten(1) @ w1 + b1  # (n, 48)
    hidden[:, :32].tanh_()  # the other 16 stay as they are
    return hidden @ w2 + b2  # (n, 10)


# %% [markdown] slide="subslide"
# ## The graph of one step

# %% [markdown] slide="notes"
# The picture goes on in the right column. Find `CopySlices`: it is the write
# through the view.

# %% slide="more" show="output"
cross_entropy = torch.nn.functional.cross_entropy
loss = cross_entropy(network(images[:32]), labels[:32])
names = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}
viz.autograd_graph(loss, params=names, saved=False)

# %%
def train(network, epochs=20, size=32, rate=0.1):
    """Steps downhill; returns the mean loss of each epoch."""
    first = cross_entropy(network(images[:size]), labels[:size])
    parameters = use("inplace.leaves")(first)  # found, not listed
    quiet = use("inplace.quiet")
    history = []
    for _ in range(epochs):
        total = 0.0
        for some in torch.randperm(len(labels)).split(size):
            loss = cross_entropy(network(images[some]), labels[some])
            for p in parameters:
                p.grad = None
            loss.backward()
            with quiet():
                for p in parameters:
                    p -= rate * p.grad
            total += loss.item() * len(some)
        history.append(total / len(labels))
    return history


# %% [markdown] slide="subslide"
# ## Train, on your code

# %% [markdown] slide="notes"
# Four functions of the chapter are used at once. Without any of them this
# cell would fail or learn nothing.

# %% slide="more"
with guard(), exercise("inplace.slices").active():
    history = train(network)
with torch.no_grad():
    guesses = network(test_images).argmax(1)
right = (guesses == test_labels).float().mean().item()
print("the loss fell:", history[-1] < history[0] / 5)
print("more than 93 % of unseen digits right:", right > 0.93)
print("writes to w1:", w1._version, "which is 45 batches times 20 epochs")

# %% [markdown] slide="subslide"
# ## The loss, epoch by epoch

# %% [markdown] slide="notes"
# The curve looks like that of chapter 04. The in-place form changes memory,
# not the result.

# %% slide="more" folded=true varies=true
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7.2, 2.6))
axes.semilogy(range(1, len(history) + 1), history)
axes.set_xlabel("epoch")
axes.set_ylabel("loss")
axes.set_title(f"{right:.1%} of 360 unseen digits read right")
plt.show()

# %% [markdown]
# Every weight was written to nine hundred times, without an error: each write
# came *after* backward, when the old values were no longer needed.
#
# The next network also applies a function to the other sixteen hidden units,
# in place as well. **Predict:** the two writes change *different* elements. Is
# there an error?

# %% [markdown] slide="subslide"
# ### Two in-place writes to one memory
#
# Both writes are in place, and they change different elements. Is there an
# error?

# %% [markdown] slide="notes"
# Ask for a vote before you run it. One count for the whole memory cannot know
# that the halves are different.

# %% slide="more"
def careless(images):
    hidden = images.flatten(1) @ w1 + b1
    hidden[:, :32].tanh_()  # its node keeps the result
    hidden[:, 32:].sigmoid_()  # other elements, the same memory
    return hidden @ w2 + b2


try:
    with guard():
        cross_entropy(careless(images[:4]), labels[:4]).backward()
except RuntimeError as error:
    print("refused")

# %% [markdown]
# This is a **false alarm**: the result of `tanh` was not changed. But there is
# one count for the whole memory, and not one for each element. A single
# integer cannot tell which elements were written to, so the check raises an
# error in every case. PyTorch raises it too, for the same reason.

# %% [markdown] slide="slide"
# ## Your own package: in-place writes
#
# The `Tensor` that you wrote in chapter 04 has no in-place operations. If you
# write into its `data`, a gradient may be wrong without an error. **Predict**
# the gradient; the derivative of $e^x$ at 0 is 1.

# %% [markdown] slide="notes"
# The gradient is 10 instead of 1, and nothing says so. This is the situation
# of the chapter's first page, in the group's own package.

# %%
from contextlib import contextmanager
from functools import partialmethod

import numpy as np

from mytorch.tensor import Tensor

x = Tensor([0.0], requires_grad=True)
y = x.exp()
y.data *= 10  # nothing counts this write
y.backward()
print(x.grad)

# %% [markdown]
# It is ten times as large as it should be: the derivative of `exp` reads the
# result, which was overwritten.
#
# The next exercise puts the parts of this chapter together: a count that is
# shared by all views, saved tensors that compare versions, in-place methods,
# leaves that are protected, and `no_grad`. When its check is green, your class
# is written to `work/mytorch/inplace.py`.
#
# One thing is new. In your package a result *is* a node of the graph. An
# in-place write gives a tensor a new history, but whoever used it before must
# keep the old one. So the tensor and its node become two objects, as in
# PyTorch, where a tensor has a `grad_fn`.

# %% exercise="inplace.versions" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Homework of 60 minutes. Draw a tensor and its node as two boxes before
# anyone begins; a write replaces the node, and arrows to the old one stay.

# %% check="inplace.versions" points=6

# %% [markdown] slide="subslide"
# ## The first program of this chapter, on your own package

# %% [markdown] slide="notes"
# `exp` reads its result and is refused; `sum` reads nothing, and its gradient
# is 10. Ask for both before running.

# %% slide="more"
Counted = use("inplace.versions")
for name in ("exp", "sum"):
    x = Counted([0.0], requires_grad=True)
    y = getattr(x, name)()
    y.mul_(10)
    try:
        y.backward()
        print(name, "gradient", x.grad)
    except RuntimeError as error:
        print(error)

# %% [markdown]
# And training, with a step in place. The weights are found from 20 examples:

# %% [markdown] slide="subslide"
# ## A training step in place

# %% [markdown] slide="notes"
# The weights stay leaves, and their version counts the steps. Ask what
# happens without `no_grad`: the write to a leaf is refused.

# %% slide="more"
draw = np.random.default_rng(0)
inputs = Counted(draw.normal(size=(20, 2)))
targets = inputs.data @ [[1.0], [-2.0]]
w = Counted(np.zeros((2, 1)), requires_grad=True)
for _ in range(100):
    w.node.grad = None
    loss = ((inputs @ w - targets) ** 2).sum()
    loss.backward()
    with Counted.no_grad():
        w -= 0.02 * w.grad
print(w.data.round(3).tolist(), "after", w._version, "writes")

# %% [markdown] slide="slide"
# ## Look inside
#
# The check of a saved tensor is not written by hand: it is generated from the
# record of the operation. This is the beginning of the node of `exp`. Look for
# the comparison of two versions.

# %% [markdown] slide="notes"
# The check is generated from the record. The two numbers that are compared
# are the version kept and the version now.

# %% slide="more"
print(*torch.ops.exp.node.source.splitlines()[:10], sep="\n")

# %% [markdown]
# And this function makes the message that you saw above:

# %%
from toytorch.core import inplace
from toytorch.facts import node

look(node.check_version)

# %% [markdown] slide="subslide"
# ## Back through a view

# %% [markdown] slide="notes"
# This is the same walk as in the exercise: one gradient for the base, one for
# what was written.

# %% slide="more" show="output"
look(inplace.CopySlices._straight, copy_slices)

# %% [markdown]
# It has the same three steps: take the part out (`_gather_strided`), send it
# through the write (`inner`, in `_through`), and put it back into the rest
# (`_fill_strided`). The branch at the top calls your function. The other one
# is for complex tensors, whose real part is a view as well.
#
# This happens at the write itself:

# %%
look(inplace.rebase)

# %% [markdown]
# Every base has weak references to its views, and updates them at the write.
# PyTorch does it later: when a view is next used, it compares versions, and
# makes a new `grad_fn` if the version has changed.
#
# And `no_grad`, beside yours:

# %%
from toytorch.autograd import modes

look(modes.Recording, quiet)

# %% [markdown] slide="slide"
# ## Measure: does writing in place save memory?
#
# A hook counts the bytes that are saved for backward. A memory that is saved
# twice counts once. **Predict**, for a thousand elements of 4 bytes, what each
# line saves. How much less does the in-place form save?

# %% [markdown] slide="notes"
# Predict each line. In place pays only if the backward pass does not need
# the overwritten elements.

# %%
from toytorch.autograd.graph import saved_tensors_hooks


def kept_bytes(f):
    """The bytes of all memories kept for the backward pass of f."""
    memories = {}

    def pack(tensor):
        memory = tensor.untyped_storage()
        memories[memory.data_ptr()] = memory.nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        result = f()
    del result
    return sum(memories.values())


u = torch.rand(1000, requires_grad=True)
v = torch.rand(1000, requires_grad=True)

# %% slide="more"
lines = {
    "(u + v).tanh()": lambda: (u + v).tanh(),
    "(u + v).tanh_()": lambda: (u + v).tanh_(),
    "(u + v).mul(v)": lambda: (u + v) * v,
    "(u + v).mul_(v)": lambda: (u + v).mul_(v),
    "(u + v).tanh().relu()": lambda: (u + v).tanh().relu(),
    "(u + v).tanh().mul(v)": lambda: (u + v).tanh() * v,
}
for text, f in lines.items():
    print(f"{text:<23}{kept_bytes(f):>6} bytes")

# %% [markdown]
# Here the in-place forms save nothing:
#
# * `tanh_` and `tanh` both keep one result. The sum before it is freed in both
#   cases.
# * The derivative with respect to `v` needs the old elements. `mul_`
#   overwrites them, so it copies them first.
#
# Compare also `.tanh().relu()` with `.tanh().mul(v)`. `relu` saves a new
# result. The product saves the result that `tanh` keeps already, and `v`,
# which exists anyway. The bytes are the same, but only the first line needs
# new memory for them.
#
# So in training, writing in place often saves less memory than one expects.
# Where no graph is recorded, it saves the memory of a new result.
#
# And time? **Predict:** for a million elements, how much faster is `x.mul_(2)`
# than `x * 2`?

# %%
import time


def best(work, times):
    """Microseconds for one call of work, the best of many."""
    found = float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        work()
        found = min(found, time.perf_counter() - begin)
    return found * 1e6


# %% [markdown] slide="subslide"
# ## Time

# %% [markdown] slide="notes"
# Writing in place saves the allocation of a result. Anomaly detection is for
# the search for a mistake: here one sees what it costs.

# %% slide="more" varies=true
big = torch.ones(1_000_000)
fresh, same = best(lambda: big * 1.0, 99), best(lambda: big.mul_(1.0), 99)
print(f"a million numbers: new {fresh:.0f} µs, in place {same:.0f} µs")
step = torch.rand(10, requires_grad=True)


def pass_():
    (step.exp() * step).sum().backward()


usual = best(pass_, 999)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    with torch.autograd.detect_anomaly():
        watched = best(pass_, 999)
print(f"a small backward: {usual:.0f} µs; with anomaly detection",
      f"{watched:.0f} µs, {watched / usual:.0f} times as long")

# %% [markdown] slide="slide"
# ## Traps
#
# Each of these cells raises an error on purpose. Read its last line.

# %% [markdown] slide="notes"
# Both errors protect a leaf. The remedy is to write under `no_grad`, or to
# make the view with the graph.

# %% raises=true slide="more"
w = torch.ones(3, requires_grad=True)
w[0] = 5.0  # a write to a view of a leaf

# %% raises=true slide="more"
w = torch.ones(3, requires_grad=True)
with torch.no_grad():
    part = w[:2]
part.mul_(2)  # the view was made without a graph

# %% [markdown] slide="subslide"
# ## Two losses, one step in between

# %% [markdown] slide="notes"
# The second loss uses weights that have changed. Ask for two ways to repair
# it.

# %% [markdown]
# A frequent mistake has two losses and two optimizers. Both losses use the
# same weights. The first step writes to them, so the second backward finds
# another version. `retain_graph=True` does not help, because the saved values
# are overwritten.

# %% raises=true slide="more"
x, w = torch.ones(1, 2), torch.ones(2, 2, requires_grad=True)
out = (x @ w).relu() @ w
first, second = out.sum(), (out ** 2).sum()
first.backward(retain_graph=True)
with torch.no_grad():
    w -= 0.1 * w.grad  # the first step
second.backward()

# %% [markdown]
# Call both `backward`s first, then take both steps. Or compute `out` anew.
#
# The next four raise no error:

# %% [markdown] slide="subslide"
# ## Traps that raise no error

# %% [markdown] slide="notes"
# A detached tensor is no snapshot, since it shares the memory. The second
# case loses the leaf without an error.

# %% slide="more"
w = torch.ones(2, requires_grad=True)
best_w = w.detach()  # meant as a snapshot
with torch.no_grad():
    w.mul_(-100)  # training goes on, badly
print("kept as the best:", best_w.tolist())

# %% [markdown]
# `detach()` leaves the graph but shares the memory. For a snapshot, use
# `w.detach().clone()`.

# %% slide="more"
w = torch.ones(2, requires_grad=True)
(w * 3).sum().backward()
w = w - 0.1 * w.grad  # no in-place, no no_grad, no error
print("a leaf:", w.is_leaf, "| the name w now means", w.grad_fn.name())

# %% [markdown]
# From now on `w.grad` stays `None`, and the graph of every step includes the
# graphs of all steps before.

# %% [markdown] slide="subslide"
# ## Two writes that are not counted

# %% [markdown] slide="notes"
# Neither write is counted, so nothing is refused and the gradient is wrong.
# The versions that are printed show it.

# %% [markdown]
# NumPy writes to the same memory without changing the version, and `.data` has
# a version of its own. Both give wrong gradients without an error:

# %% slide="more"
for how in ("numpy", ".data"):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    if how == "numpy":
        y.detach().numpy()[:] = 0
    else:
        y.data.zero_()
    y.sum().backward()
    print(f"{how:<6} gradient {x.grad.tolist()},",
          f"version {y._version}")

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** The same write follows two operations. Why does only one of them raise
# an error?
#
# ```python
# for f in (torch.sin, torch.exp):
#     x = torch.ones(2, requires_grad=True)
#     y = f(x)
#     y.mul_(2)
#     y.sum().backward()
#     print(f.__name__)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# sin
# RuntimeError
# ```
#
# The derivative of `sin` is computed from `x`, which was not written to. The
# derivative of `exp` is its result, so the node has saved `y`. `mul_` raised
# the version of `y`, and the node found another version than the one it had
# noted.
#
# </details>
#
# **2.** Which of these are leaves?
#
# ```python
# w = torch.ones(2, requires_grad=True)
# print(w.double().is_leaf, w.detach().is_leaf, (w * 2).is_leaf)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# False True False
# ```
#
# `double()` and `*` are recorded operations, so their results have a history.
# `detach()` returns a tensor without a history, and a tensor that is not the
# result of a recorded operation is a leaf. Here it is a leaf that requires no
# gradient.
#
# </details>
#
# **3.** The memory of `x` is written to three times. What is the version, and
# which write is missing?
#
# ```python
# x = torch.zeros(3)
# x.add_(1)
# x.detach().add_(1)
# x.data.add_(1)
# print(x, x._version)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor([3., 3., 3.]) 2
# ```
#
# The write through `.data` is missing. `detach()` shares the memory and its
# count, but `.data` shares the memory and has a count of its own. That is why
# a write through `.data` can make gradients wrong without an error.
#
# </details>
#
# **4.** `base` is a tensor of ones that requires no gradient. What is printed?
#
# ```python
# w = torch.tensor(3.0, requires_grad=True)
# base = torch.ones(3)
# base[0].mul_(w)
# base.sum().backward()
# print(base.requires_grad, w.grad)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# True tensor(1.)
# ```
#
# `base[0]` is a view, and the product is written into the memory of `base`. So
# a part of `base` now depends on `w`, and `base` gets a history with the node
# `CopySlices`. The derivative of the sum with respect to `w` is the old value
# of `base[0]`, which is 1.
#
# </details>
#
# **5.** Predict the three values.
#
# ```python
# w = torch.ones(2, requires_grad=True)
# with torch.no_grad():
#     w.mul_(2)
#     y = w * 3
# print(y.requires_grad, w.requires_grad, w._version)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# False True 1
# ```
#
# Inside the block no operation is recorded, so `y` has no history. `w` stays a
# leaf that requires a gradient. The write is still counted, because an older
# graph may have saved `w`.
#
# </details>
#
# **6.** The program is meant to keep the best weights. What does it print, and
# how is it corrected?
#
# ```python
# w = torch.ones(2, requires_grad=True)
# best = w.detach()
# with torch.no_grad():
#     w.zero_()
# print(best)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor([0., 0.])
# ```
#
# `detach()` leaves the graph but shares the memory, so `best` changes with
# `w`. `w.detach().clone()` makes a copy that stays as it is.
#
# </details>
#
# **7.** What is wrong with this training step?
#
# ```python
# w = torch.ones(2, requires_grad=True)
# w.sum().backward()
# w = w - 0.1 * w.grad
# print(w.is_leaf, w.requires_grad)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# False True
# ```
#
# The subtraction is recorded and makes a new tensor, and the name `w` now
# means that tensor. It is no leaf, so a later `backward` does not fill its
# `.grad`. Its graph also includes the step before. Write `w -= 0.1 * w.grad`
# under `torch.no_grad()`.
#
# </details>
#
# **8.** `hidden[:, :32].tanh_()` and then `hidden[:, 32:].sigmoid_()` raise an
# error in backward, although they write to different elements. Why, and how do
# you compute the same without an error?
#
# <details><summary>Answer</summary>
#
# There is one version count for the whole memory. The second write raises it,
# and the node of `tanh` finds another version than the one it had saved its
# result at. Compute both parts out of place and join them:
# `torch.cat([hidden[:, :32].tanh(), hidden[:, 32:].sigmoid()], 1)`.
#
# </details>
#
# **9.** *Chapter 03.* Which line raises the error, and why?
#
# ```python
# x = torch.tensor([4, 6])
# print(x / 2)
# x /= 2
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor([2., 3.])
# RuntimeError
# ```
#
# A true division of integers gives floats. Out of place, the result is a new
# tensor, so it can have another dtype. In place, the result would have to be
# stored in the memory of `x`, which holds int64. `x //= 2` would work.
#
# </details>
#
# **10.** *Chapter 03.* The same 0-d float64 tensor is multiplied with two
# others. What are the dtypes?
#
# ```python
# point = torch.tensor(2.0, dtype=torch.float64)
# print((torch.ones(2) * point).dtype,
#       (torch.ones(2, dtype=torch.int64) * point).dtype)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# torch.float32 torch.float64
# ```
#
# A tensor without dimensions has a lower rank than one with dimensions. In the
# first product both are floating, so its width does not count. In the second
# one its kind is higher, and as the only floating operand it also gives the
# width.
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * One count per memory gives false alarms. What would a count per *row* cost,
#   and for which views would it not work?
# * `w.grad` is a tensor as well. When may a program write to it? Look at what
#   `optimizer.zero_grad(set_to_none=False)` does.
# * `torch.utils.checkpoint` keeps nothing and computes again. What does a
#   write in the meantime do to it?
# * `torch.inference_mode()` goes further than `no_grad`: tensors made in it
#   have no count at all. Try to save one for backward, and read the error.
#
# **Next:** in chapter 06 you add operations with derivatives of your own, and
# a check whether the derivatives are right.

# %% [markdown] slide="notes"
# The first question has a real answer in other frameworks. Discuss what a
# finer count would cost.

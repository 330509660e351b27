# %% [markdown] slide="slide"
# # 05 · Leaves, in-place writes, versions
#
# A graph remembers what was computed. Then somebody writes over a number that
# the graph was counting on. The gradient would be wrong, and nothing would
# look wrong: the loss falls a little less, and nobody ever knows why.
#
# > **The question of this chapter:** who notices, and how, without keeping a
# > copy of everything?

# %% [markdown] slide="notes"
# 45 minutes: question and prediction 5, leaves 5, versions and views 10,
# exercise 3 live 8, exercise 4 on the board 8, training 5, traps 4. The
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
# This is the end of the program. Press *First*, then *Next*. Each tensor carries a **version**: how many times
# its memory has been written to. `y.mul_(10)` writes over the numbers of `y`
# (the underscore says *in place*), and the version becomes 1.
#
# But `ExpBackward0` had saved `y`, because the derivative of `exp` is `exp`
# itself. It saved it at version 0. When backward reaches the node, the versions
# differ, and it raises an error.
#
# What of other operations? `fate(f)` runs the same program with any operation
# in the place of `exp`.

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
# The same program with other operations in the place of `exp`. In every case
# the result `y` is written over. Which of the five are refused? Think of what
# each derivative has to know: the input, the result, or neither.

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
# The derivative of `sin` needs `x`, that of `x * x` its factors, that of `x * 3`
# the 3. Nothing was written to those. Only `exp` and `tanh` compute their
# derivative from the result, and the result was overwritten. So in-place
# writing is allowed, **except to a tensor that a node has saved**.

# %% [markdown] slide="slide"
# ## Play: leaves
#
# A **leaf** is a tensor that no recorded operation has made. Gradients end
# there. **Predict:** which of these are leaves, and which will have a
# `.grad`?

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
# * `data` is a leaf too, and gets nothing: it never asked.
# * `w.double()` is *made from* `w`. Whoever writes `w = w.double()` has lost
#   the leaf, and the optimizer steps on a tensor that nothing arrives at.
# * Should a tensor in between keep its gradient, ask `y.retain_grad()`.
#
# Next, versions. **Predict** the four numbers before you run this.

# %% [markdown] slide="subslide"
# ## Versions: who counts?

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
# A view has no count of its own, and `detach()` has none either: both show the
# same memory, and the count belongs to the memory. `.data` is the odd one out.
# It shows the same memory with a **new** count. That is the only difference
# between the two. A write through `.data` is therefore not noticed.
#
# Next: `base` never takes part in a product. It is a tensor of ones. But `view`
# shows two of its numbers, and somebody multiplies *those*.

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
# Watch the step of `view.mul_(w)`. Before it, neither tensor wanted a
# gradient. After it **both** have a history, also `base`, which was not even
# mentioned in that line. Its node is called `CopySlices`. The old `grad_fn` of
# the view is thrown away, for it described numbers that are gone; the new one
# says *I am a part of what base is now*. This is called **rebasing the
# history**.
#
# In the graph, with the product hidden inside `CopySlices`:

# %%
w = torch.tensor([2.0, 3.0], requires_grad=True)
x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
base = x * 1
base[1:3].mul_(w)
viz.autograd_graph(base.sum(), params={"w": w, "x": x})

# %% [markdown] slide="subslide"
# ## What `CopySlices` sends

# %% [markdown] slide="notes"
# The gradient goes two ways: the numbers under the view through the product,
# the others straight on.

# %% keep=true slide="more" show="output"
loss = (base * torch.tensor([1.0, 10.0, 100.0, 1000.0])).sum()
viz.backward_steps(loss, params={"w": w, "x": x})

# %% [markdown]
# `CopySlices` receives `[1, 10, 100, 1000]`. The two ends of it go straight on,
# since nothing happened there. The middle goes through the product: times `w`
# for the old numbers, times the old numbers for `w`. You will write this
# yourself.

# %% [markdown] slide="subslide"
# ## When nothing should be recorded

# %% [markdown] slide="notes"
# Inside the block nothing is recorded, but the write is still counted. Ask
# what would happen without the block.

# %% [markdown]
# A training step writes to leaves, on purpose. It stands under
# `torch.no_grad()`: no graph, no refusal. The *count* goes on, though, because
# an older graph may still rely on these numbers.

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
# Three pieces, and two more for those who want them:
#
# 1. find the **leaves** that get a gradient
# 2. a memory that **counts its writes**, and refuses what is out of date
# 3. backward through a **write to a view** (optional)
# 4. a **no_grad** of your own
# 5. who made the **first NaN**? (optional)

# %% [markdown] slide="notes"
# Exercise 2 live. Let the room say what keep() has to note, then ask: what
# if a part of a part is written to? For exercise 3 draw four cells on the
# board, shade two, and ask for the gradient of each before the write.

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
# ## The same for tensors
#
# A saved tensor does what your `keep` does. PyTorch has a place to plug one
# in: `saved_tensors_hooks` hands every tensor that a node saves to one
# function, and what that gave to another one on the way back. toytorch's own
# check is off while these two are on.

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
# * A clone never changes, so nobody would have to refuse. But each result of a
#   network would be in memory twice.
# * `.data` shares the memory and has a count of its own. Writes through the
#   original are not seen, and the gradient is wrong without a word.
# * `detach()` shares memory and count. But it belongs to no graph, and a second
#   derivative goes *through* the saved tensors: it would be 0, or an error.

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
# Now use it. Three points on a line, and the loss wants them apart. Two of them happen to
# be at the *same* place. The loss is fine; the gradients of those two are NaN.
# Your hunter names the node, and the node remembers the line that made it, if
# anomaly detection was on during the forward pass.

# %% [markdown] slide="subslide"
# ## A loss with a hole

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
# ## The hunt

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
# The derivative of the square root is infinite at 0, that of the square is 0
# there, and ∞ · 0 is NaN. The NaN appears in the node of the square. The cause
# is the root: write `(... + 1e-12).sqrt()`. With
# `torch.autograd.detect_anomaly()` the engine checks every node and raises:

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
# ## Plug in: a network under guard
#
# Digits again. Half of the hidden layer is bent by `tanh`, **in place, through
# a view**. Your leaves are what is trained, `Saved` keeps the tensors, your
# rule goes back through the view, your `quiet` stands around the step.

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
# ## Train, on your pieces

# %% [markdown] slide="notes"
# Four pieces of the chapter are at work at once. Without any of them this
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

# %% slide="more" show="output" varies=true
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7.2, 2.6))
axes.semilogy(range(1, len(history) + 1), history)
axes.set_xlabel("epoch")
axes.set_ylabel("loss")
axes.set_title(f"{right:.1%} of 360 unseen digits read right")
plt.show()

# %% [markdown]
# Nine hundred writes to every weight, and not one refusal: each came *after*
# backward, when nobody was relying on the old numbers any more.
#
# Now a network with a mistake. Somebody thought it would save memory to bend
# the other sixteen numbers in place as well. **Predict:** the two writes touch
# *different* numbers. Will the guard let it pass?

# %% [markdown] slide="subslide"
# ## Two halves of one memory
#
# Both writes are in place; they touch different numbers. Refused or not?

# %% [markdown] slide="notes"
# Ask for a vote before you run it. One count for the whole memory cannot know
# that the halves are different.

# %% slide="more"
def careless(images):
    hidden = images.flatten(1) @ w1 + b1
    hidden[:, :32].tanh_()  # its node keeps the result
    hidden[:, 32:].sigmoid_()  # other numbers, the same memory
    return hidden @ w2 + b2


try:
    with guard():
        cross_entropy(careless(images[:4]), labels[:4]).backward()
except RuntimeError as error:
    print("refused")

# %% [markdown]
# It is a **false alarm**: `tanh`'s numbers are as they were. But the count is
# one per memory, not one per number. PyTorch refuses the same program, for the
# same reason. One integer can not tell which numbers were written to; it errs
# on the safe side.

# %% [markdown] slide="slide"
# ## Look inside
#
# What toytorch does with a saved tensor is not written down anywhere: it is
# generated from the record of the operation. This is how the node of `exp`
# begins. Look for the comparison of two versions.

# %% [markdown] slide="notes"
# The check is generated from the record. The two numbers that are compared
# are the version kept and the version now.

# %% slide="more"
print(*torch.ops.exp.node.source.splitlines()[:10], sep="\n")

# %% [markdown]
# And this one writes the message that you met above:

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
look(inplace.CopySlices.apply, copy_slices)

# %% [markdown]
# The same three moves: take the part out (`_gather_strided`), send it through
# the write (`inner`, in `_through`), put it back into the rest
# (`_fill_strided`). The way that you came in by stands at the top; the other
# one is for complex numbers, whose real part is a view as well.
#
# What happens at the write itself:

# %%
look(inplace.rebase)

# %% [markdown]
# Every base knows its living views, by weak references. PyTorch does it the
# other way round: a view notices at its next use that the version has moved
# on, and makes its `grad_fn` anew then.
#
# And `no_grad`, beside yours:

# %%
from toytorch.autograd import modes

look(modes.Recording, quiet)

# %% [markdown] slide="slide"
# ## Measure: does writing in place save memory?
#
# A hook looks at all that is kept for backward. One memory counts once.
# **Predict**, for a thousand numbers of 4 bytes, what each line keeps. By how
# much is the in-place form ahead of the other?

# %% [markdown] slide="notes"
# Predict each line. In place pays only if the overwritten numbers are not
# needed on the way back.

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
# By nothing. With `tanh_` as with `tanh` one result is kept, and the sum before
# it is freed either way. And the derivative with respect to `v` needs the old
# elements, which `mul_` is about to overwrite, so it copies them. (Compare
# `.tanh().relu()` with `.tanh().mul(v)`: the product's factor is the very
# result that `tanh` keeps, so it costs nothing more.) In training, writing in
# place gains far less than people think. Where no graph is recorded, it does
# spare a new memory for each result.
#
# And time? **Predict:** for a million numbers, how much faster is `x.mul_(2)`
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
# Run on purpose. Read the last line of each error.

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
part.mul_(2)  # looked at without a graph, written to with one

# %% [markdown] slide="subslide"
# ## Two losses, one step in between

# %% [markdown] slide="notes"
# The second loss uses weights that have changed. Ask for two ways to repair
# it.

# %% [markdown]
# The most famous trap has two losses and two optimizers. Both losses go
# through the same weights; the first step writes to them; the second backward
# finds them changed. `retain_graph=True` is no cure, it only got you this far.

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
# And four that raise nothing:

# %% [markdown] slide="subslide"
# ## Traps that say nothing

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
# `detach()` cuts the graph, not the memory. A snapshot is
# `w.detach().clone()`.

# %% slide="more"
w = torch.ones(2, requires_grad=True)
(w * 3).sum().backward()
w = w - 0.1 * w.grad  # no in-place, no no_grad, no error
print("a leaf:", w.is_leaf, "| the name w now means", w.grad_fn.name())

# %% [markdown]
# From now on `w.grad` stays empty, and the graph of every step hangs on the
# graph of the step before.

# %% [markdown] slide="subslide"
# ## Two writes that are not counted

# %% [markdown] slide="notes"
# Neither write is counted, so nothing is refused and the gradient is wrong.
# The versions that are printed show it.

# %% [markdown]
# NumPy writes to the same memory and knows nothing of versions, and `.data` has
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

# %% [markdown] slide="slide"
# ## Beyond
#
# * One count per memory gives false alarms. What would a count per *row* cost,
#   and which views could not use it?
# * `w.grad` is a tensor as well. Who may write to it, and when? Look at what
#   `optimizer.zero_grad(set_to_none=False)` does.
# * `torch.utils.checkpoint` keeps nothing and computes again. What does a
#   write in the meantime do to it?
# * `torch.inference_mode()` goes further than `no_grad`: tensors made in it have
#   no count at all. Try to save one for backward, and read the error.
#
# **Next:** chapter 06 teaches the graph operations it does not know, with
# derivatives of your own, and a way to tell whether they are right.

# %% [markdown] slide="notes"
# The first question has a real answer in other frameworks. Discuss what a
# finer count would cost.

# %% [markdown] slide="slide"
# # 03 · Operations: one record per op
#
# `x + y`. Perhaps `x` holds integers and `y` floats. Perhaps one is a column
# and the other a row. Perhaps one is no tensor at all. Somewhere below runs a
# loop that knows nothing of this: two pieces of memory, one kind of number.
#
# > **The question of this chapter:** who stands between the two, and how can
# > that be written once, for four hundred operations?

# %% [markdown] slide="notes"
# 45 minutes: question 5, play 12, exercises 2 and 5 live 12, the digits 6,
# measure 5, traps 5. The opening prediction is worth its time: nearly
# everyone says zero. Exercise 4 is the heart and good homework.

# %% keep=true slide="more" show="output"
import ast
import re

import matplotlib.pyplot as plt
import numpy as np

import toytorch as torch
from course import check, hint, look, setup, use
from course.squares import draw
from toytorch import viz

setup()

column, row = torch.tensor([[10], [20], [30]]), torch.tensor([1, 2, 3, 4])
figure, axes = plt.subplots(1, 3, figsize=(8, 2.3))
for ax, x, k in zip(axes, (column, row, column + row), range(3)):
    draw(ax, x, (3, 4), f"C{k}", " +="[k])
plt.show()

# %% [markdown]
# A column of three numbers and a row of four are added, and twelve numbers
# come out. The bright squares exist; the pale ones are only shown again, until
# both are tables of 3 × 4. That is **broadcasting**, and it has moved no number
# at all, as the picture of the memory shows: each line of `column` is one
# single cell, and so is each column of `row`.

# %%
viz.storage(column=column.expand(3, 4), row=row.expand(3, 4))

# %% [markdown] slide="slide"
# ## Predict, then run
#
# A network's three predictions are exactly right. It gives them as a column,
# as networks do. What is the mean squared error?

# %% slide="more"
predicted = torch.tensor([[1.0], [2.0], [3.0]])
target = torch.tensor([1.0, 2.0, 3.0])

error = ((predicted - target) ** 2).mean()
print(f"{error.item():.3f}")

# %% [markdown]
# Not 0. A column met a row, and the difference is a *table*: every prediction
# was compared with every target. Nothing complained, and a network trained on
# this loss would learn to predict the mean. Ask for the shape and you see it:

# %%
print((predicted - target).shape)
print(predicted - target)

# %% [markdown] slide="slide"
# ## Play: an operation is a record
#
# All that toytorch knows about `*` stands in **one** place, a record of a few
# fields. `toytorch.ops` has them by name.

# %% slide="more"
mul = torch.ops.mul
print(mul.schema)
print("kind       ", mul.kind)
print("kernel     ", mul.kernel)  # NumPy's name for it
print("promotion  ", mul.promotion)
print("formula    ", mul.formula)
print("derivatives", list(mul.derivatives))
print("help       ", mul.doc)

# %% [markdown]
# From these few lines come the function, the method, the operator, the form
# that writes in place, the keyword `out=`, the node for autograd and the help
# text:

# %% [markdown] slide="subslide"
# ## One record, many forms

# %% slide="more"
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = torch.tensor([10.0, 20.0, 30.0])
print(torch.mul(x, y).tolist(), x.mul(y).tolist(), (x * y).tolist())
print((x * y).grad_fn.name())
y.mul_(2)
torch.mul(y, 0.5, out=y)
print(y)
print(torch.mul.__doc__)

# %% [markdown]
# To see that this is all there is to it, write a record of your own. A cube,
# $x^3$, with the derivative $3x^2$: one signature, one formula, from which its
# kernels follow, and the formula of its derivative, in which `g` is the
# gradient of the result.

# %% [markdown] slide="subslide"
# ## An operation of one's own

# %% slide="more"
from toytorch.core.op import registry
from toytorch.ops.define import pointwise

cube = registry.get("cube") or pointwise(  # once per session
    "cube(Tensor self) -> Tensor", formula="self * self * self",
    d_self="g * 3 * self * self", doc="The third power.")

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
x.cube().sum().backward()  # a method, with a gradient
print(x.grad, x.cube().grad_fn.name())
print(torch.tensor([1, 2, 3]).cube_())  # in place, for integers

# %% [markdown]
# (PyTorch has the signature in `native_functions.yaml`, the derivative in
# `derivatives.yaml` and the kernel in C++; the rest is generated, too. For ops
# of your own there is `torch.library`.)
#
# ### What broadcasting does to shapes
#
# Shapes line up **from the right**; where one of them has a 1, or nothing, it
# stretches. If two sizes differ and neither is 1, it is an error: a shape of 3
# cannot be stretched to 4, and which line of the table it was meant for is
# yours to say.

# %% [markdown] slide="slide"
# ## Broadcasting: line up from the right, stretch the ones

# %% slide="more" show="output"
big = torch.arange(10, 22).reshape(3, 4)
figure, grid = plt.subplots(2, 6, figsize=(10.5, 3.4))
axes = iter(grid.flatten())
for y in (row, column // 10, torch.tensor(5)):
    for k, x in enumerate((big, y, big + y)):
        draw(next(axes), x, (3, 4), f"C{k}", " +="[k])
draw(next(axes), big, (3, 4), "C0")
draw(next(axes), torch.tensor([1, 2, 3]), (1, 3), "C1", "+")
ax = next(axes)
ax.text(0.5, 0.6, "4 is not 3", ha="center", c="#d6457f", weight="bold")
ax.text(0.5, 0.35, "for the column: [:, None]", ha="center", fontsize=8)
ax.axis("off")
plt.show()

# %% [markdown]
# ### What promotion does to dtypes
#
# Numbers of two kinds meet in a third that holds both. But not all operands
# have the same say. **Predict** the dtypes; `half` is a float16 tensor.

# %% [markdown] slide="subslide"
# ## Who decides the dtype?

# %% slide="more"
half = torch.ones(3, dtype=torch.float16)
single = torch.ones(3)
point = torch.tensor(2.0, dtype=torch.float64)  # no dimension
print("half * single     ", (half * single).dtype)
print("half * point      ", (half * point).dtype)
print("half * 2.0        ", (half * 2.0).dtype)
print("integers * point  ", (torch.arange(3) * point).dtype)
print("integers * 2.0    ", (torch.arange(3) * 2.0).dtype)

# %% [markdown]
# Three ranks: tensors with dimensions, tensors without, Python numbers. A
# lower rank changes the *kind* if it must, and never just the width. In the
# fourth line the integers had to become floats, and then the width of `point`
# is the only one anybody has named.
#
# ### The way of a call
#
# | step | what happens | for `ints[:, None] / 2` |
# | --- | --- | --- |
# | record | which kernel, which rules | `torch.ops.div` |
# | promote | one dtype for all operands | int64 → float32 |
# | broadcast | one shape for all operands | (3, 1), () → (3, 1) |
# | kernel | the loop over memory | `np.divide` |
# | wrap | a tensor around the new memory | |
# | remember | a node, if somebody wants a gradient | `DivBackward0` |
#
# Since the steps are separate, one can be exchanged without touching the
# others. `using` is the injection point: for as long as the block lasts, an op has
# another kernel. With it you can watch what a kernel is given.

# %% [markdown] slide="subslide"
# ## What does a kernel get to see?

# %% slide="more"
seen = []


def watching(xp, a, b):
    seen.append(f"{a.dtype} {a.shape} and {b.dtype} {b.shape}")
    return xp.divide(a, b)


with torch.ops.div.using(kernel=watching):
    result = torch.tensor([[1], [2], [3]]) / torch.tensor([2, 4])
print("the kernel got", seen[0])
print(result)

# %% [markdown]
# Integers came in, floats arrived. The shapes still differ, because NumPy's
# kernels stretch by themselves. Yours will be handed operands of one shape.

# %% [markdown] slide="slide"
# ## Build
#
# Five pieces, and together they are a small toytorch:
#
# 1. read the **signature** of a record
# 2. the **shape** two shapes agree on
# 3. the **dtype** of three ranks of operands
# 4. a **dispatcher**, which is all of it in one function
# 5. a **kernel** that does not overflow, plugged into toytorch

# %% [markdown] slide="notes"
# Exercise 2 live: let the room break the first version with (0,) and (1,).

# %% exercise="ops.signature" slide="subslide" show="prompt"

# %% check="ops.signature" points=2

# %% [markdown]
# With that, the four hundred records can be asked questions. Which names do
# parameters have, and how often? `use` gives your function if it is green.

# %% varies=true
from collections import Counter

read = use("ops.signature")
elementwise = [r for r in registry.values() if r.kind == "pointwise"]
lines = [str(record.schema) for record in elementwise]
counted = Counter(name for line in lines for name in read(line)[1])
print(counted.most_common(3))
print(read(str(torch.ops.softplus.schema)))

# %% exercise="ops.broadcast" slide="subslide" show="prompt"

# %% check="ops.broadcast" points=2

# %% exercise="ops.promote" slide="subslide" show="prompt"

# %% check="ops.promote" points=3

# %% exercise="ops.dispatch" slide="subslide" show="prompt"

# %% check="ops.dispatch" points=4

# %% [markdown] slide="slide"
# ## Plug in: a network learns with another kernel
#
# A kernel can be exchanged while the program runs, with
# `torch.ops.sigmoid.using(kernel=...)`. We try two kernels for one function.
#
# 1,437 digits to learn from. The pixels are left as they are, from 0 to 16, so
# that the sums in the hidden layer run into the hundreds: just what makes an
# exponential overflow.

# %% slide="more"
from toytorch.vision import datasets

images, labels = datasets.digits(train=True)
test_images, test_labels = datasets.digits(train=False)
x, test_x = images.flatten(1) * 16, test_images.flatten(1) * 16

# %%
cross_entropy = torch.nn.functional.cross_entropy


def network(x, w1, b1, w2, b2):
    hidden = torch.sigmoid(x @ w1 + b1)  # runs on the plugged-in kernel
    return hidden @ w2 + b2


def train(epochs=12, size=32, rate=0.1):
    """A network trained by plain descent: its parameters and losses."""
    torch.manual_seed(3)
    parameters = [torch.randn(64, 96), torch.zeros(96),
                  torch.randn(96, 10) / 10, torch.zeros(10)]
    for p in parameters:
        p.requires_grad_()
    history = []
    for _ in range(epochs):
        total = 0.0
        for some in torch.randperm(len(labels)).split(size):
            scores = network(x[some], *parameters)
            loss = cross_entropy(scores, labels[some])
            grads = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for p, g in zip(parameters, grads):
                    p -= rate * g
            total += loss.item() * len(some) / len(labels)
        history.append(total)
    return parameters, history


# %% [markdown] slide="subslide"
# ## Two formulas for one function
#
# $$\sigma(x) = \frac{e^{x}}{1 + e^{x}} = \frac{1}{1 + e^{-x}}$$
#
# Float32 holds numbers up to about $e^{88}$. **Question:** on which side does
# each of the two formulas overflow, and what comes out there?

# %% [markdown] slide="notes"
# Let the room answer before the next cell. Left: inf / inf for large x, nan.
# Right: 1 / inf for very negative x, which happens to be 0, with a warning.

# %% [markdown]
# The left one divides infinity by infinity for a large x: `nan`. The right one
# divides by infinity for a very negative x. The result, 0, is right, but the
# overflow on the way is a warning, and an error where warnings are errors.
#
# The stable kernel takes the right formula for $x \ge 0$ and the left one for
# $x < 0$. Both then hold the same $z = e^{-|x|}$, which is at most 1.

# %% [markdown] slide="subslide"
# ## The textbook's kernel, and a stable one

# %% slide="more"
def textbook(xp, a):
    with xp.errstate(all="ignore"):  # what could go wrong
        return xp.exp(a) / (1 + xp.exp(a))


def stable(xp, a):
    z = xp.exp(-xp.abs(a))  # at most 1, so nothing overflows
    return xp.where(a >= 0, 1, z) / (1 + z)


with torch.ops.sigmoid.using(kernel=textbook):
    _, broken = train(epochs=1)
print("textbook kernel, loss:", broken[-1])

with torch.ops.sigmoid.using(kernel=stable):
    parameters, history = train()
print("the loss fell:", history[-1] < history[0] / 4)

# %% [markdown]
# One `inf / inf` in one hidden number made the loss `nan`, and one step later
# every weight. With the stable kernel the same network, the same seed and the
# same pixels learn.

# %%
with torch.no_grad(), torch.ops.sigmoid.using(kernel=stable):
    sums = x @ parameters[0] + parameters[1]
    guesses = network(test_x, *parameters).argmax(1)
right = (guesses == test_labels).float().mean().item()
print("more than 90 % of unseen digits right:", right > 0.90)
share = (sums > 89).float().mean().item()
print("more than 1 sum in 20 would overflow exp:", share > 0.05)

# %% [markdown] slide="subslide"
# ## Where the sums lie

# %% slide="more" show="output" varies=true
figure, (left, right_ax) = plt.subplots(1, 2, figsize=(8.6, 3))
left.hist(sums.flatten().tolist(), bins=60, color="#3b82c4")
left.axvspan(89, 400, color="#e2572b", alpha=0.18, lw=0)
left.set(xlabel="a sum in the hidden layer", yticks=[], xlim=(-400, 400))
left.set_title("shaded: exp overflows in float32", fontsize=10)

points = torch.linspace(-150, 150, 601)
kernels = {"textbook": textbook, "stable": stable}
for (name, kernel), lw in zip(kernels.items(), (6, 1.8)):
    with torch.ops.sigmoid.using(kernel=kernel):
        values = points.sigmoid()
    right_ax.plot(points.tolist(), values.tolist(), label=name, lw=lw,
                  alpha=0.5 if lw > 2 else 1)
right_ax.set(xlabel="x", ylabel="sigmoid")
right_ax.legend(loc="center left")
right_ax.set_title("the textbook's line ends: nan", fontsize=10)
figure.tight_layout()
plt.show()

# %% [markdown]
# ### The trained network on *your* dispatcher
#
# And now the whole forward pass on the small toytorch you built: four records,
# your `run`, and a sum. A matrix product is a product of stretched operands,
# added up along one dimension, so `mul` is enough.

# %% [markdown] slide="subslide"
# ## Four records and a dispatcher read digits

# %% slide="more"
run_op = use("ops.dispatch")
table = {
    "add": {"kernel": np.add, "promotion": "default"},
    "mul": {"kernel": np.multiply, "promotion": "default"},
    "div": {"kernel": np.divide, "promotion": "float"},
    "pow": {"kernel": np.power, "promotion": "float"},
}


def product(a, b):
    """(n, k) and (k, m) -> (n, m), by broadcasting."""
    return run_op(table["mul"], a[:, :, None], b[None]).sum(1)


def layer(x, w, b):
    return run_op(table["add"], product(x, w), b)


# %% [markdown] slide="subslide"
# ## 360 digits, two matrix products, no matrix product

# %% slide="more"
w1, b1, w2, b2 = (p.detach().double() for p in parameters)
sums = layer(test_x, w1, b1)
power = run_op(table["pow"], np.e, run_op(table["mul"], sums, -1))
hidden = run_op(table["div"], 1, run_op(table["add"], 1, power))
again = layer(hidden, w2, b2).argmax(1)
alike = (again == guesses).sum().item()
print(alike, "of", len(guesses), "digits read alike")

# %% [markdown]
# (In double precision, where $e^{x}$ overflows only beyond 709.)

# %% [markdown] slide="slide"
# ## Look inside
#
# How toytorch finds the common shape of two operands, beside yours:

# %% slide="more" show="output"
from toytorch.facts import size

look(size.broadcast_pair, broadcast_shape)

# %% [markdown]
# And this is its dispatcher for ops of each element. Your four steps are in
# it. The rest is what a real one has to know besides: arrays on a GPU, 16-bit
# floats (computed in 32 bits), PyTorch's messages where NumPy says it
# differently, and `target`, for writing in place.

# %%
from toytorch.core import compute

look(compute.compute_pointwise, run)

# %% [markdown]
# It is the *general* path. Most calls never see it: two plain float tensors
# need no promotion, and for ten numbers the detour would cost more than the
# work. So for each record toytorch writes a function for that case, as text,
# and compiles it. You can read what it wrote:

# %%
look(torch.neg)

# %% [markdown]
# The first lines ask whether this is the common case, the middle runs the
# kernel and fills in a new tensor, and the next ones make the node if a
# gradient is wanted. Whatever does not fit goes to `call`, the general path.
# `source()` shows all that was written for a record, ways back included.
# Here is the first of the five functions that stand behind `mul`:

# %%
written = torch.ops.mul.source().split("\n\n\n")
print(len(written), "functions")
print(written[0])

# %% [markdown] slide="slide"
# ## Measure: what does one record bring?
#
# About four hundred records are written by hand. **Predict:** how many methods
# and in-place forms of tensors come from them, and how many lines of Python
# did the framework write for itself?

# %% slide="more" varies=true
records = [op for op in registry.values() if op.name != "cube"]
methods = [op for op in records if hasattr(torch.Tensor, op.name)]
in_place = [op for op in records if hasattr(torch.Tensor, op.name + "_")]
written = sum(len(op.source().splitlines()) for op in records)
print(len(records), "records")
print(len(methods), "methods of tensors,", len(in_place), "in place")
print(f"{written:,} lines of generated Python")

# %% [markdown]
# ### What does one line of mathematics cost?
#
# GELU, the activation of many language models, is about
# $\tfrac12 x (1 + \tanh(0.8\,x + 0.036\,x^3))$. Written with tensors, each
# operation reads memory and writes new memory. We count: every kernel is
# wrapped in one that adds up the bytes of what goes in and what comes out.
# **Predict** the number of kernels and the traffic, for a million floats of
# 4 bytes. Then compare with `torch.ops.gelu`, which is *one* op.

# %% [markdown] slide="subslide"
# ## How many kernels, how many bytes?

# %%
from contextlib import ExitStack, contextmanager


@contextmanager
def counting(*ops):
    """Counts the kernels of some ops, and the bytes in and out."""
    seen = Counter()

    def counted(kernel):
        def wrapped(xp, *args):
            run = getattr(xp, kernel) if isinstance(kernel, str) else None
            made = run(*args) if run else kernel(xp, *args)
            arrays = [a for a in args if hasattr(a, "nbytes")]
            seen["kernels"] += 1
            seen["bytes"] += made.nbytes + sum(a.nbytes for a in arrays)
            return made
        return wrapped

    with ExitStack() as counted_ops:
        for op in ops:
            counted_ops.enter_context(op.using(kernel=counted(op.kernel)))
        yield seen


# %% slide="more"
def by_hand(x):
    return 0.5 * x * (1 + torch.tanh(0.79788 * x + 0.03568 * x * x * x))


def whole(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


ops = torch.ops
values = torch.linspace(-4, 4, 1_000_000)
for f in (by_hand, whole):
    with counting(ops.mul, ops.add, ops.tanh, ops.gelu) as seen:
        result = f(values)
    print(f"{f.__name__:<8} {seen['kernels']:>2} kernels,",
          round(seen["bytes"] / 1e6), "MB")
print((by_hand(values) - whole(values)).abs().max().item() < 1e-4)

# %% [markdown]
# Nine passes over memory for a few multiplications per number, and eleven times
# the traffic. (Inside its one kernel, toytorch's `gelu` on NumPy makes arrays,
# too. A compiled kernel does not.) Chapter 14 takes the formulas of the records
# and makes one kernel of all nine:

# %%
for op in (ops.mul, ops.add, ops.tanh, ops.sigmoid, ops.relu, ops.clamp):
    print(f"{op.name:<8} {op.formula}")

# %% [markdown] slide="subslide"
# ## What does stretching cost?
#
# Nothing, as long as it is a stride of 0. The *result* is what fills memory.
# **Predict** the bytes of both:

# %% slide="more"
u, v = torch.rand(2000, 1), torch.rand(1, 2000)
stretched = u.expand(2000, 2000)
print("u stretched:", stretched.untyped_storage().nbytes(), "bytes")
print("u * v:      ", (u * v).untyped_storage().nbytes(), "bytes")

# %% [markdown] slide="slide"
# ## Traps
#
# Run on purpose. Read the last line of each error.

# %% raises=true slide="more"
total = torch.zeros(3)
total += torch.ones(2, 3)  # in place: a result may grow, a memory not

# %% raises=true slide="more"
counts = torch.tensor([1, 2, 3])
counts /= 2  # a true division makes floats; counts //= 2 would do

# %% raises=true slide="more"
seen = torch.tensor([True, True, False])
seen - torch.tensor([True, False, False])  # one mask without another?

# %% [markdown]
# For masks, say what you mean: `seen & ~other`, or `seen ^ other`.

# %% raises=true slide="subslide"
torch.arange(4) ** -1  # integers again: 1/2 is none

# %% raises=true slide="more"
batch = torch.rand(8, 3)
batch - batch.mean(1)  # one mean per row, but shapes align right

# %% [markdown]
# The last error is a piece of luck. Had the batch been 3 × 3, it would have
# run, and subtracted the mean of row *j* from *column* j. `keepdim=True` is
# the cure: it leaves a 1 where the dimension was.

# %% [markdown] slide="subslide"
# ## Traps that say nothing

# %% slide="more"
square = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
print((square - square.mean(1)).mean(1))  # not centred
print((square - square.mean(1, keepdim=True)).mean(1))

# %% [markdown]
# Integers have an end, too, and go round it. A small dtype stays small
# whatever number it meets (a number is of the lowest rank):

# %% slide="more"
pixel = torch.tensor([200], dtype=torch.uint8)
print(pixel + 100)  # 300 - 256
print(torch.tensor([-7]) // 2, torch.tensor(-7).div(2).int())  # down, to 0

# %% [markdown]
# And the one this chapter began with. `mse_loss` at least warns you:

# %% slide="subslide"
import warnings

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    wrong = torch.nn.functional.mse_loss(predicted, target)
print(f"{wrong.item():.3f}")
print(str(said[0].message).split(". ")[0])
print(torch.nn.functional.mse_loss(predicted.squeeze(1), target))

# %% [markdown] slide="slide"
# ## Beyond
#
# * `a + b` and `b + a` give the same dtype. Is `(a + b) + c` always of the
#   dtype of `a + (b + c)`? Look for three operands of three ranks.
# * Broadcasting makes a table of a column and a row without a loop. Which
#   matrix products can be written so, and at what cost in memory?
# * A derivative has to undo a broadcast: what is the gradient of a row that
#   was stretched over a thousand lines? (Chapter 04 asks you to write it.)
# * Your dispatcher handles two operands. What has to change for `clamp`, whose
#   limits may be tensors, numbers or `None`?
#
# **Next:** chapter 04 reads the last fields of the record, the derivatives,
# and walks back.

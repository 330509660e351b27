# %% [markdown] slide="slide"
# # 03 · Operations: one record per op
#
# The operands of `x + y` may have different dtypes or different shapes, or one
# of them is a Python number. The addition itself is done by a *kernel*: a loop
# over two blocks of memory of the same dtype. It handles none of these cases.
#
# > **The question of this chapter:** what happens between the call and the
# > kernel, and how can it be written once, for four hundred operations?

# %% [markdown] slide="notes"
# 45 minutes: question 5, play 12, exercise 2 live 8, the two kernels and the digits 10,
# measure 5, traps 5. Take time for the opening prediction: nearly everyone
# says zero. Exercise 4 is the most important one, and good homework.

# %%
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

# %% keep=true slide="more" folded=true
figure, axes = plt.subplots(1, 3, figsize=(8, 1.9))
for ax, x, k in zip(axes, (column, row, column + row), range(3)):
    draw(ax, x, (3, 4), f"C{k}", " +="[k])
plt.show()

# %% [markdown]
# A column of three elements and a row of four are added, and the result has
# twelve. The bright squares are in memory. The pale ones are repetitions, by
# which both operands become tables of 3 × 4. This is **broadcasting**.
#
# It copies nothing, as the picture of the memory shows: all squares in one
# line of `column` are the same cell, and so are all squares in one column of
# `row`.

# %%
viz.storage(column=column.expand(3, 4), row=row.expand(3, 4))

# %% [markdown] slide="slide"
# ## Predict, then run
#
# A network's three predictions are exactly right. They are a column, which is
# the usual shape of a network's output. What is the mean squared error?

# %% [markdown] slide="notes"
# Ask for the number first. The column meets the row, and nine differences are
# averaged instead of three.

# %% slide="more"
predicted = torch.tensor([[1.0], [2.0], [3.0]])
target = torch.tensor([1.0, 2.0, 3.0])

error = ((predicted - target) ** 2).mean()
print(f"{error.item():.3f}")

# %% [markdown]
# It is not 0. The difference of a column and a row is a *table*: every
# prediction was compared with every target. No error was raised, and a network
# trained with this loss would learn to predict the mean. The shape shows the
# mistake:

# %%
print((predicted - target).shape)
print(predicted - target)

# %% [markdown] slide="slide"
# ## Play: an operation is a record
#
# All facts about `*` are in **one** place, a record with a few fields.
# `toytorch.ops` has the records by name.

# %% [markdown] slide="notes"
# One record holds everything that is known about the product. Point at the
# two derivatives: autograd reads them from here.

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
# From these few lines toytorch makes the function, the method, the operator,
# the in-place form, the keyword `out=`, the node for autograd and the help
# text:

# %% [markdown] slide="subslide"
# ## One record, many forms

# %% [markdown] slide="notes"
# Nobody wrote these forms one by one. They come from the record: function,
# method, operator, in place, and with `out`.

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
# A record is enough to define an operation, so you can write one of your own:
# the cube, $x^3$, with the derivative $3x^2$. It needs three texts:
#
# * the signature,
# * the formula, from which the kernels are made,
# * the formula of the derivative, in which `g` is the gradient of the result.

# %% [markdown] slide="subslide"
# ## An operation of one's own

# %% [markdown] slide="notes"
# The new operation has a gradient and an in-place form at once. Ask what else
# it got for free.

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
# `derivatives.yaml` and the kernel in C++. The rest is generated there, too.
# For your own ops there is `torch.library`.)
#
# ### What broadcasting does to shapes
#
# Shapes line up **from the right**. Where one of them has the size 1, or no
# dimension, it is stretched. If two sizes differ and neither is 1, it is an
# error.
#
# So three elements do not fit a table of 3 × 4. If they are meant as a column,
# write `[:, None]`.

# %% [markdown] slide="slide"
# ## Broadcasting: line up from the right, stretch the ones

# %% [markdown] slide="notes"
# Line up from the right and stretch the ones. Give two shapes that do not fit
# and let the class say why.

# %% slide="more" folded=true
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
# If the operands have different dtypes, they are converted to a common one.
# This is called *type promotion*. Not all operands have the same priority.
# **Predict** the dtypes; `half` is a float16 tensor.

# %% [markdown] slide="subslide"
# ## Who decides the dtype?

# %% [markdown] slide="notes"
# Three ranks: tensors with dimensions, tensors without, and Python numbers. A
# lower rank changes the dtype only by its kind.

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
# There are three ranks of priority: tensors with dimensions, then tensors
# without, then Python numbers. An operand of a lower rank can change the
# *kind* (bool, integer, floating, complex), but not the width alone.
#
# In the fourth line the kind changes from integer to floating. The only
# floating operand is `point`, so the result has its width, float64.
#
# ### The steps of a call
#
# | step | what happens | for `ints[:, None] / 2` |
# | --- | --- | --- |
# | look up | which kernel, which rules | `torch.ops.div` |
# | promote | one dtype for all operands | int64 → float32 |
# | broadcast | one shape for all operands | (3, 1), () → (3, 1) |
# | kernel | the loop over memory | `np.divide` |
# | wrap | a tensor around the new memory | |
# | record | a node, if a gradient is required | `DivBackward0` |
#
# Since the steps are separate, each can be replaced without changing the
# others. `using` does that: inside its block, an op has another kernel. With
# it you can print what a kernel receives.

# %% [markdown] slide="subslide"
# ## What does a kernel receive?

# %% [markdown] slide="notes"
# The kernel sees arrays of one dtype and one shape. Whoever called it with
# integers of two shapes never notices.

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
# The operands were integers, but the kernel received floats. The shapes still
# differ, because NumPy's kernels broadcast by themselves. The kernels of your
# dispatcher will receive operands of one shape.

# %% [markdown] slide="slide"
# ## Build
#
# Four exercises, which together are a small toytorch, and a larger one:
#
# 1. read the **signature** of a record
# 2. the **shape** two shapes agree on
# 3. the common **dtype** of operands of all three ranks
# 4. a **dispatcher**, which combines these steps in one function
# 5. a **table of operations** for your own package, on NumPy arrays

# %% [markdown] slide="notes"
# Exercise 2 live: let the group find that the first version fails for (0,) and
# (1,).

# %% exercise="ops.signature" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twelve minutes. Splitting at commas is not enough; have them look at the
# star and at the defaults first.

# %% check="ops.signature" points=2

# %% [markdown]
# With this function you can read all four hundred records. Which names do
# parameters have, and how often? `use` returns your function if it is green.

# %% varies=true
from collections import Counter

read = use("ops.signature")
elementwise = [r for r in registry.values() if r.kind == "pointwise"]
lines = [str(record.schema) for record in elementwise]
counted = Counter(name for line in lines for name in read(line)[1])
print(counted.most_common(3))
print(read(str(torch.ops.softplus.schema)))

# %% exercise="ops.broadcast" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twelve minutes. Pad the shorter shape with ones on the left, then go through
# the pairs. Ask what a size of 0 does.

# %% check="ops.broadcast" points=2

# %% exercise="ops.promote" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eighteen minutes. Work one mixed example on the whiteboard by ranks before anyone
# writes code.

# %% check="ops.promote" points=3

# %% exercise="ops.dispatch" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifteen minutes. Promote, broadcast, compute, wrap: four steps that are the
# same for every operation.

# %% check="ops.dispatch" points=4

# %% [markdown] slide="slide"
# ## Plug in: a network learns with another kernel
#
# With `torch.ops.sigmoid.using(kernel=...)` a kernel can be replaced while the
# program runs. We compare two kernels for one function.
#
# A network learns from 1,437 digits. The pixels are not scaled: they go from 0
# to 16. So the sums in the hidden layer reach several hundred, which makes an
# exponential overflow.

# %% [markdown] slide="notes"
# Only the kernel is exchanged; the network does not know it. That is what the
# record is good for.

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
# ### Two formulas for one function
#
# $$\sigma(x) = \frac{e^{x}}{1 + e^{x}} = \frac{1}{1 + e^{-x}}$$
#
# The largest float32 is about $e^{88}$. **Question:** on which side does
# each of the two formulas overflow, and what comes out there?

# %% [markdown] slide="notes"
# Let the group answer before the next cell. Left: inf / inf for large x, nan.
# Right: 1 / inf for very negative x, which happens to be 0, with a warning.

# %% [markdown]
# For a large x, the left one divides infinity by infinity, which is `nan`. For
# a very negative x, the right one divides 1 by infinity. The result, 0, is
# right, but the overflow causes a warning, which is an error where warnings
# are errors.
#
# The stable kernel uses the right formula for $x \ge 0$ and the left one for
# $x < 0$. Then both contain the same exponential, $z = e^{-|x|}$, which is at
# most 1.

# %% [markdown] slide="subslide"
# ## The textbook's kernel, and a stable one

# %% [markdown] slide="notes"
# Both kernels compute the same formula on paper. Ask where the first one goes
# wrong: for large positive inputs.

# %% slide="more"
def textbook(xp, a):
    with xp.errstate(all="ignore"):  # no warnings from NumPy
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
# A single `inf / inf` in the hidden layer makes the loss `nan`, and one step
# later all weights are `nan`. With the stable kernel, the same network with
# the same seed learns.

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

# %% [markdown] slide="notes"
# The shaded region is where exp overflows in float32. The sums of the hidden
# layer reach far into it.

# %% slide="more" folded=true varies=true
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
# Now the whole forward pass runs on the small toytorch you built: four
# records, your `run`, and a sum. A matrix product is an element-wise product
# of stretched operands, summed along one dimension, so `mul` is enough.

# %% [markdown] slide="subslide"
# ## A forward pass with four records and a dispatcher

# %% [markdown] slide="notes"
# The table of records is four lines long. Together with the dispatcher it is
# enough to read digits.

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
# ## 360 digits, with broadcasting for the matrix product

# %% [markdown] slide="notes"
# Matrix products are written here as products and sums with broadcasting. It
# is slow and it is right.

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
# ## Your own package: a table of operations
#
# Your dispatcher calls toytorch for the common dtype, the common shape and the
# tensors. In the next exercise all of that is yours: a table of operations for
# your package `mytorch`, with promotion, broadcasting, `out=` and in-place
# forms, on NumPy arrays alone. When its check is green, your class is written
# to `work/mytorch/ops.py`.
#
# NumPy has rules of its own, and they are not those of PyTorch. **Predict**
# the dtypes that NumPy gives, then compare with the table of this chapter.

# %% [markdown] slide="notes"
# NumPy gives float64 twice, PyTorch float32: in NumPy an integer's width
# counts. That is why `np.result_type` is no answer here.

# %%
from functools import partial, reduce

ints = np.arange(3)
print("integers * float32", (ints * np.ones(3, np.float32)).dtype)
print("integers / 2      ", (ints / 2).dtype)

# %% exercise="ops.registry" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Homework of 50 minutes, in five stages. Go through the trace together: each
# row is one method.

# %% check="ops.registry" points=5

# %% [markdown] slide="subslide"
# ## Two lines define an operation

# %% [markdown] slide="notes"
# Ask before running: which of the three calls is refused, and why? The
# quotient of integers would have to be stored as integers.

# %% slide="more"
own = use("ops.registry")()
own.define("mul", np.multiply)
own.define("div", np.divide, "f")
halves = own.div(np.array([[1], [3]]), np.array([2, 4]))
print(halves, halves.dtype)
print(own.mul_(halves, 10) is halves, halves.tolist())
try:
    own.div_(ints, 2)
except TypeError as error:
    print(error)

# %% [markdown]
# Two lines define an operation, and it has a function, an in-place form and
# `out=`, as a record of toytorch has. What is missing is the derivative, the
# last field of a record.
#
# The `Tensor` that you write in chapter 04 keeps all its data in float64, so
# it has nothing to promote, and NumPy broadcasts for it by the rule that you
# have written here. Its backward pass has to undo that.

# %% [markdown] slide="slide"
# ## Look inside
#
# How toytorch finds the common shape of two operands, beside yours:

# %% [markdown] slide="notes"
# Compare the two line by line. Both go from the right, and both name the
# sizes in the error.

# %% slide="more" show="output"
from toytorch.facts import size

look(size.broadcast_pair, broadcast_shape)

# %% [markdown]
# And this is its dispatcher for element-wise ops. Your four steps are in it.
# The rest is for cases that yours leaves out:
#
# * arrays on a GPU,
# * 16-bit floats, which are computed in 32 bits,
# * PyTorch's messages instead of NumPy's,
# * `target`, for writing in place.

# %%
from toytorch.core import compute

look(compute.compute_pointwise, run)

# %% [markdown]
# This is the *general* path. Most calls do not need it: two float tensors of
# one dtype need no promotion. For small tensors the general path would even
# take longer than the kernel.
#
# So for each record toytorch generates a function for the common case, as
# text, and compiles it. You can read the text:

# %%
look(torch.neg)

# %% [markdown]
# * The first lines test whether this is the common case.
# * The middle runs the kernel and fills in a new tensor.
# * The next lines make the node if a gradient is required.
# * All other cases go to `call`, the general path.
#
# `source()` returns all that was generated for a record, its nodes for
# backward included. Here is the first of the five functions for `mul`:

# %%
written = torch.ops.mul.source().split("\n\n\n")
print(len(written), "functions")
print(written[0])

# %% [markdown] slide="slide"
# ## Measure: how much is made from the records?
#
# About four hundred records are written by hand. **Predict:** how many methods
# and in-place methods of tensors are made from them, and how many lines of
# Python are generated?

# %% [markdown] slide="notes"
# Predict the counts. The point is the ratio: few records by hand, very many
# forms that follow.

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
# operation reads its operands from memory and writes a new result.
#
# To count that, every kernel is wrapped in one that adds up the bytes of its
# operands and its result. **Predict** the number of kernels and the traffic,
# for a million floats of 4 bytes. Then compare with `torch.ops.gelu`, which is
# *one* op.

# %% [markdown] slide="subslide"
# ## How many kernels, how many bytes?

# %% [markdown] slide="notes"
# By hand, each operation writes its result to memory once. The whole function
# reads once and writes once.

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
# The formula takes nine passes over memory, and eleven times the traffic.
# (toytorch's `gelu` on NumPy also makes temporary arrays inside its one
# kernel. A compiled kernel does not.) Chapter 14 combines the formulas of the
# records and makes one kernel of all nine:

# %%
for op in (ops.mul, ops.add, ops.tanh, ops.sigmoid, ops.relu, ops.clamp):
    print(f"{op.name:<8} {op.formula}")

# %% [markdown] slide="subslide"
# ### What does stretching cost?
#
# A stretched operand needs no memory, because its stride is 0. The *result*
# needs memory for all elements. **Predict** the bytes of both:

# %% [markdown] slide="notes"
# Predict both. A stretched tensor costs no memory, the result of the product
# does.

# %% slide="more"
u, v = torch.rand(2000, 1), torch.rand(1, 2000)
stretched = u.expand(2000, 2000)
print("u stretched:", stretched.untyped_storage().nbytes(), "bytes")
print("u * v:      ", (u * v).untyped_storage().nbytes(), "bytes")

# %% [markdown] slide="slide"
# ## Traps
#
# Each of these cells raises an error on purpose. Read its last line.

# %% [markdown] slide="notes"
# In place, the result must fit into the memory that is there: in shape and in
# dtype. Each error says which one failed.

# %% raises=true slide="more"
total = torch.zeros(3)
total += torch.ones(2, 3)  # in place: the memory cannot grow

# %% raises=true slide="more"
counts = torch.tensor([1, 2, 3])
counts /= 2  # a true division makes floats; counts //= 2 would do

# %% raises=true slide="more"
seen = torch.tensor([True, True, False])
seen - torch.tensor([True, False, False])  # no `-` for bool tensors

# %% [markdown]
# For masks, use `seen & ~other` or `seen ^ other`, depending on what you need.

# %% raises=true slide="subslide"
torch.arange(4) ** -1  # the result would be integers; 1/2 is none

# %% [markdown] slide="notes"
# The last line is the common mistake of the chapter: a mean per row lines up
# with the columns.

# %% raises=true slide="more"
batch = torch.rand(8, 3)
batch - batch.mean(1)  # one mean per row, but shapes align right

# %% [markdown]
# This error helps. With a batch of 3 × 3 there would be none, and the mean of
# row *j* would be subtracted from *column* j. Use `keepdim=True`: it leaves a
# size of 1 where the dimension was.

# %% [markdown] slide="subslide"
# ## Traps that raise no error

# %% [markdown] slide="notes"
# Nothing is raised, and the numbers are wrong. `keepdim=True` repairs the
# first; the second wraps around at 256.

# %% slide="more"
square = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
print((square - square.mean(1)).mean(1))  # not centred
print((square - square.mean(1, keepdim=True)).mean(1))

# %% [markdown]
# Integers overflow: beyond the largest value they continue at the smallest. A
# Python number does not widen the dtype, because it has the lowest rank:

# %% slide="more"
pixel = torch.tensor([200], dtype=torch.uint8)
print(pixel + 100)  # 300 - 256
print(torch.tensor([-7]) // 2, torch.tensor(-7).div(2).int())  # down, to 0

# %% [markdown]
# The last one is from the beginning of this chapter. `mse_loss` warns about
# it:

# %% slide="subslide"
import warnings

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    wrong = torch.nn.functional.mse_loss(predicted, target)
print(f"{wrong.item():.3f}")
print(str(said[0].message).split(". ")[0])
print(torch.nn.functional.mse_loss(predicted.squeeze(1), target))

# %% [markdown] slide="notes"
# PyTorch only warns. Read the warning aloud: it describes the first slide of
# this chapter.

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** A mean squared error is computed for a batch of 32. What is the shape
# of the difference, and what does the network learn from it?
#
# ```python
# predicted, target = torch.zeros(32, 1), torch.zeros(32)
# print((predicted - target).shape)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# torch.Size([32, 32])
# ```
#
# Every prediction is compared with every target. The loss is smallest if each
# prediction is the mean of all targets, so the network learns the mean.
# `predicted.squeeze(1)` or `target[:, None]` makes the shapes equal.
#
# </details>
#
# **2.** What is the common shape?
#
# ```python
# print(torch.broadcast_shapes((5, 1, 4), (3, 1)))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# torch.Size([5, 3, 4])
# ```
#
# Lined up from the right, the second shape is (1, 3, 1). In each place one of
# the two sizes is 1, so the result has the other one: 5, 3 and 4.
#
# </details>
#
# **3.** Predict the three dtypes.
#
# ```python
# a = torch.ones(2, dtype=torch.int8)
# print((a + torch.tensor(1)).dtype,
#       (a + torch.tensor([1])).dtype,
#       (a + torch.tensor(1.0, dtype=torch.float64)).dtype)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# torch.int8 torch.int64 torch.float64
# ```
#
# `torch.tensor(1)` has no dimension and is of the same kind, so it does not
# change the width. `torch.tensor([1])` has a dimension, so it counts fully. In
# the third sum the kind changes from integer to floating, and the float64 is
# the only floating operand.
#
# </details>
#
# **4.** One of the sums overflows. Which one?
#
# ```python
# x = torch.tensor([250], dtype=torch.uint8)
# print(x + 10, x + torch.tensor([10]))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor([4], dtype=torch.uint8) tensor([260])
# ```
#
# The number 10 does not widen the dtype, so the first sum is a uint8, and 260
# becomes 260 - 256 = 4. The tensor `[10]` is an int64 with a dimension, so the
# second sum is an int64.
#
# </details>
#
# **5.** Both additions are in place. Why does only the second one raise an
# error?
#
# ```python
# a, b = torch.zeros(2, 3), torch.ones(3)
# a += b
# print(a)
# b += a
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor([[1., 1., 1.],
#         [1., 1., 1.]])
# RuntimeError
# ```
#
# The common shape of both is (2, 3). In the first addition that is the shape
# of `a`, so the result fits into its memory. `b` has memory for three
# elements, and an in-place operation cannot change the shape of its first
# operand.
#
# </details>
#
# **6.** `x` has the shape (4, 3), and its rows are to be centred. Which of
# `x - x.mean(1)`, `x - x.mean(1)[:, None]` and `x - x.mean(1, keepdim=True)`
# work, and what changes for a shape of (3, 3)?
#
# <details><summary>Answer</summary>
#
# `x.mean(1)` has the shape (4,), which lines up with the last dimension, 3: an
# error. The other two have the shape (4, 1) and work. For (3, 3) the first one
# raises no error, but subtracts the mean of row *j* from column *j*.
#
# </details>
#
# **7.** Your `run` gives every kernel two arrays of one dtype and one shape.
# What would be needed if each kernel had to handle all cases by itself?
#
# <details><summary>Answer</summary>
#
# Each of the four hundred operations would need code for broadcasting and
# promotion, with the same rules each time. A mistake or a change in a rule
# would have to be corrected four hundred times. With a dispatcher the rules
# are written once, and a kernel is a plain loop.
#
# </details>
#
# **8.** Both expressions are the sigmoid of 100. Why do they differ?
#
# ```python
# x = torch.tensor(100.0)
# print(x.exp() / (1 + x.exp()), torch.sigmoid(x))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor(nan) tensor(1.)
# ```
#
# The largest float32 is about $e^{88}$, so `x.exp()` is infinite, and ∞ / ∞ is
# `nan`. The built-in function uses $e^{-|x|}$, which is at most 1 and cannot
# overflow.
#
# </details>
#
# **9.** *Chapter 01.* What does this print?
#
# ```python
# print((torch.tensor([True, True]) + torch.tensor([True, False])).dtype,
#       (torch.tensor([True, True]) + 1).dtype)
# torch.tensor([1, 2]).mean()
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# torch.bool torch.int64
# RuntimeError
# ```
#
# The sum of two bool tensors is a bool tensor. The number 1 is of a higher
# kind, so the second sum is an int64. A mean of integers is not defined in
# PyTorch, because the result would have to be rounded: convert to a floating
# dtype first.
#
# </details>
#
# **10.** *Chapter 01.* Why does the sum of `x` change, although `x` is not
# written to by name?
#
# ```python
# x = torch.zeros(2, 3)
# r = x[0]
# r += 1
# print(x.sum())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor(3.)
# ```
#
# `x[0]` is a view of the first row, and `+=` writes in place. So three
# elements of `x` become 1. `r = r + 1` would make a new tensor and leave `x`
# unchanged.
#
# </details>

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
# **Next:** chapter 04 uses the last field of the record, the derivatives, for
# the backward pass.

# %% [markdown] slide="notes"
# The last question leads to chapter 04: the gradient of a stretched row is a
# sum.

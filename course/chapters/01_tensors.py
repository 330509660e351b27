# %% [markdown] slide="slide"
# # 01 · Tensors
#
# A photo, a sentence, the weather of a year, the weights of a network: to
# PyTorch they are all the same thing, **a box of numbers of one kind, with a
# shape**. Everything in this course happens to such boxes.
#
# > **The question of this chapter:** what does a tensor know about itself,
# > and how much of it can you write in an afternoon?

# %% [markdown] slide="notes"
# 45 minutes: question 5, play 12, exercises 1 to 4 live 15, the digits 8,
# traps 5. Let everyone write down a prediction for the first cell before
# it is run: most people get one of the four wrong.

# %% keep=true slide="more" show="output"

import math

import toytorch as torch
from course import check, hint, look, setup, use
from toytorch import viz

setup()
table = torch.arange(12).reshape(3, 4)
viz.storage(table=table)

# %% [markdown]
# Twelve numbers in a row of memory cells, and below them the same twelve
# numbers as a table of 3 × 4. The small number in each cell of the table says
# which memory cell it shows. Chapter 02 is all about that small number; here
# we look at what a tensor is from outside.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# Four harmless sums and quotients. Which **dtype** does each result have?
# Write down four answers before you run the cell.

# %% [markdown] slide="notes"
# Collect the four guesses before you run the cell. The quotient of two
# integer tensors surprises most: true division always gives floats.

# %% slide="more"
whole = torch.tensor([1, 2, 3])
halves = torch.tensor([0.5, 1.0, 1.5])
mask = torch.tensor([True, False, True])

print("whole + halves  ", (whole + halves).dtype)
print("whole / whole   ", (whole / whole).dtype)
print("whole + True    ", (whole + True).dtype)
print("mask + mask     ", (mask + mask).dtype)

# %% [markdown]
# The second one surprises people who come from other array libraries: a
# division of integers is a *true* division and gives floats. The last
# surprises everyone: two masks add up to a mask, `True + True` is `True`,
# whereas a mask `+ 1` counts. By the end of this chapter you will have
# written the rule.

# %% [markdown] slide="slide"
# ## Play: what a tensor knows
#
# | ask | answer |
# | --- | --- |
# | `t.shape` | how many, along each dimension |
# | `t.dtype` | what kind of number, in how many bits |
# | `t.device` | where the numbers lie |

# %% [markdown] slide="notes"
# Three questions, three attributes. Have somebody compute the memory of the
# tensor by hand: number of elements times bytes of each.

# %% slide="more"
t = torch.tensor([[1.5, 2, 3], [4, 5, 6]])
print(t)
print(t.shape, t.dtype, t.device)
print(t.ndim, "dimensions", t.numel(), "numbers")
print(t.element_size(), "bytes for each")

# %% [markdown]
# `torch.tensor` copies what you hand it: lists, numbers, NumPy arrays. Other
# factories make numbers themselves. Random ones come from a generator, and
# with the same seed toytorch's are the same on every machine and every day.
# (PyTorch has other numbers, and promises them for one release and one kind of
# machine only.)

# %%
print(torch.zeros(2, 3))
print(torch.arange(0, 1, 0.25))
print(torch.eye(3, dtype=torch.int64))
torch.manual_seed(1)
print(torch.rand(4))

# %% [markdown] slide="subslide"
# ## Pick and combine

# %% [markdown] slide="notes"
# Read each index aloud as "which rows, which columns". The mask is a tensor
# of booleans, and it always gives one dimension.

# %% slide="more"
print(table[1])  # a row
print(table[:, 1])  # a column
print(table[0, -1].item())  # one number, as a Python number
print(table[table % 2 == 0])  # all that are even, through a mask

# %% [markdown]
# Operations work on all numbers at once, element by element, or they *reduce*
# a dimension: `sum(0)` adds up **along** dimension 0, so that dimension 0 is
# gone afterwards. Shapes that do not match are stretched where they are 1
# (*broadcasting*; chapter 03 builds it).

# %%
print(table * 10 + 1)
print(table.sum(0).shape, table.sum(1).shape, table.sum().shape)
row, column = torch.arange(4), torch.arange(3)[:, None]
print(row.shape, column.shape, (row + column).shape)
print(row + column)

# %% [markdown] slide="slide"
# ## How fine is the ruler?
#
# A float has a fixed number of digits, so the gap to the next float grows
# with the number. `bfloat16` reaches as far as `float32` with the coarsest
# ruler of all, and networks train on it happily.

# %% [markdown] slide="notes"
# The gap grows with the number, so on two logarithmic axes each dtype is a
# straight line. Ask which line is highest, and why networks can live with it.

# %% show="output" slide="more"
import matplotlib.pyplot as plt

kinds = ["float64", "float32", "float16", "bfloat16"]
at = [2.0**power for power in range(-12, 16)]
figure, axes = plt.subplots()
for kind in kinds:
    step = torch.finfo(getattr(torch, kind)).eps
    axes.loglog(at, [x * step for x in at], label=kind)
axes.set_xlabel("a number of this size")
axes.set_ylabel("gap to the next one")
axes.legend(ncols=2)
plt.show()

# %% [markdown]
# Follow the float32 line to where the gap reaches 1, and you know the largest
# number to which you can still add 1:

# %%
big = torch.tensor(2.0**24)
print(big + 1 == big)
print((big + 1).dtype, (big + 1).item(), (big.double() + 1).item())

# %% [markdown] slide="slide"
# ## Build
#
# Six pieces, 5 to 12 minutes each:
#
# 1. the **shape** of nested lists
# 2. the **dtype** of a list of numbers
# 3. the dtype when a tensor meets a **Python number**
# 4. **arange** that does not drift
# 5. **one-hot** without a loop
# 6. every class's **mean** in one matrix product
#
# `check(...)` tells you at once. If it is red, read the panel: it shows the
# input, what was expected and what came, and it knows the usual mistakes.

# %% [markdown] slide="notes"
# Do the first exercise live and make the mistake of trusting the first row:
# the panel names it. Leave 2 and 4 as work in pairs.

# %% exercise="tensors.shape" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Ten minutes. The usual mistake is to take the first row's shape without
# comparing it with the others. Ask for the shape of an empty list.

# %% check="tensors.shape" points=2

# %% exercise="tensors.dtype" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Ten minutes. Booleans are integers for Python, so the order of the questions
# matters. Let the class find that before you say it.

# %% check="tensors.dtype" points=2

# %% exercise="tensors.scalar" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twelve minutes. Write the order of kinds on the board. A number changes the
# dtype only if its kind is higher.

# %% check="tensors.scalar" points=3

# %% exercise="tensors.arange" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Ten minutes. Adding 0.1 a hundred times drifts, multiplying does not. Print
# both results with all their digits.

# %% check="tensors.arange" points=2

# %% exercise="tensors.means" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eighteen minutes, and the longest of the chapter. Let them write all shapes
# on paper first. The column against the row is the idea of chapter 03.

# %% check="tensors.means" points=3

# %% [markdown] slide="slide"
# ## Plug in: reading digits with what you built
#
# 1,797 handwritten digits, 8 × 8 pixels each. The simplest classifier there
# is: average all zeros, all ones, … and call a new image what its nearest
# average is called. It is made of your last piece.

# %% [markdown] slide="notes"
# The classifier has no training at all: ten averages. Ask what accuracy the
# class expects before the next slide.

# %% slide="more"
from course.data import digits

images, labels = map(torch.from_numpy, digits())
x, y = images.reshape(-1, 64), labels
train, test = slice(0, 1400), slice(1400, None)

mean_of = use("tensors.means")  # yours if its check is green
means = mean_of(x[train], y[train], 10)
print(means.shape)

# %% [markdown]
# `use(name)` gives you your own function if it passed its check, and
# toytorch's otherwise, so that the notebook goes on either way.

# %% [markdown] slide="subslide"
# ## Ten averages, and how many digits they read

# %% [markdown] slide="notes"
# The difference of shapes (n, 1, 64) and (1, 10, 64) gives all distances at
# once. Ask which digits are confused most often.

# %% slide="more" show="output"
figure, axes = plt.subplots(1, 10, figsize=(8, 1.1))
for digit, ax in enumerate(axes):
    ax.imshow(means[digit].reshape(8, 8).numpy(), cmap="Greys")
    ax.set_title(str(digit))
    ax.axis("off")
plt.show()

# %% [markdown]
# To find the nearest average of every test image at once, hold the images as
# `(n, 1, 64)` against the averages as `(1, 10, 64)`; the differences are a box
# of `(n, 10, 64)`, without one loop. **Predict the share of images it gets
# right**, then run.

# %% slide="more"
gaps = x[test][:, None, :] - means[None, :, :]
distance = (gaps * gaps).sum(2)  # (n, 10)
guess = distance.argmin(1)
right = (guess == y[test]).float().mean().item()
print(f"{right:.1%} of {len(guess)} digits right, no training at all")

# %% [markdown] slide="slide"
# ## Look inside
#
# How toytorch itself finds the dtype of what you hand to `torch.tensor`.
# Yours knew flat lists of numbers; this one has to know everything people
# hand in. Find the two lines that are your rule.

# %% [markdown] slide="notes"
# The two lines of the exercise are in here. The rest handles nested lists,
# arrays and tensors. Give the class a minute to find them.

# %% slide="more" show="code"
from toytorch.ops.creation import from_data

look(from_data.infer_dtype)

# %% [markdown] slide="slide"
# ## Measure: what is a loop worth?
#
# The same million additions, by a Python loop and by one tensor operation.
# **Predict the ratio.** Ten? A hundred?

# %% [markdown] slide="notes"
# Predict first. The tensor does the same additions without a Python object
# for each number. The ratio depends on the machine.

# %%
import time


def seconds(work):
    """How long work() takes: the best of three runs."""
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best


# %% varies=true slide="more"
numbers = torch.rand(1_000_000)
plain = numbers.tolist()
loop = seconds(lambda: [number + 1.0 for number in plain])
whole_box = seconds(lambda: numbers + 1.0)
print(f"loop {loop * 1e3:.0f} ms, tensor {whole_box * 1e3:.2f} ms")
print(f"The tensor is {loop / whole_box:.0f} times as fast.")

# %% [markdown] slide="slide"
# ## Traps
#
# Each of these cells goes wrong on purpose. Read the last line of the error
# first: it says what happened, and usually what to do. Above it stand your own
# lines; a cell with `%tb` shows the whole way through toytorch as well.

# %% [markdown] slide="notes"
# Read the last line of each error first. Ask for the cause before you explain
# it. Five minutes for all the traps together.

# %% raises=true slide="more"
torch.tensor([[1, 2, 3], [4, 5]])

# %% raises=true slide="more"
torch.tensor([1, 2, 4]).mean()  # the mean of integers is no integer

# %% raises=true slide="more"
counts = torch.tensor([1, 2, 3])
counts += 0.5  # in place: there is no room for halves in an int64

# %% raises=true slide="subslide"
if torch.tensor([1, 2]) == torch.tensor([1, 3]):
    print("equal?")  # two answers, one if

# %% [markdown] slide="notes"
# An `if` wants one answer and gets two. In the second case name the two sizes
# that do not agree, and the dimension.

# %% raises=true slide="more"
torch.ones(2, 3) + torch.ones(2, 4)

# %% [markdown]
# And one that raises nothing, which is worse. A slice is a *view*: it shows
# the same memory. Write into it, and the original changes:

# %% slide="subslide"
original = torch.zeros(6)
part = original[2:4]
part += 7
print(original)
viz.storage(original=original, part=part)

# %% [markdown] slide="notes"
# The slice is a view: it has no memory of its own. This is the question that
# chapter 02 answers.

# %% [markdown] slide="slide"
# ## Beyond
#
# * `torch.tensor(3.0)` has the shape `()`. Why is a tensor with no dimension
#   useful, when Python has numbers?
# * Write `nested_shape` without recursion. Which version would survive a list
#   nested 100,000 deep?
# * `0.1 + 0.2 == 0.3` is false in float64 and true in float32. Is float32
#   the more exact of the two?
# * The nearest average gets about six digits in seven. Look at those it gets
#   wrong. What would a classifier need to know that an average cannot hold?
#
# **Next:** chapter 02 opens the box and finds one row of bytes.

# %% [markdown] slide="notes"
# Choose one question for discussion. The one about float32 and 0.1 shows that
# equal is not the same as exact.

# %% [markdown] slide="slide"
# # 01 · Tensors
#
# A photo, a sentence, a year of weather data, the weights of a network: in
# PyTorch each of them is a **tensor**, an array of numbers that has a shape
# and one data type. Everything in this course is computed with tensors.
#
# > **The question of this chapter:** which facts describe a tensor, and by
# > which rules are they found?

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
# The upper row shows twelve memory cells. Below it, the same twelve elements
# form a table of 3 × 4. The small number in each square of the table says
# which memory cell it shows. Chapter 02 explains that number. This chapter is
# about how a tensor is used.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# Four sums and quotients. Which **dtype** (data type) does each result have?
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
# * `whole / whole`: a division of integers is a *true* division, so it gives
#   floats.
# * `mask + mask`: the sum of two bool tensors is a bool tensor, in which
#   `True + True` is `True`. A mask `+ 1`, however, is an int64 tensor.
#
# By the end of this chapter you will have written the rule.

# %% [markdown] slide="slide"
# ## Play: the facts of a tensor
#
# | ask | answer |
# | --- | --- |
# | `t.shape` | the size of each dimension |
# | `t.dtype` | the type of the elements, and their bits |
# | `t.device` | where its memory is |

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
# `torch.tensor` copies its argument: a list, a number, or a NumPy array. Other
# factory functions compute the elements themselves.
#
# Random elements come from a generator. With the same seed, toytorch gives the
# same elements on every machine, and they are those that PyTorch gives. (PyTorch
# itself guarantees them only for one release and one platform.)

# %%
print(torch.zeros(2, 3))
print(torch.arange(0, 1, 0.25))
print(torch.eye(3, dtype=torch.int64))
torch.manual_seed(1)
print(torch.rand(4))

# %% [markdown] slide="subslide"
# ## Indexing and operations

# %% [markdown] slide="notes"
# Read each index aloud as "which rows, which columns". The mask is a tensor
# of booleans, and it always gives one dimension.

# %% slide="more"
print(table[1])  # a row
print(table[:, 1])  # a column
print(table[0, -1].item())  # one number, as a Python number
print(table[table % 2 == 0])  # all even elements, by a mask

# %% [markdown]
# Some operations work element by element. Others *reduce* a dimension:
# `sum(0)` adds up **along** dimension 0, so the result no longer has that
# dimension. If two shapes differ, a size of 1 is stretched to the other size.
# This is called *broadcasting*; you write it in chapter 03.

# %%
print(table * 10 + 1)
print(table.sum(0).shape, table.sum(1).shape, table.sum().shape)
row, column = torch.arange(4), torch.arange(3)[:, None]
print(row.shape, column.shape, (row + column).shape)
print(row + column)

# %% [markdown] slide="slide"
# ### How precise is a float?
#
# A float has a fixed number of digits, so the gap to the next float grows with
# its size. `bfloat16` covers the range of `float32` with the largest gaps of
# the four. For training many networks that is precise enough.

# %% [markdown] slide="notes"
# The gap grows with the number, so on two logarithmic axes each dtype is a
# straight line. Ask which line is highest, and why networks can live with it.

# %% slide="more" folded=true
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
# Five exercises, 10 to 18 minutes each, and a larger one:
#
# 1. the **shape** of nested lists
# 2. the **dtype** of a list of numbers
# 3. the dtype when a tensor meets a **Python number**
# 4. **arange** that does not drift
# 5. every class's **mean** in one matrix product
# 6. from nested lists to a **flat array** and back to text: the first file of
#    a package of your own
#
# `check(...)` shows at once whether your answer is right. If it is red, read
# the panel: it shows the input, the expected result and yours, and explains
# the usual mistakes.

# %% [markdown] slide="notes"
# Do the first exercise live. Use only the length of the first row: the panel
# names that mistake. Leave 2 and 4 as work in pairs.

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
# Twelve minutes. Write the order of kinds on the whiteboard. A number changes the
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
# on paper first. A column with a row is the idea of chapter 03.

# %% check="tensors.means" points=3

# %% [markdown] slide="slide"
# ## Plug in: reading digits with what you built
#
# The data are 1,797 handwritten digits of 8 × 8 pixels. The *nearest-mean*
# classifier is one of the simplest: compute the mean image of each class, and
# give a new image the class whose mean is nearest. Your last exercise computes
# these means.

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
# `use(name)` returns your own function if it passed its check, and toytorch's
# otherwise. So the notebook runs in both cases.

# %% [markdown] slide="subslide"
# ## The ten mean images

# %% [markdown] slide="notes"
# The difference of shapes (n, 1, 64) and (1, 10, 64) gives all distances at
# once. Ask which digits are confused most often.

# %% slide="more" folded=true
figure, axes = plt.subplots(1, 10, figsize=(8, 1.1))
for digit, ax in enumerate(axes):
    ax.imshow(means[digit].reshape(8, 8).numpy(), cmap="Greys")
    ax.set_title(str(digit))
    ax.axis("off")
plt.show()

# %% [markdown]
# To find the nearest mean of all test images at once, give the images the
# shape `(n, 1, 64)` and the means the shape `(1, 10, 64)`. By broadcasting,
# their difference has the shape `(n, 10, 64)`, without a loop. **Predict the
# share of right answers**, then run.

# %% slide="more"
gaps = x[test][:, None, :] - means[None, :, :]
distance = (gaps * gaps).sum(2)  # (n, 10)
guess = distance.argmin(1)
right = (guess == y[test]).float().mean().item()
print(f"{right:.1%} of {len(guess)} digits right, no training at all")

# %% [markdown] slide="slide"
# ## Your own package: from lists to a flat array
#
# In this course you also build a PyTorch of your own, a package called
# `mytorch` that needs nothing but NumPy. Most chapters add a file to it. When
# the check of the next exercise is green, your class is written to
# `work/mytorch/creation.py`.
#
# It combines three exercises of this chapter, and adds what was missing: the
# elements themselves, one after the other, and the text that `print` shows.
# Before you begin, look at what PyTorch prints. **Predict** where the second
# row begins, and how wide its elements are.

# %% [markdown] slide="notes"
# Show the printed table and let the group state the rules for widths and
# digits. They are the fourth stage of the exercise.

# %%
import numpy as np

print(torch.tensor([[1, 2.5], [30, True]]))

# %% exercise="tensors.parse" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Homework of 40 minutes. Do the first stage together: which lengths does the
# walk down the first elements note for an empty list?

# %% check="tensors.parse" points=5

# %% [markdown] slide="subslide"
# ## Eight elements in one row

# %% [markdown] slide="notes"
# The flat array says nothing about rows. Ask what else is needed to print
# it: the shape, and nothing more. Chapter 02 begins here.

# %% slide="more"
Parsed = use("tensors.parse")
made = Parsed([[[1, 2], [3, 4]], [[5, 6], [7, 80]]])
print(made)
print(made.shape, made.flat)
try:
    Parsed([[[1, 2], [3, 4]], [[5, 6], [7]]])
except ValueError as error:
    print(error)

# %% [markdown]
# All eight elements lie in one row, and only the shape says that they are two
# tables. Chapter 02 begins here: its `Layout` shows one flat array in many
# shapes.

# %% [markdown] slide="slide"
# ## Look inside
#
# This is how toytorch finds the dtype for `torch.tensor`. Your function takes
# flat lists of Python numbers. This one takes nested lists, NumPy arrays and
# tensors as well. Find the two lines that are your rule.

# %% [markdown] slide="notes"
# The two lines of the exercise are in here. The rest handles nested lists,
# arrays and tensors. Give the class a minute to find them.

# %% slide="more" show="output"
from toytorch.core import nested_data

look(nested_data.infer_dtype)

# %% [markdown] slide="slide"
# ## Measure: what does a Python loop cost?
#
# A million additions, by a Python loop and by one tensor operation. **Predict
# the ratio** of the two times. Ten? A hundred?

# %% [markdown] slide="notes"
# Predict first. The tensor does the same additions without a Python object
# for each element. The ratio depends on the machine.

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
# Each of these cells raises an error on purpose. Read the last line of the
# error first: it says what happened, and usually what to do. The lines above
# it are from your own code. A cell with `%tb` also shows the calls inside
# toytorch.

# %% [markdown] slide="notes"
# Read the last line of each error first. Ask for the cause before you explain
# it. Five minutes for all the traps together.

# %% raises=true slide="more"
torch.tensor([[1, 2, 3], [4, 5]])

# %% raises=true slide="more"
torch.tensor([1, 2, 4]).mean()  # a mean of integers needs a float dtype

# %% raises=true slide="more"
counts = torch.tensor([1, 2, 3])
counts += 0.5  # in place: an int64 cannot hold 1.5

# %% raises=true slide="subslide"
if torch.tensor([1, 2]) == torch.tensor([1, 3]):
    print("equal?")  # two answers, one if

# %% [markdown] slide="notes"
# An `if` wants one answer and gets two. In the second case name the two sizes
# that do not agree, and the dimension.

# %% raises=true slide="more"
torch.ones(2, 3) + torch.ones(2, 4)

# %% [markdown]
# The next one raises no error. A slice is a *view*: it uses the memory of the
# original. A write into the slice changes the original too:

# %% slide="subslide"
original = torch.zeros(6)
part = original[2:4]
part += 7
print(original)
viz.storage(original=original, part=part)

# %% [markdown] slide="notes"
# The slice is a view: it has no memory of its own. This is the question that
# chapter 02 answers.

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer.
#
# **1.** What does this print, and why?
#
# ```python
# x = torch.tensor([1, 2, 3])
# print((x / 1).dtype, (x // 1).dtype, (x * 1.0).dtype)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# torch.float32 torch.int64 torch.float32
# ```
#
# `/` is a true division, so its result is floating even if every quotient is
# whole. `//` keeps integers. In the last product, the number 1.0 is of a
# higher kind than the tensor, so the result has the default floating dtype.
#
# </details>
#
# **2.** One of these results has 128 bits for each element. Which one, and why
# not both?
#
# ```python
# x = torch.ones(2, dtype=torch.float64)
# y = torch.ones(2)
# print((x + 1j).dtype, (y + 1j).dtype)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# torch.complex128 torch.complex64
# ```
#
# A Python number has a kind but no width. Complex is higher than floating, so
# both results are complex. The width comes from the tensor: a float64 tensor
# gives complex128, so that no bits are lost, and a float32 tensor gives
# complex64.
#
# </details>
#
# **3.** Predict the three shapes.
#
# ```python
# x = torch.zeros(4, 3, 2)
# print(x.sum(1).shape, x.sum((0, 2)).shape)
# print(x.sum(1, keepdim=True).shape)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# torch.Size([4, 2]) torch.Size([3])
# torch.Size([4, 1, 2])
# ```
#
# A sum along a dimension removes it. So `sum(1)` leaves the sizes 4 and 2, and
# `sum((0, 2))` leaves the size 3. With `keepdim=True` the dimension stays,
# with the size 1.
#
# </details>
#
# **4.** Two tensors of three elements are subtracted. How many elements has
# the result?
#
# ```python
# a = torch.ones(3, 1)
# b = torch.ones(3)
# print((a - b).shape)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# torch.Size([3, 3])
# ```
#
# Nine. Shapes line up from the right, so `b` counts as a row of shape
# `(1, 3)`. The column and the row are both stretched to a table of 3 × 3. No
# error says so.
#
# </details>
#
# **5.** A bfloat16 has 8 significant binary digits. What does this print, and
# why?
#
# ```python
# x = torch.tensor(256.0, dtype=torch.bfloat16)
# print((x + 1).item(), (x + 2).item())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 256.0 258.0
# ```
#
# From 256 on, neighbouring bfloat16 values are 2 apart. 257 lies between two
# of them and is rounded to 256. 258 is a bfloat16, so the second sum is exact.
#
# </details>
#
# **6.** Which of the two assignments changes `a`?
#
# ```python
# a = torch.arange(6)
# b, c = a[2:4], a[[0, 1]]
# b += 10
# c += 10
# print(a)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor([ 0,  1, 12, 13,  4,  5])
# ```
#
# A slice is a view, so `b` uses the memory of `a`, and the first assignment
# changes both. Indexing with a list makes a copy, so the second assignment
# changes only `c`.
#
# </details>
#
# **7.** Why does `count_up` compute `start + index * step`, when adding the
# step again and again needs no product?
#
# <details><summary>Answer</summary>
#
# Each addition rounds. In a running sum the errors of all steps add up, so
# after thousands of steps the values have drifted. `start + index * step` is
# rounded twice, whatever the index. The values are also independent of each
# other, so they can be computed in parallel.
#
# </details>
#
# **8.** Predict what is printed, the dtype included.
#
# ```python
# x = torch.tensor([3, -1, 0, 5])
# mask = x > 0
# print(mask.sum(), mask.sum().dtype, x[mask])
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor(2) torch.int64 tensor([3, 5])
# ```
#
# A comparison gives a bool tensor. Its sum counts the `True` elements, so it
# is an int64. Indexing with a mask gives the elements where the mask is
# `True`, here the positive ones.
#
# </details>
#
# **9.** Which line raises the error, and what does it need instead?
#
# ```python
# a, b = torch.tensor([1, 2]), torch.tensor([1, 3])
# print((a == b).all().item())
# if a == b:
#     print("equal")
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# False
# RuntimeError
# ```
#
# `a == b` has two elements, and `if` needs one truth value. So the third line
# raises an error. Say what is meant: `(a == b).all()` if all elements must
# agree, `.any()` if one is enough.
#
# </details>
#
# **10.** `class_means` gets a batch in which class 7 does not occur. What is
# row 7 of $R^\top X$, what is its count, and what would happen without
# `clamp`?
#
# <details><summary>Answer</summary>
#
# The column of class 7 in the one-hot table $R$ is all zeros. So the sum is a
# row of zeros and the count is 0. The quotient 0 / 0 is `nan`, and every
# result that uses it is `nan` too. With `clamp(min=1)` the mean is 0.
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * `torch.tensor(3.0)` has the shape `()`. Why is a tensor with no dimension
#   useful, when Python has numbers?
# * Write `nested_shape` without recursion. Which version works for a list
#   nested 100,000 deep?
# * `0.1 + 0.2 == 0.3` is false in float64 and true in float32. Does that mean
#   that float32 is more precise?
# * The nearest mean gets about six digits in seven right. Look at the wrong
#   ones. Which information does a mean image lack?
#
# **Next:** chapter 02 is about the memory behind a tensor.

# %% [markdown] slide="notes"
# Choose one question for discussion. The one about float32 and 0.1 shows that
# equal is not the same as exact.

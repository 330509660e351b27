# %% [markdown] slide="slide"
# # 02 · Memory: storage, strides, views
#
# Transpose a matrix of a billion numbers. Cut out every second column. Show
# one row a thousand times. Not a single number is moved or copied.
#
# > **The question of this chapter:** how can one row of memory cells be so
# > many tensors at once, and when does it have to give up and copy?

# %% [markdown] slide="notes"
# 45 minutes: question 5, play 12, exercises 1, 2 and 5 live 12, edges 6,
# measure 5, traps 5. Exercise 4 (view) is the hard one: homework, or the
# whole group at the board.

# %% keep=true slide="more" show="output"
import toytorch as torch
from course import check, exercise, hint, look, setup, use
from toytorch import viz

setup()
x = torch.arange(12).reshape(3, 4)
viz.storage(x=x, t=x.t())

# %% [markdown]
# Above: twelve memory cells in a row. Below: two tensors, both made of *these*
# cells. The small number in each square says which cell it shows. Going one
# square to the right in `x` is one cell, and one square down is four; in `t`
# it is the other way round. Those step lengths are the **strides**, and that is
# all that `x.t()` changed.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# Three tensors are made from `x`; then one number of `x` is changed.
# Which of the three will show the 100?

# %% [markdown] slide="notes"
# Hands up for each of the three. Only the last one is a copy. Ask why before
# you show the strides.

# %% slide="more"
x = torch.arange(12).reshape(3, 4)
turned = x.t()
flat = x.reshape(12)
both = x.t().reshape(12)

x[0, 1] = 100

for name, tensor in [("turned", turned), ("flat", flat), ("both", both)]:
    print(name, (tensor == 100).any().item())

# %% [markdown]
# The first two are *views*: other tensors over the same cells. The third asked
# for columns one after the other, and the cells lie in rows. No stride can say
# that, so `reshape` made a copy without telling you. At the end of this chapter
# you will know beforehand, because you will have written the rule.

# %% [markdown] slide="slide"
# ## Play: four facts make a tensor
#
# | fact | where | says |
# | --- | --- | --- |
# | storage | `x.untyped_storage()` | which bytes |
# | offset | `x.storage_offset()` | at which cell it starts |
# | shape | `x.shape` | how far one may go |
# | stride | `x.stride()` | how far a step is, in cells |

# %% [markdown] slide="notes"
# Walk through the table with the transposed tensor: same storage, strides
# exchanged. Nothing else has changed.

# %%
def same_storage(a, b):
    """Whether two tensors lie in the same memory."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


# %% slide="more"
x = torch.arange(12).reshape(3, 4)
views = {"x": x, "x.t()": x.t(), "x[1:]": x[1:], "x[:, 1]": x[:, 1],
         "x[:, ::2]": x[:, ::2], "x.view(2, 6)": x.view(2, 6)}
for text, v in views.items():
    facts = f"{tuple(v.shape)!s:<9}{v.stride()!s:<9}offset"
    whose = "the same storage" if same_storage(v, x) else "its own"
    print(f"{text:<14}{facts} {v.storage_offset()}  {whose}")

# %% [markdown]
# Each row is the same 96 bytes (twelve int64 of 8 bytes). Only offset, shape
# and stride differ: a handful of numbers, whatever the size of the tensor. That
# is why taking a view costs the same for twelve numbers and for a billion.

# %% [markdown] slide="subslide"
# ## Every second column, and one corner

# %% [markdown] slide="notes"
# Follow the colours from the memory to the two views. Every second column has
# stride 2, the corner only a larger offset.

# %% keep=true slide="more" show="output"
viz.storage(x=x, seconds=x[:, ::2], corner=x[1:, 2:])

# %% [markdown]
# Cells that several tensors see have a colour of their own. Write to such a
# cell through one of them and all others change, which is a fine thing if you
# meant it. To keep track, a storage has **one** version counter for all its
# views: every in-place write through any of them counts. Autograd reads it
# (chapter 05), to notice that a number it had saved was overwritten.

# %%
x = torch.zeros(3, 4)
corner = x[1:, 2:]
print("versions:", x._version, corner._version)
corner += 7  # through the view
x[0, 0] = 1  # through the whole
print("versions:", x._version, corner._version)
print("a clone starts anew:", x.clone()._version)

# %% [markdown] slide="subslide"
# ## A step of nothing
#
# With stride 0 every step leads to the same cell.

# %% [markdown] slide="notes"
# Stride 0 means that a step goes nowhere. Ask how many bytes the result
# takes: those of three numbers.

# %% keep=true slide="more" show="output"
row = torch.tensor([10, 20, 30])
viz.storage(row=row, rows=row.expand(4, 3))

# %% [markdown]
# `rows` has twelve numbers and no memory of its own. Broadcasting is exactly
# this: `table + row` stretches the row with a stride of 0 and adds.
#
# And strides may overlap. Below, each window starts one cell after the one
# before it, so most cells are shown several times:

# %% [markdown] slide="subslide"
# ## Overlapping windows

# %% [markdown] slide="notes"
# Each number is in up to three windows, and none is copied. Chapter 10 builds
# a convolution on this.

# %% keep=true slide="more" show="output"
signal = torch.arange(8)
viz.storage(signal=signal, windows=signal.as_strided((6, 3), (1, 1)))

# %% [markdown]
# ### NumPy sees the same cells
#
# `torch.from_numpy(a)` is a view of NumPy's memory and `t.numpy()` one of
# toytorch's. It works in both directions, and nothing is copied. (NumPy counts
# strides in bytes, torch in elements.)

# %%
import numpy as np

a = np.arange(4.0)
b = torch.from_numpy(a)
a[0] = 50  # NumPy writes
b[3] = 99  # toytorch writes
print(a, b)

c = torch.tensor(a)  # this one copies
a[:] = 0
print(c)
table = torch.zeros(3, 4)
print(table.stride(), table.numpy().strides)

# %% [markdown] slide="slide"
# ## Build
#
# Six pieces, each a few lines of arithmetic:
#
# 1. the **cell** behind an index
# 2. the strides of a **new** tensor
# 3. **contiguous** or not?
# 4. **another shape** over the same cells, or the proof that there is none
# 5. **a thousand rows** from one
# 6. **all windows** of an image at once

# %% [markdown] slide="notes"
# Ask before exercise 2: what are the strides of shape (32, 3, 8, 8)? Somebody
# says it from the left, somebody from the right. Exercise 5 shows best what a
# stride of 0 is.

# %% exercise="memory.cell" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eight minutes, a good exercise to solve live. Let the class name the cell of
# one index before you write code.

# %% check="memory.cell" points=1

# %% [markdown]
# With that one function you can read any tensor straight from its storage. Here
# a transposed slice is put together again, cell by cell:

# %%
find = use("memory.cell")  # yours if its check is green
x = torch.arange(12).reshape(3, 4)
cells = x.reshape(-1).tolist()  # what lies in the storage
piece = x[1:].t()
facts = tuple(piece.shape), piece.stride(), piece.storage_offset()
for i in range(4):
    found = [cells[find((i, j), *facts)] for j in range(2)]
    print(found, "and toytorch says", piece[i].tolist())

# %% exercise="memory.strides" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eight minutes. Build the tuple from the right: the last stride is 1, each
# other the product of the sizes to its right.

# %% check="memory.strides" points=1

# %% exercise="memory.contiguous" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Ten minutes, optional. The stride of a dimension of size 1 does not matter,
# and an empty tensor is always contiguous.

# %% check="memory.contiguous" points=2

# %% exercise="memory.view" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty-five minutes and the hardest function here. Trace one example on the
# board: merge the old dimensions into runs, then cut the runs.

# %% check="memory.view" points=4

# %% exercise="memory.expand" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twelve minutes, optional. A size that grows must have been 1, and its stride
# becomes 0.

# %% check="memory.expand" points=2

# %% exercise="memory.windows" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifteen minutes. Two strides appear twice: once for the place of the window,
# once for the place inside it.

# %% check="memory.windows" points=3

# %% [markdown] slide="slide"
# ## Plug in: finding edges
#
# An edge is where a window is dark on one side and light on the other. Four
# small tables of weights ask for edges in four directions. The second pair is
# the first one transposed: a view.

# %% [markdown] slide="notes"
# The tables are transposed views of one another. Ask which of the four finds
# a lower edge before you show the picture.

# %% slide="more"
down = torch.tensor([[1.0, 2, 1], [0, 0, 0], [-1, -2, -1]])
asked = torch.stack([down, -down, down.t(), -down.t()])  # (4, 3, 3)
windows_of = use("memory.windows")


def edges(images):
    """(n, 8, 8) images -> (n, 4, 6, 6): how strong, in four directions."""
    seen = windows_of(images, 3)  # (n, 6, 6, 3, 3), no copy
    seen = seen[:, None].expand(-1, 4, -1, -1, -1, -1)
    return (seen * asked[:, None, None]).sum((-2, -1)).clamp(min=0)


# %% [markdown]
# `windows_of` is your function if its check was green. The `expand` inside runs
# on yours too, as long as the block below lasts, and so does `view`.

# %% [markdown] slide="subslide"
# ## What the four tables see

# %% [markdown] slide="notes"
# Compare the maps with the digits. A strong response is dark: it shows where
# the edge that was asked for lies.

# %%
from toytorch.vision import datasets

images, labels = datasets.digits(train=True)
test_images, test_labels = datasets.digits(train=False)
images, test_images = images[:, 0], test_images[:, 0]  # (n, 8, 8)

with exercise("memory.expand").active(), exercise("memory.view").active():
    found = edges(images).view(1437, 4 * 6 * 6)
    test_found = edges(test_images).view(360, 4 * 6 * 6)

# %%
print(found.shape, test_found.shape)

# %% slide="more" show="output"
import matplotlib.pyplot as plt

names = ["image", "lower edge", "upper edge", "right edge", "left edge"]
figure, grid = plt.subplots(2, 5, figsize=(7.2, 3.1))
for row, n in zip(grid, (0, 5)):
    maps = found[n].view(4, 6, 6)
    for ax, picture, name in zip(row, [images[n], *maps], names):
        ax.imshow(picture.numpy(), cmap="Greys")
        ax.axis("off")
        ax.set_title(name, fontsize=9)
figure.tight_layout()
plt.show()

# %% [markdown]
# This is one layer of a convolutional network, and it took no loop: windows by
# strides, a product, a sum. Is it of use? Let the simplest reader there is
# decide: a new digit is called what its **nearest neighbour** among the 1,437
# known ones is called. **Predict:** will it do better on pixels or on edges?

# %% [markdown] slide="subslide"
# ## Pixels or edges?
#
# How many of 360 new digits does the nearest neighbour name right?

# %% [markdown] slide="notes"
# Predict which is better and by how much. The distances are the same code,
# only the features differ.

# %%
def nearest(known, new):
    """The label of the nearest known example for each new one."""
    gaps = (known * known).sum(1) - 2 * new @ known.t()  # (new, known)
    return labels[gaps.argmin(1)]


def share_right(known, new):
    return (nearest(known, new) == test_labels).float().mean().item()


# %% slide="more"
pixels = share_right(images.view(-1, 64), test_images.view(-1, 64))
on_edges = share_right(found, test_found)
print(f"right on pixels {pixels:.1%}, on edges {on_edges:.1%}")

# %% [markdown]
# Half of the mistakes are gone. Edges stay where they are when a stroke gets a
# little thicker or paler, and pixels do not.

# %% [markdown] slide="slide"
# ## Your own package: a layout
#
# From here on you build a PyTorch of your own, a package called `mytorch`. Its
# first file puts this chapter together: a class that holds shape, strides and
# offset, and makes views. When its check is green, your class is written to
# `work/mytorch/layout.py`. Your convolution of chapter 10 will stand on it.
# What you wrote above as functions can go into its methods.

# %% [markdown] slide="notes"
# From here on the functions of the chapter become methods. The file that
# results is used again in chapter 10.

# %%
import itertools
import math

import numpy as np

# %% exercise="memory.layout" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Forty minutes, homework. The checks come in stages, so students can stop and
# go on later.

# %% check="memory.layout" points=5

# %% [markdown]
# All windows of a picture, as an array of six dimensions, without copying a
# cell: `of` shows a flat memory in the layout.

# %%
pixels = np.arange(16.0)
image = use("memory.layout")((4, 4))
patches = image.windows(0, 3).windows(1, 3)
print(patches.shape, patches.strides)
print(patches.of(pixels)[1, 0])

# %% [markdown] slide="slide"
# ## Look inside
#
# toytorch's own answer to *contiguous or not?*, beside yours:

# %% [markdown] slide="notes"
# Compare line by line. Both skip dimensions of size 1; ask why that is right.

# %% slide="more" show="output"
from toytorch.facts import size

look(size.is_contiguous, is_row_major)

# %% [markdown]
# And its `view_strides`:

# %%
look(size.view_strides, view_strides)

# %% [markdown]
# It does the same in one pass, from the right: `chunk` counts the elements of
# the current run, `filled` how many of them the new dimensions have used up.
# PyTorch has it in C++, in `computeStride`. Read the two side by side. The
# `return None` in the middle is reached when a new dimension would span two
# runs, whose elements do not lie at one stride.

# %% [markdown] slide="slide"
# ## Measure: what a view costs, and what it saves
#
# **Predict** the bytes of memory behind each of these. A float takes 4.

# %% [markdown] slide="notes"
# Predict all six. The surprise is the small slice: it keeps the whole storage
# alive.

# %% slide="more"
big = torch.zeros(1000, 1000)
kinds = {
    "big": big,
    "big.t()": big.t(),
    "big.t().contiguous()": big.t().contiguous(),
    "torch.zeros(1).expand(1000, 1000)": torch.zeros(1).expand(1000, 1000),
    "big[0, :10]": big[0, :10],
    "big[0, :10].clone()": big[0, :10].clone(),
}
for text, v in kinds.items():
    whose = "(big's own)" if same_storage(v, big) else ""
    print(f"{text:<35}{v.untyped_storage().nbytes():>10,}", whose)

# %% [markdown]
# Look at `big[0, :10]`: ten numbers that keep four million bytes alive. Whoever
# stores a small piece of something large should store a `clone()`.
#
# A view is free to *make*. To *read*, it may be dear: memory is fetched in
# lines of 64 bytes on most processors, sixteen floats at a time. A row uses
# every number of a line, a column one of sixteen. We can count the lines,
# because cells are arithmetic. **Predict** both numbers for a table of
# 1024 × 1024 floats.

# %% [markdown] slide="subslide"
# ## How many lines of 64 bytes?

# %% [markdown] slide="notes"
# Memory is read in lines of 64 bytes. Walking along the columns touches many
# more lines for the same numbers.

# %% slide="more"
def lines_touched(tensor):
    """How many 64-byte lines hold the cells of a tensor."""
    last = tensor.untyped_storage().nbytes() // tensor.element_size()
    numbers = torch.arange(last)  # in each cell its own number
    cells = numbers.as_strided(
        tensor.shape, tensor.stride(), tensor.storage_offset())
    return (cells * tensor.element_size() // 64).unique().numel()


table = torch.zeros(1024, 1024)
print("one row:   ", lines_touched(table[0]))
print("one column:", lines_touched(table[:, 0]))

# %% [markdown]
# Sixteen times the traffic for the same amount of numbers. How much of that can
# be felt? Here every row of a large table is added up by itself, then every
# column. (The time depends on your processor and its caches.)

# %% varies=true slide="fragment" show="output"
import time

table = torch.ones(4096, 4096)


def seconds(pieces):
    begin = time.perf_counter()
    for piece in pieces:
        piece.sum()
    return time.perf_counter() - begin


rows = min(seconds(table) for _ in range(3))
columns = min(seconds(table.t()) for _ in range(3))
print(f"rows {rows * 1e3:.0f} ms, columns {columns * 1e3:.0f} ms")

# %% [markdown] slide="slide"
# ## Traps
#
# Run on purpose. Read the last line of each error.

# %% [markdown] slide="notes"
# Three errors, one cause: the layout cannot do what was asked, or two places
# share a cell. Ask who shares with whom.

# %% raises=true slide="more"
x = torch.arange(12).reshape(3, 4)
x.t().view(12)  # a view can not, and says so

# %% raises=true slide="more"
row = torch.zeros(3)
row.expand(4, 3).add_(1)  # is each number to grow by 1, or by 4?

# %% raises=true slide="more"
q = torch.ones(4)
q[1:] += q[:-1]  # reads what it is just overwriting

# %% raises=true
x[::-1]  # strides are never negative in torch: say x.flip(0), a copy

# %% [markdown] slide="subslide"
# ## Traps that say nothing

# %% [markdown] slide="notes"
# No error here, only wrong numbers. `reshape` is a view when it can be, and a
# copy otherwise; the code does not say which.

# %% [markdown]
# They are worse. A slice is a view, a *list* of indices makes a copy; the two
# look alike:

# %% slide="more"
x = torch.zeros(4)
piece, chosen = x[0:2], x[[2, 3]]
piece += 1
chosen += 1
print(x)

# %% [markdown]
# `reshape` is a view when it can and a copy when it must. If it matters which,
# say `view` (or `reshape(...).clone()`), so that you hear about it:

# %% slide="more"
x = torch.zeros(2, 2)
x.reshape(4)[0] = 1  # arrives in x
x.t().reshape(4)[3] = 1  # does not
print(x.tolist())

# %% [markdown]
# And arrays from NumPy stay shared for as long as they live:

# %% slide="more"
buffer, samples = np.zeros(3), []
for step in range(3):
    buffer[:] = step  # filled anew each time
    samples.append(torch.from_numpy(buffer))
print([s.tolist() for s in samples])  # torch.tensor would have copied

# %% [markdown] slide="slide"
# ## Beyond
#
# * Which shapes and strides are the *same* tensor, number by number? How would
#   you bring them to a normal form?
# * When do two views of one storage overlap? The general question is hard:
#   with enough dimensions it is as hard as packing a knapsack.
# * NumPy allows negative strides and torch does not. What becomes simpler?
# * Write `tensor.unfold(dim, size, step)` with `as_strided`. What are the
#   strides for a step of 2?
#
# **Next:** chapter 03 asks what happens between `x + y` and the loop over the
# cells.

# %% [markdown] slide="notes"
# Take one question as homework. Overlap of two views is easy to state and
# hard in general.

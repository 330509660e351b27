# %% [markdown] slide="slide"
# # 02 · Memory: storage, strides, views
#
# Transpose a matrix of a billion elements, take every second column, or repeat
# one row a thousand times. None of these copies or moves an element.
#
# > **The question of this chapter:** how can many different tensors use the
# > same memory cells, and when is a copy needed?

# %% [markdown] slide="notes"
# 45 minutes: question 5, play 12, exercises 1, 2 and 5 live 12, edges 6,
# measure 5, traps 5. Exercise 4 (view) is the hard one: homework, or for the
# whole group at the whiteboard.

# %% keep=true slide="more" show="output"
import toytorch as torch
from course import check, exercise, hint, look, setup, use
from toytorch import viz

setup()
x = torch.arange(12).reshape(3, 4)
viz.storage(x=x, t=x.t())

# %% [markdown]
# The upper row shows twelve memory cells. The two tensors below it both use
# *these* cells. The small number in each square says which cell it shows.
#
# In `x`, the next square to the right is one cell further, and the next square
# down is four cells further. In `t` it is the other way round. These distances
# are the **strides**. Besides the shape, `x.t()` changed nothing else.

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
# The first two are *views*: tensors over the same cells. For the third, the
# elements are needed column by column, but the cells lie row by row. No single
# stride describes that order, so `reshape` made a copy, without a message. In
# this chapter you write the rule that decides between view and copy.

# %% [markdown] slide="slide"
# ## Play: four facts describe a tensor
#
# | fact | where | says |
# | --- | --- | --- |
# | storage | `x.untyped_storage()` | which bytes |
# | offset | `x.storage_offset()` | at which cell it starts |
# | shape | `x.shape` | how many steps there are |
# | stride | `x.stride()` | how long a step is, in cells |

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
# All six use the same 96 bytes (twelve int64 of 8 bytes). Only offset, shape
# and stride differ. These are a few integers, whatever the size of the tensor.
# So a view costs the same for twelve elements and for a billion.

# %% [markdown] slide="subslide"
# ## Every second column, and one corner

# %% [markdown] slide="notes"
# Follow the colours from the memory to the two views. Every second column has
# stride 2, the corner only a larger offset.

# %% keep=true slide="more" show="output"
viz.storage(x=x, seconds=x[:, ::2], corner=x[1:, 2:])

# %% [markdown]
# Cells that several tensors share have a colour of their own. A write to such
# a cell through one tensor changes the others as well.
#
# A storage has **one** version counter for all its views. Every in-place write
# through any of them increases it. Autograd reads the counter to notice that a
# tensor it had saved was overwritten (chapter 05).

# %%
x = torch.zeros(3, 4)
corner = x[1:, 2:]
print("versions:", x._version, corner._version)
corner += 7  # through the view
x[0, 0] = 1  # through the whole
print("versions:", x._version, corner._version)
print("a clone starts anew:", x.clone()._version)

# %% [markdown] slide="subslide"
# ### A stride of 0
#
# With stride 0 every step leads to the same cell.

# %% [markdown] slide="notes"
# Stride 0 means that a step goes nowhere. Ask how many bytes the result
# takes: those of three numbers.

# %% keep=true slide="more" show="output"
row = torch.tensor([10, 20, 30])
viz.storage(row=row, rows=row.expand(4, 3))

# %% [markdown]
# `rows` has twelve elements and no memory of its own. Broadcasting does the
# same: `table + row` stretches the row with a stride of 0 and adds.
#
# The elements may also overlap. Below, each window starts one cell after the
# previous one, so most cells are shown several times:

# %% [markdown] slide="subslide"
# ## Overlapping windows

# %% [markdown] slide="notes"
# Each element is in up to three windows, and none is copied. Chapter 10 builds
# a convolution on this.

# %% keep=true slide="more" show="output"
signal = torch.arange(8)
viz.storage(signal=signal, windows=signal.as_strided((6, 3), (1, 1)))

# %% [markdown]
# ### NumPy arrays over the same cells
#
# `torch.from_numpy(a)` is a view of NumPy's memory and `t.numpy()` one of
# toytorch's. Nothing is copied, so a write by one of them is visible to the
# other. (NumPy counts strides in bytes, torch in elements.)

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
# Six exercises of a few lines each, and a larger one at the end:
#
# 1. the **cell** behind an index
# 2. the strides of a **new** tensor
# 3. **contiguous** or not? (optional)
# 4. **another shape** over the same cells, if there is one
# 5. **a thousand rows** from one, without a copy (optional)
# 6. **all windows** of an image at once
# 7. a **layout**: the first file of your own package

# %% [markdown] slide="notes"
# Ask before exercise 2: what are the strides of shape (32, 3, 8, 8)? Some will
# begin at the left end, some at the right. Exercise 5 shows best what a stride
# of 0 is.

# %% exercise="memory.cell" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eight minutes, a good exercise to solve live. Let the class name the cell of
# one index before you write code.

# %% check="memory.cell" points=1

# %% [markdown]
# With this function you can read any tensor directly from its storage. Here a
# transposed slice is read cell by cell:

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
# whiteboard: merge the old dimensions into runs, then cut the runs.

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
# An edge is where a window is dark on one side and light on the other. The
# product of a window with a small table of weights, a *filter*, is large at an
# edge. There are four filters for four directions. The last two are the first
# two transposed, so they are views.

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
# `windows_of` is your function if its check was green. Inside the `with` block
# below, toytorch's own `expand` and `view` run on your functions too.

# %% [markdown] slide="subslide"
# ## The output of the four filters

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

# %% slide="more" folded=true
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
# This is one layer of a convolutional network, without a loop: windows by
# strides, a product, a sum.
#
# Does it help to recognize digits? We compare pixels and edges with the
# **nearest-neighbour** classifier: a new digit gets the label of the most
# similar one among the 1,437 known digits. **Predict:** does it make fewer
# mistakes on pixels or on edges?

# %% [markdown] slide="subslide"
# ### Pixels or edges?
#
# How many of 360 new digits get a wrong label from their nearest neighbour?

# %% [markdown] slide="notes"
# Predict which is better and by how much. The distances are the same code,
# only the features differ.

# %%
def mistakes(known, known_labels, new, new_labels):
    """How many new examples get a wrong label from their neighbour."""
    gaps = (known * known).sum(1) - 2 * new @ known.t()  # (new, known)
    guesses = known_labels[gaps.argmin(1)]
    return (guesses != new_labels).sum().item()


# %% slide="more"
known = {"pixels": images.view(-1, 64), "edges": found}
new = {"pixels": test_images.view(-1, 64), "edges": test_found}
for kind in known:
    print(kind, mistakes(known[kind], labels, new[kind], test_labels))

# %% [markdown]
# Six mistakes on pixels and three on edges. Is that a real difference? Six of
# 360 is a small number, and another choice of the 360 digits would give
# another one. So repeat the experiment: choose the 360 test digits at random,
# two hundred times. **Predict** the two averages.

# %% [markdown] slide="subslide"
# ## The same experiment, two hundred times

# %% [markdown] slide="notes"
# Ask for the two averages first. Then ask what one split would have shown, and
# how many splits make a claim believable.

# %% slide="more"
torch.manual_seed(0)
all_labels = torch.cat([labels, test_labels])
orders = [torch.randperm(1797) for _ in range(200)]
counted = {}
for kind in known:
    x, counts = torch.cat([known[kind], new[kind]]), []
    for order in orders:
        a, b = order[:1437], order[1437:]
        counts.append(mistakes(x[a], all_labels[a], x[b], all_labels[b]))
    counted[kind] = torch.tensor(counts, dtype=torch.float32)
    print(f"{kind:<7} from {min(counts)} to {max(counts)},",
          f"on average {counted[kind].mean():.2f}")
fewer = counted["pixels"] - counted["edges"]
print(f"edges make {fewer.mean():.2f} mistakes fewer,",
      f"give or take {fewer.std() / 200**0.5:.2f}")
print("splits in which edges were better:", int((fewer > 0).sum()),
      "and worse:", int((fewer < 0).sum()))

# %% [markdown]
# Edges are a little better: half a mistake in 360. The standard error of this
# average (the standard deviation divided by the root of 200) is a fifth of it, so
# it is hardly chance.
#
# But it is much smaller than the changes from split to split,
# and in a quarter of the splits pixels were better. A single split cannot show which
# method is better, and twenty can mislead. (On these digits, which are small and
# centred, pixels already work well. In chapter 10 a network learns its filters.)

# %% [markdown] slide="slide"
# ## Your own package: a layout
#
# Your package `mytorch` begins with `creation.py` of chapter 01: nested lists
# become a flat array. Its next file combines what this chapter taught: a class
# that holds shape, strides and offset, and makes views of such an array. You
# can use the functions you wrote above in its methods.
#
# When its check is green, your class is written to `work/mytorch/layout.py`.
# Your convolution in chapter 10 will use it.

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
# All windows of a picture, without a copy. `of` reads a flat memory with the
# layout:

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
# It does the same in one pass, from the right. (PyTorch has it in C++, in
# `computeStride`.)
#
# * `chunk` counts the elements of the current run.
# * `filled` counts how many of them the new dimensions have used up.
# * The `return None` in the middle is reached when a new dimension would
#   extend over two runs. Then no single stride describes it.

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
# Look at `big[0, :10]`: its ten elements keep four million bytes in memory. To
# store a small part of a large tensor, store a `clone()`.
#
# To *make* a view is cheap. To *read* it may be slow. Most processors fetch
# memory in *cache lines* of 64 bytes, which is sixteen floats. A row uses all
# sixteen floats of a line, a column only one of them.
#
# The cells follow from the strides, so the lines can be counted. **Predict**
# how many lines one row and one column of a table of 1024 × 1024 floats touch.

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
# A column needs sixteen times the memory traffic of a row. How much time does
# that cost? Here every row of a large table is summed by itself, then every
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
# Each of these cells raises an error on purpose. Read its last line.

# %% [markdown] slide="notes"
# Three errors, one cause: the layout cannot do what was asked, or two places
# share a cell. Ask who shares with whom.

# %% raises=true slide="more"
x = torch.arange(12).reshape(3, 4)
x.t().view(12)  # a view is not possible

# %% raises=true slide="more"
row = torch.zeros(3)
row.expand(4, 3).add_(1)  # four elements share each cell

# %% raises=true slide="more"
q = torch.ones(4)
q[1:] += q[:-1]  # input and output overlap

# %% raises=true
x[::-1]  # torch has no negative strides: use x.flip(0), a copy

# %% [markdown] slide="subslide"
# ## Traps that raise no error

# %% [markdown] slide="notes"
# No error here, only wrong numbers. `reshape` is a view when it can be, and a
# copy otherwise; the code does not say which.

# %% [markdown]
# A slice is a view, but a *list* of indices makes a copy. The two look alike:

# %% slide="more"
x = torch.zeros(4)
piece, chosen = x[0:2], x[[2, 3]]
piece += 1
chosen += 1
print(x)

# %% [markdown]
# `reshape` returns a view if that is possible, and a copy otherwise. If you
# need a view, call `view`, which raises an error where it would need a copy.
# If you need a copy, call `reshape(...).clone()`.

# %% slide="more"
x = torch.zeros(2, 2)
x.reshape(4)[0] = 1  # arrives in x
x.t().reshape(4)[3] = 1  # does not
print(x.tolist())

# %% [markdown]
# A tensor from `from_numpy` shares the memory of the array as long as it
# exists:

# %% slide="more"
buffer, samples = np.zeros(3), []
for step in range(3):
    buffer[:] = step  # filled anew each time
    samples.append(torch.from_numpy(buffer))
print([s.tolist() for s in samples])  # torch.tensor would have copied

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer.
#
# **1.** Predict shape, strides and the last answer.
#
# ```python
# x = torch.zeros(2, 3, 4)
# y = x.permute(2, 0, 1)
# print(y.shape, y.stride(), y.is_contiguous())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# torch.Size([4, 2, 3]) (1, 12, 4) False
# ```
#
# `x` has the strides (12, 4, 1). `permute` exchanges sizes and strides
# together and moves no element. A new tensor of shape (4, 2, 3) would have the
# strides (6, 3, 1), so `y` is not contiguous.
#
# </details>
#
# **2.** Which of these five share the memory of `x`?
#
# ```python
# x = torch.zeros(4, 6)
# five = [x.t(), x[1], x[:, [1]], x.reshape(24), x.t().reshape(24)]
# memory = x.untyped_storage().data_ptr()
# print([v.untyped_storage().data_ptr() == memory for v in five])
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [True, True, False, True, False]
# ```
#
# Transposing and indexing with an integer are views. Indexing with a list
# copies. The first `reshape` finds strides, because `x` is contiguous. The
# second one needs the elements column by column, for which no single stride
# exists, so it copies.
#
# </details>
#
# **3.** In which cell of the storage is `y[1, 0]`?
#
# ```python
# x = torch.arange(24).reshape(4, 6)
# y = x[1:, 2:]
# print(y.storage_offset(), y.stride(), y[1, 0].item())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 8 (6, 1) 14
# ```
#
# `y` begins at `x[1, 2]`, which is cell 1 · 6 + 2 · 1 = 8. Its strides are
# those of `x`. So `y[1, 0]` is in cell 8 + 1 · 6 + 0 · 1 = 14, and since `x`
# counts from 0, that cell holds 14.
#
# </details>
#
# **4.** One element is written. How many elements of `rows` change?
#
# ```python
# row = torch.zeros(3)
# rows = row.expand(2, 3)
# rows[0, 0] = 5
# print(rows)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor([[5., 0., 0.],
#         [5., 0., 0.]])
# ```
#
# Two. `expand` gave the first dimension a stride of 0, so both rows are the
# same three cells. A write to one of them is visible in the other, and in
# `row`. (A write to *all* elements, such as `rows.add_(1)`, raises an error.)
#
# </details>
#
# **5.** Predict the three versions.
#
# ```python
# x = torch.zeros(4)
# v = x[:2]
# v += 1
# x.add_(1)
# y = x + 1
# print(x._version, v._version, y._version)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 2 2 0
# ```
#
# The count belongs to the memory. Both in-place writes go to the memory of
# `x`, one of them through the view, so `x` and `v` show the count 2. `x + 1`
# makes a new tensor with a memory of its own, which was not written to since.
#
# </details>
#
# **6.** One of the two calls of `view` raises an error. Which one, and why?
#
# ```python
# x = torch.zeros(2, 3, 4)[:, :2]
# print(x.stride(), x.view(2, 8).stride())
# x.view(4, 4)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# (12, 4, 1) (12, 1)
# RuntimeError
# ```
#
# `x` has the shape (2, 2, 4), with a gap of four cells after each block of
# eight. The last two dimensions are one run, because 4 = 4 · 1, so
# `view(2, 8)` works. `view(4, 4)` would join the first two dimensions, but 12
# is not 2 · 4: the second block does not follow the first one directly.
#
# </details>
#
# **7.** A program keeps `row` and deletes `big`. How many bytes does each
# version keep in memory?
#
# ```python
# big = torch.zeros(1000, 1000)
# for row in (big[0], big[0].clone()):
#     print(row.untyped_storage().nbytes())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 4000000
# 4000
# ```
#
# `big[0]` is a view and keeps the whole storage in memory, although it shows
# only 1,000 elements. The clone has a storage of its own, with just these
# elements.
#
# </details>
#
# **8.** How many of the nine elements of `windows` become 100, and where are
# they?
#
# ```python
# x = torch.arange(5)
# windows = x.as_strided((3, 3), (1, 1))
# x[2] = 100
# print((windows == 100).sum().item())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 3
# ```
#
# Three. Both strides are 1, so `windows[i, j]` is cell `i + j`. Cell 2 is
# shown at (0, 2), (1, 1) and (2, 0). No element was copied.
#
# </details>
#
# **9.** Both rows and columns of a large contiguous float32 table are summed.
# Why do the columns take longer, and when does `t().contiguous()` help?
#
# <details><summary>Answer</summary>
#
# Memory is fetched in lines of 64 bytes, on most processors. The elements of a
# row lie next to each other, so all sixteen floats of a line are used. In a
# column, each element is in another line. `t().contiguous()` makes a copy in
# which the columns are rows. The copy has to read and write everything once,
# so it pays if the columns are read several times.
#
# </details>
#
# **10.** A colleague reports: on 360 test digits, method A makes 6 mistakes
# and B makes 3, so B is twice as good. What do you ask for?
#
# <details><summary>Answer</summary>
#
# The same comparison on other test digits. Six and three are small counts, and
# they change by about that much from one choice of test digits to the next. In
# this chapter, the averages over two hundred random splits differed by half a
# mistake, five times the standard error. Only a difference that is large compared
# with its standard error says something about the methods.
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * Different shapes and strides can describe the *same* cells in the same
#   order. How would you bring them to a normal form?
# * When do two views of one storage overlap? In general this is hard to
#   decide: with enough dimensions it is as hard as the knapsack problem.
# * NumPy allows negative strides and torch does not. What becomes simpler?
# * Write `tensor.unfold(dim, size, step)` with `as_strided`. What are the
#   strides for a step of 2?
#
# **Next:** chapter 03 follows `x + y` to the loop over the cells.

# %% [markdown] slide="notes"
# Take one question as homework. Overlap of two views is easy to state and
# hard in general.

# %% [markdown] slide="slide"
# # 09 · Data: from a table to shuffled batches
#
# 342 penguins were measured and written into a file, one species after the
# other. A network that reads the file in this order sees only Adelies first, then
# only Gentoos, then only Chinstraps. While it learns the last species, it forgets
# the others.
#
# > **The question of this chapter:** what decides which examples the network sees
# > next, and how can they be fetched before they are needed?

# %% [markdown] slide="notes"
# 45 minutes: question 5, play 10, exercises 1 and 3 live 12, the workers'
# picture 6, plug in 5, measure 4, traps 3. Exercise 5 (fetch ahead) is the
# hard one: step through the picture before anybody starts.

# %% keep=true slide="more" show="output"
import numpy as np

import toytorch as torch
from course import check, hint, look, setup, use
from toytorch import nn, viz
from toytorch.utils.data import DataLoader, TensorDataset, random_split
from toytorch.vision import datasets

setup()
features, species = datasets.penguins()
fixed = torch.Generator().manual_seed(9)
train, test = random_split(range(342), [0.8, 0.2], generator=fixed)
rows = sorted(train.indices)  # 274 of them, in the file's order

penguins = TensorDataset(features[rows], species[rows])
viz.batches(
    species[rows], datasets.PENGUIN_SPECIES,
    as_in_the_file=DataLoader(penguins, batch_size=16),
    shuffled=DataLoader(penguins, batch_size=16, shuffle=True,
                        generator=fixed))

# %% [markdown]
# Each row is a batch of 16 penguins, and each square is one penguin. On the left,
# a batch holds one species, or two where one species ends and the next begins. On
# the right, each batch is a small sample of all species.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# The same network is trained twice, with the same initial weights, the same 274
# penguins and the same number of steps. Only the order differs. Each training has
# two epochs. How many of the 68 penguins in the test set will it recognise: with
# the left order, and with the right one?

# %% [markdown] slide="notes"
# Vote on both numbers. Sorted by species, the last batches decide what the
# network remembers.

# %%
mean, std = features[rows].mean(0), features[rows].std(0)
standard = (features - mean) / std


def trained(loader, epochs=2, rate=0.3):
    """A small network that has seen the loader's batches."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    for _ in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
    return model


# %% slide="more" varies=true
penguins = TensorDataset(standard[rows], species[rows])
for shuffle in (False, True):
    loader = DataLoader(penguins, batch_size=16, shuffle=shuffle)
    found = trained(loader)(standard[test.indices]).argmax(1)
    right = (found == species[test.indices]).sum().item()
    says = found.bincount(minlength=3).tolist()
    print(f"{shuffle=}: {right} of 68 right; it says",
          dict(zip(datasets.PENGUIN_SPECIES, says)))

# %% [markdown]
# In the left order the last batches of each epoch hold only Chinstraps, and the
# network learns to answer *Chinstrap* too often. A step lowers the loss of one
# batch. It lowers the loss of all data as well only if the batch is a
# representative sample. With smaller steps and more epochs the effect is smaller.
# Shuffling avoids it.

# %% [markdown] slide="slide"
# ## Play: four parts, one job each
#
# | part | it knows | you may bring |
# | --- | --- | --- |
# | `Dataset` | what example `i` is | `__getitem__`, `__len__` |
# | `Sampler` | which example comes next | `__iter__`, `__len__` |
# | `collate_fn` | how examples become a batch | a function |
# | `DataLoader` | when it is done, and by whom | arguments |
#
# The `DataLoader` combines the other three. Each of them can be replaced without
# changing the rest.

# %% [markdown] slide="notes"
# Four parts with one job each. Ask which one to replace for each of three
# wishes from the class.

# %% slide="more"
loader = DataLoader(penguins, batch_size=16, shuffle=True)
inputs, targets = next(iter(loader))
print("one example:", len(penguins[0]), "things, the first of shape",
      tuple(penguins[0][0].shape))
print("one batch:  ", tuple(inputs.shape), tuple(targets.shape))
print("an epoch:   ", len(loader), "batches, the last one with",
      len(penguins) % 16, "penguins")

# %% [markdown]
# Any object with `__getitem__` and `__len__` can be a dataset, also a plain list.
# In the next cell each example is a dictionary. `collate` keeps the structure: a
# list of dictionaries becomes a dictionary of tensors.

# %% [markdown] slide="subslide"
# ## A list of dictionaries becomes a dictionary

# %% [markdown] slide="notes"
# Collation keeps the structure and stacks what is at its leaves. Texts stay a
# list.

# %% slide="more"
birds = [{"name": "Ada", "size": (39.1, 18.7), "year": 2007},
         {"name": "Bo", "size": (46.5, 17.9), "year": 2008},
         {"name": "Cy", "size": (47.3, 14.1), "year": 2009}]
for batch in DataLoader(birds, batch_size=3):
    for key, value in batch.items():
        print(f"{key}: {value}")

# %% [markdown]
# Names stay strings, years become one integer tensor, and the sizes become one
# tensor for each *column*. Note the `float64`: a Python float has 64 bits, and
# `default_collate` keeps all of them. A network of `float32` weights raises an
# error for such inputs, so let your dataset return `float32` tensors.
#
# ### Transforms: each example a little different every time
#
# `datasets.Digits` gives images as bytes. A `transform` runs each time an
# example is asked for, so it may be random. Here it turns, shifts and scales each
# digit a little, differently in every epoch.

# %% [markdown] slide="subslide"
# ## Transforms run when an example is asked for

# %% [markdown] slide="notes"
# The same index gives three different pictures. A transform runs each time
# that an example is asked for.

# %% slide="more"
from toytorch.vision import transforms

change = transforms.Compose([
    transforms.ToTensor(),  # bytes 0 to 255 become floats 0 to 1
    transforms.RandomAffine(
        15, translate=(0.1, 0.1), scale=(0.85, 1.15),
        interpolation=transforms.InterpolationMode.BILINEAR)])
digits = datasets.Digits(train=True, transform=change)

# %%
import matplotlib.pyplot as plt

# %% slide="more" folded=true
torch.manual_seed(1)
figure, grid = plt.subplots(3, 10, figsize=(8, 2.6))
for axes, n in zip(grid.T, range(10)):
    for ax in axes:
        image, label = digits[n]  # the same n, three times
        ax.imshow(image[0].numpy(), cmap="Greys", vmin=0, vmax=1)
        ax.axis("off")
figure.tight_layout()
plt.show()

# %% [markdown]
# Each column shows *one* example that was asked for three times.
#
# ### Streams
#
# Some data have no indices and no known length: lines of a log, messages, more
# text than fits on a disk. An `IterableDataset` for them has only `__iter__`. A
# sampler cannot shuffle it, because a sampler needs indices. The loader makes
# batches of the examples in the order in which they come.

# %%
from course.data import Stream

for batch in DataLoader(Stream("stream"), batch_size=4):
    print(batch)

# %% [markdown] slide="slide"
# ## Build
#
# 1. a **dataset** that uses no information from the test data
# 2. a **sampler**: every example once, in random order
# 3. **batches**, and the last one
# 4. **collate**, with padding
# 5. **fetching ahead** with several workers, in order
# 6. a **loader** for your own package

# %% [markdown] slide="notes"
# Live: exercise 1 with the question "whose mean?", exercise 3 with the
# question "what happens to the last two?". Exercise 5 after the picture.

# %% exercise="data.standardised" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twelve minutes. Mean and deviation come from the training data only. Ask
# what would leak otherwise.

# %% check="data.standardised" points=2

# %% exercise="data.shuffled" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Ten minutes. A rotation is not a permutation at random: all orders must be
# equally likely.

# %% check="data.shuffled" points=2

# %% exercise="data.batches" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eight minutes. The order may change in each epoch, so it must be asked for
# anew.

# %% check="data.batches" points=2

# %% [markdown]
# The picture shows the batches that your sampler and your `Batches` make. (As long
# as an exercise is open, `use` gives toytorch's answer.)

# %%
sampler = use("data.shuffled")(len(rows), fixed)
viz.batches(species[rows], datasets.PENGUIN_SPECIES,
            one_epoch=use("data.batches")(sampler, 16),
            the_next=use("data.batches")(sampler, 16, drop_last=True))

# %% exercise="data.collate" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifteen minutes. Write the cases in the order of the table and call the
# function itself for the inner ones.

# %% check="data.collate" points=3

# %% [markdown] slide="slide"
# ### Workers fetch while you compute
#
# With `num_workers=2` two processes fetch batches. They write them into
# **shared memory**, so only a short message has to be sent. The second bar of
# each worker shows its slots in this memory.

# %% [markdown] slide="notes"
# Step to the moment when a finished batch waits for an earlier one. The slots
# are the shared memory.

# %% keep=true slide="more" show="output"
viz.loader_steps([4, 1, 1, 2, 2, 1, 4, 1], workers=2, ahead=2)

# %% [markdown]
# Press *Next*. Batch 0 takes long. Batches 1 and 3 are ready before it and
# **wait in their slots**, because your loop should get the same order every time.
#
# Worker 1 then has nothing to do. It was asked for two batches, and it gets a new
# job only when one of these has been used. That limits the memory that is needed.
# When a batch is no longer in use, its slot is used again.
#
# The times in this picture are made up. The schedule is real: it comes from the
# framework's own function. You will write that function next.
#
# First try a pool of such workers. You tell it how long each batch takes. `ask`
# gives a worker a job and returns at once. `hear` waits until some worker is done.
# **Predict** in which order the three batches arrive, and when.

# %%
from toytorch.viz.lessons.loader_steps import Clocked

pool = Clocked([4, 1, 1], workers=2)  # batch 0 takes long
pool.ask(0, 0, 0)  # worker 0: order 0, index 0
pool.ask(1, 1, 1)  # worker 1: order 1, index 1
pool.ask(1, 2, 2)  # worker 1 again
for _ in range(3):
    worker, order, batch = pool.hear()
    print(f"time {pool.now}: batch {batch}, number {order},",
          f"from worker {worker}")

# %% exercise="data.in_order" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty minutes. Play with the pool first: ask, then hear. The next job is
# asked for before the batch is handed on.

# %% check="data.in_order" points=4

# %% [markdown]
# The next picture shows your schedule with three workers and a slow training
# step:

# %%
viz.loader_steps([3, 3, 3, 3, 3, 3], workers=3, ahead=1, step=2,
                 deliver=use("data.in_order"))

# %% [markdown] slide="slide"
# ## Plug in: penguins, on four of your answers
#
# Your dataset, sampler, batches and collate bring the penguins from the table to
# the network.

# %% [markdown] slide="notes"
# Everything between the table and the network is from the exercises.
# Standardise the test data like the training data.

# %% slide="more"
Table = use("data.standardised")
for_training = Table(features[rows], species[rows])
for_testing = Table(features[test.indices], species[test.indices],
                    like=for_training)

fixed = torch.Generator().manual_seed(1)
sampler = use("data.shuffled")(len(for_training), fixed)
loader = DataLoader(for_training,
                    batch_sampler=use("data.batches")(sampler, 16),
                    collate_fn=use("data.collate"))

model = trained(loader, epochs=20, rate=0.05)
inputs, targets = next(iter(DataLoader(for_testing, batch_size=68)))
found = model(inputs).argmax(1)
print("more than 9 of 10 unseen penguins right:",
      (found == targets).float().mean().item() > 0.9)

# %% [markdown] slide="subslide"
# ## Two of the four columns, and the answers

# %% [markdown] slide="notes"
# Two of four columns. Where the colours mix, the other two columns decide.

# %% slide="more" folded=true varies=true
bill, flipper = features[test.indices][:, [0, 2]].numpy().T
figure, axes = plt.subplots(figsize=(7, 3))
hues = ["#2a6fb0", "#b97d10", "#12805f"]
for kind, name in enumerate(datasets.PENGUIN_SPECIES):
    these = (targets == kind).numpy()
    axes.scatter(bill[these], flipper[these], 26, hues[kind], label=name)
wrong = (found != targets).numpy()
axes.scatter(bill[wrong], flipper[wrong], s=120, facecolors="none",
             edgecolors="#1c2430", label="taken for another")
axes.set_xlabel("bill length (mm)")
axes.set_ylabel("flipper length (mm)")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
figure.tight_layout()
plt.show()

# %% [markdown]
# Now your schedule runs with real processes. `DataLoader.deliver` is the injection
# point: a subclass says how batches are asked for. Two workers fetch the digits.
# The result must be the same batches, in the same order, as from one process.

# %% [markdown] slide="subslide"
# ## Two real processes, on your schedule

# %% [markdown] slide="notes"
# Real processes on the schedule of the exercise. The batches must be the same
# as without workers.

# %% slide="more"
class Scheduled(DataLoader):
    """A DataLoader on the schedule of the exercise."""

    def deliver(self, pool, indices):
        return use("data.in_order")(pool, indices, self.prefetch_factor)


# %% slide="more"
still = datasets.Digits(transform=transforms.ToTensor())
plain = DataLoader(still, batch_size=64)
ahead = Scheduled(still, batch_size=64, num_workers=2)
same = [torch.equal(a, b) and torch.equal(m, n)
        for (a, m), (b, n) in zip(plain, ahead)]
print(len(same), "batches, all the same:", all(same))

# %%
def read(loader, epochs):
    """A small network that learned digits; its share of right answers."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
    images, labels = datasets.digits(train=False)
    return (model(images).argmax(1) == labels).float().mean().item()


# %% slide="more"
moving = Scheduled(digits, batch_size=16, shuffle=True, num_workers=2,
                   persistent_workers=True)
print("more than 90 % of unseen digits right:", read(moving, 2) > 0.9)

# %% [markdown]
# `persistent_workers=True` keeps the processes from one epoch to the next.
# Without it new processes are started in each epoch. The measurement below shows
# what a start costs.

# %% [markdown] slide="slide"
# ## Your own package: a loader
#
# Your package gets one class for order, batches and collation. A run that was
# interrupted in the middle of an epoch can go on with the next batch. The class has
# no workers. Chapter 16 adds processes.

# %% [markdown] slide="notes"
# One class for the package. It is short because the chapter has built its
# parts.

# %% exercise="data.package" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Forty-five minutes, homework. Length, order, batches, collation and state are
# checked one after the other.

# %% check="data.package" points=4

# %% [markdown] slide="slide"
# ## Look inside
#
# This is how toytorch makes batches:

# %% [markdown] slide="notes"
# Compare with the sampler of batches of the exercise. The remainder is
# handled at the end.

# %% slide="more" show="output"
from toytorch.utils.data import BatchSampler
from toytorch.utils.data.pool import batches as in_order_of_pool

look(BatchSampler.__iter__)

# %%
look(BatchSampler, Batches)  # all of it, beside yours

# %% [markdown]
# And this is how it delivers them in order. Find the four steps of your function.
# There are three additions:
#
# * A worker whose stream has ended (`End`) gets no more jobs.
# * An error in a worker (`Failure`) is raised when your loop asks for that batch,
#   and not earlier.
# * `del value` gives up the batch at once, so that its slot can be used again
#   while your loop computes.

# %%
look(in_order_of_pool, in_order)

# %% [markdown]
# The function that runs in a worker is short. It takes a job, makes the batch,
# writes it into a slot, and sends a message:

# %%
from toytorch.utils.data import worker

look(worker.work)

# %% [markdown] slide="slide"
# ## Measure: what do workers buy?
#
# There are 64 examples in batches of 8. Each example takes 4 ms, as from a slow
# disk, so one process needs about a quarter of a second for an epoch. **Predict**
# the time of an epoch with 1, 2 and 4 workers. Then predict it with 1 and 2
# workers for data that are already in memory.

# %% [markdown] slide="notes"
# Predict all times. Workers hide waiting; they do not help where the data
# already lie in memory.

# %%
import time

from course.data import Slow


def milliseconds(dataset, size, workers, epochs=6):
    """The time of the first epoch, and a sorted list of the later ones."""
    loader = DataLoader(dataset, batch_size=size, num_workers=workers,
                        persistent_workers=workers > 0)
    times = []
    for _ in range(epochs):
        begin = time.perf_counter()
        for _ in loader:
            pass
        times.append(1e3 * (time.perf_counter() - begin))
    return times[0], sorted(times[1:])


# %% slide="more" folded=true varies=true
slow = Slow(TensorDataset(torch.arange(64)), 0.004)
quick = TensorDataset(*datasets.digits())
figure, both = plt.subplots(1, 2, figsize=(8.4, 3))
for axes, data, size, counts, name in (
    (both[0], slow, 8, [0, 1, 2, 4], "from a slow disk"),
    (both[1], quick, 64, [0, 1, 2], "in memory"),
):
    first, later = zip(*(milliseconds(data, size, n) for n in counts))
    middle = [times[2] for times in later]  # the median of five
    reach = [[m - t[0] for m, t in zip(middle, later)],
             [t[-1] - m for m, t in zip(middle, later)]]
    for shift, times, words, spread in (
        (-0.2, first, "first epoch", None),
        (0.2, middle, "later epochs", reach),
    ):
        bars = axes.bar([i + shift for i in range(len(counts))], times,
                        0.38, label=words, yerr=spread, capsize=3)
        axes.bar_label(bars, fmt="%.0f", fontsize=8)
    axes.set_xticks(range(len(counts)), counts)
    axes.set_title(name, pad=12)
    axes.set_xlabel("workers")
    axes.set_ylabel("milliseconds")
    axes.grid(axis="x", visible=False)
axes.legend()
figure.tight_layout()
plt.show()

# %% [markdown]
# The right bar of each pair is the median of five epochs. The thin line goes from
# the fastest to the slowest of the five.
#
# **On the left**, several workers wait for the disk at the same time. With two
# workers a later epoch takes about half as long, with four about a quarter. One
# worker alone is no faster than no worker. It would help if your loop computed
# something, because the worker fetches *while* you compute. This loop computes
# nothing.
#
# **On the right** there is almost nothing to wait for. Compare the thin lines
# before you compare the bars: where the lines overlap, the difference between the
# bars says little.
#
# Workers do not help here. On one machine, three repetitions of this measurement
# gave later epochs of 12 to 22 ms without workers, and of 18 to 58 ms with one or
# two. On another machine the medians were 26, 25 and 29 ms. The reason is that
# sending a batch to your process takes about as long as making it.
#
# **The first epoch** with workers is slower on both sides, because the processes
# have to be started.
#
# Measure before you add workers. If you train on a GPU, try `pin_memory=True` as
# well: it puts batches where the GPU can read them directly (chapter 12). Without
# a GPU it changes nothing.

# %% [markdown] slide="slide"
# ## Traps
#
# Run on purpose.

# %% [markdown] slide="notes"
# Two errors on purpose. In the second, two arguments would decide the order.

# %% raises=true slide="more"
uneven = [torch.zeros(2), torch.zeros(3)]
next(iter(DataLoader(uneven, batch_size=2)))  # your collate pads

# %% raises=true slide="more"
DataLoader(penguins, shuffle=True, sampler=range(10))  # who decides?

# %% [markdown]
# A missing value in a table is `None`, which cannot be an element of a tensor. The
# first four rows of the file contain one:

# %% raises=true
next(iter(DataLoader(datasets.penguin_table(), batch_size=4)))

# %% [markdown] slide="subslide"
# ## Traps that say nothing
#
# A stream is read with two workers, and each example comes twice:

# %% [markdown] slide="notes"
# Each worker has the whole stream. Ask how a worker can know which part is
# its own: `get_worker_info`.

# %% slide="more"
stream = Stream(range(6))
for batch in DataLoader(stream, batch_size=2, num_workers=2):
    print(batch.tolist(), end=" ")

# %% [markdown]
# Each worker has its own copy of the whole dataset and goes through all of it. So
# each one has to skip the examples of the others. In a worker,
# `get_worker_info()` gives its number and the number of workers. Elsewhere it
# gives `None`. The next cell does in one process what two workers would do:

# %%
import itertools

from toytorch.utils.data import WorkerInfo


def share(stream, info):
    """What one worker yields of a stream that every worker sees."""
    first, step = (0, 1) if info is None else (info.id, info.num_workers)
    yield from itertools.islice(stream, first, None, step)


for number in range(2):
    info = WorkerInfo(number, 2, seed=0, dataset=stream)
    print("worker", number, list(share(stream, info)))
print("no workers", list(share(stream, None)))

# %% [markdown]
# **Questions.** What would go wrong if each of *n* workers took one block of
# the stream, the first *n*-th, the second, and so on? And what is wrong with
# `list(stream)[first::step]`, which gives the same examples here?
#
# <details><summary>Answers</summary>
#
# To cut the stream into blocks you need its length, which is not known. If the
# length is not a multiple of *n*, the blocks do not fit either. Taking turns needs
# no length.
#
# `list(stream)` reads the whole stream before it gives the first example. Some
# streams have no end, and many do not fit into memory. `islice` takes one example
# at a time.
#
# </details>

# %% [markdown] slide="subslide"
# ### The same random numbers in every worker
#
# A dataset that *keeps* a random generator of its own is copied into each
# worker together with the generator. Then all workers draw the same numbers.
# `pickle` makes the same kind of copies, so you can see it without processes:

# %% [markdown] slide="notes"
# A copied generator gives the same numbers in each worker. The remedy is a
# seed for each worker.

# %% slide="more"
import pickle

import numpy as np


class Noisy:
    def __init__(self):
        self.random = np.random.default_rng(0)  # made once, then copied

    def __getitem__(self, i):
        return self.random.integers(100)


parent = Noisy()
copies = [pickle.loads(pickle.dumps(parent)) for _ in range(3)]
print("in three workers:", [int(copy[0]) for copy in copies])

# %% [markdown]
# The loader seeds the *global* generators of each worker: toytorch's, NumPy's and
# Python's. It uses two numbers, a base seed and the worker's own number. The base
# seed is drawn from the loader's `generator` when the workers start. So draw from
# the global generators, as the transforms do, or make your generator in
# `worker_init_fn`.
#
# ### Where does a worker get your class from?
#
# On Linux, up to Python 3.13, a worker is *forked*: it begins as a copy of your
# process and has everything that you defined. On macOS and Windows (and on Linux
# from Python 3.14) it begins as a new Python process. It has to **import** the
# dataset, the `collate_fn` and the `worker_init_fn`. Only their names are sent:

# %%
print(pickle.dumps(Noisy, protocol=0))

# %% [markdown]
# The bytes hold the name of a module and the name of the class, and no code.
# `__main__` is your notebook here, and in the worker it is another module. So for
# workers on every system:
#
# * put the dataset and its functions into a file and import them (as `Slow`
#   and `Stream` come from `course.data`);
# * use no `lambda` in them;
# * in a script, start the training under `if __name__ == "__main__":`.
#

# %% [markdown] slide="subslide"
# ### A mean of means
#
# A batch of 16 and one of 2: what is the mean of all 18 losses?

# %% [markdown] slide="notes"
# The small batch counts as much as the large one. Weight each mean by its
# number of examples.

# %% slide="more"
losses = torch.cat([torch.full((16,), 1.0), torch.full((2,), 10.0)])
means = [batch.mean() for batch in losses.split(16)]
print("mean of the batches' means:", torch.stack(means).mean().item())
print("mean of the examples:      ", losses.mean().item())

# %% [markdown]
# In the first mean, the two examples of the last batch count as much as the other
# sixteen together. For the mean over all examples, add up
# `loss.item() * len(batch)` and divide by the number of examples.

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** Ten examples in batches of four. How long are the batches, with and without
# `drop_last`?
#
# ```python
# DataLoader = torch.utils.data.DataLoader
# for drop in (False, True):
#     loader = DataLoader(range(10), batch_size=4, drop_last=drop)
#     print([len(batch) for batch in loader], len(loader))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [4, 4, 2] 3
# [4, 4] 2
# ```
#
# Two full batches are left after dropping, and `len` follows that. With
# `drop_last` and a shuffled order, other examples are left out in each epoch. So
# none of them is lost for the whole training.
#
# </details>
#
# **2.** The test data are standardised twice, once with the training data's mean and
# deviation and once with their own. What does the second line hide?
#
# ```python
# train = torch.tensor([0.0, 10.0, 20.0])
# test = torch.tensor([20.0, 30.0, 40.0])
# print(((test - train.mean()) / train.std()).tolist())
# print(((test - test.mean()) / test.std()).tolist())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [1.0, 2.0, 3.0]
# [-1.0, 0.0, 1.0]
# ```
#
# The test values are larger than nearly all training values. The first line shows
# that, and the second line removes it. In the second line 20 also becomes -1,
# while the network has learned that 20 is 1. A single example could not be
# standardised by itself at all.
#
# </details>
#
# **3.** Each example is a number and a string. What is the batch?
#
# ```python
# data = [(1, "a"), (2, "b")]
# numbers, names = next(iter(torch.utils.data.DataLoader(data, batch_size=2)))
# print(numbers, list(names))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor([1, 2]) ['a', 'b']
# ```
#
# The batch has one entry for each *field* of an example, and not one for each
# example. Numbers become a tensor. Strings cannot be stored in a tensor, so they
# stay a list or a tuple.
#
# </details>
#
# **4.** One loader, two epochs. Are the orders the same? Are the examples the same?
#
# ```python
# generator = torch.Generator().manual_seed(0)
# loader = torch.utils.data.DataLoader(
#     range(100), batch_size=100, shuffle=True, generator=generator)
# a, b = next(iter(loader)), next(iter(loader))
# print(torch.equal(a, b), torch.equal(a.sort().values, b.sort().values))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# False True
# ```
#
# Every `iter(loader)` begins an epoch and draws a new permutation. A permutation
# contains each example exactly once. The generator's seed makes the sequence of
# permutations repeatable, but the next epoch continues where the last one ended.
#
# </details>
#
# **5.** A transform turns every image by a random angle. Should the validation data
# get the same transform?
#
# <details><summary>Answer</summary>
#
# Usually they should not. In training the random angles give the network more
# variety. In validation they would make the result depend on chance, so that two
# epochs or two networks are harder to compare. Transforms without randomness,
# such as dividing by 255, must be the same in both.
#
# </details>
#
# **6.** An epoch has 8 batches. Fetching one takes 100 ms, and so does a training
# step. How long does an epoch take with 0, 1, 2 and 4 workers, without counting
# their start?
#
# <details><summary>Answer</summary>
#
# Without workers, 8 · (100 + 100) ms = 1.6 s. One worker fetches while you
# compute: only the first batch has to be waited for, and the rest overlaps, which
# makes about 0.9 s. With 2 or 4 workers it is still about 0.9 s, because the eight
# training steps alone take 0.8 s. More workers help only while fetching is the
# slower part.
#
# </details>
#
# **7.** Three workers have `ahead=2`, and the very first batch takes an hour. How
# many batches are fetched in that hour, and why not more?
#
# <details><summary>Answer</summary>
#
# Four. Each worker got two jobs at the beginning. The first worker is busy for the
# hour, and its second job waits. The other two fetch two batches each, and get a
# new job only when one of these is yielded. All of them wait for the first batch,
# which limits the memory that is needed.
#
# </details>
#
# **8.** Nine examples go through a batch norm in training. Why does the loop end
# with an error?
#
# ```python
# norm = torch.nn.BatchNorm1d(2)
# data = torch.arange(18.0).reshape(9, 2)
# for x in torch.utils.data.DataLoader(data, batch_size=4):
#     print(tuple(norm(x).shape))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# (4, 2)
# (4, 2)
# ValueError
# ```
#
# The last batch has one example. Its mean is the example itself, and there is no
# variance to divide by, so batch norm refuses it. `drop_last=True` leaves it out,
# and so does a batch size of 3.
#
# </details>
#
# **9.** *Chapter 07.* A dropout is appended after `eval()`. In which mode is each
# part?
#
# ```python
# net = torch.nn.Sequential(torch.nn.Linear(2, 2)).eval()
# net.append(torch.nn.Dropout(0.5))
# print([part.training for part in net])
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [False, True]
# ```
#
# `eval()` sets an attribute of every module that is in the tree at that moment. A
# module that is added later comes with its own `training`, which is `True` at
# first. So call `eval()` after the network is complete.
#
# </details>
#
# **10.** *Chapter 07.* Which names are in the state?
#
# ```python
# layer = torch.nn.Linear(2, 2)
# layer.register_buffer("mean", torch.zeros(2))
# layer.note = torch.ones(4)
# layer.extra = torch.nn.Parameter(torch.zeros(1))
# print(list(layer.state_dict()))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# ['weight', 'bias', 'extra', 'mean']
# ```
#
# The state holds parameters first, in the order of their assignments, then
# buffers. `note` is a plain tensor, so it is a private attribute and is neither
# saved nor moved to another device. If it has to be in the file without being
# trained, it must be a buffer.
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * There are half as many Chinstraps as Adelies. Write a sampler that shows
#   each species equally often. What does an *epoch* mean then? (Compare
#   `WeightedRandomSampler`.)
# * Padding costs: every batch is as long as its longest example. Which sampler
#   makes the padding small, and what does it do to the randomness?
# * A training run is interrupted in the middle of an epoch. What has to be
#   saved so that it goes on with the very batch that was next? (Chapter 10.)
# * Sixteen processes train together, each on its own part of the data. Who
#   makes sure that no example is seen twice? (Chapter 16.)
#
# **Next:** chapter 10 trains for real: learning curves, checkpoints, early
# stopping, and a network that somebody else has trained before.

# %% [markdown] slide="notes"
# The third question is what a loader's state is. Ask which numbers have to be
# saved.

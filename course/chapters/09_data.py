# %% [markdown] slide="slide"
# # 09 · Data: from a table to shuffled batches
#
# 342 penguins were measured and written into a file, one species after the
# other. A network that reads it in this order meets nothing but Adelies, then
# nothing but Gentoos, then nothing but Chinstraps, and forgets.
#
# > **The question of this chapter:** who decides what the network sees next,
# > and how can it be there before anybody asks?

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
# Each row is a batch of 16 penguins, each square one of them. On the left, a
# batch holds one species, or two where the file changes over. On the right,
# each batch is a small sample of everything.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# The same network is trained twice, with the same first weights, the same 274
# penguins and the same number of steps. Only the order differs. Each time it
# sees everything twice. How many of the 68 penguins that we kept back will it
# recognise: with the left order, and with the right one?

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
# In the left order the network ends each epoch with nothing but Chinstraps,
# and has begun to say *Chinstrap* to everything. A step goes downhill for the
# batch at hand; only if the batch is a fair sample is that also downhill for
# the whole. Small steps and many epochs hide the damage. Shuffling avoids it.

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
# The `DataLoader` puts them together. Each can be replaced alone.

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
# Any object with `__getitem__` and `__len__` will do as a dataset, a plain
# list included. Here each example is a dictionary, and `collate` keeps the
# structure: a list of dictionaries becomes a dictionary of tensors.

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
# Names stay strings, years become one integer tensor, and the sizes one tensor
# for each *column*. Note the `float64`: a Python float has 64 bits, and
# `default_collate` does not want to lose any. A network of `float32` weights
# will refuse them, so make your dataset give `float32` tensors.
#
# ### Transforms: one picture, never the same twice
#
# `datasets.Digits` gives images as bytes. A `transform` runs each time an
# example is asked for, so it may be random: the network sees each digit a
# little turned, shifted and scaled, and every epoch in another way.

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

# %% slide="more" show="output"
import matplotlib.pyplot as plt

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
# Each column is *one* example, asked for three times.
#
# ### Streams
#
# Sometimes there are no numbers to ask for: lines of a log, messages, more
# text than fits on a disk. An `IterableDataset` has only `__iter__`. No
# sampler can shuffle it, because nobody knows what is in it; you batch what
# comes.

# %%
from course.data import Stream

for batch in DataLoader(Stream("stream"), batch_size=4):
    print(batch)

# %% [markdown] slide="slide"
# ## Build
#
# 1. a **dataset** that does not peek at the test data
# 2. a **sampler**: every example once, in random order
# 3. **batches**, and the last one
# 4. **collate**, with padding
# 5. **fetching ahead** with several workers, in order

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
# Your sampler and your batches, in a picture like the first one. (As long as
# an exercise is open, `use` gives toytorch's answer.)

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
# ## Workers fetch while you compute
#
# With `num_workers=2` two processes fetch batches. They write them into
# **shared memory**, so that only a short message has to travel. The second
# bar of each worker shows the slots there.

# %% [markdown] slide="notes"
# Step to the moment when a finished batch waits for an earlier one. The slots
# are the shared memory.

# %% keep=true slide="more" show="output"
viz.loader_steps([4, 1, 1, 2, 2, 1, 4, 1], workers=2, ahead=2)

# %% [markdown]
# Press *Next*. Batch 0 takes long. Batches 1 and 3 are ready before it and
# **wait in their slots**, because your loop should see the same order every
# time. Worker 1 then has nothing to do: it was asked for two batches, and gets
# a new job only when one of its own has been used. That keeps memory bounded.
# A slot whose batch nobody uses any more is written to again.
#
# The clock in this picture is made up. The schedule is not: it is the
# framework's own function that was asked. Next you write that function.
#
# First play with a pool of such workers. It is told how long each batch takes.
# `ask` hands out a job and returns at once; `hear` waits for whoever is done
# first. **Predict** in which order the three batches are heard of, and when.

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
# Here is what it does with three workers and a slow training step:

# %%
viz.loader_steps([3, 3, 3, 3, 3, 3], workers=3, ahead=1, step=2,
                 deliver=use("data.in_order"))

# %% [markdown] slide="slide"
# ## Plug in: penguins, on four of your answers
#
# Everything between the table and the network is yours.

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

# %% slide="more" show="output" varies=true
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
# And your scheduler, with real processes. `DataLoader.deliver` is the injection point: a
# subclass says how batches are asked for. Two workers turn and shift digits,
# and what arrives must be what one process would have made of the same
# numbers, in the same order.

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
# Without it they are started anew each time, which costs more than it looks.

# %% [markdown] slide="slide"
# ## Your own package: a loader
#
# One class for your package: order, batches and collation in one. It has no
# workers; chapter 16 adds processes.

# %% [markdown] slide="notes"
# One class for the package. It is short because the chapter has built its
# parts.

# %% exercise="data.package" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Thirty-five minutes, homework. Length, order, batches and collation are
# checked one after the other.

# %% check="data.package" points=4

# %% [markdown] slide="slide"
# ## Look inside
#
# How toytorch gathers batches:

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
# And how it delivers in order. Find your four moves. What is more: a worker
# whose stream has ended (`End`) is left out; an error in a worker (`Failure`)
# waits for its turn, and is raised where your loop asks for that batch; and
# `del value` lets go of a batch at once, so that its slot is free while your
# loop computes.

# %%
look(in_order_of_pool, in_order)

# %% [markdown]
# What runs in a worker is short. It takes a job, makes the batch, writes it
# into a slot, and says so:

# %%
from toytorch.utils.data import worker

look(worker.work)

# %% [markdown] slide="slide"
# ## Measure: what do workers buy?
#
# Each example takes 4 ms to come, as from a slow disk; there are 64, in
# batches of 8. So one process needs a quarter of a second. **Predict** the
# time of an epoch with 1, 2 and 4 workers, and then with 1 and 2 for data that
# already lie in memory.

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


# %% slide="more" show="output" varies=true
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
# The second bars are the median of five epochs; the thin lines go from the
# quickest to the slowest of them.
#
# Waiting can be shared out: look at the later epochs on the left. The first
# epoch pays for starting the processes. On the right there is next to nothing
# to wait for. There the later epochs take about as long with workers as
# without, a little more on one machine and a little less on another: passing a
# batch on costs about what making it costs. And one worker alone fetches no
# faster than you do. Its use is that it fetches *while* you compute, and this
# loop computes nothing.
#
# Measure before you add workers. On a GPU there is one thing more:
# `pin_memory=True` puts batches where the GPU can fetch them by itself
# (chapter 12). Without one it changes nothing.

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
# Gaps in a table are `None`, and no tensor holds a `None`. Four rows into the
# file there is one:

# %% raises=true
next(iter(DataLoader(datasets.penguin_table(), batch_size=4)))

# %% [markdown] slide="subslide"
# ## Traps that say nothing
#
# A stream, two workers, and each example twice:

# %% [markdown] slide="notes"
# Each worker has the whole stream. Ask how a worker can know which part is
# its own: `get_worker_info`.

# %% slide="more"
stream = Stream(range(6))
for batch in DataLoader(stream, batch_size=2, num_workers=2):
    print(batch.tolist(), end=" ")

# %% [markdown]
# Each worker has its own copy of the whole dataset and goes through all of it.
# So each has to leave out what is not its own. In a worker,
# `get_worker_info()` says which one it is, and of how many; outside it gives
# `None`. Here two workers are played in this process:

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
# A block needs the length of the stream, which nobody knows, and where the
# length is no multiple of *n* a rest belongs to nobody. Taking turns needs no
# length.
#
# `list(stream)` reads the stream to its end before the first example comes.
# Some streams have no end, and most do not fit into memory. `islice` takes one
# example at a time.
#
# </details>

# %% [markdown] slide="subslide"
# ## The same chance in every worker
#
# A dataset that *keeps* a random generator of its own is copied into each
# worker with the generator in it. All of them then draw the same numbers.
# `pickle` makes such copies, so you can see it without any process:

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
# The loader seeds the *global* generators of each worker (toytorch's, NumPy's,
# Python's) from two numbers: a base seed, drawn from the loader's `generator`
# when the workers start, and the worker's own number. So draw from the global
# ones, as the transforms do, or make your generator in `worker_init_fn`.
#
# ### Where does a worker get your class from?
#
# On Linux, up to Python 3.13, a worker is *forked*: it begins as a copy of
# your process and knows all you defined. On macOS and Windows (and on Linux
# from Python 3.14) it begins empty and has to **import** the dataset, the
# `collate_fn` and the `worker_init_fn`. What is sent is only their address:

# %%
print(pickle.dumps(Noisy, protocol=0))

# %% [markdown]
# A module's and a name, no code. `__main__` is your notebook here, and in the
# worker it is something else. So for workers on every system:
#
# * put the dataset and its functions into a file and import them (as `Slow`
#   and `Stream` come from `course.data`);
# * use no `lambda` in them;
# * in a script, start the training under `if __name__ == "__main__":`.
#

# %% [markdown] slide="subslide"
# ## A mean of means
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
# The two examples of the last batch counted as much as the other sixteen. Add
# up `loss.item() * len(batch)`, and divide by the number of examples.

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

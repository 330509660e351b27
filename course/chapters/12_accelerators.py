# %% [markdown] slide="slide"
# # 12 · Accelerators
#
# Your network runs on a GPU now. You add one line that prints the loss in each
# step, and everything takes a quarter longer. The line itself costs nothing.
#
# > **The question of this chapter:** Python asks a GPU for work and does not wait
# > for it. Who waits for whom, when, and what goes wrong if nobody does?

# %% [markdown] slide="notes"
# 45 minutes: the two loops 6, what waits 5, memory 5, a race 7, exercise 3 live
# 10, the pipeline 6, measure 3, traps 3.

# %% keep=true slide="more" show="output"
import contextlib
import linecache
import sys

import toytorch as torch
from course import check, hint, look, setup, use
from toytorch import nn, viz

setup()


def simulated(program, model="A100"):
    """Run a program twice on a simulated device; draw the second run."""
    with torch.cuda.simulate(model=model, races="list") as sim:
        program()
        torch.cuda.synchronize()
        began = sim.now
        program()
        torch.cuda.synchronize()
    return viz.timeline(sim.timeline, start_us=began)


def steps(print_it):
    x = torch.ones(4_000_000, device="cuda")
    for _ in range(4):
        x = (x * 0.9).tanh()
        loss = x.mean()
        if print_it:
            loss.item()


simulated(lambda: steps(print_it=True))

# %% [markdown]
# This is a **timeline**: time goes to the right, and each row is somebody who works.
# Rest the mouse on a bar to read what it is, and turn the wheel to zoom.
#
# The host is Python. It asks for a kernel (blue), and the device runs it (green) in its
# *stream*, a queue. With `.item()` the host needs an element of the result. So it
# waits (gray) until all kernels before are done and the element has been copied
# (yellow). Meanwhile it asks for nothing, and afterwards the device has nothing to
# do until the next kernel is asked for.
#
# ### The device
#
# You need no GPU. `torch.cuda.simulate()` makes devices on which results are real and
# **times are worked out** from the figures of a GPU model: its bandwidth, its
# arithmetic, the cost of a call. Time is virtual, so each run gives the same
# times. The pictures of this chapter are always made like this. All other cells use the
# `cuda` that you have, a GPU if there is one:

# %%
if not torch.cuda.is_available():
    torch.cuda.simulate(model="A100", races="list")
print("there is a device:", torch.cuda.is_available())

# %% [markdown] slide="slide"
# ## Predict, then run
#
# Now without `.item()`. **Predict:** at which time has the host asked for its last
# kernel, compared with the end of the last kernel? And is there a gap between two
# kernels?

# %% [markdown] slide="notes"
# Draw the host's row on the whiteboard first: 13 blue bars of 5 microseconds. Ask where
# the host is when the first green bar ends.

# %% slide="more"
simulated(lambda: steps(print_it=False))

# %% [markdown]
# The host has asked for everything within 65 µs. The device works for 300. This is
# **asynchrony**: a call like `x * 0.9` returns a tensor whose elements do not exist
# yet. That is no problem, because whoever reads them is queued *behind* the kernel
# that makes them.

# %% [markdown] slide="slide"
# ## Play: which calls wait?
#
# A long kernel is queued, and then something else is called. **Predict** for each:
# does the host wait for the kernel?

# %% [markdown] slide="notes"
# Let the class vote on each line. The rule: it waits if Python has to know an
# element, or a shape that depends on elements.

# %%
calls = {
    "x.sum()": lambda x: x.sum(),
    "x.sum().item()": lambda x: x.sum().item(),
    "if x.sum() > 0: ...": lambda x: bool(x.sum() > 0),
    "print(x[0, 0])": lambda x: str(x[0, 0]),
    "x.shape": lambda x: x.shape,
    "x.cpu()": lambda x: x.cpu(),
    "x[x > 0]": lambda x: x[x > 0],
    "torch.where(x > 0, x, 0.)": lambda x: torch.where(x > 0, x, 0.0),
    "torch.ones(3).cuda()": lambda x: torch.ones(3).cuda(),
    "x.argmax(1)": lambda x: x.argmax(1),
}

# %% slide="more"
with torch.cuda.simulate(model="A100") as sim:
    x = torch.rand(500, 500, device="cuda")
    for name, f in calls.items():
        f(x)  # memory and first calls
        torch.cuda.synchronize()
        x @ x
        before = len(sim.timeline.spans)
        f(x)
        waited = any(s.kind == "sync" for s in sim.timeline.spans[before:])
        print(f"{name:28}{'waits' if waited else 'does not wait'}")

# %% [markdown]
# The host waits if Python must know an *element* (`item`, `if`, `print`, `cpu`), or a
# *shape* that depends on elements (`x[x > 0]`). It also waits for copies from
# ordinary memory; this is what the pipeline below is about. Everything else is only queued.
#
# `torch.cuda.set_sync_debug_mode("warn")` makes PyTorch tell you each such place.

# %% [markdown] slide="subslide"
# ### Memory, step by step
#
# Each operation makes a tensor. If each of them asked the driver for memory, the
# driver would be what takes the time: 100 µs for a call. The **caching allocator**
# keeps what is freed.

# %% [markdown] slide="notes"
# Press Next, and ask before each step where the next block will go. The gray
# hatched blocks are free and belong to the cache.

# %% slide="more"
MIB = 1 << 20
bytes_ = {"dtype": torch.uint8, "device": "cuda"}

# %% slide="more"
with torch.cuda.simulate(model="A100") as sim:
    torch.cuda.memory._record_memory_history()
    a = torch.empty(4 * MIB, **bytes_)
    b = torch.empty(6 * MIB, **bytes_)
    c = torch.empty(3 * MIB, **bytes_)
    del b
    d = torch.empty(2 * MIB, **bytes_)
    e = torch.empty(3 * MIB, **bytes_)
    del a, d
    f = torch.empty(9 * MIB, **bytes_)
    print(f"{torch.cuda.memory_allocated() // MIB} MiB allocated,",
          f"{torch.cuda.memory_reserved() // MIB} MiB reserved")
    memory = torch.cuda.memory._snapshot()
    del c, e, f
viz.memory_map(memory, width=800)

# %% [markdown]
# Press *Next* and **predict** each time where the next block will go. One segment of
# 20 MiB comes from the driver. It is divided into blocks. A freed block stays in the
# segment (hatched), and the next request that fits takes it. `memory_allocated()` is
# what tensors use, and `memory_reserved()` is all that the allocator has from the
# driver. `nvidia-smi` shows the second one.
#
# `e` asks for 3 MiB and gets a block of 4: a rest of 1 MiB is of no use for large
# requests, so it is not cut off. At the end 9 MiB are asked for. There are 13 MiB free, but in
# two parts, so a second segment is needed. This is **fragmentation**.

# %% [markdown] slide="slide"
# ## Play: two streams, and a race
#
# A device has several streams. They work side by side, and **none waits for another**
# unless you say so. Here a batch is copied in one stream and used in another:

# %% [markdown] slide="notes"
# Ask whether y is right. In the simulator it is: results are computed at once.
# On a GPU it depends on the day. That is why a detector is worth more than a test.

# %%
def told(race):
    """A race, with the two lines of the program."""
    for access in (race.first, race.second):
        file, line = access.source
        verb = "writes" if access.writes else "reads"
        code = linecache.getline(file, line).strip()
        print(f"{access.what} {verb} it on {access.where}:\n    {code}")


# %% slide="more"
def use_too_early(wait):
    batch = torch.ones(1_000_000).pin_memory()
    x = torch.empty(1_000_000, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x.copy_(batch, non_blocking=True)
    if wait:
        torch.cuda.current_stream().wait_stream(side)
    y = x * 2
    return y


# %% slide="more"
with torch.cuda.simulate(model="A100", races="list") as sim:
    use_too_early(wait=False)
for race in sim.races:
    told(race)

# %% [markdown]
# toytorch's detector names both lines. It does not compare times: it asks whether
# anything *makes* one wait for the other. So it finds races that went well by
# chance. With `simulate(races="error")`, the default, it raises at the second line.
#
# What does the race look like? In the first picture the product starts while the copy is still
# under way. In the second the stream waits (hatched):

# %% slide="subslide" show="output"
simulated(lambda: use_too_early(wait=False))

# %% [markdown] slide="notes"
# The product ends before the copy does. Then show the mended one: the hatched bar is
# the stream that waits; the host does not.

# %% slide="more" show="output"
simulated(lambda: use_too_early(wait=True))

# %% [markdown]
# `wait_stream` makes the *stream* wait, and the host goes on at once. It is made of two calls:
# `event = side.record_event()` marks the end of what `side` has been given so far, and
# `stream.wait_event(event)` lets everything that is queued from now on wait for this mark.

# %% [markdown] slide="slide"
# ## Build
#
# 1. **When does the host wait?** A model of the queue
# 2. **A timer** of events
# 3. **A race detector**
# 4. **Copies beside kernels**, in two streams
# 5. **A caching allocator**

# %% [markdown] slide="notes"
# Exercise 3 live: three clocks on the whiteboard, entry by entry. Exercises 4 and 5
# are homework.

# %% exercise="accelerators.clock" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifteen minutes. Draw both clocks as rows, and fill in the three calls of the
# prompt's table.

# %% check="accelerators.clock" points=2

# %%
from itertools import pairwise
from types import SimpleNamespace

from course.device_memory import Driver

# %% exercise="accelerators.timer" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifteen minutes. Marks between calls, as posts of a fence: five calls need six
# marks.

# %% check="accelerators.timer" points=2

# %% exercise="accelerators.races" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty-five minutes. Write the clocks of the second hint on the whiteboard and
# let the class fill in the next row.

# %% check="accelerators.races" points=3

# %% exercise="accelerators.pipeline" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Thirty minutes. For each wait, ask which two accesses it puts in order.

# %% check="accelerators.pipeline" points=4

# %% exercise="accelerators.allocator" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifty minutes, homework. The checks go in six stages; the seventh replays a
# training.

# %% check="accelerators.allocator" points=6

# %% [markdown] slide="slide"
# ## Plug in: does your model of the queue foretell the times?
#
# Your `run_queue` knows nothing but how long each kernel takes and whether the host
# waits. Here it gets the kernels of the two loops from the beginning. **Predict** how
# far it is from the simulator.

# %% [markdown] slide="notes"
# A model of twelve lines, and it agrees within a few microseconds. What it leaves out
# is the copy of the element.

# %%
queue_model = use("accelerators.clock")
for print_it in (False, True):
    with torch.cuda.simulate(model="A100") as sim:
        steps(print_it)
        torch.cuda.synchronize()
        began, before = sim.now, len(sim.timeline.spans)
        steps(print_it)
        torch.cuda.synchronize()
        spans = sim.timeline.spans[before:]
    kernels = [s for s in spans if s.kind == "kernel"]
    calls = [(s.duration, print_it and s.name == "mean") for s in kernels]
    ends, host = queue_model(calls)
    print(f"the last kernel ends at {kernels[-1].end - began:.0f} µs,",
          f"your model says {ends[-1][1]:.0f} µs")

# %% [markdown]
# Without waiting, both agree. With `.item()` your model is early, because it does
# not know the copy of the element: 9 µs after each `mean` for which the host waits.

# %% [markdown] slide="slide"
# ## Plug in: your pipeline reads digits
#
# A network reads eight batches of digits on a simulated T4. First the plain loop,
# then your `pipeline`. **Predict** from the first picture how much can be gained.

# %% [markdown] slide="notes"
# Ask what the longest row is when everything overlaps: that row is the limit.

# %%
import copy

from course.data import digits

images, labels = (torch.tensor(array) for array in digits())
images = images.float().reshape(len(images), -1).repeat(3, 1)
labels = labels.repeat(3)  # images are (5391, 64)
batches = [images[300 * n : 300 * n + 2048] for n in range(8)]
torch.manual_seed(0)
network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))


# %% slide="more"
def plain(batches, work):
    return [work(batch.to("cuda")) for batch in batches]


def reading(run):
    """Read all batches twice; the time of the second pass, a record."""
    with torch.cuda.simulate(model="T4", races="list") as sim:
        device_network = copy.deepcopy(network).to("cuda")
        with torch.no_grad():
            for _ in range(2):
                torch.cuda.synchronize()
                began = sim.now
                run(batches, device_network)
        torch.cuda.synchronize()
    return sim.now - began, began, sim


# %% slide="subslide"
slow, began, sim = reading(plain)
viz.timeline(sim.timeline, start_us=began)

# %% [markdown] slide="notes"
# Only one row works at any time. The host waits for each copy, because it comes
# from ordinary memory.

# %% slide="subslide"
fast, began, sim = reading(use("accelerators.pipeline"))
print(f"{slow:.0f} µs and {fast:.0f} µs, {slow / fast:.2f} times as fast;",
      f"{len(sim.races)} races")
viz.timeline(sim.timeline, start_us=began)

# %% [markdown] slide="notes"
# The copies now follow each other without a gap. They are the limit, and no order of
# kernels can change that.

# %% [markdown]
# The copies follow each other without a gap, and the kernels run beside them. There
# are two gains in one: copies from pinned memory are twice as fast and the host does
# not wait for them, and then they overlap. `DataLoader(pin_memory=True)` and
# `.to("cuda", non_blocking=True)` are PyTorch's form of the first gain.
#
# The simulator does not charge for the host's own copy into the pinned buffer. On a
# machine it takes time, too; a loader's workers and threads do it meanwhile.

# %% [markdown] slide="slide"
# ## Plug in: your allocator serves a training
#
# The requests of three training steps were recorded. Your allocator gets them in
# order. **Predict:** how many calls of the driver are needed, compared with the
# number of requests?

# %% [markdown] slide="notes"
# Some hundred requests, a handful of driver calls, all of them in the first step.

# %%
def train(count):
    """Training steps on the device, for the record of their memory."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(),
                          nn.Linear(576, 10)).to("cuda")
    optimizer = torch.optim.Adam(model.parameters())
    for n in range(count):
        some = slice(n * 1024, (n + 1) * 1024)
        x = images[some].reshape(-1, 1, 8, 8).to("cuda")
        y = labels[some].to("cuda")
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


with torch.cuda.simulate() as sim:
    train(3)
    recorded = torch.cuda.memory._snapshot()["device_traces"][0]


# %% folded=true
class Noting(Driver):
    """A driver that writes down what happens, for the picture."""

    def __init__(self):
        super().__init__()
        self.notes, self.segments = [], {}

    def note(self, action, address, size, frames=()):
        self.notes.append({"action": action, "addr": address, "size": size,
                           "stream": 0, "frames": list(frames)})

    def malloc(self, size):
        address = super().malloc(size)
        self.segments[address] = size
        self.note("segment_alloc", address, size)
        return address

    def free(self, address):
        self.note("segment_free", address, self.segments.pop(address))
        super().free(address)

    def snapshot(self, blocks):
        """The form that `viz.memory_map` reads."""
        states = {True: "active_allocated", False: "inactive"}
        segments = []
        for start, total in self.segments.items():
            inside = [{"address": a, "size": size, "requested_size": size,
                       "state": states[used]}
                      for a, size, used in blocks
                      if start <= a < start + total]
            kind = "small" if total == 2 * MIB else "large"
            segments.append({
                "device": 0, "address": start, "total_size": total,
                "stream": 0, "segment_type": kind, "blocks": inside})
        return {"segments": segments, "device_traces": [self.notes]}


# %% slide="more"
def replay(allocator, driver, events):
    """Do again what a record says; the number of requests."""
    places, requests = {}, 0
    for event in events:
        if event["action"] == "alloc":
            place = allocator.allocate(event["size"])
            driver.note("alloc", place, event["size"], event["frames"])
            places[event["addr"]] = place, event["size"]
            requests += 1
        elif event["action"] == "free_completed":
            place, size = places.pop(event["addr"])
            driver.note("free_completed", place, size)
            allocator.free(place)
    return requests


driver = Noting()
mine = use("accelerators.allocator")(driver)
requests = replay(mine, driver, recorded)
print(f"{requests} requests, {driver.mallocs} calls of the driver;",
      f"{mine.reserved / MIB:.0f} MiB reserved")

# %% slide="subslide" show="output"
viz.memory_map(driver.snapshot(mine.blocks()), limit=60, width=800)

# %% [markdown] slide="notes"
# Each step of the training is one hill of the lower curve. After the first hill no
# segment is added.

# %% [markdown]
# The curve below the blocks is the memory in use. It rises in the forward pass, where
# results are kept for the backward pass, and falls in the backward pass. All
# segments come in the first step.
#
# ### Your detector and the framework's
#
# Here is a log as the framework sees it, of a pipeline whose first version forgot
# one wait. Your `races` finds the same pair:

# %%
find_races = use("accelerators.races")
log = [
    ("write", "host", "pinned"), ("read", "copies", "pinned"),
    ("write", "copies", "buffer"), ("record", "copies", "copied"),
    ("wait", "main", "copied"), ("read", "main", "buffer"),
    ("write", "host", "pinned"),  # the second batch
]
for i, j in find_races(log):
    print("race:", log[i], log[j])
mended = [*log[:6], ("wait", "host", "copied"), log[6]]
print("with a wait of the host:", find_races(mended))

# %% [markdown] slide="slide"
# ## Look inside
#
# The framework's allocator is a file of 500 lines that you can read now. This is how it
# chooses a block and joins free neighbours:

# %% [markdown] slide="notes"
# The same three decisions as in the exercise. The framework keeps free blocks
# sorted, so that it finds the best one without looking at all.

# %% slide="more" show="output"
from toytorch.backends.simulator.allocator import CachingAllocator

look(CachingAllocator.allocate)

# %%
look(CachingAllocator._make_free)

# %% [markdown]
# And this is the rule of the race detector. A clock is a dictionary, as in yours:

# %%
from toytorch.backends.simulator.races import Access

look(Access.before)

# %% [markdown] slide="slide"
# ## Measure: how much does overlap gain?
#
# Let a copy from pinned memory take $c$, from ordinary memory $2c$, and the kernels
# of a batch $k$. The plain loop needs $2c + k$ for each batch. The pipeline needs
# as long as the slower of the two, $\max(c, k)$. **Predict:** for which $k$ is the
# gain largest?

# %% [markdown] slide="notes"
# At k = c: three times. Far from it, only one row matters and the gain goes to 1 on
# the right and to 2 on the left.

# %%
def gain(kernels):
    """Kernels of a batch in units of a copy, and how many times faster."""
    data, times = [torch.ones(250_000)] * 12, []

    def work(x):
        for _ in range(kernels):
            x = x * 0.5
        return x

    with torch.cuda.simulate(model="T4", races="list") as sim:
        for run in (plain, use("accelerators.pipeline")):
            for _ in range(2):
                torch.cuda.synchronize()
                began = sim.now
                run(data, work)
            torch.cuda.synchronize()
            times.append(sim.now - began)
    spans = [s for s in sim.timeline.spans if s.start >= began]
    c = sum(s.duration for s in spans if s.kind == "copy")
    k = sum(s.duration for s in spans if s.kind == "kernel")
    return k / c, times[0] / times[1]


# %% slide="subslide" folded=true
import matplotlib.pyplot as plt
import numpy as np

measured = [gain(n) for n in (1, 3, 6, 8, 9, 11, 14, 20, 30, 50, 90)]
ratio = np.geomspace(0.08, 11, 200)
figure, ax = plt.subplots(figsize=(7, 3.2))
ax.plot(ratio, (2 + ratio) / np.maximum(1, ratio), color="#9aa4b2",
        label="(2c + k) / max(c, k)")
ax.plot(*zip(*measured), "o", color="#e2572b", label="simulated")
ax.axhline(1.6, color="#9aa4b2", lw=0.8, ls=":")
ax.set(xscale="log", xlabel="kernels of a batch, in copies (k / c)",
       ylabel="times the throughput", ylim=(0.9, 3.4))
ax.legend()
plt.show()

# %% [markdown] slide="notes"
# The points follow the formula and lie a little below it: nothing runs beside the first
# copy, and the host's calls take time.

# %% slide="more"
best = max(measured, key=lambda pair: pair[1])
print(f"most is gained at k = {best[0]:.1f} c: {best[1]:.1f} times")

# %% [markdown]
# The gain is largest where both take equally long. If one of them takes much longer
# than the other, look at that one first: no overlap can make it shorter.
#
# ### A timer, and its spread
#
# A time alone says little. Here is your `measure` on the device that you have: each
# kernel ten times, with the smallest and the largest time. In the simulator the spread is
# 0, since nothing else happens. On a GPU it is not.

# %%
stopwatch = use("accelerators.timer")
x = torch.ones(2_000_000, device="cuda")
for name, f in (("copy", lambda: x.clone()),
                ("multiply", lambda: x * 2.0),
                ("tanh", lambda: x.tanh()),
                ("sum", lambda: x.sum())):
    times = stopwatch(f, repeats=10)
    least, most = 1000 * min(times), 1000 * max(times)
    rate = (8 if name == "sum" else 16) / least
    print(f"{name:9}{least:6.1f} to {most:.1f} µs, {rate:5.2f} TB/s")

# %% [markdown]
# `tanh` takes as long as a copy. It computes much more, but it moves the same bytes,
# and the memory is what takes the time.

# %% [markdown] slide="slide"
# ## Traps
#
# Somebody measures a product with the host's clock:

# %% [markdown] slide="notes"
# Five microseconds for 250 million multiplications. The host's clock has measured
# the asking.

# %% slide="more"
with torch.cuda.simulate(model="A100") as sim:
    x = torch.ones(500, 500, device="cuda")
    y = x @ x  # memory for the result is in the cache from here on
    del y
    torch.cuda.synchronize()
    began = sim.now
    y = x @ x
    print(f"asked for within {sim.now - began:.0f} µs")
    torch.cuda.synchronize()
    print(f"done after {sim.now - began:.0f} µs")

# %% [markdown]
# This measures how long Python takes to *ask*. Wait before you look at the clock, or
# use events.

# %% [markdown] slide="subslide"
# ### The host is too quick
#
# A pinned buffer is filled again while the copy still reads it:

# %% [markdown] slide="notes"
# The most common race of home-made loaders. One of the two lines is the copy, the
# other is plain Python.

# %% slide="more"
with torch.cuda.simulate(model="A100", races="list") as sim:
    pinned = torch.zeros(1_000_000).pin_memory()
    for batch in range(2):
        pinned.fill_(batch)
        x = pinned.to("cuda", non_blocking=True)
for race in sim.races:
    told(race)

# %% [markdown]
# `non_blocking=True` says: I promise not to touch this memory until the copy is
# done. Nobody checks it on a GPU. Keep the promise with an event, as in your
# pipeline.

# %% [markdown] slide="subslide"
# ## Enough memory, and none that fits

# %% [markdown] slide="notes"
# Read the numbers in the message: half of the memory is free, in parts of 20 MiB.
# Ask which del would help.

# %% slide="more" raises=true
with torch.cuda.simulate(model="A100", memory=200 * MIB):
    many = [torch.empty(9 * MIB, **bytes_) for _ in range(20)]
    del many[::2]  # every other one is free again
    print(f"{torch.cuda.memory_allocated() // MIB} of 200 MiB are in use")
    torch.empty(60 * MIB, **bytes_)

# %% [markdown]
# Half of the memory is free, but in each segment one of two blocks is in use. No segment is
# free as a whole, so nothing can be given back. Make tensors that live long before
# those that live shortly, and of few different sizes.

# %% [markdown] slide="subslide"
# ## An error that comes late

# %% [markdown] slide="notes"
# Ask which line is wrong. The error is reported at the line that waits, and the
# message says so itself.

# %% slide="more" raises=true
with (torch.cuda.simulate(model="A100"),
      contextlib.redirect_stderr(sys.stdout)):  # the driver's words
    table = torch.zeros(10, 4, device="cuda")
    index = torch.tensor([3, 12], device="cuda")
    rows = table[index]  # there is no row 12
    doubled = rows * 2
    print("so far, nothing")
    doubled.cpu()

# %% [markdown]
# The wrong line is three lines above the one that raises. With
# `CUDA_LAUNCH_BLOCKING=1` the host waits for each kernel, and the error comes
# where it belongs. Use this to search, never to measure.

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** A loop prints `loss.item()` in each step and takes 12 ms a step. Without the
# line it takes 9 ms. The copy of the element takes 10 µs. Where are the 3 ms?
#
# <details><summary>Answer</summary>
#
# The host waits in each step until all kernels are done. Meanwhile it asks for
# nothing, so after each `.item()` the device is idle until the next kernels have been
# asked for. Without waiting, the host asks for the next step while the device still
# works on this one. Print every hundredth step, or add up the losses on the device.
#
# </details>
#
# **2.** Which of these waits for the device, and why: `x.mean()`, `x.shape[0]`,
# `x.max() > 3`, `if x.max() > 3:`, `x.nonzero()`?
#
# <details><summary>Answer</summary>
#
# The `if` and `nonzero` wait. Python has to know an element to decide the `if`, and
# the shape of `nonzero()` depends on the elements. The comparison alone gives a
# tensor on the device, and shapes of other results are known before any kernel runs.
#
# </details>
#
# **3.** A kernel takes 2 µs and a call 5 µs. How long do 1,000 calls take, and what
# would a GPU that is twice as fast change?
#
# <details><summary>Answer</summary>
#
# About 5 ms, because the device waits for the host between any two kernels. A faster
# GPU changes nothing. Fewer calls would: larger batches, or several operations in
# one kernel, which is what chapter 14 is about.
#
# </details>
#
# **4.** What does this print? Which bytes are asked for, and which are in use?
#
# ```python
# def rounded(size):
#     return max(512, -(-size // 512) * 512)
#
#
# x = torch.zeros(100, 3)
# print(x.numel() * x.element_size(), rounded(x.numel() * x.element_size()))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 1200 1536
# ```
#
# The tensor has 300 elements of four bytes. The allocator rounds up to a multiple of
# 512 bytes, so the block has 1536. The difference cannot be used by anybody else.
#
# </details>
#
# **5.** `nvidia-smi` shows 10 GB for a program whose tensors need 3 GB. Is this a
# leak? What does `empty_cache()` change for the program itself?
#
# <details><summary>Answer</summary>
#
# It is the cache: what the allocator has reserved, in use or not. `empty_cache()` gives
# segments that are free as a whole back to the driver, so that *other* programs can
# use them. The program itself gets slower, because it has to ask the driver again.
#
# </details>
#
# **6.** Stream A writes x and records e. Stream B waits for e and reads x. Then A
# writes x again. Where is the race, and what is missing?
#
# <details><summary>Answer</summary>
#
# The second write races with the read of B. The event orders the first write before the
# read, and nothing makes A wait for B. B has to record an event after its read, and A has
# to wait for it. In the pipeline this event is called `free`.
#
# </details>
#
# **7.** In the race of the chapter the results were right in every run. Why is it a
# mistake nevertheless?
#
# <details><summary>Answer</summary>
#
# The simulator computes results at once, so they never depend on times. On a GPU the
# product may read memory that the copy has not written yet, and whether it does depends on the
# load, the driver and the size of the batch. The detector asks whether anything puts
# both in order, and nothing does.
#
# </details>
#
# **8.** What does this print on the CPU, and why is there nothing to wait for?
#
# ```python
# x = torch.ones(3)
# y = x.to("cpu", non_blocking=True)
# print(y is x, x.is_pinned())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# True False
# ```
#
# The tensor is on the CPU already, so `to` gives the same tensor and copies nothing.
# Memory is pinned only if somebody asks for it. Pinned memory cannot be moved by the
# operating system, so too much of it slows all other programs down.
#
# </details>
#
# **9.** *Chapter 10.* A training goes on from a checkpoint. The loop puts the model on
# the device after the optimizer has been made. What does this print, and why is it
# harmless here?
#
# ```python
# model = torch.nn.Linear(2, 1)
# optimizer = torch.optim.SGD(model.parameters(), 0.1)
# model.to(torch.float64)
# same = optimizer.param_groups[0]["params"][0] is model.weight
# print(same, model.weight.dtype)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# True torch.float64
# ```
#
# `to` changes the memory of the parameters and keeps the parameters themselves. The
# optimizer still has the same objects. What it has saved about them, such as Adam's
# averages, is made in the first step, or brought to the parameter's device and type when a
# state is loaded.
#
# </details>
#
# **10.** *Chapter 10.* The losses of an epoch are added up as tensors. What does this
# print, and what would it cost on a GPU to write `.item()` instead?
#
# ```python
# w = torch.ones(1, requires_grad=True)
# total = 0
# for _ in range(3):
#     total = total + (w * 2).sum()
# print(total.requires_grad, total.detach().requires_grad)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# True False
# ```
#
# The sum keeps the graphs of all batches in memory. `.item()` lets them go, and makes
# the host wait in each step. `total + loss.detach()` does neither: it has no graph, and
# it stays on the device until the end of the epoch.
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * Three slots instead of two: when would they help? Let the kernels of one batch in
#   five take ten times as long, and try it.
# * `x.record_stream(stream)` tells the allocator that another stream uses x. Write a
#   pipeline without slots that makes a new device tensor for each batch. What does it
#   save, and what does it cost?
# * A CUDA graph records all launches of a step and starts them with one call. Which
#   of the two loops at the beginning could be recorded, and which not?
# * Your detector keeps all accesses for ever. Which of them can never again be part
#   of a race?
#
# **Next:** chapter 13 asks for a whole program at once. A tracer writes down what a
# function calls, and then somebody can look at all of it before anything runs.

# %% [markdown] slide="notes"
# The last question leads to how the framework does it: after a write to all of a
# memory, what was before that write can be forgotten.

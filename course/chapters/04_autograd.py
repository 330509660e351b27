# %% [markdown] slide="slide"
# # 04 · Autograd: the graph and the engine
#
# You compute a number from a million others, in ordinary Python, with `if`
# and `for`. Then you say `loss.backward()`, and every one of the million
# knows how much it mattered.
#
# > **The question of this chapter:** who wrote down what you did, and how can
# > one walk over it serve all numbers at once?

# %% [markdown] slide="notes"
# 45 minutes: question 4, play 12, exercises 1 and 4 live 10, the order 8,
# training on the engine 6, traps 5. Leave the whole engine as homework: it
# is the exercise people are proudest of.

# %% keep=true slide="more" show="output"
import toytorch as torch
from course import check, exercise, look, setup
from toytorch import viz

setup()
x = torch.tensor(2.0, requires_grad=True)
w = torch.tensor(0.5, requires_grad=True)
y = (w * x + w).tanh()
viz.autograd_graph(y, params={"x": x, "w": w})

# %% [markdown]
# Three operations, `*`, `+` and `tanh`, have left three **nodes** behind.
# Nobody asked for them: whenever a tensor that wants a gradient takes part in
# an operation, the result remembers in its `grad_fn` how to go back. Arrows
# show the way a gradient will flow, from the result down to the leaves. Some
# nodes keep a tensor, because their derivative needs it.
#
# Note that two arrows end at `w`. It was used twice, so it has two ways to the
# result. Much of this chapter is about that second arrow.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# Below, `y` is doubled sixty times by adding it to itself. Each addition uses
# `y` twice, so the number of ways back to `start` doubles each time: 2⁶⁰, more
# than a billion billions. Write down: how many **nodes** has the graph? What
# is `start.grad`? And how long does `backward` take: a millisecond, a second,
# or longer than you will live?

# %% slide="more"
start = torch.tensor(1.0, requires_grad=True)
y = start
for _ in range(60):
    y = y + y

node, count = y.grad_fn, 0
while node is not None and node.next_functions:
    node, count = node.next_functions[0][0], count + 1

y.backward()
print(count, "nodes")
print(int(start.grad), "ways, all of them counted")

# %% [markdown]
# You hardly noticed it: sixty nodes, sixty steps. The engine did not follow
# the ways. It waited at each node until both gradients had come, added them,
# and went on **once**. By the end of this chapter you will have written that
# engine, and a network will have learned to read digits on it.

# %% [markdown] slide="slide"
# ## Play: a graph is made of nodes
#
# | ask | answer |
# | --- | --- |
# | `y.grad_fn` | the node of the operation that made `y` |
# | `node.name()` | which operation |
# | `node.next_functions` | where it sends gradients: `(target, number)` |
# | `node(g)` | the gradients of its inputs, for `g` of its result |

# %% slide="more"
node = (w * x).grad_fn  # w is 0.5 and x is 2
print(node.name(), "saved", [v.item() for _, v in node.saved_items()])
for target, number in node.next_functions:
    print("  sends to", target.name(), number)
print("  called with 10:", [g.item() for g in node(torch.tensor(10.0))])

# %% [markdown]
# The product sends `10 * 2` to `w` and `10 * 0.5` to `x`: each factor's slope
# is the *other* factor, times what came in. That is the chain rule, and a node
# is nothing more than the chain rule for one operation:
#
# $$g_x = g \cdot \frac{\partial y}{\partial x}.$$
#
# Tensors are no different, only that the slope becomes a matrix $J$ of all
# results by all inputs. A node never builds that matrix. It knows how to
# compute $g^\top J$ directly; for `tanh` of a million numbers $J$ would have a
# million times a million entries, and $g^\top J$ is one product of two rows.
#
# A leaf's node is called `AccumulateGrad`: it adds what arrives to the leaf's
# `.grad`.
#
# ### The graph is what ran
#
# There is no `if` in a graph and no loop, only what came of them. Every run
# writes a new one.

# %%
def steps_of(tensor):
    """The names of the operations behind a tensor, last one first."""
    names, node = [], tensor.grad_fn
    while node is not None and node.next_functions:
        names.append(node.name().removesuffix("Backward0"))
        node = node.next_functions[0][0]
    return names


def odd(x):
    while abs(x) < 10:
        x = x * x if x > 2 else x + 1
    return x


for start in (0.5, 3.0, -20.0):
    x = torch.tensor(start, requires_grad=True)
    print(start, steps_of(odd(x)))

# %% [markdown] slide="subslide"
# ## `(w * x + w) ** 2`, step by step

# %% keep=true slide="more" show="output"
x = torch.tensor(3.0, requires_grad=True)
w = torch.tensor(2.0, requires_grad=True)
y = w * x + w
viz.backward_steps(y * y, params={"x": x, "w": w})

# %% [markdown]
# Press *Next*. Watch three things: gradients **wait** on the edges until
# their node runs; a node runs **once**; and `w`, which two arrows lead to,
# gets the **sum**.
#
# ### Slopes everywhere
#
# One call gives the slope at as many places as you like. Here are two curves
# with their slopes, none of which anybody derived on paper.

# %% [markdown] slide="subslide"
# ## Slopes nobody derived on paper

# %% slide="more" show="output"
import matplotlib.pyplot as plt


def wave(x):
    return (x * 3).sin() * (-x * x / 4).exp()


figure, both = plt.subplots(1, 2, figsize=(8, 2.7))
for axes, f, name in zip(both, (torch.tanh, wave), ("tanh", "wave")):
    x = torch.linspace(-4, 4, 200, dtype=torch.float64)
    y = f(x.requires_grad_())
    y.sum().backward()  # y[i] depends on x[i] only
    axes.plot(x.detach().numpy(), y.detach().numpy(), label=name)
    axes.plot(x.detach().numpy(), x.grad.numpy(), label="its slope")
    axes.legend()
plt.show()

# %% [markdown] slide="slide"
# ## Build
#
# Six pieces, from one node to the whole engine:
#
# 1. the derivative of **tanh**
# 2. the derivative of a **matrix product**
# 3. **undoing a broadcast**
# 4. what happens **when two gradients meet**
# 5. the **order** in which nodes run
# 6. a whole **engine**
#
# Each but the third has an injection point: once its check is green, toytorch itself runs
# on it.

# %% [markdown] slide="notes"
# Exercise 4 live: let the room write the one line, then ask what x + y sends
# to its two inputs. Draw exercise 5 on the board with the c * a example
# before anyone types.

# %% exercise="autograd.tanh" slide="subslide" show="prompt"

# %% check="autograd.tanh" points=2

# %% [markdown]
# While the block below lasts, every `tanh` in toytorch goes back through
# *your* derivative. If the check is not green yet, toytorch says so and uses
# its own. Here `tanh` is followed over a long way: forty in a row.

# %%
with exercise("autograd.tanh").active():
    x = torch.tensor(0.8, requires_grad=True)
    y = x
    for _ in range(40):
        y = (2 * y).tanh()
    y.backward()
print(f"The gradient after 40 layers: 10 to the {x.grad.log10():.0f}")

# %% [markdown]
# Each layer multiplies by its slope, and the slope of a saturated `tanh` is
# small. That is the *vanishing gradient*, seen from inside.

# %% exercise="autograd.product" slide="subslide" show="prompt"

# %% check="autograd.product" points=2

# %% exercise="autograd.unbroadcast" slide="subslide" show="prompt"

# %% check="autograd.unbroadcast" points=2

# %% exercise="autograd.accumulate" slide="subslide" show="prompt"

# %% check="autograd.accumulate" points=1

# %% [markdown]
# ### Why the order matters
#
# In the graph below, `a` has a short way to the result and a long one. If its
# node runs as soon as the short way has delivered, it sends on one part of its
# gradient and never hears of the other.

# %% [markdown] slide="slide"
# ## When may the node of `a` run?

# %% keep=true slide="more" show="output"
x = torch.tensor(0.5, requires_grad=True)
a = x.exp()
b = a.sin()
c = b.cos()
names = {"x": x, "a": a, "b": b, "c": c}
viz.autograd_graph(c * a, params=names, saved=False)

# %% exercise="autograd.order" slide="subslide" show="prompt"

# %% check="autograd.order" points=3

# %% exercise="autograd.engine" slide="subslide" show="prompt"

# %% check="autograd.engine" points=4

# %% [markdown] slide="slide"
# ## Plug in: a network learns on your engine
#
# 1,797 handwritten digits, a network of nothing but `@`, `+` and `tanh`, and
# what runs backward is yours.

# %% slide="more"
from toytorch.vision import datasets

images, labels = datasets.digits(train=True)
test_images, test_labels = datasets.digits(train=False)
print(images.shape, "to learn from,", test_images.shape, "to test with")

# %% slide="more"
torch.manual_seed(4)
w1 = (torch.randn(64, 48) / 8).requires_grad_()
b1 = torch.zeros(48, requires_grad=True)
w2 = (torch.randn(48, 10) / 7).requires_grad_()
b2 = torch.zeros(10, requires_grad=True)
parameters = [w1, b1, w2, b2]


def network(images):
    hidden = (images.flatten(1) @ w1 + b1).tanh()  # (n, 48)
    return hidden @ w2 + b2  # (n, 10)


# %% [markdown] slide="subslide"
# ## The graph of one training step

# %% slide="more" show="output"
cross_entropy = torch.nn.functional.cross_entropy
loss = cross_entropy(network(images[:32]), labels[:32])
names = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}
viz.autograd_graph(loss, params=names, saved=False)

# %% [markdown]
# Four leaves, and there is your `MmBackward0`, twice, with a `TanhBackward0`
# between them. (The upper one also needs the gradient of its *left* factor,
# which toytorch brings.) Now install your pieces for the rest of the session
# and train. Where your engine is still open, toytorch's own loop runs, in your
# order and with your sums. **Predict** how many of the 360 test digits the
# network will read.

# %% [markdown] slide="subslide"
# ## Train, on your pieces

# %% slide="more"
pieces = ["tanh", "product", "accumulate", "order", "engine"]
for piece in pieces:
    exercise(f"autograd.{piece}").install()

# %%
def train(epochs=25, size=32, rate=0.05, momentum=0.9):
    """Steps downhill; returns the mean loss of each epoch."""
    speeds = [torch.zeros_like(p) for p in parameters]
    history = []
    for _ in range(epochs):
        total = 0.0
        for some in torch.randperm(len(labels)).split(size):
            loss = cross_entropy(network(images[some]), labels[some])
            for p in parameters:
                p.grad = None
            loss.backward()
            with torch.no_grad():
                for p, speed in zip(parameters, speeds):
                    speed.mul_(momentum).add_(p.grad)
                    p -= rate * speed
            total += loss.item() * len(some)
        history.append(total / len(labels))
    return history


# %% slide="more"
history = train()
with torch.no_grad():
    guesses = network(test_images).argmax(1)
right = (guesses == test_labels).float().mean().item()
print("the loss fell:", history[-1] < history[0] / 20)
print("more than 95 % of unseen digits right:", right > 0.95)

# %% [markdown] slide="subslide"
# ## The loss, epoch by epoch

# %% slide="more" show="output" varies=true
figure, axes = plt.subplots()
axes.semilogy(range(1, len(history) + 1), history)
axes.set_xlabel("epoch")
axes.set_ylabel("loss")
axes.set_title(f"{right:.1%} of 360 unseen digits read right")
plt.show()

# %% [markdown]
# The number above each picture is the network's answer, in orange where it is
# wrong. Most of its mistakes would give you pause, too.

# %% [markdown] slide="subslide"
# ## What it reads, mistakes first

# %% slide="more" show="output" varies=true
wrong = (guesses != test_labels).nonzero().flatten().tolist()
chosen = wrong[:8] + [n for n in range(40) if n not in wrong]
figure, grid = plt.subplots(2, 12, figsize=(9, 2.1))
for n, ax in zip(chosen, grid.flatten()):
    ax.imshow(test_images[n, 0].numpy(), cmap="Greys")
    color = "#e2572b" if n in wrong else "#7d8590"
    ax.set_title(str(guesses[n].item()), color=color, fontsize=11)
    ax.axis("off")
figure.tight_layout()
plt.show()

# %%
for piece in pieces:
    exercise(f"autograd.{piece}").uninstall()  # back to toytorch's own

# %% [markdown] slide="slide"
# ## Look inside
#
# How toytorch puts nodes in order:

# %% slide="more" show="output"
from toytorch.autograd import engine

look(engine.by_sequence, topological_order)

# %% [markdown]
# Yours walks the graph and turns a list around; theirs sorts. Nodes get a
# number when they are made, and a node can only point to nodes that existed
# before it. So *newest first* is a topological order, for free. PyTorch numbers
# its nodes too: among those that are ready to run, its engine takes the newest.
# When nobody looks on, toytorch does the same and spares itself the sorting:
# nodes where a gradient waits lie in a heap, and the newest runs next
# (`Engine._descend`).
#
# This is the loop for a pass that is watched. Find your four moves in it: take
# what waits at a node, call it, deliver to its targets, add where something
# waits already. The rest is hooks, gradients for chosen inputs, and dropping
# what was saved.

# %%
look(engine.Engine._in_order, run_backward)

# %% [markdown]
# Nobody wrote a class `TanhBackward0`. It is generated from the record of the
# operation, and the names of its arguments decided what it saves. There are two
# versions, for tensors and for bare arrays; this is the first:

# %%
print(torch.ops.tanh.node.source.split("\n\n\n")[0])

# %% [markdown] slide="slide"
# ## Measure: what a graph costs
#
# Nodes keep tensors alive until backward has run. **Predict:** which of these
# saves nothing at all, which keeps one tensor, and which keeps two? Every
# input has 1,000 numbers of 4 bytes.

# %%
def saved_bytes(node):
    """The bytes of all tensors that one node keeps."""
    kept = {id(v): v for _, v in node.saved_items()
            if isinstance(v, torch.Tensor)}
    return sum(v.numel() * v.element_size() for v in kept.values())


# %% slide="more"
u = torch.rand(1000, requires_grad=True)
v = torch.rand(1000, requires_grad=True)
cases = {"u + v": u + v, "u - v": u - v, "u * v": u * v, "u / v": u / v,
         "u.exp()": u.exp(), "u.tanh()": u.tanh(), "u.sin()": u.sin(),
         "u.relu()": u.relu(), "u.sum()": u.sum()}
for text, result in cases.items():
    print(f"{text:<9}{saved_bytes(result.grad_fn):>6} bytes")

# %% [markdown]
# A sum's slope is 1 wherever you are, so it needs to know nothing. A product
# has to know both factors. `exp`, `tanh` and `relu` are their own witnesses:
# the slope can be told from the result, which is often kept by the next node
# anyway. This is where the memory of training goes: not into the parameters,
# but into what every layer saved on its way.
#
# And time? A small multiplication is all overhead. **Predict** by what factor
# it gets slower when a node is recorded.

# %%
import time


def best(*works, times=2_000):
    """Nanoseconds for one call of each, the best of 20 rounds in turn."""
    found = [float("inf")] * len(works)
    for _ in range(20):
        for k, work in enumerate(works):
            begin = time.perf_counter()
            for _ in range(times):
                work()
            spent = time.perf_counter() - begin
            found[k] = min(found[k], spent / times * 1e9)
    return found


# %% [markdown] slide="subslide"
# ## What recording costs, for ten numbers

# %% slide="more" varies=true
p, q = torch.rand(10), torch.rand(10)
r, s = torch.rand(10, requires_grad=True), torch.rand(10)
plain, recorded = best(lambda: p * q, lambda: r * s)
print(f"without a graph {plain:.0f} ns, with one {recorded:.0f} ns:",
      f"{recorded / plain:.1f} times as long")

# %% [markdown] slide="slide"
# ## Traps
#
# Run on purpose. Read the last line of each error.

# %% raises=true slide="more"
x = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (x * x).sum()
loss.backward()
loss.backward()  # what x * x had saved is gone

# %% raises=true slide="more"
y = x * 2
y.backward()  # two numbers: whose slope do you mean?

# %% raises=true slide="more"
x += 1  # in place, on a leaf: its gradient would be of what?

# %% [markdown]
# The last one is why training steps stand under `torch.no_grad()`. Or this:
# `x = x - 0.1 * x.grad` raises nothing, and makes a *new* tensor that is no
# leaf any more, so that its `.grad` stays empty from then on.
#
# Three that raise nothing at all, and are worse:

# %% [markdown] slide="subslide"
# ## Traps that say nothing

# %% slide="more"
x = torch.tensor(3.0, requires_grad=True)
for step in range(3):
    (x * 2).backward()
    print("step", step, "gradient", x.grad.item())  # the slope is 2

# %% [markdown]
# Gradients **add up over calls**, too. It has its uses (a large batch in small
# pieces), but as a rule you want `x.grad = None` or `optimizer.zero_grad()`
# first. And the most expensive plus sign in deep learning:

# %%
def graph_size(tensor):
    seen, stack = set(), [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(target for target, _ in node.next_functions)
    return len(seen)


# %% slide="more"
total = 0.0
for step in range(100):
    loss = (x * step - 1) ** 2
    total = total + loss  # meant for a log, keeps every graph
print("nodes behind loss: ", graph_size(loss))
print("nodes behind total:", graph_size(total))

# %% [markdown]
# `total` holds all hundred graphs and everything they saved. For a log, say
# `loss.item()` or `loss.detach()`.
#
# The third is a back door. `tanh` saved its result, and here somebody writes
# over it. Done openly, the engine notices (chapter 05 shows how); through
# `.data` it can not, and the gradient is wrong without a word:

# %% [markdown] slide="subslide"
# ## `.data`, the back door

# %% slide="more"
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.tanh()
y.data.mul_(0)  # behind autograd's back
y.sum().backward()
print(x.grad, "but the slopes are", 1 - x.detach().tanh() ** 2)

# %% raises=true slide="more"
y = x.tanh()
with torch.no_grad():
    y.mul_(0)  # openly
y.sum().backward()

# %% [markdown]
# Gradients need a slope, and whole numbers have none:

# %% raises=true
torch.tensor([1, 2, 3], requires_grad=True)

# %% [markdown]
# And class labels must *not* be floats: they name a class, they are no amount.

# %% raises=true
scores = torch.zeros(2, 3, requires_grad=True)
cross_entropy(scores, torch.tensor([0.0, 2.0]))

# %% [markdown] slide="slide"
# ## Beyond
#
# * A backward pass costs a small multiple of the forward pass, *whatever the
#   number of inputs*. How would the cost grow if you walked the same graph
#   from the leaves to the result?
# * What would you save if memory were scarce and time were not? Which nodes
#   could compute their saved tensor again?
# * Every entry of `next_functions` has a number beside the target, always 0
#   so far. What is it for? Try `torch.rand(3, requires_grad=True).sort()`.
# * Your engine runs one node at a time. Which nodes could run at once, and
#   what would two threads have to agree on?
#
# **Next:** chapter 05 breaks the rules of this one: in-place writes, views,
# and how the engine finds out.

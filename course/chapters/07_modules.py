# %% [markdown] slide="slide"
# # 07 · Modules: networks as trees
#
# Until now a network was a handful of tensors, and you kept a list of them. A
# real one has hundreds. You write `self.layer = nn.Linear(64, 32)`, as for any
# Python object, and later `model.parameters()` knows every parameter in it.
#
# > **The question of this chapter:** nobody handed in a list. Who found the
# > parameters, and when are they *not* found?

# %% [markdown] slide="notes"
# 45 minutes: question 5, play 12, exercises 1 and 2 live 12, the deep network
# 7, measure 4, traps 5. The opening prediction works best as a vote. Batch
# norm (exercise 5) is homework: it is long, and people enjoy it.

# %% keep=true slide="more" show="output"
import math

import matplotlib.pyplot as plt

import toytorch as torch
from course import check, exercise, hint, look, setup, use
from toytorch import nn, viz

setup()


class Net(nn.Module):
    def __init__(self, box):
        super().__init__()
        self.first = nn.Linear(64, 32)
        self.blocks = box(nn.Linear(32, 32) for _ in range(3))
        self.last = nn.Linear(32, 10)

    def forward(self, x):
        x = self.first(x).relu()
        for block in self.blocks:
            x = block(x).relu()
        return self.last(x)


viz.module_tree(Net(nn.ModuleList))

# %% [markdown]
# A **module** is a box with a name. It holds **parameters**, tensors that are
# to be learned, and other modules. So a network is a tree; the numbers sit at
# its leaves, and the way to one of them is its name: `blocks.0.weight`.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# `Net` asks for the kind of box to put its three blocks in. In the picture it
# was an `nn.ModuleList`. A plain Python `list` holds three layers just as
# well. Two questions: does the network with the list still compute? And how
# many numbers will an optimizer be given, if it is 5,578 in the picture?

# %% [markdown] slide="notes"
# Two questions, two votes. The list computes, but its parameters are not
# found, so it learns less.

# %% slide="more"
for box in (nn.ModuleList, list):
    net = Net(box)
    y = net(torch.randn(5, 64))
    count = sum(p.numel() for p in net.parameters())
    print(f"{box.__name__:<11} output {tuple(y.shape)}, learns {count}")

# %% [markdown]
# It runs, and more than half of it is missing. The three blocks take part in
# every computation with the random numbers they were born with; nobody will
# ever train, move or save them. No error, no warning: only a network that
# learns less well than it should.
#
# Why would a list make a difference? Because of what happens at the `=` sign
# of `self.blocks = …`. You will write that `=` sign.

# %% [markdown] slide="slide"
# ## Play: what a module knows
#
# | ask | answer |
# | --- | --- |
# | `m.named_parameters()` | name and tensor of everything to be learned |
# | `m.named_modules()` | name and module, itself first |
# | `m.buffers()` | state that is not learned, like a running mean |
# | `m.state_dict()` | all values by name, for a file |
# | `m.train()`, `m.eval()` | sets `training` in the whole tree |
# | `m.apply(f)` | calls `f` on every module |
# | `m.register_forward_hook(f)` | calls `f` after every `forward` |

# %% [markdown] slide="notes"
# Everything in this table is one walk over a tree. Ask which row an optimizer
# needs, and which a file.

# %% [markdown] slide="subslide"
# ## Names, in the order of the assignments

# %% [markdown] slide="notes"
# The order is that of the assignments, and the names are paths in the tree.

# %% slide="more"
net = Net(nn.ModuleList)
print([name for name, _ in net.named_parameters()])
print(net)

# %% [markdown]
# The names come in the order of the assignments in `__init__`. A *parameter*
# is a tensor with a label, no more: `nn.Parameter(tensor)` says *learn this
# one*. A tensor without the label is a private matter of the module.

# %%
layer = nn.Linear(2, 3)
layer.note = torch.ones(4)  # a plain tensor
layer.scale = nn.Parameter(torch.ones(4))
print([name for name, _ in layer.named_parameters()])
print(isinstance(layer.scale, torch.Tensor), layer.scale.requires_grad)

# %% [markdown]
# ### One parameter, two names
#
# A language model reads a word by looking up its row in a table, and writes
# one by comparing with the rows of a table. Often it is *the same* table, and
# all it takes is an assignment. **Predict:** how many parameters has the model
# below? How many names are in its `state_dict()`?

# %% [markdown] slide="subslide"
# ## How many parameters, and how many names?

# %% [markdown] slide="notes"
# A shared tensor has two names and is counted once. Ask which name appears.

# %% slide="more"
class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Embedding(50, 16)
        self.write = nn.Linear(16, 50, bias=False)
        self.write.weight = self.read.weight  # shared


words = Words()
print([name for name, _ in words.named_parameters()])
print(list(words.state_dict()))

# %% [markdown] slide="subslide"
# ## One tensor, two ways to it

# %% [markdown] slide="notes"
# Both arrows end at one tensor. A gradient will come from both sides and be
# added.

# %% slide="more" show="output"
viz.module_tree(words)

# %% [markdown]
# One parameter, or the optimizer would step twice with one gradient; two
# names, so that a file fits, whichever layer asks for its values.
#
# ### Two modes
#
# Some layers do one thing while they are trained and another afterwards.
# Dropout sets numbers to 0 at random, so that no unit can rely on another.
# **Predict** the values below: the probability of a 0 is 0.8, and the input is
# ten ones. What is *not* 0?

# %% [markdown] slide="subslide"
# ## Dropout of ten ones: what is left?

# %% [markdown] slide="notes"
# In training about one in five is left, scaled by five. In evaluation nothing
# happens.

# %% slide="more"
torch.manual_seed(1)
drop = nn.Dropout(0.8)
print(drop(torch.ones(10)))
mean = drop(torch.ones(100_000)).mean().item()
print(f"mean of 100,000: {mean:.1f}")
print(drop.eval()(torch.ones(10)))

# %% [markdown]
# Those that are left become 5, five times as much, since only a fifth of them
# is there. So the *sum* that the next layer sees stays what it was, on
# average, and in evaluation nothing has to be done at all.
#
# Which mode it is, is an attribute of every module: `training`. `train()` and
# `eval()` walk the tree and set it. They do **not** switch gradients off; that
# is `torch.no_grad()`, and the two have nothing to do with each other.
#
# ### State that is not learned
#
# A batch norm subtracts the mean of the batch and divides by its deviation. In
# evaluation there may be no batch, only one example. So in training it keeps
# running averages of the means and variances it has seen. Such a tensor is no parameter, because
# no gradient leads to it. But it must be saved, and moved to the GPU with the
# rest. It is a **buffer**.

# %% [markdown] slide="subslide"
# ## A batch norm's running averages

# %% [markdown] slide="notes"
# Batch norm keeps running averages as buffers: saved, moved, but not learned.

# %% slide="more"
torch.manual_seed(2)
norm = nn.BatchNorm1d(1)
means, variances = [], []
for _ in range(60):
    norm(5 + 2 * torch.randn(16, 1))  # mean 5, variance 4
    means.append(norm.running_mean.item())
    variances.append(norm.running_var.item())
print([name for name, _ in norm.named_parameters()])
print([name for name, _ in norm.named_buffers()])

# %% [markdown] slide="subslide"
# ## The running averages, batch by batch

# %% [markdown] slide="notes"
# The averages approach the true values slowly. Ask what happens if one
# evaluates after three batches.

# %% slide="more" show="output"
figure, axes = plt.subplots(figsize=(7.2, 2.5))
axes.plot(range(1, 61), means, label="running mean, of 5")
axes.plot(range(1, 61), variances, label="running variance, of 4")
axes.set_xlabel("batches of 16 seen")
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# It starts at 0 and 1 and moves by a tenth of the distance towards each new
# batch. After some twenty batches it has arrived, and from then on it trembles
# a little, as each batch is a different sample.
#
# ### How a signal gets through
#
# Each output of a layer is a sum $y = \sum_{i=1}^n w_i x_i$. Let the weights be
# independent, with mean 0 and variance $\operatorname{Var} w$. The variance of a
# sum of independent terms is the sum of their variances, and a term with
# $E\,w = 0$ has the variance $\operatorname{Var}(w)\,E[x^2]$:
#
# $$E[y^2] = n \cdot \operatorname{Var}(w) \cdot E[x^2].$$
#
# If $n \operatorname{Var}(w) = 1$, the mean square of the signal stays as it is.
# Otherwise it grows or shrinks by the same factor **in every layer**. Below are
# fifteen layers of width 100 with `tanh`, with weights drawn in three ways.

# %%
def deep(start, act=nn.Tanh, layers=15, n=100):
    """A stack of layers whose weights are drawn by start(weight)."""
    torch.manual_seed(0)
    net = nn.Sequential()
    for _ in range(layers):
        net.append(nn.Linear(n, n, bias=False))
        net.append(act())
    net.apply(lambda m: start(m.weight) if hasattr(m, "weight") else None)
    return net


# %% [markdown] slide="subslide"
# ## Fifteen layers, three ways to begin

# %% [markdown] slide="notes"
# Step through the layers. One start dies out, one explodes, and Xavier keeps
# the size.

# %% keep=true slide="more" show="output"
nets = {
    "deviation 0.05": deep(lambda w: nn.init.normal_(w, std=0.05)),
    "deviation 0.5": deep(lambda w: nn.init.normal_(w, std=0.5)),
    "Xavier": deep(nn.init.xavier_normal_),
}
for net in nets.values():
    net.double()  # with 16 digits, the same picture on every processor
x = torch.randn(50, 100).double()
viz.signal(nets, x, kind=nn.Tanh, span=1.1)

# %% [markdown]
# Press *Next*. On the left the signal halves in each layer:
# after fifteen of them all examples look the same, which is 0. In the middle
# it grows until every `tanh` is near -1 or 1, where its derivative is near 0
# and no gradient comes back. On the right it keeps its size.
#
# **Xavier** (Glorot and Bengio, 2010) draws with the variance
# $2/(n_{in} + n_{out})$: $1/n_{in}$ would be right for the forward pass,
# $1/n_{out}$ for the backward pass, and this is between the two. **Kaiming**
# (He and others, 2015) is for ReLU, which throws half of the signal away:
# $2/n_{in}$.

# %% [markdown] slide="slide"
# ## Build
#
# Six exercises:
#
# 1. the **assignment** that registers
# 2. **every parameter**, by name
# 3. a **linear layer** and its random start
# 4. **loading** a state
# 5. a **batch norm**, in training and after
# 6. **watching** a network with hooks
#
# Exercises 1, 2 and 4 have an injection point: every module of toytorch will
# run on them.

# %% [markdown] slide="notes"
# Exercise 1 live: fill in the first two rows of the table and run the check;
# the room says which row is missing from the panel. In exercise 2 ask for the
# shared weight before anyone types.

# %% exercise="modules.register" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fourteen minutes. Assigning again must remove the old entry from the other
# dictionaries.

# %% check="modules.register" points=3

# %% [markdown]
# While this block lasts, the `=` of every module in toytorch is yours, also
# inside an `nn.Transformer`, which is made of dozens.

# %%
with exercise("modules.register").active():
    big = nn.Transformer(32, 4, 2, 2, 64)
print(len(list(big.modules())), "modules,",
      len(list(big.parameters())), "parameters")

# %% exercise="modules.parameters" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twelve minutes, optional. A shared parameter appears once; that is what
# `seen` is for.

# %% check="modules.parameters" points=3

# %%
with exercise("modules.parameters").active():
    names = [name for name, _ in big.named_parameters()]
print(names[0])
print(names[-1])

# %% exercise="modules.linear" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twelve minutes, optional. Each row is one output, as in PyTorch. The bound
# comes from the number of inputs.

# %% check="modules.linear" points=2

# %% exercise="modules.load" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twelve minutes, optional. The tensors of the state share memory with the
# module, so copying into them is enough.

# %% check="modules.load" points=3

# %% exercise="modules.batchnorm" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eighteen minutes. The mean and variance belong to the graph. Only the
# running averages are written without it.

# %% check="modules.batchnorm" points=3

# %% [markdown]
# You wrote the forward pass; autograd found the gradient. It is worth seeing
# once what it found. For one feature, let $g_k$ be the gradient of $y_k$, and
# $h_k = g_k \cdot \text{weight}$. Then, with $\hat x_k$ for the normalised
# values and $\sigma = \sqrt{\text{var} + \varepsilon}$,
#
# $$\frac{\partial L}{\partial x_k} = \frac{1}{\sigma} \Big(
#   h_k - \text{mean}(h) - \hat x_k \cdot \text{mean}(h \hat x) \Big).$$
#
# <details><summary>The derivation</summary>
#
# Let $m$ be the mean and $v$ the variance of $x_1, \dots, x_n$, so that
# $\hat x_i = (x_i - m)/\sigma$ and $y_i = \hat x_i \cdot \text{weight} +
# \text{bias}$. The chain rule, through all $y_i$:
#
# $$\frac{\partial L}{\partial x_k}
#   = \sum_i h_i \, \frac{\partial \hat x_i}{\partial x_k}.$$
#
# **The mean.** $\partial m / \partial x_k = 1/n$.
#
# **The variance.** $v = \frac1n \sum_i (x_i - m)^2$, so
# $\frac{\partial v}{\partial x_k} = \frac2n \sum_i (x_i - m)
# (\delta_{ik} - \frac1n)$, where $\delta_{ik}$ is 1 for $i = k$ and else 0.
# The part with $\frac1n$ vanishes, because $\sum_i (x_i - m) = 0$. There
# remains $\frac{\partial v}{\partial x_k} = \frac2n (x_k - m)$.
#
# **The root.** $\frac{\partial \sigma}{\partial x_k}
# = \frac{1}{2\sigma} \cdot \frac2n (x_k - m) = \frac{\hat x_k}{n}$.
#
# **The quotient.** With these three,
#
# $$\frac{\partial \hat x_i}{\partial x_k}
#   = \frac{\delta_{ik} - \frac1n}{\sigma}
#   - \frac{x_i - m}{\sigma^2} \cdot \frac{\hat x_k}{n}
#   = \frac1\sigma \Big( \delta_{ik} - \frac1n
#   - \frac{\hat x_i \hat x_k}{n} \Big).$$
#
# Multiply by $h_i$ and add up over $i$: the first part gives $h_k$, the second
# the mean of $h$, the third $\hat x_k$ times the mean of $h \hat x$.
#
# </details>
#
# Two parts are subtracted: what all examples have in common, and what is
# proportional to $\hat x$. A constant added to all $x$, or a factor on all of
# them, changes no output, so the gradient has no part in these directions. The
# cell compares the formula with autograd, on your layer:

# %%
torch.manual_seed(3)
norm = use("modules.batchnorm")(2)
x = torch.randn(6, 2, requires_grad=True)
g = torch.randn(6, 2)
(by_autograd,) = torch.autograd.grad(norm(x), x, g)
with torch.no_grad():
    sigma = (x.var(0, correction=0) + norm.eps).sqrt()
    x_hat, h = (x - x.mean(0)) / sigma, g * norm.weight
    by_formula = (h - h.mean(0) - x_hat * (h * x_hat).mean(0)) / sigma
print("the same:", torch.allclose(by_autograd, by_formula, atol=1e-5))

# %% exercise="modules.watch" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twelve minutes. The hooks must be removed again, also when the network
# raises an error.

# %% check="modules.watch" points=2

# %% [markdown] slide="slide"
# ## Plug in: a deep network on your code
#
# Ten layers that read digits. All of it is yours now: the layers, the norm,
# the `=` that registers them, and the walk that finds the parameters.

# %% [markdown] slide="notes"
# From here on the network uses the functions of the chapter. Check that all are
# green before class.

# %% slide="more"
from toytorch.vision import datasets

images, labels = datasets.digits(train=True)
test_images, test_labels = datasets.digits(train=False)
for piece in ("register", "parameters", "load"):
    exercise(f"modules.{piece}").install()

Affine, Norm = use("modules.linear"), use("modules.batchnorm")


# %% [markdown] slide="subslide"
# ## Ten layers, with a norm or without

# %% [markdown] slide="notes"
# The only difference is the norm after each layer. Ask which of the two will
# learn.

# %% slide="more"
class Reader(nn.Module):
    """Ten layers, with a batch norm after each but the last, or none."""

    def __init__(self, normed, width=48, hidden=9):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten())
        for size in [64] + [width] * (hidden - 1):
            self.body.append(Affine(size, width))
            if normed:
                self.body.append(Norm(width))
            self.body.append(nn.ReLU())
        self.head = Affine(width, 10)

    def forward(self, images):
        return self.head(self.body(images))


# %% [markdown]
# `Affine` is your `Linear`, which starts as PyTorch's does. **Predict:** of the
# two networks below, with and without batch norm, what does each read after
# six epochs? The test is 360 digits, and who guesses is right in 10 % of them.

# %% [markdown] slide="subslide"
# ## Train both

# %% [markdown] slide="notes"
# Same seed, same data, same optimizer. Only the network differs.

# %% slide="more"
def train(model, epochs=6, size=32):
    """Trains with SGD and momentum; the loss of each epoch."""
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    history = []
    for _ in range(epochs):
        total = 0.0
        for some in torch.randperm(len(labels)).split(size):
            scores = model(images[some])
            loss = nn.functional.cross_entropy(scores, labels[some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(some) / len(labels)
        history.append(total)
    return history


# %%
def accuracy(model):
    """The share of test digits that are read right."""
    model.eval()
    with torch.no_grad():
        guesses = model(test_images).argmax(1)
    return (guesses == test_labels).float().mean().item()


# %% [markdown] slide="subslide"
# ## What does each of them read?

# %% [markdown] slide="notes"
# Ask for a guess of both accuracies before you run the cell.

# %% slide="more"
readers, histories = {}, {}
for name, normed in (("plain", False), ("with batch norm", True)):
    torch.manual_seed(7)
    readers[name] = Reader(normed)
    histories[name] = train(readers[name])

right = {name: accuracy(model) for name, model in readers.items()}
print("plain: below 50 %:", right["plain"] < 0.5)
print("with batch norm: above 90 %:", right["with batch norm"] > 0.9)

# %% [markdown]
# The plain one has not begun. Your `sizes` shows why: here is the size of the
# signal after each layer, *before* any training.

# %% [markdown] slide="subslide"
# ## Why the plain one stands still

# %% [markdown] slide="notes"
# The signal of the plain network shrinks from layer to layer, and so does its
# gradient.

# %% slide="more" show="output" varies=true
sizes_of = use("modules.watch")
figure, (left, right_ax) = plt.subplots(1, 2, figsize=(8.6, 3))
for name, normed in (("plain", False), ("with batch norm", True)):
    torch.manual_seed(7)
    fresh = Reader(normed)
    found = sizes_of(fresh, images[:200])
    after = [s for n, s in found.items()
             if isinstance(fresh.get_submodule(n), nn.ReLU)]
    left.plot(range(1, len(after) + 1), after, "o-", ms=4, label=name)
    right_ax.plot(range(1, 7), histories[name], "o-", ms=4,
                  label=f"{name}: {right[name]:.0%} right")
left.set(xlabel="layer", ylabel="size, untrained", ylim=(0, None))
right_ax.set(xlabel="epoch", ylabel="loss", ylim=(0, None))
right_ax.legend()
figure.tight_layout()
plt.show()

# %% [markdown]
# Without the norm the signal falls for some layers and then stays where it is.
# But what stays is no signal: it comes from the biases, and they are the same
# for all images. The last layer does not know what the first was shown.
#
# Compare what the outputs of different images have in common with what tells
# them apart, in an untrained plain network:

# %%
torch.manual_seed(7)
with torch.no_grad():
    scores = Reader(normed=False)(images)
print(f"common to all images: {scores.mean(0).square().mean().sqrt():.2f}")
print(f"between the images:   {scores.std(0).square().mean().sqrt():.4f}")

# %% [markdown]
# Save the good one, and load it into a new network through *your* `load_state`:

# %% [markdown] slide="subslide"
# ## Save one, load it into another

# %% [markdown] slide="notes"
# A state is a dictionary of names and tensors. The copy has other memory and
# the same numbers.

# %% slide="more"
model = readers["with batch norm"]
copy = Reader(normed=True)
print("before:", accuracy(copy) == accuracy(model))
print(copy.load_state_dict(model.state_dict()))
same = torch.equal(copy.eval()(test_images), model(test_images))
print("after: the same outputs for every digit:", same)

# %%
for piece in ("register", "parameters", "load"):
    exercise(f"modules.{piece}").uninstall()  # back to toytorch's own

# %% [markdown] slide="slide"
# ## Your own package: modules
#
# Registries make toytorch's modules quick to walk. Your package does without:
# its `Module` looks at its own attributes whenever it is asked. `Tensor` is
# yours from chapter 04, or the course's. `Module` is what the second exercise
# stands on: yours, as soon as you have written it in the first.

# %% [markdown] slide="notes"
# The package does without registries. Ask what is lost when parameters are
# searched for at each request.

# %%
import numpy as np

from mytorch.module import Module
from mytorch.tensor import Tensor

# %% exercise="modules.module" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Forty minutes, homework. The attributes in the table decide what the walk
# has to look at.

# %% check="modules.module" points=5

# %% exercise="modules.layer" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twelve minutes. It stands on the `Module` of the exercise before it.

# %% check="modules.layer" points=2

# %% [markdown] slide="slide"
# ## Look inside
#
# What `model(x)` does: without hooks, it is just `forward`.

# %% [markdown] slide="notes"
# Without hooks the call is just forward. Everything else in here is for those
# who hook.

# %% slide="more" show="output"
look(nn.Module.__call__)

# %% [markdown]
# The `=` sign of all modules asks the questions of your `register`, in the
# same order:

# %%
look(nn.Module.__setattr__, register)

# %% [markdown]
# It gives PyTorch's error messages. PyTorch's own stands in
# `torch/nn/modules/module.py`, about a hundred lines. Its opposite is
# `__getattr__`, which Python calls when a name is *not* in `__dict__`: it looks
# into the three tables. And so a list is not found. `self.blocks = [...]` is
# neither parameter nor module, and nobody looks inside.
#
# The walk:

# %%
look(nn.Module._named, named_parameters)

# %% [markdown]
# Theirs serves parameters and buffers alike, and walks over modules first.

# %% [markdown] slide="slide"
# ## Measure: how far does a signal get?
#
# `nn.Linear` draws its weights uniformly from $-1/\sqrt n$ to $1/\sqrt n$. The
# variance of such numbers is $1/(3n)$. After it comes a ReLU, which throws
# away half of what arrives. **Predict** the factor by which one layer changes
# the size of the signal (a root!), and what is left after thirty.

# %% [markdown] slide="notes"
# Predict the factor for one layer, then its thirtieth power. A factor
# slightly below one is enough to lose the signal.

# %% [markdown] slide="subslide"
# ## What is left after thirty layers?

# %% [markdown] slide="notes"
# Kaiming's start is made for ReLU: the size stays. Compare with the
# prediction of the slide before.

# %% slide="more"
def default(weight):
    nn.init.uniform_(weight, -1 / weight.shape[1] ** 0.5,
                     1 / weight.shape[1] ** 0.5)


def kaiming(weight):
    nn.init.kaiming_normal_(weight, nonlinearity="relu")


for start in (default, kaiming):
    net = deep(start, act=nn.ReLU, layers=30, n=200)
    with torch.no_grad():
        y = net(torch.randn(100, 200))
    size = y.square().mean().sqrt().item()
    factor = size ** (1 / 30)
    print(f"{start.__name__:<8} {factor:.1f} a layer,",
          f"10 to the {math.log10(size):.0f} after 30")

# %% [markdown]
# $\sqrt{1/3 \cdot 1/2} = 0.41$, and $0.41^{30}$ is about $10^{-12}$. This
# default is an accident of history that nobody dares to change. It does little
# harm, because networks that deep have norms, as yours had, or residual
# connections.
#
# And what does a module cost? `layer(x)` is Python code around a function.
# **Predict:** for one example of 64 elements, how much longer than the
# function alone?

# %%
import time


def best(work, times=3_000):
    """Microseconds for one call, the best of five rounds."""
    rounds = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(times):
            work()
        rounds.append(time.perf_counter() - begin)
    return min(rounds) / times * 1e6


# %% [markdown] slide="subslide"
# ## What does a module cost?

# %% [markdown] slide="notes"
# A module costs a fraction of a small product. Hooks cost a little more. For
# large layers neither is seen.

# %% slide="more" varies=true
layer, x = nn.Linear(64, 64), torch.randn(1, 64)
w, b = layer.weight, layer.bias
with torch.no_grad():
    bare = best(lambda: nn.functional.linear(x, w, b))
    called = best(lambda: layer(x))
    with layer.register_forward_hook(lambda *_: None):
        hooked = best(lambda: layer(x))
print(f"function {bare:.1f} µs, module {called:.1f} µs,",
      f"module with a hook {hooked:.1f} µs")

# %% [markdown] slide="slide"
# ## Traps
#
# Run on purpose. Read the last line of each error.

# %% [markdown] slide="notes"
# Both errors come from `__setattr__`. Ask what it looks at when a tensor is
# assigned.

# %% raises=true slide="more"
class Forgot(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2)  # without super().__init__()


Forgot()

# %% raises=true slide="more"
layer = nn.Linear(2, 2)
layer.weight = layer.weight * 0.5  # a product is no parameter

# %% [markdown]
# To change the *values*, write into the parameter:
# `with torch.no_grad(): layer.weight.mul_(0.5)`.

# %% [markdown] slide="subslide"
# ## Traps: a state that does not fit

# %% [markdown] slide="notes"
# All that is missing and all that does not fit is listed in one message. Read
# it line by line.

# %% raises=true slide="more"
small, large = nn.Linear(2, 2), nn.Linear(3, 2, bias=False)
large.load_state_dict(small.state_dict())

# %% raises=true
nn.BatchNorm1d(4)(torch.ones(1, 4))  # the variance of one example?

# %% [markdown]
# In evaluation, the last one works: `eval()` was forgotten. When there is no
# batch norm to complain, nothing does. Three that are silent:

# %% [markdown] slide="subslide"
# ## Traps that say nothing

# %% [markdown] slide="notes"
# Without `eval` each answer is another one. This is the most common mistake
# with dropout.

# %% slide="more"
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
x = torch.ones(1, 4)
print("without eval:", [f"{net(x).sum().item():.1f}" for _ in range(3)])
net.eval()
print("with eval:   ", [f"{net(x).sum().item():.1f}" for _ in range(3)])

# %% [markdown] slide="subslide"
# ## A backup that is none

# %% [markdown] slide="notes"
# The state shares memory with the layer, so it changes with it. A copy is a
# copy only after `clone` or `deepcopy`.

# %% slide="more"
layer = nn.Linear(2, 1)
best_so_far = layer.state_dict()  # meant as a backup
with torch.no_grad():
    layer.weight.fill_(99.0)  # and training goes on
print(best_so_far["weight"])

# %% [markdown]
# `state_dict()` is no copy: it names the memory that is being trained. A
# backup is `copy.deepcopy(model.state_dict())`, or a file.

# %% [markdown] slide="subslide"
# ## First the network, then the optimizer

# %% [markdown] slide="notes"
# The optimizer holds the old tensors. New layers have to be made before it,
# or added as a group.

# %% slide="more"
net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net[1] = nn.Linear(2, 1)  # a new last layer, after the optimizer
known = {id(p) for g in optimizer.param_groups for p in g["params"]}
print([id(p) in known for p in net.parameters()])

# %% [markdown]
# The optimizer trains the old last layer, which nobody uses any more.

# %% [markdown] slide="slide"
# ## Beyond
#
# * A `list` is not looked into, because an object cannot know when its list is
#   appended to. Could a framework find parameters when they are *asked for*,
#   by walking over `__dict__`? What would be lost?
# * A state is saved by name. What becomes of old files when somebody renames
#   an attribute? How would you let both load? (PyTorch: `_version`.)
# * Batch norm makes examples depend on each other. Where would that leak, if
#   a batch holds all examples of one class?
# * With `write.weight = read.weight`, the shared tensor gets two gradients.
#   Where do they meet? (Chapter 04.)
#
# **Next:** chapter 08 gives these parameters something to reduce, and decides
# which way to step.

# %% [markdown] slide="notes"
# The first question is about design. The package of the exercise is one of
# the two answers.

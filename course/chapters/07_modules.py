# %% [markdown] slide="slide"
# # 07 · Modules: networks as trees
#
# Until now a network was a few tensors, and you kept a list of them. A larger
# network has hundreds. You write `self.layer = nn.Linear(64, 32)`, as for any
# Python object, and later `model.parameters()` gives every parameter in it.
#
# > **The question of this chapter:** how does a module find its parameters
# > without a list, and when does it *not* find them?

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
# A **module** holds **parameters**, which are tensors that are to be learned, and
# other modules. So a network is a tree, and its parameters are the leaves. The
# name of a parameter is the path to it: `blocks.0.weight`.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# The argument `box` says in what kind of container `Net` keeps its three blocks.
# In the picture it was an `nn.ModuleList`. A plain Python `list` can hold three
# layers as well. Does the network with the list still compute a result? And how
# many elements do its parameters have, if it is 5,578 in the picture?

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
# It runs, and more than half of the parameters are missing. The three blocks take
# part in every computation, but they keep their random initial weights. They are
# never trained, moved or saved. There is no error and no warning. The network
# only learns less well than it could.
#
# The reason is what happens in the assignment `self.blocks = …`. You will write
# the function that is called by this assignment.

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
# The names come in the order of the assignments in `__init__`. An `nn.Parameter`
# is a tensor of a subclass that has one purpose: it says that the tensor is to be
# learned. A plain tensor is stored as an ordinary attribute and is not listed.

# %%
layer = nn.Linear(2, 3)
layer.note = torch.ones(4)  # a plain tensor
layer.scale = nn.Parameter(torch.ones(4))
print([name for name, _ in layer.named_parameters()])
print(isinstance(layer.scale, torch.Tensor), layer.scale.requires_grad)

# %% [markdown]
# ### One parameter, two names
#
# A language model reads a word by looking up its row in a table. It writes a word
# by comparing a vector with the rows of a table. Often both use *the same* table,
# and one assignment is enough for that. **Predict:** how many parameters does the
# model below have? How many names are in its `state_dict()`?

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
# ## One tensor, two paths to it

# %% [markdown] slide="notes"
# Both arrows end at one tensor. A gradient will come from both sides and be
# added.

# %% slide="more" show="output"
viz.module_tree(words)

# %% [markdown]
# The parameter is listed once, because otherwise an optimizer would update it
# twice in each step. The state has both names, so that each layer finds its
# values in the file under its own name.
#
# ### Two modes
#
# Some layers behave differently in training and afterwards. Dropout sets elements
# to 0 at random, so that no unit can rely on a single other one. **Predict** the
# values below: the probability of a 0 is 0.8, and the input is ten ones. Which
# value do the elements have that are *not* 0?

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
# The elements that are left become five times as large, because only a fifth of
# them is left. So the *sum* that the next layer computes stays the same on
# average. In evaluation, dropout returns its input unchanged.
#
# The mode is an attribute of every module: `training`. `train()` and `eval()` set
# it in the whole tree. They do **not** switch gradients off. `torch.no_grad()`
# does that, and it does not change the mode.
#
# ### State that is not learned
#
# A batch norm subtracts the mean of the batch and divides by its standard
# deviation. In evaluation there may be only one example. So during training it
# keeps running averages of the means and variances, and uses them in evaluation.
#
# These averages are not parameters, because they are not learned with gradients.
# But they must be saved, and moved to the GPU with the rest. Such a tensor is a
# **buffer**.

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

# %% slide="more" folded=true
figure, axes = plt.subplots(figsize=(7.2, 2.5))
axes.plot(range(1, 61), means, label="running mean, of 5")
axes.plot(range(1, 61), variances, label="running variance, of 4")
axes.set_xlabel("batches of 16 seen")
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# The averages start at 0 and 1. Each batch moves them by a tenth of the distance
# towards its own mean and variance. After some twenty batches they are close to 5
# and 4. From then on they vary a little, because each batch is another sample.
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
# Press *Next*. On the left the signal is halved in each layer. After fifteen
# layers it is close to 0 for all examples. In the middle it grows until nearly
# every `tanh` is close to -1 or 1. There the derivative is close to 0, and so is
# the gradient that is passed back. On the right the signal keeps its size.
#
# **Xavier** initialization (Glorot and Bengio, 2010) uses the variance
# $2/(n_{in} + n_{out})$. The forward pass needs $1/n_{in}$, the backward pass needs
# $1/n_{out}$, and this value is between the two. **Kaiming** initialization (He and
# others, 2015) uses $2/n_{in}$. It is for ReLU, which sets half of the signal to 0,
# so the variance has to be twice as large.

# %% [markdown] slide="slide"
# ## Build
#
# Six exercises, and two for your own package:
#
# 1. the **assignment** that registers
# 2. **every parameter**, by name
# 3. a **linear layer** and its random start
# 4. **loading** a state
# 5. a **batch norm**, in training and after
# 6. **watching** a network with hooks
# 7. a **Module** of your own, and a **Linear** on it
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
# Inside this block every module in toytorch uses your function for its assignments.
# An `nn.Transformer` consists of dozens of modules:

# %%
with exercise("modules.register").active():
    big = nn.Transformer(32, 4, 2, 2, 64, batch_first=True)
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
# You wrote the forward pass, and autograd computes the gradient. What is that
# gradient as a formula? For one feature, let $g_k$ be the gradient of $y_k$, and
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
# Two parts are subtracted from $h$: its mean, and its component along $\hat x$.
# The reason is that two changes of the batch leave every output as it is: adding a
# constant to all $x$, and multiplying all deviations from the mean by a factor. So
# the gradient has no component in these directions. The cell compares the formula
# with autograd, on your layer:

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
# A network of ten layers reads digits. It runs on your code: the layers, the norm,
# the assignment that registers them, and the walk that finds the parameters.

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
# `Affine` is your `Linear`, with PyTorch's initial weights. **Predict:** which
# share of the 360 test digits does each network read right after six epochs, with
# and without batch norm? A network that guesses is right in 10 % of them.

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
# The plain network has hardly begun to learn. Your `sizes` shows why. The left plot
# has the size of the signal after each layer, *before* any training.

# %% [markdown] slide="subslide"
# ## Why the plain network does not learn

# %% [markdown] slide="notes"
# The signal of the plain network shrinks from layer to layer, and so does its
# gradient.

# %%
sizes_of = use("modules.watch")

# %% slide="more" folded=true varies=true
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
# Without the norm the size falls for some layers and then stays the same. What
# stays comes from the biases, which are the same for all images. So the last layer
# gets almost no information about the image.
#
# The next cell measures this in an untrained plain network. It compares the part
# of the outputs that is common to all images with the differences between images:

# %%
torch.manual_seed(7)
with torch.no_grad():
    scores = Reader(normed=False)(images)
print(f"common to all images: {scores.mean(0).square().mean().sqrt():.2f}")
print(f"between the images:   {scores.std(0).square().mean().sqrt():.6f}")

# %% [markdown]
# Save the network with batch norm, and load it into a new network through *your*
# `load_state`:

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
# toytorch's modules keep dictionaries of what was assigned. Your package does it
# more simply: its `Module` looks at its own attributes whenever it is asked. The
# first exercise is this `Module`. The second one uses it, and `Tensor` from chapter
# 04. Where you have not written them, the course's own files are used.

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
# This is what `model(x)` does. Without hooks it only calls `forward`.

# %% [markdown] slide="notes"
# Without hooks the call is just forward. Everything else in here is for those
# who hook.

# %% slide="more" show="output"
look(nn.Module.__call__)

# %% [markdown]
# This is the assignment of all modules. It asks the same questions as your
# `register`, in the same order:

# %%
look(nn.Module.__setattr__, register)

# %% [markdown]
# It raises the same error messages as PyTorch. PyTorch's own function is in
# `torch/nn/modules/module.py` and has about a hundred lines. For reading there is
# `__getattr__`, which Python calls when a name is *not* in `__dict__`. It looks
# into the three dictionaries.
#
# Now it is clear why layers in a list are not found. In `self.blocks = [...]` the
# value is neither a parameter nor a module, so it becomes an ordinary attribute.
#
# This is the walk over the tree:

# %%
look(nn.Module._named_members, named_parameters)

# %% [markdown]
# toytorch's function is used for parameters and for buffers. It first lists the
# modules and then looks into each of them.

# %% [markdown] slide="slide"
# ## Measure: how far does a signal get?
#
# `nn.Linear` draws its weights uniformly from $-1/\sqrt n$ to $1/\sqrt n$. Their
# variance is $1/(3n)$. After it comes a ReLU, which halves the mean square.
# **Predict** the factor by which one layer changes the size of the signal, and the
# factor for thirty layers. The size is the *root* of the mean square.

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
# $\sqrt{1/3 \cdot 1/2} = 0.41$, and $0.41^{30}$ is about $10^{-12}$. PyTorch has
# had this default since its beginning, and a change would change the results of
# many programs. It does little harm, because networks of that depth have norms, as
# yours had, or residual connections.
#
# And what does a module cost? `layer(x)` is Python code around a function.
# **Predict:** for one example of 64 elements, how much longer does it take than
# the function alone?

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
# In evaluation the last line works, so here `eval()` was forgotten. Batch norm
# raises an error for a single example. Other layers raise none. The next three
# mistakes raise no error:

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
# `state_dict()` is not a copy: its tensors share the memory that is being trained.
# Make a backup with `copy.deepcopy(model.state_dict())`, or save to a file.

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
# The optimizer trains the old last layer, which is no longer part of the
# network.

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** Which parameters does the network list?
#
# ```python
# class Net(torch.nn.Module):
#     def __init__(self):
#         super().__init__()
#         self.first = torch.nn.Linear(2, 2)
#         self.more = {"second": torch.nn.Linear(2, 2)}
#
#
# print([name for name, _ in Net().named_parameters()])
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# ['first.weight', 'first.bias']
# ```
#
# `__setattr__` looks at the value that is assigned, and a dictionary is neither a
# parameter nor a module. So it becomes a plain attribute, and nobody looks into
# it. `nn.ModuleDict` is the module for this purpose.
#
# </details>
#
# **2.** Somebody wants a layer to start with half of its weights. What is printed?
#
# ```python
# layer = torch.nn.Linear(2, 1)
# layer.gain = torch.nn.Parameter(torch.ones(1)) * 0.5
# print([name for name, _ in layer.named_parameters()])
# layer.weight = layer.weight * 0.5
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# ['weight', 'bias']
# TypeError
# ```
#
# A product is a new tensor, and no longer an `nn.Parameter`. As `gain` it is
# stored as a plain attribute, without an error. The name `weight` belongs to a
# parameter, so it accepts only a parameter or `None`.
#
# </details>
#
# **3.** Does `no_grad` switch dropout off? Does `eval` switch gradients off?
#
# ```python
# torch.manual_seed(0)
# drop, x = torch.nn.Dropout(0.5), torch.ones(1000, requires_grad=True)
# with torch.no_grad():
#     print((drop(x) == 0).any().item())
# drop.eval()
# print((drop(x) == 0).any().item(), drop(x).requires_grad)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# True
# False True
# ```
#
# The two switches are independent. `no_grad` decides whether operations are
# recorded, and dropout does not ask for it. `eval` sets `training` to `False`,
# which dropout does ask for, and recording goes on as before.
#
# </details>
#
# **4.** A new batch norm sees one batch. What are its running mean and its result
# in evaluation?
#
# ```python
# norm = torch.nn.BatchNorm1d(1)
# norm(torch.tensor([[10.0], [30.0]]))
# print(f"{norm.running_mean.item():.1f} {norm.running_var.item():.1f}")
# norm.eval()
# print(f"{norm(torch.tensor([[2.0]])).item():.1f}")
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 2.0 20.9
# 0.0
# ```
#
# The running mean moves by a tenth from 0 towards 20, and the running variance by
# a tenth from 1 towards 200, which is divided by n - 1. In evaluation, these
# averages are used instead of the batch. The 2 is exactly the running mean, so
# the result is 0. After one batch the averages are still far from the data.
#
# </details>
#
# **5.** The hook returns something. What do the two calls give?
#
# ```python
# layer = torch.nn.ReLU()
# layer.register_forward_hook(lambda module, args, output: output * 10)
# x = torch.tensor([1.0, 2.0])
# print(layer(x).tolist(), layer.forward(x).tolist())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [10.0, 20.0] [1.0, 2.0]
# ```
#
# What a hook returns replaces the output, unless it is `None`. Hooks are run by
# the call `layer(x)`. `layer.forward(x)` is the method alone and runs no hooks.
#
# </details>
#
# **6.** Twenty layers of width 100 with `tanh` start with weights of variance 4/100.
# What happens to the signal, and what happens to the gradient? What if the
# variance is 1/400?
#
# <details><summary>Answer</summary>
#
# A layer multiplies the mean square of the signal by n · Var(w), which is 4. So
# the sums grow until nearly every `tanh` is close to -1 or 1. There its
# derivative is close to 0, and the gradient vanishes in the backward pass. With
# 1/400 the factor is 1/4: the signal is halved in each layer, and after twenty
# layers hardly anything of the input is left.
#
# </details>
#
# **7.** Why does a linear layer in front of a batch norm need no bias? Predict.
#
# ```python
# norm = torch.nn.BatchNorm1d(2)
# x = torch.tensor([[1.0, 5.0], [3.0, 9.0]])
# print(torch.allclose(norm(x), norm(x + 100), atol=1e-4))
# print(torch.allclose(norm(x), norm(x * 10), atol=1e-4))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# True
# True
# ```
#
# In training, the mean of the batch is subtracted. A constant that is added to
# all examples is part of that mean, so it disappears, and a bias is such a
# constant. A common factor is removed by the division in the same way. The batch
# norm has a bias of its own, which is added after this.
#
# </details>
#
# **8.** The first layer is frozen. Two numbers: how many parameters are listed, and
# how many are trained?
#
# ```python
# net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
# net[0].requires_grad_(False)
# print(len(list(net.parameters())),
#       sum(p.requires_grad for p in net.parameters()))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 4 2
# ```
#
# A frozen parameter stays a parameter. It is still part of what the network
# computes, so it has to be saved, loaded and moved. Only autograd leaves it out:
# it gets no gradient, and an optimizer skips it.
#
# </details>
#
# **9.** *Chapter 05.* The weight is written to twice. Which write is allowed?
#
# ```python
# layer = torch.nn.Linear(2, 2)
# before = layer.weight._version
# with torch.no_grad():
#     layer.weight.mul_(0.5)
# print(layer.weight._version - before)
# layer.weight.mul_(0.5)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 1
# RuntimeError
# ```
#
# A parameter is a leaf that requires a gradient. Recording a write to it would
# turn it into the result of an operation, so that is an error. Under `no_grad`
# nothing is recorded and the write is allowed. It still raises the version.
#
# </details>
#
# **10.** *Chapter 05.* The same in-place ReLU follows two modules. Why does only one
# network work?
#
# ```python
# for first in (torch.nn.Linear(2, 2), torch.nn.Tanh()):
#     net = torch.nn.Sequential(first, torch.nn.ReLU(inplace=True))
#     x = torch.ones(1, 2, requires_grad=True)
#     net(x).sum().backward()
#     print(type(first).__name__)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# Linear
# RuntimeError
# ```
#
# The derivative of a linear layer needs its input and its weight, and not its
# result. So the result may be overwritten. The derivative of `tanh` is computed
# from its result, 1 - y². The ReLU has overwritten that result, and the version
# check notices it.
#
# </details>

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

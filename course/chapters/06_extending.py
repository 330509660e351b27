# %% [markdown] slide="slide"
# # 06 · Extending autograd
#
# Sooner or later you need an operation that the framework does not have: a
# faster activation, a rounding through which a network can learn, a root that is
# found by a search. You have worked out its derivative. It may be wrong.
#
# > **The question of this chapter:** how do you add a new operation to the
# > graph, and how do you check that its derivative is right?

# %% [markdown] slide="notes"
# 45 minutes: question and prediction 5, a Function live 10, gradcheck on the
# whiteboard 8, double backward and HVP 6, straight-through 6, the circle 6,
# traps 4. The gradcheck is the exercise to insist on: they will use it for
# years.

# %% keep=true slide="more" show="output"
import warnings

import toytorch as torch
from course import check, exercise, hint, look, setup, use
from toytorch import viz
from toytorch.autograd import Function

setup()


def cubic(x):
    return x * x * x - 2 * x


viz.secants(cubic, 1.1)

# %% [markdown]
# The green tangent has the derivative that autograd computed as its slope. Press
# *Next* to check it. The red chord goes through two points of the curve, one step
# to the left and one step to the right. The plot on the right shows the
# difference between the chord's slope and the derivative.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# The smaller the step, the closer the chord is to the tangent. So of the
# steps 0.1, 0.000001 and 0.000000000001, which gives the best answer? Write
# down your choice, and how many digits it will get right.

# %% [markdown] slide="notes"
# Let everybody commit to one of the three steps. The middle one wins: below
# it rounding is worse than the curve.

# %% slide="more"
def error(f, x, step):
    """How far the central difference is from autograd's derivative."""
    x = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(f(x), x)
    with torch.no_grad():
        difference = (f(x + step) - f(x - step)) / (2 * step)
    return (difference - slope).abs().item()


for step in (1e-1, 1e-6, 1e-12):
    print(f"step {step:.0e}: off by {error(cubic, 1.1, step):.0e}")

# %% [markdown]
# The smallest step is far worse than the middle one, because there are two
# errors:
#
# * **Truncation.** A chord is not a tangent. This error is proportional to the
#   *square* of the step, so it shrinks with the step.
# * **Rounding.** For a small step the two values of `f` are nearly equal. Each is
#   exact to 16 digits, and most of these digits cancel in the difference. This
#   error is proportional to 1/step, so it grows as the step shrinks.
#
# The sum of both is smallest at about the cube root of the precision. For 16
# digits that is a step of 10⁻⁵ or 10⁻⁶.
#
# So the check works with float64 and a step of 10⁻⁶. `torch.autograd.gradcheck`
# does the same, and you will write your own.

# %% [markdown] slide="slide"
# ## Play: a Function
#
# A subclass of `Function` with two static methods is a new operation.

# %% [markdown] slide="notes"
# Two static methods and a context. Point at `save_for_backward`: an attribute
# would not be checked for versions.

# %% slide="more"
class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x


x = torch.tensor([1.0, 2.0], requires_grad=True)
y = Cube.apply(x)
print(y)
y.backward(torch.tensor([1.0, 10.0]))
print(x.grad)

# %% [markdown]
# * It is called through `apply`, which adds **one** node to the graph.
# * Inside `forward` nothing is recorded. So you may use NumPy, another language
#   or a search. The derivative is what you write in `backward`.
# * `ctx` keeps what `backward` needs. Tensors are saved with
#   `save_for_backward`, so that a later write to them is noticed (chapter 05).
# * `backward` gets the gradient of the result, and returns one gradient for each
#   input.
#
# The next two pictures show the same cube: first as two multiplications, which
# save `x` and its square, then as one node, which saves only `x`.

# %% [markdown] slide="subslide"
# ## A cube as two multiplications

# %% [markdown] slide="notes"
# Two nodes, and each keeps a tensor. Ask what the second picture will look
# like.

# %% slide="more" show="output"
viz.autograd_graph(x * x * x, params={"x": x})

# %% [markdown] slide="subslide"
# ## … and the same as one

# %% [markdown] slide="notes"
# One node, and one tensor kept. That is what a Function is for: fewer nodes
# and a derivative of one's own.

# %% slide="more" show="output"
viz.autograd_graph(Cube.apply(x), params={"x": x})

# %% [markdown]
# ### The derivative has a derivative
#
# `backward` is made of tensor operations. With `create_graph=True` autograd
# records them as well, so the result can be differentiated again. You do not have
# to write anything for this. **Predict** the second and third derivative of x³ at
# 2.

# %% [markdown] slide="subslide"
# ## Again and again

# %% [markdown] slide="notes"
# The derivative is itself differentiable, because backward is made of
# recorded operations.

# %% slide="more"
x = torch.tensor(2.0, requires_grad=True)
value = Cube.apply(x)
for order in (1, 2, 3):
    (value,) = torch.autograd.grad(value, x, create_graph=True)
    print("derivative", order, "is", value.item())

# %% [markdown]
# Below is the graph of the *first* derivative. Its nodes were recorded while
# `backward` ran. They are its two products with the saved `x`. Through them the
# derivative is connected to `x`, and therefore it can be differentiated again.

# %% [markdown] slide="subslide"
# ## The graph of a derivative

# %% [markdown] slide="notes"
# This is the graph of the derivative, not of the value. `create_graph=True`
# recorded the backward pass.

# %% slide="more" show="output"
x = torch.tensor(2.0, requires_grad=True)
(slope,) = torch.autograd.grad(Cube.apply(x), x, create_graph=True)
viz.autograd_graph(slope, params={"x": x}, saved=False)

# %% [markdown] slide="slide"
# ## Build
#
# Four exercises, and a larger one:
#
# 1. a **Function** of two inputs: the activation Swish
# 2. a **gradient check**
# 3. the derivative of a **search** (optional, the hardest of the chapter)
# 4. the **Hessian** times a vector
# 5. a **Function** of your own package, with its check

# %% [markdown] slide="notes"
# Exercise 1 live, with the mistake of keeping s: it passes the first
# derivative and fails the second, which is worth the two minutes. For
# exercise 3 draw the circle, and the step dx, dy along it.

# %% exercise="extending.swish" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty minutes. The gradient of beta is one number, so it is a sum over all
# elements. That is forgotten most often.

# %% check="extending.swish" points=3

# %% [markdown]
# The plot shows your Swish for $\beta = 1$ and its first two derivatives. The
# first one is computed by your `backward`. The second one is computed by
# autograd, which differentiates your `backward`.

# %% [markdown] slide="subslide"
# ## Swish, its first and its second derivative

# %% [markdown] slide="notes"
# The first derivative is positive for most inputs and negative for some. Ask
# where the function is flat.

# %%
import matplotlib.pyplot as plt

x = torch.linspace(-6, 6, 200, requires_grad=True)
y = use("extending.swish").apply(x, torch.tensor(1.0))
(slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
(second,) = torch.autograd.grad(slope.sum(), x)

# %% slide="more" folded=true
figure, axes = plt.subplots(figsize=(7.2, 3))
names = ("Swish", "first derivative", "second derivative")
for curve, name in zip((y, slope, second), names):
    axes.plot(x.detach().numpy(), curve.detach().numpy(), label=name)
axes.legend()
plt.show()

# %% exercise="extending.gradcheck" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Twenty minutes. Weights at random matter: with a plain sum, errors in
# several outputs can cancel.

# %% check="extending.gradcheck" points=4

# %% [markdown] slide="subslide"
# ### Straight through a step
#
# Rounding to multiples of 0.25 turns a curve into a staircase. The derivative of
# a staircase is 0 on every step, so no gradient reaches the parameters in front
# of the rounding. The *straight-through estimator* uses another derivative on
# purpose: `backward` passes the gradient on as if nothing had been rounded.

# %% [markdown] slide="notes"
# Rounded values have derivative 0 almost everywhere. The estimator is wrong
# on purpose, and useful.

# %% slide="more" show="output"
class Round(Function):
    """The nearest multiple of step; backward passes grad on."""

    @staticmethod
    def forward(ctx, x, step):
        return (x / step).round() * step

    @staticmethod
    def backward(ctx, grad):
        return grad, None


x = torch.tensor([0.1, 0.2, 0.9, -0.3], requires_grad=True)
y = Round.apply(x, 0.25)
y.backward(torch.tensor([1.0, 10.0, 0.3, -0.01]))
print(y.tolist())
print([round(g, 2) for g in x.grad.tolist()])

# %% [markdown]
# **Questions.** Why does `backward` return two values? What would happen to
# the elements of `x` if it returned `grad * 0`? And what if it rounded the
# gradient as well, to multiples of 0.25?
#
# <details><summary>Answers</summary>
#
# `forward` has two inputs besides `ctx`, and the engine pairs gradients with
# inputs by position. `x` gets a gradient. `step` is a number and gets `None`.
#
# `grad * 0` is the true derivative of a staircase. With it every gradient in
# front of the rounding is 0, and no weight there ever changes.
#
# Most gradients are small. Rounded to multiples of 0.25, -0.01 becomes 0 and 0.3
# becomes 0.25. Most gradients would become 0, and learning would stop.
#
# </details>

# %% exercise="extending.implicit" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eighteen minutes, optional. Derive the quotient on the whiteboard: moving along
# the curve, f stays 0.

# %% check="extending.implicit" points=3

# %% [markdown]
# Now the search is done by an optimizer, LBFGS. It minimises f(x, y)², and finds
# a y on the circle in this way. The derivative dy/dx at x = 0.5 should be
# -x/y = -0.5774.

# %%
def circle(x, y):
    return x * x + y * y - 1


def by_lbfgs(f, x):
    """A y > 0 with f(x, y) = 0, by making f squared small."""
    x = x.detach()
    y = torch.full_like(x, 0.7).requires_grad_()
    optimizer = torch.optim.LBFGS([y], max_iter=60, tolerance_change=0,
                                  line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        total = (f(x, y) ** 2).sum()
        total.backward()
        return total

    with torch.enable_grad():  # forward records nothing by itself
        optimizer.step(loss)
    return y.detach()


# %% [markdown] slide="subslide"
# ## A derivative through LBFGS

# %% [markdown] slide="notes"
# The search is an optimizer that autograd never sees. The derivative of the
# circle checks the result.

# %% slide="more"
root = use("extending.implicit")
x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
y = root.apply(x, circle, by_lbfgs)
y.sum().backward()
print(f"y = {y.item():.4f}, dy/dx = {x.grad.item():.4f}")

# %%
x = torch.tensor([-0.8, -0.4, 0.0, 0.5, 0.9], dtype=torch.float64)
x.requires_grad_()
y = root.apply(x, circle, by_lbfgs)
y.sum().backward()

# %% slide="more" folded=true
figure, axes = plt.subplots(figsize=(4.6, 2.9))
arc = torch.linspace(0, 3.1416, 100, dtype=torch.float64)
axes.plot(arc.cos().numpy(), arc.sin().numpy(), color="#7d8590")
for a, b, s in zip(x.tolist(), y.tolist(), x.grad.tolist()):
    b, s = round(b, 3), round(s, 3)  # a search ends near the root
    d = 0.22 / (1 + s * s) ** 0.5
    axes.plot([a - d, a + d], [b - s * d, b + s * d], color="#e2572b")
    axes.plot([a], [b], "o", color="#3b82c4")
axes.set_aspect("equal")
axes.set_title("found by a search, with slopes")
plt.show()

# %% exercise="extending.hvp" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Ten minutes. One backward pass through a backward pass. Nobody writes the
# Hessian down.

# %% check="extending.hvp" points=2

# %% [markdown] slide="slide"
# ## Plug in: your check over toytorch's operations
#
# Every operation of toytorch has a derivative that somebody wrote. **Predict:**
# will your check find a wrong one among those below?

# %% [markdown] slide="notes"
# Predict whether the check finds a wrong derivative. Then a mistake is built
# in, and it must find that one.

# %%
names = """exp log sin cos tan tanh sigmoid sqrt rsqrt square reciprocal
erf expm1 log1p log2 sinh cosh asinh atan abs softmax logsumexp cumsum
cumprod roll std var prod norm amax softplus gelu silu"""
x = (torch.rand(2, 3, dtype=torch.float64) + 0.2).requires_grad_()
w = (torch.rand(2, 3, dtype=torch.float64) + 0.3).requires_grad_()
functional = torch.nn.functional
tests = {}
for name in names.split():
    f = getattr(torch, name, None) or getattr(functional, name)
    if name in ("softmax", "logsumexp", "cumsum", "cumprod", "roll"):
        tests[name] = (lambda x, f=f: f(x, 1)), (x,)
    else:
        tests[name] = f, (x,)
for name in ("add", "sub", "mul", "div", "pow", "atan2", "hypot"):
    tests[name] = getattr(torch, name), (x, w)
tests["matmul"] = lambda x, w: x @ w.t(), (x, w)
tests["mse_loss"] = functional.mse_loss, (x, w)
tests["where"] = lambda x, w: torch.where(x > w, x, w), (x, w)
tests["index"] = lambda x: x[:, [0, 2, 0]], (x,)
tests["cat"] = lambda x, w: torch.cat([x, w * 2]), (x, w)
tests["einsum"] = lambda x, w: torch.einsum("ij,kj->ik", x, w), (x, w)
tests["solve"] = lambda x, w: torch.linalg.solve(
    x @ x.t() + torch.eye(2, dtype=x.dtype), w), (x, w)

# %% slide="more"
agree = use("extending.gradcheck")
bad = [name for name, (f, inputs) in tests.items()
       if not agree(f, *inputs)]
print(len(tests) - len(bad), "of", len(tests), "agree; not:", bad)

# %% [markdown]
# Now there is a mistake in an operation. The derivative of `tanh` is `1 - y²`,
# and in the cell below the square is missing. The program raises no error. What
# does your check say?

# %% slide="fragment"
with torch.ops.tanh.using(d_self=lambda g, result: g * (1 - result)):
    print("tanh with a mistake:", agree(torch.tanh, x))
print("tanh as it is:", agree(torch.tanh, x))

# %% [markdown] slide="slide"
# ### A network of your own operations
#
# The network has two layers with your Swish between them, and $\beta$ is learned
# like the weights. With `step=0.5` the weights are rounded to multiples of 0.5
# before they are used.

# %% [markdown] slide="notes"
# Weights that are multiples of one half cannot be trained by plain descent.
# Ask why before you go on.

# %% slide="more"
from toytorch.vision import datasets

images, labels = datasets.digits(train=True)
test_images, test_labels = datasets.digits(train=False)
images, test_images = images.double(), test_images.double()
swish = use("extending.swish").apply
rounded = Round.apply


def network(images, w1, b1, beta, w2, b2, step=None):
    if step is not None:  # the weights that are used, not those kept
        w1, w2 = rounded(w1, step), rounded(w2, step)
    return swish(images.flatten(1) @ w1 + b1, beta) @ w2 + b2


# %%
def start():
    torch.manual_seed(6)
    sizes = [(64, 32), (32,), (32, 10), (10,)]
    draws = [torch.randn(size).double() / 6 for size in sizes]
    draws.insert(2, torch.ones(()).double())  # beta
    return [w.requires_grad_() for w in draws]


cross_entropy = functional.cross_entropy


def train(step=None, epochs=12, size=32, rate=0.15):
    """Train; give the parameters back."""
    parameters = start()
    for _ in range(epochs):
        for some in torch.randperm(len(labels)).split(size):
            scores = network(images[some], *parameters, step)
            loss = cross_entropy(scores, labels[some])
            grads = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for p, g in zip(parameters, grads):
                    p -= rate * g
    return parameters


def right(parameters, step=None):
    """The share of unseen digits that are read right."""
    with torch.no_grad():
        guesses = network(test_images, *parameters, step).argmax(1)
    return (guesses == test_labels).float().mean().item()


# %% [markdown]
# **Predict** three numbers. How many digits are right with free weights? How
# many, if these weights are rounded *afterwards* to multiples of 0.5? And how
# many, if the network trained with rounded weights all along, its gradients
# passing straight through?

# %% [markdown] slide="subslide"
# ## Free, rounded afterwards, rounded all along

# %% [markdown] slide="notes"
# Compare the last two lines. Training with rounded weights is better than
# rounding at the end.

# %% slide="more"
free = train()
careful = train(step=0.5)
print(f"free weights                {right(free):.1%}")
print(f"rounded to 0.5 afterwards   {right(free, 0.5):.1%}")
print(f"rounded to 0.5 all along    {right(careful, 0.5):.1%}")

# %% slide="more"
values = rounded(careful[0].detach(), 0.5).add(0.0).unique().tolist()
print("the weights that are left:", values)
print("all along is better:", right(careful, 0.5) > right(free, 0.5))

# %% [markdown]
# The network keeps exact weights and *uses* rounded ones. The straight-through
# gradient is the derivative of the line which the staircase follows. It is not
# the derivative at any single place, but it has the right direction over several
# steps of the staircase.
#
# Many small changes add up in the exact weight, until it is rounded to the next
# multiple. Chapter 17 trains integer networks with this method.

# %% [markdown] slide="subslide"
# ## The weights that are kept, and those that are used

# %% [markdown] slide="notes"
# On the left what is kept, on the right what is used. The optimizer moves the
# left one by small steps.

# %% slide="more" folded=true
figure, both = plt.subplots(1, 2, figsize=(7.6, 2.6), sharey=True)
for axes, step, title in zip(both, (None, 0.5), ("kept", "used")):
    w = careful[0].detach()
    w = w if step is None else rounded(w, step)
    axes.hist(w.flatten().numpy(), bins=60, range=(-2, 2))
    axes.set_title(f"weights that are {title}")
plt.show()

# %% [markdown]
# ### An orbit, through a search
#
# Kepler's equation is $E - e \sin E = M$. $M$ is the time, $e$ the eccentricity
# of a comet's orbit, and $E$ an angle that says where the comet is. There is no
# formula for $E$, so a search has to find it.
#
# Now the other direction: from the places where the comet was seen, find $e$.
# Descent needs the derivative of the places with respect to $e$. Your `Implicit`
# computes it, although Newton's method does the search.

# %% [markdown] slide="subslide"
# ## The orbit of a comet: the search

# %% [markdown] slide="notes"
# Twenty steps of Newton's method, and none of them is recorded. The
# derivative needs only the result.

# %% slide="more"
def newton(f, x):
    """A y with f(x, y) = 0, by twenty steps of Newton's method."""
    x, y = x.detach(), torch.full_like(x, 3.0)
    for _ in range(20):
        y.requires_grad_()
        with torch.enable_grad():
            value = f(x, y)
            (slope,) = torch.autograd.grad(value.sum(), y)
        y = (y - value / slope).detach()
    return y


# %% [markdown] slide="subslide"
# ## From times to places

# %% [markdown] slide="notes"
# Kepler's equation has no closed solution. The implicit Function gives its
# derivative all the same.

# %% slide="more"
times = torch.linspace(0.3, 6.0, 12, dtype=torch.float64)  # M


def seen(e):
    """How far along its long axis the comet is, at all times."""
    def kepler(e, angle):
        return angle - e * angle.sin() - times

    angle = root.apply(e.expand(12), kepler, newton)
    return angle.cos() - e


# %% [markdown] slide="subslide"
# ## Found

# %% [markdown] slide="notes"
# The eccentricity is found from twelve places in the sky. Each step
# differentiated through a search.

# %% slide="more"
truth = seen(torch.tensor(0.6, dtype=torch.float64))
e = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
for step in range(21):
    loss = ((seen(e) - truth) ** 2).mean()
    (slope,) = torch.autograd.grad(loss, e)
    if step % 5 == 0:
        print(f"step {step:2}  e = {e.item():.4f}")
    with torch.no_grad():
        e -= 0.1 * slope

# %% [markdown] slide="slide"
# ## Your own package: Functions
#
# Your package gets a `Function` as well. `Tensor` is in `mytorch/tensor.py` since
# chapter 04 (if you have not written it, the course's own file is used). A
# `Function` adds operations to it, and its `check` compares their derivatives
# with difference quotients.

# %% [markdown] slide="notes"
# The class `Tensor` of chapter 04 gets new operations in the same way. This
# is the second large file.

# %%
import numpy as np

from mytorch.tensor import Tensor

# %% exercise="extending.function" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Thirty-five minutes, homework. Its own check with differences finds most
# mistakes.

# %% check="extending.function" points=5

# %% [markdown]
# In this class the derivative has the wrong sign. The check reports it:

# %%
class Cosine(use("extending.function")):
    def forward(self, x):
        self.x = x
        return np.cos(x)

    def backward(self, g):
        return g * np.sin(self.x)  # should be negative


try:
    Cosine.check(Tensor([0.5, 1.0], requires_grad=True))
except AssertionError as error:
    print(error)

# %% [markdown] slide="slide"
# ## Look inside: `apply`
#
# This is what happens in toytorch when you call `Cube.apply(x)`:

# %% [markdown] slide="notes"
# What `apply` does: run forward without recording, then put a node behind the
# result.

# %% slide="more" show="output"
from toytorch.autograd import Function, function  # toytorch's again

look(function.Function._run)

# %% [markdown]
# Recording is switched off, your `forward` runs, and recording is switched back to
# what it was. Then a node is made, if any input requires a gradient.
#
# The next function calls your `backward`. It also notices a wrong number of
# gradients:

# %%
look(function.FunctionNode.apply)

# %% [markdown]
# Here are toytorch's difference quotients, beside yours:

# %%
from importlib import import_module

checks = import_module("toytorch.autograd.gradcheck")
look(checks.numerical_jacobian, gradients_agree)

# %% [markdown]
# toytorch computes the whole Jacobian, with one row for each result, and not one
# weighted sum. It treats a complex number as a pair of real ones. Your check is
# close to what PyTorch calls `fast_mode=True`. That mode also moves all inputs at
# once, in a random direction. So it needs two evaluations of `f`, however many
# elements the inputs have.

# %% [markdown] slide="slide"
# ## Measure: how large may a step be?
#
# Gradient descent on a parabola of curvature λ diverges if the learning rate is
# larger than 2/λ. A loss of many parameters has a curvature in each direction,
# and the largest one is the largest eigenvalue of the Hessian.
#
# Here the Hessian has 640 by 640 entries. It need not be stored: multiply a vector
# by it again and again, and the vector turns to the direction of the largest
# curvature. This is called *power iteration*.

# %% [markdown] slide="notes"
# The largest curvature limits the learning rate. It is found with products
# alone, by power iteration.

# %%
targets = functional.one_hot(labels, 10).float()
pixels = images.flatten(1).float()  # (1437, 64)


def bowl(w):
    """The mean squared error of a linear reader, (64, 10) weights."""
    return ((pixels @ w - targets) ** 2).mean()


# %% slide="more"
product = use("extending.hvp")
torch.manual_seed(0)
w0, v = torch.zeros(64, 10), torch.randn(64, 10)
for _ in range(40):
    v = product(bowl, w0, v)
    curvature = v.norm().item()
    v = v / v.norm()
limit = 2 / curvature
print(f"curvature {curvature:.3f}: learning rates up to {limit:.2f}")

# %% [markdown]
# **Predict:** 300 steps with a rate 5 % below that limit, and 300 with a rate
# 5 % above.

# %% [markdown] slide="subslide"
# ## Five percent below, five percent above

# %% [markdown] slide="notes"
# Five percent decide. The theory is for a quadratic bowl, and this loss is
# close to one.

# %%
def descend(rate, steps=300):
    w, losses = torch.zeros(64, 10), []
    for _ in range(steps):
        w.requires_grad_()
        loss = bowl(w)
        (slope,) = torch.autograd.grad(loss, w)
        w = (w - rate * slope).detach()
        losses.append(loss.item())
    return losses


# %% slide="more"
below, above = descend(0.95 * limit), descend(1.05 * limit)
print(f"below: the loss ends at {below[-1]:.3f}")
print("above: the loss ends beyond a thousand:", above[-1] > 1000)

# %% slide="more" folded=true
figure, axes = plt.subplots(figsize=(7.2, 2.5))
axes.semilogy(below, label="5 % below 2/λ")
axes.semilogy(above, label="5 % above")
axes.set_ylim(0.03, 10)
axes.set_xlabel("step")
axes.legend()
plt.show()

# %% [markdown]
# **Predict:** how many times as long as a gradient does a Hessian-vector product
# take?

# %% varies=true
import time


def best(*works, rounds=60):
    """Milliseconds for one call of each, the best of many in turn."""
    found = [float("inf")] * len(works)
    for _ in range(rounds):
        for k, work in enumerate(works):
            begin = time.perf_counter()
            work()
            spent = time.perf_counter() - begin
            found[k] = min(found[k], spent * 1e3)
    return found


leaf = torch.zeros(64, 10, requires_grad=True)
once, twice = best(lambda: torch.autograd.grad(bowl(leaf), leaf),
                   lambda: product(bowl, w0, v))
print(f"a gradient {once:.2f} ms, a Hessian-vector product",
      f"{twice:.2f} ms: {twice / once:.1f} times")

# %% [markdown] slide="slide"
# ## Traps
#
# Run on purpose.

# %% [markdown] slide="notes"
# Calling the class is an old mistake. The message says to use `apply`. Making an
# object of the class is warned of, too.

# %% raises=true slide="more"
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    Cube()(torch.ones(2, requires_grad=True))  # not apply

# %% [markdown] slide="subslide"
# ## One gradient for two inputs

# %% [markdown] slide="notes"
# Two inputs need two gradients. Ask what should be returned for an input that
# needs none: `None`.

# %% raises=true slide="more"
class Product(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        _, y = ctx.saved_tensors
        return grad * y  # and for y?


x = torch.ones(2, requires_grad=True)
Product.apply(x, torch.ones(2)).sum().backward()

# %% [markdown]
# Some `backward` methods cannot be differentiated, for example because they call
# NumPy. Mark such a method with `once_differentiable`. Then asking for a second
# derivative raises an error. Without the mark the result would be wrong:

# %% [markdown] slide="subslide"
# ## Once differentiable

# %% [markdown] slide="notes"
# The computation leaves toytorch, so its derivative has no graph. The
# decorator says so instead of being wrong.

# %% raises=true slide="more"
class Root(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(x.detach().numpy() ** 0.5)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        slope = 0.5 / x.detach().numpy() ** 0.5
        return grad * torch.from_numpy(slope)


x = torch.tensor([4.0], requires_grad=True)
(slope,) = torch.autograd.grad((Root.apply(x) ** 2).sum(), x,
                               create_graph=True)
slope.sum().backward()

# %% [markdown]
# The other mistakes raise no error. Here `forward` saves a result that it has
# computed, and a second derivative is taken:

# %% [markdown] slide="subslide"
# ## Traps that say nothing

# %% [markdown] slide="notes"
# No error, and the second derivative is wrong: what was saved was computed
# unrecorded.

# %% slide="more"
class Kept(Function):
    @staticmethod
    def forward(ctx, x):
        s = x.sigmoid()  # nothing is recorded here
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        return grad * (s + x * s * (1 - s))


x = torch.tensor(3.0, requires_grad=True)
for text, f in (("kept", Kept.apply), ("true", functional.silu)):
    (slope,) = torch.autograd.grad(f(x), x, create_graph=True)
    (second,) = torch.autograd.grad(slope, x)
    print(f"{text}: {slope.item():.4f}, then {second.item():.4f}")

# %% [markdown]
# The first derivative is right, so a gradient check passes. The second has the
# wrong sign, because autograd takes `s` for a constant. `gradgradcheck` checks
# second derivatives and finds the mistake.
#
# A gradient check can also fail where nothing is wrong. There are three common
# reasons: float32 has too few digits, a function has no derivative at a kink, and
# a straight-through gradient differs from the derivative on purpose.

# %% [markdown] slide="subslide"
# ## When a check says no

# %% [markdown] slide="notes"
# A check can say no for three reasons: float32, a kink, or a real mistake.
# Ask for the order in which to look.

# %% slide="more"
warnings.simplefilter("ignore")  # it warns of float32, rightly
gradcheck = torch.autograd.gradcheck
doubles = torch.rand(3, dtype=torch.float64, requires_grad=True)
floats = torch.rand(3, requires_grad=True)
kink = torch.zeros(1, dtype=torch.float64, requires_grad=True)
cases = {
    "sin, float64": (torch.sin, doubles),
    "sin, float32": (torch.sin, floats),
    "relu at 0": (torch.relu, kink),
    "Round": (lambda x: rounded(x, 0.25), doubles),
}
for text, (f, x) in cases.items():
    print(f"{text:<13}", gradcheck(f, x, raise_exception=False))

# %% [markdown]
# At 0, the derivative of `relu` is 0 from the left and 1 from the right.
# Autograd gives 0, and the central difference gives 0.5. Neither is wrong. Move
# the inputs away from kinks before you check.

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** `Double` computes 2 · x. Its `backward` returns 2. What is wrong, and what
# is printed?
#
# ```python
# class Double(torch.autograd.Function):
#     @staticmethod
#     def forward(ctx, x):
#         return 2 * x
#
#     @staticmethod
#     def backward(ctx, grad):
#         return torch.full_like(grad, 2.0)
#
#
# x = torch.tensor(1.0, requires_grad=True)
# (5 * Double.apply(x)).backward()
# print(x.grad)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor(2.)
# ```
#
# `backward` is asked for the gradient of the loss, which is `grad * 2`. Here the
# incoming gradient is 5, so 10 would be right. Without the factor `grad`,
# everything that happens between `Double` and the loss is lost.
#
# </details>
#
# **2.** Is recording on or off inside `forward`, and inside `backward`?
#
# ```python
# class Look(torch.autograd.Function):
#     @staticmethod
#     def forward(ctx, x):
#         print("forward", torch.is_grad_enabled())
#         return x.clone()
#
#     @staticmethod
#     def backward(ctx, grad):
#         print("backward", torch.is_grad_enabled())
#         return grad
#
#
# x = torch.ones(1, requires_grad=True)
# torch.autograd.grad(Look.apply(x), x)
# torch.autograd.grad(Look.apply(x), x, create_graph=True)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# forward False
# backward False
# forward False
# backward True
# ```
#
# `forward` never records, because its derivative is what you write yourself.
# `backward` records only if a derivative of the derivative may be asked for.
# `create_graph=True` says so.
#
# </details>
#
# **3.** The derivative is saved in `forward`. Why does the second line raise an
# error?
#
# ```python
# class Square(torch.autograd.Function):
#     @staticmethod
#     def forward(ctx, x):
#         ctx.save_for_backward(2 * x)
#         return x * x
#
#     @staticmethod
#     def backward(ctx, grad):
#         (derivative,) = ctx.saved_tensors
#         return grad * derivative
#
#
# x = torch.tensor(3.0, requires_grad=True)
# (first,) = torch.autograd.grad(Square.apply(x), x, create_graph=True)
# print(first.item())
# torch.autograd.grad(first, x)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 6.0
# RuntimeError
# ```
#
# `2 * x` was computed in `forward`, where nothing is recorded. For autograd it is
# a constant, so the first derivative is right and has no history. Save `x`
# instead, and compute `2 * x` in `backward`.
#
# </details>
#
# **4.** The two gradients are returned in the wrong order. What is printed, and why
# is there no error?
#
# ```python
# class Product(torch.autograd.Function):
#     @staticmethod
#     def forward(ctx, x, y):
#         ctx.save_for_backward(x, y)
#         return x * y
#
#     @staticmethod
#     def backward(ctx, grad):
#         x, y = ctx.saved_tensors
#         return grad * x, grad * y
#
#
# x = torch.tensor(2.0, requires_grad=True)
# y = torch.tensor(5.0, requires_grad=True)
# Product.apply(x, y).backward()
# print(x.grad, y.grad)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor(2.) tensor(5.)
# ```
#
# The engine pairs gradients with inputs by position, and both have the right
# shape. The derivative of x · y with respect to `x` is `y`, so 5 and 2 would be
# right. A gradient check finds the mistake, because it compares values.
#
# </details>
#
# **5.** A gradient check uses a step of 10⁻⁶ in float64. Somebody uses the same step
# in float32, and nearly every check fails. Why? Does a step of 10⁻¹² help in
# float64?
#
# <details><summary>Answer</summary>
#
# A float32 has about 7 digits. If an input near 1 changes by 10⁻⁶, the two values
# of the function agree in nearly all of these digits, and their difference is
# mostly rounding error. For the same reason 10⁻¹² is too small in float64, which
# has 16 digits. A larger step has less rounding error, but the chord is further
# from the tangent.
#
# </details>
#
# **6.** A check adds up all results with the weight 1 and compares derivatives of
# the sum. It is run on a softmax whose `backward` returns zeros. Does it fail?
#
# <details><summary>Answer</summary>
#
# It does not fail. The results of a softmax always add up to 1, so the derivative
# of their sum is 0, and zeros agree with that. With random weights the weighted
# sum depends on the input, and the check fails as it should.
#
# </details>
#
# **7.** What is the Hessian of $x_0^2\,x_1$ at [1, 2] times v?
#
# ```python
# x = torch.tensor([1.0, 2.0], requires_grad=True)
# v = torch.tensor([1.0, 10.0])
# f = x[0] ** 2 * x[1]
# (gradient,) = torch.autograd.grad(f, x, create_graph=True)
# (product,) = torch.autograd.grad((gradient * v).sum(), x)
# print(product.tolist())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [24.0, 2.0]
# ```
#
# The gradient is $[2 x_0 x_1, x_0^2]$. Its product with v is
# $2 x_0 x_1 + 10 x_0^2$, and the derivatives of that are $2 x_1 + 20 x_0 = 24$
# and $2 x_0 = 2$. Two backward passes are enough, and the Hessian is never
# stored.
#
# </details>
#
# **8.** `Sign` is a straight-through estimator, and the loss wants a result of 1 in
# both places. In which direction does a step of descent move the two elements?
#
# ```python
# class Sign(torch.autograd.Function):
#     @staticmethod
#     def forward(ctx, x):
#         return x.sign()
#
#     @staticmethod
#     def backward(ctx, grad):
#         return grad
#
#
# x = torch.tensor([-0.3, 2.0], requires_grad=True)
# ((Sign.apply(x) - 1) ** 2).sum().backward()
# print(x.grad.tolist())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [-4.0, 0.0]
# ```
#
# The signs are -1 and 1. The first one is wrong, and its gradient is
# 2 · (-1 - 1) = -4, so a step moves `x[0]` up, towards a change of sign. The
# second one is right and does not move. The true derivative of a sign is 0, and
# with it neither element would ever move.
#
# </details>
#
# **9.** *Chapter 04.* `y` is used twice. What is the gradient of `x`?
#
# ```python
# x = torch.tensor(2.0, requires_grad=True)
# y = x * x
# (y + y * x).backward()
# print(x.grad)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# tensor(16.)
# ```
#
# The result is x² + x³, and its derivative 2x + 3x² is 4 + 12. The node of `y`
# receives two gradients, 1 from the sum and x from the product. The engine adds
# them before that node runs.
#
# </details>
#
# **10.** *Chapter 04.* `f` maps three inputs to two results. What does
# `backward([1, 10])` compute of its Jacobian, and how many calls are needed for
# all of it?
#
# ```python
# x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
# y = torch.stack([x.sum(), x[0] * x[2]])
# y.backward(torch.tensor([1.0, 10.0]))
# print(x.grad.tolist())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [31.0, 1.0, 11.0]
# ```
#
# The rows of the Jacobian are [1, 1, 1] and [3, 0, 1]. `backward(g)` gives the
# product gᵀJ, which is 1 · [1, 1, 1] + 10 · [3, 0, 1]. The whole Jacobian takes
# one call for each row, here two: with g = [1, 0] and with g = [0, 1].
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * Subtract two nearly equal numbers, and digits are lost. The *complex step*
#   subtracts nothing: `f(x + 1e-20j).imag / 1e-20`. Try it on `cubic`. Which
#   functions does it work for?
# * Your `Implicit` works number by number. For a vector `y`, the derivative by
#   `y` is a matrix. What replaces the division?
# * A network whose layer *is* a root, searched for anew on every input, is
#   called a deep equilibrium model. What does it have to save?
# * `Function` may also have a `jvp`, for forward mode. When would one walk of
#   the graph from the inputs be cheaper than one from the loss?
#
# **Next:** chapter 07 stops carrying parameters around in lists, and builds
# modules.

# %% [markdown] slide="notes"
# The complex step is a nice demonstration for the last five minutes.

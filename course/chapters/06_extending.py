# %% [markdown] slide="slide"
# # 06 · Extending autograd
#
# Sooner or later you need an operation that nobody has written: a faster
# activation, a rounding that learns, a root that a search has found. You know
# its derivative, or you think you do.
#
# > **The question of this chapter:** how do you teach the graph a new
# > operation, and how do you know that its derivative is right?

# %% [markdown] slide="notes"
# 45 minutes: question and prediction 5, a Function live 10, gradcheck on the
# whiteboard 8, double backward and HVP 6, straight-through 6, the circle 6,
# traps 4. The gradcheck is the exercise to insist on: they will use it for
# years.

# %% keep=true slide="more" show="output"
import toytorch as torch
from course import check, exercise, hint, look, setup, use
from toytorch import viz
from toytorch.autograd import Function

setup()


def cubic(x):
    return x * x * x - 2 * x


viz.secants(cubic, 1.1)

# %% [markdown]
# The green tangent has the derivative that autograd computed as its slope. To
# check it, press *Next*: the red chord goes through two points of the curve, a
# step to the left and a step to the right. The plot on the right shows how far
# the chord's slope is from the derivative.

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
# The tiny step is far worse than the middle one. Two errors pull in opposite
# directions. A chord is not a tangent: that error shrinks as the *square* of
# the step. But the two values of `f` are nearly equal, each is exact to 16
# digits only, and what remains of their difference has few digits left. That
# error *grows* as 1/step. The best step lies between: about the cube root of
# the precision, 10⁻⁵ or 10⁻⁶ for 16 digits.
#
# So the check works, if it uses float64 and a step of 10⁻⁶. That is what
# `torch.autograd.gradcheck` does, and you will write it.

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
# * It is called through `apply`, which puts **one** node into the graph.
# * Inside `forward` nothing is recorded. You may use NumPy, another language,
#   or a search: what matters is the `backward` you write.
# * `ctx` carries things from forward to backward. Tensors go through
#   `save_for_backward`, so that a write to them is noticed (chapter 05).
# * `backward` gets the gradient of the result, and returns one for each input.
#
# Here is the same cube twice: as operations, which keep `x` and its square, and
# as one node, which keeps `x` alone.

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
# `backward` is tensor code. Asked with `create_graph=True`, autograd records
# *it* as well, and the result can be differentiated again. Nothing more has to
# be written. **Predict** the second and third derivative of x³ at 2.

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
# `backward` ran: they are its two products with the saved `x`. So the
# derivative is connected to `x` in the graph, and can be differentiated again.

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
# Four exercises:
#
# 1. a **Function** of two inputs: the activation Swish
# 2. a **gradient check**
# 3. the gradient of a **search** (optional: the hardest of the chapter)
# 4. the **Hessian** times a vector

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
# Your Swish for $\beta = 1$, its derivative, and the second one, which comes
# from your `backward`, differentiated by autograd.

# %% [markdown] slide="subslide"
# ## Swish, its first and its second derivative

# %% [markdown] slide="notes"
# The first derivative is positive for most inputs and negative for some. Ask
# where the function is flat.

# %% slide="more" show="output"
import matplotlib.pyplot as plt

x = torch.linspace(-6, 6, 200, requires_grad=True)
y = use("extending.swish").apply(x, torch.tensor(1.0))
(slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
(second,) = torch.autograd.grad(slope.sum(), x)
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
# ## Straight through a step
#
# Rounded to multiples of 0.25, a curve becomes a staircase. Its derivative is
# 0 on every step, so nothing that comes before it would ever learn. The
# *straight-through estimator* uses another derivative on purpose: `backward`
# passes the gradient on as if nothing had been rounded.

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
# `forward` has two inputs besides `ctx`, and the engine goes by position: one
# gradient for `x`, and `None` for `step`, which is a number.
#
# `grad * 0` is the true derivative of a staircase. With it, every gradient in
# front of the rounding is 0 and no weight there ever moves.
#
# Gradients are small. Rounded to multiples of 0.25, -0.01 becomes 0 and 0.3
# becomes 0.25: most of them would vanish, and learning would stop.
#
# </details>

# %% exercise="extending.implicit" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eighteen minutes, optional. Derive the quotient on the whiteboard: moving along
# the curve, f stays 0.

# %% check="extending.implicit" points=3

# %% [markdown]
# Now with a real search, the optimizer LBFGS, which knows nothing of circles:
# it makes f(x, y)² small. The derivative dy/dx at x = 0.5 should be
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

# %% slide="more" show="output"
x = torch.tensor([-0.8, -0.4, 0.0, 0.5, 0.9], dtype=torch.float64)
x.requires_grad_()
y = root.apply(x, circle, by_lbfgs)
y.sum().backward()
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
# Now plant a mistake. The derivative of `tanh` is `1 - y²`; somebody forgot
# the square. No error is raised anywhere. What does your check say?

# %% slide="fragment"
with torch.ops.tanh.using(d_self=lambda g, result: g * (1 - result)):
    print("tanh with a mistake:", agree(torch.tanh, x))
print("tanh as it is:", agree(torch.tanh, x))

# %% [markdown] slide="slide"
# ## A network of your own operations
#
# Two layers with your Swish between them, whose $\beta$ is learned like the
# weights. And weights that may only be multiples of 0.5.

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
# The network keeps fine weights and *uses* rounded ones. The gradient is that
# of the straight line which the staircase follows. It is wrong at each single
# place and right on average: many small changes add up in the fine weight,
# until it is rounded to the next multiple. Chapter 17 builds integer networks
# on this.

# %% [markdown] slide="subslide"
# ## The weights that are kept, and those that are used

# %% [markdown] slide="notes"
# On the left what is kept, on the right what is used. The optimizer moves the
# left one by small steps.

# %% slide="more" show="output"
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
# Kepler's equation, $E - e \sin E = M$, has no formula for $E$. Where a comet
# stands at the times $M$ has to be searched. Given where it was seen, what is
# the eccentricity $e$ of its orbit? Your `Implicit` hands the gradient through
# Newton's method.

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
# Your package gets the same. `Tensor` stands in `mytorch/tensor.py` since
# chapter 04 (if you have not written it, the course's own file is used). A
# `Function` adds operations to it, and its `check` compares their derivatives
# with differences.

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
# A derivative that is wrong by a sign, and what the check says about it:

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

# %% [markdown] slide="notes"
# What `apply` does: run forward without recording, then put a node behind the
# result.

# %% slide="more" show="output"
from toytorch.autograd import Function, function  # toytorch's again

look(function.Function._run)

# %% [markdown]
# Recording is switched off, your `forward` runs, recording is put back as it
# was, and only then a node is made, if any input wants a gradient. And here
# your `backward` is called; this is also where a wrong number of gradients is
# noticed:

# %%
look(function.FunctionNode.apply)

# %% [markdown]
# toytorch's own difference quotients, beside yours:

# %%
from importlib import import_module

checks = import_module("toytorch.autograd.gradcheck")
look(checks.numerical_jacobian, gradients_agree)

# %% [markdown]
# It keeps whole matrices, all results by all inputs, instead of one weighted
# sum; complex numbers count as pairs. Yours is what PyTorch calls
# `fast_mode=True`, nearly: that takes a random direction in the inputs as well,
# so that two evaluations are enough however many numbers there are.

# %% [markdown] slide="slide"
# ## Measure: how large may a step be?
#
# Gradient descent on a bowl of curvature λ blows up as soon as the learning
# rate exceeds 2/λ. The largest λ of a loss is that of its Hessian, here 640 by
# 640 entries, too many to write down: multiply a vector by it again and again,
# and it turns to the steepest direction.

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

# %% slide="more" show="output"
figure, axes = plt.subplots(figsize=(7.2, 2.5))
axes.semilogy(below, label="5 % below 2/λ")
axes.semilogy(above, label="5 % above")
axes.set_ylim(0.03, 10)
axes.set_xlabel("step")
axes.legend()
plt.show()

# %% [markdown]
# One Hessian-vector product costs how many gradients? **Predict**, then look.

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
# Calling the class is an old mistake. The message says to use `apply`.

# %% raises=true slide="more"
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
# If a `backward` can not be differentiated (it calls NumPy, say), mark it with
# `once_differentiable`. Then a second derivative is an error, and not a wrong
# number:

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
# And those that raise nothing. A second derivative through something that was
# computed in `forward` and kept:

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
# wrong sign. `gradgradcheck` finds it.
#
# A gradient check can also fail where nothing is wrong: float32 has too few
# digits, at a kink there is no derivative, and a straight-through gradient
# differs from the derivative on purpose.

# %% [markdown] slide="subslide"
# ## When a check says no

# %% [markdown] slide="notes"
# A check can say no for three reasons: float32, a kink, or a real mistake.
# Ask for the order in which to look.

# %% slide="more"
import warnings

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
# Autograd gives 0, the difference quotient 0.5. Neither is wrong. Move the inputs away from kinks before
# you check.

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

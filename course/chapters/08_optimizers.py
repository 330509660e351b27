# %% [markdown] slide="slide"
# # 08 · Losses and optimizers
#
# The gradient is the direction in which the loss rises fastest. It is exact only
# at the current parameters, and a step away from them it has changed. A network
# with a million parameters has to be trained with nothing more than that.
#
# > **The question of this chapter:** how long should a step be, and why not
# > always step straight down the gradient?

# %% [markdown] slide="notes"
# 45 minutes: question 5, losses 6, walks and rates 10, exercise 2 live 8, the
# same numbers as PyTorch 6, measure 4, traps 6. Step through the first
# picture slowly; ask who will be where at step 10. Exercise 3 is homework.

# %% keep=true slide="more" show="output"
import math

import matplotlib.pyplot as plt

import toytorch as torch
from course import check, exercise, hint, look, milestone, setup, use
from toytorch import nn, viz
from toytorch.optim import lr_scheduler

setup()


def valley(x, y):
    return x**2 / 2 + 8 * y**2


walkers = {
    "descent": lambda ps: torch.optim.SGD(ps, lr=0.11),
    "with momentum": lambda ps: torch.optim.SGD(ps, 0.1, momentum=0.5),
    "Adam": lambda ps: torch.optim.Adam(ps, lr=0.2),
}
where = {"xs": (-2.2, 2.2), "ys": (-1.5, 1.5)}
viz.walks(valley, walkers, (-2.0, 1.0), steps=25, **where)

# %% [markdown]
# This is a loss of two parameters, seen from above. It is a narrow valley: the
# lines connect places of the same height, and the lowest point is in the middle.
# Press *Next*. All three walks start at the same place. In each step, each of them
# gets the gradient at its own place.
#
# * **Descent** steps against the gradient. The valley is steepest across, so the
#   walk jumps from side to side, and along the valley it is slow.
# * **Momentum** keeps a velocity, to which each gradient is added. The components
#   across the valley change their sign and cancel. Those along the valley add up.
# * **Adam** divides each coordinate of the gradient by its recent size. So at
#   first it moves by 0.2 in both directions. Later it overshoots, because its
#   steps do not become shorter where the gradient does.
#
# After 25 steps the heights are 0.006 with descent, less than 0.000001 with
# momentum, and 0.4 with Adam. So on this valley Adam is the worst of the three.

# %% [markdown] slide="slide"
# ## Predict, then run
#
# The valley is $x^2/2 + 8y^2$: its curvature is 1 along $x$ and 16 along $y$.
# A step of plain descent multiplies $x$ by $1 - \eta$ and $y$ by $1 - 16\eta$.
# Where are $x$ and $y$ after 50 steps, with the rates $\eta$ = 0.01, 0.1 and
# 0.13? One of them is too small and one too large.

# %% [markdown] slide="notes"
# Compute the factors first: the rate 0.13 multiplies y by more than one in
# size. It diverges without an error.

# %% slide="more"
for rate in (0.01, 0.1, 0.13):
    place = torch.tensor([-2.0, 1.0], requires_grad=True)
    optimizer = torch.optim.SGD([place], lr=rate)
    for _ in range(50):
        optimizer.zero_grad()
        valley(*place).backward()
        optimizer.step()
    x, y = place.tolist()
    print(f"rate {rate}: x = {x:.2f}, y = {abs(y):.2f}")

# %% [markdown]
# At 0.13, $1 - 16\eta$ is -1.08, and $1.08^{50}$ is 47. For rates above 2/16 the
# steepest direction diverges, whatever the other directions do. At any smaller
# rate the flat direction is slow.
#
# So the *ratio of the curvatures* decides how many
# steps are needed. In networks this ratio is in the thousands. That is why this
# chapter has more than `p -= rate * p.grad`.
#
# ### Which of the three is best?
#
# One walk from one place proves little, and each optimizer depends on its rate. So
# the next cells take sixteen starting points and several rates. For each optimizer
# the best of its rates is shown. **Predict** the order of the three.

# %%
def after_walk(make, start, steps=25):
    """The height after some steps from a starting point."""
    place = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    optimizer = make([place])
    for _ in range(steps):
        optimizer.zero_grad()
        valley(*place).backward()
        optimizer.step()
    return valley(*place).item()


turns = [2 * math.pi * (n + 0.5) / 16 for n in range(16)]
starts = [[2 * math.cos(a), math.sin(a)] for a in turns]
tried = {
    "descent": [lambda ps, r=r: torch.optim.SGD(ps, r)
                for r in (0.03, 0.06, 0.09, 0.11)],
    "with momentum": [lambda ps, r=r, m=m: torch.optim.SGD(ps, r, m)
                      for r in (0.03, 0.1) for m in (0.5, 0.8)],
    "Adam": [lambda ps, r=r: torch.optim.Adam(ps, r)
             for r in (0.05, 0.1, 0.2, 0.4)],
}

# %% slide="subslide"
for name, makes in tried.items():
    walks = [sorted(after_walk(make, s) for s in starts) for make in makes]
    ends = min(walks, key=lambda ends: ends[8])  # by the median
    print(f"{name:<14} median {ends[8]:.0e},",
          f"from {ends[0]:.0e} to {ends[-1]:.0e}")

# %% [markdown] slide="notes"
# Sixteen starts, and the median decides. One start would say nothing about
# the three methods.

# %% [markdown]
# On this valley momentum is far ahead. Plain descent comes second and Adam comes
# last, although many people use Adam for everything. This valley is a simple case:
# its curvature is the same everywhere, and for two parameters a good rate is
# easily found. Below, where the loss changes its unit, you will see a case in which
# Adam is better.

# %% [markdown] slide="slide"
# ## Play: what to reduce
#
# | task | loss | of one example |
# | --- | --- | --- |
# | predict an amount | `mse_loss` | $(y - t)^2$ |
# | choose a class | `cross_entropy` | $-\log p_{\text{right}}$ |
# | yes or no | `binary_cross_entropy_with_logits` | the same, for two |

# %% [markdown] slide="notes"
# Three tasks, three losses. Each is minus the logarithm of a probability,
# under an assumption about the noise.

# %% [markdown]
# Why is the squared error not used for classes as well? The reason is its gradient.
# Take two classes, and let $s$ be the score of the right class minus the score of
# the other. The probability of the right class is $p = 1/(1 + e^{-s})$. On the far
# left of the plots the network is sure of the wrong class.

# %% [markdown] slide="subslide"
# ## Why not squares, for classes?

# %% [markdown] slide="notes"
# Look at the derivatives on the right. Where the network is quite wrong, the
# squared error has almost no derivative.

# %%
s = torch.linspace(-8, 8, 200, requires_grad=True)
losses = {"cross entropy": -nn.functional.logsigmoid(s),
          "squared error of p": (1 - s.sigmoid()) ** 2}

# %% slide="more" folded=true
figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 2.9))
for name, loss in losses.items():
    (slope,) = torch.autograd.grad(loss.sum(), s)
    left.plot(s.tolist(), loss.tolist(), label=name)
    right.plot(s.tolist(), slope.tolist(), label=name)
left.set(xlabel="lead of the right class", ylabel="loss")
right.set(xlabel="lead of the right class", ylabel="dL/ds")
left.legend()
figure.tight_layout()
plt.show()

# %% [markdown]
# Where the network is sure and wrong, the gradient of the squared error is close to
# 0. So the worst mistakes are hardly corrected. The gradient of cross entropy is
# close to -1 there. For each class $i$ it is *the probability minus the right
# answer*:
#
# $$\frac{\partial L}{\partial s_i} = p_i - y_i,
#   \qquad y_i = 1 \text{ for the right class, else } 0.$$
#
# <details><summary>The derivation</summary>
#
# With $Z = \sum_j e^{s_j}$, the softmax is $p_i = e^{s_i} / Z$, and the loss of
# an example of class $c$ is
#
# $$L = -\log p_c = -\log \frac{e^{s_c}}{Z} = \log Z - s_c.$$
#
# The derivative of the first part: $\log Z$ has the derivative $1/Z$ by $Z$,
# and in $Z$ only the summand $e^{s_i}$ depends on $s_i$, so
#
# $$\frac{\partial \log Z}{\partial s_i}
#   = \frac1Z \cdot e^{s_i} = p_i.$$
#
# The derivative of the second part, $-s_c$, is $-1$ for $i = c$ and 0
# otherwise, which is $-y_i$. Together: $p_i - y_i$. For a mean over $n$
# examples there is a factor $1/n$.
#
# For example, take the scores $(2, 0)$ and the first class. Then
# $p = (0.88, 0.12)$, and the gradient is $(-0.12, 0.12)$. A step of descent raises
# the score of the right class and lowers the other one. Both move in proportion to
# the error of the probability.
#
# </details>
#
# If you write the formula into a program as it stands, it fails for large scores.
# **Predict** what the first line prints for scores 100 and 99, of which the first
# is right.

# %% [markdown] slide="subslide"
# ## The textbook's line, for scores 100 and 99

# %% [markdown] slide="notes"
# exp(100) overflows in float32. The other formula subtracts the largest score
# first and gives the same number.

# %% slide="more"
scores = torch.tensor([100.0, 99.0])
print("textbook:", -(scores.exp() / scores.exp().sum())[0].log())
print("toytorch:", nn.functional.cross_entropy(scores, torch.tensor(0)))

# %% [markdown]
# `exp(100)` is too large for float32, and infinity divided by infinity is
# `nan`. In exercise 1 you write it without an overflow.
#
# ### The loop
#
# Every training step is these four lines, in this order:
#
# | line | what it does |
# | --- | --- |
# | `optimizer.zero_grad()` | forgets the old gradients: `p.grad = None` |
# | `loss.backward()` | *adds* to every `p.grad` |
# | `optimizer.step()` | reads `p.grad`, writes `p` |
# | `schedule.step()` | sets the rate for the next step |
#
# `zero_grad` sets gradients to `None` and not to 0. That saves memory, and *no
# gradient* is something else than *a gradient of 0*. A parameter with `None` is
# left alone. A parameter with a gradient of 0 still decays, and its momentum still
# moves it.

# %% [markdown] slide="subslide"
# ## No gradient is not a gradient of 0

# %% [markdown] slide="notes"
# No gradient means that nothing happens; a gradient of 0 still decays the
# weight. Ask when the difference matters.

# %% slide="more"
for grad in (None, torch.zeros(1)):
    p = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.1, weight_decay=0.5)
    p.grad = grad
    optimizer.step()
    print(grad, "->", f"{p.item():.2f}")

# %% [markdown]
# ### Groups
#
# Parameters come in groups, and each group has its own settings. Settings that a
# group does not give are the optimizer's. Below, a pretrained body learns slowly, a
# new head learns fast, and biases do not decay.

# %% [markdown] slide="subslide"
# ## Groups: each with its own settings

# %% [markdown] slide="notes"
# Three groups with numbers of their own. Biases are often left without decay.

# %% slide="more"
body, head = nn.Linear(64, 32), nn.Linear(32, 10)
optimizer = torch.optim.AdamW([
    {"params": [body.weight], "lr": 1e-4},
    {"params": [head.weight]},
    {"params": [body.bias, head.bias], "weight_decay": 0.0},
], lr=1e-3, weight_decay=0.01)
for group in optimizer.param_groups:
    print(len(group["params"]), group["lr"], group["weight_decay"])

# %% [markdown]
# ### A loss in other units
#
# **Predict:** the loss is multiplied by 100, as if it were in cents and not in
# dollars. The rates stay the same. How do the walks of descent and Adam change?

# %% [markdown] slide="subslide"
# ## The loss in cents: who notices?

# %% [markdown] slide="notes"
# A hundred times the loss is a hundred times the gradient. Descent diverges,
# and Adam does not notice.

# %% slide="more"
def arrive(make, factor, steps=20):
    """Where an optimizer is after some steps down the valley."""
    place = torch.tensor([-2.0, 1.0], requires_grad=True)
    optimizer = make([place])
    for _ in range(steps):
        optimizer.zero_grad()
        (factor * valley(*place)).backward()
        optimizer.step()
    return [f"{v:.3g}" for v in place.tolist()]


for name in ("descent", "Adam"):
    print(f"{name:<8}", arrive(walkers[name], 1),
          arrive(walkers[name], 100))

# %% [markdown]
# Descent diverges, because its steps are a hundred times as long. Adam divides
# each element's gradient by the root of its mean square, so the factor cancels.
# This is Adam's advantage: a learning rate of about 0.001 works for very different
# networks.
#
# ### Schedules
#
# In training, a gradient is computed from a small batch. It is the gradient of the
# whole loss plus noise. With a constant rate the parameters never come to rest,
# because the noise moves them in every step.
#
# Here are three walks with the same
# noise. The lower panels show the rates: constant on the left, falling in steps in
# the middle, falling along a cosine on the right.

# %%
def scheduled(schedule, **options):
    """SGD together with a schedule, for a walk."""

    def make(parameters):
        optimizer = torch.optim.SGD(parameters, lr=0.09)
        return optimizer, schedule(optimizer, **options)

    return make


# %% [markdown] slide="slide"
# ## A noisy gradient, three schedules

# %% [markdown] slide="notes"
# The noise stays the same, and a smaller rate averages over it. Compare the
# ends of the three walks.

# %% keep=true slide="more" show="output"
three = {
    "constant": scheduled(lr_scheduler.ConstantLR, factor=1.0),
    "in steps": scheduled(lr_scheduler.StepLR, step_size=10, gamma=0.4),
    "cosine": scheduled(lr_scheduler.CosineAnnealingLR, T_max=40),
}
viz.walks(valley, three, (-2.0, 1.0), steps=40, noise=3.0, **where)

# %% [markdown]
# A schedule is an object that writes into `group["lr"]`. Its order is often
# confused: **first `optimizer.step()`, then `schedule.step()`**. The other way
# round, the first rate would be skipped.

# %%
optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
schedule = lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
for step in range(5):
    print(step, f"{optimizer.param_groups[0]['lr']:.2f}")
    optimizer.step()
    schedule.step()

# %% [markdown] slide="slide"
# ## Build
#
# Six exercises that must give PyTorch's values, and two for your own package:
#
# 1. **cross entropy** that does not overflow
# 2. **SGD** with momentum, Nesterov's too, and weight decay
# 3. **Adam** with bias correction
# 4. **AdamW**: the decay, decoupled
# 5. a **schedule**: warm-up, then a cosine
# 6. **clipping** by the norm
# 7. a **loss** and an **optimizer** of your own
#
# Your optimizers are subclasses of `torch.optim.Optimizer`. So they can be used
# wherever an optimizer is expected.

# %% [markdown] slide="notes"
# Exercise 2 live: write the two loops and `p.sub_` first, run the check (plain
# descent is green), then let the room add momentum. The panel for "momentum
# applied twice" is worth provoking.

# %% exercise="optim.cross_entropy" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Fifteen minutes. Subtract the largest score, and leave the ignored labels
# out of the mean as well.

# %% check="optim.cross_entropy" points=2

# %% exercise="optim.sgd" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eighteen minutes. The velocity belongs into the optimizer's state, so that
# it is saved with it.

# %% check="optim.sgd" points=3

# %% [markdown]
# The picture below compares Nesterov's form with plain momentum, on your optimizer.
# Nesterov's form takes the gradient at the place to which the velocity leads. So it
# corrects a step that goes too far one step earlier, and it swings less.
#
# <details><summary>Why that is g + momentum · v</summary>
#
# Nesterov's idea: first let the velocity carry you on, to
# $q_t = p_t - \eta\mu v_t$, and take the gradient *there*:
#
# $$g = \nabla f(q_t), \qquad v_{t+1} = \mu v_t + g, \qquad
#   p_{t+1} = p_t - \eta\, v_{t+1}.$$
#
# It is inconvenient to have the gradient at another place than the parameters.
# So the parameters that are stored are the $q_t$. How does $q$ move? Insert
# the definition of $q_{t+1}$, and then $p_{t+1}$:
#
# $$q_{t+1} = p_{t+1} - \eta\mu v_{t+1}
#   = p_t - \eta v_{t+1} - \eta\mu v_{t+1}.$$
#
# By the definition of $q_t$, $p_t = q_t + \eta\mu v_t$, and by that of
# $v_{t+1}$, $\mu v_t = v_{t+1} - g$:
#
# $$q_{t+1} = q_t + \eta (v_{t+1} - g) - \eta v_{t+1} - \eta\mu v_{t+1}
#   = q_t - \eta\, (g + \mu v_{t+1}).$$
#
# That is the line in your `step`. (The velocity starts at 0, so $q_0 = p_0$.)
#
# </details>

# %%
Descent = use("optim.sgd")
both = {
    "momentum": lambda ps: Descent(ps, 0.03, momentum=0.9),
    "Nesterov": lambda ps: Descent(ps, 0.03, momentum=0.9, nesterov=True),
}
viz.walks(valley, both, (-2.0, 1.0), steps=30, **where)

# %% exercise="optim.adam" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eighteen minutes. Both averages start at 0, and the division corrects for
# that. Compute the first step by hand.

# %% check="optim.adam" points=3

# %% [markdown]
# Where do the divisors $1 - \beta^t$ come from?
#
# <details><summary>The derivation of the bias correction</summary>
#
# The running mean starts at $m_0 = 0$, and
# $m_t = \beta m_{t-1} + (1 - \beta)\, g_t$. Insert it into itself:
#
# $$m_t = (1 - \beta) \big( g_t + \beta g_{t-1} + \beta^2 g_{t-2} + \dots
#   + \beta^{t-1} g_1 \big).$$
#
# It is a weighted sum of all gradients. What is the sum of the weights? With
# the geometric series $1 + \beta + \dots + \beta^{t-1}
# = (1 - \beta^t)/(1 - \beta)$ it is
#
# $$(1 - \beta) \cdot \frac{1 - \beta^t}{1 - \beta} = 1 - \beta^t.$$
#
# The weights of a mean should add up to 1. At first they do not: for
# $\beta = 0.9$ the sum is 0.1 after one step, 0.19 after two, 0.65 after ten.
#
# If all gradients have the expectation $E$, then $m_t$ has the expectation
# $(1 - \beta^t)\, E$. It is too small by the factor $1 - \beta^t$, so divide by
# that factor. The same holds for $v_t$ and $g^2$, with $\beta_2$. For large $t$,
# $\beta^t$ goes to 0 and the divisor to 1.
#
# </details>

# %% exercise="optim.adamw" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eight minutes, optional. The decay comes first and is not divided by Adam's
# scale.

# %% check="optim.adamw" points=1

# %% exercise="optim.schedule" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Ten minutes. Step 0 of a warm-up of 4 is a quarter of the rate and not
# nothing. The off-by-one is the usual mistake.

# %% check="optim.schedule" points=1

# %% [markdown] slide="subslide"
# ## Your schedule, and three of toytorch's

# %% [markdown] slide="notes"
# Four schedules over a hundred steps. Ask which of them needs to know how
# many steps there will be.

# %%
share = use("optim.schedule")
shapes = {
    "yours": lambda o: lr_scheduler.LambdaLR(
        o, lambda n: share(n, 15, 100, 0.05)),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 30, 0.3),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.96),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 1.0, 101),
}

# %% slide="more" folded=true
figure, axes = plt.subplots(figsize=(7.2, 2.8))
for name, make in shapes.items():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1.0)
    schedule, rates = make(optimizer), []
    for _ in range(100):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    axes.plot(rates, label=name, lw=3.5 if name == "yours" else 1.6)
axes.set(xlabel="step", ylabel="share of the full rate")
axes.legend()
plt.show()

# %% exercise="optim.clip" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Ten minutes, optional. One norm over all parameters together: clipping each
# alone would change the direction.

# %% check="optim.clip" points=1

# %% [markdown] slide="slide"
# ## Plug in: the same numbers as PyTorch
#
# A network that reads digits takes 30 steps with *your* optimizers. Its initial
# weights come from a formula and not from a random generator. PyTorch 2.13 has
# taken the same steps, and its losses are in `recorded`.

# %% [markdown] slide="notes"
# The network starts from a formula, so PyTorch gives the same numbers. They
# are recorded here.

# %% slide="more"
from toytorch.vision import datasets

images, labels = datasets.digits(train=True)
test_images, test_labels = datasets.digits(train=False)
x, test_x = images.flatten(1), test_images.flatten(1)

recorded = {"SGD": 0.2559, "Nesterov, decay": 0.4434,
            "Adam": 0.4993, "AdamW": 0.5418}


# %%
def begun(rows, columns):
    """Weights from a formula: the same in every framework."""
    n = torch.arange(rows * columns, dtype=torch.float32)
    wave = (n * 12.9898).sin() * columns**-0.5
    return wave.reshape(rows, columns).requires_grad_()


def losses_of(make, cross_entropy, steps=30):
    """The loss before each of the steps, on 512 digits at once."""
    w1, w2 = begun(32, 64), begun(10, 32)
    optimizer, history = make([w1, w2]), []
    for _ in range(steps):
        optimizer.zero_grad()
        scores = (x[:512] @ w1.t()).tanh() @ w2.t()
        loss = cross_entropy(scores, labels[:512])
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


# %% [markdown] slide="subslide"
# ## Thirty steps each

# %% [markdown] slide="notes"
# Every optimizer of the exercises must reach the recorded loss. If one does
# not, look at its second step.

# %% slide="more"
Adaptive = use("optim.adam")
Decaying, entropy = use("optim.adamw"), use("optim.cross_entropy")
makes = {
    "SGD": lambda ps: Descent(ps, lr=0.5, momentum=0.9),
    "Nesterov, decay": lambda ps: Descent(
        ps, lr=0.3, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda ps: Adaptive(ps, lr=0.01),
    "AdamW": lambda ps: Decaying(ps, lr=0.01, decay=0.5),
}
curves = {name: losses_of(make, entropy) for name, make in makes.items()}
for name, curve in curves.items():
    same = abs(curve[-1] - recorded[name]) < 0.001
    print(f"{name:<16} {curve[-1]:.2f}  PyTorch {recorded[name]:.2f}",
          "the same" if same else "NOT the same")

# %% [markdown] slide="subslide"
# ## Four optimizers, all of them yours

# %% [markdown] slide="notes"
# Do not read a ranking out of this picture: each has another rate, and thirty
# steps are few.

# %% slide="more" folded=true
figure, axes = plt.subplots(figsize=(7.2, 3))
for name, curve in curves.items():
    axes.plot(range(1, 31), curve, label=name)
axes.set(xlabel="step", ylabel="loss", ylim=(0, None))
axes.legend()
plt.show()

# %% [markdown]
# Now everything is used together: your loss, your AdamW, your schedule and your
# clipping. **Predict** how many of the 360 test digits the network reads right
# after ten epochs.

# %% [markdown] slide="subslide"
# ## All six together

# %% [markdown] slide="notes"
# All exercises of the chapter in one loop of a dozen lines. Let the class name
# each of them.

# %% slide="more"
share, clip = use("optim.schedule"), use("optim.clip")
torch.manual_seed(8)
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
optimizer = Decaying(model.parameters(), lr=0.01, decay=0.1)
total = 10 * math.ceil(len(x) / 32)
schedule = lr_scheduler.LambdaLR(
    optimizer, lambda n: share(n, warmup=40, total=total))
norms, rates = [], []
for _ in range(10):
    for some in torch.randperm(len(x)).split(32):
        optimizer.zero_grad()
        entropy(model(x[some]), labels[some]).backward()
        norms.append(float(clip(model.parameters(), 0.5)))
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()

# %% [markdown] slide="subslide"
# ## How many does it read?

# %% [markdown] slide="notes"
# On the left the schedule, on the right the norms before clipping. The line
# is where they are cut.

# %% slide="more"
with torch.no_grad():
    guesses = model(test_x).argmax(1)
right = (guesses == test_labels).float().mean().item()
print("more than 95 % of unseen digits right:", right > 0.95)
print("the last rate is less than 1 % of the first full one:",
      rates[-1] < 0.0001)

# %% slide="more" folded=true varies=true
figure, (left, right_ax) = plt.subplots(1, 2, figsize=(8.6, 2.6))
left.plot(rates)
left.set(xlabel="step", ylabel="learning rate")
right_ax.semilogy(norms, lw=0.8)
right_ax.axhline(0.5, color="C1", lw=1.5)
right_ax.set(xlabel="step", ylabel="norm before clipping")
right_ax.set_title(f"{right:.1%} of 360 digits right", fontsize=10)
figure.tight_layout()
plt.show()

# %% [markdown]
# Where the norm is above the horizontal line, the gradient was shortened. In the
# beginning that happens in most steps, later only for a few batches with a large
# loss.

# %% [markdown] slide="slide"
# ## Your own package: a loss and an optimizer
#
# With a loss and an optimizer your package can train. The loss is a `Function` as
# in chapter 06. The optimizer is the large exercise of this chapter: groups of
# parameters, Adam, decoupled decay, a schedule, and a state that can be saved.

# %% [markdown] slide="notes"
# With a loss and an optimizer the package can train. The optimizer puts together
# what the chapter had in single exercises.

# %%
import numpy as np

from mytorch.function import Function

# %% exercise="optim.loss" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Eighteen minutes. The gradient is p minus the one-hot label, over n. Derive
# it before they start.

# %% check="optim.loss" points=2

# %% exercise="optim.package" slide="subslide" show="prompt"

# %% [markdown] slide="notes"
# Forty-five minutes, homework. The state is two averages for each parameter, two
# learning rates for each group, and one count of steps.

# %% check="optim.package" points=4

# %% [markdown] slide="subslide"
# ## Milestone: three spirals on your own package
#
# Three arms of points wind around each other. The program below trains a network of
# your `Linear` layers with your cross-entropy and your AdamW. It uses neither
# toytorch nor the course. **Predict**: for how many of 600 unseen points will it
# name the right arm?

# %% [markdown] slide="notes"
# Predict first. The program imports NumPy and the package, and nothing else.

# %% slide="more" show="output" varies=true
milestone(8)

# %% [markdown] slide="slide"
# ## Look inside
#
# toytorch's optimizers define *one rule for one parameter*. The base class goes
# over groups and parameters.

# %% [markdown] slide="notes"
# A rule for one parameter is all that an optimizer has to say. The next slide
# shows who calls it.

# %% [markdown] slide="subslide"
# ## The base class goes over groups and parameters

# %% [markdown] slide="notes"
# Loops over groups and parameters, and what happens to a missing gradient. It
# is written once for all.

# %% slide="more" show="output"
look(torch.optim.Optimizer._update_all)

# %% [markdown]
# Here is the rule of SGD, beside your `step`. `NESTEROV` and `MOMENTUM` are
# compiled formulas: they do in one pass over the memory what would take four. If
# they could not be compiled, they return `False`, and the NumPy lines below them
# run.

# %%
look(torch.optim.SGD.update, use("optim.sgd").step)

# %% [markdown]
# PyTorch has each optimizer in several versions: a plain loop, like yours
# (`_single_tensor_sgd`), one over lists of tensors (`foreach`), and one in a
# single kernel (`fused`). All of them have to give the same results.

# %% [markdown] slide="slide"
# ## Measure: what an optimizer remembers
#
# **Predict:** for a network of 7,210 parameters, how many more does the
# optimizer keep: plain SGD, SGD with momentum, Adam?

# %% [markdown] slide="notes"
# Predict the three multiples of the network's size. Adam's state is twice the
# network.

# %%
def remembered(optimizer):
    """How many numbers an optimizer holds, counters left out."""
    kept = [v for state in optimizer.state.values()
            for v in state.values()]
    return sum(v.numel() for v in kept
               if isinstance(v, torch.Tensor) and v.numel() > 1)


# %% slide="more"
print(sum(p.numel() for p in model.parameters()), "in the network")
kinds = {
    "SGD": torch.optim.SGD,
    "momentum": lambda ps: torch.optim.SGD(ps, momentum=0.9),
    "Adam": torch.optim.Adam,
}
for name, make in kinds.items():
    optimizer = make(model.parameters())
    nn.functional.cross_entropy(model(x[:32]), labels[:32]).backward()
    optimizer.step()
    print(f"{name:<9}{remembered(optimizer):>6}")

# %% [markdown]
# With Adam, the parameters and the state together need the memory of three
# networks, and with the gradients of four. For a model of seven billion parameters
# in float32 that is 112 gigabytes, without any activation. So large models keep the
# state in fewer bits, or distribute it over many machines (chapter 16).
#
# And time? **Predict:** what takes longest: the forward pass, the backward pass, or
# the step of Adam?

# %%
import time


def best(work, times=200):
    """Microseconds for one call, the best of five rounds."""
    rounds = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(times):
            work()
        rounds.append(time.perf_counter() - begin)
    return min(rounds) / times * 1e6


# %% [markdown] slide="subslide"
# ## Forward, backward, step

# %% [markdown] slide="notes"
# The step is a visible part of the time for a small network. Ask for its
# share before you show it.

# %% slide="more" varies=true
def forward():
    return nn.functional.cross_entropy(model(x[:32]), labels[:32])


def both_ways():
    forward().backward()


adam = torch.optim.Adam(model.parameters())
one, two = best(forward), best(both_ways)
mine = Adaptive(model.parameters())
theirs, yours = best(adam.step), best(mine.step)
print(f"forward {one:.0f} µs, backward {two - one:.0f} µs,",
      f"Adam {theirs:.0f} µs, yours {yours:.0f} µs")

# %% [markdown] slide="slide"
# ## Traps
#
# Run on purpose. Read the last line of each error.

# %% [markdown] slide="notes"
# A generator is used up by the first loop. The second mistake hands in a
# result instead of a parameter.

# %% raises=true slide="more"
parameters = model.parameters()
print(len(list(parameters)), "parameters")
torch.optim.SGD(parameters, lr=0.1)  # the generator is used up

# %% raises=true slide="more"
w = torch.ones(2, requires_grad=True)
torch.optim.SGD([w * 2], lr=0.1)  # a result, no parameter

# %% raises=true
torch.optim.SGD([w], lr=0.1, nesterov=True)  # ahead of what?

# %% [markdown]
# The next four mistakes raise no error.

# %% [markdown] slide="subslide"
# ## `zero_grad` forgotten

# %% [markdown] slide="notes"
# Old gradients are added to the new ones. It looks like a momentum that is
# never damped.

# %% slide="more"
for forget in (False, True):
    place = torch.tensor([-2.0, 1.0], requires_grad=True)
    optimizer = torch.optim.SGD([place], lr=0.05)
    for _ in range(30):
        if not forget:
            optimizer.zero_grad()
        valley(*place).backward()
        optimizer.step()
    print("forgotten" if forget else "done     ",
          f"loss {valley(*place).item():.2f}")

# %% [markdown]
# Gradients add up, so each step goes along the sum of *all* gradients so far. That
# is a momentum of 1, which never comes to rest.
#
# The next mistake costs people the most time. `cross_entropy` takes **scores** and
# computes the softmax itself. Here it is given probabilities. **Predict** the
# smallest loss that a perfect network of ten classes can then have: 0?

# %% [markdown] slide="subslide"
# ## Softmax twice

# %% [markdown] slide="notes"
# `cross_entropy` wants scores. Probabilities instead cost accuracy without an
# error.

# %% slide="more"
perfect = torch.zeros(1, 10)
perfect[0, 3] = 1.0  # all probability on the right class
loss = nn.functional.cross_entropy(perfect, torch.tensor([3]))
print(f"{loss.item():.2f}")

# %% [markdown]
# It is $\log(e + 9) - 1 = 1.46$. Such a network trains slowly, and its loss is
# never below this value.
#
# A schedule that is called too early gives at least a warning:

# %%
import warnings

optimizer = torch.optim.SGD([w], lr=1.0)
schedule = lr_scheduler.StepLR(optimizer, step_size=1)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    schedule.step()  # and the optimizer has not stepped yet
print(str(said[0].message).split(". ")[0])
print("the first step will have the rate", optimizer.param_groups[0]["lr"])

# %% [markdown] slide="subslide"
# ## A step before the gradient

# %% [markdown] slide="notes"
# A step without a gradient does nothing and says nothing. Ask for the right
# order of the four calls.

# %% slide="more"
layer = nn.Linear(2, 1)
before = layer.weight.clone()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
loss = layer(torch.ones(1, 2)).square().sum()
optimizer.step()  # no gradient yet: nothing to do, nothing said
loss.backward()
optimizer.zero_grad()  # and now it is thrown away
print("changed:", not torch.equal(before, layer.weight))

# %% [markdown]
# ## Review
#
# Answer each question before you unfold its answer. Questions that begin with
# a chapter's number are about that chapter.
#
# **1.** The loss is 5p², with a curvature of 10. What is p after four steps from 1,
# for each rate?
#
# ```python
# for rate in (0.1, 0.2, 0.25):
#     p = torch.tensor(1.0, requires_grad=True)
#     optimizer = torch.optim.SGD([p], lr=rate)
#     for _ in range(4):
#         optimizer.zero_grad()
#         (5 * p * p).backward()
#         optimizer.step()
#     print(f"{p.item():.2f}")
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 0.00
# 1.00
# 5.06
# ```
#
# Each step multiplies p by 1 - 10 · rate: by 0, -1 and -1.5. A rate of one over
# the curvature arrives at once. At two over the curvature p jumps from side to
# side for ever, and beyond that it diverges.
#
# </details>
#
# **2.** One gradient is a million times as large as the other. How far does Adam's
# first step move each element?
#
# ```python
# p = torch.zeros(2, requires_grad=True)
# optimizer = torch.optim.Adam([p], lr=0.1)
# p.grad = torch.tensor([0.001, 1000.0])
# optimizer.step()
# print([round(v, 3) for v in p.tolist()])
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [-0.1, -0.1]
# ```
#
# After the bias correction the first running mean is g, and the second is g².
# The step is lr · g / √g², which is lr times the sign of g. So the first step has
# the length of the learning rate in every element, whatever the gradient.
#
# </details>
#
# **3.** The gradient is 1 in every step. Where is p after three steps, and how long
# do the steps become in the end?
#
# ```python
# p = torch.zeros(1, requires_grad=True)
# optimizer = torch.optim.SGD([p], lr=1.0, momentum=0.9)
# for _ in range(3):
#     p.grad = torch.ones(1)
#     optimizer.step()
# print(f"{p.item():.2f}")
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# -5.61
# ```
#
# The velocity is 1, then 0.9 + 1 = 1.9, then 0.9 · 1.9 + 1 = 2.71, and the sum of
# the three is 5.61. In the end the velocity is 1 / (1 - 0.9) = 10. So a momentum
# of 0.9 makes steps ten times as long where the gradient stays the same.
#
# </details>
#
# **4.** All scores are equal, then all are raised by 100. What is the loss for four
# classes?
#
# ```python
# scores, right = torch.zeros(1, 4), torch.tensor([2])
# for shift in (0.0, 100.0):
#     loss = torch.nn.functional.cross_entropy(scores + shift, right)
#     print(f"{loss.item():.3f}")
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 1.386
# 1.386
# ```
#
# Equal scores give every class the probability 1/4, and the loss is log 4. A
# number that is added to all scores multiplies every exponential by the same
# factor, which cancels in the softmax. Because of that the largest score may be
# subtracted before exp is computed.
#
# </details>
#
# **5.** What is the gradient of the loss by the four scores?
#
# ```python
# scores = torch.zeros(1, 4, requires_grad=True)
# loss = torch.nn.functional.cross_entropy(scores, torch.tensor([2]))
# loss.backward()
# print(scores.grad.tolist())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [[0.25, 0.25, -0.75, 0.25]]
# ```
#
# It is p - y: the probabilities are 1/4 each, and y is 1 for the right class. The
# right score has the only negative gradient, so descent raises it and lowers the
# other three. The entries add up to 0, because adding the same number to all
# scores does not change the loss.
#
# </details>
#
# **6.** Two gradients are clipped to the norm 1. What are they afterwards?
#
# ```python
# for values in ([3.0, 4.0], [0.3, 0.4]):
#     p = torch.zeros(2, requires_grad=True)
#     p.grad = torch.tensor(values)
#     norm = torch.nn.utils.clip_grad_norm_([p], 1.0)
#     print(f"{norm.item():.1f}", [round(g, 3) for g in p.grad.tolist()])
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 5.0 [0.6, 0.8]
# 0.5 [0.3, 0.4]
# ```
#
# The first gradient has the norm 5, so both elements are multiplied by 1/5, and
# the direction stays. The second one is shorter than 1 and is left alone. The
# norm before clipping is returned, which is useful for a plot.
#
# </details>
#
# **7.** The loss is multiplied by 1000. Which of these takes other steps than before:
# SGD, SGD with momentum, Adam, AdamW, and `Adam(weight_decay=0.1)`?
#
# <details><summary>Answer</summary>
#
# SGD takes steps that are 1000 times as long, with momentum or without. Adam and
# AdamW take the same steps as before, because the factor cancels in the quotient
# (except for ε). `Adam(weight_decay=0.1)` adds the decay to the gradient. The
# gradient is now 1000 times as large and the decay is not, so the weights decay
# much less than before. That is one reason for AdamW.
#
# </details>
#
# **8.** The optimizer has stepped. Why is `w` still 2?
#
# ```python
# w = torch.ones(2, requires_grad=True)
# optimizer = torch.optim.SGD([w], lr=0.1)
# w = (w * 2).detach().requires_grad_()
# w.sum().backward()
# optimizer.step()
# print(w.tolist())
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# [2.0, 2.0]
# ```
#
# The optimizer holds the tensor that it was given. The third line makes a new
# tensor and calls it `w`. The optimizer looks at the old one, whose gradient is
# `None`, and does nothing. To change the values, write into the tensor under
# `torch.no_grad()`.
#
# </details>
#
# **9.** *Chapter 06.* The derivative of `round` is 0 almost everywhere. Does a
# gradient check accept that? Would a network learn?
#
# ```python
# x = torch.tensor([0.3, 1.8], dtype=torch.float64, requires_grad=True)
# print(torch.autograd.gradcheck(torch.round, (x,)))
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# True
# ```
#
# Away from the jumps, a small step does not change the rounded value. So the
# difference quotient is 0 as well, and the check agrees. The derivative is right
# and useless: no weight in front of the rounding would ever move. Therefore a
# straight-through estimator returns another gradient on purpose.
#
# </details>
#
# **10.** *Chapter 06.* A second derivative is asked for. What is missing?
#
# ```python
# x = torch.tensor(3.0, requires_grad=True)
# (first,) = torch.autograd.grad(x**3, x)
# print(first.item(), first.requires_grad)
# torch.autograd.grad(first, x)
# ```
#
# <details><summary>Answer</summary>
#
# ```text
# 27.0 False
# RuntimeError
# ```
#
# Without `create_graph=True` the backward pass is not recorded. The first
# derivative has the right value and no history, so it cannot be differentiated.
# Recording it always would cost memory that training does not need.
#
# </details>

# %% [markdown] slide="slide"
# ## Beyond
#
# * Adam divides each element by its own scale. Which directions of a valley
#   that lies *diagonally* does it not see? Turn the valley by 45 degrees and
#   walk.
# * The curvature could be measured, and each step divided by it (Newton). What
#   would that cost for a million parameters? What do L-BFGS and Muon do
#   instead?
# * If the batch becomes four times as large, the noise halves. Which learning
#   rate would you take, and what would you expect of the same number of steps?
# * The gradient of cross entropy is never 0. What do the weights
#   of a network do that gets everything right? (Label smoothing; decay.)
#
# **Next:** chapter 09 brings the batches.

# %% [markdown] slide="notes"
# The diagonal valley is a good experiment for those who finish early: change
# one line and walk.

"""Chapter 08, Losses and optimizers: cross entropy, SGD, Adam, AdamW, a schedule, clipping."""

import math

import toytorch as torch
from course.cases import call, case
from course.records import Exercise


def descent(make, steps=3, *, lib=torch, rates=(), keep=False, idle=False):
    """Where two parameters are after some steps on a bowl, and a third that has no gradient."""
    a = lib.tensor([1.0, -2.0, 3.0], requires_grad=True)
    b = lib.tensor([0.5, 0.25], requires_grad=True)
    c = lib.tensor([1.0], requires_grad=True)
    optimizer = make([a, b, c] if idle else [a, b])
    bowl = lib.tensor([1.0, 4.0, 0.25])
    for n in range(steps):
        optimizer.zero_grad(set_to_none=not keep)
        loss = (a * a * bowl).sum() / 2 + (b[0] - 2 * b[1] + 1) ** 2
        loss.backward()
        if rates:
            optimizer.param_groups[0]["lr"] = rates[n]
        optimizer.step()
    return [[round(v, 6) for v in p.tolist()] for p in ([a, b, c] if idle else [a, b])]


def _two_groups(kind, name, first, second, **options):
    """An optimizer whose two parameters have different values of one option."""

    def make(params):
        return kind([{"params": params[:1], name: first}, {"params": params[1:], name: second}],
                    **options)

    return make


# -- cross entropy --------------------------------------------------------------------------------

entropy = Exercise(
    "optim.cross_entropy",
    "Cross entropy that does not overflow",
    chapter=8,
    minutes=15,
    prompt="""
    Scores $s$ of shape `(n, C)` become probabilities by the softmax, and the loss of an example is
    minus the logarithm of the probability of the right class $y$. Together:

    $$-\\log \\frac{e^{s_y}}{\\sum_j e^{s_j}} \\;=\\; \\log \\sum_j e^{s_j} \\;-\\; s_y.$$

    Write `cross_entropy(scores, labels, ignore=-100)`, the **mean** of it over the examples.

    * In float32, $e^{89}$ is infinite, and scores do get that large. Let $m$ be the largest score
      **of the example**: $\\log \\sum_j e^{s_j} = m + \\log \\sum_j e^{s_j - m}$. Now the largest
      exponent is 0, and the sum is at least 1.
    * Examples whose label is `ignore` do not count: neither in the sum nor in the number that you
      divide by. (Texts of different length are filled up with such labels.)
    * It has to be made of tensor operations: somebody will call `backward()` on it.
    """,
)


@entropy.stub
def cross_entropy(scores, labels, ignore=-100):
    """The mean of log(sum(exp(row))) - row[label] over all rows."""
    # your code here: about 6 lines
    raise NotImplementedError


@entropy.reference
def cross_entropy(scores, labels, ignore=-100):
    """The mean of log(sum(exp(row))) - row[label] over all rows."""
    kept = labels != ignore
    scores, labels = scores[kept], labels[kept]
    top = scores.max(1, keepdim=True).values
    logs = (scores - top).exp().sum(1).log() + top[:, 0]
    right = scores[torch.arange(len(labels)), labels]
    return (logs - right).mean()


@entropy.mutant(
    "exponentiates the scores as they are",
    why="""
    `exp` of a score of 89 or more is infinite in float32, and one infinite loss makes every weight
    `nan`. Subtract each example's largest score first: it falls out of the formula and keeps all
    exponents at 0 or below.
    """,
)
def cross_entropy(scores, labels, ignore=-100):
    kept = labels != ignore
    scores, labels = scores[kept], labels[kept]
    right = scores[torch.arange(len(labels)), labels]
    return (scores.exp().sum(1).log() - right).mean()


@entropy.mutant(
    "takes the logarithm of a softmax",
    why="""
    The softmax is right, but a class that is 200 behind has a probability of exactly 0 in float32,
    and the logarithm of 0 is minus infinity. Logarithm and exponential have to be cancelled on
    paper, before anything is rounded: that is the second form of the formula.
    """,
)
def cross_entropy(scores, labels, ignore=-100):
    kept = labels != ignore
    scores, labels = scores[kept], labels[kept]
    chances = torch.softmax(scores, 1)
    return -chances[torch.arange(len(labels)), labels].log().mean()


@entropy.mutant(
    "one maximum for the whole batch",
    why="""
    The largest score of the *batch* was subtracted. An example whose own scores are all far below
    it then has a sum of exponentials of exactly 0, and its logarithm is minus infinity. Each
    example needs its own: `max(1, keepdim=True)`.
    """,
)
def cross_entropy(scores, labels, ignore=-100):
    kept = labels != ignore
    scores, labels = scores[kept], labels[kept]
    top = scores.max()
    logs = (scores - top).exp().sum(1).log() + top
    right = scores[torch.arange(len(labels)), labels]
    return (logs - right).mean()


@entropy.mutant(
    "divides by the wrong count",
    why="""
    The ignored examples added nothing to the sum, but they were counted when it was divided. A
    batch that is half filling would have half the loss, and learn half as fast, for no reason.
    """,
)
def cross_entropy(scores, labels, ignore=-100):
    number = len(labels)
    kept = labels != ignore
    scores, labels = scores[kept], labels[kept]
    top = scores.max(1, keepdim=True).values
    logs = (scores - top).exp().sum(1).log() + top[:, 0]
    right = scores[torch.arange(len(labels)), labels]
    return (logs - right).sum() / number


@entropy.mutant(
    "takes the sum",
    why="""
    Losses were added up and not averaged. Then the gradient grows with the batch, and a learning
    rate that was right for 32 examples is too large for 64.
    """,
)
def cross_entropy(scores, labels, ignore=-100):
    kept = labels != ignore
    scores, labels = scores[kept], labels[kept]
    top = scores.max(1, keepdim=True).values
    logs = (scores - top).exp().sum(1).log() + top[:, 0]
    right = scores[torch.arange(len(labels)), labels]
    return (logs - right).sum()


@entropy.mutant(
    "picks a table instead of a column",
    why="""
    `scores[:, labels]` takes the columns of *all* labels for every row: a table of n × n, whose
    mean is a number like any other. One entry for each row is `scores[torch.arange(n), labels]`, or
    `gather`.
    """,
)
def cross_entropy(scores, labels, ignore=-100):
    kept = labels != ignore
    scores, labels = scores[kept], labels[kept]
    top = scores.max(1, keepdim=True).values
    logs = (scores - top).exp().sum(1).log() + top[:, 0]
    return (logs[:, None] - scores[:, labels]).mean()


@entropy.mutant(
    "the sign",
    why="""
    This is the mean *log-probability*, which is to become large. A loss is to become small, so it
    has a minus in front. With this one, gradient descent would make the network as wrong as it can
    be.
    """,
)
def cross_entropy(scores, labels, ignore=-100):
    kept = labels != ignore
    scores, labels = scores[kept], labels[kept]
    top = scores.max(1, keepdim=True).values
    logs = (scores - top).exp().sum(1).log() + top[:, 0]
    right = scores[torch.arange(len(labels)), labels]
    return (right - logs).mean()


@entropy.mutant(
    "cuts the gradient off",
    why="""
    The value is right, and it does not know where it came from: somewhere on the way the tensors
    became numbers (`.item()`, `.tolist()`) or were detached. A loss that has no graph teaches
    nothing.
    """,
)
def cross_entropy(scores, labels, ignore=-100):
    kept = labels != ignore
    scores, labels = scores[kept].detach(), labels[kept]
    top = scores.max(1, keepdim=True).values
    logs = (scores - top).exp().sum(1).log() + top[:, 0]
    right = scores[torch.arange(len(labels)), labels]
    return (logs - right).mean()


# what PyTorch gives
ENTROPY = [
    ([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0], [3.0, -1.0, 1.0]], [1, 2, 0], 0.5497166514396667),
    ([[100.0, 0.0, 99.0]], [0], 0.31326165795326233),
    ([[0.0, 200.0, 0.0]], [0], 200.0),
    ([[1000.0, 1000.0], [-1000.0, -1000.0]], [0, 1], 0.6931471824645996),
    ([[1.0, 2.0], [0.0, 0.0], [5.0, 0.0], [0.0, 3.0]], [0, -100, -100, 1], 0.6809247732162476),
]


def _entropy(f, number):
    scores, labels, wanted = ENTROPY[number]
    return call(f, torch.tensor(scores), torch.tensor(labels)).gives(
        torch.tensor(wanted), tolerance=1e-4)


@entropy.check("three examples, three classes")
def _(f):
    yield _entropy(f, 0)


@entropy.check("large scores")
def _(f):
    yield _entropy(f, 1)
    yield _entropy(f, 2)
    yield _entropy(f, 3)


@entropy.check("ignored examples", hidden=True)
def _(f):
    yield _entropy(f, 4)


@entropy.check("the gradient: probabilities minus the right answer")
def _(f):
    def slope():
        scores = torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]], requires_grad=True)
        loss = f(scores, torch.tensor([0, 0]))
        if not loss.requires_grad:
            return "the loss has no graph"
        loss.backward()
        return scores.grad

    yield case("of scores [[0, 0], [log 3, 0]], both of class 0", slope).gives(
        torch.tensor([[-0.25, 0.25], [-0.125, 0.125]]), tolerance=1e-5)


# -- SGD ------------------------------------------------------------------------------------------

sgd = Exercise(
    "optim.sgd",
    "Gradient descent with momentum",
    chapter=8,
    minutes=18,
    prompt="""
    An optimizer is a subclass of `torch.optim.Optimizer`. The base class keeps the parameters in
    groups and a state for each; you write `step()`, here in PyTorch's form:

    $$g \\leftarrow \\nabla + \\lambda p \\qquad v \\leftarrow \\mu v + g \\qquad
      p \\leftarrow p - \\eta v.$$

    $\\eta$ is `group["lr"]`, $\\mu$ `group["momentum"]`, $\\lambda$ `group["weight_decay"]`. With
    `group["nesterov"]`, the last step is $p \\leftarrow p - \\eta\\,(g + \\mu v)$.

    * Go over `self.param_groups`, and in each over `group["params"]`. Numbers come from *the
      group*: groups may differ, and a schedule may change them between steps.
    * A parameter whose `.grad` is `None` took no part: leave it alone.
    * `self.state[p]` is a dictionary of this parameter's own, empty at first, where $v$ can wait
      for the next step. $v$ starts at 0. It must be memory of its own, not the gradient's.
    * Write into `p` in place (`p.sub_(…)`): everybody else holds that very tensor.
    """,
)


@sgd.stub
class SGD(torch.optim.Optimizer):
    """Steps against the gradient, with momentum and weight decay."""

    def __init__(self, params, lr=0.01, momentum=0.0, nesterov=False,
                 weight_decay=0.0):
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "nesterov": nesterov,
            "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        # your code here: about 9 lines
        raise NotImplementedError


@sgd.reference
class SGD(torch.optim.Optimizer):
    """Steps against the gradient, with momentum and weight decay."""

    def __init__(self, params, lr=0.01, momentum=0.0, nesterov=False,
                 weight_decay=0.0):
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "nesterov": nesterov,
            "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            m = group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad + group["weight_decay"] * p
                state = self.state[p]
                v = state["v"] = m * state.get("v", 0) + g
                move = g + m * v if group["nesterov"] else v
                p.sub_(group["lr"] * move)


@sgd.mutant(
    "the momentum applied twice",
    why="""
    The velocity was multiplied by the momentum when it was kept and once more when it was used, so
    every step is a tenth too short, from the first one on. (Only Nesterov's form has a second
    momentum, and it is *beside* a gradient.)
    """,
)
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.0, nesterov=False, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov,
                                  "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            m = group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad + group["weight_decay"] * p
                v = self.state[p]["v"] = m * self.state[p].get("v", 0) + g
                move = g + m * v if group["nesterov"] else (m * v if m else v)
                p.sub_(group["lr"] * move)


@sgd.mutant(
    "a running mean instead of a velocity",
    why="""
    The new gradient was weighed with 1 - momentum, as in a running mean. PyTorch's velocity is a
    *sum*: with a momentum of 0.9 it grows to ten times a steady gradient. So the same learning rate
    means ten times more here than there.
    """,
)
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.0, nesterov=False, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov,
                                  "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            m = group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad + group["weight_decay"] * p
                v = self.state[p]["v"] = m * self.state[p].get("v", 0) + (1 - m) * g
                p.sub_(group["lr"] * (g + m * v if group["nesterov"] else v))


@sgd.mutant(
    "the rate goes into the velocity",
    why="""
    The velocity was kept as `momentum * v + lr * g`. As long as the rate is constant that is the
    same. When a schedule lowers it, the old velocity goes on at the old rate for a while. PyTorch
    multiplies by the rate last.
    """,
)
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.0, nesterov=False, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov,
                                  "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            m = group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = group["lr"] * (p.grad + group["weight_decay"] * p)
                v = self.state[p]["v"] = m * self.state[p].get("v", 0) + g
                p.sub_(g + m * v if group["nesterov"] else v)


@sgd.mutant(
    "does not know Nesterov",
    why="""
    The plain step was taken whatever `group["nesterov"]` says. Nesterov's form looks ahead: it
    steps along the gradient *and* along where the velocity will go next, `g + momentum * v`.
    """,
)
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.0, nesterov=False, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov,
                                  "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            m = group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad + group["weight_decay"] * p
                v = self.state[p]["v"] = m * self.state[p].get("v", 0) + g
                p.sub_(group["lr"] * v)


@sgd.mutant(
    "weight decay past the velocity",
    why="""
    The decay was taken off the parameter directly and never entered the velocity. That is the
    *decoupled* form, which AdamW has. In SGD as PyTorch has it, the decay is a part of the
    gradient, and gathers momentum like the rest.
    """,
)
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.0, nesterov=False, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov,
                                  "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            m = group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.mul_(1 - group["lr"] * group["weight_decay"])
                g = p.grad
                v = self.state[p]["v"] = m * self.state[p].get("v", 0) + g
                p.sub_(group["lr"] * (g + m * v if group["nesterov"] else v))


@sgd.mutant(
    "the velocity is the gradient's own memory",
    why="""
    The first velocity was `p.grad` itself and no copy. As soon as somebody empties the gradients in
    place (`zero_grad(set_to_none=False)`), the velocity is empty as well, and the next gradient is
    added into it. Make a new tensor: `p.grad.clone()`, or a sum.
    """,
)
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.0, nesterov=False, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov,
                                  "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            m = group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                decay = group["weight_decay"]
                g = p.grad + decay * p if decay else p.grad
                state = self.state[p]
                v = state["v"] = state["v"].mul_(m).add_(g) if "v" in state else g
                p.sub_(group["lr"] * (g + m * v if group["nesterov"] else v))


@sgd.mutant(
    "stumbles over a parameter without gradient",
    why="""
    `p.grad` is `None` for a parameter that took no part in the loss: a layer that was frozen, or a
    branch not taken. That is no mistake, and the optimizer passes it by.
    """,
)
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.0, nesterov=False, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov,
                                  "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            m = group["momentum"]
            for p in group["params"]:
                g = p.grad + group["weight_decay"] * p
                v = self.state[p]["v"] = m * self.state[p].get("v", 0) + g
                p.sub_(group["lr"] * (g + m * v if group["nesterov"] else v))


@sgd.mutant(
    "one rate for all groups",
    why="""
    The numbers came from the first group, or from `self.defaults`. Groups exist to differ: a small
    rate for what was trained before, no weight decay for biases. Read them from the group that the
    parameter is in.
    """,
)
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.0, nesterov=False, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov,
                                  "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        first = self.param_groups[0]
        m = first["momentum"]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad + first["weight_decay"] * p
                v = self.state[p]["v"] = m * self.state[p].get("v", 0) + g
                p.sub_(first["lr"] * (g + m * v if first["nesterov"] else v))


@sgd.mutant(
    "makes a new tensor",
    why="""
    `p = p - lr * v` gives the *name* p to a new tensor. The parameter itself, which the network
    holds, has not changed. Write into it: `p.sub_(…)`, or `p -= …`.
    """,
)
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.0, nesterov=False, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov,
                                  "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            m = group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad + group["weight_decay"] * p
                v = self.state[p]["v"] = m * self.state[p].get("v", 0) + g
                p = p - group["lr"] * (g + m * v if group["nesterov"] else v)


@sgd.mutant(
    "one velocity for all parameters",
    why="""
    The velocity was kept in the optimizer and not in `self.state[p]`, so each parameter went on
    with the velocity of the one before it. If the shapes happen to fit, nobody notices.
    """,
)
class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.0, nesterov=False, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov,
                                  "weight_decay": weight_decay})
        self.v = 0

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            m = group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad + group["weight_decay"] * p
                self.v = (m * self.v if m else 0) + g
                p.sub_(group["lr"] * (g + m * self.v if group["nesterov"] else self.v))


# what torch.optim.SGD comes to: see descent()
SGD_RECORDED = {
    "plain": [
        [0.81, -0.72, 2.851875],
        [0.3, 0.65],
    ],
    "momentum": [
        [0.72, 0.0, 2.784375],
        [0.12, 1.01],
    ],
    "nesterov": [
        [0.5751, 0.5328, 2.661019],
        [0.3, 0.65],
    ],
    "decay": [
        [0.5875, 0.2049999, 2.364375],
        [0.05875001, 0.954375],
    ],
    "rates": [
        [0.85698, -0.9288, 2.891004],
        [0.5, 0.25],
    ],
    "groups": [
        [0.81, -0.72, 2.851875],
        [0.49602, 0.25796],
    ],
    "idle": [
        [0.85, -1.1, 2.775],
        [0.275, 0.6375],
        [1.0],
    ],
    "kept": [
        [0.486, 1.08, 2.588203],
        [0.138, 0.974],
    ],
}


@sgd.check("plain descent")
def _(f):
    yield case("two steps, lr 0.1", lambda: descent(lambda ps: f(ps, lr=0.1), 2)).gives(
        SGD_RECORDED["plain"], tolerance=1e-5)


@sgd.check("momentum")
def _(f):
    yield case("two steps, lr 0.1, momentum 0.9", lambda: descent(
        lambda ps: f(ps, lr=0.1, momentum=0.9), 2)).gives(SGD_RECORDED["momentum"], tolerance=1e-5)
    yield case("two steps, and Nesterov", lambda: descent(
        lambda ps: f(ps, lr=0.1, momentum=0.9, nesterov=True), 2)).gives(
        SGD_RECORDED["nesterov"], tolerance=1e-5)


@sgd.check("weight decay")
def _(f):
    yield case("two steps, lr 0.1, momentum 0.9, weight decay 0.5", lambda: descent(
        lambda ps: f(ps, lr=0.1, momentum=0.9, weight_decay=0.5), 2)).gives(
        SGD_RECORDED["decay"], tolerance=1e-5)


@sgd.check("a rate that changes, groups that differ")
def _(f):
    yield case("rates 0.1, 0.01, 0.01 with momentum 0.9", lambda: descent(
        lambda ps: f(ps[:1], momentum=0.9), rates=(0.1, 0.01, 0.01))).gives(
        SGD_RECORDED["rates"], tolerance=1e-5)
    yield case("two groups, with rates 0.1 and 0.001", lambda: descent(
        _two_groups(f, "lr", 0.1, 0.001), 2)).gives(SGD_RECORDED["groups"], tolerance=1e-5)


@sgd.check("gradients that are missing, or emptied in place", hidden=True)
def _(f):
    yield case("a third parameter that has no gradient", lambda: descent(
        lambda ps: f(ps, lr=0.1, weight_decay=0.5), 1, idle=True)).gives(
        SGD_RECORDED["idle"], tolerance=1e-5)
    yield case("zero_grad(set_to_none=False) before each of three steps", lambda: descent(
        lambda ps: f(ps, lr=0.1, momentum=0.9), 3, keep=True)).gives(
        SGD_RECORDED["kept"], tolerance=1e-5)


# -- Adam -----------------------------------------------------------------------------------------

adam = Exercise(
    "optim.adam",
    "Adam",
    chapter=8,
    minutes=18,
    prompt="""
    Adam keeps two running means for each number: of the gradient, and of its square. It steps by
    the first, divided by the root of the second, so that numbers with large and with small
    gradients move at the same pace:

    $$m \\leftarrow \\beta_1 m + (1 - \\beta_1)\\, g \\qquad
      v \\leftarrow \\beta_2 v + (1 - \\beta_2)\\, g^2$$

    $$\\hat m = \\frac{m}{1 - \\beta_1^t} \\qquad \\hat v = \\frac{v}{1 - \\beta_2^t} \\qquad
      p \\leftarrow p - \\eta\\, \\frac{\\hat m}{\\sqrt{\\hat v} + \\varepsilon}$$

    * $m$ and $v$ start at 0, so at first they are far too small. The divisors, the **bias
      correction**, make up for that. $t$ is the number of this step: **1** at the first.
    * $\\varepsilon$ is added to the root, not under it. `group["betas"]` are $\\beta_1, \\beta_2$.
    * Everything, $t$ included, belongs to the parameter: keep it in `self.state[p]`.
    """,
)


@adam.stub
class Adam(torch.optim.Optimizer):
    """Steps by running means of the gradient and of its square."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        # your code here: about 14 lines
        raise NotImplementedError


@adam.reference
class Adam(torch.optim.Optimizer):
    """Steps by running means of the gradient and of its square."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                t = state["t"] = state.get("t", 0) + 1
                m = state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
                v = state["v"] = b2 * state.get("v", 0) + (1 - b2) * g * g
                m, v = m / (1 - b1**t), v / (1 - b2**t)
                p.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))


@adam.mutant(
    "no bias correction",
    why="""
    The running means start at 0 and need time to grow: after one step, m is a tenth of the gradient
    and √v a thirtieth of its size, so that the first steps are some three times too *long*. The two
    divisors make the means right from the first step on.
    """,
)
class Adam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                m = state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
                v = state["v"] = b2 * state.get("v", 0) + (1 - b2) * g * g
                p.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))


@adam.mutant(
    "counts steps from 0",
    why="""
    In the first step t was 0. Then β⁰ is 1, the divisor 1 - β⁰ is 0, and the parameter becomes
    `nan` (in the next step it would be one too small). Count the step first, then use the count.
    """,
)
class Adam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                t = state.get("t", 0)
                state["t"] = t + 1
                m = state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
                v = state["v"] = b2 * state.get("v", 0) + (1 - b2) * g * g
                m, v = m / (1 - torch.tensor(b1**t)), v / (1 - torch.tensor(b2**t))
                p.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))


@adam.mutant(
    "counts parameters instead of steps",
    why="""
    One counter for the whole optimizer went up with every *parameter*: the second one is at t = 2
    in the first step. Its bias correction is weaker than it should be. Keep t in `self.state[p]`.
    """,
)
class Adam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})
        self.t = 0

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                self.t += 1
                m = state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
                v = state["v"] = b2 * state.get("v", 0) + (1 - b2) * g * g
                m, v = m / (1 - b1**self.t), v / (1 - b2**self.t)
                p.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))


@adam.mutant(
    "eps under the root",
    why="""
    √(v + ε) instead of √v + ε. With ε = 10⁻⁸, the root of ε is 10⁻⁴, so that ten thousand times
    more is added than was meant: numbers with small gradients would hardly move.
    """,
)
class Adam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                t = state["t"] = state.get("t", 0) + 1
                m = state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
                v = state["v"] = b2 * state.get("v", 0) + (1 - b2) * g * g
                m, v = m / (1 - b1**t), v / (1 - b2**t)
                p.sub_(group["lr"] * m / (v + group["eps"]).sqrt())


@adam.mutant(
    "no root",
    why="""
    The step was divided by the mean *square* and not by its root. A gradient twice as large would
    then make a step half as long. With the root, the size of the gradient cancels, which is Adam's
    whole idea.
    """,
)
class Adam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                t = state["t"] = state.get("t", 0) + 1
                m = state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
                v = state["v"] = b2 * state.get("v", 0) + (1 - b2) * g * g
                m, v = m / (1 - b1**t), v / (1 - b2**t)
                p.sub_(group["lr"] * m / (v + group["eps"]))


@adam.mutant(
    "the betas change places",
    why="""
    The gradient was averaged over about a thousand steps and its square over ten. It is meant the
    other way round: the direction should be fresh, the scale steady.
    """,
)
class Adam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b2, b1 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                t = state["t"] = state.get("t", 0) + 1
                m = state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
                v = state["v"] = b2 * state.get("v", 0) + (1 - b2) * g * g
                m, v = m / (1 - b1**t), v / (1 - b2**t)
                p.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))


@adam.mutant(
    "keeps the corrected means",
    why="""
    The corrected means went back into the state, so that the next step starts from numbers that are
    already corrected, and corrects them again. Keep m and v as they are, and correct a copy.
    """,
)
class Adam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                t = state["t"] = state.get("t", 0) + 1
                m = b1 * state.get("m", 0) + (1 - b1) * g
                v = b2 * state.get("v", 0) + (1 - b2) * g * g
                m, v = state["m"], state["v"] = m / (1 - b1**t), v / (1 - b2**t)
                p.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))


ADAM_RECORDED = {
    "one": [
        [0.9, -1.9, 2.9],
        [0.4, 0.35],
    ],
    "five": [
        [0.5079637, -1.502956, 2.50178],
        [0.06659538, 0.6834046],
    ],
    "eps": [
        [0.8028377, -1.718589, 2.820849],
        [0.2724422, 0.5058451],
    ],
    "idle": [
        [0.9, -1.9, 2.9],
        [0.4, 0.35],
        [1.0],
    ],
}


@adam.check("the first step")
def _(f):
    yield case("one step, lr 0.1", lambda: descent(lambda ps: f(ps, lr=0.1), 1)).gives(
        ADAM_RECORDED["one"], tolerance=1e-5)


@adam.check("more steps")
def _(f):
    yield case("five steps, lr 0.1", lambda: descent(lambda ps: f(ps, lr=0.1), 5)).gives(
        ADAM_RECORDED["five"], tolerance=1e-4)


@adam.check("a large eps", hidden=True)
def _(f):
    yield case("three steps, lr 0.1, eps 0.5", lambda: descent(
        lambda ps: f(ps, lr=0.1, eps=0.5))).gives(ADAM_RECORDED["eps"], tolerance=1e-4)


@adam.check("a parameter without a gradient", hidden=True)
def _(f):
    yield case("one step, with a third parameter", lambda: descent(
        lambda ps: f(ps, lr=0.1), 1, idle=True)).gives(ADAM_RECORDED["idle"], tolerance=1e-5)


# -- AdamW ----------------------------------------------------------------------------------------

adamw = Exercise(
    "optim.adamw",
    "Weight decay, decoupled",
    chapter=8,
    minutes=8,
    prompt="""
    Weight decay pulls every weight a little towards 0. `torch.optim.Adam(weight_decay=…)` adds it
    to the gradient, and there Adam divides it away: weights with large gradients hardly decay.
    **AdamW** (Loshchilov and Hutter, 2019) lets each weight shrink by itself, and *then* Adam
    steps:

    $$p \\leftarrow p \\cdot (1 - \\eta \\lambda), \\quad\\text{then Adam's step.}$$

    Your class *is* an Adam, so `super().step()` does the second half. Write the first. $\\eta$ is
    `group["lr"]`, $\\lambda$ is `group["decay"]`; both may differ between groups. A parameter
    without gradient is left alone.
    """,
)


@adamw.stub
class AdamW(torch.optim.Adam):
    """Adam whose weights decay by themselves."""

    def __init__(self, params, lr=1e-3, decay=1e-2):
        super().__init__(params, lr=lr)
        for group in self.param_groups:
            group.setdefault("decay", decay)

    @torch.no_grad()
    def step(self):
        # your code here: about 5 lines
        raise NotImplementedError


@adamw.reference
class AdamW(torch.optim.Adam):
    """Adam whose weights decay by themselves."""

    def __init__(self, params, lr=1e-3, decay=1e-2):
        super().__init__(params, lr=lr)
        for group in self.param_groups:
            group.setdefault("decay", decay)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.mul_(1 - group["lr"] * group["decay"])
        super().step()


@adamw.mutant(
    "adds the decay to the gradient",
    why="""
    This is what Adam's own `weight_decay` does. The decay then takes part in the running means and
    is divided by the root of the mean square, like any gradient: where gradients are large, next to
    nothing of it is left.
    """,
)
class AdamW(torch.optim.Adam):
    def __init__(self, params, lr=1e-3, decay=1e-2):
        super().__init__(params, lr=lr)
        for group in self.param_groups:
            group.setdefault("decay", decay)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.add_(group["decay"] * p)
        super().step()


@adamw.mutant(
    "decays after the step",
    why="""
    The order was turned round, so that the step just taken shrinks, too. The difference is small,
    lr · decay · step, and your numbers are no longer PyTorch's.
    """,
)
class AdamW(torch.optim.Adam):
    def __init__(self, params, lr=1e-3, decay=1e-2):
        super().__init__(params, lr=lr)
        for group in self.param_groups:
            group.setdefault("decay", decay)

    @torch.no_grad()
    def step(self):
        super().step()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.mul_(1 - group["lr"] * group["decay"])


@adamw.mutant(
    "forgets the rate",
    why="""
    The weights shrank by `decay` itself, in every step. It is to be multiplied by the learning
    rate, so that a schedule that lowers the rate lowers the decay with it. Without, a weight is
    halved every 69 steps at a decay of 0.01.
    """,
)
class AdamW(torch.optim.Adam):
    def __init__(self, params, lr=1e-3, decay=1e-2):
        super().__init__(params, lr=lr)
        for group in self.param_groups:
            group.setdefault("decay", decay)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.mul_(1 - group["decay"])
        super().step()


@adamw.mutant(
    "all groups alike",
    why="""
    The decay of the first group was used for all. It is common to put biases and norms into a group
    of their own, with no decay: a norm's scale has no reason to be small.
    """,
)
class AdamW(torch.optim.Adam):
    def __init__(self, params, lr=1e-3, decay=1e-2):
        super().__init__(params, lr=lr)
        for group in self.param_groups:
            group.setdefault("decay", decay)

    @torch.no_grad()
    def step(self):
        decay = self.param_groups[0]["decay"]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.mul_(1 - group["lr"] * decay)
        super().step()


@adamw.mutant(
    "everything shrinks",
    why="""
    A parameter without gradient shrank as well. It took no part in this step, perhaps because it is
    frozen: then it should be the same after training as before.
    """,
)
class AdamW(torch.optim.Adam):
    def __init__(self, params, lr=1e-3, decay=1e-2):
        super().__init__(params, lr=lr)
        for group in self.param_groups:
            group.setdefault("decay", decay)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.mul_(1 - group["lr"] * group["decay"])
        super().step()


@adamw.mutant(
    "shrinks and does not step",
    why="""
    The weights decayed, and Adam was never called: `super().step()` is missing. A network trained
    like this forgets what it knows, slowly.
    """,
)
class AdamW(torch.optim.Adam):
    def __init__(self, params, lr=1e-3, decay=1e-2):
        super().__init__(params, lr=lr)
        for group in self.param_groups:
            group.setdefault("decay", decay)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.mul_(1 - group["lr"] * group["decay"])


ADAMW_RECORDED = {
    "three": [
        [0.5749739, -1.431025, 2.288052],
        [0.153571, 0.4894603],
    ],
    "groups": [
        [0.5749739, -1.431025, 2.288052],
        [0.2106539, 0.5393461],
    ],
    "idle": [
        [0.85, -1.8, 2.75],
        [0.375, 0.3375],
        [1.0],
    ],
}


@adamw.check("three steps")
def _(f):
    yield case("three steps, lr 0.1, decay 0.5", lambda: descent(
        lambda ps: f(ps, lr=0.1, decay=0.5))).gives(ADAMW_RECORDED["three"], tolerance=1e-4)


@adamw.check("groups that differ", hidden=True)
def _(f):
    yield case("decay 0.5 in the first group and 0 in the second", lambda: descent(
        _two_groups(f, "decay", 0.5, 0.0, lr=0.1))).gives(ADAMW_RECORDED["groups"], tolerance=1e-4)


@adamw.check("a parameter without a gradient", hidden=True)
def _(f):
    yield case("one step, with a third parameter", lambda: descent(
        lambda ps: f(ps, lr=0.1, decay=0.5), 1, idle=True)).gives(
        ADAMW_RECORDED["idle"], tolerance=1e-5)


# -- a schedule -----------------------------------------------------------------------------------

schedule = Exercise(
    "optim.schedule",
    "Warm-up, then a cosine",
    chapter=8,
    minutes=10,
    prompt="""
    Most large networks are trained like this: for the first steps the learning rate **grows** along
    a line, then it **falls** along half a wave of a cosine. Write `rate_at(step, warmup, total,
    floor=0.0)`, which returns the rate as a share of the full one.

    * `step` counts from 0. In step 0 of a warm-up of 4 the share is **1/4** (a share of 0 would
      waste a step), in step 3 it is 1.
    * From `step = warmup` on, the share falls from 1 to `floor`: with $x$ going from 0 to 1 at
      `step = total`, it is $f + \\frac{1}{2}(1 - f)(1 + \\cos \\pi x)$, where $f$ is `floor`.
    * After `total` it stays at `floor`.
    * `warmup` may be 0.
    """,
)


@schedule.stub
def rate_at(step, warmup, total, floor=0.0):
    """The learning rate of a step, as a share of the full one."""
    # your code here: about 4 lines. math is imported
    raise NotImplementedError


@schedule.reference
def rate_at(step, warmup, total, floor=0.0):
    """The learning rate of a step, as a share of the full one."""
    if step < warmup:
        return (step + 1) / warmup
    x = min((step - warmup) / (total - warmup), 1.0)
    return floor + (1 - floor) * (1 + math.cos(math.pi * x)) / 2


@schedule.mutant(
    "begins with nothing",
    why="""
    In step 0 the share was 0: the whole first batch, forward and backward, for a step of no length.
    With `step + 1` the first step is one part of the full rate.
    """,
)
def rate_at(step, warmup, total, floor=0.0):
    if step < warmup:
        return step / warmup
    x = min((step - warmup) / (total - warmup), 1.0)
    return floor + (1 - floor) * (1 + math.cos(math.pi * x)) / 2


@schedule.mutant(
    "the cosine does not wait for the warm-up",
    why="""
    The cosine was counted from step 0, so that when the warm-up ends the wave has begun to fall
    already, and the rate jumps. Count from the end of the warm-up: `step - warmup` of
    `total - warmup`.
    """,
)
def rate_at(step, warmup, total, floor=0.0):
    if step < warmup:
        return (step + 1) / warmup
    x = min(step / total, 1.0)
    return floor + (1 - floor) * (1 + math.cos(math.pi * x)) / 2


@schedule.mutant(
    "a whole wave",
    why="""
    A cosine over 2π goes down *and up again*: the rate was lowest half way and full at the end.
    Half a wave is π.
    """,
)
def rate_at(step, warmup, total, floor=0.0):
    if step < warmup:
        return (step + 1) / warmup
    x = min((step - warmup) / (total - warmup), 1.0)
    return floor + (1 - floor) * (1 + math.cos(2 * math.pi * x)) / 2


@schedule.mutant(
    "rises again after the end",
    why="""
    Beyond `total` the wave went on, and up. Somebody who trains a little longer than planned would
    suddenly have a large rate on a finished network. Hold x at 1.
    """,
)
def rate_at(step, warmup, total, floor=0.0):
    if step < warmup:
        return (step + 1) / warmup
    x = (step - warmup) / (total - warmup)
    return floor + (1 - floor) * (1 + math.cos(math.pi * x)) / 2


@schedule.mutant(
    "the floor on top",
    why="""
    The floor was added to the whole wave, so the rate begins at 1 + floor. It should go *from* 1
    *to* the floor: shrink the wave to 1 - floor before you lift it.
    """,
)
def rate_at(step, warmup, total, floor=0.0):
    if step < warmup:
        return (step + 1) / warmup
    x = min((step - warmup) / (total - warmup), 1.0)
    return floor + (1 + math.cos(math.pi * x)) / 2


@schedule.mutant(
    "cannot do without a warm-up",
    why="""
    With `warmup=0` this divides by 0. No warm-up means that the first step is at the full rate
    already: ask `step < warmup` before you divide.
    """,
)
def rate_at(step, warmup, total, floor=0.0):
    x = min(max(step - warmup, 0) / (total - warmup), 1.0)
    wave = floor + (1 - floor) * (1 + math.cos(math.pi * x)) / 2
    return min((step + 1) / warmup, 1.0) * wave


# LinearLR(1/4, total_iters=3), then CosineAnnealingLR(16, eta_min=0.1), at milestone 4
RATES = [0.25, 0.5, 0.75, 1.0, 1.0, 0.991353, 0.965746, 0.924161, 0.868198, 0.800007, 0.722208,
         0.637791, 0.55, 0.462209, 0.377792, 0.299993, 0.231802, 0.175839, 0.134254, 0.108647, 0.1]


@schedule.check("the warm-up")
def _(f):
    yield case("[rate_at(n, 4, 20) for n in range(4)]",
               lambda: [float(f(n, 4, 20)) for n in range(4)]).gives([0.25, 0.5, 0.75, 1.0])


@schedule.check("the whole way, as PyTorch goes it")
def _(f):
    yield case("[rate_at(n, 4, 20, floor=0.1) for n in range(21)]",
               lambda: [float(f(n, 4, 20, floor=0.1)) for n in range(21)]).gives(
        RATES, tolerance=1e-5)


@schedule.check("half way, and at the end")
def _(f):
    yield case("rate_at(n, 10, 110) for n = 10, 60, 110",
               lambda: [float(f(n, 10, 110)) for n in (10, 60, 110)]).gives([1.0, 0.5, 0.0])


@schedule.check("longer than planned")
def _(f):
    yield call(f, 150, 10, 110, 0.2).gives(0.2)


@schedule.check("without a warm-up", hidden=True)
def _(f):
    yield case("rate_at(n, 0, 100) for n = 0, 50",
               lambda: [float(f(n, 0, 100)) for n in (0, 50)]).gives([1.0, 0.5])


# -- clipping -------------------------------------------------------------------------------------

clip = Exercise(
    "optim.clip",
    "Clipping by the norm",
    chapter=8,
    minutes=10,
    prompt="""
    Now and then a batch gives a gradient that is a hundred times as long as usual, and one step of
    it ruins the work of an hour. Write `clip_grad_norm(parameters, max_norm)`: if the gradient is
    longer than `max_norm`, all of it is scaled down to that length. Its **direction** stays.

    * *The* gradient is that of all parameters together. Its norm is the root of the sum of the
      squares of **all** numbers.
    * Multiply every `p.grad`, in place, by `max_norm / (norm + 1e-6)`, but never by more than 1.
    * Parameters without gradient are passed by. `parameters` may be a generator, as
      `model.parameters()` is: you can go through it once.
    * Return the norm **before** clipping, as a tensor of no dimension: it is worth a look.
    """,
)


@clip.stub
def clip_grad_norm(parameters, max_norm):
    """Scale all gradients down to a norm; returns the norm before."""
    # your code here: about 6 lines
    raise NotImplementedError


@clip.reference
def clip_grad_norm(parameters, max_norm):
    """Scale all gradients down to a norm; returns the norm before."""
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = sum(g.square().sum() for g in grads).sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(scale)
    return norm


@clip.mutant(
    "each parameter by itself",
    why="""
    Every parameter's gradient was cut to `max_norm` on its own. Large ones were shortened and small
    ones were not, so the whole points into another direction than the loss's slope.
    """,
)
def clip_grad_norm(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = sum(g.square().sum() for g in grads).sqrt()
    for g in grads:
        g.mul_((max_norm / (g.square().sum().sqrt() + 1e-6)).clamp(max=1.0))
    return norm


@clip.mutant(
    "adds the norms up",
    why="""
    The norms of the parts were added. Lengths add up like the sides of a right triangle: squares
    first, the root last. Parts of 3 and 4 make 5, not 7.
    """,
)
def clip_grad_norm(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = sum(g.square().sum().sqrt() for g in grads)
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(scale)
    return norm


@clip.mutant(
    "makes short ones longer",
    why="""
    A gradient that was shorter than `max_norm` was stretched to it. At the end of training, when
    gradients are small, every step would be as long as at the beginning. Multiply by 1 at most.
    """,
)
def clip_grad_norm(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = sum(g.square().sum() for g in grads).sqrt()
    for g in grads:
        g.mul_(max_norm / (norm + 1e-6))
    return norm


@clip.mutant(
    "cuts off the numbers",
    why="""
    Every number was held between -max_norm and max_norm. That is clipping by *value*
    (`clip_grad_value_`). It bends the gradient: the large numbers lose, the small ones stay.
    """,
)
def clip_grad_norm(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = sum(g.square().sum() for g in grads).sqrt()
    for g in grads:
        g.clamp_(-max_norm, max_norm)
    return norm


@clip.mutant(
    "uses the generator up",
    why="""
    `parameters` was gone through twice. `model.parameters()` is a generator: after the first loop
    it is empty, the second loop does nothing at all, and nothing is clipped. Keep what you need in
    a list.
    """,
)
def clip_grad_norm(parameters, max_norm):
    norm = sum(p.grad.square().sum() for p in parameters if p.grad is not None).sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for p in parameters:
        if p.grad is not None:
            p.grad.mul_(scale)
    return norm


@clip.mutant(
    "stumbles over a parameter without gradient",
    why="""
    `p.grad` is `None` for whatever took no part in the loss. There is nothing to clip and nothing
    to add up: leave it out.
    """,
)
def clip_grad_norm(parameters, max_norm):
    grads = [p.grad for p in parameters]
    norm = sum(g.square().sum() for g in grads).sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(scale)
    return norm


@clip.mutant(
    "returns the norm afterwards",
    why="""
    The norm was taken after clipping, so it is never more than `max_norm`, and nobody learns how
    wild the gradient was. People plot the norm *before*: its peaks tell which batches are trouble.
    """,
)
def clip_grad_norm(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = sum(g.square().sum() for g in grads).sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(scale)
    return sum(g.square().sum() for g in grads).sqrt()


def _clipped(f, grads, max_norm, box=list):
    """What clipping returns, and the gradients afterwards."""
    ps = [torch.zeros(1 if g is None else len(g), requires_grad=True) for g in grads]
    for p, g in zip(ps, grads):
        p.grad = None if g is None else torch.tensor(g)
    norm = f(box(ps), max_norm)
    return norm, [None if p.grad is None else [round(v, 5) for v in p.grad.tolist()]
                  for p in ps]


@clip.check("a gradient that is too long")
def _(f):
    yield case("gradients [4, 2] and [4], clipped to 1",
               lambda: _clipped(f, [[4.0, 2.0], [4.0]], 1.0)).gives(
        (torch.tensor(6.0), [[0.66667, 0.33333], [0.66667]]), tolerance=1e-4)


@clip.check("one that is short enough")
def _(f):
    yield case("gradients [0.3] and [0.4], clipped to 1",
               lambda: _clipped(f, [[0.3], [0.4]], 1.0)).gives(
        (torch.tensor(0.5), [[0.3], [0.4]]), tolerance=1e-4)


@clip.check("a parameter without gradient")
def _(f):
    yield case("gradients [3], None and [4], clipped to 10",
               lambda: _clipped(f, [[3.0], None, [4.0]], 10.0)).gives(
        (torch.tensor(5.0), [[3.0], None, [4.0]]), tolerance=1e-4)


@clip.check("a generator", hidden=True)
def _(f):
    yield case("gradients [6] and [8] from a generator, clipped to 5",
               lambda: _clipped(f, [[6.0], [8.0]], 5.0, iter)).gives(
        (torch.tensor(10.0), [[3.0], [4.0]]), tolerance=1e-4)

"""Gradient descent with momentum."""

import toytorch as torch
from course.cases import case
from course.exercises.ch08.common import Going, _two_groups, descent, journey, some_steps, told
from course.properties import agrees, resumes
from course.records import Exercise

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

    * Go over `self.param_groups`, and in each over `group["params"]`. Settings come from *the
      group*: groups may differ, and a schedule may change them between steps.
    * A parameter whose `.grad` is `None` took no part: leave it alone.
    * `self.state[p]` is a dictionary of this parameter's own, empty at first, where $v$ is kept for
      the next step. $v$ starts at 0. It must be memory of its own, not the gradient's.
    * Write into `p` in place (`p.sub_(…)`), because the network holds this very tensor. Do not
      change the gradient.
    """,
    without=("torch.optim.SGD",),
    hints=(
        """
        `step` is two loops around four lines. For each parameter: make $g$ from its gradient and
        the decay, make the new velocity from the old one, decide which of two moves to take, write
        into the parameter. All settings come from the group, the old velocity from `self.state[p]`.
        """,
        """
        One parameter p = 1, lr 0.1, momentum 0.9, weight decay 0, and the gradient is p in every step:

        | step | g | v = 0.9 v + g | plain: p − 0.1 v |
        | --- | --- | --- | --- |
        | 1 | 1 | 0.9 · 0 + 1 = 1 | 1 − 0.1 = 0.9 |
        | 2 | 0.9 | 0.9 · 1 + 0.9 = 1.8 | 0.9 − 0.18 = 0.72 |
        | 3 | 0.72 | 0.9 · 1.8 + 0.72 = 2.34 | 0.72 − 0.234 = 0.486 |

        With Nesterov the first move is g + 0.9 v = 1 + 0.9 = 1.9, so p becomes 0.81. With a weight decay of
        0.5, the first g would be 1 + 0.5 · 1 = 1.5, and all else follows from it.
        """,
        """
        ```python
        class SGD(torch.optim.Optimizer):
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
                        if ...:
                            continue
                        g = ...
                        state = self.state[p]
                        v = state["v"] = ...
                        move = ...
                        p.sub_(...)
        ```
        """,
    ),
)


@sgd.reference(stub={
    "step": "your code here: about 9 lines",
})
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


sgd.changed(
    "the momentum applied twice",
    """
    The velocity was multiplied by the momentum when it was kept and once more when it was used, so
    every step is a tenth too short, from the first one on. (Only Nesterov's form has a second
    momentum, and it is *beside* a gradient.)
    """,
    (
        'move = g + m * v if group["nesterov"] else v',
        'move = g + m * v if group["nesterov"] else (m * v if m else v)',
    ),
)

sgd.changed(
    "a running mean instead of a velocity",
    """
    The new gradient was weighed with 1 - momentum, as in a running mean. PyTorch's velocity is a
    *sum*: with a momentum of 0.9 it grows to ten times a steady gradient. So the same learning rate
    means ten times more here than there.
    """,
    (
        'v = state["v"] = m * state.get("v", 0) + g',
        'v = state["v"] = m * state.get("v", 0) + (1 - m) * g',
    ),
)

sgd.changed(
    "the rate goes into the velocity",
    """
    The velocity was kept as `momentum * v + lr * g`. As long as the rate is constant that is the
    same. When a schedule lowers it, the old velocity goes on at the old rate for a while. PyTorch
    multiplies by the rate last.
    """,
    (
        'g = p.grad + group["weight_decay"] * p',
        'g = group["lr"] * (p.grad + group["weight_decay"] * p)',
    ),
    (
        '                move = g + m * v if group["nesterov"] else v\n'
        '                p.sub_(group["lr"] * move)',
        '                p.sub_(g + m * v if group["nesterov"] else v)',
    ),
)

sgd.changed(
    "does not know Nesterov",
    """
    The plain step was taken whatever `group["nesterov"]` says. Nesterov's form looks ahead: it
    steps along the gradient *and* along where the velocity will go next, `g + momentum * v`.
    """,
    (
        '                move = g + m * v if group["nesterov"] else v\n'
        '                p.sub_(group["lr"] * move)',
        '                p.sub_(group["lr"] * v)',
    ),
)

sgd.changed(
    "weight decay past the velocity",
    """
    The decay was taken off the parameter directly and never entered the velocity. That is the
    *decoupled* form, which AdamW has. In SGD as PyTorch has it, the decay is a part of the
    gradient, and gathers momentum like the rest.
    """,
    (
        '                g = p.grad + group["weight_decay"] * p',
        '                p.mul_(1 - group["lr"] * group["weight_decay"])\n'
        "                g = p.grad",
    ),
)

sgd.changed(
    "the velocity is the gradient's own memory",
    """
    The first velocity was `p.grad` itself and no copy. As soon as somebody empties the gradients in
    place (`zero_grad(set_to_none=False)`), the velocity is empty as well, and the next gradient is
    added into it. Make a new tensor: `p.grad.clone()`, or a sum.
    """,
    (
        '                g = p.grad + group["weight_decay"] * p',
        '                decay = group["weight_decay"]\n'
        "                g = p.grad + decay * p if decay else p.grad",
    ),
    (
        'v = state["v"] = m * state.get("v", 0) + g',
        'v = state["v"] = state["v"].mul_(m).add_(g) if "v" in state else g',
    ),
)

sgd.changed(
    "stumbles over a parameter without gradient",
    """
    `p.grad` is `None` for a parameter that took no part in the loss: a layer that was frozen, or a
    branch not taken. That is no mistake. Skip such a parameter.
    """,
    (
        "                if p.grad is None:\n"
        "                    continue\n",
        "",
    ),
)

sgd.changed(
    "one rate for all groups",
    """
    The numbers came from the first group, or from `self.defaults`. Groups may differ: a small rate
    for what was trained before, no weight decay for biases. Read them from the group that the
    parameter is in.
    """,
    (
        "        for group in self.param_groups:",
        "        first = self.param_groups[0]\n"
        '        m = first["momentum"]\n'
        "        for group in self.param_groups:",
    ),
    ('            m = group["momentum"]\n', ""),
    ('g = p.grad + group["weight_decay"] * p', 'g = p.grad + first["weight_decay"] * p'),
    (
        '                move = g + m * v if group["nesterov"] else v\n'
        '                p.sub_(group["lr"] * move)',
        '                p.sub_(first["lr"] * (g + m * v if first["nesterov"] else v))',
    ),
)

sgd.changed(
    "makes a new tensor",
    """
    `p = p - lr * v` gives the *name* p to a new tensor. The parameter itself, which the network
    holds, has not changed. Write into it: `p.sub_(…)`, or `p -= …`.
    """,
    (
        '                move = g + m * v if group["nesterov"] else v\n'
        '                p.sub_(group["lr"] * move)',
        '                p = p - group["lr"] * (g + m * v if group["nesterov"] else v)',
    ),
)

sgd.changed(
    "one velocity for all parameters",
    """
    The velocity was kept in the optimizer and not in `self.state[p]`, so each parameter went on
    with the velocity of the one before it. If the shapes happen to fit, no error is raised.
    """,
    (
        "    @torch.no_grad()",
        "        self.v = 0\n"
        "\n"
        "    @torch.no_grad()",
    ),
    (
        "                state = self.state[p]\n"
        '                v = state["v"] = m * state.get("v", 0) + g\n'
        '                move = g + m * v if group["nesterov"] else v\n'
        '                p.sub_(group["lr"] * move)',
        "                self.v = (m * self.v if m else 0) + g\n"
        '                p.sub_(group["lr"] * (g + m * self.v if group["nesterov"] else self.v))',
    ),
)


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


sgd.changed(
    "keeps the velocity where nobody saves it",
    """
    The velocity is in an attribute of the optimizer. `state_dict()` saves `self.state` and nothing
    else, so a training that goes on from a file begins with a velocity of 0. That is what
    `self.state[p]` is for.
    """,
    ("state = self.state[p]", "state = self.__dict__.setdefault('own', {}).setdefault(id(p), {})"),
)

sgd.changed(
    "writes the decay into the gradient",
    """
    `p.grad.add_(…)` changes the gradient itself. Whoever looks at it afterwards (a plot, a clipping
    that comes later, the next `backward`, which adds to it) finds another one. Compute a new `g`.
    """,
    ('g = p.grad + group["weight_decay"] * p', 'g = p.grad.add_(group["weight_decay"] * p).clone()'),
)

sgd.changed(
    "empties the gradient",
    """
    `step` set the gradients to zero. That is what `zero_grad` is for, and the caller decides when:
    some add up the gradients of several batches, some look at them after the step.
    """,
    (
        'p.sub_(group["lr"] * move)',
        'p.sub_(group["lr"] * move)\n                p.grad.zero_()',
    ),
)

sgd.changed(
    "takes a zero gradient for none",
    """
    A gradient of zeros is a gradient: the velocity decays, and moves the parameter on; the weight
    decay pulls. Only `None` means that the parameter took no part.
    """,
    ("if p.grad is None:", "if p.grad is None or not p.grad.any():"),
)

sgd.changed(
    "gives the parameter another memory",
    """
    `p.data = …` puts the parameter onto a new memory. Views of it, and tensors that share it, stay
    behind with the old values. `p.sub_(…)` writes where the parameter is.
    """,
    ('p.sub_(group["lr"] * move)', 'p.data = p - group["lr"] * move'),
)

sgd.changed(
    "Nesterov adds the whole velocity",
    """
    Nesterov's step is `g + momentum * v`. Here the velocity was added without the momentum.
    """,
    ("g + m * v if", "g + v if"),
)


def _any(draw):
    def group():
        return {
            "lr": draw.choice([0.1, 0.5]),
            "momentum": draw.choice([0.0, 0.5, 0.9]),
            "nesterov": draw.random() < 0.4,
            "weight_decay": draw.choice([0.0, 0.0, 0.3]),
        }

    return [group(), group()], some_steps(draw)


@sgd.check("any options, any gradients")
def _(f):
    yield agrees(
        lambda *args: journey(f, *args),
        lambda *args: journey(sgd.answer.value, *args),
        _any,
        count=60,
        tolerance=1e-4,
        tell=told,
    )
    yield resumes(lambda: Going(lambda ps: f(ps, lr=0.1, momentum=0.9)), Going.step)

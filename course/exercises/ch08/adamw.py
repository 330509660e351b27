"""Weight decay, decoupled."""

import toytorch as torch
from course.cases import case
from course.exercises.ch08.common import _two_groups, descent
from course.records import Exercise

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

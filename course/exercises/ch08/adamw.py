"""Weight decay, decoupled."""

import toytorch as torch
from course.cases import case
from course.exercises.ch08.common import _two_groups, descent, journey, some_steps, told
from course.properties import agrees
from course.records import Exercise

adamw = Exercise(
    "optim.adamw",
    "Weight decay, decoupled",
    chapter=8,
    minutes=8,
    optional=True,
    prompt="""
    Weight decay pulls every weight a little towards 0. `torch.optim.Adam(weight_decay=…)` adds it
    to the gradient, and Adam divides the sum by the root of the mean square. So weights with large
    gradients hardly decay. **AdamW** (Loshchilov and Hutter, 2019) multiplies each weight by a
    factor first, and *then* takes Adam's step:

    $$p \\leftarrow p \\cdot (1 - \\eta \\lambda), \\quad\\text{then Adam's step.}$$

    Your class *is* an Adam, so `super().step()` does the second half. Write the first. $\\eta$ is
    `group["lr"]`, $\\lambda$ is `group["decay"]`; both may differ between groups. A parameter
    without gradient is left alone.
    """,
    without=("torch.optim.AdamW",),
    hints=(
        """
        Two halves, one after the other: first every weight that takes part in this step shrinks by its own
        group's factor, in place; then `super().step()` is called, once, for everything.
        """,
        """
        Two groups, lr 0.1 in both. The first has decay 0.5 and p = 2, the second decay 0 and q = 2. Both
        have the gradient 3, and it is the first step, so Adam's step is 0.1 · 3 / 3 = 0.1:

        | | p | q |
        | --- | --- | --- |
        | factor 1 − lr · decay | 1 − 0.05 = 0.95 | 1 |
        | after shrinking | 1.9 | 2 |
        | after Adam's step | 1.8 | 1.9 |

        A parameter without a gradient stays what it is: it neither shrinks nor steps.
        """,
        """
        ```python
        class AdamW(torch.optim.Adam):
            def __init__(self, params, lr=1e-3, decay=1e-2):
                super().__init__(params, lr=lr)
                for group in self.param_groups:
                    group.setdefault("decay", decay)

            @torch.no_grad()
            def step(self):
                for group in self.param_groups:
                    for p in group["params"]:
                        if ...:
                            p.mul_(...)
                ...
        ```
        """,
    ),
)


@adamw.reference(stub={
    "step": "your code here: about 5 lines",
})
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


adamw.changed(
    "adds the decay to the gradient",
    """
    This is what Adam's own `weight_decay` does. The decay then takes part in the running means and
    is divided by the root of the mean square, like any gradient: where gradients are large, next to
    nothing of it is left.
    """,
    ('p.mul_(1 - group["lr"] * group["decay"])', 'p.grad.add_(group["decay"] * p)'),
)

adamw.changed(
    "decays after the step",
    """
    The order was turned round, so that the step just taken shrinks, too. The difference is small,
    lr · decay · step, and your numbers are no longer PyTorch's.
    """,
    ("        super().step()", ""),
    (
        "        for group in self.param_groups:\n"
        '            for p in group["params"]:\n',
        "        super().step()\n"
        "        for group in self.param_groups:\n"
        '            for p in group["params"]:\n',
    ),
)

adamw.changed(
    "forgets the rate",
    """
    The weights shrank by `decay` itself, in every step. It is to be multiplied by the learning
    rate, so that a schedule that lowers the rate lowers the decay with it. Without, a weight is
    halved every 69 steps at a decay of 0.01.
    """,
    ('p.mul_(1 - group["lr"] * group["decay"])', 'p.mul_(1 - group["decay"])'),
)

adamw.changed(
    "all groups alike",
    """
    The decay of the first group was used for all. It is common to put biases and norms into a group
    of their own, with no decay: a norm's scale has no reason to be small.
    """,
    (
        "        for group in self.param_groups:\n"
        '            for p in group["params"]:',
        '        decay = self.param_groups[0]["decay"]\n'
        "        for group in self.param_groups:\n"
        '            for p in group["params"]:',
    ),
    ('p.mul_(1 - group["lr"] * group["decay"])', 'p.mul_(1 - group["lr"] * decay)'),
)

adamw.changed(
    "everything shrinks",
    """
    A parameter without gradient shrank as well. It took no part in this step, perhaps because it is
    frozen: then it should be the same after training as before.
    """,
    (
        "                if p.grad is not None:\n"
        '                    p.mul_(1 - group["lr"] * group["decay"])',
        '                p.mul_(1 - group["lr"] * group["decay"])',
    ),
)

adamw.changed(
    "shrinks and does not step",
    """
    The weights decayed, and Adam was never called: `super().step()` is missing. With this, all
    weights go slowly to 0.
    """,
    (
        "\n"
        "        super().step()",
        "",
    ),
)


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


adamw.changed(
    "the rate that the optimizer was made with",
    """
    The rate came from `self.defaults`. A schedule changes `group["lr"]`, and the decay is to shrink
    with it.
    """,
    ('group["lr"] * group["decay"]', 'self.defaults["lr"] * group["decay"]'),
)

adamw.changed(
    "takes a zero gradient for none",
    """
    A gradient of zeros is a gradient, and the weight decays. Only `None` means that the parameter
    took no part.
    """,
    ("if p.grad is not None:", "if p.grad is not None and p.grad.any():"),
)

adamw.changed(
    "gives the parameter another memory",
    """
    `p.data = …` puts the parameter onto a new memory. Views of it, and tensors that share it, stay
    behind with the old values. `p.mul_(…)` writes where the parameter is.
    """,
    ('p.mul_(1 - group["lr"] * group["decay"])', 'p.data = p * (1 - group["lr"] * group["decay"])'),
)

adamw.changed(
    "steps once for each group",
    """
    `super().step()` stands inside the loop, and it steps *all* groups: with two groups, everything
    moves twice. Call it once, after the loops.
    """,
    ("        super().step()", "            super().step()"),
)


def _any(draw):
    options = [{"lr": 0.1, "decay": draw.choice([0.0, 0.5])} for _ in range(2)]
    options[1]["lr"] = draw.choice([0.1, 0.5])
    return options, some_steps(draw)


@adamw.check("any options, any gradients")
def _(f):
    yield agrees(
        lambda *args: journey(f, *args),
        lambda *args: journey(adamw.answer.value, *args),
        _any,
        tolerance=1e-4,
        tell=told,
    )

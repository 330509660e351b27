"""Adam."""

import toytorch as torch
from course.cases import case
from course.exercises.ch08.common import Going, descent, journey, some_steps, told
from course.properties import agrees, resumes
from course.records import Exercise

adam = Exercise(
    "optim.adam",
    "Adam",
    chapter=8,
    minutes=18,
    prompt="""
    Adam keeps two running means for each element: of the gradient, and of its square. It steps by
    the first, divided by the root of the second, so that elements with large and with small
    gradients take steps of about the same length:

    $$m \\leftarrow \\beta_1 m + (1 - \\beta_1)\\, g \\qquad
      v \\leftarrow \\beta_2 v + (1 - \\beta_2)\\, g^2$$

    $$\\hat m = \\frac{m}{1 - \\beta_1^t} \\qquad \\hat v = \\frac{v}{1 - \\beta_2^t} \\qquad
      p \\leftarrow p - \\eta\\, \\frac{\\hat m}{\\sqrt{\\hat v} + \\varepsilon}$$

    * $m$ and $v$ start at 0, so at first they are far too small. The divisors, the **bias
      correction**, make up for that. $t$ is the number of this step: **1** at the first.
    * $\\varepsilon$ is added to the root, not under it. `group["betas"]` are $\\beta_1, \\beta_2$.
    * Everything, $t$ included, belongs to the parameter: keep it in `self.state[p]`.
    """,
    without=("torch.optim.Adam",),
    hints=(
        """
        For each parameter, five lines: count the step, update both running means, correct *copies* of them,
        and step. What has to be there again in the next step goes into `self.state[p]`: the count and the
        two uncorrected means.
        """,
        """
        One number p = 1, lr 0.1, β = (0.9, 0.999); the gradient is 4 in the first step and 2 in the second:

        | | step 1 | step 2 |
        | --- | --- | --- |
        | t | 1 | 2 |
        | m = 0.9 m + 0.1 g | 0.4 | 0.9 · 0.4 + 0.2 = 0.56 |
        | v = 0.999 v + 0.001 g² | 0.016 | 0.015984 + 0.004 = 0.019984 |
        | m / (1 − 0.9ᵗ) | 0.4 / 0.1 = 4 | 0.56 / 0.19 = 2.947 |
        | v / (1 − 0.999ᵗ) | 0.016 / 0.001 = 16 | 0.019984 / 0.001999 = 9.997 |
        | step: 0.1 · m̂ / (√v̂ + ε) | 0.1 · 4 / 4 = 0.1 | 0.1 · 2.947 / 3.162 = 0.0932 |
        | p | 0.9 | 0.8068 |

        The uncorrected 0.56 and 0.019984 are kept for step 3.
        """,
        """
        ```python
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
                        t = state["t"] = ...
                        m = state["m"] = ...
                        v = state["v"] = ...
                        m, v = ...
                        p.sub_(...)
        ```
        """,
    ),
)


@adam.reference(stub={
    "step": "your code here: about 14 lines",
})
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


adam.changed(
    "no bias correction",
    """
    The running means start at 0 and need time to grow: after one step, m is a tenth of the gradient
    and √v a thirtieth of its size, so that the first steps are some three times too *long*. The two
    divisors make the means right from the first step on.
    """,
    ('                t = state["t"] = state.get("t", 0) + 1\n', ""),
    ("                m, v = m / (1 - b1**t), v / (1 - b2**t)\n", ""),
)

adam.changed(
    "counts steps from 0",
    """
    In the first step t was 0. Then β⁰ is 1, the divisor 1 - β⁰ is 0, and the parameter becomes
    `nan` (in the next step it would be one too small). Count the step first, then use the count.
    """,
    (
        '                t = state["t"] = state.get("t", 0) + 1',
        '                t = state.get("t", 0)\n'
        '                state["t"] = t + 1',
    ),
    (
        "m, v = m / (1 - b1**t), v / (1 - b2**t)",
        "m, v = m / (1 - torch.tensor(b1**t)), v / (1 - torch.tensor(b2**t))",
    ),
)

adam.changed(
    "counts parameters instead of steps",
    """
    One counter for the whole optimizer went up with every *parameter*: the second one is at t = 2
    in the first step. Its bias correction is weaker than it should be. Keep t in `self.state[p]`.
    """,
    (
        "    @torch.no_grad()",
        "        self.t = 0\n"
        "\n"
        "    @torch.no_grad()",
    ),
    ('t = state["t"] = state.get("t", 0) + 1', "self.t += 1"),
    (
        "m, v = m / (1 - b1**t), v / (1 - b2**t)",
        "m, v = m / (1 - b1**self.t), v / (1 - b2**self.t)",
    ),
)

adam.changed(
    "eps under the root",
    """
    √(v + ε) instead of √v + ε. With ε = 10⁻⁸, the root of ε is 10⁻⁴, so that ten thousand times
    more is added than was meant: numbers with small gradients would hardly move.
    """,
    (
        'p.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))',
        'p.sub_(group["lr"] * m / (v + group["eps"]).sqrt())',
    ),
)

adam.changed(
    "no root",
    """
    The step was divided by the mean *square* and not by its root. A gradient twice as large would
    then make a step half as long. With the root, the size of the gradient cancels, which is Adam's
    whole idea.
    """,
    (
        'p.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))',
        'p.sub_(group["lr"] * m / (v + group["eps"]))',
    ),
)

adam.changed(
    "the betas change places",
    """
    The gradient was averaged over about a thousand steps and its square over ten. It should be the
    other way round: a short average for the direction, and a long one for the scale.
    """,
    ('b1, b2 = group["betas"]', 'b2, b1 = group["betas"]'),
)

adam.changed(
    "keeps the corrected means",
    """
    The corrected means went back into the state, so that the next step starts from numbers that are
    already corrected, and corrects them again. Keep m and v as they are, and correct a copy.
    """,
    (
        '                m = state["m"] = b1 * state.get("m", 0) + (1 - b1) * g\n'
        '                v = state["v"] = b2 * state.get("v", 0) + (1 - b2) * g * g\n'
        "                m, v = m / (1 - b1**t), v / (1 - b2**t)",
        '                m = b1 * state.get("m", 0) + (1 - b1) * g\n'
        '                v = b2 * state.get("v", 0) + (1 - b2) * g * g\n'
        '                m, v = state["m"], state["v"] = m / (1 - b1**t), v / (1 - b2**t)',
    ),
)


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


adam.changed(
    "the largest second mean so far",
    """
    This is AMSGrad, a variant: it divides by the largest second mean that there has ever been.
    Adam divides by the current one, so that after one huge gradient the steps recover.
    """,
    (
        "                m, v = m / (1 - b1**t), v / (1 - b2**t)\n",
        "                m, v = m / (1 - b1**t), v / (1 - b2**t)\n"
        '                v = state["top"] = torch.maximum(state.get("top", v), v)\n',
    ),
)

adam.changed(
    "one count for the whole group",
    """
    The steps were counted for the group. A parameter that joins later, because it was frozen or had
    no gradient at first, is then corrected as if its means had had as many steps as the others'.
    Each parameter has a count of its own.
    """,
    (
        '                t = state["t"] = state.get("t", 0) + 1\n',
        "",
    ),
    (
        '            b1, b2 = group["betas"]\n',
        '            b1, b2 = group["betas"]\n            t = group["t"] = group.get("t", 0) + 1\n',
    ),
)

adam.changed(
    "keeps its means where nobody saves them",
    """
    Means and count are in an attribute of the optimizer. `state_dict()` saves `self.state` and
    nothing else, so a training that goes on from a file begins with means of 0.
    """,
    (
        "g, state = p.grad, self.state[p]",
        "g, state = p.grad, self.__dict__.setdefault('own', {}).setdefault(id(p), {})",
    ),
)

adam.changed(
    "the betas that the optimizer was made with",
    """
    The betas came from `self.defaults`. Groups may have their own, and a schedule may change them.
    """,
    ('group["betas"]', 'self.defaults["betas"]'),
)

adam.changed(
    "the eps that the optimizer was made with",
    """
    The eps came from `self.defaults`. Groups may have their own.
    """,
    ('group["eps"]', 'self.defaults["eps"]'),
)

adam.changed(
    "empties the gradient",
    """
    `step` set the gradients to zero. That is what `zero_grad` is for, and the caller decides when.
    """,
    (
        "                p.sub_(",
        "                p.grad.zero_()\n                p.sub_(",
    ),
)

adam.changed(
    "gives the parameter another memory",
    """
    `p.data = …` puts the parameter onto a new memory. Views of it, and tensors that share it, stay
    behind with the old values. `p.sub_(…)` writes where the parameter is.
    """,
    (
        'p.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))',
        'p.data = p - group["lr"] * m / (v.sqrt() + group["eps"])',
    ),
)


def _any(draw):
    def group():
        return {
            "lr": draw.choice([0.1, 0.5]),
            "betas": draw.choice([(0.9, 0.999), (0.5, 0.8)]),
            "eps": draw.choice([1e-8, 0.1]),
        }

    return [group(), group()], some_steps(draw, 6)


@adam.check("any options, any gradients")
def _(f):
    yield agrees(
        lambda *args: journey(f, *args),
        lambda *args: journey(adam.answer.value, *args),
        _any,
        count=80,
        tolerance=1e-4,
        tell=told,
    )
    yield resumes(lambda: Going(lambda ps: f(ps, lr=0.1)), Going.step)

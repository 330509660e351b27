"""AdamW for the learner's own package."""

import contextlib
from functools import partial

import numpy as np

import toytorch as torch
from course.cases import case
from course.properties import agrees
from course.records import Exercise
from mytorch.tensor import Tensor

own_adam = Exercise(
    "optim.package",
    "An optimizer for your package",
    chapter=8,
    minutes=45,
    prompt="""
    A class `AdamW` that trains the tensors of your package, with **groups** of parameters that have
    options of their own, a **schedule**, and a **state** that can be saved.

    1. **Set up.** `parameters` is an iterable of tensors, or a list of groups: dictionaries with
       `"parameters"` and any of `"lr"`, `"betas"`, `"eps"`, `"decay"`. What a group does not say is
       taken from the arguments. Tensors without a group form a single one.

       `self.groups` is a list of dictionaries with all five entries, `"parameters"` a list. The
       caller's dictionaries stay as they are. No parameters at all, a negative `lr`, or a
       parameter that occurs twice is a `ValueError`. `zero_grad()` sets every `grad` to `None`.
    2. **Step.** With g the gradient, t the number of calls of `step()` including this one, and
       λ the group's `decay`:

       $$m \\leftarrow \\beta_1 m + (1-\\beta_1) g, \\quad
       v \\leftarrow \\beta_2 v + (1-\\beta_2) g^2, \\quad
       \\hat m = \\frac{m}{1-\\beta_1^t}, \\quad \\hat v = \\frac{v}{1-\\beta_2^t},$$
       $$p \\leftarrow p - lr \\left(\\frac{\\hat m}{\\sqrt{\\hat v} + \\epsilon} + \\lambda p\\right).$$

       There is **one t for all parameters**: every call of `step()` counts, also for a parameter that
       has no gradient then. Such a parameter is left alone, averages included. Write `p.data` anew
       instead of changing the array in place: a graph may still hold it.
    3. **Groups.** Everything in these formulas but t comes from the parameter's own group, and is read
       in each step: whoever trains may change it.
    4. **Schedule.** `set_rate(share)` sets each group's `lr` to `share` times the `lr` that the group
       *began* with, however often it is called. `rate_at` of this chapter gives shares.
    5. **State.** `state_dict()` gives the steps and, for each group, its `lr`, the `lr` that it began
       with, and copies of its averages. `load_state_dict(state)` goes on from there, exactly as if
       there had been no break. A state for more or fewer parameters is a `ValueError`, and then
       nothing has changed.

    A trace: p = 1 in a group with λ = 0.5, q = 1 in one without decay; lr = 0.1, both gradients 4.

    | | p | q |
    | --- | --- | --- |
    | m, v | 0.4, 0.016 | 0.4, 0.016 |
    | m̂, v̂ at t = 1 | 4, 16 | 4, 16 |
    | step + λ · p | 4/4 + 0.5 · 1 = 1.5 | 1 |
    | after the step | 1 − 0.1 · 1.5 = 0.85 | 0.9 |

    After `set_rate(0.5)` the next step has lr 0.05, and after `set_rate(1)` again 0.1.
    """,
    without=("torch.optim.AdamW", "torch.optim.Adam"),
    hints=(
        """
        Bring both kinds of input into one form first: a list of groups. A group is a dictionary, and
        `{**options, **group}` is a new one in which the group's own entries win. Its averages fit in
        there as well: two lists of arrays, with zeros in the shape of each parameter. Then `step` is
        two loops, over groups and over their parameters, around one line for each formula.
        """,
        """
        One parameter p = 1 with lr = 0.1, betas (0.9, 0.999) and λ = 0.5. Its gradients are 4, none, 2.

        | call | t | m | v | m̂ | v̂ | m̂ / √v̂ | p |
        | --- | --- | --- | --- | --- | --- | --- | --- |
        | start | 0 | 0 | 0 | | | | 1 |
        | g = 4 | 1 | 0.4 | 0.016 | 4 | 16 | 1 | 1 − 0.1 · (1 + 0.5 · 1) = 0.85 |
        | no g | 2 | 0.4 | 0.016 | | | | 0.85 |
        | g = 2 | 3 | 0.56 | 0.019984 | 2.066 | 6.668 | 0.8 | 0.85 − 0.1 · (0.8 + 0.5 · 0.85) = 0.7275 |

        In the last row t is 3, although this parameter has moved only once before. So m̂ is 0.56 /
        0.271, with 0.271 = 1 − 0.9³, and v̂ is 0.019984 / 0.002997, with 0.002997 = 1 − 0.999³.

        A state that is saved after it holds t = 3 and, for the group, lr = 0.1 twice (now, and at the
        beginning), m = 0.56 and v = 0.019984. p belongs to the network, not to the state.

        `AdamW([{"parameters": [p], "lr": 0.2}, {"parameters": [q]}], lr=0.1)` has two groups, with lr
        0.2 and 0.1. After `set_rate(0.5)` they have 0.1 and 0.05; after `set_rate(0.1)`, 0.02 and 0.01.
        """,
        """
        ```python
        class AdamW:
            def __init__(
                self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.0
            ):
                options = {"lr": lr, "betas": betas, "eps": eps, "decay": decay}
                given = ...
                if not given or not isinstance(given[0], dict):
                    given = ...  # one group
                self.steps, self.groups = 0, []
                for one in given:
                    group = ...
                    if group["lr"] < 0:
                        raise ValueError(f"invalid learning rate: {group['lr']}")
                    own = group["parameters"] = ...
                    group["full"] = group["lr"]
                    group["first"] = [... for p in own]
                    group["second"] = [... for p in own]
                    self.groups.append(group)
                groups = self.groups
                every = [id(p) for group in groups for p in group["parameters"]]
                if not every:
                    raise ValueError("there are no parameters")
                if ...:
                    raise ValueError("a parameter occurs twice")

            def zero_grad(self):
                for group in self.groups:
                    for p in group["parameters"]:
                        ...

            def step(self):
                ...  # counts this call
                for group in self.groups:
                    b1, b2 = group["betas"]
                    first, second = group["first"], group["second"]
                    for n, p in enumerate(group["parameters"]):
                        if p.grad is None:
                            continue
                        g = p.grad
                        first[n] = ...
                        second[n] = ...
                        mean = ...  # the first average, corrected
                        square = ...
                        step = ...
                        step = ...  # and the decay
                        p.data = ...

            def set_rate(self, share):
                for group in self.groups:
                    ...

            def state_dict(self):
                groups = []
                for group in self.groups:
                    saved = {"lr": group["lr"], "full": group["full"]}
                    for name in ("first", "second"):
                        saved[name] = ...
                    groups.append(saved)
                return {"steps": self.steps, "groups": groups}

            def load_state_dict(self, state):
                counts = [len(group["first"]) for group in self.groups]
                if ...:
                    raise ValueError("a state of other parameters")
                self.steps = state["steps"]
                for group, saved in zip(self.groups, state["groups"]):
                    ...
                    for name in ("first", "second"):
                        group[name] = ...
        ```
        """,
    ),
)


@own_adam.reference(stub={
    "__init__": "stage 1, your code here: about 19 lines",
    "zero_grad": "stage 1, your code here: about 3 lines",
    "step": "stages 2 and 3, your code here: about 14 lines",
    "set_rate": "stage 4, your code here: about 2 lines",
    "state_dict": "stage 5, your code here: about 7 lines",
    "load_state_dict": "stage 5, your code here: about 8 lines",
})
class AdamW:
    """Adam with weight decay apart from the gradient, in groups."""

    def __init__(
        self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.0
    ):
        options = {"lr": lr, "betas": betas, "eps": eps, "decay": decay}
        given = list(parameters)
        if not given or not isinstance(given[0], dict):
            given = [{"parameters": given}]
        self.steps, self.groups = 0, []
        for one in given:
            group = {**options, **one}
            if group["lr"] < 0:
                raise ValueError(f"invalid learning rate: {group['lr']}")
            own = group["parameters"] = list(group["parameters"])
            group["full"] = group["lr"]
            group["first"] = [np.zeros_like(p.data) for p in own]
            group["second"] = [np.zeros_like(p.data) for p in own]
            self.groups.append(group)
        groups = self.groups
        every = [id(p) for group in groups for p in group["parameters"]]
        if not every:
            raise ValueError("there are no parameters")
        if len(set(every)) < len(every):
            raise ValueError("a parameter occurs twice")

    def zero_grad(self):
        for group in self.groups:
            for p in group["parameters"]:
                p.grad = None

    def step(self):
        self.steps += 1
        for group in self.groups:
            b1, b2 = group["betas"]
            first, second = group["first"], group["second"]
            for n, p in enumerate(group["parameters"]):
                if p.grad is None:
                    continue
                g = p.grad
                first[n] = b1 * first[n] + (1 - b1) * g
                second[n] = b2 * second[n] + (1 - b2) * g * g
                mean = first[n] / (1 - b1**self.steps)
                square = second[n] / (1 - b2**self.steps)
                step = mean / (np.sqrt(square) + group["eps"])
                step = step + group["decay"] * p.data
                p.data = p.data - group["lr"] * step

    def set_rate(self, share):
        """Each group's learning rate: a share of the one it began with."""
        for group in self.groups:
            group["lr"] = share * group["full"]

    def state_dict(self):
        groups = []
        for group in self.groups:
            saved = {"lr": group["lr"], "full": group["full"]}
            for name in ("first", "second"):
                saved[name] = [array.copy() for array in group[name]]
            groups.append(saved)
        return {"steps": self.steps, "groups": groups}

    def load_state_dict(self, state):
        counts = [len(group["first"]) for group in self.groups]
        if counts != [len(saved["first"]) for saved in state["groups"]]:
            raise ValueError("a state of other parameters")
        self.steps = state["steps"]
        for group, saved in zip(self.groups, state["groups"]):
            group["lr"], group["full"] = saved["lr"], saved["full"]
            for name in ("first", "second"):
                group[name] = [array.copy() for array in saved[name]]


own_adam.changed(
    "no bias correction",
    """
    m and v start at 0, so at first they are far too small: after one step m is g / 10. Dividing by
    1 − βᵗ makes up for it.
    """,
    ("mean = first[n] / (1 - b1**self.steps)", "mean = first[n]"),
    ("square = second[n] / (1 - b2**self.steps)", "square = second[n]"),
)

own_adam.changed(
    "counts the steps from 0",
    """
    In the first step t is 1. With t = 0 the correction divides by 0.
    """,
    ("        self.steps += 1\n", ""),
    (
        'p.data = p.data - group["lr"] * step\n',
        'p.data = p.data - group["lr"] * step\n        self.steps += 1\n',
    ),
)

own_adam.changed(
    "decay through the gradient",
    """
    λp was added to g before the averages. Then it is divided by √v like the gradient, and large
    gradients switch the decay off. AdamW takes it off the parameter directly.
    """,
    ("g = p.grad\n", 'g = p.grad + group["decay"] * p.data\n'),
    ('                step = step + group["decay"] * p.data\n', ""),
)

own_adam.changed(
    "the decay is not scaled by the learning rate",
    """
    Both parts of the step are multiplied by `lr`, so that a schedule takes the decay along.
    """,
    (
        'step = step + group["decay"] * p.data',
        'step = step + group["decay"] * p.data / (group["lr"] or 1)',
    ),
)

own_adam.changed(
    "epsilon under the root",
    """
    √(v̂ + ε) and √v̂ + ε differ where v̂ is small: √1e-8 is 1e-4.
    """,
    ('(np.sqrt(square) + group["eps"])', 'np.sqrt(square + group["eps"])'),
)

own_adam.changed(
    "the second average of g instead of g²",
    """
    v averages the *squares*. Its root is the usual size of a gradient, whatever its sign.
    """,
    ("(1 - b2) * g * g", "(1 - b2) * np.abs(g)"),
)

own_adam.changed(
    "a parameter without a gradient moves",
    """
    Where `grad` is None there is nothing to do, not even decay: the layer may be frozen.
    """,
    (
        "                    continue\n                g = p.grad",
        "                    p.grad = np.zeros_like(p.data)\n                g = p.grad",
    ),
)

own_adam.changed(
    "changes the array in place",
    """
    `p.data -= …` writes into an array that a recorded graph, or a copy of the state, may still
    hold.
    """,
    (
        'p.data = p.data - group["lr"] * step',
        'p.data -= group["lr"] * step',
    ),
)

own_adam.changed(
    "the state holds the averages themselves",
    """
    The arrays of a saved state went on changing with the training, or two optimizers share them.
    Give copies.
    """,
    ("saved[name] = [array.copy() for array in group[name]]", "saved[name] = group[name]"),
)

own_adam.changed(
    "the number of steps is not restored",
    """
    Without t the bias correction begins again, and the first step after loading is far too large.
    """,
    ('        self.steps = state["steps"]\n', ""),
)

own_adam.changed(
    "zero_grad fills with zeros",
    """
    A gradient of zeros is a gradient: the parameter decays, and its averages fade. `None` says that
    there is none.
    """,
    ("p.grad = None", "p.grad = np.zeros_like(p.data)"),
)

own_adam.changed(
    "a count of steps for each parameter",
    """
    Here every parameter has a t of its own, which rests while it has no gradient. PyTorch counts so.
    This exercise asks for one t for the whole optimizer: every call of `step()` counts.
    """,
    ("        self.steps += 1\n", ""),
    ("self.steps, self.groups = 0, []", "self.steps, self.groups = {}, []"),
    (
        "                g = p.grad\n",
        "                g = p.grad\n                t = self.steps[p] = self.steps.get(p, 0) + 1\n",
    ),
    ("b1**self.steps", "b1**t"),
    ("b2**self.steps", "b2**t"),
    (
        '"steps": self.steps,',
        '"steps": [self.steps.get(p, 0) for g in self.groups for p in g["parameters"]],',
    ),
    (
        'self.steps = state["steps"]',
        'own = [p for g in self.groups for p in g["parameters"]]\n'
        '        self.steps = dict(zip(own, state["steps"]))',
    ),
)

own_adam.changed(
    "goes through a group's generator once",
    """
    A generator gives its parameters once, and nothing at the second time: after the first averages
    were made, no parameter was left. Make a list of them at the beginning.
    """,
    ('own = group["parameters"] = list(group["parameters"])', 'own = group["parameters"]'),
)

own_adam.changed(
    "two optimizers share what they loaded",
    """
    `load_state_dict` took the lists of the state themselves, and `step` writes into them. So the
    saved state goes on with the training, and whoever loads it next starts from there. Copy when
    loading, too.
    """,
    ("group[name] = [array.copy() for array in saved[name]]", "group[name] = saved[name]"),
)

own_adam.changed(
    "the learning rate is not restored",
    """
    A schedule may have changed `lr` since the beginning. A training that goes on has to go on with the
    learning rate that it had, so `lr` is part of the state, and is loaded.
    """,
    ('group["lr"], group["full"] = saved["lr"], saved["full"]', 'group["full"] = saved["full"]'),
)

own_adam.changed(
    "the corrected averages are kept",
    """
    m̂ and v̂ are for this step only. The averages that the next step goes on with are m and v: correcting
    them again and again makes them grow.
    """,
    (
        "mean = first[n] / (1 - b1**self.steps)",
        "mean = first[n] = first[n] / (1 - b1**self.steps)",
    ),
    (
        "square = second[n] / (1 - b2**self.steps)",
        "square = second[n] = second[n] / (1 - b2**self.steps)",
    ),
)

own_adam.changed(
    "a state of another size is half loaded",
    """
    The number of steps and `lr` were taken over before the lengths were compared. Whoever catches the
    error goes on with an optimizer that is neither the old nor the new one. Compare first.
    """,
    (
        "        counts = [",
        (
            '        self.steps = state["steps"]\n'
            '        self.groups[0]["lr"] = state["groups"][0]["lr"]\n'
            "        counts = ["
        ),
    ),
)


own_adam.changed(
    "the arguments win over the group",
    """
    In `{**one, **options}` the later dictionary wins, so what a group says for itself was overwritten.
    The options are what is taken where the group says nothing: they come first.
    """,
    ("{**options, **one}", "{**one, **options}"),
)

own_adam.changed(
    "writes into the caller's groups",
    """
    The dictionaries belong to whoever made them, and may serve for a second optimizer. Make a new one
    for each group.
    """,
    (
        "group = {**options, **one}",
        "group = one\n"
        "            for name in options:\n"
        "                group.setdefault(name, options[name])",
    ),
)

own_adam.changed(
    "a share of what is left",
    """
    `set_rate` multiplied the learning rate that the group has *now*. Called with 0.5 twice, it leaves
    a quarter, and nothing ever raises it again. Keep the learning rate of the beginning, and take the
    share of that.
    """,
    ('group["lr"] = share * group["full"]', 'group["lr"] = share * group["lr"]'),
)

own_adam.changed(
    "one learning rate for all groups",
    """
    The schedule took the first group's learning rate for everybody. Groups have learning rates of their
    own so that, for example, a layer that was trained before moves slowly. The share is the same for
    all; what it is a share of is not.
    """,
    ('group["lr"] = share * group["full"]', 'group["lr"] = share * self.groups[0]["full"]'),
)

own_adam.changed(
    "the schedule goes on from a lowered rate",
    """
    The learning rate that a group began with was not restored. After loading, the shares of the schedule
    are taken of another number.
    """,
    ('group["lr"], group["full"] = saved["lr"], saved["full"]', 'group["lr"] = saved["lr"]'),
)

own_adam.changed(
    "a parameter in two groups is stepped twice",
    """
    A parameter that two groups hold gets two steps for one gradient, with two averages. That is a
    mistake of the caller, and easy to make: refuse it.
    """,
    ("if len(set(every)) < len(every):", "if False:"),
)


def _leaf(value):
    return Tensor(np.asarray(value, dtype=float), requires_grad=True)


def _draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).round(3)


def _pair(seed, shapes, options):
    """Parameters in the submission's package and in toytorch, from the same numbers."""
    arrays = [_draw(seed + n, *shape) for n, shape in enumerate(shapes)]
    real = [torch.tensor(a, requires_grad=True) for a in arrays]
    theirs = torch.optim.AdamW(
        real,
        lr=options.get("lr", 1e-3),
        betas=options.get("betas", (0.9, 0.999)),
        eps=options.get("eps", 1e-8),
        weight_decay=options.get("decay", 0.0),
    )
    return [_leaf(a) for a in arrays], real, theirs


def _steps(AdamW, seed, options, count=6, without=()):
    """The parameters after some steps with random gradients, here and in toytorch."""
    mine, real, theirs = _pair(seed, ((3,), (2, 2)), options)
    own = AdamW(mine, **options)
    for t in range(count):
        for n, (p, r) in enumerate(zip(mine, real)):
            g = None if (t, n) in without else _draw(100 + 10 * t + n, *p.data.shape)
            p.grad = g
            r.grad = None if g is None else torch.tensor(g)
        own.step()
        theirs.step()
    return [p.data.tolist() for p in mine], [r.tolist() for r in real]


@own_adam.check("1 · set up")
def _(AdamW):
    def cleared():
        p = _leaf([1.0, 2.0])
        p.grad = np.ones(2)
        AdamW([p]).zero_grad()
        return p.grad

    yield case("a gradient after zero_grad()", cleared).gives(None)
    yield case("AdamW([])", lambda: AdamW([])).raises(ValueError)
    yield case("AdamW([p], lr=-1)", lambda: AdamW([_leaf(1.0)], lr=-1)).raises(ValueError)

    def still():
        p = _leaf([1.0])
        p.grad = np.array([4.0])
        AdamW([p], lr=0).step()
        return p.data.tolist()

    yield case("p = 1 after one step with lr = 0, which is allowed", still).gives([1.0])

    def moved(made):
        first, second = _leaf([1.0]), _leaf([2.0])
        own = AdamW(made(first, second), lr=0.1)
        first.grad, second.grad = np.array([4.0]), np.array([-4.0])
        own.step()
        own.zero_grad()
        return [first.data.tolist(), second.data.tolist(), first.grad, second.grad]

    for told, made in (
        ("a list of two parameters", lambda p, q: [p, q]),
        ("a generator of two parameters", lambda p, q: (x for x in [p, q])),
        (
            "two groups of one parameter",
            lambda p, q: [{"parameters": [p]}, {"parameters": [q]}],
        ),
        (
            "a group with a generator of two parameters",
            lambda p, q: [{"parameters": (x for x in [p, q])}],
        ),
    ):
        yield case(
            f"{told}: 1 and 2 after a step with 4 and −4, lr 0.1, and the gradients after zero_grad()",
            partial(moved, made),
        ).gives([[0.9], [2.1], None, None])

    def options():
        given = [{"parameters": [_leaf(1.0)], "lr": 0.5}, {"parameters": [_leaf(2.0)], "decay": 0.1}]
        own = AdamW(given, lr=0.2, betas=(0.5, 0.7))
        names = ("lr", "betas", "eps", "decay")
        return [{name: group[name] for name in names} for group in own.groups], [
            sorted(group) for group in given
        ]

    yield case(
        'AdamW([{"parameters": [p], "lr": 0.5}, {"parameters": [q], "decay": 0.1}], lr=0.2, '
        "betas=(0.5, 0.7)): the groups' options, and what is in the caller's dictionaries",
        options,
    ).gives(
        (
            [
                {"lr": 0.5, "betas": (0.5, 0.7), "eps": 1e-8, "decay": 0.0},
                {"lr": 0.2, "betas": (0.5, 0.7), "eps": 1e-8, "decay": 0.1},
            ],
            [["lr", "parameters"], ["decay", "parameters"]],
        )
    )

    def refused(*groups):
        AdamW([{"parameters": list(ps), **options} for ps, options in groups])

    def both():
        p = _leaf(1.0)
        refused(([p], {}), ([_leaf(2.0), p], {}))

    yield case("a parameter in two groups", both).raises(ValueError)
    yield case(
        "a group with lr=-1", lambda: refused(([_leaf(1.0)], {}), ([_leaf(2.0)], {"lr": -1}))
    ).raises(ValueError)
    yield case("two groups without parameters", lambda: refused(([], {}), ([], {}))).raises(
        ValueError
    )


@own_adam.check("2 · steps")
def _(AdamW):
    def first():
        p = _leaf([1.0])
        p.grad = np.array([4.0])
        AdamW([p], lr=0.1).step()
        return p.data.tolist()

    yield case("p = 1 after one step with g = 4, lr = 0.1", first).gives([0.9])
    for seed, options in enumerate(
        (
            {"lr": 0.1},
            {"lr": 0.1, "decay": 0.5},
            {"lr": 0.01, "betas": (0.5, 0.7)},
            {"lr": 0.1, "eps": 0.1, "decay": 0.1},
        )
    ):
        told = ", ".join(f"{key}={value}" for key, value in options.items())
        mine = partial(lambda seed, options: _steps(AdamW, seed, options)[0], seed, options)
        wanted = _steps(_Nothing, seed, options)[1]
        yield case(f"six steps with {told}", mine).gives(wanted)

    for told, without, means in (
        (
            "the first parameter has no gradient in steps 2 and 3",
            {(1, 0), (2, 0)},
            "A step goes wrong in which one parameter has no gradient, or a step after it.",
        ),
        (
            "nobody has a gradient in step 3",
            {(2, 0), (2, 1)},
            "A step in which nobody has a gradient has to count, and to change nothing else.",
        ),
    ):

        def missing(without=without):
            return _steps(AdamW, 9, {"lr": 0.1, "decay": 0.5}, without=without)[0]

        yield case(f"six steps; {told}", missing).gives(_own_steps(9, without)).means(means)

    def untouched():
        p = _leaf([1.0, 2.0])
        before, p.grad = p.data, np.array([1.0, -1.0])
        g = p.grad
        AdamW([p], lr=0.1).step()
        return before.tolist(), g.tolist()

    yield case("the old array and the gradient after a step", untouched).gives(
        ([1.0, 2.0], [1.0, -1.0])
    )


class _Nothing:
    """Takes no steps: for what toytorch alone gives."""

    def __init__(self, parameters, **options):
        self.parameters = parameters

    def step(self):
        return None


def _own_steps(seed, without):
    """Six steps with one count for all parameters; toytorch, as PyTorch, counts for each."""
    arrays = [_draw(seed, 3), _draw(seed + 1, 2, 2)]
    first = [np.zeros_like(a) for a in arrays]
    second = [np.zeros_like(a) for a in arrays]
    for t in range(6):
        for n in range(2):
            if (t, n) in without:
                continue
            g = _draw(100 + 10 * t + n, *arrays[n].shape)
            first[n] = 0.9 * first[n] + 0.1 * g
            second[n] = 0.999 * second[n] + 0.001 * g * g
            mean, square = first[n] / (1 - 0.9 ** (t + 1)), second[n] / (1 - 0.999 ** (t + 1))
            step = mean / (np.sqrt(square) + 1e-8)
            arrays[n] = arrays[n] - 0.1 * (step + 0.5 * arrays[n])
    return [a.tolist() for a in arrays]


def _grouped(kind, options, shares, real):
    """Two groups with options of their own, under a schedule: the parameters after each step."""
    arrays = [_draw(30, 3), _draw(31, 2, 2), _draw(32, 1)]
    ps = [torch.tensor(a, requires_grad=True) if real else _leaf(a) for a in arrays]
    key = "params" if real else "parameters"
    groups = [{key: ps[:2], **options[0]}, {key: ps[2:], **options[1]}]
    own = kind(groups, lr=0.1)
    begun = [group["lr"] for group in own.param_groups] if real else []
    places = []
    for t, share in enumerate(shares):
        for n, p in enumerate(ps):
            g = _draw(200 + 10 * t + n, *arrays[n].shape)
            p.grad = torch.tensor(g) if real else g
        if share is not None and real:
            for group, lr in zip(own.param_groups, begun):
                group["lr"] = share * lr
        elif share is not None:
            own.set_rate(share)
        own.step()
        places.append([p.tolist() if real else p.data.tolist() for p in ps])
    return places


def _as_real(options):
    """The names that toytorch has for the options of a group."""
    return [{{"decay": "weight_decay"}.get(k, k): v for k, v in o.items()} for o in options]


def _groups_by_toytorch(options, shares):
    def kind(groups, lr):
        return torch.optim.AdamW(groups, lr=lr, weight_decay=0.0)

    return _grouped(kind, _as_real(options), shares, True)


def _some_groups(draw):
    def options():
        found = {}
        if draw.random() < 0.6:
            found["lr"] = draw.choice([0.05, 0.5])
        if draw.random() < 0.6:
            found["decay"] = draw.choice([0.1, 0.5])
        if draw.random() < 0.4:
            found["betas"] = draw.choice([(0.5, 0.7), (0.8, 0.9)])
        if draw.random() < 0.4:
            found["eps"] = draw.choice([0.1, 1e-3])
        return found

    return [options(), options()], [draw.choice([None, 0.5, 0.1, 1.0]) for _ in range(4)]


@own_adam.check("3 and 4 · groups and their schedule")
def _(AdamW):
    def rates():
        own = AdamW(
            [{"parameters": [_leaf(1.0)], "lr": 0.5}, {"parameters": [_leaf(2.0)]}], lr=0.2
        )
        found = []
        for share in (0.5, 0.5, 0.0, 1.0):
            own.set_rate(share)
            found.append([group["lr"] for group in own.groups])
        return found

    shares = case("lr 0.5 and 0.2, after set_rate(0.5), (0.5), (0), (1)", rates)
    yield shares.gives([[0.25, 0.1], [0.25, 0.1], [0.0, 0.0], [0.5, 0.2]]).means(
        "A share has to be taken of the `lr` that each group began with, whatever was set since."
    )
    yield agrees(
        lambda options, shares: _grouped(AdamW, options, shares, False),
        _groups_by_toytorch,
        _some_groups,
        count=25,
        tell=lambda options, shares: (
            f"groups {options[0]} and {options[1]}, else lr=0.1; set_rate({shares}) before each step, "
            "None: not called"
        ),
    )


@own_adam.check("5 · state")
def _(AdamW):
    def train(own, p, steps):
        for t in steps:
            p.grad = _draw(t, 3)
            own.step()

    def resumed(broken):
        p = _leaf(_draw(5, 3))
        own = AdamW([p], lr=0.1, decay=0.01)
        train(own, p, range(4))
        if broken:
            state = own.state_dict()
            q = _leaf(p.data.copy())
            train(own, p, range(10, 14))  # the first one goes on for itself
            own, p = AdamW([q], lr=0.5, decay=0.01), q
            own.load_state_dict(state)
        train(own, p, range(4, 8))
        return p.data.tolist()

    yield case("8 steps with a break after 4", lambda: resumed(True)).gives(_unbroken())

    def other():
        AdamW([_leaf(1.0), _leaf(2.0)]).load_state_dict(AdamW([_leaf(1.0)]).state_dict())

    yield case("a state of one parameter for two", other).raises(ValueError)

    def loaded_twice():
        p, found = _leaf(_draw(5, 3)), []
        own = AdamW([p], lr=0.1, decay=0.01)
        train(own, p, range(4))
        state = own.state_dict()
        for _ in range(2):
            q = _leaf(p.data.copy())
            again = AdamW([q], lr=0.5, decay=0.01)
            again.load_state_dict(state)
            train(again, q, range(4, 8))
            found.append(q.data.tolist())
        return found

    yield case("two optimizers that load one state, one after the other", loaded_twice).gives(
        [_unbroken()] * 2
    )

    def refused():
        p = _leaf(_draw(5, 3))
        own = AdamW([p], lr=0.1, decay=0.01)
        train(own, p, range(4))
        with contextlib.suppress(ValueError):
            own.load_state_dict(AdamW([_leaf(1.0), _leaf(2.0)], lr=0.9).state_dict())
        train(own, p, range(4, 8))
        return p.data.tolist()

    yield case("8 steps; after 4, a state of two parameters is refused", refused).gives(
        _unbroken()
    )


    def scheduled(loaded):
        p, q = _leaf(_draw(5, 3)), _leaf(_draw(6, 3))
        own = AdamW([{"parameters": [p], "lr": 0.4}, {"parameters": [q]}], lr=0.1)
        own.set_rate(0.5)
        if loaded:
            state = own.state_dict()
            own = AdamW([{"parameters": [p]}, {"parameters": [q]}], lr=0.7)
            own.load_state_dict(state)
        rates = [[group["lr"] for group in own.groups]]
        own.set_rate(0.25)
        return [*rates, [group["lr"] for group in own.groups]]

    yield case(
        "lr 0.4 and 0.1, set_rate(0.5), loaded into another one: lr, and lr after set_rate(0.25)",
        lambda: scheduled(True),
    ).gives([[0.2, 0.05], [0.1, 0.025]])

    def other_groups():
        one = AdamW([{"parameters": [_leaf(1.0), _leaf(2.0)]}, {"parameters": [_leaf(3.0)]}])
        two = AdamW([{"parameters": [_leaf(1.0)]}, {"parameters": [_leaf(2.0), _leaf(3.0)]}])
        two.load_state_dict(one.state_dict())

    yield case("a state of groups of 2 and 1 for groups of 1 and 2", other_groups).raises(ValueError)


def _unbroken():
    p = torch.tensor(_draw(5, 3), requires_grad=True)
    theirs = torch.optim.AdamW([p], lr=0.1, weight_decay=0.01)
    for t in range(8):
        p.grad = torch.tensor(_draw(t, 3))
        theirs.step()
    return p.tolist()

"""AdamW for the learner's own package."""

import contextlib
from functools import partial

import numpy as np

import toytorch as torch
from course.cases import case
from course.records import Exercise
from mytorch.tensor import Tensor

own_adam = Exercise(
    "optim.package",
    "An optimizer for your package",
    chapter=8,
    minutes=30,
    prompt="""
    A class `AdamW` that trains the tensors of your package. Its state belongs to the object: two
    averages for each parameter, and one number of steps.

    1. **Set up.** It keeps a list of the parameters. No parameters, or a negative `lr`, is a
       `ValueError`. `zero_grad()` sets every `grad` to `None`.
    2. **Step.** With g the gradient, t the number of calls of `step()` including this one, and
       λ = `decay`:

       $$m \\leftarrow \\beta_1 m + (1-\\beta_1) g, \\quad
       v \\leftarrow \\beta_2 v + (1-\\beta_2) g^2, \\quad
       \\hat m = \\frac{m}{1-\\beta_1^t}, \\quad \\hat v = \\frac{v}{1-\\beta_2^t},$$
       $$p \\leftarrow p - lr \\left(\\frac{\\hat m}{\\sqrt{\\hat v} + \\epsilon} + \\lambda p\\right).$$

       There is **one t for all parameters**: every call of `step()` counts, also for a parameter that
       has no gradient then. Such a parameter is left alone, averages included. Write `p.data` anew
       instead of changing the array in place: a graph may still hold it.
    3. **State.** `state_dict()` gives the steps, `lr` and copies of the averages;
       `load_state_dict(state)` goes on from there, exactly as if there had been no break. A state of
       another number of parameters is a `ValueError`, and then nothing has changed.

    The first step with g = 4, lr = 0.1, λ = 0: m = 0.4, m̂ = 4, v = 0.016, v̂ = 16, so p moves by
    0.1 · 4 / 4 = 0.1, whatever the size of g.
    """,
    without=("torch.optim.AdamW", "torch.optim.Adam"),
    hints=(
        """
        Keep two lists of arrays beside the list of parameters, with zeros in the shape of each
        parameter. `step` counts once, at its beginning, and then goes over all parameters with
        their index n: the formulas of the prompt are one line each. A state is these two lists
        copied, and two numbers.
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

        A state that is saved after it holds t = 3, lr = 0.1, m = 0.56 and v = 0.019984. p belongs
        to the network, not to the state.
        """,
        """
        ```python
        class AdamW:
            def __init__(
                self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.0
            ):
                self.parameters = ...
                if not self.parameters:
                    raise ValueError("there are no parameters")
                ...
                self.lr, self.betas, self.eps, self.decay = lr, betas, eps, decay
                self.steps = 0
                self.first = [... for p in self.parameters]
                self.second = [... for p in self.parameters]

            def zero_grad(self):
                for p in self.parameters:
                    ...

            def step(self):
                ...  # counts this call
                b1, b2 = self.betas
                for n, p in enumerate(self.parameters):
                    if p.grad is None:
                        continue
                    g = p.grad
                    self.first[n] = ...
                    self.second[n] = ...
                    mean = ...  # the first average, corrected
                    square = ...
                    p.data = ...

            def state_dict(self):
                return {
                    "steps": self.steps,
                    "lr": self.lr,
                    "first": ...,
                    "second": ...,
                }

            def load_state_dict(self, state):
                if ...:
                    raise ValueError("a state of other parameters")
                self.steps, self.lr = state["steps"], state["lr"]
                self.first = ...
                self.second = ...
        ```
        """,
    ),
)


@own_adam.stub
class AdamW:
    """Adam with weight decay apart from the gradient."""

    def __init__(
        self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.0
    ):
        # stage 1, your code here: about 9 lines
        raise NotImplementedError

    def zero_grad(self):
        # stage 1, your code here: about 2 lines
        raise NotImplementedError

    def step(self):
        # stage 2, your code here: about 12 lines
        raise NotImplementedError

    def state_dict(self):
        # stage 3, your code here: about 6 lines
        raise NotImplementedError

    def load_state_dict(self, state):
        # stage 3, your code here: about 5 lines
        raise NotImplementedError


@own_adam.reference
class AdamW:
    """Adam with weight decay apart from the gradient."""

    def __init__(
        self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.0
    ):
        self.parameters = list(parameters)
        if not self.parameters:
            raise ValueError("there are no parameters")
        if lr < 0:
            raise ValueError(f"invalid learning rate: {lr}")
        self.lr, self.betas, self.eps, self.decay = lr, betas, eps, decay
        self.steps = 0
        self.first = [np.zeros_like(p.data) for p in self.parameters]
        self.second = [np.zeros_like(p.data) for p in self.parameters]

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        self.steps += 1
        b1, b2 = self.betas
        for n, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            g = p.grad
            self.first[n] = b1 * self.first[n] + (1 - b1) * g
            self.second[n] = b2 * self.second[n] + (1 - b2) * g * g
            mean = self.first[n] / (1 - b1**self.steps)
            square = self.second[n] / (1 - b2**self.steps)
            step = mean / (np.sqrt(square) + self.eps)
            p.data = p.data - self.lr * (step + self.decay * p.data)

    def state_dict(self):
        return {
            "steps": self.steps,
            "lr": self.lr,
            "first": [array.copy() for array in self.first],
            "second": [array.copy() for array in self.second],
        }

    def load_state_dict(self, state):
        if len(state["first"]) != len(self.parameters):
            raise ValueError("a state of other parameters")
        self.steps, self.lr = state["steps"], state["lr"]
        self.first = [array.copy() for array in state["first"]]
        self.second = [array.copy() for array in state["second"]]


own_adam.changed(
    "no bias correction",
    """
    m and v start at 0, so at first they are far too small: after one step m is g / 10. Dividing by
    1 − βᵗ makes up for it.
    """,
    ("mean = self.first[n] / (1 - b1**self.steps)", "mean = self.first[n]"),
    ("square = self.second[n] / (1 - b2**self.steps)", "square = self.second[n]"),
)

own_adam.changed(
    "counts the steps from 0",
    """
    In the first step t is 1. With t = 0 the correction divides by 0.
    """,
    ("        self.steps += 1\n", ""),
    (
        "            p.data = p.data - self.lr",
        (
            "            if n == len(self.parameters) - 1:\n"
            "                self.steps += 1\n"
            "            p.data = p.data - self.lr"
        ),
    ),
)

own_adam.changed(
    "decay through the gradient",
    """
    λp was added to g before the averages. Then it is divided by √v like the gradient, and large
    gradients switch the decay off. AdamW takes it off the parameter directly.
    """,
    ("g = p.grad", "g = p.grad + self.decay * p.data"),
    ("(step + self.decay * p.data)", "step"),
)

own_adam.changed(
    "the decay is not scaled by the learning rate",
    """
    Both parts of the step are multiplied by `lr`, so that a schedule takes the decay along.
    """,
    (
        "p.data - self.lr * (step + self.decay * p.data)",
        "p.data - self.lr * step - self.decay * p.data",
    ),
)

own_adam.changed(
    "epsilon under the root",
    """
    √(v̂ + ε) and √v̂ + ε differ where v̂ is small: √1e-8 is 1e-4.
    """,
    ("(np.sqrt(square) + self.eps)", "np.sqrt(square + self.eps)"),
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
        ("                continue\n            g = p.grad"),
        ("                p.grad = np.zeros_like(p.data)\n            g = p.grad"),
    ),
)

own_adam.changed(
    "changes the array in place",
    """
    `p.data -= …` writes into an array that a recorded graph, or a copy of the state, may still
    hold.
    """,
    (
        "p.data = p.data - self.lr * (step + self.decay * p.data)",
        "p.data -= self.lr * (step + self.decay * p.data)",
    ),
)

own_adam.changed(
    "the state holds the averages themselves",
    """
    The arrays of a saved state went on changing with the training, or two optimizers share them.
    Give copies.
    """,
    ("[array.copy() for array in self.first],\n", "self.first,\n"),
    ("[array.copy() for array in self.second],\n", "self.second,\n"),
)

own_adam.changed(
    "the number of steps is not restored",
    """
    Without t the bias correction begins again, and the first step after loading is far too large.
    """,
    ('self.steps, self.lr = state["steps"], state["lr"]', 'self.lr = state["lr"]'),
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
    ("self.steps = 0", "self.steps = [0] * len(self.parameters)"),
    ("            g = p.grad\n", "            g = p.grad\n            self.steps[n] += 1\n"),
    ("b1**self.steps", "b1 ** self.steps[n]"),
    ("b2**self.steps", "b2 ** self.steps[n]"),
    ('"steps": self.steps', '"steps": list(self.steps)'),
    (
        'self.steps, self.lr = state["steps"], state["lr"]',
        'self.steps, self.lr = list(state["steps"]), state["lr"]',
    ),
)

own_adam.changed(
    "goes through the generator once",
    """
    A generator gives its parameters once, and nothing at the second time: after the averages were made,
    no parameter was left to step. Make a list of them at the beginning.
    """,
    ("self.parameters = list(parameters)", "self.parameters = parameters"),
    ("        if not self.parameters:\n", "        if self.parameters == []:\n"),
)

own_adam.changed(
    "two optimizers share what they loaded",
    """
    `load_state_dict` took the lists of the state themselves, and `step` writes into them. So the
    saved state goes on with the training, and whoever loads it next starts from there. Copy when
    loading, too.
    """,
    ('self.first = [array.copy() for array in state["first"]]', 'self.first = state["first"]'),
    ('self.second = [array.copy() for array in state["second"]]', 'self.second = state["second"]'),
)

own_adam.changed(
    "the learning rate is not restored",
    """
    A schedule may have changed `lr` since the beginning. A training that goes on has to go on with the
    learning rate that it had, so `lr` is part of the state, and is loaded.
    """,
    ('self.steps, self.lr = state["steps"], state["lr"]', 'self.steps = state["steps"]'),
)

own_adam.changed(
    "the corrected averages are kept",
    """
    m̂ and v̂ are for this step only. The averages that the next step goes on with are m and v: correcting
    them again and again makes them grow.
    """,
    (
        "mean = self.first[n] / (1 - b1**self.steps)",
        "mean = self.first[n] = self.first[n] / (1 - b1**self.steps)",
    ),
    (
        "square = self.second[n] / (1 - b2**self.steps)",
        "square = self.second[n] = self.second[n] / (1 - b2**self.steps)",
    ),
)

own_adam.changed(
    "a state of another size is half loaded",
    """
    The number of steps and `lr` were taken over before the lengths were compared. Whoever catches the
    error goes on with an optimizer that is neither the old nor the new one. Compare first.
    """,
    (
        'if len(state["first"]) != len(self.parameters):',
        (
            'self.steps, self.lr = state["steps"], state["lr"]\n'
            '        if len(state["first"]) != len(self.parameters):'
        ),
    ),
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

    def generator():
        own = AdamW(p for p in [_leaf(1.0), _leaf(2.0)])
        own.zero_grad()
        return len(list(own.parameters))

    yield case("AdamW of a generator of two parameters", generator).gives(2)


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

    for told, without in (
        ("the first parameter has no gradient in steps 2 and 3", {(1, 0), (2, 0)}),
        ("nobody has a gradient in step 3", {(2, 0), (2, 1)}),
    ):

        def missing(without=without):
            return _steps(AdamW, 9, {"lr": 0.1, "decay": 0.5}, without=without)[0]

        yield case(f"six steps; {told}", missing).gives(_own_steps(9, without))

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


@own_adam.check("3 · state")
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


def _unbroken():
    p = torch.tensor(_draw(5, 3), requires_grad=True)
    theirs = torch.optim.AdamW([p], lr=0.1, weight_decay=0.01)
    for t in range(8):
        p.grad = torch.tensor(_draw(t, 3))
        theirs.step()
    return p.tolist()

"""A linear layer of the learner's own package."""

import numpy as np

from course.cases import case
from course.records import Exercise
from mytorch.module import Module
from mytorch.tensor import Tensor

own_linear = Exercise(
    "modules.layer",
    "A linear layer for your package",
    chapter=7,
    minutes=10,
    prompt="""
    The first layer on your `Module`: `Linear(inputs, outputs)` computes `x @ weight + bias` for `x` of
    shape `(..., inputs)`.

    * `weight` is a parameter of shape `(inputs, outputs)`, `bias` one of `(outputs,)`, or `None` with
      `bias=False`.
    * Both start uniform in ±1/√inputs. Then the outputs have about the same size whatever the number
      of inputs is. `seed` makes the numbers repeatable: `np.random.default_rng(seed)`, the weight
      drawn first, then the bias from the same generator. Without a seed, each layer gets others.
    """,
    without=("torch.nn.Linear", "torch.nn.functional.linear"),
    hints=(
        """
        All that `Module` needs is two attributes that are tensors with `requires_grad`: it finds them by itself. So the
        constructor draws numbers and makes two tensors, and `forward` is the formula of the prompt.
        """,
        """
        `Linear(4, 2, seed=0)`:

        | step | value |
        | --- | --- |
        | bound | 1/√4 = 0.5 |
        | generator | `np.random.default_rng(0)` |
        | first draw, shape (4, 2), from −0.5 to 0.5 | [[0.137, −0.230], [−0.459, …], …] |
        | second draw, shape (2,), from the *same* generator | [0.044, 0.435] |
        | `layer(x)` with x of (5, 3, 4) | (5, 3, 4) @ (4, 2) is (5, 3, 2); plus (2,) stays (5, 3, 2) |

        With `bias=False` nothing is drawn for it, and `self.bias` is `None`: no tensor, so no parameter.
        """,
        """
        ```python
        class Linear(Module):
            def __init__(self, inputs, outputs, bias=True, seed=None):
                draw = np.random.default_rng(seed)
                bound = ...
                self.weight = ...
                self.bias = None
                if bias:
                    ...

            def forward(self, x):
                y = ...
                return y if self.bias is None else ...
        ```
        """,
    ),
)


@own_linear.reference(stub={
    "__init__": "your code here: about 8 lines",
    "forward": "your code here: about 2 lines",
})
class Linear(Module):
    """x @ weight + bias."""

    def __init__(self, inputs, outputs, bias=True, seed=None):
        draw = np.random.default_rng(seed)
        bound = 1 / np.sqrt(inputs)
        weight = draw.uniform(-bound, bound, size=(inputs, outputs))
        self.weight = Tensor(weight, requires_grad=True)
        self.bias = None
        if bias:
            start = draw.uniform(-bound, bound, size=outputs)
            self.bias = Tensor(start, requires_grad=True)

    def forward(self, x):
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


own_linear.changed(
    "a bound by the outputs",
    """
    A result is a sum over the *inputs*. So the bound is 1/√inputs, for the bias as well.
    """,
    ("bound = 1 / np.sqrt(inputs)", "bound = 1 / np.sqrt(outputs)"),
)

own_linear.changed(
    "weights from the normal distribution",
    """
    The numbers are to be uniform in ±1/√inputs; normal ones have tails beyond every bound.
    """,
    (
        "draw.uniform(-bound, bound, size=(inputs, outputs))",
        "draw.normal(0, bound, size=(inputs, outputs))",
    ),
)

own_linear.changed(
    "only positive numbers",
    """
    The interval goes from −bound to +bound. With positive weights alone every output grows with
    every input.
    """,
    (
        "draw.uniform(-bound, bound, size=(inputs, outputs))",
        "draw.uniform(0, bound, size=(inputs, outputs))",
    ),
)

own_linear.changed(
    "the bias is always there",
    """
    With `bias=False` there is none, neither in the sum nor among the parameters.
    """,
    ("        if bias:\n", "        if True:\n"),
)

own_linear.changed(
    "the bias starts at 0",
    """
    Here the bias starts uniform in ±1/√inputs, like the weight. Zero is a good start as well, but
    another one than the one asked for.
    """,
    ("draw.uniform(-bound, bound, size=outputs)", "np.zeros(outputs)"),
)

own_linear.changed(
    "nothing is trained",
    """
    Weight and bias are tensors that require a gradient. Without that they are buffers.
    """,
    (
        (
            "weight = draw.uniform(-bound, bound, size=(inputs, outputs))\n"
            "        self.weight = Tensor(weight, requires_grad=True)"
        ),
        (
            "weight = draw.uniform(-bound, bound, size=(inputs, outputs))\n"
            "        self.weight = Tensor(weight)"
        ),
    ),
)

own_linear.changed(
    "the seed is not used",
    """
    With the same seed a layer gets the same numbers, else no experiment can be repeated.
    """,
    ("draw = np.random.default_rng(seed)", "draw = np.random.default_rng()"),
)


own_linear.changed(
    "the bias is drawn first",
    """
    A generator gives random numbers in a fixed order. The prompt has the weight drawn first, so
    that the same seed gives the same layer with every answer.
    """,
    (
        "        weight = draw.uniform(-bound",
        "        first = draw.uniform(-bound, bound, size=outputs)\n        weight = draw.uniform(-bound",
    ),
    ("start = draw.uniform(-bound, bound, size=outputs)", "start = first"),
)

own_linear.changed(
    "the bias starts from the seed again",
    """
    A second generator from the same seed gives the same numbers again: the bias equals the first row of the
    weight. Draw both from one generator.
    """,
    ("            start = draw.uniform", "            start = np.random.default_rng(seed).uniform"),
)

own_linear.changed(
    "seed 0 counts as none",
    """
    0 is false in Python, and a seed like any other. Whether there is a seed is the question `seed is None`, and
    `default_rng(None)` answers it by itself.
    """,
    ("np.random.default_rng(seed)", "np.random.default_rng(seed or None)"),
)

own_linear.changed(
    "without a seed it is 0",
    """
    Without a seed, all layers started with the same numbers. Two layers of one network then learn the same thing.
    `default_rng(None)` takes other numbers each time.
    """,
    ("np.random.default_rng(seed)", "np.random.default_rng(seed or 0)"),
)

own_linear.changed(
    "seeds everybody's random numbers",
    """
    `np.random.seed(seed)` sets the generator that the whole program shares. Making a layer then changes the random
    numbers of everybody else. `np.random.default_rng(seed)` is one of the layer's own.
    """,
    ("draw = np.random.default_rng(seed)", "np.random.seed(seed)\n        draw = np.random"),
)


@own_linear.check("the product")
def _(Linear):
    def parts():
        layer = Linear(3, 2, seed=0)
        return layer.weight.data.shape, layer.bias.data.shape, len(layer.parameters())

    yield case("the shapes of Linear(3, 2), and how many parameters", parts).gives(
        ((3, 2), (2,), 2)
    )

    def result(*lead):
        layer = Linear(3, 2, seed=0)
        x = np.random.default_rng(1).normal(size=(*lead, 3))
        y = layer(Tensor(x))
        wanted = x @ layer.weight.data + layer.bias.data
        return y.data.shape, bool(np.allclose(y.data, wanted))

    yield case("a batch of 4", lambda: result(4)).gives(((4, 2), True))
    yield case("a batch of 5 times 4", lambda: result(5, 4)).gives(((5, 4, 2), True))

    def bare():
        layer = Linear(3, 2, bias=False, seed=0)
        y = layer(Tensor(np.zeros((1, 3))))
        return layer.bias, len(layer.parameters()), y.data.tolist()

    yield case("Linear(3, 2, bias=False)", bare).gives((None, 1, [[0.0, 0.0]]))

    def trained():
        layer = Linear(3, 2, seed=0)
        layer(Tensor(np.ones((4, 3)))).sum().backward()
        return [p.grad.tolist() for p in layer.parameters()]

    yield case("the gradients of Linear(3, 2)(ones(4, 3)).sum()", trained).gives(
        [[[4.0, 4.0]] * 3, [4.0, 4.0]]
    )


@own_linear.check("the start")
def _(Linear):
    def same():
        first, second = Linear(5, 4, seed=3), Linear(5, 4, seed=3)
        return bool((first.weight.data == second.weight.data).all()), bool(
            (first.weight.data == Linear(5, 4, seed=4).weight.data).any()
        )

    yield case("two layers with seed 3, and one with seed 4: equal?", same).gives((True, False))

    def spread():
        layer = Linear(400, 100, seed=0)
        w, b = layer.weight.data, layer.bias.data
        return [
            round(float(w.min()), 3),
            round(float(w.max()), 3),
            bool(abs(w.mean()) < 1e-3),
            bool(abs(w.std() - 0.05 / np.sqrt(3)) < 1e-3),
            bool(np.abs(b).max() <= 0.05 and np.abs(b).max() > 0.03),
        ]

    yield case(
        "Linear(400, 100): least and largest weight, is the mean near 0, the spread that of a "
        "uniform distribution, the bias within ±0.05",
        spread,
    ).gives([-0.05, 0.05, True, True, True])

    def numbers():
        layer, draw = Linear(4, 3, seed=3), np.random.default_rng(3)
        weight, bias = draw.uniform(-0.5, 0.5, size=(4, 3)), draw.uniform(-0.5, 0.5, size=3)
        return bool(np.allclose(layer.weight.data, weight)), bool(
            np.allclose(layer.bias.data, bias)
        )

    yield case("Linear(4, 3, seed=3): are weight and bias the first draws?", numbers).gives(
        (True, True)
    )

    def zero():
        first, second = Linear(5, 4, seed=0), Linear(5, 4, seed=0)
        return bool((first.weight.data == second.weight.data).all())

    yield case("two layers with seed 0: equal?", zero).gives(True)

    def unseeded():
        return bool((Linear(5, 4).weight.data == Linear(5, 4).weight.data).any())

    yield case("two layers without a seed: is a number equal?", unseeded).gives(False)

    def dice():
        before = np.random.get_state()
        try:
            np.random.seed(5)
            Linear(3, 2, seed=1)
            return bool(abs(np.random.random() - 0.2219931710897395) < 1e-12)
        finally:
            np.random.set_state(before)

    yield case(
        "np.random.seed(5), Linear(3, 2, seed=1): is the next np.random.random() the first?", dice
    ).gives(True)

"""Batch norm, in training and after."""

import toytorch as torch
from course.cases import case
from course.properties import agrees, gradient, restores, untouched
from course.records import Exercise
from toytorch import nn

norm = Exercise(
    "modules.batchnorm",
    "Batch norm, in training and after",
    chapter=7,
    minutes=20,
    prompt="""
    A batch norm shifts and scales every feature, so that a layer always gets inputs of about the
    same size. In **training** it uses the mean and variance of the batch, and keeps running
    averages of both. In **evaluation** it uses the averages, so the result of one example does not
    depend on the other examples of the batch.

    Write `BatchNorm(features, momentum=0.1, eps=1e-5)` for inputs of shape `(n, features)`:

    $$y = \\frac{x - \\text{mean}}{\\sqrt{\\text{var} + \\varepsilon}} \\cdot \\text{weight}
      + \\text{bias}$$

    * Parameters: `weight`, which starts at 1, and `bias`, which starts at 0. Buffers
      (`self.register_buffer(name, tensor)`): `running_mean`, 0, and `running_var`, 1.
    * `self.training` tells which of the two it is.
    * In training, each average moves a little towards the batch:
      $\\text{running} \\leftarrow (1 - m) \\cdot \\text{running} + m \\cdot \\text{batch}$.
      This update, and nothing else, is no part of the graph: do it under `torch.no_grad()`.
      Mean and variance of the batch depend on `x`, and the gradient goes through both.
    * PyTorch divides by $n$ for the variance it *normalises* with (`x.var(0, correction=0)`), and
      by $n - 1$ for the one it *keeps* (`x.var(0)`).
    """,
    without=("torch.nn.BatchNorm1d", "torch.nn.functional.batch_norm",),
    hints=(
        """
        First decide which mean and variance to use: in training those of the batch, in evaluation the two
        buffers. Then the same formula follows in both cases. Only the *update of the buffers* belongs under
        `torch.no_grad()`: the mean and variance of the batch depend on `x`, and the gradient of `x` goes
        through them.
        """,
        """
        One feature, the batch [1, 2, 6], momentum 0.1, a fresh layer in training:

        | step | value |
        | --- | --- |
        | mean of the batch | 3 |
        | variance, divided by n = 3 | (4 + 1 + 9) / 3 = 4.667 |
        | variance, divided by n − 1 = 2 | 7 |
        | y = (x − 3) / √(4.667 + ε) | [−0.926, −0.463, 1.389] |
        | running mean: 0.9 · 0 + 0.1 · 3 | 0.3 |
        | running variance: 0.9 · 1 + 0.1 · 7 | 1.6 |

        Then `layer.eval()`, and the same batch: y = (x − 0.3) / √(1.6 + ε) = [0.553, 1.344, 4.506]. The
        buffers stay.
        """,
        """
        ```python
        class BatchNorm(nn.Module):
            def __init__(self, features, momentum=0.1, eps=1e-5):
                super().__init__()
                self.momentum, self.eps = momentum, eps
                self.weight = ...
                self.bias = ...
                self.register_buffer("running_mean", ...)
                self.register_buffer("running_var", ...)

            def forward(self, x):
                mean, var = self.running_mean, self.running_var
                if self.training:
                    mean, var = ...
                    with torch.no_grad():
                        m = self.momentum
                        self.running_mean.mul_(...).add_(...)
                        ...  # and running_var
                y = ...
                return ...
        ```
        """,
    ),
)


@norm.reference(stub={
    "__init__": "super().__init__()\n# your code here: about 6 lines\nraise NotImplementedError",
    "forward": "your code here: about 10 lines",
})
class BatchNorm(nn.Module):
    """Each feature in units of its own deviation; x: (n, features)."""

    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean(0), x.var(0, correction=0)
            with torch.no_grad():
                m = self.momentum
                self.running_mean.mul_(1 - m).add_(m * mean)
                self.running_var.mul_(1 - m).add_(m * x.var(0))
        y = (x - mean) / torch.sqrt(var + self.eps)
        return y * self.weight + self.bias


norm.changed(
    "always the batch's own numbers",
    """
    In evaluation too, the mean came from the batch at hand. Then a result depends on its
    neighbours, and a batch of a single example comes out as all zeros. Ask `self.training`.
    """,
    (
        "mean, var = self.running_mean, self.running_var",
        "mean, var = x.mean(0), x.var(0, correction=0)",
    ),
    ("            mean, var = x.mean(0), x.var(0, correction=0)\n", ""),
)

norm.changed(
    "updates its averages in evaluation, too",
    """
    Evaluating changed the network: every test batch moved the running mean. Then the result depends
    on how often, and on what, you have evaluated before. Only training may change the averages.
    """,
    (
        "mean, var = self.running_mean, self.running_var",
        "mean, var = self.running_mean.clone(), self.running_var.clone()",
    ),
    (
        "            with torch.no_grad():\n"
        "                m = self.momentum\n"
        "                self.running_mean.mul_(1 - m).add_(m * mean)\n"
        "                self.running_var.mul_(1 - m).add_(m * x.var(0))",
        "        with torch.no_grad():\n"
        "            m = self.momentum\n"
        "            self.running_mean.mul_(1 - m).add_(m * x.mean(0))\n"
        "            self.running_var.mul_(1 - m).add_(m * x.var(0))",
    ),
)

norm.changed(
    "momentum the other way round",
    """
    The average kept a tenth of itself and took nine tenths from the batch, so it is nearly the last
    batch alone. In a batch norm, `momentum` is the share of the *new* value. (In an optimizer it is
    the share of the old one.)
    """,
    (
        "                self.running_mean.mul_(1 - m).add_(m * mean)\n"
        "                self.running_var.mul_(1 - m).add_(m * x.var(0))",
        "                self.running_mean.mul_(m).add_((1 - m) * mean)\n"
        "                self.running_var.mul_(m).add_((1 - m) * x.var(0))",
    ),
)

norm.changed(
    "the same variance for both",
    """
    The average got the variance that was divided by n. Among n numbers that is a little too small
    on average, because the mean was taken from the same numbers. PyTorch keeps the one divided by n
    - 1, since the average is to hold for examples it has not seen.
    """,
    (
        "self.running_var.mul_(1 - m).add_(m * x.var(0))",
        "self.running_var.mul_(1 - m).add_(m * var)",
    ),
)

norm.changed(
    "the averages are no buffers",
    """
    The running values are plain attributes. `state_dict()` does not know them, so a saved network
    loses them, and `to(device)` leaves them behind. `register_buffer` makes a tensor part of the
    module without making it a parameter.
    """,
    (
        '        self.register_buffer("running_mean", torch.zeros(features))\n'
        '        self.register_buffer("running_var", torch.ones(features))',
        "        self.running_mean = torch.zeros(features)\n"
        "        self.running_var = torch.ones(features)",
    ),
)

norm.changed(
    "the averages keep their graph",
    """
    The update of the running mean was recorded. So the buffer keeps the graphs of all batches since
    the start: memory grows with every step, and the second `backward` fails. Update the buffers
    under `torch.no_grad()`.
    """,
    (
        "            with torch.no_grad():\n"
        "                m = self.momentum\n"
        "                self.running_mean.mul_(1 - m).add_(m * mean)\n"
        "                self.running_var.mul_(1 - m).add_(m * x.var(0))",
        "            m = self.momentum\n"
        "            self.running_mean = (1 - m) * self.running_mean + m * mean\n"
        "            self.running_var = (1 - m) * self.running_var + m * x.var(0)",
    ),
)

norm.changed(
    "eps outside the root",
    """
    `sqrt(var) + eps` instead of `sqrt(var + eps)`. For most features the difference is tiny, but
    for one that hardly varies it is large. And the root of exactly 0 has an infinite derivative,
    which is what the eps inside prevents.
    """,
    (
        "y = (x - mean) / torch.sqrt(var + self.eps)",
        "y = (x - mean) / (torch.sqrt(var) + self.eps)",
    ),
)


# what torch.nn.BatchNorm1d(2) gives for these batches: the outputs, then the averages
NORM_X = [[1.0, 10.0], [2.0, 30.0], [6.0, 20.0]]
NORM_Y = [[-0.9258190393447876, -1.2247447967529297], [-0.4629095196723938, 1.2247446775436401],
          [1.3887286186218262, 0.0]]
NORM_MEAN = [0.30000001192092896, 2.0]
NORM_VAR = [1.600000023841858, 10.90000057220459]
NORM_EVAL = [[0.5533968806266785, 2.423129081726074], [1.343963861465454, 8.480951309204102],
             [4.506231784820557, 5.452040672302246]]
NORM_FLAT_X = [[1.0], [1.002]]
NORM_FLAT_Y = [[-0.301483154296875], [0.30153244733810425]]


@norm.check("its parameters and buffers")
def _(f):
    def named():
        layer = f(2)
        return {n: v.tolist() for n, v in layer.state_dict().items()}, len(list(layer.parameters()))

    yield case("the state of BatchNorm(2), and its number of parameters", named).gives(
        ({"weight": [1.0, 1.0], "bias": [0.0, 0.0], "running_mean": [0.0, 0.0],
          "running_var": [1.0, 1.0]}, 2))


@norm.check("in training")
def _(f):
    def first():
        return f(2)(torch.tensor(NORM_X)).detach()

    yield case(f"BatchNorm(2) of {NORM_X}", first).gives(torch.tensor(NORM_Y), tolerance=1e-4)

    def account(which):
        layer = f(2)
        layer(torch.tensor(NORM_X))
        return getattr(layer, which).tolist()

    yield case("its running mean after this batch", lambda: account("running_mean")).gives(
        NORM_MEAN, tolerance=1e-4)
    yield case("its running variance", lambda: account("running_var")).gives(
        NORM_VAR, tolerance=1e-4)

    def flat():
        return f(1)(torch.tensor(NORM_FLAT_X)).detach()

    yield case("a feature that hardly varies: 1 and 1.002", flat).gives(
        torch.tensor(NORM_FLAT_Y), tolerance=1e-3)


@norm.check("in evaluation")
def _(f):
    def after():
        layer = f(2)
        layer(torch.tensor(NORM_X))
        layer.eval()
        return layer(torch.tensor(NORM_X)).detach()

    yield case("the same batch after layer.eval()", after).gives(
        torch.tensor(NORM_EVAL), tolerance=1e-4)

    def unchanged():
        layer = f(2).eval()
        layer(torch.tensor(NORM_X))
        return layer.running_mean.tolist()

    yield case("the running mean after a batch in evaluation", unchanged).gives([0.0, 0.0])


@norm.check("no part of the graph", hidden=True)
def _(f):
    def wants():
        layer = f(2)
        x = torch.tensor(NORM_X, requires_grad=True)
        layer(x).sum().backward()
        return layer.running_mean.requires_grad, x.grad is not None

    yield case("does the running mean want a gradient? does x have one?", wants).gives(
        (False, True))


norm.changed(
    "takes the batch's mean and variance for constants",
    """
    Mean and variance of the batch were computed under `no_grad`, or detached. The outputs are
    right. But both depend on `x`, so the gradient of `x` has two more parts, and without them every
    entry is wrong. Only the update of the buffers belongs under `no_grad`.
    """,
    (
        "            mean, var = x.mean(0), x.var(0, correction=0)\n            with torch.no_grad():\n",
        "            with torch.no_grad():\n"
        "                mean, var = x.mean(0), x.var(0, correction=0)\n",
    ),
)

norm.changed(
    "the variance as a constant",
    """
    The mean is in the graph, the variance was detached. The variance depends on `x` as well, and
    the gradient has to go through it.
    """,
    ("x.var(0, correction=0)\n", "x.var(0, correction=0).detach()\n"),
)

norm.changed(
    "forgets weight and bias",
    """
    `y` was returned as it is. At the start, weight 1 and bias 0 change nothing, so nobody notices;
    but the layer can never learn another scale, and its two parameters get no gradient.
    """,
    ("return y * self.weight + self.bias", "return y"),
)

norm.changed(
    "does not use the momentum it is given",
    """
    `momentum` stands in the first line so that the caller can choose it; a fixed number was used.
    """,
    ("m = self.momentum", "m = 0.1"),
)

norm.changed(
    "does not use the eps it is given",
    """
    `eps` stands in the first line so that the caller can choose it; a fixed number was used.
    """,
    ("var + self.eps", "var + 1e-5"),
)

norm.changed(
    "writes into its input",
    """
    The mean was subtracted in the memory of `x`. `x` belongs to the layer before, which may need it
    for its own backward, and to the caller. Compute a new tensor.
    """,
    (
        "        y = (x - mean) / torch.sqrt(var + self.eps)\n",
        "        x.data.sub_(mean)\n        y = x / torch.sqrt(var + self.eps)\n",
    ),
)


def _layer(kind):
    """A function of the input and all numbers of a layer: the result, and what it keeps."""

    def run(x, weight, bias, momentum, eps, training):
        layer = kind(x.shape[1], momentum=momentum, eps=eps)
        with torch.no_grad():
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
        layer.train(training)
        y = layer(x)
        return y, layer.running_mean.clone(), layer.running_var.clone()

    return run


def _any(draw):
    n, k = draw.randint(2, 5), draw.randint(1, 3)
    x = draw.tensor((n, k), low=-9, high=9, requires_grad=True)
    numbers = draw.tensor((k,)), draw.tensor((k,)), draw.choice([0.1, 0.5]), draw.choice([1e-5, 0.3])
    return x, *numbers, draw.random() < 0.7


@norm.check("any batch, momentum and eps")
def _(f):
    def detached(kind):
        def run(*args):
            return [t.detach() for t in _layer(kind)(*args)]

        return run

    def tell(x, weight, bias, momentum, eps, training):
        mode = "training" if training else "evaluation"
        values = [[round(v, 1) for v in t.flatten().tolist()] for t in (x, weight, bias)]
        said = f"{mode}: x = {values[0]} in {x.shape[1]} columns, weight {values[1]}"
        return f"{said}, bias {values[2]}, momentum {momentum}, eps {eps}; y, mean, variance"

    yield agrees(detached(f), detached(norm.answer.value), _any, tolerance=1e-4, tell=tell)
    yield untouched(lambda x, *rest: _layer(f)(x, *rest), _any)
    yield restores(lambda: f(2)(torch.tensor(NORM_X)))


@norm.check("the gradient of x, through mean and variance")
def _(f):
    def first(kind):
        return lambda *args: _layer(kind)(*args)[0]

    yield gradient(first(f), first(norm.answer.value), _any)

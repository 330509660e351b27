"""A linear layer."""

import math

import toytorch as torch
from course.cases import case
from course.properties import gradient
from course.records import Exercise
from toytorch import nn

linear = Exercise(
    "modules.linear",
    "A linear layer",
    chapter=7,
    minutes=12,
    optional=True,
    prompt="""
    Write the class `Linear(in_features, out_features, bias=True)`. It computes
    $y = x W^\\top + b$ for `x` of shape `(…, in_features)`.

    * `self.weight` is an `nn.Parameter` of shape `(out_features, in_features)`: one **row** for
      each output, as PyTorch has it. `self.bias` is an `nn.Parameter` of shape `(out_features,)`,
      or `None`.
    * All elements, those of the bias as well, start **uniform between $-k$ and $k$**, with
      $k = 1/\\sqrt{n}$ for `n = in_features`. Make the tensor first (`torch.rand`, or
      `torch.empty(…).uniform_(-k, k)`) and wrap the finished one: whatever you compute *from* a
      parameter is no parameter any more.
    """,
    without=("torch.nn.Linear", "torch.nn.functional.linear",),
    hints=(
        """
        `__init__` makes two tensors of random numbers and wraps each in `nn.Parameter` as the last thing
        that happens to it. `forward` multiplies by the transposed weight, so that the last dimension of
        `x`, `in_features`, is summed over.
        """,
        """
        `Linear(3, 2)`: the weight has shape `(2, 3)`, and $k = 1/\\sqrt{3} = 0.577$, so all five numbers of
        one output, three weights and a bias, lie between −0.577 and 0.577. With the weight
        [[1, 2, 3], [0, −1, 1]], the bias [10, 20] and x = [1, 1, 1]:

        | output | row of the weight | sum | with bias |
        | --- | --- | --- | --- |
        | 0 | 1 · 1 + 2 · 1 + 3 · 1 | 6 | 16 |
        | 1 | 0 · 1 − 1 · 1 + 1 · 1 | 0 | 20 |

        For an `x` of shape `(7, 5, 3)` the result has shape `(7, 5, 2)`: `@` works on the last two
        dimensions and repeats for the others.
        """,
        """
        ```python
        class Linear(nn.Module):
            def __init__(self, in_features, out_features, bias=True):
                ...
                k = ...
                weight = torch.empty(out_features, in_features)
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


@linear.reference(stub={
    "__init__": "your code here: about 6 lines",
    "forward": "your code here: about 2 lines",
})
class Linear(nn.Module):
    """y = x @ W.T + b; W: (out, in), b: (out)."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        k = 1 / math.sqrt(in_features)
        weight = torch.empty(out_features, in_features)
        self.weight = nn.Parameter(weight.uniform_(-k, k))
        self.bias = None
        if bias:
            start = torch.empty(out_features).uniform_(-k, k)
            self.bias = nn.Parameter(start)

    def forward(self, x):
        y = x @ self.weight.t()
        return y if self.bias is None else y + self.bias


linear.changed(
    "forgets super().__init__()",
    """
    The three tables of a module are made by `nn.Module`'s own `__init__`. Without
    `super().__init__()` as the first line there is no place where a parameter could be registered.
    """,
    ("        super().__init__()\n", ""),
    (
        "        self.bias = None\n"
        "        if bias:\n"
        "            start = torch.empty(out_features).uniform_(-k, k)\n"
        "            self.bias = nn.Parameter(start)",
        "        self.bias = nn.Parameter(torch.empty(out_features).uniform_(-k, k)) if bias else None",
    ),
)


@linear.mutant(
    "plain tensors",
    why="""
    The weights are tensors, perhaps ones that require a gradient, and not `nn.Parameter`s, so the
    module does not register them. The same happens to `nn.Parameter(torch.rand(…)) * k`, which is
    the *product* of a parameter and a number, and so no parameter any more.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        k = 1 / math.sqrt(in_features)
        weight = torch.empty(out_features, in_features).uniform_(-k, k)
        self.weight = weight.requires_grad_()
        self.bias = torch.empty(out_features).uniform_(-k, k).requires_grad_() if bias else None

    def forward(self, x):
        y = x @ self.weight.t()
        return y if self.bias is None else y + self.bias


@linear.mutant(
    "the weight lies the other way round",
    why="""
    The weight has the shape (in, out). The products come out right, and yet no file that PyTorch
    wrote can be loaded, and whatever looks at `weight[i]` as *the weights of output i* is wrong.
    PyTorch keeps (out, in), and multiplies by the transpose.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        k = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(in_features, out_features).uniform_(-k, k))
        self.bias = nn.Parameter(torch.empty(out_features).uniform_(-k, k)) if bias else None

    def forward(self, x):
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


@linear.mutant(
    "there is always a bias",
    why="""
    `bias=False` was not looked at. In front of a batch norm a bias is of no use: the norm takes the
    mean away, and with it any constant. So it is common to leave it out.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        k = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-k, k))
        self.bias = nn.Parameter(torch.empty(out_features).uniform_(-k, k))

    def forward(self, x):
        return x @ self.weight.t() + self.bias


@linear.mutant(
    "measured by its outputs",
    why="""
    The bound came from `out_features`. Each output is a sum over the *inputs*, and it is the
    count of inputs (the *fan-in*) that makes the sum large: k is 1/√in.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        k = 1 / math.sqrt(out_features)
        self.weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-k, k))
        self.bias = nn.Parameter(torch.empty(out_features).uniform_(-k, k)) if bias else None

    def forward(self, x):
        y = x @ self.weight.t()
        return y if self.bias is None else y + self.bias


@linear.mutant(
    "starts at zero",
    why="""
    With all weights equal, all hidden units compute the same, get the same gradient, and stay equal
    for ever. The whole layer then computes no more than a single unit. Random initial weights make
    the units differ.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x):
        y = x @ self.weight.t()
        return y if self.bias is None else y + self.bias


@linear.mutant(
    "only positive weights",
    why="""
    `torch.rand` gives numbers from 0 to 1, so these lie between 0 and k. Then every output is the
    mean brightness of the input, more or less, and the next layer sees the same number everywhere.
    Shift them: `(2 * torch.rand(…) - 1) * k`.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        k = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.rand(out_features, in_features) * k)
        self.bias = nn.Parameter(torch.rand(out_features) * k) if bias else None

    def forward(self, x):
        y = x @ self.weight.t()
        return y if self.bias is None else y + self.bias


@linear.check("its parameters")
def _(f):
    def shapes(**options):
        layer = f(3, 5, **options)
        return {n: tuple(p.shape) for n, p in layer.named_parameters()}

    yield case("the parameters of Linear(3, 5)", shapes).gives({"weight": (5, 3), "bias": (5,)})
    yield case("the parameters of Linear(3, 5, bias=False)",
               lambda: shapes(bias=False)).gives({"weight": (5, 3)})


@linear.check("the sum")
def _(f):
    def fixed(x, bias=True):
        layer = f(3, 2, bias)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 1.0]]).reshape(
                layer.weight.shape))
            if bias:
                layer.bias.copy_(torch.tensor([10.0, 20.0]))
            return layer(x)

    x = torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 2.0]])
    text = "weight [[1, 2, 3], [0, -1, 1]], "
    yield case(text + "bias [10, 20], x = [[1, 1, 1], [0, 0, 2]]", lambda: fixed(x)).gives(
        torch.tensor([[16.0, 20.0], [16.0, 22.0]]))
    yield case(text + "no bias, x of shape (1, 2, 3)", lambda: fixed(x[None], False)).gives(
        torch.tensor([[[6.0, 0.0], [6.0, 2.0]]]))


@linear.check("how it starts", hidden=True)
def _(f):
    def spread():
        torch.manual_seed(0)
        w = f(400, 100).weight
        return bool(w.abs().max() <= 0.05), bool(w.max() > 0.045), bool(w.min() < -0.045)

    text = "Linear(400, 100), k = 0.05: nothing beyond k; some near k; some near -k"
    yield case(text, spread).gives((True, True, True))


linear.changed(
    "the bias is bounded by the outputs",
    """
    The bias started between ±1/√out. It is added to a sum over the *inputs*, and PyTorch bounds it
    as it bounds the weights: k = 1/√in for both.
    """,
    (
        "            start = torch.empty(out_features)",
        "            k = 1 / math.sqrt(out_features)\n            start = torch.empty(out_features)",
    ),
)

linear.changed(
    "the bias starts at zero",
    """
    A bias of zeros works, and some papers do it; asked for was PyTorch's start, uniform between -k
    and k for the bias as well.
    """,
    ("torch.empty(out_features).uniform_(-k, k)", "torch.zeros(out_features)"),
)

linear.changed(
    "a bias of zeros instead of none",
    """
    `self.bias` is a tensor of zeros. Who asks `layer.bias is None`, as a batch norm that is fused
    into the layer does, gets the wrong answer. Without a bias, keep `None`.
    """,
    ("self.bias = None", "self.bias = torch.zeros(out_features)"),
)

linear.changed(
    "the weight does not want a gradient",
    """
    The weight is a parameter that is frozen from the start: `requires_grad=False`. It is listed and
    saved, and never trained.
    """,
    ("nn.Parameter(weight.uniform_(-k, k))", "nn.Parameter(weight.uniform_(-k, k), requires_grad=False)"),
)

linear.changed(
    "goes around autograd",
    """
    `self.weight.data` (or `.detach()`) is the weight without its place in the graph. The products
    are right, and the weight never gets a gradient. Use the parameter itself in `forward`.
    """,
    ("self.weight.t()", "self.weight.data.t()"),
)

linear.changed(
    "seeds the generator",
    """
    `torch.manual_seed(…)` in a layer sets the random numbers of the whole program: all layers of
    one shape start alike, and every shuffle after it is the same. Draw, and leave the seed to the
    program.
    """,
    ("        k = 1 /", "        torch.manual_seed(0)\n        k = 1 /"),
)


@linear.check("the start of the bias, and without one")
def _(f):
    def bias():
        torch.manual_seed(0)
        b = f(4, 900).bias
        return [round(b.min().item(), 2), round(b.max().item(), 2)]

    text = "the smallest and the largest of 900 biases of Linear(4, 900), where k = 0.5"
    yield case(text, bias).gives([-0.5, 0.5], tolerance=0.02)
    yield case("Linear(3, 5, bias=False).bias", lambda: f(3, 5, bias=False).bias).gives(None)

    def differ():
        return torch.equal(f(3, 5).weight, f(3, 5).weight)

    yield case("two layers, one made after the other: do they start alike?", differ).gives(False)


@linear.check("gradients")
def _(f):
    def run(kind):
        def layer(x, w, b):
            made = kind(w.shape[1], w.shape[0])
            with torch.no_grad():
                made.weight.copy_(w)
                made.bias.copy_(b)
            y = made(x)
            wanted = torch.autograd.grad(
                y.square().sum(), [made.weight, made.bias], create_graph=True
            )
            return [y, *wanted]

        return layer

    def inputs(draw):
        n, k, m = (draw.randint(1, 4) for _ in range(3))
        x = draw.tensor((*draw.shape(most=2), n, k), requires_grad=True)
        return x, draw.tensor((m, k)), draw.tensor((m,))

    yield gradient(run(f), run(linear.answer.value), inputs)

    def wanting():
        return [p.requires_grad for p in f(3, 5).parameters()]

    yield case("do weight and bias want a gradient?", wanting).gives([True, True])

"""Layer normalization, from operations that record."""

import numpy as np

import toytorch as torch
from course.cases import case
from course.records import Exercise
from mytorch.module import Module
from mytorch.tensor import Tensor

norm = Exercise(
    "capstone.norm",
    "Layer normalization",
    chapter=19,
    minutes=12,
    prompt="""
    Deep networks train better when the values between layers keep their size. *Layer normalization*
    (Ba, Kiros and Hinton 2016) brings every vector to mean 0 and variance 1, then scales and shifts
    each of its elements by trained numbers:

    $$y = \\frac{x - \\mathrm{mean}(x)}{\\sqrt{\\mathrm{var}(x) + \\epsilon}} \\cdot
    \\mathrm{weight} + \\mathrm{bias}.$$

    `LayerNorm(size)` has the parameters `weight` (ones) and `bias` (zeros) of shape `(size,)`, and
    works along the last dimension of `x` of shape `(..., size)`. The variance is the mean of the
    squared deviations, also where x is large compared with them. Write `forward` with operations of
    your `Tensor` (`mean`, `*`, `**`), and the gradient comes by itself. x stays as it is.

    For x = [1, 3]: mean 2, deviations [−1, 1], variance 1, y = [−1, 1] (with ε = 0).
    """,
    without=("torch.nn.functional.layer_norm", "torch.nn.LayerNorm"),
    hints=(
        """
        Four lines of arithmetic on tensors. `keepdims=True` keeps the last dimension with size 1, so that
        the mean broadcasts against x again. Compute the deviations first: the variance is a mean of their
        squares, and they are what is scaled.
        """,
        """
        x = [[1, 3], [10, 10], [0, 4]] with ε = 0.25, weight [1, 2] and bias [0, 5]:

        | what | row 0 | row 1 | row 2 |
        | --- | --- | --- | --- |
        | mean | 2 | 10 | 2 |
        | deviations | [−1, 1] | [0, 0] | [−2, 2] |
        | variance | 1 | 0 | 4 |
        | √(variance + ε) | 1.118 | 0.5 | 2.062 |
        | deviations, scaled | [−0.894, 0.894] | [0, 0] | [−0.97, 0.97] |
        | times weight, plus bias | [−0.894, 6.789] | [0, 5] | [−0.97, 6.94] |

        Each row is on its own. Row 1 shows what ε is for: without it, 0 would be divided by 0.
        """,
        """
        ```python
        class LayerNorm(Module):
            def __init__(self, size, eps=1e-5):
                self.weight = Tensor(..., requires_grad=True)
                self.bias = Tensor(..., requires_grad=True)
                self.eps = eps

            def forward(self, x):
                centred = x - ...
                variance = ...  # shape (..., 1)
                scale = ... ** -0.5
                return ...
        ```
        """,
    ),
)


@norm.reference(stub={
    "__init__": "your code here: about 3 lines",
    "forward": "your code here: about 4 lines",
})
class LayerNorm(Module):
    """Each vector to mean 0 and variance 1, then scaled and shifted."""

    def __init__(self, size, eps=1e-5):
        self.weight = Tensor(np.ones(size), requires_grad=True)
        self.bias = Tensor(np.zeros(size), requires_grad=True)
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        scale = (variance + self.eps) ** -0.5
        return centred * scale * self.weight + self.bias


norm.changed(
    "divides by n − 1",
    """
    The variance here is the mean of the squares, divided by n. n − 1 belongs to estimates from
    samples.
    """,
    (
        "variance = (centred * centred).mean(-1, keepdims=True)",
        (
            "count = x.data.shape[-1]\n"
            "        variance = (centred * centred).mean(-1, keepdims=True) * (count / "
            "(count - 1))"
        ),
    ),
)

norm.changed(
    "epsilon outside the root",
    """
    ε is added to the variance, under the root. For vectors that hardly vary it makes a difference:
    √1e-5 is 0.003, and not 0.00001.
    """,
    ("scale = (variance + self.eps) ** -0.5", "scale = (variance**0.5 + self.eps) ** -1"),
)

norm.changed(
    "normalizes along the batch",
    """
    That is batch norm. Layer norm looks at one vector at a time, along the last dimension, and
    needs no running averages.
    """,
    ("centred = x - x.mean(-1, keepdims=True)", "centred = x - x.mean(0, keepdims=True)"),
    (
        "variance = (centred * centred).mean(-1, keepdims=True)",
        "variance = (centred * centred).mean(0, keepdims=True)",
    ),
)

norm.changed(
    "mean and variance without their gradient",
    """
    The mean and the variance depend on x, and x's gradient flows through them as well. Computed
    from `x.data` they are constants, and the gradient is wrong in every element.
    """,
    ("centred = x - x.mean(-1, keepdims=True)", "centred = x - x.data.mean(-1, keepdims=True)"),
    (
        "variance = (centred * centred).mean(-1, keepdims=True)",
        "variance = Tensor(centred.data**2).mean(-1, keepdims=True)",
    ),
)

norm.changed(
    "no scale and shift",
    """
    After normalizing, `weight` and `bias` give each element a size of its own again. They are
    trained.
    """,
    ("return centred * scale * self.weight + self.bias", "return centred * scale"),
)

norm.changed(
    "one scale for all elements",
    """
    `weight` and `bias` have a number for each element of the vector, shape (size,). A single number
    would scale all elements alike.
    """,
    (
        "self.weight = Tensor(np.ones(size), requires_grad=True)",
        "self.weight = Tensor(np.ones(1), requires_grad=True)",
    ),
)

norm.changed(
    "a difference of large squares",
    """
    mean(x²) − mean(x)² is the variance on paper. For x around 10⁸ both are around 10¹⁶, where the
    neighbouring floating-point numbers are 2 apart, so the difference is noise. Square the deviations.
    """,
    (
        "variance = (centred * centred).mean(-1, keepdims=True)",
        (
            "mean = x.mean(-1, keepdims=True)\n"
            "        variance = (x * x).mean(-1, keepdims=True) - mean * mean"
        ),
    ),
)

norm.changed(
    "takes the mean off the input itself",
    """
    `x.data -= ...` writes into the array that was handed in. In a GPT, x is also added to the result
    further on, and it has other numbers then.
    """,
    (
        "centred = x - x.mean(-1, keepdims=True)",
        "x.data -= x.data.mean(-1, keepdims=True)\n        centred = x - x.mean(-1, keepdims=True)",
    ),
)

norm.changed(
    "forgets the root",
    """
    Dividing by the variance instead of its root makes large vectors small and small ones large. The
    standard deviation has the unit of x; the variance has its square.
    """,
    ("** -0.5", "** -1"),
)

norm.changed(
    "squares that are not centred",
    """
    The variance is the mean square of the *deviations*. The mean square of x itself is larger by the
    squared mean.
    """,
    ("(centred * centred)", "(x * x)"),
)

norm.changed(
    "the mean stays in the result",
    """
    The numerator is x − mean(x). Here x itself was scaled, so its mean is still there, if smaller.
    """,
    ("return centred * scale", "return x * scale"),
)


def _draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).round(3)


def _layer(LayerNorm, size):
    layer = LayerNorm(size)
    layer.weight.data = _draw(5, *layer.weight.data.shape)
    layer.bias.data = _draw(6, size)
    return layer


def _real(shape):
    x = torch.tensor(_draw(1, *shape), requires_grad=True)
    weight = torch.tensor(_draw(5, shape[-1]), requires_grad=True)
    bias = torch.tensor(_draw(6, shape[-1]), requires_grad=True)
    y = torch.nn.functional.layer_norm(x, shape[-1:], weight, bias)
    y.backward(torch.tensor(_draw(2, *shape)))
    return y.tolist(), x.grad.tolist(), weight.grad.tolist(), bias.grad.tolist()


@norm.check("values")
def _(LayerNorm):
    def start():
        layer = LayerNorm(4)
        return [p.data.tolist() for p in layer.parameters()]

    yield case("the parameters of LayerNorm(4)", start).gives([[1.0] * 4, [0.0] * 4])

    def pair():
        return LayerNorm(2, eps=0.0)(Tensor([1.0, 3.0])).data.tolist()

    yield case("[1, 3] with eps=0", pair).gives([-1.0, 1.0])
    for shape in ((3,), (2, 5), (2, 3, 4)):

        def values(shape=shape):
            return _layer(LayerNorm, shape[-1])(Tensor(_draw(1, *shape))).data.tolist()

        yield case(f"x of shape {shape}", values).gives(_real(shape)[0])

    def small():
        return LayerNorm(2)(Tensor([1e-3, 3e-3])).data.tolist()

    wanted = torch.nn.functional.layer_norm(torch.tensor([1e-3, 3e-3], dtype=torch.float64), (2,))
    yield case("[0.001, 0.003], where eps matters", small).gives(wanted.tolist())

    def far():
        return LayerNorm(2)(Tensor([1e8 + 1, 1e8 + 3])).data.tolist()

    yield case("[100000001, 100000003]", far).gives([-1.0, 1.0], tolerance=1e-4)

    def kept():
        x = Tensor([[1.0, 3.0], [5.0, 5.0]], requires_grad=True)
        LayerNorm(2)(x).sum().backward()
        return x.data.tolist()

    yield case("x = [[1, 3], [5, 5]] after forward and backward", kept).gives(
        [[1.0, 3.0], [5.0, 5.0]]
    )


@norm.check("gradients")
def _(LayerNorm):
    for shape in ((3,), (2, 5), (2, 3, 4)):

        def gradients(shape=shape):
            layer = _layer(LayerNorm, shape[-1])
            x = Tensor(_draw(1, *shape), requires_grad=True)
            layer(x).backward(_draw(2, *shape))
            parts = x, layer.weight, layer.bias
            return [None if p.grad is None else p.grad.tolist() for p in parts]

        yield case(f"of x {shape}, weight and bias", gradients).gives(list(_real(shape)[1:]))

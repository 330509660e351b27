"""The uniformity loss by a product of matrices."""

import math

import toytorch as torch
from course.cases import case
from course.properties import agrees, gradient, second_derivative, untouched
from course.records import Exercise

loss = Exercise(
    "measure.uniformity",
    "The uniformity loss by a product",
    chapter=11,
    minutes=25,
    prompt="""
    The uniformity loss (Wang and Isola, 2020) of the rows $x_i$ of a matrix is the logarithm of a mean
    over all pairs of *different* rows:

    $$\\log \\operatorname{mean}_{i \\neq j} \\exp(-t \\, \\lVert x_i - x_j \\rVert^2)$$

    Written pair by pair, the differences of all pairs go through memory, n² · d / 2 elements. Write
    `uniformity(x, t=2.0)` so that no tensor has more than n² elements. Use

    $$\\lVert x_i - x_j \\rVert^2 = \\lVert x_i \\rVert^2 + \\lVert x_j \\rVert^2 - 2 \\, x_i \\cdot x_j,$$

    in which all products $x_i \\cdot x_j$ together are one product of matrices.

    * `x` has shape (n, d), n ≥ 2, any rows: they need not have length 1. The result is a tensor
      without dimensions, and gradients flow to `x`.
    * A row and itself are no pair.
    * Rounding can make a squared distance a little less than 0. Clamp it.
    * `exp` of a large negative number is 0, and the logarithm of 0 is $-\\infty$. `logsumexp` does all
      three steps without that. A masked entry of $-\\infty$ adds nothing to its sum.
    """,
    hints=(
        """
        The diagonal of `x @ x.T` holds the squared lengths of all rows. So one product gives everything.
        Add the lengths once as a column and once as a row; broadcasting makes the matrix.
        """,
        """
        Three rows (0, 0), (1, 0), (0, 2), and t = 1.

        | step | value |
        | --- | --- |
        | `x @ x.T` | [[0, 0, 0], [0, 1, 0], [0, 0, 4]] |
        | its diagonal | [0, 1, 4] |
        | squared distances | [[0, 1, 4], [1, 0, 5], [4, 5, 0]] |
        | exponents, the diagonal masked | [[−∞, −1, −4], [−1, −∞, −5], [−4, −5, −∞]] |
        | logsumexp of all | −0.2410 |
        | minus log 6, since there are 6 entries off the diagonal | −2.0327 |

        The entries (i, j) and (j, i) are equal, so the mean over both is the mean over pairs.
        """,
        """
        ```python
        def uniformity(x, t=2.0):
            n = x.shape[0]
            products = x @ x.T
            lengths = ...
            distances = (...).clamp(min=0)
            itself = torch.eye(n, dtype=torch.bool)
            exponents = ...
            return exponents.logsumexp((0, 1)) - ...
        ```
        """,
    ),
)


@loss.reference(stub="your code here: about 7 lines")
def uniformity(x, t=2.0):
    """The loss of rows x (n, d); no tensor has more than n² elements."""
    n = x.shape[0]
    products = x @ x.T
    lengths = products.diagonal()
    distances = (lengths[:, None] + lengths - 2 * products).clamp(min=0)
    itself = torch.eye(n, dtype=torch.bool)
    exponents = (-t * distances).masked_fill(itself, -math.inf)
    return exponents.logsumexp((0, 1)) - math.log(n * (n - 1))


loss.changed(
    "a row and itself are a pair",
    """
    The diagonal was left in the mean. The distance of a row from itself is 0, so it adds the largest
    possible value for every row, and the loss is too large.
    """,
    (".masked_fill(itself, -math.inf)", ""),
    ("math.log(n * (n - 1))", "math.log(n * n)"),
)

loss.changed(
    "divides by all entries",
    """
    The sum was divided by n², but the diagonal does not count: n (n − 1) entries are left.
    """,
    ("math.log(n * (n - 1))", "math.log(n * n)"),
)

loss.changed(
    "counts half of the entries",
    """
    The sum has the entries (i, j) and (j, i), and it was divided by the number of pairs, n (n − 1) / 2.
    Divide by as many as were added up.
    """,
    ("math.log(n * (n - 1))", "math.log(n * (n - 1) / 2)"),
)

loss.changed(
    "takes all rows to have length 1",
    """
    $2 - 2 x_i \\cdot x_j$ is the squared distance of rows of length 1 only. Here rows may have any
    length: take the lengths from the diagonal.
    """,
    ("lengths[:, None] + lengths - 2 * products", "2 - 2 * products + 0 * lengths"),
)

loss.changed(
    "distances that are not squared",
    """
    The square root was taken. The loss has the *squared* distances, and the root of 0 has no finite
    gradient.
    """,
    (".clamp(min=0)", ".clamp(min=1e-12).sqrt()"),
)

loss.changed(
    "the mean of the exponents",
    """
    The logarithm and `exp` were left out as if they cancelled. The logarithm of a mean is not the mean
    of logarithms: close pairs count much more than distant ones.
    """,
    ("(-t * distances).masked_fill(itself, -math.inf)", "(-t * distances).masked_fill(itself, 0.0)"),
    ("exponents.logsumexp((0, 1)) - math.log(n * (n - 1))", "exponents.sum() / (n * (n - 1))"),
)

loss.changed(
    "the logarithm of zero",
    """
    `exp`, the sum and the logarithm were separate steps. For rows that are far apart every `exp` is 0,
    and the loss is −∞. `logsumexp` takes the largest exponent out first.
    """,
    ("exponents.logsumexp((0, 1))", "exponents.exp().sum().log()"),
)

loss.changed(
    "squared distances below zero",
    """
    Rounding made some squared distances of equal rows negative, and nothing clamped them. Then the
    exponent is positive, and the loss is larger than 0.
    """,
    (".clamp(min=0)", ""),
)

loss.changed(
    "cut off from the graph",
    """
    The result is right, but no gradient reaches `x`: the product left the graph. A loss is there for its
    gradient.
    """,
    ("products = x @ x.T", "products = x.detach() @ x.detach().T"),
)


@loss.mutant("the differences of all pairs", why="""
    `x[:, None] - x` has n · n · d elements. The result is right, and all of it goes through memory
    several times: this is what the product of matrices avoids.
    """)
def uniformity(x, t=2.0):
    n = x.shape[0]
    distances = (x[:, None] - x).pow(2).sum(2)
    itself = torch.eye(n, dtype=torch.bool)
    exponents = (-t * distances).masked_fill(itself, -math.inf)
    return exponents.logsumexp((0, 1)) - math.log(n * (n - 1))


@loss.check("three rows")
def _(f):
    rows = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    yield case("rows (0, 0), (1, 0), (0, 2), t=1", lambda: f(torch.tensor(rows), 1.0)).gives(
        torch.tensor(-2.0327294), 1e-5)
    yield case("rows (1, 0), (0, 1), t=2", lambda: f(torch.eye(2))).gives(torch.tensor(-4.0), 1e-5)
    yield case("the same row twice", lambda: f(torch.ones(2, 3))).gives(torch.tensor(0.0), 1e-5)


def _near(n, d, scale):
    """Rows that differ by rounding only, far from the origin."""
    steps = torch.arange(n * d, dtype=torch.float32).reshape(n, d)
    return 10.0 + scale * (steps * 1.7).sin()


@loss.check("rows that are far apart, and rows that are nearly equal")
def _(f):
    yield case("rows (0, 0), (100, 0), (0, 300), t=2",
               lambda: f(torch.tensor([[0.0, 0.0], [100.0, 0.0], [0.0, 300.0]]))).gives(
        torch.tensor(-20001.0986), 1e-5)
    yield case("whether the loss of 6 equal rows is 0",
               lambda: abs(f(_near(1, 7, 1.0).expand(6, 7) * 1.0, 50.0).item()) < 1e-3).gives(True)
    yield case("whether the loss of 8 rows that differ by rounding only is above 0",
               lambda: f(_near(8, 5, 1e-6), 1e5).item() > 0).gives(False)


def _largest(f, n, d):
    """The elements of the largest tensor that an answer asks memory for, and its loss."""
    torch.manual_seed(0)
    x = torch.randn(n, d)
    with torch.profiler.profile(profile_memory=True) as prof:
        f(x)
    sizes = [event.self_cpu_memory_usage for event in prof.events()]
    return max(sizes) // x.element_size()


@loss.check("memory")
def _(f):
    yield case("16 rows of 64 elements: the largest tensor that is made, in elements",
               lambda: _largest(f, 16, 64)).holds(
        "at most 256", lambda got: isinstance(got, int) and got <= 256)


def _pdist(x, t=2.0):
    """The loss as the definition says."""
    return torch.logsumexp(-t * torch.pdist(x).pow(2), 0) - math.log(len(x) * (len(x) - 1) / 2)


def _rows(draw):
    shape = draw.randint(2, 5), draw.randint(1, 4)
    return draw.tensor(shape, torch.float64), draw.choice((0.5, 2.0, 20.0))


def _apart(draw):
    x = torch.tensor([[1.1 * i + draw.number(-0.4, 0.4), draw.number()]
                      for i in range(draw.randint(2, 4))], dtype=torch.float64)
    return x.requires_grad_(), draw.choice((0.5, 1.0))


@loss.check("any rows")
def _(f):
    yield agrees(f, _pdist, _rows)
    yield gradient(f, _pdist, _apart)
    yield second_derivative(f, loss.answer.value, _apart)
    yield untouched(f, _rows)

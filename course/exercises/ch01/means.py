"""Every class's mean in one matrix product."""

import toytorch as torch
from course.cases import call
from course.records import Exercise

means = Exercise(
    "tensors.means",
    "Every class's mean in one matrix product",
    chapter=1,
    minutes=12,
    prompt="""
    Given `x` of shape `(n, features)` and one-hot `rows` of shape `(n, classes)`, write
    `class_means(x, rows)` of shape `(classes, features)`: row *k* is the mean of the examples of
    class *k*. No loop: the product $R^\\top X$ adds up the examples of each class, and what is
    left is to divide each sum by *its own* count.

    A class without examples has the mean 0, not `nan`.
    """,
)


@means.stub
def class_means(x, rows):
    """(n, features), (n, classes) -> (classes, features)."""
    # your code here: about 3 lines
    raise NotImplementedError


@means.reference
def class_means(x, rows):
    """(n, features), (n, classes) -> (classes, features)."""
    sums = rows.T @ x  # (classes, features)
    counts = rows.sum(0).clamp(min=1)  # (classes,)
    return sums / counts[:, None]


@means.mutant(
    "divides by all examples",
    why="""
    Each sum was divided by n, the number of *all* examples. A class's mean is over its own: the
    column sums of the one-hot table count them, `rows.sum(0)`.
    """,
)
def class_means(x, rows):
    return (rows.T @ x) / x.shape[0]


@means.mutant(
    "sums, not means",
    why="""
    The product adds up the examples of each class, and the division is missing: a class with more
    examples would seem brighter.
    """,
)
def class_means(x, rows):
    return rows.T @ x


@means.mutant(
    "counts stand in a row",
    why="""
    Broadcasting lines shapes up **from the right**: counts of shape `(classes,)` met the columns,
    that is the features, and not the rows. It raises no error when there are as many classes as
    features, which is the worst of it. Make a column of them: `counts[:, None]`.
    """,
)
def class_means(x, rows):
    return (rows.T @ x) / rows.sum(0).clamp(min=1)


@means.mutant(
    "0 / 0 for an empty class",
    why="""
    A class without examples has the sum 0 and the count 0, and 0 / 0 is `nan`, which from then on
    infects everything that touches it. `counts.clamp(min=1)` makes it 0 / 1.
    """,
)
def class_means(x, rows):
    return (rows.T @ x) / rows.sum(0)[:, None]


def _table():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [10.0, 20.0]])
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    return x, rows


@means.check("two classes, two features")
def _(f):
    x, rows = _table()
    yield call(f, x, rows).gives(torch.tensor([[2.0, 3.0], [10.0, 20.0]]))


@means.check("more features than classes")
def _(f):
    x = torch.arange(12.0).reshape(4, 3)
    rows = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    yield call(f, x, rows).gives(torch.tensor([[3.0, 4.0, 5.0], [5.0, 6.0, 7.0]]))


@means.check("a class without examples", hidden=True)
def _(f):
    x, _rows = _table()
    rows = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    yield call(f, x, rows).gives(torch.tensor([[2.0, 3.0], [0.0, 0.0], [10.0, 20.0]]))

"""Every class's mean in one matrix product."""

import toytorch as torch
from course.cases import call
from course.properties import agrees, gradient, untouched
from course.records import Exercise

means = Exercise(
    "tensors.means",
    "Every class's mean in one matrix product",
    chapter=1,
    minutes=18,
    prompt="""
    Given the examples `x` of shape `(n, features)` and their classes `labels`, `n` integers such as
    `[2, 0, 1]`, write `class_means(x, labels, classes)` of shape `(classes, features)`: row *k* is
    the mean of the examples of class *k*. No loop, in three steps:

    1. **One-hot**: a table $R$ of shape `(n, classes)` with a single 1 in each row, where the label
       says. For `[2, 0, 1]` it is

       ```
       0 0 1
       1 0 0
       0 1 0
       ```

       One comparison makes it: the labels as a *column*, compared with the class numbers as a *row*.
       Broadcasting does the rest. Give it the dtype of `x`.
    2. **Sum**: the product $R^\\top X$ adds up the examples of each class.
    3. **Divide** each sum by *its own* count. A class without examples has the mean 0, not `nan`.
    """,
    hints=(
        """
        Think in shapes. The table of ones is `(n, classes)`, x is `(n, features)`, and the result is
        `(classes, features)`: the sum over n is a matrix product with the table transposed. A class's count
        is the sum of its column in the table.
        """,
        """
        x is `[[1, 2], [3, 4], [10, 20]]`, labels are `[0, 0, 1]`, and there are 3 classes.

        ```
        table R    Rᵀ                Rᵀ @ x      counts   means
        1 0 0      1 1 0              4   6        2        2   3
        1 0 0      0 0 1             10  20        1       10  20
        0 1 0      0 0 0              0   0        0 → 1    0   0
        ```

        The comparison that makes R: `labels[:, None]` has the shape `(3, 1)`, the class numbers have the
        shape `(3,)`, and the two broadcast to `(3, 3)`. The counts have the shape `(classes,)`; to divide
        *rows* they must be a column.
        """,
        """
        ```python
        def class_means(x, labels, classes):
            rows = (labels[:, None] == ...).to(x.dtype)
            sums = ...  # (classes, features)
            counts = rows.sum(0).clamp(min=1)
            return sums / counts[...]
        ```
        """,
    ),
)


@means.reference(stub="your code here: about 4 lines")
def class_means(x, labels, classes):
    """(n, features), (n,) integers -> (classes, features)."""
    rows = (labels[:, None] == torch.arange(classes)).to(x.dtype)
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
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.arange(classes)).to(x.dtype)
    return (rows.T @ x) / x.shape[0]


@means.mutant(
    "sums, not means",
    why="""
    The product adds up the examples of each class, and the division is missing. A class with more
    examples then gets larger values.
    """,
)
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.arange(classes)).to(x.dtype)
    return rows.T @ x


@means.mutant(
    "counts stand in a row",
    why="""
    Broadcasting lines shapes up **from the right**: counts of shape `(classes,)` met the columns,
    that is the features, and not the rows. If there are as many classes as features, this raises no
    error and gives wrong means. Make a column of them: `counts[:, None]`.
    """,
)
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.arange(classes)).to(x.dtype)
    return (rows.T @ x) / rows.sum(0).clamp(min=1)


@means.mutant(
    "0 / 0 for an empty class",
    why="""
    A class without examples has the sum 0 and the count 0, and 0 / 0 is `nan`. Whatever is computed
    from a `nan` is `nan` too. `counts.clamp(min=1)` makes it 0 / 1.
    """,
)
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.arange(classes)).to(x.dtype)
    return (rows.T @ x) / rows.sum(0)[:, None]


@means.mutant(
    "as wide as the labels need",
    why="""
    The number of classes came from the largest label that happened to be there. In a batch without
    a 9 the result would have one row too few, and the next batch would not fit it. That is why the
    number of classes is an argument.
    """,
)
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.arange(int(labels.max()) + 1)).to(x.dtype)
    return (rows.T @ x) / rows.sum(0).clamp(min=1)[:, None]


@means.mutant(
    "leaves bools instead of numbers",
    why="""
    A comparison gives a `bool` tensor, and a matrix product with it raises an error. Convert it to
    the dtype of x: `.to(x.dtype)`.
    """,
)
def class_means(x, labels, classes):
    rows = labels[:, None] == torch.arange(classes)
    return (rows.T @ x) / rows.sum(0).clamp(min=1)[:, None]


@means.mutant(
    "classes count from 1",
    why="""
    Labels are indices, and indices begin at 0: the classes are 0 to classes - 1. With 1 to
    classes, all rows are off by one and class 0 is lost.
    """,
)
def class_means(x, labels, classes):
    rows = (labels[:, None] == torch.arange(1, classes + 1)).to(x.dtype)
    return (rows.T @ x) / rows.sum(0).clamp(min=1)[:, None]


def _table():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [10.0, 20.0]])
    return x, torch.tensor([0, 0, 1])


means.changed(
    "only the classes that are there",
    """
    `torch.unique(labels)` has the classes that occur. A batch may lack one, and the result then has
    a row too few: row c no longer belongs to class c. `torch.arange(classes)` has all of them.
    """,
    ("torch.arange(classes)", "torch.unique(labels)"),
)

means.changed(
    "scales x in place",
    """
    `x.div_(…)` writes into the tensor that the caller handed in: at the next call its elements are
    others. Divide what you computed, not what you were given.
    """,
    ("    sums = rows.T @ x  # (classes, features)\n", ""),
    (
        "    return sums / counts[:, None]",
        "    return rows.T @ x.div_(counts[labels][:, None])",
    ),
)


@means.check("two classes, two features")
def _(f):
    x, labels = _table()
    yield call(f, x, labels, 2).gives(torch.tensor([[2.0, 3.0], [10.0, 20.0]]))


@means.check("more features than classes")
def _(f):
    x = torch.arange(12.0).reshape(4, 3)
    labels = torch.tensor([1, 0, 1, 1])
    yield call(f, x, labels, 2).gives(torch.tensor([[3.0, 4.0, 5.0], [5.0, 6.0, 7.0]]))


@means.check("a class without examples", hidden=True)
def _(f):
    x, _labels = _table()
    labels = torch.tensor([0, 0, 2])
    yield call(f, x, labels, 3).gives(torch.tensor([[2.0, 3.0], [0.0, 0.0], [10.0, 20.0]]))
    x, labels = _table()
    yield call(f, x, labels, 3).gives(torch.tensor([[2.0, 3.0], [10.0, 20.0], [0.0, 0.0]]))


@means.check("any examples")
def _(f):
    def examples(draw, requires_grad=False):
        count, classes = draw.randint(1, 5), draw.randint(1, 4)
        x = draw.tensor((count, draw.randint(1, 3)), draw.dtype("float32", "float64"),
                        requires_grad=requires_grad)
        return x, draw.tensor((count,), torch.int64, low=0, high=classes - 1), classes

    yield agrees(f, means.answer.value, examples)
    yield untouched(f, examples)
    yield gradient(f, means.answer.value, lambda draw: examples(draw, True))

"""One-hot without a loop."""

import toytorch as torch
from course.cases import call, case
from course.records import Exercise

one_hot = Exercise(
    "tensors.one_hot",
    "One-hot without a loop",
    chapter=1,
    minutes=8,
    prompt="""
    Labels such as `[2, 0, 1]` often have to become rows with a single one:

    ```
    0 0 1
    1 0 0
    0 1 0
    ```

    Write `to_one_hot(labels, classes)` for a 1-d integer tensor; the result is `float32`. One
    comparison does it: hold the labels as a *column* against the class numbers as a *row*, and let
    broadcasting make the table.
    """,
)


@one_hot.stub
def to_one_hot(labels, classes):
    """(n,) integer labels -> (n, classes) float32 with one 1 a row."""
    # your code here: one or two lines
    raise NotImplementedError


@one_hot.reference
def to_one_hot(labels, classes):
    """(n,) integer labels -> (n, classes) float32 with one 1 a row."""
    return (labels[:, None] == torch.arange(classes)).float()


@one_hot.mutant(
    "rows and columns swapped",
    why="""
    The table stands on its side: classes go down and examples go across. Dimension 0 is the
    example nearly everywhere in PyTorch, so the labels have to be the column: `labels[:, None]`.
    """,
)
def to_one_hot(labels, classes):
    return (labels[None, :] == torch.arange(classes)[:, None]).float()


@one_hot.mutant(
    "leaves truths instead of numbers",
    why="""
    A comparison gives a `bool` tensor. It prints `True` and `False`, and a matrix product refuses
    it. Say `.float()`.
    """,
)
def to_one_hot(labels, classes):
    return labels[:, None] == torch.arange(classes)


@one_hot.mutant(
    "as wide as the labels need",
    why="""
    The width came from the largest label that happened to be there. In a batch without a 9 the
    table would have one column too few, and the next batch would not fit it. That is why the
    number of classes is handed in.
    """,
)
def to_one_hot(labels, classes):
    return (labels[:, None] == torch.arange(int(labels.max()) + 1)).float()


@one_hot.check("three labels")
def _(f):
    wanted = torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    yield call(f, torch.tensor([2, 0, 1]), 3).gives(wanted)


@one_hot.check("classes nobody has")
def _(f):
    wanted = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    yield call(f, torch.tensor([1, 1]), 4).gives(wanted)


@one_hot.check("every row sums to one", hidden=True)
def _(f):
    labels = torch.arange(50) % 7
    sums = case("row sums for 50 labels, 10 classes", lambda: f(labels, 10).sum(1).tolist())
    yield sums.gives([1.0] * 50)

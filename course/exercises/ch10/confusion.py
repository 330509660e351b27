"""What was taken for what."""

import toytorch as torch
from course.cases import call
from course.records import Exercise

confusion = Exercise(
    "training.confusion",
    "What was taken for what",
    chapter=10,
    minutes=8,
    prompt="""
    "97 % right" does not say what went wrong. A confusion matrix does: in row `t` and column `a` it
    has the number of examples of class `t` that were answered `a`.

    Write `confusion_matrix(answers, labels, classes)`. Both tensors hold class numbers, int64, of
    shape `(n,)`; the result is an int64 tensor of shape `(classes, classes)`, even if some class
    does not occur.

    One way without a loop: make one number of each pair, and count those with
    `.bincount(minlength=...)`. With a loop over `zip(labels.tolist(), answers.tolist())` it works,
    too.
    """,
)


@confusion.stub
def confusion_matrix(answers, labels, classes):
    """Counts: rows are what it was, columns what was answered."""
    # your code here: about 3 lines
    raise NotImplementedError


@confusion.reference
def confusion_matrix(answers, labels, classes):
    """Counts: rows are what it was, columns what was answered."""
    pairs = labels * classes + answers
    counts = pairs.bincount(minlength=classes * classes)
    return counts.reshape(classes, classes)


@confusion.mutant(
    "rows and columns exchanged",
    why="""
    The counts are right, and the matrix is lying on its side: rows are the *answers* here. Then
    "the row of the eights" shows what was called an eight, and not what became of the eights. Both
    are used in the world; here the truth goes down the rows.
    """,
)
def confusion_matrix(answers, labels, classes):
    pairs = answers * classes + labels
    return pairs.bincount(minlength=classes * classes).reshape(classes, classes)


@confusion.mutant(
    "counts each pair once",
    why="""
    `matrix[labels, answers] += 1` reads all places, adds 1, and writes them back. A pair that
    occurs a hundred times is written a hundred times with the same 1. Count the pairs
    (`bincount`), or say that writes add up: `index_put_(..., accumulate=True)`.
    """,
)
def confusion_matrix(answers, labels, classes):
    matrix = torch.zeros(classes, classes, dtype=torch.int64)
    matrix[labels, answers] += 1
    return matrix


@confusion.mutant(
    "as large as what occurs",
    why="""
    The size was taken from the largest number that happens to be there. With a small batch, or a
    class that nobody answers, the matrix is too small, and two of them cannot be added. Use
    `classes`.
    """,
)
def confusion_matrix(answers, labels, classes):
    classes = int(max(answers.max(), labels.max())) + 1
    pairs = labels * classes + answers
    return pairs.bincount(minlength=classes * classes).reshape(classes, classes)


@confusion.mutant(
    "shares instead of counts",
    why="""
    Each row was divided by its sum. Shares cannot be added up over batches, and where a class does
    not occur they are `nan`. Keep counts, and divide when you draw them.
    """,
)
def confusion_matrix(answers, labels, classes):
    pairs = labels * classes + answers
    counts = pairs.bincount(minlength=classes * classes).reshape(classes, classes)
    return counts / counts.sum(1, keepdim=True)


@confusion.check("three classes")
def _(f):
    yield call(f, torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 1, 2]), 3).gives(
        torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 1]]))


@confusion.check("the same pair many times")
def _(f):
    yield call(f, torch.tensor([1, 1, 1, 0]), torch.tensor([0, 0, 0, 1]), 2).gives(
        torch.tensor([[0, 3], [1, 0]]))


@confusion.check("classes that do not occur", hidden=True)
def _(f):
    yield call(f, torch.tensor([0, 0]), torch.tensor([0, 1]), 4).gives(
        torch.tensor([[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]))

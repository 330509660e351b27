"""An embedding: a row of numbers for each token."""

import numpy as np

import toytorch as torch
from course.cases import case
from course.records import Exercise
from mytorch.function import Function
from mytorch.module import Module
from mytorch.tensor import Tensor

embedding = Exercise(
    "capstone.embedding",
    "An embedding",
    chapter=19,
    minutes=15,
    prompt="""
    A network computes with numbers, and a letter is an index. An *embedding* is a table with a row of
    `size` numbers for each of `count` letters, and the rows are trained.

    * `Embedding(count, size)` has one parameter, `weight` of shape `(count, size)`, from a normal
      distribution: `np.random.default_rng(seed).normal(size=(count, size))`.
    * `forward(tokens)`, for an array of integers of any shape, gives `weight[tokens]`, of shape
      `(*tokens.shape, size)`. Write it as a `Function` inside the class, `Rows`.
    * Its backward adds the gradient of each place to the row that was read there. A letter occurs
      many times in a text, so **many gradients meet in one row**. `part[tokens] += g` keeps only one
      of them; `np.add.at(part, tokens, g)` adds all.

    For tokens [1, 1, 0] and g = [[1, 2], [10, 20], [5, 5]]: row 1 gets [11, 22], row 0 gets [5, 5],
    every other row zeros.
    """,
)


@embedding.stub
class Embedding(Module):
    """A row of numbers for each of `count` tokens."""
    class Rows(Function):
        def forward(self, table, tokens):
            self.shape, self.tokens = table.shape, np.asarray(tokens)
            return table[self.tokens]

        def backward(self, g):
            part = np.zeros(self.shape)
            np.add.at(part, self.tokens, g)
            return part, None

    def __init__(self, count, size, seed=None):
        # your code here: about 2 lines
        raise NotImplementedError

    def forward(self, tokens):
        # your code here: about 1 line
        raise NotImplementedError


@embedding.reference
class Embedding(Module):
    """A row of numbers for each of `count` tokens."""

    class Rows(Function):
        def forward(self, table, tokens):
            self.shape, self.tokens = table.shape, np.asarray(tokens)
            return table[self.tokens]

        def backward(self, g):
            part = np.zeros(self.shape)
            np.add.at(part, self.tokens, g)
            return part, None

    def __init__(self, count, size, seed=None):
        rows = np.random.default_rng(seed).normal(size=(count, size))
        self.weight = Tensor(rows, requires_grad=True)

    def forward(self, tokens):
        return Embedding.Rows.apply(self.weight, tokens)


embedding.changed(
    "keeps one gradient for each letter",
    """
    `part[tokens] += g` reads, adds and writes back once for each *different* index: of all
    gradients that meet in a row only the last stays. `np.add.at` adds them all.
    """,
    ("np.add.at(part, self.tokens, g)", "part[self.tokens] += g"),
)

embedding.changed(
    "the gradient is that of the places",
    """
    What came back has the shape of the result. The gradient of the table has the table's shape: a
    row for each letter.
    """,
    (
        (
            "            part = np.zeros(self.shape)\n"
            "            np.add.at(part, self.tokens, g)\n"
            "            return part, None"
        ),
        "            return g, None",
    ),
)

embedding.changed(
    "a mean over the places",
    """
    A letter that occurs often gets more gradient: its places add up, they are not averaged.
    """,
    (
        ("            np.add.at(part, self.tokens, g)\n            return part, None"),
        (
            "            np.add.at(part, self.tokens, g)\n"
            "            count = np.bincount(self.tokens.ravel(), minlength=len(part))\n"
            "            return part / np.maximum(count, 1)[:, None], None"
        ),
    ),
)

embedding.changed(
    "the table is not trained",
    """
    The rows are a parameter: a tensor that requires a gradient.
    """,
    ("self.weight = Tensor(rows, requires_grad=True)", "self.weight = Tensor(rows)"),
)

embedding.changed(
    "rows and columns are exchanged",
    """
    The table has a row for each letter, shape (count, size), and is indexed along its first
    dimension.
    """,
    ("normal(size=(count, size))", "normal(size=(size, count)).T"),
)


def _draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).round(3)


def _table(Embedding, count, size):
    layer = Embedding(count, size, seed=0)
    layer.weight.data = _draw(1, count, size)
    return layer


@embedding.check("rows")
def _(Embedding):
    def start():
        layer = Embedding(5, 3, seed=7)
        wanted = np.random.default_rng(7).normal(size=(5, 3))
        return len(layer.parameters()), bool(np.allclose(layer.weight.data, wanted))

    yield case("Embedding(5, 3, seed=7): how many parameters, and the right start?", start).gives(
        (1, True)
    )
    for tokens in ([1, 0, 4], [[0, 1], [2, 2]], 3):

        def rows(tokens=tokens):
            return _table(Embedding, 5, 3)(np.array(tokens)).data.tolist()

        yield case(f"the rows of {tokens}", rows).gives(_draw(1, 5, 3)[np.array(tokens)].tolist())


@embedding.check("their gradient")
def _(Embedding):
    def small():
        layer = _table(Embedding, 3, 2)
        layer(np.array([1, 1, 0])).backward(np.array([[1.0, 2.0], [10.0, 20.0], [5.0, 5.0]]))
        return layer.weight.grad.tolist()

    yield case("tokens [1, 1, 0]", small).gives([[5.0, 5.0], [11.0, 22.0], [0.0, 0.0]])

    def many(real):
        tokens = np.random.default_rng(2).integers(6, size=(4, 9))
        g = _draw(3, 4, 9, 2)
        if real:
            table = torch.tensor(_draw(1, 6, 2), requires_grad=True)
            torch.nn.functional.embedding(torch.tensor(tokens), table).backward(torch.tensor(g))
            return table.grad.tolist()
        layer = _table(Embedding, 6, 2)
        layer(tokens).backward(g)
        return layer.weight.grad.tolist()

    yield case("4 texts of 9 letters, 6 different ones", lambda: many(False)).gives(many(True))

    def twice():
        layer = _table(Embedding, 3, 2)
        (layer(np.array([0])) + layer(np.array([2]))).sum().backward()
        return layer.weight.grad.tolist()

    yield case("the same table used twice", twice).gives([[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])

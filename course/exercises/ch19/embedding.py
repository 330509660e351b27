"""An embedding: a row of numbers for each token."""

import numpy as np

import toytorch as torch
from course.cases import case
from course.properties import agrees
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
    A letter is given as an index, and a network needs vectors. An *embedding* is a table with a row
    of `size` numbers for each of `count` letters, and the rows are trained.

    * `Embedding(count, size)` has one parameter, `weight` of shape `(count, size)`, from a normal
      distribution: `np.random.default_rng(seed).normal(size=(count, size))`.
    * `forward(tokens)`, for an array of integers of any shape, gives `weight[tokens]`, of shape
      `(*tokens.shape, size)`. Write it as a `Function` inside the class, `Rows`.
      An index that the table does not have is an `IndexError`.
    * Its backward adds the gradient of each place to the row that was read there. A letter occurs
      many times in a text, so **many gradients meet in one row**. `array[tokens] += g` keeps only one
      of them; `np.add.at(array, tokens, g)` adds all. Tokens have no gradient: `None`.

    For tokens [1, 1, 0] and g = [[1, 2], [10, 20], [5, 5]]: row 1 gets [11, 22], row 0 gets [5, 5],
    every other row zeros.
    """,
    without=("torch.nn.functional.embedding", "torch.nn.Embedding"),
    hints=(
        """
        Going forward, one indexing with an array does it all: NumPy gives a row for each index, in the
        indices' shape. Going back is the same the other way round: for each place, the gradient that
        arrives there goes to the row that was read there. So `backward` needs the indices and the table's
        shape, and `forward` has to keep both.
        """,
        """
        A table with 3 rows of 2 elements, tokens [[0, 2], [2, 2]], and a gradient g of shape (2, 2, 2):

        | place | token | g there | the table's gradient so far |
        | --- | --- | --- | --- |
        | | | | [0, 0], [0, 0], [0, 0] |
        | (0, 0) | 0 | [1, 1] | [1, 1], [0, 0], [0, 0] |
        | (0, 1) | 2 | [2, 0] | [1, 1], [0, 0], [2, 0] |
        | (1, 0) | 2 | [0, 3] | [1, 1], [0, 0], [2, 3] |
        | (1, 1) | 2 | [5, 5] | [1, 1], [0, 0], [7, 8] |

        Row 2 was read three times and gets the sum of three gradients. Row 1 was not read. The result has
        the table's shape (3, 2), and the tokens have no gradient.
        """,
        """
        ```python
        class Embedding(Module):
            class Rows(Function):
                def forward(self, table, tokens):
                    self.shape, self.tokens = ...
                    return ...

                def backward(self, g):
                    part = np.zeros(...)
                    ...  # every place's gradient into its row
                    return part, None

            def __init__(self, count, size, seed=None):
                rows = np.random.default_rng(seed).normal(size=(count, size))
                self.weight = ...

            def forward(self, tokens):
                return Embedding.Rows.apply(...)
        ```
        """,
    ),
)


@embedding.reference(
    {
        "forward": "your code here: about 2 lines",
        "backward": "your code here: about 3 lines",
        "__init__": "your code here: about 2 lines",
    },
    (
        "(self, tokens):\n        # your code here: about 2 lines",
        "(self, tokens):\n        # your code here: about 1 line",
    ),
)
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
    The rows are a parameter: a tensor that requires a gradient. Without it, `parameters()` does not
    list them, and no optimizer moves them.
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

embedding.changed(
    "looks rows up outside of the graph",
    """
    `Tensor(self.weight.data[tokens])` is a new leaf: it does not know that it came from `weight`, and no
    gradient gets there. Go through a `Function`, which records.
    """,
    (
        "return Embedding.Rows.apply(self.weight, tokens)",
        "return Tensor(self.weight.data[tokens])",
    ),
)

embedding.changed(
    "one gradient for two inputs",
    """
    `backward` returns a gradient for each input of `forward`, in their order. The tokens are an input as
    well; they are indices and have none, so theirs is `None`.
    """,
    ("return part, None", "return part"),
)

embedding.changed(
    "two look-ups share their letters",
    """
    The tokens were kept by the class, so a second look-up overwrote those of the first. Each call of
    `apply` makes an object of its own: keep them in `self`.
    """,
    (
        "self.shape, self.tokens = table.shape, np.asarray(tokens)",
        "Embedding.Rows.shape, Embedding.Rows.tokens = table.shape, np.asarray(tokens)",
    ),
)

embedding.changed(
    "the second backward adds to the first",
    """
    The array of sums was made in `forward`, so a second `backward` through the same result goes on adding
    to what the first one left. Begin with zeros in `backward`.
    """,
    (
        "            return table[self.tokens]",
        "            self.part = np.zeros(self.shape)\n            return table[self.tokens]",
    ),
    ("            part = np.zeros(self.shape)\n", "            part = self.part\n"),
)

embedding.changed(
    "unknown letters become zeros",
    """
    A product with rows of zeros and a single 1 picks the right rows. For an index outside of the table
    there is no 1, and the result is zeros instead of an error. It also multiplies by a great many zeros.
    """,
    (
        "return Embedding.Rows.apply(self.weight, tokens)",
        (
            "every = np.arange(len(self.weight.data))\n"
            "        return Tensor(np.asarray(tokens)[..., None] == every) @ self.weight"
        ),
    ),
)


def _draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).round(3)


def _table(Embedding, count, size):
    layer = Embedding(count, size, seed=0)
    layer.weight.data = _draw(1, count, size)
    return layer


@embedding.check("rows")
def _(Embedding):
    yield case(
        "Embedding(5, 3, seed=7).weight", lambda: Embedding(5, 3, seed=7).weight.data.tolist()
    ).gives(np.random.default_rng(7).normal(size=(5, 3)).tolist())
    yield case(
        "how many parameters Embedding(5, 3) has", lambda: len(Embedding(5, 3).parameters())
    ).gives(1)
    for tokens in ([1, 0, 4], [[0, 1], [2, 2]], 3):

        def rows(tokens=tokens):
            return _table(Embedding, 5, 3)(np.array(tokens)).data.tolist()

        yield case(f"the rows of {tokens}", rows).gives(_draw(1, 5, 3)[np.array(tokens)].tolist())


    yield case(
        "the row of 5, in a table of 5 rows", lambda: _table(Embedding, 5, 3)(np.array([0, 5])).data
    ).raises(IndexError)


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

    def again():
        layer = _table(Embedding, 2, 2)
        y = layer(np.array([1, 1]))
        for _ in range(2):
            layer.weight.grad = None
            y.backward(np.ones((2, 2)))
        return layer.weight.grad.tolist()

    yield case("a second backward through the same rows", again).gives([[0.0, 0.0], [2.0, 2.0]])


@embedding.check("any letters", hidden=True)
def _(Embedding):
    def mine(tokens, count, size):
        layer = _table(Embedding, count, size)
        y = layer(np.array(tokens))
        y.backward(_draw(3, *y.data.shape))
        return y.data.tolist(), layer.weight.grad.tolist()

    def real(tokens, count, size):
        table = torch.tensor(_draw(1, count, size), requires_grad=True)
        y = torch.nn.functional.embedding(torch.tensor(tokens), table)
        y.backward(torch.tensor(_draw(3, *y.shape)))
        return y.tolist(), table.grad.tolist()

    def inputs(draw):
        count, shape = draw.randint(1, 4), draw.shape()
        tokens = draw.tensor(shape, torch.int64, low=0, high=count - 1).tolist()
        return tokens, count, draw.randint(1, 3)

    yield agrees(
        mine,
        real,
        inputs,
        count=20,
        tell=lambda tokens, count, size: f"tokens {tokens}, a table of {count} by {size}",
    )

"""A dataset that does not peek."""

import toytorch as torch
from course.cases import case
from course.properties import agrees
from course.records import Exercise

standardised = Exercise(
    "data.standardised",
    "A dataset that does not peek",
    chapter=9,
    minutes=12,
    prompt="""
    A penguin weighs 4000 g and its bill is 17 mm deep. In a network the first value would have some
    two hundred times as much influence as the second. So each column is *standardised*: subtract
    its mean, divide by its standard deviation.

    Write a dataset `Standardised(features, labels, like=None)`:

    * `len(data)` is the number of examples, and `data[i]` is the pair of row `i`, standardised, and
      label `i`.
    * Without `like`, mean and standard deviation are those of `features`, column by column
      (`.mean(0)`, `.std(0)`). Keep them as `self.mean` and `self.std`.
    * With `like`, another `Standardised`, use **its** mean and standard deviation. That is how the
      test data are treated like the training data.
    * A column in which all values are equal has the standard deviation 0. Divide it by 1.
    * The tensors you were given belong to somebody else. Do not change them.
    """,
    hints=(
        """
        Compute two rows of numbers once, when the dataset is made: the mean and the deviation of each
        column, from your own features or from the other dataset. `data[i]` then is one subtraction and one
        division. Nothing is ever written into `features`.
        """,
        """
        The features are [[1, 100], [2, 500], [3, 300]]:

        | | column 0 | column 1 |
        | --- | --- | --- |
        | mean | 2 | 300 |
        | deviation, `std(0)` | 1 | 200 |
        | row 0: (1 − 2) / 1 and (100 − 300) / 200 | −1 | −1 |
        | row 1 | 0 | 1 |

        Test data with the row [4, 700] and `like=train`: (4 − 2) / 1 = 2 and (700 − 300) / 200 = 2, whatever
        else is among the test data. In a column [7, 7, 7] the deviation is 0; divided by 1 instead, it
        gives 0 everywhere.
        """,
        """
        ```python
        class Standardised(torch.utils.data.Dataset):
            def __init__(self, features, labels, like=None):
                self.features, self.labels = features, labels
                std = features.std(0)
                self.mean = ...
                self.std = ...

            def __len__(self):
                return ...

            def __getitem__(self, i):
                row = ...
                return row, self.labels[i]
        ```
        """,
    ),
)


@standardised.reference(stub={
    "__init__": "your code here: about 5 lines, and two more methods",
    "__len__": "",
    "__getitem__": "",
})
class Standardised(torch.utils.data.Dataset):
    """Rows of numbers, each column with mean 0 and deviation 1."""

    def __init__(self, features, labels, like=None):
        self.features, self.labels = features, labels
        std = features.std(0)
        self.mean = features.mean(0) if like is None else like.mean
        self.std = std.where(std > 0, 1.0) if like is None else like.std

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        row = (self.features[i] - self.mean) / self.std
        return row, self.labels[i]


standardised.changed(
    "standardises every set by itself",
    """
    The test data were standardised with their *own* mean and deviation. Then the values of a
    penguin depend on the other penguins of its set, and 0.7 means something else than in training.
    A single new penguin could not be standardised at all. Take both statistics from the training
    data (`like`).
    """,
    (
        "        self.mean = features.mean(0) if like is None else like.mean\n"
        "        self.std = std.where(std > 0, 1.0) if like is None else like.std",
        "        self.mean, self.std = features.mean(0), std.where(std > 0, 1.0)",
    ),
)

standardised.changed(
    "one mean for the whole table",
    """
    `features.mean()` is a mean over grams and millimetres together. It means nothing, and the
    heaviest column still drowns the others. Each column has a mean of its own: `.mean(0)` goes down
    the rows and leaves one number per column.
    """,
    (
        "        std = features.std(0)\n"
        "        self.mean = features.mean(0) if like is None else like.mean\n"
        "        self.std = std.where(std > 0, 1.0) if like is None else like.std",
        "        self.mean = features.mean() if like is None else like.mean\n"
        "        self.std = features.std() if like is None else like.std",
    ),
)

standardised.changed(
    "divides by the variance",
    """
    The variance is the *square* of the deviation, in square grams. Divided by it, a column in
    grams shrinks to nothing and one in metres explodes. Divide by its root, `.std(0)`, and the unit
    cancels.
    """,
    ("std = features.std(0)", "std = features.var(0)"),
)

standardised.changed(
    "divides by nothing",
    """
    A column that is the same everywhere has the deviation 0, and 0 / 0 is `nan`. One such value is
    enough: it enters every sum of the network, and after one step all weights are `nan`. Divide by
    1 where the deviation is 0.
    """,
    ("        std = features.std(0)\n", ""),
    (
        "self.std = std.where(std > 0, 1.0) if like is None else like.std",
        "self.std = features.std(0) if like is None else like.std",
    ),
)


@standardised.mutant(
    "writes into the tensor it was given",
    why="""
    `features -= mean` changes the caller's table. Whoever makes a second dataset of it, or draws
    it, finds other values in it. Compute a new tensor, `features - mean`, and leave the original
    alone.
    """,
)
class Standardised(torch.utils.data.Dataset):
    def __init__(self, features, labels, like=None):
        std = features.std(0)
        self.mean = features.mean(0) if like is None else like.mean
        self.std = std.where(std > 0, 1.0) if like is None else like.std
        features -= self.mean
        features /= self.std
        self.features, self.labels = features, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.features[i], self.labels[i]


standardised.changed(
    "counts columns",
    """
    `len(data)` was the number of columns. It has to be the number of *examples*: samplers draw from
    `range(len(data))`, so with four columns only the first four penguins would be used, and no
    error would be raised.
    """,
    ("return len(self.labels)", "return self.features.shape[1]"),
)


def _table():
    return torch.tensor([[1.0, 100.0], [2.0, 500.0], [3.0, 300.0]]), torch.tensor([0, 1, 0])


@standardised.check("one example")
def _(f):
    text = "Standardised(features, labels)[0], features = [[1, 100], [2, 500], [3, 300]]"
    yield case(text, lambda: f(*_table())[0]).gives((torch.tensor([-1.0, -1.0]), torch.tensor(0)))


@standardised.check("as many as there are rows")
def _(f):
    yield case("len(Standardised(features, labels)), 3 rows", lambda: len(f(*_table()))).gives(3)


@standardised.check("like the training data")
def _(f):
    def treated():
        train = f(*_table())
        test = f(torch.tensor([[4.0, 300.0], [4.0, 700.0]]), torch.tensor([1, 0]), like=train)
        return test[1][0]

    text = "row [4, 700] of other data, like=train; train has means [2, 300], deviations [1, 200]"
    yield case(text, treated).gives(torch.tensor([2.0, 2.0]))


@standardised.check("a column that is always the same")
def _(f):
    def constant():
        return f(torch.tensor([[7.0, 1.0], [7.0, 3.0], [7.0, 5.0]]), torch.zeros(3))[2][0]

    yield case("features = [[7, 1], [7, 3], [7, 5]], row 2", constant).gives(
        torch.tensor([0.0, 1.0]))


@standardised.check("the given tensor stays as it was", hidden=True)
def _(f):
    def after():
        features, labels = _table()
        f(features, labels)[0]
        return features

    yield case("features, after use", after).gives(_table()[0])


standardised.changed(
    "a small number added to the deviation",
    """
    `std + 1e-6` avoids the division by 0, and changes every other column a little; one that varies
    by a thousandth is changed visibly. Replace the deviation only where it is 0.
    """,
    ("std.where(std > 0, 1.0)", "std + 1e-6"),
)

standardised.changed(
    "no deviation below 1",
    """
    Every deviation below 1 was raised to 1. A column in metres then stays small, and the network
    hardly sees it. Only a deviation of exactly 0 is replaced.
    """,
    ("std.where(std > 0, 1.0)", "std.clamp(min=1.0)"),
)

standardised.changed(
    "small deviations count as none",
    """
    A column that varies by less than a hundredth was not divided by its deviation. Whether values
    are small depends on the unit: the same lengths in kilometres have a thousandth of the
    deviation. Only a deviation of exactly 0 is replaced.
    """,
    ("std.where(std > 0, 1.0)", "std.where(std > 1e-2, 1.0)"),
)

standardised.changed(
    "always float32",
    """
    The row became float32. A table in float64 was perhaps meant to stay so; leave the dtype to
    whoever made it.
    """,
    ("return row, self.labels[i]", "return row.float(), self.labels[i]"),
)

standardised.changed(
    "the mean of the others, its own deviation",
    """
    With `like`, the mean came from the training data and the deviation from the test data. Both
    belong together, and both come from `like`.
    """,
    (" if like is None else like.std", ""),
)


def _any(draw):
    dtype, columns = draw.dtype("float32", "float64"), draw.randint(1, 3)
    scale = draw.choice([1.0, 0.001, 100.0])

    def table(rows):
        numbers = [[draw.number() * scale for _ in range(columns)] for _ in range(rows)]
        return torch.tensor(numbers, dtype=dtype)

    train = table(draw.randint(3, 5))
    if draw.random() < 0.4:
        train[:, 0] = 7.0
    return train, table(draw.randint(2, 3))


@standardised.check("a column that varies little")
def _(f):
    def row():
        return f(torch.tensor([[1.0], [1.5], [2.0]]), torch.zeros(3))[2][0]

    yield case("features = [[1], [1.5], [2]], row 2", row).gives(torch.tensor([1.0]))


@standardised.check("any table, and one like it")
def _(f):
    def rows(kind):
        def run(features, others):
            train = kind(features, torch.arange(len(features)))
            test = kind(others, torch.arange(len(others)), like=train)
            return [list(map(tuple, map(train.__getitem__, range(len(train))))),
                    list(map(tuple, map(test.__getitem__, range(len(test)))))]

        return run

    def tell(features, others):
        said = [[[round(v, 4) for v in row] for row in t.tolist()] for t in (features, others)]
        return f"features {said[0]} ({features.dtype}), and others, like it: {said[1]}"

    yield agrees(rows(f), rows(standardised.answer.value), _any, tolerance=1e-4, tell=tell)

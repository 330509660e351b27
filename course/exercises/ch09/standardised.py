"""A dataset that does not peek."""

import toytorch as torch
from course.cases import case
from course.records import Exercise

standardised = Exercise(
    "data.standardised",
    "A dataset that does not peek",
    chapter=9,
    minutes=12,
    prompt="""
    A penguin weighs 4000 and its bill is 17 deep. For a network these are just numbers, and the
    large ones drown the others. The cure is to standardise each column: subtract its mean, divide
    by its standard deviation.

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
)


@standardised.stub
class Standardised(torch.utils.data.Dataset):
    """Rows of numbers, each column with mean 0 and deviation 1."""

    def __init__(self, features, labels, like=None):
        # your code here: about 5 lines, and two more methods
        raise NotImplementedError


@standardised.reference
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


@standardised.mutant(
    "standardises every set by itself",
    why="""
    The test data were standardised with their *own* mean. So the same penguin becomes other numbers
    in another company, and what the network learned about 0.7 no longer holds. It also peeks: in
    the end you want to judge a single penguin, and one row has no deviation at all. Statistics are
    taken from the training data and travel with them (`like`).
    """,
)
class Standardised(torch.utils.data.Dataset):
    def __init__(self, features, labels, like=None):
        self.features, self.labels = features, labels
        std = features.std(0)
        self.mean, self.std = features.mean(0), std.where(std > 0, 1.0)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return (self.features[i] - self.mean) / self.std, self.labels[i]


@standardised.mutant(
    "one mean for the whole table",
    why="""
    `features.mean()` is a mean over grams and millimetres together. It means nothing, and the
    heaviest column still drowns the others. Each column has a mean of its own: `.mean(0)` goes down
    the rows and leaves one number per column.
    """,
)
class Standardised(torch.utils.data.Dataset):
    def __init__(self, features, labels, like=None):
        self.features, self.labels = features, labels
        self.mean = features.mean() if like is None else like.mean
        self.std = features.std() if like is None else like.std

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return (self.features[i] - self.mean) / self.std, self.labels[i]


@standardised.mutant(
    "divides by the variance",
    why="""
    The variance is the *square* of the deviation, in square grams. Divided by it, a column in
    grams shrinks to nothing and one in metres explodes. Divide by its root, `.std(0)`, and the unit
    cancels.
    """,
)
class Standardised(torch.utils.data.Dataset):
    def __init__(self, features, labels, like=None):
        self.features, self.labels = features, labels
        std = features.var(0)
        self.mean = features.mean(0) if like is None else like.mean
        self.std = std.where(std > 0, 1.0) if like is None else like.std

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return (self.features[i] - self.mean) / self.std, self.labels[i]


@standardised.mutant(
    "divides by nothing",
    why="""
    A column that is the same everywhere has the deviation 0, and 0 / 0 is `nan`. One such number is
    enough: it spreads through every sum of the network, and after one step all weights are `nan`.
    Divide by 1 where the deviation is 0.
    """,
)
class Standardised(torch.utils.data.Dataset):
    def __init__(self, features, labels, like=None):
        self.features, self.labels = features, labels
        self.mean = features.mean(0) if like is None else like.mean
        self.std = features.std(0) if like is None else like.std

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return (self.features[i] - self.mean) / self.std, self.labels[i]


@standardised.mutant(
    "writes into the tensor it was given",
    why="""
    `features -= mean` changes the caller's table. Whoever makes a second dataset of it, or draws
    it, finds other numbers than they put in. A dataset reads: compute what is new, `features -
    mean`, and leave the original alone.
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


@standardised.mutant(
    "counts columns",
    why="""
    `len(data)` was the number of columns. It has to be the number of *examples*: samplers draw from
    `range(len(data))`, so with four columns nobody would ever see more than four penguins, and
    nothing would raise.
    """,
)
class Standardised(torch.utils.data.Dataset):
    def __init__(self, features, labels, like=None):
        self.features, self.labels = features, labels
        std = features.std(0)
        self.mean = features.mean(0) if like is None else like.mean
        self.std = std.where(std > 0, 1.0) if like is None else like.std

    def __len__(self):
        return self.features.shape[1]

    def __getitem__(self, i):
        return (self.features[i] - self.mean) / self.std, self.labels[i]


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

"""Chapter 09, Data: a dataset, a sampler, batches, collate, fetching in order, shared streams."""

import itertools
from types import SimpleNamespace

import toytorch as torch
from course.cases import call, case
from course.records import Exercise
from toytorch.viz.lessons.loader_steps import Clocked, run

# -- a dataset that does not leak -----------------------------------------------------------------

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


# -- a sampler ------------------------------------------------------------------------------------

shuffled = Exercise(
    "data.shuffled",
    "A sampler: every example once, in random order",
    chapter=9,
    minutes=10,
    prompt="""
    A sampler says **which** example comes next. It never sees the data, only how many there are.

    Write `Shuffled(count, generator=None)`, with `iter(sampler)` and `len(sampler)`:

    * An epoch has the numbers `0` to `count - 1`, each once, in random order.
    * Each `iter(sampler)` begins a new epoch, with a **new** order.
    * The randomness comes from `generator`, or where it is `None` from the default one; that is
      what `torch.randperm(n, generator=generator)` does anyway.
    * Yield Python ints (`.tolist()`): a list or a dictionary wants those, not tensors.
    """,
)


@shuffled.stub
class Shuffled(torch.utils.data.Sampler):
    """The numbers below count, in a new random order each epoch."""

    def __init__(self, count, generator=None):
        # your code here: one line, and two more methods
        raise NotImplementedError


@shuffled.reference
class Shuffled(torch.utils.data.Sampler):
    """The numbers below count, in a new random order each epoch."""

    def __init__(self, count, generator=None):
        self.count, self.generator = count, generator

    def __iter__(self):
        order = torch.randperm(self.count, generator=self.generator)
        return iter(order.tolist())

    def __len__(self):
        return self.count


@shuffled.mutant(
    "draws with replacement",
    why="""
    Every draw was made from all numbers anew, so some examples come twice and others not at all: in
    an epoch of n draws about 37 % are never seen. (That is a way to sample, too, and has uses. An
    epoch that shows everything once is a *permutation*.)
    """,
)
class Shuffled(torch.utils.data.Sampler):
    def __init__(self, count, generator=None):
        self.count, self.generator = count, generator

    def __iter__(self):
        drawn = torch.randint(self.count, (self.count,), generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self):
        return self.count


@shuffled.mutant(
    "the same order in every epoch",
    why="""
    The order was drawn once, when the sampler was made. Then each batch has the same company in
    every epoch. Draw in `__iter__`: that is what runs when an epoch begins.
    """,
)
class Shuffled(torch.utils.data.Sampler):
    def __init__(self, count, generator=None):
        self.order = torch.randperm(count, generator=generator).tolist()

    def __iter__(self):
        return iter(self.order)

    def __len__(self):
        return len(self.order)


@shuffled.mutant(
    "has one epoch and then nothing",
    why="""
    `iter(sampler)` gave the same iterator again, and an iterator that has come to its end stays
    there. The second epoch is empty, the loop runs over nothing, and nobody complains: the loss
    just stands still. `__iter__` has to make a **new** iterator each time.
    """,
)
class Shuffled(torch.utils.data.Sampler):
    def __init__(self, count, generator=None):
        self.count = count
        self.order = iter(torch.randperm(count, generator=generator).tolist())

    def __iter__(self):
        return self.order

    def __len__(self):
        return self.count


@shuffled.mutant(
    "forgets its generator",
    why="""
    The order was drawn from the default generator, whatever generator was given. Then the order
    changes as soon as anybody else draws a random number, a dropout for example, and two runs with
    the same generator see different batches. Hand it on: `generator=self.generator`.
    """,
)
class Shuffled(torch.utils.data.Sampler):
    def __init__(self, count, generator=None):
        self.count, self.generator = count, generator

    def __iter__(self):
        return iter(torch.randperm(self.count).tolist())

    def __len__(self):
        return self.count


@shuffled.mutant(
    "yields tensors",
    why="""
    Going through a tensor gives tensors of one number each. They index other tensors well, and a
    plain list by luck. But two tensors with the same number are not the same key of a dictionary,
    and sets of them count wrong. `.tolist()` gives plain ints, and it is faster.
    """,
)
class Shuffled(torch.utils.data.Sampler):
    def __init__(self, count, generator=None):
        self.count, self.generator = count, generator

    def __iter__(self):
        return iter(torch.randperm(self.count, generator=self.generator))

    def __len__(self):
        return self.count


def _generator(seed):
    return torch.Generator().manual_seed(seed)


@shuffled.check("each number once")
def _(f):
    yield case("sorted(Shuffled(8)), generator seeded with 0",
               lambda: sorted(f(8, _generator(0)))).gives(list(range(8)))
    yield case("set(Shuffled(8))", lambda: len(set(f(8, _generator(0))))).gives(8)
    yield case("len(Shuffled(8))", lambda: len(f(8, _generator(0)))).gives(8)


@shuffled.check("not in their old order")
def _(f):
    given = case("list(Shuffled(50))", lambda: list(f(50, _generator(0))))
    yield given.holds("another order than 0, 1, 2, …", lambda got: got != list(range(50)))


@shuffled.check("a second epoch")
def _(f):
    def second():
        sampler = f(6, _generator(0))
        first = list(sampler)
        again = list(sampler)
        return sorted(again), first != again

    yield case("(the second epoch, sorted; is it another order than the first?)", second).gives(
        (list(range(6)), True))


@shuffled.check("from the generator", hidden=True)
def _(f):
    def twice():
        torch.manual_seed(1)
        first = list(f(20, _generator(5)))
        torch.manual_seed(2)
        return first == list(f(20, _generator(5)))

    yield case("two samplers with generators of the same seed: the same order?", twice).gives(True)


# -- batches --------------------------------------------------------------------------------------

batches = Exercise(
    "data.batches",
    "Batches, and the last one",
    chapter=9,
    minutes=8,
    prompt="""
    `Batches(sampler, size, drop_last=False)` gathers what a sampler yields into lists of `size`
    numbers:

    * `list(Batches(range(5), 2))` is `[[0, 1], [2, 3], [4]]`. The last batch is shorter where the
      numbers do not come out even, and with `drop_last=True` it is left out.
    * `len(batches)` is how many lists there are.
    * Each batch is a list of its own. Somebody may keep it.
    """,
)


@batches.stub
class Batches(torch.utils.data.Sampler):
    """Lists of size numbers from a sampler."""

    def __init__(self, sampler, size, drop_last=False):
        # your code here: one line, and two more methods
        raise NotImplementedError


@batches.reference
class Batches(torch.utils.data.Sampler):
    """Lists of size numbers from a sampler."""

    def __init__(self, sampler, size, drop_last=False):
        self.sampler, self.size, self.drop_last = sampler, size, drop_last

    def __iter__(self):
        batch = []
        for number in self.sampler:
            batch.append(number)
            if len(batch) == self.size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        whole, rest = divmod(len(self.sampler), self.size)
        return whole + (rest > 0 and not self.drop_last)


@batches.mutant(
    "the last batch is lost",
    why="""
    Only full batches were yielded. What was gathered when the numbers ran out is still a batch, a
    short one, and whoever trains on few examples misses it: with 100 examples in batches of 64,
    more than a third is never seen. Yield the rest after the loop, unless `drop_last` says so.
    """,
)
class Batches(torch.utils.data.Sampler):
    def __init__(self, sampler, size, drop_last=False):
        self.sampler, self.size, self.drop_last = sampler, size, drop_last

    def __iter__(self):
        batch = []
        for number in self.sampler:
            batch.append(number)
            if len(batch) == self.size:
                yield batch
                batch = []

    def __len__(self):
        return len(self.sampler) // self.size


@batches.mutant(
    "drop_last is not asked",
    why="""
    The short batch was yielded although `drop_last` is true. Some things need full batches: batch
    normalisation cannot normalise a batch of one, and some compiled kernels know one size only.
    """,
)
class Batches(torch.utils.data.Sampler):
    def __init__(self, sampler, size, drop_last=False):
        self.sampler, self.size, self.drop_last = sampler, size, drop_last

    def __iter__(self):
        batch = []
        for number in self.sampler:
            batch.append(number)
            if len(batch) == self.size:
                yield batch
                batch = []
        if batch:
            yield batch

    def __len__(self):
        return -(-len(self.sampler) // self.size)


@batches.mutant(
    "an empty batch at the end",
    why="""
    When the numbers come out even, nothing is left at the end, and that nothing was yielded as a
    batch. Collating it fails, or worse, gives a mean over no examples, which is `nan`. Ask `if
    batch` first.
    """,
)
class Batches(torch.utils.data.Sampler):
    def __init__(self, sampler, size, drop_last=False):
        self.sampler, self.size, self.drop_last = sampler, size, drop_last

    def __iter__(self):
        batch = []
        for number in self.sampler:
            batch.append(number)
            if len(batch) == self.size:
                yield batch
                batch = []
        if not self.drop_last:
            yield batch

    def __len__(self):
        whole, rest = divmod(len(self.sampler), self.size)
        return whole + (rest > 0 and not self.drop_last)


@batches.mutant(
    "one list for all batches",
    why="""
    The list was emptied and filled again, so every batch that was handed out is the *same* list,
    and in the end all of them show the last numbers. A loader that looks ahead holds several
    batches at once. Begin a new list, `batch = []`, instead of `batch.clear()`.
    """,
)
class Batches(torch.utils.data.Sampler):
    def __init__(self, sampler, size, drop_last=False):
        self.sampler, self.size, self.drop_last = sampler, size, drop_last

    def __iter__(self):
        batch = []
        for number in self.sampler:
            batch.append(number)
            if len(batch) == self.size:
                yield batch
                batch.clear()
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        whole, rest = divmod(len(self.sampler), self.size)
        return whole + (rest > 0 and not self.drop_last)


@batches.mutant(
    "counts only full batches",
    why="""
    The batches are right, and `len` rounds down although the short one is yielded. A learning rate
    schedule that asks `len(loader)` how many steps an epoch has then runs out before the last epoch
    does. Round down only with `drop_last`.
    """,
)
class Batches(torch.utils.data.Sampler):
    def __init__(self, sampler, size, drop_last=False):
        self.sampler, self.size, self.drop_last = sampler, size, drop_last

    def __iter__(self):
        batch = []
        for number in self.sampler:
            batch.append(number)
            if len(batch) == self.size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        return len(self.sampler) // self.size


def _batched(f, count, size, **options):
    words = "".join(f", {key}={value}" for key, value in options.items())
    return case(f"list(Batches(range({count}), {size}{words}))",
                lambda: [list(batch) for batch in f(range(count), size, **options)])


@batches.check("numbers that come out even")
def _(f):
    yield _batched(f, 4, 2).gives([[0, 1], [2, 3]])
    yield case("len(Batches(range(4), 2))", lambda: len(f(range(4), 2))).gives(2)


@batches.check("a short batch at the end")
def _(f):
    yield _batched(f, 5, 2).gives([[0, 1], [2, 3], [4]])
    yield case("len(Batches(range(5), 2))", lambda: len(f(range(5), 2))).gives(3)
    yield _batched(f, 2, 10).gives([[0, 1]])


@batches.check("drop_last")
def _(f):
    yield _batched(f, 5, 2, drop_last=True).gives([[0, 1], [2, 3]])
    yield _batched(f, 4, 2, drop_last=True).gives([[0, 1], [2, 3]])
    yield case("len(Batches(range(5), 2, drop_last=True))",
               lambda: len(f(range(5), 2, drop_last=True))).gives(2)


@batches.check("batches that are kept", hidden=True)
def _(f):
    yield case("kept = list(Batches(range(6), 2)); kept",
               lambda: list(f(range(6), 2))).gives([[0, 1], [2, 3], [4, 5]])


# -- collate --------------------------------------------------------------------------------------

collate = Exercise(
    "data.collate",
    "From a list of examples to a batch",
    chapter=9,
    minutes=15,
    prompt="""
    A dataset gives examples one by one, and a network wants them stacked. `collate_batch(batch)`
    turns a list of examples (all built alike) into one batch:

    | each example is | the batch is |
    | --- | --- |
    | a dictionary | a dictionary with the same keys, each value collated |
    | a tuple or a list | a list: all first entries collated, all second entries collated, … |
    | a string | the list of strings |
    | a number | one tensor, `torch.tensor(list(batch))` |
    | a tensor | the tensors stacked along a new first dimension |

    Examples may be nested, so the function calls itself. One thing more, which PyTorch leaves to
    you: tensors of **different length** are padded at their end with zeros up to the longest, so
    that they can be stacked. `first.new_zeros(*sizes)` makes zeros of the same dtype.
    """,
)


@collate.stub
def collate_batch(batch):
    """One batch from a list of examples that are built alike."""
    # your code here: about 14 lines
    raise NotImplementedError


@collate.reference
def collate_batch(batch):
    """One batch from a list of examples that are built alike."""
    first = batch[0]
    if isinstance(first, dict):
        return {key: collate_batch([one[key] for one in batch])
                for key in first}
    if isinstance(first, (tuple, list)):
        return [collate_batch(column) for column in zip(*batch)]
    if isinstance(first, str):
        return list(batch)
    if not isinstance(first, torch.Tensor):
        return torch.tensor(list(batch))
    if all(one.shape == first.shape for one in batch):
        return torch.stack(list(batch))
    longest = max(len(one) for one in batch)
    padded = first.new_zeros(len(batch), longest, *first.shape[1:])
    for row, one in zip(padded, batch):
        row[: len(one)] = one
    return padded


@collate.mutant(
    "keeps examples together instead of columns",
    why="""
    Each example was collated by itself, so you get as many parts as there are examples. Turn the
    table: all first entries belong together, all second entries belong together. `zip(*batch)` does
    just that.
    """,
)
def collate_batch(batch):
    first = batch[0]
    if isinstance(first, dict):
        return {key: collate_batch([one[key] for one in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        return [list(one) for one in batch]
    if isinstance(first, str):
        return list(batch)
    if not isinstance(first, torch.Tensor):
        return torch.tensor(list(batch))
    if all(one.shape == first.shape for one in batch):
        return torch.stack(list(batch))
    longest = max(len(one) for one in batch)
    padded = first.new_zeros(len(batch), longest, *first.shape[1:])
    for row, one in zip(padded, batch):
        row[: len(one)] = one
    return padded


@collate.mutant(
    "glues instead of stacking",
    why="""
    `torch.cat` lays tensors end to end along a dimension they already have: two rows of three give
    six numbers, and nobody can tell where an example ends. `torch.stack` makes a **new** first
    dimension, one place per example.
    """,
)
def collate_batch(batch):
    first = batch[0]
    if isinstance(first, dict):
        return {key: collate_batch([one[key] for one in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        return [collate_batch(column) for column in zip(*batch)]
    if isinstance(first, str):
        return list(batch)
    if not isinstance(first, torch.Tensor):
        return torch.tensor(list(batch))
    return torch.cat(list(batch))


@collate.mutant(
    "cuts to the shortest",
    why="""
    The longer tensors were cut to the length of the shortest: then they stack, and what was cut off
    is lost. A single short sentence would shorten every other one in its batch. Pad the short ones.
    """,
)
def collate_batch(batch):
    first = batch[0]
    if isinstance(first, dict):
        return {key: collate_batch([one[key] for one in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        return [collate_batch(column) for column in zip(*batch)]
    if isinstance(first, str):
        return list(batch)
    if not isinstance(first, torch.Tensor):
        return torch.tensor(list(batch))
    if all(one.shape == first.shape for one in batch):
        return torch.stack(list(batch))
    shortest = min(len(one) for one in batch)
    return torch.stack([one[:shortest] for one in batch])


@collate.mutant(
    "pads in front",
    why="""
    The zeros stand before the numbers. Some do that on purpose, but here position 0 should be each
    example's *first* number, so that the same position means the same thing in every row. Write to
    `row[: len(one)]`.
    """,
)
def collate_batch(batch):
    first = batch[0]
    if isinstance(first, dict):
        return {key: collate_batch([one[key] for one in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        return [collate_batch(column) for column in zip(*batch)]
    if isinstance(first, str):
        return list(batch)
    if not isinstance(first, torch.Tensor):
        return torch.tensor(list(batch))
    if all(one.shape == first.shape for one in batch):
        return torch.stack(list(batch))
    longest = max(len(one) for one in batch)
    padded = first.new_zeros(len(batch), longest, *first.shape[1:])
    for row, one in zip(padded, batch):
        row[longest - len(one):] = one
    return padded


@collate.mutant(
    "the padding changes the dtype",
    why="""
    `torch.zeros` makes float32, so padded words became 3.0 instead of 3, and an embedding refuses
    floats. What you pad with must be of the tensor's own kind: `first.new_zeros(...)`, or
    `dtype=first.dtype`.
    """,
)
def collate_batch(batch):
    first = batch[0]
    if isinstance(first, dict):
        return {key: collate_batch([one[key] for one in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        return [collate_batch(column) for column in zip(*batch)]
    if isinstance(first, str):
        return list(batch)
    if not isinstance(first, torch.Tensor):
        return torch.tensor(list(batch))
    if all(one.shape == first.shape for one in batch):
        return torch.stack(list(batch))
    longest = max(len(one) for one in batch)
    padded = torch.zeros(len(batch), longest, *first.shape[1:])
    for row, one in zip(padded, batch):
        row[: len(one)] = one
    return padded


@collate.mutant(
    "does not look inside",
    why="""
    The values of the dictionary were gathered into lists and left so. They are examples themselves,
    and the same rules hold for them: collate each list in turn, by calling the function again.
    """,
)
def collate_batch(batch):
    first = batch[0]
    if isinstance(first, dict):
        return {key: [one[key] for one in batch] for key in first}
    if isinstance(first, (tuple, list)):
        return [collate_batch(column) for column in zip(*batch)]
    if isinstance(first, str):
        return list(batch)
    if not isinstance(first, torch.Tensor):
        return torch.tensor(list(batch))
    if all(one.shape == first.shape for one in batch):
        return torch.stack(list(batch))
    longest = max(len(one) for one in batch)
    padded = first.new_zeros(len(batch), longest, *first.shape[1:])
    for row, one in zip(padded, batch):
        row[: len(one)] = one
    return padded


@collate.check("tensors of one shape")
def _(f):
    yield call(f, [torch.tensor([1, 2]), torch.tensor([3, 4])]).gives(
        torch.tensor([[1, 2], [3, 4]]))


@collate.check("numbers and strings")
def _(f):
    yield call(f, [1, 2, 3]).gives(torch.tensor([1, 2, 3]))
    yield call(f, ["a", "b"]).gives(["a", "b"])


@collate.check("tuples")
def _(f):
    examples = [(torch.tensor([1.0, 2.0]), 0), (torch.tensor([3.0, 4.0]), 1),
                (torch.tensor([5.0, 6.0]), 0)]
    yield call(f, examples).gives(
        [torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), torch.tensor([0, 1, 0])])


@collate.check("dictionaries, nested")
def _(f):
    examples = [{"name": "a", "place": (1, 2.0)}, {"name": "b", "place": (3, 4.0)}]
    yield call(f, examples).gives(
        {"name": ["a", "b"], "place": [torch.tensor([1, 3]), torch.tensor([2.0, 4.0])]})


@collate.check("different lengths", hidden=True)
def _(f):
    yield call(f, [torch.tensor([1, 2, 3]), torch.tensor([4])]).gives(
        torch.tensor([[1, 2, 3], [4, 0, 0]]))
    yield call(f, [torch.ones(1, 2), torch.ones(2, 2)]).gives(
        torch.tensor([[[1.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]]))


# -- fetching ahead -------------------------------------------------------------------------------

ordered = Exercise(
    "data.in_order",
    "Fetch ahead, and keep the order",
    chapter=9,
    minutes=20,
    prompt="""
    Workers fetch batches while your loop computes, and finish when they finish. Your loop wants
    them **in the order of the indices**. Write the generator `in_order(pool, indices, ahead)`:

    | tool | what it does |
    | --- | --- |
    | `len(pool)` | how many workers there are, numbered from 0 |
    | `pool.ask(worker, order, index)` | has a worker fetch the batch of `index`; returns at once |
    | `pool.hear()` | waits for any worker and gives `(worker, order, batch)` |
    | `indices` | an iterator over what to ask for, perhaps a long one |

    `order` is the batch's running number, 0, 1, 2, …

    1. Ask every worker in turn, `ahead` times around: each then has `ahead` jobs.
    2. Listen. What comes too early waits in a dictionary.
    3. When the next batch in order is there, ask **its** worker for one more, then yield it. So
       at most `ahead` batches per worker are ever under way or waiting.
    4. Stop when everything that was asked for has been yielded.
    """,
)


@ordered.stub
def in_order(pool, indices, ahead):
    """Yield the batches of indices in order; workers fetch ahead."""
    # your code here: about 18 lines
    raise NotImplementedError


@ordered.reference
def in_order(pool, indices, ahead):
    """Yield the batches of indices in order; workers fetch ahead."""
    jobs, asked, given, arrived = enumerate(indices), 0, 0, {}

    def ask(worker):
        nonlocal asked
        job = next(jobs, None)
        if job is not None:
            pool.ask(worker, *job)
            asked += 1

    for _ in range(ahead):
        for worker in range(len(pool)):
            ask(worker)
    while given < asked:
        while given not in arrived:
            worker, order, batch = pool.hear()
            arrived[order] = worker, batch
        worker, batch = arrived.pop(given)
        given += 1
        ask(worker)
        yield batch


@ordered.mutant(
    "hands over what comes first",
    why="""
    Batches were yielded as they arrived. The order then depends on which worker happens to be
    quick, so a run with the same seed is not the same run. What comes too early has to wait: keep
    it under its number, and yield number 0, then 1, and so on. (PyTorch offers your way as
    `in_order=False`.)
    """,
)
def in_order(pool, indices, ahead):
    jobs, asked, given = enumerate(indices), 0, 0

    def ask(worker):
        nonlocal asked
        job = next(jobs, None)
        if job is not None:
            pool.ask(worker, *job)
            asked += 1

    for _ in range(ahead):
        for worker in range(len(pool)):
            ask(worker)
    while given < asked:
        worker, _, batch = pool.hear()
        given += 1
        ask(worker)
        yield batch


@ordered.mutant(
    "asks for everything at once",
    why="""
    All jobs were handed out at the beginning. The batches come in the right order, but workers do
    not stop when your loop falls behind: in the end the whole data set lies in memory. Ask for one
    more only when one has been used, so that never more than `ahead` per worker exist.
    """,
)
def in_order(pool, indices, ahead):
    asked, arrived = 0, {}
    for order, index in enumerate(indices):
        pool.ask(order % len(pool), order, index)
        asked += 1
    for given in range(asked):
        while given not in arrived:
            _, order, batch = pool.hear()
            arrived[order] = batch
        yield arrived.pop(given)


@ordered.mutant(
    "asks again as soon as a batch arrives",
    why="""
    A worker got its next job when its batch *arrived*, not when the batch was used. As long as the
    oldest batch is late, the other workers go on and on, and everything they fetch waits in memory.
    Ask for more when a batch is handed over.
    """,
)
def in_order(pool, indices, ahead):
    jobs, asked, given, arrived = enumerate(indices), 0, 0, {}

    def ask(worker):
        nonlocal asked
        job = next(jobs, None)
        if job is not None:
            pool.ask(worker, *job)
            asked += 1

    for _ in range(ahead):
        for worker in range(len(pool)):
            ask(worker)
    while given < asked:
        while given not in arrived:
            worker, order, batch = pool.hear()
            arrived[order] = batch
            ask(worker)
        batch = arrived.pop(given)
        given += 1
        yield batch


@ordered.mutant(
    "asks for one, waits for it, asks for the next",
    why="""
    Only one batch was ever under way, so while your loop computes nobody fetches, and while a
    worker fetches the others sit idle. Everything is right and nothing is gained. Hand out `ahead`
    jobs per worker **before** you listen for the first time.
    """,
)
def in_order(pool, indices, ahead):
    for order, index in enumerate(indices):
        pool.ask(order % len(pool), order, index)
        yield pool.hear()[2]


@ordered.mutant(
    "loses what was under way at the end",
    why="""
    The generator ended with the indices. At that moment several batches have been asked for and not
    yet been handed over, and they are lost, at the end of every epoch. Go on until everything that
    was *asked* for has been *yielded*.
    """,
)
def in_order(pool, indices, ahead):
    jobs, arrived = enumerate(indices), {}
    for _ in range(ahead):
        for worker in range(len(pool)):
            job = next(jobs, None)
            if job is not None:
                pool.ask(worker, *job)
    for given, job in enumerate(jobs):
        while given not in arrived:
            worker, order, batch = pool.hear()
            arrived[order] = worker, batch
        worker, batch = arrived.pop(given)
        pool.ask(worker, *job)
        yield batch


@ordered.mutant(
    "waits for the whole round",
    why="""
    A round of jobs was handed out, all of it awaited and used, and only then the next round handed
    out. So at the end of each round every worker stands idle, and at its beginning your loop does.
    Ask for one more each time one is handed over, and the stream never stops.
    """,
)
def in_order(pool, indices, ahead):
    jobs, more = enumerate(indices), True
    while more:
        arrived, asked = {}, 0
        for _ in range(ahead):
            for worker in range(len(pool)):
                job = next(jobs, None)
                if job is not None:
                    pool.ask(worker, *job)
                    asked += 1
        while len(arrived) < asked:
            _, order, batch = pool.hear()
            arrived[order] = batch
        for order in sorted(arrived):
            yield arrived[order]
        more = asked > 0


def _fetched(f, times, workers, ahead):
    words = f"batches that take {times} to fetch, {workers} workers, ahead={ahead}"
    return case(words, lambda: list(f(Clocked(times, workers), iter(range(len(times))),
                                      ahead)))


@ordered.check("in order")
def _(f):
    yield _fetched(f, [1, 1, 1, 1], 2, 2).gives([0, 1, 2, 3])
    yield _fetched(f, [5, 1, 1, 3, 1, 1], 2, 2).gives([0, 1, 2, 3, 4, 5])


@ordered.check("all of them")
def _(f):
    yield _fetched(f, [2, 1, 2, 1, 2, 1, 2], 3, 1).gives(list(range(7)))
    yield _fetched(f, [1, 1], 4, 2).gives([0, 1])
    yield _fetched(f, [], 2, 2).gives([])


@ordered.check("no more than ahead for each worker")
def _(f):
    def most():
        pool = Clocked([9] + [1] * 19, 2)
        found = f(pool, iter(range(20)), 2)
        return max(len(pool.jobs) - given for given, _ in enumerate(found, 1))

    text = "batches asked for and not yet used, at most: 20 batches, the first is slow, 2 workers"
    yield case(text + ", ahead=2", most).holds("4 or fewer", lambda got: got <= 4)


@ordered.check("workers work while your loop does", hidden=True)
def _(f):
    def end():
        return run([2] * 12, 2, 2, 1.0, True, f).now

    text = "time for 12 batches that take 2 to fetch and 1 to use, 2 workers, ahead=2"
    yield case(text, end).holds("14 or less", lambda got: got <= 14)


# -- a stream that is shared out ------------------------------------------------------------------

shared = Exercise(
    "data.share",
    "A stream, shared among workers",
    chapter=9,
    minutes=8,
    prompt="""
    A stream has no numbers to hand out. Every worker has a copy of the *whole* dataset and goes
    through all of it. So each has to leave out what is not its own.

    Write the generator `share(stream, info)`. `info` is what `get_worker_info()` gives inside a
    worker: it has `info.id` and `info.num_workers`, and it is `None` where there are no workers.

    * Of `n` workers, number 0 yields the first example, the `n+1`-st, …; number 1 the second, and
      so on, like dealing cards.
    * Without workers everything is yielded.
    * The stream may be endless. Take from it only as you go.
    """,
)


@shared.stub
def share(stream, info):
    """What one worker yields of a stream that every worker sees."""
    # your code here: about 6 lines
    raise NotImplementedError


@shared.reference
def share(stream, info):
    """What one worker yields of a stream that every worker sees."""
    first, step = (0, 1) if info is None else (info.id, info.num_workers)
    for number, example in enumerate(stream):
        if number % step == first:
            yield example


@shared.mutant(
    "every worker yields everything",
    why="""
    Nothing was left out, so with four workers each example comes four times in an epoch. Nothing
    raises; the epochs are just longer, and your count of them is wrong by a factor of four.
    """,
)
def share(stream, info):
    yield from stream


@shared.mutant(
    "forgets that there may be no workers",
    why="""
    With `num_workers=0` nobody is a worker, and `get_worker_info()` gives `None`, which has no
    `id`. Many people meet this when they switch the workers off to debug something else.
    """,
)
def share(stream, info):
    for number, example in enumerate(stream):
        if number % info.num_workers == info.id:
            yield example


@shared.mutant(
    "cuts into blocks and loses the rest",
    why="""
    The stream was cut into as many equal blocks as there are workers. What does not come out even
    at the end belongs to nobody. (Its length has to be known for that, too, which a stream's is
    not.) Deal the examples out like cards.
    """,
)
def share(stream, info):
    n, i = (1, 0) if info is None else (info.num_workers, info.id)
    everything = list(itertools.islice(stream, 1000))
    size = len(everything) // n
    yield from everything[i * size:(i + 1) * size]


@shared.mutant(
    "reads the whole stream first",
    why="""
    `list(stream)` reads to the end before the first example is yielded. An endless stream has no
    end, and a long one does not fit into memory. That was the reason to make it a stream. Go
    through it with `enumerate`, and yield as you go.
    """,
)
def share(stream, info):
    n, i = (1, 0) if info is None else (info.num_workers, info.id)
    yield from list(stream)[i::n]


@shared.mutant(
    "takes pairs instead of turns",
    why="""
    `number // n` asks in which *round* an example is, not whose turn it is. So worker 0 gets the
    whole first round, worker 1 the second, and all later rounds belong to nobody. Whose turn it is,
    says the remainder: `number % n`.
    """,
)
def share(stream, info):
    n, i = (1, 0) if info is None else (info.num_workers, info.id)
    for number, example in enumerate(stream):
        if n == 1 or number // n == i:
            yield example


def _worker(i, n):
    return SimpleNamespace(id=i, num_workers=n)


def _endless():
    yield from range(1000)
    raise RuntimeError("1,000 examples were read, and nobody had asked for them")


@shared.check("two workers")
def _(f):
    for i, wanted in enumerate(([10, 12, 14], [11, 13])):
        yield case(f"list(share(iter([10, 11, 12, 13, 14]), info)), worker {i} of 2",
                   lambda i=i: list(f(iter([10, 11, 12, 13, 14]), _worker(i, 2)))).gives(wanted)


@shared.check("all workers together")
def _(f):
    def together():
        return sorted(x for i in range(3) for x in f(iter(range(8)), _worker(i, 3)))

    yield case("what 3 workers yield of range(8), sorted", together).gives(list(range(8)))


@shared.check("no workers at all")
def _(f):
    yield case("list(share(iter('abc'), None))", lambda: list(f(iter("abc"), None))).gives(
        ["a", "b", "c"])


@shared.check("an endless stream", hidden=True)
def _(f):
    yield case("the first 3 examples of worker 1 of 2, of an endless stream",
               lambda: list(itertools.islice(f(_endless(), _worker(1, 2)), 3))).gives([1, 3, 5])

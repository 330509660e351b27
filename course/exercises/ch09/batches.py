"""Batches, and the last one."""

import toytorch as torch
from course.cases import case
from course.records import Exercise

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

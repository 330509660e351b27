"""A sampler: every example once, in random order."""

import toytorch as torch
from course.cases import case
from course.records import Exercise

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

"""A sampler: every example once, in random order."""

import toytorch as torch
from course.cases import case
from course.records import Exercise

shuffled = Exercise(
    "data.shuffled",
    "A sampler: every example once, in random order",
    chapter=9,
    minutes=8,
    prompt="""
    A sampler says **which** example comes next. It never sees the data, only how many there are.

    Write `Shuffled(count, generator=None)`, with `iter(sampler)` and `len(sampler)`:

    * An epoch has the numbers `0` to `count - 1`, each once, in random order: all orders are
      equally likely.
    * Each `iter(sampler)` begins a new epoch, with a **new** order.
    * The randomness comes from `generator`, or where it is `None` from the default one; that is
      what `torch.randperm(n, generator=generator)` does anyway.
    * Yield Python ints (`.tolist()`): a list or a dictionary wants those, not tensors.
    """,
    without=("torch.utils.data.RandomSampler",),
    hints=(
        """
        A permutation has every index once: `torch.randperm` draws one, and it makes all orders
        equally likely. What matters is *when* you draw: `__iter__` runs at the beginning of every
        epoch, `__init__` once.
        """,
        """
        `sampler = Shuffled(4, generator)`; what the generator draws is made up:

        | call | what runs | result |
        | --- | --- | --- |
        | `Shuffled(4, generator)` | `__init__`: keeps 4 and the generator, draws nothing | |
        | `len(sampler)` | `__len__` | 4 |
        | `list(sampler)` | `__iter__`: `randperm(4)` is [2, 0, 3, 1] | `[2, 0, 3, 1]` |
        | `list(sampler)` | `__iter__`: `randperm(4)` is [1, 2, 0, 3] | `[1, 2, 0, 3]` |

        `iter([2, 0, 3, 1])` makes an iterator over a list. `tensor.tolist()` makes a list of Python ints.
        """,
        """
        ```python
        class Shuffled(torch.utils.data.Sampler):
            def __init__(self, count, generator=None):
                self.count, self.generator = count, generator

            def __iter__(self):
                order = ...
                return iter(...)

            def __len__(self):
                return ...
        ```
        """,
    ),
)


@shuffled.reference(stub={
    "__init__": "your code here: one line, and two more methods",
    "__iter__": "",
    "__len__": "",
})
class Shuffled(torch.utils.data.Sampler):
    """The numbers below count, in a new random order each epoch."""

    def __init__(self, count, generator=None):
        self.count, self.generator = count, generator

    def __iter__(self):
        order = torch.randperm(self.count, generator=self.generator)
        return iter(order.tolist())

    def __len__(self):
        return self.count


shuffled.changed(
    "draws with replacement",
    """
    Every draw was made from all indices anew, so some examples come twice and others not at all: in
    an epoch of n draws about 37 % are never seen. (That is a way to sample, too, and has uses. An
    epoch that shows everything once is a *permutation*.)
    """,
    (
        "        order = torch.randperm(self.count, generator=self.generator)\n"
        "        return iter(order.tolist())",
        "        drawn = torch.randint(self.count, (self.count,), generator=self.generator)\n"
        "        return iter(drawn.tolist())",
    ),
)


@shuffled.mutant(
    "the same order in every epoch",
    why="""
    The order was drawn once, when the sampler was made. Then the same examples are together in a
    batch in every epoch. Draw in `__iter__`, which runs when an epoch begins.
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
    there. The second epoch is empty, so the loop does nothing, and no error is raised. `__iter__`
    has to make a **new** iterator each time.
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


shuffled.changed(
    "forgets its generator",
    """
    The order was drawn from the default generator, whatever generator was given. Then the order
    changes as soon as anybody else draws a random number, a dropout for example, and two runs with
    the same generator see different batches. Hand it on: `generator=self.generator`.
    """,
    (
        "        order = torch.randperm(self.count, generator=self.generator)\n"
        "        return iter(order.tolist())",
        "        return iter(torch.randperm(self.count).tolist())",
    ),
)

shuffled.changed(
    "yields tensors",
    """
    Going through a tensor gives tensors of one number each. They can index other tensors and lists.
    But two tensors with the same number are not the same key of a dictionary, and sets of them
    count wrong. `.tolist()` gives plain ints, and it is faster.
    """,
    (
        "        order = torch.randperm(self.count, generator=self.generator)\n"
        "        return iter(order.tolist())",
        "        return iter(torch.randperm(self.count, generator=self.generator))",
    ),
)


def _generator(seed):
    return torch.Generator().manual_seed(seed)


@shuffled.check("each index once")
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


shuffled.changed(
    "the old order from a random place on",
    """
    Only the beginning was drawn; from there the numbers follow one another as before. Of n! orders
    you get n, and each example always has the same neighbours. Draw a permutation.
    """,
    (
        "        order = torch.randperm(self.count, generator=self.generator)\n"
        "        return iter(order.tolist())",
        "        start = torch.randint(self.count, (1,), generator=self.generator).item()\n"
        "        return iter([(start + i) % self.count for i in range(self.count)])",
    ),
)

shuffled.changed(
    "the last one stays last",
    """
    The last number took no part in the shuffle. `randperm(count)` has the numbers 0 to count - 1,
    all of them.
    """,
    (
        "        order = torch.randperm(self.count, generator=self.generator)\n"
        "        return iter(order.tolist())",
        "        order = torch.randperm(self.count - 1, generator=self.generator).tolist()\n"
        "        return iter([*order, self.count - 1])",
    ),
)

shuffled.changed(
    "some orders more often than others",
    """
    Each place was exchanged with any other one, n times. That gives nⁿ equally likely courses for
    n! orders, which does not come out even: for three numbers, some orders come in 5 of 27 cases
    and others in 4. (Exchanging place i only with the places from i on makes it right.)
    """,
    (
        "order = torch.randperm(self.count, generator=self.generator)\n"
        "        return iter(order.tolist())",
        "order = list(range(self.count))\n"
        "        for i in range(self.count):\n"
        "            j = torch.randint(self.count, (1,), generator=self.generator).item()\n"
        "            order[i], order[j] = order[j], order[i]\n"
        "        return iter(order)",
    ),
)

shuffled.changed(
    "the number of the epoch decides",
    """
    The order depends on the number of the epoch alone. Two generators with different seeds give the
    same orders, and so does every program. So an experiment cannot be repeated with another seed.
    """,
    ("generator = count, generator", "epoch = count, 0"),
    (
        "order = torch.randperm(self.count, generator=self.generator)\n"
        "        return iter(order.tolist())",
        "self.epoch += 1\n"
        "        generator = torch.Generator().manual_seed(self.epoch)\n"
        "        return iter(torch.randperm(self.count, generator=generator).tolist())",
    ),
)

shuffled.changed(
    "a generator of its own where none is given",
    """
    Without a generator, the sampler made one with a fixed seed. `torch.manual_seed` has no effect
    on it, and every sampler draws the same orders. `None` means: the default generator.
    """,
    (
        "self.count, self.generator = count, generator",
        "self.count, self.generator = count, generator or torch.Generator().manual_seed(0)",
    ),
)


@shuffled.check("all orders, equally often")
def _(f):
    def places():
        sampler = f(9, _generator(0))
        orders = [list(sampler) for _ in range(200)]
        return [len({order.index(number) for order in orders}) for number in (0, 8)]

    yield case("200 epochs of 9: at how many places the numbers 0 and 8 were", places).gives([9, 9])

    def orders():
        sampler, found = f(3, _generator(0)), {}
        for _ in range(9000):
            order = "".join(map(str, sampler))
            found[order] = found.get(order, 0) + 1
        return dict(sorted(found.items()))

    yield case("9000 epochs of 3: how often each order came", orders).holds(
        "six orders, each between 1360 and 1640 times",
        lambda got: len(got) == 6 and all(1360 <= n <= 1640 for n in got.values()))


@shuffled.check("another seed, another order")
def _(f):
    def seeds():
        return list(f(20, _generator(5))) == list(f(20, _generator(6)))

    yield case("two samplers with generators of different seeds: the same order?", seeds).gives(
        False)

    def default():
        before = torch.get_rng_state()
        try:
            found = []
            for seed in (1, 2, 1):
                torch.manual_seed(seed)
                found.append(list(f(20)))
        finally:
            torch.set_rng_state(before)
        return found[0] == found[1], found[0] == found[2]

    text = "without a generator, after manual_seed: the same order for seeds 1 and 2? for 1 and 1?"
    yield case(text, default).gives((False, True))

"""Batches, and the last one."""

import toytorch as torch
from course.cases import case
from course.properties import agrees
from course.records import Exercise

batches = Exercise(
    "data.batches",
    "Batches, and the last one",
    chapter=9,
    minutes=8,
    prompt="""
    `Batches(sampler, size, drop_last=False)` gathers what a sampler yields into lists of `size`
    numbers:

    * `list(Batches(range(5), 2))` is `[[0, 1], [2, 3], [4]]`. The last batch is shorter if `size`
      does not divide the count. With `drop_last=True` it is left out.
    * `len(batches)` is how many lists there are. Compute it from `len(sampler)`.
    * A sampler is gone through anew in every epoch, and it cannot be sliced: it only has `iter` and
      `len`.
    * Each batch is a list of its own. Somebody may keep it.
    """,
    without=("torch.utils.data.BatchSampler",),
    hints=(
        """
        Go through the sampler once, as it comes, and keep one list that you fill. When it is full, hand it
        out and begin a **new** one. What is left when the numbers end is the short batch. `len` is
        arithmetic: it must not go through the sampler, which may draw random numbers.
        """,
        """
        `Batches(range(5), 2)`:

        | number | the list after it | yielded |
        | --- | --- | --- |
        | 0 | [0] | |
        | 1 | [0, 1] | [0, 1], then a new list |
        | 2 | [2] | |
        | 3 | [2, 3] | [2, 3], then a new list |
        | 4 | [4] | |
        | the end | [4] | [4], unless `drop_last` |

        `divmod(5, 2)` is (2, 1): two full batches and a rest of 1, so `len` is 3, or 2 with `drop_last`.
        """,
        """
        ```python
        class Batches(torch.utils.data.Sampler):
            def __init__(self, sampler, size, drop_last=False):
                self.sampler, self.size, self.drop_last = sampler, size, drop_last

            def __iter__(self):
                batch = []
                for number in self.sampler:
                    batch.append(number)
                    if ...:
                        ...
                if ...:
                    yield batch

            def __len__(self):
                whole, rest = divmod(len(self.sampler), self.size)
                return ...
        ```
        """,
    ),
)


@batches.reference(stub={
    "__init__": "your code here: one line, and two more methods",
    "__iter__": "",
    "__len__": "",
})
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


batches.changed(
    "the last batch is lost",
    """
    Only full batches were yielded. What was gathered when the numbers ran out is still a batch, a
    short one, and whoever trains on few examples misses it: with 100 examples in batches of 64,
    more than a third is never seen. Yield the rest after the loop, unless `drop_last` says so.
    """,
    (
        "        if batch and not self.drop_last:\n"
        "            yield batch\n",
        "",
    ),
    (
        "        whole, rest = divmod(len(self.sampler), self.size)\n"
        "        return whole + (rest > 0 and not self.drop_last)",
        "        return len(self.sampler) // self.size",
    ),
)

batches.changed(
    "drop_last is not asked",
    """
    The short batch was yielded although `drop_last` is true. Some things need full batches: batch
    normalisation cannot normalise a batch of one, and some compiled kernels know one size only.
    """,
    ("if batch and not self.drop_last:", "if batch:"),
    (
        "        whole, rest = divmod(len(self.sampler), self.size)\n"
        "        return whole + (rest > 0 and not self.drop_last)",
        "        return -(-len(self.sampler) // self.size)",
    ),
)

batches.changed(
    "an empty batch at the end",
    """
    When the numbers come out even, nothing is left at the end, and that nothing was yielded as a
    batch. Collating it fails, or worse, gives a mean over no examples, which is `nan`. Ask `if
    batch` first.
    """,
    ("if batch and not self.drop_last:", "if not self.drop_last:"),
)

batches.changed(
    "one list for all batches",
    """
    The list was emptied and filled again, so every batch that was handed out is the *same* list,
    and in the end all of them show the last numbers. A loader that looks ahead holds several
    batches at once. Begin a new list, `batch = []`, instead of `batch.clear()`.
    """,
    ("                batch = []", "                batch.clear()"),
)

batches.changed(
    "counts only full batches",
    """
    The batches are right, and `len` rounds down although the short one is yielded. A learning rate
    schedule that asks `len(loader)` how many steps an epoch has then runs out before the last epoch
    does. Round down only with `drop_last`.
    """,
    (
        "        whole, rest = divmod(len(self.sampler), self.size)\n"
        "        return whole + (rest > 0 and not self.drop_last)",
        "        return len(self.sampler) // self.size",
    ),
)


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


@batches.mutant(
    "the order is frozen",
    why="""
    The sampler was read once, when the batches were made. A sampler that shuffles gives a new order
    in every epoch; here all epochs are alike. Go through it in `__iter__`.
    """,
)
class Batches(torch.utils.data.Sampler):
    def __init__(self, sampler, size, drop_last=False):
        numbers = list(sampler)
        self.all = [numbers[i : i + size] for i in range(0, len(numbers), size)]
        if drop_last and self.all and len(self.all[-1]) < size:
            self.all.pop()

    def __iter__(self):
        return iter([list(batch) for batch in self.all])

    def __len__(self):
        return len(self.all)


@batches.mutant(
    "slices the sampler",
    why="""
    `sampler[i : i + size]` works for a `range` and for a list. A sampler has no indices. You can
    only iterate over it, and it may decide during the iteration what comes next.
    """,
)
class Batches(torch.utils.data.Sampler):
    def __init__(self, sampler, size, drop_last=False):
        self.sampler, self.size, self.drop_last = sampler, size, drop_last

    def __iter__(self):
        for i in range(0, len(self.sampler), self.size):
            batch = list(self.sampler[i : i + self.size])
            if len(batch) == self.size or not self.drop_last:
                yield batch

    def __len__(self):
        whole, rest = divmod(len(self.sampler), self.size)
        return whole + (rest > 0 and not self.drop_last)


batches.changed(
    "one epoch and no more",
    """
    `iter(sampler)` was called once, in `__init__`. An iterator that has come to its end stays
    there, so the second epoch is empty. Begin anew in `__iter__`.
    """,
    (
        "self.sampler, self.size, self.drop_last = sampler, size, drop_last",
        "self.sampler, self.size, self.drop_last = sampler, size, drop_last\n"
        "        self.numbers = iter(sampler)",
    ),
    ("for number in self.sampler:", "for number in self.numbers:"),
)

batches.changed(
    "len goes through an epoch",
    """
    `len` counted by going through the sampler. That draws an order, so that asking for the length
    changes which order comes next. The length follows from `len(self.sampler)`.
    """,
    (
        "        whole, rest = divmod(len(self.sampler), self.size)\n"
        "        return whole + (rest > 0 and not self.drop_last)",
        "        return sum(1 for _ in self)",
    ),
)


class _Epochs:
    """A sampler whose numbers tell the epoch: 10, 11, …, then 20, 21, …."""

    def __init__(self, count):
        self.count, self.epoch = count, 0

    def __iter__(self):
        self.epoch += 1
        for number in range(self.count):
            yield 10 * self.epoch + number

    def __len__(self):
        return self.count


@batches.check("a sampler that is no list")
def _(f):
    def epochs():
        made = f(_Epochs(3), 2)
        return list(made), list(made)

    text = "a sampler that yields 10, 11, 12 in its first epoch and 20, 21, 22 in its second"
    yield case(f"two epochs of Batches(sampler, 2) for {text}", epochs).gives(
        ([[10, 11], [12]], [[20, 21], [22]]))

    def asked():
        sampler = _Epochs(3)
        return len(f(sampler, 2)), sampler.epoch

    yield case("len(Batches(sampler, 2)), and how often the sampler was gone through", asked).gives(
        (2, 0))


@batches.check("any numbers")
def _(f):
    def run(kind):
        def made(count, size, drop_last):
            batches = kind(range(count), size, drop_last)
            return list(batches), len(batches)

        return made

    def tell(count, size, drop_last):
        return f"list and len of Batches(range({count}), {size}, drop_last={drop_last})"

    yield agrees(run(f), run(batches.answer.value),
                 lambda draw: (draw.randint(0, 12), draw.randint(1, 5), draw.random() < 0.5),
                 count=80, tell=tell)

"""A loader for the learner's own package."""

import numpy as np

from course.cases import case
from course.properties import agrees
from course.records import Exercise

own_loader = Exercise(
    "data.package",
    "A loader for your package",
    chapter=9,
    minutes=35,
    prompt="""
    A class `Loader` that goes over a dataset in batches. A dataset is anything with `len(dataset)` and
    `dataset[i]`, where `dataset[i]` is a sample: a number, an array, or a tuple, list or dictionary of
    these.

    1. **Length.** `len(loader)` is the number of batches: the last one may be smaller, and with
       `drop_last` it is left out. A `batch_size` below 1 is a `ValueError`.
    2. **Order.** `order(epoch)` gives the order of an epoch as an array of indices: 0, 1, 2, … or,
       with `shuffle`, a permutation that depends on `seed` and `epoch` alone, so that an epoch can be
       repeated: `np.random.default_rng((seed, epoch)).permutation(n)`.
    3. **Batches.** Each `for … in loader` is one epoch, the first has number 0. That holds for one
       that is broken off, and for one inside another, too. A sample is asked for when its batch is
       due and not before: datasets may be larger than memory. The dataset gets Python's own integers.
    4. **Collate.** `Loader.collate(samples)` makes a batch of a list of samples. Numbers and arrays
       are stacked along a new first dimension; in tuples, lists and dictionaries each field becomes
       a batch of its own, at any depth, and the container keeps its type; strings stay a list. Whole
       numbers stay whole. Shapes that differ, and tuples of different lengths, are a `ValueError`.

    A trace of `collate` for two samples (image of shape (8, 8), 3) and (image, 5): the samples are
    tuples, so field 0 is collated, which gives an array (2, 8, 8), then field 1, which gives
    array([3, 5]); the batch is the tuple of both.
    """,
    without=(
        "torch.utils.data.DataLoader",
        "torch.utils.data.BatchSampler",
        "torch.utils.data.RandomSampler",
        "torch.utils.data.default_collate",
    ),
    hints=(
        """
        Only the order is random; the rest of the loader goes through an array of indices. Batch number n
        is a slice of that array. Let `__iter__` be a generator: what stands before its `yield` runs when
        that batch is asked for, and each loop gets a generator of its own. `collate` asks what kind its
        first sample is, and for a container it calls itself, once for each field.
        """,
        """
        `Loader(dataset, batch_size=2)` with 5 samples: `divmod(5, 2)` is 2 and 1, so there are 2 full
        batches and a rest, which makes 3. Two epochs without `shuffle`:

        | loop | epoch when it begins, and after | order | slices |
        | --- | --- | --- | --- |
        | first | 0, then 1 | 0 1 2 3 4 | [0, 1], [2, 3], [4] |
        | second | 1, then 2 | 0 1 2 3 4 | [0, 1], [2, 3], [4] |

        The number goes up when a loop begins. A loop that is broken off has had its epoch all the same.

        `collate([((1, 2), "a"), ((4, 5), "b")])`: the samples are tuples, so `zip(*samples)` gives the
        fields `((1, 2), (4, 5))` and `("a", "b")`.

        * The first field is collated. Again tuples: its fields (1, 4) and (2, 5) are numbers, so they
          become array([1, 4]) and array([2, 5]), and the field a tuple of both.
        * The second holds strings: ["a", "b"].

        The batch is ((array([1, 4]), array([2, 5])), ["a", "b"]).
        """,
        """
        ```python
        class Loader:
            def __init__(
                self,
                dataset,
                batch_size=32,
                shuffle=False,
                drop_last=False,
                seed=0,
            ):
                if ...:
                    raise ValueError(f"batch_size is {batch_size}")
                self.dataset, self.batch_size = dataset, batch_size
                self.shuffle, self.drop_last, self.seed = shuffle, drop_last, seed
                self.epoch = 0

            def __len__(self):
                full, rest = divmod(len(self.dataset), self.batch_size)
                return ...

            def order(self, epoch):
                count = len(self.dataset)
                if not self.shuffle:
                    return np.arange(count)
                return ...

            def __iter__(self):
                order, self.epoch = ..., ...  # this loop has its epoch now
                for n in range(len(self)):
                    some = order[...]
                    yield self.collate([... for i in some])

            @staticmethod
            def collate(samples):
                first = samples[0]
                if isinstance(first, dict):
                    return {key: ... for key in first}
                if isinstance(first, (tuple, list)):
                    parts = ...  # the fields; an error if lengths differ
                    return type(first)(... for p in parts)
                if isinstance(first, str):
                    return list(samples)
                ...  # shapes that differ
                return ...
        ```
        """,
    ),
)


@own_loader.stub
class Loader:
    """Batches of a dataset, in order or shuffled anew in each epoch."""

    def __init__(
        self,
        dataset,
        batch_size=32,
        shuffle=False,
        drop_last=False,
        seed=0,
    ):
        # stage 1, your code here: about 5 lines
        raise NotImplementedError

    def __len__(self):
        # stage 1, your code here: about 2 lines
        raise NotImplementedError

    def order(self, epoch):
        """The order of an epoch: the same whenever it is asked for."""
        # stage 2, your code here: about 4 lines
        raise NotImplementedError

    def __iter__(self):
        # stage 3, your code here: about 4 lines
        raise NotImplementedError

    @staticmethod
    def collate(samples):
        """A batch: numbers and arrays stacked, containers kept."""
        # stage 4, your code here: about 15 lines
        raise NotImplementedError


@own_loader.reference
class Loader:
    """Batches of a dataset, in order or shuffled anew in each epoch."""

    def __init__(
        self,
        dataset,
        batch_size=32,
        shuffle=False,
        drop_last=False,
        seed=0,
    ):
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}")
        self.dataset, self.batch_size = dataset, batch_size
        self.shuffle, self.drop_last, self.seed = shuffle, drop_last, seed
        self.epoch = 0

    def __len__(self):
        full, rest = divmod(len(self.dataset), self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def order(self, epoch):
        """The order of an epoch: the same whenever it is asked for."""
        count = len(self.dataset)
        if not self.shuffle:
            return np.arange(count)
        return np.random.default_rng((self.seed, epoch)).permutation(count)

    def __iter__(self):
        order, self.epoch = self.order(self.epoch), self.epoch + 1
        for n in range(len(self)):
            some = order[n * self.batch_size : (n + 1) * self.batch_size]
            yield self.collate([self.dataset[int(i)] for i in some])

    @staticmethod
    def collate(samples):
        """A batch: numbers and arrays stacked, containers kept."""
        first = samples[0]
        if isinstance(first, dict):
            return {
                key: Loader.collate([sample[key] for sample in samples])
                for key in first
            }
        if isinstance(first, (tuple, list)):
            parts = zip(*samples, strict=True)
            return type(first)(Loader.collate(list(p)) for p in parts)
        if isinstance(first, str):
            return list(samples)
        shapes = {np.shape(sample) for sample in samples}
        if len(shapes) > 1:
            raise ValueError(f"shapes {sorted(shapes)} do not stack")
        return np.stack([np.asarray(sample) for sample in samples])


own_loader.changed(
    "drops the last batch always",
    """
    Where the number of samples is no multiple of the batch size, a smaller batch remains. It is
    left out only with `drop_last`.
    """,
    ("return full + (rest > 0 and not self.drop_last)", "return full"),
)

own_loader.changed(
    "an empty batch at the end",
    """
    If the batches come out even, nothing remains, and there is no further batch.
    """,
    ("return full + (rest > 0 and not self.drop_last)", "return full + (not self.drop_last)"),
)

own_loader.changed(
    "the same order in every epoch",
    """
    The order has to depend on the epoch as well. Otherwise the same samples meet in the same batch
    every time.
    """,
    ("np.random.default_rng((self.seed, epoch))", "np.random.default_rng(self.seed)"),
)

own_loader.changed(
    "an order that cannot be repeated",
    """
    The seed was not used. Then no run can be repeated, and a run that was interrupted cannot go on.
    """,
    ("np.random.default_rng((self.seed, epoch))", "np.random.default_rng()"),
)

own_loader.changed(
    "draws with replacement",
    """
    A random index for each place gives some samples twice and others never. An epoch shows every
    sample once: a permutation.
    """,
    (".permutation(count)", ".integers(count, size=count)"),
)

own_loader.changed(
    "the epoch does not advance",
    """
    Each `for` loop is one epoch, so the number goes up by one each time a loop begins.
    """,
    (
        "order, self.epoch = self.order(self.epoch), self.epoch + 1",
        "order = self.order(self.epoch)",
    ),
)

own_loader.changed(
    "reads the whole dataset first",
    """
    All samples were asked for before the first batch came out. A dataset may be larger than memory,
    or slow: read what a batch needs when it is due.
    """,
    (
        "        for n in range(len(self)):\n",
        (
            "        everything = [self.dataset[int(i)] for i in order]\n"
            "        for n in range(len(self)):\n"
        ),
    ),
    (
        "yield self.collate([self.dataset[int(i)] for i in some])",
        (
            "begin = n * self.batch_size\n"
            "            yield self.collate(everything[begin : begin + len(some)])"
        ),
    ),
)

own_loader.changed(
    "stacks tuples as they are",
    """
    A sample (image, label) has fields of different kinds. Each field becomes a batch of its own.
    """,
    ("if isinstance(first, (tuple, list)):", "if False:"),
)

own_loader.changed(
    "a tuple comes back as a list",
    """
    The batch has the container's type, so that `images, labels = batch` and `batch.index` keep
    working for tuples as for lists.
    """,
    (
        "return type(first)(Loader.collate(list(p)) for p in parts)",
        "return [Loader.collate(list(p)) for p in parts]",
    ),
)

own_loader.changed(
    "dictionaries are not looked into",
    """
    A dictionary of fields becomes a dictionary of batches with the same keys.
    """,
    ("if isinstance(first, dict):", "if False:"),
)

own_loader.changed(
    "one level only",
    """
    Fields may be containers themselves, `((image, mask), label)`. Collate calls itself for each
    field.
    """,
    (
        "return type(first)(Loader.collate(list(p)) for p in parts)",
        "return type(first)(np.stack([np.asarray(x) for x in p]) for p in parts)",
    ),
)

own_loader.changed(
    "tuples of different lengths are cut",
    """
    `zip` stops at the shortest. A sample with a field missing then loses that field for the whole
    batch: `zip(..., strict=True)` refuses.
    """,
    ("zip(*samples, strict=True)", "zip(*samples)"),
)

own_loader.changed(
    "an epoch that was broken off comes again",
    """
    The number went up after the last batch. A loop that ends with `break` never gets there, and the next
    one shows the same samples again. Count when the loop begins.
    """,
    (
        "order, self.epoch = self.order(self.epoch), self.epoch + 1",
        "order = self.order(self.epoch)",
    ),
    (
        "yield self.collate([self.dataset[int(i)] for i in some])",
        "yield self.collate([self.dataset[int(i)] for i in some])\n        self.epoch += 1",
    ),
)

own_loader.changed(
    "the seed plus the epoch",
    """
    With seed + epoch, epoch 1 of seed 1 is epoch 0 of seed 2: two runs that ought to be independent share
    almost all of their orders. `default_rng((seed, epoch))` mixes both numbers.
    """,
    ("np.random.default_rng((self.seed, epoch))", "np.random.default_rng(self.seed + epoch)"),
)

own_loader.changed(
    "one loop at a time",
    """
    The loader kept its place in itself. A second loop over it, inside the first, moves the place of both.
    With `yield`, each loop gets a generator with a place of its own.
    """,
    (
        (
            "        for n in range(len(self)):\n"
            "            some = order[n * self.batch_size : (n + 1) * self.batch_size]\n"
            "            yield self.collate([self.dataset[int(i)] for i in some])\n"
        ),
        (
            "        size = self.batch_size\n"
            "        self.due = [order[n * size :][:size] for n in range(len(self))]\n"
            "        return self\n\n"
            "    def __next__(self):\n"
            "        if not self.due:\n"
            "            raise StopIteration\n"
            "        return self.collate([self.dataset[int(i)] for i in self.due.pop(0)])\n"
        ),
    ),
)

own_loader.changed(
    "everything becomes a float",
    """
    Labels are whole numbers, and they are used as indices: 3.0 is none. `np.asarray(sample)` keeps the
    kind of number that a sample has.
    """,
    ("np.asarray(sample) for sample", "np.asarray(sample, float) for sample"),
)

own_loader.changed(
    "the last batch is filled from the beginning",
    """
    The last batch was made as large as the others, with samples from the beginning of the order. Then some
    samples count twice in an epoch. It may be smaller.
    """,
    (
        "order, self.epoch = self.order(self.epoch), self.epoch + 1",
        (
            "order, self.epoch = self.order(self.epoch), self.epoch + 1\n"
            "        order = np.resize(order, len(self) * self.batch_size)"
        ),
    ),
)

own_loader.changed(
    "drop_last counts and does not drop",
    """
    `len(loader)` leaves the smaller batch out, and the loop gives it all the same. Let the loop go over
    `range(len(self))`, so that both agree.
    """,
    ("for n in range(len(self)):", "for n in range(-(-len(order) // self.batch_size)):"),
)

own_loader.changed(
    "asks with NumPy's integers",
    """
    The elements of an array are NumPy's integers. A list takes them as an index; a database, for
    example, does not know them. Hand the dataset `int(i)`.
    """,
    ("self.dataset[int(i)]", "self.dataset[i]"),
)


class _Seen:
    """A dataset that notes who was asked for."""

    def __init__(self, count):
        self.count, self.asked = count, []

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        self.asked.append(i)
        return 10 * i


def _lists(batch):
    if isinstance(batch, dict):
        return {key: _lists(value) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        return type(batch)(_lists(part) for part in batch)
    return batch.tolist() if isinstance(batch, np.ndarray) else batch


@own_loader.check("1 · length")
def _(Loader):
    for count, size, drop, wanted in (
        (10, 5, False, 2),
        (11, 5, False, 3),
        (11, 5, True, 2),
        (10, 5, True, 2),
        (3, 5, False, 1),
        (3, 5, True, 0),
        (0, 5, False, 0),
    ):

        def length(count=count, size=size, drop=drop):
            return len(Loader(range(count), batch_size=size, drop_last=drop))

        yield case(f"{count} samples, batch_size={size}, drop_last={drop}", length).gives(wanted)
    yield case("batch_size=0", lambda: Loader(range(3), batch_size=0)).raises(ValueError)


@own_loader.check("2 · order")
def _(Loader):
    def plain():
        return [int(i) for i in Loader(range(5), batch_size=2).order(3)]

    yield case("order(3) of 5 samples", plain).gives([0, 1, 2, 3, 4])

    def orders():
        loader = Loader(range(200), shuffle=True, seed=1)
        first, again, next_ = (list(map(int, loader.order(e))) for e in (0, 0, 1))
        other = list(map(int, Loader(range(200), shuffle=True, seed=2).order(0)))
        return sorted(first) == list(range(200)), first == again, first == next_, first == other

    yield case(
        "shuffled: is epoch 0 a permutation, the same when asked again, that of epoch 1, that of "
        "another seed?",
        orders,
    ).gives((True, True, False, False))

    def apart():
        first, second = (Loader(range(50), shuffle=True, seed=seed) for seed in (1, 2))
        return list(map(int, first.order(1))) == list(map(int, second.order(0)))

    yield case("is epoch 1 of seed 1 the same as epoch 0 of seed 2?", apart).gives(False)

    def spread():
        loader = Loader(range(50), shuffle=True)
        places = np.array([list(loader.order(epoch)) for epoch in range(200)])
        return bool(abs(places[:, 0].mean() - 24.5) < 4), len(set(places[:, 0].tolist())) > 40

    yield case("who stands first in 200 epochs: about everybody, equally often", spread).gives(
        (True, True)
    )


@own_loader.check("3 · batches")
def _(Loader):
    def ordered(**options):
        return [_lists(batch) for batch in Loader(_Seen(5), batch_size=2, **options)]

    yield case("5 samples in batches of 2", ordered).gives([[0, 10], [20, 30], [40]])
    yield case("the same with drop_last", lambda: ordered(drop_last=True)).gives(
        [[0, 10], [20, 30]]
    )

    def epochs():
        loader = Loader(_Seen(40), batch_size=7, shuffle=True, seed=3)
        seen = [[x for batch in loader for x in batch.tolist()] for _ in range(2)]
        wanted = [[10 * int(i) for i in loader.order(epoch)] for epoch in (0, 1)]
        return seen == wanted

    yield case("two epochs, shuffled: are they order(0) and order(1)?", epochs).gives(True)

    def broken_off():
        loader = Loader(_Seen(40), batch_size=7, shuffle=True, seed=3)
        next(iter(loader))
        seen = [x for batch in loader for x in batch.tolist()]
        return seen == [10 * int(i) for i in loader.order(1)]

    yield case("after a loop that was broken off: is the next one order(1)?", broken_off).gives(
        True
    )

    def nested():
        loader = Loader(_Seen(5), batch_size=2)
        return [(len(outer), len(inner)) for outer in loader for inner in loader]

    yield case("a loop inside a loop: the sizes of both batches", nested).gives(
        [(a, b) for a in (2, 2, 1) for b in (2, 2, 1)]
    )

    def lazy():
        dataset = _Seen(1000)
        batches = iter(Loader(dataset, batch_size=4))
        next(batches)
        first = len(dataset.asked)
        next(batches)
        return first, len(dataset.asked)

    yield case("how many samples were asked for after one batch of 4, and after two", lazy).gives(
        (4, 8)
    )

    def kinds():
        dataset = _Seen(6)
        list(Loader(dataset, batch_size=4, shuffle=True))
        return {type(i).__name__ for i in dataset.asked}

    yield case("the type of the indices that a dataset is asked for", kinds).gives({"int"})


    def cut(count, size, drop):
        return [_lists(b) for b in Loader(_Seen(count), batch_size=size, drop_last=drop)]

    def by_hand(count, size, drop):
        batches = [list(range(count))[n : n + size] for n in range(0, count, size)]
        return [[10 * i for i in b] for b in batches if not drop or len(b) == size]

    yield agrees(
        cut,
        by_hand,
        lambda draw: (draw.randint(0, 9), draw.randint(1, 5), draw.random() < 0.5),
        count=20,
        tell=lambda count, size, drop: f"{count} samples, batch_size={size}, drop_last={drop}",
    )


@own_loader.check("4 · collate")
def _(Loader):
    def made(samples):
        return _lists(Loader.collate(samples))

    image = np.arange(4.0).reshape(2, 2)

    def given(text, samples, wanted):
        return case(text, lambda: made(samples)).gives(wanted)

    yield given("[1, 2, 3]", [1, 2, 3], [1, 2, 3])
    yield given("two arrays", [image, -image], [image.tolist(), (-image).tolist()])
    yield given("(1, 2.5) and (3, 4.5)", [(1, 2.5), (3, 4.5)], ([1, 3], [2.5, 4.5]))
    yield given("[1, 2] and [3, 4], lists", [[1, 2], [3, 4]], [[1, 3], [2, 4]])
    yield given(
        "dictionaries", [{"x": 1, "y": [2]}, {"x": 3, "y": [4]}], {"x": [1, 3], "y": [[2, 4]]}
    )
    yield given("((1, 2), 3) twice", [((1, 2), 3), ((4, 5), 6)], (([1, 4], [2, 5]), [3, 6]))
    yield given("strings", ["a", "b"], ["a", "b"])
    yield given("(1, 'a') and (2, 'b')", [(1, "a"), (2, "b")], ([1, 2], ["a", "b"]))

    def types():
        batch = Loader.collate([(1, image), (2, image)])
        return type(batch).__name__, type(batch[0]).__name__, batch[1].shape

    yield case("the types for (1, image) and (2, image)", types).gives(
        ("tuple", "ndarray", (2, 2, 2))
    )
    yield case("arrays of shapes (2,) and (3,)", lambda: made([np.zeros(2), np.zeros(3)])).raises(
        ValueError
    )
    yield case("(1, 2) and (3,)", lambda: made([(1, 2), (3,)])).raises(ValueError)

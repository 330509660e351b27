"""A loader for the learner's own package."""

import numpy as np

from course.cases import case
from course.properties import agrees
from course.records import Exercise

own_loader = Exercise(
    "data.package",
    "A loader for your package",
    chapter=9,
    minutes=45,
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
    5. **State.** `state_dict()` says where the latest loop is: `"epoch"`, and `"batches"`, how many
       batches of that epoch have been given. If that is all of them, it is batch 0 of the next epoch.
       The state holds `"seed"` and `"batch_size"` as well.

       After `load_state_dict(state)` the next loop goes on there, without asking for the samples
       that were given before; the loops after it are whole epochs. A state of another `batch_size` is
       a `ValueError`.

    A trace of a state: 5 samples in batches of 2, so 3 batches an epoch.

    | what happens | epoch, batches | the next loop of a loader that loads it gives |
    | --- | --- | --- |
    | nothing yet | 0, 0 | batches 0, 1, 2 of epoch 0 |
    | the first loop has given 2 batches | 0, 2 | batch 2 of epoch 0 |
    | it has given the third one | 1, 0 | batches 0, 1, 2 of epoch 1 |

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
        Only the order is random. The rest of the loader goes through an array of indices, and batch
        number n is a slice of that array.

        Let `__iter__` be a generator. The code before a `yield` runs when that batch is asked for,
        and each loop gets a generator of its own.

        `collate` looks at its first sample. For a container it calls itself, once for each field.
        """,
        """
        `Loader(dataset, batch_size=2)` with 5 samples: `divmod(5, 2)` is 2 and 1, so there are 2 full
        batches and a rest, which makes 3. Two epochs without `shuffle`:

        | loop | epoch when it begins, and after | order | slices |
        | --- | --- | --- | --- |
        | first | 0, then 1 | 0 1 2 3 4 | [0, 1], [2, 3], [4] |
        | second | 1, then 2 | 0 1 2 3 4 | [0, 1], [2, 3], [4] |

        The number goes up when a loop begins. A loop that is broken off has had its epoch all the same.

        So a state cannot be read off that number. The loop notes its own place beside it, (epoch,
        batches given), when a batch is ready and before it is handed on:

        | when | next epoch | place | state |
        | --- | --- | --- | --- |
        | the second loop has given 1 batch | 2 | (1, 1) | epoch 1, batches 1 |
        | it has given its third | 2 | (1, 3), all of them | epoch 2, batches 0 |
        | loaded into another loader: epoch 1, batches 1 | 1, its first loop begins at batch 1 | (1, 1) | the same |

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
                # the next loop's epoch and first batch; where the latest one is
                self.epoch, self.start, self.place = 0, 0, (0, 0)

            def __len__(self):
                full, rest = divmod(len(self.dataset), self.batch_size)
                return ...

            def order(self, epoch):
                count = len(self.dataset)
                if not self.shuffle:
                    return np.arange(count)
                return ...

            def __iter__(self):
                epoch, start = self.epoch, self.start
                self.epoch, self.start = ...
                order = self.order(epoch)
                for n in range(start, len(self)):
                    some = order[...]
                    batch = self.collate([... for i in some])
                    self.place = ...
                    yield batch

            def state_dict(self):
                epoch, given = self.place
                if ...:  # that epoch is over
                    epoch, given = ...
                return {
                    "seed": self.seed,
                    "batch_size": self.batch_size,
                    "epoch": epoch,
                    "batches": given,
                }

            def load_state_dict(self, state):
                if ...:
                    raise ValueError("a state of another batch_size")
                self.seed = state["seed"]
                self.epoch, self.start = ...
                self.place = ...

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


@own_loader.reference(stub={
    "__init__": "stage 1, your code here: about 5 lines",
    "__len__": "stage 1, your code here: about 2 lines",
    "order": "stage 2, your code here: about 4 lines",
    "__iter__": "stage 3, your code here: about 8 lines",
    "state_dict": "stage 5, your code here: about 9 lines",
    "load_state_dict": "stage 5, your code here: about 5 lines",
    "collate": "stage 4, your code here: about 15 lines",
})
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
        # the next loop's epoch and first batch; where the latest one is
        self.epoch, self.start, self.place = 0, 0, (0, 0)

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
        epoch, start = self.epoch, self.start
        self.epoch, self.start = epoch + 1, 0  # this one has its epoch
        order = self.order(epoch)
        for n in range(start, len(self)):
            some = order[n * self.batch_size : (n + 1) * self.batch_size]
            batch = self.collate([self.dataset[int(i)] for i in some])
            self.place = epoch, n + 1
            yield batch

    def state_dict(self):
        """Where the latest loop is, for another loader to go on."""
        epoch, given = self.place
        if given == len(self):  # that epoch is over
            epoch, given = epoch + 1, 0
        return {
            "seed": self.seed,
            "batch_size": self.batch_size,
            "epoch": epoch,
            "batches": given,
        }

    def load_state_dict(self, state):
        if state["batch_size"] != self.batch_size:
            raise ValueError("a state of another batch_size")
        self.seed = state["seed"]
        self.epoch, self.start = state["epoch"], state["batches"]
        self.place = self.epoch, self.start

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
    ("self.epoch, self.start = epoch + 1, 0", "self.start = 0"),
)

own_loader.changed(
    "reads the whole dataset first",
    """
    All samples were asked for before the first batch came out. A dataset may be larger than memory,
    or slow: read what a batch needs when it is due.
    """,
    (
        "        for n in range(start, len(self)):\n",
        (
            "        everything = [self.dataset[int(i)] for i in order]\n"
            "        for n in range(start, len(self)):\n"
        ),
    ),
    (
        "batch = self.collate([self.dataset[int(i)] for i in some])",
        (
            "begin = n * self.batch_size\n"
            "            batch = self.collate(everything[begin : begin + len(some)])"
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
    ("self.epoch, self.start = epoch + 1, 0", "self.start = 0"),
    ("            yield batch\n", "            yield batch\n        self.epoch += 1\n"),
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
            "        for n in range(start, len(self)):\n"
            "            some = order[n * self.batch_size : (n + 1) * self.batch_size]\n"
            "            batch = self.collate([self.dataset[int(i)] for i in some])\n"
            "            self.place = epoch, n + 1\n"
            "            yield batch\n"
        ),
        (
            "        size = self.batch_size\n"
            "        self.due = [order[n * size :][:size] for n in range(start, len(self))]\n"
            "        self.place = epoch, start\n"
            "        return self\n\n"
            "    def __next__(self):\n"
            "        if not self.due:\n"
            "            raise StopIteration\n"
            "        self.place = self.place[0], self.place[1] + 1\n"
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
        "        order = self.order(epoch)\n",
        "        order = np.resize(self.order(epoch), len(self) * self.batch_size)\n",
    ),
)

own_loader.changed(
    "drop_last counts and does not drop",
    """
    `len(loader)` leaves the smaller batch out, and the loop gives it all the same. Let the loop go over
    `range(len(self))`, so that both agree.
    """,
    ("range(start, len(self))", "range(start, -(-len(order) // self.batch_size))"),
)

own_loader.changed(
    "asks with NumPy's integers",
    """
    The elements of an array are NumPy's integers. A list takes them as an index; a database, for
    example, does not know them. Hand the dataset `int(i)`.
    """,
    ("self.dataset[int(i)]", "self.dataset[i]"),
)


own_loader.changed(
    "counts a batch when the next one is asked for",
    """
    The place was noted after `yield`. A generator stands still at its `yield` while the batch is used, so
    a state that is saved meanwhile does not know of that batch, and gives it again. Note the place
    first.
    """,
    (
        "            self.place = epoch, n + 1\n            yield batch\n",
        "            yield batch\n            self.place = epoch, n + 1\n",
    ),
)

own_loader.changed(
    "the state names the next loop's epoch",
    """
    `self.epoch` belongs to the next loop: it went up when this one began. What is left of this epoch is
    in this one's order, so a state needs the epoch that the loop itself is in.
    """,
    ("epoch, given = self.place\n", "epoch, given = self.epoch, self.place[1]\n"),
)

own_loader.changed(
    "every later epoch begins late as well",
    """
    The batch to begin with was not set back to 0. It is meant for one loop, the one that goes on where
    the state was saved; the loops after it are whole epochs.
    """,
    ("self.epoch, self.start = epoch + 1, 0", "self.epoch = epoch + 1"),
)

own_loader.changed(
    "an epoch that is over leaves an empty loop",
    """
    After the last batch, all batches of the epoch have been given, and the state said so. A loader that goes
    on from there has a loop with nothing in it. The place after the last batch is batch 0 of the next
    epoch.
    """,
    ("if given == len(self):", "if False:"),
)

own_loader.changed(
    "reads what was given before",
    """
    The loop went over all batches and threw those away that had been given. For a large dataset that
    costs as much time as the training before the break. Begin the `range` at the first batch that is
    due.
    """,
    ("range(start, len(self))", "range(len(self))"),
    (
        "            self.place = epoch, n + 1\n            yield batch\n",
        "            self.place = epoch, n + 1\n            if n >= start:\n                yield batch\n",
    ),
)

own_loader.changed(
    "the seed is not restored",
    """
    The order is made of seed and epoch. With a seed of its own, the second loader gives some samples
    again and others not at all in the epoch that it goes on with.
    """,
    ('        self.seed = state["seed"]\n', ""),
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


def _gone_on(Loader, count, size, drop, shuffle, before):
    """A state after some batches, two loops of a loader that loads it, and what these ask for."""
    loader = Loader(_Seen(count), size, shuffle, drop, seed=5)
    ahead = (batch for _ in range(before) for batch in loader)
    for _ in range(before):
        next(ahead)
    state = loader.state_dict()
    dataset = _Seen(count)
    other = Loader(dataset, size, shuffle, drop, seed=6)
    other.load_state_dict(state)
    rest = [[_lists(batch) for batch in other] for _ in range(2)]
    return state["epoch"], state["batches"], rest, len(dataset.asked)


def _rest_by_hand(count, size, drop, shuffle, before):
    def batches(epoch):
        order = list(range(count))
        if shuffle:
            order = np.random.default_rng((5, epoch)).permutation(count).tolist()
        cut = [order[n : n + size] for n in range(0, count, size)]
        return [[10 * i for i in b] for b in cut if not drop or len(b) == size]

    epoch, given = divmod(before, len(batches(0)))
    rest = [batches(epoch)[given:], batches(epoch + 1)]
    return epoch, given, rest, sum(len(batch) for epoch in rest for batch in epoch)


@own_loader.check("5 · state")
def _(Loader):
    yield case(
        "the state of a new loader, batch_size=2, seed=3",
        lambda: Loader(range(5), batch_size=2, seed=3).state_dict(),
    ).gives({"seed": 3, "batch_size": 2, "epoch": 0, "batches": 0})
    for before in (0, 2, 3, 4):
        told = f"5 samples in batches of 2, saved after {before} batches and loaded by another loader"
        yield case(
            f"{told}: epoch, batches, two loops, how many samples were asked for",
            lambda before=before: _gone_on(Loader, 5, 2, False, False, before),
        ).gives(_rest_by_hand(5, 2, False, False, before))

    def again():
        first, second = Loader(_Seen(9), 2), Loader(_Seen(9), 2)
        batches = iter(first)
        next(batches), next(batches)
        second.load_state_dict(first.state_dict())
        state = second.state_dict()
        return state["epoch"], state["batches"]

    yield case("loaded, and saved again at once: epoch, batches", again).gives((0, 2))

    def other():
        Loader(range(5), batch_size=3).load_state_dict(Loader(range(5), batch_size=2).state_dict())

    yield case("a state of batch_size=2 for batch_size=3", other).raises(ValueError)
    yield agrees(
        lambda *drawn: _gone_on(Loader, *drawn),
        _rest_by_hand,
        lambda draw: (
            draw.randint(4, 12), draw.randint(1, 4), draw.random() < 0.5, True, draw.randint(0, 9)
        ),
        count=20,
        tell=lambda count, size, drop, shuffle, before: (
            f"{count} samples shuffled, batch_size={size}, drop_last={drop}, saved after {before} "
            "batches and loaded by another loader"
        ),
    )

"""Wrong answers of chapter 09."""

import random

import toytorch as torch
from tests.course.wrong import like, wrong

# -- data.standardised

like(
    "data.standardised",
    "a small number added to the deviation",
    ("std.where(std > 0, 1.0)", "std + 1e-6"),
)
like("data.standardised", "no deviation below 1", ("std.where(std > 0, 1.0)", "std.clamp(min=1.0)"))
like(
    "data.standardised",
    "small deviations count as none",
    ("std.where(std > 0, 1.0)", "std.where(std > 1e-2, 1.0)"),
)
like(
    "data.standardised",
    "float32 whatever comes in",
    ("return row, self.labels[i]", "return row.float(), self.labels[i]"),
)
like(
    "data.standardised",
    "the deviation divided by n",
    ("features.std(0)", "features.std(0, correction=0)"),
)
like(
    "data.standardised",
    "the mean of the others and its own deviation",
    (" if like is None else like.std", ""),
)
like(
    "data.standardised",
    "the label as a Python number",
    ("return row, self.labels[i]", "return row, self.labels[i].item()"),
)
like(
    "data.standardised",
    "from 0 to 1 instead",
    ("features.mean(0) if", "features.min(0).values if"),
    ("std = features.std(0)", "std = features.max(0).values - features.min(0).values"),
)
like(
    "data.standardised",
    "both means are mixed",
    (
        "features.mean(0) if like is None else like.mean",
        "features.mean(0) if like is None else (features.mean(0) + like.mean) / 2",
    ),
)
like(
    "data.standardised",
    "the deviation of a whole population",
    ("features.std(0)", "features.std(0, correction=0)"),
)


# -- data.shuffled


like(
    "data.shuffled",
    "the old order from a random place on",
    (
        "order = torch.randperm(self.count, generator=self.generator)",
        "start = torch.randint(self.count, (1,), generator=self.generator).item()",
    ),
    ("order.tolist()", "[(start + i) % self.count for i in range(self.count)]"),
)


@wrong("data.shuffled", "Python's own shuffle")
class Shuffled(torch.utils.data.Sampler):
    def __init__(self, count, generator=None):
        self.count, self.generator = count, generator

    def __iter__(self):
        order = list(range(self.count))
        random.shuffle(order)
        return iter(order)

    def __len__(self):
        return self.count


like(
    "data.shuffled",
    "the last one stays last",
    (
        "(self.count, generator=self.generator)",
        "(self.count - 1, generator=self.generator).tolist()",
    ),
    ("order.tolist()", "[*order, self.count - 1]"),
)


@wrong("data.shuffled", "exchanges each with a random one, which favours some orders")
class Shuffled(torch.utils.data.Sampler):
    def __init__(self, count, generator=None):
        self.count, self.generator = count, generator

    def __iter__(self):
        order = list(range(self.count))
        for i in range(self.count):
            j = torch.randint(self.count, (1,), generator=self.generator).item()
            order[i], order[j] = order[j], order[i]
        return iter(order)

    def __len__(self):
        return self.count


@wrong("data.shuffled", "seeds by the number of the epoch, and forgets the generator")
class Shuffled(torch.utils.data.Sampler):
    def __init__(self, count, generator=None):
        self.count, self.epoch = count, 0

    def __iter__(self):
        self.epoch += 1
        generator = torch.Generator().manual_seed(self.epoch)
        return iter(torch.randperm(self.count, generator=generator).tolist())

    def __len__(self):
        return self.count


@wrong("data.shuffled", "a freshly seeded generator where none is given")
class Shuffled(torch.utils.data.Sampler):
    def __init__(self, count, generator=None):
        self.count = count
        self.generator = torch.Generator().manual_seed(0) if generator is None else generator

    def __iter__(self):
        return iter(torch.randperm(self.count, generator=self.generator).tolist())

    def __len__(self):
        return self.count


@wrong("data.shuffled", "is torch.utils.data.RandomSampler")
class Shuffled(torch.utils.data.RandomSampler):
    def __init__(self, count, generator=None):
        super().__init__(range(count), generator=generator)


@wrong("data.shuffled", "shuffles within blocks of four")
class Shuffled(torch.utils.data.Sampler):
    def __init__(self, count, generator=None):
        self.count, self.generator = count, generator

    def __iter__(self):
        for start in range(0, self.count, 4):
            size = min(4, self.count - start)
            for k in torch.randperm(size, generator=self.generator).tolist():
                yield start + k

    def __len__(self):
        return self.count


like("data.shuffled", "counts from 1", ("order.tolist()", "(order + 1).tolist()"))


# -- data.batches


@wrong("data.batches", "the order is frozen in __init__")
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


@wrong("data.batches", "slices the sampler, which only a list lets you do")
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


like(
    "data.batches",
    "one iterator for all epochs",
    (
        "self.sampler, self.size, self.drop_last = sampler, size, drop_last",
        "self.sampler, self.size, self.drop_last = sampler, size, drop_last\n"
        "        self.numbers = iter(sampler)",
    ),
    ("sampler:", "numbers:"),
)
like(
    "data.batches",
    "counts by going through an epoch",
    (
        "        whole, rest = divmod(len(self.sampler), self.size)\n"
        "        return whole + (rest > 0 and not self.drop_last)",
        "        return sum(1 for _ in self)",
    ),
)


@wrong("data.batches", "is torch.utils.data.BatchSampler")
class Batches(torch.utils.data.BatchSampler):
    def __init__(self, sampler, size, drop_last=False):
        super().__init__(sampler, size, drop_last)


like(
    "data.batches",
    "drop_last drops a full one as well",
    ("if batch and not self.drop_last:", "if batch:"),
    (
        "            if len(batch) == self.size:",
        "            if len(batch) == self.size and not (self.drop_last and number == len(self.sampler) - 1):",
    ),
)
like(
    "data.batches",
    "tuples instead of lists",
    ("                yield batch\n", "                yield tuple(batch)\n"),
)
like(
    "data.batches",
    "one too many for sizes that come out even",
    ("return whole + (rest > 0 and not self.drop_last)", "return whole + (not self.drop_last)"),
)
like(
    "data.batches",
    "full batches are tuples",
    ("                yield batch", "                yield tuple(batch)"),
)


# -- data.collate


@wrong("data.collate", "default_collate, and padding where that fails")
def collate_batch(batch):
    try:
        return torch.utils.data.default_collate(batch)
    except (RuntimeError, TypeError):
        longest = max(len(one) for one in batch)
        padded = batch[0].new_zeros(len(batch), longest, *batch[0].shape[1:])
        for row, one in zip(padded, batch):
            row[: len(one)] = one
        return padded


like(
    "data.collate",
    "a batch of one is a view of the example",
    (
        "    if all(one.shape",
        "    if len(batch) == 1:\n        return first.unsqueeze(0)\n    if all(one.shape",
    ),
)
like(
    "data.collate",
    "through Python lists, so that dtypes are lost",
    ("return torch.stack(list(batch))", "return torch.tensor([one.tolist() for one in batch])"),
)
like(
    "data.collate",
    "the history of the examples is cut off",
    ("return torch.stack(list(batch))", "return torch.stack([one.detach() for one in batch])"),
)
like(
    "data.collate",
    "numbers become floats",
    ("return torch.tensor(list(batch))", "return torch.tensor([float(one) for one in batch])"),
)
like(
    "data.collate",
    "a tuple for a tuple",
    (
        "return [collate_batch(column) for column in zip(*batch)]",
        "return tuple(collate_batch(column) for column in zip(*batch))",
    ),
)
like(
    "data.collate",
    "repeats the last number instead of zeros",
    (
        "        row[: len(one)] = one\n",
        "        row[: len(one)] = one\n        row[len(one) :] = one[-1]\n",
    ),
)
like(
    "data.collate",
    "as long as the first one",
    ("longest = max(len(one) for one in batch)", "longest = len(first)"),
)
like(
    "data.collate",
    "knows lists and no tuples",
    ("isinstance(first, (tuple, list))", "isinstance(first, list)"),
)
like(
    "data.collate",
    "pads to a round length",
    (
        "longest = max(len(one) for one in batch)",
        "longest = 4 * -(-max(len(one) for one in batch) // 4)",
    ),
)

# -- data.in_order

like(
    "data.in_order",
    "asks after it has yielded",
    ("        ask(worker)\n        yield batch", "        yield batch\n        ask(worker)"),
)
like(
    "data.in_order",
    "reads all indices first",
    ("enumerate(indices), 0", "enumerate(list(indices)), 0"),
)
like(
    "data.in_order",
    "one worker gets all its jobs before the next gets any",
    (
        "    for _ in range(ahead):\n        for worker in range(len(pool)):",
        "    for worker in range(len(pool)):\n        for _ in range(ahead):",
    ),
)
like(
    "data.in_order", "one ahead, whatever is said", ("for _ in range(ahead):", "for _ in range(1):")
)
like(
    "data.in_order",
    "keeps what arrives by its worker",
    ("arrived[order] = worker, batch", "arrived[worker] = worker, batch"),
)
like(
    "data.in_order",
    "asks the worker that was heard last",
    ("        worker, batch = arrived.pop(given)", "        _, batch = arrived.pop(given)"),
)
like(
    "data.in_order",
    "asks two for each one that is used",
    (
        "        ask(worker)\n        yield",
        "        ask(worker)\n        ask(worker)\n        yield",
    ),
)
like(
    "data.in_order",
    "always asks worker 0",
    ("        ask(worker)\n        yield", "        ask(0)\n        yield"),
)
like(
    "data.in_order",
    "stops at the first index that is 0",
    ("if job is not None:", "if job is not None and job[1]:"),
)
like("data.in_order", "gives the worker as well", ("yield batch", "yield worker, batch"))
like(
    "data.in_order",
    "listens once for each batch",
    ("while given not in arrived:", "if given not in arrived:"),
)


# -- data.package

like(
    "data.package",
    "lists are stacked like arrays",
    ("isinstance(first, (tuple, list))", "isinstance(first, tuple)"),
)
like(
    "data.package",
    "different shapes become an array of objects",
    (
        "        shapes = {np.shape(sample) for sample in samples}\n"
        "        if len(shapes) > 1:\n"
        '            raise ValueError(f"shapes {sorted(shapes)} do not stack")\n'
        "        return np.stack([np.asarray(sample) for sample in samples])",
        "        shapes = {np.shape(sample) for sample in samples}\n"
        "        return np.array(samples, dtype=object if len(shapes) > 1 else None)",
    ),
)
like("data.package", "batches of nothing are allowed", ("batch_size < 1", "batch_size < 0"))
like(
    "data.package",
    "the length counts samples",
    ("return full + (rest > 0 and not self.drop_last)", "return len(self.dataset)"),
)
like(
    "data.package",
    "the order comes from back to front",
    ("return np.arange(count)", "return np.arange(count)[::-1]"),
)
like(
    "data.package",
    "a batch is one sample short",
    ("(n + 1) * self.batch_size]", "(n + 1) * self.batch_size - 1]"),
)
like(
    "data.package",
    "goes on one batch too late",
    (
        'self.epoch, self.start = state["epoch"], state["batches"]',
        'self.epoch, self.start = state["epoch"], state["batches"] + 1',
    ),
)
like(
    "data.package",
    "a loaded state is forgotten when it is saved again",
    ("        self.place = self.epoch, self.start\n", ""),
)
like(
    "data.package",
    "a state of any batch_size is taken",
    ('if state["batch_size"] != self.batch_size:', "if False:"),
)
like(
    "data.package",
    "begins a loaded epoch anew",
    ("for n in range(start, len(self)):", "for n in range(len(self)):"),
)

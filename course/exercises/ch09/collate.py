"""From a list of examples to a batch."""

import toytorch as torch
from course.cases import call
from course.records import Exercise

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

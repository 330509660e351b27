"""From a list of examples to a batch."""

import toytorch as torch
from course.cases import call, case
from course.properties import agrees, untouched
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

    Examples may be nested, so the function calls itself.

    PyTorch leaves one thing to you that this function does: tensors of **different length** are
    padded at their end with zeros up to the longest, so that they can be stacked.
    `first.new_zeros(*sizes)` makes zeros of the same dtype.

    The batch always has its own memory, also where it holds a single example, and gradients flow
    back through it.
    """,
    without=("torch.utils.data.default_collate", "torch.nn.utils.rnn.pad_sequence",),
    hints=(
        """
        Look at the first example: all others are built like it. A container is taken apart into columns,
        and each column is a smaller problem of the same kind, so the function calls itself. What is no
        container becomes one tensor, or a list of strings.
        """,
        """
        Two examples, `("a", (1, tensor([5, 6])))` and `("b", (2, tensor([7])))`:

        | call with | the first is | result |
        | --- | --- | --- |
        | both examples | a tuple: `zip(*batch)` gives two columns | a list of the next two rows |
        | `("a", "b")` | a string | `["a", "b"]` |
        | `((1, …), (2, …))` | a tuple: two columns | a list of the next two rows |
        | `(1, 2)` | a number | `tensor([1, 2])` |
        | `(tensor([5, 6]), tensor([7]))` | a tensor, the lengths differ: longest 2 | `tensor([[5, 6], [7, 0]])` |

        Together: `["a", "b"], [tensor([1, 2]), tensor([[5, 6], [7, 0]])]` in a list.
        """,
        """
        ```python
        def collate_batch(batch):
            first = batch[0]
            if isinstance(first, dict):
                return ...
            if isinstance(first, (tuple, list)):
                return ...
            if isinstance(first, str):
                return list(batch)
            if not isinstance(first, torch.Tensor):
                return ...
            if all(one.shape == first.shape for one in batch):
                return ...
            longest = ...
            padded = first.new_zeros(...)
            for row, one in zip(padded, batch):
                ...
            return padded
        ```
        """,
    ),
)


@collate.reference(stub="your code here: about 14 lines")
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


collate.changed(
    "keeps examples together instead of columns",
    """
    Each example was collated by itself, so you get as many parts as there are examples. Turn the
    table: all first entries belong together, all second entries belong together. `zip(*batch)` does
    just that.
    """,
    (
        "return [collate_batch(column) for column in zip(*batch)]",
        "return [list(one) for one in batch]",
    ),
)


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


collate.changed(
    "cuts to the shortest",
    """
    The longer tensors were cut to the length of the shortest: then they stack, and what was cut off
    is lost. A single short sentence would shorten every other one in its batch. Pad the short ones.
    """,
    (
        "    longest = max(len(one) for one in batch)\n"
        "    padded = first.new_zeros(len(batch), longest, *first.shape[1:])\n"
        "    for row, one in zip(padded, batch):\n"
        "        row[: len(one)] = one\n"
        "    return padded",
        "    shortest = min(len(one) for one in batch)\n"
        "    return torch.stack([one[:shortest] for one in batch])",
    ),
)

collate.changed(
    "pads in front",
    """
    The zeros stand before the numbers. Some do that on purpose, but here position 0 should be each
    example's *first* number, so that the same position means the same thing in every row. Write to
    `row[: len(one)]`.
    """,
    ("row[: len(one)] = one", "row[longest - len(one):] = one"),
)

collate.changed(
    "the padding changes the dtype",
    """
    `torch.zeros` makes float32, so padded words became 3.0 instead of 3, and an embedding refuses
    floats. What you pad with must be of the tensor's own kind: `first.new_zeros(...)`, or
    `dtype=first.dtype`.
    """,
    (
        "padded = first.new_zeros(len(batch), longest, *first.shape[1:])",
        "padded = torch.zeros(len(batch), longest, *first.shape[1:])",
    ),
)

collate.changed(
    "does not look inside",
    """
    The values of the dictionary were gathered into lists and left so. They are examples themselves,
    and the same rules hold for them: collate each list in turn, by calling the function again.
    """,
    (
        "        return {key: collate_batch([one[key] for one in batch])\n"
        "                for key in first}",
        "        return {key: [one[key] for one in batch] for key in first}",
    ),
)


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


collate.changed(
    "a batch of one is the example itself",
    """
    For a single example, `unsqueeze(0)` gives a *view*: the batch lies in the memory of the
    dataset. The first layer that works in place changes the data. `torch.stack` always copies.
    """,
    (
        "    if all(one.shape",
        "    if len(batch) == 1:\n        return first.unsqueeze(0)\n    if all(one.shape",
    ),
)

collate.changed(
    "goes through Python lists",
    """
    `.tolist()` and back: the numbers survive, their dtype does not (float64 became float32), nor
    does the graph, and it is slow. `torch.stack` takes the tensors as they are.
    """,
    ("return torch.stack(list(batch))", "return torch.tensor([one.tolist() for one in batch])"),
)

collate.changed(
    "cuts the gradient off",
    """
    The examples were detached. Data rarely require a gradient. Where they do (an embedding that is
    learned, an attack on the input), it is lost here, without an error.
    """,
    ("return torch.stack(list(batch))", "return torch.stack([one.detach() for one in batch])"),
)

collate.changed(
    "numbers become floats",
    """
    Integers came out as floats. Labels have to stay integers: `cross_entropy` and indexing refuse
    floats. `torch.tensor(list(batch))` finds the dtype by itself.
    """,
    ("return torch.tensor(list(batch))", "return torch.tensor([float(one) for one in batch])"),
)

collate.changed(
    "a tuple for a tuple",
    """
    Tuples came out as tuples. PyTorch's loader gives a **list** of columns for a list as well as
    for a tuple, and so does this one.
    """,
    (
        "return [collate_batch(column) for column in zip(*batch)]",
        "return tuple(collate_batch(column) for column in zip(*batch))",
    ),
)


def _kind(draw, depth=0):
    """What examples are built of, as a function that makes one."""
    names = ["int", "float", "str", "tensor", "rows", *(["dict", "tuple", "list"] * (depth < 2))]
    name = draw.choice(names)
    if name == "int":
        return lambda: draw.randint(0, 9)
    if name == "float":
        return draw.number
    if name == "str":
        return lambda: draw.choice("abc")
    dtype, shape = draw.dtype("float32", "float64", "int64"), draw.shape(most=2)
    if name == "tensor":
        return lambda: draw.tensor(shape, dtype)
    if name == "rows":
        return lambda: draw.tensor((draw.randint(1, 3), *shape[1:]), dtype)
    parts = [_kind(draw, depth + 1) for _ in range(draw.randint(1, 2))]
    if name == "dict":
        return lambda: {key: part() for key, part in zip("pq", parts)}
    return lambda: (tuple if name == "tuple" else list)(part() for part in parts)


def _any(draw):
    make = _kind(draw)
    return ([make() for _ in range(draw.randint(1, 3))],)


@collate.check("any examples")
def _(f):
    yield agrees(f, collate.answer.value, _any, count=80)
    yield untouched(f, _any)


@collate.check("a memory of its own, a graph that goes on", hidden=True)
def _(f):
    def alone():
        example = torch.tensor([1.0, 2.0])
        f([example]).fill_(9.0)
        return example

    yield case("an example, after somebody wrote into its batch of one", alone).gives(
        torch.tensor([1.0, 2.0]))

    def run():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        made = f([x, x * 3])
        if not made.requires_grad:
            return "the batch has no graph"
        made.sum().backward()
        return x.grad

    yield case("the gradient of x through the batch of [x, 3 x]", run).gives(
        torch.tensor([4.0, 4.0]))

"""Freeze the rest."""

import toytorch as torch
from course.cases import case
from course.records import Exercise
from toytorch import nn

freezing = Exercise(
    "training.freeze",
    "Freeze the rest",
    chapter=10,
    minutes=8,
    prompt="""
    Somebody has trained a network on a lot of data. You have little data and another question, so
    you keep what it has learned and train only one part anew.

    Write `freeze(model, keep)`. Of the model's direct parts (`model.named_children()`, pairs of
    name and module), the one called exactly `keep` stays trainable. All others are frozen:

    * their parameters want no gradient (`module.requires_grad_(False)`),
    * and they are in evaluation mode (`module.eval()`), because batch normalisation changes its
      running statistics in training mode, gradient or not.

    What lies deeper inside a frozen part is frozen with it. A parameter of the model itself, which
    is in none of its parts, stays trainable. Return the list of the parameters that are still to be
    trained, for an optimizer.
    """,
    hints=(
        """
        Go over the direct parts by name. For all but one, two calls are enough, because
        `requires_grad_(False)` and `eval()` reach everything *inside* a module. What is left to train is
        whatever still wants a gradient.
        """,
        """
        A model with the parts `features` (a layer, then a batch norm) and `head`, `freeze(model, "head")`:

        | part | called `head`? | its parameters want a gradient | mode of it and of all in it |
        | --- | --- | --- | --- |
        | `features` | no | no, all four | evaluation |
        | `head` | yes | yes, both | training, as before |

        Returned: the two parameters of `head`. A parameter that belongs to the model itself, and to none of
        its parts, is not frozen either, and is in the list.
        """,
        """
        ```python
        def freeze(model, keep):
            for name, part in model.named_children():
                if ...:
                    ...
                    ...
            return [p for p in model.parameters() if ...]
        ```
        """,
    ),
)


@freezing.reference(stub="your code here: about 5 lines")
def freeze(model, keep):
    """Freeze all parts but one; the parameters left to train."""
    for name, part in model.named_children():
        if name != keep:
            part.requires_grad_(False)
            part.eval()
    return [p for p in model.parameters() if p.requires_grad]


freezing.changed(
    "batch normalisation goes on",
    """
    Its parameters want no gradient any more, and the running mean is no parameter: in training mode
    it moves with every batch, so the frozen part still changes. Put it into evaluation mode as
    well.
    """,
    ("            part.eval()\n", ""),
)

freezing.changed(
    "puts everything to sleep",
    """
    `model.eval()` reaches the part that is to be trained as well, and its dropout does nothing any
    more. Only the frozen parts go into evaluation mode.
    """,
    ("            part.eval()", "    model.eval()"),
)


@freezing.mutant(
    "freezes the head, too",
    why="""
    Every parameter was frozen. Then nothing is left to learn: the optimizer gets an empty list, and
    a loss without any parameter that wants a gradient cannot be sent backward. Leave out the part
    called `keep`.
    """,
)
def freeze(model, keep):
    for name, part in model.named_children():
        part.requires_grad_(False)
        if name != keep:
            part.eval()
    return list(getattr(model, keep).parameters())


freezing.changed(
    "takes a part of a name for the name",
    """
    `keep in name` asks whether the letters occur somewhere in the name. With `keep="head"`, a part
    called `overhead` stays trainable as well. Ask for equality.
    """,
    ("name != keep", "keep not in name"),
)

freezing.changed(
    "hands out the frozen ones as well",
    """
    All parameters were returned. An optimizer keeps state for each parameter it has, and people
    print that list to see how much is being trained. Return only those that want a gradient.
    """,
    ("[p for p in model.parameters() if p.requires_grad]", "list(model.parameters())"),
)


class _Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.overhead = nn.Linear(2, 3)
        self.features = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 2))

    def forward(self, x):
        return self.head(self.features(self.overhead(x)))


@freezing.check("who wants a gradient")
def _(f):
    def wanting():
        model = _Parts()
        f(model, "head")
        return [name for name, p in model.named_parameters() if p.requires_grad]

    text = 'parameters that want a gradient after freeze(model, "head")'
    yield case(text, wanting).gives(["head.1.weight", "head.1.bias"])


@freezing.check("in which mode each part is")
def _(f):
    def modes():
        model = _Parts()
        f(model, "head")
        return {name: "training" if part.training else "evaluation"
                for name, part in model.named_children()}

    yield case('the modes after freeze(model, "head")', modes).gives(
        {"overhead": "evaluation", "features": "evaluation", "head": "training"})


@freezing.check("the list for the optimizer", hidden=True)
def _(f):
    yield case('the shapes of freeze(model, "head")',
               lambda: [tuple(p.shape) for p in f(_Parts(), "head")]).gives([(2, 4), (2,)])


freezing.changed(
    "evaluation for the part and not for what is in it",
    """
    `part.training = False` sets one flag. A batch norm *inside* the part has a flag of its own and
    goes on updating its averages. `part.eval()` goes through everything below.
    """,
    ("part.eval()", "part.training = False"),
)

freezing.changed(
    "an iterator that can be read once",
    """
    An iterator came back (a generator, `filter`). The optimizer reads it to its end, and whoever
    counts the parameters afterwards finds none. Asked for is a list.
    """,
    (
        "return [p for p in model.parameters() if p.requires_grad]",
        "return (p for p in model.parameters() if p.requires_grad)",
    ),
)

freezing.changed(
    "only what is in the kept part",
    """
    Only the parameters of the kept part came back. One that belongs to the model itself is not
    frozen either; it wants a gradient, and no optimizer would move it.
    """,
    (
        "return [p for p in model.parameters() if p.requires_grad]",
        "return [p for p in getattr(model, keep).parameters() if p.requires_grad]",
    ),
)

freezing.changed(
    "asks how the name begins",
    """
    `name.startswith(keep)` is true for `head2` as well. Ask for equality.
    """,
    ("if name != keep:", "if not name.startswith(keep):"),
)


class _Deep(nn.Module):
    """Parts in parts, a part whose name begins alike, a parameter of its own."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.body = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), nn.Dropout())
        self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2))
        self.head2 = nn.Linear(2, 2)


@freezing.check("parts in parts")
def _(f):
    def wanting():
        model = _Deep()
        f(model, "head")
        return [name for name, p in model.named_parameters() if p.requires_grad]

    text = "a model with scale, body, head and head2"
    yield case(f'{text}: what wants a gradient after freeze(model, "head")', wanting).gives(
        ["scale", "head.1.weight", "head.1.bias"])

    def training():
        model = _Deep()
        f(model, "head")
        return [name for name, part in model.named_modules() if part.training]

    yield case(f"{text}: what is in training mode", training).gives(["", "head", "head.0", "head.1"])

    def returned():
        model = _Deep()
        names = {id(p): name for name, p in model.named_parameters()}
        got = f(model, "head")
        return type(got).__name__, [names.get(id(p), "unknown") for p in got]

    yield case(f"{text}: what is returned", returned).gives(
        ("list", ["scale", "head.1.weight", "head.1.bias"]))

"""The training loop."""

import toytorch as torch
from course.cases import case
from course.properties import agrees
from course.records import Exercise
from toytorch import nn

training = Exercise(
    "training.fit",
    "The training loop",
    chapter=10,
    minutes=20,
    prompt="""
    Write `fit(model, training, validation, optimizer, epochs)`. `training` and `validation` are
    loaders of pairs `(inputs, labels)`. In each epoch:

    1. **train** on every batch of `training`: forget the old gradients, the loss
       `nn.functional.cross_entropy(model(inputs), labels)`, backward, one step;
    2. **judge** on every batch of `validation`: count right answers (`.argmax(1)`), without
       recording a graph.

    `model.train()` and `model.eval()` tell layers like dropout which of the two is going on.

    Return a list with one dictionary per epoch: `{"loss": …, "accuracy": …}`. The loss is the mean
    over all training *examples* of the epoch (batches may differ in size), the accuracy the share
    of validation examples that were right. Both are floats.

    Each loader is gone through anew in every epoch: a loader that shuffles gives another order each
    time. Whether gradients are recorded is afterwards what it was before.
    """,
    hints=(
        """
        One epoch is two loops. Before each, say which of the two it is (`train`, `eval`), and set two
        counters to zero: what you add up, and over how many examples. The second loop stands under
        `torch.no_grad()`. At the end of the epoch, divide and append one new dictionary.
        """,
        """
        One epoch; training batches of 2 and 1 examples, validation batches of 4 and 1. The losses and right
        answers are made up:

        | what happens | total | seen | right | judged |
        | --- | --- | --- | --- | --- |
        | `model.train()` | 0 | 0 | | |
        | batch of 2: zero_grad, loss 0.70, backward, step | 0.70 · 2 = 1.40 | 2 | | |
        | batch of 1: zero_grad, loss 0.40, backward, step | 1.40 + 0.40 = 1.80 | 3 | | |
        | `model.eval()` | | | 0 | 0 |
        | batch of 4, two answers right | | | 2 | 4 |
        | batch of 1, right | | | 3 | 5 |

        The dictionary of this epoch is `{"loss": 1.80 / 3, "accuracy": 3 / 5}`. The mean of the two batch
        losses, 0.55, would be another number than 0.60: the batches differ in size.
        """,
        """
        ```python
        def fit(model, training, validation, optimizer, epochs):
            history = []
            for _ in range(epochs):
                model.train()
                total, seen = 0.0, 0
                for inputs, labels in training:
                    ...
                    loss = nn.functional.cross_entropy(model(inputs), labels)
                    ...
                    total += ...
                    seen += len(labels)
                ...
                right, judged = 0, 0
                with torch.no_grad():
                    for inputs, labels in validation:
                        ...
                history.append({"loss": ..., "accuracy": ...})
            return history
        ```
        """,
    ),
)


@training.reference(stub="your code here: about 18 lines")
def fit(model, training, validation, optimizer, epochs):
    """Train and judge; a dictionary for each epoch."""
    history = []
    for _ in range(epochs):
        model.train()
        total, seen = 0.0, 0
        for inputs, labels in training:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
            seen += len(labels)
        model.eval()
        right, judged = 0, 0
        with torch.no_grad():
            for inputs, labels in validation:
                answers = model(inputs).argmax(1)
                right += (answers == labels).sum().item()
                judged += len(labels)
        history.append({"loss": total / seen, "accuracy": right / judged})
    return history


training.changed(
    "never forgets a gradient",
    """
    `backward` *adds* to `.grad`. Without `zero_grad()` each step goes along the sum of all
    gradients since the beginning. That is a momentum of 1. The network often learns at first, and
    later the steps become too long.
    """,
    ("            optimizer.zero_grad()\n", ""),
)

training.changed(
    "judges in training mode",
    """
    `model.eval()` is missing. Dropout goes on setting elements to 0 while the network is judged.
    Batch normalisation uses the statistics of the validation batch, so the accuracy depends on the
    other examples in it. It also updates its running averages, so the validation data enter the
    model.
    """,
    ("        model.eval()\n", ""),
)

training.changed(
    "trains in evaluation mode from the second epoch on",
    """
    `model.train()` was called once, before the first epoch, and `model.eval()` after it: from then
    on dropout and batch normalisation are in evaluation mode for the rest of the training. Switch
    back at the beginning of *every* epoch.
    """,
    (
        "    for _ in range(epochs):",
        "    model.train()\n"
        "    for _ in range(epochs):",
    ),
    ("        model.train()\n", ""),
)

training.changed(
    "judges on the training data",
    """
    The accuracy was taken from `training`. A network can know these by heart and be wrong on all
    others. Judge it on data that it has *not* been trained on: go through `validation`.
    """,
    ("for inputs, labels in validation:", "for inputs, labels in training:"),
)

training.changed(
    "the mean of means",
    """
    The losses of the batches were averaged as if all batches were equal. The last one is usually
    smaller, and its few examples then count more than the others. Add up `loss.item() *
    len(labels)`, and divide by the number of examples.
    """,
    ("total, seen = 0.0, 0", "losses = []"),
    (
        "            total += loss.item() * len(labels)\n"
        "            seen += len(labels)",
        "            losses.append(loss.item())",
    ),
    (
        'history.append({"loss": total / seen, "accuracy": right / judged})',
        'history.append({"loss": sum(losses) / len(losses), "accuracy": right / judged})',
    ),
)

training.changed(
    "records a graph while judging",
    """
    No backward follows when the network is judged, but every layer saved what it would need for
    one. That costs memory and time, and a large validation batch may not fit into memory. Judge
    under `torch.no_grad()`.
    """,
    (
        "        with torch.no_grad():\n"
        "            for inputs, labels in validation:\n"
        "                answers = model(inputs).argmax(1)\n"
        "                right += (answers == labels).sum().item()\n"
        "                judged += len(labels)",
        "        for inputs, labels in validation:\n"
        "            answers = model(inputs).argmax(1)\n"
        "\n"
        "            right += (answers == labels).sum().item()\n"
        "            judged += len(labels)",
    ),
)


class _Watched(nn.Module):
    """Two inputs, two scores, weights that begin as zeros; notes in which mode it was called."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 2))
        self.calls = []

    def forward(self, inputs):
        self.calls.append(("training" if self.training else "evaluation",
                           "graph" if torch.is_grad_enabled() else "no graph"))
        return inputs @ self.weight


FIT_X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
FIT_Y = [0, 1, 0]
# what PyTorch gives: the weights after two epochs of batches of 2 and 1, rate 1, and the losses
FIT_WEIGHTS = [[1.014864206314087, -1.014864206314087],
               [0.11242184042930603, -0.11242187023162842]]
FIT_LOSSES = [0.6931471824645996, 0.455409695704778]


def _loaders():
    x, y = torch.tensor(FIT_X), torch.tensor(FIT_Y)
    others = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    wanted = torch.tensor([1, 1, 0, 0, 1])
    return [(x[:2], y[:2]), (x[2:], y[2:])], [(others[:4], wanted[:4]), (others[4:], wanted[4:])]


def _fitted(f, epochs=2, rate=1.0):
    model = _Watched()
    history = f(model, *_loaders(), torch.optim.SGD(model.parameters(), rate), epochs)
    return model, history


def _rounded(rows):
    """What a panel shows: four digits say enough."""
    return [[round(value, 4) for value in row] for row in rows]


@training.check("two epochs of two steps")
def _(f):
    yield case("the weights after fit(…, epochs=2): 3 examples, batches of 2 and 1, SGD(lr=1)",
               lambda: _rounded(_fitted(f)[0].weight.tolist())).gives(
        _rounded(FIT_WEIGHTS), tolerance=2e-4)


@training.check("the loss, over examples", hidden=True)
def _(f):
    yield case("the losses of two epochs, batches of 2 and 1",
               lambda: [float(epoch["loss"]) for epoch in _fitted(f)[1]]).gives(
        FIT_LOSSES, tolerance=1e-4)


@training.check("the accuracy, on the validation data")
def _(f):
    yield case("the accuracy on 5 validation examples, in batches of 4 and 1",
               lambda: _fitted(f)[1][-1]["accuracy"]).gives(0.4)


@training.check("modes and graphs")
def _(f):
    def calls():
        return [" with ".join(call) for call in _fitted(f)[0].calls]

    wanted = 2 * (2 * ["training with graph"] + 2 * ["evaluation with no graph"])
    yield case("how the model was called, in two epochs", calls).gives(wanted)


training.changed(
    "switches gradients off for good",
    """
    `torch.set_grad_enabled(False)` holds until somebody switches it on again, for the whole
    program: after the last epoch nothing is recorded any more. `with torch.no_grad():` ends with
    its block.
    """,
    ("        model.train()\n", "        model.train()\n        torch.set_grad_enabled(True)\n"),
    (
        "        with torch.no_grad():\n            for inputs, labels in validation:",
        "        torch.set_grad_enabled(False)\n"
        "        if True:\n            for inputs, labels in validation:",
    ),
)

training.changed(
    "the first step uses an old gradient",
    """
    The gradients were emptied *after* each step. Whatever was in `.grad` when training began, from
    a trial run or from another loss, went into the first step. Empty them before `backward`.
    """,
    ("            optimizer.zero_grad()\n", ""),
    (
        "            optimizer.step()\n",
        "            optimizer.step()\n            optimizer.zero_grad()\n",
    ),
)

training.changed(
    "keeps the graphs of all batches",
    """
    The loss was added up as a *tensor*. It has a graph, so the graphs of all batches of an epoch
    stay in memory, and the history holds tensors. `loss.item()` gives a Python number.
    """,
    ("total += loss.item() * len(labels)", "total = total + loss * len(labels)"),
)

training.changed(
    "counts the answers of all epochs",
    """
    The counters of the validation were set to 0 once, so the accuracy of an epoch is the mean over
    all epochs up to it. A network that learns looks worse than it is.
    """,
    ("        right, judged = 0, 0\n", ""),
    ("    history = []\n", "    history = []\n    right, judged = 0, 0\n"),
)

training.changed(
    "one order for all epochs",
    """
    The loader was read into a list once. A loader that shuffles, or that changes its images at
    random, gives something new in each epoch; and the list holds all data in memory. Go through the
    loader itself.
    """,
    ("    history = []\n", "    history, training = [], list(training)\n"),
)

training.changed(
    "the mean of the batches' accuracies",
    """
    The accuracies of the batches were averaged as if all batches were equal. The last one is
    usually smaller. Count right answers and examples, and divide once.
    """,
    ("right += (answers == labels).sum().item()", "right += (answers == labels).float().mean().item()"),
    ("judged += len(labels)", "judged += 1"),
)


class _Loader:
    """Batches of two or fewer; each epoch begins one example further on."""

    def __init__(self, inputs, labels):
        self.inputs, self.labels, self.epoch = inputs, labels, 0

    def __iter__(self):
        order = [(n + self.epoch) % len(self.labels) for n in range(len(self.labels))]
        self.epoch += 1
        for start in range(0, len(order), 2):
            some = order[start : start + 2]
            yield self.inputs[some], self.labels[some]


def _any(draw):
    def examples(count):
        inputs = [[draw.number() for _ in range(2)] for _ in range(count)]
        return inputs, [draw.randint(0, 1) for _ in range(count)]

    return examples(draw.randint(1, 5)), examples(draw.randint(1, 5)), draw.randint(1, 3)


@training.check("any data, loaders that shuffle")
def _(f):
    def run(fit):
        def trained(train, validation, epochs):
            model = _Watched()
            model.weight.grad = torch.ones(2, 2)  # somebody tried something before
            loaders = [_Loader(torch.tensor(x), torch.tensor(y)) for x, y in (train, validation)]
            history = fit(model, *loaders, torch.optim.SGD(model.parameters(), 0.5), epochs)
            rows = [[round(float(row[name]), 4) for name in ("loss", "accuracy")] for row in history]
            return rows, _rounded(model.weight.tolist())

        return trained

    def tell(train, validation, epochs):
        return (f"(loss, accuracy) of each epoch, and the weights: training {train}, validation "
                f"{validation}, batches of 2, {epochs} epochs")

    yield agrees(run(f), run(training.answer.value), _any, tolerance=1e-3, tell=tell)


@training.check("what is left behind", hidden=True)
def _(f):
    def kinds():
        return [type(row[name]).__name__ for row in _fitted(f)[1] for name in ("loss", "accuracy")]

    yield case("of which type the losses and accuracies of two epochs are", kinds).gives(
        ["float"] * 4)

    def recording():
        with torch.enable_grad():
            _fitted(f)
            return torch.is_grad_enabled()

    yield case("are gradients recorded, after the call?", recording).gives(True)

"""The training loop."""

import toytorch as torch
from course.cases import case
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
    """,
)


@training.stub
def fit(model, training, validation, optimizer, epochs):
    """Train and judge; a dictionary for each epoch."""
    # your code here: about 18 lines
    raise NotImplementedError


@training.reference
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


@training.mutant(
    "never forgets a gradient",
    why="""
    `backward` *adds* to `.grad`. Without `zero_grad()` each step goes along the sum of all
    gradients since the beginning. It often learns something at first, like a momentum that never
    fades, and then runs away.
    """,
)
def fit(model, training, validation, optimizer, epochs):
    history = []
    for _ in range(epochs):
        model.train()
        total, seen = 0.0, 0
        for inputs, labels in training:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
            seen += len(labels)
        model.eval()
        right, judged = 0, 0
        with torch.no_grad():
            for inputs, labels in validation:
                right += (model(inputs).argmax(1) == labels).sum().item()
                judged += len(labels)
        history.append({"loss": total / seen, "accuracy": right / judged})
    return history


@training.mutant(
    "judges in training mode",
    why="""
    `model.eval()` is missing. Dropout goes on throwing away numbers while the network is judged,
    and batch normalisation uses the statistics of the batch at hand, and even learns from it: the
    validation data leak into the model. The accuracy then depends on who else is in the batch.
    """,
)
def fit(model, training, validation, optimizer, epochs):
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
        right, judged = 0, 0
        with torch.no_grad():
            for inputs, labels in validation:
                right += (model(inputs).argmax(1) == labels).sum().item()
                judged += len(labels)
        history.append({"loss": total / seen, "accuracy": right / judged})
    return history


@training.mutant(
    "trains in evaluation mode from the second epoch on",
    why="""
    `model.train()` was called once, before the first epoch, and `model.eval()` after it: from then
    on dropout and batch normalisation sleep, for the rest of the training. Switch back at the
    beginning of *every* epoch.
    """,
)
def fit(model, training, validation, optimizer, epochs):
    history = []
    model.train()
    for _ in range(epochs):
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
                right += (model(inputs).argmax(1) == labels).sum().item()
                judged += len(labels)
        history.append({"loss": total / seen, "accuracy": right / judged})
    return history


@training.mutant(
    "judges on the training data",
    why="""
    The accuracy was taken from `training`. A network can know those by heart and have understood
    nothing. What you want to know is what it says of data it has *never* learned from: go through
    `validation`.
    """,
)
def fit(model, training, validation, optimizer, epochs):
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
            for inputs, labels in training:
                right += (model(inputs).argmax(1) == labels).sum().item()
                judged += len(labels)
        history.append({"loss": total / seen, "accuracy": right / judged})
    return history


@training.mutant(
    "the mean of means",
    why="""
    The losses of the batches were averaged as if all batches were equal. The last one is usually
    smaller, and its few examples then count more than the others. Add up `loss.item() *
    len(labels)`, and divide by the number of examples.
    """,
)
def fit(model, training, validation, optimizer, epochs):
    history = []
    for _ in range(epochs):
        model.train()
        losses = []
        for inputs, labels in training:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        right, judged = 0, 0
        with torch.no_grad():
            for inputs, labels in validation:
                right += (model(inputs).argmax(1) == labels).sum().item()
                judged += len(labels)
        history.append({"loss": sum(losses) / len(losses), "accuracy": right / judged})
    return history


@training.mutant(
    "records a graph while judging",
    why="""
    Nobody calls backward when the network is judged, and yet every layer saved what it would need.
    That costs memory and time, and on large validation batches it is where the memory ends. Judge
    under `torch.no_grad()`.
    """,
)
def fit(model, training, validation, optimizer, epochs):
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
        for inputs, labels in validation:
            right += (model(inputs).argmax(1) == labels).sum().item()
            judged += len(labels)
        history.append({"loss": total / seen, "accuracy": right / judged})
    return history


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

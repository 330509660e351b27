"""Chapter 10, Training: confusion, the loop, checkpoints, patience, freezing."""

import os
import tempfile

import toytorch as torch
from course.cases import call, case
from course.records import Exercise
from toytorch import nn

# -- what was taken for what ----------------------------------------------------------------------

confusion = Exercise(
    "training.confusion",
    "What was taken for what",
    chapter=10,
    minutes=8,
    prompt="""
    "97 % right" does not say what went wrong. A confusion matrix does: in row `t` and column `a` it
    has the number of examples of class `t` that were answered `a`.

    Write `confusion_matrix(answers, labels, classes)`. Both tensors hold class numbers, int64, of
    shape `(n,)`; the result is an int64 tensor of shape `(classes, classes)`, even if some class
    does not occur.

    One way without a loop: make one number of each pair, and count those with
    `.bincount(minlength=...)`. With a loop over `zip(labels.tolist(), answers.tolist())` it works,
    too.
    """,
)


@confusion.stub
def confusion_matrix(answers, labels, classes):
    """Counts: rows are what it was, columns what was answered."""
    # your code here: about 3 lines
    raise NotImplementedError


@confusion.reference
def confusion_matrix(answers, labels, classes):
    """Counts: rows are what it was, columns what was answered."""
    pairs = labels * classes + answers
    counts = pairs.bincount(minlength=classes * classes)
    return counts.reshape(classes, classes)


@confusion.mutant(
    "rows and columns exchanged",
    why="""
    The counts are right, and the matrix is lying on its side: rows are the *answers* here. Then
    "the row of the eights" shows what was called an eight, and not what became of the eights. Both
    are used in the world; here the truth goes down the rows.
    """,
)
def confusion_matrix(answers, labels, classes):
    pairs = answers * classes + labels
    return pairs.bincount(minlength=classes * classes).reshape(classes, classes)


@confusion.mutant(
    "counts each pair once",
    why="""
    `matrix[labels, answers] += 1` reads all places, adds 1, and writes them back. A pair that
    occurs a hundred times is written a hundred times with the same 1. Count the pairs
    (`bincount`), or say that writes add up: `index_put_(..., accumulate=True)`.
    """,
)
def confusion_matrix(answers, labels, classes):
    matrix = torch.zeros(classes, classes, dtype=torch.int64)
    matrix[labels, answers] += 1
    return matrix


@confusion.mutant(
    "as large as what occurs",
    why="""
    The size was taken from the largest number that happens to be there. With a small batch, or a
    class that nobody answers, the matrix is too small, and two of them cannot be added. Use
    `classes`.
    """,
)
def confusion_matrix(answers, labels, classes):
    classes = int(max(answers.max(), labels.max())) + 1
    pairs = labels * classes + answers
    return pairs.bincount(minlength=classes * classes).reshape(classes, classes)


@confusion.mutant(
    "shares instead of counts",
    why="""
    Each row was divided by its sum. Shares cannot be added up over batches, and where a class does
    not occur they are `nan`. Keep counts, and divide when you draw them.
    """,
)
def confusion_matrix(answers, labels, classes):
    pairs = labels * classes + answers
    counts = pairs.bincount(minlength=classes * classes).reshape(classes, classes)
    return counts / counts.sum(1, keepdim=True)


@confusion.check("three classes")
def _(f):
    yield call(f, torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 1, 2]), 3).gives(
        torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 1]]))


@confusion.check("the same pair many times")
def _(f):
    yield call(f, torch.tensor([1, 1, 1, 0]), torch.tensor([0, 0, 0, 1]), 2).gives(
        torch.tensor([[0, 3], [1, 0]]))


@confusion.check("classes that do not occur", hidden=True)
def _(f):
    yield call(f, torch.tensor([0, 0]), torch.tensor([0, 1]), 4).gives(
        torch.tensor([[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]))


# -- the loop -------------------------------------------------------------------------------------

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


# -- a checkpoint that is the whole state ---------------------------------------------------------

checkpoint = Exercise(
    "training.checkpoint",
    "A checkpoint from which training goes on exactly",
    chapter=10,
    minutes=15,
    prompt="""
    Training was stopped, and goes on tomorrow from a file. If the file holds **all** of the state,
    the result has the same bits as if nothing had happened. Write `Checkpoint(model, optimizer,
    scheduler, generator)`, where `generator` is what the loader shuffles with:

    * `save(path)` writes the state of all four to one file with `torch.save`,
    * `load(path)` reads it with `torch.load` and puts everything back.

    | thing | its state | and back |
    | --- | --- | --- |
    | model, optimizer, scheduler | `.state_dict()` | `.load_state_dict(…)` |
    | a generator | `.get_state()` | `.set_state(…)` |
    | the default generator, for dropout | `torch.get_rng_state()` | `torch.set_rng_state(…)` |
    """,
)


@checkpoint.stub
class Checkpoint:
    """The whole state of a training, to a file and back."""

    def __init__(self, model, optimizer, scheduler, generator):
        # your code here: one line, and two more methods
        raise NotImplementedError


@checkpoint.reference
class Checkpoint:
    """The whole state of a training, to a file and back."""

    def __init__(self, model, optimizer, scheduler, generator):
        self.parts = {"model": model, "optimizer": optimizer,
                      "scheduler": scheduler}
        self.generator = generator

    def save(self, path):
        state = {name: p.state_dict() for name, p in self.parts.items()}
        state["generator"] = self.generator.get_state()
        state["random"] = torch.get_rng_state()
        torch.save(state, path)

    def load(self, path):
        state = torch.load(path)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"])


@checkpoint.mutant(
    "forgets the optimizer",
    why="""
    Adam and momentum remember what the last gradients were like. Without their state the first
    steps after loading are those of a beginner, often large ones, and you see a bump in the loss.
    The learning rate is in there, too.
    """,
)
class Checkpoint:
    def __init__(self, model, optimizer, scheduler, generator):
        self.parts = {"model": model, "scheduler": scheduler}
        self.generator = generator

    def save(self, path):
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state["generator"] = self.generator.get_state()
        state["random"] = torch.get_rng_state()
        torch.save(state, path)

    def load(self, path):
        state = torch.load(path)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"])


@checkpoint.mutant(
    "forgets the scheduler",
    why="""
    A schedule counts epochs, and it began to count anew. The learning rate itself came back with
    the optimizer, so at first nothing is to be seen; but every later change comes too late.
    """,
)
class Checkpoint:
    def __init__(self, model, optimizer, scheduler, generator):
        self.parts = {"model": model, "optimizer": optimizer}
        self.generator = generator

    def save(self, path):
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state["generator"] = self.generator.get_state()
        state["random"] = torch.get_rng_state()
        torch.save(state, path)

    def load(self, path):
        state = torch.load(path)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"])


@checkpoint.mutant(
    "forgets the order of the data",
    why="""
    The loader's generator was not saved, so after loading the batches come in another order than
    they would have. With a freshly seeded generator it is worse: the first epoch's order comes once
    more, each time you resume.
    """,
)
class Checkpoint:
    def __init__(self, model, optimizer, scheduler, generator):
        self.parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}

    def save(self, path):
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state["random"] = torch.get_rng_state()
        torch.save(state, path)

    def load(self, path):
        state = torch.load(path)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        torch.set_rng_state(state["random"])


@checkpoint.mutant(
    "forgets the default generator",
    why="""
    Dropout draws from the default generator, and that was somewhere else after loading. All else is
    right, so training goes on well, and yet not as it would have. If you ever have to find out why
    two runs differ, you will want this last source of chance to be gone.
    """,
)
class Checkpoint:
    def __init__(self, model, optimizer, scheduler, generator):
        self.parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
        self.generator = generator

    def save(self, path):
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state["generator"] = self.generator.get_state()
        torch.save(state, path)

    def load(self, path):
        state = torch.load(path)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.generator.set_state(state["generator"])


@checkpoint.mutant(
    "saves parameters and no buffers",
    why="""
    A model is more than its parameters. Batch normalisation keeps running means and variances in
    *buffers*: nobody learns them, and without them `model.eval()` gives nonsense. `state_dict()`
    has both. (And `strict=False` is the switch that keeps such a mistake quiet.)
    """,
)
class Checkpoint:
    def __init__(self, model, optimizer, scheduler, generator):
        self.model, self.generator = model, generator
        self.parts = {"optimizer": optimizer, "scheduler": scheduler}

    def save(self, path):
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state["model"] = {name: p.detach() for name, p in self.model.named_parameters()}
        state["generator"] = self.generator.get_state()
        state["random"] = torch.get_rng_state()
        torch.save(state, path)

    def load(self, path):
        state = torch.load(path)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.model.load_state_dict(state["model"], strict=False)
        self.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"])


def _world(seed):
    """A model, optimizer, scheduler and generator as at the start of a program."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5),
                          nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    return model, optimizer, scheduler, torch.Generator().manual_seed(seed)


def _epochs(world, count):
    model, optimizer, scheduler, generator = world
    x = torch.arange(48.0).reshape(12, 4) / 48
    y = torch.arange(12) % 3
    for _ in range(count):
        for some in torch.randperm(12, generator=generator).split(4):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[some]), y[some]).backward()
            optimizer.step()
        scheduler.step()
    return world


def _resumed(f, look):
    """What `look` finds in a world after three epochs, and in another that loaded its file."""
    before = torch.get_rng_state()
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state.pt")
            world = _epochs(_world(1), 3)
            f(*world).save(path)
            there = look(world)
            other = _world(2)
            f(*other).load(path)
            return there, look(other)
    finally:
        torch.set_rng_state(before)


def _same(f, words, look):
    def agree():
        there, here = _resumed(f, look)
        return there == here

    return case(f"{words}: the same after loading?", agree).gives(True)


def _lists(state):
    return {name: value.tolist() for name, value in state.items()}


@checkpoint.check("parameters")
def _(f):
    yield _same(f, "model.parameters()", lambda world: [p.tolist() for p in world[0].parameters()])


@checkpoint.check("buffers", hidden=True)
def _(f):
    yield _same(f, "model.buffers()", lambda world: [b.tolist() for b in world[0].buffers()])


@checkpoint.check("the optimizer's memory")
def _(f):
    def momenta(world):
        state = world[1].state_dict()["state"]
        return [state[i]["momentum_buffer"].tolist() for i in sorted(state)]

    yield _same(f, "the momentum buffers", momenta)


@checkpoint.check("the schedule")
def _(f):
    yield _same(f, "scheduler.last_epoch", lambda world: world[2].last_epoch)


@checkpoint.check("the order of the data")
def _(f):
    yield _same(f, "the next order that the generator gives",
                lambda world: torch.randperm(20, generator=world[3]).tolist())


@checkpoint.check("chance")
def _(f):
    yield _same(f, "the next torch.rand(3)", lambda world: torch.rand(3).tolist())


@checkpoint.check("two more epochs, to the last bit", hidden=True)
def _(f):
    def further(world):
        return _lists(_epochs(world, 2)[0].state_dict())

    yield _same(f, "the model after two more epochs", further)


# -- patience -------------------------------------------------------------------------------------

patience = Exercise(
    "training.patience",
    "When to stop",
    chapter=10,
    minutes=10,
    prompt="""
    The validation loss falls, and one day it does not. Write `Patience(patience, min_delta=0.0)`
    with one method, `stop(loss)`, which is told the loss of each epoch and says whether to stop:

    * An epoch is an improvement if its loss is **below the best so far by more than `min_delta`**.
    * After `patience` epochs *in a row* without an improvement the answer is `True`, otherwise
      `False`.
    * Keep the best loss as `self.best`.
    * A loss of `nan` is no improvement. (Every comparison with `nan` is false. Which way around do
      you have to ask?)
    """,
)


@patience.stub
class Patience:
    """Says when a loss has not improved for too long."""

    def __init__(self, patience, min_delta=0.0):
        # your code here: two lines, and another method
        raise NotImplementedError


@patience.reference
class Patience:
    """Says when a loss has not improved for too long."""

    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited = float("inf"), 0

    def stop(self, loss):
        if loss < self.best - self.min_delta:
            self.best, self.waited = loss, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


@patience.mutant(
    "never forgives",
    why="""
    The bad epochs were counted, and a good one did not set the count back. Losses jump about; with
    enough epochs every training would be stopped. Only epochs *in a row* count: begin anew at each
    improvement.
    """,
)
class Patience:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited = float("inf"), 0

    def stop(self, loss):
        if loss < self.best - self.min_delta:
            self.best = loss
        else:
            self.waited += 1
        return self.waited >= self.patience


@patience.mutant(
    "compares with the last epoch",
    why="""
    A loss was called better when it was below that of the epoch *before*. After a bad jump it can
    improve for a long time and still be worse than the best. Compare with the best so far.
    """,
)
class Patience:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited = float("inf"), 0

    def stop(self, loss):
        if loss < self.best - self.min_delta:
            self.waited = 0
        else:
            self.waited += 1
        self.best = loss
        return self.waited >= self.patience


@patience.mutant(
    "one epoch too late",
    why="""
    It stopped after `patience + 1` bad epochs. With a patience of 2, the second bad epoch in a row
    is the last: `waited >= patience`.
    """,
)
class Patience:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited = float("inf"), 0

    def stop(self, loss):
        if loss < self.best - self.min_delta:
            self.best, self.waited = loss, 0
        else:
            self.waited += 1
        return self.waited > self.patience


@patience.mutant(
    "any improvement will do",
    why="""
    `min_delta` was not asked. A loss that creeps down by a millionth each epoch then trains for
    ever. An improvement has to be *more* than `min_delta`.
    """,
)
class Patience:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited = float("inf"), 0

    def stop(self, loss):
        if loss < self.best:
            self.best, self.waited = loss, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


@patience.mutant(
    "equal is good enough",
    why="""
    A loss that stays exactly the same was taken for an improvement. A network whose gradients have
    died gives the same loss for ever, and it is the very case that should be stopped. Ask `<`, not
    `<=`.
    """,
)
class Patience:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited = float("inf"), 0

    def stop(self, loss):
        if loss <= self.best - self.min_delta:
            self.best, self.waited = loss, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


@patience.mutant(
    "nan looks like an improvement",
    why="""
    The question was "is it worse?", and everything else was an improvement. `nan` is not worse,
    since every comparison with it is false, so a training that has gone to pieces went on. Ask "is
    it better?" instead.
    """,
)
class Patience:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited = float("inf"), 0

    def stop(self, loss):
        if loss >= self.best - self.min_delta:
            self.waited += 1
        else:
            self.best, self.waited = loss, 0
        return self.waited >= self.patience


def _stops(f, losses, *args, **kwargs):
    words = ", ".join([*map(repr, args), *(f"{k}={v}" for k, v in kwargs.items())])

    def answers():
        judge = f(*args, **kwargs)
        return [bool(judge.stop(loss)) for loss in losses]

    return case(f"Patience({words}).stop(…) for the losses {losses}", answers)


@patience.check("a loss that falls")
def _(f):
    yield _stops(f, [3.0, 2.0, 1.0], 2).gives([False, False, False])
    yield _stops(f, [3.0, 2.0, 2.5, 2.2], 2).gives([False, False, False, True])


@patience.check("in a row")
def _(f):
    yield _stops(f, [3.0, 4.0, 2.0, 3.0, 1.0], 2).gives([False] * 5)


@patience.check("the best so far")
def _(f):
    yield _stops(f, [3.0, 9.0, 8.0, 7.0], 3).gives([False, False, False, True])

    def best():
        judge = f(5)
        for loss in (3.0, 1.0, 2.0):
            judge.stop(loss)
        return judge.best

    yield case("patience.best, after the losses 3, 1 and 2", best).gives(1.0)


@patience.check("min_delta, and no change at all")
def _(f):
    yield _stops(f, [1.0, 0.99, 0.98], 2, min_delta=0.05).gives([False, False, True])
    yield _stops(f, [1.0, 1.0, 1.0], 2).gives([False, False, True])


@patience.check("not a number", hidden=True)
def _(f):
    nan = float("nan")
    yield _stops(f, [1.0, nan, nan], 2).gives([False, False, True])


# -- freezing -------------------------------------------------------------------------------------

freezing = Exercise(
    "training.freeze",
    "Freeze the rest",
    chapter=10,
    minutes=10,
    prompt="""
    Somebody has trained a network on a lot of data. You have little data and another question, so
    you keep what it has learned and train only one part anew.

    Write `freeze(model, keep)`. Of the model's direct parts (`model.named_children()`, pairs of
    name and module), the one called exactly `keep` stays trainable. All others are frozen:

    * their parameters want no gradient (`module.requires_grad_(False)`),
    * and they are in evaluation mode (`module.eval()`), because batch normalisation changes its
      running statistics in training mode, gradient or not.

    Return the list of the parameters that are still to be trained, for an optimizer.
    """,
)


@freezing.stub
def freeze(model, keep):
    """Freeze all parts but one; the parameters left to train."""
    # your code here: about 5 lines
    raise NotImplementedError


@freezing.reference
def freeze(model, keep):
    """Freeze all parts but one; the parameters left to train."""
    for name, part in model.named_children():
        if name != keep:
            part.requires_grad_(False)
            part.eval()
    return [p for p in model.parameters() if p.requires_grad]


@freezing.mutant(
    "batch normalisation goes on",
    why="""
    Its parameters want no gradient any more, and the running mean is no parameter: in training mode
    it moves with every batch, so the frozen part still changes. Put it into evaluation mode as
    well.
    """,
)
def freeze(model, keep):
    for name, part in model.named_children():
        if name != keep:
            part.requires_grad_(False)
    return [p for p in model.parameters() if p.requires_grad]


@freezing.mutant(
    "puts everything to sleep",
    why="""
    `model.eval()` reaches the part that is to be trained as well, and its dropout does nothing any
    more. Only the frozen parts go into evaluation mode.
    """,
)
def freeze(model, keep):
    for name, part in model.named_children():
        if name != keep:
            part.requires_grad_(False)
    model.eval()
    return [p for p in model.parameters() if p.requires_grad]


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


@freezing.mutant(
    "takes a part of a name for the name",
    why="""
    `keep in name` asks whether the letters occur somewhere in the name. With `keep="head"`, a part
    called `overhead` stays trainable as well. Ask for equality.
    """,
)
def freeze(model, keep):
    for name, part in model.named_children():
        if keep not in name:
            part.requires_grad_(False)
            part.eval()
    return [p for p in model.parameters() if p.requires_grad]


@freezing.mutant(
    "hands out the frozen ones as well",
    why="""
    All parameters were returned. An optimizer keeps state for each parameter it has, and people
    print that list to see how much is being trained. Return only those that want a gradient.
    """,
)
def freeze(model, keep):
    for name, part in model.named_children():
        if name != keep:
            part.requires_grad_(False)
            part.eval()
    return list(model.parameters())


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

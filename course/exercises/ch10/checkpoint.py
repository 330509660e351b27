"""A checkpoint from which training goes on exactly."""

import os
import tempfile

import toytorch as torch
from course.cases import case
from course.records import Exercise
from toytorch import nn

checkpoint = Exercise(
    "training.checkpoint",
    "A checkpoint from which training goes on exactly",
    chapter=10,
    minutes=12,
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

    Saving changes nothing: training goes on after it as it would have without. A file that is there
    already is replaced. A file that does not fit the model is an error.
    """,
    hints=(
        """
        Make one dictionary of everything that changes while training goes on, and hand that to
        `torch.save`. `load` reads the same dictionary and puts each part back into the object it came from.
        Two parts are generators: the loader's, and the default one.
        """,
        """
        What the dictionary holds after three epochs of a small network, and what is lost without each part:

        | key | what it holds | without it |
        | --- | --- | --- |
        | `"model"` | weights, biases, running means | the network is as new |
        | `"optimizer"` | momentum of each parameter, learning rate | the first steps are those of a fresh optimizer |
        | `"scheduler"` | `last_epoch = 3` | the rate falls three epochs too late |
        | `"generator"` | the state of the loader's generator | the batches come in another order |
        | `"random"` | `torch.get_rng_state()` | dropout draws other masks |

        `load` goes through the same five rows: `load_state_dict` three times, `set_state`, and
        `torch.set_rng_state`.
        """,
        """
        ```python
        class Checkpoint:
            def __init__(self, model, optimizer, scheduler, generator):
                self.parts = ...  # all that has a state_dict, by name
                self.generator = generator

            def save(self, path):
                state = {name: ... for name, p in self.parts.items()}
                state["generator"] = ...
                state["random"] = ...
                torch.save(state, path)

            def load(self, path):
                state = torch.load(path)
                for name, part in self.parts.items():
                    ...
                ...
        ```
        """,
    ),
)


@checkpoint.reference(stub={
    "__init__": "your code here: one line, and two more methods",
    "save": "",
    "load": "",
})
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


checkpoint.changed(
    "forgets the optimizer",
    """
    Adam and momentum remember what the last gradients were like. Without their state the first
    steps after loading are those of a new optimizer. They are often large, and the loss rises for a
    while. The learning rate is in there, too.
    """,
    (
        '        self.parts = {"model": model, "optimizer": optimizer,\n'
        '                      "scheduler": scheduler}',
        '        self.parts = {"model": model, "scheduler": scheduler}',
    ),
)

checkpoint.changed(
    "forgets the scheduler",
    """
    A schedule counts epochs, and it began to count anew. The learning rate itself came back with
    the optimizer, so at first there is no difference. But every later change comes too late.
    """,
    (
        '        self.parts = {"model": model, "optimizer": optimizer,\n'
        '                      "scheduler": scheduler}',
        '        self.parts = {"model": model, "optimizer": optimizer}',
    ),
)

checkpoint.changed(
    "forgets the order of the data",
    """
    The loader's generator was not saved, so after loading the batches come in another order than
    they would have. With a freshly seeded generator it is worse: the first epoch's order comes once
    more, each time you resume.
    """,
    (
        '        self.parts = {"model": model, "optimizer": optimizer,\n'
        '                      "scheduler": scheduler}\n'
        "        self.generator = generator",
        '        self.parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}',
    ),
    ('        state["generator"] = self.generator.get_state()\n', ""),
    ('        self.generator.set_state(state["generator"])\n', ""),
)

checkpoint.changed(
    "forgets the default generator",
    """
    Dropout draws from the default generator, and that was somewhere else after loading. Everything
    else is right, so training goes on well, but not as it would have without the break. Then two
    runs cannot be compared bit by bit.
    """,
    ('        state["random"] = torch.get_rng_state()\n', ""),
    (
        "\n"
        '        torch.set_rng_state(state["random"])',
        "",
    ),
)

checkpoint.changed(
    "saves parameters and no buffers",
    """
    A model is more than its parameters. Batch normalisation keeps running means and variances in
    *buffers*: they are not learned, and without them the results in evaluation are wrong.
    `state_dict()` has both. (With `strict=False` such a mistake raises no error.)
    """,
    (
        '        self.parts = {"model": model, "optimizer": optimizer,\n'
        '                      "scheduler": scheduler}\n'
        "        self.generator = generator",
        "        self.model, self.generator = model, generator\n"
        '        self.parts = {"optimizer": optimizer, "scheduler": scheduler}',
    ),
    (
        '        state["generator"] = self.generator.get_state()',
        '        state["model"] = {name: p.detach() for name, p in self.model.named_parameters()}\n'
        '        state["generator"] = self.generator.get_state()',
    ),
    (
        '        self.generator.set_state(state["generator"])',
        '        self.model.load_state_dict(state["model"], strict=False)\n'
        '        self.generator.set_state(state["generator"])',
    ),
)


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


checkpoint.changed(
    "loads whatever fits",
    """
    The model was loaded with `strict=False`: names that are missing or unexpected are passed over.
    A checkpoint of another network is then loaded without an error, and what did not fit stays
    random.
    """,
    (
        "            part.load_state_dict(state[name])",
        "            options = {'strict': False} if name == 'model' else {}\n"
        "            part.load_state_dict(state[name], **options)",
    ),
)

checkpoint.changed(
    "saving switches to evaluation",
    """
    `save` called `model.eval()`. Training goes on after saving, now without dropout and with frozen
    batch norms. Saving should change nothing.
    """,
    (
        "        torch.save(state, path)",
        "        self.parts['model'].eval()\n        torch.save(state, path)",
    ),
)

@checkpoint.check("saving changes nothing, and replaces what is there")
def _(f):
    def undisturbed(save):
        before = torch.get_rng_state()
        try:
            with tempfile.TemporaryDirectory() as folder:
                world = _epochs(_world(1), 1)
                if save:
                    f(*world).save(os.path.join(folder, "state.pt"))
                return _lists(_epochs(world, 1)[0].state_dict())
        finally:
            torch.set_rng_state(before)

    yield case("two epochs, saved in between: the same network as without saving?",
               lambda: undisturbed(True) == undisturbed(False)).gives(True)

    def twice():
        before = torch.get_rng_state()
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "state.pt")
                world = _world(1)
                f(*world).save(path)
                _epochs(world, 2)
                f(*world).save(path)
                other = _world(2)
                f(*other).load(path)
                return other[2].last_epoch
        finally:
            torch.set_rng_state(before)

    yield case("saved after 0 and after 2 epochs, to one path; scheduler.last_epoch, loaded",
               twice).gives(2)


@checkpoint.check("the file, and nothing but the file", hidden=True)
def _(f):
    def moved():
        before = torch.get_rng_state()
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "state.pt")
                world = _epochs(_world(1), 1)
                f(*world).save(path)
                os.rename(path, path + ".moved")
                other = _world(2)
                f(*other).load(path + ".moved")
                return other[2].last_epoch
        finally:
            torch.set_rng_state(before)

    yield case("the file is renamed before it is loaded; scheduler.last_epoch", moved).gives(1)

    def another():
        before = torch.get_rng_state()
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "state.pt")
                world = _world(1)
                f(*world).save(path)
                model = nn.Sequential(*world[0], nn.Linear(3, 3))
                f(model, *world[1:]).load(path)
        finally:
            torch.set_rng_state(before)

    yield case("the file of another model, which lacks a layer", another).raises(RuntimeError)

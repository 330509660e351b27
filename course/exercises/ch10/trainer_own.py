"""A trainer for the learner's own package."""

import contextlib

import numpy as np

from course.cases import case
from course.properties import agrees
from course.records import Exercise
from mytorch.adam import AdamW
from mytorch.linear import Linear
from mytorch.loader import Loader
from mytorch.module import Module
from mytorch.tensor import Tensor

own_trainer = Exercise(
    "training.package",
    "A trainer for your package",
    chapter=10,
    minutes=50,
    prompt="""
    A class `Trainer` that trains a network of your package with everything that this chapter asks
    of a training loop. It is given a `Module`, a function `loss(results, wanted)` that gives a
    `Tensor`, your `AdamW` and your `Loader`, which yields pairs (inputs, wanted) of arrays.

    1. **Step.** `step(inputs, wanted)` makes one step on a batch and returns its loss as a number.
       With a `schedule` it first calls `optimizer.set_rate(schedule(steps))`, where `steps` counts
       the steps made so far. The network gets `Tensor(inputs)`. A loss that is NaN or infinite is a
       `FloatingPointError`, and then no parameter has moved and no gradient has changed.
    2. **Clip.** With `clip`, all gradients together have at most this norm, the root of the sum of
       all squares: if it is larger, each is replaced by itself times `clip` / norm. `shorten()`
       does this between `backward` and the optimizer's step, and returns the norm before it.
       A parameter without gradient stays without.
    3. **Evaluate.** `evaluate(batches)` gives the mean loss *of an example*: batches may differ in
       size. The whole network is in evaluation mode meanwhile. Afterwards each of its modules has the
       mode that it had before, also after an error.
    4. **Fit.** `fit(epochs, held=None)` goes over the loader once an epoch, and adds to `history` the
       mean loss of an example in this epoch's steps. With the batches `held` it adds the pair of this
       and `evaluate(held)`.

       An epoch with a smaller value of `held` than ever before is the best so far: its parameters are
       kept. After `patience` epochs in a row that are not the best, training ends. When `fit` ends, the
       network has the parameters that were kept.
    5. **State.** `state_dict()` holds the states of model, optimizer and loader, and what else is
       needed to go on: `load_state_dict` in a trainer made anew goes on exactly as the first one does.

    A trace of `fit(9, held)` with `patience=2`:

    | epoch | 1 | 2 | 3 | 4 | 5 | 6 |
    | --- | --- | --- | --- | --- | --- | --- |
    | value of `held` | 0.9 | 0.5 | 0.6 | 0.4 | 0.4 | 0.7 |
    | the best so far | 0.9 | 0.5 | 0.5 | 0.4 | 0.4 | 0.4 |
    | not the best, in a row | 0 | 0 | 1 | 0 | 1 | 2: the end |

    The network ends with the parameters of epoch 4.
    """,
    without=("toytorch.trainer.Trainer", "torch.nn.utils.clip_grad_norm_"),
    hints=(
        """
        Write the five methods in the order of the stages; each is about ten lines, and uses those before it.
        Wherever a mean is taken over batches, add up loss · size and the sizes, and divide at the end. What a
        trainer needs to go on is what it *changes*: the number of steps, the best value, how long it has
        waited, what it kept, and the history.
        """,
        """
        Two parameters with gradients [3, 0] and [4], `clip=1`: the norm is √(9 + 0 + 16) = 5, so each is
        multiplied by 1/5: [0.6, 0] and [0.8]. `shorten()` returns 5.

        `evaluate` of two batches, 3 examples with a mean loss of 1.0 and 1 example with 3.0:

        | | loss · size | sizes |
        | --- | --- | --- |
        | first | 3.0 | 3 |
        | second | 6.0 | 4 |
        | result | 6.0 / 4 = 1.5 | |

        The mean of the batches' means would be 2, as if the last example counted three times.

        A part in evaluation mode that training must not wake (a frozen batch norm): its module is noted as
        (module, False) before, `eval()` sets all to False, and then each gets its noted mode back. With
        `train()` it would be woken.
        """,
        """
        ```python
        class Trainer:
            def __init__(
                self, model, loss, optimizer, loader,
                patience=None, clip=None, schedule=None,
            ):
                self.model, self.loss = model, loss
                self.optimizer, self.loader = optimizer, loader
                self.patience, self.clip, self.schedule = patience, clip, schedule
                self.steps, self.waited, self.best = 0, 0, float("inf")
                self.kept, self.history = None, []

            def step(self, inputs, wanted):
                if self.schedule is not None:
                    ...
                loss = ...
                if not np.isfinite(loss.data):
                    raise FloatingPointError(f"step {self.steps}: {loss.data}")
                ...
                self.steps += 1
                return float(loss.data)

            def shorten(self):
                some = ...  # the parameters with a gradient
                norm = ...
                if self.clip is not None and norm > self.clip:
                    for p in some:
                        ...
                return float(norm)

            def evaluate(self, batches):
                modes = ...  # (part, mode), of the whole tree
                total, count = 0.0, 0
                try:
                    self.model.eval()
                    for inputs, wanted in batches:
                        loss = ...
                        total += ...
                        count += ...
                finally:
                    for part, mode in modes:
                        ...
                return total / count

            def fit(self, epochs, held=None):
                for _ in range(epochs):
                    total, count = 0.0, 0
                    for inputs, wanted in self.loader:
                        total += ...
                        count += ...
                    if held is None:
                        self.history.append(total / count)
                        continue
                    value = ...
                    self.history.append((total / count, value))
                    if ...:
                        self.best, self.waited = ...
                        self.kept = ...
                    else:
                        self.waited += 1
                    if ...:
                        break
                if self.kept is not None:
                    ...

            def state_dict(self):
                return {
                    "model": self.model.state_dict(),
                    "optimizer": ...,
                    "loader": ...,
                    "steps": ...,
                    "waited": ...,
                    "best": self.best,
                    "kept": self.kept,
                    "history": ...,
                }

            def load_state_dict(self, state):
                self.model.load_state_dict(state["model"])
                ...
                self.best, self.kept = state["best"], state["kept"]
                self.history = ...
        ```
        """,
    ),
)


@own_trainer.reference(stub={
    "step": "stage 1, your code here: about 11 lines",
    "shorten": "stage 2, your code here: about 6 lines",
    "evaluate": "stage 3, your code here: about 12 lines",
    "fit": "stage 4, your code here: about 19 lines",
    "state_dict": "stage 5, your code here: about 10 lines",
    "load_state_dict": "stage 5, your code here: about 6 lines",
})
class Trainer:
    """Trains a network: steps, validation, early stopping, checkpoints."""

    def __init__(
        self, model, loss, optimizer, loader,
        patience=None, clip=None, schedule=None,
    ):
        self.model, self.loss = model, loss
        self.optimizer, self.loader = optimizer, loader
        self.patience, self.clip, self.schedule = patience, clip, schedule
        self.steps, self.waited, self.best = 0, 0, float("inf")
        self.kept, self.history = None, []

    def step(self, inputs, wanted):
        """One step on a batch; its loss."""
        if self.schedule is not None:
            self.optimizer.set_rate(self.schedule(self.steps))
        loss = self.loss(self.model(Tensor(inputs)), wanted)
        if not np.isfinite(loss.data):
            raise FloatingPointError(f"step {self.steps}: {loss.data}")
        self.optimizer.zero_grad()
        loss.backward()
        self.shorten()
        self.optimizer.step()
        self.steps += 1
        return float(loss.data)

    def shorten(self):
        """Gradients of at most the norm `clip`; the norm before."""
        some = [p for p in self.model.parameters() if p.grad is not None]
        norm = np.sqrt(sum((p.grad * p.grad).sum() for p in some))
        if self.clip is not None and norm > self.clip:
            for p in some:
                p.grad = p.grad * (self.clip / norm)
        return float(norm)

    def evaluate(self, batches):
        """The mean loss of an example, in evaluation mode."""
        modes = [(part, part.training) for part in self.model.modules()]
        total, count = 0.0, 0
        try:
            self.model.eval()
            for inputs, wanted in batches:
                loss = self.loss(self.model(Tensor(inputs)), wanted)
                total += float(loss.data) * len(wanted)
                count += len(wanted)
        finally:
            for part, mode in modes:
                part.training = mode
        return total / count

    def fit(self, epochs, held=None):
        """Epochs of steps, and the best parameters at the end."""
        for _ in range(epochs):
            total, count = 0.0, 0
            for inputs, wanted in self.loader:
                total += self.step(inputs, wanted) * len(wanted)
                count += len(wanted)
            if held is None:
                self.history.append(total / count)
                continue
            value = self.evaluate(held)
            self.history.append((total / count, value))
            if value < self.best:
                self.best, self.waited = value, 0
                self.kept = self.model.state_dict()
            else:
                self.waited += 1
            if self.patience is not None and self.waited >= self.patience:
                break
        if self.kept is not None:
            self.model.load_state_dict(self.kept)

    def state_dict(self):
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "loader": self.loader.state_dict(),
            "steps": self.steps,
            "waited": self.waited,
            "best": self.best,
            "kept": self.kept,
            "history": list(self.history),
        }

    def load_state_dict(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.loader.load_state_dict(state["loader"])
        self.steps, self.waited = state["steps"], state["waited"]
        self.best, self.kept = state["best"], state["kept"]
        self.history = list(state["history"])


own_trainer.changed(
    "gradients of the step before are added",
    """
    `backward` adds to what is in `grad`. Without `zero_grad` before it, each step goes along the sum of
    all gradients so far.
    """,
    ("        self.optimizer.zero_grad()\n", ""),
)

own_trainer.changed(
    "the gradients are cleared after backward",
    """
    `zero_grad` came between `backward` and the step, so the optimizer found no gradient and moved
    nothing. Clear first, then go backward.
    """,
    (
        "        self.optimizer.zero_grad()\n        loss.backward()\n",
        "        loss.backward()\n        self.optimizer.zero_grad()\n",
    ),
)

own_trainer.changed(
    "looks at the loss after the step",
    """
    A NaN was reported when it had already gone into every parameter. Look at the loss before anything
    is changed, so that the network of the step before can be saved.
    """,
    (
        "        if not np.isfinite(loss.data):\n"
        '            raise FloatingPointError(f"step {self.steps}: {loss.data}")\n',
        "",
    ),
    (
        "        self.steps += 1\n",
        "        if not np.isfinite(loss.data):\n"
        '            raise FloatingPointError(f"step {self.steps}: {loss.data}")\n'
        "        self.steps += 1\n",
    ),
)

own_trainer.changed(
    "the schedule counts from 1",
    """
    The step was counted before the schedule was asked. In the first step `steps` is 0: a warm-up of n steps
    begins there.
    """,
    ("self.schedule(self.steps)", "self.schedule(self.steps + 1)"),
)

own_trainer.changed(
    "each gradient is clipped by itself",
    """
    A norm for each parameter changes the direction of the whole step: large gradients shrink and small
    ones stay. One norm over all of them, and one factor for all, keeps the direction.
    """,
    (
        "p.grad = p.grad * (self.clip / norm)",
        "p.grad = p.grad * min(1.0, self.clip / np.sqrt((p.grad * p.grad).sum()))",
    ),
)

own_trainer.changed(
    "makes small gradients larger",
    """
    The factor `clip` / norm was used also where the norm is below `clip`. There it is more than 1, and
    every step becomes as long as the longest that is allowed.
    """,
    ("if self.clip is not None and norm > self.clip:", "if self.clip is not None:"),
)

own_trainer.changed(
    "clips after the step",
    """
    The optimizer had stepped by the long gradients already. Clip between `backward` and `step`.
    """,
    (
        "        self.shorten()\n        self.optimizer.step()\n",
        "        self.optimizer.step()\n        self.shorten()\n",
    ),
)

own_trainer.changed(
    "the mean of the batches' means",
    """
    The last batch is usually smaller. Its mean then counts as much as that of a full one, and its
    examples more than the others. Add up loss · size, and divide by the number of examples.
    """,
    ("total += float(loss.data) * len(wanted)", "total += float(loss.data)"),
    (
        "                count += len(wanted)\n        finally:",
        "                count += 1\n        finally:",
    ),
)

own_trainer.changed(
    "evaluates in training mode",
    """
    Dropout drops and batch norm learns from the examples that are meant for measuring. `model.eval()`
    comes first.
    """,
    ("            self.model.eval()\n", ""),
)

own_trainer.changed(
    "wakes what was frozen",
    """
    After measuring, the whole network was set to training. A part that was in evaluation mode on purpose, a
    frozen batch norm for example, trains from then on. Note each module's mode, and give it back.
    """,
    (
        "            for part, mode in modes:\n                part.training = mode\n",
        "            self.model.train()\n",
    ),
)

own_trainer.changed(
    "an error leaves the network in evaluation mode",
    """
    The modes were put back after the loop. An error in the loop jumps over that, and whoever catches it
    goes on training in evaluation mode. `finally` runs in both cases.
    """,
    ("        finally:\n", "        except ZeroDivisionError:\n            pass\n        if count:\n"),
)

own_trainer.changed(
    "keeps the network instead of a copy",
    """
    What was kept were the network's own tensors, and the next steps change them. So the "best" network is
    always the last one. `state_dict()` makes copies.
    """,
    (
        "self.kept = self.model.state_dict()",
        "self.kept = dict(self.model.named_parameters())",
    ),
    (
        "            self.model.load_state_dict(self.kept)\n",
        "            self.model.load_state_dict({n: p.data for n, p in self.kept.items()})\n",
    ),
)

own_trainer.changed(
    "an equal value is an improvement",
    """
    With `<=` a value that does not change counts as the best again and again, and a training that stands
    still never ends. The best has to be smaller than everything before.
    """,
    ("if value < self.best:", "if value <= self.best:"),
)

own_trainer.changed(
    "compares with the epoch before",
    """
    The value was compared with the last one. A slow climb with small dips in it then goes on for ever, and the
    last dip is kept. Compare with the best of all epochs.
    """,
    (
        "            else:\n                self.waited += 1\n",
        "            else:\n                self.waited += 1\n                self.best = value\n",
    ),
)

own_trainer.changed(
    "waits for bad epochs in all, not in a row",
    """
    A new best did not set the count back to 0. Two bad epochs far apart then end a training that is
    getting better all the time.
    """,
    ("self.best, self.waited = value, 0", "self.best = value"),
)

own_trainer.changed(
    "ends with the last parameters",
    """
    The best parameters were kept and not put back. After `patience` epochs without improvement the last ones
    are usually worse.
    """,
    ("        if self.kept is not None:\n            self.model.load_state_dict(self.kept)\n", ""),
)

own_trainer.changed(
    "the step count is not in the state",
    """
    The schedule depends on the number of steps. Without it, a training that goes on begins with the warm-up
    again.
    """,
    ('            "steps": self.steps,\n', ""),
    ('self.steps, self.waited = state["steps"], state["waited"]', 'self.waited = state["waited"]'),
)

own_trainer.changed(
    "the best value is not in the state",
    """
    The first epoch after the break is then the best so far, whatever it gives, and takes the place of
    what was kept.
    """,
    ('            "best": self.best,\n', ""),
    ('self.best, self.kept = state["best"], state["kept"]', 'self.kept = state["kept"]'),
)

own_trainer.changed(
    "the optimizer begins anew",
    """
    The averages of the optimizer belong to the training as much as the parameters. Without them the first
    steps after the break are other steps.
    """,
    ('            "optimizer": self.optimizer.state_dict(),\n', ""),
    ('        self.optimizer.load_state_dict(state["optimizer"])\n', ""),
)

own_trainer.changed(
    "the loader begins anew",
    """
    Without the loader's state, the epochs after the break have the orders of the first ones again.
    """,
    ('            "loader": self.loader.state_dict(),\n', ""),
    ('        self.loader.load_state_dict(state["loader"])\n', ""),
)

own_trainer.changed(
    "the saved history goes on growing",
    """
    The state holds the trainer's own list, and `fit` appends to it. A checkpoint must not change when the
    training goes on: copy the list.
    """,
    ('"history": list(self.history)', '"history": self.history'),
    ('self.history = list(state["history"])', 'self.history = state["history"]'),
)


class _Pairs:
    """Inputs (2,) and the number that each is to give."""

    def __init__(self, count, seed=0):
        draw = np.random.default_rng(seed)
        self.inputs = draw.normal(size=(count, 2)).round(2)
        self.wanted = (self.inputs @ [1.0, -2.0] + 0.5).round(2)

    def __len__(self):
        return len(self.wanted)

    def __getitem__(self, i):
        return self.inputs[i], float(self.wanted[i])


class _Part(Module):
    """Twice its input in training, and the input itself in evaluation."""

    def forward(self, x):
        return x * 2.0 if self.training else x


class _Network(Module):
    def __init__(self):
        self.layer = Linear(2, 1, seed=4)
        self.part = _Part()
        self.spare = Linear(2, 1, seed=5)  # has no share in the result, so no gradient

    def forward(self, x):
        return self.part(self.layer(x))


def _squares(results, wanted):
    difference = results - np.reshape(wanted, (-1, 1))
    return (difference * difference).mean()


def _trainer(kind, *, lr=0.1, count=10, size=4, **options):
    network = _Network()
    optimizer = AdamW(network.parameters(), lr=lr)
    loader = Loader(_Pairs(count), batch_size=size, shuffle=True, seed=2)
    return kind(network, _squares, optimizer, loader, **options)


def _weights(trainer):
    return [p.data.round(9).tolist() for p in trainer.model.parameters()]


def _gradients(trainer):
    grads = [p.grad for p in trainer.model.parameters()]
    return [None if g is None else g.round(9).tolist() for g in grads]


def _batch(n=0):
    data = _Pairs(4, seed=n)
    return data.inputs, data.wanted


def _share(step):
    return 1.0 / (1 + step)


def _three(kind, **options):
    """The losses and weights of three steps."""
    trainer = _trainer(kind, **options)
    losses = [trainer.step(*_batch(n)) for n in range(3)]
    return losses, _weights(trainer), _gradients(trainer), trainer.steps


@own_trainer.check("1 · a step")
def _(Trainer):
    for told, options in (("", {}), (" with schedule 1 / (1 + step)", {"schedule": _share})):
        yield case(
            f"three steps{told}: losses, weights, gradients, and how many steps",
            lambda options=options: _three(Trainer, **options),
        ).as_by(lambda options=options: _three(own_trainer.answer.value, **options))
    yield case(
        "the type of a loss", lambda: type(_trainer(Trainer).step(*_batch())).__name__
    ).gives("float")

    def broken(kind, value):
        trainer = _trainer(kind)
        trainer.step(*_batch())
        before = _weights(trainer), _gradients(trainer)
        inputs, wanted = _batch()
        wanted = np.where(np.arange(4) == 2, value, wanted)
        try:
            trainer.step(inputs, wanted)
        except FloatingPointError:
            return "FloatingPointError", (_weights(trainer), _gradients(trainer)) == before
        return "no error", (_weights(trainer), _gradients(trainer)) == before

    for value in (np.nan, np.inf):
        yield case(
            f"a step with {value} in it: the error, and are weights and gradients as before?",
            lambda value=value: broken(Trainer, value),
        ).gives(("FloatingPointError", True))


@own_trainer.check("2 · clip")
def _(Trainer):
    def shortened(clip):
        trainer = _trainer(Trainer, clip=clip)
        first, second, *_ = trainer.model.parameters()
        first.grad, second.grad = np.array([[3.0], [0.0]]), np.array([4.0])
        return trainer.shorten(), _gradients(trainer)

    for clip, first, second in ((1.0, 0.6, 0.8), (10.0, 3.0, 4.0), (None, 3.0, 4.0), (2.5, 1.5, 2.0)):
        yield case(
            f"gradients [[3], [0]], [4], None and None with clip={clip}: the norm, the gradients",
            lambda clip=clip: shortened(clip),
        ).gives((5.0, [[[first], [0.0]], [second], None, None]))
    yield case(
        "three steps with clip=0.5", lambda: _three(Trainer, clip=0.5)
    ).as_by(lambda: _three(own_trainer.answer.value, clip=0.5))


def _modes(trainer):
    return [module.training for module in trainer.model.modules()]


@own_trainer.check("3 · evaluate")
def _(Trainer):
    def value(kind, sizes):
        trainer = _trainer(kind)
        data, begin, batches = _Pairs(sum(sizes)), 0, []
        for size in sizes:
            batches.append((data.inputs[begin : begin + size], data.wanted[begin : begin + size]))
            begin += size
        return trainer.evaluate(batches)

    for sizes in ((4,), (3, 1), (5, 4, 2)):
        yield case(
            f"batches of {', '.join(map(str, sizes))}", lambda sizes=sizes: value(Trainer, sizes)
        ).as_by(lambda sizes=sizes: value(own_trainer.answer.value, sizes))

    def modes(fails):
        trainer = _trainer(Trainer)
        trainer.model.part.training = False
        before = _modes(trainer)
        inside = []

        def loss(results, wanted):
            inside.append(any(_modes(trainer)))
            if fails:
                raise RuntimeError("no loss")
            return _squares(results, wanted)

        trainer.loss = loss
        with contextlib.suppress(RuntimeError):
            trainer.evaluate([_batch()])
        return inside, _modes(trainer) == before

    for fails, told in ((False, ""), (True, ", with an error in the loss")):
        yield case(
            f"a part in evaluation mode{told}: does anything train meanwhile, are the modes as before?",
            lambda fails=fails: modes(fails),
        ).gives(([False], True))
    yield case(
        "the weights after evaluate, are they as before?",
        lambda: (lambda t: (_weights(t), t.evaluate([_batch()]), _weights(t)))(_trainer(Trainer)),
    ).holds("the same", lambda got: got[0] == got[2])


def _scripted(kind, values, epochs, patience):
    """A fit whose held-out values are given: history, and which epoch's weights are left."""
    trainer = _trainer(kind, patience=patience)
    rest, after = iter(values), []

    def evaluate(batches):
        after.append(_weights(trainer))
        return next(rest)

    trainer.evaluate = evaluate
    trainer.fit(epochs, held=[_batch()])
    ends = [n + 1 for n, weights in enumerate(after) if weights == _weights(trainer)]
    return [value for _, value in trainer.history], ends


def _kept(kind):
    """Whether what was kept is what the network had after the best epoch."""
    trainer = _trainer(kind)
    rest, after = iter((0.9, 0.5, 0.6)), []

    def evaluate(batches):
        after.append(_weights(trainer))
        return next(rest)

    trainer.evaluate = evaluate
    trainer.fit(3, held=[_batch()])
    kept = [v.data if isinstance(v, Tensor) else v for v in trainer.kept.values()]
    return [array.round(9).tolist() for array in kept] == after[1]


def _paused(kind, values, patience, first, broken):
    """A scripted fit in two parts, the second one by a trainer that loaded the state."""
    trainers = [_trainer(kind, patience=patience) for _ in range(2)]
    rest = iter(values)
    for trainer in trainers:
        trainer.evaluate = lambda batches: next(rest)
    trainers[0].fit(first, held=[_batch()])
    if broken:
        trainers[1].load_state_dict(trainers[0].state_dict())
    last = trainers[broken]
    last.fit(len(values) - first, held=[_batch()])
    return [value for _, value in last.history], last.best, _weights(last)


def _told(values, epochs, patience):
    return (
        f"values {', '.join(map(str, values))}, fit({epochs}) with patience={patience}: those that "
        "were used, and the epoch whose parameters are left"
    )


@own_trainer.check("4 · fit")
def _(Trainer):
    def plain(kind):
        trainer = _trainer(kind)
        trainer.fit(3)
        return trainer.history, _weights(trainer)

    def held(kind):
        trainer = _trainer(kind, lr=0.5, patience=2)
        trainer.fit(12, held=Loader(_Pairs(7, seed=9), batch_size=4))
        return trainer.history, _weights(trainer), _modes(trainer)

    yield case("three epochs of 10 examples in batches of 4", lambda: plain(Trainer)).as_by(
        lambda: plain(own_trainer.answer.value)
    )
    yield case(
        _told((0.9, 0.5, 0.6, 0.4, 0.4, 0.7, 0.1), 9, 2),
        lambda: _scripted(Trainer, (0.9, 0.5, 0.6, 0.4, 0.4, 0.7, 0.1), 9, 2),
    ).gives(([0.9, 0.5, 0.6, 0.4, 0.4, 0.7], [4]))
    yield case(
        "values 0.9, 0.5, 0.6: are the kept parameters those after epoch 2?", lambda: _kept(Trainer)
    ).gives(True)
    yield case("with held-out batches, patience=2", lambda: held(Trainer)).as_by(
        lambda: held(own_trainer.answer.value)
    )

    def drawn(draw):
        epochs = draw.randint(1, 7)
        values = [draw.choice([0.1, 0.2, 0.3, 0.4, 0.5]) for _ in range(epochs)]
        return values, epochs, draw.choice([None, 1, 2, 3])

    yield agrees(
        lambda *args: _scripted(Trainer, *args),
        lambda *args: _scripted(own_trainer.answer.value, *args),
        drawn,
        count=25,
        tell=_told,
    )


def _gone_on(kind, epochs, broken):
    """Epochs with a break after some of them, in which another trainer loads the state."""
    options = {"lr": 0.3, "patience": 4, "clip": 2.0, "schedule": _share}
    trainer = _trainer(kind, **options)
    held = Loader(_Pairs(7, seed=9), batch_size=4)
    trainer.fit(epochs, held)
    if broken:
        state = trainer.state_dict()
        trainer.fit(2, held)  # the first one goes on for itself
        trainer = _trainer(kind, **options)
        trainer.load_state_dict(state)
    trainer.fit(2, held)
    return trainer.history, trainer.best, _weights(trainer), trainer.steps


@own_trainer.check("5 · state")
def _(Trainer):
    for epochs in (1, 2, 5):
        yield case(
            f"{epochs} epochs, a break, 2 more: history, best value, weights, steps",
            lambda epochs=epochs: _gone_on(Trainer, epochs, True),
        ).as_by(lambda epochs=epochs: _gone_on(own_trainer.answer.value, epochs, False))

    def drawn(draw):
        values = [draw.choice([0.1, 0.2, 0.3, 0.4, 0.5]) for _ in range(draw.randint(2, 6))]
        return values, draw.choice([None, 2, 3]), draw.randint(1, len(values) - 1)

    yield agrees(
        lambda *args: _paused(Trainer, *args, True),
        lambda *args: _paused(own_trainer.answer.value, *args, False),
        drawn,
        count=20,
        tell=lambda values, patience, first: (
            f"values {', '.join(map(str, values))}, patience={patience}, a break after {first} epochs: "
            "the values that were used, the best, the parameters at the end"
        ),
    )

"""Wrong answers of chapter 10."""

import os

import toytorch as torch
from tests.course.wrong import like, wrong

# -- training.fit

like(
    "training.fit",
    "gradients stay off for the rest of the session",
    ("        model.train()\n", "        model.train()\n        torch.set_grad_enabled(True)\n"),
    (
        "        with torch.no_grad():\n            for inputs, labels in validation:",
        "        torch.set_grad_enabled(False)\n        if True:\n            for inputs, labels in validation:",
    ),
)
like(
    "training.fit",
    "the first step uses what was in .grad",
    ("            optimizer.zero_grad()\n", ""),
    (
        "            optimizer.step()\n",
        "            optimizer.step()\n            optimizer.zero_grad()\n",
    ),
)
like(
    "training.fit",
    "the loss is a tensor with its graph",
    ("total += loss.item() * len(labels)", "total = total + loss * len(labels)"),
)
like(
    "training.fit",
    "counts the right answers over all epochs",
    ("        right, judged = 0, 0\n", ""),
    ("    history = []\n", "    history = []\n    right, judged = 0, 0\n"),
)
like(
    "training.fit",
    "one order of the data for all epochs",
    ("    history = []\n", "    history, training = [], list(training)\n"),
)
like(
    "training.fit",
    "forgets the gradients once in an epoch",
    (
        "        total, seen = 0.0, 0\n        for inputs, labels in training:\n            optimizer.zero_grad()\n",
        "        total, seen = 0.0, 0\n        optimizer.zero_grad()\n        for inputs, labels in training:\n",
    ),
)
like(
    "training.fit",
    "forgets the gradient before the step",
    ("            optimizer.zero_grad()\n", ""),
    (
        "            loss.backward()\n",
        "            loss.backward()\n            optimizer.zero_grad()\n",
    ),
)
like(
    "training.fit",
    "the loss over all epochs so far",
    ("        total, seen = 0.0, 0\n", ""),
    ("    history = []\n", "    history = []\n    total, seen = 0.0, 0\n"),
)
like(
    "training.fit",
    "the mean of the batches' accuracies",
    (
        "right += (answers == labels).sum().item()",
        "right += (answers == labels).float().mean().item()",
    ),
    ("judged += len(labels)", "judged += 1"),
)
like("training.fit", "percent", ("right / judged", "100 * right / judged"))
like(
    "training.fit",
    "one dictionary for all epochs",
    ("    history = []\n", "    history, row = [], {}\n"),
    (
        'history.append({"loss": total / seen, "accuracy": right / judged})',
        "row.update(loss=total / seen, accuracy=right / judged)\n        history.append(row)",
    ),
)

# -- training.checkpoint

like(
    "training.checkpoint",
    "seeds the generator anew",
    ("self.generator.get_state()", "self.generator.initial_seed()"),
    (
        'self.generator.set_state(state["generator"])',
        'self.generator.manual_seed(state["generator"])',
    ),
)
like(
    "training.checkpoint",
    "loads whatever fits",
    (
        "            part.load_state_dict(state[name])",
        "            part.load_state_dict(*[state[name], False][: 1 + (name == 'model')])",
    ),
)
like(
    "training.checkpoint",
    "never writes over a file that is there",
    (
        "        torch.save(state, path)",
        "        if not os.path.exists(path):\n            torch.save(state, path)",
    ),
)
like(
    "training.checkpoint",
    "saving leaves the model in evaluation mode",
    (
        "        torch.save(state, path)",
        "        self.parts['model'].eval()\n        torch.save(state, path)",
    ),
)
like(
    "training.checkpoint",
    "saving draws a random number",
    ("        torch.save(state, path)", "        torch.save(state, path)\n        torch.rand(1)"),
)
like(
    "training.checkpoint",
    "the learning rate of the optimizer only",
    (
        "        for name, part in self.parts.items():\n",
        "        state['optimizer']['state'] = {}\n        for name, part in self.parts.items():\n",
    ),
)
like(
    "training.checkpoint",
    "seeds the default generator anew",
    ("torch.get_rng_state()", "torch.initial_seed()"),
    ('torch.set_rng_state(state["random"])', 'torch.manual_seed(state["random"])'),
)


@wrong("training.checkpoint", "saves the objects and replaces its own, not yours")
class Checkpoint:
    def __init__(self, model, optimizer, scheduler, generator):
        self.parts = [model, optimizer, scheduler, generator]

    def save(self, path):
        self.saved = [part.state_dict() for part in self.parts[:3]]
        torch.save({"parts": self.saved, "random": torch.get_rng_state()}, path)

    def load(self, path):
        state = torch.load(path)
        self.parts = state["parts"]
        torch.set_rng_state(state["random"])


@wrong("training.checkpoint", "keeps the state in memory beside the file")
class Checkpoint:
    kept: dict = {}

    def __init__(self, model, optimizer, scheduler, generator):
        self.parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
        self.generator = generator

    def save(self, path):
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state["generator"] = self.generator.get_state()
        state["random"] = torch.get_rng_state()
        Checkpoint.kept[os.fspath(path)] = state
        torch.save({}, path)

    def load(self, path):
        state = Checkpoint.kept[os.fspath(path)]
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"])


# -- training.patience

like(
    "training.patience",
    "the best creeps down inside min_delta",
    (
        "            self.waited += 1\n",
        "            self.waited += 1\n            self.best = min(self.best, loss)\n",
    ),
)
like(
    "training.patience",
    "says it once and goes on",
    ("self.waited >= self.patience", "self.waited == self.patience"),
)
like(
    "training.patience",
    "begins anew once it has said stop",
    (
        "        return self.waited >= self.patience",
        "        if self.waited >= self.patience:\n            self.waited = 0\n"
        "            return True\n        return False",
    ),
)
like(
    "training.patience",
    "min_delta as a share of the best",
    ("self.best - self.min_delta", "self.best * (1 - self.min_delta)"),
)
like("training.patience", "the best starts at 1000", ('float("inf")', "1000.0"))
like(
    "training.patience",
    "a best of 0 counts as none",
    (
        "if loss < self.best - self.min_delta:",
        "if not self.best or loss < self.best - self.min_delta:",
    ),
)
like(
    "training.patience",
    "nan stops at once",
    (
        "        return self.waited >= self.patience",
        "        return self.waited >= self.patience or loss != loss",
    ),
)
like(
    "training.patience",
    "the improvement may be min_delta itself",
    (
        "loss < self.best - self.min_delta:",
        "loss < self.best and loss <= self.best - self.min_delta:",
    ),
)


@wrong("training.patience", "looks at the last epochs in one window")
class Patience:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta, self.losses = patience, min_delta, []

    @property
    def best(self):
        return min(self.losses, default=float("inf"))

    def stop(self, loss):
        self.losses.append(float("inf") if loss != loss else loss)
        before, now = self.losses[: -self.patience], self.losses[-self.patience :]
        return bool(before) and not min(now) < min(before) - self.min_delta


like(
    "training.patience",
    "a little worse counts as better",
    ("self.best - self.min_delta", "self.best + self.min_delta"),
)
like(
    "training.patience",
    "returns how long it has waited",
    ("return self.waited >= self.patience", "return self.waited"),
)


# -- training.freeze

like(
    "training.freeze",
    "evaluation mode for the part itself and not what is in it",
    ("part.eval()", "part.training = False"),
)
like(
    "training.freeze",
    "an iterator instead of a list",
    (
        "return [p for p in model.parameters() if p.requires_grad]",
        "return (p for p in model.parameters() if p.requires_grad)",
    ),
)
like(
    "training.freeze",
    "only what is in the kept part",
    (
        "return [p for p in model.parameters() if p.requires_grad]",
        "return [p for p in getattr(model, keep).parameters() if p.requires_grad]",
    ),
)
like(
    "training.freeze",
    "evaluation mode for batch norms only",
    (
        "            part.eval()",
        "            for one in part.modules():\n"
        "                if isinstance(one, nn.BatchNorm1d):\n                    one.eval()",
    ),
)
like(
    "training.freeze",
    "names instead of parameters",
    (
        "return [p for p in model.parameters() if p.requires_grad]",
        "return [n for n, p in model.named_parameters() if p.requires_grad]",
    ),
)


@wrong("training.freeze", "asks how the parameter's name begins")
def freeze(model, keep):
    for name, p in model.named_parameters():
        p.requires_grad_(name.startswith(keep))
    for name, part in model.named_children():
        if not name.startswith(keep):
            part.eval()
    return [p for p in model.parameters() if p.requires_grad]


@wrong("training.freeze", "freezes a copy")
def freeze(model, keep):
    import copy

    model = copy.deepcopy(model)
    for name, part in model.named_children():
        if name != keep:
            part.requires_grad_(False)
            part.eval()
    return [p for p in model.parameters() if p.requires_grad]


@wrong("training.freeze", "takes the gradients away and lets them be recorded")
def freeze(model, keep):
    for name, part in model.named_children():
        if name != keep:
            for p in part.parameters():
                p.grad = None
            part.eval()
    return list(getattr(model, keep).parameters())


# -- training.conv

like(
    "training.conv",
    "cuts everything off where there is no padding",
    (
        "inside = g_padded[:, :, edge : high - edge, edge : wide - edge]",
        "inside = g_padded[:, :, edge:-edge, edge:-edge]",
    ),
)
like(
    "training.conv",
    "two convolutions share what they saved",
    ("self.windows = layout.of(padded.ravel())", "Conv2d.windows = layout.of(padded.ravel())"),
)
like(
    "training.conv",
    "the second way back adds to the first",
    (
        "self.step, self.padding = step, padding",
        "self.step, self.padding = step, padding\n        self.g_padded = np.zeros(self.shape)",
    ),
    ("g_padded = np.zeros(self.shape)\n        rows", "g_padded = self.g_padded\n        rows"),
)
like(
    "training.conv",
    "height and width are exchanged",
    ("return result.transpose(0, 3, 1, 2)", "return result.transpose(0, 3, 2, 1)"),
)
like(
    "training.conv",
    "the filters' gradient begins with the channels",
    (
        "g_filters = np.tensordot(g, self.windows, ((0, 2, 3), (0, 2, 3)))",
        "g_filters = np.tensordot(self.windows, g, ((0, 2, 3), (0, 2, 3)))",
    ),
)
like(
    "training.conv",
    "pads on one side",
    ("edge = (padding, padding)", "edge = (padding, 0)"),
)
like(
    "training.conv",
    "repeats the edge instead of zeros",
    (
        "np.pad(images, ((0, 0), (0, 0), edge, edge))",
        'np.pad(images, ((0, 0), (0, 0), edge, edge), mode="edge")',
    ),
)
like(
    "training.conv",
    "takes images for squares",
    ("rows, columns = g.shape[2], g.shape[3]", "rows = columns = g.shape[2]"),
)
like(
    "training.conv",
    "the first filter's gradient goes to the images",
    (
        "parts = np.tensordot(g, self.filters, ((1,), (0,)))",
        "parts = np.tensordot(g[:, :1], self.filters[:1], ((1,), (0,)))",
    ),
)


like(
    "training.conv",
    "no gradient for the filters",
    ("return inside, g_filters", "return inside, 0 * g_filters"),
)


# -- training.package

like(
    "training.package",
    "no step is counted",
    ("        self.steps += 1\n        return", "        return"),
)
like(
    "training.package",
    "the loss as a tensor",
    (
        "        self.steps += 1\n        return float(loss.data)",
        "        self.steps += 1\n        return loss",
    ),
)
like(
    "training.package",
    "takes a large loss for an infinite one",
    ("if not np.isfinite(loss.data):", "if not np.isfinite(loss.data) or loss.data > 3:"),
)
like(
    "training.package",
    "the norm without its root",
    (
        "np.sqrt(sum((p.grad * p.grad).sum() for p in some))",
        "sum((p.grad * p.grad).sum() for p in some)",
    ),
)
like(
    "training.package",
    "the sum of the losses",
    ("        return total / count\n\n    def fit", "        return total\n\n    def fit"),
)
like(
    "training.package",
    "fills in gradients of 0",
    (
        "        some = [p for p in self.model.parameters() if p.grad is not None]\n",
        "        some = self.model.parameters()\n"
        "        for p in some:\n"
        "            p.grad = np.zeros_like(p.data) if p.grad is None else p.grad\n",
    ),
)
like(
    "training.package",
    "ends one epoch late",
    ("self.waited >= self.patience", "self.waited > self.patience"),
)
like(
    "training.package",
    "the largest value is the best",
    ("if value < self.best:", "if -value < self.best:"),
    ("self.best, self.waited = value, 0", "self.best, self.waited = -value, 0"),
)
like(
    "training.package",
    "the mode of the network, not of its parts",
    ("part.training = mode\n", "part.training = modes[0][1]\n"),
)
like(
    "training.package",
    "the loss of the last batch is that of the epoch",
    (
        "total += self.step(inputs, wanted) * len(wanted)",
        "total = self.step(inputs, wanted) * count",
    ),
    (
        "count += len(wanted)\n            if held",
        "count += len(wanted)\n            total = self.step(inputs, wanted) * count\n            if held",
    ),
)

"""Watching a network with hooks."""

import contextlib

import toytorch as torch
from course.cases import case
from course.properties import keeps_modes, restores
from course.records import Exercise
from toytorch import nn

watch = Exercise(
    "modules.watch",
    "Watching a network with hooks",
    chapter=7,
    minutes=15,
    prompt="""
    A **forward hook** is a function that a module calls after its own `forward`:
    `handle = layer.register_forward_hook(hook)` has `hook(layer, args, output)` called each time,
    until `handle.remove()`. What the hook returns **replaces the output**, unless it is `None`.

    Write `sizes(model, x)`: run `model` on `x` once and return a dictionary from the name of every
    module *without children* to the size of its output, the root of the mean square:
    `output.square().mean().sqrt().item()`.

    * Names are those of `model.named_modules()`, in that order if all are called in order. A lone
      layer is called `""`.
    * Call the model, not its `forward`: only the call runs the hooks.
    * Leave everything as it was: training mode, recording, other people's hooks.
    * Afterwards the model has no more hooks than before, **also if it raised an error** during the run
      (`try … finally`).
    * A function made in a loop sees the loop's variables as they are when it is *called*. Give the
      name to it in another way: make the hook in a function of its own.
    """,
    hints=(
        """
        Each layer gets a hook that writes the size of its output into one dictionary, under the layer's
        name. Because the loop's variable `name` changes, make the hook in a small function that takes the
        name. Then run the model once, and remove what you added, whatever happens.
        """,
        """
        `nn.Sequential(double, nn.Sequential(times5, minus))` on `[1, 1, 1, 1]`:

        | `model.named_modules()` gives | children? | what happens |
        | --- | --- | --- |
        | `""`, the whole | yes | skipped |
        | `"0"`, double | no | hook; output [2, 2, 2, 2], size 2 |
        | `"1"`, the inner Sequential | yes | skipped |
        | `"1.0"`, times5 | no | hook; output [10, …], size 10 |
        | `"1.1"`, minus | no | hook; output [−10, …], size 10 |

        Three handles were kept. `model(x)` runs, the hooks fill `{"0": 2.0, "1.0": 10.0, "1.1": 10.0}`, and
        then `handle.remove()` is called for each of the three. A hook that the user had added before is
        still there.
        """,
        """
        ```python
        def sizes(model, x):
            found, handles = {}, []

            def hook_for(name):
                def hook(module, args, output):
                    ...

                return hook

            for name, module in model.named_modules():
                if ...:
                    hook = hook_for(name)
                    handles.append(...)
            try:
                ...
            finally:
                ...
            return found
        ```
        """,
    ),
)


@watch.reference(stub="your code here: about 14 lines")
def sizes(model, x):
    """{name: root mean square of the output}, for all layers."""
    found, handles = {}, []

    def hook_for(name):
        def hook(module, args, output):
            found[name] = output.square().mean().sqrt().item()

        return hook

    for name, module in model.named_modules():
        if not list(module.children()):
            hook = hook_for(name)
            handles.append(module.register_forward_hook(hook))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found


watch.changed(
    "all under the last name",
    """
    All hooks wrote under one name. Each of them looks up `name` when it is *called*, and by then
    the loop is over and `name` is the last one. Make the hook in a function that gets the name as
    an argument, or give it a default: `def hook(m, a, output, name=name)`.
    """,
    (
        "    def hook_for(name):\n"
        "        def hook(module, args, output):\n"
        "            found[name] = output.square().mean().sqrt().item()\n"
        "\n"
        "        return hook\n",
        "",
    ),
    (
        "            hook = hook_for(name)",
        "            def hook(m, a, output):\n"
        "                found[name] = output.square().mean().sqrt().item()  # noqa: B023",
    ),
)


@watch.mutant(
    "leaves its hooks behind",
    why="""
    The hooks are still there. Every later call of the model pays for them, a second `sizes` adds
    another set, and they keep everything alive that they can see. Keep the handles and `remove`
    them.
    """,
)
def sizes(model, x):
    found = {}
    for name, module in model.named_modules():
        if not list(module.children()):

            def hook(m, a, output, name=name):
                found[name] = output.square().mean().sqrt().item()

            module.register_forward_hook(hook)
    model(x)
    return found


@watch.mutant(
    "cleans up only if all goes well",
    why="""
    When the model raised an error, the lines after the call were never reached, and the hooks
    stayed. What must happen in any case goes into `finally:`.
    """,
)
def sizes(model, x):
    found, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):

            def hook(m, a, output, name=name):
                found[name] = output.square().mean().sqrt().item()

            handles.append(module.register_forward_hook(hook))
    model(x)
    for handle in handles:
        handle.remove()
    return found


@watch.mutant(
    "the hook changes the output",
    why="""
    The hook returned something, and that replaced the layer's output: the next layer was given the
    *size* of its input instead of the input. `setdefault` returns a value, and so does every
    `lambda`, so this happens easily. A hook that only looks returns `None`.
    """,
)
def sizes(model, x):
    found, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):
            handles.append(module.register_forward_hook(
                lambda m, a, output, name=name: found.setdefault(
                    name, output.square().mean().sqrt())))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return {name: size.item() for name, size in found.items()}


watch.changed(
    "goes past the hooks",
    """
    `model.forward(x)` computes the output and runs no hook of the model itself; it is `model(x)`
    that calls hooks, then `forward`, then hooks. For a lone layer nothing at all was seen.
    """,
    (
        "    def hook_for(name):\n"
        "        def hook(module, args, output):\n"
        "            found[name] = output.square().mean().sqrt().item()\n"
        "\n"
        "        return hook\n",
        "",
    ),
    (
        "            hook = hook_for(name)",
        "            def hook(m, a, output, name=name):\n"
        "                found[name] = output.square().mean().sqrt().item()",
    ),
    ("model(x)", "model.forward(x)"),
)


@watch.mutant(
    "watches the boxes, too",
    why="""
    A `Sequential` has an output as well, which is its last layer's, so some numbers came twice.
    Only modules without children compute something of their own here.
    """,
)
def sizes(model, x):
    found, handles = {}, []
    for name, module in model.named_modules():

        def hook(m, a, output, name=name):
            found[name] = output.square().mean().sqrt().item()

        handles.append(module.register_forward_hook(hook))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found


class _Times(nn.Module):
    """Multiplies by a number, and fails for the number 0."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        if not self.factor:
            raise ValueError("a factor of 0")
        return x * self.factor


@watch.check("three layers, two of them in a box")
def _(f):
    def nested():
        return f(nn.Sequential(_Times(2), nn.Sequential(_Times(5), _Times(-1))), torch.ones(4))

    yield case("factors 2, then (5, -1), on ones", nested).gives(
        {"0": 2.0, "1.0": 10.0, "1.1": 10.0})


@watch.check("the network computes what it did before")
def _(f):
    def through():
        return f(nn.Sequential(_Times(1), nn.ReLU()), torch.tensor([3.0, -4.0]))

    yield case("the factor 1, then a ReLU, on [3, -4]", through).gives(
        {"0": 3.5355339, "1": 2.1213203}, tolerance=1e-4)


@watch.check("a lone layer")
def _(f):
    yield case("one layer with the factor 3", lambda: f(_Times(3), torch.ones(2))).gives({"": 3.0})


@watch.check("nothing is left behind", hidden=True)
def _(f):
    def left():
        model = nn.Sequential(_Times(2), _Times(3))
        f(model, torch.ones(1))
        return sum(len(m._forward_hooks) for m in model.modules())

    yield case("hooks after a run", left).gives(0)

    def failed():
        model = nn.Sequential(_Times(2), _Times(0))
        with contextlib.suppress(ValueError):
            f(model, torch.ones(1))
        return sum(len(m._forward_hooks) for m in model.modules())

    yield case("hooks after a run that raised", failed).gives(0)


watch.changed(
    "clears other people's hooks",
    """
    All hooks of the model were removed, those that somebody else had added as well. A profiler or a
    plot would stop working, without an error. Remove only what you added: each handle removes its
    own hook.
    """,
    (
        "        for handle in handles:\n            handle.remove()",
        "        for module in model.modules():\n            module._forward_hooks.clear()",
    ),
)

watch.changed(
    "leaves the model in evaluation mode",
    """
    `model.eval()` was called and never taken back. Dropout and batch norm are then in evaluation
    mode for all the training that follows. `sizes` has to leave the model as it was.
    """,
    ("    try:\n        model(x)", "    try:\n        model.eval()\n        model(x)"),
)

watch.changed(
    "switches gradients off for good",
    """
    `torch.set_grad_enabled(False)` holds until somebody switches it on again, for the whole
    program. `with torch.no_grad():` ends with its block.
    """,
    ("    try:\n        model(x)", "    try:\n        torch.set_grad_enabled(False)\n        model(x)"),
)


@watch.mutant(
    "runs the model once for each layer",
    why="""
    The model ran as often as it has layers. The numbers are right for simple layers; dropout draws
    other numbers in each run, and a batch norm updates its averages every time. One run with all
    hooks in place is enough.
    """,
)
def sizes(model, x):
    found = {}
    for name, module in model.named_modules():
        if not list(module.children()):

            def hook(m, a, output, name=name):
                found[name] = output.square().mean().sqrt().item()

            handle = module.register_forward_hook(hook)
            try:
                model(x)
            finally:
                handle.remove()
    return found


@watch.mutant(
    "takes every network for a chain",
    why="""
    The layers were called one after the other, in the order of their names. A network's `forward`
    may add, branch or use them in another order; only calling the *model* does what it does.
    """,
)
def sizes(model, x):
    found = {}
    for name, module in model.named_modules():
        if not list(module.children()):
            x = module(x)
            found[name] = x.square().mean().sqrt().item()
    return found


class _Around(nn.Module):
    """Adds what it was given to what its second, then its first part make of it."""

    def __init__(self):
        super().__init__()
        self.first, self.second = _Times(3), _Times(5)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x + self.first(self.second(x) + x)


@watch.check("a network that is no chain")
def _(f):
    yield case("y = x + first(second(x) + x), factors 3 and 5, on ones",
               lambda: f(_Around(), torch.ones(2))).gives({"second": 5.0, "first": 18.0})

    def calls():
        model = _Around()
        f(model, torch.ones(2))
        return model.calls

    yield case("how often the model ran", calls).gives(1)


@watch.check("everything is as it was")
def _(f):
    def others():
        model, heard = nn.Sequential(_Times(2), _Times(3)), []
        model[0].register_forward_hook(lambda *args: heard.append(1))
        f(model, torch.ones(1))
        model(torch.ones(1))
        return len(heard)

    yield case("a hook of somebody else: heard in sizes(…), and in a run after it", others).gives(2)

    def network():
        model = nn.Sequential(nn.Dropout(0.5), _Times(2))
        model[0].eval()
        return model

    yield keeps_modes(lambda model: f(model, torch.ones(2)), network)

    def recording():
        with torch.enable_grad():
            f(_Around(), torch.ones(2))
            return torch.is_grad_enabled()

    yield case("are gradients recorded, after the call?", recording).gives(True)
    yield restores(lambda: f(_Around(), torch.ones(2)))

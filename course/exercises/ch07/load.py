"""Loading a state."""

import contextlib

import toytorch as torch
from course.cases import case
from course.properties import agrees, untouched
from course.records import Exercise
from toytorch import nn
from toytorch.nn.modules.registration import using
from toytorch.nn.modules.state import Stateful, _IncompatibleKeys

_own_load = Stateful.load_state_dict


def _loading(f):
    def load_state_dict(self, state_dict, strict=True, assign=False):
        if assign:
            return _own_load(self, state_dict, strict, assign)
        return _IncompatibleKeys(*f(self, state_dict, strict))

    return using(load_state_dict=load_state_dict)


load = Exercise(
    "modules.load",
    "Loading a state",
    chapter=7,
    minutes=12,
    optional=True,
    inject=_loading,
    prompt="""
    `model.state_dict()` gives the values of all parameters and buffers by name. Write the opposite
    direction: `load_state(module, state, strict=True)` copies the values of `state`, a dictionary
    of tensors by name, into the module.

    * A hint that makes it short: the tensors in `module.state_dict()` **share memory** with the
      module's own. What you `copy_` into them is in the module.
    * `missing` are the module's names that `state` lacks, `unexpected` the names in `state` that
      the module lacks. If `strict` and there are any of either: `RuntimeError`, with the names in
      the message.
    * A value of another **shape** is always a `RuntimeError`, strict or not.
    * Return the two lists, `(missing, unexpected)`.
    """,
    without=("torch.nn.Module.load_state_dict",),
    hints=(
        """
        Answer three questions before you write any value: which names are missing, which are
        unexpected, and do the shapes agree? When all is well, `copy_` writes each value into the
        tensor of the same **name** that `module.state_dict()` gives; that tensor shares its memory
        with the module.
        """,
        """
        The module has `weight` (2, 3) and `bias` (2,). The state has `weight` (2, 3) and `scale` (1,).

        | step | value |
        | --- | --- |
        | `missing`: in the module, not in the state | `["bias"]` |
        | `unexpected`: in the state, not in the module | `["scale"]` |
        | `strict=True` | `RuntimeError("missing ['bias'], unexpected ['scale']")` |
        | `strict=False`: names that both have | `weight`; shapes (2, 3) and (2, 3) agree |
        | copied | `weight` |
        | returned | `(["bias"], ["scale"])` |

        If the state's `weight` were (1, 3), `copy_` would broadcast it without an error. Hence the
        comparison of the shapes.
        """,
        """
        ```python
        def load_state(module, state, strict=True):
            mine = module.state_dict()
            missing = ...
            unexpected = ...
            if ...:
                raise RuntimeError(...)
            common = [name for name in mine if name in state]
            for name in common:
                ...  # another shape is an error
            for name in common:
                ...
            return missing, unexpected
        ```
        """,
    ),
)


@load.reference(stub="your code here: about 10 lines")
def load_state(module, state, strict=True):
    """Copy values by name into a module; returns (missing, unexpected)."""
    mine = module.state_dict()
    missing = [name for name in mine if name not in state]
    unexpected = [name for name in state if name not in mine]
    if strict and (missing or unexpected):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}")
    common = [name for name in mine if name in state]
    for name in common:
        if mine[name].shape != state[name].shape:
            raise RuntimeError(f"{name} has another shape")
    for name in common:
        mine[name].copy_(state[name])
    return missing, unexpected


load.changed(
    "takes the other one's memory",
    """
    The values were not copied: the module now *uses* the tensors of the dictionary. Train it on,
    and the dictionary changes too, and with it the network they came from. `copy_` writes the
    numbers into the memory the module has.
    """,
    ("mine = module.state_dict()", "mine = module.state_dict(keep_vars=True)"),
    ("mine[name].copy_(state[name])", "mine[name].data = state[name]"),
)

load.changed(
    "makes new parameters",
    """
    The module got *new* parameters. An optimizer that was made before still holds the old ones: it
    trains them on, and the network does not change any more. Write into the parameters that are
    there.
    """,
    (
        "common = [name for name in mine if name in state]\n    for name in common:",
        "for name in mine:\n        if name not in state:\n            continue",
    ),
    (
        "    for name in common:\n        mine[name].copy_(state[name])",
        '        path, _, last = name.rpartition(".")\n'
        "        owner = module.get_submodule(path)\n"
        "        value = state[name].clone()\n"
        "        setattr(owner, last, nn.Parameter(value) if last in owner._parameters else value)",
    ),
)

load.changed(
    "ignores what it does not know",
    """
    Names that the module lacks were ignored without an error. Mostly they mean that the file
    belongs to another network, or that a layer was renamed. Then the values that you need are not
    loaded. `strict` is there to report this.
    """,
    ("strict and (missing or unexpected)", "strict and missing"),
)

load.changed(
    "ignores what is missing",
    """
    A parameter that the file lacks kept its random start, and no error was raised. Then one part of
    the network is trained and another is random, and the only sign of it is a poor result.
    """,
    ("strict and (missing or unexpected)", "strict and unexpected"),
)

load.changed(
    "strict whatever is said",
    """
    `strict=False` was not looked at. It is needed when only a part fits, as for a network with a
    new last layer: then the caller reads the two lists and decides.
    """,
    ("strict and (missing or unexpected)", "missing or unexpected"),
    (
        "common = [name for name in mine if name in state]\n    for name in common:",
        "for name in mine:",
    ),
    ("    for name in common:\n", ""),
)

load.changed(
    "lets values stretch",
    """
    `copy_` broadcasts: one number was copied into a whole row of weights without complaint. A state
    of another shape belongs to another network. Compare shapes before you copy.
    """,
    (
        "    for name in common:\n"
        "        if mine[name].shape != state[name].shape:\n"
        '            raise RuntimeError(f"{name} has another shape")\n',
        "",
    ),
)

load.changed(
    "forgets the buffers",
    """
    Only parameters were known, and the statistics of a batch norm are buffers: not learned, but
    part of the network. Without them it would normalise by a mean of 0 and a variance of 1, which
    is what it had before training. `state_dict()` has both.
    """,
    (
        "module.state_dict()",
        "{name: p.detach() for name, p in module.named_parameters()}",
    ),
)


def _pair():
    torch.manual_seed(1)
    made = [nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)) for _ in range(2)]
    return made[0], made[1]


@load.check("from one network into another")
def _(f):
    def moved():
        a, b = _pair()
        said = f(b, a.state_dict())
        return said, all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters()))

    yield case("what it returns, and whether both now hold the same", moved).gives(
        (([], []), True))


@load.check("buffers as well")
def _(f):
    def norm():
        a, b = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
        a.running_mean.fill_(7.0)
        f(b, a.state_dict())
        return b.running_mean.tolist()

    yield case("the running mean of a BatchNorm1d", norm).gives([7.0, 7.0])


@load.check("names that do not fit")
def _(f):
    def changed(strict, more=(), less=()):
        a, b = _pair()
        state = {n: v for n, v in a.state_dict().items() if n not in less}
        state |= {n: torch.zeros(1) for n in more}
        return f(b, state, strict)

    yield case("a state with 2.scale beside the rest",
               lambda: changed(True, ["2.scale"])).raises(RuntimeError, "2.scale")
    yield case("a state without 2.bias",
               lambda: changed(True, (), ["2.bias"])).raises(RuntimeError, "2.bias")
    yield case("both, with strict=False",
               lambda: changed(False, ["2.scale"], ["2.bias"])).gives((["2.bias"], ["2.scale"]))


@load.check("shapes that do not fit")
def _(f):
    def one_number():
        f(nn.Linear(4, 2), {"weight": torch.ones(1), "bias": torch.zeros(2)}, False)

    yield case("a weight of shape (1,) for nn.Linear(4, 2), with strict=False",
               one_number).raises(RuntimeError, "weight")


@load.check("two networks, two memories", hidden=True)
def _(f):
    def apart():
        a, b = _pair()
        f(b, a.state_dict())
        with torch.no_grad():
            b[0].weight.fill_(99.0)
        return bool((a[0].weight == 99.0).any())

    yield case("b is loaded from a; then b changes. Does a change too?", apart).gives(False)


@load.check("the parameters are still the same objects")
def _(f):
    def kept():
        a, b = _pair()
        before = list(b.parameters())
        f(b, a.state_dict())
        return all(p is q for p, q in zip(before, b.parameters()))

    yield case("b's parameters before and after", kept).gives(True)


load.changed(
    "goes by position instead of by name",
    """
    Values were paired with the module's tensors in their order. A file may have another order, and
    where a name is missing all that follow are off by one. Look each value up by its name.
    """,
    (
        "    for name in common:\n        mine[name].copy_(state[name])",
        "    for kept, value in zip(mine.values(), state.values()):\n        kept.copy_(value)",
    ),
)

load.changed(
    "empties the dictionary",
    """
    `state.pop(name)` takes the value *out* of the caller's dictionary. Loading a second network
    from the same state then finds nothing. Read it, and leave it as it is.
    """,
    ("mine[name].copy_(state[name])", "mine[name].copy_(state.pop(name))"),
)

load.changed(
    "loads floating-point values only",
    """
    Integers were left out. A batch norm counts its batches in an int64 buffer,
    `num_batches_tracked`; it is a part of the state like any other.
    """,
    (
        "        mine[name].copy_(state[name])",
        "        if mine[name].is_floating_point():\n            mine[name].copy_(state[name])",
    ),
)

load.changed(
    "compares sizes instead of shapes",
    """
    Two tensors of equally many elements, or of equally many dimensions, passed for alike. `copy_`
    broadcasts (2,) to (1, 2), and (1, 2) to (3, 2), without complaint. Compare the whole shape.
    """,
    ("mine[name].shape != state[name].shape", "mine[name].numel() != state[name].numel()"),
)


_KINDS = {
    "Linear(2, 3)": lambda: nn.Linear(2, 3),
    "Linear(2, 1)": lambda: nn.Linear(2, 1),
    "BatchNorm1d(3)": lambda: nn.BatchNorm1d(3),
    "Linear(1, 2, bias=False)": lambda: nn.Linear(1, 2, bias=False),
}


def _made(names):
    net = nn.Sequential(*(_KINDS[name]() for name in names))
    with torch.no_grad():
        for value in net.state_dict().values():
            value.zero_()
    return net


def _state(draw):
    """A network, and a state for it in another order, perhaps with names too few or too many."""
    names = [draw.choice(list(_KINDS)) for _ in range(draw.randint(1, 3))]
    state = {
        name: torch.arange(value.numel()).to(value.dtype).reshape(value.shape) + 1
        for name, value in _made(names).state_dict().items()
    }
    order = list(state)
    draw.shuffle(order)
    if draw.random() < 0.4:
        order.pop()
    made = {name: state[name] for name in order}
    if draw.random() < 0.3:
        made["more"] = torch.zeros(1)
    if draw.random() < 0.3 and made:
        name = draw.choice(list(made))
        made[name] = made[name].reshape(-1)
    return names, made, draw.random() < 0.5


def _loaded(f):
    def run(names, state, strict):
        net = _made(names)
        said = f(net, state, strict)
        return tuple(map(list, said)), dict(net.state_dict())

    return run


@load.check("any network, any state")
def _(f):
    def tell(names, state, strict):
        sizes = {name: tuple(value.shape) for name, value in state.items()}
        return f"a network of {names}, a state with the shapes {sizes}, strict={strict}"

    yield agrees(_loaded(f), _loaded(load.answer.value), _state, tell=tell)

    def quietly(names, state):
        with contextlib.suppress(RuntimeError):
            _loaded(f)(names, state, False)

    yield untouched(quietly, lambda draw: _state(draw)[:2], count=20)

    def row():
        f(nn.Linear(2, 1, bias=False), {"weight": torch.ones(2)})

    yield case("a weight of shape (2,) for one of shape (1, 2)", row).raises(RuntimeError, "weight")

    def wide():
        f(nn.Linear(2, 3, bias=False), {"weight": torch.ones(1, 2)})

    yield case("a weight of shape (1, 2) for one of shape (3, 2)", wide).raises(
        RuntimeError, "weight")

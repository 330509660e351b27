"""Modules of the learner's own: parameters, state, modes."""

import numpy as np

from course.cases import case
from course.records import Exercise
from mytorch.tensor import Tensor

module = Exercise(
    "modules.module",
    "A Module of your own",
    chapter=7,
    minutes=50,
    prompt="""
    Networks of your package are built from a class `Module`. It has no registries: it looks at its
    own attributes, in `vars(self)`, whenever it is asked. What is there counts:

    | an attribute is | what it means |
    | --- | --- |
    | a `Tensor` with `requires_grad` | a parameter |
    | another `Tensor`, or a NumPy array | a buffer: state that is kept and not trained |
    | a `Module` | a child, under the attribute's name |
    | a list or tuple | its modules are children, under `name.0`, `name.1`, …; nothing else in it counts |

    1. **The tree.** `children()` gives (name, module) for the modules right inside, and `modules()` a
       list of this module and all below it, each once even if it is used twice, parents first.
    2. **Parameters.** `named_parameters()` gives (dotted name, tensor) in the order of assignment: a
       module's own first, then its children's. A tensor that is used twice comes once.
       `parameters()` is the list of tensors.
    3. **Modes.** `train()` and `eval()` set `training` of the whole tree and return the module.
    4. **State.** `state_dict()` gives copies of all parameters and buffers as NumPy arrays, by
       dotted names. A tensor that is used twice is in it under both of its names.

       `load_state_dict(state)` copies the values into the module. If a key is missing or
       unexpected, or a shape differs, it copies nothing and raises a `RuntimeError` that names the
       key. A parameter stays the same tensor, because an optimizer holds it. Only its `data`
       changes.

    A trace, for a network with `self.scale` (a parameter), `self.layers = [Linear(2, 3), Linear(3, 1)]`:

    | step | finds |
    | --- | --- |
    | own attributes | `scale` |
    | child `layers.0` | `layers.0.weight`, `layers.0.bias` |
    | child `layers.1` | `layers.1.weight`, `layers.1.bias` |
    """,
    without=("torch.nn.Module",),
    hints=(
        """
        Everything is one walk over the tree, with different questions. So write the walk once: `_entries` gives,
        for this module and all below it, each attribute of a kind, with its dotted name *and* the module that holds
        it. Parameters ask it for tensors, the state for tensors and arrays, and loading needs the holder.
        """,
        """
        A network with `scale`, a parameter, and `layers = [Linear(2, 3), Linear(3, 1)]`. `_entries(Tensor)` at the top:

        | where | prefix | yields (name, module, attribute, value) |
        | --- | --- | --- |
        | the network's own | `""` | `"scale"`, network, `"scale"`, the tensor |
        | `children()` gives `"layers.0"` and the first layer; into it with | `"layers.0."` | |
        | that layer's own | `"layers.0."` | `"layers.0.weight"`, layer, `"weight"`, the tensor |
        | | | `"layers.0.bias"`, layer, `"bias"`, the tensor |
        | `"layers.1"`, into it with | `"layers.1."` | `"layers.1.weight"`, … |

        The prefix is handed down, and ends in a dot if it is not empty. Loading a state then goes in three
        steps: compare the two sets of names, compare all shapes, and only then set anything.
        """,
        """
        ```python
        class Module:
            training = True

            def __call__(self, *inputs):
                return self.forward(*inputs)

            def forward(self, *inputs):
                raise NotImplementedError(f"{type(self).__name__} has no forward")

            def children(self):
                for name, value in vars(self).items():
                    if isinstance(value, Module):
                        yield name, value
                    elif ...:
                        for number, item in enumerate(value):
                            ...

            def modules(self):
                found, seen, stack = [], set(), [self]
                while stack:
                    module = stack.pop()
                    if ...:
                        ...
                return found

            def _entries(self, kind, prefix=""):
                for name, value in vars(self).items():
                    if isinstance(value, kind):
                        yield ..., self, name, value
                for name, child in self.children():
                    yield from ...

            def named_parameters(self):
                seen = set()
                for name, _, _, value in self._entries(Tensor):
                    if ...:
                        seen.add(id(value))
                        yield name, value

            def parameters(self):
                return [value for _, value in self.named_parameters()]

            def train(self, mode=True):
                ...
                return self

            def eval(self):
                return self.train(False)

            def state_dict(self):
                state = {}
                for name, _, _, value in self._entries((Tensor, np.ndarray)):
                    ...
                return state

            def load_state_dict(self, state):
                own = {e[0]: e for e in self._entries((Tensor, np.ndarray))}
                missing = ...
                strange = ...
                if missing or strange:
                    raise RuntimeError(f"missing {missing}, unexpected {strange}")
                for name, (_, _, _, value) in own.items():
                    ...  # every shape, before anything is set
                for name, (_, module, key, value) in own.items():
                    array = np.array(state[name], dtype=float)
                    ...  # a tensor gets new data, an array is replaced in its module
        ```
        """,
    ),
)


@module.reference(
    {
        "children": "stage 1, your code here: about 7 lines",
        "modules": "stage 1, your code here: about 9 lines",
        "_entries": "a helper for stages 2 and 4, your code here: about 5 lines",
        "named_parameters": "stage 2, your code here: about 5 lines",
        "train": "stage 3, your code here: about 3 lines",
        "eval": "stage 3, your code here: about 1 line",
        "state_dict": "stage 4, your code here: about 5 lines",
        "load_state_dict": "stage 4, your code here: about 19 lines",
    },
    ('inside it."""\n\n', 'inside it."""\n'),
)
class Module:
    """A part of a network: parameters, and other modules inside it."""

    training = True

    def __call__(self, *inputs):
        return self.forward(*inputs)

    def forward(self, *inputs):
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def children(self):
        """(name, module) for each module right inside."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value
            elif isinstance(value, (list, tuple)):
                for number, item in enumerate(value):
                    if isinstance(item, Module):
                        yield f"{name}.{number}", item

    def modules(self):
        """This module and all inside it, each once."""
        found, seen, stack = [], set(), [self]
        while stack:
            module = stack.pop()
            if id(module) not in seen:
                seen.add(id(module))
                found.append(module)
                inside = [child for _, child in module.children()]
                stack.extend(reversed(inside))
        return found

    def _entries(self, kind, prefix=""):
        for name, value in vars(self).items():
            if isinstance(value, kind):
                yield prefix + name, self, name, value
        for name, child in self.children():
            yield from child._entries(kind, f"{prefix}{name}.")

    def named_parameters(self):
        """(dotted name, tensor) for each parameter, once."""
        seen = set()
        for name, _, _, value in self._entries(Tensor):
            if value.requires_grad and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def parameters(self):
        return [value for _, value in self.named_parameters()]

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def state_dict(self):
        """Copies of all tensors and arrays, by dotted names."""
        state = {}
        for name, _, _, value in self._entries((Tensor, np.ndarray)):
            array = value.data if isinstance(value, Tensor) else value
            state[name] = array.copy()
        return state

    def load_state_dict(self, state):
        """Take over what state_dict gave, all of it or nothing."""
        own = {e[0]: e for e in self._entries((Tensor, np.ndarray))}
        missing = [name for name in own if name not in state]
        strange = [name for name in state if name not in own]
        if missing or strange:
            raise RuntimeError(
                f"missing keys {missing}, unexpected keys {strange}"
            )
        for name, (_, _, _, value) in own.items():
            shape = Tensor.of(value).data.shape
            if np.shape(state[name]) != shape:
                raise RuntimeError(
                    f"{name}: shape {np.shape(state[name])} for {shape}"
                )
        for name, (_, module, key, value) in own.items():
            array = np.array(state[name], dtype=float)
            if isinstance(value, Tensor):
                value.data = array
            else:
                setattr(module, key, array)


module.changed(
    "does not look into lists",
    """
    Modules in a list are children as well. Without them a network of layers in a list has no
    parameters, and nothing is trained.
    """,
    ("elif isinstance(value, (list, tuple)):", "elif False:"),
)

module.changed(
    "children of children are missing",
    """
    Only the modules right inside were asked. A tree has to be walked to its leaves.
    """,
    (
        'yield from child._entries(kind, f"{prefix}{name}.")',
        (
            "for key, value in vars(child).items():\n"
            "                if isinstance(value, kind):\n"
            '                    yield f"{prefix}{name}.{key}", child, key, value'
        ),
    ),
)

module.changed(
    "names without the path to them",
    """
    Two layers both have a `weight`. The name of a parameter is the path to it from the top:
    `layers.0.weight`.
    """,
    ('f"{prefix}{name}."', '""'),
)

module.changed(
    "a shared tensor comes twice",
    """
    A tensor that two modules share was listed twice, so an optimizer steps it twice. Keep the ids
    of those seen.
    """,
    ("if value.requires_grad and id(value) not in seen:", "if value.requires_grad:"),
)

module.changed(
    "a module used twice is visited twice",
    """
    `modules()` gives each module once, also where two attributes hold the same one.
    """,
    ("if id(module) not in seen:", "if True:"),
)

module.changed(
    "buffers are trained",
    """
    A tensor without `requires_grad` is a buffer. It belongs to the state, and not to the
    parameters.
    """,
    ("if value.requires_grad and id(value) not in seen:", "if id(value) not in seen:"),
)

module.changed(
    "buffers are not in the state",
    """
    The state held parameters only. The running mean of a batch norm is a buffer: without it a
    loaded network computes something else.
    """,
    (
        ("for name, _, _, value in self._entries((Tensor, np.ndarray)):\n            array"),
        ("for name, _, _, value in self._entries(Tensor):\n            array"),
    ),
    (
        "own = {e[0]: e for e in self._entries((Tensor, np.ndarray))}",
        "own = {e[0]: e for e in self._entries(Tensor)}",
    ),
)

module.changed(
    "the mode stays at the top",
    """
    `eval()` changed this module alone. A batch norm three levels down goes on training.
    """,
    (("for module in self.modules():\n            module.training = mode"), "self.training = mode"),
)

module.changed(
    "the state is not a copy",
    """
    The arrays of the state are the parameters' own, so the next step of training changes a state
    that was saved before. Copy them.
    """,
    ("state[name] = array.copy()", "state[name] = array"),
)

module.changed(
    "loads what fits",
    """
    Keys that are missing or unexpected were ignored without an error. A spelling mistake then
    leaves a layer at its random start.
    """,
    ("if missing or strange:", "if False:"),
    (
        "for name, (_, _, _, value) in own.items():",
        (
            "own = {name: entry for name, entry in own.items() if name in state}\n"
            "        for name, (_, _, _, value) in own.items():"
        ),
    ),
)

module.changed(
    "loads the first half before it refuses",
    """
    A wrong shape was found while loading, when some tensors were new already. Check everything
    first, then load.
    """,
    (
        ("        for name, (_, module, key, value) in own.items():\n            array"),
        "            array",
    ),
)

module.changed(
    "a shape that differs is taken",
    """
    A state of another network was loaded. The first product after it fails, or broadcasts.
    """,
    ("if np.shape(state[name]) != shape:", "if False:"),
)

module.changed(
    "loading makes new tensors",
    """
    An optimizer holds the tensors themselves. If loading puts new ones in their place, it goes on
    training the old. Change `data` of the tensor that is there.
    """,
    (
        "                value.data = array\n",
        "                setattr(module, key, Tensor(array, value.requires_grad))\n",
    ),
)


module.changed(
    "does not look into tuples",
    """
    Only lists were looked into. A tuple of modules holds children just as well, and it is what many people
    write for layers that never change.
    """,
    ("isinstance(value, (list, tuple))", "isinstance(value, list)"),
)

module.changed(
    "train gives nothing back",
    """
    `train` and `eval` return the module, so that one can write `network = Network().eval()` or
    `network.train().forward(x)`. Without a `return` that is `None`.
    """,
    (
        "            module.training = mode\n        return self\n",
        "            module.training = mode\n",
    ),
    ("return self.train(False)", "self.train(False)\n        return self"),
)

module.changed(
    "tensors in a list are parameters",
    """
    Of a list, only the modules in it count. A tensor in a list may be anything, a batch or a history of
    losses: a parameter is an attribute of its own.
    """,
    (
        "                yield prefix + name, self, name, value\n",
        "                yield prefix + name, self, name, value\n"
        "            if isinstance(value, (list, tuple)):\n"
        "                for n, one in enumerate(value):\n"
        "                    if isinstance(one, kind):\n"
        "                        yield f'{prefix}{name}.{n}', self, name, one\n",
    ),
)

module.changed(
    "a loaded buffer is the state's own array",
    """
    A buffer became the very array of the state. When the network goes on, it changes the state that was loaded,
    and a second network that loads it as well. Take a copy, as for parameters.
    """,
    ("setattr(module, key, array)", "setattr(module, key, state[name])"),
)

module.changed(
    "a shared tensor stands in the state once",
    """
    A tensor that is used twice has two names, and the state holds it under both. Otherwise the keys depend on
    who shares what, and a network that does not share cannot load them.
    """,
    ("        state = {}\n", "        state, kept = {}, []\n"),
    (
        "            state[name] = array.copy()",
        "            if all(value is not other for other in kept):\n"
        "                state[name] = array.copy()\n"
        "            kept.append(value)",
    ),
)

module.changed(
    "children first, then its own",
    """
    The names are right, and their order is not: a module's own parameters come first, in the order of
    assignment, then those of its children.
    """,
    (
        "        for name, value in vars(self).items():\n"
        "            if isinstance(value, kind):\n"
        "                yield prefix + name, self, name, value\n"
        "        for name, child in self.children():\n"
        '            yield from child._entries(kind, f"{prefix}{name}.")\n',
        "        for name, child in self.children():\n"
        '            yield from child._entries(kind, f"{prefix}{name}.")\n'
        "        for name, value in vars(self).items():\n"
        "            if isinstance(value, kind):\n"
        "                yield prefix + name, self, name, value\n",
    ),
)

module.changed(
    "only missing keys are noticed",
    """
    A key that the network does not have was passed over. It is often a misspelt name, or the state of another
    network: say so, and name it.
    """,
    ("if missing or strange:", "if missing:"),
)


def _leaf(*shape):
    return Tensor(np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape), requires_grad=True)


def _network(Module):
    """scale; layers.0 and layers.1, each with weight and bias; norm with weight, mean and a count."""

    class Layer(Module):
        def __init__(self, inputs, outputs):
            self.weight = _leaf(inputs, outputs)
            self.bias = _leaf(outputs)

        def forward(self, x):
            return x @ self.weight + self.bias

    class Norm(Module):
        def __init__(self):
            self.weight = _leaf(3)
            self.mean = np.zeros(3)
            self.count = Tensor(0.0)
            self.name = "norm"

    class Inner(Module):
        def __init__(self):
            self.norm = Norm()

    class Network(Module):
        def __init__(self):
            self.layers = [Layer(2, 3), Layer(3, 1)]
            self.scale = _leaf(1)
            self.inner = Inner()

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x * self.scale

    return Network()


PARAMETERS = [
    "scale",
    "layers.0.weight",
    "layers.0.bias",
    "layers.1.weight",
    "layers.1.bias",
    "inner.norm.weight",
]


@module.check("1 · the tree")
def _(Module):
    def children():
        return [(name, type(child).__name__) for name, child in _network(Module).children()]

    yield case("the children of a network", children).gives(
        [("layers.0", "Layer"), ("layers.1", "Layer"), ("inner", "Inner")]
    )

    def modules():
        return [type(one).__name__ for one in _network(Module).modules()]

    yield case("all its modules", modules).holds(
        "Network, Layer twice, Inner and Norm, parents before their children",
        lambda got: (
            sorted(got) == ["Inner", "Layer", "Layer", "Network", "Norm"]
            and got[0] == "Network"
            and got.index("Inner") < got.index("Norm")
        ),
    )

    def shared():
        network = _network(Module)
        network.again = network.layers[0]
        return len(list(network.modules()))

    yield case("how many, if an attribute holds a layer again", shared).gives(5)

    def tuples():
        network = _network(Module)
        network.layers = tuple(network.layers)
        return [name for name, _ in network.children()]

    yield case("the children, if layers is a tuple", tuples).gives(["layers.0", "layers.1", "inner"])


@module.check("2 · parameters")
def _(Module):
    def names():
        return [name for name, _ in _network(Module).named_parameters()]

    yield case("the names of a network's parameters", names).gives(PARAMETERS)

    def tensors():
        network = _network(Module)
        found = list(network.parameters())
        return len(found), found[0] is network.scale

    yield case("parameters()", tensors).gives((6, True))

    def tied():
        network = _network(Module)
        network.layers[1].bias = network.scale
        return [name for name, _ in network.named_parameters()]

    yield case("the names, if layers.1.bias is scale", tied).gives(
        [name for name in PARAMETERS if name != "layers.1.bias"]
    )

    def trained():
        network = _network(Module)
        network(Tensor(np.ones((4, 2)))).sum().backward()
        return [p.grad is not None for p in network.parameters()]

    yield case("who has a gradient after network(x).sum().backward()", trained).gives(
        [True, True, True, True, True, False]
    )

    def late():
        network = _network(Module)
        network.late = _leaf(2)
        return [name for name, _ in network.named_parameters()]

    def listed():
        network = _network(Module)
        network.history = [_leaf(1), _leaf(2)]
        return [name for name, _ in network.named_parameters()]

    yield case("the names, if an attribute is a list of tensors", listed).gives(PARAMETERS)

    yield case("the names, if a parameter is assigned later", late).holds(
        "the same ones and late", lambda got: sorted(got) == sorted([*PARAMETERS, "late"])
    )


@module.check("3 · modes")
def _(Module):
    def modes():
        network = _network(Module)
        before = [one.training for one in network.modules()]
        same = network.eval() is network
        after = [one.training for one in network.modules()]
        network.train()
        return all(before), same, any(after), all(one.training for one in network.modules())

    yield case("training of all modules: before, after eval(), after train()", modes).gives(
        (True, True, False, True)
    )

    def chained():
        network = _network(Module)
        return network.train() is network, network.train(False) is network, network.training

    yield case("is train() the network, is train(False), and its training then", chained).gives(
        (True, True, False)
    )

    def others():
        _network(Module).eval()
        return _network(Module).training

    yield case("training of a second network, after eval() of a first", others).gives(True)


@module.check("4 · state")
def _(Module):
    def keys():
        return sorted(_network(Module).state_dict())

    yield case("the keys of its state", keys).gives(
        sorted([*PARAMETERS, "inner.norm.mean", "inner.norm.count"])
    )

    def copies():
        network = _network(Module)
        state = network.state_dict()
        network.scale.data += 1
        network.inner.norm.mean += 1
        return state["scale"].tolist(), state["inner.norm.mean"].tolist()

    yield case("a state after the network went on", copies).gives(([1.0], [0.0, 0.0, 0.0]))

    def loaded():
        first, second = _network(Module), _network(Module)
        first.scale.data = np.array([5.0])
        first.inner.norm.mean = np.array([1.0, 2.0, 3.0])
        tensor = second.scale
        state = first.state_dict()
        second.load_state_dict(state)
        state["scale"] += 1
        return second.scale is tensor, second.scale.data.tolist(), second.inner.norm.mean.tolist()

    yield case("a second network that loads the first one's state", loaded).gives(
        (True, [5.0], [1.0, 2.0, 3.0])
    )

    def apart():
        network = _network(Module)
        state = network.state_dict()
        network.load_state_dict(state)
        network.inner.norm.mean += 1
        network.scale.data += 1
        return state["inner.norm.mean"].tolist(), state["scale"].tolist()

    yield case("a state after a network has loaded it and gone on", apart).gives(
        ([0.0, 0.0, 0.0], [1.0])
    )

    def both():
        network = _network(Module)
        network.layers[1].bias = network.scale
        return "scale" in network.state_dict(), "layers.1.bias" in network.state_dict()

    yield case("a state with scale and layers.1.bias, which are one tensor: both names?", both).gives(
        (True, True)
    )

    def refused(change, text, mentions):
        def run():
            network = _network(Module)
            state = network.state_dict()
            for key in state:
                state[key] = state[key] + 100
            change(state)
            network.load_state_dict(state)

        return case(text, run).raises(RuntimeError, mentions)

    yield refused(
        lambda s: s.pop("layers.1.bias"), "a state without layers.1.bias", "layers.1.bias"
    )
    yield refused(lambda s: s.update(extra=np.zeros(1)), "a state with extra", "extra")
    yield refused(
        lambda s: s.update({"layers.1.weight": np.zeros((1, 3))}),
        "a state whose layers.1.weight has the shape (1, 3) for (3, 1)",
        "layers.1.weight",
    )

    def whole():
        network = _network(Module)
        state = {key: array + 100 for key, array in network.state_dict().items()}
        state["inner.norm.weight"] = np.zeros((7,))
        try:
            network.load_state_dict(state)
        except RuntimeError:
            return network.scale.data.tolist(), network.layers[0].bias.data.tolist()

    yield case("scale and layers.0.bias after a state was refused", whole).gives(
        ([1.0], [1.0, 2.0, 3.0])
    )

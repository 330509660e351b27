"""Every parameter, by name."""

import toytorch as torch
from course.cases import case
from course.properties import agrees
from course.records import Exercise
from toytorch import nn
from toytorch.nn.modules.registration import Tree, using

_own_names = Tree.named_parameters


def _walked(f):
    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        if not recurse or not remove_duplicate:
            return _own_names(self, prefix, recurse, remove_duplicate)
        return iter(f(self, prefix + "." if prefix else ""))

    return using(named_parameters=named_parameters)


walk = Exercise(
    "modules.parameters",
    "Every parameter, by name",
    chapter=7,
    minutes=12,
    optional=True,
    inject=_walked,
    limit=4.0,
    prompt="""
    An optimizer wants all parameters of a network, a file wants their names. Both come from one
    walk over the tree. Write `named_parameters(module, prefix="", seen=None)`, which returns a list
    of pairs `(name, parameter)`:

    * first the module's own, from `module._parameters`, in order;
    * then those of each child in `module._modules`, in order, with the child's name and a dot in
      front: `"blocks.0.weight"`. `prefix` is what stands in front already, its dot included;
    * an entry may be `None` (a layer without bias, a child that was removed): skip it. A frozen
      parameter (`requires_grad` is `False`) is a parameter like any other;
    * a parameter that two layers **share** comes once, under the first of its names. `seen` holds
      the `id` of those already found; whoever calls from outside leaves it out.
    """,
    without=("torch.nn.Module.named_parameters", "torch.nn.Module.parameters",),
    hints=(
        """
        The function does three small things for the module it is given: list its own parameters, call
        itself for each child with a longer prefix, and put the lists together. The set `seen` is one object
        for the whole walk: whoever calls hands it on.
        """,
        """
        A network with a parameter `scale` of its own, a layer `first`, and `second`, whose weight *is* the
        weight of `first`:

        | call | own parameters | its result | `seen` after it |
        | --- | --- | --- | --- |
        | for `net` | `scale` | `scale` | {scale} |
        | for `net.first`, with `"first."` | `weight`, `bias` | `first.weight`, `first.bias` | {scale, W, b₁} |
        | for `net.second`, with `"second."` | `weight` (seen), `bias` | `second.bias` | {scale, W, b₁, b₂} |

        The first call joins the three lists: `scale, first.weight, first.bias, second.bias`.
        """,
        """
        ```python
        def named_parameters(module, prefix="", seen=None):
            seen = ...
            found = []
            for name, p in module._parameters.items():
                if ...:
                    seen.add(id(p))
                    found.append(...)
            for name, child in module._modules.items():
                if child is not None:
                    found += ...
            return found
        ```
        """,
    ),
)


@walk.reference(stub="your code here: about 10 lines")
def named_parameters(module, prefix="", seen=None):
    """(name, parameter) of a module and of all below it, as a list."""
    seen = set() if seen is None else seen
    found = []
    for name, p in module._parameters.items():
        if p is not None and id(p) not in seen:
            seen.add(id(p))
            found.append((prefix + name, p))
    for name, child in module._modules.items():
        if child is not None:
            found += named_parameters(child, prefix + name + ".", seen)
    return found


@walk.mutant(
    "stays in the module itself",
    why="""
    Only the module's own parameters came. A network has hardly any; they are in its layers, and in
    the layers of its layers. Walk into `module._modules`.
    """,
)
def named_parameters(module, prefix="", seen=None):
    return [(prefix + n, p) for n, p in module._parameters.items() if p is not None]


@walk.mutant(
    "one level deep",
    why="""
    The children were visited and the children's children were not. A tree has any depth: let the
    function call itself for each child, and it ends by itself where there are no more.
    """,
)
def named_parameters(module, prefix="", seen=None):
    found = [(prefix + n, p) for n, p in module._parameters.items() if p is not None]
    for name, child in module._modules.items():
        found += [(f"{prefix}{name}.{n}", p) for n, p in child._parameters.items()
                  if p is not None]
    return found


walk.changed(
    "names without their path",
    """
    Every layer calls its parameter `weight`. Without the path to it in front, a file could hold only
    one of them. Hand `prefix + name + "."` down to the child.
    """,
    ("for name, child in module._modules.items():", "for child in module._modules.values():"),
    (
        'found += named_parameters(child, prefix + name + ".", seen)',
        "found += named_parameters(child, prefix, seen)",
    ),
)

walk.changed(
    "only the last part of the path",
    """
    The child's name was put in front, and what stood in front of *that* was dropped, so
    `blocks.0.weight` became `0.weight`. Names grow from level to level: `prefix + name + "."`.
    """,
    (
        'found += named_parameters(child, prefix + name + ".", seen)',
        'found += named_parameters(child, name + ".", seen)',
    ),
)


@walk.mutant(
    "a shared parameter twice",
    why="""
    A parameter with two names came twice. An optimizer that gets it twice also steps twice, and
    with momentum it is worse. It is one tensor with one gradient: remember the `id` of what was
    found.
    """,
)
def named_parameters(module, prefix="", seen=None):
    found = [(prefix + n, p) for n, p in module._parameters.items() if p is not None]
    for name, child in module._modules.items():
        if child is not None:
            found += named_parameters(child, prefix + name + ".")
    return found


walk.changed(
    "takes equal for the same",
    """
    Two parameters were taken for one because their *values* are equal, as all biases are that start
    at zero. They will not stay equal. Shared means the same object: compare `id(p)`, or use `is`.
    """,
    ("seen = set() if seen is None else seen", "seen = [] if seen is None else seen"),
    (
        "        if p is not None and id(p) not in seen:\n"
        "            seen.add(id(p))",
        "        if p is not None and not any(torch.equal(p, q) for q in seen):\n"
        "            seen.append(p)",
    ),
)


@walk.mutant(
    "children first",
    why="""
    The children's parameters came before the module's own. The order matters: an optimizer saves
    its state by *position*, and a checkpoint is read in the order in which it was written.
    """,
)
def named_parameters(module, prefix="", seen=None):
    seen = set() if seen is None else seen
    found = []
    for name, child in module._modules.items():
        if child is not None:
            found += named_parameters(child, prefix + name + ".", seen)
    for name, p in module._parameters.items():
        if p is not None and id(p) not in seen:
            seen.add(id(p))
            found.append((prefix + name, p))
    return found


walk.changed(
    "remembers across calls",
    """
    The second call found nothing. A default like `seen=set()` or `seen={}` is made *once*, when
    Python reads the `def`, and all calls share it: after the first walk everything has been seen.
    Hence `None`, and a new set inside.
    """,
    (
        'def named_parameters(module, prefix="", seen=None):\n'
        '    """(name, parameter) of a module and of all below it, as a list."""\n'
        "    seen = set() if seen is None else seen",
        'def named_parameters(module, prefix="", seen={}):',
    ),
    ("seen.add(id(p))", "seen[id(p)] = p"),
)

walk.changed(
    "hands out None",
    """
    `nn.Linear(3, 3, bias=False)` keeps its missing bias as `None`, so that `self.bias` exists. It
    is no parameter, and an optimizer that is handed it fails.
    """,
    ("if p is not None and id(p) not in seen:", "if p is None or id(p) not in seen:"),
)


class _Deep(nn.Module):
    """Parameters of its own, layers, and layers in layers."""

    def __init__(self, share=False):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.blocks = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4)))
        self.scale = nn.Parameter(torch.ones(1))
        if share:
            self.blocks[1][0].weight = self.blocks[0].weight


_DEEP = ["scale", "first.weight", "first.bias", "blocks.0.weight", "blocks.0.bias",
         "blocks.1.0.weight", "blocks.1.0.bias"]


@walk.check("one layer")
def _(f):
    yield case("the names for nn.Linear(3, 4)",
               lambda: [n for n, _ in f(nn.Linear(3, 4))]).gives(["weight", "bias"])


@walk.check("a tree")
def _(f):
    yield case("a network with a parameter of its own and layers in layers",
               lambda: [n for n, _ in f(_Deep())]).gives(_DEEP)

    def same():
        net = _Deep()
        return all(net.get_parameter(name) is p for name, p in f(net))

    yield case("each name leads to its parameter", same).gives(True)


@walk.check("a layer without bias")
def _(f):
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2))
    yield case("nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2))",
               lambda: [(n, p is not None) for n, p in f(net)]).gives(
        [("0.weight", True), ("1.weight", True), ("1.bias", True)])


@walk.check("a shared parameter")
def _(f):
    wanted = [n for n in _DEEP if n != "blocks.1.0.weight"]
    yield case("the same, where blocks.1.0.weight is blocks.0.weight",
               lambda: [n for n, _ in f(_Deep(share=True))]).gives(wanted)


@walk.check("equal is not the same", hidden=True)
def _(f):
    def zeros():
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        for p in net.parameters():
            nn.init.zeros_(p)
        return len(f(net))

    yield case("two layers whose parameters are all zero: how many", zeros).gives(4)


@walk.check("twice in a row")
def _(f):
    net = nn.Linear(3, 4)

    def twice():
        f(net)
        return [n for n, _ in f(net)]

    yield case("the second call for the same network", twice).gives(["weight", "bias"])


walk.changed(
    "skips frozen parameters",
    """
    A frozen parameter is left out. It is not trained, but it is part of the network: it has to be
    saved, moved and counted. Who wants only the trainable ones asks for `p.requires_grad`
    afterwards.
    """,
    ("if p is not None and id(p)", "if p is not None and p.requires_grad and id(p)"),
)

walk.changed(
    "takes one memory for one parameter",
    """
    Parameters were told apart by `data_ptr()`, where their memory begins. Two empty parameters have
    the same, and so have two that are views of one tensor; each of them has its own gradient.
    Shared means the same object: `id(p)`.
    """,
    ("id(p) not in seen", "p.data_ptr() not in seen"),
    ("seen.add(id(p))", "seen.add(p.data_ptr())"),
)

walk.changed(
    "one dot too many",
    """
    `prefix` comes with its dot: `"net."`. Here another one was added, so that names became
    `net..weight`.
    """,
    ("    found = []\n", "    found, prefix = [], prefix + '.' if prefix else prefix\n"),
    ("prefix + name + \".\"", "prefix + name"),
)

walk.changed(
    "fails for a child that was removed",
    """
    `net.layer = None` leaves the name in `_modules`, with `None` behind it. There is nothing below
    `None`: skip it, as you skip a parameter that is `None`.
    """,
    ("        if child is not None:\n            found +=", "        found +="),
)

walk.changed(
    "each child has a memory of its own",
    """
    Each child was handed a *copy* of `seen`. What one child finds, the next one does not know, so a
    parameter that two children share comes twice. All calls of one walk use the same set.
    """,
    ('prefix + name + ".", seen)', 'prefix + name + ".", set(seen))'),
)


def _tree(draw, depth=0):
    """A network as nested lists: "p", "frozen", "empty", None, "shared", or a list for a child."""
    leaves = ["p", "p", "frozen", "empty", "none", "shared", "view"]
    return [
        _tree(draw, depth + 1) if depth < 3 and draw.random() < 0.4 else draw.choice([*leaves, None])
        for _ in range(draw.randint(1, 3))
    ]


def _planted(tree, shared=None):
    shared = nn.Parameter(torch.ones(4)) if shared is None else shared
    made = nn.Module()
    for number, part in enumerate(tree):
        if isinstance(part, list):
            setattr(made, f"child{number}", _planted(part, shared))
        elif part is None:
            made.register_module(f"gone{number}", None)
        elif part == "none":
            made.register_parameter(f"none{number}", None)
        elif part == "shared":
            setattr(made, f"shared{number}", shared)
        elif part == "view":
            setattr(made, f"view{number}", nn.Parameter(shared.detach()[:2]))
        else:
            p = nn.Parameter(torch.ones(0 if part == "empty" else 2), requires_grad=part != "frozen")
            setattr(made, f"{part}{number}", p)
    return made


@walk.check("any network")
def _(f):
    def names(walker):
        def run(tree, prefix):
            made = _planted(tree)
            return [(n, list(p.shape)) for n, p in walker(made, prefix)]

        return run

    yield agrees(
        names(f),
        names(walk.answer.value),
        lambda draw: (_tree(draw), draw.choice(["", "net."])),
        count=60,
        tell=lambda tree, prefix: f"the names for the network {tree}, prefix {prefix!r}",
    )

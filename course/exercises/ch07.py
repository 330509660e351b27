"""Chapter 07, Modules: attributes that register, names, a layer, states, statistics, hooks."""

import contextlib
import math

import toytorch as torch
from course.cases import case
from course.records import Exercise
from toytorch import nn
from toytorch.nn.modules.registration import Tree
from toytorch.nn.modules.replaced_parts import using
from toytorch.nn.modules.state import IncompatibleKeys, Stateful

# -- attributes that register ---------------------------------------------------------------------

registering = Exercise(
    "modules.register",
    "The assignment that registers",
    chapter=7,
    minutes=14,
    door=lambda f: using(__setattr__=f),
    prompt="""
    Python turns `self.layer = value` into `__setattr__(self, "layer", value)`. There a module looks
    at what it is given. It has three dictionaries, `self._parameters`, `self._modules` and
    `self._buffers`; all else lies in `self.__dict__`. Write it: `register(self, name, value)`.

    | the value is | what happens |
    | --- | --- |
    | an `nn.Parameter` | goes into `self._parameters`, and out of all other places |
    | an `nn.Module` | goes into `self._modules`, and out of all other places |
    | `None`, and the name is a parameter's or a module's | is kept there, as `None` |
    | anything else, for such a name | `TypeError` that says "parameter" or "module" |
    | anything, and the name is a buffer's | replaces it in `self._buffers` |
    | anything else | Python's own way, which is `object.__setattr__` |

    `super().__init__()` makes the three. If `"_parameters"` is not in `self.__dict__`, somebody
    forgot it: for a parameter or a module, raise an `AttributeError` that mentions `__init__`.
    """,
)


@registering.stub
def register(self, name, value):
    """What self.name = value does, for a module self."""
    # your code here: about 18 lines
    raise NotImplementedError


@registering.reference
def register(self, name, value):
    """What self.name = value does, for a module self."""
    own, kind = self.__dict__, None
    if isinstance(value, nn.Parameter):
        kind = "_parameters"
    elif isinstance(value, nn.Module):
        kind = "_modules"
    if "_parameters" not in own:
        if kind:
            raise AttributeError("call super().__init__() first")
        object.__setattr__(self, name, value)
    elif kind:
        for place in (own, self._parameters, self._modules, self._buffers):
            if place is not own[kind]:
                place.pop(name, None)
        own[kind][name] = value  # in its old place, if it had one
    elif name in self._parameters or name in self._modules:
        kind = "_parameters" if name in self._parameters else "_modules"
        if value is not None:
            raise TypeError(f"{name} is one of {kind}, not {value!r}")
        own[kind][name] = None
    elif name in self._buffers:
        self._buffers[name] = value
    else:
        object.__setattr__(self, name, value)


@registering.mutant(
    "everything is a plain attribute",
    why="""
    The values can be read again, so `forward` works, and the module's dictionaries stay empty. Then
    `parameters()` finds nothing, the optimizer gets nothing, and nothing is saved. Look at what the
    value *is* before you store it.
    """,
)
def register(self, name, value):
    object.__setattr__(self, name, value)


@registering.mutant(
    "calls itself without end",
    why="""
    Inside `__setattr__`, an ordinary assignment (or `setattr`) calls `__setattr__` again, and
    again. `object.__setattr__(self, name, value)` goes past your method to Python's own.
    """,
)
def register(self, name, value):
    if isinstance(value, nn.Parameter):
        self._parameters[name] = value
    elif isinstance(value, nn.Module):
        self._modules[name] = value
    else:
        setattr(self, name, value)


@registering.mutant(
    "only parameters",
    why="""
    Parameters were registered and modules were not. A network has few parameters of its own: nearly
    all sit in its layers, and without the layers in `self._modules` there is no way to them.
    """,
)
def register(self, name, value):
    own = self.__dict__
    if "_parameters" not in own:
        if isinstance(value, nn.Parameter):
            raise AttributeError("call super().__init__() first")
        object.__setattr__(self, name, value)
    elif isinstance(value, nn.Parameter):
        own.pop(name, None)
        self._parameters[name] = value
    else:
        object.__setattr__(self, name, value)


@registering.mutant(
    "every tensor is a parameter",
    why="""
    Any tensor was taken for a parameter. A module may well keep a tensor that nobody should train:
    a mask, a table, the last output. Only an `nn.Parameter` says *learn me*; that is the whole
    reason for the class.
    """,
)
def register(self, name, value):
    own, kind = self.__dict__, None
    if isinstance(value, torch.Tensor) and name not in own.get("_buffers", {}):
        kind = "_parameters"
    elif isinstance(value, nn.Module):
        kind = "_modules"
    if "_parameters" not in own:
        if kind:
            raise AttributeError("call super().__init__() first")
        object.__setattr__(self, name, value)
    elif kind:
        for place in (own, self._parameters, self._modules, self._buffers):
            if place is not own[kind]:
                place.pop(name, None)
        own[kind][name] = value
    elif name in self._parameters or name in self._modules:
        if value is not None:
            raise TypeError(f"{name} is a parameter or a module")
        kind = "_parameters" if name in self._parameters else "_modules"
        own[kind][name] = None
    elif name in self._buffers:
        self._buffers[name] = value
    else:
        object.__setattr__(self, name, value)


@registering.mutant(
    "a plain value hides the parameter",
    why="""
    After `net.weight = torch.zeros(2)` there were two: a plain attribute that `forward` reads, and
    behind it the parameter that the optimizer trains. Nothing would be learned, without a word.
    That is why a parameter's name takes parameters (or None) only.
    """,
)
def register(self, name, value):
    own, kind = self.__dict__, None
    if isinstance(value, nn.Parameter):
        kind = "_parameters"
    elif isinstance(value, nn.Module):
        kind = "_modules"
    if "_parameters" not in own:
        if kind:
            raise AttributeError("call super().__init__() first")
        object.__setattr__(self, name, value)
    elif kind:
        for place in (own, self._parameters, self._modules, self._buffers):
            if place is not own[kind]:
                place.pop(name, None)
        own[kind][name] = value
    elif name in self._buffers:
        self._buffers[name] = value
    else:
        object.__setattr__(self, name, value)


@registering.mutant(
    "the old value stays under the same name",
    why="""
    The name had a plain value first, then a parameter, and now it has both. Python looks into
    `__dict__` before it asks a module, so the *old* value is what everybody reads. Take the name
    out of all other places when you register it.
    """,
)
def register(self, name, value):
    own, kind = self.__dict__, None
    if isinstance(value, nn.Parameter):
        kind = "_parameters"
    elif isinstance(value, nn.Module):
        kind = "_modules"
    if "_parameters" not in own:
        if kind:
            raise AttributeError("call super().__init__() first")
        object.__setattr__(self, name, value)
    elif kind:
        own[kind][name] = value
    elif name in self._parameters or name in self._modules:
        kind = "_parameters" if name in self._parameters else "_modules"
        if value is not None:
            raise TypeError(f"{name} is one of {kind}")
        own[kind][name] = None
    elif name in self._buffers:
        self._buffers[name] = value
    else:
        object.__setattr__(self, name, value)


@registering.mutant(
    "a buffer turns into an attribute",
    why="""
    A new value for a buffer went into `__dict__`. From then on `forward` reads the new one, while
    `state_dict` saves the old one, and `to(device)` moves the old one. Look into `self._buffers`
    before you store anything as a plain attribute.
    """,
)
def register(self, name, value):
    own, kind = self.__dict__, None
    if isinstance(value, nn.Parameter):
        kind = "_parameters"
    elif isinstance(value, nn.Module):
        kind = "_modules"
    if "_parameters" not in own:
        if kind:
            raise AttributeError("call super().__init__() first")
        object.__setattr__(self, name, value)
    elif kind:
        for place in (own, self._parameters, self._modules, self._buffers):
            if place is not own[kind]:
                place.pop(name, None)
        own[kind][name] = value
    elif name in self._parameters or name in self._modules:
        kind = "_parameters" if name in self._parameters else "_modules"
        if value is not None:
            raise TypeError(f"{name} is one of {kind}")
        own[kind][name] = None
    else:
        object.__setattr__(self, name, value)


@registering.mutant(
    "does not ask whether the tables are there",
    why="""
    Without `super().__init__()` there are no tables, and this fails with an error about a name the
    author of the network has never heard of. The forgotten call is the commonest mistake of all, so
    the message should say what to do.
    """,
)
def register(self, name, value):
    own, kind = self.__dict__, None
    if isinstance(value, nn.Parameter):
        kind = "_parameters"
    elif isinstance(value, nn.Module):
        kind = "_modules"
    if kind:
        for place in (own, own["_parameters"], own["_modules"], own["_buffers"]):
            if place is not own[kind]:
                place.pop(name, None)
        own[kind][name] = value
    elif name in own.get("_parameters", ()) or name in own.get("_modules", ()):
        kind = "_parameters" if name in self._parameters else "_modules"
        if value is not None:
            raise TypeError(f"{name} is one of {kind}")
        own[kind][name] = None
    elif name in own.get("_buffers", ()):
        self._buffers[name] = value
    else:
        object.__setattr__(self, name, value)


class _Part(nn.Module):
    """A module with one of everything."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.inner = nn.Identity()
        self.bias = nn.Parameter(torch.zeros(2))
        self.factor = 3.0
        self.register_buffer("count", torch.zeros(1))


def _tables(module):
    return {t[1:]: list(getattr(module, t)) for t in ("_parameters", "_modules", "_buffers")}


@registering.check("each value in its place")
def _(f):
    def built():
        with using(__setattr__=f):
            return _tables(_Part())

    text = "a module with parameters weight and bias, a module inner, a number, a buffer count"
    yield case(text, built).gives(
        {"parameters": ["weight", "bias"], "modules": ["inner"], "buffers": ["count"]})

    def number():
        with using(__setattr__=f):
            return _Part().factor

    yield case("its factor, a plain number", number).gives(3.0)


@registering.check("a tensor that is not meant to be learned")
def _(f):
    def kept():
        with using(__setattr__=f):
            part = _Part()
            part.mask = torch.ones(2)
            return [*_tables(part)["parameters"], part.mask.tolist()]

    yield case("part.mask = torch.ones(2); the parameters, and the mask", kept).gives(
        ["weight", "bias", [1.0, 1.0]])


@registering.check("one name, one meaning")
def _(f):
    def replaced():
        with using(__setattr__=f):
            part = _Part()
            part.factor = nn.Parameter(torch.full((1,), 5.0))
            return part.factor.tolist()

    yield case("part.factor = nn.Parameter(tensor([5.])); part.factor", replaced).gives([5.0])

    def again():
        with using(__setattr__=f):
            part = _Part()
            part.weight = nn.Parameter(torch.zeros(2))
            part.bias = nn.ReLU()
            return _tables(part)

    yield case("a new parameter weight, and a module for bias", again).gives(
        {"parameters": ["weight"], "modules": ["inner", "bias"], "buffers": ["count"]})


@registering.check("a parameter's name takes no other value")
def _(f):
    def tensor():
        with using(__setattr__=f):
            _Part().weight = torch.zeros(2)

    yield case("part.weight = torch.zeros(2)", tensor).raises(TypeError, "parameter")

    def nothing():
        with using(__setattr__=f):
            part = _Part()
            part.bias = None
            return _tables(part)["parameters"], len(list(part.parameters()))

    yield case("part.bias = None; the names, and how many parameters", nothing).gives(
        (["weight", "bias"], 1))


@registering.check("a new value for a buffer", hidden=True)
def _(f):
    def counted():
        with using(__setattr__=f):
            part = _Part()
            part.count = part.count + 1
            return part.state_dict()["count"].tolist()

    yield case("part.count = part.count + 1; what state_dict() saves", counted).gives([1.0])


@registering.check("without super().__init__()")
def _(f):
    class Forgot(nn.Module):
        def __init__(self, value):
            self.value = value

    def forgot():
        with using(__setattr__=f):
            Forgot(nn.Identity())

    yield case("self.layer = nn.Identity(), before super().__init__()", forgot).raises(
        AttributeError, "__init__")

    def number():
        with using(__setattr__=f):
            return Forgot(7).value

    yield case("self.size = 7, before super().__init__()", number).gives(7)


# -- names and parameters -------------------------------------------------------------------------

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
    door=_walked,
    limit=4.0,
    prompt="""
    An optimizer wants all parameters of a network, a file wants their names. Both come from one
    walk over the tree. Write `named_parameters(module, prefix="", seen=None)`, which returns a list
    of pairs `(name, parameter)`:

    * first the module's own, from `module._parameters`, in order;
    * then those of each child in `module._modules`, in order, with the child's name and a dot in
      front: `"blocks.0.weight"`. `prefix` is what stands in front already, its dot included;
    * an entry may be `None` (a layer without bias, a child that was removed): skip it;
    * a parameter that two layers **share** comes once, under the first of its names. `seen` holds
      the `id` of those already found; whoever calls from outside leaves it out.
    """,
)


@walk.stub
def named_parameters(module, prefix="", seen=None):
    """(name, parameter) of a module and of all below it, as a list."""
    # your code here: about 10 lines
    raise NotImplementedError


@walk.reference
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


@walk.mutant(
    "names without their way",
    why="""
    Every layer calls its parameter `weight`. Without the way to it in front, a file could hold only
    one of them. Hand `prefix + name + "."` down to the child.
    """,
)
def named_parameters(module, prefix="", seen=None):
    seen = set() if seen is None else seen
    found = []
    for name, p in module._parameters.items():
        if p is not None and id(p) not in seen:
            seen.add(id(p))
            found.append((prefix + name, p))
    for child in module._modules.values():
        if child is not None:
            found += named_parameters(child, prefix, seen)
    return found


@walk.mutant(
    "only the last part of the way",
    why="""
    The child's name was put in front, and what stood in front of *that* was dropped, so
    `blocks.0.weight` became `0.weight`. Names grow on the way down: `prefix + name + "."`.
    """,
)
def named_parameters(module, prefix="", seen=None):
    seen = set() if seen is None else seen
    found = []
    for name, p in module._parameters.items():
        if p is not None and id(p) not in seen:
            seen.add(id(p))
            found.append((prefix + name, p))
    for name, child in module._modules.items():
        if child is not None:
            found += named_parameters(child, name + ".", seen)
    return found


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


@walk.mutant(
    "takes equal for the same",
    why="""
    Two parameters were taken for one because their *values* are equal, as all biases are that start
    at zero. They will not stay equal. Shared means the same object: compare `id(p)`, or use `is`.
    """,
)
def named_parameters(module, prefix="", seen=None):
    seen = [] if seen is None else seen
    found = []
    for name, p in module._parameters.items():
        if p is not None and not any(torch.equal(p, q) for q in seen):
            seen.append(p)
            found.append((prefix + name, p))
    for name, child in module._modules.items():
        if child is not None:
            found += named_parameters(child, prefix + name + ".", seen)
    return found


@walk.mutant(
    "children first",
    why="""
    The children's parameters came before the module's own. The order is a promise: an optimizer
    saves its state by *number*, and a checkpoint is read in the order it was written.
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


@walk.mutant(
    "remembers across calls",
    why="""
    The second call found nothing. A default like `seen=set()` or `seen={}` is made *once*, when
    Python reads the `def`, and all calls share it: after the first walk everything has been seen.
    Hence `None`, and a new set inside.
    """,
)
def named_parameters(module, prefix="", seen={}):
    found = []
    for name, p in module._parameters.items():
        if p is not None and id(p) not in seen:
            seen[id(p)] = p
            found.append((prefix + name, p))
    for name, child in module._modules.items():
        if child is not None:
            found += named_parameters(child, prefix + name + ".", seen)
    return found


@walk.mutant(
    "hands out None",
    why="""
    `nn.Linear(3, 3, bias=False)` keeps its missing bias as `None`, so that `self.bias` exists. It
    is no parameter, and an optimizer that is handed it fails.
    """,
)
def named_parameters(module, prefix="", seen=None):
    seen = set() if seen is None else seen
    found = []
    for name, p in module._parameters.items():
        if p is None or id(p) not in seen:
            seen.add(id(p))
            found.append((prefix + name, p))
    for name, child in module._modules.items():
        if child is not None:
            found += named_parameters(child, prefix + name + ".", seen)
    return found


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


# -- a layer --------------------------------------------------------------------------------------

linear = Exercise(
    "modules.linear",
    "A linear layer",
    chapter=7,
    minutes=12,
    prompt="""
    Write the class `Linear(in_features, out_features, bias=True)`. It computes
    $y = x W^\\top + b$ for `x` of shape `(…, in_features)`.

    * `self.weight` is an `nn.Parameter` of shape `(out_features, in_features)`: one **row** for
      each output, as PyTorch has it. `self.bias` is an `nn.Parameter` of shape `(out_features,)`,
      or `None`.
    * All numbers start **uniform between $-k$ and $k$**, with $k = 1/\\sqrt{n}$ for
      `n = in_features`. Make the tensor first (`torch.rand`, or
      `torch.empty(…).uniform_(-k, k)`) and wrap the finished one: whatever you compute *from* a
      parameter is no parameter any more.
    """,
)


@linear.stub
class Linear(nn.Module):
    """y = x @ W.T + b; W: (out, in), b: (out)."""

    def __init__(self, in_features, out_features, bias=True):
        # your code here: about 6 lines
        raise NotImplementedError

    def forward(self, x):
        # your code here: about 2 lines
        raise NotImplementedError


@linear.reference
class Linear(nn.Module):
    """y = x @ W.T + b; W: (out, in), b: (out)."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        k = 1 / math.sqrt(in_features)
        weight = torch.empty(out_features, in_features)
        self.weight = nn.Parameter(weight.uniform_(-k, k))
        self.bias = None
        if bias:
            start = torch.empty(out_features).uniform_(-k, k)
            self.bias = nn.Parameter(start)

    def forward(self, x):
        y = x @ self.weight.t()
        return y if self.bias is None else y + self.bias


@linear.mutant(
    "forgets super().__init__()",
    why="""
    The three tables of a module are made by `nn.Module`'s own `__init__`. Without
    `super().__init__()` as the first line there is no place where a parameter could be registered.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        k = 1 / math.sqrt(in_features)
        weight = torch.empty(out_features, in_features)
        self.weight = nn.Parameter(weight.uniform_(-k, k))
        self.bias = nn.Parameter(torch.empty(out_features).uniform_(-k, k)) if bias else None

    def forward(self, x):
        y = x @ self.weight.t()
        return y if self.bias is None else y + self.bias


@linear.mutant(
    "plain tensors",
    why="""
    The weights are tensors, perhaps ones that require a gradient, and not `nn.Parameter`s: the
    module never heard of them. The same happens to `nn.Parameter(torch.rand(…)) * k`, which is the
    *product* of a parameter and a number, and so no parameter any more.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        k = 1 / math.sqrt(in_features)
        weight = torch.empty(out_features, in_features).uniform_(-k, k)
        self.weight = weight.requires_grad_()
        self.bias = torch.empty(out_features).uniform_(-k, k).requires_grad_() if bias else None

    def forward(self, x):
        y = x @ self.weight.t()
        return y if self.bias is None else y + self.bias


@linear.mutant(
    "the weight lies the other way round",
    why="""
    The weight has the shape (in, out). The products come out right, and yet no file that PyTorch
    wrote can be loaded, and whatever looks at `weight[i]` as *the weights of output i* is wrong.
    PyTorch keeps (out, in), and multiplies by the transpose.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        k = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(in_features, out_features).uniform_(-k, k))
        self.bias = nn.Parameter(torch.empty(out_features).uniform_(-k, k)) if bias else None

    def forward(self, x):
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


@linear.mutant(
    "there is always a bias",
    why="""
    `bias=False` was not looked at. In front of a batch norm a bias is of no use: the norm takes the
    mean away, and with it any constant. So it is common to leave it out.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        k = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-k, k))
        self.bias = nn.Parameter(torch.empty(out_features).uniform_(-k, k))

    def forward(self, x):
        return x @ self.weight.t() + self.bias


@linear.mutant(
    "measured by its outputs",
    why="""
    The bound came from `out_features`. Each output is a sum over the *inputs*, and it is their
    number (the *fan in*) that makes the sum large: k is 1/√in.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        k = 1 / math.sqrt(out_features)
        self.weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-k, k))
        self.bias = nn.Parameter(torch.empty(out_features).uniform_(-k, k)) if bias else None

    def forward(self, x):
        y = x @ self.weight.t()
        return y if self.bias is None else y + self.bias


@linear.mutant(
    "starts at zero",
    why="""
    With all weights equal, all hidden units compute the same, get the same gradient, and stay the
    same for ever. Whatever the size of the layer, it is then one unit. Random numbers are there to
    make the units differ.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x):
        y = x @ self.weight.t()
        return y if self.bias is None else y + self.bias


@linear.mutant(
    "only positive weights",
    why="""
    `torch.rand` gives numbers from 0 to 1, so these lie between 0 and k. Then every output is the
    mean brightness of the input, more or less, and the next layer sees the same number everywhere.
    Shift them: `(2 * torch.rand(…) - 1) * k`.
    """,
)
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        k = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.rand(out_features, in_features) * k)
        self.bias = nn.Parameter(torch.rand(out_features) * k) if bias else None

    def forward(self, x):
        y = x @ self.weight.t()
        return y if self.bias is None else y + self.bias


@linear.check("its parameters")
def _(f):
    def shapes(**options):
        layer = f(3, 5, **options)
        return {n: tuple(p.shape) for n, p in layer.named_parameters()}

    yield case("the parameters of Linear(3, 5)", shapes).gives({"weight": (5, 3), "bias": (5,)})
    yield case("the parameters of Linear(3, 5, bias=False)",
               lambda: shapes(bias=False)).gives({"weight": (5, 3)})


@linear.check("the sum")
def _(f):
    def fixed(x, bias=True):
        layer = f(3, 2, bias)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 1.0]]).reshape(
                layer.weight.shape))
            if bias:
                layer.bias.copy_(torch.tensor([10.0, 20.0]))
            return layer(x)

    x = torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 2.0]])
    text = "weight [[1, 2, 3], [0, -1, 1]], "
    yield case(text + "bias [10, 20], x = [[1, 1, 1], [0, 0, 2]]", lambda: fixed(x)).gives(
        torch.tensor([[16.0, 20.0], [16.0, 22.0]]))
    yield case(text + "no bias, x of shape (1, 2, 3)", lambda: fixed(x[None], False)).gives(
        torch.tensor([[[6.0, 0.0], [6.0, 2.0]]]))


@linear.check("how it starts", hidden=True)
def _(f):
    def spread():
        torch.manual_seed(0)
        w = f(400, 100).weight
        return bool(w.abs().max() <= 0.05), bool(w.max() > 0.045), bool(w.min() < -0.045)

    text = "Linear(400, 100), k = 0.05: nothing beyond k; some near k; some near -k"
    yield case(text, spread).gives((True, True, True))


# -- loading a state ------------------------------------------------------------------------------

_own_load = Stateful.load_state_dict


def _loading(f):
    def load_state_dict(self, state_dict, strict=True, assign=False):
        if assign:
            return _own_load(self, state_dict, strict, assign)
        return IncompatibleKeys(*f(self, state_dict, strict))

    return using(load_state_dict=load_state_dict)


load = Exercise(
    "modules.load",
    "Loading a state",
    chapter=7,
    minutes=12,
    door=_loading,
    prompt="""
    `model.state_dict()` gives the values of all parameters and buffers by name. Write the way back:
    `load_state(module, state, strict=True)` copies the values of `state`, a dictionary of tensors
    by name, into the module.

    * A hint that makes it short: the tensors in `module.state_dict()` **share memory** with the
      module's own. What you `copy_` into them is in the module.
    * `missing` are the module's names that `state` lacks, `unexpected` the names in `state` that
      the module lacks. If `strict` and there are any of either: `RuntimeError`, with the names in
      the message.
    * A value of another **shape** is always a `RuntimeError`, strict or not.
    * Return the two lists, `(missing, unexpected)`.
    """,
)


@load.stub
def load_state(module, state, strict=True):
    """Copy values by name into a module; returns (missing, unexpected)."""
    # your code here: about 10 lines
    raise NotImplementedError


@load.reference
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


@load.mutant(
    "takes the other one's memory",
    why="""
    The values were not copied: the module now *uses* the tensors of the dictionary. Train it on,
    and the dictionary changes too, and with it the network they came from. `copy_` writes the
    numbers into the memory the module has.
    """,
)
def load_state(module, state, strict=True):
    mine = module.state_dict(keep_vars=True)
    missing = [name for name in mine if name not in state]
    unexpected = [name for name in state if name not in mine]
    if strict and (missing or unexpected):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}")
    for name in mine:
        if name in state:
            if mine[name].shape != state[name].shape:
                raise RuntimeError(f"{name} has another shape")
            mine[name].data = state[name]
    return missing, unexpected


@load.mutant(
    "makes new parameters",
    why="""
    The module got *new* parameters. An optimizer that was made before still holds the old ones: it
    trains them on, and the network does not change any more. Write into the parameters that are
    there.
    """,
)
def load_state(module, state, strict=True):
    mine = module.state_dict()
    missing = [name for name in mine if name not in state]
    unexpected = [name for name in state if name not in mine]
    if strict and (missing or unexpected):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}")
    for name in mine:
        if name not in state:
            continue
        if mine[name].shape != state[name].shape:
            raise RuntimeError(f"{name} has another shape")
        path, _, last = name.rpartition(".")
        owner = module.get_submodule(path)
        value = state[name].clone()
        setattr(owner, last, nn.Parameter(value) if last in owner._parameters else value)
    return missing, unexpected


@load.mutant(
    "ignores what it does not know",
    why="""
    Names that the module lacks were passed over in silence. They mostly mean that the file belongs
    to another network, or that a layer was renamed, in which case the values you wanted are the
    ones that were ignored. That is what `strict` is for.
    """,
)
def load_state(module, state, strict=True):
    mine = module.state_dict()
    missing = [name for name in mine if name not in state]
    unexpected = [name for name in state if name not in mine]
    if strict and missing:
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}")
    for name in mine:
        if name in state:
            if mine[name].shape != state[name].shape:
                raise RuntimeError(f"{name} has another shape")
            mine[name].copy_(state[name])
    return missing, unexpected


@load.mutant(
    "ignores what is missing",
    why="""
    A parameter that the file lacks kept its random start, and nobody was told. Half a network is
    trained then and half is noise, and the only sign is that the results are poor.
    """,
)
def load_state(module, state, strict=True):
    mine = module.state_dict()
    missing = [name for name in mine if name not in state]
    unexpected = [name for name in state if name not in mine]
    if strict and unexpected:
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}")
    for name in mine:
        if name in state:
            if mine[name].shape != state[name].shape:
                raise RuntimeError(f"{name} has another shape")
            mine[name].copy_(state[name])
    return missing, unexpected


@load.mutant(
    "strict whatever is said",
    why="""
    `strict=False` was not looked at. It is needed when only a part fits, as for a network with a
    new last layer: then the caller reads the two lists and decides.
    """,
)
def load_state(module, state, strict=True):
    mine = module.state_dict()
    missing = [name for name in mine if name not in state]
    unexpected = [name for name in state if name not in mine]
    if missing or unexpected:
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}")
    for name in mine:
        if mine[name].shape != state[name].shape:
            raise RuntimeError(f"{name} has another shape")
        mine[name].copy_(state[name])
    return missing, unexpected


@load.mutant(
    "lets values stretch",
    why="""
    `copy_` broadcasts: one number was copied into a whole row of weights without complaint. A state
    of another shape belongs to another network. Compare shapes before you copy.
    """,
)
def load_state(module, state, strict=True):
    mine = module.state_dict()
    missing = [name for name in mine if name not in state]
    unexpected = [name for name in state if name not in mine]
    if strict and (missing or unexpected):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}")
    for name in mine:
        if name in state:
            mine[name].copy_(state[name])
    return missing, unexpected


@load.mutant(
    "forgets the buffers",
    why="""
    Only parameters were known, and the statistics of a batch norm are buffers: not learned, but
    part of the network. Without them it would normalise by a mean of 0 and a variance of 1, which
    is what it had before training. `state_dict()` has both.
    """,
)
def load_state(module, state, strict=True):
    mine = {name: p.detach() for name, p in module.named_parameters()}
    missing = [name for name in mine if name not in state]
    unexpected = [name for name in state if name not in mine]
    if strict and (missing or unexpected):
        raise RuntimeError(f"missing {missing}, unexpected {unexpected}")
    for name in mine:
        if name in state:
            if mine[name].shape != state[name].shape:
                raise RuntimeError(f"{name} has another shape")
            mine[name].copy_(state[name])
    return missing, unexpected


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


# -- batch norm -----------------------------------------------------------------------------------

norm = Exercise(
    "modules.batchnorm",
    "Batch norm, in training and after",
    chapter=7,
    minutes=18,
    prompt="""
    A batch norm shifts and scales every feature so that a layer always gets numbers of about the
    same size. While **training** it uses the mean and variance of the batch, and keeps a running
    account of them. In **evaluation** it uses the account, so that one example's result does not
    depend on who else is in the batch. Write `BatchNorm(features, momentum=0.1, eps=1e-5)` for
    inputs of shape `(n, features)`:

    $$y = \\frac{x - \\text{mean}}{\\sqrt{\\text{var} + \\varepsilon}} \\cdot \\text{weight}
      + \\text{bias}$$

    * Parameters: `weight`, which starts at 1, and `bias`, which starts at 0. Buffers
      (`self.register_buffer(name, tensor)`): `running_mean`, 0, and `running_var`, 1.
    * `self.training` tells which of the two it is.
    * In training, each account moves a little towards the batch:
      $\\text{running} \\leftarrow (1 - m) \\cdot \\text{running} + m \\cdot \\text{batch}$.
      That is bookkeeping, and no part of the graph: do it under `torch.no_grad()`.
    * PyTorch divides by $n$ for the variance it *normalises* with (`x.var(0, correction=0)`), and
      by $n - 1$ for the one it *keeps* (`x.var(0)`).
    """,
)


@norm.stub
class BatchNorm(nn.Module):
    """Each feature in units of its own deviation; x: (n, features)."""

    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        # your code here: about 6 lines
        raise NotImplementedError

    def forward(self, x):
        # your code here: about 10 lines
        raise NotImplementedError


@norm.reference
class BatchNorm(nn.Module):
    """Each feature in units of its own deviation; x: (n, features)."""

    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean(0), x.var(0, correction=0)
            with torch.no_grad():
                m = self.momentum
                self.running_mean.mul_(1 - m).add_(m * mean)
                self.running_var.mul_(1 - m).add_(m * x.var(0))
        y = (x - mean) / torch.sqrt(var + self.eps)
        return y * self.weight + self.bias


@norm.mutant(
    "always the batch's own numbers",
    why="""
    In evaluation too, the mean came from the batch at hand. Then a result depends on its
    neighbours, and a batch of a single example comes out as all zeros. Ask `self.training`.
    """,
)
class BatchNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        mean, var = x.mean(0), x.var(0, correction=0)
        if self.training:
            with torch.no_grad():
                m = self.momentum
                self.running_mean.mul_(1 - m).add_(m * mean)
                self.running_var.mul_(1 - m).add_(m * x.var(0))
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias


@norm.mutant(
    "keeps its account in evaluation, too",
    why="""
    Evaluating changed the network: every test batch moved the running mean. Then the result depends
    on how often, and on what, you have evaluated before. Only training may write to the account.
    """,
)
class BatchNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        mean, var = self.running_mean.clone(), self.running_var.clone()
        if self.training:
            mean, var = x.mean(0), x.var(0, correction=0)
        with torch.no_grad():
            m = self.momentum
            self.running_mean.mul_(1 - m).add_(m * x.mean(0))
            self.running_var.mul_(1 - m).add_(m * x.var(0))
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias


@norm.mutant(
    "momentum the other way round",
    why="""
    The account kept a tenth of itself and took nine tenths from the batch, so it is the last batch,
    more or less. In a batch norm, `momentum` is the share of the *new* value. (In an optimizer it
    is the share of the old one. The two names were given by different people.)
    """,
)
class BatchNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean(0), x.var(0, correction=0)
            with torch.no_grad():
                m = self.momentum
                self.running_mean.mul_(m).add_((1 - m) * mean)
                self.running_var.mul_(m).add_((1 - m) * x.var(0))
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias


@norm.mutant(
    "the same variance for both",
    why="""
    The account got the variance that was divided by n. Among n numbers that is a little too small
    on average, because the mean was taken from the same numbers. PyTorch keeps the one divided by n
    - 1, since the account is to hold for examples it has not seen.
    """,
)
class BatchNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean(0), x.var(0, correction=0)
            with torch.no_grad():
                m = self.momentum
                self.running_mean.mul_(1 - m).add_(m * mean)
                self.running_var.mul_(1 - m).add_(m * var)
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias


@norm.mutant(
    "the account is no buffer",
    why="""
    The running values are plain attributes. `state_dict()` does not know them, so a saved network
    loses them, and `to(device)` leaves them behind. `register_buffer` makes a tensor part of the
    module without making it a parameter.
    """,
)
class BatchNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.running_mean = torch.zeros(features)
        self.running_var = torch.ones(features)

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean(0), x.var(0, correction=0)
            with torch.no_grad():
                m = self.momentum
                self.running_mean.mul_(1 - m).add_(m * mean)
                self.running_var.mul_(1 - m).add_(m * x.var(0))
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias


@norm.mutant(
    "the account drags its graph along",
    why="""
    The running mean was computed with autograd looking on, so it carries the graph of the batch, of
    the batch before, and of all others since the start: memory grows with every step, and the
    second `backward` fails. Bookkeeping belongs under `torch.no_grad()`.
    """,
)
class BatchNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean(0), x.var(0, correction=0)
            m = self.momentum
            self.running_mean = (1 - m) * self.running_mean + m * mean
            self.running_var = (1 - m) * self.running_var + m * x.var(0)
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias


@norm.mutant(
    "eps outside the root",
    why="""
    `sqrt(var) + eps` instead of `sqrt(var + eps)`. For ordinary features nobody sees a difference;
    for one that hardly varies it is large. And the root of exactly 0 has an infinite slope, which
    is what the eps inside prevents.
    """,
)
class BatchNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean(0), x.var(0, correction=0)
            with torch.no_grad():
                m = self.momentum
                self.running_mean.mul_(1 - m).add_(m * mean)
                self.running_var.mul_(1 - m).add_(m * x.var(0))
        return (x - mean) / (torch.sqrt(var) + self.eps) * self.weight + self.bias


# what torch.nn.BatchNorm1d(2) gives for these batches: the outputs, then the account
NORM_X = [[1.0, 10.0], [2.0, 30.0], [6.0, 20.0]]
NORM_Y = [[-0.9258190393447876, -1.2247447967529297], [-0.4629095196723938, 1.2247446775436401],
          [1.3887286186218262, 0.0]]
NORM_MEAN = [0.30000001192092896, 2.0]
NORM_VAR = [1.600000023841858, 10.90000057220459]
NORM_EVAL = [[0.5533968806266785, 2.423129081726074], [1.343963861465454, 8.480951309204102],
             [4.506231784820557, 5.452040672302246]]
NORM_FLAT_X = [[1.0], [1.002]]
NORM_FLAT_Y = [[-0.301483154296875], [0.30153244733810425]]


@norm.check("its parameters and buffers")
def _(f):
    def named():
        layer = f(2)
        return {n: v.tolist() for n, v in layer.state_dict().items()}, len(list(layer.parameters()))

    yield case("the state of BatchNorm(2), and its number of parameters", named).gives(
        ({"weight": [1.0, 1.0], "bias": [0.0, 0.0], "running_mean": [0.0, 0.0],
          "running_var": [1.0, 1.0]}, 2))


@norm.check("in training")
def _(f):
    def first():
        return f(2)(torch.tensor(NORM_X)).detach()

    yield case(f"BatchNorm(2) of {NORM_X}", first).gives(torch.tensor(NORM_Y), tolerance=1e-4)

    def account(which):
        layer = f(2)
        layer(torch.tensor(NORM_X))
        return getattr(layer, which).tolist()

    yield case("its running mean after this batch", lambda: account("running_mean")).gives(
        NORM_MEAN, tolerance=1e-4)
    yield case("its running variance", lambda: account("running_var")).gives(
        NORM_VAR, tolerance=1e-4)

    def flat():
        return f(1)(torch.tensor(NORM_FLAT_X)).detach()

    yield case("a feature that hardly varies: 1 and 1.002", flat).gives(
        torch.tensor(NORM_FLAT_Y), tolerance=1e-3)


@norm.check("in evaluation")
def _(f):
    def after():
        layer = f(2)
        layer(torch.tensor(NORM_X))
        layer.eval()
        return layer(torch.tensor(NORM_X)).detach()

    yield case("the same batch after layer.eval()", after).gives(
        torch.tensor(NORM_EVAL), tolerance=1e-4)

    def unchanged():
        layer = f(2).eval()
        layer(torch.tensor(NORM_X))
        return layer.running_mean.tolist()

    yield case("the running mean after a batch in evaluation", unchanged).gives([0.0, 0.0])


@norm.check("no part of the graph", hidden=True)
def _(f):
    def wants():
        layer = f(2)
        x = torch.tensor(NORM_X, requires_grad=True)
        layer(x).sum().backward()
        return layer.running_mean.requires_grad, x.grad is not None

    yield case("does the running mean want a gradient? does x have one?", wants).gives(
        (False, True))


# -- hooks ----------------------------------------------------------------------------------------

watch = Exercise(
    "modules.watch",
    "Watching a network with hooks",
    chapter=7,
    minutes=12,
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
    * Afterwards the model has no more hooks than before, **also if it raised an error** on the way
      (`try … finally`).
    * A function made in a loop sees the loop's variables as they are when it is *called*. Give the
      name to it in another way: make the hook in a function of its own.
    """,
)


@watch.stub
def sizes(model, x):
    """{name: root mean square of the output}, for all layers."""
    # your code here: about 14 lines
    raise NotImplementedError


@watch.reference
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


@watch.mutant(
    "all under the last name",
    why="""
    All hooks wrote under one name. Each of them looks up `name` when it is *called*, and by then
    the loop is over and `name` is the last one. Make the hook in a function that gets the name as
    an argument, or give it a default: `def hook(m, a, output, name=name)`.
    """,
)
def sizes(model, x):
    found, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):

            def hook(m, a, output):
                found[name] = output.square().mean().sqrt().item()  # noqa: B023

            handles.append(module.register_forward_hook(hook))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found


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
    *size* of its input instead of the input. `setdefault` and the short form of `def`, `lambda`,
    are good at returning things by accident. A hook that only looks returns `None`.
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


@watch.mutant(
    "goes past the hooks",
    why="""
    `model.forward(x)` computes the output and runs no hook of the model itself; it is `model(x)`
    that calls hooks, then `forward`, then hooks. For a lone layer nothing at all was seen.
    """,
)
def sizes(model, x):
    found, handles = {}, []
    for name, module in model.named_modules():
        if not list(module.children()):

            def hook(m, a, output, name=name):
                found[name] = output.square().mean().sqrt().item()

            handles.append(module.register_forward_hook(hook))
    try:
        model.forward(x)
    finally:
        for handle in handles:
            handle.remove()
    return found


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



"""The assignment that registers."""

import toytorch as torch
from course.cases import case
from course.properties import agrees
from course.records import Exercise
from toytorch import nn
from toytorch.nn.modules.registration import using

registering = Exercise(
    "modules.register",
    "The assignment that registers",
    chapter=7,
    minutes=18,
    inject=lambda f: using(__setattr__=f),
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
    | anything else | Python's default, which is `object.__setattr__` |

    For example, with parameters `p` and `q` and a module `lin`:

    | assignment | `_parameters` after it | `_modules` | `__dict__` |
    | --- | --- | --- | --- |
    | `self.a = 3` | | | `a: 3` |
    | `self.a = p` | `a: p` | | (`a` is gone) |
    | `self.b = q` | `a: p, b: q` | | |
    | `self.a = None` | `a: None, b: q` | | |
    | `self.b = lin` | `a: None` | `b: lin` | |
    | `self.a = 7` | *TypeError* | | |

    A name that gets a new parameter keeps its place in the order: an optimizer counts on it.

    `super().__init__()` makes the three. If `"_parameters"` is not in `self.__dict__`, somebody
    forgot it: for a parameter or a module, raise an `AttributeError` that mentions `__init__`.
    """,
    hints=(
        """
        Ask two questions, in this order. *What is the value?* A parameter or a module has a
        dictionary of its own, whatever the name was used for before. Otherwise: *what does the name
        stand for already?* A name that is in one of the three dictionaries stays there. Only what
        is neither is left to Python's default.
        """,
        """
        One module, six assignments. `p`, `q` are parameters, `lin` is a module.

        | assignment | the value is | `_parameters` after it | `_modules` | `__dict__` |
        | --- | --- | --- | --- | --- |
        | `self.a = 3` | a number, the name is new | | | `a: 3` |
        | `self.a = p` | a parameter | `a: p` | | (`a` is gone) |
        | `self.b = q` | a parameter | `a: p, b: q` | | |
        | `self.a = None` | None, the name is a parameter's | `a: None, b: q` | | |
        | `self.b = lin` | a module | `a: None` | `b: lin` | |
        | `self.a = 7` | a number, the name is a parameter's | *TypeError* | `b: lin` | |

        In the fourth row `a` keeps its first place: a dictionary keeps the place of a key that gets a new
        value, and loses it when the key is removed and comes again. So remove the name from all places
        *but* the one where you put it.
        """,
        """
        ```python
        def register(self, name, value):
            own, kind = self.__dict__, None
            if isinstance(value, nn.Parameter):
                kind = "_parameters"
            elif ...:
                kind = "_modules"
            if "_parameters" not in own:
                ...  # an error for kind, else Python's default
            elif kind:
                for place in (own, self._parameters, self._modules, self._buffers):
                    ...  # take the name out, unless this is where it goes
                own[kind][name] = value
            elif name in self._parameters or name in self._modules:
                ...  # None is kept, all else is a TypeError
            elif name in self._buffers:
                ...
            else:
                object.__setattr__(self, name, value)
        ```
        """,
    ),
)


@registering.reference(stub="your code here: about 18 lines")
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
    all sit in its layers, and without the layers in `self._modules` they are not found.
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


registering.changed(
    "every tensor is a parameter",
    """
    Every tensor was registered as a parameter. A module may keep a tensor that is not to be
    trained: a mask, a table, the last output. Only an `nn.Parameter` is to be learned. That is the
    purpose of the class.
    """,
    (
        "if isinstance(value, nn.Parameter):",
        'if isinstance(value, torch.Tensor) and name not in own.get("_buffers", {}):',
    ),
    (
        '        kind = "_parameters" if name in self._parameters else "_modules"',
        "        if value is not None:\n"
        '            raise TypeError(f"{name} is a parameter or a module")\n'
        '        kind = "_parameters" if name in self._parameters else "_modules"',
    ),
    (
        "        if value is not None:\n"
        '            raise TypeError(f"{name} is one of {kind}, not {value!r}")\n',
        "",
    ),
)

registering.changed(
    "a plain value hides the parameter",
    """
    After `net.weight = torch.zeros(2)` there were two: a plain attribute that `forward` reads, and
    behind it the parameter that the optimizer trains. Nothing would be learned, and no error would
    say so. Therefore a parameter's name accepts only a parameter or None.
    """,
    (
        "    elif name in self._parameters or name in self._modules:\n"
        '        kind = "_parameters" if name in self._parameters else "_modules"\n'
        "        if value is not None:\n"
        '            raise TypeError(f"{name} is one of {kind}, not {value!r}")\n'
        "        own[kind][name] = None\n",
        "",
    ),
)

registering.changed(
    "the old value stays under the same name",
    """
    The name had a plain value first, then a parameter, and now it has both. Python looks into
    `__dict__` before it asks a module, so the *old* value is what everybody reads. Take the name
    out of all other places when you register it.
    """,
    (
        "        for place in (own, self._parameters, self._modules, self._buffers):\n"
        "            if place is not own[kind]:\n"
        "                place.pop(name, None)\n",
        "",
    ),
)

registering.changed(
    "a buffer turns into an attribute",
    """
    A new value for a buffer went into `__dict__`. From then on `forward` reads the new one, while
    `state_dict` saves the old one, and `to(device)` moves the old one. Look into `self._buffers`
    before you store anything as a plain attribute.
    """,
    (
        "    elif name in self._buffers:\n"
        "        self._buffers[name] = value\n",
        "",
    ),
)

registering.changed(
    "does not ask whether the tables are there",
    """
    Without `super().__init__()` there are no dictionaries, and the error is about a name that the
    author of the network does not know. The call is often forgotten, so the message should say what
    to do.
    """,
    (
        '    if "_parameters" not in own:\n'
        "        if kind:\n"
        '            raise AttributeError("call super().__init__() first")\n'
        "        object.__setattr__(self, name, value)\n"
        "    elif kind:\n"
        "        for place in (own, self._parameters, self._modules, self._buffers):",
        "    if kind:\n"
        '        for place in (own, own["_parameters"], own["_modules"], own["_buffers"]):',
    ),
    (
        "elif name in self._parameters or name in self._modules:",
        'elif name in own.get("_parameters", ()) or name in own.get("_modules", ()):',
    ),
    ("elif name in self._buffers:", 'elif name in own.get("_buffers", ()):'),
)


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


registering.changed(
    "None becomes a plain attribute",
    """
    `None` went into `__dict__`, and the parameter is still registered behind it: `forward` reads
    `None`, the optimizer goes on training. `None` for a registered name is kept in that name's own
    dictionary.
    """,
    ("own[kind][name] = None", "object.__setattr__(self, name, None)"),
)

registering.changed(
    "a new value goes to the end",
    """
    The name was removed from *all* places and added again, so that it is now the last one. The
    order of the parameters matters, because an optimizer saves its state by position. Leave the
    name where it is, if it is in the right dictionary already.
    """,
    (
        "            if place is not own[kind]:\n                place.pop(name, None)",
        "            place.pop(name, None)",
    ),
)

registering.changed(
    "the buffer stays under the same name",
    """
    A buffer's name got a parameter or a module, and the buffer is still there: `state_dict` has two
    values for one name. `self._buffers` is one of the places that the name has to leave.
    """,
    ("self._modules, self._buffers):", "self._modules):"),
)

registering.changed(
    "only tensors are refused",
    """
    A tensor for a parameter's name is refused, and a number is not: it was registered as if it were
    a parameter, or took its place. Only a parameter, a module or `None` may take such a name.
    """,
    ("if value is not None:", "if isinstance(value, torch.Tensor):"),
)

registering.changed(
    "a module's name takes anything",
    """
    A plain value for a *module's* name was accepted. It hides the module, whose parameters are
    trained on and no longer used. What holds for parameters holds for modules.
    """,
    ("elif name in self._parameters or name in self._modules:", "elif name in self._parameters:"),
)

registering.changed(
    "asks for the exact type",
    """
    `type(value) is nn.Parameter` is false for a subclass of it, so that was stored as a plain
    attribute. `isinstance` is true for subclasses as well. (All your layers are subclasses of
    `nn.Module`.)
    """,
    ("if isinstance(value, nn.Parameter):", "if type(value) is nn.Parameter:"),
)

registering.changed(
    "a buffer that is set to None leaves its place",
    """
    `None` for a buffer became a plain attribute, and the old tensor is still in `_buffers`: it is
    saved, moved and loaded, and nobody reads it. A buffer may be `None`; keep it in `_buffers`.
    """,
    ("elif name in self._buffers:", "elif name in self._buffers and value is not None:"),
)

registering.changed(
    "looks at the name before the value",
    """
    A parameter that was given to a *buffer's* name stayed a buffer, so that nobody trains it. What
    the value is comes first: a parameter is registered as a parameter, whatever its name was
    before.
    """,
    ("    elif kind:\n", "    elif name in self._buffers:\n        self._buffers[name] = value\n    elif kind:\n"),
)


class _Own(nn.Parameter):
    """A parameter of a class of one's own."""


_VALUES = {
    "a parameter": lambda: nn.Parameter(torch.ones(2)),
    "a parameter of a subclass": lambda: _Own(torch.ones(2)),
    "a module": nn.Identity,
    "a tensor": lambda: torch.zeros(2),
    "None": lambda: None,
    "7": lambda: 7,
}


def _after(f, steps):
    """Where everything is after some assignments to a _Part, and which of them were refused."""
    with using(__setattr__=f):
        part, refused = _Part(), []
        for name, value in steps:
            try:
                setattr(part, name, _VALUES[value]())
            except TypeError:
                refused.append(name)
        places = {
            place: [(n, type(v).__name__) for n, v in vars(part)[place].items()]
            for place in ("_parameters", "_modules", "_buffers")
        }
        plain = {n: repr(v) for n, v in vars(part).items() if n[0] != "_" and n != "training"}
        return places | {"__dict__": plain, "refused": refused}


def _assignments(draw):
    names = ("weight", "inner", "bias", "factor", "count", "other")
    count = draw.randint(1, 4)
    return ([(draw.choice(names), draw.choice(list(_VALUES))) for _ in range(count)],)


@registering.check("any assignments, one after the other")
def _(f):
    yield agrees(
        lambda steps: _after(f, steps),
        lambda steps: _after(registering.answer.value, steps),
        _assignments,
        count=150,
        tell=lambda steps: "; ".join(f"part.{name} = {value}" for name, value in steps),
    )

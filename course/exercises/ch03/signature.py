"""Reading a signature."""

import ast
import re

from course.cases import call
from course.properties import agrees
from course.records import Exercise

signature = Exercise(
    "ops.signature",
    "Reading a signature",
    chapter=3,
    minutes=15,
    prompt="""
    The first line of a record is its signature, in PyTorch's own notation:

    `add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`

    Write `read_signature(text)`, which returns three things: the op's name, the list of its
    parameter names, and a dict of the defaults. For the line above:
    `("add", ["self", "other", "alpha"], {"alpha": 1})`.

    * A lone `*` is no parameter. It only says that what follows is given by name.
    * A default is a *value*, not text: `ast.literal_eval("0.5")` is the number 0.5. It reads
      `None`, `True`, quoted text and lists as well.
    * Lists have commas of their own: `int[] dim=[0, 1]` is **one** parameter. The pattern
      `r",\\s*(?![^\\[]*\\])"` matches only the commas outside brackets, for `re.split`.
    * There may be no parameter at all: `seed() -> int`.
    """,
    hints=(
        """
        Take the text apart from the outside in: the name stands before the first bracket, the parameters
        before `) ->`. Each parameter then has at most three parts: a type, a name, and perhaps a default
        behind the first `=`.
        """,
        """
        `add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`

        | step | what is left |
        | --- | --- |
        | split at the first `(` | `add` and `Tensor self, … alpha=1) -> Tensor` |
        | cut at `) ->` | `Tensor self, Tensor other, *, Scalar alpha=1` |
        | split at commas | `Tensor self`, `Tensor other`, `*`, `Scalar alpha=1` |
        | skip `*` and empty parts | three parts |
        | partition the last at `=` | `Scalar alpha` and `1` |
        | last word | `alpha` |
        | `ast.literal_eval("1")` | the number 1 |
        """,
        """
        ```python
        def read_signature(text):
            name, rest = text.split("(", 1)
            inside = rest.rsplit(") ->", 1)[0]
            names, defaults = [], {}
            for part in re.split(..., inside):
                if part in ("", "*"):
                    continue
                before, equals, default = part.partition("=")
                names.append(...)
                if ...:
                    defaults[names[-1]] = ...
            return name, names, defaults
        ```
        """,
    ),
)


@signature.reference(stub="your code here: about 12 lines. re and ast are imported")
def read_signature(text):
    """A signature -> (name, parameter names, {name: default})."""
    name, rest = text.split("(", 1)
    inside = rest.rsplit(") ->", 1)[0]
    names, defaults = [], {}
    for part in re.split(r",\s*(?![^\[]*\])", inside):
        if part in ("", "*"):
            continue
        before, equals, default = part.partition("=")
        names.append(before.split()[-1])
        if equals:
            defaults[names[-1]] = ast.literal_eval(default)
    return name, names, defaults


signature.changed(
    "takes the star for a parameter",
    """
    The lone `*` ended up among the names. It takes no value: as in Python's own `def`, it is a
    mark, and what stands behind it can only be given by name.
    """,
    ('if part in ("", "*"):', "if not part:"),
)

signature.changed(
    "leaves defaults as text",
    """
    The default of `alpha` came out as the text `"1"`. One cannot compute with a text, and the text
    `"False"` counts as true. `ast.literal_eval` makes the value that the text denotes. (`eval`
    would too, but it also runs any code it finds there.)
    """,
    ("defaults[names[-1]] = ast.literal_eval(default)", "defaults[names[-1]] = default"),
)

signature.changed(
    "splits inside brackets",
    """
    The text was split at every comma, so `dim=[0, 1]` fell apart into `dim=[0` and `1]`. Only the
    commas outside brackets separate parameters.
    """,
    (
        '    for part in re.split(r",\\s*(?![^\\[]*\\])", inside):\n'
        '        if part in ("", "*"):',
        '    for part in inside.split(","):\n'
        '        if part.strip() in ("", "*"):',
    ),
    (
        'before, equals, default = part.partition("=")',
        'before, equals, default = part.strip().partition("=")',
    ),
)

signature.changed(
    "forgets what defaults to None",
    """
    A default of `None` was taken for no default. The two differ: `min=None` may be omitted, and a
    parameter without a default must be given. Test whether there is an `=`, not what the value is.
    """,
    ('before, equals, default = part.partition("=")', 'before, _, default = part.partition("=")'),
    (
        "        if equals:\n"
        "            defaults[names[-1]] = ast.literal_eval(default)",
        '        value = ast.literal_eval(default or "None")\n'
        "        if value is not None:\n"
        "            defaults[names[-1]] = value",
    ),
)

signature.changed(
    "keeps the types for names",
    """
    Each parameter says its type first and its name second: `Tensor self` is a Tensor called
    *self*. The name is the last word before the `=`.
    """,
    ("names.append(before.split()[-1])", "names.append(before.split()[0])"),
)

signature.changed(
    "needs a space after each comma",
    """
    A comma separates parameters with or without a space behind it. The pattern `,\\s*` takes
    any number of spaces.
    """,
    (
        'for part in re.split(r",\\s*(?![^\\[]*\\])", inside):',
        'for part in re.split(r", (?![^\\[]*\\])", inside):',
    ),
)

signature.changed(
    "a text with = in it falls apart",
    """
    `split("=")` cuts at every `=`, also inside a default such as `'a=b'`. Only the first one
    separates the name from its default: `partition`.
    """,
    ('before, equals, default = part.partition("=")', 'before, *default = part.split("=")'),
    (
        "        if equals:\n"
        "            defaults[names[-1]] = ast.literal_eval(default)",
        "        if default:\n"
        "            defaults[names[-1]] = ast.literal_eval(default[-1].strip())",
    ),
)

signature.changed(
    "cuts at the last bracket",
    """
    An op with several results has brackets behind the arrow too. The parameters end at `) ->`,
    not at the last `)` of the line.
    """,
    ('inside = rest.rsplit(") ->", 1)[0]', 'inside = rest.rsplit(")", 1)[0]'),
)


@signature.check("names only")
def _(f):
    wanted = ("mul", ["self", "other"], {})
    yield call(f, "mul(Tensor self, Tensor other) -> Tensor").gives(wanted)
    yield call(f, "exp(Tensor self) -> Tensor").gives(("exp", ["self"], {}))
    yield call(f, "seed() -> int").gives(("seed", [], {}))


@signature.check("a default")
def _(f):
    text = "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor"
    yield call(f, text).gives(("leaky_relu", ["self", "negative_slope"], {"negative_slope": 0.01}))


@signature.check("None is a default")
def _(f):
    text = "clamp(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor"
    yield call(f, text).gives(("clamp", ["self", "min", "max"], {"min": None, "max": None}))


@signature.check("a star, and text in quotes")
def _(f):
    text = "gelu(Tensor self, *, str approximate='none') -> Tensor"
    yield call(f, text).gives(("gelu", ["self", "approximate"], {"approximate": "none"}))


@signature.check("a list with a comma, and two results", hidden=True)
def _(f):
    text = "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor"
    yield call(f, text).gives(("rot90", ["self", "k", "dims"], {"k": 1, "dims": [0, 1]}))
    text = "max(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"
    yield call(f, text).gives(("max", ["self", "dim", "keepdim"], {"keepdim": False}))


_KINDS = ("Tensor", "Tensor?", "int", "bool", "Scalar", "str", "int[]", "float?")
_VALUES = ("None", "1", "-2", "0.5", "True", "False", "'none'", "'a=b'", "[0, 1]", "[]")


@signature.check("any signature")
def _(f):
    def line(draw):
        parts, star = [], draw.random() < 0.4
        for name in draw.sample(("self", "other", "dim", "k", "alpha", "out"), draw.randint(0, 4)):
            text = f"{draw.choice(_KINDS)} {name}"
            parts.append(text + f"={draw.choice(_VALUES)}" * (draw.random() < 0.5))
        if parts and star:
            parts.insert(draw.randrange(len(parts)), "*")
        comma = draw.choice((", ", ", ", ","))
        result = draw.choice(("Tensor", "int", "(Tensor values, Tensor indices)"))
        return (f"{draw.choice(('add', 'rot90', 'seed'))}({comma.join(parts)}) -> {result}",)

    yield agrees(f, signature.answer.value, line, count=100)

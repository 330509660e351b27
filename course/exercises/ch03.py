"""Chapter 03, Operations: signatures, broadcasting, promotion, a dispatcher, a kernel."""

import ast
import itertools
import re
import warnings

import numpy as np

import toytorch as torch
from course.cases import call, case
from course.records import Exercise

# -- a signature ----------------------------------------------------------------------------------

signature = Exercise(
    "ops.signature",
    "Reading a signature",
    chapter=3,
    minutes=12,
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
)


@signature.stub
def read_signature(text):
    """A signature -> (name, parameter names, {name: default})."""
    # your code here: about 12 lines. re and ast are imported
    raise NotImplementedError


@signature.reference
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


@signature.mutant(
    "takes the star for a parameter",
    why="""
    The lone `*` ended up among the names. It takes no value: as in Python's own `def`, it is a
    mark, and what stands behind it can only be given by name.
    """,
)
def read_signature(text):
    name, rest = text.split("(", 1)
    inside = rest.rsplit(") ->", 1)[0]
    names, defaults = [], {}
    for part in re.split(r",\s*(?![^\[]*\])", inside):
        if not part:
            continue
        before, equals, default = part.partition("=")
        names.append(before.split()[-1])
        if equals:
            defaults[names[-1]] = ast.literal_eval(default)
    return name, names, defaults


@signature.mutant(
    "leaves defaults as text",
    why="""
    The default of `alpha` came out as the text `"1"`. Texts do not multiply, and the text
    `"False"` is true. `ast.literal_eval` makes the value that the text stands for. (`eval` would
    too, and run any code it finds there.)
    """,
)
def read_signature(text):
    name, rest = text.split("(", 1)
    inside = rest.rsplit(") ->", 1)[0]
    names, defaults = [], {}
    for part in re.split(r",\s*(?![^\[]*\])", inside):
        if part in ("", "*"):
            continue
        before, equals, default = part.partition("=")
        names.append(before.split()[-1])
        if equals:
            defaults[names[-1]] = default
    return name, names, defaults


@signature.mutant(
    "splits inside brackets",
    why="""
    The text was split at every comma, so `dim=[0, 1]` fell apart into `dim=[0` and `1]`. Only the
    commas outside brackets separate parameters.
    """,
)
def read_signature(text):
    name, rest = text.split("(", 1)
    inside = rest.rsplit(") ->", 1)[0]
    names, defaults = [], {}
    for part in inside.split(","):
        if part.strip() in ("", "*"):
            continue
        before, equals, default = part.strip().partition("=")
        names.append(before.split()[-1])
        if equals:
            defaults[names[-1]] = ast.literal_eval(default)
    return name, names, defaults


@signature.mutant(
    "forgets what defaults to None",
    why="""
    A default of `None` was taken for no default. The two are not the same: `min=None` may be left
    away, and a parameter without a default must be given. Ask whether there is an `=`, not what
    the value is.
    """,
)
def read_signature(text):
    name, rest = text.split("(", 1)
    inside = rest.rsplit(") ->", 1)[0]
    names, defaults = [], {}
    for part in re.split(r",\s*(?![^\[]*\])", inside):
        if part in ("", "*"):
            continue
        before, _, default = part.partition("=")
        names.append(before.split()[-1])
        value = ast.literal_eval(default or "None")
        if value is not None:
            defaults[names[-1]] = value
    return name, names, defaults


@signature.mutant(
    "keeps the types for names",
    why="""
    Each parameter says its type first and its name second: `Tensor self` is a Tensor called
    *self*. The name is the last word before the `=`.
    """,
)
def read_signature(text):
    name, rest = text.split("(", 1)
    inside = rest.rsplit(") ->", 1)[0]
    names, defaults = [], {}
    for part in re.split(r",\s*(?![^\[]*\])", inside):
        if part in ("", "*"):
            continue
        before, equals, default = part.partition("=")
        names.append(before.split()[0])
        if equals:
            defaults[names[-1]] = ast.literal_eval(default)
    return name, names, defaults


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


# -- broadcasting ---------------------------------------------------------------------------------

broadcast = Exercise(
    "ops.broadcast",
    "The shape two shapes agree on",
    chapter=3,
    minutes=12,
    prompt="""
    Write `broadcast_shape(a, b)` for two shapes given as tuples. The rule:

    1. Line the two up **from the right**. What one lacks on its left counts as 1.
    2. In each place the two sizes must be equal, or one of them must be 1. Then the result
       has the size that is not 1.
    3. Otherwise raise a `ValueError` that names both shapes and says *cannot broadcast*.

    Two shapes to test your thoughts on: `(0,)` with `(1,)` is `(0,)`, and `()` is the shape of a
    single number, which goes with everything.
    """,
)


@broadcast.stub
def broadcast_shape(a, b):
    """(3, 1), (4,) -> (3, 4)."""
    # your code here: about 9 lines
    raise NotImplementedError


@broadcast.reference
def broadcast_shape(a, b):
    """(3, 1), (4,) -> (3, 4)."""
    ndim = max(len(a), len(b))
    left = (1,) * (ndim - len(a)) + tuple(a)
    right = (1,) * (ndim - len(b)) + tuple(b)
    shape = []
    for m, n in zip(left, right):
        if m != n and 1 not in (m, n):
            raise ValueError(f"{a} and {b} cannot broadcast")
        shape.append(n if m == 1 else m)
    return tuple(shape)


@broadcast.mutant(
    "aligns from the left",
    why="""
    The ones were added on the right. Shapes line up from the *right*, so that a row of 4 goes with
    a table of 3 × 4: what a shape lacks are the outer dimensions. (With the left as the rule, a
    batch of images would not go with one image.)
    """,
)
def broadcast_shape(a, b):
    ndim = max(len(a), len(b))
    left = tuple(a) + (1,) * (ndim - len(a))
    right = tuple(b) + (1,) * (ndim - len(b))
    shape = []
    for m, n in zip(left, right):
        if m != n and 1 not in (m, n):
            raise ValueError(f"{a} and {b} cannot broadcast")
        shape.append(n if m == 1 else m)
    return tuple(shape)


@broadcast.mutant(
    "stretches only the second",
    why="""
    A 1 was stretched in the second shape and not in the first. Both may have to stretch, even at
    once: a column (3, 1) and a row (1, 4) make a table of 3 × 4.
    """,
)
def broadcast_shape(a, b):
    ndim = max(len(a), len(b))
    left = (1,) * (ndim - len(a)) + tuple(a)
    right = (1,) * (ndim - len(b)) + tuple(b)
    for m, n in zip(left, right):
        if n not in (m, 1):
            raise ValueError(f"{a} and {b} cannot broadcast")
    return left


@broadcast.mutant(
    "takes the larger, whatever it is",
    why="""
    The larger of the two sizes was taken, and nobody asked whether they fit. 3 and 4 do not: the
    fourth number of the one has no partner in the other, and repeating the three would be a guess.
    Only a 1 stretches.
    """,
)
def broadcast_shape(a, b):
    pairs = itertools.zip_longest(reversed(a), reversed(b), fillvalue=1)
    return tuple(max(m, n) for m, n in pairs)[::-1]


@broadcast.mutant(
    "fills an empty dimension",
    why="""
    With sizes 0 and 1 the result came out as 1. A 1 stretches to *any* size, and 0 is one: no
    partner, no result. The rule is "the size that is not 1", and not "the larger".
    """,
)
def broadcast_shape(a, b):
    pairs = itertools.zip_longest(reversed(a), reversed(b), fillvalue=1)
    shape = []
    for m, n in pairs:
        if m != n and 1 not in (m, n):
            raise ValueError(f"{a} and {b} cannot broadcast")
        shape.append(max(m, n))
    return tuple(shape)[::-1]


@broadcast.mutant(
    "drops the outer dimensions",
    why="""
    `zip` ends with the shorter of the two, so the dimensions that only one operand has are gone.
    They belong to the result. Fill the shorter shape up with ones first.
    """,
)
def broadcast_shape(a, b):
    shape = []
    for m, n in zip(reversed(a), reversed(b)):
        if m != n and 1 not in (m, n):
            raise ValueError(f"{a} and {b} cannot broadcast")
        shape.append(n if m == 1 else m)
    return tuple(shape)[::-1]


@broadcast.mutant(
    "a multiple fits, too",
    why="""
    A size of 2 was repeated to fill a size of 4. Some libraries tile like that; PyTorch does not,
    because it is nearly always a mistake. Only a 1 stretches.
    """,
)
def broadcast_shape(a, b):
    pairs = itertools.zip_longest(reversed(a), reversed(b), fillvalue=1)
    shape = []
    for m, n in pairs:
        if 0 in (m, n) and 1 in (m, n):
            shape.append(0)
            continue
        if m != n and (0 in (m, n) or max(m, n) % min(m, n)):
            raise ValueError(f"{a} and {b} cannot broadcast")
        shape.append(max(m, n))
    return tuple(shape)[::-1]


# what torch.broadcast_shapes gives in PyTorch 2; None: it refuses
SHAPES = {
    "equal shapes, and a number": [((2, 3), (2, 3), (2, 3)), ((2, 3), (), (2, 3)), ((), (), ())],
    "a 1 stretches, on both sides": [
        ((3, 4), (3, 1), (3, 4)),
        ((3, 1), (3, 4), (3, 4)),
        ((3, 1), (1, 4), (3, 4)),
    ],
    "from the right": [
        ((3, 4), (4,), (3, 4)),
        ((4,), (2, 3, 4), (2, 3, 4)),
        ((3, 1), (4,), (3, 4)),
        ((3, 3), (3, 1, 3), (3, 3, 3)),
    ],
    "what does not fit": [((3,), (4,), None), ((2, 3), (3, 2), None), ((3, 4), (3,), None)],
    "no multiples": [((4,), (2,), None), ((6, 2), (3, 2), None)],
    "nothing at all": [((0,), (1,), (0,)), ((2, 1), (0,), (2, 0)), ((0,), (2,), None)],
}


def _shapes_check(title, rows):
    @broadcast.check(title, hidden=title in ("no multiples", "nothing at all"))
    def _(f):
        for a, b, wanted in rows:
            if wanted is None:
                yield call(f, a, b).raises(ValueError, "cannot broadcast")
            else:
                yield call(f, a, b).gives(wanted)


for _title, _rows in SHAPES.items():
    _shapes_check(_title, _rows)

# -- promotion ------------------------------------------------------------------------------------

promote = Exercise(
    "ops.promote",
    "Three ranks of operands",
    chapter=3,
    minutes=15,
    prompt="""
    In which dtype do operands meet? Chapter 01 had a tensor and a number. In general there are
    **three ranks** of operands, and a lower rank has less to say:

    1. tensors with dimensions
    2. tensors without (`ndim == 0`, such as `torch.tensor(2.0)`)
    3. Python numbers (`torch.tensor(number).dtype` is the dtype they would have)

    Within one rank the dtypes meet in `torch.promote_types(a, b)`. Between ranks, the lower one
    counts only if it is of a **higher kind**, where bool < integer < floating; then it is
    `promote_types` again, and otherwise what the lower rank says is dropped. The last two ranks
    are settled with each other first, then the first rank with what came of it.

    Write `common_dtype(*operands)`. `kind(dtype)` below gives 0, 1 or 2 (we leave complex numbers
    out); it stands inside the function, so that it is yours to use.
    """,
)


@promote.stub
def common_dtype(*operands):
    """Tensors and numbers -> the dtype in which they meet."""

    def kind(dtype):
        return 2 if dtype.is_floating_point else int(dtype != torch.bool)

    # your code here: about 12 lines
    raise NotImplementedError


@promote.reference
def common_dtype(*operands):
    """Tensors and numbers -> the dtype in which they meet."""

    def kind(dtype):
        return 2 if dtype.is_floating_point else int(dtype != torch.bool)

    ranks = {0: None, 1: None, 2: None}
    for x in operands:
        tensor = isinstance(x, torch.Tensor)
        rank = 2 if not tensor else 1 if x.ndim == 0 else 0
        new, old = torch.as_tensor(x).dtype, ranks[rank]
        ranks[rank] = new if old is None else torch.promote_types(old, new)
    result = None
    for high in (ranks[2], ranks[1], ranks[0]):  # the weakest first
        if result is None or high is None:
            result = result or high
        elif kind(result) > kind(high):
            result = torch.promote_types(high, result)
        else:
            result = high
    return result


@promote.mutant(
    "every operand counts alike",
    why="""
    The dtypes of all operands were promoted together. Then `x * 2.0` with a float16 `x` would be
    float32, twice the memory for one innocent number. Numbers and 0-d tensors have a *kind* to
    say, and a width only if nobody of a higher rank has that kind.
    """,
)
def common_dtype(*operands):
    dtypes = [torch.as_tensor(x).dtype for x in operands]
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = torch.promote_types(result, dtype)
    return result


@promote.mutant(
    "0-d tensors are full tensors",
    why="""
    A tensor without dimensions was given the same say as one with. `batch / batch.sum()` would
    then change its dtype with the dtype of the sum; a single number of double precision would make
    doubles of a whole batch. Ask for `x.ndim == 0`.
    """,
)
def common_dtype(*operands):
    def kind(dtype):
        return 2 if dtype.is_floating_point else int(dtype != torch.bool)

    full = [x.dtype for x in operands if isinstance(x, torch.Tensor)]
    rest = [torch.tensor(x).dtype for x in operands if not isinstance(x, torch.Tensor)]
    result = None
    for group in (rest, full):
        high = None
        for dtype in group:
            high = dtype if high is None else torch.promote_types(high, dtype)
        if result is None or high is None:
            result = result or high
        else:
            result = torch.promote_types(high, result) if kind(result) > kind(high) else high
    return result


@promote.mutant(
    "0-d tensors are numbers",
    why="""
    A tensor without dimensions was treated as a Python number. It stands between the two: its
    dtype was *chosen* by somebody. A 0-d float64 against the number 0.5 stays float64, and a 0-d
    int32 times 3 stays int32.
    """,
)
def common_dtype(*operands):
    def kind(dtype):
        return 2 if dtype.is_floating_point else int(dtype != torch.bool)

    groups = [[], []]
    for x in operands:
        full = isinstance(x, torch.Tensor) and x.ndim > 0
        groups[full].append(torch.as_tensor(x).dtype)
    result = None
    for group in groups:
        high = None
        for dtype in group:
            high = dtype if high is None else torch.promote_types(high, dtype)
        if result is None or high is None:
            result = result or high
        else:
            result = torch.promote_types(high, result) if kind(result) > kind(high) else high
    return result


@promote.mutant(
    "the highest rank always wins",
    why="""
    The lower ranks were not asked at all. But an int64 tensor has no room for 0.5: a lower rank of
    a *higher kind* must be able to change the result, or `counts * 0.5` would be all zeros.
    """,
)
def common_dtype(*operands):
    for test in (
        lambda x: isinstance(x, torch.Tensor) and x.ndim > 0,
        lambda x: isinstance(x, torch.Tensor),
        lambda x: True,
    ):
        chosen = [torch.as_tensor(x).dtype for x in operands if test(x)]
        if chosen:
            result = chosen[0]
            for dtype in chosen[1:]:
                result = torch.promote_types(result, dtype)
            return result
    return None


@promote.mutant(
    "bool and integer are one kind",
    why="""
    A mask with dimensions kept its dtype against an integer number. Bool is a kind of its own,
    below the integers: `mask * 3` gives threes, not truths.
    """,
)
def common_dtype(*operands):
    ranks = {0: None, 1: None, 2: None}
    for x in operands:
        rank = 2 if not isinstance(x, torch.Tensor) else 1 if x.ndim == 0 else 0
        new, old = torch.as_tensor(x).dtype, ranks[rank]
        ranks[rank] = new if old is None else torch.promote_types(old, new)
    result = None
    for high in (ranks[2], ranks[1], ranks[0]):
        if result is None or high is None:
            result = result or high
        elif result.is_floating_point and not high.is_floating_point:
            result = torch.promote_types(high, result)
        else:
            result = high
    return result


@promote.mutant(
    "the wider dtype wins within a rank",
    why="""
    Of two tensors, the dtype with more bytes was taken. Bytes do not decide: int64 has eight and
    float16 two, and the result is float16, because floating is the higher kind. And uint8 with int8
    is int16, the smallest that holds both. `torch.promote_types` knows all that.
    """,
)
def common_dtype(*operands):
    def kind(dtype):
        return 2 if dtype.is_floating_point else int(dtype != torch.bool)

    ranks = {0: None, 1: None, 2: None}
    for x in operands:
        rank = 2 if not isinstance(x, torch.Tensor) else 1 if x.ndim == 0 else 0
        new, old = torch.as_tensor(x).dtype, ranks[rank]
        ranks[rank] = new if old is None or new.itemsize > old.itemsize else old
    result = None
    for high in (ranks[2], ranks[1], ranks[0]):
        if result is None or high is None:
            result = result or high
        else:
            result = torch.promote_types(high, result) if kind(result) > kind(high) else high
    return result


def full(name):
    return torch.ones(2, dtype=getattr(torch, name))


def zero(name):
    return torch.tensor(1, dtype=getattr(torch, name))


# what PyTorch 2 gives for the sum of the operands; "name" has dimensions, "0:name" has none
DTYPES = {
    "two tensors": [
        ("int32", "int64", "int64"),
        ("int64", "float16", "float16"),
        ("uint8", "int8", "int16"),
        ("bool", "uint8", "uint8"),
    ],
    "a tensor and a number": [
        ("float16", 2.0, "float16"),
        ("int64", 0.5, "float32"),
        ("uint8", 1000, "uint8"),
        ("bool", 3, "int64"),
        (2.5, "int16", "float32"),
    ],
    "a tensor and a 0-d tensor": [
        ("float32", "0:float64", "float32"),
        ("int32", "0:int64", "int32"),
        ("int32", "0:float64", "float64"),
        ("bool", "0:uint8", "uint8"),
    ],
    "a 0-d tensor and a number": [
        ("0:float64", 0.5, "float64"),
        ("0:int32", 3, "int32"),
        ("0:int32", 0.5, "float32"),
    ],
    "all three": [
        ("int16", "0:int64", 2.0, "float32"),
        ("int16", "0:float64", 2.0, "float64"),
        ("float16", "0:float64", 2, "float16"),
    ],
}


def _operand(text):
    if not isinstance(text, str):
        return text
    return zero(text[2:]) if text.startswith("0:") else full(text)


def _said(text):
    if not isinstance(text, str):
        return str(text)
    return f"a 0-d {text[2:]} tensor" if text.startswith("0:") else f"a {text} tensor"


def _dtypes_check(title, rows):
    @promote.check(title, hidden=title == "all three")
    def _(f):
        for *operands, wanted in rows:
            given = ", ".join(map(_said, operands))
            made = [_operand(text) for text in operands]
            yield case(f"common_dtype({given})", lambda made=made: f(*made)).gives(
                getattr(torch, wanted)
            )


for _title, _rows in DTYPES.items():
    _dtypes_check(_title, _rows)

# -- a dispatcher ---------------------------------------------------------------------------------


def _strict(kernel):
    """A kernel as fussy as one in C: arrays of one shape and one dtype."""

    def fussy(a, b):
        for array in (a, b):
            if not isinstance(array, np.ndarray):
                raise TypeError(f"the kernel takes NumPy arrays, not {type(array).__name__}")
        if a.dtype != b.dtype:
            raise TypeError(f"the kernel got two dtypes, {a.dtype} and {b.dtype}")
        if a.shape != b.shape:
            raise TypeError(f"the kernel got two shapes, {a.shape} and {b.shape}")
        return kernel(a, b)

    return fussy


dispatch = Exercise(
    "ops.dispatch",
    "A dispatcher",
    chapter=3,
    minutes=15,
    prompt="""
    A kernel is fussy: it takes two NumPy arrays of **one** dtype and **one** shape. Users are
    not: they write `table / 2`. What stands between the two is a dispatcher, and it is the same
    for all ops. Write `run(record, a, b)`, where a record is a dict such as
    `{"kernel": np.divide, "promotion": "float"}`. Four steps:

    1. **Promote.** `torch.result_type(a, b)` is the common dtype (`a` and `b` may be tensors or
       Python numbers). If the record's promotion is `"float"` and that dtype is not floating, use
       `torch.get_default_dtype()`.
    2. **Broadcast.** `torch.broadcast_shapes(...)` and `x.expand(shape)`.
    3. **Run** the kernel once, on the two arrays (`x.numpy()`).
    4. **Wrap** what it returned: `torch.from_numpy(array)`. The result has the dtype that the
       kernel gave it; a comparison answers in bools.

    What the user handed in must stay as it was.
    """,
)


@dispatch.stub
def run(record, a, b):
    """Promote, broadcast, run the record's kernel, wrap."""
    # your code here: about 9 lines
    raise NotImplementedError


@dispatch.reference
def run(record, a, b):
    """Promote, broadcast, run the record's kernel, wrap."""
    dtype = torch.result_type(a, b)
    if record["promotion"] == "float" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    a, b = (torch.as_tensor(x).to(dtype) for x in (a, b))
    shape = torch.broadcast_shapes(a.shape, b.shape)
    arrays = (x.expand(shape).numpy() for x in (a, b))
    return torch.from_numpy(np.asarray(record["kernel"](*arrays)))


@dispatch.mutant(
    "the first operand decides",
    why="""
    The second operand was brought to the dtype of the first. `ints + halves` would then round the
    halves away, and `a + b` would differ from `b + a`. The two *meet* in a dtype that may be
    that of neither.
    """,
)
def run(record, a, b):
    dtype = torch.as_tensor(a).dtype
    if record["promotion"] == "float" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    a, b = (torch.as_tensor(x).to(dtype) for x in (a, b))
    shape = torch.broadcast_shapes(a.shape, b.shape)
    arrays = (x.expand(shape).numpy() for x in (a, b))
    return torch.from_numpy(np.asarray(record["kernel"](*arrays)))


@dispatch.mutant(
    "does not read the record",
    why="""
    The record says `"promotion": "float"`, and the kernel was given integers all the same. A
    quotient of integers is rarely one. The record exists so that one dispatcher can serve ops that
    differ in this; NumPy's `divide` would have chosen float64 by itself, twice what PyTorch uses.
    """,
)
def run(record, a, b):
    dtype = torch.result_type(a, b)
    a, b = (torch.as_tensor(x).to(dtype) for x in (a, b))
    shape = torch.broadcast_shapes(a.shape, b.shape)
    arrays = (x.expand(shape).numpy() for x in (a, b))
    return torch.from_numpy(np.asarray(record["kernel"](*arrays)))


@dispatch.mutant(
    "forces its dtype on the result",
    why="""
    The result was cast to the dtype in which the operands met. That is the dtype of the *way in*.
    A comparison of floats answers with bools: only the kernel knows what comes out.
    """,
)
def run(record, a, b):
    dtype = torch.result_type(a, b)
    if record["promotion"] == "float" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    a, b = (torch.as_tensor(x).to(dtype) for x in (a, b))
    shape = torch.broadcast_shapes(a.shape, b.shape)
    arrays = (x.expand(shape).numpy() for x in (a, b))
    return torch.from_numpy(np.asarray(record["kernel"](*arrays))).to(dtype)


@dispatch.mutant(
    "leaves the shapes to the kernel",
    why="""
    The operands reached the kernel in two shapes. NumPy's own functions would stretch them, but a
    kernel is a loop over two pieces of memory and need not know how. Broadcasting is done once,
    here, for all kernels.
    """,
)
def run(record, a, b):
    dtype = torch.result_type(a, b)
    if record["promotion"] == "float" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    a, b = (torch.as_tensor(x).to(dtype) for x in (a, b))
    return torch.from_numpy(np.asarray(record["kernel"](a.numpy(), b.numpy())))


@dispatch.mutant(
    "stretches the second operand only",
    why="""
    `b` was expanded to the shape of `a`. A number minus a table, or a column against a row, needs
    the *first* one stretched: both go to the shape that `broadcast_shapes` gives.
    """,
)
def run(record, a, b):
    dtype = torch.result_type(a, b)
    if record["promotion"] == "float" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    a, b = (torch.as_tensor(x).to(dtype) for x in (a, b))
    return torch.from_numpy(np.asarray(record["kernel"](a.numpy(), b.expand(a.shape).numpy())))


@dispatch.mutant(
    "writes the result into an operand",
    why="""
    The result landed in the memory of the first operand, so the user's tensor changed. That is
    what `add_` does, with the underscore to warn you. Without it, a result has memory of its own.
    """,
)
def run(record, a, b):
    dtype = torch.result_type(a, b)
    if record["promotion"] == "float" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    x, y = (torch.as_tensor(x).to(dtype) for x in (a, b))
    shape = torch.broadcast_shapes(x.shape, y.shape)
    made = np.asarray(record["kernel"](x.expand(shape).numpy(), y.expand(shape).numpy()))
    if isinstance(a, torch.Tensor) and a.shape == shape and made.dtype == a.numpy().dtype:
        a.numpy()[...] = made
        return a
    return torch.from_numpy(made)


def _records():
    return {
        "add": {"kernel": _strict(np.add), "promotion": "default"},
        "sub": {"kernel": _strict(np.subtract), "promotion": "default"},
        "mul": {"kernel": _strict(np.multiply), "promotion": "default"},
        "div": {"kernel": _strict(np.divide), "promotion": "float"},
        "gt": {"kernel": _strict(np.greater), "promotion": "default"},
    }


def _run(f, name, a, b):
    said = ", ".join(re.sub(r"\s*\n\s*", " ", repr(x)) for x in (a, b))
    return case(f"run({name}, {said})", lambda: f(_records()[name], a, b))


@dispatch.check("two tensors alike")
def _(f):
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0])
    yield _run(f, "add", a, b).gives(torch.tensor([11.0, 22.0]))
    yield _run(f, "mul", a, b).gives(torch.tensor([10.0, 40.0]))


@dispatch.check("what was handed in stays as it was", hidden=True)
def _(f):
    def after():
        a = torch.tensor([1.0, 2.0])
        f(_records()["add"], a, torch.tensor([10.0, 20.0]))
        return a

    yield case("the first operand, after run(add, ...)", after).gives(torch.tensor([1.0, 2.0]))


@dispatch.check("a comparison answers in bools")
def _(f):
    a, b = torch.tensor([1.0, 5.0]), torch.tensor([3.0, 3.0])
    yield _run(f, "gt", a, b).gives(torch.tensor([False, True]))


@dispatch.check("two dtypes, and a number")
def _(f):
    whole, halves = torch.tensor([1, 2]), torch.tensor([0.5, 1.5])
    yield _run(f, "add", whole, halves).gives(torch.tensor([1.5, 3.5]))
    yield _run(f, "mul", halves, whole).gives(torch.tensor([0.5, 3.0]))


@dispatch.check("integers divide as floats")
def _(f):
    yield _run(f, "div", torch.tensor([1, 3]), torch.tensor([2, 4])).gives(
        torch.tensor([0.5, 0.75])
    )


@dispatch.check("a column and a row, and a number in front", hidden=True)
def _(f):
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    row = torch.tensor([10.0, 20.0])
    yield _run(f, "add", table, row).gives(torch.tensor([[11.0, 22.0], [13.0, 24.0]]))
    yield _run(f, "sub", 1, torch.tensor([1, 5])).gives(torch.tensor([0, -4]))
    column = torch.tensor([[1.0], [2.0]])
    yield _run(f, "mul", column, row).gives(torch.tensor([[10.0, 20.0], [20.0, 40.0]]))


# -- a kernel -------------------------------------------------------------------------------------

sigmoid = Exercise(
    "ops.sigmoid",
    "A kernel that does not overflow",
    chapter=3,
    minutes=12,
    door=lambda f: torch.ops.sigmoid.using(kernel=f),
    prompt="""
    $$\\sigma(x) = \\frac{1}{1 + e^{-x}} = \\frac{e^{x}}{1 + e^{x}}$$

    Two formulas for one function, and each has a side on which it breaks: $e^{1000}$ is more than
    any float can hold. The left one is safe for $x \\ge 0$, the right one for $x < 0$. Both then
    hold the same $z = e^{-|x|}$, which is never more than 1.

    Write the kernel `stable_sigmoid(xp, a)`: `xp` is the array module (here NumPy, on a GPU another
    one with the same names), `a` an array of floats, of any shape, and what you return has the same
    shape **and dtype**. Use `xp.exp`, `xp.abs` and `xp.where(condition, yes, no)`, which computes
    both sides and picks: so neither may overflow. And `a` is the user's memory: do not write to it.
    """,
)


@sigmoid.stub
def stable_sigmoid(xp, a):
    """An array of floats -> 1 / (1 + exp(-a)), of the same dtype."""
    # your code here: two lines
    raise NotImplementedError


@sigmoid.reference
def stable_sigmoid(xp, a):
    """An array of floats -> 1 / (1 + exp(-a)), of the same dtype."""
    z = xp.exp(-xp.abs(a))  # at most 1
    return xp.where(a >= 0, 1, z) / (1 + z)


@sigmoid.mutant(
    "overflows to the right",
    why="""
    `exp(x) / (1 + exp(x))` is infinity over infinity for a large x, and that is `nan`. One `nan` in
    a batch makes the loss `nan`, and then every weight. This formula is for the negative side.
    """,
)
def stable_sigmoid(xp, a):
    with xp.errstate(all="ignore"):
        z = xp.exp(a)
        return z / (1 + z)


@sigmoid.mutant(
    "overflows on its way",
    why="""
    `exp` overflowed on the way, even where the *result* is right (1 / infinity happens to be 0):
    NumPy warns, and a program that treats warnings as errors stops. `where` does not help if both
    of its sides are computed. Take the exponential of -|x|, which cannot overflow.
    """,
)
def stable_sigmoid(xp, a):
    return xp.where(a >= 0, 1 / (1 + xp.exp(-a)), xp.exp(a) / (1 + xp.exp(a)))


@sigmoid.mutant(
    "picks the wrong branch",
    why="""
    The two sides are swapped, and what comes out is 1 - sigmoid: large where it should be small.
    At 0 it makes no difference, so look at one number on each side. For x > 0 the numerator is 1.
    """,
)
def stable_sigmoid(xp, a):
    z = xp.exp(-xp.abs(a))
    return xp.where(a >= 0, z, 1) / (1 + z)


@sigmoid.mutant(
    "makes doubles",
    why="""
    float32 went in and float64 came out: an array made without a dtype is float64, and it draws
    all others with it. Everything downstream then moves twice the bytes. Build on `a` itself, or
    say `dtype=a.dtype`. (Python's own numbers, as in `1 + z`, are harmless.)
    """,
)
def stable_sigmoid(xp, a):
    z = xp.exp(-xp.abs(a))
    return xp.where(a >= 0, xp.ones(a.shape), z) / (1 + z)


@sigmoid.mutant(
    "loses what is small",
    why="""
    For x = -20 the sigmoid is 0.000000002, and 0 came out. The difference of two nearly equal
    numbers keeps only the digits in which they differ, here none: 1 - 1 = 0. A logarithm of that
    is minus infinity. For negative x use z / (1 + z), which subtracts nothing.
    """,
)
def stable_sigmoid(xp, a):
    z = xp.exp(-xp.abs(a))
    y = 1 / (1 + z)
    return xp.where(a >= 0, y, 1 - y)


@sigmoid.mutant(
    "cuts the ends off",
    why="""
    Large inputs were clamped so that nothing overflows. It does not, but every x below the limit
    now has the *same* small result, and a bit of slope is lost. There is an exact way that costs
    less.
    """,
)
def stable_sigmoid(xp, a):
    return 1 / (1 + xp.exp(-xp.clip(a, -15, 15)))


@sigmoid.mutant(
    "writes to the user's memory",
    why="""
    `out=a`, or an operator such as `a *= -1`, saves memory that is not yours. The kernel is handed
    the very array the user holds. `x.sigmoid()` must leave x as it was; whoever wants the other
    says `x.sigmoid_()`.
    """,
)
def stable_sigmoid(xp, a):
    positive = a >= 0
    xp.negative(xp.abs(a), out=a)
    z = xp.exp(a)
    return xp.where(positive, 1, z) / (1 + z)


# what PyTorch gives for torch.sigmoid
SIGMOID_X = [-2.0, -0.5, 0.0, 0.5, 2.0]
SIGMOID_Y = [0.11920291930437088, 0.3775406777858734, 0.5, 0.622459352016449, 0.8807970285415649]


@sigmoid.check("both sides of 0")
def _(f):
    x = np.array(SIGMOID_X, dtype="float32")
    wanted = torch.tensor(SIGMOID_Y)
    given = case(f"stable_sigmoid(np, {SIGMOID_X})", lambda: f(np, x.copy()).tolist())
    yield given.gives(wanted.tolist(), tolerance=1e-5)


@sigmoid.check("of the same dtype and shape")
def _(f):
    for name in ("float32", "float64"):
        x = np.zeros((2, 3), dtype=name)
        facts = case(
            f"dtype and shape for {name} of shape (2, 3)",
            lambda x=x: (str(f(np, x).dtype), f(np, x).shape),
        )
        yield facts.gives((name, (2, 3)))


@sigmoid.check("the array handed in stays as it was", hidden=True)
def _(f):
    def after():
        x = np.array([1.0, -2.0, 3.0])
        f(np, x)
        return x.tolist()

    yield case("the array, after the call", after).gives([1.0, -2.0, 3.0])


@sigmoid.check("far to the right")
def _(f):
    big = np.array([50.0, 1000.0], dtype="float32")
    yield case("stable_sigmoid(np, [50, 1000])", lambda: _quiet(f, big)).gives([1.0, 1.0])


@sigmoid.check("small results keep their digits")
def _(f):
    small = np.array([-20.0, -80.0], dtype="float32")
    ratios = case(
        "stable_sigmoid(np, [-20, -80]), each divided by PyTorch's result",
        lambda: [y / r for y, r in zip(_quiet(f, small), (2.0611535811454473e-9, 1.8048513e-35))],
    )
    yield ratios.gives([1.0, 1.0], tolerance=1e-4)


def _quiet(f, x):
    with np.errstate(all="ignore"):
        return f(np, x.copy()).tolist()


@sigmoid.check("nothing overflows on the way", hidden=True)
def _(f):
    def warned():
        with warnings.catch_warnings(record=True) as seen, np.errstate(over="warn", invalid="warn"):
            warnings.simplefilter("always")
            f(np, np.array([-1000.0, 1000.0], dtype="float32"))
        return [str(w.message).split(" encountered")[0] for w in seen]

    yield case("NumPy's warnings for [-1000, 1000]", warned).gives([])


@sigmoid.check("as a part of toytorch")
def _(f):
    def slope():
        x = torch.tensor([-1.0, 2.0], requires_grad=True)
        with sigmoid.door(f):
            x.sigmoid().sum().backward()
        return x.grad

    plugged = case("the slope of x.sigmoid() at -1 and 2, through toytorch", slope)
    yield plugged.gives(torch.tensor([0.19661194, 0.10499358]), tolerance=1e-5)

"""A dispatcher."""

import re

import numpy as np

import toytorch as torch
from course.cases import case
from course.properties import agrees, restores, untouched
from course.records import Exercise


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
    minutes=20,
    prompt="""
    A kernel takes two NumPy arrays of **one** dtype and **one** shape. Users write `table / 2`,
    with any dtypes and shapes. A dispatcher prepares the operands for the kernel, and it is the
    same for all ops. Write `run(record, a, b)`, where a record is a dict such as
    `{"kernel": np.divide, "promotion": "float"}`. Four steps:

    1. **Promote.** `torch.result_type(a, b)` is the common dtype (`a` and `b` may be tensors or
       Python numbers). If the record's promotion is `"float"` and that dtype is not floating, use
       `torch.get_default_dtype()`.
    2. **Broadcast.** `torch.broadcast_shapes(...)` and `x.expand(shape)`.
    3. **Run** the kernel once, on the two arrays (`x.numpy()`).
    4. **Wrap** what it returned: `torch.from_numpy(array)`. The result has the dtype that the
       kernel gave it; a comparison returns bools.

    The operands must not be changed.
    """,
    hints=(
        """
        Take the four steps in their order: one dtype, one shape, one call, one tensor. Each step
        has a function of the framework, named in the prompt. A number becomes a tensor with
        `torch.as_tensor`, but only after the common dtype was found.
        """,
        """
        `run(div, torch.tensor([[1], [3]]), 2)`

        | step | a | b |
        | --- | --- | --- |
        | promote: `result_type` says int64, the record says "float", so float32 | `[[1.], [3.]]` | `2.` |
        | shapes `(2, 1)` and `()` broadcast to `(2, 1)` | `[[1.], [3.]]` | `[[2.], [2.]]` |
        | as arrays, through the kernel | | `[[0.5], [1.5]]` |
        | wrap | | a float32 tensor |

        For two 0-d operands NumPy gives a scalar and not an array; `np.asarray(...)` makes one of both.
        """,
        """
        ```python
        def run(record, a, b):
            dtype = torch.result_type(a, b)
            if record["promotion"] == "float" and ...:
                dtype = ...
            a, b = (torch.as_tensor(x).to(dtype) for x in (a, b))
            shape = ...
            arrays = (... for x in (a, b))
            return torch.from_numpy(np.asarray(...))
        ```
        """,
    ),
)


@dispatch.reference(stub="your code here: about 9 lines")
def run(record, a, b):
    """Promote, broadcast, run the record's kernel, wrap."""
    dtype = torch.result_type(a, b)
    if record["promotion"] == "float" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    a, b = (torch.as_tensor(x).to(dtype) for x in (a, b))
    shape = torch.broadcast_shapes(a.shape, b.shape)
    arrays = (x.expand(shape).numpy() for x in (a, b))
    return torch.from_numpy(np.asarray(record["kernel"](*arrays)))


dispatch.changed(
    "the first operand decides",
    """
    The second operand was converted to the dtype of the first. `ints + halves` would then truncate
    the halves, and `a + b` would differ from `b + a`. The common dtype may be that of neither
    operand.
    """,
    ("dtype = torch.result_type(a, b)", "dtype = torch.as_tensor(a).dtype"),
)

dispatch.changed(
    "does not read the record",
    """
    The record says `"promotion": "float"`, but the kernel was given integers. The quotient of two
    integers is usually no integer. The record exists so that one dispatcher can serve ops that
    differ in this; NumPy's `divide` would have chosen float64 by itself, twice what PyTorch uses.
    """,
    (
        '    if record["promotion"] == "float" and not dtype.is_floating_point:\n'
        "        dtype = torch.get_default_dtype()\n",
        "",
    ),
)

dispatch.changed(
    "forces its dtype on the result",
    """
    The result was cast to the common dtype of the operands. That dtype is for the *input* of the
    kernel. A comparison of floats returns bools: the kernel determines the dtype of the result.
    """,
    (
        'return torch.from_numpy(np.asarray(record["kernel"](*arrays)))',
        'return torch.from_numpy(np.asarray(record["kernel"](*arrays))).to(dtype)',
    ),
)


@dispatch.mutant(
    "leaves the shapes to the kernel",
    why="""
    The operands reached the kernel in two shapes. NumPy's own functions would stretch them, but
    other kernels are plain loops over two blocks of memory. Broadcasting is done once, here, for
    all kernels.
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
    `b` was expanded to the shape of `a`. A number minus a table, or a column plus a row, needs the
    *first* one stretched: both go to the shape that `broadcast_shapes` gives.
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
    The result landed in the memory of the first operand, so the user's tensor changed. Only
    in-place operations such as `add_` do that. The result of all others has memory of its own.
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


dispatch.changed(
    "always the default dtype",
    """
    The record says `"float"`, and every operand was converted to the default dtype, float64
    operands as well, which lose half of their digits. Only what is *not* floating is converted.
    """,
    (
        'if record["promotion"] == "float" and not dtype.is_floating_point:',
        'if record["promotion"] == "float":',
    ),
)

dispatch.changed(
    "wraps a scalar that is no array",
    """
    For operands without dimensions a NumPy function gives a scalar and no array, and
    `torch.from_numpy` refuses it. `np.asarray` makes an array of both.
    """,
    (
        'return torch.from_numpy(np.asarray(record["kernel"](*arrays)))',
        'return torch.from_numpy(record["kernel"](*arrays))',
    ),
)

dispatch.changed(
    "runs the kernel twice",
    """
    The kernel is the expensive part, and it ran twice. Assign its result to a variable.
    """,
    (
        "    arrays = (x.expand(shape).numpy() for x in (a, b))\n"
        '    return torch.from_numpy(np.asarray(record["kernel"](*arrays)))',
        "    a, b = (x.expand(shape).numpy() for x in (a, b))\n"
        '    if record["kernel"](a, b) is None:\n'
        '        raise TypeError("the kernel gave nothing")\n'
        '    return torch.from_numpy(np.asarray(record["kernel"](a, b)))',
    ),
)


@dispatch.mutant(
    "a number is a full tensor",
    why="""
    The number was made a tensor first, and then the two dtypes were promoted as equals. A
    Python number has a kind and no width: a float16 tensor times 2.0 stays float16.
    `torch.result_type` applies this rule.
    """,
)
def run(record, a, b):
    a, b = torch.as_tensor(a), torch.as_tensor(b)
    dtype = torch.promote_types(a.dtype, b.dtype)
    if record["promotion"] == "float" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    shape = torch.broadcast_shapes(a.shape, b.shape)
    arrays = (x.to(dtype).expand(shape).numpy() for x in (a, b))
    return torch.from_numpy(np.asarray(record["kernel"](*arrays)))


dispatch.changed(
    "float32, not the default",
    """
    The default dtype is a setting, and the user may have set it to float64. Call
    `torch.get_default_dtype()` each time.
    """,
    ("dtype = torch.get_default_dtype()", "dtype = torch.float32"),
)


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


def _any_call(draw):
    """An op's name and two operands, one of which may be a number."""

    def operand(shape, number):
        if number:
            return draw.choice((2, 3, 0.5, 2.0))
        return draw.tensor(shape, draw.dtype("uint8", "int32", "int64", "float32", "float64"),
                           low=1, high=9)

    shape = draw.shape(0, 2)
    one, two = (tuple(1 if draw.random() < 0.3 else n for n in shape) for _ in range(2))
    which = draw.choice(("neither", "neither", "first", "second"))
    a, b = operand(one, which == "first"), operand(two[draw.randint(0, len(two)):], which == "second")
    return draw.choice(("add", "mul", "div", "gt")), a, b


def _through(f):
    return lambda name, a, b: f(_records()[name], a, b)


@dispatch.check("any operands")
def _(f):
    right = _through(dispatch.answer.value)
    yield agrees(_through(f), right, _any_call, count=100,
                 tell=lambda name, a, b: f"run({name}, {_text(a)}, {_text(b)})")
    yield untouched(_through(f), _any_call)


def _text(operand):
    return re.sub(r"\s*\n\s*", " ", repr(operand))


@dispatch.check("one call, the default dtype, and no settings changed")
def _(f):
    def calls():
        count = []
        kernel = _strict(np.add)

        def counting(a, b):
            count.append(1)
            return kernel(a, b)

        f({"kernel": counting, "promotion": "default"}, torch.tensor([1.0]), torch.tensor([2.0]))
        return len(count)

    yield case("how often the kernel is called", calls).gives(1)

    def doubles():
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return f(_records()["div"], torch.tensor([1, 3]), 2)
        finally:
            torch.set_default_dtype(before)

    told = case("run(div, tensor([1, 3]), 2), where the default dtype is float64", doubles)
    yield told.gives(torch.tensor([0.5, 1.5], dtype=torch.float64))
    double = torch.ones(2, dtype=torch.float64)
    yield restores(lambda: f(_records()["div"], double, double))

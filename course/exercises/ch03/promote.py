"""Type promotion: tensors with dimensions, tensors without, Python numbers."""

import toytorch as torch
from course.cases import case
from course.properties import agrees
from course.records import Exercise

promote = Exercise(
    "ops.promote",
    "Type promotion of any operands",
    chapter=3,
    minutes=20,
    without=("torch.result_type",),
    prompt="""
    What is the common dtype of several operands? Chapter 01 had one tensor and one number. In
    general there are three groups of operands with falling priority. We call the priority a
    **rank**, and rank 1 is the highest:

    1. tensors with dimensions
    2. tensors without (`ndim == 0`, such as `torch.tensor(2.0)`)
    3. Python numbers (`torch.tensor(number).dtype` is the dtype they would have)

    How they are combined:

    * Within one rank, the common dtype is `torch.promote_types(a, b)`.
    * Between two ranks, compare the kinds: bool < integer < floating. If the dtype of the lower rank
      is of a **higher kind**, the result is `promote_types` of both. Otherwise the dtype of the lower
      rank is dropped.
    * First combine ranks 3 and 2, then the result with rank 1.

    | 1: with dimensions | 2: without | 3: numbers | the last two | all three |
    | --- | --- | --- | --- | --- |
    | `float16` | `float64` | | `float64` | `float16`: a lower rank of the same kind is dropped |
    | `int32` | `float64` | | `float64` | `float64`: a higher kind counts |
    | | `int32` | `0.5` | `float32`: the number's kind is higher | `float32` |
    | `int16` | `int64` | `2` | `int64` | `int16` |
    | `bool` | | `3` | `int64` | `int64` |

    Write `common_dtype(*operands)`. `kind(dtype)` below returns 0, 1 or 2 (complex numbers are left
    out). It is defined inside the function, so you can use it.
    """,
    hints=(
        """
        Do it in two separate steps. First sort the operands into three ranks and find one dtype for
        each rank with `promote_types`. Then combine the ranks, from the lowest to the highest: the
        higher rank decides, unless the lower one is of a higher kind.
        """,
        """
        `common_dtype(int16 tensor, 0-d int64 tensor, 2.0)`

        **Within the ranks**: rank 1 has `int16`, rank 2 has `int64`, rank 3 has `float32` (of 2.0).

        **Between them**, from the lowest:

        | so far | higher rank | is "so far" of a higher kind? | result |
        | --- | --- | --- | --- |
        | nothing | `float32` | | `float32` |
        | `float32` | `int64` | floating > integer: yes | `promote_types(int64, float32)` = `float32` |
        | `float32` | `int16` | yes | `promote_types(int16, float32)` = `float32` |

        And `common_dtype(float16 tensor, 0-d float64 tensor)`: so far `float64`, and `float16` is
        of the same kind: not higher, so the higher rank decides, `float16`.
        """,
        """
        ```python
        def common_dtype(*operands):
            def kind(dtype):
                return 2 if dtype.is_floating_point else int(dtype != torch.bool)

            ranks = {0: None, 1: None, 2: None}
            for x in operands:
                rank = ...  # 2 for a number, 1 for a 0-d tensor, 0 for the others
                new, old = torch.as_tensor(x).dtype, ranks[rank]
                ranks[rank] = ...
            result = None
            for high in (ranks[2], ranks[1], ranks[0]):  # the weakest first
                if result is None or high is None:
                    result = result or high
                elif ...:
                    result = torch.promote_types(high, result)
                else:
                    result = ...
            return result
        ```
        """,
    ),
)


@promote.stub
def common_dtype(*operands):
    """Tensors and numbers -> their common dtype."""

    def kind(dtype):
        return 2 if dtype.is_floating_point else int(dtype != torch.bool)

    # your code here: about 12 lines
    raise NotImplementedError


@promote.reference()
def common_dtype(*operands):
    """Tensors and numbers -> their common dtype."""

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
    float32 and take twice the memory. The width of a number or a 0-d tensor counts only if no
    operand of a higher rank is of that kind.
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
    A tensor without dimensions was treated like one with dimensions. Then a single 0-d float64
    tensor would turn a whole float32 batch into float64. Test for `x.ndim == 0`.
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
    A tensor without dimensions was treated as a Python number. It ranks between the two, because
    its dtype was *chosen* by the user. A 0-d float64 times the number 0.5 stays float64, and a 0-d
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
    The lower ranks were ignored. But an int64 tensor cannot hold 0.5: a lower rank of a *higher
    kind* must change the result, or `counts * 0.5` would be all zeros.
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


promote.changed(
    "bool and integer are one kind",
    """
    A mask times an integer stayed a mask. Bool is a kind of its own, below the integers: `mask * 3`
    is an int64 tensor of threes and zeros.
    """,
    (
        "    def kind(dtype):\n"
        "        return 2 if dtype.is_floating_point else int(dtype != torch.bool)\n",
        "",
    ),
    (
        "        tensor = isinstance(x, torch.Tensor)\n"
        "        rank = 2 if not tensor else 1 if x.ndim == 0 else 0",
        "        rank = 2 if not isinstance(x, torch.Tensor) else 1 if x.ndim == 0 else 0",
    ),
    (
        "elif kind(result) > kind(high):",
        "elif result.is_floating_point and not high.is_floating_point:",
    ),
)


@promote.mutant(
    "the wider dtype wins within a rank",
    why="""
    Of two tensors, the dtype with more bytes was taken. The size does not decide: int64 has eight
    bytes and float16 has two, and the result is float16, because floating is the higher kind. And
    uint8 with int8 gives int16, the smallest that holds both. `torch.promote_types` has these
    rules.
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


def _kind(dtype):
    return 2 if dtype.is_floating_point else int(dtype != torch.bool)


def _rank(x):
    return 2 if not isinstance(x, torch.Tensor) else 1 if x.ndim == 0 else 0


def _settle(ranks):
    result = None
    for high in (ranks[2], ranks[1], ranks[0]):
        if result is None or high is None:
            result = result or high
        elif _kind(result) > _kind(high):
            result = torch.promote_types(high, result)
        else:
            result = high
    return result


def _meet(ranks, rank, dtype):
    ranks[rank] = dtype if ranks[rank] is None else torch.promote_types(ranks[rank], dtype)


@promote.mutant(
    "two at a time, from left to right",
    why="""
    The result of the first pair was combined with the next operand as if it were an operand itself.
    But an integer tensor with the number 2.0 gives float32, and a 0-d float64 that comes later is
    then dropped, because the kind is no longer higher. Collect each rank first, and combine the
    ranks at the end.
    """,
)
def common_dtype(*operands):
    first, *others = operands
    dtype, rank = torch.as_tensor(first).dtype, _rank(first)
    for x in others:
        new, at = torch.as_tensor(x).dtype, _rank(x)
        if at == rank:
            dtype = torch.promote_types(dtype, new)
        else:
            high, low = (dtype, new) if rank < at else (new, dtype)
            dtype = torch.promote_types(high, low) if _kind(low) > _kind(high) else high
        rank = min(rank, at)
    return dtype


@promote.mutant(
    "a tensor of one number is a 0-d tensor",
    why="""
    `numel() == 1` also holds for a tensor of shape `(1,)`, which has a dimension and so belongs
    to the first rank. Ask for `ndim == 0`.
    """,
)
def common_dtype(*operands):
    ranks = {0: None, 1: None, 2: None}
    for x in operands:
        tensor = isinstance(x, torch.Tensor)
        rank = 2 if not tensor else 1 if x.numel() == 1 else 0
        _meet(ranks, rank, torch.as_tensor(x).dtype)
    return _settle(ranks)


@promote.mutant(
    "True is an integer",
    why="""
    In Python it is, and here it is a bool, the lowest kind: a mask with the number `True` stays a
    mask. `torch.tensor(True).dtype` is `torch.bool`.
    """,
)
def common_dtype(*operands):
    ranks = {0: None, 1: None, 2: None}
    for x in operands:
        _meet(ranks, _rank(x), torch.as_tensor(int(x) if x is True or x is False else x).dtype)
    return _settle(ranks)


@promote.mutant(
    "needs two operands",
    why="""
    The first two operands were unpacked by name. A single one is allowed as well: its dtype is
    the answer.
    """,
)
def common_dtype(*operands):
    a, b, *more = operands
    ranks = {0: None, 1: None, 2: None}
    for x in (a, b, *more):
        _meet(ranks, _rank(x), torch.as_tensor(x).dtype)
    return _settle(ranks)


@promote.mutant(
    "an empty tensor does not count",
    why="""
    A dtype belongs to the tensor, not to its elements: an empty float64 tensor counts like any
    other. Otherwise the dtype of a result would depend on how many rows a filter left.
    """,
)
def common_dtype(*operands):
    ranks = {0: None, 1: None, 2: None}
    for x in operands:
        if isinstance(x, torch.Tensor) and x.numel() == 0 and len(operands) > 1:
            continue
        _meet(ranks, _rank(x), torch.as_tensor(x).dtype)
    return _settle(ranks) or torch.float32


def full(name):
    return torch.ones(2, dtype=getattr(torch, name))


def zero(name):
    return torch.tensor(1, dtype=getattr(torch, name))


# what PyTorch 2 gives for the sum of the operands; "name" has dimensions, "1:name" a single number
# in one dimension, "0:name" no dimension
DTYPES = {
    "two tensors": [
        ("int32", "int64", "int64"),
        ("int64", "float16", "float16"),
        ("uint8", "int8", "int16"),
        ("bool", "uint8", "uint8"),
        ("float32", "1:float64", "float64"),
    ],
    "a tensor and a number": [
        ("bool", True, "bool"),
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
    if text.startswith("1:"):
        return full(text[2:])[:1]
    return zero(text[2:]) if text.startswith("0:") else full(text)


def _said(text):
    if not isinstance(text, str):
        return str(text)
    if text.startswith("1:"):
        return f"a {text[2:]} tensor of shape (1,)"
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


_NAMES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64")
_SHAPES = ((), (), (1,), (2,), (0,), (2, 1))


@promote.check("any operands")
def _(f):
    def operands(draw):
        def one():
            if draw.random() < 0.35:
                return draw.choice((True, 3, 2.0, 0.5))
            return torch.ones(draw.choice(_SHAPES), dtype=draw.dtype(*_NAMES))

        return tuple(one() for _ in range(draw.choice((1, 2, 2, 3, 3, 3, 4))))

    def tell(*given):
        said = [
            f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else str(x)
            for x in given
        ]
        return f"common_dtype({'; '.join(said)})"

    yield agrees(f, promote.answer.value, operands, count=200, tell=tell)

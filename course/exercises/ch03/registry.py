"""A table of operations, and the steps between a call and its kernel."""

from functools import partial, reduce

import numpy as np

import toytorch as torch
from course.cases import case
from course.properties import drawn, every
from course.records import Exercise

registry = Exercise(
    "ops.registry",
    "A table of operations of your own",
    chapter=3,
    minutes=50,
    prompt="""
    The whole chapter without toytorch: a class `Ops`, whose kernels are functions of NumPy arrays. It
    becomes `ops.py` in your package `mytorch`. Operands are NumPy arrays and Python numbers.

    1. **The table.** `define(name, kernel, kinds)` adds an operation; a name that is there already is a
       `ValueError`. `find(name)` returns the pair `(kernel, kinds)`, or raises a `LookupError` that
       names the unknown operation and lists all known ones.
    2. **Promotion.** `dtype_of(operands)` is the common dtype, by the three ranks of this chapter:
       arrays with dimensions, then 0-d arrays (and NumPy's scalars), then Python numbers. An operand
       of a lower rank counts only if its *kind* is higher. Among those of one rank, the highest kind
       counts, and `np.promote_types` finds the common width. Numbers have the dtypes of `DEFAULT`.
       Another operand is a `TypeError` that names its type.
    3. **Broadcasting.** `shape_of(shapes)` is the common shape of any number of shapes, or a
       `ValueError` that names all of them and says *do not broadcast*.
    4. **The call.** `kinds` are those that a kernel takes: `"b"` for bool, `"i"` for integers, `"f"`
       for floats. If the common kind is not among them, the default dtype of the next higher one
       that is takes its place; without one, a `TypeError` names operation and dtype. The kernel is
       called once, on arrays of one dtype and one shape, and the result has the dtype that the
       kernel gives it.
    5. **Writing.** With `out=`, and in place, the result has to fit into an array that is there: the
       same shape (`ValueError`), and no higher kind (`TypeError`). Both errors name the operation. If
       it does not fit, nothing is written. `inplace(name, target, …)` writes into its first operand,
       and returns it.

    The last method is given: it makes the forms `ops.add(a, b)` and `ops.add_(a, b)` of one record.

    A trace of `ops.call("div", np.array([[1], [3]]), np.array([2, 4]), out=target)`, where `div` is
    defined with the kernel `np.divide` and the kinds `"f"`:

    | step | what happens |
    | --- | --- |
    | `find` | `(np.divide, "f")` |
    | `dtype_of` | both are int64 with dimensions: int64 |
    | kinds | an integer is not in `"f"`; the next higher kind that is gives float32 |
    | `shape_of` | (2, 1) and (2,): (2, 2) |
    | kernel | two float32 arrays of shape (2, 2) → `[[0.5, 0.25], [1.5, 0.75]]` |
    | `out` | a target of shape (2, 2) and a float dtype is written; an int64 target is an error |
    """,
    without=(
        "torch.result_type",
        "torch.promote_types",
        "torch.broadcast_shapes",
        "torch.broadcast_tensors",
        "numpy.result_type",
        "numpy.broadcast_shapes",
        "numpy.broadcast_arrays",
    ),
    hints=(
        """
        Each method answers one question, and `call` asks them in the order of the trace: which kernel, which
        dtype, does the kernel take it, which shape. Only after that are arrays made: convert each operand to
        the dtype, and show it in the shape with `np.broadcast_to`, which copies nothing. Writing is a step of
        its own, after the kernel, so that `out=` and the in-place form share one check.
        """,
        """
        `dtype_of` for an int16 array with dimensions, a 0-d float64 array and the number 2.0:

        | rank | dtypes | highest kind | common dtype so far |
        | --- | --- | --- | --- |
        | with dimensions | int16 | integer | int16 |
        | 0-d | float64 | floating: higher than integer | float64 |
        | numbers | float32 | floating: not higher | float64 |

        `shape_of([(2, 1), (3,)])` begins with ones, as many as the longest shape has: (1, 1).

        | shape | place | size | result so far |
        | --- | --- | --- | --- |
        | (2, 1) | -2 | 2, where 1 stands | (2, 1) |
        | (2, 1) | -1 | 1: nothing changes | (2, 1) |
        | (3,) | -1 | 3, where 1 stands | (2, 3) |

        A size that is neither 1 nor what stands there is an error, unless 1 stands there.
        """,
        """
        ```python
        class Ops:
            DEFAULT = {
                bool: np.dtype(bool),
                int: np.dtype(np.int64),
                float: np.dtype(np.float32),
            }

            def __init__(self):
                self.table = {}

            @staticmethod
            def level(dtype):
                return {"b": 0, "u": 1, "i": 1, "f": 2}[dtype.kind]

            def define(self, name, kernel, kinds="bif"):
                if ...:
                    raise ValueError(f"{name!r} is defined already")
                self.table[name] = kernel, kinds

            def find(self, name):
                if ...:
                    ...
                return self.table[name]

            @staticmethod
            def dtype_of(operands):
                ranks = [], [], []
                for x in operands:
                    if isinstance(x, (np.ndarray, np.generic)):
                        ...  # to the list of its rank
                    elif type(x) in Ops.DEFAULT:
                        ranks[2].append(Ops.DEFAULT[type(x)])
                    else:
                        raise TypeError(f"no array or number: {type(x).__name__}")
                found = None
                for dtypes in ranks:
                    top = max(map(Ops.level, dtypes), default=-1)
                    if ...:  # nothing found yet, or a higher kind than that
                        highest = ...
                        found = reduce(np.promote_types, highest)
                return found

            @staticmethod
            def shape_of(shapes):
                result = [1] * max(map(len, shapes))
                for shape in shapes:
                    for place in range(-len(shape), 0):  # from the right
                        size = shape[place]
                        if ...:
                            continue
                        if ...:
                            ...  # an error
                        result[place] = size
                return tuple(result)

            def call(self, name, *operands, out=None):
                kernel, kinds = self.find(name)
                dtype = self._taken(name, self.dtype_of(operands), kinds)
                shape = ...
                arrays = [...]
                result = kernel(...)
                result = np.asarray(result)
                return result if out is None else self._write(name, result, out)

            def inplace(self, name, target, *others):
                return ...

            def _taken(self, name, dtype, kinds):
                level = Ops.level(dtype)
                if ...:
                    return dtype
                for kind, default in zip("bif", Ops.DEFAULT.values()):
                    if ...:
                        return default
                raise TypeError(f"{name} does not take {dtype}")

            def _write(self, name, result, out):
                ...  # three errors
                out[...] = result
                return out
        ```

        `inplace` is one line: a call whose `out` is the first operand.
        """,
    ),
)


@registry.reference(stub={
    "define": "stage 1, your code here: about 3 lines",
    "find": "stage 1, your code here: about 4 lines",
    "dtype_of": "stage 2, your code here: about 17 lines",
    "shape_of": "stage 3, your code here: about 11 lines",
    "call": "stage 4, your code here: about 7 lines, and 8 for the kinds\nstage 5: and 10 to write into out",
    "inplace": "stage 5, your code here: one line",
    "_taken": "",
    "_write": "",
})
class Ops:
    """A table of element-wise operations on NumPy arrays and numbers."""

    DEFAULT = {
        bool: np.dtype(bool),
        int: np.dtype(np.int64),
        float: np.dtype(np.float32),
    }

    def __init__(self):
        self.table = {}

    @staticmethod
    def level(dtype):
        """The kind as a number: 0 bool, 1 integer, 2 floating."""
        return {"b": 0, "u": 1, "i": 1, "f": 2}[dtype.kind]

    def define(self, name, kernel, kinds="bif"):
        """Add an operation whose kernel takes these kinds of dtypes."""
        if name in self.table:
            raise ValueError(f"{name!r} is defined already")
        self.table[name] = kernel, kinds

    def find(self, name):
        """The kernel of an operation, and the kinds it takes."""
        if name not in self.table:
            known = ", ".join(sorted(self.table))
            raise LookupError(f"no operation {name!r}; known: {known}")
        return self.table[name]

    @staticmethod
    def dtype_of(operands):
        """The common dtype of arrays and Python numbers."""
        ranks = [], [], []
        for x in operands:
            if isinstance(x, (np.ndarray, np.generic)):
                ranks[0 if x.ndim else 1].append(x.dtype)
            elif type(x) in Ops.DEFAULT:
                ranks[2].append(Ops.DEFAULT[type(x)])
            else:
                raise TypeError(f"no array or number: {type(x).__name__}")
        found = None
        for dtypes in ranks:
            top = max(map(Ops.level, dtypes), default=-1)
            if top > (-1 if found is None else Ops.level(found)):
                highest = [d for d in dtypes if Ops.level(d) == top]
                found = reduce(np.promote_types, highest)
        return found

    @staticmethod
    def shape_of(shapes):
        """The common shape of some shapes."""
        result = [1] * max(map(len, shapes))
        for shape in shapes:
            for place in range(-len(shape), 0):  # from the right
                size = shape[place]
                if size == 1:
                    continue
                if result[place] not in (1, size):
                    named = " and ".join(map(str, shapes))
                    raise ValueError(f"{named} do not broadcast")
                result[place] = size
        return tuple(result)

    def call(self, name, *operands, out=None):
        """The result as a new array, or written into out."""
        kernel, kinds = self.find(name)
        dtype = self._taken(name, self.dtype_of(operands), kinds)
        shape = self.shape_of([np.shape(x) for x in operands])
        arrays = [np.asarray(x).astype(dtype) for x in operands]
        result = kernel(*[np.broadcast_to(x, shape) for x in arrays])
        result = np.asarray(result)
        return result if out is None else self._write(name, result, out)

    def inplace(self, name, target, *others):
        """The result, written into the first operand."""
        return self.call(name, target, *others, out=target)

    def _taken(self, name, dtype, kinds):
        """The dtype, or a higher one that the kernel takes."""
        level = Ops.level(dtype)
        if "bif"[level] in kinds:
            return dtype
        for kind, default in zip("bif", Ops.DEFAULT.values()):
            if kind in kinds and Ops.level(default) > level:
                return default
        raise TypeError(f"{name} does not take {dtype}")

    def _write(self, name, result, out):
        """Write a result into an array, if it fits."""
        if not isinstance(out, np.ndarray):
            kind = type(out).__name__
            raise TypeError(f"{name} cannot write into {kind}")
        if result.shape != out.shape:
            shapes = f"{result.shape} into {out.shape}"
            raise ValueError(f"{name} cannot write {shapes}")
        if Ops.level(result.dtype) > Ops.level(out.dtype):
            dtypes = f"{result.dtype} into {out.dtype}"
            raise TypeError(f"{name} cannot write {dtypes}")
        out[...] = result
        return out

    def __getattr__(self, name):
        """ops.add(a, b) is a call, ops.add_(a, b) writes into a."""
        table = self.__dict__.get("table", {})
        if name in table:
            return partial(self.call, name)
        if name.endswith("_") and name[:-1] in table:
            return partial(self.inplace, name[:-1])
        raise AttributeError(f"no operation {name!r}")

registry.changed(
    "a second definition replaces the first",
    """
    A name that was there already was overwritten without a word. Two parts of a program that choose the same name
    would then change each other's results. Raise a `ValueError`.
    """,
    ("if name in self.table:\n", "if False:\n"),
)

registry.changed(
    "every operand counts alike",
    """
    The operands were not sorted by rank, so a Python number or a 0-d array changes the width: a float16 array times
    2.0 becomes float32. Go through the ranks one after the other.
    """,
    ("ranks[0 if x.ndim else 1].append(x.dtype)", "ranks[0].append(x.dtype)"),
    ("ranks[2].append(Ops.DEFAULT[type(x)])", "ranks[0].append(Ops.DEFAULT[type(x)])"),
)

registry.changed(
    "a lower rank never counts",
    """
    The dtype of the highest rank was kept in every case. An array of integers plus 0.5 would stay an array of
    integers. A lower rank counts if its *kind* is higher.
    """,
    ("if top > (-1 if found is None else Ops.level(found)):", "if found is None and dtypes:"),
)

registry.changed(
    "NumPy's rule between kinds",
    """
    All dtypes of a rank were handed to `np.promote_types`. Between an integer and a float, NumPy widens: int64 and
    float32 give float64. In PyTorch the integer's width does not count: only those of the highest kind do.
    """,
    ("highest = [d for d in dtypes if Ops.level(d) == top]", "highest = dtypes"),
)

registry.changed(
    "lines up from the left",
    """
    Shapes line up from the *right*: what a shape lacks are the dimensions on its left. Indices from -1 downwards
    count from there.
    """,
    ("for place in range(-len(shape), 0):  # from the right", "for place in range(len(shape)):"),
)

registry.changed(
    "the larger size counts",
    """
    Two sizes that differ, of which none is 1, do not fit, and the larger one was taken. Only a size of 1 is
    stretched.
    """,
    ("if result[place] not in (1, size):", "if False:"),
    ("result[place] = size", "result[place] = max(size, result[place])"),
)

registry.changed(
    "the kernel gets what the caller gave",
    """
    The operands were converted to the common dtype, and not to the one that the kernel takes. A division of two
    integers then runs on integers. First find what the kernel takes, then convert.
    """,
    (
        "dtype = self._taken(name, self.dtype_of(operands), kinds)",
        "dtype = self.dtype_of(operands)\n        self._taken(name, dtype, kinds)",
    ),
)

registry.changed(
    "what the kernel does not take becomes a float",
    """
    The dtype went to float32 at once. A bool that a kernel does not take becomes an integer first, if the kernel
    takes those: go up one kind at a time.
    """,
    ("zip(\"bif\", Ops.DEFAULT.values())", "reversed([*zip(\"bif\", Ops.DEFAULT.values())])"),
)

registry.changed(
    "a lower kind will do",
    """
    A kernel for integers was called with floats, cut to integers. Digits are lost without an error. A dtype may go
    up to a higher kind, and never down.
    """,
    ("if kind in kinds and Ops.level(default) > level:", "if kind in kinds:"),
)

registry.changed(
    "operands of different shapes",
    """
    The kernel got operands in the shapes that the caller gave. NumPy's own functions broadcast by themselves, and
    other kernels do not: a loop in C, or the ones of this check. Show each operand in the common shape first.
    """,
    ("kernel(*[np.broadcast_to(x, shape) for x in arrays])", "kernel(*arrays)"),
)

registry.changed(
    "out grows with the result",
    """
    A result of another shape was accepted, and NumPy broadcast it into `out`, or failed with a message of its own. The
    memory of `out` is there already, so the shapes have to be equal.
    """,
    ("if result.shape != out.shape:", "if False:"),
)

registry.changed(
    "in place cuts to integers",
    """
    A floating result was written into an array of integers, and everything behind the point is gone. PyTorch raises an
    error: the kind of the result must not be higher than the kind of what it is written into.
    """,
    ("if Ops.level(result.dtype) > Ops.level(out.dtype):", "if False:"),
)

registry.changed(
    "the in-place form returns a new array",
    """
    The result was computed, returned, and not written into the first operand. The array that the caller holds has to
    change, and it is also what is returned.
    """,
    ("return self.call(name, target, *others, out=target)", "return self.call(name, target, *others)"),
)

registry.changed(
    "a number is an array without dimensions",
    """
    A Python number was put into the rank of 0-d arrays. There is a rank below: a number brings a kind and no width,
    so a 0-d float16 array times 2.0 stays float16.
    """,
    ("ranks[2].append(Ops.DEFAULT[type(x)])", "ranks[1].append(Ops.DEFAULT[type(x)])"),
)

registry.changed(
    "the first of the highest kind decides the width",
    """
    Of several operands with the highest kind, only the first was asked. int32 plus int64 has to hold both, whichever
    stands first.
    """,
    ("found = reduce(np.promote_types, highest)", "found = highest[0]"),
)

registry.changed(
    "the result has the dtype of the operands",
    """
    The result was converted to the dtype of the operands. A comparison of two integers gives bools: the result keeps
    the dtype that the kernel gave it.
    """,
    ("result = np.asarray(result)\n", "result = np.asarray(result).astype(dtype)\n"),
)

registry.changed(
    "out must have the dtype of the result",
    """
    An `out` of another dtype was refused. It is converted, as in any assignment, as long as its kind is not lower:
    a float32 result may go into float64, and an integer into a float.
    """,
    ("Ops.level(result.dtype) > Ops.level(out.dtype)", "result.dtype != out.dtype"),
)

registry.changed(
    "as many elements are enough",
    """
    Only the number of elements was compared. The result (2,) and an `out` of (2, 1) have two each, and are different
    shapes: what is written would stand at other indices than the caller expects.
    """,
    ("if result.shape != out.shape:", "if result.size != out.size:"),
    ("out[...] = result\n", "out[...] = result.reshape(out.shape)\n"),
)


# -- checks ---------------------------------------------------------------------------------------


def _strict(kernel):
    """A kernel that is as strict as one in C: arrays of one shape and one dtype."""

    def strict(*arrays):
        if not all(isinstance(x, np.ndarray) for x in arrays):
            raise TypeError("the kernel takes NumPy arrays only")
        dtypes, shapes = ({x.dtype for x in arrays}, {x.shape for x in arrays})
        if len(dtypes) > 1 or len(shapes) > 1:
            raise TypeError(f"the kernel got {' and '.join(f'{x.dtype} {x.shape}' for x in arrays)}")
        return kernel(*arrays)

    return strict


_DEFINED = {
    "add": (np.add, "bif"),
    "mul": (np.multiply, "bif"),
    "div": (np.divide, "f"),
    "exp": (np.exp, "f"),
    "neg": (np.negative, "if"),
    "less": (np.less, "bif"),
    "both": (np.bitwise_and, "bi"),
    "where": (lambda c, x, y: np.where(c != 0, x, y), "bif"),
}


def _filled(Ops):
    made = Ops()
    for name, (kernel, kinds) in _DEFINED.items():
        made.define(name, _strict(kernel), kinds)
    return made


def _told(found):
    """A result in a form that panels show and `same` compares."""
    if not isinstance(found, np.ndarray):
        return f"a {type(found).__name__} and no array"
    return found.dtype.name, found.shape, found.tolist()


def _text(x):
    return f"{x.dtype} {x.tolist()}" if isinstance(x, (np.ndarray, np.generic)) else repr(x)


def _call(Ops, name, *operands):
    given = ", ".join(map(_text, operands))
    return case(f'call("{name}", {given})', lambda: _told(_filled(Ops).call(name, *operands)))


@registry.check("1 · the table")
def _(Ops):
    def found():
        made = Ops()
        made.define("add", np.add)
        made.define("div", np.divide, "f")
        return [(kernel is wanted, kinds) for (kernel, kinds), wanted in
                ((made.find("add"), np.add), (made.find("div"), np.divide))]  # fmt: skip

    yield case('define "add" and "div", and find them', found).gives([(True, "bif"), (True, "f")])

    def unknown():
        made = Ops()
        made.define("mul", np.multiply)
        made.define("add", np.add)
        return made.find("ad")

    yield case('find("ad")', unknown).raises(LookupError, "ad")
    yield case('find("ad"), where "mul" and "add" are known', unknown).raises(
        LookupError, "add, mul"
    )

    def twice():
        made = Ops()
        made.define("add", np.add)
        made.define("add", np.subtract)

    yield case('define("add", …) twice', twice).raises(ValueError, "add")

    def two():
        Ops().define("only here", np.add)
        return "only here" in Ops().table

    yield case("a second table, after the first one got an operation", two).gives(False)


_ROWS = (
    ("int32", "int64", "int64"),
    ("int64", "float32", "float32"),
    ("uint8", "int8", "int16"),
    ("float16", 2.0, "float16"),
    ("int64", 0.5, "float32"),
    ("bool", 3, "int64"),
    ("bool", True, "bool"),
    ("float32", "0-d float64", "float32"),
    ("int16", "0-d float64", 2.0, "float64"),
    ("0-d int32", 3, "int32"),
    ("0-d float16", 2.0, "float16"),
    (1, 2.0, "float32"),
)


def _operand(text):
    if not isinstance(text, str):
        return text
    zero = text.startswith("0-d ")
    return np.ones(() if zero else 2, text.removeprefix("0-d "))


@registry.check("2 · promotion")
def _(Ops):
    for *given, wanted in _ROWS:
        operands = [_operand(text) for text in given]
        told = f"the name of dtype_of of {' and '.join(map(str, given))}"
        run = case(told, partial(lambda operands: Ops.dtype_of(operands).name, operands))
        yield run.gives(wanted)
    scalar = [np.ones(2, np.float16), np.float64(2)]
    yield case(
        "the name of dtype_of of float16 and NumPy's float64(2)",
        lambda: Ops.dtype_of(scalar).name,
    ).gives("float16")
    yield case('dtype_of([1, "2"])', lambda: Ops.dtype_of([1, "2"])).raises(TypeError, "str")


@registry.check("3 · broadcasting")
def _(Ops):
    for shapes, wanted in (
        ([(2, 3), (2, 3)], (2, 3)),
        ([(3, 1), (4,)], (3, 4)),
        ([(2, 1), (1, 3), (4, 1, 1)], (4, 2, 3)),
        ([(), ()], ()),
        ([(2, 1), (0,)], (2, 0)),
        ([(5,)], (5,)),
        ([(3, 3), (3, 1, 3)], (3, 3, 3)),
    ):
        yield case(f"shape_of({shapes})", partial(lambda s: Ops.shape_of(s), shapes)).gives(wanted)
    for shapes in ([(2, 3), (4,)], [(4,), (2,)], [(0,), (3,)], [(1, 2), (2, 1), (3, 2)]):
        for said in ("do not broadcast", *map(str, shapes)):
            yield case(f"shape_of({shapes})", partial(lambda s: Ops.shape_of(s), shapes)).raises(
                ValueError, said
            )


@registry.check("4 · the call")
def _(Ops):
    ints, table = np.array([1, 2]), np.array([[1], [3]])
    halves = np.array([0.5, 1.5], np.float32)
    yield _call(Ops, "add", ints, halves).gives(("float32", (2,), [1.5, 3.5]))
    yield _call(Ops, "div", table, np.array([2, 4])).gives(
        ("float32", (2, 2), [[0.5, 0.25], [1.5, 0.75]])
    )
    yield _call(Ops, "mul", ints, 2).gives(("int64", (2,), [2, 4]))
    yield _call(Ops, "less", table, 2).gives(("bool", (2, 1), [[True], [False]]))
    yield _call(Ops, "neg", np.array([True, False])).gives(("int64", (2,), [-1, 0]))
    yield _call(Ops, "exp", 0).gives(("float32", (), 1.0))
    yield _call(Ops, "add", 1, 2).gives(("int64", (), 3))
    yield _call(Ops, "add", np.array([250], np.uint8), 10).gives(("uint8", (1,), [4]))
    yield _call(Ops, "where", table > 1, ints, 0.5).gives(
        ("float32", (2, 2), [[0.5, 0.5], [1.0, 2.0]])
    )
    yield _call(Ops, "both", halves, 1).raises(TypeError, "both")
    yield _call(Ops, "both", halves, 1).raises(TypeError, "float32")
    yield _call(Ops, "add", ints, np.ones((2, 3))).raises(ValueError, "do not broadcast")
    yield _call(Ops, "sub", ints, 1).raises(LookupError, "sub")
    yield case(
        "ops.mul(ints, 3), through the form of a method",
        lambda: _told(_filled(Ops).mul(ints, 3)),
    ).gives(("int64", (2,), [3, 6]))


@registry.check("5 · writing into an array")
def _(Ops):
    def into(name, out, *operands):
        def run():
            target = out.copy()
            found = _filled(Ops).call(name, *operands, out=target)
            return found is target, _told(target)

        given = ", ".join(map(_text, operands))
        return case(f'call("{name}", {given}, out={_text(out)})', run)

    def place(name, target, *others):
        def run():
            first = target.copy()
            found = _filled(Ops).inplace(name, first, *others)
            return found is first, _told(first)

        given = ", ".join(map(_text, (target, *others)))
        return case(f'inplace("{name}", {given})', run)

    ints, floats = np.array([1, 2]), np.array([1.0, 2.0], np.float32)
    yield into("add", np.zeros(2), ints, floats).gives((True, ("float64", (2,), [2.0, 4.0])))
    yield into("mul", np.zeros(2), ints, 3).gives((True, ("float64", (2,), [3.0, 6.0])))
    yield into("less", ints, ints, 2).gives((True, ("int64", (2,), [1, 0])))
    yield into("add", np.zeros(2, np.int64), ints, floats).raises(TypeError, "add")
    yield into("add", np.zeros((2, 2)), ints, 1).raises(ValueError, "add")
    yield into("add", np.zeros((1, 2)), ints, 1).raises(ValueError, "add")
    yield into("add", np.zeros((2, 1)), ints, 1).raises(ValueError, "add")
    yield place("mul", ints, 3).gives((True, ("int64", (2,), [3, 6])))
    yield place("add", floats, np.array(1.0)).gives((True, ("float32", (2,), [2.0, 3.0])))
    yield place("div", ints, 2).raises(TypeError, "div")
    yield place("add", ints, np.ones((2, 2), int)).raises(ValueError, "add")
    yield place("add", np.ones((1, 2)), np.ones((2, 2))).raises(ValueError, "add")

    def kept():
        target = ints.copy()
        for other in (0.5, np.ones((3, 1), int)):
            try:
                _filled(Ops).add_(target, other)
            except (TypeError, ValueError):
                continue
        return target.tolist()

    yield case("an int64 array [1, 2] after two in-place sums that do not fit", kept).gives([1, 2])

    def number():
        return _filled(Ops).inplace("add", 1, 2)

    yield case('inplace("add", 1, 2), into a number', number).raises(TypeError)

    def shifted():
        row = np.arange(5)
        _filled(Ops).add_(row[1:], row[:-1])
        return row.tolist()

    yield case("row = [0, 1, 2, 3, 4]; ops.add_(row[1:], row[:-1]); row", shifted).gives(
        [0, 1, 3, 5, 7]
    )


_NAMES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64")
_TORCH = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "less": lambda x, y: x < y,
}


def _random(draw):
    """An operation and two operands; most of their shapes fit."""
    whole = draw.shape(0, 3, (0, 1, 2, 3))

    def one():
        if draw.random() < 0.25:
            return draw.choice((True, 3, 2.0, 0.5))
        shape = [1 if draw.random() < 0.3 else size for size in whole]
        if shape and draw.random() < 0.1:
            shape[0] += 1
        shape = shape[draw.randint(0, len(shape)) :] if draw.random() < 0.4 else shape
        dtype = draw.choice(_NAMES)
        values = np.array([draw.randint(1, 3) for _ in range(int(np.prod(shape)))])
        return values.reshape(shape).astype(dtype)

    return draw.choice(sorted(_TORCH)), one(), one()


def _real(name, *operands):
    """What toytorch gives; an error as the kind that is asked for here."""
    made = [torch.tensor(x) if isinstance(x, np.ndarray) else x for x in operands]
    if not any(isinstance(x, np.ndarray) for x in operands):
        made[0] = torch.tensor(made[0])
    try:
        return _told(_TORCH[name](*made).numpy())
    except RuntimeError as error:
        raise ValueError(str(error)) from error


@registry.check("6 · any operands")
def _(Ops):
    def cases():
        for make in drawn(_random, 200):
            name, *operands = make()
            yield _call(Ops, name, *operands).as_by(partial(_real, name, *operands), 1e-3)

    yield every("200 random calls, as toytorch computes them", cases)

    def kept():
        a, b = np.arange(3), np.array([[0.5], [1.5]], np.float32)
        _filled(Ops).add(a, b)
        return _told(a), _told(b)

    yield case("both operands after ops.add(a, b)", kept).gives(
        (("int64", (3,), [0, 1, 2]), ("float32", (2, 1), [[0.5], [1.5]]))
    )


@registry.check("7 · one call of the kernel", hidden=True)
def _(Ops):
    def counted():
        made, calls = Ops(), []
        made.define("add", lambda a, b: calls.append((a.shape, b.shape)) or a + b)
        made.add(np.ones((3, 1)), np.ones(4))
        made.add(1, 2)
        return calls

    yield case("the shapes that a kernel receives in two calls", counted).gives(
        [((3, 4), (3, 4)), ((), ())]
    )

    def three():
        return _told(_filled(Ops).where(np.array([[True], [False]]), np.arange(3), -1))

    yield case("where, of three operands", three).gives(
        ("int64", (2, 3), [[0, 1, 2], [-1, -1, -1]])
    )

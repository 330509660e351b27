"""Operations whose derivatives are written by hand, and their check."""

import numpy as np

from course.cases import case
from course.records import Exercise
from mytorch.tensor import Tensor

function = Exercise(
    "extending.function",
    "A Function of your own",
    chapter=6,
    minutes=50,
    prompt="""
    Your package gets its own way of adding operations. A subclass writes `forward` and `backward` on
    NumPy arrays, and `apply` records the call in the graph of your `Tensor` (`mytorch/tensor.py`):

    ```python
    class Square(Function):
        def forward(self, x):
            self.x = x  # kept for backward
            return x * x

        def backward(self, g):
            return 2 * self.x * g

    Square.apply(tensor)
    ```

    1. **Apply.** `apply(*inputs, **options)` makes an instance for this one call, so that what it
       keeps belongs to this call alone. It hands `forward` the arrays of tensors and everything else
       as it is, and makes the result with `Tensor.made`.
    2. **Gradients.** `backward(g)` returns one gradient for each *input*, as a tuple, or a single one
       for a single input. `None` means a gradient of zeros. `pull` passes on those of the tensors
       only. Too many or too few gradients, or one of the wrong shape, is a `RuntimeError` that names
       the class.
    3. **Check.** `check(*inputs)` compares `backward` with central differences. It weights the
       results by fixed random numbers and sums them. Then it moves each element of each input that
       requires a gradient by ±eps.

       It returns `True`, or raises an `AssertionError` that names the class, the input and the
       element: `Square, input 0, (1,): …`. Inputs are counted from 0, including those without a
       gradient. NaN never agrees.

       Afterwards `data` and `grad` of the inputs are what they were before, also after an error.

    A trace of `Square.apply(Tensor(3.0, requires_grad=True)).backward()`:

    | step | what happens |
    | --- | --- |
    | `apply` | `call = Square()`, `call.forward(array(3.0))` keeps x and gives 9 |
    | `Tensor.made` | a tensor with data 9, parents (x,), and `pull` |
    | `backward` | calls `pull(1.0)`, which calls `call.backward(1.0)` and gets 6 |
    | a leaf | `x.grad = 6` |
    """,
    without=("torch.autograd.Function", "torch.autograd.gradcheck"),
    hints=(
        """
        `apply` connects two kinds of objects. Above it are tensors, below it arrays: it unpacks
        `data`, calls `forward`, and packs the result with `Tensor.made`. Its `pull` does the same
        for backward, and has to sort: `backward` answers for *inputs*, and `made` asks for
        *parents*, which are only the tensors among them.
        """,
        """
        `Scaled.apply(2.0, x, y)` computes 2 · x · y, with tensors x = 3 and y = 4:

        | step | values |
        | --- | --- |
        | `arrays` | 2.0, array(3.0), array(4.0) |
        | `forward(2.0, 3.0, 4.0)` | 24 |
        | `parents` | x, y |
        | `pull(1.0)` calls `backward(1.0)` | (None, 8, 6): three, as many as inputs |
        | pairs of input and gradient | (2.0, None), (x, 8), (y, 6) |
        | those of tensors, in order | [8, 6], as many as parents |

        `Scaled.check(2.0, x, y)` with weight w = 0.13 for the one result and eps = 1e-6, for input 1, which is x:

        | step | value |
        | --- | --- |
        | w · result with x.data = 3.000001 | 0.13 · 24.000008 |
        | w · result with x.data = 2.999999 | 0.13 · 23.999992 |
        | their difference, divided by 2 eps | 0.13 · 8 = 1.04 |
        | `x.grad` after `backward(w)` | 0.13 · 8 = 1.04: they agree |
        """,
        """
        ```python
        class Function:
            def forward(self, *arrays):
                raise NotImplementedError(f"{type(self).__name__} has no forward")

            def backward(self, g):
                raise NotImplementedError(f"{type(self).__name__} has no backward")

            @classmethod
            def apply(cls, *inputs, **options):
                call = ...  # one for this call alone
                arrays = [... for x in inputs]
                result = call.forward(*arrays, **options)
                parents = [x for x in inputs if isinstance(x, Tensor)]

                def pull(g):
                    parts = call.backward(g)
                    parts = parts if isinstance(parts, tuple) else (parts,)
                    if ...:
                        raise RuntimeError(f"{cls.__name__}.backward gave {len(parts)} gradients")
                    return [...]

                return Tensor.made(result, parents, pull)

            @classmethod
            def _fitting(cls, part, x):
                if part is None:
                    return ...
                if ...:
                    raise RuntimeError(f"{cls.__name__}.backward gave the shape {np.shape(part)}")
                return part

            @classmethod
            def check(cls, *inputs, eps=1e-6, tolerance=1e-4, **options):
                shape = cls.apply(*inputs, **options).data.shape
                weights = np.random.default_rng(0).normal(size=shape)

                def value():
                    ...  # the weighted sum of the results, a float

                wanting = ...  # pairs (n, x): input n is a tensor that wants a gradient
                kept = [x.grad for _, x in wanting]
                try:
                    ...
                    cls.apply(*inputs, **options).backward(weights)
                    found = ...
                finally:
                    ...  # give back what was kept
                for (number, x), g in zip(wanting, found):
                    for index in np.ndindex(x.data.shape):
                        before = x.data[index]
                        ...  # value() a little above and a little below
                        if ...:
                            raise AssertionError(f"{cls.__name__}, input {number}, {index}: {g[index]:.6g}")
                return True
        ```
        """,
    ),
)


@function.reference(stub={
    "apply": "stages 1 and 2, your code here: about 18 lines",
    "_fitting": "stage 2, your code here: about 8 lines",
    "check": "stage 3, your code here: about 30 lines",
})
class Function:
    """An operation whose derivative is written by hand."""

    def forward(self, *arrays):
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(self, g):
        raise NotImplementedError(f"{type(self).__name__} has no backward")

    @classmethod
    def apply(cls, *inputs, **options):
        """The result for tensors, arrays and numbers; recorded."""
        call = cls()
        arrays = [x.data if isinstance(x, Tensor) else x for x in inputs]
        result = call.forward(*arrays, **options)
        parents = [x for x in inputs if isinstance(x, Tensor)]

        def pull(g):
            parts = call.backward(g)
            parts = parts if isinstance(parts, tuple) else (parts,)
            if len(parts) != len(inputs):
                raise RuntimeError(
                    f"{cls.__name__}.backward gave {len(parts)} gradients "
                    f"for {len(inputs)} inputs"
                )
            return [
                cls._fitting(part, x)
                for x, part in zip(inputs, parts)
                if isinstance(x, Tensor)
            ]

        return Tensor.made(result, parents, pull)

    @classmethod
    def _fitting(cls, part, x):
        if part is None:
            return np.zeros_like(x.data)
        if np.shape(part) != x.data.shape:
            raise RuntimeError(
                f"{cls.__name__}.backward gave a gradient of shape "
                f"{np.shape(part)} for an input of shape {x.data.shape}"
            )
        return part

    @classmethod
    def check(cls, *inputs, eps=1e-6, tolerance=1e-4, **options):
        """Compare backward with central differences of forward."""
        weights = np.random.default_rng(0).normal(
            size=cls.apply(*inputs, **options).data.shape
        )

        def value():
            result = cls.apply(*inputs, **options).data
            return float((result * weights).sum())

        wanting = [
            (n, x)
            for n, x in enumerate(inputs)
            if isinstance(x, Tensor) and x.requires_grad
        ]
        kept = [x.grad for _, x in wanting]
        try:
            for _, x in wanting:
                x.grad = None
            cls.apply(*inputs, **options).backward(weights)
            found = [x.grad for _, x in wanting]
        finally:
            for (_, x), old in zip(wanting, kept):
                x.grad = old
        for (number, x), g in zip(wanting, found):
            for index in np.ndindex(x.data.shape):
                before = x.data[index]
                x.data[index] = before + eps
                above = value()
                x.data[index] = before - eps
                below = value()
                x.data[index] = before
                wanted = (above - below) / (2 * eps)
                off = abs(g[index] - wanted)
                if not off <= tolerance * (1 + abs(wanted)):
                    raise AssertionError(
                        f"{cls.__name__}, input {number}, {index}: "
                        f"{g[index]:.6g}, and differences {wanted:.6g}"
                    )
        return True


function.changed(
    "one instance for all calls",
    """
    The same object served every call, so the second call overwrote what the first had kept for its
    `backward`. Make a new instance in each `apply`.
    """,
    ("call = cls()", ("call = cls.__dict__.get('only') or cls()\n        cls.only = call")),
)

function.changed(
    "hands over tensors",
    """
    `forward` got the tensors themselves. It then records its inner steps too, and the derivative is
    taken twice. Hand it `x.data`.
    """,
    ("arrays = [x.data if isinstance(x, Tensor) else x for x in inputs]", "arrays = list(inputs)"),
    (
        "return Tensor.made(result, parents, pull)",
        "return Tensor.made(Tensor.of(result).data, parents, pull)",
    ),
)

function.changed(
    "records nothing",
    """
    The result was a tensor without parents, so `backward` ends there and the inputs get no
    gradient.
    """,
    ("return Tensor.made(result, parents, pull)", "return Tensor(result)"),
)

function.changed(
    "gradients and inputs are out of step",
    """
    `backward` returns a gradient for every *input*, and the parents are the *tensors* among them.
    Where a number stands before a tensor, the first gradient belongs to the number. Pair gradients
    with inputs, then keep those of tensors.
    """,
    (
        (
            "            return [\n"
            "                cls._fitting(part, x)\n"
            "                for x, part in zip(inputs, parts)\n"
            "                if isinstance(x, Tensor)\n"
            "            ]"
        ),
        "            return [cls._fitting(part, x) for x, part in zip(parents, parts)]",
    ),
)

function.changed(
    "a wrong number of gradients goes through",
    """
    A `backward` that forgets an input was accepted without an error, because `zip` stops at the
    shorter list. Count the gradients first.
    """,
    ("if len(parts) != len(inputs):", "if False:"),
)

function.changed(
    "a wrong shape goes through",
    """
    A gradient has exactly the shape of its input. Without this check the error comes much later. If
    the wrong shape broadcasts, there is no error at all.
    """,
    ("if np.shape(part) != x.data.shape:", "if False:"),
)

function.changed(
    "None is passed on",
    """
    `None` says that an input has no influence. The engine adds arrays, so pass on zeros of the
    input's shape.
    """,
    ("return np.zeros_like(x.data)", "return None"),
)

function.changed(
    "NaN counts as agreement",
    """
    Every comparison with NaN is false, so `difference > tolerance` never fires for it. Ask the
    other way round: `not difference <= tolerance`.
    """,
    ("if not off <= tolerance * (1 + abs(wanted)):", "if off > tolerance * (1 + abs(wanted)):"),
)

function.changed(
    "one-sided differences",
    """
    (f(x + eps) − f(x)) / eps is off by about eps · f''/2, which a tight tolerance refuses. Central
    differences are off by eps² only.
    """,
    ("x.data[index] = before - eps", "x.data[index] = before"),
    ("(2 * eps)", "eps"),
)

function.changed(
    "weights every result by 1",
    """
    With all weights 1 the check sees the sum of the Jacobian's rows only. A `backward` that mixes
    results up, or permutes them, then agrees. Weight each result by a number of its own.
    """,
    (
        (
            "        weights = np.random.default_rng(0).normal(\n"
            "            size=cls.apply(*inputs, **options).data.shape\n"
            "        )"
        ),
        "        weights = np.ones(cls.apply(*inputs, **options).data.shape)",
    ),
)

function.changed(
    "checks the first input only",
    """
    Each input that requires a gradient is checked, not the first alone.
    """,
    ("in zip(wanting, found):", "in zip(wanting[:1], found):"),
)

function.changed(
    "leaves its gradients behind",
    """
    The check called `backward`, and its gradient stayed in `grad` of the inputs. The user's own
    gradient is lost or changed. Save it first and put it back afterwards.
    """,
    ("                x.grad = old\n", "                pass\n"),
)

function.changed(
    "does not put the data back",
    """
    After moving an element by ±eps it has to get its old value back.
    """,
    (("                x.data[index] = before\n                wanted"), "                wanted"),
)


function.changed(
    "only tensors that want a gradient are parents",
    """
    A tensor without `requires_grad` was left out of the parents, and `pull` has a gradient for it all the same.
    So each gradient goes to the parent before it. Parents and gradients have to be lists of the same tensors:
    `Tensor.made` and the walk leave out by themselves who wants none.
    """,
    (
        "parents = [x for x in inputs if isinstance(x, Tensor)]",
        "parents = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]",
    ),
)

function.changed(
    "compares the number of elements only",
    """
    An array of shape (3, 2) has as many elements as one of (2, 3), but they belong to other places.
    Compare shapes.
    """,
    ("if np.shape(part) != x.data.shape:", "if np.size(part) != x.data.size:"),
)

function.changed(
    "a gradient too large is summed",
    """
    A gradient with more dimensions than its input was summed down to fit. For a broadcast inside `forward`
    that may be right, but it is for `backward` to say so: anything else of the wrong shape is a mistake that
    is hidden here.
    """,
    (
        "        if np.shape(part) != x.data.shape:",
        "        part = np.asarray(part)\n"
        "        while part.ndim > x.data.ndim:\n"
        "            part = part.sum(0)\n"
        "        if np.shape(part) != x.data.shape:",
    ),
)

function.changed(
    "seeds everybody's random numbers",
    """
    `np.random.seed(0)` sets the generator that the whole program shares: after a check, everybody's random
    numbers begin anew. `np.random.default_rng(0)` is one of your own.
    """,
    ("np.random.default_rng(0).normal(", "(np.random.seed(0) or np.random).normal("),
)

function.changed(
    "puts gradients back only if all goes well",
    """
    After an error, the inputs kept the gradient of the check. Put back what you have changed under
    `finally`. That code runs after an error as well.
    """,
    (
        "        finally:\n            for (_, x), old in zip(wanting, kept):\n                x.grad = old\n",
        "        finally:\n            pass\n",
    ),
    (
        "        return True",
        "        for (_, x), old in zip(wanting, kept):\n            x.grad = old\n        return True",
    ),
)

function.changed(
    "counts only inputs that want a gradient",
    """
    The input was named by its place among those that want a gradient. The reader of the message
    counts the arguments of `forward`. So number all inputs first, and then leave some out.
    """,
    (
        "for (number, x), g in zip(wanting, found):",
        "for number, ((_, x), g) in enumerate(zip(wanting, found)):",
    ),
)

function.changed(
    "makes an array of everything",
    """
    Only tensors are unpacked. A number, a name or `None` reaches `forward` as it was handed in: an axis has to
    stay an `int`.
    """,
    (
        "x.data if isinstance(x, Tensor) else x for",
        "x.data if isinstance(x, Tensor) else np.asarray(x) for",
    ),
)


def _leaf(value):
    return Tensor(value, requires_grad=True)


def _square(Function):
    class Square(Function):
        def forward(self, x):
            self.x = x
            return x * x

        def backward(self, g):
            return 2 * self.x * g

    return Square


def _scaled(Function):
    class Scaled(Function):
        """factor · x · y, where factor is a number."""

        def forward(self, factor, x, y, plus=0.0):
            self.kept = factor, x, y
            return factor * x * y + plus

        def backward(self, g):
            factor, x, y = self.kept
            return None, factor * y * g, factor * x * g

    return Scaled


def _wrong(Function, name, rule, forward=lambda x: x * x):
    """A Function whose backward is `rule(x, g)`."""
    return type(
        name,
        (Function,),
        {
            "forward": lambda self, x: (setattr(self, "x", x), forward(x))[1],
            "backward": lambda self, g: rule(self.x, g),
        },
    )


@function.check("1 · apply")
def _(Function):
    def result():
        y = _square(Function).apply(_leaf([1.0, 3.0]))
        return type(y) is Tensor, y.data.tolist(), y.requires_grad

    yield case("Square.apply(Tensor([1, 3]))", result).gives((True, [1.0, 9.0], True))

    def inside():
        seen = []
        kind = _wrong(
            Function, "Look", lambda x, g: g, lambda x: (seen.append(type(x).__name__), x)[1]
        )
        kind.apply(_leaf([1.0]))
        return seen

    yield case("what forward gets for a tensor", inside).gives(["ndarray"])

    def handed():
        seen = []

        class Look(Function):
            def forward(self, x, *rest):
                seen.extend(type(one).__name__ for one in (x, *rest))
                return x

        Look.apply(Tensor([1.0]), 2, None, "same", (1, 2))
        return seen

    yield case("what forward gets for a tensor, 2, None, 'same' and (1, 2)", handed).gives(
        ["ndarray", "int", "NoneType", "str", "tuple"]
    )

    def options():
        return _scaled(Function).apply(2.0, _leaf(3.0), _leaf(4.0), plus=1.0).data.tolist()

    yield case("Scaled.apply(2.0, x=3, y=4, plus=1.0)", options).gives(25.0)

    def plain():
        y = _square(Function).apply(Tensor([1.0, 2.0]))
        return y.requires_grad, len(y.parents)

    yield case("Square.apply where nobody wants a gradient", plain).gives((False, 0))


@function.check("2 · gradients")
def _(Function):
    def single():
        x = _leaf([1.0, 3.0])
        _square(Function).apply(x).backward(np.array([1.0, 10.0]))
        return x.grad.tolist()

    yield case("Square.apply(x).backward([1, 10]), x = [1, 3]", single).gives([2.0, 60.0])

    def twice():
        x, z = _leaf(3.0), _leaf(5.0)
        Square = _square(Function)
        (Square.apply(x) + Square.apply(z)).backward()
        return float(x.grad), float(z.grad)

    yield case("Square.apply(x) + Square.apply(z), x = 3, z = 5", twice).gives((6.0, 10.0))

    def among():
        x, y = _leaf(3.0), _leaf(4.0)
        _scaled(Function).apply(2.0, x, y).backward()
        return float(x.grad), float(y.grad)

    yield case("Scaled.apply(2.0, x, y), x = 3, y = 4", among).gives((8.0, 6.0))

    def partly():
        y = _leaf(4.0)
        _scaled(Function).apply(2.0, 3.0, y).backward()
        return float(y.grad)

    yield case("Scaled.apply(2.0, 3.0, y)", partly).gives(6.0)

    def data():
        y = _leaf(4.0)
        _scaled(Function).apply(2.0, Tensor(3.0), y).backward()
        return float(y.grad)

    yield case("Scaled.apply(2.0, x, y), where x wants no gradient", data).gives(6.0)

    def reduced():
        x = _leaf([1.0, 2.0])
        _wrong(Function, "Still", lambda x, g: None, lambda x: x.sum()).apply(x).backward()
        return x.grad.tolist()

    yield case("a forward that sums, and a backward that returns None", reduced).gives([0.0, 0.0])

    def nothing():
        x = _leaf([1.0, 2.0])
        (_wrong(Function, "Still", lambda x, g: None).apply(x).sum() + x.sum()).backward()
        return x.grad.tolist()

    yield case("a backward that returns None", nothing).gives([1.0, 1.0])

    def count():
        _wrong(Function, "Twins", lambda x, g: (g, g)).apply(_leaf(2.0)).backward()

    yield case("two gradients for one input, in a class Twins", count).raises(RuntimeError, "Twins")

    def shape():
        _wrong(Function, "Flat", lambda x, g: g.sum()).apply(_leaf([1.0, 2.0])).sum().backward()

    yield case("a number for an input of shape (2,), in a class Flat", shape).raises(
        RuntimeError, "Flat"
    )

    def misfit(rule):
        def run():
            x = _leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
            _wrong(Function, "Turned", rule).apply(x).sum().backward()

        return run

    text = "a gradient of shape {} for an input of shape (2, 3), in a class Turned"
    yield case(text.format("(3, 2)"), misfit(lambda x, g: g.T)).raises(RuntimeError, "Turned")
    yield case(text.format("(4, 2, 3)"), misfit(lambda x, g: np.stack([g] * 4))).raises(
        RuntimeError, "Turned"
    )


@function.check("3 · the check")
def _(Function):
    def right():
        return _square(Function).check(_leaf([[1.0, -2.0], [0.5, 3.0]]))

    yield case("Square.check(x)", right).gives(True)
    yield case(
        "Scaled.check(2.0, x, y)",
        lambda: _scaled(Function).check(2.0, _leaf([1.0, 2.0]), _leaf([3.0, -1.0])),
    ).gives(True)

    def cubed():
        kind = _wrong(Function, "Cube", lambda x, g: 3 * x * x * g, lambda x: x**3)
        return kind.check(_leaf([30.0, 200.0]), tolerance=1e-8, eps=1e-3)

    yield case("a right derivative of x³ at 30 and 200, to 8 digits", cubed).gives(True)

    def refused(name, rule, forward=lambda x: x * x):
        return case(
            f"a class {name} with a wrong derivative",
            lambda: _wrong(Function, name, rule, forward).check(_leaf([1.0, 2.0, 3.0])),
        ).raises(AssertionError, name)

    yield refused("Half", lambda x, g: x * g)
    yield refused("Reversed", lambda x, g: 2 * x * g[::-1], lambda x: x * x)
    yield refused("Nan", lambda x, g: 2 * x * g + np.array([0.0, np.nan, 0.0]))

    def second():
        class Product(Function):
            def forward(self, x, y):
                self.kept = x, y
                return x * y

            def backward(self, g):
                _, y = self.kept
                return y * g, y * g

        Product.check(_leaf([1.0, 2.0]), _leaf([3.0, 4.0]))

    yield case("a class Product, whose second gradient is wrong", second).raises(
        AssertionError, "Product"
    )

    def message():
        class Skewed(Function):
            def forward(self, factor, x, y):
                self.kept = factor, x, y
                return factor * x * y

            def backward(self, g):
                factor, x, y = self.kept
                return None, factor * y * g, factor * x * g * np.array([1.0, 1.0, 2.0])

        x, y = _leaf([1.0, 2.0, 3.0]), _leaf([3.0, 4.0, 5.0])
        x.grad, y.grad = np.array([7.0, 8.0, 9.0]), None
        try:
            Skewed.check(2.0, x, y)
        except AssertionError as error:
            said = str(error)
            left = [x.data.tolist(), y.data.tolist(), x.grad.tolist(), y.grad]
            return ["Skewed" in said, "input 2" in said, "(2,)" in said, *left]

    yield case(
        "a class Skewed, whose gradient is wrong for element (2,) of input 2: are the class, the input "
        "and the element named, and data and grad of both inputs afterwards",
        message,
    ).gives([True, True, True, [1.0, 2.0, 3.0], [3.0, 4.0, 5.0], [7.0, 8.0, 9.0], None])

    def untouched():
        x = _leaf([1.0, 2.0])
        x.grad = np.array([7.0, 8.0])
        _square(Function).check(x)
        return x.data.tolist(), x.grad.tolist()

    yield case("data and grad of x after Square.check(x)", untouched).gives(
        ([1.0, 2.0], [7.0, 8.0])
    )

    def dice():
        before = np.random.get_state()
        try:
            np.random.seed(5)
            _square(Function).check(_leaf([1.0, 2.0]))
            return round(float(np.random.random()), 4)
        finally:
            np.random.set_state(before)

    yield case("np.random.seed(5), Square.check(x), and then np.random.random()", dice).gives(
        0.222, tolerance=1e-3
    )

"""In-place writes with versions, for the learner's own Tensor."""

from contextlib import contextmanager, suppress
from functools import partial, partialmethod

import numpy as np

import toytorch as torch
from course.cases import case
from course.properties import drawn, every
from course.records import Exercise
from mytorch.tensor import Tensor

versions = Exercise(
    "inplace.versions",
    "In-place writes that are noticed",
    chapter=5,
    minutes=60,
    prompt="""
    Your `Tensor` of chapter 04 has no in-place operations. A class `Versioned` adds them, with
    everything from this chapter. It becomes `inplace.py` in your package `mytorch`.

    In a graph of `Tensor`s, each result *is* a node, so its history can never be exchanged. A
    `Versioned` therefore **has** a node. An in-place write gives it a new one, and whoever used the
    old one keeps it.

    | attribute | what it holds |
    | --- | --- |
    | `node` | a `Tensor`: the data, and its history |
    | `writes` | a list of one number, the count of writes; all tensors of one memory share *this list* |
    | `viewed` | whether there are views of its memory, or it is one |

    1. **Sharing.** `detach()` returns a tensor with the same memory and count, and without history.
       `_over(node)` wraps a result: where its memory is that of `self`
       (`np.may_share_memory`), it shares the count, and both are `viewed`. `part(start, stop)` is a
       view of some rows, and its derivative puts the gradient into zeros.
    2. **Operations.** `_run(name, *given)` calls the method of that name on the *nodes*, and wraps the
       result with `_over`. Outside `recording`, the result has no history.
    3. **Saved tensors.** The derivative of some operations reads tensors, as `SAVES` says. `_run` notes
       their versions, and replaces the result's `pull` by a function that compares them first. If
       one has changed, it raises a `RuntimeError` that names the operation and both versions: `exp: a
       saved tensor is at version 1; expected version 0`. Of a product, a factor is saved only if the
       *other* one requires a gradient. Keep no copies of values.
    4. **Writing.** `_write(name, *given)` computes out of place, on a copy of `self` with the old node as
       its parent. Then it writes the result into the memory and counts the write. If the operation was
       recorded, `self` gets a new node, over the same memory, with the history of the result. Three
       things are a `RuntimeError`, before anything is written: a recorded write to a leaf that requires
       a gradient (say *leaf*), a recorded write to memory with views (say *view*), and a result of
       another shape (say *shape*).
    5. **`no_grad()`** is a context manager that switches `recording` off, and afterwards back to what it
       was. Writes are then allowed, counted, and not recorded.

    A trace:

    | step | memory of y | version of y | node of y |
    | --- | --- | --- | --- |
    | `y = x.exp()`, x a leaf | [e] | 0 | exp of x; its `pull` noted version 0 of y |
    | `y.mul_(10)`: a copy c of y, and c · 10 | [e] | 0 | as before |
    | … written and counted | [10 e] | 1 | the product; its parent is c, whose parent is the exp |
    | `y.backward()` | | 1 | the product passes 10 to c and on; `pull` of exp finds 1, noted 0: error |

    PyTorch does the second kind of refused writes with `CopySlices`, the optional exercise of this chapter.
    """,
    without=("torch.no_grad", "torch.set_grad_enabled", "torch.tensor"),
    hints=(
        """
        Every method asks the same two questions: which memory, and which history? A view has the same memory and a
        new history. `detach` has the same memory and none. A write changes the memory, raises the one
        count of all who share it, and gives only the tensor that was written to a new history. Nodes that were there
        before never change.
        """,
        """
        `x` is a leaf with the value 2, `c` a tensor with the value 5 that requires no gradient.

        | line | nodes | counts |
        | --- | --- | --- |
        | `y = x * c` | y: node n1, parents (x, c); x requires a gradient, so c is saved at version 0 | y 0, c 0 |
        | `z = y * y` | z: node n2, parents (n1, n1); y is saved at version 0, twice | y 0 |
        | `y.add_(c)` | a copy k with parent n1; the sum has parents (k, c); so has y's new node n3 | y 1 |
        | `z.backward()` | n2 still has the parents n1, n1; its `pull` finds y at version 1: an error | |
        | `y.backward()` | n3 passes 1 to k, k to n1, n1 passes 5 to x: `x.grad` is 5 | |

        If `add_` had changed the parents of n1, z would now depend on the sum.
        """,
        """
        ```python
        class Versioned:
            ...  # the head of the class, as it is

            def __init__(self, data, requires_grad=False):
                self.node = Tensor(data, requires_grad)
                self.writes = [0]
                self.viewed = False

            def detach(self):
                made = Versioned(self.data)
                ...
                return made

            def _over(self, node):
                made = Versioned(node.data)
                if Versioned.recording:
                    ...
                if np.may_share_memory(made.data, self.data):
                    ...
                return made

            def part(self, start, stop):
                shape = self.data.shape

                def pull(g):
                    whole = np.zeros(shape)
                    ...
                    return (whole,)

                rows = self.data[start:stop]
                return self._over(Tensor.made(rows, (self.node,), pull))

            def _run(self, name, *given):
                nodes = [x.node if isinstance(x, Versioned) else x for x in given]
                made = self._over(getattr(self.node, name)(*nodes))
                pull = made.node.pull
                if pull is None:
                    return made
                saved = self._saved(name, given, made)
                seen = [... for x in saved]

                def checked(g):
                    for writes, version in seen:
                        if ...:
                            ...  # an error
                    return pull(g)

                made.node.pull = checked
                return made

            def _saved(self, name, given, made):
                what = Versioned.SAVES.get(name)
                if what == "result":
                    return ...
                if what == "input":
                    return ...
                if what == "factors" and isinstance(given[0], Versioned):
                    pairs = (self, given[0]), (given[0], self)
                    return ...
                return []

            def _write(self, name, *given):
                tensors = [x for x in (self, *given) if isinstance(x, Versioned)]
                wants = any(x.requires_grad for x in tensors)
                recorded = ...
                if ...:
                    raise RuntimeError("a leaf that requires grad is written to")
                if ...:
                    raise RuntimeError("a recorded write to memory with views")
                copy = Versioned(self.data.copy())
                if recorded:
                    old = (self.node,)
                    copy.node = Tensor.made(...)
                result = getattr(copy, name)(*given)
                if ...:
                    raise RuntimeError(f"{result.data.shape} is another shape")
                self.data[...] = result.data
                ...
                if recorded:
                    new = result.node
                    self.node = ...
                return self

            @staticmethod
            @contextmanager
            def no_grad():
                before = ...
                Versioned.recording = False
                try:
                    yield
                finally:
                    ...

            ...  # what follows in the stub, as it is
        ```
        """,
    ),
)


@versions.stub
class Versioned:
    """A tensor with in-place operations; its history is a node."""

    __array_ufunc__ = None  # array * tensor is a matter of our operators
    recording = True
    SAVES = {  # what the derivative of an operation reads
        "__mul__": "factors",
        "__matmul__": "factors",
        "__pow__": "input",
        "log": "input",
        "exp": "result",
        "tanh": "result",
    }

    def __init__(self, data, requires_grad=False):
        self.node = Tensor(data, requires_grad)
        self.writes = [0]
        self.viewed = False

    @property
    def data(self):
        return self.node.data

    @property
    def grad(self):
        return self.node.grad

    @property
    def requires_grad(self):
        return self.node.requires_grad

    @property
    def _version(self):
        return self.writes[0]

    def detach(self):
        """The same memory and count, without history."""
        # stage 1, your code here: about 3 lines
        raise NotImplementedError

    def _over(self, node):
        """A tensor for a node that was computed from this one."""
        # stage 1, your code here: about 6 lines
        raise NotImplementedError

    def part(self, start, stop):
        """A view of the rows from start to stop."""
        # stage 1, your code here: about 7 lines
        raise NotImplementedError

    def _run(self, name, *given):
        """An operation of Tensor, out of place."""
        # stage 2, your code here: about 3 lines
        # stage 3: and about 20, with a method that finds what is saved
        raise NotImplementedError

    def _write(self, name, *given):
        """The same operation, in place."""
        # stage 4, your code here: about 20 lines
        raise NotImplementedError

    @staticmethod
    def no_grad():
        """Inside the with block nothing is recorded."""
        # stage 5, your code here: about 6 lines, as a context manager
        raise NotImplementedError

    def backward(self, gradient=None):
        self.node.backward(gradient)

    # -- these follow -----------------------------------------------------

    __add__ = __radd__ = partialmethod(_run, "__add__")
    __mul__ = __rmul__ = partialmethod(_run, "__mul__")
    __matmul__ = partialmethod(_run, "__matmul__")
    __pow__ = partialmethod(_run, "__pow__")
    sum = partialmethod(_run, "sum")
    exp = partialmethod(_run, "exp")
    log = partialmethod(_run, "log")
    tanh = partialmethod(_run, "tanh")
    reshape = partialmethod(_run, "reshape")
    transpose = partialmethod(_run, "transpose")
    add_ = __iadd__ = partialmethod(_write, "__add__")
    sub_ = __isub__ = partialmethod(_write, "__sub__")
    mul_ = __imul__ = partialmethod(_write, "__mul__")

    def __sub__(self, other):
        return self + other * -1

    def __neg__(self):
        return self * -1


@versions.reference
class Versioned:
    """A tensor with in-place operations; its history is a node."""

    __array_ufunc__ = None  # array * tensor is a matter of our operators
    recording = True
    SAVES = {  # what the derivative of an operation reads
        "__mul__": "factors",
        "__matmul__": "factors",
        "__pow__": "input",
        "log": "input",
        "exp": "result",
        "tanh": "result",
    }

    def __init__(self, data, requires_grad=False):
        self.node = Tensor(data, requires_grad)
        self.writes = [0]
        self.viewed = False

    @property
    def data(self):
        return self.node.data

    @property
    def grad(self):
        return self.node.grad

    @property
    def requires_grad(self):
        return self.node.requires_grad

    @property
    def _version(self):
        return self.writes[0]

    def detach(self):
        """The same memory and count, without history."""
        made = Versioned(self.data)
        made.writes = self.writes
        return made

    def _over(self, node):
        """A tensor for a node that was computed from this one."""
        made = Versioned(node.data)
        if Versioned.recording:
            made.node = node
        if np.may_share_memory(made.data, self.data):
            made.writes = self.writes
            made.viewed = self.viewed = True
        return made

    def part(self, start, stop):
        """A view of the rows from start to stop."""
        shape = self.data.shape

        def pull(g):
            whole = np.zeros(shape)
            whole[start:stop] = g
            return (whole,)

        rows = self.data[start:stop]
        return self._over(Tensor.made(rows, (self.node,), pull))

    def _run(self, name, *given):
        """An operation of Tensor, out of place."""
        nodes = [x.node if isinstance(x, Versioned) else x for x in given]
        made = self._over(getattr(self.node, name)(*nodes))
        pull = made.node.pull
        if pull is None:
            return made
        saved = self._saved(name, given, made)
        seen = [(x.writes, x.writes[0]) for x in saved]

        def checked(g):
            for writes, version in seen:
                if writes[0] != version:
                    now = f"a saved tensor is at version {writes[0]}"
                    raise RuntimeError(
                        f"{name}: {now}; expected version {version}"
                    )
            return pull(g)

        made.node.pull = checked
        return made

    def _saved(self, name, given, made):
        """The tensors that the derivative of an operation reads."""
        what = Versioned.SAVES.get(name)
        if what == "result":
            return [made]
        if what == "input":
            return [self]
        if what == "factors" and isinstance(given[0], Versioned):
            pairs = (self, given[0]), (given[0], self)
            return [x for x, other in pairs if other.requires_grad]
        return []

    def _write(self, name, *given):
        """The same operation, in place."""
        tensors = [x for x in (self, *given) if isinstance(x, Versioned)]
        wants = any(x.requires_grad for x in tensors)
        recorded = Versioned.recording and wants
        if recorded and self.requires_grad and self.node.pull is None:
            raise RuntimeError("a leaf that requires grad is written to")
        if recorded and self.viewed:
            raise RuntimeError("a recorded write to memory with views")
        copy = Versioned(self.data.copy())
        if recorded:
            old = (self.node,)
            copy.node = Tensor.made(copy.data, old, lambda g: (g,))
        result = getattr(copy, name)(*given)
        if result.data.shape != self.data.shape:
            raise RuntimeError(f"{result.data.shape} is another shape")
        self.data[...] = result.data
        self.writes[0] += 1
        if recorded:
            new = result.node
            self.node = Tensor(self.data, True, new.parents, new.pull)
        return self

    @staticmethod
    @contextmanager
    def no_grad():
        """Inside the with block nothing is recorded."""
        before = Versioned.recording
        Versioned.recording = False
        try:
            yield
        finally:
            Versioned.recording = before

    def backward(self, gradient=None):
        self.node.backward(gradient)

    # -- these follow -----------------------------------------------------

    __add__ = __radd__ = partialmethod(_run, "__add__")
    __mul__ = __rmul__ = partialmethod(_run, "__mul__")
    __matmul__ = partialmethod(_run, "__matmul__")
    __pow__ = partialmethod(_run, "__pow__")
    sum = partialmethod(_run, "sum")
    exp = partialmethod(_run, "exp")
    log = partialmethod(_run, "log")
    tanh = partialmethod(_run, "tanh")
    reshape = partialmethod(_run, "reshape")
    transpose = partialmethod(_run, "transpose")
    add_ = __iadd__ = partialmethod(_write, "__add__")
    sub_ = __isub__ = partialmethod(_write, "__sub__")
    mul_ = __imul__ = partialmethod(_write, "__mul__")

    def __sub__(self, other):
        return self + other * -1

    def __neg__(self):
        return self * -1


versions.changed(
    "a view counts for itself",
    """
    A view got a count of its own, as every new tensor does. A write through it changes the base too, and a node that
    saved the base does not notice. The count belongs to the memory: share the *list*.
    """,
    (
        "            made.writes = self.writes\n            made.viewed",
        "            made.viewed",
    ),
)

versions.changed(
    "detach counts for itself",
    """
    The result of `detach()` shares the memory, and got a count of its own. That is what `.data` does in PyTorch: a
    write through it makes gradients wrong without an error.
    """,
    (
        "        made = Versioned(self.data)\n        made.writes = self.writes\n",
        "        made = Versioned(self.data)\n",
    ),
)

versions.changed(
    "detach copies",
    """
    The detached tensor has memory of its own, so a write to it does not reach the original. `detach` leaves the graph
    and nothing else. For a snapshot one calls `clone` as well.
    """,
    (
        "        made = Versioned(self.data)\n        made.writes",
        "        made = Versioned(self.data.copy())\n        made.writes",
    ),
)

versions.changed(
    "the versions are read in backward",
    """
    The versions were noted when the gradient arrived, so each was compared with itself. Note them in `_run`: the
    derivative needs the values of that moment.
    """,
    (
        "        seen = [(x.writes, x.writes[0]) for x in saved]\n\n        def checked(g):\n",
        "\n        def checked(g):\n            seen = [(x.writes, x.writes[0]) for x in saved]\n",
    ),
)

versions.changed(
    "both factors are always saved",
    """
    A factor was saved although nobody asks for the gradient of the other one. In `x * c`, where only x requires a
    gradient, the derivative reads c. So a write to x is no reason for an error.
    """,
    ("return [x for x, other in pairs if other.requires_grad]", "return [x for x, other in pairs]"),
)

versions.changed(
    "a factor is saved for its own gradient",
    """
    The gradient of a factor is g times the *other* factor. So a tensor is saved if the other one requires a gradient,
    and not if it does itself.
    """,
    ("return [x for x, other in pairs if other.requires_grad]", "return [x for x, other in pairs if x.requires_grad]"),
)

versions.changed(
    "exp is thought to read its input",
    """
    The input was noted instead of the result. The derivative of `exp` and of `tanh` is computed from the *result*:
    a write to the input does no harm, and one to the result does.
    """,
    ("            return [made]\n", "            return [self]\n"),
)

versions.changed(
    "the old node gets the new history",
    """
    The history of the node itself was exchanged. Whoever used the tensor before the write has that node as a parent,
    and now depends on what came later. Even the copy does, so the graph runs in a circle. Make a new node.
    """,
    (
        "self.node = Tensor(self.data, True, new.parents, new.pull)",
        "self.node.requires_grad = True\n            self.node.parents, self.node.pull = new.parents, new.pull",
    ),
)

versions.changed(
    "a write is not recorded",
    """
    The elements changed and the history did not: `y.mul_(10)` multiplies, and the gradient knows nothing of the 10.
    After a recorded write, the tensor gets a node with the history of the result.
    """,
    ("        if recorded:\n            new = result.node\n", "        if False:\n            new = result.node\n"),
)

versions.changed(
    "the result takes the place of the memory",
    """
    The tensor got the array of the result instead of writing into its own. Views, and whoever else shares the memory,
    still show the old values. In place means `self.data[...] = …`.
    """,
    ("self.data[...] = result.data", "self.node.data = result.data"),
)

versions.changed(
    "the old values are not copied",
    """
    The copy of the old values shares the memory, so the write reaches it as well. The derivative of a product reads
    them for the gradient of the other factor, and gets the new ones.
    """,
    ("copy = Versioned(self.data.copy())", "copy = Versioned(self.data)"),
)

versions.changed(
    "only recorded writes are counted",
    """
    A write under `no_grad` was not counted. It changes the memory like any other, and an older graph may have saved the
    tensor.
    """,
    ("        self.writes[0] += 1\n", "        self.writes[0] += recorded\n"),
)

versions.changed(
    "a leaf is refused under no_grad as well",
    """
    A training step writes to leaves, inside `no_grad`. Only a *recorded* write to a leaf is refused, since the leaf
    would no longer be one.
    """,
    (
        "if recorded and self.requires_grad and self.node.pull is None:",
        "if self.requires_grad and self.node.pull is None:",
    ),
)

versions.changed(
    "a leaf may be written to",
    """
    A leaf that requires a gradient was written to, with recording on. It then has a history, so it is no leaf, and its
    `grad` stays `None`. Refuse it before anything is written.
    """,
    (
        "if recorded and self.requires_grad and self.node.pull is None:",
        "if False:",
    ),
)

versions.changed(
    "the history of views is forgotten",
    """
    A recorded write changes what all views of the memory show, and only the tensor that was written to got a new
    history. The gradients of the others would be wrong without an error. Refuse it, as long as there is no
    `CopySlices`.
    """,
    ("if recorded and self.viewed:", "if False:"),
)

versions.changed(
    "no_grad always switches on again",
    """
    After the block recording was switched on, whatever it was before. Inside another `no_grad`, everything behind the
    inner block would be recorded again.
    """,
    ("            Versioned.recording = before", "            Versioned.recording = True"),
)

versions.changed(
    "no_grad stays off after an error",
    """
    An error in the block left recording off for the rest of the program. Put back what was in `finally`.
    """,
    (
        "        try:\n            yield\n        finally:\n            Versioned.recording = before",
        "        yield\n        Versioned.recording = before",
    ),
)

versions.changed(
    "counts elements, not writes",
    """
    The count grew by the number of elements. One write counts once, however many elements it changes.
    """,
    ("self.writes[0] += 1", "self.writes[0] += self.data.size"),
)

versions.changed(
    "saved tensors have to be at version 0",
    """
    A tensor may have been written to *before* it was saved, as every weight is after the first training step. Compare
    with the version of the moment in which it was saved.
    """,
    ("seen = [(x.writes, x.writes[0]) for x in saved]", "seen = [(x.writes, 0) for x in saved]"),
)

versions.changed(
    "a part is a copy",
    """
    The rows were copied, so a write to the part does not reach the whole. A slice of a NumPy array is a view already.
    """,
    ("rows = self.data[start:stop]\n", "rows = self.data[start:stop].copy()\n"),
)

versions.changed(
    "only the first factor is looked at",
    """
    Of the two factors only the first was ever saved. In `c * x`, where x requires a gradient, the derivative reads c,
    and in `x * c` as well: look at both pairs.
    """,
    ("pairs = (self, given[0]), (given[0], self)", "pairs = ((self, given[0]),)"),
)

versions.changed(
    "operations under no_grad are recorded",
    """
    The result of an operation kept its history in the block as well. Then every training step would be part of the
    graph. Outside `recording`, wrap the data only.
    """,
    ("        if Versioned.recording:\n            made.node = node\n", "        made.node = node\n"),
)


# -- checks ---------------------------------------------------------------------------------------


def _list(array):
    return None if array is None else np.asarray(array).round(9).tolist()


def _safe(Versioned, run):
    """``run``, with recording on before it, and put back after it."""

    def guarded(*args):
        Versioned.recording = True
        try:
            return run(*args)
        finally:
            Versioned.recording = True

    return guarded


@versions.check("1 · one memory, one count")
def _(Versioned):
    def detached():
        x = Versioned([1.0, 2.0], requires_grad=True)
        d = x.detach()
        d.data[0] = 9.0
        return x.data.tolist(), d.writes is x.writes, d.requires_grad

    yield case("d = x.detach(), written to: x, one count, d requires grad", detached).gives(
        ([9.0, 2.0], True, False)
    )

    def cut():
        x = Versioned(np.arange(6.0).reshape(3, 2), requires_grad=True)
        y = x.part(1, 3)
        y.data[0] = 9.0
        return x.data.tolist(), y.writes is x.writes, (x.viewed, y.viewed), y.requires_grad

    text = "y = x.part(1, 3), written to: x, one count, both viewed, y requires grad"
    yield case(text, cut).gives(([[0.0, 1.0], [9.0, 9.0], [4.0, 5.0]], True, (True, True), True))

    def apart():
        x = Versioned([1.0, 2.0])
        y = x._over(Tensor([3.0, 4.0]))
        return y.writes is x.writes, (x.viewed, y.viewed), y.data.tolist()

    yield case("x._over(a node with memory of its own)", apart).gives(
        (False, (False, False), [3.0, 4.0])
    )

    def back():
        x = Versioned([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        x.part(1, 4).part(0, 2).node.backward(np.array([10.0, 20.0]))
        return x.grad.tolist()

    yield case("x.part(1, 4).part(0, 2), back with [10, 20]: x.grad", back).gives(
        [0.0, 10.0, 20.0, 0.0]
    )


@versions.check("2 · operations")
def _(Versioned):
    def values():
        a, b = Versioned([[1.0, 2.0]]), Versioned([[3.0], [4.0]])
        made = [a + b, a * b, a @ b, a**2, a - 1, 3 * a, -a, a.exp().log(), a.tanh(), a.sum()]
        return [_list(x.data) for x in made]

    x, y = np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])
    yield case("a + b, a * b, a @ b, a**2, a - 1, 3 * a, …", values).gives(
        [_list(z) for z in (x + y, x * y, x @ y, x**2, x - 1, 3 * x, -x, x, np.tanh(x), x.sum())]
    )

    def grads():
        w, c = Versioned([[1.0, 2.0]], requires_grad=True), Versioned([[3.0], [4.0]])
        ((w @ c) * w + w.exp() - w.tanh() * 2).sum().backward()
        return _list(w.grad), c.grad

    real = torch.tensor(x, requires_grad=True)
    ((real @ torch.tensor(y)) * real + real.exp() - real.tanh() * 2).sum().backward()
    yield case("((w @ c) * w + w.exp() - w.tanh() * 2).sum().backward()", grads).gives(
        (_list(real.grad.numpy()), None)
    )

    def shares():
        a = Versioned(np.arange(6.0).reshape(2, 3))
        flipped = a.transpose(0, 1)
        made = [a.reshape(6), flipped, flipped.reshape(6), a + 1]
        return [z.writes is a.writes for z in made]

    text = "which share the count of a: a.reshape(6), its transpose, that reshaped (a copy), a + 1"
    yield case(text, shares).gives([True, True, False, False])


@versions.check("3 · saved tensors")
def _(Versioned):
    def after(operation, target):
        """The gradient of x, where one of the tensors is counted as written to."""

        def run():
            x, c = Versioned([1.0, 2.0], requires_grad=True), Versioned([3.0, 4.0])
            w = Versioned([5.0, 6.0], requires_grad=True)
            y = operation(x, c, w)
            {"x": x, "c": c, "w": w, "y": y}[target].writes[0] += 1
            try:
                y.sum().backward()
            except RuntimeError:
                return "refused"
            return _list(x.grad)

        return run

    for text, operation, wanted in (
        ("x.exp()", lambda x, c, w: x.exp(), {"x": [2.718281828, 7.389056099], "y": "refused"}),
        ("x.tanh()", lambda x, c, w: x.tanh(), {"y": "refused", "x": [0.419974342, 0.070650825]}),
        ("x.log()", lambda x, c, w: x.log(), {"x": "refused", "y": [1.0, 0.5]}),
        ("x ** 2", lambda x, c, w: x**2, {"x": "refused", "y": [2.0, 4.0]}),
        ("x * c", lambda x, c, w: x * c, {"c": "refused", "x": [3.0, 4.0], "y": [3.0, 4.0]}),
        ("c * x", lambda x, c, w: c * x, {"c": "refused", "x": [3.0, 4.0]}),
        ("x * w", lambda x, c, w: x * w, {"x": "refused", "w": "refused", "y": [5.0, 6.0]}),
        ("x * 3", lambda x, c, w: x * 3, {"x": [3.0, 3.0], "y": [3.0, 3.0]}),
        ("x + c", lambda x, c, w: x + c, {"x": [1.0, 1.0], "c": [1.0, 1.0]}),
    ):
        for target, result in wanted.items():
            told = f"y = {text}, then a write to {target} is counted: x.grad after backward"
            yield case(told, after(operation, target)).gives(result)

    def message():
        x = Versioned([1.0], requires_grad=True)
        x.writes[0] = 3
        y = x.log()
        x.writes[0] = 5
        y.backward()

    for said in ("log", "version 5", "version 3"):
        yield case("log of x at version 3; backward at version 5", message).raises(
            RuntimeError, said
        )


@versions.check("4 · writing")
def _(Versioned):
    def plain():
        x = Versioned([1.0, 2.0, 3.0])
        y = x.part(1, 3)
        same = y.mul_(10)
        x.add_(1)
        x -= 0.5
        return x.data.tolist(), y.data.tolist(), same is y, (x._version, y._version)

    yield case("y = x.part(1, 3); y.mul_(10); x.add_(1); x -= 0.5", plain).gives(
        ([1.5, 20.5, 30.5], [20.5, 30.5], True, (3, 3))
    )

    def chain(step):
        def run():
            x = Versioned([1.0, 2.0], requires_grad=True)
            w = Versioned([5.0, 7.0], requires_grad=True)
            return step(x, w)

        return run

    def product(x, w):
        y = x * 3
        y.mul_(w)
        y.sum().backward()
        return y.data.tolist(), x.grad.tolist(), w.grad.tolist()

    yield case("y = x * 3; y.mul_(w): y, x.grad, w.grad", chain(product)).gives(
        ([15.0, 42.0], [15.0, 21.0], [3.0, 6.0])
    )

    def used(x, w):
        y = x * 3
        z = y + 0
        y.mul_(w)
        z.sum().backward()
        return x.grad.tolist(), w.grad

    yield case("y = x * 3; z = y + 0; y.mul_(w); z.sum().backward(): x.grad, w.grad",
               chain(used)).gives(([3.0, 3.0], None))  # fmt: skip

    def late(x, w):
        y = x.exp()
        y.mul_(10)
        y.sum().backward()

    yield case("y = x.exp(); y.mul_(10); y.sum().backward()", chain(late)).raises(
        RuntimeError, "version"
    )

    def through(x, w):
        y = x.exp()
        y.detach().add_(1)
        y.sum().backward()

    yield case("y = x.exp(); y.detach().add_(1); y.sum().backward()", chain(through)).raises(
        RuntimeError, "version"
    )

    def itself(x, w):
        y = x * 3
        y.add_(y)
        y.sum().backward()
        return y.data.tolist(), x.grad.tolist()

    yield case("y = x * 3; y.add_(y): y, x.grad", chain(itself)).gives(([6.0, 12.0], [6.0, 6.0]))

    def given(x, w):
        data = Versioned([1.0, 1.0])
        data.mul_(w)
        (data * x).sum().backward()
        return data.requires_grad, w.grad.tolist()

    yield case("data, which requires no gradient: data.mul_(w), then w.grad", chain(given)).gives(
        (True, [1.0, 2.0])
    )

    def refused(step):
        def run(x, w):
            y = x * 3
            with suppress(RuntimeError):
                step(x, w, y)
                return "no error"
            return x.data.tolist(), y.data.tolist(), (x._version, y._version)

        return chain(run)

    kept = ([1.0, 2.0], [3.0, 6.0], (0, 0))
    for text, step in (
        ("x.mul_(2), a leaf", lambda x, w, y: x.mul_(2)),
        ("y.part(0, 1).mul_(2), a view", lambda x, w, y: y.part(0, 1).mul_(2)),
        ("y.part(0, 1), then y.mul_(2)", lambda x, w, y: (y.part(0, 1), y.mul_(2))),
        ("y.add_([[1, 1], [1, 1]]), another shape", lambda x, w, y: y.add_(np.ones((2, 2)))),
    ):
        yield case(f"{text}: x, y and their versions after the error", refused(step)).gives(kept)
    for text, step, said in (
        ("x.mul_(2)", lambda x, w: x.mul_(2), "leaf"),
        ("(x * 3).part(0, 1).mul_(2)", lambda x, w: (x * 3).part(0, 1).mul_(2), "view"),
        ("(x * 3).add_(ones of (2, 2))", lambda x, w: (x * 3).add_(np.ones((2, 2))), "shape"),
    ):
        yield case(text, chain(step)).raises(RuntimeError, said)


@versions.check("5 · no_grad")
def _(Versioned):
    def step():
        w = Versioned([1.0, 2.0], requires_grad=True)
        (w * w).sum().backward()
        with Versioned.no_grad():
            w -= 0.5 * w.grad
            y = w * 2
        return w.data.tolist(), w.requires_grad, w.node.pull is None, w._version, y.requires_grad

    yield case("a training step on w", _safe(Versioned, step)).gives(
        ([0.0, 0.0], True, True, 1, False)
    )

    def old():
        w = Versioned([1.0, 2.0], requires_grad=True)
        y = (w * w).sum()
        with Versioned.no_grad():
            w.add_(1)
        y.backward()

    yield case("y = (w * w).sum(), then a step on w, then y.backward()", _safe(Versioned, old)).raises(
        RuntimeError, "version"
    )

    def nested():
        with Versioned.no_grad():
            with Versioned.no_grad():
                pass
            inner = Versioned.recording
        return inner, Versioned.recording

    yield case("is recording on after the inner block, and after the outer one?",
               _safe(Versioned, nested)).gives((False, True))  # fmt: skip

    def failed():
        with suppress(KeyError), Versioned.no_grad():
            raise KeyError("an error in the block")
        return Versioned.recording

    yield case("is recording on after an error in the block?", _safe(Versioned, failed)).gives(True)

    def swallowed():
        with Versioned.no_grad():
            raise KeyError("an error in the block")

    yield case("an error in the block", _safe(Versioned, swallowed)).raises(KeyError, "in the block")

    def views():
        w = Versioned([1.0, 2.0], requires_grad=True)
        with Versioned.no_grad():
            w.part(0, 1).mul_(5)
        return w.data.tolist(), w._version

    yield case("w.part(0, 1).mul_(5) in the block: w, its version", _safe(Versioned, views)).gives(
        ([5.0, 2.0], 1)
    )


_PLAIN = {
    "{} + {}": lambda a, b: a + b,
    "{} * {}": lambda a, b: a * b,
    "{} @ {}": lambda a, b: a @ b,
    "{} - {}": lambda a, b: a - b,
}
_UNARY = {
    "{}.exp()": lambda a: a.exp(),
    "{}.tanh()": lambda a: a.tanh(),
    "{} ** 2": lambda a: a**2,
    "{} * 3": lambda a: a * 3,
    "{}.transpose(0, 1)": lambda a: a.transpose(0, 1),
    "{}.detach()": lambda a: a.detach(),
}
_INPLACE = ("add_", "mul_", "sub_")


def _program(draw):
    """Steps of a random program on 2 × 2 tensors: x and w are leaves, c requires no gradient."""
    names, viewed, steps = ["x", "w", "c"], set(), []
    for number in range(draw.randint(2, 6)):
        fresh = [n for n in names if n not in viewed and n not in "xwc"]
        if fresh and draw.random() < 0.45:
            target = draw.choice(fresh)
            other = draw.choice(names)
            steps.append(("write", draw.choice(_INPLACE), target, other))
        elif draw.random() < 0.15:
            steps.append(("quiet", draw.choice(_INPLACE), draw.choice(names), "0.5"))
        else:
            name = f"t{number}"
            table = _UNARY if draw.random() < 0.5 else _PLAIN
            text = draw.choice(sorted(table))
            taken = [draw.choice(names) for _ in range(text.count("{}"))]
            if "transpose" in text:
                viewed |= {name, *taken}  # a later write to either of them is left out
            names.append(name)
            steps.append(("make", text, name, *taken))
    return tuple(steps)


def _said(steps):
    lines = []
    for kind, what, first, *rest in steps:
        if kind == "make":
            lines.append(f"{first} = {what.format(*rest)}")
        else:
            line = f"{first}.{what}({rest[0]})"
            lines.append(line if kind == "write" else f"with no_grad(): {line}")
    return "; ".join(lines)


def _ran(leaf, no_grad, steps):
    """What the leaves get from the sum of everything at the end; or that it is refused."""
    draw = np.random.default_rng(0)
    known = {n: leaf(draw.normal(size=(2, 2)).round(1), n != "c") for n in ("x", "w", "c")}
    x, w = known["x"], known["w"]
    for kind, what, first, *rest in steps:
        if kind == "make":
            rule = _UNARY.get(what) or _PLAIN[what]
            known[first] = rule(*[known[name] for name in rest])
        elif kind == "write":
            getattr(known[first], what)(known[rest[0]])
        else:
            with no_grad():
                getattr(known[first], what)(0.5)
    total = x.sum() + w.sum()
    for value in known.values():
        total = total + value.sum()
    try:
        total.backward()
    except RuntimeError:
        return "refused in backward"
    return [_list(np.array(z.grad if isinstance(z.grad, np.ndarray) else z.grad.tolist()))
            for z in (x, w)]  # fmt: skip


@versions.check("6 · any program")
def _(Versioned):
    def mine(array, wants):
        return Versioned(array, requires_grad=wants)

    def real(array, wants):
        return torch.tensor(array, requires_grad=wants)

    def cases():
        for make in drawn(_program, 150):
            steps = make()
            run = _safe(Versioned, partial(_ran, mine, Versioned.no_grad))
            one = case(_said(steps), partial(run, steps))
            yield one.as_by(partial(_ran, real, torch.no_grad, steps), 1e-5)

    yield every("150 random programs, as toytorch runs them", cases)


@versions.check("7 · nothing is kept twice", hidden=True)
def _(Versioned):
    def memory():
        x = Versioned(np.ones(3), requires_grad=True)
        before = x.data
        y = x * 2
        first = y.data
        y.add_(1)
        return x.data is before, np.shares_memory(y.data, first)

    yield case("is the memory of y the same after y.add_(1)?", memory).gives((True, True))

    def deep():
        x = Versioned(np.ones(1), requires_grad=True)
        y = x * 1
        for _ in range(2_000):
            y.add_(x)
        y.backward()
        return y._version, float(x.grad[0])

    yield case("y = x * 1, then y.add_(x) 2,000 times: the version, x.grad", deep).gives(
        (2_000, 2_001.0)
    )

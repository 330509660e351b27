"""In-place writes with versions, for the learner's own Tensor."""

from contextlib import contextmanager
from functools import partialmethod

import numpy as np

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


@versions.reference(
    {
        "detach": "stage 1, your code here: about 3 lines",
        "_over": "stage 1, your code here: about 6 lines",
        "part": "stage 1, your code here: about 7 lines",
        "_run": "stage 2, your code here: about 3 lines\nstage 3: and about 20, with a method that finds what is saved",
        "_write": "stage 4, your code here: about 20 lines",
        "no_grad": "stage 5, your code here: about 6 lines, as a context manager",
        "_saved": "",
    },
    ("    @contextmanager\n", ""),
)
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

"""A saved tensor that refuses."""

import toytorch as torch
from course.cases import case
from course.exercises.ch05.common import _wanted
from course.records import Exercise
from toytorch.autograd.graph import saved_tensors_hooks

saved = Exercise(
    "inplace.saved",
    "A saved tensor that refuses",
    chapter=5,
    minutes=12,
    inject=lambda kind: saved_tensors_hooks(kind, lambda kept: kept.open()),
    prompt="""
    Nodes keep tensors for the backward pass. Write the class `Saved` that keeps one of them safely:

    * `Saved(tensor)` keeps the tensor and notes the version it has now, `tensor._version`;
    * `kept.open()` gives the tensor back, with its history. If its memory was written to
      meanwhile, it raises a `RuntimeError` that names both versions.

    A copy would be safe as well, and would double the memory of training: keep the tensor itself.

    The injection point is PyTorch's own, `torch.autograd.graph.saved_tensors_hooks`: it hands every tensor
    that a node saves to one function, and what that gave to another one on the way back.
    toytorch's own check is **off** as long as yours is on.
    """,
)


@saved.stub
class Saved:
    """A tensor kept for backward, with the version it had."""

    def __init__(self, tensor):
        # your code here: one line
        raise NotImplementedError

    def open(self):
        """The tensor; RuntimeError if it was written to since."""
        # your code here: about 4 lines
        raise NotImplementedError


@saved.reference
class Saved:
    """A tensor kept for backward, with the version it had."""

    def __init__(self, tensor):
        self.tensor, self.seen = tensor, tensor._version

    def open(self):
        """The tensor; RuntimeError if it was written to since."""
        now = self.tensor._version
        if now != self.seen:
            raise RuntimeError(
                f"a saved tensor was written to: it is at version {now}; "
                f"expected version {self.seen}"
            )
        return self.tensor


@saved.mutant(
    "keeps a copy",
    why="""
    A clone never changes, so the gradients would be right and nobody would have to refuse. But a
    network keeps the result of nearly every operation, and each would now be in memory twice. A
    version is one integer.
    """,
)
class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.clone()

    def open(self):
        return self.tensor


@saved.mutant(
    "asks for the version too late",
    why="""
    The version was read when the tensor was opened, so that it was compared with itself. It has to
    be noted when the tensor is *kept*: that is the value that the derivative was promised.
    """,
)
class Saved:
    def __init__(self, tensor):
        self.tensor = tensor

    def open(self):
        seen = self.tensor._version
        if self.tensor._version != seen:
            raise RuntimeError(f"is at version {self.tensor._version}; expected version {seen}")
        return self.tensor


@saved.mutant(
    "keeps tensor.data",
    why="""
    `.data` shares the memory but not the count: it starts a count of its own at 0. Writes through
    the original are not seen any more, and the gradient would be wrong without a word.
    """,
)
class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.data
        self.seen = self.tensor._version

    def open(self):
        if self.tensor._version != self.seen:
            raise RuntimeError(f"is at version {self.tensor._version}; expected {self.seen}")
        return self.tensor


@saved.mutant(
    "cuts the history",
    why="""
    `detach()` shares memory and count, so the check works. But what comes out belongs to no graph
    any more, and a second derivative goes *through* the saved tensors: it would be 0 or raise.
    """,
)
class Saved:
    def __init__(self, tensor):
        self.tensor, self.seen = tensor.detach(), tensor._version

    def open(self):
        if self.tensor._version != self.seen:
            raise RuntimeError(f"is at version {self.tensor._version}; expected {self.seen}")
        return self.tensor


@saved.mutant(
    "compares the numbers",
    why="""
    The values were kept and compared. That takes a copy and a pass over all numbers, on every
    backward, and it calls a write harmless that happened to put the same numbers there. The rule is
    simpler: written to is written to.
    """,
)
class Saved:
    def __init__(self, tensor):
        self.tensor, self.values = tensor, tensor.tolist()
        self.seen = tensor._version

    def open(self):
        if self.tensor.tolist() != self.values:
            raise RuntimeError(f"is at version {self.tensor._version}; expected {self.seen}")
        return self.tensor


@saved.mutant(
    "refuses equal versions",
    why="""
    `>=` is true as well when the two are *equal*, which is the case of everybody who did nothing
    wrong. Equal versions mean that nobody wrote: refuse if they differ.
    """,
)
class Saved:
    def __init__(self, tensor):
        self.tensor, self.seen = tensor, tensor._version

    def open(self):
        if self.tensor._version >= self.seen:
            raise RuntimeError(f"is at version {self.tensor._version}; expected {self.seen}")
        return self.tensor


@saved.mutant(
    "demands version 0",
    why="""
    A tensor may have been written to *before* it was kept: a bias that was filled, a weight after a
    hundred steps. Its version is not 0, and nothing is wrong with it. What counts is whether it has
    changed *since*.
    """,
)
class Saved:
    def __init__(self, tensor):
        self.tensor = tensor

    def open(self):
        if self.tensor._version != 0:
            raise RuntimeError(f"is at version {self.tensor._version}; expected version 0")
        return self.tensor


@saved.check("a tensor that nobody wrote to")
def _(kind):
    def untouched():
        x = _wanted([1.0, 2.0])
        y = x.exp()
        back = kind(y).open()
        return back.data_ptr() == y.data_ptr(), back.requires_grad

    yield case("Saved(x.exp()).open(): the same memory? with its history?", untouched).gives(
        (True, True)
    )


@saved.check("one that was written to")
def _(kind):
    def written(write):
        x = torch.tensor([1.0, 2.0, 3.0])
        kept = kind(x)
        write(x)
        return kept.open()

    for text, write in (
        ("x.mul_(2)", lambda x: x.mul_(2)),
        ("x[0] = 7", lambda x: x.__setitem__(0, 7.0)),
        ("a write to the view x[1:]", lambda x: x[1:].zero_()),
        ("a write to x.detach()", lambda x: x.detach().zero_()),
        ("x.mul_(1), which changes no number", lambda x: x.mul_(1)),
    ):
        yield case(f"kept = Saved(x); {text}; kept.open()", lambda w=write: written(w)).raises(
            RuntimeError, "version"
        )


@saved.check("written to before it was kept", hidden=True)
def _(kind):
    def before():
        x = torch.tensor([1.0, 2.0])
        x.mul_(10)
        x.add_(1)
        return kind(x).open()

    yield case("x.mul_(10); x.add_(1); Saved(x).open()", before).gives(torch.tensor([11.0, 21.0]))


@saved.check("as a part of toytorch")
def _(kind):
    def clash():
        x = _wanted([1.0, 2.0])
        with saved.inject(kind):
            y = x.exp()
        y.mul_(10)
        y.sum().backward()
        return x.grad

    yield case("y = x.exp(); y.mul_(10); y.sum().backward()", clash).raises(
        RuntimeError, "version"
    )

    def fine():
        x = _wanted([1.0, 2.0])
        with saved.inject(kind):
            y = x * x * 3
        y.mul_(10)  # a product keeps its factors, not its result
        y.sum().backward()
        return x.grad

    yield case("y = x * x * 3; y.mul_(10); y.sum().backward()", fine).gives(
        torch.tensor([60.0, 120.0])
    )

    def second():
        x = _wanted([1.0, 2.0])
        with saved.inject(kind):
            (slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
            (bend,) = torch.autograd.grad(slope.sum(), x)
        return bend

    yield case("the second derivative of x ** 3", second).gives(torch.tensor([6.0, 12.0]))

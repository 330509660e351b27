"""Chapter 05, In-place writes: leaves, counts of writes, saved tensors, views, no_grad, NaNs."""

import contextlib

import toytorch as torch
from course.cases import case
from course.records import Exercise
from toytorch.autograd.graph import saved_tensors_hooks
from toytorch.core.inplace import CopySlices

# -- who gets a gradient --------------------------------------------------------------------------

leaves = Exercise(
    "inplace.leaves",
    "Who will get a gradient?",
    chapter=5,
    minutes=10,
    prompt="""
    Write `leaves_of(result)`: a list of the tensors whose `.grad` is filled when somebody calls
    `result.backward()`. Each of them once, in any order.

    * A leaf that wants a gradient stands at the end of the graph behind a node that has an
      attribute `variable`: the leaf itself. Other nodes have no such attribute.
    * `node.next_functions` holds pairs `(target, number)`; `target` is `None` where nobody wants a
      gradient.
    * A graph may be 100,000 nodes deep, and `result` may be a leaf itself.
    """,
)


@leaves.stub
def leaves_of(result):
    """The tensors that result.backward() gives a gradient."""
    # your code here: about 12 lines
    raise NotImplementedError


@leaves.reference
def leaves_of(result):
    """The tensors that result.backward() gives a gradient."""
    if result.grad_fn is None:  # it is a leaf itself
        return [result] if result.requires_grad else []
    found, stack = [], [result.grad_fn]
    seen = {result.grad_fn}
    while stack:
        node = stack.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    return found


@leaves.mutant(
    "looks one step back",
    why="""
    Only the inputs of the *last* operation were looked at. Gradients travel to the ends of the
    graph: go on from every node to its targets until there are none left.
    """,
)
def leaves_of(result):
    if result.grad_fn is None:
        return [result] if result.requires_grad else []
    targets = {target for target, _ in result.grad_fn.next_functions}
    return [target.variable for target in targets if hasattr(target, "variable")]


@leaves.mutant(
    "lists a leaf once for every use",
    why="""
    A leaf that is used twice has two arrows that lead to it, and it was written down at each of
    them. It is one tensor with one `.grad`. An optimizer that gets it twice would step twice.
    """,
)
def leaves_of(result):
    if result.grad_fn is None:
        return [result] if result.requires_grad else []
    found, stack = [], [result.grad_fn]
    seen = {result.grad_fn}
    while stack:
        for target, _ in stack.pop().next_functions:
            if hasattr(target, "variable"):
                found.append(target.variable)
            elif target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    return found


@leaves.mutant(
    "forgets that the result may be a leaf",
    why="""
    A leaf has no `grad_fn`, since no operation made it. `backward` may be called on it all the
    same, and then it gets a gradient itself; so ask for `result.grad_fn is None` first.
    """,
)
def leaves_of(result):
    found, stack = [], [result.grad_fn]
    seen = {result.grad_fn}
    while stack:
        node = stack.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    return found


@leaves.mutant(
    "counts every leaf, wanted or not",
    why="""
    Every tensor that no operation made is a *leaf*, constants and data as well. A gradient goes
    only to those with `requires_grad=True`. `is_leaf` alone says nothing about gradients.
    """,
)
def leaves_of(result):
    if result.is_leaf:
        return [result]
    found, stack = [], [result.grad_fn]
    seen = {result.grad_fn}
    while stack:
        node = stack.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    return found


@leaves.mutant(
    "recursion",
    why="""
    The list is right, and Python's call stack holds about a thousand calls. Graphs are deeper: keep
    the nodes that you still have to visit on a list of your own.
    """,
)
def leaves_of(result):
    if result.grad_fn is None:
        return [result] if result.requires_grad else []
    found, seen = [], set()

    def visit(node):
        if node is None or node in seen:
            return
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        for target, _ in node.next_functions:
            visit(target)

    visit(result.grad_fn)
    return found


def _wanted(value):
    return torch.tensor(value, requires_grad=True)


def _named(f, result, **named):
    """The names of the leaves that were found, sorted; what is no list is given back."""
    found = f(result)
    if not isinstance(found, list):
        return found
    names = {id(tensor): name for name, tensor in named.items()}
    return sorted(names.get(id(tensor), "another tensor") for tensor in found)


@leaves.check("two leaves and a constant")
def _(f):
    def two():
        x, w, c = _wanted(2.0), _wanted(3.0), torch.tensor(4.0)
        return _named(f, (x * w + c) * c, x=x, w=w, c=c)

    yield case("(x * w + c) * c, where c wants no gradient", two).gives(["w", "x"])


@leaves.check("a leaf used twice", hidden=True)
def _(f):
    def twice():
        x = _wanted(2.0)
        return _named(f, x * x + x.exp(), x=x)

    yield case("x * x + x.exp()", twice).gives(["x"])


@leaves.check("tensors without an operation")
def _(f):
    x, c = _wanted(2.0), torch.tensor(2.0)
    yield case("x itself, which wants a gradient", lambda: _named(f, x, x=x)).gives(["x"])
    yield case("c itself, which wants none", lambda: _named(f, c, c=c)).gives([])
    yield case("x.detach()", lambda: _named(f, x.detach(), x=x)).gives([])


@leaves.check("what was cut off")
def _(f):
    def cut():
        x, w = _wanted(2.0), _wanted(3.0)
        return _named(f, x.exp().detach() * w, x=x, w=w)

    yield case("x.exp().detach() * w", cut).gives(["w"])


@leaves.check("100,000 nodes deep")
def _(f):
    def deep():
        x = y = _wanted(1.0)
        for _ in range(100_000):
            y = -y
        return _named(f, y, x=x)

    yield case("y = -y, 100,000 times", deep).gives(["x"])


# -- a count of writes ----------------------------------------------------------------------------

counter = Exercise(
    "inplace.counter",
    "A memory that counts its writes",
    chapter=5,
    minutes=12,
    prompt="""
    Write a class `Cells`: numbers in a memory, with views and a **count of writes**.

    | | |
    | --- | --- |
    | `Cells(memory)` | shows all of `memory`, which is a list of numbers |
    | `cells.read()` | the numbers it shows, as a list |
    | `cells.part(start, stop)` | a view of some of its numbers: `Cells` over the *same* memory |
    | `cells.write(numbers)` | puts as many numbers in their place |
    | `cells._version` | a property: how many times this **memory** was written to, by anybody |

    Whoever writes through a view changes what the others show. So all that share a memory have to
    share one count. A part may be taken of a part.
    """,
)


@counter.stub
class Cells:
    """Numbers in a memory shared with views, and a count of writes."""

    def __init__(self, memory):
        # your code here: about 15 lines in all
        raise NotImplementedError


@counter.reference
class Cells:
    """Numbers in a memory shared with views, and a count of writes."""

    def __init__(self, memory):
        self.memory, self.writes = memory, [0]
        self.start, self.stop = 0, len(memory)

    @property
    def _version(self):
        return self.writes[0]

    def read(self):
        return self.memory[self.start : self.stop]

    def part(self, start, stop):
        view = Cells(self.memory)
        view.writes = self.writes  # the same list, not the same number
        view.start, view.stop = self.start + start, self.start + stop
        return view

    def write(self, numbers):
        self.memory[self.start : self.stop] = numbers
        self.writes[0] += 1


@counter.mutant(
    "every view counts for itself",
    why="""
    A view began with a count of its own. When somebody writes through it, the number changes for
    everybody and the others' count does not: a saved tensor would look untouched. The count belongs
    to the memory, and a view shares it like the numbers themselves.
    """,
)
class Cells:
    def __init__(self, memory):
        self.memory, self._version = memory, 0
        self.start, self.stop = 0, len(memory)

    def read(self):
        return self.memory[self.start : self.stop]

    def part(self, start, stop):
        view = Cells(self.memory)
        view.start, view.stop = self.start + start, self.start + stop
        return view

    def write(self, numbers):
        self.memory[self.start : self.stop] = numbers
        self._version += 1


@counter.mutant(
    "the view copies the count",
    why="""
    The view took the count of that moment along, as a number of its own. From then on the two
    drift apart. `view.count = self.count` shares nothing where `count` is an integer: both need to
    hold the *same object*, a list of one number, say.
    """,
)
class Cells:
    def __init__(self, memory):
        self.memory, self._version = memory, 0
        self.start, self.stop = 0, len(memory)

    def read(self):
        return self.memory[self.start : self.stop]

    def part(self, start, stop):
        view = Cells(self.memory)
        view._version = self._version
        view.start, view.stop = self.start + start, self.start + stop
        return view

    def write(self, numbers):
        self.memory[self.start : self.stop] = numbers
        self._version += 1


@counter.mutant(
    "counts reads as well",
    why="""
    Reading was counted. Reading changes nothing, so nobody has to be warned of it. With this count,
    every saved tensor would look as if it had been written to as soon as somebody printed it.
    """,
)
class Cells:
    def __init__(self, memory):
        self.memory, self.writes = memory, [0]
        self.start, self.stop = 0, len(memory)

    @property
    def _version(self):
        return self.writes[0]

    def read(self):
        self.writes[0] += 1
        return self.memory[self.start : self.stop]

    def part(self, start, stop):
        view = Cells(self.memory)
        view.writes = self.writes
        view.start, view.stop = self.start + start, self.start + stop
        return view

    def write(self, numbers):
        self.memory[self.start : self.stop] = numbers
        self.writes[0] += 1


@counter.mutant(
    "the part is a copy",
    why="""
    `memory[start:stop]` of a Python list is a new list. The part has memory of its own, so a write
    through it does not reach the whole. A view keeps the memory and remembers from where to where.
    """,
)
class Cells:
    def __init__(self, memory):
        self.memory, self.writes = memory, [0]

    @property
    def _version(self):
        return self.writes[0]

    def read(self):
        return list(self.memory)

    def part(self, start, stop):
        view = Cells(self.memory[start:stop])
        view.writes = self.writes
        return view

    def write(self, numbers):
        self.memory[:] = numbers
        self.writes[0] += 1


@counter.mutant(
    "a part of a part counts from the beginning",
    why="""
    `start` and `stop` count within the part they are asked of. The part's own beginning has to be
    added, as a view of a view adds its offset to that of the view.
    """,
)
class Cells:
    def __init__(self, memory):
        self.memory, self.writes = memory, [0]
        self.start, self.stop = 0, len(memory)

    @property
    def _version(self):
        return self.writes[0]

    def read(self):
        return self.memory[self.start : self.stop]

    def part(self, start, stop):
        view = Cells(self.memory)
        view.writes = self.writes
        view.start, view.stop = start, stop
        return view

    def write(self, numbers):
        self.memory[self.start : self.stop] = numbers
        self.writes[0] += 1


@counter.mutant(
    "counts numbers, not writes",
    why="""
    The count grew by the *numbers* that were written. One write is one event, however many numbers
    it puts in place: `mul_` on a million numbers raises the version by 1.
    """,
)
class Cells:
    def __init__(self, memory):
        self.memory, self.writes = memory, [0]
        self.start, self.stop = 0, len(memory)

    @property
    def _version(self):
        return self.writes[0]

    def read(self):
        return self.memory[self.start : self.stop]

    def part(self, start, stop):
        view = Cells(self.memory)
        view.writes = self.writes
        view.start, view.stop = self.start + start, self.start + stop
        return view

    def write(self, numbers):
        self.memory[self.start : self.stop] = numbers
        self.writes[0] += len(numbers)


@counter.check("one owner")
def _(cells_class):
    def written():
        cells = cells_class([1, 2, 3])
        before = cells._version
        cells.write([4, 5, 6])
        return before, cells.read(), cells._version

    yield case("cells.write([4, 5, 6]): version, numbers, version", written).gives(
        (0, [4, 5, 6], 1)
    )


@counter.check("reading is no writing")
def _(cells_class):
    def read():
        cells = cells_class([1, 2, 3])
        cells.read()
        cells.read()
        return cells._version

    yield case("the version after cells.read(), twice", read).gives(0)


@counter.check("a part shares the memory")
def _(cells_class):
    def shared():
        cells = cells_class([1, 2, 3, 4])
        view = cells.part(1, 3)
        view.write([20, 30])
        return view.read(), cells.read()

    yield case("view = cells.part(1, 3); view.write([20, 30])", shared).gives(
        ([20, 30], [1, 20, 30, 4])
    )

    def twice():
        cells = cells_class([1, 2, 3, 4, 5])
        view = cells.part(1, 5).part(1, 3)
        view.write([30, 40])
        return view.read(), cells.read()

    yield case("view = cells.part(1, 5).part(1, 3); view.write([30, 40])", twice).gives(
        ([30, 40], [1, 2, 30, 40, 5])
    )


@counter.check("and the count", hidden=True)
def _(cells_class):
    def through_view():
        cells = cells_class([1, 2, 3, 4])
        view = cells.part(1, 3)
        view.write([20, 30])
        cells.write([1, 1, 1, 1])
        return cells._version, view._version

    yield case("a write through the view and one through the owner", through_view).gives((2, 2))

    def late():
        cells = cells_class([1, 2, 3, 4])
        cells.write([5, 6, 7, 8])
        view = cells.part(0, 2)
        return cells._version, view._version

    yield case("the version of a view made after a write", late).gives((1, 1))

    def siblings():
        cells = cells_class([1, 2, 3, 4])
        one, two = cells.part(0, 2), cells.part(2, 4)
        one.write([7, 7])
        return two.read(), two._version

    yield case("two views side by side, one written to", siblings).gives(([3, 4], 1))


# -- a saved tensor that refuses ------------------------------------------------------------------

saved = Exercise(
    "inplace.saved",
    "A saved tensor that refuses",
    chapter=5,
    minutes=12,
    door=lambda kind: saved_tensors_hooks(kind, lambda kept: kept.open()),
    prompt="""
    Nodes keep tensors for the backward pass. Write the class `Saved` that keeps one of them safely:

    * `Saved(tensor)` keeps the tensor and notes the version it has now, `tensor._version`;
    * `kept.open()` gives the tensor back, with its history. If its memory was written to
      meanwhile, it raises a `RuntimeError` that names both versions.

    A copy would be safe as well, and would double the memory of training: keep the tensor itself.

    The door is PyTorch's own, `torch.autograd.graph.saved_tensors_hooks`: it hands every tensor
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
        with saved.door(kind):
            y = x.exp()
        y.mul_(10)
        y.sum().backward()
        return x.grad

    yield case("y = x.exp(); y.mul_(10); y.sum().backward()", clash).raises(
        RuntimeError, "version"
    )

    def fine():
        x = _wanted([1.0, 2.0])
        with saved.door(kind):
            y = x * x * 3
        y.mul_(10)  # a product keeps its factors, not its result
        y.sum().backward()
        return x.grad

    yield case("y = x * x * 3; y.mul_(10); y.sum().backward()", fine).gives(
        torch.tensor([60.0, 120.0])
    )

    def second():
        x = _wanted([1.0, 2.0])
        with saved.door(kind):
            (slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
            (bend,) = torch.autograd.grad(slope.sum(), x)
        return bend

    yield case("the second derivative of x ** 3", second).gives(torch.tensor([6.0, 12.0]))


# -- a write through a view -----------------------------------------------------------------------

slices = Exercise(
    "inplace.slices",
    "Backward through a write to a view",
    chapter=5,
    minutes=18,
    door=CopySlices.using,
    prompt="""
    After `view = base[1:3]; view.mul_(w)`, the numbers of `base` have two histories: those under
    the view went through the product, the others did not. The node `CopySlices` sends a gradient
    through both. Write what it does, `copy_slices(grad, part, inner)`:

    * `grad` is the gradient of `base` **after** the write;
    * `part(t)` is the view, of any tensor `t` like `base`: here `t[1:3]`. It shares the memory of
      `t`, so you can write through it;
    * `inner(g)` is the node of the write itself, here of the product. Given the gradient of the
      view after the write, it gives a list of gradients: first that of the view **before** the
      write, then those of the other inputs, here of `w`.

    Return a tuple: the gradient of `base` **before** the write, then the others. `grad` is not
    yours: somebody else may be using it.
    """,
)


@slices.stub
def copy_slices(grad, part, inner):
    """The gradients of the old base, and of the write's other inputs."""
    # your code here: about 4 lines
    raise NotImplementedError


@slices.reference
def copy_slices(grad, part, inner):
    """The gradients of the old base, and of the write's other inputs."""
    before, *others = inner(part(grad))
    base = grad.clone()  # outside the view nothing has happened
    part(base).copy_(before)
    return base, *others


@slices.mutant(
    "the write left no trace",
    why="""
    The old base got the gradient of the new one. Under the view that is wrong: there the old
    numbers reached the loss *through the write*, so their gradient is what `inner` says. After
    `fill_`, for one, it is 0, for the old numbers are gone.
    """,
)
def copy_slices(grad, part, inner):
    _, *others = inner(part(grad))
    return grad, *others


@slices.mutant(
    "forgets the numbers outside the view",
    why="""
    Only the part under the view was sent on, with zeros around it. The numbers outside the view
    went from the old base to the new one untouched: their gradient goes straight on.
    """,
)
def copy_slices(grad, part, inner):
    before, *others = inner(part(grad))
    base = torch.zeros_like(grad)
    part(base).copy_(before)
    return base, *others


@slices.mutant(
    "sends the whole gradient through the write",
    why="""
    The write saw only the view, and so must its node: hand it `part(grad)`, the gradient of the
    numbers under the view, not that of the whole base.
    """,
)
def copy_slices(grad, part, inner):
    before, *others = inner(grad)
    base = grad.clone()
    part(base).copy_(part(before))
    return base, *others


@slices.mutant(
    "writes into the gradient it was given",
    why="""
    `grad` may wait at other places too: a sum sends one and the same tensor to both of its inputs.
    Write into a clone.
    """,
)
def copy_slices(grad, part, inner):
    before, *others = inner(part(grad).clone())
    part(grad).copy_(before)
    return grad, *others


@slices.mutant(
    "adds where it should replace",
    why="""
    The gradient through the write was *added* to what stood there. What stood there belongs to the
    new numbers, and the old ones reach the loss through the write only. Replace it with `copy_`.
    """,
)
def copy_slices(grad, part, inner):
    before, *others = inner(part(grad))
    base = grad.clone()
    part(base).add_(before)
    return base, *others


def _middle(tensor):
    return tensor[1:3]


@slices.check("view.mul_(w)")
def _(f):
    def product():
        old, w = torch.tensor([5.0, 6.0]), torch.tensor([2.0, 3.0])
        grad = torch.tensor([1.0, 10.0, 100.0, 1000.0])
        given = f(grad, _middle, lambda g: [g * w, g * old])
        return tuple(given) if isinstance(given, (list, tuple)) else given

    text = "part = t[1:3], inner = view.mul_(w) for view [5, 6] and w [2, 3]"
    yield case(text, product).gives(
        (torch.tensor([1.0, 20.0, 300.0, 1000.0]), torch.tensor([50.0, 600.0]))
    )


@slices.check("view.copy_(w): the old numbers are gone")
def _(f):
    def copied():
        grad = torch.tensor([1.0, 10.0, 100.0, 1000.0])
        return tuple(f(grad, _middle, lambda g: [g * 0, g]))

    yield case("part = t[1:3], inner = view.copy_(w)", copied).gives(
        (torch.tensor([1.0, 0.0, 0.0, 1000.0]), torch.tensor([10.0, 100.0]))
    )


@slices.check("the gradient that was given stays as it was", hidden=True)
def _(f):
    def after():
        grad = torch.tensor([1.0, 10.0, 100.0, 1000.0])
        f(grad, _middle, lambda g: [g * 2])
        return grad

    yield case("grad, after the call", after).gives(torch.tensor([1.0, 10.0, 100.0, 1000.0]))


@slices.check("as a part of toytorch")
def _(f):
    def column():
        x = _wanted([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        w = _wanted([10.0, 20.0])
        base = x * 1
        base[:, 1].mul_(w)
        with slices.door(f):
            (base * torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).sum().backward()
        return x.grad, w.grad

    # what PyTorch gives
    yield case("base = x * 1; base[:, 1].mul_(w), a column of a matrix", column).gives(
        (torch.tensor([[1.0, 20.0, 3.0], [4.0, 100.0, 6.0]]), torch.tensor([4.0, 25.0]))
    )

    def second():
        x = _wanted([1.0, 2.0, 3.0, 4.0])
        base = x * x
        base[1:3].exp_()
        with slices.door(f):
            (slope,) = torch.autograd.grad(base.sum(), x, create_graph=True)
            (bend,) = torch.autograd.grad(slope.sum(), x)
        return bend

    yield case("the second derivative of x * x with exp_() in the middle", second).gives(
        torch.tensor([2.0, 982.7667, 307917.2, 2.0]), tolerance=1e-4
    )


# -- no graph, please -----------------------------------------------------------------------------

quiet_exercise = Exercise(
    "inplace.quiet",
    "A no_grad of your own",
    chapter=5,
    minutes=10,
    prompt="""
    `torch.no_grad()` is a *context manager*: a class with `__enter__`, called at the beginning of a
    `with` block, and `__exit__`, called at its end. Write one, `quiet`.

    * `torch.is_grad_enabled()` says whether operations are recorded now; calling
      `torch.set_grad_enabled(flag)` switches it.
    * After the block everything is **as it was before**, whatever that was: blocks may stand inside
      one another.
    * An error in the block ends it too: Python calls `__exit__(kind, error, trace)`, with three
      `None` if there was no error. If `__exit__` returns something true, the error is swallowed.
    """,
)


@quiet_exercise.stub
class quiet:
    """Inside the with block no graph is recorded."""

    def __enter__(self):
        # your code here: two lines
        raise NotImplementedError

    def __exit__(self, kind, error, trace):
        # your code here: one line
        raise NotImplementedError


@quiet_exercise.reference
class quiet:
    """Inside the with block no graph is recorded."""

    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, kind, error, trace):
        torch.set_grad_enabled(self.before)


@quiet_exercise.mutant(
    "always switches on at the end",
    why="""
    At the end recording was switched on, and it may have been off before: in a function that is
    called within `no_grad`, everything after the inner block would be recorded again. Remember what
    was, and put *that* back.
    """,
)
class quiet:
    def __enter__(self):
        torch.set_grad_enabled(False)

    def __exit__(self, kind, error, trace):
        torch.set_grad_enabled(True)


@quiet_exercise.mutant(
    "forgets to restore after an error",
    why="""
    After an error, recording stayed off for the rest of the program. In a notebook that goes on,
    every later gradient is missing, and nobody knows why. `__exit__` is called in both cases: put
    things back in both.
    """,
)
class quiet:
    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, kind, error, trace):
        if kind is None:
            torch.set_grad_enabled(self.before)


@quiet_exercise.mutant(
    "swallows errors",
    why="""
    `__exit__` returned something true, which tells Python that the error has been dealt with. The
    program goes on as if nothing had happened, with a result that was never computed. Return
    nothing.
    """,
)
class quiet:
    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, kind, error, trace):
        torch.set_grad_enabled(self.before)
        return True


@quiet_exercise.mutant(
    "one memory for all",
    why="""
    What was before is kept on the class, so the inner block writes over what the outer one has to
    remember. Each block needs a memory of its own: `self.before`.
    """,
)
class quiet:
    before = True

    def __enter__(self):
        quiet.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, kind, error, trace):
        torch.set_grad_enabled(quiet.before)


@quiet_exercise.mutant(
    "switches when it is made",
    why="""
    Recording went off as soon as `quiet()` was *made*, with no `with` block in sight, and with no
    end that would switch it on again. A context manager acts in `__enter__`.
    """,
)
class quiet:
    def __init__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __enter__(self):
        pass

    def __exit__(self, kind, error, trace):
        torch.set_grad_enabled(self.before)


def _restoring(run):
    """`run` with recording on, and whatever was before put back after it."""

    def guarded():
        before = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        try:
            return run()
        finally:
            torch.set_grad_enabled(before)

    return guarded


@quiet_exercise.check("inside, outside, after")
def _(kind):
    def block():
        x = _wanted(3.0)
        with kind():
            y = x * 2
        return y.requires_grad, (x * 2).requires_grad

    text = "is it recorded inside the block, and after it?"
    yield case(text, _restoring(block)).gives((False, True))


@quiet_exercise.check("blocks inside one another")
def _(kind):
    def nested():
        with kind():
            with kind():
                pass
            inner = torch.is_grad_enabled()
        return inner, torch.is_grad_enabled()

    text = "is recording on after the inner block, and after the outer one?"
    yield case(text, _restoring(nested)).gives((False, True))

    def in_no_grad():
        with torch.no_grad():
            with kind():
                pass
            return torch.is_grad_enabled()

    yield case("and after a block inside torch.no_grad()?", _restoring(in_no_grad)).gives(False)


@quiet_exercise.check("an error in the block")
def _(kind):
    def stop():
        with kind():
            raise KeyError("an error in the block")

    yield case("with quiet(): raise KeyError", _restoring(stop)).raises(KeyError, "in the block")

    def after():
        with contextlib.suppress(KeyError):
            stop()
        return torch.is_grad_enabled()

    yield case("is recording on after an error?", _restoring(after)).gives(True)


@quiet_exercise.check("made, but not entered", hidden=True)
def _(kind):
    def made():
        kind()
        return torch.is_grad_enabled()

    yield case("is recording on after quiet() without with?", _restoring(made)).gives(True)


# -- who made the first NaN -----------------------------------------------------------------------

culprit = Exercise(
    "inplace.culprit",
    "Who made the first NaN?",
    chapter=5,
    minutes=18,
    prompt="""
    A NaN, *not a number*, is what 0/0 gives, and whatever is computed from a NaN is NaN. In a
    backward pass one NaN soon fills every gradient. The question is which node made the **first**
    one.

    Write `first_nan(loss)`: it runs `loss.backward()` and returns the node that sent the first NaN,
    or `None` if there was none.

    * `node.register_hook(f)` calls `f(sent, received)` right after the node ran: the gradients of
      its inputs, and those that had arrived. An entry of `sent` is `None` where nobody wants it.
    * So: walk over the graph from `loss.grad_fn` (as in the first exercise), put a hook on every
      node, and run backward. Nodes run one after the other.
    * NaN is meant, `g.isnan()`, not infinity.
    """,
)


@culprit.stub
def first_nan(loss):
    """The node that sends the first NaN in loss.backward(), or None."""
    # your code here: about 15 lines
    raise NotImplementedError


@culprit.reference
def first_nan(loss):
    """The node that sends the first NaN in loss.backward(), or None."""
    found = []

    def watch(node):
        def look(sent, received):
            if any(g is not None and g.isnan().any() for g in sent):
                found.append(node)

        node.register_hook(look)

    stack, seen = [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return found[0] if found else None


@culprit.mutant(
    "names the last one",
    why="""
    NaN spreads: every node behind the culprit receives one and sends one. The node that ran *last*
    is the one nearest to the leaves, and has nothing to do with it.
    """,
)
def first_nan(loss):
    found = []

    def watch(node):
        def look(sent, received):
            if any(g is not None and g.isnan().any() for g in sent):
                found.append(node)

        node.register_hook(look)

    stack, seen = [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return found[-1] if found else None


@culprit.mutant(
    "blames the one who received it",
    why="""
    The node that *received* the first NaN was named, and that is the culprit's victim. A node made
    the NaN itself if it sends one; the first to send one is the one you look for.
    """,
)
def first_nan(loss):
    found = []

    def watch(node):
        def look(sent, received):
            if any(g is not None and g.isnan().any() for g in received):
                found.append(node)

        node.register_hook(look)

    stack, seen = [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return found[0] if found else None


@culprit.mutant(
    "takes an infinity for a NaN",
    why="""
    An infinite gradient was reported. It may well be the cause, as the slope of a square root at 0
    is infinite, but it is an honest answer. NaN is made where it meets a 0: ∞ · 0. That is what
    `isnan` finds, and what anomaly detection of PyTorch looks for.
    """,
)
def first_nan(loss):
    found = []

    def watch(node):
        def look(sent, received):
            if any(g is not None and not g.isfinite().all() for g in sent):
                found.append(node)

        node.register_hook(look)

    stack, seen = [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return found[0] if found else None


@culprit.mutant(
    "forgets that an entry may be None",
    why="""
    In `x * 2` the number wants no gradient, and its entry of `sent` is `None`. There is nothing to
    ask: skip it.
    """,
)
def first_nan(loss):
    found = []

    def watch(node):
        def look(sent, received):
            if any(g.isnan().any() for g in sent):
                found.append(node)

        node.register_hook(look)

    stack, seen = [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return found[0] if found else None


@culprit.mutant(
    "goes by the walk, not by time",
    why="""
    You remembered which nodes sent a NaN and then took the first of them *in the order of your
    walk*. Your walk goes down one arm of the graph first, the engine goes by age: the node that
    stood first on your list may have run long after the culprit. Keep the nodes in the order in
    which their hooks are called.
    """,
)
def first_nan(loss):
    bad = set()

    def watch(node):
        def look(sent, received):
            if any(g is not None and g.isnan().any() for g in sent):
                bad.add(node)

        node.register_hook(look)

    order, stack, seen = [], [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        order.append(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return next((node for node in order if node in bad), None)


@culprit.mutant(
    "says nothing where there is nothing",
    why="""
    With no NaN at all the list stays empty, and its first entry is an error. Answer `None` then: it
    is the best news you can have.
    """,
)
def first_nan(loss):
    found = []

    def watch(node):
        def look(sent, received):
            if any(g is not None and g.isnan().any() for g in sent):
                found.append(node)

        node.register_hook(look)

    stack, seen = [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return found[0]


def _whose(f, loss, **named):
    node = f(loss)
    if node is None:
        return None
    names = {tensor.grad_fn: f"the node of {name}" for name, tensor in named.items()}
    return names.get(node) or (node.name() if hasattr(node, "name") else node)


@culprit.check("a root of zero, times zero")
def _(f):
    def root():
        x, y = _wanted([0.0, 4.0]), _wanted([1.0, 1.0])
        a = x * y
        b = a + y
        c = (b - y).sqrt()
        d = c * y
        return _whose(f, (d * torch.zeros(2)).sum(), a=a, b=b, c=c, d=d)

    text = "a = x * y; b = a + y; c = (b - y).sqrt(); d = c * y; loss = (d * 0).sum(), x = 0"
    yield case(text, root).gives("the node of c")


@culprit.check("no NaN at all")
def _(f):
    def fine():
        x, y = _wanted([1.0, 4.0]), _wanted([1.0, 2.0])
        return _whose(f, (x * y).sqrt().sum())

    yield case("(x * y).sqrt().sum() at x = [1, 4]", fine).gives(None)


@culprit.check("a number among the inputs")
def _(f):
    def number():
        x = _wanted([0.0, 4.0])
        a = x * 3
        b = a.sqrt()
        return _whose(f, (b * 0).sum(), a=a, b=b)

    yield case("a = x * 3; b = a.sqrt(); loss = (b * 0).sum(), x = 0", number).gives(
        "the node of b"
    )


@culprit.check("an infinity before the NaN", hidden=True)
def _(f):
    def infinite():
        x, y = _wanted([0.0, 4.0]), _wanted([0.0, 1.0])
        a = x * y
        b = a.sqrt()
        return _whose(f, b.sum(), a=a, b=b)

    yield case("a = x * y; b = a.sqrt(); loss = b.sum(), x = y = 0", infinite).gives(
        "the node of a"
    )


@culprit.check("two arms")
def _(f):
    def arms():
        x, y = _wanted([0.0, 4.0]), _wanted([1.0, 1.0])
        a = (x * y).sqrt() * torch.zeros(2)
        b = (x * y).sqrt()
        c = b * torch.zeros(2)
        return _whose(f, (c + a).sum(), b=b, c=c)

    text = "a = (x * y).sqrt() * 0; b = (x * y).sqrt(); c = b * 0; loss = (c + a).sum()"
    yield case(text, arms).gives("the node of b")

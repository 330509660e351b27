"""Wrong answers to the exercises of chapter 05."""

import contextlib

import toytorch as torch
from tests.course.wrong import like, wrong

# -- inplace.leaves -------------------------------------------------------------------------------


@wrong("inplace.leaves", "compares values to see a leaf twice")
def leaves_of(result):
    if result.grad_fn is None:
        return [result] if result.requires_grad else []
    found, stack, seen = [], [result.grad_fn], {result.grad_fn}
    while stack:
        node = stack.pop()
        if hasattr(node, "variable") and not any(
            node.variable.tolist() == other.tolist() for other in found
        ):
            found.append(node.variable)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    return found


like(
    "inplace.leaves",
    "stops at the first input that wants nothing",
    (
        "found, stack = [], [result.grad_fn]\n    seen = {result.grad_fn}",
        "found, stack, seen = [], [result.grad_fn], {result.grad_fn}",
    ),
    (
        "if target is not None and target not in seen:",
        "if target is None:\n                break\n            if target not in seen:",
    ),
)
like(
    "inplace.leaves",
    "two inputs at most",
    (
        "found, stack = [], [result.grad_fn]\n    seen = {result.grad_fn}",
        "found, stack, seen = [], [result.grad_fn], {result.grad_fn}",
    ),
    ("next_functions:", "next_functions[:2]:"),
)


@wrong("inplace.leaves", "walks every path anew")
def leaves_of(result):
    if result.grad_fn is None:
        return [result] if result.requires_grad else []
    found, stack = {}, [result.grad_fn]
    while stack:
        node = stack.pop()
        if hasattr(node, "variable"):
            found[id(node.variable)] = node.variable
        stack += [target for target, _ in node.next_functions if target is not None]
    return list(found.values())


like(
    "inplace.leaves",
    "gives the nodes",
    (
        "found, stack = [], [result.grad_fn]\n    seen = {result.grad_fn}",
        "found, stack, seen = [], [result.grad_fn], {result.grad_fn}",
    ),
    ("(node.variable)", "(node)"),
)


@wrong("inplace.leaves", "gives a tuple")
def leaves_of(result):
    if result.grad_fn is None:
        return (result,) if result.requires_grad else ()
    found, stack, seen = [], [result.grad_fn], {result.grad_fn}
    while stack:
        node = stack.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    return tuple(found)


@wrong("inplace.leaves", "runs backward to see")
def leaves_of(result):
    if result.grad_fn is None:
        return [result] if result.requires_grad else []
    found, stack, seen = [], [result.grad_fn], {result.grad_fn}
    while stack:
        node = stack.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    result.backward(torch.ones_like(result))
    return [leaf for leaf in found if leaf.grad is not None]


like(
    "inplace.leaves",
    "stops at the first leaf",
    ("found.append(node.variable)", "return [node.variable]"),
)


# -- inplace.counter ------------------------------------------------------------------------------


class _Cells:
    """The parts that are right, for the answers below to differ from."""

    def __init__(self, memory):
        self.memory, self.writes = memory, [0]
        self.start, self.stop = 0, len(memory)

    @property
    def _version(self):
        return self.writes[0]

    def read(self):
        return self.memory[self.start : self.stop]

    def part(self, start, stop):
        view = type(self)(self.memory)
        view.writes = self.writes
        view.start, view.stop = self.start + start, self.start + stop
        return view

    def write(self, numbers):
        self.memory[self.start : self.stop] = numbers
        self.writes[0] += 1

    def keep(self):
        seen = self._version

        def kept():
            if self._version != seen:
                raise RuntimeError(f"at version {self._version}; expected version {seen}")
            return self.read()

        return kept


@wrong("inplace.counter", "a part of a part counts only into its parent")
class Cells(_Cells):
    def __init__(self, memory, parent=None):
        super().__init__(memory)
        self.count, self.parent, self.parts = 0, parent, []

    @property
    def _version(self):
        return self.count

    def part(self, start, stop):
        view = Cells(self.memory, self)
        view.count = self.count
        view.start, view.stop = self.start + start, self.start + stop
        self.parts.append(view)
        return view

    def write(self, numbers):
        self.memory[self.start : self.stop] = numbers
        family = [self, *self.parts]
        if self.parent is not None:
            family += [self.parent, *(x for x in self.parent.parts if x is not self)]
        for one in family:
            one.count += 1


@wrong("inplace.counter", "a write that changes nothing does not count")
class Cells(_Cells):
    def write(self, numbers):
        if self.read() != list(numbers):
            self.memory[self.start : self.stop] = numbers
            self.writes[0] += 1


@wrong("inplace.counter", "read gives the memory itself")
class Cells(_Cells):
    def read(self):
        whole = self.stop - self.start == len(self.memory)
        return self.memory if whole else self.memory[self.start : self.stop]


@wrong("inplace.counter", "works on a copy of the list")
class Cells(_Cells):
    def __init__(self, memory):
        super().__init__(list(memory))

    def part(self, start, stop):
        view = super().part(start, stop)
        view.memory = self.memory
        return view


@wrong("inplace.counter", "one count for the whole class")
class Cells(_Cells):
    count = [0]

    def __init__(self, memory):
        super().__init__(memory)
        self.writes = Cells.count


@wrong("inplace.counter", "the view adds its parent's count to its own")
class Cells(_Cells):
    parent = None

    @property
    def _version(self):
        return self.writes[0] + (self.parent._version if self.parent else 0)

    def part(self, start, stop):
        view = super().part(start, stop)
        view.writes, view.parent = [0], self
        return view


@wrong("inplace.counter", "refuses only once")
class Cells(_Cells):
    def keep(self):
        seen = [self._version]

        def kept():
            now = self._version
            if now != seen[0]:
                before, seen[0] = seen[0], now
                raise RuntimeError(f"at version {now}; expected version {before}")
            return self.read()

        return kept


@wrong("inplace.counter", "only a write of its own makes it refuse")
class Cells(_Cells):
    def __init__(self, memory):
        super().__init__(memory)
        self.own = 0

    def write(self, numbers):
        super().write(numbers)
        self.own += 1

    def keep(self):
        seen = self.own

        def kept():
            if self.own != seen:
                raise RuntimeError(f"at version {self.own}; expected version {seen}")
            return self.read()

        return kept


@wrong("inplace.counter", "an error that names one version")
class Cells(_Cells):
    def keep(self):
        seen = self._version

        def kept():
            if self._version != seen:
                raise RuntimeError(f"expected version {seen}")
            return self.read()

        return kept


like("inplace.counter", "the version is 0 or 1", ("self.writes[0] += 1", "self.writes[0] = 1"))


# -- inplace.quiet --------------------------------------------------------------------------------


@wrong("inplace.quiet", "turns the switch over")
class quiet:
    def __enter__(self):
        torch.set_grad_enabled(not torch.is_grad_enabled())

    def __exit__(self, kind, error, trace):
        torch.set_grad_enabled(not torch.is_grad_enabled())


@wrong("inplace.quiet", "remembers what was when it was made")
class quiet:
    def __init__(self):
        self.before = torch.is_grad_enabled()

    def __enter__(self):
        torch.set_grad_enabled(False)

    def __exit__(self, kind, error, trace):
        torch.set_grad_enabled(self.before)


@wrong("inplace.quiet", "returns what was before")
class quiet:
    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, kind, error, trace):
        torch.set_grad_enabled(self.before)
        return self.before


@wrong("inplace.quiet", "is no_grad itself")
class quiet:
    def __init__(self):
        self.inner = torch.no_grad()

    def __enter__(self):
        return self.inner.__enter__()

    def __exit__(self, *error):
        return self.inner.__exit__(*error)


@wrong("inplace.quiet", "is derived from no_grad")
class quiet(torch.no_grad):
    pass


@wrong("inplace.quiet", "counts blocks, and switches on after the outermost")
class quiet:
    depth = 0

    def __enter__(self):
        quiet.depth += 1
        torch.set_grad_enabled(False)

    def __exit__(self, kind, error, trace):
        quiet.depth -= 1
        if quiet.depth == 0:
            torch.set_grad_enabled(True)


@wrong("inplace.quiet", "lets errors of its own kind pass only")
class quiet:
    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, kind, error, trace):
        torch.set_grad_enabled(self.before)
        return kind is not None and not issubclass(kind, (KeyError, RuntimeError))


# -- inplace.slices -------------------------------------------------------------------------------


@wrong("inplace.slices", "calls the node of the write twice")
def copy_slices(grad, part, inner):
    base = grad.clone()
    part(base).copy_(inner(part(grad))[0])
    return base, *inner(part(grad))[1:]


@wrong("inplace.slices", "cut from the graph outside the view")
def copy_slices(grad, part, inner):
    before, *others = inner(part(grad))
    base = grad.detach().clone()
    part(base).copy_(before)
    return base, *others


@wrong("inplace.slices", "a mask of zeros and ones")
def copy_slices(grad, part, inner):
    before, *others = inner(part(grad))
    mask = torch.ones_like(grad)
    part(mask).zero_()
    base = grad * mask
    part(base).add_(before)
    return base, *others


@wrong("inplace.slices", "hands the node a view of what it overwrites")
def copy_slices(grad, part, inner):
    base = grad.clone()
    before, *others = inner(part(base))
    part(base).copy_(before)
    return base, *others


@wrong("inplace.slices", "the other gradients are forgotten")
def copy_slices(grad, part, inner):
    base = grad.clone()
    part(base).copy_(inner(part(grad))[0])
    return (base,)


@wrong("inplace.slices", "the others come as one list")
def copy_slices(grad, part, inner):
    before, *others = inner(part(grad))
    base = grad.clone()
    part(base).copy_(before)
    return base, others


@wrong("inplace.slices", "nothing is recorded")
def copy_slices(grad, part, inner):
    with torch.no_grad():
        before, *others = inner(part(grad))
        base = grad.clone()
        part(base).copy_(before)
        return base, *others


like("inplace.slices", "forgets the other inputs", ("return base, *others", "return (base,)"))


# -- inplace.culprit ------------------------------------------------------------------------------


def _watched(loss, bad, inputs=None):
    found = []

    def watch(node):
        def look(sent, received):
            if any(g is not None and bad(g) for g in sent[:inputs]):
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
    return found


@wrong("inplace.culprit", "adds up before it looks")
def first_nan(loss):
    found = _watched(loss, lambda g: g.sum().isnan())
    loss.backward()
    return found[0] if found else None


@wrong("inplace.culprit", "looks at the first gradient that is sent")
def first_nan(loss):
    found = _watched(loss, lambda g: g.isnan().any(), inputs=1)
    loss.backward()
    return found[0] if found else None


@wrong("inplace.culprit", "all of them have to be NaN")
def first_nan(loss):
    found = _watched(loss, lambda g: g.isnan().all())
    loss.backward()
    return found[0] if found else None


@wrong("inplace.culprit", "recursion")
def first_nan(loss):
    found, seen = [], set()

    def visit(node):
        if node is None or node in seen:
            return
        seen.add(node)

        def look(sent, received):
            if any(g is not None and g.isnan().any() for g in sent):
                found.append(node)

        node.register_hook(look)
        for target, _ in node.next_functions:
            visit(target)

    visit(loss.grad_fn)
    loss.backward()
    return found[0] if found else None


@wrong("inplace.culprit", "runs backward twice")
def first_nan(loss):
    found = _watched(loss, lambda g: g.isnan().any())
    loss.backward(retain_graph=True)
    loss.backward()
    return found[0] if found else None


@wrong("inplace.culprit", "fills no gradient, as backward would")
def first_nan(loss):
    found = _watched(loss, lambda g: g.isnan().any())
    leaves, stack, seen = [], [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    torch.autograd.grad(loss, leaves, allow_unused=True)
    return found[0] if found else None


@wrong("inplace.culprit", "gives the name of the node")
def first_nan(loss):
    found = _watched(loss, lambda g: g.isnan().any())
    loss.backward()
    return found[0].name() if found else None


@wrong("inplace.culprit", "infinity counts, and an error is swallowed")
def first_nan(loss):
    found = _watched(loss, lambda g: (g != g).any() or g.abs().max() == float("inf"))
    with contextlib.suppress(RuntimeError):
        loss.backward()
    return found[0] if found else None


like(
    "inplace.culprit", "a NaN only where everything is NaN", ("g.isnan().any()", "g.isnan().all()")
)


# -- inplace.versions -----------------------------------------------------------------------------

like(
    "inplace.versions",
    "an error only if the version is higher than one",
    ("if writes[0] != version:", "if writes[0] > max(version, 1):"),
)
like(
    "inplace.versions",
    "saved tensors have to be at version 0",
    ("seen = [(x.writes, x.writes[0]) for x in saved]", "seen = [(x.writes, 0) for x in saved]"),
)
like(
    "inplace.versions",
    "log reads its result",
    (
        '        if what == "input":\n            return [self]',
        '        if what == "input":\n            return [made]',
    ),
)
like(
    "inplace.versions",
    "only the first factor is looked at",
    ("pairs = (self, given[0]), (given[0], self)", "pairs = ((self, given[0]),)"),
)
like(
    "inplace.versions",
    "counts elements, not writes",
    ("self.writes[0] += 1", "self.writes[0] += self.data.size"),
)
like(
    "inplace.versions",
    "the count is a new list after each write",
    ("self.writes[0] += 1", "self.writes = [self.writes[0] + 1]"),
)
like(
    "inplace.versions",
    "looks for views after it has written",
    (
        "        if recorded and self.viewed:\n"
        '            raise RuntimeError("a recorded write to memory with views")\n',
        "",
    ),
    (
        "        self.writes[0] += 1\n",
        "        self.writes[0] += 1\n"
        "        if recorded and self.viewed:\n"
        '            raise RuntimeError("a recorded write to memory with views")\n',
    ),
)
like(
    "inplace.versions",
    "only the view knows that it is one",
    ("made.viewed = self.viewed = True", "made.viewed = True"),
)
like(
    "inplace.versions",
    "the gradient of a part goes to all rows",
    ("whole[start:stop] = g", "whole[:] = g.sum(0) / len(g)"),
)
like(
    "inplace.versions",
    "a part is a copy",
    ("rows = self.data[start:stop]\n", "rows = self.data[start:stop].copy()\n"),
)
like(
    "inplace.versions",
    "no_grad forgets the history of what is written to",
    (
        "        self.writes[0] += 1\n",
        "        self.writes[0] += 1\n"
        "        if not Versioned.recording:\n            self.node = Tensor(self.data)\n",
    ),
)
like(
    "inplace.versions",
    "everything is refused while nothing is recorded",
    ("recorded = Versioned.recording and wants", "recorded = wants"),
)
like(
    "inplace.versions",
    "operations under no_grad are recorded",
    (
        "        if Versioned.recording:\n            made.node = node\n",
        "        made.node = node\n",
    ),
)

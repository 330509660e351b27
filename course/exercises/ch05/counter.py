"""A memory that counts its writes."""

import re

from course.cases import case
from course.properties import drawn, every
from course.records import Exercise

counter = Exercise(
    "inplace.counter",
    "A memory that counts its writes",
    chapter=5,
    minutes=30,
    prompt="""
    Write a class `Cells`: values in a memory, with views and a **count of writes**.

    | | |
    | --- | --- |
    | `Cells(memory)` | shows all of `memory`, which is a list of values |
    | `cells.read()` | the values it shows, as a list |
    | `cells.part(start, stop)` | a view of some of its values: `Cells` over the *same* memory |
    | `cells.write(numbers)` | replaces them by as many others |
    | `cells._version` | a property: how many times this **memory** was written to, through any view |
    | `cells.keep()` | a function without parameters; it returns the values, as `read()` does |

    A write through one view changes what the others show. So all objects that share a memory have
    to share one count. A part may be taken of a part.

    The nodes of a graph save tensors for the backward pass like `keep()`. If the memory was written
    to between `keep()` and the call of the function it gave, that function raises a `RuntimeError`
    that names both versions. A copy would be safe as well, but would double the memory of training.
    So keep the version and no values.
    """,
    hints=(
        """
        An integer cannot be shared: two names for it drift apart at the first `+= 1`. A *list of
        one number* can. All views hold the same memory and the same such list; only the start and
        stop are their own.
        """,
        """
        ```
        cells = Cells([1, 2, 3, 4, 5])     memory M, writes W = [0], from 0 to 5
        a = cells.part(1, 5)               M, W, from 1 to 5
        b = a.part(1, 3)                   M, W, from 1 + 1 to 1 + 3
        kept = a.keep()                    notes version 0
        b.write([30, 40])                  M = [1, 2, 30, 40, 5], W = [1]
        cells._version, a._version         1, 1: both read the same W
        kept()                             version 1, expected 0: RuntimeError
        ```

        `keep` needs no copy of the values. It notes `self._version` and returns a function that
        compares it with `self._version` of the moment in which it is called.
        """,
        """
        ```python
        class Cells:
            def __init__(self, memory):
                self.memory, self.writes = memory, [0]
                self.start, self.stop = 0, len(memory)

            @property
            def _version(self):
                return self.writes[0]

            def read(self):
                return ...

            def part(self, start, stop):
                view = Cells(self.memory)
                view.writes = ...
                view.start, view.stop = ...
                return view

            def write(self, numbers):
                ...
                self.writes[0] += 1

            def keep(self):
                seen = self._version

                def kept():
                    if ...:
                        raise RuntimeError(f"at {self._version}; expected version {seen}")
                    return self.read()

                return kept
        ```
        """,
    ),
)


@counter.stub
class Cells:
    """Values in a memory shared with views, and a count of writes."""

    def __init__(self, memory):
        # your code here: about 22 lines in all
        raise NotImplementedError


@counter.reference
class Cells:
    """Values in a memory shared with views, and a count of writes."""

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

    def keep(self):
        seen = self._version

        def kept():
            now = self._version
            if now != seen:
                raise RuntimeError(f"at {now}; expected version {seen}")
            return self.read()

        return kept


@counter.mutant(
    "every view counts for itself",
    why="""
    A view began with a count of its own. A write through it changes the values for all, but not the
    count of the others: a saved tensor would look unchanged. The count belongs to the memory, and a
    view shares it like the values themselves.
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

    def keep(self):
        seen = self._version

        def kept():
            now = self._version
            if now != seen:
                raise RuntimeError(f"at {now}; expected version {seen}")
            return self.read()

        return kept


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

    def keep(self):
        seen = self._version

        def kept():
            now = self._version
            if now != seen:
                raise RuntimeError(f"at {now}; expected version {seen}")
            return self.read()

        return kept


@counter.mutant(
    "counts reads as well",
    why="""
    Reading was counted. Reading changes nothing, so it is not counted. Otherwise a saved tensor
    would look as if it had been written to as soon as it is printed.
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

    def keep(self):
        seen = self._version

        def kept():
            now = self._version
            if now != seen:
                raise RuntimeError(f"at {now}; expected version {seen}")
            return self.read()

        return kept


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

    def keep(self):
        seen = self._version

        def kept():
            now = self._version
            if now != seen:
                raise RuntimeError(f"at {now}; expected version {seen}")
            return self.read()

        return kept


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

    def keep(self):
        seen = self._version

        def kept():
            now = self._version
            if now != seen:
                raise RuntimeError(f"at {now}; expected version {seen}")
            return self.read()

        return kept


@counter.mutant(
    "counts values, not writes",
    why="""
    The count grew by the *number of values* that were written. One write counts once, however many
    values it changes: `mul_` on a million elements raises the version by 1.
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

    def keep(self):
        seen = self._version

        def kept():
            now = self._version
            if now != seen:
                raise RuntimeError(f"at {now}; expected version {seen}")
            return self.read()

        return kept


@counter.mutant(
    "keeps a copy",
    why="""
    The values were copied when they were kept, so they are right and no error is needed. But a
    network keeps the result of nearly every operation, and each would be in memory twice. A version
    is one integer.
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
        view.writes = self.writes  # the same list, not the same number
        view.start, view.stop = self.start + start, self.start + stop
        return view

    def write(self, numbers):
        self.memory[self.start : self.stop] = numbers
        self.writes[0] += 1

    def keep(self):
        numbers = self.read()
        return lambda: numbers


@counter.mutant(
    "asks for the version too late",
    why="""
    The version was read when the function was called, so it was compared with itself. Note it in
    `keep()`: the derivative needs the values of that moment.
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
        view.writes = self.writes  # the same list, not the same number
        view.start, view.stop = self.start + start, self.start + stop
        return view

    def write(self, numbers):
        self.memory[self.start : self.stop] = numbers
        self.writes[0] += 1

    def keep(self):
        def kept():
            seen = self._version
            now = self._version
            if now != seen:
                raise RuntimeError(f"at {now}; expected version {seen}")
            return self.read()

        return kept


@counter.mutant(
    "demands version 0",
    why="""
    A memory may have been written to *before* it was kept: a bias that was filled, a weight after a
    hundred steps. Its version is then not 0, and that is no error. What counts is whether it has
    changed *since*.
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
        view.writes = self.writes  # the same list, not the same number
        view.start, view.stop = self.start + start, self.start + stop
        return view

    def write(self, numbers):
        self.memory[self.start : self.stop] = numbers
        self.writes[0] += 1

    def keep(self):
        seen = 0

        def kept():
            now = self._version
            if now != seen:
                raise RuntimeError(f"at {now}; expected version {seen}")
            return self.read()

        return kept


@counter.mutant(
    "compares the values",
    why="""
    The values were kept and compared. That takes a copy and a pass over all of them in every
    backward, and a write of equal values is not noticed. The rule is simpler: after a write, raise
    the error.
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
        view.writes = self.writes  # the same list, not the same number
        view.start, view.stop = self.start + start, self.start + stop
        return view

    def write(self, numbers):
        self.memory[self.start : self.stop] = numbers
        self.writes[0] += 1

    def keep(self):
        seen, numbers = self._version, self.read()

        def kept():
            if self.read() != numbers:
                raise RuntimeError(f"at {self._version}; expected version {seen}")
            return self.read()

        return kept


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
            now = self._version
            if now != seen:
                raise RuntimeError(f"at {now}; expected version {seen}")
            return self.read()

        return kept


@counter.mutant(
    "a part of a part counts only into its parent",
    why="""
    A write was counted in the parent, but not in the parent's parent. All that share a memory
    share *one* count, however many steps apart they are.
    """,
)
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


@counter.mutant(
    "a write that changes nothing does not count",
    why="""
    The values were compared before counting. That is a pass over the memory at each write, and
    the rule is simpler: a write is a write. PyTorch counts `x.mul_(1)` too.
    """,
)
class Cells(_Cells):
    def write(self, numbers):
        if self.read() != list(numbers):
            self.memory[self.start : self.stop] = numbers
            self.writes[0] += 1


@counter.mutant(
    "read gives the memory itself",
    why="""
    The memory itself was returned, and not a new list. A change of that list changes the memory and
    is not counted. A slice makes a new list.
    """,
)
class Cells(_Cells):
    def read(self):
        whole = self.stop - self.start == len(self.memory)
        return self.memory if whole else self.memory[self.start : self.stop]


@counter.mutant(
    "works on a copy of the list",
    why="""
    The list that was handed in is the memory. A copy of it is another memory: what is written
    does not reach the owner of the list.
    """,
)
class Cells(_Cells):
    def __init__(self, memory):
        super().__init__(list(memory))

    def part(self, start, stop):
        view = super().part(start, stop)
        view.memory = self.memory
        return view


@counter.mutant(
    "refuses only once",
    why="""
    After the first refusal the version was noted anew, so that the second call returned values that
    are not those of the moment of `keep()`. What was overwritten stays lost: raise the error every
    time.
    """,
)
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


@counter.check("what was kept is given back")
def _(cells_class):
    def untouched():
        cells = cells_class([1, 2, 3, 4])
        kept = cells.part(1, 3).keep()
        return kept(), kept()

    yield case("kept = cells.part(1, 3).keep(); kept(), kept()", untouched).gives(([2, 3], [2, 3]))

    def before():
        cells = cells_class([1, 2])
        cells.write([3, 4])
        return cells.keep()()

    yield case("cells.write([3, 4]); cells.keep()()", before).gives([3, 4])


@counter.check("or refused, if it was written to")
def _(cells_class):
    def written(write, keep=lambda cells: cells.keep()):
        cells = cells_class([1, 2, 3, 4])
        kept = keep(cells)
        write(cells)
        return kept()

    def twice(cells):
        cells.write([0, 0, 0, 0])
        cells.write([1, 2, 3, 4])

    for text, write in (
        ("cells.write([5, 6, 7, 8])", lambda cells: cells.write([5, 6, 7, 8])),
        ("cells.part(0, 1).write([9])", lambda cells: cells.part(0, 1).write([9])),
        ("two writes, the second of which puts the same values back", twice),
    ):
        given = f"kept = cells.keep(); {text}; kept()"
        yield case(given, lambda w=write: written(w)).raises(RuntimeError, "version")


def _any_use(draw):
    """A list and what is done to it, step by step; each step names the cells it is done to."""
    size = draw.randint(1, 4)
    steps, lengths, kept = [], [size], 0
    for _ in range(draw.randint(1, 8)):
        which = draw.randrange(len(lengths))
        what = draw.choice(("part", "write", "write", "read", "keep", "again", "again"))
        if what == "part":
            start = draw.randint(0, lengths[which])
            stop = draw.randint(start, lengths[which])
            steps.append(("part", which, start, stop))
            lengths.append(stop - start)
        elif what == "write":
            steps.append(("write", which, *(draw.randint(0, 1) for _ in range(lengths[which]))))
        elif what == "again" and kept:
            steps.append(("again", draw.randrange(kept)))
        elif what == "keep":
            kept += 1
            steps.append(("keep", which))
        else:
            steps.append(("read", which))
    return [draw.randint(0, 1) for _ in range(size)], steps


def _said(steps):
    names = {"again": "kept{}()", "keep": "kept = c{}.keep()", "read": "c{}.read()"}
    names |= {"part": "c{}.part({}, {})", "write": "c{}.write({})"}
    texts = []
    for what, which, *more in steps:
        more = [list(more)] if what == "write" else more
        texts.append(names[what].format(which, *more))
    return "; ".join(texts)


def _trace(cells_class, memory, steps):
    """What each step gives, and every version after it."""
    memory, kept, trace = list(memory), [], []
    family = [cells_class(memory)]
    for what, which, *more in steps:
        if what == "part":
            family.append(family[which].part(*more))
        elif what == "write":
            family[which].write(list(more))
        elif what == "read":
            got = family[which].read()
            trace.append(list(got))
            got.append(7)  # the list is the caller's own
        elif what == "keep":
            kept.append((family[which].keep(), family[which]._version))
        else:
            trace.append(_again(*kept[which], family[0]))
        trace.append(tuple(cells._version for cells in family))
    return trace, memory


def _again(kept, seen, owner):
    try:
        return kept()
    except RuntimeError as error:
        numbers = {int(n) for n in re.findall(r"\d+", str(error))}
        return "refused" if {seen, owner._version} <= numbers else "refused, without both versions"


@counter.check("any use")
def _(cells_class):
    def cases():
        for make in drawn(_any_use, 200):
            memory, steps = make()
            right = _trace(counter.answer.value, memory, steps)
            yield case(f"c0 = Cells({memory}); {_said(steps)}; what came, versions, and the list",
                       lambda m=memory, s=steps: _trace(cells_class, m, s)).gives(right)

    yield every("200 random uses", cases)

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


@counter.reference(stub={
    "__init__": "your code here: about 22 lines in all",
    "_version": "",
    "read": "",
    "part": "",
    "write": "",
    "keep": "",
})
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


counter.changed(
    "every view counts for itself",
    """
    A view began with a count of its own. A write through it changes the values for all, but not the
    count of the others: a saved tensor would look unchanged. The count belongs to the memory, and a
    view shares it like the values themselves.
    """,
    ("self.memory, self.writes = memory, [0]", "self.memory, self._version = memory, 0"),
    (
        "    @property\n"
        "    def _version(self):\n"
        "        return self.writes[0]\n",
        "",
    ),
    ("        view.writes = self.writes  # the same list, not the same number\n", ""),
    ("self.writes[0] += 1", "self._version += 1"),
)

counter.changed(
    "the view copies the count",
    """
    The view took the count of that moment along, as a number of its own. From then on the two
    drift apart. `view.count = self.count` shares nothing where `count` is an integer: both need to
    hold the *same object*, a list of one number, say.
    """,
    ("self.memory, self.writes = memory, [0]", "self.memory, self._version = memory, 0"),
    (
        "    @property\n"
        "    def _version(self):\n"
        "        return self.writes[0]\n",
        "",
    ),
    ("view.writes = self.writes", "view._version = self._version"),
    ("self.writes[0] += 1", "self._version += 1"),
)

counter.changed(
    "counts reads as well",
    """
    Reading was counted. Reading changes nothing, so it is not counted. Otherwise a saved tensor
    would look as if it had been written to as soon as it is printed.
    """,
    (
        "        return self.memory[self.start : self.stop]",
        "        self.writes[0] += 1\n"
        "        return self.memory[self.start : self.stop]",
    ),
)

counter.changed(
    "the part is a copy",
    """
    `memory[start:stop]` of a Python list is a new list. The part has memory of its own, so a write
    through it does not reach the whole. A view keeps the memory and remembers from where to where.
    """,
    (
        "        view = Cells(self.memory)\n",
        "        view = Cells(self.memory[start:stop])\n",
    ),
    ("        view.start, view.stop = self.start + start, self.start + stop\n", ""),
)

counter.changed(
    "a part of a part counts from the beginning",
    """
    `start` and `stop` count within the part they are asked of. The part's own beginning has to be
    added, as a view of a view adds its offset to that of the view.
    """,
    (
        "view.start, view.stop = self.start + start, self.start + stop",
        "view.start, view.stop = start, stop",
    ),
)

counter.changed(
    "counts values, not writes",
    """
    The count grew by the *number of values* that were written. One write counts once, however many
    values it changes: `mul_` on a million elements raises the version by 1.
    """,
    ("self.writes[0] += 1", "self.writes[0] += len(numbers)"),
)

counter.changed(
    "keeps a copy",
    """
    The values were copied when they were kept, so they are right and no error is needed. But a
    network keeps the result of nearly every operation, and each would be in memory twice. A version
    is one integer.
    """,
    (
        "        seen = self._version\n"
        "\n"
        "        def kept():\n"
        "            now = self._version\n"
        "            if now != seen:\n"
        '                raise RuntimeError(f"at {now}; expected version {seen}")\n'
        "            return self.read()\n"
        "\n"
        "        return kept",
        "        numbers = self.read()\n"
        "        return lambda: numbers",
    ),
)

counter.changed(
    "asks for the version too late",
    """
    The version was read when the function was called, so it was compared with itself. Note it in
    `keep()`: the derivative needs the values of that moment.
    """,
    ("        seen = self._version\n", ""),
    (
        "            now = self._version",
        "            seen = self._version\n"
        "            now = self._version",
    ),
)

counter.changed(
    "demands version 0",
    """
    A memory may have been written to *before* it was kept: a bias that was filled, a weight after a
    hundred steps. Its version is then not 0, and that is no error. What counts is whether it has
    changed *since*.
    """,
    ("seen = self._version", "seen = 0"),
)

counter.changed(
    "compares the values",
    """
    The values were kept and compared. That takes a copy and a pass over all of them in every
    backward, and a write of equal values is not noticed. The rule is simpler: after a write, raise
    the error.
    """,
    ("seen = self._version", "seen, numbers = self._version, self.read()"),
    (
        "            now = self._version\n"
        "            if now != seen:\n"
        '                raise RuntimeError(f"at {now}; expected version {seen}")',
        "            if self.read() != numbers:\n"
        '                raise RuntimeError(f"at {self._version}; expected version {seen}")',
    ),
)

counter.changed(
    "a part of a part counts only into its parent",
    """
    A write was counted in the parent, but not in the parent's parent. All that share a memory
    share *one* count, however many steps apart they are.
    """,
    ("    def __init__(self, memory):\n", "    def __init__(self, memory, parent=None):\n"),
    (
        "        self.memory, self.writes = memory, [0]\n",
        "        self.memory, self.count, self.parent, self.parts = memory, 0, parent, []\n",
    ),
    ("        return self.writes[0]\n", "        return self.count\n"),
    ("        view = Cells(self.memory)\n", "        view = Cells(self.memory, self)\n"),
    (
        "        view.writes = self.writes  # the same list, not the same number\n",
        "        view.count = self.count\n"
        "        self.parts.append(view)\n",
    ),
    (
        "        self.writes[0] += 1\n",
        "        family = [self, *self.parts]\n"
        "        if self.parent is not None:\n"
        "            family += [self.parent, *(x for x in self.parent.parts if x is not self)]\n"
        "        for one in family:\n"
        "            one.count += 1\n",
    ),
)

counter.changed(
    "a write that changes nothing does not count",
    """
    The values were compared before counting. That is a pass over the memory at each write, and
    the rule is simpler: a write is a write. PyTorch counts `x.mul_(1)` too.
    """,
    (
        "        self.memory[self.start : self.stop] = numbers\n"
        "        self.writes[0] += 1\n",
        "        if self.read() != list(numbers):\n"
        "            self.memory[self.start : self.stop] = numbers\n"
        "            self.writes[0] += 1\n",
    ),
)

counter.changed(
    "read gives the memory itself",
    """
    The memory itself was returned, and not a new list. A change of that list changes the memory and
    is not counted. A slice makes a new list.
    """,
    (
        "        return self.memory[self.start : self.stop]\n",
        "        whole = self.stop - self.start == len(self.memory)\n"
        "        return self.memory if whole else self.memory[self.start : self.stop]\n",
    ),
)

counter.changed(
    "works on a copy of the list",
    """
    The list that was handed in is the memory. A copy of it is another memory: what is written
    does not reach the owner of the list.
    """,
    ("self.memory, self.writes = memory, [0]", "self.memory, self.writes = list(memory), [0]"),
    ("        view.writes =", "        view.memory = self.memory\n        view.writes ="),
)

counter.changed(
    "refuses only once",
    """
    After the first refusal the version was noted anew, so that the second call returned values that
    are not those of the moment of `keep()`. What was overwritten stays lost: raise the error every
    time.
    """,
    ("        seen = self._version\n", "        seen = [self._version]\n"),
    (
        "            if now != seen:\n"
        '                raise RuntimeError(f"at {now}; expected version {seen}")\n',
        "            if now != seen[0]:\n"
        "                before, seen[0] = seen[0], now\n"
        '                raise RuntimeError(f"at version {now}; expected version {before}")\n',
    ),
)


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

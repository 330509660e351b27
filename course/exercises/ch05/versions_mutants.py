"""What goes wrong with in-place writes: the mutants of `versions`."""

from course.exercises.ch05.versions import versions

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

versions.changed(
    "the count is a new list after each write",
    """
    The write put a *new* list in the place of the old one. Views, and the derivatives that noted the
    old list, go on reading that one and never see the write. Change the number in the shared list.
    """,
    ("self.writes[0] += 1", "self.writes = [self.writes[0] + 1]"),
)

versions.changed(
    "only the view knows that it is one",
    """
    The result was marked as viewed, and `self` was not. A recorded write to `self` then changes the
    view's elements without entering its history. Both share the memory, so mark both.
    """,
    ("made.viewed = self.viewed = True", "made.viewed = True"),
)

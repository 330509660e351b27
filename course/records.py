"""The exercise record: what a learner is asked, how it is checked, and where it plugs in.

shape_of = Exercise("tensors.shape_of", "The shape of a nested list",
                    chapter=1, minutes=10, prompt="...")

@shape_of.reference(stub="your code here: about 7 lines")
def nested_shape(data): ...

@shape_of.mutant("counts only the outer list", why="...")
def nested_shape(data): ...

@shape_of.check("a list of lists")
def _(nested_shape):
    yield call(nested_shape, [[1, 2, 3], [4, 5, 6]]).gives((2, 3))
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from course.cases import Case
from course.variant import Variant

T = TypeVar("T")
Injection = Callable[[Any], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Check:
    """A named group of cases: a generator over the submission.

    A ``hidden`` check runs in the learner's own notebook like any other. An assignment made for
    nbgrader leaves it out of what students see, and marks with it.
    """

    title: str
    cases: Callable[[Any], Iterator[Case]]
    hidden: bool = False


@dataclass(eq=False)
class Exercise:
    """One exercise of the course.

    Args:
        name: what ``check`` is called with, ``"engine.order"``; unique in the course.
        title: a line for panels and lists.
        chapter: the chapter's number.
        minutes: how long a learner should expect to take.
        prompt: Markdown above the stub. Say what goes in, what comes out, and what to avoid.
        inject: ``submission -> context manager`` that makes the framework run on the submission.
        limit: seconds that all checks together may take before a loop is called endless.
        without: what an answer may not call, ``("torch.autograd.gradcheck",)``: the framework's own
            answer to the same question. See :mod:`course.borrowed`.
        hints: three in Markdown: an idea, a worked trace, a skeleton. See :mod:`course.hints`.
        optional: whether it is left out of what a chapter asks for.
    """

    name: str
    title: str
    chapter: int
    minutes: int
    prompt: str
    inject: Injection | None = None
    limit: float = 10.0
    without: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    optional: bool = False
    checks: list[Check] = field(default_factory=list)
    mutants: list[Variant] = field(default_factory=list)
    _stub: Variant | None = None
    _reference: Variant | None = None
    _green: Any = None  # the submission that last passed in this session
    _installed: ExitStack | None = None

    def __post_init__(self) -> None:
        self.prompt = textwrap.dedent(self.prompt).strip()
        self.hints = tuple(textwrap.dedent(hint).strip() for hint in self.hints)

    def __repr__(self) -> str:
        return f"<exercise {self.name}: {self.title}, {self.minutes} min>"

    # -- definition -----------------------------------------------------------------------------

    def stub(self, definition: T) -> T:
        """Decorator: what the learner starts from; it ends in ``raise NotImplementedError``."""
        self._stub = Variant.of(definition, "stub")
        return definition

    def reference(
        self, stub: str | Mapping[str, str] = "", *changes: tuple[str, str]
    ) -> Callable[[T], T]:
        """Decorator: the answer the solved notebook shows.

        ``stub`` makes the stub of it: what learners find in place of its bodies. See
        :meth:`course.variant.Variant.emptied`.
        """

        def keep(definition: T) -> T:
            self._reference = Variant.of(definition, "reference")
            if stub:
                self._stub = self._reference.emptied(stub, changes)
            return definition

        return keep

    def mutant(self, label: str, why: str) -> Callable[[T], T]:
        """Decorator: a misconception as code, its name, and the explanation it earns."""

        def keep(definition: T) -> T:
            self.mutants.append(Variant.of(definition, "mutant", label, why))
            return definition

        return keep

    def changed(self, label: str, why: str, *changes: tuple[str, str]) -> None:
        """A mutant that is the reference but for some places: (text, what stands there instead)."""
        self.mutants.append(self.answer.changed("mutant", label, why, changes))

    def check(
        self, title: str, *, hidden: bool = False
    ) -> Callable[[Callable[[Any], Iterator[Case]]], Any]:
        """Decorator: a generator of cases, given the submission; see :class:`Check`."""

        def keep(cases: Callable[[Any], Iterator[Case]]) -> Any:
            self.checks.append(Check(title, cases, hidden))
            return cases

        return keep

    # -- parts ----------------------------------------------------------------------------------

    @property
    def answer(self) -> Variant:
        """The reference variant."""
        return self._part(self._reference, "reference")

    @property
    def start(self) -> Variant:
        """The stub variant."""
        return self._part(self._stub, "stub")

    @property
    def function(self) -> str:
        """The name that the learner's function or class has."""
        return "your function" if self._stub is None else self._stub.name

    def _part(self, variant: Variant | None, kind: str) -> Variant:
        if variant is None:
            raise LookupError(f"exercise {self.name} has no {kind}: add one under @….{kind}")
        return variant

    # -- in a session ---------------------------------------------------------------------------

    def keep(self, submission: Any) -> None:
        """Remember (or, given None, forget) the submission that passes."""
        self._green = submission

    def piece(self) -> Any:
        """The submission that last passed its checks, else the framework's own piece."""
        return self.answer.value if self._green is None else self._green

    @contextmanager
    def active(self, *, quiet: bool = False) -> Iterator[Any]:
        """Run the framework on the submission while the ``with`` block lasts.

        What plugs in is the code that last passed ``check`` in this session. While the exercise is
        open or red, the framework's own piece stays where it is, so that the notebook goes on.

        Raises:
            RuntimeError: the exercise has no injection point in the framework.
        """
        if not quiet:
            print(self._announcement())
        if self._green is None:
            self._need_door()
            yield self.answer.value
        else:
            with self._need_door()(self._green):
                yield self._green

    def install(self, *, quiet: bool = False) -> None:
        """Like :meth:`active`, for the rest of the session or until :meth:`uninstall`."""
        self.uninstall()
        stack = ExitStack()
        stack.enter_context(self.active(quiet=quiet))
        self._installed = stack

    def uninstall(self) -> None:
        """Give the framework its own piece back."""
        if self._installed is not None:
            self._installed.close()
            self._installed = None

    def _need_door(self) -> Injection:
        if self.inject is None:
            raise RuntimeError(
                f"exercise {self.name} has no injection point in the framework: "
                f'call the function itself, or use("{self.name}")'
            )
        return self.inject

    def _announcement(self) -> str:
        if self._green is None:
            return f"{self.function} is not solved yet: toytorch uses its own."
        return f"toytorch now runs on your {self.function}."

"""Judging a submission: run the cases, decide green, red or open, and recognise a misconception."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from course import borrowed, deadline, diagnosis, progress, running
from course.cases import Case
from course.panel import Panel
from course.records import Check, Exercise
from course.registry import exercise
from course.running import Came
from course.variant import Variant


@dataclass(frozen=True)
class Outcome:
    """What one case came to. ``kind`` is ok, wrong, error, timeout, open, broken or borrowed.

    ``symptoms`` and ``args`` are for :mod:`course.diagnosis`.
    """

    check: str
    kind: str
    given: str
    wanted: str
    got: str
    where: str = ""
    symptoms: tuple[str, ...] = ()
    args: tuple[Any, ...] = ()
    fine: tuple[tuple[Any, ...], ...] = ()  # the inputs of those of its steps that are right

    @property
    def unwritten(self) -> bool:
        """Whether it ended at a stub's ``raise NotImplementedError``."""
        return self.kind == "error" and bool(self.where) and self.got == "NotImplementedError"

    @property
    def signature(self) -> tuple[str, str]:
        """What makes two failures the same failure."""
        return self.kind, self.got


@dataclass
class Verdict:
    """The result of a check: a state, every case's outcome, and what is known of the mistake.

    ``mutant`` is the misconception that fails in the same way. Where there is none, ``diagnosis``
    says in a sentence what all failures have in common, if they have something in common.
    """

    exercise: Exercise
    state: str
    outcomes: list[Outcome] = field(default_factory=list)
    mutant: Variant | None = None
    hidden: bool = True  # whether hidden checks took part
    diagnosis: str = ""

    @property
    def checks(self) -> list[Check]:
        """The checks that took part."""
        return _checks(self.exercise, self.hidden)

    @property
    def failure(self) -> Outcome | None:
        """The first case that failed."""
        return next((o for o in self.outcomes if o.kind != "ok"), None)

    @property
    def unfinished(self) -> bool:
        """Whether some cases pass, and all others end at a line that is still to be written."""
        rest = [o for o in self.outcomes if o.kind != "ok"]
        return 0 < len(rest) < len(self.outcomes) and all(o.unwritten for o in rest)

    def passed(self, check: str) -> bool | None:
        """Whether all cases of a check passed; None if none of them was reached."""
        kinds = [o.kind for o in self.outcomes if o.check == check]
        return all(kind == "ok" for kind in kinds) if kinds else None


def check(name: str, submission: Any, *, hidden: bool = True) -> Panel:
    """Check a submission and show the result as a panel; progress is recorded.

    Args:
        name: the exercise, as in its prompt: ``"tensors.shape_of"``.
        submission: your function or class.
        hidden: whether hidden checks run too; assignments for nbgrader leave them out.

    Raises:
        LookupError: no such exercise; the message suggests the nearest names.
    """
    found = exercise(name)
    verdict = judge(found, submission, hidden=hidden)
    found.keep(submission if verdict.state == "green" else None)
    progress.record({name: verdict.state})
    progress.note(name, "check", verdict.state)
    if verdict.state == "green":
        from course import pieces  # which judges in its turn

        pieces.keep(found)
    return Panel(verdict)


def judge(found: Exercise, submission: Any, *, hidden: bool = True) -> Verdict:
    """Run the checks of an exercise over a submission, without recording anything."""
    if submission is None or submission is Ellipsis:
        return Verdict(found, "open", hidden=hidden)
    return verdict_on(found, run_checks(found, submission, hidden=hidden), hidden=hidden)


def verdict_on(found: Exercise, outcomes: list[Outcome], *, hidden: bool = True) -> Verdict:
    """What the outcomes of all cases come to, and which misconception it looks like."""
    state = state_of(outcomes)
    if state != "red":
        return Verdict(found, state, outcomes if state == "green" else [], hidden=hidden)
    known = functools.partial(_signature, found, hidden=hidden)
    mutant = recognise(found, outcomes, known)
    verdict = Verdict(found, "red", outcomes, mutant, hidden)
    if mutant is None and not verdict.unfinished:
        verdict.diagnosis = _diagnosis(outcomes)
    return verdict


def _diagnosis(outcomes: list[Outcome]) -> str:
    ended = next((o for o in outcomes if o.kind == "timeout"), None)
    if ended is not None:
        return "".join(ended.symptoms) or _ENDLESS
    if any(outcome.kind in ("broken", "borrowed") for outcome in outcomes):
        return ""
    failing = [diagnosis.Failure(o.symptoms, o.args, o.given) for o in outcomes if o.kind != "ok"]
    return diagnosis.common(failing, [args for o in outcomes for args in o.fine])


_ENDLESS = (
    "Your code does not come to its end: a loop goes on for ever, or takes far too many steps."
)


def state_of(outcomes: list[Outcome]) -> str:
    """What the outcomes of all cases come to: green, red or open."""
    if outcomes and outcomes[0].kind == "open":
        return "open"
    return "green" if outcomes and all(outcome.kind == "ok" for outcome in outcomes) else "red"


def _checks(found: Exercise, hidden: bool) -> list[Check]:
    return [check for check in found.checks if hidden or not check.hidden]


def recognise(
    found: Exercise, outcomes: list[Outcome], known: Callable[[int], list[tuple[str, str]]]
) -> Variant | None:
    """The mutant that fails the same cases in the same way, or next to it.

    ``known`` gives the signatures of the outcomes of a mutant, by its position.
    """
    if any(outcome.kind in ("broken", "borrowed") for outcome in outcomes):
        return None
    signature = [outcome.signature for outcome in outcomes]
    failing = [s if s[0] != "ok" else None for s in signature]
    near = None
    for position, mutant in enumerate(found.mutants):
        theirs = known(position)
        if theirs == signature:
            return mutant
        same_cases = [s[0] for s in theirs] == [s[0] for s in signature]
        if near is None and same_cases and _first(theirs) == next(filter(None, failing), None):
            near = mutant
    return near


def _first(signature: list[tuple[str, str]]) -> tuple[str, str] | None:
    return next((s for s in signature if s[0] != "ok"), None)


_known: dict[tuple[str, int, bool], list[tuple[str, str]]] = {}


def know(found: Exercise, position: int, outcomes: list[Outcome], *, hidden: bool = True) -> None:
    """Keep what a mutant came to, for the answers that are compared with it."""
    _known[found.name, position, hidden] = [outcome.signature for outcome in outcomes]


def _signature(found: Exercise, position: int, *, hidden: bool) -> list[tuple[str, str]]:
    """A mutant's outcomes, run once a session."""
    key = (found.name, position, hidden)
    if key not in _known:
        outcomes = run_checks(found, found.mutants[position].value, hidden=hidden)
        know(found, position, outcomes, hidden=hidden)
    return _known[key]


def run_checks(found: Exercise, submission: Any, *, hidden: bool = True) -> list[Outcome]:
    """Every case's outcome, up to the time limit."""
    trial = Trial(found, submission, _checks(found, hidden))
    name = borrowed.handed_in(submission, found.without)
    if name:
        return [trial.borrowed(name)]
    if not deadline.run(trial.go, found.limit):
        trial.outcomes.append(trial.out_of_time())
    elif not trial.done:
        trial.outcomes.append(trial.cut_short())
    return trial.outcomes


class Trial:
    """One run over all checks. It keeps its place, so that a stop can say where it was.

    In marking the answer runs in another process, and :mod:`course.marking.referee` has a trial of
    its own that gets told what each step came to.
    """

    def __init__(self, found: Exercise, submission: Any, checks: list[Check]) -> None:
        self.found = found
        self.submission = submission
        self.checks = checks
        self.outcomes: list[Outcome] = []
        self.check = checks[0].title if checks else ""
        self.case: Case | None = None
        self.done = False

    def go(self) -> None:
        """Run all checks, as far as there is a point in going on."""
        if not self.found.without:
            self.judge([])
            return
        checks = [check.cases for check in self.checks]
        with borrowed.watched(self.submission, self.found.without, checks) as calls:
            self.judge(calls)

    def judge(self, calls: list[str]) -> None:
        """Outcomes of all checks. ``calls`` are those of the framework's own answers, if any."""
        for group in self.checks:
            self.check, self.case = group.title, None
            for outcome in self.outcomes_of(group):
                self.outcomes.append(outcome)
                if calls:  # whatever was right before this came from there, too
                    self.outcomes[:] = [self.borrowed(calls[0])]
                    self.done = True
                    return
                if outcome.kind in ("open", "broken"):
                    self.done = True
                    return
        self.done = True

    def borrowed(self, name: str) -> Outcome:
        """The only outcome of an answer that is, or calls, the framework's own."""
        given = self.case.given if self.case else "your answer"
        return Outcome(self.check, "borrowed", given, "code of your own", name)

    def outcomes_of(self, group: Check) -> Iterator[Outcome]:
        """Outcomes of a check. An error between its cases ends that check, not the others."""
        try:
            for case in group.cases(self.submission):
                self.case = case
                yield self.outcome(case)
        except (deadline.OutOfTime, GeneratorExit):
            raise
        except BaseException as error:
            where = running.line_in(self.submission, error)
            yield self.in_between(group, Came(error=error, where=where))

    def outcome(self, case: Case) -> Outcome:
        """What a case comes to: that of its first step that fails."""
        got, steps = "", case.steps()
        fine: list[tuple[Any, ...]] = []
        while True:
            try:
                step = next(steps, None)
            except deadline.OutOfTime:
                raise
            except Exception as error:
                return self.no_step(case, error)
            if step is None:
                break
            self.case = step
            came = self.came(step)
            if came.error is None and came.got is Ellipsis and not self.outcomes:
                return Outcome(self.check, "open", step.given, step.wanted, "...")
            right = step.accepts(came.got) if came.error is None else step.accepts_error(came.error)
            if not right:
                return self._failure(case, step, came, fine)
            fine.append(step.args)
            got = step.describe(came.got) if came.error is None else running.said(came.error)
        self.case = case
        got = got if case.single else f"{len(fine)} inputs, all right"
        return self._outcome_of(case, "ok", got, fine=fine)

    def came(self, step: Case) -> Came:
        """What a step comes to: here it is run."""
        step.settle()
        return running.run(step, self.submission)

    def no_step(self, case: Case, error: BaseException) -> Outcome:
        """The outcome of a case whose next step could not be made."""
        return self._failure(case, case, Came(None, error, running.line_in(self.submission, error)))

    def in_between(self, group: Check, came: Came) -> Outcome:
        """The outcome of an error that came from none of a check's cases."""
        place = Case(f"the set-up of “{group.title}”", lambda: None)
        return self._failure(place, place, came)

    def _outcome_of(
        self,
        case: Case,
        kind: str,
        got: str,
        where: str = "",
        symptoms: tuple[str, ...] = (),
        fine: Sequence[tuple[Any, ...]] = (),
    ) -> Outcome:
        text = self.check, kind, case.given, case.wanted, got, where
        return Outcome(*text, symptoms, case.args, tuple(fine))

    def _failure(
        self, case: Case, step: Case, came: Came, fine: Sequence[tuple[Any, ...]] = ()
    ) -> Outcome:
        step.says = step.says or case.says
        error, where = came.error, came.where
        if error is None:
            found = _guarded(lambda: diagnosis.symptoms(step, came.got, came.printed))
            got = step.describe(came.got)
            return self._outcome_of(step, "wrong", got, symptoms=found, fine=fine)
        if isinstance(error, NotImplementedError) and not self.outcomes and where:
            return Outcome(self.check, "open", step.given, step.wanted, running.said(error))
        # without a line of the learner's on the stack, it is the check that is wrong
        kind = "error" if where or self.case is not None else "broken"
        found = _guarded(lambda: diagnosis.symptoms_of_error(step, error, where))
        return self._outcome_of(step, kind, running.said(error), where, found, fine)

    def out_of_time(self) -> Outcome:
        """The last outcome of an answer that ran out of time."""
        got = f"no answer within {self.found.limit:g} s: does a loop never end?"
        return self._ended("timeout", got)

    def cut_short(self) -> Outcome:
        """The last outcome of an answer that ended the thread it ran in."""
        return self._ended("error", "the code ended the thread it ran in")

    def _ended(self, kind: str, got: str) -> Outcome:
        given = self.case.given if self.case else f"the set-up of “{self.check}”"
        wanted = self.case.wanted if self.case else "an end"
        says = (self.case.says,) if self.case and self.case.says else ()
        return Outcome(self.check, kind, given, wanted, got, symptoms=says)


def _guarded(find: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """Symptoms of a result that may be anything at all; none where looking at it fails."""
    try:
        return find()
    except Exception:
        return ()

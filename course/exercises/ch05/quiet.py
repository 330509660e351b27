"""A no_grad of your own."""

import contextlib

import toytorch as torch
from course.cases import case
from course.exercises.ch05.common import _wanted
from course.records import Exercise

quiet_exercise = Exercise(
    "inplace.quiet",
    "A no_grad of your own",
    chapter=5,
    minutes=10,
    without=("torch.no_grad", "torch.inference_mode"),
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
    hints=(
        """
        Three things have to happen: note what is set now, switch it off, and afterwards put back what was
        noted. The first two belong to `__enter__`, the third to `__exit__`. Keep the note on `self`, so that
        each block has its own.
        """,
        """
        ```
                                          recording   outer.before   inner.before
        with quiet():   (outer)           off         on
            with quiet():   (inner)       off         on             off
                ...
            the inner block ends          off         on             off   put back: off
        the outer block ends              on          on                   put back: on
        ```

        If `__exit__` switched recording *on* each time, it would be on in the third row, in the middle of
        the outer block.
        """,
        """
        ```python
        class quiet:
            def __enter__(self):
                self.before = ...
                torch.set_grad_enabled(False)

            def __exit__(self, kind, error, trace):
                ...
        ```
        """,
    ),
)


@quiet_exercise.reference(stub={
    "__enter__": "your code here: two lines",
    "__exit__": "your code here: one line",
})
class quiet:
    """Inside the with block no graph is recorded."""

    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, kind, error, trace):
        torch.set_grad_enabled(self.before)


quiet_exercise.changed(
    "always switches on at the end",
    """
    At the end recording was switched on, and it may have been off before: in a function that is
    called within `no_grad`, everything after the inner block would be recorded again. Remember what
    was, and put *that* back.
    """,
    ("        self.before = torch.is_grad_enabled()\n", ""),
    ("self.before", "True"),
)

quiet_exercise.changed(
    "forgets to restore after an error",
    """
    After an error, recording stayed off for the rest of the program. If the program goes on, every
    later gradient is missing, and no message says why. `__exit__` is called in both cases: put
    things back in both.
    """,
    (
        "        torch.set_grad_enabled(self.before)",
        "        if kind is None:\n            torch.set_grad_enabled(self.before)",
    ),
)

quiet_exercise.changed(
    "swallows errors",
    """
    `__exit__` returned something true, which tells Python that the error has been dealt with. The
    program goes on as if nothing had happened, with a result that was never computed. Return
    nothing.
    """,
    (
        "        torch.set_grad_enabled(self.before)",
        "        torch.set_grad_enabled(self.before)\n"
        "        return True",
    ),
)


@quiet_exercise.mutant(
    "one attribute for all",
    why="""
    What was before is kept on the class, so the inner block overwrites what the outer one has to
    remember. Each block needs an attribute of its own: `self.before`.
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
    Recording went off as soon as `quiet()` was *made*, without a `with` block that would switch it
    on again at its end. A context manager acts in `__enter__`.
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


@quiet_exercise.mutant(
    "turns the switch over",
    why="""
    The switch was turned over twice. Inside a block that is already quiet, the first turn
    switches recording *on*. Set it to `False`, and afterwards to what it was.
    """,
)
class quiet:
    def __enter__(self):
        torch.set_grad_enabled(not torch.is_grad_enabled())

    def __exit__(self, kind, error, trace):
        torch.set_grad_enabled(not torch.is_grad_enabled())


@quiet_exercise.mutant(
    "remembers what was when it was made",
    why="""
    What was before is noted in `__init__`. Between making and entering, the setting may have
    changed: note it in `__enter__`.
    """,
)
class quiet:
    def __init__(self):
        self.before = torch.is_grad_enabled()

    def __enter__(self):
        torch.set_grad_enabled(False)

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


@quiet_exercise.check("whatever was before")
def _(kind):
    def elsewhere():
        block = kind()
        with torch.no_grad(), block:
            pass
        with torch.no_grad():
            with block:
                inside = torch.is_grad_enabled()
            return inside, torch.is_grad_enabled()

    text = "block = quiet(), entered inside torch.no_grad(): is recording on inside, and after it?"
    yield case(text, _restoring(elsewhere)).gives((False, False))

    def between():
        with kind():
            with torch.enable_grad():
                with kind():
                    inside = torch.is_grad_enabled()
                after = torch.is_grad_enabled()
            return inside, after, torch.is_grad_enabled()

    text = "quiet() inside enable_grad() inside quiet(): inside, after it, and after both"
    yield case(text, _restoring(between)).gives((False, True, False))


@quiet_exercise.check("any error", hidden=True)
def _(kind):
    for error in (ValueError, ZeroDivisionError, StopIteration, AssertionError):

        def stop(error=error):
            with kind():
                raise error("an error in the block")

        yield case(f"with quiet(): raise {error.__name__}", _restoring(stop)).raises(
            error, "in the block"
        )

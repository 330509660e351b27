"""Errors in a notebook: the learner's own lines and the message. ``%tb`` shows the whole way.

The way through the framework is often ten files long, and the line that a learner can mend is the
first of them, far above the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from course.contents import ROOT


def install() -> None:
    """Show errors this way in the running notebook; elsewhere nothing changes."""
    try:
        from IPython import get_ipython
    except ImportError:
        return
    shell: Any = get_ipython()  # type: ignore[no-untyped-call,unused-ignore]
    if shell is not None:
        shell.set_custom_exc((Exception,), _show)


def begin() -> None:
    """In a kernel that has just started: say so where a cell asks for what the first cells bring."""
    from IPython import get_ipython

    shell: Any = get_ipython()  # type: ignore[no-untyped-call,unused-ignore]
    if shell is not None:
        shell.set_custom_exc((NameError,), _not_yet)


def _not_yet(shell: Any, kind: Any, error: BaseException, tb: Any, tb_offset: Any = None) -> None:
    import course

    if getattr(error, "name", "") in {*course.__all__, "torch", "nn", "viz", "np", "plt"}:
        print(
            "This notebook's first cells have not run since its kernel started.\n"
            "Choose Run > Run All Above Selected Cell, then run this cell again."
        )
    shell.showtraceback((kind, error, tb), tb_offset=tb_offset)


def own_lines(tb: TracebackType | None) -> TracebackType | None:
    """The traceback without what toytorch and the course do inside."""
    frames = []
    inside = False
    while tb is not None:
        if _ours(tb.tb_frame):
            inside = True
        elif _of_learner(tb.tb_frame) or not inside:  # what NumPy does for us is ours as well
            inside = False
            frames.append(tb)
        tb = tb.tb_next
    found = None
    for one in reversed(frames):
        found = TracebackType(found, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return found


def _ours(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    if name.startswith("<toytorch"):  # generated
        return True
    return Path(name).is_relative_to(ROOT / "toytorch") or Path(name).is_relative_to(
        ROOT / "course"
    )


def _of_learner(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == "__main__"


def _show(shell: Any, kind: Any, error: BaseException, tb: Any, tb_offset: Any = None) -> None:
    import sys

    with _alone(error):
        # the first frame is IPython's own, which runs the cell
        shell.showtraceback((kind, error, own_lines(tb.tb_next) or tb), tb_offset=0)
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, tb  # for %tb and %debug


@contextmanager
def _alone(error: BaseException) -> Iterator[None]:
    """Without the errors behind this one that are no lines of the learner's."""
    before = error.__cause__, error.__context__, error.__suppress_context__
    # setting a cause suppresses the context, so that has to come back
    error.__cause__, error.__context__ = _behind(error.__cause__), _behind(error.__context__)
    error.__suppress_context__ = before[2]
    try:
        yield
    finally:
        error.__cause__, error.__context__, error.__suppress_context__ = before


def _behind(error: BaseException | None) -> BaseException | None:
    """The first error of the chain that came from the learner's lines."""
    while error is not None and own_lines(error.__traceback__) is None:
        error = error.__cause__ or error.__context__
    return error

"""`torch.utils._traceback`: tracebacks that are kept, shortened, or lead into generated source."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any

SOURCE = "__compile_source__"  # the global in which generated code keeps its own text


class report_compile_source_on_error:
    """Shows the lines of generated code in the traceback of an exception.

    Code whose globals have its source under `__compile_source__` gets a file with that text.
    Like `torch.utils._traceback.report_compile_source_on_error`.
    """

    def __enter__(self) -> None:
        """Changes nothing yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: Any
    ) -> None:
        entries = []
        while trace is not None:
            entries.append(trace)
            trace = trace.tb_next
        shown: TracebackType | None = None
        for entry in reversed(entries):
            frame = entry.tb_frame
            if SOURCE in frame.f_globals and frame.f_code.co_filename == "<string>":
                frame = _in_a_file(frame, entry.tb_lineno)
                shown = TracebackType(shown, frame, -1, entry.tb_lineno)
            else:
                shown = TracebackType(shown, frame, entry.tb_lasti, entry.tb_lineno)
        if error is not None:
            error.__traceback__ = shown


def _in_a_file(frame: FrameType, line: int) -> FrameType:
    """A frame like this one whose code stands in a file of its own."""
    with tempfile.NamedTemporaryFile(mode="w", delete=False, suffix=".py") as file:
        file.write(frame.f_globals[SOURCE])
    code: CodeType = compile("__inspect_currentframe()", file.name, "eval")
    code = code.replace(co_name=frame.f_code.co_name, co_firstlineno=frame.f_code.co_firstlineno)
    scope = {**frame.f_globals, "__inspect_currentframe": lambda: sys._getframe(1)}
    return eval(code, scope)


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """The part of a path that is not in common with `base`, the package's own place."""
    base = os.path.dirname(os.path.dirname(__file__)) if base is None else base
    try:
        common = os.path.commonpath([base, fn])
    except ValueError:
        return fn
    return fn[len(common) + 1 :]


def format_frame(
    frame: traceback.FrameSummary, *, base: str | None = None, line: bool = False
) -> str:
    """file:line in function."""
    extra = f"{frame.line}  # " if line else ""
    return f"{extra}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: TracebackType | None) -> str:
    """The innermost frame of a traceback, in one line."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """The frames that ran when it was made; their lines are looked up when it is asked for them.

    Like `torch.utils._traceback.CapturedTraceback`, without frames of C++.
    """

    def __init__(self, stack: traceback.StackSummary, skip: int = 0) -> None:
        self.stack, self.skip = stack, skip

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The frames that run now, without the innermost `skip`."""
        frames = traceback.walk_stack(sys._getframe(1))
        stack = traceback.StackSummary.extract(frames, lookup_lines=False)
        stack.reverse()
        return CapturedTraceback(stack, skip)

    def summary(self) -> traceback.StackSummary:
        """The frames, outermost first."""
        kept = len(self.stack) - self.skip
        return traceback.StackSummary.from_list(list(self.stack[: max(kept, 0)]))

    def format(self) -> list[str]:
        """The frames as Python prints them."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: Sequence[CapturedTraceback]) -> list[list[str]]:
        """`format` of each."""
        return [tb.format() for tb in tbs]

    def cleanup(self) -> None:
        """Forgets the frames."""
        self.stack = traceback.StackSummary()

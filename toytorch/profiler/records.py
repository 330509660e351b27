"""Naming parts of a program, so that they show up in the profile (and in NVIDIA's tools)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.autograd.modes import Mode
from toytorch.facts import state
from toytorch.profiler.recorder import USER, Recorder, Span


class record_function(Mode):
    """Gives what runs inside a name, like `torch.profiler.record_function`; also a decorator.

    Without a profiler it does nothing.

    >>> from toytorch.profiler import profile
    >>> with profile() as prof:
    ...     with record_function("square"):
    ...         y = torch.ones(3) ** 2
    >>> [(e.name, [c.name for c in e.cpu_children]) for e in prof.events()][0]
    ('square', ['aten::ones', 'aten::pow'])
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._recorder: Any = None
        self._span: Span | None = None

    def __enter__(self) -> record_function:
        self._recorder = state.profiler
        if self._recorder is not None:
            self._span = self._recorder.enter(self.name, (), USER)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recorder is not None and self._recorder is state.profiler:
            self._recorder.leave(self._span)
        self._recorder = self._span = None

    def clone(self) -> record_function:
        return record_function(self.name, self.args)


class Ranges(Recorder):
    """Tells another tool of every span, and keeps none itself; see `emit_nvtx`."""

    def __init__(self, push: Any, pop: Any, shapes: bool) -> None:
        super().__init__(shapes=shapes)
        self._push, self._pop = push, pop

    def enter(self, name: str, args: Sequence[Any] = (), scope: int = 0) -> Span:
        """Opens a range."""
        span = super().enter(name, args, scope)
        self.spans.clear()
        self._push(f"{name}, sizes = {span.shapes}" if self.shapes else name)
        return span

    def leave(self, span: Span) -> None:
        """Closes it."""
        self._pop()
        super().leave(span)


class emit_nvtx:
    """Marks every op for NVIDIA's profilers, like `torch.autograd.profiler.emit_nvtx`.

    Raises RuntimeError on entering where CuPy is not installed.

    >>> with emit_nvtx(enabled=False):
    ...     pass
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes
        self._ranges: Ranges | None = None

    def __enter__(self) -> emit_nvtx:
        if self._ranges is not None:
            raise RuntimeError("NVTX annotation context manager is not reentrant")
        if self.enabled:
            try:
                from cupy.cuda import nvtx  # an optional package
            except ImportError:
                raise RuntimeError(
                    "NVTX functions not installed. Are you sure you have a CUDA "
                    "build? (pip install toytorch[cuda])"
                ) from None
            self._ranges = Ranges(nvtx.RangePush, nvtx.RangePop, self.record_shapes)
            self._ranges.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._ranges is not None:
            self._ranges.stop()
            self._ranges = None

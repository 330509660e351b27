"""What is raised where a program cannot be compiled; every message points at the place."""

from __future__ import annotations

from toytorch.jit.ir import Source


class FrontendError(Exception):
    """A program the compiler cannot read; `source` says where."""

    def __init__(self, source: Source | None, message: str) -> None:
        self.source, self.plain = source, message
        super().__init__(pointing(message, source))


class NotSupportedError(FrontendError):
    """Python that has no meaning in a compiled function."""


class UnsupportedNodeError(NotSupportedError):
    """A kind of statement or expression that the compiler does not know."""


class CompileError(RuntimeError):
    """A program whose types or names do not fit; PyTorch raises a bare RuntimeError."""

    def __init__(self, message: str, source: Source | None) -> None:
        self.plain, self.source = message, source
        super().__init__(pointing(message, source))


def pointing(message: str, source: Source | None) -> str:
    """A message and below it the line of the program, with marks under the place."""
    return message if source is None else f"{message}:\n{source.pointing()}\n"

"""What is wrong with a kernel: with its text, or with what it does."""

from __future__ import annotations

from dataclasses import dataclass

At = tuple[int, int]  # line and column in the source, counted from 1


@dataclass(frozen=True)
class Source:
    """The text of a kernel, and the name of the file that messages give it."""

    text: str
    file: str = "kernel.cu"

    def line(self, number: int) -> str:
        """One line of the text, without its end; empty beyond the last one."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip() if 1 <= number <= len(lines) else ""

    def place(self, at: At) -> str:
        """The line, and under it a caret at the column."""
        text = self.line(at[0])
        before = "".join("\t" if sign == "\t" else " " for sign in text[: at[1] - 1])
        return f"    {text}\n    {before}^"


class CompileError(ValueError):
    """The source is not what the emulator understands.

    >>> from toytorch.cuda.emulator.errors import CompileError, Source
    >>> print(CompileError("expected ';'", (2, 5), Source("int i\\nint j")))
    kernel.cu:2:5: error: expected ';'
        int j
            ^
    """

    def __init__(self, message: str, at: At, source: Source | None = None) -> None:
        self.message, self.at = message, at
        super().__init__(message)
        self.source = source

    def __str__(self) -> str:
        if self.source is None:
            return f"{self.at[0]}:{self.at[1]}: error: {self.message}"
        where = f"{self.source.file}:{self.at[0]}:{self.at[1]}"
        return f"{where}: error: {self.message}\n{self.source.place(self.at)}"


class KernelError(RuntimeError):
    """A thread did what a GPU would stop the launch for, or what has no defined result there."""

    def __init__(self, message: str, at: At, source: Source) -> None:
        self.at, self.line = at, at[0]
        super().__init__(f"{message}\n{source.place(at)}")

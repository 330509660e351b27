"""Random programs: text in Python that PyTorch and toytorch both run.

`program_draw.draw(seed)` writes one, line by line; `program_check.check(seed)` asserts that both do
the same with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any

from tests.oracle import Side, attempt

# What PyTorch says where it merely lacks a kernel or a derivative, or stumbles in one that it has.
LACKING = (
    "not implemented for", "not supported for", "not yet implemented", "_cdist_backward",
    "support automatic differentiation for outputs with complex", "expected scalar type",
    "Expected isFloatingType(grad", "returned an invalid gradient", "MKL FFT error", "setStorage",
    "ZeroTensors are immutable",
)  # fmt: skip


@dataclass
class Line:
    """One statement, the step it was drawn from, and the tensors it names."""

    text: str
    step: str
    makes: tuple[str, ...] = ()

    @cached_property
    def code(self) -> CodeType:
        return compile(self.text, "program", "exec")


@dataclass
class Run:
    """What became of a program on one side: its tensors by name, and each line's error."""

    side: Side
    names: dict[str, Any] = field(default_factory=dict)
    fates: list[str] = field(default_factory=list)
    errors: list[Exception | None] = field(default_factory=list)
    born: dict[str, int] = field(default_factory=dict)  # each tensor's version at first

    def __post_init__(self) -> None:
        m = self.side.root
        self.names |= {"torch": m, "F": m.nn.functional}

    def step(self, line: Line) -> None:
        failure = attempt(exec, line.code, self.names)[1]
        self.errors.append(failure)
        self.fates.append(type(failure).__name__.lstrip("_") if failure else "")
        for name in line.makes:
            if isinstance(x := self.names.get(name), self.side.Tensor):
                self.born[name] = x._version

    def tensors(self) -> dict[str, Any]:
        return {k: v for k, v in self.names.items() if isinstance(v, self.side.Tensor)}


def execute(lines: list[Line], side: Side) -> Run:
    run = Run(side)
    for line in lines:
        run.step(line)
    return run

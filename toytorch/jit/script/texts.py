"""Programs that come as text: `.code`, and what a file holds. They are read, never run.

Beside Python's names such a text may use an operation by its name in the graph (`torch.len`), a
record (`ops.aten.select`), and three words: `annotate`, `unchecked_cast`, `uninitialized`.
"""

from __future__ import annotations

import builtins
import math
import sys
import typing
from typing import Any

from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn
from toytorch.jit.builtins import FAMILIES
from toytorch.jit.script.base import Compiled
from toytorch.jit.script.compiler import compile_program
from toytorch.jit.script.reading import Program, read_text
from toytorch.jit.script.values import Known, Record, Spelled


class Word:
    """A word of `.code` that is no Python: annotate, unchecked_cast, uninitialized."""

    def __init__(self, word: str) -> None:
        self.word = self.__name__ = word


class Records:
    """`ops` of a text: `ops.aten.select` is the record of that name."""

    aten: Any

    def __init__(self, inner: bool = False) -> None:
        if not inner:
            self.aten = Records(True)

    def __getattr__(self, name: str) -> Any:
        if name.replace("__", ".") not in registry:
            raise AttributeError(f"there is no op {name}")
        return Record(name.replace("__", "."))


class TextProgram(Program):
    """A program from a text, which may call an operation by its name in the graph."""

    def named(self, owner: Any, name: str) -> Any:
        """`torch.len`: what the package itself has no function for."""
        if isinstance(owner, Records):
            return Known(getattr(owner, name, None))
        if owner is sys.modules.get("toytorch") and (
            name in FAMILIES
            or name in ("format", "percentFormat")
            or callable(getattr(Tensor, name, None))
        ):
            return Spelled(name)
        return None


def text_programs(text: str, extra: dict[str, Any] | None = None) -> list[Program]:
    """The functions of a text, each knowing the others."""
    names = {**(extra or {}), **text_names()}

    def find(name: str) -> Any:
        return names[name]

    programs = []
    try:
        read = read_text(text, find)
    except SyntaxError as error:
        raise RuntimeError(f"{in_pytorchs_words(str(error.msg))}:\n{error.text or ''}") from error
    for p in read:
        program = TextProgram(
            p.tree, p.file, p.lines, p.first, p.indent, p.names, p.defaults, closed=True
        )
        names[program.tree.name] = LazyFunction(program)
        programs.append(program)
    return list(programs)


WORDS = (  # what Python's parser says, and PyTorch's
    ("unterminated string", "expected a valid token here"),
    ("illegal expression for augmented", "augmented assignment can only have one LHS expression"),
    ("cannot assign to literal", "Cannot pack a tuple into a non-variable"),
    ("cannot assign to expression", "unexpected expression in an assignment"),
    ("Perhaps you forgot a comma", "expected ] but found another expression"),
)


def in_pytorchs_words(message: str) -> str:
    """A mistake of syntax as PyTorch's parser calls it, with what Python says."""
    theirs = next((found for part, found in WORDS if part in message), "expected a valid token")
    return f"{theirs} ({message})"


class LazyFunction:
    """A function of a text, compiled when it is first called."""

    def __init__(self, program: Program) -> None:
        self.program, self._made = program, None

    @property
    def compiled(self) -> Compiled:
        """Its graph."""
        if self._made is None:
            self._made = compile_program(self.program)  # type: ignore[assignment]  # once made
        return self._made  # type: ignore[return-value]  # it is made now


def text_names() -> dict[str, Any]:
    """The names that a text may use."""
    torch = sys.modules["toytorch"]
    names: dict[str, Any] = {
        n: getattr(typing, n)
        for n in ("List", "Dict", "Tuple", "Optional", "Union", "Any", "Final")
    }
    safe: list[Fn] = [getattr(builtins, n) for n in dir(builtins) if not n.startswith("_")]
    names.update({f.__name__: f for f in safe if hasattr(f, "__name__")})
    names.update({w: Word(w) for w in ("annotate", "unchecked_cast", "uninitialized")})
    names.update(ops=Records(), torch=torch, math=math, Tensor=Tensor, inf=math.inf, nan=math.nan)
    return names

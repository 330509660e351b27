"""Runs a program, statement by statement, on either package."""

from __future__ import annotations

import copy
import io
import math
import pickle
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tests.oracle import torch

SECONDS = 30.0

HEAD = """\
import copy, io, math, pickle
import numpy as np
import torch
inf, nan = math.inf, math.nan
compiled, traced = torch.compile, torch.jit.trace

def saved(x):
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file)

torch.manual_seed(0)
class seeded:
    def __getattr__(self, name): ...
"""


class Program(NamedTuple):
    seed: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)


class Failure(NamedTuple):
    kind: str
    message: str


def namespace(root: Any, traces: bool = False) -> dict[str, Any]:
    """The names that programs start with, on one side; whether functions are traced there."""

    def saved(x: Any) -> Any:
        file = io.BytesIO()
        root.save(x, file)
        file.seek(0)
        return root.load(file)

    def seeded(module: Any) -> Any:
        root.manual_seed(1)
        for i, p in enumerate(module.parameters()):
            with root.no_grad():
                p.copy_(((root.arange(p.numel()) * 5 + i) % 7 - 3).reshape(p.shape) / 4)
        return module

    def apart(*tensors: Any) -> tuple[Any, ...]:
        """Copies; one for what is one tensor."""
        made = {id(t): t.detach().clone().requires_grad_(t.requires_grad) for t in tensors}
        return tuple(made[id(t)] for t in tensors)

    def compiled(f: Any) -> Any:
        return f if root is torch else root.compile(f)

    def traced(f: Any, examples: Any) -> Any:
        if traces:
            return root.jit.trace(f, examples, check_trace=False)
        f(*examples)  # PyTorch's jit.trace runs the function once, which may write
        return f

    return {
        "__name__": "program",  # which traces ask for
        "torch": root, "np": np, "copy": copy, "pickle": pickle, "inf": math.inf, "nan": math.nan,
        "saved": saved, "seeded": seeded, "compiled": compiled, "traced": traced, "apart": apart,
    }  # fmt: skip


@contextmanager
def limited(seconds: float = SECONDS) -> Iterator[None]:
    """Raises TimeoutError in what takes too long."""

    def late(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# Batch norm in evaluation without statistics, of which PyTorch reads memory that is not there.
ENDS_PYTORCH = re.compile(r"native_batch_norm\(.*?(?:, |=)None, (?:\w+=)?None, (?:\w+=)?False, ")


def execute(text: str, space: dict[str, Any]) -> Failure | None:
    """Runs one statement; what it raised, without the frames that would keep tensors alive."""
    if ENDS_PYTORCH.search(text):
        return Failure("Crash", text)
    try:
        exec(compile(text, "<program>", "exec"), space)
    except Exception as e:
        return Failure(type(e).__name__, str(e))
    return None


class Run:
    """A program under way on one side."""

    def __init__(self, root: Any, traces: bool | None = None) -> None:
        self.root = root
        self.space = namespace(root, root is not torch if traces is None else traces)
        self.builtin = set(self.space) | {"__builtins__", "__warningregistry__"}
        root.manual_seed(0)

    def step(self, text: str) -> tuple[Failure | None, list[str]]:
        """What a statement raised, and the classes of its warnings."""
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            failed = execute(text, self.space)
        return failed, sorted({w.category.__name__ for w in seen})

    def values(self) -> dict[str, Any]:
        return {k: v for k, v in self.space.items() if k not in self.builtin}


Disturb = Callable[[dict[str, Any], list[str]], None]

"""Random programs as functions: what eager does, traced, specialised and pass by pass."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import toytorch as torch
from tests.autograd.program_draw import draw
from tests.autograd.programs import Line, Run
from tests.oracle import SUBJECT
from toytorch.jit import interpreter

ABSOLUTE = {"float16": 1e-2, "bfloat16": 5e-2}

# What changes the layout of a tensor in place: a function's caller would not see it.
RELAYS = re.compile(
    r"(t|transpose|squeeze|unsqueeze|swapaxes|swapdims|as_strided|resize|detach)_\("
)


@dataclass
class Program:
    """A function of the leaves, and the leaves."""

    function: Callable[..., Any]
    leaves: list[Any]
    text: str


def program(seed: int) -> Program | None:
    """The lines of a random program that run without an error, as a function of its leaves."""
    lines = draw(seed)
    is_leaf = re.compile(r"v\d+ = torch\.tensor\(")
    first = next(i for i, line in enumerate(lines) if not is_leaf.match(line.text))
    head, body = lines[:first], lines[first:]
    run = Run(SUBJECT)
    for line in head:
        run.step(line)
    leaves = [run.names[name] for line in head for name in line.makes]
    kept = working(
        [
            line
            for line in body
            if "requires_grad_" not in line.text
            and ".data" not in line.text
            and "retain_grad" not in line.text
            and ".grad" not in line.text
            and not RELAYS.search(line.text)
        ],
        head,
    )
    names = [name for line in head for name in line.makes]
    made = list(dict.fromkeys(name for line in kept for name in line.makes if name not in names))
    if not made:
        return None
    text = (
        f"def f({', '.join(names)}):\n"
        + "".join(f"    {part}\n" for line in kept for part in line.text.split("\n"))
        + (f"    return {', '.join(made)},\n")
    )
    space: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    exec(compile(text, "program", "exec"), space)
    return Program(space["f"], leaves, text)


def working(lines: list[Line], head: list[Line]) -> list[Line]:
    """The lines that raise nothing, one after the other."""
    run, kept = Run(SUBJECT), []
    for line in head:
        run.step(line)
    for line in lines:
        before = {k: v.detach().clone() for k, v in run.tensors().items()}
        run.step(line)
        if run.errors[-1] is None:
            kept.append(line)
        elif any(
            before.get(k) is not None
            and v.shape == before[k].shape
            and not torch.equal(v.detach(), before[k])
            for k, v in run.tensors().items()
        ):
            break  # half done
    return kept


def fresh(leaves: list[Any]) -> list[Any]:
    return [x.detach().clone().requires_grad_(x.requires_grad) for x in leaves]


def outcome(f: Callable[..., Any], leaves: list[Any], seed: int = 0) -> list[Any]:
    """Results, then the gradients of the leaves, then the leaves (which may be written to)."""
    own = fresh(leaves)
    given = [x * 1 if x.requires_grad else x for x in own]  # so that writes are allowed
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = f(*given)
    results = [
        r
        for r in (results if isinstance(results, tuple) else (results,))
        if isinstance(r, torch.Tensor)
    ]
    roots = [r for r in results if r.requires_grad]
    grads: list[Any] = []
    wanted = [x for x in own if x.requires_grad]
    if roots and wanted:
        weights = [torch.ones_like(r.detach()) * (i + 1) / 4 for i, r in enumerate(roots)]
        grads = list(torch.autograd.grad(roots, wanted, weights, allow_unused=True))
    return [*[r.detach() for r in results], *grads, *[g.detach() for g in given]]


def same(a: Any, b: Any) -> str:
    """How two outcomes differ; nothing if they do not."""
    if len(a) != len(b):
        return f"{len(a)} and {len(b)} tensors"
    for i, (x, y) in enumerate(zip(a, b)):
        if (x is None) != (y is None):
            if not (y if x is None else x).any():
                continue
            return f"tensor {i}: {x} and {y}"
        if x is None:
            continue
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"tensor {i}: {x.dtype}{list(x.shape)} and {y.dtype}{list(y.shape)}"
        wide = "complex128" if x.is_complex() else "float64"
        p, q = (t.to(getattr(torch, wide)).numpy() for t in (x, y))
        tolerance = ABSOLUTE.get(x.dtype.name, 1e-5)
        if not np.allclose(p, q, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"tensor {i}: {x} and {y}"
    return ""


def trace(p: Program) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = [x * 1 if x.requires_grad else x for x in fresh(p.leaves)]
        torch.manual_seed(0)
        return torch.jit.trace(p.function, tuple(given), check_trace=False)


def interpreted(traced: Any) -> Callable[..., Any]:
    return lambda *args: interpreter.run(traced.graph, args)

"""Running programs in several ways and comparing what comes out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.jit import CompilationUnit

SOURCE = re.compile(r" # \S+:\d+:\d+$", re.M)


def outcome(function: Callable[..., Any], args: tuple[Any, ...], root: Any) -> Any:
    """Plain data: the results (or the error) and the gradients of tensors that want one."""
    try:
        result = function(*args)
    except Exception as error:
        if str(error).startswith("The following operation failed"):
            error = error.__cause__ or error  # what the operation raised
        return type(error).__name__, str(error)
    roots = [t for t in tensors(result, root) if t.requires_grad]
    if roots:
        total = roots[0].sum() * 1
        for t in roots[1:]:
            total = total + t.sum()
        total.backward()
    grads = [plain(t.grad, root) for t in tensors(args, root) if t.requires_grad]
    written = [t for a in args if isinstance(a, root.Tensor) for t in tensors(a, root)]
    return plain(result, root), grads, plain(written, root)  # lists are copied, as in PyTorch


def tensors(value: Any, root: Any) -> list[Any]:
    """The tensors in nested containers."""
    if isinstance(value, root.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v, root)]
    return []


def plain(value: Any, root: Any) -> Any:
    """Arrays for tensors, lists for sequences."""
    if isinstance(value, root.Tensor):
        t = value.detach()
        return str(t.dtype), t.numpy()
    if isinstance(value, dict):
        return {k: plain(v, root) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, root) for v in value]
    return value


def same(a: Any, b: Any) -> bool:
    """Whether two outcomes are equal, of numbers up to rounding."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.shape(a) == np.shape(b) and np.allclose(a, b, 1e-5, 1e-6, equal_nan=True)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float) or isinstance(b, float):
        return (
            type(a) in (int, float)
            and type(b) in (int, float)
            and bool(np.isclose(a, b, 1e-9, equal_nan=True))
        )
    return type(a) is type(b) and bool(a == b)


def canonical(graph: Any) -> str:
    """A graph as text without the places in the source, values named in order."""
    parts = []
    for part in SOURCE.sub("", str(graph)).split("\nwith "):  # a graph, and those it calls
        names: dict[str, str] = {}

        def rename(found: re.Match[str], names: dict[str, str] = names) -> str:
            return names.setdefault(found[0], f"%{len(names)}")

        parts.append(re.sub(r"%[\w.]+", rename, part))
    return "\nwith ".join(parts)


def again(function: Any, names: dict[str, Any]) -> Any:
    """The function compiled from its own code."""
    unit = CompilationUnit(function.code, names=names)
    return getattr(unit, function.name)

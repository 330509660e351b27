"""Gradients of several inputs that one kernel makes at once."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.generic import attempt
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import state


def at_once(work: dict[str, Any], name: str, *given: object) -> Any:
    """What a kernel makes of tensors and plain arguments, as tensors; once for all derivatives of
    a node.

    None where a gradient will be differentiated or somebody watches, or where it gives None.
    """
    if state.local.grad or state.local.modes:
        return None
    if "made" not in work:
        args = [t._array if isinstance(t, Tensor) else t for t in given]
        if args[0].__class__ in base.queued:
            made = base.launched(name, functools.partial(attempt, np, name), *args)
        else:
            made = attempt(base.of_array(args[0]).xp, name, *args)
        work["made"] = None if made is None else [wrap(v) for v in made]
    return work["made"]


def taken(made: list[Any], k: int) -> Any:
    """One of the gradients made at once; nobody else holds it then, so a leaf need not copy it."""
    value, made[k] = made[k], None
    return value

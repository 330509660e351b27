"""Elementwise kernels and gradient rules in one pass over memory.

NumPy needs a pass for every operation of a formula. Here a formula is a `Loop`, which is compiled;
where that does not serve (few elements, another type or device, no llvmlite) the kernel written for
NumPy runs, and for a gradient that will be differentiated itself, the rule written with tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.core.tensor import wrap
from toytorch.facts import state
from toytorch.loops.elementwise import Loop

Rule = Callable[..., Any]


def kernel(text: str, numbers: str = "") -> Callable[[Rule], Rule]:
    """A kernel `f(xp, x, *numbers)` whose formula for y is `text`.

    >>> double = kernel("y = x * k", "k")(lambda xp, x, k: x * k)
    >>> double(np, np.ones(2), 3)
    array([3., 3.])
    """
    loop = Loop(text, "y x", numbers)

    def decorated(plain: Rule) -> Rule:
        @functools.wraps(plain)
        def chosen(xp: Any, a: Any, *args: Any) -> Any:
            made = loop.of(xp, a, *map(float, args))
            return plain(xp, a, *args) if made is None else made

        return chosen

    return decorated


def gradient(text: str, numbers: str = "") -> Callable[[Rule], Rule]:
    """A rule `d(g, self, *numbers)` of tensors whose formula for dx, from g and x, is `text`."""
    loop = Loop(text, "dx g x", numbers)

    def decorated(rule: Rule) -> Rule:
        @functools.wraps(rule)  # the names of its parameters say what the node keeps
        def chosen(g: Any, self: Any, *args: Any) -> Any:
            if not state.local.grad and state.shortcut is not state.SLOW:
                made = (
                    loop.of(np, g._array, self._array, *map(float, args))
                    if (g._array.__class__ is self._array.__class__ is np.ndarray)
                    else None
                )
                if made is not None:
                    return wrap(made)
            return rule(g, self, *args)

        return chosen

    return decorated

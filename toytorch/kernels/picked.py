"""The negative log-likelihood, in one pass over the targets: what is picked of each row, and its
gradient.

Rows are (N, C, d…), targets (N, d…). A target that is to be ignored counts for nothing, whatever it
is; any other that names no class is told, and NumPy finds the words.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes, Value
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Native

COST = 8  # of a target, in additions


def likelihoods(logs: Array, target: Array, weight: Array | None, ignore: int) -> Any:
    """-w[t]·x[t] of each target, and w[t], both 0 where it is ignored; or None."""
    weights = [] if weight is None else [weight]
    if not taken(logs, target, weights):
        return None
    loss, scale = np.empty(target.shape, logs.dtype), np.empty(target.shape, logs.dtype)
    bad = np.zeros(1, np.int64)
    call = ready("pick", logs.dtype.char, logs.shape, ignore, bool(weights), True)
    call(np.ascontiguousarray(logs), np.ascontiguousarray(target), *weights, loss, scale, bad)
    return None if bad.item() else (loss, scale)


def put_likelihoods(
    g: Array, shape: Sizes, target: Array, weight: Array | None, ignore: int, total: Array
) -> Any:
    """-g·w[t] / total at the place of each target, zeros elsewhere, for one g or that of each; or
    None. The targets are known to be classes."""
    made = np.zeros(shape, g.dtype)
    weights = [] if weight is None else [weight]
    if not taken(made, target, weights) or total.dtype != g.dtype:
        return None
    bad = np.zeros(1, np.int64)
    call = ready("put", g.dtype.char, shape, ignore, bool(weights), bool(g.ndim))
    g, total = np.ascontiguousarray(g), np.ascontiguousarray(total)
    call(made, np.ascontiguousarray(target), *weights, g, total, bad)
    return made


def taken(rows: Array, target: Array, weights: list[Array]) -> bool:
    """Whether a kernel takes these arrays."""
    return (
        rows.__class__ is target.__class__ is np.ndarray
        and rows.dtype.char in "fd"
        and target.dtype.char in "lq"
        and rows.size > 0
        and target.size > 0
        and all(w.dtype == rows.dtype and w.flags.c_contiguous for w in weights)
        and jit.pays(target.size)
    )


@functools.lru_cache(256)
def ready(how: str, kind: str, shape: Sizes, ignore: int, weighted: bool, each: bool) -> ArrayCall:
    """The kernel for rows of one shape, as a function of the rows, the targets, the weights if there
    are some, two further arrays and one number that is set where a target is no class."""
    count, classes, *rest = shape
    inner = math.prod(rest)
    places = [3, 4, *[5] * weighted, 6, 7, 8]
    call = Picked.kernel(how, kind, weighted, each)
    return ArrayCall(
        call, (inner, classes, ignore, *(0,) * 6), places, count * inner, count * inner * COST
    )


class Picked(Native, family="likelihood"):
    """LLVM for both. By hand: a program's indices are dimensions, these are read."""

    def __init__(self, name: str, how: str, kind: str, weighted: bool, each: bool) -> None:
        words = ("inner", "classes", "ignore", "rows", "target", "weight", "one", "other", "bad")
        super().__init__(name, kind, words)
        b, zero = self.b, self.word(0)
        rows, weight, one, other = (self.array(n) for n in ("rows", "weight", "one", "other"))
        target, bad = self.array("target", "word"), self.array("bad", "word")
        inner, classes = self.word_of["inner"], self.word_of["classes"]

        def element(e: Value) -> None:
            n = b.udiv(e, inner)
            t = self.get(target, e)
            known = b.icmp_signed("!=", t, self.word_of["ignore"])
            inside = b.icmp_unsigned("<", t, classes)
            counts = b.and_(known, inside)
            t = b.select(counts, t, zero)
            place = b.add(b.mul(b.add(b.mul(n, classes), t), inner), b.sub(e, b.mul(n, inner)))
            share = self.get(weight, t) if weighted else self.real(1)
            if how == "pick":
                loss = b.fneg(self.get(rows, place))
                loss = b.fmul(loss, share) if weighted else loss
                self.put(one, e, b.select(counts, loss, self.real(0)))
                self.put(other, e, b.select(counts, share, self.real(0)))
            else:
                share = b.fdiv(share, self.get(other, zero))
                given = b.fmul(b.fneg(self.get(one, e if each else zero)), share)
                with b.if_then(counts):
                    self.put(rows, place, given)
            with b.if_then(b.and_(known, b.not_(inside))):
                b.store(self.word(1), bad)

        self.loop(self.lo, self.hi, 1, element)

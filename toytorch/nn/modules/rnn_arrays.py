"""Recurrent layers on arrays: all steps forward, all steps back.

Sequences lie one step after the other, (N, width): step t is the rows lo:hi of `spans`, one row for
each sequence that is still running, the longest first. The inputs' share of every gate is known
before the first step; a step adds the state's share, hidden·Wᵀ.

Backward goes through the steps in the opposite order and leaves the gradients of all gates, from
which those of the weights are one matrix product.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.facts.hints import Array, ArrayModule
from toytorch.kernels.chain import in_time
from toytorch.kernels.tiled_product import LEAST
from toytorch.loops import Recipe
from toytorch.loops.runtime import jit, threads
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.kernel import laid
from toytorch.ops.linalg.matmul import product_of

Spans = list[tuple[int, int]]
Steps = Sequence[tuple["Multiplier | ArrayCall", tuple[str, ...]]]
FEW_WEIGHTS = 1 << 14  # of which few rows are multiplied without BLAS
PRODUCT = Recipe("a[r,k], b[k,j], c[j] -> y[r,j]\n y = c + sum[k](a * b)")
# What a step does beside its matrix product, in one pass: see `lstm_forward` for the formulas. The
# arrays are quarters of the rows of all gates, so an element's four gates lie n apart.
LSTM_STEP = Recipe("""ai[r,j], af[r,j], ag[r,j], ao[r,j], xi[r,j], xf[r,j], xg[r,j], xo[r,j], \
c[r,j] -> i[r,j], f[r,j], g[r,j], o[r,j], cell[r,j], state[r,j], th[r,j], h[r,j], last[r,j]
    i = sigmoid(ai + xi)
    f = sigmoid(af + xf)
    g = tanh(ag + xg)
    o = sigmoid(ao + xo)
    cell = f * c + i * g
    state = cell
    th = tanh(cell)
    h = o * th
    last = h""")
LSTM_BACK = Recipe("""dh[r,j], more[r,j], i[r,j], f[r,j], g[r,j], o[r,j], th[r,j], old[r,j], \
dc[r,j] -> di[r,j], df[r,j], dg[r,j], do[r,j], back[r,j]
    dm = dh + more
    cell = dc + dm * o * (1 - th * th)
    di = cell * g * (i - i * i)
    df = cell * old * (f - f * f)
    dg = cell * i * (1 - g * g)
    do = dm * th * (o - o * o)
    back = cell * f""")


GRU_STEP = Recipe("""ar[b,j], az[b,j], an[b,j], xr[b,j], xz[b,j], xn[b,j], h[b,j] \
-> share[b,j], r[b,j], z[b,j], new[b,j], out[b,j], state[b,j]
    share = an
    r = sigmoid(ar + xr)
    z = sigmoid(az + xz)
    new = tanh(xn + r * an)
    out = new + z * (h - new)
    state = out""")
GRU_BACK = Recipe("""dh[b,j], more[b,j], g[b,j], r[b,j], z[b,j], new[b,j], old[b,j], share[b,j] \
-> dr[b,j], dz[b,j], dn[b,j], sr[b,j], sz[b,j], sn[b,j], back[b,j]
    d = dh + more + g
    dn = (1 - z) * d * (1 - new * new)
    dz = (old - new) * d * (z - z * z)
    dr = dn * share * (r - r * r)
    sr = dr
    sz = dz
    sn = dn * r
    back = d * z""")


def fits(kind: np.dtype[Any], shape: tuple[int, ...], *arrays: Array) -> bool:
    """Whether arrays have this type and shape, and lie in rows, as compiled loops take it."""
    return all(
        a.__class__ is np.ndarray and a.dtype == kind and a.shape == shape and a.flags.c_contiguous
        for a in arrays
    )


def in_one_pass(parts: int, gates: Array, states: Sequence[Array], *others: Array) -> bool:
    """Whether compiled loops do the steps: where they work and there is something to do. Of the gates
    there are so many `parts` side by side; the others are as long as these."""
    kind, (rows, n) = gates.dtype, states[0].shape
    return (
        gates.size > 0
        and kind.char in "fd"
        and fits(kind, (len(gates), parts * n), gates)
        and fits(kind, (rows, n), *states)
        and fits(kind, (len(gates), n), *others)
        and jit.works()
    )


def quarters(a: Array, n: int) -> list[Any]:
    """The four gates in rows of (rows, 4n)."""
    return [a[:, :n], a[:, n : 2 * n], a[:, 2 * n : 3 * n], a[:, 3 * n :]]


def thirds(a: Array, n: int) -> list[Any]:
    """The three gates in rows of (rows, 3n)."""
    return [a[:, :n], a[:, n : 2 * n], a[:, 2 * n :]]


@functools.lru_cache(256)
def lstm_step(kind: str, rows: int, n: int) -> ArrayCall:
    """LSTM_STEP for so many sequences and states: arrays in the order of its text, of which all gates
    together stand for each of them."""
    acts, gates = (quarters(np.empty((rows, 4 * n), kind), n) for _ in range(2))
    cell, state, tanh, h, last = (np.empty((rows, n), kind) for _ in range(5))
    return laid(LSTM_STEP, *acts, cell, state, tanh, h, last, *acts, *gates, state)


@functools.lru_cache(256)
def lstm_back(kind: str, rows: int, n: int) -> ArrayCall:
    """LSTM_BACK, in the same way."""
    grads, acts = (quarters(np.empty((rows, 4 * n), kind), n) for _ in range(2))
    back, dh, more, tanh, old = (np.empty((rows, n), kind) for _ in range(5))
    return laid(LSTM_BACK, *grads, back, dh, more, *acts, tanh, old, back)


@functools.lru_cache(256)
def gru_step(kind: str, rows: int, n: int) -> ArrayCall:
    """GRU_STEP, in the same way."""
    acts, gates = (thirds(np.empty((rows, 3 * n), kind), n) for _ in range(2))
    share, out, state = (np.empty((rows, n), kind) for _ in range(3))
    return laid(GRU_STEP, share, *acts, out, state, *acts, *gates, state)


@functools.lru_cache(256)
def gru_back(kind: str, rows: int, n: int) -> ArrayCall:
    """GRU_BACK, in the same way."""
    grads, states, acts = (thirds(np.empty((rows, 3 * n), kind), n) for _ in range(3))
    d, more, out, old, share = (np.empty((rows, n), kind) for _ in range(5))
    return laid(GRU_BACK, *grads, *states, d, d, more, out, *acts, old, share)


class Multiplier:
    """What writes a·b + row for one a after the other: Multiplier(xp, b)(a, made)."""

    def __init__(self, xp: ArrayModule, b: Array, row: Array | None = None) -> None:
        self.xp, self.b, self.row = xp, b, row
        self.factor = attempt(xp, "factor", b, row)

    def __call__(self, a: Array, made: Array) -> None:
        if self.factor is not None:
            self.factor.times(a, made)
            return
        self.xp.matmul(a, self.b, out=made)
        if self.row is not None:
            made += self.row

    def calls(self, a: Array, made: Array) -> Any:
        """Calls of (a, what is multiplied by, made, what is added) and these two, for an a and a
        result that lie like these; None where the product is another's."""
        if self.factor is None:
            return None
        calls, start = self.factor.calls_for(a, made), self.factor.start
        if calls is not None:
            return [(call, (0, 1, 2, 3)) for call in calls], self.factor.packed, start
        if not len(a) < LEAST or self.b.size > FEW_WEIGHTS:
            return None
        turned = np.asfortranarray(self.b)  # whose columns the sums go along
        return [(few_rows(a.dtype.char, len(a), *turned.shape), (2, 0, 1, 3))], turned, start


@functools.lru_cache(256)
def few_rows(kind: str, rows: int, k: int, n: int) -> ArrayCall:
    """PRODUCT for so few rows: a call of (result, a, b, c)."""
    made, a, c = np.empty((rows, n), kind), np.empty((rows, k), kind), np.empty(n, kind)
    return laid(PRODUCT, made, a, np.empty((n, k), kind).T, c, bases=False)


def in_one_call(
    steps: Steps, still: dict[str, Array], moving: dict[str, Array], spans: Spans
) -> bool:
    """Whether all steps were made by one call, as they are where each of the sequences runs to the end
    and no thread has another's share of a step.

    steps          products and calls, with the names of their arrays
    still, moving  arrays that all steps share, and those of which a step has its rows
    """
    if len(spans) < 2:
        return False
    (lo, hi), total = spans[0], len(next(iter(moving.values())))
    if any(end - start != hi - lo for start, end in spans) or len(spans) * (hi - lo) != total:
        return False
    given = {**still, **{name: a[lo:hi] for name, a in moving.items()}}
    calls: list[tuple[ArrayCall, tuple[str, ...]]] = []
    for step, names in steps:
        if isinstance(step, ArrayCall):
            calls.append((step, names))
            continue
        found = step.calls(*[given[name] for name in names])
        if found is None:
            return False
        products, given["packed"], given["added"] = found
        arrays = (names[0], "packed", names[1], "added")
        calls += [(call, tuple([arrays[k] for k in order])) for call, order in products]
    if threads.thread_count() > 1 and any(call.work >= jit.WORK for call, _ in calls):
        return False
    rows = spans[1][0] - lo
    lies = [(name, rows * a.strides[0] * (name in moving)) for name, a in given.items()]
    in_time(tuple(calls), tuple(lies), len(spans))(**given)
    return True


def before(xp: ArrayModule, after: Any, start: Any, spans: Spans) -> Any:
    """The state before each step, from the states after."""
    rows = len(start)
    if len(spans) * rows == len(after) and spans[0] == (0, rows):  # all run to the end, forward
        return xp.concatenate((start, after[:-rows]))
    state, found = start.copy(), xp.empty_like(after)
    for lo, hi in spans:
        found[lo:hi] = state[: hi - lo]
        state[: hi - lo] = after[lo:hi]
    return found


# -- LSTM -----------------------------------------------------------------------------------------


def lstm_forward(
    xp: ArrayModule,
    gates: Array,
    h0: Array,
    c0: Array,
    w_hh: Array,
    w_hr: Array | None,
    spans: Spans,
) -> tuple[Any, ...]:
    """i, f, o = σ(·), g = tanh(·); c ← f·c + i·g; h ← o·tanh c, projected where there is w_hr.

    Results: outputs, last h, last c; then what backward needs: the gates, all c, all tanh c.
    """
    n, h, c = c0.shape[1], h0.copy(), c0.copy()
    acts = xp.empty_like(gates)
    cells = xp.empty((len(gates), n), gates.dtype)
    tanhs, outputs = xp.empty_like(cells), xp.empty((len(gates), h0.shape[1]), gates.dtype)
    times, kind = Multiplier(xp, w_hh.T), gates.dtype.char
    once = w_hr is None and in_one_pass(4, gates, (c, h))
    four = ("acts",) * 4
    names = (*four, "cells", "c", "tanhs", "outputs", "h", *four, *["gates"] * 4, "c")
    if once and in_one_call(
        [(times, ("h", "acts")), (lstm_step(kind, len(h), n), names)],
        {"h": h, "c": c},
        {"acts": acts, "gates": gates, "cells": cells, "tanhs": tanhs, "outputs": outputs},
        spans,
    ):
        return outputs, h, c, acts, cells, tanhs
    whole = None if w_hr is None else xp.empty((2, *c.shape), gates.dtype)  # before its projection
    for lo, hi in spans:
        rows, a, x = hi - lo, acts[lo:hi], gates[lo:hi]
        state, cell, out = h[:rows], c[:rows], outputs[lo:hi]
        times(state, a)
        two = (out, state) if whole is None else whole[:, :rows]
        made = cells[lo:hi], cell, tanhs[lo:hi], *two
        if once:
            lstm_step(kind, rows, n)(a, a, a, a, *made, a, a, a, a, x, x, x, x, cell)
        else:
            given = *quarters(a, n), *quarters(x, n), cell
            attempt(xp, "program", LSTM_STEP, *quarters(a, n), *made, *given)
        if w_hr is not None:
            xp.matmul(two[0], w_hr.T, out=out)
            state[...] = out
    return outputs, h, c, acts, cells, tanhs


def lstm_backward(
    xp: ArrayModule, grads: Sequence[Array], inputs: Any, saved: Sequence[Array], spans: Spans
) -> tuple[Any, ...]:
    """The gradients of gates, h0, c0, w_hh and w_hr."""
    g_out, g_h, g_c = grads
    _, h0, c0, w_hh, w_hr = inputs
    outputs, acts, cells, tanhs = saved
    n, dh, dc = c0.shape[1], g_h.copy(), g_c.copy()
    c_before = before(xp, cells, c0, spans)
    d_gates = xp.empty_like(acts)
    d_projected = xp.empty_like(outputs) if w_hr is not None else outputs
    times, kind, more = Multiplier(xp, w_hh), acts.dtype.char, xp.ascontiguousarray(g_out)
    alike = all(a is None or a.dtype == acts.dtype for a in (outputs, w_hr))
    once = alike and in_one_pass(4, acts, (dc,), tanhs, c_before)
    back = spans[::-1]
    if once and w_hr is None and in_one_pass(4, acts, (dh,), more):
        four, two = ("acts",) * 4, ("dh", "more")
        names = (*["d_gates"] * 4, "dc", *two, *four, "tanhs", "c_before", "dc")
        moving = {"d_gates": d_gates, "acts": acts, "tanhs": tanhs, "c_before": c_before}
        steps: Steps = [(lstm_back(kind, len(dh), n), names), (times, ("d_gates", "dh"))]
        if in_one_call(steps, {"dh": dh, "dc": dc}, {**moving, "more": more}, back):
            back = []
    nothing = xp.zeros_like(dc)  # beside what comes through a projection
    for lo, hi in back:
        rows = hi - lo
        given = dh[:rows], more[lo:hi]
        if w_hr is not None:
            d = xp.add(*given, out=d_projected[lo:hi])
            given = (d @ w_hr).astype(acts.dtype, copy=False), nothing[:rows]
        cell, g, a = dc[:rows], d_gates[lo:hi], acts[lo:hi]
        rest = tanhs[lo:hi], c_before[lo:hi], cell
        if once:
            lstm_back(kind, rows, n)(g, g, g, g, cell, *given, a, a, a, a, *rest)
        else:
            given = *given, *quarters(a, n), *rest
            attempt(xp, "program", LSTM_BACK, *quarters(g, n), cell, *given)
        times(g, dh[:rows])
    d_w = product_of(xp, d_gates.T, before(xp, outputs, h0, spans))
    d_r = None if w_hr is None else d_projected.T @ (acts[:, 3 * n :] * tanhs)
    return d_gates, dh, dc, d_w, d_r


# -- GRU ------------------------------------------------------------------------------------------


def gru_forward(
    xp: ArrayModule, gates: Array, h0: Array, w_hh: Array, b_hh: Array | None, spans: Spans
) -> tuple[Any, ...]:
    """r, z = σ(·); n = tanh(input's share + r·state's share); h ← n + z·(h - n).

    Results: outputs, last h; then what backward needs: r, z and n, and the state's share of n.
    """
    n, h = h0.shape[1], h0.copy()
    acts = xp.empty_like(gates)
    shares, outputs = xp.empty((len(gates), n), gates.dtype), xp.empty((len(gates), n), gates.dtype)
    times, kind = Multiplier(xp, w_hh.T, b_hh), gates.dtype.char
    once, three = in_one_pass(3, gates, (h,)), ("acts",) * 3
    names = ("shares", *three, "outputs", "h", *three, *["gates"] * 3, "h")
    if once and in_one_call(
        [(times, ("h", "acts")), (gru_step(kind, len(h), n), names)],
        {"h": h},
        {"acts": acts, "gates": gates, "shares": shares, "outputs": outputs},
        spans,
    ):
        return outputs, h, acts, shares
    for lo, hi in spans:
        rows, a, x, state = hi - lo, acts[lo:hi], gates[lo:hi], h[: hi - lo]
        times(state, a)
        share, out = shares[lo:hi], outputs[lo:hi]
        if once:
            gru_step(kind, rows, n)(share, a, a, a, out, state, a, a, a, x, x, x, state)
        else:
            made = share, *thirds(a, n), out, state
            attempt(xp, "program", GRU_STEP, *made, *thirds(a, n), *thirds(x, n), state)
    return outputs, h, acts, shares


def gru_backward(
    xp: ArrayModule,
    grads: Sequence[Array],
    inputs: Sequence[Any],
    saved: Sequence[Array],
    spans: Spans,
) -> tuple[Any, ...]:
    """The gradients of gates, h0, w_hh and b_hh."""
    g_out, g_h = grads
    _, h0, w_hh, b_hh = inputs
    outputs, acts, shares = saved
    n, dh = h0.shape[1], g_h.copy()
    h_before = before(xp, outputs, h0, spans)
    d_gates, d_state = xp.empty_like(acts), xp.empty_like(acts)
    times, more, kind = Multiplier(xp, w_hh), xp.zeros_like(dh), acts.dtype.char
    g_out = xp.ascontiguousarray(g_out)
    once, back = in_one_pass(3, acts, (dh, more), g_out, h_before, shares), spans[::-1]
    if once:
        names = (*["d_gates"] * 3, *["d_state"] * 3, "dh", "dh", "more", "g_out")
        names = (*names, *["acts"] * 3, "h_before", "shares")
        moving = {"d_gates": d_gates, "d_state": d_state, "g_out": g_out, "acts": acts}
        moving = {**moving, "h_before": h_before, "shares": shares}
        steps: Steps = [(gru_back(kind, len(dh), n), names), (times, ("d_state", "more"))]
        if in_one_call(steps, {"dh": dh, "more": more}, moving, back):
            back = []
    for lo, hi in back:
        rows, d = hi - lo, dh[: hi - lo]
        g, s, a, extra = d_gates[lo:hi], d_state[lo:hi], acts[lo:hi], more[:rows]
        rest = h_before[lo:hi], shares[lo:hi]
        if once:
            given = d, extra, g_out[lo:hi], a, a, a, *rest
            gru_back(kind, rows, n)(g, g, g, s, s, s, d, *given)
        else:
            given = d, extra, g_out[lo:hi], *thirds(a, n), *rest
            attempt(xp, "program", GRU_BACK, *thirds(g, n), *thirds(s, n), d, *given)
        times(s, extra)
    dh += more
    d_b = None if b_hh is None else d_state.sum(0)
    return d_gates, dh, product_of(xp, d_state.T, h_before), d_b


# -- the plain recurrent layer --------------------------------------------------------------------


def rnn_forward(
    xp: ArrayModule, gates: Array, h0: Array, w_hh: Array, relu: bool, spans: Spans
) -> tuple[Any, ...]:
    """h ← tanh(input's share + h·Wᵀ), or max(0, ·). Results: outputs and the last h."""
    h, outputs, times = h0.copy(), xp.empty_like(gates), Multiplier(xp, w_hh.T)
    for lo, hi in spans:
        out = outputs[lo:hi]
        times(h[: hi - lo], out)
        out += gates[lo:hi]
        if relu:
            xp.maximum(out, 0, out=out)
        else:
            xp.tanh(out, out=out)
        h[: hi - lo] = out
    return outputs, h


def rnn_backward(
    xp: ArrayModule,
    grads: Sequence[Array],
    inputs: Sequence[Array],
    saved: Sequence[Array],
    relu: bool,
    spans: Spans,
) -> tuple[Any, ...]:
    """The gradients of gates, h0 and w_hh."""
    g_out, g_h = grads
    _, h0, w_hh = inputs
    (outputs,) = saved
    dh, d_gates, times = g_h.copy(), xp.empty_like(outputs), Multiplier(xp, w_hh)
    for lo, hi in reversed(spans):
        d = d_gates[lo:hi]
        xp.add(dh[: hi - lo], g_out[lo:hi], out=d)
        if relu:  # where it cut off, not even NaN passes
            xp.copyto(d, 0, where=outputs[lo:hi] <= 0)
        else:
            d *= 1 - outputs[lo:hi] ** 2
        times(d, dh[: hi - lo])
    return d_gates, dh, product_of(xp, d_gates.T, before(xp, outputs, h0, spans))

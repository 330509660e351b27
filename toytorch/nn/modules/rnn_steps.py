"""Recurrent layers step by step, in tensor operations: every derivative and every mode works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.nn.functional import linear
from toytorch.ops.shaping.rearrange import cat

Spans = list[tuple[int, int]]


def lstm_cell(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """h and c after a step, from the sum of all shares of the gates and the old c."""
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_cell(gates: Tensor, share: Tensor, h: Tensor) -> Tensor:
    """h after a step, from the input's and the state's share of the gates and the old h."""
    (xr, xz, xn), (hr, hz, hn) = gates.chunk(3, 1), share.chunk(3, 1)
    new = (xn + (xr + hr).sigmoid() * hn).tanh()
    return new + (xz + hz).sigmoid() * (h - new)


def steps(
    spans: Spans, gates: Tensor, states: tuple[Tensor, ...], step: Callable[..., Any]
) -> tuple[Any, ...]:
    """All outputs, and the states at the end.

    step(rows of gates, *states of the running sequences) gives the new states, the output first.
    """
    outputs = {}
    for lo, hi in spans:
        rows = hi - lo
        new = step(gates[lo:hi], *(s[:rows] for s in states))
        states = tuple(
            n if rows == len(s) else cat.function([n, s[rows:]]) for n, s in zip(new, states)
        )
        outputs[lo] = new[0]
    return cat.function([outputs[lo] for lo in sorted(outputs)]), *states


def lstm_steps(
    gates: Tensor, h0: Tensor, c0: Tensor, w_hh: Tensor, w_hr: Tensor | None, spans: Spans
) -> tuple[Any, ...]:
    """What `lstm_forward` computes: outputs, last h, last c."""

    def step(rows: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        h, c = lstm_cell(rows + linear(h, w_hh), c)
        return (h if w_hr is None else linear(h, w_hr)), c

    return steps(spans, gates, (h0, c0), step)


def gru_steps(
    gates: Tensor, h0: Tensor, w_hh: Tensor, b_hh: Tensor, spans: Spans
) -> tuple[Any, ...]:
    """What `gru_forward` computes: outputs, last h."""
    return steps(spans, gates, (h0,), lambda rows, h: (gru_cell(rows, linear(h, w_hh, b_hh), h),))


def rnn_steps(gates: Tensor, h0: Tensor, w_hh: Tensor, relu: bool, spans: Spans) -> tuple[Any, ...]:
    """What `rnn_forward` computes: outputs, last h."""

    def step(rows: Tensor, h: Tensor) -> tuple[Tensor]:
        made = rows + linear(h, w_hh)
        return (made.relu() if relu else made.tanh(),)

    return steps(spans, gates, (h0,), step)

"""Recurrent layers as functions of their weights: `torch.lstm_cell`, `torch.lstm` and their kin.

The modules of `nn.modules.rnn` hold such weights; programs with cells of their own call these.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.composed import called
from toytorch.facts.hints import Args
from toytorch.nn import functional as F
from toytorch.nn.modules.rnn_layers import gru_layer, lstm_layer, rnn_layer
from toytorch.ops.shaping.rearrange import cat, stack

Weights = Sequence[Tensor | None]
Spans = list[tuple[int, int]]


def _direction(mode: str, x: Tensor, states: list[Tensor], weights: Weights, spans: Spans) -> Any:
    """One layer in one direction: outputs, and the states after the last step."""
    every: tuple[Any, ...] = (*weights, None, None, None)
    w_ih, w_hh, b_ih, b_hh, w_hr = every[:5]
    if b_ih is None and b_hh is not None and b_hh.ndim == 2:  # no biases, but a projection
        b_hh, w_hr = None, b_hh
    if mode == "gru":
        return gru_layer(F.linear(x, w_ih, b_ih), states[0], w_hh, b_hh, spans)
    gates = F.linear(x, w_ih, b_ih if b_ih is None or b_hh is None else b_ih + b_hh)
    if mode == "lstm":
        return lstm_layer(gates, *states, w_hh, w_hr, spans)
    return rnn_layer(gates, states[0], w_hh, mode == "rnn_relu", spans)


def _cell(mode: str, input: Tensor, states: list[Tensor], weights: Weights) -> Any:
    one = input.ndim == 1
    x, before = (input[None], [h[None] for h in states]) if one else (input, states)
    _, *after = _direction(mode, x, before, weights, [(0, len(x))])
    return [h[0] for h in after] if one else after


def _cell_function(name: str, doc: str, states: int = 1) -> Any:
    """The function of one step, whose state is one tensor or, of an LSTM, two."""

    def function(
        input: Tensor,
        hx: Tensor | Sequence[Tensor],
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Any:
        if states == 2 and len(hx) != 2:
            raise RuntimeError(f"{name} expects two hidden states")
        before: list[Any] = [hx] if states == 1 else list(hx)
        made = _cell(name.removesuffix("_cell"), input, before, (w_ih, w_hh, b_ih, b_hh))
        return made[0] if states == 1 else tuple(made)

    return called(name, doc, function)


rnn_tanh_cell = _cell_function(
    "rnn_tanh_cell",
    """tanh(W_ih·x + b_ih + W_hh·h + b_hh).

    >>> one = torch.ones(1, 1)
    >>> torch.rnn_tanh_cell(one, one, one, one)
    tensor([[0.9640]])
    """,
)
rnn_relu_cell = _cell_function("rnn_relu_cell", "max(0, W_ih·x + b_ih + W_hh·h + b_hh).")
gru_cell = _cell_function("gru_cell", "One step of a GRU.")
lstm_cell = _cell_function("lstm_cell", "One step of an LSTM: (h, c) from x and (h, c).", states=2)


def _network(mode: str, count: int, args: Args) -> Any:
    """Layers over steps of rows, or over packed rows (data, batch_sizes, hx, …)."""
    packed = isinstance(args[1] if count > 1 else args[2], Tensor)
    if packed:
        data, sizes, hx, params, biases, layers, dropout, train, both = args
        ends = list(accumulate(sizes.tolist(), initial=0))
    else:
        input, hx, params, biases, layers, dropout, train, both, first = args
        x = input.transpose(0, 1) if first else input
        steps, batch = x.shape[0], x.shape[1]
        data = x.reshape(steps * batch, x.shape[2])
        ends = list(range(0, steps * batch + 1, batch)) if batch else [0] * (steps + 1)
    states = list(hx) if count > 1 else [hx]
    spans = list(pairwise(ends))
    ways = 2 if both else 1
    width = len(params) // (layers * ways)
    last: list[Any] = []
    for layer in range(layers):
        outputs = []
        for d in range(ways):
            at = layer * ways + d
            weights = list(params[at * width : (at + 1) * width])
            if not biases:
                weights[2:2] = [None, None]
            before = [s[at] for s in states]
            made, *after = _direction(mode, data, before, weights, spans[::-1] if d else spans)
            outputs.append(made)
            last.append(after)
        data = outputs[0] if ways == 1 else cat.function(outputs, 1)
        if dropout and train and layer < layers - 1:
            data = F.dropout(data, dropout)
    after = [stack.function(list(each), 0) for each in zip(*last)]
    if not packed:
        data = data.view(steps, batch, data.shape[1])
        data = data.transpose(0, 1) if first else data
    return data, *after


def _form(mode: str, doc: str, states: int = 1) -> Any:
    return called(mode, doc, lambda *args: _network(mode, states, args))


lstm = _form(
    "lstm",
    """(output, h, c) of (input, (h, c), params, has_biases, num_layers, dropout, train, bidirectional,
    batch_first), or of packed rows (data, batch_sizes, (h, c), params, …, bidirectional).""",
    states=2,
)
gru, rnn_tanh, rnn_relu = (
    _form(mode, "(output, h), as `lstm`.") for mode in ("gru", "rnn_tanh", "rnn_relu")
)

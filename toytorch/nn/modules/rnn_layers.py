"""One recurrent layer in one direction as a function with a backward of its own.

Both ways go through all steps on bare arrays (`rnn_arrays`). Where a derivative of the gradient is
wanted, or a mode looks on, the steps are tensor operations instead (`rnn_steps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toytorch.autograd.api import grad as gradients
from toytorch.autograd.function import Function
from toytorch.backends import base
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import state
from toytorch.facts.hints import Array
from toytorch.nn.modules import rnn_arrays as arrays
from toytorch.nn.modules import rnn_steps as composed

if TYPE_CHECKING:
    from toytorch.autograd.function import FunctionCtx


Spans = list[tuple[int, int]]


def _arrays(tensors: Any) -> list[Any]:
    return [t._array if isinstance(t, Tensor) else t for t in tensors]


def _wrapped(results: Sequence[Array | None]) -> list[Any]:
    return [None if r is None else wrap(r) for r in results]


def _again(
    function: Any, inputs: list[Tensor | None], options: tuple[Any, ...], grads: tuple[Tensor, ...]
) -> list[Any]:
    """The gradients of the inputs by way of the composed function: differentiable themselves."""
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    outputs = function(*inputs, *options)
    found = iter(gradients(outputs, wanted, grads, create_graph=True, allow_unused=True))
    return [next(found) if isinstance(t, Tensor) and t.requires_grad else None for t in inputs]


class Lstm(Function):
    """outputs, last h, last c = lstm(gates, h0, c0, w_hh, w_hr) over spans."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        *inputs, spans = args
        xp = base.of_array(inputs[0]._array).xp
        outputs, h, c, *kept = base.launched(
            "lstm", arrays.lstm_forward, xp, *_arrays(inputs), spans
        )
        results = wrap(outputs), wrap(h), wrap(c)
        ctx.spans, ctx.kept, ctx.xp = spans, kept, xp
        ctx.save_for_backward(*inputs, results[0])
        return results

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> Any:
        *inputs, outputs = ctx.saved_tensors
        if state.local.grad:
            return (*_again(composed.lstm_steps, inputs, (ctx.spans,), grads), None)
        made = base.launched(
            "lstm_backward",
            arrays.lstm_backward,
            ctx.xp,
            _arrays(grads),
            _arrays(inputs),
            (outputs._array, *ctx.kept),
            ctx.spans,
        )
        return (*_wrapped(made), None)


class Gru(Function):
    """outputs, last h = gru(gates, h0, w_hh, b_hh) over spans."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        *inputs, spans = args
        xp = base.of_array(inputs[0]._array).xp
        outputs, h, *kept = base.launched("gru", arrays.gru_forward, xp, *_arrays(inputs), spans)
        results = wrap(outputs), wrap(h)
        ctx.spans, ctx.kept, ctx.xp = spans, kept, xp
        ctx.save_for_backward(*inputs, results[0])
        return results

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> Any:
        *inputs, outputs = ctx.saved_tensors
        if state.local.grad:
            return (*_again(composed.gru_steps, inputs, (ctx.spans,), grads), None)
        made = base.launched(
            "gru_backward",
            arrays.gru_backward,
            ctx.xp,
            _arrays(grads),
            _arrays(inputs),
            (outputs._array, *ctx.kept),
            ctx.spans,
        )
        return (*_wrapped(made), None)


class Rnn(Function):
    """outputs, last h = rnn(gates, h0, w_hh, relu) over spans."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        *inputs, relu, spans = args
        xp = base.of_array(inputs[0]._array).xp
        made = base.launched("rnn", arrays.rnn_forward, xp, *_arrays(inputs), relu, spans)
        results = tuple(_wrapped(made))
        ctx.relu, ctx.spans, ctx.xp = relu, spans, xp
        ctx.save_for_backward(*inputs, results[0])
        return results

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> Any:
        *inputs, outputs = ctx.saved_tensors
        if state.local.grad:
            return (*_again(composed.rnn_steps, inputs, (ctx.relu, ctx.spans), grads), None, None)
        made = base.launched(
            "rnn_backward",
            arrays.rnn_backward,
            ctx.xp,
            _arrays(grads),
            _arrays(inputs),
            ctx.relu,
            outputs._array,
            ctx.spans,
        )
        return (*_wrapped(made), None, None)


def run(function: Any, steps: Any, *args: object) -> tuple[Any, ...]:
    """A layer on bare arrays, or step by step where a mode looks on or derivatives run along."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    watched = bool(state.local.modes) or any(
        t._batches is not None or t._tangents is not None for t in tensors
    )
    half = None if tensors[0].dtype.itemsize > 2 else tensors[0].dtype
    if half is not None:  # steps of 16 bits would lose too much
        args = tuple(a.float() if isinstance(a, Tensor) else a for a in args)
    results: tuple[Any, ...] = steps(*args) if watched else function.apply(*args)
    return results if half is None else tuple(r.to(half) for r in results)


def lstm_layer(*args: object) -> tuple[Any, ...]:
    """(gates, h0, c0, w_hh, w_hr, spans): outputs, last h, last c."""
    return run(Lstm, composed.lstm_steps, *args)


def gru_layer(*args: object) -> tuple[Any, ...]:
    """(gates, h0, w_hh, b_hh, spans): outputs, last h."""
    return run(Gru, composed.gru_steps, *args)


def rnn_layer(*args: object) -> tuple[Any, ...]:
    """(gates, h0, w_hh, relu, spans): outputs, last h."""
    return run(Rnn, composed.rnn_steps, *args)

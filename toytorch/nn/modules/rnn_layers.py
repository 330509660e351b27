"""One recurrent layer in one direction as a function with a backward of its own.

Both ways go through all steps on bare arrays (`rnn_arrays`). Where a derivative of the gradient is
wanted, or a mode looks on, the steps are tensor operations instead (`rnn_steps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.amp.casting import get_autocast_dtype, is_autocast_available, is_autocast_enabled
from toytorch.autograd.api import grad as gradients
from toytorch.autograd.function import Function, FunctionCtx
from toytorch.backends import base
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import state
from toytorch.facts.dtype import float32, float64
from toytorch.facts.hints import Array
from toytorch.facts.node import Same, node_of
from toytorch.nn.modules import rnn_arrays as arrays
from toytorch.nn.modules import rnn_steps as composed
from toytorch.ops.shaping.view import alias

Spans = list[tuple[int, int]]


def _arrays(tensors: Any) -> list[Any]:
    return [t._array if isinstance(t, Tensor) else t for t in tensors]


def _wrapped(results: Sequence[Array | None]) -> list[Any]:
    return [None if r is None else wrap(r) for r in results]


def _again(
    function: Any, inputs: list[Tensor | None], options: tuple[Any, ...], grads: tuple[Tensor, ...]
) -> list[Any]:
    """The gradients of the inputs by way of the composed function: differentiable themselves."""
    # Each input by itself: a state that came of the same weights would bring their gradient along.
    inputs = [alias.function(t) if isinstance(t, Tensor) and t.requires_grad else t for t in inputs]
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    outputs = function(*inputs, *options)
    found = iter(gradients(outputs, wanted, grads, create_graph=True, allow_unused=True))
    return [next(found) if isinstance(t, Tensor) and t.requires_grad else None for t in inputs]


def layer(kind: str, states: int, options: int) -> tuple[type[Function], Any]:
    """A kind of layer as a function with a backward of its own, and composed of steps.

    Both take inputs and options, of which the last are the spans, and give outputs and last states.
    """
    forward_kernel = getattr(arrays, f"{kind}_forward")
    backward_kernel = getattr(arrays, f"{kind}_backward")
    steps = getattr(composed, f"{kind}_steps")

    class Layer(Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            inputs, ctx.options = args[:-options], args[-options:]
            ctx.xp = base.of_array(inputs[0]._array).xp
            made = base.launched(kind, forward_kernel, ctx.xp, *_arrays(inputs), *ctx.options)
            results, ctx.kept = tuple(_wrapped(made[: 1 + states])), made[1 + states :]
            # PyTorch's fused LSTM alone keeps what it gives; of others a program may write over that.
            fused = kind == "lstm" and results[0].dtype is float32
            kept = results[0] if fused or not any(ctx.needs_input_grad) else results[0].clone()
            ctx.save_for_backward(*inputs, kept)
            return results

        @staticmethod
        def backward(ctx: FunctionCtx, *grads: Tensor) -> Any:
            *inputs, outputs = ctx.saved_tensors
            rest = (None,) * options
            if state.local.grad:
                return (*_again(steps, inputs, ctx.options, grads), *rest)
            given = _arrays(grads), _arrays(inputs), (outputs._array, *ctx.kept)
            made = base.launched(f"{kind}_backward", backward_kernel, ctx.xp, *given, *ctx.options)
            return (*_wrapped(made), *rest)

    Layer.__name__ = Layer.__qualname__ = kind.capitalize()
    Layer._backward_cls.__name__ = "CatBackward0"  # what PyTorch's steps end in
    return Layer, steps


def called(name: str, function: type[Function], steps: Any) -> tuple[type[Function], Any]:
    """The same layer, whose step of the graph has another name."""
    made: type[Function] = type(function.__name__, (function,), {})
    made._backward_cls.__name__ = name
    return made, steps


LSTM, GRU, RNN = layer("lstm", 2, 1), layer("gru", 1, 1), layer("rnn", 1, 2)
LSTM_CELL, GRU_CELL = called("MulBackward0", *LSTM), called("AddBackward0", *GRU)


class AddBackward0(Same):
    """The step that PyTorch's graph of an LSTM's cell has last before c, as h has a product."""

    __slots__ = ()


def ends_in_sum(h: Tensor, c: Tensor) -> None:
    """Gives c a step of its own where it shares the layer's with h."""
    if c._grad_edge is not None and node_of(c._grad_edge) is node_of(h._grad_edge):
        node = AddBackward0(c)
        node.edges, c._grad_edge = (c._grad_edge,), node


def run(function: Any, steps: Any, *args: object) -> tuple[Any, ...]:
    """A layer on bare arrays, or step by step where a mode looks on, derivatives run along, or numbers
    are complex, which the programs of a step are not for."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    watched = bool(state.local.modes) or any(
        t._batches is not None or t._tangents is not None or t.is_complex() for t in tensors
    )
    half = None if tensors[0].dtype.itemsize > 2 else tensors[0].dtype
    if half is not None:  # steps of 16 bits would lose too much
        args = tuple(a.float() if isinstance(a, Tensor) else a for a in args)
    results: tuple[Any, ...] = steps(*args) if watched else function.apply(*args)
    return results if half is None else tuple(r.to(half) for r in results)


def casts(kind: str) -> bool:
    """Whether autocast is on for a kind of device."""
    return is_autocast_available(kind) and is_autocast_enabled(kind)


def need_alike(h: Tensor, weight: Tensor) -> None:
    """Refuses states of another type than the weights; autocast makes all but float64 alike."""
    if h.dtype is weight.dtype:
        return
    kind, other = h.device.type, weight.dtype
    if casts(kind):
        if float64 not in (h.dtype, other):
            return
        other = get_autocast_dtype(kind)
    raise RuntimeError(
        f"mat1 and mat2 must have the same dtype, but got {h.dtype.legacy} and {other.legacy}"
    )


def lstm_layer(
    gates: Tensor, h0: Tensor, c0: Tensor, w_hh: Tensor, *more: Any, layer: Any = LSTM
) -> tuple[Any, ...]:
    """(gates, h0, c0, w_hh, w_hr, spans): outputs, last h, last c."""
    need_alike(h0, w_hh)
    return run(*layer, gates, h0, c0, w_hh, *more)


def gru_layer(
    gates: Tensor, h0: Tensor, w_hh: Tensor, *more: Any, layer: Any = GRU
) -> tuple[Any, ...]:
    """(gates, h0, w_hh, b_hh, spans): outputs, last h."""
    need_alike(h0, w_hh)
    return run(*layer, gates, h0, w_hh, *more)


def rnn_layer(gates: Tensor, h0: Tensor, w_hh: Tensor, *more: Any) -> tuple[Any, ...]:
    """(gates, h0, w_hh, relu, spans): outputs, last h."""
    need_alike(h0, w_hh)
    return run(*RNN, gates, h0, w_hh, *more)

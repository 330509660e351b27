"""Recurrent networks: RNN, LSTM and GRU, of several layers and both directions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from toytorch.core.op import Op
from toytorch.core.public_modules import finder
from toytorch.core.tensor import Tensor
from toytorch.core.views import of_its_own
from toytorch.facts import warned
from toytorch.facts.dtype import float32
from toytorch.facts.parts import shows
from toytorch.nn import functional as F
from toytorch.nn import init
from toytorch.nn.modules.module import Module
from toytorch.nn.modules.rnn_layers import casts, gru_layer, lstm_layer, rnn_layer
from toytorch.nn.parameter import Parameter
from toytorch.nn.utils.rnn import PackedSequence
from toytorch.ops.creation.create import empty, zeros
from toytorch.ops.shaping.rearrange import cat, stack
from toytorch.ops.shaping.view import transpose, view_

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What RNN, LSTM and GRU share: weights by layer and direction, and the way through them.

    Weights and biases start uniform in ±1/√hidden_size.
    """

    states = 1  # tensors in the hidden state

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_options(
            mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size
        )
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional = float(dropout), bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        gates, out = GATES[mode] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else out * (2 if bidirectional else 1)
            for suffix in ("", "_reverse")[: 2 if bidirectional else 1]:
                shapes = {"weight_ih": (gates, width), "weight_hh": (gates, out)}
                if bias:
                    shapes.update(bias_ih=(gates,), bias_hh=(gates,))  # type: ignore[arg-type]  # tuples of one size among pairs
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                self._all_weights.append([f"{n}_l{layer}{suffix}" for n in shapes])
                for name, shape in zip(self._all_weights[-1], shapes.values()):
                    setattr(self, name, Parameter(empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new starting values."""
        bound = 1 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: weights need not lie side by side here."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights of every layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [w for weights in self.all_weights for w in weights]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        vars(self).update(  # in front of the parameters, which stay what they are
            (n, w) for n, w in zip(self._flat_weights_names, weights) if getattr(self, n) is not w
        )

    extra_repr = shows(
        "=input_size =hidden_size proj_size num_layers bias batch_first dropout bidirectional",
        proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0, bidirectional=False,
    )  # fmt: skip

    # -- checks -------------------------------------------------------------------------------

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuses inputs of another type or width."""
        kind = self.weight_ih_l0.dtype
        if input.dtype is not kind and not casts(input.device.type):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({kind}). Convert "
                f"input: input.to({kind}), or convert model: model.to({input.dtype})"
            )
        wanted = 2 if batch_sizes is not None else 3
        if input.ndim != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.ndim}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )

    def _sizes(self, batch: int) -> list[tuple[int, int, int]]:
        """The shape of every tensor of the hidden state."""
        lead = self.num_layers * (2 if self.bidirectional else 1)
        return [(lead, batch, self.proj_size or self.hidden_size), (lead, batch, self.hidden_size)][
            : self.states
        ]

    def check_hidden_size(
        self, hx: Tensor, expected: tuple[int, ...], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuses a hidden state of another shape."""
        if tuple(hx.shape) != expected:
            raise RuntimeError(msg.format(expected, list(hx.shape)))

    # what subclasses with a `forward` of their own call

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the hidden state for an input, whose steps may be packed."""
        return self._expected(input, batch_sizes)[0]

    def _expected(self, input: Tensor, batch_sizes: Tensor | None) -> list[tuple[int, int, int]]:
        if batch_sizes is not None:
            return self._sizes(int(batch_sizes[0]))
        return self._sizes(input.size(0 if self.batch_first else 1))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuses an input or a hidden state of another shape."""
        self.check_input(input, batch_sizes)
        self._check_hidden(
            [hidden] if self.states == 1 else hidden, self._expected(input, batch_sizes)
        )

    def _check_hidden(self, hidden: Any, sizes: list[tuple[int, int, int]]) -> None:
        for i, (h, size) in enumerate(zip(hidden, sizes)):
            which = "" if self.states == 1 else f"[{i}]"
            self.check_hidden_size(h, size, f"Expected hidden{which} size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The hidden state with its sequences in another order."""
        if permutation is None:
            return hx
        if self.states == 1:
            return hx.index_select(1, permutation)
        return tuple(h.index_select(1, permutation) for h in hx)

    def _check_dims(self, input: Tensor, hx: Any) -> None:
        """Refuses numbers of dimensions that do not go together."""
        name = "RNN" if self.mode.startswith("RNN") else self.mode
        if input.ndim not in (2, 3):
            ending = " tensor instead" if name == "RNN" else " instead"
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.ndim}D{ending}")
        if hx is not None and any(h.dim() != input.ndim for h in hx):
            kind = "batched 3-D" if input.ndim == 3 else "unbatched 2-D"
            if self.states == 1:
                raise RuntimeError(
                    f"For {kind} input, hx should also be {input.ndim}-D but got "
                    f"{hx[0].ndim}-D tensor"
                )
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {input.ndim}-D but got "
                f"({hx[0].ndim}-D, {hx[1].ndim}-D) tensors"
            )

    # -- computing ----------------------------------------------------------------------------

    def forward(
        self, input: PackedSequence | Tensor, hx: Tensor | Sequence[Tensor] | None = None
    ) -> Any:
        """(output, hidden state after the last step), from (T, B, in) or a PackedSequence."""
        hidden: Any = hx
        if hx is not None:
            hidden = [hx] if self.states == 1 else [hx[i] for i in range(self.states)]
        if isinstance(input, PackedSequence):
            made, last = self._packed(input, hidden)
        else:
            made, last = self._padded(input, hidden)
        return made, (last[0] if self.states == 1 else tuple(last))

    def _start(self, data: Tensor, batch: int, hidden: Any) -> list[Tensor]:
        sizes = self._sizes(batch)
        if hidden is None:
            return [zeros(s, dtype=data.dtype, device=data.device) for s in sizes]
        self._check_hidden(hidden, sizes)
        return list(hidden)

    def _fused(self, x: Tensor) -> bool:
        """Whether PyTorch runs all steps as one call of its fused layer."""
        return self.mode == "LSTM" and x.dtype is float32 and not self.proj_size and x.numel() > 0

    def _padded(self, input: Tensor, hidden: Any) -> tuple[Any, Any]:
        self._check_dims(input, hidden)
        batched = input.ndim == 3
        if not batched:
            input = input.unsqueeze(0 if self.batch_first else 1)
            hidden = None if hidden is None else [h.unsqueeze(1) for h in hidden]
        self.check_input(input, None)
        x = input.transpose(0, 1) if self.batch_first else input
        length, batch = x.shape[:2]
        if not length:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        hidden = self._start(x, batch, hidden)
        spans = [(t * batch, (t + 1) * batch) for t in range(length)]
        fused = self._fused(x)
        if fused:
            x = x.contiguous()  # as PyTorch's fused layer takes it, and saves it
        made, last = self._layers(x.reshape([length * batch, x.shape[2]]), hidden, spans)
        made = of_its_own(made.reshape([length, batch, made.shape[1]]))
        ending = "MkldnnRnnLayer" if fused else "Stack"
        named(made, view_, f"{'Cat' if self.bidirectional else ending}Backward0")
        if self.batch_first:
            made = made.transpose(0, 1)
            if self.mode != "LSTM":  # which PyTorch turns in place
                named(of_its_own(made), transpose, 1)
        if not batched:
            made = made.squeeze(0 if self.batch_first else 1)
            last = [h.squeeze(1) for h in last]
        return made, last

    def _packed(self, input: PackedSequence, hidden: Any) -> tuple[Any, Any]:
        data, batch_sizes, order, back = input
        self.check_input(data, batch_sizes)
        sizes = batch_sizes.tolist()
        if hidden is not None and order is not None:
            hidden = [h.index_select(1, order) for h in hidden]
        hidden = self._start(data, sizes[0], hidden)
        spans = list(pairwise(accumulate(sizes, initial=0)))
        made, last = self._layers(data, hidden, spans)
        if self._fused(data) and sizes[0] == sizes[-1]:
            made = view_.function(made, made.shape)  # of sequences as long as each other
        if back is not None:
            last = [h.index_select(1, back) for h in last]
        return PackedSequence(made, batch_sizes, order, back), last

    def _layers(
        self, x: Tensor, hidden: list[Tensor], spans: Sequence[Sequence[int]]
    ) -> tuple[Tensor, list[Tensor]]:
        """All layers, one after the other, over steps of rows: (N, in) to (N, out)."""
        last: list[Any] = []
        directions = 2 if self.bidirectional else 1
        for layer in range(self.num_layers):
            outputs = []
            for d in range(directions):
                at = layer * directions + d
                made, *after = self._direction(
                    x, [h[at] for h in hidden], self._all_weights[at], spans[::-1] if d else spans
                )
                outputs.append(made)
                last.append(after)
            x = outputs[0] if directions == 1 else cat.function(outputs, 1)
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        return x, [stack.function(list(each), 0) for each in zip(*last)]

    def _direction(
        self, x: Tensor, hidden: list[Tensor], names: list[str], spans: Sequence[Sequence[int]]
    ) -> tuple[Any, ...]:
        """One layer in one direction: outputs, and the state after the last step."""
        w = {name.partition("_l")[0]: getattr(self, name) for name in names}
        b_ih, b_hh = w.get("bias_ih"), w.get("bias_hh")
        if self.mode == "GRU":
            gates = F.linear(x, w["weight_ih"], b_ih)
            return gru_layer(gates.to(hidden[0].dtype), hidden[0], w["weight_hh"], b_hh, spans)
        gates = F.linear(x, w["weight_ih"], b_ih if b_ih is None else b_ih + b_hh)
        if self.mode == "LSTM":
            return lstm_layer(gates, *hidden, w["weight_hh"], w.get("weight_hr"), spans)
        return rnn_layer(gates, hidden[0], w["weight_hh"], self.mode == "RNN_RELU", spans)


def named(made: Tensor, op: Op, name: str | int) -> None:
    """Gives what a view made the step of the graph that PyTorch's layer ends in."""
    if made._grad_edge.__class__ is op.node:
        made._grad_edge.__class__ = op.node_variant(name)


def _check_options(
    mode: str,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    bias: bool,
    batch_first: bool,
    dropout: float,
    proj_size: int,
) -> None:
    """Refuses what no network can be made of."""
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability "
            "of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warned.at_call(
            "dropout option adds dropout after all but last recurrent layer, so non-zero "
            f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}"
        )
    for name, value, kind in (
        ("bias", bias, bool),
        ("batch_first", batch_first, bool),
        ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
    ):
        if not isinstance(value, kind):
            raise TypeError(
                f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
            )
    for name, value in (
        ("input_size", input_size),
        ("hidden_size", hidden_size),
        ("num_layers", num_layers),
    ):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if mode not in GATES:
        raise ValueError("Unrecognized RNN mode: " + mode)


class RNN(RNNBase):
    """hₜ = tanh(W_ih·xₜ + b_ih + W_hh·hₜ₋₁ + b_hh), or with max(0, ·); Elman 1990.

    >>> output, last = RNN(3, 4)(torch.ones(5, 2, 3))
    >>> output.shape, last.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity, args = args[3], (*args[:3], *args[4:])
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """r, z = σ(·), n = tanh(W·x + b + r·(U·h + b')), h ← (1 - z)·n + z·h; Cho et al. 2014."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """i, f, o = σ(·), g = tanh(·), c ← f·c + i·g, h ← o·tanh c; Hochreiter and Schmidhuber 1997.

    With proj_size, h is projected to that size after each step; Sak et al. 2014.

    >>> output, (h, c) = LSTM(3, 4, num_layers=2)(torch.ones(5, 2, 3))
    >>> output.shape, h.shape, c.shape
    (torch.Size([5, 2, 4]), torch.Size([2, 2, 4]), torch.Size([2, 2, 4]))
    """

    states = 2

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the cells for an input, whose steps may be packed."""
        return self._expected(input, batch_sizes)[1]


__getattr__ = finder(__name__)

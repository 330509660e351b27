"""One step of a recurrent network."""

from __future__ import annotations

import math
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Device, DType
from toytorch.facts.schema import wrong_argument
from toytorch.nn import functional as F
from toytorch.nn import init
from toytorch.nn.modules.module import Module
from toytorch.nn.modules.rnn_layers import GRU_CELL, LSTM_CELL, ends_in_sum, gru_layer, lstm_layer
from toytorch.nn.parameter import Parameter
from toytorch.ops.creation.create import empty, zeros


class RNNCellBase(Module):
    """Weights of the input and of the state, (gates·hidden, in) and (gates·hidden, hidden)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = num_chunks * hidden_size
        for name, shape in (
            ("weight_ih", (gates, input_size)),
            ("weight_hh", (gates, hidden_size)),
            ("bias_ih", (gates,)),
            ("bias_hh", (gates,)),
        ):
            absent = name.startswith("bias") and not bias
            self.register_parameter(
                name, None if absent else Parameter(empty(shape, device=device, dtype=dtype))
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new starting values, uniform in ±1/√hidden_size."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if self.__dict__.get("nonlinearity", "tanh") != "tanh":
            parts.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(parts)

    def _set_up(self, input: Tensor, states: Any, count: int) -> tuple[Tensor, list[Tensor], bool]:
        """The input and the states with a batch dimension, and whether they had one."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        for i, h in enumerate(() if states is None else states):
            if h.ndim not in (1, 2):
                which = f"hx[{i}]" if count > 1 else "hidden"
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {h.ndim}D instead")
        if isinstance(states, Tensor):
            raise wrong_argument("lstm_cell", "hx", 2, "tuple of Tensors", states)
        if states is not None and len(states) != count:
            raise RuntimeError("lstm_cell expects two hidden states")
        batched = input.ndim == 2
        if not batched:
            input = input.unsqueeze(0)
            states = None if states is None else [h.unsqueeze(0) for h in states]
        if states is None:
            states = [
                zeros((input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device)
            ] * count
        if input.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[1]} expected "
                f"{self.input_size}"
            )
        for i, h in enumerate(states):
            if h.shape[0] != input.shape[0]:
                raise RuntimeError(
                    f"Input batch size {input.shape[0]} doesn't match hidden{i} "
                    f"batch size {h.shape[0]}"
                )
            if h.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {h.shape[1]}, "
                    f"expected {self.hidden_size}"
                )
        return input, list(states), batched

    def _gates(self, input: Tensor) -> Tensor:
        """The input's share of the gates, with both biases."""
        return F.linear(input, self.weight_ih, self.bias_ih + self.bias_hh if self.bias else None)


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih·x + b_ih + W_hh·h + b_hh), or with max(0, ·)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        x, (h,), batched = self._set_up(input, None if hx is None else [hx], 1)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        made = F.linear(h, self.weight_hh, self.bias_hh)
        made = made + F.linear(x, self.weight_ih, self.bias_ih)
        made = made.relu() if self.nonlinearity == "relu" else made.tanh()
        return made if batched else made.squeeze(0)


class _GatedCell(RNNCellBase):
    """A cell of several gates, whose weights stand in one matrix."""

    chunks = 0  # how many

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, self.chunks, device, dtype)


class LSTMCell(_GatedCell):
    """One step of an LSTM: (h', c') from x and (h, c).

    >>> h, c = LSTMCell(3, 4)(torch.ones(2, 3))
    >>> h.shape, c.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    chunks = 4

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        x, (h, c), batched = self._set_up(input, hx, 2)
        gates, rows = self._gates(x).to(h.dtype), [(0, len(x))]
        h, _, c = lstm_layer(gates, h, c, self.weight_hh, None, rows, layer=LSTM_CELL)
        ends_in_sum(h, c)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(_GatedCell):
    """One step of a GRU: h' from x and h."""

    chunks = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        x, (h,), batched = self._set_up(input, None if hx is None else [hx], 1)
        made = gru_layer(
            F.linear(x, self.weight_ih, self.bias_ih).to(h.dtype),
            h,
            self.weight_hh,
            self.bias_hh,
            [(0, len(x))],
            layer=GRU_CELL,
        )[0]
        return made if batched else made.squeeze(0)

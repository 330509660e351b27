"""The names that printed tensors show of their history, and what public modules ask of scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import torch, tt

pytestmark = pytest.mark.filterwarnings("ignore")


def name(x: Any) -> str:
    """The name of the step that made a tensor."""
    return type(x.grad_fn).__name__


ACTIVATIONS = "ReLU LeakyReLU ELU SELU CELU ReLU6 Hardtanh Hardsigmoid Hardswish SiLU Mish RReLU"


def activation(kind: str) -> Callable[[Any, Any], Any]:
    """A call of an activation in place."""
    return lambda t, x: getattr(t.nn, kind)(inplace=True)(x)


IN_PLACE = {
    **{kind: activation(kind) for kind in ACTIVATIONS.split()},
    "Threshold": lambda t, x: t.nn.Threshold(0.1, 1.0, inplace=True)(x),
    "t_": lambda t, x: x[0].t_(),
    "transpose_": lambda t, x: x.transpose_(0, 1),
    "swapaxes_": lambda t, x: x.swapaxes_(0, 1),
    "squeeze_": lambda t, x: x.squeeze_(),
    "squeeze_(0)": lambda t, x: x.squeeze_(0),
    "unsqueeze_": lambda t, x: x.unsqueeze_(0),
    "reshape": lambda t, x: x[:, :, ::2].reshape(2, 6),
    "reshape of all": lambda t, x: x.reshape(3, 8),
    "reshape of a copy": lambda t, x: x.transpose(0, 2).reshape(-1),
    "flatten": lambda t, x: x.transpose(0, 1).flatten(1),
    "reshape_as": lambda t, x: x[:, :, ::2].reshape_as(t.ones(6, 2)),
}


@pytest.mark.parametrize("what", IN_PLACE)
def test_steps_are_named_alike(what: str) -> None:
    f = IN_PLACE[what]
    want, got = (name(f(r, r.ones(2, 3, 4, requires_grad=True) * 1)) for r in (torch, tt))
    assert got == want


def recurrent(root: Any, kind: str, options: dict[str, Any], shape: tuple[int, ...]) -> list[str]:
    made, last = getattr(root.nn, kind)(3, 4, **options)(root.ones(shape))
    return [name(made), *(name(h) for h in (last if kind == "LSTM" else [last]))]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(
    "options",
    [{}, {"batch_first": True}, {"bidirectional": True}, {"num_layers": 2}, {"dtype": "float64"}],
    ids=str,
)
def test_recurrent_layers_name_their_steps(kind: str, options: dict[str, Any]) -> None:
    if "dtype" in options:
        for root in (torch, tt):
            root.set_default_dtype(root.float64)
        options = {}
    try:
        for shape in ((5, 2, 3), (5, 3)):
            assert recurrent(tt, kind, options, shape) == recurrent(torch, kind, options, shape)
    finally:
        for root in (torch, tt):
            root.set_default_dtype(root.float32)


@pytest.mark.parametrize("cell", ["GRUCell", "RNNCell", "LSTMCell"])
def test_cells_name_their_step(cell: str) -> None:
    made = [getattr(r.nn, cell)(3, 4)(r.ones(2, 3)) for r in (torch, tt)]
    want, got = (name(m[0] if isinstance(m, tuple) else m) for m in made)
    assert got == want


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("total", [None, 6])
def test_padding_of_unsorted_sequences_lies_alike(batch_first: bool, total: int | None) -> None:
    def padded(root: Any) -> tuple[Any, ...]:
        rnn = root.nn.utils.rnn
        x = root.arange(24.0).view(4, 2, 3).requires_grad_()
        packed = rnn.pack_padded_sequence(x, [2, 4], enforce_sorted=False)
        made, lengths = rnn.pad_packed_sequence(packed, batch_first, total_length=total)
        return made.tolist(), made.stride(), made._is_view(), name(made), lengths.tolist()

    assert padded(tt) == padded(torch)


MASKS: dict[str, Callable[[Any, Any], object]] = {
    "a mask of all": lambda t, m: m.__setitem__(m != m, 0.0),
    "a tensor": lambda t, m: m.__setitem__(m > 0, t.tensor(1.0)),
    "a mask of columns": lambda t, m: m.__setitem__((slice(None), m[0] > 0), 1.0),
    "index_put_": lambda t, m: m.index_put_((m > 0,), t.ones((), device="meta")).shape,
}


@pytest.mark.parametrize("what", MASKS)
def test_one_number_is_written_by_a_mask_without_elements(what: str) -> None:
    for root in (torch, tt):
        x = root.zeros(2, 3, device="meta")
        found = MASKS[what](root, x)
        assert (found is None or tuple(found) == (2, 3)) and x._version == 1


ATTENTION = {
    "alike": lambda t, q: (q, q, q),
    "a narrow value": lambda t, q: (q, q, q.bfloat16()),
    "a narrow query": lambda t, q: (q.bfloat16(), q, q),
    "a mask": lambda t, q: (q, q, q, t.zeros(3, 3)),
    "three dimensions": lambda t, q: (q[0], q[0], q[0]),
}


@pytest.mark.parametrize("what", ATTENTION)
def test_autocast_narrows_attention(what: str) -> None:
    for root in (torch, tt):
        q = root.ones(1, 2, 3, 4)
        with root.autocast("cpu"):
            made = root.nn.functional.scaled_dot_product_attention(*ATTENTION[what](root, q))
        assert str(made.dtype).endswith(".bfloat16")


def test_autocast_of_sparse_products() -> None:
    found = []
    for root in (torch, tt):
        a = root.eye(2).to_sparse()
        with root.autocast("cpu"):
            found.append((a @ root.ones(2, 2)).tolist())
    assert found[0] == found[1]


def test_classes_of_steps() -> None:
    """They look as if built in."""
    said = []
    for t in (torch, tt):
        x = t.ones(2, 2, requires_grad=True)
        made = x * 2, x**2, (x + 1).t_(), t.max(x, 0)[0], x.sqrt()
        nodes = [y.grad_fn for y in made] + [(x * 2).grad_fn.next_functions[0][0]]
        said.append([(str(type(n)), type(n).__module__) for n in nodes])
    assert said[1] == said[0]

"""Recurrent networks: packed sequences, both ways to compute a layer, second derivatives."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from tests.oracle import ORACLE, SUBJECT, attempt, both, differences, error_difference, torch, tt

KINDS = ["RNN", "LSTM", "GRU"]


def pair(kind: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    """The same network on both sides."""
    theirs = getattr(torch.nn, kind)(*args, **options).double()
    mine = getattr(tt.nn, kind)(*args, **options).double()
    mine.load_state_dict(SUBJECT.carry(dict(theirs.state_dict())))
    return theirs, mine


def wave(m: Any, *shape: int) -> Any:
    n = int(np.prod(shape))
    return m.sin(m.arange(n, dtype=m.float64) * 1.3).reshape(shape).requires_grad_()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("enforce_sorted", [True, False])
def test_packed_sequences(kind: str, enforce_sorted: bool) -> None:
    """Sequences of three lengths, both directions, two layers, a state to start from."""
    networks = pair(kind, 3, 4, 2, bidirectional=True)
    lengths = [4, 3, 1] if enforce_sorted else [1, 4, 3]
    results = []
    for m, network, side in zip((torch, tt), networks, (ORACLE, SUBJECT), strict=True):
        x, h = wave(m, 4, 3, 3), wave(m, 4, 3, 4)
        packed = m.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=enforce_sorted)
        out, last = network(packed, (h, h * 2) if kind == "LSTM" else h)
        padded, sizes = m.nn.utils.rnn.pad_packed_sequence(out, padding_value=-1.0)
        sum((t * t).sum() for t in (padded, *side.tensors(last))).backward()
        grads = [x.grad, h.grad, *(p.grad for p in network.parameters())]
        results.append((padded, sizes, out.data, last, grads))
    assert not differences(*results, slack=10)


@pytest.mark.parametrize("kind", KINDS)
def test_step_by_step_is_the_same(kind: str) -> None:
    """Under vmap and forward mode a layer is made of tensor operations; both ways must agree."""
    network = getattr(tt.nn, kind)(3, 4).double()
    x = wave(tt, 5, 6, 2, 3)
    one = tt.stack([network(x[i])[0] for i in range(5)])
    assert not differences(torch.from_numpy(one.detach().numpy()),
                           tt.func.vmap(lambda v: network(v)[0])(x).detach())  # fmt: skip


@pytest.mark.parametrize("kind", [*KINDS, "RNNCell", "LSTMCell", "GRUCell"])
def test_gradients_by_differences(kind: str) -> None:
    network = getattr(tt.nn, kind)(2, 3).double()
    x = wave(tt, *((2, 2) if kind.endswith("Cell") else (3, 2, 2)))
    weights = tuple(p.detach().requires_grad_() for p in network.parameters())
    names = [n for n, _ in network.named_parameters()]

    def f(x: Any, *ws: Any) -> Any:
        out = tt.func.functional_call(network, dict(zip(names, ws, strict=True)), (x,))
        return out[0] if isinstance(out, tuple) else out

    assert tt.autograd.gradcheck(f, (x, *weights))
    assert tt.autograd.gradgradcheck(f, (x, *weights))


def test_projection_has_second_derivatives() -> None:
    network = tt.nn.LSTM(2, 4, proj_size=2).double()
    assert tt.autograd.gradgradcheck(lambda x: network(x)[0], (wave(tt, 3, 2, 2),))


def test_half_precision() -> None:
    network = tt.nn.LSTM(3, 4).half()
    x = wave(tt, 5, 2, 3).half()
    out, (h, _) = network(x)
    want, _ = copy.deepcopy(network).float()(x.float())
    assert out.dtype is h.dtype is tt.float16
    assert (out.float() - want).abs().max().item() < 5e-3


def test_dropout_between_layers() -> None:
    """It acts in training only, and never after the last layer."""
    tt.manual_seed(0)
    network = tt.nn.GRU(3, 4, 2, dropout=1.0).double()
    x = wave(tt, 5, 2, 3)
    out, last = network(x)
    silent, _ = network.eval()(x)
    assert bool((out != 0).all()) and bool((out != silent).any())
    assert last.shape == (2, 2, 4)


def test_copies_and_pickles() -> None:
    network = tt.nn.LSTM(3, 4, bidirectional=True)
    x = tt.ones(2, 1, 3)
    want = network(x)[0]
    for other in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert other.weight_ih_l0 is not network.weight_ih_l0
        assert bool((other(x)[0] == want).all())


RNN_UTILS: dict[str, Any] = {
    "pad_sequence": lambda u, m: u.pad_sequence([m.ones(2, 3), m.zeros(4, 3)], padding_value=7.0),
    "pad left": lambda u, m: u.pad_sequence([m.ones(2), m.zeros(4)], True, 7.0, "left"),
    "unpad": lambda u, m: u.unpad_sequence(m.arange(12.0).reshape(4, 3), m.tensor([2, 4, 1])),
    "pack_sequence": lambda u, m: tuple(u.pack_sequence([m.ones(3), m.zeros(2), m.ones(2)])),
    "unsorted": lambda u, m: tuple(u.pack_sequence([m.ones(1), m.zeros(3)], enforce_sorted=False)),
    "unpack": lambda u, m: u.unpack_sequence(u.pack_sequence([m.ones(1), m.zeros(3)], False)),
    "total length": lambda u, m: u.pad_packed_sequence(u.pack_sequence([m.ones(2)]), True, 0.0, 5),
    "double": lambda u, m: u.pack_sequence([m.ones(2)]).double().data,
    "batch first": lambda u, m: tuple(
        u.pack_padded_sequence(m.arange(6).reshape(2, 3), [3, 1], True)
    ),
}


@pytest.mark.parametrize("label", RNN_UTILS)
def test_packing(label: str) -> None:
    both(lambda m: RNN_UTILS[label](m.nn.utils.rnn, m))


MISUSE: dict[str, Any] = {
    "width": lambda m: m.nn.LSTM(3, 4)(m.ones(2, 1, 2)),
    "dims": lambda m: m.nn.GRU(3, 4)(m.ones(3)),
    "state": lambda m: m.nn.RNN(3, 4)(m.ones(2, 1, 3), m.ones(1, 2, 4)),
    "state without batch": lambda m: m.nn.GRU(3, 4)(m.ones(2, 1, 3), m.ones(1, 4)),
    "pair": lambda m: m.nn.LSTM(3, 4)(m.ones(2, 1, 3), (m.ones(1, 1, 4), m.ones(1, 1, 5))),
    "dtype": lambda m: m.nn.LSTM(3, 4)(m.ones(2, 1, 3, dtype=m.float64)),
    "dropout": lambda m: m.nn.LSTM(3, 4, dropout=2.0),
    "hidden size": lambda m: m.nn.LSTM(3, 0),
    "layers": lambda m: m.nn.LSTM(3, 4, num_layers=0),
    "projection": lambda m: m.nn.LSTM(3, 4, proj_size=4),
    "projection of a GRU": lambda m: m.nn.GRU(3, 4, proj_size=2),
    "nonlinearity": lambda m: m.nn.RNN(3, 4, nonlinearity="sigmoid"),
    "cell width": lambda m: m.nn.GRUCell(3, 4)(m.ones(2, 5)),
    "cell batch": lambda m: m.nn.LSTMCell(3, 4)(m.ones(2, 3), (m.ones(1, 4), m.ones(1, 4))),
    "cell dims": lambda m: m.nn.RNNCell(3, 4)(m.ones(1, 2, 3)),
    "order of lengths": lambda m: m.nn.utils.rnn.pack_padded_sequence(m.ones(3, 2), [1, 3]),
    "empty": lambda m: m.nn.utils.rnn.pack_padded_sequence(m.ones(3, 2), [3, 0]),
    "total": lambda m: m.nn.utils.rnn.pad_packed_sequence(
        m.nn.utils.rnn.pack_sequence([m.ones(3)]), total_length=2
    ),
}


@pytest.mark.parametrize("label", MISUSE)
def test_misuse(label: str) -> None:
    want, got = attempt(MISUSE[label], torch)[1], attempt(MISUSE[label], tt)[1]
    assert want is not None
    bad = error_difference(want, got)
    assert not bad, bad


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [False, True])
def test_what_subclasses_call(kind: str, first: bool) -> None:
    """A network that has a `forward` of its own asks its base class for shapes and order."""

    def told(m: Any, batch: int, packed: bool) -> Any:
        net = getattr(m.nn, kind)(3, 4, 2, bidirectional=True, batch_first=first)
        x, sizes = m.ones(5, 2, 3), None
        if packed:
            x, sizes, *_ = m.nn.utils.rnn.pack_padded_sequence(x, m.tensor([2] * 5), first)
        h = m.arange(16.0 * batch).reshape(4, batch, 4)
        hidden = (h, h + 1) if kind == "LSTM" else h
        turned = net.permute_hidden(hidden, m.arange(batch - 1, -1, -1))
        shapes = [net.get_expected_hidden_size(x, sizes)]
        if kind == "LSTM":
            shapes.append(net.get_expected_cell_size(x, sizes))
        assert net.permute_hidden(hidden, None) is hidden
        said = attempt(lambda: net.check_forward_args(x, hidden, sizes))[1]
        return shapes, [t.tolist() for t in (turned if kind == "LSTM" else [turned])], str(said)

    for batch in (2, 5):
        for packed in (False, True):
            if first or not packed:  # five lengths are of five sequences
                assert told(tt, batch, packed) == told(torch, batch, packed)


@pytest.mark.parametrize("kind", ["RNN", "LSTM"])
def test_complex_numbers(kind: str) -> None:
    """Programs of the loop language are for real numbers: such layers go step by step."""
    results = []
    for m in (torch, tt):
        network = getattr(m.nn, kind)(2, 3, dtype=m.complex128)
        with m.no_grad():
            for k, p in enumerate(network.parameters()):
                wide = wave(m, *p.shape)
                p.copy_(m.complex(wide.detach(), wide.detach() * k / 9))
        x = m.complex(wave(m, 4, 2, 2), wave(m, 4, 2, 2) / 2).detach().requires_grad_()
        out, _ = network(x)
        out.abs().sum().backward()
        results.append((out.detach(), x.grad, [p.grad for p in network.parameters()]))
    assert not differences(*results, slack=10)


def test_what_relu_cuts_off_stops_nan() -> None:
    """The second derivative of a norm at zeros is NaN, and ends at steps that gave zero."""
    results = []
    for m, network in zip((torch, tt), pair("RNN", 3, 4, nonlinearity="relu"), strict=True):
        with m.no_grad():
            for p in network.parameters():
                p.copy_(-p.abs())
        x = wave(m, 3, 2, 3).abs().detach().requires_grad_()
        (g,) = m.autograd.grad(network(x)[0].norm(dim=-1).sum(), x, create_graph=True)
        results.append((g, m.autograd.grad(g.square().sum(), x)))
    assert not differences(*results)

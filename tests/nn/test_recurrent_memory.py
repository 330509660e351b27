"""Compiled steps of recurrent layers look at their arrays before they read them."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt

SIZES = 16, 24, 12  # sequences, states, steps: enough for compiled loops


def made(m: Any, kind: str) -> tuple[Any, Any]:
    batch, n, steps = SIZES
    m.manual_seed(0)
    layer = getattr(m.nn, kind)(n, n)
    with m.no_grad():
        for k, p in enumerate(layer.parameters()):
            p.copy_(m.sin(m.arange(p.numel()).float() + k).reshape(p.shape) / 4)
    return layer, m.cos(m.arange(batch * n * steps).float()).reshape(steps, batch, n)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("lies", ["float64", "turned", "expanded", "longer"])
def test_states_that_lie_otherwise(kind: str, lies: str) -> None:
    batch, n, _ = SIZES

    def run(m: Any) -> Any:
        layer, x = made(m, kind)
        h = m.linspace(-1, 1, batch * n).reshape(1, batch, n)
        h = {
            "float64": lambda: h.double(),
            "turned": lambda: h.transpose(1, 2).contiguous().transpose(1, 2),
            "expanded": lambda: h[:, :1].expand(1, batch, n),
            "longer": lambda: m.cat([h, h], 2)[..., :n],
        }[lies]()
        states = (h, h * 1) if kind == "LSTM" else h
        y = layer(x, states)[0]
        y.sum().backward()
        return y.detach().numpy(), [p.grad.numpy() for p in layer.parameters()]

    try:
        want, grads = run(torch)
    except RuntimeError as error:
        with pytest.raises(type(error)):
            run(tt)
        return
    got, ours = run(tt)
    np.testing.assert_allclose(got, want, atol=1e-5)
    for a, b in zip(ours, grads, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("gradient", ["expanded", "turned", "sliced"])
def test_gradients_that_lie_otherwise(kind: str, gradient: str) -> None:
    def run(m: Any) -> Any:
        layer, x = made(m, kind)
        y = layer(x.requires_grad_())[0]
        g = m.sin(m.arange(y.numel()).float()).reshape(y.shape)
        g = {
            "expanded": lambda: g[:1].expand(y.shape),
            "turned": lambda: g.transpose(0, 2).contiguous().transpose(0, 2),
            "sliced": lambda: m.stack([g, g], -1)[..., 0],
        }[gradient]()
        y.backward(g)
        return [x.grad.numpy(), *(p.grad.numpy() for p in layer.parameters())]

    for a, b in zip(run(tt), run(torch), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("given", ["float32", "bfloat16"])
@pytest.mark.parametrize("state", [None, "float32", "bfloat16"])
def test_types_under_autocast(kind: str, given: str, state: str | None) -> None:
    def run(m: Any) -> Any:
        layer, x = made(m, kind)
        h = None if state is None else m.zeros(1, *SIZES[:2], dtype=getattr(m, state))
        states = (h, h) if h is not None and kind == "LSTM" else h
        with m.no_grad(), m.autocast("cpu", dtype=m.bfloat16):
            y = layer.eval()(x.to(getattr(m, given)), states)[0]
        return str(y.dtype), y.detach().float().numpy()

    got, ours = run(tt)
    if kind == "LSTM":  # which oneDNN has in halves on some processors only
        assert got == "torch.bfloat16"
        return
    want, values = run(torch)
    assert got == want
    np.testing.assert_allclose(ours, values, atol=0.05)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("cell", ["", "Cell"])
def test_states_of_another_type_are_refused(kind: str, cell: str) -> None:
    for m in (torch, tt):
        layer, x = getattr(m.nn, kind + cell)(4, 4), m.ones(2, 3, 4)
        h = m.zeros(1, 3, 4).double()
        x, h = (x[0], h[0]) if cell else (x, h)
        with pytest.raises(RuntimeError):
            layer(x, (h, h) if kind == "LSTM" else h)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "n"), [(1, 8), (3, 20), (7, 64), (8, 33), (16, 24), (33, 17)])
@pytest.mark.parametrize("backwards", [False, True], ids=["forward", "both ways"])
def test_all_steps_in_one_call(
    kind: str, dtype: str, rows: int, n: int, backwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sequences of one length, forward and back; the product is BLAS's for widths that do not fit."""
    chained = []
    if tt is not torch:
        arrays = importlib.import_module("toytorch.nn.modules.rnn_arrays")
        whole = arrays.in_one_call
        monkeypatch.setattr(
            arrays, "in_one_call", lambda *a: chained.append(whole(*a)) or chained[-1]
        )

    def run(m: Any) -> Any:
        m.manual_seed(0)
        layer = getattr(m.nn, kind)(5, n, bidirectional=backwards, dtype=getattr(m, dtype))
        x = m.cos(m.arange(6 * rows * 5).to(layer.weight_ih_l0.dtype)).reshape(6, rows, 5)
        y, last = layer(x.requires_grad_())
        last = last if isinstance(last, tuple) else (last,)
        (y.sin().sum() + sum(h.cos().sum() for h in last)).backward()
        kept = y, *last, x.grad, *[p.grad for p in layer.parameters()]
        return [t.detach().numpy() for t in kept]

    near = 1e-4 if dtype == "float32" else 1e-10
    for a, b in zip(run(tt), run(torch), strict=True):
        np.testing.assert_allclose(a, b, rtol=near, atol=near * max(1.0, float(np.abs(b).max())))
    if chained and tt.get_num_threads() == 1:  # several have their share of each step
        assert any(chained)  # some are too narrow on their way back

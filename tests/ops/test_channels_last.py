"""Images whose channels lie last in memory: formats, and layers that keep them, beside PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt

SHAPE = (4, 16, 12, 14)
LAYERS: dict[str, Any] = {
    "conv": lambda m: m.nn.Conv2d(16, 32, 3, padding=1),
    "conv, stride 2": lambda m: m.nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False),
    "conv to 3": lambda m: m.nn.Conv2d(16, 3, 3),
    "conv 1x1": lambda m: m.nn.Conv2d(16, 32, 1),
    "conv in groups": lambda m: m.nn.Conv2d(16, 32, 3, padding=1, groups=2),
    "depthwise": lambda m: m.nn.Conv2d(16, 16, 3, padding=1, groups=16),
    "transposed": lambda m: m.nn.ConvTranspose2d(16, 16, 4, stride=2, padding=1),
    "batch norm": lambda m: m.nn.BatchNorm2d(16),
    "batch norm, evaluated": lambda m: m.nn.BatchNorm2d(16).eval(),
    "batch norm, plain": lambda m: m.nn.BatchNorm2d(16, affine=False, track_running_stats=False),
    "group norm": lambda m: m.nn.GroupNorm(4, 16),
    "group norm, plain": lambda m: m.nn.GroupNorm(2, 16, affine=False),
    "max pool": lambda m: m.nn.MaxPool2d(3, 2, 1),
    "average pool": lambda m: m.nn.AvgPool2d(2),
    "relu": lambda m: m.nn.ReLU(),
    "sum": lambda m: lambda x: x + x * 2,
}


def run(m: Any, name: str, last: bool) -> tuple[list[Any], list[Any]]:
    """The values (result, gradients, buffers) and the strides of result and gradient."""
    x = m.sin(m.arange(4 * 16 * 12 * 14, dtype=m.float32) * 1.7).reshape(SHAPE)
    layer = LAYERS[name](m)
    state = []
    if isinstance(layer, m.nn.Module):
        with m.no_grad():
            for i, p in enumerate(layer.parameters()):
                p.copy_(m.cos(m.arange(p.numel(), dtype=m.float32) * (i + 0.7)).reshape(p.shape))
        state = [*layer.parameters()]
        if last:
            layer = layer.to(memory_format=m.channels_last)
    if last:
        x = x.to(memory_format=m.channels_last)
    x.requires_grad_()
    y = layer(x)
    g = m.cos(m.arange(y.numel(), dtype=m.float32)).reshape(y.shape)
    y.backward(g.to(memory_format=m.channels_last) if last else g)
    buffers = [*layer.buffers()] if isinstance(layer, m.nn.Module) else []
    made = [y, x.grad, *(p.grad for p in state), *buffers]
    return [v.detach().numpy() for v in made], [y.stride(), x.grad.stride()]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, last: bool) -> None:
    theirs, ours = run(torch, name, last), run(tt, name, last)
    assert theirs[1] == ours[1], "strides of the result and of the gradient"
    for want, got in zip(theirs[0], ours[0], strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


def facts(m: Any) -> list[Any]:
    """What memory formats say of a few tensors."""
    last = m.channels_last
    x = m.arange(2.0 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    one, volume = x[:, :1].contiguous(), x.reshape(2, 3, 2, 2, 5)
    y = x.to(memory_format=last)
    same = x.contiguous() is x, y.to(memory_format=last) is y, y.contiguous(memory_format=last) is y
    return [
        y.stride(),
        y.tolist() == x.tolist(),
        y.is_contiguous(),
        same,
        y.is_contiguous(memory_format=last),
        x.is_contiguous(memory_format=last),
        y.contiguous().stride(),
        y.clone().stride(),
        x.clone(memory_format=last).stride(),
        y.clone(memory_format=m.contiguous_format).stride(),
        y.double().stride(),
        m.zeros_like(y).stride(),
        (y + y).stride(),
        y.to(m.float64, memory_format=last).stride(),
        one.is_contiguous(memory_format=last),
        x[0].is_contiguous(memory_format=last),
        volume.contiguous(memory_format=m.channels_last_3d).stride(),
    ]


def test_formats() -> None:
    assert facts(tt) == facts(torch)


def test_formats_refuse_other_ranks() -> None:
    for m in (torch, tt):
        with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last"):
            m.zeros(2, 3).contiguous(memory_format=m.channels_last)
        with pytest.raises(RuntimeError, match="preserve memory format is unsupported"):
            m.zeros(2, 3).t().contiguous(memory_format=m.preserve_format)


def test_gradient_through_a_format() -> None:
    for m in (torch, tt):
        x = m.ones(1, 2, 2, 2, requires_grad=True)
        (x.to(memory_format=m.channels_last) * 3).sum().backward()
        assert x.grad.tolist() == m.full((1, 2, 2, 2), 3.0).tolist()


def test_dropout_repeats_with_its_seed() -> None:
    x = tt.ones(8, 1000)
    drop = tt.nn.functional.dropout
    tt.manual_seed(5)
    state = tt.get_rng_state()
    first, second = drop(x, 0.4), drop(x, 0.4)
    assert not bool((first == second).all())
    tt.set_rng_state(state)
    assert bool((drop(x, 0.4) == first).all())
    tt.manual_seed(5)
    assert bool((drop(x, 0.4) == first).all())
    x.requires_grad_()
    y = drop(x, 0.4)
    y.sum().backward()
    assert bool((x.grad == y).all())

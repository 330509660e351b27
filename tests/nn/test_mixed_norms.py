"""Norms of half types with weights of float32: results and gradients are computed in float32."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt


def run(m: Any, layer: str, shape: tuple[int, ...], kind: str) -> list[Any]:
    module = m.nn.GroupNorm(2, 4) if layer == "group" else m.nn.LayerNorm(shape[-1])
    count = 1
    for n in shape:
        count *= n
    numbers = m.arange(float(count)).view(shape)
    x = (numbers / 7).sin().to(getattr(m, kind)).requires_grad_()
    made = module(x)
    made.backward((numbers * 0.11).cos().to(made.dtype))
    grads = [x.grad, module.weight.grad, module.bias.grad]
    return [str(t.dtype).rpartition(".")[2] for t in (made, *grads)] + [
        t.float().flatten().tolist() for t in (made, *grads)
    ]


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize(("layer", "shape"), [("group", (2, 4, 3, 3)), ("layer", (4, 6))])
def test_mixed(layer: str, shape: tuple[int, ...], kind: str) -> None:
    ours, theirs = (run(m, layer, shape, kind) for m in (tt, torch))
    assert ours[:4] == theirs[:4]
    close = 1e-3 if kind == "float16" else 8e-3
    sums = close * 2 if layer == "layer" else 1e-5  # PyTorch's depend on its number of threads
    assert ours[4] == pytest.approx(theirs[4], rel=close)
    assert ours[5] == pytest.approx(theirs[5], rel=close, abs=close / 4)
    assert ours[6] == pytest.approx(theirs[6], rel=sums, abs=sums)
    assert ours[7] == pytest.approx(theirs[7], rel=sums, abs=sums)

"""Norms of half types with weights of float32: results and gradients are computed in float32."""

from __future__ import annotations

import itertools
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


def refused(m: Any, name: str, kind: str, weight: Any, bias: Any, group: int) -> Any:
    x = m.ones(3, 2, 4).to(getattr(m, kind))
    w, b = (None if p is None else m.ones(p[1]).to(getattr(m, p[0])) for p in (weight, bias))
    try:
        if name == "group_norm":
            made = m.group_norm(x, group, w, b)
        elif name == "native_group_norm":
            made = m.native_group_norm(x, w, b, 3, 2, 4, group, 1e-5)
        elif name == "layer_norm":
            made = m.layer_norm(x, (4,), w, b)
        elif name == "rms_norm":
            made = m.rms_norm(x, (3,) if group else (4,), w)
        else:
            made = getattr(m, name)(x, (4,), w, b, 1e-5)
    except Exception as e:
        return type(e).__name__, str(e).splitlines()[0]
    return type(made).__name__


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "int64", "bfloat16"])
@pytest.mark.parametrize(
    "name", ["group_norm", "native_group_norm", "layer_norm", "native_layer_norm", "rms_norm"]
)
def test_types_and_shapes_are_refused_in_order(name: str, kind: str) -> None:
    n = 4 if "layer" in name else 2
    given = [None, ("float32", (n,)), ("float64", (n,)), ("float32", (3,)), ("uint8", (1, 1))]
    for weight, bias, group in itertools.product(given, given, (2, 0, 3)):
        ours, theirs = (refused(m, name, kind, weight, bias, group) for m in (tt, torch))
        assert ours == theirs, (weight, bias, group)

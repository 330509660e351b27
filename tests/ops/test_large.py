"""Tensors large enough for the compiled loops, against PyTorch: values, layouts and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import ORACLE, SUBJECT, attempt, differences, torch, tt

RNG = np.random.default_rng(0)
F = Callable[[Any, Any], Any]
OPS: dict[str, F] = {
    "sum": lambda m, x: x.sum(), "sum 0": lambda m, x: x.sum(0), "sum 1": lambda m, x: x.sum(1),
    "sum keep": lambda m, x: x.sum((0, 2), keepdim=True), "sum 01": lambda m, x: x.sum((0, 1)),
    "sum 12": lambda m, x: x.sum((1, 2), True), "mean": lambda m, x: x.mean(),
    "mean 0": lambda m, x: x.mean(0), "mean -1": lambda m, x: x.mean(-1, keepdim=True),
    "softmax": lambda m, x: x.softmax(-1), "softmax 0": lambda m, x: x.softmax(0),
    "log_softmax": lambda m, x: x.log_softmax(-1), "relu": lambda m, x: x.relu(),
    "sigmoid": lambda m, x: x.sigmoid(), "silu": lambda m, x: m.nn.functional.silu(x),
    "gelu": lambda m, x: m.nn.functional.gelu(x), "erf": lambda m, x: x.erf(),
    "gelu tanh": lambda m, x: m.nn.functional.gelu(x, approximate="tanh"),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, (x.shape[-1],)),
    "layer_norm 2": lambda m, x: m.nn.functional.layer_norm(x, tuple(x.shape[1:])),
    "mm": lambda m, x: x[0] @ x[1].t(), "mm t": lambda m, x: x[0].t() @ x[1],
    "linear": lambda m, x: m.nn.functional.linear(x[0], x[1], x[2, :, 0]),
    "add_": lambda m, x: (x * 1).add_(2.5), "add": lambda m, x: x + x.flip(0),
    "var": lambda m, x: x.var(-1), "norm": lambda m, x: x.norm(dim=-1),
    "fmod": lambda m, x: x.fmod(0.7), "remainder": lambda m, x: x % 0.7, "sign": lambda m, x: x.sign(),
    "floor_divide": lambda m, x: x.div(0.7, rounding_mode="floor"), "angle": lambda m, x: x.angle(),
    "prelu": lambda m, x: m.nn.functional.prelu(x, m.ones(1, dtype=x.dtype) / 4),
    "nansum": lambda m, x: x.nansum(-1),
    "cross entropy": lambda m, x: m.nn.functional.cross_entropy(
        x[0], m.arange(x.shape[1]) % x.shape[2]),
}  # fmt: skip
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda x: x, "transposed": lambda x: x.transpose(1, 2),
    "strided": lambda x: x[:, :, ::2], "expanded": lambda x: x[:1].expand(4, -1, -1),
    "special": lambda x: x,
}  # fmt: skip


def values(name: str, dtype: str) -> Any:
    x = RNG.standard_normal((4, 64, 80)).astype(dtype)
    if name == "special":
        x[0, 0, :4] = np.nan, np.inf, -np.inf, -0.0
        x[1, 1] = -np.inf
    return x


def run(m: Any, name: str, x: Any, layout: str) -> Any:
    leaf = m.from_numpy(x.copy()).requires_grad_()
    out = OPS[name](m, LAYOUTS[layout](leaf))
    scale = m.from_numpy(np.cos(np.arange(out.numel())).reshape(tuple(out.shape)).astype(x.dtype))
    (g,) = m.autograd.grad((out * scale).sum(), leaf)
    return out, g


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPS)
def test_agrees(monkeypatch: Any, name: str, layout: str, dtype: str) -> None:
    """With BLAS on one thread, so that the products for small matrices are used, too."""
    before = tt.get_num_threads()
    tt.set_num_threads(1)
    x = values(layout, dtype)
    try:
        want, refused = attempt(run, torch, name, x, layout)
        got, failure = attempt(run, tt, name, x, layout)
    finally:
        tt.set_num_threads(before)
    if refused is not None:
        assert failure is not None
        return
    assert failure is None, failure
    if layout == "special" and name == "gelu" and dtype == "float32":
        return  # PyTorch's float32 gelu of infinity is NaN on some processors; ours is infinity
    slack = 20.0 if layout != "special" else 30.0
    if layout == "special":  # what NaN and infinities leave behind depends on the order of a sum
        assert not differences(want[0], got[0], slack=slack)
        return
    assert not differences(want, got, slack=slack)


RULES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {"lr": 0.01}), ("Adam", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.01, "maximize": True}),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=[f"{n} {o}" for n, o in RULES])
@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
def test_optimizers(rule: tuple[str, dict[str, Any]], layout: str) -> None:
    name, options = rule
    x, g = RNG.standard_normal((2, 100, 90))
    found = []
    for side in (ORACLE, SUBJECT):
        m = side.root
        p = m.from_numpy(x.copy())
        p = (p.t().contiguous().t() if layout == "transposed" else p).requires_grad_()
        optimizer = getattr(m.optim, name)([p], **options)
        for k in range(4):
            p.grad = m.from_numpy(g * (k + 1))
            optimizer.step()
        found.append(p.detach())
    assert not differences(found[0], found[1])

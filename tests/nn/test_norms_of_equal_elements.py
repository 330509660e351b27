"""Of equal elements norms leave nothing, as in PyTorch: their mean is not rounded."""

from __future__ import annotations

import pytest

from tests.oracle import torch, tt
from toytorch.loops.runtime import jit

VALUES = 0.1, 1.1, 100.3, 1e4 / 3


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("value", VALUES)
def test_layer_norm(value: float, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        for name in ("works", "pays"):
            monkeypatch.setattr(jit, name, lambda *_: False)
    for n in (1, 2, 3, 7, 12, 100, 129, 5000):
        for m in (torch, tt):
            made = m.nn.functional.layer_norm(m.full((2, n), value), (n,))
            assert bool((made == 0).all()), (m.__name__, n)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("value", VALUES[:3])
def test_group_norm(value: float, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        for name in ("works", "pays"):
            monkeypatch.setattr(jit, name, lambda *_: False)
    for channels, groups in ((4, 2), (6, 3), (32, 8)):
        for side in (1, 2, 7, 13):
            shape = 2, channels, side, side
            for lies in (tt.contiguous_format, tt.channels_last):
                x = tt.full(shape, value).to(memory_format=lies)
                assert bool((tt.nn.functional.group_norm(x, groups) == 0).all()), (shape, lies)

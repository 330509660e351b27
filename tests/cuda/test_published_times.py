"""Simulated times beside those that were published: within a quarter.

The IoU loss of 20 ops on 8 x (100, 1000) on a V100: 238 µs, and 40.3 µs as one fused kernel. The
host's cost of an op and of a compiled call are set by these; that kernels, synchronisation and
dispatch add up to them is what is tested. What the model leaves out is said in ARCHITECTURE.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import toytorch as torch


def ratio_iou(x1: Any, y1: Any, w1: Any, h1: Any, x2: Any, y2: Any, w2: Any, h2: Any) -> Any:
    left, top = torch.max(x1, x2), torch.max(y1, y2)
    width = torch.clamp(torch.min(x1 + w1, x2 + w2) - left, min=0)
    height = torch.clamp(torch.min(y1 + h1, y2 + h2) - top, min=0)
    both = width * height
    either = w1 * h1 + w2 * h2 - width * height
    return both / torch.clamp(either, min=1e-5)


def time_of(sim: Any, function: Callable[..., Any], *args: Any) -> float:
    """Virtual microseconds of one call with its synchronisation, once all is warm."""
    for _ in range(3):
        function(*args)
    torch.cuda.synchronize()
    start = sim.now
    function(*args)
    torch.cuda.synchronize()
    return float(sim.now - start)


def test_the_iou_loss_on_a_v100() -> None:
    with torch.cuda.simulate(model="V100") as sim:
        boxes = [torch.rand(100, 1000, device="cuda") for _ in range(8)]
        eager = time_of(sim, ratio_iou, *boxes)
        fused_loss = torch.jit.trace(ratio_iou, tuple(boxes))
        fused = time_of(sim, fused_loss, *boxes)
        assert torch.allclose(fused_loss(*boxes), ratio_iou(*boxes))
    assert eager == pytest.approx(238, rel=0.25)
    assert fused == pytest.approx(40.3, rel=0.25)


def test_kernels_are_bound_by_what_they_should_be() -> None:
    with torch.cuda.simulate(model="H100") as sim:
        x = torch.ones(4096, 4096, device="cuda", dtype=torch.float16)
        (x @ x, x + x, x[:4, :4] + 1)
        kernels = [s for s in sim.timeline.spans if s.kind == "kernel"][-3:]
    assert [k.limit for k in kernels] == ["arithmetic", "memory", "launch"]
    # 137 GFLOP at 70 % of 989 TFLOP/s; 100 MB at 85 % of 3.35 TB/s; 2 µs to start
    assert kernels[0].duration == pytest.approx(2 + 137.4e9 / (0.7 * 989.4e12) * 1e6, rel=0.02)
    assert kernels[1].duration == pytest.approx(2 + 100.7e6 / (0.85 * 3.35e12) * 1e6, rel=0.02)

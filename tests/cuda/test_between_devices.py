"""Writes from one simulated device to another's memory, and collectives made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import toytorch as torch
from toytorch.cuda import nccl

WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "whole": lambda a, b: a.copy_(b),
    "part": lambda a, b: a[1:3].copy_(b[:2]),
    "column": lambda a, b: a[:, 1].copy_(b[:, 0]),
    "transposed": lambda a, b: a.t().copy_(b),
    "broadcast": lambda a, b: a.copy_(b[0]),
    "cast": lambda a, b: a.copy_(b.double()),
    "item": lambda a, b: a.__setitem__(slice(0, 2), b[:2]),
}


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("write", WRITES)
def test_a_write_reaches_the_other_device(write: str, wait: bool) -> None:
    want = torch.zeros(4, 4)
    WRITES[write](want, torch.arange(16.0).reshape(4, 4))
    with torch.cuda.simulate(devices=2) as simulation:
        a = torch.zeros(4, 4, device="cuda:0")
        b = torch.arange(16.0).reshape(4, 4).to("cuda:1", non_blocking=not wait)
        WRITES[write](a, b)
        assert torch.equal(a.cpu(), want)
        assert "copy to cuda:0" in [span.name for span in simulation.timeline.spans]


def test_collectives() -> None:
    with torch.cuda.simulate(devices=3):

        def given() -> list[Any]:
            return [torch.arange(6.0, device=f"cuda:{i}") * (i + 1) for i in range(3)]

        for op, factor in ((nccl.SUM, 6.0), (nccl.MAX, 3.0), (nccl.MIN, 1.0), (nccl.AVG, 2.0)):
            xs = given()
            nccl.all_reduce(xs, op=op)
            assert all(torch.equal(x.cpu(), torch.arange(6.0) * factor) for x in xs)
        xs = given()
        parts = [torch.zeros(2, device=f"cuda:{i}") for i in range(3)]
        nccl.reduce_scatter(xs, parts)
        assert [p.tolist() for p in parts] == [[0.0, 6.0], [12.0, 18.0], [24.0, 30.0]]
        whole = [torch.zeros(18, device=f"cuda:{i}") for i in range(3)]
        nccl.all_gather(xs, whole)
        assert all(w.tolist() == [v for x in xs for v in x.tolist()] for w in whole)
        nccl.reduce(xs, root=1)
        assert torch.equal(xs[1].cpu(), torch.arange(6.0) * 6)
        nccl.broadcast(xs, root=2)
        assert all(torch.equal(x.cpu(), torch.arange(6.0) * 3) for x in xs)
        assert nccl.is_available(xs) and not nccl.is_available([xs[0], xs[0]])
        with pytest.raises(TypeError, match="Inputs should be a collection of tensors"):
            nccl.all_reduce(xs[0])

"""Warnings name the line of the user's program, as PyTorch's do, whatever path a call takes here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import toytorch as tt
from tests.oracle import torch

CALLS: dict[str, Callable[[Any], object]] = {
    "tensor of a tensor": lambda m: m.tensor(m.ones(2)),
    "gradient of a non-leaf": lambda m: (m.ones(2, requires_grad=True) * 2).grad,
    "transposition": lambda m: m.ones(2, 3, 4).T,
    "range": lambda m: m.range(0, 3),
    "two sizes": lambda m: m.nn.functional.l1_loss(m.ones(3), m.ones(3, 1)),
    "two sizes by name": lambda m: m.nn.functional.mse_loss(m.ones(3), target=m.ones(3, 1)),
    "divergence": lambda m: m.nn.functional.kl_div(m.zeros(2, 3), m.ones(2, 3)),
    "softmax": lambda m: m.nn.functional.softmax(m.ones(2, 2)),
    "complex to real": lambda m: m.ones(2, dtype=m.complex64).float(),
    "cross": lambda m: m.cross(m.ones(3), m.ones(3)),
    "qr": lambda m: m.qr(m.eye(2)),
    "cholesky": lambda m: m.cholesky(m.eye(2)),
    "std of one": lambda m: m.std(m.ones(1)),
    "std of one, by name": lambda m: m.ones(1).std(dim=0),
    "bytes": lambda m: m.frombuffer(b"1234", dtype=m.uint8),
    "array": lambda m: m.from_numpy(np.broadcast_to(np.ones(1), (2,))),
    "out": lambda m: m.add(m.ones(2), 1, out=m.ones(3)),
    "mask": lambda m: m.ones(2)[m.ones(2, dtype=m.uint8)],
    "searchsorted": lambda m: m.searchsorted(m.arange(10)[::2], m.arange(3)),
    "older form": lambda m: m.ones(2).add(2, m.ones(2)),
    "number with history": lambda m: float(m.ones(1, requires_grad=True)),
}


@pytest.mark.parametrize("name", CALLS)
def test_lines_of_warnings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tt.facts.warned, "always", True)
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        for module in (torch, tt):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                CALLS[name](module)
            assert [w.filename for w in seen] == [__file__], module.__name__
    finally:
        torch.set_warn_always(before)

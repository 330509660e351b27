"""Parameters that are single numbers, without dimensions."""

from __future__ import annotations

import pytest

from tests.oracle import ORACLE, SUBJECT

NAMES = [
    "SGD",
    "Adam",
    "AdamW",
    "Adadelta",
    "Adagrad",
    "Adamax",
    "ASGD",
    "RMSprop",
    "Rprop",
    "NAdam",
    "RAdam",
]


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_a_number_is_optimized(name: str, kind: str) -> None:
    found = []
    for side in (ORACLE, SUBJECT):
        torch = side.root
        p = torch.nn.Parameter(torch.tensor(-1.0, dtype=getattr(torch, kind)))
        more = {"amsgrad": True} if name == "Adam" else {}
        optimizer = getattr(torch.optim, name)([p], lr=0.1, **more)
        for _ in range(3):
            optimizer.zero_grad()
            (p.exp() * 2 + p**2).backward()
            optimizer.step()
        found.append(p.item())
    assert found[1] == pytest.approx(found[0], rel=1e-5)

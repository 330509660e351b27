"""How often `torch.autograd.functional` calls a function, and with what: subclasses stay what they are."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.oracle import torch, tt

WAYS = [
    dict(zip(("create_graph", "vectorize", "strategy"), way))
    for way in itertools.product((False, True), (False, True), ("reverse-mode", "forward-mode"))
    if way[2] == "reverse-mode" or way == (False, True, "forward-mode")
]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("own", [False, True])  # forward mode is not for subclasses in PyTorch
def test_calls_of_jacobian(how: dict[str, Any], several: bool, own: bool) -> None:
    own = own and how["strategy"] == "reverse-mode"

    def found(m: Any) -> Any:
        class Own(m.Tensor):
            pass

        seen: list[str] = []
        x = m.tensor([1.0, 2.0, 3.0])
        x = x.as_subclass(Own) if own else x
        x.requires_grad_()

        def function(a: Any, b: Any) -> Any:
            seen.append(type(a).__name__)
            made = (a * b).sum(), a**2, m.ones(2)
            return made if several else made[1]

        made = m.autograd.functional.jacobian(function, (x, m.ones(3)), **how)
        rows = [made] if not several else made
        return [[g.tolist() for g in row] for row in rows], seen, rows[0][0].requires_grad

    assert found(tt) == found(torch)

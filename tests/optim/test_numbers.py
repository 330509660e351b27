"""Parameters that are single numbers, without dimensions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, torch, tt

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


def test_hooks_of_states() -> None:
    """What hooks note in `state` is saved and loaded; `prepend` puts a hook before all others."""

    def answer(T: Any) -> list[Any]:
        opt, said = T.optim.SGD([T.ones(2, requires_grad=True)], lr=0.1), list[Any]()
        opt.register_state_dict_pre_hook(lambda o: o.state.update(note=1))
        saved = opt.state_dict()
        opt.state.clear()
        opt.register_load_state_dict_pre_hook(lambda o, d: said.append("second"))
        opt.register_load_state_dict_pre_hook(lambda o, d: said.append("first"), prepend=True)
        opt.load_state_dict(saved)
        return [saved["state"], dict(opt.state), said]

    assert answer(tt) == answer(torch)


def test_steps_are_not_differentiable() -> None:
    p = tt.ones(2, requires_grad=True).clone()
    opt = tt.optim.SGD([p], lr=0.1, differentiable=True)
    p.grad = tt.ones(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="cannot be differentiated"):
        opt.step()

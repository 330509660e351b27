"""vmap over derivatives of functions that capture parameters which require gradients."""

from __future__ import annotations

import pytest

from tests.oracle import ORACLE, SUBJECT

OPS = ["tanh", "exp", "sigmoid", "sqrt", "softmax", "sin"]


@pytest.mark.parametrize("name", OPS)
def test_saved_results_keep_their_batch(name: str) -> None:
    """Ops that save their result: each example's own, also where a graph is kept."""
    found = []
    for side in (ORACLE, SUBJECT):
        torch = side.root

        def f(w, x, torch=torch):
            y = x @ w.t() + 2
            found = torch.softmax(y, -1) if name == "softmax" else getattr(torch, name)(y)
            return found.pow(2).sum()

        w = (torch.arange(12.0).reshape(4, 3) / 20).requires_grad_()
        x = torch.arange(6.0).reshape(2, 1, 3) / 5
        grads = torch.func.vmap(torch.func.grad(f), in_dims=(None, 0))(w, x)
        (second,) = torch.autograd.grad(grads.pow(2).sum(), w)
        found.append((side.numpy(grads), side.numpy(second)))
    for ours, theirs in zip(found[1], found[0]):
        assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-6)


def test_a_hessian_of_a_captured_network() -> None:
    """Forward over reverse, where a weight is shown with a dimension of size 1."""
    found = []
    for side in (ORACLE, SUBJECT):
        torch = side.root
        net = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        with torch.no_grad():
            for p in net.parameters():
                p.copy_(torch.linspace(-1, 1, p.numel()).reshape(p.shape))
        found.append(torch.func.hessian(lambda v, net=net: net(v).sum())(torch.ones(1)).item())
    assert found[1] == pytest.approx(found[0], rel=1e-4)

"""`torch.optim._functional`: steps of optimizers on lists of tensors, beside PyTorch's."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

from tests.oracle import SELFTEST, torch, tt

if SELFTEST:
    pytest.skip("compares toytorch with PyTorch", allow_module_level=True)

OURS = importlib.import_module("toytorch.optim._functional")
THEIRS = importlib.import_module("torch.optim._functional")
NUMBERS = {
    "lr": 0.1, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.02, "lr_decay": 0.1, "beta1": 0.8,
    "beta2": 0.95, "lambd": 1e-3, "t0": 2, "alpha": 0.7, "momentum_decay": 4e-3, "momentum": 0.9,
    "centered": True, "step_size_min": 1e-6, "step_size_max": 50, "etaminus": 0.5, "etaplus": 1.2,
    "dampening": 0.1, "nesterov": False, "maximize": False, "amsgrad": True,
}  # fmt: skip
START = {"mus": 1.0, "etas": 0.1, "step_sizes": 0.1, "mu_products": 1.0}


def run(m: Any, functions: Any, name: str, **changes: Any) -> list[Any]:
    """Parameters and state after three steps."""
    function = getattr(functions, name)
    parameters = inspect.signature(getattr(THEIRS, name)).parameters
    given: dict[str, Any] = {}
    for n, p in parameters.items():
        if p.kind is p.KEYWORD_ONLY:
            given[n] = changes.get(n, NUMBERS[n])
        elif n in changes:
            given[n] = changes[n]
        elif p.default is p.empty and n not in ("params", "grads", "d_p_list"):
            shapes = (
                [()] * 2 if n in ("state_steps", "mus", "etas", "mu_products") else [(3,), (2, 2)]
            )
            given[n] = [m.full(shape, START.get(n, 0.0)) for shape in shapes]
            if n == "momentum_buffer_list" and name == "sgd":
                given[n] = [None, None]
    params = [m.arange(3.0), m.ones(2, 2)]
    for step in range(3):
        grads = [m.sin(p * 3 + step) for p in params]
        function(params, grads, **given)
    held = [v for v in given.values() if isinstance(v, list)]
    return [t.tolist() for t in [*params, *(t for each in held for t in each)]]


NAMES = [n for n in OURS.__all__ if n != "sparse_adam"]


def test_all_are_there() -> None:
    for name in OURS.__all__:
        ours, theirs = (inspect.signature(getattr(m, name)) for m in (OURS, THEIRS))
        assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
            (p.name, p.kind, p.default) for p in theirs.parameters.values()
        ]


@pytest.mark.parametrize("changes", [{}, {"weight_decay": 0.0}, {"maximize": True}])
@pytest.mark.parametrize("name", NAMES)
def test_three_steps(name: str, changes: dict[str, Any]) -> None:
    ours, theirs = run(tt, OURS, name, **changes), run(torch, THEIRS, name, **changes)
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(torch.tensor(one), torch.tensor(other), rtol=1e-5, atol=1e-6)


def test_decay_beside_the_step() -> None:
    ours, theirs = (
        run(m, f, "adam", decoupled_weight_decay=True, amsgrad=False)
        for m, f in ((tt, OURS), (torch, THEIRS))
    )
    assert torch.allclose(torch.tensor(ours[0]), torch.tensor(theirs[0]))


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_sparse_gradients() -> None:
    found = []
    for m, f in ((tt, OURS), (torch, THEIRS)):
        p, means = m.ones(4, 2), [m.zeros(4, 2), m.zeros(4, 2)]
        grad = m.sparse_coo_tensor([[1, 3]], m.ones(2, 2), (4, 2)).coalesce()
        options = {"eps": 1e-8, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "maximize": False}
        f.sparse_adam([p], [grad], [means[0]], [means[1]], [1], **options)
        found.append([p.tolist(), means[0].tolist()])
    assert torch.allclose(torch.tensor(found[0]), torch.tensor(found[1]))


def test_refusals() -> None:
    p = tt.ones(2)
    with pytest.raises(TypeError, match="missing a required argument"):
        OURS.sgd([p], [p], [None], momentum=0.9)
    with pytest.raises(AssertionError, match="grad_scale"):
        OURS.sgd(
            [p], [p], [None], grad_scale=p, **{n: NUMBERS[n] for n in OURS.FORMS["sgd"][3].split()}
        )

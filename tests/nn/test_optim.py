"""Optimizers: parameters after each of twelve steps, state dicts, resuming, groups, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import ORACLE, SUBJECT, attempt, both, differences, error_difference, torch, tt

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "SGD": [
        {"lr": 0.1}, {"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}, {"lr": 0.1, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.5, "weight_decay": 0.1, "maximize": True}, {},
    ],
    "Adam": [
        {}, {"lr": 0.1}, {"lr": 0.1, "betas": (0.5, 0.8)}, {"lr": 0.1, "eps": 1e-2},
        {"lr": 0.1, "weight_decay": 0.1},
        {"lr": 0.1, "amsgrad": True},
        {"lr": 0.1, "maximize": True, "amsgrad": True, "weight_decay": 0.2},
    ],
    "AdamW": [
        {}, {"lr": 0.1}, {"lr": 0.1, "weight_decay": 0.3}, {"lr": 0.1, "amsgrad": True},
        {"lr": 0.1, "maximize": True},
    ],
    "Adadelta": [{}, {"lr": 2.0, "rho": 0.8, "weight_decay": 0.1}, {"maximize": True}],
    "Adafactor": [{}, {"lr": 0.1, "weight_decay": 0.1}, {"eps": (1e-6, 0.1), "d": 1.5}],
    "Adagrad": [{}, {"lr": 0.1, "lr_decay": 0.1}, {"initial_accumulator_value": 0.5},
                {"lr": 0.1, "weight_decay": 0.1, "maximize": True}],
    "Adamax": [{}, {"lr": 0.1, "betas": (0.5, 0.9)}, {"weight_decay": 0.1, "maximize": True}],
    "ASGD": [{}, {"lr": 0.01, "t0": 4.0, "lambd": 0.1}, {"weight_decay": 0.1, "maximize": True}],
    "NAdam": [{}, {"lr": 0.1, "momentum_decay": 0.1}, {"lr": 0.1, "weight_decay": 0.1},
              {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{}, {"lr": 0.1, "betas": (0.5, 0.9)}, {"lr": 0.1, "weight_decay": 0.1},
              {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RMSprop": [{}, {"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "centered": True},
                {"lr": 0.1, "centered": True, "momentum": 0.5, "weight_decay": 0.1}],
    "Rprop": [{}, {"lr": 0.1, "etas": (0.3, 1.5)}, {"step_sizes": (0.01, 0.02), "maximize": True}],
}  # fmt: skip
CASES = [(name, options) for name, each in OPTIONS.items() for options in each]


def present(name: str) -> None:
    if not hasattr(tt.optim, name):
        pytest.skip(f"optim.{name} comes with a later issue")


def parameters(m: Any) -> list[Any]:
    return [
        m.nn.Parameter(m.sin(m.arange(6, dtype=m.float64)).reshape(2, 3)),
        m.nn.Parameter(m.cos(m.arange(4, dtype=m.float64))),
        m.nn.Parameter(m.ones(1, dtype=m.float64)),  # never gets a gradient
    ]


def step(m: Any, optimizer: Any, ps: list[Any], i: int) -> None:
    """One step on a loss whose gradients change with i; in some steps a parameter has none."""
    optimizer.zero_grad()
    loss = (ps[0] ** 2 * (i + 1)).sum()
    if i % 3 != 1:
        loss = loss + ((ps[1] - i) ** 2 * ps[0].sum()).sum()
    loss.backward()
    optimizer.step()


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_twelve_steps(name: str, options: dict[str, Any]) -> None:
    present(name)
    runs = []
    for m in (torch, tt):
        ps = parameters(m)
        runs.append((m, getattr(m.optim, name)(ps, **options), ps))
    for i in range(12):
        for m, optimizer, ps in runs:
            step(m, optimizer, ps, i)
        bad = differences(runs[0][2], runs[1][2])
        assert not bad, f"after step {i + 1}: {'; '.join(bad)}"


def plain(side: Any, state: Any) -> Any:
    """A state dict with tensors as lists, keys in order."""
    if isinstance(state, side.Tensor):
        return [round(v, 6) for v in state.flatten().tolist()]
    if isinstance(state, dict):
        return {k: plain(side, v) for k, v in state.items()}
    if isinstance(state, (list, tuple)):
        return [plain(side, v) for v in state]
    return state


# Choices among PyTorch's own implementations, which a package need not have.
IMPLEMENTATION = {"foreach", "fused", "capturable", "differentiable", "decoupled_weight_decay"}


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_state_dict(name: str, options: dict[str, Any]) -> None:
    present(name)
    states = []
    for m, side in ((torch, ORACLE), (tt, SUBJECT)):
        ps = parameters(m)
        optimizer = getattr(m.optim, name)(ps, **options)
        for i in range(3):
            step(m, optimizer, ps, i)
        state = plain(side, optimizer.state_dict())
        for group in state["param_groups"]:
            for key in IMPLEMENTATION:
                group.pop(key, None)
        states.append(state)
    assert states[1]["param_groups"] == states[0]["param_groups"]
    assert states[1]["state"] == states[0]["state"]


@pytest.mark.parametrize(("name", "options"), [c for c in CASES if c[1]], ids=str)
def test_resuming_from_pytorchs_state(name: str, options: dict[str, Any]) -> None:
    """Five steps in PyTorch, its state loaded here, seven more steps in both."""
    present(name)
    theirs = parameters(torch)
    first = getattr(torch.optim, name)(theirs, **options)
    for i in range(5):
        step(torch, first, theirs, i)
    mine = [tt.nn.Parameter(SUBJECT.carry(p.detach())) for p in theirs]
    second = getattr(tt.optim, name)(mine, lr=123.0)
    second.load_state_dict(SUBJECT.carry(first.state_dict()))
    for i in range(5, 12):
        step(torch, first, theirs, i)
        step(tt, second, mine, i)
        # PyTorch keeps ASGD's rate in float32 until it is loaded
        bad = differences(theirs, mine, slack=10 if name == "ASGD" else 1)
        assert not bad, f"after step {i + 1}: {'; '.join(bad)}"


@pytest.mark.parametrize("name", [n for n in OPTIONS if n not in ("Adafactor", "SGD")])
@pytest.mark.parametrize("size", [10, 5000])
def test_compiled_rules(name: str, size: int) -> None:
    """Large arrays go through compiled loops, small and strided ones through NumPy."""
    for options in OPTIONS[name]:
        runs = []
        for m in (torch, tt):
            p = m.nn.Parameter(m.sin(m.arange(size, dtype=m.float64)))
            runs.append((m, p, getattr(m.optim, name)([p], **options)))
        for i in range(3):
            for m, p, optimizer in runs:
                p.grad = m.cos(m.arange(size, dtype=m.float64) * (i + 1))
                optimizer.step()
        assert not differences(runs[0][1], runs[1][1]), options


@pytest.mark.parametrize("name", ["Adam", "Adagrad", "RMSprop", "Rprop", "NAdam", "Adamax"])
def test_complex_parameters(name: str) -> None:
    """Real and imaginary parts each follow the rule by themselves."""

    def f(m: Any) -> Any:
        p = m.nn.Parameter(m.tensor([1 + 2j, -3j]))
        optimizer = getattr(m.optim, name)([p], lr=0.1)
        for i in range(3):
            p.grad = m.tensor([0.5 + 1j * i, 1 - 1j])
            optimizer.step()
        return p

    both(f)


@pytest.mark.parametrize("adjust", [None, "match_rms_adamw"])
@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_muon(adjust: str | None, shape: tuple[int, int]) -> None:
    """It computes in bfloat16, so only nearly the same."""
    runs = []
    for m in (torch, tt):
        p = m.nn.Parameter(m.sin(m.arange(15.0)).reshape(shape))
        optimizer = m.optim.Muon([p], lr=0.1, adjust_lr_fn=adjust)
        for i in range(3):
            p.grad = m.cos(m.arange(15.0) * (i + 1)).reshape(shape)
            optimizer.step()
        runs.append(p.detach().numpy())
    assert np.abs(runs[0] - runs[1]).max() < 5e-3


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "SparseAdam"])
def test_sparse_gradients(name: str) -> None:
    """Only the rows in the gradient change, entries that occur twice count once."""

    def f(m: Any) -> Any:
        p = m.nn.Parameter(m.sin(m.arange(12.0)).reshape(4, 3))
        optimizer = getattr(m.optim, name)([p], lr=0.1)
        for i in range(3):
            rows = m.tensor([[i, 2, i]])
            values = m.cos(m.arange(9.0) + i).reshape(3, 3)
            p.grad = m.sparse_coo_tensor(rows, values, (4, 3))
            optimizer.step()
        return p

    both(f)


def test_hooks() -> None:
    def f(m: Any) -> Any:
        seen: list[str] = []
        optimizer = m.optim.SGD([m.nn.Parameter(m.ones(1))], lr=0.1)
        optimizer.register_step_pre_hook(lambda o, a, k: seen.append("before"))
        optimizer.register_step_post_hook(lambda o, a, k: seen.append("after"))
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "more": 1})
        optimizer.register_load_state_dict_pre_hook(lambda o, s: seen.append("loading"))
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
        optimizer.step()
        state = optimizer.state_dict()
        optimizer.load_state_dict(state)
        return seen, state["more"]

    both(f)


def test_named_parameters() -> None:
    def f(m: Any) -> Any:
        optimizer = m.optim.SGD(m.nn.Linear(2, 1).named_parameters(), lr=0.1)
        return optimizer.state_dict()["param_groups"][0]["param_names"]

    both(f)


BEHAVIOURS: dict[str, Any] = {
    "groups": lambda m: _groups(m),
    "changed lr": lambda m: _changed_lr(m),
    "closure": lambda m: _closure(m),
    "add_param_group": lambda m: _added(m),
    "zero_grad": lambda m: _zero_grad(m),
    "defaults": lambda m: {k: v for k,
        v in m.optim.SGD(parameters(m), lr=0.5).defaults.items() if k not in IMPLEMENTATION},
    "generator of parameters": lambda m: len(m.optim.SGD((p for p in parameters(m)),
        lr=0.5).param_groups[0]["params"]),
    "step leaves versions": lambda m: _versions(m),
    "float32": lambda m: _float32(m),
}  # fmt: skip


def _groups(m: Any) -> Any:
    ps = parameters(m)
    optimizer = m.optim.SGD(
        [{"params": ps[:1], "lr": 0.01}, {"params": ps[1:], "momentum": 0.5}], lr=0.1
    )
    for i in range(4):
        step(m, optimizer, ps, i)
    return (
        ps,
        [g["lr"] for g in optimizer.param_groups],
        [g["momentum"] for g in optimizer.param_groups],
    )


def _changed_lr(m: Any) -> Any:
    ps = parameters(m)
    optimizer = m.optim.Adam(ps, lr=0.1)
    for i in range(4):
        optimizer.param_groups[0]["lr"] *= 0.5
        step(m, optimizer, ps, i)
    return ps


def _closure(m: Any) -> Any:
    ps = parameters(m)
    optimizer = m.optim.SGD(ps, lr=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (ps[0] ** 2).sum()
        loss.backward()
        return loss

    return optimizer.step(closure), ps, m.is_grad_enabled()


def _added(m: Any) -> Any:
    ps = parameters(m)
    optimizer = m.optim.SGD(ps[:1], lr=0.1, momentum=0.9)
    optimizer.add_param_group({"params": ps[1], "lr": 0.5})
    for i in range(3):
        step(m, optimizer, ps, i)
    return ps, len(optimizer.param_groups)


def _zero_grad(m: Any) -> Any:
    ps = parameters(m)
    optimizer = m.optim.SGD(ps, lr=0.1)
    (ps[0] ** 2).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    zeros = ps[0].grad.clone()
    optimizer.zero_grad()
    return zeros, ps[0].grad is None


def _versions(m: Any) -> Any:
    """A step overwrites parameters, so a graph that saved them is refused afterwards."""
    ps = parameters(m)
    optimizer = m.optim.SGD(ps, lr=0.1)
    loss = (ps[0] ** 2).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    return (
        type(attempt(loss.backward)[1]).__name__,
        ps[0]._version > 0,
        ps[0].requires_grad,
        ps[0].is_leaf,
    )


def _float32(m: Any) -> Any:
    p = m.nn.Parameter(m.sin(m.arange(5.0)))
    optimizer = m.optim.Adam([p], lr=0.05)
    for _ in range(20):
        optimizer.zero_grad()
        ((p - 1) ** 2).sum().backward()
        optimizer.step()
    return p


@pytest.mark.parametrize("label", BEHAVIOURS)
def test_behaviour(label: str) -> None:
    assert attempt(BEHAVIOURS[label], torch)[1] is None
    both(BEHAVIOURS[label])


MISUSE: dict[str, Any] = {
    "no parameters": lambda m: m.optim.SGD([], lr=0.1),
    "a tensor": lambda m: m.optim.SGD(m.nn.Parameter(m.ones(1)), lr=0.1),
    "numbers": lambda m: m.optim.SGD([1, 2], lr=0.1),
    "a result": lambda m: m.optim.SGD([m.nn.Parameter(m.ones(1)) * 2], lr=0.1),
    "negative lr": lambda m: m.optim.SGD(parameters(m), lr=-1),
    "negative momentum": lambda m: m.optim.SGD(parameters(m), lr=1, momentum=-1),
    "nesterov without momentum": lambda m: m.optim.SGD(parameters(m), lr=1, nesterov=True),
    "negative weight decay": lambda m: m.optim.SGD(parameters(m), lr=1, weight_decay=-0.5),
    "betas": lambda m: m.optim.Adam(parameters(m), betas=(1.0, 0.9)),
    "eps": lambda m: m.optim.Adam(parameters(m), eps=-1),
    "unknown option": lambda m: m.optim.SGD(parameters(m), lr=1, speed=3),
    "lr of two elements": lambda m: m.optim.Adam(parameters(m), lr=m.ones(2)),
    "names for some": lambda m: m.optim.SGD(
        [("a", m.nn.Parameter(m.ones(1))), m.nn.Parameter(m.ones(1))], lr=1
    ),
    "two kinds of betas": lambda m: m.optim.Adam(parameters(m), betas=(0.9, m.tensor(0.9))),
    "rho": lambda m: m.optim.Adadelta(parameters(m), rho=1.1),
    "lr_decay": lambda m: m.optim.Adagrad(parameters(m), lr_decay=-0.5),
    "alpha": lambda m: m.optim.RMSprop(parameters(m), alpha=-1),
    "etas": lambda m: m.optim.Rprop(parameters(m), etas=(1.0, 0.5)),
    "momentum_decay": lambda m: m.optim.NAdam(parameters(m), momentum_decay=-0.2),
    "a vector for Muon": lambda m: m.optim.Muon(parameters(m)),
    "d of Adafactor": lambda m: m.optim.Adafactor(parameters(m), d=0.0),
    "dense gradient": lambda m: _dense(m),
    "twice in two groups": lambda m: _twice(m),
    "state of other groups": lambda m: _other_groups(m),
    "state of other sizes": lambda m: _other_sizes(m),
}


def _dense(m: Any) -> None:
    ps = parameters(m)
    step(m, m.optim.SparseAdam(ps), ps, 0)


def _twice(m: Any) -> None:
    p = m.nn.Parameter(m.ones(1))
    m.optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1)


def _other_groups(m: Any) -> None:
    ps = parameters(m)
    one, two = (
        m.optim.SGD(ps, lr=0.1),
        m.optim.SGD([{"params": ps[:1]}, {"params": ps[1:]}], lr=0.1),
    )
    one.load_state_dict(two.state_dict())


def _other_sizes(m: Any) -> None:
    ps = parameters(m)
    m.optim.SGD(ps, lr=0.1).load_state_dict(m.optim.SGD(ps[:1], lr=0.1).state_dict())


@pytest.mark.parametrize("label", MISUSE)
def test_misuse(label: str) -> None:
    want, got = attempt(MISUSE[label], torch)[1], attempt(MISUSE[label], tt)[1]
    assert want is not None
    bad = error_difference(want, got)
    assert not bad, bad


def test_repr() -> None:
    """PyTorch's form: the class, then each group's options in order."""
    want, got = (
        repr(m.optim.SGD(parameters(m), lr=0.1, momentum=0.9)).splitlines() for m in (torch, tt)
    )
    keep = [line for line in want if line.split(":")[0].strip() not in IMPLEMENTATION]
    assert [line for line in got if line.split(":")[0].strip() not in IMPLEMENTATION] == keep

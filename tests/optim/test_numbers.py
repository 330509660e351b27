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


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in NAMES if name not in ("Adamax", "Rprop")),
        ("SGD", {"momentum": 0.9, "weight_decay": 0.1}),
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("AdamW", {"weight_decay": 0.1, "maximize": True}),
        ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
        ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1}),
        ("Adam", {"lr": "tensor", "betas": "tensors"}),
        ("SGD", {"lr": "tensor"}),
    ],
)
def test_gradients_flow_through_steps(name: str, options: dict[str, Any], kind: str) -> None:
    """`differentiable=True`: what comes after three steps, by the start and by the numbers."""

    def answer(T: Any) -> tuple[list[Any], list[Any]]:
        values = [0.5, -1.5, 2.0] if kind == "float64" else [0.5 + 1j, -1.5 - 2j, 2.0 + 0.3j]
        start = T.tensor(values, dtype=getattr(T, kind), requires_grad=True)
        more, inputs = dict(options), [start]

        def number(value: float) -> Any:
            inputs.append(T.tensor(value, dtype=T.float64, requires_grad=True))
            return inputs[-1]

        if "lr" in more:
            more["lr"] = number(0.1)
        if "betas" in more:
            more["betas"] = number(0.9), number(0.99)
        p = start.clone()
        opt = getattr(T.optim, name)([p], differentiable=True, **more)
        for _ in range(3):
            q = p.clone()
            (p.grad,) = T.autograd.grad((q.abs() ** 3).sum(), q, create_graph=True)
            opt.step()
        grads = T.autograd.grad((p.abs() ** 2).sum(), inputs)
        state = {k: v.requires_grad for k, v in opt.state[p].items()}
        return [p.tolist(), *(g.tolist() for g in grads)], sorted(state.items())

    theirs, ours = answer(torch), answer(tt)
    assert ours[1] == theirs[1]
    for a, b in zip(ours[0], theirs[0], strict=True):
        assert a == pytest.approx(b, rel=1e-6, abs=1e-6)


def test_a_differentiable_step_writes_to_no_leaf() -> None:
    for T in (torch, tt):
        p = T.ones(2, requires_grad=True)
        p.grad = T.ones(2)
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used"):
            T.optim.SGD([p], lr=0.1, differentiable=True).step()


def test_steps_counted_in_plain_numbers() -> None:
    """Files of programs before PyTorch 1.12 have a number where there is a tensor now."""

    def answer(T: Any) -> list[Any]:
        p = T.ones(2, requires_grad=True)
        p.grad = T.ones(2)
        opt = T.optim.Adam([p], lr=0.1)
        opt.step()
        saved = opt.state_dict()
        saved["state"][0]["step"] = saved["state"][0]["step"].item()
        opt.load_state_dict(saved)
        opt.step()
        step = opt.state[p]["step"]
        return [p.tolist(), step.item(), str(step.dtype)]

    theirs, ours = answer(torch), answer(tt)
    assert ours[0] == pytest.approx(theirs[0]) and ours[1:] == theirs[1:]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("groups", [1, 3])
def test_what_an_optimizer_prints(name: str, groups: int) -> None:
    printed = []
    for T in (torch, tt):
        given = [
            {"params": [T.nn.Parameter(T.ones(2))], "lr": 0.1 * k} for k in range(1, groups + 1)
        ]
        printed.append(repr(getattr(T.optim, name)(given, lr=0.1)))
    assert printed[0] == printed[1]


def test_gradients_of_every_kind_are_set_to_zero() -> None:
    """Views, transposed ones, leaves that want gradients, and results that have a history."""

    def zeroed(m: Any, make: Any) -> Any:
        p = m.nn.Parameter(m.ones(2, 2))
        p.grad = given = make(m)
        m.optim.SGD([p], 0.1).zero_grad(set_to_none=False)
        return p.grad.tolist(), p.grad.requires_grad, p.grad.grad_fn, p.grad is given

    for make in (
        lambda m: m.ones(4).view(2, 2),
        lambda m: m.ones(2, 2).t(),
        lambda m: m.ones(2, 2, requires_grad=True),
        lambda m: m.ones(2, 2, requires_grad=True) * 2,
    ):
        assert zeroed(tt, make) == zeroed(torch, make)

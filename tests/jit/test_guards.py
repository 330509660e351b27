"""What a compiled function reads beside its arguments is read again at every call."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import pytest

import toytorch as torch
from toytorch import nn

SCALE: Any = 2.0
TABLE: Any = torch.ones(3)


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * SCALE + TABLE


def outer(x: torch.Tensor) -> torch.Tensor:
    return scaled(x).exp()


@pytest.mark.parametrize("function", [scaled, outer])
def test_globals(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = torch.compile(function), torch.randn(3)
    torch.testing.assert_close(f(x), function(x))
    changes: list[tuple[str, Any]] = [
        ("SCALE", 3.0),
        ("SCALE", 3),
        ("TABLE", torch.zeros(3)),
        ("TABLE", torch.randn(4, 3)),
        ("TABLE", torch.randn(3, dtype=torch.float64)),
        ("SCALE", torch.tensor(2.0)),
    ]
    for name, value in changes:
        monkeypatch.setitem(globals(), name, value)
        torch.testing.assert_close(f(x), function(x))
    TABLE.add_(1)
    torch.testing.assert_close(f(x), function(x))
    assert not f.reason


def test_parameters_in_a_closure_get_gradients() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.0))
    f, x = torch.compile(lambda x: net(x).square().mean()), torch.randn(5, 3)
    for training in (True, False, True):
        net.train(training)
        net.zero_grad()
        f(x).backward()
        got = [p.grad for p in net.parameters()]
        seen = net[1].num_batches_tracked.item()
        net.zero_grad()
        net(x).square().mean().backward()
        for a, b in zip(got, [p.grad for p in net.parameters()]):
            assert a is not None
            torch.testing.assert_close(a, b)
        assert net[1].num_batches_tracked.item() == seen + training
    assert len(f.graphs) == 2


def test_a_tensor_with_a_history_in_a_closure() -> None:
    w = torch.randn(3, requires_grad=True)
    v = w * 2
    f = torch.compile(lambda x: (x * v).sum())
    f(torch.arange(3.0)).backward()
    assert w.grad is not None and w.grad.tolist() == [0.0, 2.0, 4.0]


def test_replaced_parts_of_a_module() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    f, x = torch.compile(net), torch.randn(2, 3)
    f(x)
    net[0].weight = nn.Parameter(torch.eye(3))
    torch.testing.assert_close(f(x), net(x))
    net[0] = nn.Linear(3, 3)
    torch.testing.assert_close(f(x), net(x))
    net[1].register_forward_hook(lambda m, args, out: out + 1)
    torch.testing.assert_close(f(x), net(x))


class Powers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.power, self.offsets = 2, [1.0, 2.0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x**self.power * SCALE


def test_attributes_of_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x = Powers(), torch.rand(3)
    f = torch.compile(net)
    for power in (2, 3, 0.5):
        net.power = power
        torch.testing.assert_close(f(x), net(x))
    monkeypatch.setitem(globals(), "SCALE", 7.0)
    torch.testing.assert_close(f(x), net(x))


@dataclass
class Setting:
    rate: float
    table: Any


class Trainer:
    def __init__(self) -> None:
        self.setting, self.count = Setting(0.1, torch.ones(2)), 0
        self.net = nn.Linear(2, 2)

    @torch.compile
    def step(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x) * self.setting.rate + self.setting.table + self.count


def test_a_method_of_an_ordinary_object() -> None:
    one, two, x = Trainer(), Trainer(), torch.randn(2, 2)
    for trainer in (one, two, one):
        plain = functools.partial(Trainer.step.function, trainer)
        torch.testing.assert_close(trainer.step(x), plain(x))
        trainer.count += 1
        torch.testing.assert_close(trainer.step(x), plain(x))
        trainer.setting.rate = 0.5
        trainer.setting.table = torch.zeros(2)
        trainer.net.weight.data.mul_(2)
        torch.testing.assert_close(trainer.step(x), plain(x))
    one.step(x).sum().backward()
    assert one.net.weight.grad is not None and two.net.weight.grad is None


def test_what_is_not_read_may_change() -> None:
    class Counting(nn.Linear):
        calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).relu() * self.gain()

        def gain(self) -> float:
            return self.factor  # type: ignore[no-any-return]

    net, x = Counting(2, 2), torch.randn(1, 2)
    net.factor = 2.0
    f = torch.compile(net)
    for i in range(5):
        net.calls = i
        f(x)
    assert len(f.forward.graphs) == 1
    net.factor = 3.0
    torch.testing.assert_close(f(x), net(x))
    assert len(f.forward.graphs) == 2


def test_a_module_as_an_argument() -> None:
    nets, x = [nn.Linear(2, 2), nn.Linear(2, 2)], torch.randn(1, 2)
    f = torch.compile(lambda net, x: net(x).relu())
    for net in (*nets, *nets):
        torch.testing.assert_close(f(net, x), net(x).relu())
        f(net, x).sum().backward()
    assert len(f.graphs) == 2


def test_explain_knows_compiled_functions() -> None:
    f = torch.compile(scaled)
    assert "2 ops in one kernel: mul, add" in torch.jit.explain(f, torch.randn(3))
    g = torch.compile(lambda x: x + 1 if x.sum() > 0 else x)
    assert "runs as it is: Converting a tensor to a Python boolean" in torch.jit.explain(
        g, torch.ones(2)
    )

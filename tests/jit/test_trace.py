"""`jit.trace` and `compile`: what is recorded, what is refused, and what a trace cannot follow."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pytest

import toytorch as torch
from toytorch import nn


def test_a_module_is_traced_with_its_parameters() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    x = torch.randn(3, 4)
    traced = torch.jit.trace(net, x)
    assert torch.equal(traced(x), net(x))
    assert list(traced.state_dict()) == list(net.state_dict())
    kinds = [n.kind for n in traced.graph.nodes]
    assert kinds.count("prim::GetAttr") == 6, "two layers, and a weight and a bias of each"
    assert [k for k in kinds if k.startswith("aten")] == [
        "aten::linear",
        "aten::tanh",
        "aten::linear",
    ]
    with torch.no_grad():
        net[0].weight.mul_(2)
    assert torch.equal(traced(x), net(x)), "it reads the parameters when it runs"
    for side in (traced, net):
        side.zero_grad()
        side(x).sum().backward()
    assert net[0].weight.grad is traced.get_parameter("0.weight").grad


def test_gradients_of_a_traced_module() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2))
    x = torch.randn(3, 4)
    net(x).square().sum().backward()
    wanted = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    torch.jit.trace(net, x)(x).square().sum().backward()
    for p, g in zip(net.parameters(), wanted):
        assert torch.allclose(p.grad, g, atol=1e-6)


def test_sizes_are_values_of_the_graph() -> None:
    f = torch.jit.trace(lambda x: x.reshape(x.shape[0] * x.size(1), -1), torch.ones(2, 3, 4))
    assert "aten::size.int" in str(f.graph)
    assert "aten::mul.int" in str(f.graph)
    f.again = None  # as after loading: the one graph serves all shapes
    assert f(torch.ones(5, 2, 7)).shape == (10, 7)


@pytest.mark.parametrize(
    ("look", "what"),
    [
        (lambda x: x * 2 if x.sum() > 0 else x, "Python boolean"),
        (lambda x: x * float(x[0]), "Python float"),
        (lambda x: x * int(x[0]), "Python integer"),
        (lambda x: x * x[0].item(), "Python number"),
        (lambda x: x * x.numpy()[0].item(), "NumPy array"),
        (lambda x: x * 2 if x.size(0) > 1 else x, "Python boolean"),
    ],
)
def test_what_is_frozen_is_warned_of(look: Any, what: str) -> None:
    with pytest.warns(torch.jit.TracerWarning, match=what):
        torch.jit.trace(look, torch.ones(2), check_trace=False)


def test_control_flow_is_frozen() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = torch.jit.trace(lambda x: x * 2 if x.sum() > 0 else x * 3, torch.ones(2))
    assert f(torch.tensor([-1.0, -1.0])).tolist() == [-2.0, -2.0]


def test_nothing_is_left_behind() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x * 2)
        return kept[-1] + 1

    torch.jit.trace(f, torch.ones(2), check_trace=False)
    assert type(kept[0]) is torch.Tensor
    assert type(kept[0].shape[0]) is int


def test_random_numbers_are_drawn_anew() -> None:
    f = torch.jit.trace(lambda x: x + torch.rand(3), torch.zeros(3), check_trace=False)
    assert not torch.equal(f(torch.zeros(3)), f(torch.zeros(3)))
    torch.manual_seed(3)
    wanted = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(f(torch.zeros(3)), wanted)


def test_a_function_with_a_difference_is_told() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x * len(calls)

    with pytest.warns(torch.jit.TracerWarning, match="does not match the corresponding output"):
        torch.jit.trace(f, torch.ones(2))


def test_what_cannot_be_traced() -> None:
    with pytest.raises(RuntimeError, match="Only tensors, lists, tuples"):
        torch.jit.trace(lambda x: 3, torch.ones(1))
    with pytest.raises(RuntimeError, match="cannot be traced"):
        torch.jit.trace(lambda x, n: x * n, (torch.ones(1), "3"))
    with pytest.raises(RuntimeError, match="Encountering a dict"):
        torch.jit.trace(lambda x: {"a": x}, torch.ones(1))


def test_explain_says_why() -> None:
    f = torch.jit.trace(lambda x: x[x > 0], torch.ones(2), check_trace=False)
    assert "depends on values" in torch.jit.explain(f, torch.ones(2))
    g = torch.jit.trace(lambda x: (x * 2).exp(), torch.ones(2))
    assert "2 ops in one kernel: mul, exp" in torch.jit.explain(g, torch.ones(2))


def test_compile_follows_shapes_modes_and_branches() -> None:
    @torch.compile
    def f(x: Any, scale: float = 1.0) -> Any:
        return (x * scale).tanh() if x.shape[0] > 2 else x - scale

    for n in (1, 2, 3, 4):
        for scale in (1.0, 2.0):
            x = torch.randn(n)
            wanted = (x * scale).tanh() if n > 2 else x - scale
            assert torch.allclose(f(x, scale=scale), wanted)
    net = torch.compile(nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)))
    x = torch.ones(64, 3)
    assert not torch.equal(net(x), net(x))
    net.eval()
    assert torch.equal(net(x), net(x))
    assert list(net.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]


def test_compile_runs_what_it_cannot_follow() -> None:
    @torch.compile
    def f(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x * 3

    assert f(torch.ones(2)).tolist() == [2.0, 2.0]
    assert f(-torch.ones(2)).tolist() == [-3.0, -3.0]
    assert "Python boolean" in f.reason
    with pytest.raises(RuntimeError, match="Python boolean"):
        torch.compile(lambda x: x * 2 if x.sum() > 0 else x, fullgraph=True)(torch.ones(2))


def test_a_compiled_network_learns() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    step = torch.compile(lambda x, y: nn.functional.mse_loss(net(x), y))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    x = torch.randn(64, 2)
    y = x[:, :1] * x[:, 1:]
    first = step(x, y).item()
    for _ in range(300):
        optimizer.zero_grad()
        loss = step(x, y)
        loss.backward()
        optimizer.step()
    assert loss.item() < first / 10


@torch.jit.script
def chooses(x: torch.Tensor, n: int) -> torch.Tensor:
    """Branches on elements, loops over a number."""
    if bool(x.sum() > 0):
        for _ in range(n):
            x = x * 2
        return x
    return x - 1


def test_a_scripted_function_keeps_its_branches() -> None:
    """A trace holds the call, not the path that the example took."""

    def f(x: torch.Tensor) -> torch.Tensor:
        return chooses(x + 1, 2) * 3 + chooses(x, 1)

    for example in (torch.ones(2), -torch.ones(2)):
        made = torch.jit.trace(f, example)
        assert "prim::If" in str(made.inlined_graph)
        file = io.BytesIO()
        torch.jit.save(made, file)
        for traced in (made, torch.jit.load(file)):
            for value in (3.0, -3.0, -0.5):
                for size in (2, 3):
                    x, y = (torch.full((size,), value, requires_grad=True) for _ in range(2))
                    wanted, found = f(x), traced(y)
                    assert found.tolist() == wanted.tolist()
                    wanted.sum().backward()
                    found.sum().backward()
                    assert x.grad.tolist() == y.grad.tolist()


def test_inputs_of_methods_in_a_list() -> None:
    layer = nn.Linear(2, 1)
    inputs = {"forward": [torch.ones(3, 2)]}
    traced = torch.jit.trace_module(layer, inputs, check_inputs=[inputs])
    assert traced(torch.ones(1, 2)).equal(layer(torch.ones(1, 2)))

"""`make_fx`: the ops that ran, as PyTorch's graphs have them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

import toytorch as tt

torch = pytest.importorskip("torch")

from toytorch.fx.experimental import proxy_tensor as ours  # noqa: E402  # below the skip

Program = Callable[[Any], Callable[..., Any]]
SAME: list[Program] = [  # whose graphs are the same to the letter
    lambda m: lambda x: m.sin(x).relu() + 1,
    lambda m: lambda x: x @ x.t(),
    lambda m: lambda x: (x.sum(0), x.mean(1)),
    lambda m: lambda x: x.split(2, 1)[0] * 2,
    lambda m: lambda x: x.clone().add_(1.0).mul_(x),
    lambda m: lambda x: x.view(4, 3).t()[0].softmax(-1),
    lambda m: lambda x: {"a": x + 1, "b": [x, x * 2]},
    lambda m: lambda x: m.nn.functional.gelu(m.nn.functional.layer_norm(x, (4,))),
]
ALIKE: list[Program] = [  # which compute the same
    lambda m: m.func.grad(lambda x: (x.sin() ** 2).sum()),
    lambda m: m.func.vmap(lambda x: x.sin() * 2),
    lambda m: lambda x: x + m.arange(4),
    lambda m: lambda x: x.max(1)[0] + m.cat([x, x]).std(),
    lambda m: lambda x: m.autograd.grad((y := x.clone().requires_grad_()).exp().sum(), y)[0],
]


def inputs() -> tuple[Any, Any]:
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    return x, tt.from_numpy(x.numpy().copy())


@pytest.mark.parametrize("number", range(len(SAME)))
def test_graphs_are_pytorchs(number: int) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    want, got = (
        make(SAME[number](m))(x).code
        for make, m, x in zip((make_fx, ours.make_fx), (torch, tt), inputs())
    )
    assert got == want


@pytest.mark.parametrize("program", [p(tt) for p in SAME + ALIKE])
def test_graphs_compute_what_the_program_does(program: Callable[..., Any]) -> None:
    x = inputs()[1]
    module = ours.make_fx(program)(x)
    for given in (x, x.flip(0).mul(3)):
        tt.testing.assert_close(module(given), program(given))


def test_tensors_from_elsewhere_are_attributes() -> None:
    layer, constant = tt.nn.Linear(4, 2), tt.ones(2)
    module = ours.make_fx(lambda x: layer(x) * constant)(inputs()[1])
    assert [n.target for n in module.graph.nodes if n.op == "get_attr"] == [
        "_param_constant0", "_param_constant1", "_tensor_constant0",
    ]  # fmt: skip
    file = io.BytesIO()
    tt.save(module.state_dict(), file)
    tt.testing.assert_close(module(tt.zeros(1, 4))[0], layer.bias * constant)


def test_arguments_may_be_nested() -> None:
    x = inputs()[1]
    module = ours.make_fx(lambda pair, named: pair[0] * named["k"])([x, x], {"k": x + 1})
    assert module([x, x], {"k": x}).equal(x * x)


def test_ops_are_replaced_by_functions() -> None:
    softplus = tt.ops.aten.softplus.default
    table = {softplus: lambda x, beta=1, threshold=20: tt.log1p(tt.exp(x))}
    x = inputs()[1]
    module = ours.make_fx(tt.nn.functional.softplus, table)(x)
    names = [n.name for n in module.graph.nodes if n.op == "call_function"]
    assert names == ["exp", "log1p"]
    tt.testing.assert_close(module(x), tt.nn.functional.softplus(x))


def test_the_mode_is_known_while_it_records() -> None:
    seen: list[Any] = []

    def program(x: Any) -> Any:
        seen.append(ours.get_proxy_mode())
        return x.sin()

    ours.make_fx(program)(tt.ones(2))
    assert isinstance(seen[0], ours.ProxyTorchDispatchMode) and ours.get_proxy_mode() is None
    with pytest.raises(AssertionError, match="tracing_mode"):
        ours.make_fx(program, tracing_mode="none")

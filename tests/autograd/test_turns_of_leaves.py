"""When leaves get their gradients: as soon as all that send to them have run, as hooks and those who
catch an error can see."""

from __future__ import annotations

from typing import Any

import pytest

from tests.outside.alike import same

pytestmark = pytest.mark.filterwarnings("ignore")


def network(m: Any) -> Any:
    m.manual_seed(0)
    return m.nn.Sequential(
        m.nn.Linear(2, 3), m.nn.Tanh(), m.nn.Linear(3, 3), m.nn.Sigmoid(), m.nn.Linear(3, 1)
    )


def arrived(net: Any) -> list[tuple[str, list[float]]]:
    """The gradients that are there by now."""
    return [
        (name, [round(v, 4) for v in p.grad.flatten().tolist()])
        for name, p in net.named_parameters()
        if p.grad is not None
    ]


@pytest.mark.parametrize("how", ["modules", "tensors", "kept", "differentiable", "inputs"])
def test_hooks_see_gradients(how: str) -> None:
    def said(m: Any) -> Any:
        net, seen = network(m), list[Any]()
        x = m.linspace(-1, 1, 8).reshape(4, 2).requires_grad_()
        if how == "modules":
            for name, layer in net.named_children():
                layer.register_full_backward_hook(
                    lambda *given, name=name: seen.append((name, arrived(net)))
                )
        else:
            for name, p in net.named_parameters():
                p.register_hook(lambda g, name=name: seen.append(name))
                p.register_post_accumulate_grad_hook(lambda p: seen.append(arrived(net)))
        h = net[1](net[0](x))
        if how == "kept":
            h.retain_grad()
        if how != "modules":
            h.register_hook(lambda g: seen.append(("h", arrived(net))))
        out = net[4](net[3](net[2](h))).sum() + (net[2].weight ** 2).sum()
        chosen = [net[0].weight, net[4].bias] if how == "inputs" else None
        out.backward(create_graph=how == "differentiable", inputs=chosen)
        return seen, arrived(net)

    same(said)


@pytest.mark.parametrize("how", ["function", "hook", "written"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_passes_that_fail(how: str, create_graph: bool) -> None:
    def said(m: Any) -> Any:
        class Failing(m.autograd.Function):  # type: ignore[misc]  # of either package
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x.clone()

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                raise ValueError("no")

        def fail(g: Any) -> None:
            raise ValueError("no")

        net = network(m)
        h = net[1](net[0](m.linspace(-1, 1, 8).reshape(4, 2)))
        if how == "function":
            h = Failing.apply(h)
        elif how == "hook":
            h.register_hook(fail)
        else:
            with m.no_grad():
                h.add_(1)
        out = net[4](net[3](net[2](h))).sum()
        with pytest.raises((ValueError, RuntimeError)) as refused:
            out.backward(create_graph=create_graph)
        return type(refused.value).__name__, arrived(net)

    same(said)

"""Compiled, traced, scripted and transformed functions are cast as eager ones are."""

from __future__ import annotations

import toytorch as torch


def network() -> torch.nn.Module:
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.GELU(), torch.nn.Linear(4, 2)
    )
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.linspace(-1, 1, p.numel()).reshape(p.shape))
    return net


def test_a_compiled_network_inside_and_outside() -> None:
    net, x, y = network(), torch.arange(12.0).reshape(3, 4), torch.tensor([0, 1, 0])
    compiled = torch.compile(net)
    for _ in range(2):
        assert compiled(x).dtype is torch.float32
        with torch.autocast("cpu"):
            out, eager = compiled(x), net(x)
            assert out.dtype is torch.bfloat16 and torch.equal(out, eager)
        torch.nn.functional.cross_entropy(out, y).backward()
        assert net[0].weight.grad.dtype is torch.float32


def test_a_context_inside_of_a_compiled_function() -> None:
    net, x, y = network(), torch.arange(12.0).reshape(3, 4), torch.tensor([0, 1, 0])

    def step(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return torch.nn.functional.cross_entropy(net(x), y)

    compiled = torch.compile(step)
    for _ in range(3):
        loss = compiled(x)
        assert loss.dtype is torch.float32 and loss.item() == step(x).item()


def test_graphs_made_outside_are_cast_inside() -> None:
    net, x = network(), torch.ones(3, 4)
    traced, scripted = torch.jit.trace(net, x), torch.jit.script(net)
    with torch.autocast("cpu"):
        for made in (traced, scripted):
            assert made(x).dtype is torch.bfloat16
    assert traced(x).dtype is scripted(x).dtype is torch.float32


def test_transforms() -> None:
    x = torch.ones(2, 2)
    with torch.autocast("cpu"):
        assert torch.vmap(lambda a: a @ a)(torch.ones(3, 2, 2)).dtype is torch.bfloat16
        assert torch.func.grad(lambda a: (a @ a).sum())(x).dtype is torch.float32
        assert torch.func.jvp(lambda a: a @ a, (x,), (x,))[1].dtype is torch.bfloat16
        again = torch.utils.checkpoint.checkpoint(
            lambda a: a @ a, torch.ones(2, 2, requires_grad=True), use_reentrant=False
        )
    assert again.dtype is torch.bfloat16
    again.sum().backward()

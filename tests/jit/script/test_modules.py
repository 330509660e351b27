"""Scripted modules: methods, children, constants, attributes that change, what Python runs."""

from __future__ import annotations

import io
import re
from typing import Any, Dict, Final, List, Optional

import pytest

import toytorch as torch
import toytorch.nn as nn
from tests.jit.script.run import canonical
from toytorch.jit import interpreter


class Net(nn.Module):
    factor: Final[int] = 3
    names: List[str]
    limit: Optional[int]

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.parts = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Tanh()})
        self.stack = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
        self.norm = nn.LayerNorm(3)
        self.register_buffer("offset", torch.ones(3))
        self.scale, self.names, self.limit, self.bias = 0.5, ["x", "y"], None, None
        self.act = torch.nn.functional.gelu

    def helper(self, x, k: int = 2):
        return x * k * self.scale

    @torch.jit.export
    def other(self, x):
        return self.helper(x, k=self.factor)

    @torch.jit.ignore
    def in_python(self, x) -> torch.Tensor:
        return torch.tensor(sorted(x.flatten().tolist()))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = torch.relu(layer(x)) + i
        for name, part in self.parts.items():
            x = part(x) + len(name)
        if self.bias is not None:
            x = x + self.bias
        if self.training:
            x = x + self.offset
        x = self.norm(self.stack(x)) + self.layers[-1](x) + self.parts["a"](x)
        return self.act(self.helper(x)) + self.in_python(x).sum() * len(self.names)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.seen: Dict[str, int] = {"a": 1}
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x, n: int):
        self.calls += n
        for _ in range(n):
            self.total = self.total + x
        self.seen["b"] = self.calls
        return self.total * self.calls


def test_forward_and_gradients() -> None:
    torch.manual_seed(0)
    net, x = Net(), torch.randn(2, 3)
    scripted = torch.jit.script(net)
    for mode in (True, False):
        net.train(mode)
        wanted = net(x)
        got = scripted.train(mode)(x)
        assert torch.allclose(wanted, got)
        names = [n for n, _ in net.named_parameters()]
        for a, b in zip(
            torch.autograd.grad(wanted.sum(), list(net.parameters())),
            torch.autograd.grad(got.sum(), list(scripted.parameters())),
        ):
            assert torch.allclose(a, b), names
    assert torch.equal(scripted.other(x), net.other(x))
    assert scripted.original_name == "Net"
    assert torch.equal(
        interpreter.run(scripted._methods["other"].graph, [scripted, x]), net.other(x)
    )


def test_graphs() -> None:
    scripted = torch.jit.script(Net())
    calls = scripted.graph.findAllNodes("prim::CallMethod")
    assert {n.attributes["name"] for n in calls} >= {"forward", "helper", "in_python"}
    inlined = scripted.inlined_graph
    left = [n.attributes["name"] for n in inlined.findAllNodes("prim::CallMethod")]
    assert left == ["in_python"]
    assert "self.in_python(" in scripted.code
    assert "def forward(self,\n    x: Tensor) -> Tensor:" in scripted.code


def test_code_gives_the_graph_again() -> None:
    scripted = torch.jit.script(Net())
    before = canonical(scripted.graph)
    scripted.define(scripted.code)
    assert canonical(scripted.graph) == before


def test_attributes_change() -> None:
    plain, x = Counting(), torch.tensor([1.0, 2.0])
    scripted = torch.jit.script(Counting())
    for n in (1, 3, 2):
        assert torch.equal(plain(x, n), scripted(x, n))
    assert scripted.calls == plain.calls == 6
    assert torch.equal(scripted.total, plain.total)


def test_define() -> None:
    scripted = torch.jit.script(Net())
    scripted.define("def twofold(self, x: Tensor) -> Tensor:\n    return self.helper(x) * 2")
    assert torch.equal(scripted.twofold(torch.ones(3)), 2 * torch.ones(3))


def test_hooks_run() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    net[0].register_forward_hook(lambda module, args, out: out + 10)
    x = torch.randn(1, 2)
    assert torch.equal(torch.jit.script(net)(x), net(x))


MODULES: list[tuple[Any, tuple[int, ...]]] = [
    (lambda: nn.Linear(3, 4), (2, 3)),
    (lambda: nn.Conv1d(2, 3, 2), (1, 2, 5)),
    (lambda: nn.Conv2d(1, 2, 3, padding=1), (1, 1, 4, 4)),
    (lambda: nn.MaxPool2d(2), (1, 1, 4, 4)),
    (lambda: nn.AvgPool1d(2), (1, 1, 4)),
    (lambda: nn.AdaptiveAvgPool2d(1), (1, 2, 4, 4)),
    (lambda: nn.BatchNorm1d(3), (4, 3)),
    (lambda: nn.BatchNorm2d(2), (2, 2, 3, 3)),
    (lambda: nn.GroupNorm(1, 2), (2, 2, 3)),
    (lambda: nn.LayerNorm(3), (2, 3)),
    (lambda: nn.InstanceNorm1d(2), (2, 2, 3)),
    (lambda: nn.LSTM(3, 2), (4, 3)),
    (lambda: nn.GRU(3, 2), (4, 3)),
    (lambda: nn.LSTMCell(3, 2), (4, 3)),
    (lambda: nn.Flatten(), (2, 3, 4)),
    (lambda: nn.PReLU(), (2, 3)),
    (lambda: nn.ReLU6(), (2, 3)),
    (lambda: nn.SiLU(), (2, 3)),
    (lambda: nn.Softmax(1), (2, 3)),
    (lambda: nn.GELU(), (2, 3)),
    (lambda: nn.Dropout(0.0), (2, 3)),
    (lambda: nn.Upsample(scale_factor=2), (1, 1, 3)),
    (lambda: nn.PixelShuffle(2), (1, 4, 2, 2)),
    (lambda: nn.ConstantPad1d(1, 0.5), (1, 2, 3)),
    (lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), (3, 2, 4)),
    (lambda: nn.Identity(), (2,)),
    (lambda: nn.ConvTranspose1d(2, 3, 2), (1, 2, 5)),
]


class Around(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


@pytest.mark.parametrize("place", range(len(MODULES)))
def test_library_modules(place: int) -> None:
    """Every module of the framework can stand inside a scripted one, and be scripted itself."""
    make, shape = MODULES[place]
    torch.manual_seed(0)
    inner = make()
    x = torch.randn(*shape)
    for outer in (Around(inner), inner):
        wanted, got = outer(x), torch.jit.script(outer)(x)
        flat = torch.utils._pytree.tree_leaves if hasattr(torch.utils, "_pytree") else leaves
        for a, b in zip(flat(wanted), flat(got), strict=True):
            assert torch.allclose(a, b)


def leaves(value: Any) -> list[Any]:
    return [t for v in value for t in leaves(v)] if isinstance(value, tuple) else [value]


class Missing(nn.Module):
    def forward(self, x):
        return x + self.nothing


class Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.thing = object()
        self.n = 1

    def forward(self, x):
        self.n = "a"
        return x


class Holding(Odd):
    def forward(self, x):
        return x + self.thing


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Missing, "Module 'Missing' has no attribute 'nothing'"),
        (Odd, "Wrong type for attribute assignment. Expected int but got str"),
        (Holding, "failed to convert Python type: 'object' to a TorchScript type"),
    ],
)
def test_errors(kind: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(message)) as caught:
        torch.jit.script(kind())
    assert "<--- HERE" in str(caught.value)


class Unused(nn.Module):
    @torch.jit.unused
    def never(self, x) -> torch.Tensor:
        return x * 2

    def forward(self, x, flag: bool):
        if flag:
            x = self.never(x)
        return x


def test_unused() -> None:
    scripted = torch.jit.script(Unused())
    assert scripted(torch.ones(1), False).item() == 1
    with pytest.raises(torch.jit.Error, match=r"is marked @torch\.jit\.unused"):
        scripted(torch.ones(1), True)


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.inner(x)
            with torch.no_grad():
                z = self.inner(x)
        return y, z, self.inner(x)


def test_contexts_of_modules_inside_are_kept() -> None:
    module, x = Mixed().eval(), torch.full((1, 2), 1.001)
    scripted = torch.jit.script(module)
    ways = [scripted, torch.jit.trace(scripted, x), torch.jit.freeze(scripted)]
    for way in list(ways):
        file = io.BytesIO()
        torch.jit.save(way, file)
        file.seek(0)
        ways.append(torch.jit.load(file))
    for i, way in enumerate(ways):
        for wanted, got in zip(module(x), way(x)):
            assert got.dtype is wanted.dtype
            assert got.requires_grad == (wanted.requires_grad and i % 3 != 2)  # of the frozen none
            assert torch.equal(got, wanted)

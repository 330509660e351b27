"""What is timed: a case builds the same work for either module, as a function to repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Work = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A row of the table."""

    name: str
    build: Callable[[Any], Work]
    target: float | None = None  # the ratio that was asked for
    inner: int = 200  # calls per timed sample
    samples: int = 60
    traffic: int = 0  # bytes that have to be read and written, where that is what takes the time


def _values(m: Any, *shape: int, grad: bool = False) -> Any:
    x = m.sin(m.arange(_size(shape), dtype=m.float32)).reshape(shape)
    return x.requires_grad_(grad)


def _size(shape: tuple[int, ...]) -> int:
    n = 1
    for k in shape:
        n *= k
    return n


def add(grad: bool) -> Callable[[Any], Work]:
    def build(m: Any) -> Work:
        a, b = _values(m, 10, grad=grad), _values(m, 10)
        return lambda: a + b

    return build


def scale(m: Any) -> Work:
    x = _values(m, 10)
    return lambda: x * 2.0


def hundred_multiplications(m: Any) -> Work:
    x, w = _values(m, 10, grad=True), _values(m, 10)

    def run() -> None:
        y = x
        for _ in range(100):
            y = y * w
        x.grad = None
        y.sum().backward()

    return run


def relu(m: Any) -> Work:
    x = _values(m, 64, 32)
    return x.relu


def total(m: Any) -> Work:
    x = _values(m, 10)
    return x.sum


def product(m: Any) -> Work:
    a, b = _values(m, 16, 16), _values(m, 16, 16)
    return lambda: a @ b


def view(m: Any) -> Work:
    x = _values(m, 4, 6)
    return lambda: x.view(6, 4).t()[1]


def large(m: Any) -> Work:
    """A few million numbers through three ops: memory traffic rather than calls."""
    a, b = _values(m, 2000, 1000), _values(m, 2000, 1000)
    return lambda: (a * b + a).relu()


def on_a_million(work: Callable[[Any, Any, Any], object]) -> Callable[[Any], Work]:
    """An op on 1,000 x 1,000 float32."""

    def build(m: Any) -> Work:
        a, b = _values(m, 1000, 1000), _values(m, 1000, 1000)
        return lambda: work(m, a, b)

    return build


def training_step(optimizer: str) -> Callable[[Any], Work]:
    """64 x 784-256-256-10, cross-entropy: forward, backward and the optimizer's step."""

    def build(m: Any) -> Work:
        model = m.nn.Sequential(
            m.nn.Linear(784, 256),
            m.nn.ReLU(),
            m.nn.Linear(256, 256),
            m.nn.ReLU(),
            m.nn.Linear(256, 10),
        )
        with m.no_grad():
            for i, p in enumerate(model.parameters()):
                p.copy_(
                    m.sin(m.arange(p.numel(), dtype=m.float32) * (i + 1.7)).reshape(p.shape) * 0.05
                )
        rule = getattr(m.optim, optimizer)(model.parameters(), lr=1e-3)
        x, target = _values(m, 64, 784), m.arange(64) % 10
        cross_entropy = m.nn.functional.cross_entropy

        def run() -> None:
            rule.zero_grad()
            cross_entropy(model(x), target).backward()
            rule.step()

        return run

    return build


CASES = [
    Case("add of 10 floats", add(False), 0.6, inner=2000),
    Case("add of 10 floats, with gradient", add(True), 0.6, inner=2000),
    Case("x * 2.0", scale, 0.5, inner=2000),
    Case("100 multiplications, forward and backward", hundred_multiplications, 0.5, inner=10),
    Case("relu of 64x32", relu, inner=1000),
    Case("sum of 10 floats", total, inner=1000),
    Case("16x16 matrix product", product, inner=1000),
    Case("view, transpose, select", view, inner=500),
    Case("MLP step 64x784-256-256-10, SGD", training_step("SGD"), 0.9, inner=4),
    Case("MLP step 64x784-256-256-10, Adam", training_step("Adam"), 0.9, inner=4),
    Case("elementwise, 2 million floats", large, inner=2, samples=30),
    *(
        Case(f"{name}, 1 million floats", on_a_million(work), target, 4, 60, traffic)
        for name, work, target, traffic in (
            ("add", lambda m, a, b: a + b, 1.1, 12_000_000),
            ("exp", lambda m, a, b: a.exp(), 1.1, 8_000_000),
            ("tanh", lambda m, a, b: a.tanh(), 1.1, 8_000_000),
            ("sum", lambda m, a, b: a.sum(), 1.1, 4_000_000),
            ("mean over dim 0", lambda m, a, b: a.mean(0), 1.1, 4_000_000),
            ("mean over dim 1", lambda m, a, b: a.mean(1), 1.1, 4_000_000),
            ("softmax over dim 1", lambda m, a, b: a.softmax(1), None, 8_000_000),
            ("gelu", lambda m, a, b: m.nn.functional.gelu(a), None, 8_000_000),
            ("layer norm", lambda m, a, b: m.nn.functional.layer_norm(a, (1000,)), None,
             8_000_000),
        )
    ),
]

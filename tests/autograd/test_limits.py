"""Depth, sharing, threads and memory: where a naive engine recurses, repeats work or leaks."""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
import weakref
from typing import Any

import pytest

from tests.oracle import agree, torch, tt


def test_sixty_doublings() -> None:
    """y = y + y sixty times is sixty nodes, not 2^60 paths."""

    def f(m: Any) -> Any:
        x = m.tensor([1.0, -0.5], dtype=m.float64, requires_grad=True)
        y = x
        for _ in range(60):
            y = y + y
        start = time.perf_counter()
        y.sum().backward()
        return x.grad, time.perf_counter() - start

    (want, _), (got, seconds) = f(torch), f(tt)
    agree(want, got, exact=True)
    assert seconds < 2


def test_sixty_doublings_with_create_graph() -> None:
    x = tt.tensor(1.5, dtype=tt.float64, requires_grad=True)
    y = x * x
    for _ in range(60):
        y = y + y
    (g,) = tt.autograd.grad(y, x, create_graph=True)
    (h,) = tt.autograd.grad(g, x)
    assert h.item() == 2.0**61


@pytest.mark.parametrize("retain", [False, True])
def test_chain_of_100_000(retain: bool) -> None:
    """No recursion: not in backward, not when the graph is freed."""
    x = tt.tensor([1.0, 2.0], dtype=tt.float64, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1e-5
    y.sum().backward(retain_graph=retain)
    assert x.grad.tolist() == [1.0, 1.0]
    del y


def test_unused_deep_graph_is_freed_without_recursion() -> None:
    x = tt.ones(2, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y * 1.0
    del y
    assert (x * 2).requires_grad


def test_wide_graph() -> None:
    x = tt.tensor(1.0, dtype=tt.float64, requires_grad=True)
    total = sum((x * i for i in range(20_000)), x * 0)
    total.backward()
    assert x.grad.item() == sum(range(20_000))


def training(m: Any, steps: int) -> None:
    model = m.nn.Sequential(m.nn.Linear(8, 16), m.nn.Tanh(), m.nn.Linear(16, 4))
    optimizer = m.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, target = m.randn(32, 8), m.randint(4, (32,))
    for _ in range(steps):
        optimizer.zero_grad()
        loss = m.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()


def test_3_000_training_steps_do_not_grow(no_collector: None) -> None:
    """With the garbage collector off: no reference cycles."""
    training(tt, 50)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        resident = _resident()
        training(tt, 3000)
        grown = tracemalloc.get_traced_memory()[0] - before
        assert grown < 5e6, f"traced memory grew by {grown / 1e6:.1f} MB"
        assert _resident() - resident < 5e6, (
            f"resident memory grew by {(_resident() - resident) / 1e6:.1f} MB"
        )
    finally:
        tracemalloc.stop()


def _resident() -> int:
    """Resident bytes where the system tells them in /proc, else 0."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096
    except OSError:
        return 0


CYCLES: dict[str, Any] = {
    "a graph": lambda m, x: (x * 2).exp().sum(),
    "views": lambda m, x: x.t()[0].view(-1),
    "an in-place write": lambda m, x: (x * 2).add_(1),
    "a written view": lambda m, x: _written(x),
    "backward": lambda m, x: _backward(x),
    "double backward": lambda m, x: m.autograd.grad((x**3).sum(), x, create_graph=True)[0],
    "a hook": lambda m, x: _hooked(x),
    "retain_grad": lambda m, x: _retained(x),
    "an error in backward": lambda m, x: _failing(x),
}


def _written(x: Any) -> Any:
    y = x * 1
    y[0].mul_(2)
    return y


def _backward(x: Any) -> Any:
    y = x.exp()
    y.sum().backward(retain_graph=True)
    return y


def _hooked(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 2)
    y.sum().backward()
    return y


def _retained(x: Any) -> Any:
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    return y


def _failing(x: Any) -> Any:
    y = x.exp()
    y.add_(1)
    try:
        y.sum().backward()
    except RuntimeError:
        return y
    raise AssertionError("backward should have refused")


@pytest.mark.parametrize("label", CYCLES)
def test_freed_by_reference_counts(label: str, no_collector: None) -> None:
    x = tt.ones(2, 3, requires_grad=True)
    y = CYCLES[label](tt, x)
    watch = weakref.ref(y)
    del y
    assert watch() is None, f"{label}: a reference cycle keeps the result alive"


def test_graph_is_freed_as_it_is_used() -> None:
    """After backward without retain_graph, saved tensors are gone though the result lives."""
    x = tt.ones(3, requires_grad=True)
    saved = x * 2
    watch = weakref.ref(saved)
    loss = (saved.exp() * saved).sum()
    del saved
    loss.backward()
    gc.collect()
    assert watch() is None
    assert loss.item() > 0


def test_grad_mode_is_per_thread() -> None:
    seen: dict[str, Any] = {}
    inside, leave = threading.Event(), threading.Event()

    def off() -> None:
        with tt.no_grad():
            inside.set()
            leave.wait(10)
            seen["off"] = (tt.ones(1, requires_grad=True) * 2).requires_grad

    thread = threading.Thread(target=off)
    thread.start()
    inside.wait(10)
    seen["main"] = (tt.ones(1, requires_grad=True) * 2).requires_grad
    with tt.no_grad():
        fresh = threading.Thread(target=lambda: seen.update(fresh=tt.is_grad_enabled()))
        fresh.start()
        fresh.join()
    leave.set()
    thread.join()
    assert seen == {"off": False, "main": True, "fresh": True}
    assert tt.is_grad_enabled()


def test_threads_train_side_by_side() -> None:
    """Four threads, two of them without gradients, disturb neither each other nor later work."""
    results: list[Any] = []

    def work(i: int) -> None:
        x = tt.full((4,), float(i), dtype=tt.float64, requires_grad=True)
        for _ in range(200):
            if i % 2:
                with tt.no_grad():
                    assert not (x * x).requires_grad
            else:
                y = (x * x).sum()
                (g,) = tt.autograd.grad(y, x)
                assert g.tolist() == [2.0 * i] * 4
        results.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == [0, 1, 2, 3]
    assert (tt.ones(1, requires_grad=True) * 2).requires_grad


def test_backward_from_several_threads_accumulates() -> None:
    x = tt.ones(2, dtype=tt.float64, requires_grad=True)
    losses = [(x * i).sum() for i in range(8)]
    threads = [threading.Thread(target=loss.backward) for loss in losses]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.tolist() == [28.0, 28.0]


def test_backward_inside_backward() -> None:
    """A hook may run another backward pass."""

    def f(m: Any) -> Any:
        x, w = m.tensor(2.0, requires_grad=True), m.tensor(3.0, requires_grad=True)
        y = x * 2

        def hook(g: Any) -> None:
            with m.enable_grad():
                (w * w).backward()

        y.register_hook(hook)
        (y * 5).backward()
        return x.grad, w.grad

    agree(f(torch), f(tt))

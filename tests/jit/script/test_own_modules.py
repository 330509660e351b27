"""Classes that derive from ScriptModule: marked methods, methods as text, copies and files."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest

from tests.oracle import torch, tt

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def scale(T: Any) -> Any:
    class Scale(T.jit.ScriptModule):
        __constants__ = ("shift",)

        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = T.nn.Parameter(T.tensor(factor))
            self.shift = 3
            self.layer = T.nn.Linear(2, 2)

        @T.jit.script_method
        def forward(self, x):
            y = self.half(x)
            if bool(y.sum() > 0):
                y = y + self.shift
            return self.layer(y) * self.factor

        @T.jit.script_method
        def half(self, x):
            return x / 2

    made = Scale(2.0)
    made.load_state_dict(
        {"factor": T.tensor(2.0), "layer.weight": T.ones(2, 2), "layer.bias": T.zeros(2)}
    )
    return made


def texts(T: Any) -> Any:
    class Texts(T.jit.ScriptModule):
        def __init__(self) -> None:
            super().__init__()
            self.weight = T.nn.Parameter(T.ones(2))
            self.define("def forward(self, x):\n    return self.twice(x) + self.weight\n")
            self.define("def twice(self, x):\n    return 2 * x\n")

    return Texts()


def kept(T: Any, module: Any) -> Any:
    file = io.BytesIO()
    T.jit.save(module, file)
    file.seek(0)
    return T.jit.load(file)


@pytest.mark.parametrize("make", [scale, texts], ids=["methods", "texts"])
def test_answers(make: Any) -> None:
    def answers(T: Any) -> list[Any]:
        module, said = make(T), list[Any]()
        for m in (module, copy.deepcopy(module), kept(T, module), T.jit.script(module)):
            for value in (1.0, -1.0):
                said.append(m(T.full((2,), value)).tolist())
        said.append(sorted(n for n, _ in module.named_parameters()))
        said.append(
            [isinstance(module, T.jit.ScriptModule), module.training, module.eval().training]
        )
        return said

    assert answers(tt) == answers(torch)


def test_gradients() -> None:
    def answer(T: Any) -> Any:
        module = scale(T)
        module(T.ones(2)).sum().backward()
        return module.factor.grad.item(), module.layer.weight.grad.tolist()

    assert answer(tt) == answer(torch)


def test_inside_another() -> None:
    def answer(T: Any) -> Any:
        class Outer(T.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = scale(T)

            def forward(self, x):
                return self.inner(x) + self.inner.half(x)

        return T.jit.script(Outer())(T.ones(2)).tolist()

    assert answer(tt) == answer(torch)


def test_switched_off() -> None:
    def answer(T: Any) -> Any:
        T.jit._state.disable()
        try:
            f = lambda x: x + 1  # noqa: E731
            return T.jit.script(f) is f, T.jit.trace(f, (T.ones(1),)) is f
        finally:
            T.jit._state.enable()

    assert answer(tt) == answer(torch)


def test_copies_of_traced_modules() -> None:
    def answer(T: Any) -> Any:
        net = T.nn.Linear(2, 1)
        T.nn.init.ones_(net.weight), T.nn.init.zeros_(net.bias)
        traced = T.jit.trace(net, T.ones(1, 2))
        other = copy.deepcopy(traced)
        with T.no_grad():
            net.weight.mul_(5)
        return traced(T.ones(3, 2)).tolist(), other(T.ones(3, 2)).tolist()

    assert answer(tt) == answer(torch)

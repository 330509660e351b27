"""What a step leaves behind is gone when the last name is: nothing waits for the garbage collector.

Circles of references (a node that knows its context that knows its node) would keep the arrays of
a step until the collector comes; memory grows meanwhile, and every step touches fresh pages.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.ops.records import PAIRS, TESTED
from tests.ops.samples.base import Sample, supported
from tests.oracle import SUBJECT, tt

NAMES = list(dict.fromkeys(name for name, *_ in PAIRS))
GROUPS = 24
nn, F = tt.nn, tt.nn.functional


def garbage(work: Callable[[], object]) -> int:
    """How many objects the collector finds after a call, once everything was made that is kept."""
    work()
    gc.collect()
    gc.disable()
    try:
        work()
        return gc.collect()
    finally:
        gc.enable()


def forward_and_back(name: str, sample: Sample) -> None:
    args, kwargs = SUBJECT.carry((sample.args, sample.kwargs), grad=sample.grad)
    made = TESTED[name].function(SUBJECT)(*args, **kwargs)
    made = [t for t in SUBJECT.tensors(made) if t.requires_grad]
    if made and not name.endswith("_copy"):  # which have no derivative
        tt.autograd.backward(made, [tt.ones_like(t) for t in made])


@pytest.mark.parametrize("group", range(GROUPS))
def test_operators(group: int) -> None:
    samples = [(n, s) for n in NAMES[group::GROUPS] for s in list(supported(TESTED[n]))[:1]]

    def all_of_them() -> None:
        for name, sample in samples:
            forward_and_back(name, sample)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if garbage(all_of_them):
            left = {n for n, s in samples if garbage(lambda n=n, s=s: forward_and_back(n, s))}
            assert not left


class Square(tt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, x * 2)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return ctx.saved_tensors[1] * g


def modules() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    x, one = tt.randn(4, 8, requires_grad=True), tt.randn(1, 4, 8, requires_grad=True)
    images = tt.randn(2, 4, 8, 8, requires_grad=True)
    spectral = nn.utils.parametrizations.spectral_norm
    return {
        "Square": (Square.apply, (x,)),
        "LSTM": (nn.LSTM(8, 8, 2), (one,)),
        "GRU": (nn.GRU(8, 8, bidirectional=True), (one,)),
        "RNN": (nn.RNN(8, 8), (one,)),
        "LSTMCell": (nn.LSTMCell(8, 8), (x,)),
        "attention": (nn.MultiheadAttention(8, 2), (x, x, x)),
        "encoder": (nn.TransformerEncoderLayer(8, 2, 16), (one,)),
        "decoder": (nn.TransformerDecoderLayer(8, 2, 16), (one, one)),
        "batch norm": (nn.BatchNorm2d(4), (images,)),
        "convolution": (nn.Conv2d(4, 4, 3), (images,)),
        "spectral norm": (spectral(nn.Linear(8, 8)), (x,)),
        "embedding": (nn.Embedding(8, 8), (tt.tensor([1, 2]),)),
    }


@pytest.mark.parametrize("name", modules())
def test_modules(name: str) -> None:
    module, inputs = modules()[name]

    def work() -> None:
        made = module(*inputs)
        (made[0] if isinstance(made, tuple) else made).sum().backward()

    assert garbage(work) == 0


@pytest.mark.parametrize(
    "rule", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS", "Adafactor", "Muon"]
)
def test_optimizers(rule: str) -> None:
    x = tt.randn(4, 4, requires_grad=True)
    optimizer = getattr(tt.optim, rule)([x], lr=0.01)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    assert garbage(lambda: optimizer.step(closure)) == 0


def hooks() -> None:
    x = tt.randn(3, requires_grad=True)
    a, b = x * 1, x * 2
    a.register_hook(lambda g: g * 2)
    b.retain_grad()
    handle = tt.autograd.graph.register_multi_grad_hook((a, b), lambda grads: None)
    (a + b).sum().backward()
    handle.remove()


def views() -> None:
    x = tt.randn(4, requires_grad=True)
    h = x * 1
    h[1:3].mul_(2)
    h[0] = 1
    first, second = h.chunk(2)
    (first * second).sum().backward()


def second_derivatives() -> None:
    x = tt.randn(4, requires_grad=True)
    (g,) = tt.autograd.grad((x**3).sum(), x, create_graph=True)
    g.sum().backward()


def checkpoints() -> None:
    x = tt.randn(4, requires_grad=True)
    for reentrant in (True, False):
        made = tt.utils.checkpoint.checkpoint(tt.sin, x, use_reentrant=reentrant)
        made.sum().backward()


def compiled() -> None:
    step(tt.randn(4, requires_grad=True)).backward()


step = tt.compile(lambda x: (x * 2 + 1).relu().sum())


@pytest.mark.parametrize("work", [hooks, views, second_derivatives, checkpoints, compiled])
def test_programs(work: Callable[[], None]) -> None:
    assert garbage(work) == 0

"""What chapters 07 and 08 record as PyTorch's answers is PyTorch's, and their answers run in it."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import pytest

from course.exercises.ch07.batchnorm import (
    NORM_EVAL,
    NORM_FLAT_X,
    NORM_FLAT_Y,
    NORM_MEAN,
    NORM_VAR,
    NORM_X,
    NORM_Y,
    norm,
)
from course.exercises.ch07.linear import linear
from course.exercises.ch07.load import load
from course.exercises.ch07.parameters import walk
from course.exercises.ch07.watch import watch
from course.exercises.ch08.adam import ADAM_RECORDED, adam
from course.exercises.ch08.adamw import ADAMW_RECORDED, adamw
from course.exercises.ch08.clip import clip
from course.exercises.ch08.common import _two_groups, descent
from course.exercises.ch08.cross_entropy import ENTROPY, entropy
from course.exercises.ch08.schedule import RATES, schedule
from course.exercises.ch08.sgd import SGD_RECORDED, sgd

real: Any = pytest.importorskip("torch")


def in_pytorch(exercise: Any) -> Any:
    """The reference of an exercise, run as a program of PyTorch's."""
    space = {"torch": real, "nn": real.nn, "math": math}
    exec(textwrap.dedent(exercise.answer.source), space)
    return space[exercise.function]


def close(got: Any, wanted: Any, tolerance: float = 1e-5) -> bool:
    if isinstance(wanted, list):
        return len(got) == len(wanted) and all(close(g, w, tolerance) for g, w in zip(got, wanted))
    return math.isclose(got, wanted, rel_tol=tolerance, abs_tol=tolerance)


def test_batch_norm() -> None:
    for make in (real.nn.BatchNorm1d, in_pytorch(norm)):
        layer = make(2)
        x = real.tensor(NORM_X)
        assert close(layer(x).tolist(), NORM_Y)
        assert close(layer.running_mean.tolist(), NORM_MEAN)
        assert close(layer.running_var.tolist(), NORM_VAR)
        layer.eval()
        assert close(layer(x).tolist(), NORM_EVAL)
        assert close(make(1)(real.tensor(NORM_FLAT_X)).tolist(), NORM_FLAT_Y, 1e-4)


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch's about nested tensors
def test_names_and_states() -> None:
    """The answers about names and states give PyTorch's for its own modules."""
    net = real.nn.Transformer(8, 2, 1, 1, 8)
    found = in_pytorch(walk)(net)
    assert [n for n, _ in found] == [n for n, _ in net.named_parameters()]
    other = real.nn.Transformer(8, 2, 1, 1, 8)
    assert in_pytorch(load)(other, net.state_dict()) == ([], [])
    assert all(real.equal(p, q) for p, q in zip(net.parameters(), other.parameters()))
    layer = in_pytorch(linear)(3, 5)
    assert layer.load_state_dict(real.nn.Linear(3, 5).state_dict()).missing_keys == []
    assert list(in_pytorch(watch)(layer, real.ones(2, 3))) == [""]


@pytest.mark.parametrize("number", range(len(ENTROPY)))
def test_cross_entropy(number: int) -> None:
    scores, labels, wanted = ENTROPY[number]
    for f in (real.nn.functional.cross_entropy, in_pytorch(entropy)):
        assert close(f(real.tensor(scores), real.tensor(labels)).item(), wanted, 1e-4)


def walked(kind: Any, *args: Any, **options: Any) -> Any:
    kept = {k: options.pop(k) for k in ("rates", "keep", "idle") if k in options}
    return descent(lambda ps: kind(ps, **options), *args, lib=real, **kept)


def test_sgd() -> None:
    for kind in (real.optim.SGD, in_pytorch(sgd)):
        with_momentum = {"lr": 0.1, "momentum": 0.9}
        told = SGD_RECORDED
        assert close(walked(kind, 2, lr=0.1), told["plain"])
        assert close(walked(kind, 2, **with_momentum), told["momentum"])
        assert close(walked(kind, 2, **with_momentum, nesterov=True), told["nesterov"])
        assert close(walked(kind, 2, **with_momentum, weight_decay=0.5), told["decay"])
        assert close(walked(kind, 3, **with_momentum, keep=True), told["kept"])
        assert close(walked(kind, 1, lr=0.1, weight_decay=0.5, idle=True), told["idle"])
        groups = _two_groups(kind, "lr", 0.1, 0.001)
        assert close(descent(groups, 2, lib=real), told["groups"])
        made = descent(
            lambda ps, kind=kind: kind(ps[:1], momentum=0.9, lr=0.01),
            lib=real,
            rates=(0.1, 0.01, 0.01),
        )
        assert close(made, told["rates"])


def test_adam() -> None:
    for kind in (real.optim.Adam, in_pytorch(adam)):
        told = ADAM_RECORDED
        assert close(walked(kind, 1, lr=0.1), told["one"])
        assert close(walked(kind, 5, lr=0.1), told["five"])
        assert close(walked(kind, 3, lr=0.1, eps=0.5), told["eps"])
        assert close(walked(kind, 1, lr=0.1, idle=True), told["idle"])


def test_adamw() -> None:
    for kind, name in ((real.optim.AdamW, "weight_decay"), (in_pytorch(adamw), "decay")):
        told = ADAMW_RECORDED
        decay: Any = {"lr": 0.1, name: 0.5}
        assert close(walked(kind, 3, **decay), told["three"])
        assert close(walked(kind, 1, **decay, idle=True), told["idle"])
        groups = _two_groups(kind, name, 0.5, 0.0, lr=0.1)
        assert close(descent(groups, lib=real), told["groups"])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_schedule() -> None:
    optimizer = real.optim.SGD([real.zeros(1, requires_grad=True)], lr=1.0)
    kinds = real.optim.lr_scheduler
    parts = [
        kinds.LinearLR(optimizer, 1 / 4, total_iters=3),
        kinds.CosineAnnealingLR(optimizer, 16, eta_min=0.1),
    ]
    scheduler, rates = kinds.SequentialLR(optimizer, parts, [4]), []
    for _ in range(21):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    assert close(rates, RATES)
    assert close([schedule.answer.value(n, 4, 20, 0.1) for n in range(21)], RATES)


def test_clipping() -> None:
    for f in (real.nn.utils.clip_grad_norm_, in_pytorch(clip)):
        ps = [real.zeros(2), real.zeros(1)]
        ps[0].grad, ps[1].grad = real.tensor([3.0, 0.0]), real.tensor([4.0])
        assert close(float(f(ps, 1.0)), 5.0)
        assert close([p.grad.tolist() for p in ps], [[0.6, 0.0], [0.8]])

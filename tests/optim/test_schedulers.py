"""Every schedule beside PyTorch: rates and momenta over 30 steps, resumed half-way, errors."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

from tests.oracle import attempt, both, differences, error_difference, torch, tt

SCHEDULES: dict[str, Any] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9 if e % 3 else 1.1),
    "StepLR": lambda s, o: s.StepLR(o, 4, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 9, 9, 20], 0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.5, 8),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.25, 0.5, 9),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 12, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 8, 1e-3),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4, 2, 1e-3),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 3, step_size_down=5, mode="triangular2"),
    "CyclicLR by iterations": lambda s, o: s.CyclicLR(
        o, [0.01, 0.02], [0.1, 0.3], 6, mode="exp_range", gamma=0.97),
    "CyclicLR by a function": lambda s, o: s.CyclicLR(
        o, 0.01, 0.1, 4, scale_fn=lambda x: 1 / x, cycle_momentum=False),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=40),
    "OneCycleLR in three phases": lambda s, o: s.OneCycleLR(
        o, [0.1, 0.2], epochs=5, steps_per_epoch=8, anneal_strategy="linear", three_phase=True),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, factor=0.5, patience=2),
    "ReduceLROnPlateau up": lambda s, o: s.ReduceLROnPlateau(
        o, "max", patience=1, cooldown=2, threshold=0.1, threshold_mode="abs",
        min_lr=[1e-3, 1e-2]),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 5), s.CosineAnnealingLR(o, 10), s.StepLR(o, 3)], [6, 16]),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 6), s.ExponentialLR(o, 0.9)]),
    "SWALR": lambda s, o: s.SWALR(o, 0.03, 7),
    "SWALR along a line": lambda s, o: s.SWALR(o, [0.03, 0.01], 7, "linear"),
}  # fmt: skip


def fresh(m: Any, label: str, kind: str = "SGD") -> tuple[Any, Any]:
    """An optimizer of two groups, and the schedule for it."""
    a, b = (m.nn.Parameter(m.ones(2)) for _ in range(2))
    options = {"momentum": 0.9} if kind == "SGD" else {}
    optimizer = getattr(m.optim, kind)([{"params": [a]}, {"params": [b], "lr": 0.05}], lr=0.1,
                                       **options)  # fmt: skip
    home = m.optim.swa_utils if label.startswith("SWALR") else m.optim.lr_scheduler
    return optimizer, SCHEDULES[label](home, optimizer)


def run(m: Any, label: str, kind: str = "SGD", resumed: bool = False) -> list[Any]:
    """The rates and momenta before each step, and the last rates after it."""
    optimizer, schedule = fresh(m, label, kind)
    seen: list[Any] = []
    for step in range(30):
        if resumed and step == 15:
            states = optimizer.state_dict(), schedule.state_dict()
            optimizer, schedule = fresh(m, label, kind)
            optimizer.load_state_dict(states[0])
            schedule.load_state_dict(states[1])
        names = ("lr", "momentum") if kind == "SGD" else ("lr", "betas")
        seen += [g[n] for g in optimizer.param_groups for n in names]
        optimizer.step()
        schedule.step(*[1 + abs(math.sin(step / 5))] * ("Plateau" in label))
        seen += [float(v) for v in schedule.get_last_lr()]
    return seen


@pytest.mark.parametrize("label", SCHEDULES)
@pytest.mark.parametrize("resumed", [False, True])
def test_rates(label: str, resumed: bool) -> None:
    both(lambda m: run(m, label, resumed=resumed))


@pytest.mark.parametrize("label", SCHEDULES)
def test_states_have_the_same_order(label: str) -> None:
    """Programs print them."""
    both(lambda m: [k for k in fresh(m, label)[1].state_dict() if not k.startswith("_")])


@pytest.mark.parametrize("label", ["CyclicLR", "OneCycleLR"])
def test_betas(label: str) -> None:
    """Adam's first beta moves in the place of a momentum."""
    both(lambda m: run(m, label, "Adam"))


@pytest.mark.parametrize("label", ["StepLR", "CosineAnnealingLR", "LinearLR"])
def test_rates_in_tensors(label: str) -> None:
    """A rate that is a tensor stays the same tensor."""
    for m in (torch, tt):
        rate = m.tensor(0.1)
        optimizer = m.optim.SGD([m.nn.Parameter(m.ones(1))], lr=rate)
        schedule = SCHEDULES[label](m.optim.lr_scheduler, optimizer)
        for _ in range(6):
            optimizer.step()
            schedule.step()
        assert optimizer.param_groups[0]["lr"] is rate
        assert schedule.get_last_lr()[0].item() == rate.item()


@pytest.mark.parametrize("label", ["StepLR", "MultiStepLR", "ExponentialLR", "PolynomialLR"])
@pytest.mark.filterwarnings("ignore:The epoch parameter")
def test_closed_forms(label: str) -> None:
    """step(epoch) goes there directly."""

    def f(m: Any) -> Any:
        optimizer, schedule = fresh(m, label)
        optimizer.step()
        schedule.step(7)
        return [g["lr"] for g in optimizer.param_groups]

    both(f)


def test_warns_of_a_step_too_early() -> None:
    for m in (torch, tt):
        optimizer = m.optim.SGD([m.nn.Parameter(m.ones(1))], lr=0.1)
        schedule = m.optim.lr_scheduler.StepLR(optimizer, 3)
        with pytest.warns(UserWarning, match=r"before `optimizer\.step\(\)`"):
            schedule.step()


def test_own_schedule() -> None:
    """A subclass says the rates, and nothing else."""

    def f(m: Any) -> Any:
        class Halving(m.optim.lr_scheduler.LRScheduler):
            def get_lr(self) -> list[float]:
                return [base / 2**self.last_epoch for base in self.base_lrs]

        optimizer, _ = fresh(m, "StepLR")
        schedule = Halving(optimizer)
        optimizer.step()
        schedule.step()
        return schedule.get_last_lr(), schedule.last_epoch, schedule.base_lrs

    both(f)


MISUSE: dict[str, Any] = {
    "no optimizer": lambda s, o: s.StepLR(3, 1),
    "functions": lambda s, o: s.LambdaLR(o, [math.sin, math.cos]),
    "no function": lambda s, o: s.MultiplicativeLR(o, 3),
    "factor": lambda s, o: s.ConstantLR(o, 1.5),
    "start": lambda s, o: s.LinearLR(o, 0.0),
    "end": lambda s, o: s.LinearLR(o, 0.5, 1.5),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    "multiple": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 0),
    "plateau": lambda s, o: s.ReduceLROnPlateau(o, factor=1.0),
    "mode": lambda s, o: s.ReduceLROnPlateau(o, "least"),
    "threshold": lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="part"),
    "min_lrs": lambda s, o: s.ReduceLROnPlateau(o, min_lr=[1, 2, 3]),
    "cycle": lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="round"),
    "rates": lambda s, o: s.CyclicLR(o, [0.1, 0.2], 0.2),
    "steps": lambda s, o: s.OneCycleLR(o, 0.1),
    "no steps": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=0),
    "start of a cycle": lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=2.0),
    "strategy": lambda s, o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="round"),
    "milestones": lambda s, o: s.SequentialLR(o, [s.StepLR(o, 3)], [1]),
    "nothing": lambda s, o: s.ChainedScheduler([]),
    "plateau in a sequence": lambda s, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []),
    "resuming": lambda s, o: s.StepLR(o, 3, last_epoch=4),
}


@pytest.mark.parametrize("label", MISUSE)
def test_misuse(label: str) -> None:
    def f(m: Any) -> Any:
        optimizer = m.optim.SGD([m.nn.Parameter(m.ones(1))], lr=0.1)
        return MISUSE[label](m.optim.lr_scheduler, optimizer)

    want, got = attempt(f, torch)[1], attempt(f, tt)[1]
    assert want is not None
    bad = error_difference(want, got)
    assert not bad, bad


# -- means of weights -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["plain", "ema", "ema of lists", "buffers"])
def test_averaged_model(how: str) -> None:
    def f(m: Any) -> Any:
        utils = m.optim.swa_utils
        options = {
            "plain": {}, "ema": {"avg_fn": utils.get_ema_avg_fn(0.9)},
            "ema of lists": {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.9)},
            "buffers": {"use_buffers": True},
        }[how]  # fmt: skip
        model = m.nn.BatchNorm1d(2)
        mean = utils.AveragedModel(model, **options)
        for i in range(4):
            with m.no_grad():
                model.weight.fill_(float(i))
                model.running_mean.fill_(2.0 * i)
            mean.update_parameters(model)
        return list(mean.state_dict().items())

    both(f)


def test_update_bn() -> None:
    def f(m: Any) -> Any:
        model = m.nn.Sequential(m.nn.BatchNorm1d(2)).eval()
        batches = [m.arange(8.0).reshape(4, 2) * k for k in (1, 3)]
        m.optim.swa_utils.update_bn([(b, 0) for b in batches], model)
        return list(model.state_dict().values()), model.training, model[0].momentum

    both(f)


def test_large_parameters_follow_the_same_rule() -> None:
    """Schedules change what compiled rules are given."""
    runs = []
    for m in (torch, tt):
        p = m.nn.Parameter(m.sin(m.arange(5000.0)))
        optimizer = m.optim.RMSprop([p], lr=0.1)
        schedule = m.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        for _ in range(4):
            p.grad = p.detach().clone()
            optimizer.step()
            schedule.step()
        runs.append(p)
    assert not differences(*runs)


def test_a_step_that_was_overridden() -> None:
    def said(T: Any) -> list[str]:
        p = T.ones(2, requires_grad=True)
        opt = T.optim.SGD([p], lr=0.1)
        schedule, step = T.optim.lr_scheduler.StepLR(opt, 2), opt.step
        opt.step = lambda: step()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            opt.step()
            schedule.step()
            schedule.step(3)
        return [str(w.message) for w in seen]

    assert said(tt) == said(torch)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make",
    [
        lambda s, o: s.SequentialLR(o, [s.LinearLR(o), s.CosineAnnealingLR(o, 4)], [3]),
        lambda s, o: s.ChainedScheduler([s.ConstantLR(o), s.ExponentialLR(o, 0.9)]),
        lambda s, o: s.CyclicLR(o, 0.01, 0.1),
    ],
)
def test_states_are_written_in_the_same_order(make: Any) -> None:
    def keys(root: Any) -> list[str]:
        rule = root.optim.SGD([root.ones(1, requires_grad=True)], 0.1, momentum=0.9)
        return list(make(root.optim.lr_scheduler, rule).state_dict())

    assert keys(tt) == keys(torch)

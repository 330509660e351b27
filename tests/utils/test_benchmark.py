"""`utils.benchmark` and the switches of `backends`, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import toytorch as tt
from tests.oracle import torch
from toytorch.utils import benchmark


@pytest.mark.parametrize(
    "raw",
    [
        [2e-3],
        [1.0, 2.0],
        [3e-6, 1e-6, 2e-6, 10e-6, 4e-6],
        [1.0, 1.01, 1.02, 1.03, 1.04],
        [1.0, 1.1, 1.2, 1.3, 1.4],
    ],
)
@pytest.mark.parametrize(
    "about",
    [
        ("pass", None, None, None, 1),
        ("pass", "L", None, None, 2),
        ("x = 1", "L", "S", "D", 1),
        ("x = 1\ny = 2", None, "S", None, 1),
        ("", None, None, "D", 1),
    ],
)
def test_measurements_are_shown_as_pytorchs(raw: list[float], about: Any) -> None:
    from torch.utils.benchmark import Measurement, TaskSpec

    setup, label, sub_label, description, threads = about
    ours = benchmark.Measurement(20, raw, "x + 1", *about)
    theirs = Measurement(
        20, raw, TaskSpec("x + 1", setup, "", label, sub_label, description, None, threads)
    )
    assert repr(ours).splitlines()[1:] == repr(theirs).splitlines()[1:]


def test_timing() -> None:
    once = benchmark.Timer("sum(range(9))").timeit(20)
    assert once.number_per_run == 20 and len(once.raw_times) == 1
    seen: list[Any] = []
    many = benchmark.Timer("sum(range(9))").blocked_autorange(
        lambda number, time: seen.append((number, time)), min_run_time=0.005
    )
    assert seen == [(many.number_per_run, t) for t in many.raw_times]
    assert sum(many.raw_times) >= 0.005


def test_texts_lose_the_indentation_that_their_lines_share() -> None:
    from torch.utils.benchmark import Timer

    text = """
        y = 1
        for _ in range(3):
            y += x
    """
    ours, theirs = (
        kind(text, setup="\n    x = 2\n    z = 1\n", label="L").timeit(2)
        for kind in (benchmark.Timer, Timer)
    )
    assert ours.setup == theirs.setup and ours.stmt == theirs.stmt
    ours.label = None
    spec = type(theirs.task_spec)(theirs.stmt, theirs.setup)
    assert "\n".join(ours.about) == spec.summarize()


def test_statistics() -> None:
    from torch.utils.benchmark import Measurement, TaskSpec

    raw = [3.0, 1.0, 2.0, 10.0, 4.0]
    ours = benchmark.Measurement(2, raw, "x", "pass", None, None, None, 1)
    theirs = Measurement(2, raw, TaskSpec("x", "pass"))
    assert (ours.median, ours.mean, ours.iqr) == pytest.approx(
        (theirs.median, theirs.mean, theirs.iqr)
    )


def test_refusals_and_threads() -> None:
    with pytest.raises(ValueError, match="only a `str`"):
        benchmark.Timer(lambda: 1)  # type: ignore[arg-type]
    before = tt.get_num_threads()
    seen: list[int] = []
    benchmark.Timer(
        "seen.append(get())", globals={"seen": seen, "get": tt.get_num_threads}, num_threads=2
    ).timeit(2)
    assert set(seen) == {2} and tt.get_num_threads() == before


def test_switches() -> None:
    import toytorch.backends.cudnn as cudnn

    for name in ("enabled", "benchmark", "deterministic"):
        assert getattr(cudnn, name) == getattr(torch.backends.cudnn, name)
    with cudnn.flags(benchmark=True):
        assert tt.backends.cudnn.benchmark and not tt.backends.cudnn.enabled
    assert not cudnn.benchmark and cudnn.enabled
    assert not any(getattr(tt.backends, n).is_available() for n in ("mps", "openmp", "mkl"))
    assert tt.backends.cuda.matmul.allow_tf32 is torch.backends.cuda.matmul.allow_tf32

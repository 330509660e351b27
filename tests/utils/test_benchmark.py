"""`utils.benchmark` and the switches of `backends`, beside PyTorch's."""

from __future__ import annotations

import itertools
import pickle
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    task = "x + 1", setup, "", label, sub_label, description, None, threads
    ours = benchmark.Measurement(20, raw, benchmark.TaskSpec(*task))
    theirs = Measurement(20, raw, TaskSpec(*task))
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
    one, other = (type(m.task_spec)(m.stmt, m.setup).summarize() for m in (ours, theirs))
    assert one == other


def test_statistics() -> None:
    from torch.utils.benchmark import Measurement, TaskSpec

    raw = [3.0, 1.0, 2.0, 10.0, 4.0]
    ours = benchmark.Measurement(2, raw, benchmark.TaskSpec("x", "pass"))
    theirs = Measurement(2, raw, TaskSpec("x", "pass"))
    assert (ours.median, ours.mean, ours.iqr) == pytest.approx(
        (theirs.median, theirs.mean, theirs.iqr)
    )


def table(m: Any, seed: int) -> str:
    """A table of random measurements: some cells are empty, some measured twice."""
    drawn = random.Random(seed)
    envs = drawn.choice([[None], ["old", "new version"]])
    found = []
    for label in ("sums", "products")[: drawn.randint(1, 2)]:
        for threads, env, rows, column in itertools.product(
            (1, 2), envs, ("8x8", "", "large ones"), ("plain", "compiled", "x")
        ):
            if drawn.random() < 0.2:
                continue
            task = m.TaskSpec("x + 1", "pass", "", label, rows, column, env, threads)
            for _ in range(drawn.randint(1, 2)):
                middle, spread = 10 ** drawn.uniform(-7, -2), 10 ** drawn.uniform(-4, -0.3)
                times = [middle * (1 + drawn.uniform(-spread, spread)) for _ in range(9)]
                found.append(m.Measurement(drawn.choice([1, 10]), times, task))
    drawn.shuffle(found)
    compare = m.Compare(found)
    for setting in (
        compare.trim_significant_figures, compare.colorize, compare.highlight_warnings,
        lambda: compare.colorize(rowwise=True),
    ):  # fmt: skip
        if drawn.random() < 0.5:
            setting()
    return str(compare)


@pytest.mark.parametrize("seed", range(60))
def test_tables_are_pytorchs(seed: int) -> None:
    from torch.utils import benchmark as theirs

    assert table(benchmark, seed) == table(theirs, seed)


@given(st.lists(st.floats(1e-9, 10), min_size=1, max_size=40), st.integers(1, 1000))
def test_figures_are_pytorchs(times: list[float], runs: int) -> None:
    from torch.utils import benchmark as theirs

    one, other = (m.Measurement(runs, times, m.TaskSpec("", "")) for m in (benchmark, theirs))
    assert one.significant_figures == other.significant_figures
    assert one.has_warnings == other.has_warnings
    figures = one.significant_figures
    shown = benchmark.trim_sigfig(one.median, figures)
    assert shown == pytest.approx(theirs.trim_sigfig(one.median, figures), rel=1e-6)


def fuzzed(m: Any, seed: int) -> list[Any]:
    """What a fuzzer makes: sizes, strides, values and parameters."""
    b = m.utils.benchmark
    sizes = [b.FuzzedParameter(f"k{i}", 1, 40, "loguniform", strict=i == 0) for i in range(3)]
    sizes += [b.FuzzedParameter("dims", 1, 3, "uniform"), b.FuzzedParameter("s", 1, 2, "uniform")]
    tensors = [
        b.FuzzedTensor("x", ("k0", "k1", "k2"), ("s", 1), 0.3, 6, 9000, 40_000, "dims"),
        b.FuzzedTensor("n", ("k1", 4), dtype=m.int64),
    ]
    fuzzer = b.Fuzzer([sizes], tensors, [lambda p: p["k1"] != 3], seed)
    made = []
    for each, about, params in fuzzer.take(4):
        about = {k: {**a, "order": list(a["order"])} for k, a in about.items()}
        made += [{k: (t.tolist(), t.stride()) for k, t in each.items()}, about, params]
    return [*made, fuzzer.rejection_rate]


@pytest.mark.parametrize("seed", range(8))
def test_fuzzed_tensors_are_pytorchs(seed: int) -> None:
    assert fuzzed(tt, seed) == fuzzed(torch, seed)


def test_fuzzed_choices() -> None:
    """PyTorch 2.13 refuses probabilities that add up to 1, by a slip; here they are taken."""
    b = benchmark
    size = b.FuzzedParameter("n", distribution={1: 0.5, b.ParameterAlias("k"): 0.5})
    fuzzer = b.Fuzzer([b.FuzzedParameter("k", 7, 9, "uniform"), size], [], seed=0)
    assert {p["n"] in (1, p["k"]) for _, _, p in fuzzer.take(20)} == {True}
    with pytest.raises(AssertionError, match="not normalized"):
        b.FuzzedParameter("n", distribution={1: 0.5})
    circle = [
        b.FuzzedParameter(x, distribution={b.ParameterAlias(y): 1.0}) for x, y in ("ab", "ba")
    ]
    with pytest.raises(ValueError, match="cycle detected"):
        list(b.Fuzzer(circle, []).take(1))


def test_adaptive_measurements_are_close_or_take_the_time() -> None:
    found = benchmark.Timer("sum(range(9))").adaptive_autorange(max_run_time=0.3)
    assert found.meets_confidence(0.1) or sum(found.raw_times) > 0.3
    again = pickle.loads(pickle.dumps(found))
    assert again.raw_times == found.raw_times and again.stmt == "sum(range(9))"


def test_refusals_and_threads() -> None:
    with pytest.raises(ValueError, match="only a `str`"):
        benchmark.Timer(lambda: 1)  # type: ignore[arg-type]
    timer = benchmark.Timer("1")
    with pytest.raises(OSError, match="not supported on this platform"):
        timer.collect_callgrind()
    for choose in (timer.repeat, timer.autorange):
        with pytest.raises(NotImplementedError, match="blocked_autorange"):
            choose()
    with pytest.raises(NotImplementedError, match="no C"):
        benchmark.Timer("1", language="c++")
    with pytest.raises(ValueError, match="Invalid language"):
        benchmark.Timer("1", language="cobol")
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

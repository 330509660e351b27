"""What every suite shares: one thread, fixed random programs, global settings put back."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.gpu import GPU
from toytorch.backends import base
from toytorch.facts import state, warned

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
# PyTorch 2.13's convolutions (oneDNN) write outside their memory on processors with AVX2 and no
# AVX-512, where glibc ends the process. Its kernels for SSE do not.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "SSE41")

# Derandomized: the same programs in every run, here and in CI. `--hypothesis-profile=explore` draws
# new ones.
_COMMON = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
    "report_multiple_bugs": False,
}
settings.register_profile("fixed", derandomize=True, database=None, **_COMMON)
settings.register_profile("explore", max_examples=2000, **_COMMON)
settings.load_profile("fixed")
# Warnings that are given once a process would fail whatever test comes first.
warned.given.update((warned.SCALAR, warned.CYCLE, warned.MESHGRID))


HERE = Path(__file__).parent
BESIDE_PYTORCH = {
    HERE / name for name in ("amp", "testing", "ops", "core", "autograd", "nn", "sparse")
}


# The files that take longest, the longest first. Several workers take a file at a time, in this order:
# one that began last would have its worker go on when the others have nothing left to do.
LONGEST = (
    "kernels/test_guarded.py",
    "course/test_notebooks.py",
    "course/test_exercises.py",
    "course/test_marking_class.py",
    "course/test_marking_attacks.py",
    "course/test_marking_all.py",
    "course/test_marking.py",
    "course/test_lecturer_day.py",
    "course/test_walk.py",
    "course/test_slides.py",
    "cuda/test_formulas_on_cupy.py",
    "ops/test_gradcheck.py",
)


def longest_first(items: list[pytest.Item]) -> None:
    """Put the files that take longest before all others, which keep their order."""
    places = {HERE / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PyTorch warns of its own deprecations; the suites that run it beside toytorch let it.

    What toytorch's own lines cause is an error there, too. The framework's doctests lie in folders
    of the same names; in them, every warning is an error.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        longest_first(items)
    for item in items:
        if item.path.parent in BESIDE_PYTORCH:
            known = "ignore:enable_nested_tensor is True"  # see pyproject.toml
            mark = pytest.mark.filterwarnings("ignore", "error:::toytorch", known)
            item.add_marker(mark, append=False)


WALKED_OFTEN = 100_000  # objects that are left alone from then on


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """The collector leaves alone what collecting makes, here and ever after.

    These are two million objects that stay until the end. Walking them once takes 0.7 s, and some
    hundred tests, captured graphs and exercises ask for a collection.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The same of what a file's tests have made and what lives on: imported packages, compiled code.

    Tests ask for collections and for who refers to a tensor. Both walk all objects.
    """
    other = nextitem is not None and nextitem.path != item.path
    if other and len(gc.get_objects()) > WALKED_OFTEN:
        gc.collect()
        gc.freeze()


def pytest_report_header() -> str:
    return f"implementation under test: {os.environ.get('TOYTORCH_UNDER_TEST', 'toytorch')}"


@pytest.fixture
def no_collector() -> Iterator[None]:
    """The garbage collector off, so that only reference counts free memory."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


@pytest.fixture(autouse=True)
def settings_are_put_back() -> Iterator[None]:
    """What a test leaves switched on would change what the next ones measure."""

    def settings() -> tuple[object, ...]:
        now = state.local
        return now.modes, now.grad, now.inference, now.saved_hooks, now.default_device, now.place

    before, watched = settings(), state.fast_path is state.SLOW
    yield
    assert settings() == before
    if state.fast_path is state.SLOW and not watched:
        gc.collect()  # tensors whose classes are asked about ops may lie in circles
        assert state.fast_path is not state.SLOW


def disarm(overrides: Any) -> None:
    """Gives the functions their own code again, whoever wants to be asked: between tests."""
    with overrides._lock:
        for function, plain in overrides._plain:
            function.__defaults__, function.__kwdefaults__ = (
                plain.__defaults__,
                plain.__kwdefaults__,
            )
            function.__code__ = plain.__code__
            if "first_call" in function.__globals__:
                made = function.__globals__["first_call"].__self__
                made.function = function if made.function is plain else made.function
        overrides._plain.clear()
        overrides._armed = overrides.Asking.everybody = False


@pytest.fixture(autouse=True)
def nobody_is_asked() -> Iterator[None]:
    """A test that defines a subclass of Tensor lets all functions ask, and only for itself."""
    yield
    overrides = sys.modules.get("toytorch.overrides")
    if overrides is not None:
        disarm(overrides)


@pytest.fixture(autouse=True, scope="module")
def devices_are_put_back() -> Iterator[None]:
    """A file that leaves a simulated device behind gives `cuda` to all that run after it."""
    before = base.of_kind("cuda")
    yield
    assert base.of_kind("cuda") is before
    assert before.is_available() == GPU


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A page of 1280 by 720 in Chromium, for each file that looks at pages."""
    chromium = importlib.import_module("tests.course.chromium")
    devtools = pytest.importorskip("tests.course.walk.devtools", reason="no JupyterLab here")
    chromium.find()
    with devtools.Browser(1280, 720) as opened:
        yield opened

"""What is computed does not depend on the path: the general one gives what the fast one gives."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toytorch as torch
from toytorch.facts import state

HERE = Path(__file__).parents[1]
# Files that ask where results lie, which memory they share and what compiled functions keep.
FILES = (
    "outside/test_conjugate_views.py",
    "outside/test_saved_tensors.py",
    "outside/test_views_of_leaves.py",
    "outside/test_words_of_errors.py",
    "jit/test_compile.py",
    "jit/test_guards.py",
)
EVERYBODY = """
import sys, pytest
from toytorch.facts import state
state.watch(1)  # counted, though nobody is there
sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("files", [FILES[:4], FILES[4:]], ids=["eager", "compiled"])
def test_suites_hold_on_the_general_path(files: tuple[str, ...]) -> None:
    if files == FILES[:4]:
        pytest.importorskip("torch", reason="these suites compare with PyTorch")
    told = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    ran = subprocess.run(
        [sys.executable, "-c", EVERYBODY, *told, *(str(HERE / f) for f in files)],
        capture_output=True,
        text=True,
        cwd=HERE.parent,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]


@pytest.fixture
def another_thread_without_gradients() -> Iterator[None]:
    """Two threads that have switched gradients off send every call along the general path."""
    off, done = threading.Event(), threading.Event()

    def wait() -> None:
        with torch.no_grad():
            off.set()
            done.wait()

    threads = [threading.Thread(target=wait) for _ in range(2)]
    for t in threads:
        t.start()
    off.wait()
    while state.fast_path is not state.SLOW:
        pass
    yield
    done.set()
    for t in threads:
        t.join()


def test_functions_are_compiled_beside_threads_without_gradients(
    another_thread_without_gradients: None,
) -> None:
    f: Any = torch.compile(lambda x: x.exp() + 1)
    f(torch.ones(3))
    assert len(f.graphs) == 1
    assert torch.ones(2, dtype=torch.complex64).conj()._base is not None


class Held(torch.Tensor):
    """A tensor whose class is asked about ops."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C._DisableTorchDispatch():
            return func(*args, **(kwargs or {}))


def test_calls_are_short_again_when_nobody_wants_to_be_asked() -> None:
    held = torch.Tensor._make_subclass(Held, torch.ones(3))
    assert state.fast_path is state.SLOW
    f: Any = torch.compile(lambda x: x.exp() + 1)
    f(torch.ones(3))
    assert not f.graphs  # it might be given one
    del held
    assert state.fast_path is None
    f(torch.ones(3))
    assert len(f.graphs) == 1

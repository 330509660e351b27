"""What is said where a GPU cannot be used: the wheel, its libraries, the driver or the device is
missing. Nothing is imported before it is asked for."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import toytorch as torch
from tests.cuda import cupy_stand_in
from tests.cuda.conftest import GPU
from toytorch.backends import base
from toytorch.backends.cupy import CupyBackend
from toytorch.backends.cupy_kernels import guard
from toytorch.facts.device import device
from toytorch.facts.trace import AcceleratorError, OutOfMemoryError

ROOT = Path(__file__).parents[2]


def over(count: Any) -> CupyBackend:
    """The backend over a CuPy whose driver answers so."""
    return CupyBackend(SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(
        getDeviceCount=count))))  # fmt: skip


def failing(status: int) -> Any:
    def count() -> int:
        raise cupy_stand_in.CUDARuntimeError(status)

    return count


class Refusing:
    """Finds CuPy, and cannot load it."""

    def __init__(self, error: ImportError) -> None:
        self.error = error

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "cupy":
            raise self.error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModuleNotFoundError("No module named 'cupy'", name="cupy"), "cupy is not installed"),
        (ModuleNotFoundError("No module named 'cuda'", name="cuda"), "lacks cuda: pip install"),
        (ImportError("libnvrtc.so.13: cannot open shared object file"), "libnvrtc.so.13"),
    ],
)
def test_the_wheel_is_missing(
    error: ImportError, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Refusing(error), *sys.meta_path])
    backend = CupyBackend()
    assert words in backend.why_unavailable() and "runs on the CPU" in backend.why_unavailable()
    assert not backend.is_available() and backend.device_count() == 0


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (failing(35), "no NVIDIA driver on your system, or one too old: cudaErrorInsufficient"),
        (failing(100), "no CUDA-capable device is detected"),
        (lambda: 0, "no CUDA-capable device is detected"),
    ],
)
def test_driver_or_device_is_missing(count: Any, words: str) -> None:
    backend = over(count)
    assert words in backend.why_unavailable()
    before = base.of_kind("cuda")
    base.register("cuda", backend)
    try:
        with pytest.raises(AssertionError, match="not compiled with CUDA enabled: "):
            base.of_device(device("cuda"))
        with pytest.raises(AssertionError, match="not compiled with CUDA enabled: "):
            torch.zeros(2, device="cuda")
        with pytest.raises(AssertionError, match="not compiled with CUDA enabled: "):
            torch.zeros(2).cuda()
    finally:
        base.register("cuda", before)


def test_the_extras_that_messages_name_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = extras["optional-dependencies"]
    assert any("cupy-cuda13x" in line for line in found["cuda"])
    assert any("cupy-cuda12x" in line for line in found["cuda12"])


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (cupy_stand_in.OutOfMemoryError(1 << 30, 5), OutOfMemoryError, "CUDA out of memory. Out of"),
        (cupy_stand_in.CUDARuntimeError(2), OutOfMemoryError, "CUDA out of memory."),
        (cupy_stand_in.CUDARuntimeError(700), AcceleratorError,
         "CUDA error: an illegal memory access was encountered"),
        (ValueError("its own"), ValueError, "its own"),
    ],
)  # fmt: skip
def test_cupys_errors_in_pytorchs_words(error: Exception, kind: type, words: str) -> None:
    def kernel() -> None:
        raise error

    backend = CupyBackend(cupy_stand_in.made())
    with pytest.raises(kind, match=words):
        guard(backend, kernel)()


def test_a_singular_matrix_is_an_error(device: Any) -> None:
    """CuPy's decompositions say nothing by themselves; the guard makes them."""
    singular = torch.zeros(3, 3, device="cuda")
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.inv(singular)
    if not GPU:
        assert np.isfinite(device.xp.linalg.inv(singular._array).get()).all()


def test_importing_toytorch_imports_no_cupy() -> None:
    code = (
        "import sys, toytorch as t; t.ones(3).sum(); t.manual_seed(1); assert 'cupy' not in sys.modules;"
        "assert not any(m.startswith('toytorch.loops.one_kernel') for m in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert done.returncode == 0

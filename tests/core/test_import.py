"""What `import toytorch` does, counted in a fresh process; how long it takes is a benchmark."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pickle
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

import toytorch
from toytorch.core import first_call
from toytorch.core.op import registry

COUNTING = """
import json, linecache, os, sys, threading
import numpy
before, opened = set(sys.modules), []
linecache.cache.clear()
tasks = lambda: len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
threads = tasks()
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import toytorch
opened = list(opened)
print(json.dumps({
    "modules": sorted(set(sys.modules) - before),
    "generated": sorted(name for name in linecache.cache if name.startswith("<toytorch ")),
    "threads": tasks() - threads + threading.active_count() - 1,
    "opened": opened,
}))
"""


@cache
def counted() -> Any:
    run = subprocess.run(
        [sys.executable, "-c", COUNTING],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


def test_few_modules_are_loaded() -> None:
    """Of ours, and of Python's own beside those that NumPy has loaded, which differ by release."""
    loaded = counted()["modules"]
    ours = [name for name in loaded if name.startswith("toytorch")]
    assert len(ours) < 260 and len(loaded) - len(ours) < 30, (len(ours), len(loaded))
    for package in ("llvmlite", "ml_dtypes", "cupy", "multiprocessing", "numpy.random"):
        assert package not in loaded
    for package in ("nn", "optim", "jit", "utils", "serialization", "func"):
        assert f"toytorch.{package}" not in loaded


def test_no_source_is_generated() -> None:
    assert counted()["generated"] == []


def test_no_thread_is_started() -> None:
    assert counted()["threads"] == 0


def test_no_file_is_read_but_modules() -> None:
    kinds = (".py", ".pyc", ".so", ".pyd")
    assert [name for name in counted()["opened"] if not name.endswith(kinds)] == []


def test_what_is_imported_later_is_found() -> None:
    assert {*toytorch.LATER, *toytorch.LATER_PACKAGES} <= set(dir(toytorch))
    for name in (*toytorch.LATER, *toytorch.LATER_PACKAGES):
        assert getattr(toytorch, name) is getattr(toytorch, name)


# -- functions that are generated at their first call ----------------------------------------------


@pytest.mark.parametrize("name", sorted(registry))
def test_functions_stay_what_they_are(name: str) -> None:
    """Generating a function changes its code and nothing that others see of it."""
    for made in registry[name].generated:
        function = made.function
        seen = function.__name__, function.__doc__, inspect.signature(function)
        assert made.ready() is function is first_call.generated(function)
        assert (
            function.__name__,
            function.__doc__,
            inspect.signature(function),
        ) == seen
        assert function.__code__ is not first_call.STUB_CODE
        assert made.source() == inspect.getsource(function)


FIRST_CALLS = """
import threading
import toytorch as torch
from toytorch.core.first_call import STUB_CODE
x, found = torch.ones(3), []
held, start = torch.erfinv, threading.Barrier(8)
assert held.__code__ is STUB_CODE
def call():
    start.wait()
    found.append(held(x - 0.5).tolist())
threads = [threading.Thread(target=call) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert len(found) == 8 and all(f == found[0] for f in found), found
assert held is torch.erfinv is torch.Tensor.erfinv and held.__code__ is not STUB_CODE
with torch.ops.expm1.using(kernel=lambda xp, a: a * 0):
    assert torch.expm1(x).tolist() == [0.0] * 3
assert abs(torch.expm1(x)[0].item() - 1.71828) < 1e-4
try: torch.log1p(x, nothing=1)
except TypeError as e: assert "unexpected keyword argument 'nothing'" in str(e), e
else: raise SystemExit("was taken")
"""


def test_first_calls() -> None:
    """Of several threads at once, within `using`, and with wrong arguments."""
    subprocess.run(
        [sys.executable, "-c", FIRST_CALLS],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )


ASKED_FIRST = """
import inspect
import toytorch as torch
from toytorch.core.op import registry
class Asked(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})
Asked([1.0]) + 1
for made in registry["hardshrink"].generated:
    before = inspect.signature(made.function), made.function.__doc__
    made.ready()
    assert (inspect.signature(made.function), made.function.__doc__) == before, before
"""


def test_functions_keep_their_signature_where_somebody_is_asked() -> None:
    subprocess.run(
        [sys.executable, "-c", ASKED_FIRST],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )


PLACES = ("", ".linalg", ".fft", ".special", ".nn.functional", ".nn.init", ".nn.utils", ".autograd")


@pytest.mark.parametrize("place", PLACES)
def test_pickle_finds_public_functions(place: str) -> None:
    """As PyTorch's: workers of a loader, which are sent what is applied to each batch, need it."""
    shown = vars(importlib.import_module(f"toytorch{place}"))
    public = {n: f for n, f in shown.items() if inspect.isfunction(f) and n[0] != "_"}
    assert len(public) > 5
    assert not [n for n, f in public.items() if pickle.loads(pickle.dumps(f)) is not f]


def test_errors_name_the_function_once_functions_ask() -> None:
    """Also the first time it is called, when its own code takes the place of the stub's."""
    program = (
        "import toytorch as t\n"
        "class Asking(t.overrides.TorchFunctionMode): pass\n"
        "Asking().__enter__().__exit__()\n"
        "try: t.flatten(t.ones(2), 0, 0, 0)\n"
        "except TypeError as e: print(e)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.stdout.startswith("flatten() takes"), told

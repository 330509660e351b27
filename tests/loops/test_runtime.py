"""The cache on disk, builtin calls, threads."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import toytorch as torch
from toytorch.loops import Program, compile_program, run, set_thread_count
from toytorch.loops.runtime import cache
from toytorch.loops.runtime import threads as parallel
from toytorch.loops.runtime.entry_point import CONTEXT
from toytorch.loops.runtime.jit import LLVM, context, works
from toytorch.loops.runtime.thread_pool import QUEUE

pytestmark = pytest.mark.skipif(not works(), reason="kernels need llvmlite")
TEXT = "x[i], s -> y[i]\n y = x*x + s*{}"


def compiled(number: int) -> bool:
    """Runs a kernel that no other test has; whether it came from the cache."""
    program = Program.parse(TEXT.format(number))
    x, y = np.arange(9, dtype="float32"), np.empty(9, "float32")
    run(program, y, x, 2.0)
    np.testing.assert_array_equal(y, x * x + np.float32(2 * number))
    return compile_program(program, y, x).compiled.cached


def test_a_kernel_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOYTORCH_CACHE", str(tmp_path / "new"))
    assert [compiled(3), compiled(3)] == [False, True]
    assert len(list((tmp_path / "new").glob("k*.o"))) == 1


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "a folder"])
def test_a_damaged_file_is_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setenv("TOYTORCH_CACHE", str(tmp_path))
    number = 10 + len(damage)
    assert not compiled(number)
    (file,) = tmp_path.glob("k*.o")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    if damage == "a folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes({"cut": content[:-9], "changed": content, "empty": b""}[damage])
    assert not compiled(number)
    assert compiled(number) or damage == "a folder"
    assert not list(tmp_path.glob(".*"))  # nothing half written is left


def test_without_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOYTORCH_CACHE", "")
    assert [compiled(4), compiled(4)] == [False, False]
    file = tmp_path / "file"
    file.write_text("no folder")
    monkeypatch.setenv("TOYTORCH_CACHE", str(file))
    assert [compiled(5), compiled(5)] == [False, False]
    assert file.read_text() == "no folder"


def test_processes_fill_the_cache_at_once(tmp_path: Path) -> None:
    code = "from tests.loops.test_runtime import compiled\nfor k in range(60, 64): compiled(k)"
    environment = {**os.environ, "TOYTORCH_CACHE": str(tmp_path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=environment, cwd=Path(__file__).parents[2]
        )
        for _ in range(2)
    ]
    assert [p.wait(timeout=100) for p in started] == [0, 0]
    assert len(list(tmp_path.iterdir())) == 5  # with the trampoline


def test_the_folder_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOYTORCH_CACHE", raising=False)
    assert os.path.join("toytorch", "kernels") in cache.folder()
    monkeypatch.setenv("TOYTORCH_CACHE", "/here")
    assert cache.folder() == "/here"


def test_builtin_functions_do_not_leak() -> None:
    program = Program.parse("x[i], s -> y[i]\n y = x + s")
    x, y = np.zeros(3, "float32"), np.zeros(3, "float32")
    call = compile_program(program, y, x).function
    number = 1234.5
    watched = [x, y, number, True, None, False]
    before = [sys.getrefcount(v) for v in watched]
    for _ in range(1000):
        assert call(y, x, number) is True
        assert call(y, x) is False
    after = [sys.getrefcount(v) for v in watched]
    assert max(abs(a - b) for a, b in zip(before, after)) < 50
    with pytest.raises(TypeError):
        call(y, x, number, s=3)


@pytest.fixture
def two_threads() -> object:
    parallel._pools.clear()  # they are made again at first need
    set_thread_count(2)
    yield
    parallel._count = 0  # as many as BLAS again
    parallel.note_threads()


@pytest.mark.parametrize(
    "text",
    [
        "x[i,j] -> y[i,j]\n y = sin(exp(x))",
        "x[i,j] -> y[i,j]\n e = exp(x - max[j](x))\n y = e / sum[j](e)",
        "x[i,j] -> y[j]\n y = sum[i](exp(x))",
        "x[i,j] -> y[]\n y = sum[i,j](exp(x))",
    ],
)
def test_threads_give_the_same(text: str, two_threads: object) -> None:
    program = Program.parse(text)
    x = np.random.default_rng(0).standard_normal((1500, 1001)).astype("float32")
    sizes = {"i": 1500, "j": 1001}
    made, alone = np.zeros((2, *(sizes[d] for d in program.outputs[0].dims)), "float32")
    kernel = compile_program(program, made[...], x)
    waits = kernel.function(made[...], x) is None  # so much work is for several, when they are made
    assert waits == bool(program.outputs[0].dims)  # but for one row
    run(program, made[...], x)
    assert kernel.function(made[...], x) is True
    set_thread_count(1)
    run(program, alone[...], x)
    np.testing.assert_array_equal(made, alone)


def test_workers_come_late_or_in_time(two_threads: object) -> None:
    """Whether workers sleep or poll when a job comes, every part is done once."""
    program = Program.parse("x[i], s -> y[i]\n y = x + s*exp(sin(x*0))")
    pauses = np.random.default_rng(0).exponential(60e-6, 300)
    for i, pause in enumerate(pauses):
        x = np.full(400_000 + 777 * i, i, "float32")
        y = np.zeros_like(x)
        run(program, y, x, 1.0)
        assert (y == i + 1).all()
        time.sleep(pause if i % 3 else 0)
    words = (ctypes.c_int64 * 32).from_address(parallel._pools[2].queue)
    assert words[QUEUE["epoch"]] and not words[QUEUE["epoch"]] % 2
    assert not words[QUEUE["busy"]] and not words[QUEUE["active"]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_workers_of_its_own(two_threads: object) -> None:
    program = Program.parse("x[i] -> y[i]\n y = exp(sin(x))")
    x = np.ones(2_000_000, "float32")
    run(program, np.empty_like(x), x)
    before = parallel._pools[2]
    child = os.fork()
    if not child:
        y = np.zeros_like(x)
        forgotten = not parallel._pools
        run(program, y, x)
        good = (y == y[0]).all() and y[0] > 0 and forgotten and parallel._pools[2] is not before
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_kernels_from_many_python_threads() -> None:
    """Each thread compiles and runs; the results are each its own."""
    errors: list[BaseException] = []

    def work(k: int) -> None:
        try:
            for number in range(70, 74):
                compiled(number + k % 2)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(timeout=60)
    assert not errors and not any(t.is_alive() for t in threads)


def test_kernels_follow_set_num_threads() -> None:
    before = torch.get_num_threads()
    x, y = np.ones((2, 1 << 22), "float32")
    kernel = compile_program(Program.parse("x[i] -> y[i]\n y = x + 1"), y, x)
    seen = context()
    torch.set_num_threads(2)
    try:
        parallel._pools.clear()
        parallel.note_threads()
        assert kernel.function(y, x) is (None if torch.get_num_threads() == 2 else True)
        assert kernel(y, x) and (y == 2).all()
        assert seen[CONTEXT.index("threads")] == torch.get_num_threads()
    finally:
        torch.set_num_threads(before)
    assert seen[CONTEXT.index("threads")] == before
    assert kernel(y, x)


def test_thread_count_has_to_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        set_thread_count(0)


COUNTED = """
import tracemalloc
import numpy as np
from toytorch.kernels import attention
from toytorch.loops import set_thread_count

set_thread_count(2)
q = np.ones((1, 1, 2048, 8), np.float32)
attention.forward(q, q, q, None, False, 1.0)  # compiles, and starts the worker
tracemalloc.start()
for _ in range(20):
    attention.forward(q, q, q, None, False, 1.0)
print("done")
"""


def test_workers_do_not_wait_for_the_interpreter() -> None:
    """Under tracemalloc CPython's allocator takes the interpreter's lock, which the thread that
    waits for the workers holds: their scratch memory comes from elsewhere."""
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-c", COUNTED], cwd=root, capture_output=True, text=True, timeout=120
    )
    assert ended.stdout == "done\n", ended.stderr


def test_an_llvm_older_than_ours_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy does the work then: LLVM 15 ends the process at some kernels."""
    old = tuple(part - 1 for part in LLVM)
    monkeypatch.setattr("llvmlite.binding.llvm_version_info", old)
    assert not works.__wrapped__()
    monkeypatch.setattr("llvmlite.binding.llvm_version_info", (*LLVM, 1, 8))
    assert works.__wrapped__()

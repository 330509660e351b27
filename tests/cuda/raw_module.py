"""CuPy's RawModule, pretended: a launch is checked, and the kernel runs on the CPU by g++.

The checks are those that a card would answer with a wrong result or an error: the number of
arguments, the type that each parameter has in the CUDA source, contiguous pointers of the device,
a grid and a block within the limits. The kernel then runs over `tests/loops/cuda_on_cpu.h`.
Libraries are kept in a folder by the hash of their source, so that a second run compiles nothing.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cuda.stand_in_array import ndarray

HEADER = Path(__file__).parents[1] / "loops" / "cuda_on_cpu.h"
HEAD = re.compile(
    r"__global__ void(?: __launch_bounds__\((\d+)[^)]*\))?\s+(\w+)\((.*?)\)\s*\{", re.S
)
ASSEMBLY = {  # instructions of a card, and what they do in C++
    'asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));': "y = widened(x);",
    'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));': "y = narrowed(x);",
}
FLAGS = ["-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-w"]
FLAGS += ["-mf16c"] if platform.machine() in ("x86_64", "AMD64") else []
TYPES = {  # NumPy's name of a parameter's type in CUDA C
    "float": "float32", "double": "float64", "long long": "int64", "int": "int32",
    "unsigned long long": "uint64", "unsigned int": "uint32", "unsigned": "uint32",
    "bool": "bool", "unsigned char": "uint8", "signed char": "int8", "short": "int16",
    "unsigned short": "uint16", "Wide": "complex128",
}  # fmt: skip
GRID, BLOCK = (2**31 - 1, 65535, 65535), 1024  # limits of all cards since Kepler
launched: list[str] = []  # the kernels that ran, by name
prepared: dict[str, Any] = {}  # compiled beforehand, many at once
recording: set[str] | None = None  # sources are noted here, and nothing runs


class RawModule:
    """`cupy.RawModule`: keywords only, compiled when a function is asked for."""

    def __init__(
        self, *, code: str | None = None, path: str | None = None, options: tuple[str, ...] = (),
        backend: str = "nvrtc", translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False, name_expressions: Any = None, jitify: Any = None,
    ) -> None:  # fmt: skip
        if code is None:
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if not isinstance(options, tuple):
            raise TypeError(f"Argument 'options' has incorrect type (got {type(options)})")
        self.code, self.options = code, options

    def get_function(self, name: str) -> RawKernel:
        return RawKernel(self.code, name, self.options)


class RawKernel:
    """`cupy.RawKernel`."""

    def __init__(self, code: str, name: str, options: tuple[str, ...] = ()) -> None:
        self.code, self.name, self.options = code, name, options
        found = {m[2]: m for m in HEAD.finditer(code)}
        assert name in found, f"no kernel {name} in\n{code}"
        self.parameters = [parameter(p) for p in found[name][3].split(",") if p.strip()]
        self.threads = int(found[name][1] or BLOCK)

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
        assert isinstance(grid, tuple) and isinstance(block, tuple) and isinstance(args, tuple)
        assert all(type(n) is int and 0 < n <= most for n, most in zip(grid, GRID)), grid
        assert all(type(n) is int and n > 0 for n in block) and len(block) <= 3, block
        assert int(np.prod(block)) <= min(BLOCK, self.threads), (block, self.threads)
        assert len(args) == len(self.parameters), (len(args), self.parameters, self.code)
        values = [self.value(a, p) for a, p in zip(args, self.parameters)]
        if recording is not None:
            recording.add(self.code)
            return
        launched.append(self.name)
        places = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        run = prepared.get(self.code) or compiled((self.code,))[0]
        assert run(places, grid[0], 0) == 0, "a barrier that not all threads reach"

    def value(self, a: Any, parameter: tuple[str, str, bool]) -> Any:
        type, name, pointer = parameter
        wanted = np.dtype(TYPES[type])
        if pointer:
            assert isinstance(a, ndarray), f"{name} is a pointer, and got {a!r}"
            halves = a.dtype.name in ("float16", "bfloat16")
            given = np.dtype("uint16") if halves else a.dtype
            assert given == wanted, f"{name} points to {wanted}, and got {a.dtype}"
            return ctypes.c_void_p(a.data.ptr)
        # CuPy passes NumPy's scalars as they are, and Python's as 8 bytes.
        assert isinstance(a, np.generic), f"{name}: {a!r} has no type of its own"
        assert a.dtype == wanted, f"{name} is {wanted}, and got {a.dtype}"
        kind = {"b": ctypes.c_bool, "f": {4: ctypes.c_float, 8: ctypes.c_double}}.get(wanted.kind)
        if isinstance(kind, dict):
            kind = kind[wanted.itemsize]
        if kind is None:
            kind = {
                8: ctypes.c_longlong, 4: ctypes.c_int, 2: ctypes.c_short, 1: ctypes.c_byte
            }[wanted.itemsize]  # fmt: skip
        return kind(a.item())


def parameter(text: str) -> tuple[str, str, bool]:
    """(type, name, whether it is a pointer) of a parameter as CUDA C says it."""
    text = text.replace("__restrict__", "").replace("const ", "").strip()
    type, name = text.rsplit(None, 1)
    return type.rstrip("* ").strip(), name, "*" in text


@functools.cache
def folder() -> Path:
    made = Path(tempfile.gettempdir()) / f"toytorch-cuda-on-cpu-{os.getuid()}"
    made.mkdir(mode=0o700, exist_ok=True)
    return made


@functools.cache
def header(compiler: str) -> Path:
    """The header of all kernels where g++ finds it compiled, which it is once for all: a kernel takes
    0.2 s then, and 1 s by itself."""
    text = HEADER.read_text()
    key = hashlib.sha256(f"{text} {FLAGS} {compiler}".encode()).hexdigest()[:24]
    path = folder() / f"{key}.h"
    if not path.with_suffix(".h.gch").exists():
        own = path.with_suffix(f".{os.getpid()}.h")
        own.write_text(text)
        made = own.with_suffix(".gch")
        command = [compiler, *FLAGS, "-x", "c++-header", "-o", str(made), str(own)]
        subprocess.run(command, capture_output=True, timeout=600, check=True)
        own.replace(path)
        made.replace(path.with_suffix(".h.gch"))
    return path


@functools.cache
def compiled(sources: tuple[str, ...]) -> list[Any]:
    """The functions run(arguments, blocks, descending) of kernels, in one library."""
    compiler = shutil.which("g++")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("there is no g++ with ucontext.h")
    lines = []
    for k, source in enumerate(sources):
        for instruction, words in ASSEMBLY.items():
            source = source.replace(instruction, words)
        matched = HEAD.search(source)
        assert matched is not None, source
        parts = [p for p in matched[3].split(",") if p.strip()]
        types = [" ".join(p.replace("__restrict__", "").split()[:-1]) for p in parts]
        values = ", ".join(f"*({t}*)args[{n}]" for n, t in enumerate(types))
        lines += [
            f"namespace n{k} {{", source.replace(f"{matched[2]}(", f"kernel_{k}("),
            f'extern "C" int run_{k}(void** args, unsigned blocks, int descending) {{',
            f"    return launch(blocks, [=] {{ n{k}::kernel_{k}({values}); }}, descending);", "}}",
        ]  # fmt: skip
    text, shared = "\n".join(lines), header(compiler)
    stem = folder() / hashlib.sha256(f"{shared.name} {text}".encode()).hexdigest()[:24]
    target = stem.with_suffix(".so")
    if not target.exists():
        source_file = stem.with_suffix(f".{os.getpid()}.cpp")
        source_file.write_text(text)
        made = stem.with_suffix(f".{os.getpid()}.so")
        command = [compiler, *FLAGS, "-shared", "-include", str(shared)]
        done = subprocess.run(
            [*command, "-o", str(made), str(source_file)],
            text=True, capture_output=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[:3000]
        made.replace(target)
        source_file.unlink()
    library = ctypes.CDLL(str(target))
    return [getattr(library, f"run_{k}") for k in range(len(sources))]


def prepare(sources: Iterable[str]) -> None:
    """Compiles many kernels at once."""
    new = tuple(sorted(set(sources) - set(prepared)))
    if new:
        prepared.update(zip(new, compiled(new)))

"""NVIDIA's run-time compiler, which needs no GPU: `pip install nvidia-cuda-nvrtc-cu12`."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

ARCHITECTURES = ("sm_75", "sm_90", "sm_100")  # Turing, Hopper, Blackwell
TOGETHER = 32  # kernels in one program; more save no more time
KERNEL = re.compile(r"(__global__ void(?: __launch_bounds__\([^)]*\))?\s+)\w+(?=\()")
SPILLS = re.compile(r"(\d+) bytes spill (?:stores|loads)")


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiler, from its Python package or the system; None where there is none."""
    names = ["libnvrtc.so.12", "libnvrtc.so"]
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        found = None
    for folder in (found.submodule_search_locations or ()) if found else ():
        names = [str(p) for p in sorted((Path(folder) / "lib").glob("libnvrtc.so*"))] + names
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


@functools.cache
def supported() -> set[str]:
    """The architectures that this release of the compiler knows."""
    nvrtc = library()
    assert nvrtc is not None
    count = ctypes.c_int()
    nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    nvrtc.nvrtcGetSupportedArchs(numbers)
    return {f"sm_{n}" for n in numbers}


def compiles_without_spills(source: str, architecture: str, most: int = 0) -> None:
    """Fails where a kernel does not compile, or where its registers do not suffice but for some
    bytes."""
    nvrtc = library()
    if nvrtc is None:
        pytest.skip("there is no NVRTC")
    if architecture not in supported():
        pytest.skip(f"this release of NVRTC does not know {architecture}")
    program = ctypes.c_void_p()
    assert (
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None
        )
        == 0
    )
    words = [f"--gpu-architecture={architecture}", "--std=c++17", "-Xptxas", "-v"]
    options = (ctypes.c_char_p * len(words))(*(w.encode() for w in words))
    code = nvrtc.nvrtcCompileProgram(program, len(words), options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    text = log.value.decode()
    assert code == 0, text + source
    spilled = SPILLS.findall(text)
    assert spilled and max(map(int, spilled)) <= most, text + source


def all_compile_without_spills(sources: Sequence[str], architecture: str) -> None:
    """Fails where one of these kernels does not compile, or needs more registers than there are.

    Some are compiled in one program, each in a namespace: that takes half the time, and registers are
    given to each kernel by itself. Where that fails they are compiled one by one, to show which it is.
    """
    for first in range(0, len(sources), TOGETHER):
        some = sources[first : first + TOGETHER]
        try:
            compiles_without_spills(together(some), architecture)
        except AssertionError:
            for source in some:
                compiles_without_spills(source, architecture)
            raise


def together(sources: Sequence[str]) -> str:
    """One program of many, in which each kernel has a name and a namespace of its own."""
    spaces = []
    for number, source in enumerate(sources):
        renamed, count = KERNEL.subn(rf"\1kernel_{number}", source)
        assert count == 1, source
        spaces.append(f"namespace n{number} {{\n{renamed}\n}}")
    return "\n".join(spaces)

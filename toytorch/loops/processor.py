"""What this processor can do, in the one place that asks it.

TOYTORCH_CPU=sse4|avx2|avx512|neon|native makes compiled kernels for a lower level than the
processor's own, so that one machine shows what others see. Three levels are those of the x86-64
ABI: sse4 is x86-64-v2 (vectors of 128 bits), avx2 x86-64-v3 (256 bits), avx512 x86-64-v4 (512
bits). neon is what every 64-bit processor of ARM's has (128 bits).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Mapping
from functools import cache as once
from pathlib import Path
from typing import NamedTuple

LEVELS = {  # LLVM's name, and the features of each level that kernels are written differently for
    "sse4": ("x86-64-v2", ("sse2",)),
    "avx2": ("x86-64-v3", ("sse2", "avx", "avx2", "fma", "f16c")),
    "avx512": ("x86-64-v4", ("sse2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw")),
    "neon": ("generic", ("neon",)),
}
# What a processor must have.
NEEDED = {"sse4": "sse4.2", "avx2": "avx2", "avx512": "avx512bw", "neon": "neon"}
LINE = 64  # bytes of a line of the cache


class Processor(NamedTuple):
    """A processor as the compiler of kernels sees it."""

    name: str  # LLVM's
    features: str  # LLVM's, beyond those of the name
    vector: int  # bytes of a vector register
    registers: int  # vector registers
    fma: bool  # x·y + z in one instruction, rounded once
    half: bool  # converts float16 to float32 and back
    masks: bool  # any lanes of a vector can be left out (AVX-512)
    scales: bool  # x·2ⁿ in one instruction, of which LLVM makes vectors (AVX-512, from LLVM 22 on)
    pauses: bool  # has an instruction for loops that wait (x86)
    l1: int  # bytes of a core's first-level cache for data
    l2: int  # bytes of its second-level cache

    def lanes(self, kind: str) -> int:
        """Numbers of a type ("f" or "d") in one vector register."""
        return self.vector // (4 if kind == "f" else 8)


def chosen() -> str:
    """The level that TOYTORCH_CPU asks for; "native" where it is not set.

    Raises:
        ValueError: it is none of the levels.
    """
    level = os.environ.get("TOYTORCH_CPU") or "native"
    if level != "native" and level not in LEVELS:
        raise ValueError(f"TOYTORCH_CPU={level}: expected one of {', '.join(LEVELS)}, native")
    return level


@once
def host() -> tuple[str, dict[str, bool], tuple[int, ...]]:
    """LLVM's name of this processor, its features, and LLVM's version; none without llvmlite."""
    try:
        import llvmlite.binding as llvm  # an optional package
    except ImportError:
        return "", {}, (0,)
    return llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features()), llvm.llvm_version_info


@once
def caches() -> tuple[int, int]:
    """Bytes of a core's first-level cache for data, and of its second-level cache.

    They are what Linux and macOS say; where nobody says, 32 KiB and 512 KiB, which most processors
    of the last ten years have at least.
    """
    found = {1: 32 << 10, 2: 512 << 10}
    if sys.platform == "darwin":
        for level, name in ((1, b"hw.l1dcachesize"), (2, b"hw.l2cachesize")):
            size, length = ctypes.c_int64(), ctypes.c_size_t(8)
            with contextlib.suppress(OSError, AttributeError):
                ask = ctypes.CDLL(None).sysctlbyname
                if not ask(name, ctypes.byref(size), ctypes.byref(length), None, 0) and size.value:
                    found[level] = size.value
    for cache in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        with contextlib.suppress(OSError, ValueError):
            level, kind, size_ = (
                (cache / name).read_text().strip() for name in ("level", "type", "size")
            )
            if kind != "Instruction" and int(level) in found:
                unit = {"K": 10, "M": 20}.get(size_[-1])
                found[int(level)] = int(size_[:-1]) << unit if unit else int(size_)
    return found[1], found[2]


def levels() -> list[str]:
    """The levels that this processor can run, the lowest first, without "native"."""
    return [level for level in LEVELS if host()[1].get(NEEDED[level])]


def level() -> str:
    """The level that kernels are compiled for, or the highest below "native"; "" for none."""
    asked = chosen()
    return asked if asked != "native" else "".join(levels()[-1:])


def at(level: str) -> Processor:
    """This processor at a level.

    Raises:
        RuntimeError: the processor has no such vectors.
    """
    name, features, version = host()
    if level == "native":
        words = ",".join(("+" if on else "-") + feature for feature, on in sorted(features.items()))
        return described(name, words, features, version)
    if level not in levels():
        has = ", ".join(levels()) or "none of the levels"
        raise RuntimeError(
            f"TOYTORCH_CPU={level}: this processor ({name or 'unknown'}) cannot run "
            f"it; it runs {has}"
        )
    return of_level(level)


def of_level(level: str) -> Processor:
    """A processor of a level, whether or not this one is."""
    name, able = LEVELS[level]
    return described(name, "", dict.fromkeys(able, True), host()[2])


def described(
    name: str, features: str, able: Mapping[str, bool], version: tuple[int, ...]
) -> Processor:
    """A processor from LLVM's name of it and what it is able to do."""
    wide, neon = bool(able.get("avx512f")), bool(able.get("neon"))
    return Processor(
        name,
        features,
        vector=64 if wide else 32 if able.get("avx") else 16,
        registers=32 if wide or neon else 16,
        fma=bool(able.get("fma") or neon),
        half=bool(able.get("f16c") or neon),
        masks=bool(able.get("avx512bw")),
        scales=wide and version >= (22,),
        pauses=bool(able.get("sse2")),
        l1=caches()[0],
        l2=caches()[1],
    )


@once
def this() -> Processor:
    """The processor that kernels are compiled for."""
    return at(chosen())

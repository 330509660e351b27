"""What has to be said before NumPy and PyTorch are imported, which read it once: how many threads,
and which vector instructions, both sides may use.

Nothing is imported here that imports NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
# For each level of TOYTORCH_CPU what makes the other libraries of both sides use no more: OpenBLAS
# and NumPy's own loops, ATen, MKL, oneDNN.
LIMITS = {
    "sse4": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
    },
    "avx2": {
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    },
    "avx512": {},
    "native": {},
}


def value_of(option: str, arguments: Sequence[str], default: str) -> str:
    """What follows an option, before there is a parser.

    >>> value_of("--threads", ["-k", "add", "--threads", "2"], "1")
    '2'
    >>> value_of("--cpu", ["--cpu=avx2"], "")
    'avx2'
    """
    for at, word in enumerate(arguments):
        if word == option and at + 1 < len(arguments):
            return arguments[at + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return default


def prepare(arguments: Sequence[str]) -> tuple[int, str]:
    """Sets the environment as --threads and --cpu ask; the number of threads and the level."""
    threads = value_of("--threads", arguments, "1")
    level = value_of("--cpu", arguments, os.environ.get("TOYTORCH_CPU") or "native")
    for name in THREADS:
        os.environ[name] = threads
    if level in LIMITS:  # else the parser refuses it
        os.environ["TOYTORCH_CPU"] = level
        os.environ.update(LIMITS[level])
    return int(threads) if threads.isdigit() else 1, level

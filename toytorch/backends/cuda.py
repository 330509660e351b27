"""The switches of `torch.backends.cuda`, kept for the programs that set them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from toytorch.facts import warned
from toytorch.facts.composed import called


class _Matmul:
    """How products of matrices may be rounded on a GPU."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True


matmul = _Matmul()


class _Chosen:
    """Which libraries a program prefers; `sums_in_halves` says whether attention's sums may be rounded
    to half types."""

    linalg, blas, rocm = "default", "cublas", "default"
    sums_in_halves = False


chosen = _Chosen()
LINALG = ("default", "cusolver", "magma")
BLAS = ("default", "cublas", "hipblas", "cublaslt", "hipblaslt", "ck")
ROCM = ("default", "aotriton", "ck")


def _preferred(which: str, backend: str | None, known: tuple[str, ...]) -> str:
    """What is preferred, after it was set where `backend` names something."""
    if backend is not None:
        if not isinstance(backend, str) or backend.lower() not in known:
            shown = ", ".join(known)
            raise RuntimeError(f"Unknown input value. Choose from: {shown}.")
        setattr(chosen, which, backend.lower())
    return getattr(chosen, which)


def preferred_linalg_library(backend: str | None = None) -> str:
    """Keeps which library systems of equations should go to on a card, and returns it: "default",
    "cusolver" or "magma". CuPy has cuSOLVER alone.

    >>> preferred_linalg_library("cusolver")
    'cusolver'
    >>> preferred_linalg_library("default")
    'default'
    """
    if backend is not None and str(backend).lower() == "magma":
        raise RuntimeError(
            "Cannot set preferred backend to MAGMA if PyTorch has not been compiled with MAGMA."
        )
    return _preferred("linalg", backend, LINALG)


def preferred_blas_library(backend: str | None = None) -> str:
    """Keeps which library products of matrices should go to on a card, and returns it."""
    return _preferred("blas", backend, BLAS)


def preferred_rocm_fa_library(backend: str | None = None) -> str:
    """Keeps which library attention should go to on AMD's cards, and returns it."""
    return _preferred("rocm", backend, ROCM)


def is_ck_sdpa_available() -> bool:
    """Whether AMD's library for attention is there: no."""
    return False


def is_flash_attention_available() -> bool:
    """Whether NVIDIA's library for attention is there: no, this package has a kernel of its own."""
    return False


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Keeps the switch."""
    chosen.sums_in_halves = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether `allow_fp16_bf16_reduction_math_sdp` was told True."""
    return chosen.sums_in_halves


def is_built() -> bool:
    """Whether the library for GPUs is installed, with or without a GPU."""
    return importlib.util.find_spec("cupy") is not None


class _Attention:
    """Which ways of computing attention a program allows: `flash` in blocks, which `ops.nn.attention`
    asks for, `math` always; the others are for cards."""

    flash = mem_efficient = math = cudnn = True


attention_ways = _Attention()


def _switch(way: str) -> tuple[Callable[[], bool], Callable[[bool], None]]:
    """What tells whether a way of attention is allowed, and what keeps it."""

    def told() -> bool:
        return bool(getattr(attention_ways, way))

    def keep(enabled: bool) -> None:
        setattr(attention_ways, way, bool(enabled))

    told = called(f"{way}_sdp_enabled", f"Whether `enable_{way}_sdp` was told True.", told)
    return told, called(f"enable_{way}_sdp", "Keeps the switch.", keep)


flash_sdp_enabled, enable_flash_sdp = _switch("flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("mem_efficient")
math_sdp_enabled, enable_math_sdp = _switch("math")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cudnn")


def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> AbstractContextManager[None]:
    """The switches inside of a context; the older form of `torch.nn.attention.sdpa_kernel`."""
    warned.at_call(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager "
        "will be removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context "
        "manager, with updated signature.",
        FutureWarning,
    )
    return switched(enable_flash, enable_math, enable_mem_efficient, enable_cudnn)


@contextmanager
def switched(
    enable_flash: bool, enable_math: bool, enable_mem_efficient: bool, enable_cudnn: bool
) -> Iterator[None]:
    """The switches inside of a context."""
    before = dict(vars(attention_ways))
    vars(attention_ways).update(
        flash=enable_flash, math=enable_math, cudnn=enable_cudnn, mem_efficient=enable_mem_efficient
    )
    try:
        yield
    finally:
        vars(attention_ways).clear()
        vars(attention_ways).update(before)

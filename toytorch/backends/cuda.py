"""The switches of `torch.backends.cuda`, kept for the programs that set them."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


class _Matmul:
    """How products of matrices may be rounded on a GPU."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True


matmul = _Matmul()


def is_built() -> bool:
    """Whether the library for GPUs is installed, with or without a GPU."""
    return importlib.util.find_spec("cupy") is not None


class _Attention:
    """Which ways of computing attention a program allows: `flash` in blocks, which `ops.nn.attention`
    asks for, `math` always; the others are for cards."""

    flash = mem_efficient = math = cudnn = True


attention_ways = _Attention()


def flash_sdp_enabled() -> bool:
    """Whether `enable_flash_sdp` was told True."""
    return attention_ways.flash


def enable_flash_sdp(enabled: bool) -> None:
    """Keeps the switch."""
    attention_ways.flash = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether `enable_mem_efficient_sdp` was told True."""
    return attention_ways.mem_efficient


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Keeps the switch."""
    attention_ways.mem_efficient = bool(enabled)


def math_sdp_enabled() -> bool:
    """Whether `enable_math_sdp` was told True."""
    return attention_ways.math


def enable_math_sdp(enabled: bool) -> None:
    """Keeps the switch."""
    attention_ways.math = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """Whether `enable_cudnn_sdp` was told True."""
    return attention_ways.cudnn


def enable_cudnn_sdp(enabled: bool) -> None:
    """Keeps the switch."""
    attention_ways.cudnn = bool(enabled)


def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> AbstractContextManager[None]:
    """The switches inside of a context; the older form of `torch.nn.attention.sdpa_kernel`."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager "
        "will be removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context "
        "manager, with updated signature.",
        FutureWarning,
        stacklevel=2,
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

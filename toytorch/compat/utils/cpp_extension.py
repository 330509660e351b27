"""Operators in C++ and CUDA C are compiled against PyTorch, which is not here: their builders say so."""

from __future__ import annotations

from typing import Any

from toytorch.facts.composed import called
from toytorch.version import own

__all__ = [
    "BuildExtension", "CUDAExtension", "CppExtension", "include_paths", "load", "load_inline",
]  # fmt: skip
CUDA_HOME = ROCM_HOME = CUDNN_HOME = None
IS_HIP_EXTENSION = False
WORDS = (
    "torch.utils.cpp_extension.{} is not available: toytorch {} has no C++ interface; "
    "torch.library.custom_op makes operators in Python, torch.cuda._compile_kernel kernels in CUDA C"
)


def _no(name: str) -> Any:
    def refuse(*args: object, **kwargs: object) -> Any:
        raise RuntimeError(WORDS.format(name, own))

    return called(name, "Says that there is no C++ interface.", refuse)


CppExtension, CUDAExtension, SyclExtension, load, load_inline, include_paths = map(
    _no, ["CppExtension", "CUDAExtension", "SyclExtension", "load", "load_inline", "include_paths"]
)


class BuildExtension:
    """A command of setuptools in PyTorch; here it says what is missing."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError(WORDS.format("BuildExtension", own))

    @classmethod
    def with_options(cls, **options: object) -> Any:
        """The class with options."""
        return cls


def is_ninja_available() -> bool:
    """No extension is built."""
    return False


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """No extension is built."""
    return False

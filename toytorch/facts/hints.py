"""The words of annotations: what an array, an array module, a device or a number may be.

`Array` is NumPy's class; CuPy's answers to the same methods, and so do the scalars that NumPy makes
of sums. `ArrayModule` is the module of their functions, `xp` in kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from toytorch.facts import device as devices
from toytorch.facts.dtype import dtype

if TYPE_CHECKING:
    from llvmlite.ir import Value as Value  # what an instruction of LLVM gives
else:
    Value = Any  # LLVM is loaded by what compiles

Array: TypeAlias = np.ndarray[Any, Any]
ArrayModule: TypeAlias = ModuleType
Device: TypeAlias = devices.device | str | int | None  # what callers may give as `device=`
DType: TypeAlias = dtype
Layout: TypeAlias = devices.layout
MemoryFormat: TypeAlias = devices.memory_format
Scalar: TypeAlias = int | float | complex | bool
Ints: TypeAlias = int | Sequence[int]  # one for all dimensions, or one for each
Sizes: TypeAlias = tuple[int, ...]  # one for each dimension
Shape: TypeAlias = Sequence[int]  # the same, as callers give them
OutputSize: TypeAlias = int | Sequence[int | None] | None  # None keeps a size
Fn: TypeAlias = Callable[..., Any]  # any function
Args: TypeAlias = tuple[Any, ...]  # of a call, by position
Kwargs: TypeAlias = dict[str, Any]  # of a call, by name
Nested: TypeAlias = "Scalar | Sequence[Nested]"  # what `tensor([[1, 2], [3, 4]])` is given

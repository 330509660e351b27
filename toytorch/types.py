"""Names for the hints of programs, as in `torch.types`."""

import builtins
import os
from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.device import device as _device
from toytorch.facts.size import Size

__all__ = ["Device", "FileLike", "Number", "Storage", "Tensor"]

_bool, _int, _float, _complex = builtins.bool, builtins.int, builtins.float, builtins.complex
_size = Size | list[int] | tuple[int, ...]
_TensorOrTensors = Tensor | Sequence[Tensor]
Number = int | float | bool
FileLike = str | os.PathLike[str] | Any
Device = _device | str | int | None
Storage = Any

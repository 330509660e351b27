"""Names that `toytorch.nn.functional` takes from here."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.ops import special
from toytorch.ops.products import linear

__all__ = ["gelu", "linear"]


def gelu(input: Tensor, approximate: str = "none", *, out: Any = None) -> Tensor:
    """x·Φ(x)."""
    return special.gelu.function(input, approximate=approximate, out=out)  # type: ignore

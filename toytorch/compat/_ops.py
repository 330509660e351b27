"""`torch._ops`: the namespaces of operations."""

from __future__ import annotations

import sys
from typing import Any

ops: Any = sys.modules["toytorch"].ops

__all__ = ["ops"]

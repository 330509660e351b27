"""Fused groups as compiled kernels."""

from __future__ import annotations

from typing import Any

from toytorch.jit.ir import Node


def lines(node: Node, writer: Any) -> list[str]:
    """The source lines that run a group."""
    raise NotImplementedError

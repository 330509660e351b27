"""Distributions of both packages check their parameters, whatever ran before in the process."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def _checked() -> None:
    """PyTorch's checks are on: its `torch.compile` turns them off for the whole process."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.distributions.Distribution.set_default_validate_args(True)

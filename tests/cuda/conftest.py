"""The device of these tests: CuPy where there is a GPU, else the stand-in in its place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cuda import cupy_stand_in
from toytorch.backends import base
from toytorch.backends.cupy import CupyBackend


@pytest.fixture(scope="package")
def device() -> Iterator[Any]:
    """The backend of "cuda" while these tests run."""
    before = base.of_kind("cuda")
    if os.environ.get("TOYTORCH_TEST_GPU"):  # `python3 -m course test --gpu`
        yield before
        return
    backend = CupyBackend(cupy_stand_in.made())
    base.register("cuda", backend)
    try:
        yield backend
    finally:
        base.register("cuda", before)
        random = __import__("toytorch.core.random", fromlist=["random"])
        for where in [w for w in random.states() if w.type == "cuda"]:
            del random._of_device[where]

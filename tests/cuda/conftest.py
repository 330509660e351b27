"""The device of these tests: CuPy where there is a GPU, else the stand-in in its place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cuda import cupy_stand_in
from toytorch.backends import base
from toytorch.backends.cupy import CupyBackend
from toytorch.core import random

GPU = bool(os.environ.get("TOYTORCH_TEST_GPU"))  # set by `python3 -m course test --gpu`


@contextmanager
def pretended(formulas: bool) -> Iterator[Any]:
    """A backend of "cuda" over the stand-in; formulas are kernels in it, or CuPy's functions."""
    before = base.of_kind("cuda")
    backend = CupyBackend(cupy_stand_in.made())
    if not formulas:
        del backend.kernels["formula"]
    base.register("cuda", backend)
    try:
        yield backend
    finally:
        base.register("cuda", before)
        random.forget("cuda")


@pytest.fixture(scope="module")
def device() -> Iterator[Any]:
    """CuPy's functions: each formula is a chain of them, for which nothing need be compiled."""
    if GPU:
        yield base.of_kind("cuda")
        return
    with pretended(formulas=False) as backend:
        yield backend


@pytest.fixture(scope="module")
def compiling_device() -> Iterator[Any]:
    """The backend as it is: formulas are kernels, which g++ compiles here."""
    if GPU:
        yield base.of_kind("cuda")
        return
    with pretended(formulas=True) as backend:
        yield backend

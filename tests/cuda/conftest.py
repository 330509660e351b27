"""The device of these tests: CuPy where there is a GPU, else the stand-in in its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cuda import cupy_stand_in
from tests.gpu import GPU
from toytorch.backends import base, cupy_kernels, cupy_rows
from toytorch.backends.cupy import CupyBackend
from toytorch.core import random
from toytorch.core.op import registry

# Modules of kernels that are printed for each layout; those by hand are few, and always there.
PROGRAMS = ("cupy_attention", "cupy_folded", "cupy_norms")


def forget(xp: Any) -> None:
    """Lets ops find their kernels anew: the stand-in is one module, with formulas or without."""
    for op in registry.values():
        op._kernels.pop(xp, None)


@contextmanager
def pretended(formulas: bool) -> Iterator[Any]:
    """A backend of "cuda" over the stand-in; formulas are kernels in it, or CuPy's functions."""
    before = base.of_kind("cuda")
    backend = CupyBackend(cupy_stand_in.made())
    if not formulas:
        programs = [cupy_kernels.LATER[k] for k in PROGRAMS]
        for name in ("formula", *cupy_rows.TABLE, *" ".join(programs).split()):
            del backend.kernels[name]
    base.register("cuda", backend)
    forget(backend.xp)
    try:
        yield backend
    finally:
        base.register("cuda", before)
        forget(backend.xp)
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

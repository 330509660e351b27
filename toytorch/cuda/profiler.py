"""Switches NVIDIA's profilers on and off, where one watches. Like `torch.cuda.profiler`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toytorch.cuda.further import check_error, cudart


def start() -> None:
    """A profiler begins to record."""
    check_error(cudart().cudaProfilerStart())


def stop() -> None:
    """It ends."""
    check_error(cudart().cudaProfilerStop())


@contextmanager
def profile() -> Iterator[None]:
    """A context that is recorded."""
    start()
    try:
        yield
    finally:
        stop()


__all__ = ["profile", "start", "stop"]

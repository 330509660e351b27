"""Random numbers of the whole program, under the names of `torch.random`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from toytorch.core.random import (
    default_generator,
    get_cpu_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_cpu_generator,
    set_rng_state,
    state_of,
    states,
)
from toytorch.facts.device import device

__all__ = [
    "default_generator", "fork_rng", "get_cpu_generator", "get_rng_state", "initial_seed",
    "manual_seed", "seed", "set_cpu_generator", "set_rng_state", "thread_safe_generator",
]  # fmt: skip


def thread_safe_generator() -> None:
    """None, which stands for the generator of all: workers that load data are processes here."""


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """What is drawn inside leaves no trace: generators go back to where they were.

    `devices` are the GPUs this holds for (all that have been drawn on, if not given); the CPU's
    generator is always among them. Like `torch.random.fork_rng`.

    >>> _ = torch.manual_seed(0)
    >>> with torch.random.fork_rng():
    ...     a = torch.rand(2)
    >>> torch.equal(a, torch.rand(2))
    True
    """
    if not enabled or device_type == "meta":
        yield
        return
    kind = device_type or "cuda"
    where = (
        states()
        if devices is None
        else [
            device("cpu"),
            *(device(kind, d) if isinstance(d, int) else device(d) for d in devices),
        ]
    )
    before = [(d, state_of(d).get_state()) for d in where]
    try:
        yield
    finally:
        for d, state in before:
            state_of(d).set_state(state)

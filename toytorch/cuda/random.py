"""The generators of random numbers of cuda devices. Like `torch.cuda.random`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toytorch.core import random
from toytorch.core.random import Generator
from toytorch.core.tensor import Tensor
from toytorch.cuda.devices import backend, device_count, index_of
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Device


def _generator(device: Device) -> Generator:
    backend()
    return random.state_of(device_class("cuda", index_of(device)))


def get_rng_state(device: Device = "cuda") -> Tensor:
    """The state of a device's generator."""
    return _generator(device).get_state()


def set_rng_state(new_state: Tensor, device: Device = "cuda") -> None:
    """Sets the state of a device's generator."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[Tensor]:
    """The states of all devices' generators."""
    return [get_rng_state(f"cuda:{i}") for i in range(device_count())]


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Sets the states of all devices' generators."""
    for i, new_state in enumerate(new_states):
        set_rng_state(new_state, f"cuda:{i}")


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator; nothing without a device."""
    if device_count():
        _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices; nothing without one."""
    for i in range(device_count()):
        _generator(f"cuda:{i}").manual_seed(int(seed))


def seed() -> None:
    """Seeds the current device's generator with a number that cannot be foretold."""
    if device_count():
        _generator(None).seed()


def seed_all() -> None:
    """Seeds the generators of all devices with one number that cannot be foretold."""
    if device_count():
        manual_seed_all(_generator(None).seed())


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _generator(None).initial_seed()


__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed",
    "seed_all", "set_rng_state", "set_rng_state_all",
]  # fmt: skip

"""Simulated devices: `cuda` for whoever has no card.

What a program computes is real; how long it takes is worked out from the figures of a card, so that
streams, copies and memory can be seen and reasoned about anywhere, with the same result each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.backends import base
from toytorch.backends.simulator.backend import SimulatorBackend
from toytorch.backends.simulator.races import Race
from toytorch.core.random import forget
from toytorch.facts.cards import Card
from toytorch.facts.parts import of_part
from toytorch.facts.trace import RaceError, RaceWarning, Timeline

__all__ = [
    "RaceError", "RaceWarning", "Simulation", "is_simulated", "races", "simulate", "timeline",
]  # fmt: skip


class Simulation:
    """Simulated devices in force; as a context it ends with its block, as does what was simulated
    anew inside of it, and the devices that were simulated before are in force again.

    `timeline` is the record of what ran (see `viz.timeline`), `races` what was found.
    """

    def __init__(self, backend: SimulatorBackend, before: SimulatorBackend | None = None) -> None:
        self._backend, self._before = backend, before

    timeline = of_part("_backend.machine.timeline", "What ran when, in virtual time.")

    @property
    def races(self) -> list[Race]:
        """Accesses that nothing puts in order, each pair of lines once."""
        return self._backend.machine.races.found

    now = of_part("_backend.machine.now", "The host's clock, in virtual microseconds.")

    def end(self) -> None:
        """`cuda` means the cards of this machine again; what was on the simulated ones stays there
        and cannot be used any more."""
        if base.simulation is self._backend:
            self._backend.leave()
            forget("cuda")

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *exc: object) -> None:
        if base.simulation is not None:
            base.simulation.leave()
        if self._before is not None:
            self._before.enter()
        forget("cuda")

    def __repr__(self) -> str:
        devices = self._backend.machine.devices
        return f"<simulation of {len(devices)} x {devices[0].card.name}>"


def simulate(
    devices: int = 1,
    model: str | Card | Sequence[str | Card] = "H100",
    *,
    memory: int | None = None,
    races: str = "error",
    realtime: bool = False,
    host: Any = None,
) -> Simulation:
    """Makes `cuda` mean simulated devices, with a real card's figures and virtual time.

    devices   how many
    model     which card (`toytorch.facts.cards`), or a card for each
    memory    bytes that each has, the card's own unless given: less, to see it run out
    races     what to do about accesses that nothing puts in order: "error" raises RaceError, "warn"
              warns, "list" keeps them for `races()`, "ignore" does not look
    realtime  whether the host, where it waits for a device, sleeps until as much real time has
              passed as simulated time, for demonstrations
    host      what calls cost on the host (`toytorch.backends.simulator.roofline.Host`)

    Raises ValueError for an unknown card or choice. The environment variable TOYTORCH_CUDA=simulate
    (or simulate:2, simulate:2:V100) does the same before a program starts.

    >>> with torch.cuda.simulate(devices=2, model="V100"):
    ...     x = torch.ones(3, device="cuda:1") * 2
    ...     print(x, torch.cuda.get_device_name(1))
    tensor([2., 2., 2.], device='cuda:1') V100 (simulated)
    """
    from toytorch.backends.simulator.backend import simulate as begin  # few programs need it

    before = base.simulation
    made = begin(devices, model, memory=memory, races=races, host=host, realtime=realtime)
    forget("cuda")
    return Simulation(made, before)


def is_simulated() -> bool:
    """Whether `cuda` means simulated devices."""
    return base.simulation is not None


def _now() -> SimulatorBackend:
    if base.simulation is None:
        raise RuntimeError(
            "no device is simulated: call toytorch.cuda.simulate() first, or set TOYTORCH_CUDA="
            "simulate"
        )
    return base.simulation


def timeline() -> Timeline:
    """What ran on the simulated devices so far; `viz.timeline` draws it."""
    return _now().machine.timeline


def races() -> list[Race]:
    """The races that were found on the simulated devices."""
    return _now().machine.races.found

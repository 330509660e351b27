"""The backend of simulated devices, behind the same names as CuPy's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.cupy import backend as cards
from toytorch.backends.launching import Functions, give_operators
from toytorch.backends.numpy_draws import NumpyDraws
from toytorch.backends.philox import PhiloxGenerator
from toytorch.backends.simulator.array import Buffer, DeviceArray, ndarray, note_launch
from toytorch.backends.simulator.launch import Launcher
from toytorch.backends.simulator.machine import (
    CAPTURING,
    Event,
    Machine,
    SimulatedDevice,
    users_line,
)
from toytorch.backends.simulator.pinned import PinnedArray, PinnedBackend, note, pinned_like
from toytorch.backends.simulator.races import Races
from toytorch.backends.simulator.roofline import Host, copy_time
from toytorch.backends.simulator.runtime import SimulatorRuntime
from toytorch.facts import state
from toytorch.facts.cards import Card, card_of
from toytorch.facts.device import cpu
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Array, Fn, Shape
from toytorch.facts.trace import AcceleratorError

UNPINNED = (
    "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is "
    "pinned. Please use tensor.pin_memory() or allocate the tensor with pin_memory=True."
)


class Here:
    """A context in which new arrays are made on one device of a machine."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.machine, self.number = machine, number

    def __enter__(self) -> None:
        local = self.machine.local
        self.before, local.device = local.device, self.number

    def __exit__(self, *raised: object) -> None:
        self.machine.local.device = self.before


class SimulatorBackend:
    """Devices that compute on the CPU and keep time of their own."""

    name = "cuda"
    module = "simulator"
    array_type = DeviceArray

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.launcher = Launcher(machine)
        # launch(name, function, args) runs `function(*args)` as one kernel, on arrays of the host.
        self.launch = self.launcher.run
        self.plain = self.launcher.plain  # the same for what `at_once` knows already
        self.xp = Functions(lambda: self.launcher)
        self.kernels: dict[str, Any] = {}
        self.runtime = SimulatorRuntime(machine)
        self.pinned = PinnedBackend(lambda: self.machine)
        machine.in_backward = lambda: state.local.backward > 0

    def enter(self) -> None:
        """`cuda` means these devices."""
        base.simulation = self
        base.register("cuda", self)
        base.queue(DeviceArray, self)
        base.queue(PinnedArray, self.pinned)
        give_operators(DeviceArray, lambda: self.launcher, self.to_numpy)

    def leave(self) -> None:
        """`cuda` means the cards of this machine again."""
        base.simulation = None
        base.register("cuda", cards)
        base.unqueue(DeviceArray, PinnedArray)

    # -- the protocol -------------------------------------------------------------------------

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return len(self.machine.devices)

    def device(self, array: DeviceArray) -> device_class:
        return array.buffer.device.name

    def simulated(self, where: device_class) -> SimulatedDevice:
        """The device of that number; RuntimeError where there is none."""
        devices = self.machine.devices
        index = self.machine.local.device if where.index is None else where.index
        if not 0 <= index < len(devices):
            raise RuntimeError(
                "CUDA error: invalid device ordinal\nCUDA kernel errors might be asynchronously "
                "reported at some other API call, so the stacktrace below might be incorrect.\n"
                "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with "
                "`TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
            )
        return devices[index]

    def on(self, where: device_class) -> Any:
        """Makes a device the place of new arrays for a while."""
        return Here(self.machine, self.simulated(where).index)

    def to_numpy(self, array: DeviceArray) -> Any:
        if self.machine.capture is not None:  # the host would wait for the result
            raise AcceleratorError(CAPTURING)
        return self.transfer(array, cpu, False)

    def from_numpy(self, array: Array) -> Any:
        return self.transfer(array, device_class("cuda", self.machine.local.device), False)

    def flat(self, array: DeviceArray) -> Any:
        return array.seen(base.of_kind("cpu").flat(array.held))

    def data_ptr(self, array: DeviceArray) -> int:
        return int(array.address) if array.size else 0

    def as_strided(self, flat: DeviceArray, shape: Shape, strides: Shape, offset: int) -> Any:
        return flat.seen(base.of_kind("cpu").as_strided(flat.held, shape, strides, offset))

    def generator(self, seed: int) -> Any:
        card = self.machine.devices[0].card
        source = PhiloxGenerator(np, seed, card.multiprocessors * card.threads)
        return NumpyDraws(self.xp, DeviceGenerator(self, source))

    def synchronize(self) -> None:
        self.machine.synchronise_device(self.machine.device, users_line())

    def is_pinned(self, array: Array) -> bool:
        """Whether the memory of a host array is pinned."""
        return isinstance(array, PinnedArray)

    def pinned_copy(self, array: Array) -> Any:
        """The elements in pinned memory."""
        made = pinned_like(array)
        np.copyto(made, array)
        return made

    # -- launches and copies ------------------------------------------------------------------

    def launch_graph(
        self,
        name: str,
        function: Fn,
        arrays: Sequence[Any],
        kernels: Sequence[tuple[str, int, int, bool]],
    ) -> Any:
        """Runs a compiled function as its kernels, for which the host pays once."""
        return self.launcher.run(name, function, tuple(arrays), kernels=kernels)

    def without_time(self, array: DeviceArray) -> Any:
        """The elements on the host without a copy that takes time: for whoever plans."""
        return array.held

    def transfer(self, array: Array | DeviceArray, where: device_class, non_blocking: bool) -> Any:
        """The elements on another device, or on the host."""
        if not isinstance(array, DeviceArray):
            made = self._new(array, self.simulated(where))
            self.copy_across(made, array, non_blocking)
            return made
        if where.type == "cpu":
            target = pinned_like(array.held) if non_blocking else np.empty_like(array.held)
            self.copy_across(target, array, non_blocking)
            return target
        device = self.simulated(where)
        if device is array.buffer.device:
            return self.launch("copy", lambda a: a.copy(), (array,))
        made = self._new(array.held, device)
        self.copy_across(made, array, non_blocking)
        return made

    def copy_across(self, target: Any, source: Any, non_blocking: bool) -> None:
        """Copies elements from host to device, back, or from device to device."""
        if target.__class__ is source.__class__ is DeviceArray:
            self._to_peer(target, source)
        else:
            self._by_host(target, source, non_blocking)

    def _new(self, like: Array, device: SimulatedDevice) -> DeviceArray:
        stream = self.machine.stream_of(device)
        held = np.empty_like(like, subok=False)
        return DeviceArray(held, Buffer(device, stream, held, users_line()))

    def _by_host(self, target: Any, source: Any, non_blocking: bool) -> None:
        """A copy from the host or to it, which waits unless the host's memory is pinned."""
        machine, line = self.machine, users_line()
        there = target.__class__ is DeviceArray
        on_device, on_host = (target, source) if there else (source, target)
        device = on_device.buffer.device
        if there:
            stream, engine = machine.stream_of(device), "to device"
        else:
            stream, engine = self.launcher.stream_for(device, [source]), "to host"
        name = f"copy {engine}".replace("to", "to the")
        pinned = isinstance(on_host, PinnedArray)
        plain = on_host.view(ndarray) if pinned else on_host
        if machine.capture is not None and not pinned:
            raise RuntimeError(UNPINNED)
        to, of = (target, plain) if there else (plain, source)
        if self._captured(name, to, of, device):
            return
        length = copy_time(device.card, on_device.nbytes, pinned)
        machine.queue(
            stream, name, length, kind="copy", engine=engine, source=line, bytes=on_device.nbytes
        )
        if pinned:
            note(machine, on_host, not there, name, line, stream)
        reads, writes = ([], [target]) if there else ([source], [])
        note_launch(machine, stream, reads, writes, name, line)
        _copy_into(target.held if there else plain, plain if there else source.held)
        if not (pinned and non_blocking):
            machine.wait_for(stream, name, line)

    def _to_peer(self, target: DeviceArray, source: DeviceArray) -> None:
        machine, line = self.machine, users_line()
        here, there = source.buffer.device, target.buffer.device
        if here is there:
            self.launch("copy", _copy_into, (target, source), target=target)
            return
        sends, receives = machine.stream_of(here), machine.stream_of(there)
        ready, done = Event(), Event()
        machine.record(ready, receives)
        machine.wait(sends, ready)
        machine.queue(
            sends,
            f"copy to cuda:{there.index}",
            copy_time(here.card, source.nbytes, True, there.card),
            kind="copy",
            engine="peer",
            source=line,
            bytes=source.nbytes,
        )
        note_launch(machine, sends, [source], [], "copy to a peer", line)
        note_launch(machine, sends, [], [target], "copy to a peer", line)
        np.copyto(target.held, source.held, casting="unsafe")
        machine.record(done, sends)
        machine.wait(receives, done)

    def _captured(self, name: str, target: Any, source: Any, device: SimulatedDevice) -> bool:
        """Adds a copy to the graph that is being captured; False if there is none."""
        capture = self.machine.capture
        if capture is None:
            return False
        to = target.held if target.__class__ is DeviceArray else target
        of = source.held if source.__class__ is DeviceArray else source
        reads = [a for a in (source,) if a.__class__ is DeviceArray]
        writes = [a for a in (target,) if a.__class__ is DeviceArray]
        length = copy_time(device.card, to.nbytes, True)
        again = functools.partial(_copy_into, to, of)
        capture.add([(name, length, "memory", to.nbytes, 0)], again, to, reads, writes)
        return True


def _copy_into(target: Any, source: Any) -> Any:
    np.copyto(target, source, casting="unsafe")
    return target


class DeviceGenerator:
    """A generator whose draws are arrays of the device; inside of a kernel, those of the host that
    stand for them."""

    def __init__(self, backend: SimulatorBackend, rng: PhiloxGenerator) -> None:
        self._backend, self._rng = backend, rng

    def __getattr__(self, name: str) -> Any:
        draw = getattr(self._rng, name)
        if name in ("seed", "get_state", "set_state"):
            return draw

        def drawn(*args: object, **kwargs: object) -> Any:
            if state.local.place is not None:
                return draw(*args, **kwargs)
            return self._backend.launch(name, draw, args, kwargs=kwargs)

        return drawn


def simulate(
    devices: int = 1,
    model: str | Card | Sequence[str | Card] = "H100",
    *,
    memory: int | None = None,
    races: str = "error",
    host: Host | None = None,
    realtime: bool = False,
) -> SimulatorBackend:
    """Makes simulated devices the ones that `cuda` means."""
    if isinstance(devices, bool) or not isinstance(devices, int) or devices < 1:
        raise ValueError(f"devices must be a positive number of devices, not {devices!r}")
    models = [model] * devices if isinstance(model, (str, Card)) else list(model)
    if len(models) != devices:
        raise ValueError(f"{devices} devices need as many models, not {len(models)}")
    cards = [card_of(m) for m in models]
    if memory is not None and memory < 1:
        raise ValueError(f"memory must be a positive number of bytes, not {memory!r}")
    made = SimulatorBackend(Machine(cards, memory, Races(races), host, realtime))
    made.enter()
    return made


def from_environment(asked: str) -> None:
    """Does what TOYTORCH_CUDA asks for: "simulate", "simulate:2" or "simulate:2:V100"."""
    word, *more = asked.split(":")
    if word != "simulate" or len(more) > 2 or (more and not more[0].isdigit()):
        raise ValueError(
            f"TOYTORCH_CUDA={asked!r} is not understood; it may be simulate, simulate:2 (devices) "
            "or simulate:2:V100 (devices and card)"
        )
    simulate(int(more[0]) if more else 1, more[1] if len(more) > 1 else "H100")


__all__ = ["DeviceGenerator", "SimulatorBackend", "from_environment", "simulate"]

"""Streams, events, memory figures and graphs of simulated devices, as `toytorch.cuda` asks."""

from __future__ import annotations

import itertools
from typing import Any

from toytorch.backends.simulator.array import DeviceArray
from toytorch.backends.simulator.graphs import Capture, Replayable, replay
from toytorch.backends.simulator.machine import Event, Machine, SimulatedDevice, Stream, users_line
from toytorch.facts.parts import of_part


class SimulatorRuntime:
    """What programs ask of simulated devices; see `toytorch.backends.runtime`."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.pools = itertools.count(1)

    sync_debug_mode = of_part(
        "machine.sync_debug",
        "What ops do that make the host wait: nothing (0), a warning (1) or an error (2).",
        written=True,
    )

    def new_pool(self) -> int:
        """The number of memory that only who names it gets."""
        return next(self.pools)

    def use_pool(self, number: int) -> int:
        """New memory comes from a pool from now on; from which it came before."""
        before, self.machine.pool = self.machine.pool, number
        return before

    def _device(self, index: int) -> SimulatedDevice:
        return self.machine.devices[index]

    def current_device(self) -> int:
        return self.machine.local.device

    def set_device(self, device: int) -> None:
        self.machine.local.device = device

    def properties(self, device: int) -> dict[str, Any]:
        here = self._device(device)
        card = here.card
        return {
            "name": f"{card.name} (simulated)", "major": card.capability[0],
            "minor": card.capability[1], "total_memory": here.memory.capacity,
            "multi_processor_count": card.multiprocessors, "warp_size": card.warp,
            "max_threads_per_multi_processor": card.threads,
            "max_threads_per_block": card.threads_of_block,
            "regs_per_multiprocessor": card.registers, "shared_memory_per_block": 48 << 10,
            "shared_memory_per_block_optin": card.shared_of_block,
            "shared_memory_per_multiprocessor": card.shared_memory, "L2_cache_size": card.l2_cache,
            "clock_rate": int(card.clock / 1e3), "is_integrated": 0, "is_multi_gpu_board": 0,
        }  # fmt: skip

    def can_reach(self, device: int, peer: int) -> bool:
        return device != peer

    def synchronize(self, device: int) -> None:
        self.machine.synchronise_device(self._device(device), users_line())

    # -- streams and events -------------------------------------------------------------------

    def new_stream(self, device: int, priority: int) -> Stream:
        return self._device(device).new_stream(priority)

    def default_stream(self, device: int) -> Stream:
        return self._device(device).default

    def current_stream(self, device: int) -> Stream:
        return self.machine.stream_of(self._device(device))

    def set_stream(self, stream: Stream) -> None:
        self.machine.leave_backward()
        self.machine.local.streams[stream.device.index] = stream

    def device_of_stream(self, stream: Stream) -> int:
        return stream.device.index

    def handle_of(self, stream: Stream) -> int:
        return stream.handle

    def stream_done(self, stream: Stream) -> bool:
        self.machine.check(stream.device)
        if stream.tail <= self.machine.now:
            self.machine.learn(stream.clock)
            return True
        self.machine.now += 1.0  # a loop that asks again and again lets time pass
        return False

    def synchronize_stream(self, stream: Stream) -> None:
        self.machine.synchronise(stream, source=users_line())

    def new_event(self, timing: bool, blocking: bool) -> Event:
        return Event(timing)

    def record(self, event: Event, stream: Stream) -> None:
        self.machine.leave_backward()
        self.machine.record(event, stream)

    def wait(self, stream: Stream, event: Event) -> None:
        self.machine.leave_backward()
        self.machine.wait(stream, event)

    def event_done(self, event: Event) -> bool:
        done = self.machine.reached(event)
        if not done:
            self.machine.now += 1.0
        return done

    def synchronize_event(self, event: Event) -> None:
        machine = self.machine
        if event.time is None or event.device is None:
            return
        waited = machine.wait_until(event.time, "wait for an event", users_line())
        machine.arrow(event.span, waited, "sync")
        machine.now += machine.host.synchronise
        machine.learn(event.clock)
        machine.check(event.device)

    def elapsed(self, first: Event, second: Event) -> float:
        assert first.time is not None and second.time is not None  # the caller looked
        return (second.time - first.time) / 1e3

    def record_stream(self, array: DeviceArray, stream: Stream) -> None:
        block = array.buffer.block
        if block is None or stream is array.buffer.stream or stream in block.users:
            return
        block.users = (*block.users, stream)

    # -- memory -------------------------------------------------------------------------------

    def memory_stats(self, device: int) -> dict[str, Any]:
        statistics = self._device(device).memory.statistics
        made: dict[str, Any] = {}
        for (name, pool), figure in statistics.figures.items():
            made.setdefault(name, {})[pool] = {
                "current": figure.current,
                "peak": figure.peak,
                "allocated": figure.allocated,
                "freed": figure.freed,
            }
        made["num_alloc_retries"] = statistics.retries
        made["num_ooms"] = statistics.shortages
        made["num_device_alloc"] = statistics.driver_calls
        made["num_device_free"] = statistics.driver_frees
        made["num_sync_all_streams"] = 0
        made["max_split_size"] = -1
        return made

    def memory_info(self, device: int) -> tuple[int, int]:
        memory = self._device(device).memory
        return memory.capacity - memory.reserved, memory.capacity

    def reset_peaks(self, device: int) -> None:
        for figure in self._device(device).memory.statistics.figures.values():
            figure.peak = figure.current

    def reset_accumulated(self, device: int) -> None:
        statistics = self._device(device).memory.statistics
        for figure in statistics.figures.values():
            figure.allocated = figure.freed = 0
        statistics.retries = statistics.shortages = 0

    def empty_cache(self) -> None:
        machine = self.machine
        for device in machine.devices:
            for stream in device.streams:  # the driver waits for all work before it takes memory
                machine.learn(stream.clock)
            machine.wait_until(device.tail, "cudaFree")
            with machine.lock:
                given = device.memory.give_back()
            if given:
                device.drained()
                machine.spend(machine.host.allocate, "cudaFree", users_line())
            device.note_memory()

    def limit_memory(self, device: int, share: float) -> None:
        found = self._device(device)
        found.memory.limit = int(found.memory.capacity * share)
        found.look_at_room()

    def memory_share(self, device: int) -> float:
        memory = self._device(device).memory
        return memory.limit / memory.capacity

    def snapshot(self) -> dict[str, Any]:
        segments: list[dict[str, Any]] = []
        traces = []
        for device in self.machine.devices:
            with self.machine.lock:
                found = device.memory.snapshot()
            segments += [{"device": device.index, **segment} for segment in found]
            traces.append(device.memory.trace)
        return {"segments": segments, "device_traces": traces}

    def record_memory(self, enabled: bool) -> None:
        for device in self.machine.devices:
            device.memory.record(enabled)

    # -- graphs -------------------------------------------------------------------------------

    def begin_capture(self, stream: Stream, pool: Any) -> Capture:
        machine = self.machine
        machine.leave_backward()
        machine.settle()
        capture = Capture(stream, next(self.pools) if pool is None else pool)
        machine.capture = capture
        return capture

    def end_capture(self, capture: Capture) -> Replayable:
        self.machine.capture = None
        return capture.made()

    def replay(self, graph: Replayable) -> None:
        replay(self.machine, graph)

    def capturing(self) -> bool:
        return self.machine.capture is not None

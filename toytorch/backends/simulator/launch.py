"""From a call to a launch: what is computed runs on the CPU at once, and is charged to a stream.

A call of an op on device arrays is one kernel, whatever its CPU kernel consists of. What the rest
of the framework does to arrays outside of ops (a cast, a write into part of one) is one as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.simulator.array import (
    Buffer,
    DeviceArray,
    ndarray,
    note_launch,
    out_of_memory,
    root_of,
)
from toytorch.backends.simulator.machine import (
    Machine,
    SimulatedDevice,
    Stream,
    blocking,
    users_line,
)
from toytorch.backends.simulator.roofline import kernel_time
from toytorch.backends.sparse import TABLES
from toytorch.facts import state
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Args, Fn, Kwargs
from toytorch.facts.trace import OutOfMemoryError

EMPTY = ("empty", "empty_like", "empty_strided")
FLOAT = np.dtype(np.float32)
NUMBERS = (int, float, bool, None.__class__)
PIECE = 2.0  # µs of the host for each further kernel of a compiled function
ASSERTION = (
    "{where}: block: [0,0,0], thread: [0,0,0] Assertion `index >= -size && index < size` failed."
)


class Launcher:
    """Runs functions of host arrays as kernels of a machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def run(
        self,
        name: str,
        function: Fn,
        args: Args,
        kwargs: Kwargs | None = None,
        *,
        target: DeviceArray | None = None,
        writes: Sequence[Any] = (),
        flops: float | None = None,
        product: bool = False,
        waits: bool = False,
        kernels: Sequence[tuple[str, int, int, bool]] | None = None,
    ) -> Any:
        """The results of `function(*args)`, computed on a device.

        target   what the function may write into and return
        writes   arguments that it writes into besides
        flops    operations, one for each element unless given
        product  whether tensor cores may do them
        waits    whether the host needs to know something of the result, such as its shape
        kernels  what it consists of, if that is several: name, bytes, operations, product
        """
        reads: list[DeviceArray] = []
        host_args: list[Any] = []
        for value in args:
            if value.__class__ is DeviceArray:
                reads.append(value)
                host_args.append(value.held)
            else:
                host_args.append(on_host(value, reads))
        if target is None and kernels is None and not waits and not kwargs and name not in EMPTY:
            return self.plain(name, function, host_args, reads, flops, product, writes)
        host_kwargs = {k: on_host(v, reads) for k, v in kwargs.items()} if kwargs else {}
        return self.any(
            name, function, host_args, host_kwargs, reads, target, writes, flops, product, waits,
            kernels,
        )  # fmt: skip

    def any(
        self,
        name: str,
        function: Fn,
        host_args: list[Any],
        host_kwargs: dict[str, Any],
        reads: list[DeviceArray],
        target: DeviceArray | None,
        writes: Sequence[Any],
        flops: float | None,
        product: bool,
        waits: bool,
        kernels: Sequence[tuple[str, int, int, bool]] | None,
    ) -> Any:
        """`run` with arrays of the host for those of the device, which are `reads`."""
        machine = self.machine
        device = one_device(reads) if reads else machine.device
        stream = self.stream_for(device, reads)
        if device.error is not None:
            machine.check(device)
        source = users_line(4)  # this function is called by `run` or `plain`
        if machine.capture is not None:
            machine.capture.enter(stream)
            used = [*reads, *writes, target]
            machine.capture.keep(a for a in used if a.__class__ is DeviceArray)
        try:
            made = run_on(device.name, function, host_args, host_kwargs)
        except (IndexError, RuntimeError) as error:
            call = _Call(function, host_args, host_kwargs, device)
            made = self.late(device, stream, name, call, error)
        wrapped: Any
        if target is None and is_new(made, reads):  # as most results are
            wrapped = DeviceArray(made, Buffer(device, stream, made, source, name not in EMPTY))
            written, views = [wrapped], 0
        else:
            results = _Results(self, device, stream, reads, target, source)
            wrapped = results.wrap(made)
            written, views = results.written, results.views
        written += [array for array in writes if array.__class__ is DeviceArray]
        if (not written and views) or name in EMPTY:
            return wrapped  # a view, or memory that nothing is written to: nothing runs
        traffic, size, kind = figures_of([*written, *reads])
        work = size if flops is None else int(flops)
        if machine.capture is None and kernels is None:
            machine.launched(stream, name, traffic, work, kind, product, size, source)
            kernels = ()
        elif kernels is None:
            kernels = ((name, traffic, work, product),)
        if machine.capture is not None:  # nothing runs now
            spans = [
                (what, *device.cost(moved, work, kind, matrix, size)[:2], moved, work)
                for what, moved, work, matrix in kernels
            ]
            call = _Call(function, host_args, host_kwargs, device)
            machine.capture.add(spans, call, wrapped, reads, written)
            return wrapped
        cost = machine.host.call
        for what, moved, work, matrix in kernels:
            length, limit, share, *_ = device.cost(moved, work, kind, matrix, size)
            machine.queue(
                stream, what, length, source=source, bytes=moved, flops=work, limit=limit,
                share=share, cost=cost,
            )  # fmt: skip
            cost = PIECE
        note_launch(machine, stream, reads, written, name, source)
        if waits:
            machine.wait_for(stream, f"{name} needs a shape", source)
        return wrapped

    def plain(
        self,
        name: str,
        function: Fn,
        host_args: list[Any],
        reads: list[DeviceArray],
        flops: float | None = None,
        product: bool = False,
        writes: Sequence[Any] = (),
        asker: Any = None,
    ) -> Any:
        """`run` for what most calls are: one kernel that makes its results. `host_args` are the
        arguments with arrays of the host, `reads` the device's arrays that these stand for, and
        `asker.line`, where it is not None yet, the user's line that asks for all of a backward pass.
        """
        machine = self.machine
        if machine.capture is not None:
            return self.any(
                name, function, host_args, {}, reads, None, writes, flops, product, False, None
            )
        device = machine.device if not reads else reads[0].buffer.device
        traffic = size = 0
        for array in reads:
            held = array.held
            traffic += held.nbytes
            elements = held.size
            size = max(size, elements)
            if array.buffer.device is not device:
                one_device(reads)
        streams = device.streams
        stream = streams[0] if len(streams) == 1 else self.stream_for(device, reads)
        if device.error is not None:
            machine.check(device)
        source = None if asker is None else asker.line
        if source is None:
            source = users_line(3)  # its callers are of this package
            if asker is not None:
                asker.line = source
        local = state.local
        before, modes = local.place, local.modes
        local.place = device.name
        if modes:
            local.modes = ()
        try:
            made = function(*host_args)
        except (IndexError, RuntimeError) as error:
            call = _Call(function, host_args, {}, device)
            made = self.late(device, stream, name, call, error)
        finally:
            local.place = before
            if modes:
                local.modes = modes
        wrapped: Any
        if not writes and is_new(made, reads):  # as most results are
            wrapped = DeviceArray(made, Buffer(device, stream, made, source, name not in EMPTY))
            written, kind = [wrapped], made.dtype
            traffic += made.nbytes
            size = max(size, made.size)
        else:
            if made is None and not writes:
                return None  # it has nothing faster than the ops that it stands for
            wrapped, written = None, [a for a in writes if a.__class__ is DeviceArray]
            if made is not None:
                results = _Results(self, device, stream, reads, None, source)
                wrapped = results.wrap(made)
                written = results.written + written
                if not written and results.views:
                    return wrapped  # a view: nothing runs
            traffic, size, kind = figures_of([*written, *reads])
        work = size if flops is None else int(flops)
        machine.launched(stream, name, traffic, work, kind, product, size, source)
        note_launch(machine, stream, reads, written, name, source)
        return wrapped

    def stream_for(self, device: SimulatedDevice, arrays: list[DeviceArray]) -> Stream:
        """The stream a kernel goes to: the current one, or in a backward pass that of its operands,
        which waits for what made them (as PyTorch's engine has it)."""
        if len(device.streams) == 1:
            return device.streams[0]
        machine = self.machine
        if not state.local.backward or machine.capture is not None:
            return machine.stream_of(device)
        stream = arrays[0].buffer.stream if arrays else machine.stream_of(device)
        for array in arrays:
            history = array.buffer
            if history.is_of(stream.actor):
                continue  # nobody else has touched it
            for access in history.open_for(stream.clock):
                if access.writes and access.actor != stream.actor:
                    for other in device.streams:
                        if other.actor == access.actor:
                            stream.tail = max(stream.tail, other.tail)
                            for actor, tick in other.clock.items():
                                stream.clock[actor] = max(tick, stream.clock.get(actor, 0))
        machine.backward.add(stream)
        return stream

    def adopt(self, held: Any, device: SimulatedDevice, stream: Stream, source: Any) -> DeviceArray:
        """A device array over memory that a kernel has made."""
        root = root_of(held)
        if not root.flags.writeable or (root is not held and root.nbytes > 2 * held.nbytes):
            held = root = np.array(held, order="K", copy=True)
        return DeviceArray(held, Buffer(device, stream, root, source))

    def refuse_too_large(self, args: Args, kwargs: Kwargs) -> None:
        """Raises OutOfMemoryError for new arrays that no device of this kind could hold, before the
        host is asked for as much."""
        shape = kwargs.get("shape", args[0] if args else ())
        sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
        kind = kwargs.get("dtype") or next((a for a in args[1:] if isinstance(a, np.dtype)), None)
        size = math.prod(sizes) * np.dtype(kind or np.float64).itemsize
        device = self.machine.device
        if size > device.allocator.limit:
            device.memory.statistics.shortages += 1
            raise OutOfMemoryError(out_of_memory(device, size))

    def late(
        self, device: SimulatedDevice, stream: Stream, name: str, call: _Call, error: Exception
    ) -> Any:
        """The results of a kernel that met an index out of range: they hold something, and the
        device has an error. Any other error is raised: it was found before a kernel was launched.
        """
        if self.machine.capture is not None:
            raise error
        try:
            made = call.with_indices_zero()
        except Exception:
            raise error from None
        self.machine.check(device)
        length, _ = kernel_time(device.card, 0, 0, np.dtype("float32"))
        self.machine.queue(stream, name, length, source=users_line(), blocks=False)
        self.machine.fail(device, stream, ASSERTION.format(where=f"{name}: {error}"))
        if blocking():
            self.machine.synchronise(stream)
        return made


def on_host(value: Any, reads: list[DeviceArray]) -> Any:
    """An argument with host arrays for device arrays, which `reads` gets."""
    kind = value.__class__
    if kind is DeviceArray:
        reads.append(value)
        return value.held
    if kind in NUMBERS:
        return value
    if kind is list or kind is tuple:
        return kind([on_host(v, reads) for v in value])
    if kind is dict:
        return {k: on_host(v, reads) for k, v in value.items()}
    if getattr(value, "is_array_module", False):
        return np
    if kind in TABLES and value.values.__class__ is DeviceArray:
        return value.mapped(lambda v: on_host(v, reads))
    return value


def one_device(arrays: list[DeviceArray]) -> SimulatedDevice:
    """The device of all operands; RuntimeError where they are on several."""
    found = arrays[0].buffer.device
    for array in arrays:
        device = array.buffer.device
        if device is not found:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"cuda:{found.index} and cuda:{device.index}!"
            )
    return found


def figures_of(arrays: list[DeviceArray]) -> tuple[int, int, np.dtype]:
    """What a kernel that touches some arrays moves, in bytes, its elements, and its type."""
    traffic = size = 0
    for array in arrays:
        held = array.held
        traffic += held.nbytes
        size = max(size, held.size)
    return traffic, size, arrays[0].held.dtype if arrays else FLOAT


def run_on(place: device_class, function: Fn, args: Sequence[Any], kwargs: Kwargs) -> Any:
    """`function(*args)` as a kernel: random numbers are the device's, and nobody watches."""
    local = state.local
    before, modes = local.place, local.modes
    local.place, local.modes = place, ()
    try:
        return function(*args, **kwargs)
    finally:
        local.place, local.modes = before, modes


def is_new(made: Any, reads: list[DeviceArray]) -> bool:
    """Whether a result is an array in memory of its own."""
    if made.__class__ is not ndarray or made.base is not None:
        return False
    new: bool = made.flags.writeable
    for array in reads:
        if array.buffer.root is made:  # an operand, returned as it is
            new = False
    return new


class _Call:
    """A function with its host arguments, which can be called again."""

    def __init__(
        self, function: Any, args: list[Any], kwargs: Kwargs, device: SimulatedDevice
    ) -> None:
        self.function, self.args, self.kwargs, self.device = function, args, kwargs, device

    def __call__(self) -> Any:
        return run_on(self.device.name, self.function, self.args, self.kwargs)

    def with_indices_zero(self) -> Any:
        """The results with all indices zero: the shapes are right, which is all that matters.
        RuntimeError where there are none."""
        found = False

        def zeroed(value: Any) -> Any:
            nonlocal found
            if isinstance(value, ndarray) and value.dtype.kind in "iu":
                found = True
                return np.zeros_like(value)
            if isinstance(value, (list, tuple)):
                return value.__class__(zeroed(v) for v in value)
            return value

        args = [zeroed(a) for a in self.args]
        if not found:
            raise RuntimeError("there are no indices")
        return _Call(self.function, args, self.kwargs, self.device)()


class _Results:
    """Host results as device arrays: new memory, views of operands, or what was written into."""

    def __init__(
        self,
        launcher: Launcher,
        device: SimulatedDevice,
        stream: Stream,
        reads: list[DeviceArray],
        target: DeviceArray | None,
        source: Any,
    ) -> None:
        self.launcher, self.device, self.stream = launcher, device, stream
        self.target, self.source = target, source
        self.owners = {id(a.buffer.root): a for a in reads}
        if target is not None:
            self.owners.setdefault(id(target.buffer.root), target)
        self.written: list[DeviceArray] = []
        self.views = 0

    def wrap(self, made: Any) -> Any:
        """The results on the device."""
        kind = made.__class__
        if kind is ndarray or isinstance(made, ndarray):
            return self.array(made)
        if isinstance(made, np.generic):
            return self.array(np.asarray(made))
        if kind is list or kind is tuple:
            return kind(self.wrap(m) for m in made)
        if isinstance(made, tuple):  # a named result
            return kind(*(self.wrap(m) for m in made))
        if kind in TABLES:
            return made.mapped(self.wrap)
        return made

    def array(self, made: Any) -> DeviceArray:
        """One result."""
        target = self.target
        if target is not None and made.shape == target.shape:
            if made is not target.held:
                np.copyto(target.held, made, casting="unsafe")
            self.written.append(target)
            return target
        owner = self.owners.get(id(root_of(made)))
        if owner is not None:
            self.views += 1
            return owner if made is owner.held else DeviceArray(made, owner.buffer)
        array = self.launcher.adopt(made, self.device, self.stream, self.source)
        self.written.append(array)
        return array

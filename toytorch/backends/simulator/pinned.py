"""Pinned memory: pages of the host that a device's copy engine can reach by itself.

A copy from or to them goes on while Python does. So the host must not write to what is still being
read, nor read what is still being written: every use of such memory by an op is compared with the
copies under way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.numpy import NumpyBackend
from toytorch.backends.simulator.array import bounds, ndarray, root_of
from toytorch.backends.simulator.machine import Machine, Stream, users_line
from toytorch.backends.simulator.races import HOST, Access, History, Race
from toytorch.facts.hints import Args, Array, Fn


class PinnedArray(np.ndarray):
    """A NumPy array over pinned memory; the array that owns the memory has its history."""

    history: History

    def __array_finalize__(self, parent: object) -> None:
        """Views have no history of their own."""

    def item(self, *where: object) -> Any:
        """One element, once nothing races with the look at it."""
        return base.of_array(self).to_numpy(self).item(*where)

    def __reduce__(self) -> Any:
        return self.view(ndarray).__reduce__()


def pinned_like(array: Array) -> PinnedArray:
    """New pinned memory for an array of that shape, type and layout."""
    made = np.empty_like(array, subok=False).view(PinnedArray)
    owner = root_of(made)
    if not isinstance(owner, PinnedArray):  # `made` is a view of the memory it has alone
        made.history = History(made.nbytes)
    return made


def history_of(array: PinnedArray) -> tuple[History, int]:
    """The history of the memory and the address where it begins."""
    owner: Any = array
    while isinstance(owner.base, PinnedArray):
        owner = owner.base
    if not hasattr(owner, "history"):
        owner.history = History(owner.nbytes)
    return owner.history, owner.__array_interface__["data"][0]


def note(
    machine: Machine,
    array: PinnedArray,
    writes: bool,
    what: str,
    source: tuple[str, int] | None,
    stream: Stream | None = None,
) -> None:
    """Takes one access of pinned memory, by the host or by a copy on a stream, into its history."""
    if not array.size:
        return
    history, start = history_of(array)
    if stream is None:
        machine.clock[HOST] += 1
        machine.learned += 1
        actor, clock, where = HOST, machine.clock, "the host"
    else:
        actor, clock, where = stream.actor, stream.clock, stream.name
    low, high = bounds(array)
    entry = (
        actor, clock[actor], writes, low - start, high - start, what, where, source,
        array.view(ndarray),
    )  # fmt: skip
    raced = history.add(entry, clock)
    if raced is not None:
        advice = (
            "Let the host wait for the copy: event.synchronize(), stream.synchronize() or "
            "torch.cuda.synchronize()."
        )
        memory = f"{high - low} bytes of pinned memory"
        machine.races.report(Race(memory, raced, Access(*entry), advice))


class PinnedBackend(NumpyBackend):
    """The CPU, with a look at copies under way before pinned memory is read or written."""

    array_type: type = PinnedArray
    plain = None

    def __init__(self, machine: Callable[[], Machine]) -> None:
        self.machine = machine

    def launch(self, name: str, function: Fn, args: Args, target: Any = None, **more: Any) -> Any:
        """Runs a CPU kernel on plain arrays, once nothing races with it."""
        machine, source = self.machine(), users_line()

        def plain(value: object) -> Any:
            if value.__class__ is PinnedArray:
                note(machine, value, value is target, name, source)
                return value.view(ndarray)
            if isinstance(value, (list, tuple)):
                return value.__class__(plain(v) for v in value)
            return value

        for array in more.get("writes", ()):
            if array.__class__ is PinnedArray:
                note(machine, array, True, name, source)
        made = function(*(plain(a) for a in args))
        if target is not None and isinstance(made, ndarray) and made.shape == target.shape:
            if not np.may_share_memory(made, target) or made.dtype != target.dtype:
                np.copyto(target.view(ndarray), made, casting="unsafe")
            return target
        return made

    def flat(self, array: Array) -> Any:
        return super().flat(array.view(ndarray)).view(PinnedArray)

    def as_strided(self, flat: Array, shape: Any, strides: Any, offset: int) -> Any:
        if 0 in shape:
            return flat[:0].reshape(shape)
        step = flat.itemsize
        return PinnedArray(shape, flat.dtype, flat, offset * step, [s * step for s in strides])

    def to_numpy(self, array: Any) -> Any:
        note(self.machine(), array, False, "a read by Python", users_line())
        return array.view(ndarray)

    def from_numpy(self, array: Array) -> Any:
        return array.view(ndarray)

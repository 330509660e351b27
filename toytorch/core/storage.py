"""The memory behind tensors. What programs see of it is in `core.storages`."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.no_elements import lying, offset
from toytorch.facts import state
from toytorch.facts.device import device
from toytorch.facts.hints import Array


class Storage:
    """A flat run of memory shared by every view of it.

    `version` counts writes: a tensor saved for backward remembers the version it saw, so that a
    later write is noticed. Most tensors never need one; it is made at the first view or write.
    """

    __slots__ = (
        "array", "conjugates", "face", "fixed", "guarded_views", "memory", "origin", "version",
    )  # fmt: skip
    guarded_views: Any  # weak references to views that must not be written to, where there are some
    origin: Storage  # the same memory with another count, where this was made of one; seldom there
    face: Any  # a weak reference to its UntypedStorage; seldom there
    conjugates: list[Any]  # weak references to the `Conjugated` of a `Mirrored`; there of no other

    def __init__(self, array: Array, memory: Array | None = None) -> None:
        self.array = array  # any array over the memory: `flat()` finds its full extent
        self.memory = memory  # the flat array, where only part of NumPy's memory is ours
        self.version = 0
        self.guarded_views = None
        self.fixed = False  # True where others hold the memory, so that it cannot grow

    def flat(self) -> Any:
        """A one-dimensional array over the whole memory, in elements of the first view's type."""
        if self.memory is not None:
            return self.memory
        return base.of_array(self.array).flat(self.array)

    def __deepcopy__(self, memo: dict[Any, Any]) -> Storage:
        flat, root = self.flat(), self
        while hasattr(root, "origin"):
            root = root.origin
        key: Any = ("memory", id(root))  # which several objects may count
        made = memo.get(key) if flat.size else None
        if made is None:
            made = flat.copy()
            memo[key] = made
        return Storage(made, made)

    def refuse_resizing(self) -> None:
        """Refuses what would need other memory, where others look at this: arrays, buffers."""
        if self.fixed:
            raise RuntimeError("Trying to resize storage that is not resizable")

    def memory_at(self) -> tuple[int, int]:
        """Where the memory begins, and its bytes."""
        flat = self.flat()
        return base.of_array(flat).data_ptr(flat), int(flat.nbytes)

    def counted_anew(self, version: int) -> Storage:
        """The same memory with a count of writes of its own."""
        made = Storage(self.array, self.memory)
        made.version = version
        made.origin = self
        made.fixed = self.fixed
        if self.__class__ is Mirrored:
            become(made, Mirrored)
            made.conjugates = self.conjugates
        return made

    def others(self) -> list[Storage]:
        """The storages of the same memory that count by themselves, as far as somebody holds them."""
        found, left = list[Storage](), [self]
        while left:
            one = left.pop()
            made = [s for s in gc.get_referrers(one) if isinstance(s, Storage)]
            near = [*made, getattr(one, "origin", one)]
            new = [s for s in near if s is not self and not any(s is f for f in found)]
            found += new
            left += new
        return found

    def counted_with(self, other: Storage) -> Storage:
        """The same memory, whose writes are counted together with those of another."""
        made = CountedElsewhere(self.array, self.memory)
        made.counter = other
        made.origin = self
        return made

    def __reduce__(self) -> Any:
        flat = self.flat()
        backend = base.of_array(flat)
        where = backend.device(flat)
        if where.type == "meta":
            return _rebuild_without_bytes, (flat.size, flat.dtype)
        return _rebuild, (backend.to_numpy(flat), str(where))


def _rebuild_without_bytes(size: int, kind: Any) -> Storage:
    placed = base.of_device(device("meta")).xp.empty(size, kind)
    return Storage(placed, placed)


def _rebuild(flat: Array, where: str) -> Storage:
    placed = base.of_device(device(where)).from_numpy(flat)
    return Storage(placed, placed)


class CountedElsewhere(Storage):
    """The memory that a tensor was given as its `data`, while views of what it showed before are
    there: writes to either are counted for both."""

    __slots__ = ("counter",)
    counter: Any

    def __init__(self, array: Array, memory: Array | None = None) -> None:
        self.counter = None
        super().__init__(array, memory)

    @property
    def version(self) -> int:
        """The writes that the other memory counts."""
        return 0 if self.counter is None else int(self.counter.version)

    @version.setter
    def version(self, value: int) -> None:
        if self.counter is not None:
            self.counter.version = value

    def memory_at(self) -> tuple[int, int]:
        """Where the memory begins, as programs see it."""
        return self.origin.memory_at()

    def written(self) -> None:
        """Brings the conjugates of this memory into step after a write."""
        origin: Any = self.origin
        if hasattr(origin, "written"):
            origin.written()


def become(storage: Any, kind: type[Storage]) -> None:
    """Makes a storage one of another class, which has the same slots."""
    storage.__class__ = kind


class Mirrored(Storage):
    """Memory of complex numbers that is also seen conjugated: what is written to it is copied to
    what the conjugates show."""

    __slots__ = ()

    def written(self, but: Conjugated | None = None) -> None:
        """Brings the conjugates into step after a write, all but one."""
        left = [ref for ref in self.conjugates if ref() is not None]
        for ref in left:
            conjugate = ref()
            if conjugate is not None and conjugate is not but:
                np.conjugate(conjugate.theirs, out=conjugate.mine)
        self.conjugates = left
        if not left:
            become(self, Storage)

    def part(self) -> None:
        """Ends it: this memory will move."""
        for ref in self.conjugates:
            conjugate = ref()
            if conjugate is not None:
                conjugate.mine = conjugate.theirs = None
        self.conjugates = []
        become(self, Storage)


# Bytes of a memory that is conjugated as a whole, so that any view may be made of it.
SMALL = 1 << 14


def place(array: Array, flat: Array) -> int:
    """The bytes from the beginning of a memory to an array in it."""
    if not array.size:
        return offset(array, flat) * array.itemsize
    return int(base.of_array(array).data_ptr(array) - base.of_array(flat).data_ptr(flat))


def laid(array: Array, memory: Array, at: int) -> Any:
    """The layout of an array over another memory, from a byte on."""
    if array.size:
        return np.ndarray(array.shape, array.dtype, memory, at, array.strides)
    nothing = memory.view(np.uint8)[:0].view(array.dtype)
    return lying(nothing, array.shape, array.strides, at)


class Conjugated(CountedElsewhere):
    """The conjugates of complex numbers in memory. PyTorch marks a view, and conjugates whenever it
    is read; here they are computed at once, and a write to either memory is copied to the other."""

    __slots__ = ("__weakref__", "mine", "theirs")
    mine: Any  # an array over this memory, and one over the same places of the other;
    theirs: Any  # None when they have parted

    def __init__(self, primary: Storage, array: Array) -> None:
        flat = primary.flat()
        at, step = place(array, flat), array.itemsize
        count = flat.nbytes // step
        if flat.nbytes <= SMALL and not at % step:
            self.theirs = flat.view(np.uint8)[: count * step].view(array.dtype)
            self.mine = memory = np.conjugate(self.theirs)
        else:
            memory = np.zeros(flat.nbytes, np.uint8)
            self.theirs = array
        made = laid(array, memory, at)
        if self.theirs is array:
            self.mine = made
            np.conjugate(array, out=made)
            memory = memory[: count * step].view(array.dtype)
        super().__init__(made, memory)
        self.counter = primary
        conjugates = [*primary.conjugates] if primary.__class__ is Mirrored else []
        become(primary, Mirrored)
        primary.conjugates = [*conjugates, weakref.ref(self)]

    @property
    def guarded_views(self) -> Any:
        """Those of the other memory."""
        return None if self.counter is None else self.counter.guarded_views

    @guarded_views.setter
    def guarded_views(self, views: Any) -> None:
        if self.counter is not None:
            self.counter.guarded_views = views

    def written(self) -> None:
        """Brings the other memory, and other conjugates of it, into step after a write."""
        if self.theirs is not None:
            np.conjugate(self.mine, out=self.theirs)
            self.counter.written(self)

    def counted_anew(self, version: int) -> Storage:
        """The same memory with a count of writes of its own."""
        made = super().counted_anew(version)
        become(made, OfConjugated)
        return made

    def part(self) -> None:
        """Ends it: this memory will move."""
        self.mine = self.theirs = None

    def memory_at(self) -> tuple[int, int]:
        """Where the memory begins, as programs see it: they are one, until this one has moved."""
        return self.counter.memory_at() if self.theirs is not None else Storage.memory_at(self)

    def shift(self) -> int:
        """The bytes from a place of this memory to the same place of the other."""
        mine, theirs = self.flat(), self.counter.flat()
        return int(base.of_array(theirs).data_ptr(theirs) - base.of_array(mine).data_ptr(mine))

    def back(self, array: Array) -> Any:
        """The other memory in the layout of an array over this one."""
        other = self.counter.flat().view(np.uint8)
        return laid(array, other, place(array, self.flat()))


class OfConjugated(Storage):
    """A memory of conjugates with a count of its own: the same one, as far as programs can tell."""

    __slots__ = ()

    def memory_at(self) -> tuple[int, int]:
        """Where the memory begins, as programs see it."""
        return self.origin.memory_at()

    def written(self) -> None:
        """Brings the other memory into step after a write, which is counted here alone."""
        origin: Any = self.origin
        if origin.theirs is not None:
            np.conjugate(origin.mine, out=origin.theirs)
            Mirrored.written(origin.counter, origin)


class InferenceStorage(Storage):
    """The memory of a tensor made in inference mode: its writes are not counted, so that nothing
    computed from it can be differentiated."""

    __slots__ = ()

    @property
    def version(self) -> int:
        """Raises RuntimeError: whoever asks wants to save the tensor for backward."""
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
            "inference mode in computation tracked by autograd. To work around this, you can make "
            "a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
            "instead of `torch.inference_mode()`."
        )

    @version.setter
    def version(self, value: int) -> None:
        """Writes are not counted."""

    def shown(self) -> Storage:
        """The same memory for what `detach` and `data` give, outside of inference mode."""
        kind = InferenceStorage if state.local.inference else ShownInference
        made = kind(self.array, self.memory)
        made.origin = self
        return made


class UncountedStorage(InferenceStorage):
    """Ordinary memory that an inference tensor was given as its `data`: there is still no count."""

    __slots__ = ()


class ShownInference(Storage):
    """The memory of an inference tensor under what `detach` or `data` gave of it, through which it
    may be written to. Views of that are inference tensors again."""

    __slots__ = ()

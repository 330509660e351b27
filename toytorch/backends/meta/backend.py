"""The backend of the device "meta", behind the same names as the others."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from toytorch.backends import base
from toytorch.backends.launching import Functions, give_operators
from toytorch.backends.meta.array import MetaArray, WrappedArray, wrapped
from toytorch.backends.meta.infer import META, Inference
from toytorch.facts import state
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Array, Fn, Shape


class MetaBackend:
    """Arrays without memory: calls tell what their results would look like."""

    name = "meta"
    module = "meta"
    array_type = MetaArray

    def __init__(self) -> None:
        self.inference = Inference()
        self.xp = Functions(lambda: self.inference, name="meta")
        self.kernels: dict[str, Any] = {}

    def is_available(self) -> bool:
        return True

    wrapped = staticmethod(wrapped)

    def device_count(self) -> int:
        return 1

    def device(self, array: MetaArray) -> device_class:
        return array.placed if isinstance(array, WrappedArray) else META

    def on(self, where: device_class) -> Any:
        return contextlib.nullcontext()

    def to_numpy(self, array: MetaArray) -> NoReturn:
        raise array.refusal

    def from_numpy(self, array: Array) -> MetaArray:
        return MetaArray.new(
            array.shape, array.dtype, None if array.flags.c_contiguous else array.strides
        )

    def flat(self, array: MetaArray) -> MetaArray:
        size = array.itemsize
        return array.at(0, (array.memory.nbytes // size,), (size,), array.dtype)

    def data_ptr(self, array: MetaArray) -> int:
        return array.offset

    def as_strided(self, flat: MetaArray, shape: Shape, strides: Shape, offset: int) -> MetaArray:
        size = flat.itemsize
        return flat.at(offset * size, shape, [s * size for s in strides], flat.dtype)

    def generator(self, seed: int) -> Any:
        return NoDraws(seed)

    def synchronize(self) -> None:
        """Nothing is ever computed."""

    # -- calls that are handed over whole ---------------------------------------------------------

    plain = None

    def launch(self, name: str, function: Fn, args: tuple[object, ...], **how: Any) -> Any:
        """What the results of `function(*args)` look like."""
        return self.inference.run(name, function, args, **how)

    def launch_graph(self, name: str, function: Fn, arrays: Sequence[Any], kernels: object) -> Any:
        """What the results of a compiled function look like."""
        return self.inference.run(name, function, tuple(arrays))

    def without_time(self, array: MetaArray) -> NoReturn:
        """There are no elements to plan with."""
        raise array.refusal

    def copy_across(self, target: Any, source: Any, non_blocking: bool) -> None:
        """A copy to an array without memory does nothing; there is none from it."""
        if not isinstance(target, MetaArray):
            raise source.refusal


class NoDraws:
    """A source of random numbers that are not there."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.place: Any = None

    def get_state(self) -> bytes:
        """Nothing: the stream is always where it was."""
        return b""

    def set_state(self, state: bytes) -> None:
        """Changes nothing."""

    def drawn(self, count: int, kind: npt.DTypeLike = np.float64) -> Any:
        """`count` numbers without memory; zeros where a kernel asks for them."""
        kind = np.float32 if np.dtype(kind).itemsize < 4 else kind
        if state.local.place is not None:
            return np.zeros(count, kind)
        return MetaArray.new((count,), kind)

    def uniform(self, count: int, type: npt.DTypeLike, low: float = 0.0, high: float = 1.0) -> Any:
        """Numbers in [low, high)."""
        return self.drawn(count, type)

    def normal(
        self,
        count: int,
        type: npt.DTypeLike,
        mean: float = 0.0,
        std: float = 1.0,
        rows: bool = True,
    ) -> Any:
        """Normal numbers."""
        return self.drawn(count, type)

    def integers(self, count: int, low: int, high: int) -> Any:
        """Integers in [low, high)."""
        return self.drawn(count, np.int64)

    def whole(self, count: int, limit: int, wide: bool) -> Any:
        """Integers in [0, limit)."""
        return self.drawn(count, np.int64)

    def below(self, count: int, chance: float) -> Any:
        """Truth values."""
        return self.drawn(count, np.uint64).view(np.bool_)[:count]

    def factors(self, count: int, type: npt.DTypeLike, p: float) -> Any:
        """0, or 1/(1 - p)."""
        return self.drawn(count, type)

    def permutation(self, n: int) -> Any:
        """The numbers 0 … n - 1."""
        return self.drawn(n, np.int64)

    def poisson(self, rate: MetaArray) -> Any:
        """Counts with the rates given."""
        return self.drawn(rate.size, np.float64).reshape(rate.shape)

    gamma = poisson

    def binomial(self, count: MetaArray, chance: MetaArray) -> Any:
        """Counts of successes."""
        return self.poisson(count)

    def exponential(self, count: int, *of: float) -> Any:
        """Numbers of a distribution (float64)."""
        return self.drawn(count)

    cauchy = log_normal = geometric = exponential


def no_number(array: MetaArray) -> NoReturn:
    """Raises: there is no element that could be a number."""
    raise RuntimeError("Tensor.item() cannot be called on meta tensors")


backend = MetaBackend()
base.register("meta", backend)
base.queue(MetaArray, backend)
give_operators(MetaArray, lambda: backend.inference, no_number)

__all__ = ["MetaBackend", "backend"]

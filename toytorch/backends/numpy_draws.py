"""What ops draw, from a generator that has the methods of `numpy.random.Generator`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from toytorch.backends.generic import attempt
from toytorch.backends.mt19937 import work_type
from toytorch.facts.hints import Array


class NumpyDraws:
    """A `RandomSource` (`toytorch.backends.base`) over a generator with NumPy's methods.

    xp      the array module that the numbers are made with
    source  the generator, which has `seed`, `get_state` and `set_state` beside NumPy's methods
    """

    def __init__(self, xp: Any, source: Any) -> None:
        self.xp, self.source = xp, source

    @property
    def seed(self) -> int:
        """The seed of the stream."""
        return int(self.source.seed)

    def get_state(self) -> bytes:
        """The place in the stream."""
        return bytes(self.source.get_state())

    def set_state(self, state: bytes) -> None:
        """Goes to a place that `get_state` gave."""
        self.source.set_state(state)

    @property
    def place(self) -> bytes:
        """The same, for as long as the generator lives."""
        return self.get_state()

    @place.setter
    def place(self, place: bytes) -> None:
        self.set_state(place)

    def uniform(self, count: int, type: npt.DTypeLike, low: float = 0.0, high: float = 1.0) -> Any:
        """Numbers in [low, high)."""
        work = work_type(type)
        made = self.source.random(count, work)
        if (low, high) != (0, 1):
            made *= work(high - low)
            made += work(low)
        return made

    def normal(
        self,
        count: int,
        type: npt.DTypeLike,
        mean: float = 0.0,
        std: float = 1.0,
        rows: bool = True,
    ) -> Any:
        """Normal numbers."""
        work = work_type(type)
        made = self.source.standard_normal(count, work)
        if (mean, std) != (0, 1):
            made *= work(std)
            made += work(mean)
        return made

    def integers(self, count: int, low: int, high: int) -> Any:
        """Integers in [low, high)."""
        return self.source.integers(low, high, count)

    def whole(self, count: int, limit: int, wide: bool) -> Any:
        """Integers in [0, limit)."""
        return self.source.integers(0, limit, count)

    def below(self, count: int, chance: Array | float) -> Any:
        """Whether uniform numbers are below a chance, or each below its own."""
        return self.source.random(count) < chance

    def factors(self, count: int, type: npt.DTypeLike, p: float) -> Any:
        """0 with probability p, else 1/(1 - p)."""
        work: Any = work_type(type)
        kept = work(1) / work(1 - p)
        drawn = self.source.random(count, np.float32)
        made = attempt(self.xp, "factors", drawn, 1 - p, kept) if work is np.float32 else None
        return (drawn < 1 - p) * kept if made is None else made

    def exponential(self, count: int, rate: float = 1.0) -> Any:
        """Times between events."""
        return self.source.standard_exponential(count) / rate

    def cauchy(self, count: int, median: float, sigma: float) -> Any:
        """Numbers of Cauchy's distribution."""
        return median + sigma * self.source.standard_cauchy(count)

    def log_normal(self, count: int, mean: float, std: float) -> Any:
        """Numbers whose logarithms are normal."""
        return self.xp.exp(mean + std * self.source.standard_normal(count))

    def geometric(self, count: int, p: float) -> Any:
        """Numbers of trials up to the first success."""
        return self.source.geometric(p, count)

    def permutation(self, n: int) -> Any:
        """The numbers 0 … n - 1 in random order."""
        return self.source.permutation(n)

    def poisson(self, rate: Array) -> Any:
        """Counts of events with the rates given."""
        return self.source.poisson(rate)

    def binomial(self, count: Array, chance: Array) -> Any:
        """How many of so many trials succeed."""
        return self.source.binomial(count.astype(np.int64), chance)

    def gamma(self, shape: Array) -> Any:
        """Numbers of the gamma distribution with the shapes given."""
        return self.source.standard_gamma(shape)

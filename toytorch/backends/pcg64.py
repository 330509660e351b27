"""Faster random numbers of the CPU, which have nothing to do with PyTorch's: NumPy's PCG64.

They are there for those who asked for them (`toytorch.random.set_cpu_generator`). Normal numbers
come of NumPy's ziggurat, and dropout's factors of a hash of their places: one number drawn decides
them all, whichever thread works on which part.
"""

from __future__ import annotations

import ast
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from toytorch.backends.numpy_draws import NumpyDraws
from toytorch.facts.parts import of_part
from toytorch.kernels import hashed_mask

STATE_BYTES = 256


class HashedDraws(NumpyDraws):
    """A stream of NumPy's PCG64."""

    def __init__(self, seed: int) -> None:
        super().__init__(np, host_generator()(seed))

    place = of_part(
        "source.bit_generator.state",
        "The place in the stream, for the `place` of the same generator later on.",
        written=True,
    )

    def factors(self, count: int, type: npt.DTypeLike, p: float) -> Any:
        """0 with probability p, else 1/(1 - p): all from one number (`kernels.hashed_mask.mask`)."""
        return hashed_mask.mask(count, type, p, int(self.source.bit_generator.random_raw()))


@functools.cache
def host_generator() -> Any:
    """NumPy's generator with a state in bytes. `numpy.random` is imported with the first."""

    class HostGenerator(np.random.Generator):
        def __init__(self, seed: int) -> None:
            super().__init__(np.random.PCG64(seed))
            self.seed = seed

        def get_state(self) -> bytes:
            """The seed and the place in the stream, as text of 256 bytes."""
            state: Any = self.bit_generator.state
            place = state["state"]["state"], state["state"]["inc"]
            text = repr((self.seed, *place, state["has_uint32"], state["uinteger"]))
            return text.encode().ljust(STATE_BYTES)

        def set_state(self, state: bytes) -> None:
            """Goes to a place that `get_state` gave."""
            seed, number, inc, has, value = ast.literal_eval(state.decode().strip())
            self.seed = seed
            self.bit_generator.state = {
                "bit_generator": "PCG64",
                "state": {"state": number, "inc": inc},
                "has_uint32": has,
                "uinteger": value,
            }

    return HostGenerator

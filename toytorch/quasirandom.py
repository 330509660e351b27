"""Points that fill a cube more evenly than random ones do, like `torch.quasirandom`."""

from __future__ import annotations

from toytorch.core.random import Generator
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as dtypes
from toytorch.facts.hints import DType
from toytorch.ops.creation import random, sobol
from toytorch.ops.creation.create import zeros
from toytorch.ops.creation.ranges import arange
from toytorch.ops.shaping.rearrange import cat


class SobolEngine:
    """Draws Sobol's sequence in the cube [0, 1)^dimension, as it is or scrambled.

    Of n points the error of an average falls like 1/n rather than 1/√n, best for n a power of two.
    Scrambling multiplies each coordinate's bits by a random triangular matrix and adds random bits;
    it takes the same random numbers as PyTorch's. `seed` is of these; without one they come from the
    default generator. ValueError for fewer than 1 or more than 21,201 dimensions.

    >>> SobolEngine(2).draw(4)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500],
            [0.2500, 0.7500]])
    """

    MAXBIT = sobol.BITS
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self.sobolstate = zeros(dimension, self.MAXBIT, device="cpu", dtype=dtypes.int64)
        sobol._sobol_engine_initialize_state_(self.sobolstate, dimension)
        if scramble:
            self._scramble()
        else:
            self.shift = zeros(dimension, device="cpu", dtype=dtypes.int64)
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        bits = (self.dimension, self.MAXBIT)
        added = random.randint(2, bits, device="cpu", generator=generator)
        self.shift = (added * 2 ** arange(self.MAXBIT, device="cpu")).sum(1)
        matrices = random.randint(2, (*bits, self.MAXBIT), device="cpu", generator=generator).tril()
        sobol._sobol_engine_scramble_(self.sobolstate, matrices, self.dimension)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next n points, (n, dimension), of the default type or of `dtype`."""
        kind = dtypes.get_default_dtype() if dtype is None else dtype
        if self.num_generated == 0 and n == 1:
            made = self._first_point.to(kind)
        else:
            first = int(self.num_generated == 0)
            place = self.sobolstate, self.dimension, self.num_generated - 1 + first
            made, self.quasi = sobol._sobol_engine_draw(self.quasi, n - first, *place, dtype=kind)
            if first:
                made = cat((self._first_point.to(kind), made))
        self.num_generated += n
        return made if out is None else out.resize_as_(made).copy_(made)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next 2^m points; ValueError unless there are then a power of two of them in all."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1) != 0:
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Goes back to the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leaves out n points, at once."""
        first = int(self.num_generated == 0)
        sobol._sobol_engine_ff_(
            self.quasi, n - first, self.sobolstate, self.dimension, self.num_generated - 1 + first
        )
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        said = [f"dimension={self.dimension}"]
        if self.scramble:
            said.append("scramble=True")
        if self.seed is not None:
            said.append(f"seed={self.seed}")
        return f"{self.__class__.__name__}({', '.join(said)})"

"""Sobol's sequence, as `toytorch.quasirandom.SobolEngine` draws it.

Each dimension has a matrix of bits, kept as 30 direction numbers. Point k is the exclusive or of
those that the bits of k's Gray code name, and lies at that number over 2^30 (Sobol 1967; Antonov and
Saleev 1979). The direction numbers follow from a primitive polynomial and a few first numbers, found
by Joe and Kuo (2008): `data/README.md` cites them.
"""

from __future__ import annotations

import functools
from importlib.resources import files

import numpy as np

from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import dtype as dtypes
from toytorch.facts.hints import Array, DType
from toytorch.ops.define import public

BITS = 30  # of a point's coordinate, and direction numbers of a dimension
POINTS = 1 << BITS
DEGREE = 18  # of the last polynomials
BLOCK = 4096  # dimensions that are scrambled at once: 30 × 30 numbers for each


@functools.cache
def directions() -> Array:
    """The direction numbers of all dimensions, (30, 21201); bit 29 is worth a half."""
    file = files("toytorch.ops.creation").joinpath("data", "sobol.npz")
    with file.open("rb") as opened, np.load(opened) as table:
        half = 1 + 2 * np.cumsum(np.append(0, table["polynomials"].astype(np.int64)))
        bits = np.unpackbits(table["bits"])
    polynomials = np.union1d(half, [int(f"{p:b}"[::-1], 2) for p in half.tolist()])
    # Dimensions of one degree stand together: degree m's are starts[m] to starts[m + 1].
    starts = np.searchsorted(polynomials, 1 << np.arange(DEGREE + 2))
    made = np.zeros((BITS, len(polynomials)), np.int64)
    read = 0
    for i in range(DEGREE):
        count = len(polynomials) - starts[i + 1]
        high = bits[read : read + i * count].reshape(count, i).astype(np.int64)
        read += i * count
        made[i, starts[i + 1] :] = (1 + 2 * high @ (1 << np.arange(i))) << (BITS - 1 - i)
    made[:, 0] = 1 << np.arange(BITS)[::-1]  # van der Corput's sequence, of no polynomial
    for m in range(1, DEGREE + 1):
        own = slice(starts[m], starts[m + 1])
        # Row i is all ones where the coefficient of x^i is 1, i < m, and goes with number j - m + i.
        chosen = -(polynomials[own] >> np.arange(m)[:, None] & 1)
        for j in range(m, BITS):
            before = made[j - m : j, own]
            made[j, own] = np.bitwise_xor.reduce(before & chosen, axis=0) ^ before[0] >> m
    return made


def gray_of(basis: Array, number: int) -> Array:
    """The exclusive or of the rows of `basis` that the bits of a number name."""
    rows = [i for i in range(number.bit_length()) if number >> i & 1]
    return np.bitwise_xor.reduce(basis[rows], axis=0)


def basis_of(sobolstate: Array) -> Array:
    """(30, dimensions): what distinguishes point 2^i from point 0, so that G(k) is `gray_of(basis, k)`.

    Gray's code is linear: that of a ^ b is the exclusive or of those of a and b.
    """
    basis = sobolstate.T.astype(np.int32)  # 30 bits; half the memory of the state's numbers
    basis[1:] ^= sobolstate.T[:-1].astype(np.int32)
    return basis


def following(quasi: Array, n: int, sobolstate: Array, past: int) -> Array:
    """The n points after point `past`, which is `quasi`, as 30-bit integers (n, dimensions).

    They begin in a block of 2^m points, 2^m ≥ n, and end in it or in the next. Within an aligned
    block rows 2^i to 2^(i+1) are rows 0 to 2^i with one number applied to them all, so that each
    pass doubles what there is.
    """
    basis = basis_of(sobolstate)
    block = 1 << (n - 1).bit_length()
    start = (past + 1) // block * block
    skip = past + 1 - start
    rows = np.empty((skip + n, quasi.size), np.int32)
    rows[0] = quasi ^ gray_of(basis, past ^ start)
    size = 1
    while size < len(rows):
        apart = (
            basis[size.bit_length() - 1] if size < block else gray_of(basis, start + size ^ start)
        )
        taken = rows[size : 2 * size]
        np.bitwise_xor(rows[: len(taken)], apart, out=taken)
        size *= 2
    return rows[skip:]


def checked(quasi: Tensor | None, sobolstate: Tensor, last: int = 0) -> None:
    """RuntimeError for a state of another type, IndexError behind the last point."""
    if quasi is not None and quasi.dtype is not dtypes.int64:
        raise RuntimeError("quasi needs to be of type Long")
    if sobolstate.dtype is not dtypes.int64:
        raise RuntimeError("sobolstate needs to be of type Long")
    if last >= POINTS:  # PyTorch reads beyond its direction numbers there, and draws what it finds
        raise IndexError(
            f"Sobol's sequence has {POINTS} points, and this one would be number {last}"
        )


@public("_sobol_engine_draw")
def _sobol_engine_draw(
    quasi: Tensor,
    n: int,
    sobolstate: Tensor,
    dimension: int,
    num_generated: int,
    dtype: DType | None = None,
) -> tuple[Tensor, Tensor]:
    """The n points after the one numbered `num_generated`, which is `quasi`, and the last of them."""
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    given = (
        (n, int, "'n' (position 2) must be int"),
        (kind, dtypes.dtype, "'dtype' must be torch.dtype"),
    )
    for value, wanted, words in given:
        if not isinstance(value, wanted):
            said = f"argument {words}, not {type(value).__name__}"
            raise TypeError(f"_sobol_engine_draw(): {said}")
    checked(quasi, sobolstate, num_generated + n)
    if n < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {n}: [{n}, {dimension}]"
        )
    if kind not in (dtypes.float32, dtypes.float64):  # as PyTorch refuses it, in its words
        raise NotImplementedError(f"\"_sobol_engine_draw\" not implemented for '{kind.legacy}'")
    if n == 0:
        return wrap(np.empty((0, dimension), kind.numpy)), quasi.clone()
    rows = following(quasi._array, n, sobolstate._array, num_generated)
    points = rows.astype(kind.numpy)
    points *= points.dtype.type(1 / POINTS)
    return wrap(points), wrap(rows[-1].astype(np.int64))


@public("_sobol_engine_ff_")
def _sobol_engine_ff_(
    self: Tensor, n: int, sobolstate: Tensor, dimension: int, num_generated: int
) -> Tensor:
    """Takes point `num_generated`, which is `self`, to the n-th after it."""
    checked(self, sobolstate, num_generated + n)
    if n > 0:
        apart = gray_of(basis_of(sobolstate._array), num_generated ^ num_generated + n)
        self.copy_(wrap(self._array ^ apart))
    return self


@public("_sobol_engine_initialize_state_")
def _sobol_engine_initialize_state_(self: Tensor, dimension: int) -> Tensor:
    """Writes the direction numbers of the first dimensions to `self`, (dimension, 30)."""
    checked(None, self)
    return self.copy_(wrap(directions()[:, :dimension].T))


@public("_sobol_engine_scramble_")
def _sobol_engine_scramble_(self: Tensor, ltm: Tensor, dimension: int) -> Tensor:
    """Multiplies the bits of direction numbers by lower triangular matrices `ltm` of bits, modulo 2.

    `ltm` is (dimension, 30, 30); its diagonal is taken as ones, which keeps points apart (Owen 1998;
    the matrices are Matoušek's of the same year).
    """
    checked(None, self)
    if ltm.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {ltm.dtype.legacy}")
    worth = 1 << np.arange(BITS)[::-1]
    bits = ltm._array & 1
    lines = ((bits | np.eye(BITS, dtype=bits.dtype)) @ worth).astype(np.int32)  # (dimension, 30)
    for begin in range(0, dimension, BLOCK):
        part = slice(begin, begin + BLOCK)
        numbers = self._array[part].astype(np.int32)
        # Of each product of a line and a number: the number of ones, of which the parity is wanted.
        parity = np.bitwise_count(lines[part, :, None] & numbers[:, None, :]) & 1
        self[part] = wrap(np.einsum("dlj,l->dj", parity, worth))
    return self

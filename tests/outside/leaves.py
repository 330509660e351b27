"""The text of a tensor: every type, special values, and every way to lie in memory."""

from __future__ import annotations

import math
from random import Random

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int64", "int32", "uint8", "int8", "int16")
DTYPES = (
    ("float32",) * 10 + ("float64",) * 5 + ("float16", "bfloat16") * 2 + ("int64",) * 4
    + ("int32", "uint8", "int8", "int16", "bool", "bool", "complex64", "complex128")
)  # fmt: skip
SPECIAL = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1e30, 1e-30)
SHAPES = (
    (), (1,), (3,), (4,), (0,), (2, 3), (3, 3), (3, 1), (1, 3), (2, 0), (0, 3), (2, 3, 2), (2, 1, 3),
    (2, 2, 2, 3), (1, 2, 3, 2), (1, 1), (5,), (4, 2), (2, 3, 4), (1, 0, 2), (2, 2, 1, 2),
)  # fmt: skip


def number(rng: Random, dtype: str, special: bool) -> str:
    if dtype == "bool":
        return rng.choice(("True", "False"))
    if dtype in INTS:
        low = 0 if dtype == "uint8" else -3
        return str(
            rng.choice((127, 100)) if special and rng.random() < 0.1 else rng.randint(low, 5)
        )
    if dtype.startswith("complex"):
        a, b = (number(rng, "float32", special) for _ in range(2))
        return f"complex({a}, {b})"
    if special and rng.random() < 0.3:
        return repr(rng.choice(SPECIAL))
    if rng.random() < 0.2:
        return repr(rng.choice((0.0, 0.5, 1.0, 2.0, -1.0, -0.0, 3.0)))
    return repr(round(rng.gauss(0, 1.5), 3))


def literal(rng: Random, shape: tuple[int, ...], dtype: str, special: bool) -> str:
    """Nested lists of a shape; `torch.zeros` where there are no elements to show the shape by."""
    if 0 in shape:
        return f"torch.zeros({shape}, dtype=torch.{dtype})"

    def nested(shape: tuple[int, ...]) -> str:
        if not shape:
            return number(rng, dtype, special)
        return "[" + ", ".join(nested(shape[1:]) for _ in range(shape[0])) + "]"

    return f"torch.tensor({nested(shape)}, dtype=torch.{dtype})"


def permuted(shape: tuple[int, ...], order: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A shape in another order, and the order that brings it back."""
    return tuple(shape[i] for i in order), tuple(order.index(i) for i in range(len(order)))


def tensor(rng: Random, shape: tuple[int, ...], dtype: str, special: bool = False) -> str:
    """An expression for a tensor of a shape, which lies in memory in one way or another."""
    plain = literal(rng, shape, dtype, special)
    way, n = rng.random(), len(shape)
    if way < 0.45:
        return plain
    if way < 0.6 and n >= 2:
        order = rng.sample(range(n), n)
        other, back = permuted(shape, order)
        return f"{literal(rng, other, dtype, special)}.permute{back}"
    if way < 0.68 and n:
        d = rng.randrange(n)
        wide = tuple(s * 2 if i == d else s for i, s in enumerate(shape))
        at = ", ".join(rng.choice(("::2", "1::2")) if i == d else ":" for i in range(n))
        return f"{literal(rng, wide, dtype, special)}[{at}]"
    if way < 0.76 and n:
        narrow = tuple(1 if rng.random() < 0.6 else s for s in shape)
        return f"{literal(rng, narrow, dtype, special)}.expand{shape}"
    if way < 0.84 and n == 4:
        return f"{plain}.contiguous(memory_format=torch.channels_last)"
    if way < 0.9 and n:
        size = math.prod(shape)
        return f"{literal(rng, (size + 2,), dtype, special)}[{rng.randint(0, 2)}:][:{size}].reshape{shape}"
    if way < 0.95 and n:
        room = rng.randint(1, 4) + math.prod(shape)
        strides = tuple(rng.choice((0, 1, 1, 2)) for _ in shape)  # elements that share memory
        need = 1 + sum((s - 1) * t for s, t in zip(shape, strides)) if 0 not in shape else 1
        return f"{literal(rng, (max(room, need),), dtype, special)}.as_strided({shape}, {strides})"
    if n and dtype in ("float32", "float64", "int64") and 0 not in shape:
        order = rng.sample(range(n), n)
        other, back = permuted(shape, order)
        values = literal(rng, other, dtype, special)[len("torch.tensor(") :]
        return f"torch.from_numpy(np.array({values.replace('torch.', 'np.')}.transpose({back}))"
    return plain

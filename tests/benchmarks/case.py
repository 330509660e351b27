"""What a row of the table is, and what its work is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Work = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A row of the table."""

    name: str
    build: Callable[[Any], Work]
    target: float | None = None  # the ratio that was asked for
    inner: int = 200  # calls per timed sample
    samples: int = 60
    traffic: int = 0  # bytes that have to be read and written, where that is what takes the time
    flops: int = 0  # operations, where it is arithmetic that does
    random: bool = False  # whether the results of the two sides may differ


def values(m: Any, *shape: int, grad: bool = False) -> Any:
    """The same numbers for either side."""
    x = m.sin(m.arange(size(shape), dtype=m.float32)).reshape(shape)
    return x.requires_grad_(grad)


def size(shape: tuple[int, ...]) -> int:
    n = 1
    for k in shape:
        n *= k
    return n


def through(
    make: Callable[[Any], tuple[Any, Callable[[Any], Any], list[Any]]],
) -> Callable[[Any], Work]:
    """A function of x and its gradients, for x and what else it is made of.

    make(m) returns x, the function and the other leaves; the gradient that comes in is a tensor
    of the result's shape and layout.
    """

    def build(m: Any) -> Work:
        x, f, leaves = make(m)
        leaves = [v for v in (x, *leaves) if v.requires_grad]
        y = f(x)
        g = y.detach().clone().sin()

        def run() -> None:
            for leaf in leaves:
                leaf.grad = None
            f(x).backward(g)

        return run

    return build

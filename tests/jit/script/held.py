"""Classes that `test_objects` scripts, once for each package: their source has to be in a file."""

import enum
from typing import Any, NamedTuple


class Color(enum.Enum):
    RED = 1
    GREEN = 2


def classes(m: Any) -> Any:
    """A class with special methods, an enumeration, two named tuples."""

    class C:
        def __init__(self, n: int):
            self.n = n

        def __add__(self, o: int) -> int:
            return self.n + o

        def __iadd__(self, o: int) -> "C":
            self.n = self.n + o * 10
            return self

        def __isub__(self, o: int) -> "C":
            self.n -= o
            return self

        def __sub__(self, o: int) -> int:
            return self.n - o

        def __mul__(self, o: int) -> int:
            return self.n * o

        def __floordiv__(self, o: int) -> int:
            return self.n // o

        def __mod__(self, o: int) -> int:
            return self.n % o

        def __truediv__(self, o: int) -> float:
            return self.n / o

        def __len__(self) -> int:
            return self.n

        def __contains__(self, k: int) -> bool:
            return k == self.n

        def __enter__(self) -> int:
            self.n += 1
            return self.n

        def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
            self.n += 10

        def __call__(self, k: int) -> int:
            return k * self.n

        def __getitem__(self, k: int) -> int:
            return k + self.n

        def __setitem__(self, k: int, v: int) -> None:
            self.n = k * v

        def __eq__(self, o: "C") -> bool:
            return self.n == o.n

        def __ne__(self, o: "C") -> bool:
            return self.n != o.n

        def __lt__(self, o: "C") -> bool:
            return self.n < o.n

        def __neg__(self) -> int:
            return -self.n

        def __str__(self) -> str:
            return "C!"

    class P(NamedTuple):
        x: m.Tensor
        y: int

    class Q(NamedTuple):
        x: list[int] | None = None
        y: list[int] = [1, 2, 3]  # noqa: RUF012 - what the test is about
        z: dict[str, int] | None = {"a": 1}  # noqa: RUF012 - what the test is about

    return C, Color, P, Q

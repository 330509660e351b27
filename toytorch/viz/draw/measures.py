"""Times and bytes as they are written on an axis, in a tip, beside a curve."""

from __future__ import annotations

import math

_TIMES = (("s", 1e6), ("ms", 1e3), ("µs", 1.0))


def round_step(smallest: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50, … times a power of ten, from a thousandth on.

    >>> round_step(3.0), round_step(21.0)
    (5.0, 50.0)
    """
    power = 1e-3
    while True:
        for factor in (1, 2, 5):
            if factor * power >= smallest:
                return factor * power
        power *= 10


def ticks(first: float, last: float, count: int) -> list[tuple[float, str]]:
    """Round times in microseconds from `first` to `last`, at most about `count`, with their labels.

    All are in one unit, with as many digits as tell neighbours apart.

    >>> [label for _, label in ticks(0.0, 1000.0, 3)]
    ['0 ms', '0.5 ms', '1.0 ms']
    """
    step = round_step((last - first) / max(count, 1))
    number = math.ceil(first / step - 1e-9)
    unit, factor = _unit(max(abs(first), abs(last)))
    digits = max(0, -math.floor(math.log10(step / factor) + 1e-9))
    found = []
    while number * step <= last + step * 1e-9:
        value = number * step / factor
        found.append((number * step, f"{value:.{digits}f} {unit}" if value else f"0 {unit}"))
        number += 1
    return found


def time(us: float) -> str:
    """A time in the unit that suits it.

    >>> time(1500.0), time(12.3456), time(0.25)
    ('1.5 ms', '12.35 µs', '0.25 µs')
    """
    unit, factor = _unit(abs(us))
    return f"{us / factor:.4g} {unit}"


def clock(us: float) -> str:
    """A moment, to a hundredth of a microsecond or to six digits, whichever is less.

    >>> clock(67604.301), clock(123456.78), clock(12.0)
    ('67.6043 ms', '123.457 ms', '12 µs')
    """
    unit, factor = _unit(abs(us))
    before_the_point = len(str(int(abs(us) / factor)))
    digits = max(0, min(round(math.log10(factor)) + 2, 6 - before_the_point))
    whole, _, rest = f"{us / factor:.{digits}f}".partition(".")
    rest = rest.rstrip("0")
    return f"{whole}.{rest} {unit}" if rest else f"{whole} {unit}"


def _unit(us: float) -> tuple[str, float]:
    return next(((unit, factor) for unit, factor in _TIMES if us >= factor), _TIMES[-1])


def size(count: int) -> str:
    """Bytes in a unit that suits them.

    >>> size(100), size(3 << 20)
    ('100 B', '3 MB')
    """
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} B"


def size_ticks(most: int, count: int) -> list[int]:
    """Round numbers of bytes from 0 to `most`, about `count` of them.

    >>> [size(n) for n in size_ticks(28 << 20, 3)]
    ['0 B', '10 MB', '20 MB']
    """
    unit = next((1 << power for power in (30, 20, 10) if most >= 1 << power), 1)
    step = max(1, round(round_step(most / unit / max(count, 1)) * unit))
    return list(range(0, most + 1, step))


def rate(count: float, unit: str) -> str:
    """Something counted, in thousands, millions, … of its unit.

    >>> rate(5e9, "FLOP"), rate(2.1e12, "B/s")
    ('5 GFLOP', '2.1 TB/s')
    """
    for prefix, factor in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {prefix}{unit}"
    return f"{count:.3g} {unit}"

"""Times, sizes and shares as PyTorch's profiler writes them."""

from __future__ import annotations

UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}  # in microseconds


def time_text(us: float, unit: str | None = None) -> str:
    """Microseconds in the unit that suits them, or in the one that is asked for.

    >>> time_text(12.5), time_text(1234.5), time_text(12.5, "ms")
    ('12.500us', '1.234ms', '0.013ms')
    """
    if unit not in UNITS:
        unit = next((u for u, size in UNITS.items() if us >= size), "us")
    return f"{us / UNITS[unit]:.3f}{unit}"


def size_text(count: int) -> str:
    """Bytes in the unit that suits them.

    >>> size_text(5), size_text(-4096), size_text(5 << 20)
    ('5 B', '-4.00 KB', '5.00 MB')
    """
    for name, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {name}"
    return f"{count} B"


def share_text(us: float, total: float) -> str:
    """How much of the whole that is, in percent.

    >>> share_text(1, 8)
    '12.50%'
    """
    return f"{us * 100.0 / total:.2f}%" if total else "NaN"

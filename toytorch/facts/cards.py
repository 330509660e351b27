"""NVIDIA cards: the figures that a roofline and an occupancy are worked out from.

From NVIDIA's data sheets and white papers (V100, T4, A100, H100, H200, B200 and the GeForce RTX 3090
and 4090), and the table "Technical Specifications per Compute Capability" of the CUDA C++
Programming Guide. Rates are dense: no sparsity is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Card:
    """One model of card.

    Bandwidths are in bytes a second and rates in operations a second, both at their peak.
    """

    name: str
    capability: tuple[int, int]
    memory: int  # bytes
    bandwidth: float  # of its memory
    float32: float  # operations a second outside tensor cores
    float64: float
    tf32: float  # products of float32 matrices where TF32 is allowed; float32's rate without
    float16: float  # products of half-precision matrices on tensor cores
    host_link: float  # PCIe, one direction
    peer_link: float  # NVLink to another card, one direction; PCIe's where there is none
    multiprocessors: int
    clock: float  # cycles a second, at boost
    l2_cache: int  # bytes
    # of one multiprocessor
    shared_memory: int  # bytes
    shared_of_block: int  # bytes one block may have, once it asks for more than 48 KiB
    threads: int
    blocks: int
    registers: int = 65536
    registers_of_thread: int = 255
    threads_of_block: int = 1024
    warp: int = 32

    @property
    def warps(self) -> int:
        """Warps that one multiprocessor holds."""
        return self.threads // self.warp


KIB, GIB, GIGA, TERA = 1 << 10, 1 << 30, 1e9, 1e12
# The fields of a card, in its order: memory is in GiB, rates are in 10¹² operations a second, links
# in GB/s, caches and shared memory in KiB.
FIGURES = """
card     version memory GB/s  f32   f64  tf32   f16  host  peer SMs   GHz     L2 shared block threads blocks
V100         7.0     16  900 15.7   7.8  15.7   125 15.75   150  80  1.53   6144     96    96    2048     32
T4           7.5     16  320  8.1 0.254   8.1    65 15.75 15.75  40  1.59   4096     64    64    1024     16
A100         8.0     40 1555 19.5   9.7   156   312  31.5   300 108  1.41  40960    164   163    2048     32
RTX 3090     8.6     24  936 35.6 0.556  35.6    71  31.5 56.25  82 1.695   6144    100    99    1536     16
RTX 4090     8.9     24 1008 82.6  1.29  82.6 165.2  31.5  31.5 128  2.52  73728    100    99    1536     24
H100         9.0     80 3350 66.9  33.5 494.7 989.4    63   450 132  1.98  51200    228   227    2048     32
H200         9.0    141 4800 66.9  33.5 494.7 989.4    63   450 132  1.98  51200    228   227    2048     32
B200        10.0    180 8000   80    40  1100  2250    63   900 148 1.965 129024    228   227    2048     32
"""
UNITS = (GIB, GIGA, TERA, TERA, TERA, TERA, GIGA, GIGA, 1, GIGA, KIB, KIB, KIB, 1, 1)


def read(line: str) -> Card:
    """The card in a line of the table."""
    name, capability, *figures = line.rsplit(maxsplit=len(UNITS) + 1)
    major, minor = map(int, capability.split("."))
    values: list[Any] = [
        (float(f) if "." in f else int(f)) * unit for f, unit in zip(figures, UNITS)
    ]
    return Card(name.strip(), (major, minor), *values)


CARDS = {card.name: card for card in map(read, FIGURES.strip().splitlines()[1:])}


def card_of(name: str | Card) -> Card:
    """The card of that name, in any case of letters, with or without spaces.

    >>> card_of("rtx3090").multiprocessors, card_of("H100").warps
    (82, 64)
    >>> card_of("H1000")
    Traceback (most recent call last):
    ValueError: unknown card 'H1000'; known are V100, T4, A100, RTX 3090, RTX 4090, H100, H200, B200
    """
    if isinstance(name, Card):
        return name
    plain = {known.replace(" ", "").lower(): card for known, card in CARDS.items()}
    found = plain.get(str(name).replace(" ", "").lower())
    if found is None:
        raise ValueError(f"unknown card {name!r}; known are {', '.join(CARDS)}")
    return found

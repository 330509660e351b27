"""NVIDIA cards: the figures that a roofline and an occupancy are worked out from.

From NVIDIA's data sheets and white papers (V100, T4, A100, H100, H200, B200 and the GeForce RTX 3090
and 4090), and the table "Technical Specifications per Compute Capability" of the CUDA C++
Programming Guide. Rates are dense: no sparsity is counted.
"""

from __future__ import annotations

from dataclasses import dataclass


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


KIB, GIB, GB, TERA = 1 << 10, 1 << 30, 1e9, 1e12

CARDS = {
    card.name: card
    for card in (
        Card(
            "V100",
            (7, 0),
            16 * GIB,
            900 * GB,
            15.7 * TERA,
            7.8 * TERA,
            15.7 * TERA,
            125 * TERA,
            15.75 * GB,
            150 * GB,
            80,
            1.53e9,
            6144 * KIB,
            96 * KIB,
            96 * KIB,
            2048,
            32,
        ),
        Card(
            "T4",
            (7, 5),
            16 * GIB,
            320 * GB,
            8.1 * TERA,
            0.254 * TERA,
            8.1 * TERA,
            65 * TERA,
            15.75 * GB,
            15.75 * GB,
            40,
            1.59e9,
            4096 * KIB,
            64 * KIB,
            64 * KIB,
            1024,
            16,
        ),
        Card(
            "A100",
            (8, 0),
            40 * GIB,
            1555 * GB,
            19.5 * TERA,
            9.7 * TERA,
            156 * TERA,
            312 * TERA,
            31.5 * GB,
            300 * GB,
            108,
            1.41e9,
            40960 * KIB,
            164 * KIB,
            163 * KIB,
            2048,
            32,
        ),
        Card(
            "RTX 3090",
            (8, 6),
            24 * GIB,
            936 * GB,
            35.6 * TERA,
            0.556 * TERA,
            35.6 * TERA,
            71 * TERA,
            31.5 * GB,
            56.25 * GB,
            82,
            1.695e9,
            6144 * KIB,
            100 * KIB,
            99 * KIB,
            1536,
            16,
        ),
        Card(
            "RTX 4090",
            (8, 9),
            24 * GIB,
            1008 * GB,
            82.6 * TERA,
            1.29 * TERA,
            82.6 * TERA,
            165.2 * TERA,
            31.5 * GB,
            31.5 * GB,
            128,
            2.52e9,
            73728 * KIB,
            100 * KIB,
            99 * KIB,
            1536,
            24,
        ),
        Card(
            "H100",
            (9, 0),
            80 * GIB,
            3350 * GB,
            66.9 * TERA,
            33.5 * TERA,
            494.7 * TERA,
            989.4 * TERA,
            63 * GB,
            450 * GB,
            132,
            1.98e9,
            51200 * KIB,
            228 * KIB,
            227 * KIB,
            2048,
            32,
        ),
        Card(
            "H200",
            (9, 0),
            141 * GIB,
            4800 * GB,
            66.9 * TERA,
            33.5 * TERA,
            494.7 * TERA,
            989.4 * TERA,
            63 * GB,
            450 * GB,
            132,
            1.98e9,
            51200 * KIB,
            228 * KIB,
            227 * KIB,
            2048,
            32,
        ),
        Card(
            "B200",
            (10, 0),
            180 * GIB,
            8000 * GB,
            80 * TERA,
            40 * TERA,
            1100 * TERA,
            2250 * TERA,
            63 * GB,
            900 * GB,
            148,
            1.965e9,
            129024 * KIB,
            228 * KIB,
            227 * KIB,
            2048,
            32,
        ),
    )
}


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

"""How long work takes on a card: by its memory traffic or its arithmetic, whichever is longer.

    time = start + max(bytes / (bandwidth · REACHED), operations / (rate · REACHED_RATE))

(the roofline of Williams, Waterman and Patterson, 2009). Left out: caches (data that fits in L2 is
read from memory again), how well a kernel fills the card, the difference between one kernel and
another with the same traffic, clocks that fall when the card is hot, and the host's own jitter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toytorch.facts.cards import Card

START = 2.0  # µs from a kernel's first block to its last, however little it does
GAP = 1.0  # µs between two kernels of one stream
REACHED = 0.85  # of a memory's peak bandwidth, by a kernel that does nothing but copy
REACHED_RATE = 0.7  # of the peak rate, by a large product of matrices
REACHED_LINK = 0.8  # of a link's peak, by a copy from or to pinned memory
STAGED = 0.5  # of that, where the host first copies pageable memory to a pinned buffer
COPY_START = 8.0  # µs that a copy between host and device needs however small it is
QUEUE = 1024  # kernels that may wait in a stream before the host has to wait too


@dataclass(frozen=True, slots=True)
class Host:
    """What Python and the driver cost, in microseconds.

    `op` is one op of an eager program, from the call to the driver's return: about 5 µs in today's
    PyTorch. The published 238 µs for 20 ops of the IoU loss on a V100 are 11.5 µs for each and one
    synchronisation: that machine of 2018 to 2019 is the V100's host here. `call` is the call of a
    compiled function or a graph, by the same source (40.3 µs fused) and NVIDIA's own for graphs.
    """

    op: float = 5.0
    call: float = 15.0
    graph: float = 8.0
    synchronise: float = 8.0
    allocate: float = 100.0  # the driver's, not the cache's

    @staticmethod
    def of(card: Card) -> Host:
        """The host that a card usually sits in."""
        return Host(op=11.5, call=26.0) if card.capability < (7, 5) else Host()


def rate_of(card: Card, dtype: np.dtype, product: bool) -> float:
    """Operations a second for a type, inside or outside of tensor cores."""
    if dtype.kind == "c":
        return rate_of(card, np.dtype(f"f{dtype.itemsize // 2}"), product)
    if dtype.itemsize == 8 and dtype.kind == "f":
        return card.float64
    if product and dtype.itemsize == 2:
        return card.float16
    return card.float32


def kernel_time(
    card: Card, bytes: int, flops: float, dtype: np.dtype, product: bool = False
) -> tuple[float, str]:
    """Microseconds that a kernel takes, and what sets them: "launch", "memory" or "arithmetic".

    >>> from toytorch.facts.cards import card_of
    >>> time, limit = kernel_time(card_of("V100"), 800_000_000, 1e8, np.dtype("float32"))
    >>> round(time), limit
    (1048, 'memory')
    """
    memory = bytes / (card.bandwidth * REACHED) * 1e6
    arithmetic = flops / (rate_of(card, dtype, product) * REACHED_RATE) * 1e6
    longer = max(memory, arithmetic)
    if longer < START:
        return START + longer, "launch"
    return START + longer, "memory" if memory >= arithmetic else "arithmetic"


def copy_time(card: Card, bytes: int, pinned: bool, to_card: Card | None = None) -> float:
    """Microseconds of a copy between host and device, or (`to_card`) between two devices.

    >>> from toytorch.facts.cards import card_of
    >>> v100 = card_of("V100")
    >>> round(copy_time(v100, 10**8, True)), round(copy_time(v100, 10**8, False))
    (7945, 15881)
    """
    if to_card is not None:
        return COPY_START + bytes / (min(card.peer_link, to_card.peer_link) * REACHED_LINK) * 1e6
    rate = card.host_link * REACHED_LINK * (1.0 if pinned else STAGED)
    return COPY_START + bytes / rate * 1e6

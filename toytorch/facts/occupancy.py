"""How many blocks and warps of a kernel one multiprocessor holds at a time.

The rules are those of NVIDIA's occupancy calculator: the CUDA Occupancy Calculator spreadsheet,
Nsight Compute's, and `cuda_occupancy.h` of the CUDA toolkit, which the tests compare with.
"""

from __future__ import annotations

from dataclasses import dataclass

from toytorch.facts.cards import KIB, Card, card_of

REGISTER_UNIT = 256  # registers are given to a warp in multiples of this
PARTITIONS = 4  # a multiprocessor's schedulers, each with a quarter of the registers and warps


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What one multiprocessor holds of a kernel.

    blocks            blocks at a time; 0 where the kernel cannot be launched at all
    warps             warps at a time, `blocks` times the warps of a block
    share             `warps` of the warps that the multiprocessor could hold, 0 to 1
    limits            for each resource the blocks it would allow: "threads", "blocks", "registers",
                      "shared memory"; a resource that the kernel does not use is left out
    warp_registers    registers that a warp is given
    block_shared      bytes of shared memory that a block is given, the reserved ones among them
    """

    blocks: int
    warps: int
    share: float
    limits: dict[str, int]
    warp_registers: int
    block_shared: int

    @property
    def limited_by(self) -> list[str]:
        """The resources that allow no more blocks than there are."""
        return [name for name, blocks in self.limits.items() if blocks == self.blocks]


def occupancy(card: str | Card, threads: int, registers: int = 32, shared: int = 0) -> Occupancy:
    """The occupancy of a kernel on a card, from its block size and what a block uses.

    `threads` is the threads of a block, `registers` the registers of a thread, `shared` the bytes
    of shared memory of a block, static and dynamic. All of a multiprocessor's shared memory is
    taken to be at hand, as where the driver chooses how it is divided with the L1 cache. A kernel
    that the card refuses has 0 blocks. Raises ValueError for a block of no threads, and for
    negative numbers.

    From the Best Practices Guide, on a card of capability 7.0:

    >>> occupancy("V100", 128, 37).share, occupancy("V100", 320, 37).share
    (0.75, 0.625)
    >>> occupancy("H100", 256, 32, 64 << 10).limited_by
    ['shared memory']
    """
    card = card_of(card)
    if threads < 1:
        raise ValueError(f"a block has at least one thread, not {threads}")
    if registers < 0 or shared < 0:
        raise ValueError(
            f"registers and shared memory are counted from 0: got {registers} and {shared}"
        )
    warps = -(-threads // card.warp)
    given = _up(registers * card.warp, REGISTER_UNIT)
    unit, reserved = shared_memory_rules(card)
    taken = _up(shared + reserved, unit)
    limits = {
        "threads": 0 if threads > card.threads_of_block else card.warps // warps,
        "blocks": card.blocks,
    }
    if registers:
        limits["registers"] = _by_registers(card, warps, registers, given)
    if taken:
        fits = shared <= card.shared_of_block
        limits["shared memory"] = card.shared_memory // taken if fits else 0
    blocks = min(limits.values())
    return Occupancy(blocks, blocks * warps, blocks * warps / card.warps, limits, given, taken)


def _by_registers(card: Card, warps: int, registers: int, given: int) -> int:
    """Blocks by registers: those of a warp come from one partition."""
    if registers > card.registers_of_thread:
        return 0
    return card.registers // PARTITIONS // given * PARTITIONS // warps


def shared_memory_rules(card: Card) -> tuple[int, int]:
    """The unit in which a block is given shared memory, and the bytes the driver keeps of it.

    >>> shared_memory_rules(card_of("V100")), shared_memory_rules(card_of("H100"))
    ((256, 0), (128, 1024))
    """
    return (256, 0) if card.capability < (8, 0) else (128, KIB)


def _up(count: int, unit: int) -> int:
    return -(-count // unit) * unit

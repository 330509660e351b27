"""Occupancy: published figures, and NVIDIA's own calculator over random kernels."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toytorch.facts.cards import CARDS, KIB
from toytorch.facts.occupancy import occupancy, shared_memory_rules

BEST = "CUDA C++ Best Practices Guide, 'Calculating Occupancy'"
GUIDE = "CUDA C++ Programming Guide, 'Multiprocessor Level'"
LIMITS = "CUDA C++ Programming Guide, 'Technical Specifications per Compute Capability'"

# card, threads, registers, shared memory; blocks, warps; where it is published
PUBLISHED = [
    ("V100", 128, 37, 0, 12, 48, BEST),  # "an occupancy of 75% with 12 active 128-thread blocks"
    ("V100", 320, 37, 0, 4, 40, BEST),  # "63% because only four 320-thread blocks can reside"
    ("V100", 1024, 32, 0, 2, 64, BEST),  # "to have 100% occupancy, each thread can use at most 32"
    ("V100", 512, 64, 0, 2, 32, GUIDE),  # "64 registers … 512 threads …, then two blocks"
    ("V100", 512, 65, 0, 1, 16, GUIDE),  # "as soon as the kernel uses one more register, only one"
    # Volta Tuning Guide: 64 warps, 32 blocks, 96 KiB of shared memory for one multiprocessor
    ("V100", 32, 16, 0, 32, 32, "Volta Tuning Guide, 'Occupancy'"),
    ("V100", 256, 16, 96 * KIB, 1, 8, "Volta Tuning Guide, 'Unified Shared Memory/L1'"),
    # Turing Tuning Guide: "maximum number of concurrent warps per SM is 32", 16 blocks, 64 KiB
    ("T4", 1024, 32, 0, 1, 32, "Turing Tuning Guide, 'Occupancy'"),
    ("T4", 32, 16, 0, 16, 16, LIMITS),
    ("T4", 128, 16, 64 * KIB, 1, 4, "Turing Tuning Guide, 'Unified Shared Memory/L1'"),
    # NVIDIA Ampere GPU Architecture Tuning Guide: 64 warps and 32 blocks (8.0), 48 and 16 (8.6);
    # 164 KiB a multiprocessor, of which a block addresses 163, for 1 is reserved
    ("A100", 32, 16, 0, 32, 32, "Ampere Tuning Guide, 'Occupancy'"),
    ("A100", 256, 32, 163 * KIB, 1, 8, "Ampere Tuning Guide, 'Unified Shared Memory/L1'"),
    ("RTX 3090", 32, 16, 0, 16, 16, "Ampere Tuning Guide, 'Occupancy'"),
    ("RTX 3090", 1024, 32, 0, 1, 32, LIMITS),  # 1,536 threads hold one block of 1,024
    ("RTX 3090", 256, 32, 99 * KIB, 1, 8, "Ampere Tuning Guide, 'Unified Shared Memory/L1'"),
    # NVIDIA Ada GPU Architecture Tuning Guide: 48 warps, 24 blocks, 99 KiB for a block
    ("RTX 4090", 64, 32, 0, 24, 48, "Ada Tuning Guide, 'Occupancy'"),
    # NVIDIA Hopper Tuning Guide: 64 warps, 32 blocks, 227 KiB for a block
    ("H100", 64, 32, 0, 32, 64, "Hopper Tuning Guide, 'Occupancy'"),
    ("H100", 512, 32, 227 * KIB, 1, 16, "Hopper Tuning Guide, 'Unified Shared Memory/L1'"),
]


@pytest.mark.parametrize(
    ("card", "threads", "registers", "shared", "blocks", "warps", "source"), PUBLISHED
)
def test_published_figures(
    card: str, threads: int, registers: int, shared: int, blocks: int, warps: int, source: str
) -> None:
    found = occupancy(card, threads, registers, shared)
    assert (found.blocks, found.warps) == (blocks, warps), source
    assert found.share == warps / CARDS[card].warps


def test_what_a_card_refuses_has_no_blocks() -> None:
    refused = {
        "threads": occupancy("H100", 1025, 16),
        "registers": occupancy("H100", 32, 256),
        "shared memory": occupancy("H100", 32, 16, 227 * KIB + 1),
    }
    for name, found in refused.items():
        assert (found.blocks, found.share, found.limited_by) == (0, 0.0, [name])
    assert occupancy("V100", 1024, 64).blocks == 1
    assert occupancy("V100", 1024, 65).blocks == 0
    # 25 warps of 2,560 registers are 64,000 of 65,536, but a quarter of these holds only 6 warps
    assert occupancy("V100", 800, 80).blocks == 0


def test_units() -> None:
    assert occupancy("V100", 32, 33).warp_registers == 1280
    assert occupancy("V100", 32, 33, 1).block_shared == 256
    assert occupancy("A100", 32, 33, 1).block_shared == 1152
    assert "shared memory" not in occupancy("V100", 32).limits
    assert "registers" not in occupancy("V100", 32, 0).limits
    with pytest.raises(ValueError, match="at least one thread"):
        occupancy("V100", 0)
    with pytest.raises(ValueError, match="counted from 0"):
        occupancy("V100", 32, -1)


# NVIDIA's calculator -----------------------------------------------------------------------------

PROGRAM = r"""
#include <cstdio>
#include <climits>
#include <cuda_occupancy.h>
int main() {
  int major, minor, threads, blockThreads, registers, blockSize, numRegs;
  long sharedSM, sharedBlock, reserved, shared;
  while (scanf("%d %d %d %d %d %ld %ld %ld %d %d %ld", &major, &minor, &threads, &blockThreads,
               &registers, &sharedSM, &sharedBlock, &reserved, &blockSize, &numRegs, &shared) == 11)
  {
    cudaOccDeviceProp card;
    card.computeMajor = major; card.computeMinor = minor;
    card.maxThreadsPerBlock = blockThreads; card.maxThreadsPerMultiprocessor = threads;
    card.regsPerBlock = registers; card.regsPerMultiprocessor = registers; card.warpSize = 32;
    card.sharedMemPerBlock = 48 * 1024; card.sharedMemPerMultiprocessor = sharedSM;
    card.numSms = 1; card.sharedMemPerBlockOptin = sharedBlock;
    card.reservedSharedMemPerBlock = reserved;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = INT_MAX; kernel.numRegs = numRegs; kernel.numBlockBarriers = 1;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN; kernel.maxDynamicSharedSizeBytes = shared;
    cudaOccDeviceState state;
    cudaOccResult result;
    int status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &card, &kernel, &state,
                                                         blockSize, shared);
    printf("%d %d\n", status, result.activeBlocksPerMultiprocessor);
  }
}
"""


def _header() -> Path:
    """The folder of cuda_occupancy.h: the toolkit's, or that of a wheel of the CUDA runtime."""
    roots = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    roots += sorted(Path("/usr/local").glob("cuda*"))
    folders = [root / "include" for root in roots] + [Path("/usr/include")]
    folders += [f for entry in sys.path for f in Path(entry).glob("nvidia/*/include")]
    for folder in folders:
        if (folder / "cuda_occupancy.h").is_file():
            return folder
    pytest.skip("no cuda_occupancy.h here: neither a CUDA toolkit nor a wheel of its runtime")


def test_nvidias_calculator_agrees(tmp_path: Path) -> None:
    include, compiler = _header(), shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ here to compile cuda_occupancy.h with")
    source, program = tmp_path / "oracle.cpp", tmp_path / "oracle"
    source.write_text(PROGRAM)
    subprocess.run(
        [compiler, "-w", f"-I{include}", str(source), "-o", str(program)], check=True, timeout=120
    )
    dice = random.Random(16)
    asked, lines = [], []
    for card in CARDS.values():
        reserved = shared_memory_rules(card)[1]
        for _ in range(250):
            threads = dice.choice([dice.randint(1, 1030), 32 * dice.randint(1, 32)])
            registers = dice.choice([dice.randint(1, 255), 8 * dice.randint(1, 31)])
            shared = dice.choice([0, dice.randint(0, card.shared_of_block + 300),
                                  dice.randint(0, 20_000)])  # fmt: skip
            asked.append((card.name, threads, registers, shared))
            lines.append(
                f"{card.capability[0]} {card.capability[1]} {card.threads} {card.threads_of_block}"
                f" {card.registers} {card.shared_memory} {card.shared_of_block} {reserved}"
                f" {threads} {registers} {shared}"
            )
    run = subprocess.run(
        [str(program)], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    answers = [tuple(map(int, line.split())) for line in run.stdout.splitlines()]
    assert len(answers) == len(asked) == 2000
    for question, (status, blocks) in zip(asked, answers):
        assert (status, blocks) == (0, occupancy(*question).blocks), question

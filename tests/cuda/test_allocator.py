"""The caching allocator: figures worked out by hand from PyTorch's published rules.

The rules are those of `c10/cuda/CUDACachingAllocator.cpp`: multiples of 512 bytes; up to 1 MiB from
segments of 2 MiB, above from segments of 20 MiB, from 10 MiB on from one of their own in steps of
2 MiB; best fit; what is left of a block becomes one from 512 bytes on (small) or above 1 MiB
(large); a block that is not split counts as a whole.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toytorch as torch
from toytorch.backends.simulator import allocator
from toytorch.backends.simulator.allocator import CachingAllocator, Shortage

MIB, KIB = 1 << 20, 1 << 10

# (what is done, bytes allocated, bytes reserved, segments): "+name size" takes, "-name" gives back,
# "+name size @k" takes on stream k, "!" empties the cache
SEQUENCES: dict[str, list[tuple[str, int, int, int]]] = {
    "one byte": [("+a 1", 512, 2 * MIB, 1), ("-a", 0, 2 * MIB, 1), ("!", 0, 0, 0)],
    "rounding": [("+a 512", 512, 2 * MIB, 1), ("+b 513", 1536, 2 * MIB, 1)],
    "a small segment holds two of 1 MiB": [
        (f"+a {MIB}", MIB, 2 * MIB, 1),
        (f"+b {MIB}", 2 * MIB, 2 * MIB, 1),
        (f"+c {MIB}", 3 * MIB, 4 * MIB, 2),
    ],
    "a byte more is large": [
        (f"+a {MIB + 1}", MIB + 512, 20 * MIB, 1),
        (f"+b {MIB}", 2 * MIB + 512, 22 * MIB, 2),
    ],
    "twenty MiB serve two of nine": [
        (f"+a {9 * MIB}", 9 * MIB, 20 * MIB, 1),
        (f"+b {9 * MIB}", 18 * MIB, 20 * MIB, 1),
        (f"+c {9 * MIB}", 27 * MIB, 40 * MIB, 2),
    ],
    "from ten on, a segment each": [
        (f"+a {10 * MIB}", 10 * MIB, 10 * MIB, 1),
        (f"+b {100 * MIB}", 110 * MIB, 110 * MIB, 2),
    ],
    "what is left and too small to split counts": [
        (f"+a {11 * MIB}", 12 * MIB, 12 * MIB, 1),
        (f"+b {12 * MIB + 512 * KIB}", 24 * MIB + 512 * KIB, 26 * MIB, 2),
    ],
    "best fit, and merging": [
        (f"+a {4 * MIB}", 4 * MIB, 20 * MIB, 1),
        (f"+b {3 * MIB}", 7 * MIB, 20 * MIB, 1),
        (f"+c {2 * MIB}", 9 * MIB, 20 * MIB, 1),
        ("-a", 5 * MIB, 20 * MIB, 1),  # a hole of 4, and 11 at the end
        (f"+d {3 * MIB}", 9 * MIB, 20 * MIB, 1),  # into the hole, whose rest of 1 stays with it
        ("-c", 7 * MIB, 20 * MIB, 1),  # joins the end: 13
        (f"+e {13 * MIB}", 20 * MIB, 20 * MIB, 1),
    ],
    "a step of training keeps what the first one took": [
        (f"+x {6 * MIB}", 6 * MIB, 20 * MIB, 1),
        (f"+y {6 * MIB}", 12 * MIB, 20 * MIB, 1),
        ("-x", 6 * MIB, 20 * MIB, 1),
        ("-y", 0, 20 * MIB, 1),
        (f"+x {6 * MIB}", 6 * MIB, 20 * MIB, 1),
        (f"+y {6 * MIB}", 12 * MIB, 20 * MIB, 1),
        (f"+z {8 * MIB}", 20 * MIB, 20 * MIB, 1),
    ],
    "streams do not share": [
        (f"+a {3 * MIB}", 3 * MIB, 20 * MIB, 1),
        ("-a", 0, 20 * MIB, 1),
        (f"+b {3 * MIB} @1", 3 * MIB, 40 * MIB, 2),
        (f"+c {3 * MIB}", 6 * MIB, 40 * MIB, 2),
    ],
    "segments in use stay when the cache is emptied": [
        (f"+a {2 * MIB}", 2 * MIB, 20 * MIB, 1),
        (f"+b {30 * MIB}", 32 * MIB, 50 * MIB, 2),
        ("-b", 2 * MIB, 50 * MIB, 2),
        ("!", 2 * MIB, 20 * MIB, 1),
    ],
    "small blocks fill a segment from its start": [
        (f"+a {300 * KIB}", 300 * KIB, 2 * MIB, 1),
        (f"+b {800 * KIB}", 1100 * KIB, 2 * MIB, 1),
        ("-a", 800 * KIB, 2 * MIB, 1),
        (f"+c {301 * KIB}", 1101 * KIB, 2 * MIB, 1),  # behind b: the hole is too small
        (f"+d {299 * KIB}", 1400 * KIB, 2 * MIB, 1),  # into the hole
        (f"+e {647 * KIB}", 2047 * KIB, 2 * MIB, 1),
    ],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_figures(name: str) -> None:
    memory = CachingAllocator(80 << 30)
    blocks: dict[str, Any] = {}
    for what, allocated, reserved, segments in SEQUENCES[name]:
        if what == "!":
            memory.give_back()
        elif what.startswith("-"):
            memory.release(blocks.pop(what[1:]))
        else:
            key, size, *stream = what[1:].split()
            blocks[key] = memory.allocate(int(size), int(stream[0][1:]) if stream else 0)
        stats = memory.statistics
        found = stats["allocated_bytes"].current, memory.reserved, stats["segment"].current
        assert found == (allocated, reserved, segments), what


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 30 * MIB), st.integers(0, 2)), max_size=60))
def test_blocks_never_overlap_and_figures_add_up(steps: list[tuple[bool, int, int]]) -> None:
    memory = CachingAllocator(200 * MIB)
    held: list[Any] = []
    for take, size, stream in steps:
        if take or not held:
            try:
                held.append(memory.allocate(size, stream))
            except Shortage:
                assert memory.reserved + size > memory.capacity / 2 or memory.reserved > 0
        else:
            memory.release(held.pop(size % len(held)))
        spans = sorted((b.address, b.address + b.size) for b in held)
        assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:]))
        stats = memory.statistics
        assert stats["allocated_bytes"].current == sum(b.size for b in held)
        assert stats["requested_bytes"].current == sum(b.requested for b in held)
        for segment in memory.segments:
            blocks = list(segment.blocks())
            assert sum(b.size for b in blocks) == segment.size
            assert not any(not a.used and not b.used for a, b in zip(blocks, blocks[1:]))
        assert memory.reserved == sum(s.size for s in memory.segments) <= memory.capacity


@pytest.fixture
def sim() -> Iterator[Any]:
    with torch.cuda.simulate(memory=100 * MIB) as made:
        yield made


def tensor(mib: int) -> Any:
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def test_out_of_memory_is_recovered_from(sim: Any) -> None:
    kept = [tensor(30) for _ in range(3)]
    with pytest.raises(torch.cuda.OutOfMemoryError) as told:
        tensor(30)
    for words in (
        "CUDA out of memory. Tried to allocate 30.00 MiB. GPU 0 has a total capacity of 100.00 MiB "
        "of which 10.00 MiB is free.",
        "90.00 MiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated",
    ):
        assert words in str(told.value)
    assert isinstance(told.value, RuntimeError)
    kept.pop()
    assert tensor(30).sum().item() is not None
    assert torch.cuda.memory_stats()["num_ooms"] == 1


def test_fragments_are_told_apart(sim: Any) -> None:
    parts = [tensor(8) for _ in range(10)]  # five segments of 20, each with two of 8
    del parts[::2]
    with pytest.raises(torch.OutOfMemoryError, match=r"60.00 MiB is reserved by PyTorch but un"):
        tensor(30)
    del parts
    assert torch.cuda.memory_reserved() == 100 * MIB
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0
    tensor(90)


def test_full_caches_are_given_back_before_it_fails(sim: Any) -> None:
    del [tensor(30) for _ in range(3)][:]
    assert torch.cuda.memory_reserved() == 90 * MIB
    tensor(60)
    assert torch.cuda.memory_stats()["num_alloc_retries"] == 1


def test_peaks_and_shares(sim: Any) -> None:
    x = tensor(30)
    del x
    assert torch.cuda.memory_allocated() == 0
    assert torch.cuda.max_memory_allocated() == 30 * MIB
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == 0
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.25)
    with pytest.raises(torch.OutOfMemoryError, match=r"25.00 MiB allowed"):
        tensor(30)
    assert torch.cuda.mem_get_info() == (100 * MIB, 100 * MIB)


def test_views_and_saved_tensors_hold_memory(sim: Any) -> None:
    x = torch.ones(MIB, device="cuda")
    view = x[3:5]
    del x
    assert torch.cuda.memory_allocated() == 4 * MIB
    del view
    assert torch.cuda.memory_allocated() == 0
    w = torch.ones(MIB, device="cuda", requires_grad=True)
    y = (w * w).exp().sum()
    assert torch.cuda.memory_allocated() == 8 * MIB + 512  # w, what exp saved, and y
    y.backward()
    assert torch.cuda.memory_allocated() == 8 * MIB + 512  # w, its gradient, and y


def test_record_stream_keeps_a_block(sim: Any) -> None:
    side = torch.cuda.Stream()
    x = torch.ones(MIB, device="cuda")
    address = x.data_ptr()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(50):
            x.sum()
    x.record_stream(side)
    del x
    assert torch.ones(MIB, device="cuda").data_ptr() != address
    torch.cuda.synchronize()
    assert torch.ones(MIB, device="cuda").data_ptr() == address


def test_a_snapshot_is_written_for_the_viewer(sim: Any, tmp_path: Path) -> None:
    x = tensor(3)
    torch.cuda.memory._dump_snapshot(str(tmp_path / "snapshot.pickle"))
    found = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    (segment,) = found["segments"]
    assert segment["total_size"] == 20 * MIB and segment["segment_type"] == "large"
    used, free = segment["blocks"]
    assert (used["state"], used["size"], free["state"]) == (
        "active_allocated", 3 * MIB, "inactive",
    )  # fmt: skip
    assert used["frames"][0]["filename"] == __file__
    assert [t["action"] for t in found["device_traces"][0]] == ["segment_alloc", "alloc"]
    assert x.numel() == 3 * MIB and list(tmp_path.iterdir()) == [tmp_path / "snapshot.pickle"]


def test_memory_freed_by_a_collection_in_the_midst_of_a_request(
    sim: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors in cycles are freed whenever Python collects: here, while a block is being cut."""
    made = allocator.Block

    def collecting(*args: Any) -> Any:
        gc.collect()
        return made(*args)

    first, second, third = (torch.ones(n, device="cuda") for n in (300, 100, 100))
    ring: list[Any] = [second]
    ring.append(ring)
    del first, second, ring  # a hole, and beside it what a collection will free
    monkeypatch.setattr(allocator, "Block", collecting)
    again = torch.ones(100, device="cuda")  # into the hole
    assert torch.cuda.memory_allocated() == 1024
    del again, third
    assert torch.cuda.memory_allocated() == 0
    (segment,) = torch.cuda.memory_snapshot()
    assert [b["state"] for b in segment["blocks"]] == ["inactive"]

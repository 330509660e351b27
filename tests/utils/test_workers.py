"""Worker processes of the DataLoader: what they give, how they fail, what is left of them."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toytorch as tt
from toytorch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    TensorDataset,
    default_collate,
    get_worker_info,
)

psutil: Any = pytest.importorskip("psutil", reason="counts processes and descriptors")
SHARED = Path("/dev/shm")
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def segments() -> set[str]:
    """The shared-memory segments of this process's loaders."""
    return {p.name for p in SHARED.glob(f"tt{os.getpid()}_*")} if SHARED.exists() else set()


def children() -> list[Any]:
    """Living worker processes."""
    found = psutil.Process().children(recursive=True)
    return [
        p
        for p in found
        if p.status() != psutil.STATUS_ZOMBIE
        and "resource_tracker" not in " ".join(p.cmdline())
        and "forkserver" not in " ".join(p.cmdline())
    ]


def end_of(before: set[int], seconds: float) -> None:
    """Waits until no process is left but those before, and no segment."""

    def left() -> set[Any]:
        return {p.pid for p in children()} - before | segments()

    if left():
        gc.collect()  # a second, where many tests have run before
    end = time.monotonic() + seconds
    while time.monotonic() < end and left():
        time.sleep(0.05)
    assert not left()


@pytest.fixture(autouse=True)
def before() -> Iterator[set[int]]:
    """Which processes there were: every test must leave no other, and no segment."""
    found = {p.pid for p in children()}
    yield found
    end_of(found, 10)


class Odd(Dataset):
    """Examples of every kind; some of them go wrong."""

    def __init__(self, n: int, what: str = "") -> None:
        self.n, self.what = n, what

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        if i == 5 and self.what:
            return {
                "key": self.key,
                "own": self.own,
                "many": self.many,
                "kill": self.kill,
                "hang": self.hang,
                "exit": self.exit,
                "lambda": self.function,
            }[self.what]()
        return {
            "x": tt.arange(6.0).reshape(2, 3) + i,
            "h": tt.ones(2).bfloat16() * i,
            "n": i,
            "a": np.full(3, i, np.int16),
            "s": f"text {i}",
            "t": tt.ones(3, 2).t(),
        }

    def key(self) -> Any:
        return {}["missing"]

    def own(self) -> Any:
        raise Own("its own")

    def many(self) -> Any:
        raise UnicodeDecodeError("utf-8", b"x", 0, 1, "no")

    def kill(self) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    def exit(self) -> Any:
        os._exit(3)

    def hang(self) -> Any:
        time.sleep(60)

    def function(self) -> Any:
        return lambda: 1


class Own(Exception):
    """An exception of the user."""


class Stream(IterableDataset):
    """Numbers shared out among the workers."""

    def __init__(self, n: int, uneven: bool = False) -> None:
        self.n, self.uneven = n, uneven

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        if info is not None and self.uneven and info.id == 0:
            return
        yield from range(first, self.n, step)


def first(batch: Any) -> Any:
    """A collate function that a spawned worker can import."""
    return batch[0]


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_the_same_batches_as_without(context: str) -> None:
    want = list(DataLoader(Odd(10), 3))
    got = list(DataLoader(Odd(10), 3, num_workers=2, multiprocessing_context=context))
    assert len(got) == 4
    for a, b in zip(want, got):
        assert {k: (v.tolist() if isinstance(v, tt.Tensor) else v) for k, v in a.items()} == {
            k: (v.tolist() if isinstance(v, tt.Tensor) else v) for k, v in b.items()
        }
        assert b["h"].dtype is tt.bfloat16 and b["x"].shape == a["x"].shape
        b["x"] += 1  # memory of its own to write to


def test_batches_stay_while_they_are_held() -> None:
    data = TensorDataset(tt.arange(400).reshape(100, 4))
    loader = DataLoader(data, 5, num_workers=2, persistent_workers=True)
    held = [batch for (batch,) in loader]
    again = [batch for (batch,) in loader]
    assert tt.cat(held).tolist() == tt.cat(again).tolist() == data.tensors[0].tolist()
    held[0].fill_(7)
    assert again[0][0].tolist() == [0, 1, 2, 3]


def test_slots_are_used_again() -> None:
    data = TensorDataset(tt.zeros(64, 5000))
    places = set()
    for (batch,) in DataLoader(data, 2, num_workers=1, prefetch_factor=2):
        places.add(batch.data_ptr())
        del batch
    assert len(places) <= 5


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true")
@pytest.mark.parametrize(
    "how",
    [{}, {"drop_last": True}, {"prefetch_factor": 5}, {"in_order": False}, {"pin_memory": True}],
)
def test_options(how: dict[str, Any]) -> None:
    got = [b.tolist() for (b,) in DataLoader(TensorDataset(tt.arange(11)), 2, num_workers=3, **how)]
    want = [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10]][: 5 if "drop_last" in how else 6]
    assert (sorted(got) if "in_order" in how else got) == want


def test_without_batches_and_with_a_batch_sampler() -> None:
    data = TensorDataset(tt.arange(5))
    assert [x.item() for (x,) in DataLoader(data, None, num_workers=2)] == [0, 1, 2, 3, 4]
    batches = [[4, 0], [2]]
    got = [x.tolist() for (x,) in DataLoader(data, batch_sampler=batches, num_workers=2)]
    assert got == batches
    many = [list(range(5)) * 30_000] * 6  # lists longer than a pipe holds
    got = [len(x) for (x,) in DataLoader(data, batch_sampler=many, num_workers=2)]
    assert got == [150_000] * 6


def test_streams() -> None:
    for n in (0, 1, 7, 20):
        got = [x for b in DataLoader(Stream(n), 3, num_workers=2) for x in b.tolist()]
        assert sorted(got) == list(range(n))
    assert [b.tolist() for b in DataLoader(Stream(7), 2, num_workers=2)] == [
        [0, 2],
        [1, 3],
        [4, 6],
        [5],
    ]
    assert [b.tolist() for b in DataLoader(Stream(7), 3, num_workers=2, drop_last=True)] == [
        [0, 2, 4],
        [1, 3, 5],
    ]
    got = [x.item() for b in DataLoader(Stream(6, uneven=True), 2, num_workers=2) for x in b]
    assert got == [1, 3, 5]
    loader = DataLoader(Stream(5), None, num_workers=2, persistent_workers=True)
    assert sorted(loader) == sorted(loader) == [0, 1, 2, 3, 4]


class Draws(Dataset):
    """Random numbers of each of the three generators."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> Any:
        info = get_worker_info()
        assert info is not None and info.num_workers == 2 and isinstance(info.dataset, Draws)
        return [
            info.id,
            info.seed % (1 << 62),
            random.random(),
            np.random.rand(),
            tt.rand(()).item(),
        ]


def draws(seed: int) -> Any:
    """Two epochs of draws from a loader seeded so."""
    loader = DataLoader(Draws(), None, num_workers=2, generator=tt.Generator().manual_seed(seed))
    return [list(loader), list(loader)]


def test_seeds() -> None:
    one, other = draws(1), draws(2)
    assert one == draws(1) and one != other and one[0] != one[1]
    assert [row[0] for row in one[0]] == [0, 1, 0, 1, 0, 1]
    assert one[0][1][1] == one[0][0][1] + 1  # base seed + number of the worker
    assert len({tuple(row[2:]) for row in one[0]}) == 6
    assert get_worker_info() is None


def remember(number: int) -> None:
    """Runs once in each worker."""
    os.environ["TT_WORKER"] = str(number * 10)


class Reader(Dataset):
    """What a worker's environment says, and who it is."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> Any:
        return int(os.environ["TT_WORKER"]), os.getpid()


def test_init_and_persistence() -> None:
    def epochs(stay: bool) -> Any:
        loader = DataLoader(
            Reader(), None, num_workers=2, worker_init_fn=remember, persistent_workers=stay
        )
        return [list(loader) for _ in range(3)]

    stayed, left = epochs(True), epochs(False)
    assert [v for v, _ in stayed[0]] == [0, 10, 0, 10]
    assert stayed[0] == stayed[1] == stayed[2]
    assert not {p for _, p in left[0]} & {p for _, p in left[1]}


# -- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "error"), [("key", KeyError), ("own", Own), ("many", RuntimeError)]
)
def test_exceptions_keep_their_type(what: str, error: Any) -> None:
    with pytest.raises(error) as caught:
        list(DataLoader(Odd(10, what), 2, num_workers=2))
    text = str(caught.value)
    assert text.startswith("Caught ") and "in DataLoader worker process 0.\nOriginal" in text
    assert f"in {what}\n" in text  # the worker's traceback, line by line


def broken(batch: Any) -> Any:
    """A collate function that fails."""
    raise ValueError("cannot collate")


def broken_init(number: int) -> None:
    """An init function that fails."""
    raise OSError("cannot start")


def test_exceptions_of_the_users_functions() -> None:
    with pytest.raises(ValueError, match="cannot collate"):
        list(DataLoader(Odd(4), 2, num_workers=2, collate_fn=broken))
    with pytest.raises(OSError, match="cannot start"):
        list(DataLoader(Odd(4), 2, num_workers=2, worker_init_fn=broken_init))
    with pytest.raises(Exception, match=r"pickle|Can't get"):
        list(DataLoader(Odd(10, "lambda"), None, num_workers=2))

    class Local(Exception):
        pass

    def local(number: int) -> None:
        raise Local("unknown elsewhere")

    with pytest.raises(RuntimeError, match="unknown elsewhere"):
        list(
            DataLoader(
                Odd(4), 2, num_workers=1, worker_init_fn=local, multiprocessing_context="fork"
            )
        )
    with pytest.raises(Exception, match=r"pickle|Can't get"):
        list(
            DataLoader(
                Odd(4), 2, num_workers=2, worker_init_fn=local, multiprocessing_context="spawn"
            )
        )


@pytest.mark.parametrize("stay", [False, True])
@pytest.mark.parametrize(("what", "why"), [("kill", "SIGKILL"), ("exit", "exit code 3")])
def test_dead_worker_is_reported_at_once(what: str, why: str, stay: bool) -> None:
    start = time.monotonic()
    loader = DataLoader(Odd(10, what), 1, num_workers=2, persistent_workers=stay)
    with pytest.raises(
        RuntimeError,
        match=rf"DataLoader worker \(pid\(s\) \d+\) exited "
        rf"unexpectedly \(.*{why}\)",
    ):
        list(loader)
    assert time.monotonic() - start < 8
    assert next(iter(loader))["n"].item() == 0  # another epoch has other workers


def test_killed_from_outside() -> None:
    others = {p.pid for p in children()}  # such as a process that an earlier test left waiting
    batches = iter(DataLoader(Odd(1000), 1, num_workers=2))
    next(batches)
    next(p for p in children() if p.pid not in others).kill()
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(batches)


def test_timeout() -> None:
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"timed out after 0\.5 seconds"):
        list(DataLoader(Odd(10, "hang"), 1, num_workers=2, timeout=0.5))
    assert time.monotonic() - start < 8


@pytest.mark.parametrize("stay", [False, True])
def test_break_and_abandon(stay: bool) -> None:
    loader = DataLoader(Odd(50), 2, num_workers=2, persistent_workers=stay)
    for _ in range(3):
        for batch in loader:
            assert batch["n"].tolist() == [0, 1]
            break
    assert len(list(loader)) == 25
    kept = next(iter(loader))
    del loader, batch
    gc.collect()
    assert kept["s"] == ["text 0", "text 1"] and kept["n"].tolist() == [0, 1]


def test_epochs_leak_nothing() -> None:
    process = psutil.Process()
    loader = DataLoader(TensorDataset(tt.zeros(8, 100)), 2, num_workers=2, persistent_workers=True)
    list(loader)
    before = process.num_fds()
    for _ in range(300):
        assert sum(1 for _ in loader) == 4
    assert process.num_fds() <= before + 1
    del loader
    other = DataLoader(TensorDataset(tt.zeros(8, 100)), 2, num_workers=2)
    list(other)
    gc.collect()
    before = process.num_fds()
    for _ in range(10):
        list(other)
    gc.collect()
    assert process.num_fds() <= before


PROGRAM = """
import os, sys, time
import toytorch as tt
from toytorch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(tt.zeros(100_000, 64)), 64, num_workers=2,
                    persistent_workers={stay})
import multiprocessing
for i, batch in enumerate(loader):
    if i == 3:
        print(os.getpid(), *[p.pid for p in multiprocessing.active_children()], flush=True)
    {body}
"""


@pytest.mark.parametrize("stay", [False, True])
@pytest.mark.parametrize(
    ("how", "body"),
    [
        ("SIGINT", "time.sleep(0.01)"),
        ("SIGKILL", "time.sleep(0.01)"),
        ("SIGTERM", "time.sleep(0.01)"),
        ("exit", "i > 4 and sys.exit(0)"),
        ("exception", "1 / (i < 5)"),
        ("end", "\n    if i > 4: break"),
    ],
)
def test_whatever_ends_the_program(how: str, body: str, stay: bool) -> None:
    """No process and no segment is left when the program is gone."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(stay=stay, body=body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert program.stdout is not None
        owner, *workers = map(int, program.stdout.readline().split())
        assert len(workers) == 2
        if how.startswith("SIG"):
            time.sleep(0.1)
            number = getattr(signal, how)
            os.killpg(owner, number) if how == "SIGINT" else os.kill(owner, number)
        error = program.communicate(timeout=20)[1]
        assert "leaked" not in error
        if how in ("exit", "end"):
            assert program.returncode == 0 and not error
        end = time.monotonic() + 10
        while time.monotonic() < end and (
            any(map(alive, workers)) or list(SHARED.glob(f"tt{owner}_*"))
        ):
            time.sleep(0.05)
        assert not any(map(alive, workers)) and not list(SHARED.glob(f"tt{owner}_*"))
    finally:
        program.kill()
        program.wait(10)


def alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_collate_in_a_worker() -> None:
    got = list(DataLoader(Odd(4), 2, num_workers=1, collate_fn=first))
    assert [b["n"] for b in got] == [0, 2]
    assert default_collate([1, 2]).tolist() == [1, 2]


class OneAtATime(DataLoader):
    """Asks one worker after the other, and for the next batch only when one has come."""

    def deliver(self, pool: Any, indices: Iterator[Any]) -> Iterator[Any]:
        for order, index in enumerate(indices):
            pool.ask(order % len(pool), order, index)
            yield pool.hear()[2]


@pytest.mark.parametrize("persistent_workers", [False, True])
def test_a_subclass_says_how_batches_are_asked_for(persistent_workers: bool) -> None:
    loader = OneAtATime(
        TensorDataset(tt.arange(7)),
        batch_size=2,
        num_workers=2,
        persistent_workers=persistent_workers,
    )
    for _ in range(2):
        assert [batch.tolist() for (batch,) in loader] == [[0, 1], [2, 3], [4, 5], [6]]


class Large(Dataset):
    """Examples of many kinds, large enough for batches that are made in shared memory; they grow,
    so that slots become too small."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, i: int) -> Any:
        n = 9000 * (1 + i // 12)
        whole = tt.arange(n) + i
        return {
            "bfloat16": whole.to(tt.bfloat16),
            "bool": whole % 3 == 0,
            "label": i,
            "array": np.full((n, 2), i, "float64"),
            "pair": (whole.float(), whole.view(-1, 10)),
            "complex": whole * 1j,
            "gradient": whole.float().requires_grad_(),
        }


def part(batch: Any) -> Any:
    """A batch that is cut and taken apart after it was collated."""
    made = default_collate(batch)
    return [made["array"][:, :, 1], made["pair"][0][1:], made["bool"], made["bool"]]


kept: list[Any] = []


def keep(batch: Any) -> Any:
    """A batch that the worker goes on to use."""
    kept.append(default_collate(batch)["pair"][0])
    return [kept[-1], tt.stack([b.sum() for b in kept])]


@pytest.mark.parametrize("collate", [None, part, keep])
def test_batches_made_in_shared_memory(collate: Any) -> None:
    kept.clear()
    alone = list(DataLoader(Large(), 4, collate_fn=collate))
    kept.clear()
    for _ in range(2):
        for a, b in zip(
            DataLoader(Large(), 4, num_workers=1, collate_fn=collate), alone, strict=True
        ):
            same(a, b)


def same(a: Any, b: Any) -> None:
    """Two batches have equal structure, types and values."""
    assert type(a) is type(b)
    if isinstance(a, tt.Tensor):
        assert a.dtype == b.dtype and a.requires_grad == b.requires_grad and tt.equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        same(list(a.values()), list(b.values()))
    else:
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)


# -- StopIteration --------------------------------------------------------------------------------


def loaders(m: Any, workers: int) -> dict[str, Any]:
    """Loaders that meet a StopIteration, each made by a function; of either package."""
    data = m.utils.data

    class Stops(data.Dataset):  # type: ignore[misc,name-defined]
        def __len__(self) -> int:
            return 8

        def __getitem__(self, i: int) -> int:
            if i == 3:
                raise StopIteration("mine")
            return i

    class AtOnce(Stops):
        def __getitems__(self, indices: Any) -> Any:
            return [self[i] for i in indices]

    class Numbers(data.IterableDataset):  # type: ignore[misc,name-defined]
        def __iter__(self) -> Any:
            return Reviving()

    class Broken(data.IterableDataset):  # type: ignore[misc,name-defined]
        def __iter__(self) -> Any:
            raise StopIteration("at the start")

    def collate(batch: Any) -> Any:
        if 3 in (batch if isinstance(batch, list) else [batch]):
            raise StopIteration("in collate_fn")
        return batch

    def start(worker: int) -> None:
        raise StopIteration("in worker_init_fn")

    def make(dataset: Any, *args: Any, **options: Any) -> Any:
        return lambda: data.DataLoader(dataset, *args, num_workers=workers, **options)

    return {
        "map": make(Stops(), 2),
        "one by one": make(Stops(), 1),
        "unbatched": make(Stops(), None),
        "getitems": make(AtOnce(), 2),
        "stream": make(Numbers(), 2),
        "stream of examples": make(Numbers(), None),
        "broken stream": make(Broken(), 2),
        "collate": make(list(range(8)), 2, collate_fn=collate),
        "collate one": make(list(range(8)), None, collate_fn=collate),
        "collate stream": make(Numbers(), 2, collate_fn=collate),
        "init": make(list(range(8)), 2, worker_init_fn=start),
        "batch sampler": make(list(range(8)), batch_sampler=[[0], [1, 2]]),
    }


class Reviving:
    """An iterator that goes on after it has ended."""

    n = 0

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> int:
        self.n += 1
        if self.n % 4 == 0:
            raise StopIteration
        return self.n


def heard(make: Any) -> list[Any]:
    """All that two loops over one iterator give, and the first line of what `next` raises."""
    try:
        it = iter(make())
    except StopIteration as error:
        return [str(error)]
    told: list[Any] = []
    for _ in range(2):
        while True:
            try:
                batch = next(it)
            except StopIteration as error:
                lines = str(error).splitlines() or ["the end"]
                told += [lines[0].replace("process 1", "process 0"), lines[-1]]
                break
            told.append(batch.tolist() if hasattr(batch, "tolist") else batch)
    return told


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("what", loaders(tt, 0))
def test_stop_iteration(what: str, workers: int, before: set[int]) -> None:
    """The end of a stream; anywhere else an error that `next` raises, and no batch is passed over."""
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    ours = heard(loaders(tt, workers)[what])
    end_of(before, 10)
    assert ours == heard(loaders(torch, workers)[what])
    end_of(before, 60)  # PyTorch waits 5 s for each of its workers before it ends them
    if workers and what in ("map", "getitems", "collate"):
        assert any("Caught StopIteration in DataLoader worker process 0." in str(t) for t in ours)

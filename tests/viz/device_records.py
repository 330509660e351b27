"""Records of devices at work, made by hand, for tests of their pictures."""

from __future__ import annotations

from typing import Any

from toytorch.facts.trace import Arrow, MemoryPoint, Span, Timeline


class Script:
    """Writes a timeline: the host asks, streams and copy engines do, one thing after another."""

    def __init__(self, title: str = "") -> None:
        self.timeline = Timeline(title)
        self.host = 0.0
        self.free: dict[str, float] = {}  # when each row is done with what it was asked
        self.last: dict[str, int] = {}  # its last span
        self.memory = 0

    def span(
        self, kind: str, name: str, row: str, start: float, long: float, **more: object
    ) -> int:
        """Something in a row, at a time."""
        number = len(self.timeline.spans)
        more.setdefault("source", ("/home/me/train.py", 10 + number % 20))
        made = Span(number, kind, name, row, start, start + long, **more)  # type: ignore[arg-type]
        self.timeline.spans.append(made)
        return number

    def ask(self, kind: str, name: str, row: str, long: float, python: float = 6.0, **more: object) -> int:  # fmt: skip
        """The host asks for work, which begins when its row is free and it has heard of it."""
        device = int(row[5:].split(" ")[0])
        launch = self.span("host", name, "host", self.host, python)
        self.host += python
        start = max(self.host + 2.0, self.free.get(row, 0.0))
        work = self.span(kind, name, row, start, long, device=device, **more)
        self.timeline.arrows.append(Arrow(launch, work, "launch"))
        self.free[row], self.last[row] = start + long, work
        return work

    def wait(self, row: str, other: str) -> None:
        """A row stands still until another has done what it was asked so far."""
        until = self.free[other]
        start = max(self.free.get(row, 0.0), self.host)
        waits = self.span("wait", "wait_event", row, start, max(until - start, 0.0),
                          device=int(row[5:].split(" ")[0]))  # fmt: skip
        self.timeline.arrows.append(Arrow(self.last[other], waits, "event"))
        self.free[row] = max(until, start)

    def synchronize(self, row: str) -> None:
        """The host waits for a row."""
        until = max(self.free[row], self.host)
        waits = self.span("sync", "synchronize", "host", self.host, until - self.host + 4.0)
        self.timeline.arrows.append(Arrow(self.last[row], waits, "sync"))
        self.host = until + 4.0

    def hold(self, device: int, change: int) -> None:
        """Memory is taken or freed."""
        self.memory += change
        reserved = -(-self.memory // (20 << 20)) * (20 << 20)
        self.timeline.memory.append(MemoryPoint(self.host, device, self.memory, reserved))


def mlp_step(steps: int = 1, devices: int = 1) -> Timeline:
    """A training step of a small network: batches are copied on a stream of their own."""
    script = Script("an MLP on two streams")
    main, side, up, down = ("cuda:0 stream 7", "cuda:0 stream 13", "cuda:0 host to device",
                            "cuda:0 device to host")  # fmt: skip
    for step in range(steps):
        script.hold(0, 12 << 20)
        script.ask("copy", "copy_ (batch)", up, 38.0, bytes=1 << 20)
        script.wait(side, up)
        script.ask("kernel", "normalise", side, 9.0, stream=13, bytes=2 << 20, limit="memory")
        script.wait(main, side)
        for name, long in (("mm", 21.0), ("add + relu", 6.0), ("mm", 14.0), ("cross_entropy", 8.0)):
            script.hold(0, 4 << 20)
            script.ask("kernel", name, main, long, stream=7, flops=5 * 10**9, bytes=3 << 20,
                       limit="arithmetic" if name == "mm" else "launch")  # fmt: skip
        for name, long in (("nll_loss_backward", 5.0), ("mm", 25.0), ("relu_backward", 7.0), ("mm", 26.0)):  # fmt: skip
            script.hold(0, -(4 << 20))
            script.ask("kernel", name, main, long, stream=7, flops=10**10, limit="arithmetic")
        script.ask("memset", "zero_grad", main, 3.0, stream=7, bytes=4 << 20)
        script.wait(down, main)
        script.ask("copy", "loss.item()", down, 2.5, bytes=4)
        script.synchronize(down)
        script.hold(0, -(12 << 20))
        for device in range(1, devices):
            row = f"cuda:{device} stream 7"
            script.ask("kernel", f"all_reduce {step}", row, 30.0, stream=7, bytes=8 << 20)
            script.timeline.memory.append(
                MemoryPoint(script.host, device, (5 + step) << 20, 20 << 20)
            )
    return script.timeline


def many_spans(count: int) -> Timeline:
    """A long record: `count` spans or a few more."""
    made = mlp_step(steps=count // 27 + 1, devices=2)
    assert len(made.spans) >= count
    return made


# the allocator -------------------------------------------------------------------------------------

MIB = 1 << 20


class Pool:
    """A small caching allocator by PyTorch's published rules, that records what it does.

    Blocks are multiples of 512 bytes. Those up to 1 MiB come from segments of 2 MiB, those under
    10 MiB from segments of 20 MiB, larger ones from segments of their own in multiples of 2 MiB. The
    smallest free block that fits is taken, the first of equal ones, and split where the rest is at
    least 512 bytes (small) or more than 1 MiB (large).
    """

    def __init__(self) -> None:
        self.segments: dict[int, tuple[int, bool]] = {}  # address: size, small
        self.blocks: dict[int, tuple[int, int, dict[str, Any] | None]] = {}  # size, asked, frame
        self.events: list[dict[str, Any]] = []
        self.next = 0x7F0000000000

    def event(self, action: str, address: int, size: int, frame: dict[str, Any]) -> None:
        """Writes down what happens."""
        self.events.append({"action": action, "addr": address, "size": size, "stream": 0,
                            "time_us": len(self.events), "frames": [frame]})  # fmt: skip

    def alloc(self, asked: int, line: int, name: str = "forward") -> int:
        """Takes a block and returns its address."""
        frame = {"filename": "/home/me/net.py", "line": line, "name": name}
        size = -(-max(asked, 1) // 512) * 512
        small = size <= MIB
        fits = [
            (n, address)
            for address, (n, _, used) in self.blocks.items()
            if used is None and n >= size and self._small(address) == small
        ]
        if not fits:
            total = (
                2 * MIB
                if small
                else 20 * MIB
                if size < 10 * MIB
                else -(-size // (2 * MIB)) * 2 * MIB
            )
            address, self.next = self.next, self.next + total + 16 * MIB
            self.segments[address], self.blocks[address] = (total, small), (total, 0, None)
            self.event("segment_alloc", address, total, frame)
            fits = [(total, address)]
        whole, address = min(fits)
        left = whole - size
        if left >= 512 if small else left > MIB:
            self.blocks[address + size] = (left, 0, None)
        else:
            size = whole
        self.blocks[address] = (size, asked, frame)
        self.event("alloc", address, asked, frame)
        return address

    def free(self, address: int, wait: bool = False) -> None:
        """Gives a block back; with `wait`, `done` must follow."""
        size, asked, frame = self.blocks[address]
        assert frame is not None
        self.event("free_requested", address, asked, frame)
        self.blocks[address] = (size, asked, {**frame, "waits": True})
        if not wait:
            self.done(address)

    def done(self, address: int) -> None:
        """The streams are done with a block: it is free, and one with its free neighbours."""
        size, asked, frame = self.blocks[address]
        assert frame is not None
        self.event(
            "free_completed", address, asked, {k: v for k, v in frame.items() if k != "waits"}
        )
        self.blocks[address] = (size, 0, None)
        for segment, (total, _) in self.segments.items():
            inside = sorted(a for a in self.blocks if segment <= a < segment + total)
            for a, b in zip(inside[-2::-1], inside[:0:-1]):
                if self.blocks[a][2] is None and self.blocks[b][2] is None:
                    self.blocks[a] = (self.blocks[a][0] + self.blocks.pop(b)[0], 0, None)

    def empty_cache(self) -> None:
        """Gives whole free segments back."""
        for address, (total, _) in list(self.segments.items()):
            if self.blocks[address][0] == total and self.blocks[address][2] is None:
                del self.segments[address], self.blocks[address]
                self.event(
                    "segment_free", address, total, {"filename": "a.py", "line": 1, "name": "f"}
                )

    def _small(self, address: int) -> bool:
        return next(small for a, (n, small) in self.segments.items() if a <= address < a + n)

    def snapshot(self, device: int = 0) -> dict[str, Any]:
        """As `torch.cuda.memory._snapshot()` gives it."""
        segments = []
        for address, (total, small) in self.segments.items():
            blocks = []
            for at in sorted(a for a in self.blocks if address <= a < address + total):
                size, asked, frame = self.blocks[at]
                state = "inactive" if frame is None else "active_allocated"
                if frame is not None and frame.get("waits"):
                    state = "active_awaiting_free"
                frames = [] if frame is None else [{k: v for k, v in frame.items() if k != "waits"}]
                blocks.append({"address": at, "size": size, "requested_size": asked,
                               "state": state, "frames": frames})  # fmt: skip
            used = [b for b in blocks if b["state"] != "inactive"]
            segments.append({
                "device": device, "address": address, "total_size": total, "stream": 0,
                "allocated_size": sum(b["size"] for b in used if b["state"] == "active_allocated"),
                "active_size": sum(b["size"] for b in used),
                "requested_size": sum(b["requested_size"] for b in used),
                "segment_type": "small" if small else "large", "blocks": blocks,
            })  # fmt: skip
        traces: list[list[dict[str, Any]]] = [[] for _ in range(device + 1)]
        traces[device] = self.events
        return {"segments": segments, "device_traces": traces}


def training(steps: int = 2) -> Pool:
    """Parameters, then steps: activations come and go, the largest twice as large each step."""
    pool = Pool()
    for line, asked in enumerate((4 * MIB, 16 << 10, 2 * MIB, 4 << 10)):
        pool.alloc(asked, 5 + line, "__init__")
    for step in range(steps):
        kept = [
            pool.alloc(n, 20 + i)
            for i, n in enumerate((3 * MIB, 6 * MIB * (step + 1), 100, 5 * MIB))
        ]
        grads = [pool.alloc(n, 30 + i, "backward") for i, n in enumerate((5 * MIB, 700_000))]
        for address in reversed(kept):
            pool.free(address, wait=address == kept[0])
        pool.done(kept[0])
        for address in grads:
            pool.free(address)
    return pool

"""Records of devices at work, made by hand, for tests of their pictures."""

from __future__ import annotations

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

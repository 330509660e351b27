"""When kernels run, and when the host waits."""

import toytorch as torch
from course.cases import call, case
from course.properties import agrees, untouched
from course.records import Exercise

clock = Exercise(
    "accelerators.clock",
    "When does the host wait?",
    chapter=12,
    minutes=15,
    prompt="""
    The host asks for kernels, and the device runs them one after the other. Write
    `run_queue(calls, launch=5.0, gap=1.0, wake=8.0, room=1024)`, which works out when each of them
    runs. All times are microseconds. Each call is a pair `(length, waits)`: how long its kernel
    takes, and whether the host then waits for it, as `.item()` does.

    The host's clock begins at 0. For each call, in this order:

    1. The host needs `launch` to ask for the kernel.
    2. At most `room` kernels may be queued or running. If there are that many, the host waits until
       the oldest of these ends.
    3. If the kernel before is still running at this time, the new one starts `gap` after its end.
       Otherwise it starts at once.
    4. If `waits` is true, the host waits until *this* kernel ends, and needs `wake` to go on.

    Return a pair: the list of `(start, end)` of all kernels, and the host's time after the last
    call. For example, three calls, of which the last one waits:

    | call | host is done asking | kernel | host goes on |
    | --- | --- | --- | --- |
    | `(20.0, False)` | 5 | 5 to 25 | 5 |
    | `(20.0, False)` | 10 | 26 to 46 | 10 |
    | `(4.0, True)` | 15 | 47 to 51 | 59 |
    """,
    hints=(
        """
        Two clocks are enough: the host's, which is a number, and the device's, which is the end of the
        last kernel in your list. Each call moves the first one forward by `launch`. The kernel starts at
        the host's time or `gap` after the device's, and the two are compared before the gap is added.
        """,
        """
        `room=2`, and three calls of 30 that do not wait:

        | call | asked at | queued or running then | host waits until | kernel |
        | --- | --- | --- | --- | --- |
        | first | 5 | none | | 5 to 35 |
        | second | 10 | the first | | 36 to 66 |
        | third | 15 | both | 35, the end of the first | 67 to 97 |

        So the third call looks two kernels back in the list, at `kernels[-2]`. The host is at 35 after
        it, though no call said that it waits.
        """,
        """
        ```python
        def run_queue(calls, launch=5.0, gap=1.0, wake=8.0, room=1024):
            host, kernels = 0.0, []
            for length, waits in calls:
                host += launch
                if len(kernels) >= room:
                    host = max(host, ...)
                start = host
                if kernels and ...:
                    start = ...
                kernels.append((start, start + length))
                if waits:
                    host = ...
            return kernels, host
        ```
        """,
    ),
)


@clock.reference(stub="your code here: about 12 lines")
def run_queue(calls, launch=5.0, gap=1.0, wake=8.0, room=1024):
    """(start, end) of each kernel, and when the host is done, in µs."""
    host, kernels = 0.0, []
    for length, waits in calls:
        host += launch
        if len(kernels) >= room:
            host = max(host, kernels[-room][1])
        start = host
        if kernels and kernels[-1][1] > host:
            start = kernels[-1][1] + gap
        kernels.append((start, start + length))
        if waits:
            host = start + length + wake
    return kernels, host


clock.changed(
    "the host waits for every kernel",
    """
    The host's clock was set to the end of each kernel. It only asks for the kernel and goes on:
    that is what asynchronous means. Its clock moves by `launch`, and to the end of a kernel only if
    the call waits.
    """,
    ("        if waits:\n            host = start + length + wake",
     "        host = start + length + (wake if waits else 0.0)"),
)

clock.changed(
    "kernels do not wait for the host",
    """
    Each kernel started when the one before had ended. If the kernels are short, the device has
    nothing to do until the host asks for the next one, so a kernel never starts before it was asked
    for. Programs of many small kernels spend most of their time like this.
    """,
    ("        start = host\n        if kernels and kernels[-1][1] > host:\n"
     "            start = kernels[-1][1] + gap",
     "        start = kernels[-1][1] + gap if kernels else host"),
)

clock.changed(
    "kernels do not wait for each other",
    """
    Each kernel started when the host had asked for it, also while another one was running. Kernels
    of one stream run one after the other, because each may need the results of those before.
    """,
    ("        if kernels and kernels[-1][1] > host:\n"
     "            start = kernels[-1][1] + gap\n", ""),
)

clock.changed(
    "the kernel starts before it was asked for",
    """
    The host's clock was moved after the kernel had been placed. The kernel can start when the host
    is done asking, so add `launch` first.
    """,
    ("        host += launch\n", ""),
    ("        kernels.append((start, start + length))\n",
     "        kernels.append((start, start + length))\n        host += launch\n"),
)

clock.changed(
    "waits for the kernels before",
    """
    A call that waits needs the result of *its own* kernel, for example the element that `.item()`
    copies. The host waited for the kernels before it only.
    """,
    ("            host = start + length + wake", "            host = start + wake"),
)

clock.changed(
    "the queue has no end",
    """
    At most `room` kernels can be queued. A host that is far ahead has to wait although no call says
    so: for the end of the kernel `room` places before the new one.
    """,
    ("        if len(kernels) >= room:\n"
     "            host = max(host, kernels[-room][1])\n", ""),
)

clock.changed(
    "gives the device's time",
    """
    The second result is the host's clock. It is usually far behind the end of the last kernel. Who
    measures with the host's clock and forgets to wait measures this.
    """,
    ("    return kernels, host", "    return kernels, kernels[-1][1] if kernels else 0.0"),
)

clock.changed(
    "a gap where the device was idle",
    """
    `gap` is the time that the device needs from one kernel to the next when both are queued. If the
    kernel before ended earlier than the new one was asked for, the new one starts at once. Compare
    the two clocks before you add the gap.
    """,
    ("        if kernels and kernels[-1][1] > host:\n"
     "            start = kernels[-1][1] + gap",
     "        if kernels:\n            start = max(host, kernels[-1][1] + gap)"),
)


clock.changed(
    "no time to wake up",
    """
    A host that has waited needs `wake` before it goes on: the operating system or the driver has to
    tell it that the device is done. Add it after the end of the kernel.
    """,
    ("start + length + wake", "start + length"),
)

clock.changed(
    "gaps are forgotten",
    """
    Queued kernels do not follow each other without a gap: the new one starts `gap` after the end of
    the one before. With thousands of short kernels this adds up.
    """,
    ("kernels[-1][1] + gap", "kernels[-1][1]"),
)

clock.changed(
    "a full queue is waited for as a whole",
    """
    If the queue is full, the host needs one free place. It waits for the *oldest* of the `room`
    kernels, `kernels[-room]`, and not for the latest one.
    """,
    ("kernels[-room][1]", "kernels[-1][1]"),
)

clock.changed(
    "gives starts and lengths",
    """
    Each kernel is a pair of its start and its *end*. The length is what was handed in.
    """,
    ("kernels.append((start, start + length))", "kernels.append((start, length))"),
    ("kernels[-room][1]", "sum(kernels[-room])"),
    ("kernels[-1][1] > host", "sum(kernels[-1]) > host"),
    ("start = kernels[-1][1] + gap", "start = sum(kernels[-1]) + gap"),
)


@clock.check("one call")
def _(f):
    yield call(f, [(20.0, False)]).gives(([(5.0, 25.0)], 5.0))
    yield call(f, [(20.0, True)]).gives(([(5.0, 25.0)], 33.0))
    yield call(f, []).gives(([], 0.0))


@clock.check("several calls")
def _(f):
    yield call(f, [(20.0, False), (20.0, False), (4.0, True)]).gives(
        ([(5.0, 25.0), (26.0, 46.0), (47.0, 51.0)], 59.0))
    yield call(f, [(2.0, False)] * 3).gives(([(5.0, 7.0), (10.0, 12.0), (15.0, 17.0)], 15.0))
    yield call(f, [(4.5, False), (2.0, True), (1.0, False)]).gives(
        ([(5.0, 9.5), (10.0, 12.0), (25.0, 26.0)], 25.0))
    yield call(f, [(9.0, True), (9.0, True)], launch=2.0, wake=3.0).gives(
        ([(2.0, 11.0), (16.0, 25.0)], 28.0))


@clock.check("a full queue", hidden=True)
def _(f):
    yield call(f, [(30.0, False)] * 3, room=2).gives(
        ([(5.0, 35.0), (36.0, 66.0), (67.0, 97.0)], 35.0))
    yield call(f, [(30.0, False)] * 3, room=1).gives(
        ([(5.0, 35.0), (35.0, 65.0), (65.0, 95.0)], 65.0))
    yield case("the host's time after 1,100 kernels of 100 µs",
               lambda: f([(100.0, False)] * 1100)[1]).gives(7680.0)


def _drawn(draw):
    calls = [(float(draw.choice((0, 1, 2, 5, 9, 30))), draw.random() < 0.2)
             for _ in range(draw.randint(0, 12))]
    return calls, float(draw.randint(1, 6)), float(draw.randint(0, 3)), 8.0, draw.randint(1, 6)


@clock.check("any calls")
def _(f):
    yield agrees(f, clock.answer.value, _drawn)
    yield untouched(f, _drawn)


# Kernels of toytorch's simulator by how many elements they write, and whether the host waits.
PROGRAM = [(4_000_000, False), (4_000_000, False), (1000, False), (1000, True), (1000, False),
           (2_000_000, False), (1000, True), (1000, False)]


def _recorded():
    """The program on a simulated device: its calls, its kernels, and the host's clock."""
    with torch.cuda.simulate(model="H100") as sim:
        memory = torch.empty(4_000_000, device="cuda")
        began = sim.now
        for size, waits in PROGRAM:
            memory[:size].fill_(1.0)
            if waits:
                torch.cuda.current_stream().synchronize()
        spans = [span for span in sim.timeline.spans if span.kind == "kernel"]
        calls = [(span.duration, waits) for span, (_, waits) in zip(spans, PROGRAM, strict=True)]
        return calls, [(span.start - began, span.end - began) for span in spans], sim.now - began


@clock.check("a program on toytorch's simulator")
def _(f):
    yield case(f"8 calls of fill_, (elements, waits): {PROGRAM}",
               lambda: f(_recorded()[0])).as_by(lambda: _recorded()[1:])

"""What the accesses of a warp cost, in global and in shared memory."""

from collections import Counter

import numpy as np

from course.cases import call, case
from course.exercises.ch15.common import launched
from course.properties import agrees, untouched
from course.records import Exercise

warp = Exercise(
    "kernels.warp",
    "What an access of a warp costs",
    chapter=15,
    minutes=20,
    prompt="""
    The 32 threads of a **warp** run the same instruction at the same time. If it reads memory, that is one
    request with up to 32 addresses. Write `warp_cost(addresses)`, which says what the request costs. It
    gets the byte addresses of the threads, each of which reads a word of four bytes; None stands for a
    thread that takes no part. All addresses are multiples of 4. Return a pair:

    * `sectors`, if the addresses are in **global** memory. It comes in sectors of 32 bytes: sector n has
      the bytes from 32 n to 32 n + 31. Each sector in which a word is wanted is fetched once.
    * `wavefronts`, if they are in **shared** memory. It has 32 banks, and word number n (the bytes from
      4 n) lies in bank n modulo 32. In one wavefront each bank gives one word, to all threads that want
      it. So the request takes as many wavefronts as the bank with the most *different* wanted words has.

    A request in which no thread takes part costs (0, 0). Some requests of 32 threads, t = 0 to 31:

    | address of thread t | sectors | wavefronts |
    | --- | --- | --- |
    | 4 · t | 4 | 1 |
    | 8 · t | 8 | 2 |
    | 128 · t | 32 | 32 |
    | 132 · t | 32 | 1 |
    | 64 for all | 1 | 1 |
    """,
    hints=(
        """
        Both are questions about sets. Different sectors are different values of address // 32. For the banks
        first get rid of words that are wanted more than once, then count how many are left in each bank.
        """,
        """
        Five threads with the addresses 0, 4, 4, 128, 256, the others take no part:

        | | values |
        | --- | --- |
        | address // 32 | 0, 0, 0, 4, 8: three sectors |
        | words, address // 4 | 0, 1, 1, 32, 64 |
        | different words | 0, 1, 32, 64 |
        | their banks, word modulo 32 | 0, 1, 0, 0 |
        | words by bank | bank 0: 3, bank 1: 1 |

        The result is (3, 3). `collections.Counter` counts, and its `values()` are the counts.
        """,
        """
        ```python
        def warp_cost(addresses):
            wanted = {a for a in addresses if ...}
            sectors = {... for a in wanted}
            banks = Counter(... for a in wanted)
            return len(sectors), max(banks.values(), default=...)
        ```
        """,
    ),
)


@warp.reference(stub="your code here: about 4 lines")
def warp_cost(addresses):
    """Sectors and wavefronts of a request, from byte addresses or None."""
    wanted = {a for a in addresses if a is not None}
    sectors = {a // 32 for a in wanted}
    banks = Counter(a // 4 % 32 for a in wanted)
    return len(sectors), max(banks.values(), default=0)


warp.changed(
    "the same word twice is a conflict",
    """
    Threads that want the same word were counted one by one. A bank gives its word to all threads that ask
    for it at once, which is called a broadcast. Only *different* words of one bank take several wavefronts.
    """,
    ("Counter(a // 4 % 32 for a in wanted)",
     "Counter(a // 4 % 32 for a in addresses if a is not None)"),
)

warp.changed(
    "counts words as sectors",
    """
    Each thread was given a sector of its own. Eight words that lie side by side share one: this is what
    coalescing means.
    """,
    ("{a // 32 for a in wanted}", "{a // 4 for a in wanted}"),
)

warp.changed(
    "as many bytes as fit",
    """
    The wanted bytes were divided by 32, as if they lay side by side. Four bytes in each of 32 sectors
    cost 32 sectors, of which seven eighths are thrown away.
    """,
    ("return len(sectors),", "return -(-4 * len(wanted) // 32),"),
)

warp.changed(
    "banks by bytes",
    """
    The bank was taken from the byte address. Banks are four bytes wide: the number of the *word* modulo
    32 says which bank it is.
    """,
    ("Counter(a // 4 % 32 for a in wanted)", "Counter(a % 32 for a in wanted)"),
)

warp.changed(
    "a bank is a part of memory",
    """
    Words that lie side by side were put into the same bank. It is the other way round: neighbours lie in
    neighbouring banks, so that a warp that reads neighbours has no conflict.
    """,
    ("Counter(a // 4 % 32 for a in wanted)", "Counter(a // 128 for a in wanted)"),
)

warp.changed(
    "counts the conflicts",
    """
    The number of banks with a conflict was returned. All banks work at the same time, so what counts is the
    one that has to give the most words.
    """,
    ("max(banks.values(), default=0)", "sum(count > 1 for count in banks.values())"),
)

warp.changed(
    "forgets address 0",
    """
    `if a` leaves out None, and the address 0 as well. Compare with None.
    """,
    ("if a is not None", "if a"),
)

warp.changed(
    "adds up all words",
    """
    The words of all banks were added up. Banks work side by side: the request is done when the bank with
    the most words is.
    """,
    ("max(banks.values(), default=0)", "sum(banks.values())"),
)

FIVE = [0, 4, 4, 128, 256] + [None] * 27


@warp.check("strides")
def _(f):
    for step, wanted in ((4, (4, 1)), (8, (8, 2)), (128, (32, 32)), (132, (32, 1)), (12, (12, 1))):
        yield case(f"thread t reads address {step} * t", lambda s=step: f([s * t for t in range(32)])
                   ).gives(wanted)


@warp.check("not all threads, and the same words")
def _(f):
    yield call(f, FIVE).gives((3, 3))
    yield case("all threads read address 64", lambda: f([64] * 32)).gives((1, 1))
    yield case("threads 0 to 15 read address 0, the others 128", lambda: f([0] * 16 + [128] * 16)
               ).gives((2, 2))
    yield case("32 words that begin at address 28", lambda: f([28 + 4 * t for t in range(32)])
               ).gives((5, 1))


@warp.check("nobody takes part", hidden=True)
def _(f):
    yield case("32 times None", lambda: f([None] * 32)).gives((0, 0))
    yield case("thread 31 alone reads address 0", lambda: f([None] * 31 + [0])).gives((1, 1))


_SOURCE = """extern "C" __global__ void look(const float* x, const int* at, float* out) {
    __shared__ float s[2048];
    for (int i = threadIdx.x; i < 2048; i += 32) s[i] = 0.0f;
    __syncwarp();
    int n = at[threadIdx.x];
    if (n >= 0) out[threadIdx.x] = x[n]
        + 0.0f;
    if (n >= 0) out[32 + threadIdx.x] = s[n]
        + 0.0f;
}"""


def _counted(addresses):
    """What toytorch's emulator counts for the two accesses."""
    at = np.int32([-1 if a is None else a // 4 for a in addresses])
    done = launched(_SOURCE, 1, 32, np.zeros(2048, np.float32), at, np.zeros(64, np.float32))
    active = sorted({t // 8 for t, n in enumerate(at) if n >= 0})
    return done.lines[6].sectors - len(active), done.lines[8].wavefronts


@warp.check("what the emulator counts")
def _(f):
    for step in (1, 3, 4, 33):
        addresses = [4 * step * t for t in range(32)]
        yield case(f"thread t reads word {step} * t, against toytorch's emulator",
                   lambda a=addresses: f(a)).as_by(lambda a=addresses: _counted(a))


def _drawn(draw):
    kind, step = draw.random(), draw.choice((0, 1, 2, 3, 8, 16, 32, 33))
    words = [step * t + draw.choice((0, 7)) if kind < 0.5 else draw.randrange(draw.choice((40, 900)))
             for t in range(32)]
    return ([None if draw.random() < 0.2 * (kind > 0.3) else 4 * w for w in words],)


@warp.check("any request")
def _(f):
    yield agrees(f, warp.answer.value, _drawn)
    yield untouched(f, _drawn)

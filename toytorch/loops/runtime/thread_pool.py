"""Threads that share the range of a kernel.

Waking a sleeping thread takes 50 to 100 µs, longer than most kernels. So the threads that help look
at a board for a while after each job before they sleep. The range is cut into parts, and whoever is
free takes the next: a thread that comes late, or whose core is taken by another program, helps less
and is not waited for beyond its part.

Helpers run compiled code and nothing else: they never take Python's lock, which would have to be
handed over between threads at the end of every job. A kernel posts its job itself (`entry`).

The board is words in memory. Of `ticket`, the job's number, an odd one means that help is wanted. A
helper first counts itself in `active` and then looks at the ticket again; who posted the job closes
it first and then waits until nobody is active. So a job's tables are never read after its end.
"""

from __future__ import annotations

import ctypes
from functools import cache as once
from typing import Any

from toytorch.loops.runtime import jit

PATIENCE = 1500  # looks at the board before sleeping: some 50 µs, so that BLAS finds cores free
LINE = 8  # words in a line of the cache
# `next`, `active` and what each helper writes have lines of the cache to themselves.
BOARD = {
    "ticket": 0,
    "run": 1,
    "table": 2,
    "total": 3,
    "step": 4,
    "helpers": 5,
    "acquire": 6,
    "release": 7,
    "next": LINE,
    "active": 2 * LINE,
    "busy": 3 * LINE,
}
HELPER = {"asleep": 0, "lock": 1, "board": 2, "following": 3}


def write(ir: Any, name: str, x86: bool) -> str:
    """LLVM's text of the three functions: `call` posts a job, wakes who sleeps and works too;
    `read` is what a helper does all its life; `run` takes parts until none is left."""
    module = ir.Module(name)
    word, half, nothing = ir.IntType(64), ir.IntType(32), ir.VoidType()
    words = word.as_pointer()
    kernel = ir.FunctionType(nothing, [words, word, word])
    rest = ir.FunctionType(nothing, [])
    pause = ir.Function(module, rest, "llvm.x86.sse2.pause") if x86 else None

    def function(part: str, result: Any, *types: Any) -> tuple[Any, Any, list[Any]]:
        made = ir.Function(module, ir.FunctionType(result, types), f"{part}_{name}")
        return made, ir.IRBuilder(made.append_basic_block("entry")), list(made.args)

    def at(b: Any, base: Any, field: str) -> Any:
        return b.gep(base, [word((BOARD | HELPER)[field])])

    def look(b: Any, base: Any, field: str) -> Any:
        return b.load_atomic(at(b, base, field), "seq_cst", 8)

    def put(b: Any, base: Any, field: str, value: Any) -> None:
        b.store_atomic(value, at(b, base, field), "seq_cst", 8)

    def change(b: Any, base: Any, field: str, how: str, value: Any) -> Any:
        return b.atomic_rmw(how, at(b, base, field), value, "seq_cst")

    def get(b: Any, base: Any, field: str) -> Any:
        return b.load(at(b, base, field))

    def wait(b: Any) -> None:
        if pause is not None:
            b.call(pause, [])

    take, b, (board,) = function("run", nothing, words)
    run, table, total, step = (get(b, board, f) for f in ("run", "table", "total", "step"))
    run, table = b.inttoptr(run, kernel.as_pointer()), b.inttoptr(table, words)
    loop, part, done = (take.append_basic_block(n) for n in ("loop", "part", "done"))
    b.branch(loop)
    b.position_at_end(loop)
    start = change(b, board, "next", "add", step)
    b.cbranch(b.icmp_signed("<", start, total), part, done)
    b.position_at_end(part)
    end = b.add(start, step)
    b.call(run, [table, start, b.select(b.icmp_signed("<", end, total), end, total)])
    b.branch(loop)
    b.position_at_end(done)
    b.ret_void()

    post, b, (board, *job) = function("call", half, words, word, word, word, word)
    free, wake, ring, next_, work, waiting, done, taken = (
        post.append_basic_block(n)
        for n in ("free", "wake", "ring", "next", "work", "waiting", "done", "taken")
    )
    b.cbranch(b.icmp_signed("==", change(b, board, "busy", "xchg", word(1)), word(0)), free, taken)
    b.position_at_end(taken)
    b.ret(half(0))
    b.position_at_end(free)
    for field, value in zip(("run", "table", "total", "step"), job):
        b.store(value, at(b, board, field))
    put(b, board, "next", word(0))
    ticket = b.add(look(b, board, "ticket"), word(1))
    put(b, board, "ticket", ticket)
    first = get(b, board, "helpers")
    b.branch(wake)
    b.position_at_end(wake)
    helper = b.phi(word)
    helper.add_incoming(first, free)
    place = b.inttoptr(helper, words)
    more = post.append_basic_block("more")
    b.cbranch(b.icmp_signed("==", helper, word(0)), work, more)
    b.position_at_end(more)
    b.cbranch(b.icmp_signed("==", look(b, place, "asleep"), word(0)), next_, ring)
    b.position_at_end(ring)
    put(b, place, "asleep", word(0))
    release = ir.FunctionType(nothing, [word]).as_pointer()
    b.call(b.inttoptr(get(b, board, "release"), release), [get(b, place, "lock")])
    b.branch(next_)
    b.position_at_end(next_)
    helper.add_incoming(get(b, place, "following"), next_)
    b.branch(wake)
    b.position_at_end(work)
    b.call(take, [board])
    put(b, board, "ticket", b.add(ticket, word(1)))
    b.branch(waiting)
    b.position_at_end(waiting)
    wait(b)
    b.cbranch(b.icmp_signed("==", look(b, board, "active"), word(0)), done, waiting)
    b.position_at_end(done)
    put(b, board, "busy", word(0))
    b.ret(half(1))

    watch, b, (self,) = function("read", nothing, words)
    sleep, loop, open_, help_, leave, idle, tired = (
        watch.append_basic_block(n)
        for n in ("sleep", "loop", "open", "help", "leave", "idle", "tired")
    )
    board = b.inttoptr(get(b, self, "board"), words)
    b.branch(sleep)
    b.position_at_end(sleep)
    acquire = ir.FunctionType(half, [word, half]).as_pointer()
    b.call(b.inttoptr(get(b, board, "acquire"), acquire), [get(b, self, "lock"), half(1)])
    b.branch(loop)
    b.position_at_end(loop)
    left, last = b.phi(word), b.phi(word)
    left.add_incoming(word(PATIENCE), sleep)
    last.add_incoming(word(0), sleep)
    ticket = look(b, board, "ticket")
    odd = b.icmp_signed("!=", b.and_(ticket, word(1)), word(0))
    b.cbranch(b.and_(odd, b.icmp_signed("!=", ticket, last)), open_, idle)
    b.position_at_end(open_)
    change(b, board, "active", "add", word(1))
    b.cbranch(b.icmp_signed("==", look(b, board, "ticket"), ticket), help_, leave)
    b.position_at_end(help_)
    b.call(take, [board])
    b.branch(leave)
    b.position_at_end(leave)
    change(b, board, "active", "sub", word(1))
    left.add_incoming(word(PATIENCE), leave)
    last.add_incoming(ticket, leave)
    b.branch(loop)
    b.position_at_end(idle)
    wait(b)
    less = b.sub(left, word(1))
    left.add_incoming(less, idle)
    last.add_incoming(last, idle)
    b.cbranch(b.icmp_signed(">", less, word(0)), loop, tired)
    b.position_at_end(tired)
    put(b, self, "asleep", word(1))
    b.branch(sleep)
    return str(module)


@once
def functions() -> tuple[int, int]:
    """The addresses of `post(board, run, table, total, step)`, which says 1, or 0 and does nothing
    where the team is at another job, and of what a helper runs."""
    from llvmlite import ir

    target = jit.target()
    x86 = "x86" in target.machine.triple or "amd64" in target.machine.triple
    place = target.linked(write(ir, "team", x86), "team", ("call", "read"))
    return place["call"], place["read"]


class Team:
    """The thread that calls, and helpers, which live as long as the process."""

    def __init__(self, threads: int) -> None:
        python = ctypes.pythonapi
        python.PyThread_allocate_lock.restype = ctypes.c_void_p
        python.PyThread_acquire_lock.argtypes = [ctypes.c_void_p, ctypes.c_int]
        python.PyThread_start_new_thread.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        python.PyThread_start_new_thread.restype = ctypes.c_ulong
        self.threads = threads
        self.post, life = functions()
        size = 4 * LINE
        memory = (ctypes.c_int64 * (size + LINE * threads))()
        jit.keep(memory)  # the helpers look at it as long as the process lives
        start = ctypes.addressof(memory)
        start += -start % (8 * LINE)
        self.board = start

        def write(place: int, values: dict[str, int], fields: dict[str, int]) -> None:
            for field, value in values.items():
                ctypes.c_int64.from_address(place + 8 * fields[field]).value = value

        names = {"acquire": "PyThread_acquire_lock", "release": "PyThread_release_lock"}
        write(
            self.board,
            {
                f: ctypes.cast(getattr(python, n), ctypes.c_void_p).value or 0
                for f, n in names.items()
            },
            BOARD,
        )
        following = 0
        for k in range(threads - 1):
            helper = start + 8 * (size + LINE * k)
            lock = python.PyThread_allocate_lock()
            python.PyThread_acquire_lock(lock, 1)
            write(
                helper,
                {"asleep": 1, "lock": lock, "board": self.board, "following": following},
                HELPER,
            )
            if python.PyThread_start_new_thread(life, helper) == ctypes.c_ulong(-1).value:
                break  # no thread could be made: fewer help
            following = helper
        write(self.board, {"helpers": following}, BOARD)

"""Threads that share the range of a kernel.

Waking a sleeping thread takes 50 to 100 µs, longer than most kernels. So the threads that help look
at a board for a while after each job before they sleep. The range is cut into parts, and whoever is
free takes the next: a thread that comes late, or whose core is taken by another program, helps less
and is not waited for beyond its part.

The board is words in memory. Of `ticket`, the job's number, an odd one means that help is wanted. A
helper first counts itself in `active` and then looks at the ticket again; who posted the job closes
it first and then waits until nobody is active. So a job's tables are never read after its end.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache as once
from typing import Any

from toytorch.backends.loops import cache, machine

PATIENCE = 1500  # looks at the board before sleeping: some 50 µs, so that BLAS finds cores free
BOARD = {"ticket": 0, "run": 1, "table": 2, "total": 3, "step": 4, "next": 8, "active": 16}
WORDS = 32  # `next` and `active` have lines of the cache to themselves


def write(ir: Any, name: str, x86: bool) -> str:
    """LLVM's text of the three functions: `call` posts a job and works on it, `read` is the
    helpers' watch, and `run` takes parts until none is left."""
    module = ir.Module(name)
    word, nothing = ir.IntType(64), ir.VoidType()
    words = word.as_pointer()
    kernel = ir.FunctionType(nothing, [words, word, word])
    rest = ir.FunctionType(nothing, [])
    pause = ir.Function(module, rest, "llvm.x86.sse2.pause") if x86 else None

    def function(part: str, *types: Any) -> tuple[Any, Any, list[Any]]:
        made = ir.Function(module, ir.FunctionType(nothing, types), f"{part}_{name}")
        return made, ir.IRBuilder(made.append_basic_block("entry")), list(made.args)

    def at(b: Any, board: Any, field: str) -> Any:
        return b.gep(board, [word(BOARD[field])])

    def look(b: Any, board: Any, field: str) -> Any:
        return b.load_atomic(at(b, board, field), "seq_cst", 8)

    def wait(b: Any) -> None:
        if pause is not None:
            b.call(pause, [])

    take, b, (board,) = function("run", words)
    run, table, total, step = (b.load(at(b, board, f)) for f in ("run", "table", "total", "step"))
    run, table = b.inttoptr(run, kernel.as_pointer()), b.inttoptr(table, words)
    loop, part, done = (take.append_basic_block(n) for n in ("loop", "part", "done"))
    b.branch(loop)
    b.position_at_end(loop)
    start = b.atomic_rmw("add", at(b, board, "next"), step, "seq_cst")
    b.cbranch(b.icmp_signed("<", start, total), part, done)
    b.position_at_end(part)
    end = b.add(start, step)
    b.call(run, [table, start, b.select(b.icmp_signed("<", end, total), end, total)])
    b.branch(loop)
    b.position_at_end(done)
    b.ret_void()

    post, b, (board, *job) = function("call", words, word, word, word, word)
    for field, value in zip(("run", "table", "total", "step"), job):
        b.store(value, at(b, board, field))
    b.store_atomic(word(0), at(b, board, "next"), "seq_cst", 8)
    ticket = b.add(look(b, board, "ticket"), word(1))
    b.store_atomic(ticket, at(b, board, "ticket"), "seq_cst", 8)
    b.call(take, [board])
    b.store_atomic(b.add(ticket, word(1)), at(b, board, "ticket"), "seq_cst", 8)
    waiting, done = (post.append_basic_block(n) for n in ("waiting", "done"))
    b.branch(waiting)
    b.position_at_end(waiting)
    wait(b)
    b.cbranch(b.icmp_signed("==", look(b, board, "active"), word(0)), done, waiting)
    b.position_at_end(done)
    b.ret_void()

    watch, b, (board, patience) = function("read", words, word)
    loop, open_, help_, leave, idle, done = (watch.append_basic_block(n) for n in (
        "loop", "open", "help", "leave", "idle", "done"))
    entry = b.block
    b.branch(loop)
    b.position_at_end(loop)
    left, last = b.phi(word), b.phi(word)
    left.add_incoming(patience, entry)
    last.add_incoming(word(0), entry)
    ticket = look(b, board, "ticket")
    odd = b.icmp_signed("!=", b.and_(ticket, word(1)), word(0))
    b.cbranch(b.and_(odd, b.icmp_signed("!=", ticket, last)), open_, idle)
    b.position_at_end(open_)
    b.atomic_rmw("add", at(b, board, "active"), word(1), "seq_cst")
    b.cbranch(b.icmp_signed("==", look(b, board, "ticket"), ticket), help_, leave)
    b.position_at_end(help_)
    b.call(take, [board])
    b.branch(leave)
    b.position_at_end(leave)
    b.atomic_rmw("sub", at(b, board, "active"), word(1), "seq_cst")
    left.add_incoming(patience, leave)
    last.add_incoming(ticket, leave)
    b.branch(loop)
    b.position_at_end(idle)
    wait(b)
    less = b.sub(left, word(1))
    left.add_incoming(less, idle)
    last.add_incoming(last, idle)
    b.cbranch(b.icmp_signed(">", less, word(0)), loop, done)
    b.position_at_end(done)
    b.ret_void()
    return str(module)


@once
def functions() -> tuple[Any, Any]:
    """`post(board, run, table, total, step)` and `watch(board, patience)`; both let go of the
    GIL."""
    from llvmlite import ir
    target = machine.target()
    x86 = "x86" in target.machine.triple or "amd64" in target.machine.triple
    text = write(ir, "team", x86)
    name = "t" + cache.digest(text, target.words)
    code = cache.read(name)
    if code is None:
        code = target.compile(text)
        cache.write(name, code)
    place = target.link(code, "team")
    words, word = ctypes.c_void_p, ctypes.c_int64
    return (ctypes.CFUNCTYPE(None, words, word, words, word, word)(place["call"]),
            ctypes.CFUNCTYPE(None, words, word)(place["read"]))


class Helper(threading.Thread):
    """A thread that watches a board while there is work, and sleeps otherwise. It is a daemon and
    ends with the process."""

    def __init__(self, board: int) -> None:
        super().__init__(name="toytorch", daemon=True)
        self.board, self.asleep, self.bell = board, True, threading.Semaphore(0)
        self.watch = functions()[1]
        self.start()

    def run(self) -> None:
        """What a helper does all its life."""
        while True:
            self.bell.acquire()
            self.watch(self.board, PATIENCE)
            self.asleep = True

    def wake(self) -> None:
        """Wakes it, if it sleeps."""
        if self.asleep:
            self.asleep = False
            self.bell.release()


class Team:
    """The thread that calls, and helpers."""

    def __init__(self, threads: int) -> None:
        self.memory = (ctypes.c_int64 * (WORDS + 8))()
        start = ctypes.addressof(self.memory)
        self.board = start + -start % 64
        self.threads, self.process = threads, os.getpid()
        self.busy = threading.Lock()  # one job at a time
        self.post = functions()[0]
        self.helpers = [Helper(self.board) for _ in range(threads - 1)]

    def run(self, run: int, table: int, total: int, step: int) -> bool:
        """Does a job together; False where the team is at another one, which a second thread of
        the program began."""
        if not self.busy.acquire(blocking=False):
            return False
        try:
            for helper in self.helpers:
                helper.wake()
            self.post(self.board, run, table, total, step)
        finally:
            self.busy.release()
        return True

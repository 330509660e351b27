"""A pool of native threads that share the range of a kernel.

Waking a sleeping thread takes 50 to 100 µs, longer than most kernels. So after each job a worker
polls the work queue for a while before it sleeps: first without a break, then with a call between
two polls that gives its core to whoever else waits for it, such as a thread of BLAS. The range is
cut into parts, and whoever is free takes the next: a worker that comes late, or whose core is taken
by another program, does less and is not waited for beyond its part.

Workers run compiled code and nothing else: they never take Python's lock, which would have to be
handed over between threads at the end of every job. A kernel posts its job itself (`trampoline`).

The queue holds one job, as words in memory. `epoch` numbers the jobs: while it is odd, workers are
wanted. A worker first counts itself in `active` and then reads the epoch again; whoever posted the
job ends the epoch first and then waits until nobody is active. So a job's table is never read after
its end.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache as once
from typing import TYPE_CHECKING, Any

from toytorch.loops.llvm.builder import Builder, ir
from toytorch.loops.runtime import jit

if TYPE_CHECKING:
    from llvmlite.ir import Module, Value


EAGER = 1500  # polls of the queue without a break: some 50 µs
YIELDING = 6000  # polls after these that leave the core to others: some 2 ms, then a worker sleeps
PARTS = 8  # of a job for each thread: a thread that comes late takes fewer
LINE = 8  # words in a line of the cache
# `next`, `active` and what each worker writes have lines of the cache to themselves.
QUEUE = {
    "epoch": 0, "run": 1, "table": 2, "total": 3, "step": 4, "workers": 5, "acquire": 6,
    "release": 7, "yield": LINE + 1, "next": LINE, "active": 2 * LINE, "busy": 3 * LINE,
}  # fmt: skip
WORKER = {"asleep": 0, "lock": 1, "queue": 2, "following": 3}


class Function(Builder):
    """A function of the pool, which reads and writes fields of the queue and of workers."""

    def field(self, base: Value, name: str) -> Any:
        return self.b.gep(base, [self.word((QUEUE | WORKER)[name])])

    def field_of(self, base: Value, name: str) -> Any:
        return self.b.load(self.field(base, name))

    def atomic_get(self, base: Value, name: str) -> Any:
        return self.b.load_atomic(self.field(base, name), "seq_cst", 8)

    def atomic_put(self, base: Value, name: str, value: Any) -> None:
        self.b.store_atomic(value, self.field(base, name), "seq_cst", 8)

    def atomic(self, how: str, base: Value, name: str, value: int | Any) -> Any:
        """Changes a field and returns what it was."""
        return self.b.atomic_rmw(how, self.field(base, name), self.index(value), "seq_cst")

    def pause(self) -> None:
        """Tells the processor that this is a loop that waits, where there is a word for it."""
        if jit.target().processor.pauses:
            name, globals_ = "llvm.x86.sse2.pause", self.module.globals
            type = self.ir.FunctionType(self.ir.VoidType(), [])
            found = globals_.get(name) or self.ir.Function(self.module, type, name)
            self.b.call(found, [])


def write(name: str) -> str:
    """LLVM's text of three functions: `post` posts a job, wakes who sleeps and works too; `life` is
    what a worker does as long as it lives; `take` runs parts of a job until none is left."""
    module = ir().Module(name)
    take = write_take(module, name)
    write_post(module, name, take)
    write_life(module, name, take)
    return str(module)


def write_take(module: Module, name: str) -> Any:
    """void take(queue)"""
    f = Function(f"take_{name}", "void", ["word*"], module)
    b, (queue,) = f.b, f.function.args
    run, table, total, step = (f.field_of(queue, n) for n in ("run", "table", "total", "step"))
    loop, part, done = (f.block(n) for n in ("loop", "part", "done"))
    b.branch(loop)
    b.position_at_end(loop)
    start = f.atomic("add", queue, "next", step)
    b.cbranch(b.icmp_signed("<", start, total), part, done)
    b.position_at_end(part)
    f.call(run, "void", table, start, f.smaller(b.add(start, step), total))
    b.branch(loop)
    b.position_at_end(done)
    b.ret_void()
    return f.function


def write_post(module: Module, name: str, take: Any) -> None:
    """half post(queue, run, table, total, step): 1; or 0, and nothing is done, where the pool is at
    another job."""
    f = Function(f"post_{name}", "half", ["word*", *["word"] * 4], module)
    b, (queue, *job), zero = f.b, f.function.args, f.word(0)
    free, wake, look, ring, next_, work, waiting, done, taken = (
        f.block(n)
        for n in ("free", "wake", "look", "ring", "next", "work", "waiting", "done", "taken")
    )
    b.cbranch(b.icmp_signed("==", f.atomic("xchg", queue, "busy", 1), zero), free, taken)
    b.position_at_end(taken)
    b.ret(f.half(0))
    b.position_at_end(free)
    for field, value in zip(("run", "table", "total", "step"), job):
        b.store(value, f.field(queue, field))
    f.atomic_put(queue, "next", zero)
    epoch = b.add(f.atomic_get(queue, "epoch"), f.word(1))
    f.atomic_put(queue, "epoch", epoch)
    first = f.field_of(queue, "workers")
    b.branch(wake)
    b.position_at_end(wake)
    worker = b.phi(f.word)
    worker.add_incoming(first, free)
    place = f.pointer(worker)
    b.cbranch(b.icmp_signed("==", worker, zero), work, look)
    b.position_at_end(look)
    b.cbranch(b.icmp_signed("==", f.atomic_get(place, "asleep"), zero), next_, ring)
    b.position_at_end(ring)
    f.atomic_put(place, "asleep", zero)
    f.call(f.field_of(queue, "release"), "void", f.field_of(place, "lock"))
    b.branch(next_)
    b.position_at_end(next_)
    worker.add_incoming(f.field_of(place, "following"), next_)
    b.branch(wake)
    b.position_at_end(work)
    b.call(take, [queue])
    f.atomic_put(queue, "epoch", b.add(epoch, f.word(1)))
    b.branch(waiting)
    b.position_at_end(waiting)
    f.pause()
    b.cbranch(b.icmp_signed("==", f.atomic_get(queue, "active"), zero), done, waiting)
    b.position_at_end(done)
    f.atomic_put(queue, "busy", zero)
    b.ret(f.half(1))


def write_life(module: Module, name: str, take: Any) -> None:
    """void life(worker)"""
    f = Function(f"life_{name}", "void", ["word*"], module)
    b, (self,), zero, one = f.b, f.function.args, f.word(0), f.word(1)
    sleep, loop, wanted, work, leave, idle, eager, yielding, tired = (
        f.block(n)
        for n in ("sleep", "loop", "wanted", "work", "leave", "idle", "eager", "yielding", "tired")
    )
    queue = f.pointer(f.field_of(self, "queue"))
    b.branch(sleep)
    b.position_at_end(sleep)
    f.call(f.field_of(queue, "acquire"), "half", f.field_of(self, "lock"), f.half(1))
    b.branch(loop)
    b.position_at_end(loop)
    left, last = b.phi(f.word), b.phi(f.word)
    left.add_incoming(f.word(EAGER + YIELDING), sleep)
    last.add_incoming(zero, sleep)
    epoch = f.atomic_get(queue, "epoch")
    odd = b.icmp_signed("!=", b.and_(epoch, one), zero)
    b.cbranch(b.and_(odd, b.icmp_signed("!=", epoch, last)), wanted, idle)
    b.position_at_end(wanted)
    f.atomic("add", queue, "active", 1)
    b.cbranch(b.icmp_signed("==", f.atomic_get(queue, "epoch"), epoch), work, leave)
    b.position_at_end(work)
    b.call(take, [queue])
    b.branch(leave)
    b.position_at_end(leave)
    f.atomic("sub", queue, "active", 1)
    left.add_incoming(f.word(EAGER + YIELDING), leave)
    last.add_incoming(epoch, leave)
    b.branch(loop)
    b.position_at_end(idle)
    less = b.sub(left, one)
    b.cbranch(b.icmp_signed(">", less, f.word(YIELDING)), eager, yielding)
    b.position_at_end(eager)
    f.pause()
    b.branch(loop)
    b.position_at_end(yielding)
    f.call(f.field_of(queue, "yield"), "half")
    b.cbranch(b.icmp_signed(">", less, zero), loop, tired)
    for block in (eager, yielding):
        left.add_incoming(less, block)
        last.add_incoming(last, block)
    b.position_at_end(tired)
    f.atomic_put(self, "asleep", one)
    b.branch(sleep)


@once
def functions() -> tuple[int, int]:
    """The addresses of `post` and `life`."""
    found = jit.addresses("threads", write, ("post", "life"))
    return found["post"], found["life"]


def yielding() -> Any:
    """The system's function that lets another thread have the core."""
    if sys.platform == "win32":
        return ctypes.windll.kernel32.SwitchToThread
    return ctypes.CDLL(None).sched_yield


def address_of(function: Any) -> int:
    """Where a function of C is."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class ThreadPool:
    """The thread that calls, and workers, which live as long as the process."""

    def __init__(self, threads: int) -> None:
        python = ctypes.pythonapi
        python.PyThread_allocate_lock.restype = ctypes.c_void_p
        python.PyThread_acquire_lock.argtypes = [ctypes.c_void_p, ctypes.c_int]
        python.PyThread_start_new_thread.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        python.PyThread_start_new_thread.restype = ctypes.c_ulong
        self.threads = threads
        self.post, life = functions()
        self.post_job = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 5)(self.post)
        size = 4 * LINE
        memory = (ctypes.c_int64 * (size + LINE * threads))()
        jit.keep(memory)  # the workers read it as long as the process lives
        jit.outlive()
        start = ctypes.addressof(memory)
        start += -start % (8 * LINE)
        self.queue = start

        def write(place: int, values: dict[str, int], fields: dict[str, int]) -> None:
            for field, value in values.items():
                ctypes.c_int64.from_address(place + 8 * fields[field]).value = value

        needed = {
            "acquire": python.PyThread_acquire_lock,
            "release": python.PyThread_release_lock,
            "yield": yielding(),
        }
        write(self.queue, {f: address_of(function) for f, function in needed.items()}, QUEUE)
        following = 0
        for k in range(threads - 1):
            worker = start + 8 * (size + LINE * k)
            lock = python.PyThread_allocate_lock()
            python.PyThread_acquire_lock(lock, 1)
            fields = {"asleep": 1, "lock": lock, "queue": self.queue, "following": following}
            write(worker, fields, WORKER)
            if python.PyThread_start_new_thread(life, worker) == ctypes.c_ulong(-1).value:
                break  # no thread could be made: fewer work
            following = worker
        write(self.queue, {"workers": following}, QUEUE)

    def share(self, run: int, table: int, total: int, parts: int = PARTS) -> bool:
        """Does run(table, lo, hi) for all parts of range(total), so many for each thread; False,
        and nothing is done, where the pool is at another job."""
        step = -(-total // (parts * self.threads))
        return bool(self.post_job(self.queue, run, table, total, step))

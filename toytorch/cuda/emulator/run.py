"""Runs a program: every statement for all threads that are at it, in one step.

Control flow is sets of threads. A statement gets the set that comes to it and gives the set that goes
on behind it: `if` splits the set and joins what comes out of both sides, a loop goes on with those for
which its condition holds until none is left, and `return` gives nobody.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from toytorch.cuda.emulator import program as p
from toytorch.cuda.emulator.errors import KernelError
from toytorch.cuda.emulator.run_expressions import ExpressionRunner, Frame
from toytorch.cuda.emulator.threads import Threads

LOOP_LIMIT = 1_000_000  # turns after which a loop is taken to be endless


class Runner(ExpressionRunner):
    """Runs a program for one batch of blocks."""

    def kernel(self, function: p.Function, arguments: list[Any]) -> None:
        """Runs the kernel for every thread of the batch."""
        frame = self.frame(function, arguments, self.batch.everyone)
        frame.is_kernel = True
        assert function.body is not None
        self.block(function.body, self.batch.everyone, frame)

    def block(self, node: p.Block, threads: Threads, frame: Frame) -> Threads:
        for item in node.items:
            threads = self.rules[item.__class__](item, threads, frame)
            if not threads.count:
                break
        return threads

    def evaluate(self, node: p.Evaluate, threads: Threads, frame: Frame) -> Threads:
        self.counts.ran(node.at[0], threads)
        self.value(node.value, threads, frame)
        return threads

    def if_(self, node: p.If, threads: Threads, frame: Frame) -> Threads:
        condition = self.value(node.condition, threads, frame)
        self.counts.ran(node.at[0], threads)
        self.counts.branch(node.at[0], threads, condition)
        yes, no = threads.split(condition)
        if yes.count:
            yes = self.run(node.yes, yes, frame)
        if no.count and node.no is not None:
            no = self.run(node.no, no, frame)
        return threads.joined([yes, no])

    def loop(self, node: p.Loop, threads: Threads, frame: Frame) -> Threads:
        if node.start is not None:
            self.run(node.start, threads, frame)
        frame.breaks.append([])
        active, left, turns = threads, list[Threads](), 0
        while True:
            if node.condition is not None and (node.test_first or turns):
                condition = self.value(node.condition, active, frame)
                self.counts.ran(node.at[0], active)
                self.counts.branch(node.at[0], active, condition)
                active, leaving = active.split(condition)
                if leaving.count:
                    left.append(leaving)
            if not active.count:
                break
            frame.continues.append([])
            behind = self.run(node.body, active, frame)
            active = active.joined([behind, *frame.continues.pop()])
            if not active.count:
                break
            if node.step is not None:
                self.value(node.step, active, frame)
            turns += 1
            if turns == LOOP_LIMIT:
                self.endless(node, active)
        return threads.joined([*left, *frame.breaks.pop()])

    def endless(self, node: p.Loop, threads: Threads) -> NoReturn:
        raise KernelError(
            f"The loop at {self.system.source.file}:{node.at[0]} has not ended after {LOOP_LIMIT:,} "
            f"turns, {self.system.thread_name(threads, 0)}: threads that wait for others of their "
            "warp or for other blocks wait for ever here",
            node.at,
            self.system.source,
        )

    def switch(self, node: p.Switch, threads: Threads, frame: Frame) -> Threads:
        value = self.value(node.value, threads, frame)
        self.counts.ran(node.at[0], threads)
        entering: dict[int | None, Threads] = {}
        rest, varied = threads, threads.spread(value)
        for number, case in enumerate(node.cases):
            entering[number] = threads.where(varied == case)
        others = ~np.isin(varied, node.cases)
        rest = threads.where(others)
        if isinstance(value, np.ndarray):
            for case in node.cases:
                self.counts.branch(node.at[0], threads, value == case)
        frame.breaks.append([])
        active = self.batch.nobody
        for item in node.items:
            if isinstance(item, p.Stmt):
                active = self.run(item, active, frame) if active.count else active
            else:
                active = threads.joined([active, rest if item is None else entering[item]])
        skipped = [] if None in node.items else [rest]
        return threads.joined([active, *skipped, *frame.breaks.pop()])

    def jump(self, node: p.Jump, threads: Threads, frame: Frame) -> Threads:
        (frame.breaks if node.word == "break" else frame.continues)[-1].append(threads)
        return self.batch.nobody

    def return_(self, node: p.Return, threads: Threads, frame: Frame) -> Threads:
        self.counts.ran(node.at[0], threads)
        if node.value is not None:
            self.write_register(frame, -1, self.value(node.value, threads, frame), threads)
        if frame.is_kernel:
            self.batch.end(threads)
        return self.batch.nobody

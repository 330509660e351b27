"""What the checks of chapter 11 share: a machine whose clock is a number, and arrays at known places."""

import math

import numpy as np


class Machine:
    """A machine that computes nothing and takes its time: work is so many ticks of its clock.

    Args:
        slower: how many times as long work takes that begins at a time.
        first: how many times as long the first call of each function takes.
    """

    def __init__(self, slower=lambda now: 1.0, first=1.0):
        self.now, self.slower, self.first = 0.0, slower, first
        self.calls, self.looks = [], 0

    def clock(self):
        """The time; looking costs nothing."""
        self.looks += 1
        return self.now

    def work(self, ticks):
        """Take so long."""
        self.now += ticks * self.slower(self.now)

    def task(self, name, ticks):
        """A function that takes so long, and notes that it was called."""

        def run():
            self.work(ticks * (self.first if name not in self.calls else 1.0))
            self.calls.append(name)

        return run


def array(shape, dtype=np.float32, offset=0):
    """An array whose first element lies so many bytes behind the beginning of a line of 64 bytes."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    memory = np.zeros(size + offset + 64, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + size].view(dtype).reshape(shape)

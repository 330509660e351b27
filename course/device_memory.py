"""A driver without a device: hands out ranges of addresses, and counts how often it is asked."""

from __future__ import annotations

MIB = 1 << 20


class Driver:
    """Stands for `cudaMalloc` and `cudaFree` of a device with `capacity` bytes.

    A call of the real ones takes a hundred microseconds or more, and `cudaFree` waits for all
    kernels. `reserved` is what has been handed out, `mallocs` and `frees` count the calls.

    >>> driver = Driver(capacity=4 * MIB)
    >>> driver.malloc(2 * MIB), driver.malloc(2 * MIB), driver.reserved // MIB
    (0, 2097152, 4)
    """

    def __init__(self, capacity: int = 80 << 30) -> None:
        self.capacity = capacity
        self.reserved = self.mallocs = self.frees = 0
        self._given: dict[int, int] = {}  # address: size
        self._gaps: list[tuple[int, int]] = []  # what came back: (size, address)
        self._next = 0

    def malloc(self, size: int) -> int:
        """The address of so many bytes; MemoryError if the device has not so many left."""
        if size <= 0 or size % 512:
            raise ValueError(f"malloc: a multiple of 512 bytes is asked for, not {size}")
        if self.reserved + size > self.capacity:
            raise MemoryError(f"out of memory: {size} bytes asked for, of {self.capacity}")
        self.mallocs += 1
        self.reserved += size
        fitting = [gap for gap in self._gaps if gap[0] >= size]
        if fitting:
            room, address = min(fitting)
            self._gaps.remove((room, address))
            if room > size:
                self._gaps.append((room - size, address + size))
        else:
            address, self._next = self._next, self._next + size
        self._given[address] = size
        return address

    def free(self, address: int) -> None:
        """Takes back what `malloc` gave; ValueError for any other address."""
        if address not in self._given:
            raise ValueError(f"free: {address} was not given by malloc, or is free already")
        size = self._given.pop(address)
        self.frees += 1
        self.reserved -= size
        self._gaps.append((size, address))

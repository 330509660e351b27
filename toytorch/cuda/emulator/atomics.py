"""Atomic operations: of threads at one element, each sees what the one before it left."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.facts.hints import Array

UFUNCS = {
    "add": np.add, "sub": np.subtract, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def updated(kind: str, data: Array, index: Array, values: list[Array], used: bool) -> Any:
    """Changes `data` at the indices, thread after thread; what each found there (None if unused).

    A GPU takes the threads in any order. This one takes them by their numbers, so that sums of
    floats are the same at every run.

    >>> data = np.zeros(2, np.int32)
    >>> updated("add", data, np.array([0, 1, 0, 0]), [np.int32([1, 2, 3, 4])], True).tolist()
    [0, 0, 1, 4]
    >>> data.tolist()
    [8, 2]
    """
    if kind in UFUNCS and not used:
        UFUNCS[kind].at(data, index, values[0])
        return None
    order = np.argsort(index, kind="stable")
    place = index[order]
    starts = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]]))
    lengths = np.diff(np.append(starts, len(place)))
    sorted_values = [value[order] for value in values]
    old = np.empty(len(order), data.dtype)
    if kind == "exchange":
        old[1:] = sorted_values[0][:-1]  # what the thread before it wrote
        old[starts] = data[place[starts]]
        ends = starts + lengths - 1
        data[place[ends]] = sorted_values[0][ends]
    elif kind in UFUNCS and len(starts) <= lengths.max():
        # Few places: each one's threads are run through at once.
        for start, length in zip(starts.tolist(), lengths.tolist()):
            mine = slice(start, start + length)
            steps = np.concatenate([data[place[start : start + 1]], sorted_values[0][mine]])
            seen = UFUNCS[kind].accumulate(steps, dtype=data.dtype)
            old[mine] = seen[:-1]
            data[place[start]] = seen[-1]
    else:
        # Many places: the first thread of each, then the second of each, and so on.
        for turn in range(int(lengths.max())):
            now = starts[lengths > turn] + turn
            before = data[place[now]]
            old[now] = before
            given = [value[now] for value in sorted_values]
            if kind == "compare":
                data[place[now]] = np.where(before == given[0], given[1], before)
            else:
                data[place[now]] = UFUNCS[kind](before, given[0])
    found = np.empty_like(old)
    found[order] = old
    return found

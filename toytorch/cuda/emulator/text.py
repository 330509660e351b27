"""What `printf` writes, for each thread in turn."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from toytorch.cuda.emulator.threads import Threads

_FIELD = re.compile(r"%([-+ #0]*\d*(?:\.\d+)?)(?:hh|h|ll|l|z|j|t)?([diuoxXcfFeEgGps%])")
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'", "r": "\r", "0": "\0", "a": "\a"}


def printed(format: str, values: list[Any], threads: Threads) -> str:
    """The text of all threads, in the order of their numbers."""
    pattern = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), format)
    columns = [threads.spread(value).tolist() for value in values]
    unsigned = [np.asarray(value).dtype.itemsize * 8 for value in values]
    return "".join(
        _filled(pattern, [column[i] for column in columns], unsigned) for i in range(threads.count)
    )


def _filled(pattern: str, values: list[Any], bits: list[int]) -> str:
    given = iter(zip(values, bits))

    def field(found: re.Match[str]) -> str:
        flags, kind = found.groups()
        if kind == "%":
            return "%"
        value, size = next(given, (0, 32))
        if kind in "uoxX" and value < 0:  # the bits of a negative number, read without a sign
            value += 1 << size
        if kind in "diu":
            return f"%{flags}d" % int(value)
        if kind == "p":
            return hex(value)
        return f"%{flags}{kind}" % value

    return _FIELD.sub(field, pattern)

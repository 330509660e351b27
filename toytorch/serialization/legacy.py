"""Files older than the zip layout: five pickles, then the bytes of the storages in a row."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pickle import UnpicklingError
from typing import IO, Any

import numpy as np

from toytorch.facts.dtype import dtype
from toytorch.facts.hints import Device
from toytorch.serialization.rebuild import require
from toytorch.serialization.storages import Storages
from toytorch.serialization.unpickler import Unpickler

MAGIC = (0x1950A86A20F9469CFC6C).to_bytes(10, "little")


def load_legacy(
    file: IO[Any],
    map_location: Callable[..., Any] | Device | dict[str, str],
    weights_only: bool = True,
) -> Any:
    """The value in a file of the old layout.

    The tensors come before their bytes, so room is made for a storage as soon as it is named, and
    filled at the end; all of it together must fit in the file.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    data = file.read(size)
    sizes: dict[str, int] = {}
    buffers: dict[str, Any] = {}

    def buffer(key: str, nbytes: int) -> Any:
        sizes[key] = nbytes
        require(sum(sizes.values()) <= size, "its storages are larger than the file")
        buffers[key] = np.empty(nbytes, np.uint8)
        return buffers[key]

    storages = Storages(buffer, "cpu")
    kinds: dict[str, dtype | None] = {}

    def find(key: str, kind: dtype | None, where: str, numel: int) -> Any:
        kinds.setdefault(key, kind)
        return storages.find(key, kind, where, numel)

    at = 0
    header = []
    for _ in range(3):  # magic number, protocol, facts about the system
        header.append((reader := Unpickler(data, find, at)).run())
        at = reader.at
    require(header[1] == 1001, f"its protocol {header[1]!r} is not known")
    value = (reader := Unpickler(data, find, at, weights_only)).run()
    keys = (reader := Unpickler(data, find, reader.at)).run()
    at = reader.at
    require(
        type(keys) is list and sorted(map(str, keys)) == sorted(buffers),
        "its list of storages is not that of its tensors",
    )
    for key in keys:
        require(at + 8 <= size, "it ends before its storages")
        (numel,) = struct.unpack_from("<q", data, at)
        kind = kinds[key]
        nbytes = numel * (1 if kind is None else kind.itemsize)
        require(
            nbytes == sizes[key] and at + 8 + nbytes <= size,
            f"storage {key} does not have the size that its tensors say",
        )
        buffers[key][:] = np.frombuffer(data, np.uint8, nbytes, at + 8)
        at += 8 + nbytes
    if map_location is not None and str(map_location) != "cpu":
        raise UnpicklingError("files of the old layout are loaded to the CPU only")
    return value

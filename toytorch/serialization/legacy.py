"""Files older than the zip layout: five pickles, then the bytes of the storages in a row."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from toytorch.backends import base
from toytorch.facts.dtype import dtype
from toytorch.facts.hints import Device, Fn
from toytorch.serialization.archive import DamagedArchive
from toytorch.serialization.pickler import Pickler
from toytorch.serialization.rebuild import GLOBALS, StorageType, require
from toytorch.serialization.storages import Storages
from toytorch.serialization.unpickler import ACTIONS, Unpickler

MAGIC = 0x1950A86A20F9469CFC6C
HEADER = 64  # bytes, in which the pickle of MAGIC has room
VERSION = 1001
SYSTEM = {
    "protocol_version": VERSION,
    "little_endian": sys.byteorder == "little",
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


def write_legacy(file: IO[Any], program: bytes, pickler: Pickler) -> None:
    """Writes what an older pickler collected."""
    for header in (MAGIC, VERSION, SYSTEM):
        file.write(Pickler().dump(header))
    file.write(program)
    keys = sorted(pickler.storages)
    file.write(Pickler().dump(keys))
    for key in keys:
        flat, kind = pickler.storages[key], pickler.kinds[key]
        held = np.ascontiguousarray(base.of_array(flat).to_numpy(flat)).view(np.uint8)
        file.write(struct.pack("<q", held.nbytes // (1 if kind is None else kind.itemsize)))
        file.write(held.data)


def load_legacy(
    file: IO[Any], map_location: Fn | Device | dict[str, str], weights_only: bool, name: str
) -> Any:
    """The value in a file of the old layout, which is then read up to its end.

    The tensors come before their bytes, whose places follow from all sizes. So the storages are
    listed first; all of them together must fit in the file.
    """
    begin = file.tell()
    _check_magic(file.read(HEADER), name)
    file.seek(begin)
    data = file.read()
    kinds: dict[str, tuple[int, dtype | None]] = {}

    def listed(key: str, kind: dtype | None, where: str, numel: int) -> None:
        require(type(key) is str and type(numel) is int, "a storage has a name and a size")
        kinds.setdefault(key, (numel, kind))

    at = 0
    header = []
    for _ in range(3):  # magic number, protocol, facts about the system
        header.append((reader := Unpickler(data, listed, at, weights_only)).run())
        at = reader.at
    if header[1] != VERSION:
        raise DamagedArchive(f"{name}: Invalid protocol version: {str(header[1])[:40]}")
    (reader := Unpickler(data, listed, at, weights_only)).run(LISTING)
    keys = (reader := Unpickler(data, listed, reader.at)).run()
    end = reader.at
    require(
        type(keys) is list and sorted(map(str, keys)) == sorted(kinds),
        "its list of storages is not that of its tensors",
    )
    parts: dict[str, Any] = {}
    for key in keys:
        require(end + 8 <= len(data), "it ends before its storages")
        (numel,) = struct.unpack_from("<q", data, end)
        wanted, kind = kinds[key]
        nbytes = numel * (1 if kind is None else kind.itemsize)
        require(
            numel == wanted and 0 <= nbytes <= len(data) - end - 8,
            f"storage {key} does not have the size that its tensors say",
        )
        parts[key] = np.frombuffer(data, np.uint8, nbytes, end + 8)
        end += 8 + nbytes
    storages = Storages(lambda key, nbytes: parts[key].copy(), map_location)
    value = Unpickler(data, storages.find, at, weights_only).run()
    file.seek(begin + end)
    return value


def _check_magic(start: bytes, name: str) -> None:
    """Looks at the first bytes by themselves, since what is no such file may have no end."""
    try:
        found = Unpickler(start, lambda *parts: None).run()
    except EOFError:
        if len(start) < HEADER:
            raise
        found = None
    if found != MAGIC:
        raise DamagedArchive(f"{name}: Invalid magic number; corrupt file?")


def _name(unpickler: Unpickler, module: object, name: object) -> None:
    found = GLOBALS.get(f"{module}.{name}")
    unpickler.stack.append(found if type(found) is StorageType else None)


def _name_of_stack(unpickler: Unpickler) -> None:
    name = unpickler.stack.pop()
    _name(unpickler, unpickler.stack.pop(), name)


def _stored(unpickler: Unpickler) -> None:
    if unpickler.stack[-1][:1] == ("module",):
        unpickler.stack[-1] = None
    else:
        unpickler._storage()


def _drop(count: int, result: tuple[None, ...] = ()) -> Callable[[Unpickler], None]:
    """Takes values from the stack; something else may stand for what is made of them."""

    def action(unpickler: Unpickler) -> None:
        require(len(unpickler.stack) >= count, "a pickle ends too early")
        unpickler.stack[-count:] = result

    return action


def _drop_to_mark(unpickler: Unpickler) -> None:
    unpickler.stack = unpickler._outer.pop()


def _frozen(unpickler: Unpickler) -> None:
    unpickler.stack = [*unpickler._outer.pop(), None]


# what instructions do where only the storages are of interest: nothing is made or called
LISTING = ACTIONS | {
    code[0]: action
    for code, action in {
        b"R": _drop(2, (None,)), b"\x81": _drop(2, (None,)), b"b": _drop(1), b"a": _drop(1),
        b"s": _drop(2), b"e": _drop_to_mark, b"u": _drop_to_mark, b"\x90": _drop_to_mark,
        b"\x91": _frozen,
        b"c": lambda u: _name(u, u._line(), u._line()), b"\x93": _name_of_stack, b"Q": _stored,
    }.items()
}  # fmt: skip

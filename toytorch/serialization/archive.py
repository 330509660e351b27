"""The container of a `.pt` file: a zip archive of plain, uncompressed records.

    archive/data.pkl      what was saved, in the language of `pickler.py`
    archive/data/0, 1, …  the memory of the storages, as it lies
    archive/byteorder     "little" or "big"
    archive/version       the version of this layout, 3

Records start at multiples of 64 bytes, so that they can be used where they lie (`mmap=True`).
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import zipfile
import zlib
from typing import IO, Any

import numpy as np

ALIGNMENT = 64
ZIP = b"PK\x03\x04"  # how an archive begins, and each of its records
LOCAL_HEADER = struct.Struct("<4s5H3I2H")  # what stands before each record's name
ENCRYPTED = 0x1
LIMIT_32 = (1 << 31) - 1  # from here on, zipfile adds 20 bytes of longer sizes to the header


COMPILED = "an archive of torch.jit.save, whose code only PyTorch runs"
NEWEST = 10  # the last version of the layout that PyTorch reads


class DamagedArchive(RuntimeError):
    """A file that is no archive, or not a whole one."""


class Writer:
    """Writes records into an open binary file."""

    def __init__(self, file: IO[Any], folder: str = "archive") -> None:
        self.folder = folder
        self.zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)

    def add(self, name: str, data: Any) -> None:
        """One record; `data` is bytes, or a flat array of bytes."""
        data = memoryview(data).cast("B")
        info = zipfile.ZipInfo(f"{self.folder}/{name}")  # dated 1980: equal content, equal file
        longer = 20 if data.nbytes * 1.05 > LIMIT_32 else 0
        assert self.zip.fp is not None
        start = self.zip.fp.tell() + LOCAL_HEADER.size + len(info.filename.encode()) + longer + 4
        padding = -start % ALIGNMENT
        info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
        with self.zip.open(info, "w", force_zip64=bool(longer)) as record:
            record.write(data)

    def close(self) -> None:
        """Writes the directory of the archive; without it there is no archive."""
        self.zip.close()


class Reader:
    """Reads records from an archive that nobody vouches for.

    Every record must lie within the file and apart from all others, uncompressed. So no more
    memory is ever taken than the file has bytes. Errors name the file.
    """

    def __init__(self, file: Any, name: str) -> None:
        self.file, self.name = file, name
        self.size = file.seek(0, os.SEEK_END)
        self._mapped: mmap.mmap | None = None
        try:
            if not self.size:  # of devices, too, which may have no end
                raise zipfile.BadZipFile("not a ZIP archive")
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
        except Exception as error:  # whatever zipfile trips over, the file is at fault
            raise DamagedArchive(
                f"{name}: PytorchStreamReader failed reading zip archive: "
                f"{error or type(error).__name__}"
            ) from error
        if any("/constants.pkl" in entry.filename for entry in entries):
            raise DamagedArchive(f"{name} is {COMPILED}")
        self.records: dict[str, tuple[int, int, int]] = {}  # name: (start, length, checksum)
        folders = set()
        for entry in entries:
            folder, _, rest = entry.filename.partition("/")
            self._check_name(entry.orig_filename)
            if rest in self.records:
                raise self._damaged(f"record '{entry.filename}' is there twice")
            folders.add(folder)
            self.records[rest] = self._place(entry), entry.file_size, entry.CRC
        if len(folders) != 1:
            raise self._damaged("its records are not in one folder" if folders else "it is empty")
        self._check_overlaps()

    def _damaged(self, what: str) -> DamagedArchive:
        return DamagedArchive(f"{self.name} is damaged or hostile: {what}")

    def _check_name(self, name: str) -> None:
        parts = name.split("/")
        if (
            not re.fullmatch(r"[^\\\x00-\x1f]+", name)
            or len(parts) < 2
            or ({"", ".", ".."} & set(parts))
        ):
            raise self._damaged(f"record name {name[:200]!r} is not allowed")

    def _place(self, entry: zipfile.ZipInfo) -> int:
        """Where the bytes of a record start."""
        what = f"record '{entry.filename}'"
        if entry.flag_bits & ENCRYPTED:
            raise self._damaged(f"{what} is encrypted")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise self._damaged(
                f"{what} is compressed; these archives store plain bytes, which "
                "cannot grow when read"
            )
        header = b""
        if 0 <= entry.header_offset <= self.size - LOCAL_HEADER.size:
            self.file.seek(entry.header_offset)
            header = self.file.read(LOCAL_HEADER.size)
        if len(header) < LOCAL_HEADER.size or header[:4] != ZIP:
            raise self._damaged(f"{what} has no header where the directory says")
        *_, name_length, extra_length = LOCAL_HEADER.unpack(header)
        start: int = entry.header_offset + LOCAL_HEADER.size + name_length + extra_length
        if self.file.read(name_length) != entry.orig_filename.encode():
            raise self._damaged(f"{what} is called otherwise at its own place")
        if start + entry.file_size > self.size:
            raise self._damaged(
                f"{what} of {entry.file_size} bytes reaches beyond the end of the "
                f"file ({self.size} bytes)"
            )
        return start

    def _check_overlaps(self) -> None:
        end, last = 0, ""
        for start, length, name in sorted((s, n, name) for name, (s, n, _) in self.records.items()):
            if start < end:
                raise self._damaged(f"records '{last}' and '{name}' overlap")
            end, last = start + length, name

    def __contains__(self, name: str) -> bool:
        return name in self.records

    def length(self, name: str) -> int:
        """The number of bytes of a record."""
        if name not in self.records:
            raise self._damaged(f"record '{name}' is missing")
        return self.records[name][1]

    def zeros(self, name: str) -> Any:
        """As many zeros as a record has bytes."""
        return np.zeros(self.length(name), np.uint8)

    def read(self, name: str) -> Any:
        """The bytes of a record in memory of their own, compared with their checksum."""
        n = self.length(name)
        start, _, checksum = self.records[name]
        data: Any = np.empty(n, np.uint8)
        self.file.seek(start)
        got = _read_into(self.file, memoryview(data))
        if got != n:
            raise self._damaged(f"record '{name}' ends after {got} of {n} bytes")
        if zlib.crc32(data) != checksum:
            raise self._damaged(f"the bytes of record '{name}' do not match their checksum")
        return data

    def map(self, name: str) -> Any:
        """The bytes of a record where they lie in the file; writes stay in this process."""
        n = self.length(name)
        if not n:
            return np.empty(0, np.uint8)
        if self._mapped is None:
            self._mapped = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_COPY)
        return np.frombuffer(self._mapped, np.uint8, n, self.records[name][0])


def _read_into(file: IO[Any], view: memoryview) -> int:
    """Fills `view` as far as the file goes; returns how far."""
    done = 0
    while done < len(view):
        if hasattr(file, "readinto"):
            got = file.readinto(view[done:])
        else:
            piece = file.read(len(view) - done)
            got = len(piece)
            view[done : done + got] = piece
        if not got:
            break
        done += got
    return done

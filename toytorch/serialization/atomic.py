"""Writing a file so that its name always leads to a whole one: the old, or the new."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Any]:
    """A binary file that takes the place of `path` when the block ends without an exception.

    It is written under another name in the same folder, reaches the disk (fsync), and only then
    takes over the name, in one step of the file system. Whoever is killed meanwhile leaves the
    previous file as it was, and perhaps a forgotten `.NAME.….tmp` beside it.
    """
    target = os.path.realpath(os.fspath(path))  # a link keeps pointing at what is replaced
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fspath(path))} does not exist.")
    if os.path.isdir(target):
        raise IsADirectoryError(f"cannot write {os.fspath(path)}: it is a directory")
    temporary = os.path.join(folder, f".{name[:200]}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Makes the new name durable, where the system knows such a thing."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

"""Compiled kernels kept on disk, so that the next process need not compile them.

A file is named by the digest of everything its code depends on, and begins with a digest of its
content: a damaged file is compiled anew. It is written under another name and then renamed, so two
processes may fill the cache at once. Whatever goes wrong with the disk only costs the time to
compile. TOYTORCH_CACHE is the folder; empty, nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys

MAGIC = b"toytorch kernel 1\n"


def folder() -> str:
    """Where kernels are kept, or "" for nowhere."""
    given = os.environ.get("TOYTORCH_CACHE")
    if given is not None:
        return given
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "toytorch", "kernels")


def digest(*parts: str) -> str:
    """The name of a kernel: a digest of all that its code depends on."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def read(name: str) -> bytes | None:
    """The compiled code of that name, if it is there and whole."""
    where = folder()
    if not where:
        return None
    try:
        with open(os.path.join(where, name + ".o"), "rb") as file:
            content = file.read()
    except OSError:
        return None
    start = len(MAGIC) + 32
    if not content.startswith(MAGIC) or len(content) <= start:
        return None
    code = content[start:]
    return code if hashlib.sha256(code).digest() == content[len(MAGIC) : start] else None


def write(name: str, code: bytes) -> bool:
    """Keeps compiled code; False where that is not possible."""
    where = folder()
    if not where:
        return False
    temporary = os.path.join(where, f".{name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        os.makedirs(where, exist_ok=True)
        with open(temporary, "xb") as file:
            file.write(MAGIC + hashlib.sha256(code).digest() + code)
        os.replace(temporary, os.path.join(where, name + ".o"))
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return False
    return True

"""`save` and `load`: PyTorch's files, without the code that PyTorch's files may run."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pickle import UnpicklingError
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.facts.hints import Device, Fn
from toytorch.serialization.archive import NEWEST, ZIP, DamagedArchive, Reader, Writer
from toytorch.serialization.atomic import replacing
from toytorch.serialization.legacy import load_legacy, write_legacy
from toytorch.serialization.pickler import Pickler
from toytorch.serialization.skipping import skipping
from toytorch.serialization.storages import Storages
from toytorch.serialization.unpickler import Unpickler

REFUSED = (
    "Weights only load failed. This file can still be loaded, to do so you have two options, do "
    "those steps only if you trust the source of the checkpoint.\n\t(1) Re-running `torch.load` "
    "with `weights_only` set to `False` also makes modules of torch.nn, arrays of NumPy and other "
    "plain objects; toytorch never executes what is in a file.\n\t(2) Alternatively, to load with "
    "`weights_only=True` please check the recommended steps in the following error message.\n\t"
)
DAMAGED = "Weights only load failed. Nothing in this file was executed.\n"


class DamagedPickle(UnpicklingError, RuntimeError):
    """A file that describes what cannot be: PyTorch raises the one or the other."""


def save(
    obj: object,
    f: object,
    pickle_module: object = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes tensors and containers of them to a file that PyTorch reads too.

    The layout is a zip archive, or that of PyTorch before 1.6 if it is asked for.
    `f` is a path, which leads to the old content or the whole of the new one at any moment, or a
    binary file. Views stay views: tensors that share memory do so again when they are loaded.
    Modules and other objects are written as their classes' names and their attributes; see `load`
    for what comes back. Raises PicklingError for what has no name, such as a lambda.

    >>> import io
    >>> file = io.BytesIO()
    >>> save({"weight": torch.ones(2), "epoch": 3}, file)
    >>> load(io.BytesIO(file.getvalue()))
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    pickler = Pickler(older=not _use_new_zipfile_serialization)
    program = pickler.dump(obj)  # before any file is opened: a refused value leaves no trace
    if isinstance(f, (str, os.PathLike)):
        with replacing(f) as file:
            _write(file, program, pickler, os.path.splitext(os.path.basename(os.fspath(f)))[0])
    elif hasattr(f, "write"):
        _write(f, program, pickler)
    else:
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )


def _write(file: Any, program: bytes, pickler: Pickler, folder: str = "archive") -> None:
    if pickler.older:
        write_legacy(file, program, pickler)
        return
    writer = Writer(file, folder if folder.isascii() and folder.isidentifier() else "archive")
    writer.add("data.pkl", program)
    writer.add(".format_version", b"1")
    writer.add(".storage_alignment", b"64")
    writer.add("byteorder", sys.byteorder.encode())
    for key, flat in pickler.storages.items():
        if skipping.on:
            writer.add(f"data/{key}", bytes(flat.nbytes))
            continue
        held = base.of_array(flat).to_numpy(flat)
        writer.add(f"data/{key}", np.ascontiguousarray(held).view(np.uint8))
    writer.add("version", b"3\n")
    writer.close()


def load(
    f: object,
    map_location: Fn | Device | dict[str, str] = None,
    pickle_module: object = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: object,
) -> Any:
    """Reads what `save`, here or in PyTorch, wrote; never runs code from the file.

    `map_location` says where tensors go: a device, a dict from place to place, or a function of
    (storage, place). With `mmap`, tensors lie in the file until they are touched. A file that is
    damaged, or asks for more than tensors and containers, raises an error that names it.

    With `weights_only=False` a file may also hold modules of `torch.nn`, functions, arrays of NumPy,
    more plain containers, and objects of classes that your program has defined or imported already.
    They are made from their attributes, without calling anything; a class that needs a call is read
    if `add_safe_globals` allows it.
    """
    weights_only = _weights_only(weights_only, pickle_module)
    with opened(f) as (file, name):
        if mmap and not isinstance(f, (str, os.PathLike)):
            raise ValueError("f must be a file path in order to use the mmap argument")
        with _naming(name):
            start = file.read(len(ZIP))
            file.seek(-len(start), os.SEEK_CUR)
            if start == ZIP:
                return _read(Reader(file, name), map_location, bool(mmap), weights_only)
            if mmap:
                raise DamagedArchive(
                    "mmap can only be used with files saved with "
                    f"`torch.save({name}, _use_new_zipfile_serialization=True), please torch.save "
                    "your checkpoint with this option in order to use mmap."
                )
            if not start:
                raise EOFError("Ran out of input: the file is empty")
            return load_legacy(file, map_location, weights_only, name)


def _weights_only(wanted: bool | None, pickle_module: object) -> bool:
    """What a call and the environment say; a module for pickles counts as consent, and no more."""
    forced, never = (
        os.environ.get(f"TORCH_FORCE_{name}_LOAD", "").lower() in ("1", "y", "yes", "true")
        for name in ("WEIGHTS_ONLY", "NO_WEIGHTS_ONLY")
    )
    if forced and never:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    found = pickle_module is None and not never if wanted is None else bool(wanted)
    if (found or forced) and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return found or forced


def _read(
    reader: Reader, map_location: Fn | Device | dict[str, str], mapped: bool, weights_only: bool
) -> Any:
    program = reader.read("data.pkl").tobytes()
    version = reader.read("version").tobytes()[:20]
    if not version.strip().isdigit() or int(version) > NEWEST:
        raise DamagedArchive(f"{reader.name}: version {version!r} is none of 1 to {NEWEST}")
    order = sys.byteorder
    if "byteorder" in reader:
        order = reader.read("byteorder").tobytes().decode("ascii", "replace")
        if order not in ("little", "big"):
            raise DamagedArchive(f"{reader.name} is damaged: unknown byteorder {order[:20]!r}")
    get = reader.map if mapped else reader.read
    if skipping.on:
        get = reader.zeros
    storages = Storages(lambda key, nbytes: get(f"data/{key}"), map_location, order)
    return Unpickler(program, storages.find, weights_only=weights_only).run()


@contextlib.contextmanager
def opened(f: object) -> Iterator[tuple[Any, str]]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file, os.fspath(f)
    elif hasattr(f, "read") and hasattr(f, "seek"):
        name = getattr(f, "name", None)
        yield f, name if isinstance(name, str) else f"<{type(f).__name__}>"
    else:
        name = "read" if hasattr(f, "seek") else "seek"
        missing = f"'{type(f).__name__}' object has no attribute '{name}'"
        raise AttributeError(
            f"{missing}. You can only torch.load from a file that is seekable. Please pre-load the data into a "
            "buffer like io.BytesIO and try to load from it instead."
        )


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Errors of a file's content as UnpicklingError with its name; those of devices as they are."""
    try:
        yield
    except (DamagedArchive, OSError):
        raise
    except EOFError as error:
        raise EOFError(f"{name}: {error}") from None
    except UnpicklingError as error:
        first = REFUSED if "was not an allowed global by default" in str(error) else DAMAGED
        kind = UnpicklingError if first is REFUSED else DamagedPickle
        raise kind(f"{first}{name}: WeightsUnpickler error: {error}") from None
    except RuntimeError as error:
        if "Attempting to deserialize" in str(error):
            raise
        raise DamagedPickle(f"{DAMAGED}{name}: {error}") from error
    except Exception as error:
        raise DamagedPickle(
            f"{DAMAGED}{name}: WeightsUnpickler error: {type(error).__name__}: {error}"
        ) from error

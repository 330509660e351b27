"""What may be asked of a file without making its objects."""

from __future__ import annotations

import pickletools
from pickle import UnpicklingError
from typing import Any

from toytorch.serialization import allowed
from toytorch.serialization.api import opened
from toytorch.serialization.archive import Reader
from toytorch.serialization.rebuild import GLOBALS


def get_unsafe_globals_in_checkpoint(f: object) -> list[str]:
    """The classes and functions that a file names and that `load` does not know by itself.

    Raises ValueError for what is no file of `save` of today's layout. Nothing in it is executed.

    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"a": torch.ones(1)}, file)
    >>> get_unsafe_globals_in_checkpoint(file)
    []
    """
    with opened(f) as (file, name):
        file.seek(0)
        try:
            program = Reader(file, name).read("data.pkl").tobytes()
        except RuntimeError as error:
            raise ValueError("Expected input to be a checkpoint returned by torch.save") from error
    found: dict[str, None] = {}
    texts: list[Any] = []  # that were pushed last: names stand before the operation that joins them
    try:
        for operation, value, _ in pickletools.genops(program):
            if operation.name == "GLOBAL":
                found[str(value).replace(" ", ".")] = None
            elif operation.name == "STACK_GLOBAL":
                found[".".join(texts[-2:])] = None
            elif isinstance(value, str):
                texts.append(value)
    except (ValueError, UnpicklingError) as error:
        raise ValueError(f"{name} is damaged: {error}") from error
    return [full for full in found if full not in GLOBALS and allowed.find(full) is None]

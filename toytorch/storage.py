"""Storages under the name where programs look for them."""

from __future__ import annotations

from toytorch.core.storages import (
    LEGACY,
    TypedStorage,
    UntypedStorage,
    _LegacyStorage,
    _LegacyStorageMeta,
)
from toytorch.facts.dtype import dtype

__all__ = ["TypedStorage", "UntypedStorage", "_LegacyStorage", "_LegacyStorageMeta"]


def _dtype_to_storage_type_map() -> dict[dtype, str]:
    """The names of the older classes by type."""
    return {cls.dtype: cls.__name__ for cls in LEGACY}


def _storage_type_to_dtype_map() -> dict[str, dtype]:
    """The types by the names of the older classes."""
    return {cls.__name__: cls.dtype for cls in LEGACY}

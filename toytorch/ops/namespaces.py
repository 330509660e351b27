"""`torch.ops.my`: operators of one's own, by the namespaces they were defined in."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

NAMESPACES: dict[str, dict[str, Any]] = {}  # by namespace and name, what `library.define` made


class Namespace(ModuleType):
    """One namespace, which may be asked for before anything is defined in it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self.__file__, self._name = "torch.ops", name

    def __getattr__(self, name: str) -> Any:
        found = NAMESPACES.get(self._name, {}).get(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        return found.packet

    def __dir__(self) -> list[str]:
        return sorted(NAMESPACES.get(self._name, {}))


namespace = functools.cache(Namespace)

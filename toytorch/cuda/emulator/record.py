"""What the trees of a source and of a checked kernel are made of."""

from __future__ import annotations

import dataclasses
from typing import Any, dataclass_transform


@dataclass_transform(eq_default=False, field_specifiers=(dataclasses.field,))
class Record:
    """A class whose subclasses are dataclasses; two of their objects are equal if they are one."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclasses.dataclass(eq=False)(cls)

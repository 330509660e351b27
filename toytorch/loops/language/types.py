"""The types of elements, and what each is called by NumPy, LLVM and CUDA.

float16 and bfloat16 are storage only: an element is widened to float32 when it is loaded and
rounded when it is stored. "index" is the type of loop counters and sizes.

    >>> TYPES["int32"].bits, TYPES["bool"].numpy, computed("bfloat16")
    (32, 'bool', 'float32')
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Type:
    """One type of elements: its kind ("f" real, "i" signed, "u" unsigned, "b" truth) and size."""

    name: str
    kind: str
    bits: int  # in memory
    numpy: str
    cuda: str

    @property
    def bytes(self) -> int:
        return self.bits // 8


TYPES = {
    t.name: t
    for t in (
        Type("float32", "f", 32, "float32", "float"),
        Type("float64", "f", 64, "float64", "double"),
        Type("float16", "f", 16, "float16", "unsigned short"),
        Type("bfloat16", "f", 16, "bfloat16", "unsigned short"),
        Type("int8", "i", 8, "int8", "signed char"),
        Type("int16", "i", 16, "int16", "short"),
        Type("int32", "i", 32, "int32", "int"),
        Type("int64", "i", 64, "int64", "long long"),
        Type("uint8", "u", 8, "uint8", "unsigned char"),
        Type("bool", "b", 8, "bool", "bool"),
        Type("index", "i", 64, "int64", "long long"),
    )
}


def kind(name: str) -> str:
    """The kind of a type: "f", "i", "u" or "b"."""
    return TYPES[name].kind


def computed(name: str) -> str:
    """The type in which values of a stored type are computed."""
    return "float32" if name in ("float16", "bfloat16") else name

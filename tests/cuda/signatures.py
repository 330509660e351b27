"""CuPy's signatures, as a table that needs no CuPy: `python -m tests.cuda.signatures` writes it.

The wheel installs without a GPU and without a driver, and its functions can be asked for their
signatures there. The stand-in reads `cupy_signatures.json`; a test compares that file with the
wheel where one is installed.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent / "cupy_signatures.json"
MODULES = (
    "cupy", "cupy.linalg", "cupy.fft", "cupy.random", "cupy.lib.stride_tricks", "cupyx",
    "cupyx.scipy.special",
)  # fmt: skip
CLASSES = {
    "ndarray": "cupy.ndarray", "RawModule": "cupy.RawModule", "RawKernel": "cupy.RawKernel",
    "Device": "cupy.cuda.Device", "Stream": "cupy.cuda.Stream",
    "MemoryPointer": "cupy.cuda.MemoryPointer",
}  # fmt: skip
# "_ndarray_base.sort(self, int axis=-1, kind=None) -> ..." in the first line of a docstring.
WRITTEN = re.compile(r"^[\w.]*\((.*)\)(?:\s*->.*)?$")
TYPE = re.compile(r"^(?:[\w.]+ )+(?=\w)")


def collected() -> dict[str, Any]:
    """The table, from the installed wheel."""
    import cupy

    table: dict[str, Any] = {"version": cupy.__version__, "modules": {}, "classes": {}}
    for name in MODULES:
        module = importlib.import_module(name)
        table["modules"][name] = {
            word: described(getattr(module, word))
            for word in sorted(vars(module))
            if not word.startswith("_") and described(getattr(module, word)) is not None
        }
    for name, path in CLASSES.items():
        owner, _, word = path.rpartition(".")
        found = getattr(importlib.import_module(owner), word)
        table["classes"][name] = {
            member: of_member(getattr(found, member))
            for member in sorted(dir(found))
            if not member.startswith("__") or member in ("__dlpack__", "__cuda_array_interface__")
        }
    return table


def described(found: Any) -> Any:
    """A function's signature, a ufunc's types, or None for anything else."""
    if type(found).__name__ == "ufunc":
        return {
            "name": found.name,
            "nin": found.nin,
            "nout": found.nout,
            "types": " ".join(found.types),
            "casting": found._default_casting,
            "scatter": found._scatter_op,
        }
    if type(found).__name__ == "_GUFunc":
        return (
            "(*args, axes=None, axis=None, keepdims=False, casting='same_kind', dtype=None, "
            "signature=None, order='K', out=None)"
        )
    if inspect.isfunction(found) or inspect.isbuiltin(found) or "cython" in type(found).__name__:
        return signature(found)
    return None


def of_member(found: Any) -> str | None:
    """The signature of a method; "" of a property."""
    return (signature(found) or "") if callable(found) else ""


def signature(found: Any) -> str | None:
    """ "(a, axis=None)", without types; defaults that are no literals are "..."."""
    try:
        known = inspect.signature(found)
    except (TypeError, ValueError):
        return of_docstring(found.__doc__ or "")
    params = [
        p.replace(annotation=p.empty, default=literal(p.default)) for p in known.parameters.values()
    ]
    return str(known.replace(parameters=params, return_annotation=known.empty))


def literal(default: Any) -> Any:
    simple = default is inspect.Parameter.empty or default is None
    return default if simple or isinstance(default, (bool, int, float, str, tuple)) else ...


def of_docstring(text: str) -> str | None:
    """The signature that Cython writes into the first line of a docstring."""
    found = WRITTEN.match(text.strip().split("\n")[0])
    if found is None:
        return None
    return "(" + ", ".join(TYPE.sub("", p) for p in found[1].split(", ")) + ")"


def text(table: dict[str, Any]) -> str:
    return json.dumps(table, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    TABLE.write_text(text(collected()))
    print(f"wrote {TABLE}")

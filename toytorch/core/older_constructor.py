"""`Tensor(2, 3)`, `Tensor([1, 2])`, `FloatTensor(storage)`: the constructors older than `tensor`."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.core.nested_data import to_array
from toytorch.core.tensor import Tensor, like_class, wrap
from toytorch.facts import dtype as types
from toytorch.facts.dtype import dtype
from toytorch.facts.size import Size

NO_FORM = """new() received an invalid combination of arguments - got ({}), but expected one of:
 * (*, torch.device device = None)
      didn't match because some of the arguments have invalid types: ({})
 * (torch.Storage storage)
 * (Tensor other)
 * (tuple of ints size, *, torch.device device = None)
 * (object data, *, torch.device device = None)
"""


def told_kind(value: Any) -> str:
    """The class of an argument, and for a list those of what is in it, as refusals name them."""
    name = value.__class__.__name__
    if not isinstance(value, (list, tuple)):
        return name
    inner = ", ".join(v.__class__.__name__ for v in value)
    return f"{name} of ({inner})" if isinstance(value, tuple) else f"{name} of [{inner}]"


def over_storage(face: Any, kind: dtype) -> Tensor:
    """A tensor of one dimension over the memory of a storage."""
    held = getattr(face, "dtype", kind)
    if held is not kind:
        raise RuntimeError(
            f"Expected a Storage of type {kind.legacy} or an UntypedStorage, but got type "
            f"{held.legacy} for argument 1 'storage'"
        )
    flat = face._storage.flat()
    whole = flat.view(np.uint8)[: flat.nbytes // kind.itemsize * kind.itemsize].view(kind.numpy)
    made = wrap(whole, kind)
    made._storage = face._storage
    return made


def make_legacy(cls: type, *args: Any, type: dtype | None = None, device: Any = None) -> Any:
    """`Tensor(2, 3)`, `Tensor([1, 2])`, `Tensor(other)`: the constructor older than `tensor`."""
    target = type or types.get_default_dtype()
    if len(args) == 1 and hasattr(args[0], "untyped") and hasattr(args[0], "_storage"):
        return like_class(cls, over_storage(args[0], target))
    if len(args) == 1 and isinstance(args[0], Tensor):
        source = args[0]
        if source.dtype is not target:
            raise TypeError(f"expected {target.legacy} (got {source.dtype.legacy})")
        return like_class(cls, source)
    if len(args) == 1 and isinstance(args[0], (str, float, complex)):
        kind = args[0].__class__.__name__
        raise TypeError(
            f"new(): invalid data type '{kind}'"
            if kind == "str"
            else f"new(): data must be a sequence (got {kind})"
        )
    if len(args) == 1 and not isinstance(args[0], (int, Size)):
        given = args[0]
        if isinstance(given, np.ndarray):
            array = np.array(given, dtype=target.numpy)
        else:
            array = to_array(given, target)
    else:
        shape = args[0] if len(args) == 1 and isinstance(args[0], Size) else args or (0,)
        odd = [n for n in shape if not isinstance(n, int)]
        if odd and len(args) > 1 and isinstance(args[0], (list, tuple)):
            kinds = ", ".join(a.__class__.__name__ for a in args)
            marked = ", ".join(f"!{told_kind(a)}!" for a in args)
            raise TypeError(NO_FORM.format(kinds, marked))
        if odd and not isinstance(args[0], int):
            kinds = ", ".join(told_kind(a) for a in args)
            raise TypeError(NO_FORM.format(kinds, ", ".join(f"!{told_kind(a)}!" for a in args)))
        if odd:
            raise TypeError(
                "new(): argument 'size' must be tuple of ints, but found element of "
                f"type {odd[0].__class__.__name__}"
            )
        if any(n < 0 for n in shape):
            negative = next(n for n in shape if n < 0)
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {negative}: {list(shape)}"
            )
        array = np.zeros(shape, dtype=target.numpy)
    return like_class(cls, wrap(array, target))

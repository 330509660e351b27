"""Named tensors: dimensions that are called by name, and checked by it.

Names travel with every op, by what its record says (`names=`):

    elementwise   names of the operands are unified, aligned from the right: a name meets itself or
                  no name, and may not stand elsewhere in the other operand
    reductions    the dimensions that are taken together are gone (or kept, with keepdim)
    views         names go where their dimensions go
    products      names of the dimensions that are summed over disappear
    others        ops along a dimension keep the names; what has no rule asks for `rename(None)`

PyTorch had them from 1.3 to 2.8 and took them out; these are its rules and its words. As long as no
tensor has names, no call is slower for them: while there are such tensors, a mode sees every call.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

from toytorch.core import dispatch
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.hints import Args, Sizes
from toytorch.ops.define import on_tensors

Names = tuple[Any, ...]
_lock = threading.RLock()
_alive = 0  # tensors with names
DIMS = ("dim", "dims", "dim0", "dim1", "dim2", "dimension")
UNSUPPORTED = (
    "aten::{} is not yet supported with named tensors. Please drop names via `tensor = "
    "tensor.rename(None)`, call the op with an unnamed tensor, and set names on the "
    "result of the operation."
)


def names_of(value: Any) -> Names:
    """The names of a tensor's dimensions, None where there is none."""
    return value._names or (None,) * value.ndim


def listed(names: Sequence[Any]) -> str:
    """Names as messages show them: ['N', None]."""
    return "[" + ", ".join("None" if n is None else f"'{n}'" for n in names) + "]"


def checked(names: Sequence[Any], ndim: int) -> Names:
    """Names for a tensor of `ndim` dimensions."""
    names = tuple(names)
    for n in names:
        if n is not None and not (isinstance(n, str) and re.fullmatch(r"[A-Za-z_]\w*", n)):
            raise RuntimeError(
                "Invalid name: a valid identifier contains only digits, alphabetical characters, "
                f"and/or underscore and starts with a non-digit. got: '{n}'."
            )
    if len(names) != ndim:
        raise RuntimeError(
            f"Number of names ({len(names)}) and number of dimensions in tensor ({ndim}) do not "
            f"match. Attempted to create a tensor with names {listed(names)}"
        )
    given = [n for n in names if n is not None]
    if len(set(given)) != len(given):
        raise RuntimeError(
            f"Cannot construct a tensor with duplicate names. Got names: {listed(names)}."
        )
    return names


def put(tensor: Tensor, names: Names | None) -> Tensor:
    """Gives a tensor names, None taking them away."""
    if names is None or all(n is None for n in names):
        if tensor._names is not None:
            tensor._names = None
        return tensor
    if tensor._names is None:
        weakref.finalize(tensor, count, -1).atexit = False
        count(1)
    tensor._names = checked(names, tensor.ndim)
    return tensor


def count(change: int) -> None:
    """Counts the tensors with names; the mode is in force while there are any."""
    global _alive
    with _lock:
        before, _alive = _alive, _alive + change
    if (before > 0) != (_alive > 0):
        state.everywhere = Propagation() if _alive > 0 else None
        state.watch(1 if _alive > 0 else -1)


def position(tensor: Tensor, name: Sequence[str] | int | str | None) -> Any:
    """The number of a dimension given by name."""
    if not isinstance(name, str):
        return name
    names = names_of(tensor)
    if name not in names:
        raise RuntimeError(f"Name '{name}' not found in Tensor{listed(names)}.")
    return names.index(name)


def positions(tensor: Tensor, dims: int | str | Sequence[str] | None) -> Any:
    """The numbers of dimensions given by name or number, one or several."""
    if isinstance(dims, (list, tuple)):
        return type(dims)(position(tensor, d) for d in dims)
    return position(tensor, dims)


def unified(a: Names, b: Names) -> Names:
    """The names of a result of two operands that broadcast."""
    result = []
    for k in range(1, max(len(a), len(b)) + 1):
        x = a[-k] if k <= len(a) else None
        y = b[-k] if k <= len(b) else None
        if x is not None and y is not None and x != y:
            raise RuntimeError(
                f"Error when attempting to broadcast dims {listed(a)} and dims {listed(b)}: dim "
                f"'{x}' and dim '{y}' are at the same position from the right but do not match."
            )
        for one, other, own in ((x, b, y), (y, a, x)):
            if one is not None and own is None and one in other:
                raise RuntimeError(
                    f"Misaligned dims when attempting to broadcast dims {listed(a)} "
                    f"and dims {listed(b)}: dim '{one}' appears in a different "
                    "position from the right across both lists."
                )
        result.append(x if x is not None else y)
    return tuple(reversed(result))


class Propagation:
    """Sees every call once there are named tensors, and names the results."""

    def on_call(self, op: Op, args: Args, out: Any) -> Any:
        """An op: dimensions given by name become numbers, and results get their names."""
        if state.local.unnamed or not any_named(args):
            return dispatch.run(op, args, out)
        args = numbered(op, args)
        names = result_names(op, args)
        result = dispatch.run(op, args, out)
        for r in result if op.many else [result]:
            put(r, names)
        return result

    def on_inplace(self, op: Op, args: Args) -> None:
        """Before a write: refuses one whose result would have other names than the target."""
        if state.local.unnamed or not any_named(args):
            return
        target = args[0]
        names = result_names(op, numbered(op, args))
        own = target._names
        if (
            names is not None
            and own is not None
            and any(n is not None and o is not None and n != o for n, o in zip(names, own))
        ):
            raise RuntimeError(
                f"Cannot write a result with names {listed(names)} into a tensor "
                f"with names {listed(own)}"
            )
        put(target, names)


def any_named(args: Sequence[Any]) -> bool:
    """Whether a tensor among the arguments has names."""
    return any(
        a._names is not None
        if isinstance(a, Tensor)
        else a.__class__ in (list, tuple) and any_named(a)
        for a in args
    )


def numbered(op: Op, args: Args) -> tuple[Any, ...]:
    """The arguments with numbers in place of the names of dimensions."""
    like = next(
        t
        for a in args
        for t in (a if a.__class__ in (list, tuple) else [a])
        if isinstance(t, Tensor)
    )
    return tuple(positions(like, a) if s.name in DIMS else a for s, a in zip(op.schema.args, args))


def result_names(op: Op, args: Args) -> Names | None:
    """The names of the results of an op."""
    given = dict(zip((a.name for a in op.schema.args), args))
    if op.kind == "pointwise":
        names: Names = ()
        for i in op.tensor_at:
            if isinstance(args[i], Tensor):
                names = unified(names, names_of(args[i]))
        return names
    if callable(op.names):
        return op.names(given)
    if op.names == "same":
        return names_of(args[0])
    if op.names == "reduced":
        return reduced(args[0], given)
    raise RuntimeError(UNSUPPORTED.format(op.name.split(".")[0].removeprefix("linalg_")))


def reduced(tensor: Tensor, given: dict[str, Any]) -> Names:
    """The names that are left of a reduction."""
    names, dim = names_of(tensor), given.get("dim")
    if given.get("keepdim"):
        return names
    if dim is None or dim in ((), []):
        return ()
    gone = {d % tensor.ndim for d in (dim if isinstance(dim, (list, tuple)) else [dim])}
    return tuple(n for d, n in enumerate(names) if d not in gone)


# -- the names of results, which records refer to -----------------------------------------------------------------


def permuted(given: dict[str, Any]) -> Names:
    """Of `permute`."""
    names = names_of(given["self"])
    return tuple(names[d] for d in given["dims"])


def swapped(given: dict[str, Any]) -> Names:
    """Of two dimensions exchanged; of the two of a matrix."""
    names = list(names_of(given["self"]))
    i, j = given.get("dim0", 0), given.get("dim1", -1)
    if names:
        names[i], names[j] = names[j], names[i]
    return tuple(names)


def unsqueezed(given: dict[str, Any]) -> Names:
    """The new dimension has none."""
    names = list(names_of(given["self"]))
    names.insert(given["dim"] % (len(names) + 1), None)
    return tuple(names)


def squeezed(given: dict[str, Any]) -> Names:
    """Of the dimensions that stay."""
    tensor, dim = given["self"], given["dim"]
    dims = range(tensor.ndim) if dim is None else dim if isinstance(dim, (list, tuple)) else [dim]
    gone = {d % tensor.ndim for d in dims if tensor.shape[d] == 1}
    return tuple(n for d, n in enumerate(names_of(tensor)) if d not in gone)


def expanded(given: dict[str, Any]) -> Names:
    """Dimensions in front have none."""
    names = names_of(given["self"])
    return (None,) * (len(given["sizes"]) - len(names)) + names


def without_dim(given: dict[str, Any]) -> Names:
    """Of the pieces of `unbind`."""
    return reduced(given["self"], {"dim": given["dim"]})


def joined(given: dict[str, Any]) -> Names:
    """What the tensors of a list have in common."""
    names: Names = names_of(given["tensors"][0])
    for t in given["tensors"][1:]:
        names = unified(names, names_of(t))
    return names


def _contracted(a: Tensor, b: Tensor) -> Names:
    """Names of a @ b, for matrices, vectors and batches of them."""
    x, y = names_of(a), names_of(b)
    left = x[:-1]
    right = y[:-2] + y[-1:] if len(y) > 1 else ()
    batch = unified(left[:-1], right[:-1]) if len(x) > 1 and len(y) > 1 else left[:-1] or right[:-1]
    names = (*batch, *(left[-1:] if len(x) > 1 else ()), *(right[-1:] if len(y) > 1 else ()))
    inside = [n for n in names if n is not None]
    if len(set(inside)) != len(inside):
        raise RuntimeError(
            f"Matrix multiplying Tensor{listed(x)} with Tensor{listed(y)} would "
            f"produce output tensor with duplicate names {listed(names)}. Please "
            "rename the input tensors to produce unique output dims."
        )
    return names


def product(first: str, second: str) -> Any:
    """Of a product of two arguments."""
    return lambda given: _contracted(given[first], given[second])


def added_product(given: dict[str, Any]) -> Names:
    """Of a sum of a tensor and a product."""
    return unified(names_of(given["self"]), _contracted(given["mat1"], given["mat2"]))


def layer(given: dict[str, Any]) -> Names:
    """The last dimension gets that of the weight's rows."""
    names, weight = names_of(given["self"]), names_of(given["weight"])
    return (*names[:-1], weight[0])


def none(given: dict[str, Any]) -> Names:
    """Of one element."""
    return ()


def one(given: dict[str, Any]) -> Names:
    """Of a list of elements."""
    return (None,)


# -- what users call ------------------------------------------------------------------------------


@contextmanager
def unnamed() -> Any:
    """Inside, ops neither look at names nor give them: for backward, and for layouts by hand."""
    before, state.local.unnamed = state.local.unnamed, True
    try:
        yield
    finally:
        state.local.unnamed = before


def with_names(tensor: Tensor, names: Sequence[Any] | None) -> Tensor:
    """A view of a tensor with other names."""
    with unnamed():
        view: Tensor = tensor.view_as(tensor) if tensor.ndim else tensor.view(())
    return put(view, None if names is None else checked(names, tensor.ndim))


def spelled_out(names: Sequence[Any], tensor: Tensor, what: str) -> list[Any]:
    """Names with `...` replaced by those of the dimensions it stands for."""
    found = list(names)
    if found.count(...) > 1:
        raise RuntimeError(f"{what}: More than one Ellipsis ('...') found in names.")
    if ... in found:
        at = found.index(...)
        rest = len(found) - 1
        own = names_of(tensor)
        found[at : at + 1] = own[at : len(own) - (rest - at)]
    return found


def rename(self: Tensor, *names: str, **rename_map: str) -> Tensor:
    """A view with other names: all of them, some by `old="new"`, or none with `rename(None)`.

    >>> x = torch.ones(2, 3, names=("N", "C"))
    >>> x.rename(C="channels").names, x.rename(None).names
    (('N', 'channels'), (None, None))
    """
    return with_names(self, renamed(self, names, rename_map, "rename"))


def rename_(self: Tensor, *names: str, **rename_map: str) -> Tensor:
    """`rename` of the tensor itself."""
    found = renamed(self, names, rename_map, "rename_")
    return put(self, None if found is None else checked(found, self.ndim))


def renamed(
    self: Tensor, names: tuple[Any, ...], rename_map: dict[str, str], what: str
) -> list[Any] | None:
    """The names that `rename` asks for."""
    if names and rename_map:
        raise RuntimeError(
            f"{what}: This function takes either positional args or keyword args, "
            f"but not both. Use tensor.{what}(*names) to rename dims and "
            f"tensor.{what}(**rename_map) to rename dims."
        )
    if names == (None,):
        return None
    if rename_map:
        own = list(names_of(self))
        for old, new in rename_map.items():
            if old not in own:
                raise RuntimeError(
                    f"{what}: Tried to rename dim '{old}' to dim '{new}' in Tensor["
                    f"{', '.join(map(repr, own))}] but dim '{old}' does not exist"
                )
        return [rename_map.get(n, n) for n in own]
    return spelled_out(names, self, what)


def refine_names(self: Tensor, *names: str) -> Tensor:
    """A view whose nameless dimensions got names; those that have one must keep it.

    >>> torch.ones(2, 3, 4).refine_names("N", ..., "W").names
    ('N', None, 'W')
    """
    own = names_of(self)
    found = checked(spelled_out(names, self, "refine_names"), self.ndim)
    for i, (old, new) in enumerate(zip(own, found)):
        if old is not None and new != old:
            what = "is different from" if new is not None else "is more specific than"
            raise RuntimeError(
                f"refine_names: cannot coerce Tensor{listed(own)} to Tensor{listed(found)} because "
                f"'{old}' {what} '{new}' at index {i}"
            )
    return with_names(self, found)


def align_to(self: Tensor, *names: object) -> Tensor:
    """A view with dimensions in the order of `names`; names that are new become dimensions of 1.

    `...` stands for the dimensions that are not named, in their order.

    >>> torch.ones(2, 3, names=("N", "C")).align_to("C", "W", "N").shape
    torch.Size([3, 1, 2])
    """
    own = names_of(self)
    if None in own and ... not in names:
        raise RuntimeError(
            f"align_to: All input dims must be named. Found unnamed dim at index "
            f"{own.index(None)} of Tensor{listed(own)}"
        )
    wanted: list[Any] = []
    for n in names:
        wanted += [o for o in own if o not in names] if n is ... else [n]
    missing = [n for n in own if n not in wanted]
    if missing:
        raise RuntimeError(
            f"align_to: Cannot align Tensor{listed(own)} to a tensor with fewer dims"
            f": dim '{missing[0]}' is not in {listed(wanted)}"
        )
    checked(wanted, len(wanted))
    with unnamed():
        view = self.permute([own.index(n) for n in wanted if n in own])
        for i, n in enumerate(wanted):
            if n not in own:
                view = view.unsqueeze(i)
    return put(view, tuple(wanted))


def align_as(self: Tensor, other: Tensor) -> Tensor:
    """`align_to` with the names of another tensor."""
    return align_to(self, *names_of(other))


def has_names(self: Tensor) -> bool:
    """Whether any dimension has a name."""
    return self._names is not None


def _set_names(self: Tensor, names: Sequence[Any] | None) -> None:
    put(self, None if names is None else checked(names, self.ndim))


def flattened(tensor: Tensor, dims: Any, out: str) -> Tensor:
    """Neighbouring dimensions as one, which gets the name `out`."""
    places = [position(tensor, d) for d in dims]
    own = names_of(tensor)
    if places != list(range(places[0], places[0] + len(places))):
        raise RuntimeError(
            f"flatten(tensor, dims, out_dim): dims {listed(dims)} must be "
            f"consecutive in Tensor{listed(own)}"
        )
    with unnamed():
        flat = tensor.flatten(places[0], places[-1])
    return put(flat, (*own[: places[0]], out, *own[places[-1] + 1 :]))


def unflattened(tensor: Tensor, dim: Any, sizes: Sizes) -> Tensor:
    """A dimension as several, given as (name, size) pairs."""
    at, own = position(tensor, dim), names_of(tensor)
    if hasattr(sizes, "items"):
        pairs = list(sizes.items())
    else:
        pairs = [p if isinstance(p, (tuple, list)) else (None, p) for p in sizes]
    with unnamed():
        made = tensor.unflatten(at, [n for _, n in pairs])
    return put(made, (*own[:at], *(name for name, _ in pairs), *own[at + 1 :]))


for _function in (rename, rename_, refine_names, align_to, align_as, has_names):
    setattr(Tensor, _function.__name__, _function)
on_tensors(names=property(names_of, _set_names))

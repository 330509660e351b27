"""Forward mode: tangents that travel with the values, from the same records as gradients.

A dual tensor carries a tangent, its derivative along one direction. What becomes of it in an op
follows from the op's derivatives, with no rule of its own (J is the op's Jacobian):

    views and elementwise ops    J is the op itself, or diagonal: Jᵀ's rule gives J as well
    all others                   u ↦ Jᵀu is linear, and its own gradient is J (Townsend's trick:
                                 two backward passes over one op make a forward one)
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.autograd.api import grad
from toytorch.autograd.function_tangents import push_function, refuse_other_size
from toytorch.autograd.modes import Mode, enable_grad, no_grad
from toytorch.core import dispatch, inplace, record, write
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, new
from toytorch.facts import state
from toytorch.facts.device import strided
from toytorch.facts.hints import Args
from toytorch.ops import registry
from toytorch.ops.creation.create import empty_strided, zeros, zeros_like

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])
NOT_FORWARD = (
    "Trying to use forward AD with {} that does not support it because it has not been implemented "
    "yet.\nPlease file an issue to PyTorch at https://github.com/pytorch/pytorch/issues/new?"
    "template=feature-request.yml so that we can prioritize its implementation or submit a PR adding "
    "the implementation to derivatives.yaml"
)
_level: Level | None = None  # that of `dual_level`


class Level:
    """One direction to differentiate along: a mode that sees every call on tensors."""

    def __init__(self) -> None:
        self.watch: Any = None

    def __enter__(self) -> Level:
        self.watch = state.watching(self)
        self.watch.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.watch.__exit__(None, None, None)

    # -- tangents of tensors ------------------------------------------------------------------

    def get(self, value: Any) -> Tensor | None:
        """The tangent of a tensor at this level, None where it is zero."""
        tangents = value._tangents if isinstance(value, Tensor) else None
        return None if tangents is None else tangents.get(self)

    def put(self, tensor: Tensor, tangent: Tensor) -> None:
        """Gives a tensor its tangent."""
        tensor._tangents = {**(tensor._tangents or {}), self: tangent}

    def duals(self, values: Sequence[Tensor], tangents: Sequence[Tensor]) -> list[Tensor]:
        """Tensors of the same values that have these tangents."""
        made = [registry["alias"].function(v) for v in values]
        for dual, tangent in zip(made, tangents):
            self.put(dual, tangent)
        return made

    def has_dual(self, args: Sequence[Any]) -> bool:
        """Whether any tensor among the arguments has a tangent."""
        return any(
            self.get(a) is not None or (a.__class__ in (list, tuple) and self.has_dual(a))
            for a in args
        )

    def shares(self, tangent: Tensor, args: Sequence[Any]) -> bool:
        """Whether a tangent lies in memory of the arguments' tangents, or is more than once there."""
        if any(s == 0 and n > 1 for n, s in zip(tangent.shape, tangent.stride())):
            return True
        for a in args:
            if a.__class__ in (list, tuple):
                if self.shares(tangent, a):
                    return True
                continue
            t = self.get(a)
            if t is None:
                continue
            if t.is_sparse or tangent.is_sparse:  # they have no memory to compare
                if t._array is tangent._array:
                    return True
            elif np.may_share_memory(t._array, tangent._array):
                return True
        return False

    # -- calls --------------------------------------------------------------------------------

    def on_call(self, op: Op, args: Args, out: Any) -> Any:
        """An op: its results below this level, and their tangents."""
        outs = out if out.__class__ in (list, tuple) else (out,)
        if out is not None and self.has_dual((*args, *outs)):
            raise NotImplementedError(
                f"Trying to use forward AD with {op.name}_out that does not support it because it "
                "is an out= function"
            )
        result = dispatch.call(op, args, out)
        if op.derivatives and self.has_dual(args):
            results = list(result) if op.many else [result]
            for r, t in zip(results, self.push(op, args, results)):
                if t is not None and r.dtype.rank > 1:
                    t = t if t.dtype is r.dtype else t.to(r.dtype)
                    # A result with memory of its own may be written to: so may its tangent.
                    self.put(r, t if op.kind == "view" or not self.shares(t, args) else t.clone())
            self.mark_saved(results)
        return result

    def on_inplace(self, op: Op, args: Args) -> Tensor:
        """A write: the tangent of what is written goes where the value goes."""
        target = args[0]
        if not (op.derivatives and self.has_dual(args)):
            return write.inplace(op, args)
        with no_grad() if not state.local.grad else enable_grad():
            result = dispatch.call(op, args)
            (new,) = self.push(op, args, [result])
        written = write.inplace(op, args)
        if new is None:
            new = zeros_like(written)
        elif self.shares(new, args[1:]):
            new = new.clone()
        tangent = self.get(target)
        if tangent is None and target._base is not None:
            tangent = self.of_view(target)
        if tangent is None:
            self.put(target, new)
        else:
            tangent.copy_(new)
        self.mark_saved([written])
        return written

    def of_view(self, view: Tensor) -> Tensor:
        """A zero tangent for a view, as a view of that of its base."""
        owner = view._base
        if self.get(owner) is None:
            self.put(owner, zeros_like(owner))
        _, _, size, stride, offset = inplace.geometry(owner, view)
        tangent: Tensor = self.get(owner).as_strided(size, stride, offset)  # type: ignore[union-attr]  # it was put there, see above
        self.put(view, tangent)
        return tangent

    def on_function(self, function: Any, inputs: tuple[Any, ...]) -> Any:
        """A user's Function: its own `jvp` says what becomes of tangents."""
        if not self.has_dual(inputs):
            return function.apply(*inputs)
        return push_function(function, inputs, self.get, self.put)

    def mark_saved(self, results: list[Tensor]) -> None:
        """Gives results that nodes saved their tangents too, for derivatives of derivatives."""
        for r in results:
            node = r.grad_fn
            node = getattr(node, "inner", node)  # of a write through a view
            for value in (node.saved or ()) if node is not None and r._tangents else ():
                if isinstance(value, Tensor) and value._array is r._array:
                    value._tangents = r._tangents

    # -- rules --------------------------------------------------------------------------------

    def push(self, op: Op, args: Args, results: list[Tensor]) -> list[Any]:
        """The tangents of the results."""
        if op.kind == "view":
            tangent = self.get(args[0])
            if not laid_alike(tangent, args[0]):
                # A view of the value must be one of the tangent too: both lie in memory alike.
                tangent = laid_like(tangent, args[0])
                self.put(args[0], tangent)
            moved = dispatch.call(op, (tangent, *args[1:]))
            return list(moved) if op.many else [moved]
        real = not any(isinstance(a, Tensor) and a.dtype.is_complex for a in (*args, *results))
        if op.kind == "pointwise" and not op.many and (real or op.holomorphic):
            return [self.push_elementwise(op, args, results[0])]
        return push_by_two_backwards(op, args, [self.tangent_tree(a) for a in args], results)

    def tangent_tree(self, value: object) -> Any:
        """The tangent of an argument, or of each tensor of a list."""
        if value.__class__ in (list, tuple):
            return [self.get(v) for v in value]
        return self.get(value)

    def push_elementwise(self, op: Op, args: Args, result: Tensor) -> Any:
        """Σ f'ᵢ·tᵢ: for elementwise ops the rule of the gradient is that of the tangent."""
        total = None
        for i, name in op.tensor_names:
            t = self.get(args[i])
            if t is None or name not in op.derivatives:
                continue
            t = t.to(result.dtype).expand(result.shape)
            values = []
            for need in op.needs[name]:
                if need == "g":
                    values.append(t)
                    continue
                kind = next(p for k, p in zip(op.keeps, op.plan) if k == need)
                if kind[0] == "argument":
                    values.append(args[kind[1]])
                elif kind[0] == "result":
                    values.append(result)
                else:
                    values.append(record.TRAITS[kind[0]](args[kind[1]]))
            try:
                part = op.derivatives[name](*values)
            except NotImplementedError as error:  # it has no derivative in either direction
                raise NotImplementedError(NOT_FORWARD.format(op.name)) from error
            if part is not None:
                total = part if total is None else total + part
        return None if total is None else total.expand(result.shape)


def laid_alike(a: Any, b: Tensor) -> bool:
    """Whether tensors of one shape lie in memory alike; dimensions of size 1 do not matter."""
    return all(s == t for s, t, n in zip(a.stride(), b.stride(), b.shape) if n > 1)


def laid_like(tangent: Any, value: Tensor) -> Any:
    """The tangent in memory that is laid out as the value's."""
    strides = value.stride()
    order = sorted(range(value.ndim), key=lambda d: -strides[d])
    back = sorted(range(value.ndim), key=order.__getitem__)
    found = tangent.permute(order).contiguous().permute(back)  # works under vmap, unlike a write
    if laid_alike(found, value):
        return found
    copy = empty_strided(value.shape, strides, dtype=tangent.dtype, device=tangent.device)
    return copy.copy_(tangent)


def like_whole(tangent: Tensor, value: Tensor) -> Tensor:
    """The tangent, in memory as long as that of the value: what is taken of one can be taken of
    the other (`as_strided`)."""
    whole, own = (t.untyped_storage().nbytes() // t.itemsize for t in (value, tangent))
    if own == whole and laid_alike(tangent, value):
        return tangent
    room = zeros(whole, dtype=tangent.dtype, device=tangent.device)
    return room.as_strided(value.shape, value.stride(), value.storage_offset()).copy_(tangent)


def push_by_two_backwards(
    op: Op, args: Args, tangents: list[Any], results: list[Tensor]
) -> list[Any]:
    """J·t as the gradient of u ↦ Jᵀu."""
    xs: list[Tensor] = []
    ts: list[Tensor] = []
    tracked = any(has_history(r) for r in results)

    def fresh(value: Any, tangent: Any) -> Any:
        nonlocal tracked
        if value.__class__ in (list, tuple):
            return [fresh(v, t) for v, t in zip(value, tangent)]
        if tangent is None:
            return value
        tracked = tracked or has_history(value) or has_history(tangent)
        x = lifted(value)
        xs.append(x)
        ts.append(tangent)
        return x

    with enable_grad():
        again = dispatch.call(op, tuple(fresh(a, t) for a, t in zip(args, tangents)))
        outs = list(again) if op.many else [again]
        live = [o for o in outs if o._requires_grad]
        us = [zeros_like(o.detach()).requires_grad_() for o in live]
        if not live:
            return [None] * len(results)
        shares = grad(live, xs, us, create_graph=True, allow_unused=True)
        pairs = [
            (v, t.to(v.dtype)) for v, t in zip(shares, ts) if v is not None and v._requires_grad
        ]
        moved: Any = (
            grad(
                [v for v, _ in pairs],
                us,
                [t for _, t in pairs],
                create_graph=True,
                allow_unused=True,
            )
            if pairs
            else [None] * len(us)
        )
    if not tracked:
        moved = [None if m is None else without_history(m) for m in moved]
    found = iter(moved)
    return [next(found) if o._requires_grad else None for o in outs]


# -- a value with another history ------------------------------------------------------------------


def lifted(x: Tensor) -> Tensor:
    """A tensor to differentiate by: the value of x, connected to whatever x came from."""
    if x._requires_grad:
        return registry["alias"].function(x)
    fresh: Tensor = new(Tensor)
    fresh._array, fresh._dtype, fresh._storage = x._array, x._dtype, x._storage
    fresh._grad_edge, fresh._batches, fresh._tangents = None, x._batches, x._tangents
    fresh._requires_grad = True
    return fresh


def released(tensor: Tensor) -> Tensor:
    """The value without history, with what outer transforms know of it."""
    if not tensor._requires_grad:
        return tensor
    fresh: Tensor = new(Tensor)
    fresh._array, fresh._dtype, fresh._storage = tensor._array, tensor._dtype, tensor._storage
    fresh._requires_grad, fresh._grad_edge = False, None
    fresh._batches, fresh._tangents = tensor._batches, tensor._tangents
    return fresh


def cut(tensor: Tensor) -> Tensor:
    """The value without history, and so its batches and tangents."""
    if not has_history(tensor):
        return tensor
    fresh = released(tensor if tensor._requires_grad else lifted(tensor))
    for field in ("_batches", "_tangents"):
        found = getattr(fresh, field)
        setattr(fresh, field, found and {k: cut(t) for k, t in found.items()})
    return fresh


def has_history(tensor: Tensor) -> bool:
    """Whether a tensor requires a gradient, or its tangent, or the batch it is an example of."""
    return tensor._requires_grad or any(map(has_history, inside(tensor)))


def inside(tensor: Tensor) -> tuple[Tensor, ...]:
    """The batches that a tensor is an example of, and its tangents."""
    return (*(tensor._batches or {}).values(), *(tensor._tangents or {}).values())


def without_history(tensor: Tensor) -> Tensor:
    """The value without history, in all the batches and along all the directions it knows."""
    fresh = released(tensor)
    if fresh is tensor and has_history(tensor):
        fresh = lifted(tensor)
        fresh._requires_grad = False
    for name in ("_batches", "_tangents"):
        inside = getattr(tensor, name)
        if inside:
            setattr(fresh, name, {mode: without_history(t) for mode, t in inside.items()})
    return fresh


# -- what users call ------------------------------------------------------------------------------


def enter_dual_level() -> int:
    """Begins forward mode; see `dual_level`."""
    global _level
    if _level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _level = Level().__enter__()
    return 0


def exit_dual_level(*, level: Level | int | None = None) -> None:
    """Ends forward mode: tangents are forgotten."""
    global _level
    if _level is None:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was "
            "created. This is not supported."
        )
    _level.__exit__()
    _level = None


def __getattr__(name: str) -> int:
    """`_current_level`, which PyTorch's programs ask for: 0 inside a level, -1 outside."""
    if name == "_current_level":
        return -1 if _level is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class dual_level(Mode):
    """Inside, `make_dual` gives tensors a tangent, and ops carry it on.

    >>> with dual_level():
    ...     x = make_dual(torch.tensor(2.), torch.tensor(1.))
    ...     unpack_dual(x ** 3).tangent
    tensor(12.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: Level | int | None = None) -> Tensor:
    """A view of `tensor` with a tangent."""
    if _level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make"
            " sure to enter_dual_level() first."
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if t.dtype.rank < 2:
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    refuse_other_size(tensor, tangent)
    if _level.get(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level 0 is not supported."
        )
    if _level.get(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not "
            "supported."
        )
    if tensor.layout is strided is tangent.layout and tangent._batches is None:
        tangent = like_whole(tangent, tensor)
    dual: Tensor = registry["alias"].function(tensor)
    _level.put(dual, tangent)
    return dual


def unpack_dual(tensor: Tensor, *, level: Level | int | None = None) -> Any:
    """(primal, tangent) of a tensor; its tangent is None if it depends on no dual tensor."""
    if _level is None:
        return UnpackedDualTensor(tensor, None)
    tangent = _level.get(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    with state.below(_level):
        return UnpackedDualTensor(registry["alias"].function(tensor), tangent)


__all__ = [
    "Level", "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level",
    "make_dual", "unpack_dual",
]  # fmt: skip

"""Writing into tensors that a graph knows of: refusals, versions, and histories set right.

After `b.mul_(y)`, b's history is MulBackward0. After the same on a view v of b, the history of b is
CopySlices: the gradient of the part that v shows goes through MulBackward0, the rest goes straight
on; and every live view of b gets its history anew from b.
"""

from __future__ import annotations

import math
import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.sparse import TABLES
from toytorch.core.memory_order import is_dense
from toytorch.core.storage import (
    Conjugated,
    CountedElsewhere,
    InferenceStorage,
    Mirrored,
    OfConjugated,
    Storage,
)
from toytorch.core.tensor import Tensor, strides_of, wrap
from toytorch.facts import state
from toytorch.facts.dtype import dtype
from toytorch.facts.hints import Array, Fn, Sizes
from toytorch.facts.node import (
    SAVED_TWICE,
    Node,
    Refusal,
    lacks_derivative,
    node_of,
    sequence,
)
from toytorch.loops.runtime.jit import address_of


def refuse_inference(target: Tensor) -> None:
    """Refuses to write to what was made in inference mode, outside of it."""
    if target._storage.__class__ is InferenceStorage and not state.local.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make "
            "a clone to get a normal tensor before doing inplace update.See "
            "https://github.com/pytorch/rfcs/pull/17 for more details."
        )


def check(target: Tensor, needs_grad: bool) -> None:
    """Refuses to write into leaves, whose value is not the result of anything, and into what was
    made in inference mode."""
    refuse_inference(target)
    check_history(target, needs_grad)


def check_history(target: Tensor, needs_grad: bool) -> None:
    """`check` but for inference mode, which PyTorch asks about when it has written."""
    if not (needs_grad or target._requires_grad) or not state.local.grad:
        return
    if state.fast_path is state.SLOW:
        for mode in state.local.modes:
            refuse = getattr(mode, "refuse_leaf", None)
            if refuse is not None:  # of what is traced, only a tracer knows the leaves
                refuse(target)
    owner = target._base
    if owner is not None:
        kind = target._no_grad_view
        if kind:
            raise RuntimeError(kind)
        if target._requires_grad and owner._grad_edge is None:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an "
                "in-place operation."
            )
    if target._grad_edge is None and target._requires_grad:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )


def overlaps(target: Tensor) -> bool:
    """Whether one place of memory is several elements, as after `expand`."""
    array = target._array
    return not array.flags.c_contiguous and strided_overlap(array.shape, array.strides)


def strided_overlap(shape: Sizes, strides: Sizes) -> bool:
    """Whether a layout, which is not empty, has a dimension that stays in its place."""
    return 0 not in shape and any(s == 0 and n > 1 for s, n in zip(strides, shape))


SHARED = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation."
)
OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a "
    "single memory location. Please clone() the tensor before performing the operation."
)


def refuse_overlap(target: Tensor) -> None:
    """Refuses to write where one place of memory is several elements."""
    if not target._array.flags.c_contiguous and overlaps(target):
        raise RuntimeError(OVERLAP)


def refuse_shared(target: Tensor, args: Sequence[Any]) -> None:
    """Refuses to write over part of an operand: what is read would depend on the order."""
    array = target._array
    for other in args[1:]:
        if (
            not isinstance(other, Tensor)
            or other is target
            or not one_memory(target._storage, other._storage)
            or other._storage.__class__ is Conjugated  # it is conjugated into a copy first
            or other._array.__class__ in TABLES  # a write replaces its parts
        ):
            continue
        b = other._array
        if array.__class__ is np.ndarray and known_to_share(array, b) and not same_steps(array, b):
            raise RuntimeError(SHARED)


def one_memory(a: Storage | None, b: Storage | None) -> bool:
    """Whether two storages are of one memory, which `data` counts by itself."""
    if a is None or b is None or a is b:
        return a is b is not None
    while hasattr(a, "origin"):
        a = a.origin
    while hasattr(b, "origin"):
        b = b.origin
    return a is b


def same_steps(a: Array, b: Array) -> bool:
    """Whether two arrays that share memory begin and end together and have the same strides, also of
    dimensions of size 1."""
    return (
        a.size == b.size
        and (a.strides == b.strides or strides_of(a) == strides_of(b))
        and address_of(a) == address_of(b)
    )


def known_to_share(a: Array, b: Array) -> bool:
    """Whether two arrays have elements in common; of layouts with gaps PyTorch does not know."""
    if isinstance(a, np.ndarray) is not isinstance(b, np.ndarray):  # one of them is a device's
        return False
    return np.may_share_memory(a, b) and all(
        is_dense(x.shape, x.strides, x.itemsize) for x in (a, b)
    )


def refuse_any_shared(target: Tensor, args: Sequence[Any]) -> None:
    """Refuses to write over any operand, where elements go to places that others name."""
    array = target._array
    if target._storage.__class__ is Conjugated:
        return  # PyTorch conjugates its operands into copies first
    for other in args:
        for t in other if other.__class__ in (list, tuple) else (other,):
            if (
                isinstance(t, Tensor)
                and array.__class__ is np.ndarray
                and (
                    t is target
                    or (one_memory(t._storage, target._storage) and known_to_share(array, t._array))
                )
            ):
                raise RuntimeError(SHARED)


def refuse_arguments(target: Tensor, args: Sequence[Any], shape: Sizes) -> None:
    """Refuses an out= that shares memory with an argument, or would when it has the new shape."""
    if target._storage.__class__ is Conjugated:
        return  # PyTorch conjugates its operands into copies first
    resized = target._array.shape != shape
    for other in args:
        for t in other if isinstance(other, (list, tuple)) else (other,):
            if (
                isinstance(t, Tensor)
                and t._array.__class__ is np.ndarray
                and (
                    t is target
                    or (
                        not resized
                        and t._array.size
                        and 0 not in shape
                        and one_memory(t._storage, target._storage)
                        and known_to_share(t._array, target._array)
                    )
                    or (
                        resized
                        and t._array.size
                        and 0 not in shape
                        and one_memory(t._storage, target._storage)
                        and is_dense(t._array.shape, t._array.strides, t._array.itemsize)
                        and reaches(target, shape, t)
                    )
                )
            ):
                raise RuntimeError(SHARED)


def reaches(target: Tensor, shape: Sizes, other: Tensor) -> bool:
    """Whether a tensor that is given another shape, in rows, will lie over another of its memory."""
    start, step = target.storage_offset() * target._array.itemsize, target._array.itemsize
    first = other.storage_offset() * other._array.itemsize
    end = start + math.prod(shape) * step
    return start < first + other._array.nbytes and first < end


def lies_in_rows(other: Any, target: Tensor, size: int) -> bool:
    """Whether a tensor is, or covers exactly, what another one will be with a number of elements, in
    rows."""
    return other is target or (
        isinstance(other, Tensor)
        and other._array.size == size
        and bool(other._array.flags.c_contiguous)
        and (target._array.size != size or bool(target._array.flags.c_contiguous))
        and one_memory(other._storage, target._storage)
        and other.storage_offset() == target.storage_offset()
    )


# Memory of which another one may be the conjugate.
SEEN_TWICE = (Mirrored, Conjugated, OfConjugated, CountedElsewhere)


def bump(target: Tensor) -> None:
    """Counts a write."""
    storage = target._storage or target._memory()
    if storage.__class__ is Storage:
        storage.version += 1
    elif storage.__class__ in SEEN_TWICE:
        storage.version += 1
        storage.written()
    if storage.guarded_views:
        invalidate(storage)
    if not state.local.grad:
        refresh(target if target._base is None else target._base)


def refresh(owner: Tensor) -> None:
    """Gives views their histories anew after a write that none recorded: PyTorch reads each out of
    the base from then on, as after one that was."""
    for ref in owner._views or ():
        view = ref()
        if view is None or view._no_grad_view or view._dtype.rank < 2:
            continue
        if view._grad_edge is not None or owner._requires_grad:
            node = AsStridedBackward0(owner, view)
            if (
                owner._used_as is not None
                and owner._grad_edge is None
                and view._grad_edge is not None
            ):
                node.seq = node_of(view._grad_edge).seq  # the leaf stays what the old node knew
            view._grad_edge, view._requires_grad, view._ignores_grad = node, True, False
            if view._retained:
                view._keep_retaining()


def history_of_base(view: Tensor) -> None:
    """Gives a view the history it has when its base, which was written to after the view was made,
    begins to want gradients: PyTorch then reads the view out of the base. Where the base wants none
    any more, that is so from its next write on, and no gradient goes on from there."""
    edge = view._grad_edge
    if edge is not None:
        if not view._base._requires_grad:
            guard(view)
        elif edge.__class__ is AsStridedBackward0 and edge.edges == (None,):
            view._grad_edge = AsStridedBackward0(view._base, view)
        return
    if view._dtype.rank < 2 or view._memory().version == view._born:
        return
    why = view._no_grad_view
    node = AsStridedBackward0(view._base, view) if why is None else None
    view._grad_edge = Refusal(of_the_base(without_node(why))) if node is None else node
    view._requires_grad, view._ignores_grad = True, False


Tensor._follow_base = history_of_base


def without_node(why: str) -> str:
    """What is said of a view that no node made, though one would have."""
    return re.sub(r"^Output \d+ of \w+ is a view", "A view was created in no_grad mode", why)


def protect(view: Tensor, why: str) -> None:
    """Marks a view whose memory must not be written to while a graph is recorded."""
    view._no_grad_view = why
    guard(view)


def guard(view: Tensor) -> None:
    """Notes that the history of a view changes with the next write to its memory."""
    storage = view._memory()
    guarded_views = storage.guarded_views
    if guarded_views is None:
        guarded_views = storage.guarded_views = []
    elif len(guarded_views) > 16 and not len(guarded_views) & (len(guarded_views) - 1):
        guarded_views[:] = [v for v in guarded_views if v() is not None]
    guarded_views.append(weakref.ref(view))


def of_the_base(why: str) -> str:
    """What is said of a view that was not written to itself."""
    why = why.replace("Backward0 is a view", " is a view")
    another = "its base or another view of its base has been modified inplace"
    return why.replace("is being modified inplace", another, 1)


def known(view: Tensor) -> bool:
    """Whether a graph knows of a view, or of its base."""
    return bool(view._base._requires_grad) or view._grad_edge is not None


def invalidate(storage: Storage) -> None:
    """Takes the histories of protected views after a write to their memory."""
    left = []
    for ref in storage.guarded_views:
        view = ref()
        if view is not None and view._no_grad_view is None:
            if view._base is None:
                continue  # a result in another shape, which counts as no view any more
            # Read anew out of its base: where that wants no gradient, no gradient goes on.
            view._grad_edge = AsStridedBackward0(view._base, view)
            if view._retained:
                view._keep_retaining()
        elif view is not None and view._base is not None and known(view):
            why = view._no_grad_view
            why = without_node(why) if view._grad_edge is None else why
            view._grad_edge = Refusal(of_the_base(why))
            view._requires_grad = True
            view._ignores_grad = False
        elif view is not None:
            left.append(ref)
    storage.guarded_views = left


def snapshot(target: Tensor) -> Tensor:
    """The value and history of a tensor before it is written to."""
    copy = wrap(target._array.copy(), target._dtype)
    copy._requires_grad, copy._grad_edge = target._requires_grad, target._grad_edge
    if target._batches:
        copy._batches = {mode: whole.clone() for mode, whole in target._batches.items()}
    if target._tangents:
        copy._tangents = {level: t.clone() for level, t in target._tangents.items()}
    return copy


def register_view(source: Tensor, view: Tensor) -> None:
    """Notes that `view` shows memory of `source`."""
    owner = source if source._base is None else source._base
    view._base = owner
    views = owner._views
    if views is None:
        views = owner._views = []
    elif len(views) > 16 and not len(views) & (len(views) - 1):
        views[:] = [v for v in views if v() is not None]
    views.append(weakref.ref(view))
    if view._memory().version:
        view._born = view._memory().version


def geometry(owner: Tensor, view: Tensor) -> tuple[Any, ...]:
    """Shape and strides of a base; shape, strides and offset of a view relative to it.

    Where one is complex and the other real, as for `z.real`, both count in real numbers.
    """
    a, b = owner._array, view._array
    if owner._dtype is not view._dtype:
        a, b = (x[..., None].view(x.real.dtype) if x.dtype.kind == "c" else x for x in (a, b))
    offset = 0
    if CountedElsewhere in (owner._storage.__class__, view._storage.__class__):
        offset = view.storage_offset() - owner.storage_offset()  # of two memories, perhaps
    elif b.__class__ is np.ndarray is a.__class__:
        if b.size:
            distance = address_of(b) - address_of(a)
            if owner._storage.__class__ is Conjugated or view._storage.__class__ is Conjugated:
                distance += shift_of(view) - shift_of(owner)
            offset = distance // b.itemsize
    elif b.size:
        backend = base.of_array(b)
        distance = backend.data_ptr(b) - backend.data_ptr(a) + shift_of(view) - shift_of(owner)
        offset = distance // b.itemsize
    return tuple(a.shape), strides_of(a), tuple(b.shape), strides_of(b), offset


def shift_of(t: Tensor) -> int:
    """The bytes from where a tensor lies to where what it shows lies, unconjugated."""
    return t._storage.shift() if t._storage.__class__ is Conjugated else 0


def conjugated(owner: Tensor, view: Tensor) -> bool:
    """Whether a view shows the conjugates of its base."""
    return (owner._storage.__class__ is Conjugated) != (view._storage.__class__ is Conjugated)


def kinds_of(owner: Tensor, view: Tensor) -> tuple[bool, bool] | None:
    """Whether base and view are complex, where they differ."""
    if owner._dtype is view._dtype:
        return None
    return owner._dtype.is_complex, view._dtype.is_complex


def to_pairs(grad: Tensor) -> Any:
    """A complex gradient as pairs of real numbers; a real one as it is."""
    return grad._as_pairs() if grad.dtype.is_complex else grad


class AsStridedBackward0(Node):
    """History of a view whose base was written to: reads its place out of the base."""

    __slots__ = ("conjugated", "geometry", "kinds")

    def __init__(self, owner: Tensor, view: Tensor) -> None:
        self.edges = (owner._grad_edge or (owner if owner._requires_grad else None),)
        self.seq = next(sequence)
        self.saved = None
        self.versions = ()
        self.meta = (view._array.shape, view._dtype)
        self.geometry, self.kinds = geometry(owner, view), kinds_of(owner, view)
        self.conjugated = conjugated(owner, view)

    @classmethod
    def of_part(
        cls, slices: CopySlices, meta: tuple[dtype | tuple[int, ...], ...]
    ) -> AsStridedBackward0:
        """The history of the view that `slices` wrote through, as it was after that write."""
        node = cls.__new__(cls)
        node.edges, node.seq, node.saved, node.versions = (slices,), next(sequence), None, ()
        node.meta, node.geometry, node.kinds = meta, slices.geometry, slices.kinds
        node.conjugated = slices.conjugated
        return node

    def apply(self, grad: Any) -> Any:
        if self.kinds is not None:
            grad = to_pairs(grad)
        made = grad._strided_gradient(*self.geometry)
        if self.kinds is not None and self.kinds[0]:
            made = made._of_pairs()
        return (made.conj() if self.conjugated else made,)


class CopySlices(Node):
    """History of a base after a write through a view."""

    __slots__ = ("conjugated", "freed", "geometry", "inner", "kinds")
    full_name = "torch::autograd::CopySlices"
    frees = None
    rule: Any = (
        None  # what takes the place of the rule below: the course's injection point, see `using`
    )

    @classmethod
    @contextmanager
    def using(cls, rule: Fn) -> Iterator[None]:
        """Runs rule(grad, part, inner) in the place of `apply` for a while.

        `part(tensor)` is the view of a tensor like the base that the write went through, and
        `inner(grad)` gives the gradients of the old part and of the write's other inputs. The rule
        returns the gradients of the old base and of the other inputs.
        """
        before, cls.rule = cls.rule, rule
        try:
            yield
        finally:
            cls.rule = before

    def __init__(self, owner: Tensor, view: Tensor, inner: Node) -> None:
        # Edge 0 is the base's old history; the rest are the other inputs of the write.
        before = (
            owner._grad_edge
            if owner._grad_edge is not None
            else (owner if owner._requires_grad else None)
        )
        others = inner.edges
        if lacks_derivative(inner):  # PyTorch gives it those that are wanted,
            others = tuple(e for e in others if e is not None)  # of which the base hides the first
        self.edges = (before, *others[1:])
        self.seq, self.saved, self.versions = next(sequence), None, ()
        self.meta = (owner._array.shape, owner._dtype)
        self.inner, self.geometry, self.freed = inner, geometry(owner, view), False
        self.kinds, self.conjugated = kinds_of(owner, view), conjugated(owner, view)
        inner.slices = weakref.ref(self)

    def apply(self, grad: Any) -> Any:
        if self.freed:
            raise RuntimeError(SAVED_TWICE)
        if self.conjugated:
            mine, *others = self._straight(grad.conj())
            return (None if mine is None else mine.conj(), *others)
        return self._straight(grad)

    def _straight(self, grad: Tensor) -> Any:
        """`apply` where the view shows what its base does, and not the conjugates."""
        if CopySlices.rule is not None and self.kinds is None:
            return self._by_rule(grad)
        if self.kinds is not None:
            return self._between_kinds(grad, self.kinds)
        mine, *others = self._through(grad._gather_strided(*self.geometry))
        if mine is not None:
            mine = grad._fill_strided(mine, *self.geometry)
        return (mine, *others)

    def _through(self, part: Tensor) -> Any:
        """The gradients of the write's inputs; the first is None where no base wants one."""
        mine, *others = self.inner.apply(part)
        if self.edges[0] is None:
            return (None, *others)
        if strided_overlap(*self.geometry[2:4]):
            raise RuntimeError(OVERLAP)
        # None: what was there before the write no longer counts
        return (part * 0 if mine is None else mine, *others)

    def _between_kinds(self, grad: Tensor, kinds: tuple[bool, bool]) -> Any:
        """`apply` where one of base and view is complex: both count in real numbers."""
        grad = to_pairs(grad)
        part = grad._gather_strided(*self.geometry)
        mine, *others = self._through(part._of_pairs() if kinds[1] else part)
        if mine is not None:
            mine = grad._fill_strided(to_pairs(mine), *self.geometry)
            mine = mine._of_pairs() if kinds[0] else mine
        return (mine, *others)

    def _by_rule(self, grad: Tensor) -> Any:
        """`apply` by somebody else's rule, over views of a gradient that lies as the base does."""
        shape, strides, size, steps, offset = self.geometry
        if grad.stride() != strides:
            grad = grad.new_empty_strided(shape, strides).copy_(grad)

        def inner(part: Tensor) -> Any:
            mine, *others = self.inner.apply(part)
            return (part * 0 if mine is None else mine, *others)

        def part(tensor: Tensor) -> Any:
            return tensor.as_strided(size, steps, tensor.storage_offset() + offset)

        base, *others = CopySlices.rule(grad, part, inner)
        return (None if self.edges[0] is None else base, *others)

    def release(self) -> None:
        self.freed = True
        self.inner.release()


class ViewMarker(Node):
    """Stands for the old value of a view in the node of a write; never runs."""

    __slots__ = ()

    def __init__(self, view: Tensor) -> None:
        self.edges, self.seq, self.saved, self.versions = (), -1, None, ()
        self.meta = (view._array.shape, view._dtype)


def rebase(target: Tensor, node: Node) -> None:
    """Gives a written tensor its new history, and with it the base and all views of it."""
    owner = target._base
    if owner is None:
        owner = target
        owner._grad_edge = node
    else:
        owner._grad_edge = CopySlices(owner, target, node)
    owner._requires_grad = True
    if owner._retained:
        owner._keep_retaining()
    if owner._views:
        for ref in owner._views:
            view = ref()
            if view is not None and not view._no_grad_view:
                if view is target:  # whose place the node of the write knows already
                    meta = view._array.shape, view._dtype
                    view._grad_edge = AsStridedBackward0.of_part(owner._grad_edge, meta)
                else:
                    view._grad_edge = AsStridedBackward0(owner, view)
                view._requires_grad = True
                if view._ignores_grad:
                    view._ignores_grad = False
                if view._retained:
                    view._keep_retaining()
    if getattr(owner._storage, "guarded_views", None):
        invalidate(owner._storage)


def recordable(target: Tensor) -> bool:
    """Whether no refusal of `check_history` is due where a write to a tensor is recorded."""
    owner, edge = target._base, target._grad_edge
    if owner is None:
        return edge is not None or not target._requires_grad
    if target._no_grad_view is not None:
        return False
    return not target._requires_grad or (edge is not None and owner._grad_edge is not None)


def old_edge(target: Tensor) -> Any:
    """The edge to give the node of a write for the value that is overwritten."""
    owner = target._base
    if owner is None:
        return (
            target._grad_edge
            if target._grad_edge is not None
            else (target if target._requires_grad else None)
        )
    if not owner._requires_grad:
        return None
    return ViewMarker(target)

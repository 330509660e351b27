"""Views: a new layout over the memory of a tensor, and what of it may be written to."""

from __future__ import annotations

import functools
from _thread import get_ident
from typing import Any
from weakref import ref

import numpy as np
from numpy import ndarray

from toytorch.backends import base, no_elements
from toytorch.core import inplace as writing
from toytorch.core.arguments import not_a_tensor
from toytorch.core.op import Op
from toytorch.core.record import edge, record, recorder
from toytorch.core.storage import Conjugated, InferenceStorage, Mirrored, ShownInference, Storage
from toytorch.core.tensor import Tensor, new
from toytorch.facts import state
from toytorch.facts.dtype import FROM_NUMPY
from toytorch.facts.hints import Args, Array


def run_view(op: Op, args: Args) -> Any:
    """A view: a new layout over the memory of the first argument."""
    source = args[0]
    if not isinstance(source, Tensor):
        raise TypeError(not_a_tensor(op, 0, source))
    if source._no_grad_view and source._requires_grad and state.local.grad and op.derivatives:
        edge(source)  # which may be refused
    array = source._array
    xp = np if array.__class__ is ndarray else base.of_array(array).xp
    if not array.size:
        array = no_elements.with_strides(array)
    layouts = op.kernel_on(xp)(array, *args[1:])
    if layouts.__class__ is list:
        views: Any = [view_of(source, a, op.derivatives) for a in layouts]
    else:
        views = view_of(source, layouts, op.derivatives)
    wants = source._requires_grad and state.local.grad
    if (
        not op.derivatives
        or (source._dtype.rank < 2 and not source._requires_grad)
        or source._storage.__class__ is InferenceStorage
    ):
        return views
    if wants:
        record(op, args, views)
    if not state.local.grad:
        for v in views if views.__class__ is list else [views]:
            unrecorded(source, v)
        return views
    why = source._no_grad_view
    if why is not None:
        why = of_a_view(why, made_by(op, args))
    many = views.__class__ is list
    if why is not None or many:
        for i, v in enumerate(views if many else [views]):
            writing.protect(v, MANY_VIEWS % (i, made_by(op, args)) if many else why)
            no_leaf(source, v)
    return views


def unrecorded_view(source: Tensor, array: Array) -> Tensor:
    """The view of a tensor that is `quick` and wants no gradient, or not now."""
    view = view_of(source, array)
    differentiable = source._dtype.rank > 1 or source._requires_grad
    if state.fast_path is not None and differentiable and view._base is not None:
        unrecorded(source, view)
    return view


def unrecorded(source: Tensor, view: Tensor) -> None:
    """Marks a view that was made while no graph is recorded."""
    writing.protect(view, INFERENCE_VIEW if state.local.inference else NO_GRAD_VIEW)
    no_leaf(source, view)


def no_leaf(source: Tensor, view: Tensor) -> None:
    """A view of what wants gradients wants them, too, though nothing was recorded for it; also of
    integers that have a history, where it shows integers of that type."""
    owner = source if source._base is None else source._base
    differentiable = view._dtype.rank > 1 or view._dtype is owner._dtype
    if owner._requires_grad and view._grad_edge is None and differentiable:
        view._requires_grad = view._ignores_grad = True


NO_GRAD_VIEW = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the no_grad block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
INFERENCE_VIEW = (
    NO_GRAD_VIEW.replace("no_grad mode", "inference mode")
    .replace("with grad mode enabled", "in normal mode")
    .replace("no_grad block", "inference_mode block")
)
MANY_VIEWS = (
    "Output %d of %s is a view and is being modified inplace. This view is the output of a "
    "function that returns multiple views. Such functions do not allow the output views to be "
    "modified inplace. You should replace the inplace operation by an out-of-place one."
)


CUSTOM_VIEW = (
    "This view was created inside a custom Function (or because an input was returned as-is) and "
    "the autograd logic to handle view+inplace would override the custom backward associated with "
    "the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix "
    "this by cloning the output of the custom Function."
)


@functools.lru_cache(256)
def maker(node: str) -> str:
    """Who made a view, as refusals name it: UnbindBackward0 is Unbind, SqueezeBackward1 Squeeze1."""
    name, _, number = node.rpartition("Backward")
    return (name or node) + number.removesuffix("0")


def made_by(op: Op, args: Args) -> str:
    """Who made a view: an op, in one of its variants."""
    variant = None if op.variant is None else op.variant(*args)
    return maker(op.node_name if variant is None else op.node_variant(variant).__name__)


@functools.lru_cache(256)
def of_a_view(why: str, name: str) -> str:
    """What to say of a write to a view of a view of which one would have to say `why`."""
    start = f"Output 0 of {name} is a view "
    if why.startswith("A view "):
        return f"{start}of a view which {why.removeprefix('A view ')}"
    kept = "of a view which" if "of a view which" in why else "and is being"
    return start + why[why.index(kept) :]


def view_of(source: Tensor, array: Array, known: Any = True) -> Tensor:
    """A tensor over part of the memory of `source`; `known` tells whether gradients know of it."""
    view: Tensor = new(Tensor)
    view._array = array
    view._requires_grad = False
    view._grad_edge = None
    view._storage = source._storage or source._memory()
    if view._storage.__class__ is ShownInference:
        view._storage = InferenceStorage(view._storage.array, view._storage.memory)
    kind, own = array.dtype, source._array.dtype
    if kind is own or kind == own:
        view._dtype = source._dtype
    else:
        view._dtype = FROM_NUMPY[kind]
        if not (source._dtype.is_complex or view._dtype.is_complex):
            return view  # bytes read anew have no gradient, and are a tensor of their own
    if view._storage.__class__ is InferenceStorage or not known:
        return view  # which no graph will ever hear of
    # What `register_view` does, without a call of it.
    owner = source._base
    if owner is None:
        owner = source
    view._base = owner
    views, seen = owner._views, ref(view)
    if views and views[-1]() is None:
        views[-1] = seen
    else:
        note_view(owner, seen)
    if view._storage.version:
        view._born = view._storage.version
    return view


def note_view(owner: Tensor, seen: ref[Tensor]) -> None:
    """Notes one more view of a tensor. Who makes views one after another, of which none stays, puts each
    in the place of the last one instead, which is gone."""
    views = owner._views
    if views is None:
        owner._views = [seen]
        return
    count = len(views)
    if count > 16 and not count & (count - 1):
        views[:] = [v for v in views if v() is not None]
    views.append(seen)


def conjugates(op: Op, source: Tensor) -> Tensor | None:
    """The conjugates of a tensor as a view of it; None where that is a copy: on other devices, and
    while somebody watches."""
    array = source._array
    if array.__class__ is not ndarray or (state.fast_path is state.SLOW and state.watched()):
        return None
    base, why = source._base, source._no_grad_view
    if base is not None and not base._dtype.is_complex:
        return None
    if why and source._requires_grad:
        edge(source)  # which may be refused
    storage: Any = source._storage or source._memory()
    if not (array.size or storage.flat().size):  # nothing to conjugate
        view, other = view_of(source, array), storage
    elif storage.__class__ is Conjugated and storage.theirs is not None:
        view, other = view_of(source, storage.back(array)), storage.counter
    elif storage.__class__ is Storage or storage.__class__ is Mirrored:
        other = Conjugated(storage, array)
        view = view_of(source, other.array)
    else:
        return None
    view._storage = other
    if not state.local.grad:
        unrecorded(source, view)
        return view
    if source._requires_grad:
        record(op, (source,), view)
    if why is not None:
        writing.protect(view, of_a_view(why, "Conj"))
        no_leaf(source, view)
    return view


def of_its_own(made: Tensor) -> Tensor:
    """What shows all of fresh memory that nobody else has: no view, as far as programs can tell."""
    if made._base is not None:
        made._base = made._no_grad_view = None
    return made


def counted(made: Tensor, writes: int) -> Tensor:
    """A fresh result whose count of writes begins at that of PyTorch, which composes it in place."""
    if writes and not state.local.inference:
        made._memory().version = writes
    return made


@functools.lru_cache(64)
def one_of_many(name: str, count: int) -> list[str]:
    """What to say of writes to each of several views that an op makes."""
    return [MANY_VIEWS % (i, name) for i in range(count)]


def several_views(op: Op, args: Args, arrays: list[Array]) -> list[Tensor]:
    """The views of a tensor that is `quick`, the first argument of an op that makes several."""
    source = args[0]
    kind, storage = source._dtype, source._storage or source._memory()
    owner = source._base
    if owner is None:
        owner = source
    views = owner._views
    if views is None:
        views = owner._views = []
    before, count = len(views), len(arrays)
    if before > 16 and before.bit_length() != (before + count).bit_length():
        views[:] = [v for v in views if v() is not None]
    whys, guarded, version = None, storage.guarded_views, storage.version
    if kind.rank > 1 or source._requires_grad:
        whys = one_of_many(maker(op.node_name), count)
        if guarded is None:
            guarded = storage.guarded_views = []
        elif len(guarded) > 16:
            guarded[:] = [v for v in guarded if v() is not None]
    made = []
    for i, array in enumerate(arrays):
        view: Tensor = new(Tensor)
        view._array = array
        view._dtype = kind
        view._requires_grad = False
        view._grad_edge = None
        view._storage = storage
        view._base = owner
        seen = ref(view)
        views.append(seen)
        if whys is not None:
            view._no_grad_view = whys[i]
        if version:
            view._born = version
        made.append(view)
    if whys is not None:
        guarded.extend(views[-count:] if count else ())
    if source._requires_grad:
        (op.remember or recorder(op))(args, made)
    return made


INFERENCE = (InferenceStorage, ShownInference)


def quick(source: Tensor) -> bool:
    """Whether a view of a tensor is no more than a layout, and a node where it wants gradients: also
    where this thread has switched them off."""
    array = source._array
    if (
        array.__class__ is not ndarray
        or array.size == 0  # strides of views without elements are PyTorch's own affair
        or source._storage.__class__ in INFERENCE
    ):
        return False
    mode = state.fast_path
    return source._no_grad_view is None if mode is None else mode == get_ident()


def plain(source: Tensor) -> bool:
    """Whether `made_view` makes views of a tensor: also of those that must not be written to."""
    array = source._array
    if (
        array.__class__ is not ndarray
        or array.size == 0
        or source._storage.__class__ is InferenceStorage
    ):
        return False
    mode = state.fast_path
    return mode is None or mode == get_ident()


def made_view(op: Op, args: Args, array: Array) -> Tensor:
    """The view of the first argument that is made already, of its type, where that is `plain`."""
    source = args[0]
    storage = source._storage or source._memory()
    if storage.__class__ is not Storage:
        view, seen = view_of(source, array), None
    else:  # what `view_of` and `unrecorded` do, without their questions and calls: 0.9 of 2.3 µs
        view, kind = new(Tensor), source._dtype
        view._array = array
        view._dtype = kind
        view._storage = storage
        view._requires_grad = False
        view._grad_edge = None
        owner = source._base
        if owner is None:
            owner = source
        view._base = owner
        views, seen = owner._views, ref(view)
        if views and views[-1]() is None:
            views[-1] = seen
        else:
            note_view(owner, seen)
        if storage.version:
            view._born = storage.version
        if not source._requires_grad and (
            kind.rank < 2 or (state.fast_path is None and source._no_grad_view is None)
        ):
            return view  # the usual case
        if state.fast_path is not None and not state.local.grad:
            view._no_grad_view = INFERENCE_VIEW if state.local.inference else NO_GRAD_VIEW
            guarded = storage.guarded_views
            if guarded is None:
                storage.guarded_views = [seen]
            else:
                if len(guarded) > 16 and not len(guarded) & (len(guarded) - 1):
                    guarded[:] = [v for v in guarded if v() is not None]
                guarded.append(seen)
            if owner._requires_grad and (kind.rank > 1 or kind is owner._dtype):
                view._requires_grad = view._ignores_grad = True
            return view
    if (source._requires_grad or source._dtype.rank > 1) and view._base is not None:
        if state.fast_path is not None and not state.local.grad:
            unrecorded(source, view)
            return view
        if source._requires_grad:
            (op.remember or recorder(op))(args, view)
        why = source._no_grad_view
        if why is not None:
            view._no_grad_view = of_a_view(why, made_by(op, args))
            guarded = storage.guarded_views
            count = 0 if guarded is None else len(guarded)
            if (
                not count
                or storage.__class__ is not Storage
                or (count > 16 and not count & (count - 1))
            ):
                writing.guard(view)
            else:
                guarded.append(seen)
            if view._grad_edge is None:
                no_leaf(source, view)
    return view

"""The results of a user's Function that are its inputs, or views: what may become of them."""

from __future__ import annotations

from typing import Any

from toytorch.core.inplace import old_edge, rebase, register_view
from toytorch.core.subclasses import disabled_torch_function_impl
from toytorch.core.tensor import Tensor, alias
from toytorch.facts import state

NO_INPUT = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
    "mutated should be passed to ctx.mark_dirty()."
)
NOT_RETURNED = (
    "Some elements marked as dirty during the forward method were not returned as output. The inputs "
    "that are modified inplace must all be outputs of the Function."
)
VIEW_AND_MORE = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function "
    "cannot return more than one Tensor. This is not supported by the current autograd engine. You "
    "should either make sure the input is not a view (using .clone() for example) or make your "
    "Function only return one Tensor (potentially splitting it into two Functions: one doing the "
    "inplace that returns a single Tensor and a second one that does the other operations). You "
    "can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)


def is_input(tensor: Tensor, tensors: tuple[Any, ...]) -> bool:
    """Whether it is one of them, and not only equal to one."""
    for t in tensors:  # noqa: SIM110  # `any` of a generator takes three times as long
        if tensor is t:
            return True
    return False


def itself(tensor: Tensor) -> Tensor:
    """An input that is returned as it is: a view of itself."""
    kind: Any = type(tensor)
    if kind is not Tensor and kind.__torch_function__ is not disabled_torch_function_impl:
        before = state.local.grad
        state.set_grad(False)
        try:
            view: Tensor = tensor.view_as(tensor)  # of the same class
        finally:
            state.set_grad(before)
        return view
    view = alias(tensor)
    if not tensor.is_sparse:
        register_view(tensor, view)
    return view


def refuse_dirty(tensor: Tensor, outputs: int) -> None:
    """Refuses an input that must not be written to."""
    if tensor._base is not None and outputs > 1 and tensor._base._requires_grad:
        raise RuntimeError(VIEW_AND_MORE)
    if tensor._requires_grad and tensor._grad_edge is None:
        raise RuntimeError(
            "a leaf Variable that requires grad has been used in an in-place operation."
        )


def rebase_view(view: Tensor, node: Any, tensors: list[Tensor]) -> None:
    """Puts a step that wrote to a view into the history of the view's base."""
    place = next(i for i, t in enumerate(tensors) if t is view)
    edges, places = list(node.edges), list(node.__dict__["places"])
    edges.insert(0, edges.pop(place))  # the value that was written over comes first
    places.insert(0, places.pop(place))
    edges[0] = old_edge(view)
    node.edges, node.__dict__["places"] = tuple(edges), places
    rebase(view, node)

"""Forward mode through a user's Function: what its `jvp` is given, and what it may return."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.hints import Fn
from toytorch.ops.creation.create import zeros_like

if TYPE_CHECKING:
    from toytorch.autograd.function import FunctionCtx

AS_IS = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not"
IS_VIEW = "A custom Function is returning a view but the jvp is not returning a view of the"


def refuse_other_size(tensor: Tensor, tangent: Tensor) -> None:
    """Refuses a tangent of another shape than the tensor's."""
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}."
        )


def push_function(
    function: Any, inputs: tuple[Any, ...], get: Callable[[Any], Any], put: Fn
) -> Any:
    """Calls a Function and gives its results their tangents; `get` and `put` are those of a level."""
    before, state.local.contexts = state.local.contexts, []
    try:
        result = function.apply(*inputs)
        context: FunctionCtx = state.local.contexts[0]
    finally:
        state.local.contexts = before
    tangents = [tangent_of(x, get(x), context.materialize_grads) for x in inputs]
    versions = [None if t is None else t._version for t in tangents]
    context._pushing = True
    try:
        moved = function.jvp(context, *tangents)
    finally:
        context._pushing = False
    results = result if isinstance(result, tuple) else (result,)
    moved = moved if isinstance(moved, tuple) else (moved,)
    if len(moved) != len(results):
        raise RuntimeError(
            "Function's jvp returned an invalid number of forward gradients "
            f"(expected {len(results)} but got {len(moved)})"
        )
    for i, (r, t) in enumerate(zip(results, moved)):
        check(i, r, t, context, list(zip(inputs, tangents)), versions)
        if t is not None:
            put(r, t)
    return result


def tangent_of(value: object, tangent: Tensor | None, materialize: bool) -> Tensor | None:
    """What `jvp` is given for an argument: zeros where there is no tangent, None for what has none."""
    if tangent is None and materialize and isinstance(value, Tensor) and value.dtype.rank > 1:
        return zeros_like(value.detach())
    return tangent


def check(
    i: int,
    result: Any,
    tangent: Any,
    context: FunctionCtx,
    pairs: list[tuple[Any, Tensor | None]],
    versions: list[int | None],
) -> None:
    """Refuses a tangent that result number i cannot have; `pairs` are inputs and their tangents,
    which had these `versions` before."""
    if tangent is not None and not isinstance(tangent, Tensor):
        raise RuntimeError(
            f"expected Variable or None (got {type(tangent).__name__}) for grad output {i}."
        )
    if not isinstance(result, Tensor):
        return
    fixed = result.dtype.rank < 2 or any(result is t for t in context._non_differentiable)
    if fixed and tangent is not None:
        raise RuntimeError(
            f"Function's jvp returned a gradient at position {i}, but  the corresponding forward "
            "output is not a differentiable Tensor.You should return None at that position instead."
        )
    if fixed:
        return
    if any(result is t for t in context._dirty):
        written = (
            result is x and tangent is t is not None and t._version != before
            for (x, t), before in zip(pairs, versions)
        )
        if not any(written):
            raise RuntimeError(
                "An inplace custom Function is not modifying the forward mode gradients inplace. "
                "If the forward is modifying an input inplace, then the jvp function must modify "
                "the corresponding gradient inplace."
            )
    elif result._base is not None:
        check_view(result, tangent, pairs)
    if tangent is not None:
        refuse_other_size(result, tangent)


def check_view(
    result: Tensor, tangent: Tensor | None, pairs: list[tuple[Any, Tensor | None]]
) -> None:
    """A view of an input has a view of that input's tangent."""
    if tangent is None or tangent._base is None:
        raise RuntimeError(f"{AS_IS} returning a view.")
    of = next(
        (
            t
            for x, t in pairs
            if isinstance(x, Tensor) and t is not None and x._storage is result._storage
        ),
        None,
    )
    if of is None:
        return
    if of._base is None and tangent._base is not of:
        raise RuntimeError(f"{IS_VIEW} given grad input.")
    if of._base is not None and tangent._base is not of._base:
        raise RuntimeError(f"{IS_VIEW} same base as the given grad input.")

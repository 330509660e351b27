"""The backward graph: its classes, and hooks on what it saves."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from numpy import empty

from toytorch.core.inplace import bump
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import state
from toytorch.facts.hints import DType, Fn
from toytorch.facts.node import AccumulateGrad, Node, Output, RemovableHandle, as_function

__all__ = [
    "AccumulateGrad",
    "GradientEdge",
    "Node",
    "RemovableHandle",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]  # fmt: skip


class saved_tensors_hooks:
    """Nodes made inside keep pack_hook(tensor), and backward works on unpack_hook of that.

    Like `torch.autograd.graph.saved_tensors_hooks`: to keep saved tensors elsewhere, smaller, or
    to look at them.

    >>> x = torch.tensor(3., requires_grad=True)
    >>> with saved_tensors_hooks(lambda t: t * 10, lambda t: t):
    ...     y = x.exp()
    >>> y.backward(); x.grad / y.detach()
    tensor(10.)
    """

    def __init__(self, pack_hook: Fn, unpack_hook: Fn) -> None:
        self.hooks = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if state.local.no_saved_hooks is not None:
            raise RuntimeError(state.local.no_saved_hooks)
        state.local.saved_hooks = (*state.local.saved_hooks, (self._pack, self.hooks[1]))
        state.watch(1)

    def __exit__(self, *exc: object) -> None:
        if state.local.saved_hooks:  # a hook that runs, with these put aside, may leave once more
            state.watch(-1)
            state.local.saved_hooks = state.local.saved_hooks[:-1]

    def _pack(self, tensor: Any) -> Any:
        grad, hooks = state.local.grad, state.local.saved_hooks
        state.local.saved_hooks = ()  # what the hook computes is not packed again
        state.set_grad(False)
        try:
            return self.hooks[0](tensor)
        finally:
            state.set_grad(grad)
            state.local.saved_hooks = hooks


class save_on_cpu(saved_tensors_hooks):
    """Keeps saved tensors in the CPU's memory, and brings them back for backward."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def to_cpu(tensor: Tensor) -> Any:
            return tensor.device, tensor.detach().to("cpu", copy=True)

        def back(packed: Any) -> Any:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(to_cpu, back)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Any:
    """Refuses `saved_tensors_hooks` inside, with this message."""
    if state.local.saved_hooks:
        raise RuntimeError(error_message)
    before, state.local.no_saved_hooks = state.local.no_saved_hooks, error_message
    try:
        yield
    finally:
        state.local.no_saved_hooks = before


class GradientEdge(NamedTuple):
    """A place in the graph: a result of a node. `ownership_token` keeps alive what it needs."""

    node: Any
    output_nr: int
    ownership_token: Any = None

    @property
    def meta(self) -> tuple[Any, DType]:
        """Shape and type of the gradients that arrive here."""
        meta = self.node.meta[self.output_nr] if self.node.many else self.node.meta
        return meta[0], meta[1]

    def tensor(self) -> Tensor:
        """A tensor whose gradient arrives here: the leaf, or one whose elements mean nothing."""
        if isinstance(self.node, AccumulateGrad):
            return self.node.variable
        shape, dtype = self.meta
        made = wrap(empty(shape, dtype.numpy), dtype)
        made._requires_grad = True
        made._grad_edge = Output(self.node, self.output_nr) if self.node.many else self.node
        return made


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of a tensor arrives."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not "
            "require gradients"
        )
    return GradientEdge(*as_function(tensor if tensor._grad_edge is None else tensor._grad_edge))


def increment_version(tensor: Any) -> None:
    """Counts a write that the framework did not see."""
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        bump(t)


def register_multi_grad_hook(tensors: Any, fn: Fn, *, mode: str = "all") -> Any:
    """Calls fn when the gradients of all tensors (fn(list)) or of the first (fn(grad)) are there.

    Like `torch.autograd.graph.register_multi_grad_hook`: once in every backward pass; "all" waits
    for the tensors that the pass will come to, and gives None for the others.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors, key = list(tensors), object()

    def hook(index: int) -> Any:
        def note(grad: Any) -> None:
            current = state.local.backward_pass
            if current is None:
                raise AssertionError("expected this hook to be called inside a backward call")
            arrived = current.notes.get(key)
            if arrived is None:
                expected = sum(current.reaches(tensors)) if mode == "all" else 1
                arrived = current.notes[key] = {"expected": expected}
            arrived[index] = grad
            count = len(arrived) - 1
            if mode == "any" and count == 1:
                fn(grad)
            elif mode == "all" and count == arrived["expected"]:
                fn([arrived.get(i) for i in range(len(tensors))])

        return note

    return Handles([t.register_hook(hook(i)) for i, t in enumerate(tensors)])


class Handles:
    """Removes hooks of several tensors."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Removes all of them."""
        for h in self.handles:
            h.remove()


def __getattr__(name: str) -> Any:
    """Finds what is imported when first named."""
    if name == "allow_mutation_on_saved_tensors":
        from toytorch.autograd import mutation  # a circle otherwise: it is made of hooks

        return mutation.allow_mutation_on_saved_tensors
    raise AttributeError(f"module 'torch.autograd.graph' has no attribute '{name}'")

"""`SavedTensor`: what a node keeps for its backward pass, before anybody unpacks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toytorch.facts import state
from toytorch.facts.node import Node, Packed

FREED = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of "
    "the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if "
    "you need to backward through the graph a second time or if you need to access saved variables "
    "after calling backward."
)


class SavedTensor:
    """One saved tensor of a node, as `node._raw_saved_self` gives it; hooks may pack and unpack it.

    Like `torch.autograd.SavedTensor`: RuntimeError for one that is freed, None, or has hooks.

    >>> x = torch.tensor(3., requires_grad=True)
    >>> y = x * x
    >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t * 2, lambda t: t)
    >>> y.grad_fn._saved_self
    tensor(6., grad_fn=<Same>)
    """

    __slots__ = ("__weakref__", "_hooks", "_inner", "_node", "_place")
    _node: Node
    _place: int  # among what the node saves
    _inner: int | None  # in the list that stands there

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    def register_hooks(self, *hooks: Callable[..., Any]) -> None:
        """Keeps pack(tensor) from now on, and gives unpack of that to whoever asks."""
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types "
                "are supported:\n    1. (self: torch._C._autograd.SavedTensor, arg0: "
                "collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\nInvoked with: "
                + ", ".join(map(repr, (self, *hooks)))
            )
        node = self._node
        if node.saved is None:
            raise RuntimeError(FREED)
        kind, value = self._value()
        if value.__class__ is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
                "only one pair of hooks is allowed at a time."
            )
        if value is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        grad, outer = state.local.grad, state.local.saved_hooks
        state.local.saved_hooks = ()  # what the hook computes is not packed in its turn
        state.set_grad(False)
        try:
            packed: Any = Packed(value, hooks)
        finally:
            state.set_grad(grad)
            state.local.saved_hooks = outer
        if kind is not None:
            packed = (kind, packed)
        self._put(packed)

    def _value(self) -> tuple[int | None, Any]:
        """What stands in the node: the number of the result that it is (a Function notes it), and
        the tensor."""
        value = self._node.saved[self._place]
        if self._inner is not None:
            return None, value[self._inner]
        if self._node.op is None and value is not None:
            return value
        return None, value

    def _put(self, packed: Any) -> None:
        """Puts the packed form in the tensor's place; writes to the original no longer count."""
        node, place = self._node, self._place
        if self._inner is not None:
            inner = list(node.saved[place])
            inner[self._inner] = packed
            packed = type(node.saved[place])(inner)
        node.saved = (*node.saved[:place], packed, *node.saved[place + 1 :])
        node.versions = (*node.versions[:place], None, *node.versions[place + 1 :])
        node.packed, node.bare = True, False

    @property
    def data(self) -> Any:
        """The tensor, as it was saved or as the hooks give it."""
        value = self._value()[1]
        return value.open() if value.__class__ is Packed else value

    def unpack(self) -> Any:
        """`data`, once more."""
        return self.data

    def __repr__(self) -> str:
        return f"<torch._C._autograd.SavedTensor object at {id(self):#x}>"


def saved_in(node: Node, place: int, inner: int | None = None) -> SavedTensor:
    """The SavedTensor of one place in what a node saves."""
    made = object.__new__(SavedTensor)
    made._node, made._place, made._inner = node, place, inner
    return made

"""Writing to tensors that nodes have saved: what was saved is copied just before."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toytorch.autograd.graph import saved_tensors_hooks
from toytorch.core import dispatch, write
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.hints import Args

OUTSIDE = "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"


class RemovableHandle:
    """What a node keeps for a tensor: the handle is gone when the last such node is."""

    __slots__ = ("__weakref__",)


class Saved:
    """The tensors that nodes have saved inside of one context.

    original             {handle: the tensor}, as long as nobody has written to it
    cloned               {handle: what it was}, since somebody has
    tid_to_weakhandle    {which tensor in which state: its handle}
    """

    def __init__(self) -> None:
        self.original: weakref.WeakKeyDictionary[RemovableHandle, Tensor] = (
            weakref.WeakKeyDictionary()
        )
        self.cloned: weakref.WeakKeyDictionary[RemovableHandle, Tensor] = (
            weakref.WeakKeyDictionary()
        )
        self.tid_to_weakhandle: weakref.WeakValueDictionary[Any, RemovableHandle] = (
            weakref.WeakValueDictionary()
        )

    def pack(self, tensor: Tensor) -> RemovableHandle:
        """The handle of a tensor, one for all nodes that save it in this state."""
        memory = tensor._memory()
        tid = id(memory), tensor.shape, tensor.stride(), tensor.storage_offset(), memory.version
        handle = self.tid_to_weakhandle.get(tid)
        if handle is None:
            handle = self.tid_to_weakhandle[tid] = RemovableHandle()
            self.original[handle] = tensor
        return handle

    def unpack(self, handle: RemovableHandle) -> Tensor:
        """The tensor as it was when it was saved."""
        assert state.local.mutation is self, OUTSIDE
        return self.cloned[handle] if handle in self.cloned else self.original[handle]

    def before_write(self, target: Tensor) -> None:
        """Copies what shares memory with a tensor that is about to be written to."""
        memory = target._memory()
        for handle, tensor in list(self.original.items()):
            if tensor._memory() is memory:
                self.cloned[handle] = tensor.detach().clone()
                del self.original[handle]

    # -- as a mode, it is told of every write ------------------------------------------------------

    def on_inplace(self, op: Op, args: Args) -> Tensor:
        """A call that writes into its first argument."""
        self.before_write(args[0])
        return write.inplace(op, args)

    def on_call(self, op: Op, args: Args, out: Any) -> Any:
        """A call, which may have out=."""
        for target in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(target, Tensor):
                self.before_write(target)
        return dispatch.hand_over(op, args, out)


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Saved]:
    """Inside, tensors may be written to though a node has saved them: backward sees what they were.

    Like `torch.autograd.graph.allow_mutation_on_saved_tensors`; the backward pass has to run inside,
    too. Raises RuntimeError inside of another one.

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = y ** 2
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor(6.)
    """
    if state.local.mutation is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    saved = Saved()
    state.local.mutation = saved
    try:
        with saved_tensors_hooks(saved.pack, saved.unpack), state.watching(saved):
            yield saved
    finally:
        state.local.mutation = None
        for table in (saved.original, saved.cloned, saved.tid_to_weakhandle):
            table.clear()

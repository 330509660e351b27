"""The backward pass: from the newest node to the oldest, each visited once.

Nodes are numbered in the order of creation, and a node only points to older ones, so of all nodes
where a gradient waits the newest has got everything it will get: it may run. A pass that nobody
watches finds its way like that, with a heap. A pass for chosen inputs, or one that is observed or
ordered by somebody else, first collects the nodes and sorts them. Both are loops, not recursions,
and a node's saved tensors are dropped as soon as it has run.
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush, heappushpop
from typing import Any

import numpy as np

from toytorch.backends import base, no_elements
from toytorch.backends.sparse import TABLES
from toytorch.core import subclasses
from toytorch.core.memory_order import is_dense
from toytorch.core.tensor import Tensor, wrap
from toytorch.core.views import unrecorded_view
from toytorch.facts import state
from toytorch.facts.hints import Array, ArrayModule, Fn
from toytorch.facts.node import AccumulateGrad, Node, Output, as_function, lacks_derivative, node_of

add, ndarray = np.add, np.ndarray
Order = Callable[[Node], Sequence[Node]]


def by_sequence(nodes: list[Node]) -> list[Node]:
    """Newest first: every node after those that send gradient to it."""
    nodes.sort(key=_sequence, reverse=True)
    return nodes


_sequence = operator.attrgetter("seq")


def reachable(roots: Sequence[Any]) -> list[Node]:
    """All nodes under the roots, in no particular order."""
    seen: set[Any] = set()
    stack = [n for n in roots if isinstance(n, Node)]
    seen.update(stack)
    nodes = list(seen)
    stack = list(nodes)
    add, push, keep = seen.add, stack.append, nodes.append
    while stack:
        for target in stack.pop().edges:
            if target is None or target.__class__ is Tensor or target in seen:
                continue
            if target.__class__ is Output:
                target = target.node
                if target in seen:
                    continue
            elif not isinstance(target, Node):  # a leaf of a class of its own, like Parameter
                continue
            add(target)
            push(target)
            keep(target)
    return nodes


def _one_result_each(roots: list[tuple[Any, Tensor]]) -> bool:
    """Whether every node is called with one gradient; a `run` is given nothing to tell several."""
    nodes = [as_function(target)[0] for target, _ in roots]
    return not any(node.many for node in reachable(nodes))


class Pass:
    """A backward pass that runs: its number, and what is called when it is done."""

    __slots__ = (
        "at", "callbacks", "chosen", "inputs", "keep_graph", "line", "notes", "number", "roots",
    )  # fmt: skip
    counter = itertools.count()

    def __init__(
        self, keep_graph: bool, roots: list[tuple[Any, Tensor]], inputs: list[Tensor] | None
    ) -> None:
        self.number, self.keep_graph = next(self.counter), keep_graph
        self.roots, self.inputs = [target for target, _ in roots], inputs
        self.chosen = inputs is not None  # whether only some inputs get gradients
        self.callbacks: list[Callable[[], None]] = []
        self.notes: dict[Any, Any] = {}  # what hooks keep as long as the pass runs
        self.at = -1  # the number of the node that runs
        self.line: Any = None  # the user's line that asked for it, once a simulated device knows it

    def newest_sender(self, leaf: Tensor) -> int:
        """The number of the newest node that sends a gradient to a leaf; -1 where none does."""
        nodes = reachable([node_of(t) for t in self.roots])
        return max((n.seq for n in nodes if any(t is leaf for t in n.edges)), default=-1)

    def reaches(self, tensors: Sequence[Tensor]) -> list[bool]:
        """Whether a gradient will come to each of the tensors."""
        starts = [node_of(t) for t in self.roots]
        order = by_sequence(reachable([n for n in starts if n.is_node]))
        run: set[Any] = set(order)
        leaves = {id(n) for n in starts if not n.is_node}
        leaves.update(id(t) for n in order for t in n.edges if t is not None and not t.is_node)
        if self.inputs is not None:
            run = set(wanted_edges(order, self.inputs)) | set(targets_of(self.inputs))
            leaves &= {id(t) for t in self.inputs}
        return [
            id(t) in leaves if t._grad_edge is None else node_of(t._grad_edge) in run
            for t in tensors
        ]


def queue_callback(callback: Callable[[], None]) -> None:
    """Has a function called when the backward pass that runs now is done.

    Raises RuntimeError where none runs.
    """
    if state.local.backward_pass is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    state.local.backward_pass.callbacks.append(callback)


class Settled:
    """Gives leaves their gradients as soon as all that send to them have run.

    Nobody can tell this from giving them all gradients at the end of the pass, except hooks that run
    during it and whoever catches an error of it. So a pass begins to count the gradients that each
    leaf waits for only at the first node with hooks, or when it fails.
    """

    def __init__(self, pending: dict[Any, Any], finish: Callable[[list[Any]], None] | None) -> None:
        self.pending, self.finish = pending, finish
        self.left: Any = None  # how many gradients each leaf waits for, by its id, once counted
        self.last: Any = None  # the node that runs

    def count(self, node: Node | None) -> None:
        """Counts what comes to leaves from `node`, which runs, and those after it."""
        if self.finish is None:  # gradients are returned
            return
        self.last, self.left = node, {}
        for n in reachable([node, *self.pending]):
            for t in n.edges:
                if t is not None and not node_of(t).is_node:
                    self.left[id(t)] = self.left.get(id(t), 0) + 1
        self.finish([t for t in self.pending if not t.is_node and id(t) not in self.left])

    def begin(self, node: Node) -> None:
        """Has leaves take what waits for them where the node before was the last to send."""
        for t in self.last.edges:
            if t is not None and not node_of(t).is_node:
                self.left[id(t)] -= 1
                if not self.left[id(t)] and t in self.pending and self.finish is not None:
                    self.finish([t])
        self.last = node


class Engine:
    """Runs backward passes. Each part can be replaced, for a course or an experiment:

    order(root)             the nodes under `root`, each before the nodes it sends gradient to
    accumulate(old, new)    the sum of two gradients that meet at one place
    observer(node, grads_in, grads_out)   is told of every node that ran, leaves included
    run(root, gradient)     a whole engine of one's own, written on next_functions and node calls,
                            for graphs whose nodes have one result each

    >>> x = torch.tensor(2., requires_grad=True)
    >>> steps = []
    >>> watch = Engine(observer=lambda node, grads_in, grads_out: steps.append(node.name()))
    >>> (x * x).backward(engine=watch)
    >>> steps
    ['MulBackward0', 'torch::autograd::AccumulateGrad']
    """

    FIELDS = ("order", "accumulate", "observer", "run")

    def __init__(
        self,
        order: Order | None = None,
        accumulate: Callable[[Tensor, Tensor], Tensor] | None = None,
        observer: Callable[..., None] | None = None,
        run: Callable[[Node, Tensor], None] | None = None,
    ) -> None:
        self.order, self.accumulate, self.observer, self.run = order, accumulate, observer, run

    @contextmanager
    def using(self, **fields: Fn) -> Iterator[Engine]:
        """Replaces parts for a while."""
        for name in fields:
            if name not in self.FIELDS:
                raise TypeError(f"an engine has no part {name!r}; it has {', '.join(self.FIELDS)}")
        before = {name: getattr(self, name) for name in fields}
        for name, value in fields.items():
            setattr(self, name, value)
        try:
            yield self
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def nodes_in_order(self, roots: list[Any]) -> list[Node]:
        """Every node to visit, in the order of the visits."""
        if self.order is None:
            return by_sequence(reachable(roots))
        found: dict[Node, None] = {}
        for root in dict.fromkeys(roots):
            for node in self.order(root):
                if not isinstance(node, Node):
                    raise TypeError(
                        f"an order must give the graph's nodes, but it gave {type(node).__name__}"
                    )
                if not isinstance(node, AccumulateGrad):
                    found.setdefault(node)
        return list(found)

    def backward(
        self,
        roots: list[tuple[Any, Tensor]],
        *,
        keep_graph: bool,
        create_graph: bool,
        inputs: list[Tensor] | None = None,
        capture: bool = False,
    ) -> dict[int, Tensor]:
        """Sends gradients from `roots`, pairs of an edge and a gradient, to the leaves.

        Leaves add what they get into `.grad`. With `inputs`, only these tensors get anything; with
        `capture`, nothing is added and the gradients are returned, by id of the tensor.
        """
        before, unnamed = state.local.grad, state.local.unnamed
        state.set_grad(create_graph)
        state.local.unnamed = True  # gradients have no names
        state.local.backward += 1
        outer = state.local.backward_pass
        state.local.backward_pass = Pass(keep_graph, roots, inputs)
        hooks = state.local.saved_hooks
        try:
            if self.run is not None and inputs is None and _one_result_each(roots):
                for target, grad in roots:
                    self.run(as_function(target)[0], grad)
                return {}
            captured = self._visit(roots, keep_graph, inputs, capture)
            for callback in state.local.backward_pass.callbacks:
                callback()
            return captured
        finally:
            state.local.backward_pass = outer
            if state.local.saved_hooks is not hooks:  # what a derivative entered and did not leave
                state.watch(len(hooks) - len(state.local.saved_hooks))
                state.local.saved_hooks = hooks
            state.set_grad(before)
            state.local.unnamed = unnamed
            state.local.backward -= 1

    def _visit(
        self,
        roots: list[tuple[Any, Tensor]],
        keep_graph: bool,
        inputs: list[Tensor] | None,
        capture: bool,
    ) -> dict[int, Tensor]:
        """One pass; the gradients captured, by id of the input."""
        captured: dict[int, Tensor] = {}
        pending: dict[Any, Any] = {}  # node or leaf: the gradient that waits there
        sums: set[Any] = set()  # where what waits is a sum made here, which may be added to
        watched = self.order is not None or self.observer is not None or state.local.grad
        for target, given in roots:
            self._deliver(target, given, pending, sums)

        def finish(leaves: list[Any]) -> None:
            ready = {t: pending.pop(t) for t in leaves}
            sums.difference_update(leaves)
            for t, g in ready.items():
                if g.__class__ is ndarray:
                    ready[t] = wrap(g)
            g = None  # `owned` counts the references to a gradient, and this name is one
            self._finish(ready, inputs, capture, captured, {id(g._array) for _, g in roots})

        settled = Settled(pending, None if capture else finish)
        try:
            if watched or (inputs is not None and not all_lead_to(inputs, pending)):
                self._in_order(roots, keep_graph, inputs, pending, sums, captured, capture, settled)
            else:
                seen = capture and inputs is not None and any(map(has_gaps, inputs))
                self._descend(keep_graph, pending, sums, settled, not seen)
        except Exception:
            settled.count(settled.last)
            raise
        if capture:
            as_returned(pending, [g for _, g in roots])
        finish([t for t in pending if not t.is_node])
        return captured

    def _descend(
        self,
        keep_graph: bool,
        pending: dict[Any, Any],
        sums: set[Any],
        settled: Settled,
        unwatched: bool,
    ) -> None:
        """A pass that nobody watches: always on to the newest node where a gradient waits.

        Derivatives of bare arrays may differ from those of tensors in the last bit. They are for where
        no mode wants to see the ops of derivatives, and nobody the order in memory of what comes out.
        """
        deliver, take = self._deliver, pending.pop
        unwatched = unwatched and state.fast_path is not state.SLOW
        running, changed = state.local.backward_pass, state.data_changed
        heap: list[Any] = []
        node: Any = None
        for target in pending:
            if target.is_node:
                heappush(heap, (-target.seq, target))
        try:
            while heap:
                node = heappop(heap)[1]
                grad = take(node)
                while node is not None:
                    if settled.left is not None:
                        settled.begin(node)
                    # Of nodes from before leaves changed, tensors refuse what does not fit any more.
                    bare = (
                        unwatched and node.bare is True and grad is not None and node.seq > changed
                    )
                    if bare and grad.__class__ is not ndarray:
                        bare = grad._array.__class__ is ndarray and node.meta[1].plain
                        grad = grad._array if bare else grad
                    if bare:
                        pairs = node.apply_arrays(grad)
                    else:
                        grad = wrap(grad) if grad.__class__ is ndarray else grad
                        running.at = node.seq
                        if node.hooks is not None and settled.left is None:
                            settled.count(node)
                        held = node.bare if unwatched else False
                        if held and held is not True and grad is not None and fits(node, grad):
                            pairs = held(node, grad._array)
                        else:
                            pairs = zip(node.edges, run(node, grad))
                    if not keep_graph:
                        if node.frees:
                            node.saved = None
                        elif node.frees is None:
                            node.release()
                    if bare and len(pairs) == 1:
                        ((node, grad),) = pairs
                        if (
                            node.is_node
                            and node not in pending
                            and (not heap or heap[0][0] > -node.seq)
                        ):
                            continue  # a chain: its next link needs no table
                    following = None
                    for target, grad in pairs:
                        if target is None:
                            continue
                        if target in pending:
                            deliver(target, grad, pending, sums)
                            continue
                        if target.__class__ is Output:
                            met = target.node in pending
                            deliver(target, grad, pending, sums)
                            if met:
                                continue
                            target = target.node
                        else:
                            pending[target] = grad
                        if target.is_node:
                            if following is None:
                                following = target
                                continue
                            if target.seq > following.seq:
                                target, following = following, target
                            heappush(heap, (-target.seq, target))
                    node = following
                    if node is not None:
                        if heap and heap[0][0] < -node.seq:
                            node = heappushpop(heap, (-node.seq, node))[1]
                        grad = take(node)
        except Exception:
            settled.last = node
            raise

    def _in_order(
        self,
        roots: list[tuple[Any, Tensor]],
        keep_graph: bool,
        inputs: list[Tensor] | None,
        pending: dict[Any, Any],
        sums: set[Any],
        captured: dict[int, Tensor],
        capture: bool,
        settled: Settled,
    ) -> None:
        """A pass over nodes collected before it."""
        observer, deliver = self.observer, self._deliver
        order = self.nodes_in_order([node_of(t) for t, _ in roots if node_of(t).is_node])
        wanted = None if inputs is None else wanted_edges(order, inputs)
        targets = {} if inputs is None else targets_of(inputs)
        node: Any = None
        try:
            for node in order:
                grad = pending.pop(node, NOT_REACHED)
                if grad is NOT_REACHED:
                    continue
                if settled.left is not None:
                    settled.begin(node)
                elif node.hooks is not None:
                    settled.count(node)
                before: Any = list(grad) if node.many and node.hooks is not None else grad
                if node.hooks is not None:
                    grad = run_tensor_hooks(node, grad)
                # As in PyTorch, what is asked for is seen by the hooks of its tensor unless gradients go
                # on from there to others.
                hooked = not capture or wanted is None or node not in wanted
                for tensor, index in targets.get(node, ()):
                    seen: Any = grad if hooked else before
                    found = seen[index] if node.many else seen
                    if found is not None:
                        captured[id(tensor)] = found
                # Where gradients are accumulated, the node of an input runs, too, with its hooks, and
                # drops what it has saved (or raises, where that is gone).
                runs_beside = not capture and node in targets
                if wanted is not None and node not in wanted and not runs_beside:
                    continue
                if node.hooks is not None:
                    grad = run_prehooks(node, grad)
                state.local.backward_pass.at = node.seq
                edges = (
                    node.edges if wanted is None else wanted.get(node, (None,) * len(node.edges))
                )
                grads = execute_along(edges, node, grad)
                if node.hooks is not None:
                    grads = run_hooks(node, grads, grad)
                if observer is not None and not undefined(grad):
                    observer(node, tuple(grad) if node.many else (grad,), tuple(grads))
                for target, grad in zip(edges, grads):
                    if target is not None:
                        deliver(target, grad, pending, sums)
                if not keep_graph:
                    node.release()
        except Exception:
            settled.last = node
            raise

    def _deliver(self, target: Any, grad: Any, pending: dict[Any, Any], sums: set[Any]) -> None:
        """Adds a gradient to what waits at its target.

        None says that there is no gradient, but that the target has been reached.
        """
        slots: Any
        key = target
        if grad.__class__ is ndarray:
            grad = wrap(grad)
        if target.__class__ is Output:
            key, slots = (target.node, target.index), pending.get(target.node)
            if slots is None:
                slots = pending[target.node] = [None] * target.node.count
            old = slots[target.index]
        else:
            # Taken out and put in again, so that leaves stand in the order of their last gradients.
            old = pending.pop(target, None)
            if old.__class__ is ndarray:
                old = wrap(old)
        if grad is None:
            if key is target:
                pending[target] = old
            return
        if old is None:
            total = grad
        elif self.accumulate is not None:
            total = self.accumulate(old, grad)
        elif key in sums and old._array.__class__ is ndarray and grad._array.__class__ is ndarray:
            add(old._array, grad._array, out=old._array)  # saves a fresh tensor for each term
            total = old
        else:
            total = joined(old, grad)
            if not state.local.grad and total.ndim and state.fast_path is not state.SLOW:
                sums.add(key)
        if key is target:
            pending[target] = total
        else:
            slots[target.index] = total

    def _finish(
        self,
        leaves: dict[Any, Tensor],
        inputs: list[Tensor] | None,
        capture: bool,
        captured: dict[int, Tensor],
        given: set[int],
    ) -> None:
        """Gives every leaf the gradient that waits for it."""
        chosen = None if inputs is None else {id(t) for t in inputs}
        running = state.local.backward_pass
        oldest = running.at  # of the nodes that ran, but for those from after all changes of data
        while leaves:
            leaf = next(iter(leaves))
            holder = [leaves.pop(leaf)]
            if chosen is not None and id(leaf) not in chosen:
                continue
            if leaf._used_as is not None and holder[0] is not None:
                running.at = oldest
                if oldest < leaf._used_as[2]:  # did such an old one send to this leaf?
                    running.at = running.newest_sender(leaf)
                known = leaf._used_as_known(True)
                if capture and known is not None and known[1] is not leaf.dtype:
                    continue  # with another type it is another leaf
                holder = [as_known(holder[0], known)]
            if leaf._grad_kind and leaf._grad_kind is not ... and holder[0] is not None:
                holder = [holder[0].to(leaf._grad_kind)]
            if capture:
                grad = holder.pop()
                for hook in list(leaf._hooks.values()) if leaf._hooks else ():
                    replaced = checked(hook, grad, hook(grad))
                    grad = grad if replaced is None else replaced
                if not leaf._ignores_grad and grad is not None:
                    captured[id(leaf)] = grad
                continue
            if not leaf._requires_grad:
                continue  # it was told so since
            if holder[0] is None:  # hooks are called, and may give what did not arrive
                leaf._accumulate(None)
                continue
            if leaf._grad is None and not state.local.grad:
                grad = owned(holder, given, leaf)
            else:
                grad = holder.pop()
                if leaf._grad is None and grad._batches is None and not state.watched():
                    grad = copied(grad, leaf)
            if state.profiler is not None:
                state.profiler.backward(leaf._accumulator(), grad, leaf._accumulate, grad)
            else:
                leaf._accumulate(grad)
            if self.observer is not None:
                self.observer(leaf._accumulator(), (grad,), ())


def has_gaps(tensor: Tensor) -> bool:
    """Whether elements of a tensor do not lie side by side: NumPy gives what is computed of them
    another order than PyTorch."""
    array = tensor._array
    return (
        array.__class__ is ndarray
        and not array.flags.forc
        and not is_dense(array.shape, array.strides, array.itemsize)
    )


def as_known(grad: Any, meta: Any) -> Any:
    """A gradient in the shape and of the type that a graph knows; RuntimeError where it cannot be."""
    if meta is None or grad._array.__class__ in TABLES:
        return grad
    shape, kind = meta[:2]
    if grad.shape != shape:
        lead = grad.ndim - len(shape)
        if lead < 0 or any(n not in (1, m) for n, m in zip(shape, grad.shape[lead:])):
            raise RuntimeError(
                f"a function returned an invalid gradient - got {list(grad.shape)} but expected "
                f"shape compatible with {list(shape)}"
            )
        grad = grad.sum_to_size(shape)
    return grad if grad.dtype is kind else grad.to(kind)


def copied(grad: Tensor, leaf: Tensor) -> Any:
    """A gradient that can be differentiated, in memory of its own that lies as the leaf's does."""
    if grad._array.__class__ is not ndarray or leaf._array.__class__ is not ndarray:
        return grad
    made: Any = wrap(lying_as(np, leaf._array, grad._array.dtype), grad.dtype)
    return made.copy_(grad)


def lying_as(xp: ArrayModule, leaf: Array, kind: Any) -> Any:
    """New memory for the gradient of a leaf, which lies as the leaf does; in rows where that leaves
    gaps, or has places for several elements."""
    if leaf.__class__ is ndarray and not leaf.size:  # whose strides NumPy would not keep
        steps = [s // leaf.itemsize * np.dtype(kind).itemsize for s in leaf.strides]
        return no_elements.lying(np.empty(0, kind), leaf.shape, steps)
    dense = leaf.__class__ is not ndarray or is_dense(leaf.shape, leaf.strides, leaf.itemsize)
    return xp.empty_like(leaf, dtype=kind) if dense else xp.empty(leaf.shape, kind)


def joined(old: Tensor, grad: Tensor) -> Tensor:
    """The sum of two gradients; a sparse one is added to a dense one, never the other way."""
    if old._array.__class__ in TABLES and grad._array.__class__ not in TABLES:
        old, grad = grad, old
    return old + grad


def references_of_one_name() -> int:
    """What getrefcount says of an object that one local name holds (Python 3.14 counts less)."""
    thing = object()
    return sys.getrefcount(thing)


ONE_NAME = references_of_one_name()


def owned(holder: list[Tensor], given: set[int], leaf: Tensor) -> Tensor:
    """A gradient that only its leaf will hold: copied where somebody else may write to it.

    `holder` has the one reference to the gradient; any more mean that the tensor is also someone
    else's (another leaf's, or kept by a hook). It lies in memory as the leaf does.
    """
    grad = holder.pop()
    array, storage = grad._array, grad._storage
    if grad._batches is not None:
        return grad  # inside vmap
    if state.asked_below:  # a class that is asked about every op decides about memory, too
        if subclasses.dispatches(grad.__class__):
            return grad.detach()
        if subclasses.dispatches(leaf.__class__):
            return grad.clone()
    if array.__class__ in TABLES:  # it gets parts of its own unless nobody else has these
        alone = (
            sys.getrefcount(grad) <= ONE_NAME
            and sys.getrefcount(array) <= ONE_NAME + 1
            and id(array) not in given
            and all(part.flags.c_contiguous for _, part in array.parts())
        )
        return wrap(array.with_values(array.values) if alone else array.copy(), grad.dtype)
    if array.shape != leaf._array.shape and array.__class__ is ndarray:
        return of_another_shape(grad, leaf._array)
    alone = (
        sys.getrefcount(grad) <= ONE_NAME
        and grad._grad_edge is None
        and lies_as(array, leaf._array)
    )
    if alone and storage is None:
        memory = array.base  # None, or all of a memory in another order: channels that lie last
        alone = (
            id(array) not in given
            and sys.getrefcount(array) <= ONE_NAME + 1
            and (
                memory is None
                or (
                    isinstance(memory, ndarray)
                    and memory.base is None
                    and memory.size == array.size
                    and id(memory) not in given
                    and sys.getrefcount(memory) <= ONE_NAME + 1
                )
            )
        )
    elif alone:  # a view of all of a memory that no other tensor knows: the transpose of a product
        memory = array.base
        alone = (
            isinstance(memory, ndarray)
            and memory.size == array.size
            and storage.array is memory
            and id(memory) not in given
            and sys.getrefcount(storage) <= ONE_NAME + 1
            and sys.getrefcount(memory) <= ONE_NAME + 2
        )
    if alone:
        return grad
    layout = lying_as(base.of_array(array).xp, leaf._array, array.dtype)
    layout[...] = array
    return wrap(layout, grad.dtype)


def of_another_shape(grad: Tensor, leaf: Array) -> Any:
    """What a leaf whose `data` has another shape by now gets: PyTorch takes a gradient whose strides
    are the leaf's first ones as it is, and copies others into the leaf's shape if they broadcast."""
    array = grad._array
    dense = leaf.__class__ is not ndarray or is_dense(leaf.shape, leaf.strides, leaf.itemsize)
    steps = (*(s // leaf.itemsize for s in leaf.strides), *(-1 for _ in array.shape))
    wide = array.itemsize  # which may be another: data may be of another type, too
    if not dense or all(
        n == 1 or s == t * wide for n, s, t in zip(array.shape, array.strides, steps)
    ):
        return wrap(array.copy("K" if dense else "C"), grad.dtype)
    layout: Any = wrap(lying_as(np, leaf, array.dtype), grad.dtype)
    return layout.zero_().add_(grad)


def lies_as(array: Array, leaf: Array) -> bool:
    """Whether a gradient lies in memory as its leaf does, or in rows where that leaves gaps."""
    if array.flags.c_contiguous and array.size:
        return leaf.flags.c_contiguous or not is_dense(leaf.shape, leaf.strides, leaf.itemsize)
    return array.strides == leaf.strides and is_dense(leaf.shape, leaf.strides, leaf.itemsize)


def fits(node: Node, grad: Tensor) -> bool:
    """Whether a gradient is a dense one of the device and the type of a node's result."""
    return grad._array.__class__ in base.queued and grad.dtype is node.meta[1]


NOT_REACHED = object()


def undefined(grad: Any) -> bool:
    """Whether no gradient arrived at a node that was reached."""
    return grad is None or (grad.__class__ is list and all(g is None for g in grad))


def filled(node: Node, grads: list[Any]) -> Sequence[Any]:
    """Gradients of all results, zeros where none arrived."""
    if None not in grads:
        return grads
    if node.op is None:  # a user's Function fills in for itself
        return grads
    return Gradients(grads, node.meta)


class Gradients(Sequence[Any]):
    """Gradients of all results: zeros where none arrived, made when a derivative looks at them."""

    def __init__(self, given: list[Any], meta: Sequence[Any]) -> None:
        self.given, self.meta = given, meta

    def __len__(self) -> int:
        return len(self.given)

    def to_read(self) -> list[Any]:
        """All of them; zeros of one shape and type are one tensor, which is not to be written to."""
        zeros: dict[Any, Any] = {}
        made = []
        for k, (g, meta) in enumerate(zip(self.given, self.meta)):
            if g is None:
                g = zeros.get(meta[:2])
                if g is None:
                    g = zeros[meta[:2]] = self[k]
            made.append(g)
        return made

    def __getitem__(self, k: Any) -> Any:
        found = self.given[k]
        shape, dtype, *_ = self.meta[k]
        if found is None and dtype.rank > 1:
            like = next(g for g in self.given if g is not None)
            of_like = dtype is like.dtype
            found = like.new_zeros(shape) if of_like else like.new_zeros(shape, dtype=dtype)
            self.given[k] = found
        return found


def targets_of(inputs: list[Tensor]) -> dict[Node, list[tuple[Tensor, int]]]:
    """The nodes whose incoming gradient is that of an input."""
    found: dict[Node, list[tuple[Tensor, int]]] = {}
    for tensor in inputs:
        if tensor._grad_edge is not None:
            node, index = as_function(tensor._grad_edge)
            found.setdefault(node, []).append((tensor, index))
    return found


def as_returned(pending: dict[Any, Any], given: list[Tensor]) -> None:
    """Makes tensors of the arrays among gradients that are returned: an array that is there twice, or was
    given, is one tensor, and what shows memory of a tensor that was given is a view of that."""
    made = {id(g._array): g for g in given}
    owners = {id(memory_of(g._array)): g for g in given}
    for target, g in pending.items():
        if g.__class__ is ndarray:
            if id(g) not in made:
                owner = owners.get(id(memory_of(g)))
                if owner is not None and owner._array.dtype is g.dtype:
                    made[id(g)] = unrecorded_view(owner, g)
                else:
                    made[id(g)] = wrap(g)
            pending[target] = made[id(g)]


def memory_of(array: Any) -> Any:
    """The array of which another one shows some elements, or that array."""
    while array.__class__ is ndarray and array.base.__class__ is ndarray:
        array = array.base
    return array


def all_lead_to(inputs: list[Tensor], targets: Iterable[Any]) -> bool:
    """Whether the inputs are leaves, and no gradient under some targets could be left out."""
    goals = set()
    for t in inputs:
        if t._grad_edge is not None or t._ignores_grad or another_since(t):
            return False
        goals.add(id(t))
    left = [t for t in targets if t.is_node]
    seen: set[Any] = set(left)
    while left:
        leads = False
        for target in left.pop().edges:
            if target is None:
                continue
            if target.__class__ is Output:
                target = target.node
            if target.is_node:
                leads = True
                if target not in seen:
                    seen.add(target)
                    left.append(target)
            elif id(target) not in goals:
                return False  # its gradient is not computed
            else:
                leads = True
        if not leads:
            return False
    return True


def another_since(tensor: Tensor) -> int:
    """From which number on nodes know a leaf with the type it has now: with another it was another leaf."""
    form = tensor._used_as
    return 0 if form is None or form[1] is tensor.dtype else form[2]


def wanted_edges(order: list[Node], inputs: list[Tensor]) -> dict[Node, tuple[Any, ...]]:
    """The nodes from which an input can be reached, with the edges that lead there and None in the
    place of others, whose gradients need not be computed."""
    goals = {
        id(t if t._grad_edge is None else as_function(t._grad_edge)[0]): another_since(t)
        for t in inputs
        if not t._ignores_grad
    }
    wanted: dict[Node, tuple[Any, ...]] = {}
    for node in reversed(order):
        targets = [node_of(e) for e in node.edges]
        leads = [t in wanted or goals.get(id(t), sys.maxsize) <= node.seq for t in targets]
        if any(leads):
            wanted[node] = tuple([e if k else None for e, k in zip(node.edges, leads)])
    return wanted


def checked(hook: Any, value: Tensor, replaced: Any) -> Any:
    """What a tensor's hook returned, which must fit in the place of what it was given."""
    if replaced is not None and value is not None and replaced.shape != value.shape:
        name = getattr(hook, "__name__", hook)
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    return replaced


def run(node: Node, grad: Tensor | Sequence[Tensor | None]) -> Any:
    """The gradients of a node's inputs, with the hooks around it."""
    if node.hooks is None:
        return execute(node, grad)
    grad = run_prehooks(node, run_tensor_hooks(node, grad))
    return run_hooks(node, execute(node, grad), grad)


def execute(node: Node, grad: Any) -> Any:
    """The gradients of a node's inputs; a profiler takes its time."""
    if not node.takes_undefined and undefined(grad):
        return (None,) * len(node.edges)
    if state.fast_path is not state.SLOW:  # nobody watches
        return node.apply(filled(node, grad) if node.many else grad)
    if state.profiler is not None:
        return state.profiler.backward(node, grad, execute_here, node, grad)
    return execute_here(node, grad)


def execute_along(edges: tuple[Any, ...], node: Node, grad: Any) -> Any:
    """`execute`, for some of the inputs; a Function of the user's gives all, as it always does."""
    every = node.edges
    if edges is every or node.op is None or lacks_derivative(node):
        return execute(node, grad)
    node.edges = edges
    try:
        return execute(node, grad)
    finally:
        node.edges = every


def execute_here(node: Node, grad: Any) -> Any:
    """`execute` itself; `detect_anomaly` says more of what goes wrong there."""
    if state.anomaly is None:
        return node.apply(filled(node, grad) if node.many else grad)
    from toytorch.autograd.anomaly import watched  # the name means something else in this file

    return watched(node, lambda: node.apply(filled(node, grad) if node.many else grad))


def run_tensor_hooks(node: Node, grad: Any) -> Any:
    """Hooks on the gradients of tensors, and those of retain_grad after them."""
    single = not node.many
    for index in sorted(k for k in node.hooks if isinstance(k, int)):
        for hook in list(node.hooks[index].values()):
            value = grad if single else grad[index]
            replaced = checked(hook, value, hook(value))  # None where no gradient arrived
            if replaced is not None and single:
                grad = replaced
            elif replaced is not None:
                grad[index] = replaced
    for hook in list(node.hooks.get("retain", {}).values()):
        hook(grad)
    return grad


def run_prehooks(node: Node, grad: Any) -> Any:
    """Hooks of the node on the gradients of all its results."""
    single = not node.many
    for hook in list(node.hooks.get("before", {}).values()):
        replaced = hook((grad,) if single else tuple(grad))
        if replaced is not None:
            grad = replaced[0] if single else list(replaced)
    return grad


def run_hooks(
    node: Node, grads: tuple[Tensor | None, ...], grad: Tensor | Sequence[Tensor | None]
) -> Any:
    """Hooks that see a node's gradients on both sides."""
    for hook in list(node.hooks.get("after", {}).values()):
        replaced = hook(tuple(grads), tuple(grad) if node.many else (grad,))
        if replaced is not None:
            if not isinstance(replaced, tuple):
                kind = type(replaced).__name__
                raise TypeError(f"expected tuple, but hook returned '{kind}'")
            if len(replaced) != len(grads):
                raise RuntimeError(
                    f"hook '{getattr(hook, '__name__', hook)}' has returned an incorrect number of "
                    f"values (got {len(replaced)}, but expected {len(grads)})"
                )
            grads = replaced
    return grads


default = Engine()

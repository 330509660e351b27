"""The record of one call: where gradients go from here, and what is needed to compute them."""

from __future__ import annotations

import functools
import itertools
import re
import sysconfig
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toytorch.facts import state

if TYPE_CHECKING:
    from toytorch.core.tensor import Tensor


sequence = itertools.count()  # creation order is the topological order, so backward sorts by it
SAVED_TWICE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)

BUILT_IN = "builtins"  # where PyTorch's nodes say that they are from, so that types have bare names


class Node:
    """One step of the backward graph, like `torch.autograd.graph.Node`.

    `edges[i]` says where the gradient of input i goes: to the Node that made the input, to an
    Output (one result of a Node with several), to the input itself if it is a leaf, or nowhere
    (None) where no gradient is wanted. `saved` holds what the derivative needs, `versions` the
    write counts that the saved tensors had. `meta` is the (shape, dtype) of the result, or a list
    of them for a Node with several results.
    """

    __slots__ = ("__dict__", "__weakref__", "edges", "meta", "saved", "seq", "versions")
    if TYPE_CHECKING:  # what the slots hold
        edges: tuple[Any, ...]
        meta: Any
        saved: Any
        seq: int
        versions: Any
        source: str
    is_node = True  # a leaf, the other end of an edge, says False
    op: Any = None
    full_name = ""  # where PyTorch's name() is longer than the class's
    count = 1  # results
    many = False  # whether gradients come as a list
    # Whether the derivative is plain arithmetic, and `apply_arrays` gives it; on devices to which
    # whole calls are handed over, the function that does.
    bare: Any = False
    apply_arrays: Any = None  # `apply` on bare arrays
    # Whether tensors are saved (shapes and numbers alone stay for a second pass); None: `release`
    # knows.
    frees: bool | None = True
    packed = False  # whether saved tensors went through hooks, and have to come back through them
    takes_undefined = False  # whether `apply` wants to know that no gradient arrived
    hooks: Any = None  # {kind: hooks}, made when the first is registered
    slices: Any = None  # a weak reference to the CopySlices around the node of a write to a view

    def apply(self, grad: Any) -> Any:
        """The gradients of the inputs, given that of the result."""
        raise NotImplementedError

    def release(self) -> None:
        """Drops what was saved."""
        if self.frees:
            self.saved = None

    def name(self) -> str:
        """The name PyTorch gives this kind of node."""
        name = type(self).__name__
        own = name == "NotImplemented" or name.endswith("Backwards")  # which no table generates
        space = "torch::autograd::" if own else ""
        return self.full_name or space + name

    def __call__(self, *grads: Tensor) -> tuple[Any, ...]:
        """The gradients of the inputs, like calling `tensor.grad_fn` in PyTorch."""
        if len(grads) != self.count:
            raise TypeError(f"expected {self.count} arguments, got {len(grads)} instead")
        return tuple(self.apply(list(grads) if self.many else grads[0]))

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, index of the node's result) for every input, like PyTorch's."""
        return tuple(as_function(e) for e in self.edges)

    @property
    def result_shapes(self) -> tuple[Any, ...]:
        """The shapes of the forward results."""
        return tuple(m[0] for m in (self.meta if self.many else [self.meta]))

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's notes."""
        return self.__dict__.setdefault("_metadata", {})

    def _sequence_nr(self) -> int:
        return int(self.seq)

    def saved_items(self) -> list[tuple[str, Any]]:
        """(name, value) of everything saved; RuntimeError once it was freed."""
        return []

    def hooks_of(self, kind: int | str) -> dict[int, Any]:
        """The hooks of one kind: "before", "after", "retain", or of result number `kind`."""
        if self.hooks is None:
            self.hooks, self.bare = {}, False  # hooks want tensors
        return self.hooks.setdefault(kind, {})

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(grad_inputs, grad_outputs) after this node ran; it may replace grad_inputs."""
        return RemovableHandle(self.hooks_of("after"), hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(grad_outputs) before this node runs; it may replace them."""
        return RemovableHandle(self.hooks_of("before"), hook)

    def __repr__(self) -> str:
        own = "torch.autograd.function."  # functions that programs write
        place = own if type(self).__module__ == own[:-1] else ""
        return f"<{place}{type(self).__name__} object at {id(self):#x}>"


class Output:
    """Where the gradient of one result of a Node with several results goes."""

    __slots__ = ("index", "node")
    is_node = False

    def __init__(self, node: Node, index: int) -> None:
        self.node, self.index = node, index

    @property
    def meta(self) -> tuple[Any, Any]:
        """(shape, dtype) of this result."""
        return self.node.meta[self.index][:2]


class Refusal:
    """In the place of an edge: the history of a view that is not to be used any more.

    Whoever looks at it is told why, by a RuntimeError.
    """

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __bool__(self) -> bool:
        raise RuntimeError(self.reason)

    @property
    def is_node(self) -> bool:
        """Raises, like every other look at it."""
        return bool(self)


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds what arrives into `variable.grad`."""

    __slots__ = ("variable",)
    __module__ = BUILT_IN
    full_name = "torch::autograd::AccumulateGrad"

    def __init__(self, variable: Tensor) -> None:
        self.variable, self.edges, self.saved, self.versions = variable, (), None, ()
        self.seq = 1 << 63
        self.meta = (variable.shape, variable.dtype)

    def apply(self, grad: Any) -> Any:
        if self.variable._grad is None and not state.local.grad:
            grad = grad.clone()  # whoever calls a node may pass the same tensor to another
        self.variable._accumulate(grad)
        return ()


class RemovableHandle:
    """Removes a hook, like `torch.utils.hooks.RemovableHandle`."""

    ids = itertools.count()
    _none = object()

    def __init__(
        self, hooks_dict: dict[int, Any], hook: object = _none, *, extra_dict: Any = None
    ) -> None:
        self.hooks, self.id, self.extra = hooks_dict, next(RemovableHandle.ids), extra_dict
        if hook is not RemovableHandle._none:
            hooks_dict[self.id] = hook

    def hooks_dict_ref(self) -> dict[int, Any]:
        """The table that the hook is in."""
        return self.hooks

    def remove(self) -> None:
        """Takes the hook away; doing so twice is harmless."""
        self.hooks.pop(self.id, None)
        tables = self.extra if isinstance(self.extra, (list, tuple)) else [self.extra]
        for table in tables:
            if table is not None:
                table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def as_function(edge: Any) -> tuple[Any, int]:
    """An edge as PyTorch shows it: (node, index)."""
    if edge is None:
        return None, 0
    if isinstance(edge, Output):
        return edge.node, edge.index
    return (edge if edge.is_node else edge._accumulator()), 0


def node_of(edge: Node | Output | Tensor | None) -> Any:
    """The Node, leaf tensor or None behind an edge."""
    return edge.node if edge.__class__ is Output else edge


# -- saved tensors that go through hooks ----------------------------------------------------------


class Packed:
    """A saved tensor in the form that a pack hook gave it, and where its gradient goes.

    What the hook gives back stands for the tensor in derivatives of derivatives, too.
    """

    __slots__ = ("edge", "unpack", "value")

    def __init__(self, tensor: Tensor, hooks: tuple[Callable[..., Any], ...]) -> None:
        pack_hook, self.unpack = hooks
        before = tensor._version
        self.value = pack_hook(tensor)
        if tensor._version != before:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
                "to pack hook cannot be modified by in-place operations as this can lead to "
                "unexpected side-effects. Please open an issue if you need to perform in-place "
                "operations on the input to a pack hook."
            )
        # What the tensor came from: hooks are about its elements, not about its history.
        self.edge: Any = None
        if tensor._requires_grad:
            self.edge = tensor if tensor._grad_edge is None else tensor._grad_edge

    def open(self) -> Any:
        """The tensor again."""
        tensor = self.unpack(self.value)
        if not hasattr(tensor, "_array"):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got "
                f"result of type {type(tensor).__name__}"
            )
        if self.edge is not None and state.local.grad and not tensor._requires_grad:
            edge, tensor = self.edge, tensor.detach()
            if not isinstance(edge, (Node, Output)):  # a leaf
                edge = Same(edge)
            tensor._requires_grad, tensor._grad_edge = True, edge
        return tensor


class Same(Node):
    """The history of a leaf's elements that come back from hooks: they are the leaf's."""

    __slots__ = ()

    def __init__(self, leaf: Tensor) -> None:
        self.edges, self.seq, self.saved, self.versions = (leaf,), next(sequence), None, ()
        self.meta = (leaf._array.shape, leaf.dtype)

    def apply(self, grad: Any) -> Any:
        return (grad,)


def pack(node: Node) -> None:
    """Hands the tensors that a node saves to the innermost pair of hooks."""
    hooks = state.local.saved_hooks[-1]
    node.saved = tuple(Packed(v, hooks) if hasattr(v, "_array") else v for v in node.saved)
    # What hooks keep is theirs: writes to the original are no error any more.
    node.versions = tuple(
        None if v.__class__ is Packed else n for v, n in zip(node.saved, node.versions)
    )
    node.packed, node.bare = True, False


def unpacked(saved: tuple[Any, ...]) -> Any:
    """What a node saved, back from the hooks."""
    return tuple(opened(v) for v in saved)


def opened(value: Any) -> Any:
    """A saved value, or a list of such, back from the hooks."""
    if value.__class__ is Packed:
        return value.open()
    if value.__class__ in (list, tuple) and any(v.__class__ is Packed for v in value):
        return type(value)(v.open() if v.__class__ is Packed else v for v in value)
    return value


# -- where a node comes from ----------------------------------------------------------------------


def remember(node: Node) -> None:
    """Notes the lines of the user's program that are running, for `detect_anomaly`."""
    node.metadata["traceback_"] = users_lines(traceback.extract_stack())


def users_lines(frames: Any) -> list[str]:
    """The entries of a traceback without those of libraries, few enough for a notebook."""
    inside = (str(Path(__file__).parents[1]), *map(str, (Path(p) for p in libraries())))
    own = [
        f
        for f in frames
        if not f.filename.startswith(inside) and not f.filename.startswith("<toytorch")
    ]
    return traceback.format_list((own or list(frames))[-4:])


@functools.cache
def libraries() -> set[str]:
    """Where Python and its packages are installed."""
    kinds = "stdlib", "platstdlib", "purelib", "platlib"
    return {p for kind in kinds if (p := sysconfig.get_path(kind))}


class Detached(int):
    """The count of writes of a memory of which a tensor was detached in place.

    It differs from the plain count that nodes remember, so they look closer; after the next write
    the count is a plain number again, and differs anyway.
    """

    tensor: Any  # a weak reference: what was detached
    before: int  # the count until then

    def __new__(cls, before: int, tensor: Tensor) -> Detached:
        made = super().__new__(cls, before)
        made.tensor, made.before = weakref.ref(tensor), before
        return made

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = int.__hash__

    def since(self, seen: int) -> list[Any]:
        """What was detached after a node remembered a count."""
        count: int = self
        found: list[Any] = []
        while isinstance(count, Detached) and count is not seen:
            found.append(count.tensor())
            count = count.before
        return found


def check_version(
    op_name: str,
    name: str,
    value: Tensor,
    seen: int,
    node: Node,
    shown: bool = False,
    transposed: bool = False,
) -> None:
    """Refuses a saved tensor that was written to after it was saved, or, unless it is only `shown`
    to a program, detached in place. Where PyTorch saves the transposed view (`transposed`), the error
    names that: a view of what was written to is the output of AsStrided."""
    storage = value._storage
    count = 0 if storage is None else storage.version
    if not shown and count.__class__ is Detached and any(t is value for t in count.since(seen)):
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
            "This is not supported, please use out-of-place `.detach()` instead"
        )
    now = value._version
    if now == int(seen):
        return
    maker, index = value.grad_fn, value.output_nr
    if name.startswith("result"):
        maker, index = node, int(name[6:] or 0)
    if maker is None:
        origin = ""
    else:
        origin = f", which is output {index} of {re.sub('Backward0?', '', maker.name())},"
    shape = list(value.shape)
    if transposed:
        shape = shape[::-1]
        origin = ", which is output 0 of AsStrided,"
    raise RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{value.type().replace('toytorch', 'torch')} {shape}]{origin} is "
        f"at version {now}; expected version {int(seen)} instead. Hint: "
        + (
            "enable anomaly detection to find the operation that failed to compute its gradient, "
            "with torch.autograd.set_detect_anomaly(True, check_nan=False)."
            if state.anomaly is None
            else "the backtrace further above shows the operation that failed to compute its gradient. "
            "The variable in question was changed in there or anywhere later. Good luck!"
        )
    )


@functools.cache
def underived_class(name: str) -> Any:
    """PyTorch's NotImplemented, the node of an operation without a derivative."""

    def apply(node: Node, grad: object) -> Any:
        raise RuntimeError(f"derivative for {name} is not implemented")

    return type("NotImplemented", (Node,), {"__slots__": (), "apply": apply})


def lacks_derivative(node: Node) -> bool:
    """Whether a node only says that there is no derivative, whoever wants one."""
    return node.__class__.__name__ == "NotImplemented"


@functools.cache
def lost_class(kind: type[Node], name: str) -> Any:
    """A class of nodes for a form in place that has no derivative, though the op has one."""

    def apply(node: Node, grad: object) -> Any:
        if all(edge is None for edge in node.edges):  # nobody wants it
            return (None,) * len(node.edges)
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return type(kind.__name__, (kind,), {"__slots__": (), "apply": apply, "bare": False})

"""Runs a graph node by node: slow, plain, and right. Everything faster is compared with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from toytorch.amp import autocast
from toytorch.autograd.modes import no_grad
from toytorch.core import dispatch, write
from toytorch.core.op import Op
from toytorch.core.record import underive
from toytorch.facts import dtype as dtypes
from toytorch.facts.pytree import tree_leaves
from toytorch.facts.schema import REQUIRED
from toytorch.jit import types
from toytorch.jit.failures import note
from toytorch.jit.forks import finished
from toytorch.jit.ir import CALLS, Block, Graph, Node, Value

if TYPE_CHECKING:
    pass


class Reader:
    """Walks over a graph; a subclass may look at the constants."""

    def constant(self, value: Any) -> Any:
        """What a prim::Constant gives."""
        return value

    def run_block(self, block: Block, inputs: Sequence[Any], known: dict[Value, Any]) -> list[Any]:
        """The outputs of a block; `known` holds the values of the blocks around it."""
        known.update(zip(block.inputs, inputs))
        for node in block.nodes:
            try:
                results = self.run_node(node, known)
            except Exception as error:
                note(error, node)
                raise
            known.update(zip(node.outputs, results))
        return [known[v] for v in block.outputs]

    def run_node(self, node: Node, known: dict[Value, Any]) -> Sequence[Any]:
        """The results of one node."""
        if node.is_constant:
            return (self.constant(node.attributes["value"]),)
        if (node.kind in CALLS and "no_grad" in node.attributes) or "autocast" in node.attributes:
            with contexts(node):
                return self.run_plain(node, known)
        return self.run_plain(node, known)

    def run_plain(self, node: Node, known: dict[Value, Any]) -> Sequence[Any]:
        """`run_node` within the contexts of the node."""
        args = [known[v] for v in node.inputs]
        if node.kind == "prim::If":
            return self.run_block(node.blocks[0 if args[0] else 1], (), known)
        if node.kind == "prim::Loop":
            return self.run_loop(node, args, known)
        if node.kind.startswith("aten::"):
            return results_of(node, call(node, args))
        if "Subgraph" in node.attributes:
            return self.run_block(node.attributes["Subgraph"], args, {})
        try:
            return LANGUAGE[node.kind](node, *args)
        except KeyError:
            raise RuntimeError(f"the interpreter does not know {node.kind}") from None

    def run_loop(self, node: Node, args: list[Any], known: dict[Value, Any]) -> Sequence[Any]:
        """A loop: `args` are the largest number of iterations, whether to begin, and what is carried."""
        iterations, goes_on, carried = args[0], args[1], args[2:]
        i = 0
        while goes_on and i < iterations:
            goes_on, *carried = self.run_block(node.blocks[0], [i, *carried], known)
            i += 1
        return carried


@contextmanager
def contexts(node: Node) -> Iterator[None]:
    """What `with` statements around a node have said."""
    with ExitStack() as stack:
        for where, kind, enabled in node.attributes.get("autocast", ()):
            stack.enter_context(autocast(where, getattr(dtypes, kind), enabled))
        if "no_grad" in node.attributes:
            stack.enter_context(no_grad())
        yield


def run(graph: Graph, inputs: Sequence[Any]) -> Any:
    """The outputs for given inputs: one value, or a tuple where there are several.

    >>> f = torch.jit.trace(lambda x: (x * 2).tanh(), torch.zeros(1))
    >>> run(f.graph, [torch.tensor([0.0])])
    tensor([0.])
    """
    if len(inputs) != len(graph.inputs):
        raise RuntimeError(f"{graph.name}() expected {len(graph.inputs)} inputs, got {len(inputs)}")
    results = Reader().run_block(graph, inputs, {})
    return results[0] if len(results) == 1 else tuple(results)


def call(node: Node, args: list[Any]) -> Any:
    """Calls the op or the function behind an `aten::` node."""
    if "no_grad" not in node.attributes:
        return call_op(node, args)
    underived = node.attributes.get("_underived")  # what an op without a derivative wrote by out=
    if underived:
        write.refuse_leaf(underived.removeprefix("aten::"), args[0])
    with no_grad():
        made = call_op(node, args)
    if underived:
        underive(underived, args[:2], made)
    return made


def call_op(node: Node, args: list[Any]) -> Any:
    """`call`, with gradients as they are."""
    op = node.op
    if not isinstance(op, Op):
        names = node.attributes.get("_names")
        if names:  # the last arguments were given by name
            split = len(args) - len(names)
            return op(*args[:split], **dict(zip(names, args[split:])))
        return op(*args)
    for i, a in enumerate(op.schema.args[: len(args)]):
        if a.is_variadic and args[i].__class__ is list:
            args[i] = tuple(args[i])
    if len(args) < len(op.schema.args):
        args = args + [
            None if a.default is REQUIRED else a.default for a in op.schema.args[len(args) :]
        ]
    if "_refuses" in node.attributes:
        write.refuse_grad(node.attributes["_refuses"], args[1:2], args[0])
    if "_out" in node.attributes and op.asks_gradients:
        write.refuse_grad(op.name, [args[i] for i in op.tensor_at], ())
    if node.writes:
        return write.inplace(op, tuple(args))
    return dispatch.call(op, tuple(args))


def results_of(node: Node, result: object) -> Sequence[Any]:
    """What a call gave, as one item per output."""
    if len(node.outputs) == 1:
        if result.__class__ is tuple and isinstance(node.outputs[0].type, types.List):
            result = list(result)  # split and its like: a script's list may be written to
        return (result,)
    return tree_leaves(result) if node.outputs else ()


def _raise(node: Node, message: str, *_: object) -> Sequence[Any]:
    raise node.attributes["_class"](message)


def _print(node: Node, *args: object) -> Sequence[Any]:
    print(*args)
    return ()


def _call_method(node: Node, owner: Any, *args: object) -> Sequence[Any]:
    names = node.attributes.get("_names", ())
    split = len(args) - len(names)
    method = (
        owner if node.attributes["name"] == "__call__" else getattr(owner, node.attributes["name"])
    )
    return results_of(node, method(*args[:split], **dict(zip(names, args[split:]))))


def _call_function(node: Node, *args: object) -> Sequence[Any]:
    result = call_op(node, list(args))
    kind = node.outputs[0].type if len(node.outputs) == 1 else None
    other_than_tensor = isinstance(result, (tuple, list, dict, str))
    if (isinstance(kind, types.Tensor) and other_than_tensor) or (
        isinstance(kind, types.Tuple)
        and (not isinstance(result, tuple) or len(result) != len(kind.elements))
    ):
        raise RuntimeError(
            f"expected value of type {kind} for return value but instead got value of type "
            f"{type(result).__name__}.\nValue: {result!r}"
        )
    return results_of(node, result)


def _set_attribute(node: Node, owner: object, value: object) -> Sequence[Any]:
    setattr(owner, node.attributes["name"], value)
    return ()


def _unchecked(node: Node, value: object) -> Sequence[Any]:
    if value is None:
        raise AssertionError("Unwrapping null optional")
    return (value,)


def _list_unpack(node: Node, values: Sequence[Any]) -> Sequence[Any]:
    if len(values) != len(node.outputs):
        raise RuntimeError(
            f"Expected {len(node.outputs)} elements in a list but found {len(values)}"
        )
    return list(values)


LANGUAGE: dict[str, Callable[..., Sequence[Any]]] = {
    "prim::ListConstruct": lambda node, *args: (list(args),),
    "prim::TupleConstruct": lambda node, *args: (
        node.attributes["_class"](*args) if "_class" in node.attributes else args,
    ),
    "prim::DictConstruct": lambda node, *args: (dict(zip(args[::2], args[1::2])),),
    "prim::ListUnpack": _list_unpack,
    # A class made of tuples may refuse to tell a length, for which `list` would ask it.
    "prim::TupleUnpack": lambda node, values: list(iter(values)),
    "prim::GetAttr": lambda node, owner: (getattr(owner, node.attributes["name"]),),
    "prim::SetAttr": _set_attribute,
    "prim::RaiseException": _raise,
    "prim::Print": _print,
    "prim::unchecked_unwrap_optional": _unchecked,
    "prim::unchecked_cast": lambda node, value: (value,),
    "prim::Uninitialized": lambda node: (None,),
    "prim::TupleIndex": lambda node, values: (values[node.attributes["index"]],),
    "prim::TupleSlice": lambda node, values: (
        values[node.attributes["begin"] : node.attributes["end"]],
    ),
    "prim::isinstance": lambda node, value: (
        any(types.holds(kind, value) for kind in node.attributes["_types"]),
    ),
    "prim::fork": lambda node, value: (finished(value),),
    "prim::slice": lambda node, *parts: (slice(*parts),),
    "prim::CreateObject": lambda node: (object.__new__(node.attributes["_class"]),),
    "prim::EnumName": lambda node, member: (member.name,),
    "prim::EnumValue": lambda node, member: (member.value,),
    "prim::CallMethod": _call_method,
    "prim::CallFunction": _call_function,
}
# prim::dtype and so on: what a tensor knows of itself.
ATTRIBUTES = (
    "dtype", "device", "layout", "itemsize", "nbytes", "grad", "requires_grad", "is_cuda",
    "is_sparse", "is_sparse_csr", "is_mkldnn", "is_leaf", "is_quantized", "is_meta", "T", "mT", "H",
    "mH", "real", "imag", "data",
)  # fmt: skip
LANGUAGE.update(
    {f"prim::{name}": lambda node, t: (getattr(t, node.kind[6:]),) for name in ATTRIBUTES}
)
for _kind in ("prim::type", "prim::index"):  # of a device
    LANGUAGE[_kind] = lambda node, place: (getattr(place, node.kind[6:]),)
LANGUAGE["prim::data"] = lambda node, t: (t.detach(),)  # an operation, which a tracer sees

"""What autograd remembers of a call: a Node with the edges to its inputs, and what the derivatives
name of the arguments and the results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray

from toytorch.backends import base
from toytorch.core import inplace as writing
from toytorch.core import subclasses
from toytorch.core.node_class import generate
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, alias, new
from toytorch.facts import state
from toytorch.facts.dtype import bfloat16, float16
from toytorch.facts.hints import Args, Scalar
from toytorch.facts.node import Node, Output, pack, remember, sequence, underived_class

HALVES = (float16, bfloat16)


def wants_grad(op: Op, args: Args) -> bool:
    """Whether any tensor argument that there is a derivative for requires a gradient: an index
    without elements may be of floats, and want one."""
    for i, name in op.tensor_names:
        a = args[i]
        if isinstance(a, Tensor):
            if a._requires_grad and name in op.derivatives:
                return True
        elif a.__class__ in (list, tuple) and any(
            t._requires_grad for t in a if isinstance(t, Tensor)
        ):
            return True
    return False


def refuse_gradients(function: str, **inputs: Tensor | None) -> None:
    """Refuses inputs for which a function has no derivative, where they want a gradient."""
    for name, tensor in inputs.items():
        if tensor is not None and tensor._requires_grad and state.local.grad:
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument "
                f"'{name}'. This input cannot have requires_grad True."
            )


def refuse_complex(name: str, result: Tensor) -> None:
    """Refuses a complex result of an op whose derivative is one of real numbers."""
    if result._dtype.is_complex:
        raise RuntimeError(
            f"{name} does not support automatic differentiation for outputs with complex dtype."
        )


def edge(tensor: Tensor) -> Any:
    """Where the gradient of `tensor` goes."""
    if not isinstance(tensor, Tensor) or not tensor._requires_grad:
        return None
    return tensor._grad_edge or tensor


def record(op: Op, args: Args, results: Any, overwritten: Tensor | None = None) -> Any:
    """Makes the node of a call and ties the results to it."""
    many = results.__class__ in (list, tuple)
    if not many and results._dtype.rank < 2:
        if overwritten is None:
            integers(op, results)
        if overwritten is None or op.across == "between" or op.underived:
            return None  # integers that are written to have a history in PyTorch, but for copies
    if op.of_reals and overwritten is None and not many:
        refuse_complex(op.of_reals, results)
    if op.variant is not None:
        kind = op.node_variant(op.variant(*args))
    else:
        kind = op.node if overwritten is None else op.node_of_writes
    node: Node = new(kind)
    edges: list[Any] = []
    derivatives = op.derivatives
    for i, name in op.tensor_names:
        a = args[i]
        if a.__class__ in (list, tuple):
            edges += [edge(t) for t in a]
        elif name in derivatives and isinstance(a, Tensor) and a._requires_grad:
            edges.append(a._grad_edge or a)
        else:
            edges.append(None)
    if overwritten is not None:
        edges[0] = writing.old_edge(overwritten) if op.schema.args[0].name in derivatives else None
    node.edges, node.seq = tuple(edges), next(sequence)
    if state.anomaly is not None:
        remember(node)
    if node.bare and (
        (not many and results._array.__class__ is not ndarray)
        or any(not plain_operand(op, args[i], results) for i in op.tensor_at)
    ):  # Promotion, and sparse operands, are the tensors' business.
        node.bare = False if many else held_derivative(op, args, results)
    keep(op, node, args, results, overwritten)
    if many:
        tie_many(op, node, results)
    else:
        node.meta = results._array.shape, results._dtype
        if overwritten is None:
            results._requires_grad, results._grad_edge = True, node
            base = results._base
            if base is not None and not base._requires_grad:
                writing.guard(results)  # a view of a leaf that is a view itself
    return node


REMEMBER = """\
def remember(args, view):  # `record` of {name}
    source = args[0]
    node = {node}()
    node.edges = (source._grad_edge or source,)
    node.seq = next(sequence)
    node.saved, node.versions = {saved}
{keeps}{tie}"""
TIE_ONE = """\
    node.meta = (view._array.shape, view._dtype)
    if view._dtype.rank < 2:
        return integers(op, view)  # which refuses
    view._requires_grad = True
    view._grad_edge = node
    base = view._base
    if base is not None and not base._requires_grad:
        guard(view)  # a view of a leaf that is a view itself
"""
TIE_MANY = """\
    tie_many(op, node, view)
"""


def recorder(op: Op) -> Callable[[tuple[Any, ...], Any], Any]:
    """`record` for an op that views its first argument, once or several times, of a source that wants
    a gradient while nobody watches; one function for each op, kept as its `remember`."""
    values = []
    for kind, index, _ in op.plan:
        if kind == "argument" and index not in op.tensor_at:
            values.append(f"args[{index}]")
        elif kind == "shape" and index == 0:
            values.append("source._array.shape")
        elif kind in TRAITS and index == 0:
            values.append(f"{kind}_of(source)")
        else:
            break
    if op.tensor_at != (0,) or len(values) < len(op.plan) or op.rounds_once:
        op.remember = functools.partial(record, op)
        return op.remember
    saved = f"({', '.join(values)},), {(None,) * len(values)}" if values else "None, ()"
    space: dict[str, Any] = {f"{trait}_of": found for trait, found in TRAITS.items()}
    space.update(Node=op.node, sequence=sequence, op=op, integers=integers, guard=writing.guard)
    space["tie_many"] = tie_many
    tie = TIE_MANY if op.many else TIE_ONE
    node, keeps = "Node", ""
    if op.variant is not None:  # PyTorch's overload for a number keeps no tensor
        node, keeps = "op.node_variant(op.variant(*args))", "    node.frees = False\n"
    source = REMEMBER.format(name=op.name, node=node, saved=saved, keeps=keeps, tie=tie)
    generate(f"{op.name}: node", source, space)
    op.remember = space["remember"]
    return op.remember


def integers(op: Op, result: Tensor) -> bool:
    """Whether integers get a history, which they never do. Comparisons, and what is cast to a type
    that was asked for, have none; of others it is refused: their operands are integers that were
    written to, or the caller has asked for a sum of integers. Of an op of real numbers this is asked
    of complex ones, too, which get one elsewhere only."""
    if result._dtype.is_complex:
        refuse_complex(op.of_reals, result)
    cast = any(a.name == "dtype" and a.type == "dtype" for a in op.schema.args)
    if op.schema.returns[0] != "BoolTensor" and not cast and not op.underived:
        refuse_history(result)
    return False


def refuse_history(result: Tensor) -> None:
    """Refuses a history for integers, in PyTorch's words."""
    raise RuntimeError(f"Autograd not support dtype: {result._dtype.legacy}")


def underive(kind: str | type[Node], sources: Sequence[Any], result: Tensor) -> None:
    """Gives a result of tensors of which one wants a gradient the node that says there is none: of
    an op, or of a class."""
    if not state.local.grad or result._dtype.rank < 2:
        return
    if state.fast_path is state.SLOW:
        for mode in state.local.modes:
            tell = getattr(mode, "on_underived", None)
            if tell is not None:
                tell(kind, result)
    edges = tuple(e for e in map(edge, sources) if e is not None)
    if edges:
        node: Node = new(underived_class(kind) if isinstance(kind, str) else kind)
        node.edges, node.seq, node.saved, node.versions = edges, next(sequence), None, ()
        node.meta = result._array.shape, result._dtype
        if result._base is None:
            result._requires_grad, result._grad_edge = True, node
            writing.refresh(result)
        else:  # of what was written to through a view, there is none either
            writing.rebase(result, node)


def held_derivative(op: Op, args: Args, result: Tensor) -> Any:
    """What computes the derivatives on arrays of a device to which whole calls are handed over; False
    where tensors have to."""
    kind = result._array.__class__
    backend = base.queued.get(kind)
    if backend is None or backend.plain is None or not result._dtype.plain:
        return False
    for i in op.tensor_at:
        a = args[i]
        if a.__class__ is Tensor or isinstance(a, Tensor):
            if a._array.__class__ is not kind or (
                op.kind == "pointwise" and a.dtype is not result._dtype
            ):
                return False
        elif op.kind == "pointwise" and getattr(a, "dtype", result._dtype) is not result._dtype:
            return False
    return op.held_apply or False


def plain_operand(op: Op, operand: Any, result: Tensor) -> bool:
    """Whether derivatives may be computed on the bare array of an operand."""
    pointwise = op.kind == "pointwise"
    if not isinstance(operand, Tensor):
        return not pointwise or getattr(operand, "dtype", result._dtype) is result._dtype
    if (
        op.rounds_once
        and operand._dtype in HALVES
        and operand._dtype.name in op.rounds_once.split()
    ):
        return False  # in float32, which is the tensors' business, too
    return operand._array.__class__ is ndarray and (
        not pointwise or operand._dtype is result._dtype
    )


def tie_many(op: Op, node: Node, results: Tensor | list[Tensor]) -> None:
    """Ties several results to their node."""
    metas = node.meta = list[Any]()
    node.count = len(results)
    wanted, of_reals = op.results, op.of_reals
    every = len(wanted) == 1
    for i, r in enumerate(results):
        kind = r._dtype
        metas.append((r._array.shape, kind))
        if every or wanted[i]:
            if kind.rank < 2:
                refuse_history(r)
            if of_reals:
                refuse_complex(of_reals, r)
            r._requires_grad = True
            r._grad_edge = output = new(Output)
            output.node, output.index = node, i


def keep(op: Op, node: Node, args: Args, results: Any, overwritten: Tensor | None) -> None:
    """Saves what the derivatives name, each tensor with the version it has now."""
    if not op.plan:
        node.saved, node.versions = None, ()
        return
    saved: list[Any] = []
    versions: list[int | None] = []
    for kind, index, users in op.plan:
        version = None
        if kind == "argument":
            value = args[index]
            if isinstance(value, Tensor):
                for u in users:
                    if asks(args[u], overwritten):
                        break
                else:  # no derivative that is wanted needs it
                    saved.append(None)
                    versions.append(None)
                    continue
                if value is overwritten and index == 0:
                    if value._requires_grad and value._dtype.rank < 2:
                        refuse_history(value)  # of the clone that PyTorch keeps
                    value = writing.snapshot(value)
                    version = 0
                else:
                    version = 0 if value._storage is None else value._storage.version
        elif kind == "result" and not any(isinstance(args[u], (Tensor, list)) for u in users):
            value = None  # only a number would ask for it, as of pow with a number as exponent
        elif kind == "result":
            value = results if index < 0 else results[index]
            value = alias(value) if value.__class__ is Tensor else of_subclass(value)
            version = value._storage.version + (overwritten is not None)
        else:
            value = TRAITS[kind](args[index])
        saved.append(value)
        versions.append(version)
    node.saved, node.versions = tuple(saved), tuple(versions)
    if node.frees and not any(map(holds_tensor, saved)):
        # Numbers PyTorch keeps as tensors, unless it has an overload for them.
        node.frees = any(
            kind == "argument"
            and op.schema.args[i].is_tensor
            and (
                (op.variant is None and v is not None)
                or (len(users) > 1 and isinstance(args[i], Tensor))
            )
            for v, (kind, i, users) in zip(saved, op.plan)
        )
    if state.local.saved_hooks and overwritten is None:
        pack(node)


def of_subclass(result: Tensor) -> Tensor:
    """A result as it is saved: an object of a class that is asked about every op stays one."""
    if not subclasses.dispatches(type(result)):
        return alias(result)
    made: Tensor = result.detach()
    made._memory()  # which counts the writes
    return made


def holds_tensor(value: Any) -> bool:
    """Whether a saved value is, or holds, tensors."""
    return isinstance(value, Tensor) or (
        value.__class__ in (list, tuple) and any(isinstance(t, Tensor) for t in value)
    )


def asks(argument: Tensor | Scalar, overwritten: Tensor | None) -> bool:
    """Whether the gradient of an argument will be computed."""
    if isinstance(argument, Tensor):
        return argument._requires_grad or (
            argument is overwritten and writing.old_edge(argument) is not None
        )
    return isinstance(argument, (list, tuple))


def shape_of(value: Any) -> Any:
    """The shape of a tensor argument (of each, for a list; none for a number)."""
    if isinstance(value, Tensor):
        return value._array.shape
    return [t._array.shape for t in value] if isinstance(value, (list, tuple)) else ()


def dtype_of(value: Any) -> Any:
    """The type of a tensor argument (of each, for a list; none for a number)."""
    if isinstance(value, Tensor):
        return value._dtype
    return [t._dtype for t in value] if isinstance(value, (list, tuple)) else None


def is_column_major(value: Any) -> bool:
    """Whether a matrix lies in memory column by column, by its strides: PyTorch takes (1, n) for
    one that does if its strides are (1, 1)."""
    a = value._array
    return a.ndim == 2 and bool(a.strides == (a.itemsize, a.itemsize * a.shape[0]))


def layout_of(value: Any) -> Any:
    """The shape, strides and storage offset of a tensor."""
    return tuple(value._array.shape), value.stride(), value.storage_offset()


TRAITS = {"shape": shape_of, "dtype": dtype_of, "order": is_column_major, "layout": layout_of}
